# SPDX-License-Identifier: Apache-2.0
"""The registry through a real `tenet master` on loopback: allocation, conflicts, watches, kubectl and our own client."""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

import pytest

import lab as lablib
import prometheus
from lab import TENET, run, wait_for


class Master:
    def __init__(self, tmp, storage=None, **network):
        self.dir = pathlib.Path(tmp)
        self.storage = storage or {"backend": "sqlite", "path": str(self.dir / "registry.db")}
        self.network = {"networkPluginName": "redhat/openshift-ovs-multitenant", **network}
        self.port = None
        self.start()

    def configuration(self):
        return {"networkConfig": self.network, "servingInfo": {"bindAddress": f"127.0.0.1:{self.port or 0}"},
                "storage": self.storage}

    def start(self):
        (self.dir / "master.yaml").write_text(json.dumps(self.configuration()))
        self.log = open(self.dir / "log", "a+")
        self.proc = subprocess.Popen([TENET, "master", "--config", self.dir / "master.yaml"], stderr=self.log,
                                     stdout=self.log, env=lablib.environment())
        if not self.port:
            def bound():
                assert self.proc.poll() is None, self.text()
                for line in self.text().splitlines():
                    if "serving" in line and "127.0.0.1:" in line:
                        return int(line.split("127.0.0.1:")[1].split()[0].strip('",'))
            self.port = wait_for("the master to serve", bound)
        wait_for("the master to be ready", self.ready)
        self.kubeconfig = str(self.dir / "kubeconfig")
        pathlib.Path(self.kubeconfig).write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return self

    def text(self):
        return (self.dir / "log").read_text()

    def ready(self):
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def call(self, method, path, body=None, ctype="application/json", timeout=30):
        req = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                     data=json.dumps(body).encode() if body is not None else None,
                                     headers={"Content-Type": ctype})
        try:
            with urllib.request.urlopen(req, timeout=timeout) as r:
                text = r.read().decode()
                return r.status, json.loads(text) if text.startswith("{") else text
        except urllib.error.HTTPError as e:
            text = e.read().decode()
            return e.code, json.loads(text) if text.startswith("{") else text

    def items(self, path):
        return self.call("GET", path)[1]["items"]

    def subnets(self):
        return {s["host"]: s["subnet"] for s in self.items(NET + "hostsubnets")}

    def netids(self):
        return {n["netname"]: n["netid"] for n in self.items(NET + "netnamespaces")}

    def stop(self, sig=signal.SIGTERM):
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
            self.proc.wait(timeout=30)
        self.log.close()
        return self.proc.returncode

    def kubectl(self, *args, **kw):
        return run(["kubectl", "--kubeconfig", self.kubeconfig, *args],
                   env={**lablib.environment(), "HOME": str(self.dir)}, **kw)

    def tenet(self, *args, **kw):
        return run([TENET, *args, "--kubeconfig", self.kubeconfig], **kw)


NET = "/apis/network.openshift.io/v1/"


def node(name, ip="10.245.2.9"):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"addresses": [{"type": "InternalIP", "address": ip}]}}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.fixture
def start_master():
    made = []

    def start(**network):
        tmp = tempfile.TemporaryDirectory(prefix="tenet-master-")
        m = Master(tmp.name, **network)
        made.append((m, tmp))
        return m
    yield start
    for m, tmp in made:
        m.stop(signal.SIGKILL)
        tmp.cleanup()


@pytest.fixture
def master(start_master):
    return start_master()


def add_nodes(master, names, first=512):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda x: master.call("POST", "/api/v1/nodes", node(x[1], f"10.245.{x[0] // 250}.{x[0] % 250 + 1}")),
                                enumerate(names, first)))
    assert all(status == 201 for status, _ in results)


def test_first_three_subnets(master):
    for i in (1, 2, 3):
        master.call("POST", "/api/v1/nodes", node(f"n{i}", f"10.245.2.{i}"))
        wait_for("its subnet", lambda: f"n{i}" in master.subnets())
    assert master.subnets() == {"n1": "10.128.0.0/23", "n2": "10.128.2.0/23", "n3": "10.128.4.0/23"}


def test_the_oldest_era(start_master):
    m = start_master(clusterNetworks=[{"cidr": "10.1.0.0/16", "hostSubnetLength": 8}])
    for i in (1, 2):
        m.call("POST", "/api/v1/nodes", node(f"n{i}", f"10.245.2.{i}"))
        wait_for("its subnet", lambda: f"n{i}" in m.subnets())
    assert m.subnets() == {"n1": "10.1.0.0/24", "n2": "10.1.1.0/24"}


def test_512_subnets_and_the_513th_is_told_why(master):
    add_nodes(master, [f"n{i}" for i in range(512)])
    subnets = wait_for("512 subnets", lambda: (s := master.subnets()) and len(s) == 512 and s)
    want = {f"10.{128 + (i >> 7)}.{(i & 127) * 2}.0/23" for i in range(512)}
    assert set(subnets.values()) == want
    master.call("POST", "/api/v1/nodes", node("late", "10.245.200.1"))

    def told():
        n = master.call("GET", "/api/v1/nodes/late")[1]
        return [c for c in n["status"].get("conditions", []) if c["type"] == "NetworkUnavailable" and c["status"] == "True"]
    condition = wait_for("the condition", told)[0]
    assert "subnet" in condition["message"]
    events = wait_for("the event", lambda: [e for e in master.items("/api/v1/events")
                                            if e["involvedObject"]["name"] == "late" and e["type"] == "Warning"])
    assert "subnet" in events[0]["message"]
    assert "late" not in master.subnets()
    freed = subnets["n17"]
    assert master.call("DELETE", "/api/v1/nodes/n17")[0] == 200
    wait_for("the freed subnet to reach the waiting node", lambda: master.subnets().get("late") == freed)
    assert not told()


def test_restart_and_resize_never_overlap(start_master):
    m = start_master(clusterNetworks=[{"cidr": "10.128.0.0/16", "hostSubnetLength": 9}])
    add_nodes(m, [f"a{i}" for i in range(10)])
    wait_for("subnets", lambda: len(m.subnets()) == 10)
    before = m.subnets()
    m.stop(signal.SIGKILL)
    m.network["clusterNetworks"] = [{"cidr": "10.128.0.0/16", "hostSubnetLength": 8}, {"cidr": "10.200.0.0/24", "hostSubnetLength": 8}]
    m.start()
    add_nodes(m, [f"b{i}" for i in range(20)], 600)
    wait_for("subnets", lambda: len(m.subnets()) == 30)
    after = m.subnets()
    assert {k: after[k] for k in before} == before
    import ipaddress
    nets = sorted((ipaddress.ip_network(s) for s in after.values()), key=lambda n: n.network_address)
    assert all(not a.overlaps(b) for a, b in zip(nets, nets[1:]))


def test_vnids(master):
    for i in range(30):
        assert master.call("POST", "/api/v1/namespaces", namespace(f"p{i}"))[0] == 201
    ids = wait_for("ids", lambda: (x := master.netids()) and len(x) == 31 and x)
    assert ids.pop("default") == 0
    assert len(set(ids.values())) == 30 and all(10 <= v < 1 << 24 for v in ids.values())
    master.call("DELETE", "/api/v1/namespaces/p7")
    wait_for("release", lambda: "p7" not in master.netids())
    assert wait_for("the project to go", lambda: master.call("GET", "/api/v1/namespaces/p7")[0] == 404)
    rest = master.netids()
    master.stop(signal.SIGKILL)
    master.start()
    assert master.netids() == rest


def test_status_codes_and_field_names(master):
    ns = "/api/v1/namespaces"
    assert master.call("POST", ns, namespace("red"))[0] == 201
    status, body = master.call("POST", ns, namespace("red"))
    assert status == 409 and body["kind"] == "Status" and body["reason"] == "AlreadyExists"
    assert master.call("GET", ns + "/absent")[1]["reason"] == "NotFound"
    assert master.call("GET", "/apis/no.such/v1")[0] == 404
    assert master.call("PUT", ns, {})[0] == 405
    red = master.call("GET", ns + "/red")[1]
    red["metadata"]["labels"] = {"a": "b"}
    assert master.call("PUT", ns + "/red", red)[0] == 200
    status, body = master.call("PUT", ns + "/red", red)
    assert status == 409 and body["reason"] == "Conflict"
    for path, obj, field in [
        (NET + "clusternetworks", {"apiVersion": "network.openshift.io/v1", "kind": "ClusterNetwork", "metadata": {"name": "x"},
                                   "clusterNetworks": [{"CIDR": "10.1.2.3/16", "hostSubnetLength": 8}]}, "clusterNetworks[0].CIDR"),
        (NET + "hostsubnets", {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "metadata": {"name": "h"},
                               "host": "h", "hostIP": "nonsense", "subnet": "10.128.0.0/23"}, "hostIP"),
        (NET + "netnamespaces", {"apiVersion": "network.openshift.io/v1", "kind": "NetNamespace", "metadata": {"name": "n"},
                                 "netname": "n", "netid": 1 << 24}, "netid"),
        (ns, namespace("Not_A_Label"), "metadata.name"),
    ]:
        status, body = master.call("POST", path, obj)
        assert status == 422 and body["reason"] == "Invalid", (path, body)
        assert field in [c["field"] for c in body["details"]["causes"]], body


def test_watch_resumes_and_gone_is_410(master):
    ns = "/api/v1/namespaces"
    start = master.call("GET", ns)[1]["metadata"]["resourceVersion"]
    for i in range(5):
        master.call("POST", ns, namespace(f"w{i}"))

    def watch(rv):
        url = f"http://127.0.0.1:{master.port}{ns}?watch=1&resourceVersion={rv}&timeoutSeconds=1"
        with urllib.request.urlopen(url, timeout=30) as r:
            return [json.loads(line) for line in r]
    events = watch(start)
    names = [e["object"]["metadata"]["name"] for e in events if e["type"] == "ADDED"]
    assert names == [f"w{i}" for i in range(5)]
    third = events[2]["object"]["metadata"]["resourceVersion"]
    master.stop(signal.SIGKILL)
    master.start()  # a watch may be resumed over a restart of the master
    assert [e["object"]["metadata"]["name"] for e in watch(third) if e["type"] == "ADDED"][:2] == ["w3", "w4"]
    try:
        gone = watch(1)
        assert gone[0]["type"] == "ERROR" and gone[0]["object"]["code"] == 410 or gone[0]["type"] == "ADDED"
    except urllib.error.HTTPError as e:
        assert e.code == 410
    status, body = master.call("GET", f"{ns}?watch=1&resourceVersion=999999999&timeoutSeconds=1")
    assert status in (200, 410, 504)


def test_concurrent_writers_one_wins(master):
    master.call("POST", "/api/v1/namespaces", namespace("red"))
    red = master.call("GET", "/api/v1/namespaces/red")[1]

    def put(i):
        mine = json.loads(json.dumps(red))
        mine["metadata"]["labels"] = {"writer": str(i)}
        return master.call("PUT", "/api/v1/namespaces/red", mine)[0]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        codes = list(pool.map(put, range(16)))
    assert sorted(codes) == [200] + [409] * 15


def test_kubectl(master):
    for i in (1, 2):
        master.call("POST", "/api/v1/nodes", node(f"n{i}", f"10.245.2.{i}"))
    wait_for("subnets", lambda: len(master.subnets()) == 2)
    out = master.kubectl("get", "nodes,hostsubnets", "-o", "wide").stdout
    assert "10.128.2.0/23" in out and "10.245.2.2" in out
    assert "HOST IP" in out and "SUBNET" in out and "INTERNAL-IP" in out
    assert master.kubectl("create", "namespace", "green").stdout == "namespace/green created\n"
    assert master.kubectl("get", "ns", "green", "-o", "name").stdout == "namespace/green\n"
    wait_for("a VNID", lambda: "green" in master.kubectl("get", "netnamespaces").stdout)
    master.kubectl("label", "ns", "green", "tier=one")
    assert master.kubectl("get", "ns", "-l", "tier=one", "-o", "name").stdout == "namespace/green\n"
    r = master.kubectl("get", "hostsubnet", "absent", check=False)
    assert r.returncode == 1 and 'hostsubnets.network.openshift.io "absent" not found' in r.stderr
    assert "green" in master.kubectl("describe", "ns", "green").stdout
    assert "deleted" in master.kubectl("delete", "ns", "green", "--wait=true").stdout
    assert master.call("GET", "/api/v1/namespaces/green")[0] == 404


def test_a_pod_that_nobody_ends_goes_after_its_time(master):
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "gone", "terminationGracePeriodSeconds": 1,
                                               "containers": [{"name": "c", "image": "i"}]}}
    path = "/api/v1/namespaces/default/pods"
    assert master.call("POST", path, pod)[0] == 201
    assert "deletionTimestamp" in master.call("DELETE", f"{path}/p")[1]["metadata"]
    wait_for("its end", lambda: master.call("GET", f"{path}/p")[0] == 404)


def test_our_client_has_kubectls_habits(master):
    """The same command line gives the same text from kubectl and from tenet, where both print the server's tables."""
    master.call("POST", "/api/v1/nodes", node("n1", "10.245.2.1"))
    wait_for("subnet", lambda: master.subnets())
    assert master.tenet("create", "namespace", "red").stdout == "namespace/red created\n"
    wait_for("ids", lambda: "red" in master.netids())
    for args in (["get", "hostsubnets"], ["get", "hostsubnet", "n1", "-o", "name"], ["get", "netnamespaces", "red"],
                 ["get", "nodes", "n1", "-o", "name"], ["get", "clusternetworks"], ["get", "pods", "-n", "red"],
                 ["get", "namespace", "absent"]):
        ours, theirs = master.tenet(*args, check=False), master.kubectl(*args, check=False)
        assert (ours.returncode, ours.stdout.split(), ours.stderr.split()) == \
            (theirs.returncode, theirs.stdout.split(), theirs.stderr.split()), args
    doc = json.loads(master.tenet("get", "hostsubnet", "n1", "-o", "json").stdout)
    theirs = json.loads(master.kubectl("get", "hostsubnet", "n1", "-o", "json").stdout)
    theirs["metadata"].pop("managedFields", None)  # kubectl before 1.21 shows them
    assert doc == theirs
    yaml_ours = master.tenet("get", "hostsubnet", "n1", "-o", "yaml").stdout
    assert json.loads(master.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-",
                                     input=yaml_ours).stdout)["subnet"] == doc["subnet"]
    assert "10.128.0.0/23" in master.tenet("describe", "hostsubnet", "n1").stdout
    assert master.tenet("delete", "namespace", "red").stdout == 'namespace "red" deleted\n'
    assert master.call("GET", "/api/v1/namespaces/red")[0] == 404
    r = master.tenet("get", "nosuchkind", check=False)
    assert r.returncode == 1 and "nosuchkind" in r.stderr


def test_watch_command(master):
    proc = subprocess.Popen([TENET, "get", "namespaces", "-w", "--kubeconfig", master.kubeconfig],
                            stdout=subprocess.PIPE, text=True, env=lablib.environment())
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(proc.stdout.readline, "")))
    reader.start()
    try:
        wait_for("the list", lambda: any("default" in line for line in lines))
        master.call("POST", "/api/v1/namespaces", namespace("fresh"))
        wait_for("the new one", lambda: any("fresh" in line for line in lines))
    finally:
        proc.kill()
        proc.wait()
        reader.join()


@pytest.mark.parametrize("conf,words", [
    ({"networkConfig": {"clusterNetworks": [{"cidr": "10.1.2.3/16", "hostSubnetLength": 8}]}}, ["cidr", "10.1.0.0/16"]),
    ({"networkConfig": {"clusterNetworks": [{"cidr": "10.1.0.0/16", "hostSubnetLength": 20}]}}, ["hostSubnetLength"]),
    ({"networkConfig": {"networkPluginName": "none"}}, ["networkPluginName", "ovs-multitenant"]),
    ({"networkConfig": {"vxlanPort": 70000}}, ["vxlanPort"]),
    ({"storage": {"backend": "paper"}}, ["backend", "sqlite"]),
    ({"nosuch": 1}, ["nosuch"]),
    ({"servingInfo": {"bindAddress": "256.0.0.1:1"}}, ["bindAddress"]),
])
def test_wrong_configuration_is_refused(tmp_path, conf, words):
    path = tmp_path / "m.yaml"
    path.write_text(json.dumps({"storage": {"path": str(tmp_path / "r.db")}, **conf}))
    r = run([TENET, "master", "--config", path], check=False, timeout=30)
    assert r.returncode != 0
    for w in words:
        assert w in r.stderr, r.stderr
    assert not (tmp_path / "r.db").exists()


def test_taken_port_and_locked_database(master, tmp_path):
    r = run([TENET, "master", "--config", master.dir / "master.yaml"], check=False, timeout=30)
    assert r.returncode != 0 and ("registry.db" in r.stderr or "127.0.0.1" in r.stderr)
    (tmp_path / "m.yaml").write_text(json.dumps({"servingInfo": {"bindAddress": f"127.0.0.1:{master.port}"},
                                                 "storage": {"path": str(tmp_path / "r.db")}}))
    r = run([TENET, "master", "--config", tmp_path / "m.yaml"], check=False, timeout=30)
    assert r.returncode != 0 and str(master.port) in r.stderr


def test_stops_in_order(master):
    watcher = urllib.request.urlopen(f"http://127.0.0.1:{master.port}/api/v1/nodes?watch=1", timeout=30)
    assert master.stop() == 0
    assert b"ERROR" not in watcher.read()


def test_controllers_share_watches_and_are_counted(master):
    """Each kind is watched once in the master, however many of its controllers and DNS follow it."""
    kinds = ("namespaces", "services", "endpoints", "endpointslices.discovery.k8s.io", "pods", "nodes",
             "hostsubnets.network.openshift.io", "netnamespaces.network.openshift.io")

    def watched():
        found = prometheus.parse(master.call("GET", "/metrics")[1])
        return found if all(found["apiserver_registered_watchers", (("resource", k),)] == 1 for k in kinds) else None
    wait_for("one watch of each kind", watched)
    assert master.call("POST", "/api/v1/namespaces", {"metadata": {"name": "counted"}})[0] == 201
    wait_for("its network", lambda: master.call("GET", "/apis/network.openshift.io/v1/netnamespaces/counted")[0] == 200)
    found = prometheus.parse(master.call("GET", "/metrics")[1])
    name = (("name", "vnids"),)
    assert found["controller_running", name] == 1
    assert found["workqueue_adds_total", name] >= 1 and found["workqueue_work_duration_seconds_count", name] >= 1
    assert found["informer_watches", ()] == sum(v for (n, _), v in found.items() if n == "apiserver_registered_watchers")
