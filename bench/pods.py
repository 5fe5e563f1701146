#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long a pod takes from its creation at the API to Running, beside bare CRI calls for the same pod.

A containerd of its own runs both: pods of `tenet kubelet`, and pods that tests/support/drive_runtime.c makes by the same calls
(RunPodSandbox, CreateContainer, StartContainer) with the same image, mounts and cgroups.  They take turns, each alone, then
--together at once.  After that the node gets --pods pods, and the agent's memory and, over --idle seconds, its time on the
processors are read; then containers are killed, until the API shows their end.  Last the agent is restarted: containers end
while it is away, and the time is from its start until the API shows all of them; no other container may have changed.

With --runtime crun containerd starts both sides' pods by crun.

usage: pods.py [--build build] [--runtime runc|crun] [--rounds 25] [--together 50] [--pods 110] [--idle 60]
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import queue
import re
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = ["sleep", "3600"]
DEADLINE = 300
RESTARTS, ENDED_MEANWHILE = 5, 3
EXITED = 2  # a state of CRI
REST_SECONDS = 0.5  # until the sandbox of the pod before is gone
KEPT_SECONDS = 20  # how long a connection may be idle: the API server closes it some time later


class Watch:
    """Statuses of all pods as the API server tells them, each with the time at which it came."""

    def __init__(self, connect):
        self.http = connect()
        self.http.timeout = None
        self.http.request("GET", "/api/v1/namespaces/default/pods?watch=true")
        self.answer = self.http.getresponse()
        self.seen = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for line in self.answer:
                at = time.monotonic()
                event = json.loads(line)
                self.seen.put((at, event["type"], event["object"]))

    def until(self, names, is_it):
        """{name: when 'is_it(type, pod)' first was true}, for each of the names."""
        found, end = {}, time.monotonic() + DEADLINE
        while len(found) < len(names):
            at, kind, pod = self.seen.get(timeout=max(0.01, end - time.monotonic()))
            name = pod["metadata"]["name"]
            if name in names and name not in found and is_it(kind, pod):
                found[name] = at
        return found


def is_running(kind, pod):
    return pod["status"].get("phase") == "Running"


def has_ended(kind, pod):
    return any("terminated" in c["state"] for c in pod["status"].get("containerStatuses", []))


def is_gone(kind, pod):
    return kind == "DELETED"


class Api:
    """Pods by HTTP requests, over connections that are made inside the cluster's network namespace."""

    def __init__(self, cluster, netns, wait_for):
        self.cluster, self.netns, self.wait_for, self.own = cluster, netns, wait_for, threading.local()
        self.watch = Watch(self.connect)

    def connect(self):
        made = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=DEADLINE)
        made.sock = self.netns.inside(f"/proc/{self.cluster.cd.holder.pid}/ns/net",
                                      lambda: socket.create_connection(("127.0.0.1", self.cluster.port)))
        made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def ask(self, method, path, body, expected):
        if not hasattr(self.own, "http") or time.monotonic() - self.own.at > KEPT_SECONDS:
            self.own.http = self.connect()
        self.own.at = time.monotonic()
        self.own.http.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        r = self.own.http.getresponse()
        text = r.read()
        if r.status not in expected:
            sys.exit(f"pods: {method} {path}: {r.status} {text.decode()}")

    def create(self, name, image):
        """The time at which the request began."""
        begin = time.monotonic()
        self.ask("POST", "/api/v1/namespaces/default/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": "n1", "automountServiceAccountToken": False, "restartPolicy": "Never", "containers": [
                {"name": "c", "image": image, "imagePullPolicy": "IfNotPresent", "command": COMMAND}]}}, (201,))
        return begin

    def remove(self, names):
        for name in names:
            # Not 0: such a pod leaves the API before its node has ended it.
            self.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 1}, (200,))
        self.watch.until(names, is_gone)
        self.wait_for("the node to be empty", lambda: not self.cluster.containers(), DEADLINE)


class Bare:
    """The same pods by calls of the runtime alone."""

    def __init__(self, cluster, driver, image):
        self.cluster, self.cri, self.image, self.lock = cluster, driver, image, threading.Lock()

    def call(self, name, **arguments):
        with self.lock:
            number = self.cri.begin(name, **arguments)
        answer = self.cri.end(number, DEADLINE)
        if answer["error"]:
            sys.exit(f"pods: {name}: {answer}")
        return answer.get("result")

    def exited(self):
        """Containers that have ended, as the runtime tells it."""
        return [c for c in self.call("list_containers") if c["state"] == EXITED]

    def prepare(self, name):
        """What the kubelet makes of a pod's folders counts as its own work: here they are there before."""
        logs = self.cluster.dir / "bare" / name
        (logs / "c").mkdir(parents=True)
        for file in ("hosts", "last"):
            (logs / file).write_text("127.0.0.1 localhost\n")
        return {"name": name, "uid": f"bare-{name}", "namespace": "default", "hostname": name, "logs": str(logs),
                "cgroupParent": f"/{self.cluster.cd.cgroup}/kubepods/besteffort/bare-{name}"}

    def create(self, spec):
        """(begin, end, sandbox)"""
        begin = time.monotonic()
        sandbox = self.call("run_sandbox", sandbox=spec)
        mounts = [{"from": f"{spec['logs']}/{file}", "to": to}
                  for file, to in (("hosts", "/etc/hosts"), ("last", "/dev/termination-log"))]
        container = self.call("create_container", of=sandbox, sandbox=spec, container={
            "name": "c", "image": self.image, "command": COMMAND, "logPath": "c/0.log", "mounts": mounts, "oomScoreAdj": 1000,
            "cpuShares": 2})
        self.call("start_container", of=container)
        return begin, time.monotonic(), sandbox

    def remove(self, sandbox):
        self.call("stop_sandbox", of=sandbox)
        self.call("remove_sandbox", of=sandbox)


def alone(api, bare, rounds):
    """Milliseconds of each pod, by the kubelet and bare, in turn."""
    ours, theirs = [], []
    for i in range(rounds):
        name = f"alone-{i}"
        begin = api.create(name, bare.image)
        ours.append((api.watch.until({name}, is_running)[name] - begin) * 1e3)
        api.remove({name})
        begin, end, sandbox = bare.create(bare.prepare(name))
        theirs.append((end - begin) * 1e3)
        bare.remove(sandbox)
    return ours, theirs


def together(api, bare, n, label):
    """Seconds until the last of n pods that are made at once runs: by the kubelet, and bare."""
    names = [f"{label}-{i}" for i in range(n)]
    specs = [bare.prepare(name) for name in names]
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        begun = list(pool.map(lambda name: api.create(name, bare.image), names))
        running = api.watch.until(set(names), is_running)
        ours = max(running.values()) - min(begun)
        api.remove(set(names))
        made = list(pool.map(bare.create, specs))
        theirs = max(end for _, end, _ in made) - min(begin for begin, _, _ in made)
        list(pool.map(bare.remove, [sandbox for _, _, sandbox in made]))
    return ours, theirs


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Rss:\s+(\d+) kB", text, re.M)[1]) * 1024 / 1e6


def pid_of(cluster, run, pod):
    """The first process of the pod's container."""
    ident = pod["status"]["containerStatuses"][0]["containerID"].split("//")[1]
    for line in run(["ctr", "-a", cluster.cd.socket, "-n", "k8s.io", "tasks", "ls"]).stdout.splitlines():
        if line.startswith(ident):
            return int(line.split()[1])
    sys.exit(f"pods: containerd has no task {ident}")


def ends(cluster, run, api, names):
    """Milliseconds from the death of a container to its status at the API."""
    took = []
    for name in names:
        time.sleep(REST_SECONDS)
        pid = pid_of(cluster, run, cluster.get("pod", name))
        begin = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        took.append((api.watch.until({name}, has_ended)[name] - begin) * 1e3)
    return took


def restart(cluster, run, api, bare, names):
    """Milliseconds from the start of the agent until the API shows the containers that ended while it was away."""
    pids = {name: pid_of(cluster, run, cluster.get("pod", name)) for name in names}
    containers, ended = set(cluster.containers()), len(bare.exited())
    cluster.stop_kubelet()
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    api.wait_for("the runtime to know the ends", lambda: len(bare.exited()) >= ended + len(names))
    begin = time.monotonic()
    cluster.start_kubelet()
    last = max(api.watch.until(set(names), has_ended).values())
    if set(cluster.containers()) != containers:
        sys.exit("pods: the agent's restart has changed containers")
    return (last - begin) * 1e3


def p99(values):
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


def measure(args, cluster, api, bare, run):
    ours, theirs = alone(api, bare, args.rounds)
    print(f"{'ms, a pod alone':<32}{'p50':>8}{'p99':>8}")
    for name, values in (("create at the API to Running", ours), ("bare CRI calls", theirs)):
        print(f"{name:<32}{statistics.median(values):>8.1f}{p99(values):>8.1f}")
    result("create to Running p50, alone", statistics.median(ours), "ms", "bare CRI calls", statistics.median(theirs))
    result("create to Running p99, alone", p99(ours), "ms", "bare CRI calls", p99(theirs))

    rounds = [together(api, bare, args.together, f"many-{i}") for i in range(3)]
    ours, theirs = (statistics.median(x) for x in zip(*rounds))
    print(f"{args.together} pods at once, until all run: {ours:.2f} s; bare CRI calls {theirs:.2f} s")
    result("pods at once", ours, "s", "bare CRI calls", theirs)

    names = [f"stays-{i}" for i in range(args.pods)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: api.create(name, bare.image), names))
    api.watch.until(set(names), is_running)
    before, since = cpu_seconds(cluster.kubelet.pid), time.monotonic()
    time.sleep(args.idle)
    percent = (cpu_seconds(cluster.kubelet.pid) - before) / (time.monotonic() - since) * 100
    resident = resident_mb(cluster.kubelet.pid)
    print(f"tenet kubelet with {args.pods} pods: {resident:.1f} MB resident, {percent:.2f} % of a core when idle")
    result("tenet kubelet, resident", resident, "MB")
    result("tenet kubelet, idle", percent, "% of a core")

    rest = iter(names)
    took = ends(cluster, run, api, list(itertools.islice(rest, args.rounds)))
    print(f"death of a container to its status, with {args.pods} pods: p50 {statistics.median(took):.1f} ms")
    result("death of a container to its status, p50", statistics.median(took), "ms")

    took = [restart(cluster, run, api, bare, some) for some in
            (list(itertools.islice(rest, ENDED_MEANWHILE)) for _ in range(RESTARTS)) if some]
    print(f"restart of the agent, with {args.pods} pods: {statistics.median(took):.0f} ms")
    result("restart of the agent", statistics.median(took), "ms")
    api.remove(set(names))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--runtime", choices=("runc", "crun"), default="runc")
    ap.add_argument("--rounds", type=int, default=25, help="pods that are alone")
    ap.add_argument("--together", type=int, default=50, help="pods at once")
    ap.add_argument("--pods", type=int, default=110, help="that stay while the agent is idle")
    ap.add_argument("--idle", type=float, default=60, help="seconds")
    args = ap.parse_args()
    if args.pods <= args.rounds:
        ap.error("--pods must be more than --rounds")
    os.environ["TENET_BUILD"] = args.build
    for folder in ("integration", "containers"):
        sys.path.insert(0, str(ROOT / "tests" / folder))
    import containerd
    import netns
    from lab import run, wait_for
    from test_kubelet import NODE, Cluster, ready

    with tempfile.TemporaryDirectory(prefix="tenet-bench-pods-") as folder:
        cluster = Cluster(pathlib.Path(folder), args.runtime)
        driver = None
        try:
            wait_for("the node to be ready", lambda: ready((cluster.get("node", NODE) or {}).get("status", {})))
            driver = containerd.Driver(cluster.cd.endpoint, program=f"{args.build}/bench/bench_drive_runtime")
            measure(args, cluster, Api(cluster, netns, wait_for), Bare(cluster, driver, containerd.IMAGE), run)
        finally:
            if driver:
                driver.close()
            cluster.stop()


if __name__ == "__main__":
    main()
