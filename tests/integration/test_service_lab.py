# SPDX-License-Identifier: Apache-2.0
"""What pods of a lab have of services: their environment, and readiness that endpoints follow."""
import json

import pytest

from lab import TENET, Lab, Server, run, wait_for

BACKEND = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "back-end"},
           "spec": {"selector": {"app": "back"}, "ports": [{"name": "http", "port": 80, "targetPort": 9376}]}}


@pytest.fixture(scope="module")
def lab():
    made = Lab("sl", nodes=1)
    try:
        made.up()
        made.project("red")
        yield made
    finally:
        made.down(check=False)


def create(lab, obj, ns="red"):
    return json.loads(lab.kubectl("-n", ns, "create", "-o", "json", "-f", "-", input=json.dumps(obj)).stdout)


def environment(lab, ref):
    lines = lab.cmd("exec", ref, "--", "env").stdout.splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def endpoints(lab, name, ns="red"):
    """Ready and other addresses."""
    ep = json.loads(lab.kubectl("-n", ns, "get", "endpoints", name, "-o", "json").stdout)
    return tuple([a["ip"] for s in ep.get("subsets", []) for a in s.get(key, [])]
                 for key in ("addresses", "notReadyAddresses"))


def test_pods_find_services_that_were_there_before_them(lab):
    lab.pod("red/early")
    svc = create(lab, BACKEND)
    ip = svc["spec"]["clusterIP"]
    lab.pod("red/later")
    lab.cmd("pod", "add", "red/nolinks", "--no-service-links")
    api = wait_for("the API's service", lambda: lab.kubectl("-n", "default", "get", "svc", "kubernetes", "-o",
                                                            "jsonpath={.spec.clusterIP}").stdout)
    assert "BACK_END_SERVICE_HOST" not in environment(lab, "red/early")
    env = environment(lab, "red/later")
    assert env["BACK_END_SERVICE_HOST"] == ip and env["BACK_END_SERVICE_PORT"] == "80"
    assert env["BACK_END_SERVICE_PORT_HTTP"] == "80" and env["BACK_END_PORT_80_TCP"] == f"tcp://{ip}:80"
    assert env["KUBERNETES_SERVICE_HOST"] == api == "172.30.0.1"
    env = environment(lab, "red/nolinks")
    assert "BACK_END_SERVICE_HOST" not in env and env["KUBERNETES_SERVICE_HOST"] == api
    # Made anew it may have another address, which pods know when they are made anew.
    lab.kubectl("-n", "red", "delete", "svc", "back-end")
    create(lab, {**BACKEND, "spec": {**BACKEND["spec"], "clusterIP": "172.30.77.77"}})
    assert environment(lab, "red/later")["BACK_END_SERVICE_HOST"] == ip
    lab.delete_pod("red/later")
    lab.pod("red/later")
    assert environment(lab, "red/later")["BACK_END_SERVICE_HOST"] == "172.30.77.77"


def test_a_pod_that_is_not_ready_gets_nothing(lab):
    create(lab, {**BACKEND, "metadata": {"name": "probed"}, "spec": {**BACKEND["spec"], "selector": {"app": "probed"}}})
    pod = lab.pod("red/probed", labels={"app": "probed"})
    wait_for("the endpoint", lambda: endpoints(lab, "probed") == ([pod.ip], []))
    lab.cmd("pod", "unready", "red/probed")
    wait_for("the endpoint not to be ready", lambda: endpoints(lab, "probed") == ([], [pod.ip]))
    lab.cmd("pod", "ready", "red/probed")
    wait_for("the endpoint", lambda: endpoints(lab, "probed") == ([pod.ip], []))
    lab.delete_pod("red/probed")
    wait_for("the endpoint to go", lambda: endpoints(lab, "probed") == ([], []))


def test_the_masters_address_is_behind_the_api_service(lab):
    ip = wait_for("the API's endpoint", lambda: endpoints(lab, "kubernetes", "default")[0])
    ep = json.loads(lab.kubectl("-n", "default", "get", "endpoints", "kubernetes", "-o", "json").stdout)
    port = ep["subsets"][0]["ports"][0]["port"]
    pod = lab.pod("red/client")
    out = pod.ns(["curl", "-s", "--max-time", "5", f"http://{ip[0]}:{port}/healthz"], check=False)
    assert out.stdout == "ok", out


WIDGETS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.idle.example"},
           "spec": {"group": "idle.example", "scope": "Namespaced",
                    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": True, "storage": True,
                                  "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                                  "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def test_the_first_connection_to_an_idled_service_brings_its_pods_and_is_served(lab):
    lab.kubectl("create", "-f", "-", input=json.dumps(WIDGETS))
    wait_for("the kind", lambda: lab.kubectl("get", "widgets", check=False).returncode == 0)
    widget = create(lab, {"apiVersion": "idle.example/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 1}})
    owner = [{"apiVersion": "idle.example/v1", "kind": "Widget", "name": "w", "uid": widget["metadata"]["uid"], "controller": True}]
    svc = create(lab, {**BACKEND, "metadata": {"name": "sleepy"}, "spec": {**BACKEND["spec"], "selector": {"app": "w"}}})

    def pod_of_widget(name):
        """As a controller of widgets would make it."""
        pod = lab.pod(f"red/{name}")
        server = Server(pod.popen, "tcp", 9376)
        # It is an endpoint once it listens.
        lab.kubectl("-n", "red", "patch", "pod", name, "-p", json.dumps(
            {"metadata": {"ownerReferences": owner, "labels": {"app": "w"}}}))
        return pod, server

    def replicas():
        return lab.kubectl("-n", "red", "get", "widget", "w", "-o", "jsonpath={.spec.replicas}").stdout

    first, server = pod_of_widget("w1")
    client = lab.pod("red/caller")
    wait_for("the endpoint", lambda: endpoints(lab, "sleepy") == ([first.ip], []))
    out = run([TENET, "idle", "-n", "red", "--kubeconfig", lab.kubeconfig, "sleepy"]).stdout
    assert 'Widget.idle.example "red/w" has been idled' in out and replicas() == "0"
    server.stop()
    lab.delete_pod("red/w1")
    wait_for("no endpoint", lambda: endpoints(lab, "sleepy") == ([], []))
    talk = client.popen(["/usr/bin/python3", "-c", "import socket, sys; s = socket.create_connection((sys.argv[1], 80), timeout=60); "
                         "print(s.recv(64).decode())", svc["spec"]["clusterIP"]])
    try:
        wait_for("the scale of before", lambda: replicas() == "1")
        second, server = pod_of_widget("w2")
        out, _ = talk.communicate(timeout=60)
        assert out.strip() == client.ip, out
        wait_for("the end of idling", lambda: "idling.alpha" not in lab.kubectl("-n", "red", "get", "svc,endpoints", "sleepy", "-o", "json").stdout)
    finally:
        talk.kill()
        talk.wait()
        server.stop()
