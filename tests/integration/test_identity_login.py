# SPDX-License-Identifier: Apache-2.0
"""Whole logins through the OAuth server of a real master, by providers on real servers: a token, refusal, a server that is
down, a certificate that is not trusted."""
import signal
import urllib.parse

import pytest

import directory
from directory import ADMIN, ADMIN_PASSWORD
from lab import wait_for
from test_identity_http import Apache
from test_identity_openid import SECRET, GitHub, Provider
from test_oauth import ASKED, CHALLENGING, USERS, OAuth, basic


def provider(kind, **keys):
    return {"name": "corp", "challenge": True, "login": True, "mappingMethod": "claim",
            "provider": {"apiVersion": "v1", "kind": kind, **keys}}


@pytest.fixture
def slapd(tmp_path):
    (tmp_path / "slapd").mkdir()
    s = directory.Slapd(tmp_path / "slapd")
    yield s
    s.stop()


def login(c, user, password):
    return c.browser().authorize(CHALLENGING, headers={**ASKED, **basic(user, password)}, response_type="token")


def test_a_login_by_ldap(slapd, tmp_path):
    (tmp_path / "bind.secret").write_text(ADMIN_PASSWORD + "\n")
    ldap = provider("LDAPPasswordIdentityProvider", url=slapd.ldaps + "/ou=users,dc=example,dc=com", ca="slapd/ca.crt",
                    bindDN=ADMIN, bindPassword={"file": "bind.secret"},
                    attributes={"id": ["dn"], "preferredUsername": ["uid"], "name": ["cn"]})
    c = OAuth(str(tmp_path), providers=[ldap])
    try:
        answer = login(c, "joe", "joe's password")
        assert answer.status == 302, answer.text
        me = c.ask(answer.query()["access_token"], "GET", f"{USERS}/~", want=200)
        assert me["metadata"]["name"] == "joe" and me["fullName"] == "Joe Doe"
        assert me["identities"] == ["corp:uid=joe,ou=users,dc=example,dc=com"]
        for name, password in (("joe", "wrong"), ("nobody", "x"), ("*", "joe's password"), ("joe", "")):
            refused = login(c, name, password)
            assert refused.status == 401 and "access_token" not in refused.headers.get("Location", "")
        slapd.stop()
        down = login(c, "joe", "joe's password")
        assert down.status in (401, 500) and "refused" in c.text()
        text = c.text()
        assert "joe's password" not in text and ADMIN_PASSWORD not in text
    finally:
        c.stop(signal.SIGKILL)


def test_a_server_with_a_foreign_certificate_logs_nobody_in(slapd, tmp_path):
    (tmp_path / "foreign").mkdir()
    directory.certificates(tmp_path / "foreign", "foreign")
    ldap = provider("LDAPPasswordIdentityProvider", url=slapd.ldaps + "/ou=users,dc=example,dc=com", ca="foreign/foreign.crt",
                    attributes={"id": ["dn"], "preferredUsername": ["uid"]})
    c = OAuth(str(tmp_path), providers=[ldap])
    try:
        assert login(c, "joe", "joe's password").status in (401, 500)
        assert "unknown authority" in c.text()
    finally:
        c.stop(signal.SIGKILL)


def test_a_login_by_openid_connect(tmp_path):
    """The browser is sent to the provider and back; an answer in another browser, or with another state, gives nothing."""
    (tmp_path / "op").mkdir()
    op = Provider(tmp_path / "op")
    (tmp_path / "client.secret").write_text(SECRET)
    config = {k: v for k, v in op.config(clientSecret={"file": "client.secret"}).items() if k != "kind"}
    c = OAuth(str(tmp_path), providers=[{**provider("OpenIDIdentityProvider", **config), "challenge": False}])
    try:
        def begin(b):
            def asked():
                page = b.authorize("openshift-browser-client")
                return page.location if page.status == 302 and page.location.startswith(op.issuer) else None
            wait_for("the provider's metadata", lambda: asked())
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(asked()).query))
            op.nonce, op.challenge = query["nonce"], query["code_challenge"]
            return query

        b, stranger = c.browser(), c.browser()
        query = begin(b)
        assert query["redirect_uri"] == c.url() + "/oauth2callback/corp"
        back = "/oauth2callback/corp?" + urllib.parse.urlencode({"code": "the-code", "state": query["state"]})
        assert stranger.get(back).status != 302, "the state belongs to another browser"
        wrong = b.get(back.replace(query["state"], "x" + query["state"]))
        assert wrong.status != 302
        query = begin(b)
        back = "/oauth2callback/corp?" + urllib.parse.urlencode({"code": "the-code", "state": query["state"]})
        answer = b.get(back)
        assert answer.status == 302, answer.text
        me = c.admin("GET", f"{USERS}/joe")
        assert me["identities"] == ["corp:joe-4711"] and me["fullName"] == "Joe Doe"
        assert stranger.get(back).status != 302
        # The token, and the way out: the page's policy has no other origin, so the logout leads to none.
        display = b.get(answer.location)
        button = b.get(display.location[len(c.url()):])
        action, fields = button.fields()
        shown = b.post(action, fields)
        token = shown.text.split('<pre id="token">')[1].split("<")[0]
        assert c.ask(token, "GET", f"{USERS}/~", want=200)["metadata"]["name"] == "joe"
        assert "form-action 'self';" in shown.headers["Content-Security-Policy"]
        action, fields = shown.fields()
        assert action == "/logout"
        out = b.post(action, fields)
        assert (out.status, out.text) == (200, "Logged out.\n"), (out.status, out.location, out.text)
    finally:
        c.stop(signal.SIGKILL)
        op.close()


def test_a_login_by_basic_auth(tmp_path):
    """apache2 decides.  A refusal, a foreign certificate and a server that is down log nobody in."""
    (tmp_path / "apache").mkdir()
    (tmp_path / "foreign").mkdir()
    directory.certificates(tmp_path / "foreign", "foreign")
    apache = Apache(tmp_path / "apache")
    remote = provider("BasicAuthPasswordIdentityProvider", url=apache.url(), ca="apache/ca.crt")
    c = OAuth(str(tmp_path), providers=[remote])
    try:
        answer = login(c, "joe", "joe's")
        assert answer.status == 302, answer.text
        me = c.ask(answer.query()["access_token"], "GET", f"{USERS}/~", want=200)
        assert me["metadata"]["name"] == "joe" and me["fullName"] == "Joe Doe" and me["identities"] == ["corp:4711"]
        for name, password in (("joe", "wrong"), ("nobody", "x"), ("joe", ""), ("", "joe's")):
            refused = login(c, name, password)
            assert refused.status == 401 and "access_token" not in refused.headers.get("Location", "")
        c.reread(provider("BasicAuthPasswordIdentityProvider", url=apache.url(), ca=str(tmp_path / "foreign/foreign.crt")))
        assert login(c, "joe", "joe's").status in (401, 500) and "unknown authority" in c.text()
        c.reread(provider("BasicAuthPasswordIdentityProvider", url=apache.url("/moved"), ca=apache.ca))
        assert login(c, "joe", "joe's").status in (401, 500) and "redirect (302)" in c.text()
        apache.stop()
        assert login(c, "joe", "joe's").status in (401, 500) and "refused" in c.text()
        assert "joe's" not in c.text()
    finally:
        c.stop(signal.SIGKILL)
        if apache.process.poll() is None:
            apache.stop()


def test_a_login_by_github(tmp_path):
    """A simulator is the installation of GitHub Enterprise: who is in none of the organizations gets no token."""
    (tmp_path / "op").mkdir()
    op = Provider(tmp_path / "op")
    github = GitHub(op)
    op.answer = github.answer
    (tmp_path / "client.secret").write_text(SECRET)
    config = github.config(organizations=["example"], clientSecret={"file": "client.secret"})
    del config["kind"]
    c = OAuth(str(tmp_path), providers=[{**provider("GitHubIdentityProvider", **config), "challenge": False}])
    try:
        def back(b, code="the-code"):
            page = b.authorize("openshift-browser-client")
            assert page.status == 302 and page.location.startswith(op.issuer + "/login/oauth/authorize?"), page.text
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.location).query))
            assert query["redirect_uri"] == c.url() + "/oauth2callback/corp"
            return "/oauth2callback/corp?" + urllib.parse.urlencode({"code": code, "state": query["state"]})

        b, stranger = c.browser(), c.browser()
        assert b.get(back(b)).status != 302 and "none of the organizations" in c.text()
        github.orgs = ["Example"]
        assert b.get(back(b, "guessed")).status != 302 and "bad_verification_code" in c.text()
        assert stranger.get(back(b)).status != 302, "the state belongs to another browser"
        assert c.ask(c.root(), "GET", f"{USERS}/joe")[0] == 404
        answer = b.get(back(b))
        assert answer.status == 302, answer.text
        assert c.admin("GET", f"{USERS}/joe")["identities"] == ["corp:4711"]
        assert "gh-token" not in c.text() and SECRET not in c.text()
    finally:
        c.stop(signal.SIGKILL)
        op.close()


def test_groups_of_a_provider_follow_each_login(tmp_path):
    """The user joins what the provider tells, and leaves what it tells no more; what an administrator made stays."""
    (tmp_path / "op").mkdir()
    op = Provider(tmp_path / "op")
    (tmp_path / "client.secret").write_text(SECRET)
    config = {k: v for k, v in op.config(clientSecret={"file": "client.secret"}).items() if k != "kind"}
    config["claims"] = {**config["claims"], "groups": ["groups"]}
    c = OAuth(str(tmp_path), providers=[{**provider("OpenIDIdentityProvider", **config), "challenge": False}])
    groups = "/apis/user.openshift.io/v1/groups"
    mark, made = "oauth.openshift.io/idp.corp", "oauth.openshift.io/generated"

    def log_in(*told):
        op.claims = {"groups": list(told)}
        b = c.browser()

        def asked():
            page = b.authorize("openshift-browser-client")
            return page.location if page.status == 302 and page.location.startswith(op.issuer) else None
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(wait_for("the provider's metadata", asked)).query))
        op.nonce, op.challenge = query["nonce"], query["code_challenge"]
        answer = b.get("/oauth2callback/corp?" + urllib.parse.urlencode({"code": "the-code", "state": query["state"]}))
        assert answer.status == 302 and answer.location.startswith("/oauth/authorize"), answer.text
        return {g["metadata"]["name"]: (g.get("users") or [], g["metadata"].get("annotations", {}))
                for g in c.admin("GET", groups)["items"]}
    try:
        for name, users in {"ops": ["ann"], "mine": ["joe", "ann"], "kept": []}.items():
            c.admin("POST", groups, {"metadata": {"name": name}, "users": users}, 201)
        seen = log_in("dev", "ops", "kept", "dev", "a:b", "system:masters")
        assert seen == {"dev": (["joe"], {made: "true", mark: "synced"}), "ops": (["ann", "joe"], {mark: "synced"}),
                        "kept": (["joe"], {mark: "synced"}), "mine": (["joe", "ann"], {})}
        assert log_in("dev", "ops", "kept", "mine") == seen
        c.admin("PATCH", f"{groups}/dev", {"users": ["joe", "ann"]}, headers={"Content-Type": "application/merge-patch+json"})
        seen = log_in("qa")
        assert seen == {"dev": (["ann"], {made: "true", mark: "synced"}), "ops": (["ann"], {mark: "synced"}),
                        "kept": ([], {mark: "synced"}), "mine": (["joe", "ann"], {}),
                        "qa": (["joe"], {made: "true", mark: "synced"})}
        assert set(log_in()) == {"dev", "ops", "kept", "mine"}, "a generated group ends with its last user"
        assert "its name is invalid" in c.text()
    finally:
        c.stop(signal.SIGKILL)
        op.close()
