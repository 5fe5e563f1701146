#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cold start of an agent with 2,000 remote nodes and 250 pods: until the datapath has everything.

Brings up a lab of one node, registers 2,000 more Node objects (their HostSubnets make remotes of them) and attaches 250
pods through tenet-cni.  Then, in turn:

  agent   kills the agent, deletes all flows of br0 and starts the agent: the time from just before its process is made
          until its log says "ready".  The agent registers, lists the objects, reads Open vSwitch's database, computes the
          flows, commits them in one bundle, and looks at the host.
  peer    deletes all flows, and "ovs-ofctl --bundle add-flows" loads the same ones from a file: the switch's own work and
          the parsing of text.

With --datapath ebpf there is no peer.  The agent is killed, and the pins of maps and programs are removed: the maps are
new ones and the links have no program, except those of pods, which keep the old one.  Then the agent is started.  A second
start keeps the maps.

usage: scale.py [--build build] [--datapath ovs|ebpf] [--pods 250] [--remotes 2000 (ebpf: 5000)] [--rounds 5]
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

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent


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


def wait_in_socket(lab, wait_for, remotes):
    """Until the agent knows all nodes."""
    def known():
        out = lab.ns("node1", ["curl", "-s", "--unix-socket", lab.node("node1")["agentSocket"], "http://agent/metrics"],
                     check=False).stdout
        m = re.search(r"^tenet_node_remote_nodes (\d+)", out, re.M)
        return m and int(m[1]) >= remotes
    wait_for("all nodes", known, 120)


def start_again(lab, wait_for):
    """Milliseconds from just before the agent is started until it is ready."""
    log = lab.node("node1")["log"]
    offset, before = os.path.getsize(log), time.time()
    lab.cmd("node", "start", "node1")
    return (wait_for("the agent", lambda: ready_time(log, offset)) - before) * 1000


def measure_ebpf(lab, wait_for, args):
    wait_in_socket(lab, wait_for, args.remotes)
    bpffs = pathlib.Path(lab.node("node1")["agentSocket"]).parent / "bpf"
    entries = ["bpftool", "map", "dump", "pinned", bpffs / "maps/tenet_routes", "-j"]
    count = len(json.loads(lab.ns("node1", entries).stdout))
    new, found = [], []
    for _ in range(args.rounds):
        lab.cmd("node", "kill", "node1")
        for pin in [*(bpffs / "maps").iterdir(), *(bpffs / "links").iterdir()]:
            pin.unlink()
        new.append(start_again(lab, wait_for))
        assert len(json.loads(lab.ns("node1", entries).stdout)) == count, "the routes are not all there"
        lab.cmd("node", "kill", "node1")
        found.append(start_again(lab, wait_for))
    print(f"{args.remotes} remote nodes, {args.pods} pods, {count} routes; {args.rounds} rounds, milliseconds")
    return [("agent, from nothing to ready", new), ("agent, with the maps it finds", found)]


def measure_ovs(lab, wait_for, args):
    flows = wait_for("the flows of all", lambda: len(f := lab.flows("node1")) >= 3 * args.remotes + 4 * args.pods and f,
                     120)
    mgmt = f"unix:{lab.ovs_rundir('node1')}/br0.mgmt"
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
            ours.append(start_again(lab, wait_for))
            assert lab.flows("node1") == flows, "the flows are not all there"
    print(f"{args.remotes} remote nodes, {args.pods} pods, {len(flows)} flows; {args.rounds} rounds, milliseconds")
    return [("agent, from nothing to ready", ours), ("ovs-ofctl add-flows of a file", peer)]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--datapath", choices=("ovs", "ebpf"), default="ovs")
    ap.add_argument("--pods", type=int, default=250)
    ap.add_argument("--remotes", type=int)
    ap.add_argument("--rounds", type=int, default=5)
    args = ap.parse_args()
    args.remotes = args.remotes or {"ovs": 2000, "ebpf": 5000}[args.datapath]
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from lab import Lab, wait_for

    lab = Lab("scl", nodes=1, plugin="redhat/openshift-ovs-multitenant", cluster_network="10.0.0.0/9",
              datapath=args.datapath)
    try:
        lab.up()
        register(re.search(r"http://[0-9.:]+", pathlib.Path(lab.kubeconfig).read_text()).group(0), args.remotes)
        projects = [f"p{i}" for i in range(20)]
        for p in projects:
            lab.project(p)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: lab.pod(f"{projects[i % 20]}/pod{i}", "node1"), range(args.pods)))
        rows = (measure_ebpf if args.datapath == "ebpf" else measure_ovs)(lab, wait_for, args)
        for name, times in rows:
            print(f"{name:<32} median {statistics.median(times):8.0f}   {min(times):6.0f}-{max(times):.0f}")
        first, second = (statistics.median(times) for _, times in rows)
        if args.datapath == "ovs":
            result("from nothing to ready", first, "ms", "ovs-ofctl add-flows", second)
        else:
            result("from nothing to ready", first, "ms")
            result("to ready, with the maps it finds", second, "ms")
        result("from nothing to ready, slowest", max(rows[0][1]), "ms")
    finally:
        lab.down(check=False)


if __name__ == "__main__":
    main()
