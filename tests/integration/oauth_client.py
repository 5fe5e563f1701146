# SPDX-License-Identifier: Apache-2.0
"""A browser of few lines, and what tests of the OAuth server share."""
import base64
import hashlib
import html
import http.client
import re
import ssl
import urllib.parse

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
FORM = "application/x-www-form-urlencoded"


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Answer:
    def __init__(self, r):
        self.status, self.headers, self.text = r.status, r.headers, r.read().decode()
        self.location = r.headers.get("Location")

    def query(self):
        """The parameters of the redirect, of its query or its fragment."""
        url = urllib.parse.urlsplit(self.location)
        return {k: v[0] for k, v in urllib.parse.parse_qs(url.query or url.fragment).items()}

    def fields(self):
        """The hidden fields of the form, and its action."""
        found = dict((html.unescape(n), html.unescape(v)) for n, v in
                     re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', self.text))
        return html.unescape(re.search(r'<form method="post" action="([^"]*)"', self.text)[1]), found


class Browser:
    """Keeps cookies, follows nothing by itself."""

    def __init__(self, port):
        self.port, self.cookies = port, {}
        self.context = ssl._create_unverified_context()

    def ask(self, method, path, body=None, headers=None):
        c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context)
        all_headers = dict(headers or {})
        if self.cookies:
            all_headers["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        if isinstance(body, (dict, list)):
            body = urllib.parse.urlencode(body)
            all_headers.setdefault("Content-Type", FORM)
        c.request(method, path, body, all_headers)
        answer = Answer(c.getresponse())
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, value = cookie.split(";")[0].split("=", 1)
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        c.close()
        return answer

    def get(self, path, **kw):
        return self.ask("GET", path, **kw)

    def post(self, path, body, **kw):
        return self.ask("POST", path, body, **kw)

    def authorize(self, client, headers=None, **query):
        query = {"client_id": client, "response_type": "code", **query}
        return self.get("/oauth/authorize?" + urllib.parse.urlencode(query), headers=headers)

    def log_in(self, page, user, password):
        """Fills in the form of the page; the answer to it."""
        action, fields = page.fields()
        return self.post(action, {**fields, "username": user, "password": password})

    def token(self, **form):
        headers = form.pop("headers", None)
        return self.post("/oauth/token", {"grant_type": "authorization_code", **form}, headers=headers)
