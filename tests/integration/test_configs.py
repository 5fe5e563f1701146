# SPDX-License-Identifier: Apache-2.0
"""Configuration files of OpenShift 3: judged, converted, and a master that starts from one."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from lab import TENET, environment, run, wait_for

FILES = pathlib.Path(__file__).with_name("openshift")


def config(*args, check=True):
    r = subprocess.run([TENET, "adm", "config", *map(str, args)], capture_output=True, text=True, env=environment())
    assert not check or r.returncode == 0, r.stdout + r.stderr
    return r


@pytest.mark.parametrize("name", ["master-config.yaml", "master-config-3.4.yaml", "node-config.yaml"])
def test_an_installers_file_has_warnings_only(name):
    text = config("check", FILES / name).stdout
    assert ": error: " not in text and f"{name}: 0 errors" in text
    lines = (FILES / name).read_text().splitlines()
    for number, key in re.findall(rf"{name}:(\d+): warning: ([\w.-]+): ", text):
        assert lines[int(number) - 1].strip().startswith(key.split(".")[-1] + ":"), (number, key)


def test_every_finding_of_a_wrong_file_is_printed(tmp_path):
    file = tmp_path / "master-config.yaml"
    file.write_text("kind: MasterConfig\nnetworkConfig:\n  serviceNetworkCidr: 172.30.0.0/16\n  mtu: 7\nassetConfig:\n  a: b\n"
                    "oauthConfig:\n  bindPassword: s3\n")
    file.chmod(0o644)
    r = config("check", file, check=False)
    assert r.returncode == 1
    assert f"{file}:3: error: networkConfig.serviceNetworkCidr: unknown key; did you mean networkConfig.serviceNetworkCIDR?" in r.stdout
    assert f"{file}:4: error: networkConfig.mtu: 7 is not in" in r.stdout
    assert f"{file}:5: warning: assetConfig: " in r.stdout
    assert f"{file}:8: error: oauthConfig.bindPassword: every user of this host can read this secret" in r.stdout
    assert config("check", file, check=False).stdout.endswith("4 errors, 1 warnings\n")
    refused = config("convert", file, check=False)
    assert refused.returncode == 1 and "mtu" in refused.stderr and refused.stdout == ""
    file.write_text("a: [\n")
    assert config("check", file, "--kind", "NodeConfig", check=False).returncode == 1
    file.write_text("a: 1\n")
    assert config("check", file, check=False).returncode == 2
    assert config("check", tmp_path / "none", check=False).returncode == 1


def test_the_configuration_of_admission_plugins_is_judged(tmp_path):
    (tmp_path / "once.yaml").write_text("apiVersion: v1\nkind: RunOnceDurationConfig\nactiveDeadlineSecondsOverride: 60\n")
    plugins = {"RunOnceDuration": {"location": "once.yaml"}, "BuildByStrategy": {"configuration": {"apiVersion": "v1", "kind": "X"}}}
    file = tmp_path / "master-config.yaml"
    file.write_text(json.dumps({"kind": "MasterConfig", "apiVersion": "v1", "admissionConfig": {"pluginConfig": plugins}}))
    r = config("check", file)
    assert "warning: admissionConfig.pluginConfig.BuildByStrategy: it comes with builds, which this version does not have" in r.stdout
    assert r.stdout.endswith("0 errors, 1 warnings\n")
    made = config("convert", file).stdout
    assert f"location: {tmp_path}/once.yaml" in made and "admissionConfig.pluginConfig.BuildByStrategy: it comes with builds" in made
    plugins["RunOnceDuration"] = {"configuration": {"apiVersion": "v1", "kind": "RunOnceDurationConfig", "activeDeadlineSeconds": 60}}
    file.write_text(json.dumps({"kind": "MasterConfig", "admissionConfig": {"pluginConfig": plugins, "pluginOrderOverride": ["Nonsense"]}}))
    r = config("check", file, check=False)
    assert "error: admissionConfig.pluginConfig.RunOnceDuration.configuration.activeDeadlineSeconds: unknown key" in r.stdout
    assert "error: admissionConfig.pluginOrderOverride: Nonsense: unknown admission plug-in" in r.stdout and r.returncode == 1


def test_what_is_converted_has_no_warnings(tmp_path):
    for name, made in (("master-config.yaml", ["master-config.yaml"]), ("master-config-3.4.yaml", ["master-config.yaml"]),
                       ("node-config.yaml", ["node-config.yaml", "kubelet-config.yaml"])):
        out = tmp_path / name
        assert config("convert", FILES / name, "-o", out).stdout.split() == [str(out / m) for m in made]
        for m in made:
            assert config("check", out / m).stdout == f"{out / m}: 0 errors, 0 warnings\n"
            assert (out / m).stat().st_mode & 0o777 == 0o600
        again = config("convert", FILES / name, "-o", out, check=False)
        assert again.returncode == 1 and "exists" in again.stderr
    kubelet = (tmp_path / "node-config.yaml/kubelet-config.yaml").read_text()
    assert "maxPods: 250" in kubelet and "podManifestPath: /etc/origin/node/pods" in kubelet
    assert "kubeletArguments.feature-gates: " in kubelet
    assert f"masterKubeConfig: {FILES}/node.kubeconfig" in (tmp_path / "node-config.yaml/node-config.yaml").read_text()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_master_starts_from_an_installers_file(tmp_path):
    """The etcd is left out, and ports are the test's."""
    port = free_port()
    names = {"ca.crt": "ca.crt", "ca.key": "ca.key", "server.crt": "master.server.crt", "server.key": "master.server.key",
             "sa.key": "serviceaccounts.private.key"}
    made = tmp_path / "master.yaml"
    made.write_text(json.dumps({"servingInfo": {"bindAddress": f"127.0.0.1:{port}"}}))
    run([TENET, "adm", "create-master-certs", "--config", made, "--dir", tmp_path / "pki"])
    for ours, theirs in names.items():
        shutil.copy(tmp_path / "pki" / ours, tmp_path / theirs)
    run(["openssl", "pkey", "-in", tmp_path / "pki/sa.key", "-pubout", "-out", tmp_path / "serviceaccounts.public.key"])
    shutil.copy(FILES / "scheduler.json", tmp_path)
    (tmp_path / "htpasswd").write_text("bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
    secrets = tmp_path / "session-secrets.yaml"
    secrets.write_text(json.dumps({"apiVersion": "v1", "kind": "SessionSecrets",
                                   "secrets": [{"authentication": "a" * 32, "encryption": "e" * 32}]}))
    secrets.chmod(0o600)
    text = (FILES / "master-config.yaml").read_text()
    text = re.sub(r"etcdClientInfo:\n(  .*\n)+", "storage:\n  path: registry.db\n", text)
    text = re.sub(r"kubeletClientInfo:\n(  .*\n)+", "", text)
    text = text.replace("0.0.0.0:8443", f"127.0.0.1:{port}").replace("127.0.0.1:8053", "none").replace("  masterIP: 192.0.2.10\n", "")
    (tmp_path / "master-config.yaml").write_text(text)
    log = tmp_path / "log"
    with open(log, "w") as f:
        p = subprocess.Popen([TENET, "master", "--config", tmp_path / "master-config.yaml"], cwd="/", stdout=f, stderr=f,
                             env=environment())
    try:
        kubectl = ["kubectl", "--kubeconfig", tmp_path / "pki/admin.kubeconfig"]
        wait_for("the API", lambda: p.poll() is not None or run([*kubectl, "get", "--raw", "/readyz"], check=False).returncode == 0)
        assert p.poll() is None, log.read_text()
        words = log.read_text()
        for key in ("assetConfig", "oauthConfig.masterURL"):
            assert (f"has no effect key={key} " in words) == (key.split(".")[0] in text), words
        assert "kubernetesMasterConfig.apiServerArguments.storage-backend" in words
        ns = json.loads(run([*kubectl, "get", "namespace", "default", "-o", "json"]).stdout)
        assert ns["metadata"]["annotations"]["openshift.io/sa.scc.uid-range"].endswith("/10000")
        assert (tmp_path / "registry.db").exists()
    finally:
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
            p.wait(30)


def test_the_same_file_with_a_wrong_key_does_not_start(tmp_path):
    file = tmp_path / "master-config.yaml"
    file.write_text((FILES / "master-config.yaml").read_text().replace("pauseControllers:", "pauseController:"))
    r = subprocess.run([TENET, "master", "--config", file], capture_output=True, text=True, env=environment(), timeout=60)
    assert r.returncode == 1 and "pauseController: unknown key" in r.stderr and os.listdir(tmp_path) == ["master-config.yaml"]
