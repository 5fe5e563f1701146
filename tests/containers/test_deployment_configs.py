# SPDX-License-Identifier: Apache-2.0
"""DeploymentConfigs with real containers: rollouts under load, hooks, a custom strategy, and the way back after a failure.

A lab has no image of the deployer, so its controllers do the rollouts (deployInProcess); hooks and custom strategies run in pods."""
import json

import pytest

import containerd as ctd
from lab import wait_for

IMAGE = "localhost/busybox:1"


@pytest.fixture(scope="module")
def lab(make_lab):
    ctd.needed()
    lab = make_lab("dc", nodes=1, containers=True)
    lab.project("red")
    yield lab
    lab.down(check=False)


def config(text, strategy, replicas=2, ready=("test", "-f", "/www/index.html")):
    return {"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": "web", "namespace": "red"}, "spec": {
        "replicas": replicas, "strategy": strategy, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "terminationGracePeriodSeconds": 1, "containers": [{
                "name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", f"trap 'exit 0' TERM; echo {text}; sleep 100000 & wait"],
                "readinessProbe": {"exec": {"command": list(ready)}, "periodSeconds": 1}}]}}}}


def hook(command, policy="Abort"):
    return {"failurePolicy": policy, "execNewPod": {"command": ["sh", "-c", command], "containerName": "c"}}


def phase(lab, rc):
    found = [x for x in lab.objects("rc", "-n", "red") if x["metadata"]["name"] == rc]
    return found and found[0]["metadata"]["annotations"]["openshift.io/deployment.phase"]


def ended(lab, rc, want):
    wait_for(f"{rc} to end", lambda: phase(lab, rc) in ("Complete", "Failed"), 120)
    assert phase(lab, rc) == want


def pods(lab, rc):
    return [p for p in lab.objects("pods", "-n", "red") if p["metadata"].get("labels", {}).get("deployment") == rc]


def log(lab, pod):
    return lab.kubectl("logs", "-n", "red", pod).stdout


def test_rollouts_of_real_containers(lab):
    rolling = {"type": "Rolling", "rollingParams": {"timeoutSeconds": 20, "pre": hook("echo the hook of $OPENSHIFT_DEPLOYMENT_NAME"),
                                                   "post": hook("exit 3", "Ignore")}}
    lab.kubectl("apply", "-f", "-", input=json.dumps(config("one", rolling)))
    ended(lab, "web-1", "Complete")
    wait_for("two pods", lambda: len(pods(lab, "web-1")) == 2)
    assert log(lab, "web-1-hook-pre") == "the hook of web-1\n"
    # What never is ready goes, and what was there stays.
    lab.kubectl("apply", "-f", "-", input=json.dumps(config("two", rolling, ready=("false",))))
    ended(lab, "web-2", "Failed")
    wait_for("the way back", lambda: not pods(lab, "web-2") and len(pods(lab, "web-1")) == 2)
    recreate = {"type": "Recreate", "recreateParams": {"timeoutSeconds": 60, "mid": hook("echo between")}}
    lab.kubectl("apply", "-f", "-", input=json.dumps(config("three", recreate)))
    ended(lab, "web-3", "Complete")
    assert log(lab, "web-3-hook-mid") == "between\n"
    wait_for("the new pods", lambda: {log(lab, p["metadata"]["name"]) for p in pods(lab, "web-3")} == {"three\n"})
    # The log of the rollout is that of the application once it is complete.
    assert lab.kubectl("get", "--raw", "/apis/apps.openshift.io/v1/namespaces/red/deploymentconfigs/web/log").stdout == "three\n"
    custom = {"type": "Custom", "customParams": {"image": IMAGE, "command": ["sh", "-c", "echo I deploy $OPENSHIFT_DEPLOYMENT_NAME"]}}
    lab.kubectl("apply", "-f", "-", input=json.dumps(config("four", custom)))
    ended(lab, "web-4", "Complete")
    assert log(lab, "web-4-deploy") == "I deploy web-4\n"
