# SPDX-License-Identifier: Apache-2.0
"""Somebody who is on a node already: a user without rights at the agent's sockets and files, and a caller of tenet-cni that
sends what no runtime sends.  Nothing is attached by it, nothing is left of it, and the agent goes on."""
import concurrent.futures
import json
import os
import pathlib
import random
import socket
import stat
import subprocess
import time

import pytest

import lab as lablib
from lab import run, wait_for
from test_cni import Sandbox, sandbox, state  # noqa: F401

NOBODY = 65534
# Opens the socket as root, so that folders do not matter, and connects as nobody.
AS_NOBODY = """
import os, socket, sys
fd = os.open(sys.argv[1], os.O_PATH)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
try:
    s.connect(f"/proc/self/fd/{fd}")
except PermissionError:
    print("refused"); sys.exit()
try:
    s.sendall(sys.argv[2].encode())
    print("closed" if not s.recv(1000) else "answered")
except ConnectionError:
    print("closed")
"""


@pytest.fixture(scope="module", params=["ovs", "ebpf"] if lablib.DATAPATH == "ovs" else [lablib.DATAPATHS[lablib.DATAPATH]])
def own(request, make_lab):
    lab = make_lab("cnil", nodes=1, plugin="redhat/openshift-ovs-multitenant", datapath=request.param)
    lab.project("red")
    lab.conf_file = next(pathlib.Path(lab.node("node1")["cniConfDir"]).glob("*.conf*"))
    lab.conf = json.loads(lab.conf_file.read_text())
    lab.socket, lab.pid = lab.conf["socket"], lab.node("node1")["pid"]
    yield lab
    lab.down(check=False)


@pytest.fixture(autouse=True)
def nothing_is_left(own):
    """The agent lives, and has as many ports, links, records and rules as before."""
    before = state(own)
    yield
    wait_for("ports, links and rules to be as before", lambda: state(own) == before)
    assert own.node("node1")["pid"] == own.pid and own.node("node1")["ready"]


# ---- without rights ----

def test_a_user_without_rights_reaches_no_socket_of_the_agent(own):
    """Neither by the socket's mode, nor, where somebody widens that, past the question who connects."""
    line = json.dumps({"command": "STATUS", "config": own.conf}) + "\n"
    for path in (own.socket, own.node("node1")["agentSocket"]):
        assert run(["/usr/bin/python3", "-c", AS_NOBODY, path, line]).stdout.strip() == "refused", path
        assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.chmod(path, 0o666)
        try:
            said = run(["/usr/bin/python3", "-c", AS_NOBODY, path,
                        line if path == own.socket else "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"])
            assert said.stdout.strip() == "closed" or path != own.socket, path
        finally:
            os.chmod(path, mode)


def test_a_user_without_rights_reads_no_secret_of_the_node(own):
    """Credentials, records and sockets are root's; the configuration for runtimes, too."""
    folder = own.folder("node1")
    files = [p for p in folder.rglob("*") if p.is_file() and any(x in p.name for x in ("kubeconfig", ".key", "token"))]
    for p in [*files, own.conf_file]:
        assert stat.S_IMODE(p.stat().st_mode) & 0o077 == 0, p
    for p in folder.rglob("*"):
        assert p.is_symlink() or not stat.S_IMODE(p.lstat().st_mode) & 0o002, f"{p} is everybody's to write"
    assert stat.S_IMODE(os.stat(os.path.dirname(own.socket)).st_mode) & 0o077 == 0


# ---- at the socket ----

def say(own, data, fds=(), timeout=20):
    """What the agent answers to these bytes; b"" when it closes."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout)
        s.connect(own.socket)
        try:
            if fds:
                socket.send_fds(s, [data[:1]], list(fds))
                data = data[1:]
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            out = b""
            while part := s.recv(65536):
                out += part
            return out
        except (ConnectionError, TimeoutError):
            return b""


def request(own, **changes):
    return (json.dumps({"command": "ADD", "containerID": "c" * 64, "ifname": "eth0", "netns": "/run/netns/x", "podNamespace": "red",
                        "podName": "p", "config": own.conf, **changes}) + "\n").encode()


LINES = {
    "nothing": b"", "a newline": b"\n", "no JSON": b"hello\n", "half of it": b'{"command":"ADD"', "a list": b"[]\n",
    "null": b"null\n", "NUL": b"\0\n",
    "depth": b"[" * 100000 + b"\n", "too much": b'{"a":"' + b"x" * (1 << 20) + b'"}\n', "without end": b"x" * (1 << 19),
    "two lines": b"{}\n{}\n",
}


@pytest.mark.parametrize("what", LINES)
def test_lines_that_are_no_request_are_refused(own, what):
    got = say(own, LINES[what])
    assert not got.startswith(b"0 "), got


CHANGES = {
    "command": ["X", "", 5, None, ["ADD"], "add", "ADD\0", "A" * 5000], "containerID": ["", "..", "../x", "a/b", "a\0b",
        "x" * 5000, 5, None, "-x", " ", "a\nb"],
    "ifname": ["", "..", "a/b", "x" * 16, "lo", "a b", "a\0", 5, None, "eth0:1", "%s%n"],
    "podNamespace": ["", "../red", "nosuch", "Red", 5, None, "red/blue", "x" * 5000, "red\0"],
    "podName": ["", "../p", 5, None, "a/b", "x" * 5000, "p\0"],
    "config": [5, None, [], {}, {"cniVersion": "1.0.0"}, {"cniVersion": "9.0.0", "name": "n", "type": "t"}], "netns": [5, None,
        "x" * 100000],
    "unknown": ["x"],
}


@pytest.mark.parametrize("field", CHANGES)
def test_fields_that_are_wrong_are_refused(own, field, sandbox):
    """With the open namespace of a real sandbox, so that only the field is wrong."""
    box = sandbox()
    with open(f"/run/netns/{box.ns}") as ns:
        for value in CHANGES[field]:
            got = say(own, request(own, **{field: value}), [ns.fileno()])
            assert not got.startswith(b"0 ") or field in ("unknown", "netns"), (value, got)
            say(own, request(own, **{**{field: value}, "command": "DEL"}), [ns.fileno()])
            if field in ("unknown", "netns"):
                say(own, request(own, command="DEL"), [ns.fileno()])
    assert "eth0" not in run(["ip", "-n", box.ns, "-o", "link"]).stdout


def test_descriptors_that_are_no_namespace_are_refused(own, tmp_path):
    """A file, a folder, a FIFO, a socket, a device, a namespace of another kind, none, and many: none is kept either."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_text("x")
    a, b = socket.socketpair()
    agent = own.node("node1")["pid"]
    before = len(os.listdir(f"/proc/{agent}/fd"))
    fds = [os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK), os.open(tmp_path / "file", os.O_RDONLY), os.open(tmp_path,
        os.O_RDONLY), a.fileno(),
           os.open("/dev/null", os.O_RDONLY), os.open("/proc/self/ns/mnt", os.O_RDONLY), os.open("/proc/self/ns/pid", os.O_RDONLY)]
    try:
        for fd in fds:
            got = say(own, request(own), [fd])
            assert not got.startswith(b"0 "), got
        for _ in range(20):
            assert not say(own, request(own), fds * 10).startswith(b"0 ")
        assert not say(own, request(own)).startswith(b"0 ")
        wait_for("descriptors to be closed", lambda: len(os.listdir(f"/proc/{agent}/fd")) <= before + 4)
    finally:
        for fd in fds:
            if fd != a.fileno():
                os.close(fd)
        a.close()
        b.close()


def test_callers_that_say_nothing_do_not_keep_others_out(own, sandbox):
    """Hundreds of them: those who ask are served meanwhile, or are told to come again."""
    idle = []
    try:
        for _ in range(400):
            s = socket.socket(socket.AF_UNIX)
            s.connect(own.socket)
            s.sendall(b'{"command":')
            idle.append(s)
        box = sandbox()
        wait_for("an ADD", lambda: box.call("ADD")[0] == 0)
        box.delete()
    finally:
        for s in idle:
            s.close()


# ---- by the program ----

def test_a_key_twice_in_the_arguments_is_refused(own, sandbox):
    run([lablib.TENET, "lab", "--name", own.name, "project", "add", "blue"], check=False)
    for args in ("K8S_POD_NAMESPACE=red;K8S_POD_NAME=p;K8S_POD_NAMESPACE=blue",
                 "K8S_POD_NAME=p;K8S_POD_NAME=q;K8S_POD_NAMESPACE=red",
                 "IgnoreUnknown=1;IgnoreUnknown=0;K8S_POD_NAMESPACE=red;K8S_POD_NAME=p",
                 "K8S_POD_NAMESPACE=red;K8S_POD_NAMESPACE=red;K8S_POD_NAME=p"):
        box = sandbox()
        status, out = box.call("ADD", env={"CNI_ARGS": args})
        assert status != 0 and out["code"] == 4, (args, out)


def test_a_namespace_that_is_none_neither_hangs_nor_attaches(own, sandbox, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "fifo", tmp_path / "link", tmp_path / "loop", tmp_path / "file", tmp_path, "/dev/zero", "/dev/ptmx",
                 "/proc/self/ns/mnt", "/proc/self/mem",
                 "x", "../../etc/passwd", "/" + "x/" * 3000, "/run/netns/../netns/nosuch"):
        box = sandbox()
        began = time.monotonic()
        for command in ("ADD", "CHECK", "DEL"):
            status, out = box.call(command, env={"CNI_NETNS": str(path)})
            assert command == "DEL" or status != 0, (command, path, out)
        assert time.monotonic() - began < lablib.DEADLINE / 2, path


def test_what_is_read_is_bounded(own, sandbox):
    """Configuration and environment without end."""
    box = sandbox()
    for raw in ("x" * (8 << 20), "{" * (1 << 20), '{"a":"' + "b" * (4 << 20), '{"cniVersion":"1.0.0","name":"n","type":"t","x":' +
                "[" * 200000):
        status, out = box.call("ADD", raw=raw)
        assert status == 1 and out["code"] in (6, 7), out
    for env in ({"CNI_ARGS": "a=b;" * 20000}, {"CNI_CONTAINERID": "x" * 100000}, {"CNI_IFNAME": "x" * 100000},
                {"CNI_COMMAND": "x" * 100000},
                {"CNI_NETNS": "/" + "x" * 100000}, {"CNI_PATH": "x" * 100000, "CNI_IFNAME": "../x"}):
        status, out = box.call("ADD", env=env)
        assert status == 1 and out["code"] in (3, 4, 5), (list(env), out)
    zeros = subprocess.run(["timeout", "60", "ip", "netns", "exec", own.ns_name("node1"), lablib.CNI], stdin=open("/dev/zero"),
                           capture_output=True, text=True, env={
        **lablib.environment(), "CNI_COMMAND": "VERSION"})
    assert zeros.returncode == 1 and json.loads(zeros.stdout)["code"] == 6


def test_del_of_a_second_interface_leaves_the_first_its_route(own, sandbox):
    box = sandbox()
    box.add()
    status, out = box.call("ADD", env={"CNI_IFNAME": "eth1"})
    if status == 0:
        assert box.call("DEL", env={"CNI_IFNAME": "eth1"})[0] == 0
    assert "default" in run(["ip", "-n", box.ns, "route"]).stdout, out
    box.delete()


def test_an_id_of_somebody_else_takes_nothing_from_them(own, sandbox):
    """The same container id for another pod and namespace: the one that is there keeps its address, or is replaced as a whole."""
    first, second = sandbox(pod="first"), sandbox(pod="second")
    ip = first.add()["ips"][0]["address"]
    second.id = first.id
    status, out = second.call("ADD")
    holders = [r for r in own.records("node1").values() if r["ip"] == ip.split("/")[0]]
    assert len(holders) <= 1
    for box in (first, second):
        box.delete()


# ---- many at once ----

def test_a_storm_of_adds_dels_and_killed_callers_leaks_nothing(own):
    """Sandboxes that several callers attach and detach at once, some of which are killed in the middle."""
    rng = random.Random(14)
    boxes = [Sandbox(own, pod=f"storm-{i}") for i in range(8)]
    before = state(own)
    conf = json.dumps(own.conf)

    def one(seed):
        r = random.Random(seed)
        box, command = r.choice(boxes), r.choice(["ADD", "ADD", "DEL", "CHECK"])
        env = {**lablib.environment(), "CNI_COMMAND": command, "CNI_CONTAINERID": box.id, "CNI_NETNS": f"/run/netns/{box.ns}",
               "CNI_IFNAME": "eth0",
               "CNI_PATH": "/", "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=red;K8S_POD_NAME={box.pod}"}
        p = subprocess.Popen(["ip", "netns", "exec", own.ns_name("node1"), lablib.CNI], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=env, text=True)
        try:
            if r.random() < 0.3:
                p.stdin.write(conf[:r.randrange(len(conf))])
                time.sleep(r.random() / 50)  # the moment of the kill is what varies
                p.kill()
                p.stdin.close()
            else:
                p.communicate(conf, timeout=60)
        except BrokenPipeError:
            pass
        p.wait(timeout=60)

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(one, [rng.random() for _ in range(160)]))
    addresses = [r["ip"] for r in own.records("node1").values()]
    assert len(addresses) == len(set(addresses))
    for box in boxes:
        box.delete()
        box.remove()
    wait_for("nothing to be left", lambda: state(own) == before)


def test_files_that_are_none_in_the_agents_folders_do_not_hang_it(own):
    """A FIFO where records of pods are, a device, a folder and a link to itself; the agent starts past them."""
    folder = own.folder("node1") / "run/pods"
    if not folder.exists():
        assert own.has_ovs("node1")  # whose records are in its database
        return
    os.mkfifo(folder / "fifo.json")
    (folder / "folder.json").mkdir()
    (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "zero.json").symlink_to("/dev/zero")
    (folder / "empty.json").write_text("")
    try:
        own.cmd("node", "restart", "node1", timeout=lablib.DEADLINE)
        wait_for("the node", lambda: own.node("node1")["ready"])
    finally:
        for name in ("fifo", "loop", "zero", "empty"):
            (folder / f"{name}.json").unlink(missing_ok=True)
        if (folder / "folder.json").exists():
            (folder / "folder.json").rmdir()
        if not own.node("node1")["ready"]:
            own.cmd("node", "kill", "node1", check=False)
            own.cmd("node", "start", "node1", check=False)
        own.pid = own.node("node1")["pid"]
