# SPDX-License-Identifier: Apache-2.0
"""What users count on of pods, beside test_kubelet.py: entry points, privileges, probes by their clocks, names, another runtime."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest

import containerd as containerdlib
import needs
from lab import run, wait_for
from test_kubelet import NODE, SH, Cluster, ready

ENTRY = "localhost/entry:1"


class Cases(Cluster):
    def start_kubelet(self, *args):
        super().start_kubelet("--seccomp-dir", self.dir / "seccomp", "--cluster-dns", "10.77.0.1", *args)

    def pid(self, name, container="c"):
        """Of the container's first process."""
        ident = self.container(name, container)["containerID"].split("//")[1]
        return str(self.cd.pid(ident))

    def told(self, name, reason, text):
        """Waits for an Event of the pod."""
        def look():
            items = json.loads(self.kubectl("get", "events", "-o", "json").stdout)["items"]
            return any(e["involvedObject"]["name"] == name and e["reason"] == reason and text in e["message"] for e in items)
        wait_for(f"the Event {reason} of {name}: {text}", look)

    def says(self, name, text, container="c"):
        """Waits until a container has written this line."""
        wait_for(f"{name} to say {text}", lambda: text in self.output(name, container))


@contextlib.contextmanager
def a_cluster(kind=Cases):
    containerdlib.needed()
    with tempfile.TemporaryDirectory(prefix="tenet-cases-") as folder:
        c = kind(pathlib.Path(folder))
        try:
            wait_for("the node to be ready", lambda: ready((c.get("node", NODE) or {}).get("status", {})))
            yield c
        finally:
            with contextlib.suppress(Exception):
                c.kubectl("delete", "pods", "--all", "--wait=true", timeout=60)
            c.stop()


@pytest.fixture(scope="module")
def cluster():
    with a_cluster() as c:
        image = containerdlib.archive(c.cd_dir, ENTRY, Entrypoint=["/bin/echo", "entry"], Cmd=["command"], User="user")
        c.cd.load(image)
        yield c


def test_a_container_is_repeated_until_it_succeeds(cluster):
    name = cluster.pod("repeated", {"command": [SH, "-c", "[ -e /d/x ] || { echo > /d/x; exit 3; }"],
                                    "volumeMounts": [{"name": "d", "mountPath": "/d"}]},
                       restartPolicy="OnFailure", volumes=[{"name": "d", "emptyDir": {}}])
    c = cluster.finished(name)["containerStatuses"][0]
    assert c["restartCount"] == 1 and c["state"]["terminated"]["exitCode"] == 0 and c["lastState"]["terminated"]["exitCode"] == 3
    cluster.delete(name)


def test_entry_points_and_commands(cluster):
    """The image has the entry point "echo entry" and the command "command"."""
    cases = {"none": ({}, "entry command"), "command": ({"command": ["/bin/echo", "own"]}, "own"),
             "args": ({"args": ["a", "b"]}, "entry a b"), "both": ({"command": ["/bin/echo", "own"], "args": ["a"]}, "own a")}
    for key, (fields, _) in cases.items():
        cluster.pod(f"entry-{key}", {"image": ENTRY, **fields}, restartPolicy="Never")
    for key, (_, want) in cases.items():
        cluster.finished(f"entry-{key}")
        assert cluster.output(f"entry-{key}") == [want]
        cluster.delete(f"entry-{key}")


def test_a_terminal(cluster):
    cluster.pod("tty", {"command": ["/bin/busybox", "tty"], "stdin": True, "tty": True}, restartPolicy="Never")
    cluster.pod("no-tty", {"command": [SH, "-c", "busybox tty; cat; echo ended"]}, restartPolicy="Never")
    cluster.finished("tty")
    cluster.finished("no-tty")
    assert cluster.output("tty")[0].strip() == "/dev/pts/0"
    assert cluster.output("no-tty") == ["not a tty", "ended"], "without stdin its input has ended"
    cluster.delete("tty")
    cluster.delete("no-tty")


def test_a_user_by_name_may_be_root(cluster):
    cluster.pod("named", {"image": ENTRY}, securityContext={"runAsNonRoot": True})
    cluster.pod("numbered", {"image": ENTRY}, securityContext={"runAsNonRoot": True, "runAsUser": 1000}, restartPolicy="Never")
    s = cluster.wait("named", lambda s: "CreateContainerConfigError" in json.dumps(s.get("containerStatuses", "")))
    assert "image has non-numeric user (user), cannot verify user is non-root" in s["containerStatuses"][0]["state"]["waiting"]["message"]
    cluster.finished("numbered")
    cluster.delete("named")
    cluster.delete("numbered")


def test_setuid_programs_gain_nothing_where_they_may_not(cluster):
    if os.statvfs(cluster.dir).f_flag & os.ST_NOSUID:
        pytest.skip(f"{cluster.dir} is on a file system without setuid programs")
    init = [{"name": "i", "command": [SH, "-c", "busybox cp /bin/busybox /e/busybox && busybox chmod 4755 /e/busybox"],
             "volumeMounts": [{"name": "e", "mountPath": "/e"}]}]
    for name, may in (("suid", True), ("no-suid", False)):
        cluster.pod(name, {"command": [SH, "-c", "/e/busybox su -c true nobody 2>&1; grep NoNewPrivs /proc/self/status"],
                           "volumeMounts": [{"name": "e", "mountPath": "/e"}],
                           "securityContext": {"runAsUser": 1000, "allowPrivilegeEscalation": may}},
                    initContainers=init, restartPolicy="Never", volumes=[{"name": "e", "emptyDir": {}}])
    for name, may in (("suid", True), ("no-suid", False)):
        cluster.wait(name, lambda s: s.get("phase") in ("Succeeded", "Failed"))
        out = "\n".join(cluster.output(name))
        assert ("must be suid" in out) != may and re.search(rf"NoNewPrivs:\s{0 if may else 1}", out), out
        cluster.delete(name)


def test_system_call_filters(cluster):
    (cluster.dir / "seccomp").mkdir()
    (cluster.dir / "seccomp/no-mkdir.json").write_text(json.dumps({
        "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}))
    look = "grep Seccomp: /proc/self/status; busybox mkdir /tmp/x 2>/dev/null && echo made || echo refused"
    cases = {"default": ({"type": "RuntimeDefault"}, "2", "made"), "unconfined": ({"type": "Unconfined"}, "0", "made"),
             "localhost": ({"type": "Localhost", "localhostProfile": "no-mkdir.json"}, "2", "refused")}
    for key, (profile, _, _) in cases.items():
        cluster.pod(f"seccomp-{key}", {"command": [SH, "-c", look], "securityContext": {"seccompProfile": profile}}, restartPolicy="Never")
    cluster.pod("seccomp-none", {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "absent.json"}}})
    for key, (_, mode, made) in cases.items():
        cluster.finished(f"seccomp-{key}")
        out = cluster.output(f"seccomp-{key}")
        assert out[0].split() == ["Seccomp:", mode] and out[1] == made, (key, out)
        cluster.delete(f"seccomp-{key}")
    s = cluster.wait("seccomp-none", lambda s: "CreateContainerError" in json.dumps(s.get("containerStatuses", "")))
    assert "absent.json" in s["containerStatuses"][0]["state"]["waiting"]["message"]
    cluster.delete("seccomp-none")


# ---- probes ----

def test_readiness_is_what_endpoints_follow(cluster):
    name = cluster.pod("endpoint", {"command": ["sleep", "3600"], "readinessProbe": {
        "exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 1}})
    cluster.kubectl("label", "pod", name, "app=endpoint")
    cluster.kubectl("create", "service", "clusterip", "endpoint", "--tcp=80:80")  # selects app=endpoint

    def addresses(key):
        subsets = (cluster.get("endpoints", "endpoint") or {}).get("subsets", [])
        return [a["ip"] for s in subsets for a in s.get(key, [])]
    ip = cluster.wait(name, lambda s: s["containerStatuses"][0]["state"].get("running"))["podIP"]
    wait_for("the address that is not ready", lambda: addresses("notReadyAddresses") == [ip])
    assert addresses("addresses") == []
    cluster.exec(name, ["touch", "/tmp/ok"])
    wait_for("the address", lambda: addresses("addresses") == [ip])
    cluster.exec(name, ["rm", "/tmp/ok"])
    wait_for("the address to be taken away", lambda: addresses("addresses") == [])
    cluster.delete(name)
    cluster.kubectl("delete", "service", "endpoint")


def test_liveness_by_tcp(cluster):
    name = cluster.pod("live-tcp", {"command": [SH, "-c", "httpd -p 80; sleep 3600"], "livenessProbe": {
        "tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 2, "initialDelaySeconds": 1}})
    cluster.running(name)
    cluster.exec(name, ["killall", "httpd"])
    s = cluster.wait(name, lambda s: s["containerStatuses"][0]["restartCount"] >= 1)
    assert s["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] in (137, 143)
    cluster.told(name, "Unhealthy", "Connection refused")
    cluster.delete(name)


HEALTH = """
import grpc, os, sys, time
from concurrent import futures
def check(request, context):
    if request != b"\\x0a\\x02db":  # HealthCheckRequest.service
        context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
    return b"\\x08\\x02" if os.path.exists(sys.argv[1]) else b"\\x08\\x01"  # NOT_SERVING, SERVING
server = grpc.server(futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
    "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)})])
assert server.add_insecure_port("0.0.0.0:9000") == 9000
server.start()
time.sleep(3600)
"""


def test_liveness_by_grpc(cluster):
    """The server is a process of the test, in the pod's network."""
    probe = {"grpc": {"port": 9000, "service": "db"}, "periodSeconds": 1, "timeoutSeconds": 5}
    name = cluster.pod("live-grpc", {"command": ["sleep", "3600"], "readinessProbe": {**probe, "failureThreshold": 1},
                                     "livenessProbe": {**probe, "initialDelaySeconds": 600}})
    cluster.wait(name, lambda s: s["containerStatuses"][0]["state"].get("running"))
    cluster.told(name, "Unhealthy", "Readiness probe failed: ")
    sick = cluster.dir / "sick"
    server = subprocess.Popen(["nsenter", "-t", cluster.pid(name), "--net", "/usr/bin/python3", "-c", HEALTH, sick])
    try:
        cluster.running(name)
        sick.write_text("")
        cluster.wait(name, lambda s: not ready(s))
        cluster.told(name, "Unhealthy", "does not answer SERVING")
        again = cluster.pod("live-grpc-2", {"command": ["sleep", "3600"], "livenessProbe": {
            "grpc": {"port": 9000, "service": "db"}, "periodSeconds": 1, "failureThreshold": 1}})
        s = cluster.wait(again, lambda s: s["containerStatuses"][0]["restartCount"] >= 1)
        assert s["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] in (137, 143)
        assert cluster.container(name)["restartCount"] == 0, "its liveness is not asked for yet"
    finally:
        server.kill()
        server.wait()
    cluster.delete(name)
    cluster.delete("live-grpc-2")


def test_a_probe_has_a_time_a_threshold_and_a_grace(cluster):
    """The probe hangs: it fails by its timeout, the second failure counts, and its own grace is used, not the pod's."""
    name = cluster.pod("own-grace", {"command": [SH, "-c", "trap '' TERM; while :; do sleep 0.1; done"], "livenessProbe": {
        "exec": {"command": [SH, "-c", "echo x >> /tmp/tries; sleep 600"]}, "timeoutSeconds": 1, "periodSeconds": 1, "failureThreshold": 2,
        "terminationGracePeriodSeconds": 1}}, terminationGracePeriodSeconds=600)
    s = cluster.wait(name, lambda s: s.get("containerStatuses") and s["containerStatuses"][0]["restartCount"] >= 1)
    assert s["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137
    cluster.told(name, "Unhealthy", "timed out")
    cluster.delete(name, "--grace-period=1")


def test_a_redirect_to_another_host_is_not_followed(cluster):
    answer = r"printf 'HTTP/1.0 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n'"
    name = cluster.pod("redirect", {"command": [SH, "-c", f"while :; do {answer} | busybox nc -l -p 8080 >/dev/null; done"],
                                    "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1, "timeoutSeconds": 5}})
    cluster.running(name)
    cluster.told(name, "ProbeWarning", "Readiness probe warning: Probe terminated redirects")
    cluster.delete(name)


# ---- names ----

def test_names_that_are_too_long(cluster):
    cluster.pod("long-name", {}, hostname="h" * 60, subdomain="sub", setHostnameAsFQDN=True)
    cluster.told("long-name", "FailedCreatePodSandBox", "h.sub.default.svc.cluster.local is too long (64 characters is the max, 90 ")
    assert cluster.status("long-name")["phase"] == "Pending"
    cluster.delete("long-name")
    cluster.pod("many-servers", {"command": ["cat", "/etc/resolv.conf"]}, restartPolicy="Never",
                dnsConfig={"nameservers": ["192.0.2.1", "192.0.2.2", "192.0.2.3"]})
    cluster.finished("many-servers")
    servers = ["10.77.0.1", "192.0.2.1", "192.0.2.2"]
    assert [v.split()[1] for v in cluster.output("many-servers") if v.startswith("nameserver")] == servers
    cluster.told("many-servers", "DNSConfigForming", "the applied nameserver line is: " + " ".join(servers))
    cluster.delete("many-servers")


# ---- more ----

def test_init_containers_are_not_run_again_by_another_agent(cluster):
    cluster.pod("inited", {"command": ["sleep", "3600"]}, initContainers=[{"name": "i", "command": [SH, "-c", "echo ran"]}])
    cluster.pod("crashes", initContainers=[{"name": "i", "command": ["false"]}])
    before = cluster.running("inited")
    wait_for("the word of the column", lambda: "Init:CrashLoopBackOff" in cluster.kubectl("get", "pod", "crashes").stdout)
    cluster.stop_kubelet(signal.SIGKILL)
    cluster.start_kubelet()
    cluster.pod("after", {"command": ["sleep", "3600"]})  # the agent works again when this one runs
    cluster.running("after")
    after = cluster.running("inited")
    for key in ("initContainerStatuses", "containerStatuses"):
        assert after[key] == before[key]
    assert cluster.output("inited", "i") == ["ran"]
    for name in ("inited", "crashes", "after"):
        cluster.delete(name)


def test_a_debugger_sees_the_processes_of_its_target(cluster):
    cluster.pod("target", [{"name": "c", "command": ["sleep", "3601"]}, {"name": "d", "command": ["sleep", "3602"]}])
    cluster.running("target")
    cluster.kubectl("debug", "target", f"--image={containerdlib.IMAGE}", "--image-pull-policy=IfNotPresent", "--target=c",
                    "--profile=general", "-c", "debugger", "--", SH, "-c", "ps; echo end")
    cluster.says("target", "end", "debugger")
    out = "\n".join(cluster.output("target", "debugger"))
    assert "sleep 3601" in out and "sleep 3602" not in out
    s = cluster.wait("target", lambda s: s["ephemeralContainerStatuses"][0]["state"].get("terminated"))
    assert s["ephemeralContainerStatuses"][0]["restartCount"] == 0 and ready(s)
    cluster.delete("target")


def test_a_container_without_its_configuration_says_what_is_missing(cluster):
    """The words of the state, and the Event."""
    cluster.pod("no-secret", {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "k"}}}]})
    s = cluster.wait("no-secret", lambda s: "CreateContainerConfigError" in json.dumps(s.get("containerStatuses", "")))
    assert s["containerStatuses"][0]["state"]["waiting"] == {"reason": "CreateContainerConfigError", "message": 'secret "absent" not found'}
    assert s["phase"] == "Pending" and "CreateContainerConfigError" in cluster.kubectl("get", "pod", "no-secret").stdout
    cluster.told("no-secret", "Failed", 'Error: secret "absent" not found')
    cluster.delete("no-secret")


# ---- crun ----

class OfCrun(Cases):
    def __init__(self, folder):
        super().__init__(folder, "crun")


def test_crun_instead_of_runc():
    """Life, limits, probes, a deletion that leaves nothing, and an agent that is killed."""
    needs.program("crun")
    with a_cluster(OfCrun) as c:
        name = c.pod("crun", {"command": [SH, "-c", "id; trap 'echo TERM; exit 0' TERM; while :; do sleep 0.1; done"], "resources": {
            "limits": {"cpu": "500m", "memory": "64Mi"}}, "readinessProbe": {"exec": {"command": ["cat", "/etc/known"]}, "periodSeconds": 1},
            "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}},
            initContainers=[{"name": "i", "command": ["true"]}])
        c.pod("bad", {"command": [SH, "-c", "exit 3"]}, restartPolicy="Never")
        before = c.running(name)
        assert c.output(name)[0].startswith("uid=1000")
        assert c.finished("bad", "Failed")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
        ident = before["containerStatuses"][0]["containerID"].split("//")[1]
        assert (c.cd.oci_state() / ident / "status").exists(), "the state as crun keeps it"
        c.stop_kubelet(signal.SIGKILL)
        c.start_kubelet()
        c.pod("after", {"command": ["sleep", "3600"]})
        c.running("after")
        assert c.running(name)["containerStatuses"] == before["containerStatuses"]
        uid = c.get("pod", name)["metadata"]["uid"]

        def groups():
            return [g for top in ("", "*/") for g in pathlib.Path("/sys/fs/cgroup").glob(f"{top}{c.cd.cgroup}/kubepods/**/*{uid}*")]
        assert groups()
        c.delete(name)
        wait_for("its groups to be gone", lambda: not groups())
        for other in ("bad", "after"):
            c.delete(other)
