# SPDX-License-Identifier: Apache-2.0
"""`tenet adm groups sync` and `prune`: from a real slapd (RFC 2307, memberOf overlay) and from servers that lie, to a real
`tenet master`."""
import json
import re
import signal
import subprocess

import pytest
import yaml

import directory
from directory import ADMIN, ADMIN_PASSWORD, Liar
from lab import TENET, environment
from test_auth import Cluster
from test_tls import make_pki

GROUPS = "/apis/user.openshift.io/v1/groups"
UNITS = directory.PEOPLE.split("dn: uid=joe")[0]


def person(name, unit="ou=users,"):
    return (f"dn: uid={name},{unit}dc=example,dc=com\nobjectClass: inetOrgPerson\nuid: {name}\ncn: {name}\nsn: {name}\n"
            f"mail: {name}@example.com\n\n")


def group(name, *members):
    return (f"dn: cn={name},ou=groups,dc=example,dc=com\nobjectClass: groupOfNames\ncn: {name}\n"
            + "".join(f"member: {m}\n" for m in members) + "\n")


def user(name):
    return f"uid={name},ou=users,dc=example,dc=com"


PEOPLE = UNITS + person("joe") + person("ann") + person("bob")
MEMBEROF = "overlay memberof\nmemberof-refint TRUE"


def rfc2307(url, **more):
    return {"kind": "LDAPSyncConfig", "apiVersion": "v1", "url": url, "insecure": True, "rfc2307": {
        "groupsQuery": {"baseDN": "ou=groups,dc=example,dc=com", "scope": "sub", "derefAliases": "never", "pageSize": 2},
        "groupUIDAttribute": "dn", "groupNameAttributes": ["cn"], "groupMembershipAttributes": ["member"],
        "usersQuery": {"baseDN": "ou=users,dc=example,dc=com", "scope": "sub", "derefAliases": "never", "pageSize": 2},
        "userUIDAttribute": "dn", "userNameAttributes": ["uid"], **more}}


class Setting:
    """A master, a slapd, and the command line of an administrator."""

    def __init__(self, tmp):
        self.tmp = tmp
        (tmp / "master").mkdir()
        self.c = Cluster(str(tmp / "master"))
        crt, key = make_pki(self.c.dir, "adm", "/O=system:masters/CN=root", ca=self.c.ca)[:2]
        self.kubeconfig = tmp / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": f"https://127.0.0.1:{self.c.port}", "certificate-authority": self.c.ca[0]}}],
            "users": [{"name": "x", "user": {"client-certificate": str(crt), "client-key": str(key)}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}))
        self.slapd = None

    def start(self, ldif, extra=""):
        if self.slapd:
            self.slapd.stop()
        folder = self.tmp / f"slapd{len(list(self.tmp.iterdir()))}"
        folder.mkdir()
        self.slapd = directory.Slapd(folder, ldif, extra=extra)
        return self.slapd

    def run(self, verb, config, *args, status=0):
        file = self.tmp / "sync.yaml"
        file.write_text(yaml.safe_dump(config))
        r = subprocess.run([TENET, "adm", "groups", verb, "--kubeconfig", self.kubeconfig, "--sync-config", file, *args],
                           capture_output=True, text=True, env=environment(), timeout=300)
        assert r.returncode == status, r.stdout + r.stderr
        return r.stdout if status == 0 else r.stderr

    def groups(self):
        return {g["metadata"]["name"]: g["users"] for g in self.c.admin("GET", GROUPS)["items"]}

    def stop(self):
        if self.slapd:
            self.slapd.stop()
        self.c.stop(signal.SIGKILL)


@pytest.fixture
def s(tmp_path):
    made = Setting(tmp_path)
    yield made
    made.stop()


def slapadd(s, ldif):
    """Changes the directory as it runs."""
    subprocess.run(["ldapmodify", "-x", "-H", s.slapd.ldap, "-D", ADMIN, "-w", ADMIN_PASSWORD], input=ldif, text=True, check=True,
                   capture_output=True)


def test_groups_of_rfc2307_come_change_and_go(s):
    d = s.start(PEOPLE + group("dev", user("joe"), user("ann")) + group("ops", user("bob")) + group("old", user("bob")))
    config = rfc2307(d.ldap)
    shown = yaml.safe_load(s.run("sync", config))
    assert shown["kind"] == "List" and [g["metadata"]["name"] for g in shown["items"]] == ["dev", "ops", "old"]
    assert s.groups() == {}, "without --confirm nothing is written"
    assert s.run("sync", config, "--confirm") == "group/dev\ngroup/ops\ngroup/old\n"
    assert s.groups() == {"dev": ["joe", "ann"], "ops": ["bob"], "old": ["bob"]}
    meta = s.c.admin("GET", f"{GROUPS}/dev")["metadata"]
    notes = meta["annotations"]
    assert meta["labels"] == {"openshift.io/ldap.host": "localhost"}
    assert notes["openshift.io/ldap.uid"] == "cn=dev,ou=groups,dc=example,dc=com"
    assert notes["openshift.io/ldap.url"] == f"localhost:{d.port}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", notes["openshift.io/ldap.sync-time"])

    slapadd(s, f"dn: cn=dev,ou=groups,dc=example,dc=com\nchangetype: modify\ndelete: member\nmember: {user('ann')}\n\n"
               "dn: cn=old,ou=groups,dc=example,dc=com\nchangetype: delete\n\n"
               "dn: cn=ops,ou=groups,dc=example,dc=com\nchangetype: delete\n")
    assert s.run("sync", config, "--confirm") == "group/dev\n"
    assert s.groups() == {"dev": ["joe"], "ops": ["bob"], "old": ["bob"]}
    keep = s.tmp / "keep"
    keep.write_text("group/ops\n\n")
    assert s.run("prune", config, "--blacklist", keep) == "group/old\n"
    assert len(s.groups()) == 3
    assert s.run("prune", config, "--blacklist", keep, "--confirm") == "group/old\n"
    assert set(s.groups()) == {"dev", "ops"}
    assert s.run("prune", config, "dev", "--confirm") == ""
    assert s.run("prune", config, "group/ops", "--confirm") == "group/ops\n"
    assert set(s.groups()) == {"dev"}


def test_lists_select_groups(s):
    d = s.start(PEOPLE + group("dev", user("joe")) + group("ops", user("bob")))
    config = rfc2307(d.ldap)
    dev, ops = (f"cn={n},ou=groups,dc=example,dc=com" for n in ("dev", "ops"))
    (s.tmp / "list").write_text(dev + "\r\n")
    assert s.run("sync", config, "--whitelist", s.tmp / "list", "--confirm") == "group/dev\n"
    assert s.run("sync", config, "--blacklist", s.tmp / "list", "--confirm") == "group/ops\n"
    assert s.run("sync", config, "--type=openshift", "group/dev", "--confirm") == "group/dev\n"
    assert s.run("sync", config, "--type", "openshift", "--blacklist", s.tmp / "none", status=1).startswith("error: ")
    (s.tmp / "list").write_text("ops\n")
    assert s.run("sync", config, "--type=openshift", "--blacklist", s.tmp / "list", "--confirm") == "group/dev\n"
    assert s.run("sync", config, ops.replace("ops", "no"), status=1) == (
        f'error: group "cn=no,ou=groups,dc=example,dc=com" of localhost:{d.port}: the directory has no such group\n')
    config["groupUIDNameMapping"] = {dev: "developers"}
    assert s.run("sync", config, dev, "--confirm") == "group/developers\n"


def test_groups_of_others_are_never_overwritten_or_pruned(s):
    d = s.start(PEOPLE + group("dev", user("joe")) + group("ops", user("bob")) + group("web", user("ann")))
    mark = {"openshift.io/ldap.uid": "cn=gone,ou=groups,dc=example,dc=com", "openshift.io/ldap.url": f"localhost:{d.port}"}
    for name, labels, notes in (("dev", {}, {}), ("ops", {"openshift.io/ldap.host": "other"}, mark),
                                ("web", {"openshift.io/ldap.host": "localhost"}, {**mark, "openshift.io/ldap.url": "localhost:1"})):
        s.c.admin("POST", GROUPS, {"metadata": {"name": name, "labels": labels, "annotations": notes}, "users": ["eve"]}, 201)
    text = s.run("sync", rfc2307(d.ldap), "--confirm", status=1)
    assert text.count("is left as it is") == 3 and '"dev": it exists with openshift.io/ldap.host "", not "localhost"' in text
    assert s.run("prune", rfc2307(d.ldap), "--confirm") == ""
    assert s.groups() == {n: ["eve"] for n in ("dev", "ops", "web")}


def test_members_outside_and_missing(s):
    out, none = "uid=eve,dc=example,dc=com", user("nobody")
    d = s.start(PEOPLE + person("eve", "") + group("a", user("joe"), out) + group("b", user("joe"), none) + group("c", user("joe")))
    text = s.run("sync", rfc2307(d.ldap), "--confirm", status=1)
    assert "is outside of usersQuery.baseDN" in text and f'its member "{none}" has no entry' in text
    assert s.groups() == {"c": ["joe"]}, "the other groups are written"
    s.run("sync", rfc2307(d.ldap, tolerateMemberNotFoundErrors=True, tolerateMemberOutOfScopeErrors=True), "--confirm")
    assert s.groups() == {n: ["joe"] for n in "abc"}


def test_memberships_of_users(s):
    """The schemas of Active Directory, with the attribute that slapd's overlay writes."""
    s.start(PEOPLE, MEMBEROF)
    slapadd(s, "".join("\n" + g.replace("\nobjectClass", "\nchangetype: add\nobjectClass", 1)
                       for g in (group("dev", user("joe"), user("ann")), group("ops", user("ann")))))
    users = {"baseDN": "ou=users,dc=example,dc=com", "filter": "(objectClass=inetOrgPerson)", "pageSize": 1}
    config = {"kind": "LDAPSyncConfig", "apiVersion": "v1", "url": s.slapd.ldaps, "ca": s.slapd.ca, "bindDN": ADMIN,
              "bindPassword": {"file": "bind.secret"}}
    (s.tmp / "bind.secret").write_text(ADMIN_PASSWORD + "\n")
    ad = {**config, "activeDirectory": {"usersQuery": users, "userNameAttributes": ["mail"], "groupMembershipAttributes": ["memberOf"]}}
    assert {g["metadata"]["name"]: g["users"] for g in yaml.safe_load(s.run("sync", ad))["items"]} == {
        "cn=dev,ou=groups,dc=example,dc=com": ["joe@example.com", "ann@example.com"],
        "cn=ops,ou=groups,dc=example,dc=com": ["ann@example.com"]}
    both = {**config, "augmentedActiveDirectory": {
        "groupsQuery": {"baseDN": "ou=groups,dc=example,dc=com", "filter": "(objectClass=groupOfNames)"}, "groupUIDAttribute": "dn",
        "groupNameAttributes": ["cn"], **ad["activeDirectory"], "userNameAttributes": ["uid"]}}
    assert s.run("sync", both, "--confirm") == "group/dev\ngroup/ops\n"
    assert s.groups() == {"dev": ["joe", "ann"], "ops": ["ann"]}
    slapadd(s, "dn: cn=ops,ou=groups,dc=example,dc=com\nchangetype: delete\n")
    assert s.run("prune", both, "--confirm") == "group/ops\n"
    assert "invalid credentials" in s.run("sync", {**both, "bindPassword": "wrong"}, status=1)


def test_an_answer_that_is_not_complete_prunes_nothing(s):
    d = s.start(PEOPLE + group("dev", user("joe")) + group("ops", user("bob")))
    s.run("sync", rfc2307(d.ldap), "--confirm")
    config = rfc2307(d.ldap)
    d.stop()
    assert "refused" in s.run("prune", config, "--confirm", status=1)
    conf = d.dir / "slapd.conf"
    conf.write_text("sizelimit 1\n" + conf.read_text())
    d.start()
    config["url"] = d.ldap
    for size in (0, 1):
        config["rfc2307"]["groupsQuery"]["pageSize"] = size
        assert "the server gives at most" in s.run("sync", config, "--confirm", status=1)
    config["rfc2307"]["groupsQuery"]["baseDN"] = "ou=none,dc=example,dc=com"
    assert "no such object" in s.run("sync", config, status=1)
    assert set(s.groups()) == {"dev", "ops"}


def test_a_hostile_directory(s):
    many = "".join(f"memberUid: user{i}\n" for i in range(100000))
    d = s.start(PEOPLE + "dn: cn=big,ou=groups,dc=example,dc=com\nobjectClass: posixGroup\ncn: big\ngidNumber: 1\n" + many
                + "memberUid: joe\n\n" + group("system:masters", user("joe")) + group("x\\0A\\1B[2Jy", user("joe")).replace("cn: x\\0A\\1B[2Jy", "cn:: eAobWzJKeQ==")
                + group("trap", "uid=joe\\2Cou=users\\2Cdc=example\\2Cdc=com"), "sortvals memberUid\n")
    text = s.run("sync", rfc2307(d.ldap), "--confirm", status=1)
    assert '"system:masters" may not contain ":"' in text and "\x1b" not in text
    assert "its UID is no text" in text and "trap" in text
    assert "big" in s.groups(), "a posixGroup without \"member\" is an empty group"
    assert len(s.groups()) == 1
    posix = rfc2307(d.ldap, groupMembershipAttributes=["memberUid"], userUIDAttribute="uid", tolerateMemberNotFoundErrors=True)
    posix["rfc2307"]["groupsQuery"]["filter"] = "(objectClass=posixGroup)"
    assert s.run("sync", posix, "--confirm") == "group/big\n"
    assert s.groups() == {"big": ["joe"]}


@pytest.mark.parametrize("answer, why", [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "malformed LDAP"), (b"", "closed it"),
                                         (b"\x30\x0c\x02\x01\x09\x65\x07\x0a\x01\x00\x04\x00\x04\x00", "another request"),
                                         (b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00", "unexpected answer")])
def test_lies_of_a_server_change_nothing(s, answer, why):
    def lie(c):
        c.recv(4096)
        c.sendall(answer)
        c.shutdown(1)
        c.recv(4096)

    with Liar(lie) as server:
        config = rfc2307(f"ldap://127.0.0.1:{server.port}")
        for verb in ("sync", "prune"):
            assert why in s.run(verb, config, "--confirm", status=1)
