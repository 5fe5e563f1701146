# SPDX-License-Identifier: Apache-2.0
"""Random clusters: what packets do, what the model and the switch say (tenet trace), and what the registry's objects mean
must be one.  Each run is another one; the seed is printed, and TENET_RANDOM_SEED repeats it.  TENET_RANDOM_ROUNDS makes it
longer."""
import json
import os
import random

import pytest

from lab import TENET, run, wait_for
from netpol import PORTS, Cluster, admin, baseline, netpol

ROUNDS = int(os.environ.get("TENET_RANDOM_ROUNDS", 8))
TRACES = 8  # of each round
NODES = ("node1", "node2")


@pytest.fixture
def rng():
    seed = int(os.environ.get("TENET_RANDOM_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TENET_RANDOM_SEED={seed}")
    return random.Random(seed)


def traces_agree(cluster, rng, expected):
    """For some of what packets just did, the trace says it as well, and its model agrees with its switch."""
    for key in rng.sample(sorted(expected), TRACES):
        a, b, proto, port = key
        r = run([TENET, "trace", "--lab", cluster.lab.name, "-o", "json", a, b, proto, str(port)], check=False)
        verdict = json.loads(r.stdout)["verdict"]
        assert verdict["agreed"] and verdict["allowed"] == expected[key], (key, expected[key], verdict)


# ---- projects that join, part and become global ----

class Projects(Cluster):
    def expected(self, policies):
        ids = {n["netname"]: n["netid"] for n in self.lab.objects("netnamespaces")}
        reach = {(a.ref, b.ref): ids[a.project] == ids[b.project] or 0 in (ids[a.project], ids[b.project])
                 for a in self.pods for b in self.pods if a is not b}
        return {(a, b, proto, port): v for (a, b), v in reach.items() for proto in ("tcp", "udp", "sctp")
                for port in PORTS}


def test_projects(make_lab, rng):
    lab = make_lab("rndp", nodes=2, plugin="multitenant")
    names = [f"p{i}" for i in range(4)]
    c = Projects(lab, {n: {} for n in names})
    alone, shared = 0, 0
    try:
        for i in range(9):
            c.add(f"{rng.choice(names)}/x{i}", rng.choice(NODES), {})
        for _ in range(max(ROUNDS // 2, 3)):
            command = rng.choice(["join", "join", "isolate", "global"])
            some = rng.sample(names, rng.randint(1, 3))
            args = {"join": ["join-projects", f"--to={rng.choice(names)}", *some],
                    "isolate": ["isolate-projects", *some], "global": ["make-projects-global", *some]}[command]
            print(*args)
            run([TENET, "adm", "pod-network", *args, "--kubeconfig", lab.kubeconfig])
            wrong = c.check(None)
            assert not wrong, wrong[:6]
            expected = c.expected(None)
            traces_agree(c, rng, expected)
            alone += not all(expected.values())
            shared += any(expected.values())
        print(f"{alone} rounds with isolation, {shared} with communication")
    finally:
        c.close()
        lab.down(check=False)


# ---- policies ----

class Maker:
    """Random policies over the labels a=0..2 and b=0..1 of pods and namespaces."""

    def __init__(self, rng, cluster):
        self.rng, self.cluster = rng, cluster

    def chance(self, p):
        return self.rng.random() < p

    def labels(self):
        return {k: str(self.rng.randrange(n)) for k, n in (("a", 3), ("b", 2)) if self.chance(.8)}

    def selector(self):
        kind = self.rng.randrange(5)
        key = self.rng.choice("ab")
        values = [str(v) for v in self.rng.sample(range(3), self.rng.randint(1, 2))]
        if kind == 0:
            return {}
        if kind < 3:
            return {"matchLabels": {key: values[0]}}
        operator = self.rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        return {"matchExpressions": [{"key": key, "operator": operator,
                                      **({"values": values} if "In" in operator else {})}]}

    def block(self):
        ip = self.rng.choice(self.cluster.pods).ip
        return self.rng.choice([f"{ip}/32", f"{ip.rsplit('.', 1)[0]}.0/{self.rng.choice((23, 24, 28))}",
                                "10.128.0.0/14", "0.0.0.0/0", "192.0.2.0/24"])

    def peer(self):
        kind = self.rng.randrange(4)
        if kind == 0:
            return {"podSelector": self.selector()}
        if kind == 1:
            return {"namespaceSelector": self.selector()}
        if kind == 2:
            return {"namespaceSelector": self.selector(), "podSelector": self.selector()}
        holes = [f"{self.rng.choice(self.cluster.pods).ip}/32" for _ in range(self.rng.randrange(3))]
        return {"ipBlock": {"cidr": "10.128.0.0/14", "except": holes} if holes else {"cidr": self.block()}}

    def port(self):
        number = self.rng.choice((80, 81, 82))
        return self.rng.choice([
            {"port": number}, {"port": number, "protocol": self.rng.choice(("UDP", "SCTP"))},
            {"protocol": self.rng.choice(("TCP", "UDP", "SCTP"))},
            {"port": 1, "endPort": number, "protocol": self.rng.choice(("TCP", "UDP"))},
            {"port": self.rng.choice(("web", "alt", "none"))}, {"port": "dns", "protocol": "UDP"}])

    def some(self, make, most):
        return [make() for _ in range(self.rng.randint(0, most))]

    def rule(self, key):
        peers, ports = self.some(self.peer, 2), self.some(self.port, 2)
        if key == "to" and any(isinstance(p.get("port"), str) for p in ports):
            peers = [p for p in peers if "ipBlock" not in p]  # an address block has no names of ports
        return {**({key: peers} if peers else {}), **({"ports": ports} if ports else {})}

    def network(self, i):
        types = self.rng.choice((["Ingress"], ["Egress"], ["Ingress", "Egress"]))
        return netpol(f"n{i}", self.rng.choice(sorted(self.cluster.ns_labels)), self.selector(), types=types,
                      ingress=self.some(lambda: self.rule("from"), 2) if "Ingress" in types else None,
                      egress=self.some(lambda: self.rule("to"), 2) if "Egress" in types else None)

    def who(self):
        if self.chance(.5):
            return {"namespaces": self.selector()}
        return {"pods": {"namespaceSelector": self.selector(), "podSelector": self.selector()}}

    def admin_rule(self, key, actions):
        number = self.rng.choice((80, 81))
        ports = self.rng.choice([None, None, [{"portNumber": {"protocol": "TCP", "port": number}}],
                                 [{"portRange": {"protocol": "UDP", "start": 1, "end": number}}],
                                 [{"namedPort": self.rng.choice(("web", "dns"))}]])
        peers = [self.who() for _ in range(self.rng.randint(1, 2))]
        named = ports and "namedPort" in ports[0]  # networks have no names of ports
        if key == "to" and not named and self.chance(.3):
            peers.append({"networks": [self.block()]})
        return {"action": self.rng.choice(actions), key: peers, **({"ports": ports} if ports else {})}

    def admin_rules(self, actions):
        return {way: self.some(lambda: self.admin_rule(key, actions), 2)
                for way, key in (("ingress", "from"), ("egress", "to"))}

    def policies(self):
        out = [self.network(i) for i in range(self.rng.randint(1, 5))]
        for i in range(self.rng.choice((0, 0, 1, 2))):
            out.append(admin(f"a{i}", i * 7, self.who(), **self.admin_rules(("Allow", "Deny", "Pass"))))
        if self.chance(.3):
            out.append(baseline(self.who(), **self.admin_rules(("Allow", "Deny"))))
        return out


def test_policies(make_lab, rng):
    lab = make_lab("rndn", nodes=2, plugin="networkpolicy")
    c = Cluster(lab, {})
    m = Maker(rng, c)
    denied = allowed = 0
    try:
        for name in "uvw":
            lab.project(name)
            c.label_ns(name, m.labels())
        for i in range(8):
            tcp = rng.sample((80, 81), 2)
            c.add(f"{rng.choice('uvw')}/x{i}", rng.choice(NODES), m.labels(),
                  (("web", tcp[0], "tcp"), ("alt", tcp[1], "tcp"), ("dns", rng.choice((80, 81)), "udp")))
        for _ in range(ROUNDS):
            policies = m.policies()
            for p in policies:
                c.policy(p)
            if m.chance(.5):
                c.label_pod(rng.choice(c.pods), m.labels())
            if m.chance(.5):
                c.label_ns(rng.choice("uvw"), m.labels())
            wrong = c.check(policies)
            assert not wrong, json.dumps([policies, c.ns_labels, {p.ref: p.labels for p in c.pods}, wrong[:6]])
            expected = c.expected(policies)
            traces_agree(c, rng, expected)
            allowed += sum(expected.values())
            denied += len(expected) - sum(expected.values())
            for p in policies:
                c.unpolicy(p)
        wait_for("no policy", lambda: not c.check([], deadline=1))
        print(f"{allowed} kinds of packets allowed, {denied} denied")
        assert allowed and denied
    finally:
        c.close()
        lab.down(check=False)
