# SPDX-License-Identifier: Apache-2.0
"""DeploymentConfigs with real containers: deployer pods with their logs, hooks, a custom strategy, cancelling, the way back after a
failure, and deployers that are killed.  The lab's nodes have an image of the deployer; nothing is pulled."""
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
    text = log(lab, "web-1-deploy").splitlines()
    assert "--> pre: Running hook pod ..." in text and "the hook of web-1" in text and text[-1] == "--> Success"
    deployer = lab.object("pods", "web-1-deploy", "-n", "red")
    assert deployer["spec"]["serviceAccountName"] == "deployer" and deployer["status"]["phase"] == "Succeeded"
    assert deployer["spec"]["containers"][0]["image"] == "localhost/tenet-deployer:1"
    # What never is ready goes, and what was there stays.
    lab.kubectl("apply", "-f", "-", input=json.dumps(config("two", rolling, ready=("false",))))
    ended(lab, "web-2", "Failed")
    wait_for("the way back", lambda: not pods(lab, "web-2") and len(pods(lab, "web-1")) == 2)
    assert log(lab, "web-2-deploy").endswith("error: timed out waiting for any update progress to be made\n")
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
    lab.kubectl("delete", "dc", "web", "-n", "red")
    wait_for("all to go", lambda: not lab.objects("rc", "-n", "red") and not lab.objects("pods", "-n", "red"), 60)


def running(lab, name):
    def find():
        found = [p for p in lab.objects("pods", "-n", "red") if p["metadata"]["name"] == name]
        return found[0] if found and found[0]["status"]["phase"] == "Running" else None
    return wait_for(f"{name} to run", find, 60)


def release(lab, name):
    """Ends a hook that waits for a file."""
    lab.kubectl("exec", "-n", "red", name, "--", "touch", "/tmp/go")


def test_a_deployer_that_dies_is_followed_by_another_one(lab):
    waits = hook("echo begun; until [ -e /tmp/go ]; do sleep 0.1; done")
    recreate = {"type": "Recreate", "recreateParams": {"timeoutSeconds": 60, "mid": waits}}
    lab.kubectl("apply", "-f", "-", input=json.dumps(config("one", recreate, replicas=1)))
    first, mid = running(lab, "web-1-deploy"), running(lab, "web-1-hook-mid")
    # The log of the DeploymentConfig is that of the deployer, which prints that of the hook.
    path = "/apis/apps.openshift.io/v1/namespaces/red/deploymentconfigs/web/log"
    wait_for("the hook's line", lambda: "begun\n" in lab.kubectl("get", "--raw", path).stdout)
    lab.kubectl("delete", "pod", "web-1-deploy", "-n", "red", "--grace-period=0", "--force", "--wait=false")
    again = wait_for("another deployer", lambda: [p for p in lab.objects("pods", "-n", "red")
                                                  if p["metadata"]["name"] == "web-1-deploy" and p["status"]["phase"] == "Running"
                                                  and p["metadata"]["uid"] != first["metadata"]["uid"]], 60)
    assert again and phase(lab, "web-1") == "Running"
    release(lab, "web-1-hook-mid")
    ended(lab, "web-1", "Complete")
    # The hook ran once.
    assert lab.object("pods", "web-1-hook-mid", "-n", "red")["metadata"]["uid"] == mid["metadata"]["uid"]
    assert log(lab, "web-1-deploy").splitlines()[-1] == "--> Success"


def test_a_hook_that_hangs_is_ended_by_cancelling(lab):
    rolling = {"type": "Rolling", "rollingParams": {"timeoutSeconds": 60, "pre": hook("echo begun; sleep 100000")}}
    before = {p["metadata"]["uid"] for p in pods(lab, "web-1")}
    lab.kubectl("apply", "-f", "-", input=json.dumps(config("two", rolling, replicas=1)))
    running(lab, "web-2-hook-pre")
    lab.kubectl("annotate", "rc", "web-2", "-n", "red", "openshift.io/deployment.cancelled=true")
    ended(lab, "web-2", "Failed")
    wait_for("the hook to go", lambda: "web-2-hook-pre" not in [p["metadata"]["name"] for p in lab.objects("pods", "-n", "red")
                                                             if p["status"]["phase"] == "Running"], 60)
    # The application was not touched.
    assert {p["metadata"]["uid"] for p in pods(lab, "web-1")} == before and not pods(lab, "web-2")
    lab.kubectl("delete", "dc", "web", "-n", "red")
