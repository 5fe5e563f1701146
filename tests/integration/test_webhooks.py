# SPDX-License-Identifier: Apache-2.0
"""Admission by webhooks (docs/webhooks.md): every way to write, what webhooks may do, and what happens when they fail."""
import json
import threading

import pytest

import api_server
from webhook_server import MUTATING, VALIDATING, Webhook, answer, configured

CORE = "/api/v1/namespaces/default"
MAPS = f"{CORE}/configmaps"
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture
def server(tmp_path):
    s = api_server.Server(tmp_path)
    yield s
    s.stop()


@pytest.fixture
def hook(tmp_path):
    h = Webhook(tmp_path)
    h.paths = {
        "/allow": answer,
        "/deny": lambda r: answer(r, False, status={"code": 403, "reason": "Forbidden", "message": "not today"}),
        "/label": lambda r: answer(r, patch=[{"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}]),
    }
    yield h
    h.stop()


def call(server, method, path, body=None, headers=JSON):
    status, text = server.request(method, path, body if isinstance(body, str) else json.dumps(body) if body else None, headers)
    return status, json.loads(text)


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_mutating_webhook_changes_and_a_validating_one_sees_it(server, hook):
    with configured(server, MUTATING, "m", hook.entry("/label")), configured(server, VALIDATING, "v", hook.entry("/allow")):
        status, made = call(server, "POST", MAPS, config_map("a", x="1"))
        assert status == 201 and made["metadata"]["labels"] == {"by": "webhook"}
    seen = hook.asked("/allow")[0]
    assert seen["object"]["metadata"]["labels"] == {"by": "webhook"} and seen["oldObject"] is None
    assert seen["operation"] == "CREATE" and seen["namespace"] == "default" and seen["name"] == "a"
    assert seen["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert seen["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert seen["userInfo"]["username"] == "system:admin" and seen["dryRun"] is False
    assert seen["options"]["kind"] == "CreateOptions"
    assert call(server, "POST", MAPS, config_map("b"))[1]["metadata"].get("labels") is None  # no configuration any more


def test_every_way_to_write_asks(server, hook):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    set_ = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}}}
    assert call(server, "POST", f"{CORE}/pods", pod)[0] == 201
    assert call(server, "POST", "/apis/apps/v1/namespaces/default/deployments", set_)[0] == 201
    assert call(server, "POST", MAPS, config_map("a"))[0] == 201
    deny = hook.entry("/deny", resources=("*/*",), groups=("*",), versions=("*",))
    status = {**pod, "status": {"phase": "Running"}}
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 2}}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    with configured(server, VALIDATING, "v", deny):
        for method, path, body, headers, operation, kind in (
                ("POST", MAPS, config_map("b"), JSON, "CREATE", "ConfigMap"),
                ("PUT", f"{MAPS}/a", config_map("a", x="1"), JSON, "UPDATE", "ConfigMap"),
                ("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, MERGE, "UPDATE", "ConfigMap"),
                ("PATCH", f"{MAPS}/a?fieldManager=t", config_map("a", x="1"), APPLY, "UPDATE", "ConfigMap"),
                ("PATCH", f"{MAPS}/new?fieldManager=t", config_map("new", x="1"), APPLY, "CREATE", "ConfigMap"),
                ("DELETE", f"{MAPS}/a", None, JSON, "DELETE", "ConfigMap"),
                ("DELETE", MAPS, None, JSON, "DELETE", "ConfigMap"),
                ("PUT", f"{CORE}/pods/p/status", status, JSON, "UPDATE", "Pod"),
                ("PUT", "/apis/apps/v1/namespaces/default/deployments/d/scale", scale, JSON, "UPDATE", "Scale"),
                ("POST", f"{CORE}/pods/p/binding", binding, JSON, "CREATE", "Binding"),
                ("POST", f"{CORE}/bindings", binding, JSON, "CREATE", "Binding"),
                ("POST", f"{CORE}/pods/p/eviction", eviction, JSON, "CREATE", "Eviction"),
                ("POST", f"{CORE}/pods/p/exec?command=ls&stdout=1", None, JSON, "CONNECT", "PodExecOptions"),
                ("GET", f"{CORE}/pods/p/proxy/", None, JSON, "CONNECT", "PodProxyOptions"),
                ("DELETE", f"{CORE}/pods/p", None, JSON, "DELETE", "Pod")):
            before = len(hook.asked("/deny"))
            code, refusal = call(server, method, path, body, headers)
            assert code == 403 and refusal["message"] == 'admission webhook "deny.webhooks.test" denied the request: not today', \
                (method, path, refusal)
            asked = hook.asked("/deny")[before:]
            assert asked and all((r["operation"], r["kind"]["kind"]) == (operation, kind) for r in asked), (path, asked)
            assert kind == "Scale" or (asked[0]["oldObject"] is not None) == (operation in ("UPDATE", "DELETE"))
    assert call(server, "GET", f"{MAPS}/a")[0] == 200 and call(server, "GET", f"{CORE}/pods/p")[0] == 200
    assert call(server, "GET", f"{MAPS}/new")[0] == 404
    exec_ = next(r for r in hook.asked("/deny") if r["operation"] == "CONNECT")
    assert exec_["object"] == {"kind": "PodExecOptions", "apiVersion": "v1", "stdout": True, "command": ["ls"]}
    assert exec_["subResource"] == "exec"


def test_what_an_allowed_write_does_is_unchanged(server, hook):
    entry = hook.entry("/allow", resources=("*/*",), groups=("*",), versions=("*",))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    with configured(server, MUTATING, "m", entry), configured(server, VALIDATING, "v", entry):
        assert call(server, "POST", MAPS, config_map("a", x="1"))[0] == 201
        assert call(server, "PUT", f"{MAPS}/a", config_map("a", x="2"))[1]["data"] == {"x": "2"}
        assert call(server, "PATCH", f"{MAPS}/a", {"data": {"y": "3"}}, MERGE)[1]["data"] == {"x": "2", "y": "3"}
        assert call(server, "PATCH", f"{MAPS}/b?fieldManager=t", config_map("b", x="1"), APPLY)[0] == 201
        assert call(server, "POST", f"{CORE}/pods", pod)[0] == 201
        assert call(server, "POST", f"{CORE}/pods/p/binding", binding)[0] == 201
        assert call(server, "GET", f"{CORE}/pods/p")[1]["spec"]["nodeName"] == "n1"
        assert call(server, "POST", f"{CORE}/pods/p/eviction", eviction)[0] == 201
        assert len(call(server, "DELETE", MAPS)[1]["items"]) >= 2
        assert call(server, "GET", MAPS)[1]["items"] == []
        generated = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}}
        assert call(server, "POST", MAPS, generated)[1]["metadata"]["name"].startswith("g-")


def test_a_conflict_asks_again_about_the_newer_object(server, hook):
    assert call(server, "POST", MAPS, config_map("a", n="0"))[0] == 201
    entered, go_on = threading.Event(), threading.Event()

    def slow(review):
        if not entered.is_set():
            entered.set()
            go_on.wait(20)
        return answer(review, patch=[{"op": "add", "path": "/data/seen", "value": review["request"]["oldObject"]["data"]["n"]}])
    hook.paths["/slow"] = slow
    entry = hook.entry("/slow", operations=("UPDATE",), objectSelector={"matchLabels": {"ask": "yes"}}, timeoutSeconds=30)
    with configured(server, MUTATING, "m", entry):
        results = []
        t = threading.Thread(target=lambda: results.append(
            call(server, "PATCH", f"{MAPS}/a", {"metadata": {"labels": {"ask": "yes"}}}, MERGE)))
        t.start()
        assert entered.wait(20)
        assert call(server, "PATCH", f"{MAPS}/a", {"data": {"n": "1"}}, MERGE)[0] == 200
        go_on.set()
        t.join(30)
    assert results[0][0] == 200 and results[0][1]["data"] == {"n": "1", "seen": "1"}
    assert len(hook.asked("/slow")) == 2


def test_selectors_rules_and_versions(server, hook):
    assert call(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "red", "labels": {"team": "red"}}})[0] == 201
    red = "/api/v1/namespaces/red/configmaps"

    def code(path, name, **labels):
        return call(server, "POST", path, {"metadata": {"name": name, "labels": labels}})[0]
    with configured(server, VALIDATING, "v", hook.entry("/deny", namespaceSelector={"matchLabels": {"team": "red"}})):
        assert (code(MAPS, "a"), code(red, "a")) == (201, 403)
    with configured(server, VALIDATING, "v", hook.entry("/deny", objectSelector={"matchExpressions": [{"key": "x", "operator": "Exists"}]})):
        assert (code(MAPS, "b"), code(MAPS, "c", x="1")) == (201, 403)
    with configured(server, VALIDATING, "v", hook.entry("/deny", operations=("UPDATE", "DELETE"))):
        assert code(MAPS, "d") == 201 and call(server, "DELETE", f"{MAPS}/d")[0] == 403
    with configured(server, VALIDATING, "v", hook.entry("/deny", resources=("secrets",))):
        assert code(MAPS, "e") == 201
    # A Project is a Namespace, and so are the two groups of Events one kind: for matchPolicy Equivalent alone.
    project = "/apis/project.openshift.io/v1/projects"
    for policy, want in (("Equivalent", 403), ("Exact", 201)):
        with configured(server, VALIDATING, "v", hook.entry("/deny", resources=("namespaces",), operations=("CREATE",), matchPolicy=policy)):
            status, body = call(server, "POST", project, {"metadata": {"name": "blue"}})
            assert status == want, body
    asked = next(r for r in hook.asked("/deny") if r["requestKind"]["kind"] == "Project")
    assert asked["kind"]["kind"] == "Namespace" and asked["object"]["kind"] == "Namespace" and asked["object"]["apiVersion"] == "v1"
    assert asked["requestResource"] == {"group": "project.openshift.io", "version": "v1", "resource": "projects"}


def test_order_and_reinvocation(server, hook):
    def add(key):
        def fn(review):
            data = review["request"]["object"].get("data") or {}
            return answer(review, patch=[{"op": "add", "path": "/data", "value": {**data, key: "1"}}] if key not in data else None)
        return fn
    hook.paths |= {f"/{k}": add(k) for k in "abc"}
    with configured(server, MUTATING, "z", hook.entry("/c")), \
            configured(server, MUTATING, "y", hook.entry("/a", reinvocationPolicy="IfNeeded"), hook.entry("/b")):
        status, made = call(server, "POST", MAPS, config_map("o"))
    assert status == 201 and made["data"] == {"a": "1", "b": "1", "c": "1"}
    assert [p for p, _ in hook.reviews] == ["/a", "/b", "/c", "/a"]


def test_warnings_dry_run_and_no_secrets_sent(server, hook):
    hook.paths["/warn"] = lambda r: answer(r, warnings=["mind the gap", "x" * 5000])
    with configured(server, VALIDATING, "v", hook.entry("/warn")):
        out = server.kubectl("create", "configmap", "w", "--dry-run=server", "-o", "name")
        assert out.strip() == "configmap/w"
        p = server.popen("create", "configmap", "w2")
        _, err = p.communicate(timeout=60)
        assert "Warning: mind the gap" in err
    assert hook.asked("/warn")[0]["dryRun"] is True and call(server, "GET", f"{MAPS}/w")[0] == 404
    assert all("Authorization" not in h and "Cookie" not in h for h in hook.headers)


@pytest.mark.parametrize("what, why", [
    ("redirect", "status 302; redirects are not followed"), ("error", "status 500"), ("text", "the answer is not JSON"),
    ("uid", "expected response.uid"), ("absent", "webhook response was absent"), ("kind", "expected webhook response of"),
    ("allowed", "response.allowed is not true or false"), ("type", "but not response.patchType"), ("huge", "")])
def test_a_webhook_that_lies_fails_by_its_policy(server, hook, what, why):
    good = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    hook.paths["/bad"] = {
        "redirect": lambda r: (302, {"Location": f"https://127.0.0.1:{hook.port}/allow"}, b""),
        "error": lambda r: (500, {}, b"no"), "text": lambda r: b"<html>",
        "uid": lambda r: {**good, "response": {"uid": "1", "allowed": True}}, "absent": lambda r: good,
        "kind": lambda r: {**answer(r), "kind": "Pod"},
        "allowed": lambda r: {**good, "response": {"uid": r["request"]["uid"], "allowed": "yes"}},
        "type": lambda r: {**good, "response": {"uid": r["request"]["uid"], "allowed": True, "patch": "W10="}},
        "huge": lambda r: b" " * (5 << 20)}[what]
    with configured(server, MUTATING, "m", hook.entry("/bad", failurePolicy="Fail")):
        status, body = call(server, "POST", MAPS, config_map("a"))
        assert status == 500 and body["reason"] == "InternalError"
        assert 'failed calling webhook "bad.webhooks.test": failed to call webhook: ' in body["message"] and why in body["message"], body
    with configured(server, MUTATING, "m", hook.entry("/bad", failurePolicy="Ignore")):
        assert call(server, "POST", MAPS, config_map("a"))[0] == 201
    assert not hook.asked("/allow")
    assert "webhook failed" in (server.folder / "log").read_text()


def test_a_webhook_that_is_slow_or_down(server, hook):
    done = threading.Event()
    hook.paths["/slow"] = lambda r: (done.wait(20), answer(r))[1]
    with configured(server, VALIDATING, "v", hook.entry("/slow", timeoutSeconds=1)):
        status, body = call(server, "POST", MAPS, config_map("a"))
        assert status == 500 and "no answer within 1000 ms" in body["message"]
    done.set()
    down = hook.entry("/allow")
    down["clientConfig"]["url"] = "https://127.0.0.1:1/"
    with configured(server, VALIDATING, "v", down):
        assert call(server, "POST", MAPS, config_map("a"))[0] == 500
    other = hook.entry("/allow")
    del other["clientConfig"]["caBundle"]  # The system's authorities do not know it.
    with configured(server, VALIDATING, "v", other):
        assert call(server, "POST", MAPS, config_map("a"))[0] == 500
    name = hook.entry("/allow")  # A name, and one that the certificate has.
    name["clientConfig"]["url"] = f"https://localhost:{hook.port}/allow"
    with configured(server, VALIDATING, "v", name):
        assert call(server, "POST", MAPS, config_map("a"))[0] == 201
    service = hook.entry("/allow")
    service["clientConfig"] = {"service": {"namespace": "default", "name": "none"}, "caBundle": hook.ca}
    with configured(server, VALIDATING, "v", service):
        status, body = call(server, "POST", MAPS, config_map("b"))
        assert status == 500 and 'service "none" not found in namespace "default"' in body["message"]


@pytest.mark.parametrize("path, value", [
    ("/metadata/name", "other"), ("/metadata/namespace", "kube-system"), ("/metadata/uid", "1"), ("/kind", "Secret"),
    ("/metadata/creationTimestamp", "2001-01-01T00:00:00Z"), ("/metadata", "none")])
def test_a_patch_of_what_no_webhook_may_change_is_refused(server, hook, path, value):
    hook.paths["/patch"] = lambda r: answer(r, patch=[{"op": "add", "path": path, "value": value}])
    for policy in "Fail", "Ignore":  # The policy is for calls that fail.
        with configured(server, MUTATING, "m", hook.entry("/patch", failurePolicy=policy)):
            status, body = call(server, "POST", MAPS, config_map("a"))
            assert status == 500 and "its patch" in body["message"], body
    assert call(server, "GET", MAPS)[1]["items"] == []


def test_status_and_managed_fields_are_not_the_webhooks(server, hook):
    hook.paths["/patch"] = lambda r: answer(r, patch=[
        {"op": "add", "path": "/status", "value": {"phase": "Running"}}, {"op": "add", "path": "/metadata/managedFields", "value": []},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with configured(server, MUTATING, "m", hook.entry("/patch", resources=("pods",))):
        status, made = call(server, "POST", f"{CORE}/pods", pod)
    assert status == 201 and made["status"]["phase"] == "Pending" and made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["managedFields"]


def test_the_result_is_validated(server, hook):
    hook.paths["/patch"] = lambda r: answer(r, patch=[{"op": "add", "path": "/data", "value": {"a/b": "c"}}])
    with configured(server, MUTATING, "m", hook.entry("/patch")):
        assert call(server, "POST", MAPS, config_map("a"))[0] == 422


def test_no_webhook_guards_the_configurations(server, hook):
    everything = hook.entry("/deny", resources=("*/*",), groups=("*",), versions=("*",))
    with configured(server, VALIDATING, "v", everything), configured(server, MUTATING, "m", everything):
        assert call(server, "PATCH", f"{VALIDATING}/v", {"metadata": {"labels": {"a": "b"}}}, MERGE)[0] == 200
    assert not hook.asked("/deny")


@pytest.mark.parametrize("change, field, text", [
    ({"name": "short"}, "webhooks[0].name", "at least three segments"),
    ({"clientConfig": {}}, "webhooks[0].clientConfig", "exactly one of url or service is required"),
    ({"clientConfig": {"url": "http://a"}}, "webhooks[0].clientConfig.url", "'https' is the only allowed URL scheme"),
    ({"clientConfig": {"url": "https://u:p@a/"}}, "webhooks[0].clientConfig.url", "user information"),
    ({"clientConfig": {"url": "https://a/?b"}}, "webhooks[0].clientConfig.url", "query parameters"),
    ({"clientConfig": {"url": "https://a/\r\nX: y"}}, "webhooks[0].clientConfig.url", "control characters"),
    ({"clientConfig": {"service": {"name": "a", "namespace": "b", "path": "c"}}}, "webhooks[0].clientConfig.service.path", "start with"),
    ({"sideEffects": "Some"}, "webhooks[0].sideEffects", "Unsupported value"),
    ({"admissionReviewVersions": ["v1beta1"]}, "webhooks[0].admissionReviewVersions", "must include at least one of v1"),
    ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds", "30"),
    ({"matchConditions": [{"name": "a", "expression": "true"}]}, "webhooks[0].matchConditions", "evaluates no expressions in CEL yet"),
    ({"rules": [{"operations": ["*", "CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]},
     "webhooks[0].rules[0].operations", "if '*' is present"),
    ({"rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": []}]},
     "webhooks[0].rules[0].resources", "Required value")])
def test_wrong_configurations_name_the_field(server, hook, change, field, text):
    entry = {**hook.entry("/allow"), **change}
    for kind in MUTATING, VALIDATING:
        status, body = call(server, "POST", kind, {"metadata": {"name": "w"}, "webhooks": [entry]})
        causes = [c for c in body.get("details", {}).get("causes", []) if c["field"] == field and text in c["message"]]
        assert status == 422 and causes, body
        status, body = call(server, "POST", kind, {"metadata": {"name": "w"}, "webhooks": [hook.entry("/allow")] * 2})
        assert status == 422 and "Duplicate value" in body["message"], body


def test_defaults_and_kubectl(server, hook):
    with configured(server, MUTATING, "m", hook.entry("/allow")):
        made = call(server, "GET", f"{MUTATING}/m")[1]["webhooks"][0]
        table = server.kubectl("get", "mutatingwebhookconfigurations").split("\n")
        assert table[0].split() == ["NAME", "WEBHOOKS", "AGE"] and table[1].split()[:2] == ["m", "1"]
    assert (made["failurePolicy"], made["matchPolicy"], made["timeoutSeconds"], made["reinvocationPolicy"]) == ("Fail", "Equivalent", 10, "Never")
    assert made["namespaceSelector"] == {} and made["objectSelector"] == {} and made["rules"][0]["scope"] == "*"


def test_metrics(server, hook):
    ignored = hook.entry("/bad", failurePolicy="Ignore")
    hook.paths["/bad"] = lambda r: b""
    with configured(server, VALIDATING, "v", hook.entry("/deny"), ignored):
        assert call(server, "POST", MAPS, config_map("a"))[0] == 403
    text = server.get("/metrics")[1].decode()
    for line in ('apiserver_admission_webhook_request_total{code="403",name="deny.webhooks.test",operation="CREATE",rejected="true",type="validating"} 1',
                 'apiserver_admission_webhook_rejection_count{error_type="no_error",name="deny.webhooks.test",operation="CREATE",'
                 'rejection_code="403",type="validating"} 1',
                 'apiserver_admission_webhook_fail_open_count{name="bad.webhooks.test",type="validating"} 1',
                 'apiserver_admission_webhook_admission_duration_seconds_count{name="deny.webhooks.test",operation="CREATE",'
                 'rejected="true",type="validating"} 1'):
        assert line in text, line


def test_the_end_of_the_server_does_not_wait(server, hook):
    done, entered = threading.Event(), threading.Event()
    hook.paths["/slow"] = lambda r: (entered.set(), done.wait(30), answer(r))[2]
    assert call(server, "POST", VALIDATING, {"metadata": {"name": "v"}, "webhooks": [hook.entry("/slow", timeoutSeconds=30)]})[0] == 201
    results = []
    t = threading.Thread(target=lambda: results.append(call(server, "POST", MAPS, config_map("a"))))
    t.start()
    assert entered.wait(20)
    server.stop()
    t.join(20)
    done.set()
    assert results[0][0] == 503
    server.start()
