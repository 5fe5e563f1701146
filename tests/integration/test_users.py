# SPDX-License-Identifier: Apache-2.0
"""Users, groups, identities and their mappings: a real `tenet master` on SQLite and on etcd, with users who have certificates."""
import http.client
import json
import random
import signal
import tempfile
import threading
import time
import urllib.parse

import pytest

import ha
from lab import TENET, run, wait_for
from test_auth import Cluster, pods
from test_tls import make_pki

USERS = "/apis/user.openshift.io/v1/users"
GROUPS = "/apis/user.openshift.io/v1/groups"
IDENTITIES = "/apis/user.openshift.io/v1/identities"
MAPPINGS = "/apis/user.openshift.io/v1/useridentitymappings"
KINDS = (USERS, GROUPS, IDENTITIES, MAPPINGS)
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture
def etcd():
    with tempfile.TemporaryDirectory(prefix="tenet-users-") as tmp:
        made = ha.Etcd(tmp)
        yield made
        made.close()


@pytest.fixture(params=["sqlite", "etcd"])
def c(request, tmp_path):
    """A master on each store."""
    extra = {}
    if request.param == "etcd":
        extra["storage"] = {"backend": "etcd", "endpoints": request.getfixturevalue("etcd").endpoints}
    made = Cluster(str(tmp_path), extra)
    made.admin("GET", USERS)
    yield made
    made.stop(signal.SIGKILL)


@pytest.fixture
def plain(tmp_path):
    """A master on SQLite."""
    made = Cluster(str(tmp_path))
    yield made
    made.stop(signal.SIGKILL)


def user(name, **more):
    return {"metadata": {"name": name}, **more}


def group(name, *users):
    return {"metadata": {"name": name}, "users": list(users)}


def identity(name):
    return {"providerName": "ldap", "providerUserName": name}


def mapping(name, to):
    return {"identity": {"name": f"ldap:{name}"}, "user": {"name": to}}


def self_of(c, **kw):
    """Name and groups of the administrator's own user."""
    answer = c.admin("GET", f"{USERS}/~", **kw)
    return answer["metadata"]["name"], answer["groups"]


# ---- oneself ----

def test_each_user_asks_for_itself(plain):
    c = plain
    jane = c.user("jane", "zoo", "dev")
    me = c.ask(jane, "GET", f"{USERS}/~", want=200)
    assert (me["kind"], me["metadata"]["name"], me["groups"]) == ("User", "jane", ["dev", "system:authenticated", "zoo"])
    assert "uid" not in me["metadata"] and "resourceVersion" not in me["metadata"]
    # With an object: its fields, with the groups of the request.
    made = c.admin("POST", USERS, user("jane", fullName="Jane Doe"), 201)
    c.admin("POST", GROUPS, group("team", "jane"), 201)
    me = c.ask(jane, "GET", f"{USERS}/~", want=200)
    assert me["fullName"] == "Jane Doe" and me["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert me["groups"] == ["dev", "system:authenticated", "team", "zoo"]
    assert c.whoami(jane)["groups"][-1] == "team"
    assert made["groups"] == [] and c.admin("GET", f"{USERS}/jane")["groups"] == []
    # An account, the administrator, an impersonated user, and nobody.
    account = c.ask(c.token("default", "default"), "GET", f"{USERS}/~", want=200)
    assert account["metadata"]["name"] == "system:serviceaccount:default:default" and account["metadata"]["uid"]
    assert account["groups"] == ["system:authenticated", "system:serviceaccounts", "system:serviceaccounts:default"]
    assert self_of(c) == ("root", ["system:authenticated", "system:masters"])
    assert self_of(c, headers={"Impersonate-User": "jane"}) == ("jane", ["system:authenticated", "system:authenticated:oauth", "team"])
    assert self_of(c, headers={"Impersonate-User": "jane", "Impersonate-Group": "x"}) == ("jane", ["system:authenticated", "x"])
    assert c.ask(None, "GET", f"{USERS}/~")[0] == 403
    # Of others nothing is told, and nothing is made under this name.
    for path in (f"{USERS}/jane", USERS, f"{USERS}/~?watch=1", f"{USERS}?fieldSelector=metadata.name%3D~"):
        assert c.ask(jane, "GET", path)[0] == 403, path
    for method in ("PUT", "PATCH", "DELETE"):
        assert c.ask(jane, method, f"{USERS}/~", user("~"), headers=MERGE)[0] == 403, method
    assert "may not equal" in c.admin("POST", USERS, user("~"), 422)["message"]
    assert c.admin("PUT", f"{USERS}/~", user("~"), 404)
    # As Table, as kubectl and oc ask for it.
    table = c.ask(jane, "GET", f"{USERS}/~", headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, want=200)
    assert [d["name"] for d in table["columnDefinitions"]] == ["Name", "UID", "Full Name", "Identities"]
    assert table["rows"][0]["cells"][0] == "jane"


def test_names_of_people_are_taken_as_they_are(c):
    """Blanks, at signs, capitals and umlauts; what a path cannot say is refused."""
    for name in ("Jürgen Müller@example.com", "JANE", "a b", "b64:YTpi", "x" * 253):
        c.admin("POST", USERS, user(name), 201)
        at = f"{USERS}/{urllib.parse.quote(name)}"
        assert c.admin("GET", at)["metadata"]["name"] == name
        c.admin("DELETE", at)
    for name in ("a/b", "a%b", ".", "..", "~", "a:b", "system:admin", "b64:", "b64:?", "x" * 254):
        assert c.ask(c._admin, "POST", USERS, user(name))[0] == 422, name
    assert c.admin("GET", USERS)["items"] == []


def test_the_command_line(plain):
    c = plain
    (c.dir / "objects.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "user.openshift.io/v1", "kind": "User", **user("jane", fullName="Jane Doe")},
        {"apiVersion": "user.openshift.io/v1", "kind": "Identity", **identity("jane"), "metadata": {"name": "ldap:jane"}},
        {"apiVersion": "user.openshift.io/v1", "kind": "Group", **group("dev", "jane", "joe")},
        {"apiVersion": "user.openshift.io/v1", "kind": "UserIdentityMapping", "metadata": {"name": "ldap:jane"},
         **mapping("jane", "jane")}]}))
    for tool in (c.kubectl, c.tenet):
        assert tool("create", "-f", c.dir / "objects.json").stdout.split() == [
            "user.user.openshift.io/jane", "created", "identity.user.openshift.io/ldap:jane", "created",
            "group.user.openshift.io/dev", "created", "useridentitymapping.user.openshift.io/ldap:jane", "created"]
        lines = tool("get", "users").stdout.splitlines()
        assert lines[0].split() == ["NAME", "UID", "FULL", "NAME", "IDENTITIES"]
        uid = c.admin("GET", f"{USERS}/jane")["metadata"]["uid"]
        assert lines[1].split() == ["jane", uid, "Jane", "Doe", "ldap:jane"]
        lines = tool("get", "groups").stdout.splitlines()
        assert [line.split() for line in lines] == [["NAME", "USERS"], ["dev", "jane,", "joe"]]
        lines = tool("get", "identities").stdout.splitlines()
        assert lines[0].split() == "NAME IDP NAME IDP USER NAME USER NAME USER UID".split()
        assert lines[1].split() == ["ldap:jane", "ldap", "jane", "jane", uid]
        lines = tool("get", "useridentitymapping", "ldap:jane").stdout.splitlines()
        assert lines[0].split() == "NAME IDENTITY USER NAME USER UID".split()
        assert lines[1].split() == ["ldap:jane", "ldap:jane", "jane", uid]
        assert "Users" in tool("describe", "group", "dev").stdout
        tool("delete", "useridentitymapping", "ldap:jane")
        tool("delete", "users/jane", "identities/ldap:jane", "groups/dev")
        assert c.admin("GET", USERS)["items"] == c.admin("GET", IDENTITIES)["items"] == []


def test_whoami_and_groups_by_the_command_line(plain):
    c = plain
    crt, key = make_pki(c.dir, "jane", "/CN=jane", ca=c.ca)
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "red/jane",
              "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{c.port}",
                                                     "certificate-authority": str(c.pki / "ca.crt")}}],
              "contexts": [{"name": "red/jane", "context": {"cluster": "c", "user": "u"}}],
              "users": [{"name": "u", "user": {"client-certificate": crt, "client-key": key}}]}
    path = c.dir / "jane.kubeconfig"
    path.write_text(json.dumps(config))

    def as_jane(*args, **kw):
        return run([TENET, *args, "--kubeconfig", path], **kw)
    assert as_jane("whoami").stdout == "jane\n"
    assert as_jane("whoami", "-c").stdout == "red/jane\n"
    assert as_jane("whoami", "--show-server").stdout == f"https://127.0.0.1:{c.port}\n"
    r = as_jane("whoami", "-t", check=False)
    assert r.returncode == 1 and "no token is currently in use" in r.stderr
    config["users"][0]["user"] = {"token": c.token("default", "default")}
    path.write_text(json.dumps(config))
    assert as_jane("whoami").stdout == "system:serviceaccount:default:default\n"
    assert as_jane("whoami", "-t").stdout == config["users"][0]["user"]["token"] + "\n"
    # Members by the command line have the group's rights.
    c.role(None, "reader", pods("list"))
    c.bind(None, "readers", "reader", group="readers")
    jane = c.user("jane")
    assert c.tenet("adm", "groups", "new", "readers").stdout == "group.user.openshift.io/readers created\n"
    c.tenet("adm", "groups", "add-users", "readers", "jane", "joe")
    assert c.ask(jane, "GET", "/api/v1/pods")[0] == 200
    c.tenet("adm", "groups", "remove-users", "readers", "jane")
    assert c.ask(jane, "GET", "/api/v1/pods")[0] == 403


# ---- groups ----

def test_a_member_has_the_rights_of_its_groups_at_once(c):
    c.role(None, "reader", pods("list"))
    c.bind(None, "readers", "reader", group="readers")
    jane, joe = c.user("jane"), c.user("joe")
    listing = "/api/v1/namespaces/default/pods"

    def rights():
        return tuple(c.ask(who, "GET", listing)[0] for who in (jane, joe))
    assert rights() == (403, 403)
    c.admin("POST", GROUPS, group("readers", "jane"), 201)
    assert rights() == (200, 403)
    for _ in range(20):
        c.admin("PUT", f"{GROUPS}/readers", group("readers", "joe"))
        assert rights() == (403, 200)
        c.admin("PATCH", f"{GROUPS}/readers", {"users": ["jane"]}, headers=MERGE)
        assert rights() == (200, 403)
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}}
    asked = c.ask(jane, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, want=201)["status"]
    assert asked["allowed"] and 'to Group "readers"' in asked["reason"]
    rules = c.ask(jane, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}},
                  want=201)["status"]["resourceRules"]
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]} in rules
    # In a review of others the groups are those that it names.
    for groups, allowed in (([], False), (["readers"], True)):
        review["spec"].update(user="jane", groups=groups)
        assert c.admin("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review,
                       201)["status"]["allowed"] == allowed
    # After a restart, too.
    c.stop()
    c.start()
    assert rights() == (200, 403)
    c.admin("DELETE", f"{GROUPS}/readers")
    assert rights() == (403, 403)
    c.admin("POST", GROUPS, group("readers"), 201)
    assert rights() == (403, 403)


def test_a_member_sees_and_loses_a_project(plain):
    c = plain
    c.namespace("red")
    c.bind("red", "team", "view", group="team")
    wait_for("the role's rules", lambda: c.kubectl("auth", "can-i", "get", "pods", "-n", "red", "--as", "x", "--as-group", "team",
                                                   check=False).returncode == 0)
    jane = c.user("jane")

    def projects():
        return [p["metadata"]["name"] for p in c.ask(jane, "GET", "/apis/project.openshift.io/v1/projects", want=200)["items"]]
    assert projects() == []
    c.admin("POST", GROUPS, group("team", "jane"), 201)
    assert projects() == ["red"]
    c.admin("PATCH", f"{GROUPS}/team", {"users": []}, headers=MERGE)
    assert projects() == []


SYSTEM = ("system:masters", "system:cluster-admins", "system:cluster-readers", "system:nodes", "system:authenticated",
          "system:authenticated:oauth", "system:serviceaccounts:kube-system")


def test_groups_of_the_system_cannot_be_had_by_an_object(c, request):
    eve = c.user("eve")
    for name in SYSTEM:
        for method, path in (("POST", GROUPS), ("PUT", f"{GROUPS}/{name}")):
            status, answer = c.ask(c.user("root", "system:masters"), method, path, group(name, "eve"))
            assert status in (404, 422), (method, name, answer)
        status, answer = c.ask(c._admin, "PATCH", f"{GROUPS}/{name}?fieldManager=x", {
            "apiVersion": "user.openshift.io/v1", "kind": "Group", **group(name, "eve")}, headers=APPLY)
        assert status == 422, answer
    # Nor by bytes that some other program put into the store.
    if "etcd" in request.node.name:
        etcd = request.getfixturevalue("etcd")
        for name in SYSTEM:
            etcd.ctl("put", f"/registry/user.openshift.io/groups/{name}", json.dumps(
                {"apiVersion": "user.openshift.io/v1", "kind": "Group", **group(name, "eve")}))
        wait_for("the groups", lambda: len(c.admin("GET", GROUPS)["items"]) == len(SYSTEM))
    assert c.whoami(eve)["groups"] == ["system:authenticated"]
    for path in ("/api/v1/nodes", "/api/v1/namespaces/kube-system/secrets", GROUPS, USERS):
        assert c.ask(eve, "GET", path)[0] == 403, path
    # A member that is a user of the system is none.
    for name in ("system:anonymous", "system:admin", "system:serviceaccount:default:default", "system:node:n1", "~", "a/b", ""):
        assert c.ask(c._admin, "POST", GROUPS, group("admins", name))[0] == 422, name
    # A stored User says nothing of groups.
    assert "Forbidden" in c.admin("POST", USERS, user("eve", groups=["system:masters"]), 422)["message"]
    assert c.whoami(eve)["groups"] == ["system:authenticated"]


# ---- who may ----

def attempts(path, name):
    """Everything that can be asked of an object of the kind, and of its collection."""
    objects = {USERS: user(name), GROUPS: group(name, "ada"), IDENTITIES: {"metadata": {"name": name}, **identity("x")},
               MAPPINGS: {"metadata": {"name": name}, "identity": {"name": name}, "user": {"name": "ada"}}}
    obj, one = objects[path], f"{path}/{name}"
    yield from (("GET", one, None, None), ("PUT", one, obj, None), ("DELETE", one, None, None),
                ("PATCH", one, {"users": ["ada"]}, MERGE), ("PATCH", f"{one}?fieldManager=x", obj, APPLY),
                ("PATCH", one, [{"op": "add", "path": "/users", "value": ["ada"]}], JSON_PATCH),
                ("GET", f"{one}?watch=1", None, None), ("POST", path, obj, None), ("POST", f"{path}?dryRun=All", obj, None),
                ("PUT", f"{one}?dryRun=All", obj, None))


def test_a_projects_administrator_gets_nothing_of_users(plain):
    c = plain
    c.namespace("red")
    for who, role in (("ada", "admin"), ("eve", "edit"), ("vic", "view")):
        c.bind("red", who, role, user=who)
    c.admin("POST", USERS, user("there"), 201)
    c.admin("POST", GROUPS, group("there", "there"), 201)
    c.admin("POST", IDENTITIES, identity("there"), 201)
    c.admin("POST", MAPPINGS, mapping("there", "there"), 201)
    wait_for("the role's rules", lambda: c.kubectl("auth", "can-i", "create", "pods", "-n", "red", "--as", "ada",
                                                   check=False).returncode == 0)
    before = [c.admin("GET", p)["items"] for p in KINDS[:3]]
    for name in ("ada", "eve", "vic", "mallory"):
        who = c.user(name)
        for path in KINDS:
            own = "there" if path in (USERS, GROUPS) else "ldap:there"
            for there, absent in zip(attempts(path, own), attempts(path, own.replace("there", "gone"))):
                told = []
                for method, at, body, headers in (there, absent):
                    status, answer = c.ask(who, method, at, body, headers=headers)
                    assert status == 403, (name, method, at, answer)
                    told.append(json.dumps(answer).replace("there", "gone"))
                assert told[0] == told[1], "the answer tells whether the object exists"
            for method, at in (("GET", path), ("GET", f"{path}?watch=1"), ("DELETE", path),
                               ("GET", f"{path}?fieldSelector=metadata.name%3Dthere")):
                assert c.ask(who, method, at)[0] == 403, (name, method, at)
        # Neither by a role of the project, nor as somebody else.
        if name == "ada":
            for kind in ("roles", "clusterroles"):
                at = "/apis/rbac.authorization.k8s.io/v1" + ("/namespaces/red/roles" if kind == "roles" else "/clusterroles")
                assert c.ask(who, "POST", at, {"metadata": {"name": "x"}, "rules": [
                    {"verbs": ["*"], "apiGroups": ["user.openshift.io"], "resources": ["*"]}]})[0] == 403
        for header in ({"Impersonate-User": "there"}, {"Impersonate-User": name, "Impersonate-Group": "there"}):
            assert c.ask(who, "GET", f"{USERS}/~", headers=header)[0] == 403
    assert [c.admin("GET", p)["items"] for p in KINDS[:3]] == before
    # The controls: a cluster reader reads, a cluster administrator writes.
    c.bind(None, "rea", "cluster-reader", user="rea")
    c.bind(None, "ann", "cluster-admin", user="ann")
    rea, ann = c.user("rea"), c.user("ann")
    for path, name in zip(KINDS, ("there", "there", "ldap:there", "ldap:there")):
        assert c.ask(rea, "GET", f"{path}/{name}")[0] == 200
        assert c.ask(rea, "DELETE", f"{path}/{name}")[0] == 403
    c.ask(ann, "DELETE", f"{MAPPINGS}/ldap:there", want=200)
    c.ask(ann, "POST", USERS, user("new"), want=201)
    c.ask(ann, "POST", GROUPS, group("new", "new"), want=201)


def test_a_mapping_that_is_made_by_put_needs_the_right_to_create(plain):
    c = plain
    c.admin("POST", USERS, user("u"), 201)
    c.admin("POST", IDENTITIES, identity("u"), 201)
    c.role(None, "mover", {"verbs": ["update", "get", "delete"], "apiGroups": ["user.openshift.io"],
                           "resources": ["useridentitymappings"]})
    c.bind(None, "mover", "mover", user="mo")
    mo = c.user("mo")
    assert "cannot create" in c.ask(mo, "PUT", f"{MAPPINGS}/ldap:u", mapping("u", "u"), want=403)["message"]
    c.admin("POST", MAPPINGS, mapping("u", "u"), 201)
    c.ask(mo, "PUT", f"{MAPPINGS}/ldap:u", mapping("u", "u"), want=200)
    c.ask(mo, "DELETE", f"{MAPPINGS}/ldap:u", want=200)


# ---- mappings ----

def test_a_mapping_changes_both_objects(c):
    c.admin("POST", USERS, user("one"), 201)
    c.admin("POST", USERS, user("two"), 201)
    c.admin("POST", IDENTITIES, identity("x"), 201)
    at = f"{MAPPINGS}/ldap:x"
    assert c.admin("GET", at, want=404)["message"] == 'useridentitymappings.user.openshift.io "ldap:x" not found'
    for bad, field in ((mapping("none", "one"), "identity.name"), (mapping("x", "none"), "user.name")):
        answer = c.admin("POST", MAPPINGS, bad, 422)
        assert [x["field"] for x in answer["details"]["causes"]] == [field] and "does not exist" in answer["message"]
    made = c.admin("POST", MAPPINGS, mapping("x", "one"), 201)
    assert c.admin("GET", at) == made
    assert made["metadata"]["uid"] == made["identity"]["uid"] == c.admin("GET", f"{IDENTITIES}/ldap:x")["metadata"]["uid"]
    assert "already exists" in c.admin("POST", MAPPINGS, mapping("x", "two"), 409)["message"]
    moved = c.admin("PUT", at, {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, **mapping("x", "two")})
    assert moved["user"] == {"name": "two", "uid": c.admin("GET", f"{USERS}/two")["metadata"]["uid"]}
    c.admin("PUT", at, {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, **mapping("x", "one")}, 409)
    assert "identities" not in c.admin("GET", f"{USERS}/one")
    assert c.admin("GET", f"{USERS}/two")["identities"] == ["ldap:x"]
    assert c.admin("GET", f"{IDENTITIES}/ldap:x")["user"] == moved["user"]
    for method, path in (("GET", MAPPINGS), ("GET", f"{MAPPINGS}?watch=1"), ("DELETE", MAPPINGS)):
        assert c.ask(c._admin, method, path)[0] == 405, (method, path)
    assert c.ask(c._admin, "PATCH", at, {"user": {"name": "one"}}, headers=MERGE)[0] == 405
    assert c.admin("DELETE", at)["status"] == "Success"
    assert c.admin("GET", f"{IDENTITIES}/ldap:x")["user"] == {} and "identities" not in c.admin("GET", f"{USERS}/two")
    # A user who is made again has nothing of the former one.
    c.admin("POST", MAPPINGS, mapping("x", "one"), 201)
    c.admin("DELETE", f"{USERS}/one")
    c.admin("GET", at, want=404)
    c.admin("POST", USERS, user("one"), 201)
    c.admin("GET", at, want=404)
    c.admin("DELETE", at, want=404)
    # A controller frees the identity, so that the person can log in again.
    wait_for("the identity to be free", lambda: c.admin("GET", f"{IDENTITIES}/ldap:x")["user"] == {})
    c.admin("GET", at, want=404)
    c.admin("PUT", at, mapping("x", "two"), 201)
    assert c.admin("GET", f"{USERS}/two")["identities"] == ["ldap:x"]
    assert "identities" not in c.admin("GET", f"{USERS}/one")


def test_a_watch_has_both_users_of_a_move(c):
    """In etcd their changes have one revision: none is left out, and a watch that was cut off between them gets the second."""
    for name in ("one", "two"):
        c.admin("POST", USERS, user(name), 201)
    c.admin("POST", IDENTITIES, identity("x"), 201)
    c.admin("POST", MAPPINGS, mapping("x", "one"), 201)
    before = c.admin("GET", USERS)["metadata"]["resourceVersion"]
    c.admin("PUT", f"{MAPPINGS}/ldap:x", mapping("x", "two"))

    def seen(version):
        """Name and version of each change after 'version'."""
        _, text = c.call(f"{USERS}?watch=1&resourceVersion={version}&timeoutSeconds=1", c._admin, {}, None, "GET")
        return [(e["object"]["metadata"]["name"], e["object"]["metadata"]["resourceVersion"]) for e in map(json.loads, text.splitlines())]
    changes = seen(before)
    assert sorted(name for name, _ in changes) == ["one", "two"]
    assert changes[1] in seen(changes[0][1])
    assert seen(c.admin("POST", USERS, user("three"), 201)["metadata"]["resourceVersion"]) == []


def consistent(ask):
    """What users and identities say of each other agrees; returns the user of each identity."""
    listed = {}
    for u in ask("GET", USERS)["items"]:
        for name in u.get("identities") or []:
            assert listed.setdefault(name, u["metadata"]) is u["metadata"], f"two users have {name}"
    for i in ask("GET", IDENTITIES)["items"]:
        name, has = i["metadata"]["name"], i.get("user") or {}
        if name in listed:
            assert has == {"name": listed[name]["name"], "uid": listed[name]["uid"]}, (i, listed[name])
        else:
            # Only a user who was deleted leaves its name behind.
            assert not has or has["uid"] not in [u["metadata"]["uid"] for u in ask("GET", USERS)["items"]], i
    return listed


class Mover(threading.Thread):
    """Makes, moves and removes mappings at a master until told to stop; with 'deletes' users as well."""

    def __init__(self, call, identities, users, seed, deletes=False):
        super().__init__(daemon=True)
        self.call, self.identities, self.users, self.deletes = call, identities, users, deletes
        self.random, self.stop, self.statuses, self.error = random.Random(seed), threading.Event(), {}, None

    def run(self):
        while not self.stop.is_set():
            name, to = self.random.choice(self.identities), self.random.choice(self.users)
            at, what = f"{MAPPINGS}/ldap:{name}", self.random.randrange(8 if self.deletes else 6)
            try:
                if what < 3:
                    status, answer = self.call("PUT", at, mapping(name, to))
                elif what < 5:
                    status, answer = self.call("POST", MAPPINGS, mapping(name, to))
                elif what < 6:
                    status, answer = self.call("DELETE", at)
                elif what < 7:
                    status, answer = self.call("DELETE", f"{USERS}/{to}")
                else:
                    status, answer = self.call("POST", USERS, user(to))
            except (OSError, http.client.HTTPException, ha.Gone):
                time.sleep(0.02)  # the master is away
                continue
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status not in (200, 201, 404, 409, 422, 503):
                self.error = (status, answer)
            if what < 3 and status in (200, 201) and answer["user"]["name"] != to:
                self.error = answer


def test_a_killed_master_leaves_no_half_of_a_mapping(c):
    accounts, ids = [f"u{i}" for i in range(3)], [f"i{i}" for i in range(3)]
    for name in accounts:
        c.admin("POST", USERS, user(name), 201)
    for name in ids:
        c.admin("POST", IDENTITIES, identity(name), 201)
    total = 0
    for seed in range(4):
        movers = [Mover(lambda *a: c.ask(c._admin, *a), ids, accounts, 10 * seed + i) for i in range(3)]
        for m in movers:
            m.start()
        time.sleep(random.Random(seed).uniform(0.3, 0.8))
        c.stop(signal.SIGKILL)
        for m in movers:
            m.stop.set()
        for m in movers:
            m.join(60)
            assert not m.error, m.error
            total += m.statuses.get(200, 0) + m.statuses.get(201, 0)
        c.start()
        consistent(c.admin)
    assert total > 20, "the movers did nothing"


def test_masters_that_race_leave_no_half_of_a_mapping(etcd, tmp_path):
    masters = [ha.Master(tmp_path, f"master{i}", etcd) for i in range(2)]
    try:
        for m in masters:
            m.wait_ready()
        accounts, ids = [f"u{i}" for i in range(3)], [f"i{i}" for i in range(5)]
        for name in accounts:
            assert masters[0].call("POST", USERS, user(name))[0] == 201
        for name in ids:
            assert masters[0].call("POST", IDENTITIES, identity(name))[0] == 201

        def ask(method, path):
            status, answer = masters[0].call(method, path)
            assert status == 200, answer
            return answer
        movers = [Mover(masters[i % 2].call, ids, accounts, i, deletes=i == 0) for i in range(8)]
        for m in movers:
            m.start()
        for _ in range(3):
            time.sleep(1.5)
            masters[1].kill(signal.SIGKILL)
            masters[1].start()
        for m in movers:
            m.stop.set()
        for m in movers:
            m.join(60)
            assert not m.error, m.error
        seen = {s: sum(m.statuses.get(s, 0) for m in movers) for s in (200, 201, 404, 409, 422)}
        assert all(seen[s] for s in (200, 201, 404, 409)), seen
        listed = consistent(ask)
        # Both masters tell the same of each mapping, and it is what the objects say.
        for name in ids:
            answers = [m.call("GET", f"{MAPPINGS}/ldap:{name}") for m in masters]
            assert answers[0] == answers[1]
            assert (answers[0][0] == 200) == (f"ldap:{name}" in listed)
    finally:
        for m in masters:
            m.kill(signal.SIGTERM)


def test_one_of_many_who_create_a_mapping_wins(c):
    accounts = [f"u{i}" for i in range(8)]
    for name in accounts:
        c.admin("POST", USERS, user(name), 201)
    for round in range(5):
        c.admin("POST", IDENTITIES, identity(f"r{round}"), 201)
        statuses, start = [], threading.Barrier(len(accounts))

        def race(to):
            start.wait()
            statuses.append(c.ask(c._admin, "POST", MAPPINGS, mapping(f"r{round}", to))[0])
        threads = [threading.Thread(target=race, args=(a,)) for a in accounts]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert sorted(statuses) == [201] + [409] * (len(accounts) - 1)
        consistent(c.admin)
