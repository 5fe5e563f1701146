# SPDX-License-Identifier: Apache-2.0
"""A server that lies to the client at the login, and what a neighbour on the machine sees of one."""
import os
import pathlib
import re
import subprocess
import time

import pytest

from lab import TENET, wait_for
from oauth_simulator import Simulator
from test_login import client, pki, server  # noqa: F401 (fixtures)


@pytest.fixture
def other(pki):  # noqa: F811
    """Another server with a certificate that the client accepts as well."""
    made = Simulator(*pki)
    yield made
    made.stop()


def login(client, server, *args):  # noqa: F811
    r = client.login(server, "-u", "jane", "-p", "secret", *args, check=False)
    written = client.config.read_text() if client.config.exists() else ""
    return r, written


def had_password(simulator):
    return any("Authorization" in headers and headers["Authorization"].startswith("Basic") for _, _, headers, _ in simulator.requests)


def test_the_control_logs_in(client, server):  # noqa: F811
    r, written = login(client, server)
    assert r.returncode == 0 and "token: sha256~" in written


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_no_password_to_another_host(client, server, other, status):  # noqa: F811
    def elsewhere(x):
        x.send(status, "", [("Location", other.url + x.path)])
        return True
    server.lies["/oauth/authorize"] = elsewhere
    r, written = login(client, server)
    assert r.returncode == 1 and not written and other.url in r.stderr and "--web" in r.stderr
    assert other.requests and not had_password(other), "it was asked, and not told"

    # Nor after the password was shown to the right one.
    def after(x):
        if "Authorization" in x.headers:
            return elsewhere(x)
        return False
    server.lies["/oauth/authorize"] = after
    r, written = login(client, server)
    assert r.returncode == 1 and not written and had_password(server) and not had_password(other)


def test_a_code_of_another_host_is_not_used(client, server, other):  # noqa: F811
    """The other server's page for codes is not this server's."""
    server.lies["/oauth/authorize"] = lambda x: x.send(302, "", [
        ("Location", f"{other.url}/oauth/token/implicit?code=sha256~{'x' * 43}")]) or True
    r, written = login(client, server)
    assert r.returncode == 1 and not written and not [q for q in server.requests if q[0] == "POST"]


@pytest.mark.parametrize("key", ["authorization_endpoint", "token_endpoint", "issuer"])
def test_endpoints_of_another_server_are_refused(client, server, other, key):  # noqa: F811
    server.document = {key: other.url + "/oauth/x"}
    r, written = login(client, server)
    assert r.returncode == 1 and not written and "at another server than the issuer" in r.stderr and not other.requests


def test_a_way_down_to_http_is_refused(client, server):  # noqa: F811
    plain = Simulator(None, None)
    try:
        server.lies["/oauth/authorize"] = lambda x: x.send(302, "", [("Location", plain.url + x.path)]) or True
        r, written = login(client, server)
        assert r.returncode == 1 and not written and "from HTTPS to HTTP" in r.stderr and not plain.requests
        server.lies.clear()
        server.document = {"issuer": plain.url, "authorization_endpoint": plain.url + "/oauth/authorize",
                           "token_endpoint": plain.url + "/oauth/token"}
        r, written = login(client, server)
        assert r.returncode == 1 and not written and "not HTTPS" in r.stderr and not plain.requests
    finally:
        plain.stop()
    r = client.run("login", "http://example.invalid", "-u", "jane", "-p", "secret", check=False)
    assert r.returncode == 1 and "is not HTTPS" in r.stderr


def test_redirects_in_a_circle_end(client, server):  # noqa: F811
    server.lies["/oauth/authorize"] = lambda x: x.send(302, "", [("Location", "/loop")]) or True
    server.lies["/loop"] = lambda x: x.send(302, "", [("Location", "/loop")]) or True
    r, _ = login(client, server)
    assert r.returncode == 1 and f"redirect loop: {server.url}/loop" in r.stderr
    # One that never comes twice to the same address.
    server.lies["/loop"] = lambda x: x.send(302, "", [("Location", f"/loop?n={len(server.requests)}")]) or True
    r, _ = login(client, server)
    assert r.returncode == 1 and "more than 10 redirects" in r.stderr


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp"


def harmless(text):
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


def test_no_escape_sequence_gets_to_the_terminal(client, server):  # noqa: F811
    server.motd = "hello " + ESCAPES
    server.projects = ["red"]
    r, _ = login(client, server)
    assert r.returncode == 0 and "hello " in r.stdout and harmless(r.stdout + r.stderr)
    named = {"metadata": {"name": "red", "annotations": {"openshift.io/display-name": "x" + ESCAPES}}}
    server.lies["/apis/project.openshift.io/v1/projects"] = lambda x: x.send(200, {"items": [named]}) or True
    r = client.run("projects")
    assert "red - x" in r.stdout and harmless(r.stdout)
    server.lies["/apis/user.openshift.io/v1/users/~"] = lambda x: x.send(200, {"metadata": {"name": "a" + ESCAPES}}) or True
    assert harmless(client.run("whoami").stdout)
    server.lies["/apis/project.openshift.io/v1/projectrequests"] = lambda x: server.refuse(x, 403, "Forbidden", "no" + ESCAPES) or True
    r = client.run("new-project", "x", check=False)
    assert r.returncode == 1 and "no" in r.stderr and harmless(r.stderr)
    body = ESCAPES.encode("utf-8")
    for lie in (lambda x: x.send(401, body, [("Link", "<x>")]), lambda x: x.send(400, {"error_description": ESCAPES}),
                lambda x: x.send(302, "", [("Location", "/oauth/token/implicit?error=x&error_description=%1b%5b2J")])):
        server.lies["/oauth/authorize"] = lambda x, lie=lie: lie(x) or True
        r, _ = login(client, server)
        assert r.returncode == 1 and harmless(r.stdout + r.stderr), r.stderr


@pytest.mark.parametrize("route", ["/.well-known/oauth-authorization-server", "/oauth/authorize", "/oauth/token"])
def test_a_huge_answer_is_refused(client, server, route):  # noqa: F811
    server.lies[route] = lambda x: x.send(200, b"[" * (32 << 20)) or True
    r, written = login(client, server)
    assert r.returncode == 1 and not written and ("more than" in r.stderr or "unexpected response" in r.stderr), r.stderr


def test_a_token_cannot_carry_a_header(client, server):  # noqa: F811
    server.lies["/oauth/token"] = lambda x: x.send(200, {"access_token": "x\r\nImpersonate-User: root", "token_type": "Bearer"}) or True
    r, written = login(client, server)
    assert r.returncode == 1 and not written and "no bearer token" in r.stderr


def test_the_process_list_has_no_secret(client, server):  # noqa: F811
    """The command line is cleared before the first request: a neighbour reads /proc/PID/cmdline of a login that hangs."""
    def slow(x):
        wait_for("the end of the test", lambda: server.released)
        return False
    server.released = False
    server.lies["/"] = slow
    for args in (["-u", "jane", "-p", "topsecret"], ["--password=topsecret"], ["--token", "topsecret"]):
        server.released, before = False, len(server.requests)
        proc = subprocess.Popen([TENET, "login", server.url, "--certificate-authority", client.ca, *args], env=client.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for("the first request", lambda: len(server.requests) > before)
            line = pathlib.Path(f"/proc/{proc.pid}/cmdline").read_bytes()
            assert b"login" in line and b"topsecret" not in line
        finally:
            server.released = True
            proc.wait(timeout=60)


def test_a_symbolic_link_stays_and_its_file_is_private(client, server, tmp_path):  # noqa: F811
    real = tmp_path / "elsewhere"
    real.write_text("")
    real.chmod(0o666)
    client.config.parent.mkdir()
    client.config.symlink_to(real)
    r, _ = login(client, server)
    assert r.returncode == 0 and client.config.is_symlink()
    assert "sha256~" in real.read_text() and real.stat().st_mode & 0o777 == 0o600
    # A link that a neighbour made to another file of the user does no harm to it.
    precious = tmp_path / "precious"
    precious.write_text("#!/bin/sh\necho : { mine\n")
    client.config.unlink()
    client.config.symlink_to(precious)
    r = client.login(server, "-u", "jane", "-p", "secret", check=False)
    assert r.returncode == 1 and precious.read_text() == "#!/bin/sh\necho : { mine\n"
    assert not list(tmp_path.glob("*.lock"))


def test_the_token_is_never_readable_by_others(client, server):  # noqa: F811
    """Also not for a moment: what is in the folder at any time is private."""
    client.config.parent.mkdir(mode=0o755)
    proc = subprocess.Popen([TENET, "login", server.url, "--certificate-authority", client.ca, "-u", "jane", "-p", "secret"],
                            env=client.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wide = set()
    while proc.poll() is None:
        for f in client.config.parent.iterdir():
            try:
                if f.stat().st_mode & 0o077:
                    wide.add(f.name)
            except FileNotFoundError:
                pass
        time.sleep(0)
    assert proc.returncode == 0 and not wide and os.stat(client.config).st_mode & 0o777 == 0o600
