# SPDX-License-Identifier: Apache-2.0
"""Containers from end to end: pods made through the API, placed by the scheduler, run by `tenet kubelet` on containerd with
tenet-cni, and what kubectl does with them through the lab's API server.  test_kubelet.py has the kubelet's own cases."""
import contextlib
import errno
import json
import os
import pathlib
import pty
import re
import select
import time

import pytest

import containerd as ctd
from lab import DEADLINE, leftovers, run, wait_for

IMAGE = "localhost/busybox:1"
# By WebSocket some versions of kubectl lose output that comes before they are ready for it; test_streams.py has both transports.
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}
PAGE = "it works\n"  # of the image, /www/index.html


@pytest.fixture(scope="module")
def own(make_lab):
    ctd.needed()
    lab = make_lab("co", nodes=2, containers=True, plugin="redhat/openshift-ovs-networkpolicy")
    lab.project("red")
    # On both nodes, as the scheduler places pods of a service on nodes that have none.
    start(lab, "web-1", "httpd", "-f", "-p", "80", "-h", "/www", labels="app=web")
    start(lab, "web-2", "httpd", "-f", "-p", "80", "-h", "/www", labels="app=web")
    start(lab, "client", "sh", "-c", "trap 'exit 0' TERM; echo started; while :; do sleep 0.1; done", labels="app=client")
    lab.kubectl("-n", "red", "expose", "pod", "web-1", "--name=web", "--port=8000", "--target-port=80", "--selector=app=web")
    lab.kubectl("-n", "red", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
    yield lab
    lab.down(check=False)


def start(lab, name, *command, labels="app=other"):
    lab.kubectl("-n", "red", "run", name, f"--image={IMAGE}", f"--labels={labels}",
                '--overrides={"spec": {"terminationGracePeriodSeconds": 1}}', "--", *command)


def pod(lab, name):
    return next((p for p in lab.objects("pods", "-n", "red") if p["metadata"]["name"] == name), None)


def over_spdy(lab, *args, **kw):
    return run(["kubectl", *args], env={**lab.kubectl_environment(), **SPDY}, **kw)


def inside(lab, name, *command, check=True):
    return over_spdy(lab, "-n", "red", "exec", name, "--", *command, check=check)


def gets(lab, url, name="client"):
    """Whether the container gets the page."""
    return inside(lab, name, "timeout", "1", "wget", "-q", "-O", "-", url, check=False).stdout == PAGE


class Terminal:
    """kubectl with a terminal, as a user has it."""

    def __init__(self, lab, *argv):
        environment = {**lab.kubectl_environment(), **SPDY, "TERM": "dumb"}
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("kubectl", ["kubectl", *argv], environment)

    def expect(self, pattern):
        end = time.monotonic() + DEADLINE
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, f"waited in vain for {pattern}: {self.text}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 4096).decode(errors="replace")
                except OSError as e:
                    assert e.errno == errno.EIO
                    raise AssertionError(f"ended before {pattern}: {self.text}") from e

    def send(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Its exit code, once it has ended."""
        with contextlib.suppress(OSError):
            while os.read(self.fd, 4096):
                pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_pods_are_placed_and_run(own):
    nodes = {}
    for name in ("web-1", "web-2", "client"):
        p = pod(own, name)
        nodes[name] = p["spec"]["nodeName"]
        assert p["status"]["hostIP"] == own.node(nodes[name])["hostIP"]
        assert p["status"]["containerStatuses"][0]["containerID"].startswith("containerd://")
    assert {nodes["web-1"], nodes["web-2"]} == {"node1", "node2"}
    wait_for("their Events", lambda: {"Scheduled", "Pulled", "Created", "Started"} <= {
        e["reason"] for e in own.objects("events", "-n", "red")})
    # Masters see by their leases that the kubelets live.
    leases = own.objects("leases", "-n", "kube-node-lease")
    assert {x["metadata"]["name"] for x in leases} == {"node1", "node2"}


def test_logs(own):
    assert own.kubectl("-n", "red", "logs", "client").stdout == "started\n"
    follow = own.kubectl_popen("-n", "red", "logs", "-f", "client")
    assert follow.stdout.readline() == "started\n"
    inside(own, "client", "sh", "-c", "echo more >/proc/1/fd/1")
    assert follow.stdout.readline() == "more\n"
    follow.kill()
    follow.wait()
    follow.stdout.close()


def test_exec_has_exit_codes_and_input(own):
    r = inside(own, "client", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (r.returncode, r.stdout) == (7, "out\n") and r.stderr.startswith("err\n")
    r = over_spdy(own, "-n", "red", "exec", "-i", "client", "--", "wc", "-c", input="x" * 100000)
    assert r.stdout.strip() == "100000"


def test_exec_has_a_terminal(own):
    t = Terminal(own, "-n", "red", "exec", "-it", "client", "--", "sh")
    t.expect(r"[#$] ")
    t.send("tty; hostname\n")
    t.expect(r"/dev/pts/\d+\s+client")
    t.send("exit 5\n")
    assert t.end() == 5


def test_a_port_is_forwarded(own):
    forward = own.kubectl_popen("-n", "red", "port-forward", "pod/web-1", ":80")
    port = re.search(r"127\.0\.0\.1:(\d+)", forward.stdout.readline())[1]
    for _ in range(3):
        assert run(["curl", "-sf", f"http://127.0.0.1:{port}/"]).stdout == PAGE
    forward.kill()
    forward.wait()
    forward.stdout.close()


def test_files_are_copied(own, tmp_path):
    (tmp_path / "there").write_bytes(os.urandom(3 << 20))
    over_spdy(own, "-n", "red", "cp", str(tmp_path / "there"), "client:/tmp/file")
    over_spdy(own, "-n", "red", "cp", "client:/tmp/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes()


def test_a_container_is_debugged(own):
    """By another one, which is in the first one's namespaces of processes and network."""
    t = Terminal(own, "-n", "red", "debug", "-it", "web-1", f"--image={IMAGE}", "--target=web-1", "--profile=general", "-c", "debugger",
                 "--", "sh")
    t.send("\n")
    t.expect(r"[#$] ")
    t.send("ps; wget -q -O - http://127.0.0.1/\n")
    t.expect(r"httpd -f -p 80[^#]*it works")
    t.send("exit\n")
    assert t.end() == 0
    done = wait_for("the end", lambda: pod(own, "web-1")["status"]["ephemeralContainerStatuses"][0]["state"].get("terminated"))
    assert done["exitCode"] == 0


def test_services_and_names(own):
    """From a container, by the service's address, its names, and to its endpoints on both nodes."""
    address = own.object("services", "web", "-n", "red")["spec"]["clusterIP"]
    for host in ("web", "web.red", "web.red.svc.cluster.local", address):
        assert wait_for(host, lambda host=host: gets(own, f"http://{host}:8000/"))
    assert inside(own, "client", "cat", "/etc/resolv.conf").stdout.startswith("search red.svc.cluster.local ")
    for name in ("web-1", "web-2"):
        address = pod(own, name)["status"]["podIP"]
        assert wait_for(name, lambda address=address: gets(own, f"http://{address}/"))
    # The variables of services that there were before the container, and the API's own name.
    assert "KUBERNETES_SERVICE_HOST=172.30.0.1" in inside(own, "client", "env").stdout
    assert "172.30.0.1" in inside(own, "client", "nslookup", "kubernetes.default.svc.cluster.local").stdout


def test_policies_are_between_containers(own):
    start(own, "other", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    own.kubectl("-n", "red", "wait", "--for=condition=Ready", "pod/other", "--timeout=60s")
    assert wait_for("the page", lambda: gets(own, "http://web:8000/", "other"))
    own.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "web", "namespace": "red"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}},
                 "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}}))
    wait_for("the policy", lambda: not gets(own, "http://web:8000/", "other"))
    assert wait_for("the page", lambda: gets(own, "http://web:8000/", "client"))
    own.kubectl("-n", "red", "delete", "networkpolicy", "web")
    assert wait_for("the page", lambda: gets(own, "http://web:8000/", "other"))


def test_containers_outlive_agents(own):
    """Those of a node whose kubelet, agent and containerd are killed: none is started again."""
    before = pod(own, "client")
    node, status = before["spec"]["nodeName"], before["status"]["containerStatuses"][0]
    for daemon in ("kubelet", "node", "containerd"):
        own.cmd(daemon, "kill", node)
    for daemon in ("containerd", "node", "kubelet"):
        own.cmd(daemon, "start", node)
    wait_for("exec", lambda: inside(own, "client", "true", check=False).returncode == 0)
    assert wait_for("the page", lambda: gets(own, "http://web:8000/"))
    after = pod(own, "client")["status"]["containerStatuses"][0]
    assert (after["containerID"], after["restartCount"]) == (status["containerID"], 0)


def remains(lab, node, p):
    """Of a pod on its node: containers, addresses, files, control groups."""
    uid, groups, data = p["metadata"]["uid"], pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/var/lib/tenet/lab") / lab.name / node
    container = p["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    known = run(["ctr", "-a", lab.node(node)["runtimeEndpoint"].removeprefix("unix://"), "-n", "k8s.io", "containers", "ls", "-q"]).stdout
    found = {"container": container in known.split(), "address": p["status"]["podIP"] in [r["ip"] for r in lab.records(node).values()],
             "logs": any(data.glob(f"logs/*{uid}*")), "files": any(data.glob(f"kubelet/pods/{uid}")),
             "cgroups": any(x for top in ("", "*/") for x in groups.glob(f"{top}tenet-{lab.name}/{node}/**/*{uid}*"))}
    return sorted(k for k, v in found.items() if v)


def test_a_deletion_leaves_nothing(own):
    p = pod(own, "web-2")
    node, address = p["spec"]["nodeName"], p["status"]["podIP"]
    assert remains(own, node, p) == ["address", "cgroups", "container", "files", "logs"]
    own.kubectl("-n", "red", "delete", "pod", "web-2")
    assert pod(own, "web-2") is None
    wait_for("its end", lambda: not remains(own, node, p))
    wait_for("the service", lambda: address not in str(own.object("endpoints", "web", "-n", "red")))
    own.down()
    assert not leftovers(own.name) and ctd.left(own) == []
