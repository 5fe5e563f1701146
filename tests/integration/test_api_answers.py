# SPDX-License-Identifier: Apache-2.0
"""Answers as a client of Kubernetes' API server expects them: headers, Status, deletions, and the cases of the
table "Differences from Kubernetes' API server" in docs/api.md."""
import base64
import datetime
import email.utils
import json
import re

import pytest

import api_server
from test_api_apply import call

CORE = "/api/v1/namespaces/default"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    s = api_server.start(tmp_path_factory.mktemp("answers"))
    yield s
    s.stop()


def refused(server, method, path, body, code, text, content_type="application/json", accept="application/json"):
    status, _, answer = call(server, method, path, body, content_type, accept)
    assert status == code and text in answer["message"], answer
    assert "details" in answer and answer["code"] == code


def test_headers_of_all_answers(server):
    ids = set()
    for path, code in ((f"{CORE}/configmaps", 200), (f"{CORE}/configmaps/none", 404), ("/version", 200), ("/none", 404),
                       ("/healthz", 200), (f"{CORE}/pods?watch=1&timeoutSeconds=1", 200)):
        status, headers, _ = call(server, "GET", path)
        assert status == code and headers["Cache-Control"] == "no-cache, private"
        age = datetime.datetime.now(datetime.timezone.utc) - email.utils.parsedate_to_datetime(headers["Date"])
        assert abs(age.total_seconds()) < 60
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", headers["Audit-Id"])
        ids.add(headers["Audit-Id"])
    assert len(ids) == 6
    # A document that its address names by its hash can be kept.
    paths = call(server, "GET", "/openapi/v3")[2]["paths"]
    assert call(server, "GET", paths["api/v1"]["serverRelativeURL"])[1].get_all("Cache-Control") == \
        ["public, immutable, max-age=31536000"]


def test_a_status_has_details(server):
    for method, path, accept in (("GET", "/none", "application/json"), ("GET", f"{CORE}/pods/p/none", "*/*"),
                                 ("PUT", f"{CORE}/pods", "*/*"), ("GET", f"{CORE}/pods", "image/png")):
        status, _, answer = call(server, method, path, {} if method == "PUT" else None, accept=accept)
        assert status in (404, 405, 406) and answer["details"] == {}


def test_generation_and_types_of_elements(server):
    made = {}
    for path, kind, version, more in ((f"{CORE}/configmaps", "ConfigMap", "v1", {"data": {"a": "1"}}),
                                      ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", "NetworkPolicy",
                                       "networking.k8s.io/v1", {"spec": {"podSelector": {}}})):
        obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "g", "annotations": {}, "finalizers": []}, **more}
        status, _, answer = call(server, "POST", path, obj)
        assert status == 201 and answer["kind"] == kind
        assert "annotations" not in answer["metadata"] and "finalizers" not in answer["metadata"]
        made[kind] = answer["metadata"]
        items = call(server, "GET", path)[2]
        assert items["kind"] == kind + "List"
        assert [i for i in items["items"] if "kind" in i or "apiVersion" in i] == []
        assert call(server, "GET", path + "/g")[2]["kind"] == kind
        deleted = call(server, "DELETE", path + "?labelSelector=none%3Dsuch")[2]
        assert deleted["items"] == []
        assert all("kind" not in i for i in call(server, "DELETE", path)[2]["items"])
    assert "generation" not in made["ConfigMap"] and made["NetworkPolicy"]["generation"] == 1


def test_an_annotation_that_is_removed_takes_the_empty_map_with_it(server):
    call(server, "POST", f"{CORE}/configmaps", {"metadata": {"name": "emptied", "annotations": {"a": "b"}}})
    answer = call(server, "PATCH", f"{CORE}/configmaps/emptied", {"metadata": {"annotations": {"a": None}}},
                  "application/merge-patch+json")[2]
    assert "annotations" not in answer["metadata"]


def test_deletions_answer_with_the_object_or_a_status(server):
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    for kind, more, returned in (("pods", pod, True), ("services", {"spec": {"ports": [{"port": 80}]}}, True),
                                 ("serviceaccounts", {}, True), ("configmaps", {}, False), ("secrets", {}, False)):
        uid = call(server, "POST", f"{CORE}/{kind}", {"metadata": {"name": "d"}, **more})[2]["metadata"]["uid"]
        status, _, answer = call(server, "DELETE", f"{CORE}/{kind}/d?gracePeriodSeconds=0")
        assert status == 200
        if returned:
            assert answer["kind"] != "Status" and answer["metadata"]["uid"] == uid
        else:
            assert answer == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                              "details": {"name": "d", "kind": kind, "uid": uid}}


def test_media_types_that_do_not_fit_the_request(server):
    body = {"metadata": {"name": "typed"}}
    for kind in ("application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"):
        refused(server, "POST", f"{CORE}/configmaps", body, 415, "unknown format", kind)
    assert call(server, "POST", f"{CORE}/configmaps", body)[0] == 201
    refused(server, "PUT", f"{CORE}/configmaps/typed", body, 415, "unknown format", "application/merge-patch+json")
    part = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
    refused(server, "GET", f"{CORE}/configmaps", None, 406, "is a list", accept=part.format(""))
    refused(server, "GET", f"{CORE}/configmaps/typed", None, 406, "is not a list", accept=part.format("List"))
    assert call(server, "GET", f"{CORE}/configmaps/typed", accept=part.format(""))[2]["kind"] == "PartialObjectMetadata"
    refused(server, "GET", f"{CORE}/configmaps", None, 406, "media types", accept="application/json;as=Table;g=meta.k8s.io;v=v9")
    both = "application/json;as=Table;g=meta.k8s.io;v=v9,application/json"
    assert call(server, "GET", f"{CORE}/configmaps", accept=both)[2]["kind"] == "ConfigMapList"


def test_parameters(server):
    assert "continue" not in call(server, "GET", f"{CORE}/configmaps?limit=-1")[2]["metadata"]
    refused(server, "GET", f"{CORE}/configmaps?limit=-x", None, 400, "limit")
    refused(server, "GET", f"{CORE}/configmaps?timeoutSeconds=x", None, 400, "timeoutSeconds")
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    refused(server, "GET", f"{CORE}/configmaps?includeObject=Zap", None, 400, "includeObject", accept=table)
    refused(server, "GET", f"{CORE}/configmaps?fieldSelector=nope%3D1", None, 400,
            '"nope" is not a known field selector: only "metadata.name", "metadata.namespace"')
    refused(server, "GET", f"{CORE}/pods?fieldSelector=nope%3D1", None, 400, "field label not supported: nope")
    status, _, answer = call(server, "GET", f"{CORE}/pods?fieldSelector=nope%3D1")
    assert answer["message"] == "field label not supported: nope"


def test_the_older_paths_of_watches(server):
    call(server, "POST", f"{CORE}/configmaps", {"metadata": {"name": "watched"}})
    for path in ("/api/v1/watch/namespaces/default/configmaps/watched", "/api/v1/watch/namespaces/default/configmaps",
                 "/api/v1/watch/configmaps"):
        status, _, answer = call(server, "GET", path + "?timeoutSeconds=1")
        events = answer.decode().splitlines() if isinstance(answer, bytes) else [json.dumps(answer)]
        assert status == 200 and "watched" in [json.loads(e)["object"]["metadata"]["name"] for e in events]
    assert call(server, "GET", "/api/v1/watch/none")[0] == 404
    assert call(server, "POST", "/api/v1/watch/namespaces/default/configmaps", {})[0] == 404


def test_objects_that_are_refused(server):
    call(server, "POST", f"{CORE}/configmaps", {"metadata": {"name": "patched"}})
    refused(server, "PATCH", f"{CORE}/configmaps/patched", {"data": {"$patch": "nothing"}}, 422, "unrecognized patch type: nothing",
            "application/strategic-merge-patch+json")
    owner = {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}
    refused(server, "POST", f"{CORE}/configmaps", {"metadata": {"name": "x", "ownerReferences": [owner]}}, 422,
            "/v1, Kind=Event is disallowed from being an owner")
    secret = {"metadata": {"name": "x"}, "type": "kubernetes.io/dockerconfigjson"}
    wrong = base64.b64encode(b"not json").decode()
    refused(server, "POST", f"{CORE}/secrets", {**secret, "data": {".dockerconfigjson": wrong}}, 422, "redacted")
    right = base64.b64encode(b'{"auths":{}}').decode()
    assert call(server, "POST", f"{CORE}/secrets", {**secret, "data": {".dockerconfigjson": right}})[0] == 201
    event = {"metadata": {"name": "e", "namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "a",
             "reason": "R", "reportingController": "example.com/c", "reportingInstance": "i", "type": "Normal", "note": "n",
             "regarding": {"kind": "Pod", "namespace": "default", "name": "p"}}
    assert call(server, "POST", EVENTS, event)[0] == 201
    refused(server, "PUT", f"{EVENTS}/e", {**event, "note": "other"}, 422, "immutable")
    assert call(server, "PUT", f"{EVENTS}/e", event)[0] == 200


def test_groups_of_kubernetes_need_an_approval(server):
    crd = {"metadata": {"name": "things.example.k8s.io"},
           "spec": {"group": "example.k8s.io", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": True, "storage": True,
                                  "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
    path, key = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "api-approved.kubernetes.io"
    refused(server, "POST", path, crd, 422, "protected groups must have approval annotation")
    crd["metadata"]["annotations"] = {key: "yes"}
    refused(server, "POST", path, crd, 422, "either a URL or a reason")
    crd["metadata"]["annotations"] = {key: "unapproved, for a test"}
    # The types of a value that may be either are the only ones below anyOf.
    either = [{"type": "integer"}, {"type": "string"}]
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {"port": {"anyOf": either, "type": "string"}}
    refused(server, "POST", path, crd, 422, "anyOf[0].type: Forbidden: must be empty to be structural")
    schema["properties"] = {"port": {"anyOf": either, "x-kubernetes-int-or-string": True}}
    assert call(server, "POST", path, crd)[0] == 201


def test_an_account_of_a_binding_is_of_its_namespace(server):
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    subject = {"kind": "ServiceAccount", "name": "default"}
    binding = {"metadata": {"name": "b"}, "subjects": [subject],
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}
    assert call(server, "POST", f"{rbac}/namespaces/default/rolebindings", binding)[0] == 201
    refused(server, "POST", f"{rbac}/clusterrolebindings", binding, 422, "subjects[0].namespace: Required value")


def test_a_lease_is_replaced_only_by_who_names_its_version(server):
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    status, _, made = call(server, "PUT", f"{leases}/l", lease)
    assert status == 201
    refused(server, "PUT", f"{leases}/l", lease, 422,
            "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update")
    assert call(server, "PUT", f"{leases}/l", made)[0] == 200
    assert call(server, "PATCH", f"{leases}/l", {"spec": {"holderIdentity": "b"}}, "application/merge-patch+json")[0] == 200
    made["metadata"]["resourceVersion"] = "1"
    refused(server, "PUT", f"{leases}/l", made, 409, "the object has been modified")


def test_an_event_changes_in_its_series_only(server):
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    pod = {"kind": "Pod", "namespace": "default", "name": "p"}
    event = {"metadata": {"name": "fixed"}, "eventTime": "2026-01-02T03:04:05.000006Z", "reportingController": "example.com/c",
             "reportingInstance": "c-1", "action": "Binding", "reason": "Scheduled", "type": "Normal", "regarding": pod,
             "note": "n"}
    assert call(server, "POST", events, event)[0] == 201
    for field, value in (("regarding", {**pod, "name": "q"}), ("related", pod), ("eventTime", "2026-01-02T03:04:05.000007Z"),
                         ("deprecatedCount", 7), ("deprecatedFirstTimestamp", "2026-01-02T03:04:05Z"),
                         ("deprecatedLastTimestamp", "2026-01-02T03:04:05Z"), ("deprecatedSource", {"host": "h"}),
                         ("note", "m"), ("action", "Other"), ("reason", "Other"), ("reportingController", "example.com/d"),
                         ("reportingInstance", "d"), ("type", "Warning")):
        status, _, answer = call(server, "PATCH", f"{events}/fixed", {field: value}, "application/merge-patch+json")
        assert status == 422 and [c["field"].split(".")[0] for c in answer["details"]["causes"]] == [field], answer
        assert "field is immutable" in answer["message"]
    seen = {"series": {"count": 1, "lastObservedTime": "2026-01-02T03:04:06.000006Z"}}
    refused(server, "PATCH", f"{events}/fixed", seen, 422, "series.count: Invalid value: 1: should be at least 2",
            "application/merge-patch+json")
    seen["series"]["count"] = 2
    assert call(server, "PATCH", f"{events}/fixed", seen, "application/merge-patch+json")[0] == 200
    # The older form has no such rule.
    assert call(server, "PATCH", f"{CORE}/events/fixed", {"message": "m"}, "application/merge-patch+json")[0] == 200


def test_a_binding_answers_with_the_code(server):
    assert call(server, "POST", f"{CORE}/pods", {"metadata": {"name": "bound"}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}})[0] == 201
    status, _, answer = call(server, "POST", f"{CORE}/pods/bound/binding", {"metadata": {"name": "bound"},
                                                                         "target": {"kind": "Node", "name": "n"}})
    assert status == 201
    assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Success", 201)
    call(server, "POST", f"{CORE}/configmaps", {"metadata": {"name": "coded"}})
    assert "code" not in call(server, "DELETE", f"{CORE}/configmaps/coded")[2]


def test_unknown_keywords_of_a_schema(server):
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"type": "object", "typ": "x", "properties": {
        "items": {"type": "array", "items": {"type": "object", "smallest": 1, "properties": {"typ": {"type": "string"}}}},
        "free": {"type": "object", "additionalProperties": {"type": "string", "colour": "red"}},
        "open": {"type": "object", "additionalProperties": True},
        "one": {"type": "string", "oneOf": [{"pattern": "a", "expression": "b"}], "default": "a", "example": {"any": "thing"}}}}
    crd = {"metadata": {"name": "things.example.org"}, "spec": {
        "group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}
    at = "spec.versions[0].schema.openAPIV3Schema"
    unknown = [f"{at}.typ", f"{at}.properties.items.items.smallest", f"{at}.properties.free.additionalProperties.colour",
               f"{at}.properties.one.oneOf[0].expression"]
    status, _, answer = call(server, "POST", crds + "?fieldValidation=Strict", crd)
    assert status == 400 and "strict decoding error: unknown field" in answer["message"]
    assert sorted(re.findall(r'unknown field "([^"]*)"', answer["message"])) == sorted(unknown)
    status, headers, answer = call(server, "POST", crds, crd)
    assert status == 201
    assert sorted(headers.get_all("Warning")) == sorted(f'299 - "unknown field \\"{path}\\""' for path in unknown)
    kept = answer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "typ" not in kept and kept["properties"]["items"]["items"]["properties"] == {"typ": {"type": "string"}}
    assert kept["properties"]["one"] == {"type": "string", "oneOf": [{"pattern": "a"}], "default": "a",
                                         "example": {"any": "thing"}}
    assert kept["properties"]["open"] == {"type": "object", "additionalProperties": True}
