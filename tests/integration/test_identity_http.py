# SPDX-License-Identifier: Apache-2.0
"""Providers that ask over HTTP for a password: BasicAuth against a real apache2, Keystone against a simulator of its one
path; servers that are down, slow, large, or redirect."""
import base64
import json
import socket
import subprocess
import time

import pytest

import directory
from directory import Liar, ask

JOE = {"sub": "4711", "name": "Joe Doe", "preferred_username": "joe", "email": "joe@example.com"}
APACHE = "/usr/sbin/apache2"
MODULES = "/usr/lib/apache2/modules"


class Apache:
    """Answers JOE at / to joe with the password "joe's", over TLS; at .mutual_port only to a
    client's certificate as well."""

    def __init__(self, d):
        self.dir = directory.certificates(d)
        self.ca = str(self.dir / "ca.crt")
        (self.dir / "root").mkdir()
        (self.dir / "root/who.json").write_text(json.dumps(JOE))
        joe = subprocess.run(["openssl", "passwd", "-apr1", "joe's"], capture_output=True, text=True, check=True).stdout.strip()
        (self.dir / "users").write_text(f"joe:{joe}\n")
        self.port, self.mutual_port = directory.free_ports(2)
        modules = "".join(f"LoadModule {m}_module {MODULES}/mod_{m}.so\n" for m in (
            "mpm_event", "authn_core", "authn_file", "auth_basic", "authz_core", "authz_user", "ssl", "alias"))
        (self.dir / "httpd.conf").write_text(f"""{modules}
ServerName localhost
PidFile {self.dir}/pid
ErrorLog {self.dir}/error.log
Mutex pthread
Listen 127.0.0.1:{self.port}
Listen 127.0.0.1:{self.mutual_port}
DocumentRoot {self.dir}/root
SSLEngine on
SSLCertificateFile {self.dir}/ca-good.crt
SSLCertificateKeyFile {self.dir}/ca-good.key
SSLCACertificateFile {self.ca}
Redirect /moved https://localhost:{self.port}/who.json
<Location />
AuthType Basic
AuthName test
AuthBasicProvider file
AuthUserFile {self.dir}/users
Require valid-user
</Location>
<VirtualHost 127.0.0.1:{self.mutual_port}>
SSLEngine on
SSLCertificateFile {self.dir}/ca-good.crt
SSLCertificateKeyFile {self.dir}/ca-good.key
SSLCACertificateFile {self.ca}
SSLVerifyClient require
</VirtualHost>
<Location /moved>
Require all granted
</Location>
""")
        self.process = subprocess.Popen([APACHE, "-f", self.dir / "httpd.conf", "-DFOREGROUND"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        directory.wait_for_port(self.port, self.process)

    def url(self, path="/who.json"):
        return f"https://localhost:{self.port}{path}"

    def stop(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def apache(tmp_path_factory):
    a = Apache(tmp_path_factory.mktemp("apache"))
    yield a
    a.stop()


def basic(url, **keys):
    return {"kind": "BasicAuthPasswordIdentityProvider", "url": url, **keys}


def keystone(url, **keys):
    return {"kind": "KeystonePasswordIdentityProvider", "url": url, "domainName": "default", **keys}


def test_apache_decides(apache):
    yes, no, colon, empty = ask(basic(apache.url(), ca=apache.ca), ("joe", "joe's"), ("joe", "wrong"), ("a:b", "x"), ("joe", ""))
    assert yes == {"outcome": "proved", "user": "4711", "preferred": "joe", "name": "Joe Doe", "email": "joe@example.com"}
    assert no["outcome"] == colon["outcome"] == empty["outcome"] == "refused"


def test_a_certificate_of_the_client_is_sent(apache):
    pair = {"certFile": str(apache.dir / "ca-good.crt"), "keyFile": str(apache.dir / "ca-good.key")}
    url = f"https://localhost:{apache.mutual_port}/who.json"
    assert ask(basic(url, ca=apache.ca, **pair), ("joe", "joe's"))[0]["outcome"] == "proved"
    assert ask(basic(url, ca=apache.ca), ("joe", "joe's"))[0]["outcome"] == "failed"


def test_redirects_are_not_followed(apache):
    answer, = ask(basic(apache.url("/moved"), ca=apache.ca), ("joe", "joe's"))
    assert answer["outcome"] == "failed" and "redirect (302)" in answer["why"]


def test_certificates_are_verified(apache, tmp_path):
    other = directory.certificates(tmp_path, "foreign")
    for make in (basic, keystone):
        answer, = ask(make(apache.url(), ca=str(other / "foreign.crt")), ("joe", "joe's"))
        assert answer["outcome"] == "failed" and "unknown authority" in answer["why"]
    answer, = ask(basic(apache.url().replace("localhost", "127.0.0.2"), ca=apache.ca), ("joe", "joe's"))
    assert answer["outcome"] == "failed"


def http(status, body=b"", head=""):
    return f"HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


def answer_with(data):
    def fn(c):
        c.recv(65536)
        c.sendall(data)
        c.recv(1)
    return fn


@pytest.mark.parametrize("data, why", [
    (http(200, b"[]"), "no JSON object"),
    (http(200, b'{"error": "no such\\nthing"}'), "error"),
    (http(200, b'{"name": "joe"}'), '"sub"'),
    (http(200, b'{"sub": 1}'), '"sub"'),
    (http(200, b'{"sub": "a", "sub": "b"}'), "no JSON object"),
    (http(500), "500"),
    (http(204), "204"),
    (http(307, head="Location: /x\r\n"), "redirect"),
    (b"garbage\r\n\r\n", "malformed"),
    (b"HTTP/1.1 200 x\r\nContent-Length: 99999999\r\n\r\n" + b" " * (2 << 20), "over"),
    (b"HTTP/1.1 200 x\r\n" + b"A: b\r\n" * 20000, "head of the response is too large"),
    (b"", "closed"),
], ids=["array", "error", "no-sub", "number", "duplicate", "500", "204", "redirect", "garbage", "large-body", "large-head", "closed"])
def test_wrong_answers_prove_nobody(data, why):
    def fn(c):
        c.recv(65536)
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        c.recv(1)
    with Liar(fn) as s:
        answer, = ask(basic(f"http://127.0.0.1:{s.port}/"), ("joe", "x"))
    assert answer["outcome"] == "failed" and why in answer["why"], answer


def test_a_server_that_drips_is_left_after_the_deadline():
    def drip(c):
        c.recv(65536)
        c.sendall(b"HTTP/1.1 200 x\r\nContent-Length: 100000\r\n\r\n")
        while True:
            c.sendall(b" ")
            time.sleep(0.1)
    with Liar(drip) as s:
        answer, = ask(basic(f"http://127.0.0.1:{s.port}/"), ("joe", "x"))
    assert answer["outcome"] == "failed" and "10000 ms" in answer["why"] or "timed out" in answer["why"]


def test_keystone_by_a_simulator(tmp_path):
    certs = directory.certificates(tmp_path)
    requests = []

    def simulator(c):
        data = c.recv(65536)
        while b"\r\n\r\n" not in data or len(data.split(b"\r\n\r\n", 1)[1]) < int(
                data.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
            data += c.recv(65536)
        head, body = data.split(b"\r\n\r\n", 1)
        requests.append(head.split(b"\r\n")[0])
        user = json.loads(body)["auth"]["identity"]["password"]["user"]
        right = user == {"name": 'jo"e', "domain": {"name": "default"}, "password": "joe's \\"}
        token = {"token": {"user": {"id": "0123456789abcdef", "name": 'jo"e', "domain": {"id": "default", "name": "Default"}}}}
        c.sendall(http(201, json.dumps(token).encode()) if right else http(401))
        c.recv(1)

    with Liar(simulator, tls=(certs / "ca-good.crt", certs / "ca-good.key")) as s:
        config = keystone(f"https://localhost:{s.port}/v3/", ca=str(certs / "ca.crt"))
        yes, no = ask(config, ('jo"e', "joe's \\"), ('jo"e', "wrong"))
        by_id, = ask({**config, "useKeystoneIdentity": True, "url": f"https://localhost:{s.port}"}, ('jo"e', "joe's \\"))
    assert yes["outcome"] == "proved" and yes["user"] == yes["preferred"] == 'jo"e'
    assert no["outcome"] == "refused"
    assert by_id["user"] == "0123456789abcdef" and by_id["preferred"] == 'jo"e'
    assert set(requests) == {b"POST /v3/auth/tokens HTTP/1.1"}


@pytest.mark.parametrize("config, text", [
    (basic("ftp://h/"), "url: "),
    (basic("https://u:p@h/"), "url: "),
    (basic("https://h/", certFile="/a"), "certFile: needs keyFile"),
    (basic("https://h/", ca="/no/such/file"), "/no/such/file"),
    (keystone("http://h/"), "url: \"http://h/\" is not https"),
    ({"kind": "KeystonePasswordIdentityProvider", "url": "https://h/"}, "domainName: is required"),
])
def test_wrong_configurations_name_the_key(config, text):
    assert text in ask(config)


def test_the_password_is_sent_as_it_is():
    seen = []

    def look(c):
        seen.append(c.recv(65536))
        c.sendall(http(401))
        c.recv(1)
    with Liar(look) as s:
        ask(basic(f"http://127.0.0.1:{s.port}/a?b"), ("j\u00f6e", "p:\u00e4 \r\nX-Evil: 1"))
    assert b"X-Evil" not in seen[0] and seen[0].startswith(b"GET /a?b HTTP/1.1\r\n")
    token = seen[0].split(b"Basic ")[1].split(b"\r\n")[0]
    assert base64.b64decode(token).decode() == "j\u00f6e:p:\u00e4 \r\nX-Evil: 1"
