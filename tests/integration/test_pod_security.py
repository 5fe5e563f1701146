# SPDX-License-Identifier: Apache-2.0
"""Pod Security labels of namespaces, as users of Kubernetes know them: kubectl against a real master."""
import itertools
import json

import pytest

from lab import wait_for
from test_auth import Cluster

LABEL = "pod-security.kubernetes.io/"
OPEN = ('allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted '
        'capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container '
        '"c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")')
CLOSED = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]},
          "seccompProfile": {"type": "RuntimeDefault"}}
NUMBERS = itertools.count()
PRIVILEGED = 'privileged (container "c" must not set securityContext.privileged=true)'


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("podsec")
    made = Cluster(str(tmp), extra={"auditConfig": {"auditFilePath": str(tmp / "audit.log")}})
    yield made
    made.stop()


@pytest.fixture
def red(c):
    """A namespace of the test's own, and kubectl in it."""
    name = f"red{next(NUMBERS)}"
    c.namespace(name)

    def kubectl(*args, fails=False):
        r = c.kubectl("-n", name, *args, check=False)
        assert (r.returncode != 0) == fails, r
        return r.stderr if fails else r.stdout + r.stderr
    kubectl.name = name
    yield kubectl
    c.kubectl("delete", "namespace", name, "--wait=false")


def container(context=None):
    return {"name": "c", "image": "i:1", **({"securityContext": context} if context else {})}


def pod(name, context=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container(context)], **spec}}


def write(c, red, obj, verb="create", *args, fails=False):
    (c.dir / "o.json").write_text(json.dumps(obj))
    return red(verb, "-f", c.dir / "o.json", *args, fails=fails)


def label(c, red, *labels, fails=False):
    r = c.kubectl("label", "--overwrite", "namespace", red.name, *[LABEL + x for x in labels], check=False)
    assert (r.returncode != 0) == fails, r
    return r.stderr


def test_kubectl_shows_refusals_and_warnings(c, red):
    assert label(c, red, "enforce=baseline", "warn=restricted", "warn-version=v1.30") == ""
    said = write(c, red, pod("x", {"privileged": True}), fails=True)
    assert f'pods "x" is forbidden: violates PodSecurity "baseline:latest": {PRIVILEGED}' in said
    assert "Warning" not in said
    assert f'Warning: would violate PodSecurity "restricted:v1.30": {OPEN}' in write(c, red, pod("open"))
    assert "Warning" not in write(c, red, pod("closed", CLOSED))
    assert "violates PodSecurity" in red("run", "host", "--image=i", "--overrides", json.dumps(
        {"spec": {"hostNetwork": True}}), fails=True)


def test_nothing_changes_without_labels(c, red):
    for obj in (pod("x", {"privileged": True}, hostNetwork=True), pod("y", hostPID=True)):
        assert "Warning" not in write(c, red, obj)


def test_wrong_labels_are_refused(c, red):
    why = "must be one of privileged, baseline, restricted"
    assert f'metadata.labels[{LABEL}enforce]: Invalid value: "strict": {why}' in label(c, red, "enforce=strict", fails=True)
    why = 'must be "latest" or "v1.x"'
    assert f'metadata.labels[{LABEL}audit-version]: Invalid value: "1.2": {why}' in label(c, red, "audit-version=1.2", fails=True)
    write(c, red, pod("x", {"privileged": True}))


def test_a_deployment_is_warned_about_and_makes_no_pods(c, red):
    label(c, red, "enforce=restricted")
    said = red("create", "deployment", "d", "--image=i", "--", "true")
    assert 'Warning: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "i" must' in said
    daemons = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "s"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container(CLOSED)]}}}}
    assert "would violate" not in write(c, red, daemons)
    job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}, "spec": {
        "schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [container({"privileged": True})]}}}}}}
    assert 'would violate PodSecurity "restricted:latest": privileged (container "c"' in write(c, red, job)


def test_a_stricter_level_names_existing_pods_which_stay(c, red):
    write(c, red, pod("a", {"privileged": True}))
    write(c, red, pod("b", {"privileged": True}))
    write(c, red, pod("closed", CLOSED))
    said = label(c, red, "enforce=baseline")
    assert f'Warning: existing pods in namespace "{red.name}" violate the new PodSecurity enforce level "baseline:latest"' in said
    assert "Warning: a (and 1 other pod): privileged" in said and "closed" not in said
    assert "existing pods" in label(c, red, "enforce=restricted")
    assert label(c, red, "enforce=baseline") == ""  # Less than before.
    # They are bound, labelled, reported about and deleted as before.
    c.admin("POST", "/api/v1/nodes", {"metadata": {"name": red.name}}, 201)
    c.admin("POST", f"/api/v1/namespaces/{red.name}/pods/a/binding",
            {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": red.name}}, 201)
    red("label", "pod", "a", "x=y")
    red("annotate", "pod", "a", "x=y")
    c.admin("PATCH", f"/api/v1/namespaces/{red.name}/pods/a/status", {"status": {"message": "m"}},
            headers={"Content-Type": "application/merge-patch+json"})
    red("delete", "pod", "a", "--grace-period=0", "--force")
    assert "violates PodSecurity" in red("set", "image", "pod/b", "c=i:2", fails=True)


def test_no_way_of_writing_gets_around_the_level(c, red):
    """The control is the same write of a pod that the level allows."""
    label(c, red, "enforce=restricted")
    # These fill in what the level wants, so that fewer pods violate it.
    for scc in ("restricted-v2", "nonroot-v2", "hostnetwork-v2"):
        c.admin("DELETE", f"/apis/security.openshift.io/v1/securitycontextconstraints/{scc}")
    write(c, red, pod("p", CLOSED))
    ways = [("create",), ("create", "--dry-run=server"), ("apply",), ("apply", "--server-side"), ("apply", "--dry-run=server"),
            ("apply", "--server-side", "--dry-run=server"), ("create", "--save-config")]
    for i, (verb, *args) in enumerate(ways):
        assert "violates PodSecurity" in write(c, red, pod(f"x{i}"), verb, *args, fails=True), (verb, args)
        write(c, red, pod(f"y{i}", CLOSED), verb, *args)
    path = f"/api/v1/namespaces/{red.name}/pods/p/ephemeralcontainers"
    for what, kind in (({"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}, "strategic-merge-patch"),
                       ([{"op": "add", "path": "/spec/ephemeralContainers", "value": [{"name": "d", "image": "i"}]}], "json-patch")):
        for query in ("", "?dryRun=All"):
            status, answer = c.ask(c._admin, "PATCH", path + query, what, headers={"Content-Type": f"application/{kind}+json"})
            assert status == 403 and 'violates PodSecurity "restricted:latest": unrestricted capabilities (container "d"' in \
                answer["message"], answer
    good = {"name": "d", "image": "i", "securityContext": CLOSED}
    c.admin("PATCH", path, {"spec": {"ephemeralContainers": [good]}},
            headers={"Content-Type": "application/strategic-merge-patch+json"})
    for profile in ("legacy", "general", "baseline", "netadmin", "sysadmin"):
        for more in ((), ("--copy-to", "copy"), ("--copy-to", "copy", "--share-processes")):
            assert "violates PodSecurity" in red("debug", "p", "--image=i", "--profile", profile, *more, fails=True)
    red("debug", "p", "--image=i", "--profile=restricted")
    # A name that the server makes.
    made = pod("x")
    made["metadata"] = {"generateName": "gen-"}
    assert 'pods "gen-' in write(c, red, made, fails=True)
    # Windows is exempt from what its containers do not have, and may then have none of it.
    write(c, red, pod("w", {"runAsNonRoot": True}, os={"name": "windows"}))
    for context in ({"capabilities": {"add": ["SYS_ADMIN"]}}, {"allowPrivilegeEscalation": True}, {"privileged": True},
                    {"seccompProfile": {"type": "Unconfined"}}):
        write(c, red, pod("v", {"runAsNonRoot": True, **context}, os={"name": "windows"}), fails=True)
    # A mirror of a node's own pod is a pod.
    mirror = pod("m", {"privileged": True})
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    mirror["spec"]["nodeName"] = "n"
    assert "violates PodSecurity" in write(c, red, mirror, fails=True)


def test_the_audit_log_has_the_policy_and_violations(c, red):
    def notes():
        lines = [json.loads(x) for x in (c.dir / "audit.log").read_text().splitlines()]
        return [{k[len(LABEL):]: v for k, v in x["annotations"].items() if k.startswith(LABEL)} for x in lines
                if x["verb"] == "create" and x.get("objectRef", {}).get("namespace") == red.name
                and x["objectRef"]["resource"] == "pods"]
    label(c, red, "audit=baseline", "audit-version=v1.20")
    write(c, red, pod("x", {"privileged": True}))
    label(c, red, "enforce=restricted", "enforce-version=v1.1", "audit-")
    write(c, red, pod("y"), fails=True)
    wait_for("the lines", lambda: len(notes()) == 2)
    assert notes() == [{"enforce-policy": "privileged:latest",
                        "audit-violations": f'would violate PodSecurity "baseline:v1.20": {PRIVILEGED}'},
                       {"enforce-policy": "restricted:v1.1"}]


def test_the_plug_in_can_be_disabled(tmp_path):
    made = Cluster(str(tmp_path), extra={"admissionConfig": {"disabledPlugins": ["PodSecurity"]}})
    try:
        made.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "red", "labels": {LABEL + "enforce": "strict"}}}, 201)
        wait_for("the service account", lambda: made.ask(
            made._admin, "GET", "/api/v1/namespaces/red/serviceaccounts/default")[0] == 200)
        made.admin("POST", "/api/v1/namespaces/red/pods", pod("x", {"privileged": True}), 201)
    finally:
        made.stop()


def test_what_the_configuration_exempts_is_not_judged(tmp_path):
    made = Cluster(str(tmp_path), extra={"podSecurity": {"exemptUsernames": ["root"], "exemptNamespaces": ["free"],
                                                         "exemptRuntimeClasses": ["box"]},
                                         "auditConfig": {"auditFilePath": str(tmp_path / "audit.log")}})
    try:
        for name in ("free", "held"):
            made.namespace(name)
            made.admin("PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {LABEL + "enforce": "restricted"}}},
                       headers={"Content-Type": "application/merge-patch+json"})
        made.admin("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "box"}, "handler": "box"}, 201)
        made.bind(None, "all", "cluster-admin", user="root2")
        other = made.user("root2")
        wait_for("the right", lambda: made.ask(other, "GET", "/api/v1/namespaces")[0] == 200)

        def create(who, ns, name, want, **spec):
            return made.ask(who, "POST", f"/api/v1/namespaces/{ns}/pods", pod(name, **spec), want=want)
        made.admin("POST", "/api/v1/namespaces/held/pods", pod("a"), 201)
        create(other, "free", "b", 201)
        create(other, "held", "c", 201, runtimeClassName="box")
        assert "violates PodSecurity" in create(other, "held", "d", 403)["message"]
        for why in ("user", "namespace", "runtimeClass"):
            wait_for(why, lambda why=why: f'"pod-security.kubernetes.io/exempt":"{why}"' in (tmp_path / "audit.log").read_text())
    finally:
        made.stop()
