# SPDX-License-Identifier: Apache-2.0
"""What goes with the owner of dependents, for each kind of workloads and each way of deletion, on a real master."""
import json

import pytest

from lab import wait_for
from playkubelet import PlayKubelet
from test_auth import Cluster
from test_scheduler import kubelet_node

POLICIES = (None, "Background", "Foreground", "Orphan")
# Kinds whose dependents stay when the client says nothing, as in Kubernetes.
LEAVE = ("ReplicationController", "Job")


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    cluster = Cluster(str(tmp_path_factory.mktemp("deletion")))
    cluster.namespace("red")
    cluster.admin("POST", "/api/v1/nodes", kubelet_node("n1"), 201)

    def call(method, path, body=None, headers=None):
        status, answer = cluster.ask(cluster._admin, method, path, body, headers=headers)
        return answer if status < 300 else None
    kubelet = PlayKubelet(call)
    yield cluster
    try:
        kubelet.stop()
    finally:
        cluster.stop()


def paths(kind):
    base = {"ReplicationController": "/api/v1", "Job": "/apis/batch/v1", "CronJob": "/apis/batch/v1"}.get(kind, "/apis/apps/v1")
    return f"{base}/namespaces/red/{kind.lower()}s"


def body(kind):
    pod = {"metadata": {"labels": {"app": kind.lower()}}, "spec": {"containers": [{"name": "c", "image": "web"}]}}
    spec = {"selector": {"matchLabels": {"app": kind.lower()}}, "template": pod}
    if kind == "ReplicationController":
        spec["selector"] = {"app": kind.lower()}
    if kind == "StatefulSet":
        spec["serviceName"] = "s"
    if kind == "Job":
        spec = {"template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}}
    return {"metadata": {"name": "w"}, "spec": spec}


def pods(c, kind):
    items = c.admin("GET", f"/api/v1/namespaces/red/pods?labelSelector=app={kind.lower()}")["items"]
    return {p["metadata"]["name"]: p for p in items if not p["metadata"].get("deletionTimestamp")}


def sets(c):
    return c.admin("GET", "/apis/apps/v1/namespaces/red/replicasets")["items"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_dependents_go_or_stay(c, kind, policy):
    c.admin("POST", paths(kind), body(kind), 201)
    wait_for("a pod", lambda: len(pods(c, kind)) == 1)
    name, pod = pods(c, kind).popitem()
    owner = next(r for r in pod["metadata"]["ownerReferences"] if r.get("controller"))
    assert owner["blockOwnerDeletion"] and owner["kind"] == ("ReplicaSet" if kind == "Deployment" else kind)
    options = {"propagationPolicy": policy} if policy else None
    c.admin("DELETE", f"{paths(kind)}/w", options)
    stay = policy == "Orphan" or (policy is None and kind in LEAVE)
    wait_for("the owner to go", lambda: c.ask(c._admin, "GET", f"{paths(kind)}/w")[0] == 404)
    if not stay:
        if policy == "Foreground":
            assert not pods(c, kind), "the owner goes after its dependents"
        wait_for("the pod to go", lambda: not pods(c, kind))
        wait_for("the sets to go", lambda: not sets(c))
        return
    # What is left has no owner any more, and nothing keeps it from being deleted.
    if kind == "Deployment":
        wait_for("a free ReplicaSet", lambda: [s["metadata"].get("ownerReferences") for s in sets(c)] == [None])
        assert name in pods(c, kind)
        c.admin("DELETE", f"/apis/apps/v1/namespaces/red/replicasets/{sets(c)[0]['metadata']['name']}")
    else:
        wait_for("a free pod", lambda: name in pods(c, kind) and not pods(c, kind)[name]["metadata"].get("ownerReferences"))
        c.admin("DELETE", f"/api/v1/namespaces/red/pods/{name}")
    wait_for("no pod", lambda: not c.admin("GET", f"/api/v1/namespaces/red/pods?labelSelector=app={kind.lower()}")["items"])


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_of_a_cron_job(c, policy):
    job = body("Job")["spec"]
    c.admin("POST", paths("CronJob"), {"metadata": {"name": "tick"}, "spec": {
        "schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}}, 201)
    made = c.admin("GET", f"{paths('CronJob')}/tick")
    c.admin("POST", paths("Job"), {"metadata": {"name": "w", "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": made["metadata"]["uid"], "controller": True,
         "blockOwnerDeletion": True}]}, "spec": job}, 201)
    wait_for("a pod", lambda: len(pods(c, "Job")) == 1)
    c.admin("DELETE", f"{paths('CronJob')}/tick", {"propagationPolicy": policy} if policy else None)
    wait_for("the owner to go", lambda: c.ask(c._admin, "GET", f"{paths('CronJob')}/tick")[0] == 404)
    if policy == "Orphan":
        wait_for("a free Job", lambda: not c.admin("GET", f"{paths('Job')}/w")["metadata"].get("ownerReferences"))
        assert len(pods(c, "Job")) == 1
        c.admin("DELETE", f"{paths('Job')}/w", {"propagationPolicy": "Background"})
    # The collector deletes a Job with its pods, although a client's deletion would leave them.
    wait_for("the Job to go", lambda: c.ask(c._admin, "GET", f"{paths('Job')}/w")[0] == 404)
    wait_for("the pod to go", lambda: not c.admin("GET", "/api/v1/namespaces/red/pods?labelSelector=app=job")["items"])


def test_owners_that_are_named_without_their_group(c):
    """OpenShift's kinds had no group once: "v1" finds them, and an owner of no kind keeps its dependents."""
    api = "/apis/template.openshift.io/v1/namespaces/red/templates"
    made = c.admin("POST", api, {"metadata": {"name": "t"}, "objects": []}, 201)

    def dependent(name, kind, uid):
        c.admin("POST", "/api/v1/namespaces/red/configmaps", {"metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": kind, "name": "t", "uid": uid}]}}, 201)
    dependent("owned", "Template", made["metadata"]["uid"])
    dependent("stale", "Template", "11111111-2222-3333-4444-555555555555")
    dependent("unknown", "Nonsense", "11111111-2222-3333-4444-555555555556")
    wait_for("the stale one to go", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/red/configmaps/stale")[0] == 404)
    c.admin("GET", "/api/v1/namespaces/red/configmaps/owned")
    c.admin("DELETE", f"{api}/t")
    wait_for("the owned one to go", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/red/configmaps/owned")[0] == 404)
    c.admin("DELETE", "/api/v1/namespaces/red/configmaps/unknown")


def test_a_namespace_takes_all_along(c):
    """Also the dependents of kinds that leave them by default."""
    c.namespace("gone")
    for kind in ("ReplicationController", "Job", "Deployment"):
        c.admin("POST", paths(kind).replace("/red/", "/gone/"), body(kind), 201)
    wait_for("three pods", lambda: len(c.admin("GET", "/api/v1/namespaces/gone/pods")["items"]) == 3)
    c.admin("POST", "/apis/template.openshift.io/v1/namespaces/gone/templateinstances", {
        "metadata": {"name": "i"}, "spec": {"template": {"objects": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]}}}, 201)
    wait_for("the instance", lambda: "Ready" in json.dumps(
        c.admin("GET", "/apis/template.openshift.io/v1/namespaces/gone/templateinstances/i")["status"]))
    c.admin("DELETE", "/api/v1/namespaces/gone")
    wait_for("the namespace to go", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/gone")[0] == 404)
