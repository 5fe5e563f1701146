# SPDX-License-Identifier: Apache-2.0
"""Encryption of secrets at rest (docs/encryption.md): what the disk and etcd have, keys that are replaced, keys that are missing."""
import base64
import json
import re

import pytest

import ha
from lab import TENET, run, wait_for
from test_auth import Cluster

SECRETS = "/api/v1/namespaces/default/secrets"
TEXT = base64.b64encode(b"a very confidential text").decode()
KEYS = {name: {"name": name, "secret": base64.b64encode(name.encode() * 32).decode()} for name in "ab"}


def config(*providers):
    return json.dumps({"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
                       "resources": [{"resources": ["secrets"], "providers": list(providers)}]})


def cipher(kind, *names):
    return {kind: {"keys": [KEYS[n] for n in names]}}


class Sealed(Cluster):
    def __init__(self, tmp, *providers, storage=None):
        self.file = tmp / "encryption.json"
        self.rules(*providers)
        self.database = tmp / "registry.db"
        super().__init__(str(tmp), extra={"storage": {**(storage or {"backend": "sqlite", "path": str(self.database)}),
                                                      "encryptionConfig": str(self.file)}})

    def rules(self, *providers):
        self.file.write_text(config(*providers))
        self.file.chmod(0o600)

    def restart(self, *providers):
        assert self.stop() == 0
        self.rules(*providers)
        self.start()

    def disk(self):
        return b"".join(p.read_bytes() for p in self.database.parent.glob("registry.db*"))

    def make(self, name):
        self.admin("POST", SECRETS, {"metadata": {"name": name}, "data": {"k": TEXT}}, 201)


@pytest.mark.parametrize("kind", ["aesgcm", "aescbc"])
def test_the_disk_has_no_secret(tmp_path, kind):
    c = Sealed(tmp_path, cipher(kind, "a"))
    try:
        c.make("s")
        c.admin("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}, "data": {"k": "plain-text"}}, 201)
        assert c.admin("GET", f"{SECRETS}/s")["data"]["k"] == TEXT
        disk = c.disk()
        assert TEXT.encode() not in disk and b"plain-text" in disk and f"k8s:enc:{kind}:v1:a:".encode() in disk
        assert TEXT not in c.text() and KEYS["a"]["secret"] not in c.text()
        c.restart(cipher(kind, "a"))
        assert c.admin("GET", f"{SECRETS}/s")["data"]["k"] == TEXT
    finally:
        c.stop()


def test_a_key_is_replaced(tmp_path):
    c = Sealed(tmp_path, {"identity": {}})
    try:
        c.make("s")
        assert TEXT.encode() in c.disk()
        c.restart(cipher("aesgcm", "a"), {"identity": {}})
        assert "values are not encrypted as configured" in c.text()
        before = c.admin("GET", f"{SECRETS}/s")["metadata"]
        assert re.search(r"secrets: [1-9]\d* objects written again", c.tenet("adm", "storage", "migrate").stdout)
        after = c.admin("GET", f"{SECRETS}/s")["metadata"]
        assert before["uid"] == after["uid"] and before["resourceVersion"] != after["resourceVersion"]
        c.tenet("adm", "storage", "migrate", "secrets")  # Nothing is left to do.
        assert c.admin("GET", f"{SECRETS}/s")["metadata"]["resourceVersion"] == after["resourceVersion"]
        c.restart(cipher("aesgcm", "b", "a"))  # What is there is of a; nothing is plain any more.
        assert c.admin("GET", f"{SECRETS}/s")["data"]["k"] == TEXT
        c.tenet("adm", "storage", "migrate", "secrets")
        c.restart(cipher("aesgcm", "b"))
        assert c.admin("GET", f"{SECRETS}/s")["data"]["k"] == TEXT
        assert "values are not encrypted as configured" not in c.text()
    finally:
        c.stop()


def test_without_the_key_secrets_are_closed(tmp_path):
    c = Sealed(tmp_path, cipher("aesgcm", "a"))
    try:
        c.make("s")
        c.restart(cipher("aesgcm", "b"))
        status, answer = c.ask(c._admin, "GET", f"{SECRETS}/s")
        assert status == 500 and TEXT not in str(answer), answer
        assert re.search(r'value cannot be decrypted key=/registry/secrets/\S+ error="it is encrypted with the key \\?"a', c.text())
        assert c.ask(c._admin, "PUT", f"{SECRETS}/s", {"metadata": {"name": "s"}, "data": {}})[0] == 500  # It is not overwritten.
        c.restart(cipher("aesgcm", "b", "a"))
        assert c.admin("GET", f"{SECRETS}/s")["data"]["k"] == TEXT
    finally:
        c.stop()


def test_wrong_files_are_refused_at_start(tmp_path):
    file = tmp_path / "e.yaml"
    for text, mode, why in ((config({"kms": {}}), 0o600, "the provider kms is not supported"),
                            (config(cipher("aesgcm", "a")), 0o644, "every user of the host can read it"), (None, 0, "No such file")):
        file.unlink(missing_ok=True)
        if text:
            file.write_text(text)
            file.chmod(mode)
        (tmp_path / "m.yaml").write_text(json.dumps({"servingInfo": {"bindAddress": "127.0.0.1:0"}, "storage": {
            "backend": "memory", "encryptionConfig": str(file)}}))
        r = run([TENET, "master", "--config", tmp_path / "m.yaml"], check=False, timeout=60)
        assert r.returncode == 1 and why in r.stderr and KEYS["a"]["secret"] not in r.stderr, r.stderr


def test_backups_stay_encrypted(tmp_path):
    c = Sealed(tmp_path, cipher("aesgcm", "a"))
    out, copy = tmp_path / "out.json", tmp_path / "copy.db"
    try:
        c.make("s")
        for command, file in ("export", out), ("backup", copy):
            run([TENET, "store", command, file, "--config", tmp_path / "master.yaml"])
            assert TEXT.encode() not in file.read_bytes()
        assert c.stop() == 0
        run([TENET, "store", "import", out, "--force", "--config", tmp_path / "master.yaml"])
        c.start()
        assert c.admin("GET", f"{SECRETS}/s")["data"]["k"] == TEXT
        assert c.stop() == 0
        run([TENET, "store", "restore", copy, "--force", "--config", tmp_path / "master.yaml"])
        c.start()
        assert c.admin("GET", f"{SECRETS}/s")["data"]["k"] == TEXT
    finally:
        c.stop()


def test_etcd_has_the_envelope_of_kubernetes(tmp_path):
    etcd = ha.Etcd(tmp_path)
    c = None
    try:
        c = Sealed(tmp_path, cipher("aescbc", "a"), storage={"backend": "etcd", "endpoints": etcd.endpoints})
        c.make("s")
        c.make("t")
        key = f"/registry{SECRETS.removeprefix('/api/v1/namespaces').replace('/default/secrets', '/secrets/default')}/s"
        r = run(["etcdctl", "--endpoints", etcd.endpoints, "get", key, "-w", "json"], env={"ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"})
        value = base64.b64decode(json.loads(r.stdout)["kvs"][0]["value"])
        head = b"k8s:enc:aescbc:v1:a:"
        assert value.startswith(head) and (len(value) - len(head)) % 16 == 0
        # OpenSSL's own program reads it as it reads what a kube-apiserver has written: IV, then the padded text.
        body = value[len(head):]
        (tmp_path / "body").write_bytes(body[16:])
        r = run(["openssl", "enc", "-d", "-aes-256-cbc", "-K", (b"a" * 32).hex(), "-iv", body[:16].hex(), "-in", tmp_path / "body"])
        assert json.loads(r.stdout)["data"]["k"] == TEXT
        # With additional data, a value that is moved to another key does not open.
        c.restart(cipher("aesgcm", "b"), cipher("aescbc", "a"))
        c.tenet("adm", "storage", "migrate")
        shell = f"etcdctl --endpoints {etcd.endpoints} get --print-value-only {key} | head -c -1 | etcdctl --endpoints {etcd.endpoints} put {key[:-1]}t"
        run(["sh", "-c", shell], env={"ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"})
        wait_for("the refusal", lambda: c.ask(c._admin, "GET", f"{SECRETS}/t")[0] == 500)
        assert f"key={key[:-1]}t" in c.text() and "the value was changed or moved" in c.text()
    finally:
        if c:
            c.stop()
        etcd.kill(0)
