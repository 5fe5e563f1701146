# SPDX-License-Identifier: Apache-2.0
"""Claims of pods: the class local, recycling, file servers and CSI, by `tenet kubelet` on a containerd of its own.

A binder of the master may run or not: the test binds a claim itself unless it is bound already."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

import containerd as containerdlib
import lab as lablib
import needs
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


def may_resize():
    """Whether ext4 may be resized while it is mounted: that needs CAP_SYS_RESOURCE, which some machines take away."""
    line = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return int(line.split()[1], 16) >> 24 & 1


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
        # As the binder does when the claim asks for more.
        cluster.kubectl("patch", "pv", volume, *MERGE, '{"spec": {"capacity": {"storage": "64Mi"}}}')
        if may_resize():
            wait_for("the file system to be larger", lambda: cluster.exec(
                pod, [SH, "-c", "dd if=/dev/zero of=/d/big bs=1M count=32"], check=False).returncode == 0)
        else:
            wait_for("the Event", lambda: "resize2fs failed" in cluster.events(volume).get("VolumeResizeFailed", ""))
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


@contextlib.contextmanager
def loop_device(cluster, name, size=1 << 20):
    """A block device on a file: its path, and the file."""
    image = cluster.dir / f"{name}.img"
    with open(image, "wb") as f:
        f.truncate(size)
    device = run(["losetup", "--find", "--show", str(image)]).stdout.strip()
    try:
        yield device, image
    finally:
        run(["losetup", "-d", device])


def block_pod(cluster, name, claim, command, read_only=False, **more):
    """A pod with the device of the claim at /dev/v, and with a second container without it."""
    return cluster.pod(name, [
        {"name": "c", "command": [SH, "-c", command], "volumeDevices": [{"name": "v", "devicePath": "/dev/v"}], **more},
        {"name": "other", "command": ["sleep", "3600"]}],
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim, "readOnly": read_only}}])


def on_node():
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}]}}


WRITE = "printf kept | dd of=/dev/v conv=notrunc bs=4 && sync && echo written; sleep 3600"
READ = "dd if=/dev/v bs=4 count=1 2>/dev/null; echo; dd if=/dev/zero of=/dev/v bs=4 count=1 2>&1; sleep 3600"


def test_a_container_gets_the_block_device_of_its_claim_and_no_other_container_does(cluster):
    with loop_device(cluster, "block") as (device, image):
        cluster.claim("block", volumeMode="Block")
        cluster.volume("block", "block", volumeMode="Block", local={"path": device}, nodeAffinity=on_node())
        cluster.bind("block", "block")
        one = block_pod(cluster, "block-one", "block", WRITE)
        cluster.running(one)
        wait_for("the device to be written", lambda: "written" in cluster.output(one))
        wait_for("the content", lambda: image.read_bytes()[:4] == b"kept")
        # The cgroup of the other container refuses the device by its number.
        number = os.stat(device).st_rdev
        steal = f"mknod /tmp/d b {os.major(number)} {os.minor(number)} && dd if=/tmp/d bs=4 count=1"
        r = cluster.exec(one, [SH, "-c", steal], container="other", check=False)
        assert r.returncode and "kept" not in r.stdout and "not permitted" in r.stderr + r.stdout
        assert cluster.exec(one, [SH, "-c", steal], check=False).stdout.startswith("kept")
        cluster.stop_kubelet()
        cluster.start_kubelet()
        cluster.running(one)
        cluster.delete(one)
        two = block_pod(cluster, "block-two", "block", READ, read_only=True)
        cluster.running(two)
        wait_for("the refusal", lambda: "not permitted" in "".join(cluster.output(two)))
        assert cluster.output(two)[0] == "kept" and image.read_bytes()[:4] == b"kept"
        cluster.delete(two)
        # A container that asks for files of it, and a claim of files that is bound to a device.
        wrong = cluster.pod_with("block-wrong", "block", "sleep 3600")
        want = 'MapVolume.SetUp failed for volume "v" : volume v has volumeMode Block, but is specified in volumeMounts'
        wait_for("the Event", lambda: cluster.events(wrong).get("FailedMount") == want)
        cluster.delete(wrong)
        os.stat(device)


def test_the_class_local_makes_grows_and_deletes_a_block_device(cluster):
    cluster.storage_class("local-block")
    uid = cluster.claim("local-block", "local-block", "8Mi", annotations=SELECTED, volumeMode="Block")
    volume = f"pvc-{uid}"
    pv = wait_for("the volume", lambda: cluster.get("pv", volume))
    assert pv["spec"]["volumeMode"] == "Block"
    folder = cluster.dir / "kubelet" / "local-volumes"
    image = folder / f"{volume}.img"
    assert image.stat().st_size == 8 << 20
    loops = lambda: run(["losetup", "-j", str(image), "-O", "NAME", "-n"]).stdout.split()  # noqa: E731
    cluster.bind("local-block", volume)
    pod = block_pod(cluster, "local-block", "local-block", WRITE)
    cluster.running(pod)
    wait_for("the content", lambda: image.read_bytes()[:4] == b"kept")
    assert len(loops()) == 1
    cluster.kubectl("patch", "pv", volume, *MERGE, '{"spec": {"capacity": {"storage": "16Mi"}}}')
    wait_for("the device to be larger", lambda: image.stat().st_size == 16 << 20 and cluster.exec(
        pod, [SH, "-c", "dd if=/dev/v bs=1M 2>/dev/null | wc -c"]).stdout.strip() == str(16 << 20))
    cluster.stop_kubelet()
    cluster.start_kubelet()
    cluster.running(pod)
    more = block_pod(cluster, "local-block-more", "local-block", READ)
    cluster.running(more)
    wait_for("the content", lambda: cluster.output(more)[:1] == ["kept"])
    assert len(loops()) == 1
    cluster.delete(pod)
    cluster.delete(more)
    cluster.release("local-block", volume)
    wait_for("the volume to be gone", lambda: not cluster.get("pv", volume))
    assert not list(folder.glob(volume + "*")) and not loops()
    cluster.kubectl("delete", "sc", "local-block")


def test_a_csi_driver_publishes_a_block_device_for_each_pod(cluster):
    driver = Driver(cluster, "block.csi.tenet.io")
    try:
        driver.registered()
        cluster.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver.name},
                        "spec": {"attachRequired": False}})
        with loop_device(cluster, "csi-block") as (device, image):
            (driver.dir / "device-vol-b").write_text(str(image))
            cluster.claim("csi-block", volumeMode="Block")
            cluster.volume("csi-block", "csi-block", volumeMode="Block", csi={"driver": driver.name, "volumeHandle": "vol-b"})
            cluster.bind("csi-block", "csi-block")
            one = block_pod(cluster, "csi-block-one", "csi-block", WRITE)
            wait_for("the Event", lambda: "made no block device at" in cluster.events(one).get("FailedMount", ""))
            assert driver.calls("NodeStageVolume")[0]["block"] and driver.calls("NodePublishVolume")[0]["block"]
            target = pathlib.Path(driver.calls("NodePublishVolume")[0]["target"])
            assert target == cluster.folder(one) / "volumes/kubernetes.io~csi/v/device"
            # The kubelet has unpublished nothing yet: the file of the wrong kind goes with its pod.
            cluster.delete(one)
            assert not target.parent.exists()
            (driver.dir / "device-vol-b").write_text(device)
            two = block_pod(cluster, "csi-block-two", "csi-block", WRITE)
            cluster.running(two)
            wait_for("the content", lambda: image.read_bytes()[:4] == b"kept")
            three = block_pod(cluster, "csi-block-three", "csi-block", READ, read_only=True)
            cluster.running(three)
            wait_for("the refusal", lambda: "not permitted" in "".join(cluster.output(three)))
            assert cluster.output(three)[0] == "kept" and driver.calls("NodePublishVolume")[-1]["readonly"]
            cluster.stop_kubelet()
            cluster.start_kubelet()
            driver.registered()
            cluster.running(two)
            staged = len(driver.calls("NodeUnstageVolume"))
            cluster.delete(two)
            assert len(driver.calls("NodeUnstageVolume")) == staged
            cluster.delete(three)
            wait_for("it to be unstaged", lambda: len(driver.calls("NodeUnstageVolume")) == staged + 1)
            wait_for("the mounts to be gone", lambda: not [m for m in cluster.mounts() if "csi" in m])
            assert not list((cluster.dir / "kubelet/plugins/kubernetes.io/csi" / driver.name).iterdir())
        cluster.kubectl("delete", "csidriver", driver.name)
    finally:
        driver.close()


class Driver:
    """tests/unit/kubelet/serve_csi.c, registered with the kubelet."""

    def __init__(self, cluster, name="test.csi.tenet.io", *flags):
        self.cluster, self.name = cluster, name
        self.dir = cluster.dir / f"driver-{name}"
        self.dir.mkdir()
        for flag in flags:
            (self.dir / flag).touch()
        # A socket's path has at most 107 bytes.
        self.socket = pathlib.Path(tempfile.mkdtemp(prefix="tenet-csi-")) / "csi.sock"
        self.registration = cluster.dir / "kubelet/plugins_registry" / f"{name}-reg.sock"
        self.proc = None
        self.start()

    def start(self):
        self.proc = subprocess.Popen(self.cluster.inside([
            lablib.BUILD / "tests/unit/kubelet/serve_csi", self.name, "node-of-driver", self.dir, self.socket, self.registration]),
            stdout=subprocess.PIPE, text=True, env=lablib.environment())
        assert self.proc.stdout.readline() == "ready\n"

    def stop(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            assert self.proc.wait(30) in (0, -signal.SIGTERM)

    def close(self):
        with contextlib.suppress(Exception):
            self.stop()
        with contextlib.suppress(OSError):
            self.socket.unlink()
        self.socket.parent.rmdir()

    def calls(self, method=None):
        path = self.dir / "calls"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [c for c in lines if method in (None, c["method"])]

    def volume(self, ident):
        folder = self.dir / "volumes" / ident
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        return folder

    def registered(self):
        wait_for("the driver in the CSINode", lambda: [d for d in (self.cluster.get("csinode", NODE) or {}).get("spec", {}).get(
            "drivers") or [] if d["name"] == self.name])


def attachment(cluster, driver, handle, **metadata):
    """The VolumeAttachment of the volume, as an attacher would complete it."""
    import hashlib
    name = "csi-" + hashlib.sha256(f"{handle}{driver}{NODE}".encode()).hexdigest()
    return name, {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
                  "spec": {"attacher": driver, "nodeName": NODE, "source": {"persistentVolumeName": "csi-pv"}}}


def test_a_csi_driver_registers_and_goes(cluster):
    driver = Driver(cluster, "one.csi.tenet.io")
    try:
        driver.registered()
        spec = cluster.get("csinode", NODE)["spec"]
        assert spec["drivers"] == [{"name": driver.name, "nodeID": "node-of-driver", "topologyKeys": ["test.tenet.io/node"],
                                    "allocatable": {"count": 7}}]
        assert cluster.get("csinode", NODE)["metadata"]["ownerReferences"][0]["kind"] == "Node"
        wait_for("the label", lambda: cluster.get("node", NODE)["metadata"]["labels"].get("test.tenet.io/node") == "node-of-driver")
        wait_for("the notice", lambda: [c["registered"] for c in driver.calls("NotifyRegistrationStatus")] == [True])
        driver.stop()
        wait_for("the driver to be gone", lambda: not cluster.get("csinode", NODE)["spec"].get("drivers"))
        (driver.dir / "junk-NodeGetInfo").write_bytes(b"\xff" * 4096)
        driver.start()
        wait_for("the refusal", lambda: [c for c in driver.calls("NotifyRegistrationStatus") if not c["registered"]])
        assert "the answer is not as CSI has it" in driver.calls("NotifyRegistrationStatus")[-1]["error"]
        assert not cluster.get("csinode", NODE)["spec"].get("drivers")
        (driver.dir / "junk-NodeGetInfo").unlink()
        driver.registered()  # The kubelet asks again.
    finally:
        driver.close()
    wait_for("the driver to be gone", lambda: not cluster.get("csinode", NODE)["spec"].get("drivers"))


def test_a_csi_volume_is_staged_once_and_published_for_each_pod(cluster):
    driver = Driver(cluster)
    try:
        driver.registered()
        folder = driver.volume("vol-1")
        cluster.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver.name},
                        "spec": {"attachRequired": True, "podInfoOnMount": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}})
        cluster.put("Secret", "csi-keys", {"user": "tenet", "key": "hunter2-csi"})
        cluster.claim("csi")
        ref = {"name": "csi-keys", "namespace": "default"}
        cluster.volume("csi-pv", "csi", mountOptions=["noatime"], csi={
            "driver": driver.name, "volumeHandle": "vol-1", "fsType": "ext4", "volumeAttributes": {"colour": "red"},
            "nodeStageSecretRef": ref, "nodePublishSecretRef": ref})
        cluster.bind("csi", "csi-pv")
        one = cluster.pod_with("csi-one", "csi", "echo kept > /d/f; sleep 3600")
        wait_for("the Event", lambda: "the volume is not attached to the node yet" in cluster.events(one).get("FailedMount", ""))
        name, obj = attachment(cluster, driver.name, "vol-1")
        if not cluster.get("volumeattachment", name):
            cluster.create(obj)
        obj = cluster.get("volumeattachment", name)
        obj["status"] = {"attached": True, "attachmentMetadata": {"device": "/dev/none"}}
        cluster.kubectl("replace", "--raw", f"/apis/storage.k8s.io/v1/volumeattachments/{name}/status", "-f", "-", input=json.dumps(obj))
        cluster.running(one)
        wait_for("the file", lambda: (folder / "f").exists())
        stage = driver.calls("NodeStageVolume")[0]
        assert stage["publishContext"] == {"device": "/dev/none"} and stage["secrets"] == {"user": "tenet", "key": "hunter2-csi"}
        assert stage["flags"] == ["noatime"] and stage["fsType"] == "ext4" and stage["mode"] == 1
        assert stage["context"]["colour"] == "red" and stage["context"]["csi.storage.k8s.io/pod.name"] == one
        two = cluster.pod_with("csi-two", "csi", "cat /d/f; sleep 3600", readOnly=True)
        cluster.running(two)
        wait_for("the content", lambda: cluster.output(two) == ["kept"])
        assert len(driver.calls("NodePublishVolume")) == 2
        in_use = lambda: cluster.get("node", NODE)["status"].get("volumesInUse", [])  # noqa: E731
        wait_for("the volume in use", lambda: in_use() == [f"kubernetes.io/csi/{driver.name}^vol-1"])
        cluster.stop_kubelet()
        cluster.start_kubelet()
        driver.registered()
        cluster.running(two)
        cluster.delete(one)
        wait_for("one to be unpublished", lambda: len(driver.calls("NodeUnpublishVolume")) == 1)
        assert not driver.calls("NodeUnstageVolume")
        # A driver that is away holds up the end of its pod, and nothing is forgotten.
        (driver.dir / "fail-NodeUnstageVolume").write_text("14 come back later")
        cluster.kubectl("delete", "pod", two, "--wait=false")
        wait_for("unstaging to be tried", lambda: driver.calls("NodeUnstageVolume"))
        wait_for("the log", lambda: "come back later" in cluster.log())
        (driver.dir / "fail-NodeUnstageVolume").unlink()
        wait_for("two to be gone", lambda: not cluster.get("pod", two))
        wait_for("the mounts to be gone", lambda: not [m for m in cluster.mounts() if "csi" in m])
        assert not list((cluster.dir / "kubelet/plugins/kubernetes.io/csi" / driver.name).iterdir())
        assert (folder / "f").read_text() == "kept\n"
        wait_for("the volume not to be in use", lambda: not in_use())
        assert "hunter2-csi" not in cluster.log()
        # A volume of one pod alone.
        inline = cluster.pod("csi-inline", {"command": [SH, "-c", "echo own > /d/f; sleep 3600"], "volumeMounts": [{"name": "v", "mountPath": "/d"}]},
                             volumes=[{"name": "v", "csi": {"driver": driver.name, "volumeAttributes": {"size": "1"}}}])
        cluster.running(inline)
        publish = driver.calls("NodePublishVolume")[-1]
        assert publish["context"]["csi.storage.k8s.io/ephemeral"] == "true" and publish["volume"].startswith("csi-")
        cluster.delete(inline)
        wait_for("it to be unpublished", lambda: driver.calls("NodeUnpublishVolume")[-1]["volume"] == publish["volume"])
        cluster.kubectl("delete", "csidriver", driver.name)
        cluster.kubectl("delete", "volumeattachment", name, "--wait=false", check=False)
    finally:
        driver.close()


def test_a_driver_that_hangs_holds_up_its_own_pod_alone(cluster):
    driver = Driver(cluster, "slow.csi.tenet.io")
    try:
        driver.registered()
        (driver.dir / "hang-NodePublishVolume").touch()
        cluster.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver.name},
                        "spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]}})
        slow = cluster.pod("csi-slow", {"command": ["sleep", "3600"], "volumeMounts": [{"name": "v", "mountPath": "/d"}]},
                           volumes=[{"name": "v", "csi": {"driver": driver.name}}])
        wait_for("the call", lambda: driver.calls("NodePublishVolume"))
        for i in range(6):
            cluster.running(cluster.pod(f"csi-other-{i}", {"command": ["sleep", "3600"], "volumeMounts": [{"name": "v", "mountPath": "/d"}]},
                                        volumes=[{"name": "v", "emptyDir": {}}]))
        assert cluster.status(slow)["phase"] == "Pending"
        (driver.dir / "hang-NodePublishVolume").unlink()
        driver.stop()
        driver.start()
        cluster.running(slow)
        for name in [slow] + [f"csi-other-{i}" for i in range(6)]:
            cluster.delete(name)
        cluster.kubectl("delete", "csidriver", driver.name)
    finally:
        driver.close()


GLUSTER = """
set -e
mount -t tmpfs gluster /run
mount -t tmpfs gluster /var/lib/glusterd
mount -t tmpfs gluster /var/log/glusterfs
mkdir -p /run/gluster {dir}/brick
mount -t tmpfs gluster {dir}/brick
mkdir {dir}/brick/b
glusterd -N --log-file=/var/log/glusterfs/glusterd.log &
n=0
until gluster volume info >/dev/null 2>&1; do n=$((n+1)); [ $n -lt 300 ] || exit 1; sleep 0.1; done
gluster --mode=script volume create vol {ip}:{dir}/brick/b force
gluster --mode=script volume start vol
echo ready
wait
"""


@pytest.fixture
def gluster(cluster):
    """A GlusterFS server with one brick, in namespaces of mounts and processes of its own."""
    needs.program("glusterd", "glusterfs-server")
    ip, folder = "192.0.2.77", cluster.dir / "gluster"
    folder.mkdir()
    run(cluster.inside(["ip", "addr", "add", f"{ip}/32", "dev", "lo"]))
    # Logs of the client, which is the kubelet's.
    run(cluster.inside(["mount", "-t", "tmpfs", "gluster", "/var/log/glusterfs"]))
    proc = subprocess.Popen(cluster.inside(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                                            GLUSTER.format(ip=ip, dir=folder)]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        lines = []
        for line in proc.stdout:
            lines.append(line)
            if line == "ready\n":
                break
        else:
            raise AssertionError("".join(lines))
        yield ip
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()
        run(cluster.inside(["umount", "-l", "/var/log/glusterfs"]), check=False)
        run(cluster.inside(["ip", "addr", "del", f"{ip}/32", "dev", "lo"]), check=False)


def test_two_pods_share_a_glusterfs_volume(cluster, gluster):
    """The client is FUSE's, as everywhere; the server is real."""
    cluster.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "gluster"}, "subsets": [
        {"addresses": [{"ip": gluster}], "ports": [{"port": 1}]}]})
    cluster.claim("gluster", accessModes=["ReadWriteMany"])
    cluster.volume("gluster", "gluster", accessModes=["ReadWriteMany"], glusterfs={
        "endpoints": "gluster", "endpointsNamespace": "default", "path": "vol"})
    cluster.bind("gluster", "gluster")
    one = cluster.pod_with("gluster-one", "gluster", "echo shared > /d/f; grep ' /d ' /proc/self/mountinfo; sleep 3600")
    cluster.running(one)
    two = cluster.pod_with("gluster-two", "gluster", "while ! cat /d/f; do sleep 0.1; done; touch /d/x || echo read-only; sleep 3600", readOnly=True)
    cluster.running(two)
    wait_for("the content", lambda: cluster.output(two)[-1:] == ["read-only"])
    assert "shared" in cluster.output(two) and "fuse.glusterfs" in cluster.output(one)[0]
    cluster.stop_kubelet()
    cluster.start_kubelet()
    cluster.running(one)
    for name in (one, two):
        cluster.delete(name)
    wait_for("the mounts to be gone", lambda: not [m for m in cluster.mounts() if "glusterfs" in m])
    cluster.kubectl("delete", "endpoints", "gluster")


SHIM = """#!/bin/sh
# Records the mounts of file servers, and binds a directory instead.
case "$*" in
*"-t nfs "*) for a; do printf '%s\\0' "$a" >> {calls}; at="$a"; done; printf '\\n' >> {calls}
    while [ -e {dir}/hang ]; do sleep 0.1; done
    exec /bin/mount --bind {dir}/export "$at";;
esac
exec /bin/mount "$@"
"""


def test_nfs_is_mounted_by_mount_and_a_server_that_hangs_holds_up_its_own_pods_alone(cluster):
    """A shim stands for mount(8): the kernel of the test machine may have no NFS."""
    folder = cluster.dir / "nfs"
    (folder / "export").mkdir(parents=True)
    (folder / "export").chmod(0o777)
    (folder / "bin").mkdir()
    shim = folder / "bin" / "mount"
    shim.write_text(SHIM.format(calls=folder / "calls", dir=folder))
    shim.chmod(0o755)
    cluster.stop_kubelet()
    cluster.start_kubelet(env={"PATH": f"{folder}/bin:{os.environ['PATH']}"})
    try:
        cluster.claim("nfs")
        cluster.volume("nfs", "nfs", mountOptions=["nfsvers=4.1", "noatime"], nfs={"server": "nfs.example", "path": "/exports/a"})
        cluster.bind("nfs", "nfs")
        one = cluster.pod_with("nfs-one", "nfs", "echo kept > /d/f; sleep 3600")
        cluster.running(one)
        argv = (folder / "calls").read_bytes().split(b"\n")[0].decode().split("\0")[:-1]
        assert argv[:-1] == ["-t", "nfs", "-o", "rw,nfsvers=4.1,noatime", "--", "nfs.example:/exports/a"]
        assert argv[-1].endswith("/volumes/kubernetes.io~nfs/v")
        wait_for("the file", lambda: (folder / "export/f").exists())
        cluster.delete(one)
        (folder / "hang").touch()
        slow = cluster.pod_with("nfs-slow", "nfs", "sleep 3600")
        wait_for("the second mount", lambda: len((folder / "calls").read_bytes().split(b"\n")) == 3)
        for i in range(6):
            cluster.running(cluster.pod(f"nfs-other-{i}", {"command": ["sleep", "3600"]}))
        assert cluster.status(slow)["phase"] == "Pending"
        (folder / "hang").unlink()
        cluster.running(slow)
        for name in [slow] + [f"nfs-other-{i}" for i in range(6)]:
            cluster.delete(name)
        # What a tenant writes into a pod is no option of mount(8).
        bad = cluster.pod("nfs-bad", {"command": ["sleep", "3600"], "volumeMounts": [{"name": "v", "mountPath": "/d"}]},
                          volumes=[{"name": "v", "nfs": {"server": "--bind", "path": "/"}}])
        wait_for("the Event", lambda: "nfs: invalid server --bind" in cluster.events(bad).get("FailedMount", ""))
        cluster.delete(bad)
    finally:
        cluster.stop_kubelet()
        cluster.start_kubelet()


def test_the_disk_of_a_cloud_is_mounted_by_the_driver_that_replaced_its_plug_in(cluster):
    """A driver of ours stands for the cloud; the attacher's answer reaches it."""
    driver = Driver(cluster, "ebs.csi.aws.com")
    try:
        driver.registered()
        driver.volume("vol-0abc")
        cluster.claim("disk")
        cluster.volume("csi-pv-disk", "disk", awsElasticBlockStore={"volumeID": "vol-0abc", "fsType": "xfs", "partition": 2})
        cluster.bind("disk", "csi-pv-disk")
        pod = cluster.pod_with("disk", "disk", "echo kept > /d/f; sleep 3600")
        name, obj = attachment(cluster, driver.name, "vol-0abc")
        obj["spec"]["source"]["persistentVolumeName"] = "csi-pv-disk"
        wait_for("the Event", lambda: "the volume is not attached to the node yet" in cluster.events(pod).get("FailedMount", ""))
        if not cluster.get("volumeattachment", name):
            cluster.create(obj)
        obj = cluster.get("volumeattachment", name)
        obj["status"] = {"attached": False, "attachError": {"message": "the disk is attached to another node"}}
        path = f"/apis/storage.k8s.io/v1/volumeattachments/{name}/status"
        cluster.kubectl("replace", "--raw", path, "-f", "-", input=json.dumps(obj))
        wait_for("the Event", lambda: "attached to another node" in cluster.events(pod).get("FailedMount", ""))
        obj = cluster.get("volumeattachment", name)
        obj["status"] = {"attached": True, "attachmentMetadata": {"devicePath": "/dev/xvdba"}}
        cluster.kubectl("replace", "--raw", path, "-f", "-", input=json.dumps(obj))
        cluster.running(pod)
        stage = driver.calls("NodeStageVolume")[0]
        assert stage["volume"] == "vol-0abc" and stage["fsType"] == "xfs" and stage["publishContext"] == {"devicePath": "/dev/xvdba"}
        assert stage["context"]["partition"] == "2"
        cluster.delete(pod)
        cluster.kubectl("delete", "volumeattachment", name, "--wait=false", check=False)
    finally:
        driver.close()


PROVISIONER = {"volume.kubernetes.io/storage-provisioner": "full.csi.tenet.io"}


def test_a_csi_volume_is_made_attached_grown_and_deleted(cluster):
    """The whole life of a volume, by `tenet csi-controller` in place of three sidecars."""
    driver = Driver(cluster, "full.csi.tenet.io")
    log = open(cluster.dir / "csi-controller.log", "a")
    controller = subprocess.Popen(cluster.inside([lablib.TENET, "csi-controller", "--csi-address", driver.socket, "--kubeconfig",
                                                  cluster.dir / "kubeconfig"]), stdout=log, stderr=log, env=lablib.environment())
    try:
        driver.registered()
        cluster.put("Secret", "csi-make", {"token": "hunter2-make"})
        prefix = "csi.storage.k8s.io/"
        cluster.storage_class("full", driver.name, volumeBindingMode="Immediate", allowVolumeExpansion=True, parameters={
            "kind": "fast", prefix + "fstype": "xfs", prefix + "provisioner-secret-name": "csi-make",
            prefix + "provisioner-secret-namespace": "${pvc.namespace}"})
        (driver.dir / "fail-CreateVolume").write_text("8 no room")
        uid = cluster.claim("full", "full", "2Mi", annotations=PROVISIONER)
        want = 'failed to provision volume with StorageClass "full": CreateVolume: rpc error: code = resource exhausted desc = no room'
        wait_for("the Event", lambda: cluster.events("full").get("ProvisioningFailed") == want)
        (driver.dir / "fail-CreateVolume").unlink()
        pv = wait_for("the volume", lambda: cluster.get("pv", f"pvc-{uid}"))
        assert pv["spec"]["csi"] == {"driver": driver.name, "volumeHandle": f"id-pvc-{uid}", "fsType": "xfs",
                                     "volumeAttributes": {"made-by": "serve_csi"}}
        assert pv["spec"]["claimRef"]["uid"] == uid and pv["spec"]["capacity"] == {"storage": "2Mi"}
        create = driver.calls("CreateVolume")[-1]
        assert create["parameters"] == {"kind": "fast"} and create["secrets"] == {"token": "hunter2-make"} and create["bytes"] == 2 << 20
        cluster.bind("full", f"pvc-{uid}")
        (driver.dir / "fail-ControllerPublishVolume").write_text("9 the volume is attached to another node")
        pod = cluster.pod_with("full", "full", "echo kept > /d/f; sleep 3600")
        name, obj = attachment(cluster, driver.name, f"id-pvc-{uid}")
        obj["spec"]["source"]["persistentVolumeName"] = f"pvc-{uid}"
        if not cluster.get("volumeattachment", name):
            cluster.kubectl("create", "-f", "-", input=json.dumps(obj), check=False)
        wait_for("the Event", lambda: "attached to another node" in cluster.events(pod).get("FailedMount", ""))
        (driver.dir / "fail-ControllerPublishVolume").unlink()
        cluster.running(pod)
        assert cluster.get("volumeattachment", name)["metadata"]["finalizers"] == ["external-attacher/" + driver.name.replace("/", "-")]
        assert driver.calls("NodeStageVolume")[0]["publishContext"] == {"device": "/dev/none", "node": "node-of-driver"}
        was = cluster.get("pvc", "full")["status"]["capacity"]
        # The claim says at each step of its growth who has to go on, also while that one fails.
        conditions = lambda: [(c["type"], c["status"]) for c in cluster.get("pvc", "full")["status"].get("conditions", [])]  # noqa: E731
        (driver.dir / "fail-ControllerExpandVolume").write_text("8 no room to grow")
        (driver.dir / "fail-NodeExpandVolume").write_text("14 the node cannot grow it yet")
        cluster.kubectl("patch", "pvc", "full", *MERGE, '{"spec": {"resources": {"requests": {"storage": "3Mi"}}}}')
        wait_for("the Event", lambda: "no room to grow" in cluster.events("full").get("VolumeResizeFailed", ""))
        assert conditions() == [("Resizing", "True")] and cluster.get("pvc", "full")["status"]["capacity"] == was
        assert cluster.get("pv", f"pvc-{uid}")["spec"]["capacity"] == {"storage": "2Mi"}
        (driver.dir / "fail-ControllerExpandVolume").unlink()
        wait_for("the node's turn", lambda: conditions() == [("FileSystemResizePending", "True")])
        wait_for("the volume to be larger", lambda: cluster.get("pv", f"pvc-{uid}")["spec"]["capacity"] == {"storage": str(3 << 20)})
        assert driver.calls("ControllerExpandVolume")[-1]["bytes"] == 3 << 20
        assert cluster.get("pvc", "full")["status"]["capacity"] == was
        # The kubelet looks once a minute.
        wait_for("the node to try", lambda: driver.calls("NodeExpandVolume"), 150)
        assert conditions() == [("FileSystemResizePending", "True")]
        (driver.dir / "fail-NodeExpandVolume").unlink()
        wait_for("the claim to be larger", lambda: cluster.get("pvc", "full")["status"]["capacity"] == {"storage": str(3 << 20)}, 150)
        assert driver.calls("NodeExpandVolume")[-1]["bytes"] == 3 << 20 and not conditions()
        cluster.delete(pod)
        cluster.kubectl("delete", "volumeattachment", name, "--wait=false", check=False)
        wait_for("it to be detached", lambda: driver.calls("ControllerUnpublishVolume"))
        wait_for("the attachment to be gone", lambda: not cluster.get("volumeattachment", name))
        cluster.release("full", f"pvc-{uid}")
        wait_for("the volume to be gone", lambda: not cluster.get("pv", f"pvc-{uid}"))
        assert driver.calls("DeleteVolume")[-1]["volume"] == f"id-pvc-{uid}" and driver.calls("DeleteVolume")[-1]["secrets"]
        assert not list((driver.dir / "volumes").iterdir())
        assert "hunter2" not in (cluster.dir / "csi-controller.log").read_text()
        cluster.kubectl("delete", "sc", "full")
    finally:
        controller.send_signal(signal.SIGTERM)
        assert controller.wait(30) in (0, -signal.SIGTERM)
        log.close()
        driver.close()


RBD = """#!/bin/sh
# Records the calls of rbd(8); a loop device of a file stands for the image.
printf '%s ' "$@" >> {dir}/calls; echo >> {dir}/calls
case "$1" in
map) cat /proc/self/fd/3 >> {dir}/keys; echo >> {dir}/keys; losetup --find --show {dir}/image > {dir}/device; cat {dir}/device;;
unmap) losetup -d $(cat {dir}/device);;
esac
"""


def test_a_block_device_is_attached_once_and_released_with_its_last_pod(cluster):
    """A shim stands for rbd(8), and a loop device for its image."""
    folder = cluster.dir / "rbd"
    (folder / "bin").mkdir(parents=True)
    shim = folder / "bin" / "rbd"
    shim.write_text(RBD.format(dir=folder))
    shim.chmod(0o755)
    with open(folder / "image", "wb") as f:
        f.truncate(32 << 20)
    cluster.stop_kubelet()
    cluster.start_kubelet(env={"PATH": f"{folder}/bin:{os.environ['PATH']}"})
    calls = lambda word: [line for line in (folder / "calls").read_text().splitlines() if line.startswith(word)]  # noqa: E731
    try:
        cluster.put("Secret", "rbd", {"key": "hunter2-rbd"})
        cluster.claim("rbd")
        cluster.volume("rbd", "rbd", rbd={"monitors": ["192.0.2.1:6789"], "image": "img", "pool": "pool", "fsType": "ext4",
                                          "secretRef": {"name": "rbd", "namespace": "default"}})
        cluster.bind("rbd", "rbd")
        one = cluster.pod_with("rbd-one", "rbd", "echo kept > /d/f; sleep 3600")
        cluster.running(one)
        assert calls("map") == ["map img --pool pool --id admin -m 192.0.2.1:6789 --keyfile /proc/self/fd/3 "]
        assert (folder / "keys").read_text() == "hunter2-rbd\n"
        two = cluster.pod_with("rbd-two", "rbd", "while ! cat /d/f; do sleep 0.1; done; grep ' /d ' /proc/self/mountinfo; sleep 3600")
        cluster.running(two)
        wait_for("the mount", lambda: " ext4 " in (cluster.output(two) or [""])[-1])
        assert len(calls("map")) == 1
        cluster.stop_kubelet()
        cluster.start_kubelet(env={"PATH": f"{folder}/bin:{os.environ['PATH']}"})
        cluster.running(two)
        cluster.delete(one)
        assert not calls("unmap")
        cluster.delete(two)
        wait_for("the device to be released", lambda: calls("unmap") == ["unmap img --pool pool --id admin "])
        wait_for("its directory to be gone", lambda: not list((cluster.dir / "kubelet/plugins/kubernetes.io~rbd").iterdir()))
        again = cluster.pod_with("rbd-again", "rbd", "cat /d/f; sleep 3600")
        cluster.running(again)
        wait_for("the content", lambda: cluster.output(again) == ["kept"])
        cluster.delete(again)
        wait_for("the device to be released", lambda: len(calls("unmap")) == 2)
        # The device itself: attached once for two pods, also over a restart.
        cluster.claim("rbd-block", volumeMode="Block")
        cluster.volume("rbd-block", "rbd-block", volumeMode="Block", rbd={
            "monitors": ["192.0.2.1:6789"], "image": "img", "pool": "pool", "secretRef": {"name": "rbd", "namespace": "default"}})
        cluster.bind("rbd-block", "rbd-block")
        raw = block_pod(cluster, "rbd-raw", "rbd-block", WRITE)
        cluster.running(raw)
        wait_for("the content", lambda: (folder / "image").read_bytes()[:4] == b"kept")
        cluster.stop_kubelet()
        cluster.start_kubelet(env={"PATH": f"{folder}/bin:{os.environ['PATH']}"})
        more = block_pod(cluster, "rbd-more", "rbd-block", READ, read_only=True)
        cluster.running(more)
        wait_for("the refusal", lambda: "not permitted" in "".join(cluster.output(more)))
        assert len(calls("map")) == 3
        cluster.delete(raw)
        assert len(calls("unmap")) == 2
        cluster.delete(more)
        wait_for("the device to be released", lambda: len(calls("unmap")) == 3)
        assert not list((cluster.dir / "kubelet/plugins/kubernetes.io~rbd").iterdir())
        assert "hunter2-rbd" not in cluster.log()
    finally:
        cluster.stop_kubelet()
        cluster.start_kubelet()
        for line in run(["losetup", "-j", str(folder / "image"), "-O", "NAME", "-n"], check=False).stdout.split():
            run(["losetup", "-d", line], check=False)
