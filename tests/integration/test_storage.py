# SPDX-License-Identifier: Apache-2.0
"""Claims and volumes by kubectl, as a member of a project, on a real master with HTTPS and access control.

The kubelets are a thread that acts with the certificates of the nodes, so it can do no more than a kubelet may.
"""
import json
import threading
import time

import pytest

from ha import Etcd, Gone, Master, PlainMaster
from lab import wait_for
from playkubelet import PlayKubelet
from test_auth import Cluster
from test_scheduler import kubelet_node

MERGE = {"Content-Type": "application/merge-patch+json"}
PVS, SC = "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses"
RED = "/api/v1/namespaces/red"
SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONED = "pv.kubernetes.io/provisioned-by"


def volume(name, size="5Gi", modes=("ReadWriteOnce",), policy="Retain", klass=None, node=None, source=None, **spec):
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}} if node else {}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"capacity": {"storage": size}, "accessModes": list(modes), "persistentVolumeReclaimPolicy": policy,
                     **({"storageClassName": klass} if klass else {}), **affinity, **spec,
                     **(source or {"nfs": {"path": "/tmp", "server": "172.17.0.2"}})}}


def claim(name, size="1Gi", modes=("ReadWriteOnce",), klass="", **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": list(modes), "resources": {"requests": {"storage": size}},
                     **({"storageClassName": klass} if klass is not None else {}), **spec}}


def pod(name, *claims, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "busybox:1"}], "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims], **spec}}


class StorageKubelets:
    """Makes and removes volumes of tenet.io/local, and empties those to recycle, with the certificates of the nodes."""

    def __init__(self, cluster, names):
        self.c, self.stopping, self.error = cluster, threading.Event(), None
        self.nodes = {n: cluster.user(f"system:node:{n}", "system:nodes") for n in names}
        self.made, self.removed, self.fails = [], [], None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join(30)
        assert not self.error, self.error

    def run(self):
        try:
            while not self.stopping.wait(0.05):
                for node, who in self.nodes.items():
                    self.act(node, who)
        except Exception as e:  # shown by stop(), in the test's thread
            self.error = e

    def items(self, who, path):
        status, answer = self.c.ask(who, "GET", path)
        return answer.get("items", []) if status == 200 else []

    def act(self, node, who):
        for c in self.items(who, "/api/v1/persistentvolumeclaims"):
            meta, spec = c["metadata"], c["spec"]
            assert meta["annotations"][SELECTED] == node, c
            status, k = self.c.ask(who, "GET", f"{SC}/{spec['storageClassName']}")
            if spec.get("volumeName") or status != 200 or k["provisioner"] != "tenet.io/local":
                continue
            name = f"pvc-{meta['uid']}"
            v = volume(name, spec["resources"]["requests"]["storage"], spec["accessModes"], k["reclaimPolicy"], k["metadata"]["name"],
                       node, {"local": {"path": f"/var/lib/tenet/{name}"}},
                       claimRef={"kind": "PersistentVolumeClaim", "namespace": meta["namespace"], "name": meta["name"],
                                 "uid": meta["uid"]})
            v["metadata"]["annotations"] = {PROVISIONED: "tenet.io/local"}
            status, answer = self.c.ask(who, "POST", PVS, v)
            assert status in (201, 403, 404, 409), answer  # The claim may be gone or bound meanwhile.
            if status == 201:
                self.made.append((node, name))
        for v in self.items(who, PVS):
            meta, spec = v["metadata"], v["spec"]
            notes = meta.get("annotations", {})
            if v.get("status", {}).get("phase") != "Released" or meta.get("deletionTimestamp"):
                continue
            if spec["persistentVolumeReclaimPolicy"] == "Delete" and notes.get(PROVISIONED) == "tenet.io/local":
                if self.c.ask(who, "DELETE", f"{PVS}/{meta['name']}")[0] == 200:
                    self.removed.append((node, meta["name"]))
            elif notes.get("tenet.io/recycle-node") == node and not {"tenet.io/recycled", "tenet.io/recycle-failed"} & set(notes):
                result = {"tenet.io/recycle-failed": self.fails} if self.fails else {"tenet.io/recycled": "true"}
                self.c.ask(who, "PATCH", f"{PVS}/{meta['name']}", {"metadata": {"annotations": result}}, headers=MERGE)


class Project:
    def __init__(self, tmp):
        self.c = Cluster(str(tmp), extra={"kubernetesMasterConfig": {"localStorageClass": True, "volumeSnapshots": True, "nodeMonitorGraceSeconds": 86400}})
        self.c.namespace("red")
        self.c.bind("red", "eve", "edit", user="eve")
        wait_for("the role's rules", lambda: self.c.kubectl(
            "auth", "can-i", "create", "pods", "-n", "red", "--as", "eve", check=False).returncode == 0)
        wait_for("the class local", lambda: self.c.ask(self.c._admin, "GET", f"{SC}/local")[0] == 200)
        for n in ("n1", "n2"):
            self.c.admin("POST", "/api/v1/nodes", kubelet_node(n), 201)
        self.kubelet = PlayKubelet(self.call)
        self.storage = StorageKubelets(self.c, ("n1", "n2"))

    def stop(self):
        try:
            self.kubelet.stop()
            self.storage.stop()
        finally:
            self.c.stop()

    def call(self, method, path, body=None, headers=None):
        status, answer = self.c.ask(self.c._admin, method, path, body, headers=headers)
        return answer if status < 300 else None

    def kubectl(self, *args, fails=False, user="eve", input=None):
        if input is not None:
            (self.c.dir / "input.json").write_text(json.dumps(input))
            args = [*args, "-f", str(self.c.dir / "input.json")]
        r = self.c.kubectl("-n", "red", *(["--as", user] if user else []), *args, check=False)
        assert (r.returncode != 0) == fails, (args, r.stdout, r.stderr)
        return r.stderr if fails else r.stdout

    def claim(self, name):
        return self.call("GET", f"{RED}/persistentvolumeclaims/{name}")

    def volume(self, name):
        return self.call("GET", f"{PVS}/{name}")

    def phase(self, o):
        return (o or {}).get("status", {}).get("phase")

    def bound(self, name, to=None):
        wait_for(f"the claim {name} to be bound", lambda: self.phase(self.claim(name)) == "Bound")
        c = self.claim(name)
        assert to is None or c["spec"]["volumeName"] == to, c
        v = self.volume(c["spec"]["volumeName"])
        assert self.phase(v) == "Bound" and v["spec"]["claimRef"]["uid"] == c["metadata"]["uid"], v
        return c

    def event(self, name, reason):
        def find():
            items = self.call("GET", f"{RED}/events")["items"] + self.call("GET", "/api/v1/namespaces/default/events")["items"]
            return [e["message"] for e in items if e["reason"] == reason and e["involvedObject"]["name"] == name]
        wait_for(f"the event {reason} of {name}", find)
        return find()[0]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    p = Project(tmp_path_factory.mktemp("storage"))
    yield p
    p.stop()


@pytest.fixture
def p(project):
    yield project
    for o in project.call("GET", f"{RED}/pods")["items"]:
        project.call("DELETE", f"{RED}/pods/{o['metadata']['name']}?gracePeriodSeconds=0")
    wait_for("no pods", lambda: not project.call("GET", f"{RED}/pods")["items"])
    for o in project.call("GET", f"{RED}/persistentvolumeclaims")["items"]:
        project.call("DELETE", f"{RED}/persistentvolumeclaims/{o['metadata']['name']}")
    wait_for("no claims", lambda: not project.call("GET", f"{RED}/persistentvolumeclaims")["items"])
    for o in project.call("GET", PVS)["items"]:
        project.call("DELETE", f"{PVS}/{o['metadata']['name']}")
    wait_for("no volumes", lambda: not project.call("GET", PVS)["items"])
    project.storage.fails = None


SEED_VOLUME = volume("pv0003", policy="Recycle")
SEED_CLAIM = claim("myclaim", "8Gi", klass=None)


# ---- binding ----

def test_the_examples_of_the_documents(p):
    """PV-04, PV-25: the volume is too small for the claim, and says so; a larger one binds it."""
    p.kubectl("create", user=None, input=SEED_VOLUME)
    wait_for("the phase", lambda: p.phase(p.volume("pv0003")) == "Available")
    p.kubectl("create", input={**SEED_CLAIM, "spec": {**SEED_CLAIM["spec"], "storageClassName": ""}})
    text = p.event("myclaim", "FailedBinding")
    assert text == ("no persistent volumes available for this claim and no storage class is set: 1 volume is too small"), text
    p.kubectl("create", user=None, input=volume("pv0004", "10Gi"))
    p.bound("myclaim", "pv0004")
    table = p.kubectl("get", "pv", user=None).splitlines()
    assert table[0].split()[:7] == ["NAME", "CAPACITY", "ACCESS", "MODES", "RECLAIM", "POLICY", "STATUS"], table
    assert [line.split()[:6] for line in table if line.startswith("pv0004")] == [
        ["pv0004", "10Gi", "RWO", "Retain", "Bound", "red/myclaim"]], table
    row = p.kubectl("get", "pvc", "myclaim", "--no-headers").split()
    assert row[:5] == ["myclaim", "Bound", "pv0004", "10Gi", "RWO"], row
    assert "Status:        Bound" in p.kubectl("describe", "pvc", "myclaim")


def test_the_smallest_of_the_narrowest_modes_and_no_one_twice(p):
    for v in (volume("wide", "2Gi", ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany")), volume("large", "50Gi"),
              volume("small", "5Gi"), volume("gold", "1Gi", klass="gold")):
        p.kubectl("create", user=None, input=v)
    for i, to in enumerate(("small", "large", "wide")):
        p.kubectl("create", input=claim(f"c{i}"))
        c = p.bound(f"c{i}", to)
        assert c["status"]["accessModes"][0] == "ReadWriteOnce"
        assert c["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    p.kubectl("create", input=claim("c3"))
    assert "1 volume has another class" in p.event("c3", "FailedBinding")
    old = claim("c4")
    old["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "gold"}
    p.kubectl("create", input=old)
    p.bound("c4", "gold")


def test_many_claims_at_once_get_one_volume_each(p):
    for i in range(20):
        p.call("POST", PVS, volume(f"v{i}"))
    for i in range(30):
        assert p.call("POST", f"{RED}/persistentvolumeclaims", claim(f"c{i}"))
    wait_for("20 bound claims", lambda: sum(p.phase(p.claim(f"c{i}")) == "Bound" for i in range(30)) == 20)
    claims = p.call("GET", f"{RED}/persistentvolumeclaims")["items"]
    names = [c["spec"]["volumeName"] for c in claims if c["spec"].get("volumeName")]
    assert len(names) == len(set(names)) == 20
    refs = {v["metadata"]["name"]: v["spec"]["claimRef"]["uid"] for v in p.call("GET", PVS)["items"]}
    assert all(refs[c["spec"]["volumeName"]] == c["metadata"]["uid"] for c in claims if c["spec"].get("volumeName"))


def test_a_reserved_volume_waits_for_its_claim(p):
    p.kubectl("create", user=None, input=volume("kept", "9Gi", claimRef={"namespace": "red", "name": "mine"}))
    p.kubectl("create", input=claim("other"))
    assert "1 volume belongs to another claim" not in p.event("other", "FailedBinding")
    p.kubectl("create", input=claim("mine"))
    p.bound("mine", "kept")
    assert p.phase(p.claim("other")) == "Pending"


def test_a_volume_by_name_must_suit(p):
    p.kubectl("create", user=None, input=volume("v", "2Gi"))
    p.kubectl("create", input=claim("big", "3Gi", volumeName="v"))
    assert "requested size is larger than the volume" in p.event("big", "VolumeMismatch")
    p.kubectl("create", input=claim("fits", "1Gi", volumeName="v"))
    p.bound("fits", "v")


# The table of the older documents: what each kind of storage can do.
MODES = {
    "awsElasticBlockStore": ({"volumeID": "v"}, "RWO"),
    "azureFile": ({"shareName": "s", "secretName": "s", "secretNamespace": "red"}, "RWO ROX RWX"),
    "azureDisk": ({"diskName": "d", "diskURI": "https://d.example/d"}, "RWO"),
    "rbd": ({"monitors": ["192.0.2.1"], "image": "i"}, "RWO ROX"),
    "fc": ({"targetWWNs": ["500a0981891b8dc5"], "lun": 1}, "RWO ROX"),
    "gcePersistentDisk": ({"pdName": "d"}, "RWO"),
    "glusterfs": ({"endpoints": "g", "path": "v"}, "RWO ROX RWX"),
    "hostPath": ({"path": "/tmp"}, "RWO"),
    "iscsi": ({"targetPortal": "192.0.2.1", "iqn": "iqn.2026-01.example:d", "lun": 0}, "RWO ROX"),
    "nfs": ({"path": "/tmp", "server": "192.0.2.1"}, "RWO ROX RWX"),
    "cinder": ({"volumeID": "v"}, "RWO"),
}
LONG = {"RWO": "ReadWriteOnce", "ROX": "ReadOnlyMany", "RWX": "ReadWriteMany"}


@pytest.mark.parametrize("kind", MODES)
def test_a_kind_of_storage_serves_the_modes_that_its_volume_has(p, kind):
    source, modes = MODES[kind]
    for short, mode in LONG.items():
        name = f"{kind.lower()}-{short.lower()}"
        p.kubectl("create", user=None, input=volume(name, modes=[LONG[m] for m in modes.split()], source={kind: source}))
        p.kubectl("create", input=claim(name, modes=[mode], volumeName=name))
        if short in modes:
            p.bound(name, name)
        else:
            assert "access mode" in p.event(name, "VolumeMismatch").lower()
    row = p.kubectl("get", "pv", f"{kind.lower()}-rwo", "--no-headers", user=None).split()
    assert row[2] == ",".join(modes.split())


# ---- the life of a volume ----

def test_a_released_volume_keeps_its_data_and_takes_no_claim(p):
    """PV-02, PV-10, PV-24."""
    p.kubectl("create", user=None, input=volume("v"))
    p.kubectl("create", input=claim("c"))
    p.bound("c", "v")
    p.kubectl("delete", "pvc", "c")
    wait_for("the phase", lambda: p.phase(p.volume("v")) == "Released")
    p.kubectl("create", input=claim("c"))
    p.event("c", "FailedBinding")
    assert p.phase(p.claim("c")) == "Pending" and p.phase(p.volume("v")) == "Released"
    p.call("PATCH", f"{PVS}/v", {"spec": {"claimRef": None}}, MERGE)
    p.bound("c", "v")


def test_a_volume_is_recycled_by_a_node(p):
    """PV-11, PV-12."""
    p.kubectl("create", user=None, input=SEED_VOLUME)
    p.kubectl("create", input=claim("c"))
    p.bound("c", "pv0003")
    p.kubectl("delete", "pvc", "c")
    wait_for("the phase", lambda: p.phase(p.volume("pv0003")) == "Available")
    v = p.volume("pv0003")
    assert "claimRef" not in v["spec"] and not [a for a in v["metadata"].get("annotations", {}) if "tenet.io" in a]
    assert p.event("pv0003", "VolumeRecycled") == "Volume recycled"
    p.storage.fails = "the export does not answer"
    p.kubectl("create", input=claim("d"))
    p.bound("d", "pv0003")
    p.kubectl("delete", "pvc", "d")
    assert p.event("pv0003", "VolumeFailedRecycle") == "the export does not answer"
    wait_for("the phase", lambda: p.phase(p.volume("pv0003")) == "Failed")
    ebs = volume("ebs", policy="Recycle", source={"awsElasticBlockStore": {"volumeID": "vol-1"}})
    assert "persistentVolumeReclaimPolicy: Unsupported value" in p.kubectl("create", user=None, input=ebs, fails=True)


def test_what_is_in_use_stays(p):
    """Protection of claims and volumes."""
    p.kubectl("create", user=None, input=volume("v"))
    p.kubectl("create", input=claim("c"))
    p.bound("c", "v")
    assert p.claim("c")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    p.kubectl("create", input=pod("user", "c"))
    wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/user")["spec"].get("nodeName"))
    p.kubectl("delete", "pvc", "c", "--wait=false")
    p.kubectl("delete", "pv", "v", "--wait=false", user=None)
    assert "Terminating" in p.kubectl("get", "pvc", "c") and "Terminating" in p.kubectl("get", "pv", "v", user=None)
    p.kubectl("create", input=pod("late", "c"))
    assert "being deleted" in p.event("late", "FailedScheduling")
    assert p.claim("c") and p.volume("v")
    p.kubectl("delete", "pod", "user", "late")
    wait_for("the end of both", lambda: not p.claim("c") and not p.volume("v"))


def test_a_claim_that_lost_its_volume_says_so(p):
    p.kubectl("create", user=None, input=volume("v"))
    p.kubectl("create", input=claim("c"))
    p.bound("c", "v")
    p.call("PATCH", f"{PVS}/v", {"metadata": {"finalizers": None}}, MERGE)
    p.call("DELETE", f"{PVS}/v")
    assert "has lost its PersistentVolume" in p.event("c", "ClaimLost")
    wait_for("the phase", lambda: p.phase(p.claim("c")) == "Lost")


# ---- classes ----

def test_the_default_class_makes_volumes_on_the_pods_node(p):
    """PV-27, PV-28, PV-29, PV-30, case 120."""
    assert "local (default)" in p.kubectl("get", "sc", user=None)
    p.kubectl("create", input=claim("data", klass=None))
    assert p.claim("data")["spec"]["storageClassName"] == "local"
    assert p.event("data", "WaitForFirstConsumer") == "waiting for first consumer to be created before binding"
    p.kubectl("create", input=pod("first", "data", nodeSelector={"kubernetes.io/hostname": "n2"}))
    c = p.bound("data")
    name = c["spec"]["volumeName"]
    assert name == f"pvc-{c['metadata']['uid']}" and ("n2", name) in p.storage.made
    wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/first")["spec"].get("nodeName") == "n2")
    # The next pod follows the volume.
    p.kubectl("create", input=pod("second", "data"))
    wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/second")["spec"].get("nodeName") == "n2")
    p.kubectl("create", input=pod("third", "data", nodeSelector={"kubernetes.io/hostname": "n1"}))
    assert "volume node affinity conflict" in p.event("third", "FailedScheduling")
    # It grows, does not shrink, and goes with the claim.
    grow = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    p.kubectl("patch", "pvc", "data", "-p", json.dumps(grow))
    wait_for("the new size", lambda: p.claim("data")["status"]["capacity"]["storage"] == "3Gi")
    assert p.volume(name)["spec"]["capacity"]["storage"] == "3Gi"
    shrink = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert "can not be less than" in p.kubectl("patch", "pvc", "data", "-p", json.dumps(shrink), fails=True)
    p.kubectl("delete", "pod", "first", "second", "third")
    p.kubectl("delete", "pvc", "data")
    wait_for("the end of the volume", lambda: not p.volume(name))
    assert ("n2", name) in p.storage.removed


def test_capacity_of_a_node_counts(p):
    who = p.storage.nodes["n1"]
    path = "/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities"
    for node, room in (("n1", "1Gi"), ("n2", "10Gi")):
        p.c.ask(p.storage.nodes[node], "POST", path, {
            "metadata": {"name": f"local.{node}"}, "storageClassName": "local", "capacity": room,
            "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": node}}}, want=201)
    try:
        assert [o["metadata"]["name"] for o in p.c.ask(who, "GET", path, want=200)["items"]] == ["local.n1"]
        p.kubectl("create", input=claim("big", "5Gi", klass=None))
        p.kubectl("create", input=pod("a", "big"))
        p.bound("big")
        wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/a")["spec"].get("nodeName") == "n2")
        p.kubectl("create", input=claim("huge", "50Gi", klass=None))
        p.kubectl("create", input=pod("b", "huge"))
        assert "2 node(s) did not have enough free storage" in p.event("b", "FailedScheduling")
    finally:
        for node in ("n1", "n2"):
            p.call("DELETE", f"{path}/local.{node}")


def test_a_class_that_waits_takes_volumes_that_exist(p):
    p.call("POST", SC, {"metadata": {"name": "disks"}, "provisioner": "kubernetes.io/no-provisioner",
                        "volumeBindingMode": "WaitForFirstConsumer"})
    try:
        for n in ("n1", "n2"):
            p.kubectl("create", user=None, input=volume(f"disk-{n}", klass="disks", node=n, source={"local": {"path": "/d"}}))
        p.kubectl("create", input=claim("c", klass="disks"))
        p.event("c", "WaitForFirstConsumer")
        assert p.phase(p.claim("c")) == "Pending"
        p.kubectl("create", input=pod("p", "c", nodeSelector={"kubernetes.io/hostname": "n2"}))
        p.bound("c", "disk-n2")
        wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/p")["spec"].get("nodeName") == "n2")
        # Two claims of one pod get the two disks only if both are on one node: they are not.
        p.kubectl("create", input=claim("d", klass="disks"))
        p.kubectl("create", input=pod("q", "c", "d"))
        assert "didn't find available persistent volumes to bind" in p.event("q", "FailedScheduling")
    finally:
        p.call("DELETE", f"{SC}/disks")


def test_other_provisioners_are_told(p):
    p.call("POST", SC, {"metadata": {"name": "ext"}, "provisioner": "example.com/disk"})
    try:
        p.kubectl("create", input=claim("c", klass="ext"))
        assert "external provisioner 'example.com/disk'" in p.event("c", "ExternalProvisioning")
        assert p.claim("c")["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "example.com/disk"
        p.kubectl("create", input=pod("p", "c"))
        assert "unbound immediate PersistentVolumeClaims" in p.event("p", "FailedScheduling")
        uid = p.claim("c")["metadata"]["uid"]
        made = volume("made", "1Gi", klass="ext", claimRef={"namespace": "red", "name": "c", "uid": uid})
        made["metadata"]["annotations"] = {PROVISIONED: "example.com/disk"}
        p.kubectl("create", user=None, input=made)
        p.bound("c", "made")
        wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/p")["spec"].get("nodeName"))
        p.kubectl("create", input=claim("missing", klass="nowhere"))
        assert p.event("missing", "ProvisioningFailed") == 'storageclass.storage.k8s.io "nowhere" not found'
    finally:
        p.call("DELETE", f"{SC}/ext")


def test_a_claim_of_one_pod_takes_one(p):
    p.kubectl("create", user=None, input=volume("v", modes=("ReadWriteOncePod",)))
    p.kubectl("create", input=claim("c", modes=("ReadWriteOncePod",)))
    p.bound("c", "v")
    p.kubectl("create", input=pod("one", "c"))
    wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/one")["spec"].get("nodeName"))
    p.kubectl("create", input=pod("two", "c"))
    assert "ReadWriteOncePod access mode" in p.event("two", "FailedScheduling")
    p.kubectl("delete", "pod", "one")
    wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/two")["spec"].get("nodeName"))


# ---- workloads ----

def test_claims_of_a_stateful_set_follow_its_policy(p):
    sts = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
        "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}}}
    p.kubectl("create", input=sts)
    for i in (0, 1):
        wait_for("a claim", lambda i=i: p.claim(f"data-db-{i}"))
        p.bound(f"data-db-{i}")
    p.kubectl("scale", "sts", "db", "--replicas=1")
    wait_for("the end of the claim", lambda: not p.claim("data-db-1"))
    assert p.phase(p.claim("data-db-0")) == "Bound"
    p.kubectl("delete", "sts", "db")
    wait_for("the end of the claim", lambda: not p.claim("data-db-0"))
    wait_for("the end of the volumes", lambda: not p.call("GET", PVS)["items"])


def test_an_ephemeral_volume_lives_with_its_pod(p):
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}, "metadata": {
        "labels": {"app": "cache"}}}
    p.kubectl("create", input=pod("p", volumes=[{"name": v, "ephemeral": {"volumeClaimTemplate": template}} for v in ("a", "b")]))
    for name in ("p-a", "p-b"):
        wait_for("the claim", lambda name=name: p.claim(name))
        meta = p.bound(name)["metadata"]
        assert meta["labels"] == {"app": "cache"}
        assert [(o["kind"], o["name"], o["controller"]) for o in meta["ownerReferences"]] == [("Pod", "p", True)]
    wait_for("the pod's node", lambda: p.call("GET", f"{RED}/pods/p")["spec"].get("nodeName"))
    p.kubectl("create", input=claim("q-a", klass=None))
    p.kubectl("create", input=pod("q", volumes=[{"name": "a", "ephemeral": {"volumeClaimTemplate": template}}]))
    assert "was not created for pod" in p.event("q", "FailedBinding")
    p.kubectl("delete", "pod", "p")
    wait_for("the end of the claims", lambda: not p.claim("p-a") and not p.claim("p-b"))
    assert p.claim("q-a")


# ---- attaching ----

ATTACH = "/apis/storage.k8s.io/v1/volumeattachments"
CSI_DRIVER = "/apis/storage.k8s.io/v1/csidrivers"


class FakeCloud:
    """Attaches what VolumeAttachments ask for, as external-attacher does: with a finalizer, late, and once with an error."""

    def __init__(self, call):
        self.call, self.stopping, self.error, self.calls, self.refusals = call, threading.Event(), None, [], {}
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join(30)
        assert not self.error, self.error

    def run(self):
        try:
            while not self.stopping.wait(0.05):
                for a in (self.call("GET", ATTACH) or {"items": []})["items"]:
                    self.act(a)
        except Exception as e:  # shown by stop(), in the test's thread
            self.error = e

    def act(self, a):
        meta, spec, status = a["metadata"], a["spec"], a.get("status", {})
        path = f"{ATTACH}/{meta['name']}"
        step = (spec["source"]["persistentVolumeName"], spec["nodeName"])
        if meta.get("deletionTimestamp"):
            self.calls.append(("detach", *step))
            self.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        elif not meta.get("finalizers"):
            self.call("PATCH", path, {"metadata": {"finalizers": [f"external-attacher/{spec['attacher'].replace('.', '-')}"]}}, MERGE)
        elif not status.get("attached"):
            held = {x[1:] for x in self.calls if x[0] == "attach"} - {x[1:] for x in self.calls if x[0] == "detach"}
            assert not [h for h in held if h[0] == step[0] and h != step], (held, step)  # The rule of one node.
            refusal = self.refusals.pop(step[0], None)
            if refusal:
                self.call("PATCH", path + "/status", {"status": {"attached": False, "attachError": {"message": refusal}}}, MERGE)
                return
            self.calls.append(("attach", *step))
            self.call("PATCH", path + "/status", {"status": {"attached": True, "attachError": None}}, MERGE)


@pytest.fixture
def cloud(p):
    f = FakeCloud(p.call)
    yield f
    for o in p.call("GET", f"{RED}/pods")["items"]:
        p.call("DELETE", f"{RED}/pods/{o['metadata']['name']}?gracePeriodSeconds=0")
    try:
        for n in ("n1", "n2"):
            use(p, n)
            p.call("PATCH", f"/api/v1/nodes/{n}", {"spec": {"taints": None}}, MERGE)
        wait_for("no attachments", lambda: not p.call("GET", ATTACH)["items"])
    finally:
        f.stop()


def use(p, node, *names):
    """What a kubelet says that it has in use."""
    p.call("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"volumesInUse": list(names)}}, MERGE)


EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
CSI = {"csi": {"driver": "disk.example.com", "volumeHandle": "h1"}}


@pytest.mark.parametrize("source,attacher,handle", [(EBS, "ebs.csi.aws.com", "vol-1"), (CSI, "disk.example.com", "h1")])
def test_a_volume_is_attached_to_one_node(p, cloud, source, attacher, handle):
    """PV-23's rule of one node, by a fake cloud; the disk of a cloud is attached by the driver that replaces its plug-in."""
    name = f"kubernetes.io/csi/{attacher}^{handle}"
    cloud.refusals["disk"] = "the cloud is busy"
    p.kubectl("create", user=None, input=volume("disk", source=source))
    p.kubectl("create", input=claim("c"))
    p.bound("c", "disk")
    p.kubectl("create", input=pod("a", "c", nodeName="n1"))
    assert "the cloud is busy" in p.event("a", "FailedAttachVolume")
    assert 'AttachVolume.Attach succeeded for volume "disk"' in p.event("a", "SuccessfulAttachVolume")
    assert [x["spec"]["attacher"] for x in p.call("GET", ATTACH)["items"]] == [attacher]
    wait_for("the node's list", lambda: [x["name"] for x in p.call("GET", "/api/v1/nodes/n1")["status"].get(
        "volumesAttached", [])] == [name])
    use(p, "n1", name)
    p.kubectl("create", input=pod("b", "c", nodeName="n2"))
    assert "Multi-Attach error" in p.event("b", "FailedAttachVolume")
    p.kubectl("delete", "pod", "a")
    wait_for("the end of the pod", lambda: not p.call("GET", f"{RED}/pods/a"))
    assert cloud.calls == [("attach", "disk", "n1")]  # The node still has it in use.
    use(p, "n1")
    wait_for("the other node", lambda: cloud.calls == [("attach", "disk", "n1"), ("detach", "disk", "n1"), ("attach", "disk", "n2")])
    assert not p.call("GET", "/api/v1/nodes/n1")["status"].get("volumesAttached")


def test_a_node_out_of_service_gives_its_volume_up(p, cloud):
    p.kubectl("create", user=None, input=volume("disk", source=CSI))
    p.kubectl("create", input=claim("c"))
    p.bound("c", "disk")
    p.kubectl("create", input=pod("a", "c", nodeName="n1"))
    wait_for("the attachment", lambda: cloud.calls == [("attach", "disk", "n1")])
    use(p, "n1", "kubernetes.io/csi/disk.example.com^h1")
    p.call("DELETE", f"{RED}/pods/a?gracePeriodSeconds=0")
    p.kubectl("create", input=pod("b", "c", nodeName="n2"))
    assert "Multi-Attach error" in p.event("b", "FailedAttachVolume")
    p.call("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "value": "shutdown",
                                                            "effect": "NoExecute"}]}}, MERGE)
    wait_for("the other node", lambda: cloud.calls[1:] == [("detach", "disk", "n1"), ("attach", "disk", "n2")])


def test_a_driver_without_attaching_gets_none(p):
    p.call("POST", CSI_DRIVER, {"metadata": {"name": "disk.example.com"}, "spec": {"attachRequired": False}})
    try:
        p.kubectl("create", user=None, input=volume("disk", source=CSI))
        p.kubectl("create", input=claim("c"))
        p.bound("c", "disk")
        p.kubectl("create", input=pod("a", "c", nodeName="n1"))
        wait_for("the pod to run", lambda: p.call("GET", f"{RED}/pods/a")["status"]["phase"] == "Running")
        assert not p.call("GET", ATTACH)["items"]
    finally:
        p.call("DELETE", f"{CSI_DRIVER}/disk.example.com")


def test_kinds_of_snapshots_by_option(p):
    snapshot = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "s"},
                "spec": {"source": {"persistentVolumeClaimName": "c"}, "volumeSnapshotClassName": "k"}}
    klass = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "k"},
             "driver": "disk.example.com", "deletionPolicy": "Delete", "parameters": {"a": "b"}}
    wait_for("the kinds", lambda: all(p.c.ask(p.c._admin, "GET", f"/apis/snapshot.storage.k8s.io/v1/{x}")[0] == 200 for x in (
        "volumesnapshots", "volumesnapshotclasses", "volumesnapshotcontents")))
    p.kubectl("create", user=None, input=klass)
    p.kubectl("create", user=None, input=snapshot)
    assert p.kubectl("get", "vsclass", "k", "--no-headers", user=None).split()[:3] == ["k", "disk.example.com", "Delete"]
    assert p.kubectl("get", "vs", "s", "--no-headers", user=None).split()[:2] == ["s", "c"]
    status = {"status": {"readyToUse": True, "restoreSize": "1Gi", "boundVolumeSnapshotContentName": "x"}}
    p.c.ask(p.c._admin, "PATCH", "/apis/snapshot.storage.k8s.io/v1/namespaces/red/volumesnapshots/s/status", status, headers=MERGE,
            want=200)
    assert p.kubectl("get", "vs", "s", "--no-headers", user=None).split()[:5] == ["s", "true", "c", "1Gi", "k"]
    wrong = {**klass, "metadata": {"name": "w"}, "deletionPolicy": "Forget"}
    assert "deletionPolicy" in p.kubectl("create", user=None, input=wrong, fails=True)
    p.kubectl("delete", "vs/s", "vsclass/k", user=None)


# ---- masters that die ----

def half_bound(claims, volumes):
    """Claims and volumes that do not name each other, or are in another phase than the other."""
    refs, wrong = {}, []
    for v in volumes:
        ref = v["spec"].get("claimRef", {}).get("uid")
        if ref:
            if ref in refs:
                wrong.append(("two volumes", refs[ref], v["metadata"]["name"]))
            refs[ref] = v["metadata"]["name"]
        if bool(ref) != (v.get("status", {}).get("phase") == "Bound"):
            wrong.append(("volume", v["metadata"]["name"], ref, v.get("status")))
    for c in claims:
        name = c["spec"].get("volumeName")
        if refs.get(c["metadata"]["uid"]) != name or bool(name) != (c.get("status", {}).get("phase") == "Bound"):
            wrong.append(("claim", c["metadata"]["name"], name, refs.get(c["metadata"]["uid"]), c.get("status")))
    return wrong


@pytest.mark.parametrize("store", ("sqlite", "etcd"))
def test_nothing_is_half_bound_when_the_master_is_killed(tmp_path, store):
    etcd = Etcd(tmp_path) if store == "etcd" else None
    m = Master(tmp_path, "master", etcd, ttl=3) if etcd else PlainMaster(tmp_path)
    claims, n, kills = "/api/v1/namespaces/default/persistentvolumeclaims", 0, 0
    try:
        m.wait_ready()
        for i in range(60):
            assert m.call("POST", PVS, volume(f"v{i}"))[0] == 201
        wait_for("free volumes", lambda: all(v["status"].get("phase") == "Available" for v in m.items(PVS)))
        while n < 60:
            for _ in range(6):
                try:
                    n += m.call("POST", claims, claim(f"c{n}"))[0] in (201, 409)
                except Gone:
                    pass
            time.sleep(0.002 * (kills % 6))  # Each kill comes at another moment of the bindings.
            m.kill()
            kills += 1
            m.start()
            # Both lists are of one moment only when nothing is bound in between.
            def stable():
                first, second, third = m.items(claims), m.items(PVS), m.items(claims)
                return (first, second) if first == third else None
            assert half_bound(*wait_for("lists of one moment", stable)) == []
        wait_for("all claims", lambda: all(c["status"].get("phase") == "Bound" for c in m.items(claims)))
        assert half_bound(m.items(claims), m.items(PVS)) == [] and kills >= 5
    finally:
        m.kill()
        if etcd:
            etcd.close()
