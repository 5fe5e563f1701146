# SPDX-License-Identifier: Apache-2.0
"""Several cluster networks: one that is full grows on a live cluster, and nodes of both exchange packets as they are."""
import pathlib
import re

import pytest

from lab import Server, probe, wait_for
from traffic import Traffic

OUTSIDE = "198.51.100.10"
FIRST, SECOND = "10.11.0.0/24", "10.77.4.0/22"


def set_networks(lab, *cidrs):
    """Writes the list of cluster networks into the master's configuration."""
    path = pathlib.Path("/run/tenet/lab") / lab.name / "master/master-config.yaml"
    entries = "".join(f"  - cidr: {c}\n    hostSubnetLength: 8\n" for c in cidrs)
    text, n = re.subn(r"(  clusterNetworks:\n)(?:  - cidr: .*\n    hostSubnetLength: .*\n)+", r"\1" + entries, path.read_text())
    assert n == 1
    path.write_text(text)


def restart_master(lab, **kw):
    lab.cmd("master", "stop", timeout=60)
    return lab.cmd("master", "start", timeout=60, **kw)


@pytest.fixture(scope="module", params=["ovs,ebpf", "ebpf,ovs"])
def grown(request, make_lab):
    """A node in the first network, which it fills, and one of the other datapath that came after the cluster got the second."""
    lab = make_lab("cn", nodes=1, plugin="redhat/openshift-ovs-multitenant", datapath=request.param, cluster_network=FIRST,
                   host_subnet_length=8)
    lab.project("red")
    lab.a, lab.near = lab.pod("red/a", "node1"), lab.pod("red/near", "node1")
    with Traffic([(lab.a, lab.near)], rate=300):  # nothing may be lost
        set_networks(lab, FIRST, SECOND)
        restart_master(lab)
        wait_for("the node to follow", lambda: "10.77.4.0/22" in lab.ns("node1", ["ip", "route", "show", "dev", "tun0"]).stdout)
    lab.cmd("node", "add", "node2", timeout=120)
    lab.b = lab.pod("red/b", "node2")
    return lab


def test_a_node_gets_its_subnet_from_the_next_network(grown):
    assert {n["name"]: n["subnet"] for n in grown.status()["nodes"]} == {"node1": "10.11.0.0/24", "node2": "10.77.4.0/24"}
    network = grown.object("clusternetwork", "default")
    assert [(n["CIDR"], n["hostSubnetLength"]) for n in network["clusterNetworks"]] == [(FIRST, 8), (SECOND, 8)]
    assert (network["network"], network["hostsubnetlength"]) == (FIRST, 8)


def test_pods_of_both_networks_see_each_others_addresses(grown):
    """Neither network's packets are masqueraded on their way to the other."""
    a, b = grown.a, grown.b
    servers = [Server(p.popen, "tcp", 9000) for p in (a, b)]
    try:
        assert probe(a, "tcp", [f"{b.ip}:9000"]) == {f"{b.ip}:9000": a.ip}
        assert probe(b, "tcp", [f"{a.ip}:9000"]) == {f"{a.ip}:9000": b.ip}
    finally:
        for s in servers:
            s.stop()
    assert a.can_ping(b.ip) and b.can_ping(a.ip)


def test_pods_of_both_networks_leave_as_their_node(grown):
    server = Server(lambda argv: grown.ns_popen("outside", argv), "tcp", 9000)
    try:
        for pod in (grown.a, grown.b):
            assert probe(pod, "tcp", [f"{OUTSIDE}:9000"]) == {f"{OUTSIDE}:9000": grown.node(pod.node)["hostIP"]}
    finally:
        server.stop()


def test_hosts_reach_pods_of_both_networks(grown):
    for node in ("node1", "node2"):
        for pod in (grown.a, grown.b):
            grown.ns(node, ["ping", "-c", "1", "-W", "2", pod.ip])


@pytest.mark.parametrize("networks, why", [
    ((FIRST,), "hostsubnet node2 (10.77.4.0/24)"),
    ((SECOND,), "hostsubnet node1 (10.11.0.0/24)"),
    ((FIRST, SECOND, "10.77.0.0/16"), "overlaps"),
    ((FIRST, SECOND, "172.30.128.0/17"), "overlaps"),
])
def test_a_network_in_use_is_not_taken_away_and_none_may_overlap(grown, networks, why):
    before = grown.object("clusternetwork", "default")["clusterNetworks"]
    log = pathlib.Path("/run/tenet/lab") / grown.name / "master/master.log"
    size = log.stat().st_size
    set_networks(grown, *networks)
    try:
        restart_master(grown, check=False)
        wait_for("the refusal", lambda: why in log.read_text(errors="replace")[size:])
        assert grown.a.can_ping(grown.b.ip)
    finally:
        set_networks(grown, FIRST, SECOND)
        restart_master(grown)
    assert grown.object("clusternetwork", "default")["clusterNetworks"] == before
