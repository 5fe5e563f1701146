# SPDX-License-Identifier: Apache-2.0
"""kubectl and the kinds of Kubernetes' controllers: what nothing acts upon yet says so at every write."""
import http.client
import json
import re
import subprocess

import pytest

from record_objects import OBJECTS
import api_server

# The kinds that a scheduler, a controller manager and a kubelet list: group, plural, and what is said of a new object.
STORED = {"VolumeAttributesClass": "no component of Tenet changes volumes",
          "PodTemplate": "no controller of Tenet makes pods of a PodTemplate"}


@pytest.fixture
def server(tmp_path):
    s = api_server.start(tmp_path)
    yield s
    s.stop()


def kubectl(server, *args, input=None, fails=False):
    """Output and errors together: kubectl prints warnings on standard error."""
    p = server.popen(*args, stdin=subprocess.PIPE)
    out, err = p.communicate(input or "", timeout=60)
    assert (p.returncode != 0) == fails, out + err
    return out, err


def test_every_write_says_what_does_not_happen(server):
    for kind, text in STORED.items():
        obj = next(o for o in OBJECTS if o["kind"] == kind)
        obj = {**obj, "metadata": {**obj.get("metadata", {}), "name": "one"}}
        obj.pop("status", None)
        _, err = kubectl(server, "create", "-f", "-", input=json.dumps(obj))
        assert f"Warning: stored, not acted upon yet: {text}" in err, kind
        _, err = kubectl(server, "label", kind, "one", "a=b")
        assert f"Warning: stored, not acted upon yet: {text}" in err, kind
        out, err = kubectl(server, "get", kind, "one", "-o", "wide")
        assert "one" in out and not err, kind
        assert re.search(rf"KIND: +{kind}\n", kubectl(server, "explain", kind)[0])
        _, err = kubectl(server, "delete", kind, "one")
        assert "Warning" not in err, kind


def test_kubectl_works_with_a_deployment(server):
    out, err = kubectl(server, "create", "deployment", "web", "--image=busybox:1", "--replicas=3")
    assert out == "deployment.apps/web created\n" and not err
    rows = kubectl(server, "get", "deploy,all", "-o", "wide")[0]
    assert "deployment.apps/web" in rows and "0/3" in rows and "busybox:1" in rows and "app=web" in rows
    out, err = kubectl(server, "scale", "deployment", "web", "--replicas=5")
    assert out == "deployment.apps/web scaled\n" and not err
    kubectl(server, "set", "image", "deployment/web", "busybox=busybox:2")
    got = json.loads(kubectl(server, "get", "deploy", "web", "-o", "json")[0])
    assert got["spec"]["replicas"] == 5 and got["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox:2"
    _, err = kubectl(server, "patch", "deployment", "web", "-p", '{"spec":{"selector":{"matchLabels":{"app":"x"}}}}', fails=True)
    assert "spec.selector: Invalid value" in err and "field is immutable" in err
    assert "web" in kubectl(server, "describe", "deployment", "web")[0]


def test_a_scheduler_binds_a_pod(server):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    kubectl(server, "create", "-f", "-", input=json.dumps(pod))
    path = "/api/v1/namespaces/default/pods/p/binding"
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    for status in (201, 409):
        c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        c.request("POST", path, json.dumps(binding), {"Content-Type": "application/json"})
        assert c.getresponse().status == status
    row = kubectl(server, "get", "pod", "p", "-o", "wide")[0].splitlines()[1].split()
    assert "n1" in row
    kubectl(server, "wait", "--for=condition=PodScheduled", "pod/p", "--timeout=5s")
