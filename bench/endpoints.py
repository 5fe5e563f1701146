#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time from a pod's change to the change of its service's endpoints, with many services and pods.

Starts a master with the embedded store on loopback, and makes the services with their pods.  Then one pod after the
other becomes unready.  Watches report when the change of the pod and that of its EndpointSlice arrive: the time between
them is the controller's, from the first event to the durable write of the slice.  The peer is one durable write of a
pod's status, from request to watch.  Memory is that of the master.

usage: endpoints.py [--build build] [--services 10000] [--pods 3] [--changes 300]
"""
import argparse
import concurrent.futures
import pathlib
import threading
import time

from result import result
from standalone import MERGE, Client, Watch, master, quantile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--services", type=int, default=10000)
    ap.add_argument("--pods", type=int, default=3)
    ap.add_argument("--changes", type=int, default=300)
    a = ap.parse_args()
    with master(a.build) as m:
        run(a, m)


def status(ip, ready, stamp):
    return {"status": {"phase": "Running", "podIP": ip, "message": stamp,
                       "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}}


def run(a, m):
    port = m.port
    ns, merge = "/api/v1/namespaces/default", MERGE
    local = threading.local()

    def client():
        if not hasattr(local, "c"):
            local.c = Client(port)
        return local.c

    def address(i, k):
        n = i * a.pods + k + 2  # behind the network's and the gateway's
        return f"10.{128 + (n >> 16)}.{n >> 8 & 255}.{n & 255}"

    def make(i):
        c, name = client(), f"s{i}"
        c.call("POST", ns + "/services", {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}})
        for k in range(a.pods):
            c.call("POST", ns + "/pods", {"metadata": {"name": f"{name}-{k}", "labels": {"app": name}},
                                          "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}})
            c.call("PATCH", f"{ns}/pods/{name}-{k}/status", status(address(i, k), True, ""), merge)
    # Only what a node's subnet gives out is a pod's address.
    client().call("POST", "/apis/network.openshift.io/v1/hostsubnets",
                  {"metadata": {"name": "n"}, "host": "n", "hostIP": "192.0.2.1", "subnet": "10.128.0.0/14"})
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(make, range(a.services)))
    made = time.monotonic()
    c = client()
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    while sum(len(s["endpoints"]) for s in c.call("GET", slices)["items"]) < a.services * a.pods:
        time.sleep(0.05)
    print(f"services={a.services} pods={a.services * a.pods} made_s={made - begin:.1f} endpoints_behind_s={time.monotonic() - made:.2f}")

    pods = Watch(port, ns + "/pods", lambda o: [(o["metadata"]["name"], o["status"].get("message"))])
    ready = Watch(port, slices, lambda o: [(e["targetRef"]["name"], e["conditions"]["ready"]) for e in o["endpoints"]])
    writes, follows = [], []
    for n in range(a.changes):
        name, now_ready = f"s{n * 7919 % a.services}-0", False
        with ready.cond:
            ready.seen.clear()
        stamp = f"{n}"
        sent = time.monotonic()
        c.call("PATCH", f"{ns}/pods/{name}/status", status(address(n * 7919 % a.services, 0), now_ready, stamp), merge)
        at = pods.wait((name, stamp))
        writes.append(at - sent)
        follows.append(ready.wait((name, now_ready)) - at)
    for what, v in (("write", writes), ("follow", follows)):
        print(f"{what} p50_ms={quantile(v, 0.5):.2f} p99_ms={quantile(v, 0.99):.2f} max_ms={max(v) * 1000:.2f}")
    result("slice follows a pod's change, p50", quantile(follows, 0.5), "ms", "a write of the pod", quantile(writes, 0.5))
    result("slice follows a pod's change, p99", quantile(follows, 0.99), "ms")
    result("slice follows a pod's change, worst", max(follows) * 1000, "ms")
    print(f"follow/write={quantile(follows, 0.5) / quantile(writes, 0.5):.2f} master_mib={m.private_mib():.0f}")


if __name__ == "__main__":
    main()
