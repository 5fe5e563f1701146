# SPDX-License-Identifier: Apache-2.0
"""authorization.openshift.io: reviews by the decisions of RBAC, in OpenShift's form and at /oapi/v1."""
import signal

import pytest

from lab import wait_for
from test_auth import Cluster, pods

AUTH = "/apis/authorization.openshift.io/v1"
RED = f"{AUTH}/namespaces/red"


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
