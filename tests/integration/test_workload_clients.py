# SPDX-License-Identifier: Apache-2.0
"""Workloads by tenet, kubectl and the Python client, as a member of a project, on a master with HTTPS and access control."""
import re
import shutil

import pytest
from kubernetes import client, config

from lab import TENET, wait_for
from test_workloads import Project, p, workload  # noqa: F401 (a fixture)
from workload_steps import STEPS, Client, kubeconfig, rolled_out

PROGRAMS = {"tenet": TENET, "kubectl": shutil.which("kubectl")}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("workload-clients"))
    yield made
    made.stop()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_user_works_with(p, program, step):  # noqa: F811
    STEPS[step](Client(p, PROGRAMS[program]))


def test_the_project_is_drawn_with_what_is_wrong(p):  # noqa: F811
    c = Client(p, TENET)
    c.create(workload("Deployment", replicas=2))
    rolled_out(c, "deployment/web")
    c.run("expose", "deployment/web", "--port=80", "--cluster-ip=None")
    text = c.run("status")
    assert text.startswith(f"In project red on server https://127.0.0.1:{p.c.port}\n")
    assert "svc/web - headless :80\n  deployment/web deploys web\n    revision #1 " in text
    assert len(re.findall(r"^      pod/web-\S+ Running 1/1 ready", text, re.M)) == 2
    c.run("set", "selector", "service/web", "app=other")
    wait_for("the error", lambda: "svc/web has no endpoints: no pod matches its selector" in c.run("status"))
    c.run("status", "--problems", fails=True)
    assert "has no readiness probe in c" in c.run("status", "--suggest")
    # A template that may not be made: the reason, and what to do.
    bad = workload("ReplicaSet", name="bad", replicas=1)
    bad["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    bad["spec"]["selector"]["matchLabels"] = bad["spec"]["template"]["metadata"]["labels"] = {"app": "bad"}
    assert p.call("POST", "/apis/apps/v1/namespaces/red/replicasets", bad)
    wait_for("the reason", lambda: "rs/bad cannot create its pods: " in c.run("status"))
    c.run("delete", "svc", "web")


def test_a_stranger_sees_nothing_of_it(p):  # noqa: F811
    c = Client(p, TENET, user="mallory")
    c.run("status")
    assert "Error from server (Forbidden)" in c.run("scale", "deployment/web", "--replicas=0", fails=True)
    assert "Error from server (Forbidden)" in c.run("rollout", "restart", "deployment", fails=True)
    assert "Error from server (Forbidden)" in c.run("create", "deployment", "x", "--image=web", fails=True)


def test_the_python_client(p):  # noqa: F811
    api = config.new_client_from_config(str(kubeconfig(p, "eve")))
    apps, batch, scaling = client.AppsV1Api(api), client.BatchV1Api(api), client.AutoscalingV1Api(api)
    core = client.CoreV1Api(api)
    made = apps.create_namespaced_deployment("red", workload("Deployment", replicas=2))
    assert made.spec.strategy.type == "RollingUpdate"
    wait_for("two pods", lambda: apps.read_namespaced_deployment_status("web", "red").status.available_replicas == 2)
    assert apps.read_namespaced_deployment_scale("web", "red").status.selector == "app=web"
    apps.patch_namespaced_deployment_scale("web", "red", {"spec": {"replicas": 3}})
    wait_for("three pods", lambda: apps.read_namespaced_deployment("web", "red").status.available_replicas == 3)
    apps.patch_namespaced_deployment("web", "red", {"spec": {"template": {"spec": {
        "containers": [{"name": "c", "image": "web:2"}]}}}})
    wait_for("the new image", lambda: p.images("app=web") == ["web:2"] * 3)
    sets = apps.list_namespaced_replica_set("red", label_selector="app=web").items
    assert sorted(s.metadata.annotations["deployment.kubernetes.io/revision"] for s in sets) == ["1", "2"]
    scaling.create_namespaced_horizontal_pod_autoscaler("red", {
        "metadata": {"name": "web"}, "spec": {"minReplicas": 4, "maxReplicas": 5, "scaleTargetRef": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
    wait_for("four pods", lambda: apps.read_namespaced_deployment("web", "red").spec.replicas == 4)
    batch.create_namespaced_job("red", {"metadata": {"name": "once"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "done"}]}}}})
    wait_for("the Job", lambda: batch.read_namespaced_job_status("once", "red").status.succeeded == 1)
    apps.delete_namespaced_deployment("web", "red", propagation_policy="Foreground")
    wait_for("the pods to go", lambda: not core.list_namespaced_pod("red", label_selector="app=web").items)
