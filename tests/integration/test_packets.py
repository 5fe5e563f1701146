# SPDX-License-Identifier: Apache-2.0
"""What is on the wires: paths, VXLAN headers, MTU, NAT, and what a pod may not send."""
import re
import signal
import threading

import pytest

from forged import assert_pod_cannot_narrow_paths
from lab import Server, probe, wait_for

OUTSIDE = "198.51.100.10"
LARGE = 48 << 20
# iperf3's receiver stops to count when its sender ends; this one reads all that was sent.
READ_TO_THE_END = """
import socket, sys
connection = socket.create_server(("", int(sys.argv[1]))).accept()[0]
size = 0
while part := connection.recv(1 << 20):
    size += len(part)
print(size)
"""
SEND_ALL = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    for _ in range(int(sys.argv[3]) >> 20):
        connection.sendall(bytes(1 << 20))
"""


@pytest.fixture(params=["subnet", "multitenant", "mixed"])
def cluster(request):
    """The cluster of pods under each plug-in, and with each datapath."""
    return request.getfixturevalue(request.param)


class Capture:
    """tcpdump in a namespace; entering returns when it listens, 'lines' are complete after the exit."""

    def __init__(self, popen, interface, expression, snap=0):
        self.popen, self.interface, self.expression, self.snap = popen, interface, expression, snap

    def __enter__(self):
        self.proc = self.popen(["tcpdump", "-i", self.interface, "-n", "-l", "-U", "--immediate-mode", "-s",
                                str(self.snap), "-e", "-v", self.expression])
        self.lines = []
        for line in self.proc.stdout:
            if "listening on" in line:
                break
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.proc.stdout))
        self.reader.start()
        return self

    def text(self):
        return "".join(self.lines)

    def __exit__(self, *exc):
        self.proc.send_signal(signal.SIGINT)
        self.proc.wait()
        self.reader.join()
        self.proc.stdout.close()


def link_of(lab, node):
    """Ethernet address that the outside host sees for a node."""
    lab.ns("outside", ["ping", "-n", "-c", "1", lab.node(node)["hostIP"]])
    return re.search(r"lladdr (\S+)", lab.ns("outside", ["ip", "neigh", "show", lab.node(node)["hostIP"]]).stdout).group(1)


def by_ref(lab, ref):
    return next(p for p in lab.pods if p.ref == ref)


def capture_wire(lab, node, expression):
    return Capture(lambda argv: lab.ns_popen("wire", argv), node, expression)


@pytest.mark.parametrize("project", ["default", "red", "blue"])
def test_vxlan_carries_the_vnid_between_the_right_hosts(cluster, project):
    a, b = by_ref(cluster, f"{project}/{project}-1"), by_ref(cluster, f"{project}/{project}-2")
    vni = a.vnid if cluster.options["plugin"].endswith("multitenant") else 0
    src, dst = cluster.node("node1")["hostIP"], cluster.node("node2")["hostIP"]
    with capture_wire(cluster, "node1", "udp dst port 4789") as cap:
        assert a.can_ping(b.ip)
        wait_for("both directions on the wire",
                 lambda: "echo request" in cap.text() and "echo reply" in cap.text())
    text = cap.text()
    outer = set(re.findall(r"(\d+\.\d+\.\d+\.\d+)\.\d+ > (\d+\.\d+\.\d+\.\d+)\.4789: VXLAN", text))
    assert outer == {(src, dst), (dst, src)}
    assert {int(v) for v in re.findall(r"vni (\d+)", text)} == {vni}
    assert re.search(rf"{re.escape(a.ip)} > {re.escape(b.ip)}: ICMP echo request", text)


def test_local_traffic_stays_on_the_bridge(cluster):
    """PKT-01: pods of one node meet in br0; neither tun0 nor the wire sees the packets."""
    a = by_ref(cluster, "red/red-1")
    other = cluster.pod("red/near", "node1")
    try:
        with Capture(lambda argv: cluster.ns_popen("node1", argv), "tun0", f"icmp and host {other.ip}") as tun, \
                capture_wire(cluster, "node1", "udp port 4789") as wire:
            assert a.can_ping(other.ip)
            assert a.can_ping(OUTSIDE)  # comes by tun0, so the capture does see packets
        assert other.ip not in tun.text() and other.ip not in wire.text()
    finally:
        cluster.delete_pod("red/near")


def test_large_tcp_at_full_mtu_is_not_fragmented(cluster):
    a, b = by_ref(cluster, "red/red-1"), by_ref(cluster, "red/red-3")
    mtu = int(re.search(r"mtu (\d+)", a.ns(["ip", "link", "show", "eth0"]).stdout).group(1))
    # A datagram that fills the MTU passes whole, one byte more does not pass without fragmentation.
    assert a.can_ping(b.ip, size=mtu - 28, extra=("-M", "do"))
    assert not a.can_ping(b.ip, size=mtu - 27, extra=("-M", "do"))
    server = b.popen(["/usr/bin/python3", "-c", READ_TO_THE_END, "5201"])
    try:
        wait_for("the receiver to listen", lambda: ":5201" in b.ns(["ss", "-ltn"]).stdout)
        with capture_wire(cluster, "node1", "ip[6:2] & 0x3fff != 0") as fragments:
            a.ns(["/usr/bin/python3", "-c", SEND_ALL, b.ip, "5201", str(LARGE)], timeout=120)
            received = int(server.communicate(timeout=120)[0])
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    assert received == LARGE
    assert not [line for line in fragments.lines if " > " in line]


def test_nat_shows_the_nodes_address_outside(cluster):
    """NAT-01, NAT-08, PKT-03, PKT-08: every project gets out, and only as its node."""
    server = Server(lambda argv: cluster.ns_popen("outside", argv), "tcp", 9000)
    udp = Server(lambda argv: cluster.ns_popen("outside", argv), "udp", 9001, OUTSIDE)
    try:
        for pod in cluster.pods:
            host = cluster.node(pod.node)["hostIP"]
            assert probe(pod, "tcp", [f"{OUTSIDE}:9000"]) == {f"{OUTSIDE}:9000": host}, pod
            assert probe(pod, "udp", [f"{OUTSIDE}:9001"]) == {f"{OUTSIDE}:9001": host}, pod
            assert pod.can_ping(OUTSIDE), pod
    finally:
        server.stop()
        udp.stop()


SEND = """
import sys
from scapy.all import ARP, Ether, ICMP, IP, UDP, VXLAN, Raw, conf, get_if_hwaddr, sendp
conf.verb = 0
what, src_ip, dst_ip, dst_mac, extra = sys.argv[1:6]
mac = get_if_hwaddr("eth0")
marker = Raw(b"tenet-marker")
frames = {
    "honest": lambda: Ether(src=mac, dst=dst_mac) / IP(src=src_ip, dst=dst_ip) / UDP(sport=7, dport=7777) / marker,
    "ip": lambda: Ether(src=mac, dst=dst_mac) / IP(src=extra, dst=dst_ip) / UDP(sport=7, dport=7777) / marker,
    "mac": lambda: Ether(src="02:00:00:00:00:01", dst=dst_mac) / IP(src=src_ip, dst=dst_ip) / UDP(sport=7, dport=7777) / marker,
    "arp-ip": lambda: Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=mac, psrc=extra, pdst=dst_ip),
    "arp-mac": lambda: Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(op=2, hwsrc="02:00:00:00:00:01", psrc=src_ip, pdst=dst_ip),
    "vxlan": lambda: Ether(src=mac, dst=dst_mac) / IP(src=src_ip, dst=dst_ip) / UDP(sport=4789, dport=4789)
             / VXLAN(vni=int(extra)) / Ether(src=mac, dst=mac) / IP(src=src_ip, dst=dst_ip) / marker,
    "ipv6": lambda: Ether(src=mac, dst=dst_mac, type=0x86dd) / Raw(b"\\x60" + b"\\0" * 60),
}
sendp([frames[what]()] * 3, iface="eth0")
"""


def send(pod, what, dst_ip, dst_mac, extra="0"):
    pod.ns(["/usr/bin/python3", "-c", SEND, what, pod.ip, dst_ip, dst_mac, extra])


def mac_of(ip):
    return "0a:58:" + ":".join(f"{int(o):02x}" for o in ip.split("."))


@pytest.mark.parametrize("where", ["red-2", "red-3"])
def test_a_pod_cannot_forge_addresses(cluster, where):
    """The victim is in the same project, so only the anti-spoofing rules can drop these."""
    attacker, victim = by_ref(cluster, "red/red-1"), by_ref(cluster, f"red/{where}")
    blue = by_ref(cluster, "blue/blue-1")
    with Capture(victim.popen, "eth0", "udp port 7777 or ether proto 0x86dd") as cap:
        send(attacker, "honest", victim.ip, mac_of(victim.ip))
        wait_for("the honest datagram", lambda: "7777" in cap.text())
        cap.lines.clear()
        send(attacker, "ip", victim.ip, mac_of(victim.ip), blue.ip)
        send(attacker, "mac", victim.ip, mac_of(victim.ip))
        send(attacker, "ipv6", victim.ip, mac_of(victim.ip))
        assert victim.can_ping(attacker.ip)  # whatever was sent before has arrived or is dropped
    assert "7777" not in cap.text() and "IP6" not in cap.text()


def test_a_pod_cannot_poison_arp(cluster):
    attacker, blue = by_ref(cluster, "red/red-1"), by_ref(cluster, "blue/blue-1")
    near = cluster.pod("red/near", "node1")
    try:
        with Capture(near.popen, "eth0", "arp") as cap:
            send(attacker, "arp-ip", near.ip, "ff:ff:ff:ff:ff:ff", blue.ip)
            send(attacker, "arp-mac", near.ip, "ff:ff:ff:ff:ff:ff")
            assert near.can_ping(attacker.ip)
        assert "02:00:00:00:00:01" not in cap.text() and blue.ip not in cap.text()
        assert "02:00:00:00:00:01" not in near.ns(["ip", "neigh"]).stdout
    finally:
        cluster.delete_pod("red/near")


def test_a_pod_cannot_forge_the_tunnel(multitenant):
    """A datagram to another node's VTEP would arrive from a known host with a VNI of the pod's choice."""
    attacker = by_ref(multitenant, "red/red-1")
    host2 = multitenant.node("node2")["hostIP"]
    gateway = attacker.ns(["ip", "-4", "route", "show", "default"]).stdout.split()[2]
    with capture_wire(multitenant, "node1", "udp dst port 4789 or icmp") as cap:
        send(attacker, "vxlan", host2, mac_of(gateway), str(by_ref(multitenant, "blue/blue-1").vnid))
        assert attacker.can_ping(host2)
        wait_for("the ping on the wire", lambda: "echo request" in cap.text())
    assert "tenet-marker" not in cap.text() and f"{host2}.4789" not in cap.text()


@pytest.mark.parametrize("where", ["red-1", "red-2"])
def test_a_pod_cannot_narrow_its_nodes_paths(cluster, where):
    """By a forged "fragmentation needed", or a redirect, about a connection or a tunnel of the node."""
    assert_pod_cannot_narrow_paths(cluster, by_ref(cluster, f"red/{where}"), "node3")


NEIGHBOURLY = """
import sys
from scapy.all import ARP, Ether, ICMPv6ND_NA, ICMPv6ND_RA, IP, IPv6, Raw, conf, get_if_hwaddr, sendp
conf.verb = 0
own, gateway, gateway_mac = sys.argv[1:4]
mac, all_nodes = get_if_hwaddr("eth0"), "33:33:00:00:00:01"
padding = Raw(bytes(18))  # by which these differ from what the datapath answers in the pod's name
answer = ARP(op=2, hwsrc=mac, psrc=own, hwdst=gateway_mac, pdst=gateway)
sendp([Ether(src=mac, dst=gateway_mac) / answer / padding,
       Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=mac, psrc=own, pdst=own) / padding,
       Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(op=2, hwsrc=mac, psrc=own, hwdst=mac, pdst=own) / padding,
       Ether(src=mac, dst=all_nodes) / IPv6(src="fe80::1", dst="ff02::1", hlim=255) / ICMPv6ND_RA(),
       Ether(src=mac, dst=all_nodes) / IPv6(src="fe80::1", dst="ff02::1", hlim=255) / ICMPv6ND_NA(tgt="fe80::1"),
       Ether(src=mac, dst="01:00:5e:00:00:01") / IP(src=own, dst="224.0.0.1", proto=2, ttl=1) / Raw(bytes.fromhex("1164ee9b00000000")),
       ] * 2, iface="eth0")
"""


@pytest.mark.parametrize("where", ["red-1", "red-2"])
def test_the_host_hears_no_neighbour_messages_of_pods(cluster, where):
    """Neither ARP that nobody asked for, nor router and neighbour advertisements, nor IGMP queries."""
    pod = by_ref(cluster, f"red/{where}")
    gateway = pod.ns(["ip", "-4", "route", "show", "default"]).stdout.split()[2]
    with Capture(lambda argv: cluster.ns_popen(pod.node, argv), "tun0", f"ether src {mac_of(pod.ip)} and (not arp or greater 60)") as cap:
        pod.ns(["/usr/bin/python3", "-c", NEIGHBOURLY, pod.ip, gateway, mac_of(gateway)])
        assert pod.can_ping(gateway)
        wait_for("what was sent last", lambda: "echo request" in cap.text())
    assert not re.search("ARP|IP6|igmp", cap.text()), cap.text()


FROM_WIRE = """
import sys
from scapy.all import Ether, ICMP, IP, UDP, VXLAN, Raw, conf, sendp
conf.verb = 0
smac, dmac, osrc, odst, vni, isrc, idst, imac = sys.argv[1:9]
f = (Ether(src=smac, dst=dmac) / IP(src=osrc, dst=odst) / UDP(sport=50000, dport=4789, chksum=0)
     / VXLAN(vni=int(vni), flags=8) / Ether(src="0a:58:0a:80:00:01", dst=imac) / IP(src=isrc, dst=idst)
     / UDP(sport=9, dport=7777) / Raw(b"tenet-marker"))
sendp([f] * 3, iface=sys.argv[9])
"""


def test_packets_from_the_wire_are_judged_by_their_tunnel_id(multitenant):
    """ISO-03, ISO-07, ISO-09: right VNI or 0 is delivered; another VNI, or an unknown VTEP, is dropped."""
    victim, sender = by_ref(multitenant, "red/red-1"), by_ref(multitenant, "red/red-2")
    blue = by_ref(multitenant, "blue/blue-2")
    n1, n2 = multitenant.node("node1")["hostIP"], multitenant.node("node2")["hostIP"]
    outside = "10.245.2.254"
    multitenant.ns("outside", ["ping", "-n", "-c", "1", n1])  # so that its neighbour table has the MAC
    neigh = multitenant.ns("outside", ["ip", "neigh", "show", n1]).stdout
    dev = re.search(r"dev (\S+)", neigh).group(1)
    dmac = re.search(r"lladdr (\S+)", neigh).group(1)
    # With node2's own address, as a forger would: Open vSwitch learns next hops from what it receives.
    smac = link_of(multitenant, "node2")

    def inject(osrc, vni, isrc):
        multitenant.ns("outside", ["/usr/bin/python3", "-c", FROM_WIRE, smac, dmac, osrc, n1, str(vni), isrc,
                                   victim.ip, mac_of(victim.ip), dev])

    def arrives(osrc, vni, isrc):
        with Capture(victim.popen, "eth0", "udp port 7777") as cap:
            inject(osrc, vni, isrc)
            assert sender.can_ping(victim.ip)
            assert sender.can_ping(victim.ip)
        return "7777" in cap.text()

    assert arrives(n2, victim.vnid, sender.ip)
    assert arrives(n2, 0, sender.ip)
    assert not arrives(n2, blue.vnid, blue.ip)
    assert not arrives(n2, 5, sender.ip)
    assert not arrives(outside, victim.vnid, sender.ip)


ARP_FROM_WIRE = """
import sys
from scapy.all import ARP, Ether, IP, UDP, VXLAN, conf, sendp
conf.verb = 0
smac, dmac, osrc, odst, spa, tpa, dev = sys.argv[1:8]
f = (Ether(src=smac, dst=dmac) / IP(src=osrc, dst=odst) / UDP(sport=50000, dport=4789, chksum=0)
     / VXLAN(vni=0, flags=8) / Ether(src="0a:58:0a:80:00:01", dst="ff:ff:ff:ff:ff:ff")
     / ARP(op=1, hwsrc="0a:58:0a:80:00:01", psrc=spa, pdst=tpa))
sendp([f] * 2, iface=dev)
"""


def test_arp_through_the_tunnel_is_answered_for_a_local_pod_only(multitenant):
    """PKT-07: how another VTEP (F5's) learns the pod's MAC."""
    victim = by_ref(multitenant, "red/red-1")
    n1, n2 = multitenant.node("node1")["hostIP"], multitenant.node("node2")["hostIP"]
    multitenant.ns("outside", ["ping", "-n", "-c", "1", n1])
    neigh = multitenant.ns("outside", ["ip", "neigh", "show", n1]).stdout
    dev, dmac = re.search(r"dev (\S+)", neigh).group(1), re.search(r"lladdr (\S+)", neigh).group(1)
    smac = link_of(multitenant, "node2")
    spa = by_ref(multitenant, "red/red-2").ip
    absent = victim.ip.rsplit(".", 1)[0] + ".250"

    def ask(tpa):
        multitenant.ns("outside", ["/usr/bin/python3", "-c", ARP_FROM_WIRE, smac, dmac, n2, n1, spa, tpa, dev])

    with capture_wire(multitenant, "node1", "udp dst port 4789") as cap:
        ask(absent)
        ask(victim.ip)
        wait_for("the answer", lambda: f"Reply {victim.ip} is-at {mac_of(victim.ip)}" in cap.text())
    assert f"Reply {absent}" not in cap.text()
    # The bridge that plays the wire believes now that node2 is at the outside's port, until node2 speaks.
    assert by_ref(multitenant, "red/red-2").can_ping(victim.ip)
