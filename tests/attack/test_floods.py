# SPDX-License-Identifier: Apache-2.0
"""A pod that sends as much as it can: to services, DNS, the API, refused and unknown addresses, outside.  Pods of another
project are served meanwhile, and what the nodes' agents remember of it is bounded.

What is counted is how many of a number of tries succeed, each with some repetitions, as one loses packets on a busy machine."""
import contextlib
import pathlib
import random
import re
import select
import socket
import struct
import threading

import pytest
from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw, fragment

from hostile import OUTSIDE
from lab import Server, wait_for
from nameserver import query
from netns import Tap, inside, tcp_connects, udp_socket
from test_packets import mac_of

TRIES, NEEDED = 20, 18
N = 1500  # frames of most floods, which are sent over and over
GROWTH = 400 << 20  # of an agent with sanitizers, which keep what was freed


class Flood:
    """Frames of the attacker, sent again and again while the block runs."""

    def __init__(self, net, frames):
        self.frames = frames
        self.tap = Tap(net.attacker.netns, "eth0")
        self.stopping, self.sent = threading.Event(), 0

    def run(self):
        while not self.stopping.is_set():
            for f in self.frames:
                try:
                    self.tap.sock.send(f)
                    self.sent += 1
                except OSError:  # the queue is full
                    select.select([], [self.tap.sock], [], 0.01)
                if self.stopping.is_set():
                    break

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        wait_for("the flood", lambda: self.sent > 2000)
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join()
        self.tap.close()


@contextlib.contextmanager
def echo(pod, port):
    """UDP and TCP that answer in the pod."""
    servers = [Server(pod.popen, p, port) for p in ("udp", "tcp")]
    try:
        yield
    finally:
        for s in servers:
            s.stop()


def served(net, tries=TRIES):
    """How many of these tries of blue's pods succeed: UDP and TCP, on the node of the attacker and to the other."""
    a, good = net.pods["blue/a"], 0
    targets = [net.pods["blue/near"].ip, net.pods["blue/far"].ip]
    with udp_socket(a.netns) as s:
        for i in range(tries):
            ip = targets[i % 2]
            if i % 3:
                good += asked(s, ip, 7070)
            else:
                good += any(tcp_connects(a.netns, ip, 7070, 3) for _ in range(3))
    return good


def asked(s, ip, port):
    for _ in range(5):
        with contextlib.suppress(OSError):
            s.sendto(b"x", (ip, port))
            if select.select([s], [], [], 1)[0] and s.recv(100):
                return True
    return False


def memory(net, node):
    pid = net.lab.node(node)["pid"]
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


@pytest.fixture(scope="module")
def ready(net):
    with echo(net.pods["blue/near"], 7070), echo(net.pods["blue/far"], 7070):
        wait_for("blue", lambda: served(net, 6) == 6)
        yield net


def head(net):
    return Ether(src=net.attacker_mac, dst=mac_of(net.gateway["node1"]))


def api(net):
    return net.lab.object("service", "kubernetes")["spec"]["clusterIP"]


def frames_of(net, kind):
    """Frames of which no two are of one connection."""
    rng, e, a = random.Random(7), head(net), net.attacker.ip
    vip, near, far = api(net), net.pods["red/near"].ip, net.pods["red/far"].ip

    absent = [str(s[i]) for s in net.subnet.values() for i in range(300, 400)]

    def port():
        return rng.randrange(1024, 65536)

    def byte():
        return rng.randrange(256)

    def syn(to, dport=None):
        return e / IP(src=a, dst=to) / TCP(sport=port(), dport=dport or port(), flags="S", seq=port())

    def udp(to, dport=None, source=a, data=b"x"):
        return e / IP(src=source, dst=to) / UDP(sport=port(), dport=dport or port(), chksum=0) / Raw(data)

    def name(i):
        return f"x{i}.{rng.choice(['example.com', 'svc.cluster.local', 'default.svc.cluster.local'])}"

    def first_fragment(i):
        return e / fragment(IP(src=a, dst=far, id=i) / UDP(sport=7, dport=9, chksum=0) / Raw(b"x" * 1400), fragsize=1208)[0]

    def forged(i):
        return Ether(src=f"02:00:{byte():02x}:{byte():02x}:{byte():02x}:01", dst=e.dst) / udp(near)[IP]
    make = {
        "SYN to a service": lambda i: syn(vip, 443),
        "SYN to pods": lambda i: syn(far if i % 2 else near),
        "UDP to pods": lambda i: udp(far if i % 2 else near),
        "DNS": lambda i: udp(net.gateway["node1"], 53, data=query(name(i))),
        "refused services": lambda i: udp(f"172.30.{byte()}.{byte()}"),
        "absent pods": lambda i: syn(rng.choice(absent), 80),
        "outside": lambda i: udp(OUTSIDE),
        "everywhere": lambda i: e / IP(src=a, dst=f"{rng.randrange(11, 120)}.{byte()}.{byte()}.1") / ICMP(),
        "fragments": first_fragment,
        "forged sources": lambda i: udp(near, source=f"10.{byte()}.{byte()}.9"),
        "forged Ethernet sources": forged,
    }
    return [bytes(make[kind](i)) for i in range(N)]


KINDS = ("SYN to a service", "SYN to pods", "UDP to pods", "DNS", "refused services", "absent pods", "outside", "everywhere",
         "fragments", "forged sources", "forged Ethernet sources")


@pytest.mark.parametrize("kind", KINDS)
def test_other_projects_are_served_during_a_flood(ready, kind):
    net = ready
    before = {node: memory(net, node) for node in net.host}
    with Flood(net, frames_of(net, kind)) as f:
        good = served(net)
    assert good >= NEEDED, f"{good} of {TRIES} after {f.sent} frames"
    for node, was in before.items():
        assert memory(net, node) - was < GROWTH, node
    wait_for("all of it", lambda: served(net, 6) == 6)


def dns_works(pod, gateway):
    with udp_socket(pod.netns) as s:
        for i in range(5):
            with contextlib.suppress(OSError):
                s.sendto(query("kubernetes.default.svc.cluster.local", ident=i + 1), (gateway, 53))
                while select.select([s], [], [], 1)[0]:
                    data = s.recv(2000)
                    if struct.unpack(">H", data[:2])[0] == i + 1 and data[3] & 15 == 0:
                        return True
    return False


@pytest.mark.parametrize("kind", ["DNS", "UDP to pods", "outside"])
def test_names_are_answered_during_a_flood(ready, kind):
    """For pods of another project on the attacker's node, and on the other."""
    net = ready
    with Flood(net, frames_of(net, kind)):
        good = sum(dns_works(net.pods[ref], net.gateway[net.pods[ref].node]) for _ in range(8) for ref in ("blue/near", "blue/far"))
    assert good >= 14, good


def test_the_api_is_reached_during_a_flood(ready):
    """By its service, from another project's pod: its port answers."""
    net = ready
    ip, port = api(net), net.lab.object("service", "kubernetes")["spec"]["ports"][0]["port"]
    assert tcp_connects(net.pods["blue/near"].netns, ip, port, 5)
    with Flood(net, frames_of(net, "SYN to a service")):
        good = sum(any(tcp_connects(net.pods["blue/near"].netns, ip, port, 2) for _ in range(3)) for _ in range(10))
    assert good >= 9, good


def test_refusals_to_one_pod_are_limited(ready):
    """Thousands of refused packets have some tens of errors for answers."""
    net = ready
    tap = net.taps["red/a"]
    tap.forget()
    with Flood(net, frames_of(net, "refused services")) as f:
        wait_for("many packets", lambda: f.sent > 20000)
    errors = [x for x in tap.read() if len(x) > 34 and x[23] == 1 and x[34] == 3]
    assert len(errors) < f.sent / 20, (len(errors), f.sent)


def test_many_connections_outside_leave_room_for_others(ready):
    """What the node translates for one pod's thousands of connections does not keep another pod from beginning one."""
    net = ready
    udp = Server(lambda argv: net.lab.ns_popen("outside", argv), "udp", 9001, OUTSIDE)
    try:
        def outside():
            with udp_socket(net.pods["blue/near"].netns) as s:
                return asked(s, OUTSIDE, 9001)
        wait_for("the way outside", outside)
        with Flood(net, frames_of(net, "outside")) as f:
            wait_for("thousands of connections", lambda: f.sent > 20000)
            assert sum(outside() for _ in range(10)) >= 9
    finally:
        udp.stop()


def test_sockets_without_end_to_the_node_do_not_end_its_agent(ready):
    """TCP to the name server of the gateway, opened and kept: others' names are answered, the agent lives."""
    net = ready
    pids = {n: net.lab.node(n)["pid"] for n in net.host}
    held = []
    try:
        for _ in range(300):
            s = inside(net.attacker.netns, socket.socket)
            s.settimeout(1)
            with contextlib.suppress(OSError):
                s.connect((net.gateway["node1"], 53))
                s.sendall(b"\xff\xff")
            held.append(s)
        assert dns_works(net.pods["blue/near"], net.gateway["node1"])
    finally:
        for s in held:
            s.close()
    assert pids == {n: net.lab.node(n)["pid"] for n in net.host}


def test_after_all_floods_nothing_has_changed(ready):
    net = ready
    wait_for("separate projects", net.is_separated)
    assert all(net.lab.node(n)["ready"] for n in net.host)
    assert served(net, 12) == 12
