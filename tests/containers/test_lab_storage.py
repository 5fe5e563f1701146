# SPDX-License-Identifier: Apache-2.0
"""Storage of a lab with all parts: the binder, the scheduler, the kubelet and containerd. A claim of the default class gets a volume
where its pod is, the data outlives pods and the daemons of the node, and the reclaim policy decides what is left."""
import json

import pytest

import containerd as ctd
from lab import wait_for

IMAGE = "localhost/busybox:1"


@pytest.fixture(scope="module")
def lab(make_lab):
    ctd.needed()
    lab = make_lab("store", nodes=2, containers=True)
    lab.project("red")
    yield lab
    lab.down(check=False)


def create(lab, *objects):
    for o in objects:
        lab.kubectl("create", "-n", "red", "-f", "-", input=json.dumps(o))


def claim(name, **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, **spec}}


def deployment(name, command):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {
                "terminationGracePeriodSeconds": 0, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}],
                "containers": [{"name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", command],
                                "volumeMounts": [{"name": "v", "mountPath": "/d"}]}]}}}}


def get(lab, kind, name):
    r = lab.kubectl("get", kind, name, "-n", "red", "-o", "json", check=False)
    return json.loads(r.stdout) if r.returncode == 0 else None


def pods(lab, app):
    return [p for p in lab.objects("pods", "-n", "red") if p["metadata"].get("labels", {}).get("app") == app
            and not p["metadata"].get("deletionTimestamp")]


def one_running(lab, app, but=()):
    def find():
        found = [p for p in pods(lab, app) if p["metadata"]["uid"] not in but and p["status"]["phase"] == "Running"]
        return found[0] if len(found) == 1 else None
    return wait_for(f"a pod of {app} that runs", find, 60)


def lines(lab, pod):
    """What the pod's volume has, read by a command in its container."""
    r = lab.kubectl("exec", "-n", "red", pod["metadata"]["name"], "--", "cat", "/d/log", check=False)
    return r.stdout.split() if r.returncode == 0 else []


def remove(lab, name):
    lab.kubectl("delete", "deployment", name, "-n", "red")
    wait_for("no pod", lambda: not [p for p in lab.objects("pods", "-n", "red") if p["metadata"].get("labels", {}).get("app") == name], 60)
    lab.kubectl("delete", "pvc", name, "-n", "red", "--wait=false", "--ignore-not-found")
    wait_for("no claim", lambda: not get(lab, "pvc", name))


def test_data_outlives_pods_and_daemons_and_goes_with_the_claim(lab):
    create(lab, claim("data"), deployment("data", "echo $HOSTNAME >> /d/log; sleep 100000"))
    pod = one_running(lab, "data")
    bound = get(lab, "pvc", "data")
    volume = bound["spec"]["volumeName"]
    pv = get(lab, "pv", volume)
    assert bound["status"]["phase"] == "Bound" and bound["spec"]["storageClassName"] == "local"
    assert pv["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"] and pv["status"]["phase"] == "Bound"
    node, seen, names = pod["spec"]["nodeName"], [pod["metadata"]["uid"]], [pod["metadata"]["name"]]
    assert pv["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == [node]
    wait_for("the first line", lambda: lines(lab, pod) == names)
    # What the node says of the volume.
    def volume_of():
        summary = json.loads(lab.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary").stdout)
        return [v for p in summary["pods"] if p["podRef"]["uid"] == seen[0] for v in p.get("volume", [])]
    figures, = wait_for("figures of the volume", volume_of)
    assert figures["name"] == "v" and figures["pvcRef"] == {"name": "data", "namespace": "red"}
    assert 0 < figures["availableBytes"] <= figures["capacityBytes"] and figures["usedBytes"] > 0
    text = lab.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics").stdout
    capacity = [line for line in text.splitlines() if line.startswith("kubelet_volume_stats_capacity_bytes{")]
    assert capacity == [f'kubelet_volume_stats_capacity_bytes{{namespace="red",persistentvolumeclaim="data"}} {figures["capacityBytes"]}']
    # Another pod, after another one that was made while the kubelet was away: each on the node of the volume.
    for restart in (False, True):
        if restart:
            lab.cmd("kubelet", "kill", node)
        lab.kubectl("delete", "pod", names[-1], "-n", "red", "--wait=false")
        if restart:
            lab.cmd("kubelet", "start", node)
        pod = one_running(lab, "data", seen)
        seen.append(pod["metadata"]["uid"])
        names.append(pod["metadata"]["name"])
        assert pod["spec"]["nodeName"] == node
        wait_for("its line below the others", lambda: lines(lab, pod) == names)
    # The claim stays as long as a pod uses it.
    lab.kubectl("delete", "pvc", "data", "-n", "red", "--wait=false")
    assert get(lab, "pvc", "data")["metadata"]["deletionTimestamp"] and get(lab, "pv", volume)
    assert lines(lab, pod) == names
    remove(lab, "data")
    wait_for("the volume to go", lambda: not get(lab, "pv", volume))


def test_the_policy_retain_keeps_the_volume(lab):
    lab.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "kept"}, "provisioner": "tenet.io/local",
        "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain"}))
    create(lab, claim("kept", storageClassName="kept"), deployment("kept", "echo $HOSTNAME >> /d/log; sleep 100000"))
    pod = one_running(lab, "kept")
    wait_for("the line", lambda: lines(lab, pod) == [pod["metadata"]["name"]])
    volume = get(lab, "pvc", "kept")["spec"]["volumeName"]
    remove(lab, "kept")
    wait_for("the volume to be released", lambda: get(lab, "pv", volume)["status"]["phase"] == "Released")
    # An administrator gives it to another claim, and the data are there.
    lab.kubectl("patch", "pv", volume, "--type=merge", "-p", '{"spec": {"claimRef": null}}')
    create(lab, claim("kept", storageClassName="kept", volumeName=volume), deployment("kept", "echo $HOSTNAME >> /d/log; sleep 100000"))
    again = one_running(lab, "kept")
    wait_for("both lines", lambda: lines(lab, again) == [pod["metadata"]["name"], again["metadata"]["name"]])
    remove(lab, "kept")
    lab.kubectl("delete", "pv", volume)


def test_a_claim_that_fits_nowhere_holds_its_pod_and_says_why(lab):
    create(lab, claim("vast", resources={"requests": {"storage": "900Ti"}}), deployment("vast", "sleep 100000"))

    def why():
        return [c.get("message", "") for p in pods(lab, "vast") for c in p["status"].get("conditions", [])
                if c["type"] == "PodScheduled" and c["status"] == "False"]
    wait_for("the reason", lambda: any("storage" in m for m in why()))
    assert get(lab, "pvc", "vast")["status"]["phase"] == "Pending"
    remove(lab, "vast")
