# SPDX-License-Identifier: Apache-2.0
"""The scheduler among a master's controllers, with nodes that are objects alone: their status is what a kubelet reports."""
import concurrent.futures
import json
import subprocess
import threading
import time
import urllib.request

import pytest

from ha import Etcd, Master, PlainMaster, namespace
from lab import TENET, environment, wait_for

def kubelet_node(name, labels=(), cpu="4", memory="8Gi", pods="110", ready="True", taints=(), **spec):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **dict(labels)}},
            "spec": {**spec, **({"taints": list(taints)} if taints else {})},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods},
                       "capacity": {"cpu": cpu, "memory": memory, "pods": pods},
                       "nodeInfo": {"containerRuntimeVersion": "containerd://1.6.20", "kubeletVersion": "v1.32.0"},
                       "addresses": [{"type": "InternalIP", "address": address(name)}],
                       "conditions": [{"type": "Ready", "status": ready, "reason": "KubeletReady",
                                       "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}}


def address(name):
    """One for each name: letters and digits of the test's nodes."""
    return f"198.18.{sum(map(ord, name.rstrip('0123456789'))) % 250}.{int(name.lstrip('abcdefghijklmnopqrstuvwxyz') or 0) + 1}"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def pod(name, cpu=None, ns="default", labels=(), port=None, **spec):
    c = {"name": "c", "image": "busybox:1"}
    if cpu:
        c["resources"] = {"requests": {"cpu": cpu}}
    if port:
        c["ports"] = [{"containerPort": port, "hostPort": port}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns, "labels": dict(labels)},
            "spec": {"containers": [c], **spec}}


class Cluster:
    def __init__(self, master):
        self.m = master

    def call(self, method, path, body=None, want=(200, 201), **kw):
        status, answer = self.m.call(method, path, body, **kw)
        assert not want or status in want, f"{method} {path}: {status} {answer}"
        return answer

    def merge(self, path, body):
        return self.call("PATCH", path, body, headers={"Content-Type": "application/merge-patch+json"})

    def node(self, name, **kw):
        """Makes a Node, or changes it, with the status that its kubelet writes."""
        n = kubelet_node(name, **kw)
        if self.m.call("POST", "/api/v1/nodes", n)[0] == 409:
            self.merge(f"/api/v1/nodes/{name}", {"metadata": n["metadata"], "spec": n["spec"]})
        self.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": n["status"]},
                  headers={"Content-Type": "application/strategic-merge-patch+json"})

    def create(self, *args, **kw):
        p = pod(*args, **kw)
        return self.call("POST", f"/api/v1/namespaces/{p['metadata']['namespace']}/pods", p)

    def pod(self, name, ns="default"):
        status, p = self.m.call("GET", f"/api/v1/namespaces/{ns}/pods/{name}")
        return p if status == 200 else None

    def node_of(self, name, ns="default"):
        return ((self.pod(name, ns) or {}).get("spec") or {}).get("nodeName")

    def condition(self, name, ns="default", type="PodScheduled"):
        conditions = (self.pod(name, ns) or {}).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == type), {})

    def scheduled(self, name, node=None, ns="default"):
        wait_for(f"{name} to get a node", lambda: self.node_of(name, ns))
        assert node is None or self.node_of(name, ns) == node
        return self.node_of(name, ns)

    def refused(self, name, text, ns="default"):
        """Waits until the pod says that it gets no node, and why."""
        wait_for(f"{name} to say: {text}", lambda: text in self.condition(name, ns).get("message", ""))
        c = self.condition(name, ns)
        assert c["status"] == "False" and c["reason"] == "Unschedulable" and not self.node_of(name, ns)

    def events(self, name, reason, ns="default"):
        items = self.call("GET", f"/api/v1/namespaces/{ns}/events")["items"]
        return [e for e in items if e["involvedObject"]["name"] == name and e["reason"] == reason]

    def delete(self, name, ns="default", grace=0):
        self.call("DELETE", f"/api/v1/namespaces/{ns}/pods/{name}?gracePeriodSeconds={grace}", want=(200, 202, 404))


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    m = PlainMaster(tmp_path_factory.mktemp("scheduler"))
    yield m
    m.kill()


@pytest.fixture
def cluster(master):
    c = Cluster(master)
    yield c
    for p in master.items("/api/v1/pods"):
        c.delete(p["metadata"]["name"], p["metadata"]["namespace"])
    for n in master.items("/api/v1/nodes"):
        c.call("DELETE", f"/api/v1/nodes/{n['metadata']['name']}")
    wait_for("all pods to go", lambda: not master.items("/api/v1/pods"))


def test_a_pod_gets_a_node_and_says_so(cluster):
    cluster.node("n1")
    cluster.create("p", cpu="1")
    cluster.scheduled("p", "n1")
    assert cluster.condition("p")["status"] == "True"
    wait_for("the event", lambda: cluster.events("p", "Scheduled"))
    e, = cluster.events("p", "Scheduled")
    assert e["message"] == "Successfully assigned default/p to n1" and e["type"] == "Normal"


def test_metrics_count_attempts_and_waiting_pods(cluster):
    def metrics():
        with urllib.request.urlopen(f"http://127.0.0.1:{cluster.m.port}/metrics", timeout=30) as r:
            lines = [x.rsplit(" ", 1) for x in r.read().decode().splitlines() if x.startswith("scheduler_")]
        return {name: float(value) for name, value in lines}

    attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="%s"}'
    before = metrics()
    cluster.node("n1")
    cluster.create("fits", cpu="1")
    cluster.create("big", cpu="6")
    cluster.create("gated", schedulingGates=[{"name": "example.com/g"}])
    cluster.scheduled("fits", "n1")
    cluster.refused("big", "Insufficient cpu")
    wait_for("the attempts to be counted", lambda: metrics()[attempts % "scheduled"] == before[attempts % "scheduled"] + 1)
    now = metrics()
    assert now[attempts % "unschedulable"] > before[attempts % "unschedulable"]
    assert now['scheduler_scheduling_attempt_duration_seconds_count{profile="default-scheduler",result="scheduled"}'] >= 1
    assert sum(now[f'scheduler_pending_pods{{queue="{q}"}}'] for q in ("active", "backoff", "unschedulable")) == 1
    assert now['scheduler_pending_pods{queue="gated"}'] == 1


def test_too_large_a_pod_says_why_and_what_helps(cluster):
    """Also 89: the event that helps gives it a node within a second."""
    cluster.node("n1")
    cluster.node("n2", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    cluster.create("big", cpu="6")
    cluster.refused("big", "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {k: v}.")
    assert "What helps:" in cluster.condition("big")["message"]
    wait_for("the event", lambda: cluster.events("big", "FailedScheduling"))
    assert cluster.events("big", "FailedScheduling")[0]["type"] == "Warning"
    begin = time.monotonic()
    cluster.node("n3", cpu="8")
    cluster.scheduled("big", "n3")
    assert time.monotonic() - begin < 5, "far more than a second"
    cluster.create("second", cpu="3")
    cluster.scheduled("second", "n1")
    cluster.create("third", cpu="3")
    cluster.refused("third", "2 Insufficient cpu")
    cluster.delete("second")
    cluster.scheduled("third", "n1")


def test_nodes_without_kubelet_get_no_pods(cluster):
    cluster.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "wires"}})
    cluster.merge("/api/v1/nodes/wires/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    cluster.create("p")
    cluster.refused("p", "1 node(s) run no containers")
    cluster.node("late", ready="False")
    cluster.refused("p", "{node.kubernetes.io/not-ready: }")
    cluster.node("late", ready="True")
    cluster.scheduled("p", "late")


def test_selectors_affinity_and_spreading(cluster):
    for i, zone in enumerate(["a", "a", "b"]):
        cluster.node(f"n{i}", labels={"zone": zone})
    cluster.create("s", nodeSelector={"zone": "b"})
    cluster.scheduled("s", "n2")
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}]}}
    cluster.create("x1", labels={"app": "x"}, affinity=anti)
    first = cluster.scheduled("x1")
    cluster.create("x2", labels={"app": "x"}, affinity=anti)
    assert (cluster.scheduled("x2") == "n2") != (first == "n2"), "the zones differ"
    # The anti-affinity of pods that run counts for a pod that has none.
    cluster.create("x3", labels={"app": "x"})
    cluster.refused("x3", "3 node(s) didn't satisfy existing pods anti-affinity rules")
    spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "y"}}}]
    for i in range(3):
        cluster.create(f"y{i}", labels={"app": "y"}, topologySpreadConstraints=spread)
    assert {cluster.scheduled(f"y{i}") for i in range(3)} == {"n0", "n1", "n2"}


def test_host_ports(cluster):
    cluster.node("n1")
    cluster.create("a", port=8080)
    cluster.scheduled("a", "n1")
    cluster.create("b", port=8080)
    cluster.refused("b", "1 node(s) didn't have free ports for the requested pod ports")
    cluster.delete("a")
    cluster.scheduled("b", "n1")


def test_cordon(cluster):
    cluster.node("n1", unschedulable=True)
    cluster.create("p")
    cluster.refused("p", "1 node(s) were unschedulable")
    cluster.merge("/api/v1/nodes/n1", {"spec": {"unschedulable": None}})
    cluster.scheduled("p", "n1")


def test_gates_and_other_schedulers(cluster):
    cluster.node("n1")
    cluster.create("gated", schedulingGates=[{"name": "example.com/wait"}])
    cluster.create("foreign", schedulerName="other")
    wait_for("the condition", lambda: cluster.condition("gated").get("reason") == "SchedulingGated")
    cluster.create("after")
    cluster.scheduled("after")
    assert not cluster.node_of("gated") and not cluster.node_of("foreign")
    assert not cluster.condition("foreign")
    cluster.merge("/api/v1/namespaces/default/pods/gated", {"spec": {"schedulingGates": None}})
    cluster.scheduled("gated", "n1")


def test_more_important_pods_come_first_and_displace_others(cluster):
    for name, value in (("low", 1), ("middle", 5), ("high", 100)):
        cluster.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    cluster.node("n1", cpu="2")
    cluster.create("low", cpu="2", priorityClassName="low")
    cluster.scheduled("low", "n1")
    cluster.create("high", cpu="2", priorityClassName="high")
    wait_for("the victim to end", lambda: (cluster.pod("low") or {}).get("metadata", {}).get("deletionTimestamp"))
    assert cluster.condition("low", type="DisruptionTarget")["reason"] == "PreemptionByScheduler"
    wait_for("the event", lambda: cluster.events("low", "Preempted"))
    assert cluster.pod("high")["status"]["nominatedNodeName"] == "n1"
    # Nobody takes the room meanwhile.
    cluster.create("thief", cpu="1", priorityClassName="middle")
    cluster.refused("thief", "1 Insufficient cpu")
    cluster.delete("low")
    cluster.scheduled("high", "n1")
    cluster.refused("thief", "1 Insufficient cpu")


def test_two_bindings_one_wins(cluster):
    """Many clients bind one pod at once: exactly one is answered 201."""
    for i in range(8):
        cluster.node(f"n{i}")
    for turn in range(5):
        name = f"p{turn}"
        cluster.create(name, schedulerName="other")

        def bind(i, name=name):
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": f"n{i}"}}
            return cluster.m.call("POST", f"/api/v1/namespaces/default/pods/{name}/binding", body)[0]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(bind, range(8)))
        assert sorted(codes) == [201] + [409] * 7
        assert cluster.node_of(name) == f"n{codes.index(201)}"


def test_a_foreign_binding_beats_the_scheduler(cluster):
    """Pods that someone else binds at the same time stay where they are, and take room there."""
    cluster.node("n1", cpu="10")
    cluster.node("n2", cpu="10")
    for i in range(20):
        cluster.create(f"p{i}", cpu="1")
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"p{i}"}, "target": {"kind": "Node", "name": "n2"}}
        cluster.m.call("POST", f"/api/v1/namespaces/default/pods/p{i}/binding", body)
    nodes = [cluster.scheduled(f"p{i}") for i in range(20)]
    on = {n: nodes.count(n) for n in ("n1", "n2")}
    assert sum(on.values()) == 20
    cluster.create("last", cpu=str(11 - min(on.values())))
    cluster.refused("last", "2 Insufficient cpu")


def test_only_the_kubelet_ends_the_deletion_of_its_pods(cluster):
    """The clock ends it on a node without containers, and when the node is gone."""
    cluster.node("n1")
    cluster.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "wires"}})
    cluster.create("held", terminationGracePeriodSeconds=1)
    cluster.scheduled("held", "n1")
    cluster.create("free", nodeName="wires", terminationGracePeriodSeconds=1)
    cluster.delete("held", grace=1)
    cluster.delete("free", grace=1)
    wait_for("the pod of the node without containers to go", lambda: not cluster.pod("free"))
    cluster.create("again", nodeName="wires")
    cluster.delete("again", grace=2)
    wait_for("the next one to go", lambda: not cluster.pod("again"))
    assert cluster.pod("held")["metadata"]["deletionTimestamp"], "longer than twice the time, it still waits for its node"
    cluster.call("DELETE", "/api/v1/nodes/n1")
    wait_for("the pod of the node that is gone to go", lambda: not cluster.pod("held"))


def budget(c, name, allowed, app, least=1):
    """A PodDisruptionBudget, when the controller has counted that so many pods may go."""
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    c.call("POST", path, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
                          "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}})
    wait_for(f"{name} to allow {allowed}", lambda: c.call("GET", f"{path}/{name}").get("status", {}).get("observedGeneration"))
    assert c.call("GET", f"{path}/{name}")["status"]["disruptionsAllowed"] == allowed


@pytest.fixture
def budgets(cluster):
    yield cluster
    for b in cluster.m.items("/apis/policy/v1/poddisruptionbudgets"):
        cluster.call("DELETE", f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{b['metadata']['name']}")


def run_pod(c, name, node, app="web"):
    """A pod that its kubelet reports as ready."""
    c.create(name, labels={"app": app}, nodeName=node)
    c.merge(f"/api/v1/namespaces/default/pods/{name}/status",
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})


def evict(c, name, options=None, **kw):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **({"deleteOptions": options} if options else {})}
    return c.m.raw("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body, **kw)


def test_evictions_respect_budgets(budgets):
    c = budgets
    c.node("n1")
    run_pod(c, "a", "n1")
    run_pod(c, "b", "n1")
    run_pod(c, "free", "n1", app="other")
    budget(c, "one", 1, "web")
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/one"
    assert evict(c, "a", {"dryRun": ["All"]})[0] == 201
    assert not c.pod("a")["metadata"].get("deletionTimestamp") and c.call("GET", path)["status"]["disruptionsAllowed"] == 1
    status, _, body = evict(c, "a")
    assert status == 201 and body["status"] == "Success"
    assert c.pod("a")["metadata"]["deletionGracePeriodSeconds"] == 30
    assert c.condition("a", type="DisruptionTarget")["reason"] == "EvictionByEvictionAPI"
    assert c.call("GET", path)["status"]["disruptionsAllowed"] == 0
    wait_for("the pod to be counted as going", lambda: not c.call("GET", path)["status"].get("disruptedPods"))
    assert c.call("GET", path)["status"]["currentHealthy"] == 1
    status, headers, body = evict(c, "b")
    assert status == 429 and headers["Retry-After"] == "10" and body["reason"] == "TooManyRequests"
    assert body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert "The disruption budget one needs 1 healthy pods and has 1 currently" in json.dumps(body["details"])
    assert not c.pod("b")["metadata"].get("deletionTimestamp")
    assert evict(c, "free", {"gracePeriodSeconds": 0})[0] == 201 and not c.pod("free")
    assert evict(c, "nobody")[0] == 404
    uid = c.pod("b")["metadata"]["uid"]
    budget(c, "two", 0, "web")
    assert evict(c, "b")[0] == 500, "two budgets are one too many"
    for name in "one", "two":
        c.call("DELETE", f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}")
    assert evict(c, "b", {"preconditions": {"uid": "0"}})[0] == 409
    assert c.pod("b")["metadata"]["uid"] == uid


def test_many_evictions_at_once_take_no_more_than_allowed(budgets):
    c = budgets
    c.node("n1")
    for i in range(12):
        run_pod(c, f"p{i}", "n1")
    budget(c, "three", 3, "web", least=9)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        codes = sorted(pool.map(lambda i: evict(c, f"p{i}")[0], range(12)))
    assert codes == [201] * 3 + [429] * 9
    assert len([p for p in c.m.items("/api/v1/pods") if p["metadata"].get("deletionTimestamp")]) == 3


def tenet(c, *args, status=0):
    r = subprocess.run([TENET, *args, "--server", f"http://127.0.0.1:{c.m.port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=120, env=environment())
    assert r.returncode == status, r.stdout
    return r.stdout


def play_kubelet(c, stop):
    """Ends the pods that are being deleted, as their node does."""
    while not stop.is_set():
        for p in c.m.items("/api/v1/pods"):
            if p["metadata"].get("deletionTimestamp"):
                c.delete(p["metadata"]["name"])
        stop.wait(0.05)


@pytest.fixture
def kubelet(cluster):
    stop = threading.Event()
    t = threading.Thread(target=play_kubelet, args=(cluster, stop))
    t.start()
    yield
    stop.set()
    t.join()


def test_drain_and_manage_node(budgets, kubelet):
    c = budgets
    c.node("n1")
    run_pod(c, "alone", "n1", app="solo")
    out = tenet(c, "adm", "drain", "n1", status=1)
    assert "node/n1 cordoned" in out and "no controller replaces it (use --force to override)" in out and c.pod("alone")
    assert c.call("GET", "/api/v1/nodes/n1")["spec"]["unschedulable"] is True
    assert "default/alone" in tenet(c, "adm", "manage-node", "n1", "--list-pods")
    assert "pod/alone evicted (dry run)" in tenet(c, "adm", "drain", "n1", "--force", "--dry-run") and c.pod("alone")
    out = tenet(c, "adm", "drain", "n1", "--force")
    assert "node/n1 already cordoned" in out and "pod/alone evicted" in out and "node/n1 drained" in out and not c.pod("alone")
    assert tenet(c, "adm", "uncordon", "n1") == "node/n1 uncordoned\n"
    assert "must be unschedulable" in tenet(c, "adm", "manage-node", "n1", "--evacuate", status=1)
    assert tenet(c, "adm", "manage-node", "n1", "--schedulable=false") == "node/n1 cordoned\n"
    run_pod(c, "kept", "n1", app="kept")
    run_pod(c, "gone", "n1", app="gone")
    tenet(c, "adm", "manage-node", "n1", "--evacuate", "--force", "--pod-selector=app=gone")
    assert c.pod("kept") and not c.pod("gone")
    budget(c, "none", 0, "kept")
    out = tenet(c, "adm", "drain", "n1", "--force", "--timeout=1", status=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget." in out and c.pod("kept")
    tenet(c, "adm", "drain", "n1", "--force", "--disable-eviction")
    assert not c.pod("kept")
    assert "say which nodes" in tenet(c, "adm", "cordon", status=2)


def test_kubectl_cordons_and_drains(cluster, kubelet, tmp_path):
    c = cluster
    c.node("n1")
    run_pod(c, "p", "n1")

    def kubectl(*args):
        r = subprocess.run(["kubectl", "-s", f"http://127.0.0.1:{c.m.port}", "--cache-dir", tmp_path, *args], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=120)
        assert r.returncode == 0, r.stdout
        return r.stdout

    assert "node/n1 cordoned" in kubectl("cordon", "n1")
    out = kubectl("drain", "n1", "--force")
    assert "evicting pod default/p" in out and "pod/p evicted" in out and not c.pod("p")
    assert "node/n1 uncordoned" in kubectl("uncordon", "n1")


def test_pods_leave_a_silent_node(tmp_path):
    m = PlainMaster(tmp_path)
    stop = threading.Event()
    alive = {"n1", "n2", "n3"}

    def renew():  # the leases that kubelets keep
        i = 0
        while not stop.wait(0.2):
            i += 1
            for n in list(alive):
                lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": n},
                         "spec": {"holderIdentity": n, "leaseDurationSeconds": 40,
                                  "renewTime": f"2026-01-01T00:{i // 60 % 60:02}:{i % 60:02}.000000Z"}}
                path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
                if m.call("PATCH", f"{path}/{n}", {"spec": lease["spec"]}, headers={"Content-Type": "application/merge-patch+json"})[0] == 404:
                    m.call("POST", path, lease)

    t = threading.Thread(target=renew)
    try:
        m.kill()
        m.conf["kubernetesMasterConfig"] = {"nodeMonitorGraceSeconds": 3}
        c = Cluster(m.start())
        m.call("POST", "/api/v1/namespaces", namespace("kube-node-lease"))
        for n in alive:
            c.node(n)
        t.start()
        quick = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]
        c.create("quick", nodeSelector={"kubernetes.io/hostname": "n1"}, tolerations=quick)
        c.create("stays", nodeSelector={"kubernetes.io/hostname": "n1"}, tolerations=[{"operator": "Exists"}])
        c.create("slow", nodeSelector={"kubernetes.io/hostname": "n1"})
        for p in ("quick", "stays", "slow"):
            c.scheduled(p, "n1")
            c.merge(f"/api/v1/namespaces/default/pods/{p}/status",
                    {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        alive.discard("n1")
        wait_for("the node to be unknown", lambda: {k["type"]: k["status"] for k in c.call("GET", "/api/v1/nodes/n1")["status"]["conditions"]}["Ready"] == "Unknown")
        wait_for("its pod to be marked", lambda: c.pod("quick")["metadata"].get("deletionTimestamp"))
        taints = {(k["key"], k["effect"]) for k in c.call("GET", "/api/v1/nodes/n1")["spec"]["taints"]}
        assert taints == {("node.kubernetes.io/unreachable", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute")}
        wait_for("services to leave the others out", lambda: c.condition("slow", type="Ready")["status"] == "False")
        assert not c.pod("stays")["metadata"].get("deletionTimestamp") and not c.pod("slow")["metadata"].get("deletionTimestamp")
        wait_for("the event", lambda: c.events("quick", "TaintManagerEviction"))
        # It only goes when the node says so; a node that is back is well again, and gets pods.
        alive.add("n1")
        c.node("n1")
        wait_for("the taints to go", lambda: not c.call("GET", "/api/v1/nodes/n1")["spec"].get("taints"))
        assert c.pod("quick")
        c.delete("quick")
        c.create("new", nodeSelector={"kubernetes.io/hostname": "n1"})
        c.scheduled("new", "n1")
        # When all are silent, no pod has to leave.
        c.create("last", nodeSelector={"kubernetes.io/hostname": "n2"}, tolerations=quick)
        c.scheduled("last", "n2")
        alive.clear()
        wait_for("all nodes to be unknown", lambda: "all nodes are ill" in m.text())
        wait_for("no NoExecute taint", lambda: all(k["effect"] == "NoSchedule" for n in m.items("/api/v1/nodes")
                                                   for k in n["spec"].get("taints", [])))
        assert not c.pod("last")["metadata"].get("deletionTimestamp")
    finally:
        stop.set()
        if t.ident:
            t.join()
        m.kill()


def test_project_node_selectors(tmp_path):
    m = PlainMaster(tmp_path)
    try:
        m.kill()
        m.conf["projectConfig"] = {"defaultNodeSelector": "env=shared"}
        m.conf["admissionConfig"] = {"nodeSelectorLabelBlacklist": ["kubernetes.io/hostname"]}
        c = Cluster(m.start())
        for n, env in (("n1", "shared"), ("n2", "team")):
            c.node(n, labels={"env": env})
        for name, selector in (("team", "env=team"), ("open", ""), ("broken", "env")):
            c.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": name, "annotations": {"openshift.io/node-selector": selector}}})
        c.create("p")
        c.create("p", ns="team")
        c.create("p", ns="open", nodeSelector={"env": "team"})
        assert c.scheduled("p") == "n1" and c.scheduled("p", ns="team") == "n2" and c.scheduled("p", ns="open") == "n2"
        assert c.pod("p", "team")["spec"]["nodeSelector"] == {"env": "team"} and c.pod("p")["spec"]["nodeSelector"] == {"env": "shared"}

        def refused(**kw):
            p = pod("q", **kw)
            status, body = m.call("POST", f"/api/v1/namespaces/{p['metadata']['namespace']}/pods", p)
            assert status == 403, body
            return body["message"]

        assert refused(ns="team", nodeSelector={"env": "shared"}).endswith(
            "pod node label selector conflicts with its project node label selector")
        assert "does not have the labels of the project's node selector" in refused(ns="team", nodeName="n1")
        assert "node selector of its project cannot be read" in refused(ns="broken")
        c.create("named", ns="team", nodeName="n2")
        m.kill()
        m.conf["projectConfig"] = {"defaultNodeSelector": "no selector"}
        m.start(wait=False)
        assert m.proc.wait(timeout=30) != 0 and 'projectConfig.defaultNodeSelector: "no selector" is no list' in m.text()
    finally:
        m.kill()


def test_policy_file(tmp_path):
    policy = tmp_path / "scheduler.json"
    policy.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1",
                                  "predicates": [{"name": "GeneralPredicates"}, {"name": "MaxEBSVolumeCount"},
                                                 {"name": "Rack", "argument": {"labelsPresence": {"labels": ["retiring"], "presence": False}}}],
                                  "priorities": [{"name": "MostRequestedPriority", "weight": 1}]}))
    m = PlainMaster(tmp_path)
    try:
        m.kill()
        m.conf["kubernetesMasterConfig"] = {"schedulerConfigFile": str(policy)}
        c = Cluster(m.start())
        c.node("n1", labels={"retiring": "1"})
        c.create("p", cpu="1")
        c.refused("p", "1 node(s) didn't have the requested labels")
        c.node("n2")
        c.scheduled("p", "n2")
        c.node("n3")
        c.create("q", cpu="1")
        c.scheduled("q", "n2")  # MostRequestedPriority packs
        m.kill()
        policy.write_text('{"kind": "Policy", "predicates": [{"name": "Nonsense"}]}')
        m.start(wait=False)
        assert m.proc.wait(timeout=30) != 0
        assert 'predicate "Nonsense" is not known' in m.text()
        m.conf["kubernetesMasterConfig"] = {"runScheduler": False}
        m.start()
        c.create("alone")
        c.create("named", nodeName="n2")
        time.sleep(0.5)  # Nothing to wait for: nothing happens.
        assert not c.node_of("alone") and not c.condition("alone")
    finally:
        m.kill()


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_leader_change_loses_and_doubles_none(tmp_path, how):
    """Pods are made while the leading master dies, or hangs and comes back: each gets one node, no node is over-full."""
    etcd = Etcd(tmp_path)
    masters = []
    try:
        masters = [Master(tmp_path, f"tenet{i}", etcd, ttl=3) for i in range(2)]
        for m in masters:
            m.wait_ready()
        leader = wait_for("a leader", lambda: next((m for m in masters if m.leads()), None))
        other = next(m for m in masters if m is not leader)
        c = Cluster(other)
        for i in range(10):
            c.node(f"n{i}", cpu="4")
        made = 0
        for i in range(44):
            if i == 15:
                leader.pause(True) if how == "pause" else leader.kill()
            c.create(f"p{i}", cpu="1")
            made += 1
        wait_for("the other master to lead", other.leads, deadline=60)
        if how == "pause":
            leader.pause(False)
        wait_for("40 pods to have nodes", lambda: len([p for p in other.items("/api/v1/pods") if p["spec"].get("nodeName")]) == 40)
        pods = other.items("/api/v1/pods")
        assert len(pods) == made == 44
        used = [p["spec"]["nodeName"] for p in pods if p["spec"].get("nodeName")]
        assert all(used.count(f"n{i}") == 4 for i in range(10)), "each node is full, and none more than that"
    finally:
        for m in masters:
            m.kill()
        etcd.close()
