# SPDX-License-Identifier: Apache-2.0
"""Roles and bindings in OpenShift's form: by none of their ways does somebody get more than by those of RBAC.  ada is the
administrator of red; sam may write roles and bindings of red in OpenShift's form, and reads pods there."""
import pytest

import escalations
from lab import wait_for
from people import APPLY, JSON_PATCH, MERGE, RED, People
from test_auth import RBAC
from test_project_member import refused

AUTH = "/apis/authorization.openshift.io/v1"
ROOTS = pytest.mark.parametrize("root", [AUTH, "/oapi/v1"])
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
BIG = ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"apiGroups": None, "resources": ["secrets"], "verbs": ["get"]},
       {"apiGroups": [], "resources": ["secrets"], "verbs": ["get"]}, {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
       {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "nonResourceURLs": ["/metrics"]},
       {**PODS, "resources": ["secrets"], "attributeRestrictions": {"kind": "IsPersonalSubjectAccessReview"}})


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("roles")))
    people.role("red", "writer", PODS, {"apiGroups": ["authorization.openshift.io"], "resources": ["roles", "rolebindings"],
                                        "verbs": ["*"]})
    people.bind("red", "sam", "writer", user="sam", kind="Role")
    people.role("red", "small", PODS)
    people.role("red", "big", escalations.EVERYTHING)
    people.sam = people.user("sam")
    wait_for("the rights of sam", lambda: people.ask(people.sam, "GET", f"{RED}/pods/own")[0] == 200)
    yield people
    people.stop()


def names(**given):
    return {"metadata": {"name": "x"}, **given}


def test_the_rights_are_of_use(c):
    """The control: what both may write in this form."""
    path = f"{AUTH}/namespaces/red"
    c.ask(c.sam, "POST", f"{path}/roles", names(rules=[PODS]), want=201)
    c.ask(c.sam, "POST", f"{path}/rolebindings", names(roleRef={"name": "small", "namespace": "red"}, userNames=["joe"]), want=201)
    c.ask(c.sam, "PATCH", f"{path}/rolebindings/x", {"userNames": ["joe", "eve"]}, headers=MERGE, want=200)
    for kind in ("roles", "rolebindings"):
        c.ask(c.sam, "DELETE", f"{path}/{kind}/x", want=200)
    c.ask(c.ada, "POST", f"{path}/rolebindings", names(roleRef={"name": "view"}, userNames=["joe"]), want=201)
    c.ask(c.ada, "DELETE", f"{path}/rolebindings/x", want=200)


def applied(kind, root, name, **body):
    return {"kind": kind, "apiVersion": "v1" if root == "/oapi/v1" else "authorization.openshift.io/v1", **body,
            "metadata": {"name": name}}


@ROOTS
def test_no_role_has_more_than_its_writer(c, root):
    path = f"{root}/namespaces/red/roles"
    before = c.admin("GET", f"{RBAC}/namespaces/red/roles/small")
    table = []
    for i, rule in enumerate(BIG):
        rules = [PODS, rule]
        table += [(f"create {i}", "POST", path, names(rules=rules)), (f"apply {i}", "PATCH", f"{path}/x?fieldManager=x",
                  applied("Role", root, "x", rules=rules), APPLY),
                  (f"update {i}", "PUT", f"{path}/small", {"metadata": {"name": "small"}, "rules": rules}),
                  (f"merge {i}", "PATCH", f"{path}/small", {"rules": rules}, MERGE),
                  (f"JSON {i}", "PATCH", f"{path}/small", [{"op": "add", "path": "/rules/-", "value": rule}], JSON_PATCH),
                  (f"apply to it {i}", "PATCH", f"{path}/small?fieldManager=x&force=true",
                   applied("Role", root, "small", rules=rules), APPLY),
                  (f"cluster {i}", "POST", f"{root}/clusterroles", names(rules=rules))]
    assert refused(c, c.sam, table) == []
    assert c.admin("GET", f"{RBAC}/namespaces/red/roles/small")["rules"] == before["rules"]
    assert c.admin("GET", f"{RBAC}/namespaces/red/roles", want=200)["items"]
    assert c.ask(c._admin, "GET", f"{RBAC}/namespaces/red/roles/x")[0] == 404


@ROOTS
def test_no_binding_gives_more_than_its_writer_has(c, root):
    path = f"{root}/namespaces/red/rolebindings"
    refs = [{"name": "cluster-admin"}, {"name": "admin"}, {"name": "edit", "namespace": ""}, {"name": "big", "namespace": "red"},
            {"name": "small", "namespace": "blue"}, {"name": "nosuch"}, {"kind": "Role", "name": "cluster-admin"}]
    subjects = [{"userNames": ["sam"]}, {"groupNames": ["system:authenticated"]}, {"userNames": ["system:serviceaccount:red:default"]},
                {"subjects": [{"kind": "SystemUser", "name": "sam"}]}, {"subjects": [{"kind": "ServiceAccount", "name": "default"}]}]
    table = []
    for ref in refs:
        for who in subjects:
            table.append((f"{ref} {who}", "POST", path, names(roleRef=ref, **who)))
        table += [(f"apply {ref}", "PATCH", f"{path}/x?fieldManager=x", applied("RoleBinding", root, "x", roleRef=ref, userNames=["sam"]),
                   APPLY), (f"cluster {ref}", "POST", f"{root}/clusterrolebindings", names(roleRef=ref, userNames=["sam"]))]
    assert refused(c, c.sam, table) == []
    big = [(f"ada {r}", "POST", path, names(roleRef={"name": r}, userNames=["ada"])) for r in ("cluster-admin", "sudoer",
                                                                                           "cluster-reader")]
    assert refused(c, c.ada, big) == []


@ROOTS
def test_bindings_made_by_others_are_not_widened_by_the_view(c, root):
    path, real = f"{root}/namespaces/red/rolebindings/audit", f"{RBAC}/namespaces/red/rolebindings"
    c.admin("POST", real, {**escalations.binding("cluster-reader", user="auditor"), "metadata": {"name": "audit"}}, 201)
    try:
        before = c.admin("GET", f"{real}/audit")
        got = c.admin("GET", path)
        table = [("names", "PUT", path, {**got, "userNames": ["auditor", "sam"]}),
                 ("groups", "PATCH", path, {"groupNames": ["all"]}, MERGE),
                 ("subjects", "PATCH", path, {"userNames": None, "groupNames": None, "subjects": [{"kind": "User", "name": "sam"}]},
                  MERGE),
                 ("JSON", "PATCH", path, [{"op": "add", "path": "/userNames/-", "value": "sam"}], JSON_PATCH),
                 ("apply", "PATCH", f"{path}?fieldManager=x&force=true",
                  applied("RoleBinding", root, "audit", roleRef={"name": "cluster-reader"}, userNames=["sam"]), APPLY),
                 ("another role", "PATCH", path, {"roleRef": {"name": "cluster-admin"}}, MERGE),
                 ("a local role", "PATCH", path, {"roleRef": {"namespace": "red"}}, MERGE)]
        for who in (c.sam, c.ada):
            assert refused(c, who, table) == []
        assert c.admin("GET", f"{real}/audit") == before
        # A change of neither role nor subjects gives nothing.
        c.ask(c.sam, "PATCH", path, {"metadata": {"labels": {"seen": "yes"}}}, headers=MERGE, want=200)
    finally:
        c.admin("DELETE", f"{real}/audit")


@ROOTS
def test_reviews_tell_nothing_of_other_projects(c, root):
    """A question about a project of others is refused alike, whether the project exists or not."""
    ask = {"verb": "get", "resource": "pods"}
    kinds = ("localresourceaccessreviews", "localsubjectaccessreviews", "subjectrulesreviews")
    for kind in kinds:
        body = {"spec": {"user": "joe"}} if kind == "subjectrulesreviews" else {**ask, "user": "joe"}
        answers = [c.ask(c.ada, "POST", f"{root}/namespaces/{ns}/{kind}", body, want=403)["message"].replace(ns, "NS")
                   for ns in ("blue", "nosuch")]
        assert answers[0] == answers[1]
        assert refused(c, c.ed, [(kind, "POST", f"{root}/namespaces/red/{kind}", body)]) == []
    for ns in ("blue", "nosuch"):
        answer = c.ask(c.ada, "POST", f"{root}/subjectaccessreviews", {**ask, "namespace": ns}, want=201)
        assert answer["allowed"] is False and not answer.get("reason")
    assert refused(c, c.ada, [(k, "POST", f"{root}/{k}", {**ask, "namespace": "red", "user": "joe"}) for k in
                              ("subjectaccessreviews", "resourceaccessreviews")]) == []
