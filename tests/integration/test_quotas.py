# SPDX-License-Identifier: Apache-2.0
"""Quotas and limits by kubectl on a real master: what users see, a rollout that meets its quota, masters that are killed, and two
masters that share a store."""
import concurrent.futures
import contextlib
import json
import random
import threading

import pytest

from ha import Etcd, Gone, Master, PlainMaster
from lab import wait_for
from test_workloads import Project, workload

MERGE = {"Content-Type": "application/merge-patch+json"}
QUOTAS = "/api/v1/namespaces/{}/resourcequotas"
CLUSTER = "/apis/quota.openshift.io/v1/clusterresourcequotas"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = Project(tmp_path_factory.mktemp("quotas"))
    yield p
    p.stop()


@pytest.fixture
def p(shared):
    """The project, in which each test leaves nothing."""
    yield shared
    kinds = "deploy,rs,job,pod,quota,limits"
    shared.kubectl("delete", kinds, "--all", "--wait=false", user="system:admin")
    wait_for("all to go", lambda: not shared.get(kinds)["items"])


def quota(name="q", **hard):
    return {"metadata": {"name": name}, "spec": {"hard": {k.replace("_", "."): str(v) for k, v in hard.items()}}}


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def used(p, name="q"):
    return p.get("quota", name)["status"].get("used", {})


def test_kubectl_makes_and_shows_quotas_and_limits(p):
    p.kubectl("create", "quota", "q", "--hard=pods=2,requests.cpu=1,limits.memory=1Gi", user="system:admin")
    wait_for("the status", lambda: used(p) == {"pods": "0", "requests.cpu": "0", "limits.memory": "0"})
    assert "must specify limits.memory for: c; requests.cpu for: c" in p.kubectl("create", input=pod("a"), fails=True)
    p.kubectl("create", user="system:admin", input={
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "600m", "memory": "256Mi"}, "max": {"cpu": "1"}}]}})
    p.kubectl("create", input=pod("a"))
    err = p.kubectl("create", input=pod("b"), fails=True)
    assert 'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, ' \
           "limited: requests.cpu=1" in err
    wait_for("the usage", lambda: used(p) == {"pods": "1", "requests.cpu": "600m", "limits.memory": "256Mi"})
    shown = p.kubectl("get", "quota")
    assert "pods: 1/2, requests.cpu: 600m/1" in shown and "limits.memory: 256Mi/1Gi" in shown
    described = p.kubectl("describe", "quota", "q")
    assert ["requests.cpu", "600m", "1"] in [line.split() for line in described.splitlines()], described
    described = p.kubectl("describe", "limits", "l")
    assert ["Container", "cpu", "-", "1", "600m", "600m", "-"] in [line.split() for line in described.splitlines()], described
    notes = p.get("pod", "a")["metadata"]["annotations"]
    assert notes["kubernetes.io/limit-ranger"] == "LimitRanger plugin set: cpu, memory request for container c; " \
                                                  "cpu, memory limit for container c"


def test_a_rollout_that_meets_its_quota_goes_on_when_there_is_room(p):
    p.kubectl("create", input=workload("Deployment", replicas=3))
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    p.c.admin("POST", QUOTAS.format("red"), quota(pods=3), 201)
    p.kubectl("patch", "deploy", "web", "-p", '{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}}}')
    p.kubectl("set", "image", "deploy/web", "c=web:2")

    def failure():
        conditions = p.get("deploy", "web")["status"].get("conditions", [])
        return next((c for c in conditions if c["type"] == "ReplicaFailure" and c["status"] == "True"), None)
    why = wait_for("the condition", failure)
    assert why["reason"] == "FailedCreate" and "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3" in why["message"]
    assert wait_for("the event", lambda: [m for m in p.events("FailedCreate") if "exceeded quota: q" in m])
    assert p.images("app=web") == ["web"] * 3, "the pods before are kept"
    p.c.admin("PATCH", QUOTAS.format("red") + "/q", {"spec": {"hard": {"pods": "4"}}}, headers=MERGE)
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert p.images("app=web") == ["web:2"] * 3 and not failure()
    wait_for("the usage", lambda: used(p) == {"pods": "3"})


def test_a_deployment_goes_on_when_other_pods_go(p):
    p.c.admin("POST", QUOTAS.format("red"), quota(pods=2), 201)
    p.kubectl("create", input=pod("other"))
    p.kubectl("create", input=workload("Deployment", replicas=2))
    wait_for("one of two", lambda: len(p.pods("app=web")) == 1 and used(p) == {"pods": "2"})
    p.kubectl("delete", "pod", "other", "--grace-period=0", "--force")
    wait_for("both", lambda: len(p.pods("app=web")) == 2, 60)


def test_a_project_sees_the_quota_of_the_cluster(p):
    p.c.admin("PATCH", "/api/v1/namespaces/red", {"metadata": {"annotations": {"cost": "7"}}}, headers=MERGE)
    p.c.admin("POST", CLUSTER, {"metadata": {"name": "cost-7"}, "spec": {
        "selector": {"annotations": {"cost": "7"}}, "quota": {"hard": {"pods": "1"}}}}, 201)
    try:
        p.kubectl("create", input=pod("a"))
        assert "exceeded quota: cost-7" in p.kubectl("create", input=pod("b"), fails=True)
        applied = wait_for("the usage", lambda: next((
            o for o in p.get("appliedclusterresourcequotas")["items"] if o["status"]["total"]["used"] == {"pods": "1"}), None))
        assert [n["namespace"] for n in applied["status"]["namespaces"]] == ["red"]
        assert "cost=7" in p.kubectl("get", "appliedclusterresourcequotas")
        assert "forbidden" in p.kubectl("get", "clusterresourcequotas", fails=True)
        assert 'apiserver_quota_refusals_total{namespace="",quota="cost-7"} 1' in p.c.admin("GET", "/metrics")["text"].splitlines()
    finally:
        p.c.admin("DELETE", CLUSTER + "/cost-7")
        p.c.admin("PATCH", "/api/v1/namespaces/red", {"metadata": {"annotations": {"cost": None}}}, headers=MERGE)


# ---- masters that die, and masters that share ----

PODS = "/api/v1/namespaces/default/pods"
HARD = 6


def counts(master):
    """What the objects add up to, and what the quota's status says."""
    pods = [o for o in master.items(PODS) if o["status"].get("phase") not in ("Succeeded", "Failed")]
    _, q = master.call("GET", QUOTAS.format("default") + "/q")
    return str(len(pods)), q["status"].get("used", {}).get("pods")


class Writer(threading.Thread):
    """Makes and deletes pods on one of the masters, at random, until it is told to stop."""

    def __init__(self, masters, seed):
        super().__init__(daemon=True)
        self.masters, self.rng, self.stopping, self.statuses, self.error = masters, random.Random(seed), threading.Event(), {}, None
        self.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                with contextlib.suppress(Gone, AttributeError):
                    self.step(self.rng.choice(self.masters))
        except Exception as e:  # shown by finish(), in the test's thread
            self.error = e

    def step(self, master):
        name, what = f"p{self.rng.randrange(12)}", self.rng.random()
        if what < 0.6:
            status, _ = master.call("POST", PODS, pod(name))
        elif what < 0.8:
            status, _ = master.call("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        elif what < 0.9:
            status, _ = master.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Failed"}}, headers=MERGE)
        else:
            status, _ = master.call("POST", PODS + "?dryRun=All", pod(name))
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def finish(self):
        self.stopping.set()
        self.join(60)
        assert not self.error, self.error
        return self.statuses


def check_bound(master):
    objects = sum(o["status"].get("phase") not in ("Succeeded", "Failed") for o in master.items(PODS))
    assert objects <= HARD, objects


def test_a_master_that_is_killed_counts_anew(tmp_path):
    m = PlainMaster(tmp_path)
    seed = random.randrange(10**6)
    rng = random.Random(seed)
    try:
        status, answer = m.call("POST", QUOTAS.format("default"), quota(pods=HARD))
        assert status == 201, answer
        for _ in range(5):
            writers = [Writer([m], rng.random()) for _ in range(4)]
            before = m.call("GET", PODS)[1]["metadata"]["resourceVersion"]
            target = int(before) + rng.randrange(5, 60)
            wait_for("some writes", lambda: int(m.call("GET", PODS)[1]["metadata"]["resourceVersion"]) >= target)
            m.kill()
            statuses = [w.finish() for w in writers]
            assert any(s.get(201) for s in statuses), statuses
            m.start()
            check_bound(m)
            # The first write after the start is decided by what was there.
            room = HARD - int(counts(m)[0])
            made = [m.call("POST", PODS, {**pod("x"), "metadata": {"generateName": "x"}})[0] for _ in range(room + 2)]
            assert made == [201] * room + [403] * 2, (seed, made)
            wait_for("the status", lambda: len(set(counts(m))) == 1)
            m.call("DELETE", PODS + "?gracePeriodSeconds=0")
            wait_for("no pods", lambda: not m.items(PODS))
    finally:
        m.kill()


@pytest.fixture
def two(tmp_path):
    etcd = Etcd(tmp_path)
    masters = []
    try:
        masters = [Master(tmp_path, f"tenet{i}", etcd) for i in range(2)]
        for m in masters:
            m.wait_ready()
        yield masters
    finally:
        for m in masters:
            m.kill()
        etcd.close()


def at_once(masters, n, path, body):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return sorted(pool.map(lambda i: masters[i % len(masters)].call("POST", path, body(i), timeout=60)[0], range(n)))


def test_two_masters_do_not_admit_more_than_one_would(two):
    a, b = two
    before = len(wait_for("the API's own service", lambda: a.items("/api/v1/namespaces/default/services")))
    assert a.call("POST", QUOTAS.format("default"), quota(pods=2, services=before + 2))[0] == 201
    wait_for("the other master", lambda: b.call("GET", QUOTAS.format("default") + "/q")[0] == 200)
    assert at_once(two, 50, PODS, lambda i: pod(f"p{i}")) == [201] * 2 + [403] * 48
    # A service has claims of its own in the same transaction.
    services = at_once(two, 12, "/api/v1/namespaces/default/services",
                       lambda i: {"metadata": {"name": f"s{i}"}, "spec": {"ports": [{"port": 80}]}})
    assert services == [201] * 2 + [403] * 10, services
    wait_for("the status", lambda: a.call("GET", QUOTAS.format("default") + "/q")[1]["status"]["used"] ==
             {"pods": "2", "services": str(before + 2)})
    assert a.call("DELETE", QUOTAS.format("default") + "/q")[0] == 200
    wait_for("the other master", lambda: b.call("POST", PODS, {**pod("x"), "metadata": {"generateName": "x"}})[0] == 201)


def test_two_masters_share_a_quota_of_the_cluster(two):
    a, b = two
    for name in ("red", "blue"):
        assert a.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": {"team": "x"}}})[0] == 201
        wait_for("the other master", lambda name=name: b.call("GET", f"/api/v1/namespaces/{name}")[0] == 200)
    assert a.call("POST", CLUSTER, {"metadata": {"name": "c"}, "spec": {
        "selector": {"labels": {"matchLabels": {"team": "x"}}}, "quota": {"hard": {"pods": "5"}}}})[0] == 201
    wait_for("the other master", lambda: b.call("GET", CLUSTER + "/c")[0] == 200)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = sorted(pool.map(lambda i: two[i % 2].call("POST", f"/api/v1/namespaces/{('red', 'blue')[i // 2 % 2]}/pods",
                                                         pod(f"p{i}"), timeout=60)[0], range(40)))
    assert got == [201] * 5 + [403] * 35, got


def test_two_masters_keep_to_the_bound_while_pods_come_and_go_and_one_dies(two):
    a, b = two
    assert a.call("POST", QUOTAS.format("default"), quota(pods=HARD))[0] == 201
    wait_for("the other master", lambda: b.call("GET", QUOTAS.format("default") + "/q")[0] == 200)
    writers = [Writer(two, i) for i in range(6)]

    def revision():
        return int(a.call("GET", PODS)[1]["metadata"]["resourceVersion"])
    for _ in range(3):
        for kills in (False, True):
            target = revision() + 40
            wait_for("forty writes", lambda target=target: check_bound(a) or revision() >= target)
            if kills:
                b.kill()
                check_bound(a)
                b.start()
            check_bound(b)
    statuses = [w.finish() for w in writers]
    assert all(s.get(201) for s in statuses) and any(s.get(403) for s in statuses), statuses
    assert not any(s.get(500) for s in statuses), statuses
    wait_for("the status", lambda: len({*counts(a), *counts(b)}) == 1)
