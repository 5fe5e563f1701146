#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the controllers of workloads in a master with the embedded store on loopback, and nodes that are objects alone.

  pods      Deployments are created at once: pods a second until the last of them is there, written durably, and until the
            last has its node.  The peer creates as many equal pods itself, by four processes, each with four connections.
  follow    a Deployment's pod dies: the time from that write until its successor is there
  loaded    a master with many Deployments of one pod starts anew: until it answers, and until the controllers have made the
            pod of a Deployment that was scaled at that moment; its private memory and processor time until then
  death     a node's lease is no longer renewed: from the end of what is configured (grace, toleration) to the successor of
            its pod, with its node
  rollout   a DeploymentConfig of one pod is rolled out in the controllers (deployInProcess): from the write that makes its pod
            ready to the phase Complete; and the controllers' share, which is that and the time from the change to the pod

There is no kube-controller-manager in Debian 12 to measure beside.

usage: workloads.py [--build build] [--only pods,follow,loaded,death,rollout] [--pods 2000] [--deployments 10000] [--rounds 5]
"""
import argparse
import concurrent.futures
import pathlib
import statistics
import threading
import time

from result import result
from standalone import MERGE, Client, Watch, master, quantile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NS, PODS = "/api/v1/namespaces/default", "/api/v1/namespaces/default/pods"
SETS = "/api/v1/namespaces/default/replicationcontrollers"
CONFIGS = "/apis/apps.openshift.io/v1/namespaces/default/deploymentconfigs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
STRATEGIC = "application/strategic-merge-patch+json"
GRACE, TOLERATION = 4, 2  # seconds


def pod_spec():
    return {"terminationGracePeriodSeconds": 0,
            "containers": [{"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}],
            "tolerations": [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute",
                             "tolerationSeconds": TOLERATION} for k in ("not-ready", "unreachable")]}


def deployment(name, replicas):
    return {"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()}}}


def stamp(t=None):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(t))


class Nodes:
    """Nodes that report, and renew their leases until they are stopped."""

    def __init__(self, m, count):
        self.names, self.dead, self.ends = [f"n{i}" for i in range(count)], set(), threading.Event()
        c = Client(m.port)
        c.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        for name in self.names:
            c.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
            self.report(c, name)
            c.call("POST", LEASES, {"metadata": {"name": name}, "spec": {
                "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp()}})
        self.renewed = {}
        self.thread = threading.Thread(target=self.renew, args=(m.port,), daemon=True)
        self.thread.start()

    def report(self, c, name):
        """What a kubelet says of its node."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        room = {"cpu": "64", "memory": "256Gi", "pods": "20000"}
        c.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
            "capacity": room, "allocatable": room,
            "nodeInfo": {"containerRuntimeVersion": "containerd://1.6.20", "kubeletVersion": "v1.32.0"},
            "addresses": [{"type": "InternalIP", "address": f"198.18.0.{self.names.index(name) + 1}"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now,
                            "lastTransitionTime": now}]}}, STRATEGIC)

    def revive(self, c, name):
        self.dead.discard(name)
        self.report(c, name)

    def renew(self, port):
        c = Client(port)
        while not self.ends.wait(0.5):
            for name in self.names:
                if name not in self.dead:
                    self.renewed[name] = time.monotonic()
                    c.call("PATCH", f"{LEASES}/{name}", {"spec": {"renewTime": stamp()}}, MERGE)

    def stop(self):
        self.ends.set()
        self.thread.join()


def create_pods(port, first, count):
    def some(k):
        c = Client(port)
        for i in range(first + k, first + count, 4):
            c.call("POST", PODS, {"metadata": {"name": f"bare-{i}", "labels": {"app": "bare"}}, "spec": pod_spec()})
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(some, range(4)))


def pods(a):
    created, placed, bare = [], [], []
    for _ in range(a.rounds):
        with master(a.build) as m:
            nodes, c, size = Nodes(m, 20), Client(m.port), 100
            there = Watch(m.port, PODS, lambda o: [o["metadata"]["name"]])
            bound = Watch(m.port, PODS, lambda o: [o["metadata"]["name"]] if o["spec"].get("nodeName") else [])
            count = a.pods // size * size
            begin = time.monotonic()
            for i in range(count // size):
                c.call("POST", DEPLOYMENTS, deployment(f"d{i}", size))
            created.append(count / (there.wait_count(count) - begin))
            placed.append(count / (bound.wait_count(count) - begin))
            nodes.stop()
        with master(a.build, kubernetesMasterConfig={"runScheduler": False}) as m:
            there = Watch(m.port, PODS, lambda o: [o["metadata"]["name"]])
            with concurrent.futures.ProcessPoolExecutor(4) as pool:
                list(pool.map(abs, range(4)))  # The processes are there before the clock runs.
                begin = time.monotonic()
                list(pool.map(create_pods, [m.port] * 4, [i * (count // 4) for i in range(4)], [count // 4] * 4))
                bare.append(count / (there.wait_count(count) - begin))
    made, own = statistics.median(created), statistics.median(bare)
    print(f"pods created by controllers {made:.0f}/s, with a node {statistics.median(placed):.0f}/s, by a client {own:.0f}/s")
    result("pods created by controllers", made, "1/s", "a client's", own, statistics.median(x / y for x, y in zip(created, bare)))
    result("the same, until each has its node", statistics.median(placed), "1/s")


def follow(a):
    times, writes = [], []
    with master(a.build) as m:
        nodes, c = Nodes(m, 3), Client(m.port)
        seen = Watch(m.port, PODS, lambda o: [("there", o["metadata"]["name"]), (o.get("status", {}).get("phase"), o["metadata"]["name"])])
        for i in range(50):
            c.call("POST", DEPLOYMENTS, deployment(f"d{i}", 1))
        seen.wait_count(100)
        for n in range(a.rounds * 20):
            app = f"d{n % 50}"
            pod = next(p["metadata"]["name"] for p in c.call("GET", f"{PODS}?labelSelector=app%3D{app}")["items"]
                       if p.get("status", {}).get("phase") != "Failed")
            with seen.cond:
                seen.seen = {k: v for k, v in seen.seen.items() if k[0] == "there"}
                before = len(seen.seen)
            sent = time.monotonic()
            c.call("PATCH", f"{PODS}/{pod}/status", {"status": {"phase": "Failed"}}, MERGE)
            failed = seen.wait(("Failed", pod))
            with seen.cond:
                seen.cond.wait_for(lambda: sum(k[0] == "there" for k in seen.seen) > before, 60)
                after = max(v for k, v in seen.seen.items() if k[0] == "there")
            writes.append(failed - sent)
            times.append(after - failed)
        nodes.stop()
    print(f"successor of a pod p50 {quantile(times, 0.5):.2f} ms, p99 {quantile(times, 0.99):.2f} ms; "
          f"a write of the pod {quantile(writes, 0.5):.2f} ms")
    result("successor of a dead pod, p50", quantile(times, 0.5), "ms", "a write of the pod", quantile(writes, 0.5))
    result("successor of a dead pod, p99", quantile(times, 0.99), "ms")


def loaded(a):
    ready, acted, memory, cpu = [], [], [], []
    with master(a.build) as m:
        nodes = Nodes(m, 20)
        there = Watch(m.port, PODS, lambda o: [o["metadata"]["name"]])
        local = threading.local()

        def make(i):
            if not hasattr(local, "c"):
                local.c = Client(m.port)
            local.c.call("POST", DEPLOYMENTS, deployment(f"d{i}", 1))
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(make, range(a.deployments)))
        took = there.wait_count(a.deployments, 600) - begin
        nodes.stop()
        for n in range(a.rounds):
            m.stop()
            begin = time.monotonic()
            m.start()
            ready.append(time.monotonic() - begin)
            c = Client(m.port)
            there = Watch(m.port, PODS, lambda o: [o["metadata"]["name"]])
            c.call("PATCH", f"{DEPLOYMENTS}/d{n}", {"spec": {"replicas": 2}}, MERGE)
            acted.append(there.wait_count(1) - begin)
            memory.append(m.private_mib())
            cpu.append(m.cpu_seconds())
    print(f"{a.deployments} Deployments with their pods in {took:.1f} s; restart: ready {statistics.median(ready) * 1000:.0f} ms, a change "
          f"is acted on after {statistics.median(acted) * 1000:.0f} ms, {statistics.median(memory):.0f} MiB, {statistics.median(cpu):.2f} s of "
          "the processor")
    result("restart with 10,000 Deployments, until it answers", statistics.median(ready) * 1000, "ms")
    result("the same, until a change is acted on", statistics.median(acted) * 1000, "ms")
    result("the same, private memory", statistics.median(memory), "MiB")


def death(a):
    late = []
    with master(a.build, kubernetesMasterConfig={"nodeMonitorGraceSeconds": GRACE}) as m:
        nodes, c = Nodes(m, 5), Client(m.port)
        bound = Watch(m.port, PODS, lambda o: [(o["metadata"]["name"], o["spec"]["nodeName"])] if o["spec"].get("nodeName") else [])
        c.call("POST", DEPLOYMENTS, deployment("victim", 1))
        bound.wait_count(1)
        for n in range(a.rounds):
            with bound.cond:
                (pod, node), = [k for k, at in bound.seen.items() if at == max(bound.seen.values())]
            time.sleep(1 if n == 0 else 11)  # a second renewal; pods of the next node may leave 10 s after those of the one before
            nodes.dead.add(node)
            time.sleep(0.1)  # one that was under way
            last = nodes.renewed[node]
            count = len(bound.seen)
            late.append(bound.wait_count(count + 1) - last - GRACE - TOLERATION)
            nodes.revive(c, node)  # With most nodes dead no more pods are moved.
        nodes.stop()
    print(f"successor with its node after a node's death: {statistics.median(late):.2f} s beyond {GRACE} s of grace and {TOLERATION} s of "
          f"toleration (worst {max(late):.2f} s)")
    result("a node's death to its pod elsewhere, beyond what is configured", statistics.median(late) * 1000, "ms")


def rollout(a):
    def config(n):
        return {"spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": "one"}, "annotations": {"n": str(n)}},
                                                     "spec": pod_spec()}}}

    def phase(o):
        notes = o["metadata"]["annotations"]
        return [(o["metadata"]["name"], notes.get("openshift.io/deployment.phase"))]
    after, own = [], []
    with master(a.build, kubernetesMasterConfig={"deployInProcess": True}) as m:
        nodes, c = Nodes(m, 1), Client(m.port)
        made = Watch(m.port, PODS, lambda o: [o["metadata"]["labels"]["deployment"]])
        ended = Watch(m.port, SETS, phase)
        for n in range(1, a.rounds * 10 + 2):
            changed, name = time.monotonic(), f"one-{n}"
            if n == 1:
                c.call("POST", CONFIGS, {"metadata": {"name": "one"}, **config(n)})
            else:
                c.call("PATCH", f"{CONFIGS}/one", config(n), MERGE)
            there = made.wait(name)
            pod, = [p["metadata"]["name"] for p in c.call("GET", f"{PODS}?labelSelector=deployment%3D{name}")["items"]]
            ready = time.monotonic()
            now = stamp()[:19] + "Z"
            c.call("PATCH", f"{PODS}/{pod}/status", {"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": now}]}}, MERGE)
            end = ended.wait((name, "Complete"))
            if n > 1:  # The first one replaces nothing.
                after.append(end - ready)
                own.append(end - ready + there - changed)
        nodes.stop()
    print(f"rollout of a DeploymentConfig of one pod: complete {statistics.median(after) * 1000:.1f} ms after its pod is ready (worst "
          f"{max(after) * 1000:.1f} ms); the controllers' share {statistics.median(own) * 1000:.1f} ms (worst {max(own) * 1000:.1f} ms)")
    result("rollout of a DeploymentConfig of one pod, from its pod's readiness to Complete", statistics.median(after) * 1000, "ms")
    result("the same, the controllers' share", statistics.median(own) * 1000, "ms")


def main():
    parts = {"pods": pods, "follow": follow, "loaded": loaded, "death": death, "rollout": rollout}
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--only", default=",".join(parts))
    ap.add_argument("--pods", type=int, default=2000)
    ap.add_argument("--deployments", type=int, default=10000)
    ap.add_argument("--rounds", type=int, default=5)
    a = ap.parse_args()
    for name in a.only.split(","):
        parts[name](a)


if __name__ == "__main__":
    main()
