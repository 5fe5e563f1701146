# SPDX-License-Identifier: Apache-2.0
"""Logins through a real apache2 that authenticates and names people in headers: whole exchanges of `tenet login` and of a browser,
refusals, a proxy that is down, certificates that are wrong; and the keys of the provider."""
import base64
import json
import signal
import ssl
import subprocess
import urllib.parse

import pytest

import proxies
from lab import TENET, environment, wait_for
from proxies import DAY, Apache, Authority
from test_oauth import ASKED, CHALLENGING, USERS, OAuth

QUERY = f"/oauth/authorize?client_id={CHALLENGING}&response_type=token"


class Site:
    def __init__(self, folder):
        self.folder = folder
        (folder / "apache").mkdir()
        (folder / "pki").mkdir()
        self.authority, self.foreign = (Authority(folder, n) for n in ("proxies", "foreign"))
        self.pair = self.authority.pair("proxy")
        # The authority of the master is not there yet; apache reads the file when it starts.
        self.apache = Apache(folder / "apache", self.pair, folder / "pki/ca.crt")
        # apache2 compares the DNS names of a server, not its addresses.
        self.c = OAuth(str(folder), providers=[proxies.provider(self.apache.url, self.authority.crt)],
                       serving={"names": ["127.0.0.1", "localhost"]})
        self.apache.start(self.c.port)

    def restart(self, pair=None):
        self.apache.stop()
        self.apache.start(self.c.port, pair)

    def tenet(self, *args):
        """The client trusts both authorities."""
        both = self.folder / "both.crt"
        both.write_bytes((self.folder / "pki/ca.crt").read_bytes() + (self.folder / "apache/site.crt").read_bytes())
        return [str(TENET), "login", self.c.url(), "--certificate-authority", str(both), *args]

    def log_in(self, password, user="joe"):
        """`tenet login` at a terminal, which asks whether the proxy may have the password."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        r = subprocess.run(["script", "-qec", " ".join(f"'{a}'" if "'" not in a else f'"{a}"' for a in self.tenet(
            "-u", user, "-p", password)), "/dev/null"], input=b"y\n", capture_output=True, timeout=120,
            env={**environment(), "HOME": str(home), "KUBECONFIG": ""})
        return r.returncode, r.stdout.decode()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    s = Site(tmp_path_factory.mktemp("site"))
    yield s
    s.apache.stop()
    s.c.stop(signal.SIGKILL)


def test_tenet_logs_in_through_the_proxy(site):
    status, text = site.log_in("joe's")
    assert status == 0 and "Login successful" in text and site.apache.url in text, text
    me = site.c.admin("GET", f"{USERS}/joe")
    assert me["identities"] == ["proxy:joe"] and me["fullName"] == "Joe Doe"
    status, text = site.log_in("wrong")
    assert status != 0 and "401" in text
    assert site.log_in("x", user="nobody")[0] != 0
    assert site.c.ask(site.c.root(), "GET", f"{USERS}/nobody")[0] == 404


def test_oc_and_browsers_are_sent_to_the_proxy(site):
    b = site.c.browser()
    state = urllib.parse.urlencode({"state": "a&b=c", "redirect_uri": site.c.url() + "/oauth/token/implicit"})
    sent = b.get(f"{QUERY}&{state}", headers=ASKED)
    assert sent.status == 302 and sent.location.startswith(f"{site.apache.url}/challenging/oauth/authorize?client_id=")
    assert sent.query()["state"] == "a&b=c"
    # A client with the proxy's answer in hand.
    joe = {"Authorization": "Basic " + base64.b64encode(b"joe:joe's").decode(), **ASKED}
    through = proxies.request(site.apache.port, sent.location[len(site.apache.url):], joe.items())
    assert through.status == 302 and through.query()["access_token"].startswith("sha256~") and through.query()["state"] == "a&b=c"
    page = b.get("/oauth/authorize?client_id=openshift-browser-client&response_type=code")
    assert page.status == 302 and page.location.startswith(f"{site.apache.url}/web/oauth/authorize?client_id=openshift-browser")
    code = proxies.request(site.apache.port, page.location[len(site.apache.url):], joe.items())
    assert code.status == 302 and code.query()["code"].startswith("sha256~")
    # A proxy that lets everybody pass names nobody: there is no redirect back to the proxy, which would never end.
    assert proxies.request(site.apache.port, "/careless" + QUERY, ASKED.items()).status == 403


def test_wrong_certificates_of_the_proxy_log_nobody_in(site):
    cases = [(site.authority.pair("other"), "none of clientCommonNames"),
             # apache2 does not show a certificate that the master does not ask for.
             (site.foreign.pair("proxy"), "no certificate by clientCA"),
             (site.authority.pair("late", begin=-3 * DAY, end=-DAY), "expired")]
    try:
        for pair, why in cases:
            site.restart(pair)
            status, text = site.log_in("joe's")
            assert status != 0 and "successful" not in text, (why, text)
            wait_for("the reason in the log", lambda: why in site.c.text())
            assert "unexpected response: " in text or "redirect loop" in text, text
        site.apache.stop()
        status, text = site.log_in("joe's")
        assert status != 0 and "refused" in text
    finally:
        site.restart()
    assert site.log_in("joe's")[0] == 0


def test_the_authority_changes_without_a_restart(site):
    ask = lambda pair: proxies.request(site.c.port, QUERY, [("X-Remote-User", "ann")], pair).status  # noqa: E731
    joined = site.foreign.pair("proxy")
    assert ask(site.pair) == 302
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(joined)
    site.c.reread(proxies.provider(site.apache.url, site.foreign.crt, challengeURL=site.apache.url + "/x?${url}"))
    try:
        assert ask(joined) == 302
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(site.pair)
        sent = site.c.browser().get(QUERY, headers=ASKED)
        assert sent.location == f"{site.apache.url}/x?{urllib.parse.quote(site.c.url() + QUERY, safe='')}"
    finally:
        site.c.reread(proxies.provider(site.apache.url, site.authority.crt))
    assert ask(site.pair) == 302


def test_wrong_configurations_name_the_key(tmp_path):
    authority, file = Authority(tmp_path, "a"), tmp_path / "m.yaml"
    p = lambda **more: proxies.provider("https://h", authority.crt, **more)  # noqa: E731
    for config, text in [(p(clientCA=None), "clientCA: is required"), (p(headers=[]), "headers: must be a list"),
                         (p(headers=["X Y"]), 'headers[0]: "X Y" is no name of a header'),
                         (p(nameHeaders=["Cookie"]), 'nameHeaders[0]: "Cookie" has another meaning'),
                         (p(challengeURL="http://h/?${query}"), "challengeURL: "), (p(loginURL="https://h/"), "${url} nor ${query}"),
                         (p(loginURL="https://${query}/?${query}"), "loginURL: "), (p(loginURL=None), "loginURL: must be given"),
                         (p(challengeURL=None), "challengeURL: must be given with challenge"), (p(header=["A"]), "header: unknown key")]:
        file.write_text(json.dumps({"kind": "MasterConfig", "servingInfo": {"tls": "auto"},
                                    "oauthConfig": {"identityProviders": [config]}}))
        r = subprocess.run([TENET, "adm", "config", "check", file], capture_output=True, text=True)
        assert r.returncode == 1 and text in r.stdout, (text, r.stdout, r.stderr)
