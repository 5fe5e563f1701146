# SPDX-License-Identifier: Apache-2.0
"""What somebody with the role edit in project red can ask of the API: nothing of it leads out of red."""
import base64
import json
import re
import socket
import threading

import pytest

import escalations
from lab import wait_for
from people import APPLY, BLUE, JSON_PATCH, MERGE, RED, People, pod
from test_auth import RBAC

REFUSED = (400, 401, 403, 404, 405, 409, 415, 422)


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("member")))
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def attempt(c, who, what, method, path, body=None, headers=None):
    status, answer = c.ask(who, method, path, body, headers=headers)
    return status, answer


def refused(c, who, table):
    """Those of the table that were not refused."""
    before = c.all_of_blue()
    wrong = []
    for what, *request in table:
        status, answer = attempt(c, who, what, *request)
        if status not in REFUSED:
            wrong.append((what, status, json.dumps(answer)[:300]))
    after = c.all_of_blue()
    wrong += [("changed", key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return wrong


def test_the_role_is_of_use_in_its_own_project(c):
    """The control of all the rest: what is refused below is granted in red."""
    for kind, body in (("configmaps", {"metadata": {"name": "c"}}), ("secrets", {"metadata": {"name": "c"}}), ("pods", pod("c")),
                       ("services", {"metadata": {"name": "c"}, "spec": {"ports": [{"port": 80}]}})):
        c.ask(c.ed, "POST", f"{RED}/{kind}", body, want=201)
        c.ask(c.ed, "GET", f"{RED}/{kind}", want=200)
        c.ask(c.ed, "PATCH", f"{RED}/{kind}/c", {"metadata": {"labels": {"a": "b"}}}, headers=MERGE, want=200)
        c.ask(c.ed, "DELETE", f"{RED}/{kind}/c", want=200)


def test_other_projects_are_closed(c):
    for who in (c.ed, c.ada, c.nobody, None):
        assert refused(c, who, escalations.other_projects()) == []


def test_what_belongs_to_no_project_is_closed(c):
    for who in (c.ed, c.nobody, None):
        assert refused(c, who, escalations.cluster_scope()) == []


def raw(c, path, headers=""):
    """Answer to a path as it is written, which a client's library would tidy up."""
    with c.user("ed").wrap_socket(socket.create_connection(("127.0.0.1", c.port), timeout=30), server_hostname="127.0.0.1") as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n".encode("latin-1"))
        out = b""
        while part := s.recv(65536):
            out += part
    return out


def test_other_spellings_of_a_path_lead_nowhere(c):
    """None answers with blue's secret; those that are not red's are refused."""
    own = raw(c, f"{RED}/secrets/own")
    assert b" 200 " in own.split(b"\r\n")[0]
    secret = c.admin("GET", f"{BLUE}/secrets/own")["metadata"]["uid"].encode()
    for what, _, path in escalations.paths():
        got = raw(c, path)
        assert secret not in got, what
        assert b'"namespace":"blue"' not in got, what


def test_acting_as_somebody_else_is_refused(c):
    assert c.ask(c.ed, "GET", "/version", headers={"Impersonate-User": "system:serviceaccount:red:default"})[0] == 200
    for what, headers in escalations.as_somebody_else():
        for path in ("/version", "/api/v1/nodes", f"{BLUE}/secrets/own"):
            status, answer = c.ask(c.ed, "GET", path, headers=headers)
            assert status in (400, 403) or (path == "/version" and "X-Remote-User" in headers), (what, path, status, answer)


def test_the_accounts_of_the_project_have_no_more_than_it(c):
    """A token of red's accounts, and acting as one, are worth what these have."""
    token = c.ask(c.ed, "POST", f"{RED}/serviceaccounts/default/token", {"spec": {}}, want=201)["status"]["token"]
    assert c.whoami(token)["username"] == "system:serviceaccount:red:default"
    assert refused(c, token, escalations.other_projects()[:20] + escalations.cluster_scope()) == []


KIND_OF = {"configmaps": "ConfigMap", "secrets": "Secret", "pods": "Pod", "serviceaccounts": "ServiceAccount",
           "services": "Service"}


def test_bodies_that_name_another_project_are_refused(c):
    """The path says the project: a body that says another one changes neither."""
    table = []
    for kind, spec in (("configmaps", {}), ("secrets", {}), ("pods", {"spec": pod()["spec"]}), ("serviceaccounts", {}),
                       ("services", {"spec": {"ports": [{"port": 80}]}})):
        for ns in ("blue", "kube-system", "", "../blue", "red/../blue"):
            if ns:
                table.append((f"{kind} in {ns}", "POST", f"{RED}/{kind}", {"metadata": {"name": "n", "namespace": ns}, **spec}))
        table += [(f"move {kind}", "PATCH", f"{RED}/{kind}/own", {"metadata": {"namespace": "blue"}}, MERGE),
                  (f"rename {kind}", "PATCH", f"{RED}/{kind}/own", {"metadata": {"name": "other"}}, MERGE),
                  (f"move {kind} by JSON", "PATCH", f"{RED}/{kind}/own",
                   [{"op": "replace", "path": "/metadata/namespace", "value": "blue"}], JSON_PATCH),
                  (f"apply {kind}", "PATCH", f"{RED}/{kind}/own?fieldManager=x",
                   {"apiVersion": "v1", "kind": KIND_OF[kind], "metadata": {"name": "own", "namespace": "blue"}}, APPLY)]
    assert refused(c, c.ed, table) == []
    for kind in ("configmaps", "secrets", "pods"):
        for name in ("../x", "..", ".", "a/b", "A", "a b", "x" * 300, "a\0b", "a%2fb"):
            status, answer = c.ask(c.ed, "POST", f"{RED}/{kind}", {"metadata": {"name": name}, **(
                {"spec": pod()["spec"]} if kind == "pods" else {})})
            assert status in (400, 422), (name, status, answer)


# ---- pods ----

@pytest.mark.parametrize("where", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("field", escalations.pods())
def test_no_pod_reaches_the_host(c, field, where):
    """What "restricted" would refuse: when it is made, and when it is changed."""
    name = "x-" + re.sub(r"[^a-z]+", "-", f"{field}-{where}".lower())
    body = escalations.pod_with(field, where, name)
    if not body:
        return  # it is a field of the pod, which has been tried
    status, answer = c.ask(c.ed, "POST", f"{RED}/pods", body)
    assert status in (403, 422), (status, answer)
    assert c.ask(c.ada, "POST", f"{RED}/pods", body)[0] in (403, 422)
    for headers, change in ((MERGE, {"spec": body["spec"]}), (APPLY, {"apiVersion": "v1", "kind": "Pod", **body})):
        path = f"{RED}/pods/own" + ("?fieldManager=x&force=true" if headers is APPLY else "")
        c.ask(c.ed, "PATCH", path, {**change, "metadata": {"name": "own"}}, headers=headers)
        stored = json.dumps(c.admin("GET", f"{RED}/pods/own")["spec"])
        for word in ("hostN", "hostP", "hostI", "rivileged", "NET_ADMIN", "ALL", "Unconfined", "msgmax", "redirects",
                     '"runAsUser": 0', "allowPrivilegeEscalation\": true"):
            assert word not in stored, (headers, stored)


def test_an_unremarkable_pod_is_accepted(c):
    """The control of those above."""
    c.ask(c.ed, "POST", f"{RED}/pods", pod("plain", initContainers=[{"name": "i", "image": "i"}]), want=201)
    c.ask(c.ed, "DELETE", f"{RED}/pods/plain", want=200)


def test_a_pod_cannot_be_put_on_a_node_or_given_an_address(c):
    """Who runs where, and with which address, say scheduler and node; a status that comes with a new pod counts for nothing."""
    made = c.ask(c.ed, "POST", f"{RED}/pods", {**pod("liar"), "status": {"podIP": "10.128.0.77", "hostIP": "10.245.2.3", "podIPs": [
        {"ip": "10.128.0.77"}], "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, want=201)
    assert "podIP" not in made.get("status", {}) and "podIPs" not in made.get("status", {})
    c.ask(c.ed, "PATCH", f"{RED}/pods/liar", {"status": {"podIP": "10.128.0.77"}}, headers=MERGE)
    assert "podIP" not in c.admin("GET", f"{RED}/pods/liar").get("status", {})
    assert c.ask(c.ed, "PATCH", f"{RED}/pods/liar/status", {"status": {"podIP": "10.128.0.77"}}, headers=MERGE)[0] == 403
    c.ask(c.ed, "DELETE", f"{RED}/pods/liar", want=200)


# ---- services ----

PLACES = ["10.128.0.5", "10.131.255.254", "172.30.0.1", "172.30.255.254", "10.245.2.3", "127.0.0.1", "127.1.2.3", "169.254.169.254",
          "169.254.169.4", "224.0.0.1", "0.0.0.0", "::1", "010.128.0.5", "10.128.5", "0x0a800005", "10.128.0.5 "]


@pytest.mark.parametrize("address", PLACES)
def test_endpoints_lead_to_nobody_elses_address(c, address):
    """Pods, services, nodes, the host's loopback, the cloud's metadata; in every list, when made and when changed."""
    meta = {"metadata": {"name": "sly"}}
    for field in ("addresses", "notReadyAddresses"):
        assert c.ask(c.ed, "POST", f"{RED}/endpoints", {**meta, "subsets": [
            {field: [{"ip": address}], "ports": [{"port": 8443}]}]})[0] in (403, 422), field
    slices = "/apis/discovery.k8s.io/v1/namespaces/red/endpointslices"
    assert c.ask(c.ed, "POST", slices, {**meta, "addressType": "IPv4", "endpoints": [{"addresses": [address]}],
                                        "ports": [{"port": 8443}]})[0] in (403, 422)
    c.ask(c.ed, "POST", f"{RED}/endpoints", {**meta, "subsets": [{"addresses": [{"ip": "198.51.100.1"}], "ports": [{"port": 1}]}]},
          want=201)
    try:
        for headers, body in ((MERGE, {"subsets": [{"addresses": [{"ip": address}], "ports": [{"port": 1}]}]}),
                              (JSON_PATCH, [{"op": "replace", "path": "/subsets/0/addresses/0/ip", "value": address}])):
            assert c.ask(c.ed, "PATCH", f"{RED}/endpoints/sly", body, headers=headers)[0] in (403, 422)
    finally:
        c.ask(c.ed, "DELETE", f"{RED}/endpoints/sly", want=200)


def test_services_take_no_addresses_or_ports_of_their_choice(c):
    def service(**spec):
        return {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, **spec.pop("port", {})}], **spec}}
    taken = c.admin("GET", "/api/v1/namespaces/default/services/kubernetes")["spec"]["clusterIP"]
    blue = c.admin("GET", f"{BLUE}/services/own")["spec"]["clusterIP"]
    for what, body in {
            "external address": service(externalIPs=["198.51.100.1"]), "a node's": service(externalIPs=["10.245.2.3"]),
            "a pod's": service(externalIPs=["10.128.0.5"]), "the API's": service(clusterIP=taken),
            "blue's": service(clusterIP=blue),
            "outside the range": service(clusterIP="10.128.0.5"), "loopback": service(clusterIP="127.0.0.1"),
            "a chosen node port": service(type="NodePort", port={"nodePort": 30053}),
            "a low node port": service(type="NodePort", port={"nodePort": 53}),
            "the API's node port": service(type="NodePort", port={"nodePort": 8443}),
            "a chosen health port": service(type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=30054)}.items():
        status, answer = c.ask(c.ed, "POST", f"{RED}/services", body)
        assert status in (403, 422), (what, status, answer)
    made = c.ask(c.ed, "POST", f"{RED}/services", {**service(type="LoadBalancer"), "status": {"loadBalancer": {
        "ingress": [{"ip": "10.245.2.3"}]}}}, want=201)
    given = [i["ip"] for i in made.get("status", {}).get("loadBalancer", {}).get("ingress", [])]
    assert "10.245.2.3" not in given
    c.ask(c.ed, "PATCH", f"{RED}/services/s", {"status": {"loadBalancer": {"ingress": [{"ip": "10.245.2.3"}]}}}, headers=MERGE)
    assert c.ask(c.ed, "PATCH", f"{RED}/services/s/status", {"status": {"loadBalancer": {"ingress": [{"ip": "10.245.2.3"}]}}},
                 headers=MERGE)[0] == 403
    assert "10.245.2.3" not in json.dumps(c.admin("GET", f"{RED}/services/s").get("status", {}))
    c.ask(c.ed, "DELETE", f"{RED}/services/s", want=200)


# ---- secrets and metadata ----

def test_secrets_of_special_types_give_nothing(c):
    """A token for an account of another project, one that names another's uid, a bootstrap token outside kube-system."""
    blue_uid = c.admin("GET", f"{BLUE}/serviceaccounts/default")["metadata"]["uid"]
    for i, annotations in enumerate(({"kubernetes.io/service-account.name": "nosuch"},
                                     {"kubernetes.io/service-account.name": "../blue/default"},
                                     {"kubernetes.io/service-account.name": "blue:default"},
                                     {"kubernetes.io/service-account.name": "default",
                                      "kubernetes.io/service-account.uid": blue_uid})):
        c.ask(c.ed, "POST", f"{RED}/secrets", {"metadata": {"name": f"t{i}", "annotations": annotations},
                                               "type": "kubernetes.io/service-account-token"})
    c.ask(c.ed, "POST", f"{RED}/secrets", {"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
                                           "stringData": {"token-id": "abcdef", "token-secret": "0123456789abcdef",
                                                          "usage-bootstrap-authentication": "true"}})
    assert c.ask("abcdef.0123456789abcdef", "GET", "/version")[0] == 401
    # One for an account of red is filled: behind it the controller has seen the others.
    c.ask(c.ed, "POST", f"{RED}/secrets", {"metadata": {"name": "good", "annotations": {
        "kubernetes.io/service-account.name": "default"}}, "type": "kubernetes.io/service-account-token"}, want=201)
    wait_for("the token", lambda: c.ask(c.ed, "GET", f"{RED}/secrets/good")[1].get("data", {}).get("token"))
    for i in range(4):
        status, s = c.ask(c.ed, "GET", f"{RED}/secrets/t{i}")
        if status == 200 and s.get("data", {}).get("token"):
            who = c.whoami(base64.b64decode(s["data"]["token"]).decode())
            assert who["username"] == "system:serviceaccount:red:default", s["metadata"]["annotations"]


def test_the_servers_metadata_is_the_servers(c):
    """uid, versions, times and owners: what a user writes there binds nobody."""
    blue = c.admin("GET", f"{BLUE}/configmaps/own")["metadata"]
    made = c.ask(c.ed, "POST", f"{RED}/configmaps", {"metadata": {
        "name": "meta", "uid": blue["uid"], "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77,
        "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5, "selfLink": "/api/v1/namespaces/blue"}},
        want=201)
    meta = made["metadata"]
    assert meta["uid"] != blue["uid"] and not meta["creationTimestamp"].startswith("2001") and "deletionTimestamp" not in meta
    # An object of red that says it is owned by blue's, and one with a finalizer: neither keeps blue's from being deleted.
    c.ask(c.ed, "PATCH", f"{RED}/configmaps/meta", {"metadata": {"finalizers": ["x.io/never"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": blue["uid"], "blockOwnerDeletion": True}]}}, headers=MERGE)
    c.admin("DELETE", f"{BLUE}/configmaps/own")
    assert c.ask(c._admin, "GET", f"{BLUE}/configmaps/own")[0] == 404
    c.admin("POST", f"{BLUE}/configmaps", {"metadata": {"name": "own"}, "data": {"k": "v"}}, 201)
    c.admin("PATCH", f"{RED}/configmaps/meta", {"metadata": {"finalizers": None}}, headers=MERGE)
    c.ask(c.ed, "DELETE", f"{RED}/configmaps/meta")


def test_access_reviews_tell_about_oneself_only(c):
    auth = "/apis/authorization.k8s.io/v1"
    about = {"namespace": "blue", "verb": "get", "resource": "secrets"}
    answer = c.ask(c.ed, "POST", f"{auth}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": about, "user": "root",
                                                                              "groups": ["system:masters"]}})[1]
    assert not answer.get("status", {}).get("allowed")
    rules = c.ask(c.ed, "POST", f"{auth}/selfsubjectrulesreviews", {"spec": {"namespace": "blue"}}, want=201)["status"]
    assert not [r for r in rules["resourceRules"] if {"secrets", "pods", "*"} & set(r["resources"])]
    assert c.ask(c.ed, "POST", f"{auth}/namespaces/blue/localsubjectaccessreviews", {"metadata": {"namespace": "blue"}, "spec": {
        "user": "ada", "resourceAttributes": about}})[0] == 403


def test_rights_end_for_open_watches_too(c):
    """A watch that began with a right tells nothing that was stored after the right ended."""
    c.bind("blue", "late", "view", user="late")
    late = c.user("late")
    wait_for("the right", lambda: c.ask(late, "GET", f"{BLUE}/configmaps")[0] == 200)
    version = c.ask(late, "GET", f"{BLUE}/configmaps", want=200)["metadata"]["resourceVersion"]
    said = []

    def watch():
        said.append(c.call(f"{BLUE}/configmaps?watch=1&timeoutSeconds=8&resourceVersion={version}", late, {}, None, "GET"))
    t = threading.Thread(target=watch)
    t.start()
    c.admin("POST", f"{BLUE}/configmaps", {"metadata": {"name": "before"}}, 201)
    c.admin("DELETE", f"{RBAC}/namespaces/blue/rolebindings/late")
    assert c.ask(late, "GET", f"{BLUE}/configmaps")[0] == 403
    t.join()
    for name in ("before",):
        c.admin("DELETE", f"{BLUE}/configmaps/{name}")
    assert said and said[0][0] in (200, 403)


def replica_set(name, labels, replicas=1):
    return {"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}}}


def test_controllers_are_led_to_no_other_project(c):
    """Labels and owner references of one project mean nothing to the controllers' objects of another."""
    labels = {"app": "shared"}
    sets = {"red": RED.replace("/api/v1", "/apis/apps/v1") + "/replicasets",
            "blue": BLUE.replace("/api/v1", "/apis/apps/v1") + "/replicasets"}

    def pods(base):
        return {p["metadata"]["name"]: p for p in c.admin("GET", f"{base}/pods?labelSelector=app%3Dshared")["items"]}

    try:
        theirs = c.admin("POST", sets["blue"], replica_set("target", labels), 201)
        wait_for("blue's pod", lambda: len(pods(BLUE)) == 1)
        before = set(pods(BLUE))
        # A pod that names blue's set as its controller, with its labels.
        lie = pod("lie")
        lie["metadata"].update(labels=labels, ownerReferences=[
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "target", "uid": theirs["metadata"]["uid"], "controller": True}])
        c.ask(c.ed, "POST", f"{RED}/pods", lie, want=201)
        # The control: a set of one's own with the same selector gets a pod of its own, and nothing of blue's.
        c.ask(c.ed, "POST", sets["red"], replica_set("own", labels, 2), want=201)
        wait_for("red's pods", lambda: c.ask(c.ed, "GET", sets["red"] + "/own", want=200)["status"].get("replicas") == 2)
        wait_for("the lie to be collected", lambda: "lie" not in pods(RED))  # its owner does not exist in red
        assert set(pods(BLUE)) == before
        status = c.admin("GET", sets["blue"] + "/target")["status"]
        assert status["replicas"] == 1
        assert all(p["metadata"]["ownerReferences"][0]["name"] == "own" for p in pods(RED).values())
    finally:
        for path in sets.values():
            for o in c.admin("GET", path)["items"]:
                c.admin("DELETE", f"{path}/{o['metadata']['name']}?propagationPolicy=Background")
        wait_for("all pods to go", lambda: not pods(RED) and not pods(BLUE))


# ---- templates ----

TEMPLATES = "/apis/template.openshift.io/v1/namespaces"


def made_by_template(c, name, *objects, parameters=(), **spec):
    """The conditions of an instance that has ended, and how many objects it has."""
    body = {"metadata": {"name": name}, "spec": {"template": {"objects": list(objects), "parameters": list(parameters)}, **spec}}
    status, answer = c.ask(c.ed, "POST", f"{TEMPLATES}/red/templateinstances", body)
    if status != 201:
        return status, answer
    path = f"{TEMPLATES}/red/templateinstances/{name}"

    def ended():
        o = c.admin("GET", path)
        return o if any(x["status"] == "True" for x in o["status"].get("conditions", [])) else None
    o = wait_for(f"{name} to end", ended)
    c.ask(c.ed, "DELETE", path, want=200)
    wait_for(f"{name} to go", lambda: c.ask(c._admin, "GET", path)[0] == 404)
    return {x["type"]: x for x in o["status"]["conditions"]}, len(o["status"].get("objects", []))


def test_templates_lead_to_no_other_project(c):
    """The controller, which may do all, makes for a member what the member may make."""
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-template"}}
    conditions, n = made_by_template(c, "control", good)
    assert conditions["Ready"]["status"] == "True" and n == 1, conditions
    elsewhere = {"namespace": "${NS}"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
               "subjects": [{"kind": "User", "name": "ed"}]}
    bad = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **elsewhere}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", **elsewhere}},
        {**pod("x"), "metadata": {"name": "x", **elsewhere}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "b"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
         "subjects": [{"kind": "User", "name": "ed"}]},
        binding, {**binding, "metadata": {"name": "b", **elsewhere}},
        {"apiVersion": "network.openshift.io/v1", "kind": "NetNamespace", "metadata": {"name": "red"}, "netname": "red", "netid": 0},
        pod("x", hostNetwork=True),
        {"apiVersion": "template.openshift.io/v1", "kind": "Template", "metadata": {"name": "x", "namespace": "openshift${E}"}},
        {"apiVersion": "template.openshift.io/v1", "kind": "TemplateInstance", "metadata": {"name": "x"},
         "spec": {"template": {"objects": []}, "requester": {"username": "root", "groups": ["system:masters"]}}},
    ]
    before = c.all_of_blue()
    for i, obj in enumerate(bad):
        conditions, n = made_by_template(c, f"bad{i}", good, obj, parameters=[
            {"name": "NS", "value": "blue"}, {"name": "E", "value": ""}])
        assert conditions["InstantiateFailure"]["status"] == "True" and n == 0, (obj, conditions)
    for requester in ({"username": "root"}, {"username": "system:serviceaccount:red:default"}, {"username": "ada", "groups": []}):
        status, answer = made_by_template(c, "forged", good, requester=requester)
        assert status == 403, answer
    conditions, _ = made_by_template(c, "groups", bad[0], parameters=[{"name": "NS", "value": "blue"}], requester={
        "username": "ed", "groups": ["system:masters"], "uid": "1"})
    assert conditions["InstantiateFailure"]["status"] == "True", conditions
    assert c.all_of_blue() == before
    for what in ("configmaps/from-template", "pods/x"):
        assert c.ask(c._admin, "GET", f"{RED}/{what}")[0] == 404


def test_templates_cannot_fill_the_masters_memory(c):
    """References multiply a value, and a value that is JSON is larger as a tree: both have limits."""
    for parameters, objects in (
            ([{"name": "A", "value": "x" * 1000000}], [{"v": "${A}" * 100} for _ in range(100)]),
            ([{"name": "A", "value": "[" + "[]," * 300000 + "0]"}], [{"v": "${{A}}"} for _ in range(1000)]),
            ([{"name": f"P{i}", "generate": "expression", "from": "[\\w]{255}" * 250} for i in range(500)],
             [{"v": "".join("${P%d}" % i for i in range(500))} for _ in range(1000)])):
        body = {"metadata": {"name": "t"}, "parameters": parameters, "objects": objects}
        status, answer = c.ask(c.ed, "POST", f"{TEMPLATES}/red/processedtemplates", body)
        assert status in (413, 422), (status, str(answer)[:300])
    too_many = {"metadata": {"name": "t"}, "objects": [{} for _ in range(1025)]}
    assert c.ask(c.ed, "POST", f"{TEMPLATES}/red/processedtemplates", too_many)[0] == 422
    c.ask(c.ed, "POST", f"{TEMPLATES}/red/processedtemplates", {"metadata": {"name": "t"}, "objects": []}, want=201)
