#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cold start of an agent with 2,000 remote nodes and 250 pods of its own: until all flows are in Open vSwitch.

Brings up a lab of one node, registers 2,000 more Node objects (their HostSubnets make remotes of them) and
attaches 250 pods through tenet-cni.  Then, in turn:

  agent   the agent is killed, all flows of br0 are deleted, the agent is started: from just before its process
          is made until its log says "ready".  It registers, lists the objects, reads Open vSwitch's database,
          computes the flows and commits them in one bundle; the host is looked at, too.
  peer    all flows are deleted, and "ovs-ofctl --bundle add-flows" loads the same ones from a file: nothing
          but the switch's own work and the parsing of text.

usage: scale.py [--build build] [--pods 250] [--remotes 2000] [--rounds 5]
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOAL_MS = 1000


def register(server, count):
    def one(i):
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"remote{i}"},
                "status": {"addresses": [{"type": "InternalIP", "address": f"10.246.{i // 250}.{i % 250 + 1}"}]}}
        urllib.request.urlopen(urllib.request.Request(
            f"{server}/api/v1/nodes", method="POST", data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"}), timeout=60).read()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(count)))


def ready_time(log, offset):
    """When the agent was ready for the first time behind 'offset' of its log; None: not yet."""
    with open(log, errors="replace") as f:
        f.seek(offset)
        found = re.search(r"(?m)^(\S+)Z INFO node: ready ", f.read())
    return datetime.datetime.fromisoformat(found[1] + "+00:00").timestamp() if found else None


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--pods", type=int, default=250)
    ap.add_argument("--remotes", type=int, default=2000)
    ap.add_argument("--rounds", type=int, default=5)
    args = ap.parse_args()
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from lab import Lab, wait_for

    lab = Lab("scl", nodes=1, plugin="redhat/openshift-ovs-multitenant", cluster_network="10.128.0.0/10")
    try:
        lab.up()
        register(re.search(r"http://[0-9.:]+", pathlib.Path(lab.kubeconfig).read_text()).group(0), args.remotes)
        projects = [f"p{i}" for i in range(20)]
        for p in projects:
            lab.project(p)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: lab.pod(f"{projects[i % 20]}/pod{i}", "node1"), range(args.pods)))
        flows = wait_for("the flows of all", lambda: len(f := lab.flows("node1")) >= 3 * args.remotes + 4 * args.pods
                         and f, 120)
        log, mgmt = lab.node("node1")["log"], f"unix:{lab.ovs_rundir('node1')}/br0.mgmt"
        ofctl = ["ovs-ofctl", "-O", "OpenFlow14"]
        ours, peer = [], []
        with tempfile.NamedTemporaryFile("w", suffix=".flows") as file:
            file.write("\n".join(flows) + "\n")
            file.flush()
            for _ in range(args.rounds):
                lab.cmd("node", "kill", "node1")
                lab.ns("node1", [*ofctl, "del-flows", mgmt])
                before = time.monotonic()
                lab.ns("node1", [*ofctl, "--bundle", "add-flows", mgmt, file.name])
                peer.append((time.monotonic() - before) * 1000)
                lab.ns("node1", [*ofctl, "del-flows", mgmt])
                offset, before = os.path.getsize(log), time.time()
                lab.cmd("node", "start", "node1")
                ready = wait_for("the agent", lambda: ready_time(log, offset))
                ours.append((ready - before) * 1000)
                assert lab.flows("node1") == flows, "the flows are not all there"
        print(f"{args.remotes} remote nodes, {args.pods} pods, {len(flows)} flows; {args.rounds} rounds, milliseconds")
        for name, times in (("agent, from nothing to ready", ours), ("ovs-ofctl add-flows of a file", peer)):
            print(f"{name:<32} median {statistics.median(times):8.0f}   {min(times):6.0f}-{max(times):.0f}")
        print(f"ratio ovs-ofctl / ours: {statistics.median(peer) / statistics.median(ours):.2f}")
        print(f"goal: under {GOAL_MS} ms: {'met' if statistics.median(ours) < GOAL_MS else 'MISSED'}")
    finally:
        lab.down(check=False)


if __name__ == "__main__":
    main()
