# SPDX-License-Identifier: Apache-2.0
"""Server-side apply, field validation, explain and dry run by unmodified kubectl, whichever version is there."""
import http.client
import json
import subprocess

import pytest

import api_server
from test_api_kubectl import NETWORK, rows

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  nodeName: node1
  containers:
  - {name: c, image: IMAGE, ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]}
"""


@pytest.fixture
def server(tmp_path):
    s = api_server.start(tmp_path)
    yield s
    s.stop()


def call(server, method, path, body=None, content_type="application/json", accept="application/json"):
    """The answer's status, headers and body (parsed if it is JSON)."""
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    body = json.dumps(body) if isinstance(body, (dict, list)) else body
    c.request(method, path, body, {"Content-Type": content_type, "Accept": accept})
    r = c.getresponse()
    data = r.read()
    c.close()
    try:
        return r.status, r.headers, json.loads(data)
    except ValueError:
        return r.status, r.headers, data


def managers(server, path="/api/v1/namespaces/default/pods/web"):
    fields = call(server, "GET", path)[2]["metadata"]["managedFields"]
    return {(f["manager"], f["operation"], f.get("subresource", "")): f["fieldsV1"] for f in fields}


def client_version(server):
    """The minor version of kubectl: 20, 32, ..."""
    out = server.kubectl("version", "--client", "-o", "json")
    return int(json.loads(out)["clientVersion"]["minor"].rstrip("+"))


def test_apply_server_side(server):
    out = server.kubectl("apply", "--server-side", "-f", "-", input=POD.replace("IMAGE", "busybox"))
    assert out == "pod/web serverside-applied\n"
    owned = managers(server)
    assert list(owned) == [("kubectl", "Apply", "")]
    ports = owned["kubectl", "Apply", ""]["f:spec"]["f:containers"]['k:{"name":"c"}']["f:ports"]
    assert set(ports) == {'k:{"containerPort":53,"protocol":"TCP"}', 'k:{"containerPort":53,"protocol":"UDP"}'}
    version = call(server, "GET", "/api/v1/namespaces/default/pods/web")[2]["metadata"]["resourceVersion"]
    server.kubectl("apply", "--server-side", "-f", "-", input=POD.replace("IMAGE", "busybox"))
    assert call(server, "GET", "/api/v1/namespaces/default/pods/web")[2]["metadata"]["resourceVersion"] == version
    # Another manager's value is a conflict, which can be forced.
    other = POD.replace("IMAGE", "alpine")
    err = server.kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", input=other, fails=True)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.containers[name="c"].image' in err
    server.kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", input=other)
    assert server.kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}") == "alpine"
    # What is applied no longer goes, unless another one applies it, too.
    server.kubectl("apply", "--server-side", "-f", "-", input=POD.replace("labels: {app: web}", "labels: {}")
                   .replace("IMAGE", "alpine"))
    assert server.kubectl("get", "pod", "web", "-o", "jsonpath={.metadata.labels}") in ('{"app":"web"}', "map[app:web]")
    server.kubectl("apply", "--server-side", "--field-manager=other", "-f", "-",
                   input=other.replace("labels: {app: web}", "labels: {}"))
    assert server.kubectl("get", "pod", "web", "-o", "jsonpath={.metadata.labels}") in ("", "{}", "map[]")


def test_client_side_apply_moves_to_server_side(server):
    server.kubectl("apply", "-f", "-", input=POD.replace("IMAGE", "busybox"))
    assert ("kubectl-client-side-apply", "Update", "") in managers(server)
    server.kubectl("apply", "--server-side", "-f", "-", input=POD.replace("IMAGE", "alpine"))
    assert server.kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}") == "alpine"
    assert ("kubectl", "Apply", "") in managers(server)
    # And back: the annotation followed.
    out = server.kubectl("apply", "-f", "-", input=POD.replace("IMAGE", "alpine"))
    assert out in ("pod/web unchanged\n", "pod/web configured\n")


LABELLED = """apiVersion: v1
kind: ConfigMap
metadata: {name: edited, labels: {l: x}}
data: {kept: "1"}
"""


def test_what_was_edited_after_a_client_side_apply_is_a_conflict(server):
    """kubectl takes over the fields of its annotation whose value is still that of the annotation."""
    server.kubectl("apply", "-f", "-", input=LABELLED)
    server.kubectl("label", "--overwrite", "configmap", "edited", "l=edited", "--field-manager=ed")
    # Without kubectl's own migration of managedFields, which new versions make before they apply.
    path, patch = "/api/v1/namespaces/default/configmaps/edited?fieldManager=kubectl", "application/apply-patch+yaml"
    status, _, answer = call(server, "PATCH", path, LABELLED, patch)
    assert status == 409
    assert answer["message"] == 'Apply failed with 1 conflict: conflict with "ed" using v1: .metadata.labels.l'
    status, _, answer = call(server, "PATCH", path, LABELLED.replace("l: x", "l: edited").replace('"1"', '"2"'), patch)
    assert status == 200 and answer["data"] == {"kept": "2"} and answer["metadata"]["labels"] == {"l": "edited"}
    # By kubectl itself.
    server.kubectl("label", "--overwrite", "configmap", "edited", "l=again", "--field-manager=ed")
    err = server.kubectl("apply", "--server-side", "-f", "-", input=LABELLED, fails=True)
    assert 'conflict with "ed" using v1: .metadata.labels.l' in err


def test_an_apply_without_a_type_is_refused(server):
    path, patch = "/api/v1/namespaces/default/configmaps/typeless?fieldManager=m", "application/apply-patch+yaml"
    for there in (False, True):
        for body, text in (('{"metadata":{}}', "Incorrect version specified in apply patch. Specified patch version: , expected: v1"),
                           ('{"kind":"ConfigMap"}', "Specified patch version: , expected: v1"),
                           ('{"apiVersion":"v1"}', "no corresponding type for /v1, Kind=")):
            status, _, answer = call(server, "PATCH", path, body, patch)
            assert status == 400 and answer["reason"] == "BadRequest" and text in answer["message"]
        if not there:
            assert call(server, "GET", path)[0] == 404
            assert call(server, "PATCH", path, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1"}}', patch)[0] == 201
    assert call(server, "GET", path)[2]["data"] == {"a": "1"}


def test_conflicts_are_causes(server):
    path = "/api/v1/namespaces/default/configmaps/c?fieldManager="
    patch = "application/apply-patch+yaml"
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: A, b: %s}\n"
    status, _, made = call(server, "PATCH", path + "one", body % "B", patch)
    assert status == 201 and made["data"] == {"a": "A", "b": "B"}
    status, _, answer = call(server, "PATCH", path + "two", body % "X", patch)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert answer["details"]["causes"] == [{"reason": "FieldManagerConflict", "field": ".data.b",
                                            "message": 'conflict with "one"'}]
    assert call(server, "PATCH", path + "two&force=true", body % "X", patch)[0] == 200
    assert call(server, "PATCH", path + "one", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", patch)[0] == 200
    assert call(server, "GET", "/api/v1/namespaces/default/configmaps/c")[2]["data"] == {"a": "A", "b": "X"}
    status, _, answer = call(server, "PATCH", "/api/v1/namespaces/default/configmaps/c", body % "X", patch)
    assert status == 422 and answer["details"]["causes"][0]["field"] == "fieldManager"
    status, _, answer = call(server, "PATCH", path + "one", "apiVersion: v1\nkind: ConfigMap\ndata: {a: [1]}\n", patch)
    assert status == 400 and "data.a" in answer["message"]
    # A dry run changes nothing, and says what it would.
    status, _, answer = call(server, "PATCH", path + "two&dryRun=All", body % "Z", patch)
    assert status == 200 and answer["data"]["b"] == "Z"
    assert call(server, "GET", "/api/v1/namespaces/default/configmaps/c")[2]["data"]["b"] == "X"


def test_status_and_update_have_managers_of_their_own(server):
    server.kubectl("create", "-f", "-", input=POD.replace("IMAGE", "busybox"))
    server.patch_status("/api/v1/namespaces/default/pods/web", '{"status":{"phase":"Running"}}')
    owned = managers(server)
    assert ("kubectl-create", "Update", "") in owned or ("kubectl", "Update", "") in owned
    status = [fields for (_, operation, sub), fields in owned.items() if sub == "status" and operation == "Update"]
    assert status == [{"f:status": {"f:phase": {}}}]
    for i in range(15):
        call(server, "PATCH", f"/api/v1/namespaces/default/pods/web?fieldManager=m{i}",
             {"metadata": {"annotations": {f"a{i}": "x"}}}, "application/merge-patch+json")
    assert len([k for k in managers(server) if k[1] == "Update"]) <= 10
    assert ("ancient-changes", "Update", "") in managers(server)


def test_a_record_of_no_shape_is_refused(server):
    """By its field, however it comes; and the server is there afterwards."""
    path = "/api/v1/namespaces/default/configmaps"
    assert call(server, "POST", path, {"metadata": {"name": "shape"}, "data": {"a": "1"}})[0] == 201
    for record in ({"a": [{}]}, [1], ["x", {}], [[{}]], "x", [{"fieldsV1": [1]}],
                   [{"fieldsV1": {"f:data": ["a"]}}], [{"fieldsV1": {"f:data": {"f:a": "x"}}}]):
        obj = call(server, "GET", f"{path}/shape")[2]
        obj["metadata"]["managedFields"], obj["data"] = record, {"a": "2"}
        patch = {"metadata": {"managedFields": record}, "data": {"a": "2"}}
        for answer in (call(server, "PUT", f"{path}/shape", obj),
                       call(server, "PATCH", f"{path}/shape", patch, "application/merge-patch+json"),
                       call(server, "PATCH", f"{path}/shape?fieldManager=m", {
                           "apiVersion": "v1", "kind": "ConfigMap", **patch}, "application/apply-patch+yaml")):
            assert answer[0] in (400, 422, 500) and "managedFields" in answer[2]["message"], (record, answer)
        assert call(server, "GET", f"{path}/shape")[2]["data"] == {"a": "1"}


def test_unknown_fields(server):
    body = {"metadata": {"name": "c"}, "data": {"a": "b"}, "colour": "red"}
    path = "/api/v1/namespaces/default/configmaps?fieldValidation="
    status, _, answer = call(server, "POST", path + "Strict", body)
    assert status == 400 and answer["message"].endswith('strict decoding error: unknown field "colour"')
    status, headers, answer = call(server, "POST", path + "Warn&dryRun=All", body)
    assert status == 201 and headers["Warning"] == '299 - "unknown field \\"colour\\""' and "colour" not in answer
    status, headers, answer = call(server, "POST", path + "Ignore&dryRun=All", body)
    assert status == 201 and headers["Warning"] is None and "colour" not in answer
    assert call(server, "POST", path + "Perhaps", body)[0] == 422
    assert call(server, "GET", "/api/v1/namespaces/default/configmaps/c")[0] == 404
    # kubectl checks by itself, or asks the server to.
    bad = POD.replace("IMAGE", "busybox").replace("nodeName:", "nodeNam:")
    err = server.kubectl("apply", "-f", "-", input=bad, fails=True)
    assert 'unknown field "nodeNam"' in err or 'unknown field "spec.nodeNam"' in err
    server.kubectl("apply", "--validate=false", "-f", "-", input=bad)


def test_explain_knows_all_fields(server):
    out = server.kubectl("explain", "pods.spec.containers.ports.containerPort")
    assert "<integer>" in out and "Number of the port" in out
    assert "hostSubnetLength" in server.kubectl("explain", "clusternetwork.clusterNetworks")
    assert "<[]Object>" in server.kubectl("explain", "pod.spec") or "<[]Container>" in server.kubectl("explain", "pod.spec")
    assert "matchLabels" in server.kubectl("explain", "pod.spec.affinity", "--recursive")
    assert "does not exist" in server.kubectl("explain", "pod.spec.nothing", fails=True)


def test_openapi_documents(server):
    status, headers, index = call(server, "GET", "/openapi/v3")
    assert status == 200
    url = index["paths"]["api/v1"]["serverRelativeURL"]
    status, headers, doc = call(server, "GET", url)
    assert status == 200 and "immutable" in headers["Cache-Control"]
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    c.request("GET", url, headers={"If-None-Match": headers["ETag"]})
    assert c.getresponse().status == 304
    schemas = doc["components"]["schemas"]
    ports = schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["x-kubernetes-patch-merge-key"] == "containerPort"

    def refs(v):
        if isinstance(v, dict):
            yield from ([v["$ref"]] if "$ref" in v else [])
            for x in v.values():
                yield from refs(x)
        elif isinstance(v, list):
            for x in v:
                yield from refs(x)
    assert {r.rsplit("/", 1)[1] for r in refs(doc)} <= set(schemas)
    v2 = call(server, "GET", "/openapi/v2")[2]
    assert {r.rsplit("/", 1)[1] for r in refs(v2)} <= set(v2["definitions"])
    assert call(server, "GET", "/openapi/v2", accept="text/html")[0] == 406


def test_dry_run(server):
    pod = POD.replace("IMAGE", "busybox")
    assert server.kubectl("apply", "--dry-run=server", "-f", "-", input=pod) == "pod/web created (server dry run)\n"
    assert server.kubectl("get", "pods", "-o", "name") == ""
    server.kubectl("create", "-f", "-", input=pod)
    server.kubectl("delete", "pod", "web", "--dry-run=server")
    server.kubectl("label", "--dry-run=server", "pod", "web", "a=b")
    assert rows(server.kubectl("get", "pods", "--show-labels", "--no-headers"))[0][-1] == "app=web"
    status, _, answer = call(server, "DELETE", "/api/v1/namespaces/default/pods?dryRun=All")
    assert status == 200 and len(answer["items"]) == 1
    assert server.kubectl("get", "pods", "-o", "name") == "pod/web\n"
    changed = json.loads(server.kubectl("get", "pod", "web", "-o", "json"))
    changed["spec"]["activeDeadlineSeconds"] = 9
    status, _, answer = call(server, "PUT", "/api/v1/namespaces/default/pods/web?dryRun=All", changed)
    assert status == 200 and answer["spec"]["activeDeadlineSeconds"] == 9
    assert "activeDeadlineSeconds" not in call(server, "GET", "/api/v1/namespaces/default/pods/web")[2]["spec"]


def test_media_types(server):
    path = "/api/v1/namespaces/default/configmaps"
    assert call(server, "POST", path, "metadata: {name: text}\ndata: {a: b}\n", "application/yaml")[0] == 201
    status, headers, body = call(server, "GET", path + "/text", accept="application/yaml")
    assert headers["Content-Type"] == "application/yaml" and b"a: b" in body
    accept = "application/json, application/vnd.kubernetes.protobuf"
    assert call(server, "GET", path, accept=accept)[1]["Content-Type"] == "application/json"
    status, _, answer = call(server, "POST", path, b"k8s\0\n\r\n\x02v1\x12\x07Unknown\x12\x00\x1a\x00\"\x00",
                             "application/vnd.kubernetes.protobuf")
    assert (status, answer["reason"]) == (415, "UnsupportedMediaType")
    assert call(server, "POST", path, "<x/>", "application/xml")[0] == 415
    for form, kind in (("PartialObjectMetadataList", "PartialObjectMetadataList"), ("Table", "Table")):
        answer = call(server, "GET", path, accept=f"application/json;as={form};g=meta.k8s.io;v=v1")[2]
        assert answer["kind"] == kind and answer["apiVersion"] == "meta.k8s.io/v1"
    assert call(server, "GET", path, accept="application/json;as=Nothing;g=meta.k8s.io;v=v1")[0] == 406


def test_configmaps_and_events(server):
    server.kubectl("create", "configmap", "c", "--from-literal=a=1", "--from-literal=b=2")
    assert rows(server.kubectl("get", "cm", "--no-headers"))[0][:2] == ["c", "2"]
    assert "Duplicate" not in server.kubectl("describe", "cm", "c")
    server.kubectl("patch", "cm", "c", "-p", '{"immutable":true}')
    err = server.kubectl("patch", "cm", "c", "-p", '{"data":{"a":"2"}}', fails=True)
    assert "field is immutable when `immutable` is set" in err
    status, _, answer = call(server, "POST", "/api/v1/namespaces/default/configmaps",
                             {"metadata": {"name": "bad"}, "data": {"a b": "c"}})
    assert status == 422 and answer["details"]["causes"][0]["field"] == "data[a b]"
    call(server, "POST", "/api/v1/namespaces/default/events",
         {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
          "reason": "Started", "message": "It runs.", "type": "Normal", "lastTimestamp": "2026-01-01T00:00:00Z"})
    for resource in ("events", "events.events.k8s.io"):
        line = server.kubectl("get", resource, "--no-headers")
        assert "pod/p" in line and "It runs." in line, line


def test_versions_of_lists(server):
    path = "/api/v1/namespaces/default/configmaps"
    made = [call(server, "POST", path, {"metadata": {"name": f"c{i}", "labels": {"t": "1"}}})[2]["metadata"]["resourceVersion"]
            for i in range(3)]
    names = lambda q: [o["metadata"]["name"] for o in call(server, "GET", f"{path}{q}&labelSelector=t%3D1")[2]["items"]]
    assert names(f"?resourceVersion={made[1]}&resourceVersionMatch=Exact") == ["c0", "c1"]
    assert names(f"?resourceVersion={made[1]}&resourceVersionMatch=NotOlderThan") == ["c0", "c1", "c2"]
    assert names("?resourceVersion=0") == ["c0", "c1", "c2"]
    status, headers, answer = call(server, "GET", path + "?resourceVersion=99999999")
    assert status == 504 and answer["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer["details"]["retryAfterSeconds"] == 1 and headers["Retry-After"] == "1"
    for query in ("?resourceVersionMatch=Exact", "?resourceVersion=0&resourceVersionMatch=Exact",
                  "?resourceVersion=1&resourceVersionMatch=Most", "?limit=x", "?continue=x", "?resourceVersion=x"):
        assert call(server, "GET", path + query)[0] == 400, query
