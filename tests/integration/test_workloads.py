# SPDX-License-Identifier: Apache-2.0
"""Workloads by kubectl, as a member of a project, on a real master with HTTPS and access control."""
import json
import urllib.request

import pytest

from ha import Etcd, Gone, Master, PlainMaster
from lab import wait_for
from playkubelet import PlayKubelet
from test_auth import Cluster
from test_scheduler import kubelet_node

APPS = "/apis/apps/v1/namespaces/red"


class Project:
    """The project "red", its member "eve" with the role edit, and its pods' kubelets."""

    def __init__(self, tmp):
        self.c = Cluster(str(tmp))
        self.c.namespace("red")
        self.c.bind("red", "eve", "edit", user="eve")
        wait_for("the role's rules", lambda: self.c.kubectl(
            "auth", "can-i", "create", "pods", "-n", "red", "--as", "eve", check=False).returncode == 0)
        self.c.admin("GET", "/api/v1/namespaces/red")
        self.kubelet = PlayKubelet(self.call)

    def stop(self):
        try:
            self.kubelet.stop()
        finally:
            self.c.stop()

    def call(self, method, path, body=None, headers=None):
        status, answer = self.c.ask(self.c._admin, method, path, body, headers=headers)
        return answer if status < 300 else None

    def kubectl(self, *args, fails=False, user="eve", input=None):
        if input is not None:
            (self.c.dir / "input.json").write_text(json.dumps(input))
            args = [*args, "-f", str(self.c.dir / "input.json")]
        r = self.c.kubectl("-n", "red", "--as", user, *args, check=False)
        assert (r.returncode != 0) == fails, (args, r.stdout, r.stderr)
        return r.stderr if fails else r.stdout

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "-o", "json"))

    def pods(self, label):
        return [p for p in self.get("pods", "-l", label)["items"] if not p["metadata"].get("deletionTimestamp")]

    def images(self, label):
        return sorted(p["spec"]["containers"][0]["image"] for p in self.pods(label))

    def events(self, reason):
        return [e["message"] for e in self.get("events")["items"] if e["reason"] == reason]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = Project(tmp_path_factory.mktemp("workloads"))
    yield p
    p.stop()


@pytest.fixture
def p(shared):
    """The project, in which each test leaves nothing."""
    yield shared
    kinds = "deploy,rs,rc,sts,ds,job,cronjob,hpa,pdb,pod,pvc"
    shared.kubectl("delete", kinds, "--all", "--wait=false", user="system:admin")
    wait_for("all to go", lambda: not shared.get(kinds)["items"])


def pod_template(image="web", **spec):
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def workload(kind, name="web", image="web", **spec):
    version = {"ReplicationController": "v1"}.get(kind, "apps/v1")
    selector = {"app": "web"} if version == "v1" else {"matchLabels": {"app": "web"}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name},
            "spec": {"selector": selector, "template": pod_template(image), **spec}}


# ---- sets ----

# The example of the older documents.
FRONTEND = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "frontend-1"}, "spec": {
    "replicas": 1, "selector": {"name": "frontend"}, "template": {"metadata": {"labels": {"name": "frontend"}}, "spec": {
        "containers": [{"image": "openshift/hello-openshift", "name": "helloworld", "ports": [
            {"containerPort": 8080, "protocol": "TCP"}]}], "restartPolicy": "Always"}}}}


def test_the_example_of_the_documents(p):
    p.kubectl("create", input=FRONTEND)
    pod, = wait_for("its pod", lambda: p.pods("name=frontend"))
    assert pod["metadata"]["name"].startswith("frontend-1-") and pod["spec"]["restartPolicy"] == "Always"
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    # The name in the label has at most 63 characters, also when parameters of a template make it.
    template = {"apiVersion": "template.openshift.io/v1", "kind": "Template", "metadata": {"name": "t"},
                "parameters": [{"name": "NAME", "value": "f" * 64}], "objects": [
                    {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "frontend-2"}, "spec": {
                        "replicas": 0, "selector": {"name": "${NAME}"}, "template": {
                            "metadata": {"labels": {"name": "${NAME}"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}}}}]}
    processed = p.call("POST", "/apis/template.openshift.io/v1/namespaces/red/processedtemplates", template)
    made, = processed["objects"]
    assert "must be no more than 63" in p.kubectl("create", input=made, fails=True)
    made["spec"]["selector"] = made["spec"]["template"]["metadata"]["labels"] = {"name": "f" * 63}
    p.kubectl("create", input=made)
    p.kubectl("delete", "rc", "frontend-1", "frontend-2")


@pytest.mark.parametrize("kind", ("ReplicationController", "ReplicaSet"))
def test_a_number_of_pods_is_kept(p, kind):
    p.kubectl("create", input=workload(kind, replicas=3))
    wait_for("three ready pods", lambda: p.get(kind, "web")["status"].get("availableReplicas") == 3)
    before = {x["metadata"]["name"] for x in p.pods("app=web")}
    gone = sorted(before)[0]
    p.kubectl("delete", "pod", gone, "--wait=false")
    wait_for("another pod", lambda: len({x["metadata"]["name"] for x in p.pods("app=web")} - before) == 1)
    assert before - {x["metadata"]["name"] for x in p.pods("app=web")} == {gone}
    p.kubectl("scale", kind, "web", "--replicas=1")
    wait_for("one pod", lambda: len(p.pods("app=web")) == 1)
    assert p.get(kind, "web")["status"]["observedGeneration"] == p.get(kind, "web")["metadata"]["generation"]
    # A pod that loses the labels is let go, and replaced.
    name = p.pods("app=web")[0]["metadata"]["name"]
    p.kubectl("label", "pod", name, "app=other", "--overwrite")
    wait_for("a released pod", lambda: not p.get("pod", name)["metadata"].get("ownerReferences"))
    wait_for("one pod again", lambda: len(p.pods("app=web")) == 1)
    # It is taken back, and one is too many.
    p.kubectl("label", "pod", name, "app=web", "--overwrite")
    wait_for("one pod in the end", lambda: len(p.pods("app=web")) == 1 and
             all(x["metadata"].get("ownerReferences") for x in p.pods("app=web")))


def test_deletion_takes_the_pods_along_or_leaves_them(p):
    p.kubectl("create", input=workload("ReplicaSet", replicas=2))
    wait_for("two pods", lambda: len(p.pods("app=web")) == 2)
    p.kubectl("delete", "rs", "web", "--cascade=orphan")
    wait_for("orphans", lambda: len(p.pods("app=web")) == 2 and
             not any(x["metadata"].get("ownerReferences") for x in p.pods("app=web")))
    p.kubectl("create", input=workload("ReplicaSet", name="next", replicas=2))
    wait_for("adoption", lambda: len(p.pods("app=web")) == 2 and
             all(x["metadata"].get("ownerReferences", [{}])[0].get("name") == "next" for x in p.pods("app=web")))
    p.kubectl("delete", "rs", "next", "--cascade=foreground")
    wait_for("the pods to go", lambda: not p.pods("app=web"))


def test_no_controller_lends_its_pods_the_rights_of_the_master(p):
    """An administrator's template of a privileged pod: the account of the controller may not make it, and it says why."""
    bad = workload("ReplicaSet", replicas=2)
    bad["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert p.call("POST", f"{APPS}/replicasets", bad)
    wait_for("the reason", lambda: any(
        c["type"] == "ReplicaFailure" and c["reason"] == "FailedCreate" and "privileged" in c["message"]
        for c in p.get("rs", "web")["status"].get("conditions", [])))
    assert not p.pods("app=web")
    wait_for("the event", lambda: any("privileged" in e and e.startswith("Error creating: ") for e in p.events("FailedCreate")))
    # Repaired, it goes on by itself.
    p.kubectl("patch", "rs", "web", "--type=json", "-p", json.dumps(
        [{"op": "remove", "path": "/spec/template/spec/containers/0/securityContext"}]))
    wait_for("two pods", lambda: p.get("rs", "web")["status"].get("availableReplicas") == 2)
    assert not p.get("rs", "web")["status"].get("conditions")


# ---- Deployments ----

def deploy(p, image="web", replicas=3, **spec):
    p.kubectl("create", input=workload("Deployment", image=image, replicas=replicas, **spec))
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")


def test_a_deployment_is_rolled_out_and_back(p):
    deploy(p)
    assert p.images("app=web") == ["web"] * 3
    p.kubectl("set", "image", "deploy/web", "c=web:2")
    p.kubectl("annotate", "deploy/web", "kubernetes.io/change-cause=image 2")
    assert "successfully rolled out" in p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert p.images("app=web") == ["web:2"] * 3
    history = p.kubectl("rollout", "history", "deploy/web")
    assert "1 " in history and "2 " in history and "image 2" in history
    assert "web:2" in p.kubectl("rollout", "history", "deploy/web", "--revision=2")
    p.kubectl("rollout", "undo", "deploy/web")
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert p.images("app=web") == ["web"] * 3
    assert p.get("deploy", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    p.kubectl("rollout", "undo", "deploy/web", "--to-revision=2")
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert p.images("app=web") == ["web:2"] * 3
    p.kubectl("rollout", "restart", "deploy/web")
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    p.kubectl("wait", "deploy/web", "--for=condition=Available", "--timeout=60s")
    assert all("kubectl.kubernetes.io/restartedAt" in x["metadata"].get("annotations", {}) for x in p.pods("app=web"))
    assert "3/3" in p.kubectl("get", "deploy", "web")
    assert "NewReplicaSet:" in p.kubectl("describe", "deploy", "web")


def test_a_deployment_of_an_administrator_has_one_set(p):
    """What admission fills in for an account without rights must not make another template of it."""
    assert p.call("POST", f"{APPS}/deployments", workload("Deployment", replicas=2))
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert len(p.get("rs")["items"]) == 1
    assert p.get("deploy", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


def test_a_pause_holds_changes_back(p):
    deploy(p)
    p.kubectl("rollout", "pause", "deploy/web")
    p.kubectl("set", "image", "deploy/web", "c=web:2")
    p.kubectl("scale", "deploy/web", "--replicas=4")
    wait_for("four pods", lambda: p.images("app=web") == ["web"] * 4)
    p.kubectl("rollout", "resume", "deploy/web")
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert p.images("app=web") == ["web:2"] * 4


def test_a_broken_image_stops_the_rollout_and_a_good_one_repairs_it(p):
    deploy(p, replicas=4, progressDeadlineSeconds=2)
    p.kubectl("set", "image", "deploy/web", "c=broken")
    assert "exceeded its progress deadline" in p.kubectl("rollout", "status", "deploy/web", "--timeout=60s", fails=True)
    assert p.images("app=web") == ["broken"] * 2 + ["web"] * 3
    p.kubectl("set", "image", "deploy/web", "c=web:3")
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert p.images("app=web") == ["web:3"] * 4


def test_recreate_and_history_limit(p):
    deploy(p, replicas=2, strategy={"type": "Recreate"}, revisionHistoryLimit=1)
    for i in range(3):
        p.kubectl("set", "image", "deploy/web", f"c=web:{i}")
        p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
        assert p.images("app=web") == [f"web:{i}"] * 2
    wait_for("one old set", lambda: len(p.get("rs")["items"]) == 2)


def test_autoscaling_fields_and_subresources_of_scale(p):
    deploy(p)
    scale = p.call("GET", f"{APPS}/deployments/web/scale")
    assert scale["kind"] == "Scale" and scale["status"]["selector"] == "app=web" and scale["status"]["replicas"] == 3
    p.kubectl("delete", "deploy", "web", "--cascade=foreground")
    wait_for("all pods to go", lambda: not p.pods("app=web"))
    assert not p.get("rs")["items"]


# ---- StatefulSets and DaemonSets ----

def test_a_stateful_set_keeps_names_claims_and_history(p):
    p.kubectl("create", input=workload("StatefulSet", replicas=2, serviceName="web", volumeClaimTemplates=[
        {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                "resources": {"requests": {"storage": "1Gi"}}}}]))
    p.kubectl("rollout", "status", "sts/web", "--timeout=60s")
    assert [x["metadata"]["name"] for x in p.pods("app=web")] == ["web-0", "web-1"]
    assert sorted(x["metadata"]["name"] for x in p.get("pvc")["items"]) == ["data-web-0", "data-web-1"]
    p.kubectl("set", "image", "sts/web", "c=web:2")
    p.kubectl("rollout", "status", "sts/web", "--timeout=60s")
    assert p.images("app=web") == ["web:2"] * 2
    assert "web:2" in p.kubectl("rollout", "history", "sts/web", "--revision=2")
    p.kubectl("rollout", "undo", "sts/web")
    p.kubectl("rollout", "status", "sts/web", "--timeout=60s")
    assert p.images("app=web") == ["web"] * 2
    p.kubectl("scale", "sts/web", "--replicas=1")
    wait_for("one pod", lambda: [x["metadata"]["name"] for x in p.pods("app=web")] == ["web-0"])
    assert len(p.get("pvc")["items"]) == 2
    uid = p.get("pod", "web-0")["metadata"]["uid"]
    p.kubectl("delete", "pod", "web-0", "--wait=false")
    wait_for("the pod of that name again", lambda: any(x["metadata"]["uid"] != uid for x in p.pods("app=web")))


def test_a_daemon_set_has_a_pod_on_each_node(p):
    names = ("n1", "n2")
    try:
        for name in names:
            assert p.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        p.kubectl("create", input=workload("DaemonSet"))
        wait_for("two pods", lambda: p.get("ds", "web")["status"].get("numberAvailable") == 2)
        p.kubectl("rollout", "status", "ds/web", "--timeout=60s")
        p.kubectl("set", "image", "ds/web", "c=web:2")
        p.kubectl("rollout", "status", "ds/web", "--timeout=60s")
        assert p.images("app=web") == ["web:2"] * 2
        p.kubectl("rollout", "undo", "ds/web")
        p.kubectl("rollout", "status", "ds/web", "--timeout=60s")
        assert p.images("app=web") == ["web"] * 2
        p.call("DELETE", "/api/v1/nodes/n2")
        wait_for("one desired pod", lambda: p.get("ds", "web")["status"]["desiredNumberScheduled"] == 1)
    finally:
        for name in names:
            p.call("DELETE", f"/api/v1/nodes/{name}")


def test_a_daemon_set_keeps_to_the_nodes_of_its_project(p):
    """Its controller knows the project's node selector, so that no pod is made for a node where it could not run."""
    try:
        for name, region in (("n1", "primary"), ("n2", "other")):
            assert p.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"region": region}}})
        p.kubectl("annotate", "namespace", "red", "openshift.io/node-selector=region=primary", user="system:admin")
        p.kubectl("create", input=workload("DaemonSet"))
        wait_for("one pod", lambda: p.get("ds", "web")["status"].get("numberAvailable") == 1)
        assert p.get("ds", "web")["status"]["desiredNumberScheduled"] == 1
        assert [x["spec"]["nodeSelector"] for x in p.pods("app=web")] == [{"region": "primary"}]
        p.kubectl("annotate", "namespace", "red", "openshift.io/node-selector=", "--overwrite", user="system:admin")
        wait_for("two pods", lambda: p.get("ds", "web")["status"].get("numberAvailable") == 2)
    finally:
        p.kubectl("annotate", "namespace", "red", "openshift.io/node-selector-", user="system:admin")
        for name in ("n1", "n2"):
            p.call("DELETE", f"/api/v1/nodes/{name}")


# ---- Jobs ----

def job(image, name="web", **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}}, **spec}}


def test_jobs_complete_and_fail(p):
    p.kubectl("create", input=job("done", completions=3, parallelism=2))
    p.kubectl("wait", "job/web", "--for=condition=complete", "--timeout=60s")
    status = p.get("job", "web")["status"]
    assert status["succeeded"] == 3 and "active" not in status and not status["uncountedTerminatedPods"]
    assert "3/3" in p.kubectl("get", "job", "web")
    pods = p.get("pods", "-l", "job-name=web")["items"]
    assert len(pods) == 3 and not any(x["metadata"].get("finalizers") for x in pods)
    p.kubectl("create", input=job("fail:3", name="bad", backoffLimit=0))
    p.kubectl("wait", "job/bad", "--for=condition=failed", "--timeout=60s")
    c = next(x for x in p.get("job", "bad")["status"]["conditions"] if x["type"] == "Failed")
    assert c["reason"] == "BackoffLimitExceeded"
    p.kubectl("delete", "job", "web", "bad")
    wait_for("the pods to go", lambda: not p.get("pods")["items"])


def test_an_indexed_job_and_one_that_goes_by_itself(p):
    p.kubectl("create", input=job("done", completions=3, parallelism=3, completionMode="Indexed"))
    p.kubectl("wait", "job/web", "--for=condition=complete", "--timeout=60s")
    assert p.get("job", "web")["status"]["completedIndexes"] == "0-2"
    indexes = [x["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for x in p.get("pods")["items"]]
    assert sorted(indexes) == ["0", "1", "2"]
    p.kubectl("create", input=job("done", name="brief", ttlSecondsAfterFinished=0))
    wait_for("the Job to go", lambda: not any(x["metadata"]["name"] == "brief" for x in p.get("job")["items"])
             and len(p.get("pods")["items"]) == 3)


def test_a_job_that_is_deleted_holds_no_pods_back(p):
    """The finalizer of pods goes with the Job, whatever way it is deleted."""
    p.kubectl("create", input=job("web", completions=2, parallelism=2))
    wait_for("two pods", lambda: p.get("job", "web")["status"].get("ready") == 2)
    p.kubectl("delete", "job", "web", "--cascade=orphan")
    wait_for("no finalizers", lambda: len(p.get("pods")["items"]) == 2 and
             not any(x["metadata"].get("finalizers") for x in p.get("pods")["items"]))
    p.kubectl("create", input=job("web", name="next", completions=2, parallelism=2))
    wait_for("two more pods", lambda: p.get("job", "next")["status"].get("ready") == 2)
    p.kubectl("delete", "job", "next", "--cascade=background")
    wait_for("these to go", lambda: len(p.get("pods")["items"]) == 2)


def test_a_cron_job_makes_jobs(p):
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
            "spec": {"schedule": "@every 1s", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Forbid",
                     "jobTemplate": {"spec": job("done")["spec"]}}}
    p.kubectl("create", input=cron)
    wait_for("a Job that has succeeded", lambda: p.get("cronjob", "tick")["status"].get("lastSuccessfulTime"))
    made, = (x for x in p.get("job")["items"] if x["metadata"]["ownerReferences"][0]["name"] == "tick")
    p.kubectl("create", "job", "--from=cronjob/tick", "byhand")
    p.kubectl("wait", "job/byhand", "--for=condition=complete", "--timeout=60s")
    p.kubectl("patch", "cronjob", "tick", "-p", '{"spec":{"suspend":true,"timeZone":"Nowhere/None"}}')
    p.kubectl("delete", "cronjob", "tick", "--cascade=foreground")
    wait_for("its Jobs to go", lambda: not p.get("job")["items"])
    assert made["metadata"]["name"].startswith("tick-")


# ---- autoscaling and budgets ----

def test_an_autoscaler_keeps_the_limits_and_says_what_it_lacks(p):
    deploy(p, replicas=1)
    p.kubectl("autoscale", "deploy/web", "--min=2", "--max=4", "--cpu-percent=50")
    p.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    wait_for("two pods", lambda: p.get("deploy", "web")["spec"]["replicas"] == 2)
    wait_for("the event", lambda: any("below Spec.MinReplicas" in e for e in p.events("SuccessfulRescale")))
    # No kubelet measures here: the condition says so, and nothing is changed.
    p.kubectl("patch", "hpa", "web", "-p", '{"spec":{"maxReplicas":5}}')
    wait_for("the condition", lambda: any(
        c["type"] == "ScalingActive" and c["status"] == "False" and c["reason"] == "FailedGetResourceMetric"
        for c in p.get("hpa.v2.autoscaling", "web")["status"].get("conditions", [])))
    assert p.get("deploy", "web")["spec"]["replicas"] == 2
    assert "Deployment/web" in p.kubectl("get", "hpa", "web")


def test_a_budget_holds_evictions_back(p):
    deploy(p, replicas=2)
    p.kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
    wait_for("the budget", lambda: p.get("pdb", "web")["status"].get("currentHealthy") == 2)
    name = p.pods("app=web")[0]["metadata"]["name"]
    path = f"/api/v1/namespaces/red/pods/{name}/eviction"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    status, answer = p.c.ask(p.c._admin, "POST", path, eviction)
    assert status == 429 and "budget" in answer["message"]
    p.kubectl("scale", "deploy/web", "--replicas=3")
    wait_for("room", lambda: p.get("pdb", "web")["status"]["disruptionsAllowed"] == 1)
    assert p.c.ask(p.c._admin, "POST", path, eviction)[0] == 201
    wait_for("three pods again", lambda: p.get("deploy", "web")["status"].get("availableReplicas") == 3)


def test_a_drain_moves_pods_within_their_budget(p):
    nodes = ("n1", "n2")
    try:
        for name in nodes:
            n = kubelet_node(name)
            assert p.call("POST", "/api/v1/nodes", n)
            assert p.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": n["status"]},
                          {"Content-Type": "application/strategic-merge-patch+json"})
        deploy(p, replicas=4)
        wait_for("nodes of all pods", lambda: all(x["spec"].get("nodeName") for x in p.pods("app=web")))
        p.kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=3")
        wait_for("room", lambda: p.get("pdb", "web")["status"].get("disruptionsAllowed") == 1)
        r = p.c.kubectl("drain", "n1", "--timeout=60s", check=False)
        assert r.returncode == 0 and "node/n1 drained" in r.stdout, r
        wait_for("four pods on the other node", lambda: p.get("deploy", "web")["status"].get("availableReplicas") == 4 and
                 [x["spec"].get("nodeName") for x in p.pods("app=web")] == ["n2"] * 4)
    finally:
        for name in nodes:
            p.call("DELETE", f"/api/v1/nodes/{name}")


# ---- leaders ----

def running_controllers(master):
    with urllib.request.urlopen(f"http://127.0.0.1:{master.port}/metrics", timeout=30) as r:
        return {x.split('"')[1] for x in r.read().decode().splitlines() if x.startswith("controller_running{") and x.endswith(" 1")}


def test_another_program_can_keep_the_pods(tmp_path):
    m = PlainMaster(tmp_path)
    ours = {"replica_sets", "replication_controllers", "deployments", "daemon_sets", "stateful_sets", "jobs", "job_ttl",
            "cron_jobs", "autoscalers"}
    try:
        wait_for("all controllers", lambda: ours <= running_controllers(m))
        m.kill()
        m.conf["kubernetesMasterConfig"] = {"runWorkloads": False}
        m.start()
        wait_for("the other controllers", lambda: "gc" in running_controllers(m))
        assert not ours & running_controllers(m)
    finally:
        m.kill()


@pytest.mark.parametrize("how", ("kill", "pause"))
def test_a_leader_that_dies_in_a_rollout_loses_and_doubles_nothing(tmp_path, how):
    etcd = Etcd(tmp_path)
    masters, kubelet = [], None
    path = "/apis/apps/v1/namespaces/default/"

    def call(method, path, body=None, headers=None):
        for m in masters:
            try:
                if m.proc and not m.stopped:
                    status, answer = m.call(method, path, body, headers=headers)
                    return answer if status < 300 else None
            except Gone:
                pass
        return None

    def sizes():
        """What the sets want together, and the images of the pods that are not in deletion."""
        sets = call("GET", path + "replicasets")
        pods = call("GET", "/api/v1/namespaces/default/pods")
        if not sets or not pods:
            return None, []
        return (sum(s["spec"]["replicas"] for s in sets["items"]),
                [p["spec"]["containers"][0]["image"] for p in pods["items"] if not p["metadata"].get("deletionTimestamp")])

    def settled(image):
        total, images = sizes()
        assert total is None or total <= 10 + 3, total
        return total == 10 and images == [image] * 10

    try:
        masters = [Master(tmp_path, f"tenet{i}", etcd, ttl=3) for i in range(2)]
        for m in masters:
            m.wait_ready()
        leader = wait_for("a leader", lambda: next((m for m in masters if m.leads()), None))
        kubelet = PlayKubelet(call)
        assert call("POST", path + "deployments", workload("Deployment", replicas=10))
        wait_for("ten pods", lambda: settled("web"))
        for i in range(2):
            assert call("PATCH", path + "deployments/web",
                        {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": f"web:{i}"}]}}}},
                        {"Content-Type": "application/strategic-merge-patch+json"})
            wait_for("the middle of the rollout", lambda: f"web:{i}" in sizes()[1])
            if i == 0 and how == "kill":
                leader.kill()
            elif i == 0:
                leader.pause(True)
            wait_for("the end of the rollout", lambda: settled(f"web:{i}"), 60)
            if i == 0 and how == "pause":
                leader.pause(False)
        uids = {p["metadata"]["ownerReferences"][0]["uid"] for p in call("GET", "/api/v1/namespaces/default/pods")["items"]}
        assert len(uids) == 1
    finally:
        if kubelet:
            kubelet.stop()
        for m in masters:
            m.kill()
        etcd.close()
