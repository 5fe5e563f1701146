#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of a packet in the eBPF datapath beside other ways of Linux, all in one run, in turn.

  local      two pods of one node: a veth pair alone (direct), a Linux bridge, routed veth pairs, the datapath ovs (Open
             vSwitch's userspace datapath), the datapath ebpf
  across     pods of two nodes, which are namespaces joined by a veth pair: the hosts themselves (host), routed veth pairs
             with a route each (hostgw), a bridge and a kernel VXLAN device (vxlan), ovs, ebpf
  segmented  the same with TSO off and GRO on at the wire, like a network card without offloads for tunnels; otherwise a
             wire of veth passes packets of 64 kB whole

It measures with client and server on one core, where only the work of the way counts, and on two:

  tcp    one stream (bench_exchange), cubic, in writes of --block KiB; on one core Gbit for each second of processor time
         of both ends and Open vSwitch.  After each write a small packet may be left over: with 128, as iperf3 has it,
         always at the MTU of pods, every other time at that of hosts, which does not depend on the way
  rr     one byte there and back by TCP, median
  udp    64-byte datagrams in bursts of 64, each burst answered by one: thousands a second

Each round goes through all ways in another order.  A value is the median of the rounds, a ratio the median of the rounds'
own ratios to the first row; above 1 is better for tcp and udp, below 1 for rr.  ovs keeps the lab's own wire, a bridge.
The place of pods and maps in memory changes the result, and stays the same until they are made anew: --labs makes all of
them that often, with --rounds each.

--loaded makes a second ebpf lab that knows --remotes nodes, --projects VNIDs, --pods pods of its own node and --policies
policies (with --plugin redhat/openshift-ovs-networkpolicy), and compares it with the first.
--watched makes a lab in which `tenet flows -w` reads the flows of both nodes, and compares it with the first.

usage: datapath.py [--build build] [--only local,across,segmented] [--peers a,b,...] [--cores 1,2]
                   [--measures tcp,rr,udp] [--labs 1] [--rounds 5] [--seconds 1] [--block 1024] [--watched] [--loaded]
                   [--pods 1000] [--remotes 5000] [--projects 10000] [--policies 0] [--plugin NAME]
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = {"local": ["direct", "bridge", "routed", "ovs", "ebpf"],
         "across": ["host", "hostgw", "vxlan", "ovs", "ebpf"]}
PEERS["segmented"] = PEERS["across"]
VARIANTS = ["ebpf loaded", "ebpf watched"]
UNITS = {("tcp", 1): "Gbit/CPU-s", ("tcp", 2): "Gbit/s", ("rr", 1): "us", ("rr", 2): "us", ("udp", 1): "kpps",
         ("udp", 2): "kpps"}
BURST = 64
WINDOW = 512  # KiB of a stream's buffers on one core; on two what the kernel thinks best
POD_MTU = 1450  # of pods where the wire has 1500; locally all have it: what is compared is the way, not the MTU
PORT = 7010
# ETHTOOL_STSO and ETHTOOL_SGRO of a link, in the namespace it is run in.
ETHTOOL = """
import fcntl, socket, struct, sys
import array
name, on = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for command, value in ((0x1f, not on), (0x2c, on)):
    data = array.array("B", struct.pack("II", command, value))
    fcntl.ioctl(s, 0x8946, struct.pack("16sP8x", name.encode(), data.buffer_info()[0]))
"""


def ip(*args):
    subprocess.run(["ip", *map(str, args)], check=True)


def in_ns(ns, *argv):
    return ["ip", "netns", "exec", ns, *map(str, argv)]


class Way:
    """Where a client and a server are, and the server's address."""

    def __init__(self, name, client, server, address, wires=(), switches=()):
        self.name, self.client, self.server, self.address, self.wires = name, client, server, address, wires
        self.switches = switches  # processes that carry the packets

    def switches_s(self):
        """Processor time of those so far."""
        stats = [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split() for pid in self.switches]
        return sum(int(s[11]) + int(s[12]) for s in stats) / os.sysconf("SC_CLK_TCK")


class Net:
    """Namespaces of our own, without Tenet."""

    def __init__(self):
        self.prefix, self.made = f"tenet-dpb{os.getpid()}-", []

    def ns(self, name, forward=False):
        full = self.prefix + name
        ip("netns", "add", full)
        self.made.append(full)
        ip("-n", full, "link", "set", "lo", "up")
        off = ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0", "net.ipv6.conf.all.disable_ipv6=1",
               "net.ipv6.conf.default.disable_ipv6=1"]
        subprocess.run(in_ns(full, "sysctl", "-qw", *off, *(["net.ipv4.ip_forward=1"] if forward else [])), check=True)
        return full

    def close(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def veth(ns, name, peer_ns, peer_name, mtu=1500):
    ip("-n", ns, "link", "add", name, "mtu", mtu, "type", "veth", "peer", "name", peer_name, "netns", peer_ns, "mtu", mtu)
    ip("-n", ns, "link", "set", name, "up")
    ip("-n", peer_ns, "link", "set", peer_name, "up")


def address(ns, link, prefix):
    ip("-n", ns, "addr", "add", prefix, "dev", link)


def route(ns, *args):
    ip("-n", ns, "route", "add", *args)


def routed_pod(net, host, name, pod_ip, mtu=1500):
    pod = net.ns(name)
    veth(host, name, pod, "eth0", mtu)
    address(host, name, "169.254.1.1/32")
    address(pod, "eth0", f"{pod_ip}/32")
    route(pod, "169.254.1.1", "dev", "eth0", "scope", "link")
    route(pod, "default", "via", "169.254.1.1")
    route(host, f"{pod_ip}/32", "dev", name)
    return pod


def bridge(host, mtu=1500):
    ip("-n", host, "link", "add", "cni0", "mtu", mtu, "type", "bridge")
    ip("-n", host, "link", "set", "cni0", "up")


def bridged_pod(net, host, name, prefix, mtu=1500):
    pod = net.ns(name)
    veth(host, name, pod, "eth0", mtu)
    ip("-n", host, "link", "set", name, "master", "cni0")
    address(pod, "eth0", prefix)
    return pod


def local_ways(net, names):
    ways = []
    if "direct" in names:
        a, b = net.ns("da"), net.ns("db")
        veth(a, "eth0", b, "eth0", POD_MTU)
        address(a, "eth0", "10.91.0.1/24")
        address(b, "eth0", "10.91.0.2/24")
        ways.append(Way("direct", a, b, "10.91.0.2"))
    if "bridge" in names:
        host = net.ns("bh")
        bridge(host, POD_MTU)
        a, b = (bridged_pod(net, host, f"b{i}", f"10.92.0.{i}/24", POD_MTU) for i in (1, 2))
        ways.append(Way("bridge", a, b, "10.92.0.2"))
    if "routed" in names:
        host = net.ns("rh", forward=True)
        a, b = (routed_pod(net, host, f"r{i}", f"10.93.0.{i}", POD_MTU) for i in (1, 2))
        ways.append(Way("routed", a, b, "10.93.0.2"))
    return ways


def across_ways(net, names):
    """'host', 'hostgw' and 'vxlan' are on the same two hosts."""
    hosts = [net.ns(f"h{i}", forward=True) for i in (1, 2)]
    veth(hosts[0], "wire0", hosts[1], "wire0")
    wires, gw, vx = [(h, "wire0") for h in hosts], [], []
    for i, h in enumerate(hosts, 1):
        address(h, "wire0", f"10.95.0.{i}/24")
    for i, h in enumerate(hosts, 1):
        o = 3 - i
        gw.append(routed_pod(net, h, f"g{i}", f"10.96.{i}.2"))
        route(h, f"10.96.{o}.0/24", "via", f"10.95.0.{o}")
        # As flannel does it: each node's device and its address are known to the others beforehand.
        bridge(h, POD_MTU)
        address(h, "cni0", f"10.97.{i}.1/24")
        vx.append(bridged_pod(net, h, f"v{i}", f"10.97.{i}.2/24", POD_MTU))
        route(vx[-1], "default", "via", f"10.97.{i}.1")
        ip("-n", h, "link", "add", "flannel.1", "address", f"02:00:00:00:00:0{i}", "mtu", POD_MTU, "type", "vxlan", "id", 1,
           "local", f"10.95.0.{i}", "dev", "wire0", "dstport", 8472, "nolearning")
        ip("-n", h, "link", "set", "flannel.1", "up")
        address(h, "flannel.1", f"10.97.{i}.0/32")
        route(h, f"10.97.{o}.0/24", "via", f"10.97.{o}.0", "dev", "flannel.1", "onlink")
        ip("-n", h, "neigh", "add", f"10.97.{o}.0", "lladdr", f"02:00:00:00:00:0{o}", "dev", "flannel.1")
        subprocess.run(["bridge", "-n", h, "fdb", "append", f"02:00:00:00:00:0{o}", "dev", "flannel.1", "dst",
                        f"10.95.0.{o}"], check=True)
    ways = [Way("host", *hosts, "10.95.0.2", wires), Way("hostgw", *gw, "10.96.2.2", wires),
            Way("vxlan", *vx, "10.97.2.2", wires)]
    return [w for w in ways if w.name in names]


class Tenet:
    """A lab of two nodes with pods, and for ebpf a wire that is one veth pair, as the peers have."""

    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        lab.up()
        lab.project("red")
        self.a, self.b, self.far = lab.pod("red/a", "node1"), lab.pod("red/b", "node1"), lab.pod("red/far", "node2")
        self.wires, self.switches = [], []
        if not name.startswith("ebpf"):
            self.switches = [int((pathlib.Path(lab.ovs_rundir(n)) / "ovs-vswitchd.pid").read_text())
                             for n in ("node1", "node2")]
            return
        nodes = [lab.ns_name(n) for n in ("node1", "node2")]
        addresses = [lab.node(n)["hostIP"] for n in ("node1", "node2")]
        veth(nodes[0], "wire0", nodes[1], "wire0")
        for ns, own, other in zip(nodes, addresses, reversed(addresses)):
            route(ns, f"{other}/32", "dev", "wire0", "src", own)
        self.wires = [(ns, "wire0") for ns in nodes]

    def lasts(self):
        """Its pods are not those that came just now."""
        return self.lab.has_ovs("node1") or all(self.lab.has_upgraded_hooks(n) for n in ("node1", "node2"))

    def way(self, scope):
        server = self.b if scope == "local" else self.far
        return Way(self.name, os.path.basename(self.a.netns), os.path.basename(server.netns), server.ip, self.wires,
                   self.switches)


def load(lab, args):
    """All that the maps may have to hold: nodes, projects, pods and policies that no measured packet is about."""
    server = re.search(r"http://([0-9.:]+)", pathlib.Path(lab.kubeconfig).read_text())[1]
    own = threading.local()

    def post(path, body):
        if not hasattr(own, "http"):
            own.http = http.client.HTTPConnection(server, timeout=120)
        own.http.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        r = own.http.getresponse()
        text = r.read()
        if r.status != 201:
            raise RuntimeError(f"POST {path}: {r.status} {text[:300]}")

    def node(i):
        post("/api/v1/nodes", {"metadata": {"name": f"remote{i}"}, "status": {
            "addresses": [{"type": "InternalIP", "address": f"10.246.{i // 250}.{i % 250 + 1}"}]}})

    def project(i):
        post("/api/v1/namespaces", {"metadata": {"name": f"load{i}", "labels": {"team": f"t{i % 50}"}}})

    def policy(i):
        post(f"/apis/networking.k8s.io/v1/namespaces/load{i % 20}/networkpolicies", {"metadata": {"name": f"n{i}"}, "spec": {
            "podSelector": {"matchLabels": {"app": f"a{i % 100}"}}, "ingress": [{
                "from": [{"namespaceSelector": {"matchLabels": {"team": f"t{i % 50}"}}}],
                "ports": [{"port": 1000 + i % 5000}]}]}})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(node, range(args.remotes)))
        list(pool.map(project, range(args.projects)))
        list(pool.map(lambda i: lab.pod(f"load{i % 20}/p{i}", "node1", {"app": f"a{i % 100}"}), range(args.pods)))
        list(pool.map(policy, range(args.policies)))


def settled(lab, args):
    """The agent knows the nodes, and has nothing left to write."""
    out = subprocess.run(["curl", "-sf", "--unix-socket", lab.node("node1")["agentSocket"], "http://agent/metrics"],
                         stdout=subprocess.PIPE, text=True).stdout
    m = re.search(r"^tenet_node_remote_nodes (\d+)", out, re.M)
    return m and int(m[1]) > args.remotes


def watch(lab, tenet):
    """Somebody looks at the flows of both nodes, all the time."""
    return [subprocess.Popen([tenet, "flows", "-w", "--lab", lab.name, "--node", node],
                             stdout=subprocess.DEVNULL) for node in ("node1", "node2")]


def offload(way, segmented):
    for ns, link in way.wires:
        subprocess.run(in_ns(ns, sys.executable, "-c", ETHTOOL, link, int(segmented)), check=True)


def pinned(core, *argv, batch=False):
    return ["taskset", "-c", str(core), "nice", "-n", "-10", *(["chrt", "-b", "0"] if batch else []), *map(str, argv)]


def listening(ns, port):
    end = time.monotonic() + 10
    while f":{port} " not in subprocess.run(in_ns(ns, "ss", "-Hltun"), stdout=subprocess.PIPE, text=True).stdout:
        if time.monotonic() > end:
            raise RuntimeError(f"nothing listens on port {port} in {ns}")
        time.sleep(0.005)


class Measure:
    def __init__(self, build, seconds, block):
        self.exchange, self.seconds, self.block = str(pathlib.Path(build) / "bench/bench_exchange"), seconds, block

    def __call__(self, measure, way, cores):
        ends = (0, cores - 1)
        kind, number = {"tcp": ("stream", WINDOW if cores == 1 else 0), "rr": ("tcp", 1), "udp": ("udp", BURST)}[measure]
        ms = self.seconds * (1000 if measure == "tcp" else 500)
        batch = measure == "tcp"  # The ends take turns when one must wait, not whenever the other one could go on.
        window, block = ([number], [self.block]) if measure == "tcp" else ([], [])
        serve = pinned(ends[1], self.exchange, "serve", kind, PORT, *window, batch=batch)
        server = subprocess.Popen(in_ns(way.server, *serve))
        try:
            listening(way.server, PORT)
            before = way.switches_s()
            ask = pinned(ends[0], self.exchange, "ask", kind, way.address, PORT, number, ms, *block, batch=batch)
            out = subprocess.run(in_ns(way.client, *ask), stdout=subprocess.PIPE, text=True, check=True).stdout
            switches_s = way.switches_s() - before
        finally:
            server.kill()
            server.wait()
        figures = list(map(int, out.split()))
        if measure == "tcp":
            size, took_ns, cpu_ns = figures
            return size * 8 / (took_ns if cores == 2 else cpu_ns + switches_s * 1e9)
        n, lost, p50, _ = figures
        if lost > n / 100:
            raise RuntimeError(f"{way.name}: {lost} of {n + lost} exchanges were lost")
        return p50 / 1000 if measure == "rr" else (BURST + 1) * 1e6 / p50


def report(scope, names, cores, measures, results):
    base = names[0]

    def ratio(key, name, to):
        return statistics.median(x / y for x, y in zip(results[(*key, name)], results[(*key, to)]))
    keys = [(m, c) for m in measures for c in cores]
    print(f"\n{scope}, ratios to {base}")
    print(" " * 14 + "".join(f"{m + f' {c} core' + 's' * (c > 1):>16}{'':>7}" for m, c in keys))
    print(" " * 14 + "".join(f"{UNITS[k]:>16}{'ratio':>7}" for k in keys))
    for name in names:
        print(f"{name:<14}" + "".join(f"{statistics.median(results[(*k, name)]):>16.2f}{ratio(k, name, base):>7.2f}"
                                      for k in keys))
    for name in names:
        # Every way beside the first one, eBPF beside the other ways, too, and a variant of eBPF beside eBPF.
        others = [base] if not name.startswith("ebpf") else ["ebpf"] if name != "ebpf" else names[:names.index(name)]
        for k in keys:
            for to in others:
                if to != name:
                    measure = f"{scope}, {k[0]}, {k[1]} core{'s' * (k[1] > 1)}: {name} beside {to}"
                    medians = [statistics.median(results[(*k, way)]) for way in (name, to)]
                    result(measure, medians[0], UNITS[k], to, medians[1], ratio(k, name, to))
    sys.stdout.flush()


def one_lab(args, scopes, cores, measures, results, is_last):
    """Adds to 'results', by scope, and reports the last time."""
    from lab import TENET, Lab, wait_for

    net, tenets, watchers, measure = Net(), [], [], Measure(args.build, args.seconds, args.block)
    labs = {}

    def wanted(scope):
        peers = [n for n in PEERS[scope] if not args.peers or n in args.peers.split(",")]
        return peers + ["ebpf loaded"] * args.loaded + ["ebpf watched"] * args.watched

    try:
        options = {"plugin": args.plugin, "nodes": 2, "cluster_network": "10.0.0.0/9", "host_subnet_length": 10}
        for name in ("ovs", "ebpf", *VARIANTS):
            if any(name in wanted(s) for s in scopes):
                labs[name] = Lab("dp" + name[0] + name[5:6], datapath=name.split()[0], **options)
                tenets.append(Tenet(labs[name], name))
        if args.loaded:
            load(labs["ebpf loaded"], args)
            wait_for("all nodes", lambda: settled(labs["ebpf loaded"], args), 120)
        if args.watched:
            watchers = watch(labs["ebpf watched"], TENET)
        for t in tenets:
            wait_for("hooks of pods that last", t.lasts, 300)
        ways = {"local": local_ways(net, wanted("local")) if "local" in scopes else []}
        across = across_ways(net, wanted("across")) if {"across", "segmented"} & set(scopes) else []
        ways["across"] = ways["segmented"] = across
        for scope in scopes:
            mine = ways[scope] + [t.way(scope) for t in tenets]
            for w in mine:
                offload(w, scope == "segmented")
            for turn in range(args.rounds):
                for m in measures:
                    for c in cores:
                        for k in range(len(mine)):
                            w = mine[(k + turn) % len(mine)]
                            results.setdefault(scope, {}).setdefault((m, c, w.name), []).append(measure(m, w, c))
            # A round begins with another one each time, but the table has them in order.
            if is_last:
                report(scope, [w.name for w in mine], cores, measures, results[scope])
    finally:
        for w in watchers:
            w.kill()
            w.wait()
        for lab in labs.values():
            lab.down(check=False)
        net.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--only", default="local,across,segmented")
    ap.add_argument("--peers")
    ap.add_argument("--cores", default="1,2")
    ap.add_argument("--measures", default="tcp,rr,udp")
    ap.add_argument("--labs", type=int, default=1)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--seconds", type=int, default=1)
    ap.add_argument("--block", type=int, default=1024)
    ap.add_argument("--watched", action="store_true")
    ap.add_argument("--loaded", action="store_true")
    ap.add_argument("--pods", type=int, default=1000)
    ap.add_argument("--remotes", type=int, default=5000)
    ap.add_argument("--projects", type=int, default=10000)
    ap.add_argument("--policies", type=int, default=0)
    ap.add_argument("--plugin", default="redhat/openshift-ovs-multitenant")
    args = ap.parse_args()
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(1))
    cores, measures = [int(c) for c in args.cores.split(",") if int(c) <= (os.cpu_count() or 1)], args.measures.split(",")
    scopes, results = args.only.split(","), {}
    for lab in range(args.labs):
        one_lab(args, scopes, cores, measures, results, lab == args.labs - 1)


if __name__ == "__main__":
    main()
