# SPDX-License-Identifier: Apache-2.0
"""The datapath ebpf: agents that come and go without loss, what a kernel may lack, what is refused and why.

That pods reach whom they may is tested with the others, on mixed nodes (test_matrix.py, test_packets.py)."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import time

import pytest

from lab import TENET, Server, kernel_has, probe, run, wait_for
from test_cni import Sandbox
from test_runtimes import box, chained, cni, shaping  # noqa: F401
from test_runtimes import test_bandwidth_of_the_object_limits_the_pod, test_chain_in_the_configuration  # noqa: F401
from traffic import Traffic

MULTITENANT, SUBNET = "redhat/openshift-ovs-multitenant", "redhat/openshift-ovs-subnet"
POLICY = "redhat/openshift-ovs-networkpolicy"
OUTSIDE = "198.51.100.10"
ONLY_RED = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "only-red", "namespace": "red"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]}}


@pytest.fixture(scope="module")
def own(make_lab):
    lab = make_lab("eb", nodes=2, plugin=MULTITENANT, datapath="ebpf")
    lab.project("red")
    lab.project("blue")
    lab.ip = {n["name"]: n["hostIP"] for n in lab.status()["nodes"]}
    lab.a, lab.b, lab.far = lab.pod("red/a", "node1"), lab.pod("red/b", "node1"), lab.pod("red/far", "node2")
    lab.other = lab.pod("blue/x", "node1")
    lab.conf = json.loads(next(pathlib.Path(lab.node("node1")["cniConfDir"]).glob("*.conf")).read_text())
    yield lab
    lab.down(check=False)


def traffic(lab):
    return Traffic([(lab.a, lab.b), (lab.far, lab.a)], rate=1000)


def in_place(lab, node="node1"):
    """What the agent said last when its programs were in place, as a dictionary."""
    line = [x for x in lab.agent_log(node).splitlines() if "programs are in place" in x][-1]
    return dict(x.split("=", 1) for x in line.split() if "=" in x)


def assert_isolated(lab):
    assert lab.a.can_ping(lab.b.ip) and lab.a.can_ping(lab.far.ip)
    assert not lab.other.can_ping(lab.a.ip, tries=1) and not lab.other.can_ping(lab.far.ip, tries=1)


@contextlib.contextmanager
def configured(lab, node, text):
    """The node's agent with more in its configuration, and as it was again."""
    path = pathlib.Path(lab.node(node)["config"])
    before = path.read_text()
    path.write_text(before + text)
    try:
        lab.cmd("node", "restart", node)
        yield
    finally:
        path.write_text(before)
        lab.cmd("node", "restart", node)


def bpffs(lab, node="node1"):
    return pathlib.Path(lab.node(node)["agentSocket"]).parent / "bpf"


def test_agent_restarted_without_loss(own):
    with traffic(own):
        for how in ("restart", "stop", "kill"):
            pid = own.node("node1")["pid"]
            if how == "kill":
                os.kill(pid, signal.SIGKILL)
                wait_for("the agent to be dead", lambda: not pathlib.Path(f"/proc/{pid}").exists())
            elif how == "stop":
                own.cmd("node", "stop", "node1")
            own.cmd("node", "restart", "node1")
            wait_for("another agent", lambda: own.node("node1")["pid"] not in (0, pid))
    assert in_place(own)["maps"] == "found" and in_place(own)["changes"] == "0"
    assert_isolated(own)


@pytest.mark.skipif(not kernel_has("tcx"), reason="this kernel has no tcx (Linux 6.6)")
def test_pods_that_last_change_their_hook_without_loss(own):
    """From the filter of an ADD to tcx; an agent that comes after finds it, and of a pod that goes nothing stays."""
    def has_filter(link):
        return "tenet-datapath" in own.ns("node1", ["tc", "filter", "show", "dev", link, "ingress"]).stdout
    new = own.pod("red/new", "node1")
    link = next(r["link"] for r in own.records("node1").values() if r["name"] == "new")
    with Traffic([(own.a, new), (new, own.far)], rate=1000):
        wait_for("the upgrade to tcx", lambda: own.has_upgraded_hooks("node1"))
        wait_for("the filter to go", lambda: not has_filter(link))
        own.cmd("node", "restart", "node1")
    assert in_place(own)["changes"] == "0" and link in own.pins("node1")
    assert_isolated(own)
    own.delete_pod("red/new")
    wait_for("its pin to go", lambda: link not in own.pins("node1"))


def test_maps_of_another_version_are_replaced_without_loss(own):
    """What older programs use goes on working until the new ones, which have maps of their own, are complete.  One map has
    another layout, and one another name, whose pin the agent removes."""
    pin, cache = (bpffs(own) / "maps" / f"tenet_{name}" for name in ("routes", "pod_cache"))
    own.cmd("node", "stop", "node1")
    with traffic(own):
        cache.rename(cache.with_name("tenet_near"))
        pin.unlink()
        run(["bpftool", "map", "create", pin, "type", "hash", "key", "4", "value", "4", "entries", "7", "name", "older"])
        own.cmd("node", "start", "node1")
    assert in_place(own)["maps"] == "new"
    assert cache.exists() and not cache.with_name("tenet_near").exists()
    assert_isolated(own)


def assert_found(lab, without=""):
    """The agent uses what this kernel has, and nothing that is denied."""
    said = in_place(lab)
    assert said["hooks"] == ("tcx" if kernel_has("tcx", without) else "clsact")
    for feature in ("redirect_peer", "scrub", "ringbuf", "encap"):
        assert said[feature] == ("yes" if kernel_has(feature, without) else "no"), feature


@pytest.mark.parametrize("without", ["tcx", "scrub", "redirect_peer,ringbuf", "tcx,redirect_peer,ringbuf"])
def test_what_older_kernels_lack(own, without):
    """As Linux 5.10 to 6.5 (no tcx), and before; tools/check-kernels runs it on some.  (Not under traffic: the kernel stops a link for a moment to give it
    its first clsact.)"""
    with configured(own, "node1", f"ebpf:\n  without: {without}\n"):
        with traffic(own):
            own.cmd("node", "restart", "node1")
        assert_found(own, without)
        r = run([TENET, "flows", "--lab", own.name, "--node", "node1", "--for", "1"], check=False)
        tells = kernel_has("ringbuf", without)
        assert r.returncode == (0 if tells else 3) and ("ring buffers" in r.stderr) == (not tells)
        assert_isolated(own)
        near = own.pod("red/near", "node1")
        assert near.can_ping(own.a.ip) and near.can_ping(own.far.ip) and near.can_ping(OUTSIDE)
        own.delete_pod("red/near")
    assert_found(own)
    assert_isolated(own)


@pytest.mark.parametrize("link", ["tun0", "tenet0", "vxlan_tenet"])
def test_links_that_somebody_deletes_come_back(own, link):
    own.ns("node1", ["ip", "link", "del", link])
    wait_for("packets", lambda: own.a.can_ping(own.far.ip, tries=1) and own.a.can_ping(OUTSIDE, tries=1))
    assert own.ns("node1", ["ping", "-n", "-c", "1", "-W", "2", own.a.ip], check=False).returncode == 0
    wait_for("the node to be Ready", lambda: own.node("node1")["ready"])
    assert_isolated(own)


def test_a_change_that_the_kernel_refuses_has_a_reason_of_its_own_and_fails_pods_at_once(own):
    """Another link has the port of the VXLAN link, which is gone: the kernel is there, and refuses to make it."""
    def reasons():
        return {c["reason"] for c in own.object("node", "node1")["status"]["conditions"]}
    pid, sandbox = own.node("node1")["pid"], Sandbox(own, "refused")
    os.kill(pid, signal.SIGSTOP)
    try:
        own.ns("node1", ["ip", "link", "del", "vxlan_tenet"])
        own.ns("node1", ["ip", "link", "add", "tenetx", "type", "vxlan", "id", "5", "dstport", "4789"])
        own.ns("node1", ["ip", "link", "set", "tenetx", "up"])
    finally:
        os.kill(pid, signal.SIGCONT)
    try:
        wait_for("the condition", lambda: "DatapathRefused" in reasons())
        assert int(metrics(own)["tenet_node_switch_refusals_total"]) >= 1
        began = time.monotonic()
        status, out = sandbox.call("ADD")
        assert status != 0 and "the datapath refuses its configuration: " in out["details"], out
        assert time.monotonic() - began < 5
    finally:
        own.ns("node1", ["ip", "link", "del", "tenetx"])
        sandbox.remove()
    wait_for("packets", lambda: own.a.can_ping(own.far.ip, tries=1))
    wait_for("the node to be Ready", lambda: own.node("node1")["ready"])
    assert_isolated(own)


def test_every_switch_between_the_three_plugins_is_without_loss(own):
    """Around all of them, under traffic that each allows."""
    def plugin(name):
        own.kubectl("patch", "clusternetwork", "default", "--type=merge", "-p", json.dumps({"pluginName": name}))

    def reached():
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda p: own.other.can_ping(p.ip, tries=1), (own.a, own.far)))
    own.kubectl("create", "-f", "-", input=json.dumps(ONLY_RED))
    try:
        with traffic(own):
            for name in (SUBNET, POLICY, MULTITENANT, POLICY, SUBNET, MULTITENANT):
                plugin(name)
                if name == SUBNET:
                    wait_for("no isolation", lambda: all(reached()))
                else:
                    wait_for("isolation", lambda: not any(reached()))
                    # A policy leaves the other way open, a VNID does not.
                    wait_for("the way back", lambda: own.a.can_ping(own.other.ip, tries=1) == (name == POLICY))
    finally:
        own.kubectl("delete", "networkpolicy", "-n", "red", "only-red")
        plugin(MULTITENANT)
    wait_for("isolation", lambda: not any(reached()))
    wait_for("the node to be Ready", lambda: own.node("node1")["ready"])


def metrics(lab, node="node1"):
    out = run(["curl", "-sf", "--unix-socket", lab.node(node)["agentSocket"], "http://node/metrics"]).stdout
    return dict(line.rsplit(" ", 1) for line in out.splitlines() if not line.startswith("#"))


def test_drops_are_counted_by_cause(own):
    def mismatches():
        return int(metrics(own)['tenet_node_drops_total{cause="vnid-mismatch"}'])
    before = mismatches()
    assert not own.other.can_ping(own.a.ip, tries=1)
    assert mismatches() == before + 1
    own.cmd("node", "restart", "node1")
    assert mismatches() == before + 1


def test_host_ports_and_limits(own):
    """A port of the host leads to the pod; what goes to a pod is limited, and what it sends, and both are gone with it."""
    box = Sandbox(own, "box")
    server = None
    try:
        conf = dict(own.conf, runtimeConfig={"portMappings": [{"hostPort": 8099, "containerPort": 80, "protocol": "tcp"}],
                                             "bandwidth": {"ingressRate": 8000000, "ingressBurst": 800000,
                                                           "egressRate": 8000000, "egressBurst": 800000}})
        box.add(conf=conf)
        link = next(p for p in (bpffs(own).parent / "pods").glob("*.json")
                    if json.loads(p.read_text())["containerID"] == box.id).stem
        for limited in (link, "tnq" + link[4:]):
            assert "tbf" in own.ns("node1", ["tc", "qdisc", "show", "dev", limited]).stdout
        server = Server(lambda argv: own.ns_popen(f"sb-{box.id[:12]}", argv), "tcp", 80)
        host = own.node("node1")["hostIP"]
        asked = ["/usr/bin/python3", "-c",
                 f"import socket; print(socket.create_connection(('{host}', 8099), 5).recv(64).decode())"]
        assert own.ns("outside", asked).stdout.strip()
        assert probe(own.a, "tcp", [f"{host}:8099"]) != {f"{host}:8099": None}
        own.cmd("node", "restart", "node1")
        assert own.ns("outside", asked).stdout.strip()
        # A trace of it, and what waits for a service, come in where its packets do.
        r = run([TENET, "trace", "--lab", own.name, "-o", "json", "red/box", "red/b"], check=False,
                env={**os.environ, "KUBECONFIG": own.kubeconfig})
        assert json.loads(r.stdout)["verdict"]["agreed"], r.stdout + r.stderr
        box.delete()
        assert link[4:] not in own.ns("node1", ["ip", "-o", "link"]).stdout
    finally:
        if server:
            server.stop()
        box.remove()


def test_pods_records_and_hooks_go_with_the_pods(own):
    run_dir = bpffs(own).parent
    before = sorted(p.name for p in run_dir.glob("bpf/links/*")), sorted(p.name for p in (run_dir / "pods").iterdir())
    for _ in range(3):
        own.pod("red/gone", "node1")
        own.delete_pod("red/gone")
    # One that dies without a word is found by the next agent.
    box = Sandbox(own, "dead")
    box.add()
    own.cmd("node", "stop", "node1")
    run(["ip", "netns", "del", box.ns])
    own.cmd("node", "start", "node1")
    wait_for("nothing to be left", lambda: before == (sorted(p.name for p in run_dir.glob("bpf/links/*")),
                                                      sorted(p.name for p in (run_dir / "pods").iterdir())))


@pytest.mark.parametrize("ours,theirs,kind,said", [
    ("vxlan_tenet", "tenetx", ("vxlan", "id", "5", "dstport", "4789"), "VXLAN port 4789 is taken by the link tenetx"),
    ("tun0", "tun0", ("bridge",), "there is a link tun0 of kind bridge"),
])
def test_links_of_others_are_named_and_left_alone(own, ours, theirs, kind, said):
    own.cmd("node", "stop", "node1")
    own.ns("node1", ["ip", "link", "del", ours])
    own.ns("node1", ["ip", "link", "add", theirs, "type", *kind])
    try:
        out = own.cmd("node", "start", "node1", check=False)
        assert out.returncode != 0 and said in own.agent_log("node1")
        assert kind[0] in own.ns("node1", ["ip", "-d", "link", "show", theirs]).stdout
        assert own.a.can_ping(own.b.ip)  # what was there goes on
    finally:
        own.ns("node1", ["ip", "link", "del", theirs])
        own.cmd("node", "start", "node1")
    wait_for("packets", lambda: own.a.can_ping(own.far.ip, tries=1) and own.a.can_ping(OUTSIDE, tries=1))
    assert_isolated(own)
