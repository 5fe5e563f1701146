# SPDX-License-Identifier: Apache-2.0
"""What the people of a project may do by the default roles: kubectl as a user with role edit, or admin, of a real master."""
import base64
import json

import pytest

from lab import wait_for
from test_auth import RBAC, Cluster

KINDS = ("containers", "initContainers")


@pytest.fixture
def c(tmp_path):
    made = Cluster(str(tmp_path))
    made.namespace("red")
    for user, role in (("eve", "edit"), ("ada", "admin")):
        made.bind("red", user, role, user=user)
        wait_for("the role's rules", lambda: made.kubectl(
            "auth", "can-i", "create", "pods", "-n", "red", "--as", user, check=False).returncode == 0)
    yield made
    made.stop()


def pod(name, spec=None, container=None, kind="containers"):
    spec = {"containers": [{"name": "c", "image": "i"}], **(spec or {})}
    if container:
        spec[kind] = [{"name": "d", "image": "i", **container}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def create(c, obj, user="eve", verb="create"):
    (c.dir / "object.json").write_text(json.dumps(obj))
    return c.kubectl(verb, "-n", "red", "--as", user, "-f", c.dir / "object.json", check=False)


def refused(r, *fields):
    start = "forbidden: unable to validate against any security context constraint: ["
    assert r.returncode == 1 and start in r.stderr, r
    for field in fields:
        assert f"provider restricted: {field}: Invalid value: " in r.stderr, (field, r.stderr)
    assert r.stderr.count("provider restricted") == len(fields), r.stderr


def test_pods_of_a_member_get_no_more_than_restricted(c):
    refused(create(c, pod("x", {"hostNetwork": True, "hostPID": True, "volumes": [
        {"name": "v", "hostPath": {"path": "/"}}]})), "spec.hostNetwork", "spec.hostPID", "spec.volumes[0]")
    for kind in KINDS:
        at = f"spec.{kind}[0]"
        for container, field in (({"ports": [{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]}, "ports[0].hostPort"),
                                 ({"securityContext": {"privileged": True}}, "securityContext.privileged"),
                                 ({"securityContext": {"runAsUser": 0}}, "securityContext.runAsUser"),
                                 ({"securityContext": {"capabilities": {"add": ["NET_RAW"]}}},
                                  "securityContext.capabilities.add[0]")):
            refused(create(c, pod("x", container=container, kind=kind)), f"{at}.{field}")
    # An honest pod runs as it did, with what is left open filled in; applying it again changes nothing.
    assert create(c, pod("good"), verb="apply").returncode == 0
    context = json.loads(c.kubectl("get", "pod", "good", "-n", "red", "-o", "json").stdout)["spec"]
    assert context["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    notes = json.loads(c.kubectl("get", "namespace", "red", "-o", "json").stdout)["metadata"]["annotations"]
    first = int(notes["openshift.io/sa.scc.uid-range"].split("/")[0])
    assert context["securityContext"]["fsGroup"] == first
    assert context["securityContext"]["seLinuxOptions"] == {"level": notes["openshift.io/sa.scc.mcs"]}
    assert context["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False, "runAsNonRoot": True, "runAsUser": first,
        "capabilities": {"drop": ["KILL", "MKNOD", "SETGID", "SETUID"]}}
    assert create(c, pod("good"), verb="apply").stdout == "pod/good unchanged\n"
    refused(create(c, pod("good", {"hostIPC": True}), verb="apply"), "spec.hostIPC")
    refused(c.kubectl("patch", "pod", "good", "-n", "red", "--as", "eve", "-p", json.dumps(
        {"spec": {"containers": [{"name": "c", "securityContext": {"privileged": True}}]}}), check=False),
        "spec.containers[0].securityContext.privileged")
    # Of an administrator's pod a member changes labels only.
    wild = pod("wild", {"hostNetwork": True})
    assert create(c, wild, user="ada").returncode == 1
    c.admin("POST", "/api/v1/namespaces/red/pods", wild, 201)
    c.kubectl("label", "pod", "wild", "-n", "red", "--as", "eve", "a=b")
    refused(c.kubectl("patch", "pod", "wild", "-n", "red", "--as", "eve", "-p", json.dumps(
        {"spec": {"containers": [{"name": "c", "image": "mine"}]}}), check=False), "spec.hostNetwork")


def test_leave_to_use_privileged_is_given_to_users_and_accounts(c):
    wild = pod("wild", {"hostNetwork": True, "serviceAccountName": "router"})
    assert 'serviceaccount "router" not found' in create(c, wild).stderr
    c.kubectl("create", "serviceaccount", "router", "-n", "red")
    refused(create(c, wild), "spec.hostNetwork")
    c.role(None, "scc-privileged", {"apiGroups": ["security.openshift.io"], "verbs": ["use"],
                                    "resources": ["securitycontextconstraints"], "resourceNames": ["privileged"]})
    c.kubectl("create", "rolebinding", "router", "-n", "red", "--clusterrole=scc-privileged", "--serviceaccount=red:router")
    assert create(c, wild).returncode == 0
    refused(create(c, pod("other", {"hostNetwork": True})), "spec.hostNetwork")
    c.kubectl("create", "rolebinding", "eve-scc", "-n", "red", "--clusterrole=scc-privileged", "--user=eve")
    assert create(c, pod("other", {"hostNetwork": True})).returncode == 0


def test_the_namespace_is_the_cluster_administrators(c):
    for args in (("label", "namespace", "red", "team=other"), ("annotate", "namespace", "red", "a=b"),
                 ("delete", "namespace", "red", "--wait=false")):
        r = c.kubectl(*args, "--as", "ada", check=False)
        assert r.returncode == 1 and 'User "ada" cannot' in r.stderr, r
    r = c.kubectl("label", "projects.project.openshift.io", "red", "team=other", "--as", "ada", check=False)
    assert r.returncode == 1 and "metadata.labels[team]" in r.stderr and "try updating the namespace" in r.stderr, r
    c.kubectl("annotate", "projects.project.openshift.io", "red", "openshift.io/display-name=Ours", "--as", "ada")
    shown = json.loads(c.kubectl("get", "namespace", "red", "-o", "json").stdout)["metadata"]
    assert shown["annotations"]["openshift.io/display-name"] == "Ours" and "team" not in shown["labels"]
    c.kubectl("label", "namespace", "red", "team=other")
    c.kubectl("delete", "projects.project.openshift.io", "red", "--wait=false", "--as", "ada")
    wait_for("the namespace to go", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/red")[0] == 404)


def test_tokens_that_a_member_makes_are_of_the_project(c):
    c.namespace("blue")
    eve = c.user("eve")
    path = "/api/v1/namespaces/red/secrets"
    data = {"token-id": "aaaaaa", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:x"}
    c.ask(eve, "POST", path, {"metadata": {"name": "bootstrap-token-aaaaaa"}, "type": "bootstrap.kubernetes.io/token",
                              "stringData": data}, want=201)
    assert c.ask("aaaaaa.0123456789abcdef", "GET", "/version")[0] == 401
    # The account of a Secret is the one of that name in the Secret's own namespace.
    blue = c.admin("GET", "/api/v1/namespaces/blue/serviceaccounts/default")["metadata"]["uid"]
    for name, annotations in (("own", {}), ("theirs", {"kubernetes.io/service-account.uid": blue})):
        c.ask(eve, "POST", path, {
            "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": "default", **annotations}},
            "type": "kubernetes.io/service-account-token"}, want=201)
    own = wait_for("the token", lambda: c.admin("GET", f"{path}/own").get("data"))
    assert c.whoami(base64.b64decode(own["token"]).decode())["username"] == "system:serviceaccount:red:default"
    wait_for("the secret of no account to go", lambda: c.ask(c._admin, "GET", f"{path}/theirs")[0] == 404)
    assert c.ask(eve, "POST", "/api/v1/namespaces/blue/serviceaccounts/default/token", {})[0] == 403


def test_an_upgrade_takes_the_withdrawn_rule_away(c):
    """A registry of an earlier version: the role system:aggregate-to-admin, and with it admin, had this rule."""
    old = {"verbs": ["get", "delete", "patch", "update"], "apiGroups": [""], "resources": ["namespaces"]}
    mine = {**old, "verbs": ["patch"]}
    path = f"{RBAC}/clusterroles/system:aggregate-to-admin"

    def rules(name):
        return c.admin("GET", f"{RBAC}/clusterroles/{name}")["rules"]

    def give(*more, update="true"):
        role = c.admin("GET", path)
        role["rules"] = [r for r in role["rules"] if r not in (old, mine)] + list(more)
        role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = update
        c.admin("PUT", path, role)
        wait_for("the gathered rules", lambda: all(r in rules("admin") for r in more))
        c.stop()
        c.start()
    give(old)
    assert old not in rules("system:aggregate-to-admin")
    wait_for("the role admin without it", lambda: old not in rules("admin"))
    assert "withdrawn" not in c.text()
    # What differs is the administrator's own rule.
    give(mine)
    assert mine in rules("system:aggregate-to-admin")
    # A role that is not to be updated keeps it, and the log says so.
    give(old, update="false")
    assert old in rules("system:aggregate-to-admin")
    assert "a default role keeps a rule that was withdrawn" in c.text() and "role=system:aggregate-to-admin" in c.text()
