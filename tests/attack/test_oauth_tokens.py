# SPDX-License-Identifier: Apache-2.0
"""OAuth tokens in hostile hands: wider scopes, tokens that are over, guessed names, other people's tokens, and the log."""
import base64
import time

import pytest

from lab import wait_for
from oauth_objects import CLIENT, CODES, OWN, TOKENS, USERS, make_client, make_token, make_user, name_of
from people import MERGE, RED, People
from test_auth import RBAC

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SCOPES = "Impersonate-Extra-Scopes.authorization.openshift.io"


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("oauth-tokens")
    people = People(str(tmp), auditConfig={"auditFilePath": str(tmp / "audit.log")})
    people.audit = tmp / "audit.log"
    make_client(people)
    people.uid = {name: make_user(people, name) for name in ("ada", "ed", "mallory")}
    people.bind(None, "boss", "cluster-admin", user="mallory")
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def token_of(c, name, *scopes, **more):
    return make_token(c, name, c.uid[name], scopes or ("user:full",), **more)


def test_a_scope_is_not_widened(c):
    """Not even by a cluster administrator's token: its scopes hold for all that it asks."""
    control, narrow = token_of(c, "mallory"), token_of(c, "mallory", "user:info", "role:edit:red")
    secret = f"{RED}/secrets/own"
    assert c.ask(control, "GET", secret)[0] == 200
    token = {"metadata": {"name": name_of("sha256~x")}, "userName": "mallory", "userUID": c.uid["mallory"], "clientName": CLIENT,
             "redirectURI": "https://a/", "scopes": ["user:full"]}
    binding = {"metadata": {"name": "wide"}, "subjects": [{"kind": "User", "name": "mallory"}],
               "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}
    tries = [("GET", secret, None, None), ("LIST", f"{RED}/secrets", None, None), ("GET", "/api/v1/namespaces/blue/configmaps", None, None),
             ("POST", TOKENS, token, None), ("PATCH", f"{TOKENS}/{name_of(narrow)}", {"scopes": ["user:full"]}, MERGE),
             ("POST", f"{RBAC}/clusterrolebindings", binding, None), ("POST", f"{RBAC}/namespaces/red/rolebindings", binding, None),
             ("POST", f"{RED}/serviceaccounts/default/token", {"spec": {}}, None),
             ("GET", secret, None, {"Impersonate-User": "mallory"}), ("GET", secret, None, {"Impersonate-User": "system:admin"}),
             ("GET", secret, None, {"Impersonate-User": "mallory", SCOPES: "user:full"}),
             ("GET", secret, None, {"Impersonate-User": "system:admin", "Impersonate-Group": "system:masters"})]
    for method, path, body, headers in tries:
        status, answer = c.ask(narrow, "GET" if method == "LIST" else method, path, body, headers)
        assert status == 403, (method, path, headers, answer)
    assert c.ask(narrow, "GET", f"{RED}/configmaps/own")[0] == 200
    assert c.admin("GET", f"{TOKENS}/{name_of(narrow)}")["scopes"] == ["user:info", "role:edit:red"]


def test_scopes_limit_the_impersonated(c):
    boss = token_of(c, "mallory")
    ask = {"spec": {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "red"}}}
    assert c.ask(boss, "GET", f"{RED}/configmaps", headers={"Impersonate-User": "ada"})[0] == 200
    assert c.ask(boss, "GET", f"{RED}/configmaps", headers={"Impersonate-User": "ada", SCOPES: "user:info"})[0] == 403
    for given in ("", "user:root", "role:admin:blue"):
        assert c.ask(boss, "GET", f"{RED}/configmaps", headers={"Impersonate-User": "ada", SCOPES: given})[0] == 403
    status = c.ask(boss, "POST", ACCESS, ask, {"Impersonate-User": "ada", SCOPES: "user:check-access"}, want=201)["status"]
    assert not status["allowed"]


def test_the_name_of_a_token_is_no_credential(c):
    token = token_of(c, "ada")
    assert c.ask(token, "GET", f"{USERS}/~")[0] == 200
    for guess in (name_of(token), name_of(name_of(token)), token[7:], "sha256~" + token, token.upper(), token[:-1], token + "A",
                  "sha256~" + "A" * 43):
        status, answer = c.ask(guess, "GET", f"{USERS}/~")
        assert (status, answer["message"]) == (401, "Unauthorized"), guess


def test_nothing_is_learned_from_a_refusal(c):
    """Over, deleted, of a user made anew, never there: the same bytes."""
    over, deleted, stale = token_of(c, "ada", expiresIn=1), token_of(c, "ada"), make_token(c, "ada", "another-uid")
    c.admin("DELETE", f"{TOKENS}/{name_of(deleted)}")
    wait_for("the token to end", lambda: c.ask(over, "GET", f"{USERS}/~")[0] == 401)
    answers = {str(c.ask(t, "GET", f"{USERS}/~")) for t in (over, deleted, stale, "sha256~" + "B" * 43)}
    assert len(answers) == 1
    # Nor is it seen whether a name of somebody else's token exists.
    mine, his = token_of(c, "ed"), token_of(c, "ada")
    for place in (TOKENS, OWN):
        real = c.ask(mine, "DELETE", f"{place}/{name_of(his)}")
        none = c.ask(mine, "DELETE", f"{place}/{name_of('sha256~none')}")
        assert real[0] == none[0] == 404
        assert real[1]["message"].replace(name_of(his), "X") == none[1]["message"].replace(name_of("sha256~none"), "X")
    assert c.ask(his, "GET", f"{USERS}/~")[0] == 200


def test_a_user_made_anew_has_no_old_tokens(c):
    uid = make_user(c, "phoenix")
    token = make_token(c, "phoenix", uid)
    assert c.ask(token, "GET", f"{USERS}/~")[0] == 200
    c.admin("DELETE", f"{USERS}/phoenix")
    again = make_user(c, "phoenix")
    assert again != uid
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        assert c.ask(token, "GET", f"{USERS}/~")[0] == 401
    assert c.ask(make_token(c, "phoenix", again), "GET", f"{USERS}/~")[0] == 200


@pytest.mark.parametrize("who", ["ed", "ada", "nobody"])
def test_a_tenant_writes_no_tokens(c, who):
    """Not those of project administrators either: neither tokens nor codes, nor clients with secrets."""
    person = getattr(c, who)
    body = {"metadata": {"name": name_of("sha256~y")}, "userName": "mallory", "userUID": c.uid["mallory"], "clientName": CLIENT,
            "redirectURI": "https://a/", "expiresIn": 60, "scopes": ["user:full"]}
    for place in (TOKENS, CODES, OWN):
        assert c.ask(person, "POST", place, body)[0] in (403, 405)
    for place in (TOKENS, CODES, "/apis/oauth.openshift.io/v1/oauthclients", "/apis/oauth.openshift.io/v1/oauthclientauthorizations"):
        assert c.ask(person, "GET", place)[0] == 403
    assert c.ask(person, "DELETE", f"{TOKENS}")[0] == 403


def test_system_users_have_no_tokens(c):
    for name in ("system:admin", "system:serviceaccount:red:default", "a/b", "~", ""):
        body = {"metadata": {"name": name_of("sha256~z")}, "userName": name, "userUID": "1", "clientName": CLIENT,
                "redirectURI": "https://a/", "scopes": ["user:full"]}
        c.admin("POST", TOKENS, body, want=422)


def test_no_token_is_in_a_log(c):
    token, websocket = token_of(c, "ada"), token_of(c, "ada")
    protocol = base64.urlsafe_b64encode(websocket.encode()).decode().rstrip("=")
    c.ask("", "GET", f"{USERS}/~?access_token={token}", want=200)
    c.ask("", "GET", f"{USERS}/~", headers={"Connection": "Upgrade", "Upgrade": "websocket",
                                            "Sec-WebSocket-Protocol": f"base64url.bearer.authorization.k8s.io.{protocol}"}, want=200)
    c.ask(token, "DELETE", f"{TOKENS}/{token}", want=200)
    c.ask(websocket, "DELETE", f"{OWN}/{websocket}", want=200)
    c.review(token)
    log, text = c.audit.read_text(), c.text()
    assert name_of(token) in log and name_of(websocket) in log
    for secret in (token[7:], websocket[7:], protocol, "the-clients-secret"):
        assert secret not in log and secret not in text
