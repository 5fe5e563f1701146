# SPDX-License-Identifier: Apache-2.0
"""Tunnel packets that pass neither the VXLAN device nor the host's stack: when they do, when not, and whole either way.

The third node has the datapath ovs: what it sends and gets must be the same on the wire."""
import json
import pathlib

import pytest

from forged import assert_pod_cannot_narrow_paths
from lab import kernel_has, wait_for
from traffic import Traffic

SIZE = 3 << 20
SEND = """
import hashlib, os, socket, sys
s = socket.create_connection((sys.argv[1], 7300), 10)
data = os.urandom(int(sys.argv[2]))
s.sendall(data)
s.shutdown(socket.SHUT_WR)
s.recv(1)
print(hashlib.sha256(data).hexdigest())
"""
TAKE = """
import hashlib, socket
s = socket.create_server(("0.0.0.0", 7300))
print("ready", flush=True)
c, _ = s.accept()
h, n = hashlib.sha256(), 0
while True:
    data = c.recv(1 << 16)
    if not data:
        break
    h.update(data)
    n += len(data)
c.send(b"x")
print(n, h.hexdigest())
"""
# Segmentation of a link (ETHTOOL_STSO, ETHTOOL_SGSO) on or off, and what it receives put together (ETHTOOL_SGRO).
OFFLOAD = """
import array, fcntl, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for command, value in ((0x1f, sys.argv[2] == "on"), (0x24, sys.argv[2] == "on"), (0x2c, True)):
    data = array.array("B", struct.pack("II", command, value))
    fcntl.ioctl(s, 0x8946, struct.pack("16sP8x", sys.argv[1].encode(), data.buffer_info()[0]))
"""

direct = pytest.mark.skipif(not kernel_has("encap"), reason="before Linux 5.13 all goes by the device")


@pytest.fixture(scope="module")
def wired(make_lab):
    lab = make_lab("ew", nodes=3, plugin="redhat/openshift-ovs-multitenant", datapath="ebpf,ebpf,ovs")
    lab.project("red")
    lab.project("blue")
    lab.a, lab.far, lab.old = lab.pod("red/a", "node1"), lab.pod("red/far", "node2"), lab.pod("red/old", "node3")
    lab.stranger = lab.pod("blue/x", "node2")
    yield lab
    lab.down(check=False)


def by_device(lab, node="node1"):
    """Packets that passed the VXLAN device; None: there is none at the moment."""
    r = lab.ns(node, ["ip", "-s", "-j", "link", "show", "dev", "vxlan_tenet"], check=False)
    if r.returncode:
        return None
    stats = json.loads(r.stdout)[0]["stats64"]
    return stats["rx"]["packets"] + stats["tx"]["packets"]


def uplink(lab, node, to):
    route = json.loads(lab.ns(node, ["ip", "-j", "route", "get", lab.node(to)["hostIP"]]).stdout)[0]
    return route["dev"]


def has_filter(lab, link, node="node1"):
    return "tenet-datapath" in lab.ns(node, ["tc", "filter", "show", "dev", link, "ingress"], check=False).stdout


def is_hooked(lab, link, node="node1"):
    """Whether a program is on this link to other nodes, in the way that the kernel allows."""
    return link in lab.pins(node) if kernel_has("tcx") else has_filter(lab, link, node)


def is_direct(lab, pairs=None):
    """Whether a ping there and back left the device alone; it arrives in any case."""
    before = by_device(lab), by_device(lab, "node2")
    for source, target in pairs or [(lab.a, lab.far)]:
        assert source.can_ping(target.ip)
    return None not in before and (by_device(lab), by_device(lab, "node2")) == before


def assert_reached(lab):
    assert lab.a.can_ping(lab.far.ip) and lab.a.can_ping(lab.old.ip)
    assert not lab.stranger.can_ping(lab.a.ip, tries=1)


def transfer(source, target):
    """Bytes that arrive as they were sent."""
    with target.popen(["/usr/bin/python3", "-c", TAKE]) as taker:
        try:
            assert taker.stdout.readline() == "ready\n"
            sent = source.ns(["/usr/bin/python3", "-c", SEND, target.ip, str(SIZE)]).stdout.strip()
            assert taker.stdout.readline().split() == [str(SIZE), sent]
        finally:
            taker.kill()


@direct
def test_packets_between_nodes_pass_neither_device_nor_stack(wired):
    wait_for("neighbours", lambda: is_direct(wired))
    assert is_direct(wired, [(wired.a, wired.far), (wired.far, wired.a), (wired.a, wired.old), (wired.old, wired.a)])
    assert is_hooked(wired, uplink(wired, "node1", "node2"))
    # What is judged is the same: the stranger is dropped where the pod is, and counted.
    assert_reached(wired)


@direct
@pytest.mark.parametrize("segmentation", ["on", "off"])
def test_streams_arrive_whole(wired, segmentation):
    """With packets of 64 kB on the wire, and cut to its size."""
    nodes = [(n, uplink(wired, n, "node2" if n != "node2" else "node1")) for n in ("node1", "node2", "node3")]
    try:
        for node, link in nodes:
            wired.ns(node, ["/usr/bin/python3", "-c", OFFLOAD, link, segmentation])
        before = by_device(wired), by_device(wired, "node2")
        transfer(wired.a, wired.far)
        transfer(wired.far, wired.a)
        assert (by_device(wired), by_device(wired, "node2")) == before
        transfer(wired.a, wired.old)
        transfer(wired.old, wired.a)
        assert by_device(wired) == before[0]
    finally:
        for node, link in nodes:
            wired.ns(node, ["/usr/bin/python3", "-c", OFFLOAD, link, "on"])


def test_datagrams_in_parts_arrive(wired):
    for size in (1400, 3000, 20000):
        assert wired.a.can_ping(wired.far.ip, size=size) and wired.a.can_ping(wired.old.ip, size=size)


@direct
def test_another_way_is_taken_at_once(wired):
    """A link that leads there by a more special route, and is gone again, under traffic."""
    ends = [(n, wired.node(n)["hostIP"]) for n in ("node1", "node2")]
    (one, own), (two, other) = ends
    wired.ns(one, ["ip", "link", "add", "short0", "type", "veth", "peer", "name", "short0", "netns", wired.ns_name(two)])

    def packets():
        return json.loads(wired.ns(one, ["ip", "-s", "-j", "link", "show", "dev", "short0"]).stdout)[0]["stats64"]["tx"]["packets"]
    try:
        for node in (one, two):
            wired.ns(node, ["ip", "link", "set", "short0", "up"])
        with Traffic([(wired.a, wired.far)], rate=500):
            wired.ns(two, ["ip", "route", "add", f"{own}/32", "dev", "short0", "src", other])
            wired.ns(one, ["ip", "route", "add", f"{other}/32", "dev", "short0", "src", own])
            wait_for("packets on the short way", lambda: packets() > 100)
            wait_for("the programs to know it", lambda: is_hooked(wired, "short0") and is_direct(wired))
            wired.ns(one, ["ip", "route", "del", f"{other}/32", "dev", "short0"])
            wired.ns(two, ["ip", "route", "del", f"{own}/32", "dev", "short0"])
            wait_for("the link to be left alone", lambda: not is_hooked(wired, "short0") and not is_hooked(wired, "short0", "node2"))
    finally:
        wired.ns(one, ["ip", "link", "del", "short0"], check=False)
    assert is_direct(wired)
    assert_reached(wired)


@direct
def test_ipsec_has_its_say(wired):
    """What policies of the kernel are to judge must pass the stack, on the node that has some."""
    policy = ["dir", "in", "src", "198.51.100.99/32", "dst", "198.51.100.98/32"]
    if wired.ns("node1", ["ip", "xfrm", "policy"], check=False).returncode:
        pytest.skip("this kernel has no IPsec")
    wired.ns("node1", ["ip", "xfrm", "policy", "add", *policy, "tmpl", "proto", "esp", "mode", "transport"])
    try:
        wait_for("packets to pass the stack", lambda: not is_direct(wired))
        assert_reached(wired)
    finally:
        wired.ns("node1", ["ip", "xfrm", "policy", "del", *policy])
    wait_for("packets to pass it no longer", lambda: is_direct(wired))


@pytest.mark.parametrize("without", ["encap", "tcx", "encap,tcx"])
def test_what_older_kernels_lack(wired, without):
    """Before Linux 5.13 all goes by the device, before 6.6 a filter takes it; what others have at the link stays, what an
    agent before has there goes."""
    path = pathlib.Path(wired.node("node1")["config"])
    before, link = path.read_text(), uplink(wired, "node1", "node2")
    try:
        for lacks in dict.fromkeys([without.removeprefix("encap,"), without]):
            path.write_text(before + f"ebpf:\n  without: {lacks}\n")
            wired.cmd("node", "restart", "node1")
        assert is_direct(wired) == kernel_has("encap", without)
        assert link not in wired.pins("node1")
        assert has_filter(wired, link) == (kernel_has("encap", without) and not kernel_has("tcx", without))
        assert_reached(wired)
        assert_pod_cannot_narrow_paths(wired, wired.a, "node2")
        transfer(wired.a, wired.far)
        transfer(wired.old, wired.a)
    finally:
        path.write_text(before)
        wired.cmd("node", "restart", "node1")
    wait_for("the way that the kernel allows", lambda: is_direct(wired) == kernel_has("encap") == is_hooked(wired, link))
    assert has_filter(wired, link) == (kernel_has("encap") and not kernel_has("tcx"))


def test_the_port_changes_for_both_ways(wired):
    def port(n):
        wired.kubectl("patch", "clusternetwork", "default", "--type=merge", "-p", json.dumps({"vxlanPort": n}))
    try:
        port(4790)
        wait_for("packets by the other port", lambda: wired.a.can_ping(wired.far.ip, tries=1) and
                 wired.a.can_ping(wired.old.ip, tries=1))
        wait_for("the direct way", lambda: is_direct(wired) == kernel_has("encap"))
    finally:
        port(4789)
    wait_for("packets", lambda: wired.a.can_ping(wired.far.ip, tries=1) and wired.a.can_ping(wired.old.ip, tries=1))
    wait_for("the direct way", lambda: is_direct(wired) == kernel_has("encap"))
