# SPDX-License-Identifier: Apache-2.0
"""Two masters on one etcd as one OAuth server: sessions, codes and keys of one are good at the other, and what they store is
encrypted at rest."""
import base64
import json
import os
import signal

import pytest

import ha
from lab import wait_for
from oauth_client import CHALLENGE, VERIFIER
from test_oauth import ASKED, CHALLENGING, CODES, TOKENS, USERS, OAuth, client, login

SECRET = "/api/v1/namespaces/kube-system/secrets/oauth-session-keys"
MADE = "oauth.tenet.io/key-made"


class World:
    """The masters have one authority, one URL and one EncryptionConfiguration."""

    def __init__(self, tmp):
        self.etcd = ha.Etcd(tmp)
        self.masters = []
        (tmp / "pki").mkdir()
        resources = ["secrets", "users.user.openshift.io", "identities.user.openshift.io", "oauthaccesstokens.oauth.openshift.io",
                     "oauthauthorizetokens.oauth.openshift.io"]
        key = {"name": "a", "secret": base64.b64encode(b"k" * 32).decode()}
        encryption = tmp / "encryption.json"
        encryption.write_text(json.dumps({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
            "resources": [{"resources": resources, "providers": [{"aesgcm": {"keys": [key]}}, {"identity": {}}]}]}))
        encryption.chmod(0o600)
        for name in "ab":
            folder = tmp / name
            folder.mkdir()
            os.symlink(tmp / "pki", folder / "pki")
            self.masters.append(OAuth(
                str(folder), {"masterPublicURL": "https://master.example.com:8443"},
                storage={"backend": "etcd", "endpoints": self.etcd.endpoints, "encryptionConfig": str(encryption)}))

    def close(self):
        for m in self.masters:
            m.stop(signal.SIGKILL)
        self.etcd.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = None
    try:
        made = World(tmp_path_factory.mktemp("masters"))
        yield made
    finally:
        if made:
            made.close()


@pytest.fixture
def two(world):
    return world.masters


def session(c, user="bob", password="secret"):
    """A browser that has logged in."""
    b = c.browser()
    assert b.log_in(b.get("/login?then=%2Fx"), user, password).location == "/x"
    return b


def code_at(b, c, name):
    """What the browser gets at the master for its session: a code, or None if it has to log in."""
    b.port = c.port
    answer = b.authorize(name, code_challenge=CHALLENGE, code_challenge_method="S256")
    assert answer.status == 302, answer.text
    return None if answer.location.startswith("/login") else answer.query()["code"]


def test_a_login_ends_at_the_other_master(two):
    """Each step goes to the other master at once: what the step before it has stored is seen."""
    a, b = two
    client(a, "across", grantMethod="prompt")
    for i, (first, second) in enumerate([(a, b), (b, a)] * 4):
        browser = first.browser()
        page = browser.get("/login?then=%2Fx")
        browser.port = second.port
        assert browser.log_in(page, "ann", "sesame").location == "/x"
        browser.port = first.port
        answer = browser.authorize("across", code_challenge=CHALLENGE, code_challenge_method="S256")
        if i == 0:
            form = browser.get(answer.location)
            action, fields = form.fields()
            browser.port = second.port
            answer = browser.post(action, [*fields.items(), ("scope", "user:full"), ("approve", "yes")])
            assert answer.status == 302, answer.text
            browser.port = first.port
            answer = browser.authorize("across", code_challenge=CHALLENGE, code_challenge_method="S256")
        assert answer.status == 302 and answer.location.startswith("https://web.example/cb?code="), (i, answer.location)
        browser.port = second.port
        given = browser.token(code=answer.query()["code"], client_id="across", client_secret="hush", code_verifier=VERIFIER)
        assert given.status == 200, given.text
        token = json.loads(given.text)["access_token"]
        wait_for("the token at the other master", lambda c=first, t=token: c.ask(t, "GET", f"{USERS}/~")[0] == 200)


def test_a_code_is_exchanged_at_one_master_only(two):
    a, b = two
    client(a, "once")
    code = code_at(session(a), b, "once")
    form = {"code": code, "client_id": "once", "client_secret": "hush", "code_verifier": VERIFIER}
    first = a.browser().token(**form)
    assert first.status == 200, first.text
    second = b.browser().token(**form)
    assert second.status == 400 and json.loads(second.text)["error"] == "invalid_grant"
    token = json.loads(first.text)["access_token"]
    for c in two:
        wait_for("the end of the token", lambda c=c: c.ask(token, "GET", f"{USERS}/~")[0] == 401)


def test_keys_rotate_and_old_cookies_end(two):
    a, b = two
    client(a, "rotate")

    def age():
        """Makes the key older than a week, at both masters."""
        a.admin("PATCH", SECRET, {"metadata": {"annotations": {MADE: "2020-01-01T00:00:00Z"}}},
                headers={"Content-Type": "application/merge-patch+json"})

    def keys():
        secret = b.admin("GET", SECRET)
        return secret["metadata"]["annotations"][MADE], secret["data"]

    def rotate():
        """The next request to either makes one new key; both then have it."""
        _, old = keys()
        age()
        b.browser().get("/login")
        a.browser().get("/login")
        wait_for("the new key", lambda: keys()[1]["current"] != old["current"])
        made, new = keys()
        assert new["previous"] == old["current"] and not made.startswith("2020")
        return new

    browsers = [session(a), session(b)]
    kept = [dict(x.cookies) for x in browsers]
    new = rotate()
    # The former key still opens, at both.
    assert all(code_at(x, c, "rotate") for x, c in zip(browsers, [b, a]))
    assert keys()[1] == new
    # A second rotation ends what the first key sealed; sessions of today's key are good at both.
    rotate()
    for cookies, c in zip(kept, [b, a]):
        old = c.browser()
        old.cookies = dict(cookies)
        assert code_at(old, c, "rotate") is None
    assert code_at(session(b), a, "rotate") and code_at(session(a), b, "rotate")
    # So does the deletion of the Secret end all sessions, of both masters.
    live = [session(a), session(b)]
    a.admin("DELETE", SECRET)
    wait_for("another key", lambda: b.browser().get("/login?then=%2Fx").status == 200
             and a.browser().get("/login?then=%2Fx").status == 200)
    assert [code_at(x, c, "rotate") for x, c in zip(live, [b, a])] == [None, None]


def test_changed_cookies_are_none_at_either(two):
    a, b = two
    client(a, "changed")
    good = session(a)
    for c in two:
        for i in range(0, len(good.cookies["ssn"]), 7):
            text = good.cookies["ssn"]
            changed = c.browser()
            changed.cookies = {**good.cookies, "ssn": text[:i] + ("A" if text[i] != "A" else "B") + text[i + 1:]}
            assert code_at(changed, c, "changed") is None, i
        for value in ("", "A", "A" * 4000, good.cookies["ssn"][:40], good.cookies["csrf"]):
            planted = c.browser()
            planted.cookies = {**good.cookies, "ssn": value}
            assert code_at(planted, c, "changed") is None, value
    assert code_at(good, b, "changed")


def test_a_session_ends_with_its_user(two):
    """The deletion at one master is seen by the next request to the other."""
    a, b = two
    client(a, "ends")
    browser = session(a, "sam", "shh")
    a.admin("DELETE", f"{USERS}/sam")
    assert code_at(browser, b, "ends") is None


def test_what_is_stored_is_encrypted_at_rest(world, two):
    """Writes of the OAuth server pass the same encryption as those of the API: both values of a transaction."""
    a, _ = two
    client(a, "rest")
    assert code_at(session(a), a, "rest")
    assert login(a, response_type="token").status == 302
    a.browser().authorize(CHALLENGING, headers=ASKED)
    assert a.admin("GET", TOKENS)["items"] and a.admin("GET", CODES)["items"]
    found = world.etcd.ctl("get", "/registry/", "--prefix", "-w", "json")
    seen = set()
    for kv in json.loads(found.stdout)["kvs"]:
        key = base64.b64decode(kv["key"]).decode()
        for kind in ("/secrets/", "/users/", "/useridentities/", "/identities/", "/oauthaccesstokens/",
                     "/oauthauthorizetokens/"):
            if kind in key:
                seen.add(kind)
                assert base64.b64decode(kv["value"]).startswith(b"k8s:enc:aesgcm:v1:a:"), key
    assert {"/secrets/", "/users/", "/oauthaccesstokens/", "/oauthauthorizetokens/"} <= seen, seen
    assert seen & {"/identities/", "/useridentities/"}
