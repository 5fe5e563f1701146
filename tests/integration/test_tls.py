# SPDX-License-Identifier: Apache-2.0
"""HTTPS of a real `tenet master` on loopback: our client, kubectl, curl and Python's TLS against it."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

import lab as lablib
from lab import TENET, run, wait_for

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.245.2.9"}]}}


class Master:
    def __init__(self, tmp, extra=None, **serving):
        self.dir = pathlib.Path(tmp)
        self.extra = extra or {}
        self.serving = {"bindAddress": "127.0.0.1:0", **serving}
        self.port = None
        self.start()

    def start(self):
        if self.port:
            self.serving["bindAddress"] = f"127.0.0.1:{self.port}"
        conf = {"servingInfo": self.serving, "storage": {"backend": "sqlite", "path": str(self.dir / "registry.db")},
                **self.extra}
        (self.dir / "master.yaml").write_text(json.dumps(conf))
        self.log = open(self.dir / "log", "w")
        self.proc = subprocess.Popen([TENET, "master", "--config", self.dir / "master.yaml"], stderr=self.log,
                                     stdout=self.log, env=lablib.environment())
        self.port = wait_for("the master to be ready", self.look)
        return self

    def look(self):
        assert self.proc.poll() is None, self.text()
        serving = re.search(r"address=127\.0\.0\.1:(\d+)", self.text())
        return int(serving[1]) if serving and " ready" in self.text() else None

    def text(self):
        return (self.dir / "log").read_text()

    def stop(self, sig=signal.SIGTERM):
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
            self.proc.wait(timeout=30)
        self.log.close()
        return self.proc.returncode

    @property
    def pki(self):
        return self.dir / "pki"

    def context(self, cert=None):
        c = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        if cert:
            c.load_cert_chain(*cert)
        return c

    def call(self, path, context, headers=None, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, method=method,
                                         headers={"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def tenet(self, *args, kubeconfig="admin.kubeconfig", **kw):
        return run([TENET, *args, "--kubeconfig", self.pki / kubeconfig], **kw)

    def kubectl(self, *args, kubeconfig="admin.kubeconfig", **kw):
        return run(["kubectl", "--kubeconfig", self.pki / kubeconfig, *args],
                   env={**lablib.environment(), "HOME": str(self.dir)}, **kw)


# Everyone who comes by TLS may do everything, certificate or not.
OPEN = {"authorization": {"mode": "AlwaysAllow", "anonymous": True}}


@pytest.fixture
def start_master():
    made = []

    def start(**serving):
        tmp = tempfile.TemporaryDirectory(prefix="tenet-tls-")
        if serving.pop("auto", False):
            serving["pkiDir"] = tmp.name + "/pki"
        m = Master(tmp.name, **serving)
        made.append((m, tmp))
        return m
    yield start
    for m, tmp in made:
        m.stop(signal.SIGKILL)
        tmp.cleanup()


def openssl(*args):
    return run(["openssl", *args])


def make_pki(folder, name, subject, *, ca=None, days="30", ext=None):
    """Key and certificate by the openssl program, self-signed or by the pair 'ca'."""
    key, crt, csr = (str(folder / f"{name}.{x}") for x in ("key", "crt", "csr"))
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key]
    if not ca:
        openssl("req", "-x509", *new_key, "-subj", subject, "-days", days, "-out", crt)
    else:
        (folder / "ext").write_text(ext or "basicConstraints=CA:FALSE\n")
        openssl("req", "-new", *new_key, "-subj", subject, "-out", csr)
        openssl("x509", "-req", "-in", csr, "-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial", "-days", days, "-extfile",
                str(folder / "ext"), "-out", crt)
    return crt, key


def test_auto_serves_kubectl_and_our_client(start_master):
    m = start_master(auto=True)
    assert "scheme=https" in m.text() and "no authentication" not in m.text()
    (m.dir / "node.json").write_text(json.dumps(NODE))
    assert m.tenet("create", "-f", m.dir / "node.json").stdout.split() == ["node/n1", "created"]
    wait_for("a subnet", lambda: "n1" in m.tenet("get", "hostsubnets").stdout)
    assert "n1" in m.tenet("get", "nodes").stdout
    if shutil.which("kubectl"):
        assert "n1" in m.kubectl("get", "nodes").stdout
        watch = subprocess.Popen(["kubectl", "--kubeconfig", str(m.pki / "admin.kubeconfig"), "get", "nodes", "-w",
                                  "-o", "name"], stdout=subprocess.PIPE, text=True,
                                 env={**lablib.environment(), "HOME": str(m.dir)})
        assert watch.stdout.readline() == "node/n1\n"
        m.kubectl("label", "node", "n1", "a=b")
        assert watch.stdout.readline() == "node/n1\n"
        watch.kill()
        watch.wait()
    assert m.stop() == 0


def test_auto_makes_its_files_once_and_keys_are_private(start_master):
    m = start_master(auto=True)
    names = ["ca.crt", "ca.key", "server.crt", "server.key", "kubelet-client.crt", "kubelet-client.key", "sa.key",
             "admin.kubeconfig"]
    before = {n: (m.pki / n).read_text() for n in names}
    assert stat.S_IMODE(os.stat(m.pki).st_mode) == 0o700
    for n in names:
        assert stat.S_IMODE(os.stat(m.pki / n).st_mode) == (0o644 if n.endswith(".crt") else 0o600), n
    assert sorted(os.listdir(m.pki)) == sorted(names)
    assert m.stop() == 0
    m.start()
    assert {n: (m.pki / n).read_text() for n in names} == before
    # A name more: a new certificate for the server, by the same authority.
    assert m.stop() == 0
    m.serving["names"] = ["api.example"]
    m.start()
    assert (m.pki / "ca.crt").read_text() == before["ca.crt"]
    assert (m.pki / "server.crt").read_text() != before["server.crt"]
    assert f"https://api.example:{m.port}" in (m.pki / "admin.kubeconfig").read_text()
    openssl("verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "api.example", "-CAfile",
            str(m.pki / "ca.crt"), str(m.pki / "server.crt"))


def test_without_anonymous_users_it_is_401(start_master):
    m = start_master(auto=True, extra={"authorization": {"anonymous": False}, "dnsConfig": {"bindAddress": "none"}})
    status, body = m.call("/api/v1/nodes", m.context())
    assert status == 401
    answer = json.loads(body)
    assert answer["kind"] == "Status" and answer["reason"] == "Unauthorized" and answer["code"] == 401
    assert m.tenet("get", "nodes").returncode == 0
    # The controllers' own door is closed to others.
    listening = run(["ss", "-Hltnp"]).stdout.splitlines()
    ports = {int(line.split()[3].split(":")[-1]) for line in listening if f"pid={m.proc.pid}," in line} - {m.port}
    assert len(ports) == 1
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{ports.pop()}/api/v1/nodes", timeout=30)
    assert refused.value.code == 401
    r = run([TENET, "get", "nodes", "--server", f"https://127.0.0.1:{m.port}"], check=False)
    assert r.returncode == 1 and "signed by an unknown authority" in r.stderr
    m.stop()
    m.extra = OPEN
    m.start()
    assert m.call("/api/v1/nodes", m.context())[0] == 200


def test_a_wrong_authority_is_refused_clearly(start_master):
    m, other = start_master(auto=True), start_master(auto=True)
    config = (m.pki / "admin.kubeconfig").read_text()

    def value(text, key):
        return re.search(rf"{key}: *(\S+)", text)[1]

    # Another CA for the server's certificate.
    theirs = (other.pki / "admin.kubeconfig").read_text()
    mixed = config.replace(value(config, "certificate-authority-data"), value(theirs, "certificate-authority-data"))
    (m.pki / "mixed").write_text(mixed)
    r = m.tenet("get", "nodes", kubeconfig="mixed", check=False)
    assert r.returncode == 1
    assert r.stderr.startswith("Unable to connect to the server: ")
    assert "TLS: the server's certificate is signed by an unknown authority" in r.stderr
    # A client's certificate of another CA: refused, and never anonymous.
    for key in ("client-certificate-data", "client-key-data"):
        config = config.replace(value(config, key), value(theirs, key))
    (m.pki / "stranger").write_text(config)
    r = m.tenet("get", "nodes", kubeconfig="stranger", check=False)
    assert r.returncode == 1 and "the server refuses our certificate: it is signed by an unknown authority" in r.stderr
    assert "TLS handshake failed" in m.text()


def test_given_certificates_are_used_and_reloaded(start_master, tmp_path):
    ca = make_pki(tmp_path, "ca", "/CN=test-ca")
    san = "basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n"
    crt, key = make_pki(tmp_path, "server", "/CN=one", ca=ca, ext=san)
    user = make_pki(tmp_path, "user", "/O=system:masters/CN=jane", ca=ca)
    m = start_master(certFile=crt, keyFile=key, clientCA=ca[0])
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
              "clusters": [{"name": "c", "cluster": {"server": f"https://localhost:{m.port}",
                                                     "certificate-authority": "ca.crt"}}],
              "users": [{"name": "u", "user": {"client-certificate": "user.crt", "client-key": "user.key"}}],
              "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
    (tmp_path / "config").write_text(json.dumps(config))
    assert run([TENET, "get", "namespaces", "--kubeconfig", tmp_path / "config"]).stdout.count("default") == 1

    def subject():
        c = ssl.create_default_context(cafile=ca[0])
        with socket.create_connection(("127.0.0.1", m.port)) as s, c.wrap_socket(s, server_hostname="127.0.0.1") as t:
            return t.getpeercert()["subject"][0][0][1]

    assert subject() == "one"
    make_pki(tmp_path, "server", "/CN=two", ca=ca, ext=san)
    m.proc.send_signal(signal.SIGHUP)
    wait_for("the new certificate", lambda: subject() == "two")
    pathlib.Path(key).write_text("broken")
    m.proc.send_signal(signal.SIGHUP)
    wait_for("the refusal", lambda: "certificates were not reloaded" in m.text())
    assert subject() == "two"
    m.stop()
    # A key that does not belong: no start, and it says why.
    r = run([TENET, "master", "--config", m.dir / "master.yaml"], check=False)
    assert r.returncode == 1 and "servingInfo: " in r.stderr and "private key" in r.stderr


def test_protocols(start_master):
    m = start_master(auto=True, extra=OPEN)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        c = m.context()
        c.minimum_version = c.maximum_version = version
        c.set_alpn_protocols(["spdy/3", "http/1.1"])
        session = None
        for again in (False, True):
            with socket.create_connection(("127.0.0.1", m.port)) as s, \
                    c.wrap_socket(s, server_hostname="127.0.0.1", session=session) as t:
                assert t.selected_alpn_protocol() == "http/1.1"
                assert t.session_reused == again
                t.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                answer = b""
                while part := t.recv(65536):
                    answer += part
                assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
                session = t.session
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", m.port)) as s, pytest.raises(ssl.SSLError):
        old.wrap_socket(s)
    for offered, chosen in ((["http/1.1", "h2"], "h2"), (["h2"], "h2"), (["http/1.0"], None)):
        c = m.context()
        c.set_alpn_protocols(offered)
        with socket.create_connection(("127.0.0.1", m.port)) as s:
            if not chosen:
                with pytest.raises(ssl.SSLError):
                    c.wrap_socket(s, server_hostname="127.0.0.1")
                continue
            with c.wrap_socket(s, server_hostname="127.0.0.1") as t:
                assert t.selected_alpn_protocol() == chosen


def test_curl(start_master):
    m = start_master(auto=True, extra=OPEN)
    url = f"https://127.0.0.1:{m.port}"
    assert run(["curl", "-sS", "--cacert", m.pki / "ca.crt", f"{url}/healthz"]).stdout.strip() == "ok"
    r = run(["curl", "-sS", f"{url}/healthz"], check=False)
    assert r.returncode == 60, r.stderr  # the peer's certificate cannot be authenticated
    big = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "big", "annotations": {"a": "x" * 200000}}}
    (m.dir / "big.json").write_text(json.dumps(big))
    run(["curl", "-sS", "--fail", "--cacert", m.pki / "ca.crt", "-H", "Content-Type: application/json",
         "--data-binary", f"@{m.dir / 'big.json'}", f"{url}/api/v1/namespaces"])
    back = run(["curl", "-sS", "--fail", "--cacert", m.pki / "ca.crt", f"{url}/api/v1/namespaces/big"]).stdout
    assert json.loads(back)["metadata"]["annotations"]["a"] == "x" * 200000
    plain = run(["curl", "-sS", f"http://127.0.0.1:{m.port}/healthz"])
    assert "speaks HTTPS" in plain.stdout
