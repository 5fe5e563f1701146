# SPDX-License-Identifier: Apache-2.0
"""tenet collect: what is in the file, and that no secret is, wherever one was planted."""
import json
import os
import re
import stat
import tarfile

import pytest

from lab import TENET, run, wait_for
from test_setup import JOIN, World, join, new_node, start_master

MARK = "planted"  # each planted secret begins with this, and has a number


class Planted:
    def __init__(self):
        self.secrets = []

    def __call__(self, form="{}"):
        """A new secret in a text of this form."""
        secret = f"{MARK}{len(self.secrets):03d}x{os.urandom(6).hex()}"
        self.secrets.append(secret)
        return form.format(secret)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    w = World(tmp_path_factory.mktemp("collect"), f"tco{os.getpid() % 100000}")
    try:
        w.up()
        out = start_master(w)
        n = new_node(w, "n1")
        token, address = JOIN.search(out).groups()
        command = re.search(r"^ +tenet (node --config \S+)$", join(n, token, address), re.M)[1]
        n.start(*command.split())
        conf = n.root / "etc/cni/net.d/80-openshift-network.conf"
        wait_for("the node to be ready", conf.exists)
        w.used_token = token
        yield w
    finally:
        w.end()


def collect(host, folder, *args):
    """{name: text} of the bundle, and the command's output."""
    file = folder / "bundle.tar.gz"
    r = host.tenet("collect", "--prefix", host.root, "--output", file, *args)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with tarfile.open(file, "r:gz") as t:
        members = {m.name: t.extractfile(m).read().decode(errors="replace") for m in t.getmembers() if m.isfile()}
    assert all(name.startswith("tenet-collect/") for name in members)
    return {name.split("/", 1)[1]: text for name, text in members.items()}, r.stdout


def plant(world, p):
    def pod(name):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": name, "namespace": "red", "annotations": {"note.example.com/x": p(), "url": p("http://u:{}@h/")}},
            "spec": template()}

    def template():
        probe = {"httpGet": {"port": 80, "path": p("/x?access_token={}"), "httpHeaders": [{"name": "X-Key", "value": p()}]}}
        return {"containers": [{
            "name": "c", "image": "localhost/x:1", "command": ["sh", "-c", p("login -p {}")], "args": [p("--pw={}")],
            "env": [{"name": "A", "value": p()}, {"name": "URL", "value": p("https://user:{}@db/")},
                    {"name": "REF", "valueFrom": {"secretKeyRef": {"name": "kept-reference", "key": "k"}}}],
            "livenessProbe": probe, "lifecycle": {"postStart": {"exec": {"command": [p()]}}}}]}
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "red", "annotations": {"mail": p()}}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "red"}, "stringData": {"a": p(), "b.c": p()}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "namespace": "red"}, "type": "kubernetes.io/tls",
         "stringData": {"tls.crt": p(), "tls.key": p("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n")}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "red"}, "data": {"conf": p("password: {}")},
         "binaryData": {}},
        pod("p"),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "red"}, "spec": {
            "replicas": 0, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}, "annotations": {"x": p()}}, "spec": template()}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kept-service", "namespace": "red", "annotations": {"lb-password": p()}},
         "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "red"}, "reason": "Kept", "type": "Warning",
         "involvedObject": {"kind": "Pod", "namespace": "red", "name": "p"},
         "message": p("pull https://me:{}@registry failed") + p("; token={}") + p("; Authorization: Bearer {}")},
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "vaults.example.com"},
         "spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Vault", "plural": "vaults", "singular": "vault"},
                  "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                      "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}},
    ]
    for o in objects:
        world.kubectl("apply", "-f", "-", input=json.dumps(o))  # apply: the annotation last-applied-configuration has all of it
    wait_for("the kind", lambda: "vaults" in world.kubectl("api-resources", check=False))
    world.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "example.com/v1", "kind": "Vault", "metadata": {
        "name": "kept-vault", "annotations": {"y": p()}}, "spec": {"combination": p()}}))
    return objects


def plant_files(host, p):
    (host.etc / "kubelet-config.yaml").write_text(
        "apiVersion: v1\nkind: KubeletConfiguration\npodManifestURL: " + p("https://u:{}@h/m.yaml") + "\n"
        "podManifestURLHeader: [" + p('"Authorization: Basic {}"') + "]\nmaxPods: 77\n")
    (host.etc / "extra.kubeconfig").write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "kept-context",
        "clusters": [{"name": "c", "cluster": {"server": p("https://u:{}@10.0.0.1:8443")}}],
        "users": [{"name": "u", "user": {"token": p(), "password": p(), "client-key-data": p(), "exec": {"args": [p()]}}}]}))
    (host.root / "etc/cni/net.d/90-other.conf").write_text(json.dumps({"name": "kept-net", "type": "x", "apiToken": p(),
                                                                      "env": [{"name": "a", "value": p()}]}))


def real_secrets(world):
    """Keys and tokens that the cluster itself has made."""
    for h in world.hosts.values():
        for path in h.root.rglob("*"):
            text = path.read_text(errors="replace") if path.is_file() and "run" not in path.relative_to(h.root).parts else ""
            for key in re.findall(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n(.*?)\n-----END", text, re.S):
                yield from key.split("\n")[:2]
            yield from re.findall(r"(?:client-key-data|token): (\S{16,})", text)
    yield world.used_token.split(":")[0].split(".")[1]
    for s in json.loads(world.kubectl("get", "secrets", "-A", "-o", "json"))["items"]:
        for value in s.get("data", {}).values():
            if len(value) >= 20:
                yield value


def test_no_secret_is_in_the_file(cluster, tmp_path):
    p = Planted()
    plant(cluster, p)
    secrets = list(real_secrets(cluster))
    assert len(secrets) > 8
    for host in (cluster.hosts["master"], cluster.hosts["n1"]):
        plant_files(host, p) if host.name == "n1" else None
        files, _ = collect(host, tmp_path)
        for name, text in files.items():
            found = re.findall(MARK + r"\d+x\w+", text)
            assert not found, f"{name} has {found}: {text[max(0, text.index(found[0]) - 200):][:400]}"
            for secret in secrets:
                assert secret not in text, f"{name} has a secret of the cluster: {secret[:6]}..."
            assert "PRIVATE KEY" not in text, name
    assert len(p.secrets) >= 30


def test_the_file_has_what_is_needed(cluster, tmp_path):
    n, out = collect(cluster.hosts["n1"], tmp_path)
    assert f"{len(n)} files" in out
    assert json.loads(n["about.json"])["program"].startswith("tenet ")
    assert "192.0.2.2" in n["net/addresses"] and "tun0" in n["net/links"] and "10.128.0.0/14" in n["net/routes"]
    assert "table ip tenet" in n["net/nftables"]
    assert json.loads(n["agent/state.json"])["pods"] == [] and "tenet_node_" in n["agent/metrics"] and "ok" in n["agent/healthz"]
    config = json.loads(n["config/node-config.yaml"])
    assert config["nodeName"] == "n1" and config["networkConfig"]["datapath"] == "ebpf"
    assert "kernel" in n["host/checks"]
    assert "forbidden" in n["failures.txt"].lower(), "a node may not read all objects, which is said"
    m, _ = collect(cluster.hosts["master"], tmp_path)
    assert "n1" in m["objects/hostsubnets.network.openshift.io.json"] and '"n1"' in m["objects/nodes.json"]
    assert json.loads(m["config/master-config.yaml"])["servingInfo"]["tls"] == "auto"
    if "objects/pods.json" in m:
        assert "kept-reference" in m["objects/pods.json"] and "kept-service" in m["objects/services.json"]
        assert "kept-vault" in m["objects/vaults.example.com.json"] and "combination" not in m["objects/vaults.example.com.json"]
    assert '"s"' not in m["objects/nodes.json"]


def test_without_a_cluster_it_says_what_is_missing(world_of_one, tmp_path):
    files, out = collect(world_of_one, tmp_path)
    assert "could not be had" in out and "there is no kubeconfig" in files["failures.txt"]
    assert not any(f.startswith("objects/") for f in files) and "eth0" in files["net/links"]


@pytest.fixture
def world_of_one(tmp_path_factory):
    w = World(tmp_path_factory.mktemp("alone"), f"tca{os.getpid() % 100000}")
    try:
        w.up()
        yield w.host("alone")
    finally:
        w.end()


def test_a_file_that_cannot_be_written_leaves_nothing(world_of_one, tmp_path):
    r = world_of_one.tenet("collect", "--output", "/proc/none/x.tar.gz", "--no-objects", check=False)
    assert r.returncode == 1 and "/proc/none/x.tar.gz" in r.stderr
    full = tmp_path / "full"
    full.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", full])
    try:
        r = run([TENET, "collect", "--output", full / "x.tar.gz", "--no-objects"], check=False)
        assert r.returncode == 1 and "No space left" in r.stderr and list(full.iterdir()) == [], r
    finally:
        run(["umount", full])
