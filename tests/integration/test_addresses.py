# SPDX-License-Identifier: Apache-2.0
"""What a node's agent says of addresses counts only when the registry agrees: of its pods, and of its node.  And names
of other projects in DNS, where they are isolated."""
import json
import pathlib
import re
import socket

import pytest

import lab as lablib
from lab import TENET, run, wait_for
from test_registry import Master

DATAPATHS = "ovs,ebpf"  # node1 has the first, node2 the second, node3 the first
POLICY = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p", "namespace": "red"},
          "spec": {"podSelector": {"matchLabels": {"app": "web"}},
                   "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "good"}}}]}]}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "good", "namespace": "red"},
           "spec": {"selector": {"app": "good"}, "ports": [{"port": 80}]}}


def patch(lab, kubeconfig, what, name, status, *args):
    server = re.search(r"server: (\S+)", pathlib.Path(lab.kubeconfig).read_text())[1]
    return run(["kubectl", "--kubeconfig", kubeconfig, "--server", server, "patch", what, name, *args, "--subresource=status", "--type=merge",
                "-p", json.dumps({"status": status})], check=False)


def host_ip(lab, node):
    return lab.object("hostsubnets", node)["hostIP"]


def pod_ip(ip):
    return {"podIP": ip, "podIPs": [{"ip": ip}]}


@pytest.fixture(scope="module")
def policies(make_lab):
    """A node whose credentials somebody else has (node1), and pods that a policy guards on two others."""
    lab = make_lab("ad", nodes=3, plugin="redhat/openshift-ovs-networkpolicy", datapath=DATAPATHS, tls="")
    for project in ("red", "blue"):
        lab.project(project)
    lab.good = lab.pod("red/good", "node1", labels={"app": "good"})
    lab.web = [lab.pod(f"red/web-{n}", n, labels={"app": "web"}) for n in ("node2", "node3")]
    lab.stranger = lab.pod("blue/stranger", "node1")
    for obj in (POLICY, SERVICE):
        lab.kubectl("apply", "-f", "-", input=json.dumps(obj))
    lab.stolen = lab.folder("node1") / "node.kubeconfig"
    for web in lab.web:
        wait_for("the policy", lambda web=web: lab.good.can_ping(web.ip) and not lab.stranger.can_ping(web.ip, tries=1))
    return lab


@pytest.mark.has_nodes
def test_a_node_reports_only_addresses_that_its_subnet_has(policies):
    lab = policies
    gateway = lab.object("hostsubnets", "node1")["subnet"].split("/")[0][:-1] + "1"
    for ip in (lab.web[0].ip, gateway, host_ip(lab, "node2"), "203.0.113.1"):
        r = patch(lab, lab.stolen, "pod", "good", pod_ip(ip), "-n", "red")
        assert r.returncode and "Forbidden" in r.stderr and f"status.podIP: {ip} is " in r.stderr, r.stderr
    assert lab.object("pods", "good", "-n", "red")["status"]["podIP"] == lab.good.ip
    assert patch(lab, lab.stolen, "pod", "good", pod_ip(lab.good.ip), "-n", "red").returncode == 0


@pytest.mark.has_nodes
def test_an_address_stored_before_is_ignored_by_policies_and_endpoints(policies):
    """As it was before an upgrade: written by somebody who may write anything."""
    lab = policies
    # A pod of node2 makes the stranger's address, of node1, its own, which is "good".
    lab.pod("red/liar", "node2", labels={"app": "good"})
    assert patch(lab, lab.kubeconfig, "pod", "liar", pod_ip(lab.stranger.ip), "-n", "red").returncode == 0
    # What comes behind it in the same watch is seen later.
    late = lab.pod("red/late", "node1", labels={"app": "good"})
    for web in lab.web:
        wait_for("the late pod", lambda web=web: late.can_ping(web.ip))
        assert not lab.stranger.can_ping(web.ip)

    def endpoints():
        subsets = lab.object("endpoints", "good", "-n", "red").get("subsets", [])
        return {a["ip"] for s in subsets for key in ("addresses", "notReadyAddresses") for a in s.get(key, [])}
    wait_for("the endpoints", lambda: endpoints() == {lab.good.ip, late.ip})
    events = wait_for("the event", lambda: [e for e in lab.objects("events", "-n", "red") if e["reason"] == "AddressIgnored"])
    assert events[0]["involvedObject"]["name"] == "liar" and f"{lab.stranger.ip} is not in " in events[0]["message"]
    # node1's own pods are known to itself; another node's agent says so.
    assert "reported address ignored" in lab.agent_log("node3")


@pytest.mark.has_nodes
def test_a_node_has_no_address_of_somebody_else(policies):
    lab = policies
    own = host_ip(lab, "node1")
    master = lab.object("endpoints", "kubernetes", "-n", "default")["subsets"][0]["addresses"][0]["ip"]
    for ip, whose in ((master, "is an address of a master"), (host_ip(lab, "node2"), "is an address of Node node2"),
                      (lab.good.ip, "lies in the cluster network"), ("172.30.0.1", "lies in the service network"),
                      ("127.0.0.1", "is a loopback address")):
        r = patch(lab, lab.stolen, "node", "node1", {"addresses": [{"type": "InternalIP", "address": ip}]})
        assert r.returncode and f"status.addresses[0].address: {ip} {whose}" in r.stderr, r.stderr
    assert lab.object("hostsubnets", "node1")["hostIP"] == own
    # Stored all the same, by an administrator: the HostSubnet does not follow.
    kept = lab.object("nodes", "node1")["status"]["addresses"]
    bad = [{"type": "InternalIP", "address": host_ip(lab, "node2")}]
    assert patch(lab, lab.kubeconfig, "node", "node1", {"addresses": bad}).returncode == 0

    def told():
        return [c for c in lab.object("nodes", "node1")["status"]["conditions"] if c["reason"] == "InvalidNodeAddress"]
    assert "is the hostIP of HostSubnet node2" in wait_for("the condition", told)[0]["message"]
    assert lab.object("hostsubnets", "node1")["hostIP"] == own
    assert patch(lab, lab.kubeconfig, "node", "node1", {"addresses": kept}).returncode == 0
    wait_for("the condition to be gone", lambda: not told())


@pytest.mark.has_nodes
def test_an_agent_does_not_start_with_an_address_that_its_host_lacks(policies):
    lab = policies
    r = lab.ns("node1", [TENET, "node", "--config", lab.folder("node1") / "node-config.yaml", "--node-ip", "192.0.2.77"],
               check=False)
    assert r.returncode == 1 and "nodeIP: 192.0.2.77 is not an address of this host" in r.stderr


# ---- DNS ----

@pytest.fixture(scope="module")
def isolated(make_lab):
    lab = make_lab("di", nodes=2, plugin="redhat/openshift-ovs-multitenant", datapath=DATAPATHS)
    for n in ("node1", "node2"):
        config = lab.folder(n) / "node-config.yaml"
        config.write_text(config.read_text() + "\ndnsIsolateProjects: true\n")
        lab.cmd("node", "restart", n, timeout=180)
    lab.all = {}
    for project in ("red", "blue"):
        lab.project(project)
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": project},
                   "spec": {"ports": [{"port": 80, "name": "http"}]}}
        lab.kubectl("apply", "-f", "-", input=json.dumps(service))
        for n in ("node1", "node2"):
            lab.all[project, n] = lab.pod(f"{project}/on-{n}", n)
    lab.gateways = {s["host"]: s["subnet"].rsplit(".", 1)[0] + ".1" for s in lab.objects("hostsubnets")}
    return lab


def dig(lab, pod, name, rtype="A", *options, server=None):
    out = pod.ns(["dig", f"@{server or lab.gateways[pod.node]}", "+tries=2", "+time=4", *options, name, rtype], check=False).stdout
    return next((line.split("status: ")[1].split(",")[0] for line in out.splitlines() if "status: " in line), out)


@pytest.mark.has_nodes
def test_a_pod_gets_no_names_of_other_projects(isolated):
    lab = isolated
    address = {p: lab.object("services", "web", "-n", p)["spec"]["clusterIP"] for p in ("red", "blue")}
    for node in ("node1", "node2"):
        for own, other in (("red", "blue"), ("blue", "red")):
            pod = lab.all[own, node]
            wait_for("one's own name", lambda: dig(lab, pod, f"web.{own}.svc.cluster.local") == "NOERROR")
            for options in ((), ("+tcp",)):
                def status(name, rtype="A"):
                    return dig(lab, pod, name, rtype, *options)
                for name, rtype in (("web.{}.svc.cluster.local", "A"), ("_http._tcp.web.{}.svc.cluster.local", "SRV"),
                                    ("{}.svc.cluster.local", "A"), ("10-128-0-9.{}.pod.cluster.local", "A")):
                    assert status(name.format(own), rtype) == "NOERROR", (own, name)
                    assert status(name.format(other), rtype) == "NXDOMAIN", (own, name)
                for project, want in ((own, "NOERROR"), (other, "NXDOMAIN")):
                    assert status(".".join(reversed(address[project].split("."))) + ".in-addr.arpa", "PTR") == want
                assert status("kubernetes.default.svc.cluster.local") == "NOERROR"
    # Another node does not know the pod.
    red = lab.all["red", "node1"]
    assert dig(lab, red, "web.red.svc.cluster.local", server=lab.gateways["node2"]) == "NXDOMAIN"
    assert dig(lab, red, "kubernetes.default.svc.cluster.local", server=lab.gateways["node2"]) == "NOERROR"


@pytest.mark.has_nodes
def test_names_follow_projects_that_are_joined(isolated):
    lab = isolated
    env = {**lablib.environment(), "KUBECONFIG": lab.kubeconfig}

    def network(*args):
        run([TENET, "adm", "pod-network", *args], env=env)
    red = lab.all["red", "node2"]
    assert dig(lab, red, "web.blue.svc.cluster.local") == "NXDOMAIN"
    network("join-projects", "--to=red", "blue")
    wait_for("the other's name", lambda: dig(lab, red, "web.blue.svc.cluster.local") == "NOERROR")
    network("isolate-projects", "blue")
    wait_for("the name to be gone", lambda: dig(lab, red, "web.blue.svc.cluster.local") == "NXDOMAIN")
    network("make-projects-global", "blue")
    wait_for("the global name", lambda: dig(lab, red, "web.blue.svc.cluster.local") == "NOERROR")
    network("isolate-projects", "blue")
    wait_for("the name to be gone", lambda: dig(lab, red, "web.blue.svc.cluster.local") == "NXDOMAIN")


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class DnsMaster(Master):
    def start(self):
        self.dns = free_port()
        super().start()

    def configuration(self):
        return {**super().configuration(), "dnsConfig": {"bindAddress": f"127.0.0.1:{self.dns}", "isolateProjects": True,
                                                         "nameservers": ["127.0.0.1:9"]}}


def test_a_master_tells_names_of_global_projects_only(tmp_path):
    m = DnsMaster(str(tmp_path))
    try:
        m.call("POST", "/api/v1/namespaces", {"metadata": {"name": "red"}})
        for ns in ("red", "default"):
            code, answer = m.call("POST", f"/api/v1/namespaces/{ns}/services", {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
            assert code == 201, answer

        def status(name, *options):
            out = run(["dig", "@127.0.0.1", "-p", m.dns, "+tries=1", "+time=4", *options, name], check=False).stdout
            return next((line.split("status: ")[1].split(",")[0] for line in out.splitlines() if "status: " in line), out)
        wait_for("a global name", lambda: status("web.default.svc.cluster.local") == "NOERROR")
        for options in ((), ("+tcp",)):
            assert status("web.red.svc.cluster.local", *options) == "NXDOMAIN"
            assert status("red.svc.cluster.local", *options) == "NXDOMAIN"
    finally:
        m.stop()
