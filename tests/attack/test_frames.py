# SPDX-License-Identifier: Apache-2.0
"""What a pod may not put on its link: forged addresses, other protocols, tags, tunnels, fragments, ICMP errors.

Each try carries a marker, and taps listen in every other pod, at both gateways, at the master and outside.  Honest datagrams
sent behind the forged frames must arrive, so a test fails, too, when nothing gets through at all."""
import contextlib
import json
import re
import socket
import struct
import time

import pytest
from scapy.all import ARP, ICMP, IP, IPv6, TCP, UDP, VXLAN, Dot1Q, Ether, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_RA, LLC, \
    Raw, fragment
from scapy.contrib.igmp import IGMP
from scapy.contrib.mpls import MPLS
from scapy.layers.l2 import Dot1AD, GRE

from hostile import BROADCAST, OUTSIDE, OWN_ONLY, marker
from lab import wait_for
from netns import inside, tcp_listener, udp_socket
from test_packets import mac_of

FORGED_MAC = "02:00:00:00:00:01"


def dst(net):
    return mac_of(net.gateway["node1"])


# ---- addresses ----

SOURCES = {
    "pod of the same project here": lambda n: n.pods["red/near"].ip,
    "pod of the same project there": lambda n: n.pods["red/far"].ip,
    "pod of another project here": lambda n: n.pods["blue/near"].ip,
    "pod of another project there": lambda n: n.pods["blue/far"].ip,
    "address of no pod here": lambda n: str(n.subnet["node1"][200]),
    "own gateway": lambda n: n.gateway["node1"],
    "gateway of the other node": lambda n: n.gateway["node2"],
    "own node": lambda n: n.host["node1"],
    "other node": lambda n: n.host["node2"],
    "master": lambda n: n.master,
    "service": lambda n: "172.30.0.1",
    "outside": lambda n: OUTSIDE,
    "loopback": lambda n: "127.0.0.1",
    "nobody": lambda n: "0.0.0.0",
    "broadcast": lambda n: "255.255.255.255",
    "group": lambda n: "224.0.0.1",
    "link-local": lambda n: "169.254.169.4",
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_forged_ip_source_arrives_nowhere(net, source):
    text = marker()
    targets = [net.pods[x].ip for x in ("red/near", "red/far", "blue/near", "blue/far")]
    targets += [net.gateway["node1"], net.gateway["node2"], net.host["node1"], net.host["node2"], net.master, OUTSIDE]
    frames = [net.udp(ip, text, source=SOURCES[source](net)) for ip in targets]
    assert net.heard_after(frames, text) == []


def test_a_forged_ethernet_source_arrives_nowhere(net):
    text = marker()
    macs = [FORGED_MAC, dst(net), mac_of(net.pods["red/near"].ip), mac_of(net.pods["blue/near"].ip), "01:00:5e:00:00:01",
            BROADCAST, "00:00:00:00:00:00", "0a:58" + ":ff" * 4]
    frames = [net.udp(net.pods[x], text, smac=m) for m in macs for x in ("red/near", "red/far")]
    frames += [net.udp(net.gateway["node1"], text, smac=m) for m in macs]
    assert net.heard_after(frames, text) == []


def neighbours(net):
    """Ethernet addresses that pods and nodes believe in."""
    said = [net.lab.ns("node1", ["ip", "neigh"]).stdout, net.lab.ns("node2", ["ip", "neigh"]).stdout]
    said += [p.ns(["ip", "neigh"]).stdout for p in net.pods.values()]
    return "\n".join(said)


def test_arp_of_a_pod_changes_what_nobody_believes(net):
    """Gateway, neighbours here and there, node and master; as answer, question and announcement."""
    text, tap = marker(), net.taps["red/a"]
    claimed = [net.gateway["node1"], net.gateway["node2"], net.host["node1"], net.host["node2"], net.master,
               *(p.ip for ref, p in net.pods.items() if ref != "red/a")]
    frames = []
    for ip in claimed:
        for op in (1, 2):
            for victim in (ip, net.pods["red/near"].ip, net.gateway["node1"]):
                frames += [Ether(src=net.attacker_mac, dst=to) / ARP(op=op, hwsrc=mac, psrc=ip, hwdst=mac, pdst=victim) / Raw(text)
                           for to in (BROADCAST, mac_of(net.pods["red/near"].ip)) for mac in (net.attacker_mac, FORGED_MAC)]
    own = net.attacker.ip
    frames += [Ether(src=net.attacker_mac, dst=BROADCAST) / ARP(op=op, hwsrc=FORGED_MAC, psrc=own, pdst=net.pods["red/near"].ip) /
               Raw(text) for op in (1, 2, 3, 4, 8, 9)]
    for ref in ("red/near", "red/far", "blue/near"):
        assert net.pods[ref].can_ping(net.gateway[net.pods[ref].node])
    assert net.heard_after(frames, text, times=1) == []
    known = neighbours(net)
    assert FORGED_MAC not in known
    mine = re.findall(rf"^(\S+) .*lladdr {net.attacker_mac}", known, re.M)
    assert set(mine) <= {own}, known
    # The control: an honest question is answered, with the address that the gateway has.
    tap.forget()
    tap.send(Ether(src=net.attacker_mac, dst=BROADCAST) / ARP(hwsrc=net.attacker_mac, psrc=own, pdst=net.gateway["node1"]))
    wait_for("the answer", lambda: any(f[12:14] == b"\x08\x06" and f[20:22] == b"\0\2" and
                                       f[22:28] == bytes.fromhex(dst(net).replace(":", "")) for f in tap.read()))


def test_no_pod_learns_the_addresses_of_another_project_by_arp(net):
    """Who asks hears computed addresses or nothing; no question is passed on to a pod."""
    text = marker()
    frames = [Ether(src=net.attacker_mac, dst=BROADCAST) / ARP(hwsrc=net.attacker_mac, psrc=net.attacker.ip, pdst=ip) / Raw(text)
              for ip in (net.pods["blue/near"].ip, net.pods["blue/far"].ip, net.pods["red/near"].ip, net.gateway["node2"],
                         net.host["node1"], OUTSIDE)]
    assert net.heard_after(frames, text) == []


# ---- what is not IPv4 ----

def others(net, text):
    near, a = net.pods["red/near"], net.attacker
    e = Ether(src=net.attacker_mac, dst=mac_of(near.ip))
    everyone = Ether(src=net.attacker_mac, dst=BROADCAST)
    ip = IP(src=a.ip, dst=near.ip) / UDP(sport=7, dport=7777) / Raw(text)
    six = IPv6(src="fe80::1", dst="ff02::1")
    return {
        "vlan": [e / Dot1Q(vlan=v) / ip for v in (0, 1, 100, 4095)],
        "double vlan": [e / Dot1Q(vlan=1) / Dot1Q(vlan=2) / ip, e / Dot1AD(vlan=1) / Dot1Q(vlan=2) / ip, e / Dot1AD(vlan=0) / ip],
        "vlan with arp": [everyone / Dot1Q(vlan=0) / ARP(psrc=net.gateway["node1"], hwsrc=net.attacker_mac) / Raw(text)],
        "ipv6": [x / six / ICMPv6EchoRequest(data=text) for x in (e, everyone)],
        "neighbour discovery": [x / six / ICMPv6ND_NA(tgt="fe80::1") / Raw(text) for x in (e, everyone)],
        "router advertisement": [Ether(src=net.attacker_mac, dst="33:33:00:00:00:01") / six / ICMPv6ND_RA() / Raw(text),
                                 everyone / six / ICMPv6ND_RA() / Raw(text)],
        "ipv4 said to be ipv6": [Ether(src=net.attacker_mac, dst=mac_of(near.ip), type=0x86dd) / Raw(bytes(ip))],
        "ipv6 said to be ipv4": [Ether(src=net.attacker_mac, dst=mac_of(near.ip), type=0x0800) / Raw(bytes(six / Raw(text)))],
        "mpls": [e / MPLS(label=16, s=1, ttl=64) / ip, Ether(src=net.attacker_mac, dst=mac_of(near.ip), type=0x8848) / Raw(text)],
        "lldp": [Ether(src=net.attacker_mac, dst="01:80:c2:00:00:0e", type=0x88cc) / Raw(b"\x02\x07" + text)],
        "spanning tree": [Ether(src=net.attacker_mac, dst="01:80:c2:00:00:00", type=38) / LLC(dsap=0x42, ssap=0x42) /
                          Raw(b"\0" * 35 + text)],
        "pause": [Ether(src=net.attacker_mac, dst="01:80:c2:00:00:01", type=0x8808) / Raw(b"\0\1\xff\xff" + text)],
        "other protocols": [Ether(src=net.attacker_mac, dst=d, type=t) / Raw(text) for d in (mac_of(near.ip), BROADCAST)
                            for t in (0, 1, 0x05ff, 0x0600, 0x8035, 0x8863, 0x8864, 0x888e, 0x88a2, 0x88e5, 0x8906, 0x9000,
                                      0xffff)],
    }


KINDS = ("vlan", "double vlan", "vlan with arp", "ipv6", "neighbour discovery", "router advertisement", "ipv4 said to be ipv6",
         "ipv6 said to be ipv4", "mpls", "lldp", "spanning tree", "pause", "other protocols")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_plain_ipv4_arrives_nowhere(net, kind):
    text = marker()
    table = others(net, text)
    assert set(table) == set(KINDS)
    assert net.heard_after(table[kind], text) == []


def test_broadcast_and_multicast_arrive_nowhere(net):
    text = marker()
    me, a = net.attacker_mac, net.attacker.ip
    groups = ["224.0.0.1", "224.0.0.251", "239.255.255.250", "255.255.255.255", str(net.subnet["node1"].broadcast_address),
              str(net.subnet["node2"].broadcast_address), "10.131.255.255"]
    frames = [Ether(src=me, dst=d) / IP(src=a, dst=g) / UDP(sport=7, dport=7777) / Raw(text)
              for g in groups for d in (BROADCAST, "01:00:5e:00:00:01", dst(net), mac_of(net.pods["red/near"].ip))]
    frames += [Ether(src=me, dst="01:00:5e:00:00:16") / IP(src=a, dst="224.0.0.22", ttl=1) / IGMP(type=t,
        gaddr="239.1.1.1") / Raw(text)
               for t in (0x11, 0x16, 0x17, 0x22)]
    frames += [Ether(src=me, dst=BROADCAST) / IP(src=s, dst="255.255.255.255") / UDP(sport=68, dport=67) / Raw(text)
               for s in (a, "0.0.0.0")]
    # Multicast between nodes, for a group that a pod there has joined.
    joined = inside(net.pods["red/far"].netns, lambda: join("239.1.1.1"))
    with joined:
        frames += [Ether(src=me, dst="01:00:5e:01:01:01") / IP(src=a, dst="239.1.1.1") / UDP(sport=7, dport=7777) / Raw(text)]
        assert net.heard_after(frames, text) == []


def join(group):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton("0.0.0.0"))
    return s


# ---- between projects ----

def test_no_protocol_crosses_from_project_to_project(net):
    """Every number of a protocol, by any Ethernet destination."""
    text, me, a = marker(), net.attacker_mac, net.attacker.ip
    frames = []
    for ref in ("blue/near", "blue/far"):
        ip = net.pods[ref].ip
        frames += [Ether(src=me, dst=dst(net)) / IP(src=a, dst=ip, proto=n) / Raw(struct.pack("!HHHH", 7, 80, 40, 0) + text * 3)
                   for n in (*range(0, 256, 5), 1, 2, 4, 6, 17, 41, 47, 50, 51, 89, 103, 132, 136)]
        frames += [Ether(src=me, dst=d) / IP(src=a, dst=ip) / UDP(sport=7, dport=80) / Raw(text)
                   for d in (mac_of(ip), BROADCAST, "01:00:5e:00:00:01", "00:00:00:00:00:00", me)]
        frames += [Ether(src=me, dst=dst(net)) / IP(src=a, dst=ip) / TCP(sport=7, dport=80, flags=f) / Raw(text)
                   for f in ("S", "A", "SA", "R", "F", "FPU", "", "SFRPAU")]
        frames += [Ether(src=me, dst=dst(net)) / IP(src=a, dst=ip, ttl=t) / UDP(sport=7, dport=80) / Raw(text) for t in (0, 1, 255)]
    assert net.heard_after(frames, text, times=1) == []


def test_tunnels_in_tunnels_do_not_cross(net):
    """IP in IP, GRE, Geneve-like and VXLAN datagrams to pods, gateways and nodes, with an inner packet for another project."""
    text, me, a = marker(), net.attacker_mac, net.attacker.ip
    blue = net.pods["blue/far"]
    inner = IP(src=net.pods["blue/a"].ip, dst=blue.ip) / UDP(sport=7, dport=7777) / Raw(text)
    framed = Ether(src=me, dst=mac_of(blue.ip)) / inner
    frames = []
    for to in (net.host["node1"], net.host["node2"], net.gateway["node1"], net.gateway["node2"], blue.ip, OUTSIDE):
        ip = Ether(src=me, dst=dst(net)) / IP(src=a, dst=to)
        frames += [ip / UDP(sport=s, dport=4789, chksum=c) / VXLAN(vni=v, flags=8) / framed
                   for s in (4789, 50000) for v in (0, blue.vnid) for c in (0, None)]
    # Of other tunnels it must not be opened; to the outside and to own nodes they are a tenant's datagrams like others.
    for to in (net.host["node2"], net.gateway["node2"], blue.ip):
        ip = Ether(src=me, dst=dst(net)) / IP(src=a, dst=to)
        frames += [ip / inner, ip / GRE() / inner, ip / UDP(sport=7, dport=6081) / Raw(b"\0\0\x65\x58" + bytes(4)) / framed]
    heard = net.heard_after(frames, text)
    assert not {"blue/a", "blue/near", "blue/far", "outside", "master"} & set(heard), heard


def test_a_pod_cannot_send_vxlan_fragments(net):
    """The first fragment's ports are those of the tunnel; later ones have none."""
    text, me, a = marker(), net.attacker_mac, net.attacker.ip
    blue = net.pods["blue/far"]
    framed = Ether(src=me, dst=mac_of(blue.ip)) / IP(src=net.pods["blue/a"].ip, dst=blue.ip) / UDP(dport=7777) / Raw(text * 20)
    whole = IP(src=a, dst=net.host["node2"], id=77) / UDP(sport=50000, dport=4789, chksum=0) / VXLAN(vni=blue.vnid,
        flags=8) / framed
    frames = []
    for size in (8, 16, 64, 200):
        parts = [Ether(src=me, dst=dst(net)) / p for p in fragment(whole, fragsize=size)]
        frames += parts + parts[::-1]
    heard = net.heard_after(frames, text, times=1)
    assert not {"blue/far", "blue/near"} & set(heard), heard


# ---- headers that contradict themselves ----

def contradictions(net, to, text):
    base = bytearray(bytes(IP(src=net.attacker.ip, dst=to) / UDP(sport=7, dport=80, chksum=0) / Raw(text)))

    def changed(**bytes_at):
        out = bytearray(base)
        for at, value in bytes_at.items():
            out[int(at[1:])] = value
        return bytes(out)
    head = Ether(src=net.attacker_mac, dst=dst(net), type=0x0800)
    raw = [changed(b0=0x41), changed(b0=0x40), changed(b0=0x4f), changed(b0=0x65), changed(b0=0x05), changed(b2=0xff),
           changed(b2=0, b3=0), changed(b2=0, b3=19), bytes(base[:19]), bytes(base[:20]), bytes(base[:24]), bytes(base[:1]), b""]
    return [head / Raw(x) for x in raw]


def test_contradicting_headers_do_not_cross_and_do_no_harm(net):
    text = marker()
    frames = [f for ref in ("blue/near", "blue/far") for f in contradictions(net, net.pods[ref].ip, text)]
    frames += contradictions(net, net.gateway["node1"], text) + contradictions(net, net.pods["red/near"].ip, text)
    heard = net.heard_after(frames, text)
    assert not {"blue/near", "blue/far", "outside", "master"} & set(heard), heard


def test_runts_and_jumbo_frames_do_no_harm(net):
    tap, text = net.taps["red/a"], marker()
    for size in range(14, 34):
        tap.send(bytes(net.udp(net.pods["red/near"], text))[:size])
    old = re.search(r"mtu (\d+)", net.attacker.ns(["ip", "link", "show", "eth0"]).stdout)[1]
    net.attacker.ns(["ip", "link", "set", "eth0", "mtu", "9000"], check=False)  # some links refuse that already
    try:
        for x in ("red/near", "red/far", "blue/near"):
            with contextlib.suppress(OSError):  # the other end of the link refuses the frame
                tap.send(net.udp(net.pods[x], text + b"x" * 4000))
        assert net.heard_after([], text) == []
    finally:
        net.attacker.ns(["ip", "link", "set", "eth0", "mtu", old])


def option(kind, *addresses):
    data = b"".join(bytes(map(int, ip.split("."))) for ip in addresses)
    out = bytes([kind, 3 + len(data), 4]) + data
    return out + b"\0" * (-len(out) % 4)


@pytest.mark.parametrize("kind", [131, 137, 7, 68, 130, 148, 0x99], ids=["loose route", "strict route", "record", "time",
    "security",
                                                                        "router alert", "unknown"])
def test_ip_options_lead_nowhere(net, kind):
    """Source routes by way of the gateway, a pod that may be reached, and the other node."""
    text, me, a = marker(), net.attacker_mac, net.attacker.ip
    frames = []
    for victim in (net.pods["blue/near"].ip, net.pods["blue/far"].ip):
        for first in (net.gateway["node1"], net.gateway["node2"], net.host["node2"], net.pods["red/near"].ip, victim):
            body = bytes(UDP(sport=7, dport=80, chksum=0) / Raw(text))
            opt = option(kind, victim)
            ip = IP(src=a, dst=first, ihl=5 + len(opt) // 4, len=20 + len(opt) + len(body), proto=17)
            header = bytearray(bytes(ip)[:20]) + opt
            header[10:12] = b"\0\0"
            header[10:12] = struct.pack("!H", checksum(header))
            frames.append(Ether(src=me, dst=dst(net)) / Raw(bytes(header) + body))
            frames[-1].type = 0x0800
    heard = net.heard_after(frames, text)
    assert not {"blue/near", "blue/far"} & set(heard), heard


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


# ---- fragments ----

def test_fragments_do_not_cross(net):
    """Tiny, overlapping, reversed, without a first one, beyond 65,535 bytes."""
    text, me, a = marker(), net.attacker_mac, net.attacker.ip
    frames = []
    for ref in ("blue/near", "blue/far"):
        whole = IP(src=a, dst=net.pods[ref].ip, id=4711) / UDP(sport=7, dport=80, chksum=0) / Raw(text * 40)
        for size in (8, 24, 400):
            parts = [Ether(src=me, dst=dst(net)) / p for p in fragment(whole, fragsize=size)]
            frames += parts[::-1] + parts[1:] + parts
        frames += [Ether(src=me, dst=dst(net)) / IP(src=a, dst=net.pods[ref].ip, id=4712, flags=f, frag=o, proto=17) / Raw(text * 4)
                   for f in ("MF", 0, "DF") for o in (0, 1, 2, 100, 8191)]
    assert net.heard_after(frames, text, times=1) == []


@pytest.fixture
def one_port(net):
    """red/near takes UDP and TCP at port 80 only, whatever the plug-in says of projects."""
    if net.plugin != "networkpolicy":
        yield False
        return
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "own-only"},
              "spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}],
                                                       "ports": [{"port": 80, "protocol": p} for p in ("UDP", "TCP")]}]}}
    near, me = net.pods["red/near"], net.attacker
    def blocked():
        with udp_socket(near.netns, port=81) as s, udp_socket(me.netns) as c:
            c.sendto(b"x", (near.ip, 81))
            return not wait_or(lambda: arrived(s), 0.3)
    net.lab.kubectl("apply", "-n", "red", "-f", "-", input=json.dumps(policy))
    try:
        wait_for("the policy", blocked)
        yield True
    finally:
        net.lab.kubectl("apply", "-n", "red", "-f", "-", input=json.dumps(OWN_ONLY))
        wait_for("projects as before", net.is_separated)


def arrived(sock):
    try:
        return sock.recv(65536)
    except BlockingIOError:
        return None


def wait_or(look, seconds):
    """Polls 'look' until it returns something or the seconds are over: for an answer that must not come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := look():
            return value
        time.sleep(0.02)
    return None


def test_overlapping_fragments_do_not_pass_a_policys_port(net, one_port):
    """A first fragment for the port that is allowed, and another "first" one for the port that is not."""
    near, a, me, tap = net.pods["red/near"], net.attacker.ip, net.attacker_mac, net.taps["red/a"]

    def part(port, ident, at, more, data, length=None):
        body = bytes(UDP(sport=7, dport=port, len=length or 8 + len(data), chksum=0)) + data if at == 0 else data
        return Ether(src=me, dst=dst(net)) / IP(src=a, dst=near.ip, id=ident, flags="MF" if more else 0, frag=at // 8,
                                                proto=17) / Raw(body)
    # Open vSwitch takes no first fragment below 1,200 bytes.
    cut, body = 1192, b"0123456789abcdef" * 80
    n = 8 + len(body)
    with udp_socket(near.netns, port=80) as good, udp_socket(near.netns, port=81) as bad:
        idents = iter(range(100, 60000))

        def honest():
            ident = next(idents)
            # Of a connection that was answered: Open vSwitch's tracker takes no other fragments (docs/policy.md).
            tap.send(net.udp(near, b"whole", port=80))
            if not wait_or(lambda: arrived(good) == b"whole", 0.5):
                return False
            good.sendto(b"answer", (a, 7))
            tap.send(part(80, ident, 0, True, body[:cut], n), part(80, ident, 8 + cut, False, body[cut:]))
            return wait_or(lambda: arrived(good) == body, 0.5)
        wait_for("honest fragments", honest)
        if not one_port:
            return  # without policies, every port of one's own project is open
        for order in ("gb-", "bg-", "g-b", "b-g", "-gb", "-bg"):
            ident = next(idents)
            what = {"g": part(80, ident, 0, True, body[:cut], n), "b": part(81, ident, 0, True, body[:cut], n),
                    "-": part(0, ident, 8 + cut, False, body[cut:])}
            tap.send(*(what[x] for x in order))
        for _ in range(2):
            ident = next(idents)
            tap.send(part(81, ident, 0, True, body[:cut], n), part(0, ident, 8 + cut, False, body[cut:]))
        wait_for("honest fragments again", honest)
        assert arrived(bad) is None


# ---- ICMP errors ----

def icmp_errors(net, to, inner, text=b""):
    """Errors of every kind about the packet 'inner', to that address."""
    head = Ether(src=net.attacker_mac, dst=dst(net)) / IP(src=net.attacker.ip, dst=to)
    kinds = [(3, 4), (3, 0), (3, 1), (3, 3), (3, 13), (11, 0), (11, 1), (4, 0), (12, 0)]
    frames = [head / ICMP(type=t, code=c, nexthopmtu=552 if (t, c) == (3, 4) else 0) / inner / Raw(text) for t, c in kinds]
    return frames + [head / ICMP(type=5, code=c, gw=net.attacker.ip) / inner / Raw(text) for c in (0, 1, 2, 3)]


def path_mtu(net, node, to):
    return net.lab.ns(node, ["ip", "route", "get", to]).stdout


def test_a_pod_cannot_speak_about_the_nodes_connections(net):
    """Neither the path to another node gets narrower, nor to the master, nor does a route lead to the pod."""
    others_ = [net.host["node2"], net.master, OUTSIDE, net.gateway["node2"], net.pods["red/far"].ip]
    before = {ip: path_mtu(net, "node1", ip) for ip in others_}
    frames = []
    for ip in others_:
        for mine in (net.host["node1"], net.gateway["node1"]):
            for inner in (IP(src=mine, dst=ip, flags="DF", len=1400) / UDP(sport=50000, dport=4789, len=1380, chksum=0),
                          IP(src=mine, dst=ip, flags="DF", len=1400) / TCP(sport=40000, dport=8443, seq=1),
                          IP(src=mine, dst=ip, len=1400) / ICMP(type=8, id=1)):
                for to in (net.gateway["node1"], net.host["node1"]):
                    frames += icmp_errors(net, to, inner)
    frames += [Ether(src=net.attacker_mac, dst=dst(net)) / IP(src=net.attacker.ip, dst=net.gateway["node1"]) /
               ICMP(type=t) / Raw(b"\0" * 32) for t in (9, 10, 13, 15, 17)]
    text = marker()
    assert net.heard_after(frames, text, times=2) == []
    after = {ip: path_mtu(net, "node1", ip) for ip in others_}
    wrong = {ip: r for ip, r in after.items() if "mtu" in r or "redirected" in r or f"via {net.attacker.ip}" in r}
    assert not wrong, wrong
    assert {ip: r.split()[:3] for ip, r in after.items()} == {ip: r.split()[:3] for ip, r in before.items()}


def test_a_pod_cannot_speak_about_connections_of_another_project(net):
    """Errors about a real connection of blue's, with its true ports: to both of its ends."""
    near, far = net.pods["blue/near"], net.pods["blue/far"]
    with tcp_listener(far.netns, 8080):
        with inside(near.netns, socket.socket) as c:
            c.connect((far.ip, 8080))
            port, text = c.getsockname()[1], marker()
            frames = []
            for src, sport, to, dport in ((near.ip, port, far.ip, 8080), (far.ip, 8080, near.ip, port)):
                inner = IP(src=src, dst=to, flags="DF", len=1400) / TCP(sport=sport, dport=dport, seq=1, flags="A")
                frames += icmp_errors(net, src, inner, text) + icmp_errors(net, to, inner, text)
            heard = net.heard_after(frames, text)
            routes = near.ns(["ip", "route", "get", far.ip]).stdout + far.ns(["ip", "route", "get", near.ip]).stdout
            c.send(b"x")  # still open
    assert heard == [] and "mtu 552" not in routes


def test_a_pod_cannot_speak_about_connections_that_only_another_node_knows(net):
    """Nothing at the attacker's node tells whose connection it is; the tracker of the receiver's node knows it."""
    far, text = net.pods["blue/far"], marker()
    with udp_socket(far.netns) as s:
        s.sendto(b"?", (OUTSIDE, 9))
        inner = IP(src=far.ip, dst=OUTSIDE, flags="DF", len=1400) / UDP(sport=s.getsockname()[1], dport=9, len=1380, chksum=0)
        assert net.heard_after(icmp_errors(net, far.ip, inner, text), text) == []


@pytest.mark.parametrize("ref", ["red/near", "red/far"])
@pytest.mark.parametrize("begins", ["it", "the other"])
def test_a_pod_is_heard_about_what_it_received(net, ref, begins):
    """The control: errors about what began a connection to the pod, and about an answer to what the pod began."""
    me, other, text = net.attacker, net.pods[ref], marker()
    with udp_socket(me.netns) as mine, udp_socket(other.netns) as theirs:
        at_me, at_other = (me.ip, mine.getsockname()[1]), (other.ip, theirs.getsockname()[1])
        if begins == "it":
            wait_for("the question", lambda: mine.sendto(b"?", at_other) and wait_or(lambda: arrived(theirs), 0.5))
        wait_for("what is quoted", lambda: theirs.sendto(b"!", at_me) and wait_or(lambda: arrived(mine), 0.5))
        inner = IP(src=other.ip, dst=me.ip, len=1400) / UDP(sport=at_other[1], dport=at_me[1], len=1380, chksum=0)
        assert net.heard_after(icmp_errors(net, other.ip, inner, text), text) == [ref]


@pytest.mark.parametrize("ref", ["red/near", "red/far"])
def test_a_pod_on_whose_port_nobody_listens_says_so(net, ref):
    with udp_socket(net.pods[ref].netns) as s:
        s.connect((net.attacker.ip, 9))
        wait_for("the error of the pod's kernel", lambda: is_refused(s))


def is_refused(sock):
    """Whether an ICMP error came about a datagram to a port on which nobody listens."""
    def look():
        try:
            return sock.send(b"?") and arrived(sock)
        except ConnectionRefusedError:
            return True
    return wait_or(look, 0.5)


def test_a_pod_cannot_end_connections_of_another_project(net):
    """Resets with all that can be known but the source's link."""
    near, far = net.pods["blue/near"], net.pods["blue/far"]
    with tcp_listener(far.netns, 8081) as server, inside(near.netns, socket.socket) as c:
        c.connect((far.ip, 8081))
        peer = wait_for("the connection", lambda: accepted(server))
        port, text = c.getsockname()[1], marker()
        frames = [Ether(src=net.attacker_mac, dst=dst(net)) / IP(src=s, dst=d) / TCP(sport=sp, dport=dp, flags=f, seq=q) / Raw(text)
                  for f in ("R", "RA", "S", "F") for q in (0, 1 << 31)
                  for s, d, sp, dp in ((near.ip, far.ip, port, 8081), (far.ip, near.ip, 8081, port),
                                       (net.attacker.ip, far.ip, port, 8081), (net.attacker.ip, near.ip, 8081, port))]
        assert net.heard_after(frames, text) == []
        c.settimeout(10)
        c.send(b"hello")
        peer.settimeout(10)
        assert peer.recv(16) == b"hello"
        peer.close()


def accepted(server):
    try:
        return server.accept()[0]
    except BlockingIOError:
        return None


# ---- after all of it ----

def test_the_nodes_are_as_before(net):
    assert net.is_separated()
    for node in ("node1", "node2"):
        assert net.lab.node(node)["ready"]
