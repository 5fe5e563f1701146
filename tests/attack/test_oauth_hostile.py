# SPDX-License-Identifier: Apache-2.0
"""Attacks on the OAuth server, by strangers, by clients, and by other users; each with its allowed counterpart."""
import concurrent.futures
import json
import re
import signal
import time
import urllib.parse

import pytest

import test_oauth as server
from lab import wait_for
from oauth_client import CHALLENGE, VERIFIER, basic

BOB = basic("bob", "secret")
SCRIPT = "\"'><script>alert(1)</script>"


@pytest.fixture
def c(tmp_path):
    made = server.OAuth(str(tmp_path))
    server.client(made)
    yield made
    made.stop(signal.SIGKILL)


def test_no_parameter_becomes_markup(c):
    b = c.browser()
    evil = urllib.parse.quote(SCRIPT, safe="")
    paths = [f"/login/files?then=%2F{evil}&reason={evil}", f"/login?then=%2F&reason={evil}", f"/oauth/token/display?error={evil}",
             f"/oauth/token/display?code={evil}", f"/oauth2callback/{evil}?state={evil}", f"/oauth2callback/files?error={evil}",
             f"/oauth/authorize/approve?then={evil}", f"/oauth/authorize?client_id={evil}",
             f"/oauth/authorize?client_id=web&response_type={evil}&state={evil}", f"/login/{evil}?then=%2F"]
    for path in paths:
        answer = b.get(path)
        assert "<script" not in answer.text, path
        assert "script-src" not in answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_no_parameter_becomes_a_header(c):
    b = c.browser()
    for evil in ["x\r\nSet-Cookie: ssn=evil", "x\nX-Evil: 1", "x\r\n\r\nbody"]:
        answer = b.authorize("web", headers=BOB, state=evil)
        assert answer.query()["state"] == evil  # control: it comes back, escaped
        assert "X-Evil" not in answer.headers and "evil" not in str(answer.headers.get_all("Set-Cookie"))
        assert b.get("/login?then=" + urllib.parse.quote("/" + evil)).location == "/"


def test_a_proof_cannot_be_left_out_or_weakened(c):
    b = c.browser()
    form = {"client_id": "web", "client_secret": "hush"}
    for verifier in [{}, {"code_verifier": ""}, {"code_verifier": CHALLENGE}, {"code_verifier": VERIFIER, "x": "1"}]:
        code = server.code_of(c, b, code_challenge=CHALLENGE, code_challenge_method="S256")
        status = b.token(code=code, **form, **verifier).status
        assert (status == 200) == (verifier.get("code_verifier") == VERIFIER)
    assert b.authorize("web", headers=BOB, code_challenge=CHALLENGE, code_challenge_method="none").query()["error"] == "invalid_request"


def test_a_code_of_another_client_is_no_code(c):
    server.client(c, "other", secret="other")
    b = c.browser()
    code = server.code_of(c, b)
    assert b.token(code=code, client_id="other", client_secret="other").status == 400
    assert b.token(code=code, client_id="web", client_secret="hush").status == 200


def test_one_code_gives_one_token_to_many_at_once(c):
    b = c.browser()
    code = server.code_of(c, b)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: c.browser().token(code=code, client_id="web", client_secret="hush"), range(8)))
    good = [json.loads(a.text)["access_token"] for a in got if a.status == 200]
    assert len(good) == 1 and all(json.loads(a.text)["error"] == "invalid_grant" for a in got if a.status != 200)
    wait_for("the token's end, because its code was used twice",
             lambda: c.ask(good[0], "GET", f"{server.USERS}/~")[0] == 401)


def test_the_form_of_another_user_or_page_is_refused(c):
    server.client(c, "asks", grantMethod="prompt")
    bob, ann = c.browser(), c.browser()
    action, fields = bob.get(bob.authorize("asks", headers=BOB).location).fields()
    ann_page = ann.get(ann.authorize("asks", headers=basic("ann", "sesame")).location)
    approve = [*fields.items(), ("scope", "user:full"), ("approve", "yes")]
    assert ann.post(action, approve).status == 403
    assert bob.post(action, approve, headers={"Origin": "https://evil.example"}).status == 403
    assert c.admin("GET", server.GRANTS)["items"] == []
    _, own = ann_page.fields()
    assert ann.post(action, [*own.items(), ("scope", "user:full"), ("approve", "yes")]).status == 302
    assert [g["userName"] for g in c.admin("GET", server.GRANTS)["items"]] == ["ann"]


def test_names_of_users_cannot_be_told_from_answers(c):
    known, unknown = server.login(c, "bob", "wrong"), server.login(c, "nobody", "wrong")
    assert (known.status, known.text) == (unknown.status, unknown.text) == (401, "")
    drop = {"Audit-Id", "Date"}
    assert [h for h in known.headers.items() if h[0] not in drop] == [h for h in unknown.headers.items() if h[0] not in drop]


def test_a_token_or_certificate_is_no_login(c):
    token = server.login(c, response_type="token").query()["access_token"]
    b = c.browser()
    assert b.authorize("web", headers={"Authorization": f"Bearer {token}"}).location.startswith("/login")
    assert b.get(f"/oauth/authorize?client_id=web&response_type=code&access_token={token}").location.startswith("/login")
    assert b.get("/apis/user.openshift.io/v1/users/~", headers=BOB).status == 401
    status, _ = c.ask(token, "GET", f"{server.USERS}/~")
    assert status == 200


def test_a_flood_of_wrong_passwords_leaves_reads_alone(c):
    """Reads are answered while logins are refused, and the right password still works afterwards."""
    until = time.monotonic() + 3

    def guess(i):
        seen = []
        while time.monotonic() < until:
            seen.append(server.login(c, f"user{i}", "wrong").status)
        return seen

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        guesses = [pool.submit(guess, i) for i in range(16)]
        reads = 0
        while time.monotonic() < until:
            c.admin("GET", "/api/v1/namespaces/default")
            reads += 1
        answers = {s for g in guesses for s in g.result()}
    assert reads and answers <= {401, 429, 500}
    wait_for("a login", lambda: server.login(c).status == 302, deadline=60)


def test_guessed_codes_are_delayed(c):
    """A public client has no secret, so everybody can send codes for it: an address that guesses must wait."""
    c.admin("POST", server.CLIENTS, {"metadata": {"name": "public"}, "grantMethod": "auto", "redirectURIs": ["https://web.example/cb"]},
            201)
    b = c.browser()

    def guess(i):
        return b.token(code=f"sha256~{i:043d}", client_id="public", redirect_uri="https://web.example/cb").status
    answers = [guess(i) for i in range(40)]
    assert set(answers) == {400, 429} and answers.index(429) >= 10
    code = b.authorize("public", headers=BOB, redirect_uri="https://web.example/cb").query()["code"]
    wait_for("the right code to be taken", lambda: b.token(
        code=code, client_id="public", redirect_uri="https://web.example/cb").status == 200, deadline=60)


def test_the_log_has_no_secrets(c):
    b = c.browser()
    code = server.code_of(c, b)
    token = json.loads(b.token(code=code, client_id="web", client_secret="hush").text)["access_token"]
    b.token(code=code, client_id="web", client_secret="hush")
    server.login(c, "bob", "wrongpassword")
    b.log_in(b.get("/login?then=%2F"), "bob", "secret")
    text = c.text()
    for secret in [code, token, "hush", "wrongpassword", b.cookies["ssn"], b.cookies["csrf"]]:
        assert secret not in text
    assert re.search(r"login refused.*user=\"?bob", text)
