# SPDX-License-Identifier: Apache-2.0
"""KeystonePasswordIdentityProvider against a real Keystone with SQLite, served over TLS in a process of its own."""
import os
import signal
import subprocess
import sys
import time

import pytest

import directory
from directory import ask
from lab import TENET, environment
from test_identity_login import provider
from test_oauth import USERS, OAuth

# Arguments: the port, and the folder of the configuration and the certificate.
SERVER = """
import ssl, sys, wsgiref.simple_server
port, folder = int(sys.argv[1]), sys.argv[2]
sys.argv = ["keystone"]
from keystone.server.wsgi import initialize_public_application
server = wsgiref.simple_server.make_server("127.0.0.1", port, initialize_public_application())
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/ca-good.crt", f"{folder}/ca-good.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def tenet_login(c, folder, user, password):
    return subprocess.run([TENET, "login", c.url(), "--certificate-authority", c.pki / "ca.crt", "-u", user, "-p", password],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                          env={**environment(), "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig")})


@pytest.fixture(scope="module")
def keystone(tmp_path_factory):
    d = directory.certificates(tmp_path_factory.mktemp("keystone"))
    for keys in ("fernet", "credential"):
        (d / keys).mkdir(mode=0o700)
    conf = d / "keystone.conf"
    conf.write_text(f"[DEFAULT]\nlog_file = {d}/keystone.log\n[database]\nconnection = sqlite:///{d}/keystone.db\n"
                    f"[fernet_tokens]\nkey_repository = {d}/fernet\n[credential]\nkey_repository = {d}/credential\n"
                    "[token]\nprovider = fernet\n")
    for command in (["db_sync"], ["fernet_setup", "--keystone-user", "root", "--keystone-group", "root"],
                    ["bootstrap", "--bootstrap-username", "joe", "--bootstrap-password", "joe's password"]):
        subprocess.run(["keystone-manage", "--config-file", conf, *command], check=True, capture_output=True)
    port, = directory.free_ports(1)
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(port), d], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "OS_KEYSTONE_CONFIG_FILES": str(conf), "OS_KEYSTONE_CONFIG_DIR": str(d)})
    try:
        directory.wait_for_port(port, server)
        yield {"kind": "KeystonePasswordIdentityProvider", "url": f"https://localhost:{port}/v3", "domainName": "Default",
               "ca": str(d / "ca.crt")}
    finally:
        server.kill()
        server.wait()


def test_keystone_decides(keystone):
    yes, wrong, nobody = ask(keystone, ("joe", "joe's password"), ("joe", "wrong"), ("nobody", "x"))
    assert yes == {"outcome": "proved", "user": "joe", "preferred": "joe", "name": "joe"}
    assert wrong["outcome"] == nobody["outcome"] == "refused"


def test_a_whole_login_by_keystone(keystone, tmp_path):
    """A token, refusal, a foreign certificate, a server that does not answer, and one that is down."""
    (tmp_path / "foreign").mkdir()
    directory.certificates(tmp_path / "foreign", "foreign")
    silent = directory.Liar(lambda c: c.recv(65536) and time.sleep(30))
    corp = lambda **keys: provider("KeystonePasswordIdentityProvider", **{  # noqa: E731
        **{k: v for k, v in keystone.items() if k != "kind"}, **keys})
    c = OAuth(str(tmp_path), providers=[corp(useKeystoneIdentity=True)])
    try:
        r = tenet_login(c, tmp_path, "joe", "joe's password")
        assert r.returncode == 0 and "Login successful" in r.stdout, r
        me = c.admin("GET", f"{USERS}/joe")
        assert me["identities"][0].startswith("corp:") and len(me["identities"][0]) == len("corp:") + 32
        assert tenet_login(c, tmp_path, "joe", "wrong").returncode != 0
        c.reread(corp(ca=str(tmp_path / "foreign/foreign.crt")))
        assert tenet_login(c, tmp_path, "joe", "joe's password").returncode != 0 and "unknown authority" in c.text()
        with silent:
            c.reread(corp(url=f"https://localhost:{silent.port}"))
            begun = time.monotonic()
            assert tenet_login(c, tmp_path, "joe", "joe's password").returncode != 0
            assert time.monotonic() - begun < 30 and ("10000 ms" in c.text() or "timed out" in c.text()), c.text()
        c.reread(corp(url=f"https://localhost:{directory.free_ports(1)[0]}"))
        assert tenet_login(c, tmp_path, "joe", "joe's password").returncode != 0 and "refused" in c.text()
        assert "joe's password" not in c.text()
    finally:
        c.stop(signal.SIGKILL)


def test_the_id_and_the_domain_are_keystones(keystone):
    by_id, = ask({**keystone, "useKeystoneIdentity": True}, ("joe", "joe's password"))
    assert len(by_id["user"]) == 32 and by_id["preferred"] == "joe"
    other, = ask({**keystone, "domainName": "other"}, ("joe", "joe's password"))
    assert other["outcome"] == "refused"
