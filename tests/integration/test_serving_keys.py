# SPDX-License-Identifier: Apache-2.0
"""Keys of servingInfo for TLS (namedCertificates, minTLSVersion, cipherSuites) and corsAllowedOrigins, by openssl and curl."""
import json
import signal
import subprocess

import pytest

from lab import TENET, wait_for
from proxies import Authority
from test_auth import Cluster

GCM256 = ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]
CORS = ["console.example.com", "127.0.0.1:9000", r"(?i)//localhost(:|\z)"]


class Served:
    def __init__(self, folder):
        self.authority = Authority(folder, "site")
        api = self.authority.pair("api", names=["api.example.com"])
        any_ = self.authority.pair("*.apps.example.com", names=["*.apps.example.com", "apps.example.com"])
        self.c = Cluster(str(folder), {"corsAllowedOrigins": CORS}, cipherSuites=GCM256, namedCertificates=[
            {"names": ["api.example.com", "other.example.com"], "certFile": api[0], "keyFile": api[1]},
            {"certFile": any_[0], "keyFile": any_[1]}])

    def handshake(self, *args, name=None):
        """What openssl says of a connection."""
        names = ["-servername", name] if name else ["-noservername"]
        return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{self.c.port}", *names, *args], input="",
                              capture_output=True, text=True, timeout=60)

    def subject(self, name=None):
        return next(line for line in self.handshake(name=name).stdout.splitlines() if line.startswith("subject="))

    def curl(self, *args, path="/version"):
        r = subprocess.run(["curl", "-sk", "-D", "-", "-o", "/dev/null", f"https://127.0.0.1:{self.c.port}{path}", *args],
                           capture_output=True, text=True, check=True)
        head, *lines = r.stdout.strip().splitlines()
        pairs = [line.split(": ", 1) for line in lines]
        return int(head.split()[1]), {k.lower(): v for k, v in pairs if k.lower() != "vary"}, [
            v for k, v in pairs if k.lower() == "vary"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    s = Served(tmp_path_factory.mktemp("served"))
    yield s
    s.c.stop(signal.SIGKILL)


def test_a_client_gets_the_certificate_of_the_name_it_asks_for(served, tmp_path_factory):
    own = served.subject()
    assert "CN = api" in served.subject("api.example.com") == served.subject("OTHER.example.com")
    for name in ("x.apps.example.com", "apps.example.com"):
        assert "CN = *.apps.example.com" in served.subject(name)
    for name in ("x.y.apps.example.com", "example.com", "api.example.com.evil.example", "localhost", ".apps.example.com"):
        assert served.subject(name) == own, name
    # curl verifies it; clients' certificates are asked for and known under this name, too.
    served.c.admin("GET", "/api")
    root = next(served.c.dir.glob("user-root*.crt"))
    r = subprocess.run(["curl", "-sS", "--cacert", served.authority.crt, "--cert", root, "--key", root.with_suffix(".key"), "--resolve",
                        f"api.example.com:{served.c.port}:127.0.0.1", f"https://api.example.com:{served.c.port}/api/v1/nodes"],
                       capture_output=True, text=True)
    assert json.loads(r.stdout)["kind"] == "NodeList", r
    # Files are read again; a bad one leaves the former in use.
    crt = next(served.c.dir.glob("site-api.crt"))
    served.authority.pair("api", organization="renewed", names=["api.example.com"])
    served.c.proc.send_signal(signal.SIGHUP)
    wait_for("the new certificate", lambda: "renewed" in served.subject("api.example.com"))
    crt.write_text("nothing")
    served.c.proc.send_signal(signal.SIGHUP)
    wait_for("the error", lambda: "namedCertificates[0]" in served.c.text())
    assert "renewed" in served.subject("api.example.com")


def test_ciphers_are_those_of_the_list(served):
    for name, served_one in (("ECDHE-ECDSA-AES256-GCM-SHA384", True), ("ECDHE-ECDSA-AES128-GCM-SHA256", False),
                             ("ECDHE-ECDSA-CHACHA20-POLY1305", False), ("ECDHE-ECDSA-AES128-SHA", False)):
        r = served.handshake("-tls1_2", "-cipher", name)
        assert (f"Cipher is {name}" in r.stdout) == served_one, (name, r.stdout[-300:])
    # TLS 1.3 has its own, of which the list has none.
    for name in ("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"):
        assert f"Cipher is {name}" in served.handshake("-tls1_3", "-ciphersuites", name).stdout
    assert "Cipher is (NONE)" in served.handshake("-tls1_1", "-cipher", "ALL@SECLEVEL=0").stdout


def test_pages_of_allowed_origins_may(served):
    for origin in ("https://console.example.com", "http://console.example.com:8080", "http://127.0.0.1:9000", "http://LocalHost",
                   "https://localhost:3000"):
        status, head, vary = served.curl("-H", f"Origin: {origin}")
        assert status == 200 and head["access-control-allow-origin"] == origin and "Origin" in vary
        assert head["access-control-allow-credentials"] == "true"
        status, head, _ = served.curl("-X", "OPTIONS", "-H", f"Origin: {origin}", "-H", "Access-Control-Request-Method: DELETE",
                                      path="/api/v1/namespaces/default/pods")
        assert status == 204 and head["access-control-allow-origin"] == origin
        assert "DELETE" in head["access-control-allow-methods"] and "Authorization" in head["access-control-allow-headers"]
    for origin in ("https://evil.example", "https://console.example.com.evil.example", "https://evilconsole.example.com", "null",
                   "http://127.0.0.1", "http://127.0.0.1:90001", "http://localhost.evil.example", "https://a@console.example.com",
                   "console.example.com", "https://evil.example/console.example.com", "x" * 4000):
        status, head, vary = served.curl("-H", f"Origin: {origin}")
        assert status == 200 and "access-control-allow-origin" not in head and "Origin" in vary, origin
        assert served.curl("-X", "OPTIONS", "-H", f"Origin: {origin}", path="/api/v1/pods")[0] in (401, 403, 405)
    # It is no way past authorization, and an answer of the OAuth server is for no page.
    assert served.curl("-H", "Origin: http://localhost", path="/api/v1/secrets")[0] in (401, 403)
    assert "access-control-allow-origin" not in served.curl("-H", "Origin: http://localhost", path="/oauth/authorize")[1]


def check(tmp_path, config):
    file = tmp_path / "m.yaml"
    file.write_text(json.dumps({"kind": "MasterConfig", **config}))
    return subprocess.run([TENET, "adm", "config", "check", file], capture_output=True, text=True).stdout


def test_wrong_values_are_refused_by_name(tmp_path):
    pair = {"certFile": "a.crt", "keyFile": "a.key"}
    for serving, text in [
            ({"minTLSVersion": "VersionTLS10"}, "servingInfo.minTLSVersion: "),
            ({"minTLSVersion": "1.2"}, "servingInfo.minTLSVersion: "),
            ({"cipherSuites": ["TLS_RSA_WITH_AES_128_CBC_SHA"]}, 'servingInfo.cipherSuites: "TLS_RSA_WITH_AES_128_CBC_SHA" is no'),
            ({"cipherSuites": ""}, "servingInfo.cipherSuites: "),
            ({"cipherSuites": GCM256, "minTLSVersion": "VersionTLS13"}, "servingInfo.cipherSuites: has none of TLS 1.3"),
            ({"namedCertificates": [{"certFile": "a"}]}, "servingInfo.namedCertificates[0].keyFile: must be given"),
            ({"namedCertificates": ["a"]}, "servingInfo.namedCertificates[0]: must have"),
            ({"namedCertificates": [{**pair, "name": "a"}]}, "servingInfo.namedCertificates[0].name: unknown key"),
            ({"namedCertificates": [{**pair, "names": ["a b"]}]}, 'servingInfo.namedCertificates[0].names[0]: "a b" is no DNS name'),
            ({"namedCertificates": [{**pair, "names": ["*.*.a"]}]}, "is no DNS name"),
            ({"namedCertificates": [{**pair, "names": ["a", "b"]}, {**pair, "names": ["c", "a"]}]},
             'servingInfo.namedCertificates[1].names[1]: "a" is there twice'),
            ({"tls": "off", "namedCertificates": [pair]}, "servingInfo.namedCertificates: needs HTTPS")]:
        said = check(tmp_path, {"servingInfo": {"tls": "auto", **serving}})
        assert text in said, (text, said)
    assert "corsAllowedOrigins: " in check(tmp_path, {"corsAllowedOrigins": ["(a"]})
    good = {"cipherSuites": [*GCM256, "TLS_AES_256_GCM_SHA384"], "minTLSVersion": "VersionTLS13", "namedCertificates": [pair]}
    assert "0 errors" in check(tmp_path, {"servingInfo": {"tls": "auto", **good}, "corsAllowedOrigins": CORS})


def test_tls_13_alone(tmp_path):
    c = Cluster(str(tmp_path), minTLSVersion="VersionTLS13", cipherSuites=["TLS_AES_256_GCM_SHA384"])
    try:
        seen = lambda *args: subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{c.port}", *args], input="",  # noqa: E731
                                            capture_output=True, text=True).stdout
        assert "Cipher is TLS_AES_256_GCM_SHA384" in seen()
        assert "Cipher is (NONE)" in seen("-tls1_2")
        assert "Cipher is (NONE)" in seen("-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256")
    finally:
        c.stop(signal.SIGKILL)
