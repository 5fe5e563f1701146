# SPDX-License-Identifier: Apache-2.0
"""Container runtimes and what they hand over: host ports, bandwidth, chains; podman, containerd, and libcni's ways."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import secrets
import socket
import subprocess
import time

import pytest

import lab as lablib
from lab import PROBE, Server, run, wait_for

PLUGINS = "/usr/lib/cni"


@pytest.fixture(scope="module")
def own(make_lab):
    lab = make_lab("rt", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    for project in ("red", "blue"):
        lab.project(project)
    lab.ip = {n["name"]: n["hostIP"] for n in lab.status()["nodes"]}
    yield lab
    lab.down(check=False)


def configuration(lab, node="node1"):
    return json.loads(next(pathlib.Path(lab.node(node)["cniConfDir"]).iterdir()).read_text())


class Cni:
    """A network configuration, or a chain of them, executed as libcni does it."""

    def __init__(self, lab, conf, node="node1"):
        self.lab, self.node = lab, node
        self.plugins = conf.get("plugins", [conf])
        self.head = {"cniVersion": conf["cniVersion"], "name": conf["name"]}

    def one(self, command, plugin, pod, runtime=None, prev=None, extra=None, check=True):
        wanted = {k: (runtime or {})[k] for k, on in plugin.get("capabilities", {}).items() if on and k in (runtime or {})}
        conf = {**{k: v for k, v in plugin.items() if k != "capabilities"}, **self.head, **(extra or {})}
        if wanted:
            conf["runtimeConfig"] = wanted
        if prev:
            conf["prevResult"] = prev
        program = lablib.CNI if plugin["type"] == "tenet-cni" else f"{PLUGINS}/{plugin['type']}"
        env = {k: v for k, v in lablib.environment().items() if not k.startswith("CNI_")}
        env.update(CNI_COMMAND=command, CNI_PATH=f"{os.path.dirname(lablib.CNI)}:{PLUGINS}")
        if pod:
            env.update(CNI_CONTAINERID=pod.id, CNI_NETNS=f"/run/netns/{pod.netns}", CNI_IFNAME="eth0",
                       CNI_ARGS=f"IgnoreUnknown=1;K8S_POD_NAMESPACE={pod.project};K8S_POD_NAME={pod.name}")
        r = run(["ip", "netns", "exec", self.lab.ns_name(self.node), program], check=False, input=json.dumps(conf), env=env)
        out = json.loads(r.stdout) if r.stdout.strip() else None
        if check:
            assert r.returncode == 0, (plugin["type"], out, r.stderr)
        return r.returncode, out

    def add(self, pod, runtime=None):
        prev = None
        for p in self.plugins:
            _, prev = self.one("ADD", p, pod, runtime, prev)
        pod.result, pod.ip = prev, prev["ips"][0]["address"].split("/")[0]
        return pod

    def refused(self, pod, runtime=None):
        status, out = self.one("ADD", self.plugins[0], pod, runtime, check=False)
        assert status == 1, out
        return out

    def check(self, pod, runtime=None):
        for p in self.plugins:
            self.one("CHECK", p, pod, runtime, pod.result)

    def delete(self, pod, runtime=None):
        for p in reversed(self.plugins):
            self.one("DEL", p, pod, runtime, pod.result)


class Box:
    """A pod's network namespace, without a container in it."""

    def __init__(self, lab, name, project="red"):
        self.lab, self.name, self.project, self.result = lab, name, project, None
        self.id = secrets.token_hex(32)
        self.netns = f"tenet-{lab.name}-rt-{self.id[:12]}"
        run(["ip", "netns", "add", self.netns])

    def ns(self, argv, **kw):
        return run(["ip", "netns", "exec", self.netns, *argv], **kw)

    def popen(self, argv, **kw):
        kw = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **kw}
        return subprocess.Popen(["ip", "netns", "exec", self.netns, *map(str, argv)], **kw)


@pytest.fixture
def box(own):
    """Makes namespaces; what is in them is detached and removed at the end."""
    made, conf = [], configuration(own)

    def make(name, project="red"):
        made.append(Box(own, name, project))
        return made[-1]
    yield make
    for b in made:
        Cni(own, conf).one("DEL", conf, b, check=False)
        run(["ip", "netns", "del", b.netns], check=False)


@pytest.fixture
def cni(own):
    return Cni(own, configuration(own))


def pod_object(lab, name, project="red", node="node1", ports=(), annotations=None):
    lab.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": project, "annotations": annotations or {}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none", "ports": list(ports)}]}}))


def answer(ns, target, proto="tcp"):
    """The address that a lib.Server at "HOST:PORT" saw, asked by 'ns(argv)'; None: no answer."""
    seen = ns(["/usr/bin/python3", "-c", PROBE, proto, "1", target]).stdout.split()[1]
    return None if seen == "-" else seen


def host(lab, name):
    return lambda argv, **kw: lab.ns(name, argv, **kw)


def rules(lab, node="node1"):
    return lab.ns(node, ["nft", "list", "table", "ip", "tenet"]).stdout


# ---- host ports ----

def test_host_ports_of_the_object_lead_to_the_pod(own, cni, box):
    """From outside, another node, the node itself, its loopback, another pod there, and the pod itself."""
    before = rules(own)
    pod_object(own, "web", ports=[{"containerPort": 80, "hostPort": 8080},
                                  {"containerPort": 53, "hostPort": 5353, "protocol": "UDP"},
                                  {"containerPort": 81}])
    web, other = cni.add(box("web")), cni.add(box("other", "blue"))
    servers = [Server(web.popen, "tcp", 80), Server(web.popen, "udp", 53)]
    target = f"{own.ip['node1']}:8080"
    try:
        assert answer(host(own, "outside"), target)
        assert answer(host(own, "node2"), target) == own.ip["node2"]
        assert answer(host(own, "node1"), target)
        assert answer(host(own, "node1"), "127.0.0.1:8080")
        assert answer(other.ns, target) and answer(web.ns, target)
        assert answer(host(own, "outside"), f"{own.ip['node1']}:5353", "udp")
        assert not answer(host(own, "node2"), f"{own.ip['node1']}:81")
        own.cmd("node", "restart", "node1")
        assert answer(host(own, "node2"), target), "after a restart of the agent"
        cni.check(web)
        own.ns("node1", ["nft", "flush", "ruleset"])
        wait_for("the rules to be put back", lambda: answer(host(own, "node2"), target))
    finally:
        for s in servers:
            s.stop()
    cni.delete(web)
    assert "8080" not in rules(own) and rules(own) == before
    assert not answer(host(own, "node2"), target)


def test_host_port_that_another_pod_has_is_refused(own, cni, box):
    first, second = box("first"), box("second")
    ports = {"portMappings": [{"hostPort": 9090, "containerPort": 90, "protocol": "tcp"}]}
    cni.add(first, ports)
    flows, state = own.flows("node1"), rules(own)
    out = cni.refused(second, {"portMappings": [{"hostPort": 9090, "containerPort": 1, "protocol": "TCP",
                                                 "hostIP": own.ip["node1"]}]})
    assert out["code"] == 105 and "9090/tcp" in out["details"] and "red/first" in out["details"]
    assert "eth0" not in second.ns(["ip", "link"]).stdout
    assert (own.flows("node1"), rules(own)) == (flows, state)
    out = cni.refused(second, {"portMappings": [{"hostPort": 4789, "containerPort": 1, "protocol": "udp"}]})
    assert out["code"] == 105 and "VXLAN" in out["details"]
    cni.add(second, {"portMappings": [{"hostPort": 9090, "containerPort": 1, "protocol": "udp"}]})
    cni.delete(first)
    assert "tcp dport 9090" not in rules(own) and "udp dport 9090" in rules(own)
    # What a runtime forgets goes with GC.
    conf = configuration(own)
    cni.head["cniVersion"] = "1.1.0"
    cni.one("GC", conf, None, extra={"cni.dev/valid-attachments": []})
    assert "9090" not in rules(own)


def test_mistakes_in_the_object_are_refused_by_name(own, cni, box):
    for name, annotations, ports, word in (
            ("odd-rate", {"kubernetes.io/ingress-bandwidth": "fast"}, (), "kubernetes.io/ingress-bandwidth"),
            ("low-rate", {"kubernetes.io/egress-bandwidth": "10"}, (), "1k-1P"),
            ("twice", {}, [{"containerPort": 1, "hostPort": 7}, {"containerPort": 2, "hostPort": 7}], "7/tcp")):
        pod_object(own, name, annotations=annotations, ports=ports)
        b = box(name)
        out = cni.refused(b)
        assert out["code"] == 106 and word in out["details"], out
        assert "eth0" not in b.ns(["ip", "link"]).stdout


# ---- bandwidth ----

SINK = """
import socket, sys, time
s = socket.create_server(("0.0.0.0", 5001))
print("ready", flush=True)
while True:
    c, _ = s.accept()
    total, begin = 0, None
    while data := c.recv(65536):
        begin = begin or time.monotonic()
        total += len(data)
        end = time.monotonic()
    print(total * 8 / max(end - begin, 0.001) / 1e6, flush=True)
"""
SOURCE = """
import socket, sys, time
c = socket.create_connection((sys.argv[1], 5001))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    c.send(bytes(16384))
"""


def rate(source, sink, seconds=4):
    """Mbit/s of one TCP connection from pod to pod."""
    proc = sink.popen(["/usr/bin/python3", "-c", SINK])
    try:
        assert proc.stdout.readline().strip() == "ready"
        source.ns(["/usr/bin/python3", "-c", SOURCE, sink.ip, str(seconds)])
        return float(proc.stdout.readline())
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()


def queues(lab):
    return lab.ns("node1", ["tc", "qdisc", "show"]).stdout.count(" tbf ")


def test_bandwidth_of_the_object_limits_the_pod(own, cni, box):
    pod_object(own, "slow", annotations={"kubernetes.io/ingress-bandwidth": "8M", "kubernetes.io/egress-bandwidth": "8M"})
    slow, fast = cni.add(box("slow")), cni.add(box("fast"))
    assert 4 < rate(fast, slow) < 10
    assert 4 < rate(slow, fast) < 10
    free = cni.add(box("free"))
    assert rate(fast, free, 1) > 12, "pods without a limit have none"
    cni.check(slow)
    own.cmd("node", "restart", "node1")
    cni.check(slow)
    assert cni.add(slow).ip == slow.ip and queues(own) == 2
    link = slow.result["interfaces"][0]["name"]
    own.ns("node1", ["tc", "qdisc", "del", "dev", link, "root"])
    status, out = cni.one("CHECK", cni.plugins[0], slow, prev=slow.result, check=False)
    assert status == 1 and "8000000 bit/s" in out["details"]
    cni.delete(slow)
    assert queues(own) == 0
    # The port is used again, by a pod that has no limit.
    again = [cni.add(box(f"again-{i}")) for i in range(3)]
    assert all(rate(p, fast, 0.5) > 12 for p in again)


def test_bandwidth_that_the_runtime_hands_over_comes_first(own, cni, box):
    pod_object(own, "both", annotations={"kubernetes.io/egress-bandwidth": "1G"})
    b = cni.add(box("both"), {"bandwidth": {"egressRate": 8000000, "egressBurst": 2 ** 32 - 1}})
    assert 4 < rate(b, cni.add(box("peer"))) < 10
