# SPDX-License-Identifier: Apache-2.0
"""What a node sets up, and how it follows the registry: nodes that come, go, move, and ghosts."""
import json
import re
import urllib.request

import pytest

from lab import wait_for
from traffic import Traffic


def test_devices_ports_and_routes(cluster):
    """SDN-N-02, 05, 08, 09, 10, 11: br0 with vxlan0 as port 1 and tun0 as port 2, or links with programs; the gateway on tun0."""
    for node in cluster.status()["nodes"]:
        name = node["name"]
        if cluster.has_ovs(name):
            assert cluster.vsctl(name, "get", "interface", "vxlan0", "ofport") == "1"
            assert cluster.vsctl(name, "get", "interface", "tun0", "ofport") == "2"
            assert cluster.vsctl(name, "get", "interface", "vxlan0", "type") == "vxlan"
            options = cluster.vsctl(name, "get", "interface", "vxlan0", "options")
            assert 'remote_ip=flow' in options and 'key=flow' in options
            assert cluster.vsctl(name, "get", "bridge", "br0", "fail_mode") == "secure"
        else:
            tunnel = cluster.ns(name, ["ip", "-d", "link", "show", "vxlan_tenet"]).stdout
            assert "vxlan external" in tunnel and "dstport 4789" in tunnel
        network, length = node["subnet"].split("/")
        gateway = network.rsplit(".", 1)[0] + ".1"
        address = cluster.ns(name, ["ip", "-4", "addr", "show", "tun0"]).stdout
        assert f"inet {gateway}/{length}" in address
        route = cluster.ns(name, ["ip", "-4", "route", "show", "dev", "tun0"]).stdout
        assert "10.128.0.0/14 scope link" in re.sub(r"proto \S+ ", "", route)
        assert cluster.ns(name, ["cat", "/proc/sys/net/ipv4/ip_forward"]).stdout.strip() == "1"
        table = cluster.ns(name, ["nft", "list", "table", "ip", "tenet"]).stdout
        assert "masquerade" in table


def test_subnets_are_in_the_seeds_order(cluster):
    subnets = [n["subnet"] for n in sorted(cluster.status()["nodes"], key=lambda n: n["subnet"])]
    assert subnets[:3] == ["10.128.0.0/23", "10.128.2.0/23", "10.128.4.0/23"]


def test_a_host_that_is_only_a_master_gets_nothing(cluster):
    """SDN-M-11."""
    links = cluster.ns("master", ["ip", "-o", "link"]).stdout
    assert "br0" not in links and "tun0" not in links and "vxlan" not in links
    assert "10.128.0.0" not in cluster.ns("master", ["ip", "route"]).stdout
    assert cluster.ns("master", ["nft", "list", "tables"]).stdout.strip() == ""


def test_pod_side(cluster):
    """SDN-P-14, SDN-P-15: eth0 in the pod, its link on a port of br0, default route to the gateway, MAC from the address."""
    pod = cluster.pods[0]
    node = cluster.node(pod.node)
    link = pod.ns(["ip", "-4", "-o", "addr", "show", "eth0"]).stdout
    assert f"{pod.ip}/{node['subnet'].split('/')[1]}" in link
    gateway = node["subnet"].split("/")[0].rsplit(".", 1)[0] + ".1"
    assert f"default via {gateway} dev eth0" in pod.ns(["ip", "route"]).stdout
    mac = "0a:58:" + ":".join(f"{int(o):02x}" for o in pod.ip.split("."))
    assert mac in pod.ns(["ip", "link", "show", "eth0"]).stdout
    mine, = [r for r in cluster.records(pod.node).values() if (r["namespace"], r["name"]) == (pod.project, pod.name)]
    assert mine["link"] in cluster.pod_links(pod.node)
    # With Open vSwitch it is the other end of the switch's port, and in the pod.
    assert (mine["link"] in cluster.ns(pod.node, ["ip", "-br", "link"]).stdout) != cluster.has_ovs(pod.node)
    assert mine["ip"] == pod.ip and mine["vnid"] == pod.vnid


def test_rules_decide(cluster):
    """SDN-G-07: without the pod's flows, or its entry, nothing arrives, though link and routes are whole; the agent mends it."""
    a, b = cluster.pods[0], cluster.pods[1]
    assert a.can_ping(b.ip)
    before = cluster.rules(b.node)
    if cluster.has_ovs(b.node):
        cluster.ns(b.node, ["ovs-ofctl", "-O", "OpenFlow14", "del-flows",
                            f"unix:{cluster.ovs_rundir(b.node)}/br0.mgmt", f"ip,nw_dst={b.ip}"])
    else:
        cluster.change_maps(b.node, cluster.without_pod(b.node, b.ip))
    assert not a.can_ping(b.ip)
    cluster.cmd("node", "restart", b.node)
    wait_for("it to be back", lambda: cluster.rules(b.node) == before)
    assert a.can_ping(b.ip)


def test_restart_of_the_agent_changes_nothing(cluster):
    """SDN-N-24, and no packet is lost meanwhile."""
    a, b = next(p for p in cluster.pods if p.ref == "red/red-1"), next(p for p in cluster.pods if p.ref == "red/red-2")
    before = cluster.rules("node2")
    pid = cluster.node("node2")["pid"]
    ping = a.popen(["ping", "-n", "-q", "-i", "0.05", "-c", "60", b.ip])
    cluster.cmd("node", "restart", "node2")
    wait_for("another agent to be ready", lambda: cluster.node("node2")["pid"] not in (0, pid))
    out = ping.communicate(timeout=60)[0]
    assert " 0% packet loss" in out, out
    assert cluster.rules("node2") == before


@pytest.fixture(scope="module")
def own(make_lab):
    """A cluster of this module's own: its nodes come and go."""
    lab = make_lab("nd", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    lab.project("red")
    lab.pods = [lab.pod("red/a", "node1"), lab.pod("red/b", "node2")]
    yield lab
    lab.down(check=False)


def test_node_added_and_deleted_while_traffic_runs(own):
    """SDN-M-02, M-04, M-19, M-20, SDN-N-18, N-19."""
    a, b = own.pods
    before = own.rules("node1")
    with Traffic([(a, b)], rate=300):
        own.cmd("node", "add", "node3", timeout=120)
        c = own.pod("red/c", "node3")
        assert a.can_ping(c.ip) and c.can_ping(b.ip)
        subnet3, host3 = own.node("node3")["subnet"], own.node("node3")["hostIP"]
        assert any(subnet3.split("/")[0] in f for f in own.rules("node1"))
        own.cmd("node", "delete", "node3", timeout=120)
        wait_for("node1 to forget node3", lambda: own.rules("node1") == before)
        assert not [s for s in own.objects("hostsubnets") if s["host"] == "node3"]
    # A later node may get the subnet again; it gets one that nobody has.
    own.cmd("node", "add", "node3", timeout=120)
    subnets = [s["subnet"] for s in own.objects("hostsubnets")]
    assert len(set(subnets)) == 3
    own.cmd("node", "delete", "node3", timeout=120)
    assert host3 not in "".join(own.rules("node1"))


def test_ghost_hostsubnet_is_a_vtep_like_any_other(own):
    """SDN-M-23, SDN-N-25: an F5's HostSubnet, with the VNID that its annotation fixes."""
    manifest = {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "host": "f5", "hostIP": "10.245.2.200",
                "subnet": "10.131.250.0/23",
                "metadata": {"name": "f5", "annotations": {"pod.network.openshift.io/fixed-vnid-host": "0"}}}
    own.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(manifest))
    try:
        flow = wait_for("flows to the ghost", lambda: [
            f for f in own.rules("node1") if "10.131.250.0/23" in f and "10.245.2.200" in f])
        assert flow
    finally:
        own.kubectl("delete", "hostsubnet", "f5")
    wait_for("the ghost's flows to go", lambda: not [f for f in own.rules("node1") if "10.131.250.0" in f])


def test_changed_node_address_is_followed(own):
    """A node's changed address updates its HostSubnet, and the other nodes their tunnels; the subnet stays."""
    ghost = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "moving"},
             "status": {"addresses": [{"type": "InternalIP", "address": "10.245.2.210"}]}}
    own.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(ghost))
    try:
        def subnet_of():
            found = [s for s in own.objects("hostsubnets") if s["host"] == "moving"]
            return found[0] if found else None
        first = wait_for("a subnet", subnet_of)
        wait_for("flows", lambda: [f for f in own.rules("node1") if first["subnet"] in f])
        body = {"status": {"addresses": [{"type": "InternalIP", "address": "10.245.2.211"}]}}
        request = urllib.request.Request(own.status()["server"] + "/api/v1/nodes/moving/status", method="PATCH",
                                         data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/merge-patch+json"})
        assert urllib.request.urlopen(request, timeout=30).status == 200
        second = wait_for("the new address", lambda: (subnet_of() or {}).get("hostIP") == "10.245.2.211" and subnet_of())
        assert second["subnet"] == first["subnet"]
        wait_for("flows to follow", lambda: [f for f in own.rules("node1") if "10.245.2.211" in f]
                 and not [f for f in own.rules("node1") if "10.245.2.210" in f])
    finally:
        own.kubectl("delete", "node", "moving")
    wait_for("its subnet to go", lambda: not subnet_of())


def test_changed_vnid_moves_running_pods(own):
    """OMT-13: an administrator writes another VNID; running pods follow, in what they are judged by and what is stored."""
    own.project("other")
    a, c = own.pods[0], own.pod("other/c", "node2")
    try:
        assert not a.can_ping(c.ip, tries=1)
        net = own.object("netnamespace", "other")
        own.kubectl("patch", "netnamespace", "other", "--type=merge", "-p", json.dumps({"netid": a.vnid}))
        wait_for("the two to meet", lambda: a.can_ping(c.ip, tries=1))
        own.kubectl("patch", "netnamespace", "other", "--type=merge", "-p", json.dumps({"netid": net["netid"]}))
        wait_for("the two to part", lambda: not a.can_ping(c.ip, tries=1))
    finally:
        own.cmd("project", "delete", "other")
