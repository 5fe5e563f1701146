# SPDX-License-Identifier: Apache-2.0
"""tenet setup: hosts in network namespaces become a master and its nodes by the lines that it prints; hostile neighbours and
tokens; interruption; removal."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time

import pytest

import lab as lablib
import netns
from lab import TENET, run, wait_for

JOIN = re.compile(r"tenet setup node --join (\S+) (\S+)")


class Host:
    """A host with a network namespace and files of its own."""

    def __init__(self, world, name, number):
        self.name, self.ns_name, self.root = name, f"{world.name}-{name}", world.dir / name
        self.address = f"192.0.2.{number}"
        self.root.mkdir()
        run(["ip", "netns", "add", self.ns_name])
        world.namespaces.append(self.ns_name)
        port = f"p{number}"
        run(["ip", "-n", self.ns_name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", world.wire])
        run(["ip", "-n", world.wire, "link", "set", port, "master", "wire", "up"])
        run(["ip", "-n", self.ns_name, "link", "set", "lo", "up"])
        run(["ip", "-n", self.ns_name, "addr", "add", f"{self.address}/24", "dev", "eth0"])
        run(["ip", "-n", self.ns_name, "link", "set", "eth0", "up"])
        run(["ip", "-n", self.ns_name, "route", "add", "default", "via", "192.0.2.254"])
        self.processes = []

    @property
    def netns(self):
        return f"/run/netns/{self.ns_name}"

    @property
    def etc(self):
        return self.root / "etc/tenet"

    def ns(self, argv, **kw):
        return run(["nsenter", f"--net={self.netns}", *argv], **kw)

    def tenet(self, *args, **kw):
        return self.ns([TENET, *args], **kw)

    def setup(self, *args, check=True, **kw):
        """The output of a setup command; without check its error."""
        r = self.tenet("setup", *args, "--prefix", self.root, check=check, **kw)
        return r.stdout if check else r

    def start(self, *args):
        log = open(self.root / f"{args[0]}.log", "a")
        p = subprocess.Popen(["nsenter", f"--net={self.netns}", TENET, *map(str, args)], stdout=log, stderr=log,
                             env=lablib.environment())
        self.processes.append(p)
        return p

    def files(self):
        """{path: (mode, contents)} of all that is below its folder, but for logs and locks."""
        return {str(p.relative_to(self.root)): (stat.S_IMODE(p.lstat().st_mode),
                                                os.readlink(p) if p.is_symlink() else hashlib.sha256(p.read_bytes()).hexdigest())
                for p in sorted(self.root.rglob("*")) if (p.is_symlink() or p.is_file()) and p.suffix != ".log"}

    def end(self):
        for p in self.processes:
            if p.poll() is None:
                p.terminate()
                p.wait(30)
        self.processes = []
        for mount in (self.root / "run/tenet/node").glob("*"):
            if os.path.ismount(mount):
                run(["umount", "-l", mount], check=False)


class World:
    def __init__(self, folder, name):
        self.dir, self.name, self.namespaces, self.hosts = folder, name, [], {}
        self.wire = f"{name}-wire"

    def up(self):
        run(["ip", "netns", "add", self.wire])
        self.namespaces.append(self.wire)
        run(["ip", "-n", self.wire, "link", "add", "wire", "type", "bridge"])
        run(["ip", "-n", self.wire, "link", "set", "wire", "up"])

    def host(self, name):
        self.hosts[name] = Host(self, name, len(self.hosts) + 1)
        return self.hosts[name]

    def kubectl(self, *args, **kw):
        m = self.hosts["master"]
        return m.ns(["kubectl", "--kubeconfig", m.root / "var/lib/tenet/pki/admin.kubeconfig", *args], **kw).stdout

    def token(self, *args):
        m = self.hosts["master"]
        return m.tenet("token", "create", "--kubeconfig", m.root / "var/lib/tenet/pki/admin.kubeconfig", *args).stdout.strip()

    def end(self):
        for h in self.hosts.values():
            h.end()
        for n in self.namespaces:
            run(["ip", "netns", "del", n], check=False)


@pytest.fixture
def world(tmp_path_factory):
    w = World(tmp_path_factory.mktemp("setup"), f"tsu{os.getpid() % 100000}")
    try:
        w.up()
        yield w
    finally:
        w.end()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master that runs, for tests of joining."""
    w = World(tmp_path_factory.mktemp("setup"), f"tsc{os.getpid() % 100000}")
    try:
        w.up()
        w.first = start_master(w)
        yield w
    finally:
        w.end()


def start_master(world, *options):
    """Sets up and starts the master as its output says; returns the output of the second setup."""
    m = world.host("master")
    out = m.setup("master", *options)
    command = re.search(r"^ +tenet (master --config \S+)$", out, re.M)
    assert command, out
    m.start(*command[1].split())
    admin = m.root / "var/lib/tenet/pki/admin.kubeconfig"
    wait_for("the master to answer", lambda: m.ns(["kubectl", "--kubeconfig", admin, "get", "--raw", "/readyz"],
                                                  check=False).returncode == 0)
    return m.setup("master")


def new_node(world, name):
    h = world.host(name)
    h.options = ["--node-name", name, "--datapath", "ebpf", "--kubelet", "no"]
    return h


def join(host, token, master, *options, check=True, **kw):
    return host.setup("node", "--join", token, master, *host.options, *options, check=check, **kw)


def test_a_master_and_a_node_by_the_printed_lines(world):
    out = start_master(world)
    m, n = world.hosts["master"], new_node(world, "n1")
    token, address = JOIN.search(out).groups()
    assert address == "192.0.2.1:8443"
    before = m.files()
    assert JOIN.search(m.setup("master")).groups() == (token, address), "an unused token is printed again"
    changed = {p for p, f in m.files().items() if before.get(p) != f}
    assert {p for p in changed if "registry.db" not in p} == set()

    out = join(n, token, address)
    command = re.search(r"^ +tenet (node --config \S+)$", out, re.M)
    assert command, out
    modes = {p: mode for p, (mode, _) in n.files().items()}
    assert modes["etc/tenet/node.kubeconfig"] == 0o600
    assert not (n.etc / "bootstrap.kubeconfig").exists() and not (n.etc / "node.key.new").exists()
    for h in (m, n):
        for p in h.root.rglob("*"):
            if p.is_file() and b"PRIVATE KEY" in p.read_bytes():
                assert stat.S_IMODE(p.stat().st_mode) == 0o600, p
    assert token.split(".")[1][:16] not in "".join(p.read_text(errors="replace") for p in n.root.rglob("*") if p.is_file())

    before = n.files()
    n.setup("node")
    assert n.files() == before, "a second run changes nothing"
    n.start(*command[1].split())
    conf = n.root / "etc/cni/net.d/80-openshift-network.conf"
    wait_for("the node to be ready", conf.exists)
    assert "the node is ready" in n.setup("node")
    assert "n1" in world.kubectl("get", "hostsubnets", "-o", "name")
    assert JOIN.search(m.setup("master")).groups()[0] != token, "a used token is not printed again"


# ---- the checks ----

def findings(text):
    """{what: (level, found, what to do)} of a table of checks; of several with one name the last."""
    found, last = {}, None
    for line in text.splitlines():
        if m := re.match(r"(ok|warn|FAIL) +(\S.{17}|\S+(?: \S+)*) +(\S.*)", line):
            last = m[2].strip()
            found[last] = (m[1], m[3], "")
        elif "->" in line and last:
            found[last] = (*found[last][:2], line.split("->")[1].strip())
    return found


def test_check_says_what_would_fail(world):
    h = world.host("h")
    good = h.tenet("setup", "check", "master", check=False)
    assert "FAIL" not in good.stdout and good.returncode == 0, good.stdout
    assert findings(good.stdout)["port 8443/tcp"] == ("ok", "free for the API", "")
    taken = netns.tcp_listener(h.netns, 8443)
    bad = h.tenet("setup", "check", "master", check=False)
    level, found, todo = findings(bad.stdout)["port 8443/tcp"]
    assert (bad.returncode, level) == (1, "FAIL") and f"pid {os.getpid()}" in found and "--port" in todo
    assert h.tenet("setup", "check", "master", "--port", "8555").returncode == 0
    r = h.setup("master", check=False)
    assert r.returncode == 1 and "nothing was changed" in r.stderr and not list(h.etc.glob("*")), r
    taken.close()
    run(["ip", "-n", h.ns_name, "addr", "add", "10.129.0.7/16", "dev", "eth0"])
    level, found, todo = findings(h.tenet("setup", "check", check=False).stdout)["networks"]
    assert level == "FAIL" and "10.129.0.0/16" in found and "--cluster-network" in todo
    run(["ip", "-n", h.ns_name, "link", "add", "br0", "type", "bridge"])
    run(["ip", "-n", h.ns_name, "link", "set", "eth0", "mtu", "1400"])
    got = findings(h.tenet("setup", "check", "node", check=False).stdout)
    assert got["bridge"][0] == "FAIL" and got["MTU"][0] == "warn" and "1350" in got["MTU"][2]
    before = run(["ip", "-n", h.ns_name, "link"]).stdout
    h.tenet("setup", "check", "node", check=False)
    assert run(["ip", "-n", h.ns_name, "link"]).stdout == before, "features are tried elsewhere"


def test_wrong_input_is_told(world):
    h = world.host("h")
    token = "abcdef.0123456789abcdef"
    pin = "0" * 64
    for args, words in (
            (["node", "--join", token, "192.0.2.9"], "does not end with :sha256:"),
            (["node", "--join", f"{token}:sha256:{pin[1:]}", "192.0.2.9"], "64 hexadecimal digits"),
            (["node", "--join", f"{token}:sha256:{'F' * 64}", "192.0.2.9"], "64 hexadecimal digits"),
            (["node", "--join", f"abcdef.{'A' * 16}:sha256:{pin}", "192.0.2.9"], "does not begin with ID.SECRET"),
            (["node", "--join", f"{token}:sha256:{pin}"], "--join needs the HOST"),
            (["node", "192.0.2.9"], "a HOST needs --join"),
            (["node", "--join", f"@{h.root}/none", "192.0.2.9"], "No such file"),
            (["node"], "this host is not a node yet"),
            (["master", "--mtu", "70000"], "networkConfig.mtu"),
            (["master", "--cluster-network", "10.128.0.0/14"], "not CIDR:BITS"),
            (["master", "--service-network", "10.128.0.0/16"], "overlap"),
            (["master", "--address", "127.0.0.1"], "cannot be reached by nodes"),
            (["master", "--set", "servingInfo.tls=off"], "must be auto"),
            (["master", "--set", "no.such=1"], "there is no such key"),
            (["node", "--datapath", "x", "--join", f"{token}:sha256:{pin}", "192.0.2.9"], "networkConfig.datapath")):
        r = h.setup(*args, check=False)
        assert r.returncode in (1, 2) and words in r.stderr, (args, r)
        assert "0123456789abcdef" not in r.stderr + r.stdout, "a token is not printed"
    assert [p for p in h.root.rglob("*") if p.is_file()] == []


# ---- joining, and who must not ----

def join_word(world, *options):
    """(token with hash, address) of a new line."""
    return JOIN.search(world.token("--print-join-command", *options)).groups()


def test_a_token_from_standard_input_or_a_file(cluster):
    for name, how in (("stdin", "-"), ("file", "@")):
        h = new_node(cluster, f"from-{name}")
        token, address = join_word(cluster)
        file = h.root / "token"
        file.write_text(token + "\n")
        out = join(h, how if how == "-" else f"@{file}", address, input=token + "\n" if how == "-" else None)
        assert f"joined {address}" in out


def test_the_token_leaves_the_list_of_processes(cluster):
    """While the command waits for a master that does not answer, other users read its command line."""
    h = new_node(cluster, "listed")
    token, _ = join_word(cluster)
    deaf = socket_that_never_accepts(h)
    p = subprocess.Popen(["nsenter", f"--net={h.netns}", TENET, "setup", "node", "--join", token, f"{h.address}:9999",
                          "--prefix", h.root, *h.options], env=lablib.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    line = pathlib.Path(f"/proc/{p.pid}/cmdline")
    try:
        wait_for("the token to be overwritten", lambda: b"xxxxxx" in line.read_bytes() and token.encode() not in line.read_bytes())
    finally:
        p.kill()
        p.communicate()
        deaf.close()


def socket_that_never_accepts(host):
    s = netns.inside(host.netns, socket.socket)
    s.bind((host.address, 9999))
    s.listen(8)
    return s


def test_a_wrong_hash_stops_before_the_token_is_sent(cluster):
    h = new_node(cluster, "wrong-hash")
    token, address = join_word(cluster)
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    r = join(h, wrong, address, check=False)
    assert r.returncode == 1 and "presents no authority with the hash" in r.stderr, r
    assert not (h.etc / "bootstrap.kubeconfig").exists()
    assert f"joined {address}" in join(h, token, address), "the token was not used"


class Impostor:
    """A neighbour that poses as the master, with certificates of its choice; it keeps all that it is told."""

    def __init__(self, host, folder, chain, key):
        self.told, self.host = [], host
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (folder / "chain.pem").write_text(chain)
        (folder / "key.pem").write_text(key)
        context.load_cert_chain(folder / "chain.pem", folder / "key.pem")
        self.listener = netns.tcp_listener(host.netns, 8443, host.address)
        self.listener.setblocking(True)
        self.connections = 0

        def serve():
            while True:
                try:
                    raw, _ = self.listener.accept()
                except OSError:
                    return
                self.connections += 1
                raw.settimeout(5)
                try:
                    with context.wrap_socket(raw, server_side=True) as s:
                        self.told.append(s.recv(65536))
                except OSError:
                    pass
        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)


@pytest.fixture
def forged(tmp_path):
    """A certificate for 192.0.2.x, and its key, by nobody."""
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
         "/CN=tenet-master", "-addext", "subjectAltName=" + ",".join(f"IP:192.0.2.{i}" for i in range(1, 30)),
         "-keyout", tmp_path / "own.key", "-out", tmp_path / "own.crt"])
    return (tmp_path / "own.crt").read_text(), (tmp_path / "own.key").read_text()


@pytest.mark.parametrize("shows", ["its own certificate", "the master's authority as well"])
def test_a_neighbour_cannot_pose_as_the_master(cluster, forged, tmp_path, shows):
    name = "fooled" + str(len(cluster.hosts))
    h, evil = new_node(cluster, name), cluster.host(name + "-evil")
    cert, key = forged
    token, address = join_word(cluster)
    ca = (cluster.hosts["master"].root / "var/lib/tenet/pki/ca.crt").read_text()
    impostor = Impostor(evil, tmp_path, cert + (ca if "as well" in shows else ""), key)
    try:
        r = join(h, token, f"{evil.address}:8443", check=False)
    finally:
        impostor.close()
    assert r.returncode == 1 and ("presents no authority" in r.stderr or "unknown authority" in r.stderr), r
    assert impostor.connections >= 1
    assert not any(b"Bearer" in t or token[:6].encode() in t for t in impostor.told), "nothing of the token was sent"
    assert not (h.etc / "node.kubeconfig").exists() and not (h.etc / "bootstrap.kubeconfig").exists()
    assert f"joined {address}" in join(h, token, address)


def test_an_expired_token(cluster):
    h = new_node(cluster, "late")
    token, address = join_word(cluster, "--ttl", "1s")
    secret = f"bootstrap-token-{token[:6]}"
    wait_for("the token to be gone", lambda: secret not in cluster.kubectl("get", "secrets", "-n", "kube-system", "-o", "name"))
    r = join(h, token, address, check=False)
    assert r.returncode == 1 and "the join token is not valid" in r.stderr and token[7:23] not in r.stderr, r
    assert not (h.etc / "node.kubeconfig").exists() and not (h.etc / "bootstrap.kubeconfig").exists()


def test_a_token_is_for_one_node_and_one_use(cluster):
    first, again, other = (new_node(cluster, n) for n in ("only", "only-again", "someone"))
    token, address = join_word(cluster, "--node", "only")
    r = join(other, token, address, check=False)
    assert r.returncode == 1 and "for the node only alone" in r.stderr, r
    assert "joined" in join(first, token, address)
    again.options[1] = "only"  # a replay: the same node's name, another key
    r = join(again, token, address, check=False)
    assert r.returncode == 1 and "is for one use, and was used by the node only" in r.stderr, r
    assert not (again.etc / "node.kubeconfig").exists()
    free, _ = join_word(cluster)
    assert "joined" in join(other, free, address), "the control: a token that is not used"


def test_a_token_gives_no_more_than_joining(cluster):
    """The rights of the credential that the line has, against the API itself."""
    h = new_node(cluster, "curious")
    token, address = join_word(cluster)
    kubectl = ["kubectl", "--server", f"https://{address}", "--insecure-skip-tls-verify", "--token", token.split(":")[0], "--kubeconfig",
               "/dev/null"]
    for verb, what in (("get", "secrets"), ("get", "nodes"), ("get", "pods"), ("create", "pods"), ("delete", "nodes"),
                       ("impersonate", "users"), ("get", "configmaps"), ("create", "clusterrolebindings")):
        r = h.ns([*kubectl, "auth", "can-i", verb, what, "-A"], check=False)
        assert r.stdout.strip() == "no", (verb, what, r)
    r = h.ns([*kubectl, "auth", "can-i", "create", "certificatesigningrequests"], check=False)
    assert r.stdout.strip() == "yes", r


def test_a_node_of_another_cluster_is_not_taken_over(cluster, world):
    h = new_node(cluster, "settled")
    token, address = join_word(cluster)
    join(h, token, address)
    before = h.files()
    pin = "0" * 64
    r = join(h, f"abcdef.0123456789abcdef:sha256:{pin}", "192.0.2.77", check=False)
    assert r.returncode == 1 and "is a node of another cluster" in r.stderr, r
    r = h.setup("node", "--node-name", "usurped", check=False)
    assert r.returncode == 1 and "is of another node than usurped" in r.stderr, r
    assert h.files() == before


# ---- what administrators edit ----

def test_an_edited_file_is_kept(world):
    h = world.host("h")
    h.setup("master", "--plugin", "ovs-multitenant")
    config = h.etc / "master-config.yaml"
    h.setup("master", "--mtu", "1400")
    assert "mtu: 1400" in config.read_text(), "setup's own file follows the options"
    config.write_text(config.read_text() + "# mine\n")
    edited = config.read_text()
    assert "the configuration is" in h.setup("master") and config.read_text() == edited
    r = h.setup("master", "--mtu", "1300", check=False)
    assert r.returncode == 1 and "was edited" in r.stderr and config.read_text() == edited
    config.write_text("servingInfo:\n  bindAddress: 192.0.2.1:8443\n")
    r = h.setup("master", check=False)
    assert r.returncode == 1 and "servingInfo.tls: must be auto" in r.stderr


def test_a_sample_counts_as_nothing(world):
    h = world.host("h")
    sample = pathlib.Path(__file__).parents[2] / "packaging/config/master-config.yaml"
    h.etc.mkdir(parents=True)
    shutil.copy(sample, h.etc)
    out = h.setup("master")
    assert "changed" in out and "tls: auto" in (h.etc / "master-config.yaml").read_text()


# ---- interruption ----

def test_a_killed_setup_is_finished_by_the_next(cluster):
    """Killed at moments spread over its whole run; the token, for one use, serves until the end."""
    probe = new_node(cluster, "timed")
    token, address = join_word(cluster)
    begin = time.monotonic()
    join(probe, token, address)
    whole = time.monotonic() - begin
    h = new_node(cluster, "killed")
    token, address = join_word(cluster)
    argv = ["nsenter", f"--net={h.netns}", str(TENET), "setup", "node", "--join", token, address, "--prefix", str(h.root), *h.options]
    for i in range(16):
        p = subprocess.Popen(argv, env=lablib.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            p.wait(whole * (i + 1) / 14)  # the moment of the kill, not a condition
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGKILL)
            p.wait(10)
        for f in h.root.rglob("*"):
            assert not f.is_file() or b"PRIVATE KEY" not in f.read_bytes() or stat.S_IMODE(f.stat().st_mode) == 0o600, f
    join(h, token, address)
    kept = set(h.files())
    assert kept == set(probe.files()), "neither less nor more than an uninterrupted setup"
    assert "system:node:killed" in h.tenet("whoami", "--kubeconfig", h.etc / "node.kubeconfig").stdout


def test_two_setups_at_once(world):
    h = world.host("h")
    both = [subprocess.Popen(["nsenter", f"--net={h.netns}", TENET, "setup", "master", "--prefix", h.root],
                             env=lablib.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    results = [(p.communicate(timeout=60)[1], p.returncode) for p in both]
    assert any(code == 0 for _, code in results)
    assert all(code == 0 or "another \"tenet setup\" works" in err for err, code in results), results
    assert "the configuration is" in h.setup("master")


# ---- removal ----

def left(host):
    """All of a host's network that a node could leave behind."""
    links = [l["ifname"] for l in json.loads(host.ns(["ip", "-j", "link"]).stdout)]
    mounts = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if str(host.root) in line]
    return sorted(links), host.ns(["nft", "list", "ruleset"]).stdout, host.ns(["ip", "route"]).stdout, mounts


def test_removal_leaves_nothing_of_a_node(cluster):
    h = new_node(cluster, "leaves")
    before = left(h)
    token, address = join_word(cluster)
    command = re.search(r"^ +tenet (node --config \S+)$", join(h, token, address), re.M)[1]
    agent = h.start(*command.split())
    conf = h.root / "etc/cni/net.d/80-openshift-network.conf"
    wait_for("the node to be ready", conf.exists)
    assert left(h) != before
    r = h.setup("remove", check=False)
    assert r.returncode == 1 and "runs on this host: stop it first" in r.stderr
    agent.send_signal(signal.SIGKILL)  # which leaves all that a crash leaves
    agent.wait(10)
    edited = h.etc / "node-config.yaml"
    original = edited.read_text()
    edited.write_text(original + "# mine\n")
    out = h.setup("remove")
    assert "kubectl delete node leaves" in out and f"{edited} kept: it was edited" in out
    assert left(h) == before
    assert set(h.files()) == {"etc/tenet/node-config.yaml"}, "but what the administrator wrote"
    edited.unlink()
    assert "there is nothing that setup has made" in h.setup("remove")
    token, address = join_word(cluster)
    assert "joined" in join(h, token, address), "it can be set up anew"
    h.setup("remove", "node", "--purge")
    assert h.files() == {} and left(h) == before


def test_removal_keeps_a_masters_data_unless_purged(world):
    start_master(world, "--cluster-network", "10.128.0.0/14:9")
    m = world.hosts["master"]
    world.kubectl("create", "namespace", "kept")
    r = m.setup("remove", check=False)
    assert r.returncode == 1 and "runs on this host: stop it first" in r.stderr
    m.end()
    out = m.setup("remove", "master")
    assert "--purge removes them" in out
    files = set(m.files())
    assert "var/lib/tenet/registry.db" in files and "var/lib/tenet/pki/ca.key" in files
    assert not any(f.startswith("etc/") for f in files), files
    del world.hosts["master"]
    world.hosts["master"] = m
    command = re.search(r"^ +tenet (master --config \S+)$", m.setup("master"), re.M)[1]
    m.start(*command.split())
    wait_for("the data to be served again", lambda: "kept" in world.kubectl("get", "namespaces", "-o", "name", check=False))
    m.end()
    m.setup("remove", "--purge")
    assert m.files() == {}, "nothing is left"


def test_removal_takes_the_bridge_of_open_vswitch(make_lab, tmp_path):
    """On a node of a lab, whose Open vSwitch and files are where the lab has them."""
    lab = make_lab("sr", nodes=1, datapath="ovs")
    pod = None
    try:
        root = tmp_path / "host"
        config = root / "etc/tenet/node-config.yaml"
        config.parent.mkdir(parents=True)
        shutil.copy(lab.folder("node1") / "node-config.yaml", config)
        (config.parent / "setup.json").write_text(json.dumps({"files": [{"path": str(config), "role": "node", "changes": True}]}))
        lab.project("red")
        pod = lab.pod("red/a", "node1")
        remove = ["setup", "remove", "node", "--prefix", root]
        r = lab.ns("node1", [TENET, *remove], check=False)
        assert r.returncode == 1 and "1 pods are attached" in r.stderr and "tenet adm drain node1" in r.stderr, r
        lab.delete_pod("red/a")
        lab.cmd("node", "stop", "node1")
        out = lab.ns("node1", [TENET, *remove]).stdout
        assert "removed the bridge br0" in out
        assert "br0" not in lab.vsctl("node1", "list-br").split()
        links = lab.ns("node1", ["ip", "-br", "link"]).stdout
        assert "tun0" not in links and not re.search(r"^tp\d+", links, re.M), links
        assert "tenet" not in lab.ns("node1", ["nft", "list", "tables"]).stdout
        assert not os.path.ismount(lab.folder("node1") / "run/ports.netns") and not config.exists()
    finally:
        lab.down(check=False)


# ---- with a service manager ----

FAKE_SYSTEMCTL = """#!/usr/bin/python3
# Plays systemd for two units: what setup asks of it is done, and noted.
import os, pathlib, signal, subprocess, sys, time
run = pathlib.Path("/run/fake")
verb, unit = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
commands = {"tenet-master.service": ["master", "--config", "/etc/tenet/master-config.yaml"],
            "tenet-node.service": ["node", "--config", "/etc/tenet/node-config.yaml"]}
if unit not in commands:
    sys.exit(f"No files found for {unit}.")
pid = run / f"{unit}.pid"
if verb != "cat":
    with open(run / "calls", "a") as f:
        f.write(f"{verb} {unit}\\n")

def stop():
    if pid.exists():
        number = int(pid.read_text())
        os.kill(number, signal.SIGTERM)
        while os.path.exists(f"/proc/{number}"):
            time.sleep(0.05)
        pid.unlink()

def start():
    if (run / f"fail {unit}").exists():
        sys.exit(f"Job for {unit} failed because the control process exited with error code.")
    if not pid.exists():
        subprocess.run(["/bin/sh", "-c", 'setsid "$@" >>/run/fake/log 2>&1 & echo $! >' + str(pid), "sh", os.environ["TENET"], *commands[unit]])

if verb == "enable":
    pathlib.Path(f"/etc/enabled-{unit}").touch()
elif verb == "disable":
    pathlib.Path(f"/etc/enabled-{unit}").unlink(missing_ok=True)
elif verb in ("stop", "restart"):
    stop()
if verb in ("start", "restart"):
    start()
"""


FOLDERS = ("etc", "opt", "var/lib", "usr/lib")  # of a host with a service manager


class SystemHost(Host):
    """A host whose /etc, /opt and /var/lib are its own, in a mount namespace, with a service manager that starts the two programs."""

    def __init__(self, world, name, number):
        super().__init__(world, name, number)
        self.upper = self.root / "upper"
        script = self.root / "begin"
        script.write_text("#!/bin/sh\nset -e\n" + "".join(
            f"mkdir -p {self.upper}/{d}/u {self.upper}/{d}/w\n"
            f"mount -t overlay overlay -o lowerdir=/{d},upperdir={self.upper}/{d}/u,workdir={self.upper}/{d}/w /{d}\n"
            for d in FOLDERS) + (
            "mount -t tmpfs tmpfs /run\nmkdir -p /run/systemd/system /run/fake /run/bin\n"
            f"cp {self.root}/systemctl /run/bin/systemctl\n"
            f"touch {self.root}/ready\nexec sleep infinity\n"))
        (self.root / "systemctl").write_text(FAKE_SYSTEMCTL)
        for f in (script, self.root / "systemctl"):
            f.chmod(0o755)
        self.upper.mkdir()
        run(["mount", "-t", "tmpfs", "tmpfs", self.upper])
        self.holder = subprocess.Popen(["nsenter", f"--net={self.netns}", "unshare", "--mount", "--propagation", "private", script])
        wait_for("the mounts", lambda: (self.root / "ready").exists() or self.holder.poll() is not None)
        assert self.holder.poll() is None

    def ns(self, argv, **kw):
        kw["env"] = {**lablib.environment(), "PATH": "/run/bin:" + os.environ["PATH"], "TENET": str(TENET)}
        return run(["nsenter", "-t", str(self.holder.pid), "--net", "--mount", *argv], **kw)

    def sys(self, *args, **kw):
        return self.tenet("setup", *args, **kw)

    def read(self, path):
        return self.ns(["cat", path], check=False).stdout

    def calls(self):
        """What was asked of the service manager since the last call."""
        text = self.read("/run/fake/calls")
        self.ns(["rm", "-f", "/run/fake/calls"])
        return text.split("\n")[:-1]

    def made(self):
        """All files that differ from the machine in the folders of its own, and the folders that the machine has not."""
        found = []
        for d in FOLDERS:
            upper = self.upper / d / "u"
            found += [f"/{d}/{p.relative_to(upper)}" for p in upper.rglob("*")
                      if not p.is_dir() or not pathlib.Path("/", d, p.relative_to(upper)).exists()]
        return sorted(found)

    def end(self):
        for unit in ("tenet-node.service", "tenet-master.service"):
            self.ns(["systemctl", "stop", unit], check=False)
        self.ns(["sh", "-c", "umount /run/tenet/node/* 2>/dev/null"], check=False)
        self.holder.kill()
        self.holder.wait(10)
        run(["umount", "-l", self.upper], check=False)
        super().end()


def test_with_a_service_manager(world):
    """As on a real host: no prefix, units that are enabled, started, restarted and stopped; nothing is left at the end."""
    world.hosts["m"] = m = SystemHost(world, "m", 1)
    world.hosts["n"] = n = SystemHost(world, "n", 2)
    before = m.made(), n.made()
    m.ns(["touch", "/run/fake/fail tenet-master.service"])
    r = m.sys("master", check=False)
    assert r.returncode == 1 and "tenet-master.service does not start (journalctl -u tenet-master.service)" in r.stderr, r
    assert "the control process exited" in r.stderr
    m.ns(["rm", "/run/fake/fail tenet-master.service"])
    m.calls()
    out = m.sys("master").stdout
    assert m.calls() == ["enable tenet-master.service", "start tenet-master.service"]
    token, address = JOIN.search(out).groups()
    assert "export KUBECONFIG=/var/lib/tenet/pki/admin.kubeconfig" in out and "dport 8443 accept" in out
    assert m.sys("master").stdout.count("tenet setup node") == 1
    assert m.calls() == ["enable tenet-master.service", "start tenet-master.service"], "no restart"
    m.sys("master", "--mtu", "1400")
    assert m.calls() == ["enable tenet-master.service", "restart tenet-master.service"]

    out = n.sys("node", "--join", token, address, "--node-name", "one", "--datapath", "ebpf", "--kubelet", "no").stdout
    assert n.calls() == ["enable tenet-node.service", "start tenet-node.service"]
    assert "the node is ready: pods can be attached" in out and "dport 4789 accept" in out
    assert "nodeName: one" in n.read("/etc/tenet/node-config.yaml")
    assert "tenet" in n.read("/etc/cni/net.d/80-openshift-network.conf"), n.read("/run/fake/log")
    assert "the node is ready" in n.sys("node", "--kubelet", "no").stdout
    assert n.calls() == ["enable tenet-node.service", "start tenet-node.service"]

    n.sys("remove")
    assert n.calls() == ["stop tenet-node.service", "disable tenet-node.service", "reset-failed tenet-node.service"]
    m.sys("remove", "--purge")
    assert m.calls() == ["stop tenet-master.service", "disable tenet-master.service", "reset-failed tenet-master.service"]
    assert (m.made(), n.made()) == before
