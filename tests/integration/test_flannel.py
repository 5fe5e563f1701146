# SPDX-License-Identifier: Apache-2.0
"""The plug-in flannel with the datapath hostgw: pods are reached by routes of the hosts, without a tunnel."""
import json
import os
import re
import signal

import pytest

from lab import TENET, Server, probe, run, wait_for
from test_packets import Capture

OUTSIDE = "198.51.100.10"
FIRST, SECOND = "10.245.2.3", "10.245.2.4"  # addresses that a lab gives to its first two nodes


def host_subnet(lab, name, address, subnet):
    lab.kubectl("create", "--validate=false", "-f", "-", input=json.dumps({
        "apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "host": name, "hostIP": address, "subnet": subnet,
        "metadata": {"name": name}}))


def routes(lab, node):
    return [line.rstrip() for line in lab.ns(node, ["ip", "-4", "route"]).stdout.splitlines()]


@pytest.fixture(scope="module")
def routed(make_lab):
    """Two nodes with the subnets of the documents, and pods of two projects."""
    lab = make_lab("fl", nodes=0, plugin="flannel", datapath="hostgw", cluster_network="10.1.0.0/16", host_subnet_length=8)
    host_subnet(lab, "node1", FIRST, "10.1.15.0/24")
    host_subnet(lab, "node2", SECOND, "10.1.20.0/24")
    lab.cmd("node", "add", "node1", timeout=120)
    lab.cmd("node", "add", "node2", timeout=120)
    lab.project("red")
    lab.project("blue")
    lab.a, lab.near, lab.far = lab.pod("red/a", "node1"), lab.pod("blue/near", "node1"), lab.pod("red/far", "node2")
    return lab


def test_route_tables_are_those_of_the_documents(routed):
    """FLN-05, 09, 10, 11, 13: a route to each other node's subnet by its address; docker0 with the first address."""
    assert [r for r in routes(routed, "node1") if not r.startswith("10.245")] == [
        "default via 10.245.2.254 dev eth0 proto static",
        "10.1.15.0/24 dev docker0 proto kernel scope link src 10.1.15.1",
        f"10.1.20.0/24 via {SECOND} dev eth0"]
    assert [r for r in routes(routed, "node2") if not r.startswith("10.245")] == [
        "default via 10.245.2.254 dev eth0 proto static",
        f"10.1.15.0/24 via {FIRST} dev eth0",
        "10.1.20.0/24 dev docker0 proto kernel scope link src 10.1.20.1"]
    for node, gateway in (("node1", "10.1.15.1"), ("node2", "10.1.20.1")):
        assert f"inet {gateway}/24" in routed.ns(node, ["ip", "-4", "addr", "show", "docker0"]).stdout
        assert (routed.folder(node) / "run/subnet.env").read_text() == (
            f"FLANNEL_NETWORK=10.1.0.0/16\nFLANNEL_SUBNET={gateway}/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n")


def test_no_component_of_the_switch_runs(routed):
    """FLN-01, CNI-07: neither Open vSwitch's links nor programs of the other datapaths are there."""
    links = routed.ns("node1", ["ip", "-o", "link"]).stdout
    assert "docker0" in links
    assert not re.search(r"\b(br0|tun0|vxlan\w*|lbr0)\b", links)


def test_packets_between_nodes_are_as_the_pods_sent_them(routed):
    """FLN-02, 03, 06, 07, CNI-08: no UDP 4789 and no other header; every pod reaches every pod, with its own address."""
    server = Server(routed.far.popen, "tcp", 9000)
    try:
        with Capture(lambda argv: routed.ns_popen("node1", argv), "eth0", "udp") as tunnels, \
                Capture(lambda argv: routed.ns_popen("node1", argv), "eth0", f"host {routed.far.ip}") as plain:
            for pod in (routed.a, routed.near):
                assert pod.can_ping(routed.far.ip) and routed.far.can_ping(pod.ip)
                assert probe(pod, "tcp", [f"{routed.far.ip}:9000"]) == {f"{routed.far.ip}:9000": pod.ip}
            assert routed.a.can_ping(routed.near.ip)
            assert routed.a.ns(["ping", "-c", "1", "-W", "2", routed.far.ip]).returncode == 0
    finally:
        server.stop()
    assert "4789" not in tunnels.text()
    assert f"{routed.a.ip} > {routed.far.ip}" in plain.text()
    assert " ethertype IPv4" in plain.text()


def test_outside_sees_the_node(routed):
    server = Server(lambda argv: routed.ns_popen("outside", argv), "tcp", 9000)
    try:
        for pod, node in ((routed.a, FIRST), (routed.far, SECOND)):
            assert probe(pod, "tcp", [f"{OUTSIDE}:9000"]) == {f"{OUTSIDE}:9000": node}
    finally:
        server.stop()


def test_services_lead_to_pods_of_both_nodes_and_of_the_own(routed):
    """A service is translated by the client's host, also when client and endpoint share the bridge or are one pod."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "red"},
               "spec": {"ports": [{"port": 80, "targetPort": 9000}]}}
    ip = json.loads(routed.kubectl("create", "-o", "json", "-f", "-", input=json.dumps(service)).stdout)["spec"]["clusterIP"]
    servers = [Server(p.popen, "tcp", 9000) for p in (routed.a, routed.far)]
    try:
        for endpoint in (routed.a, routed.far):
            routed.kubectl("apply", "-f", "-", input=json.dumps({
                "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web", "namespace": "red"},
                "subsets": [{"addresses": [{"ip": endpoint.ip}], "ports": [{"port": 9000}]}]}))
            for client in (routed.a, routed.near, routed.far):
                wait_for(f"{endpoint} to serve {client}",
                         lambda: endpoint.ip in _endpoint_of(routed, client, ip) and probe(client, "tcp", [f"{ip}:80"])[f"{ip}:80"])
    finally:
        for s in servers:
            s.stop()
        routed.kubectl("delete", "-n", "red", "service/web")


def _endpoint_of(lab, client, ip):
    """The rules of the client's node that translate the service's address."""
    out = lab.ns(client.node, ["nft", "list", "map", "ip", "tenet-services", "endpoints"]).stdout
    return "".join(re.findall(rf"{re.escape(ip)} \. .*?: [\d.]+ \. \d+", out))


def test_a_pod_cannot_take_another_nodes_address(routed):
    """The host drops packets of its pods whose source is no address of its subnet, and those to its loopback."""
    a = routed.a
    count = lambda name: int(re.search(name + r" {\s+packets (\d+)", routed.ns("node1", ["nft", "list", "counters", "table", "ip",
                                                                                       "tenet"]).stdout)[1])  # noqa: E731
    before = count("spoofed")
    a.ns(["ip", "addr", "add", "10.1.20.77/32", "dev", "eth0"])
    try:
        assert not a.can_ping(routed.far.ip, extra=("-I", "10.1.20.77"))
        assert count("spoofed") > before
    finally:
        a.ns(["ip", "addr", "del", "10.1.20.77/32", "dev", "eth0"])
    assert a.can_ping(routed.far.ip)


def test_hosts_reach_pods_of_every_node(routed):
    for node in ("node1", "node2"):
        for pod in (routed.a, routed.far):
            routed.ns(node, ["ping", "-c", "1", "-W", "2", pod.ip])


def test_a_machine_that_is_no_node_is_not_forwarded_to_pods(routed):
    routed.ns("outside", ["ip", "route", "add", "10.1.15.0/24", "via", FIRST])
    try:
        assert routed.ns("outside", ["ping", "-c", "1", "-W", "1", routed.a.ip], check=False).returncode != 0
        assert routed.ns("outside", ["ping", "-c", "1", "-W", "1", FIRST]).returncode == 0
    finally:
        routed.ns("outside", ["ip", "route", "del", "10.1.15.0/24"])


def test_routes_are_healed_after_a_link_was_down(routed):
    """The kernel forgets routes of a link that goes down, and does not say so."""
    want = routes(routed, "node1")
    default = next(r for r in want if r.startswith("default"))
    routed.ns("node1", ["ip", "link", "set", "eth0", "down"])
    assert not [r for r in routes(routed, "node1") if "eth0" in r]
    routed.ns("node1", ["ip", "link", "set", "eth0", "up"])
    routed.ns("node1", ["ip", "route", "replace", *default.split()])
    wait_for("the routes", lambda: routes(routed, "node1") == want)
    wait_for("packets", lambda: routed.a.can_ping(routed.far.ip))


def test_routes_of_others_are_repaired_and_foreign_ones_kept(routed):
    want = routes(routed, "node1")
    routed.ns("node1", ["ip", "route", "del", "10.1.20.0/24"])
    wait_for("the deleted route", lambda: routes(routed, "node1") == want)
    routed.ns("node1", ["ip", "route", "replace", "10.1.20.0/24", "via", "10.245.2.254"])
    wait_for("the former gateway", lambda: routes(routed, "node1") == want)
    routed.ns("node1", ["ip", "route", "add", "10.1.99.0/24", "via", SECOND])
    routed.ns("node1", ["ip", "route", "add", "10.2.0.0/16", "via", SECOND])
    try:
        wait_for("the stale route to go", lambda: not [r for r in routes(routed, "node1") if r.startswith("10.1.99.")])
        assert [r for r in routes(routed, "node1") if r.startswith("10.2.0.0/16")]
    finally:
        routed.ns("node1", ["ip", "route", "del", "10.2.0.0/16"])


def test_a_node_comes_and_goes(routed):
    """FLN-04, 08, 12: its subnet is published, the others have a route to it, and have none when it left."""
    host_subnet(routed, "peer", "10.245.2.90", "10.1.30.0/24")
    wait_for("a route", lambda: "10.1.30.0/24 via 10.245.2.90 dev eth0" in routes(routed, "node2"))
    routed.kubectl("delete", "hostsubnet", "peer")
    wait_for("no route", lambda: not [r for r in routes(routed, "node2") if r.startswith("10.1.30.")])


def test_a_node_that_is_no_neighbour_is_reported(routed):
    """FLN-13: host-gw needs hosts on one network."""
    host_subnet(routed, "distant", "203.0.113.9", "10.1.31.0/24")
    try:
        wait_for("the log", lambda: "203.0.113.9, which has 10.1.31.0/24, is on no network of this host" in routed.agent_log("node1"))
        assert routed.a.can_ping(routed.far.ip)
        assert not [r for r in routes(routed, "node1") if r.startswith("10.1.31.")]
    finally:
        routed.kubectl("delete", "hostsubnet", "distant")
    wait_for("all to be reached", lambda: "all nodes are reached" in routed.agent_log("node1"))


def test_lease_and_routes_outlast_the_master_and_the_agent(routed):
    """Packets flow without either, an agent that starts again finds its pods, and a stale route of a dead node goes."""
    want = routes(routed, "node1")
    routed.cmd("master", "stop")
    try:
        assert routes(routed, "node1") == want
        assert routed.a.can_ping(routed.far.ip)
        routed.ns("node1", ["ip", "route", "del", "10.1.20.0/24"])
        wait_for("the route, without a master", lambda: routes(routed, "node1") == want)
    finally:
        routed.cmd("master", "start", timeout=120)
    os.kill(routed.node("node1")["pid"], signal.SIGKILL)
    assert routed.a.can_ping(routed.far.ip)
    routed.ns("node1", ["ip", "route", "add", "10.1.98.0/24", "via", SECOND])
    routed.cmd("node", "start", "node1", timeout=120)
    wait_for("the stale route to go", lambda: routes(routed, "node1") == want)
    assert {r["ip"] for r in routed.records("node1").values()} == {routed.a.ip, routed.near.ip}
    late = routed.pod("red/late", "node1")
    try:
        assert late.ip not in (routed.a.ip, routed.near.ip) and late.can_ping(routed.far.ip)
    finally:
        routed.delete_pod("red/late")
    assert not [r for r in routed.records("node1").values() if r["name"] == "late"]


def test_a_bridge_that_was_removed_is_made_again(routed):
    routed.ns("node2", ["ip", "link", "del", "docker0"])
    wait_for("packets", lambda: routed.a.can_ping(routed.far.ip))
    wait_for("the table", lambda: "10.1.20.0/24 dev docker0 proto kernel scope link src 10.1.20.1" in routes(routed, "node2"))


def test_isolation_is_refused_with_the_reason(routed):
    """VNIDs and NetworkPolicies have no effect on routes, so nothing seems to have one."""
    out = run([TENET, "adm", "pod-network", "join-projects", "--to=red", "blue", "--kubeconfig", routed.kubeconfig], check=False)
    assert out.returncode != 0 and "flannel" in out.stderr, out.stderr
    assert not routed.objects("netnamespaces")
    config = (routed.folder("node1") / "node-config.yaml").read_text()
    other = routed.folder("node1") / "other.yaml"
    other.write_text(config.replace("datapath: hostgw", "datapath: ebpf").replace("/run\n", "/run2\n"))
    out = routed.ns("node1", [TENET, "node", "--config", other], check=False, timeout=60)
    assert out.returncode == 1
    assert "networkConfig.datapath: ebpf: the cluster's plug-in flannel needs hostgw" in out.stdout + out.stderr
