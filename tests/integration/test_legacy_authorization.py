# SPDX-License-Identifier: Apache-2.0
"""authorization.openshift.io: reviews, roles and bindings as views of RBAC, in OpenShift's form and at /oapi/v1."""
import http.client
import json
import signal

import pytest

from lab import wait_for
from test_auth import RBAC, Cluster, pods

AUTH = "/apis/authorization.openshift.io/v1"
RED = f"{AUTH}/namespaces/red"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    made = Cluster(str(tmp_path_factory.mktemp("authorization")))
    for name in ("red", "blue"):
        made.namespace(name)
    made.role("red", "reader", pods("get", "list"))
    made.bind("red", "readers", "reader", group="dev", kind="Role")
    made.bind("red", "ada", "admin", user="ada")
    made.ada, made.jane = made.user("ada"), made.user("jane", "dev")
    wait_for("the rights of ada", lambda: made.ask(made.ada, "GET", "/api/v1/namespaces/red/secrets")[0] == 200)
    yield made
    made.stop(signal.SIGKILL)


def question(verb="get", resource="pods", **more):
    return {"verb": verb, "resource": resource, **more}


# ---- reviews ----

@pytest.mark.parametrize("root,version", [(AUTH, "authorization.openshift.io/v1"), ("/oapi/v1", "v1")])
def test_everybody_asks_about_oneself(c, root, version):
    def mine(where="", **more):
        return c.ask(c.jane, "POST", f"{root}/subjectaccessreviews" if not where else
                     f"{root}{where}/localsubjectaccessreviews", question(**more), want=201)
    answer = mine(namespace="red")
    assert (answer["kind"], answer["apiVersion"], answer["namespace"]) == ("SubjectAccessReviewResponse", version, "red")
    assert answer["allowed"] is True and 'RoleBinding "readers/red"' in answer["reason"]
    assert mine("/namespaces/red")["allowed"] is True
    assert mine("/namespaces/red", verb="delete")["allowed"] is False
    assert mine("/namespaces/blue")["allowed"] is mine("/namespaces/nosuch")["allowed"] is False
    assert mine(namespace="blue")["allowed"] is False
    assert mine(namespace="red", resource="pods/log")["allowed"] is False
    assert mine(isNonResourceURL=True, path="/apis", resource="")["allowed"] is True
    assert mine(isNonResourceURL=True, path="/metrics", resource="")["allowed"] is False
    # A resource without its group, as clients older than the groups name it.
    assert mine(verb="list", resource="projects")["allowed"] is True


def test_asking_about_others_needs_the_right(c):
    about_joe = question(namespace="red", user="joe")
    for body in (about_joe, question(namespace="red", groups=["dev"])):
        for path in (f"{AUTH}/subjectaccessreviews", f"{RED}/localsubjectaccessreviews"):
            answer = c.ask(c.jane, "POST", path, body, want=403)
            assert 'User "jane" cannot create resource' in answer["message"]
    assert c.admin("POST", f"{AUTH}/subjectaccessreviews", question(namespace="red", groups=["dev"]), 201)["allowed"]
    local = f"{RED}/localsubjectaccessreviews"
    assert c.ask(c.ada, "POST", local, question(groups=["dev"]), want=201)["allowed"] is True
    assert c.ask(c.ada, "POST", local, about_joe, want=201)["allowed"] is False
    answer = c.ask(c.ada, "POST", local, question(namespace="blue", groups=["dev"]), want=422)
    assert "namespace must be: red" in answer["message"]
    c.ask(c.ada, "POST", f"{AUTH}/namespaces/blue/localsubjectaccessreviews", about_joe, want=403)
    c.ask(c.ada, "POST", f"{AUTH}/subjectaccessreviews", about_joe, want=403)
    for body in ({"resource": "pods"}, {"verb": "get"}, {"verb": "get", "isNonResourceURL": True}):
        assert "Required value" in c.ask(c.jane, "POST", f"{AUTH}/subjectaccessreviews", body, want=422)["message"]
    c.ask(c.jane, "GET", f"{AUTH}/subjectaccessreviews", want=403)
    c.admin("GET", f"{AUTH}/subjectaccessreviews", want=405)


def test_scopes_limit_the_answer(c):
    path = f"{AUTH}/subjectaccessreviews"

    def allowed(who=c.jane, headers=None, **more):
        return c.ask(who, "POST", path, question(namespace="red", **more), want=201, headers=headers)["allowed"]
    assert allowed(scopes=["user:info"]) is False
    assert allowed(scopes=["user:full"]) is allowed(scopes=[]) is allowed(scopes=None) is True
    assert c.admin("POST", path, question(namespace="red", user="x", groups=["dev"], scopes=["user:info"]), 201)["allowed"] is False
    # A token's own scopes count for null, and not for a list.
    scoped = {"Impersonate-User": "jane", "Impersonate-Group": "dev",
              "Impersonate-Extra-scopes.authorization.openshift.io": "user:check-access"}
    assert allowed(c._admin, scoped) is False
    assert allowed(c._admin, scoped, scopes=[]) is True
    c.ask(c._admin, "POST", path, question(namespace="red", user="joe"), headers=scoped, want=403)


def test_who_can(c):
    answer = c.admin("POST", f"{AUTH}/resourceaccessreviews", question(namespace="red"), 201)
    assert (answer["kind"], answer["namespace"], answer["evalutionError"]) == ("ResourceAccessReviewResponse", "red", "")
    assert "ada" in answer["users"] and {"dev", "system:masters"} <= set(answer["groups"])
    assert answer["users"] == sorted(set(answer["users"]))
    local = c.ask(c.ada, "POST", f"{RED}/localresourceaccessreviews", question("delete"), want=201)
    assert "ada" in local["users"] and "dev" not in local["groups"]
    blue = c.admin("POST", f"{AUTH}/resourceaccessreviews", question(namespace="blue"), 201)
    assert "ada" not in blue["users"] and "dev" not in blue["groups"]
    paths = c.admin("POST", f"{AUTH}/resourceaccessreviews", {"verb": "get", "isNonResourceURL": True, "path": "/healthz"}, 201)
    assert "system:unauthenticated" in paths["groups"]
    # Service accounts come by the name of their user.
    c.admin("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings", {
        "metadata": {"name": "robot"}, "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "blue"}],
        "roleRef": {"kind": "Role", "name": "reader"}}, 201)
    assert "system:serviceaccount:blue:robot" in c.admin("POST", f"{AUTH}/resourceaccessreviews", question(namespace="red"),
                                                         201)["users"]
    for who in (c.jane, c.ada):
        c.ask(who, "POST", f"{AUTH}/resourceaccessreviews", question(namespace="red"), want=403)
    for ns in ("blue", "nosuch"):
        c.ask(c.ada, "POST", f"{AUTH}/namespaces/{ns}/localresourceaccessreviews", question(), want=403)
    c.ask(c.jane, "POST", f"{RED}/localresourceaccessreviews", question(), want=403)


def test_rules(c):
    own = c.ask(c.jane, "POST", f"{RED}/selfsubjectrulesreviews", {"spec": {}}, want=201)
    reader = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
    assert own["kind"] == "SelfSubjectRulesReview" and reader in own["status"]["rules"]
    blue = c.ask(c.jane, "POST", f"{AUTH}/namespaces/blue/selfsubjectrulesreviews", {"spec": {}}, want=201)
    assert reader not in blue["status"]["rules"]
    scoped = c.ask(c.jane, "POST", f"{RED}/selfsubjectrulesreviews", {"spec": {"scopes": ["user:info"]}}, want=201)
    assert reader not in scoped["status"]["rules"]
    assert {"verbs": ["get"], "apiGroups": ["user.openshift.io"], "resources": ["users"],
            "resourceNames": ["~"]} in scoped["status"]["rules"]
    about = c.ask(c.ada, "POST", f"{RED}/subjectrulesreviews", {"spec": {"groups": ["dev"]}}, want=201)
    assert reader in about["status"]["rules"]
    assert "spec.user" in c.ask(c.ada, "POST", f"{RED}/subjectrulesreviews", {"spec": {}}, want=422)["message"]
    c.ask(c.jane, "POST", f"{RED}/subjectrulesreviews", {"spec": {"user": "ada"}}, want=403)
    everything = c.admin("POST", "/oapi/v1/namespaces/red/selfsubjectrulesreviews", {"spec": {}}, 201)["status"]["rules"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in everything


# ---- roles and bindings ----

def rbac(kind, name, ns="red"):
    return f"{RBAC}/namespaces/{ns}/{kind}/{name}" if ns else f"{RBAC}/{kind}/{name}"


def binding(name, role="reader", ns="red", **subjects):
    return {"kind": "RoleBinding", "metadata": {"name": name}, "roleRef": {"name": role, **({"namespace": ns} if ns else {})},
            **subjects}


def test_a_role_is_one_object_in_both_forms(c):
    rule = {"verbs": ["get"], "apiGroups": None, "resources": ["configmaps"]}
    made = c.admin("POST", f"{RED}/roles", {"kind": "Role", "metadata": {"name": "r"}, "rules": [rule]}, 201)
    assert (made["kind"], made["apiVersion"]) == ("Role", "authorization.openshift.io/v1")
    assert made["rules"] == [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]
    same = c.admin("GET", rbac("roles", "r"))
    assert same["apiVersion"] == "rbac.authorization.k8s.io/v1" and same["metadata"]["uid"] == made["metadata"]["uid"]
    assert same["rules"] == made["rules"]
    old = c.admin("GET", "/oapi/v1/namespaces/red/roles/r")
    assert old["apiVersion"] == "v1" and old["metadata"]["resourceVersion"] == same["metadata"]["resourceVersion"]
    c.admin("PATCH", f"{RED}/roles/r", {"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]},
            headers=MERGE)
    assert c.admin("GET", rbac("roles", "r"))["rules"][0]["verbs"] == ["list"]
    listed = c.admin("GET", f"{RED}/roles")
    assert listed["kind"] == "RoleList" and {"r", "reader"} <= {x["metadata"]["name"] for x in listed["items"]}
    c.admin("DELETE", f"{RED}/roles/r")
    c.admin("GET", rbac("roles", "r"), want=404)


def test_rules_of_both_sorts_are_two_in_rbac_and_errors_name_the_view(c):
    both = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"], "nonResourceURLs": ["/metrics"]}
    made = c.admin("POST", f"{AUTH}/clusterroles", {"kind": "ClusterRole", "metadata": {"name": "both"}, "rules": [both]}, 201)
    assert made["rules"] == [{"verbs": ["get"], "apiGroups": None, "resources": [], "nonResourceURLs": ["/metrics"]},
                             {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}]
    assert c.admin("GET", rbac("clusterroles", "both", None))["rules"] == [
        {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}]
    wrong = {"kind": "ClusterRole", "metadata": {"name": "w"}, "rules": [both, {"verbs": [], "resources": ["x"]}]}
    causes = c.admin("POST", f"{AUTH}/clusterroles", wrong, 422)["details"]["causes"]
    assert [x["field"] for x in causes] == ["rules[1].verbs"]
    limited = {"kind": "Role", "metadata": {"name": "w"}, "rules": [{**both, "nonResourceURLs": [], "attributeRestrictions": {
        "kind": "IsPersonalSubjectAccessReview", "apiVersion": "v1"}}]}
    causes = c.admin("POST", f"{RED}/roles", limited, 422)["details"]["causes"]
    assert [x["field"] for x in causes] == ["rules[0].attributeRestrictions"]
    # Protection from the controller of default roles is the opposite annotation.
    c.admin("PATCH", f"{AUTH}/clusterroles/both", {"metadata": {"annotations": {"openshift.io/reconcile-protect": "true"}}},
            headers=MERGE)
    notes = c.admin("GET", rbac("clusterroles", "both", None))["metadata"]["annotations"]
    assert notes == {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    # What gathers rules keeps doing so.
    admin = c.admin("GET", f"{AUTH}/clusterroles/admin")
    assert admin["aggregationRule"] == c.admin("GET", rbac("clusterroles", "admin", None))["aggregationRule"]


def test_subjects_of_bindings(c):
    path = f"{RED}/rolebindings"
    made = c.admin("POST", path, binding("b", userNames=["joe", "system:serviceaccount:blue:robot", "system:admin"],
                                         groupNames=["dev", "system:authenticated"],
                                         subjects=[{"kind": "User", "name": "not-me"}]), 201)
    assert made["roleRef"] == {"name": "reader", "namespace": "red"}
    assert made["subjects"] == [
        {"kind": "User", "name": "joe"}, {"kind": "ServiceAccount", "namespace": "blue", "name": "robot"},
        {"kind": "SystemUser", "name": "system:admin"}, {"kind": "Group", "name": "dev"},
        {"kind": "SystemGroup", "name": "system:authenticated"}]
    api = "rbac.authorization.k8s.io"
    assert c.admin("GET", rbac("rolebindings", "b"))["subjects"] == [
        {"kind": "User", "apiGroup": api, "name": "joe"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "blue"},
        {"kind": "User", "apiGroup": api, "name": "system:admin"}, {"kind": "Group", "apiGroup": api, "name": "dev"},
        {"kind": "Group", "apiGroup": api, "name": "system:authenticated"}]
    # Without names the subjects count; an account without namespace is of the binding's.
    got = c.admin("PUT", f"{path}/b", {**made, "userNames": None, "groupNames": None, "subjects": [
        {"kind": "ServiceAccount", "name": "here"}, {"kind": "SystemGroup", "name": "system:nodes"}]})
    assert (got["userNames"], got["groupNames"]) == (["system:serviceaccount:red:here"], ["system:nodes"])
    got = c.admin("PUT", f"{path}/b", {**got, "userNames": [], "groupNames": None})
    assert (got["userNames"], got["groupNames"], got["subjects"]) == ([], [], [])
    # A client that sends back what it got changes nothing, also when it knows the lists of names only.
    for body in (got, {k: v for k, v in got.items() if k != "subjects"}):
        assert c.admin("PUT", f"{path}/b", body)["metadata"]["resourceVersion"] == got["metadata"]["resourceVersion"]
    c.admin("POST", path, binding("own", subjects=[{"kind": "ServiceAccount", "name": "here"}]), 201)
    account = c.admin("GET", f"{path}/own")
    assert account["userNames"] == ["system:serviceaccount:red:here"] and account["subjects"][0]["namespace"] == "red"
    assert c.admin("PUT", f"{path}/own", account) == account
    c.admin("DELETE", f"{path}/own")
    # The role cannot change, nor be another project's.
    for ref in ({"name": "view"}, {"name": "other", "namespace": "red"}):
        assert "cannot change roleRef" in c.admin("PUT", f"{path}/b", {**got, "roleRef": ref}, 422)["message"]
    c.admin("DELETE", f"{path}/b")
    causes = c.admin("POST", path, binding("x", ns="blue", userNames=["joe"]), 422)["details"]["causes"]
    assert "roleRef.namespace" in [x["field"] for x in causes]
    for names, field in (({"userNames": ["joe", ""]}, "userNames[1]"), ({"userNames": ["a"], "groupNames": [""]}, "groupNames[0]"),
                         ({"subjects": [{"kind": "Robot", "name": "x"}]}, "subjects[0].kind")):
        causes = c.admin("POST", path, binding("x", **names), 422)["details"]["causes"]
        assert [x["field"] for x in causes] == [field], causes
    c.admin("POST", f"{AUTH}/clusterrolebindings", {"metadata": {"name": "x"}, "roleRef": {"name": "view", "namespace": "red"}}, 422)


def test_bindings_decide_and_are_watched_and_printed(c):
    conn = http.client.HTTPSConnection("127.0.0.1", c.port, timeout=20, context=c.user("root", "system:masters"))
    version = c.admin("GET", f"{RED}/rolebindings")["metadata"]["resourceVersion"]
    conn.request("GET", f"{RED}/rolebindings?watch=true&timeoutSeconds=10&resourceVersion={version}")
    stream = conn.getresponse()
    joe = c.user("joe")
    assert c.ask(joe, "GET", "/api/v1/namespaces/red/pods")[0] == 403
    c.ask(c.ada, "POST", f"{RED}/rolebindings", binding("w", userNames=["joe"]), want=201)
    wait_for("joe's right", lambda: c.ask(joe, "GET", "/api/v1/namespaces/red/pods")[0] == 200)
    event = json.loads(stream.readline())
    conn.close()
    assert event["type"] == "ADDED" and event["object"]["userNames"] == ["joe"]
    assert event["object"]["apiVersion"] == "authorization.openshift.io/v1"
    table = c.admin("GET", f"{RED}/rolebindings/w", headers=TABLE)
    assert [x["name"] for x in table["columnDefinitions"]][:5] == ["Name", "Role", "Users", "Groups", "Service Accounts"]
    assert table["rows"][0]["cells"][:5] == ["w", "red/reader", "joe", "", ""]
    applied = c.admin("PATCH", f"{RED}/rolebindings/w?fieldManager=me&force=true", {
        "kind": "RoleBinding", "apiVersion": "authorization.openshift.io/v1", **binding("w", userNames=["eve"])}, headers=APPLY)
    assert applied["userNames"] == ["eve"]
    assert [x["name"] for x in c.admin("GET", rbac("rolebindings", "w"))["subjects"]] == ["eve"]
    c.ask(c.ada, "DELETE", f"{RED}/rolebindings/w", want=200)


def test_restrictions_count_in_the_view(c):
    c.admin("POST", f"{AUTH}/namespaces/blue/rolebindingrestrictions", {
        "metadata": {"name": "only"}, "spec": {"userrestriction": {"users": ["good"]}}}, 201)
    c.bind("blue", "ada", "admin", user="good")
    good = c.user("good")
    wait_for("the rights of good", lambda: c.ask(good, "GET", "/api/v1/namespaces/blue/secrets")[0] == 200)
    path = f"{AUTH}/namespaces/blue/rolebindings"
    for subjects in ({"userNames": ["mallory"]}, {"groupNames": ["all"]}, {"userNames": ["system:serviceaccount:blue:x"]},
                     {"subjects": [{"kind": "SystemUser", "name": "mallory"}]}):
        answer = c.ask(good, "POST", path, binding("m", "view", None, **subjects), want=403)
        assert "are not allowed in project \"blue\"" in answer["message"] and "authorization.openshift.io" in answer["message"]
    c.ask(good, "POST", path, binding("m", "view", None, userNames=["good"]), want=201)
    c.ask(good, "PATCH", f"{path}/m", {"userNames": ["good", "mallory"]}, headers=MERGE, want=403)


# ---- policies ----

def test_policies_have_the_roles_and_bindings(c):
    policy = c.ask(c.ada, "GET", f"{RED}/policies/default", want=200)
    assert (policy["kind"], policy["metadata"]["name"], policy["metadata"]["namespace"]) == ("Policy", "default", "red")
    roles = {x["name"]: x["role"] for x in policy["roles"]}
    assert roles["reader"]["rules"] == [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]
    assert roles["reader"]["kind"] == "Role" and "managedFields" not in roles["reader"]["metadata"]
    local, cluster = [c.ask(c.ada, "GET", f"{RED}/policybindings/{name}", want=200) for name in ("red:default", ":default")]
    assert local["policyRef"] == {"namespace": "red", "name": "default"} and cluster["policyRef"] == {"name": "default"}
    of_local, of_cluster = [{x["name"]: x["roleBinding"] for x in o["roleBindings"]} for o in (local, cluster)]
    assert of_local["readers"]["groupNames"] == ["dev"] and "readers" not in of_cluster
    assert of_cluster["ada"]["userNames"] == ["ada"] and "ada" not in of_local
    listed = c.admin("GET", "/oapi/v1/policybindings")
    assert (listed["kind"], listed["apiVersion"]) == ("PolicyBindingList", "v1")
    assert {("red", "red:default"), ("red", ":default"), ("blue", ":default")} <= {
        (x["metadata"]["namespace"], x["metadata"]["name"]) for x in listed["items"]}
    named = c.admin("GET", f"{AUTH}/policies?fieldSelector=metadata.namespace=red")
    assert [x["metadata"]["namespace"] for x in named["items"]] == ["red"]
    everything = c.admin("GET", f"{AUTH}/clusterpolicies/default")
    assert {"admin", "edit", "view"} <= {x["name"] for x in everything["roles"]}
    bindings = c.admin("GET", f"{AUTH}/clusterpolicybindings")["items"]
    assert [x["metadata"]["name"] for x in bindings] == [":default"]
    assert "cluster-admins" in [x["name"] for x in bindings[0]["roleBindings"]]
    rows = c.admin("GET", f"{RED}/policies", headers=TABLE)["rows"]
    assert rows[0]["cells"][0] == "default" and rows[0]["cells"][1] >= 1
    for path in (f"{RED}/policies/other", f"{RED}/policybindings/blue:default", f"{AUTH}/namespaces/nosuch/policies/default"):
        c.admin("GET", path, want=404)
    for who in (c.ada, c.jane):
        c.ask(who, "GET", f"{AUTH}/namespaces/blue/policies", want=403)
        c.ask(who, "GET", f"{AUTH}/clusterpolicies", want=403)
    c.ask(c.jane, "GET", f"{RED}/policies/default", want=403)


def test_policies_are_not_written(c):
    for method, path, instead in (("PUT", f"{RED}/policies/default", "roles"), ("POST", f"{RED}/policies", "roles"),
                                  ("PATCH", f"{RED}/policybindings/:default", "rolebindings"),
                                  ("DELETE", f"{AUTH}/clusterpolicies/default", "clusterroles"),
                                  ("POST", "/oapi/v1/clusterpolicybindings", "clusterrolebindings")):
        answer = c.admin(method, path, {"metadata": {"name": "default"}}, 405)
        assert answer["message"].endswith(f"cannot be written; write {instead} instead"), answer
    # What a cluster administrator had to create before the first binding to a local role.
    body = {"kind": "PolicyBinding", "apiVersion": "v1", "metadata": {"name": "red:default", "namespace": "red"},
            "policyRef": {"namespace": "red", "name": "default"}, "roleBindings": []}
    made = c.admin("POST", "/oapi/v1/namespaces/red/policybindings", body, 201)
    assert made == c.admin("GET", "/oapi/v1/namespaces/red/policybindings/red:default")
    for wrong, field in (({"roleBindings": [{"name": "x"}]}, "roleBindings"), ({"metadata": {"name": "blue:default"}}, "metadata.name"),
                         ({"metadata": {}}, "metadata.name"), ({"roleBindings": "x"}, "roleBindings")):
        causes = c.admin("POST", f"{RED}/policybindings", {**body, "apiVersion": "authorization.openshift.io/v1", **wrong},
                         422)["details"]["causes"]
        assert [x["field"] for x in causes] == [field]
    c.ask(c.ada, "POST", "/oapi/v1/namespaces/red/policybindings", body, want=403)
