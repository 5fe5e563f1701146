# SPDX-License-Identifier: Apache-2.0
"""OpenShift's kinds at /oapi/v1, and SecurityContextConstraints at /api/v1: the same objects, with the rights of their groups."""
import http.client
import json
import signal

import pytest

from lab import wait_for
from test_auth import Cluster

OAPI = "/oapi/v1"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PROTO = "application/vnd.kubernetes.protobuf"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture
def c(tmp_path):
    made = Cluster(str(tmp_path))
    made.admin("GET", "/readyz")
    yield made
    made.stop(signal.SIGKILL)


def config(name="web", replicas=0):
    return {"kind": "DeploymentConfig", "apiVersion": "v1", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"app": name}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}}


def template(name="t"):
    return {"kind": "Template", "apiVersion": "v1", "metadata": {"name": name}, "parameters": [{"name": "N", "value": "v"}],
            "objects": [{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "${N}"}}]}


def test_every_kind_of_openshift_is_listed_and_found(c):
    assert c.admin("GET", "/oapi")["versions"] == ["v1"]
    found = c.admin("GET", OAPI)
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "v1")
    resources = {r["name"]: r for r in found["resources"]}
    for name in ("deploymentconfigs", "templates", "processedtemplates", "projects", "users", "groups", "identities",
                 "useridentitymappings", "hostsubnets", "netnamespaces", "clusternetworks", "clusterresourcequotas",
                 "appliedclusterresourcequotas", "podsecuritypolicyreviews"):
        assert name in resources, name
    assert not {"pods", "namespaces", "securitycontextconstraints", "templateinstances"} & set(resources)
    for name, r in resources.items():
        if "list" in r["verbs"] and "/" not in name and name != "projectrequests":  # Its list is a question.
            answer = c.admin("GET", f"{OAPI}/{name}")
            assert answer["apiVersion"] == "v1" and answer["kind"] == r["kind"] + "List", name
    for path in ("pods", "namespaces", "namespaces/default", "securitycontextconstraints", "templateinstances", "nosuch"):
        c.admin("GET", f"{OAPI}/{path}", want=404)
    c.admin("GET", "/oapi/v2/users", want=404)
    c.admin("GET", "/oapi/v1beta3/users", want=404)


def test_an_object_is_the_same_in_both_forms(c):
    c.namespace("red")
    new, old = "/apis/apps.openshift.io/v1/namespaces/red/deploymentconfigs", f"{OAPI}/namespaces/red/deploymentconfigs"
    made = c.admin("POST", old, config(), 201)
    assert (made["kind"], made["apiVersion"]) == ("DeploymentConfig", "v1")
    wait_for("the controllers", lambda: "observedGeneration" in c.admin("GET", f"{new}/web").get("status", {}))
    a, b = c.admin("GET", f"{old}/web"), c.admin("GET", f"{new}/web")
    assert a.pop("apiVersion") == "v1" and b.pop("apiVersion") == "apps.openshift.io/v1"
    assert a["spec"] == b["spec"] and a["metadata"]["uid"] == b["metadata"]["uid"]
    c.admin("PUT", f"{old}/web", {**a, "apiVersion": "v1", "metadata": {"name": "web"}}, 422)

    def put():
        status, answer = c.ask(c.user("root", "system:masters"), "PUT", f"{old}/web", c.admin("GET", f"{old}/web"))
        assert status in (200, 409), answer  # The controllers write its status.
        return status == 200 and answer
    assert wait_for("the update", put)["apiVersion"] == "v1"
    patched = c.admin("PATCH", f"{old}/web", {"apiVersion": "v1", "spec": {"replicas": 0}}, headers=MERGE)
    assert (patched["apiVersion"], patched["spec"]["replicas"]) == ("v1", 0)
    applied = c.admin("PATCH", f"{old}/web?fieldManager=me&force=true",
                      {"apiVersion": "v1", "kind": "DeploymentConfig", "metadata": {"name": "web"}, "spec": {"replicas": 0}},
                      headers=APPLY)
    assert applied["apiVersion"] == "v1"
    assert c.admin("GET", f"{old}/web/scale")["kind"] == "Scale"
    c.admin("POST", old, {**config("x"), "apiVersion": "apps/v1"}, 400)
    table = c.admin("GET", old, headers=TABLE)
    assert table["kind"] == "Table" and table["columnDefinitions"][0]["name"] == "Name"
    c.admin("DELETE", f"{old}/web", {"kind": "DeleteOptions", "apiVersion": "v1"})


def test_views_and_questions_have_the_older_version_too(c):
    c.namespace("red")
    project = c.admin("GET", f"{OAPI}/projects/red")
    assert (project["kind"], project["apiVersion"]) == ("Project", "v1") and project["status"]["phase"] == "Active"
    listed = c.admin("GET", f"{OAPI}/projects")
    assert listed["kind"] == "ProjectList" and "red" in [p["metadata"]["name"] for p in listed["items"]]
    jane = c.user("jane")
    assert c.ask(jane, "GET", f"{OAPI}/users/~", want=200)["metadata"]["name"] == "jane"
    done = c.admin("POST", f"{OAPI}/namespaces/red/processedtemplates", template(), 201)
    assert (done["apiVersion"], done["objects"][0]["metadata"]["name"]) == ("v1", "v")
    c.admin("POST", f"{OAPI}/users", {"kind": "User", "apiVersion": "v1", "metadata": {"name": "u"}}, 201)
    c.admin("POST", f"{OAPI}/identities", {"kind": "Identity", "apiVersion": "v1", "providerName": "p", "providerUserName": "u",
                                          "metadata": {"name": "p:u"}}, 201)
    mapping = c.admin("POST", f"{OAPI}/useridentitymappings", {"kind": "UserIdentityMapping", "apiVersion": "v1",
                                                               "identity": {"name": "p:u"}, "user": {"name": "u"}}, 201)
    assert mapping["apiVersion"] == "v1"


def test_a_watch_and_protobuf_have_the_older_version(c):
    path = f"{OAPI}/groups"
    conn = http.client.HTTPSConnection("127.0.0.1", c.port, timeout=20, context=c.user("root", "system:masters"))
    conn.request("GET", path + "?watch=true&timeoutSeconds=10&resourceVersion=0")
    stream = conn.getresponse()
    c.admin("POST", path, {"kind": "Group", "apiVersion": "v1", "metadata": {"name": "g"}, "users": ["a"]}, 201)
    event = json.loads(stream.readline())
    conn.close()
    assert (event["type"], event["object"]["apiVersion"], event["object"]["kind"]) == ("ADDED", "v1", "Group")

    def ask(method, where, body=None, **headers):
        conn = http.client.HTTPSConnection("127.0.0.1", c.port, timeout=20, context=c.user("root", "system:masters"))
        conn.request(method, where, body, headers)
        r = conn.getresponse()
        return r.status, r.read()
    status, bytes_of = ask("GET", path + "/g", Accept=PROTO)
    assert status == 200 and bytes_of.startswith(b"k8s\0\n") and b"user.openshift.io" not in bytes_of[:24]
    status, _ = ask("PUT", path + "/g", bytes_of, **{"Content-Type": PROTO})
    assert status == 200
    status, _ = ask("PUT", "/apis/user.openshift.io/v1/groups/g", bytes_of, **{"Content-Type": PROTO})
    assert status in (400, 415), "another form's bytes"


def test_a_rollback_names_its_config_in_the_body(c):
    c.namespace("red")
    path = f"{OAPI}/namespaces/red/deploymentconfigrollbacks"
    body = {"kind": "DeploymentConfigRollback", "apiVersion": "v1", "name": "web", "spec": {
        "from": {"name": "web-1"}, "includeTemplate": True}}
    assert "cannot get deployment config" in c.admin("POST", path, body, 422)["message"]
    c.admin("POST", f"{OAPI}/namespaces/red/deploymentconfigs", config(), 201)
    message = c.admin("POST", path, body, 422)["message"]  # Whether the controllers have begun version 1 does not matter.
    assert "cannot rollback an undeployed config" in message or "no previous deployment exists" in message
    assert "name of the deployment config is missing" in c.admin("POST", path, {**body, "name": ""}, 422)["message"]
    c.admin("POST", path + "/web", body, 404)
    c.admin("GET", path, want=405)


def test_rights_are_those_of_the_group(c):
    """A rule for the core group alone gives nothing of OpenShift's kinds, and paths give no other right than each other."""
    c.namespace("red")
    c.role("red", "core", {"apiGroups": [""], "resources": ["*"], "verbs": ["*"]})
    c.role("red", "own", {"apiGroups": ["apps.openshift.io"], "resources": ["deploymentconfigs"], "verbs": ["get", "list", "create"]})
    c.bind("red", "core", "core", user="core", kind="Role")
    c.bind("red", "own", "own", user="own", kind="Role")
    core, own, nobody = c.user("core"), c.user("own"), c.user("nobody")
    path = f"{OAPI}/namespaces/red/deploymentconfigs"
    denied = c.ask(core, "POST", path, config(), want=403)
    assert 'cannot create resource "deploymentconfigs" in API group "apps.openshift.io"' in denied["message"]
    c.ask(own, "POST", path, config(), want=201)
    c.ask(own, "GET", path, want=200)
    c.ask(own, "DELETE", path + "/web", want=403)
    for where in (f"{OAPI}/users", f"{OAPI}/groups", f"{OAPI}/clusternetworks", f"{OAPI}/namespaces/red/templates",
                  "/api/v1/securitycontextconstraints"):
        for who in (core, own, nobody):
            c.ask(who, "GET", where, want=403)
    # Whether something exists is not told.
    for name in ("web", "nosuch"):
        c.ask(nobody, "GET", f"{path}/{name}", want=403)
    assert c.ask(None, "GET", f"{OAPI}/users/~")[0] in (401, 403)
    # Discovery is for all who are authenticated.
    c.ask(nobody, "GET", OAPI, want=200)


def test_constraints_are_at_the_core_path(c):
    path = "/api/v1/securitycontextconstraints"
    wait_for("the constraints", lambda: len(c.admin("GET", path)["items"]) >= 7)
    got = c.admin("GET", path + "/restricted")
    assert (got["kind"], got["apiVersion"]) == ("SecurityContextConstraints", "v1")
    assert got["metadata"]["uid"] == c.admin("GET", path.replace("/api/v1", "/apis/security.openshift.io/v1") + "/restricted")[
        "metadata"]["uid"]
    c.namespace("red")
    c.bind("red", "admin", "admin", user="alice")
    alice = c.user("alice")
    mine = {**got, "metadata": {"name": "mine"}, "users": ["alice"], "allowPrivilegedContainer": True}
    c.ask(alice, "POST", path, mine, want=403)
    c.ask(alice, "PATCH", path + "/restricted", {"allowPrivilegedContainer": True}, headers=MERGE, want=403)
    c.admin("GET", "/api/v1/namespaces/red/securitycontextconstraints", want=404)
    assert c.ask(alice, "GET", "/api/v1/namespaces/red/securitycontextconstraints/restricted")[0] in (403, 404)


RESTRICTIONS = "/apis/authorization.openshift.io/v1/namespaces/red/rolebindingrestrictions"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings"


def binding(name, *subjects):
    return {"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [
        {"kind": k, "name": n, **({"namespace": ns} if ns else {})} for k, n, ns in subjects]}


def restrict(c, name, **spec):
    return c.admin("POST", RESTRICTIONS, {"metadata": {"name": name}, "spec": spec}, 201)


@pytest.fixture
def red(c):
    """Ada administers red; joe has a label, kim is in a group with one."""
    c.namespace("red")
    c.bind("red", "ada", "admin", user="ada")
    c.admin("POST", "/apis/user.openshift.io/v1/users", {"metadata": {"name": "joe", "labels": {"team": "a"}}}, 201)
    c.admin("POST", "/apis/user.openshift.io/v1/groups", {"metadata": {"name": "g", "labels": {"team": "a"}}, "users": ["kim"]}, 201)
    ada = c.user("ada")
    wait_for("ada's right", lambda: c.ask(ada, "GET", BINDINGS)[0] == 200)
    return ada


CASES = [
    ({"userrestriction": {"users": ["joe"]}}, ("User", "joe", ""), ("User", "kim", "")),
    ({"userrestriction": {"groups": ["g"]}}, ("User", "kim", ""), ("User", "joe", "")),
    ({"userrestriction": {"labels": [{"matchLabels": {"team": "a"}}]}}, ("User", "joe", ""), ("User", "kim", "")),
    ({"grouprestriction": {"groups": ["g"]}}, ("Group", "g", ""), ("Group", "h", "")),
    ({"grouprestriction": {"labels": [{"matchLabels": {"team": "a"}}]}}, ("Group", "g", ""), ("Group", "system:authenticated", "")),
    ({"serviceaccountrestriction": {"serviceaccounts": [{"name": "bot"}]}}, ("ServiceAccount", "bot", "red"),
     ("ServiceAccount", "bot", "blue")),
    ({"serviceaccountrestriction": {"serviceaccounts": [{"name": "bot", "namespace": "blue"}]}}, ("ServiceAccount", "bot", "blue"),
     ("ServiceAccount", "bot", "red")),
    ({"serviceaccountrestriction": {"namespaces": ["blue"]}}, ("ServiceAccount", "x", "blue"), ("ServiceAccount", "x", "red")),
]


@pytest.mark.parametrize("spec,allowed,refused", CASES)
def test_bindings_name_only_subjects_that_a_restriction_allows(c, red, spec, allowed, refused):
    restrict(c, "r", **spec)
    c.ask(red, "POST", BINDINGS, binding("good", allowed), want=201)
    answer = c.ask(red, "POST", BINDINGS, binding("bad", refused), want=403)
    assert f'rolebindings to {refused[0]} "{refused[1]}" are not allowed in project "red"' in answer["message"]
    # A kind of subject that no restriction is about is not allowed either.
    other = ("Group", "system:authenticated", "") if refused[0] != "Group" else ("User", "joe", "")
    c.ask(red, "POST", BINDINGS, binding("bad", other), want=403)
    c.ask(red, "POST", BINDINGS, binding("bad", allowed, refused), want=403)
    # Several restrictions allow what one of them allows; without any, all is allowed.
    c.admin("DELETE", f"{RESTRICTIONS}/r")
    c.ask(red, "POST", BINDINGS, binding("free", refused), want=201)


def test_no_write_gets_around_a_restriction(c, red):
    c.ask(red, "POST", BINDINGS, binding("old", ("User", "eve", "")), want=201)
    restrict(c, "r", userrestriction={"users": ["joe"]})
    bad = binding("old", ("User", "eve", ""), ("User", "mallory", ""))
    c.ask(red, "PUT", f"{BINDINGS}/old", bad, want=403)
    c.ask(red, "PATCH", f"{BINDINGS}/old", {"subjects": bad["subjects"]}, headers=MERGE, want=403)
    c.ask(red, "PATCH", f"{BINDINGS}/old", [{"op": "add", "path": "/subjects/-", "value": {
        "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}}],
        headers={"Content-Type": "application/json-patch+json"}, want=403)
    c.ask(red, "PATCH", f"{BINDINGS}/new?fieldManager=m", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", **bad,
                                                         "metadata": {"name": "new"}}, headers=APPLY, want=403)
    c.ask(red, "POST", BINDINGS + "?dryRun=All", binding("dry", ("User", "mallory", "")), want=403)
    # What was there before stays, and may change otherwise.
    c.ask(red, "PATCH", f"{BINDINGS}/old", {"metadata": {"labels": {"a": "b"}}}, headers=MERGE, want=200)
    c.ask(red, "PUT", f"{BINDINGS}/old", binding("old", ("User", "eve", ""), ("User", "joe", "")), want=200)
    # A subject that left cannot come back.
    c.ask(red, "PUT", f"{BINDINGS}/old", binding("old", ("User", "joe", "")), want=200)
    c.ask(red, "PUT", f"{BINDINGS}/old", binding("old", ("User", "eve", "")), want=403)
    # The project's administrator reads restrictions, by both paths, and changes none.
    mine = {"metadata": {"name": "mine"}, "spec": {"userrestriction": {"users": ["mallory"]}}}
    for path in (RESTRICTIONS, "/oapi/v1/namespaces/red/rolebindingrestrictions"):
        c.ask(red, "GET", path, want=200)
        c.ask(red, "POST", path, mine, want=403)
        c.ask(red, "PUT", f"{path}/r", mine, want=403)
        c.ask(red, "PATCH", f"{path}/r", {"spec": None}, headers=MERGE, want=403)
        c.ask(red, "DELETE", f"{path}/r", want=403)
        c.ask(red, "DELETE", path, want=403)
    # Members of system:masters are exempt.
    c.admin("POST", BINDINGS, binding("root", ("User", "mallory", "")), 201)


def test_a_restriction_names_exactly_one_kind_of_subject(c, red):
    for spec, text in (({}, "must specify exactly one"), ({"userrestriction": {"users": ["a"]}, "grouprestriction": {"groups": ["g"]}},
                                                         "must specify exactly one"),
                       ({"userrestriction": {}}, "must name at least one subject"),
                       ({"grouprestriction": {"labels": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}}, "labels[0]"),
                       ({"serviceaccountrestriction": {"serviceaccounts": [{"namespace": "x"}]}}, "name")):
        answer = c.admin("POST", RESTRICTIONS, {"metadata": {"name": "r"}, "spec": spec}, 422)
        assert text in json.dumps(answer), answer
    restrict(c, "r", userrestriction={"users": ["joe", "kim"]})
    table = c.admin("GET", RESTRICTIONS, headers=TABLE)
    assert [row["cells"][:3] for row in table["rows"]] == [["r", "User", "joe, kim"]]
