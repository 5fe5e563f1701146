# SPDX-License-Identifier: Apache-2.0
"""OAuth tokens of the API of a real master: what they allow, how they end, and what becomes of them."""
import http.client
import signal
import threading

import pytest

from lab import wait_for
from oauth_objects import ALLOWED, CLIENT, CLIENTS, CODES, IDENTITIES, OWN, TOKENS, USERS, make_client, make_token, make_user, name_of
from test_auth import Cluster

PROJECTS = "/apis/project.openshift.io/v1/projects"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n"


@pytest.fixture
def c(tmp_path):
    (tmp_path / "audit.yaml").write_text(POLICY)
    made = Cluster(str(tmp_path), {"auditConfig": {"policyFile": str(tmp_path / "audit.yaml"), "auditFilePath": str(tmp_path / "audit.log")}})
    make_client(made)
    yield made
    made.stop(signal.SIGKILL)


def test_a_person_with_a_token(c):
    uid = make_user(c, "jane")
    token = make_token(c, "jane", uid)
    me = c.ask(token, "GET", f"{USERS}/~", want=200)
    assert (me["metadata"]["name"], me["metadata"]["uid"]) == ("jane", uid)
    assert me["groups"] == ["system:authenticated", "system:authenticated:oauth"]
    assert c.ask("", "GET", f"{USERS}/~?access_token={token}", want=200)["metadata"]["name"] == "jane"
    review = c.review(token)
    assert review["authenticated"] and review["user"]["username"] == "jane"
    assert review["user"]["extra"] == {"scopes.authorization.openshift.io": ["user:full"]}
    bad = c.review(token[:-1] + ("A" if token[-1] != "A" else "B"))
    assert not bad["authenticated"] and bad["error"] == "not a valid OAuth token"


def test_rights_are_those_of_both_lists(c):
    uid = make_user(c, "jane")
    c.namespace("red")
    c.namespace("blue")
    for ns in ("red", "blue"):
        c.bind(ns, "jane", "admin", user="jane")
    full = make_token(c, "jane", uid)
    viewer = make_token(c, "jane", uid, ["user:info", "user:list-scoped-projects", "role:admin:red"])
    lister = make_token(c, "jane", uid, ["user:list-projects"])

    def projects(who):
        return [p["metadata"]["name"] for p in c.ask(who, "GET", PROJECTS, want=200)["items"]]
    assert projects(full) == projects(lister) == ["blue", "red"]
    assert projects(viewer) == ["red"]
    for who, path, want in ((full, "/api/v1/namespaces/blue/secrets", 200), (viewer, "/api/v1/namespaces/red/configmaps", 200),
                            (viewer, "/api/v1/namespaces/blue/configmaps", 403), (viewer, "/api/v1/namespaces/red/secrets", 403),
                            (viewer, f"{USERS}/~", 200), (lister, f"{USERS}/~", 403), (viewer, "/apis", 200), (viewer, "/version", 200)):
        assert c.ask(who, "GET", path)[0] == want, (who, path)
    answer = c.ask(viewer, "GET", "/api/v1/namespaces/red/secrets", want=403)
    assert "prevent this action" in answer["message"] and "role:admin:red" in answer["message"]
    # A token is not exchanged for a wider one.
    assert c.ask(viewer, "POST", "/api/v1/namespaces/red/serviceaccounts/default/token", {"spec": {}})[0] == 403
    rules = c.ask(full, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "red"}}, want=201)
    fewer = c.ask(make_token(c, "jane", uid, ["user:check-access", "role:view:red"]), "POST",
                  "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "red"}}, want=201)

    def may(review, verb, resource):
        return any((verb in r["verbs"] or "*" in r["verbs"]) and resource in r["resources"] for r in review["status"]["resourceRules"])
    assert may(rules, "delete", "configmaps") and may(fewer, "get", "configmaps")
    assert not may(fewer, "delete", "configmaps") and not may(fewer, "get", "secrets")


def test_own_tokens_are_listed_and_deleted(c):
    uid, other = make_user(c, "jane"), make_user(c, "joe")
    mine, second, his = make_token(c, "jane", uid), make_token(c, "jane", uid), make_token(c, "joe", other)
    listed = c.ask(mine, "GET", OWN, want=200)["items"]
    assert sorted(t["metadata"]["name"] for t in listed) == sorted([name_of(mine), name_of(second)])
    assert {t["kind"] if "kind" in t else "UserOAuthAccessToken" for t in listed} == {"UserOAuthAccessToken"}
    c.ask(mine, "GET", f"{OWN}/{name_of(his)}", want=404)
    c.ask(mine, "DELETE", f"{OWN}/{name_of(his)}", want=404)
    c.ask(mine, "DELETE", f"{TOKENS}/{name_of(his)}", want=404)
    c.ask(mine, "GET", TOKENS, want=403)
    c.ask(mine, "DELETE", f"{OWN}/{name_of(second)}", want=200)
    c.ask(second, "GET", f"{USERS}/~", want=401)
    # Clients before 4.6 log out by the token itself.
    c.ask(mine, "DELETE", f"{TOKENS}/{mine}", want=200)
    c.ask(mine, "GET", f"{USERS}/~", want=401)
    c.ask(his, "GET", f"{USERS}/~", want=200)
    log = (c.dir / "audit.log").read_text()
    assert name_of(mine) in log
    for secret in (mine, second, his, "the-clients-secret"):
        assert secret not in log and secret.removeprefix("sha256~") not in log


def test_a_deleted_user_is_logged_out_for_good(c):
    uid = make_user(c, "jane")
    token = make_token(c, "jane", uid)
    c.admin("POST", ALLOWED, {"userName": "jane", "userUID": uid, "clientName": CLIENT, "scopes": ["user:info"]}, 201)
    c.admin("POST", IDENTITIES, {"providerName": "ldap", "providerUserName": "jane", "user": {"name": "jane", "uid": uid}}, 201)
    c.ask(token, "GET", f"{USERS}/~", want=200)
    c.admin("DELETE", f"{USERS}/jane")
    c.ask(token, "GET", f"{USERS}/~", want=401)
    make_user(c, "jane")
    c.ask(token, "GET", f"{USERS}/~", want=401)
    wait_for("the token and the authorization to go", lambda: not c.admin("GET", TOKENS)["items"] and
             not c.admin("GET", ALLOWED)["items"])
    wait_for("the identity to be free", lambda: "name" not in c.admin("GET", f"{IDENTITIES}/ldap:jane").get("user", {}))


def test_a_deleted_client_takes_its_tokens_along(c):
    token = make_token(c, "jane", make_user(c, "jane"))
    c.ask(token, "GET", f"{USERS}/~", want=200)
    c.admin("DELETE", f"{CLIENTS}/{CLIENT}")
    wait_for("the token to go", lambda: c.ask(token, "GET", f"{USERS}/~")[0] == 401)


def test_a_watch_ends_with_its_token(c):
    c.namespace("red")
    uid = make_user(c, "jane")
    c.bind("red", "jane", "view", user="jane")
    token = make_token(c, "jane", uid)
    seen, ended = threading.Event(), threading.Event()

    def watch():
        conn = http.client.HTTPSConnection("127.0.0.1", c.port, context=c.context(), timeout=120)
        conn.request("GET", "/api/v1/namespaces/red/configmaps?watch=1&timeoutSeconds=100", headers={"Authorization": f"Bearer {token}"})
        answer = conn.getresponse()
        while answer.readline():
            seen.set()
        ended.set()
        conn.close()
    threading.Thread(target=watch, daemon=True).start()
    c.admin("POST", "/api/v1/namespaces/red/configmaps", {"metadata": {"name": "a"}}, 201)
    assert seen.wait(60) and not ended.is_set()
    c.admin("DELETE", f"{TOKENS}/{name_of(token)}")
    assert ended.wait(60)


def test_ended_tokens_and_codes_are_deleted(c):
    uid = make_user(c, "jane")
    token = make_token(c, "jane", uid, expiresIn=1)
    code = {"metadata": {"name": name_of("sha256~code")}, "userName": "jane", "userUID": uid, "clientName": CLIENT,
            "redirectURI": "https://shop.example.com/", "expiresIn": 1, "scopes": ["user:full"]}
    c.admin("POST", CODES, code, 201)
    wait_for("the token to end", lambda: c.ask(token, "GET", f"{USERS}/~")[0] == 401)
    wait_for("both to go", lambda: not c.admin("GET", TOKENS)["items"] and not c.admin("GET", CODES)["items"])
    c.admin("GET", f"{USERS}/jane")
