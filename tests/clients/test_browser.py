# SPDX-License-Identifier: Apache-2.0
"""The pages of the OAuth server in a real browser: a person logs in by the keyboard alone, in a browser that runs no script, and
the browser has nothing to complain about."""
import http.server
import signal
import threading
import urllib.parse

import pytest

from devtools import Chromium
from test_oauth import CLIENTS, USERS, OAuth, client, provider


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    tmp = str(tmp_path_factory.mktemp("browser"))
    anybody = {"name": "anybody", "login": True, "challenge": False, "provider": {"kind": "AllowAllPasswordIdentityProvider"}}
    made = OAuth(tmp, providers=[provider("files", f"{tmp}/users"), anybody])
    yield made
    made.stop(signal.SIGKILL)


@pytest.fixture
def b():
    made = Chromium()
    try:
        made.do("Emulation.setScriptExecutionDisabled", value=True)
        yield made
    finally:
        made.close()


class Shop:
    """An application on another origin, to which browsers are sent back."""

    def __init__(self):
        shop = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                if url.path == "/cb":
                    shop.asked.append(dict(urllib.parse.parse_qsl(url.query)))
                body = b'<!DOCTYPE html><html lang="en"><link rel="icon" href="data:,"><title>Shop</title><p>Welcome</p></html>'
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/cb"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def shop():
    made = Shop()
    yield made
    made.close()


def check_page(b, title, alerts=0):
    """What holds for each page: a language, a title and one heading, names of all that can be operated, no scripts, a policy in
    force, and no complaint of the browser."""
    assert b.value("document.title") == title
    assert b.value("document.documentElement.lang") == "en"
    assert b.value("document.querySelectorAll('h1').length") == 1
    assert b.value("document.querySelectorAll('main').length") == 1
    assert b.value("document.querySelectorAll('[role=alert]').length") == alerts
    assert b.value("document.scripts.length") == 0
    assert b.value("[...document.querySelectorAll('input:not([type=hidden])')].every(i => i.labels.length === 1)")
    assert b.value("getComputedStyle(document.querySelector('main')).maxWidth") == "512px", "the style sheet is not in force"
    operated = {"textbox", "button", "checkbox", "link"}
    for node in b.do("Accessibility.getFullAXTree")["nodes"]:
        if node.get("role", {}).get("value") in operated and not node.get("ignored"):
            assert node.get("name", {}).get("value"), node
    assert b.complaints == []


def log_in(b, user, password):
    """The field of the name has the focus at first."""
    assert b.value("document.activeElement.name") == "username"
    b.type(user)
    b.key("Tab")
    assert b.value("document.activeElement.type") == "password"
    b.type(password)
    b.follow()


def names(b):
    return {k["name"] for k in b.do("Network.getCookies")["cookies"]}


def test_a_person_gets_a_token_and_logs_out(c, b):
    b.open(c.url() + "/oauth/token/request")
    check_page(b, "Log in")
    b.key("Tab")
    assert b.focus() == "files"
    b.follow()
    check_page(b, "Log in")
    log_in(b, "bob", "wrong")
    check_page(b, "Log in", alerts=1)
    assert "Invalid login or password" in b.value("document.querySelector('[role=alert]').innerText")
    assert b.value("document.querySelector('[name=password]').value") == ""
    log_in(b, "bob", "secret")
    check_page(b, "Display a token")
    assert "sha256~" not in b.value("document.querySelector('main').innerText")
    b.tab_to("button")
    b.follow()
    check_page(b, "Your token")
    token = b.value("document.querySelector('#token').innerText")
    assert c.ask(token, "GET", f"{USERS}/~", want=200)["metadata"]["name"] == "bob"
    assert token not in b.url()
    b.tab_to("button")
    assert b.focus() == "Log out"
    b.follow()
    check_page(b, "Log in")
    assert "ssn" not in names(b)


def test_a_person_allows_a_part(c, b, shop):
    client(c, "shop", grantMethod="prompt", redirectURIs=[shop.url])
    query = {"client_id": "shop", "response_type": "code", "redirect_uri": shop.url, "state": "s", "idp": "files",
             "scope": "user:info user:check-access"}
    b.open(f"{c.url()}/oauth/authorize?{urllib.parse.urlencode(query)}")
    log_in(b, "ann", "sesame")
    check_page(b, "Authorize access")
    b.tab_to("[value='user:check-access']")
    b.key(" ")
    b.tab_to("[name=approve]")
    b.follow()
    assert b.value("document.title") == "Shop" and b.complaints == []
    assert shop.asked[-1]["state"] == "s" and shop.asked[-1]["code"].startswith("sha256~")
    grant = c.admin("GET", "/apis/oauth.openshift.io/v1/oauthclientauthorizations/ann:shop")
    assert grant["scopes"] == ["user:info"]
    # The denial goes back, too.
    b.open(f"{c.url()}/oauth/authorize?{urllib.parse.urlencode({**query, 'scope': 'user:list-projects'})}")
    log_in(b, "ann", "sesame")
    check_page(b, "Authorize access")
    b.tab_to("[name=deny]")
    b.follow()
    assert shop.asked[-1]["error"] == "access_denied" and b.complaints == []


def test_a_login_leads_back_to_the_client_at_once(c, b, shop):
    """Browsers hold a form's policy against the redirects behind it: that of the login names the client's origin."""
    client(c, "auto", redirectURIs=[shop.url])
    query = {"client_id": "auto", "response_type": "code", "redirect_uri": shop.url, "idp": "anybody"}
    b.open(f"{c.url()}/oauth/authorize?{urllib.parse.urlencode(query)}")
    log_in(b, "eve", "x")
    assert b.complaints == [] and b.value("document.title") == "Shop" and shop.asked[-1]["code"]
    # So for the command line's client, whose listener has any port, after a wrong password.
    assert c.admin("GET", f"{CLIENTS}/openshift-cli-client")
    b.do("Network.clearBrowserCookies")
    cli = {**query, "client_id": "openshift-cli-client", "idp": "files", "redirect_uri": shop.url.replace("/cb", "/callback"),
           "code_challenge": "a" * 43, "code_challenge_method": "plain"}
    b.open(f"{c.url()}/oauth/authorize?{urllib.parse.urlencode(cli)}")
    log_in(b, "bob", "wrong")
    log_in(b, "bob", "secret")
    assert b.complaints == [] and b.value("document.title") == "Shop"


def test_an_error_is_a_page(c, b):
    b.open(f"{c.url()}/oauth/token/display?error=access_denied")
    # The status of the page itself is the one thing that the browser notes.
    assert [url for _, url in b.complaints] == [b.url()]
    b.complaints.clear()
    check_page(b, "Error", alerts=1)
