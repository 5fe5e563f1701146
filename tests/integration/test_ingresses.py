# SPDX-License-Identifier: Apache-2.0
"""Ingresses on a real master: routes are made from them, follow them, and go with them; the status names routers."""
import base64
import json

import pytest

from lab import wait_for
from test_auth import Cluster, make_pki

API = "/apis/networking.k8s.io/v1/namespaces/red/ingresses"
ROUTES = "/apis/route.openshift.io/v1/namespaces/red/routes"
CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    c = Cluster(str(tmp_path_factory.mktemp("ingresses")))
    c.namespace("red")
    c.bind("red", "eve", "edit", user="eve")
    c.role("red", "ingresses", {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["*"]})
    c.bind("red", "tom", "ingresses", user="tom", kind="Role")
    c.eve, c.tom = c.user("eve"), c.user("tom")
    c.admin("POST", "/api/v1/namespaces/red/services", {"metadata": {"name": "web"}, "spec": {
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}, 201)
    # Secrets are in the rules that "edit" has beyond "view", as hosts are.
    wait_for("the roles' rules", lambda: c.ask(c.eve, "GET", "/api/v1/namespaces/red/secrets")[0] == 200 and
             c.ask(c.tom, "GET", API)[0] == 200)
    yield c
    c.stop()


def backend(name="web", **port):
    return {"service": {"name": name, "port": port or {"name": "http"}}}


def ingress(name, host, path="/", kind="Prefix", **spec):
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name}, "spec": {"rules": [
        {"host": host, "http": {"paths": [{"path": path, "pathType": kind, "backend": backend()}]}}], **spec}}


def routes(c, name):
    return [r for r in c.admin("GET", ROUTES)["items"]
            if any(o["name"] == name for o in r["metadata"].get("ownerReferences", []))]


def test_routes_follow_an_ingress_and_go_with_it(c):
    made = c.ask(c.eve, "POST", API, ingress("web", "web.example.test"), want=201)
    wait_for("the route", lambda: len(routes(c, "web")) == 1)
    route = routes(c, "web")[0]
    assert route["spec"] == {"host": "web.example.test", "path": "/", "port": {"targetPort": "http"}, "wildcardPolicy": "None",
                             "to": {"kind": "Service", "name": "web", "weight": 100}}
    assert route["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    # A route that a user breaks or deletes comes back.
    name = route["metadata"]["name"]
    c.admin("PATCH", f"{ROUTES}/{name}", {"spec": {"to": {"name": "other"}}}, headers=MERGE)
    wait_for("the route as it was", lambda: routes(c, "web")[0]["spec"]["to"]["name"] == "web")
    c.admin("DELETE", f"{ROUTES}/{name}")
    wait_for("the route again", lambda: len(routes(c, "web")) == 1)
    c.admin("PATCH", f"{API}/web", {"spec": ingress("web", "moved.example.test")["spec"]}, headers=MERGE)
    wait_for("the other host", lambda: [r["spec"]["host"] for r in routes(c, "web")] == ["moved.example.test"])
    # Status of routers.
    name = routes(c, "web")[0]["metadata"]["name"]
    entry = {"host": "moved.example.test", "routerName": "r", "routerCanonicalHostname": "router.example.test",
             "conditions": [{"type": "Admitted", "status": "True"}]}
    c.admin("PATCH", f"{ROUTES}/{name}/status", {"status": {"ingress": [entry]}}, headers=MERGE)
    wait_for("the status", lambda: c.admin("GET", f"{API}/web")["status"]["loadBalancer"] == {
        "ingress": [{"hostname": "router.example.test"}]})
    line = c.kubectl("get", "ingress", "-n", "red", "web").stdout.splitlines()[1].split()
    assert line[:5] == ["web", "<none>", "moved.example.test", "router.example.test", "80"]
    assert "moved.example.test" in c.kubectl("describe", "ingress", "-n", "red", "web").stdout
    c.ask(c.eve, "DELETE", f"{API}/web", want=200)
    wait_for("the routes to go", lambda: not routes(c, "web"))


def test_a_certificate_comes_from_its_secret(c):
    cert, key = (open(f).read() for f in make_pki(c.dir, "ingress", "/CN=tls.example.test", ca=c.ca)[:2])
    body = ingress("tls", "tls.example.test", tls=[{"hosts": ["tls.example.test"], "secretName": "tls"}])
    c.ask(c.eve, "POST", API, body, want=201)
    c.ask(c.eve, "POST", API, ingress("plain", "plain.example.test"), want=201)
    wait_for("a route of the other Ingress", lambda: routes(c, "plain"))
    assert not routes(c, "tls")
    c.admin("POST", "/api/v1/namespaces/red/secrets", {"metadata": {"name": "tls"}, "type": "kubernetes.io/tls", "data": {
        k: base64.b64encode(v.encode()).decode() for k, v in (("tls.crt", cert), ("tls.key", key))}}, 201)
    wait_for("the route", lambda: routes(c, "tls"))
    assert routes(c, "tls")[0]["spec"]["tls"] == {
        "termination": "edge", "insecureEdgeTerminationPolicy": "Redirect", "certificate": cert, "key": key}


def test_only_ingresses_of_our_class_have_routes(c):
    c.ask(c.eve, "POST", API, ingress("classed", "classed.example.test", ingressClassName="ours"), want=201)
    c.ask(c.eve, "POST", API, ingress("unclassed", "unclassed.example.test"), want=201)
    wait_for("a route of the other Ingress", lambda: routes(c, "unclassed"))
    assert not routes(c, "classed")
    c.admin("POST", CLASSES, {"metadata": {"name": "ours"}, "spec": {"controller": "openshift.io/ingress-to-route"}}, 201)
    wait_for("the route", lambda: routes(c, "classed"))
    c.admin("DELETE", f"{CLASSES}/ours")
    wait_for("the route to go", lambda: not routes(c, "classed"))


def test_an_ingress_takes_no_host_that_a_route_could_not_take(c):
    answer = c.ask(c.tom, "POST", API, ingress("x", "taken.example.test"), want=422)
    assert answer["details"]["causes"][0]["message"] == (
        "Forbidden: you do not have permission to set host fields in ingress rules")
    c.ask(c.eve, "POST", API, ingress("x", "x.example.test"), want=201)  # the control
    for who in (c.tom, c.eve):
        answer = c.ask(who, "PATCH", f"{API}/x", {"spec": ingress("x", "taken.example.test")["spec"]}, headers=MERGE, want=403)
        assert "cannot change hostname" in answer["message"]


@pytest.mark.parametrize("spec, want", [
    ({"rules": []}, "either `defaultBackend` or `rules` must be specified"),
    ({"rules": [{"host": "10.0.0.1"}]}, "spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address"),
    ({"rules": [{"host": "a*.b"}]}, "a wildcard DNS-1123 subdomain must start with '*.'"),
    ({"rules": [{"http": {"paths": []}}]}, "spec.rules[0].http.paths: Required value"),
    ({"rules": [{"http": {"paths": [{"path": "/", "backend": backend()}]}}]}, "pathType: Required value: pathType must be specified"),
    ({"rules": [{"http": {"paths": [{"path": "x", "pathType": "Prefix", "backend": backend()}]}}]}, "must be an absolute path"),
    ({"rules": [{"http": {"paths": [{"path": "/a//b", "pathType": "Exact", "backend": backend()}]}}]}, "must not contain '//'"),
    ({"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}]}, "resource or service backend is required"),
    ({"defaultBackend": {"service": {"name": "s"}}}, "spec.defaultBackend.service.port: Required value: port name or number is required"),
    ({"defaultBackend": backend(number=80), "tls": [{"secretName": "A_"}]}, "spec.tls[0].secretName: Invalid value"),
])
def test_errors_name_the_field(c, spec, want):
    answer = c.ask(c.eve, "POST", API, {"metadata": {"name": "bad"}, "spec": spec}, want=422)
    assert want in json.dumps(answer).replace('\\"', '"'), answer
