# SPDX-License-Identifier: Apache-2.0
"""Claims of pods: the class local, recycling, file servers and CSI, by `tenet kubelet` on a containerd of its own.

A binder of the master may run or not: the test binds a claim itself unless it is bound already."""
import contextlib
import json
import os
import pathlib
import tempfile

import pytest

import containerd as containerdlib
from lab import run, wait_for
from test_kubelet import NODE, SH, ready
from test_kubelet_volumes import Volumes

MERGE = ("--type", "merge", "-p")


class Claims(Volumes):
    def start_kubelet(self, *args, **kw):
        super().start_kubelet("--recycle-path-prefixes", self.dir / "recycled", "--local-volumes-margin", "1Mi", *args, **kw)

    def create(self, *objects):
        for o in objects:
            self.kubectl("create", "-f", "-", input=json.dumps(o))

    def storage_class(self, name, provisioner="tenet.io/local", **more):
        self.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner,
                     "volumeBindingMode": "WaitForFirstConsumer", **more})

    def claim(self, name, storage_class="", size="1Mi", annotations=None, **spec):
        self.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "annotations": annotations or {}},
                     "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
                              "resources": {"requests": {"storage": size}}, **spec}})
        return self.get("pvc", name)["metadata"]["uid"]

    def volume(self, name, claim="", policy="Retain", annotations=None, **source):
        spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Mi"}, "persistentVolumeReclaimPolicy": policy,
                "storageClassName": "", **source}
        if claim:
            spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim,
                                "uid": self.get("pvc", claim)["metadata"]["uid"]}
        self.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "annotations": annotations or {}}, "spec": spec})

    def set_status(self, kind, name, status):
        """Replaces the status, as a binder would; False: another writer was first."""
        obj = self.get(kind, name)
        obj["status"] = {**obj.get("status", {}), **status}
        path = f"/api/v1/persistentvolumes/{name}" if kind == "pv" else f"/api/v1/namespaces/default/persistentvolumeclaims/{name}"
        return self.kubectl("replace", "--raw", path + "/status", "-f", "-", input=json.dumps(obj), check=False).returncode == 0

    def bind(self, name, volume):
        """Waits until the claim is bound; binds it."""
        def bound():
            claim = self.get("pvc", name)
            if claim.get("status", {}).get("phase") == "Bound":
                return True
            self.kubectl("patch", "pvc", name, *MERGE, json.dumps({"spec": {"volumeName": volume}}), check=False)
            self.set_status("pvc", name, {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Mi"}})
            self.set_status("pv", volume, {"phase": "Bound"})
            return False
        wait_for(f"{name} to be bound", bound)

    def release(self, name, volume):
        """Deletes the claim and waits until its volume is released, or beyond."""
        self.kubectl("delete", "pvc", name, "--wait=false")
        self.kubectl("patch", "pvc", name, *MERGE, '{"metadata": {"finalizers": null}}', check=False)
        wait_for(f"{name} to be gone", lambda: not self.get("pvc", name))

        def released():
            pv = self.get("pv", volume)
            if not pv or pv["status"].get("phase") not in ("Bound", "Pending", "Available"):
                return True
            self.set_status("pv", volume, {"phase": "Released"})
            return False
        wait_for(f"{volume} to be released", released)

    def pod_with(self, name, claim, command, **mount):
        return self.pod(name, {"command": [SH, "-c", command], "volumeMounts": [{"name": "v", "mountPath": "/d", **mount}]},
                        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


@pytest.fixture(scope="module")
def cluster():
    containerdlib.needed()
    with tempfile.TemporaryDirectory(prefix="tenet-claims-") as folder:
        c = Claims(pathlib.Path(folder))
        try:
            wait_for("the node to be ready", lambda: ready((c.get("node", NODE) or {}).get("status", {})))
            c.kubectl("create", "namespace", "kube-system", check=False)
            yield c
            pods = str(c.dir / "kubelet" / "pods")
            assert not [m for m in c.mounts() if m.startswith(pods)]
        finally:
            with contextlib.suppress(Exception):
                c.kubectl("delete", "pods", "--all", "--wait=true", timeout=60)
            c.stop()


SELECTED = {"volume.kubernetes.io/selected-node": NODE}


@pytest.mark.parametrize("backing", ["directory", "loop"])
def test_the_class_local_makes_and_deletes_volumes(cluster, backing):
    name = f"local-{backing}"
    size = "16Mi" if backing == "loop" else "1Mi"
    cluster.storage_class(name, parameters={"backing": backing})
    uid = cluster.claim(name, name, size, annotations=SELECTED)
    volume = f"pvc-{uid}"
    pv = wait_for("the volume", lambda: cluster.get("pv", volume))
    folder = cluster.dir / "kubelet" / "local-volumes" / volume
    terms = pv["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}]
    assert pv["spec"]["local"]["path"] == str(folder) and pv["spec"]["claimRef"]["uid"] == uid
    assert pv["spec"]["persistentVolumeReclaimPolicy"] == "Delete" and pv["spec"]["capacity"] == {"storage": size}
    assert pv["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "tenet.io/local"
    wait_for("the Event", lambda: cluster.events(name).get("ProvisioningSucceeded") == f"Successfully provisioned volume {volume}")
    cluster.bind(name, volume)
    pod = cluster.pod_with(name, name, "echo kept > /d/f; grep ' /d ' /proc/self/mountinfo; sleep 3600")
    cluster.running(pod)
    wait_for("the file", lambda: cluster.exec(pod, ["cat", "/d/f"], check=False).stdout == "kept\n")
    if backing == "loop":
        assert " ext4 " in cluster.output(pod)[0]
        r = cluster.exec(pod, [SH, "-c", "dd if=/dev/zero of=/d/big bs=1M count=32"], check=False)
        assert r.returncode and "No space left" in r.stderr + r.stdout
    cluster.stop_kubelet()
    cluster.start_kubelet()
    cluster.running(pod)
    cluster.delete(pod)
    again = cluster.pod_with(name + "-again", name, "cat /d/f; sleep 3600")
    cluster.running(again)
    wait_for("the content", lambda: cluster.output(again)[-1:] == ["kept"])
    cluster.delete(again)
    cluster.release(name, volume)
    wait_for("the volume to be gone", lambda: not cluster.get("pv", volume))
    assert not folder.exists() and not list(folder.parent.glob(volume + "*"))
    cluster.kubectl("delete", "sc", name)


def test_a_node_publishes_its_capacity_and_refuses_what_does_not_fit(cluster):
    cluster.storage_class("local-cap")
    find = lambda: [c for c in json.loads(cluster.kubectl("get", "csistoragecapacities", "-A", "-o", "json").stdout)["items"]  # noqa: E731
                    if c["storageClassName"] == "local-cap"]
    capacity = wait_for("the capacity", find)[0]
    assert capacity["nodeTopology"] == {"matchLabels": {"kubernetes.io/hostname": NODE}}
    assert capacity["metadata"]["name"] == f"local-cap.{NODE}"
    cluster.claim("too-large", "local-cap", "1000Ti", annotations=SELECTED)
    want = 'failed to provision volume with StorageClass "local-cap": the node has not enough free space'
    wait_for("the Event", lambda: cluster.events("too-large").get("ProvisioningFailed") == want)
    wait_for("another choice", lambda: not SELECTED.keys() & cluster.get("pvc", "too-large")["metadata"].get("annotations", {}).keys())
    cluster.claim("shared", "local-cap", annotations=SELECTED, accessModes=["ReadWriteMany"])
    wait_for("the Event", lambda: "ReadWriteMany is not supported" in cluster.events("shared").get("ProvisioningFailed", ""))
    for name in ("too-large", "shared"):
        cluster.kubectl("delete", "pvc", name, "--wait=false")
        cluster.kubectl("patch", "pvc", name, *MERGE, '{"metadata": {"finalizers": null}}', check=False)
    cluster.kubectl("delete", "sc", "local-cap")


def test_a_released_volume_is_emptied_and_nothing_outside(cluster):
    top = cluster.dir / "recycled"
    outside = cluster.dir / "outside"
    (top / "one" / "deep" / ".hidden").mkdir(parents=True)
    outside.mkdir()
    (outside / "f").write_text("stays")
    for name in ("f", ".dot", "deep/f", "deep/.hidden/f"):
        (top / "one" / name).write_text("x")
    os.symlink(outside, top / "one" / "link")
    os.symlink(outside, top / "link")
    note = {"tenet.io/recycle-node": NODE}
    volumes = {"rec-one": top / "one", "rec-out": outside, "rec-link": top / "link", "rec-top": top}
    for name, path in volumes.items():
        cluster.volume(name, policy="Recycle", annotations=note, hostPath={"path": str(path)}, claimRef={
            "kind": "PersistentVolumeClaim", "namespace": "default", "name": "gone", "uid": "11111111-2222-3333-4444-555555555555"})
        cluster.set_status("pv", name, {"phase": "Released"})
    notes = lambda name: cluster.get("pv", name)["metadata"].get("annotations", {})  # noqa: E731
    # A binder that runs takes the result away, and makes the volume available.
    wait_for("the result", lambda: notes("rec-one").get("tenet.io/recycled") == "true" or
             cluster.get("pv", "rec-one")["status"]["phase"] == "Available")
    assert not list((top / "one").iterdir()) and (outside / "f").read_text() == "stays"
    wait_for("the Event", lambda: cluster.events("rec-one").get("VolumeRecycled") == "Volume recycled")
    for name, text in (("rec-out", "below none of the node's recyclePathPrefixes"), ("rec-link", "leads through a symbolic link"),
                       ("rec-top", "below none")):
        wait_for(f"the Event of {name}", lambda n=name, t=text: t in cluster.events(n).get("VolumeFailedRecycle", ""))
    assert (outside / "f").read_text() == "stays"
    for name in volumes:
        cluster.kubectl("delete", "pv", name, "--wait=false")
        cluster.kubectl("patch", "pv", name, *MERGE, '{"metadata": {"finalizers": null}}', check=False)
