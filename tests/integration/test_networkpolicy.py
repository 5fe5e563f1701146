# SPDX-License-Identifier: Apache-2.0
"""Network policy on real packets: every pod to every pod on TCP, UDP and SCTP, two ports each, under some hundred
policies, in the manner of the upstream conformance suite (namespaces x, y, z with pods a, b, c)."""
import hashlib
import json
import os
import random
import subprocess
import urllib.error

import pytest

from lab import CNI, TENET, environment, run, wait_for
from netpol import Cluster, admin, baseline, expr, labels, netpol
from test_explain import drops

NODES = {"x/a": "node1", "x/b": "node1", "x/c": "node2", "y/a": "node1", "y/b": "node2", "y/c": "node2",
         "z/a": "node1", "z/b": "node2", "z/c": "node2"}
SERVES = (("web", 80, "tcp"), ("dns", 80, "udp"), ("sig", 80, "sctp"), ("alt", 81, "tcp"))
SWAPPED = (("web", 81, "tcp"), ("dns", 81, "udp"), ("sig", 81, "sctp"), ("alt", 80, "tcp"))


@pytest.fixture(scope="module")
def cluster(make_lab):
    lab = make_lab("np", nodes=2, plugin="networkpolicy")
    c = Cluster(lab, {"x": {"ns": "x"}, "y": {"ns": "y", "team": "ops"}, "z": {"ns": "z", "team": "ops"}})
    try:
        for ref, node in NODES.items():
            c.add(ref, node, {"pod": ref[-1]}, SWAPPED if ref == "y/b" else SERVES)
        yield c
    finally:
        c.close()
        lab.down(check=False)


A, B, C = labels(pod="a"), labels(pod="b"), labels(pod="c")
X, Y, Z = labels(ns="x"), labels(ns="y"), labels(ns="z")


def port(number=None, proto=None, end=None):
    return {k: v for k, v in (("port", number), ("protocol", proto), ("endPort", end)) if v is not None}


def pods(selector):
    return {"podSelector": selector}


def spaces(selector, of=None):
    return {"namespaceSelector": selector, **({"podSelector": of} if of is not None else {})}


def block(cidr, *excepts):
    return {"ipBlock": {"cidr": cidr, **({"except": list(excepts)} if excepts else {})}}


def cases(c):
    ip = {p.ref: p.ip for p in c.pods}
    one = f"{ip['y/a']}/32"
    rules = {
        "from-pods": [{"from": [pods(B)]}],
        "from-namespace": [{"from": [spaces(Y)]}],
        "from-pods-of-namespace": [{"from": [spaces(Y, A)]}],
        "from-pods-or-namespace": [{"from": [spaces(Y), pods(B)]}],
        "from-any-namespace": [{"from": [spaces({})]}],
        "from-own-namespace": [{"from": [pods({})]}],
        "from-team-expression": [{"from": [spaces(expr("team", "In", "ops", "dev"), expr("pod", "NotIn", "a"))]}],
        "from-namespace-by-name": [{"from": [spaces(labels(**{"kubernetes.io/metadata.name": "z"}))]}],
        "from-without-team": [{"from": [spaces(expr("team", "DoesNotExist"), expr("pod", "Exists"))]}],
        "from-block": [{"from": [block(one)]}],
        "from-block-except": [{"from": [block("10.128.0.0/14", one)]}],
        "from-block-except-within": [{"from": [block("10.128.0.0/23", one), block(one)]}],
        "from-everywhere-by-block": [{"from": [block("0.0.0.0/0")]}],
        "from-outside-block": [{"from": [block("192.0.2.0/24")]}],
        "from-block-of-ipv6": [{"from": [block("2001:db8::/32")]}],
        "port-tcp": [{"ports": [port(80)]}],
        "port-udp": [{"ports": [port(81, "UDP")]}],
        "port-sctp": [{"ports": [port(80, "SCTP")]}],
        "protocol-only": [{"ports": [port(proto="UDP")]}],
        "port-range": [{"ports": [port(80, end=90), port(60, "SCTP", 80)]}],
        "port-range-off": [{"ports": [port(82, end=65535), port(1, "UDP", 79)]}],
        "port-named": [{"ports": [port("web"), port("sig", "SCTP")]}],
        "port-named-of-other-protocol": [{"ports": [port("dns")]}],
        "port-named-unknown": [{"ports": [port("nobody")]}],
        "peer-and-port": [{"from": [spaces(Z)], "ports": [port(80), port(81, "SCTP")]}],
        "peer-and-named": [{"from": [pods(C), spaces(Y, B)], "ports": [port("dns", "UDP")]}],
        "two-rules": [{"from": [pods(B)], "ports": [port(80)]}, {"from": [spaces(Z)], "ports": [port(81, "UDP")]}],
        "allow-all": [{}],
        "deny-all": [],
    }
    out = {}
    for name, r in rules.items():
        other = [{("to" if k == "from" else k): v for k, v in rule.items()} for rule in r]
        out[f"ingress-{name}"] = [netpol("p", "x", A, ingress=r)]
        out[f"egress-{name}"] = [netpol("p", "x", A, egress=other, types=["Egress"])]
    out["both-ways"] = [netpol("p", "x", A, ingress=rules["from-namespace"], egress=[{"to": [spaces(Z)]}])]
    out["every-pod-of-a-namespace"] = [netpol("p", "y", {}, ingress=rules["from-own-namespace"])]
    out["types-say-more-than-rules"] = [netpol("p", "x", B, ingress=[{}], types=["Ingress", "Egress"])]
    out["egress-rules-without-the-type"] = [netpol("p", "x", B, egress=[{"to": [pods(A)]}], types=["Ingress"])]
    out["default-type-is-ingress"] = [netpol("p", "z", {}, egress=[])]
    out["two-policies-add-up"] = [netpol("p", "x", A, ingress=rules["from-pods"]),
                                  netpol("q", "x", {}, ingress=rules["peer-and-port"])]
    out["deny-in-three-namespaces"] = [netpol("p", ns, {}, types=["Ingress", "Egress"]) for ns in "xyz"]
    out["same-namespace-only"] = [netpol("p", ns, {}, ingress=[{"from": [pods({})]}], egress=[{"to": [pods({})]}])
                                  for ns in "xyz"]
    every = {"namespaces": {}}
    out["admin-deny"] = [admin("p", 5, {"namespaces": X}, [{"action": "Deny", "from": [{"namespaces": Y}]}])]
    out["admin-deny-goes-before-policy"] = out["admin-deny"] + [netpol("p", "x", {}, ingress=[{}])]
    out["admin-allow-goes-before-policy"] = [
        admin("p", 5, {"namespaces": X}, [{"action": "Allow", "from": [{"namespaces": Y}],
                                           "ports": [{"portNumber": {"protocol": "UDP", "port": 80}}]}]),
        netpol("p", "x", {}, types=["Ingress"])]
    out["admin-pass-leaves-it-to-policy"] = [
        admin("a", 1, {"namespaces": X}, [{"action": "Pass", "from": [{"namespaces": Y}]}]),
        admin("b", 2, {"namespaces": X}, [{"action": "Deny", "from": [every]}]),
        netpol("p", "x", A, ingress=[{"from": [spaces(Y, A)]}])]
    out["admin-order-of-rules-and-priorities"] = [
        admin("late", 9, every, [{"action": "Deny", "from": [every]}]),
        admin("early", 0, {"pods": {"namespaceSelector": {}, "podSelector": A}},
              [{"action": "Deny", "from": [{"pods": {"namespaceSelector": Z, "podSelector": B}}]},
               {"action": "Allow", "from": [{"namespaces": Z}]}])]
    out["admin-egress-networks-and-named-ports"] = [
        admin("p", 3, {"namespaces": Z},
              egress=[{"action": "Allow", "to": [{"namespaces": X}], "ports": [{"namedPort": "alt"}]},
                      {"action": "Deny", "to": [{"networks": [one, "10.128.2.0/23"]}],
                       "ports": [{"portRange": {"protocol": "TCP", "start": 1, "end": 80}}]}])]
    out["baseline"] = [baseline({"namespaces": Y}, [{"action": "Allow", "from": [{"namespaces": X}]},
                                                    {"action": "Deny", "from": [every]}])]
    out["baseline-yields-to-policy"] = out["baseline"] + [netpol("p", "y", A, ingress=[{"from": [spaces(Z)]}])]
    out["baseline-egress"] = [baseline({"pods": {"namespaceSelector": X, "podSelector": A}},
                                       egress=[{"action": "Deny", "to": [{"namespaces": Y}]}])]
    rng = random.Random(4)
    flat = [r for rr in rules.values() for r in rr]
    for i in range(32):
        some = []
        for k in range(rng.randint(1, 4)):
            chosen = rng.sample(flat, rng.randint(0, 3))
            away = [{("to" if key == "from" else key): v for key, v in r.items()} for r in rng.sample(flat, 2)]
            some.append(netpol(f"p{k}", rng.choice("xyz"), rng.choice([{}, A, B, C, expr("pod", "NotIn", "a")]),
                               ingress=chosen, egress=away if rng.random() < .5 else None,
                               types=rng.choice([["Ingress"], ["Ingress", "Egress"]])))
        out[f"random-{i}"] = some
    return out


def enforce(c, policies):
    for p in policies:
        c.policy(p)


def lift(c, policies):
    for p in policies:
        c.unpolicy(p)


def judge_cases(cluster, chosen):
    """Each case is enforced, compared with the model on every pair of pods, and lifted."""
    failed = {}
    for name, policies in chosen.items():
        if len(failed) >= 5:
            break
        enforce(cluster, policies)
        try:
            wrong = cluster.check(policies)
        finally:
            lift(cluster, policies)
        if wrong:
            failed[name] = wrong[:6]
    assert not failed, json.dumps(failed, indent=1)
    assert not cluster.check([])


def test_truth_tables(cluster):
    every = cases(cluster)
    assert len(every) >= 100
    judge_cases(cluster, every)


def test_changes_take_effect_on_running_pods(cluster):
    p = netpol("p", "x", A, ingress=[{"from": [spaces(Y)]}])
    path = "/apis/networking.k8s.io/v1/namespaces/x/networkpolicies/p"
    a, y = cluster.pod("x/a"), cluster.pod("y/a")
    cluster.policy(p)
    try:
        assert not cluster.check([p])
        p["spec"]["ingress"] = [{"from": [spaces(Z)], "ports": [port(80, "UDP")]}]
        cluster.call("PATCH", path, {"spec": {"ingress": p["spec"]["ingress"]}}, "application/merge-patch+json")
        assert not cluster.check([p])
        cluster.label_pod(a, {"pod": "z"})  # selected no more
        assert not cluster.check([p])
        cluster.label_pod(a, {"pod": "a"})
        cluster.label_ns("y", {"ns": "z"})  # a peer now
        assert not cluster.check([p])
        cluster.label_ns("y", {"ns": "y", "team": "ops"})
        assert not cluster.check([p])
        # Its named port moves.
        q = netpol("q", "x", A, ingress=[{"ports": [port("web")]}])
        cluster.policy(q)
        assert not cluster.check([p, q])
        lift(cluster, [q])
    finally:
        lift(cluster, [p])
    assert y.labels == {"pod": "a"}
    assert not cluster.check([])


STREAM = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
s.settimeout(2)
print("open", flush=True)
for line in sys.stdin:
    try:
        s.sendall(b"x")
        print("answered" if s.recv(1) else "closed", flush=True)
    except OSError as e:
        print("silent", flush=True)
"""
ECHO = """
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 7777)); s.listen(8)
print("ready", flush=True)
while True:
    c, _ = s.accept()
    import threading
    def serve(c):
        while True:
            d = c.recv(64)
            if not d: return
            c.sendall(d)
    threading.Thread(target=serve, args=(c,), daemon=True).start()
"""


@pytest.mark.parametrize("client,server", [("y/a", "x/a"), ("y/b", "x/a")])
def test_open_connection_follows_the_policy(cluster, client, server):
    """Allowed before and after: not disturbed.  Denied: its packets stop both ways, and go on when allowed again."""
    src, dst = cluster.pod(client), cluster.pod(server)
    echo = dst.popen(["/usr/bin/python3", "-c", ECHO])
    stream = None
    p = netpol("p", "x", A, ingress=[{"from": [spaces(Y)]}])
    try:
        assert echo.stdout.readline().strip() == "ready"
        stream = src.popen(["/usr/bin/python3", "-c", STREAM, dst.ip, 7777], stdin=subprocess.PIPE)
        assert stream.stdout.readline().strip() == "open"

        def say():
            stream.stdin.write("\n")
            stream.stdin.flush()
            return stream.stdout.readline().strip()

        assert say() == "answered"
        cluster.policy(p)
        assert [say() for _ in range(20)] == ["answered"] * 20
        deny = admin("deny", 1, {"namespaces": X}, [{"action": "Deny", "from": [{"namespaces": Y}]}])
        cluster.policy(deny)
        try:
            wait_for("silence", lambda: say() == "silent")
        finally:
            lift(cluster, [deny])
        wait_for("answers again", lambda: say() == "answered")
        lift(cluster, [p])
        p = None
        assert say() == "answered"
    finally:
        if p:
            lift(cluster, [p])
        for proc in (echo, stream):
            if proc:
                proc.kill()
                proc.wait()


FRAGMENTS = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((sys.argv[1], 7070))
if sys.argv[2] == "known":
    s.send(b"x")
    s.recv(1)
for size in (3000, 9000):
    s.send(b"x" * size)
    assert len(s.recv(65536)) == size
print("all")
"""
UDP_ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 7070))
print("ready", flush=True)
while True:
    d, a = s.recvfrom(65536)
    s.sendto(d, a)
"""


@pytest.mark.parametrize("client", ["y/a", "y/b"])
def test_fragments_of_what_a_port_allows_pass(cluster, client):
    """And so do those of the answers, which nothing but the connection allows; where Open vSwitch's own tracker has it, once a
    whole datagram has passed (docs/policy.md)."""
    a, src = cluster.pod("x/a"), cluster.pod(client)
    p = netpol("p", "x", A, ingress=[{"from": [spaces(Y)], "ports": [port(7070, "UDP")]}], egress=[],
               types=["Ingress", "Egress"])
    known = "known" if any(cluster.lab.has_ovs(pod.node) for pod in (a, src)) else "new"
    echo = a.popen(["/usr/bin/python3", "-c", UDP_ECHO])
    cluster.policy(p)
    try:
        assert echo.stdout.readline().strip() == "ready"
        assert not cluster.check([p])
        assert src.ns(["/usr/bin/python3", "-c", FRAGMENTS, a.ip, known]).stdout.strip() == "all"
    finally:
        lift(cluster, [p])
        echo.kill()
        echo.wait()


def test_own_node_reaches_isolated_pods_and_gets_answers(cluster):
    p = netpol("p", "x", {}, types=["Ingress", "Egress"])
    cluster.policy(p)
    try:
        assert not cluster.check([p])
        a, c = cluster.pod("x/a"), cluster.pod("x/c")
        def ping(node, pod):
            return cluster.lab.ns(node, ["ping", "-n", "-q", "-c1", "-W2", pod.ip], check=False).returncode == 0
        assert ping("node1", a) and ping("node2", c)
        assert not ping("node2", a)  # another node is nobody special
        assert not a.can_ping("198.51.100.10", tries=1)
    finally:
        lift(cluster, [p])


def test_outside_is_judged_by_block(cluster):
    a = cluster.pod("x/a")
    assert a.can_ping("198.51.100.10")
    p = netpol("p", "x", A, egress=[{"to": [block("198.51.100.0/24")]}], types=["Egress"])
    cluster.policy(p)
    try:
        assert not cluster.check([p])
        assert a.can_ping("198.51.100.10")
    finally:
        lift(cluster, [p])


def test_trace_names_the_rule_that_decides(cluster):
    """On one node and across two, with either datapath; and what it says is what packets do."""
    policies = [netpol("only-y", "x", {}, ingress=[{"from": [spaces(Z)], "ports": [port(9)]},
                                                   {"from": [spaces(Y)], "ports": [port(80)]}], egress=[],
                       types=["Ingress", "Egress"]),
                admin("first", 3, {"namespaces": X}, [{"action": "Deny", "from": [{"pods": {"namespaceSelector": Y, "podSelector": C}}],
                                                       "name": "no-c"}])]
    allows, selected, denies = "NetworkPolicy x/only-y, ingress rule 2", "pods selected by NetworkPolicy x/only-y", 'rule 1 "no-c"'
    enforce(cluster, policies)
    try:
        assert not cluster.check(policies)
        for src, dst, number, cause, named in (
                ("y/a", "x/a", 80, None, allows),
                ("y/b", "x/a", 80, None, allows),
                ("y/b", "x/c", 81, "ingress-denied", selected),
                ("y/c", "x/b", 80, "ingress-denied", denies),
                ("z/a", "x/b", 80, "ingress-denied", selected),
                ("x/a", "y/b", 80, "egress-denied", selected)):
            argv = [TENET, "trace", "--lab", cluster.lab.name, src, dst, "tcp", str(number)]
            r = run([*argv, "-o", "json"], check=False)
            t = json.loads(r.stdout)
            said = [p for h in t["halves"] for p in h["policies"]]
            judge = next((p for p in said if named in p.get("object", "")), None)
            assert judge, (src, dst, number, said)
            assert judge["allowed"] == (cause is None) and all(p["agreed"] for p in said), (src, dst, number, said)
            assert t["verdict"]["allowed"] == (cause is None) == (r.returncode == 0), t["verdict"]
            assert t["verdict"].get("cause") == cause and t["verdict"]["agreed"], t["verdict"]
            assert not cause or named in t["verdict"]["object"]
            text = run(argv, check=False).stdout
            assert f"{judge['direction']} policies {'deny' if cause else 'allow'} it: {judge['object']} ({judge['meaning']})\n" in text
        wait_for("the counters of what was denied", lambda: all(
            any(drops(cluster.lab, n["name"])[cause] for n in cluster.lab.status()["nodes"])
            for cause in ("ingress-denied", "egress-denied")))
    finally:
        lift(cluster, policies)


def test_add_is_never_reachable_before_its_policy(cluster):
    """A flood at the address that the next pod gets: with the policy there first, not one packet arrives."""
    lab = cluster.lab
    p = netpol("p", "z", labels(role="late"), types=["Ingress"])
    cluster.policy(p)
    src = cluster.pod("x/a")
    probe = lab.pod("z/next", "node1", {"role": "late"})
    net = probe.ip.rsplit(".", 1)[0]
    last = int(probe.ip.rsplit(".", 1)[1])
    lab.delete_pod("z/next")
    code = ("import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\nprint('go',flush=True)\n"
            f"while True:\n  for i in range({last},{last}+12):\n    s.sendto(b'x',('{net}.%d'%i,9))\n  time.sleep(0.002)\n")
    flood = src.popen(["/usr/bin/python3", "-c", code])
    try:
        assert flood.stdout.readline().strip() == "go"
        for i in range(8):
            pod = lab.pod(f"z/late{i}", "node1", {"role": "late"})
            assert last <= int(pod.ip.rsplit(".", 1)[1]) < last + 12
            received = pod.ns(["cat", "/proc/net/snmp"]).stdout
            udp = dict(zip(*[line.split()[1:] for line in received.splitlines() if line.startswith("Udp:")]))
            assert udp["InDatagrams"] == "0" and udp["NoPorts"] == "0", udp
            lab.delete_pod(f"z/late{i}")
        # The flood is one: without the policy it arrives.
        lift(cluster, [p])
        pod = lab.pod("z/seen", "node1", {"role": "late"})
        wait_for("a datagram", lambda: "Udp: 0 0 0" not in pod.ns(["cat", "/proc/net/snmp"]).stdout)
        lab.delete_pod("z/seen")
    finally:
        flood.kill()
        flood.wait()


def test_add_waits_for_the_pods_object_and_fails_closed(cluster):
    """A runtime that is faster than the registry gets an error that says why, and nothing is left."""
    lab = cluster.lab
    run(["ip", "netns", "add", f"tenet-{lab.name}-ghost"])
    try:
        socket_path = run(["find", f"/run/tenet/lab/{lab.name}/nodes/node1", "-name", "cni.sock"]).stdout.split()[0]
        config = json.dumps({"cniVersion": "1.0.0", "name": "tenet", "type": "tenet-cni", "socket": socket_path})
        env = dict(environment(), CNI_COMMAND="ADD", CNI_CONTAINERID="ghost", CNI_IFNAME="eth0",
                   CNI_NETNS=f"/run/netns/tenet-{lab.name}-ghost", CNI_PATH=os.path.dirname(TENET),
                   CNI_ARGS="K8S_POD_NAMESPACE=x;K8S_POD_NAME=ghost")
        r = run([CNI], check=False, input=config, env=env)
        assert r.returncode != 0
        error = json.loads(r.stdout)
        assert error["code"] == 11 and "x/ghost" in error["details"], error
    finally:
        run(["ip", "netns", "delete", f"tenet-{lab.name}-ghost"])


def line_sum(text):
    """FNV-1a, by which an export knows its lines."""
    h = 0xcbf29ce484222325
    for b in text.encode():
        h = (h ^ b) * 0x100000001b3 % (1 << 64)
    return f"{h:016x}"


def store(lab, key, obj):
    """As an older version may have left it: written past the API, by an export that gets one object more."""
    lab.cmd("master", "stop")
    try:
        db = run(["find", f"/run/tenet/lab/{lab.name}/master", "-name", "*.db"]).stdout.split()[0]
        exported = run([TENET, "store", "export", "-", "--storage-path", db]).stdout.splitlines()
        head, items = json.loads(exported[0]), {json.loads(x)["key"]: x for x in exported[1:-1]}
        value, revision = json.dumps(obj), head["revision"]
        items[key] = json.dumps({"key": key, "revision": revision, "value": value,
                                 "sum": line_sum(f"{key}\n{revision}\n{value}")}, separators=(",", ":"))
        lines = [json.dumps({**head, "keys": len(items)}, separators=(",", ":")), *(items[k] for k in sorted(items))]
        text = "".join(x + "\n" for x in lines)
        end = {"end": True, "keys": len(items), "sha256": hashlib.sha256(text.encode()).hexdigest()}
        run([TENET, "store", "import", "-", "--force", "--storage-path", db], input=text + json.dumps(end) + "\n")
    finally:
        lab.cmd("master", "start")


def test_stored_policy_that_cannot_be_compiled_isolates_and_is_told(cluster):
    lab = cluster.lab
    key = "/registry/networking.k8s.io/networkpolicies/x/old"
    bad = netpol("old", "x", A, ingress=[{"from": [{"podSelector": {"matchExpressions": [{"key": "pod"}]}}]}],
                 types=["Ingress"])
    meta = {"uid": "6a1f0c0e-0000-4000-8000-000000000001", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    store(lab, key, {**bad, "apiVersion": "networking.k8s.io/v1", "metadata": {**bad["metadata"], **meta}})
    meant = netpol("old", "x", A, types=["Ingress"])
    try:
        assert not cluster.check([meant], deadline=60)
        event = wait_for("an Event", lambda: [e for e in lab.objects("events", "-n", "x")
                                              if e["reason"] == "PolicyNotEnforceable"])[0]
        assert event["involvedObject"]["name"] == "old" and "ingress[0]" in event["message"], event
        assert "policy cannot be compiled" in lab.agent_log("node1")
    finally:
        cluster.unpolicy(meant)
    assert not cluster.check([])


def test_invalid_policy_is_refused_by_the_api(cluster):
    bad = netpol("bad", "x", A, ingress=[{"ports": [port(90000)]}])
    with pytest.raises(urllib.error.HTTPError) as e:
        cluster.policy(bad)
    status = json.load(e.value)
    assert status["code"] == 422 and status["details"]["causes"][0]["field"] == "spec.ingress[0].ports[0].port"


@pytest.mark.ovs_only("flows are counted")
def test_flows_are_a_sum(cluster):
    """Two policies with the same selectors share what they have in common, and nothing is left after them."""
    lab = cluster.lab

    def policy_flows():
        return [f for f in lab.flows("node1") if f.startswith(tuple(f"cookie=0x{k}0000" for k in "5789"))
                or f.startswith("cookie=0x60")]

    assert wait_for("no flow of policy", lambda: not policy_flows()) is True
    p = netpol("p", "x", {}, ingress=[{"from": [spaces({})], "ports": [port(80), port(81)]}])
    cluster.policy(p)
    assert not cluster.check([p])
    n = len(policy_flows())
    # Three pods here and one class of them, nine peers and one class, two ports, one rule, one isolation.
    assert n <= 3 + 1 + 9 + 1 + 2 + 1 + 1
    q = netpol("q", "x", {}, ingress=[{"from": [spaces({})], "ports": [port(80), port(81)]}])
    cluster.policy(q)
    wait_for("the second policy", lambda: len(policy_flows()) == n + 1)
    lift(cluster, [p, q])
    wait_for("no flow of policy", lambda: not policy_flows())


def test_restart_of_the_agent_changes_nothing(cluster):
    lab = cluster.lab
    policies = [netpol("p", "x", A, ingress=[{"from": [spaces(Y)], "ports": [port("web"), port(1, "UDP", 80)]}]),
                netpol("q", "x", {}, egress=[{"to": [block("10.128.0.0/14", "10.128.2.0/24")]}, {"to": [spaces({})]}]),
                admin("r", 7, {"namespaces": {}}, [{"action": "Pass", "from": [{"namespaces": X}]}])]
    enforce(cluster, policies)
    try:
        assert not cluster.check(policies)
        before = lab.rules("node1")
        dst = cluster.pod("x/a")
        flood = cluster.pod("y/a").popen(["ping", "-n", "-q", "-i", "0.005", "-c", "400", dst.ip])
        lab.cmd("node", "kill", "node1")
        lab.cmd("node", "start", "node1")
        wait_for("the agent", lambda: lab.node("node1")["ready"])
        out = flood.communicate(timeout=60)[0]
        # Ports are asked for, and ICMP has none: nothing passed before, nothing may pass now.
        assert " 0 received" in out, out
        assert lab.rules("node1") == before
        assert not cluster.check(policies)
    finally:
        lift(cluster, policies)


def test_kubectl_lists_policies(cluster):
    p = netpol("shown", "x", A, ingress=[{}])
    cluster.policy(p)
    try:
        rows = cluster.lab.kubectl("get", "netpol", "-n", "x").stdout.split("\n")
        assert rows[0].split() == ["NAME", "POD-SELECTOR", "AGE"] and rows[1].split()[:2] == ["shown", "pod=a"]
        env = dict(environment(), KUBECONFIG=cluster.lab.kubeconfig)
        assert "shown" in run([TENET, "get", "netpol", "-n", "x"], env=env).stdout
        assert "shown" in cluster.lab.kubectl("describe", "netpol", "shown", "-n", "x").stdout
    finally:
        lift(cluster, [p])
