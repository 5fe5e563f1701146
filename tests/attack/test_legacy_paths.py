# SPDX-License-Identifier: Apache-2.0
"""What an administrator and a stranger of project red can ask by OpenShift's older paths, /oapi/v1 and SecurityContextConstraints
at /api/v1: no more than by the paths of the groups."""

import pytest

from people import APPLY, JSON_PATCH, MERGE, People
from test_project_admin import changes

OAPI, SCCS = "/oapi/v1", "/api/v1/securitycontextconstraints"


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("legacy")), plugin="redhat/openshift-ovs-networkpolicy")
    people.admin("PATCH", "/api/v1/namespaces/red", {"metadata": {"labels": {"team": "red", "policy": "strict"},
                                                                 "annotations": {"cost": "1"}}}, headers=MERGE)
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def test_the_paths_are_of_use(c):
    """The control."""
    c.ask(c.ada, "PATCH", f"{OAPI}/projects/red", {"metadata": {"annotations": {"openshift.io/display-name": "Red"}}}, headers=MERGE,
          want=200)
    assert c.admin("GET", "/api/v1/namespaces/red")["metadata"]["annotations"]["openshift.io/display-name"] == "Red"
    c.ask(c.ada, "GET", f"{OAPI}/namespaces/red/deploymentconfigs", want=200)


@pytest.mark.parametrize("what,body,headers", changes(), ids=[what for what, _, _ in changes()])
def test_nothing_else_of_the_project_changes(c, what, body, headers):
    before = c.admin("GET", "/api/v1/namespaces/red")
    status, answer = c.ask(c.ada, "PATCH", f"{OAPI}/projects/red", body, headers=headers)
    after = c.admin("GET", "/api/v1/namespaces/red")
    assert status in (403, 422) or before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"], answer
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        assert before["metadata"].get(key) == after["metadata"].get(key), what
    assert (before["spec"], before["status"]) == (after["spec"], after["status"])


@pytest.mark.parametrize("path", ["users", "groups", "identities", "hostsubnets", "netnamespaces", "clusternetworks",
                                  "clusterresourcequotas"])
def test_kinds_of_the_cluster_are_closed_by_every_path(c, path):
    plural = f"{OAPI}/{path}"
    for method, where, body, headers in (
            ("GET", plural, None, None), ("GET", f"{plural}/x", None, None), ("POST", plural, {"metadata": {"name": "x"}}, None),
            ("PUT", f"{plural}/x", {"metadata": {"name": "x"}}, None), ("PATCH", f"{plural}/x", {"metadata": {}}, MERGE),
            ("PATCH", f"{plural}/x?fieldManager=a", {"apiVersion": "v1", "kind": "X"}, APPLY),
            ("PATCH", f"{plural}/x", [], JSON_PATCH), ("DELETE", f"{plural}/x", None, None), ("DELETE", plural, None, None),
            ("GET", f"{plural}?watch=true", None, None), ("GET", f"{OAPI}/watch/{path}", None, None)):
        assert c.ask(c.ada, method, where, body, headers=headers)[0] == 403, (method, where)
        # The same below a namespace in which ada has rights: CVE-2019-11247.
        inside = where.replace(OAPI, f"{OAPI}/namespaces/red", 1)
        assert c.ask(c.ada, method, inside, body, headers=headers)[0] in (403, 404), (method, inside)


def test_constraints_are_not_written_by_the_older_path(c):
    everything = {"kind": "SecurityContextConstraints", "apiVersion": "v1", "metadata": {"name": "mine"}, "users": ["ada"],
                  "allowPrivilegedContainer": True, "allowHostNetwork": True, "runAsUser": {"type": "RunAsAny"},
                  "seLinuxContext": {"type": "RunAsAny"}}
    for method, where, body, headers in (
            ("POST", SCCS, everything, None), ("PUT", f"{SCCS}/restricted", everything, None),
            ("PATCH", f"{SCCS}/restricted", {"allowPrivilegedContainer": True}, MERGE), ("DELETE", f"{SCCS}/restricted", None, None),
            ("DELETE", SCCS, None, None), ("POST", f"{OAPI}/securitycontextconstraints", everything, None)):
        assert c.ask(c.ada, method, where, body, headers=headers)[0] == 403, (method, where)
    assert c.admin("GET", f"{SCCS}/restricted")["allowPrivilegedContainer"] is False
    c.admin("GET", f"{SCCS}/mine", want=404)


def test_another_project_is_closed_and_says_nothing(c):
    for name in ("red", "blue", "nosuch"):
        want = 200 if name == "red" else 403
        assert c.ask(c.ada, "GET", f"{OAPI}/projects/{name}")[0] == want
        assert c.ask(c.ada, "GET", f"{OAPI}/namespaces/{name}/templates")[0] == want
    seen = [p["metadata"]["name"] for p in c.ask(c.ada, "GET", f"{OAPI}/projects", want=200)["items"]]
    assert "blue" not in seen and "red" in seen
    rollback = {"kind": "DeploymentConfigRollback", "apiVersion": "v1", "name": "x", "spec": {"from": {"name": "x-1"}}}
    texts = {c.ask(c.ada, "POST", f"{OAPI}/namespaces/{ns}/deploymentconfigrollbacks", rollback, want=403)["message"].replace(ns, "")
             for ns in ("blue", "nosuch")}
    assert len(texts) == 1


def test_a_process_is_not_begun_by_the_older_path(c):
    for part in ("exec", "attach", "portforward", "log", "proxy"):
        assert c.ask(c.ada, "GET", f"{OAPI}/namespaces/red/pods/p/{part}")[0] in (403, 404)
