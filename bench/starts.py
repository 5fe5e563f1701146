#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the watches that the agents and the controllers hold, and the lists that they made, after a start.

Brings up a lab with --nodes nodes, waits until the counts stay the same for --quiet seconds, and reads the API server's
metrics: apiserver_registered_watchers, and apiserver_request_total with the verb list.  The counts do not depend on the
speed of the machine.

usage: starts.py [--build build] [--datapath ovs|ebpf] [--nodes 2] [--quiet 5]
"""
import argparse
import os
import pathlib
import re
import sys
import time
import urllib.request

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent


def read_counts(server):
    """{resource: watches}, {resource: lists}; a resource without its group."""
    with urllib.request.urlopen(server + "/metrics", timeout=30) as r:
        text = r.read().decode()
    watches, lists = {}, {}
    for labels, n in re.findall(r"^apiserver_registered_watchers\{(.*)\} (\d+)$", text, re.M):
        resource = re.search(r'resource="([^".]*)', labels)[1]
        watches[resource] = watches.get(resource, 0) + int(n)
    for labels, n in re.findall(r"^apiserver_request_total\{(.*)\} (\d+)$", text, re.M):
        resource = re.search(r'resource="([^".]*)', labels)[1]
        if 'verb="list"' in labels:
            lists[resource] = lists.get(resource, 0) + int(n)
    return watches, lists


def wait_until_quiet(server, quiet_s):
    """The counts, once they have not changed for 'quiet_s' seconds."""
    last, since, end = None, 0, time.monotonic() + 120
    while True:
        now = read_counts(server)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since >= quiet_s:
            return now
        if time.monotonic() > end:
            sys.exit("starts: the counts still change after 120 s")
        time.sleep(0.2)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--datapath", choices=("ovs", "ebpf"), default="ovs")
    ap.add_argument("--nodes", type=int, default=2)
    ap.add_argument("--quiet", type=float, default=5, help="seconds")
    args = ap.parse_args()
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from lab import Lab

    lab = Lab("sta", nodes=args.nodes, plugin="redhat/openshift-ovs-multitenant", datapath=args.datapath)
    try:
        lab.up()
        server = re.search(r"http://[0-9.:]+", pathlib.Path(lab.kubeconfig).read_text()).group(0)
        watches, lists = wait_until_quiet(server, args.quiet)
        print(f"{args.nodes} nodes\n{'resource':<32}{'watches':>8}{'lists':>8}")
        for resource in sorted({*watches, *lists}):
            n, m = watches.get(resource, 0), lists.get(resource, 0)
            if n or m:
                print(f"{resource:<32}{n:>8}{m:>8}")
        print(f"{'all':<32}{sum(watches.values()):>8}{sum(lists.values()):>8}")
        result("watches held", sum(watches.values()), "watches")
        result("lists made", sum(lists.values()), "lists")
    finally:
        lab.down(check=False)


if __name__ == "__main__":
    main()
