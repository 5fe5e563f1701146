# SPDX-License-Identifier: Apache-2.0
"""Container runtimes and what they hand over: host ports, bandwidth, chains; podman, containerd, and libcni's ways."""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import tarfile
import tempfile

import grpc
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
            if p["type"] != "portmap":  # Debian's 1.1.1 looks for IPv6 rules that it makes for IPv6 addresses only
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

    def remove(self):
        run(["ip", "netns", "del", self.netns], check=False)

    def ns(self, argv, **kw):
        return run(["ip", "netns", "exec", self.netns, *argv], **kw)

    def popen(self, argv, **kw):
        kw = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **kw}
        return subprocess.Popen(["ip", "netns", "exec", self.netns, *map(str, argv)], **kw)


@pytest.fixture
def box(own):
    """Makes namespaces; what is in them is detached and removed at the end."""
    made = []

    def make(name, project="red"):
        made.append(Box(own, name, project))
        return made[-1]
    yield make
    for b in made:
        with contextlib.suppress(AssertionError):
            Cni(own, configuration(own)).delete(b)
        b.remove()


@pytest.fixture
def cni(own):
    return Cni(own, configuration(own))


def pod_object(lab, name, project="red", node="node1", ports=(), annotations=None):
    lab.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": project, "annotations": annotations or {}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none", "ports": list(ports)}]}}))


def answer(ns, target, proto="tcp", source=0):
    """The address that a lib.Server at "HOST:PORT" saw, asked by 'ns(argv)' from that port; None: no answer."""
    code = PROBE.replace("s.settimeout(timeout)", f"s.bind(('', {source})); s.settimeout(timeout)")
    seen = ns(["/usr/bin/python3", "-c", code, proto, "1", target]).stdout.split()[1]
    return None if seen == "-" else seen


def host(lab, name):
    return lambda argv, **kw: lab.ns(name, argv, **kw)


def rules(lab, node="node1"):
    return lab.ns(node, ["nft", "--stateless", "list", "table", "ip", "tenet"]).stdout


# ---- host ports ----

def test_host_ports_of_the_object_lead_to_the_pod(own, cni, box):
    """From outside, another node, the node itself, its loopback, another pod of the project there, and the pod itself."""
    before = rules(own)
    pod_object(own, "web", ports=[{"containerPort": 80, "hostPort": 8080},
                                  {"containerPort": 53, "hostPort": 5353, "protocol": "UDP"},
                                  {"containerPort": 81}])
    web, other = cni.add(box("web")), cni.add(box("other"))
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


def test_datagrams_follow_a_host_port_to_its_next_pod(own, cni, box):
    """Also those of a client that goes on from the same port, of which the kernel remembers where it sent them."""
    runtime = {"portMappings": [{"hostPort": 5454, "containerPort": 54, "protocol": "udp"}]}
    target = f"{own.ip['node1']}:5454"
    for name in ("one", "two"):
        pod = cni.add(box(name), runtime)
        server = Server(pod.popen, "udp", 54)
        try:
            assert answer(host(own, "node2"), target, "udp", source=33333), name
        finally:
            server.stop()
        cni.delete(pod, runtime)


def test_host_port_that_another_pod_has_is_refused(own, cni, box):
    first, second = box("first"), box("second")
    ports = {"portMappings": [{"hostPort": 9090, "containerPort": 90, "protocol": "tcp"}]}
    cni.add(first, ports)
    flows, state = own.rules("node1"), rules(own)
    out = cni.refused(second, {"portMappings": [{"hostPort": 9090, "containerPort": 1, "protocol": "TCP",
                                                 "hostIP": own.ip["node1"]}]})
    assert out["code"] == 105 and "9090/tcp" in out["details"] and "red/first" in out["details"]
    assert "eth0" not in second.ns(["ip", "link"]).stdout
    assert (own.rules("node1"), rules(own)) == (flows, state)
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
            # The API itself refuses two that are equal; here one is for all addresses, the other for one of them.
            ("twice", {}, [{"containerPort": 1, "hostPort": 7},
                           {"containerPort": 2, "hostPort": 7, "hostIP": own.ip["node1"]}], "7/tcp")):
        pod_object(own, name, annotations=annotations, ports=ports)
        b = box(name)
        out = cni.refused(b)
        assert out["code"] == 106 and word in out["details"], out
        assert "eth0" not in b.ns(["ip", "link"]).stdout


# ---- bandwidth ----

@pytest.fixture(scope="module")
def shaping(own):
    """The kernel's token bucket, and the device by which the plug-in bandwidth limits what a pod sends."""
    name = f"tenet-{own.name}-probe"
    run(["ip", "netns", "add", name])
    try:
        for argv in (["tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "8mbit", "burst", "32k", "limit", "64k"],
                     ["ip", "-n", name, "link", "add", "probe0", "type", "ifb"]):
            r = run(argv, check=False)
            if r.returncode != 0:
                pytest.skip(f"this kernel lacks {argv[-1] if argv[0] == 'ip' else 'tbf'}: {r.stderr.strip()}")
    finally:
        run(["ip", "netns", "del", name])


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


def test_bandwidth_of_the_object_limits_the_pod(own, shaping, cni, box):
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
    for _ in range(20):  # The limit is off before the port is another's, or gone.
        cni.delete(cni.add(slow))
    assert queues(own) == 0
    # The port is used again, by a pod that has no limit.
    again = [cni.add(box(f"again-{i}")) for i in range(3)]
    assert all(rate(p, fast, 0.5) > 12 for p in again)


def test_bandwidth_that_the_runtime_hands_over_comes_first(own, shaping, cni, box):
    pod_object(own, "both", annotations={"kubernetes.io/egress-bandwidth": "1G"})
    b = cni.add(box("both"), {"bandwidth": {"egressRate": 8000000, "egressBurst": 2 ** 32 - 1}})
    assert 4 < rate(b, cni.add(box("peer"))) < 10


# ---- chains ----

def restart_with(lab, line, node="node1"):
    """The agent of 'node' with one more line in its configuration; returns what undoes it."""
    path = lab.folder(node) / "node-config.yaml"
    before = path.read_text()
    path.write_text(before + line)
    lab.cmd("node", "restart", node)

    def undo():
        path.write_text(before)
        lab.cmd("node", "restart", node)
    return undo


def links(lab):
    return lab.ns("node1", ["ip", "-o", "link"]).stdout


@pytest.fixture
def chained(own):
    undo = restart_with(own, "cniPlugins: [portmap, bandwidth]\n")
    yield Cni(own, configuration(own))
    undo()
    assert "capabilities" in configuration(own) and len(list(
        pathlib.Path(own.node("node1")["cniConfDir"]).iterdir())) == 1


def test_chain_in_the_configuration(own, shaping, chained, box):
    """Ports and limits are the business of the plug-ins behind ours, and of nobody else."""
    files = [p.name for p in pathlib.Path(own.node("node1")["cniConfDir"]).iterdir()]
    assert files == ["80-openshift-network.conflist"]
    assert [p["type"] for p in chained.plugins] == ["tenet-cni", "portmap", "bandwidth"]
    assert "capabilities" not in chained.plugins[0]
    before = (own.pod_links("node1"), own.rules("node1"))
    pod_object(own, "chained", ports=[{"containerPort": 80, "hostPort": 8088}],
               annotations={"kubernetes.io/egress-bandwidth": "8M"})
    runtime = {"portMappings": [{"hostPort": 8088, "containerPort": 80, "protocol": "tcp"}],
               "bandwidth": {"ingressRate": 8000000, "ingressBurst": 800000, "egressRate": 8000000, "egressBurst": 800000}}
    pod, peer = chained.add(box("chained"), runtime), chained.add(box("peer"))
    server = Server(pod.popen, "tcp", 80)
    try:
        assert "8088" not in rules(own)
        assert "8088" in own.ns("node1", ["iptables-save"]).stdout
        assert answer(host(own, "node2"), f"{own.ip['node1']}:8088") == own.ip["node2"]
        assert answer(peer.ns, f"{own.ip['node1']}:8088")
    finally:
        server.stop()
    assert 4 < rate(peer, pod) < 10
    assert 4 < rate(pod, peer) < 10
    assert rate(peer, chained.add(box("third")), 1) > 12
    chained.check(pod, runtime)
    own.cmd("node", "restart", "node1")
    chained.check(pod, runtime)
    remote = own.pod("red/chained-far", "node2")
    assert pod.ns(["ping", "-n", "-c", "1", "-W", "3", "-s", "1400", remote.ip]).returncode == 0
    own.delete_pod("red/chained-far")
    link = next(p for p in pod.result["interfaces"] if p["name"].startswith("veth"))["name"]
    assert f"tnbr{link[4:]}" in links(own)
    chained.delete(pod, runtime)
    assert link[4:] not in links(own) and "8088" not in own.ns("node1", ["iptables-save"]).stdout


# ---- runtimes ----

@pytest.fixture
def folder():
    """A short path: podman wants its own to be less than 50 characters."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="tenet-rt-"))
    yield path
    shutil.rmtree(path)


def needs_cgroups():
    """Containers need cgroups that can be made: a feature of the kernel and of where the tests run."""
    root = pathlib.Path("/sys/fs/cgroup")
    unified = (root / "cgroup.controllers").exists()
    probe = (root if unified else root / "pids") / f"tenet-probe-{os.getpid()}"
    try:
        if unified:  # refused in a container whose processes are at the root of its cgroups
            (root / "cgroup.subtree_control").write_text("+pids")
        probe.mkdir()
        probe.rmdir()
    except OSError as e:
        pytest.skip(f"no container can be run where no cgroup can be made: {e}")


def busybox_layer(folder):
    """A file system of one static program, as the tar file of an image's layer."""
    path = folder / "layer.tar"
    with tarfile.open(path, "w") as t:
        t.add(shutil.which("busybox"), "bin/busybox", filter=lambda i: setattr(i, "mode", 0o755) or i)
        for name in ("tmp", "proc", "sys", "dev", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            t.addfile(entry)
    return path


def write_conf(folder, plugins):
    folder.mkdir()
    (folder / "10-tenet.conflist").write_text(json.dumps({"cniVersion": "1.0.0", "name": "tenet", "plugins": plugins}))


def bin_dir(folder):
    """Where a runtime finds plug-ins: ours and Debian's."""
    folder.mkdir()
    for path in pathlib.Path(PLUGINS).iterdir():
        (folder / path.name).symlink_to(path)
    wrapper = folder / "tenet-cni"  # so that sanitizers report where the other programs do
    env = lablib.environment()
    wrapper.write_text("#!/bin/sh\n" + "".join(f"export {k}='{env[k]}'\n" for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS")) +
                       f"exec {lablib.CNI}\n")
    wrapper.chmod(0o755)
    return folder


def chain(lab, **extra):
    return [{"type": "tenet-cni", "socket": configuration(lab)["socket"], "chained": ["portmap", "bandwidth"], **extra},
            {"type": "portmap", "capabilities": {"portMappings": True}},
            {"type": "bandwidth", "capabilities": {"bandwidth": True}}]


def page(lab, where, target):
    r = lab.ns(where, ["curl", "-sS", "-m", "5", f"http://{target}/"], check=False)
    return r.stdout.strip() or None


def things(lab):
    """What attachments leave on a node: links, flows, queues, rules of ours and of portmap."""
    save = lab.ns("node1", ["iptables-save", "-t", "nat"]).stdout
    rules_of_pods = [r for r in lab.rules("node1") if "table=85" not in r]  # where a host port's answers are looked up for hours yet
    return (lab.pod_links("node1"), sorted(re.findall(r"\d+: ((?:tnbr|tnq|tni|bwp)[^@:]+)", links(lab))), rules_of_pods, queues(lab), rules(lab),
            re.findall(r"CNI-DN-\w+", save))


SERVE = "mkdir -p /tmp/w; echo hello >/tmp/w/index.html; exec /bin/busybox httpd -f -p 80 -h /tmp/w"


@pytest.mark.parametrize("how", ["chained", "alone"])
def test_podman(own, shaping, folder, how):
    """Containers of podman, which names no pods: the configuration says the project."""
    needs_cgroups()
    limits = {"ingressRate": 8000000, "ingressBurst": 800000, "egressRate": 8000000, "egressBurst": 800000}
    plugins = chain(own, project="red")
    if how == "alone":
        plugins = [{"type": "tenet-cni", "socket": plugins[0]["socket"], "project": "red",
                    "capabilities": {"portMappings": True, "bandwidth": True}}]
    else:
        plugins[2].update(limits)
    write_conf(folder / "net.d", plugins)
    (folder / "containers.conf").write_text(f"""
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[network]
network_backend = "cni"
network_config_dir = "{folder}/net.d"
cni_plugin_dirs = ["{bin_dir(folder / 'bin')}"]
default_network = "tenet"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
""")

    def podman(*args, **kw):
        return run(["nsenter", f"--net=/run/netns/{own.ns_name('node1')}", "podman", "--root", folder / "root", "--runroot",
                    folder / "run", "--tmpdir", folder / "tmp", "--storage-driver", "vfs", *args],
                   env={**lablib.environment(), "CONTAINERS_CONF": str(folder / "containers.conf"),
                        "XDG_CACHE_HOME": str(folder)}, **kw)
    before = things(own)
    remote = own.pod("red/remote", "node2")
    server = Server(remote.popen, "tcp", 7000)
    name = f"tenet-{own.name}"
    try:
        podman("import", busybox_layer(folder), "localhost/bb")
        podman("run", "-d", "--name", name, "-p", "8181:80", "localhost/bb", "/bin/busybox", "sh", "-c", SERVE)
        address = podman("exec", name, "/bin/busybox", "ip", "-4", "addr", "show", "eth0").stdout
        assert re.search(r"inet 10\.128\.0\.\d+/23", address), address
        seen = podman("exec", name, "/bin/busybox", "nc", "-w", "3", remote.ip, "7000").stdout
        assert seen in address and seen.startswith("10.128.0."), "a pod on another node"
        target = f"{own.ip['node1']}:8181"
        wait_for("the server in the container", lambda: page(own, "outside", target) == "hello")
        assert page(own, "node2", target) == "hello"
        assert page(own, "node1", "127.0.0.1:8181") == "hello"
        assert queues(own) == (2 if how == "chained" else 0)
        assert ("8181" in rules(own)) == (how == "alone")
        podman("rm", "-f", "-t", "0", name)
    finally:
        server.stop()
        podman("rm", "-f", "-a", "-t", "0", check=False)
        own.delete_pod("red/remote")
    assert things(own) == before
    assert not page(own, "node2", target)


class Message(bytes):
    """Just as much of protobuf's encoding as requests of CRI need: numbers, texts and messages."""

    @staticmethod
    def number(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def __new__(cls, **fields):
        """'fN': field N; a list is a repeated one."""
        out = b""
        for key, value in fields.items():
            for v in value if isinstance(value, list) else [value]:
                if isinstance(v, int):
                    out += cls.number(int(key[1:]) << 3) + cls.number(v)
                else:
                    v = v.encode() if isinstance(v, str) else v
                    out += cls.number(int(key[1:]) << 3 | 2) + cls.number(len(v)) + v
        return super().__new__(cls, out)

    @staticmethod
    def field(data, *path):
        """The first occurrence of a field, by numbers from the outermost in."""
        for want in path:
            data, rest = None, data
            while rest:
                numbers = []
                for _ in range(2):
                    shift = n = 0
                    while True:
                        byte, rest = rest[0], rest[1:]
                        n, shift = n | (byte & 127) << shift, shift + 7
                        if byte < 128:
                            break
                    numbers.append(n)
                value = numbers[1]
                if numbers[0] & 7 == 2:
                    value, rest = rest[:numbers[1]], rest[numbers[1]:]
                if numbers[0] >> 3 == want and data is None:
                    data = value
        return data


class Containerd:
    """A containerd of its own on node1, spoken to by CRI as kubelet does."""

    def __init__(self, lab, folder, plugins):
        self.lab, self.folder, self.socket = lab, folder, folder / "c.sock"
        write_conf(folder / "net.d", plugins)
        (folder / "config.toml").write_text(f"""
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
address = "{self.socket}"
[ttrpc]
address = "{folder}/t.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
disable_apparmor = true
disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{bin_dir(folder / 'bin')}"
conf_dir = "{folder}/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
""")
        self.log = open(folder / "log", "w+")
        # It keeps the namespace of a sandbox that it could not set up, and cannot stop it either: they go with its mounts.
        self.proc = subprocess.Popen(["nsenter", f"--net=/run/netns/{lab.ns_name('node1')}", "unshare", "-m", "sh", "-c",
                                      "mount -t tmpfs none /run/netns && exec containerd --config \"$1\"", "sh",
                                      str(folder / "config.toml")], stdout=self.log, stderr=self.log)
        wait_for("containerd", lambda: self.ctr("version", check=False).returncode == 0)
        self.channel = grpc.insecure_channel(f"unix:{self.socket}")
        self.ctr("images", "import", "--snapshotter", "native", self.image())

    def image(self):
        """One image is enough: the sandbox's own process serves a page, as a container of the pod would."""
        layer = busybox_layer(self.folder).read_bytes()
        config = json.dumps({
            "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"), "os": "linux",
            "config": {"Cmd": ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p 80 -h /etc"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        manifest = json.dumps([{"Config": name, "RepoTags": ["localhost/pause:1"], "Layers": ["l.tar"]}]).encode()
        with tarfile.open(self.folder / "image.tar", "w") as t:
            for file, data in ((name, config), ("l.tar", layer), ("manifest.json", manifest)):
                entry = tarfile.TarInfo(file)
                entry.size = len(data)
                t.addfile(entry, io.BytesIO(data))
        return self.folder / "image.tar"

    def ctr(self, *args, **kw):
        return run(["ctr", "-a", self.socket, "-n", "k8s.io", *args], **kw)

    def call(self, method, message):
        return self.channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")(bytes(message), timeout=60)

    def run_pod(self, name, ports=(), annotations=None):
        """Owned id and address of a pod's sandbox; 'ports' are (container port, host port)."""
        config = Message(f1=Message(f1=name, f2=secrets.token_hex(8), f3="red"), f2=name, f3=str(self.folder / "logs"),
                         f5=[Message(f2=c, f3=h) for c, h in ports],
                         f7=[Message(f1=k, f2=v) for k, v in (annotations or {}).items()], f8=Message())
        sandbox = Message.field(self.call("RunPodSandbox", Message(f1=config)), 1).decode()
        return sandbox, Message.field(self.call("PodSandboxStatus", Message(f1=sandbox)), 1, 5, 1).decode()

    def remove_pod(self, sandbox):
        self.call("StopPodSandbox", Message(f1=sandbox))
        self.call("RemovePodSandbox", Message(f1=sandbox))

    def stop(self):
        self.channel.close()
        self.proc.terminate()
        self.proc.wait(30)
        self.log.close()


@pytest.mark.parametrize("how", ["chained", "alone"])
def test_containerd(own, shaping, folder, how):
    """Sandboxes of CRI: the runtime hands ports and bandwidth over to whom the configuration gives the capability."""
    needs_cgroups()
    plugins = chain(own)
    if how == "alone":
        plugins = [configuration(own)]
    before = things(own)
    remote = own.pod("red/remote", "node2")
    containerd = Containerd(own, folder, plugins)
    sandbox = None
    try:
        sandbox, address = containerd.run_pod("web", [(80, 8282)], {"kubernetes.io/ingress-bandwidth": "8M",
                                                                    "kubernetes.io/egress-bandwidth": "8M"})
        assert address.startswith("10.128.0.")
        target = f"{own.ip['node1']}:8282"
        wait_for("the server in the sandbox", lambda: "404" in (page(own, "outside", target) or ""))
        assert page(own, "node2", target) and page(own, "node1", "127.0.0.1:8282")
        assert remote.ns(["curl", "-sS", "-m", "5", f"http://{address}/"]).stdout
        assert queues(own) == 2
        assert ("8282" in rules(own)) == (how == "alone")
        over, sandbox = sandbox, None
        containerd.remove_pod(over)
        assert things(own) == before
        if how == "alone":
            with pytest.raises(grpc.RpcError, match="1k-1P|ingress-bandwidth|unreasonably"):
                containerd.run_pod("odd", annotations={"kubernetes.io/ingress-bandwidth": "1"})
            assert things(own) == before
    finally:
        try:
            if sandbox:
                containerd.remove_pod(sandbox)
        finally:
            containerd.stop()
            own.delete_pod("red/remote")
