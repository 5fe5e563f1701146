# SPDX-License-Identifier: Apache-2.0
"""A tenant against the host names of others: routes of a member of red, whose rights to hosts are withdrawn, and of one who has them."""
import json

import pytest

from lab import wait_for
from people import MERGE, People
from test_auth import make_pki

GROUP = "/apis/route.openshift.io/v1"
RED, BLUE = f"{GROUP}/namespaces/red/routes", f"{GROUP}/namespaces/blue/routes"
RULES = {"apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": ["*"]}


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("routes")))
    people.role("red", "routes", RULES)
    people.bind("red", "tom", "routes", user="tom", kind="Role")
    people.tom = people.user("tom")
    wait_for("the rules", lambda: people.ask(people.tom, "GET", RED)[0] == 200)
    wait_for("the rules", lambda: people.ask(people.ed, "GET", RED)[0] == 200)
    yield people
    people.stop()


@pytest.fixture(scope="module")
def pem(c):
    cert, key = make_pki(c.dir, "route", "/CN=www.example.com", ca=c.ca)[:2]
    other = make_pki(c.dir, "route2", "/CN=www.example.com", ca=c.ca)[1]
    return [open(f).read() for f in (cert, key, other)]


def route(name, annotations=None, **spec):
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {"to": {"kind": "Service", "name": "own"}, **spec}}


def causes(answer):
    return [f"{x['field']}: {x['message']}" for x in answer.get("details", {}).get("causes", [])]


def test_a_host_of_ones_own_needs_the_right(c, pem):
    answer = c.ask(c.tom, "POST", RED, route("a", host="blue.example.com"), want=422)
    assert causes(answer) == ["spec.host: Forbidden: you do not have permission to set the host field of the route"]
    answer = c.ask(c.tom, "POST", RED, route("a", tls={"termination": "edge", "certificate": pem[0], "key": pem[1]}), want=422)
    assert causes(answer) == ["spec.tls: Forbidden: you do not have permission to set certificate fields on the route"]
    answer = c.ask(c.tom, "POST", RED, route("a", tls={"termination": "edge", "externalCertificate": {"name": "own"}}), want=422)
    assert causes(answer) == ["spec.tls: Forbidden: you do not have permission to set certificate fields on the route"]
    # The annotation of generated hosts gives nothing.
    c.ask(c.tom, "POST", RED, route("a", {"openshift.io/host.generated": "true"}, host="blue.example.com"), want=422)
    c.ask(c.ed, "POST", RED, route("a", host="red.example.com"), want=201)  # the control
    assert c.ask(c.tom, "POST", RED, route("own"), want=201)["spec"]["host"].startswith("own-red.")


def test_a_host_cannot_be_changed(c, pem):
    c.ask(c.ed, "POST", RED, route("fixed", host="fixed.example.com"), want=201)
    for who in (c.tom, c.ed, c.ada):
        for spec in ({"host": "blue.example.com"}, {"subdomain": "blue"}):
            answer = c.ask(who, "PATCH", f"{RED}/fixed", {"spec": spec}, headers=MERGE, want=422)
            assert "you do not have permission to set the" in causes(answer)[0], answer
    body = {**route("fixed", host="blue.example.com"), "apiVersion": "route.openshift.io/v1", "kind": "Route"}
    for path in (f"{RED}/fixed?fieldManager=x&force=true", "/oapi/v1/namespaces/red/routes/fixed?fieldManager=x&force=true"):
        status, answer = c.ask(c.tom, "PATCH", path, body, headers={"Content-Type": "application/apply-patch+yaml"})
        assert status in (400, 422), answer
    tls = {"termination": "edge", "certificate": pem[0], "key": pem[1]}
    assert causes(c.ask(c.tom, "PATCH", f"{RED}/fixed", {"spec": {"tls": tls}}, headers=MERGE, want=422)) == [
        "spec.tls: Forbidden: you do not have permission to set certificate fields on the route"]
    c.ask(c.ed, "PATCH", f"{RED}/fixed", {"spec": {"tls": tls}}, headers=MERGE, want=200)
    c.ask(c.tom, "PATCH", f"{RED}/fixed", {"spec": {"tls": {"certificate": None, "key": None}}}, headers=MERGE, want=200)
    c.admin("PATCH", f"{RED}/fixed", {"spec": {"host": "moved.example.com"}}, headers=MERGE)  # the control


def test_routes_of_other_projects_are_closed(c):
    c.admin("POST", BLUE, route("web", host="blue.example.com"), 201)
    before = c.admin("GET", f"{BLUE}/web")
    for who in (c.tom, c.ed, c.ada):
        for method, path, body in (("GET", f"{BLUE}/web", None), ("POST", BLUE, route("x")), ("DELETE", f"{BLUE}/web", None),
                                   ("PATCH", f"{BLUE}/web", {"spec": {"path": "/x"}}), ("GET", f"{GROUP}/routes", None),
                                   ("PATCH", f"{BLUE}/web/status", {"status": {"ingress": []}})):
            c.ask(who, method, path, body, headers=MERGE if method == "PATCH" else None, want=403)
    assert c.admin("GET", f"{BLUE}/web") == before


def test_no_member_of_a_project_writes_status(c):
    c.ask(c.ed, "POST", RED, route("status"), want=201)
    lie = {"status": {"ingress": [{"host": "blue.example.com", "routerName": "public", "conditions": [
        {"type": "Admitted", "status": "True"}]}]}}
    for who in (c.ed, c.ada):
        c.ask(who, "PATCH", f"{RED}/status/status", lie, headers=MERGE, want=403)
        assert not c.ask(who, "PATCH", f"{RED}/status", lie, headers=MERGE, want=200).get("status")


@pytest.mark.parametrize("text", ["a\nuse_backend evil", "a b", "a\tb", "a\rb", "a\"b", "a'b", "a#b", "a\\b", "a{b", "a\u00e4", "a\x7f", "a;b|c"])
def test_no_text_for_a_proxy_has_a_way_out_of_its_place(c, text):
    for spec in ({"host": text}, {"subdomain": text}, {"path": f"/{text}"}, {"port": {"targetPort": text}},
                 {"to": {"kind": "Service", "name": text}}, {"alternateBackends": [{"kind": "Service", "name": text}]},
                 {"tls": {"termination": text}}, {"wildcardPolicy": text},
                 {"tls": {"termination": "edge", "insecureEdgeTerminationPolicy": text}},
                 {"tls": {"termination": "edge", "externalCertificate": {"name": text}}}):
        if text == "a;b|c" and "path" in spec:
            spec = {"path": "/a|c"}  # ";" may be in a path.
        if text == "a'b" and "path" in spec:
            continue  # RFC 3986 allows it.
        status, answer = c.ask(c.ed, "POST", RED, route("bad", **spec))
        assert status in (400, 422), (spec, answer)


def test_header_values_have_only_expressions_of_the_list(c):
    for value in ("%[env(HOME)]", "%[req.hdr(a),map(/etc/passwd)]", "a\nb", "%", "%[ssl_c_der", "%{+Q}"):
        spec = {"httpHeaders": {"actions": {"request": [{"name": "X-A", "action": {"type": "Set", "set": {"value": value}}}]}}}
        c.ask(c.ed, "POST", RED, route("bad", tls={"termination": "edge"}, **spec), want=422)
    spec["httpHeaders"]["actions"]["request"][0]["action"]["set"]["value"] = "%[req.hdr(host),lower] 100%%"
    c.ask(c.ed, "POST", RED, route("headers", tls={"termination": "edge"}, **spec), want=201)  # the control


def test_certificates_are_bounded_and_must_fit(c, pem):
    cert, key, other = pem
    for tls, want in (({"certificate": cert * 300, "key": key}, "spec.tls.certificate"), ({"caCertificate": cert * 1200}, ""),
                      ({"caCertificate": cert * 300}, "has more than 256 certificates"), ({"key": key * 1000, "certificate": cert}, ""),
                      ({"certificate": cert, "key": other}, "spec.tls.key: Invalid value: \"redacted key data\": is not the key"),
                      ({"certificate": cert.replace("\n", "\\n"), "key": key}, "spec.tls.certificate"),
                      ({"caCertificate": key}, "spec.tls.caCertificate")):
        status, answer = c.ask(c.ed, "POST", RED, route("cert", tls={"termination": "edge", **tls}))
        assert status in (413, 422) and want in json.dumps(answer).replace('\\"', '"'), (tls.keys(), want, answer)
        assert key[60:100] not in json.dumps(answer)
    c.ask(c.ed, "POST", RED, route("cert", tls={"termination": "edge", "certificate": cert, "key": key, "caCertificate": cert}), want=201)
