# SPDX-License-Identifier: Apache-2.0
"""Egress firewalls on real packets, on a node of each datapath: rules in their order, names that change, services that
lead outside, and what is wrong with a policy."""
import json
import pathlib

import pytest

from lab import wait_for
from test_explain import drops, tenet, trace

NAME_SERVER = "198.51.100.10"
ADDRESSES = ["203.0.113.1", "203.0.113.2", "203.0.113.130"]
METADATA = "169.254.169.254"
PORT = 8080

# Answers every name from a file: {name: [addresses, TTL]}, read for each question.
UPSTREAM = """
import json, pathlib, sys, time
sys.path.insert(0, sys.argv[1])
import nameserver as ns
class Zone(dict):
    def get(self, name):
        found = json.loads(pathlib.Path(sys.argv[3]).read_text()).get(name)
        if found == "silent":
            return lambda s, r, t: []
        if found == "lies":
            return lambda s, r, t: [ns.answer(r, [ns.a_record(name, "203.0.113.1", 1)], ident=1), b"x" * 40]
        if found is None:
            return None
        return lambda s, r, t: [ns.answer(r, [ns.a_record(name, a, found[1]) for a in found[0]]
                                          if ns.question_of(r)[1] == ns.A else [], [ns.soa_record("test")])]
s = ns.NameServer(Zone(), sys.argv[2], 53)
print("ready", flush=True)
while True:
    time.sleep(3600)
"""

SERVE = """
import socket, sys, threading
def serve(address):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, int(sys.argv[1])))
    s.listen(64)
    while True:
        c, peer = s.accept()
        c.sendall(address.encode())
        c.close()
for a in sys.argv[2:]:
    threading.Thread(target=serve, args=(a,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""

CONNECT = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.split(":")
    s = socket.socket()
    s.settimeout(0.4)
    try:
        s.connect((host, int(port)))
        print(s.recv(64).decode() or "-")
    except OSError:
        print("-")
    s.close()
"""


REFUSED = """
import socket, sys
s = socket.socket()
s.settimeout(5)
print(s.connect_ex((sys.argv[1], int(sys.argv[2]))))
"""


class Egress:
    def __init__(self, lab, tmp):
        self.lab, self.names = lab, tmp / "names.json"
        self.processes = []
        self.set_names({})
        link = lab.ns("outside", ["sh", "-c", "ip -o -4 addr show | grep -v ' lo ' | awk '{print $2; exit}'"]).stdout.strip()
        for a in ADDRESSES:
            lab.ns("outside", ["ip", "addr", "add", f"{a}/32", "dev", link])
        self.start("outside", SERVE, PORT, *ADDRESSES)
        self.start("outside", UPSTREAM, pathlib.Path(__file__).parent, NAME_SERVER, self.names)
        for project in ("red", "blue"):
            lab.project(project)
        self.pods = {node: lab.pod(f"red/{node}", node) for node in ("node1", "node2")}
        self.other = lab.pod("blue/other", "node1")

    def start(self, host, code, *args):
        p = self.lab.ns_popen(host, ["/usr/bin/python3", "-c", code, *args])
        self.processes.append(p)
        assert p.stdout.readline().strip() == "ready"

    def set_names(self, names):
        new = self.names.with_suffix(".new")
        new.write_text(json.dumps(names))
        new.rename(self.names)

    def apply(self, name, *rules, project="red"):
        """Rules: "+CIDR or name" allows, "-..." denies."""
        egress = [{"type": "Allow" if r[0] == "+" else "Deny",
                   "to": {"cidrSelector" if "/" in r else "dnsName": r[1:]}} for r in rules]
        self.lab.kubectl("apply", "-f", "-", input=json.dumps(
            {"apiVersion": "network.openshift.io/v1", "kind": "EgressNetworkPolicy",
             "metadata": {"name": name, "namespace": project}, "spec": {"egress": egress}}))

    def delete(self, *names, project="red"):
        for name in names:
            self.lab.kubectl("delete", "egressnetworkpolicy", name, "-n", project)

    def reached(self, pod, targets=None):
        out = pod.ns(["/usr/bin/python3", "-c", CONNECT, *(targets or [f"{a}:{PORT}" for a in ADDRESSES])]).stdout
        return [x != "-" for x in out.split()]

    def expect(self, *want, pods=None):
        for pod in pods or self.pods.values():
            wait_for(f"{pod} to reach {want}", lambda p=pod: self.reached(p) == list(want))

    def events(self, reason):
        return [e for e in self.lab.objects("events", "-n", "red") if e["reason"] == reason]

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()
            p.stdout.close()


@pytest.fixture(scope="module")
def egress(make_lab, tmp_path_factory):
    lab = make_lab("eg", nodes=2, plugin="multitenant", datapath="ovs,ebpf")
    e = Egress(lab, tmp_path_factory.mktemp("egress"))
    yield e
    e.stop()
    lab.down(check=False)


@pytest.fixture(autouse=True)
def no_policies(egress):
    yield
    egress.lab.kubectl("delete", "egressnetworkpolicy", "--all", "-n", "red")
    egress.expect(True, True, True)


def test_the_first_rule_that_has_the_destination_decides(egress):
    egress.expect(True, True, True)
    egress.apply("out", "+203.0.113.2/32", "-203.0.113.0/25", "+203.0.113.0/24")
    egress.expect(False, True, True)
    assert egress.reached(egress.other) == [True, True, True], "of another project"
    egress.apply("out", "-203.0.113.0/25", "+203.0.113.2/32", "-0.0.0.0/0")
    egress.expect(False, False, False)
    for node, pod in egress.pods.items():
        peer = egress.pods["node2" if node == "node1" else "node1"]
        assert pod.can_ping(peer.ip), "pods are not outside"
        v = trace(egress.lab, pod.ref, ADDRESSES[1], "tcp", str(PORT))
        assert not v["verdict"]["allowed"] and "egress-firewall" in json.dumps(v), v
        text = tenet(egress.lab, "trace", "--lab", egress.lab.name, pod.ref, ADDRESSES[1], "tcp", str(PORT)).stdout
        assert "the egress firewall denies it: EgressNetworkPolicy red/out (spec.egress[0])" in text, text
        assert drops(egress.lab, node)["egress-firewall"] > 0


def test_a_name_is_followed(egress):
    egress.set_names({"www.outside.test": [[ADDRESSES[0]], 1]})
    egress.apply("out", "+www.outside.test", "-0.0.0.0/0")
    egress.expect(True, False, False)
    egress.set_names({"www.outside.test": [[ADDRESSES[1], ADDRESSES[2]], 1]})
    egress.expect(False, True, True)
    # A name that is gone keeps its addresses.
    egress.set_names({})
    wait_for("an Event about the name", lambda: egress.events("NameNotResolved"))
    egress.expect(False, True, True)


def test_a_service_does_not_lead_around_it(egress):
    lab = egress.lab
    lab.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "away", "namespace": "red"},
         "spec": {"clusterIP": "172.30.0.77", "ports": [{"port": 80, "targetPort": PORT}]}},
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "away", "namespace": "red"},
         "subsets": [{"addresses": [{"ip": ADDRESSES[0]}], "ports": [{"port": PORT}]}]}]}))
    for pod in egress.pods.values():
        wait_for("the service", lambda p=pod: egress.reached(p, ["172.30.0.77:80"]) == [True])
    egress.apply("out", f"-{ADDRESSES[0]}/32")
    egress.expect(False, True, True)
    for pod in egress.pods.values():
        assert egress.reached(pod, ["172.30.0.77:80"]) == [False]


def test_the_nodes_dns_is_never_denied(egress):
    egress.set_names({"dns.outside.test": [[ADDRESSES[0]], 1]})
    egress.apply("out", "-0.0.0.0/0")
    egress.expect(False, False, False)
    for pod in egress.pods.values():
        found = pod.ns(["getent", "ahostsv4", "dns.outside.test"], check=False).stdout
        assert found.startswith(ADDRESSES[0])


def test_several_policies_deny_everything_and_say_so(egress):
    egress.apply("one", "+203.0.113.0/24")
    egress.apply("two", "+203.0.113.0/24")
    egress.expect(False, False, False)
    wait_for("Events", lambda: {e["involvedObject"]["name"] for e in egress.events("SeveralPolicies")} == {"one", "two"})
    egress.delete("two")
    egress.expect(True, True, True)


def test_the_metadata_address_is_blocked_when_asked_for(egress):
    lab, targets = egress.lab, [f"{METADATA}:{PORT}", f"{METADATA}:53"]
    link = lab.ns("outside", ["sh", "-c", "ip -o -4 addr show | grep -v ' lo ' | awk '{print $2; exit}'"]).stdout.strip()
    lab.ns("outside", ["ip", "addr", "add", f"{METADATA}/32", "dev", link])
    for port in (PORT, 53):
        egress.start("outside", SERVE, port, METADATA)
    for pod in egress.pods.values():
        assert egress.reached(pod, targets) == [True, True]
    for node in egress.pods:
        config = lab.folder(node) / "node-config.yaml"
        text = config.read_text()
        config.write_text(text.replace("networkConfig:\n", "networkConfig:\n  blockMetadata: true\n"))
        lab.cmd("node", "restart", node)
    for pod in (*egress.pods.values(), egress.other):
        wait_for("the block", lambda p=pod: egress.reached(p, targets) == [False, True])
        refused = pod.ns(["/usr/bin/python3", "-c", REFUSED, METADATA, str(PORT)], check=False).stdout
        assert refused == "113\n", "EHOSTUNREACH: administratively prohibited"
    for node in egress.pods:
        assert drops(lab, node)["metadata-blocked"] > 0


def test_a_policy_outlives_the_agent(egress):
    egress.apply("out", "-203.0.113.0/25")
    egress.expect(False, False, True)
    for node in egress.pods:
        egress.lab.cmd("node", "restart", node)
    egress.expect(False, False, True)
