# SPDX-License-Identifier: Apache-2.0
"""Services and endpoints in the registry: kubectl, allocation under load and under faults, endpoints that follow pods."""
import concurrent.futures
import ipaddress
import json
import random
import signal
import subprocess
import tempfile
import threading
import types

import pytest
from kubernetes import client

import ha
import lab as lablib
from ha import Gone
from lab import TENET, run, wait_for
from test_auth import Cluster

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
NETWORK = ipaddress.ip_network("172.30.0.0/16")
INGRESS = ipaddress.ip_network("172.29.0.0/16")


def plain(tmp, name="master", network=None, kubernetes=None):
    m = ha.Master(tmp, name, types.SimpleNamespace(endpoints=""),
                  storage={"backend": "sqlite", "path": f"{tmp}/{name}.db"},
                  networkConfig={"networkPluginName": "redhat/openshift-ovs-multitenant", **(network or {})},
                  kubernetesMasterConfig=kubernetes or {})
    m.wait_ready()
    return m


def put_subnet(master):
    """Of the node of all pods: only what it gives out is their address."""
    subnet = {"metadata": {"name": "n1"}, "host": "n1", "hostIP": "192.0.2.1", "subnet": "10.128.0.0/14"}
    assert master.call("POST", "/apis/network.openshift.io/v1/hostsubnets", subnet)[0] == 201


@pytest.fixture(scope="module")
def master():
    with tempfile.TemporaryDirectory(prefix="tenet-svc-") as tmp:
        m = plain(tmp, network={"externalIPNetworkCIDRs": ["80.11.0.0/16", "!80.11.13.0/24"]},
                  kubernetes={"masterIP": "192.0.2.99"})
        put_subnet(m)
        yield m
        m.kill(signal.SIGTERM)


@pytest.fixture
def ns(master):
    """A namespace of the test's own."""
    name = f"t{random.randrange(1 << 40):x}"
    assert master.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    yield name
    master.call("DELETE", f"/api/v1/namespaces/{name}")


def kubectl(master, *args, check=True, **kw):
    return run(["kubectl", "--server", f"http://127.0.0.1:{master.port}", *args], check=check, **kw)


def service(name, spec=None, **meta):
    return {"metadata": {"name": name, **meta}, "spec": {"ports": [{"port": 80}], **(spec or {})}}


def pod(name, labels, ports=()):
    return {"metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "x", "ports": [
                {"name": n, "containerPort": p} for n, p in ports]}]}}


def status(ip, ready=True):
    return {"status": {"phase": "Running", "podIP": ip,
                       "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}}


def patch(master, path, body):
    code, _, answer = master.raw("PATCH", path, body, headers={"Content-Type": "application/merge-patch+json"})
    assert code == 200, answer
    return answer


def put_pod(master, ns, name, ip, labels, ports=(), ready=True):
    path = f"/api/v1/namespaces/{ns}/pods"
    code, answer = master.call("POST", path, pod(name, labels, ports))
    assert code == 201, answer
    patch(master, f"{path}/{name}/status", status(ip, ready))


def addresses(master, ns, name):
    """Ready addresses with ports, and those that are not, of the Endpoints."""
    code, ep = master.call("GET", f"/api/v1/namespaces/{ns}/endpoints/{name}")
    if code != 200:
        return None
    found = set(), set()
    for s in ep.get("subsets", []):
        for i, key in enumerate(("addresses", "notReadyAddresses")):
            for a in s.get(key, []):
                found[i].update((a["ip"], p["port"]) for p in s.get("ports", [{"port": 0}]))
    return found


def sliced(master, ns, name):
    """The same of the slices, by their condition ready."""
    found = set(), set()
    for s in master.items(SLICES.format(ns) + f"?labelSelector=kubernetes.io/service-name={name}"):
        for e in s["endpoints"]:
            ready = e.get("conditions", {}).get("ready", True)
            found[0 if ready else 1].update((e["addresses"][0], p["port"]) for p in s.get("ports") or [{"port": 0}])
    return found


def wait_endpoints(master, ns, name, ready, unready=()):
    want = set(ready), set(unready)
    wait_for(f"endpoints {want}", lambda: addresses(master, ns, name) == want)
    wait_for(f"slices {want}", lambda: sliced(master, ns, name) == want)


# ---- kubectl ----

def test_kubectl_exposes_pods_and_shows_services_as_users_know_them(master, ns):
    put_pod(master, ns, "web", "10.128.0.5", {"app": "web"}, [("http", 9376)])
    out = kubectl(master, "-n", ns, "expose", "pod", "web", "--port", "80", "--target-port", "http", "--name", "web").stdout
    assert out.strip() == "service/web exposed"
    wait_endpoints(master, ns, "web", {("10.128.0.5", 9376)})
    ip = kubectl(master, "-n", ns, "get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}").stdout
    assert ipaddress.ip_address(ip) in NETWORK
    rows = [line.split() for line in kubectl(master, "-n", ns, "get", "svc", "-o", "wide").stdout.splitlines()]
    assert rows[0] == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE", "SELECTOR"]
    assert rows[1][:5] == ["web", "ClusterIP", ip, "<none>", "80/TCP"] and rows[1][6] == "app=web"
    rows = [line.split() for line in kubectl(master, "-n", ns, "get", "endpoints").stdout.splitlines()]
    assert rows[0] == ["NAME", "ENDPOINTS", "AGE"] and rows[1][:2] == ["web", "10.128.0.5:9376"]
    rows = [line.split() for line in kubectl(master, "-n", ns, "get", "endpointslices").stdout.splitlines()]
    assert rows[0] == ["NAME", "ADDRESSTYPE", "PORTS", "ENDPOINTS", "AGE"]
    assert rows[1][0].startswith("web-") and rows[1][1:4] == ["IPv4", "9376", "10.128.0.5"]
    text = kubectl(master, "-n", ns, "describe", "svc", "web").stdout
    assert "10.128.0.5:9376" in text and ip in text and "app=web" in text
    # Ours says the same.
    ours = tenet(master, "describe", "-n", ns, "svc", "web").stdout
    fields = [line.split(":", 1) for line in ours.splitlines() if ":" in line]
    theirs = dict([f[0], f[1].strip()] for f in (line.split(":", 1) for line in text.splitlines() if ":" in line))
    for label, value in fields:
        if label in theirs and label != "Annotations":
            assert " ".join(value.split()) == " ".join(theirs[label].split()), (label, value, theirs[label])
    assert {"Selector", "Type", "Port", "TargetPort", "Endpoints", "Session Affinity"} <= {f[0] for f in fields}
    out = tenet(master, "get", "-n", ns, "svc,endpoints,endpointslices").stdout
    assert "service/web" in out and "endpoints/web" in out and "endpointslice.discovery.k8s.io/web-" in out
    assert "ports" in kubectl(master, "explain", "service.spec").stdout
    assert "conditions" in kubectl(master, "explain", "endpointslices.endpoints",
                                   "--api-version", "discovery.k8s.io/v1").stdout


def test_kubectl_makes_each_type_and_changes_between_them(master, ns):
    kubectl(master, "-n", ns, "create", "service", "nodeport", "np", "--tcp", "80:8080")
    kubectl(master, "-n", ns, "create", "service", "loadbalancer", "lb", "--tcp", "80")
    kubectl(master, "-n", ns, "create", "service", "externalname", "en", "--external-name", "a.example", "--tcp", "80")
    kubectl(master, "-n", ns, "create", "service", "clusterip", "none", "--clusterip", "None", "--tcp", "80")
    by_name = {s["metadata"]["name"]: s for s in json.loads(kubectl(master, "-n", ns, "get", "svc", "-o", "json").stdout)["items"]}
    port = by_name["np"]["spec"]["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767 and by_name["np"]["spec"]["ports"][0]["targetPort"] == 8080
    assert ipaddress.ip_address(by_name["lb"]["status"]["loadBalancer"]["ingress"][0]["ip"]) in INGRESS
    assert by_name["none"]["spec"]["clusterIP"] == "None" and "clusterIP" not in by_name["en"]["spec"]
    # Strategic merge finds ports by their number.
    kubectl(master, "-n", ns, "patch", "svc", "np", "-p", '{"spec":{"ports":[{"port":81,"name":"b","protocol":"TCP"},{"port":80,"name":"a"}]}}')
    ports = {p["name"]: p["nodePort"] for p in json.loads(kubectl(master, "-n", ns, "get", "svc", "np", "-o", "json").stdout)["spec"]["ports"]}
    assert ports["a"] == port and ports["b"] != port
    kubectl(master, "-n", ns, "patch", "svc", "np", "-p", '{"spec":{"type":"ClusterIP"}}')
    spec = json.loads(kubectl(master, "-n", ns, "get", "svc", "np", "-o", "json").stdout)["spec"]
    assert all("nodePort" not in p for p in spec["ports"]) and spec["clusterIP"] == by_name["np"]["spec"]["clusterIP"]
    # The port is free again.
    code, other = master.call("POST", f"/api/v1/namespaces/{ns}/services",
                              service("other", {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}))
    assert code == 201, other
    # apply, as of a manifest from the seeds: the older name of the address, and nodePort 0.
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "docker-registry"},
                "spec": {"selector": {"docker-registry": "default"}, "portalIP": "172.30.136.123",
                         "ports": [{"nodePort": 0, "port": 5000, "protocol": "TCP", "targetPort": 5000}]}}
    for _ in range(2):
        kubectl(master, "-n", ns, "apply", "--validate=false", "-f", "-", input=json.dumps(manifest))
    got = json.loads(kubectl(master, "-n", ns, "get", "svc", "docker-registry", "-o", "json").stdout)
    assert got["spec"]["clusterIP"] == "172.30.136.123" and "portalIP" not in got["spec"]
    r = kubectl(master, "-n", ns, "patch", "svc", "docker-registry", "-p", '{"spec":{"clusterIP":"172.30.136.124"}}', check=False)
    assert r.returncode and "may not change once set" in r.stderr


def test_external_addresses_are_limited_by_the_configuration(master, ns):
    path = f"/api/v1/namespaces/{ns}/services"
    example = service("my-service", {"selector": {"app": "MyApp"}, "externalIPs": ["80.11.12.10"],
                                     "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 9376}]})
    code, answer = master.call("POST", path, example)
    assert code == 201 and answer["spec"]["externalIPs"] == ["80.11.12.10"], answer
    for ip in ("81.0.0.1", "80.11.13.1"):
        code, answer = master.call("POST", path, service("b", {"externalIPs": [ip]}))
        assert code == 422 and answer["details"]["causes"][0]["field"] == "spec.externalIPs[0]", answer


def test_the_api_is_a_service(master):
    got = wait_for("the endpoints of the API", lambda: addresses(master, "default", "kubernetes"))
    assert got == ({("192.0.2.99", master.port)}, set())
    code, svc = master.call("GET", SERVICES + "/kubernetes")
    assert svc["spec"]["clusterIP"] == "172.30.0.1" and svc["spec"]["ports"][0]["port"] == 443
    wait_for("its slice", lambda: sliced(master, "default", "kubernetes") == got)
    # It comes back with the same address, which nobody else can get.
    code, answer = master.call("POST", SERVICES, service("thief", {"clusterIP": "172.30.0.1"}))
    assert code == 422 and "already allocated" in answer["message"], answer
    assert master.call("GET", SERVICES + "/openshift")[1]["spec"]["externalName"] == "kubernetes.default.svc.cluster.local"


# ---- endpoints ----

def test_endpoints_follow_the_pods(master, ns):
    assert master.call("POST", f"/api/v1/namespaces/{ns}/services", service(
        "web", {"selector": {"role": "webserver"}, "ports": [{"port": 80, "targetPort": "http"}]}))[0] == 201
    wait_endpoints(master, ns, "web", ())
    put_pod(master, ns, "nginx", "10.128.0.2", {"role": "webserver", "x": "1"}, [("http", 80)])
    put_pod(master, ns, "httpd", "10.128.0.3", {"role": "webserver"}, [("http", 8080)])
    put_pod(master, ns, "other", "10.128.0.4", {"role": "db"}, [("http", 80)])
    wait_endpoints(master, ns, "web", {("10.128.0.2", 80), ("10.128.0.3", 8080)})
    pods = f"/api/v1/namespaces/{ns}/pods"
    patch(master, f"{pods}/nginx/status", status("10.128.0.2", ready=False))
    wait_endpoints(master, ns, "web", {("10.128.0.3", 8080)}, {("10.128.0.2", 80)})
    patch(master, f"{pods}/other", {"metadata": {"labels": {"role": "webserver"}}})
    patch(master, f"{pods}/httpd", {"metadata": {"labels": {"role": None}}})
    wait_endpoints(master, ns, "web", {("10.128.0.4", 80)}, {("10.128.0.2", 80)})
    patch(master, f"/api/v1/namespaces/{ns}/services/web", {"spec": {"publishNotReadyAddresses": True}})
    wait_endpoints(master, ns, "web", {("10.128.0.4", 80), ("10.128.0.2", 80)})
    # While it ends it is in the slices only, as one that takes nothing new unless that is wanted.
    assert master.call("DELETE", f"{pods}/nginx?gracePeriodSeconds=60")[0] == 200
    wait_for("the pod to terminate", lambda: [e["conditions"] for s in master.items(SLICES.format(ns)) for e in s["endpoints"]
                                              if e["addresses"] == ["10.128.0.2"]] == [
        {"ready": True, "serving": False, "terminating": True}])
    assert master.call("DELETE", f"{pods}/nginx?gracePeriodSeconds=0")[0] == 200
    wait_endpoints(master, ns, "web", {("10.128.0.4", 80)})
    assert master.call("DELETE", f"/api/v1/namespaces/{ns}/services/web")[0] == 200
    wait_for("the endpoints to go", lambda: addresses(master, ns, "web") is None and not master.items(SLICES.format(ns)))


def test_endpoints_made_by_hand_stay_and_are_mirrored(master, ns):
    path = f"/api/v1/namespaces/{ns}"
    assert master.call("POST", f"{path}/services", service("ext"))[0] == 201
    subsets = [{"addresses": [{"ip": "80.1.2.3"}], "ports": [{"port": 8080}]}]
    code, ep = master.call("POST", f"{path}/endpoints", {"metadata": {"name": "ext"}, "subsets": subsets})
    assert code == 201, ep
    wait_endpoints(master, ns, "ext", {("80.1.2.3", 8080)})
    patch(master, f"{path}/endpoints/ext", {"subsets": [
        {"addresses": [{"ip": "80.1.2.4"}], "notReadyAddresses": [{"ip": "80.1.2.3"}], "ports": [{"port": 8080}]}]})
    wait_endpoints(master, ns, "ext", {("80.1.2.4", 8080)}, {("80.1.2.3", 8080)})
    # Of no service: nobody touches it.
    assert master.call("POST", f"{path}/endpoints", {"metadata": {"name": "alone"}, "subsets": subsets})[0] == 201
    assert master.call("DELETE", f"{path}/services/ext")[0] == 200
    wait_for("the mirror to go", lambda: not master.items(SLICES.format(ns)))
    assert addresses(master, ns, "alone") == ({("80.1.2.3", 8080)}, set())


def test_many_endpoints_are_cut_into_slices(master, ns):
    path = f"/api/v1/namespaces/{ns}"
    assert master.call("POST", f"{path}/services", service("big", {"selector": {"a": "b"}}))[0] == 201
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: put_pod(master, ns, f"p{i}", f"10.129.0.{i + 2}", {"a": "b"}), range(230)))
    want = {(f"10.129.0.{i + 2}", 80) for i in range(230)}
    wait_endpoints(master, ns, "big", want)
    slices = master.items(SLICES.format(ns))
    assert all(len(s["endpoints"]) <= 100 for s in slices) and len(slices) <= 5
    before = {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for s in slices}
    assert master.call("DELETE", f"{path}/pods/p100?gracePeriodSeconds=0")[0] == 200
    wait_endpoints(master, ns, "big", want - {("10.129.0.102", 80)})
    after = {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for s in master.items(SLICES.format(ns))}
    assert len(set(before.items()) - set(after.items())) == 1, "one slice changed"


# ---- idling ----

WIDGETS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.idle.example"},
           "spec": {"group": "idle.example", "scope": "Namespaced",
                    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": True, "storage": True,
                                  "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                                  "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
IDLED_AT, TARGETS, PREVIOUS = (f"idling.alpha.openshift.io/{x}" for x in ("idled-at", "unidle-targets", "previous-scale"))


def tenet(master, *args, check=True):
    return run([TENET, *args, "--server", f"http://127.0.0.1:{master.port}"], check=check)


def test_services_are_idled_and_come_back_when_they_are_wanted(master, ns):
    path, widgets = f"/api/v1/namespaces/{ns}", f"/apis/idle.example/v1/namespaces/{ns}/widgets"
    assert master.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)[0] == 201
    wait_for("the kind", lambda: master.call("GET", widgets)[0] == 200)
    widget = {"apiVersion": "idle.example/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 2}}
    code, widget = master.call("POST", widgets, widget)
    assert code == 201, widget
    owner = {"apiVersion": "idle.example/v1", "kind": "Widget", "name": "w", "uid": widget["metadata"]["uid"], "controller": True}

    def pods_of_widget(*numbers):
        """What a controller of widgets would do."""
        for i in numbers:
            body = pod(f"w{i}", {"app": "w"})
            body["metadata"]["ownerReferences"] = [owner]
            assert master.call("POST", f"{path}/pods", body)[0] == 201
            patch(master, f"{path}/pods/w{i}/status", status(f"10.131.0.{i + 2}"))

    def annotations(kind):
        return master.call("GET", f"{path}/{kind}/web")[1]["metadata"].get("annotations", {})

    def replicas():
        return master.call("GET", f"{widgets}/w/scale")[1]["spec"].get("replicas", 0)

    assert master.call("POST", f"{path}/services", service("web", {"selector": {"app": "w"}}))[0] == 201
    assert master.call("POST", f"{path}/services", service("bare", {"selector": {"app": "none"}}))[0] == 201
    pods_of_widget(0, 1)
    wait_endpoints(master, ns, "web", {("10.131.0.2", 80), ("10.131.0.3", 80)})
    out = tenet(master, "idle", "-n", ns, "web", "--dry-run").stdout
    assert "(dry run)" in out and replicas() == 2 and IDLED_AT not in annotations("services")
    r = tenet(master, "idle", "-n", ns, "bare", check=False)
    assert r.returncode == 1 and "has nothing to be idled" in r.stderr
    out = tenet(master, "idle", "-n", ns, "--all").stdout.splitlines()
    assert out == [f'The service "{ns}/web" has been marked as idled',
                   f'The service "{ns}/web" will unidle Widget.idle.example "{ns}/w" to 2 replicas once it receives traffic',
                   f'Widget.idle.example "{ns}/w" has been idled']
    assert replicas() == 0
    for kind in ("services", "endpoints"):
        assert json.loads(annotations(kind)[TARGETS]) == [{"kind": "Widget", "name": "w", "group": "idle.example", "replicas": 2}]
    got = master.call("GET", f"{widgets}/w")[1]["metadata"]["annotations"]
    assert got[PREVIOUS] == "2" and got[IDLED_AT] == annotations("services")[IDLED_AT]
    for i in range(2):
        assert master.call("DELETE", f"{path}/pods/w{i}?gracePeriodSeconds=0")[0] == 200
    wait_endpoints(master, ns, "web", ())
    assert IDLED_AT in annotations("services")
    # An event from before it was idled wakes nobody; one of now does.
    event = {"metadata": {"name": "old"}, "involvedObject": {"kind": "Service", "namespace": ns, "name": "web"},
             "reason": "NeedPods", "type": "Normal", "message": "The service needs pods",
             "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z", "count": 1}
    assert master.call("POST", f"{path}/events", event)[0] == 201
    now = annotations("services")[IDLED_AT]
    assert master.call("POST", f"{path}/events", {**event, "metadata": {"name": "new"}, "firstTimestamp": now, "lastTimestamp": now})[0] == 201
    wait_for("the scale of before", lambda: replicas() == 2)
    wait_for("its annotations to go", lambda: not {IDLED_AT, PREVIOUS} & set(
        master.call("GET", f"{widgets}/w")[1]["metadata"].get("annotations", {})))
    wait_for("the targets to go", lambda: TARGETS not in annotations("services") and IDLED_AT in annotations("services"))
    pods_of_widget(2)
    wait_for("the end of idling", lambda: not any({IDLED_AT, TARGETS} & set(annotations(k)) for k in ("services", "endpoints")))


# ---- allocation ----

def distinct(services):
    """Each address and port of these services at most once."""
    ips = [s["spec"]["clusterIP"] for s in services if s["spec"].get("clusterIP", "None") != "None"]
    ports = [p["nodePort"] for s in services for p in s["spec"].get("ports", []) if "nodePort" in p]
    ingress = [i["ip"] for s in services for i in s["status"].get("loadBalancer", {}).get("ingress", [])]
    for values in (ips, ports, ingress):
        assert len(set(values)) == len(values), sorted(v for v in values if values.count(v) > 1)
    return len(ips)


class Load(threading.Thread):
    """Makes, changes and deletes services at whichever master, until told to stop."""

    def __init__(self, masters, seed):
        super().__init__(daemon=True)
        self.masters, self.random, self.seed = masters, random.Random(seed), seed
        self.stop, self.error, self.done, self.full = threading.Event(), None, 0, 0

    def run(self):
        try:
            while not self.stop.is_set():
                self.one()
        except Exception as e:  # told by the test
            self.error = e

    def one(self):
        name = f"l{self.seed}-{self.random.randrange(12)}"
        master, what = self.random.choice(self.masters), self.random.randrange(4)
        types_ = ("ClusterIP", "NodePort", "LoadBalancer")
        try:
            if what == 0:
                code, answer = master.call("DELETE", f"{SERVICES}/{name}")
            elif what == 1:
                code, _, answer = master.raw("PATCH", f"{SERVICES}/{name}", {"spec": {"type": self.random.choice(types_)}},
                                             headers={"Content-Type": "application/merge-patch+json"})
            else:
                code, answer = master.call("POST", SERVICES, service(name, {"type": self.random.choice(types_)}))
        except Gone:
            self.stop.wait(0.05)
            return
        self.full += code == 500 and "range is full" in str(answer)
        assert code in (200, 201, 404, 409, 503) or "range is full" in str(answer), (code, answer)
        self.done += code in (200, 201)


def under_load(masters, n, wait, check):
    clients = [Load(masters, i) for i in range(n)]
    for c in clients:
        c.start()
    try:
        wait(clients)
    finally:
        for c in clients:
            c.stop.set()
        for c in clients:
            c.join(60)
    assert not [c.error for c in clients if c.error], clients
    check()


SMALL = {"serviceNetworkCIDR": "172.30.0.0/26", "ingressIPNetworkCIDR": "172.29.0.0/28"}
FEW_PORTS = {"servicesNodePortRange": "30100-30129"}


def test_no_address_is_given_twice_under_load():
    with tempfile.TemporaryDirectory(prefix="tenet-svc-") as tmp:
        m = plain(tmp, network=SMALL, kubernetes=FEW_PORTS)
        seen = []

        def wait(clients):
            while sum(c.done for c in clients) < 300:
                assert not [c.error for c in clients if c.error], [c.error for c in clients]
                seen.append(distinct(m.items(SERVICES)))
        try:
            under_load([m], 8, wait, lambda: distinct(m.items(SERVICES)))
            assert max(seen) > 5
            # All that is given is given back.
            assert m.call("DELETE", SERVICES)[0] == 200
            wait_for("the API's own service", lambda: m.call("GET", SERVICES + "/kubernetes")[0] == 200)
            made = [m.call("POST", SERVICES, service(f"s{i}")) for i in range(61)]
            assert all(code == 201 for code, _ in made), made[-1]
            code, answer = m.call("POST", SERVICES, service("more"))
            assert code == 500 and answer["details"]["causes"][0]["field"] == "spec.clusterIP", answer
        finally:
            m.kill(signal.SIGTERM)


def test_a_python_client_makes_services_under_load():
    """The client that controllers are written with: its services are whole, and no other's, while others come and go."""
    with tempfile.TemporaryDirectory(prefix="tenet-svc-") as tmp:
        m = plain(tmp)
        put_subnet(m)
        settings = client.Configuration(host=f"http://127.0.0.1:{m.port}")
        per, workers = 15, 4

        def make(k):
            with client.ApiClient(settings) as api:
                core, slices, made = client.CoreV1Api(api), client.DiscoveryV1Api(api), []
                core.create_namespace({"metadata": {"name": f"py{k}"}})
                for i in range(per):
                    name, ip = f"s{i}", f"10.128.{k}.{i + 2}"
                    s = core.create_namespaced_service(f"py{k}", client.V1Service(
                        metadata=client.V1ObjectMeta(name=name),
                        spec=client.V1ServiceSpec(type="NodePort" if i % 2 else "ClusterIP", selector={"app": name},
                                                  ports=[client.V1ServicePort(port=80, target_port=8080)])))
                    assert ipaddress.ip_address(s.spec.cluster_ip) in NETWORK
                    assert (s.spec.ports[0].node_port is not None) == bool(i % 2)
                    core.create_namespaced_pod(f"py{k}", pod(name, {"app": name}))
                    core.patch_namespaced_pod_status(name, f"py{k}", status(ip))
                    made.append((name, ip))

                def followed():
                    found = {(x.metadata.labels["kubernetes.io/service-name"], e.addresses[0])
                             for x in slices.list_namespaced_endpoint_slice(f"py{k}").items for e in x.endpoints or []
                             if e.conditions.ready and x.ports[0].port == 8080}
                    return found == set(made)
                wait_for(f"the slices of py{k}", followed)
                # What was there is not given to another: deleted, made with the same address, once.
                for name, _ in made[:3]:
                    ip = core.read_namespaced_service(name, f"py{k}").spec.cluster_ip
                    core.delete_namespaced_service(name, f"py{k}")
                    try:
                        again = core.create_namespaced_service(f"py{k}", service(name, {"clusterIP": ip}))
                        assert again.spec.cluster_ip == ip
                    except client.ApiException as e:  # another was faster
                        assert e.status == 422 and "already allocated" in e.body, e.body

        def wait(clients):
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                for f in [pool.submit(make, k) for k in range(workers)]:
                    f.result(120)
            assert all(c.done for c in clients)
        try:
            under_load([m], 4, wait, lambda: distinct(m.items("/api/v1/services")))
            names = [s["metadata"]["name"] for s in m.items("/api/v1/services") if s["metadata"]["namespace"].startswith("py")]
            assert per * workers - 3 * workers <= len(names) <= per * workers
        finally:
            m.kill(signal.SIGTERM)


def claims(etcd):
    out = run(["etcdctl", "--endpoints", etcd.endpoints, "get", "--prefix", "--keys-only", "/registry/service-claims/"]).stdout
    return set(out.split())


def wanted_claims(services):
    keys = set()
    for s in services:
        if s["spec"].get("clusterIP", "None") != "None":
            keys.add(f"/registry/service-claims/ips/{s['spec']['clusterIP']}")
        keys |= {f"/registry/service-claims/ports/{p['nodePort']}" for p in s["spec"].get("ports", []) if "nodePort" in p}
        keys |= {f"/registry/service-claims/ingress/{i['ip']}" for i in s["status"].get("loadBalancer", {}).get("ingress", [])}
    return keys


def test_masters_that_are_killed_neither_leak_nor_double_addresses():
    with tempfile.TemporaryDirectory(prefix="tenet-svc-") as tmp:
        etcd = ha.Etcd(tmp)
        masters = [ha.Master(tmp, f"master{i}", etcd, networkConfig=SMALL,
                             kubernetesMasterConfig={**FEW_PORTS, "masterIP": f"192.0.2.{i + 1}"}) for i in range(2)]
        try:
            for m in masters:
                m.wait_ready()
            living = {(f"192.0.2.{i + 1}", m.port) for i, m in enumerate(masters)}
            wait_for("both masters as endpoints", lambda: addresses(masters[0], "default", "kubernetes") == (living, set()))

            def wait(clients):
                for i in range(4):
                    goal = sum(c.done for c in clients) + 60
                    while sum(c.done for c in clients) < goal:
                        assert not [c.error for c in clients if c.error], [c.error for c in clients]
                        distinct(masters[1 - i % 2].items(SERVICES))
                    masters[i % 2].kill(signal.SIGKILL)
                    masters[i % 2].start()

            def check():
                services = masters[0].items("/api/v1/services")
                distinct(services)
                assert claims(etcd) == wanted_claims(masters[0].items("/api/v1/services"))
            under_load(masters, 6, wait, check)
            rest = {a for a in living if a[1] != masters[1].port}
            masters[1].kill(signal.SIGKILL)
            wait_for("the dead master to be no endpoint", lambda: addresses(masters[0], "default", "kubernetes") == (rest, set()))
            masters[1].start()
            wait_for("it to be one again", lambda: addresses(masters[0], "default", "kubernetes") == (living, set()))
            masters[1].kill(signal.SIGTERM)
            assert addresses(masters[0], "default", "kubernetes") == (rest, set())
            assert "SING-04" not in masters[0].text()  # the range is small
        finally:
            for m in masters:
                m.kill(signal.SIGTERM)
            etcd.close()


def test_what_cannot_be_is_refused_at_the_start(tmp_path):
    for network, kubernetes, says in (
            ({"ingressIPNetworkCIDR": "172.30.4.0/24"}, {}, "overlaps the service network"),
            ({"ingressIPNetworkCIDR": "10.128.0.0/24"}, {}, "overlaps the cluster network"),
            ({"ingressIPNetworkCIDR": "127.0.0.0/24"}, {}, "overlaps network 127.0.0.0/8 of this host"),
            ({"externalIPNetworkCIDRs": ["10.0.0.1/8"]}, {}, "networkConfig.externalIPNetworkCIDRs"),
            ({"externalIPNetworkCIDRs": "10.0.0.0/8"}, {}, "must be a list"),
            ({}, {"servicesNodePortRange": "9"}, "kubernetesMasterConfig.servicesNodePortRange"),
            ({}, {"masterIP": "here"}, "kubernetesMasterConfig.masterIP")):
        conf = tmp_path / "c.yaml"
        conf.write_text(json.dumps({"networkConfig": network, "kubernetesMasterConfig": kubernetes,
                                    "servingInfo": {"bindAddress": "127.0.0.1:0"},
                                    "storage": {"backend": "memory"}}))
        r = subprocess.run([TENET, "master", "--config", str(conf)], capture_output=True, text=True, timeout=30,
                           env=lablib.environment())
        assert r.returncode and says in r.stderr, (says, r.stderr)


def test_without_ranges_there_are_no_external_and_no_ingress_addresses(tmp_path):
    m = plain(str(tmp_path), network={"ingressIPNetworkCIDR": "0.0.0.0/32"})
    try:
        code, answer = m.call("POST", SERVICES, service("a", {"type": "LoadBalancer"}))
        assert code == 201 and not answer["status"]["loadBalancer"], answer
        code, answer = m.call("POST", SERVICES, service("b", {"externalIPs": ["80.11.12.10"]}))
        assert code == 422 and "externalIPs have been disabled" in answer["message"], answer
    finally:
        m.kill(signal.SIGTERM)


def test_a_load_balancer_that_found_no_address_gets_one_when_it_is_free(tmp_path):
    m = plain(str(tmp_path), network={"ingressIPNetworkCIDR": "172.29.0.0/30"})

    def ingress(name):
        return [i["ip"] for i in m.call("GET", f"{SERVICES}/{name}")[1]["status"]["loadBalancer"].get("ingress", [])]
    try:
        for i in range(3):
            assert m.call("POST", SERVICES, service(f"s{i}", {"type": "LoadBalancer"}))[0] == 201
        assert not ingress("s2")
        wait_for("the event", lambda: any(e["reason"] == "IngressIPRangeFull" and e["involvedObject"]["name"] == "s2"
                                          for e in m.items("/api/v1/namespaces/default/events")))
        free = ingress("s0")
        assert m.call("DELETE", SERVICES + "/s0")[0] == 200
        wait_for("the address", lambda: ingress("s2") == free)
    finally:
        m.kill(signal.SIGTERM)


def test_a_registry_that_others_wrote_is_put_right_and_told_of():
    """Services without claims, twice the same address, claims of nobody: as another version or a restored part leaves it."""
    with tempfile.TemporaryDirectory(prefix="tenet-svc-") as tmp:
        etcd = ha.Etcd(tmp)
        master = None
        try:
            def raw(name, ip):
                return {"apiVersion": "v1", "kind": "Service",
                        "metadata": {"name": name, "namespace": "default", "uid": f"00000000-0000-0000-0000-00000000000{name[-1]}"},
                        "spec": {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80, "protocol": "TCP"}]},
                        "status": {}}
            put = [(f"/registry/services/default/{n}", json.dumps(raw(n, ip))) for n, ip in (
                ("s1", "172.30.0.9"), ("s2", "172.30.0.9"), ("s3", "10.1.1.1"))]
            put.append(("/registry/service-claims/ips/172.30.0.8", '{"service":"default/gone"}'))
            for key, value in put:
                run(["etcdctl", "--endpoints", etcd.endpoints, "put", key, value])
            master = ha.Master(tmp, "master0", etcd)
            master.wait_ready()
            wait_for("the claims to agree with the services",
                     lambda: claims(etcd) == wanted_claims(master.items("/api/v1/services")))
            reasons = wait_for("both events", lambda: (e := {(e["reason"]) for e in master.items("/api/v1/namespaces/default/events")})
                               >= {"ClusterIPAlreadyAllocated", "ClusterIPOutOfRange"} and e)
            assert reasons
            code, answer = master.call("POST", SERVICES, service("thief", {"clusterIP": "172.30.0.9"}))
            assert code == 422 and "already allocated" in answer["message"]
            assert master.call("POST", SERVICES, service("heir", {"clusterIP": "172.30.0.8"}))[0] == 201
            assert "SING-04 and HA-09" in master.text() and "ingressIPNetworkCIDR=172.29.0.0/16" in master.text()
        finally:
            if master:
                master.kill(signal.SIGTERM)
            etcd.close()


# ---- permissions ----

def test_only_the_privileged_choose_node_ports_and_point_into_the_cluster(tmp_path):
    c = Cluster(str(tmp_path))
    try:
        c.namespace("red")
        c.bind("red", "edit", "edit", user="eve")
        eve, path = c.user("eve"), "/api/v1/namespaces/red"
        fixed = service("np", {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]})
        answer = c.ask(eve, "POST", path + "/services", fixed, want=403)
        assert answer["details"]["causes"][0]["field"] == "spec.ports[0].nodePort"
        made = c.ask(eve, "POST", path + "/services", service("np", {"type": "NodePort"}), want=201)
        assert made["spec"]["ports"][0]["nodePort"] >= 30000
        c.ask(eve, "PUT", path + "/services/np", made, want=200)  # With the port that it has.
        c.admin("POST", "/api/v1/nodes", ha.node("n1", "192.0.2.77"), 201)
        wait_for("the node's subnet", lambda: c.ask(c._admin, "GET", "/apis/network.openshift.io/v1/hostsubnets/n1")[0] == 200)
        for ip in ("10.128.0.9", "172.30.0.1", "192.0.2.77"):
            ep = {"metadata": {"name": "x"}, "subsets": [{"addresses": [{"ip": ip}], "ports": [{"port": 80}]}]}
            answer = c.ask(eve, "POST", path + "/endpoints", ep, want=403)
            assert answer["details"]["causes"][0]["field"] == "subsets[0].addresses[0].ip", answer
            assert "endpoints/restricted" in answer["message"]
            piece = {"metadata": {"name": "x"}, "addressType": "IPv4", "endpoints": [{"addresses": [ip]}], "ports": []}
            c.ask(eve, "POST", SLICES.format("red"), piece, want=403)
        outside = {"metadata": {"name": "x"}, "subsets": [{"addresses": [{"ip": "80.1.2.3"}], "ports": [{"port": 80}]}]}
        got = c.ask(eve, "POST", path + "/endpoints", outside, want=201)
        got["subsets"][0]["addresses"].append({"ip": "10.128.0.9"})
        c.ask(eve, "PUT", path + "/endpoints/x", got, want=403)
        c.role("red", "powers", {"apiGroups": [""], "resources": ["endpoints/restricted", "services/nodeports"], "verbs": ["create"]})
        c.bind("red", "powers", "powers", user="eve", kind="Role")
        wait_for("the role", lambda: c.ask(eve, "PUT", path + "/endpoints/x", got)[0] == 200)
        c.ask(eve, "DELETE", path + "/services/np", want=200)
        assert c.ask(eve, "POST", path + "/services", fixed, want=201)["spec"]["ports"][0]["nodePort"] == 30007
    finally:
        c.stop(signal.SIGKILL)
