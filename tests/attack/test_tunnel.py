# SPDX-License-Identifier: Apache-2.0
"""What a machine beside the nodes can send: VXLAN with addresses and VNIDs of its choice, and packets for pods by a route.

VXLAN knows no keys: a machine that can send with a node's address speaks for that node's pods (docs/threat-model.md).  What is
shown here is that nothing else is believed."""

import pytest
from scapy.all import ARP, ICMP, IP, TCP, UDP, VXLAN, Dot1Q, Ether, IPv6, Raw, fragment

from hostile import NEIGHBOUR, OUTSIDE, marker
from lab import wait_for
from test_packets import link_of, mac_of


@pytest.fixture(scope="module")
def evil(net):
    with net.neighbour() as n:
        # As a forger would: Open vSwitch learns from what it receives where a node is.
        n.smac = {node: link_of(net.lab, node) for node in net.host}
        yield n
        for node, other in (("node1", "node2"), ("node2", "node1")):
            net.lab.ns(node, ["ping", "-n", "-c", "1", net.host[other]], check=False)


def inner(text, source, to, **udp):
    return Ether(src="0a:58:0a:80:00:01", dst=mac_of(to)) / IP(src=source, dst=to) / \
        UDP(sport=9, dport=7777, chksum=0, **udp) / Raw(text)


def outer(net, evil, source, vni, frame, to="node1", flags=8, **head):
    """A VXLAN packet to a node; its Ethernet source is that of the node whose address it has."""
    smac = next((evil.smac[n] for n, ip in net.host.items() if ip == source and n != to), evil.mac)
    return (Ether(src=smac, dst=evil.dmac[to]) / IP(src=source, dst=net.host[to], **head) /
            UDP(sport=50000, dport=4789, chksum=0) / VXLAN(vni=vni, flags=flags) / frame)


def heard(net, evil, frames, text, times=2):
    """Places where the marker arrived, after an honest datagram of node2's pod that came the same way."""
    for _ in range(times):
        evil.tap.send(*frames)
    control = marker()
    red, near = net.pods["red/far"], net.pods["red/near"]

    def look():
        evil.tap.send(outer(net, evil, net.host["node2"], red.vnid, inner(control, red.ip, near.ip)))
        return net.taps["red/near"].heard(control)
    wait_for("what node2 could have sent", look)
    # The bridge that plays the wire believes now that node2 is here, until node2 speaks.
    wait_for("node2", lambda: net.pods["red/far"].can_ping(near.ip, tries=1))
    return net.who_heard(text)


def strangers(net):
    return {"the neighbour's own address": NEIGHBOUR, "the master's": net.master, "the receiver's": net.host["node1"],
            "the router's": "10.245.2.254", "loopback": "127.0.0.1", "a pod's": net.pods["red/far"].ip,
            "the other gateway's": net.gateway["node2"], "nobody's": "0.0.0.0", "a group": "224.0.0.1",
            "a broadcast": "255.255.255.255"}


STRANGERS = ("the neighbour's own address", "the master's", "the receiver's", "the router's", "loopback", "a pod's",
             "the other gateway's", "nobody's", "a group", "a broadcast")


@pytest.mark.parametrize("whose", STRANGERS)
def test_vxlan_from_an_address_that_is_no_other_nodes_arrives_nowhere(net, evil, whose):
    assert set(strangers(net)) == set(STRANGERS)
    text, source = marker(), strangers(net)[whose]
    frames = []
    for ref in ("red/near", "blue/near"):
        victim, friend = net.pods[ref], net.pods[ref.replace("near", "far")]
        for vni in (victim.vnid, 0, 1, 5, 0xffffff):
            frames += [outer(net, evil, source, vni, inner(text, s, victim.ip))
                       for s in (friend.ip, net.gateway["node2"], net.gateway["node1"], NEIGHBOUR)]
    frames += [outer(net, evil, source, 0, inner(text, net.pods["red/far"].ip, t))
               for t in (net.gateway["node1"], net.host["node1"], OUTSIDE)]
    assert heard(net, evil, frames, text) == []


def test_a_node_speaks_for_its_own_subnet_only(net, evil):
    """With node2's address: sources of node1's subnet, of no node's, of hosts, services and the world."""
    text, source = marker(), net.host["node2"]
    victim = net.pods["blue/near"]
    foreign = [net.pods["blue/a"].ip, net.gateway["node1"], "10.130.5.5", "10.131.255.254", net.host["node1"], net.host["node2"],
               net.master, OUTSIDE, "172.30.0.1", "127.0.0.1", "169.254.169.4", "0.0.0.0", "255.255.255.255", "224.0.0.1",
               NEIGHBOUR]
    frames = [outer(net, evil, source, v, inner(text, s, victim.ip)) for s in foreign for v in (victim.vnid, 0)]
    frames += [outer(net, evil, source, 0, inner(text, s, net.gateway["node1"])) for s in foreign]
    assert heard(net, evil, frames, text) == []


def test_the_tunnel_leads_to_pods_of_the_receiver_only(net, evil):
    """Not through it to another node, to the outside, to the master, to services, to itself again."""
    text, source, red = marker(), net.host["node2"], net.pods["red/far"]
    places = [red.ip, net.pods["blue/far"].ip, net.gateway["node2"], net.host["node1"], net.host["node2"], net.master, OUTSIDE,
              "10.130.5.5", "172.30.0.1", "127.0.0.1", "255.255.255.255", "224.0.0.1", "0.0.0.0",
              str(net.subnet["node1"][250]), str(net.subnet["node1"].broadcast_address), NEIGHBOUR]
    frames = [outer(net, evil, source, v, inner(text, red.ip, t)) for t in places for v in (red.vnid, 0)]
    assert heard(net, evil, frames, text) == []


def test_isolation_holds_for_what_the_tunnel_brings(net, evil):
    """red's pod of node2 with red's VNID, and with others: blue's pods do not hear it."""
    text, red, blue = marker(), net.pods["red/far"], net.pods["blue/near"]
    vnis = {red.vnid, 5, 0xffffff, blue.vnid + 1}
    if net.plugin == "networkpolicy":
        vnis |= {blue.vnid, 0}  # there the address says whose it is, and the number nothing
    frames = [outer(net, evil, net.host["node2"], v, inner(text, red.ip, blue.ip)) for v in vnis - ({blue.vnid} if
              net.plugin == "multitenant" else set())]
    assert heard(net, evil, frames, text) == []


def test_odd_tunnel_headers_open_nothing(net, evil):
    """Flags without the VNID's, extensions, tags, other protocols and truncated packets inside; the tunnel in itself."""
    text, red, near, source = marker(), net.pods["red/far"], net.pods["red/near"], net.host["node2"]
    good = inner(text, red.ip, near.ip)
    frames = [outer(net, evil, source, red.vnid, good, flags=f) for f in (0, 1, 4, 0x80)]
    ip = good[IP]
    e = Ether(src="0a:58:0a:80:00:01", dst=mac_of(near.ip))
    frames += [outer(net, evil, source, red.vnid, x) for x in (
        e / Dot1Q(vlan=1) / ip, e / Dot1Q(vlan=0) / ip, e / IPv6(src="fe80::1", dst="ff02::1") / Raw(text),
        Ether(src=e.src, dst=e.dst, type=0x88cc) / Raw(text), Ether(src=e.src, dst=e.dst, type=0x86dd) / Raw(bytes(ip)),
        Raw(bytes(good)[:10]), Raw(bytes(good)[:20]), Raw(b""),
        e / ARP(op=2, hwsrc="02:00:00:00:00:01", psrc=net.gateway["node1"], pdst=near.ip) / Raw(text),
        e / ARP(op=2, hwsrc="02:00:00:00:00:01", psrc=red.ip, pdst=near.ip) / Raw(text),
        Ether(src=e.src, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc="02:00:00:00:00:01", psrc=net.gateway["node1"],
                                                        pdst=near.ip) / Raw(text),
    )]
    assert heard(net, evil, frames, text) == []
    nested = marker()
    again = e / IP(src=red.ip, dst=net.gateway["node1"]) / UDP(dport=4789, chksum=0) / VXLAN(vni=0, flags=8) / \
        inner(nested, red.ip, near.ip)
    at = heard(net, evil, [outer(net, evil, source, red.vnid, again)], nested)
    assert set(at) <= {"node1 tun0"}, "node2 may speak to the gateway, but no tunnel is opened there"
    assert "02:00:00:00:00:01" not in near.ns(["ip", "neigh"]).stdout


def test_outer_fragments_and_options_open_nothing(net, evil):
    text, victim = marker(), net.pods["blue/near"]
    whole = IP(src=NEIGHBOUR, dst=net.host["node1"], id=9) / UDP(sport=50000, dport=4789, chksum=0) / \
        VXLAN(vni=victim.vnid, flags=8) / inner(text, net.pods["blue/far"].ip, victim.ip)
    frames = [Ether(src=evil.mac, dst=evil.dmac["node1"]) / p for size in (8, 16, 24, 48) for p in fragment(whole, fragsize=size)]
    # A first fragment of the neighbour's and a later one with node2's address, and the other way round.
    parts = [bytes(p) for p in fragment(whole, fragsize=24)]
    for k in range(len(parts)):
        mixed = [IP(p) for p in parts]
        mixed[k].src = net.host["node2"]
        for p in mixed:
            p.id = 100 + k
            del p.chksum
        frames += [Ether(src=evil.mac, dst=evil.dmac["node1"]) / p for p in mixed]
    assert heard(net, evil, frames, text) == []


# ---- without a tunnel ----

def test_a_route_through_a_node_leads_to_no_pod(net, evil):
    """From the neighbour's own address, and with addresses that nodes and pods have."""
    text = marker()
    sources = [NEIGHBOUR, net.host["node2"], net.master, net.gateway["node1"], net.gateway["node2"], net.pods["red/far"].ip,
               net.pods["blue/far"].ip, net.pods["blue/a"].ip, OUTSIDE, "127.0.0.1", "169.254.169.4"]
    targets = [p.ip for p in net.pods.values()]
    frames = []
    for node in net.host:
        e = Ether(src=evil.mac, dst=evil.dmac[node])
        for s in sources:
            for t in targets:
                ip = e / IP(src=s, dst=t)
                frames += [ip / UDP(sport=7, dport=7777) / Raw(text), ip / TCP(sport=7, dport=80, flags="S") / Raw(text),
                           ip / TCP(sport=7, dport=80, flags="A") / Raw(text), ip / ICMP() / Raw(text)]
    assert heard(net, evil, frames, text, times=1) == []
    for subnet in net.subnet.values():
        evil.run(["ip", "route", "replace", str(subnet), "via", net.host["node1"]])
    for p in net.pods.values():
        assert not evil.run(["ping", "-n", "-c", "1", "-W", "0.3", p.ip], check=False), p


def test_the_nodes_own_tables_are_no_open_doors(net, evil):
    """The agent listens on no address that a neighbour reaches; loopback is not reached from the wire."""
    text = marker()
    frames = [Ether(src=evil.mac, dst=evil.dmac[n]) / IP(src=NEIGHBOUR, dst="127.0.0.1") / UDP(sport=7, dport=p) / Raw(text)
              for n in net.host for p in (53, 7777)]
    assert heard(net, evil, frames, text) == []
    for node, ip in net.host.items():
        listening = net.lab.ns(node, ["ss", "-Hltun"]).stdout
        wide = [x.split()[4] for x in listening.splitlines() if x.split()[4].startswith(("0.0.0.0:", "*:", "[::]:", ip + ":"))]
        assert not [w for w in wide if not w.endswith(":4789")], listening


def test_refusals_are_not_multiplied(net, evil):
    """A packet that is refused costs its sender's victim at most as many bytes: nothing is amplified to a forged address."""
    frames = [outer(net, evil, net.host["node2"], 0, inner(marker(), net.pods["red/far"].ip, str(net.subnet["node1"][240])))
              for _ in range(200)]
    before = bytes_out(net, "node1")
    evil.tap.send(*frames)
    heard(net, evil, [], marker())
    assert bytes_out(net, "node1") - before <= 3 * sum(len(bytes(f)) for f in frames)


def bytes_out(net, node):
    return int(net.lab.ns(node, ["cat", "/sys/class/net/eth0/statistics/tx_bytes"]).stdout)


def test_projects_are_as_before(net, evil):
    wait_for("separate projects", net.is_separated)
