# SPDX-License-Identifier: Apache-2.0
"""OpenIDIdentityProvider, GitLab's and Google's checks, against a provider of OpenID Connect that lies as a test asks."""
import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

import directory
from directory import ASK, ask

CLIENT, SECRET = "tenet client", "s:e c+r%t"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(n, size=None):
    return b64(n.to_bytes(size or (n.bit_length() + 7) // 8, "big"))


class Key:
    def __init__(self, kind="RS256", kid="one"):
        self.kind, self.kid = kind, kid
        self.key = rsa.generate_private_key(65537, 2048) if kind == "RS256" else ec.generate_private_key(ec.SECP256R1())

    def jwk(self):
        n = self.key.public_key().public_numbers()
        if self.kind == "RS256":
            return {"kty": "RSA", "kid": self.kid, "use": "sig", "n": number(n.n), "e": number(n.e)}
        return {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": number(n.x, 32), "y": number(n.y, 32)}

    def sign(self, claims, header=None):
        text = ".".join(b64(json.dumps(x).encode()) for x in ({"alg": self.kind, "kid": self.kid, **(header or {})}, claims))
        if self.kind == "RS256":
            signature = self.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        else:
            r, s = utils.decode_dss_signature(self.key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
            signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return text + "." + b64(signature)


class Provider:
    """Serves discovery, keys, token and userInfo over TLS; tests replace its members."""

    def __init__(self, d, port=0, issuer=None, pair=None):
        self.dir = directory.certificates(d)
        self.ca = str(self.dir / "ca.crt")
        self.keys = [Key()]
        self.requests = []
        self.reset()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *ignored):
                pass

            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                status, answer = outer.answer(self.path, self.headers, body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(pair or (self.dir / "ca-good.crt", self.dir / "ca-good.key")))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.issuer = issuer or f"https://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self):
        self.metadata, self.claims, self.info, self.token = {}, {}, {}, {}
        self.make_id_token = lambda claims: self.keys[-1].sign(claims)
        self.status = {}
        self.challenge = None
        self.requests.clear()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, headers, body):
        path = path.split("?")[0]
        self.requests.append(path)
        if path in self.status:
            return self.status[path], {"error": "server_error"}
        if path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize",
                         "token_endpoint": self.issuer + "/token", "jwks_uri": self.issuer + "/keys",
                         "userinfo_endpoint": self.issuer + "/me", **self.metadata}
        if path == "/keys":
            return 200, {"keys": [{"kty": "oct", "k": "AAAA"}] + [k.jwk() for k in self.keys]}
        if path == "/me":
            assert headers["Authorization"] == "Bearer an-access-token"
            return 200, {"sub": "joe-4711", "name": "Joe Doe", **self.info}
        form = dict(urllib.parse.parse_qsl(body))
        pair = f"{urllib.parse.quote(CLIENT)}:{urllib.parse.quote(SECRET, safe='')}"
        right = (headers["Authorization"] == "Basic " + base64.b64encode(pair.encode()).decode() and
                 form["grant_type"] == "authorization_code" and form["code"] == "the-code" and
                 b64(hashlib.sha256(form["code_verifier"].encode()).digest()) == self.challenge)
        if not right:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "joe-4711", "iat": now, "exp": now + 60, "nonce": self.nonce,
                  "preferred_username": "joe", "email": "joe@example.com", **self.claims}
        claims = {k: v for k, v in claims.items() if v is not None}
        return 200, {"access_token": "an-access-token", "token_type": "Bearer", "id_token": self.make_id_token(claims),
                     **self.token}

    def config(self, **keys):
        return {"kind": "OpenIDIdentityProvider", "clientID": CLIENT, "clientSecret": SECRET, "issuer": self.issuer, "ca": self.ca,
                "claims": {"id": ["sub"], "preferredUsername": ["nothing", "preferred_username"], "name": ["name"],
                           "email": ["email"]}, **keys}

    def login(self, config=None, answer=None, logins=1, between=lambda: None):
        """Logs in as a browser does: the outcomes; 'answer' has parameters of the answer, None removes one."""
        path = self.dir / "config.json"
        path.write_text(json.dumps({"provider": config or self.config()}))
        p = subprocess.Popen([ASK, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        outcomes = []
        try:
            for i in range(logins):
                p.stdin.write('{"login": true}\n')
                p.stdin.flush()
                line = p.stdout.readline()
                if not line:
                    return p.communicate(timeout=60)[1]
                url = json.loads(line)["url"]
                query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
                self.url, self.query, self.nonce, self.challenge = url, query, query["nonce"], query["code_challenge"]
                back = {"code": "the-code", "state": query["state"], **(answer or {})}
                back = urllib.parse.urlencode({k: v for k, v in back.items() if v is not None})
                urllib.request.urlopen(f"{query['redirect_uri']}?{back}", timeout=30).read()
                outcomes.append(json.loads(p.stdout.readline()))
                between()
            p.stdin.close()
            assert p.wait(60) == 0, p.stderr.read()
        finally:
            p.kill()
            p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                f.close()
        return outcomes if logins > 1 else outcomes[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    p = Provider(tmp_path_factory.mktemp("openid"))
    yield p
    p.close()


@pytest.fixture
def op(server):
    server.reset()
    server.keys = [Key()]
    return server


def test_a_person_is_proved_by_a_whole_login(op):
    config = op.config(extraScopes=["profile", "email"], extraAuthorizeParameters={"prompt": "login"})
    assert op.login(config) == {"outcome": "proved", "user": "joe-4711", "preferred": "joe", "name": "Joe Doe",
                                "email": "joe@example.com"}
    assert op.url.startswith(op.issuer + "/authorize?")
    assert op.query["scope"] == "openid profile email" and op.query["prompt"] == "login"
    assert op.query["response_type"] == "code" and op.query["code_challenge_method"] == "S256"
    assert op.query["client_id"] == CLIENT


def test_keys_on_p256_and_right_hashes_are_taken(op):
    op.keys = [Key("ES256")]
    op.claims = {"at_hash": b64(hashlib.sha256(b"an-access-token").digest()[:16]), "aud": [CLIENT]}
    assert op.login()["outcome"] == "proved"


def test_new_keys_are_read_when_they_are_needed(op):
    def rotate():
        if len(op.keys) == 1:
            op.keys = [op.keys[0], Key(kid="two")]
            time.sleep(5.1)  # A provider's keys are read at most once in 5 s.
    first, second = op.login(logins=2, between=rotate)
    assert first["outcome"] == second["outcome"] == "proved"
    assert op.requests.count("/keys") == 2


def unsigned(claims):
    return ".".join(b64(json.dumps(x).encode()) for x in ({"alg": "none"}, claims)) + "."


def confused(op):
    """HS256 with the public key as the secret."""
    def make(claims):
        jwk = op.keys[0].jwk()
        text = ".".join(b64(json.dumps(x).encode()) for x in ({"alg": "HS256", "kid": jwk["kid"]}, claims))
        return text + "." + b64(hmac.new(json.dumps(jwk).encode(), text.encode(), "sha256").digest())
    return make


@pytest.mark.parametrize("make", [
    lambda op: unsigned,
    lambda op: lambda claims: unsigned(claims) + b64(b"x"),
    confused,
    lambda op: Key(kid="one").sign,  # The name of a known key, and another key.
    lambda op: Key("ES256", kid="one").sign,
    lambda op: lambda claims: op.keys[0].sign(claims, {"crit": ["x"], "x": 1}),
    lambda op: lambda claims: op.keys[0].sign(claims, {"kid": "unknown"}),
    lambda op: lambda claims: "x" * 20000,
    lambda op: lambda claims: op.keys[0].sign({**claims, "pad": "x" * 20000}),
], ids=["none", "none-with-bytes", "HS256", "another-key", "another-kind", "crit", "unknown-kid", "large", "large-signed"])
def test_signatures_are_verified(op, make):
    op.make_id_token = make(op)
    answer = op.login()
    assert answer["outcome"] == "failed" and "id_token" in answer["why"]


@pytest.mark.parametrize("claims, why", [
    ({"iss": "https://evil.example.com"}, '"iss"'),
    ({"aud": "another client"}, '"aud"'),
    ({"aud": [CLIENT, "another"]}, '"azp"'),
    ({"azp": "another"}, '"azp"'),
    ({"nonce": "of another login"}, '"nonce"'),
    ({"nonce": None}, '"nonce"'),
    ({"exp": 1}, "expired"),
    ({"iat": int(time.time()) + 3600}, "in the future"),
    ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, '"at_hash"'),
    ({"sub": None}, '"sub"'),
])
def test_claims_are_verified(op, claims, why):
    op.claims = claims
    answer = op.login()
    assert answer["outcome"] == "failed" and why in answer["why"]


def test_user_info_must_be_of_the_same_person(op):
    op.info = {"sub": "admin"}
    answer = op.login()
    assert answer["outcome"] == "failed" and 'userInfo: "sub"' in answer["why"]


def test_answers_of_the_browser_are_judged(op):
    assert op.login(answer={"iss": "https://evil.example.com"})["outcome"] == "failed"
    assert op.login(answer={"iss": op.issuer})["outcome"] == "proved"
    assert op.login(answer={"code": "guessed"})["why"] == 'token: status 400, error "invalid_grant"'
    assert op.login(answer={"code": None})["outcome"] == "failed"
    assert op.login(answer={"code": None, "error": "access_denied"})["outcome"] == "refused"
    assert op.login(answer={"code": None, "error": "server_error"})["outcome"] == "failed"


@pytest.mark.parametrize("path", ["/token", "/keys", "/me"])
def test_a_part_of_the_provider_that_fails_proves_nobody(op, path):
    op.status = {path: 302}
    answer = op.login()
    assert answer["outcome"] == "failed" and "status 302" in answer["why"]


def test_a_token_without_id_token_proves_nobody(op):
    op.token = {"id_token": None}
    assert "no id_token" in op.login()["why"]


@pytest.mark.parametrize("metadata, why", [
    ({"issuer": "https://evil.example.com"}, "names the issuer"),
    ({"token_endpoint": "http://localhost/token"}, "not https"),
    ({"authorization_endpoint": "http://localhost/"}, "authorization_endpoint"),
    ({"jwks_uri": ""}, "no jwks_uri"),
])
def test_metadata_is_verified(op, metadata, why):
    op.metadata = metadata
    assert why in op.login()


def test_configured_urls_need_no_discovery(op):
    urls = {"authorize": op.issuer + "/other?tenant=1", "token": op.issuer + "/token", "jwks": op.issuer + "/keys"}
    answer = op.login(op.config(urls=urls))
    assert answer["outcome"] == "proved" and "name" not in answer
    assert op.url.startswith(op.issuer + "/other?tenant=1&response_type=code&")
    assert "/.well-known/openid-configuration" not in op.requests


def test_gitlab_is_openid_with_its_own_names(op):
    op.claims = {"nickname": "joe_lab"}
    config = {"kind": "GitLabIdentityProvider", "clientID": CLIENT, "clientSecret": SECRET, "url": op.issuer + "/", "ca": op.ca}
    assert op.login(config)["preferred"] == "joe_lab"


def test_a_foreign_certificate_is_refused(op, tmp_path):
    other = directory.certificates(tmp_path, "foreign")
    assert "unknown authority" in op.login(op.config(ca=str(other / "foreign.crt")))


@pytest.mark.parametrize("config, text", [
    ({"issuer": "http://h/"}, "issuer: "),
    ({"issuer": "https://h/?a"}, "issuer: "),
    ({"urls": {"token": "http://h/"}}, "urls.token: "),
    ({"urls": {"nonsense": "https://h/"}}, "urls: nonsense: unknown key"),
    ({"extraAuthorizeParameters": {"nonce": "x"}}, "extraAuthorizeParameters.nonce: is set by the server"),
    ({"claims": {}}, "claims: id: is required"),
    ({"clientSecret": {"file": "/no/such"}}, "clientSecret: "),
])
def test_wrong_configurations_name_the_key(op, config, text):
    assert text in ask({**op.config(), **config})


def test_google_and_gitlab_check_their_keys():
    secret = {"clientID": "a", "clientSecret": "b"}
    assert "legacy: " in ask({"kind": "GitLabIdentityProvider", "url": "https://h", "legacy": "yes", **secret})
    assert "url: " in ask({"kind": "GitLabIdentityProvider", "url": "http://h", "legacy": True, **secret})
    assert "url: " in ask({"kind": "GitLabIdentityProvider", "url": "http://h", **secret})
    assert "hostedDomain" in ask({"kind": "GoogleIdentityProvider", "hostedDomain": 1, **secret})
    assert "clientSecret: is required" in ask({"kind": "GoogleIdentityProvider", "clientID": "a"})


def test_google_admits_accounts_of_its_domain_alone(tmp_path):
    """accounts.google.com is a simulator, in namespaces of its own."""
    program = pathlib.Path(__file__).with_name("google_site.py")
    cases = [{"hd": "example.com"}, {"hd": "evil.example"}, {}, {"hd": ""}, {"hd": "example.com.evil.example"}, {"hd": ["example.com"]},
             {"hd": "EXAMPLE.COM"}, {"hd": True}]
    r = subprocess.run(["unshare", "-mn", sys.executable, "-B", program, tmp_path, json.dumps(cases)], capture_output=True, text=True,
                       timeout=120)
    first, *others, any_domain, url = [json.loads(line) for line in r.stdout.splitlines()] or pytest.fail(r.stderr)
    assert first == {"outcome": "proved", "user": "joe-4711", "preferred": "joe@example.com", "name": "Joe Doe",
                     "email": "joe@example.com"}
    assert [o["outcome"] for o in others] == ["refused"] * (len(cases) - 1) and all('"hd" is' in o["why"] for o in others)
    assert any_domain["outcome"] == "proved" and "hd=example.com" in url


class GitHub:
    """The four paths of GitHub Enterprise that a login asks, at a host of its own."""

    def __init__(self, op):
        self.op, self.orgs, self.teams, self.user = op, [], [], {"id": 4711, "login": "joe", "name": None, "email": "joe@example.com"}
        self.error = None

    def answer(self, path, headers, body):
        path, _, query = path.partition("?")
        page = int(dict(urllib.parse.parse_qsl(query)).get("page", 1))
        self.op.requests.append(path)
        if path == "/login/oauth/access_token":
            form = dict(urllib.parse.parse_qsl(body))
            right = (form["client_id"], form["client_secret"], form["code"]) == (CLIENT, SECRET, "the-code")
            return 200, {"access_token": "gh-token"} if right else {"error": "bad_verification_code"}
        if headers["Authorization"] != "Bearer gh-token":
            return 401, {}
        if self.error == path:
            return 403, {"message": "rate limit"}
        lists = {"/api/v3/user/orgs": [{"login": o} for o in self.orgs],
                 "/api/v3/user/teams": [{"slug": t.split("/")[1], "organization": {"login": t.split("/")[0]}} for t in self.teams]}
        return 200, self.user if path == "/api/v3/user" else lists[path][(page - 1) * 100:page * 100]

    def config(self, **keys):
        return {"kind": "GitHubIdentityProvider", "clientID": CLIENT, "clientSecret": SECRET, "ca": self.op.ca,
                "hostname": self.op.issuer.removeprefix("https://"), **keys}

    def login(self, answer=None, **keys):
        path = self.op.dir / "config.json"
        path.write_text(json.dumps({"provider": self.config(**keys)}))
        with subprocess.Popen([ASK, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            p.stdin.write('{"login": true}\n')
            p.stdin.flush()
            url = json.loads(p.stdout.readline())["url"]
            self.query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
            back = urllib.parse.urlencode({"state": self.query["state"], **(answer or {"code": "the-code"})})
            urllib.request.urlopen(f"{self.query['redirect_uri']}?{back}", timeout=30).read()
            return json.loads(p.stdout.readline())


@pytest.fixture
def github(op, monkeypatch):
    g = GitHub(op)
    monkeypatch.setattr(op, "answer", g.answer)
    return g


def test_an_account_of_github_is_proved(github):
    assert github.login() == {"outcome": "proved", "user": "4711", "preferred": "joe", "email": "joe@example.com"}
    assert github.query["scope"] == "user:email" and github.query["code_challenge_method"] == "S256"
    assert "/api/v3/user/orgs" not in github.op.requests


def test_organizations_and_teams_admit(github):
    github.orgs, github.teams = ["Example", "other"], ["other/admins"]
    assert github.login(organizations=["example"])["outcome"] == "proved"
    assert github.query["scope"] == "user:email read:org"
    assert github.login(organizations=["none"], teams=["Other/Admins"])["outcome"] == "proved"
    for keys in ({"organizations": ["exam"]}, {"teams": ["example/admins"]}, {"organizations": ["none"], "teams": ["other/admin"]}):
        answer = github.login(**keys)
        assert answer["outcome"] == "refused" and "none of the organizations and teams" in answer["why"]


def test_memberships_beyond_the_first_page_count(github):
    github.orgs = [f"org{i}" for i in range(250)]
    assert github.login(organizations=["org249"])["outcome"] == "proved"
    assert github.op.requests.count("/api/v3/user/orgs") == 3
    github.orgs = [f"org{i}" for i in range(3000)]  # Bounded: the list is not read to its end.
    assert github.login(organizations=["org2999"])["outcome"] == "refused"


def test_wrong_answers_of_github_prove_nobody(github):
    assert "bad_verification_code" in github.login(answer={"code": "guessed"})["why"]
    assert github.login(answer={"error": "access_denied"})["outcome"] == "refused"
    github.error = "/api/v3/user/orgs"
    answer = github.login(organizations=["example"])
    assert answer["outcome"] == "failed" and "organizations: status 403" in answer["why"]
    github.error = None
    for user in ({"id": 0, "login": "joe"}, {"id": "4711", "login": "joe"}, {"login": "joe"}, {"id": 1}, []):
        github.user = user
        assert github.login()["outcome"] == "failed"


class GitLab:
    """The three paths of a GitLab without OpenID Connect."""

    def __init__(self, op):
        self.op, self.user, self.scopes = op, {"id": 12, "username": "joe", "name": "Joe Doe", "email": "joe@example.com"}, []

    def answer(self, path, headers, body):
        path = path.partition("?")[0]
        self.op.requests.append(path)
        if path == "/oauth/token":
            form = dict(urllib.parse.parse_qsl(body))
            right = (form["client_id"], form["client_secret"], form["code"]) == (CLIENT, SECRET, "the-code")
            return (200, {"access_token": "gl-token"}) if right else (401, {"error": "invalid_grant"})
        if headers["Authorization"] != "Bearer gl-token" or path != "/api/v4/user":
            return 401, {}
        return 200, self.user

    def config(self, **keys):
        return {"kind": "GitLabIdentityProvider", "clientID": CLIENT, "clientSecret": SECRET, "ca": self.op.ca,
                "url": self.op.issuer + "/", "legacy": True, **keys}

    login = GitHub.login


def test_an_old_gitlab_is_asked_by_oauth(op, monkeypatch):
    g = GitLab(op)
    monkeypatch.setattr(op, "answer", g.answer)
    assert g.login() == {"outcome": "proved", "user": "12", "preferred": "joe", "name": "Joe Doe", "email": "joe@example.com"}
    assert g.query["scope"] == "read_user" and set(op.requests) == {"/oauth/token", "/api/v4/user"}
    assert "status 401" in g.login(answer={"code": "guessed"})["why"]
    refused = g.login(answer={"error": "access_denied"})
    assert refused["outcome"] == "refused" and "GitLab" in refused["why"]
    for user in ({"id": 0, "username": "joe"}, {"id": "12", "username": "joe"}, {"id": 12, "login": "joe"}, []):
        g.user = user
        assert g.login()["outcome"] == "failed"


@pytest.mark.parametrize("keys, text", [
    ({"hostname": "a/b"}, "hostname: "),
    ({"hostname": "u@h"}, "hostname: "),
    ({"organizations": ["a/b"]}, "organizations: "),
    ({"teams": ["a"]}, "teams: "),
    ({"teams": ["a/b/c"]}, "teams: "),
    ({"hostname": ""}, "ca: has an effect with hostname only"),
])
def test_wrong_configurations_of_github_name_the_key(github, keys, text):
    assert text in ask(github.config(**keys))
