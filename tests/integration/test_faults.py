# SPDX-License-Identifier: Apache-2.0
"""Faults: a dead Open vSwitch, a dead master, wrong configuration; nothing is torn down, nothing half set up."""
import json
import os
import pathlib
import signal
import tempfile

import pytest

import lab as lablib
from lab import TENET, run, wait_for


@pytest.fixture(scope="module")
def own(make_lab):
    lab = make_lab("ft", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    lab.project("red")
    lab.pods = [lab.pod("red/a", "node1"), lab.pod("red/b", "node2")]
    yield lab
    lab.down(check=False)


def test_agent_killed_hard(own):
    a, b = own.pods
    before = own.rules("node1")
    pid = own.node("node1")["pid"]
    os.kill(pid, signal.SIGKILL)
    assert a.can_ping(b.ip)  # forwarding goes on without the agent
    own.cmd("node", "restart", "node1")
    assert own.rules("node1") == before
    c = own.pod("red/c", "node1")
    assert c.ip != a.ip and c.can_ping(b.ip)
    own.delete_pod("red/c")


@pytest.mark.ovs_only("its daemons die")
def test_ovs_dies_and_comes_back(own):
    a, b = own.pods
    before = own.flows("node1")
    pid = own.node("node1")["pid"]
    own.cmd("ovs", "kill", "node1")
    wait_for("the agent to notice", lambda: "lost" in own.agent_log("node1").lower()
             or "gone" in own.agent_log("node1").lower())
    assert own.cmd("pod", "add", "red/while-ovs-is-away", "--node", "node1", check=False).returncode != 0
    own.cmd("ovs", "start", "node1")
    wait_for("ports and flows to be back", lambda: a.can_ping(b.ip))
    wait_for("the same flows", lambda: own.flows("node1") == before)
    assert own.node("node1")["pid"] == pid
    assert not [p for p in own.objects("pods", "-n", "red") if p["metadata"]["name"] == "while-ovs-is-away"]
    late = own.pod("red/late", "node1")
    assert late.can_ping(b.ip)
    own.delete_pod("red/late")


def test_master_gone_the_node_goes_on(own):
    a, b = own.pods
    conf = json.loads(next(pathlib.Path(own.node("node1")["cniConfDir"]).glob("*.conf")).read_text())
    node1 = own.ns_name("node1")
    own.cmd("master", "stop")
    sandbox = f"tenet-{own.name}-sb-m"
    run(["ip", "netns", "add", sandbox])
    env = {**lablib.environment(), "CNI_CONTAINERID": "m" * 16, "CNI_NETNS": f"/run/netns/{sandbox}",
           "CNI_IFNAME": "eth0", "CNI_PATH": os.path.dirname(lablib.CNI),
           "CNI_ARGS": "K8S_POD_NAMESPACE=red;K8S_POD_NAME=m"}
    try:
        assert a.can_ping(b.ip)
        add = run(["ip", "netns", "exec", node1, lablib.CNI], env={**env, "CNI_COMMAND": "ADD"}, input=json.dumps(conf))
        ip = json.loads(add.stdout)["ips"][0]["address"].split("/")[0]
        assert b.can_ping(ip)
        run(["ip", "netns", "exec", node1, lablib.CNI], env={**env, "CNI_COMMAND": "DEL"}, input=json.dumps(conf))
    finally:
        run(["ip", "netns", "del", sandbox], check=False)
        own.cmd("master", "start")
    own.project("after")
    late = own.pod("after/x", "node1")
    assert not late.can_ping(b.ip, tries=1)
    own.cmd("project", "delete", "after")


def test_registry_survives_the_master(own):
    """SDN-M-01: the same registry after a restart, also a hard one."""
    def registry():
        return [(o["metadata"]["name"], o["metadata"]["uid"], o.get("subnet"), o.get("netid"))
                for kind in ("nodes", "hostsubnets", "netnamespaces", "clusternetworks") for o in own.objects(kind)]
    before = registry()
    own.cmd("master", "restart")
    assert registry() == before
    own.cmd("master", "kill")
    own.cmd("master", "start")
    assert registry() == before


def test_node_whose_subnet_is_gone_stops_with_a_message(own):
    own.cmd("node", "add", "node3", timeout=120)
    node = own.node("node3")
    own.kubectl("delete", "node", "node3")
    wait_for("the agent to stop", lambda: not own.node("node3")["pid"])
    log = pathlib.Path(node["log"]).read_text(errors="replace")
    assert "HostSubnet" in log and "node3" in log
    assert not list(pathlib.Path(node["cniConfDir"]).glob("*.conf"))
    own.cmd("node", "delete", "node3", timeout=120)


# --- a node that must refuse to start ---

@pytest.fixture
def node_config(own):
    """Function that runs `tenet node` in node1's namespace with changed configuration; the lab's agent is not touched."""
    base = pathlib.Path(own.node("node1")["config"]).read_text()
    folder = tempfile.TemporaryDirectory(prefix="tenet-config-")  # readable also without privileges
    tmp_path = pathlib.Path(folder.name)

    def start(change, netns=None, argv=(), user=None, timeout=30):
        text = change(base)
        path = tmp_path / "node-config.yaml"
        path.write_text(text)
        os.chmod(tmp_path, 0o755)
        cmd = [TENET, "node", "--config", path, *argv]
        if user:
            cmd = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *cmd]
        return run(["ip", "netns", "exec", netns or own.ns_name("node1"), *cmd], check=False, timeout=timeout)
    yield start
    folder.cleanup()


def refused(r, *words):
    text = r.stdout + r.stderr
    assert r.returncode != 0, text
    for word in words:
        assert word in text, f"{word!r} not in: {text}"


def test_malformed_configuration_names_the_key(node_config):
    refused(node_config(lambda t: t + "\nnetworkConfig: [\n"), "node-config.yaml")
    refused(node_config(lambda t: t + "\nnoSuchKey: 1\n"), "noSuchKey")
    refused(node_config(lambda t: t.replace("nodeIP:", "nodeIP: 300.1.1.1 #")), "nodeIP")


def test_unknown_plugin_names_what_is_accepted(node_config):
    r = node_config(lambda t: t, argv=["--plugin", "redhat/no-such"])
    refused(r, "no-such", "ovs-multitenant")


def test_missing_privileges(node_config):
    refused(node_config(lambda t: t, user="65534"), "CAP_NET_ADMIN")


def test_taken_vxlan_port(make_lab):
    """A foreign VXLAN device on the port: the message names it, and nothing is set up."""
    lab = make_lab("vx", nodes=1)
    try:
        lab.cmd("node", "stop", "node1")
        ns = lab.ns_name("node1")
        lab.take_away_datapath("node1")
        for table in ("tenet", "tenet-services"):
            run(["ip", "netns", "exec", ns, "nft", "delete", "table", "ip", table])
        run(["ip", "-n", ns, "link", "add", "foreign0", "type", "vxlan", "id", "7", "dstport", "4789", "dev", "lo"])
        r = run(["ip", "netns", "exec", ns, TENET, "node", "--config", lab.node("node1")["config"]], check=False)
        refused(r, "4789", "foreign0")
        links = lab.ns("node1", ["ip", "-br", "link"]).stdout
        assert "br0" not in links and "tun0" not in links and "vxlan_tenet" not in links
        assert "tenet" not in lab.ns("node1", ["nft", "list", "tables"]).stdout
        run(["ip", "-n", ns, "link", "del", "foreign0"])
        lab.cmd("node", "start", "node1")
        wait_for("the gateway", lambda: "tun0" in lab.ns("node1", ["ip", "-br", "link"]).stdout)
    finally:
        lab.down()


def test_address_clash(make_lab):
    """The node has an address inside the cluster network on a link that is not ours."""
    lab = make_lab("cl", nodes=1)
    try:
        lab.cmd("node", "stop", "node1")
        ns = lab.ns_name("node1")
        run(["ip", "-n", ns, "link", "add", "dum0", "type", "bridge"])
        run(["ip", "-n", ns, "addr", "add", "10.129.0.7/16", "dev", "dum0"])
        r = run(["ip", "netns", "exec", ns, TENET, "node", "--config", lab.node("node1")["config"]], check=False)
        refused(r, "10.129.0", "dum0", "10.128.0.0/14")
    finally:
        lab.down()
