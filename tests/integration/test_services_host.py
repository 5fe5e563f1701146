# SPDX-License-Identifier: Apache-2.0
"""Services for the host and for clients from outside, with real packets: cluster IPs, node ports, external and ingress
addresses, traffic policies, affinity, changes and restarts under load, the table restored, and the userspace proxy."""
import collections
import contextlib
import json
import pathlib
import re
import threading
import time

import pytest

from lab import run, wait_for

NS = "web"
SERVE = """
import socket, sys, threading
name, port = sys.argv[1], int(sys.argv[2])
t, u = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
t.bind(("", port)); u.bind(("", port)); t.listen(512)
def udp():
    while True:
        data, peer = u.recvfrom(2048)
        u.sendto(f"{name} {peer[0]}".encode(), peer)
def one(c, peer):
    c.sendall(f"{name} {peer[0]}\\n".encode())
    while True:
        data = c.recv(65536)
        if not data:
            break
        c.sendall(data)
    c.close()
threading.Thread(target=udp, daemon=True).start()
print("ready", flush=True)
while True:
    threading.Thread(target=one, args=t.accept(), daemon=True).start()
"""
# One line an attempt: what the server said, or the error.
ASK = """
import socket, sys
proto, target, n, timeout = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
host, port = target.rsplit(":", 1)
for _ in range(n):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM)
    s.settimeout(timeout)
    try:
        s.connect((host, int(port)))
        if proto == "udp":
            s.send(b"x")
        print(s.recv(64).decode().strip() or "closed", flush=True)
    except OSError as e:
        print("error", type(e).__name__, flush=True)
    s.close()
"""


class Services:
    def __init__(self, lab):
        self.lab, self.servers = lab, []
        lab.project(NS)
        self.pods = {name: lab.pod(f"{NS}/{name}", node) for name, node in
                     (("a", "node1"), ("b", "node2"), ("c", "node1"))}
        for name, pod in self.pods.items():
            self.serve(pod.popen, name, 8080)
        self.host = {n: lab.node(n)["hostIP"] for n in ("node1", "node2")}

    def serve(self, popen, name, port):
        proc = popen(["/usr/bin/python3", "-c", SERVE, name, str(port)])
        assert proc.stdout.readline().strip() == "ready"
        self.servers.append(proc)
        return proc

    def stop(self):
        for proc in self.servers:
            proc.kill()
            proc.wait()
            proc.stdout.close()

    def apply(self, obj):
        r = self.lab.kubectl("apply", "-f", "-", input=json.dumps(obj))
        return r.stdout

    def endpoints(self, name, pods, port=8080, protocol="TCP", extra=()):
        """The slice of a service without a selector: pods by name, and (address, node) pairs."""
        ends = [{"addresses": [self.pods[p].ip], "nodeName": self.pods[p].node,
                 "targetRef": {"kind": "Pod", "namespace": NS, "name": p}} for p in pods]
        ends += [{"addresses": [ip]} for ip in extra]
        self.apply({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                    "metadata": {"name": f"{name}-s", "namespace": NS,
                                 "labels": {"kubernetes.io/service-name": name}},
                    "ports": [{"name": "p", "port": port, "protocol": protocol}], "endpoints": ends})

    def service(self, name, pods, port=80, protocol="TCP", extra=(), wait=True, **spec):
        """Makes the service, waits until every node has it, and returns it."""
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NS},
                    "spec": {"ports": [{"name": "p", "port": port, "protocol": protocol, "targetPort": 8080}], **spec}})
        self.endpoints(name, pods, protocol=protocol, extra=extra)
        got = self.lab.object("service", name, "-n", NS)
        if wait:
            self.settled(got["spec"]["clusterIP"], pods)
        return got

    def settled(self, ip, pods, nodes=("node1", "node2")):
        want = sorted(self.pods[p].ip for p in pods)
        for node in nodes:
            wait_for(f"{ip} -> {pods} on {node}", lambda n=node: self.programmed(n, ip) == want)

    def programmed(self, node, ip):
        r = self.lab.ns(node, ["nft", "-j", "list", "map", "ip", "tenet-services", "endpoints"], check=False)
        if r.returncode:
            return None
        elements = [x["map"].get("elem", []) for x in json.loads(r.stdout)["nftables"] if "map" in x][0]
        return sorted({value["concat"][0] for key, value in elements if key["concat"][0] == ip})

    def ask(self, where, target, n=1, proto="tcp", timeout=5.0):
        """What servers answered to 'n' attempts from a host of the lab: [(server, client's address)], or errors."""
        out = self.lab.ns(where, ["/usr/bin/python3", "-c", ASK, proto, target, str(n), str(timeout)]).stdout
        return [tuple(line.split()) for line in out.splitlines()]

    def names(self, *args, **kw):
        return {answer[0] for answer in self.ask(*args, **kw)}


@pytest.fixture(scope="module")
def services(make_lab):
    lab = make_lab("svchost", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    s = Services(lab)
    yield s
    s.stop()
    lab.down(check=False)


@contextlib.contextmanager
def outside_route(s, prefix, node):
    s.lab.ns("outside", ["ip", "route", "replace", prefix, "via", s.host[node]])
    yield
    s.lab.ns("outside", ["ip", "route", "del", prefix])


def metrics(lab, node):
    """What the agent says of its proxy; {} while it does not answer."""
    r = run(["curl", "-s", "--unix-socket", lab.node(node)["agentSocket"], "http://agent/metrics"], check=False)
    return {k: float(v) for k, v in re.findall(r"^(tenet_\w+) (\S+)$", r.stdout, re.M)}


def test_cluster_ip_from_the_hosts(services):
    ip = services.service("one", ["a", "b"])["spec"]["clusterIP"]
    for node in ("node1", "node2"):
        assert services.names(node, f"{ip}:80", n=20) == {"a", "b"}
        assert services.ask(node, f"{ip}:81", timeout=2) == [("error", "ConnectionRefusedError")]
    with outside_route(services, "172.30.0.0/16", "node1"):
        assert services.names("outside", f"{ip}:80", n=20) == {"a", "b"}


def test_udp(services):
    ip = services.service("u", ["a", "b"], protocol="UDP")["spec"]["clusterIP"]
    assert services.names("node1", f"{ip}:80", n=40, proto="udp") == {"a", "b"}


def test_node_port_at_every_node(services):
    got = services.service("np", ["a", "b"], type="NodePort")
    port = got["spec"]["ports"][0]["nodePort"]
    for node in ("node1", "node2"):
        for where in ("outside", "node1", "node2"):
            assert services.names(where, f"{services.host[node]}:{port}", n=20) == {"a", "b"}
    assert services.names("node1", f"127.0.0.1:{port}", n=20) == {"a", "b"}
    # Pods see a node, which is where their answers have to go.
    seen = {a[1] for a in services.ask("outside", f"{services.host['node1']}:{port}", n=20)}
    assert all(address.startswith("10.128.") for address in seen)


def test_external_and_ingress_addresses(services):
    got = services.service("ext", ["a", "b"], type="LoadBalancer", externalIPs=["192.0.2.77"])
    ingress = wait_for("an ingress address", lambda: services.lab.object("service", "ext", "-n", NS)["status"].get(
        "loadBalancer", {}).get("ingress"))[0]["ip"]
    services.settled(ingress, ["a", "b"])
    assert got["spec"]["clusterIP"] != ingress
    for address in ("192.0.2.77", ingress):
        with outside_route(services, f"{address}/32", "node2"):
            assert services.names("outside", f"{address}:80", n=20) == {"a", "b"}
        assert services.names("node1", f"{address}:80", n=20) == {"a", "b"}


def test_source_ranges_of_a_load_balancer(services):
    services.service("lb", ["a"], type="LoadBalancer", loadBalancerSourceRanges=["203.0.113.0/24"])
    ingress = services.lab.object("service", "lb", "-n", NS)["status"]["loadBalancer"]["ingress"][0]["ip"]
    services.settled(ingress, ["a"])
    with outside_route(services, f"{ingress}/32", "node1"):
        assert services.ask("outside", f"{ingress}:80", timeout=1.5) == [("error", "TimeoutError")]
        services.lab.kubectl("patch", "service", "lb", "-n", NS, "-p",
                             json.dumps({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24", "0.0.0.0/0"]}}))
        wait_for("the new ranges", lambda: services.names("outside", f"{ingress}:80", timeout=1.5) == {"a"})


def test_local_external_policy_keeps_the_source(services):
    got = services.service("loc", ["a", "b"], type="NodePort", externalTrafficPolicy="Local")
    port = got["spec"]["ports"][0]["nodePort"]
    source = services.lab.ns("outside", ["ip", "-o", "route", "get", services.host["node1"]]).stdout
    source = re.search(r"src (\S+)", source).group(1)
    assert set(services.ask("outside", f"{services.host['node1']}:{port}", n=20)) == {("a", source)}
    assert set(services.ask("outside", f"{services.host['node2']}:{port}", n=20)) == {("b", source)}
    services.endpoints("loc", ["a"])
    services.settled(got["spec"]["clusterIP"], ["a"])
    assert services.ask("outside", f"{services.host['node2']}:{port}", timeout=1.5) == [("error", "TimeoutError")]
    assert services.names("node2", f"{services.host['node2']}:{port}") == {"a"}  # The node's own are not from outside.


def test_balancers_hear_where_endpoints_are(services):
    """healthCheckNodePort: 200 with the number of endpoints of the node, 503 where there are none."""
    got = services.service("health", ["a", "c"], type="LoadBalancer", externalTrafficPolicy="Local")
    port = got["spec"]["healthCheckNodePort"]

    def ask(node):
        r = services.lab.ns("outside", ["curl", "-s", "-w", " %{http_code}", f"http://{services.host[node]}:{port}/"],
                            check=False)
        return r.stdout.split("\n")

    def answer(node, n):
        body, code = ask(node)
        assert json.loads(body) == {"service": {"namespace": NS, "name": "health"}, "localEndpoints": n,
                                    "serviceProxyHealthy": True}
        return code.strip()

    assert answer("node1", 2) == "200" and answer("node2", 0) == "503"
    services.endpoints("health", ["b"])
    services.settled(got["spec"]["clusterIP"], ["b"])
    assert answer("node1", 0) == "503" and answer("node2", 1) == "200"
    services.lab.kubectl("delete", "service", "health", "-n", NS)
    wait_for("nobody to answer", lambda: ask("node1") == [" 000"])


def test_local_internal_policy(services):
    ip = services.service("int", ["a", "b"], wait=False, internalTrafficPolicy="Local")["spec"]["clusterIP"]
    for node, pod in (("node1", "a"), ("node2", "b")):
        services.settled(ip, [pod], [node])
        assert services.names(node, f"{ip}:80", n=20) == {pod}


def test_session_affinity(services):
    got = services.service("aff", ["a", "b"], type="NodePort", sessionAffinity="ClientIP")
    ip, port = got["spec"]["clusterIP"], got["spec"]["ports"][0]["nodePort"]
    assert len(services.names("node1", f"{ip}:80", n=20)) == 1
    first = services.names("outside", f"{services.host['node1']}:{port}", n=20)
    assert len(first) == 1
    other = "b" if first == {"a"} else "a"
    services.endpoints("aff", [other])
    services.settled(ip, [other])
    assert services.names("outside", f"{services.host['node1']}:{port}", n=5) == {other}


def test_no_endpoints_is_refused(services):
    got = services.service("none", [], type="NodePort")
    port = got["spec"]["ports"][0]["nodePort"]
    for target in (f"{got['spec']['clusterIP']}:80", f"{services.host['node1']}:{port}"):
        wait_for(f"{target} to be refused",
                 lambda t=target: services.ask("node1", t, timeout=2) == [("error", "ConnectionRefusedError")])
    assert services.ask("outside", f"{services.host['node1']}:{port}", timeout=2) == [("error", "ConnectionRefusedError")]


def test_an_idle_service_is_woken_from_the_host_and_from_outside(services):
    """Its connections are accepted and wait; an Event asks for pods; with endpoints they go on."""
    got = services.service("idle", [], type="NodePort")
    port = got["spec"]["ports"][0]["nodePort"]
    services.lab.kubectl("annotate", "service", "idle", "-n", NS, "idling.alpha.openshift.io/idled-at=2026-11-21T00:00:00Z")
    wait_for("the holder", lambda: "goto port-" in services.lab.ns(
        "node1", ["nft", "list", "map", "ip", "tenet-services", "frontends"]).stdout)
    clients = [services.lab.ns_popen(where, ["/usr/bin/python3", "-c", ASK, "tcp", target, "1", "60"])
               for where, target in (("node1", f"{got['spec']['clusterIP']}:80"),
                                     ("outside", f"{services.host['node1']}:{port}"))]
    try:
        wait_for("the Event", lambda: [e for e in services.lab.objects("events", "-n", NS) if e["reason"] == "NeedPods"
                                       and e["involvedObject"]["name"] == "idle"])
        wait_for("both to wait", lambda: metrics(services.lab, "node1").get("tenet_proxy_held") == 2)
        services.endpoints("idle", ["b"])
        for client in clients:
            assert client.stdout.readline().split()[0] == "b"
    finally:
        for client in clients:
            client.kill()
            client.wait()
            client.stdout.close()


class Load:
    """New connections from a host of the lab without a pause, and one that stays open."""

    CODE = """
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
doing = ""
def connect():
    global doing
    doing = "connecting"
    s = socket.create_connection((host, int(port)), timeout=10)
    doing = f"reading-{s.getsockname()[1]}"
    f = s.makefile("rw")
    return s, f, f.readline().split()[0]
kept, f, _ = connect()
while True:
    try:
        s, g, name = connect()
        g.close(); s.close()
    except OSError as e:
        unknown = [line.split()[0] for line in open("/proc/net/arp") if " 0x0 " in line]
        name = f"error-{type(e).__name__}-{e.errno}-{doing}-unknown-{unknown}"
    try:
        f.write("hello\\n"); f.flush()
        if f.readline() != "hello\\n":
            name = "error-cut"
    except OSError:
        name = "error-cut"
    print(name, flush=True)
"""

    def __init__(self, services, where, target):
        self.proc = services.lab.ns_popen(where, ["/usr/bin/python3", "-c", self.CODE, target])
        self.seen, self.lock = [], threading.Lock()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.more(20)

    def read(self):
        for line in self.proc.stdout:
            with self.lock:
                self.seen.append(line.strip())

    def more(self, n):
        """Waits for 'n' more and returns them."""
        start = len(self.seen)
        wait_for(f"{n} connections under load", lambda: len(self.seen) >= start + n)
        with self.lock:
            return self.seen[start:]

    def stop(self):
        self.proc.kill()
        self.proc.wait()
        self.thread.join()
        self.proc.stdout.close()
        return collections.Counter(name for name in self.seen if name.startswith("error"))


def test_endpoints_change_under_load(services):
    got = services.service("load", ["a", "b", "c"])
    ip = got["spec"]["clusterIP"]
    load = Load(services, "node1", f"{ip}:80")
    for pods in (["a", "c"], ["a"], ["a", "b", "c"], ["b", "c"]) * 2:
        services.endpoints("load", pods)
        services.settled(ip, pods, ["node1"])
        assert set(load.more(25)[5:]) <= set(pods)
    assert not load.stop()


def test_a_chain_is_there_before_anything_leads_to_it(services):
    """Else a packet that meets the change finds the one, and the other empty, and goes on untranslated."""
    monitor = services.lab.ns_popen("node1", ["stdbuf", "-oL", "nft", "monitor"])
    seen, chain = [], "remember-4321"
    reader = threading.Thread(target=lambda: seen.extend(monitor.stdout), daemon=True)
    reader.start()
    try:
        def listens():
            services.lab.ns("node1", ["nft", "add table ip listens; delete table ip listens"])
            return seen
        wait_for("the monitor to listen", listens)
        services.service("new", ["a"], sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 4321}})
        wait_for("it to tell", lambda: any(f"jump {chain}" in line for line in seen))
    finally:
        monitor.kill()
        monitor.wait()
        reader.join()
        monitor.stdout.close()
    made, used = (next(i for i, line in enumerate(seen) if what in line)
                  for what in (f"add chain ip tenet-services {chain}", f"jump {chain}"))
    assert made < used and any("new generation" in line for line in seen[made:used]), seen


def own_chains(services):
    """Those of the proxy's table with their numbers; the node's own table may be listed before or behind it."""
    text = services.lab.ns("node1", ["nft", "-a", "list", "chains", "ip"]).stdout
    return re.search(r"^table ip tenet-services \{.*?^\}", text, re.M | re.S)[0]


def test_agent_restarts_under_load(services):
    ip = services.service("restart", ["a", "b"])["spec"]["clusterIP"]
    handles = own_chains(services)
    load = Load(services, "node1", f"{ip}:80")
    services.lab.cmd("node", "restart", "node1")
    wait_for("the proxy", lambda: metrics(services.lab, "node1").get("tenet_proxy_current") == 1)
    load.more(50)
    assert not load.stop()
    assert own_chains(services) == handles
    now = metrics(services.lab, "node1")
    assert now["tenet_proxy_rewrites_total"] == 0 and now["tenet_proxy_syncs_total"] == 0


def test_a_removed_table_is_back_within_a_second(services):
    ip = services.service("back", ["a"])["spec"]["clusterIP"]
    before = metrics(services.lab, "node1")["tenet_proxy_restored_total"]
    services.lab.ns("node1", ["nft", "delete", "table", "ip", "tenet-services"])
    began = time.monotonic()
    wait_for("the table", lambda: services.programmed("node1", ip))
    assert time.monotonic() - began < 5  # A second, and the time that looking takes on a busy machine.
    assert services.names("node1", f"{ip}:80") == {"a"}
    # The table is in the kernel before the worker that put it there has counted it.
    wait_for("the count", lambda: metrics(services.lab, "node1")["tenet_proxy_restored_total"] == before + 1)


def test_a_pod_does_not_use_the_hosts_table(services):
    """Its packets would lose their VNID there: one that comes to the host for a service is not translated."""
    ip = services.service("pods", ["b"])["spec"]["clusterIP"]
    rules = services.lab.ns("node1", ["nft", "list", "chain", "ip", "tenet-services", "to-1"]).stdout
    assert 'iifname "tun0" jump from-pods' in rules
    other = services.lab
    other.project("stranger")
    pod = other.pod("stranger/x", "node1")
    r = pod.ns(["/usr/bin/python3", "-c", ASK, "tcp", f"{ip}:80", "1", "2"])
    assert r.stdout.startswith("error")


def test_the_api_away_changes_nothing(services):
    ip = services.service("away", ["a"])["spec"]["clusterIP"]
    services.lab.cmd("master", "stop")
    try:
        wait_for("the agent to see it",
                 lambda: metrics(services.lab, "node1").get("tenet_node_services_connected") == 0)
        assert services.names("node1", f"{ip}:80") == {"a"}
    finally:
        services.lab.cmd("master", "start")
    wait_for("the master again", lambda: metrics(services.lab, "node1").get("tenet_node_services_connected") == 1)


# ---- userspace ----

@pytest.fixture(scope="module")
def userspace(services):
    """node1 with the userspace proxy."""
    path = services.lab.folder("node1") / "node-config.yaml"
    before = path.read_text()
    path.write_text(before + "proxyArguments:\n  proxy-mode: [userspace]\n")
    services.lab.cmd("node", "restart", "node1")
    wait_for("the userspace proxy", lambda: metrics(services.lab, "node1").get("tenet_proxy_current") == 1)
    yield services
    path.write_text(before)
    services.lab.cmd("node", "restart", "node1")
    wait_for("the proxy", lambda: metrics(services.lab, "node1").get("tenet_proxy_current") == 1)


def serve_by_proxy(s, name, pods, **kw):
    """A service that node1's proxy has with so many endpoints."""
    got = s.service(name, pods, wait=False, **kw)
    ip = got["spec"]["clusterIP"]
    protocol = kw.get("protocol", "TCP").lower()
    wait_for(f"{ip} at the proxy", lambda: re.search(
        rf"{ip} \. {protocol} \. 80 : goto port-", s.lab.ns("node1", ["nft", "list", "map", "ip", "tenet-services",
                                                                       "frontends"]).stdout))
    return got


def test_userspace_accepts_and_spreads(userspace):
    got = serve_by_proxy(userspace, "us", ["a", "b"], type="NodePort")
    port = got["spec"]["ports"][0]["nodePort"]
    ip = got["spec"]["clusterIP"]
    answers = collections.Counter(a[0] for a in userspace.ask("node1", f"{ip}:80", n=20))
    assert answers == {"a": 10, "b": 10}  # In turn.
    assert userspace.names("outside", f"{userspace.host['node1']}:{port}", n=20) == {"a", "b"}
    assert userspace.names("node1", f"127.0.0.1:{port}", n=20) == {"a", "b"}
    assert metrics(userspace.lab, "node1")["tenet_proxy_connections"] == 0


def test_userspace_tries_the_next_endpoint(userspace):
    """One endpoint refuses and one does not answer at all: every connection reaches the third."""
    unused = "203.0.113.200"  # Nobody answers there, from anywhere in the lab.
    ip = serve_by_proxy(userspace, "retry", ["a"], extra=[userspace.host["node2"], unused])["spec"]["clusterIP"]
    assert set(a[0] for a in userspace.ask("node1", f"{ip}:80", n=12, timeout=20)) == {"a"}
    assert metrics(userspace.lab, "node1")["tenet_proxy_retries_total"] > 0


def test_userspace_half_close_and_much_data(userspace):
    ip = serve_by_proxy(userspace, "echo", ["b"])["spec"]["clusterIP"]
    code = """
import hashlib, os, socket, sys, threading
s = socket.create_connection((sys.argv[1], 80), timeout=30)
f = s.makefile("rb"); f.readline()
data = os.urandom(1 << 20) * 8
def send():
    s.sendall(data); s.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
print(hashlib.sha256(f.read()).digest() == hashlib.sha256(data).digest())
t.join()
"""
    assert userspace.lab.ns("node1", ["/usr/bin/python3", "-c", code, ip]).stdout.strip() == "True"


def test_userspace_udp(userspace):
    ip = serve_by_proxy(userspace, "usu", ["a", "b"], protocol="UDP")["spec"]["clusterIP"]
    assert userspace.names("node1", f"{ip}:80", n=10, proto="udp") == {"a", "b"}
    # The socket is for what was redirected to it: who sends there himself would pass by all checks.
    rules = userspace.lab.ns("node1", ["nft", "list", "map", "ip", "tenet-services", "frontends"]).stdout
    port = re.search(rf"{ip} \. udp \. 80 : goto port-(\d+)", rules).group(1)
    assert userspace.ask("outside", f"{userspace.host['node1']}:{port}", proto="udp", timeout=1) == [
        ("error", "TimeoutError")]
    # An endpoint without a listener is passed over when it says so.
    ip = serve_by_proxy(userspace, "usr", ["a"], protocol="UDP", extra=[userspace.host["node2"]])["spec"]["clusterIP"]
    answers = userspace.ask("node1", f"{ip}:80", n=8, proto="udp", timeout=1)
    assert "a" in {answer[0] for answer in answers}


def test_userspace_affinity_and_refusal(userspace):
    ip = serve_by_proxy(userspace, "usa", ["a", "b"], sessionAffinity="ClientIP")["spec"]["clusterIP"]
    assert len(userspace.names("node1", f"{ip}:80", n=12)) == 1
    got = userspace.service("usn", [], wait=False)
    wait_for("the refusal", lambda: userspace.ask("node1", f"{got['spec']['clusterIP']}:80", timeout=2) ==
             [("error", "ConnectionRefusedError")])


def test_userspace_serves_pods_of_the_project(userspace):
    """A pod's connection goes to the proxy of its node, once br0 has compared VNIDs; dead endpoints are passed over."""
    got = serve_by_proxy(userspace, "usp", ["a", "b"], extra=[userspace.host["node2"]], type="NodePort")
    ip, port = got["spec"]["clusterIP"], got["spec"]["ports"][0]["nodePort"]
    accepted = metrics(userspace.lab, "node1")
    for target in (f"{ip}:80", f"{userspace.host['node1']}:{port}"):
        r = userspace.pods["c"].ns(["/usr/bin/python3", "-c", ASK, "tcp", target, "12", "10"])
        assert {line.split()[0] for line in r.stdout.splitlines()} == {"a", "b"}
        seen = {line.split()[1] for line in r.stdout.splitlines()}
        assert userspace.pods["c"].ip not in seen  # The proxy is the client.
    assert metrics(userspace.lab, "node1")["tenet_proxy_retries_total"] > accepted["tenet_proxy_retries_total"]
    userspace.lab.project("foreign")
    pod = userspace.lab.pod("foreign/x", "node1")
    for target in (f"{ip}:80", f"{userspace.host['node1']}:{port}"):
        r = pod.ns(["/usr/bin/python3", "-c", ASK, "tcp", target, "1", "1.5"])
        assert r.stdout.split() == ["error", "TimeoutError"]


def test_userspace_is_refused_under_networkpolicy(make_lab):
    lab = make_lab("svcnp", nodes=1, plugin="redhat/openshift-ovs-networkpolicy")
    with open(lab.folder("node1") / "node-config.yaml", "a") as f:
        f.write("proxyArguments:\n  proxy-mode: [userspace]\n")
    lab.cmd("node", "restart", "node1", check=False)
    wait_for("the reason", lambda: "proxyArguments.proxy-mode: userspace hides from redhat/openshift-ovs-networkpolicy" in
             lab.agent_log("node1"))
    lab.down()


def test_userspace_leaves_out_pods_of_other_projects(userspace):
    """The proxy's own packets reach every project, so an address of the pod network that is no pod of the service's
    project is none of its endpoints."""
    userspace.lab.project("secret")
    pod = userspace.lab.pod("secret/x", "node1")
    server = userspace.serve(pod.popen, "secret", 8080)
    try:
        ip = serve_by_proxy(userspace, "leak", [], extra=[pod.ip])["spec"]["clusterIP"]
        answers = userspace.ask("node1", f"{ip}:80", n=2, timeout=2)
        assert {answer[0] for answer in answers} == {"error"}
    finally:
        server.kill()
