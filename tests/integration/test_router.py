# SPDX-License-Identifier: Apache-2.0
"""tenet router with a real HAProxy (see routers.py): routes by every client that curl can be, and changes under load.  Faults are in
tests/attack/test_router_faults.py."""
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest
from lab import wait_for
from routers import ROUTES, TENET, Cluster, Load, make_cert, namespace, own  # noqa: F401


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    c = Cluster(tmp_path_factory.mktemp("router"))
    try:
        c.a, c.b = c.endpoint("a"), c.endpoint("b")
        c.service("a", c.a)
        c.service("b", c.b)
        c.service("both", c.a, c.b)
        c.r = c.router("--reload-interval", "100ms", "--allow-wildcard-routes", "--http2", "--canonical-hostname", "router.example.com")
        yield c
    finally:
        c.end()


def test_a_plain_route_is_served_by_host_without_a_reload(shared):
    before = shared.r.metric("tenet_router_reloads_total")
    shared.route("plain", "plain.example.com", "a")
    wait_for("the route", lambda: shared.r.get("http://plain.example.com/x") == "a")
    assert shared.r.get("http://PLAIN.example.com:80/") == "a"
    assert shared.r.curl("http://other.example.com/")[0] == 503
    wait_for("the status", lambda: shared.admitted("plain") == ("True", None, None))
    shared.patch(ROUTES.format("red") + "/plain", {"spec": {"to": {"name": "b"}}})
    wait_for("the other service", lambda: shared.r.get("http://plain.example.com/") == "b")
    shared.delete_route("plain")
    wait_for("the route to go", lambda: shared.r.curl("http://plain.example.com/")[0] == 503)
    assert shared.r.metric("tenet_router_reloads_total") == before
    assert shared.r.metric("tenet_router_refused_commands_total") == 0


def test_paths_are_matched_by_segments_and_the_longest_wins(shared):
    shared.route("root", "paths.example.com", "a")
    shared.route("sub", "paths.example.com", "b", path="/sub")
    wait_for("the routes", lambda: shared.r.get("http://paths.example.com/sub") == "b")
    assert [shared.r.get(f"http://paths.example.com{p}") for p in ("/sub/", "/sub/x?y=/", "/sub?z", "/subpar", "/", "/other")] == [
        "b", "b", "b", "a", "a", "a"]
    shared.delete_route("root")
    wait_for("the path alone", lambda: shared.r.curl("http://paths.example.com/")[0] == 503)
    assert shared.r.get("http://paths.example.com/sub/x") == "b"


def test_a_wildcard_has_one_label_and_exact_hosts_win(shared):
    shared.route("wild", "any.wild.example.com", "a", wildcardPolicy="Subdomain")
    shared.route("exact", "one.wild.example.com", "b")
    wait_for("the routes", lambda: shared.r.get("http://one.wild.example.com/") == "b"
             and shared.r.get("http://two.wild.example.com/") == "a")
    assert shared.r.curl("http://a.b.wild.example.com/")[0] == 503
    assert shared.r.curl("http://wild.example.com/")[0] == 503


def test_edge_terminates_tls_with_the_routes_certificate(shared, tmp_path):
    cert, key = make_cert(tmp_path, "edge.example.com")
    before = shared.r.metric("tenet_router_reloads_total")
    shared.route("edge", "edge.example.com", "a", tls={
        "termination": "edge", "certificate": cert.read_text(), "key": key.read_text(), "insecureEdgeTerminationPolicy": "Redirect"})
    wait_for("the route", lambda: shared.r.get("https://edge.example.com/") == "a")
    p = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{shared.r.https}", "-servername", "edge.example.com"],
                       input="", capture_output=True, text=True)
    assert "CN = edge.example.com" in p.stdout
    for version in ("1.2", "1.3"):
        assert shared.r.get("https://edge.example.com/", f"--tlsv{version}", "--tls-max", version) == "a"
    status, body, headers = shared.r.curl("https://edge.example.com/x", "--http2")
    sent = json.loads(body)["headers"]
    assert status == 200 and sent["x-forwarded-proto"] == "https" and sent["x-forwarded-for"] == "127.0.0.1"
    assert [v for k, v in headers if k == "set-cookie" and "; Secure" in v or "; secure" in v]
    status, _, headers = shared.r.curl("http://edge.example.com/x?y")
    assert status == 302 and dict(headers)["location"] == "https://edge.example.com/x?y"
    # Another certificate for the same route is live without a reload.
    again, again_key = make_cert(tmp_path, "again.example.com")
    shared.patch(ROUTES.format("red") + "/edge", {"spec": {"tls": {"certificate": again.read_text(), "key": again_key.read_text()}}})
    wait_for("the new certificate", lambda: "CN = again.example.com" in subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{shared.r.https}", "-servername", "edge.example.com"],
        input="", capture_output=True, text=True).stdout)
    assert shared.r.metric("tenet_router_reloads_total") == before
    # Keys are in files of mode 0600 alone, and in no log or command line.
    secret = key.read_text().splitlines()[1]
    files = [f for f in shared.r.folder.rglob("*.pem")]
    assert files and all(f.stat().st_mode & 0o777 == 0o600 for f in files)
    for text in (pathlib.Path(f"{shared.r.folder}.log").read_text(), (shared.r.folder / "haproxy.log").read_text()):
        assert secret not in text and "PRIVATE KEY" not in text


def test_edge_without_a_policy_serves_no_plain_http_and_allow_does(shared):
    shared.route("none", "none.example.com", "a", tls={"termination": "edge"})
    shared.route("allow", "allow.example.com", "a", tls={"termination": "edge", "insecureEdgeTerminationPolicy": "Allow"})
    wait_for("the routes", lambda: shared.r.get("https://none.example.com/") == "a" and shared.r.get("http://allow.example.com/") == "a")
    assert shared.r.get("https://allow.example.com/") == "a"
    assert shared.r.curl("http://none.example.com/")[0] == 503


def test_reencrypt_verifies_the_endpoint(shared, tmp_path):
    cert, key = make_cert(tmp_path, "pod")
    other, _ = make_cert(tmp_path, "other")
    shared.service("tls", shared.endpoint("tls", (cert, key)))
    shared.route("good", "good.example.com", "tls", tls={"termination": "reencrypt", "destinationCACertificate": cert.read_text()})
    shared.route("bad", "bad.example.com", "tls", tls={"termination": "reencrypt", "destinationCACertificate": other.read_text()})
    wait_for("the route", lambda: shared.r.get("https://good.example.com/") == "tls")
    wait_for("the other", lambda: shared.admitted("bad") == ("True", None, None))
    assert shared.r.curl("https://bad.example.com/")[0] == 503


def test_passthrough_shows_the_pods_certificate_after_one_reload(shared, tmp_path):
    cert, key = make_cert(tmp_path, "through.example.com")
    shared.service("through", shared.endpoint("through", (cert, key)))
    shared.route("through", "through.example.com", "through",
                 tls={"termination": "passthrough", "insecureEdgeTerminationPolicy": "Redirect"})
    wait_for("the route", lambda: shared.r.get("https://through.example.com/", "--cacert", cert) == "through")
    assert shared.r.curl("http://through.example.com/")[0] == 302
    # Edge goes on beside it, and keeps the client's address.
    shared.route("beside", "beside.example.com", "a", tls={"termination": "edge"})
    wait_for("the edge route", lambda: shared.r.get("https://beside.example.com/") == "a")
    assert json.loads(shared.r.curl("https://beside.example.com/")[1])["headers"]["x-forwarded-for"] == "127.0.0.1"


def test_weights_share_requests_and_cookies_keep_sessions(shared):
    shared.route("two", "two.example.com", "a", alternateBackends=[{"kind": "Service", "name": "b", "weight": 100}])
    wait_for("both", lambda: {shared.r.get("http://two.example.com/") for _ in range(6)} == {"a", "b"})
    _, body, headers = shared.r.curl("http://two.example.com/")
    cookie = dict(headers)["set-cookie"].split(";")[0]
    assert cookie.startswith("tenet-session=")
    assert {shared.r.get("http://two.example.com/", "-b", cookie) for _ in range(6)} == {json.loads(body)["name"]}
    shared.patch(ROUTES.format("red") + "/two", {"spec": {"to": {"weight": 0}}})
    wait_for("the weight", lambda: {shared.r.get("http://two.example.com/") for _ in range(6)} == {"b"})
    shared.route("bare", "bare.example.com", "both", annotations={"haproxy.router.openshift.io/disable_cookies": "true"})
    wait_for("the route", lambda: shared.r.get("http://bare.example.com/"))
    assert "set-cookie" not in dict(shared.r.curl("http://bare.example.com/")[2])


def test_annotations(shared):
    p = "haproxy.router.openshift.io/"
    shared.route("opts", "opts.example.com", "a", tls={"termination": "edge"}, annotations={
        p + "timeout": "300ms", p + "hsts_header": "max-age=31536000;includeSubDomains;preload"})
    wait_for("the route", lambda: shared.r.get("https://opts.example.com/") == "a")
    assert dict(shared.r.curl("https://opts.example.com/")[2])["strict-transport-security"] == "max-age=31536000;includeSubDomains;preload"
    shared.a.delay = 1
    try:
        assert shared.r.curl("https://opts.example.com/")[0] == 504
    finally:
        shared.a.delay = 0
    shared.route("rewrite", "rewrite.example.com", "a", path="/foo", annotations={p + "rewrite-target": "/bar"})
    wait_for("the route", lambda: shared.r.get("http://rewrite.example.com/foo/x") == "a")
    assert json.loads(shared.r.curl("http://rewrite.example.com/foo/x?y")[1])["path"] == "/bar/x?y"
    shared.route("closed", "closed.example.com", "a", annotations={p + "ip_whitelist": "192.0.2.0/24 203.0.113.7"})
    shared.route("open", "open.example.com", "a", annotations={p + "ip_whitelist": "192.0.2.0/24 127.0.0.0/8"})
    wait_for("the route", lambda: shared.r.get("http://open.example.com/") == "a")
    assert shared.r.curl("http://closed.example.com/")[0] == 0
    shared.route("wrong", "wrong.example.com", "a", annotations={p + "ip_whitelist": "192.0.2.0/24 anybody"})
    wait_for("the status", lambda: (shared.admitted("wrong") or [""])[0] == "False")
    assert "anybody" in shared.admitted("wrong")[2] and shared.r.curl("http://wrong.example.com/")[0] == 503
    shared.route("named", "named.example.com", "a", annotations={"router.openshift.io/cookie_name": "mine"})
    wait_for("the route", lambda: shared.r.get("http://named.example.com/") == "a")
    assert dict(shared.r.curl("http://named.example.com/")[2])["set-cookie"].startswith("mine=")
    shared.route("limited", "limited.example.com", "a", annotations={
        p + "rate-limit-connections": "true", p + "rate-limit-connections.rate-http": "5"})
    wait_for("the route", lambda: shared.r.get("http://limited.example.com/") == "a")
    wait_for("the limit", lambda: shared.r.curl("http://limited.example.com/")[0] != 200)


def test_headers_of_requests_and_responses(shared):
    def actions(**headers):
        return [{"name": k, "action": {"type": "Set", "set": {"value": v}} if v else {"type": "Delete"}} for k, v in headers.items()]
    value = """' #\\ "${HOME}" 100%% if TRUE"""
    shared.route("headers", "headers.example.com", "a", httpHeaders={"actions": {
        "request": actions(**{"X-Text": value, "X-Agent": "was %[req.hdr(user-agent),lower]", "Accept": None, "X#'$": "odd"}),
        "response": actions(**{"X-Size": "%[res.hdr(Content-Length)]", "if": "if", "Server": None})}})
    wait_for("the route", lambda: shared.r.get("http://headers.example.com/") == "a")
    _, body, headers = shared.r.curl("http://headers.example.com/", "-A", "CuRL")
    sent, headers = json.loads(body)["headers"], dict(headers)
    assert sent["x-text"] == value.replace("%%", "%") and sent["x-agent"] == "was curl" and sent["x#'$"] == "odd"
    assert "accept" not in sent and "server" not in headers
    assert headers["x-size"] == headers["content-length"] and headers["if"] == "if"
    shared.route("framing", "framing.example.com", "a", httpHeaders={"actions": {"response": actions(**{"Content-Length": "1"})}})
    wait_for("the status", lambda: (shared.admitted("framing") or [""])[0] == "False")
    assert "content-length" in shared.admitted("framing")[2] and shared.r.curl("http://framing.example.com/")[0] == 503
    assert shared.r.metric("tenet_router_failed_reloads_total") == 0


def test_a_bad_certificate_concerns_its_own_route(shared, tmp_path):
    cert, _ = make_cert(tmp_path, "one")
    shared.route("keyless", "keyless.example.com", "a", tls={"termination": "edge", "certificate": cert.read_text()})
    wait_for("the status", lambda: (shared.admitted("keyless") or [""])[0] == "False")
    assert shared.admitted("keyless")[1] == "ExtendedValidationFailed" and "spec.tls.key" in shared.admitted("keyless")[2]
    assert shared.r.metric("tenet_router_failed_reloads_total") == 0


def test_the_oldest_route_has_the_host(shared):
    shared.service("a", shared.a, ns="blue")
    shared.route("first", "claim.example.com", "a")
    time.sleep(1.1)  # ages have seconds
    shared.route("second", "claim.example.com", "a", ns="blue")
    wait_for("the status", lambda: (shared.admitted("second", "blue") or [""])[0] == "False")
    assert shared.admitted("second", "blue")[1] == "HostAlreadyClaimed"
    wait_for("the first", lambda: shared.admitted("first") == ("True", None, None))
    shared.delete_route("first")
    wait_for("the claim to move", lambda: shared.admitted("second", "blue") == ("True", None, None))
    wait_for("the traffic", lambda: shared.r.get("http://claim.example.com/") == "a")


def test_metrics_name_routes(shared):
    shared.route("seen", "seen.example.com", "a")
    wait_for("the route", lambda: shared.r.get("http://seen.example.com/") == "a")
    text = shared.r.stat("/metrics")[1]
    assert "haproxy_up 1" in text
    assert [x for x in text.splitlines() if x.startswith("haproxy_backend_connections_total{") and 'route="seen"' in x and x.endswith(" 1")]


def test_no_request_fails_while_routes_endpoints_and_configurations_change(own):
    r = own.router("--reload-interval", "100ms")
    own.route("steady", "steady.example.com", "a")
    wait_for("the route", lambda: r.get("http://steady.example.com/") == "a")
    load = Load(r, "steady.example.com")
    for i in range(40):
        own.route(f"r{i}", f"r{i}.example.com", "b", tls={"termination": "edge"} if i % 2 else None,
                  annotations={"router.openshift.io/cookie_name": f"c{i}"} if i % 10 == 0 else {})
        if i % 4 == 0:
            own.add_endpoint("a", own.b)
            wait_for("the endpoint", lambda: r.get("http://steady.example.com/") == "b")
            own.remove_endpoint("a", own.b)
    for i in range(40):
        wait_for("a route", lambda: r.get(f"http{'s' if i % 2 else ''}://r{i}.example.com/") == "b")
        own.delete_route(f"r{i}")
    wait_for("the last to go", lambda: r.curl("https://r39.example.com/")[0] == 503)
    good, bad = load.end()
    assert good > 100 and not bad, (good, bad[:5])
    assert r.metric("tenet_router_reloads_total") >= 2 and r.metric("tenet_router_failed_reloads_total") == 0


def test_shards_by_labels_of_routes_and_namespaces(own):
    by_route = own.router("--name", "high", "--route-labels", "sla=high", name="high")
    by_namespace = own.router("--name", "west", name="west", env={"NAMESPACE_LABELS": "geo=west"})
    own.route("r", "r.example.com", "a", labels={"sla": "high"})
    own.route("s", "s.example.com", "a")
    wait_for("the labelled route", lambda: by_route.get("http://r.example.com/") == "a")
    assert by_route.curl("http://s.example.com/")[0] == 503 and by_namespace.curl("http://r.example.com/")[0] == 503
    own.patch("/api/v1/namespaces/red", {"metadata": {"labels": {"geo": "west"}}})
    wait_for("the namespace", lambda: by_namespace.get("http://r.example.com/") == "a"
             and by_namespace.get("http://s.example.com/") == "a")
    own.patch(ROUTES.format("red") + "/r", {"metadata": {"labels": {"sla": None}}})
    wait_for("the route to leave", lambda: by_route.curl("http://r.example.com/")[0] == 503)
    wait_for("both states", lambda: own.admitted("r", router="high") and own.admitted("r", router="west"))


def test_the_proxy_protocol_names_the_client(own):
    r = own.router(env={"ROUTER_USE_PROXY_PROTOCOL": "true"})
    own.route("p", "p.example.com", "a")
    wait_for("the route", lambda: r.get("http://p.example.com/", "--haproxy-protocol") == "a")
    with socket.create_connection(("127.0.0.1", r.http)) as s:
        s.sendall(b"PROXY TCP4 192.0.2.9 192.0.2.1 5000 80\r\nGET / HTTP/1.1\r\nHost: p.example.com\r\nConnection: close\r\n\r\n")
        assert b'"x-forwarded-for": "192.0.2.9"' in b"".join(iter(lambda: s.recv(65536), b""))
    assert r.curl("http://p.example.com/")[0] in (0, 400)


@pytest.mark.parametrize("variable,value,text", [
    ("ROUTER_MUTUAL_TLS_AUTH", "required", "ROUTER_MUTUAL_TLS_AUTH: "), ("ROUTER_SERVICE_HTTP_PORT", "x", "ROUTER_SERVICE_HTTP_PORT: "),
    ("ROUTER_DEFAULT_CLIENT_TIMEOUT", "soon", "ROUTER_DEFAULT_CLIENT_TIMEOUT: "), ("ROUTER_OVERRIDE_HOSTNAME", "true", "--hostname-template")])
def test_variables_that_are_wrong_or_without_effect_are_named(variable, value, text, tmp_path):
    p = subprocess.run([TENET, "router", "--dir", str(tmp_path)], env=dict(os.environ, **{variable: value}), capture_output=True, text=True)
    assert p.returncode in (1, 2) and text in p.stderr
