# SPDX-License-Identifier: Apache-2.0
"""The OAuth server of a real `tenet master`, with a file of Apache's htpasswd: logins by challenge and by form, codes, tokens,
grants, mappings."""
import base64
import json
import signal
import subprocess
import urllib.parse

import pytest

from lab import TENET, wait_for
from oauth_client import CHALLENGE, VERIFIER, Browser, basic
from test_auth import Cluster

USERS = "/apis/user.openshift.io/v1/users"
IDENTITIES = "/apis/user.openshift.io/v1/identities"
CLIENTS = "/apis/oauth.openshift.io/v1/oauthclients"
TOKENS = "/apis/oauth.openshift.io/v1/oauthaccesstokens"
CODES = "/apis/oauth.openshift.io/v1/oauthauthorizetokens"
GRANTS = "/apis/oauth.openshift.io/v1/oauthclientauthorizations"
CHALLENGING = "openshift-challenging-client"
ASKED = {"X-CSRF-Token": "1"}


def htpasswd(path, *args):
    subprocess.run(["htpasswd", *args[:1], path, *args[1:]], check=True, stderr=subprocess.DEVNULL)


def provider(name, file, **more):
    return {"name": name, "challenge": True, "login": True, "mappingMethod": "claim",
            "provider": {"apiVersion": "v1", "kind": "HTPasswdPasswordIdentityProvider", "file": file}, **more}


class OAuth(Cluster):
    def __init__(self, tmp, oauth=None, providers=None, serving=None, **extra):
        self.users = f"{tmp}/users"
        htpasswd(self.users, "-cbB", "bob", "secret")
        htpasswd(self.users, "-bm", "ann", "sesame")
        htpasswd(self.users, "-bs", "sam", "shh")
        providers = providers or [provider("files", self.users)]
        super().__init__(tmp, {"oauthConfig": {"identityProviders": providers, **(oauth or {})}, **extra}, **(serving or {}))
        wait_for("the clients", lambda: self.ask(self.root(), "GET", f"{CLIENTS}/openshift-cli-client")[0] == 200)

    def root(self):
        self.admin("GET", "/api")
        return self._admin

    def browser(self):
        return Browser(self.port)

    def reread(self, *providers):
        """Changes the providers, without a restart."""
        file = self.dir / "master.yaml"
        config = json.loads(file.read_text())
        config["oauthConfig"]["identityProviders"] = providers
        file.write_text(json.dumps(config))
        before = self.text().count("identity providers read again")
        self.proc.send_signal(signal.SIGHUP)
        wait_for("the new providers", lambda: self.text().count("identity providers read again") > before)

    def url(self):
        return f"https://127.0.0.1:{self.port}"


@pytest.fixture
def c(tmp_path):
    made = OAuth(str(tmp_path))
    yield made
    made.stop(signal.SIGKILL)


def client(c, name="web", **more):
    c.admin("POST", CLIENTS, {"metadata": {"name": name}, "grantMethod": "auto", "secret": "hush",
                              "redirectURIs": ["https://web.example/cb"], **more}, 201)


def login(c, user="bob", password="secret", **query):
    """A code by Basic."""
    return c.browser().authorize(CHALLENGING, headers={**ASKED, **basic(user, password)}, **query)


def test_discovery_is_that_of_the_seeds(c):
    answer = c.browser().get("/.well-known/oauth-authorization-server")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.text) == {
        "issuer": c.url(), "authorization_endpoint": c.url() + "/oauth/authorize", "token_endpoint": c.url() + "/oauth/token",
        "scopes_supported": ["user:full", "user:info", "user:check-access", "user:list-scoped-projects", "user:list-projects"],
        "response_types_supported": ["code", "token"], "grant_types_supported": ["authorization_code", "implicit"],
        "code_challenge_methods_supported": ["plain", "S256"]}


def test_the_example_of_the_seeds(c):
    """curl -u USER:PASSWORD '.../oauth/authorize?client_id=...&response_type=token' -H 'X-CSRF-Token: xxx' (OAUTH-35, 36)."""
    answer = login(c, response_type="token")
    assert answer.status == 302 and answer.location.startswith(c.url() + "/oauth/token/implicit#access_token=sha256~")
    assert answer.location.endswith("&expires_in=86400&scope=user%3Afull&token_type=Bearer")
    for name, value in {"Cache-Control": "no-cache, no-store, max-age=0, must-revalidate", "Pragma": "no-cache",
                        "Expires": "Fri, 01 Jan 1990 00:00:00 GMT", "Content-Length": "0",
                        "Content-Type": "text/plain; charset=utf-8"}.items():
        assert answer.headers[name] == value
    cookie = next(h for h in answer.headers.get_all("Set-Cookie") if h.startswith("ssn="))
    assert "; Path=/" in cookie and "; HttpOnly" in cookie and "; Secure" in cookie
    token = answer.query()["access_token"]
    me = c.ask(token, "GET", f"{USERS}/~", want=200)
    assert me["metadata"]["name"] == "bob" and me["identities"] == ["files:bob"]
    assert "system:authenticated:oauth" in me["groups"]
    names = [o["metadata"]["name"] for o in c.admin("GET", TOKENS)["items"]]
    assert len(names) == 1 and token not in names


@pytest.mark.parametrize("user, password", [("bob", "secret"), ("ann", "sesame"), ("sam", "shh")])
def test_each_hash_of_htpasswd_logs_in(c, user, password):
    assert login(c, user, password).status == 302
    wrong = login(c, user, password + "x")
    assert wrong.status == 401 and wrong.headers["WWW-Authenticate"] == 'Basic realm="openshift"'


def test_challenges(c):
    b = c.browser()
    with_token = b.authorize(CHALLENGING, headers=ASKED)
    assert with_token.status == 401 and with_token.headers["WWW-Authenticate"] == 'Basic realm="openshift"'
    without = b.authorize(CHALLENGING)
    assert without.status == 401 and "WWW-Authenticate" not in without.headers
    assert "X-CSRF-Token" in without.text and without.headers["Warning"].startswith('199 Origin "')
    bearer = b.authorize(CHALLENGING, headers={**ASKED, "Authorization": "Bearer " + login(
        c, response_type="token").query()["access_token"]})
    assert bearer.status == 401


def test_a_provider_without_challenges_names_the_page(tmp_path):
    c = OAuth(str(tmp_path), providers=[provider("files", f"{tmp_path}/users", challenge=False)])
    try:
        answer = c.browser().authorize(CHALLENGING, headers=ASKED)
        assert answer.status == 401 and "WWW-Authenticate" not in answer.headers
        assert answer.text == f"You must obtain an API token by visiting {c.url()}/oauth/token/request"
        assert answer.headers["Link"] == f'<{c.url()}/oauth/token/request>; rel="related"'
    finally:
        c.stop(signal.SIGKILL)


def test_paths_and_methods(c):
    b = c.browser()
    for path in ["/oauth", "/oauth/info?code=x", "/oauth/authorize/x", "/oauth2callback/", "/logout/x"]:
        assert b.get(path).status == 404
    assert b.get("/oauth/token").status == 405 and b.get("/logout").status == 405
    assert b.ask("DELETE", "/oauth/authorize").status == 405
    assert b.get("/oauth/token/implicit").status == 200
    request = b.get("/oauth/token/request")
    assert request.status == 302 and request.location.startswith("/oauth/authorize?client_id=openshift-browser-client")


def test_without_configuration_there_is_no_oauth_server(tmp_path):
    c = Cluster(str(tmp_path))
    try:
        for path in ["/.well-known/oauth-authorization-server", "/oauth/authorize", "/login"]:
            answer = Browser(c.port).get(path)
            assert answer.status == 404 and "no oauthConfig" in answer.text
    finally:
        c.stop(signal.SIGKILL)


def test_an_unknown_client_or_redirect_never_redirects(c):
    client(c)
    b = c.browser()
    unknown = b.authorize("nobody", redirect_uri="https://evil.example/")
    assert unknown.status == 400 and json.loads(unknown.text)["error"] == "unauthorized_client" and not unknown.location
    for uri in ["https://evil.example/", "https://web.example/cbx", "https://web.example:444/cb", "http://web.example/cb",
                "https://web.example/cb#x", "https://web.example/cb/../x", "https://web.example@evil.example/cb"]:
        answer = b.authorize("web", redirect_uri=uri)
        assert answer.status == 400 and not answer.location, uri
    below = b.authorize("web", redirect_uri="https://web.example/cb/x", response_type="x", state="s")
    assert below.location.startswith("https://web.example/cb/x?error=unsupported_response_type") and below.query()["state"] == "s"


def code_of(c, b, **query):
    answer = b.authorize("web", headers=basic("bob", "secret"), **query)
    assert answer.status == 302, answer.text
    return answer.query()["code"]


def test_the_code_flow(c):
    client(c)
    b = c.browser()
    wrong = b.token(code=code_of(c, b), client_id="web", client_secret="wrong")
    assert wrong.status == 401 and json.loads(wrong.text)["error"] == "invalid_client"
    code = code_of(c, b)
    stored = c.admin("GET", CODES)["items"]
    assert all(o["expiresIn"] == 300 and o["userName"] == "bob" and code not in o["metadata"]["name"] for o in stored)
    other = b.token(code=code, client_id="web", client_secret="hush", redirect_uri="https://web.example/cb/x")
    assert other.status == 400 and json.loads(other.text)["error"] == "invalid_grant"
    good = b.token(code=code, headers=basic("web", "hush"))
    answer = json.loads(good.text)
    assert good.status == 200 and answer["token_type"] == "Bearer" and answer["expires_in"] == 86400
    assert c.ask(answer["access_token"], "GET", f"{USERS}/~", want=200)["metadata"]["name"] == "bob"


def test_a_code_used_twice_ends_its_token(c):
    client(c)
    b = c.browser()
    code = code_of(c, b)
    token = json.loads(b.token(code=code, client_id="web", client_secret="hush").text)["access_token"]
    again = b.token(code=code, client_id="web", client_secret="hush")
    assert again.status == 400 and json.loads(again.text)["error"] == "invalid_grant"
    wait_for("the end of the token", lambda: c.ask(token, "GET", f"{USERS}/~")[0] == 401)


def test_proofs_of_codes(c):
    client(c)
    b = c.browser()
    for method, challenge in [("S256", CHALLENGE), ("plain", VERIFIER), (None, VERIFIER)]:
        proof = {"code_challenge": challenge, **({"code_challenge_method": method} if method else {})}
        for verifier in [None, VERIFIER[:-1] + "x"]:
            code = code_of(c, b, **proof)
            form = {"code_verifier": verifier} if verifier else {}
            assert b.token(code=code, client_id="web", client_secret="hush", **form).status == 400
        assert b.token(code=code, client_id="web", client_secret="hush", code_verifier=VERIFIER).status == 200
    ignored = code_of(c, b, code_challenge_method="S256")
    assert b.token(code=ignored, client_id="web", client_secret="hush").status == 200


def test_other_grants_are_refused(c):
    for form in [{"grant_type": "password", "username": "bob", "password": "secret"}, {"grant_type": "client_credentials"},
                 {"grant_type": "refresh_token", "refresh_token": "x"}]:
        answer = c.browser().token(client_id=CHALLENGING, **form)
        assert answer.status == 400 and json.loads(answer.text)["error"] == "unsupported_grant_type"


def test_a_client_says_how_long_its_tokens_last(c):
    client(c, "short", accessTokenMaxAgeSeconds=60)
    client(c, "long", accessTokenMaxAgeSeconds=0)
    for name, seconds in [("short", "60"), ("long", "0")]:
        answer = c.browser().authorize(name, headers=basic("bob", "secret"), response_type="token")
        assert answer.query()["expires_in"] == seconds


def test_the_page_of_a_browser(c):
    b = c.browser()
    first = b.get(b.get("/oauth/token/request").location)
    assert first.status == 302 and first.location.startswith("/login/files?then=")
    page = b.get(first.location)
    assert page.headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    wrong = b.log_in(page, "bob", "wrong")
    assert wrong.status == 302 and wrong.query()["reason"] == "access_denied"
    assert "Invalid login or password" in b.get(wrong.location).text
    done = b.log_in(page, "bob", "secret")
    assert done.location.startswith("/oauth/authorize?client_id=openshift-browser-client")
    display = b.get(done.location)
    assert display.location.startswith(c.url() + "/oauth/token/display?code=") and "ssn" not in b.cookies
    button = b.get(display.location[len(c.url()):])
    action, fields = button.fields()
    assert "sha256~" not in button.text.replace(fields["code"], "")
    assert b.post(action, {**fields, "csrf": "x" * 43}).status == 403
    shown = b.post(action, fields)
    token = shown.text.split('<pre id="token">')[1].split("<")[0]
    assert c.ask(token, "GET", f"{USERS}/~", want=200)["metadata"]["name"] == "bob"


def test_the_clients_of_every_cluster_lead_to_their_own_pages(c):
    """A login in a browser for the web console leads below /console/, and nowhere else; what an administrator added stays."""
    console = c.ask(c.root(), "GET", f"{CLIENTS}/openshift-web-console", want=200)
    assert console["redirectURIs"] == [f"{c.url()}/console/"] and not console.get("respondWithChallenges")
    b = c.browser()
    asked = b.authorize("openshift-web-console", response_type="token", redirect_uri=f"{c.url()}/console/oauth", state="s")
    done = b.log_in(b.get(asked.location), "bob", "secret")
    end = b.get(done.location)
    assert end.status == 302 and end.location.startswith(f"{c.url()}/console/oauth#access_token=sha256~"), end.location
    for other in (f"{c.url()}/consoles", f"{c.url()}/", "https://evil.example/console/", f"{c.url()}/console/../oauth/token/display"):
        refused = c.browser().authorize("openshift-web-console", response_type="token", redirect_uri=other)
        assert refused.status == 400 and not refused.location, (other, refused.status)
    for name in ("openshift-browser-client", "openshift-challenging-client", "openshift-cli-client"):
        uris = c.ask(c.root(), "GET", f"{CLIENTS}/{name}", want=200)["redirectURIs"]
        assert uris and all(u.startswith((c.url() + "/oauth/token/", "http://127.0.0.1/", "http://[::1]/")) for u in uris), (name, uris)


def test_the_login_may_lead_to_its_client_alone(c):
    """Browsers hold form-action against the redirects that follow a form."""
    client(c, redirectURIs=["https://web.example/cb", "http://[::1]/cb", "my.app:/cb"])

    def policy(then):
        page = c.browser().get("/login?then=" + urllib.parse.quote(then, safe=""))
        assert page.status == 200
        return next(p for p in page.headers["Content-Security-Policy"].split("; ") if p.startswith("form-action"))

    def request(uri, name="web"):
        return "/oauth/authorize?" + urllib.parse.urlencode({"client_id": name, "response_type": "code", "redirect_uri": uri})
    assert policy(request("https://web.example/cb/x")) == "form-action 'self' https://web.example:443"
    assert policy(request("http://[::1]:4711/cb")) == "form-action 'self' http:"
    assert policy(request("my.app:/cb")) == "form-action 'self' my.app:"
    for other in (request("https://evil.example/cb"), request("https://web.example/cb", "nobody"), "/oauth/token/request",
                  request("https://web.example/cb")[len("/oauth"):], "/oauth/authorize?%zz"):
        assert policy(other) == "form-action 'self'", other
    icon = c.browser().get("/oauth/icon.svg")
    assert icon.status == 200 and icon.headers["Content-Type"] == "image/svg+xml" and 'href="/oauth/icon.svg"' in \
        c.browser().get("/login?then=%2Fx").text


def test_forms_of_others_are_refused(c):
    b = c.browser()
    page = b.get("/login?then=%2Fx")
    action, fields = page.fields()
    good = {**fields, "username": "bob", "password": "secret"}
    for change in [{"csrf": ""}, {"csrf": "A" * 43}]:
        answer = b.post(action, {**good, **change})
        assert answer.query()["reason"] == "token_expired" and "ssn" not in b.cookies
    for headers in [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": "same-site"}]:
        assert b.post(action, good, headers=headers).query()["reason"] == "token_expired"
    for then in ["https://evil.example/", "//evil.example", "/\\evil.example", "", "x"]:
        assert b.get("/login?then=" + urllib.parse.quote(then, safe="")).location == "/"
        assert b.post(action, {**good, "then": then}).location == "/"
    assert b.post(action, good, headers={"Origin": c.url(), "Sec-Fetch-Site": "same-origin"}).location == "/x"


def test_a_changed_or_planted_session_is_none(c):
    b = c.browser()
    b.log_in(b.get("/login?then=%2Fx"), "bob", "secret")
    session, csrf = b.cookies["ssn"], b.cookies["csrf"]
    client(c)
    assert b.authorize("web").query()["code"]
    other = c.browser()
    other.cookies = {"ssn": session}
    assert other.authorize("web").location.startswith("/login")
    other.get("/login?then=%2Fx")
    other.cookies["ssn"] = session
    assert other.cookies["csrf"] != csrf and other.authorize("web").location.startswith("/login")
    changed = c.browser()
    changed.cookies = {"ssn": session[:-1] + ("A" if session[-1] != "A" else "B"), "csrf": csrf}
    assert changed.authorize("web").location.startswith("/login")


def test_a_grant_is_asked_for_and_remembered(c):
    client(c, grantMethod="prompt")
    b = c.browser()
    headers = basic("bob", "secret")
    asked = b.authorize("web", headers=headers, scope="user:info user:check-access", state="s")
    assert asked.location.startswith("/oauth/authorize/approve?")
    page = b.get(asked.location)
    assert "user:info" in page.text and "user:check-access" in page.text
    assert "https://web.example:443" in page.headers["Content-Security-Policy"]
    action, fields = page.fields()
    assert b.post(action, [*{**fields, "user_name": "ann"}.items(), ("scope", "user:info"), ("approve", "yes")]).status == 403
    back = b.post(action, [*fields.items(), ("scope", "user:info"), ("scope", "user:full"), ("approve", "yes")])
    done = b.get(back.location)
    assert done.location.startswith("https://web.example/cb?code=") and done.query()["state"] == "s"
    stored = c.admin("GET", f"{GRANTS}/bob:web")
    assert stored["scopes"] == ["user:info"] and stored["clientName"] == "web" and stored["userName"] == "bob"
    again = b.authorize("web", headers=headers, scope="user:info")
    assert again.query()["code"]
    more = b.authorize("web", headers=headers, scope="user:info user:list-projects")
    action, fields = b.get(more.location).fields()
    denied = b.post(action, {**fields, "deny": "yes"})
    assert denied.location.startswith("https://web.example/cb?error=access_denied")


def test_scopes_that_a_client_may_not_have(c):
    client(c, scopeRestrictions=[{"literals": ["user:info"]}])
    b = c.browser()
    assert b.authorize("web", scope="user:full", headers=basic("bob", "secret")).query()["error"] == "access_denied"
    assert b.authorize("web", scope="user:bogus", headers=basic("bob", "secret")).query()["error"] == "invalid_scope"
    assert "code" in b.authorize("web", scope="user:info", headers=basic("bob", "secret")).query()


def test_a_service_account_is_a_client(c):
    c.namespace("p")
    path = "/api/v1/namespaces/p/serviceaccounts/proxy"
    notes = {"serviceaccounts.openshift.io/oauth-redirecturi.first": "https://first.example",
             "serviceaccounts.openshift.io/oauth-redirecturi.second": "https://second.example",
             "serviceaccounts.openshift.io/oauth-want-challenges": "true"}
    c.admin("POST", "/api/v1/namespaces/p/serviceaccounts", {"metadata": {"name": "proxy"}}, 201)
    name = "system:serviceaccount:p:proxy"
    b = c.browser()
    assert b.authorize(name, headers=ASKED).status == 400
    c.admin("PATCH", path, {"metadata": {"annotations": notes}}, headers={"Content-Type": "application/merge-patch+json"})
    assert b.authorize(name, scope="user:info", headers=ASKED).headers["WWW-Authenticate"]
    headers = {**ASKED, **basic("bob", "secret")}
    for scope in ["user:full", "role:view:other", "user:info role:edit:*"]:
        assert b.authorize(name, scope=scope, headers=headers).query()["error"] == "access_denied"
    asked = b.authorize(name, scope="user:info role:view:p", redirect_uri="https://second.example/x", headers=headers)
    action, fields = b.get(asked.location).fields()
    back = b.post(action, [*fields.items(), ("scope", "user:info"), ("scope", "role:view:p"), ("approve", "yes")])
    code = b.get(back.location).query()["code"]
    assert b.token(code=code, client_id=name, client_secret="wrong").status == 401
    token = c.token("p", "proxy")
    good = b.token(code=code, client_id=name, client_secret=token, redirect_uri="https://second.example/x")
    assert good.status == 200 and json.loads(good.text)["scope"] == "user:info role:view:p"


def test_every_cluster_has_the_clients_of_openshift(c):
    made = {o["metadata"]["name"]: o for o in c.admin("GET", CLIENTS)["items"]}
    assert set(made) == {CHALLENGING, "openshift-browser-client", "openshift-web-console", "openshift-cli-client"}
    assert made[CHALLENGING]["respondWithChallenges"] and made[CHALLENGING]["redirectURIs"] == [c.url() + "/oauth/token/implicit"]
    assert not made["openshift-web-console"].get("respondWithChallenges")


def test_redirects_of_a_service_account_follow_its_routes(c):
    """OAUTH-16 to 22: references to routes, combined with parts of URIs; an account without any gets an Event."""
    c.namespace("p")
    merge = {"Content-Type": "application/merge-patch+json"}
    routes, account = "/apis/route.openshift.io/v1/namespaces/p/routes", "/api/v1/namespaces/p/serviceaccounts/proxy"
    name, prefix = "system:serviceaccount:p:proxy", "serviceaccounts.openshift.io/oauth-redirect"
    headers = {**ASKED, **basic("bob", "secret")}

    def annotate(**notes):
        values = {k: json.dumps({"kind": "OAuthRedirectReference", "apiVersion": "v1", "reference": {"kind": "Route", "name": v}})
                  if k.startswith("reference") else v for k, v in notes.items()}
        old = c.admin("GET", account)["metadata"].get("annotations", {})
        new = {**{k: None for k in old}, **{prefix + k.replace("_", "."): v for k, v in values.items()}}
        c.admin("PATCH", account, {"metadata": {"annotations": new}}, headers=merge)

    def may(uri):
        answer = c.browser().authorize(name, scope="user:info", redirect_uri=uri, headers=headers)
        assert answer.status in (302, 400), answer.text
        return answer.status == 302

    c.admin("POST", "/api/v1/namespaces/p/serviceaccounts", {"metadata": {"name": "proxy"}}, 201)
    c.admin("POST", routes, {"metadata": {"name": "jenkins"}, "spec": {
        "host": "jenkins.example.com", "to": {"name": "jenkins"}, "tls": {"termination": "edge"}}}, 201)
    annotate(reference_first="jenkins")
    assert not may("https://jenkins.example.com"), "no router has admitted the route"
    events = lambda: c.admin("GET", "/api/v1/namespaces/p/events?fieldSelector=reason%3DNoSAOAuthRedirectURIs")["items"]  # noqa: E731
    why = wait_for("the event", events)
    assert len(why) == 1 and why[0]["type"] == "Warning" and why[0]["involvedObject"]["name"] == "proxy" and why[0]["count"] == 1
    assert "not admitted by a router" in why[0]["message"] and "oauth-redirectreference.<some-value>" in why[0]["message"]

    def admit(*hosts, status="True"):
        ingress = [{"host": h, "routerName": f"r{i}", "conditions": [{"type": "Admitted", "status": status}]}
                   for i, h in enumerate(hosts)]
        c.admin("PATCH", f"{routes}/jenkins/status", {"status": {"ingress": ingress}}, headers=merge)

    admit("jenkins.example.com", "j.other.example", status="False")
    assert not may("https://jenkins.example.com")
    admit("jenkins.example.com", "j.other.example")
    for uri in ("https://jenkins.example.com", "https://j.other.example/securityRealm"):
        assert may(uri)
    for uri in ("http://jenkins.example.com", "https://jenkins.example.com:8000", "https://evil.example", "https://x.jenkins.example.com"):
        assert not may(uri), uri
    annotate(reference_first="jenkins", uri_first="custompath", reference_second="jenkins", uri_second="//:8000",
             uri_third="https://static.example")
    for uri in ("https://jenkins.example.com/custompath", "https://j.other.example:8000", "https://static.example/x"):
        assert may(uri), uri
    assert not may("https://jenkins.example.com/other")
    annotate(reference_first="jenkins", uri_first="//web.example")
    assert may("https://web.example") and not may("https://jenkins.example.com")
    annotate(reference_first="missing")
    assert not may("https://jenkins.example.com")
    # A route of another project of the same name is none, and a deleted one gives nothing.
    annotate(reference_first="jenkins")
    c.ask(c.root(), "DELETE", f"{routes}/jenkins", want=200)
    c.namespace("other")
    c.admin("POST", routes.replace("/p/", "/other/"), {"metadata": {"name": "jenkins"}, "spec": {
        "host": "jenkins.example.com", "to": {"name": "jenkins"}}}, 201)
    assert not may("https://jenkins.example.com")
    for _ in range(30):
        may("https://jenkins.example.com")
    wait_for("the second reason", lambda: len(events()) == 2)
    assert all(e["count"] == 1 for e in events()), "one for each reason, counted once a minute"


# ---- identities and users ----

def test_the_first_login_makes_user_and_identity(c):
    assert login(c).status == 302
    user, identity = c.admin("GET", f"{USERS}/bob"), c.admin("GET", f"{IDENTITIES}/files:bob")
    assert user["identities"] == ["files:bob"]
    assert identity["user"] == {"name": "bob", "uid": user["metadata"]["uid"]}
    assert identity["providerName"] == "files" and identity["providerUserName"] == "bob"
    assert login(c).status == 302 and c.admin("GET", f"{USERS}/bob") == user


def test_a_user_that_another_identity_has_is_not_claimed(c):
    c.admin("POST", USERS, {"metadata": {"name": "bob"}, "identities": ["other:bob"]}, 201)
    answer = login(c)
    assert answer.status == 403 and answer.text == "Could not create user."
    assert c.admin("GET", f"{USERS}/bob")["identities"] == ["other:bob"]
    c.admin("POST", USERS, {"metadata": {"name": "ann"}}, 201)
    assert login(c, "ann", "sesame").status == 302
    assert c.admin("GET", f"{USERS}/ann")["identities"] == ["files:ann"]


def name_after(c, method, provider_name, user="bob", password="secret"):
    """The name of the user who logs in by a provider of this name and method; None: nobody."""
    c.reread(provider(provider_name, c.users, mappingMethod=method))
    answer = login(c, user, password, response_type="token")
    if answer.status != 302:
        return None
    return c.ask(answer.query()["access_token"], "GET", f"{USERS}/~", want=200)["metadata"]["name"]


def test_mapping_methods_and_providers_read_again(c):
    c.admin("POST", USERS, {"metadata": {"name": "bob"}, "identities": ["other:bob"]}, 201)
    assert name_after(c, "lookup", "one") is None
    assert name_after(c, "claim", "two") is None
    assert name_after(c, "add", "three") == "bob"
    assert name_after(c, "generate", "four") == "bob2"
    assert name_after(c, "generate", "five") == "bob3"
    assert name_after(c, "claim", "four") == "bob2"
    assert c.admin("GET", f"{USERS}/bob")["identities"] == ["other:bob", "three:bob"]
    assert name_after(c, "generate", "six", "ann", "sesame") == "ann"
    c.admin("POST", IDENTITIES, {"providerName": "seven", "providerUserName": "bob"}, 201)
    c.admin("POST", "/apis/user.openshift.io/v1/useridentitymappings",
            {"identity": {"name": "seven:bob"}, "user": {"name": "bob"}}, 201)
    assert name_after(c, "lookup", "seven") == "bob"


def test_providers_that_cannot_be_read_again_leave_the_former(c):
    file = c.dir / "master.yaml"
    config = json.loads(file.read_text())
    config["oauthConfig"]["identityProviders"] = [provider("files", "/nonexistent")]
    file.write_text(json.dumps(config))
    c.proc.send_signal(signal.SIGHUP)
    wait_for("the error", lambda: "the previous one stays" in c.text())
    assert login(c).status == 302


def test_two_providers_are_chosen_from(c):
    c.reread(provider("files", c.users), {"name": "any body", "login": True, "challenge": False,
                                          "provider": {"kind": "AllowAllPasswordIdentityProvider"}})
    b = c.browser()
    page = b.get(b.get("/oauth/token/request").location)
    assert page.status == 200 and "files" in page.text and "idp=any%20body" in page.text
    client(c)
    chosen = b.authorize("web", idp="any body")
    assert chosen.location.startswith("/login/any%20body?then=")
    done = b.log_in(b.get(chosen.location), "eve", "x")
    assert b.get(done.location).location.startswith("https://web.example/cb?code=")
    assert c.admin("GET", f"{USERS}/eve")["identities"] == ["any body:eve"]
    again = b.get(b.authorize("web", idp="any body").location)
    assert b.log_in(again, "a/b:c", "x").status == 302
    encoded = "b64:" + base64.urlsafe_b64encode(b"a/b:c").decode().rstrip("=")
    assert c.admin("GET", f"{USERS}/{encoded}")["identities"] == [f"any body:{encoded}"]


def test_an_identity_that_is_known_must_agree_with_its_user(c):
    c.admin("POST", IDENTITIES, {"providerName": "files", "providerUserName": "bob"}, 201)
    assert login(c).status == 403
    assert login(c, "ann", "sesame").status == 302
    c.admin("DELETE", f"{USERS}/ann")
    wait_for("a login after the user is gone", lambda: login(c, "ann", "sesame").status in (302, 403))


def test_a_wrong_configuration_is_refused_at_start(tmp_path):
    for providers, error in [
            ([{"name": "x", "provider": {"kind": "Magic"}}], 'provider.kind: "Magic" is not known'),
            ([{"name": "a:b", "provider": {"kind": "DenyAllPasswordIdentityProvider"}}], "[0].name: "),
            ([provider("x", "/nonexistent")], "/nonexistent: No such file or directory"),
            ([provider("x", str(tmp_path), mappingMethod="guess")], "mappingMethod: must be claim, lookup, generate or add")]:
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"kind": "MasterConfig", "servingInfo": {
            "bindAddress": "127.0.0.1:0", "pkiDir": str(tmp_path / "pki")}, "storage": {"backend": "memory"},
            "oauthConfig": {"identityProviders": providers}}))
        p = subprocess.run([TENET, "master", "--config", config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=60)
        assert p.returncode != 0 and error in p.stdout, p.stdout


def test_the_audit_log_has_no_secrets(tmp_path):
    log = tmp_path / "audit.log"
    c = OAuth(str(tmp_path), auditConfig={"auditFilePath": str(log)})
    try:
        client(c)
        b = c.browser()
        code = code_of(c, b)
        token = json.loads(b.token(code=code, client_id="web", client_secret="hush", code_verifier=VERIFIER).text)["access_token"]
        b.get("/oauth/token/display?code=" + code)
        b.log_in(b.get("/login?then=%2Fx"), "bob", "secret")
        secrets = [code, token, "hush", "c2VjcmV0", b.cookies["ssn"], b.cookies["csrf"], VERIFIER, "password=secret"]
    finally:
        c.stop()
    text = log.read_text()
    assert "/oauth/token/display?code=REDACTED" in text and '"/oauth/authorize?' in text
    assert not [s for s in secrets if s in text]
