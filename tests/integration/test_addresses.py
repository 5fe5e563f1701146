# SPDX-License-Identifier: Apache-2.0
"""What a node's agent says of addresses counts only when the registry agrees: of its pods, and of its node."""
import json
import pathlib
import re

import pytest

from lab import TENET, run, wait_for

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
