# SPDX-License-Identifier: Apache-2.0
"""Requests for projects (docs/projects.md): who may, what is made, and what a failure leaves behind."""
import concurrent.futures
import json
import signal

import pytest

from lab import wait_for
from test_auth import RBAC, Cluster

API = "/apis/project.openshift.io/v1"
REQUESTS = f"{API}/projectrequests"
DEFAULT_REFUSAL = "You may not request a new project via this API."
PROJECT = {"kind": "Project", "apiVersion": "project.openshift.io/v1",
           "metadata": {"name": "${PROJECT_NAME}", "labels": {"tier": "lab"},
                        "annotations": {"openshift.io/requester": "${PROJECT_REQUESTING_USER}"}}}
ADMIN = {"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
         "metadata": {"name": "owner", "namespace": "${PROJECT_NAME}"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "User", "name": "${PROJECT_ADMIN_USER}"}]}


@pytest.fixture
def start(tmp_path):
    made = []

    def begin(**extra):
        c = Cluster(str(tmp_path), {"projectConfig": extra} if extra else None)
        made.append(c)
        wait_for("the default bindings", lambda: c.ask(c.user("root", "system:masters"), "GET",
                                                       f"{RBAC}/clusterrolebindings/self-provisioners")[0] == 200)
        c.jane = c.user("jane", "system:authenticated:oauth")
        return c
    yield begin
    for c in made:
        c.stop(signal.SIGKILL)


def request(c, who, name, want=None, **more):
    return c.ask(who, "POST", REQUESTS, {"metadata": {"name": name}, **more}, want=want)


def template(c, *objects, **more):
    return c.ask(c.user("root", "system:masters"), "POST", "/apis/template.openshift.io/v1/namespaces/default/templates",
                 {"metadata": {"name": "project"}, "objects": list(objects),
                  "parameters": [{"name": f"PROJECT_{p}"} for p in ("NAME", "ADMIN_USER", "REQUESTING_USER")], **more}, want=201)


def test_a_user_requests_a_project_and_administers_it_at_once(start):
    c = start()
    probe = c.ask(c.jane, "GET", REQUESTS, want=200)
    assert (probe["kind"], probe["status"]) == ("Status", "Success")
    made = request(c, c.jane, "green", 201, displayName="Green \"team\"", description="${PROJECT_NAME}")
    assert made["kind"] == "Project" and made["apiVersion"] == "project.openshift.io/v1"
    assert made["metadata"]["name"] == "green" and made["status"]["phase"] == "Active"
    notes = made["metadata"]["annotations"]
    assert notes["openshift.io/display-name"] == "Green \"team\"" and notes["openshift.io/requester"] == "jane"
    assert notes["openshift.io/description"] == "${PROJECT_NAME}"  # A value is not searched for parameters again.
    assert {"openshift.io/sa.scc.uid-range", "openshift.io/sa.scc.mcs"} <= notes.keys()
    binding = c.ask(c.jane, "GET", f"{RBAC}/namespaces/green/rolebindings/admin", want=200)
    assert binding["roleRef"]["name"] == "admin" and [s["name"] for s in binding["subjects"]] == ["jane"]
    assert binding["metadata"]["uid"] and binding["metadata"]["creationTimestamp"]
    assert [p["metadata"]["name"] for p in c.ask(c.jane, "GET", f"{API}/projects", want=200)["items"]] == ["green"]
    # It is jane's, and nobody else's.
    other = c.user("other", "system:authenticated:oauth")
    assert c.ask(other, "GET", f"{API}/projects/green")[0] == 403
    status, answer = request(c, other, "green")
    assert status == 409 and answer["message"] == 'projects.project.openshift.io "green" already exists'
    for name in ("builder", "default", "deployer"):
        wait_for(f"the account {name}", lambda name=name: c.ask(
            c.jane, "GET", f"/api/v1/namespaces/green/serviceaccounts/{name}")[0] == 200)
    for i in range(50):  # The first request after the answer is never refused.
        request(c, c.jane, f"many-{i}", 201)
        c.ask(c.jane, "POST", f"/api/v1/namespaces/many-{i}/configmaps", {"metadata": {"name": "a"}}, want=201)


def test_a_dry_run_and_the_older_path(start):
    c = start()
    dry = c.ask(c.jane, "POST", f"{REQUESTS}?dryRun=All", {"metadata": {"name": "green"}}, want=201)
    assert dry["metadata"]["name"] == "green" and c.ask(c.jane, "GET", f"{API}/projects/green")[0] == 403
    made = c.ask(c.jane, "POST", "/oapi/v1/projectrequests", {"kind": "ProjectRequest", "apiVersion": "v1",
                                                             "metadata": {"name": "green"}}, want=201)
    assert (made["kind"], made["apiVersion"]) == ("Project", "v1")
    assert c.ask(c.jane, "POST", f"{REQUESTS}?dryRun=All", {"metadata": {"name": "green"}})[0] == 409


def test_one_of_twenty_racing_requests_wins(start):
    c = start()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        users = [c.user(f"u{i}", "system:authenticated:oauth") for i in range(20)]
        codes = list(pool.map(lambda u: request(c, u, "green")[0], users))
    assert sorted(codes) == [201] + [409] * 19
    winner = f"u{codes.index(201)}"
    found = c.admin("GET", f"{RBAC}/namespaces/green/rolebindings/admin")
    assert [s["name"] for s in found["subjects"]] == [winner]
    assert c.admin("GET", "/api/v1/namespaces/green")["metadata"]["annotations"]["openshift.io/requester"] == winner


@pytest.mark.parametrize("name,code,text", [
    ("kube", 403, 'cannot request a project with the name "kube"'),
    ("openshift", 403, 'cannot request a project with the name "openshift"'),
    ("kube-x", 403, 'cannot request a project starting with "kube-"'),
    ("openshift-x", 403, 'cannot request a project starting with "openshift-"'),
    ("kubernetes-x", 403, 'cannot request a project starting with "kubernetes-"'),
    ("a", 422, "must be at least 2 characters long"), ("Green", 422, "RFC 1123 label"), ("a" * 64, 422, "63 characters"),
    ("default", 409, "already exists")])
def test_names_that_are_refused(shared, name, code, text):
    status, answer = request(shared, shared.jane, name)
    assert status == code and text in answer["message"], answer


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    c = Cluster(str(tmp_path_factory.mktemp("projects")))
    wait_for("the default bindings", lambda: c.ask(c.user("root", "system:masters"), "GET",
                                                   f"{RBAC}/clusterrolebindings/self-provisioners")[0] == 200)
    c.jane = c.user("jane", "system:authenticated:oauth")
    yield c
    c.stop(signal.SIGKILL)


def test_texts_are_of_one_line_and_labels_are_not_taken_over(shared):
    status, answer = request(shared, shared.jane, "lines", displayName="a\nb")
    assert status == 422 and "displayName" in answer["message"] and "may not contain a new line or tab" in answer["message"]
    made = shared.ask(shared.jane, "POST", REQUESTS, {"metadata": {"name": "labels", "labels": {
        "pod-security.kubernetes.io/enforce": "privileged"}, "annotations": {"openshift.io/sa.scc.uid-range": "0/1"}}}, want=201)
    assert "pod-security.kubernetes.io/enforce" not in made["metadata"]["labels"]
    assert made["metadata"]["annotations"]["openshift.io/sa.scc.uid-range"] != "0/1"
    for path, name in ((f"{API}/projects", "a"), (f"{API}/projects", "ab")):
        body = {"metadata": {"name": name, "annotations": {"openshift.io/display-name": "a\tb"}}}
        assert shared.ask(shared.user("root", "system:masters"), "POST", path, body)[0] == 422


@pytest.mark.parametrize("config,text", [({}, DEFAULT_REFUSAL), ({"projectRequestMessage": "Write to <ops>."}, "Write to <ops>.")])
def test_a_user_who_may_not_request_is_told_where_to_ask(start, config, text):
    c = start(**config)
    for who in (c.user("plain"), c.token("default", "default")):
        for method, body in (("GET", None), ("POST", {"metadata": {"name": "green"}})):
            status, answer = c.ask(who, method, REQUESTS, body)
            assert (status, answer["message"]) == (403, text), answer
            assert answer["details"].get("causes") == ([{"message": text}] if config else None), answer
    assert c.ask(None, "GET", REQUESTS)[0] in (401, 403)
    assert c.ask(c.user("root", "system:masters"), "GET", "/api/v1/namespaces/green")[0] == 404


def test_the_projects_of_a_template_have_all_its_objects(start):
    c = start(projectRequestTemplate="default/project")
    status, answer = request(c, c.jane, "green")
    assert status == 500 and "there is no Template default/project" in answer["message"]
    quota = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    policy = {"kind": "NetworkPolicy", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "deny"},
              "spec": {"podSelector": {}}}
    older = {"kind": "RoleBinding", "apiVersion": "v1", "metadata": {"name": "view", "namespace": "${PROJECT_NAME}"},
             "roleRef": {"name": "view"}, "userNames": ["joe"], "subjects": [{"kind": "User", "name": "joe"}]}
    template(c, PROJECT, ADMIN, quota, policy, older)
    made = request(c, c.jane, "green", 201)
    assert made["metadata"]["labels"]["tier"] == "lab"
    at = "/namespaces/green"
    assert c.ask(c.jane, "GET", f"/api/v1{at}/resourcequotas/q", want=200)["status"]["hard"] == {"pods": "1"}
    assert c.ask(c.jane, "GET", f"/apis/networking.k8s.io/v1{at}/networkpolicies/deny", want=200)["spec"]["podSelector"] == {}
    older = c.ask(c.jane, "GET", f"{RBAC}{at}/rolebindings/view", want=200)
    assert older["roleRef"]["name"] == "view" and [x["name"] for x in older["subjects"]] == ["joe"] and "userNames" not in older
    bound = c.ask(c.jane, "GET", f"{RBAC}{at}/rolebindings/owner", want=200)
    assert bound["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    assert bound["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]


POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ROLE = {"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}


@pytest.mark.parametrize("objects,text", [
    ((ADMIN,), "exactly one Project"), ((PROJECT, {**PROJECT, "metadata": {"name": "other"}}), "exactly one Project"),
    (({**PROJECT, "metadata": {"name": "fixed"}},), "named ${PROJECT_NAME}"),
    ((PROJECT, POD), "Pod cannot be made with a project"), ((PROJECT, ROLE), "ClusterRoleBinding cannot be made with a project"),
    ((PROJECT, {"kind": "Fish", "apiVersion": "v1", "metadata": {"name": "f"}}), "Fish of v1 is not known"),
    ((PROJECT, ADMIN, {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"},
                       "spec": {"hard": {"pods": "many"}}}), "ResourceQuota: quantities must match"),
    ((PROJECT, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "f"}, "dat": {}}), 'unknown field "dat"'),
    ((PROJECT, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "F"}}), "ConfigMap: metadata.name"),
    (({**PROJECT, "metadata": {**PROJECT["metadata"], "annotations": {"a": 1}}},), "Project: "),
    ((PROJECT, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "f", "namespace": "${PROJECT_NAME}x"}}),
     "namespace")])
def test_a_failing_object_leaves_no_project(start, objects, text):
    c = start(projectRequestTemplate="default/project")
    template(c, *objects)
    status, answer = request(c, c.jane, "green")
    assert status == 500 and text in answer["message"], answer
    assert c.admin("GET", f"{API}/projects", want=200)["items"] and \
        "green" not in json.dumps([p["metadata"]["name"] for p in c.admin("GET", f"{API}/projects")["items"]])


def test_a_new_project_lists_the_binding_admin_alone_beside_those_of_the_system(start):
    c = start()
    request(c, c.jane, "green", 201)
    system = {"system:deployers"}

    def names():
        return {b["metadata"]["name"] for b in c.ask(c.jane, "GET", f"{RBAC}/namespaces/green/rolebindings", want=200)["items"]}
    wait_for("the bindings of the system", lambda: system <= names())
    assert names() == {"admin"} | system
    local = c.admin("GET", "/oapi/v1/namespaces/green/policybindings/:default")
    assert {b["name"] for b in local["roleBindings"]} == {"admin"} | system
    c.ask(c.jane, "POST", f"{RBAC}/namespaces/green/rolebindings", {
        "metadata": {"name": "viewers"}, "subjects": [{"kind": "User", "name": "joe", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}, want=201)
    assert names() == {"admin", "viewers"} | system


def test_the_finalizer_of_a_project_goes_with_its_objects(start):
    c = start()
    made = request(c, c.jane, "green", 201)
    assert made["spec"]["finalizers"] == ["openshift.io/origin", "kubernetes"]
    made = c.admin("POST", f"{API}/projects", {"metadata": {"name": "blue"}, "spec": {"finalizers": ["kubernetes", "example.com/x"]}}, 201)
    assert made["spec"]["finalizers"] == ["kubernetes", "example.com/x", "openshift.io/origin"]
    assert c.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "red"}}, 201)["spec"]["finalizers"] == ["kubernetes"]
    # One alone, as OpenShift's own namespaces may have it, does not stop the deletion.
    body = {"metadata": {"name": "old"}, "spec": {"finalizers": ["openshift.io/origin"]}}
    assert c.admin("POST", "/api/v1/namespaces", body, 201)["spec"]["finalizers"] == ["openshift.io/origin", "kubernetes"]
    c.ask(c.jane, "POST", "/api/v1/namespaces/green/configmaps",
          {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}, want=201)
    for name in ("green", "red", "old", "blue"):
        c.admin("DELETE", f"{API}/projects/{name}")
    for name in ("red", "old"):
        wait_for(f"the end of {name}", lambda name=name: c.ask(c._admin, "GET", f"/api/v1/namespaces/{name}")[0] == 404)
    # It stays as long as objects are there.
    assert c.admin("GET", "/api/v1/namespaces/green")["spec"]["finalizers"] == ["openshift.io/origin", "kubernetes"]
    c.admin("PATCH", "/api/v1/namespaces/green/configmaps/held", {"metadata": {"finalizers": None}},
            headers={"Content-Type": "application/merge-patch+json"})
    wait_for("the end of green", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/green")[0] == 404)
    # Finalizers of others are theirs.
    wait_for("blue's own ones", lambda: c.admin("GET", "/api/v1/namespaces/blue")["spec"]["finalizers"] == ["example.com/x"])


def test_virtual_groups_are_shown_in_the_bindings_of_the_cluster(shared):
    c = shared
    want = {"self-provisioners": ["system:authenticated:oauth"], "basic-users": ["system:authenticated"],
            "cluster-admins": ["system:cluster-admins"]}
    found = {b["metadata"]["name"]: b for b in c.admin("GET", f"{RBAC}/clusterrolebindings")["items"]}
    for name, groups in want.items():
        assert [s["name"] for s in found[name]["subjects"] if s["kind"] == "Group"] == groups
    views = {b["metadata"]["name"]: b for b in c.admin("GET", "/oapi/v1/clusterrolebindings")["items"]}
    for name, groups in want.items():
        assert views[name]["groupNames"] == groups
    policy = c.admin("GET", "/oapi/v1/clusterpolicybindings")["items"][0]
    listed = {b["name"]: b["roleBinding"] for b in policy["roleBindings"]}
    for name, groups in want.items():
        assert listed[name]["groupNames"] == groups
    assert any("system:unauthenticated" in (b["groupNames"] or []) for b in views.values())
    table = c.admin("GET", f"{RBAC}/clusterrolebindings", headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    column = [d["name"] for d in table["columnDefinitions"]].index("Groups")
    assert any(r["cells"][0] == "self-provisioners" and r["cells"][column] == "system:authenticated:oauth" for r in table["rows"])
