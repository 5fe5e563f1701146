# SPDX-License-Identifier: Apache-2.0
"""Headers that name a user (RequestHeaderIdentityProvider): sent past the proxy, through it, twice, in other spellings, over HTTP/2;
and what a proxy's certificate must not be good for.  Each has its allowed counterpart: the proxy itself."""
import signal
import socket
import ssl
import urllib.parse

import pytest

import h2raw
import proxies
from lab import wait_for
from proxies import DAY, Apache, Authority
from test_oauth import ASKED, CHALLENGING, TOKENS, USERS, OAuth

QUERY = f"/oauth/authorize?client_id={CHALLENGING}&response_type=token"
USER, OTHER = "X-Remote-User", "SSO-User"
ME = "/apis/user.openshift.io/v1/users/~"


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.proxies, self.foreign = (Authority(folder, n) for n in ("proxies", "foreign"))
        self.pair = self.proxies.pair("proxy")
        self.c = OAuth(str(folder), providers=[proxies.provider("https://proxy.example.com", self.proxies.crt)],
                       serving={"names": ["127.0.0.1", "localhost"]})

    def ask(self, *headers, pair=None, path=QUERY):
        return proxies.request(self.c.port, path, [*ASKED.items(), *headers], pair)

    def tokens(self):
        return len(self.c.admin("GET", TOKENS)["items"])

    def users(self):
        return {u["metadata"]["name"] for u in self.c.admin("GET", USERS)["items"]}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    s = Site(tmp_path_factory.mktemp("site"))
    yield s
    s.c.stop(signal.SIGKILL)


def is_token(answer):
    return answer.status == 302 and "access_token" in (answer.location or "")


def test_only_the_proxy_names_people(site):
    assert is_token(site.ask((USER, "joe"), pair=site.pair))
    before = site.tokens()
    users = Authority(site.folder, "users")
    for pair, why in [(None, "no certificate"), (site.proxies.pair("somebody"), "another common name"),
                      (site.proxies.pair("PROXY"), "another case of it"), (site.proxies.pair("proxy.example.com"), "a longer name"),
                      (site.proxies.pair(""), "no name")]:
        for spelling in (USER, USER.lower(), USER.upper()):
            answer = site.ask((spelling, "system:admin"), pair=pair)
            assert not is_token(answer) and answer.status in (302, 401, 403), why
            assert "sha256~" not in (answer.location or ""), why
    for pair in (site.foreign.pair("proxy"), users.pair("proxy"), site.proxies.pair("proxy", begin=-3 * DAY, end=-DAY),
                 site.proxies.pair("proxy", begin=DAY), site.proxies.pair("proxy", names=["proxy"])):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            site.ask((USER, "eve"), pair=pair)
    # A certificate that names an API's user, of the cluster's own authority, is no proxy's.
    site.c.admin("GET", "/api")
    root = next(site.folder.glob("user-root*.crt"))
    assert not is_token(site.ask((USER, "eve"), pair=(str(root), str(root.with_suffix(".key")))))
    assert site.tokens() == before and "eve" not in site.users()
    assert is_token(site.ask((USER, "joe"), pair=site.proxies.pair("proxy")))


@pytest.mark.parametrize("headers, status", [
    ([(USER, "joe"), (USER, "eve")], 403), ([(USER, "eve"), (USER.lower(), "joe")], 403), ([(USER, "joe"), (USER, "joe")], 403),
    ([(USER, "joe"), (OTHER, "eve")], 403), ([(OTHER, "eve"), (USER, "joe")], 403), ([(USER, "joe"), (USER, "")], 403),
    ([("X_Remote_User", "eve")], 403), ([("X-Remote_User", "eve")], 403), ([("X-Remote-User-", "eve")], 403),
    ([(USER, "")], 403), ([(USER, " ")], 403), ([(USER, "e" * 2000)], 403), ([(USER, b"\xff\xfe")], 403), ([(USER, b"\xc0\xaf")], 403),
    ([(USER, "joe"), ("X-Remote-Preferred", "eve"), ("x-remote-preferred", "root")], 403),
    ([(USER, "joe"), ("X-Remote-Name", "a"), ("X-Remote-Name", "b")], 403),
    ([], 403)], ids=range(17))
def test_headers_that_contradict_each_other_name_nobody(site, headers, status):
    before = site.tokens()
    answer = site.ask(*headers, pair=site.pair)
    assert answer.status == status and "access_token" not in (answer.location or "") and "eve" not in answer.text
    assert site.tokens() == before and "eve" not in site.users()


def test_spellings_of_the_allowed_header_are_one(site):
    for headers in ([(USER.upper(), "joe")], [(USER.lower(), "joe"), ("X_Remote_User", "eve")], [(USER, "joe"), (OTHER, "joe")],
                    [(OTHER, "joe"), ("X-Remote-User2", "eve")]):
        answer = site.ask(*headers, pair=site.pair)
        assert is_token(answer), headers
        assert site.c.ask(answer.query()["access_token"], "GET", ME, want=200)["metadata"]["name"] == "joe"
    # A list that some server joined of two headers is one strange name, and neither of both.
    answer = site.ask((USER, "root, joe"), pair=site.pair)
    assert is_token(answer)
    assert site.c.ask(answer.query()["access_token"], "GET", ME, want=200)["metadata"]["name"] == "root, joe"


def over_h2(site, headers, pair=None):
    s = h2raw.connect(site.c.port, proxies.context(pair))
    try:
        reply = s.ask("GET", QUERY, [(k.lower(), v) for k, v in (*ASKED.items(), *headers)])
        wait_for("the answer", lambda: s.read() and reply.ended or reply.ended)
        return reply
    finally:
        s.close()


def test_http2_is_the_same(site):
    before = site.tokens()
    assert over_h2(site, [(USER, "joe")], site.pair).status == 302 and site.tokens() == before + 1
    for pair in (None, site.proxies.pair("somebody")):
        over_h2(site, [(USER, "eve")], pair)
    for headers in ([(USER, "joe"), (USER, "eve")], [(USER, "joe"), (OTHER, "eve")], [("x_remote_user", "eve")]):
        assert over_h2(site, headers, site.pair).status == 403
    assert site.tokens() == before + 1 and "eve" not in site.users()


def test_a_proxys_certificate_makes_no_user_of_the_api(site):
    pair = site.proxies.pair("proxy", organization="system:masters")
    for headers in ([], [(USER, "joe")], [(USER, "system:admin"), ("X-Remote-Group", "system:masters")],
                    [("Impersonate-User", "system:admin")]):
        for path in ("/api/v1/namespaces/kube-system/secrets", ME, TOKENS):
            answer = site.ask(*headers, pair=pair, path=path)
            assert answer.status in (401, 403), (path, headers, answer.text)
            assert "User \\\"system:admin" not in answer.text and "system:masters" not in answer.text
    assert site.ask((USER, "joe"), pair=pair).status == 302, "as a proxy it is good"
    token = site.ask((USER, "joe"), pair=pair).query()["access_token"]
    bearer = site.ask(("Authorization", f"Bearer {token}"), pair=pair, path=ME)
    assert bearer.status == 200 and '"name":"joe"' in bearer.text.replace(" ", "")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_resumed_session_is_the_same_party(site, version):
    """The ticket says who signed; no certificate is verified again."""
    site.c.admin("GET", "/api")
    root = next(site.folder.glob("user-root*.crt"))
    for pair, api, named in ((site.proxies.pair("proxy", organization="system:masters"), 403, True),
                             ((str(root), str(root.with_suffix(".key"))), 200, False)):
        context = proxies.context(pair, version)
        session, results = None, []
        for _ in range(3):
            s = context.wrap_socket(socket.create_connection(("127.0.0.1", site.c.port)), session=session)
            reused = s.session_reused
            s.sendall(b"GET /api/v1/namespaces/kube-system/secrets HTTP/1.1\r\nHost: h\r\n\r\n")
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += s.recv(65536)
            session = s.session
            s.close()
            s = context.wrap_socket(socket.create_connection(("127.0.0.1", site.c.port)), session=session)
            s.sendall(f"GET {QUERY} HTTP/1.1\r\nHost: h\r\nX-CSRF-Token: 1\r\n{USER}: joe\r\nConnection: close\r\n\r\n".encode())
            second = b""
            while data := s.recv(65536):
                second += data
            session = s.session or session
            s.close()
            results.append(reused)
            assert int(answer.split()[1]) == api and (b"access_token" in second) == named
        assert any(results[1:]), "no session was resumed"


def test_a_client_cannot_reach_through_the_proxy(site, tmp_path):
    """A real apache2 as documented removes the headers of its clients; a smuggled second request has no certificate's user."""
    (tmp_path / "apache").mkdir()
    apache = Apache(tmp_path / "apache", site.pair, site.folder / "pki/ca.crt")
    apache.start(site.c.port)
    try:
        joe = ("Authorization", "Basic am9lOmpvZSdz")
        before = site.users()
        for headers in ([(USER, "eve")], [("x-remote-user", "eve"), (USER, "eve")], [("Connection", USER), (USER, "eve")],
                        [("Connection", f"close, {USER}")]):
            answer = proxies.request(apache.port, "/challenging" + QUERY, [*ASKED.items(), joe, *headers])
            if is_token(answer):
                token = answer.query()["access_token"]
                assert site.c.ask(token, "GET", ME, want=200)["metadata"]["name"] == "joe"
            else:
                assert answer.status in (400, 403), answer.text
        # The second configured header is not one that this proxy sets: it must be removed, or nobody is named.
        assert proxies.request(apache.port, "/challenging" + QUERY, [*ASKED.items(), joe, (OTHER, "eve")]).status == 403
        hidden = f"GET {QUERY} HTTP/1.1\r\nHost: h\r\n{USER}: eve\r\n\r\n"
        for framing in (f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
                        "Content-Length: 0\r\nContent-Length: 5\r\n", "Transfer-Encoding : chunked\r\n", "Content-Length: +1\r\n"):
            s = ssl._create_unverified_context().wrap_socket(socket.create_connection(("127.0.0.1", apache.port)))
            s.settimeout(20)
            s.sendall((f"GET /challenging{QUERY} HTTP/1.1\r\nHost: h\r\n{joe[0]}: {joe[1]}\r\nX-CSRF-Token: 1\r\nConnection: close\r\n"
                       f"{framing}\r\n0\r\n\r\n{hidden}").encode())
            try:
                while s.recv(65536):
                    pass
            except OSError:
                pass
            s.close()
        assert site.users() <= before | {"joe"}
        assert "eve" not in site.users() and urllib.parse.quote("eve") not in site.users()
    finally:
        apache.stop()
