# SPDX-License-Identifier: Apache-2.0
"""ICMP errors that a pod forges to have its node believe something about a path of the node's own."""
import json

from lab import wait_for

OUTSIDE = "198.51.100.10"
# Ports of a connection that the node really has, as a guess would find them.
HERE, THERE = 5555, 5556

# The node's connections: a datagram to each address, from a socket that stays open until standard input ends.
CONNECT = """
import socket, sys
sockets = []
for address in sys.argv[3:]:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: the path's MTU counts
    s.bind(("0.0.0.0", int(sys.argv[1])))
    s.connect((address, int(sys.argv[2])))
    s.send(b"?")
    sockets.append(s)
print("ready", flush=True)
sys.stdin.read()
"""

# {"type", "code", "to", "quoted": [protocol, source, destination, ports]} each, of the pod to the gateway's address.
FORGE = """
import json, sys
from scapy.all import Ether, ICMP, IP, UDP, Raw, conf, sendp
conf.verb = 0
source, mac, frames = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def quoted(protocol, src, dst, sport, dport):
    inner = {"icmp": lambda: ICMP(type=8, id=1, seq=1), "udp": lambda: UDP(sport=sport, dport=dport)}[protocol]()
    return IP(src=src, dst=dst, flags="DF") / inner / Raw(b"x" * 64)

sendp([Ether(dst=mac) / IP(src=source, dst=f["to"]) / ICMP(type=f["type"], code=f["code"], nexthopmtu=552 if f["type"] == 3 else 0,
       **({"gw": source} if f["type"] == 5 else {})) / quoted(*f["quoted"]) for f in frames], iface="eth0")
"""

REFUSED = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for attempt in range(10):
    try:
        s.connect((sys.argv[1], 9999))
        s.send(b"?")
        s.recv(1)
    except ConnectionRefusedError:
        print("refused")
        break
    except OSError:
        pass
"""


def dropped(lab, node):
    counters = json.loads(lab.ns(node, ["nft", "-j", "list", "counter", "ip", "tenet", "forged-icmp"]).stdout)["nftables"]
    return next(c["counter"]["packets"] for c in counters if "counter" in c)


def assert_pod_cannot_narrow_paths(lab, pod, other):
    """'pod' reports about its node's paths to the node 'other' and to the outside; what pods may report still arrives."""
    own, peer = lab.node(pod.node)["hostIP"], lab.node(other)["hostIP"]
    gateway = pod.ns(["ip", "-4", "route", "show", "default"]).stdout.split()[2]
    mac = "0a:58:" + ":".join(f"{int(o):02x}" for o in gateway.split("."))
    quotes = [["icmp", own, peer, 0, 0], ["udp", own, peer, 50000, 4789], ["udp", own, peer, HERE, THERE]]
    frames = [{"type": kind, "code": code, "to": to, "quoted": q}
              for q in quotes for to in (own, gateway) for kind, code in ((3, 4), (5, 1))]
    # To the other end of a connection that the node has, which would take it for a router's.
    frames.append({"type": 3, "code": 4, "to": OUTSIDE, "quoted": ["udp", OUTSIDE, own, THERE, HERE]})
    with lab.ns_popen(pod.node, ["/usr/bin/python3", "-c", CONNECT, HERE, THERE, peer, OUTSIDE], stdin=-1) as connections:
        assert connections.stdout.readline() == "ready\n"
        before = dropped(lab, pod.node)
        pod.ns(["/usr/bin/python3", "-c", FORGE, pod.ip, mac, json.dumps(frames)])
        wait_for("what is forged to be dropped", lambda: dropped(lab, pod.node) >= before + len(frames))
        route = lab.ns(pod.node, ["ip", "route", "get", peer]).stdout
        assert "mtu" not in route and "redirected" not in route, route
        connections.stdin.close()
    after = dropped(lab, pod.node)
    assert lab.ns(pod.node, ["/usr/bin/python3", "-c", REFUSED, pod.ip]).stdout == "refused\n"
    assert dropped(lab, pod.node) == after
