# SPDX-License-Identifier: Apache-2.0
"""Truth tables of network policy: what should reach what, worked out from the policies' objects, and what does.

The rules here are a third writing of the API's semantics, after the compiler and the model, over objects as a user
writes them.
"""
import ipaddress
import itertools
import json
import pathlib
import time
import urllib.error
import urllib.request

PORTS = (80, 81)
PROTOCOLS = ("tcp", "udp", "sctp")
APIS = {"NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
        "AdminNetworkPolicy": "/apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies",
        "BaselineAdminNetworkPolicy": "/apis/policy.networking.k8s.io/v1alpha1/baselineadminnetworkpolicies"}


# ---- semantics ----

def selects(selector, labels):
    for k, v in (selector.get("matchLabels") or {}).items():
        if labels.get(k) != v:
            return False
    for x in selector.get("matchExpressions") or []:
        has, listed = x["key"] in labels, labels.get(x["key"]) in (x.get("values") or [])
        if {"In": not listed, "NotIn": listed, "Exists": not has, "DoesNotExist": has}[x["operator"]]:
            return False
    return True


def within(ip, cidr):
    return ipaddress.ip_address(ip) in ipaddress.ip_network(cidr, strict=False)


def peer_is(cluster, peer, own_ns, pod):
    if "ipBlock" in peer:
        block = peer["ipBlock"]
        return within(pod.ip, block["cidr"]) and not any(within(pod.ip, e) for e in block.get("except", []))
    if "networks" in peer:
        return any(within(pod.ip, n) for n in peer["networks"])
    if "namespaces" in peer:
        return selects(peer["namespaces"], cluster.ns_labels[pod.project])
    peer = peer.get("pods", peer)
    if "namespaceSelector" in peer:
        inside = selects(peer["namespaceSelector"], cluster.ns_labels[pod.project])
    else:
        inside = pod.project == own_ns
    return inside and selects(peer.get("podSelector", {}), pod.labels)


def port_is(port, dst, proto, number):
    if "namedPort" in port or isinstance(port.get("port"), str):
        name = port.get("namedPort", port.get("port"))
        wanted = None if "namedPort" in port else port.get("protocol", "TCP").lower()
        return any(n == name and p == proto and k == number and wanted in (None, p) for n, k, p in dst.ports)
    if "portNumber" in port or "portRange" in port:
        p = port.get("portNumber") or port["portRange"]
        first, last = (p["port"], p["port"]) if "port" in p else (p["start"], p["end"])
    else:
        p, first = port, port.get("port")
        last = port.get("endPort", first)
    return p.get("protocol", "TCP").lower() == proto and (first is None or first <= number <= last)


def rule_is(cluster, rule, key, own_ns, other, dst, proto, number):
    peers, ports = rule.get(key) or [], rule.get("ports") or []
    return ((not peers or any(peer_is(cluster, p, own_ns, other) for p in peers)) and
            (not ports or any(port_is(p, dst, proto, number) for p in ports)))


def one_end_allows(cluster, policies, way, subject, other, dst, proto, number):
    key = "to" if way == "egress" else "from"

    def of(kind):
        return [p for p in policies if p["kind"] == kind]

    def first(p):
        spec = p["spec"]
        if not peer_is(cluster, spec["subject"], None, subject):
            return None
        return next((r["action"] for r in spec.get(way) or []
                     if rule_is(cluster, r, key, None, other, dst, proto, number)), None)

    for p in sorted(of("AdminNetworkPolicy"), key=lambda p: (p["spec"]["priority"], p["metadata"]["name"])):
        action = first(p)
        if action in ("Allow", "Deny"):
            return action == "Allow"
        if action == "Pass":
            break
    isolated = False
    for p in of("NetworkPolicy"):
        spec, ns = p["spec"], p["metadata"]["namespace"]
        types = spec.get("policyTypes") or (["Ingress"] + (["Egress"] if spec.get("egress") else []))
        if way.capitalize() not in types or subject.project != ns or not selects(spec["podSelector"], subject.labels):
            continue
        isolated = True
        if any(rule_is(cluster, r, key, ns, other, dst, proto, number) for r in spec.get(way) or []):
            return True
    if isolated:
        return False
    return all(first(p) != "Deny" for p in of("BaselineAdminNetworkPolicy"))


def allowed(cluster, policies, a, b, proto, number):
    return (one_end_allows(cluster, policies, "egress", a, b, b, proto, number) and
            one_end_allows(cluster, policies, "ingress", b, a, b, proto, number))


# ---- a cluster with a prober in each pod ----

class Cluster:
    def __init__(self, lab, namespaces):
        """'namespaces': {name: labels}; pods are added by add()."""
        self.lab, self.pods, self.probers, self.round = lab, [], {}, 0
        self.ns_labels = {}
        self.url = json.loads(lab.kubectl("config", "view", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]
        for name, labels in namespaces.items():
            lab.project(name)
            self.label_ns(name, labels)

    def call(self, method, path, obj=None, kind="application/json"):
        data = json.dumps(obj).encode() if obj is not None else None
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=30) as r:
            return json.load(r)

    def label_ns(self, name, labels):
        meta = {"labels": {**{k: None for k in self.ns_labels.get(name, {})}, **labels}}
        self.call("PATCH", f"/api/v1/namespaces/{name}", {"metadata": meta}, "application/merge-patch+json")
        self.ns_labels[name] = {**labels, "kubernetes.io/metadata.name": name}

    def label_pod(self, pod, labels):
        meta = {"labels": {**{k: None for k in pod.labels}, **labels}}
        self.call("PATCH", f"/api/v1/namespaces/{pod.project}/pods/{pod.name}", {"metadata": meta},
                  "application/merge-patch+json")
        pod.labels = labels

    def add(self, ref, node, labels, ports=()):
        """'ports': (name, number, protocol)."""
        pod = self.lab.pod(ref, node, labels, [f"{n}={k}/{p.upper()}" for n, k, p in ports])
        pod.labels, pod.ports = labels, list(ports)
        self.pods.append(pod)
        self.start_prober(pod)
        return pod

    def start_prober(self, pod):
        import subprocess
        script = pathlib.Path(__file__).parent / "prober.py"
        p = pod.popen(["/usr/bin/python3", script, len(self.probers)], stdin=subprocess.PIPE, stderr=None)
        assert p.stdout.readline().strip() == "ready"
        self.probers[pod.ref] = p

    def remove(self, pod):
        self.probers.pop(pod.ref).kill()
        self.pods.remove(pod)
        self.lab.delete_pod(pod.ref)

    def close(self):
        for p in self.probers.values():
            p.kill()
            p.wait()

    def pod(self, ref):
        return next(p for p in self.pods if p.ref == ref)

    def policy(self, p):
        ns = p["metadata"].get("namespace")
        self.call("POST", APIS[p["kind"]].format(ns=ns), {**p, "apiVersion": api_version(p["kind"])})

    def unpolicy(self, p):
        ns, name = p["metadata"].get("namespace"), p["metadata"]["name"]
        self.call("DELETE", f"{APIS[p['kind']].format(ns=ns)}/{name}")

    def expected(self, policies):
        return {(a.ref, b.ref, proto, port): allowed(self, policies, a, b, proto, port)
                for a, b in itertools.permutations(self.pods, 2) for proto in PROTOCOLS for port in PORTS}

    def _ask(self, orders):
        for ref, order in orders.items():
            self.probers[ref].stdin.write(json.dumps(order) + "\n")
            self.probers[ref].stdin.flush()
        return {ref: json.loads(self.probers[ref].stdout.readline()) for ref in orders}

    def seen(self, expected):
        self.round += 1
        orders = {a.ref: {"go": [b.ip for b in self.pods if b is not a], "round": self.round,
                          "want": sum(v for k, v in expected.items() if k[0] == a.ref and k[2] != "sctp")}
                  for a in self.pods}
        got = self._ask(orders)
        arrived = self._ask({a.ref: {"arrivals": self.round} for a in self.pods})
        by_ip = {p.ip: p.ref for p in self.pods}
        table = dict.fromkeys(expected, False)
        for ref, list_ in got.items():
            for proto, ip, port in list_:
                table[ref, by_ip[ip], proto, port] = True
        for ref, list_ in arrived.items():
            for ip, port in list_:
                if ip in by_ip and (by_ip[ip], ref, "sctp", port) in table:
                    table[by_ip[ip], ref, "sctp", port] = True
        return table

    def check(self, policies, deadline=15):
        """Differences between what the policies say and what packets do, once the change has reached the nodes."""
        expected = self.expected(policies)
        end = time.monotonic() + deadline
        wrong = None
        while wrong is None or time.monotonic() < end:
            seen = self.seen(expected)
            wrong = [f"{a} -> {b} {proto}/{port}: {'reached' if seen[a, b, proto, port] else 'not reached'}"
                     for (a, b, proto, port), want in expected.items() if seen[a, b, proto, port] != want]
            if not wrong:
                return []
        return wrong


def api_version(kind):
    return "networking.k8s.io/v1" if kind == "NetworkPolicy" else "policy.networking.k8s.io/v1alpha1"


# ---- writing policies ----

def netpol(name, ns, selector=None, ingress=None, egress=None, types=None):
    spec = {"podSelector": selector or {}}
    if ingress is not None:
        spec["ingress"] = ingress
    if egress is not None:
        spec["egress"] = egress
    if types is not None:
        spec["policyTypes"] = types
    return {"kind": "NetworkPolicy", "metadata": {"name": name, "namespace": ns}, "spec": spec}


def admin(name, priority, subject, ingress=(), egress=()):
    return {"kind": "AdminNetworkPolicy", "metadata": {"name": name},
            "spec": {"priority": priority, "subject": subject, "ingress": list(ingress), "egress": list(egress)}}


def baseline(subject, ingress=(), egress=()):
    return {"kind": "BaselineAdminNetworkPolicy", "metadata": {"name": "default"},
            "spec": {"subject": subject, "ingress": list(ingress), "egress": list(egress)}}


def labels(**kw):
    return {"matchLabels": kw}


def expr(key, op, *values):
    return {"matchExpressions": [{"key": key, "operator": op, **({"values": list(values)} if values else {})}]}
