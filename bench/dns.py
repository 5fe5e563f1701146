#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures queries per second and memory of `tenet dns` beside unbound and knot, with the same names, core and client.

A master on memory has 10,000 services of two endpoints each, which `tenet dns` follows.  unbound has the same names as
local data, knot has them as a zone.  dnsperf asks for them at random (with EDNS, UDP) and has the other core for itself.
The servers take turns, --rounds times; the results are medians.  In every turn --changes endpoints a second are replaced,
so that all three share their core with the same load: in the turns of `tenet dns` in the master that it follows, in the
other turns in a master without followers.  A query's cost is the server's processor time by the answers, which does not
depend on the machine's other load.  A watch of one service's answer shows how long a change takes to be answered.

usage: dns.py [--build build] [--services 10000] [--seconds 3] [--rounds 5] [--threads 1] [--changes 1000]
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOMAIN = "cluster.local"
SERVER_CORES, CLIENT_CORE, LOAD_CORE = {1: "0", 2: "0,1"}, "1", 0
OUTSTANDING = 200  # What the usual socket buffer holds: what is lost would keep its place until it times out.


def address(i):
    return f"172.30.{i // 250 + 1}.{i % 250 + 1}"


def name(i):
    return f"svc-{i}.ns-{i % 100}.svc.{DOMAIN}"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Api:
    """Each thread has a connection of its own, which stays."""

    def __init__(self, port):
        self.port, self.own = port, threading.local()

    def call(self, method, path, body=None):
        if not hasattr(self.own, "http"):
            self.own.http = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            self.own.http.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
            r = self.own.http.getresponse()
            data = r.read()
        except BaseException:
            del self.own.http
            raise
        if r.status >= 300:
            raise OSError(f"{method} {path}: {r.status} {data.decode()}")
        return json.loads(data)

    def slice(self, i, last=6):
        return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": f"svc-{i}-x", "namespace": f"ns-{i % 100}",
                             "labels": {"kubernetes.io/service-name": f"svc-{i}"}},
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
                "endpoints": [{"addresses": [f"10.{128 + i // 60000}.{i // 250 % 256}.{i % 250 + 1}"]},
                              {"addresses": [f"10.132.{i // 250 % 256}.{last}"]}]}

    def make(self, i):
        ns = f"ns-{i % 100}"
        self.call("POST", f"/api/v1/namespaces/{ns}/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": f"svc-{i}", "namespace": ns},
            "spec": {"clusterIP": address(i), "ports": [{"name": "http", "port": 80}]}})
        self.make_slice(i)

    def make_slice(self, i):
        self.call("POST", f"/apis/discovery.k8s.io/v1/namespaces/ns-{i % 100}/endpointslices", self.slice(i))

    def change(self, i, last):
        self.call("PUT", f"/apis/discovery.k8s.io/v1/namespaces/ns-{i % 100}/endpointslices/svc-{i}-x", self.slice(i, last))


def ask(port, qname, qtype=1):
    """The bytes of the answer."""
    labels = b"".join(bytes([len(x)]) + x.encode() for x in qname.split(".")) + b"\0"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.sendto(struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + labels + struct.pack(">HH", qtype, 1), ("127.0.0.1", port))
        return s.recv(4096)


def wait_until(what, condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"bench: waited in vain for {what}")
        time.sleep(0.01)


def answers(port, qname, text):
    try:
        return socket.inet_aton(text) in ask(port, qname)
    except OSError:
        return False


class Peer:
    def __init__(self, label, argv, port, cores, log):
        self.label, self.port = label, port
        self.proc = subprocess.Popen(["taskset", "-c", cores, *map(str, argv)], stdout=log, stderr=log)
        self.qps, self.cost, self.lost, self.memory = [], [], 0.0, 0

    def measure(self, queries, seconds):
        before = cpu_seconds(self.proc.pid)
        out = subprocess.run(["taskset", "-c", CLIENT_CORE, "dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d",
                              str(queries), "-l", str(seconds), "-e", "-c", "8", "-q", str(OUTSTANDING), "-t", "1"],
                             check=True, capture_output=True, text=True).stdout
        answered = int(re.search(r"Queries completed:\s+(\d+)", out)[1])
        self.cost.append((cpu_seconds(self.proc.pid) - before) / answered * 1e6)
        self.qps.append(float(re.search(r"Queries per second:\s+([\d.]+)", out)[1]))
        self.lost = max(self.lost, float(re.search(r"Queries lost:\s+\d+ \(([\d.]+)%\)", out)[1]))
        self.memory = max(self.memory, rss_kib(self.proc.pid))


def start_master(build, log):
    """The process, and its API once it answers."""
    port = free_port()
    proc = subprocess.Popen(["taskset", "-c", str(LOAD_CORE), str(pathlib.Path(build) / "src/cli/tenet"), "master",
                             "--storage-backend", "memory", "--bind-address", f"127.0.0.1:{port}",
                             "--dns-bind-address", "none"], stdout=log, stderr=log)
    return proc, Api(port)


def fill(api, services, make):
    def ready():
        try:
            return bool(api.call("GET", "/api/v1/namespaces/default"))
        except (OSError, http.client.HTTPException):
            return False
    wait_until("a master", ready)
    for i in range(100):
        api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns-{i}"}})
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(services)))


def start_peers(args, tmp, master_port, log):
    cores = SERVER_CORES[args.threads]
    records = [(name(i), address(i)) for i in range(args.services)]
    ports = [free_port() for _ in range(3)]
    (tmp / "unbound.conf").write_text(
        f"server:\n interface: 127.0.0.1\n port: {ports[1]}\n num-threads: {args.threads}\n so-reuseport: yes\n"
        f" do-daemonize: no\n use-syslog: no\n chroot: \"\"\n username: \"\"\n directory: \"{tmp}\"\n pidfile: \"{tmp}/u.pid\"\n"
        f" module-config: \"iterator\"\n minimal-responses: yes\n local-zone: \"{DOMAIN}.\" static\n" +
        "".join(f" local-data: \"{n}. 30 A {a}\"\n" for n, a in records))
    (tmp / f"{DOMAIN}.zone").write_text(
        f"$ORIGIN {DOMAIN}.\n@ 30 SOA ns.dns h 1 7200 1800 86400 5\n@ 30 NS ns.dns\nns.dns 30 A 127.0.0.1\n" +
        "".join(f"{n}. 30 A {a}\n" for n, a in records))
    (tmp / "knot.conf").write_text(
        f"server:\n  listen: 127.0.0.1@{ports[2]}\n  rundir: {tmp}\n  udp-workers: {args.threads}\n  tcp-workers: 1\n"
        f"  background-workers: 1\n  pidfile: {tmp}/k.pid\ndatabase:\n  storage: {tmp}/db\n"
        f"zone:\n  - domain: {DOMAIN}\n    file: {tmp}/{DOMAIN}.zone\n    semantic-checks: off\n")
    tenet = str(pathlib.Path(args.build) / "src/cli/tenet")
    return [Peer("tenet", [tenet, "dns", "--server", f"http://127.0.0.1:{master_port}", "--listen", f"127.0.0.1:{ports[0]}",
                           "--nameservers", "none", "--threads", args.threads], ports[0], cores, log),
            Peer("unbound", ["unbound", "-d", "-c", tmp / "unbound.conf"], ports[1], cores, log),
            Peer("knot", ["knotd", "-c", tmp / "knot.conf"], ports[2], cores, log)]


def change_services(api, stop, args, done):
    """At an even pace, as far as the core allows; 'done' counts them."""
    os.sched_setaffinity(threading.get_native_id(), {LOAD_CORE})
    rng, last, due = random.Random(), 7, time.monotonic()
    while not stop.is_set():
        last = 7 + (last - 6) % 200
        api.change(rng.randrange(args.services), last)
        done.append(1)
        due = max(due + 1 / args.changes, time.monotonic() - 0.1)
        time.sleep(max(0, due - time.monotonic()))


def take_turn(peer, api, queries, args):
    """Measures; returns how many changes a second there were."""
    stop, done = threading.Event(), []
    changer = threading.Thread(target=change_services, args=(api, stop, args, done))
    began = time.monotonic()
    changer.start()
    try:
        peer.measure(queries, args.seconds)
    finally:
        stop.set()
        changer.join()
    return len(done) / (time.monotonic() - began)


def time_changes(api, port, rounds=50):
    """Milliseconds from the change's acknowledgement to its being answered, once for each."""
    out = []
    for k in range(rounds):
        last = f"10.132.0.{207 + k % 40}"
        api.change(0, 207 + k % 40)
        began = time.monotonic()
        while not answers(port, f"svc-0.ns-0.endpoints.{DOMAIN}", last):
            if time.monotonic() - began > 10:
                sys.exit("bench: a change was not seen in 10 s")
        out.append((time.monotonic() - began) * 1000)
    return sorted(out)


def report(args, peers, changes, seen):
    medians = {p.label: statistics.median(p.qps) for p in peers}
    costs = {p.label: statistics.median(p.cost) for p in peers}
    best, cheapest = max(medians["unbound"], medians["knot"]), min(costs["unbound"], costs["knot"])
    print(f"{args.services} services, {args.threads} thread(s) each, {args.rounds} rounds of {args.seconds} s")
    for p in peers:
        print(f"  {p.label:8} {medians[p.label]:10.0f} queries/s  {costs[p.label]:5.2f} us each  lost at most {p.lost:.2f} %"
              f"  {p.memory / 1024:6.1f} MiB  beside {statistics.median(changes[p.label]):5.0f} changes a second")
    print(f"  ratio to the better peer: {medians['tenet'] / best:.2f}, of what a query costs {costs['tenet'] / cheapest:.2f}")
    for p in peers[1:]:
        result(f"queries, beside {p.label}", medians["tenet"], "/s", p.label, medians[p.label])
        result(f"processor time of a query, beside {p.label}", costs["tenet"], "us", p.label, costs[p.label])
        result(f"memory, beside {p.label}", peers[0].memory / 1024, "MiB", p.label, p.memory / 1024)
    result("queries, beside the better peer", medians["tenet"], "/s", "the better", best)
    result("a change is answered, p50", statistics.median(seen), "ms")
    result("a change is answered, worst", seen[-1], "ms")
    print(f"  a change is answered after {statistics.median(seen):.2f} ms (median), {seen[-1]:.2f} ms (worst of {len(seen)})")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--services", type=int, default=10000)
    ap.add_argument("--seconds", type=int, default=3)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--threads", type=int, default=1, choices=[1, 2])
    ap.add_argument("--changes", type=int, default=1000, help="a second")
    args = ap.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="tenet-bench-dns-") as d:
        tmp, running = pathlib.Path(d), []
        os.mkdir(tmp / "db")
        log = open(tmp / "log", "w+")
        queries = tmp / "queries"
        queries.write_text("".join(f"{name(rng.randrange(args.services))} A\n" for _ in range(50000)))
        try:
            apis = []
            for _ in range(2):
                proc, api = start_master(args.build, log)
                running.append(proc)
                apis.append(api)
            followed, other = apis
            fill(followed, args.services, followed.make)
            fill(other, args.services, other.make_slice)
            peers = start_peers(args, tmp, followed.port, log)
            running += [p.proc for p in peers]
            for p in peers:
                wait_until(p.label, lambda p=p: answers(p.port, name(args.services - 1), address(args.services - 1)))
            changes = {p.label: [] for p in peers}
            for _ in range(args.rounds):
                for p in peers:
                    changes[p.label].append(take_turn(p, followed if p.label == "tenet" else other, queries, args))
            report(args, peers, changes, time_changes(Api(followed.port), peers[0].port))
        finally:
            for p in reversed(running):
                p.terminate()
            for p in running:
                p.wait()
            log.close()


if __name__ == "__main__":
    main()
