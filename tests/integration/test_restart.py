# SPDX-License-Identifier: Apache-2.0
"""Restart and upgrade without loss, under a thousand packets a second and open connections; Open vSwitch that goes
and comes back; the host that is started anew."""
import json
import os
import pathlib
import re
import signal
import socket
import tempfile

import pytest

from lab import TENET, run, wait_for
from test_cni import Sandbox
from traffic import Connection, Traffic


@pytest.fixture(scope="module")
def own(make_lab):
    """Pairs of pods on one node and across nodes, and a project apart."""
    lab = make_lab("rs", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    lab.project("red")
    lab.project("blue")
    lab.a, lab.b, lab.far = lab.pod("red/a", "node1"), lab.pod("red/b", "node1"), lab.pod("red/far", "node2")
    lab.other = lab.pod("blue/x", "node1")
    yield lab
    lab.down(check=False)


def traffic(lab):
    return Traffic([(lab.a, lab.b), (lab.far, lab.a)], rate=1000)


def assert_as_before(lab, rules):
    wait_for("the same rules", lambda: lab.rules("node1") == rules)
    assert not lab.other.can_ping(lab.a.ip, tries=1)


def restarted(lab, how):
    pid = lab.node("node1")["pid"]
    if how == "kill":
        os.kill(pid, signal.SIGKILL)
        wait_for("the agent to be dead", lambda: not pathlib.Path(f"/proc/{pid}").exists())
    elif how == "stop":
        lab.cmd("node", "stop", "node1")
    lab.cmd("node", "restart", "node1")
    wait_for("another agent", lambda: lab.node("node1")["pid"] not in (0, pid))


@pytest.mark.parametrize("how", ["restart", "stop", "kill"])
def test_agent_restarted_without_loss(own, how):
    rules = own.rules("node1")
    with traffic(own):
        for _ in range(3):
            restarted(own, how)
    assert_as_before(own, rules)


def older_pipeline(flows, shift):
    """The same network as another version might have it: tables elsewhere, other cookies and priorities."""
    def table(n):
        return int(n) + shift if int(n) else 0
    out = []
    for f in flows:
        f = re.sub(r"cookie=0x[0-9a-f]+", "cookie=0x7", f)
        f = re.sub(r"table=(\d+)", lambda m: f"table={table(m[1])}", f)
        f = re.sub(r"goto_table:(\d+)", lambda m: f"goto_table:{table(m[1])}", f)
        f = re.sub(r"priority=(\d+)", lambda m: f"priority={int(m[1]) + 7}", f)
        out.append(f.strip())
    return "\n".join(out) + "\n"


@pytest.mark.ovs_only("another version's flows")
def test_upgrade_from_another_pipeline_without_loss(own):
    """What an older version left in br0 is replaced in one bundle when the newer one starts."""
    flows = own.flows("node1")
    mgmt = f"unix:{own.ovs_rundir('node1')}/br0.mgmt"
    with tempfile.NamedTemporaryFile("w", suffix=".flows") as file, traffic(own):
        for shift in (100, 3):  # no table in common; some of the same numbers for other things
            own.cmd("node", "stop", "node1")
            file.seek(0)
            file.truncate()
            file.write(older_pipeline(flows, shift))
            file.flush()
            own.ns("node1", ["ovs-ofctl", "-O", "OpenFlow14", "--bundle", "replace-flows", mgmt, file.name])
            assert not set(own.flows("node1")) & set(flows)
            assert own.a.can_ping(own.far.ip)  # the older version works
            own.cmd("node", "start", "node1")
            wait_for("the flows of this version", lambda: own.flows("node1") == flows)
    assert_as_before(own, flows)


def ovs_pid(lab, daemon):
    return int((pathlib.Path(lab.ovs_rundir("node1")) / f"{daemon}.pid").read_text())


def kill_ovs(lab, *daemons):
    for daemon in daemons:
        pid = ovs_pid(lab, daemon)
        os.kill(pid, signal.SIGKILL)
        wait_for(f"{daemon} to be dead", lambda: not pathlib.Path(f"/proc/{pid}").exists())


@pytest.mark.ovs_only("its daemons die")
@pytest.mark.parametrize("daemons", [["ovs-vswitchd"], ["ovsdb-server"], ["ovs-vswitchd", "ovsdb-server"]])
def test_open_vswitch_comes_back_with_ports_and_flows(own, daemons):
    """Packets stop with the switch (the userspace datapath stops without its database, too); connections do not
    end, and the ports keep their numbers."""
    flows = own.flows("node1")
    ports = own.ports("node1")
    pid = own.node("node1")["pid"]
    connections = [Connection(own.a, own.b, 7200), Connection(own.far, own.a, 7201)]
    try:
        kill_ovs(own, *daemons)
        own.cmd("ovs", "start", "node1")
        wait_for("packets", lambda: own.a.can_ping(own.b.ip, tries=1) and own.far.can_ping(own.a.ip, tries=1))
    except BaseException:
        for c in connections:
            c.kill()
        raise
    assert_as_before(own, flows)
    for c in connections:
        c.assert_never_cut()
    assert own.ports("node1") == ports
    assert own.node("node1")["pid"] == pid


def without_links(rules):
    """The node's own, which a reboot makes anew."""
    return [r for r in rules if not r.startswith("settings ")]


def test_reboot_frees_what_is_gone(make_lab):
    """The host comes back with its Open vSwitch database and without its devices: the pods' ports, flows (or entries) and
    addresses are free, all of them."""
    lab = make_lab("rb", nodes=1, plugin="redhat/openshift-ovs-multitenant", host_subnet_length=3)
    boxes = []
    try:
        lab.project("red")
        lab.conf = json.loads(next(pathlib.Path(lab.node("node1")["cniConfDir"]).glob("*.conf")).read_text())

        def fill():
            boxes[:] = [Sandbox(lab, f"p{i}") for i in range(5)]
            return sorted(s.add()["ips"][0]["address"] for s in boxes)

        rules = lab.rules("node1")
        for _ in range(3):
            addresses = fill()
            assert len(set(addresses)) == 5
            one_more = Sandbox(lab, "more")
            status, out = one_more.call("ADD")
            assert status != 0 and "no free address" in json.dumps(out)
            one_more.remove()
            # The power goes: nothing is told anybody, links die with their namespaces and the host's.
            lab.power_off("node1")
            for s in boxes:
                run(["ip", "netns", "del", s.ns])
            wait_for("the links to be gone", lambda: not lab.pod_links("node1"))
            lab.power_on("node1")
            wait_for("the ports to go", lambda: not lab.ports("node1"))
            wait_for("the rules to go", lambda: without_links(lab.rules("node1")) == without_links(rules))
    finally:
        for s in boxes:
            run(["ip", "netns", "del", s.ns], check=False)
        lab.down(check=False)


def answers(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


def test_run_directory_is_private_and_what_a_dead_agent_left_is_replaced(own, tmp_path):
    """Three states of the folder of the CNI socket: absent, open to others with a stale socket in it, a file."""
    own.cmd("node", "stop", "node1")
    config = own.node("node1")["config"]
    try:
        for case in ("absent", "stale"):
            folder = tmp_path / case
            if case == "stale":
                folder.mkdir(mode=0o755)
                with socket.socket(socket.AF_UNIX) as s:
                    s.bind(str(folder / "cni.sock"))
            agent = own.ns_popen("node1", [TENET, "node", "--config", config, "--run-dir", folder])
            try:
                wait_for("the socket", lambda: answers(folder / "cni.sock") or agent.poll() is not None)
                assert agent.poll() is None, agent.stdout.read()
                assert folder.stat().st_mode & 0o777 == 0o700
                assert (folder / "cni.sock").stat().st_mode & 0o077 == 0
            finally:
                agent.terminate()
                agent.communicate(timeout=30)
            assert not (folder / "cni.sock").exists()
        (tmp_path / "file").write_text("")
        r = own.ns("node1", [TENET, "node", "--config", config, "--run-dir", tmp_path / "file"], check=False)
        assert r.returncode == 1 and str(tmp_path / "file") in r.stdout + r.stderr
    finally:
        own.cmd("node", "start", "node1")
    assert own.a.can_ping(own.far.ip)
