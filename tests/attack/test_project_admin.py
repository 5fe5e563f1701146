# SPDX-License-Identifier: Apache-2.0
"""What somebody with the role admin in project red can ask of the API: nothing of it leads out of red, nor past what the
cluster's administrators say of red."""

import pytest

import escalations
from lab import wait_for
from people import APPLY, JSON_PATCH, MERGE, NETWORK, RED, People, pod
from test_auth import RBAC
from test_project_member import refused

NAMESPACE, PROJECT = "/api/v1/namespaces/red", f"{escalations.PROJECTS}/red"


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("admin")), plugin="redhat/openshift-ovs-networkpolicy")
    people.admin("PATCH", NAMESPACE, {"metadata": {"labels": {"team": "red", "policy": "strict"}, "annotations": {"cost": "1"}}},
                 headers=MERGE)
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def test_the_role_is_of_use(c):
    """The control: what a project's administrator is there for."""
    role = f"{RBAC}/namespaces/red/rolebindings"
    c.ask(c.ada, "POST", role, {**escalations.binding("view", user="friend"), "metadata": {"name": "friend"}}, want=201)
    friend = c.user("friend")
    wait_for("the friend's right", lambda: c.ask(friend, "GET", f"{RED}/pods")[0] == 200)
    c.ask(c.ada, "DELETE", f"{role}/friend", want=200)
    assert c.ask(friend, "GET", f"{RED}/pods")[0] == 403
    c.ask(c.ada, "PATCH", PROJECT, {"metadata": {"annotations": {"openshift.io/display-name": "Red"}}}, headers=MERGE, want=200)
    assert c.admin("GET", NAMESPACE)["metadata"]["annotations"]["openshift.io/display-name"] == "Red"


def changes():
    """(what, body, headers) that change the namespace otherwise than its display name and description."""
    out = []
    for labels in ({"team": "blue"}, {"policy": None}, {"kubernetes.io/metadata.name": "blue"}, {"new": "x"},
                   {"pod-security.kubernetes.io/enforce": "privileged"}):
        out.append((f"labels {labels}", {"metadata": {"labels": labels}}, MERGE))
    for notes in ({"cost": "0"}, {"cost": None}, {"pod.network.openshift.io/multitenant.change-network": "global"},
                  {"netnamespace.network.openshift.io/multicast-enabled": "true"}, {"openshift.io/node-selector": ""},
                  {"openshift.io/requester": "root"}, {"openshift.io/sa.scc.uid-range": "0/1"}):
        out.append((f"annotations {notes}", {"metadata": {"annotations": notes}}, MERGE))
    out += [("all labels", {"metadata": {"labels": None}}, MERGE),
            ("a label by JSON", [{"op": "add", "path": "/metadata/labels/team", "value": "blue"}], JSON_PATCH),
            ("labels moved", [{"op": "move", "from": "/metadata/labels/policy", "path": "/metadata/annotations/x"}], JSON_PATCH),
            ("labels removed", [{"op": "remove", "path": "/metadata/labels"}], JSON_PATCH),
            ("finalizers", {"metadata": {"finalizers": ["x.io/y"]}}, MERGE), ("finalizers of the spec",
                {"spec": {"finalizers": []}}, MERGE),
            ("owners", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "x"}]}}, MERGE),
            ("status", {"status": {"phase": "Terminating"}}, MERGE)]
    return out


@pytest.mark.parametrize("path", [NAMESPACE, PROJECT, NAMESPACE + "/status", NAMESPACE + "/finalize"])
@pytest.mark.parametrize("what,body,headers", changes(), ids=[x[0] for x in changes()])
def test_labels_and_annotations_of_the_project_are_the_cluster_administrators(c, path, what, body, headers):
    """By them other projects' policies and the administrators' select red (issue: a namespaceSelector is a right)."""
    def state():
        o = c.admin("GET", NAMESPACE)
        return {k: o["metadata"].get(k) for k in ("labels", "annotations", "finalizers", "ownerReferences")}, o["spec"], o["status"]
    before = state()
    status, answer = c.ask(c.ada, "PATCH", path, body, headers=headers)
    assert state() == before, (status, answer)
    assert status >= 400 or path == PROJECT, (status, answer)


def test_neither_put_nor_apply_changes_the_labels(c):
    before = c.admin("GET", NAMESPACE)
    for path in (NAMESPACE, PROJECT):
        kind = "Namespace" if path is NAMESPACE else "Project"
        version = "v1" if path is NAMESPACE else "project.openshift.io/v1"
        o = c.admin("GET", path)
        o["metadata"]["labels"]["team"] = "blue"
        c.ask(c.ada, "PUT", path, o)
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "red", "labels": {"team": "blue"}}}
        c.ask(c.ada, "PATCH", path + "?fieldManager=x&force=true", body, headers=APPLY)
    assert c.admin("GET", NAMESPACE)["metadata"]["labels"] == before["metadata"]["labels"]


@pytest.fixture
def level(c):
    """The project red at the level baseline; its administrator may use any security context constraint, and debug pods."""
    label = "pod-security.kubernetes.io/enforce"
    c.role("red", "scc-privileged", {"apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"],
                                     "resourceNames": ["privileged"], "verbs": ["use"]},
           {"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["patch"]})
    c.bind("red", "scc-privileged", "scc-privileged", user="ada", kind="Role")
    bad = {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]}
    wait_for("the right", lambda: c.ask(c.ada, "POST", f"{RED}/pods?dryRun=All", pod("host", **bad))[0] == 201)
    c.admin("PATCH", NAMESPACE, {"metadata": {"labels": {label: "baseline"}}}, headers=MERGE)
    yield label, bad
    c.admin("PATCH", NAMESPACE, {"metadata": {"labels": {label: None}}}, headers=MERGE)
    c.admin("DELETE", f"{RBAC}/namespaces/red/rolebindings/scc-privileged")
    c.admin("DELETE", f"{RBAC}/namespaces/red/roles/scc-privileged")


def test_the_pod_security_level_of_the_project_cannot_be_lowered(c, level):
    label, bad = level
    pointer = "/metadata/labels/" + label.replace("/", "~1")
    bodies = [({"metadata": {"labels": {label: value}}}, MERGE) for value in ("privileged", "", None)]
    bodies += [({"metadata": {"labels": {label + "-version": "v1.0"}}}, MERGE), ({"metadata": {"labels": None}}, MERGE),
               ([{"op": "replace", "path": pointer, "value": "privileged"}], JSON_PATCH),
               ([{"op": "remove", "path": pointer}], JSON_PATCH),
               ([{"op": "move", "from": pointer, "path": "/metadata/annotations/x"}], JSON_PATCH)]
    for path in (NAMESPACE, PROJECT):
        o = c.admin("GET", path)
        o["metadata"]["labels"][label] = "privileged"
        applied = {"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": {"name": "red", "labels": {label: "privileged"}}}
        for part in ("", "/status", "/finalize"):
            for body, headers in bodies:
                c.ask(c.ada, "PATCH", path + part, body, headers=headers)
            c.ask(c.ada, "PUT", path + part, o)
            c.ask(c.ada, "PATCH", path + part + "?fieldManager=x&force=true", applied, headers=APPLY)
        for new in ("red", "mine"):
            c.ask(c.ada, "POST", path.rsplit("/", 1)[0], {"metadata": {"name": new, "labels": {label: "privileged"}}})
            c.ask(c.ada, "POST", "/apis/project.openshift.io/v1/projectrequests",
                  {"metadata": {"name": new, "labels": {label: "privileged"}}})
    labels = c.admin("GET", NAMESPACE)["metadata"]["labels"]
    assert labels[label] == "baseline" and label + "-version" not in labels
    # The control: the cluster's administrator may.
    c.admin("PATCH", NAMESPACE, {"metadata": {"labels": {label: "privileged"}}}, headers=MERGE)
    c.ask(c.ada, "POST", f"{RED}/pods?dryRun=All", pod("host", **bad), want=201)


def test_a_right_to_privileged_pods_does_not_pass_the_pod_security_level(c, level):
    _, bad = level
    debug = {"spec": {"ephemeralContainers": [{**bad["containers"][0], "name": "d"}]}}
    applied = {**pod("host", **bad), "apiVersion": "v1", "kind": "Pod"}
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    c.ask(c.ada, "POST", f"{RED}/pods", pod("honest"), want=201)
    for query in ("", "?dryRun=All"):
        more = "&" if query else "?"
        for method, path, body, headers in (
                ("POST", f"{RED}/pods{query}", pod("host", **bad), None),
                ("POST", f"{RED}/pods{query}", pod("host", **bad, serviceAccountName="builder"), None),
                ("POST", f"{RED}/pods{query}", pod("host", hostNetwork=True), None),
                ("PATCH", f"{RED}/pods/host{query}{more}fieldManager=x&force=true", applied, APPLY),
                ("PATCH", f"{RED}/pods/honest/ephemeralcontainers{query}", debug, strategic),
                ("PATCH", f"{RED}/pods/honest/ephemeralcontainers{query}", debug, MERGE)):
            status, answer = c.ask(c.ada, method, path, body, headers=headers)
            assert status == 403 and 'violates PodSecurity "baseline:latest": ' in answer["message"], (method, path, answer)
    c.ask(c.ada, "PATCH", f"{RED}/pods/honest/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}},
          headers=strategic, want=200)
    c.ask(c.ada, "DELETE", f"{RED}/pods/honest?gracePeriodSeconds=0", want=200)


def test_other_projects_and_the_cluster_are_closed(c):
    assert refused(c, c.ada, escalations.other_projects()) == []
    assert refused(c, c.ada, escalations.cluster_scope()) == []


def test_no_binding_gives_more_than_the_administrator_has(c):
    path = f"{RBAC}/namespaces/red/rolebindings"
    table = [(f"bind {role}", "POST", path, {**escalations.binding(role), "metadata": {"name": "x"}})
             for role in ("cluster-admin", "cluster-reader", "system:sdn-manager", "system:sdn-reader",
                          "system:node-bootstrapper", "sudoer",
                          "system:auth-delegator", "self-provisioner", "nosuch")]
    table += [("no role", "POST", path, {"metadata": {"name": "x"}, "subjects": []}),
              ("another kind", "POST", path, {**escalations.binding("admin", kind="Secret"), "metadata": {"name": "x"}}),
              ("another group of roles", "POST", path, {"metadata": {"name": "x"}, "subjects": [{"kind": "User", "name": "ed"}],
                                                        "roleRef": {"apiGroup": "x.io", "kind": "ClusterRole", "name": "admin"}})]
    for verb, where in (("PUT", "roles/x"), ("POST", "roles"), ("DELETE", "roles/x"), ("PATCH", "roles/x")):
        table.append((f"{verb} {where}", verb, f"{RBAC}/namespaces/red/{where}",
                      {"metadata": {"name": "x"}, "rules": [escalations.EVERYTHING]}, MERGE if verb == "PATCH" else None))
    assert refused(c, c.ada, table) == []
    c.ask(c.ada, "POST", path, {**escalations.binding("view"), "metadata": {"name": "swap"}}, want=201)
    try:
        got = c.ask(c.ada, "GET", f"{path}/swap", want=200)
        got["roleRef"]["name"] = "cluster-admin"
        assert c.ask(c.ada, "PUT", f"{path}/swap", got)[0] in (403, 422)
        for headers, body in ((MERGE, {"roleRef": {"name": "cluster-admin"}}),
                              (JSON_PATCH, [{"op": "replace", "path": "/roleRef/name", "value": "cluster-admin"}]),
                              (APPLY, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                                       "metadata": {"name": "swap"},
                                       "roleRef": {"kind": "ClusterRole", "name": "cluster-admin",
                                                   "apiGroup": "rbac.authorization.k8s.io"}})):
            extra = "?fieldManager=x&force=true" if headers is APPLY else ""
            assert c.ask(c.ada, "PATCH", f"{path}/swap{extra}", body, headers=headers)[0] in (403, 415, 422)
        assert c.admin("GET", f"{path}/swap")["roleRef"]["name"] == "view"
    finally:
        c.admin("DELETE", f"{path}/swap")


def rules_beyond():
    """Rules that no administrator of a project has, and so can give nobody."""
    def rule(group, resources, *verbs, **more):
        return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs), **more}
    group = "rbac.authorization.k8s.io"
    return [escalations.EVERYTHING, rule("", "nodes", "get"), rule("", "*", "get"), rule("*", "pods", "get"), rule("", "pods", "*"),
            rule("", "pods/*", "get"), rule("", "pods/status", "patch"), rule("", "namespaces", "update"), rule("", "users", "impersonate"),
            rule("", "resourcequotas", "update"), rule("", "services/nodeports", "create"), rule("", "endpoints/restricted", "create"),
            rule(group, "roles", "escalate"), rule(group, "roles", "bind"), rule(group, "clusterroles", "bind"),
            rule(group, "clusterroles", "bind", resourceNames=["cluster-admin"]), rule(group, "clusterroles", "get"),
            rule("security.openshift.io", "securitycontextconstraints", "use", resourceNames=["privileged"]),
            rule("oauth.openshift.io", "oauthclients", "get"), {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


@pytest.fixture
def crew(c):
    """A role that red's administrator made and gave to friend."""
    rbac = f"{RBAC}/namespaces/red"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    c.ask(c.ada, "POST", f"{rbac}/roles", {"metadata": {"name": "crew"}, "rules": [rule]}, want=201)
    c.ask(c.ada, "POST", f"{rbac}/rolebindings",
          {**escalations.binding("crew", kind="Role", user="friend"), "metadata": {"name": "crew"}}, want=201)
    yield rule
    for what in ("rolebindings", "roles"):
        c.ask(c._admin, "DELETE", f"{rbac}/{what}/crew")


def test_no_role_gives_more_than_the_administrator_has(c, crew):
    friend = c.user("friend")
    wait_for("the role of the project's administrator", lambda: c.ask(friend, "GET", f"{RED}/pods")[0] == 200)
    table = []
    for root, version in ((RBAC, "rbac.authorization.k8s.io/v1"), ("/apis/authorization.openshift.io/v1", "authorization.openshift.io/v1"),
                          ("/oapi/v1", "v1")):
        roles = f"{root}/namespaces/red/roles"
        for i, rule in enumerate(rules_beyond()):
            both, role = [crew, rule], {"apiVersion": version, "kind": "Role"}
            table += [(f"{root}: create {i}", "POST", roles, {"metadata": {"name": "x"}, "rules": both}),
                      (f"{root}: dry run {i}", "POST", f"{roles}?dryRun=All", {"metadata": {"name": "x"}, "rules": both}),
                      (f"{root}: put {i}", "PUT", f"{roles}/crew", {"metadata": {"name": "crew"}, "rules": both}),
                      (f"{root}: merge {i}", "PATCH", f"{roles}/crew", {"rules": both}, MERGE),
                      (f"{root}: JSON {i}", "PATCH", f"{roles}/crew", [{"op": "add", "path": "/rules/0", "value": rule}], JSON_PATCH),
                      (f"{root}: apply {i}", "PATCH", f"{roles}/crew?fieldManager=x&force=true",
                       {**role, "metadata": {"name": "crew"}, "rules": both}, APPLY),
                      (f"{root}: apply a new one {i}", "PATCH", f"{roles}/x?fieldManager=x",
                       {**role, "metadata": {"name": "x"}, "rules": both}, APPLY)]
    assert refused(c, c.ada, table) == []
    assert c.admin("GET", f"{RBAC}/namespaces/red/roles/crew")["rules"] == [crew]
    # Rights that the administrator has may be given, by the same ways.
    more = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    c.ask(c.ada, "PATCH", f"{RBAC}/namespaces/red/roles/crew", [{"op": "add", "path": "/rules/-", "value": more}], headers=JSON_PATCH,
          want=200)
    wait_for("the wider role", lambda: c.ask(friend, "GET", f"{RED}/configmaps/own")[0] == 200)
    assert c.ask(friend, "GET", f"{RED}/secrets")[0] == 403


def test_a_label_makes_no_role_of_a_project_part_of_another(c):
    """Only ClusterRoles are aggregated: a Role with the label gives the role edit nothing, and no ClusterRole is red's to write."""
    roles = f"{RBAC}/namespaces/red/roles"
    label = {"rbac.authorization.k8s.io/aggregate-to-edit": "true", "rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rule = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"], "verbs": ["list"]}
    before = c.admin("GET", f"{RBAC}/clusterroles/edit")["rules"]
    c.ask(c.ada, "POST", roles, {"metadata": {"name": "gather", "labels": label}, "rules": [rule]}, want=201)
    try:
        assert c.ask(c.ada, "POST", roles, {"metadata": {"name": "y"}, "aggregationRule": {"clusterRoleSelectors": [{}]},
                                            "rules": []})[0] in (201, 400, 422)
        sly = c.ask(c._admin, "GET", f"{roles}/y")[1]
        assert not sly.get("rules") and "aggregationRule" not in sly
        # The control: the same label on a ClusterRole is followed, by the same controller.
        c.admin("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "gathered", "labels": label}, "rules": [
            {"apiGroups": ["x.io"], "resources": ["widgets"], "verbs": ["list"]}]}, 201)
        wait_for("the ClusterRole to be gathered", lambda: c.admin("GET", f"{RBAC}/clusterroles/edit")["rules"] != before)
        assert rule not in c.admin("GET", f"{RBAC}/clusterroles/edit")["rules"]
        assert c.ask(c.ed, "GET", f"{RBAC}/namespaces/red/rolebindings")[0] == 403
    finally:
        c.ask(c._admin, "DELETE", f"{RBAC}/clusterroles/gathered")
        for name in ("gather", "y"):
            c.ask(c._admin, "DELETE", f"{roles}/{name}")


def test_roles_made_by_others_are_no_way_to_more(c):
    """A Role of red with more than its administrator has, and a binding of the cluster's administrator that waits for a Role."""
    rbac = f"{RBAC}/namespaces/red"
    c.role("red", "big", {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]})
    c.admin("POST", f"{rbac}/rolebindings", {**escalations.binding("future", kind="Role", user="friend"),
                                             "metadata": {"name": "future"}}, 201)
    try:
        bind = {**escalations.binding("big", kind="Role", user="ada"), "metadata": {"name": "x"}}
        label = {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}}}
        big = c.admin("GET", f"{rbac}/roles/big")["rules"]
        assert refused(c, c.ada, [
            ("bind it", "POST", f"{rbac}/rolebindings", bind),
            ("label it", "PATCH", f"{rbac}/roles/big", label, MERGE),
            ("add to it", "PATCH", f"{rbac}/roles/big", [{"op": "add", "path": "/rules/-", "value": {
                "apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}}], JSON_PATCH),
            ("copy it", "POST", f"{rbac}/roles", {"metadata": {"name": "copy"}, "rules": big}),
            ("the Role that is awaited", "POST", f"{rbac}/roles", {"metadata": {"name": "future"}, "rules": big})]) == []
        assert c.admin("GET", f"{rbac}/roles/big")["rules"] == big
        # A change of no right is allowed, and so is taking a right away.
        c.ask(c.ada, "PATCH", f"{rbac}/roles/big", {"metadata": {"annotations": {"note": "x"}}}, headers=MERGE, want=200)
        c.ask(c.ada, "DELETE", f"{rbac}/roles/big", want=200)
    finally:
        c.ask(c._admin, "DELETE", f"{rbac}/rolebindings/future")
        c.ask(c._admin, "DELETE", f"{rbac}/roles/big")


def test_bindings_made_by_others_cannot_be_widened(c):
    """A binding of red to a role that its administrator lacks: it may be removed, but no friend be added."""
    path = f"{RBAC}/namespaces/red/rolebindings"
    c.admin("POST", path, {**escalations.binding("cluster-reader", user="auditor"), "metadata": {"name": "audit"}}, 201)
    try:
        for headers, body in ((MERGE, {"subjects": [{"kind": "User", "name": "ada"}]}),
                              (JSON_PATCH, [{"op": "add", "path": "/subjects/-", "value": {"kind": "User", "name": "ada"}}])):
            assert c.ask(c.ada, "PATCH", f"{path}/audit", body, headers=headers)[0] == 403
        assert [s["name"] for s in c.admin("GET", f"{path}/audit")["subjects"]] == ["auditor"]
    finally:
        c.admin("DELETE", f"{path}/audit")


def test_subjects_of_bindings_are_only_who_they_say(c):
    """Names that look like others' groups and accounts give only these what red's administrator has in red."""
    path = f"{RBAC}/namespaces/red/rolebindings"
    for i, subject in enumerate(({"kind": "Group", "name": "system:masters"}, {"kind": "User", "name": "system:node:n1"},
                                 {"kind": "Group", "name": "system:authenticated"},
                                 {"kind": "ServiceAccount", "name": "default", "namespace": "blue"})):
        body = {**escalations.binding("view"), "metadata": {"name": f"s{i}"}, "subjects": [subject]}
        c.ask(c.ada, "POST", path, body, want=201)
    try:
        token = c.token("blue", "default")
        wait_for("the binding", lambda: c.ask(token, "GET", f"{RED}/pods")[0] == 200)
        for what, method, url, *rest in escalations.other_projects()[:12]:
            if what.startswith(("create", "delete", "patch", "apply")):
                assert c.ask(token, method, url, rest[0] if rest else None, headers=rest[1] if len(rest) > 1 else None)[0] == 403
        assert c.ask(token, "DELETE", f"{RED}/pods/own")[0] == 403
        assert c.ask(c.nobody, "GET", "/api/v1/pods")[0] == 403
    finally:
        for i in range(4):
            c.admin("DELETE", f"{path}/s{i}")


def test_acting_as_somebody_else_is_refused(c):
    for what, headers in escalations.as_somebody_else():
        if "X-Remote-User" in headers:
            continue
        assert c.ask(c.ada, "GET", "/version", headers=headers)[0] in (400, 403), what


def test_policies_reach_no_further_than_their_project(c):
    """A policy that names another namespace, of a kind of the cluster, or that selects others' pods as its own."""
    ns = "/apis/networking.k8s.io/v1/namespaces/red/networkpolicies"
    c.ask(c.ada, "POST", ns, {"metadata": {"name": "good"}, "spec": {"podSelector": {}}}, want=201)
    c.ask(c.ada, "DELETE", f"{ns}/good", want=200)
    for body in ({"metadata": {"name": "x", "namespace": "blue"}, "spec": {"podSelector": {}}},
                 {"metadata": {"name": "x"}, "spec": {"podSelector": {}, "namespaceSelector": {}}}):
        status, _ = c.ask(c.ada, "POST", ns, body)
        stored = c.admin("GET", ns)["items"]
        assert status in (400, 422) or not [p for p in stored if "namespaceSelector" in p["spec"]], body
    assert c.admin("GET", "/apis/networking.k8s.io/v1/namespaces/blue/networkpolicies")["items"] == []
    assert refused(c, c.ada, [(p, "POST", f"{escalations.POLICY}/{p}", {"metadata": {"name": "default"}, "spec": {
        "priority": 0, "subject": {"namespaces": {}}}}) for p in ("adminnetworkpolicies", "baselineadminnetworkpolicies")]) == []


def test_networks_cannot_be_joined(c):
    """The administrator's annotations of NetNamespaces, by every path that ends there."""
    before = c.admin("GET", f"{NETWORK}/netnamespaces")["items"]
    for path in (f"{NETWORK}/netnamespaces/red", f"{NETWORK}/netnamespaces/blue"):
        for body in ({"netid": 0}, {"metadata": {"annotations": {"pod.network.openshift.io/multitenant.change-network": "join:blue"}}},
                     {"egressIPs": ["10.245.2.250"]}):
            assert c.ask(c.ada, "PATCH", path, body, headers=MERGE)[0] == 403
    assert c.admin("GET", f"{NETWORK}/netnamespaces")["items"] == before


@pytest.mark.parametrize("field", escalations.pods())
def test_an_administrators_pods_reach_the_host_no_more_than_a_members(c, field):
    name = "y-" + field.lower().replace(" ", "-").replace("'", "")
    assert c.ask(c.ada, "POST", f"{RED}/pods", escalations.pod_with(field, name=name))[0] in (403, 422)


def template(spec):
    return {"metadata": {"labels": {"a": "b"}}, "spec": spec}


def test_templates_give_no_more_than_their_pods(c):
    """A template is stored, as in OpenShift; its author is warned, and a pod that a controller makes of it, whatever the
    controller may do, has the rights of its service account."""
    kinds = {o["name"]: (g, o) for g in ("v1", "apps/v1", "batch/v1") for o in c.ask(
        c._admin, "GET", f"/apis/{g}" if "/" in g else f"/api/{g}")[1].get("resources", [])}
    known = [k for k in ("replicationcontrollers", "deployments", "daemonsets", "replicasets", "statefulsets", "jobs",
                         "podtemplates")
             if k in kinds]
    for kind in known:
        group = kinds[kind][0]
        path = (f"/apis/{group}" if "/" in group else f"/api/{group}") + f"/namespaces/red/{kind}"
        for field, spec in escalations.pods().items():
            full = {"containers": [{"name": "c", "image": "i"}], **spec}
            selector = {"a": "b"} if kind == "replicationcontrollers" else {"matchLabels": {"a": "b"}}
            body = {"metadata": {"name": "t"}, "template": template(full),
                    "spec": {"selector": selector, "template": template(full)}}
            status, answer = c.ask(c.ada, "POST", path + "?dryRun=All", body)
            assert status in (201, 422) or "cannot create" in answer["message"], (kind, field, answer)
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "t", "uid": "1", "controller": True}]
    for field, spec in escalations.pods().items():
        made = pod("made", **spec)
        made["metadata"]["ownerReferences"] = owner
        status, answer = c.ask(c._admin, "POST", f"{RED}/pods?dryRun=All", made)
        assert status in (403, 422), (field, answer)
    good = pod("made")
    good["metadata"]["ownerReferences"] = owner
    assert c.ask(c._admin, "POST", f"{RED}/pods?dryRun=All", good)[0] == 201
    assert len(known) == 7


def test_deleting_is_of_ones_own_project_only(c):
    """And the project ends whole: what was in it is gone, and its name is anybody's."""
    c.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "green"}}, 201)
    c.bind("green", "ada", "admin", user="ada")
    wait_for("the right", lambda: c.ask(c.ada, "GET", "/api/v1/namespaces/green/pods")[0] == 200)
    c.ask(c.ada, "POST", "/api/v1/namespaces/green/pods", pod("p"), want=201)
    assert c.ask(c.ada, "DELETE", escalations.PROJECTS)[0] in (403, 405)
    assert c.ask(c.ada, "DELETE", "/api/v1/namespaces")[0] in (403, 405)
    c.ask(c.ada, "DELETE", f"{escalations.PROJECTS}/green", want=200)
    wait_for("the project to go", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/green")[0] == 404)
    c.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "green"}}, 201)
    assert c.ask(c.ada, "GET", "/api/v1/namespaces/green/pods")[0] == 403, "rights do not outlive the project"
