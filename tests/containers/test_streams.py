# SPDX-License-Identifier: Apache-2.0
"""exec, attach, port-forward, cp and logs: kubectl and Python's client, `tenet master`, the kubelet's server, a real runtime."""
import base64
import contextlib
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tarfile
import tempfile
import threading
import time

import grpc
import pytest

import containerd as containerdlib
import lab as lablib
import netns
from lab import TENET, run, wait_for
from test_runtimes import Message
from test_tls import make_pki
from wire_of_proto import TYPE, field, fields, opened

NODE_IP = "10.245.7.2"
SERVE = lablib.BUILD / "tests/unit/kubelet/serve_kubelet"
# The pauses: each output has a pipe of its own.
SCRIPT = "trap 'exit 0' TERM; echo out-1; sleep 0.2; echo err-1 >&2; sleep 0.2; echo out-2; while :; do sleep 0.1; done"


class World:
    """A network namespace with a master, a runtime, a kubelet's server, and one pod on it."""

    def __init__(self, folder):
        self.folder = folder
        self.ns = f"tenet-streams-{secrets.token_hex(4)}"
        self.procs, self.table, self.sandboxes, self.runtime = [], {}, [], None
        run(["ip", "netns", "add", self.ns])
        self.inside("ip", "link", "set", "lo", "up")
        self.inside("ip", "link", "add", "node0", "type", "veth", "peer", "name", "node1")
        self.inside("ip", "link", "set", "node1", "up")
        self.inside("ip", "addr", "add", f"{NODE_IP}/24", "dev", "node0")
        self.inside("ip", "link", "set", "node0", "up")

    def argv(self, *argv):
        return ["nsenter", f"--net=/run/netns/{self.ns}", *map(str, argv)]

    def environment(self):
        return {**lablib.environment(), "HOME": str(self.folder)}

    def inside(self, *argv, **kw):
        kw.setdefault("env", self.environment())
        return run(self.argv(*argv), **kw)

    def popen(self, *argv, **kw):
        kw.setdefault("env", self.environment())
        return subprocess.Popen(self.argv(*argv), **kw)

    def daemon(self, name, *argv, ready):
        log = self.folder / f"{name}.log"
        with open(log, "w") as out:
            proc = self.popen(*argv, stdout=out, stderr=out)
        self.procs.append(proc)

        def look():
            assert proc.poll() is None, log.read_text()
            return re.search(ready, log.read_text())
        return wait_for(name, look)

    # ---- the parts ----

    def start_master(self):
        conf = {"servingInfo": {"bindAddress": "127.0.0.1:0", "pkiDir": str(self.folder / "pki")},
                "kubernetesMasterConfig": {"masterNodes": ["n1"]},
                "auditConfig": {"auditFilePath": str(self.folder / "audit.log")},
                "storage": {"backend": "memory"}}
        (self.folder / "master.yaml").write_text(json.dumps(conf))
        m = self.daemon("master", TENET, "master", "--config", self.folder / "master.yaml", ready=r"(?s)address=127\.0\.0\.1:(\d+).* ready")
        self.port = int(m[1])
        self.pki = self.folder / "pki"
        self.ca = str(self.pki / "ca.crt"), str(self.pki / "ca.key")
        self.kubeconfig = self.pki / "admin.kubeconfig"

    def user(self, name, *groups):
        """kubeconfig of a user."""
        subject = "".join(f"/O={g}" for g in groups) + f"/CN={name}"
        crt, key = make_pki(self.folder, f"user-{name.replace(':', '-')}", subject, ca=self.ca)
        file = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        file.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": self.ca[0]}}],
            "users": [{"name": "u", "user": {"client-certificate": crt, "client-key": key}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return file

    def start_runtime(self):
        folder = self.folder / self.ns
        folder.mkdir()
        self.runtime = containerdlib.start(folder, netns=f"/run/netns/{self.ns}")
        self.socket = self.runtime.socket
        self.channel = grpc.insecure_channel(f"unix:{self.socket}")
        wait_for("CRI", self.is_serving)
        self.runtime.load(self.image())

    def is_serving(self):
        try:
            return self.cri("Version", Message())
        except grpc.RpcError:
            return None

    def image(self):
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as t:
            t.add(shutil.which("busybox"), "bin/busybox")
            for name in ("sh", "cat", "tar", "sleep", "dd", "head", "stty", "seq", "echo", "md5sum", "wc", "ps", "nc", "test", "yes", "true"):
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                t.addfile(link)
            for folder in ("tmp", "proc", "dev", "etc"):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o777
                t.addfile(entry)
        data = layer.getvalue()
        config = json.dumps({
            "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"), "os": "linux",
            "config": {"Cmd": ["/bin/busybox", "sleep", "100000"], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        manifest = json.dumps([{"Config": name, "RepoTags": ["localhost/box:1"], "Layers": ["l.tar"]}]).encode()
        with tarfile.open(self.folder / "image.tar", "w") as t:
            for file, content in ((name, config), ("l.tar", data), ("manifest.json", manifest)):
                entry = tarfile.TarInfo(file)
                entry.size = len(content)
                t.addfile(entry, io.BytesIO(content))
        return self.folder / "image.tar"

    def cri(self, method, message):
        return self.channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")(bytes(message), timeout=120)

    def start_node(self):
        node = self.user("system:node:n1", "system:nodes")
        (self.folder / "pki-node").mkdir()
        (self.folder / "table").write_text("{}")
        (self.folder / "logs").mkdir()
        m = self.daemon("kubelet", SERVE, f"{NODE_IP}:0", "n1", node, self.folder / "pki-node", "-", self.ca[0],
                        f"unix://{self.socket}", self.folder / "table", self.folder / "logs", ready=r"port (\d+)")
        self.node_port = int(m[1])
        self.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        self.node_status(NODE_IP, self.node_port)
        wait_for("the serving certificate", lambda: "certificate issued" in (self.folder / "kubelet.log").read_text())

    def node_status(self, address, port, name="n1"):
        return self.api("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}})

    # ---- pods ----

    def write_table(self):
        file = self.folder / "table.new"
        file.write_text(json.dumps(self.table))
        file.rename(self.folder / "table")

    def pod(self, name, namespace="red", node="n1", **containers):
        """A pod with these containers: {"command": [...], "tty", "stdin"}."""
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": {
            "nodeName": node, "containers": [{"name": c, "image": "localhost/box:1"} for c in containers]}})
        uid = self.kubectl("get", "pod", "-n", namespace, name, "-o", "jsonpath={.metadata.uid}").stdout
        logs = self.folder / "logs" / f"{namespace}_{name}_{uid}"
        security = Message(f1=Message(f1=2, f2=1, f3=0))
        config = Message(f1=Message(f1=name, f2=uid, f3=namespace), f3=str(logs), f8=Message(f1=f"/{self.ns}", f2=security))
        sandbox = Message.field(self.cri("RunPodSandbox", Message(f1=config)), 1).decode()
        self.sandboxes.append(sandbox)
        entry = self.table[f"{namespace}/{name}"] = {"uid": uid, "sandbox": sandbox, "containers": {}}
        for c, spec in containers.items():
            (logs / c).mkdir(parents=True)
            message = Message(f1=Message(f1=c), f2=Message(f1="localhost/box:1"), f3=["/bin/busybox"], f4=spec["command"], f5="/tmp",
                              f11=f"{c}/0.log", f12=int(spec.get("stdin", False)), f14=int(spec.get("tty", False)),
                              f15=Message(f2=Message(f3=Message(f1=2, f2=1, f3=0))))
            made = Message.field(self.cri("CreateContainer", Message(f1=sandbox, f2=message, f3=config)), 1).decode()
            self.cri("StartContainer", Message(f1=made))
            entry["containers"][c] = {"id": made, "running": True, "log": f"{logs}/{c}/0.log", "tty": spec.get("tty", False)}
        self.write_table()
        self.api("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {"phase": "Running"}})
        return entry

    # ---- clients ----

    def kubectl_argv(self, *args, user=None):
        return ["kubectl", "--kubeconfig", user or self.kubeconfig, *args]

    def kubectl(self, *args, user=None, **kw):
        return self.inside(*self.kubectl_argv(*args, user=user), **kw)

    def create(self, obj):
        self.kubectl("create", "-f", "-", input=json.dumps(obj))

    def api(self, method, path, body=None, port=None, user="admin", headers=(), host="127.0.0.1", into=None):
        """Status and text, with a client certificate; the text goes into a file, if one is named."""
        crt, key = self.folder / f"user-{user}.crt", self.folder / f"user-{user}.key"
        if not crt.exists():
            self.user(user, "system:masters")
        args = ["curl", "-sS", "--cacert", self.ca[0], "--cert", crt, "--key", key, "-X", method, "-w", "\n%{http_code}",
                "-H", "Content-Type: application/merge-patch+json", "--http1.1"]
        for h in headers:
            args += ["-H", h]
        if body is not None:
            args += ["-d", json.dumps(body)]
        if into:
            args += ["-o", into]
        text, _, code = self.inside(*args, f"https://{host}:{port or self.port}{path}").stdout.rpartition("\n")
        return int(code), text

    def python(self, code, **kw):
        head = f"""
import kubernetes, sys, time, json
from kubernetes.stream import stream, portforward
kubernetes.config.load_kube_config({str(self.kubeconfig)!r})
api = kubernetes.client.CoreV1Api()
"""
        return self.inside("/usr/bin/python3", "-c", head + code, **kw)

    def raw_tls(self, user="admin"):
        """A TLS connection to the API, made within the namespace."""
        if not (self.folder / f"user-{user}.crt").exists():
            self.user(user, "system:masters")
        sock = netns.inside(f"/run/netns/{self.ns}", lambda: socket.create_connection(("127.0.0.1", self.port), timeout=30))
        context = ssl.create_default_context(cafile=self.ca[0])
        context.load_cert_chain(self.folder / f"user-{user}.crt", self.folder / f"user-{user}.key")
        return context.wrap_socket(sock, server_hostname="127.0.0.1")

    def close(self):
        with contextlib.suppress(Exception):
            for s in self.sandboxes:
                self.cri("StopPodSandbox", Message(f1=s))
                self.cri("RemovePodSandbox", Message(f1=s))
            self.channel.close()
        for p in reversed(self.procs):
            p.terminate()
        for p in reversed(self.procs):
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait(20)
        if self.runtime:
            self.runtime.stop()
        run(["ip", "netns", "del", self.ns], check=False)


@pytest.fixture(scope="module")
def world():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tenet-streams-"))
    w = World(folder)
    try:
        w.start_master()
        w.start_runtime()
        w.start_node()
        w.kubectl("create", "namespace", "red")
        w.kubectl("create", "namespace", "blue")
        wait_for("the service account", lambda: w.kubectl("get", "sa", "-n", "red", "default", check=False).returncode == 0)
        wait_for("the service account", lambda: w.kubectl("get", "sa", "-n", "blue", "default", check=False).returncode == 0)
        w.pod("web", a={"command": ["sh", "-c", SCRIPT]}, b={"command": ["sleep", "100000"]})
        w.pod("one", c={"command": ["sh", "-c", SCRIPT]})
        wait_for("the output", lambda: w.kubectl("logs", "-n", "red", "one").stdout.count("\n") == 3)
        yield w
    finally:
        w.close()
        assert not run(["sh", "-c", f"grep -c {folder} /proc/self/mounts || true"]).stdout.strip().strip("0")
        shutil.rmtree(folder, ignore_errors=True)


# ---- exec ----

def test_exec_passes_output_errors_and_the_exit_code(world):
    r = world.kubectl("exec", "-n", "red", "one", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (r.returncode, r.stdout, "err\n" in r.stderr) == (7, "out\n", True), r
    assert world.kubectl("exec", "-n", "red", "one", "--", "echo", "a b", "$x").stdout == "a b $x\n"


def test_python_client_gets_the_exit_code(world):
    out = world.python("""
r = stream(api.connect_get_namespaced_pod_exec, "one", "red", command=["sh", "-c", "echo out; echo err >&2; exit 7"],
           stdin=False, stdout=True, stderr=True, tty=False, _preload_content=False)
r.run_forever(timeout=20)
print(json.dumps([r.read_stdout(), r.read_stderr(), r.returncode]))
""").stdout
    assert json.loads(out) == ["out\n", "err\n", 7]


TRANSPORTS = {"websocket": {}, "spdy": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}}


@pytest.fixture(params=TRANSPORTS)
def transport(request, world):
    return {**world.environment(), **TRANSPORTS[request.param]}


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_codes_over_both_transports(world, transport, code):
    r = world.kubectl("exec", "-n", "red", "one", "--", "sh", "-c", f"echo out; exit {code}", check=False, env=transport)
    assert (r.returncode, r.stdout) == (code, "out\n"), r.stderr


def test_no_exit_code_is_lost(world, transport):
    """An end that comes close behind the last output."""
    for i in range(25):
        r = world.kubectl("exec", "-n", "red", "one", "--", "sh", "-c", f"echo {i}; echo e{i} >&2; exit 9", check=False, env=transport)
        assert (r.returncode, r.stdout) == (9, f"{i}\n") and f"e{i}\n" in r.stderr


def test_large_output_is_complete(world, transport):
    """100 MB, as fast as the process writes them and with a slow reader behind."""
    argv = world.kubectl_argv("exec", "-n", "red", "one", "--", "head", "-c", "104857600", "/dev/zero")
    p = world.popen(*argv, stdout=subprocess.PIPE, env=transport)
    n, digest = 0, hashlib.sha256()
    while block := p.stdout.read(1 << 20):
        n += len(block)
        digest.update(block)
        if n == 10 << 20:
            time.sleep(1)
    assert p.wait(60) == 0 and n == 104857600
    assert digest.hexdigest() == hashlib.sha256(bytes(104857600)).hexdigest()


def test_memory_is_bounded_while_a_client_does_not_read(world, transport):
    master, kubelet = world.procs[0].pid, world.procs[1].pid

    def rss(pid):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
    before = {pid: rss(pid) for pid in (master, kubelet)}
    p = world.popen(*world.kubectl_argv("exec", "-n", "red", "one", "--", "head", "-c", "209715200", "/dev/zero"),
                    stdout=subprocess.PIPE, env=transport)
    assert p.stdout.read(65536)
    time.sleep(3)  # the time in which nothing is read
    grown = {pid: rss(pid) - before[pid] for pid in before}
    p.kill()
    p.wait()
    assert all(g < 16384 for g in grown.values()), grown


def test_input_reaches_the_process_up_to_its_end(world, transport):
    data = os.urandom(5 << 20)
    p = world.popen(*world.kubectl_argv("exec", "-i", "-n", "red", "one", "--", "md5sum"), stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, env=transport)
    out, _ = p.communicate(data, timeout=60)
    assert p.returncode == 0 and out.decode().split()[0] == hashlib.md5(data).hexdigest()


def test_terminal_with_its_size(world, transport):
    import fcntl
    import pty
    import termios
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    p = world.popen(*world.kubectl_argv("exec", "-it", "-n", "red", "one", "--", "sh"), stdin=follower, stdout=follower,
                    stderr=follower, env=transport, start_new_session=True)
    os.close(follower)
    seen = b""

    def expect(text):
        nonlocal seen
        end = time.monotonic() + 30
        while text not in seen:
            assert time.monotonic() < end, seen
            with contextlib.suppress(OSError):
                seen += os.read(leader, 4096)

    def size_is(text):
        mark = secrets.token_hex(4)
        os.write(leader, f"stty size; echo {mark[:4]}''{mark[4:]}\n".encode())
        expect(mark.encode())
        return text in seen
    wait_for("the terminal's size", lambda: size_is(b"33 101"))
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 77, 0, 0))
    p.send_signal(signal.SIGWINCH)
    wait_for("its change", lambda: size_is(b"44 77"))
    os.write(leader, b"exit 5\n")
    assert p.wait(30) == 5
    os.close(leader)


def test_process_sees_the_end_of_its_input_when_the_client_is_killed(world, transport):
    mark = secrets.token_hex(6)
    p = world.popen(*world.kubectl_argv("exec", "-i", "-n", "red", "one", "--", "sh", "-c", f"cat >/dev/null; echo {mark}; : {mark}"),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=transport)

    def runs():
        return subprocess.run(["pgrep", "-f", f"^sh -c cat .*{mark}"], stdout=subprocess.DEVNULL).returncode == 0
    wait_for("the process", runs)
    p.kill()
    p.wait()
    wait_for("the process to end", lambda: not runs())


def oauth_token(world, **spec):
    """A token of the administrator sue: its kubeconfig, and the path of its object."""
    text = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    name = "sha256~" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    if world.kubectl("get", "users.user.openshift.io", "sue", check=False).returncode:
        world.create({"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": {"name": "sue"}})
        world.create({"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthClient", "metadata": {"name": "streams"}, "grantMethod": "auto"})
        world.kubectl("create", "rolebinding", "sue", "-n", "red", "--clusterrole=cluster-admin", "--user=sue")
    uid = world.kubectl("get", "users.user.openshift.io", "sue", "-o", "jsonpath={.metadata.uid}").stdout
    world.create({"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthAccessToken", "metadata": {"name": name}, "userName": "sue",
                  "userUID": uid, "clientName": "streams", "redirectURI": "https://c/", "scopes": ["user:full"], "expiresIn": 3600, **spec})
    file = world.folder / f"{name}.kubeconfig"
    file.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{world.port}", "certificate-authority": world.ca[0]}}],
        "users": [{"name": "u", "user": {"token": f"sha256~{text}"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
    return file, f"/apis/oauth.openshift.io/v1/oauthaccesstokens/{name}"


@pytest.mark.parametrize("end", ["deleted", "expired"])
def test_streams_end_with_their_token(world, transport, end):
    """exec and logs by an OAuth token: the client and the process in the container see the end when the token is gone."""
    mark = secrets.token_hex(6)
    user, path = oauth_token(world, **({"expiresIn": 8} if end == "expired" else {}))
    exec_ = world.popen(*world.kubectl_argv("exec", "-i", "-n", "red", "one", "--", "sh", "-c", f"echo begun; cat; : {mark}", user=user),
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=transport)
    logs = world.popen(*world.kubectl_argv("logs", "-f", "-n", "red", "one", user=user), stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, env=transport)
    assert exec_.stdout.readline() == b"begun\n" and logs.stdout.readline()

    def runs():
        return subprocess.run(["pgrep", "-f", f"^sh -c echo begun; cat.*{mark}"], stdout=subprocess.DEVNULL).returncode == 0
    assert runs()
    if end == "deleted":
        assert exec_.poll() is None and logs.poll() is None
        assert world.api("DELETE", path)[0] == 200
    wait_for("the streams to end", lambda: exec_.poll() is not None and logs.poll() is not None)
    wait_for("the process to end", lambda: not runs())
    exec_.stdin.close()


def test_attach_to_a_container_with_input(world, transport):
    name = f"att-{secrets.token_hex(3)}"
    world.pod(name, c={"command": ["sh", "-c", "while read x; do echo got $x; done"], "stdin": True})
    p = world.popen(*world.kubectl_argv("attach", "-i", "-n", "red", name, "-c", "c"), stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=transport)
    p.stdin.write(b"hello\n")
    p.stdin.flush()
    seen = b""
    while b"got hello\n" not in seen:
        block = os.read(p.stdout.fileno(), 4096)
        assert block, seen
        seen += block
    p.kill()
    p.wait()


def test_errors_of_exec_say_what_to_do(world):
    for args, text in [(("web", "--", "true"), None),
                       (("one", "-c", "nothing", "--", "true"), "container nothing is not valid for pod one"),
                       (("none", "--", "true"), 'pods "none" not found'),
                       (("one", "--", "/no/such/program"), "no such file")]:
        r = world.kubectl("exec", "-n", "red", *args, check=False)
        if text:
            assert r.returncode != 0 and text in r.stderr, (args, r.stderr)
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "unbound", "namespace": "red"},
                  "spec": {"containers": [{"name": "c", "image": "i"}]}})
    r = world.kubectl("exec", "-n", "red", "unbound", "--", "true", check=False)
    assert "pod unbound does not have a host assigned" in r.stderr
    assert world.kubectl("logs", "-n", "red", "unbound").stdout == ""
    status, text = world.api("POST", "/api/v1/namespaces/red/pods/web/exec?command=true&stdout=true")
    assert (status, json.loads(text)["message"]) == (
        400, "a container name must be specified for pod web, choose one of: [a b]")
    status, text = world.api("POST", "/api/v1/namespaces/red/pods/one/exec?command=true&stdout=true")
    assert status == 400 and "Upgrade request required" in text
    status, text = world.api("POST", "/api/v1/namespaces/red/pods/one/exec?stdout=true")
    assert status == 422 and "you must specify a command" in text


def test_cp_both_ways(world, transport):
    data = os.urandom(3 << 20)
    (world.folder / "up").mkdir(exist_ok=True)
    (world.folder / "up" / "file").write_bytes(data)
    world.kubectl("cp", str(world.folder / "up"), "red/one:/tmp/here", env=transport)
    shutil.rmtree(world.folder / "down", ignore_errors=True)
    world.kubectl("cp", "red/one:/tmp/here", str(world.folder / "down"), env=transport)
    assert (world.folder / "down" / "file").read_bytes() == data
    world.kubectl("exec", "-n", "red", "one", "--", "/bin/busybox", "rm", "-r", "/tmp/here")


# ---- logs ----

def test_logs_and_their_options(world):
    def logs(*args, **kw):
        return world.kubectl("logs", "-n", "red", *args, **kw)
    assert logs("one").stdout.splitlines() == ["out-1", "err-1", "out-2"]
    assert logs("one", "--tail=1").stdout == "out-2\n" and logs("one", "--tail=0").stdout == ""
    assert logs("one", "--limit-bytes=8").stdout == "out-1\ner"
    stamped = logs("one", "--timestamps").stdout.splitlines()
    assert [line.split(" ", 1)[1] for line in stamped] == ["out-1", "err-1", "out-2"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ", line) for line in stamped)
    assert logs("one", "--since=1h").stdout.count("\n") == 3
    assert logs("one", f"--since-time={time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 60))}").stdout == ""
    r = logs("one", "--previous", check=False)
    assert 'previous terminated container "c" in pod "one" not found' in r.stderr
    status, text = world.api("GET", "/api/v1/namespaces/red/pods/web/log")
    assert status == 400 and "a container name must be specified for pod web, choose one of: [a b]" in text
    assert logs("web", "-c", "a", "--tail=1").stdout == "out-2\n"
    status, text = world.api("GET", "/api/v1/namespaces/red/pods/one/log?tailLines=-1")
    assert status == 422 and "must be greater than or equal to 0" in text
    status, text = world.api("GET", "/api/v1/namespaces/red/pods/one/log?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z")
    assert status == 422 and "at most one of" in text
    assert world.python('print(api.read_namespaced_pod_log("one", "red"), end="")').stdout.count("\n") == 3


@pytest.fixture
def written(world):
    """A pod of the table alone, whose log a test writes."""
    name = f"log-{secrets.token_hex(3)}"
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "red"},
                  "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    folder = world.folder / "logs" / name
    folder.mkdir()
    (folder / "0.log").write_text("")
    world.table[f"red/{name}"] = {"uid": "u", "sandbox": "", "containers": {
        "c": {"id": "x", "running": True, "log": str(folder / "0.log")}}}
    world.write_table()
    return name, folder


def line(text, tag="F", stream="stdout", stamp="2026-11-23T10:00:00.000000001Z"):
    return f"{stamp} {stream} {tag} {text}\n"


def test_lines_of_rotated_files_are_read(world, written):
    name, folder = written
    with gzip.open(folder / "0.log.20261123-100000.gz", "wt") as f:
        f.writelines(line(f"a{i}") for i in range(1000))
    (folder / "0.log.20261123-101000").write_text("".join(line(f"b{i}") for i in range(1000)))
    (folder / "0.log").write_text(line("long ", "P") + line("line") + "".join(line(f"c{i}") for i in range(10)))
    want = [f"a{i}" for i in range(1000)] + [f"b{i}" for i in range(1000)] + ["long line"] + [f"c{i}" for i in range(10)]
    assert world.kubectl("logs", "-n", "red", name).stdout.splitlines() == want
    for n in (3, 500, 1500, 5000):
        seen = world.kubectl("logs", "-n", "red", name, f"--tail={n}").stdout.splitlines()
        # The two parts of the long line count as two, as in Kubernetes.
        assert seen == want[-n if n < 11 else -(n - 1):][-len(want):], n


def test_follow_loses_nothing_when_files_are_rotated(world, written):
    name, folder = written
    p = world.popen(*world.kubectl_argv("logs", "-f", "-n", "red", name), stdout=subprocess.PIPE, text=True)
    total, done = 20000, threading.Event()

    def write():
        f = open(folder / "0.log", "a")
        for i in range(total):
            f.write(line(f"n{i}"))
            if i % 2500 == 2499:
                # As a runtime: what comes before it has opened the new file goes to the renamed one.
                rotated = folder / f"0.log.20261123-1{i:07d}"
                (folder / "0.log").rename(rotated)
                f.write(line(f"late{i}"))
                new = open(folder / "0.log", "a")
                f.flush()
                f.close()
                f = new
                if i % 5000 == 4999:
                    with gzip.open(f"{rotated}.tmp", "wt") as z:
                        z.write(rotated.read_text())
                    pathlib.Path(f"{rotated}.tmp").rename(f"{rotated}.gz")
                    rotated.unlink()
                time.sleep(0.3)
        f.close()
        done.set()
    writer = threading.Thread(target=write)
    writer.start()
    seen = [p.stdout.readline().strip() for _ in range(total + total // 2500)]
    writer.join()
    assert [s for s in seen if s.startswith("n")] == [f"n{i}" for i in range(total)]
    assert sum(s.startswith("late") for s in seen) == total // 2500
    world.table[f"red/{name}"]["containers"]["c"]["running"] = False
    world.write_table()
    assert p.stdout.read() == "" and p.wait(30) == 0, "the end of the container ends the log"


def test_previous_and_waiting_containers(world, written):
    name, folder = written
    (folder / "1.log").write_text(line("now"))
    (folder / "0.log").write_text(line("before"))
    world.table[f"red/{name}"]["containers"]["c"] = {
        "id": "y", "running": True, "log": str(folder / "1.log"), "previous": {"id": "x", "log": str(folder / "0.log")}}
    world.write_table()
    assert world.kubectl("logs", "-n", "red", name).stdout == "now\n"
    assert world.kubectl("logs", "-p", "-n", "red", name).stdout == "before\n"
    world.table[f"red/{name}"]["containers"]["c"] = {"waiting": "ContainerCreating"}
    world.write_table()
    r = world.kubectl("logs", "-n", "red", name, check=False)
    assert f'container "c" in pod "{name}" is waiting to start: ContainerCreating' in r.stderr


# ---- port-forward ----

ECHO = """
import socket, threading
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(200); print(s.getsockname()[1], flush=True)
def serve(c):
    data = b""
    while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:8], "big"):
        block = c.recv(65536)
        if not block:
            return c.close()
        data += block
    c.sendall(data[:7:-1]); c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def echo(world):
    """A server in the pod's network that answers with what it got, backwards.  (containerd 1.6 does not pass the end of one
    direction on alone, so the size comes first.)"""
    p = world.popen("/usr/bin/python3", "-c", ECHO, stdout=subprocess.PIPE, text=True)
    yield int(p.stdout.readline())
    p.kill()
    p.wait()


@contextlib.contextmanager
def forwarded(world, env, *ports):
    p = world.popen(*world.kubectl_argv("port-forward", "-n", "red", "pod/one", *(f":{x}" for x in ports)), stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True, env=env)
    local = []
    try:
        while len(local) < len(ports):
            text = p.stdout.readline()
            assert text, p.stderr.read()
            if m := re.match(r"Forwarding from 127\.0\.0\.1:(\d+)", text):
                local.append(int(m[1]))
        yield local
    finally:
        p.kill()
        p.wait()


def ask(world, port, data):
    sock = netns.inside(f"/run/netns/{world.ns}", lambda: socket.create_connection(("127.0.0.1", port), timeout=60))
    with sock:
        sock.sendall(len(data).to_bytes(8, "big") + data)
        answer = b""
        while block := sock.recv(65536):
            answer += block
        return answer


def test_fifty_connections_at_once(world, transport, echo):
    with forwarded(world, transport, echo) as (port,):
        data = {i: os.urandom(20000 + i) for i in range(50)}
        answers = {}
        threads = [threading.Thread(target=lambda i=i: answers.__setitem__(i, ask(world, port, data[i]))) for i in data]
        for t in threads:
            t.start()
        for t in threads:
            t.join(120)
        assert {i for i in data if answers.get(i) != data[i][::-1]} == set()


def test_a_refused_port_ends_its_connection_only(world, echo):
    """With Python's client: kubectl itself gives up all connections after such an error."""
    out = world.python(f"""
pf = portforward(api.connect_get_namespaced_pod_portforward, "one", "red", ports="1,{echo}")
refused, good = pf.socket(1), pf.socket({echo})
for s in (refused, good):
    s.setblocking(True)
for i in range(100):
    if pf.error(1): break
    time.sleep(0.1)
good.sendall((5).to_bytes(8, "big") + b"hello")
print(good.recv(100), pf.error({echo}), "refused" in pf.error(1), refused.recv(1))
""", check=False)
    assert out.stdout == "b'olleh' None True b''\n", out.stdout + out.stderr


def test_python_client_forwards_a_port(world, echo):
    out = world.python(f"""
pf = portforward(api.connect_get_namespaced_pod_portforward, "one", "red", ports="{echo}")
s = pf.socket({echo})
s.setblocking(True)
s.sendall((5).to_bytes(8, "big") + b"hello")
print(s.recv(100), pf.error({echo}))
""", check=False)
    assert out.stdout == "b'olleh' None\n", out.stderr


# ---- rights ----

def websocket_request(path, *headers, key="dGhlIHNhbXBsZSBub25jZQ=="):
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket",
                        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: v5.channel.k8s.io",
                        *headers, "", ""]).encode()


def raw_answer(sock, request):
    with sock:
        sock.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            block = sock.recv(65536)
            if not block:
                break
            answer += block
        return answer.decode(errors="replace")


EXEC = "/api/v1/namespaces/red/pods/one/exec?command=true&stdout=true&stderr=true"


def bind(world, user, *rules, namespace="red"):
    role = f"role-{secrets.token_hex(3)}"
    world.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": role, "namespace": namespace},
                  "rules": list(rules)})
    world.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                  "metadata": {"name": role, "namespace": namespace},
                  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
                  "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]})


def test_reading_is_no_right_to_begin_a_process(world):
    """By WebSocket exec is a GET: it counts as create all the same."""
    user = world.user("reader")
    bind(world, "reader", {"apiGroups": [""], "resources": ["pods", "pods/exec", "pods/attach", "pods/portforward"],
                           "verbs": ["get", "list", "watch"]})
    for env in TRANSPORTS.values():
        r = world.kubectl("exec", "-n", "red", "one", "--", "true", user=user, check=False, env={**world.environment(), **env})
        assert r.returncode != 0 and 'cannot create resource "pods/exec"' in r.stderr, r
    for part in ("exec", "attach", "portforward"):
        path = EXEC.replace("/exec?", f"/{part}?ports=1&")
        assert "403 Forbidden" in raw_answer(world.raw_tls("reader"), websocket_request(path)).splitlines()[0]
    bind(world, "reader", {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]})
    assert "101 Switching" in raw_answer(world.raw_tls("reader"), websocket_request(EXEC)).splitlines()[0]


def test_a_tenant_stays_in_its_project(world):
    user = world.user("blue-admin")
    world.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                  "metadata": {"name": "blue-admin", "namespace": "blue"},
                  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
                  "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "blue-admin"}]})
    for args in (("exec", "one", "--", "true"), ("logs", "one"), ("attach", "one")):
        r = world.kubectl(args[0], "-n", "red", *args[1:], user=user, check=False)
        assert r.returncode != 0 and "forbidden" in r.stderr.lower(), (args, r)
    for path in ("/api/v1/namespaces/blue/pods/..%2f..%2fred%2fpods%2fone/exec?command=true&stdout=true",
                 "/api/v1/namespaces/blue/pods/one/exec?command=true&stdout=true&container=..%2f..%2f..%2fred%2fone%2fc"):
        first = raw_answer(world.raw_tls("blue-admin"), websocket_request(path)).splitlines()[0]
        assert "101" not in first, first


def test_a_view_of_the_project_reads_logs_and_no_more(world):
    user = world.user("viewer")
    world.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                  "metadata": {"name": "viewer", "namespace": "red"},
                  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                  "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "viewer"}]})
    wait_for("the role", lambda: world.kubectl("logs", "-n", "red", "one", user=user, check=False).returncode == 0)
    r = world.kubectl("exec", "-n", "red", "one", "--", "true", user=user, check=False)
    assert r.returncode != 0 and "forbidden" in r.stderr.lower()


def node_api(world, path, user, method="GET", headers=()):
    return world.api(method, path, port=world.node_port, host=NODE_IP, user=user, headers=headers)


def test_the_node_asks_who_it_is_and_begins_processes_for_the_master_alone(world):
    assert "ok" in world.kubectl("get", "--raw", "/api/v1/nodes/n1/proxy/healthz").stdout
    assert "PodList" in world.kubectl("get", "--raw", "/api/v1/nodes/n1/proxy/pods").stdout
    assert "kubelet_test 1" in world.kubectl("get", "--raw", "/api/v1/nodes/n1/proxy/metrics").stdout
    query = "tailLines=1&access_token=secret&limitBytes=3"
    assert world.kubectl("get", "--raw", f"/api/v1/nodes/n1/proxy/containerLogs/red/one/c?{query}").stdout == "out"
    assert "red_one" in world.kubectl("get", "--raw", "/api/v1/nodes/n1/proxy/logs/").stdout
    code = world.inside("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", f"https://{NODE_IP}:{world.node_port}/pods").stdout
    assert code == "401"
    world.user("monitor")
    assert node_api(world, "/metrics", "monitor")[0] == 403
    world.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "mon"},
                  "rules": [{"apiGroups": [""], "resources": ["nodes/proxy", "nodes/metrics", "nodes/stats", "nodes/log", "nodes/pods"],
                             "verbs": ["*"]}]})
    world.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "mon"},
                  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mon"},
                  "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "monitor2"}]})
    world.user("monitor2")
    assert node_api(world, "/metrics", "monitor2")[0] == 200 and node_api(world, "/stats/summary", "monitor2")[0] == 200
    assert node_api(world, "/containerLogs/red/one/c", "monitor2") == (200, "out-1\nerr-1\nout-2\n")
    token = json.loads(world.kubectl("create", "--raw", "/api/v1/namespaces/red/serviceaccounts/default/token", "-f", "-",
                                     input=json.dumps({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}})
                                     ).stdout)["status"]["token"]

    def by_token(path, text):
        return world.inside("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "-H", f"Authorization: Bearer {text}",
                            f"https://{NODE_IP}:{world.node_port}{path}").stdout
    assert by_token("/metrics", token) == "403" and by_token("/metrics", "x" + token) == "401"
    world.kubectl("create", "clusterrolebinding", "mon-sa", "--clusterrole=mon", "--serviceaccount=red:default")
    assert by_token("/stats/summary", token) == "200" and by_token("/exec/red/one/c?command=true&output=1", token) == "403"
    headers = ("Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io")
    for user in ("monitor2", "admin"):  # not even an administrator
        for method in ("GET", "POST"):
            for path in ("/exec/red/one/c?command=true&output=1", "/attach/red/one/c?output=1", "/portForward/red/one?port=1"):
                status, text = node_api(world, path, user, method, headers)
                assert status == 403 and "only the API server" in text, (user, method, path, status, text)
    assert node_api(world, "/logs/../../etc/passwd", "admin")[0] in (400, 404)
    (world.folder / "logs" / "link").symlink_to("/etc")
    assert node_api(world, "/logs/link/passwd", "admin")[0] == 404


# Each path of the node's API, the subresource of nodes that it needs, a word of its answer, and its method.
PATHS = [("/healthz", "healthz", "ok", "GET"), ("/pods", "pods", "PodList", "GET"), ("/runningpods/", "pods", "PodList", "GET"),
         ("/metrics", "metrics", "kubelet_test 1", "GET"), ("/metrics/resource", "metrics", "kubelet_resource 1", "GET"),
         ("/metrics/cadvisor", "metrics", "kubelet_cadvisor 1", "GET"), ("/metrics/probes", "metrics", "kubelet_probes 1", "GET"),
         ("/stats/summary", "stats", '"brief":false', "GET"), ("/stats/summary?only_cpu_and_memory=true", "stats", '"brief":true', "GET"),
         ("/configz", "configz", "kubeletconfig", "GET"), ("/logs/", "log", "red_one", "GET"),
         ("/containerLogs/red/one/c", "proxy", "out-1", "GET")]


def test_each_path_of_the_node_needs_its_right(world):
    """A user for each subresource reaches the paths of that one, and of no other; nodes/proxy opens some more, as in Kubernetes."""
    parts = sorted({part for _, part, _, _ in PATHS})
    for part in parts:
        world.kubectl("create", "clusterrole", f"only-{part}", f"--resource=nodes/{part}", "--verb=get")
        world.kubectl("create", "clusterrolebinding", f"only-{part}", f"--clusterrole=only-{part}", f"--user=only-{part}")
        world.user(f"only-{part}")
    world.user("nothing")
    also_by_proxy = {"healthz", "pods", "configz"}
    for path, part, word, method in PATHS:
        for user in ("nothing", *(f"only-{p}" for p in parts)):
            status, text = node_api(world, path, user, method)
            may = user == f"only-{part}" or (user == "only-proxy" and part in also_by_proxy)
            assert (status, word in text) == ((200, True) if may else (403, False)), (path, user, status, text[:300])
            assert may or f"subresource={part})" in text
        assert node_api(world, path, f"only-{part}", "DELETE")[0] == 405
    assert node_api(world, "/stats/summary", "only-stats", "POST")[0] == 403  # the verb is create
    for path in ("/none", "/stats/", "/metrics/", "/spec/"):
        assert node_api(world, path, "nothing")[0] == 403 and node_api(world, path, "only-proxy")[0] == 404


def test_a_command_is_run_for_the_master_alone(world):
    """/run: with the API server's own certificate, which no administrator has."""
    assert node_api(world, "/run/red/one/c?cmd=echo%20a", "admin", "POST")[0] == 403
    assert node_api(world, "/run/red/one/c?cmd=echo%20a", "admin")[0] == 405
    world.user("system:openshift-node-admin", "system:node-admins")
    (world.folder / "user-master.crt").symlink_to(world.folder / "user-system-openshift-node-admin.crt")
    (world.folder / "user-master.key").symlink_to(world.folder / "user-system-openshift-node-admin.key")

    def run_command(cmd, path="red/one/c"):
        return node_api(world, f"/run/{path}?cmd={cmd}", "master", "POST")
    assert run_command("echo%20%20a%20b") == (200, "a b\n")
    status, text = run_command("test%201%20=%202")
    assert status == 500 and "exit code 1" in text
    assert run_command("")[0] == 400 and run_command("true", "red/none/c")[0] == 404


def test_a_node_speaks_of_its_own_pods_only(world, request):
    """What a hostile node may do to metrics.k8s.io: lie about containers of pods that are bound to it."""
    def report(*pods, more=""):
        lines = [f'container_{name}{{container="{c}",namespace="{ns}",pod="{pod}"}} {value}' for ns, pod, c in pods
                 for name, value in (("cpu_usage_seconds_total", "@"), ("memory_working_set_bytes", 1 << 20),
                                     ("start_time_seconds", 1))]
        lines += ["node_cpu_usage_seconds_total @", "node_memory_working_set_bytes 2e6", more]
        (world.folder / "table.new").write_text("\n".join(lines) + "\n")
        (world.folder / "table.new").rename(world.folder / "table.resource")

    def known(kind="pods"):
        items = json.loads(world.kubectl("get", f"{kind}.metrics.k8s.io", "-o", "json", *(["-A"] if kind == "pods" else [])).stdout)["items"]
        return {f"{o['metadata'].get('namespace', '')}/{o['metadata']['name']}":
                {c["name"]: c["usage"] for c in o["containers"]} if kind == "pods" else o["usage"] for o in items}
    request.addfinalizer(lambda: (world.folder / "table.resource").unlink(missing_ok=True))
    request.addfinalizer(lambda: world.kubectl("delete", "node/away", "pod/other", "-n", "blue", "--now", "--wait=false", check=False))
    world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "away"}})
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "blue"}, "spec": {
        "nodeName": "away", "containers": [{"name": "c", "image": "localhost/box:1"}]}})
    world.api("PATCH", "/api/v1/namespaces/blue/pods/other/status", {"status": {"phase": "Running"}})
    report(("red", "one", "c"), ("red", "one", "no-such"), ("blue", "other", "c"), ("blue", "made-up", "c"), ("red", "web", "../a"))
    pods = wait_for("metrics", known)
    assert set(pods) == {"red/one"} and set(pods["red/one"]) == {"c"} and pods["red/one"]["c"]["memory"] == "1Mi"
    assert pods["red/one"]["c"]["cpu"][-1] in "nmu1234567890" and set(known("nodes")) == {"/n1"}

    def message(path):
        """Of a client that takes nothing but protobuf."""
        into = world.folder / "message"
        assert world.api("GET", "/apis/metrics.k8s.io/v1beta1" + path, headers=[f"Accept: {TYPE}"], into=into)[0] == 200
        return opened(into.read_bytes())[1:]
    for path, kind, number in (("/namespaces/red/pods/one", "PodMetrics", 2), ("/nodes/n1", "NodeMetrics", 4)):
        has, metrics = message(path)
        usage = field(metrics, 4) if number == 2 else metrics
        assert has == kind and 10**8 <= field(metrics, 3, 1) <= 600 * 10**9 and field(metrics, 2, 1) > 1700000000
        assert {field(v, 1) for n, v in fields(usage) if n == number} == {b"cpu", b"memory"}
    assert field(message("/pods")[1], 2, 4, 1) == b"c"
    r = world.kubectl("get", "pods.metrics.k8s.io", "-n", "blue", "other", check=False)
    assert 'podmetrics.metrics.k8s.io "blue/other" not found' in r.stderr
    report(("red", "one", "c"), more="x" * (5 << 20))  # more than the master reads
    wait_for("the master to say so", lambda: re.search("does not say what it uses.* node=n1 ", (world.folder / "master.log").read_text()))
    assert world.procs[0].poll() is None and set(known()) <= {"red/one"}


def test_the_master_believes_neither_address_nor_certificate_of_another(world):
    def execute():
        return world.kubectl("exec", "-n", "red", "one", "--", "true", check=False)
    assert execute().returncode == 0
    # Another node's certificate at the address that n1 reports.
    crt, key = make_pki(world.folder, "other", "/O=system:nodes/CN=system:node:n2", ca=world.ca,
                        ext=f"basicConstraints=CA:FALSE\nsubjectAltName=IP:{NODE_IP},DNS:n2\nextendedKeyUsage=serverAuth\n")
    m = world.daemon("other", SERVE, f"{NODE_IP}:0", "n2", world.kubeconfig, crt, key, world.ca[0], f"unix://{world.socket}",
                     world.folder / "table", world.folder / "logs", ready=r"port (\d+)")
    try:
        world.node_status(NODE_IP, int(m[1]))
        r = execute()
        assert r.returncode != 0 and 'certificate is of "system:node:n2", not of system:node:n1' in r.stderr, r.stderr
        # The master itself, whose certificate is by the same authority.
        world.node_status(NODE_IP, world.port)
        assert execute().returncode != 0
        for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"):
            world.node_status(address, world.node_port)
            world.kubectl("get", "node", "n1", "-o", "jsonpath={.status.addresses[0].address}")
            r = execute()
            if address in world.kubectl("get", "node", "n1", "-o", "jsonpath={.status.addresses[0].address}").stdout:
                assert r.returncode != 0 and "cannot be asked" in r.stderr, (address, r.stderr)
    finally:
        world.node_status(NODE_IP, world.node_port)
        world.procs.pop().terminate()
    assert execute().returncode == 0


# ---- bad input ----

def test_upgrades_that_are_refused(world):
    first = raw_answer(world.raw_tls(), websocket_request(EXEC, "Origin: https://evil.example")).splitlines()[0]
    assert "403" in first
    assert "101" in raw_answer(world.raw_tls(), websocket_request(EXEC, "Origin: https://127.0.0.1")).splitlines()[0]
    assert "400" in raw_answer(world.raw_tls(), websocket_request(EXEC, key="short")).splitlines()[0]
    # A header that would be two at the node.
    sneaky = websocket_request(EXEC, "X-Stream-Protocol-Version: a\r\n\tX-Remote-User: root")
    assert "400" in raw_answer(world.raw_tls(), sneaky).splitlines()[0]
    # HTTP/2 has no upgrades.
    crt, key = world.folder / "user-admin.crt", world.folder / "user-admin.key"
    code = world.inside("curl", "-s", "--http2", "--cacert", world.ca[0], "--cert", crt, "--key", key, "-X", "POST",
                        f"https://127.0.0.1:{world.port}{EXEC}").stdout
    assert "HTTP/2 has no upgrades" in code


def test_what_follows_a_refused_upgrade_is_no_request_of_the_node(world):
    """Bytes behind the head of an upgrade that failed are a further request to the master, with its own answer."""
    request = websocket_request(EXEC.replace("/one/", "/none/")) + b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with world.raw_tls() as sock:
        sock.sendall(request)
        answer = b""
        while block := sock.recv(65536):
            answer += block
    assert answer.count(b"HTTP/1.1 404") == 1 and answer.count(b"HTTP/1.1 200") == 1 and b"gitVersion" in answer


def test_malformed_frames_end_their_connection_only(world):
    """Frames that break the protocols, bombs and floods: the servers go on, and their memory does not grow."""
    master, kubelet = world.procs[0], world.procs[1]
    for junk in (b"\x00" * 100, b"\xff" * 4096, b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff" + b"x" * 100,
                 b"\x89\x80abcd" * 20000, b"\x82\x81abcd" + bytes([99 ^ ord("a")])):
        with world.raw_tls() as sock:
            sock.sendall(websocket_request(EXEC.replace("true", "cat") + "&stdin=true"))
            while b"\r\n\r\n" not in sock.recv(4096):
                pass
            sock.settimeout(20)
            with contextlib.suppress(OSError):
                sock.sendall(junk)
                sock.recv(65536)
    assert master.poll() is None and kubelet.poll() is None
    assert world.kubectl("exec", "-n", "red", "one", "--", "echo", "still").stdout == "still\n"


def test_discovery_and_audit_have_the_subresources(world):
    resources = {r["name"]: r for r in json.loads(world.kubectl("get", "--raw", "/api/v1").stdout)["resources"]}
    assert {"pods/exec", "pods/attach", "pods/portforward", "pods/log", "nodes/proxy"} <= set(resources)
    assert resources["pods/exec"]["kind"] == "PodExecOptions" and resources["pods/exec"]["verbs"] == ["create", "get"]
    events = [json.loads(x) for x in (world.folder / "audit.log").read_text().splitlines()]
    exec_events = [e for e in events if e.get("objectRef", {}).get("subresource") == "exec" and e["stage"] == "ResponseComplete"]
    assert exec_events and all(e["verb"] == "create" for e in exec_events)
