#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queries per second and memory of `tenet dns` beside unbound and knot, on the same names, core and client.

A master on memory has 10,000 services of two endpoints each, which `tenet dns` follows; unbound has the same names as
local data, knot as a zone.  dnsperf asks for them at random (with EDNS, UDP), from the other core.  The servers take
turns, --rounds times; medians count.  While ours is asked, services change all the time (an endpoint's address is
replaced), and the answer to one of them is watched for: how long until a change is seen.

usage: dns.py [--build build] [--services 10000] [--seconds 3] [--rounds 5] [--threads 1]
"""
import argparse
import concurrent.futures
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
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOMAIN = "cluster.local"
SERVER_CORES, CLIENT_CORE = {1: "0", 2: "0,1"}, "1"


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


class Api:
    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method, data=body and json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as r:
            return json.loads(r.read())

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
        self.call("POST", f"/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices", self.slice(i))

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
        self.qps, self.lost, self.memory = [], 0.0, 0

    def measure(self, queries, seconds):
        out = subprocess.run(["taskset", "-c", CLIENT_CORE, "dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d",
                              str(queries), "-l", str(seconds), "-e", "-c", "8", "-q", "400"], check=True,
                             capture_output=True, text=True).stdout
        self.qps.append(float(re.search(r"Queries per second:\s+([\d.]+)", out)[1]))
        self.lost = max(self.lost, float(re.search(r"Queries lost:\s+\d+ \(([\d.]+)%\)", out)[1]))
        self.memory = max(self.memory, rss_kib(self.proc.pid))


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


def change_services(api, stop, n, rng, done):
    last = 7
    while not stop.is_set():
        last = 7 + (last - 6) % 200
        api.change(rng.randrange(n), last)
        done.append(1)


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
    best = max(medians["unbound"], medians["knot"])
    print(f"{args.services} services, {args.threads} thread(s) each, {args.rounds} rounds of {args.seconds} s; "
          f"ours with {changes:.0f} changes a second")
    for p in peers:
        print(f"  {p.label:8} {medians[p.label]:10.0f} queries/s  lost at most {p.lost:.2f} %  {p.memory / 1024:6.1f} MiB")
    print(f"  ratio to the better peer: {medians['tenet'] / best:.2f}")
    print(f"  a change is answered after {statistics.median(seen):.2f} ms (median), {seen[-1]:.2f} ms (worst of {len(seen)})")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--services", type=int, default=10000)
    ap.add_argument("--seconds", type=int, default=3)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--threads", type=int, default=1, choices=[1, 2])
    args = ap.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="tenet-bench-dns-") as d:
        tmp, master_port, running = pathlib.Path(d), free_port(), []
        os.mkdir(tmp / "db")
        log = open(tmp / "log", "w+")
        queries = tmp / "queries"
        queries.write_text("".join(f"{name(rng.randrange(args.services))} A\n" for _ in range(50000)))
        try:
            master = subprocess.Popen([str(pathlib.Path(args.build) / "src/cli/tenet"), "master", "--storage-backend", "memory",
                                       "--bind-address", f"127.0.0.1:{master_port}", "--dns-bind-address", "none"], stdout=log, stderr=log)
            running.append(master)
            api = Api(master_port)

            def ready():
                try:
                    return bool(api.call("GET", "/api/v1/namespaces/default"))
                except (OSError, urllib.error.HTTPError):
                    return False
            wait_until("the master", ready)
            for i in range(100):
                api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns-{i}"}})
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(api.make, range(args.services)))
            peers = start_peers(args, tmp, master_port, log)
            running += [p.proc for p in peers]
            for p in peers:
                wait_until(p.label, lambda p=p: answers(p.port, name(args.services - 1), address(args.services - 1)))
            done, busy = [], 0.0
            for _ in range(args.rounds):
                for p in peers:
                    stop = threading.Event()
                    changer = threading.Thread(target=change_services, args=(api, stop, args.services, rng, done))
                    began = time.monotonic()
                    if p.label == "tenet":
                        changer.start()
                    p.measure(queries, args.seconds)
                    stop.set()
                    if p.label == "tenet":
                        changer.join()
                        busy += time.monotonic() - began
            report(args, peers, len(done) / busy, time_changes(api, peers[0].port))
        finally:
            for p in reversed(running):
                p.terminate()
            for p in running:
                p.wait()
            log.close()


if __name__ == "__main__":
    main()
