# SPDX-License-Identifier: Apache-2.0
"""Members and administrators of a project against its quotas and limits: none of them gets more, by any way of writing."""
import concurrent.futures

import pytest

from lab import wait_for
from people import APPLY, BLUE, JSON_PATCH, MERGE, RED, People, pod

QUOTA, LIMITS = f"{RED}/resourcequotas/q", f"{RED}/limitranges/l"
GROUP = "/apis/quota.openshift.io/v1"
CLUSTER, APPLIED = f"{GROUP}/clusterresourcequotas/c", f"{GROUP}/namespaces/red/appliedclusterresourcequotas"
NAMESPACE = RED
LEASES = "/apis/coordination.k8s.io/v1/namespaces/red/leases"


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("quota")))
    people.admin("PATCH", RED, {"metadata": {"labels": {"team": "red"}}}, headers=MERGE)
    people.admin("POST", f"{RED}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {
        "count/pods": "5", "count/leases.coordination.k8s.io": "1", "count/widgets.example.com": "1", "configmaps": "6",
        "count/deployments.apps": "1"}}}, 201)
    people.admin("POST", f"{RED}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "max": {"memory": "1Gi"}, "default": {"memory": "1Mi"}}]}}, 201)
    people.admin("POST", f"{GROUP}/clusterresourcequotas", {"metadata": {"name": "c"}, "spec": {
        "selector": {"labels": {"matchLabels": {"team": "red"}}}, "quota": {"hard": {"pods": "4"}}}}, 201)
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def clean(c):
    c.admin("DELETE", f"{RED}/pods?gracePeriodSeconds=0")
    wait_for("no pods", lambda: not c.admin("GET", f"{RED}/pods")["items"])


def test_quotas_and_limits_are_read_by_members(c):
    """The control: who works in a project sees what bounds it."""
    for who in (c.ed, c.ada):
        for path in (QUOTA, LIMITS, APPLIED, f"{APPLIED}/c"):
            c.ask(who, "GET", path, want=200)
        c.ask(who, "GET", CLUSTER, want=403)
        c.ask(who, "GET", APPLIED.replace("red", "blue"), want=403)
    spaces = c.ask(c.ada, "GET", f"{APPLIED}/c", want=200)["status"]["namespaces"]
    assert {s["namespace"] for s in spaces} == {"red"}


def state(c):
    out = []
    for path in (QUOTA, LIMITS, CLUSTER):
        o = c.admin("GET", path)
        out.append((o["spec"], {k: o["metadata"].get(k) for k in ("uid", "labels", "annotations", "finalizers", "ownerReferences")}))
    return out


@pytest.mark.parametrize("path", [QUOTA, LIMITS, CLUSTER, f"{APPLIED}/c"])
def test_no_way_of_writing_changes_them(c, path):
    before = state(c)
    read = c.admin("GET", path)
    raised = {"spec": {"hard": {"count/pods": "99"}, "quota": {"hard": {"pods": "99"}}}}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": c.admin("GET", f"{RED}/configmaps/own")["metadata"]["uid"]}
    patches = [(raised, MERGE), ({**raised, "apiVersion": read["apiVersion"], "kind": read["kind"]}, APPLY),
               ([{"op": "replace", "path": "/spec", "value": {}}], JSON_PATCH),
               ({"metadata": {"finalizers": ["x.io/y"]}}, MERGE), ({"metadata": {"ownerReferences": [owner]}}, MERGE),
               ({"metadata": {"labels": {"a": "b"}}}, MERGE), ({"status": {"hard": {"count/pods": "99"}, "used": {}}}, MERGE)]
    for who in (c.ed, c.ada):
        for part in ("", "/status", "/scale", "/finalize"):
            for body, headers in patches:
                for query in ("?fieldManager=x&force=true", "?fieldManager=x&dryRun=All"):
                    status, answer = c.ask(who, "PATCH", path + part + query, body, headers=headers)
                    assert status in (403, 404, 405), (path, part, body, answer)
            assert c.ask(who, "PUT", path + part, {**read, **raised})[0] in (403, 404, 405)
        folder = path.rsplit("/", 1)[0]
        for query in ("", "?gracePeriodSeconds=0&propagationPolicy=Orphan"):
            assert c.ask(who, "DELETE", path + query)[0] in (403, 405)
            assert c.ask(who, "DELETE", folder + query)[0] in (403, 405)
        assert c.ask(who, "POST", folder, {"metadata": {"name": "more"}, "spec": {}})[0] in (403, 405)
        assert c.ask(who, "PUT", f"{folder}/more", {"metadata": {"name": "more"}, "spec": {}})[0] in (403, 404, 405)
    assert state(c) == before


def test_a_project_does_not_leave_a_quota_by_its_labels(c):
    for who in (c.ed, c.ada):
        for path in (NAMESPACE, "/apis/project.openshift.io/v1/projects/red"):
            for body, headers in (({"metadata": {"labels": {"team": "blue"}}}, MERGE), ({"metadata": {"labels": None}}, MERGE),
                                  ([{"op": "remove", "path": "/metadata/labels/team"}], JSON_PATCH)):
                c.ask(who, "PATCH", path, body, headers=headers)
    assert c.admin("GET", NAMESPACE)["metadata"]["labels"]["team"] == "red"
    assert [o["metadata"]["name"] for o in c.ask(c.ada, "GET", APPLIED, want=200)["items"]] == ["c"]


def live(c):
    return c.admin("GET", f"{RED}/pods")["items"]


def test_no_way_of_creating_is_free(c):
    """generateName, apply, PUT, parallel requests, deletions in a batch with creations, dry runs."""
    clean(c)

    def create(i):
        name = f"p{i}"
        if i % 3 == 0:
            return c.ask(c.ed, "POST", f"{RED}/pods", {**pod(name), "metadata": {"generateName": "g"}})[0]
        if i % 3 == 1:
            return c.ask(c.ed, "PATCH", f"{RED}/pods/{name}?fieldManager=x", pod(name), headers=APPLY)[0]
        return c.ask(c.ed, "POST", f"{RED}/pods", pod(name))[0]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = list(pool.map(create, range(48)))
        assert sorted(got) == [201] * 4 + [403] * 44, got
        for _ in range(3):
            futures = [pool.submit(c.ask, c.ed, "DELETE", f"{RED}/pods?gracePeriodSeconds=0")]
            futures += [pool.submit(create, 100 + i) for i in range(24)]
            concurrent.futures.wait(futures)
            assert len(live(c)) <= 4
    clean(c)
    for i in range(4):
        c.ask(c.ed, "POST", f"{RED}/pods?dryRun=All", pod(f"d{i}"), want=201)
    assert [create(3 * i + 2) for i in range(5)] == [201] * 4 + [403]
    assert c.ask(c.ed, "PUT", f"{LEASES}/a", {"metadata": {"name": "a"}})[0] == 201
    assert c.ask(c.ed, "PUT", f"{LEASES}/b", {"metadata": {"name": "b"}})[0] == 403
    assert c.ask(c.ed, "PATCH", f"{LEASES}/c?fieldManager=x", {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
                 headers=APPLY)[0] == 403
    clean(c)


def test_a_member_does_not_end_pods_on_paper(c):
    """A pod whose phase says that it has ended is free: only nodes say so."""
    clean(c)
    for i in range(4):
        c.ask(c.ed, "POST", f"{RED}/pods", pod(f"p{i}"), want=201)
    for who in (c.ed, c.ada):
        for body in ({"status": {"phase": "Succeeded"}}, {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}):
            for part in ("", "/status", "/ephemeralcontainers", "/resize"):
                c.ask(who, "PATCH", f"{RED}/pods/p0{part}", body, headers=MERGE)
        failed = pod("made")
        failed["status"] = {"phase": "Failed"}
        c.ask(who, "POST", f"{RED}/pods", failed, want=403)
        mirror = pod("mirror")
        mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        assert c.ask(who, "POST", f"{RED}/pods", mirror)[0] in (403, 422)
    assert [o["status"]["phase"] for o in live(c)] == ["Pending"] * 4
    # A pod in deletion counts until it is gone, with or without finalizers.
    c.ask(c.ed, "PATCH", f"{RED}/pods/p0", {"metadata": {"finalizers": ["x.io/y"]}}, headers=MERGE, want=200)
    c.ask(c.ed, "DELETE", f"{RED}/pods/p0?gracePeriodSeconds=0", want=200)
    c.ask(c.ed, "POST", f"{RED}/pods", pod("next"), want=403)
    c.ask(c.ed, "PATCH", f"{RED}/pods/p0", {"metadata": {"finalizers": None}}, headers=MERGE, want=200)
    wait_for("its end", lambda: c.ask(c.ed, "GET", f"{RED}/pods/p0")[0] == 404)
    c.ask(c.ed, "POST", f"{RED}/pods", pod("next"), want=201)
    clean(c)


def test_objects_of_custom_kinds_are_counted(c):
    c.admin("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",
                                                                 "listKind": "WidgetList"},
        "versions": [{"name": v, "served": True, "storage": v == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
                     for v in ("v1", "v2")]}}, 201)
    c.role("red", "widgets", {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["*"]})
    c.bind("red", "widgets", "widgets", user="ed", kind="Role")

    def make(version, name):
        return c.ask(c.ed, "POST", f"/apis/example.com/{version}/namespaces/red/widgets",
                     {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": name}})[0]
    wait_for("the kind and the right", lambda: make("v1", "a") in (201, 409))
    assert make("v2", "b") == 403 and make("v1", "c") == 403
    c.ask(c.ed, "PATCH", "/apis/example.com/v2/namespaces/red/widgets/d?fieldManager=x",
          {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "d"}}, headers=APPLY, want=403)


def test_controllers_are_no_way_around(c):
    """What a Deployment makes is counted like what its owner makes."""
    clean(c)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path = "/apis/apps/v1/namespaces/red/deployments"
    c.ask(c.ed, "POST", path, {"metadata": {"name": "d"}, "spec": {"replicas": 9, "selector": {"matchLabels": {"a": "b"}},
                                                                   "template": template}}, want=201)

    def failed():
        conditions = c.admin("GET", f"{path}/d")["status"].get("conditions", [])
        return any("exceeded quota: c" in (x.get("message") or "") for x in conditions)
    wait_for("the refusal", failed)
    assert len(live(c)) == 4
    c.ask(c.ed, "POST", path, {"metadata": {"name": "e"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}},
          want=403)
    c.ask(c.ed, "DELETE", f"{path}/d", want=200)
    wait_for("no pods of it", lambda: not [o for o in live(c) if not o["metadata"].get("deletionTimestamp")])
    clean(c)


def test_other_projects_are_not_bounded(c):
    for i in range(6):
        c.admin("POST", f"{BLUE}/pods", pod(f"q{i}"), 201)
    c.admin("DELETE", f"{BLUE}/pods?gracePeriodSeconds=0")
