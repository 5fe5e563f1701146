# SPDX-License-Identifier: Apache-2.0
"""Whole logins through the OAuth server of a real master, by providers on real servers: a token, refusal, a server that is
down, a certificate that is not trusted."""
import signal

import pytest

import directory
from directory import ADMIN, ADMIN_PASSWORD
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
