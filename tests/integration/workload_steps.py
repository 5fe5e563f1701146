# SPDX-License-Identifier: Apache-2.0
"""What a user does with workloads, step by step, by any client with kubectl's commands: in the gate by tenet and kubectl
(test_workload_clients.py), before releases by older and newer ones (tests/clients)."""
import json
import subprocess

import lab as lablib
from lab import TENET, wait_for
from test_scheduler import kubelet_node
from test_workloads import Project, workload  # noqa: F401


class Client:
    """A program with the credentials of the project's member, or of an administrator."""

    def __init__(self, p, program, user="eve"):
        self.p, self.program, self.kubeconfig = p, str(program), kubeconfig(p, user)
        self.ours = self.program == str(TENET)
        # kubectl before 1.21 knows CronJobs of batch/v1beta1 only.
        self.old = not self.ours and '"v1.20.' in self.run("version", "--client", "-o", "json")

    def run(self, *args, fails=False, input=None, timeout=90):
        args = [str(a) for a in args]
        at = args.index("--") if "--" in args else len(args)
        args[at:at] = ["--kubeconfig", str(self.kubeconfig), "-n", "red"]
        r = subprocess.run([self.program, *args], input=input, capture_output=True, text=True, timeout=timeout,
                           env={**lablib.environment(), "HOME": str(self.p.c.dir)})
        assert (r.returncode != 0) == fails, (args, r.returncode, r.stdout, r.stderr)
        return r.stderr if fails else r.stdout

    def create(self, obj):
        return self.run("create", "-f", "-", input=json.dumps(obj))


def kubeconfig(p, user):
    """A kubeconfig with a certificate of the user."""
    path = p.c.dir / f"{user}.kubeconfig"
    if path.exists():
        return path
    groups = ["system:masters"] if user == "root" else []
    p.c.user(user, *groups)
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "t",
        "clusters": [{"name": "t", "cluster": {"server": f"https://127.0.0.1:{p.c.port}",
                                               "certificate-authority": str(p.c.pki / "ca.crt")}}],
        "contexts": [{"name": "t", "context": {"cluster": "t", "user": user}}],
        "users": [{"name": user, "user": {"client-certificate": str(p.c.dir / f"user-{user}.crt"),
                                          "client-key": str(p.c.dir / f"user-{user}.key")}}]}))
    return path


def rolled_out(c, what):
    return c.run("rollout", "status", what, "--timeout=60s")


def a_deployment(c):
    """From an image to its end: rolled out, changed, brought back, paused, restarted, scaled."""
    p = c.p
    assert c.run("create", "deployment", "web", "--image=web", "--replicas=2") == "deployment.apps/web created\n"
    assert 'deployment "web" successfully rolled out' in rolled_out(c, "deployment/web")
    assert c.run("set", "image", "deployment/web", "web=web:2") == "deployment.apps/web image updated\n"
    rolled_out(c, "deployment/web")
    assert p.images("app=web") == ["web:2"] * 2
    history = c.run("rollout", "history", "deployment/web")
    assert history == "deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>\n\n"
    assert "web:2" in c.run("rollout", "history", "deployment/web", "--revision=2")
    assert c.run("rollout", "undo", "deployment/web") == "deployment.apps/web rolled back\n"
    rolled_out(c, "deployment/web")
    assert p.images("app=web") == ["web"] * 2
    assert c.run("rollout", "pause", "deployment/web") == "deployment.apps/web paused\n"
    assert "is already paused" in c.run("rollout", "pause", "deployment/web", fails=True)
    assert c.run("set", "env", "deployment/web", "A=1") == "deployment.apps/web env updated\n"
    assert c.run("set", "resources", "deployment/web", "--requests=cpu=10m") == \
        "deployment.apps/web resource requirements updated\n"
    assert p.images("app=web") == ["web"] * 2 and len(p.get("rs")["items"]) == 2
    assert c.run("rollout", "resume", "deployment/web") == "deployment.apps/web resumed\n"
    rolled_out(c, "deployment/web")
    container = p.pods("app=web")[0]["spec"]["containers"][0]
    assert container["env"][0] == {"name": "A", "value": "1"} and container["resources"]["requests"] == {"cpu": "10m"}
    assert c.run("rollout", "restart", "deployment/web") == "deployment.apps/web restarted\n"
    rolled_out(c, "deployment/web")
    assert all("kubectl.kubernetes.io/restartedAt" in x["metadata"]["annotations"] for x in p.pods("app=web"))
    assert c.run("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled\n"
    assert "Expected replicas to be 1, was 3" in c.run("scale", "deployment/web", "--replicas=4", "--current-replicas=1",
                                                       fails=True)
    rolled_out(c, "deployment/web")
    assert c.run("wait", "deployment/web", "--for=condition=Available", "--timeout=60s") == \
        "deployment.apps/web condition met\n"
    assert len(p.pods("app=web")) == 3
    assert c.run("autoscale", "deployment/web", "--min=4", "--max=5") == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    wait_for("four pods", lambda: len(p.pods("app=web")) == 4)
    assert c.run("expose", "deployment/web", "--port=80", "--target-port=8080", "--cluster-ip=None") == "service/web exposed\n"
    assert p.get("svc", "web")["spec"]["selector"] == {"app": "web"}
    c.run("delete", "svc", "web")


def a_rollout_that_fails(c):
    c.create(workload("Deployment", replicas=2, progressDeadlineSeconds=2))
    rolled_out(c, "deployment/web")
    c.run("set", "image", "deployment/web", "c=broken")
    assert 'error: deployment "web" exceeded its progress deadline\n' in c.run(
        "rollout", "status", "deployment/web", "--timeout=60s", fails=True)
    c.run("rollout", "undo", "deployment/web")
    rolled_out(c, "deployment/web")
    assert c.p.images("app=web") == ["web"] * 2


def sets(c):
    p = c.p
    c.create(workload("StatefulSet", replicas=2, serviceName="web"))
    assert "partitioned roll out complete: 2 new pods" in rolled_out(c, "statefulset/web")
    c.run("set", "image", "statefulset/web", "c=web:2")
    rolled_out(c, "statefulset/web")
    assert p.images("app=web") == ["web:2"] * 2
    assert "web:2" in c.run("rollout", "history", "statefulset/web", "--revision=2")
    assert c.run("rollout", "undo", "statefulset/web") == "statefulset.apps/web rolled back\n"
    rolled_out(c, "statefulset/web")
    assert p.images("app=web") == ["web"] * 2
    c.run("rollout", "restart", "statefulset/web")
    rolled_out(c, "statefulset/web")


def jobs(c):
    p = c.p
    assert c.run("create", "job", "once", "--image=done") == "job.batch/once created\n"
    assert c.run("wait", "job/once", "--for=condition=complete", "--timeout=60s") == "job.batch/once condition met\n"
    assert c.run("create", "cronjob", "yearly", "--image=done", "--schedule=0 0 1 1 *") == \
        "cronjob.batch/yearly created\n"
    # kubectl before 1.21 has to be told the version that it knows when a server prefers batch/v1.
    source = "cronjob.v1beta1.batch/yearly" if c.old else "cronjob/yearly"
    assert c.run("create", "job", "byhand", f"--from={source}") == "job.batch/byhand created\n"
    c.run("wait", "job/byhand", "--for=condition=complete", "--timeout=60s")
    assert p.get("job", "byhand")["metadata"]["ownerReferences"][0]["name"] == "yearly"
    c.run("delete", "cronjob", "yearly")
    wait_for("its Job to go", lambda: "byhand" not in [x["metadata"]["name"] for x in p.get("job")["items"]])
    c.run("create", "job", "bad", "--image=fail:3")
    c.run("patch", "job", "bad", "-p", '{"spec":{"backoffLimit":0}}', "--type=merge")
    c.run("wait", "job/bad", "--for=condition=failed", "--timeout=60s")


# The example of the documents of OpenShift 3.4, with an image that the kubelet of this test ends.
PI = """
apiVersion: extensions/v1
kind: Job
metadata:
  name: pi
spec:
  selector:
    matchLabels:
      app: pi
  template:
    metadata:
      name: pi
      labels:
        app: pi
    spec:
      containers:
      - name: pi
        image: done
        command: ["perl",  "-Mbignum=bpi", "-wle", "print bpi(2000)"]
      restartPolicy: Never
"""


def earlier_names(c):
    """Manifests of older documents make the objects of today's names."""
    p = c.p
    assert "/pi created\n" in c.run("create", "-f", "-", input=PI)
    c.run("wait", "jobs.batch/pi", "--for=condition=complete", "--timeout=60s")
    pod, = p.get("pods", "-l", "app=pi")["items"]
    spec = p.get("jobs.batch", "pi")["spec"]
    assert spec["manualSelector"] and spec["selector"] == {"matchLabels": {"app": "pi"}}
    assert p.get("jobs.extensions", "pi")["apiVersion"] == "extensions/v1"
    c.create({"apiVersion": "batch/v2alpha1", "kind": "ScheduledJob", "metadata": {"name": "yearly"}, "spec": {
        "schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "done"}]}}}}}})
    assert [x["metadata"]["name"] for x in p.get("cronjobs")["items"]] == ["yearly"]
    c.run("delete", "jobs.extensions", "pi", "--cascade=background")
    wait_for("its pod to go", lambda: pod["metadata"]["name"] not in [x["metadata"]["name"] for x in p.get("pods")["items"]])
    c.run("delete", "scheduledjobs", "yearly")
    assert not p.get("cronjobs")["items"]
    # As OpenShift 3 wrote it: the selector and the limits come from the version.
    old = workload("Deployment", replicas=2)
    old["apiVersion"] = "extensions/v1beta1"
    del old["spec"]["selector"]
    c.create(old)
    rolled_out(c, "deployment/web")
    made = p.get("deployments.apps", "web")
    assert made["apiVersion"] == "apps/v1" and made["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 1}
    assert p.get("deployments.v1beta1.extensions", "web")["metadata"]["uid"] == made["metadata"]["uid"]
    assert p.get("deployments.v1beta2.apps", "web")["apiVersion"] == "apps/v1beta2"
    # Through the older path: a scale, and the images back.
    c.run("set", "image", "deployment/web", "c=web:2")
    rolled_out(c, "deployment/web")
    if not c.ours:
        c.run("scale", "deployments.v1beta1.extensions/web", "--replicas=1")
        assert p.get("deployments", "web")["spec"]["replicas"] == 1
    c.run("rollout", "undo", "deployment/web")
    rolled_out(c, "deployment/web")
    assert set(p.images("app=web")) == {"web"}


def deletions(c):
    """The three orders in which a set and its pods go."""
    p = c.p
    c.create(workload("ReplicaSet", replicas=2))
    wait_for("two pods", lambda: len(p.pods("app=web")) == 2)
    c.run("delete", "rs", "web", "--cascade=orphan")
    wait_for("orphans", lambda: len(p.pods("app=web")) == 2 and
             not any(x["metadata"].get("ownerReferences") for x in p.pods("app=web")))
    c.create(workload("ReplicaSet", name="next", replicas=2))
    wait_for("adoption", lambda: len([x for x in p.pods("app=web") if x["metadata"].get("ownerReferences")]) == 2)
    c.run("delete", "rs", "next", "--cascade=foreground")
    assert not p.pods("app=web")
    c.create(workload("ReplicaSet", name="last", replicas=1))
    wait_for("a pod", lambda: len(p.pods("app=web")) == 1)
    c.run("delete", "rs", "last", "--cascade=background")
    wait_for("the pod to go", lambda: not p.pods("app=web"))


def labels_and_patches(c):
    c.create(workload("Deployment", replicas=1))
    assert c.run("label", "deployment/web", "tier=front") == "deployment.apps/web labeled\n"
    assert "--overwrite is false" in c.run("label", "deployment/web", "tier=back", fails=True)
    assert c.run("annotate", "deployment/web", "note=x") == "deployment.apps/web annotated\n"
    assert c.run("patch", "deployment/web", "-p", '{"spec":{"replicas":2}}') == "deployment.apps/web patched\n"
    assert c.run("patch", "deployment/web", "-p", '{"spec":{"replicas":2}}') == "deployment.apps/web patched (no change)\n"
    c.run("delete", "deployment/web", "--wait=false")
    if not c.old:  # It takes an object that is gone already for an error.
        c.run("wait", "deployment/web", "--for=delete", "--timeout=60s")
    assert c.run("run", "tool", "--image=web") == "pod/tool created\n"
    assert c.run("wait", "pod/tool", "--for=condition=Ready", "--timeout=60s") == "pod/tool condition met\n"


def a_drain_within_a_budget(c):
    p = c.p
    root = Client(p, c.program, user="root")
    try:
        for name in ("n1", "n2"):
            n = kubelet_node(name)
            assert p.call("POST", "/api/v1/nodes", n)
            assert p.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": n["status"]},
                          {"Content-Type": "application/strategic-merge-patch+json"})
        c.create(workload("Deployment", replicas=4))
        rolled_out(c, "deployment/web")
        wait_for("nodes of all pods", lambda: all(x["spec"].get("nodeName") for x in p.pods("app=web")))
        c.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
                  "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 3}})
        wait_for("room", lambda: p.get("pdb", "web")["status"].get("disruptionsAllowed") == 1)
        drain = ["adm", "drain", "n1"] if root.ours else ["drain", "n1"]
        timeout = "60" if root.ours else "60s"
        done = "evicted" if root.old else "drained"
        assert f"node/n1 {done}" in root.run(*drain, f"--timeout={timeout}")
        wait_for("four pods on the other node", lambda: p.get("deploy", "web")["status"].get("availableReplicas") == 4 and
                 [x["spec"].get("nodeName") for x in p.pods("app=web")] == ["n2"] * 4)
    finally:
        for name in ("n1", "n2"):
            p.call("DELETE", f"/api/v1/nodes/{name}")


STEPS = {f.__name__: f for f in (a_deployment, a_rollout_that_fails, sets, jobs, earlier_names, deletions, labels_and_patches,
                                 a_drain_within_a_budget)}
