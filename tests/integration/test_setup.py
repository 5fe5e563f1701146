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
