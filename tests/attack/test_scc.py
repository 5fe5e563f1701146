# SPDX-License-Identifier: Apache-2.0
"""What people of a project try against security context constraints: rights to them, annotations, updates, other objects."""
import json

import pytest

from lab import wait_for
from people import APPLY, JSON_PATCH, MERGE, RED, People, pod
from test_auth import RBAC

SCCS = "/apis/security.openshift.io/v1/securitycontextconstraints"
REVIEWS = "/apis/security.openshift.io/v1/namespaces/red"
ANY = {"runAsUser": {"type": "RunAsAny"}, "seLinuxContext": {"type": "RunAsAny"}}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
USE = {"apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"], "verbs": ["use"]}
FORBIDDEN = "unable to validate against any security context constraint: ["


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("scc")))
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def refused(answer, *texts):
    status, body = answer
    assert status == 403 and FORBIDDEN in body["message"], answer
    for text in texts:
        assert text in body["message"], (text, body["message"])


def scc_of(answer):
    return answer["metadata"]["annotations"]["openshift.io/scc"]


def container(**context):
    return {"containers": [{"name": "c", "image": "i", "securityContext": context}]}


def give(c, name, scc, user=None, account=None):
    """The use of one of the constraints in red, by the role that every cluster has for it."""
    subject = {"kind": "User", "name": user} if user else {"kind": "ServiceAccount", "name": account, "namespace": "red"}
    c.admin("POST", f"{RBAC}/namespaces/red/rolebindings", {
        "metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"system:openshift:scc:{scc}"}}, 201)


def take(c, name):
    c.admin("DELETE", f"{RBAC}/namespaces/red/rolebindings/{name}")


def test_a_pod_can_be_made_right_after_its_project(c):
    """The control, and PRJ-11: the values are there with the namespace."""
    for i in range(20):
        name = f"fresh{i}"
        made = c.admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, 201)
        first = int(made["metadata"]["annotations"]["openshift.io/sa.scc.uid-range"].split("/")[0])
        c.bind(name, "ed", "edit", user="ed")
        answer = c.ask(c.ed, "POST", f"/api/v1/namespaces/{name}/pods", pod("p"))
        assert answer[0] == 201, answer
        assert scc_of(answer[1]) == "restricted"
        assert answer[1]["spec"]["containers"][0]["securityContext"]["runAsUser"] == first
        c.admin("DELETE", f"/api/v1/namespaces/{name}")


def test_the_constraints_are_the_cluster_administrators(c):
    """No right to read or write them, and no answer that tells whether one exists."""
    mine = {"metadata": {"name": "mine"}, **ANY, "users": ["ada"], "allowPrivilegedContainer": True}
    for who in (c.ed, c.ada, c.nobody):
        for method, path, body in (("POST", SCCS, mine), ("GET", SCCS, None), ("DELETE", SCCS, None),
                                   ("PATCH", SCCS + "/mine?fieldManager=m", {**mine, "kind": "SecurityContextConstraints",
                                                                           "apiVersion": "security.openshift.io/v1"})):
            assert c.ask(who, method, path, body, headers=APPLY if "field" in path else None)[0] == 403
        answers = []
        for name in ("privileged", "none"):
            for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"users": ["ada"]}), ("PUT", mine)):
                status, answer = c.ask(who, method, f"{SCCS}/{name}", body, headers=MERGE if method == "PATCH" else None)
                assert status == 403, (method, name, answer)
                answers.append(answer["message"].replace(name, "X"))
        assert answers[:4] == answers[4:]


def test_nobody_gives_the_use_of_constraints_that_they_may_not_use(c):
    """The admin of a project binds `privileged` to the project's own account: by the cluster's role, by a role that exists, and
    by widening a binding. Roles themselves are the cluster administrators'."""
    c.role("red", "use-all", {**USE, "resourceNames": ["privileged"]})
    path = f"{RBAC}/namespaces/red/rolebindings"
    for kind, role in (("ClusterRole", "system:openshift:scc:privileged"), ("ClusterRole", "system:openshift:scc:anyuid"),
                       ("ClusterRole", "cluster-admin"), ("Role", "use-all")):
        body = {"metadata": {"name": "mine"}, "roleRef": {"kind": kind, "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "red"}]}
        status, answer = c.ask(c.ada, "POST", path, body)
        assert status == 403 and "attempting to grant RBAC permissions not currently held" in answer["message"], answer
    give(c, "theirs", "privileged", account="builder")
    status, answer = c.ask(c.ada, "PATCH", f"{path}/theirs", {"subjects": [
        {"kind": "ServiceAccount", "name": "default", "namespace": "red"}]}, headers=MERGE)
    assert status == 403, answer
    assert c.ask(c.ada, "POST", f"{RBAC}/namespaces/red/roles", {"metadata": {"name": "own"}, "rules": [USE]})[0] == 403
    refused(c.ask(c.ed, "POST", f"{RED}/pods", pod("x", hostPID=True)), "spec.hostPID")
    # The account that an administrator gave it may be used by all who make pods in the project; the right stays in red.
    status, answer = c.ask(c.ed, "POST", f"{RED}/pods?dryRun=All", pod("x", hostPID=True, serviceAccountName="builder"))
    assert status == 201 and scc_of(answer) == "privileged", answer
    take(c, "theirs")
    wait_for("the right to end", lambda: c.ask(c.ed, "POST", f"{RED}/pods?dryRun=All", pod(
        "x", hostPID=True, serviceAccountName="builder"))[0] == 403)


def test_a_right_to_some_constraints_is_none_to_others(c):
    """CVE-2017-1000056: what nobody was given is used by nobody. Names are compared whole, and other verbs give nothing."""
    c.admin("POST", SCCS, {"metadata": {"name": "priv"}, **ANY, "allowHostPID": True, "users": ["ed2", ""], "groups": [""]}, 201)
    for rules in ([{**USE, "resourceNames": ["privilege"]}], [{**USE, "verbs": ["get", "list", "create", "impersonate", "bind"]}],
                  [{**USE, "apiGroups": [""]}], [{**USE, "apiGroups": ["policy"], "resources": ["podsecuritypolicies"]}],
                  [{**USE, "resourceNames": ["anyuid"]}]):
        c.role("red", "some", *rules)
        c.bind("red", "some", "some", user="ed", kind="Role")
        refused(c.ask(c.ed, "POST", f"{RED}/pods?dryRun=All", pod("x", hostPID=True)), "spec.hostPID", 'provider "priv": Forbidden')
        c.admin("DELETE", f"{RBAC}/namespaces/red/rolebindings/some")
        c.admin("DELETE", f"{RBAC}/namespaces/red/roles/some")
    c.admin("DELETE", f"{SCCS}/priv")


def test_annotations_of_a_pod_give_nothing(c):
    notes = {"openshift.io/scc": "privileged", "security.openshift.io/validated-scc-subject-type": "user"}
    claimed = pod("claimed")
    claimed["metadata"]["annotations"] = notes
    made = c.ask(c.ed, "POST", f"{RED}/pods", claimed, want=201)
    assert scc_of(made) == "restricted"
    wild = pod("wild", hostNetwork=True)
    wild["metadata"]["annotations"] = notes
    refused(c.ask(c.ed, "POST", f"{RED}/pods", wild), "provider restricted: spec.hostNetwork")
    path = f"{RED}/pods/claimed"
    for body, headers in (({"metadata": {"annotations": {"openshift.io/scc": "privileged"}}}, MERGE),
                          ({"metadata": {"annotations": None}}, MERGE),
                          ([{"op": "replace", "path": "/metadata/annotations/openshift.io~1scc", "value": "privileged"}], JSON_PATCH),
                          ([{"op": "remove", "path": "/metadata/annotations/openshift.io~1scc"}], JSON_PATCH)):
        assert scc_of(c.ask(c.ed, "PATCH", path, body, headers=headers, want=200)) == "restricted"
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "claimed", "annotations": {"openshift.io/scc": "privileged"}}}
    assert scc_of(c.ask(c.ed, "PATCH", path + "?fieldManager=x&force=true", applied, headers=APPLY, want=200)) == "restricted"
    # A pod may ask for constraints, but only get those that it may use.
    asking = pod("asking")
    asking["metadata"]["annotations"] = {"openshift.io/required-scc": "privileged"}
    refused(c.ask(c.ed, "POST", f"{RED}/pods", asking), "not usable by user or serviceaccount")
    status, _ = c.ask(c.ed, "PATCH", path, {"metadata": {"annotations": {"openshift.io/required-scc": "anyuid"}}}, headers=MERGE)
    assert status == 403
    c.admin("DELETE", path)


def test_the_values_of_the_project_are_not_its_own(c):
    """By user IDs and the SELinux level of another project, a pod would read its volumes."""
    before = c.admin("GET", RED)["metadata"]["annotations"]
    blue = c.admin("GET", "/api/v1/namespaces/blue")["metadata"]["annotations"]
    theirs = int(blue["openshift.io/sa.scc.uid-range"].split("/")[0])
    for path in (RED, "/apis/project.openshift.io/v1/projects/red", f"{RED}/status", f"{RED}/finalize"):
        for key, value in (("uid-range", "0/1"), ("supplemental-groups", "0/1"), ("mcs", blue["openshift.io/sa.scc.mcs"])):
            for who in (c.ed, c.ada):
                c.ask(who, "PATCH", path, {"metadata": {"annotations": {f"openshift.io/sa.scc.{key}": value}}}, headers=MERGE)
                c.ask(who, "PATCH", path, {"metadata": {"annotations": {f"openshift.io/sa.scc.{key}": None}}}, headers=MERGE)
    assert c.admin("GET", RED)["metadata"]["annotations"] == before
    for spec in (container(runAsUser=theirs), {"securityContext": {"runAsUser": theirs}}, {"securityContext": {"fsGroup": theirs}},
                 {"securityContext": {"seLinuxOptions": {"level": blue["openshift.io/sa.scc.mcs"]}}},
                 container(seLinuxOptions={"level": blue["openshift.io/sa.scc.mcs"]}), container(seLinuxOptions={"type": "spc_t"})):
        refused(c.ask(c.ed, "POST", f"{RED}/pods", pod("x", **spec)))
    # Who may only create namespaces does not choose their values either.
    c.role(None, "makers", {"apiGroups": ["", "project.openshift.io"], "resources": ["namespaces", "projects"], "verbs": ["create"]})
    c.bind(None, "makers", "makers", user="nobody")
    mine = {"metadata": {"name": "mine", "annotations": {"openshift.io/sa.scc.uid-range": f"{theirs}/1"}}}
    for path in ("/api/v1/namespaces", "/apis/project.openshift.io/v1/projects"):
        status, answer = c.ask(c.nobody, "POST", path, mine)
        assert status == 403 and "set by the server" in answer["message"], answer
    c.ask(c.nobody, "POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}}, want=201)
    own = c.admin("GET", "/api/v1/namespaces/mine")["metadata"]["annotations"]
    assert own["openshift.io/sa.scc.uid-range"] != blue["openshift.io/sa.scc.uid-range"]
    for name in ("makers",):
        c.admin("DELETE", f"{RBAC}/clusterrolebindings/{name}")
        c.admin("DELETE", f"{RBAC}/clusterroles/{name}")


def test_a_running_pod_gets_no_more_by_an_update(c):
    """Every way to change a pod: CVE-2016-1905 was a patch that was not judged."""
    c.ask(c.ed, "POST", f"{RED}/pods", pod("runs"), want=201)
    path = f"{RED}/pods/runs"
    worse = {"spec": {"containers": [{"name": "c", "securityContext": {"privileged": True}}]}}
    refused(c.ask(c.ed, "PATCH", path, worse, headers=STRATEGIC), "spec.containers[0].securityContext.privileged")
    refused(c.ask(c.ed, "PATCH", path, [{"op": "add", "path": "/spec/containers/0/securityContext/privileged", "value": True}],
                  headers=JSON_PATCH), "privileged")
    refused(c.ask(c.ed, "PATCH", path + "?fieldManager=x&force=true", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "runs"},
            "spec": {"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}}, headers=APPLY),
            "capabilities.add[0]")
    whole = c.ask(c.ed, "GET", path, want=200)
    whole["spec"]["containers"][0]["securityContext"]["runAsUser"] = 0
    refused(c.ask(c.ed, "PUT", path, whole), "must be in the ranges")
    refused(c.ask(c.ed, "PATCH", path, {"metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}},
                  headers=MERGE), "seccomp")
    # Lists in place of objects, as only a patch can leave them.
    for at in ("/metadata/annotations", "/spec/securityContext", "/spec/volumes/0", "/spec/containers/0/securityContext"):
        status, answer = c.ask(c.ed, "PATCH", path, [{"op": "replace", "path": at, "value": [["hostPath"]]}], headers=JSON_PATCH)
        assert 400 <= status < 500, (at, answer)
    # CVE-2023-2727: ephemeral containers are containers.
    c.role("red", "debug", {"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["patch"]})
    c.bind("red", "debug", "debug", user="ed", kind="Role")
    for context in ({"privileged": True}, {"runAsUser": 0}, {"capabilities": {"add": ["NET_ADMIN"]}}):
        refused(c.ask(c.ed, "PATCH", f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [
            {"name": "d", "image": "i", "securityContext": context}]}}, headers=STRATEGIC), "spec.ephemeralContainers[0]")
    answer = c.ask(c.ed, "PATCH", f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}},
                   headers=STRATEGIC, want=200)
    assert answer["spec"]["ephemeralContainers"][0]["securityContext"]["runAsUser"] == \
        answer["spec"]["containers"][0]["securityContext"]["runAsUser"]
    c.admin("DELETE", path)


@pytest.mark.parametrize("volume", [
    {"hostPath": {"path": "/"}}, {"projected": {"sources": []}, "hostPath": {"path": "/"}}, {"emptyDir": {}, "hostPath": {"path": "/"}},
    {"nfs": {"server": "s", "path": "/"}}, {"csi": {"driver": "d"}}, {"flexVolume": {"driver": "a/b"}}, {"gitRepo": {"repository": "r"}},
    {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}], ids=lambda v: "+".join(v))
def test_no_volume_hides_another_one(c, volume):
    mounts = [{"name": "v", "mountPath": "/v", "subPath": "etc"}]
    spec = {"volumes": [{"name": "ok", "emptyDir": {}}, {"name": "v", **volume}],
            "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}]}
    status, answer = c.ask(c.ed, "POST", f"{RED}/pods?dryRun=All", pod("x", **spec))
    assert status == 403 and "volumes are not allowed to be used" in answer["message"], answer


def test_controllers_lend_nobody_their_rights(c):
    """A pod of a controller that may do everything has the rights of its service account."""
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}]
    c.bind(None, "operator", "cluster-admin", user="operator")
    operator = c.user("operator")
    wait_for("the right", lambda: c.ask(operator, "GET", f"{RED}/pods")[0] == 200)
    made = pod("made", hostPID=True)
    made["metadata"]["ownerReferences"] = owner
    for who in (operator, c._admin):
        refused(c.ask(who, "POST", f"{RED}/pods?dryRun=All", made), "spec.hostPID")
    give(c, "strong", "privileged", account="default")
    for who in (operator, c._admin):
        wait_for("the account's right", lambda who=who: c.ask(who, "POST", f"{RED}/pods?dryRun=All", made)[0] == 201)
    take(c, "strong")
    # Without an owner the user's own rights count.
    assert c.ask(operator, "POST", f"{RED}/pods?dryRun=All", pod("alone", hostPID=True))[0] == 201
    c.admin("DELETE", f"{RBAC}/clusterrolebindings/operator")


def test_nobody_enters_a_pod_that_they_could_not_have_made(c):
    """SCCExecRestrictions, for all streams; a user who may only enter pods does not have the rights of their accounts."""
    give(c, "strong", "privileged", account="builder")
    c.admin("POST", f"{RED}/pods", pod("host", "n1", hostPID=True, serviceAccountName="builder"), 201)
    c.admin("POST", f"{RED}/pods", pod("node", "n1", hostPID=True), 201)
    c.role("red", "enter", {"apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/portforward"], "verbs": ["create", "get"]})
    c.bind("red", "enter", "enter", user="nobody", kind="Role")

    def enter(who, name, part):
        return c.ask(who, "POST", f"{RED}/pods/{name}/{part}?command=true&stdout=true&ports=1")
    for part in ("exec", "attach", "portforward"):
        for who, name in ((c.nobody, "host"), (c.nobody, "node"), (c.ed, "node"), (c.ada, "node")):
            status, answer = enter(who, name, part)
            assert status == 403 and f"{part} operation is not allowed because the pod's security context exceeds your permissions" \
                in answer["message"], (part, name, answer)
        # Controls: a plain pod, and for those who make pods the account's constraints.
        for who, name in ((c.nobody, "own"), (c.ed, "own"), (c.ed, "host")):
            assert "exceeds your permissions" not in json.dumps(enter(who, name, part)[1]), (part, name)
    for name in ("host", "node"):
        c.admin("DELETE", f"{RED}/pods/{name}")
    take(c, "strong")


def test_reviews_are_of_the_project_and_change_nothing(c):
    template = {"spec": {"containers": [{"name": "c", "image": "i", "securityContext": {"runAsUser": 0}}]}}
    asked = {"spec": {"template": template, "serviceAccountNames": ["default", "none"]}}
    for who in (c.ed, c.nobody):
        assert c.ask(who, "POST", f"{REVIEWS}/podsecuritypolicyreviews", asked)[0] == 403
    for ns in ("blue", "default"):
        assert c.ask(c.ada, "POST", f"{REVIEWS.replace('red', ns)}/podsecuritypolicyreviews", asked)[0] == 403
    answer = c.ask(c.ada, "POST", f"{REVIEWS}/podsecuritypolicyreviews", asked, want=201)
    assert answer["status"]["allowedServiceAccounts"] == []
    answer = c.ask(c.ada, "POST", f"{REVIEWS}/podsecuritypolicysubjectreviews", {
        "spec": {"template": template, "user": "root", "groups": ["system:masters"]}}, want=201)
    assert answer["status"]["allowedBy"]["name"] == "anyuid"
    answer = c.ask(c.ada, "POST", f"{REVIEWS}/podsecuritypolicyselfsubjectreviews", {"spec": {"template": template}}, want=201)
    assert answer["status"] == {"reason": "CantAssignSecurityContextConstraintProvider"}
