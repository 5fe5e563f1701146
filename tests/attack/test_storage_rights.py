# SPDX-License-Identifier: Apache-2.0
"""Volumes: what a member of a project and the holder of a node's certificate can do with them beyond their own."""
import pytest

from lab import wait_for
from people import BLUE, JSON_PATCH, MERGE, RED, People, pod
from test_project_member import refused

PVS, SC = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses"
CAPACITY = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities"
ATTACH = "/apis/storage.k8s.io/v1/volumeattachments"
SELECTED = "volume.kubernetes.io/selected-node"


def volume(name, node=None, source=None, klass="", policy="Retain", **spec):
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}} if node else {}
    return {"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": policy,
        "storageClassName": klass, **affinity, **(source or {"nfs": {"path": "/tmp", "server": "172.17.0.2"}}), **spec}}


def claim(name, klass="", node=None, **spec):
    return {"metadata": {"name": name, **({"annotations": {SELECTED: node}} if node else {})}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": klass, **spec}}


def binding(name, target):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "PersistentVolume", "name": target}}


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    c = People(str(tmp_path_factory.mktemp("storage")))
    c.node, c.other = (c.user(f"system:node:n{i}", "system:nodes") for i in (1, 2))
    c.admin("POST", SC, {"metadata": {"name": "local"}, "provisioner": "tenet.io/local", "volumeBindingMode": "WaitForFirstConsumer"}, 201)
    c.admin("POST", SC, {"metadata": {"name": "ext"}, "provisioner": "example.com/disk"}, 201)
    c.admin("POST", PVS, volume("blues"), 201)
    c.admin("POST", f"{BLUE}/persistentvolumeclaims", claim("theirs"), 201)
    wait_for("the claim", lambda: c.admin("GET", f"{BLUE}/persistentvolumeclaims/theirs")["status"].get("phase") == "Bound")
    yield c
    c.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def phase(c, path):
    return c.admin("GET", path).get("status", {}).get("phase")


# ---- a member of a project ----

def test_volumes_and_bindings_are_not_a_members(c):
    """The control is test_a_member_uses_what_is_free."""
    host = volume("host", source={"hostPath": {"path": "/"}}, claimRef={"namespace": "red", "name": "x"})
    for who in (c.ed, c.ada, c.nobody):
        table = [("make a volume of the host", "POST", PVS, host), ("make a volume", "POST", PVS, volume("mine")),
                 ("take a volume", "PATCH", f"{PVS}/blues", {"spec": {"claimRef": {"namespace": "red", "name": "x"}}}, MERGE),
                 ("free a volume", "PATCH", f"{PVS}/blues", [{"op": "remove", "path": "/spec/claimRef"}], JSON_PATCH),
                 ("its status", "PATCH", f"{PVS}/blues/status", {"status": {"phase": "Available"}}, MERGE),
                 ("delete a volume", "DELETE", f"{PVS}/blues"), ("make a class", "POST", SC, {"metadata": {"name": "x"},
                     "provisioner": "p"}), ("attach", "POST", ATTACH, {"metadata": {"name": "x"}}),
                 ("see attachments", "GET", ATTACH), ("capacity", "POST", CAPACITY, {"metadata": {"name": "x"},
                     "storageClassName": "local"}),
                 ("bind their claim", "POST", f"{BLUE}/persistentvolumeclaims/theirs/binding", binding("theirs", "blues")),
                 ("see their claim", "GET", f"{BLUE}/persistentvolumeclaims/theirs"),
                 ("make a claim there", "POST", f"{BLUE}/persistentvolumeclaims", claim("x")),
                 ("delete their claim", "DELETE", f"{BLUE}/persistentvolumeclaims/theirs")]
        assert refused(c, who, table) == []
    c.admin("POST", PVS, volume("spare", klass="other"), 201)
    c.ask(c.ed, "POST", f"{RED}/persistentvolumeclaims", claim("bound-by-hand"), want=201)
    for who in (c.ed, c.ada):
        table = [("bind its own claim", "POST", f"{RED}/persistentvolumeclaims/bound-by-hand/binding", binding("bound-by-hand", "spare")),
                 ("write its status", "PATCH", f"{RED}/persistentvolumeclaims/bound-by-hand/status",
                  {"status": {"phase": "Bound"}}, MERGE)]
        assert refused(c, who, table) == []


@pytest.mark.parametrize("notes", [{}, {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}])
def test_a_claim_that_names_anothers_volume_gets_nothing(c, notes):
    """By spec.volumeName alone, and with the annotations of a claim that is bound."""
    name = "thief" if notes else "asks"
    body = claim(name, volumeName="blues")
    body["metadata"]["annotations"] = notes
    c.ask(c.ed, "POST", f"{RED}/persistentvolumeclaims", body, want=201)
    path = f"{RED}/persistentvolumeclaims/{name}"
    reason = "ClaimMisbound" if notes else "FailedBinding"
    wait_for("the event", lambda: [e for e in c.admin("GET", f"{RED}/events")["items"] if e["reason"] == reason and
                                   e["involvedObject"]["name"] == name])
    wait_for("the phase", lambda: phase(c, path) == ("Lost" if notes else "Pending"))
    v = c.admin("GET", f"{PVS}/blues")
    assert v["spec"]["claimRef"]["namespace"] == "blue" and v["status"]["phase"] == "Bound"
    # Not even the binder's own verb gives it away.
    status, answer = c.ask(c._admin, "POST", f"{path}/binding", binding(name, "blues"))
    assert status == 409 and "different claim" in answer["message"], answer
    # A node that runs a pod of the thief reads the claim, and not the volume.
    c.ask(c.ed, "POST", f"{RED}/pods", pod(f"uses-{name}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}]),
          want=201)
    c.admin("POST", f"{RED}/pods/uses-{name}/binding", {"target": {"name": "n1"}}, 201)
    c.ask(c.node, "GET", path, want=200)
    assert c.ask(c.node, "GET", f"{PVS}/blues")[0] == 403


def test_a_claim_made_again_is_another_one(c):
    """A volume that is released stays so when a claim of the same name comes: its data is the former claim's."""
    c.admin("POST", PVS, volume("old", klass="again"), 201)
    path = f"{RED}/persistentvolumeclaims/again"
    c.ask(c.ed, "POST", f"{RED}/persistentvolumeclaims", claim("again", "again"), want=201)
    wait_for("the claim", lambda: phase(c, path) == "Bound")
    c.ask(c.ed, "DELETE", path, want=200)
    wait_for("the volume", lambda: phase(c, f"{PVS}/old") == "Released")
    c.ask(c.ed, "POST", f"{RED}/persistentvolumeclaims", claim("again", "again", volumeName="old"), want=201)
    wait_for("the event", lambda: [e for e in c.admin("GET", f"{RED}/events")["items"] if e["reason"] == "FailedBinding" and
                                   "already bound" in e["message"] and e["involvedObject"]["name"] == "again"])
    assert phase(c, f"{PVS}/old") == "Released" and phase(c, path) == "Pending"


def test_a_member_uses_what_is_free(c):
    c.admin("POST", PVS, volume("free", klass="free"), 201)
    c.ask(c.ed, "POST", f"{RED}/persistentvolumeclaims", claim("own", "free"), want=201)
    wait_for("the claim", lambda: phase(c, f"{RED}/persistentvolumeclaims/own") == "Bound")
    c.ask(c.ed, "GET", f"{RED}/persistentvolumeclaims", want=200)


# ---- a node ----

def made_for(c, name, node="n1", klass="local", **changes):
    """The volume that node n1 makes for the claim, with changes."""
    meta = c.admin("GET", f"{RED}/persistentvolumeclaims/{name}")["metadata"]
    v = volume(f"pvc-{meta['uid']}", node, {"local": {"path": "/x"}}, klass, "Delete",
               claimRef={"kind": "PersistentVolumeClaim", "namespace": "red", "name": name, "uid": meta["uid"]})
    v["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "tenet.io/local"}
    v["metadata"].update(changes.pop("metadata", {}))
    v["spec"].update(changes)
    return v


def test_a_node_makes_volumes_for_its_claims_only(c):
    claims = f"{RED}/persistentvolumeclaims"
    c.admin("POST", claims, claim("here", "local", "n1"), 201)
    c.admin("POST", claims, claim("there", "local", "n2"), 201)
    c.admin("POST", claims, claim("nowhere", "local"), 201)
    c.admin("POST", claims, claim("disk", "ext", "n1"), 201)
    other_ref = {"kind": "PersistentVolumeClaim", "namespace": "red", "name": "here", "uid": "1"}
    host = made_for(c, "here", hostPath={"path": "/"})
    del host["spec"]["local"]
    free = made_for(c, "here")
    del free["spec"]["claimRef"]
    everywhere = made_for(c, "here")
    del everywhere["spec"]["nodeAffinity"]
    del everywhere["spec"]["local"]
    everywhere["spec"]["nfs"] = {"server": "evil", "path": "/"}
    table = [("for another node's claim", "POST", PVS, made_for(c, "there")),
             ("for a claim that no node is selected for", "POST", PVS, made_for(c, "nowhere")),
             ("of a class of another provisioner", "POST", PVS, made_for(c, "disk", klass="ext")),
             ("of a wrong class", "POST", PVS, made_for(c, "here", klass="ext")),
             ("on another node", "POST", PVS, made_for(c, "here", "n2")), ("everywhere", "POST", PVS, everywhere),
             ("with another uid", "POST", PVS, made_for(c, "here", claimRef=other_ref)), ("for no claim", "POST", PVS, free),
             ("of another kind", "POST", PVS, host), ("too small", "POST", PVS, made_for(c, "here", capacity={"storage": "1Mi"})),
             ("with another policy", "POST", PVS, made_for(c, "here", persistentVolumeReclaimPolicy="Recycle")),
             ("with other modes", "POST", PVS, made_for(c, "here", accessModes=["ReadWriteOnce", "ReadWriteMany"])),
             ("with mount options", "POST", PVS, made_for(c, "here", mountOptions=["suid"])),
             ("under another name", "POST", PVS, made_for(c, "here", metadata={"name": "blues2"})),
             ("by another provisioner", "POST", PVS, made_for(c, "here", metadata={"annotations": {}})),
             ("a claim", "POST", claims, claim("x")), ("bind", "POST", f"{claims}/here/binding", binding("here", "blues")),
             ("select itself", "PATCH", f"{claims}/nowhere", {"metadata": {"annotations": {SELECTED: "n1"}}}, MERGE),
             ("deselect another", "PATCH", f"{claims}/there", {"metadata": {"annotations": {SELECTED: None}}}, MERGE),
             ("pass it on", "PATCH", f"{claims}/here", {"metadata": {"annotations": {SELECTED: "n2"}}}, MERGE),
             ("change the claim", "PATCH", f"{claims}/here", {"metadata": {"labels": {"a": "b"}}}, MERGE),
             ("its status", "PATCH", f"{claims}/here/status", {"status": {"phase": "Bound"}}, MERGE),
             ("delete the claim", "DELETE", f"{claims}/here"), ("see another's claim", "GET", f"{claims}/there"),
             ("see a volume", "GET", f"{PVS}/blues"), ("delete a volume", "DELETE", f"{PVS}/blues"),
             ("delete all volumes", "DELETE", PVS), ("change a volume", "PATCH", f"{PVS}/blues", {"spec": {"claimRef": None}}, MERGE)]
    assert refused(c, c.node, table) == []
    # Lists show the node its part; the control is that it sees, makes, and removes its own.
    assert {o["metadata"]["name"] for o in c.ask(c.node, "GET", claims, want=200)["items"]} == {"here", "disk"}
    assert {o["metadata"]["name"] for o in c.ask(c.other, "GET", "/api/v1/persistentvolumeclaims", want=200)["items"]} == {"there"}
    assert c.ask(c.node, "GET", PVS, want=200)["items"] == []
    v = c.ask(c.node, "POST", PVS, made_for(c, "here"), want=201)
    path = f"{PVS}/{v['metadata']['name']}"
    wait_for("the claim", lambda: phase(c, f"{claims}/here") == "Bound")
    assert [o["metadata"]["name"] for o in c.ask(c.node, "GET", PVS, want=200)["items"]] == [v["metadata"]["name"]]
    assert c.ask(c.other, "GET", PVS, want=200)["items"] == [] and c.ask(c.other, "GET", path)[0] == 403
    for who in (c.node, c.other):  # It is in use.
        assert refused(c, who, [("delete it", "DELETE", path), ("free it", "PATCH", path, {"spec": {"claimRef": None}}, MERGE),
                                ("its status", "PATCH", path + "/status", {"status": {"phase": "Released"}}, MERGE),
                                ("its path", "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)]) == []
    c.admin("DELETE", f"{claims}/here")
    wait_for("the volume", lambda: phase(c, path) == "Released")
    assert refused(c, c.other, [("delete another's", "DELETE", path)]) == []
    c.ask(c.node, "DELETE", path, want=200)
    wait_for("its end", lambda: c.ask(c._admin, "GET", path)[0] == 404)


def test_a_node_that_cannot_make_a_volume_gives_the_claim_back(c):
    path = f"{RED}/persistentvolumeclaims/full"
    c.admin("POST", f"{RED}/persistentvolumeclaims", claim("full", "local", "n1"), 201)
    c.ask(c.node, "PATCH", path, {"metadata": {"annotations": {SELECTED: None}}}, headers=MERGE, want=200)
    assert SELECTED not in c.admin("GET", path)["metadata"].get("annotations", {})


def test_only_the_node_that_is_asked_tells_of_recycling(c):
    v = volume("dirty", policy="Recycle", klass="dirty")
    c.admin("POST", PVS, v, 201)
    path, notes = f"{PVS}/dirty", {"metadata": {"annotations": {"tenet.io/recycled": "true"}}}
    early = [("before it is asked", "PATCH", path, notes, MERGE)]
    assert refused(c, c.node, early) == []
    c.admin("POST", f"{RED}/persistentvolumeclaims", claim("dirty", "dirty"), 201)
    wait_for("the claim", lambda: phase(c, f"{RED}/persistentvolumeclaims/dirty") == "Bound")
    c.admin("DELETE", f"{RED}/persistentvolumeclaims/dirty")
    wait_for("the volume", lambda: phase(c, path) == "Released")
    c.ask(c._admin, "PATCH", path, {"metadata": {"annotations": {"tenet.io/recycle-node": "n1"}}}, headers=MERGE, want=200)
    assert refused(c, c.other, early) == []
    more = {"metadata": {"annotations": {"tenet.io/recycled": "true", "other": "x"}}}
    assert refused(c, c.node, [("with another annotation", "PATCH", path, more, MERGE),
                               ("and frees it", "PATCH", path, {**notes, "spec": {"claimRef": None}}, MERGE),
                               ("passes it on", "PATCH", path, {"metadata": {"annotations": {"tenet.io/recycle-node": "n2"}}}, MERGE)]) == []
    c.ask(c.node, "PATCH", path, notes, headers=MERGE)  # The binder may take the task back: no node here runs pods.


def test_a_node_tells_its_own_capacity(c):
    def capacity(name, node, klass="local"):
        return {"metadata": {"name": name}, "storageClassName": klass, "capacity": "1Gi",
                "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": node}}}
    c.ask(c.other, "POST", CAPACITY, capacity("of-n2", "n2"), want=201)
    wide = {**capacity("wide", "n1"), "nodeTopology": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}}
    table = [("another's", "POST", CAPACITY, capacity("x", "n2")), ("every node's", "POST", CAPACITY, wide),
             ("no node's", "POST", CAPACITY, {**capacity("x", "n1"), "nodeTopology": {}}),
             ("of another driver", "POST", CAPACITY, capacity("x", "n1", "ext")),
             ("in another namespace", "POST", CAPACITY.replace("kube-system", "red"), capacity("x", "n1")),
             ("change another's", "PATCH", f"{CAPACITY}/of-n2", {"capacity": "1"}, MERGE), ("see it", "GET", f"{CAPACITY}/of-n2"),
             ("delete it", "DELETE", f"{CAPACITY}/of-n2"), ("delete all", "DELETE", CAPACITY)]
    assert refused(c, c.node, table) == []
    assert c.ask(c.node, "GET", f"{CAPACITY}/of-n1")[0] == 404  # It may learn that it has to make its own.
    c.ask(c.node, "POST", CAPACITY, capacity("of-n1", "n1"), want=201)
    c.ask(c.node, "PATCH", f"{CAPACITY}/of-n1", {"capacity": "2Gi"}, headers=MERGE, want=200)
    assert [o["metadata"]["name"] for o in c.ask(c.node, "GET", CAPACITY, want=200)["items"]] == ["of-n1"]
    c.ask(c.node, "DELETE", f"{CAPACITY}/of-n1", want=200)


def test_a_node_sees_its_attachments(c):
    for i in (1, 2):
        # The finalizer keeps them: no pod needs them, so the controller deletes them.
        c.admin("POST", ATTACH, {"metadata": {"name": f"a{i}", "finalizers": ["example.com/kept"]}, "spec": {
            "attacher": "d.example.com", "nodeName": f"n{i}", "source": {"persistentVolumeName": "blues"}}}, 201)
    assert [o["metadata"]["name"] for o in c.ask(c.node, "GET", ATTACH, want=200)["items"]] == ["a1"]
    c.ask(c.node, "GET", f"{ATTACH}/a1", want=200)
    assert refused(c, c.node, [("attach", "POST", ATTACH, {"metadata": {"name": "x"}}),
                               ("say that it is", "PATCH", f"{ATTACH}/a1/status", {"status": {"attached": True}}, MERGE),
                               ("see another's", "GET", f"{ATTACH}/a2"), ("detach", "DELETE", f"{ATTACH}/a2")]) == []
