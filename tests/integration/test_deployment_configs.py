# SPDX-License-Identifier: Apache-2.0
"""DeploymentConfigs on a real master with HTTPS and access control, as a member of a project.

A thread plays the kubelets. For deployer pods it starts "tenet deployer" with a token of the account of the pod, as a node does: so
the deployer has the rights of the project's account "deployer", and no others.
"""
import json
import os
import subprocess
import threading
import pytest

from ha import TENET
from lab import wait_for
from playkubelet import PlayKubelet
from test_auth import Cluster
from test_workloads import Project, pod_template

API = "/apis/apps.openshift.io/v1/namespaces/red/deploymentconfigs"
CORE = "/api/v1/namespaces/red"
PHASE = "openshift.io/deployment.phase"
REASON = "openshift.io/deployment.status-reason"
CANCELLED = "openshift.io/deployment.cancelled"
ENCODED = "openshift.io/encoded-deployment-config"
SUCCESS = "--> Success"


class PlayDeployers(PlayKubelet):
    """Runs "tenet deployer" for pods of the image of deployers; all other pods are played."""

    def __init__(self, project):
        self.project, self.lock = project, threading.Lock()
        self.running, self.logs = {}, {}
        self.watcher = lambda pods: None  # gets each list of pods
        super().__init__(project.call)

    def stop(self):
        super().stop()
        for r in self.running.values():
            self.end(r)

    @staticmethod
    def end(process):
        process.kill()
        process.wait()

    def kubeconfig(self, namespace, account):
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", body)
        path = self.project.c.dir / f"{account}.kubeconfig"
        admin = json.loads(self.project.c.kubectl("config", "view", "--raw", "-o", "json", check=False).stdout)
        cluster = admin["clusters"][0]
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster],
            "users": [{"name": "u", "user": {"token": answer["status"]["token"]}}],
            "contexts": [{"name": "c", "context": {"cluster": cluster["name"], "user": "u", "namespace": namespace}}]}))
        return str(path)

    def start(self, p):
        meta, spec = p["metadata"], p["spec"]
        env = {v["name"]: v["value"] for v in spec["containers"][0]["env"]}
        config = self.kubeconfig(meta["namespace"], spec["serviceAccountName"])
        path = self.project.c.dir / f"{meta['uid']}.log"
        self.logs[meta["name"]] = path
        with open(path, "wb") as out:
            return subprocess.Popen([TENET, "deployer", "--kubeconfig", config], stdout=out, stderr=out,
                                    env={**os.environ, **env})

    def log(self, pod):
        return self.logs[pod].read_text()

    def run(self):
        try:
            while not self.stopping.wait(0.05):
                pods = (self.call("GET", "/api/v1/pods") or {"items": []})["items"]
                self.watcher(pods)
                for uid in self.running.keys() - {p["metadata"]["uid"] for p in pods}:
                    self.end(self.running.pop(uid))
                for p in pods:
                    self.act(p)
        except Exception as e:  # shown by stop(), in the test's thread
            self.error = e

    def act(self, p):
        meta, image = p["metadata"], p["spec"]["containers"][0]["image"]
        hook = meta.get("labels", {}).get("openshift.io/deployer-pod.type")
        if hook and p.get("status", {}).get("phase") == "Pending" and not meta.get("deletionTimestamp"):
            # The command of a hook says how it ends.
            image = {"true": "done", "false": "fail"}.get(p["spec"]["containers"][0]["command"][0], "web")
            self.write(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                       self.status({"name": "lifecycle", "image": image}))
            return
        if not image.startswith("localhost/tenet-deployer:"):
            super().act(p)
            return
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        run = self.running.get(meta["uid"])
        if meta.get("deletionTimestamp"):
            if run:
                self.end(run)
            self.call("DELETE", path + "?gracePeriodSeconds=0")
        elif not run and p.get("status", {}).get("phase") == "Pending":
            self.running[meta["uid"]] = self.start(p)
            self.write(path, self.status({"name": "deployment", "image": image}))
        elif run and run.poll() is not None and p["status"]["phase"] == "Running":
            self.write(path, self.status({"name": "deployment", "image": "done" if run.returncode == 0 else "fail"}))


class Configs(Project):
    def __init__(self, tmp, **extra):
        self.c = Cluster(str(tmp), extra)
        for name, member in (("red", "eve"), ("blue", "bob")):
            self.c.namespace(name)
            self.c.bind(name, member, "edit", user=member)
        self.c.bind("red", "vic", "view", user="vic")
        for member, name in (("eve", "red"), ("bob", "blue")):
            wait_for("the role's rules", lambda m=member, n=name: self.c.kubectl(
                "auth", "can-i", "create", "dc", "-n", n, "--as", m, check=False).returncode == 0)
        self.kubelet = PlayDeployers(self)

    def phase(self, rc):
        r = self.call("GET", f"{CORE}/replicationcontrollers/{rc}")
        return r and r["metadata"]["annotations"].get(PHASE)

    def rc(self, name):
        return self.get("rc", name)

    def wait_phase(self, rc, phase):
        wait_for(f"{rc} to be {phase}", lambda: self.phase(rc) == phase, 60)

    def condition(self, kind, name="x"):
        return {c["type"]: c for c in self.get("dc", name)["status"].get("conditions", [])}.get(kind, {})

    def ask(self, method, path, body=None, user="eve", **headers):
        """A request as a user: the status and the answer."""
        return self.c.ask(self.c._admin, method, path, body, headers={"Impersonate-User": user, **headers})

    def instantiate(self, name="x", user="eve", **request):
        return self.ask("POST", f"{API}/{name}/instantiate", {"kind": "DeploymentRequest", "apiVersion": "apps.openshift.io/v1",
                                                             "name": name, **request}, user)

    def annotate(self, rc, notes):
        self.kubectl("patch", "rc", rc, "--type=merge", "-p", json.dumps({"metadata": {"annotations": notes}}))

    def size(self, rc):
        return self.rc(rc)["spec"]["replicas"]

    def wait_settled(self, rc, n, available=None):
        wait_for(f"{rc} to have {n}", lambda: self.size(rc) == n and
                 self.rc(rc)["status"].get("availableReplicas", 0) == (n if available is None else available), 60)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = Configs(tmp_path_factory.mktemp("configs"))
    yield p
    p.stop()


@pytest.fixture
def p(shared):
    """The project, in which each test leaves nothing."""
    yield shared
    kinds = "dc,rc,pod"
    shared.kubectl("delete", kinds, "--all", "--wait=false", user="system:admin")
    wait_for("all to go", lambda: not shared.get(kinds)["items"], 60)


def config(name="x", image="web", replicas=1, strategy=None, **spec):
    return {"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"app": "web"}, "template": pod_template(image),
                     **({"strategy": strategy} if strategy else {}), **spec}}


def hook(command="true", policy="Abort", image=None, **more):
    return {"failurePolicy": policy, "execNewPod": {"command": [command], "containerName": "c", **more}}


def set_image(p, image, name="x"):
    p.kubectl("patch", "dc", name, "--type=json", "-p", json.dumps(
        [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]))


# ---- the object ----

def test_defaults_are_those_of_the_original(p):
    c = config(paused=True)
    p.kubectl("create", input=c)
    spec = p.get("dc", "x")["spec"]
    assert spec["triggers"] == [{"type": "ConfigChange"}]
    assert spec["revisionHistoryLimit"] == 10 and spec["test"] is False
    assert spec["strategy"]["type"] == "Rolling" and spec["strategy"]["activeDeadlineSeconds"] == 21600
    assert spec["strategy"]["rollingParams"] == {"updatePeriodSeconds": 1, "intervalSeconds": 1, "timeoutSeconds": 600,
                                                 "maxUnavailable": "25%", "maxSurge": "25%"}
    p.kubectl("patch", "dc", "x", "--type=merge", "-p", json.dumps({"spec": {"triggers": []}}))
    assert p.get("dc", "x")["spec"]["triggers"] == []


def test_a_rollout_of_one_pod(p):
    p.kubectl("create", input=config(replicas=2))
    p.wait_phase("x-1", "Complete")
    rc = p.rc("x-1")
    notes = rc["metadata"]["annotations"]
    assert notes["openshift.io/deployment-config.name"] == "x"
    assert notes["openshift.io/deployment-config.latest-version"] == "1"
    assert notes["openshift.io/deployer-pod.name"] == "x-1-deploy"
    assert notes[REASON] == "config change" and notes["openshift.io/deployment.replicas"] == "2"
    assert "kubectl.kubernetes.io/desired-replicas" not in notes
    encoded = json.loads(notes["openshift.io/encoded-deployment-config"])
    assert encoded["kind"] == "DeploymentConfig" and encoded["status"]["latestVersion"] == 1
    assert rc["spec"]["selector"] == {"app": "web", "deployment": "x-1", "deploymentconfig": "x"}
    owner = rc["metadata"]["ownerReferences"][0]
    assert owner["kind"] == "DeploymentConfig" and owner["controller"]
    pod = p.pods("deployment=x-1")[0]
    assert pod["metadata"]["annotations"]["openshift.io/deployment.name"] == "x-1"
    # The deployer stays, for its log.
    deployer = p.get("pod", "x-1-deploy")
    assert deployer["status"]["phase"] == "Succeeded" and deployer["spec"]["serviceAccountName"] == "deployer"
    assert p.kubelet.log("x-1-deploy").splitlines()[-1] == SUCCESS
    wait_for("the status", lambda: p.get("dc", "x")["status"]["availableReplicas"] == 2)
    assert p.condition("Progressing")["reason"] == "NewReplicationControllerAvailable"
    assert p.condition("Available")["status"] == "True"
    assert p.get("dc", "x")["status"]["details"] == {"message": "config change", "causes": [{"type": "ConfigChange"}]}


# ---- triggers ----

def test_a_change_of_the_template_rolls_out_and_another_number_does_not(p):
    p.kubectl("create", input=config(replicas=2))
    p.wait_phase("x-1", "Complete")
    p.kubectl("scale", "dc", "x", "--replicas=3")
    p.wait_settled("x-1", 3)
    assert p.get("dc", "x")["status"]["latestVersion"] == 1
    set_image(p, "web:2")
    p.wait_phase("x-2", "Complete")
    p.wait_settled("x-2", 3)
    assert p.size("x-1") == 0 and p.phase("x-1") == "Complete"
    assert p.get("dc", "x")["status"]["details"]["message"] == "config change"
    assert p.images("deployment=x-2") == ["web:2"] * 3
    assert p.kubelet.log("x-2-deploy").startswith(
        "--> Scaling up x-2 from 0 to 3, scaling down x-1 from 3 to 0 (keep 3 pods available, don't exceed 4 pods)\n"
        "    Scaling x-2 up to 1\n    Scaling x-1 down to 2\n")
    assert p.rc("x-2")["metadata"]["annotations"]["kubectl.kubernetes.io/update-source-id"].startswith("x-1:")
    assert p.rc("x-1")["metadata"]["annotations"]["kubectl.kubernetes.io/original-replicas"] == "3"


def test_without_triggers_only_a_request_rolls_out(p):
    p.kubectl("create", input=config(triggers=[]))
    wait_for("the status", lambda: p.get("dc", "x")["status"]["observedGeneration"] == 1)
    assert not p.get("rc")["items"]
    assert p.instantiate()[1]["message"] == 'deployment config "x" cannot be instantiated'
    status, answer = p.instantiate(latest=True, force=True)
    assert status == 201 and answer["status"]["latestVersion"] == 1
    assert answer["status"]["details"] == {"message": "manual change", "causes": [{"type": "Manual"}]}
    p.wait_phase("x-1", "Complete")
    # Older clients write the next number.
    c = p.get("dc", "x")
    generation = c["metadata"]["generation"]
    c["status"]["latestVersion"] = 7
    assert p.ask("PUT", f"{API}/x", c)[1]["status"]["latestVersion"] == 1
    c = p.get("dc", "x")
    c["status"]["latestVersion"] = 2
    status, answer = p.ask("PUT", f"{API}/x", c)
    assert status == 200 and answer["status"]["latestVersion"] == 2 and answer["metadata"]["generation"] > generation
    p.wait_phase("x-2", "Complete")
    assert p.rc("x-2")["metadata"]["annotations"][REASON] == "manual change"


def test_a_trigger_of_an_image_waits_and_says_for_what(p):
    trigger = {"type": "ImageChange", "imageChangeParams": {"automatic": True, "containerNames": ["c"],
                                                           "from": {"name": "ruby:2.3"}}}
    p.kubectl("create", input=config(image=" ", triggers=[trigger, {"type": "ConfigChange"}]))
    c = wait_for("the condition", lambda: p.condition("Progressing"))
    assert c["status"] == "False" and c["reason"] == "WaitingForImage" and '"red/ruby:2.3"' in c["message"]
    assert p.get("dc", "x")["spec"]["triggers"][0]["imageChangeParams"]["from"] == {
        "kind": "ImageStreamTag", "name": "ruby:2.3", "namespace": "red"}
    assert p.instantiate(latest=True, force=True)[1]["message"] == (
        'cannot trigger a deployment for "x" because it contains unresolved images')
    assert "image(ruby:2.3),config" in p.kubectl("get", "dc", "x")
    # The one that sets the images of triggers has a way to do so.
    c = p.get("dc", "x")
    c["spec"]["template"]["spec"]["containers"][0]["image"] = "web@sha256:1"
    c["spec"]["triggers"][0]["imageChangeParams"]["lastTriggeredImage"] = "web@sha256:1"
    assert p.ask("PUT", f"{API}/x", c)[0] == 200
    p.wait_phase("x-1", "Complete")
    c = p.get("dc", "x")
    c["spec"]["template"]["spec"]["containers"][0]["image"] = "web@sha256:2"
    assert p.ask("PUT", f"{API}/x", c)[0] == 200
    p.wait_phase("x-2", "Complete")
    assert p.get("dc", "x")["status"]["details"] == {"message": "image change", "causes": [
        {"type": "ImageChange", "imageTrigger": {"from": {"kind": "DockerImage", "name": "web@sha256:2"}}}]}


def test_paused_changes_wait_until_it_goes_on(p):
    p.kubectl("create", input=config())
    p.wait_phase("x-1", "Complete")
    p.kubectl("patch", "dc", "x", "--type=merge", "-p", '{"spec": {"paused": true}}')
    set_image(p, "web:2")
    generation = p.get("dc", "x")["metadata"]["generation"]
    wait_for("the status", lambda: p.get("dc", "x")["status"]["observedGeneration"] == generation)
    assert p.get("dc", "x")["status"]["latestVersion"] == 1
    status, answer = p.instantiate(latest=True, force=True)
    assert status == 422 and answer["message"] == (
        'DeploymentRequest.apps.openshift.io "x" is invalid: spec.paused: Invalid value: true: deployment config "x" is paused - '
        'unpause to request a new deployment')
    p.kubectl("patch", "dc", "x", "--type=merge", "-p", '{"spec": {"paused": false}}')
    p.wait_phase("x-2", "Complete")


def test_the_last_of_two_quick_changes_wins(p):
    p.kubectl("create", input=config("quick", replicas=2))
    p.wait_phase("quick-1", "Complete")
    set_image(p, "broken", "quick")
    p.wait_phase("quick-2", "Running")
    set_image(p, "web:3", "quick")
    p.wait_phase("quick-3", "Complete")
    assert p.phase("quick-2") == "Failed"
    assert p.rc("quick-2")["metadata"]["annotations"][REASON] == "newer deployment was found running"
    p.wait_settled("quick-3", 2)
    assert p.size("quick-2") == p.size("quick-1") == 0
    assert any('Cancelled deployment "quick-2" superceded by version 3' in e for e in p.events("DeploymentCancelled"))


# ---- strategies ----

class Numbers:
    """What was seen of the pods of the application at once."""

    def __init__(self, p):
        self.most, self.least, self.together, self.full = 0, 99, set(), False
        p.kubelet.watcher = self.look
        self.p = p

    def look(self, pods):
        own = [x for x in pods if x["metadata"].get("labels", {}).get("deploymentconfig") == "x"]
        live = [x for x in own if x.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
        ready = sum(not x["metadata"].get("deletionTimestamp") and any(
            c["type"] == "Ready" and c["status"] == "True" for c in x.get("status", {}).get("conditions", [])) for x in live)
        self.most = max(self.most, sum(not x["metadata"].get("deletionTimestamp") for x in live))
        self.least = min(self.least, ready)
        self.together.add(frozenset(x["metadata"]["labels"]["deployment"] for x in live))

    def end(self):
        self.p.kubelet.watcher = lambda pods: None


def test_rolling_keeps_its_bounds(p):
    p.kubectl("create", input=config(replicas=4))
    p.wait_phase("x-1", "Complete")
    p.wait_settled("x-1", 4)
    seen = Numbers(p)
    set_image(p, "web:2")
    p.wait_phase("x-2", "Complete")
    p.wait_settled("x-2", 4)
    seen.end()
    assert seen.least >= 3 and seen.most <= 5, (seen.least, seen.most)


def test_a_rollout_that_fails_gives_the_pods_back(p):
    p.kubectl("create", input=config(replicas=4, strategy={"type": "Rolling", "rollingParams": {"timeoutSeconds": 4}}))
    p.wait_phase("x-1", "Complete")
    seen = Numbers(p)
    set_image(p, "broken")
    p.wait_phase("x-2", "Failed")
    p.wait_settled("x-1", 4)
    seen.end()
    assert seen.least >= 3
    wait_for("the pods to go", lambda: p.size("x-2") == 0)
    wait_for("the condition", lambda: p.condition("Progressing").get("reason") == "ProgressDeadlineExceeded")
    assert p.condition("Progressing")["status"] == "False"
    assert p.kubelet.log("x-2-deploy").endswith("error: timed out waiting for any update progress to be made\n")
    # A user repairs it, and it goes on.
    set_image(p, "web:3")
    p.wait_phase("x-3", "Complete")


def test_recreate_never_has_old_and_new_pods_together(p):
    p.kubectl("create", input=config(replicas=3, strategy={"type": "Recreate", "recreateParams": {"mid": hook()}}))
    p.wait_phase("x-1", "Complete")
    p.wait_settled("x-1", 3)
    seen = Numbers(p)
    set_image(p, "web:2")
    p.wait_phase("x-2", "Complete")
    p.wait_settled("x-2", 3)
    seen.end()
    assert not any(len(s) > 1 for s in seen.together), seen.together
    lines = p.kubelet.log("x-2-deploy").splitlines()
    assert lines[:2] == ["--> Scaling x-1 down to zero", "--> mid: Running hook pod ..."] and lines[-1] == SUCCESS
    assert "--> Scaling x-2 to 1 before performing acceptance check" in lines and "--> Scaling x-2 to 3" in lines


@pytest.mark.parametrize("policy,command,phase", (("Abort", "false", "Failed"), ("Ignore", "false", "Complete"),
                                                   ("Abort", "true", "Complete")))
def test_what_a_hook_decides(p, policy, command, phase):
    name = f"{policy}-{command}".lower()
    p.kubectl("create", input=config(name, strategy={"type": "Rolling", "rollingParams": {"pre": hook(command, policy), "post": hook()}}))
    p.wait_phase(f"{name}-1", phase)
    assert (p.size(f"{name}-1") > 0) == (phase == "Complete")
    pod = p.get("pod", f"{name}-1-hook-pre")
    assert pod["metadata"]["labels"]["openshift.io/deployer-pod-for.name"] == f"{name}-1"
    assert pod["metadata"]["ownerReferences"][0]["name"] == f"{name}-1" and pod["spec"]["restartPolicy"] == "Never"
    assert {"name": "OPENSHIFT_DEPLOYMENT_NAME", "value": f"{name}-1"} in pod["spec"]["containers"][0]["env"]
    if phase == "Failed":
        assert "error: pre hook failed: the pre hook failed: " in p.kubelet.log(f"{name}-1-deploy")
        assert not p.get("pod", "-l", "openshift.io/deployer-pod.type=hook-post")["items"]
    else:
        assert p.get("pod", f"{name}-1-hook-post")["status"]["phase"] == "Succeeded"
        assert p.kubelet.log(f"{name}-1-deploy").splitlines()[-1] == SUCCESS
    assert any(e.startswith("The pre-hook failed: ") and name in e for e in p.events("Failed")) == (command == "false")


def test_a_custom_strategy_is_the_container_of_the_user(p):
    p.kubectl("create", input=config(strategy={"type": "Custom", "labels": {"a": "b"}, "customParams": {
        "image": "done", "command": ["/deploy"], "environment": [{"name": "A", "value": "1"}]}}))
    p.wait_phase("x-1", "Complete")
    pod = p.get("pod", "x-1-deploy")
    container = pod["spec"]["containers"][0]
    assert container["image"] == "done" and container["command"] == ["/deploy"] and pod["metadata"]["labels"]["a"] == "b"
    assert [v["name"] for v in container["env"]] == ["A", "OPENSHIFT_DEPLOYMENT_NAME", "OPENSHIFT_DEPLOYMENT_NAMESPACE"]


def test_a_test_has_pods_only_during_its_rollout(p):
    p.kubectl("create", input=config(test=True, replicas=2))
    p.wait_phase("x-1", "Complete")
    wait_for("no pods", lambda: p.size("x-1") == 0 and not p.pods("deploymentconfig=x"))
    assert "--> Scaling x-1 to 2" in p.kubelet.log("x-1-deploy")


# ---- the deployer ----

def test_a_deployer_that_is_gone_is_made_again_and_goes_on(p):
    p.kubectl("create", input=config(replicas=3))
    p.wait_phase("x-1", "Complete")
    p.wait_settled("x-1", 3)
    p.kubectl("patch", "dc", "x", "--type=merge", "-p", json.dumps(
        {"spec": {"strategy": {"rollingParams": {"pre": hook("hang")}}}}))
    set_image(p, "web:2")
    wait_for("the hook", lambda: p.phase("x-2") == "Running" and p.get("pod", "-l", "openshift.io/deployer-pod.type")["items"])
    first = p.get("pod", "x-2-deploy")["metadata"]["uid"]
    p.kubectl("delete", "pod", "x-2-deploy", "--wait=false")
    wait_for("another one", lambda: any(x["metadata"]["uid"] != first and x["status"]["phase"] == "Running" for x in
                                        p.get("pod", "-l", "openshift.io/deployer-pod-for.name=x-2")["items"]
                                        if x["metadata"]["name"] == "x-2-deploy"))
    assert p.rc("x-2")["metadata"]["annotations"]["tenet.io/deployer-pod.attempts"] == "1"
    p.kubelet.write(f"{CORE}/pods/x-2-hook-pre", {"phase": "Succeeded"})
    p.wait_phase("x-2", "Complete")
    p.wait_settled("x-2", 3)
    assert "Running hook pod ..." not in p.kubelet.log("x-2-deploy")


def test_a_deployer_that_goes_again_and_again_ends_the_rollout(p):
    p.kubectl("create", input=config(strategy={"type": "Custom", "customParams": {"image": "hang"}}))
    for n in range(4):
        wait_for("the deployer", lambda: p.phase("x-1") == "Running" and p.get("pod", "-l", "openshift.io/deployer-pod-for.name")["items"])
        uid = p.get("pod", "x-1-deploy")["metadata"]["uid"]
        p.kubectl("delete", "pod", "x-1-deploy", "--wait=false")
        wait_for("it to go", lambda: p.phase("x-1") == "Failed" or any(
            x["metadata"]["uid"] != uid for x in p.get("pod", "-l", "openshift.io/deployer-pod-for.name")["items"]))
    p.wait_phase("x-1", "Failed")
    assert p.rc("x-1")["metadata"]["annotations"][REASON] == "deployer pod no longer exists"


def test_a_user_cancels_and_tries_again(p):
    p.kubectl("create", input=config("gone", replicas=2))
    p.wait_phase("gone-1", "Complete")
    set_image(p, "broken", "gone")
    p.wait_phase("gone-2", "Running")
    p.annotate("gone-2", {CANCELLED: "true", REASON: "cancelled by the user"})
    p.wait_phase("gone-2", "Failed")
    p.wait_settled("gone-1", 2)
    wait_for("the condition", lambda: p.condition("Progressing", "gone").get("reason") == "RolloutCancelled")
    assert 'Rollout for "red/gone-2" cancelled' in p.events("RolloutCancelled")
    wait_for("no deployer", lambda: not p.get("pod", "-l", "openshift.io/deployer-pod-for.name=gone-2")["items"])
    # As oc rollout retry does it; the image works by now.
    p.annotate("gone-2", {CANCELLED: None, REASON: None, PHASE: "New"})
    p.wait_phase("gone-2", "Running")

    def repair():
        for pod in p.pods("deployment=gone-2"):
            p.kubelet.write(f"{CORE}/pods/{pod['metadata']['name']}", p.kubelet.status({"name": "c", "image": "web"}))
        return p.phase("gone-2") == "Complete"
    wait_for("the second try", repair, 60)


def test_another_one_of_the_same_name_is_not_confused_with_its_deployer(p):
    for n in range(4):
        p.kubectl("create", input=config(image=f"web:{n}"))
        p.wait_phase("x-1", "Complete")
        p.kubectl("delete", "dc", "x", "--cascade=background")
        wait_for("it to go", lambda: not p.get("dc")["items"])


def test_history_has_its_limit(p):
    p.kubectl("create", input=config(revisionHistoryLimit=2, replicas=1))
    for n in range(1, 6):
        p.wait_phase(f"x-{n}", "Complete")
        p.wait_settled(f"x-{n}", 1)
        if n < 5:
            set_image(p, f"web:{n + 1}")
    wait_for("two old ones", lambda: sorted(r["metadata"]["name"] for r in p.get("rc")["items"]) == ["x-3", "x-4", "x-5"])
    assert p.size("x-4") == 0


# ---- requests ----

def rollback(p, name="x", user="eve", path=None, **spec):
    return p.ask("POST", path or f"{API}/{name}/rollback", {"kind": "DeploymentConfigRollback", "apiVersion": "apps.openshift.io/v1",
                                                            "name": name, "spec": {"includeTemplate": True, **spec}}, user)


def test_rollback_answers_what_the_user_puts(p):
    p.kubectl("create", input=config(image="web:1"))
    prefix = 'DeploymentConfigRollback.apps.openshift.io "x" is invalid: name: Invalid value: "x": '
    p.wait_phase("x-1", "Complete")
    assert rollback(p)[1]["message"] == prefix + 'no previous deployment exists for "red/x"'
    set_image(p, "web:2")
    p.wait_phase("x-2", "Complete")
    assert rollback(p, revision=2)[1]["message"] == prefix + "version 2 is already the latest"
    assert rollback(p, revision=9)[1]["message"] == prefix + 'replicationcontrollers "x-9" not found'
    assert rollback(p, "y")[0] == 422
    assert p.ask("POST", f"{API}/x/rollback", {"name": "y", "spec": {}})[0] == 400
    status, answer = rollback(p, revision=1)
    assert status == 201 and answer["kind"] == "DeploymentConfig" and answer["status"]["latestVersion"] == 3
    assert answer["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"
    assert p.get("dc", "x")["status"]["latestVersion"] == 2
    assert p.ask("PUT", f"{API}/x", answer)[0] == 200
    p.wait_phase("x-3", "Complete")
    assert p.images("deployment=x-3") == ["web:1"]


def test_the_log_is_that_of_the_rollout(p):
    p.kubectl("create", input=config(triggers=[]))
    assert p.ask("GET", f"{API}/x/log")[1]["message"] == 'no deployment exists for deploymentConfig "x"'
    assert p.ask("GET", f"{API}/y/log")[0] == 404
    p.instantiate(force=True)
    # It waits for the rollout; then it is the log of a pod, which no node has here.
    assert p.ask("GET", f"{API}/x/log") == (200, {"text": ""})
    assert p.ask("GET", f"{API}/x/log?version=2")[1]["message"] == 'invalid version for deploymentConfig "x": 2'
    assert p.ask("GET", f"{API}/x/log?previous=true")[1]["message"] == 'no previous deployment exists for deploymentConfig "x"'
    assert p.ask("GET", f"{API}/x/log?previous=true&version=1")[0] == 422
    p.wait_phase("x-1", "Complete")
    wait_for("a pod", lambda: p.pods("deployment=x-1"))
    assert p.ask("GET", f"{API}/x/log?container=none")[1]["message"].startswith("container none is not valid for pod x-1-")


def test_rights_of_roles_and_of_other_projects(p):
    p.kubectl("create", input=config(triggers=[]))
    for user in ("vic", "bob"):
        assert p.instantiate(user=user, force=True)[0] == 403, user
        assert rollback(p, user=user)[0] == 403, user
        assert p.ask("PATCH", f"{API}/x/scale", {"spec": {"replicas": 9}}, user,
                     **{"Content-Type": "application/merge-patch+json"})[0] == 403
    assert p.ask("GET", f"{API}/x/log", user="vic")[0] == 400
    assert p.ask("GET", f"{API}/x/log", user="bob")[0] == 403
    assert p.ask("PUT", f"{API}/x/status", p.get("dc", "x"))[0] == 403
    # The account of the deployer has its rights in its own project only.
    token = p.c.token("red", "deployer")
    for path, status in ((f"{CORE}/replicationcontrollers", 200), (f"{CORE}/pods", 200), (f"{CORE}/secrets", 403),
                         ("/api/v1/namespaces/blue/pods", 403), (API, 403)):
        assert p.c.ask(token, "GET", path)[0] == status, path
    assert p.c.ask(token, "DELETE", f"{CORE}/pods/none")[0] == 403
    # Its role binding comes back.
    p.call("DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings/system:deployers")
    wait_for("the binding", lambda: p.call("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings/system:deployers"))


# ---- users who mean harm ----

def test_no_rollout_makes_a_pod_that_its_user_may_not(p):
    """Privileged hooks and templates: neither the deployer nor the controllers lend their rights."""
    bad = config("bad", strategy={"type": "Rolling", "rollingParams": {"pre": hook("true", "Ignore")}})
    bad["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert p.call("POST", API, bad)
    p.wait_phase("bad-1", "Running")
    wait_for("the refusal", lambda: any("privileged" in e for e in p.events("Failed")))
    wait_for("the refusal of pods", lambda: any("privileged" in e for e in p.events("FailedCreate")))
    assert not p.pods("app=web") and not p.get("pod", "-l", "openshift.io/deployer-pod.type")["items"]


def test_a_copy_that_was_changed_takes_nobody_elsewhere(p):
    """The annotations of a ReplicationController are the user's: names of other projects in them mean nothing."""
    p.kubectl("create", input=config(triggers=[]))
    p.instantiate(force=True)
    p.wait_phase("x-1", "Complete")
    copy = json.loads(p.rc("x-1")["metadata"]["annotations"][ENCODED])
    copy["metadata"]["namespace"] = copy["metadata"]["name"] = "blue"
    copy["spec"]["strategy"] = {"type": "Custom", "customParams": {"image": "done"}}
    p.kubectl("delete", "pod", "x-1-deploy", "--wait=false")
    wait_for("it to go", lambda: not p.get("pod", "-l", "openshift.io/deployer-pod-for.name")["items"])
    p.annotate("x-1", {ENCODED: json.dumps(copy), PHASE: "New", "kubectl.kubernetes.io/desired-replicas": "1"})
    wait_for("another deployer", lambda: p.phase("x-1") == "Complete" and any(
        x["spec"]["containers"][0]["image"] == "done" for x in p.get("pod", "-l", "openshift.io/deployer-pod-for.name")["items"]))
    assert not p.call("GET", "/api/v1/namespaces/blue/pods")["items"]
    assert p.get("pod", "x-1-deploy")["spec"]["serviceAccountName"] == "deployer"


@pytest.mark.parametrize("copy", ("", "{", "[]", '{"spec": 1}', '{"spec": {"strategy": {"type": "Rolling", "rollingParams": 7}}}'))
def test_a_copy_that_is_no_object_ends_the_rollout(p, copy):
    p.kubectl("create", input=config(triggers=[], paused=True))
    rc = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {
        "name": "x-1", "annotations": {"openshift.io/deployment-config.name": "x", ENCODED: copy,
                                       "openshift.io/deployment-config.latest-version": "1"}},
          "spec": {"replicas": 0, "selector": {"app": "web"}, "template": pod_template()}}
    p.kubectl("create", input=rc)
    p.wait_phase("x-1", "Failed")
    assert rollback(p, revision=1)[0] == 422


def test_a_pod_with_the_name_of_the_deployer_ends_the_rollout(p):
    own = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x-1-deploy", "annotations": {"openshift.io/deployment.name": "x-1"}},
           "spec": {"containers": [{"name": "c", "image": "web"}]}}
    p.kubectl("create", input=own)
    p.kubectl("create", input=config())
    p.wait_phase("x-1", "Failed")
    assert p.rc("x-1")["metadata"]["annotations"][REASON] == "unrelated pod with the same name as this deployment is already running"
    assert p.get("pod", "x-1-deploy")["metadata"]["annotations"]["openshift.io/deployment.name"] == "x-1"


def test_a_number_that_was_written_does_not_stop_later_rollouts(p):
    p.kubectl("create", input=config())
    p.wait_phase("x-1", "Complete")
    p.annotate("x-1", {"openshift.io/deployment-config.latest-version": "999999999999999999999"})
    set_image(p, "web:2")
    p.instantiate(force=True)
    p.annotate("x-1", {"openshift.io/deployment-config.latest-version": "40"})
    wait_for("the repair", lambda: p.get("dc", "x")["status"]["latestVersion"] >= 40)
    wait_for("the rollout", lambda: p.phase("x-41") == "Complete", 60)


def test_the_name_of_a_rollout_that_another_object_has(p):
    rc = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "x-1"},
          "spec": {"replicas": 0, "selector": {"app": "other"}, "template": {**pod_template(), "metadata": {"labels": {"app": "other"}}}}}
    p.kubectl("create", input=rc)
    p.kubectl("create", input=config())
    c = wait_for("the condition", lambda: p.condition("Progressing").get("reason") and p.condition("Progressing"))
    assert c["reason"] == "ReplicationControllerCreateError" and "x-1" in c["message"]
    p.kubectl("delete", "rc", "x-1")
    p.wait_phase("x-1", "Complete")


# ---- without pods ----

@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    """A cluster whose controllers do the rollouts themselves."""
    p = Configs(tmp_path_factory.mktemp("inside"), kubernetesMasterConfig={"deployInProcess": True})
    yield p
    p.stop()


def test_the_controllers_do_rollouts_themselves(inside):
    p = inside
    params = {"timeoutSeconds": 5, "pre": hook(), "post": hook()}
    p.kubectl("create", input=config(replicas=3, strategy={"type": "Rolling", "rollingParams": params}))
    p.wait_phase("x-1", "Complete")
    p.wait_settled("x-1", 3)
    seen = Numbers(p)
    set_image(p, "web:2")
    p.wait_phase("x-2", "Complete")
    p.wait_settled("x-2", 3)
    seen.end()
    assert seen.least >= 3 and seen.most <= 4
    assert p.get("pod", "x-2-hook-pre")["status"]["phase"] == p.get("pod", "x-2-hook-post")["status"]["phase"] == "Succeeded"
    assert not [x for x in p.get("pod")["items"] if x["metadata"]["name"].endswith("-deploy")]
    assert "is done by the controllers" not in json.dumps(p.ask("GET", f"{API}/x/log")[1])
    set_image(p, "broken")
    p.wait_phase("x-3", "Failed")
    p.wait_settled("x-2", 3)
    assert "timed out waiting for any update progress" in p.rc("x-3")["metadata"]["annotations"][REASON]
    assert p.ask("GET", f"{API}/x/log")[1]["message"].startswith("deployment x-3 is done by the controllers and has no log")
    p.kubectl("patch", "dc", "x", "--type=merge", "-p", json.dumps({"spec": {"strategy": {
        "type": "Recreate", "recreateParams": {"mid": hook()}, "rollingParams": None}}}))
    seen = Numbers(p)
    set_image(p, "web:4")
    p.wait_phase("x-4", "Complete")
    p.wait_settled("x-4", 3)
    seen.end()
    assert not any({"x-2", "x-4"} <= s for s in seen.together)
    # A container of the user needs its pod.
    p.kubectl("patch", "dc", "x", "--type=merge", "-p", json.dumps({"spec": {"strategy": {
        "type": "Custom", "customParams": {"image": "done"}}}}))
    p.instantiate(force=True)
    p.wait_phase("x-5", "Complete")
    assert p.get("pod", "x-5-deploy")["spec"]["containers"][0]["image"] == "done"


def test_a_privileged_hook_is_refused_in_the_controllers_too(inside):
    p = inside
    bad = config("y", strategy={"type": "Rolling", "rollingParams": {"pre": hook()}})
    bad["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert p.call("POST", API, bad)
    p.wait_phase("y-1", "Failed")
    assert "privileged" in p.rc("y-1")["metadata"]["annotations"][REASON]
    assert not p.get("pod", "-l", "openshift.io/deployer-pod-for.name=y-1")["items"]
