# SPDX-License-Identifier: Apache-2.0
"""What the people of a project may do by the default roles: kubectl as a user with role edit, or admin, of a real master."""
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
    assert context["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False, "runAsNonRoot": True,
        "capabilities": {"drop": ["KILL", "MKNOD", "SETUID", "SETGID"]}}
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
    refused(create(c, wild), "spec.hostNetwork")
    c.role(None, "scc-privileged", {"apiGroups": ["security.openshift.io"], "verbs": ["use"],
                                    "resources": ["securitycontextconstraints"], "resourceNames": ["privileged"]})
    c.kubectl("create", "rolebinding", "router", "-n", "red", "--clusterrole=scc-privileged", "--serviceaccount=red:router")
    assert create(c, wild).returncode == 0
    refused(create(c, pod("other", {"hostNetwork": True})), "spec.hostNetwork")
    c.kubectl("create", "rolebinding", "eve-scc", "-n", "red", "--clusterrole=scc-privileged", "--user=eve")
    assert create(c, pod("other", {"hostNetwork": True})).returncode == 0
