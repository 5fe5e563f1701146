# SPDX-License-Identifier: Apache-2.0
"""Cluster DNS: `tenet dns` beside a master on loopback, compared with the Kubernetes DNS specification by dig and kdig;
other name servers that are right, wrong, slow and dead; hostile packets.  And a lab, whose pods resolve as C libraries
do it."""
import json
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

import pytest

import lab as lablib
import nameserver as ns
from lab import TENET, run, wait_for
from test_registry import Master, namespace

SVC = "default.svc.cluster.local."


def free_port():
    udp, tcp = ns.both_sockets()
    with udp, tcp:
        return udp.getsockname()[1]


def service(name, project="default", **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": project}, "spec": spec}


def slice_of(name, addresses, ports=(), project="default", kind="IPv4"):
    """'addresses': an address or (address, hostname, ready)."""
    eps = []
    for a in addresses:
        address, hostname, ready = a if isinstance(a, tuple) else (a, None, True)
        eps.append({"addresses": [address], "conditions": {"ready": ready}, **({"hostname": hostname} if hostname else {})})
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": kind,
            "metadata": {"name": f"{name}-1", "namespace": project, "labels": {"kubernetes.io/service-name": name}},
            "endpoints": eps, "ports": [{"name": n, "port": p, "protocol": "TCP"} for n, p in ports]}


def path_of(obj):
    project = obj["metadata"]["namespace"]
    return (f"/api/v1/namespaces/{project}/services" if obj["kind"] == "Service"
            else f"/apis/discovery.k8s.io/v1/namespaces/{project}/endpointslices")


class Dns:
    """`tenet dns` on a port of loopback."""

    def __init__(self, tmp, server, *options):
        self.port, self.metrics_port = free_port(), free_port()
        self.log = pathlib.Path(tmp) / f"dns-{self.port}.log"
        with open(self.log, "w") as f:
            self.proc = subprocess.Popen(
                [TENET, "dns", "--server", server, "--listen", f"127.0.0.1:{self.port}", "--threads", "2",
                 "--metrics-bind-address", f"127.0.0.1:{self.metrics_port}", *options],
                stdout=f, stderr=f, env=lablib.environment())
        wait_for("DNS to know the services", lambda: "services are answered" in self.log.read_text() or
                 self.proc.poll() is not None)
        assert self.proc.poll() is None, self.log.read_text()

    def dig(self, name, rtype="A", *options, tool="dig"):
        common = ["+tries=1", "+time=8"] if tool == "dig" else ["+retry=0", "+timeout=8"]
        r = run([tool, "@127.0.0.1", "-p", self.port, *common, *options, name, rtype])
        return Answer(r.stdout)

    def send(self, message, timeout=5.0):
        """The bytes of the answer over UDP; None: there was none in time."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(timeout)
            s.sendto(message, ("127.0.0.1", self.port))
            try:
                return s.recv(65535)
            except TimeoutError:
                return None

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as r:
            return parse_metrics(r.read().decode())

    def stop(self, sig=signal.SIGTERM):
        self.proc.send_signal(sig)
        return self.proc.wait(timeout=30)


def parse_metrics(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
            if line and not line.startswith("#")}


class Answer:
    """What dig or kdig printed: status, flags, and records of each section as "name TYPE data"."""

    def __init__(self, text):
        self.text = text
        m = re.search(r"status: (\w+)", text)
        self.status = m[1] if m else None
        m = re.search(r"[Ff]lags: ([\w ]*);", text)
        self.flags = set(m[1].split()) if m else set()
        self.sections, section = {"ANSWER": [], "AUTHORITY": [], "ADDITIONAL": []}, None
        for line in text.splitlines():
            m = re.match(r";; (\w+) SECTION", line)
            if m:
                section = m[1]
            elif line.startswith(";") or not line.strip():
                section = section if line.startswith("; ") else None if not line.strip() else section
            elif section in self.sections:
                name, ttl, _, rtype, data = line.split(None, 4)
                self.sections[section].append((f"{name} {rtype} {data}", int(ttl)))

    def records(self, section="ANSWER"):
        return sorted(r for r, _ in self.sections[section])

    def ttls(self):
        return {ttl for _, ttl in self.sections["ANSWER"]}


@pytest.fixture(scope="module")
def tmp():
    with tempfile.TemporaryDirectory(prefix="tenet-dns-") as d:
        yield d


@pytest.fixture(scope="module")
def master(tmp):
    m = Master(tmp)
    m.put = lambda *objects: [m.call("POST", path_of(o), o) for o in objects]
    for o in [
        service("web", clusterIP="172.30.0.10", ports=[{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]),
        slice_of("web", ["10.128.0.5", ("10.129.0.6", None, False)], [("http", 8080)]),
        service("db", clusterIP="None", ports=[{"name": "https", "port": 443}]),
        slice_of("db", [("10.3.0.100", "my-pet", True), ("10.3.0.101", "my-pet-2", True), "10.3.0.102",
                        ("10.3.0.103", None, False)], [("https", 443)]),
        service("six", clusterIP="None"), slice_of("six", [("fd00::5", "a", True)], kind="IPv6"),
        service("empty", clusterIP="None"),
        service("ext", type="ExternalName", externalName="www.outside.test"),
        service("near", type="ExternalName", externalName="web.default.svc.cluster.local"),
        service("many", clusterIP="None"), slice_of("many", [f"10.131.{i // 250}.{i % 250 + 1}" for i in range(300)]),
    ]:
        status, body = m.call("POST", path_of(o), o)
        assert status == 201, body
    yield m
    m.stop(signal.SIGKILL)


def fixed(*answers, **kw):
    return lambda server, request, tcp: [ns.answer(request, answers, **kw)]


def lie_id(server, request, tcp):
    wrong = ns.answer(request, [ns.a_record("lieid.test", "6.6.6.6")], ident=struct.unpack(">H", request[:2])[0] ^ 1)
    return [wrong, ns.answer(request, [ns.a_record("lieid.test", "192.0.2.1")])]


def lie_question(server, request, tcp):
    other = ns.wire_name("other.test") + struct.pack(">HH", ns.A, 1)
    return [ns.answer(request, [ns.a_record("liequestion.test", "6.6.6.6")], question=other),
            ns.answer(request, [ns.a_record("liequestion.test", "192.0.2.2")])]


def lie_always(server, request, tcp):
    """Over UDP only wrong ones, as from somebody who guesses."""
    if tcp:
        return [ns.answer(request, [ns.a_record("lies.test", "192.0.2.3")])]
    ident = struct.unpack(">H", request[:2])[0]
    return [ns.answer(request, [ns.a_record("lies.test", "6.6.6.6")], ident=ident ^ i) for i in range(1, 20)]


def big(server, request, tcp):
    records = [ns.a_record("big.test", f"192.0.2.{i}") for i in range(100)]
    return [ns.answer(request, records)] if tcp else [ns.answer(request, records[:3], flags=0x8180 | ns.TC)]


def slow(server, request, tcp):
    """Silent at first."""
    return [] if server.count("slow.test") < 2 else [ns.answer(request, [ns.a_record("slow.test", "192.0.2.4")])]


def broken(server, request, tcp):
    """An answer whose record points to itself."""
    return [ns.answer(request, [b"\xc0\x1d" + struct.pack(">HHIH", ns.A, 1, 9, 4) + b"\x06\x06\x06\x06"])]


def no_edns(server, request, tcp):
    plain = request[11] == 0
    return [ns.answer(request, [ns.a_record("old.test", "192.0.2.5")] if plain else [], flags=0x8180 if plain else 0x8181)]


ZONE = {
    "www.outside.test": fixed(ns.record("www.outside.test", ns.CNAME, ns.wire_name("real.outside.test")),
                              ns.a_record("real.outside.test", "192.0.2.53")),
    "short.test": fixed(ns.a_record("short.test", "192.0.2.6", ttl=1)),
    "kept.test": fixed(ns.a_record("kept.test", "192.0.2.7", ttl=1)),
    "lieid.test": lie_id, "liequestion.test": lie_question, "lies.test": lie_always, "big.test": big, "slow.test": slow,
    "broken.test": broken, "old.test": no_edns,
    "refused.test": fixed(flags=0x8180 | ns.REFUSED),
}


@pytest.fixture(scope="module")
def upstream():
    server = ns.NameServer(ZONE)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def dns(master, upstream, tmp):
    d = Dns(tmp, f"http://127.0.0.1:{master.port}", "--nameservers", f"127.0.0.1:{upstream.port}",
            "--networks", "10.128.0.0/14,172.30.0.0/16")
    yield d
    assert d.stop() == 0


# ---- what is said ----

PORT = "_https._tcp.db." + SVC
SPECIFICATION = [  # section, question, type, status, answer, additional
    ("2.2", "dns-version.cluster.local.", "TXT", "NOERROR", ['TXT "1.1.0"'], []),
    ("2.3.1", "web." + SVC, "A", "NOERROR", ["A 172.30.0.10"], []),
    ("2.3.1", "web." + SVC, "AAAA", "NOERROR", [], []),
    ("2.3.1", "WEB.Default.SVC.cluster.LOCAL.", "A", "NOERROR", ["A 172.30.0.10"], []),
    ("2.3.1", "none." + SVC, "A", "NXDOMAIN", [], []),
    ("2.3.2", "_http._tcp.web." + SVC, "SRV", "NOERROR", [f"SRV 10 10 80 web.{SVC}"], [f"web.{SVC} A 172.30.0.10"]),
    ("2.3.2", "_dns._udp.web." + SVC, "SRV", "NOERROR", [f"SRV 10 10 53 web.{SVC}"], [f"web.{SVC} A 172.30.0.10"]),
    ("2.3.2", "_dns._tcp.web." + SVC, "SRV", "NXDOMAIN", [], []),
    ("2.3.3", "10.0.30.172.in-addr.arpa.", "PTR", "NOERROR", [f"PTR web.{SVC}"], []),
    ("2.4.1", "db." + SVC, "A", "NOERROR", ["A 10.3.0.100", "A 10.3.0.101", "A 10.3.0.102"], []),
    ("2.4.1", "empty." + SVC, "A", "NXDOMAIN", [], []),
    ("2.4.1", "my-pet.db." + SVC, "A", "NOERROR", ["A 10.3.0.100"], []),
    ("2.4.1", "six." + SVC, "AAAA", "NOERROR", ["AAAA fd00::5"], []),
    ("2.4.1", "six." + SVC, "A", "NOERROR", [], []),
    ("2.4.2", PORT, "SRV", "NOERROR",
     [f"SRV 10 10 443 10-3-0-102.db.{SVC}", f"SRV 10 10 443 my-pet-2.db.{SVC}", f"SRV 10 10 443 my-pet.db.{SVC}"],
     [f"10-3-0-102.db.{SVC} A 10.3.0.102", f"my-pet-2.db.{SVC} A 10.3.0.101", f"my-pet.db.{SVC} A 10.3.0.100"]),
    ("2.4.3", "100.0.3.10.in-addr.arpa.", "PTR", "NOERROR", [f"PTR my-pet.db.{SVC}"], []),
    ("2.5", "ext." + SVC, "CNAME", "NOERROR", ["CNAME www.outside.test."], []),
    ("2.6", "10-128-0-5.default.pod.cluster.local.", "A", "NOERROR", ["A 10.128.0.5"], []),
]


@pytest.mark.parametrize("tool", ["dig", "kdig"])
def test_specification(dns, tool):
    for section, name, rtype, status, answer, additional in SPECIFICATION:
        a = dns.dig(name, rtype, tool=tool)
        where = f"{section}: {name} {rtype}\n{a.text}"
        assert a.status == status and "aa" in a.flags, where
        owner = name.lower() if tool == "kdig" else name  # which does not show how it was spelled
        assert a.records() == [f"{owner} {x}" for x in answer], where
        assert a.records("ADDITIONAL") == additional, where
        assert a.ttls() <= {30}, where
        if not answer:  # RFC 2308: how long to remember that there is nothing
            soa, ttl = a.sections["AUTHORITY"][0]
            assert soa.startswith("cluster.local. SOA ns.dns.cluster.local. hostmaster.cluster.local. ") and ttl == 5, where


def test_names_of_the_seeds(dns):
    for name, answer in [
        ("web.default.cluster.local.", ["A 172.30.0.10"]),  # the older form
        ("anything.below.web." + SVC, ["A 172.30.0.10"]),  # any lookup below a service
        ("web.default.endpoints.cluster.local.", ["A 10.128.0.5"]),
        ("db.default.endpoints.cluster.local.", ["A 10.3.0.100", "A 10.3.0.101", "A 10.3.0.102"]),
        ("540eb87a.db." + SVC, ["A 10.3.0.102"]),  # by the hash of its address
    ]:
        assert dns.dig(name).records() == [f"{name} {x}" for x in answer]
    # The master, by its old name.
    assert dns.dig("openshift." + SVC).records() == [f"kubernetes.{SVC} A 172.30.0.1",
                                                     f"openshift.{SVC} CNAME kubernetes.{SVC}"]


def test_a_service_is_there_as_soon_as_it_is_made(dns, master):
    name = "fresh." + SVC
    assert dns.dig(name).status == "NXDOMAIN"
    assert master.call("POST", path_of(service("fresh")), service("fresh", clusterIP="172.30.0.40", ports=[{"port": 1}]))[0] == 201
    wait_for("the new service's name", lambda: dns.dig(name).records() == [f"{name} A 172.30.0.40"])
    assert master.call("DELETE", path_of(service("fresh")) + "/fresh")[0] == 200
    wait_for("the name to be gone", lambda: dns.dig(name).status == "NXDOMAIN")
    assert master.call("POST", path_of(service("fresh")), service("fresh", clusterIP="172.30.0.41", ports=[{"port": 1}]))[0] == 201
    wait_for("the name with another address", lambda: dns.dig(name).records() == [f"{name} A 172.30.0.41"])


def test_large_answers(dns):
    name = "many." + SVC
    plain = dns.dig(name, "A", "+noedns", "+ignore")
    assert "tc" in plain.flags and len(plain.records()) == (512 - 12 - len(ns.wire_name(name)) - 4) // 16
    edns = dns.dig(name, "A", "+bufsize=4096", "+ignore")
    assert "tc" in edns.flags and len(plain.records()) < len(edns.records()) <= 1232 // 16
    assert len(dns.send(ns.query(name, additional=b"\0\0\x29\x10\0" + bytes(6), n_additional=1))) <= 1232
    assert len(dns.dig(name, "A", "+tcp").records()) == 300
    assert len(dns.dig(name).records()) == 300  # dig goes to TCP by itself
    first = {dns.dig("db." + SVC).sections["ANSWER"][0][0] for _ in range(24)}
    assert len(first) == 3, "the addresses take turns"


def test_what_is_refused(dns):
    web = "web." + SVC
    assert dns.dig(web, "AXFR", "+tcp").status in ("REFUSED", None)
    assert dns.dig(web, "A", "-c", "CH").status == "REFUSED"
    assert dns.dig(web, "ANY", "+notcp").records() == [f'{web} HINFO "RFC8482" ""']
    assert dns.dig("real.outside.test.", "ANY", "+notcp").status == "REFUSED"
    assert dns.dig(web, "A", "+opcode=UPDATE").status == "NOTIMP"
    assert dns.dig(web, "A", "+edns=1", "+noednsneg").status == "BADVERS"
    assert dns.dig("version.bind", "TXT", "-c", "CH").status == "REFUSED"
    assert dns.dig("real.outside.test.", "A", "+norec").status == "REFUSED"
    assert dns.dig("web.", "A").status == "NXDOMAIN", "a name of one label is asked of nobody"
    assert dns.dig("localhost.", "A").records() == ["localhost. A 127.0.0.1"]


# ---- over TCP ----

def read_message(s):
    return s.recv(struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))[0], socket.MSG_WAITALL)


def test_connections(dns, upstream):
    """Several questions on one, byte by byte, those asked elsewhere between; malformed ones end it; their number has a limit."""
    names = ["web." + SVC, "www.outside.test.", "db." + SVC]
    with socket.create_connection(("127.0.0.1", dns.port), timeout=10) as s:
        data = b"".join(struct.pack(">H", len(q)) + q for q in (ns.query(n, ident=i) for i, n in enumerate(names)))
        for i in range(len(data)):
            s.sendall(data[i:i + 1])
        answers = {struct.unpack(">H", m[:2])[0]: m for m in (read_message(s) for _ in names)}
        assert set(answers) == {0, 1, 2} and all(m[7] for m in answers.values())
    with socket.create_connection(("127.0.0.1", dns.port), timeout=10) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        assert {struct.unpack(">H", read_message(s)[:2])[0] for _ in names} == {0, 1, 2}, "all is answered after the end"
        assert s.recv(1) == b""
    with socket.create_connection(("127.0.0.1", dns.port), timeout=10) as s:
        s.sendall(b"\0\5hello")
        assert s.recv(1) == b""
    many = [socket.create_connection(("127.0.0.1", dns.port), timeout=10) for _ in range(40)]
    try:
        closed = sum(s.recv(1) == b"" for s in many[16:])
        assert closed == 24, "one client has its share of connections"
        many[0].sendall(data[:2 + len(ns.query(names[0]))])
        assert read_message(many[0])[7] == 1
    finally:
        for s in many:
            s.close()
    wait_for("connections to be free again", lambda: dns.dig("web." + SVC, "A", "+tcp").status == "NOERROR")


# ---- names of others ----

def test_other_names_are_asked_for_once(dns, upstream):
    before, counted = dns.metrics(), upstream.count("www.outside.test")
    a = dns.dig("www.outside.test.")
    assert a.records() == ["real.outside.test. A 192.0.2.53", "www.outside.test. CNAME real.outside.test."]
    assert "ra" in a.flags and "aa" not in a.flags
    for _ in range(5):
        assert dns.dig("WWW.outside.TEST.").status == "NOERROR"
    assert upstream.count("www.outside.test") <= counted + 1
    assert dns.metrics()["tenet_dns_cached_answers_total"] >= before["tenet_dns_cached_answers_total"] + 5
    name = "ext." + SVC  # an ExternalName is followed
    assert dns.dig(name).records() == [f"{name} CNAME www.outside.test.", "real.outside.test. A 192.0.2.53",
                                       "www.outside.test. CNAME real.outside.test."]
    asked = upstream.count("absent.test")
    for _ in range(3):
        assert dns.dig("absent.test.").status == "NXDOMAIN"
    assert upstream.count("absent.test") == asked + 1, "that there is none is remembered, too"
    assert dns.dig("short.test.").ttls() == {1}
    wait_for("a short answer to be asked for again",
             lambda: dns.dig("short.test.").status == "NOERROR" and upstream.count("short.test") >= 2)


def test_the_other_server_is_not_trusted(dns, upstream):
    before = dns.metrics()
    assert dns.dig("lieid.test.").records() == ["lieid.test. A 192.0.2.1"]
    assert dns.dig("liequestion.test.").records() == ["liequestion.test. A 192.0.2.2"]
    assert dns.dig("lies.test.").records() == ["lies.test. A 192.0.2.3"], "over TCP, where nobody can guess"
    assert dns.dig("broken.test.").status == "SERVFAIL"
    assert dns.dig("refused.test.").status == "SERVFAIL"
    assert dns.dig("old.test.").records() == ["old.test. A 192.0.2.5"], "without EDNS"
    assert dns.dig("slow.test.").records() == ["slow.test. A 192.0.2.4"], "asked again"
    assert len(dns.dig("big.test.").records()) == 100
    assert ("big.test", ns.A, "tcp") in upstream.asked
    assert dns.metrics()["tenet_dns_upstream_wrong_answers_total"] >= before["tenet_dns_upstream_wrong_answers_total"] + 6


def test_one_question_for_many_who_ask(dns, upstream):
    answered = []

    def late(server, request, tcp):
        time.sleep(0.3)  # a server that takes its time
        return [ns.answer(request, [ns.a_record("late.test", "192.0.2.8")])]
    upstream.zone["late.test"] = late
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(20)]
    for i, s in enumerate(socks):
        s.settimeout(10)
        s.sendto(ns.query("late.test", ident=i), ("127.0.0.1", dns.port))
    for i, s in enumerate(socks):
        answered.append(struct.unpack(">H", s.recv(4096)[:2])[0] == i)
        s.close()
    assert all(answered) and upstream.count("late.test") == 1


def test_name_servers_that_die(master, tmp):
    """The next one is asked; when none is left: what is known, else SERVFAIL, in time; and they may come back."""
    first, second = ns.NameServer(ZONE), ns.NameServer(ZONE)
    dns = Dns(tmp, f"http://127.0.0.1:{master.port}", "--nameservers", f"127.0.0.1:{first.port},127.0.0.1:{second.port}")
    try:
        assert dns.dig("kept.test.").status == "NOERROR" and first.asked and not second.asked
        first.stop()
        assert dns.dig("www.outside.test.").status == "NOERROR" and second.asked
        second.stop()
        began = time.monotonic()
        assert dns.dig("real.test.").status == "SERVFAIL" and time.monotonic() - began < 5
        wait_for("kept.test to be over its time", lambda: dns.dig("kept.test.").ttls() == {30})
        assert dns.metrics()["tenet_dns_stale_answers_total"] >= 1
        assert dns.metrics()["tenet_dns_upstreams_up"] == 0
        assert dns.dig("web." + SVC).status == "NOERROR", "the cluster's names do not depend on them"
        second = ns.NameServer(ZONE, port=second.port)
        wait_for("the server to be asked again", lambda: dns.dig("short.test.").status == "NOERROR")
    finally:
        second.stop()
        assert dns.stop() == 0


def test_resolv_conf_is_read_again(master, tmp):
    """There is none, then one without servers for port 53 of addresses that are ours, then another."""
    resolv = pathlib.Path(tmp) / "resolv.conf"
    dns = Dns(tmp, f"http://127.0.0.1:{master.port}", "--resolv-conf", resolv)
    try:
        assert dns.dig("a.test.").status == "SERVFAIL"
        resolv.write_text("# two\nnameserver 127.0.0.1\nnameserver 127.0.0.2 ; the other\nsearch x\n")
        wait_for("two servers", lambda: dns.metrics()["tenet_dns_upstreams"] == 2)
        resolv.write_text("nameserver 127.0.0.2\n")
        wait_for("one server", lambda: dns.metrics()["tenet_dns_upstreams"] == 1)
        resolv.unlink()
        wait_for("none", lambda: dns.metrics()["tenet_dns_upstreams"] == 0)
        assert dns.dig("a.test.").status == "SERVFAIL"
    finally:
        assert dns.stop() == 0


def test_another_domain(master, tmp):
    dns = Dns(tmp, f"http://127.0.0.1:{master.port}", "--nameservers", "none", "--domain", "c.example")
    try:
        assert dns.dig("web.default.svc.c.example.").records() == ["web.default.svc.c.example. A 172.30.0.10"]
        assert dns.dig("10.0.30.172.in-addr.arpa.", "PTR").records() == [
            "10.0.30.172.in-addr.arpa. PTR web.default.svc.c.example."]
        assert dns.dig("web." + SVC).status == "REFUSED", "nobody is asked for other names"
    finally:
        assert dns.stop() == 0


# ---- faults and attacks ----

def test_hostile_packets(dns):
    """Ten thousand that are malformed: FORMERR, or silence, or an answer where it is a query still."""
    rng = random.Random(7)
    good = ns.query("web." + SVC, additional=b"\0\0\x29\x10\0" + bytes(6), n_additional=1)
    before = dns.metrics()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        seen, sent = {}, 0
        for i in range(10000):
            p = bytearray(good[:rng.randrange(len(good) + 1)]) if i % 2 else bytearray(good)
            for _ in range(rng.randrange(1, 6)):
                if p:
                    p[rng.randrange(len(p))] = rng.randrange(256)
            if i % 5 == 0:
                p = bytearray(rng.randbytes(rng.randrange(1500)))
            s.sendto(p, ("127.0.0.1", dns.port))
            sent += 1
            if i % 50 == 49:  # in step with the server, so that none is lost
                s.sendto(ns.query("web." + SVC, ident=0xbeef), ("127.0.0.1", dns.port))
                sent += 1
                while True:
                    m = s.recv(4096)
                    seen[m[3] & 15] = seen.get(m[3] & 15, 0) + 1
                    assert m[2] & 0x80
                    if m[:2] == b"\xbe\xef":
                        break
    assert seen[1] > 3000, seen
    after = dns.metrics()
    assert after['tenet_dns_queries_total{transport="udp"}'] - before['tenet_dns_queries_total{transport="udp"}'] == sent
    assert dns.dig("web." + SVC).records() == [f"web.{SVC} A 172.30.0.10"] and dns.proc.poll() is None


def test_a_dead_master_is_survived(dns, master):
    assert dns.metrics()["tenet_dns_master_connected"] == 1
    master.stop(signal.SIGKILL)
    wait_for("the metrics to say so", lambda: dns.metrics()["tenet_dns_master_connected"] == 0)
    assert dns.dig("web." + SVC).records() == [f"web.{SVC} A 172.30.0.10"]
    assert dns.dig("www.outside.test.").status == "NOERROR"
    master.start()
    wait_for("the master to be followed again", lambda: dns.metrics()["tenet_dns_master_connected"] == 1)
    assert dns.dig("db." + SVC).status == "NOERROR"


def test_a_port_that_is_taken(dns, master):
    r = run([TENET, "dns", "--server", f"http://127.0.0.1:{master.port}", "--listen", f"127.0.0.1:{dns.port}"], check=False)
    assert r.returncode == 1 and f"port {dns.port} of 127.0.0.1 is taken by another program" in r.stderr
    for args, text in [(["--listen", "x"], "--listen: "), (["--networks", "10.0.0.1/8"], "--networks: "),
                       (["--threads", "0"], "--threads: 0 is not in 1-16"), (["--nameservers", "x.y"], "--nameservers: "),
                       (["more"], "unexpected argument"), (["--domain", "a..b"], "--domain: ")]:
        r = run([TENET, "dns", "--server", f"http://127.0.0.1:{master.port}", *args], check=False)
        assert r.returncode == 2 and text in r.stderr, r.stderr


# ---- pods ----

MUSL = r"""
#include <netdb.h>
#include <stdio.h>
#include <arpa/inet.h>
int main(int argc, char **argv)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *a;
    for (int i = 1; i < argc; i++) {
        int r = getaddrinfo(argv[i], 0, &hints, &list);
        if (r) {
            printf("%s %s\n", argv[i], gai_strerror(r));
            continue;
        }
        for (a = list; a; a = a->ai_next) {
            char text[64] = "";
            if (a->ai_family == AF_INET) {
                inet_ntop(AF_INET, &((struct sockaddr_in *) a->ai_addr)->sin_addr, text, sizeof text);
            }
            printf("%s %s\n", argv[i], text);
        }
        freeaddrinfo(list);
    }
    return 0;
}
"""
INTERNET = "198.51.100.10"  # the lab's, which its nodes ask


@pytest.fixture(scope="module")
def cluster(make_lab):
    lab = make_lab("dns", nodes=2)
    lab.project("shop")
    lab.project("other")
    lab.client = lab.pod("shop/client", "node1")
    for o in [service("web", "shop", clusterIP="172.30.0.10", ports=[{"name": "http", "port": 80}]),
              service("db", "shop", clusterIP="None"), slice_of("db", [f"10.128.9.{i}" for i in range(1, 200)], project="shop"),
              service("api", "other", clusterIP="172.30.0.20", ports=[{"port": 80}]),
              service("ext", "shop", type="ExternalName", externalName="www.outside.test")]:
        lab.kubectl("create", "-f", "-", input=json.dumps(o))
    yield lab
    lab.down(check=False)


UPSTREAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
import nameserver as ns
zone = {"www.outside.test": lambda s, r, t: [ns.answer(r, [ns.a_record("www.outside.test", "192.0.2.53")]
                                                       if ns.question_of(r)[1] == ns.A else [], [ns.soa_record("test")])]}
s = ns.NameServer(zone, sys.argv[2], 53)
print("ready", flush=True)
while True:
    time.sleep(3600)
"""


@pytest.fixture(scope="module")
def internet(cluster):
    """A name server out there."""
    p = cluster.ns_popen("outside", ["/usr/bin/python3", "-c", UPSTREAM, pathlib.Path(__file__).parent, INTERNET])
    assert p.stdout.readline().strip() == "ready"
    yield
    p.kill()
    p.wait()
    p.stdout.close()


def node_metrics(lab, node):
    sock = f"/run/tenet/lab/{lab.name}/nodes/{node}/run/agent.sock"
    return parse_metrics(run(["curl", "-sS", "--unix-socket", sock, "http://node/metrics"]).stdout)


def getent(pod, name):
    out = pod.ns(["getent", "ahostsv4", name], check=False).stdout
    return sorted({line.split()[0] for line in out.splitlines()})


def test_pods_resolve_as_glibc_does(cluster, internet):
    client = cluster.client
    gateway = client.ip.rsplit(".", 1)[0] + ".1"
    assert client.ns(["cat", "/etc/resolv.conf"]).stdout == (
        f"nameserver {gateway}\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n")
    wait_for("the service's name", lambda: getent(client, "web") == ["172.30.0.10"])
    out = cluster.cmd("exec", client.ref, "--", "getent", "hosts", "web").stdout
    assert out.split() == ["172.30.0.10", "web.shop.svc.cluster.local"]
    for name in ("web.shop", "web.shop.svc", "web.shop.svc.cluster.local", "web.shop.cluster.local", "any.web"):
        assert getent(client, name) == ["172.30.0.10"], name
    assert getent(client, "api.other") == ["172.30.0.20"] and getent(client, "api") == []
    assert len(getent(client, "db")) == 199, "over TCP, as it is too large"
    assert getent(client, "www.outside.test") == ["192.0.2.53"] == getent(client, "ext")
    assert getent(client, "absent.outside.test") == []


def test_pods_resolve_as_musl_does(cluster, internet, tmp):
    source, program = pathlib.Path(tmp) / "musl.c", pathlib.Path(tmp) / "musl"
    source.write_text(MUSL)
    run(["musl-gcc", "-static", "-o", program, source])
    client = cluster.client
    wait_for("the service's name", lambda: getent(client, "web"))
    names = ["web", "web.shop.svc", "api.other", "www.outside.test", "ext", "absent"]
    lines = client.ns([program, *names]).stdout.splitlines()
    assert lines[:5] == ["web 172.30.0.10", "web.shop.svc 172.30.0.10", "api.other 172.30.0.20", "www.outside.test 192.0.2.53",
                         "ext 192.0.2.53"]
    assert len(lines) == 6 and lines[5].startswith("absent ") and not lines[5][7].isdigit()


def test_a_search_takes_one_question(cluster, internet):
    client = cluster.client
    assert getent(client, "www.outside.test") == ["192.0.2.53"]
    before = node_metrics(cluster, "node1")
    assert getent(client, "www.outside.test") == ["192.0.2.53"]
    after = node_metrics(cluster, "node1")
    key = 'tenet_dns_queries_total{transport="udp"}'
    assert after[key] - before[key] == 1


def test_nodes_and_masters_answer_too(cluster, internet):
    """The host asks its gateway; a host that is no node asks the master, but not for names of others."""
    def ask(where, server, name):
        return Answer(cluster.ns(where, ["dig", f"@{server}", "+tries=2", "+time=4", name], check=False).stdout)
    gateway = cluster.client.ip.rsplit(".", 1)[0] + ".1"
    name = "web.shop.svc.cluster.local."
    assert ask("node1", gateway, name).records() == [f"{name} A 172.30.0.10"]
    assert ask("node1", gateway, "www.outside.test.").records() == ["www.outside.test. A 192.0.2.53"]
    assert ask("outside", "10.245.2.2", name).records() == [f"{name} A 172.30.0.10"]
    assert ask("outside", "10.245.2.2", "www.outside.test.").status == "REFUSED"


def test_pods_resolve_without_a_master(cluster, internet):
    client = cluster.client
    wait_for("the service's name", lambda: getent(client, "web"))
    cluster.cmd("master", "stop")
    try:
        wait_for("the metrics to say so", lambda: node_metrics(cluster, "node1")["tenet_dns_master_connected"] == 0)
        assert getent(client, "web") == ["172.30.0.10"] and getent(client, "www.outside.test") == ["192.0.2.53"]
    finally:
        cluster.cmd("master", "start")
    cluster.cmd("node", "restart", "node1")
    wait_for("the agent to answer again", lambda: getent(client, "web") == ["172.30.0.10"])
    assert node_metrics(cluster, "node1")["tenet_dns_services"] >= 4


def test_a_node_whose_port_is_taken(cluster, internet):
    """Another program has it: an Event says so, pods are attached all the same, and the node takes it when it is free."""
    client = cluster.client
    gateway = client.ip.rsplit(".", 1)[0] + ".1"
    cluster.cmd("node", "stop", "node1")
    holder = cluster.ns_popen("node1", ["/usr/bin/python3", "-uc", (
        f"import socket, time; s = socket.socket(); s.setsockopt(0, 15, 1); s.bind(('{gateway}', 53)); s.listen(); "
        "print('ready'); time.sleep(3600)")])
    try:
        assert holder.stdout.readline().strip() == "ready"
        cluster.cmd("node", "start", "node1")
        wait_for("an Event", lambda: any(e["reason"] == "DNSNotListening" and "taken by another program" in e["message"]
                                         for e in cluster.objects("events", "-A")))
        assert cluster.pod("shop/second", "node1").can_ping(gateway)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    wait_for("the node to answer", lambda: getent(client, "web") == ["172.30.0.10"])


def test_policy_is_that_of_other_packets(make_lab):
    """A pod whose egress is denied resolves nothing, until a policy allows port 53."""
    lab = make_lab("dnsp", nodes=1, plugin="redhat/openshift-ovs-networkpolicy")
    lab.project("shut")
    pod = lab.pod("shut/pod", "node1")

    def resolves():
        return pod.ns(["dig", "+tries=1", "+time=1", "+short", "dns-version.cluster.local", "TXT"],
                      check=False).stdout.strip() == '"1.1.0"'

    def policy(name, **spec):
        lab.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name, "namespace": "shut"},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], **spec}}))
    wait_for("an answer", resolves)
    policy("deny")
    wait_for("the policy to deny", lambda: not resolves())
    policy("dns", egress=[{"ports": [{"port": 53, "protocol": p} for p in ("UDP", "TCP")]}])
    wait_for("the policy to allow", resolves)
    lab.down()
