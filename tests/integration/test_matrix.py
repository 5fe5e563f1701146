# SPDX-License-Identifier: Apache-2.0
"""Who reaches whom: every pod to every pod, by ICMP, TCP and UDP, under both plug-ins."""
import concurrent.futures

import pytest

from lab import Server, probe

TCP_PORT, UDP_PORT = 8080, 8081


@pytest.fixture(params=["subnet", "multitenant", "mixed"])
def cluster(request):
    """The cluster of pods under each plug-in, and with each datapath."""
    return request.getfixturevalue(request.param)


def may_reach(lab, a, b):
    """The isolation rule of the seeds: always under ovs-subnet, else equal VNIDs or one of them 0."""
    return lab.options["plugin"].endswith("subnet") or a.vnid == b.vnid or 0 in (a.vnid, b.vnid)


def each_pod(lab, fn):
    with concurrent.futures.ThreadPoolExecutor(len(lab.pods)) as pool:
        return dict(zip((p.ref for p in lab.pods), pool.map(fn, lab.pods)))


def differences(lab, seen):
    return [f"{a} -> {b}: {'reached' if seen[a.ref][b.ref] else 'not reached'}"
            for a in lab.pods for b in lab.pods
            if a is not b and bool(seen[a.ref][b.ref]) != may_reach(lab, a, b)]


def test_icmp(cluster):
    seen = each_pod(cluster, lambda a: {b.ref: a.can_ping(b.ip) for b in cluster.pods if b is not a})
    assert not differences(cluster, seen)


@pytest.mark.parametrize("proto,port", [("tcp", TCP_PORT), ("udp", UDP_PORT)])
def test_stream_and_datagram(cluster, proto, port):
    servers = [Server(p.popen, proto, port) for p in cluster.pods]
    try:
        def one(a):
            others = [b for b in cluster.pods if b is not a]
            got = probe(a, proto, [f"{b.ip}:{port}" for b in others])
            return {b.ref: got[f"{b.ip}:{port}"] for b in others}
        seen = each_pod(cluster, one)
    finally:
        for s in servers:
            s.stop()
    assert not differences(cluster, seen)
    # Pod to pod is never translated: the server saw the pod's own address (NAT-03).
    wrong = [f"{a} -> {b}: came as {seen[a.ref][b.ref]}" for a in cluster.pods for b in cluster.pods
             if a is not b and seen[a.ref][b.ref] not in (None, a.ip)]
    assert not wrong


def test_vnids_are_unique_and_default_has_zero(multitenant):
    ids = {n["netname"]: n["netid"] for n in multitenant.objects("netnamespaces")}
    assert ids["default"] == 0
    others = [v for k, v in ids.items() if k != "default"]
    assert {"red", "blue"} <= set(ids) and len(set(others)) == len(others)
    assert all(10 <= v < 1 << 24 for v in others)


def test_subnet_plugin_allocates_no_vnid(subnet):
    assert subnet.objects("netnamespaces") == []
    before = subnet.rules("node1")
    subnet.project("green")
    subnet.cmd("project", "delete", "green")
    assert subnet.rules("node1") == before


def test_node_reaches_its_pods_and_remote_ones(cluster):
    for pod in cluster.pods:
        for node in ("node1", "node2"):
            assert any(cluster.ns(node, ["ping", "-n", "-q", "-c", "1", "-W", "1", pod.ip], check=False).returncode == 0
                       for _ in range(3)), f"{node} -> {pod}"


def test_pod_reaches_its_gateway(cluster):
    for pod in cluster.pods:
        gateway = pod.ns(["ip", "-4", "route", "show", "default"]).stdout.split()[2]
        assert pod.can_ping(gateway), f"{pod} -> {gateway}"


def test_master_and_outside_have_no_way_into_the_pod_network(cluster):
    """SDN-M-11; and a host that routes pod addresses through a node gets nowhere (isolation cannot be bypassed)."""
    pod = cluster.pods[3]
    assert cluster.ns("master", ["ping", "-n", "-c", "1", "-W", "1", pod.ip], check=False).returncode != 0
    node = cluster.node(pod.node)
    cluster.ns("outside", ["ip", "route", "add", "10.128.0.0/14", "via", node["hostIP"]])
    try:
        assert cluster.ns("outside", ["ping", "-n", "-c", "2", "-W", "1", pod.ip], check=False).returncode != 0
    finally:
        cluster.ns("outside", ["ip", "route", "del", "10.128.0.0/14"])
