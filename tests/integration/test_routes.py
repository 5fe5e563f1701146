# SPDX-License-Identifier: Apache-2.0
"""Routes on a real master with access control: hosts, defaults, errors by field, status of a router, and what kubectl shows."""
import json

import pytest

from lab import wait_for
from test_auth import Cluster, make_pki

API = "/apis/route.openshift.io/v1/namespaces/red/routes"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
ROUTER = "system:serviceaccount:red:router"


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    c = Cluster(str(tmp_path_factory.mktemp("routes")), extra={"routingConfig": {"subdomain": "apps.example.com"}})
    c.namespace("red")
    c.bind("red", "eve", "edit", user="eve")
    c.bind(None, "router", "system:router", user="router")
    c.eve, c.router = c.user("eve"), c.user("router")
    # Secrets are in the rules that "edit" has beyond "view", as hosts are.
    wait_for("the roles' rules", lambda: c.ask(c.eve, "GET", "/api/v1/namespaces/red/secrets")[0] == 200 and
             c.ask(c.router, "GET", API)[0] == 200)
    yield c
    c.stop()


def route(name, host=None, annotations=None, **spec):
    return {"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {**({"host": host} if host else {}), "to": {"kind": "Service", "name": "web"}, **spec}}


def make(c, *args, **spec):
    return c.ask(c.eve, "POST", API, route(*args, **spec), want=201)


def refusal(c, who, method, path, body, code=422, headers=None):
    answer = c.ask(who, method, path, body, want=code, headers=headers)
    return [f"{x['field']}: {x['message']}" for x in answer.get("details", {}).get("causes", [])] or [answer["message"]]


def test_a_route_without_host_gets_one_and_can_be_applied_again(c):
    made = make(c, "no-route-hostname")
    assert made["spec"] == {"host": "no-route-hostname-red.apps.example.com", "wildcardPolicy": "None",
                            "to": {"kind": "Service", "name": "web", "weight": 100}}
    assert made["metadata"]["annotations"] == {"openshift.io/host.generated": "true"}
    path = f"{API}/no-route-hostname"
    again = route("no-route-hostname", path="/x")
    again["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    changed = c.ask(c.eve, "PUT", path, again, want=200)
    assert changed["spec"]["host"] == "no-route-hostname-red.apps.example.com" and changed["spec"]["path"] == "/x"
    for _ in range(2):
        c.ask(c.eve, "PATCH", f"{path}?fieldManager=m&force=true", route("no-route-hostname"), headers=APPLY, want=200)
    del again["metadata"]["resourceVersion"]
    assert "must be specified for an update" in refusal(c, c.eve, "PUT", path, again)[0]


def test_older_clients_have_the_same_object(c):
    old = {**route("old"), "apiVersion": "v1"}
    made = c.ask(c.eve, "POST", "/oapi/v1/namespaces/red/routes", old, want=201)
    assert made["apiVersion"] == "v1" and made["spec"]["host"] == "old-red.apps.example.com"
    assert c.ask(c.eve, "GET", f"{API}/old", want=200)["metadata"]["uid"] == made["metadata"]["uid"]


def test_defaults_of_tls(c):
    assert make(c, "tls1", tls={})["spec"]["tls"] == {"termination": "edge"}
    assert make(c, "tls2", tls={"termination": "Passthrough"})["spec"]["tls"] == {"termination": "passthrough"}


@pytest.mark.parametrize("spec, want", [
    ({"host": "-x"}, 'spec.host: Invalid value: "-x": host must conform to DNS 952 subdomain conventions'),
    ({"host": "x" * 64 + ".test"}, "must be no more than 63 characters"),
    ({"path": "x"}, 'spec.path: Invalid value: "x": path must begin with /'),
    ({"path": "/a\n b"}, "spec.path: Invalid value: \"/a\\n b\": must have only characters of a URL's path"),
    ({"path": "/a", "tls": {"termination": "passthrough"}},
     'spec.path: Invalid value: "/a": passthrough termination does not support paths'),
    ({"to": {"kind": "Service", "name": ""}}, "spec.to.name: Required value"),
    ({"to": {"kind": "Pod", "name": "x"}}, 'spec.to.kind: Invalid value: "Pod": must reference a Service'),
    ({"to": {"kind": "Service", "name": "x", "weight": 257}},
     "spec.to.weight: Invalid value: 257: weight must be an integer between 0 and 256"),
    ({"alternateBackends": [{"kind": "Service", "name": f"s{i}"} for i in range(4)]},
     "spec.alternateBackends: Required value: cannot specify more than 3 alternate backends"),
    ({"port": {"targetPort": 0}}, "spec.port.targetPort: Required value"),
    ({"port": {"targetPort": "a b"}}, 'spec.port.targetPort: Invalid value: "a b": '),
    ({"tls": {"termination": "magic"}},
     'spec.tls.termination: Unsupported value: "magic": supported values: "edge", "passthrough", "reencrypt"'),
    ({"tls": {"destinationCACertificate": "x"}}, 'spec.tls.termination: Unsupported value: ""'),
    ({"tls": {"termination": "passthrough", "insecureEdgeTerminationPolicy": "Allow"}},
     'spec.tls.insecureEdgeTerminationPolicy: Invalid value: "Allow": invalid value for InsecureEdgeTerminationPolicy option, '
     "acceptable values are None, Redirect, or empty"),
    ({"tls": {"termination": "passthrough", "key": "SECRET"}}, 'spec.tls.key: Invalid value: "redacted key data": passthrough'),
    ({"tls": {"termination": "edge", "destinationCACertificate": "SECRET"}}, "spec.tls.destinationCACertificate: Invalid value"),
    ({"tls": {"termination": "edge", "key": "SECRET"}}, "spec.tls.key: Invalid value: \"redacted key data\": is no private key"),
    ({"tls": {"termination": "edge", "certificate": "SECRET"}}, "has no certificate in PEM form"),
    ({"wildcardPolicy": "All"}, 'spec.wildcardPolicy: Unsupported value: "All": supported values: "None", "Subdomain"'),
    ({"wildcardPolicy": "Subdomain"}, "spec.wildcardPolicy: Invalid value: \"Subdomain\": host name not specified"),
    ({"httpHeaders": {"actions": {"request": [{"name": "Proxy", "action": {"type": "Delete"}}]}}},
     "spec.httpHeaders.actions.request[0].name: Invalid value: \"Proxy\": the following headers may not be modified"),
])
def test_errors_name_the_field(c, spec, want):
    found = refusal(c, c.eve, "POST", API, route("bad", **spec))
    assert any(want in line for line in found), found
    assert "SECRET" not in json.dumps(found)


def test_names_have_at_most_63_characters(c):
    assert any("must be no more than 63 characters" in x for x in refusal(c, c.eve, "POST", API, route("x" * 64, host="a.test")))
    assert any("choose a shorter name" in x for x in refusal(c, c.eve, "POST", API, route("x" * 60)))
    make(c, "x" * 63, host="long.example.test")


def test_the_wildcard_policy_cannot_change(c):
    make(c, "wild", host="wild.example.test", wildcardPolicy="Subdomain")
    assert refusal(c, c.eve, "PATCH", f"{API}/wild", {"spec": {"wildcardPolicy": "None"}}, headers=MERGE) == [
        'spec.wildcardPolicy: Invalid value: "None": field is immutable']


INGRESS = [{"host": "seen.example.test", "routerName": "public", "wildcardPolicy": "None", "conditions": [
    {"type": "Admitted", "status": "True", "lastTransitionTime": "2026-11-28T10:00:00Z"}]}]


def test_only_routers_write_status(c):
    path = f"{API}/seen"
    made = c.ask(c.eve, "POST", API, {**route("seen", host="seen.example.test"), "status": {"ingress": INGRESS}}, want=201)
    assert not made.get("status")
    c.ask(c.eve, "PATCH", f"{path}/status", {"status": {"ingress": INGRESS}}, headers=MERGE, want=403)
    now = c.ask(c.eve, "PATCH", path, {"status": {"ingress": INGRESS}}, headers=MERGE, want=200)
    assert not now.get("status")
    now = c.ask(c.router, "PATCH", f"{path}/status", {"status": {"ingress": INGRESS}, "spec": {"host": "x.test"}}, headers=MERGE,
                want=200)
    assert now["status"]["ingress"] == INGRESS and now["spec"]["host"] == "seen.example.test"
    c.ask(c.router, "PATCH", path, {"spec": {"path": "/x"}}, headers=MERGE, want=403)
    assert "seen.example.test" in c.kubectl("get", "routes", "-n", "red", "seen").stdout


def test_kubectl_shows_routes(c):
    make(c, "shown", host="shown.example.test", path="/shop", port={"targetPort": "http"},
         to={"kind": "Service", "name": "blue", "weight": 30}, alternateBackends=[{"kind": "Service", "name": "green", "weight": 10}],
         tls={"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"})
    line = c.kubectl("get", "routes.route.openshift.io", "-n", "red", "shown").stdout.splitlines()
    assert line[0].split() == ["NAME", "HOST/PORT", "PATH", "SERVICES", "PORT", "TERMINATION", "WILDCARD"]
    assert line[1].split() == ["shown", "shown.example.test", "/shop", "blue(75%),green(25%)", "http", "edge/Redirect", "None"]
    assert "shown.example.test" in c.kubectl("describe", "route", "-n", "red", "shown").stdout
    conditions = [{"type": "Admitted", "status": "False", "reason": "HostAlreadyClaimed", "message": "m"}]
    c.ask(c.router, "PATCH", f"{API}/shown/status", {"status": {"ingress": [{"routerName": "r", "conditions": conditions}]}},
          headers=MERGE, want=200)
    assert "HostAlreadyClaimed" in c.kubectl("get", "routes", "-n", "red", "shown").stdout
    file = c.dir / "r.json"
    file.write_text(json.dumps(route("applied", host="applied.example.test")))
    assert "created" in c.kubectl("apply", "-n", "red", "-f", str(file)).stdout
    assert "unchanged" in c.kubectl("apply", "-n", "red", "-f", str(file)).stdout


def test_field_selectors_find_routes_by_host_and_service(c):
    make(c, "found", host="found.example.test", to={"kind": "Service", "name": "other"})
    for field in ("spec.host=found.example.test", "spec.to.name=other"):
        assert [r["metadata"]["name"] for r in c.ask(c.eve, "GET", f"{API}?fieldSelector={field}", want=200)["items"]] == ["found"]


@pytest.fixture(scope="module")
def tenet(c):
    c.admin("POST", "/api/v1/namespaces/red/services", {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {
        "ports": [{"name": "http", "port": 80}]}}, 201)
    c.admin("POST", "/api/v1/namespaces/red/services", {"metadata": {"name": "dns"}, "spec": {
        "ports": [{"port": 53, "protocol": "UDP"}]}}, 201)

    def run(*args, fails=False):
        r = c.tenet(*args, "-n", "red", check=False)
        assert (r.returncode != 0) == fails, (args, r.stdout, r.stderr)
        return r.stderr if fails else r.stdout
    return run


def get(c, name):
    return c.ask(c.eve, "GET", f"{API}/{name}", want=200)


def test_expose_makes_a_route_for_a_service(c, tenet):
    assert tenet("expose", "service/web", "--hostname=web.example.test", "--path=/a") == "route.route.openshift.io/web exposed\n"
    made = get(c, "web")
    assert made["spec"] == {"host": "web.example.test", "path": "/a", "to": {"kind": "Service", "name": "web", "weight": 100},
                            "port": {"targetPort": "http"}, "wildcardPolicy": "None"}
    assert made["metadata"]["labels"] == {"app": "web"}
    tenet("expose", "svc", "web", "--name=numbered", "--port=8080", "--labels=x=y")
    assert get(c, "numbered")["spec"]["port"] == {"targetPort": 8080} and get(c, "numbered")["metadata"]["labels"] == {"x": "y"}
    assert "service \"dns\" doesn't support TCP" in tenet("expose", "service/dns", fails=True)
    assert "web.example.test" in tenet("get", "routes")
    assert "web.example.test" in tenet("describe", "route", "web")
    assert tenet("expose", "service/web", "--name=other", "--target-port=80", "--selector=a=b") == "service/other exposed\n"


def test_create_route_makes_routes_with_tls(c, tenet):
    cert, key = make_pki(c.dir, "made", "/CN=made.example.test", ca=c.ca)[:2]
    ca = c.ca[0]
    assert tenet("create", "route", "edge", "e1", "--service=web", "--hostname=e1.example.test", f"--cert={cert}", f"--key={key}",
                 f"--ca-cert={ca}", "--insecure-policy=Redirect") == "route.route.openshift.io/e1 created\n"
    assert get(c, "e1")["spec"]["tls"] == {"termination": "edge", "certificate": open(cert).read(), "key": open(key).read(),
                                           "caCertificate": open(ca).read(), "insecureEdgeTerminationPolicy": "Redirect"}
    tenet("create", "route", "passthrough", "--service=web", "p1", "--wildcard-policy=Subdomain", "--hostname=w.p1.test")
    assert get(c, "p1")["spec"]["wildcardPolicy"] == "Subdomain" and get(c, "p1")["spec"]["tls"] == {"termination": "passthrough"}
    tenet("create", "route", "reencrypt", "r1", "--service=web", f"--dest-ca-cert={ca}", "--port=8443")
    assert get(c, "r1")["spec"]["tls"] == {"termination": "reencrypt", "destinationCACertificate": open(ca).read()}
    assert "service is required" in tenet("create", "route", "edge", "x", fails=True)
    assert "edge, passthrough or reencrypt" in tenet("create", "route", "x", fails=True)
    assert "provide a route port via --port" in tenet("create", "route", "edge", "--service=none", fails=True)


def test_clear_route_status_removes_what_routers_said(c, tenet):
    entries = [{"routerName": r, "host": "x.test", "conditions": [{"type": "Admitted", "status": "True"}]} for r in ("old", "new")]
    for name in ("stale1", "stale2"):
        make(c, name)
        c.ask(c.router, "PATCH", f"{API}/{name}/status", {"status": {"ingress": entries}}, headers=MERGE, want=200)
    assert tenet("adm", "clear-route-status", "stale1", "--router=old") == "route red/stale1: 1 entry removed\n"
    assert [e["routerName"] for e in get(c, "stale1")["status"]["ingress"]] == ["new"]
    assert "route red/stale2: 2 entries removed" in tenet("adm", "clear-route-status", "--all")
    assert not get(c, "stale2")["status"].get("ingress")
    assert "either names of routes or --all" in tenet("adm", "clear-route-status", fails=True)
