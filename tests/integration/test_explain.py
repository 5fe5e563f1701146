# SPDX-License-Identifier: Apache-2.0
"""Explaining: traces against packets, drops counted by cause, ICMP refusals, tenet check, events."""
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

from lab import TENET, environment, run, wait_for

GATEWAY = "10.128.0.1"
NOBODYS = "10.131.200.9"  # in the cluster network, of no node's subnet
SERVICE = "172.30.255.254"  # nobody's
ITSELF = "169.254.169.4"
EMPTY, FOREIGN, IDLE = "172.30.0.20", "172.30.0.21", "172.30.0.22"


def tenet(lab, *args, check=False, **kw):
    return run([TENET, *args], check=check, timeout=120, env={**environment(), "KUBECONFIG": lab.kubeconfig}, **kw)


def trace(lab, source, to, *proto):
    r = tenet(lab, "trace", "--lab", lab.name, "-o", "json", source, to, *proto)
    assert r.returncode in (0, 1), r.stderr + r.stdout
    v = json.loads(r.stdout)
    assert v["verdict"]["allowed"] == (r.returncode == 0)
    return v


FETCH = """
import http.client, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
c = C("agent")
c.request(sys.argv[3], sys.argv[2])
r = c.getresponse()
print(r.status)
sys.stdout.write(r.read().decode())
"""


def fetch(lab, node, path, method="GET"):
    """Status and body of the agent's answer at its unix socket."""
    out = run(["/usr/bin/python3", "-c", FETCH, lab.node(node)["agentSocket"], path, method]).stdout
    status, body = out.split("\n", 1)
    return int(status), body


def samples(text):
    return {k: float(v) for k, v in re.findall(r"^([a-z_]+(?:\{.*\})?) (\S+)$", text, re.M)}


def drops(lab, node):
    found = samples(fetch(lab, node, "/metrics")[1])
    return {k.split('"')[1]: int(v) for k, v in found.items() if k.startswith("tenet_node_drops_total")}


# ---- traces ----

def test_trace_says_what_packets_do(cluster):
    """Every pod to every pod: verdict of the trace, and a real echo."""
    pairs = [(a, b) for a in cluster.pods for b in cluster.pods if a is not b]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        # Packets first: a trace finds the tunnels' neighbours in the switch only when it has learnt them.
        reached = list(pool.map(lambda p: p[0].can_ping(p[1].ip), pairs))
        traced = list(pool.map(lambda p: trace(cluster, p[0].ref, p[1].ref), pairs))
    wrong = [f"{a} -> {b}: trace {t['verdict']}, echo {r}"
             for (a, b), t, r in zip(pairs, traced, reached)
             if t["verdict"]["allowed"] != r or not t["verdict"]["agreed"]]
    assert not wrong
    assert any(reached)
    for (a, b), t in zip(pairs, traced):
        assert [h["node"] for h in t["halves"]] == ([a.node] if a.node == b.node else [a.node, b.node])
        if not t["verdict"]["allowed"]:
            assert t["verdict"]["cause"] == "vnid-mismatch" and t["verdict"]["node"] == b.node
            program = "from_pod" if a.node == b.node else "from_tunnel"
            assert t["verdict"]["rule"]["tableName"] == ("isolation" if cluster.has_ovs(b.node) else program)
            assert f"NetNamespace {a.project} has {a.vnid}, NetNamespace {b.project} has {b.vnid}" == t["verdict"]["object"]


def test_trace_names_the_objects_behind_the_rules(multitenant):
    a, c = (next(p for p in multitenant.pods if p.ref == ref) for ref in ("red/red-1", "red/red-2"))
    v = trace(multitenant, a.ref, c.ref, "tcp", "8080")
    steps = [[(s["tableName"], s["object"]) for s in h["switch"]["steps"]] for h in v["halves"]]
    sent, received = (("from-pod", "remote") if multitenant.has_ovs("node1") else ("tenet_pods", "tenet_subnets"),
                      ("from-vxlan", "local") if multitenant.has_ovs("node2") else ("tenet_subnets", "tenet_pods"))
    assert (sent[0], "Pod red/red-1") in steps[0] and (sent[1], "HostSubnet node2") in steps[0]
    assert (received[0], "HostSubnet node1") in steps[1] and (received[1], "Pod red/red-2") in steps[1]
    assert not multitenant.has_ovs("node2") or ("isolation", "NetNamespace red") in steps[1]
    text = tenet(multitenant, "trace", "--lab", multitenant.name, a.ref, c.ref, "udp", "53").stdout
    assert "-> by the tunnel to node2" in text and text.endswith("allowed: delivered on node2\n")


@pytest.mark.parametrize("to,proto,allowed,cause", [
    (NOBODYS, [], False, "no-such-node"),
    (SERVICE, ["tcp", "443"], False, "service-not-available"),
    ("198.51.100.10", ["udp", "4789"], False, "forged-tunnel"),
    ("198.51.100.10", ["udp", "53"], True, ""),
    ("10.128.0.250", [], False, "no-such-pod"),
    ("224.0.0.251", ["udp", "5353"], False, "multicast"),
    ("node2", [], True, ""),
])
def test_trace_to_where_no_pod_is(multitenant, to, proto, allowed, cause):
    v = trace(multitenant, "red/red-1", to, *proto)["verdict"]
    assert (v["allowed"], v.get("cause", ""), v["agreed"]) == (allowed, cause, True)


def test_trace_without_the_other_nodes_agent_is_computed_from_the_registry(multitenant):
    a = next(p for p in multitenant.pods if p.ref == "red/red-1")
    multitenant.cmd("node", "stop", "node3")
    try:
        for ref, allowed in (("red/red-3", True), ("blue/blue-3", False), ("default/default-3", True)):
            v = trace(multitenant, a.ref, ref)
            assert v["verdict"]["allowed"] == allowed and v["verdict"]["computed"] == "node3"
            assert "steps" in v["halves"][0]["switch"] and "error" in v["halves"][1]["switch"]
    finally:
        multitenant.cmd("node", "start", "node3")


def test_trace_that_cannot_be_made_says_why(multitenant):
    for args, status, text in ((["red/nobody", "red/red-1"], 3, "red/nobody"), (["red/red-1", "nowhere"], 3, "nowhere"),
                               (["red/red-1"], 2, "to where"), (["red/red-1", "red/red-2", "gre"], 2, "icmp, tcp, udp or sctp"),
                               (["red/red-1", "red/red-2", "icmp", "7"], 2, "no ports")):
        r = tenet(multitenant, "trace", "--lab", multitenant.name, *args)
        assert r.returncode == status and text in r.stderr, r.stderr


@contextlib.contextmanager
def changed_flows(lab, node, *change):
    """A change of br0's flows that the agent has not yet found; taken back by its restart.  It looks each minute, so one that
    has just begun has a whole one left."""
    lab.cmd("node", "restart", node)
    lab.ns(node, ["ovs-ofctl", "-O", "OpenFlow14", change[0], f"unix:{lab.ovs_rundir(node)}/br0.mgmt", *change[1:]])
    try:
        # Packets are judged by what the switch remembers until its threads have looked at that again, which can take seconds.
        pid = (lab.ovs_rundir(node) / "ovs-vswitchd.pid").read_text().strip()
        lab.ns(node, ["ovs-appctl", "-t", lab.ovs_rundir(node) / f"ovs-vswitchd.{pid}.ctl", "revalidator/purge"])
        yield
    finally:
        lab.cmd("node", "restart", node)


@contextlib.contextmanager
def changed_map(lab, node, *changes):
    """The same of maps."""
    try:
        lab.change_maps(node, changes)
        yield
    finally:
        lab.cmd("node", "restart", node)


VNID = slice(4, 8)  # where struct ebpf_pod has it


@contextlib.contextmanager
def without_isolation(lab, node):
    """Somebody changed what the node judges by: every project reaches those of its pods."""
    if lab.has_ovs(node):
        with changed_flows(lab, node, "add-flow", "table=80,priority=999,actions=output:NXM_NX_REG2[]"):
            yield
        return
    changes = []
    for name in ("pods", "pod_cache"):
        dump = run(["bpftool", "-j", "map", "dump", "pinned", lab.folder(node) / f"run/bpf/maps/tenet_{name}"]).stdout
        for row in json.loads(dump):
            key, value = ([int(x, 16) for x in row[part]] for part in ("key", "value"))
            if any(value):
                value[VNID] = [0, 0, 0, 0]
                changes.append(["update", name, "key", *key, "value", *value])
    with changed_map(lab, node, *changes):
        yield


def without_way_to(lab, node, other):
    """The same: 'node' does not know any more where the pods of the other are."""
    subnet = lab.node(other)["subnet"]
    if lab.has_ovs(node):
        return changed_flows(lab, node, "del-flows", f"table=60,ip,nw_dst={subnet}")
    network, length = subnet.split("/")
    key = ["key", length, 0, 0, 0, *network.split(".")]
    return changed_map(lab, node, ["delete", "routes", *key], ["delete", "subnets", *key])


def test_trace_shows_rules_that_are_not_what_they_should_be(multitenant):
    """A rule that somebody changed: the datapath says one thing, the model another."""
    with without_isolation(multitenant, "node1"):
        r = tenet(multitenant, "trace", "--lab", multitenant.name, "red/red-1", "blue/blue-1")
        assert r.returncode == 3 and "THE MODEL DISAGREES: it says drop, vnid-mismatch" in r.stdout


# ---- flows ----

@pytest.mark.ovs_only("tenet node flows")
def test_flows_are_shown_with_names_and_counters(multitenant):
    a = next(p for p in multitenant.pods if p.ref == "red/red-1")
    assert a.can_ping(GATEWAY)
    args = ["node", "flows", "--lab", multitenant.name, "--node", "node1"]

    def to_gateway():
        flows = json.loads(tenet(multitenant, *args, "-o", "json").stdout)[0]["flows"]
        return [f for f in flows if f["match"] == f"ip,ip_dst={GATEWAY}" and f["packets"] > 0]
    assert wait_for("the counter of the gateway's rule", to_gateway)
    flows = json.loads(tenet(multitenant, *args, "-o", "json").stdout)[0]["flows"]
    assert len(flows) == len(multitenant.flows("node1"))
    assert all(f["meaning"] for f in flows)
    assert {"Pod red/red-1", "HostSubnet node2", "NetNamespace blue"} <= {f["object"] for f in flows}
    assert {f["tableName"] for f in flows} >= {"classify", "from-pod", "isolation", "host"}
    text = tenet(multitenant, *args, "--drops").stdout
    assert text.startswith("node node1\n") and "the projects' VNIDs differ" in text and "delivered" not in text


# ---- the agent's HTTP ----

def test_agent_tells_only_what_it_should_and_to_whom(multitenant):
    assert fetch(multitenant, "node2", "/healthz") == (200, "ok")
    assert fetch(multitenant, "node2", "/nothing")[0] == 404
    assert fetch(multitenant, "node2", "/metrics", "POST")[0] == 405
    assert fetch(multitenant, "node2", "/v1/trace?pod=no/body&dst=1.2.3.4")[0] == 404
    for bad in ("", "?pod=red/red-2", "?pod=red/red-2&dst=x", "?from=sky&src=1.2.3.4&dst=1.2.3.4",
                "?pod=red/red-2&dst=1.2.3.4&proto=gre", "?pod=red/red-2&dst=1.2.3.4&dport=70000",
                "?from=tunnel&src=1.2.3.4&vtep=1.2.3.4&vnid=16777216&dst=1.2.3.4"):
        status, body = fetch(multitenant, "node2", "/v1/trace" + bad)
        assert status == 400 and json.loads(body)["error"], bad
    socket = multitenant.node("node2")["agentSocket"]
    assert os.stat(socket).st_mode & 0o777 == 0o600


def test_metrics_can_be_had_by_tcp_and_nothing_else(multitenant):
    node = multitenant.node("node2")
    with open(node["config"]) as f:
        before = f.read()
    get = "import sys, urllib.request as u; print(u.urlopen('http://127.0.0.1:9101' + sys.argv[1]).read().decode())"
    try:
        with open(node["config"], "a") as f:
            f.write("metricsBindAddress: 127.0.0.1:9101\n")
        multitenant.cmd("node", "restart", "node2")
        text = multitenant.ns("node2", ["/usr/bin/python3", "-c", get, "/metrics"]).stdout
        assert samples(text)["tenet_node_ready"] == 1
        for path in ("/v1/state", "/v1/flows", "/v1/trace"):
            assert "HTTP Error 404" in multitenant.ns("node2", ["/usr/bin/python3", "-c", get, path], check=False).stderr
    finally:
        with open(node["config"], "w") as f:
            f.write(before)
        multitenant.cmd("node", "restart", "node2")


# ---- drops by cause ----

# Paced: the switch reads pods' links through sockets, whose buffers would lose what no flow has seen.
SEND = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for _ in range(int(sys.argv[2])):
    s.send(bytes.fromhex(sys.argv[3]))
    time.sleep(0.001)
"""
SEND_UDP = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    s.sendto(bytes.fromhex(sys.argv[3]), (sys.argv[1], 4789))
"""


def octets(ip):
    return bytes(map(int, ip.split(".")))


def mac_of(ip):
    return b"\x0a\x58" + octets(ip)


def packet(src, dst, protocol, payload, good=True):
    """Of IPv4; its header's checksum is only the connection tracker's business."""
    header = bytes([0x45, 0, 0, 20 + len(payload), 0, 1, 0, 0, 64, protocol, 0, 0]) + octets(src) + octets(dst)
    total = sum(int.from_bytes(header[i:i + 2], "big") for i in range(0, 20, 2))
    checksum = 0xffff - (total + (total >> 16)) % 0x10000 if good else 0
    return header[:10] + checksum.to_bytes(2, "big") + header[12:] + payload


def udp(src, dst, port=9999, good=True):
    return packet(src, dst, 17, (7777).to_bytes(2, "big") + port.to_bytes(2, "big") + bytes([0, 16, 0, 0]) + b"question", good)


def tcp(src, dst):
    """Of a connection that exists."""
    return packet(src, dst, 6, (7777).to_bytes(2, "big") + (9999).to_bytes(2, "big") + bytes(8) + bytes([0x50, 16, 1, 0]) + bytes(4))


def ethernet(src, payload, kind=0x0800, dst=mac_of(GATEWAY)):
    return dst + src + kind.to_bytes(2, "big") + payload + bytes(max(0, 46 - len(payload)))


def arp(src, target, op=1):
    return (bytes([0, 1, 8, 0, 6, 4, 0, op]) + mac_of(src) + octets(src) + bytes(6) + octets(target))


@pytest.fixture(scope="module")
def quiet(make_lab):
    """Two nodes where nothing is sent but by the test: no IPv6 chatter."""
    lab = make_lab("xq", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    lab.project("red")
    lab.project("blue")
    lab.red, lab.blue, lab.far = lab.pod("red/a", "node1"), lab.pod("blue/b", "node1"), lab.pod("red/c", "node2")
    lab.near = lab.pod("red/d", "node1")
    for pod in (lab.red, lab.blue, lab.far, lab.near):
        pod.ns(["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"])
    for node in ("node1", "node2"):
        lab.ns(node, ["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"])
    for ns, ip, more in (("red", EMPTY, {}), ("blue", FOREIGN, {}),
                         ("red", IDLE, {"idling.alpha.openshift.io/idled-at": "2026-01-01T00:00:00Z"})):
        lab.kubectl("apply", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s" + ip.rsplit(".")[-1], "namespace": ns, "annotations": more},
            "spec": {"clusterIP": ip, "ports": [{"port": 9999, "protocol": "UDP"}]}}))
        wait_for(f"{ip} to be served", lambda: lab.serves("node1", ip))
    yield lab
    lab.down(check=False)


def from_pod(lab, frame, n):
    lab.red.ns(["/usr/bin/python3", "-c", SEND, "eth0", str(n), frame.hex()])


def from_host(lab, frame, n, device="tun0"):
    lab.ns("node1", ["/usr/bin/python3", "-c", SEND, device, str(n), frame.hex()])


def frames_of_pod(cause, pod, other):
    me, mac = pod.ip, mac_of(pod.ip)
    return {
        "vlan-tagged": dict(kind=0x8100, payload=bytes([0, 7, 8, 0]) + udp(me, GATEWAY)),
        "not-ip": dict(kind=0x88b5, payload=b"what is this"),
        "multicast": dict(payload=udp(me, "224.0.0.251")),
        "forged-tunnel": dict(payload=udp(me, "198.51.100.10", 4789)),
        "spoofed-source": dict(payload=udp("10.128.0.77", GATEWAY)),
        "arp-not-asked": dict(kind=0x0806, payload=arp(me, GATEWAY, 2)),
        "arp-off-network": dict(kind=0x0806, payload=arp(me, "8.8.8.8")),
        # An answer of nobody to who reaches itself; and what the connection tracker does not want.
        "service-invalid": dict(payload=udp(me, ITSELF)),
        "service-invalid-checksum": dict(payload=udp(me, SERVICE, good=False)),
        "service-not-available": dict(payload=udp(me, SERVICE)),
        "service-of-other-project": dict(payload=udp(me, FOREIGN)),
        "service-idle": dict(payload=udp(me, IDLE)),
        "service-without-endpoints": dict(payload=udp(me, EMPTY)),
        "no-such-node": dict(payload=udp(me, NOBODYS)),
        "no-such-pod": dict(payload=udp(me, "10.128.0.250")),
        "own-address": dict(payload=udp(me, me)),
        "vnid-mismatch": dict(payload=udp(me, other.ip)),
    }[cause], mac


OF_PODS = ["vlan-tagged", "not-ip", "multicast", "forged-tunnel", "spoofed-source", "arp-not-asked", "arp-off-network",
           "service-invalid", "service-not-available", "service-of-other-project", "service-idle",
           "service-without-endpoints", "no-such-node", "no-such-pod", "own-address", "vnid-mismatch"]


def settle(lab):
    """Until what was sent before is counted: the switch counts flows in rounds, and two have passed."""
    spec, mac = frames_of_pod("own-address", lab.red, lab.blue)
    for _ in range(2):
        before = drops(lab, "node1")["own-address"]
        from_pod(lab, ethernet(mac, spec["payload"]), 1)
        wait_for("a round of counting", lambda: drops(lab, "node1")["own-address"] > before)


def expect_drops(lab, cause, n, send):
    settle(lab)
    before = drops(lab, "node1")
    send()
    wanted = {**before, cause: before[cause] + n}

    def seen():
        now = drops(lab, "node1")
        return now if now[cause] >= wanted[cause] else None
    assert wait_for(f"{n} drops of {cause}", seen) == wanted


@pytest.mark.ovs_only("the programs are no tracker: whose checksum is wrong is the receiver's business")
def test_what_the_tracker_does_not_want_is_counted(quiet):
    spec, mac = frames_of_pod("service-invalid-checksum", quiet.red, quiet.blue)
    expect_drops(quiet, "service-invalid", 7, lambda: from_pod(quiet, ethernet(mac, spec["payload"]), 7))


@pytest.mark.parametrize("cause", OF_PODS)
def test_what_a_pod_loses_is_counted_under_its_cause(quiet, cause):
    spec, mac = frames_of_pod(cause, quiet.red, quiet.blue)
    frame = ethernet(mac, spec["payload"], spec.get("kind", 0x0800))
    expect_drops(quiet, cause, 7, lambda: from_pod(quiet, frame, 7))


def test_a_tag_counts_whatever_is_behind_it(quiet):
    """The same without the tag is a packet like most, which nobody loses."""
    near, mac = quiet.near, mac_of(quiet.red.ip)
    stream = tcp(quiet.red.ip, near.ip)
    expect_drops(quiet, "vlan-tagged", 7, lambda: from_pod(quiet, ethernet(
        mac, bytes([0, 7, 8, 0]) + stream, 0x8100, mac_of(near.ip)), 7))
    expect_drops(quiet, "vlan-tagged", 0, lambda: from_pod(quiet, ethernet(mac, stream, dst=mac_of(near.ip)), 7))


def test_what_others_lose_is_counted_under_its_cause(quiet):
    host = mac_of(GATEWAY)
    expect_drops(quiet, "not-for-this-node", 5,
                 lambda: from_host(quiet, ethernet(host, udp("8.8.8.8", "9.9.9.9")), 5))
    expect_drops(quiet, "back-to-host", 5, lambda: from_host(quiet, ethernet(host, udp(GATEWAY, "9.9.9.9")), 5))
    expect_drops(quiet, "spoofed-source", 5,
                 lambda: from_host(quiet, ethernet(host, udp(quiet.far.ip, quiet.red.ip)), 5))
    if quiet.has_ovs("node1"):
        quiet.vsctl("node1", "add-port", "br0", "stray", "--", "set", "interface", "stray", "type=internal")
        try:
            quiet.ns("node1", ["ip", "link", "set", "stray", "up"])
            expect_drops(quiet, "unknown-port", 5,
                         lambda: from_host(quiet, ethernet(mac_of(quiet.red.ip), udp(quiet.red.ip, GATEWAY)), 5, "stray"))
        finally:
            quiet.vsctl("node1", "del-port", "br0", "stray")
    else:  # a link with the program, of which nothing is known
        link = next(i["key"]["link"] for i in quiet.maps("node1", "ports") if i["value"]["address"] == quiet.red.ip)
        with changed_map(quiet, "node1", ["delete", "ports", "key", *link.to_bytes(4, "little")],
                         *quiet.without_pod("node1", quiet.red.ip)):
            frame = ethernet(mac_of(quiet.red.ip), udp(quiet.red.ip, GATEWAY))
            from_pod(quiet, frame, 5)
            assert drops(quiet, "node1")["unknown-port"] == 5
        assert quiet.red.can_ping(quiet.far.ip)
    vxlan = bytes([8, 0, 0, 0, 0, 0, 0, 0]) + ethernet(mac_of(quiet.far.ip), udp(quiet.far.ip, quiet.red.ip))
    expect_drops(quiet, "unknown-vtep", 5, lambda: quiet.ns(
        "outside", ["/usr/bin/python3", "-c", SEND_UDP, quiet.node("node1")["hostIP"], "5", vxlan.hex()]))


def test_every_cause_of_the_table_was_counted_here(quiet):
    documented = set()
    with open(os.path.join(os.path.dirname(__file__), "../../docs/pipeline.md")) as f:
        section = f.read().split("| cause |", 1)[1].split("\n\n", 1)[0]
    documented = set(re.findall(r"^\| ([a-z][a-z-]+) \|", section, re.M))
    assert documented == set(drops(quiet, "node1"))
    of_policy = {"connection-denied", "egress-denied", "ingress-denied", "forged-error"}  # under networkpolicy only
    of_egress = {"egress-firewall", "metadata-blocked"}  # counted in test_egress.py
    assert {c for c, n in drops(quiet, "node1").items() if n} == documented - of_policy - of_egress


@pytest.mark.ovs_only("its daemons die")
def test_counters_go_on_when_open_vswitch_starts_anew(quiet):
    before = drops(quiet, "node1")
    quiet.cmd("ovs", "restart", "node1")
    wait_for("the agent", lambda: fetch(quiet, "node1", "/healthz")[0] == 200)
    settle(quiet)
    after = drops(quiet, "node1")
    assert all(after[c] >= before[c] for c in before)
    spec, mac = frames_of_pod("own-address", quiet.red, quiet.blue)
    expect = drops(quiet, "node1")["own-address"] + 3
    from_pod(quiet, ethernet(mac, spec["payload"]), 3)
    wait_for("three more", lambda: drops(quiet, "node1")["own-address"] == expect)


# ---- ICMP ----

ASK = """
import errno, socket, sys
kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR
s.settimeout(3)
try:
    s.connect((host, port))
    if kind == "udp":
        s.send(b"hello")
        s.recv(10)
    print("ok")
except OSError as e:
    print(errno.errorcode.get(e.errno, "timeout"))
"""


@contextlib.contextmanager
def capture(pod_or_ns, device, expression):
    """What tcpdump sees of 'expression': a function that returns its lines so far."""
    proc = pod_or_ns(["tcpdump", "-lni", device, expression], stderr=subprocess.PIPE)
    lines = []
    try:
        while "listening on" not in proc.stderr.readline():
            pass
        os.set_blocking(proc.stdout.fileno(), False)

        def seen():
            with contextlib.suppress(TypeError):
                lines.extend(proc.stdout.read().splitlines())
            return list(lines)
        yield seen
    finally:
        proc.terminate()
        proc.wait()
        proc.stdout.close()
        proc.stderr.close()


def ask(pod, kind, host, port):
    return pod.ns(["/usr/bin/python3", "-c", ASK, kind, host, str(port)]).stdout.strip()


@pytest.mark.parametrize("kind,host,port,answer", [
    ("tcp", NOBODYS, 80, "EHOSTUNREACH"), ("udp", NOBODYS, 53, "EHOSTUNREACH"),
    ("tcp", SERVICE, 443, "ECONNREFUSED"), ("udp", SERVICE, 53, "ECONNREFUSED"),
    ("udp", "198.51.100.10", 4789, "EHOSTUNREACH")])
def test_a_pod_hears_at_once_of_what_leads_nowhere(quiet, kind, host, port, answer):
    # One in a second may be lost to the limit by the tests before.
    assert wait_for(f"{answer} from {host}", lambda: ask(quiet.red, kind, host, port) == answer)


def test_errors_come_from_the_gateway_and_to_nobody_else(quiet):
    with capture(quiet.red.popen, "eth0", "icmp[0] == 3") as mine, \
            capture(quiet.blue.popen, "eth0", "icmp") as others, \
            capture(lambda argv, **kw: quiet.ns_popen("node1", argv, **kw), "tun0", "icmp") as hosts:
        wait_for("an error", lambda: ask(quiet.red, "udp", NOBODYS, 53) == "EHOSTUNREACH")
        first = wait_for("the capture of it", mine)[0]
        assert f"IP {GATEWAY} > {quiet.red.ip}: ICMP host {NOBODYS} unreachable" in first
        assert others() == [] and hosts() == []


def test_forbidden_and_absent_pods_get_the_same_silence(quiet):
    """By frames of our own, as the kernel does not even ask for an absent pod's address twice."""
    me, mac = quiet.red.ip, mac_of(quiet.red.ip)
    with capture(quiet.red.popen, "eth0", "icmp[0] == 3") as seen:
        before = drops(quiet, "node1")
        for dst in (quiet.blue.ip, "10.128.0.250", "10.128.2.250"):
            from_pod(quiet, ethernet(mac, udp(me, dst)), 4)
        wait_for("the drops", lambda: all(drops(quiet, "node1")[c] - before[c] >= 4
                                          for c in ("vnid-mismatch", "no-such-pod")))
        # The last of all is answered: so everything before it would have been.
        wait_for("an error", lambda: ask(quiet.red, "udp", NOBODYS, 53) == "EHOSTUNREACH")
        lines = wait_for("the capture of it", seen)
        assert all(NOBODYS in line for line in lines), lines


def test_errors_are_limited_and_all_drops_counted(quiet):
    frame = ethernet(mac_of(quiet.red.ip), udp(quiet.red.ip, NOBODYS))
    before = samples(fetch(quiet, "node1", "/metrics")[1])
    with capture(quiet.red.popen, "eth0", "icmp[0] == 3") as seen:
        expect_drops(quiet, "no-such-node", 1000, lambda: from_pod(quiet, frame, 1000))
        lines = seen()
        stamps = [sum(float(x) * f for x, f in zip(line.split()[0].split(":"), (3600, 60, 1))) for line in lines]
        assert 1 <= len(lines) <= 10 + 10 * (stamps[-1] - stamps[0] + 1) + 1
    after = samples(fetch(quiet, "node1", "/metrics")[1])

    def grew(result):
        key = f'tenet_node_icmp_refusals_total{{result="{result}"}}'
        return after[key] - before[key]
    assert grew("sent") >= len(lines)
    if quiet.has_ovs("node1"):
        assert 20 <= grew("sent") + grew("limited") < 800  # the switch kept the rest from the agent
    else:
        assert grew("sent") + grew("limited") == 1000


def test_a_forged_sender_causes_no_error(quiet):
    """What another pod seems to have sent is answered to nobody."""
    frame = ethernet(mac_of(quiet.red.ip), udp(quiet.blue.ip, "198.51.100.10", 4789))
    with capture(quiet.blue.popen, "eth0", "icmp") as others, capture(quiet.red.popen, "eth0", "icmp[0] == 3") as mine:
        expect_drops(quiet, "forged-tunnel", 5, lambda: from_pod(quiet, frame, 5))
        assert others() == [] and not [x for x in mine() if quiet.blue.ip in x]


def test_without_the_agent_the_switch_drops_in_silence(quiet):
    quiet.cmd("node", "kill", "node1")
    try:
        # The programs say it themselves.
        assert ask(quiet.red, "udp", NOBODYS, 53) == ("timeout" if quiet.has_ovs("node1") else "EHOSTUNREACH")
        assert quiet.red.can_ping(quiet.far.ip)
    finally:
        quiet.cmd("node", "start", "node1")
    wait_for("errors again", lambda: ask(quiet.red, "udp", NOBODYS, 53) == "EHOSTUNREACH")


# ---- metrics ----

def test_requests_and_what_went_wrong_are_counted(quiet):
    quiet.pod("red/counted", "node2")
    quiet.delete_pod("red/counted")
    m = samples(fetch(quiet, "node2", "/metrics")[1])
    assert m['tenet_node_cni_requests_total{command="ADD",result="ok"}'] >= 2
    assert m['tenet_node_cni_requests_total{command="DEL",result="ok"}'] >= 1
    assert m['tenet_node_cni_duration_seconds_count{command="ADD"}'] == \
        m['tenet_node_cni_duration_seconds_bucket{command="ADD",le="+Inf"}']
    assert m["tenet_node_pods"] == 1 and m["tenet_node_remote_nodes"] == 1 and m["tenet_node_master_connected"] == 1
    m1 = samples(fetch(quiet, "node1", "/metrics")[1])
    if quiet.has_ovs("node2"):
        assert m["tenet_node_flows"] == len(quiet.flows("node2"))
    if quiet.has_ovs("node1"):
        assert m1["tenet_node_openflow_connections_total"] >= 1
    assert m1["process_resident_memory_bytes"] > 0


# ---- check ----

def left_by_checks(lab):
    projects = [n["metadata"]["name"] for n in lab.objects("namespaces")
                if n["metadata"]["name"].startswith("tenet-check-") and "deletionTimestamp" not in n["metadata"]]
    pods = [p for node in lab.status()["nodes"]
            for p in json.loads(fetch(lab, node["name"], "/v1/state")[1])["pods"] if p["namespace"].startswith("tenet-check-")]
    return projects + pods


def check(lab, *args):
    proc = subprocess.Popen([TENET, "check", "--lab", lab.name, "-o", "json", *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment())
    out, err = proc.communicate(timeout=120)
    assert not [n for n in os.listdir("/run/netns") if n.startswith(f"tenetcheck-{proc.pid}-")]
    assert not left_by_checks(lab)
    assert proc.returncode in (0, 1), err
    v = json.loads(out)
    assert v["ok"] == (proc.returncode == 0)
    return v["probes"]


def failed(probes):
    return {(p["check"], p["from"], p["to"]) for p in probes if p["result"] == "FAILED"}


def test_check_passes_on_a_good_lab(cluster):
    probes = check(cluster)
    assert not failed(probes)
    ok = {p["check"] for p in probes if p["result"] == "ok"}
    assert ok == {"connectivity", "tcp", "isolation", "host", "mtu", "nat", "dns"}
    assert sum(p["check"] == "dns" for p in probes) == 3, "each node's own"
    assert sum(p["check"] == "connectivity" for p in probes) == 6
    text = tenet(cluster, "check", "--lab", cluster.name)
    assert text.returncode == 0 and re.search(r"^connectivity +ok +6 of 6 tried$", text.stdout, re.M)


DNS = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("198.51.100.10", 53))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(512)
    s.sendto(data[:2] + bytes([0x81, 0x83]) + data[4:], peer)
"""


def test_check_asks_a_name_server(multitenant):
    assert {p[0] for p in failed(check(multitenant, "--dns", "198.51.100.10"))} == {"dns"}
    proc = multitenant.ns_popen("outside", ["/usr/bin/python3", "-c", DNS])
    try:
        assert proc.stdout.readline().strip() == "ready"
        probes = check(multitenant, "--dns", "198.51.100.10")
        assert not failed(probes) and sum(p["check"] == "dns" for p in probes) == 3
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()


def test_check_finds_a_missing_rule(multitenant):
    with without_way_to(multitenant, "node1", "node2"):
        bad = failed(check(multitenant))
    assert {("connectivity", "node1", "node2"), ("connectivity", "node2", "node1"), ("host", "node1", "node2")} <= bad
    assert not [x for x in bad if "node3" in x[1:] and x[0] != "tcp" and "node1" not in x[1:] and "node2" not in x[1:]]
    assert ("connectivity", "node1", "node3") not in bad and ("connectivity", "node3", "node2") not in bad
    assert not [x for x in bad if x[0] == "nat"]


@pytest.mark.ovs_only("rules of each pod say it with the datapath ebpf, and those of a check's own are new")
def test_check_finds_missing_isolation(multitenant):
    with without_isolation(multitenant, "node2"):
        probes = check(multitenant)
    assert failed(probes) >= {("isolation", "node2", "node2")}
    assert {x[0] for x in failed(probes)} == {"isolation"}
    assert {p["detail"] for p in probes if p["result"] == "FAILED"} == {"reached, and must not be"}


def test_check_finds_a_link_that_is_too_small(multitenant):
    pods = {p.ref: p for p in multitenant.pods}

    def host_pings(node, pod):
        return multitenant.ns(node, ["ping", "-n", "-q", "-c1", "-W2", pod.ip], check=False).returncode == 0

    def set_mtu(mtu):
        """The switch opens the link anew: the small ones pass again when it has."""
        multitenant.ns("node2", ["ip", "link", "set", "eth0", "mtu", str(mtu)])
        for other in ("red/red-1", "red/red-3"):
            wait_for("small packets", lambda: pods["red/red-2"].can_ping(pods[other].ip)
                     and host_pings("node2", pods[other]) and host_pings(pods[other].node, pods["red/red-2"]))

    try:
        set_mtu(1400)
        bad = failed(check(multitenant))
    finally:
        set_mtu(1500)
    assert {x[0] for x in bad} == {"mtu"}, bad
    assert ("mtu", "node2", "node1") in bad and ("mtu", "node1", "node3") not in bad


def test_check_finds_missing_nat(multitenant):
    """Without connection tracking nothing is translated; the agent does not look at others' tables."""
    multitenant.ns("node3", ["nft", "-f", "-"], input='table ip sabotage {\n chain c {\n'
                   '  type filter hook prerouting priority -300\n  iifname "tun0" notrack\n }\n}\n')
    try:
        bad = failed(check(multitenant))
    finally:
        multitenant.ns("node3", ["nft", "delete", "table", "ip", "sabotage"])
    assert bad == {("nat", "node3", "198.51.100.10")}


def test_check_that_is_broken_off_leaves_nothing(multitenant):
    proc = subprocess.Popen([TENET, "check", "--lab", multitenant.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=environment())
    wait_for("its namespaces", lambda: [n for n in os.listdir("/run/netns") if n.startswith(f"tenetcheck-{proc.pid}-")])
    proc.send_signal(signal.SIGINT)
    out, err = proc.communicate(timeout=60)
    assert proc.returncode == 3 and "interrupted" in err
    assert not [n for n in os.listdir("/run/netns") if n.startswith(f"tenetcheck-{proc.pid}-")]
    assert not left_by_checks(multitenant)


def test_check_says_when_it_cannot_begin(multitenant):
    multitenant.cmd("node", "stop", "node3")
    try:
        r = tenet(multitenant, "check", "--lab", multitenant.name)
        assert r.returncode == 3 and "node node3 cannot attach pods" in r.stderr
    finally:
        multitenant.cmd("node", "start", "node3")


def test_check_on_one_host_by_its_own_socket(multitenant):
    """As on a real host: this node's agent alone; other nodes by their address in the pod network."""
    node = multitenant.node("node1")
    r = tenet(multitenant, "check", "--socket", node["agentSocket"], "--kubeconfig", multitenant.kubeconfig,
              "--outside", "198.51.100.10", "--dns", "192.0.2.1", "-o", "json")
    probes = json.loads(r.stdout)["probes"]
    assert {p["to"] for p in probes if p["check"] == "host" and p["result"] == "ok"} == {"node1", "node2", "node3"}
    assert {x[0] for x in failed(probes)} == {"dns"} and r.returncode == 1
    v = tenet(multitenant, "trace", "--socket", node["agentSocket"], "--kubeconfig", multitenant.kubeconfig,
              "red/red-1", "blue/blue-2")
    assert v.returncode == 1 and "its agent cannot be asked from this host" in v.stdout
    assert "dropped on node2: vnid-mismatch" in v.stdout


# ---- events and conditions ----

def events(lab, kind, name, reason):
    return [e for e in lab.objects("events", "--all-namespaces")
            if e["involvedObject"]["kind"] == kind and e["involvedObject"]["name"] == name and e["reason"] == reason]


def condition(lab, node, kind):
    return next(c for c in lab.object("node", node)["status"]["conditions"] if c["type"] == kind)


@pytest.mark.ovs_only("its daemons die")
def test_open_vswitch_gone_is_told_when_the_master_can_be_reached(quiet):
    """In a lab the way to the master leads through the switch itself: the event comes when it is back."""
    quiet.cmd("ovs", "kill", "node2")
    try:
        wait_for("the agent to see it", lambda: fetch(quiet, "node2", "/healthz")[0] == 503)
        assert "Open vSwitch is not available" in fetch(quiet, "node2", "/healthz")[1]
        assert samples(fetch(quiet, "node2", "/metrics")[1])["tenet_node_switch_in_place"] == 0
        assert fetch(quiet, "node2", "/v1/flows")[0] == 503
        status, body = fetch(quiet, "node2", "/v1/trace?pod=red/c&dst=10.128.0.2")
        assert status == 200 and json.loads(body)["switch"]["error"] and not json.loads(body)["agreed"]
    finally:
        quiet.cmd("ovs", "start", "node2")
    e = wait_for("the event", lambda: events(quiet, "Node", "node2", "OpenVSwitchGone"), 120)[0]
    assert e["type"] == "Warning" and e["source"]["component"] == "tenet-node"
    wait_for("the event of its return", lambda: events(quiet, "Node", "node2", "TenetReady"), 120)
    wait_for("the condition", lambda: condition(quiet, "node2", "Ready")["status"] == "True")
    assert samples(fetch(quiet, "node2", "/metrics")[1])["tenet_node_switch_losses_total"] >= 1


def test_nat_that_cannot_be_set_up_is_a_condition_and_an_event(quiet):
    """There is no nft: the agent refuses to start, and says so where users look."""
    path = os.path.join(os.path.dirname(quiet.node("node2")["config"]), "nonft")
    os.mkdir(path)
    config = quiet.node("node2")["config"]
    quiet.cmd("node", "stop", "node2")
    proc = quiet.ns_popen("node2", ["env", f"PATH={path}", TENET, "node", "--config", config])
    try:
        out, _ = proc.communicate(timeout=60)
        assert proc.returncode == 1 and "nft" in out
        e = wait_for("the event", lambda: events(quiet, "Node", "node2", "TenetFailed"))[0]
        assert "nft" in e["message"]
        wait_for("the condition", lambda: condition(quiet, "node2", "NetworkUnavailable")["reason"] == "TenetFailed")
    finally:
        proc.kill()
        quiet.cmd("node", "start", "node2")


def test_vxlan_port_taken_is_an_event(quiet):
    quiet.cmd("node", "stop", "node2")
    if quiet.has_ovs("node2"):
        quiet.vsctl("node2", "del-port", "br0", "vxlan0")
    else:
        quiet.ns("node2", ["ip", "link", "del", "vxlan_tenet"])
    holder = ("import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 4789)); "
              "print('ready', flush=True); time.sleep(1000)")
    proc = quiet.ns_popen("node2", ["/usr/bin/python3", "-c", holder])
    try:
        assert proc.stdout.readline().strip() == "ready"
        r = quiet.cmd("node", "start", "node2", check=False)
        assert r.returncode != 0
        found = wait_for("the event", lambda: [e for e in events(quiet, "Node", "node2", "TenetFailed")
                                               if "4789" in e["message"]])
        assert found[0]["type"] == "Warning"
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()
        quiet.cmd("node", "start", "node2")


def test_objects_that_are_not_used_say_so(quiet):
    own = quiet.node("node1")
    bad = json.dumps({"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet",
                      "metadata": {"name": "thief"}, "host": "thief", "hostIP": own["hostIP"], "subnet": "10.131.0.0/23"})
    quiet.kubectl("create", "-f", "-", input=bad)
    try:
        e = wait_for("the event", lambda: events(quiet, "HostSubnet", "thief", "HostSubnetNotUsed"))[0]
        assert e["message"].startswith("node node")
    finally:
        quiet.kubectl("delete", "hostsubnet", "thief")


def test_exhausted_subnet_is_an_event_of_pod_and_node(make_lab):
    lab = make_lab("xe", nodes=1, host_subnet_length=3)
    try:
        for i in range(5):
            lab.pod(f"default/p{i}")
        for _ in range(3):  # the same again adds to the count
            assert lab.cmd("pod", "add", "default/toomany", check=False).returncode != 0
        pod = wait_for("the event of the pod", lambda: events(lab, "Pod", "toomany", "NoFreeAddress"))
        assert len(pod) == 1 and "no free address" in pod[0]["message"]
        wait_for("the count", lambda: events(lab, "Pod", "toomany", "NoFreeAddress")[0]["count"] == 3)
        assert wait_for("the event of the node", lambda: events(lab, "Node", "node1", "NoFreeAddress"))
    finally:
        lab.down(check=False)
