# SPDX-License-Identifier: Apache-2.0
"""What the datapath ebpf shows (traces, flows, maps), on mixed nodes; and what it refuses, with the reason, before anything
is changed: no permission, a port that is taken, a map that is full."""
import concurrent.futures
import contextlib
import json
import pathlib
import re
import signal
import subprocess
import threading

import pytest

from lab import TENET, environment, run, wait_for
from test_cni import Sandbox
from test_ebpf import configured, metrics
from test_explain import trace

NOBODYS, OUTSIDE = "10.131.200.9", "198.51.100.10"
PLUGIN = "redhat/openshift-ovs-multitenant"


@pytest.fixture(scope="module")
def mixed(make_lab):
    """Two nodes of the datapath ebpf, and one of the other."""
    lab = make_lab("es", nodes=3, plugin=PLUGIN, datapath="ebpf,ebpf,ovs")
    for project in ("red", "blue"):
        lab.project(project)
    lab.pods = [lab.pod(f"{project}/{project}-{i}", f"node{i}") for project in ("default", "red", "blue") for i in (1, 2, 3)]
    lab.by = {p.ref: p for p in lab.pods}
    for name, selector in (("web", {"app": "web"}), ("empty", {"app": "none"})):
        lab.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "red"},
            "spec": {"selector": selector, "ports": [{"port": 80, "targetPort": 8080}]}}))
    lab.pod("red/backend", "node2", labels={"app": "web"})
    lab.web, lab.empty = (json.loads(lab.kubectl("get", "service", n, "-n", "red", "-o", "json").stdout)["spec"]["clusterIP"]
                          for n in ("web", "empty"))
    lab.conf = json.loads(next(pathlib.Path(lab.node("node1")["cniConfDir"]).glob("*.conf")).read_text())
    yield lab
    lab.down(check=False)


def tenet(lab, *args, **kw):
    return run([TENET, *args], check=False, timeout=60, env={**environment(), "KUBECONFIG": lab.kubeconfig}, **kw)


def maps(lab, node, *name):
    r = tenet(lab, "node", "maps", "--lab", lab.name, "--node", node, "-o", "json", *name)
    assert r.returncode == 0, r.stderr
    answer, = json.loads(r.stdout)
    return answer["map"] if name else {m["name"]: m for m in answer["maps"]}


# ---- traces ----

def test_traces_say_what_packets_do_on_mixed_nodes(mixed):
    """From each node to every pod: verdict of the trace, the model's, and a real echo."""
    sources = [mixed.by[ref] for ref in ("red/red-1", "blue/blue-3")]
    pairs = [(a, b) for a in sources for b in mixed.pods if a is not b]
    wrong, dropped = [], 0
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        # Packets first: the switch of node3 traces a tunnel only when it has learnt its neighbours.
        echoes = list(pool.map(lambda p: p[0].can_ping(p[1].ip), pairs))
        traces = list(pool.map(lambda p: trace(mixed, p[0].ref, p[1].ref), pairs))
    for (a, b), reached, v in zip(pairs, echoes, traces):
        if v["verdict"]["allowed"] != reached or not v["verdict"]["agreed"]:
            wrong.append(f"{a} -> {b}: {v['verdict']}, echo {reached}")
        assert [h["node"] for h in v["halves"]] == ([a.node] if a.node == b.node else [a.node, b.node])
        if not v["verdict"]["allowed"]:
            dropped += 1
            assert v["verdict"]["cause"] == "vnid-mismatch" and v["verdict"]["node"] == b.node
            assert f"NetNamespace {a.project} has {a.vnid}, NetNamespace {b.project} has {b.vnid}" == v["verdict"]["object"]
    assert not wrong and dropped


def test_a_trace_names_maps_and_objects(mixed):
    v = trace(mixed, "red/red-1", "red/red-3", "tcp", "8080")
    steps = [[(s["tableName"], s["object"]) for s in h["switch"]["steps"]] for h in v["halves"]]
    assert steps[0] == [("tenet_pods", "Pod red/red-1"), ("tenet_subnets", "HostSubnet node3")]
    assert ("from-vxlan", "HostSubnet node1") in steps[1] and ("local", "Pod red/red-3") in steps[1]
    v = trace(mixed, "red/red-3", "red/red-1", "udp", "53")
    steps = [[(s["tableName"], s["object"]) for s in h["switch"]["steps"]] for h in v["halves"]]
    assert ("remote", "HostSubnet node1") in steps[0]
    assert steps[1] == [("tenet_subnets", "HostSubnet node3"), ("tenet_pods", "Pod red/red-1"), ("tenet_pods", "NetNamespace red")]


@pytest.mark.parametrize("to,proto,allowed,cause", [
    (NOBODYS, [], False, "no-such-node"),
    ("172.30.255.254", ["tcp", "443"], False, "service-not-available"),
    (OUTSIDE, ["udp", "4789"], False, "forged-tunnel"),
    (OUTSIDE, ["udp", "53"], True, ""),
    ("10.128.0.250", [], False, "no-such-pod"),
    ("224.0.0.251", ["udp", "5353"], False, "multicast"),
    ("red/empty", ["tcp", "80"], False, "service-without-endpoints"),
    ("node2", [], True, ""),
])
def test_trace_to_where_no_pod_is(mixed, to, proto, allowed, cause):
    v = trace(mixed, "red/red-1", to, *proto)["verdict"]
    assert (v["allowed"], v.get("cause", ""), v["agreed"]) == (allowed, cause, True)


def test_a_trace_through_a_service_leaves_no_sign(mixed):
    def counted():
        drops = {k: v for k, v in metrics(mixed).items() if k.startswith("tenet_node_drops_total") and "service" in k}
        return drops, [maps(mixed, "node1", m)["entries"] for m in ("conns", "affinity", "refusals")]
    wait_for("the endpoint", lambda: any(i["value"]["backend"].endswith(":8080") for i in maps(mixed, "node1", "backends")["items"]))
    before = counted()
    v = trace(mixed, "red/red-1", "red/web", "tcp", "80")
    assert v["verdict"]["allowed"] and v["verdict"]["node"] == "node2"
    first = v["halves"][0]
    assert first["service"]["name"] == "red/web" and first["service"]["endpointPort"] == 8080
    assert ("tenet_services", "Service red/web") in [(s["tableName"], s["object"]) for s in first["switch"]["steps"]]
    v = trace(mixed, "blue/blue-1", "red/web", "tcp", "80")["verdict"]
    assert (v["allowed"], v["cause"], v["object"]) == (False, "service-of-other-project", "Service red/web")
    assert counted() == before


# ---- flows ----

class Flows:
    """'tenet flows -w' with what it told so far."""

    def __init__(self, lab, *args):
        self.events = []
        self.process = subprocess.Popen(
            [TENET, "flows", "-w", "--lab", lab.name, "-o", "json", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**environment(), "KUBECONFIG": lab.kubeconfig})
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def find(self, **want):
        def matches(e):
            ends = {"source": "{namespace}/{pod}".format_map({"namespace": "", "pod": "", **e.get("from", {})}),
                    "target": "{namespace}/{pod}".format_map({"namespace": "", "pod": "", **e.get("to", {})}), **e}
            return all(ends.get(k) == v for k, v in want.items())
        return next((e for e in list(self.events) if matches(e)), None)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.reader.join()
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait(), errors

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.returncode is None:
            self.stop()


def watched(lab, node="node1"):
    return maps(lab, node, "settings")["items"][0]["value"]["watched"]


def test_flows_are_told_with_names_verdicts_and_what_dropped_them(mixed):
    a, b, c, x = (mixed.by[r] for r in ("red/red-1", "red/red-2", "red/red-3", "blue/blue-1"))
    assert not watched(mixed)
    with Flows(mixed) as flows:
        wait_for("the watch", lambda: watched(mixed) and watched(mixed, "node2"))
        assert a.can_ping(b.ip) and a.can_ping(c.ip) and not a.can_ping(x.ip, tries=1) and not b.can_ping(x.ip, tries=1)
        wait_for("a flow by the tunnel", lambda: flows.find(source="red/red-1", target="red/red-2", node="node1", action="tunnel"))
        e = wait_for("its other end", lambda: flows.find(source="red/red-1", target="red/red-2", node="node2"))
        assert (e["action"], e["protocol"], e["entry"], e["senderNode"], e["vnid"]) == ("deliver", "icmp", "tunnel", "node1", a.vnid)
        e = wait_for("one to a node of the other kind", lambda: flows.find(source="red/red-1", target="red/red-3", node="node1"))
        assert e["remoteNode"] == "node3"
        e = wait_for("a drop", lambda: flows.find(source="red/red-1", target="blue/blue-1", verdict="dropped"))
        assert e["cause"] == "vnid-mismatch"
        assert e["object"] == f"NetNamespace red has {a.vnid}, NetNamespace blue has {x.vnid}"
        e = wait_for("a drop of the tunnel's", lambda: flows.find(source="red/red-2", target="blue/blue-1", node="node1"))
        assert e["object"] == f"the sender's VNID is {a.vnid}, NetNamespace blue has {x.vnid}"
        code = "import socket; s = socket.socket(); s.settimeout(1); s.connect_ex(('{}', 80))"
        a.ns(["/usr/bin/python3", "-c", code.format(mixed.web)], check=False)
        a.ns(["/usr/bin/python3", "-c", code.format(mixed.empty)], check=False)
        e = wait_for("a connection to a service", lambda: next((e for e in flows.events if e.get("service", {}).get("name") == "web"), None))
        assert e["service"]["ip"] == mixed.web and e["to"]["port"] == 8080 and e["to"]["pod"] == "backend"
        e = wait_for("one to no endpoint", lambda: flows.find(cause="service-without-endpoints"))
        assert e["object"] == "Service red/empty"
        status, errors = flows.stop()
    assert status == 0
    assert "node3: the datapath ovs does not tell single packets" in errors
    wait_for("nobody to be watched", lambda: not watched(mixed) and not watched(mixed, "node2"))


def test_flows_of_a_project_and_those_dropped(mixed):
    a, x, y = (mixed.by[r] for r in ("red/red-1", "blue/blue-1", "blue/blue-2"))
    with Flows(mixed, "--dropped", "--node", "node1") as dropped, Flows(mixed, "-n", "blue", "--node", "node1") as blue:
        wait_for("the watch", lambda: watched(mixed))
        assert x.can_ping(y.ip) and not a.can_ping(x.ip, tries=1) and a.can_ping(mixed.by["red/red-2"].ip)
        wait_for("the drop", lambda: dropped.find(source="red/red-1", target="blue/blue-1"))
        wait_for("the project's", lambda: blue.find(source="blue/blue-1", target="blue/blue-2"))
        wait_for("one that ends there", lambda: blue.find(source="red/red-1", target="blue/blue-1"))
        assert all(e["verdict"] == "dropped" for e in dropped.events)
        assert all("blue" in json.dumps(e) and e["node"] == "node1" for e in blue.events)


def test_flows_are_lines_for_people(mixed):
    a, b = mixed.by["red/red-1"], mixed.by["red/red-2"]
    with subprocess.Popen([TENET, "flows", "--for", "30", "--lab", mixed.name, "--node", "node1"], stdout=subprocess.PIPE, text=True,
                          env={**environment(), "KUBECONFIG": mixed.kubeconfig}) as p:
        try:
            assert p.stdout.readline().split() == ["TIME", "NODE", "FROM", "TO", "PROTOCOL", "VERDICT"]
            wait_for("the watch", lambda: watched(mixed))
            assert a.can_ping(b.ip)
            line = next(x for x in p.stdout if "red/red-1" in x and "red/red-2" in x)
            assert re.match(r"\d\d:\d\d:\d\d\.\d+ +node1 +red/red-1 +red/red-2 +icmp +to node node2\n", line)
        finally:
            p.terminate()
    r = tenet(mixed, "flows", "--lab", mixed.name, "--node", "node3")
    assert r.returncode == 3 and "tenet node flows" in r.stderr
    assert tenet(mixed, "flows", "--for", "x").returncode == 2
    r = tenet(mixed, "flows", "--socket", "/nowhere/agent.sock")
    assert r.returncode == 3 and "/nowhere/agent.sock" in r.stderr and not r.stdout


def test_a_watch_goes_on_when_the_agent_is_another(mixed):
    a, b = mixed.by["red/red-1"], mixed.by["red/red-2"]
    with Flows(mixed, "--node", "node1") as flows:
        wait_for("the watch", lambda: watched(mixed))
        mixed.cmd("node", "restart", "node1")
        wait_for("another watch", lambda: watched(mixed))
        del flows.events[:]
        assert a.can_ping(b.ip)
        wait_for("its flow", lambda: flows.find(source="red/red-1", target="red/red-2"))


# ---- maps ----

def test_maps_are_listed_and_shown_in_words(mixed):
    all_maps = maps(mixed, "node1")
    assert all_maps["tenet_pods"]["entries"] == 3 and all_maps["tenet_pods"]["max"] == 65536
    pods = {i["object"]: i for i in maps(mixed, "node1", "pods")["items"]}
    red = mixed.by["red/red-1"]
    assert pods["Pod red/red-1"]["key"] == {"address": red.ip} and pods["Pod red/red-1"]["value"]["vnid"] == red.vnid
    routes = {i["object"]: i for i in maps(mixed, "node1", "tenet_routes")["items"]}
    assert routes["HostSubnet node3"]["value"]["vtep"] == mixed.node("node3")["hostIP"]
    assert "Service red/web" in {i["object"] for i in maps(mixed, "node1", "services")["items"]}
    assert {i["key"]["cause"] for i in maps(mixed, "node1", "drops")["items"]} >= {"vnid-mismatch", "spoofed-source"}
    text = tenet(mixed, "node", "maps", "--lab", mixed.name, "--node", "node2", "routes").stdout
    assert re.search(r"prefix=10\.128\.0\.0/23 +kind=remote vtep=\S+( link=\d+ nextHop=\S+ mtu=\d+)? +HostSubnet node1", text)
    for args, said in ((["--node", "node1", "nosuch"], 'there is no map "nosuch"'), (["--node", "node3"], "the datapath ovs has no maps")):
        r = tenet(mixed, "node", "maps", "--lab", mixed.name, *args)
        assert r.returncode == 3 and said in r.stderr


# ---- network policy ----

def test_what_a_policy_denies_names_the_policy(mixed):
    """Under the plug-in networkpolicy: in a trace, in flows, and in the maps."""
    def plugin(name):
        mixed.kubectl("patch", "clusternetwork", "default", "--type=merge", "-p", json.dumps({"pluginName": name}))
        wait_for(f"plug-in {name}", lambda: all(
            f'plugin="{name}"' in " ".join(metrics(mixed, node)) for node in ("node1", "node2", "node3")))

    def create(ns, name, spec):
        mixed.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name, "namespace": ns},
            "spec": {"podSelector": {}, **spec}}))
    a, b, x = (mixed.by[r] for r in ("red/red-1", "red/red-2", "blue/blue-1"))
    plugin("redhat/openshift-ovs-networkpolicy")
    try:
        create("red", "closed", {"policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]})
        wait_for("the policy", lambda: not x.can_ping(a.ip, tries=1) and a.can_ping(b.ip, tries=1))
        v = trace(mixed, x.ref, a.ref, "tcp", "80")["verdict"]
        assert (v["allowed"], v["cause"], v["node"], v["agreed"]) == (False, "ingress-denied", "node1", True)
        assert "NetworkPolicy red/closed" in v["object"]
        v = trace(mixed, b.ref, a.ref, "tcp", "80")
        assert v["verdict"]["allowed"] and v["verdict"]["agreed"]
        steps = [(s["tableName"], s["object"]) for h in v["halves"] for s in h["switch"]["steps"]]
        assert ("tenet_classes", "pods selected by NetworkPolicy red/closed") in steps
        with Flows(mixed, "--dropped", "--node", "node1") as flows:
            wait_for("the watch", lambda: watched(mixed))
            assert not x.can_ping(a.ip, tries=1)
            e = wait_for("the drop", lambda: flows.find(source=x.ref, target=a.ref))
            assert e["cause"] == "ingress-denied" and e["object"] == "pods selected by NetworkPolicy red/closed"
            mixed.kubectl("create", "-f", "-", input=json.dumps({
                "apiVersion": "policy.networking.k8s.io/v1alpha1", "kind": "AdminNetworkPolicy", "metadata": {"name": "above"},
                "spec": {"priority": 1, "subject": {"namespaces": {}}, "ingress": [
                    {"action": "Pass", "from": [{"namespaces": {"matchLabels": {"no": "body"}}}]},
                    {"action": "Deny", "from": [{"namespaces": {}}], "ports": [{"portNumber": {"protocol": "UDP", "port": 99}}]}]}}))
            send = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (sys.argv[1], 99))"
            e = wait_for("the rule that drops", lambda: b.ns(["/usr/bin/python3", "-c", send, a.ip]) and
                         flows.find(source=b.ref, target=a.ref))
            assert e["cause"] == "ingress-denied" and e["object"] == "AdminNetworkPolicy above, ingress rule 2"
        entries = {i["key"]["address"]: i for i in maps(mixed, "node1", "classes")["items"]}
        assert "Pod red/red-1" in entries[a.ip]["object"] and "NetworkPolicy red/closed" in entries[a.ip]["object"]
        assert maps(mixed, "node1", "tracked")["entries"] > 0
        names = {n for n, m in maps(mixed, "node1").items() if m["entries"] > 0}
        assert names >= {"tenet_classes", "tenet_pairs", "tenet_port_sets", "tenet_tracked"}
        for name in ("pairs", "port_sets", "tracked", "policy"):
            assert "bytes" not in json.dumps(maps(mixed, "node1", name)["items"][:50])
        create("blue", "stay", {"policyTypes": ["Egress"]})
        y = mixed.by["blue/blue-2"]
        wait_for("the other policy", lambda: not x.can_ping(y.ip, tries=1))
        v = trace(mixed, x.ref, y.ref, "udp", "53")["verdict"]
        assert (v["allowed"], v["cause"], v["node"], v["agreed"]) == (False, "egress-denied", "node1", True)
        assert v["object"] == "pods selected by NetworkPolicy blue/stay"
    finally:
        mixed.kubectl("delete", "adminnetworkpolicy", "above", "--ignore-not-found")
        for ns, name in (("red", "closed"), ("blue", "stay")):
            mixed.kubectl("delete", "networkpolicy", "-n", ns, name, "--ignore-not-found")
        plugin(PLUGIN)
    wait_for("isolation", lambda: not x.can_ping(a.ip, tries=1) and a.can_ping(b.ip, tries=1))


# ---- what is refused ----

@contextlib.contextmanager
def stopped(lab, node):
    lab.cmd("node", "stop", node)
    try:
        yield pathlib.Path(lab.node(node)["config"])
    finally:
        lab.cmd("node", "start", node)


def links(lab, node):
    return lab.ns(node, ["ip", "-o", "-d", "link"]).stdout


# Runs a command for which bpf(2) fails with EPERM, as container runtimes have it.
WITHOUT_BPF = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
code = b"".join(struct.pack("HBBI", *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)))
buffer = ctypes.create_string_buffer(code, len(code))
program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_without_permission_it_says_what_is_missing_and_changes_nothing(mixed):
    """On the host of an agent that was stopped, whose links and pods stay as they are."""
    with stopped(mixed, "node1") as config:
        before = links(mixed, "node1")
        for how, said in ((["/usr/bin/python3", "-c", WITHOUT_BPF], "it needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"),
                          (["setpriv", "--bounding-set", "-sys_admin"], "missing privileges: CAP_SYS_ADMIN")):
            r = mixed.ns("node1", [*how, TENET, "node", "--config", config], check=False)
            assert r.returncode == 1 and said in r.stdout + r.stderr, r.stdout + r.stderr
        assert links(mixed, "node1") == before
        assert mixed.by["red/red-1"].can_ping(mixed.by["default/default-1"].ip)


def test_a_program_at_the_vxlan_port_is_said_and_left_alone(mixed):
    listen = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 4789)); print('up', flush=True); sys.stdin.read()"
    with stopped(mixed, "node2") as config:
        mixed.ns("node2", ["ip", "link", "del", "vxlan_tenet"])
        other = mixed.ns_popen("node2", ["/usr/bin/python3", "-c", listen], stdin=subprocess.PIPE)
        try:
            assert other.stdout.readline() == "up\n"
            before = links(mixed, "node2")
            r = mixed.ns("node2", [TENET, "node", "--config", config], check=False)
            assert r.returncode == 1 and "VXLAN port 4789 is taken by a UDP socket of another program" in r.stdout + r.stderr
            assert links(mixed, "node2") == before and other.poll() is None
        finally:
            other.communicate("")
    wait_for("packets", lambda: mixed.by["red/red-1"].can_ping(mixed.by["red/red-2"].ip, tries=1))


def test_what_does_not_fit_is_refused_counted_and_harms_nobody(mixed):
    """Maps with room for nine: pods, nodes and services beyond that."""
    room = 9
    boxes = [Sandbox(mixed, f"full{i}") for i in range(room - 3 + 1)]
    subnets, services = [f"ghost{i}" for i in range(6)], [f"more{i}" for i in range(room)]

    def refused(what):
        return int(metrics(mixed)[f'tenet_node_refused_total{{what="{what}"}}'])
    with configured(mixed, "node1", f"ebpf:\n  maxEntries: {room}\n"):
        try:
            for box in boxes[:-1]:
                box.add()
            assert maps(mixed, "node1")["tenet_pods"] == {"name": "tenet_pods", "type": "hash", "entries": room, "max": room}
            status, out = boxes[-1].call("ADD")
            assert status != 0 and f"maps of pods are full ({room} at most)" in json.dumps(out)
            assert refused("pods") == 1
            mixed.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
                {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "metadata": {"name": s}, "host": s,
                 "hostIP": f"192.0.2.{i + 1}", "subnet": f"10.128.{100 + 2 * i}.0/23"} for i, s in enumerate(subnets)]}))
            wait_for("nodes to be refused", lambda: refused("nodes") > 0)
            mixed.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
                {"apiVersion": "v1", "kind": "Service", "metadata": {"name": s, "namespace": "red"}, "spec": {"ports": [{"port": 80}]}}
                for s in services]}))
            wait_for("services to be refused", lambda: refused("services") > 0)
            log = mixed.agent_log("node1")
            assert "nodes that cannot be reached: the map is full" in log and "services do not all fit into the maps" in log
            a = mixed.by["red/red-1"]
            assert a.can_ping(mixed.by["default/default-1"].ip) and a.can_ping(mixed.by["red/red-2"].ip)
            assert a.can_ping(mixed.by["red/red-3"].ip) and not a.can_ping(mixed.by["blue/blue-1"].ip, tries=1)
            boxes[0].delete()  # There is room again.
            boxes[-1].add()
        finally:
            for box in boxes:
                box.remove()
            mixed.kubectl("delete", "hostsubnets", *subnets, "--ignore-not-found")
            mixed.kubectl("delete", "services", "-n", "red", *services, "--ignore-not-found")
    wait_for("room", lambda: maps(mixed, "node1")["tenet_pods"]["max"] == 65536)
