# SPDX-License-Identifier: Apache-2.0
"""Static pods of `tenet kubelet`, and their mirrors at a master with access control, where the kubelet is its node."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import containerd as containerdlib
from lab import run, wait_for
from test_kubelet import IMAGE, NODE, Cluster, ready
from test_tls import make_pki

NODE_IP = "10.245.9.2"
MIRROR = "kubernetes.io/config.mirror"


# Answers with a file, or 503 while there is none, and writes each request's header down.
SERVER = """
import http.server, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        file = pathlib.Path(sys.argv[1])
        self.send_response(200 if file.exists() else 503)
        self.end_headers()
        self.wfile.write(file.read_bytes() if file.exists() else b"")
        print("node", self.headers.get("X-Node"), flush=True)
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
"""


class StaticCluster(Cluster):
    def __init__(self, folder):
        self.dir = folder
        (folder / "containerd").mkdir()
        self.cd_dir = folder / f"tenet-s{os.getpid()}"
        self.cd_dir.mkdir()
        self.manifests = folder / "manifests"
        self.manifests.mkdir()
        self.cd = containerdlib.start(self.cd_dir)
        run(self.inside(["ip", "addr", "add", f"{NODE_IP}/32", "dev", "lo"]))  # a master takes no loopback address of a node
        self.port, self.master, self.kubelet = None, None, None
        self.start_master()
        shutil.copy(folder / "pki/admin.kubeconfig", folder / "kubeconfig")
        crt, key = make_pki(folder, "node", f"/O=system:nodes/CN=system:node:{NODE}",
                            ca=(str(folder / "pki/ca.crt"), str(folder / "pki/ca.key")))
        conf = json.loads(self.kubectl("config", "view", "--raw", "-o", "json").stdout)
        conf["users"][0]["user"] = {"client-certificate": crt, "client-key": key}
        (folder / "node.kubeconfig").write_text(json.dumps(conf))
        self.start_kubelet()

    def master_config(self):
        conf = super().master_config()
        conf["servingInfo"]["pkiDir"] = str(self.dir / "pki")
        return conf

    def stop_master(self):
        self.master.terminate()
        assert self.master.wait(30) == 0

    def start_kubelet(self, *args):
        super().start_kubelet("--node-ip", NODE_IP, "--server-address", f"{NODE_IP}:0", "--kubeconfig", self.dir / "node.kubeconfig",
                              "--pod-manifest-path", self.manifests, *args)

    @contextlib.contextmanager
    def explained(self):
        try:
            yield
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.log()[-6000:]}") from None

    def manifest(self, name, text="one", raw=None, **spec):
        """Writes a manifest as an editor does, and returns the pod's name."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
               "spec": {"terminationGracePeriodSeconds": 0, **spec, "containers": [{
                   "name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                   "command": ["/bin/sh", "-c", f"echo {text}; exec sleep 3600"]}]}}
        hidden = self.manifests / f".{name}.yaml"
        hidden.write_text(raw or json.dumps(pod))
        hidden.rename(self.manifests / f"{name}.yaml")
        return f"{name}-{NODE}"

    def remove(self, name):
        (self.manifests / f"{name}.yaml").unlink()
        wait_for(f"the mirror of {name} to be gone", lambda: not self.get("pod", f"{name}-{NODE}"))
        wait_for(f"the containers of {name} to be gone", lambda: not self.of(f"{name}-{NODE}"))

    def of(self, name, container=None):
        """IDs of the containers and sandboxes of a pod, by the runtime alone."""
        return self.cd.of(name, container)

    def main_container(self, name):
        """The ID of the container that runs; None: there is not exactly one."""
        found = [i for i in self.of(name, "c") if self.cd.pid(i)]
        return found[0] if len(found) == 1 else None


@pytest.fixture(scope="module")
def cluster():
    containerdlib.needed()
    with tempfile.TemporaryDirectory(prefix="tenet-static-") as folder:
        c = StaticCluster(pathlib.Path(folder))
        try:
            with c.explained():
                wait_for("the node to be ready", lambda: ready((c.get("node", NODE) or {}).get("status", {})))
            yield c
        finally:
            with contextlib.suppress(Exception):
                wait_for("all containers to be gone", lambda: not c.containers())
            c.stop()


@pytest.fixture(autouse=True)
def cleared(cluster):
    """A test that fails leaves nothing to the next."""
    yield
    for file in cluster.manifests.iterdir():
        file.unlink()
    if cluster.master.poll() is not None:
        cluster.start_master()


def test_a_file_is_a_pod_with_a_mirror(cluster):
    name = cluster.manifest("web")
    s = cluster.running(name)
    assert s["podIP"].startswith("10.77.") and s["containerStatuses"][0]["restartCount"] == 0
    pod, node = cluster.get("pod", name), cluster.get("node", NODE)
    notes, owner = pod["metadata"]["annotations"], pod["metadata"]["ownerReferences"][0]
    assert notes["kubernetes.io/config.source"] == "file" and notes[MIRROR] == notes["kubernetes.io/config.hash"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Node", NODE, node["metadata"]["uid"], True)
    assert {"operator": "Exists", "effect": "NoExecute"} in pod["spec"]["tolerations"] and pod["metadata"]["labels"] == {"app": "web"}
    assert pod["metadata"]["uid"] != notes[MIRROR]
    uids = {cluster.cd.labels(i)["io.kubernetes.pod.uid"] for i in cluster.of(name)}
    assert uids == {notes[MIRROR]}
    # By the mirror's name and UID its streams reach the static pod.
    assert wait_for("its log", lambda: cluster.kubectl("logs", name, check=False).stdout) == "one\n"
    assert cluster.kubectl("exec", name, "--", "echo", "entered").stdout == "entered\n"
    assert {"Created", "Started"} <= set(cluster.events(name))
    assert "Started" in cluster.kubectl("describe", "pod", name).stdout
    r = cluster.kubectl("drain", NODE, "--dry-run=server", check=False)
    assert r.returncode == 0 and "web" not in r.stdout, r
    cluster.kubectl("uncordon", NODE)
    cluster.remove("web")


def test_a_deleted_or_edited_mirror_returns_and_its_pod_stays(cluster):
    name = cluster.manifest("stays")
    cluster.running(name)
    container, first = cluster.main_container(name), cluster.get("pod", name)["metadata"]["uid"]

    def another(than):
        pod = cluster.get("pod", name)
        return pod if pod and pod["metadata"]["uid"] != than and ready(pod["status"]) else None
    cluster.kubectl("delete", "pod", name, "--wait=false")
    second = wait_for("a deleted mirror to return", lambda: another(first))["metadata"]["uid"]
    cluster.kubectl("delete", "pod", name, "--wait=false", "--grace-period=0", "--force")
    third = wait_for("a mirror deleted by force to return", lambda: another(second))["metadata"]["uid"]
    cluster.kubectl("label", "pod", name, "app=other", "--overwrite")
    last = wait_for("an edited mirror to return", lambda: another(third))
    assert last["metadata"]["labels"] == {"app": "stays"}
    assert cluster.main_container(name) == container and last["status"]["containerStatuses"][0]["restartCount"] == 0
    cluster.remove("stays")


def test_a_changed_file_replaces_the_pod(cluster):
    name = cluster.manifest("changes", "first")
    cluster.running(name)
    before, container = cluster.get("pod", name), cluster.main_container(name)
    cluster.manifest("changes", "second")

    def look():
        pod = cluster.get("pod", name)
        return pod if pod and pod["metadata"]["annotations"][MIRROR] != before["metadata"]["annotations"][MIRROR] and ready(pod["status"]) else None
    wait_for("the mirror of the new pod", look)
    assert container not in cluster.containers()
    assert wait_for("its log", lambda: cluster.kubectl("logs", name, check=False).stdout) == "second\n"
    # There and back before the pod has ended: the first content runs again.
    cluster.manifest("changes", "third")
    cluster.manifest("changes", "second")
    cluster.manifest("changes", "first")
    wait_for("the first content", lambda: cluster.get("pod", name) and cluster.kubectl("logs", name, check=False).stdout == "first\n")
    cluster.running(name)
    cluster.remove("changes")


def test_a_bad_file_is_named_and_disturbs_nobody(cluster):
    name = cluster.manifest("good")
    cluster.running(name)
    container = cluster.main_container(name)
    bad = {"metadata": "kind: [", "kind": json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}),
           "secret": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers: [{name: c, image: i}]\n"
                     "  volumes: [{name: v, secret: {secretName: s}}]\n",
           "field": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: i, colour: red}]}\n"}
    for key, text in bad.items():
        cluster.manifest(f"bad-{key}", raw=text)
        wait_for(f"{key} in the log", lambda key=key: f"bad-{key}.yaml" in cluster.log())
    log = cluster.log()
    for text in ('kind "Service" are not v1 and Pod', "may not refer to secrets", "unknown field", "line 2 column 1"):
        assert text in log, (text, log[-3000:])

    def events():
        items = json.loads(cluster.kubectl("get", "events", "-o", "json").stdout)["items"]
        return [e["message"] for e in items if e["reason"] == "InvalidManifest" and e["involvedObject"]["name"] == NODE]
    wait_for("an Event about each", lambda: len(events()) >= len(bad))
    # What a file had before its fault goes on.
    cluster.manifest("good", raw="kind: [")
    wait_for("the fault of the good file", lambda: "/good.yaml" in cluster.log())
    cluster.manifest("later", "later")
    cluster.running(f"later-{NODE}")
    assert cluster.main_container(name) == container
    for key in bad:
        (cluster.manifests / f"bad-{key}.yaml").unlink()
    cluster.remove("good")
    cluster.remove("later")


def test_pods_by_http(cluster):
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": n, "namespace": "kube-system"}, "spec": {
        "terminationGracePeriodSeconds": 1, "hostNetwork": True,
        "containers": [{"name": "c", "image": IMAGE, "command": ["sleep", "3600"], "imagePullPolicy": "IfNotPresent"}]}} for n in ("a", "b")]
    file = cluster.dir / "answer"

    def answer(body):
        (cluster.dir / "answer.new").write_text(json.dumps(body))
        (cluster.dir / "answer.new").rename(file)
    answer({"apiVersion": "v1", "kind": "List", "items": pods})
    server = subprocess.Popen(cluster.inside(["/usr/bin/python3", "-c", SERVER, file]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = server.stdout.readline().split()[1]
    try:
        cluster.stop_kubelet()
        cluster.start_kubelet("--manifest-url", f"http://127.0.0.1:{port}/n1?token=x", "--manifest-url-header", "X-Node: n1",
                              "--http-check-frequency", "200ms")

        def mirror(name):
            r = cluster.kubectl("get", "pod", "-n", "kube-system", f"{name}-{NODE}", "-o", "json", check=False)
            return json.loads(r.stdout) if r.returncode == 0 else None
        for name in ("a", "b"):
            wait_for(f"pod {name}", lambda name=name: ready((mirror(name) or {}).get("status", {})))
        assert mirror("a")["metadata"]["annotations"]["kubernetes.io/config.source"] == "http"
        assert server.stdout.readline() == "node n1\n"
        container = cluster.main_container(f"a-{NODE}")
        file.unlink()
        wait_for("the server's failure in the log", lambda: "the status is 503" in cluster.log())
        assert cluster.main_container(f"a-{NODE}") == container and "token" not in cluster.log()
        answer(pods[0])
        wait_for("pod b to be gone", lambda: not mirror("b") and not cluster.of(f"b-{NODE}"))
        answer({"apiVersion": "v1", "kind": "List", "items": []})
        wait_for("pod a to be gone", lambda: not mirror("a") and not cluster.of(f"a-{NODE}"))
    finally:
        server.kill()
        server.wait()
        cluster.stop_kubelet()
        cluster.start_kubelet()


def test_what_containers_use_is_told(cluster):
    name = cluster.manifest("uses", "one")
    cluster.running(name)

    def look():
        text = cluster.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/stats/summary", check=False).stdout
        pod = next((p for p in json.loads(text or "{}").get("pods", []) if p["podRef"]["name"] == name), {})
        return pod if pod.get("containers") else None
    pod = wait_for("its statistics", look)
    container = pod["containers"][0]
    assert container["name"] == "c" and container["memory"]["workingSetBytes"] > 0, pod
    group = next(pathlib.Path("/sys/fs/cgroup/memory").glob(f"{cluster.cd.cgroup}/kubepods/**/{cluster.cd.GROUP.format(cluster.main_container(name))}"))
    assert int((group / "memory.usage_in_bytes").read_text()) >= container["memory"]["workingSetBytes"], "conmon's are not its own"
    assert [i["name"] for i in pod["network"]["interfaces"]] == ["eth0"], pod
    cluster.remove("uses")


def test_they_run_without_a_master(cluster):
    name = cluster.manifest("alone")
    cluster.running(name)
    container = cluster.main_container(name)
    cluster.stop_master()
    cluster.cd.slay(container)
    restarted = wait_for("it to be started again", lambda: (i := cluster.main_container(name)) and i != container and i)
    # The kubelet starts without a master, and takes over what runs.
    cluster.stop_kubelet(signal.SIGKILL)
    cluster.start_kubelet()
    cluster.manifest("born", "born")
    wait_for("a pod that begins without a master", lambda: cluster.main_container(f"born-{NODE}"))
    (cluster.manifests / "born.yaml").unlink()
    wait_for("a pod that ends without a master", lambda: not cluster.of(f"born-{NODE}"))
    assert cluster.main_container(name) == restarted
    cluster.start_master()
    s = cluster.wait(name, lambda s: ready(s) and s["containerStatuses"][0]["restartCount"] == 1)
    assert s["containerStatuses"][0]["containerID"].endswith(restarted)
    cluster.remove("alone")


def test_a_file_that_goes_while_the_kubelet_is_away_ends_its_pod(cluster):
    kept, gone = cluster.manifest("kept"), cluster.manifest("gone")
    cluster.running(kept)
    cluster.running(gone)
    container = cluster.main_container(kept)
    cluster.stop_kubelet(signal.SIGKILL)
    (cluster.manifests / "gone.yaml").unlink()
    cluster.start_kubelet()
    wait_for("its mirror and containers to be gone", lambda: not cluster.get("pod", gone) and not cluster.of(gone))
    s = cluster.running(kept)
    assert s["containerStatuses"][0]["restartCount"] == 0 and cluster.main_container(kept) == container
    cluster.remove("kept")


def test_mirrors_without_a_static_pod_and_names_of_others(cluster):
    # The master's administrators may make a mirror; nothing runs of it.
    ghost = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ghost", "annotations": {MIRROR: "0" * 32}},
             "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": IMAGE}]}}
    cluster.kubectl("create", "-f", "-", input=json.dumps(ghost))
    wait_for("a mirror of nothing to be gone", lambda: not cluster.get("pod", "ghost"))
    assert not cluster.of("ghost")
    # A user's pod of the same name holds nothing up, and is not confused with the static one.
    other = cluster.pod(f"taken-{NODE}", {"command": ["/bin/sh", "-c", "echo user; exec sleep 3600"]})
    cluster.running(other)
    cluster.manifest("taken", "static")
    wait_for("both to run", lambda: len(cluster.of(other)) == 4)
    assert cluster.kubectl("logs", other).stdout == "user\n" and cluster.kubectl("exec", other, "--", "cat", "/proc/1/cmdline").stdout
    assert MIRROR not in cluster.get("pod", other)["metadata"].get("annotations", {})
    cluster.kubectl("delete", "pod", other, "--wait=false")
    wait_for("the mirror in place of the user's pod", lambda: MIRROR in (cluster.get("pod", other) or {"metadata": {}})["metadata"].get("annotations", {}))
    assert wait_for("its log", lambda: cluster.kubectl("logs", other, check=False).stdout) == "static\n"
    cluster.remove("taken")
