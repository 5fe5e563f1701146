# SPDX-License-Identifier: Apache-2.0
"""`tenet apiserver` and `tenet controllers` as processes of their own, each as a user of its own with its own keys."""
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

import lab as lablib
from lab import TENET, run, wait_for

API_USER, CONTROLLERS_USER = 61001, 61002
API_FILES = ["ca.crt", "server.crt", "server.key", "sa.key"]
CONTROLLERS_FILES = ["ca.crt", "ca.key", "controllers.kubeconfig"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes as other users")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Apart:
    def __init__(self, tmp):
        self.dir = pathlib.Path(tmp)
        self.dir.chmod(0o755)
        self.port, self.procs, self.status = free_port(), {}, {}
        self.config = self.dir / "master.yaml"
        self.config.write_text(json.dumps({
            "servingInfo": {"bindAddress": f"127.0.0.1:{self.port}"},
            "storage": {"backend": "sqlite", "path": str(self.dir / "data/registry.db")}}))
        self.made = run([TENET, "adm", "create-master-certs", "--config", self.config, "--dir", self.dir / "pki"])
        (self.dir / "data").mkdir()
        os.chown(self.dir / "data", API_USER, API_USER)
        self.credentials("api", API_USER, API_FILES)
        self.credentials("controllers", CONTROLLERS_USER, CONTROLLERS_FILES)

    def credentials(self, folder, user, files):
        """What systemd's LoadCredential= gives to a service."""
        target = self.dir / folder
        target.mkdir(mode=0o700)
        for name in files:
            shutil.copy(self.dir / "pki" / name, target / name)
            os.chown(target / name, user, user)
            (target / name).chmod(0o400)
        os.chown(target, user, user)

    def spawn(self, name, user, *args):
        log = self.dir / f"{name}.log"
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all",
                   "--inh-caps=-all", TENET, *map(str, args)]
        with open(log, "a") as f:
            self.procs[name] = subprocess.Popen(command, stdout=f, stderr=f, env=lablib.environment())

    def start_api(self):
        c = self.dir / "api"
        self.spawn("api", API_USER, "apiserver", "--config", self.config, "--tls-cert-file", c / "server.crt",
                   "--tls-key-file", c / "server.key", "--client-ca-file", c / "ca.crt",
                   "--service-account-signing-key-file", c / "sa.key", "--dns-bind-address", "none")
        wait_for("the API", lambda: self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0)

    def start_controllers(self, name="controllers"):
        c = self.dir / "controllers"
        self.status[name] = free_port()
        self.spawn(name, CONTROLLERS_USER, "controllers", "--config", self.config, "--kubeconfig",
                   c / "controllers.kubeconfig", "--cluster-signing-cert-file", c / "ca.crt",
                   "--cluster-signing-key-file", c / "ca.key", "--controller-lease-ttl", "3",
                   "--status-bind-address", f"127.0.0.1:{self.status[name]}")
        wait_for("the controllers", lambda: self.ask(name, "/readyz")[0] == 200)

    def ask(self, name, path, method="GET"):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{self.status[name]}{path}", method=method)
            with urllib.request.urlopen(request, timeout=30) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError as e:
            return 0, str(e)

    def stop(self, name, sig=signal.SIGTERM):
        p = self.procs.pop(name)
        p.send_signal(sig)
        return p.wait(timeout=30)

    def text(self, name):
        return (self.dir / f"{name}.log").read_text()

    def kubectl(self, *args, **kw):
        return run(["kubectl", "--kubeconfig", self.dir / "pki/admin.kubeconfig", *args],
                   env={**lablib.environment(), "HOME": str(self.dir)}, **kw)

    def holder(self):
        r = self.kubectl("-n", "kube-system", "get", "lease", "tenet-controllers", "-o",
                         "jsonpath={.spec.holderIdentity}", check=False)
        return r.stdout if r.returncode == 0 else ""


@pytest.fixture
def apart():
    with tempfile.TemporaryDirectory(prefix="tenet-apart-") as tmp:
        a = Apart(tmp)
        yield a
        for name in list(a.procs):
            a.stop(name, signal.SIGKILL)


def has_subnet(apart, name):
    return apart.kubectl("get", "hostsubnet", name, check=False).returncode == 0


def make_node(apart, name, address):
    apart.kubectl("create", "-f", "-", input=json.dumps(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
         "status": {"addresses": [{"type": "InternalIP", "address": address}]}}))


def test_each_has_its_own_keys_and_together_they_are_a_master(apart):
    apart.start_api()
    assert apart.kubectl("get", "clusternetwork", "default", check=False).returncode != 0  # Nobody has made it yet.
    apart.start_controllers()
    make_node(apart, "n1", "10.245.2.9")
    wait_for("its subnet", lambda: has_subnet(apart, "n1"))
    # The API server signs tokens, and the controllers cannot; a Secret gets one all the same.
    apart.kubectl("create", "-f", "-", input=json.dumps(
        {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
         "metadata": {"name": "robot", "namespace": "default",
                      "annotations": {"kubernetes.io/service-account.name": "builder"}}}))

    def secret():
        data = json.loads(apart.kubectl("-n", "default", "get", "secret", "robot", "-o", "json").stdout).get("data", {})
        return data if {"token", "ca.crt", "namespace"} <= data.keys() else None
    data = wait_for("the Secret to be complete", secret)
    assert base64.b64decode(data["ca.crt"]) == (apart.dir / "pki/ca.crt").read_bytes()
    token = base64.b64decode(data["token"]).decode()
    who = apart.kubectl("--token", token, "auth", "can-i", "get", "pods", check=False)
    assert who.stdout.strip() in ("yes", "no"), who.stderr
    # The controllers sign certificates, and the API server cannot: it has no access to the key.
    api = apart.procs["api"].pid
    assert os.stat(f"/proc/{api}").st_uid == API_USER
    r = run(["setpriv", f"--reuid={API_USER}", "--clear-groups", "--bounding-set=-all", "cat",
             apart.dir / "controllers/ca.key"], check=False)
    assert r.returncode != 0 and "Permission denied" in r.stderr
    key, csr = apart.dir / "jane.key", apart.dir / "jane.csr"
    run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
         "-out", csr, "-subj", "/CN=jane"])
    apart.kubectl("create", "-f", "-", input=json.dumps(
        {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "jane"},
         "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
                  "request": base64.b64encode(csr.read_bytes()).decode()}}))
    apart.kubectl("certificate", "approve", "jane")
    wait_for("the certificate", lambda: apart.kubectl("get", "csr", "jane", "-o",
                                                      "jsonpath={.status.certificate}").stdout)


def test_either_may_die_and_the_other_goes_on(apart):
    apart.start_api()
    apart.start_controllers()
    # Without controllers the API serves all that it has.
    apart.stop("controllers", signal.SIGKILL)
    assert apart.kubectl("get", "--raw", "/readyz").stdout == "ok"
    make_node(apart, "n1", "10.245.2.9")
    apart.start_controllers()
    wait_for("the subnet of a node that came meanwhile", lambda: has_subnet(apart, "n1"))
    # The controllers outlive the API server.
    apart.stop("api", signal.SIGKILL)
    assert apart.ask("controllers", "/healthz") == (200, "ok")
    apart.start_api()
    make_node(apart, "n2", "10.245.2.10")
    wait_for("the subnet of a node of the new API server", lambda: has_subnet(apart, "n2"))
    assert apart.procs["controllers"].poll() is None


def test_one_of_two_controllers_leads_and_gives_the_lease_up(apart):
    apart.start_api()
    apart.start_controllers("first")
    first = wait_for("a leader", apart.holder)
    apart.start_controllers("second")
    assert apart.holder() == first
    assert apart.stop("first") == 0
    second = wait_for("another leader", lambda: apart.holder() not in ("", first) and apart.holder())
    make_node(apart, "n1", "10.245.2.9")
    wait_for("its subnet", lambda: has_subnet(apart, "n1"))
    assert second and apart.stop("second") == 0


def test_status_server_tells_health_and_figures_and_nothing_else(apart):
    apart.start_api()
    apart.start_controllers()
    assert apart.ask("controllers", "/livez") == (200, "ok")
    status, text = apart.ask("controllers", "/metrics")
    assert status == 200 and "workqueue_depth{" in text
    assert apart.ask("controllers", "/api/v1/secrets")[0] == 404
    assert apart.ask("controllers", "/healthz", method="POST")[0] == 405


def test_certificates_are_made_once(apart):
    files = {p.name: p.read_bytes() for p in (apart.dir / "pki").iterdir()}
    assert set(files) == {*API_FILES, *CONTROLLERS_FILES, "admin.kubeconfig", "kubelet-client.crt", "kubelet-client.key"}
    for name in ("ca.key", "server.key", "sa.key", "kubelet-client.key", "admin.kubeconfig", "controllers.kubeconfig"):
        assert (apart.dir / "pki" / name).stat().st_mode & 0o777 == 0o600
    command = [TENET, "adm", "create-master-certs", "--config", apart.config, "--dir", apart.dir / "pki"]
    assert "nothing to do" in run(command).stdout
    assert run([*command, "--quiet"]).stdout == ""
    (apart.dir / "pki/server.crt").unlink()
    assert run([*command, "--quiet"]).stdout != ""
    again = {p.name: p.read_bytes() for p in (apart.dir / "pki").iterdir()}
    assert {n for n in files if files[n] != again[n]} == {"server.crt", "server.key"}


def test_wrong_ways_to_run_them_are_refused(apart):
    def refused(*args):
        r = run([TENET, *args], check=False)
        assert r.returncode in (1, 2), r
        return r.stderr
    assert "create-master-certs" in refused("apiserver", "--tls", "auto", "--pki-dir", apart.dir / "other")
    assert not (apart.dir / "other").exists()
    text = refused("controllers", "--kubeconfig", apart.dir / "absent")
    assert "absent" in text
    text = refused("controllers", "--config", apart.config, "--kubeconfig", apart.dir / "pki/controllers.kubeconfig",
                   "--cluster-signing-cert-file", apart.dir / "pki/ca.crt")
    assert "clusterSigningKeyFile" in text
    assert "--storage-path" in refused("controllers", "--storage-path", "x")
    assert "--cluster-signing-key-file" in refused("apiserver", "--cluster-signing-key-file", "x")
