# SPDX-License-Identifier: Apache-2.0
"""Services as pods see them: by every kind of address, from everywhere, under each plug-in; endpoints that come and
go under load; what keeps to one endpoint; idle ones.  Services and EndpointSlices are made by hand, so that each test
says what there is; test_services_host.py asks the same of the host and of the outside."""
import collections
import ipaddress
import json
import select
import time
from contextlib import closing

import pytest
from scapy.all import ICMP, IP, UDP, Ether, Raw

from lab import TENET, environment, map_rows, run, wait_for
from netns import Tap, udp_socket
from test_packets import mac_of
from traffic import ECHO, TALKER, finish, said, start

PLUGINS = ["redhat/openshift-ovs-subnet", "redhat/openshift-ovs-multitenant", "redhat/openshift-ovs-networkpolicy"]
PORT = 8080
ITSELF = "169.254.169.4"  # the source that a pod sees when it reaches itself

# Answers who it is and who asked, over TCP and UDP.
SERVER = """
import socket, sys, threading
me, port = sys.argv[1], int(sys.argv[2])
def tcp():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port))
    s.listen(256)
    ready.release()
    while True:
        c, peer = s.accept()
        c.sendall(f"{me} {peer[0]}".encode())
        c.close()
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", port))
    ready.release()
    while True:
        data, peer = s.recvfrom(65536)
        s.sendto(f"{me} {peer[0]}".encode(), peer)
ready = threading.Semaphore(0)
for f in (tcp, udp):
    threading.Thread(target=f, daemon=True).start()
ready.acquire()
ready.acquire()
print("ready", flush=True)
threading.Event().wait()
"""

# Tries each "proto:address:port:times"; prints a list of answers, or of errors, for each.
CLIENT = """
import errno, json, socket, sys
def once(proto, end, timeout):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM)
    asks = 1 if proto == "tcp" else 2  # a datagram may get lost, two hardly
    s.settimeout(timeout / asks)
    try:
        s.connect(end)
        for left in reversed(range(asks)):
            if proto == "udp":
                s.send(b"?")
            try:
                return s.recv(64).decode()
            except socket.timeout:
                if not left:
                    raise
    except socket.timeout:
        return "timeout"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    finally:
        s.close()
for target in sys.argv[2:]:
    proto, ip, port, times = target.split(":")
    print(json.dumps([once(proto, (ip, int(port)), float(sys.argv[1])) for _ in range(int(times))]), flush=True)
"""

# New connections all the time, until it is told to end; a line for each change of what came of them.
STORM = """
import json, signal, socket, sys, time
end = (sys.argv[1], int(sys.argv[2]))
counts, errors, stop, asked = {}, [], False, False
def told(*a):
    global stop
    stop = True
signal.signal(signal.SIGTERM, told)
def snapshot():
    print(json.dumps([counts, errors]), flush=True)
def ask(*a):
    global asked  # answered between two connections, as printing cannot be interrupted by itself
    asked = True
signal.signal(signal.SIGUSR1, ask)
print("ready", flush=True)
while not stop:
    if asked:
        asked = False
        snapshot()
    try:
        s = socket.create_connection(end, 5)
        who = s.recv(64).decode().split()
        s.close()
        if who:
            counts[who[0]] = counts.get(who[0], 0) + 1
        else:
            errors.append("closed")
    except OSError as e:
        errors.append(str(e))
    time.sleep(0.001)
snapshot()
"""

# One UDP socket; prints who answers whenever that changes.
UDP_TALKER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.2)
s.connect((sys.argv[1], int(sys.argv[2])))
last = None
print("ready", flush=True)
while True:
    try:
        s.send(b"?")
        who = s.recv(64).decode().split()[0]
        if who != last:
            print(who, flush=True)
            last = who
        time.sleep(0.01)
    except OSError:
        pass
"""


def packed(address):
    return list(ipaddress.ip_address(address).packed)


class Services:
    """A lab of two nodes with servers in pods of two projects, and the services that a test makes."""

    def __init__(self, make_lab, plugin):
        self.plugin = plugin
        self.lab = make_lab("sv", nodes=2, plugin=plugin)
        self.lab.project("red")
        self.lab.project("blue")
        self.a, self.b = self.lab.pod("red/a", "node1", {"app": "a"}), self.lab.pod("red/b", "node1", {"app": "b"})
        self.c = self.lab.pod("red/c", "node2", {"app": "c"})
        self.x = self.lab.pod("blue/x", "node1", {"app": "x"})
        status = self.lab.status()
        self.nodes = {n["name"]: n["hostIP"] for n in status["nodes"]}
        self.kubeconfig = {**environment(), "KUBECONFIG": status["kubeconfig"]}
        self.servers = {p.ip: start(p.popen, SERVER, p.ip, PORT) for p in (self.a, self.b, self.c, self.x)}
        self.made = []
        self.next = 10

    def stop(self):
        for s in self.servers.values():
            s.kill()
            s.communicate()

    def kubectl(self, *args, **kw):
        return run(["kubectl", *args], env=self.kubeconfig, **kw)

    def object(self, plural, name):
        return json.loads(self.kubectl("get", plural, name, "-n", "red", "-o", "json").stdout)

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List",
                                                           "items": list(objects)}))

    def service(self, name, endpoints, ns="red", **spec):
        """A service of one TCP and one UDP port 80; returns its clusterIP once node1 serves it."""
        ip = f"172.30.0.{self.next}"
        self.next += 1
        ports = [{"name": p.lower(), "protocol": p, "port": 80, "targetPort": PORT} for p in ("TCP", "UDP")]
        if "type" in spec:
            for i, port in enumerate(ports):
                port["nodePort"] = 30000 + 2 * self.next + i
        annotations = spec.pop("annotations", {})
        spec = {"clusterIP": ip, "ports": ports, **spec}
        self.made.append((name, ns))
        self.apply({"apiVersion": "v1", "kind": "Service",
                    "metadata": {"name": name, "namespace": ns, "annotations": annotations}, "spec": spec},
                   self.slice(name, endpoints, ns))
        self.applied(ip)
        return ip

    def node_ports(self, name):
        return {p["name"]: p["nodePort"] for p in self.object("service", name)["spec"]["ports"]}

    def endpoints(self, name, endpoints, ns="red", port=PORT):
        self.apply(self.slice(name, endpoints, ns, port))

    @staticmethod
    def slice(name, endpoints, ns, port=PORT):
        """'endpoints': pods, addresses, or what a slice says of one."""
        def one(e):
            if isinstance(e, dict):
                return e
            return {"addresses": [getattr(e, "ip", e)], "conditions": {"ready": True},
                    "nodeName": getattr(e, "node", None)}
        return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": f"{name}-t", "namespace": ns, "labels": {"kubernetes.io/service-name": name}},
                "ports": [{"name": p.lower(), "protocol": p, "port": port} for p in ("TCP", "UDP")],
                "endpoints": [one(e) for e in endpoints]}

    def flows_of(self, text, node="node1"):
        out = self.lab.ns(node, ["ovs-ofctl", "-O", "OpenFlow14", "--no-stats", "--no-names", "dump-flows",
                                 f"unix:{self.lab.ovs_rundir(node)}/br0.mgmt"]).stdout
        return [f for f in out.splitlines() if text in f]

    def rows(self, name, node="node1"):
        return map_rows(self.lab.folder(node) / "run/bpf/maps" / name)

    def serves(self, ip, node="node1"):
        return self.lab.serves(node, ip)

    def applied(self, ip):
        for node in self.nodes:
            wait_for(f"{node} to serve {ip}", lambda n=node: self.serves(ip, n))

    def translates(self, ip, endpoint, node="node1", port=None):
        """Those that lead from there to this endpoint."""
        if not self.lab.has_ovs(node):
            return [v for k, v in self.rows("tenet_backends", node) if k[:4] == packed(ip) and v[:4] == packed(endpoint)
                    and port in (None, v[4] << 8 | v[5])]
        return [f for f in self.flows_of(f"nat(dst={endpoint}:", node)
                if f"reg8=0x{int(ipaddress.ip_address(ip)):x}," in f and (not port or f":{port}" in f)]

    def tries(self, pod, *targets, timeout=10.0):
        """For each "proto:address:port:times" a list of answers: (who, whom they saw) or an error."""
        out = pod.ns(["/usr/bin/python3", "-c", CLIENT, str(timeout), *targets], timeout=300).stdout
        return [[tuple(x.split()) if " " in x else x for x in json.loads(line)] for line in out.splitlines()]

    def who(self, pod, *targets, **kw):
        """For each target who answered, each once; an error is in it as well."""
        return [{x[0] if isinstance(x, tuple) else x for x in answers}
                for answers in self.tries(pod, *targets, **kw)]

    def meets(self, pod, target, want, **kw):
        """Who is drawn is chance: asks until each of 'want' was, and never another."""
        seen = set()

        def all_of_them():
            seen.update(self.who(pod, target, **kw)[0])
            assert seen <= want, seen - want
            return seen == want
        wait_for(f"each of {want}", all_of_them)

    def clean(self):
        for ns in {ns for _, ns in self.made}:
            names = [name for name, x in self.made if x == ns]
            self.kubectl("delete", "--ignore-not-found", "--wait=false", "-n", ns,
                         *[f"service/{n}" for n in names], *[f"endpointslice/{n}-t" for n in names])
        self.made = []

    def metrics(self, node="node1"):
        sock = f"/run/tenet/lab/{self.lab.name}/nodes/{node}/run/agent.sock"
        text = self.lab.ns(node, ["curl", "-s", "--unix-socket", sock, "http://x/metrics"]).stdout
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                if line and not line.startswith("#")}

    def drops(self, cause, node="node1"):
        return self.metrics(node)[f'tenet_node_drops_total{{cause="{cause}"}}']


@pytest.fixture(scope="module")
def labs(make_lab):
    made = {}

    def get(plugin):
        if plugin not in made:
            made[plugin] = Services(make_lab, plugin)
        return made[plugin]

    yield get
    for s in made.values():
        s.stop()
        s.lab.down(check=False)


@pytest.fixture(params=PLUGINS, ids=lambda p: p.rsplit("-", 1)[1])
def any_plugin(labs, request):
    s = labs(request.param)
    yield s
    s.clean()


@pytest.fixture
def one(labs):
    """Where the plug-in does not matter, the one that isolates."""
    s = labs(PLUGINS[1])
    yield s
    s.clean()


def test_every_kind_of_address_from_everywhere(any_plugin):
    s = any_plugin
    pods = [s.a, s.b, s.c]
    ip = s.service("web", pods, type="LoadBalancer", externalIPs=["192.0.2.80"])
    port, plain = s.node_ports("web"), {"tcp": 80, "udp": 80}
    ingress = wait_for("its address", lambda: s.object("service", "web")["status"].get("loadBalancer", {}).get(
        "ingress"))[0]["ip"]
    s.applied(ingress)
    addresses = [(ip, plain), ("192.0.2.80", plain), (ingress, plain), (s.nodes["node1"], port),
                 (s.nodes["node2"], port)]
    targets = [f"{proto}:{address}:{ports[proto]}:48" for address, ports in addresses for proto in ("tcp", "udp")]
    everybody = {p.ip for p in pods}
    for client in (s.a, s.c):
        for target, answers in zip(targets, s.tries(client, *targets)):
            assert {x[0] for x in answers} == everybody, (client, target, answers)
            # The true source, but of what a pod sends to itself.
            seen = {x[1] for x in answers if x[0] != client.ip}
            assert seen == {client.ip}, (client, target, answers)
            assert {x[1] for x in answers if x[0] == client.ip} == {ITSELF}, (client, target, answers)
    # Another project: by no address where projects are apart.
    short = [t.rsplit(":", 1)[0] + ":1" for t in targets]
    answered = s.who(s.x, *short, timeout=0.25 if "multitenant" in s.plugin else 3)
    if "multitenant" in s.plugin:
        assert answered == [{"timeout"}] * len(short)
        assert s.drops("service-of-other-project") > 0
    else:
        assert set().union(*answered) <= everybody and not [x for x in answered if len(x) != 1], answered


class Host:
    """A host of the lab, to ask from as from a pod."""

    def __init__(self, lab, name):
        self.lab, self.name = lab, name

    def ns(self, argv, **kw):
        return self.lab.ns(self.name, argv, **kw)


def test_nodes_and_the_outside_reach_every_kind_of_address(any_plugin):
    s = any_plugin
    pods = [s.a, s.b, s.c]
    ip = s.service("open", pods, type="LoadBalancer", externalIPs=["192.0.2.81"])
    port = s.node_ports("open")
    ingress = wait_for("its address", lambda: s.object("service", "open")["status"].get("loadBalancer", {}).get(
        "ingress"))[0]["ip"]
    addresses = [ip, "192.0.2.81", ingress]
    for node in s.nodes:
        wait_for(f"{node}'s table", lambda n=node: all(f"{x} . udp" in s.lab.ns(
            n, ["nft", "list", "map", "ip", "tenet-services", "endpoints"]).stdout for x in addresses))
    ends = [(x, {"tcp": 80, "udp": 80}) for x in addresses] + [(x, port) for x in s.nodes.values()]
    targets = [f"{proto}:{x}:{ports[proto]}:48" for x, ports in ends for proto in ("tcp", "udp")]
    for x in addresses:
        s.lab.ns("outside", ["ip", "route", "add", f"{x}/32", "via", s.nodes["node1"]])
    try:
        for where in ("node1", "node2", "outside"):
            answered = s.who(Host(s.lab, where), *targets)
            assert answered == [{p.ip for p in pods}] * len(targets), (where, answered)
    finally:
        for x in addresses:
            s.lab.ns("outside", ["ip", "route", "del", f"{x}/32"])


def test_nothing_there_is_said_at_once(any_plugin):
    s = any_plugin
    ip = s.service("none", [])
    assert s.who(s.a, f"tcp:{ip}:80:1", f"udp:{ip}:80:1", f"tcp:{ip}:81:1", "tcp:172.30.9.9:80:1") == \
        [{"ECONNREFUSED"}] * 4
    assert s.drops("service-without-endpoints") >= 2 and s.drops("service-not-available") >= 2
    # An endpoint of a subnet that no node has: the error names the address that the pod knows.
    s.endpoints("none", ["10.128.250.9"])
    wait_for("the endpoint", lambda: s.translates(ip, "10.128.250.9"))
    assert s.who(s.a, f"tcp:{ip}:80:1") == [{"EHOSTUNREACH"}]
    # The tunnels' port is nobody's: what NAT makes of such a packet other nodes would trust.
    s.endpoints("none", [s.nodes["node2"]], port=4789)
    wait_for("the other port", lambda: s.translates(ip, s.nodes["node2"], port=4789))
    assert s.who(s.a, f"udp:{ip}:80:1") == [{"ECONNREFUSED"}]


def test_translation_makes_no_tunnel_packets(one):
    """What leaves with a node's address for the tunnels' port of another, that one would believe."""
    s = one
    s.service("forge", [], type="NodePort")
    s.endpoints("forge", [s.nodes["node2"]], port=4789)
    port = s.node_ports("forge")["udp"]
    wait_for("the host's table", lambda: "4789" in s.lab.ns(
        "node1", ["nft", "list", "map", "ip", "tenet-services", "endpoints"]).stdout)
    cause = 'tenet_node_host_drops_total{cause="tunnel"}'
    before = s.metrics()[cause]
    s.lab.ns("outside", ["/usr/bin/python3", "-c", CLIENT, "0.2", f"udp:{s.nodes['node1']}:{port}:3"])
    wait_for("them to be dropped", lambda: s.metrics()[cause] >= before + 3)


# From a port of its own choice, which the answers then have as their destination.
FROM_PORT = """
import socket, sys
for kind, port in zip((socket.SOCK_STREAM, socket.SOCK_DGRAM), sys.argv[3:]):
    s = socket.socket(socket.AF_INET, kind)
    s.settimeout(5)
    s.bind(("0.0.0.0", int(port)))
    s.connect((sys.argv[1], int(sys.argv[2])))
    if kind == socket.SOCK_DGRAM:  # the server of TCP speaks first and closes: what it is sent, it answers by a reset
        s.send(b"?")
    print(s.recv(64).decode().split()[0])
"""


def test_answers_to_the_host_are_not_for_node_ports(any_plugin):
    """Its connections to services get any port of the gateway's address, also one that is a node port."""
    s = any_plugin
    s.service("taken", [s.b], type="NodePort")
    ports = s.node_ports("taken")
    out = s.lab.ns("node1", ["/usr/bin/python3", "-c", FROM_PORT, s.a.ip, PORT, ports["tcp"], ports["udp"]]).stdout
    assert out.split() == [s.a.ip, s.a.ip]


def test_endpoints_outside_the_cluster(any_plugin):
    s = any_plugin
    host = start(lambda argv, **kw: s.lab.ns_popen("node2", argv, **kw), SERVER, "node2", "9090")
    try:
        ip = s.service("outside", [])
        s.endpoints("outside", [s.nodes["node2"]], port=9090)
        wait_for("the endpoint", lambda: s.translates(ip, s.nodes["node2"]))
        assert s.who(s.a, f"tcp:{ip}:80:3", f"udp:{ip}:80:3") == [{"node2"}] * 2
        if "multitenant" in s.plugin:
            assert s.who(s.x, f"tcp:{ip}:80:1", timeout=0.25) == [{"timeout"}]
    finally:
        host.kill()
        host.communicate()


def test_pods_reach_the_api_by_its_service(any_plugin):
    """The service kubernetes, of the project default: global where projects are apart."""
    code = """
import socket, sys
s = socket.create_connection((sys.argv[1], 443), 5)
s.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: kubernetes\\r\\nConnection: close\\r\\n\\r\\n")
print(s.makefile().readline().strip())
"""
    s = any_plugin
    ip = json.loads(s.kubectl("get", "service", "kubernetes", "-o", "json").stdout)["spec"]["clusterIP"]
    s.applied(ip)
    for pod in (s.a, s.c, s.x):
        assert pod.ns(["/usr/bin/python3", "-c", code, ip]).stdout.strip() == "HTTP/1.1 200 OK"


def test_new_connections_are_spread_evenly(one):
    s = one
    for pods in ([s.a, s.b], [s.a, s.b, s.c]):
        ip = s.service(f"even{len(pods)}", pods)
        wait_for("the endpoints", lambda: all(s.translates(ip, p.ip) for p in pods))  # They come after the service.
        for proto in ("tcp", "udp"):
            # One waits for another: a machine that stands still for ten seconds fails none of them.
            answers = s.tries(s.a, f"{proto}:{ip}:80:300", timeout=60)[0]
            assert all(isinstance(x, tuple) for x in answers), (proto, [x for x in answers if not isinstance(x, tuple)])
            counts = collections.Counter(x[0] for x in answers)
            assert set(counts) == {p.ip for p in pods}, counts
            # 300 throws of a fair die: six standard deviations are never seen.
            n, p = 300, 1 / len(pods)
            assert all(abs(k - n * p) < 6 * (n * p * (1 - p)) ** 0.5 for k in counts.values()), counts


def test_one_source_port_reaches_one_endpoint_through_two_services(one):
    """Both connections have the same addresses and ports once they are translated; so have the errors about them."""
    s = one
    code = """if True:
        import socket, sys
        def answer(x):
            try:
                return x.recv(64).decode().partition(" ")[0]
            except OSError as e:
                return type(e).__name__
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            made = []
            for ip in sys.argv[1:]:
                x = socket.socket(socket.AF_INET, kind)
                x.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                x.bind(("0.0.0.0", 0 if not made else made[0].getsockname()[1]))
                x.settimeout(5)
                try:
                    x.connect((ip, 80))
                    x.send(b"?")
                except OSError:
                    pass
                made.append(x)
            print(*[answer(x) for x in made])
    """
    for pod in (s.b, s.c, s.a):
        names = [f"twin{i}{pod.name.split('/')[-1]}" for i in range(3)]
        ips = [s.service(name, [pod]) for name in names]
        assert s.a.ns(["/usr/bin/python3", "-c", code, *ips]).stdout.split() == [pod.ip] * 6
        for name, ip in zip(names, ips):
            s.endpoints(name, [pod], port=PORT + 1000)
            wait_for("the other port", lambda ip=ip, pod=pod: s.translates(ip, pod.ip, port=PORT + 1000))
        assert s.a.ns(["/usr/bin/python3", "-c", code, *ips]).stdout.split()[:3] == ["ConnectionRefusedError"] * 3


def test_affinity_keeps_to_an_endpoint_while_it_is_there(one):
    s = one
    ip = s.service("sticky", [s.a, s.b, s.c], sessionAffinity="ClientIP",
                   sessionAffinityConfig={"clientIP": {"timeoutSeconds": 300}})
    first = s.who(s.a, f"tcp:{ip}:80:20")[0]
    assert len(first) == 1
    s.lab.cmd("node", "restart", "node1")  # an agent's end changes nothing of it
    assert s.who(s.a, f"tcp:{ip}:80:10")[0] == first
    rest = [p for p in (s.a, s.b, s.c) if p.ip not in first]
    s.endpoints("sticky", rest)
    wait_for("the endpoint to be gone", lambda: not s.translates(ip, *first))
    second = wait_for("another endpoint", lambda: s.who(s.a, f"tcp:{ip}:80:1")[0] - first)
    assert s.who(s.a, f"tcp:{ip}:80:20")[0] == second
    assert len(s.who(s.b, f"udp:{ip}:80:20")[0]) == 1


def test_traffic_policy_local(one):
    s = one
    ip = s.service("near", [s.a, s.c], type="NodePort", internalTrafficPolicy="Local")
    port = s.node_ports("near")["tcp"]
    assert s.who(s.b, f"tcp:{ip}:80:12", f"tcp:{s.nodes['node1']}:{port}:24") == [{s.a.ip}, {s.a.ip, s.c.ip}]
    assert s.who(s.c, f"tcp:{ip}:80:12") == [{s.c.ip}]


def test_terminating_endpoints_serve_when_no_other_is_left(one):
    s = one
    ip = s.service("leaving", [s.b, s.c])
    ending = {"addresses": [s.b.ip], "conditions": {"ready": False, "serving": True, "terminating": True}}
    s.endpoints("leaving", [ending, s.c])
    wait_for("only the other to be used", lambda: not s.translates(ip, s.b.ip))
    assert s.who(s.a, f"tcp:{ip}:80:12") == [{s.c.ip}]
    s.endpoints("leaving", [ending])
    wait_for("the last to be used", lambda: s.translates(ip, s.b.ip))
    assert wait_for("it to answer", lambda: s.who(s.a, f"tcp:{ip}:80:6") == [{s.b.ip}])


def tenet(s, *args, **kw):
    return run([TENET, *args], env=s.kubeconfig, **kw)


def storm_counts(p):
    p.send_signal(10)  # SIGUSR1
    return json.loads(p.stdout.readline())


def test_endpoint_removed_under_load(one):
    s = one
    ip = s.service("load", [s.b, s.c])
    talk = start(s.b.popen, ECHO, 9100)
    storm = start(s.a.popen, STORM, ip, 80)
    try:
        wait_for("connections to both", lambda: len(storm_counts(storm)[0]) == 2)
        for _ in range(3):
            s.endpoints("load", [s.c])
            wait_for("the endpoint to be gone", lambda: not s.translates(ip, s.b.ip))

            def quiet():
                before = storm_counts(storm)[0]
                wait_for("more connections", lambda: storm_counts(storm)[0][s.c.ip] > before[s.c.ip] + 50)
                return storm_counts(storm)[0][s.b.ip] == before[s.b.ip]

            wait_for("no connection to go there", quiet, 5)
            # Now it dies, and nobody notices.
            s.servers[s.b.ip].kill()
            s.servers[s.b.ip].communicate()
            before = storm_counts(storm)[0][s.c.ip]
            wait_for("more connections", lambda: storm_counts(storm)[0][s.c.ip] > before + 100)
            s.servers[s.b.ip] = start(s.b.popen, SERVER, s.b.ip, PORT)
            s.endpoints("load", [s.b, s.c])
            before = storm_counts(storm)[0][s.b.ip]
            wait_for("connections to both", lambda: storm_counts(storm)[0][s.b.ip] > before)
        counts, errors = json.loads(finish(storm)[1])
        assert not errors, (errors[:5], len(errors), counts)
    finally:
        for p in (talk, storm):
            p.kill()
            p.communicate()


def test_agent_restarted_under_load(one):
    s = one
    ip = s.service("calm", [s.a, s.b, s.c], sessionAffinity="ClientIP")
    plain = s.service("calm2", [s.b, s.c])
    echo = start(s.c.popen, ECHO, 9101)
    s.service("talk", [])
    s.endpoints("talk", [s.c], port=9101)
    talk_ip = f"172.30.0.{s.next - 1}"
    wait_for("the endpoint", lambda: s.translates(talk_ip, s.c.ip))
    storm, talker = start(s.a.popen, STORM, plain, 80), start(s.a.popen, TALKER, talk_ip, 80)
    try:
        s.who(s.a, f"tcp:{ip}:80:1")
        rules = s.lab.rules("node1")
        for _ in range(3):
            s.lab.cmd("node", "restart", "node1")
        before = sum(storm_counts(storm)[0].values())
        wait_for("more connections", lambda: sum(storm_counts(storm)[0].values()) > before + 50)
        assert not s.lab.has_ovs("node1") or s.metrics()["tenet_node_flow_mods_total"] == 0
        assert s.lab.rules("node1") == rules
        errors = json.loads(finish(storm)[1])[1]
        assert not errors, errors[:5]
        code, out = finish(talker)
        assert code == 0 and int(out) > 0, out
    finally:
        for p in (storm, talker, echo):
            p.kill()
            p.communicate()


def test_open_connections_outlive_endpoint_and_service(one):
    """An endpoint that gets no new connections any more, or whose service is gone, goes on with those it has."""
    s = one
    echo = start(s.c.popen, ECHO, 9102)
    ip = s.service("open", [])
    s.endpoints("open", [s.c], port=9102)
    wait_for("the endpoint", lambda: s.translates(ip, s.c.ip))
    talker = start(s.a.popen, TALKER, ip, 80)
    try:
        s.endpoints("open", [])
        wait_for("the endpoint to be gone", lambda: not s.translates(ip, s.c.ip))
        assert s.who(s.a, f"tcp:{ip}:80:1") == [{"ECONNREFUSED"}]
        s.clean()
        wait_for("the service to be gone", lambda: not s.serves(ip))
        s.lab.cmd("node", "restart", "node1")
        wait_for("the agent", lambda: s.metrics().get("tenet_node_ready") == 1)
        assert not s.lab.has_ovs("node1") or s.flows_of("idle_timeout=")
        assert talker.poll() is None
        # Several hundred answers later than all this:
        time.sleep(1)
        code, out = finish(talker)
        assert code == 0 and int(out) > 100, out
    finally:
        for p in (talker, echo):
            p.kill()
            p.communicate()


def test_udp_goes_elsewhere_when_its_endpoint_ends(one):
    s = one
    ip = s.service("datagrams", [s.b, s.c])
    talkers = [start(s.a.popen, UDP_TALKER, ip, 80) for _ in range(6)]
    try:
        first = [said(t) for t in talkers]
        assert set(first) <= {s.b.ip, s.c.ip}
        gone, stays = (s.b, s.c) if s.b.ip in first else (s.c, s.b)
        s.endpoints("datagrams", [stays])
        for t, who in zip(talkers, first):
            if who == gone.ip:
                assert said(t) == stays.ip
        # Those of the other one were left alone: they never said anybody else.
        assert s.metrics()["tenet_node_services_udp_ended_total"] > 0
        for t, who in zip(talkers, first):
            t.kill()
            rest = t.stdout.read().split()
            assert who == gone.ip or rest == [], rest
    finally:
        for t in talkers:
            t.kill()
            t.communicate()


def test_policy_sees_both_true_ends(labs):
    s = labs(PLUGINS[2])
    ip = s.service("judged", [s.b, s.c])
    meta = {"namespace": "red"}
    try:
        # c takes connections of x alone; a sends to c alone.
        s.apply({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {**meta, "name": "into-c"},
                 "spec": {"podSelector": {"matchLabels": {"app": "c"}}, "policyTypes": ["Ingress"], "ingress": [
                     {"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}}]}]}},
                {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {**meta, "name": "from-a"},
                 "spec": {"podSelector": {"matchLabels": {"app": "a"}}, "policyTypes": ["Egress"], "egress": [
                     {"to": [{"podSelector": {"matchLabels": {"app": "c"}}}], "ports": [{"port": PORT}]}]}})
        wait_for("the policies", lambda: s.who(s.a, f"tcp:{s.b.ip}:{PORT}:1", f"tcp:{s.c.ip}:{PORT}:1",
                                               timeout=0.3) == [{"timeout"}] * 2)
        s.meets(s.x, f"tcp:{ip}:80:8", {s.b.ip, s.c.ip})
        s.meets(s.b, f"tcp:{ip}:80:6", {s.b.ip, "timeout"}, timeout=0.25)
        assert s.who(s.a, f"tcp:{ip}:80:4", timeout=0.25) == [{"timeout"}]
        s.kubectl("delete", "networkpolicy", "-n", "red", "into-c")
        wait_for("the policy to be gone", lambda: s.who(s.a, f"tcp:{s.c.ip}:{PORT}:1", timeout=0.3) == [{s.c.ip}])
        # By the service, too: to the endpoint that a may send to, with the port that it has there.
        s.meets(s.a, f"tcp:{ip}:80:6", {s.c.ip, "timeout"}, timeout=0.5)
    finally:
        s.kubectl("delete", "networkpolicy", "-n", "red", "--all")


def test_projects_that_join_part_and_become_global(one):
    s = one
    ip = s.service("shared", [s.b], type="NodePort")
    targets = [f"tcp:{ip}:80:1", f"tcp:{s.nodes['node2']}:{s.node_ports('shared')['tcp']}:1"]

    def reached():
        return [x == {s.b.ip} for x in s.who(s.x, *targets, timeout=0.25)]

    assert reached() == [False, False]
    for args, want in ((["join-projects", "--to=red", "blue"], True), (["isolate-projects", "blue"], False),
                       (["make-projects-global", "red"], True), (["isolate-projects", "red"], False)):
        tenet(s, "adm", "pod-network", *args)
        wait_for(f"the effect of {args}", lambda: reached() == [want, want])




def test_idle_service_asks_for_pods_and_keeps_who_called(any_plugin):
    s = any_plugin
    ip = s.service("asleep", [], annotations={"idling.alpha.openshift.io/idled-at": "2026-01-01T00:00:00Z"})
    client = s.a.popen(["/usr/bin/python3", "-c", CLIENT, "30", f"tcp:{ip}:80:1", f"udp:{ip}:80:1"])
    try:
        event = wait_for("the event", lambda: [
            e for e in s.lab.objects("events", "-n", "red")
            if e["reason"] == "NeedPods" and e["involvedObject"]["name"] == "asleep"])
        assert event[0]["message"] == "The service-port red/asleep:tcp needs pods."
        assert event[0]["involvedObject"]["kind"] == "Service" and event[0]["count"] == 1
        assert s.metrics()["tenet_node_services_idle"] == 1 and s.metrics()["tenet_node_service_packets_held"] >= 1
        began = time.monotonic()
        s.endpoints("asleep", [s.c])
        out = client.communicate(timeout=30)[0].splitlines()
        assert [json.loads(x) for x in out] == [[f"{s.c.ip} {s.a.ip}"]] * 2
        assert time.monotonic() - began < 20 and s.drops("service-idle") >= 1
        assert s.metrics()["tenet_node_services_idle"] == 0 and s.metrics()["tenet_node_service_packets_held"] == 0
    finally:
        client.kill()
        client.communicate()


def test_large_datagrams_and_errors_come_back_translated(any_plugin):
    s = any_plugin
    ip = s.service("large", [s.c])
    wait_for("the endpoint", lambda: s.translates(ip, s.c.ip))  # a service without one is refused
    code = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((sys.argv[1], 80))
s.send(b"?")
s.recv(64)
s.send(b"x" * 5000)
print(s.recv(64).decode())
"""
    out = s.a.ns(["/usr/bin/python3", "-c", code, ip]).stdout.split()
    assert out == [s.c.ip, s.a.ip]
    # Nobody listens there: the pod's own "port unreachable" is about the service.
    s.endpoints("large", [s.c], port=9999)
    wait_for("the other port", lambda: s.translates(ip, s.c.ip, port=9999))
    assert wait_for("refusal", lambda: s.who(s.a, f"udp:{ip}:80:1", f"tcp:{ip}:80:1") == [{"ECONNREFUSED"}] * 2)


@pytest.mark.parametrize("endpoint", ["b", "c"])
def test_errors_of_a_client_about_an_answer_reach_the_endpoint(any_plugin, endpoint):
    """Which hears about its own packet: the service's address and port say nothing to it."""
    s = any_plugin
    ip, pod, text = s.service("talks", [getattr(s, endpoint)]), getattr(s, endpoint), b"!quoted!"
    with udp_socket(s.a.netns) as client, closing(Tap(s.a.netns, "eth0")) as out, closing(Tap(pod.netns, "eth0")) as there:
        wait_for("an answer", lambda: answered_by(client, (ip, 80)) == f"{pod.ip} {s.a.ip}")
        quote = IP(src=ip, dst=s.a.ip, len=1400) / UDP(sport=80, dport=client.getsockname()[1], len=1380, chksum=0) / Raw(text)
        gateway = str(next(ipaddress.ip_network(s.lab.node("node1")["subnet"]).hosts()))
        frame = Ether(src=mac_of(s.a.ip), dst=mac_of(gateway)) / IP(src=s.a.ip, dst=ip) / ICMP(type=3, code=4, nexthopmtu=1300) / quote
        out.send(frame)
        wait_for("the error", lambda: there.heard(text))
        heard = Ether(next(f for f in there.read() if text in f))
        quoted = heard[ICMP].payload
        assert (heard[IP].src, heard[IP].dst, quoted.src, quoted.dst, quoted.sport) == (s.a.ip, pod.ip, pod.ip, s.a.ip, PORT)


def answered_by(sock, target):
    sock.sendto(b"?", target)
    if select.select([sock], [], [], 0.5)[0]:
        return sock.recv(64).decode()
    return None


def test_trace_through_services(any_plugin):
    s = any_plugin
    far, near, own = s.service("far", [s.c]), s.service("near", [s.b], type="NodePort"), s.service("own", [s.a])
    empty = s.service("empty", [])
    assert s.a.can_ping(s.c.ip)  # what the switch has no neighbour for it cannot trace to the end

    def trace(to, port=80, source="red/a", code=0):
        r = tenet(s, "trace", "--lab", s.lab.name, "-o", "json", source, to, "tcp", str(port), check=False)
        assert r.returncode == code, r.stdout + r.stderr
        return json.loads(r.stdout)

    for to, pod, halves in (("red/far", s.c, 2), (far, s.c, 2), (near, s.b, 1), ("red/own", s.a, 1)):
        t = trace(to)
        service = t["halves"][0]["service"]
        assert service["endpoint"] == pod.ip and service["endpointPort"] == PORT and service["endpoints"] == 1
        assert len(t["halves"]) == halves and t["verdict"]["action"] == "deliver" and t["verdict"]["agreed"], t
    t = trace(s.nodes["node2"], s.node_ports("near")["tcp"])
    assert t["halves"][0]["service"]["name"] == "red/near" and t["verdict"]["action"] == "deliver"
    t = trace("default/kubernetes", 443)  # the masters, which are no pods
    assert t["halves"][0]["service"]["name"] == "default/kubernetes" and t["verdict"]["action"] == "host", t
    assert trace(empty, code=1)["verdict"]["cause"] == "service-without-endpoints"
    assert trace(far, 81, code=1)["verdict"]["cause"] == "service-not-available"
    foreign = trace("red/far", source="blue/x", code=1 if "multitenant" in s.plugin else 0)
    if "multitenant" in s.plugin:
        assert foreign["verdict"]["cause"] == "service-of-other-project"
    text = tenet(s, "trace", "--lab", s.lab.name, "red/a", "red/far", "tcp", "80").stdout
    assert f"to service red/far port 80: endpoint {s.c.ip}:{PORT}, one of 1" in text
    # Each rule is somebody's, and says what it is there for.
    if not s.lab.has_ovs("node1"):
        assert "Service red/far" in {i["object"] for i in s.lab.maps("node1", "services")}
        return
    flows = json.loads(tenet(s, "node", "flows", "--lab", s.lab.name, "--node", "node1", "-o", "json").stdout)
    flows = flows[0]["flows"]
    assert not [f for f in flows if not f["meaning"] or f["object"] == "unknown"], flows
    assert [f for f in flows if f["object"] == "service red/far"]
