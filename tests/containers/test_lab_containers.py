# SPDX-License-Identifier: Apache-2.0
"""A lab whose nodes run containers: images without a registry, pods by kubectl, agents that restart, and nothing left."""
import json
import os
import pathlib
import secrets
import subprocess

import pytest

import containerd as ctd
from lab import TENET, Lab, environment, run, wait_for


@pytest.fixture(scope="module")
def own(make_lab):
    ctd.needed()
    lab = make_lab("lc", nodes=2, containers=True)
    lab.project("red")
    yield lab
    lab.down(check=False)


class Pods:
    """Pods by CRI on one node of the lab."""

    def __init__(self, lab, node):
        self.lab, self.node = lab, node
        self.cri = ctd.Driver(lab.node(node)["runtimeEndpoint"])
        self.cri.event(lambda e: e["event"] == "resync")

    def run(self, name, image="localhost/busybox:1", command=(), **extra):
        """(sandbox, container, address)"""
        uid = secrets.token_hex(8)
        s = {"name": name, "uid": uid, "namespace": "red", "hostname": name, "annotations": {"by-cri": ""},
             "logs": str(self.lab.folder(self.node) / "logs" / uid), "cgroupParent": f"/tenet-{self.lab.name}/{self.node}/{uid}"}
        pathlib.Path(s["logs"]).mkdir(parents=True)
        sandbox = self.cri("run_sandbox", sandbox=s)["result"]
        container = self.cri("create_container", of=sandbox, sandbox=s, container={
            "name": "c", "image": image, "command": list(command), "logPath": "c.log", **extra})["result"]
        self.cri("start_container", of=container)
        return sandbox, container, self.cri("get_sandbox", of=sandbox)["result"][0]["ip"]

    def remove(self, sandbox):
        self.cri("stop_sandbox", of=sandbox)
        self.cri("remove_sandbox", of=sandbox)

    def output(self, container, *command):
        r = self.cri("exec_sync", of=container, cmd=list(command), timeout=20)
        assert r["exitCode"] == 0, r
        return r["out"]


def create(lab, name, node, command, image="localhost/busybox:1", project="red", **spec):
    lab.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": project},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 1, **spec, "containers": [
            {"name": "c", "image": image, "imagePullPolicy": "IfNotPresent", "command": command}]}}))


def status(lab, name, project="red"):
    found = [p for p in lab.objects("pods", "-n", project) if p["metadata"]["name"] == name]
    return found[0]["status"] if found else None


def running(lab, name):
    """The pod's status once it runs and is ready."""
    def look():
        s = status(lab, name)
        return s if s and s.get("phase") == "Running" and any(
            c["type"] == "Ready" and c["status"] == "True" for c in s["conditions"]) else None
    return wait_for(f"{name} to run", look)


@pytest.fixture
def pods(own):
    made = {}

    def on(node):
        made.setdefault(node, Pods(own, node))
        return made[node]
    yield on
    for p in made.values():
        for s in p.cri("list_sandboxes")["result"]:
            if "by-cri" in s["annotations"]:
                p.remove(s["id"])
        p.cri.close()


def test_pods_of_the_api_run(own):
    """By kubectl, on two nodes: addresses of their subnets, logs on the node, an exit, and deletion."""
    create(own, "server", "node1", ["/bin/httpd", "-f", "-p", "80", "-h", "/www"])
    server = running(own, "server")
    assert server["podIP"].startswith("10.128.") and server["hostIP"] == own.node("node1")["hostIP"]
    create(own, "client", "node2", ["/bin/sh", "-c", f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc {server['podIP']} 80 | grep 'it works'"],
           restartPolicy="OnFailure")
    assert wait_for("the client to end", lambda: (status(own, "client") or {}).get("phase") == "Succeeded")
    own.kubectl("delete", "pod", "-n", "red", "server", "client", "--wait=false")
    wait_for("the pods to go", lambda: not status(own, "server") and not status(own, "client"))


def test_a_kubelet_that_is_killed_finds_its_pods(own):
    create(own, "kept", "node1", ["/bin/sleep", "1000"])
    before = running(own, "kept")
    pid = own.node("node1")["kubeletPid"]
    own.cmd("kubelet", "kill", "node1")
    assert own.node("node1")["kubeletPid"] == 0
    own.cmd("kubelet", "start", "node1")
    assert own.node("node1")["kubeletPid"] not in (0, pid)
    own.kubectl("delete", "pod", "-n", "red", "kept", "--wait=false")
    wait_for("the pod to go", lambda: not status(own, "kept"))
    assert before["containerStatuses"][0]["restartCount"] == 0


def test_input_ends_with_the_first_that_attaches(own):
    """`kubectl run -i` asks for stdin and stdinOnce: the container's input ends when kubectl's does."""
    run(["kubectl", "-n", "red", "run", "once", "-i", "--restart=Never", "--image=localhost/busybox:1", "--", "sh", "-c",
         "cat; echo ended"], input="hello\n", env=own.kubectl_environment())
    wait_for("its end", lambda: status(own, "once")["phase"] == "Succeeded")
    assert own.kubectl("-n", "red", "logs", "once").stdout == "hello\nended\n"
    own.kubectl("-n", "red", "delete", "pod", "once")


def test_nodes_come_and_go_with_their_pods(own):
    own.cmd("node", "add", "more")
    create(own, "guest", "more", ["/bin/sleep", "1000"])
    running(own, "guest")
    assert ctd.left(own, "more")
    own.cmd("node", "delete", "more")
    assert not status(own, "guest")
    assert ctd.left(own, "more") == []


def test_pods_without_containers_are_for_other_labs(own):
    r = own.cmd("pod", "add", "red/x", check=False)
    assert r.returncode == 1 and "--no-containers" in r.stderr and "kubectl run" in r.stderr
    r = own.cmd("exec", "red/x", "--", "true", check=False)
    assert r.returncode == 1 and "kubectl exec -n red x" in r.stderr


@pytest.fixture(scope="module")
def secure(make_lab):
    """A lab with certificates, in which the API server reaches its nodes."""
    ctd.needed()
    lab = make_lab("lt", nodes=1, containers=True, tls="")
    lab.project("red")
    yield lab
    lab.down(check=False)


def test_nodes_with_certificates_run_pods(secure):
    create(secure, "secure", "node1", ["/bin/sleep", "1000"])
    assert running(secure, "secure")["podIP"]
    a_token_is_its_pods(secure, "secure")


def node_api(lab, path):
    return lab.kubectl("get", "--raw", f"/api/v1/nodes/node1/proxy{path}").stdout


@pytest.fixture(scope="module")
def used(secure):
    """A pod with a busy container, an idle one with much memory, and one with probes that succeed and fail."""
    def probe(*command):
        return {"exec": {"command": ["/bin/sh", "-c", *command]}, "periodSeconds": 1, "failureThreshold": 100000}
    common = {"image": "localhost/busybox:1", "imagePullPolicy": "IfNotPresent"}
    secure.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "used", "namespace": "red", "labels": {"app": "used"}},
        "spec": {"nodeName": "node1", "terminationGracePeriodSeconds": 1, "containers": [
            {"name": "busy", "command": ["/bin/sh", "-c", "while :; do :; done"], "resources": {"limits": {"cpu": "500m"}}, **common},
            {"name": "idle", "command": ["/bin/sh", "-c", "dd if=/dev/zero of=/dev/shm/x bs=1M count=30; echo filled; sleep 3600"], **common},
            {"name": "probed", "command": ["/bin/sleep", "3600"], "readinessProbe": probe("true"), "livenessProbe": probe("exit 1"),
             **common}]}}))
    running(secure, "used")
    wait_for("the memory to be used", lambda: "filled" in secure.kubectl("logs", "-n", "red", "used", "-c", "idle").stdout)
    yield secure
    secure.kubectl("delete", "pod", "-n", "red", "used", "--wait=false")
    wait_for("the pod to go", lambda: not status(secure, "used"))


def summary(lab, query=""):
    """The node, the pod "used", and its containers by name, in /stats/summary."""
    s = json.loads(node_api(lab, f"/stats/summary{query}"))
    pod = next(p for p in s["pods"] if p["podRef"]["name"] == "used")
    return s["node"], pod, {c["name"]: c for c in pod["containers"]}


def test_summary_has_what_control_groups_say(used):
    def measured():
        node, pod, containers = summary(used)
        return all("usageNanoCores" in x["cpu"] for x in (node, pod, *containers.values())) and (node, pod, containers)
    node, pod, containers = wait_for("two readings", measured)
    assert containers["busy"]["cpu"]["usageNanoCores"] > 3 * containers["idle"]["cpu"]["usageNanoCores"]
    assert pod["cpu"]["usageCoreNanoSeconds"] >= containers["busy"]["cpu"]["usageCoreNanoSeconds"] > 0
    assert containers["busy"]["memory"]["workingSetBytes"] < 20e6 < 30e6 <= containers["idle"]["memory"]["workingSetBytes"]
    assert pod["memory"]["workingSetBytes"] >= 30e6 and pod["process_stats"]["process_count"] >= 4
    assert node["cpu"]["usageCoreNanoSeconds"] > pod["cpu"]["usageCoreNanoSeconds"]
    assert node["memory"]["workingSetBytes"] > 30e6 and node["fs"]["capacityBytes"] > node["fs"]["usedBytes"] > 0
    assert containers["idle"]["logs"]["usedBytes"] > 0
    received = pod["network"]["rxBytes"]
    assert pod["network"]["name"] == "eth0" and [i["name"] for i in pod["network"]["interfaces"]] == ["eth0"]
    used.kubectl("exec", "-n", "red", "used", "-c", "idle", "--", "/bin/sh", "-c",
                 f"echo x | nc -w 1 {used.node('node1')['hostIP']} 10250 || true")
    wait_for("traffic to be counted", lambda: summary(used)[1]["network"]["rxBytes"] > received)
    node, pod, _ = summary(used, "?only_cpu_and_memory=true")
    assert "fs" not in node and "network" not in pod


def test_metrics_of_containers_pods_and_probes(used):
    resource, cadvisor = node_api(used, "/metrics/resource"), node_api(used, "/metrics/cadvisor")

    def value(text, name, *labels):
        lines = [x for x in text.splitlines() if x.startswith(name + "{") and all(label in x for label in ('pod="used"', *labels))]
        assert len(lines) == 1, (name, labels, lines)
        return float(lines[0].split()[-2])
    for text, more in ((resource, ()), (cadvisor, ('image="localhost/busybox:1"', 'namespace="red"'))):
        busy, idle = (value(text, "container_cpu_usage_seconds_total", f'container="{c}"', *more) for c in ("busy", "idle"))
        assert busy > 0 and idle > 0
        assert value(text, "container_memory_working_set_bytes", 'container="idle"', *more) >= 30e6
    assert value(resource, "pod_memory_working_set_bytes") >= 30e6 and "resource_scrape_error 0" in resource
    assert "node_cpu_usage_seconds_total " in resource
    assert value(cadvisor, "container_network_receive_bytes_total", 'interface="eth0"') > 0

    def counted():
        lines = [x for x in node_api(used, "/metrics/probes").splitlines() if 'pod="used"' in x]
        found = {(k, r) for x in lines for k in ("Readiness", "Liveness") for r in ("successful", "failed", "unknown")
                 if f'probe_type="{k}",result="{r}"' in x and int(x.split()[-1]) > 1}
        return found >= {("Readiness", "successful"), ("Liveness", "failed")} and ("Liveness", "successful") not in found
    wait_for("probes with their results", counted)


def rows(text):
    head, *lines = [x.split() for x in text.splitlines()]
    return [dict(zip(head, line)) for line in lines]


def milli(text):
    assert text.endswith("m"), text
    return int(text[:-1])


def test_kubectl_top(used):
    """The columns of kubectl, the Table, the words of what has no metrics, and selectors."""
    def top(*args):
        return rows(used.kubectl("top", *args).stdout)
    by_container = {r["NAME"]: r for r in top("pods", "-n", "red", "--containers", "-l", "app=used")}
    assert set(by_container) == {"busy", "idle", "probed"}
    assert milli(by_container["busy"]["CPU(cores)"]) > milli(by_container["idle"]["CPU(cores)"])
    assert int(by_container["idle"]["MEMORY(bytes)"].removesuffix("Mi")) >= 28
    node, = top("nodes")
    percent = next(node[k] for k in node if k.startswith("MEMORY") and "%" in k)
    assert node["NAME"] == "node1" and milli(node["CPU(cores)"]) > 0 and percent.endswith("%")
    assert [r["NAME"] for r in top("pods", "-n", "red")] == ["used"]
    table = rows(used.kubectl("get", "pods.metrics.k8s.io", "-n", "red").stdout)
    assert list(table[0]) == ["NAME", "CPU", "MEMORY", "WINDOW"] and table[0]["NAME"] == "used"
    metrics = used.object("pods.metrics.k8s.io", "used", "-n", "red")
    assert metrics["kind"] == "PodMetrics" and metrics["metadata"]["labels"] == {"app": "used"} and metrics["window"].endswith("s")
    assert used.objects("pods.metrics.k8s.io", "-n", "red", "-l", "app=other") == []
    assert [o["metadata"]["name"] for o in used.objects("pods.metrics.k8s.io", "-A", "--field-selector=metadata.name=used")] == ["used"]
    for args, words in ((("pods.metrics.k8s.io", "none", "-n", "red"), 'podmetrics.metrics.k8s.io "red/none" not found'),
                        (("nodes.metrics.k8s.io", "none"), 'nodemetrics.metrics.k8s.io "none" not found')):
        assert words in used.kubectl("get", *args, check=False).stderr
    assert "MethodNotAllowed" in used.kubectl("delete", "pods.metrics.k8s.io", "used", "-n", "red", check=False).stderr


def test_a_view_of_a_project_sees_its_metrics(used):
    used.kubectl("create", "rolebinding", "viewer", "-n", "red", "--clusterrole=view", "--user=viewer")

    def may(user, *args):
        return used.kubectl("get", "--as", user, *args, check=False).returncode == 0
    wait_for("the rights", lambda: may("viewer", "pods.metrics.k8s.io", "-n", "red"))
    assert not may("viewer", "pods.metrics.k8s.io", "-A") and not may("viewer", "nodes.metrics.k8s.io")
    assert not may("nobody", "pods.metrics.k8s.io", "-n", "red")


def a_token_is_its_pods(lab, name):
    """The token that a container finds says who it is, and is refused once the pod is gone."""
    pod = next(p for p in lab.objects("pods", "-n", "red") if p["metadata"]["name"] == name)
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    read = lab.kubectl("-n", "red", "exec", name, "--", "sh", "-c", f"cat {folder}/namespace; echo; cat {folder}/token").stdout.split()
    assert read[0] == "red"

    def review():
        return json.loads(lab.kubectl("create", "--raw", "/apis/authentication.k8s.io/v1/tokenreviews", "-f", "-", input=json.dumps(
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": read[1]}})).stdout)["status"]
    user = review()["user"]
    assert user["username"] == "system:serviceaccount:red:default"
    assert user["extra"]["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]
    lab.kubectl("-n", "red", "delete", "pod", name)
    assert not review().get("authenticated")


def test_nodes_have_a_runtime_and_images(own, pods):
    for node in ("node1", "node2"):
        p = pods(node)
        assert p.cri("status")["runtime"] and own.node(node)["containerdPid"] > 0
        images = {tag: i for i in p.cri("list_images")["result"] for tag in i["tags"]}
        assert set(images) == {"localhost/pause:1", "localhost/busybox:1", "localhost/busybox-user:1", "localhost/busybox-name:1",
                               "localhost/tenet-deployer:1"}
        assert images["localhost/pause:1"]["size"] < 1 << 20
        assert images["localhost/tenet-deployer:1"]["size"] < 16 << 20
        assert images["localhost/busybox-user:1"]["user"] == 1000 and images["localhost/busybox-name:1"]["username"] == "user"


def test_pods_of_two_nodes_reach_each_other(own, pods):
    a, b = pods("node1"), pods("node2")
    _, _, server = a.run("server", command=["/bin/httpd", "-f", "-p", "80", "-h", "/www"])
    _, client, address = b.run("client", command=["/bin/sleep", "1000"])
    assert server.startswith("10.128.") and address.startswith("10.128.") and server != address
    assert wait_for("the page", lambda: "it works" in page(b, client, server))


def page(pods, container, address):
    return pods.cri("exec_sync", of=container, cmd=["/bin/sh", "-c", f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc {address} 80"], timeout=20)["out"]


def test_images_say_who_runs_and_what_stops(own, pods):
    p = pods("node1")
    _, user, _ = p.run("user", image="localhost/busybox-user:1", command=["/bin/sh", "-c", "trap 'exit 9' INT; while true; do sleep 0.1; done"])
    assert p.output(user, "/bin/id", "-u").strip() == "1000"
    wait_for("the trap", lambda: "trap" in p.output(user, "/bin/ps"))
    p.cri("stop_container", of=user, grace=20)
    assert p.cri("get_container", of=user)["result"][0]["exitCode"] == 9
    _, named, _ = p.run("named", image="localhost/busybox-name:1", command=["/bin/sleep", "100"])
    assert p.output(named, "/bin/id", "-un").strip() == "user"


def test_containers_outlive_their_containerd(own, pods):
    p = pods("node1")
    _, c, address = p.run("stays", command=["/bin/httpd", "-f", "-p", "80", "-h", "/www"])
    before = own.node("node1")["containerdPid"]
    own.cmd("containerd", "kill", "node1")
    p.cri.event(lambda e: e["event"] == "connection" and e["lost"])
    assert own.node("node1")["containerdPid"] == 0
    other = pods("node2")
    _, client, _ = other.run("client", command=["/bin/sleep", "1000"])
    assert wait_for("the page", lambda: "it works" in page(other, client, address))
    own.cmd("containerd", "start", "node1")
    p.cri.event(lambda e: e["event"] == "connection" and not e["lost"])
    assert own.node("node1")["containerdPid"] not in (0, before)
    assert p.cri("get_container", of=c)["result"][0]["state"] == 1
    # The new one finds the mounts and namespaces of the old one: it can enter and end the pod.
    assert p.output(c, "/bin/cat", "/www/index.html") == "it works\n"


def test_nothing_is_left(own, make_lab):
    """Of a lab with running containers, one with a shim that was killed, and one of which containerd was."""
    lab = make_lab("ld", nodes=1, containers=True)
    lab.project("red")
    p, shims = Pods(lab, "node1"), []
    try:
        p.cri.drop_events()
        for name in ("one", "two"):
            p.run(name, command=["/bin/sleep", "1000"])
        shims = [int(x.name) for x in pathlib.Path("/proc").glob("[0-9]*")
                 if (x / "cmdline").exists() and b"shim" in read(x / "cmdline") and f"/{lab.name}/".encode() in read(x / "cmdline")]
        assert len(shims) == 2
        assert ctd.left(lab)
    finally:
        p.cri.close()
        lab.cmd("containerd", "kill", "node1")
        for pid in shims[:1]:
            os.kill(pid, 9)
        lab.down()
    assert ctd.left(lab) == []


@pytest.mark.parametrize("after", ["mnt/ns", "containerd/containerd.sock", "kubelet.pid"])
def test_nothing_is_left_of_a_start_that_was_killed(after):
    """kill -9 of `lab up` as soon as the node has that file."""
    ctd.needed()
    lab = Lab("lk")
    proc = subprocess.Popen([TENET, "lab", "--name", lab.name, "up", "--nodes", "1"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env=environment())
    try:
        wait_for(after, lambda: (lab.folder("node1") / after).exists() or proc.poll() is not None)
        proc.kill()
        proc.wait()
    finally:
        lab.down()
    assert ctd.left(lab) == []


def test_a_lab_begins_anew_after_a_reboot(make_lab):
    """Which leaves what is below /var."""
    lab = make_lab("lr", up=False, nodes=1, containers=True)
    stale = pathlib.Path("/var/lib/tenet/lab") / lab.name / "node1" / "containerd" / "io.containerd.metadata.v1.bolt"
    stale.mkdir(parents=True)
    (stale / "meta.db").write_text("of another life")
    lab.up()
    assert lab.node("node1")["containerdPid"]
    lab.down()


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_lab_without_containers_has_none(make_lab):
    lab = make_lab("le", nodes=0)
    assert lab.status()["containers"] is False
    r = lab.cmd("containerd", "start", "node1", check=False)
    assert r.returncode == 1


def test_a_machine_without_containerd_is_told_how_to_go_on(tmp_path):
    """With a PATH that has everything but containerd."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for name in ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "nft", "runc", "busybox", "nsenter"):
            if os.path.exists(f"{folder}/{name}") and not (bin_dir / name).exists():
                (bin_dir / name).symlink_to(f"{folder}/{name}")
    r = run([TENET, "lab", "--name", f"lf{os.getpid() % 100000}", "up", "--nodes", "0"], check=False,
            env={**os.environ, "PATH": str(bin_dir)})
    assert r.returncode == 1
    assert "containerd is not installed (Debian package containerd)" in r.stderr and "--no-containers" in r.stderr


def test_workloads_run_on_real_nodes(own):
    """A Deployment rolls over, a DaemonSet has a pod on each node, a StatefulSet keeps names, a Job ends: by kubectl."""
    def workload(version, kind, command, **spec):
        labels = {"app": kind.lower()}
        template = {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "c", "image": "localhost/busybox:1", "imagePullPolicy": "IfNotPresent", "command": command}]}}
        if kind != "Job":
            spec["selector"] = {"matchLabels": labels}
        else:
            template["spec"]["restartPolicy"] = "Never"
        own.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "red"}, "spec": {**spec, "template": template}}))

    def pods(kind):
        return [p for p in own.objects("pods", "-n", "red", "-l", f"app={kind}") if not p["metadata"].get("deletionTimestamp")]

    serve = ["/bin/httpd", "-f", "-p", "8080", "-h", "/www"]  # The constraint "restricted" gives the project's user ID.
    try:
        workload("apps/v1", "Deployment", serve, replicas=3)
        own.kubectl("-n", "red", "rollout", "status", "deploy/w", "--timeout=60s")
        before = {p["metadata"]["name"] for p in pods("deployment")}
        own.kubectl("-n", "red", "set", "env", "deploy/w", "ROUND=2")
        own.kubectl("-n", "red", "rollout", "status", "deploy/w", "--timeout=60s")
        assert len(pods("deployment")) == 3 and not before & {p["metadata"]["name"] for p in pods("deployment")}
        name = pods("deployment")[0]["metadata"]["name"]
        assert own.kubectl("-n", "red", "exec", name, "--", "sh", "-c", "echo $ROUND").stdout == "2\n"
        workload("apps/v1", "DaemonSet", serve)
        own.kubectl("-n", "red", "rollout", "status", "ds/w", "--timeout=60s")
        assert sorted(p["spec"]["nodeName"] for p in pods("daemonset")) == ["node1", "node2"]
        workload("apps/v1", "StatefulSet", serve, replicas=2, serviceName="w")
        own.kubectl("-n", "red", "rollout", "status", "sts/w", "--timeout=60s")
        assert own.kubectl("-n", "red", "exec", "w-1", "--", "hostname").stdout == "w-1\n"
        workload("batch/v1", "Job", ["/bin/sh", "-c", "echo $JOB_COMPLETION_INDEX"], completions=2, parallelism=2, completionMode="Indexed")
        own.kubectl("-n", "red", "wait", "job/w", "--for=condition=complete", "--timeout=60s")
        ended = own.objects("pods", "-n", "red", "-l", "job-name=w")
        assert sorted(own.kubectl("-n", "red", "logs", p["metadata"]["name"]).stdout for p in ended) == ["0\n", "1\n"]
    finally:
        own.kubectl("-n", "red", "delete", "deploy,ds,sts,job", "w", "--ignore-not-found", "--cascade=foreground")
        wait_for("all their pods to go", lambda: not own.objects("pods", "-n", "red"))
