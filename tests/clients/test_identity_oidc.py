# SPDX-License-Identifier: Apache-2.0
"""OpenIDIdentityProvider against npm's oidc-provider, a certified OpenID Connect server: logins without a browser and in Chromium,
refusal, time-out, certificates, new keys."""
import base64
import http.client
import http.cookies
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import time
import urllib.parse

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import api_server
import directory
from devtools import Chromium
from lab import TENET, environment, wait_for
from test_identity_login import provider
from test_oauth import USERS, OAuth

HERE = pathlib.Path(__file__).parent
FOLDER = api_server.BUILD / "clients"
CLIENT, SECRET = "tenet", "a client's secret of the test, long enough"


def text(n, size):
    return base64.urlsafe_b64encode(n.to_bytes(size, "big")).rstrip(b"=").decode()


def new_key(alg, kid):
    """A JWK with its private part."""
    if alg == "ES256":
        n = ec.generate_private_key(ec.SECP256R1()).private_numbers()
        return {"kty": "EC", "crv": "P-256", "kid": kid, "alg": alg, "use": "sig", "x": text(n.public_numbers.x, 32),
                "y": text(n.public_numbers.y, 32), "d": text(n.private_value, 32)}
    n = rsa.generate_private_key(65537, 2048).private_numbers()
    parts = {"n": n.public_numbers.n, "e": n.public_numbers.e, "d": n.d, "p": n.p, "q": n.q, "dp": n.dmp1, "dq": n.dmq1, "qi": n.iqmp}
    return {"kty": "RSA", "kid": kid, "alg": alg, "use": "sig",
            **{k: text(v, (v.bit_length() + 7) // 8) for k, v in parts.items()}}


class Server:
    def __init__(self, folder):
        self.folder = directory.certificates(folder)
        (self.folder / "client.secret").write_text(SECRET)
        (self.folder / "wrong.secret").write_text("another secret")
        self.port, = directory.free_ports(1)
        self.issuer, self.process, self.redirect = f"https://127.0.0.1:{self.port}", None, "https://localhost/none"
        (FOLDER / "oidc_server.mjs").write_text((HERE / "oidc_server.mjs").read_text())  # Modules are looked for beside it.

    def start(self, *keys):
        self.stop()
        config = self.folder / "oidc.json"
        config.write_text(json.dumps({"port": self.port, "cert": str(self.folder / "ca-good.crt"), "keys": keys,
                                      "key": str(self.folder / "ca-good.key"), "clientID": CLIENT, "clientSecret": SECRET,
                                      "redirectURI": self.redirect}))
        self.process = subprocess.Popen(["node", FOLDER / "oidc_server.mjs", config], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def config(self, **keys):
        return {**provider("OpenIDIdentityProvider", **{
            "issuer": self.issuer, "clientID": CLIENT, "clientSecret": {"file": str(self.folder / "client.secret")},
            "ca": str(self.folder / "ca.crt"),
            "extraScopes": ["profile", "email"],
            "claims": {"id": ["sub"], "preferredUsername": ["preferred_username"], "name": ["name"], "email": ["email"]},
            **keys}), "challenge": False}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "op").mkdir()
    s = Server(folder / "op")
    s.c = OAuth(str(folder), providers=[s.config()])
    s.redirect = f"{s.c.url()}/oauth2callback/corp"
    s.start(new_key("RS256", "one"))
    yield s
    s.stop()
    s.c.stop(signal.SIGKILL)


class Agent:
    """Follows redirects of any origin, and keeps the cookies of each."""

    def __init__(self):
        self.jars = {}

    def ask(self, url, form=None):
        at = urllib.parse.urlsplit(url)
        jar = self.jars.setdefault(at.netloc, http.cookies.SimpleCookie())
        c = http.client.HTTPSConnection(at.hostname, at.port, timeout=60, context=ssl._create_unverified_context())
        headers = {"Cookie": "; ".join(f"{m.key}={m.value}" for m in jar.values() if m.value)} if jar else {}
        body = urllib.parse.urlencode(form) if form is not None else None
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        c.request("POST" if body is not None else "GET", at._replace(scheme="", netloc="").geturl(), body, headers)
        r = c.getresponse()
        answer = r.status, r.getheader("Location"), r.read().decode()
        for cookie in r.headers.get_all("Set-Cookie") or []:
            jar.load(cookie)
        c.close()
        return answer

    def go(self, url, form=None, until=lambda url: False):
        """The last URL, its status and text."""
        for _ in range(20):
            status, location, body = self.ask(url, form)
            form = None
            if status not in (302, 303) or not location:
                return url, status, body
            url = urllib.parse.urljoin(url, location)
            if until(url):
                return url, status, body
        raise AssertionError(f"a loop: {url}")


def begin(site):
    """A browser that is at the server's page for logins."""
    def at_page():
        agent = Agent()
        url, status, body = agent.go(site.c.url() + "/oauth/token/request")
        return (agent, url) if status == 200 and "/interaction/" in url else None
    return wait_for("the page of the server", at_page)


def log_in(site, name, password="open sesame", **form):
    agent, url = begin(site)
    return agent.go(url, {"login": name, "password": password, **form})


def test_a_login_without_a_browser(site):
    """`tenet login --web` prints an address, and waits for the code of whoever opens it."""
    home = site.folder / "home"
    home.mkdir()
    p = subprocess.Popen([TENET, "login", site.c.url(), "--certificate-authority", site.c.pki / "ca.crt", "--web"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                         env={**{k: v for k, v in environment().items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")},
                              "HOME": str(home), "KUBECONFIG": str(home / "config")})
    url = re.search(r"https://\S+", p.stdout.readline())[0]
    agent = Agent()
    page, status, _ = wait_for("the page", lambda: agent.go(url) if "/interaction/" in agent.go(url)[0] else None)
    assert status == 200
    back, _, _ = agent.go(page, {"login": "jane", "password": "open sesame"}, until=lambda u: u.startswith("http://127.0.0.1"))
    subprocess.run(["curl", "-sS", "-o", "/dev/null", back], check=True)
    out, _ = p.communicate(timeout=60)
    assert p.returncode == 0 and "Login successful" in out, out
    me = site.c.admin("GET", f"{USERS}/jane")
    assert me["identities"] == ["corp:jane"] and me["fullName"] == "Name of jane"
    who = subprocess.run([TENET, "whoami"], capture_output=True, text=True, env={**environment(), "KUBECONFIG": str(home / "config")})
    assert who.stdout.strip() == "jane"


def test_a_refusal_and_a_cancelled_login_give_nothing(site):
    url, status, body = log_in(site, "mallory", "wrong")
    assert status == 200 and "password is wrong" in body and "/interaction/" in url
    url, status, body = log_in(site, "mallory", "", abort="yes")
    assert status == 403 and "sha256~" not in body and "access_denied" in site.c.text()
    assert site.c.ask(site.c.root(), "GET", f"{USERS}/mallory")[0] == 404


def test_new_keys_and_other_algorithms_are_taken(site):
    for kid, alg in (("two", "RS256"), ("three", "ES256")):
        site.start(new_key(alg, kid))
        name = f"user-{kid}"

        def works():
            url, status, _ = log_in(site, name)
            return status == 200 and "/oauth/token/display" in url
        wait_for("the new key", works)  # Keys are read again at most once in 5 s.
        assert site.c.admin("GET", f"{USERS}/{name}")["identities"] == [f"corp:{name}"]


def test_a_server_that_does_not_answer_or_is_another(site):
    agent, url = begin(site)
    back, _, _ = agent.go(url, {"login": "slow", "password": "open sesame"}, until=lambda u: "/oauth2callback/" in u)
    os.kill(site.process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    try:
        _, status, body = agent.go(back)
        assert status == 403 and time.monotonic() - begun < 30 and ("10000 ms" in site.c.text() or "timed out" in site.c.text())
    finally:
        os.kill(site.process.pid, signal.SIGCONT)
    (site.folder / "foreign").mkdir()
    directory.certificates(site.folder / "foreign", "foreign")
    try:
        site.c.reread(site.config(ca=str(site.folder / "foreign/foreign.crt")))
        wait_for("the reason", lambda: "unknown authority" in site.c.text())
        assert Agent().go(site.c.url() + "/oauth/token/request")[1] == 503
        site.c.reread(site.config(clientSecret={"file": str(site.folder / "wrong.secret")}))
        _, status, _ = log_in(site, "slow")
        assert status == 403 and "invalid_client" in site.c.text()
    finally:
        site.c.reread(site.config())
    assert site.c.ask(site.c.root(), "GET", f"{USERS}/slow")[0] == 404
    assert log_in(site, "after")[1] == 200
    assert "open sesame" not in site.c.text() and SECRET not in site.c.text()


def test_a_person_logs_in_by_chromium(site):
    begin(site)
    b = Chromium()
    try:
        b.open(site.c.url() + "/oauth/token/request")
        assert b.value("document.title") == "Sign in" and b.url().startswith(site.issuer)
        b.type("ann")
        b.key("Tab")
        b.type("open sesame")
        b.follow()
        assert b.value("document.title") == "Display a token", b.url()
        b.tab_to("button")
        b.follow()
        token = b.value("document.querySelector('#token').innerText")
        assert site.c.ask(token, "GET", f"{USERS}/~", want=200)["metadata"]["name"] == "ann"
        assert b.complaints == []
    finally:
        b.close()
