# SPDX-License-Identifier: Apache-2.0
"""Pods over the wire: what kube-apiserver refuses is refused with the same field, what it puts in is put in, and only
what may change changes.  The words of each rule are in tests/unit/api/test_pod.c."""
import json

import pytest

import api_server
from test_api_apply import call

PODS = "/api/v1/namespaces/default/pods"
C = {"name": "c", "image": "i"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    s = api_server.start(tmp_path_factory.mktemp("pods"))
    yield s
    s.stop()


def pod(name, spec):
    return {"metadata": {"name": name}, "spec": {"containers": [C], **spec}}


def containers(**more):
    return {"containers": [{**C, **more}]}


def mounted(mount, *volumes):
    return {"volumes": list(volumes), **containers(volumeMounts=[mount])}


def causes(answer):
    return {c["field"]: c["message"] for c in answer["details"].get("causes", [])}


REFUSED = [
    ("no containers", {"containers": []}, "spec.containers"),
    ("no image", {"containers": [{"name": "c"}]}, "spec.containers[0].image"),
    ("two equal host ports", containers(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
     "spec.containers[0].ports[1].hostPort"),
    ("the node's network with another port", {"hostNetwork": True, **containers(ports=[{"containerPort": 1, "hostPort": 9}])},
     "spec.containers[0].ports[0].hostPort"),
    ("name of a variable", containers(env=[{"name": "a b"}]), "spec.containers[0].env[0].name"),
    ("value and valueFrom", containers(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {
        "fieldPath": "metadata.name"}}}]), "spec.containers[0].env[0].valueFrom"),
    ("path of a field", containers(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.none"}}}]),
     "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
    ("request over the limit", containers(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
     "spec.containers[0].resources.requests"),
    ("mount without a volume", mounted({"name": "v", "mountPath": "/a"}), "spec.containers[0].volumeMounts[0].name"),
    ("mount that leaves the volume", mounted({"name": "v", "mountPath": "/a", "subPath": "../b"}, {"name": "v", "emptyDir": {}}),
     "spec.containers[0].volumeMounts.subPath"),
    ("two sources of a volume", {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
     "spec.volumes[0].hostPath"),
    ("probe without a handler", containers(livenessProbe={}), "spec.containers[0].livenessProbe"),
    ("probe with two", containers(livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}),
     "spec.containers[0].livenessProbe.tcpSocket"),
    ("pull policy", containers(imagePullPolicy="X"), "spec.containers[0].imagePullPolicy"),
    ("host aliases", {"hostAliases": [{"ip": "x", "hostnames": ["a"]}]}, "spec.hostAliases[0].ip"),
    ("operator of a toleration", {"tolerations": [{"key": "a", "operator": "X"}]}, "spec.tolerations[0].operator"),
    ("deadline", {"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
    ("hostname", {"hostname": "A_b"}, "spec.hostname"),
    ("kernel parameter", {"securityContext": {"sysctls": [{"name": "a b", "value": "1"}]}},
     "spec.securityContext.sysctls[0].name"),
    ("user", {"securityContext": {"runAsUser": -1}}, "spec.securityContext.runAsUser"),
    ("operating system", {"os": {"name": "bsd"}}, "spec.os"),
    ("no name servers", {"dnsPolicy": "None"}, "spec.dnsConfig"),
    ("ephemeral containers", {"ephemeralContainers": [{"name": "e", "image": "i"}]}, "spec.ephemeralContainers"),
]


@pytest.mark.parametrize("spec, field", [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_kubernetes_refuses_is_refused(server, spec, field):
    status, _, answer = call(server, "POST", PODS, pod("bad", spec))
    assert status == 422 and answer["reason"] == "Invalid", answer
    assert field in causes(answer), answer
    # A controller would make such pods from a template without end.
    if field != "spec.ephemeralContainers":
        meta = {"labels": {"a": "b"}}
        owner = {"metadata": {"name": "bad"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": meta, "spec": pod("", spec)["spec"]}}}
        status, _, answer = call(server, "POST", "/apis/apps/v1/namespaces/default/deployments", owner)
        assert status == 422 and "spec.template." + field in causes(answer), answer


def test_a_pod_without_a_spec(server):
    status, _, answer = call(server, "POST", PODS, {"metadata": {"name": "bad"}})
    assert status == 422 and causes(answer) == {"spec.containers": "Required value"}


def test_defaults_and_canonical_quantities(server):
    spec = containers(resources={"limits": {"cpu": "0.5", "memory": "1024Mi"}}, readinessProbe={"tcpSocket": {"port": 1}})
    status, _, made = call(server, "POST", PODS, pod("defaults", {
        **spec, "automountServiceAccountToken": False, "volumes": [{"name": "v"}],
        "schedulerName": "none"}))  # no scheduler writes its status meanwhile
    assert status == 201
    one = made["spec"]["containers"][0]
    assert one["resources"] == {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert (one["terminationMessagePath"], one["terminationMessagePolicy"]) == ("/dev/termination-log", "File")
    assert one["readinessProbe"] == {"tcpSocket": {"port": 1}, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1,
                                     "failureThreshold": 3}
    assert made["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert {t["key"]: t["tolerationSeconds"] for t in made["spec"]["tolerations"]} == {
        "node.kubernetes.io/not-ready": 300, "node.kubernetes.io/unreachable": 300}
    assert made["spec"]["priority"] == 0 and made["spec"]["enableServiceLinks"] is True
    # What a client read and writes back is no change.
    status, _, again = call(server, "PUT", f"{PODS}/defaults", made)
    assert status == 200 and again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_an_update_does_not_move_or_change_a_pod(server):
    assert call(server, "POST", PODS, pod("fixed", {}))[0] == 201
    merge = "application/merge-patch+json"
    for change in ({"nodeName": "n"}, {"hostNetwork": True}, {"serviceAccountName": "other"}, {"schedulerName": "x"},
                   {"containers": [{**C, "command": ["sh"]}]}):
        status, _, answer = call(server, "PATCH", f"{PODS}/fixed", {"spec": change}, merge)
        assert status == 422 and "pod updates may not change fields other than `spec.containers[*].image`" in answer["message"]
    status, _, answer = call(server, "PATCH", f"{PODS}/fixed", {"spec": {"containers": [C, {**C, "name": "d"}]}}, merge)
    assert causes(answer) == {"spec.containers": "Forbidden: pod updates may not add or remove containers"}
    strategic = "application/strategic-merge-patch+json"
    image = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}
    status, _, answer = call(server, "PATCH", f"{PODS}/fixed", image, strategic)
    assert status == 200 and answer["spec"]["containers"][0]["image"] == "i:2"
    # The scheduler's way is open.
    bind = {"metadata": {"name": "fixed"}, "target": {"kind": "Node", "name": "n"}}
    assert call(server, "POST", f"{PODS}/fixed/binding", bind)[0] == 201
    assert call(server, "GET", f"{PODS}/fixed")[2]["spec"]["nodeName"] == "n"


def test_a_status_keeps_class_and_rules(server):
    assert call(server, "POST", PODS, pod("status", {"restartPolicy": "Never"}))[0] == 201
    path = f"{PODS}/status/status"
    ended = {"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]}
    status, _, answer = call(server, "PUT", path, {"metadata": {"name": "status"}, "status": ended})
    assert status == 200 and answer["status"]["qosClass"] == "BestEffort"
    running = {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    status, _, answer = call(server, "PUT", path, {"metadata": {"name": "status"}, "status": running})
    assert status == 422 and causes(answer) == {
        "status.containerStatuses[0].state": "Forbidden: may not be transitioned to non-terminated state"}
    status, _, answer = call(server, "PATCH", path, {"status": {"qosClass": "Guaranteed"}}, "application/merge-patch+json")
    assert status == 422 and "status.qosClass" in causes(answer)


def test_ephemeral_containers_are_added_by_their_subresource(server):
    assert call(server, "POST", PODS, pod("debugged", {}))[0] == 201
    path = f"{PODS}/debugged/ephemeralcontainers"
    strategic = "application/strategic-merge-patch+json"
    add = {"spec": {"hostNetwork": True, "ephemeralContainers": [{"name": "e", "image": "busybox", "targetContainerName": "c"}]}}
    status, _, answer = call(server, "PATCH", path, add, strategic)
    assert status == 200 and "hostNetwork" not in answer["spec"], answer
    [made] = answer["spec"]["ephemeralContainers"]
    assert made["imagePullPolicy"] == "Always" and made["terminationMessagePolicy"] == "File"
    status, _, answer = call(server, "PATCH", path, {"spec": {"ephemeralContainers": [{"name": "e", "image": "other"}]}}, strategic)
    assert status == 422 and "may not be changed" in answer["message"]
    status, _, answer = call(server, "PATCH", path, {"spec": {"ephemeralContainers": None}}, "application/merge-patch+json")
    assert status == 422 and "may not be removed" in answer["message"]
    assert json.dumps(call(server, "GET", path)[2]["spec"]["ephemeralContainers"]) == json.dumps([made])
