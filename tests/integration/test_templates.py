# SPDX-License-Identifier: Apache-2.0
"""Templates, what processing makes of them, and TemplateInstances, as members of a project, on a real master with access control."""
import base64
import json

import pytest

from lab import wait_for
from playkubelet import PlayKubelet
from test_auth import Cluster
from test_scheduler import kubelet_node

API = "/apis/template.openshift.io/v1/namespaces"
OWNER = "template.openshift.io/template-instance-owner"
FINALIZER = "template.openshift.io/finalizer"
WAIT = {"template.alpha.openshift.io/wait-for-ready": "true"}
MERGE = {"Content-Type": "application/merge-patch+json"}


class Project(Cluster):
    """Projects red, of its member eve (edit), its guest vic (view) and its administrator ada, and blue, of nobody of these."""

    def __init__(self, tmp):
        super().__init__(tmp)
        for name in ("red", "blue"):
            self.namespace(name)
        self.users = {}
        for name, role in (("eve", "edit"), ("vic", "view"), ("ada", "admin")):
            self.bind("red", name, role, user=name)
            self.users[name] = self.user(name)
            wait_for("the role's rules", lambda name=name: self.ask(
                self.users[name], "GET", "/api/v1/namespaces/red/configmaps")[0] == 200)

    def as_user(self, name, method, path, body=None, want=None, **kw):
        return self.ask(self.users[name], method, path, body, want=want, **kw)

    def process(self, template, user="eve", want=201, ns="red"):
        return self.as_user(user, "POST", f"{API}/{ns}/processedtemplates", template, want=want)

    def instance(self, name, template, user="eve", **spec):
        return self.as_user(user, "POST", f"{API}/red/templateinstances", {
            "metadata": {"name": name}, "spec": {"template": template, **spec}}, want=201)

    def status(self, name):
        o = self.admin("GET", f"{API}/red/templateinstances/{name}")
        return {c["type"]: c for c in o["status"].get("conditions", [])}, o

    def ended(self, name):
        """The conditions of an instance that is ready or failed, and the object."""
        wait_for(f"{name} to be ready or to fail", lambda: any(
            c["status"] == "True" for c in self.status(name)[0].values()))
        return self.status(name)

    def names(self, kind, ns="red"):
        return {o["metadata"]["name"] for o in self.admin("GET", f"{kind}/namespaces/{ns}/{kind_plural[kind]}")["items"]}

    def configmaps(self, ns="red"):
        return {o["metadata"]["name"]: o for o in self.admin("GET", f"/api/v1/namespaces/{ns}/configmaps")["items"]
                if not o["metadata"]["name"].endswith(".crt")}

    def delete(self, name):
        self.as_user("eve", "DELETE", f"{API}/red/templateinstances/{name}", want=200)
        wait_for(f"{name} to go", lambda: self.ask(self._admin, "GET", f"{API}/red/templateinstances/{name}")[0] == 404)


kind_plural = {"/api/v1": "configmaps"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    project = Project(str(tmp_path_factory.mktemp("templates")))
    yield project
    project.stop()


@pytest.fixture
def c(shared):
    yield shared
    assert shared.proc.poll() is None, shared.text()[-4000:]
    for kind in ("templateinstances", "templates"):
        shared.admin("DELETE", f"{API}/red/{kind}")
    wait_for("instances to go", lambda: not shared.admin("GET", f"{API}/red/templateinstances")["items"])
    for name in shared.configmaps():
        shared.admin("DELETE", f"/api/v1/namespaces/red/configmaps/{name}")


def configmap(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def template(*objects, name="t", parameters=(), **more):
    return {"apiVersion": "template.openshift.io/v1", "kind": "Template", "metadata": {"name": name},
            "objects": list(objects), "parameters": list(parameters), **more}


# ---- processing ----


def test_parameters_are_put_in_everywhere(c):
    """TPL-01, TPL-04: texts, names of members, whole values; several objects at once."""
    t = template(
        configmap("${NAME}-one", **{"${NAME}": "${NAME} and ${NAME}, not ${OTHER} nor ${NAME"}),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "${NAME}", "namespace": "fixed"},
         "spec": {"replicas": "${{N}}", "paused": "${{YES}}", "template": "${{JSON}}", "x": "a${{N}}", "y": "${{TEXT}}"}},
        parameters=[{"name": "NAME", "value": "web"}, {"name": "N", "value": "3"}, {"name": "YES", "value": "true"},
                    {"name": "JSON", "value": '{"a": ["${N}"]}'}, {"name": "TEXT", "value": "not JSON"},
                    {"name": "EMPTY"}],
        message="${NAME} is up${EMPTY}", labels={"app": "${NAME}"})
    got = c.process(t)
    assert got["kind"] == "Template" and got["message"] == "web is up" and got["labels"] == {"app": "web"}
    one, two = got["objects"]
    assert one["metadata"] == {"name": "web-one", "labels": {"app": "web"}}
    assert one["data"] == {"web": "web and web, not ${OTHER} nor ${NAME"}
    assert two["metadata"] == {"name": "web", "labels": {"app": "web"}}
    assert two["spec"] == {"replicas": 3, "paused": True, "template": {"a": ["${N}"]}, "x": "a${{N}}", "y": "not JSON"}
    assert c.configmaps() == {}, "processing stores nothing"
    assert c.admin("GET", f"{API}/red/templates")["items"] == []
    assert c.as_user("eve", "GET", f"{API}/red/processedtemplates")[0] == 405


def test_generated_values(c):
    t = template(configmap("c", v="${V}", w="${W}", given="${GIVEN}"), parameters=[
        {"name": "V", "generate": "expression", "from": "[a-zA-Z0-9]{12}"},
        {"name": "W", "generate": "expression", "from": "user[0-9]{3}-[\\A]{2}"},
        {"name": "GIVEN", "generate": "expression", "from": "[a]{1}", "value": "mine"}])
    first, second = c.process(t), c.process(t)
    values = {p["name"]: p["value"] for p in first["parameters"]}
    assert first["objects"][0]["data"] == {"v": values["V"], "w": values["W"], "given": "mine"}
    assert len(values["V"]) == 12 and values["V"].isalnum()
    assert values["W"].startswith("user") and values["W"][4:7].isdigit() and len(values["W"]) == 10
    assert second["objects"][0]["data"]["v"] != values["V"]


def test_all_or_nothing_with_the_field(c):
    t = template(configmap("c"), parameters=[
        {"name": "A", "required": True}, {"name": "B", "generate": "expression", "from": "[z-a]{2}"},
        {"name": "C", "generate": "other"}, {"name": "D", "generate": "expression", "from": "[a]{256}"}])
    got = c.process(t, want=422)
    assert [(x["field"], x["message"]) for x in got["details"]["causes"]] == [
        ("template.parameters[0]",
         "Required value: template.parameters[0]: parameter A is required and must be specified"),
        ("template.parameters[1]", 'Invalid value: "[z-a]{2}": parameter B: invalid range specified: z-a'),
        ("template.parameters[2]", "Invalid value: \"other\": Unknown generator name 'other' for parameter C"),
        ("template.parameters[3]",
         'Invalid value: "[a]{256}": parameter D: range must be within [1-255] characters (256)')]
    for parameter, field, message in (
            ({"name": "a-b"}, "parameters[0].name", 'Invalid value: "a-b": does not match ^[a-zA-Z0-9\\_]+$'),
            ({"value": "x"}, "parameters[0].name", "Required value")):
        bad = template(configmap("c"), parameters=[parameter])
        for path in ("templates", "processedtemplates"):
            got = c.as_user("eve", "POST", f"{API}/red/{path}", bad, want=422)
            assert [(x["field"], x["message"]) for x in got["details"]["causes"]] == [(field, message)]
    twice = template(configmap("c"), parameters=[{"name": "A"}, {"name": "A"}])
    assert 'parameters[1].name: Duplicate value: "A"' in c.process(twice, want=422)["message"]


def test_labels_reach_the_pods_of_deployment_configs(c):
    """TPL-03; and OpenShift kinds that are named as v1 get their group."""
    dc = {"apiVersion": "v1", "kind": "DeploymentConfig", "metadata": {"name": "d", "labels": {"app": "own", "x": "y"}},
          "spec": {"template": {"metadata": {"labels": {"z": "1"}}}}}
    got = c.process(template(dc, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}, labels={"app": "web"}))
    d, s = got["objects"]
    assert (d["apiVersion"], s["apiVersion"]) == ("apps.openshift.io/v1", "v1")
    assert d["metadata"]["labels"] == {"app": "web", "x": "y"} and s["metadata"]["labels"] == {"app": "web"}
    assert d["spec"]["template"]["metadata"]["labels"] == {"app": "web", "z": "1"}


def test_hostile_templates_are_bounded(c):
    """A template multiplies what it is sent; what the server holds for it does not."""
    big = {"name": "A", "value": "x" * 100000}
    wide = template(*[configmap(f"c{i}", v="${A}" * 100) for i in range(100)], parameters=[big])
    assert "its values are too large" in c.process(wide, want=422)["message"]
    deep = template({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": "${{A}}"},
                    parameters=[{"name": "A", "value": "[" * 62 + "]" * 62}])
    assert "it is nested too deeply" in c.process(deep, want=422)["message"]
    many = template(configmap("c", v="${A}"), parameters=[
        {"name": "A", "generate": "expression", "from": "[a]{255}" * 1000}])
    assert "the generated value is longer than 65536 bytes" in c.process(many, want=422)["message"]
    same = template(configmap("c", **{"${A}": "1", "b": "2"}), parameters=[{"name": "A", "value": "b"}])
    assert "a member is there twice" in c.process(same, want=422)["message"]
    self_named = template(configmap("c", v="${A}"), parameters=[{"name": "A", "value": "${A}${B}"}, {"name": "B", "value": "${A}"}])
    assert c.process(self_named)["objects"][0]["data"]["v"] == "${A}${B}"


def test_who_may_process_and_store(c):
    t = template(configmap("c"))
    c.as_user("eve", "POST", f"{API}/red/templates", t, want=201)
    c.as_user("vic", "GET", f"{API}/red/templates/t", want=200)
    for path in ("templates", "processedtemplates", "templateinstances"):
        assert c.as_user("vic", "POST", f"{API}/red/{path}", t)[0] == 403
        assert c.as_user("eve", "POST", f"{API}/blue/{path}", t)[0] == 403
    assert c.as_user("eve", "GET", f"{API}/blue/templates")[0] == 403


def test_columns(c):
    long = template(configmap("c"), name="long", parameters=[{"name": "A"}, {"name": "B", "value": "b"}])
    long["metadata"]["annotations"] = {"description": "First line\nsecond"}
    generated = template(configmap("a"), configmap("b"), name="generated", parameters=[
        {"name": "A", "generate": "expression", "from": "a"}])
    generated["metadata"]["annotations"] = {"description": "d" * 90}
    for t in (long, generated, template(name="none")):
        c.as_user("eve", "POST", f"{API}/red/templates", t, want=201)
    rows = [line.split(None, 1) for line in c.kubectl("get", "templates", "-n", "red", "--as", "eve").stdout.splitlines()]
    cells = {name: rest.split() for name, rest in rows}
    assert cells["NAME"] == ["DESCRIPTION", "PARAMETERS", "OBJECTS"]
    assert cells["long"] == ["First", "line...", "2", "(1", "blank)", "1"]
    assert cells["generated"] == ["d" * 77 + "...", "1", "(1", "generated)", "2"]
    assert cells["none"] == ["0", "(all", "set)", "0"]


# ---- the catalogue ----


CATALOG = {"files", "nginx", "node-web", "parallel-work", "postgresql-ephemeral", "python-web", "redis-ephemeral",
           "scheduled-check", "static-web", "three-parts"}


def shared_templates(c, user="eve"):
    items = c.as_user(user, "GET", f"{API}/openshift/templates", want=200)["items"]
    return {t["metadata"]["name"]: {**t, "metadata": {k: t["metadata"][k] for k in ("name", "annotations")}} for t in items}


def test_the_catalogue_is_everybodys_to_read(c):
    c.users["nobody"] = c.user("nobody")
    wait_for("ten templates", lambda: set(shared_templates(c, "nobody")) == CATALOG)
    t = shared_templates(c, "nobody")["static-web"]
    for verb, path, body in (("POST", "templates", template(name="mine")), ("PUT", "templates/static-web", t),
                             ("DELETE", "templates/static-web", None), ("POST", "processedtemplates", t)):
        assert c.as_user("nobody", verb, f"{API}/openshift/{path}", body)[0] == 403, (verb, path)
    assert c.as_user("nobody", "GET", "/api/v1/namespaces/openshift/secrets")[0] == 403
    assert c.ask(None, "GET", f"{API}/openshift/templates")[0] in (401, 403)
    # A user processes it in a project of its own.
    assert c.process(t)["objects"][0]["metadata"]["labels"] == {"app": "static-web"}


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_each_template_of_the_catalogue_makes_valid_objects(c, name):
    """As a member of a project: with the values that the template has, every object passes a dry run."""
    wait_for("the templates", lambda: name in shared_templates(c))
    t = shared_templates(c)[name]
    notes = t["metadata"]["annotations"]
    assert notes["description"] and notes["openshift.io/display-name"] and t["message"], notes
    for p in t["parameters"]:
        assert p.get("displayName") and (p.get("value") or p.get("generate") or p["name"] == "URL"), p
        if p["name"] == "IMAGE":
            assert p["value"].startswith("localhost/")
        if p["name"] == "URL":
            p["value"] = "http://example.com/"
    objects = c.process(t)["objects"]
    kinds = {(r["kind"], v["groupVersion"]): r["name"]
             for v in [c.admin("GET", f"/{path}") for path in ("api/v1", "apis/apps/v1", "apis/batch/v1")]
             for r in v["resources"] if "/" not in r["name"]}
    for o in objects:
        assert "${" not in json.dumps(o) or o["kind"] == "ConfigMap", o
        assert o["metadata"]["labels"]["app"]
        base = "/api/v1" if o["apiVersion"] == "v1" else f"/apis/{o['apiVersion']}"
        path = f"{base}/namespaces/red/{kinds[o['kind'], o['apiVersion']]}"
        answer = c.as_user("eve", "POST", f"{path}?dryRun=All&fieldValidation=Strict", o, want=201)
        pod = answer["spec"].get("template", {}).get("spec") if "spec" in answer else None
        if pod and "volumeClaimTemplates" not in answer["spec"]:
            # The members of a project may make such pods.
            status, made = c.as_user("eve", "POST", "/api/v1/namespaces/red/pods?dryRun=All", {
                "metadata": {"name": "p"}, "spec": {**pod, "restartPolicy": "Never"}})
            assert status == 201, made
    assert not c.configmaps()


# ---- instances ----


def test_an_instance_makes_its_objects_and_takes_them_along(c):
    t = template(configmap("${NAME}-one", v="${PASSWORD}"), configmap("${NAME}-two"), parameters=[
        {"name": "NAME", "value": "default"}, {"name": "PASSWORD", "generate": "expression", "from": "[a-z]{8}"}])
    c.as_user("eve", "POST", "/api/v1/namespaces/red/secrets", {
        "metadata": {"name": "values"}, "data": {"NAME": base64.b64encode(b"mine").decode(), "unused": "eA=="}}, want=201)
    try:
        made = c.instance("i", t, secret={"name": "values"})
        assert made["spec"]["requester"]["username"] == "eve"
        assert "system:authenticated" in made["spec"]["requester"]["groups"]
        conditions, o = c.ended("i")
        assert conditions["Ready"]["status"] == "True" and conditions["Ready"]["reason"] == "Created", conditions
        assert o["metadata"]["finalizers"] == [FINALIZER]
        maps = c.configmaps()
        assert set(maps) == {"mine-one", "mine-two"} and len(maps["mine-one"]["data"]["v"]) == 8
        assert [x["ref"] for x in o["status"]["objects"]] == [
            {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "red", "name": m["metadata"]["name"],
             "uid": m["metadata"]["uid"]} for m in (maps["mine-one"], maps["mine-two"])]
        for m in maps.values():
            assert m["metadata"]["labels"][OWNER] == o["metadata"]["uid"]
        audit = c.kubectl("get", "templateinstances", "-n", "red", "--as", "eve").stdout.splitlines()
        assert audit[0].split() == ["NAME", "TEMPLATE"] and audit[1].split() == ["i", "t"]
        c.delete("i")
        assert c.configmaps() == {}
    finally:
        c.admin("DELETE", "/api/v1/namespaces/red/secrets/values")


def test_nothing_is_made_when_one_object_is_refused(c):
    """TPL-02: access reviews and a dry run come before any object."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "mine"}, "rules": []}
    foreign = {**configmap("f"), "metadata": {"name": "f", "namespace": "${NS}"}}
    invalid = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a" * 64}, "spec": {"ports": [{"port": 80}]}}
    privileged = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]}}
    grant = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "g"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
             "subjects": [{"kind": "User", "name": "eve"}]}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    c.admin("POST", "/api/v1/namespaces/red/configmaps", configmap("taken"), 201)
    cases = [
        (role, "eve", "unable to authorize user to create clusterroles.rbac.authorization.k8s.io, Name=mine"),
        (foreign, "eve", "unable to authorize user to create configmaps, Name=f"),
        (grant, "eve", "unable to authorize user to create rolebindings.rbac.authorization.k8s.io, Name=g"),
        (grant, "ada", "unable to create rolebindings.rbac.authorization.k8s.io, Name=g"),
        (privileged, "eve", "unable to create pods, Name=p: pods \"p\" is forbidden: unable to validate against any security"),
        (invalid, "eve", "metadata.name: Invalid value"),  # TPL-05
        (configmap("taken"), "eve", "unable to create configmaps, Name=taken: configmaps \"taken\" already exists"),
        (unknown, "eve", "unable to identify the resource mapping for example.com/v1, Kind=Thing"),
    ]
    before = {o["metadata"]["name"] for o in c.admin("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings")["items"]}
    for i, (bad, user, message) in enumerate(cases):
        t = template(configmap("good"), bad, configmap("later"), parameters=[{"name": "NS", "value": "blue"}])
        c.instance(f"i{i}", t, user=user)
        conditions, o = c.ended(f"i{i}")
        assert "Ready" in conditions and conditions["Ready"]["status"] == "False", conditions
        failure = conditions["InstantiateFailure"]
        assert failure["reason"] == "Failed" and message in failure["message"], (message, failure)
        assert "objects" not in o["status"]
        assert set(c.configmaps()) == {"taken"} and not c.configmaps("blue")
        c.delete(f"i{i}")
    after = {o["metadata"]["name"] for o in c.admin("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings")["items"]}
    assert before == after and set(c.configmaps()) == {"taken"}


def test_the_requester_is_the_servers(c):
    """Nobody acts as somebody else: not by the spec, not by groups, not by a later change."""
    t = template({**configmap("f"), "metadata": {"name": "f", "namespace": "${NS}"}}, parameters=[{"name": "NS", "value": "blue"}])
    for requester in ({"username": "system:admin"}, {"username": "root", "groups": ["system:masters"]}):
        status, answer = c.as_user("eve", "POST", f"{API}/red/templateinstances", {
            "metadata": {"name": "i"}, "spec": {"template": t, "requester": requester}})
        assert status == 403 and "spec.requester.username" in answer["message"], answer
    made = c.instance("i", t, requester={"username": "eve", "groups": ["system:masters"], "extra": {"a": ["b"]}})
    assert "system:masters" not in made["spec"]["requester"]["groups"] and "extra" not in made["spec"]["requester"]
    conditions, _ = c.ended("i")
    assert conditions["InstantiateFailure"]["status"] == "True" and not c.configmaps("blue")
    for change in ({"requester": {"username": "root"}}, {"template": {"objects": []}}, {"secret": {"name": "x"}}):
        status, answer = c.as_user("eve", "PATCH", f"{API}/red/templateinstances/i", {"spec": change}, headers=MERGE)
        assert status == 422 and "spec: Invalid value" in answer["message"] and "field is immutable" in answer["message"]
    for body in ({"status": {"conditions": [], "objects": [{"ref": {"apiVersion": "v1", "kind": "Secret", "name": "own"}}]}},):
        assert c.as_user("ada", "PATCH", f"{API}/red/templateinstances/i/status", body, headers=MERGE)[0] == 403
        assert c.as_user("eve", "PATCH", f"{API}/red/templateinstances/i", body, headers=MERGE)[0] == 200
    assert "objects" not in c.status("i")[1]["status"]


def test_a_secret_is_read_as_the_requester(c):
    c.role("red", "instances", {"apiGroups": ["template.openshift.io"], "resources": ["templateinstances"], "verbs": ["*"]},
           {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]})
    c.bind("red", "ivy", "instances", user="ivy", kind="Role")
    c.users["ivy"] = c.user("ivy")
    c.admin("POST", "/api/v1/namespaces/red/secrets", {"metadata": {"name": "own"}, "data": {"A": "c2VjcmV0"}}, 201)
    try:
        t = template(configmap("leak", v="${A}"), parameters=[{"name": "A", "value": "x"}])
        wait_for("ivy's rights", lambda: c.as_user("ivy", "GET", f"{API}/red/templateinstances")[0] == 200)
        c.instance("i", t, user="ivy", secret={"name": "own"})
        assert "unable to retrieve TemplateInstance Secret" in c.ended("i")[0]["InstantiateFailure"]["message"]
        assert c.configmaps() == {}
        c.instance("j", t, user="ivy", secret={"name": "absent"})
        assert "unable to retrieve TemplateInstance Secret" in c.ended("j")[0]["InstantiateFailure"]["message"]
        c.instance("k", t, user="ivy")
        assert c.ended("k")[0]["Ready"]["status"] == "True" and set(c.configmaps()) == {"leak"}
        # What it made goes with it, also without the requester's right to delete.
        c.delete("k")
        assert c.configmaps() == {}
    finally:
        c.admin("DELETE", "/api/v1/namespaces/red/secrets/own")


def test_only_its_own_objects_are_deleted(c):
    """An object that took the place of one of the instance's stays."""
    c.instance("i", template(configmap("one"), configmap("two")))
    assert c.ended("i")[0]["Ready"]["status"] == "True"
    c.as_user("eve", "DELETE", "/api/v1/namespaces/red/configmaps/one", want=200)
    c.as_user("eve", "POST", "/api/v1/namespaces/red/configmaps", configmap("one"), want=201)
    c.delete("i")
    assert set(c.configmaps()) == {"one"}


def test_names_that_the_server_makes(c):
    generated = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
    c.instance("i", template(generated, generated))
    assert c.ended("i")[0]["Ready"]["status"] == "True"
    names = {x["ref"]["name"] for x in c.status("i")[1]["status"]["objects"]}
    assert len(names) == 2 and set(c.configmaps()) == names
    c.delete("i")
    assert c.configmaps() == {}


def test_objects_that_depend_on_earlier_ones(c):
    """A dry run of the Pod would be refused: its account comes with the same template."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}}
    c.instance("i", template(account, pod))
    conditions, o = c.ended("i")
    assert conditions["Ready"]["status"] == "True", conditions
    assert [x["ref"]["kind"] for x in o["status"]["objects"]] == ["ServiceAccount", "Pod"]
    c.delete("i")


@pytest.fixture
def nodes(c):
    c.admin("POST", "/api/v1/nodes", kubelet_node("n1"), 201)

    def call(method, path, body=None, headers=None):
        status, answer = c.ask(c._admin, method, path, body, headers=headers)
        return answer if status < 300 else None
    kubelet = PlayKubelet(call)
    yield kubelet
    kubelet.stop()
    c.admin("DELETE", "/api/v1/nodes/n1")


def workload(kind, name, image="web", **spec):
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}
    if kind == "Job":
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": WAIT},
                "spec": {"backoffLimit": 0, "template": {"spec": {**pod["spec"], "restartPolicy": "Never"}}}}
    more = {"serviceName": name} if kind == "StatefulSet" else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "annotations": WAIT},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod, **more}}


def test_an_instance_is_ready_with_its_objects(c, nodes):
    good = template(workload("Deployment", "web"), workload("StatefulSet", "db"), workload("Job", "load", "done"))
    c.instance("good", good)
    conditions, o = c.ended("good")
    assert conditions["Ready"]["status"] == "True", conditions
    deployment = c.admin("GET", "/apis/apps/v1/namespaces/red/deployments/web")
    assert deployment["status"]["availableReplicas"] == 2
    c.delete("good")
    wait_for("the pods to go", lambda: not c.admin("GET", "/api/v1/namespaces/red/pods")["items"])
    c.instance("bad", template(configmap("kept"), workload("Job", "load", "fail")))
    conditions, o = c.ended("bad")
    assert conditions["InstantiateFailure"]["message"] == "readiness failed on Job red/load", conditions
    assert len(o["status"]["objects"]) == 2 and set(c.configmaps()) == {"kept"}
    c.instance("slow", template(workload("Deployment", "slow", "broken")))
    wait_for("the wait", lambda: "Deployment slow" in c.status("slow")[0].get("Ready", {}).get("message", ""))
    assert c.status("slow")[0]["Ready"]["reason"] == "Waiting"
    c.as_user("eve", "DELETE", "/apis/apps/v1/namespaces/red/deployments/slow", want=200)
    assert c.ended("slow")[0]["InstantiateFailure"]["message"] == 'Deployment "slow" not found'


def test_kubectl_works_with_the_kinds(c):
    def kubectl(*args, obj=None):
        if obj:
            (c.dir / "o.json").write_text(json.dumps(obj))
            args = [*args, "-f", str(c.dir / "o.json")]
        return c.kubectl("-n", "red", "--as", "eve", *args).stdout
    t = template(configmap("c"), parameters=[{"name": "A", "value": "1"}])
    assert kubectl("apply", obj=t) == "template.template.openshift.io/t created\n"
    t["parameters"][0]["value"] = "2"
    assert kubectl("apply", obj=t) == "template.template.openshift.io/t configured\n"
    assert kubectl("get", "template", "t", "-o", "jsonpath={.parameters[0].value}") == "2"
    i = {"apiVersion": "template.openshift.io/v1", "kind": "TemplateInstance", "metadata": {"name": "i"}, "spec": {"template": t}}
    assert kubectl("apply", obj=i) == "templateinstance.template.openshift.io/i created\n"
    kubectl("wait", "--for=condition=Ready", "templateinstance/i", "--timeout=20s")
    assert kubectl("apply", obj=i) == "templateinstance.template.openshift.io/i unchanged\n"
    assert "KIND:" in kubectl("explain", "templateinstance.spec.template")
    kubectl("delete", "templateinstance/i", "template/t")
    assert c.configmaps() == {}
