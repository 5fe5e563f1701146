# SPDX-License-Identifier: Apache-2.0
"""The agent under the limits of its systemd unit: it does all its work, and what has to outlive it does."""
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import lab as lablib
from lab import Server, run, wait_for
from test_services_host import metrics

UNIT = lablib.BUILD / "packaging/tenet-node.service"
CONFINE = pathlib.Path(__file__).with_name("confine.py")


# docs/packages.md explains what is left of each.
EXPOSURE = {"tenet-master": 1.5, "tenet-apiserver": 1.5, "tenet-controllers": 1.1, "tenet-certs": 1.4, "tenet-node": 3.1, "tenet-kubelet": 6.8}


@pytest.mark.parametrize("unit,at_most", EXPOSURE.items())
def test_units_are_as_narrow_as_they_can_be(unit, at_most):
    out = run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT.with_name(f"{unit}.service")]).stdout
    assert float(re.search(rf"exposure level for {unit}.service: ([\d.]+)", out)[1]) <= at_most, out


@pytest.fixture(scope="module", params=["ovs", "ebpf"])
def confined(request, make_lab):
    """A lab whose first node has an agent under the unit's limits, and a pod from before."""
    lab = make_lab("un", nodes=2, plugin="redhat/openshift-ovs-multitenant", datapath=request.param)
    lab.project("red")
    lab.before, lab.far = lab.pod("red/before", "node1"), lab.pod("red/far", "node2")
    node = lab.node("node1")
    argv = pathlib.Path(f"/proc/{node['pid']}/cmdline").read_bytes().decode().split("\0")[:-1]
    lab.cmd("node", "stop", "node1")
    lab.run_dir, lab.conf_dir = pathlib.Path(node["agentSocket"]).parent, pathlib.Path(node["cniConfDir"])
    in_node = ["nsenter", f"--net=/run/netns/{lab.ns_name('node1')}"]
    write = [w for d in (lab.run_dir, lab.conf_dir, lablib._sanitizer_dir) for w in ("--write", str(d))]
    env = lablib.environment()
    env["ASAN_OPTIONS"] += ":detect_leaks=0"  # it would trace the agent, which the filter does not allow

    def start():
        run([*in_node, argv[0], argv[1], "--make-mounts", *argv[2:]])
        with open(lab.run_dir / "confined.log", "a") as log:
            lab.agent = subprocess.Popen([*in_node, "/usr/bin/python3", CONFINE, UNIT, *write, "--", *argv], env=env,
                                         stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for("the agent to be ready", lambda: list(lab.conf_dir.glob("*.conf")) or lab.agent.poll() is not None)
        assert lab.agent.poll() is None, log_of(lab)
    lab.start = start
    start()
    yield lab
    lab.agent.kill()
    lab.agent.wait()
    lab.down(check=False)


def log_of(lab):
    return (lab.run_dir / "confined.log").read_text(errors="replace")


def status_of(pid, key):
    return re.search(rf"^{key}:\s*(\S+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]


def mounts():
    return {line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()}


def test_the_limits_are_in_force(confined):
    pid = confined.agent.pid
    assert status_of(pid, "NoNewPrivs") == "1" and status_of(pid, "Seccomp") == "2"
    assert bin(int(status_of(pid, "CapEff"), 16)).count("1") == 5
    run(["nsenter", "-t", str(pid), "-m", "test", "-w", confined.run_dir])
    assert run(["nsenter", "-t", str(pid), "-m", "test", "-w", "/etc"], check=False).returncode == 1


def test_pods_come_go_and_are_limited(confined):
    """Attaching, host ports, bandwidth, DNS, services and isolation, by an agent that is confined."""
    assert confined.before.can_ping(confined.far.ip)
    pod = confined.pod("red/new", "node1", ports=["web=80"])
    gateway = pod.ns(["ip", "-4", "route", "show", "default"]).stdout.split()[2]
    assert pod.can_ping(confined.far.ip) and confined.before.can_ping(pod.ip) and pod.can_ping(gateway)
    api = confined.object("service", "kubernetes")["spec"]["clusterIP"]
    assert pod.ns(["dig", f"@{gateway}", "+short", "kubernetes.default.svc.cluster.local"]).stdout.strip() == api
    confined.delete_pod("red/new")
    limited = {"runtimeConfig": {"bandwidth": {"ingressRate": 8000000, "ingressBurst": 800000, "egressRate": 8000000,
                                               "egressBurst": 800000},
                                 "portMappings": [{"hostPort": 8088, "containerPort": 80, "protocol": "tcp"}]}}
    attach_by_hand(confined, limited)
    assert not re.search(r"ERROR|Operation not permitted", log_of(confined)), log_of(confined)


# A datagram, again every five seconds, and the answer. The first may be lost: Open vSwitch drops what has no entry in its cache
# while the agent has that purged.
ASK_ONCE = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], 80))
for _ in range(12):
    s.send(b"?")
    try:
        print(s.recv(64).decode())
        break
    except TimeoutError:
        pass
"""


def test_a_packet_waits_for_an_idle_service(confined):
    """It is sent on by a packet socket, on the datapath ebpf."""
    def create(kind, name, **fields):
        confined.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": kind, **fields, "metadata": {
            "name": name, "namespace": "red", "annotations": {"idling.alpha.openshift.io/idled-at": "2026-01-01T00:00:00Z"}
            if kind == "Service" else {}}}))
    create("Service", "asleep", spec={"ports": [{"port": 80, "protocol": "UDP"}]})
    ip = confined.object("service", "asleep", "-n", "red")["spec"]["clusterIP"]
    wait_for("the service", lambda: confined.serves("node1", ip))
    server = Server(confined.far.popen, "udp", 80, confined.far.ip)
    client = confined.before.popen(["/usr/bin/python3", "-c", ASK_ONCE, ip])
    try:
        wait_for("the event", lambda: [e for e in confined.objects("events", "-n", "red") if e["reason"] == "NeedPods"])
        create("Endpoints", "asleep", subsets=[{"addresses": [{"ip": confined.far.ip}], "ports": [{"port": 80, "protocol": "UDP"}]}])
        assert client.communicate(timeout=80)[0].strip() == confined.before.ip
        assert metrics(confined, "node1")["tenet_node_service_packets_sent_total"] >= 1  # that waited
    finally:
        client.kill()
        client.communicate()
        server.stop()


def attach_by_hand(lab, extra):
    """ADD and DEL as a runtime does them, with more configuration than that of the lab's pods."""
    conf = {**json.loads(next(lab.conf_dir.glob("*.conf")).read_text()), **extra}
    name = f"tenet-{lab.name}-byhand"
    run(["ip", "netns", "add", name])
    env = {**lablib.environment(), "CNI_CONTAINERID": "b" * 64, "CNI_NETNS": f"/run/netns/{name}", "CNI_IFNAME": "eth0",
           "CNI_PATH": "/", "CNI_ARGS": "K8S_POD_NAMESPACE=red;K8S_POD_NAME=byhand"}
    try:
        for command in ("ADD", "DEL"):
            r = run(["ip", "netns", "exec", lab.ns_name("node1"), lablib.CNI], check=False, input=json.dumps(conf),
                    env={**env, "CNI_COMMAND": command})
            assert r.returncode == 0, (r.stdout, log_of(lab))
            if command == "ADD":
                assert "8088" in lab.ns("node1", ["nft", "list", "table", "ip", "tenet"]).stdout
    finally:
        run(["ip", "netns", "del", name], check=False)


def test_what_outlives_the_agent_is_mounted_where_the_host_sees_it(confined):
    """Its own mount namespace ends with it; pods go on, and the next agent takes them over."""
    kept = str(confined.run_dir / ("ports.netns" if confined.has_ovs("node1") else "bpf"))
    assert kept in mounts()
    rules = confined.rules("node1")
    confined.agent.send_signal(signal.SIGKILL)
    confined.agent.wait()
    assert kept in mounts()
    assert confined.before.can_ping(confined.far.ip) and confined.far.can_ping(confined.before.ip)
    for conf in confined.conf_dir.glob("*.conf"):
        os.unlink(conf)
    confined.start()
    assert confined.rules("node1") == rules
    assert confined.before.can_ping(confined.far.ip)


def test_without_the_mounts_the_agent_makes_none_of_its_own(confined):
    """The filter has no mount: what it could mount would vanish with it, and the pods' network too."""
    out = run(["/usr/bin/python3", CONFINE, UNIT, "--", "/usr/bin/mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False)
    assert out.returncode and "permi" in out.stderr.lower(), out.stderr
