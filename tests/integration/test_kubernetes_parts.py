# SPDX-License-Identifier: Apache-2.0
"""The requests with which Kubernetes' own parts begin, with their default options, as their own users: those of
kube-controller-manager, kube-scheduler and kubelet, of releases 1.26 to 1.34."""
import json
import signal
import urllib.error
import urllib.request

import pytest

from lab import wait_for
from test_auth import Cluster

PROTOBUF = "application/vnd.kubernetes.protobuf"
# How client-go asks for objects.
ACCEPT = f"{PROTOBUF},application/json"
CORE, APPS, STORAGE, RESOURCE, NET = "api/v1", "apis/apps/v1", "apis/storage.k8s.io/v1", "apis/resource.k8s.io/v1", \
    "apis/networking.k8s.io/v1"
PENDING = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
SCHEDULER = [
    f"{CORE}/nodes", f"{CORE}/pods?{PENDING}", f"{CORE}/namespaces", f"{CORE}/services", f"{CORE}/replicationcontrollers",
    f"{CORE}/persistentvolumes", f"{CORE}/persistentvolumeclaims", f"{APPS}/replicasets", f"{APPS}/statefulsets",
    "apis/policy/v1/poddisruptionbudgets", f"{STORAGE}/csinodes", f"{STORAGE}/csidrivers", f"{STORAGE}/csistoragecapacities",
    f"{STORAGE}/storageclasses", f"{STORAGE}/volumeattachments", f"{RESOURCE}/deviceclasses", f"{RESOURCE}/resourceclaims",
    f"{RESOURCE}/resourceslices"]
CONTROLLERS = [
    *(p.split("?")[0] for p in SCHEDULER), f"{CORE}/configmaps", f"{CORE}/secrets", f"{CORE}/serviceaccounts",
    f"{CORE}/endpoints", f"{CORE}/limitranges", f"{CORE}/resourcequotas", f"{CORE}/podtemplates", f"{CORE}/events",
    f"{APPS}/deployments", f"{APPS}/daemonsets", f"{APPS}/controllerrevisions", "apis/batch/v1/jobs", "apis/batch/v1/cronjobs",
    "apis/autoscaling/v1/horizontalpodautoscalers", "apis/autoscaling/v2/horizontalpodautoscalers",
    "apis/discovery.k8s.io/v1/endpointslices", "apis/coordination.k8s.io/v1/leases", f"{NET}/networkpolicies",
    f"{NET}/servicecidrs", f"{NET}/ipaddresses", f"{STORAGE}/volumeattributesclasses", f"{RESOURCE}/resourceclaimtemplates",
    "apis/certificates.k8s.io/v1/certificatesigningrequests", "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "apis/scheduling.k8s.io/v1/priorityclasses",
    "apis/node.k8s.io/v1/runtimeclasses"]


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    cluster = Cluster(str(tmp_path_factory.mktemp("parts")))
    cluster.admin("GET", "/version")
    yield cluster
    cluster.stop(signal.SIGKILL)


def send(c, who, method, path, body=None, stream=False, **headers):
    """(status, type, bytes); a stream is not read."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"https://127.0.0.1:{c.port}/{path}", data, method=method, headers={
        "Content-Type": "application/json", "Accept": ACCEPT, **headers})
    try:
        with urllib.request.urlopen(request, timeout=30, context=who) as r:
            return r.status, r.headers["Content-Type"], b"" if stream else r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers["Content-Type"], e.read()


def follows(c, who, path):
    """Lists and watches, as an informer does: the older way, and in one stream."""
    status, kind, body = send(c, who, "GET", path)
    assert (status, kind) == (200, PROTOBUF), (path, status, body)
    join = "&" if "?" in path else "?"
    for more in ("watch=1&resourceVersion=0", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"):
        watch = f"{path}{join}allowWatchBookmarks=true&timeoutSeconds=300&{more}"
        status, kind, body = send(c, who, "GET", watch, stream=True, Accept=f"{PROTOBUF};stream=watch,application/json")
        assert status == 200, (watch, status, body)


def leads(c, who, name):
    """The election: its Lease is created in kube-system, and renewed."""
    path = "apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    lease = {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {
        "holderIdentity": name, "leaseDurationSeconds": 15, "renewTime": "2024-01-02T03:04:05.000000Z"}}
    assert send(c, who, "POST", path, lease)[0] == 201
    status, _, body = send(c, who, "GET", f"{path}/{name}", Accept="application/json")
    assert status == 200
    assert send(c, who, "PUT", f"{path}/{name}", json.loads(body))[0] == 200


def serves(c, who):
    """What the part's own server asks for: how to know its clients, and what they may do."""
    path = "api/v1/namespaces/kube-system/configmaps"
    wait_for("the ConfigMap", lambda: send(c, who, "GET", f"{path}/extension-apiserver-authentication")[0] == 200)
    follows(c, who, f"{path}?fieldSelector=metadata.name%3Dextension-apiserver-authentication")
    ca = c.admin("GET", f"/{path}/extension-apiserver-authentication")["data"]["client-ca-file"]
    assert ca == (c.pki / "ca.crt").read_text()
    assert send(c, who, "POST", "apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})[0] == 201
    assert send(c, who, "POST", "apis/authorization.k8s.io/v1/subjectaccessreviews",
                {"spec": {"user": "eve", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}})[0] == 201


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def test_a_scheduler_begins(c):
    who = c.user("system:kube-scheduler")
    leads(c, who, "kube-scheduler")
    serves(c, who)
    for path in SCHEDULER:
        follows(c, who, path)
    c.namespace("sched")
    path = "/api/v1/namespaces/sched/pods"
    c.admin("POST", path, pod("p"), 201)
    assert send(c, who, "PATCH", f"{path[1:]}/p/status", {"status": {"conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
        **{"Content-Type": "application/strategic-merge-patch+json"})[0] == 200
    assert send(c, who, "POST", f"{path[1:]}/p/binding", {
        "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n9"}})[0] == 201
    assert c.admin("GET", f"{path}/p")["spec"]["nodeName"] == "n9"
    assert send(c, who, "POST", path[1:], pod("own"))[0] == 403


def test_a_controller_manager_begins(c):
    who = c.user("system:kube-controller-manager")
    leads(c, who, "kube-controller-manager")
    serves(c, who)
    for path in CONTROLLERS:
        follows(c, who, path)


@pytest.mark.parametrize("controller, group, plural, body", [
    ("replicaset-controller", CORE, "pods", pod("made")),
    ("deployment-controller", APPS, "replicasets", {"metadata": {"name": "made"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **{
            "spec": pod("x")["spec"]}}}}),
    ("cronjob-controller", "apis/batch/v1", "jobs", {"metadata": {"name": "made"}, "spec": {
        "template": {"spec": pod("x", restartPolicy="Never")["spec"]}}}),
    ("endpointslice-controller", "apis/discovery.k8s.io/v1", "endpointslices", {
        "metadata": {"name": "made"}, "addressType": "IPv4", "endpoints": None, "ports": None}),
])
def test_a_controller_acts_as_its_service_account(c, controller, group, plural, body):
    """--use-service-account-credentials: the manager makes the account and asks for a token of it."""
    manager, name = c.user("system:kube-controller-manager"), controller
    accounts = "api/v1/namespaces/kube-system/serviceaccounts"
    assert send(c, manager, "POST", accounts, {"metadata": {"name": name}})[0] == 201
    status, _, answer = send(c, manager, "POST", f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 3600}},
                             Accept="application/json")
    assert status == 201
    token = {"Authorization": "Bearer " + json.loads(answer)["status"]["token"]}
    c.namespace(f"of-{name}")
    place = f"{group}/namespaces/of-{name}/{plural}"
    assert send(c, manager, "POST", place, body)[0] == 403
    assert send(c, c.context(), "POST", place, body, **token)[0] == 201
    assert send(c, c.context(), "POST", f"{CORE}/namespaces/of-{name}/secrets", {"metadata": {"name": "s"}}, **token)[0] == 403


def test_a_kubelet_begins(c):
    node, other = (c.user(f"system:node:{n}", "system:nodes") for n in ("n1", "n2"))
    assert send(c, node, "POST", f"{CORE}/nodes", {"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
                                                   "status": {"capacity": {"pods": "110"}}})[0] == 201
    uid = c.admin("GET", "/api/v1/nodes/n1")["metadata"]["uid"]
    for path in (f"{CORE}/services", f"{CORE}/nodes?fieldSelector=metadata.name%3Dn1",
                 f"{CORE}/pods?fieldSelector=spec.nodeName%3Dn1", f"{STORAGE}/csidrivers", "apis/node.k8s.io/v1/runtimeclasses"):
        follows(c, node, path)
    assert send(c, node, "POST", "apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
                {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1"}})[0] == 201
    assert send(c, node, "POST", f"{STORAGE}/csinodes", {"metadata": {"name": "n1"}, "spec": {"drivers": []}})[0] == 201
    assert send(c, node, "DELETE", f"{RESOURCE}/resourceslices?fieldSelector=spec.nodeName%3Dn1")[0] == 200
    assert send(c, other, "DELETE", f"{RESOURCE}/resourceslices?fieldSelector=spec.nodeName%3Dn1")[0] == 403
    assert send(c, node, "POST", "apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})[0] == 201
    # The pod's volume: the authority, and a token bound to the pod.
    c.namespace("kl")
    made = c.admin("POST", "/api/v1/namespaces/kl/pods", pod("p", nodeName="n1"), 201)
    sources = made["spec"]["volumes"][0]["projected"]["sources"]
    named = f"{CORE}/namespaces/kl/configmaps?fieldSelector=metadata.name%3D{sources[1]['configMap']['name']}"
    wait_for("the ConfigMap", lambda: b"BEGIN CERTIFICATE" in send(c, node, "GET", named)[2])
    follows(c, node, named)
    assert send(c, other, "GET", named)[0] == 403
    asked = {"spec": {"expirationSeconds": sources[0]["serviceAccountToken"]["expirationSeconds"], "boundObjectRef": {
        "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]}}}
    path = f"{CORE}/namespaces/kl/serviceaccounts/default/token"
    status, _, answer = send(c, node, "POST", path, asked, Accept="application/json")
    assert status == 201
    assert c.whoami(json.loads(answer)["status"]["token"])["username"] == "system:serviceaccount:kl:default"
    assert send(c, other, "POST", path, asked)[0] == 403
    # A static pod's mirror, and nothing else.
    mirror = pod("static-n1", nodeName="n1", hostNetwork=True)
    mirror["metadata"].update(annotations={"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"},
                              ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}])
    pods = f"{CORE}/namespaces/kube-system/pods"
    assert send(c, node, "POST", pods, pod("own", nodeName="n1"))[0] == 403
    assert send(c, other, "POST", pods, mirror)[0] == 403
    assert send(c, node, "POST", pods, mirror)[0] == 201
    assert send(c, other, "DELETE", f"{pods}/static-n1", {"gracePeriodSeconds": 0})[0] == 403
    assert send(c, node, "DELETE", f"{pods}/static-n1", {"gracePeriodSeconds": 0})[0] == 200
