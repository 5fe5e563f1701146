# SPDX-License-Identifier: Apache-2.0
"""Pods as containers: `tenet kubelet` on a runtime of its own, with objects written by kubectl."""
import base64
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

import pytest

import containerd as containerdlib
import lab as lablib
import netns
from lab import run, wait_for

IMAGE = containerdlib.IMAGE
NODE = "n1"
SH = "/bin/sh"


class Cluster:
    """A master and one node in the network namespace of a runtime, so that probes reach the pods."""

    def __init__(self, folder, runtime="runc"):
        self.dir = folder
        (folder / "containerd").mkdir()
        self.cd_dir = folder / f"tenet-k{os.getpid()}"
        self.cd_dir.mkdir()
        self.cd = containerdlib.start(self.cd_dir, runtime)
        self.port, self.master, self.kubelet = None, None, None
        self.start_master()
        (folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]}))
        self.kubectl("create", "namespace", "kube-node-lease")  # masters with HTTPS make it
        self.start_kubelet()

    def inside(self, argv):
        return self.cd.inside(argv)

    def master_config(self):
        return {"servingInfo": {"bindAddress": f"127.0.0.1:{self.port or 0}"},
                "networkConfig": {"foreignPodNetworkCIDRs": ["10.77.0.0/16"]},
                "storage": {"backend": "sqlite", "path": str(self.dir / "registry.db")}}

    def start_master(self):
        (self.dir / "master.yaml").write_text(json.dumps(self.master_config()))
        with open(self.dir / "master.log", "a") as log:
            self.master = subprocess.Popen(self.inside([lablib.TENET, "master", "--config", self.dir / "master.yaml"]), stderr=log,
                                           stdout=log, env=lablib.environment())

        def look():
            text = (self.dir / "master.log").read_text()
            assert self.master.poll() is None, text
            serving = re.findall(r"address=127\.0\.0\.1:(\d+)", text)
            return int(serving[0]) if serving and " ready" in text else None
        self.port = wait_for("the master", look)

    def start_kubelet(self, *args, env=None):
        with open(self.dir / "kubelet.log", "a") as log:
            self.kubelet = subprocess.Popen(self.inside([
                lablib.TENET, "kubelet", "--node-name", NODE, "--node-ip", "127.0.0.1", "--kubeconfig", self.dir / "kubeconfig",
                "--container-runtime-endpoint", self.cd.endpoint, "--root-dir", self.dir / "kubelet", "--pod-logs-dir",
                self.dir / "logs", "--cgroup-root", "/" + self.cd.cgroup, "--log-level", "info,pods=debug",
                "--server-address", "127.0.0.1:0", "--healthz-address", "none", *args]),
                stdout=log, stderr=log, env={**lablib.environment(), **(env or {})})

    def stop_kubelet(self, sig=signal.SIGTERM):
        self.kubelet.send_signal(sig)
        assert self.kubelet.wait(30) in (0, -sig), self.log()

    def log(self):
        return (self.dir / "kubelet.log").read_text(errors="replace")

    def kubectl(self, *args, **kw):
        env = {**lablib.environment(), "KUBECONFIG": str(self.dir / "kubeconfig"), "HOME": tempfile.gettempdir()}
        return run(self.inside(["kubectl", *args]), env=env, **kw)

    def get(self, kind, name):
        r = self.kubectl("get", kind, name, "-o", "json", check=False)
        if r.returncode:
            assert "not found" in r.stderr.lower(), r.stderr
            return None
        return json.loads(r.stdout)

    def pod(self, name, containers=None, annotations=None, **spec):
        """Creates a pod; 'containers' is a list, or the members of the only one."""
        if not isinstance(containers, list):
            containers = [{"name": "c", **(containers or {})}]
        for c in [*containers, *spec.get("initContainers", [])]:
            c.setdefault("image", IMAGE)
            c.setdefault("imagePullPolicy", "IfNotPresent")
        spec.setdefault("terminationGracePeriodSeconds", 1)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations or {}},
               "spec": {"nodeName": NODE, "containers": containers, "automountServiceAccountToken": False, **spec}}
        self.kubectl("create", "-f", "-", input=json.dumps(pod))
        return name

    def status(self, name):
        return (self.get("pod", name) or {}).get("status", {})

    def container(self, name, container="c"):
        s = self.status(name)
        return next((c for key in ("containerStatuses", "initContainerStatuses") for c in s.get(key, []) if c["name"] == container), None)

    def wait(self, name, condition, what="", deadline=lablib.DEADLINE):
        """The pod's status once 'condition(status)' is true."""
        seen = {}

        def look():
            seen["status"] = self.status(name)
            try:
                return seen["status"] if seen["status"] and condition(seen["status"]) else None
            except (KeyError, IndexError):  # a part that the kubelet has not written yet
                return None
        try:
            return wait_for(what or name, look, deadline)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{json.dumps(seen, indent=1)}\n{self.log()[-6000:]}") from None

    def running(self, name):
        return self.wait(name, lambda s: s.get("phase") == "Running" and ready(s), f"{name} to be ready")

    def finished(self, name, phase="Succeeded"):
        return self.wait(name, lambda s: s.get("phase") == phase, f"{name} to be {phase}")

    def exec(self, name, argv, container="c", check=True):
        """Runs a command in a container by the runtime."""
        ident = next(c for c in self.status(name)["containerStatuses"] if c["name"] == container)["containerID"].split("//")[1]
        return self.cd.exec(ident, argv, check)

    def output(self, name, container="c", attempt=0):
        uid = self.get("pod", name)["metadata"]["uid"]
        text = (self.dir / "logs" / f"default_{name}_{uid}" / container / f"{attempt}.log").read_text()
        return [line.split(" ", 3)[3] for line in text.splitlines()]

    def events(self, name):
        """The last message of each reason."""
        items = json.loads(self.kubectl("get", "events", "-o", "json").stdout)["items"]
        return {e["reason"]: e["message"] for e in sorted(items, key=lambda e: int(e["metadata"]["resourceVersion"]))
                if e["involvedObject"]["name"] == name}

    def delete(self, name, *args):
        self.kubectl("delete", "pod", name, "--wait=false", *args)
        wait_for(f"{name} to be gone", lambda: not self.get("pod", name))

    def containers(self):
        return self.cd.containers()

    def stop(self):
        for p in (self.kubelet, self.master):
            if p and p.poll() is None:
                p.terminate()
                p.wait(30)
        self.cd.stop()


def ready(status):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))


def lasting(status):
    """What a start of the runtime does not change of containers: CRI-O then gives another form of the image's ID."""
    return [{k: v for k, v in c.items() if k != "imageID"} for c in status["containerStatuses"]]


@pytest.fixture(scope="module")
def cluster():
    containerdlib.needed()
    with tempfile.TemporaryDirectory(prefix="tenet-kubelet-") as folder:
        c = Cluster(pathlib.Path(folder))
        try:
            wait_for("the node to be ready", lambda: ready((c.get("node", NODE) or {}).get("status", {})))
            yield c
        finally:
            with contextlib.suppress(Exception):
                c.kubectl("delete", "pods", "--all", "--wait=true", timeout=60)
            c.stop()


def test_a_pod_runs_and_its_deletion_ends_it(cluster):
    name = cluster.pod("runs", {"command": ["sleep", "3600"]})
    s = cluster.running(name)
    assert s["podIP"].startswith("10.77.") and s["hostIP"] == "127.0.0.1" and s["qosClass"] == "BestEffort"
    c = s["containerStatuses"][0]
    assert c["ready"] and c["started"] and c["restartCount"] == 0 and c["containerID"].startswith(f"{cluster.cd.NAME}://")
    wait_for("its Events", lambda: {"Pulled", "Created", "Started"} <= set(cluster.events(name)))
    cluster.delete(name)
    wait_for("its container to be gone", lambda: c["containerID"].split("//")[1] not in cluster.containers())


def test_exit_codes_under_the_three_policies(cluster):
    cluster.pod("never-ok", {"command": ["true"]}, restartPolicy="Never")
    cluster.pod("never-bad", {"command": [SH, "-c", "exit 3"]}, restartPolicy="Never")
    cluster.pod("onfailure", {"command": [SH, "-c", "n=$(cat /dev/termination-log); exit 0"]}, restartPolicy="OnFailure")
    cluster.pod("always", {"command": [SH, "-c", "exit 4"]})
    ok = cluster.finished("never-ok")
    assert ok["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed" and not ready(ok)
    uid = cluster.get("pod", "never-ok")["metadata"]["uid"]
    wait_for("the volumes of a pod that has ended to be gone", lambda: not (cluster.dir / "kubelet/pods" / uid).exists())
    assert cluster.output("never-ok") == []  # its log stays
    bad = cluster.finished("never-bad", "Failed")["containerStatuses"][0]["state"]["terminated"]
    assert (bad["exitCode"], bad["reason"]) == (3, "Error") and bad["startedAt"] <= bad["finishedAt"]
    cluster.finished("onfailure")
    s = cluster.wait("always", lambda s: s["containerStatuses"][0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff")
    c = s["containerStatuses"][0]
    steps = {1: "10s", 2: "20s", 3: "40s", 4: "1m20s", 5: "2m40s"}  # it may have been restarted while the others were looked at
    assert c["lastState"]["terminated"]["exitCode"] == 4 and f"back-off {steps[c['restartCount']]} " in c["state"]["waiting"]["message"]
    assert s["phase"] == "Running"
    for name in ("never-ok", "never-bad", "onfailure", "always"):
        cluster.delete(name)


def test_init_containers_run_in_order_and_once(cluster):
    name = cluster.pod("inits", {"command": ["sleep", "3600"]},
                       initContainers=[{"name": n, "command": [SH, "-c", f"echo {n}"]} for n in ("one", "two")])
    s = cluster.running(name)
    states = [c["state"]["terminated"] for c in s["initContainerStatuses"]]
    assert [t["exitCode"] for t in states] == [0, 0] and states[0]["finishedAt"] <= states[1]["startedAt"]
    assert all(c["ready"] and c["restartCount"] == 0 for c in s["initContainerStatuses"])
    assert cluster.output(name, "one") == ["one"] and cluster.output(name, "two") == ["two"]
    cluster.delete(name)


def test_a_failing_init_container_holds_the_others(cluster):
    cluster.pod("init-bad", initContainers=[{"name": "i", "command": ["false"]}])
    cluster.pod("init-never", initContainers=[{"name": "i", "command": ["false"]}], restartPolicy="Never")
    s = cluster.wait("init-bad", lambda s: "CrashLoopBackOff" in json.dumps(s.get("initContainerStatuses", "")))
    assert s["phase"] == "Pending" and s["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    s = cluster.finished("init-never", "Failed")
    assert "containerID" not in s["containerStatuses"][0]
    cluster.delete("init-bad")
    cluster.delete("init-never")


def test_a_sidecar_starts_before_and_ends_after(cluster):
    name = cluster.pod("sidecar", {"command": ["sleep", "2"]}, restartPolicy="Never", initContainers=[
        {"name": "side", "restartPolicy": "Always", "command": [SH, "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]}])
    s = cluster.wait(name, lambda s: s["phase"] == "Running" and ready(s))
    side = s["initContainerStatuses"][0]
    assert side["started"] and side["state"]["running"]["startedAt"] <= s["containerStatuses"][0]["state"]["running"]["startedAt"]
    s = cluster.finished(name)
    assert s["initContainerStatuses"][0]["state"]["terminated"]["finishedAt"] >= s["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    cluster.delete(name)


def test_active_deadline(cluster):
    name = cluster.pod("deadline", {"command": ["sleep", "3600"]}, activeDeadlineSeconds=2)
    s = cluster.finished(name, "Failed")
    assert s["reason"] == "DeadlineExceeded"
    assert "running" not in s["containerStatuses"][0]["state"]
    cluster.delete(name)


def test_command_and_args_replace_those_of_the_image(cluster):
    """The image has the command "sleep 3600" and no entry point."""
    cases = {"both": (["echo"], ["a", "b"], ["a b"]), "command": (["echo", "only"], None, ["only"]), "args": (None, ["echo", "args"], ["args"])}
    for key, (command, args, _) in cases.items():
        cluster.pod(f"cmd-{key}", {k: v for k, v in (("command", command), ("args", args)) if v}, restartPolicy="Never")
    cluster.pod("cmd-none")
    for key, (_, _, want) in cases.items():
        cluster.finished(f"cmd-{key}")
        assert cluster.output(f"cmd-{key}") == want
        cluster.delete(f"cmd-{key}")
    cluster.running("cmd-none")
    cluster.delete("cmd-none")


def test_environment_and_working_directory(cluster):
    name = cluster.pod("env", {"command": [SH, "-c", 'pwd; echo "$@"; env', "sh", "$(A)", "$(B)", "$$(A)", "$(NONE)"], "workingDir": "/tmp", "env": [
        {"name": "A", "value": "one"}, {"name": "B", "value": "$(A)-two"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}, restartPolicy="Never")
    s = cluster.finished(name)
    out = cluster.output(name)
    assert out[:2] == ["/tmp", "one one-two $(A) $(NONE)"]
    assert {f"NODE={NODE}", f"IP={s['podIP']}", "KUBERNETES_SERVICE_HOST=172.30.0.1"} <= set(out)
    cluster.delete(name)


def test_termination_message(cluster):
    cluster.pod("msg-file", {"command": [SH, "-c", "echo -n bye > /dev/termination-log; exit 1"]}, restartPolicy="Never")
    cluster.pod("msg-log", {"command": [SH, "-c", "echo from the log; exit 1"], "terminationMessagePolicy": "FallbackToLogsOnError"},
                restartPolicy="Never")
    cluster.pod("msg-long", {"command": [SH, "-c", "head -c 10000 /dev/zero | tr '\\0' x > /msg"], "terminationMessagePath": "/msg"},
                restartPolicy="Never")

    def message(name, phase="Failed"):
        return cluster.finished(name, phase)["containerStatuses"][0]["state"]["terminated"]["message"]
    assert message("msg-file") == "bye"
    assert message("msg-log").strip() == "from the log"
    long = cluster.wait("msg-long", lambda s: s["phase"] in ("Succeeded", "Failed"))["containerStatuses"][0]["state"]["terminated"]
    assert set(long["message"]) == {"x"} and len(long["message"]) == 4096, long
    for name in ("msg-file", "msg-log", "msg-long"):
        cluster.delete(name)


def test_an_unknown_command_is_told(cluster):
    name = cluster.pod("unknown", {"command": ["/no/such/program"]})
    # CRI-O begins the process when it makes the container, up to its program.
    reasons = "RunContainerError|StartError|CrashLoop|CreateContainerError"
    s = cluster.wait(name, lambda s: re.search(reasons, json.dumps(s.get("containerStatuses", ""))))
    assert "no such file" in json.dumps(s)
    cluster.delete(name)


def test_users_groups_and_read_only_root(cluster):
    name = cluster.pod("users", {"command": [SH, "-c", "id; touch /x || echo refused; grep -E 'NoNewPrivs|CapBnd|Seccomp:' /proc/self/status"],
                                 "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                                                     "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
                                                     "seccompProfile": {"type": "RuntimeDefault"}}},
                       securityContext={"runAsUser": 1000, "runAsGroup": 1001, "supplementalGroups": [2000], "fsGroup": 3000},
                       restartPolicy="Never")
    cluster.finished(name)
    out = "\n".join(cluster.output(name))
    assert "uid=1000" in out and "gid=1001" in out and "2000" in out and "3000" in out
    assert "refused" in out and re.search(r"NoNewPrivs:\s1", out) and re.search(r"CapBnd:\s0000000000000400", out)
    assert re.search(r"Seccomp:\s2", out)
    cluster.delete(name)


def test_root_is_refused_where_it_must_not_be(cluster):
    cluster.pod("root-image", securityContext={"runAsNonRoot": True})
    s = cluster.wait("root-image", lambda s: "CreateContainerConfigError" in json.dumps(s.get("containerStatuses", "")))
    assert "image will run as root" in s["containerStatuses"][0]["state"]["waiting"]["message"]
    cluster.delete("root-image")


def test_privileged_and_masked_paths(cluster):
    look = "grep CapEff /proc/self/status; cat /proc/sys/kernel/hostname > /dev/null; grep ' /proc/' /proc/self/mountinfo; echo end"
    cluster.pod("plain", {"command": [SH, "-c", look]}, restartPolicy="Never")
    cluster.pod("privileged", {"command": [SH, "-c", look], "securityContext": {"privileged": True}}, restartPolicy="Never")
    cluster.finished("plain")
    cluster.finished("privileged")
    plain, privileged = ("\n".join(cluster.output(n)) for n in ("plain", "privileged"))
    assert "/proc/timer_list" in plain and " /proc/bus ro" in plain and "/proc/timer_list" not in privileged

    def caps(text):
        return int(re.search(r"CapEff:\s(\w+)", text)[1], 16)
    assert caps(privileged) > caps(plain)
    cluster.delete("plain")
    cluster.delete("privileged")


def test_namespaces_of_the_host_and_of_the_pod(cluster):
    look = [SH, "-c", "ls -l /proc/self/ns; echo pid=$$"]
    pods = {"net": {"hostNetwork": True}, "pid": {"hostPID": True}, "ipc": {"hostIPC": True}}
    host = {k: os.readlink(f"/proc/{cluster.cd.proc.pid}/ns/{k}") for k in pods}
    for key, spec in pods.items():
        cluster.pod(f"ns-{key}", {"command": look}, restartPolicy="Never", **spec)
    for key in pods:
        s = cluster.finished(f"ns-{key}")
        out = "\n".join(cluster.output(f"ns-{key}"))
        for k in pods:
            assert (host[k] in out) == (k == key), (key, k, out)
        assert key != "net" or s["podIP"] == s["hostIP"]
        cluster.delete(f"ns-{key}")
    cluster.pod("ns-shared", [{"name": "a", "command": ["sleep", "3600"]}, {"name": "b", "command": [SH, "-c", "echo pid=$$; sleep 3600"]}],
                shareProcessNamespace=True)
    cluster.running("ns-shared")
    assert cluster.output("ns-shared", "b") != ["pid=1"]
    cluster.delete("ns-shared")


def test_sysctls_safe_and_not(cluster):
    cluster.pod("sysctl", {"command": ["cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start"]}, restartPolicy="Never",
                securityContext={"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "77"}]})
    cluster.finished("sysctl")
    assert cluster.output("sysctl") == ["77"]
    cluster.pod("sysctl-bad", securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})
    s = cluster.finished("sysctl-bad", "Failed")
    assert s["reason"] == "SysctlForbidden" and "kernel.msgmax" in s["message"]
    cluster.delete("sysctl")
    cluster.delete("sysctl-bad")


def test_images_that_are_not_there(cluster):
    cluster.pod("never-pull", {"image": "localhost/absent:1", "imagePullPolicy": "Never"})
    cluster.pod("bad-name", {"image": "localhost/UPPER:1"})
    cluster.pod("no-registry", {"image": "localhost:1/absent:1"})
    reasons = {"never-pull": "ErrImageNeverPull", "bad-name": "InvalidImageName", "no-registry": "ErrImagePull|ImagePullBackOff"}
    for name, reason in reasons.items():
        s = cluster.wait(name, lambda s: re.search(reason, json.dumps(s.get("containerStatuses", ""))), f"{name}: {reason}")
        assert s["phase"] == "Pending"
    cluster.wait("no-registry", lambda s: "ImagePullBackOff" in json.dumps(s["containerStatuses"]))
    for name in reasons:
        cluster.delete(name)


@contextlib.contextmanager
def registry(cluster, user, password):
    """A registry of one image, TEAM/APP:1, for those who have the password; its address in the cluster."""
    layer = containerdlib.layer(cluster.dir).read_bytes()
    config = json.dumps({"architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
                         "os": "linux", "config": {"Cmd": ["sleep", "3600"], "Env": ["PATH=/bin"]},
                         "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}).encode()
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": digest(config)},
        "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar", "size": len(layer), "digest": digest(layer)}]}).encode()
    files = {f"/v2/team/app/{kind}/{name}": data for kind, name, data in (
        ("manifests", "1", manifest), ("manifests", digest(manifest), manifest), ("blobs", digest(config), config),
        ("blobs", digest(layer), layer))}
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):  # noqa: N802
            allowed = self.headers["Authorization"] == wanted
            data = files.get(self.path) if allowed else b'{"errors": [{"code": "UNAUTHORIZED", "message": "no entry"}]}'
            self.send_response(200 if allowed and data else 404 if allowed else 401)
            if not allowed:
                self.send_header("WWW-Authenticate", 'Basic realm="test"')
            self.send_header("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data or b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = netns.tcp_listener(f"/proc/{cluster.cd.holder.pid}/ns/net", 0, "127.0.0.1")
    server.socket.setblocking(True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_pulls_with_a_secret(cluster):
    """Acceptance 79: the right secret pulls, a wrong one shows the registry's words, one that is mended is used at once."""
    with registry(cluster, "user", "right") as address:
        def secret(name, password, key):
            auth = base64.b64encode(f"user:{password}".encode()).decode()
            return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
                    "stringData": {".dockerconfigjson": json.dumps({"auths": {key: {"auth": auth}}})}}

        def pod(name):
            cluster.pod(name, {"image": f"{address}/team/app:1", "imagePullPolicy": "Always"}, imagePullSecrets=[{"name": name}])
        cluster.kubectl("apply", "-f", "-", input=json.dumps(secret("right", "right", f"https://{address}/v2/team")))
        cluster.kubectl("apply", "-f", "-", input=json.dumps(secret("wrong", "wrong", address)))
        pod("wrong")
        s = cluster.wait("wrong", lambda s: "ImagePullBackOff" in json.dumps(s))
        assert re.search("401|unauthorized", s["containerStatuses"][0]["state"]["waiting"]["message"]), s
        pod("right")
        cluster.running("right")
        cluster.kubectl("apply", "-f", "-", input=json.dumps(secret("wrong", "right", address)))
        cluster.running("wrong")
        for name in ("right", "wrong"):
            cluster.delete(name)


def test_readiness_follows_its_probe(cluster):
    name = cluster.pod("readiness", {"command": [SH, "-c", "sleep 3600"], "readinessProbe": {
        "exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 1}})
    s = cluster.wait(name, lambda s: s["containerStatuses"][0]["state"].get("running"))
    assert not s["containerStatuses"][0]["ready"] and not ready(s)
    wait_for("an Event", lambda: "Unhealthy" in cluster.events(name))
    cluster.exec(name, ["touch", "/tmp/ok"])
    cluster.running(name)
    cluster.exec(name, ["rm", "/tmp/ok"])
    cluster.wait(name, lambda s: not ready(s))
    assert cluster.container(name)["restartCount"] == 0
    cluster.delete(name)


@pytest.mark.parametrize("how", ["exec", "httpGet"])
def test_liveness_restarts(cluster, how):
    """test_pod_cases.py has the other ways."""
    probe = {"exec": {"command": ["/bin/busybox", "test", "-e", "/etc/known"]}, "httpGet": {"path": "/known", "port": "web"}}[how]
    name = cluster.pod(f"live-{how.lower()}", {
        "command": ["httpd", "-f", "-p", "80", "-h", "/etc"], "ports": [{"name": "web", "containerPort": 80}],
        "livenessProbe": {how: probe, "periodSeconds": 1, "failureThreshold": 2}})
    cluster.running(name)
    cluster.exec(name, ["rm", "/etc/known"])
    s = cluster.wait(name, lambda s: s["containerStatuses"][0]["restartCount"] == 1)
    wait_for("an Event", lambda: "liveness probe" in cluster.events(name).get("Killing", ""))
    assert s["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] in (137, 143)
    cluster.delete(name)


def test_a_startup_probe_holds_the_others(cluster):
    name = cluster.pod("startup", {"command": [SH, "-c", "sleep 3600"], "startupProbe": {
        "exec": {"command": ["cat", "/tmp/up"]}, "periodSeconds": 1, "failureThreshold": 100}, "livenessProbe": {
        "exec": {"command": ["cat", "/tmp/up"]}, "periodSeconds": 1, "failureThreshold": 1}})
    s = cluster.wait(name, lambda s: s["containerStatuses"][0]["state"].get("running"))
    assert not s["containerStatuses"][0]["started"]
    wait_for("an Event", lambda: "Startup probe" in cluster.events(name).get("Unhealthy", ""))
    cluster.exec(name, ["touch", "/tmp/up"])
    s = cluster.running(name)
    assert s["containerStatuses"][0]["started"] and s["containerStatuses"][0]["restartCount"] == 0
    cluster.delete(name)


def test_hooks(cluster):
    cluster.pod("hooks", {"command": [SH, "-c", "trap 'echo TERM; exit 0' TERM; while :; do sleep 0.1; done"], "lifecycle": {
        "postStart": {"exec": {"command": [SH, "-c", "echo post > /proc/1/fd/1"]}},
        "preStop": {"exec": {"command": [SH, "-c", "echo pre > /proc/1/fd/1"]}}}}, terminationGracePeriodSeconds=20)
    cluster.pod("hook-bad", {"lifecycle": {"postStart": {"exec": {"command": ["false"]}}}})
    cluster.running("hooks")
    wait_for("postStart", lambda: "post" in cluster.output("hooks"))
    uid = cluster.get("pod", "hooks")["metadata"]["uid"]
    log = cluster.dir / "logs" / f"default_hooks_{uid}" / "c" / "0.log"
    with open(log) as f:
        cluster.delete("hooks")
        words = [line.split()[-1] for line in f]
    assert words == ["post", "pre", "TERM"]
    cluster.wait("hook-bad", lambda s: s["containerStatuses"][0]["restartCount"] >= 1)
    wait_for("an Event", lambda: "FailedPostStartHook" in cluster.events("hook-bad"))
    cluster.delete("hook-bad")


def test_the_grace_of_a_deletion(cluster):
    """TERM, then KILL at the end of the grace, and the object goes after the process; a shorter second grace wins."""
    deaf = {"command": [SH, "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"]}
    cluster.pod("grace", deaf, terminationGracePeriodSeconds=4)
    cluster.pod("shorter", deaf, terminationGracePeriodSeconds=600)
    cluster.pod("forced", deaf, terminationGracePeriodSeconds=600)
    for name in ("grace", "shorter", "forced"):
        cluster.running(name)
        wait_for(f"{name}'s trap", lambda: cluster.output(name))
    ids = {n: cluster.container(n)["containerID"].split("//")[1] for n in ("grace", "shorter", "forced")}
    uid = cluster.get("pod", "forced")["metadata"]["uid"]
    begin = time.monotonic()
    cluster.kubectl("delete", "pod", "grace", "--wait=false")
    cluster.kubectl("delete", "pod", "shorter", "--wait=false")
    wait_for("the shorter grace to be taken", lambda: cluster.get("pod", "shorter")["metadata"].get("deletionTimestamp"))
    cluster.kubectl("delete", "pod", "shorter", "--grace-period=2", "--wait=false")
    wait_for("the pod to be gone", lambda: not cluster.get("pod", "grace"))
    assert time.monotonic() - begin >= 4, "the grace"
    assert ids["grace"] not in cluster.containers(), "the object goes after the process"
    wait_for("the pod with a shorter grace to be gone", lambda: not cluster.get("pod", "shorter"))
    cluster.kubectl("delete", "pod", "forced", "--grace-period=0", "--force", "--wait=false")
    assert not cluster.get("pod", "forced")
    again = cluster.pod("forced", {"command": ["sleep", "3600"]})
    assert cluster.get("pod", again)["metadata"]["uid"] != uid
    cluster.running(again)
    assert ids["forced"] not in cluster.containers(), "the next pod of the name waits for the end of the former"
    cluster.delete(again)


def test_a_hanging_pre_stop_hook_is_cut_by_the_grace(cluster):
    hook = {"exec": {"command": ["sleep", "600"]}}  # a hook "sleep" longer than the grace is not valid
    name = cluster.pod("hang", {"command": ["sleep", "3600"], "lifecycle": {"preStop": hook}}, terminationGracePeriodSeconds=3)
    cluster.running(name)
    begin = time.monotonic()
    cluster.delete(name)
    assert 3 <= time.monotonic() - begin < 30


def test_memory_over_the_limit_is_told(cluster):
    name = cluster.pod("oom", {"command": [SH, "-c", "dd if=/dev/zero of=/dev/null bs=200M count=1"],
                               "resources": {"limits": {"memory": "32Mi"}}}, restartPolicy="Never")
    ended = cluster.finished(name, "Failed")["containerStatuses"][0]["state"]["terminated"]
    assert ended["reason"] == "OOMKilled" and ended["exitCode"] == 137, ended
    cluster.delete(name)


def test_control_groups_and_classes_of_service(cluster):
    root = pathlib.Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        pytest.skip("this machine has cgroup v2; tests/unit/pod/test_tables.c has its values")
    limits = {"cpu": "500m", "memory": "64Mi"}
    cluster.pod("guaranteed", {"command": ["sleep", "3600"], "resources": {"limits": limits}})
    cluster.pod("burstable", {"command": ["sleep", "3600"], "resources": {"requests": {"cpu": "250m"}}})
    for name, qos, shares in (("guaranteed", "Guaranteed", "512"), ("burstable", "Burstable", "256")):
        s = cluster.running(name)
        uid = cluster.get("pod", name)["metadata"]["uid"]
        group = f"{cluster.cd.cgroup}/kubepods/{'' if qos == 'Guaranteed' else 'burstable/'}pod{uid}"
        assert s["qosClass"] == qos and (root / "cpu" / group / "cpu.shares").read_text().strip() == shares
        inner = cluster.cd.GROUP.format(s["containerStatuses"][0]["containerID"].split("//")[1])
        assert (root / "cpu" / group / inner / "cpu.shares").read_text().strip() == shares
        if qos == "Guaranteed":
            assert (root / "memory" / group / "memory.limit_in_bytes").read_text().strip() == str(64 << 20)
            assert (root / "cpu" / group / inner / "cpu.cfs_quota_us").read_text().strip() == "50000"
    top = f"{cluster.cd.cgroup}/kubepods"
    assert (root / "cpu" / top / "cpu.shares").read_text().strip() == str(1024 * os.cpu_count())
    assert int((root / "cpu" / top / "burstable/cpu.shares").read_text()) >= 256
    assert (root / "cpu" / top / "besteffort/cpu.shares").read_text().strip() == "2"
    memory = re.search(r"MemTotal: +(\d+) kB", pathlib.Path("/proc/meminfo").read_text())[1]
    assert int((root / "memory" / top / "memory.limit_in_bytes").read_text()) == 1024 * int(memory)
    cluster.delete("guaranteed")
    cluster.delete("burstable")


def test_volumes_reach_the_containers(cluster):
    cluster.kubectl("create", "configmap", "settings", "--from-literal=key=value")
    name = cluster.pod("volumes", [
        {"name": "writes", "command": [SH, "-c", "echo shared > /data/x; echo `cat /etc/settings/key`; sleep 3600"], "volumeMounts": [
            {"name": "data", "mountPath": "/data"}, {"name": "settings", "mountPath": "/etc/settings"}]},
        {"name": "reads", "command": [SH, "-c", "until cat /data/x 2>/dev/null; do sleep 0.1; done; echo $KEY; cat /etc/hosts; sleep 3600"],
         "volumeMounts": [{"name": "data", "mountPath": "/data"}],
         "env": [{"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "key"}}}]}],
        volumes=[{"name": "data", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}])
    s = cluster.running(name)
    wait_for("the shared file", lambda: len(cluster.output(name, "reads")) > 3)
    assert cluster.output(name, "writes") == ["value"]
    assert cluster.output(name, "reads")[:2] == ["shared", "value"]
    assert any(s["podIP"] in line and name in line for line in cluster.output(name, "reads"))
    cluster.delete(name)
    cluster.pod("missing", {"command": ["sleep", "3600"], "envFrom": [{"configMapRef": {"name": "not-yet"}}]})
    s = cluster.wait("missing", lambda s: "CreateContainerConfigError" in json.dumps(s.get("containerStatuses", "")))
    assert 'configmap "not-yet" not found' in s["containerStatuses"][0]["state"]["waiting"]["message"]
    cluster.kubectl("create", "configmap", "not-yet", "--from-literal=a=b")
    cluster.running("missing")
    cluster.delete("missing")


def test_readiness_gates(cluster):
    name = cluster.pod("gates", {"command": ["sleep", "3600"]}, readinessGates=[{"conditionType": "example.com/go"}])
    s = cluster.wait(name, lambda s: any(c["type"] == "ContainersReady" and c["status"] == "True" for c in s["conditions"]))
    assert not ready(s)
    cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=strategic", "-p", json.dumps(
        {"status": {"conditions": [{"type": "example.com/go", "status": "True"}]}}))
    cluster.running(name)
    cluster.delete(name)


def test_a_new_image_restarts_only_its_container(cluster):
    cluster.cd.tag(IMAGE, "localhost/other:1")
    name = cluster.pod("images", [{"name": "a", "command": ["sleep", "3600"]}, {"name": "b", "command": ["sleep", "3600"]}])
    before = cluster.running(name)
    cluster.kubectl("set", "image", f"pod/{name}", "a=localhost/other:1")
    s = cluster.wait(name, lambda s: s["containerStatuses"][0]["restartCount"] == 1 and ready(s))
    assert s["containerStatuses"][0]["image"] == "localhost/other:1"
    assert s["containerStatuses"][1] == before["containerStatuses"][1]
    cluster.delete(name)


def test_the_agent_is_killed_and_started(cluster):
    """Nothing is restarted, readiness stays, an exit in the gap is seen with its true time."""
    cluster.pod("stays", {"command": ["sleep", "3600"], "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}})
    cluster.pod("ends", {"command": [SH, "-c", "while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 7"]}, restartPolicy="Never")
    cluster.pod("goes", {"command": ["sleep", "3600"]})
    before = cluster.running("stays")
    cluster.running("goes")
    cluster.wait("ends", lambda s: s["phase"] == "Running")
    cluster.stop_kubelet(signal.SIGKILL)
    try:
        cluster.exec("ends", ["touch", "/tmp/go"])
        cluster.kubectl("delete", "pod", "goes", "--wait=false")
    finally:
        cluster.start_kubelet()
    ended = cluster.finished("ends", "Failed")["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 7 and ended["finishedAt"]
    wait_for("the deleted pod to be gone", lambda: not cluster.get("pod", "goes"))
    after = cluster.running("stays")
    assert after["containerStatuses"] == before["containerStatuses"] and after["podIP"] == before["podIP"]
    assert [c["lastTransitionTime"] for c in after["conditions"]] == [c["lastTransitionTime"] for c in before["conditions"]]
    cluster.delete("stays")
    cluster.delete("ends")


def test_the_runtime_is_killed_and_started(cluster):
    cluster.pod("survives", {"command": ["sleep", "3600"]})
    before = cluster.running("survives")
    cluster.cd.kill()
    wait_for("the node to be not ready", lambda: not ready(cluster.get("node", NODE)["status"]))
    cluster.cd.start()
    wait_for("the node to be ready", lambda: ready(cluster.get("node", NODE)["status"]))
    cluster.pod("after", {"command": ["sleep", "3600"]})
    cluster.running("after")
    assert lasting(cluster.running("survives")) == lasting(before)
    cluster.delete("survives")
    cluster.delete("after")


def test_a_lost_sandbox_is_made_anew(cluster):
    name = cluster.pod("sandbox", {"command": ["sleep", "3600"]}, initContainers=[{"name": "i", "command": ["true"]}])
    cluster.running(name)
    cluster.cd.slay(cluster.cd.sandbox(name))
    s = cluster.wait(name, lambda s: s["containerStatuses"][0]["restartCount"] == 1 and ready(s))
    assert s["initContainerStatuses"][0]["restartCount"] == 1, "init containers run again"
    cluster.delete(name)


def test_the_node(cluster):
    s = cluster.get("node", NODE)["status"]
    assert s["nodeInfo"]["containerRuntimeVersion"].startswith(f"{cluster.cd.NAME}://")
    assert {"cpu", "memory", "pods", "ephemeral-storage"} <= set(s["allocatable"]) and s["capacity"]["pods"] == "110"
    assert {c["type"]: c["status"] for c in s["conditions"]}.items() >= {
        "Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}.items()
    assert {a["type"]: a["address"] for a in s["addresses"]} == {"InternalIP": "127.0.0.1", "Hostname": NODE}
    lease = json.loads(cluster.kubectl("get", "lease", NODE, "-n", "kube-node-lease", "-o", "json").stdout)
    assert lease["spec"]["holderIdentity"] == NODE
    wait_for("a renewal", lambda: json.loads(cluster.kubectl(
        "get", "lease", NODE, "-n", "kube-node-lease", "-o", "json").stdout)["spec"]["renewTime"] > lease["spec"]["renewTime"])
    assert IMAGE in json.dumps(wait_for("images", lambda: cluster.get("node", NODE)["status"].get("images")))


def test_nothing_is_left_of_pods(cluster):
    names = [cluster.pod(f"left-{i}", {"command": ["sleep", "3600"]}) for i in range(3)]
    uids = [cluster.running(n) and cluster.get("pod", n)["metadata"]["uid"] for n in names]
    for n in names:
        cluster.delete(n)

    def left():
        cgroups = [p for uid in uids for p in pathlib.Path("/sys/fs/cgroup").glob(f"*/{cluster.cd.cgroup}/kubepods/**/*{uid}*")]
        return cgroups + [p for uid in uids for p in cluster.dir.rglob(f"*{uid}*")]
    wait_for("directories and control groups to be gone", lambda: not left())
