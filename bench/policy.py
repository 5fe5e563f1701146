#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast a change of network policy is enforced at scale, and the agent's memory.

Brings up a lab of one node under ovs-networkpolicy, registers pods of other nodes and policies in many projects, and
attaches some pods to the node.  Then it changes one thing at a time: a policy, the labels of a peer on another node, the
labels of a pod of this node.  Each change allows or denies a stream of datagrams between two pods.  The measured time is
that from the API's answer until the first datagram arrives, or the last one did.  Prints percentiles, the agent's memory,
and the number of flows (with the datapath ebpf, of rows in the maps).

usage: policy.py [--build build] [--datapath ovs] [--pods 30000] [--policies 5000] [--local 30] [--changes 200]
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
import time

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEND = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 9999))
while True:
    try:
        s.send(b"x")
    except OSError:
        pass
    time.sleep(0.0003)
"""
RECEIVE = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 9999))
s.settimeout(0.25)
print("ready", flush=True)
last, open_ = 0.0, False
while True:
    try:
        s.recv(16)
        last = time.monotonic()
        if not open_:
            open_ = True
            print("open", last, flush=True)
    except TimeoutError:
        if open_:
            open_ = False
            print("closed", last, flush=True)
"""


class Api(threading.local):
    """One connection a thread."""

    def __init__(self, server):
        self.conn = http.client.HTTPConnection(server, timeout=120)

    def __call__(self, method, path, obj, kind="application/json"):
        self.conn.request(method, path, json.dumps(obj), {"Content-Type": kind})
        r = self.conn.getresponse()
        body = r.read()
        if r.status >= 300:
            raise RuntimeError(f"{method} {path}: {r.status} {body[:300]}")


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def policy(i, projects, ns=None):
    shape = i % 5
    peer = [{"podSelector": {"matchLabels": {"app": f"a{i % 20}"}}},
            {"namespaceSelector": {"matchLabels": {"team": f"t{i % 50}"}}},
            {"namespaceSelector": {"matchLabels": {"team": f"t{i % 50}"}}, "podSelector": {"matchLabels": {"tier": "web"}}},
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": [f"10.{i % 100}.0.0/16"]}},
            {"podSelector": {}}][shape]
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": f"p{i}"},
            "spec": {"podSelector": {"matchLabels": {"app": f"a{i // projects % 20}"}},
                     "ingress": [{"from": [peer], "ports": [{"port": 80 + i % 7}]}]}}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--datapath", choices=["ovs", "ebpf"], default="ovs")
    ap.add_argument("--pods", type=int, default=30000)
    ap.add_argument("--policies", type=int, default=5000)
    ap.add_argument("--projects", type=int, default=500)
    ap.add_argument("--local", type=int, default=30)
    ap.add_argument("--changes", type=int, default=200)
    args = ap.parse_args()
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from lab import Lab, run, wait_for

    lab = Lab("bpol", nodes=1, plugin="networkpolicy", datapath=args.datapath)
    procs = []
    try:
        lab.up()
        server = re.search(r"http://([0-9.:]+)", pathlib.Path(lab.kubeconfig).read_text()).group(1)
        api = Api(server)

        def project(k):
            api("POST", "/api/v1/namespaces", {"metadata": {"name": f"n{k}", "labels": {"team": f"t{k % 50}"}}})

        def remote(i):
            ns, path = f"n{i % args.projects}", "/api/v1/namespaces/{}/pods"
            labels = {"app": f"a{i // args.projects % 20}", "tier": ("web", "db")[i % 2], "id": f"pod{i}"}
            pod = {"metadata": {"name": f"r{i}", "labels": labels},
                   "spec": {"nodeName": "far", "containers": [{"name": "c", "image": "x"}]}}
            api("POST", path.format(ns), pod)
            ip = f"10.{130 + i // 64000}.{i // 250 % 256}.{i % 250 + 2}"
            api("PUT", f"{path.format(ns)}/r{i}/status", {**pod, "status": {"phase": "Running", "podIP": ip}})

        def rule(i):
            api("POST", f"/apis/networking.k8s.io/v1/namespaces/n{i % args.projects}/networkpolicies",
                policy(i, args.projects))
        api("POST", "/apis/network.openshift.io/v1/hostsubnets",
            {"metadata": {"name": "far"}, "host": "far", "hostIP": "192.0.2.1", "subnet": "10.130.0.0/15"})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(project, range(args.projects)))
            list(pool.map(remote, range(args.pods)))
            list(pool.map(rule, range(args.policies)))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            pods = list(pool.map(lambda i: lab.pod(f"n{i}/l{i}", "node1", {"app": f"a{i % 20}"}), range(args.local)))
        src, dst = lab.pod("n0/src", "node1", {"role": "src"}), lab.pod("n0/dst", "node1", {"role": "dst"})
        started = time.monotonic()
        lab.cmd("node", "restart", "node1")
        wait_for("the agent", lambda: lab.node("node1")["ready"], 120)
        start = time.monotonic() - started
        receiver = dst.popen(["/usr/bin/python3", "-c", RECEIVE])
        procs.append(receiver)
        assert receiver.stdout.readline().strip() == "ready"
        procs.append(src.popen(["/usr/bin/python3", "-c", SEND, dst.ip]))

        def until(word):
            while True:
                got, at = receiver.stdout.readline().split()
                if got == word:
                    return float(at)

        until("open")
        merge, base = "application/merge-patch+json", "/apis/networking.k8s.io/v1/namespaces/n0/networkpolicies"
        api("POST", base, {"metadata": {"name": "gate"},
                           "spec": {"podSelector": {"matchLabels": {"role": "dst"}},
                                    "ingress": [{"from": [{"podSelector": {"matchLabels": {"gate": "open"}}}]}]}})
        until("closed")
        pod = "/api/v1/namespaces/n0/pods/"
        peer = [{"from": [{"podSelector": {"matchLabels": {"gate": "open"}}}]}]
        ways = {
            "labels of a peer": (lambda: api("PATCH", pod + "src", {"metadata": {"labels": {"gate": "open"}}}, merge),
                                 lambda: api("PATCH", pod + "src", {"metadata": {"labels": {"gate": None}}}, merge)),
            "a policy's rules": (lambda: api("PATCH", base + "/gate", {"spec": {"ingress": [{}]}}, merge),
                                 lambda: api("PATCH", base + "/gate", {"spec": {"ingress": peer}}, merge)),
            "labels of the pod": (lambda: api("PATCH", pod + "dst", {"metadata": {"labels": {"role": "x"}}}, merge),
                                  lambda: api("PATCH", pod + "dst", {"metadata": {"labels": {"role": "dst"}}}, merge)),
        }
        if args.datapath == "ovs":
            flows = f"{len(lab.flows('node1'))} flows"
        else:
            pins = pathlib.Path(lab.node("node1")["agentSocket"]).parent / "bpf/maps"
            flows = ", ".join(f"{len(json.loads(run(['bpftool', '-j', 'map', 'dump', 'pinned', pins / name]).stdout))} in {name}"
                              for name in ("tenet_classes", "tenet_blocks", "tenet_pairs", "tenet_port_sets"))
        print(f"{args.pods} pods and {args.policies} policies in {args.projects} projects; {len(pods) + 2} pods here; "
              f"{flows}; agent restarted in {start:.2f} s")
        print(f"{'change':<20}{'n':>6}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}")
        for name, (open_, close) in ways.items():
            took = []
            for _ in range(max(1, args.changes // 6)):
                for change, word in ((open_, "open"), (close, "closed")):
                    change()
                    answered = time.monotonic()
                    took.append(max(0.0, (until(word) - answered) * 1000))
            print(f"{name:<20}{len(took):>6}{percentile(took, 50):>9.1f}{percentile(took, 99):>9.1f}{max(took):>9.1f}")
            result(f"{name}, p50", percentile(took, 50), "ms")
            result(f"{name}, p99", percentile(took, 99), "ms")
        text = pathlib.Path(f"/proc/{lab.node('node1')['pid']}/smaps_rollup").read_text()
        rss = {k: int(v) / 1024 for k, v in re.findall(r"^(\w+):\s+(\d+) kB", text, re.M)}
        private = rss["Private_Clean"] + rss["Private_Dirty"]
        print(f"agent: {rss['Rss']:.1f} MiB, private {private:.1f}")
        result("memory of the agent", rss["Rss"], "MiB")
        result("private memory of the agent", private, "MiB")
        result("agent ready after a restart", start, "s")
    finally:
        for p in procs:
            p.kill()
        lab.down(check=False)


if __name__ == "__main__":
    main()
