# SPDX-License-Identifier: Apache-2.0
"""Host ports take nothing of the host, and open nothing that is denied directly; node ports at every address of a node.

Each cluster has a node of either datapath; "node1", where the pods with host ports are, is of the first."""
import json
import subprocess

import pytest

from lab import TENET, Server, probe, run, wait_for
from test_runtimes import Box, Cni, answer, configuration, host, pod_object, rules

MULTITENANT, NETWORKPOLICY = "redhat/openshift-ovs-multitenant", "redhat/openshift-ovs-networkpolicy"
PORT = 8080
NODES = "10.245.0.0/16"  # and the outside: who looks like a node is let in by the policy


class Cluster:
    """red/web at node1 with host port 8080; clients of red and blue on both nodes, of which blue's are denied."""

    def __init__(self, make_lab, plugin, datapath):
        self.lab = make_lab("hp", nodes=2, plugin=plugin, datapath=datapath)
        self.plugin = plugin
        for project in ("red", "blue"):
            self.lab.project(project)
        nodes = self.lab.status()["nodes"]
        self.ip = {n["name"]: n["hostIP"] for n in nodes}
        self.gateway = {n["name"]: n["subnet"].rsplit(".", 1)[0] + ".1" for n in nodes}
        self.clients = {(project, node): self.lab.pod(f"{project}/c{node[-1]}", node, {"app": "client"})
                        for project in ("red", "blue") for node in ("node1", "node2")}
        if plugin == NETWORKPOLICY:
            self.lab.kubectl("create", "-f", "-", input=json.dumps({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                "metadata": {"name": "same-project", "namespace": "red"},
                "spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}, {"ipBlock": {"cidr": NODES}}]}]}}))
        self.boxes = []
        self.cni = Cni(self.lab, configuration(self.lab))

    def box(self, name, project="red"):
        self.boxes.append(Box(self.lab, name, project))
        return self.boxes[-1]

    def add(self, name, ports):
        """A pod of red at node1 with these host ports."""
        pod_object(self.lab, name, ports=ports)
        return self.cni.add(self.box(name))

    def refused(self, name, port, protocol="TCP", **more):
        """What is said of a pod that wants the host port; nothing of it stays."""
        pod_object(self.lab, name, ports=[{"containerPort": 1, "hostPort": port, "protocol": protocol, **more}])
        out = self.cni.refused(self.box(name))
        assert out["code"] == 105, out
        proto = protocol.lower()
        assert f"{port}/{proto}" in out["details"], out
        assert f"{proto} dport {port} dnat" not in rules(self.lab)
        self.told(name, out["details"])
        return out["details"]

    def told(self, name, text, node="node1"):
        def events():
            return [e["message"] for e in self.lab.objects("events", "-n", "red")
                    if e["reason"] == "HostPortTaken" and e["involvedObject"]["name"] == name]
        wait_for("an Event on the Pod", lambda: any(text in m for m in events()))

    def port_is_published(self, text, node="node1"):
        def published():
            metadata = self.lab.object("hostsubnet", node)["metadata"]
            return text in metadata.get("annotations", {}).get("tenet.io/host-ports", "")
        wait_for("the master to publish the host port", published)

    def second_address(self, node):
        """A further address of the node, on the link of the first; until 'remove' is called."""
        link = json.loads(self.lab.ns(node, ["ip", "-j", "-4", "addr"]).stdout)
        link = next(e for e in link if any(a["local"] == self.ip[node] for a in e["addr_info"]))
        prefix = next(a["prefixlen"] for a in link["addr_info"] if a["local"] == self.ip[node])
        second = self.ip[node].rsplit(".", 1)[0] + f".{200 + int(node[-1])}"
        self.lab.ns(node, ["ip", "addr", "replace", f"{second}/{prefix}", "dev", link["ifname"]])

        def published():
            metadata = self.lab.object("hostsubnet", node)["metadata"]
            return second in metadata.get("annotations", {}).get("tenet.io/node-addresses", "")
        wait_for("the master to publish the address", published)
        return second

    def clean(self):
        for b in self.boxes:
            self.cni.one("DEL", self.cni.plugins[0], b, check=False)
            b.lab.kubectl("delete", "pod", b.name, "-n", b.project, "--ignore-not-found", "--grace-period=0", "--force")
            b.remove()
        self.boxes = []


@pytest.fixture(scope="module", params=[(p, d) for p in (MULTITENANT, NETWORKPOLICY) for d in ("ovs,ebpf", "ebpf,ovs")],
                ids=["multitenant-ovs", "multitenant-ebpf", "networkpolicy-ovs", "networkpolicy-ebpf"])
def cluster(make_lab, request):
    c = Cluster(make_lab, *request.param)
    yield c
    c.clean()
    c.lab.down(check=False)


@pytest.fixture
def own(cluster):
    yield cluster
    cluster.clean()


class host_of:
    """A host where a pod is asked for."""

    def __init__(self, lab, name):
        self.ns = host(lab, name)


def reached(pod, targets, proto="tcp"):
    """Those that the pod, which is denied them, reaches all the same."""
    return [t for t, seen in probe(pod, proto, targets, timeout=0.25).items() if seen]


def name_of(pod, server):
    """The address that the name server tells the pod for the API's service."""
    out = pod.ns(["dig", "+short", "+tries=2", "+time=2", f"@{server}", "kubernetes.default.svc.cluster.local"], check=False)
    return out.stdout.strip()


def test_ports_of_the_nodes_own_parts_are_refused(own):
    client = own.clients["red", "node1"]
    gateway = own.gateway["node1"]
    assert name_of(client, gateway) == "172.30.0.1"
    for i, (port, protocol, what) in enumerate([(53, "UDP", "DNS"), (53, "TCP", "DNS"), (4789, "UDP", "VXLAN"),
                                                (30123, "TCP", "node ports")]):
        assert what in own.refused(f"own{i}", port, protocol)
    # The same from a runtime that hands the ports over.
    pod_object(own.lab, "handed")
    out = own.cni.refused(own.box("handed"), {"portMappings": [{"hostPort": 53, "containerPort": 1, "protocol": "udp"}]})
    assert out["code"] == 105 and "DNS" in out["details"]
    assert name_of(client, gateway) == "172.30.0.1"
    assert name_of(own.clients["blue", "node2"], gateway) == "172.30.0.1"


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "main"])
@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_a_port_where_the_host_listens_is_refused(own, address, proto):
    address = own.ip["node1"] if address == "main" else address
    server = Server(lambda argv, **kw: own.lab.ns_popen("node1", argv, **kw), proto, 7070, address)
    try:
        text = own.refused("late", 7070, proto.upper())
        assert f"{address}:7070" in text
        asked = "127.0.0.1" if address == "0.0.0.0" else address
        assert answer(host(own.lab, "node1"), f"{asked}:7070", proto)
    finally:
        server.stop()


def test_a_listener_at_another_address_does_not_matter(own):
    server = Server(lambda argv, **kw: own.lab.ns_popen("node1", argv, **kw), "tcp", 7071, "127.0.0.1")
    try:
        web = own.add("elsewhere", [{"containerPort": 80, "hostPort": 7071, "hostIP": own.ip["node1"]}])
        inside = Server(web.popen, "tcp", 80)
        try:
            assert answer(host(own.lab, "outside"), f"{own.ip['node1']}:7071")
            assert answer(host(own.lab, "node1"), "127.0.0.1:7071") == "127.0.0.1", "the host's own"
        finally:
            inside.stop()
    finally:
        server.stop()


BIND = "import socket, sys; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(1)"


def can_listen(own, address, port):
    return own.lab.ns("node1", ["/usr/bin/python3", "-c", BIND, address, str(port)], check=False).returncode == 0


def test_the_host_cannot_listen_while_the_pod_has_the_port(own):
    assert can_listen(own, "0.0.0.0", PORT)
    web = own.add("holder", [{"containerPort": 80, "hostPort": PORT}])
    for address in ("0.0.0.0", "127.0.0.1", own.ip["node1"], own.gateway["node1"]):
        assert not can_listen(own, address, PORT), address
    own.lab.cmd("node", "restart", "node1")
    wait_for("the port to be held again", lambda: not can_listen(own, "127.0.0.1", PORT))
    own.cni.delete(web)
    assert can_listen(own, "0.0.0.0", PORT)
    # What is refused holds nothing.
    pod_object(own.lab, "two")
    out = own.cni.refused(own.box("two"), {"portMappings": [{"hostPort": p, "containerPort": 1, "protocol": "tcp"}
                                                            for p in (PORT, 30001)]})
    assert out["code"] == 105 and can_listen(own, "0.0.0.0", PORT)


def test_a_listener_that_came_while_the_agent_was_away_keeps_its_port(own):
    port = 7072  # the ends of the connections that the host accepts there linger for a minute
    web = own.add("away", [{"containerPort": 80, "hostPort": port}])
    inside = Server(web.popen, "tcp", 80)
    target = f"{own.ip['node1']}:{port}"
    server = None
    try:
        assert answer(host(own.lab, "node1"), f"127.0.0.1:{port}") == own.gateway["node1"]
        own.lab.cmd("node", "stop", "node1")
        server = Server(lambda argv, **kw: own.lab.ns_popen("node1", argv, **kw), "tcp", port)
        own.lab.cmd("node", "start", "node1")
        own.told("away", f"{port}/tcp: a process of this host listens")
        wait_for("the host to have its port",
                 lambda: answer(host(own.lab, "node1"), f"127.0.0.1:{port}") == "127.0.0.1")
        server.stop()
        server = None
        wait_for("the pod to have its port again", lambda: answer(host(own.lab, "outside"), target))
    finally:
        if server:
            server.stop()
        inside.stop()


def test_an_open_connection_outlives_the_agent(own):
    web = own.add("open", [{"containerPort": 80, "hostPort": PORT}])
    code = ("import socket; s = socket.create_server(('', 80)); print('ready', flush=True); c, _ = s.accept()\n"
            "while True: c.sendall(c.recv(64))")
    talk = ("import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)\n"
            "for line in sys.stdin: s.sendall(line.encode()); print(s.recv(64).decode().strip(), flush=True)")
    inside = web.popen(["/usr/bin/python3", "-c", code])
    assert inside.stdout.readline().strip() == "ready"
    outside = own.lab.ns_popen("outside", ["/usr/bin/python3", "-c", talk, own.ip["node1"], PORT], stdin=subprocess.PIPE)
    try:
        for text in ("before", "after"):
            outside.stdin.write(f"{text}\n")
            outside.stdin.flush()
            assert outside.stdout.readline().strip() == text
            own.lab.cmd("node", "restart", "node1")
    finally:
        for p in (inside, outside):
            p.kill()
            p.communicate()


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_who_is_denied_directly_is_denied_by_every_address(own, proto):
    """Each client asks host ports of a pod at node1 by all addresses of the nodes; outside and hosts reach it."""
    second = own.second_address("node1")
    web = own.add("web", [{"containerPort": 80, "hostPort": PORT, "protocol": proto.upper()}])
    own.port_is_published(f"{proto}:{PORT}={web.ip}:80")
    server = Server(web.popen, proto, 80)
    try:
        targets = [f"{address}:{PORT}" for address in (own.ip["node1"], second)]
        gateways = [f"{gateway}:{PORT}" for gateway in own.gateway.values()]
        for node in ("node1", "node2"):
            client = own.clients["red", node]
            assert probe(client, proto, targets) == {t: client.ip for t in targets}, "the sender is known"
            assert not reached(client, gateways, proto)
            assert not reached(own.clients["blue", node], [f"{web.ip}:80", *targets, *gateways], proto)
            assert all(probe(host_of(own.lab, node), proto, targets).values())
        assert all(probe(web, proto, targets).values()), "by itself"
        assert all(probe(host_of(own.lab, "outside"), proto, targets).values())
        assert answer(host(own.lab, "node1"), f"127.0.0.1:{PORT}", proto)
        for client in (own.clients["red", "node1"], own.clients["blue", "node2"]):
            told = run([TENET, "trace", "--lab", own.lab.name, client.ref, own.ip["node1"], proto, str(PORT)], check=False).stdout
            assert f"to host ports at {own.ip['node1']} port {PORT}" in told and f"{web.ip}:80" in told, told
        # The other node does not have it.
        assert not reached(own.clients["red", "node1"], [f"{own.ip['node2']}:{PORT}"], proto)
    finally:
        server.stop()


def test_who_may_is_asked_anew_when_the_port_has_another_pod(own):
    target = f"{own.ip['node1']}:{PORT}"
    for name in ("one", "two"):
        pod = own.add(name, [{"containerPort": 80, "hostPort": PORT}])
        server = Server(pod.popen, "tcp", 80)
        try:
            own.port_is_published(f"tcp:{PORT}={pod.ip}:80")
            for node in ("node1", "node2"):
                wait_for(f"{name} to be reached from {node}", lambda: answer(own.clients["red", node].ns, target))
                assert not reached(own.clients["blue", node], [target])
        finally:
            server.stop()
        own.cni.delete(pod)
    assert not reached(own.clients["red", "node1"], [target])


def test_a_node_port_is_denied_at_every_address_of_a_node(own):
    lab = own.lab
    seconds = [own.second_address(n) for n in ("node1", "node2")]
    server = Server(own.clients["red", "node1"].popen, "tcp", 80)
    try:
        lab.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "np", "namespace": "red"},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30777}]}}))
        lab.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "np-1", "namespace": "red", "labels": {"kubernetes.io/service-name": "np"}},
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
            "endpoints": [{"addresses": [own.clients["red", "node1"].ip], "targetRef": {"kind": "Pod", "name": "c1"}}]}))
        targets = [f"{a}:30777" for a in [*own.ip.values(), *seconds]]
        for node in ("node1", "node2"):
            wait_for(f"{node} to serve", lambda: all(probe(own.clients["red", node], "tcp", targets, timeout=0.25).values()))
            assert not reached(own.clients["blue", node], targets), node
        near = [f"{own.ip['node1']}:30777", f"{seconds[0]}:30777"]
        assert all(probe(host_of(lab, "outside"), "tcp", near).values())
    finally:
        server.stop()
        lab.kubectl("delete", "service,endpointslice", "--all", "-n", "red", "--wait=false")
