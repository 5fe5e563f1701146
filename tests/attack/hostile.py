# SPDX-License-Identifier: Apache-2.0
"""A lab under attack: taps at every place that a packet could get to, and markers by which each try is known again."""
import contextlib
import ipaddress
import itertools
import json
import re

from scapy.all import IP, UDP, Ether, Raw

from lab import run, wait_for
from netns import Tap
from test_packets import mac_of

OUTSIDE = "198.51.100.10"
NEIGHBOUR = "10.245.2.200"
BROADCAST = "ff:ff:ff:ff:ff:ff"
_tries = itertools.count(1)

# What separates projects under the plug-in networkpolicy: each takes packets of its own pods only.
OWN_ONLY = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "own-only"},
            "spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}}


def marker():
    """Eight bytes, as many as the smallest fragment has, that no other packet has."""
    return b"!%06d!" % next(_tries)


class Net:
    """Pods a, near (node1) and far (node2) in each of red and blue; red/a is the attacker's."""

    def __init__(self, lab, plugin):
        self.lab, self.plugin, self.taps = lab, plugin, {}
        self.pods = {}
        for project in ("red", "blue"):
            lab.project(project)
            if plugin == "networkpolicy":
                lab.kubectl("apply", "-n", project, "-f", "-", input=json.dumps(OWN_ONLY))
            for name, node in (("a", "node1"), ("near", "node1"), ("far", "node2")):
                ref = f"{project}/{name}"
                self.pods[ref] = lab.pod(ref, node)
        self.attacker = self.pods["red/a"]
        self.attacker_mac = mac_of(self.attacker.ip)
        self.host = {n: lab.node(n)["hostIP"] for n in ("node1", "node2")}
        self.subnet = {n: ipaddress.ip_network(lab.node(n)["subnet"]) for n in ("node1", "node2")}
        self.gateway = {n: str(s[1]) for n, s in self.subnet.items()}
        self.master = next(a for a in re.findall(r"inet (\S+?)/", lab.ns("master", ["ip", "-4", "addr"]).stdout)
                           if a.startswith("10.245."))
        for ref, pod in self.pods.items():
            self.taps[ref] = Tap(pod.netns, "eth0")
        for where in ("outside", "master"):
            self.taps[where] = Tap(f"/run/netns/{lab.ns_name(where)}", "eth0")
        for node in self.host:
            self.taps[f"{node} tun0"] = Tap(f"/run/netns/{lab.ns_name(node)}", "tun0")
        self.echoes = {}
        wait_for("policies and pods", self.is_separated)

    def is_separated(self):
        """What must hold before and after all attacks: red reaches red, and not blue."""
        a = self.attacker
        return (all(a.can_ping(self.pods[f"red/{n}"].ip, tries=1) for n in ("near", "far")) and
                not any(a.can_ping(self.pods[f"blue/{n}"].ip, tries=1) for n in ("near", "far")))

    def path(self, host):
        return f"/run/netns/{self.lab.ns_name(host)}"

    # ---- frames ----

    def udp(self, to, text, source=None, smac=None, dmac=None, port=7777):
        """An honest datagram of the attacker to the pod, but for what is given."""
        ip = getattr(to, "ip", to)
        return (Ether(src=smac or self.attacker_mac, dst=dmac or mac_of(self.gateway["node1"])) /
                IP(src=source or self.attacker.ip, dst=ip) / UDP(sport=7, dport=port, chksum=0) / Raw(text))

    def who_heard(self, text, places=None):
        return sorted(n for n, t in self.taps.items() if n != "red/a" and (places is None or n in places) and t.heard(text))

    def settle(self, send, honest, places):
        """Sends honest datagrams behind the forged ones until they have arrived everywhere that forged ones could have."""
        def look():
            for to in honest:
                send(self.udp(to, text, port=9))
            return all(self.taps[p].heard(text) for p in places)
        text = marker()
        wait_for(f"honest datagrams at {places}", look)

    def heard_after(self, frames, text, times=3):
        """Places where the marker of these frames of the attacker arrived, once honest ones behind them have."""
        tap = self.taps["red/a"]
        for _ in range(times):
            tap.send(*frames)
        self.settle(tap.send, [self.pods["red/near"], self.pods["red/far"]], ["red/near", "red/far"])
        return self.who_heard(text)

    def forget(self):
        for t in self.taps.values():
            t.forget()

    # ---- a machine of the node network that is nobody's ----

    @contextlib.contextmanager
    def neighbour(self):
        """Tap of a machine beside the nodes, and the Ethernet address by which it reaches each of them."""
        lab, ns = self.lab, self.lab.ns_name("evil")
        run(["ip", "netns", "add", ns])
        try:
            run(["ip", "-n", lab.ns_name("wire"), "link", "add", "evil", "type", "veth", "peer", "name", "eth0", "netns", ns])
            run(["ip", "-n", lab.ns_name("wire"), "link", "set", "evil", "master", "wire", "up"])
            for what in (["link", "set", "lo", "up"], ["addr", "add", f"{NEIGHBOUR}/24", "dev", "eth0"],
                         ["link", "set", "eth0", "up"]):
                run(["ip", "-n", ns, *what])
            yield Neighbour(self, ns)
        finally:
            run(["ip", "netns", "del", ns])
            run(["ip", "-n", lab.ns_name("wire"), "link", "del", "evil"], check=False)

    def close(self):
        for t in self.taps.values():
            t.close()


class Neighbour:
    def __init__(self, net, ns):
        self.net, self.ns, self.netns = net, ns, f"/run/netns/{ns}"
        self.tap = Tap(self.netns, "eth0")
        self.mac = re.search(r"link/ether (\S+)", self.run(["ip", "link", "show", "eth0"])).group(1)
        self.dmac = {}
        for node, ip in net.host.items():
            wait_for(f"the way to {node}", lambda ip=ip: self.run(["ping", "-n", "-c", "1", "-W", "1", ip], check=False))
            self.dmac[node] = re.search(r"lladdr (\S+)", self.run(["ip", "neigh", "show", ip])).group(1)

    def run(self, argv, check=True):
        r = run(["ip", "netns", "exec", self.ns, *argv], check=check)
        return r.stdout if r.returncode == 0 else ""
