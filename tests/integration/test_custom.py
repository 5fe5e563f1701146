# SPDX-License-Identifier: Apache-2.0
"""Kinds that users add, and what ends with what: CustomResourceDefinitions, namespaces, owner references."""
import concurrent.futures
import copy
import json
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.request

import pytest

from lab import wait_for
from test_registry import Master

WIDGETS = "/apis/example.com/v1/namespaces/{}/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
        "versions": [
            {"name": "v1", "served": True, "storage": True,
             "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                      "statusReplicasPath": ".status.replicas"}},
             "selectableFields": [{"jsonPath": ".spec.color"}],
             "additionalPrinterColumns": [
                 {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                 {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                 {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                  "priority": 1}],
             "schema": {"openAPIV3Schema": {
                 "type": "object", "description": "A thing with a colour.", "required": ["spec"],
                 "properties": {
                     "spec": {"type": "object", "required": ["color"], "properties": {
                         "color": {"type": "string", "enum": ["red", "green"]},
                         "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
                         "note": {"type": "string", "pattern": "^[a-z ]*$"}}},
                     "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}},
            {"name": "v1beta1", "served": True, "storage": False, "deprecated": True,
             "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}},
        ]}}


def widget(name, color="red", ns="default", **meta):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": ns, **meta},
            "spec": {"color": color}}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def owner_of(obj, **more):
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"],
            "uid": obj["metadata"]["uid"], **more}


class Cluster(Master):
    def post(self, path, obj, want=201):
        status, answer = self.call("POST", path, obj)
        assert status == want, answer
        return answer

    def define(self, crd=CRD):
        self.post(CRDS, crd)
        name = crd["metadata"]["name"]
        wait_for("the definition to be established", lambda: self.condition(CRDS + "/" + name, "Established"))

    def condition(self, path, kind):
        conditions = self.call("GET", path)[1].get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind and c["status"] == "True"), None)

    def widget(self, name, ns="default", **kw):
        return self.post(WIDGETS.format(ns), widget(name, ns=ns, **kw))

    def names(self, ns="default"):
        return sorted(w["metadata"]["name"] for w in self.items(WIDGETS.format(ns)))

    def is_gone(self, path):
        return self.call("GET", path)[0] == 404

    def merge(self, path, patch, want=200):
        status, answer = self.call("PATCH", path, patch, ctype="application/merge-patch+json")
        assert status == want, answer
        return answer


@pytest.fixture
def cluster():
    with tempfile.TemporaryDirectory(prefix="tenet-custom-") as tmp:
        m = Cluster(tmp)
        yield m
        m.stop(signal.SIGKILL)


@pytest.fixture
def widgets(cluster):
    cluster.define()
    return cluster


# ---- definitions ----

def test_kubectl_with_a_kind_of_its_own(cluster, tmp_path):
    crd, one = tmp_path / "crd.json", tmp_path / "widget.json"
    crd.write_text(json.dumps(CRD))
    one.write_text(json.dumps(widget("a")))
    assert "widgets.example.com created" in cluster.kubectl("create", "-f", crd).stdout
    cluster.kubectl("wait", "--for=condition=established", "crd/widgets.example.com", "--timeout=30s")
    resources = cluster.kubectl("api-resources", "--api-group=example.com").stdout
    assert "widgets" in resources and "wd" in resources and "Widget" in resources
    assert "example.com/v1\n" in cluster.kubectl("api-versions").stdout
    assert "created" in cluster.kubectl("apply", "-f", one).stdout
    assert "unchanged" in cluster.kubectl("apply", "-f", one).stdout
    lines = cluster.kubectl("get", "wd").stdout.splitlines()
    assert lines[0].split() == ["NAME", "COLOR", "REPLICAS"] and lines[1].split() == ["a", "red", "1"]
    assert "READY" in cluster.kubectl("get", "widgets", "-o", "wide").stdout.splitlines()[0]
    assert "widget.example.com/a" in cluster.kubectl("get", "all").stdout
    cluster.kubectl("patch", "widget", "a", "--type=merge", "-p", '{"spec":{"color":"green"}}')
    assert cluster.kubectl("get", "wd", "a", "-o", "jsonpath={.spec.color}").stdout == "green"
    explained = cluster.kubectl("explain", "widgets.spec").stdout
    assert "color" in explained and "replicas" in explained and "<integer>" in explained
    applied = tmp_path / "applied.json"
    applied.write_text(json.dumps({**widget("a"), "spec": {"color": "green", "note": "mine"}}))
    assert "serverside-applied" in cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", applied).stdout
    assert cluster.kubectl("get", "wd", "a", "-o", "jsonpath={.spec.note}").stdout == "mine"
    assert "scaled" in cluster.kubectl("scale", "--replicas=3", "widgets/a").stdout
    assert cluster.kubectl("get", "wd", "--field-selector", "spec.color=green", "-o", "name").stdout.split() == \
        ["widget.example.com/a"]
    assert cluster.kubectl("get", "wd", "--field-selector", "spec.color=red", "-o", "name").stdout == ""
    wrong = cluster.kubectl("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"color":"blue","note":"A"}}',
                            check=False)
    assert wrong.returncode == 1
    assert 'spec.color: Unsupported value: "blue": supported values: "red", "green"' in wrong.stderr.replace(
        '"green", "red"', '"red", "green"')
    assert "spec.note" in wrong.stderr
    assert "deleted" in cluster.kubectl("delete", "wd", "a").stdout
    cluster.kubectl("apply", "-f", one)
    assert "deleted" in cluster.kubectl("delete", "crd", "widgets.example.com").stdout  # waits
    assert cluster.kubectl("get", "widgets", check=False).returncode == 1
    assert cluster.call("GET", "/apis/example.com")[0] == 404


def test_our_client_learns_kinds(widgets, tmp_path):
    file = tmp_path / "w.json"
    file.write_text(json.dumps(widget("a")))
    assert "widget.example.com/a created" in widgets.tenet("create", "-f", file).stdout
    assert widgets.tenet("get", "wd").stdout.splitlines()[1].split() == ["a", "red", "1"]
    assert "widget.example.com/a" in widgets.tenet("get", "all").stdout
    assert "Color:" in widgets.tenet("describe", "widget", "a").stdout
    assert "deleted" in widgets.tenet("delete", "widgets", "a").stdout
    assert "doesn't have a resource type" in widgets.tenet("get", "gadgets", check=False).stderr


def test_subresources_and_versions(widgets):
    w = widgets.widget("a")
    path = WIDGETS.format("default") + "/a"
    assert w["metadata"]["generation"] == 1 and "status" not in w
    # Status and the rest do not touch each other.
    widgets.merge(path + "/status", {"status": {"replicas": 2, "phase": "Up"}, "spec": {"color": "green"}})
    w = widgets.merge(path, {"status": {"phase": "Down"}, "spec": {"replicas": 4}})
    assert w["status"] == {"replicas": 2, "phase": "Up"} and w["spec"] == {"color": "red", "replicas": 4}
    assert w["metadata"]["generation"] == 2
    scale = widgets.call("GET", path + "/scale")[1]
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"]["replicas"] == 4 and scale["status"]["replicas"] == 2
    scale["spec"]["replicas"] = 7
    assert widgets.call("PUT", path + "/scale", scale)[1]["spec"]["replicas"] == 7
    scale["spec"]["replicas"] = -1
    assert widgets.call("PUT", path + "/scale", scale)[0] in (400, 409)
    assert widgets.call("GET", path)[1]["spec"]["replicas"] == 7
    # The same object in another version, also written and watched.
    beta = path.replace("/v1/", "/v1beta1/")
    with urllib.request.urlopen(f"http://127.0.0.1:{widgets.port}{beta}") as r:
        assert "deprecated" in r.headers["Warning"]
        assert json.load(r)["apiVersion"] == "example.com/v1beta1"
    assert widgets.merge(beta, {"spec": {"color": "green"}})["apiVersion"] == "example.com/v1beta1"
    assert {w["apiVersion"] for w in widgets.items(WIDGETS.format("default").replace("/v1/", "/v1beta1/"))} == \
        {"example.com/v1beta1"}
    assert widgets.call("GET", path)[1]["spec"]["color"] == "green"
    groups = {g["name"]: g for g in widgets.call("GET", "/apis")[1]["groups"]}
    assert [v["version"] for v in groups["example.com"]["versions"]] == ["v1", "v1beta1"]
    assert groups["example.com"]["preferredVersion"]["version"] == "v1"
    # An update without the version it is based on is refused; strategic patches are not for kinds of users.
    status, answer = widgets.call("PUT", path, widget("a"))
    assert status == 422 and "must be specified for an update" in answer["message"]
    assert widgets.call("PATCH", path, {}, ctype="application/strategic-merge-patch+json")[0] == 415


def test_a_scale_is_patched_and_applied(widgets):
    path = WIDGETS.format("default") + "/a"
    mine = {**widget("a"), "spec": {"color": "red", "replicas": 2}}

    def apply(body, manager, at=path + "/scale", force=""):
        return widgets.call("PATCH", f"{at}?fieldManager={manager}{force}", body,
                            ctype="application/apply-patch+yaml")

    def scale_to(n, **meta):
        return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", **meta},
                "spec": {"replicas": n}}

    def managers(obj):
        return {(m["manager"], m["operation"], m.get("subresource"), m["apiVersion"],
                 json.dumps(m["fieldsV1"].get("f:spec"), sort_keys=True)) for m in obj["metadata"]["managedFields"]}

    # There is nothing to be made by a scale.
    assert apply(scale_to(3), "sizer")[0] == 404
    made = apply(mine, "owner", at=path)[1]
    # Who has the number is told, in the terms of a Scale; others are not.
    widgets.merge(path + "?fieldManager=painter", {"spec": {"note": "x"}})
    scale = widgets.call("GET", path + "/scale")[1]
    number = '{"f:replicas": {}}'
    assert managers(scale) == {("owner", "Apply", None, "autoscaling/v1", number)}
    # Another value is a conflict until it is forced; then it is the sizer's, and the other fields stay the owner's.
    status, answer = apply(scale_to(5), "sizer")
    assert (status, answer["reason"]) == (409, "Conflict")
    assert answer["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "field": ".spec.replicas", "message": 'conflict with "owner"'}]
    status, scale = apply(scale_to(5), "sizer", force="&force=true")
    assert status == 200 and scale["kind"] == "Scale" and scale["spec"]["replicas"] == 5
    assert managers(scale) == {("sizer", "Apply", "scale", "autoscaling/v1", number)}
    now = widgets.call("GET", path)[1]
    assert now["spec"] == {"color": "red", "replicas": 5, "note": "x"}
    assert now["metadata"]["generation"] == made["metadata"]["generation"] + 2
    assert ("sizer", "Apply", "scale", "example.com/v1", number) in managers(now)
    assert ("owner", "Apply", None, "example.com/v1", '{"f:color": {}}') in managers(now)
    # Again it changes nothing, not even the version; a dry run shows what would be.
    assert apply(scale_to(5), "sizer")[1]["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
    assert apply(scale_to(9), "sizer", force="&dryRun=All")[1]["spec"]["replicas"] == 9
    assert widgets.call("GET", path)[1]["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
    # The other patches take it over: an update through the subresource.
    assert widgets.merge(path + "/scale?fieldManager=m", {"spec": {"replicas": 4}})["spec"]["replicas"] == 4
    assert managers(widgets.call("GET", path + "/scale")[1]) == {("m", "Update", "scale", "autoscaling/v1", number)}
    status, scale = widgets.call("PATCH", path + "/scale", [{"op": "test", "path": "/spec/replicas", "value": 4},
                                                           {"op": "replace", "path": "/spec/replicas", "value": 6}],
                                 ctype="application/json-patch+json")
    assert status == 200 and scale["spec"]["replicas"] == 6
    status, answer = widgets.call("PATCH", path + "/scale", {"spec": {"replicas": 1}},
                                  ctype="application/strategic-merge-patch+json")
    assert (status, answer["reason"]) == (415, "UnsupportedMediaType")
    # What is not a Scale of this object, of an older state of it, or not allowed by its schema.
    for bad in (mine, scale_to(-1), scale_to("3"), {**scale_to(3), "apiVersion": "autoscaling/v2"},
                scale_to(3, name="b"), scale_to(3, namespace="kube-system"), [1]):
        assert apply(bad, "sizer", force="&force=true")[0] == 400, bad
    assert apply(scale_to(3, resourceVersion="1"), "sizer", force="&force=true")[0] == 409
    status, answer = apply(scale_to(11), "sizer", force="&force=true")
    assert status == 400 and "spec.replicas" in answer["message"]
    assert apply(scale_to(3), "")[0] == 422
    assert widgets.call("GET", path)[1]["spec"]["replicas"] == 6
    # Given up by the only one who has it, the number is the schema's default.
    assert apply(scale_to(8), "sizer", force="&force=true")[0] == 200
    status, scale = apply({**scale_to(0), "spec": {}}, "sizer")
    assert status == 200 and scale["spec"]["replicas"] == 1


def read_events(url, events):
    try:
        with urllib.request.urlopen(url, timeout=60) as r:
            for line in r:
                events.append(json.loads(line))
    except OSError:
        pass
    events.append(None)


def test_watches_of_two_versions_see_the_same(widgets):
    seen = {}
    for version in ("v1", "v1beta1"):
        seen[version] = []
        url = f"http://127.0.0.1:{widgets.port}/apis/example.com/{version}/widgets?watch=1&timeoutSeconds=50"
        threading.Thread(target=read_events, args=(url, seen[version]), daemon=True).start()
    widgets.widget("a")
    widgets.merge(WIDGETS.format("default") + "/a", {"spec": {"color": "green"}})
    widgets.call("DELETE", WIDGETS.format("default") + "/a")
    for version, events in seen.items():
        wait_for("the deletion to be told", lambda e=events: e and e[-1] and e[-1]["type"] == "DELETED")
        assert {e["object"]["apiVersion"] for e in events} == {f"example.com/{version}"}
        assert events[-1]["object"]["spec"]["color"] == "green"


def test_a_changed_definition_changes_what_is_there(widgets):
    widgets.widget("a")
    widgets.merge(WIDGETS.format("default") + "/a", {"spec": {"note": "hello"}})
    events = []
    url = f"http://127.0.0.1:{widgets.port}/apis/example.com/v1/widgets?watch=1&timeoutSeconds=50"
    threading.Thread(target=read_events, args=(url, events), daemon=True).start()
    wait_for("the watch", lambda: events)
    crd = widgets.call("GET", CRDS + "/widgets.example.com")[1]
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del fields["note"]
    fields["size"] = {"type": "string", "default": "small"}
    crd["spec"]["versions"][1]["served"] = False
    status, crd = widgets.call("PUT", CRDS + "/widgets.example.com", crd)
    assert status == 200, crd
    # Old watches end, so that none goes on in the old shape.
    wait_for("the watch to end", lambda: events[-1] is None)
    w = widgets.call("GET", WIDGETS.format("default") + "/a")[1]
    assert w["spec"] == {"color": "red", "replicas": 1, "size": "small"}
    assert widgets.is_gone("/apis/example.com/v1beta1/widgets")
    # Another version is stored; what was stored in the first stays readable, and the version named.
    crd["spec"]["versions"][1].update(served=True, storage=True)
    crd["spec"]["versions"][0].update(storage=False)
    status, crd = widgets.call("PUT", CRDS + "/widgets.example.com", crd)
    assert status == 200, crd
    wait_for("both versions to be named",
             lambda: widgets.call("GET", CRDS + "/widgets.example.com")[1]["status"]["storedVersions"]
             == ["v1", "v1beta1"])
    assert widgets.call("GET", WIDGETS.format("default") + "/a")[1]["spec"]["color"] == "red"
    widgets.stop()
    widgets.start()
    assert widgets.names() == ["a"]


def test_definitions_and_objects_survive_a_restart(widgets):
    version = widgets.widget("a")["metadata"]["resourceVersion"]
    widgets.widget("b")
    widgets.stop(signal.SIGKILL)
    widgets.start()
    assert widgets.names() == ["a", "b"]
    # A watch from before the restart goes on where it was.
    events = []
    url = (f"http://127.0.0.1:{widgets.port}{WIDGETS.format('default')}?watch=1&timeoutSeconds=50"
           f"&resourceVersion={version}")
    threading.Thread(target=read_events, args=(url, events), daemon=True).start()
    wait_for("the event of b", lambda: events)
    assert events[0]["type"] == "ADDED" and events[0]["object"]["metadata"]["name"] == "b"


def test_names_belong_to_the_first(widgets):
    other = copy.deepcopy(CRD)
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Gadget", "shortNames": ["wd"]}
    widgets.post(CRDS, other)

    def refused():
        for c in widgets.call("GET", CRDS + "/gadgets.example.com")[1].get("status", {}).get("conditions", []):
            if c["type"] == "NamesAccepted" and c["status"] == "False":
                return c
    condition = wait_for("the names to be refused", refused)
    assert condition["reason"] == "ShortNamesConflict" and '"wd" is already in use' in condition["message"]
    assert widgets.is_gone("/apis/example.com/v1/gadgets")
    widgets.call("DELETE", CRDS + "/widgets.example.com")
    wait_for("the name to be free", lambda: widgets.condition(CRDS + "/gadgets.example.com", "Established"))
    assert widgets.call("GET", "/apis/example.com/v1/gadgets")[0] == 200
    # What is compiled in cannot be taken over.
    taken = copy.deepcopy(CRD)
    taken["metadata"]["name"] = "hostsubnets.network.openshift.io"
    taken["spec"].update(group="network.openshift.io", names={"plural": "hostsubnets", "kind": "HostSubnet"})
    widgets.post(CRDS, taken)
    wait_for("the condition", lambda: any(
        c["status"] == "False" for c in widgets.call("GET", CRDS + "/hostsubnets.network.openshift.io")[1].get(
            "status", {}).get("conditions", [])))
    widgets.call("DELETE", CRDS + "/hostsubnets.network.openshift.io")
    wait_for("it to go", lambda: widgets.is_gone(CRDS + "/hostsubnets.network.openshift.io"))
    assert widgets.call("GET", "/apis/network.openshift.io/v1/hostsubnets")[0] == 200


def test_objects_go_before_their_definition(widgets):
    widgets.post("/api/v1/namespaces", namespace("red"))
    widgets.widget("a")
    widgets.widget("b", ns="red", finalizers=["example.com/wait"])
    widgets.call("DELETE", CRDS + "/widgets.example.com")
    wait_for("a to go", lambda: widgets.names() == [])
    assert wait_for("it to be told", lambda: widgets.condition(CRDS + "/widgets.example.com", "Terminating"))
    assert widgets.call("POST", WIDGETS.format("default"), widget("c"))[0] == 405
    widgets.merge(WIDGETS.format("red") + "/b", {"metadata": {"finalizers": None}})
    wait_for("the definition to go", lambda: widgets.is_gone(CRDS + "/widgets.example.com"))
    # Nothing comes back with a new one.
    widgets.define()
    assert widgets.names() == [] and widgets.names("red") == []
    # Nor when somebody takes the finalizer away.
    widgets.widget("c")
    widgets.merge(CRDS + "/widgets.example.com", {"metadata": {"finalizers": None}})
    widgets.call("DELETE", CRDS + "/widgets.example.com")
    wait_for("the definition to go", lambda: widgets.is_gone(CRDS + "/widgets.example.com"))
    widgets.define()
    assert widgets.names() == []
    widgets.stop()
    widgets.start()
    assert widgets.names() == []


@pytest.fixture
def etcd():
    with tempfile.TemporaryDirectory(prefix="tenet-custom-etcd-") as tmp:
        with socket.socket() as a, socket.socket() as b:
            a.bind(("127.0.0.1", 0))
            b.bind(("127.0.0.1", 0))
            client, peer = (f"http://127.0.0.1:{s.getsockname()[1]}" for s in (a, b))
        p = subprocess.Popen(["etcd", "--data-dir", tmp, "--listen-client-urls", client, "--advertise-client-urls",
                              client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                              "--initial-cluster", f"default={peer}"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        yield client
        p.kill()
        p.wait()


def test_two_masters_serve_the_same_kinds(etcd):
    with tempfile.TemporaryDirectory(prefix="tenet-custom-") as x, \
            tempfile.TemporaryDirectory(prefix="tenet-custom-") as y:
        masters = []
        try:
            for folder in (x, y):
                masters.append(Cluster(folder, storage={"backend": "etcd", "endpoints": etcd}))
            one, two = masters
            # Many definitions at once, on both, which want the same names: all but one of each pair lose.
            crds = []
            for i in range(8):
                crd = copy.deepcopy(CRD)
                crd["metadata"]["name"] = f"things{i}.example.com"
                crd["spec"]["names"] = {"plural": f"things{i}", "kind": f"Thing{i}", "shortNames": [f"t{i // 2}"]}
                crds.append(crd)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda i: masters[i % 2].post(CRDS, crds[i]), range(8)))

            def established(m):
                found = {c["metadata"]["name"]: {k["type"]: k["status"] for k in c["status"]["conditions"]}
                         for c in m.items(CRDS) if c.get("status", {}).get("conditions")}
                return found if len(found) == 8 else None
            wait_for("all to be settled", lambda: established(one))
            wait_for("both to have the same", lambda: established(one) == established(two))
            winners = [n for n, c in established(one).items() if c["Established"] == "True"]
            assert len(winners) == 4 and len({int(n[6]) // 2 for n in winners}) == 4
            for name in winners:
                plural = name.split(".")[0]
                path = f"/apis/example.com/v1/namespaces/default/{plural}"
                thing = {"apiVersion": "example.com/v1", "kind": plural.capitalize()[:-2] + plural[-1],
                         "metadata": {"name": "a"}, "spec": {"color": "red"}}
                wait_for("one to serve it", lambda p=path: one.call("GET", p)[0] == 200)
                one.post(path, thing)
                wait_for("the other to have it", lambda p=path: [
                    t["metadata"]["name"] for t in two.call("GET", p)[1].get("items", [])] == ["a"])
            one.call("DELETE", CRDS + "/" + winners[0])
            wait_for("it to go on both", lambda: all(
                m.is_gone(f"/apis/example.com/v1/{winners[0].split('.')[0]}") for m in masters))
        finally:
            for m in masters:
                m.stop(signal.SIGKILL)


# ---- namespaces ----

def test_a_namespace_is_emptied_of_every_kind(widgets):
    widgets.post("/api/v1/namespaces", namespace("red"))
    widgets.widget("a", ns="red")
    widgets.widget("b", ns="red", finalizers=["example.com/wait"])
    widgets.post("/api/v1/namespaces/red/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert widgets.call("DELETE", "/api/v1/namespaces/red")[1]["status"]["phase"] == "Terminating"
    wait_for("what can go to be gone", lambda: widgets.names("red") == ["b"])
    status, answer = widgets.call("POST", WIDGETS.format("red"), widget("c", ns="red"))
    assert status == 403 and answer["reason"] == "Forbidden"
    assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    left = wait_for("what remains to be told",
                    lambda: widgets.condition("/api/v1/namespaces/red", "NamespaceContentRemaining"))
    assert "widgets.example.com has 1 resource instances" in left["message"]
    waits = wait_for("the finalizer to be told",
                     lambda: widgets.condition("/api/v1/namespaces/red", "NamespaceFinalizersRemaining"))
    assert "example.com/wait in 1 resource instances" in waits["message"]
    widgets.merge(WIDGETS.format("red") + "/b", {"metadata": {"finalizers": None}})
    wait_for("the namespace to go", lambda: widgets.is_gone("/api/v1/namespaces/red"))
    assert widgets.items("/api/v1/pods") == []


def test_namespaces_a_cluster_needs_stay(cluster):
    status, answer = cluster.call("DELETE", "/api/v1/namespaces/default")
    assert status == 403 and "this namespace may not be deleted" in answer["message"]


# ---- nodes ----

def test_a_node_is_reached_by_its_name_unless_said_otherwise(cluster):
    """NODE-13, NODE-15, NODE-20: a name is all a Node needs; externalID is the name; no namespace."""
    node = cluster.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "node1.example.com", "labels": {"kubernetes.io/hostname": "node1.example.com"}}})
    assert node["spec"]["externalID"] == "node1.example.com" and "namespace" not in node["metadata"]
    other = cluster.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"},
                                           "spec": {"externalID": "10.0.0.2"}})
    assert other["spec"]["externalID"] == "10.0.0.2"
    assert cluster.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {}}, 422)["details"][
        "causes"][0]["field"] == "metadata.name"
    assert cluster.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "n3", "namespace": "default"}}, 422)
    lines = cluster.kubectl("get", "nodes", "-l", "kubernetes.io/hostname=node1.example.com").stdout.splitlines()
    assert lines[0].split()[0] == "NAME" and lines[1].split()[0] == "node1.example.com"
    # Cordoned: the role stays, no new pods are wanted.
    cluster.kubectl("cordon", "node1.example.com")
    assert "SchedulingDisabled" in cluster.kubectl("get", "node", "node1.example.com").stdout


# ---- owners ----

def delete(cluster, name, policy, ns="default"):
    status, answer = cluster.call("DELETE", f"{WIDGETS.format(ns)}/{name}",
                                  {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})
    assert status == 200, answer
    return answer


def test_dependents_follow_their_owner(widgets):
    owner = widgets.widget("owner")
    child = widgets.widget("child", ownerReferences=[owner_of(owner)])
    widgets.widget("grandchild", ownerReferences=[owner_of(child)])
    widgets.widget("stranger")
    delete(widgets, "owner", "Background")
    wait_for("the dependents to go", lambda: widgets.names() == ["stranger"])


def test_foreground_deletion_waits_for_what_blocks_it(widgets):
    owner = widgets.widget("owner")
    widgets.widget("blocks", finalizers=["example.com/wait"],
                   ownerReferences=[owner_of(owner, blockOwnerDeletion=True)])
    widgets.widget("free", finalizers=["example.com/wait"], ownerReferences=[owner_of(owner)])
    marked = delete(widgets, "owner", "Foreground")
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    path = WIDGETS.format("default")
    wait_for("the dependents to be asked to go", lambda: all(
        "deletionTimestamp" in widgets.call("GET", f"{path}/{n}")[1]["metadata"] for n in ("blocks", "free")))
    assert "owner" in widgets.names()
    widgets.merge(path + "/blocks", {"metadata": {"finalizers": None}})
    wait_for("the owner to go", lambda: widgets.names() == ["free"])
    widgets.merge(path + "/free", {"metadata": {"finalizers": None}})
    assert widgets.names() == []


def test_orphans_stay(widgets):
    owner = widgets.widget("owner")
    widgets.widget("child", ownerReferences=[owner_of(owner)])
    delete(widgets, "owner", "Orphan")
    wait_for("the owner to go", lambda: widgets.names() == ["child"])
    assert "ownerReferences" not in widgets.call("GET", WIDGETS.format("default") + "/child")[1]["metadata"]


def test_one_owner_is_enough(widgets):
    first, second = widgets.widget("first"), widgets.widget("second")
    widgets.widget("child", ownerReferences=[owner_of(first), owner_of(second)])
    delete(widgets, "first", "Background")
    path = WIDGETS.format("default") + "/child"
    wait_for("the reference to go", lambda: [
        r["name"] for r in widgets.call("GET", path)[1]["metadata"]["ownerReferences"]] == ["second"])


def test_who_waits_for_each_other_goes_together(widgets):
    a = widgets.widget("a")
    b = widgets.widget("b", ownerReferences=[owner_of(a, blockOwnerDeletion=True)])
    widgets.merge(WIDGETS.format("default") + "/a",
                  {"metadata": {"ownerReferences": [owner_of(b, blockOwnerDeletion=True)]}})
    delete(widgets, "a", "Foreground")
    wait_for("both to go", lambda: widgets.names() == [])


def test_owners_that_are_not_there(widgets):
    widgets.post("/api/v1/namespaces", namespace("red"))
    node = widgets.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    other = widgets.widget("other", ns="red")
    kept = widgets.widget("kept")
    # Never there; another one of that name; in another namespace.
    widgets.widget("absent", ownerReferences=[{**owner_of(kept), "name": "nobody", "uid": "0-0"}])
    widgets.widget("replaced", ownerReferences=[{**owner_of(kept), "uid": "0-1"}])
    widgets.widget("elsewhere", ownerReferences=[owner_of(other)])
    # Owners without a namespace are fine; owners of an unknown kind are not taken for absent.
    widgets.widget("of-node", ownerReferences=[owner_of(node)])
    widgets.widget("unknown", ownerReferences=[{"apiVersion": "no.example.com/v1", "kind": "Such", "name": "x",
                                                "uid": "0-2"}])
    wait_for("the garbage to go", lambda: widgets.names() == ["kept", "of-node", "unknown"])
    # One without a namespace cannot be owned by one that has one.
    widgets.post("/api/v1/namespaces", {**namespace("blue"), "metadata": {
        "name": "blue", "ownerReferences": [owner_of(kept)]}})
    wait_for("it to be told", lambda: [
        e for e in widgets.items("/api/v1/events") if e["reason"] == "OwnerRefInvalidNamespace"])
    assert widgets.call("GET", "/api/v1/namespaces/blue")[1]["status"]["phase"] == "Active"
    widgets.call("DELETE", "/api/v1/nodes/n")
    wait_for("the node's widget to go", lambda: widgets.names() == ["kept", "unknown"])


def test_garbage_is_collected_after_a_crash(widgets):
    owner = widgets.widget("owner")
    for i in range(20):
        widgets.widget(f"child{i}", ownerReferences=[owner_of(owner)])
    delete(widgets, "owner", "Background")
    widgets.stop(signal.SIGKILL)
    widgets.start()
    wait_for("the dependents to go", lambda: widgets.names() == [])
