#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures streams out of a container: exec and port-forward through Tenet, beside the runtime's own streams.

A lab of one node runs a pod.  "exec" is a command that writes --size MB; "forward" is a port of the pod that sends them.  Each
is received by bench_transfer, a client of SPDY as kubectl is: through API server and kubelet, both HTTPS, and from the URL that
the runtime gives to a call of CRI, as crictl does it, without TLS.  They take turns.  Beside the time it reads how much the
resident memory of API server and kubelet grows at most, and that of containerd when it is asked directly, and the seconds of
processor time that API server and kubelet need.

usage: exec.py [--build build] [--rounds 5] [--size 1024]
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import urllib.parse

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORT = 8080
POD = "source"


def memory_kb(pid, key):
    return int(re.search(rf"{key}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watched:
    """Processor time and growth of the resident memory of processes, while a block runs."""

    def __init__(self, pids):
        self.pids = pids

    def __enter__(self):
        for pid in self.pids:
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
        self.before = {pid: (memory_kb(pid, "VmRSS"), cpu_seconds(pid)) for pid in self.pids}
        return self

    def __exit__(self, *_):
        self.grown_mb = sum(memory_kb(pid, "VmHWM") - self.before[pid][0] for pid in self.pids) / 1024
        self.seconds = sum(cpu_seconds(pid) - self.before[pid][1] for pid in self.pids)


class Streams:
    """A pod that writes zeros, and both ways to it."""

    def __init__(self, lab, run, args, driver):
        self.lab, self.run, self.args, self.cri = lab, run, args, driver
        self.bytes = args.size << 20
        node = lab.node("node1")
        self.ours, self.runtime = [lab.status()["masters"][0]["pid"], node["kubeletPid"]], [node["containerdPid"]]
        self.command = ["/bin/head", "-c", str(self.bytes), "/dev/zero"]
        self.sandbox, self.container = self.find()

    def find(self):
        sandbox = next(s for s in self.cri("list_sandboxes")["result"] if s["name"] == POD)["id"]
        return sandbox, next(c for c in self.cri("list_containers")["result"] if c["sandbox"] == sandbox)["id"]

    def transfer(self, run, pids, kind, source, path):
        """(seconds, MB of memory grown, seconds of processor time)"""
        with Watched(pids) as w:
            r = run([f"{self.args.build}/bench/bench_transfer", kind, source, path, str(self.bytes)], timeout=600)
        return int(r.stdout) / 1e9, w.grown_mb, w.seconds

    def by_api(self, kind, path):
        return self.transfer(self.run, self.ours, kind, self.lab.kubeconfig, f"/api/v1/namespaces/red/pods/{POD}/{path}")

    def exec(self):
        query = urllib.parse.urlencode([("stdout", "true"), ("stderr", "true"), *(("command", word) for word in self.command)])
        return self.by_api("exec", f"exec?{query}")

    def forward(self):
        return self.by_api("forward", f"portforward?ports={PORT}")

    def direct(self, kind, url):
        """The runtime's server listens in the node's network namespace alone."""
        parts = urllib.parse.urlsplit(url)
        return self.transfer(lambda *a, **kw: self.lab.ns("node1", *a, **kw), self.runtime, kind, f"http://{parts.netloc}", parts.path)

    def exec_directly(self):
        return self.direct("exec", self.cri("exec", of=self.container, cmd=self.command)["result"])

    def forward_directly(self):
        return self.direct("forward", self.cri("port_forward", of=self.sandbox, port=PORT)["result"])


def measure(streams, rounds):
    for name, ours, directly in (("exec", streams.exec, streams.exec_directly),
                                 ("port-forward", streams.forward, streams.forward_directly)):
        rows = [(ours(), directly()) for _ in range(rounds)]
        (took, grown, cpu), (d_took, d_grown, d_cpu) = ([statistics.median(v) for v in zip(*side)] for side in zip(*rows))
        print(f"{name}: {took:.2f} s, directly {d_took:.2f} s; memory grows by {grown:.1f} MB, containerd's directly by "
              f"{d_grown:.1f} MB; processor time {cpu:.2f} s, of containerd directly {d_cpu:.2f} s")
        result(f"{name}, 1 GB", took, "s", "directly", d_took, statistics.median(a[0] / b[0] for a, b in rows))
        result(f"{name}, growth of API server and kubelet", grown, "MB", "containerd, directly", d_grown)
        result(f"{name}, processor time of API server and kubelet", cpu, "s", "containerd, directly", d_cpu)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--size", type=int, default=1024, help="MB of a transfer")
    args = ap.parse_args()
    args.build = os.path.abspath(args.build)
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    import containerd
    from lab import Lab, run, wait_for

    lab = Lab("exec", nodes=1, containers=True, datapath="ebpf")
    driver = None
    try:
        lab.up()
        lab.project("red")
        # busybox's nc ends with its first client; -ll begins again.
        lab.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "namespace": "red"}, "spec": {"containers": [
                {"name": "c", "image": "localhost/busybox:1", "imagePullPolicy": "IfNotPresent", "command": [
                    "/bin/nc", "-ll", "-p", str(PORT), "-e", "/bin/head", "-c", str(args.size << 20), "/dev/zero"]}]}}))
        wait_for("the pod", lambda: lab.object("pod", POD, "-n", "red")["status"].get("phase") == "Running")
        driver = containerd.Driver(lab.node("node1")["runtimeEndpoint"], program=f"{args.build}/bench/bench_drive_runtime")
        driver.event(lambda e: e["event"] == "resync")  # it is connected
        measure(Streams(lab, run, args, driver), args.rounds)
    finally:
        if driver:
            driver.close()
        lab.down(check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
