# SPDX-License-Identifier: Apache-2.0
"""Bodies and answers in protobuf, as client-go's typed clients send and ask for them."""
import copy
import http.client
import struct

import pytest

import api_server
import record_api
from record_objects import OBJECTS
from lab import wait_for
from test_api_apply import call
from wire_of_proto import TYPE, enveloped, field, fields, opened, put, put_varint

MAPS = "/api/v1/namespaces/default/configmaps"
MINE = MAPS + "?labelSelector=t%3D1"  # Without those that controllers of another server make.
META = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
# Two have none in Kubernetes either; a TemplateInstance contains a whole Template with its kind, and policies whole roles.
NO_PROTOBUF = ("AdminNetworkPolicy", "BaselineAdminNetworkPolicy", "ClusterPolicy", "ClusterPolicyBinding", "Policy",
               "PolicyBinding", "TemplateInstance")
# Kinds of which no object can be made, and the answer to that.
NOT_WRITTEN = {**dict.fromkeys(record_api.READ_ONLY, 405), **dict.fromkeys(record_api.REFUSED, 403),
               "PolicyBinding": 201}


@pytest.fixture
def server(tmp_path):
    s = api_server.start(tmp_path)
    yield s
    s.stop()


def add_map(server, name, data=None):
    status, _, obj = call(server, "POST", MAPS, {"metadata": {"name": name, "labels": {"t": "1"}},
                                                  "data": data or {"b": "2", "a": "1"}})
    assert status == 201
    return obj


def test_an_object_and_a_list_in_protobuf(server):
    others = len([n for n, _ in fields(opened(call(server, "GET", MAPS, accept=TYPE)[2])[2]) if n == 2])
    obj = add_map(server, "one")
    add_map(server, "two")
    status, headers, body = call(server, "GET", MAPS + "/one", accept=TYPE)
    assert (status, headers["Content-Type"]) == (200, TYPE)
    version, kind, message = opened(body)
    assert (version, kind) == ("v1", "ConfigMap")
    assert field(message, 1, 1) == b"one"
    assert field(message, 1, 6).decode() == obj["metadata"]["resourceVersion"]
    assert [(field(v, 1), field(v, 2)) for n, v in fields(message) if n == 2] == [(b"a", b"1"), (b"b", b"2")]
    status, headers, body = call(server, "GET", MINE + "&limit=1", accept=TYPE)
    version, kind, message = opened(body)
    assert (version, kind) == ("v1", "ConfigMapList")
    assert [n for n, _ in fields(message)] == [1, 2] and field(message, 2, 1, 1) == b"one"
    token = field(message, 1, 3).decode()
    assert field(message, 1, 4) is None, "the rest of a selection is not counted"
    assert field(opened(call(server, "GET", MAPS + "?limit=1", accept=TYPE)[2])[2], 1, 4) == 1 + others
    body = call(server, "GET", MINE + f"&limit=1&continue={token}", accept=TYPE)[2]
    message = opened(body)[2]
    assert field(message, 2, 1, 1) == b"two" and field(message, 1, 3) == b"" and field(message, 1, 4) is None


def test_a_long_list_is_whole(server):
    for i in range(2100):
        add_map(server, f"m{i:04}", {"a": "x" * (i % 300)})
    for _ in range(2):  # the second time from messages that are made
        status, headers, body = call(server, "GET", MINE, accept=TYPE)
        items = [v for n, v in fields(opened(body)[2]) if n == 2]
        assert [field(v, 1, 1).decode() for v in items] == [f"m{i:04}" for i in range(2100)]
        assert [len(field(v, 2, 2)) for v in items] == [i % 300 for i in range(2100)]
    call(server, "PATCH", MAPS + "/m0007", {"data": {"a": "new"}}, "application/merge-patch+json")
    items = [v for n, v in fields(opened(call(server, "GET", MINE, accept=TYPE)[2])[2]) if n == 2]
    assert field(items[7], 2, 2) == b"new"


def test_metadata_in_protobuf(server):
    add_map(server, "one")
    status, headers, body = call(server, "GET", MAPS + "/one", accept=f"{TYPE};{META}")
    version, kind, message = opened(body)
    assert (version, kind) == ("meta.k8s.io/v1", "PartialObjectMetadata")
    assert [n for n, _ in fields(message)] == [1] and field(message, 1, 1) == b"one"
    list_meta = META.replace("Metadata", "MetadataList")
    body = call(server, "GET", MAPS, accept=f"{TYPE};{list_meta}")[2]
    version, kind, message = opened(body)
    assert (version, kind) == ("meta.k8s.io/v1", "PartialObjectMetadataList")
    assert field(message, 2, 1, 1) == b"one"
    # Kinds without a protobuf form have their metadata all the same.
    path = "/apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies"
    assert call(server, "GET", path, accept=TYPE)[0] == 406
    assert call(server, "GET", path, accept=f"{TYPE}, application/json")[1]["Content-Type"] == "application/json"
    assert opened(call(server, "GET", path, accept=f"{TYPE};{list_meta}")[2])[1] == "PartialObjectMetadataList"


def test_errors_in_protobuf(server):
    status, headers, body = call(server, "GET", MAPS + "/none", accept=TYPE)
    assert (status, headers["Content-Type"]) == (404, TYPE)
    version, kind, message = opened(body)
    assert (version, kind) == ("v1", "Status")
    assert field(message, 2) == b"Failure" and field(message, 4) == b"NotFound" and field(message, 6) == 404
    assert field(message, 5, 1) == b"none" and field(message, 5, 3) == b"configmaps"
    body = call(server, "POST", MAPS, {"metadata": {"name": "Bad!"}}, accept=TYPE)[2]
    cause = field(opened(body)[2], 5, 4)
    assert (field(cause, 1), field(cause, 3)) == (b"FieldValueInvalid", b"metadata.name")


class Frames:
    """The frames of a watch: four bytes with the length, and a WatchEvent."""

    def __init__(self, server, path, accept=TYPE):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        self.connection.request("GET", path, headers={"Accept": accept})
        self.answer = self.connection.getresponse()

    def next(self):
        size = int.from_bytes(self.answer.read(4), "big")
        event = self.answer.read(size)
        assert len(event) == size and [n for n, _ in fields(event)] == [1, 2]
        return field(event, 1).decode(), *opened(field(event, 2, 1))


def test_a_watch_in_protobuf(server):
    add_map(server, "one", {"a": "old"})
    watch = Frames(server, MINE + "&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
    assert watch.answer.headers["Content-Type"] == TYPE + ";stream=watch"
    # The version of the end is that of the list.
    kind, version, of, message = watch.next()
    assert (kind, version, of, field(message, 1, 1)) == ("ADDED", "v1", "ConfigMap", b"one")
    kind, version, of, message = watch.next()
    assert (kind, of) == ("BOOKMARK", "ConfigMap") and field(message, 1, 12, 1) == b"k8s.io/initial-events-end"
    metadata = Frames(server, MINE + "&watch=1&resourceVersion=0", f"{TYPE};{META}")
    assert metadata.next()[2] == "PartialObjectMetadata"
    call(server, "PATCH", MAPS + "/one", {"data": {"a": "new"}}, "application/merge-patch+json")
    kind, _, _, message = watch.next()
    assert kind == "MODIFIED" and field(message, 2, 2) == b"new"
    call(server, "DELETE", MAPS + "/one")
    assert watch.next()[0] == "DELETED"
    assert [metadata.next()[0] for _ in range(2)] == ["MODIFIED", "DELETED"]


def paths(server):
    """Every kind that is stored, with its path and an object of it."""
    resources, _ = record_api.discovery(record_api.Asker(server.port))
    for version, resource in resources:
        if "/" in resource["name"] or "get" not in resource["verbs"]:
            continue
        base = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        place = f"{base}/namespaces/default/{resource['name']}" if resource["namespaced"] else f"{base}/{resource['name']}"
        obj = copy.deepcopy(next(o for o in OBJECTS if (o["apiVersion"], o["kind"]) == (version, resource["kind"])))
        obj.setdefault("metadata", {}).setdefault("name", "one")
        yield resource, place, obj


def test_every_kind_is_read_and_written(server):
    """What a client reads in protobuf and sends back unchanged changes nothing: both directions lose no field."""
    tried = 0
    for resource, path, obj in paths(server):
        kind = resource["kind"]
        for need in record_api.NEEDED.get(kind, []):
            assert call(server, "POST", record_api.PLACES[need["kind"]], need)[0] == 201
        status, _, made = call(server, "POST", path, obj)
        if kind in NOT_WRITTEN:
            assert status == NOT_WRITTEN[kind], kind
            status, _, body = call(server, "GET", path, accept=TYPE)
            assert status == 406 if kind in NO_PROTOBUF else opened(body)[1] == kind + "List"
            continue
        assert status == 201, (kind, made)
        place = f"{path}/{made['metadata']['name']}"
        status, headers, body = call(server, "GET", place, accept=TYPE)
        if kind in NO_PROTOBUF:
            assert status == 406, kind
            continue
        assert headers["Content-Type"] == TYPE and opened(body)[1] == kind, kind
        status, _, answer = call(server, "PUT", place, body, TYPE, TYPE)
        assert status == 200, (kind, answer)
        assert answer == body, (kind, opened(answer), opened(body))
        if "list" in resource["verbs"]:
            assert opened(call(server, "GET", path, accept=TYPE)[2])[1] == kind + "List"
        assert call(server, "DELETE", place + "?propagationPolicy=Background")[0] in (200, 202)
        tried += 1
    assert tried > 15


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRING = put(5, "string")  # A schema.


def flag(number, value):
    return put_varint(number << 3) + put_varint(value)


def definition(schema):
    """The body of a definition of shelves, with a schema."""
    version = put(1, "v1") + flag(2, 1) + flag(3, 1) + put(4, put(1, schema)) + put(5, put(1, ""))
    spec = put(1, "example.org") + put(3, put(1, "shelves") + put(4, "Shelf")) + put(4, "Namespaced") + put(7, version)
    return enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", put(1, put(1, "shelves.example.org")) + put(2, spec))


def object_schema(*properties):
    return put(5, "object") + b"".join(put(29, put(1, name) + put(2, schema)) for name, schema in properties)


def test_a_definition_in_protobuf(server):
    minimum = put_varint(11 << 3 | 1) + struct.pack("<d", 1.5)
    inner = object_schema(("width", put(5, "number") + put(8, put(1, "2")) + minimum),
                          ("labels", put(5, "object") + put(30, flag(1, 1) + put(2, STRING))),
                          ("any", put(5, "object") + put(30, flag(1, 1))),
                          ("books", put(5, "array") + put(20, put(1, '["a"]')) + put(24, put(1, STRING))))
    body = definition(object_schema(("spec", inner)))
    status, headers, answer = call(server, "POST", DEFINITIONS, body, TYPE, TYPE)
    assert (status, headers["Content-Type"]) == (201, TYPE), answer
    assert opened(answer)[:2] == ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    place = DEFINITIONS + "/shelves.example.org"
    wait_for("the definition", lambda: call(server, "GET", "/apis/example.org/v1/namespaces/default/shelves")[0] == 200)
    props = call(server, "GET", place)[2]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert props == {"width": {"type": "number", "default": 2, "minimum": 1.5},
                     "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                     "any": {"type": "object", "additionalProperties": True},
                     "books": {"type": "array", "enum": [["a"]], "items": {"type": "string"}}}
    status, headers, answer = call(server, "GET", place, accept=TYPE)
    assert (status, headers["Content-Type"]) == (200, TYPE)
    message = opened(answer)[2]
    assert field(message, 2, 3, 2) == b"shelf" and field(message, 2, 7, 5, 1) == b"" and field(message, 3, 2, 1) == b"shelves"
    spec = field(message, 2, 7, 4, 1, 29, 2)
    schemas = {field(v, 1): field(v, 2) for n, v in fields(spec) if n == 29}
    assert field(schemas[b"width"], 11) == 1.5 and field(schemas[b"width"], 8, 1) == b"2"
    assert field(schemas[b"labels"], 30, 1) == 1 and field(schemas[b"labels"], 30, 2, 5) == b"string"
    assert fields(field(schemas[b"any"], 30)) == [(1, 1)]
    assert field(schemas[b"books"], 24, 1, 5) == b"string" and field(schemas[b"books"], 20, 1) == b'["a"]'
    kind, message = opened(call(server, "GET", DEFINITIONS, accept=TYPE)[2])[1:]
    assert kind == "CustomResourceDefinitionList"
    assert b"shelves.example.org" in [field(v, 1, 1) for n, v in fields(message) if n == 2]
    watch = Frames(server, DEFINITIONS + "?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dshelves.example.org")
    assert watch.next()[0] == "ADDED"
    status, _, answer = call(server, "PATCH", place, {"spec": {"names": {"shortNames": ["sh"]}}}, "application/merge-patch+json")
    assert status == 200, answer
    kind, _, of, message = watch.next()
    assert (kind, of, field(message, 2, 3, 3)) == ("MODIFIED", "CustomResourceDefinition", b"sh")
    assert call(server, "DELETE", place)[0] == 200


def test_the_rules_of_schemas_hold_for_protobuf(server):
    for schema, where in ((put(5, "object") + put(30, flag(1, 0)), "additionalProperties cannot be set to false"),
                          (put(5, "array") + put(24, put(2, STRING)), "must be a schema object and not an array"),
                          (STRING + put(32, put(1, "b") + put(2, put(2, "c"))), "dependencies is not supported")):
        status, _, answer = call(server, "POST", DEFINITIONS, definition(object_schema(("a", schema))), TYPE)
        assert status == 422 and where in answer["message"], answer
    # Messages in each other, deeper than JSON may be: by not, by items.
    for path in ((28,), (1, 24)):
        schema = b""
        for i in range(20000):
            schema = put(path[i % len(path)], schema)
        status, _, answer = call(server, "POST", DEFINITIONS, definition(schema), TYPE)
        assert status == 400 and "nested too deeply" in answer["message"], answer
    status, headers, _ = call(server, "POST", DEFINITIONS, definition(object_schema() + put(60, "new")), TYPE)
    assert status == 201 and 'unknown field \\"JSONSchemaProps.60\\"' in headers["Warning"]
    assert call(server, "DELETE", DEFINITIONS + "/shelves.example.org")[0] == 200


def test_metrics_in_protobuf(server):
    for path, kind in (("nodes", "NodeMetrics"), ("namespaces/default/pods", "PodMetrics")):
        path = "/apis/metrics.k8s.io/v1beta1/" + path
        status, headers, answer = call(server, "GET", path, accept=TYPE)
        assert (status, headers["Content-Type"]) == (200, TYPE)
        assert opened(answer)[:2] == ("metrics.k8s.io/v1beta1", kind + "List")
        status, _, answer = call(server, "GET", path + "/none", accept=TYPE)
        assert status == 404 and opened(answer)[1] == "Status"


def resources(message):
    """Of an APIResourceList: (name, kind, verbs) of each."""
    return [(field(r, 1).decode(), field(r, 3).decode(), [v.decode() for _, v in fields(field(r, 4))])
            for n, r in fields(message) if n == 2]


def test_discovery_in_protobuf(server):
    def document(path):
        status, headers, answer = call(server, "GET", path, accept=TYPE)
        assert (status, headers["Content-Type"]) == (200, TYPE), path
        wanted = call(server, "GET", path)[2]
        version, kind, message = opened(answer)
        assert (version, kind) == (wanted.get("apiVersion", ""), wanted["kind"]), path
        return wanted, message

    wanted, message = document("/api")
    assert wanted["versions"] == [v.decode() for n, v in fields(message) if n == 1] == ["v1"]
    assert field(message, 2, 1).decode() == wanted["serverAddressByClientCIDRs"][0]["clientCIDR"]
    wanted, message = document("/apis")
    assert [g["name"] for g in wanted["groups"]] == [field(g, 1).decode() for _, g in fields(message)]
    wanted, message = document("/apis/apps")
    assert wanted["preferredVersion"]["groupVersion"] == field(message, 3, 1).decode()
    assert wanted["preferredVersion"]["version"] == field(message, 3, 2).decode()
    for path in ("/api/v1", "/apis/apps/v1"):
        wanted, message = document(path)
        assert field(message, 1).decode() == wanted["groupVersion"]
        assert resources(message) == [(r["name"], r["kind"], r["verbs"]) for r in wanted["resources"]]
    status, _, answer = call(server, "GET", "/apis/none.example", accept=TYPE)
    assert status == 404 and opened(answer)[1] == "Status"
    # The first type of the best ones is taken.
    for accept, answered in ((f"application/json,{TYPE}", "application/json"),
                             (f"{TYPE},application/json", TYPE),
                             (f"{TYPE};q=0.5,application/json", "application/json")):
        assert call(server, "GET", "/apis", accept=accept)[1]["Content-Type"] == answered


def test_aggregated_discovery_in_protobuf(server):
    form = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for path in ("/api", "/apis"):
        status, headers, answer = call(server, "GET", path, accept=TYPE + form)
        assert (status, headers["Content-Type"]) == (200, TYPE + form)
        wanted = call(server, "GET", path, accept="application/json" + form)[2]
        version, kind, message = opened(answer)
        assert (version, kind) == (wanted["apiVersion"], wanted["kind"])
        groups = [g for n, g in fields(message) if n == 2]
        assert [field(g, 1, 1).decode() for g in groups] == [g["metadata"].get("name", "") for g in wanted["items"]]
        for group, want in zip(groups, wanted["items"], strict=True):
            versions = [v for n, v in fields(group) if n == 2]
            for has, version in zip(versions, want["versions"], strict=True):
                assert field(has, 1).decode() == version["version"] and field(has, 3) == b"Current"
                kinds = [r for n, r in fields(has) if n == 2]
                assert [(field(r, 1).decode(), field(r, 2, 3).decode(), field(r, 3).decode()) for r in kinds] == [
                    (r["resource"], r["responseKind"]["kind"], r["scope"]) for r in version["resources"]]
    # The form exists at these two paths only, and the next type is taken where it does not.
    headers = call(server, "GET", "/apis/apps", accept=f"application/json{form},{TYPE}")[1]
    assert headers["Content-Type"] == TYPE


def test_bodies_in_protobuf(server):
    lease = enveloped("coordination.k8s.io/v1", "Lease", put(1, put(1, "l")) + put(2, put(1, "me") + b"\x10\x0f" +
                                                                                put(4, b"\x08\x80\x92\xb8\xc3\x06\x10\xc0\x84\x3d")))
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    status, headers, answer = call(server, "POST", path, lease, TYPE)
    assert (status, headers["Content-Type"]) == (201, "application/json")
    assert answer["spec"] == {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2025-07-09T06:15:28.001000Z"}
    # A field that has no description is told, like an unknown field of JSON.
    more = enveloped("v1", "ConfigMap", put(1, put(1, "m")) + put(30, "new"))
    status, headers, _ = call(server, "POST", MAPS, more, TYPE)
    assert status == 201 and 'unknown field \\"ConfigMap.30\\"' in headers["Warning"]
    status, _, answer = call(server, "POST", MAPS + "?fieldValidation=Strict", more, TYPE)
    assert status == 400 and 'unknown field "ConfigMap.30"' in answer["message"]
    assert call(server, "DELETE", MAPS + "/m", enveloped("v1", "DeleteOptions", b"\x08\x00"), TYPE)[0] == 200


def test_evictions_in_protobuf(server):
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert call(server, "POST", pods, pod)[0] == 201
    path, name = pods + "/p/eviction", put(1, put(1, "p") + put(3, "default"))
    status, _, answer = call(server, "POST", path, enveloped("v1", "Binding", name), TYPE)
    assert status == 400 and "an Eviction of policy/v1, not Binding of v1" in answer["message"]
    assert call(server, "POST", path, enveloped("policy/v1", "Eviction", b"\x0a\xff"), TYPE)[0] == 400
    other = put(2, put(2, put(1, "another uid")))
    assert call(server, "POST", path, enveloped("policy/v1", "Eviction", name + other), TYPE)[0] == 409
    for options, left in ((put(5, "All"), 200), (b"\x08\x00", 404)):
        body = enveloped("policy/v1", "Eviction", name + put(2, options))
        status, headers, answer = call(server, "POST", path, body, TYPE, TYPE)
        assert status == 201 and headers["Content-Type"] == TYPE and opened(answer)[1] == "Status"
        assert call(server, "GET", pods + "/p")[0] == left


def test_values_as_kubernetes_types(server):
    """Null, absent and canonical values of requests in JSON."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    for text in ("2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00Z"):
        status, _, answer = call(server, "POST", leases, {"metadata": {"name": "l"}, "spec": {"renewTime": text}})
        assert status == 400
        assert answer["message"] == (f'Lease in version "v1" cannot be handled as a Lease: parsing time "{text}" as '
                                     f'"2006-01-02T15:04:05.000000Z07:00": cannot parse "{text[19:]}" as ".000000"')
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    for i, body in enumerate(({"endpoints": None, "ports": []}, {})):
        status, _, answer = call(server, "POST", slices, {"metadata": {"name": f"s{i}"}, "addressType": "IPv4", **body})
        assert status == 201, answer
        assert answer["endpoints"] == [] and answer["ports"] == []
    assert call(server, "POST", MAPS, {"metadata": {"name": "n"}, "data": {"a": None}})[2]["data"] == {"a": ""}
    status, _, node = call(server, "POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    assert status == 201 and len(node["status"]["nodeInfo"]) == 10 and set(node["status"]["nodeInfo"].values()) == {""}
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {
        "requests": {"cpu": "0.5", "memory": "1024Mi"}}}]}}
    container = call(server, "POST", "/api/v1/namespaces/default/pods", pod)[2]["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    status, _, answer = call(server, "POST", MAPS, {"metadata": {"name": "t"}, "data": {"a": 7}})
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert answer["message"].endswith("json: cannot unmarshal number into Go struct field ConfigMap.data of type string")


def test_a_collection_is_deleted_in_protobuf(server):
    add_map(server, "one")
    add_map(server, "two")
    body = call(server, "DELETE", MINE, accept=TYPE)[2]
    version, kind, message = opened(body)
    assert (version, kind) == ("v1", "ConfigMapList")
    assert [field(v, 1, 1) for n, v in fields(message) if n == 2] == [b"one", b"two"]


def test_media_types_are_told(server):
    message = call(server, "GET", MAPS, accept="text/html")[2]["message"]
    assert message.endswith("application/json, application/yaml, " + TYPE)
    # A Table has no protobuf form: the next type that the client accepts is taken.
    table = "as=Table;g=meta.k8s.io;v=v1"
    answer = call(server, "GET", MAPS, accept=f"{TYPE};{table},application/json;{table}")
    assert answer[2]["kind"] == "Table"
    assert call(server, "GET", MAPS, accept=f"{TYPE};{table}")[0] == 406
