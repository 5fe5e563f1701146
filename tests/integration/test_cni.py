# SPDX-License-Identifier: Apache-2.0
"""tenet-cni as a runtime calls it: versions, results, errors, idempotence, many at once, exhaustion."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import secrets

import pytest

import lab as lablib
from lab import run, wait_for


@pytest.fixture(scope="module")
def own(make_lab):
    lab = make_lab("cni", nodes=1, plugin="redhat/openshift-ovs-multitenant")
    lab.project("red")
    lab.conf = json.loads(next(pathlib.Path(lab.node("node1")["cniConfDir"]).glob("*.conf")).read_text())
    yield lab
    lab.down(check=False)


class Sandbox:
    """A pod's network namespace as a runtime makes it."""

    def __init__(self, own, pod="p", project="red"):
        self.own, self.pod, self.project = own, pod, project
        self.id = secrets.token_hex(32)
        self.ns = f"tenet-{own.name}-sb-{self.id[:12]}"
        run(["ip", "netns", "add", self.ns])

    def call(self, command, conf=None, raw=None, env=None, drop=()):
        e = {"CNI_COMMAND": command, "CNI_CONTAINERID": self.id, "CNI_NETNS": f"/run/netns/{self.ns}",
             "CNI_IFNAME": "eth0", "CNI_PATH": os.path.dirname(lablib.CNI),
             "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={self.project};K8S_POD_NAME={self.pod}"}
        e.update(env or {})
        for key in drop:
            e.pop(key, None)
        base = {k: v for k, v in lablib.environment().items() if not k.startswith("CNI_")}
        text = raw if raw is not None else json.dumps(conf or self.own.conf)
        r = run(["ip", "netns", "exec", self.own.ns_name("node1"), lablib.CNI], check=False, input=text,
                env={**base, **e})
        return r.returncode, (json.loads(r.stdout) if r.stdout.strip() else None)

    def add(self, **kw):
        status, out = self.call("ADD", **kw)
        assert status == 0, out
        return out

    def delete(self):
        status, out = self.call("DEL")
        assert status == 0, out

    def remove(self):
        with contextlib.suppress(AssertionError):
            self.call("DEL")
        run(["ip", "netns", "del", self.ns], check=False)


@pytest.fixture
def sandbox(own):
    made = []

    def make(*args, **kw):
        made.append(Sandbox(own, *args, **kw))
        return made[-1]
    yield make
    for s in made:
        s.remove()


def test_version(own, sandbox):
    status, out = sandbox().call("VERSION", raw='{"cniVersion":"1.0.0"}')
    assert status == 0
    assert ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] == sorted(out["supportedVersions"])


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0", "1.0.0", "1.1.0"])
def test_result_is_in_the_version_of_the_configuration(own, sandbox, version):
    s = sandbox()
    out = s.add(conf={**own.conf, "cniVersion": version})
    assert out["cniVersion"] == version
    ip = out["ips"][0]
    assert ("version" in ip) == (version < "1.0.0")
    address = ip["address"].split("/")[0]
    assert ip["gateway"] == own.node("node1")["subnet"].split("/")[0].rsplit(".", 1)[0] + ".1"
    eth0 = out["interfaces"][ip["interface"]]
    assert eth0["name"] == "eth0" and eth0["sandbox"] == f"/run/netns/{s.ns}"
    assert eth0["mac"] == "0a:58:" + ":".join(f"{int(o):02x}" for o in address.split("."))
    assert {"dst": "0.0.0.0/0", "gw": ip["gateway"]} in out["routes"] or \
        any(r["dst"] == "0.0.0.0/0" for r in out["routes"])
    assert address in run(["ip", "-n", s.ns, "-4", "addr", "show", "eth0"]).stdout


def test_the_plugin_as_it_is_installed(own, sandbox, monkeypatch):
    """Built with musl and without sanitizers: what the others try with the one that has them."""
    plugin = lablib.CNI + "-musl"
    monkeypatch.setattr(lablib, "CNI", plugin if os.path.exists(plugin) else lablib.CNI)
    assert "musl" in lablib.CNI or "build-check" not in lablib.CNI
    s = sandbox()
    first = s.add()
    assert first["ips"]
    conf = {**own.conf, "cniVersion": "1.0.0", "prevResult": {**first, "cniVersion": "1.0.0"}}
    assert s.call("CHECK", conf=conf)[0] == 0
    s.delete()
    status, out = s.call("CHECK", conf=conf)
    assert status == 1 and out["code"] and out["msg"]
    assert s.call("ADD", conf={**own.conf, "cniVersion": "9.9.9"})[1]["code"] == 1
    assert s.call("ADD", drop=("CNI_NETNS",))[1]["code"] == 4


def test_add_again_gives_the_same_and_del_twice_succeeds(own, sandbox):
    s = sandbox()
    first = s.add()
    assert s.add()["ips"] == first["ips"]
    s.delete()
    assert "eth0" not in run(["ip", "-n", s.ns, "-o", "link"]).stdout
    s.delete()


def test_each_interface_of_a_container_keeps_its_default_route(own, sandbox):
    """Whichever of the two goes first, the other stays attached as it was; CHECK, GC and DEL tell them apart."""
    net1 = {"CNI_IFNAME": "net1"}

    def conf(result):
        return {**own.conf, "cniVersion": "1.0.0", "prevResult": {**result, "cniVersion": "1.0.0"}}

    def default_links(s):
        return [line.split("dev ")[1].split()[0] for line in
                run(["ip", "-n", s.ns, "route", "show", "default"]).stdout.splitlines()]
    s = sandbox()
    first, second = s.add(), s.add(env=net1)
    assert first["ips"][0]["address"] != second["ips"][0]["address"]
    assert default_links(s) == ["eth0", "net1"]
    assert s.call("CHECK", conf=conf(first))[0] == 0 and s.call("CHECK", conf=conf(second), env=net1)[0] == 0
    assert s.call("DEL", env=net1)[0] == 0
    assert default_links(s) == ["eth0"]
    assert s.call("CHECK", conf=conf(first))[0] == 0 and s.call("CHECK", conf=conf(second), env=net1)[0] == 1
    second = s.add(env=net1)
    s.delete()
    assert default_links(s) == ["net1"]
    assert s.call("CHECK", conf=conf(second), env=net1)[0] == 0
    first = s.add()
    valid = [{"containerID": s.id, "ifname": "net1"}]
    assert s.call("GC", conf={**own.conf, "cniVersion": "1.1.0", "cni.dev/valid-attachments": valid})[0] == 0
    assert default_links(s) == ["net1"]
    assert s.call("CHECK", conf=conf(first))[0] == 1 and s.call("CHECK", conf=conf(second), env=net1)[0] == 0
    assert s.call("DEL", env=net1)[0] == 0
    assert default_links(s) == []


def test_del_after_the_namespace_is_gone(own, sandbox):
    s = sandbox()
    s.add()
    before = len(own.rules("node1"))
    run(["ip", "netns", "del", s.ns])
    s.delete()
    assert len(own.rules("node1")) < before


def test_check(own, sandbox):
    s = sandbox()
    result = s.add()
    conf = {**own.conf, "cniVersion": "1.0.0", "prevResult": {**result, "cniVersion": "1.0.0"}}
    assert s.call("CHECK", conf=conf)[0] == 0
    run(["ip", "-n", s.ns, "addr", "flush", "dev", "eth0"])
    status, out = s.call("CHECK", conf=conf)
    assert status != 0 and out["code"] and "eth0" in out["msg"] + out.get("details", "")


def test_status_says_whether_an_add_would_succeed(own, sandbox):
    s = sandbox()
    conf = {**own.conf, "cniVersion": "1.1.0"}
    only = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS")
    assert s.call("STATUS", conf=conf, drop=only) == (0, None)
    status, out = s.call("STATUS", conf={**conf, "socket": "/run/tenet/no-such-socket"}, drop=only)
    assert status == 1 and out["code"] == 50
    switch = "ovs" if own.has_ovs("node1") else "node"
    own.cmd(switch, "stop", "node1")
    try:
        wait_for("the agent to notice", lambda: s.call("STATUS", conf=conf, drop=only)[0] == 1)
        assert s.call("STATUS", conf=conf, drop=only)[1]["code"] in (50, 51)
    finally:
        own.cmd(switch, "start", "node1")
    wait_for("the network to be back", lambda: s.call("STATUS", conf=conf, drop=only)[0] == 0)


def test_gc_removes_what_the_runtime_does_not_know(own, sandbox):
    keep, gone = sandbox(pod="keep"), sandbox(pod="gone")
    keep.add()
    gone.add()
    conf = {**own.conf, "cniVersion": "1.1.0",
            "cni.dev/valid-attachments": [{"containerID": keep.id, "ifname": "eth0"}]}
    missing = {k: v for k, v in conf.items() if not k.startswith("cni.dev/")}
    status, out = keep.call("GC", conf=missing)
    assert status == 1 and "valid-attachments" in out["details"]
    ids = own.records("node1")
    assert keep.id in ids and gone.id in ids
    assert keep.call("GC", conf=conf, drop=("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS")) == (0, None)
    ids = own.records("node1")
    assert keep.id in ids and gone.id not in ids
    assert "eth0" in run(["ip", "-n", keep.ns, "-o", "link"]).stdout
    assert "eth0" not in run(["ip", "-n", gone.ns, "-o", "link"]).stdout
    assert keep.call("GC", conf={**conf, "cni.dev/valid-attachments": []})[0] == 0
    assert "eth0" not in run(["ip", "-n", keep.ns, "-o", "link"]).stdout


BAD = [
    ("no JSON", dict(raw="{"), 6),
    ("empty input", dict(raw=""), 6),
    ("an array", dict(raw="[]"), None),
    ("duplicate keys", dict(raw='{"cniVersion":"1.0.0","cniVersion":"0.3.1"}'), 6),
    ("version of the future", dict(conf={"cniVersion": "9.0.0", "name": "n", "type": "tenet-cni"}), 1),
    ("version is a number", dict(conf={"cniVersion": 1, "name": "n", "type": "tenet-cni"}), None),
    ("no name", dict(conf={"cniVersion": "1.0.0", "type": "tenet-cni"}), 7),
    ("no container id", dict(drop=["CNI_CONTAINERID"]), 4),
    ("bad container id", dict(env={"CNI_CONTAINERID": "../x"}), 4),
    ("no netns", dict(drop=["CNI_NETNS"]), 4),
    ("absent netns", dict(env={"CNI_NETNS": "/run/netns/tenet-no-such"}), None),
    ("netns is a pipe", {}, 4),
    ("netns is no namespace", dict(env={"CNI_NETNS": "/etc/hostname"}), None),
    ("no ifname", dict(drop=["CNI_IFNAME"]), 4),
    ("long ifname", dict(env={"CNI_IFNAME": "a" * 16}), 4),
    ("ifname with a slash", dict(env={"CNI_IFNAME": "a/b"}), 4),
    ("no CNI_ARGS", dict(drop=["CNI_ARGS"]), 4),
    ("argument without value", dict(env={"CNI_ARGS": "K8S_POD_NAME"}), 4),
    ("key twice", dict(env={"CNI_ARGS": "K8S_POD_NAMESPACE=red;K8S_POD_NAME=p;K8S_POD_NAMESPACE=blue"}), 4),
    ("no pod name", dict(env={"CNI_ARGS": "K8S_POD_NAMESPACE=red"}), 4),
    ("bad command", dict(command="JUMP"), 4),
]


@pytest.mark.parametrize("what,how,code", BAD, ids=[b[0] for b in BAD])
def test_malformed_input_gets_a_cni_error(own, sandbox, tmp_path, what, how, code):
    s = sandbox()
    before = own.rules("node1")
    how = dict(how)
    if what == "netns is a pipe":
        os.mkfifo(tmp_path / "pipe")
        how["env"] = {"CNI_NETNS": str(tmp_path / "pipe")}
    status, out = s.call(how.pop("command", "ADD"), **how)
    assert status != 0
    assert isinstance(out, dict) and out.get("msg") and isinstance(out.get("code"), int) and out["code"] > 0
    assert code is None or out["code"] == code, out
    assert own.rules("node1") == before
    assert "eth0" not in run(["ip", "-n", s.ns, "-o", "link"]).stdout


def test_unknown_project_is_refused_and_leaves_nothing(own, sandbox):
    before = own.rules("node1")
    s = sandbox(project="nosuch")
    status, out = s.call("ADD")
    assert status != 0 and "nosuch" in out["msg"] + out.get("details", "")
    assert own.rules("node1") == before


def test_agent_not_running(own, sandbox):
    s = sandbox()
    conf = {**own.conf, "socket": "/run/tenet/no-such-socket"}
    status, out = s.call("ADD", conf=conf)
    assert status != 0 and out["code"] == 11 and "tenet" in out["msg"]


def state(own):
    return own.pod_links("node1"), sorted(r["link"] for r in own.records("node1").values()), own.rules("node1")


def test_two_hundred_adds_and_dels_sixteen_at_a_time_leak_nothing(own, sandbox):
    before = state(own)
    addresses = set()

    def cycle(i):
        s = Sandbox(own, pod=f"churn-{i}")
        try:
            ip = s.add()["ips"][0]["address"]
            s.delete()
            return ip
        finally:
            s.remove()

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        addresses = set(pool.map(cycle, range(200)))
    assert len(addresses) > 100  # next-fit: a freed address rests
    wait_for("ports, links and rules to be as before", lambda: state(own) == before)
    # No address leaked: the whole subnet can still be handed out is shown by the small subnet's test below.


def test_a_hundred_pods_at_once_have_different_addresses(own, sandbox):
    """SDN-P-16: 110 pods on a node."""
    boxes = [sandbox(pod=f"many-{i}") for i in range(110)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda s: s.add()["ips"][0]["address"], boxes))
    assert len(set(results)) == 110
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda s: s.delete(), boxes))


def test_exhausted_subnet_says_so_and_leaks_nothing(make_lab):
    """A /29 has 8 addresses: network, broadcast and gateway leave five for pods (B-05)."""
    lab = make_lab("ex", nodes=1, plugin="redhat/openshift-ovs-multitenant", cluster_network="10.128.0.0/24",
                   host_subnet_length=3)
    lab.project("red")
    lab.conf = json.loads(next(pathlib.Path(lab.node("node1")["cniConfDir"]).glob("*.conf")).read_text())
    boxes = [Sandbox(lab, pod=f"e-{i}") for i in range(6)]
    try:
        before = state(lab)
        for round_ in range(3):
            got = {s.add()["ips"][0]["address"] for s in boxes[:5]}
            assert got == {f"10.128.0.{i}/29" for i in range(2, 7)}
            full = state(lab)
            status, out = boxes[5].call("ADD")
            text = out["msg"] + out.get("details", "")
            assert status != 0 and "10.128.0.0/29" in text and "address" in text
            assert state(lab) == full
            for s in boxes[:5]:
                s.delete()
            wait_for("everything to be free again", lambda: state(lab) == before)
    finally:
        for s in boxes:
            s.remove()
        lab.down()
