#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the resident memory of the node agent with 100 pods and 1,000 remote nodes, and with services on request.

Brings up a lab of one node, registers 1,000 more Node objects (their HostSubnets make remotes of them), and attaches 100
pods through tenet-cni.  When all flows are in place, reads VmRSS and its private part (Pss of anonymous and own pages) of
the agent, the master and Open vSwitch.

With --datapath ebpf it also reads the size of the maps, which are the kernel's.

usage: memory.py [--build build] [--datapath ovs|ebpf] [--pods 100] [--remotes 1000] [--services 0]
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import sys
import threading

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent


def smaps(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {k: int(v) for k, v in re.findall(r"^(\w+):\s+(\d+) kB", text, re.M)}


def of_maps(pid):
    """KiB of the resident memory that are the kernel's maps: rings that the agent reads."""
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text()
    return sum(int(kb) for kb in re.findall(r"anon_inode:bpf-map\nSize:.*\n(?:.*\n){2}Rss:\s+(\d+) kB", text))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--datapath", choices=("ovs", "ebpf"), default="ovs")
    ap.add_argument("--pods", type=int, default=100)
    ap.add_argument("--remotes", type=int, default=1000)
    ap.add_argument("--services", type=int, default=0, help="of two endpoints each")
    args = ap.parse_args()
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from lab import Lab, wait_for

    lab = Lab("mem", nodes=1, plugin="redhat/openshift-ovs-multitenant", host_subnet_length=8,
              datapath=args.datapath)
    try:
        lab.up()
        server = re.search(r"http://([0-9.:]+)", pathlib.Path(lab.kubeconfig).read_text()).group(1)
        own = threading.local()

        def post(path, body):
            if not hasattr(own, "http"):
                own.http = http.client.HTTPConnection(server, timeout=60)
            own.http.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            r = own.http.getresponse()
            text = r.read()
            if r.status != 201:
                sys.exit(f"POST {path}: {r.status} {text.decode()}")

        def register(i):
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"remote{i}"},
                    "status": {"addresses": [{"type": "InternalIP", "address": f"10.246.{i // 250}.{i % 250 + 1}"}]}}
            post("/api/v1/nodes", body)

        def serve(i):
            post("/api/v1/namespaces/red/services",
                 {"metadata": {"name": f"s{i}"}, "spec": {"ports": [{"port": 80, "targetPort": 8080}]}})
            ends = [{"addresses": [f"10.129.{k // 250 % 250}.{k % 250 + 1}"]} for k in (2 * i, 2 * i + 1)]
            post("/apis/discovery.k8s.io/v1/namespaces/red/endpointslices",
                 {"metadata": {"name": f"s{i}-a", "labels": {"kubernetes.io/service-name": f"s{i}"}},
                  "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": ends})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(register, range(args.remotes)))
        lab.project("red")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: lab.pod(f"red/p{i}", "node1"), range(args.pods)))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(serve, range(args.services)))

        def metric(name):
            out = lab.ns("node1", ["curl", "-s", "--unix-socket", lab.node("node1")["agentSocket"],
                                   "http://agent/metrics"]).stdout
            seen = re.search(rf"^tenet_node_{name} (\d+)", out, re.M)
            return int(seen[1]) if seen else 0
        wait_for("all services", lambda: metric("services") >= args.services, 120)
        wait_for("all nodes", lambda: metric("remote_nodes") >= args.remotes, 120)
        if args.datapath == "ovs":
            want = args.remotes * 2 + args.pods
            flows = wait_for("all flows", lambda: (n := len(lab.flows("node1"))) >= want and n, 120)
        status = lab.status()
        rows = [("tenet node", lab.node("node1")["pid"])]
        for name, pattern in (("tenet master", "tenet-master"), ("ovs-vswitchd", "ovs-vswitchd"),
                              ("ovsdb-server", "ovsdb-server")):
            for p in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    cmd = (p / "cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                mine = f"/run/tenet/lab/{lab.name}/" in cmd
                if mine and (pattern in cmd.split("\0")[0] or (name == "tenet master" and "\0master\0" in cmd)):
                    rows.append((name, int(p.name)))
        print(f"{args.pods} pods, {args.remotes} remote nodes, {args.services} services"
              + (f", {flows} flows" if args.datapath == "ovs" else ""))
        print(f"{'process':<16}{'RSS MiB':>10}{'private MiB':>13}")
        for name, pid in rows:
            s = smaps(pid)
            private = s["Private_Clean"] + s["Private_Dirty"]
            print(f"{name:<16}{s['Rss'] / 1024:>10.1f}{private / 1024:>13.1f}")
            result(f"{name}, resident", s["Rss"] / 1024, "MiB")
            result(f"{name}, private", private / 1024, "MiB")
        if args.datapath == "ebpf":
            pins = pathlib.Path(lab.node("node1")["agentSocket"]).parent / "bpf/maps"
            total = 0
            for pin in sorted(pins.iterdir()):
                shown = json.loads(lab.ns("node1", ["bpftool", "-j", "map", "show", "pinned", pin]).stdout)
                total += shown["bytes_memlock"]
            print(f"{'the maps':<16}{total / (1 << 20):>10.1f}")
            result("the maps", total / (1 << 20), "MiB")
        pid = status["nodes"][0]["pid"]
        own_mb = (smaps(pid)["Rss"] - of_maps(pid)) * 1024 / 1e6
        print(f"agent without rings of the maps: {own_mb:.1f} MB")
        result("tenet node, without rings of the maps", own_mb, "MB")
    finally:
        lab.down(check=False)


if __name__ == "__main__":
    main()
