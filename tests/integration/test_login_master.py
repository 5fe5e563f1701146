# SPDX-License-Identifier: Apache-2.0
"""The whole session by the command line on a real `tenet master` with its OAuth server: login, projects, rights, logout."""
import re
import signal
import subprocess

import pytest

from lab import TENET, run, wait_for
from test_auth import Cluster
from test_login import Client


def provider(kind, name="any", **more):
    return {"name": name, "challenge": True, "login": True, "mappingMethod": "claim",
            "provider": {"apiVersion": "v1", "kind": f"{kind}PasswordIdentityProvider"}, **more}


class Master(Cluster):
    def __init__(self, folder, *providers):
        super().__init__(str(folder), {"oauthConfig": {"identityProviders": list(providers)}})
        self.url = f"https://127.0.0.1:{self.port}"
        self.admin("GET", "/api")
        wait_for("the clients", lambda: self.ask(
            self._admin, "GET", "/apis/oauth.openshift.io/v1/oauthclients/openshift-cli-client")[0] == 200)


@pytest.fixture
def master(tmp_path):
    made = Master(tmp_path, provider("AllowAll"))
    yield made
    made.stop(signal.SIGKILL)


@pytest.fixture
def client(tmp_path, master):
    (tmp_path / "home").mkdir()
    return Client(tmp_path, master.pki / "ca.crt")


def test_a_session_from_login_to_logout(client, master):
    r = client.login(master, "-u", "jane", "-p", "anything")
    assert r.stdout.startswith("Login successful.\n\nYou don't have any projects."), r.stdout
    token = client.run("whoami", "-t").stdout.strip()
    assert re.fullmatch(r"sha256~[\w-]{43}", token) and client.run("whoami").stdout == "jane\n"
    assert run(["kubectl", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"], env=client.env).stdout == "jane"
    # Two people, each with the own token; a project that is given shows at the next login.
    master.namespace("red")
    run([TENET, "adm", "policy", "add-role-to-user", "admin", "jane", "-n", "red", "--kubeconfig", master.pki / "admin.kubeconfig"])
    wait_for("the project", lambda: client.run("projects", "-q").stdout == "red\n")
    assert client.run("project", "red").stdout == f'Now using project "red" on server "{master.url}".\n'
    r = client.run("can", "create", "pods", "--why")
    assert r.stdout == 'yes\nRBAC: allowed by RoleBinding "admin/red" of ClusterRole "admin" to User "jane"\n'
    assert client.run("login").stdout.startswith(f'Logged into "{master.url}" as "jane" using existing credentials.\n')
    # The token ends, here and for each copy.
    assert client.run("logout").stdout == f'Logged "jane" out on "{master.url}"\n'
    wait_for("the end of the token", lambda: master.ask(token, "GET", "/version")[0] == 401)
    r = client.run("whoami", "--token", token, check=False)
    assert r.returncode == 1 and "log in again with: tenet login" in r.stderr
    assert token not in master.text() and "anything" not in master.text()


@pytest.mark.parametrize("version", ("--http1.1", "--http2"))
def test_by_a_browser(client, master, version):
    """The loopback client's redirect and PKCE are taken; a form of the server logs in."""
    proc = subprocess.Popen([TENET, "login", master.url, "--certificate-authority", client.ca, "--web"], env=client.env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    jar, headers = client.folder / "cookies", client.folder / "headers"
    try:
        url = re.search(r"https://\S+", proc.stdout.readline())[0]
        curl = ["curl", "-s", "-L", version, "--cacert", client.ca, "-b", jar, "-c", jar]
        page = run([*curl, url]).stdout
        assert "ssn" not in jar.read_text()
        fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page))
        action = re.search(r'<form method="post" action="([^"]*)"', page)[1].replace("&amp;", "&")
        form = [x for n, v in {**fields, "username": "jane", "password": "x"}.items()
                for x in ("--data-urlencode", f"{n}={v.replace('&amp;', '&')}")]
        done = run([*curl, "-D", headers, *form, action if action.startswith("http") else master.url + action]).stdout
        assert "The login is complete" in done, done
        # The session of the form ends as soon as the code is made.
        cookies = re.findall(r"(?i)^set-cookie: ssn=([^;]*);.*HttpOnly; Secure", headers.read_text(), re.M)
        assert len(cookies) == 2 and cookies[0] and not cookies[1] and "ssn" not in jar.read_text(), headers.read_text()
        out, err = proc.communicate(timeout=60)
        assert proc.returncode == 0 and "Login successful." in out, err
    finally:
        proc.kill()
        proc.wait()
    assert client.run("whoami").stdout == "jane\n"


def test_own_tokens_are_listed_and_revoked(client, master):
    client.login(master, "-u", "joe", "-p", "x")
    of_joe = client.run("whoami", "-t").stdout.strip()
    client.login(master, "-u", "jane", "-p", "x")
    first = client.run("whoami", "-t").stdout.strip()
    client.login(master, "-u", "jane", "-p", "x")
    rows = client.run("token", "own").stdout.splitlines()
    assert rows[0].split() == ["NAME", "CLIENT", "CREATED", "ENDS", "SCOPES"] and len(rows) == 3
    (current,), (other,) = ([r.split() for r in rows[1:] if ("(this session)" in r) is this] for this in (True, False))
    assert current[1] == "openshift-challenging-client" and current[4] == "user:full" and current[3] > current[2]
    assert first not in "".join(rows)
    assert client.run("token", "revoke", "--all").stdout == f"token {other[0]} revoked\n"
    wait_for("the end of the token", lambda: master.ask(first, "GET", "/version")[0] == 401)
    assert client.run("whoami").stdout == "jane\n" and master.ask(of_joe, "GET", "/version")[0] == 200
    r = client.run("token", "revoke", other[0], check=False)
    assert r.returncode == 1 and "NotFound" in r.stderr
    assert client.run("token", "revoke", current[0]).returncode == 0
    wait_for("the end of the session", lambda: client.run("whoami", check=False).returncode == 1)
    for words in (("revoke",), ("revoke", "--all", "x"), ("own", "x"), ("list", "--all"), ("frob",)):
        assert client.run("token", *words, check=False).returncode == 2, words


def test_refusals(client, master, tmp_path):
    (tmp_path / "other").mkdir()
    other = Master(tmp_path / "other", provider("DenyAll"))
    try:
        r = run([TENET, "login", other.url, "--certificate-authority", other.pki / "ca.crt", "-u", "jane", "-p", "x"], check=False,
                env=client.env, stdin=subprocess.DEVNULL)
        assert (r.returncode, r.stdout) == (1, "Login failed (401 Unauthorized)\nVerify you have provided the correct credentials.\n")
    finally:
        other.stop(signal.SIGKILL)
    r = client.login(master, "-u", "jane", "--password=", check=False)
    assert r.returncode == 1 and not client.config.exists()
