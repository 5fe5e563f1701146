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


def test_a_rolling_update_under_load_fails_no_request(lab):
    """Four replicas, of which one may be missing and one more: a client asks their service without a pause."""
    web = config("one", {"type": "Rolling", "rollingParams": {"timeoutSeconds": 120}}, replicas=4)
    container = web["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["httpd", "-f", "-p", "8080", "-h", "/www"]
    container["readinessProbe"] = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
    # A server answers until no node sends it connections any more.
    container["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "3"]}}}
    web["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 10
    lab.kubectl("apply", "-f", "-", input=json.dumps(web))
    ended(lab, "web-1", "Complete")
    lab.kubectl("apply", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "red"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}}))
    ip = lab.object("service", "web", "-n", "red")["spec"]["clusterIP"]
    get = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {ip} 80 | grep -q 'it works'"
    ask = (f"until {get}; do sleep 0.1; done; touch /tmp/begun; ok=0; bad=0; until [ -e /tmp/go ]; do "
           f"if {get}; then ok=$((ok+1)); else bad=$((bad+1)); fi; sleep 0.01; done; echo $ok $bad")
    lab.kubectl("apply", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client", "namespace": "red"}, "spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGE, "command": ["sh", "-c", ask]}]}}))
    running(lab, "client")
    wait_for("the first answer", lambda: lab.kubectl("exec", "-n", "red", "client", "--", "ls", "/tmp/begun", check=False).returncode == 0, 60)
    container["env"] = [{"name": "VERSION", "value": "2"}]
    lab.kubectl("apply", "-f", "-", input=json.dumps(web))
    least, most = 4, 4
    while phase(lab, "web-2") not in ("Complete", "Failed"):
        live = [p for p in lab.objects("pods", "-n", "red", "-l", "app=web") if not p["metadata"].get("deletionTimestamp")]
        ready = [p for p in live if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))]
        least, most = min(least, len(ready)), max(most, len(live))
    assert phase(lab, "web-2") == "Complete" and least >= 3 and most <= 5, (least, most)
    release(lab, "client")
    wait_for("the client to end", lambda: lab.object("pods", "client", "-n", "red")["status"]["phase"] == "Succeeded", 60)
    ok, bad = map(int, log(lab, "client").split())
    assert bad == 0 and ok > 50, (ok, bad)
    lab.kubectl("delete", "dc,svc,pod", "--all", "-n", "red")
    wait_for("all to go", lambda: not lab.objects("rc", "-n", "red") and not lab.objects("pods", "-n", "red"), 60)


def test_one_that_is_deleted_and_made_again_is_complete_each_time(lab):
    """Its name is the same, and so is that of its deployer pod, which may still be there."""
    for n in range(20):
        lab.kubectl("create", "-f", "-", input=json.dumps(config(f"t{n}", {"type": "Recreate"}, replicas=1)))
        ended(lab, "web-1", "Complete")
        lab.kubectl("delete", "dc", "web", "-n", "red", "--cascade=background")
        wait_for("its set to go", lambda: not phase(lab, "web-1"))
    wait_for("all to go", lambda: not lab.objects("pods", "-n", "red"), 60)


def test_an_autoscaler_follows_the_use_of_processors(lab):
    """By metrics.k8s.io, from what the node's kubelet reads of control groups."""
    busy = config("one", {"type": "Recreate"}, replicas=1)
    container = busy["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", "while [ ! -e /tmp/go ]; do :; done; sleep 100000"]
    container["resources"] = {"requests": {"cpu": "10m"}, "limits": {"cpu": "50m"}}
    lab.kubectl("apply", "-f", "-", input=json.dumps(busy))
    ended(lab, "web-1", "Complete")
    lab.kubectl("apply", "-f", "-", input=json.dumps({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web", "namespace": "red"}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "name": "web"},
            "minReplicas": 1, "maxReplicas": 2, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}))
    wait_for("the second pod", lambda: lab.object("dc", "web", "-n", "red")["spec"]["replicas"] == 2, 240)
    wait_for("the limit", lambda: {c["type"]: c for c in lab.object("hpa", "web", "-n", "red")["status"]["conditions"]}[
        "ScalingLimited"]["reason"] == "TooManyReplicas", 60)
    # Another number is no rollout.
    assert lab.object("dc", "web", "-n", "red")["status"]["latestVersion"] == 1
    lab.kubectl("delete", "hpa,dc", "web", "-n", "red")
    wait_for("all to go", lambda: not lab.objects("rc", "-n", "red") and not lab.objects("pods", "-n", "red"), 60)
