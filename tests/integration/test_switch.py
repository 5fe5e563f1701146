# SPDX-License-Identifier: Apache-2.0
"""The cluster's network changed while pods run: another plug-in, another VXLAN port, another MTU."""
import concurrent.futures
import json
import pathlib
import re

import pytest

from lab import Lab, probe, wait_for
from traffic import Traffic

SUBNET, MULTITENANT = "redhat/openshift-ovs-subnet", "redhat/openshift-ovs-multitenant"


class Cluster:
    def __init__(self, lab):
        self.lab = lab
        lab.project("red")
        lab.project("blue")
        self.pods = {f"{p}{n}": lab.pod(f"{p}/p{n}", f"node{n}") for p in ("default", "red", "blue") for n in (1, 2)}

    def __getitem__(self, name):
        return self.pods[name]

    def patch(self, **fields):
        self.lab.kubectl("patch", "clusternetwork", "default", "--type=merge", "-p", json.dumps(fields))

    def wait_plugin(self, multitenant):
        """Each node judges by VNID, or does not."""
        for node in ("node1", "node2"):
            wait_for(f"the plug-in on {node}", lambda n=node: self.lab.plugin_is_applied(n, multitenant))

    def identities(self):
        """What must not change: processes of agents, ports and interfaces of pods."""
        ids = {}
        for node in ("node1", "node2"):
            ids[node] = (self.lab.node(node)["pid"], self.lab.ports(node))
        for name, pod in self.pods.items():
            ids[name] = pod.ns(["ip", "-o", "link", "show", "eth0"]).stdout.split("@")[0]
        return ids

    def assert_isolated(self):
        assert not self["red1"].can_ping(self["blue1"].ip, tries=1)
        assert not self["red1"].can_ping(self["blue2"].ip, tries=1)
        for a, b in (("red1", "red2"), ("default1", "blue2"), ("blue2", "default1"), ("blue2", "blue1")):
            assert self[a].can_ping(self[b].ip), (a, b)

    def assert_flat(self):
        for a in self.pods:
            for b in self.pods:
                assert a == b or self[a].can_ping(self[b].ip), (a, b)


@pytest.fixture(scope="module")
def own(make_lab):
    lab = make_lab("sw", nodes=2, plugin=SUBNET)
    yield Cluster(lab)
    lab.down(check=False)


def with_configuration(lab, **changes):
    """The master with another configuration."""
    path = pathlib.Path("/run/tenet/lab") / lab.name / "master/master-config.yaml"
    text = path.read_text()
    for key, value in changes.items():
        assert re.search(rf"(?m)^\s*{key}:", text), text
        text = re.sub(rf"(?m)^(\s*{key}:).*$", rf"\1 {value}", text)
    path.write_text(text)
    lab.cmd("master", "restart")


def test_plugin_switched_by_the_masters_configuration(own):
    """subnet to multitenant: what is allowed under both flows on; then what must be closed is.  And back."""
    before = own.identities()
    own.assert_flat()
    pairs = [(own["red1"], own["red2"]), (own["default1"], own["blue2"]), (own["blue1"], own["default2"])]
    with Traffic(pairs, rate=1000):
        with_configuration(own.lab, networkPluginName=MULTITENANT)
        own.wait_plugin(True)
    own.assert_isolated()
    assert own.identities() == before
    netids = {n["metadata"]["name"]: n["netid"] for n in own.lab.objects("netnamespaces")}
    assert netids["default"] == 0 and len(set(netids.values())) == len(netids) == 3
    # The ids are stored with the ports: an agent that starts again finds nothing to do.
    for node in ("node1", "node2"):
        rules = own.lab.rules(node)
        own.lab.cmd("node", "restart", node)
        wait_for("the same rules", lambda: own.lab.rules(node) == rules)
    own.assert_isolated()
    before = own.identities()
    with Traffic(pairs, rate=1000):
        with_configuration(own.lab, networkPluginName=SUBNET)
        own.wait_plugin(False)
    own.assert_flat()
    assert own.identities() == before


def test_plugin_switched_in_the_object(own):
    before = own.identities()
    with Traffic([(own["red1"], own["red2"])], rate=1000):
        own.patch(pluginName=MULTITENANT)
        own.wait_plugin(True)
        own.assert_isolated()
        own.patch(pluginName=SUBNET)
        own.wait_plugin(False)
    own.assert_flat()
    assert own.identities() == before


def test_pods_of_a_project_without_vnid_are_kept_apart(own):
    """A switch to multitenant while a project has no NetNamespace and gets none: its pods are not global."""
    lab = own.lab
    lab.project("ghost")
    pods = [lab.pod("ghost/g1", "node1"), lab.pod("ghost/g2", "node2")]
    try:
        assert pods[0].can_ping(own["red1"].ip)
        lab.cmd("node", "stop", "node1")
        lab.cmd("node", "stop", "node2")
        # Their nodes are stopped, and would not end them.
        lab.kubectl("delete", "pods", "-n", "ghost", "--all", "--grace-period=0", "--force")
        lab.kubectl("delete", "namespace", "ghost", "--wait=false")
        wait_for("the project to go", lambda: "ghost" not in [n["metadata"]["name"] for n in lab.objects("namespaces")])
        own.patch(pluginName=MULTITENANT)
        wait_for("VNIDs", lambda: len(lab.objects("netnamespaces")) >= 3)
        # An agent waits for ids that pods lack before it keeps them apart; both at the same time.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda node: lab.cmd("node", "start", node, timeout=120), ("node1", "node2")))
        own.wait_plugin(True)
        wait_for("ghost's pods to be kept apart", lambda: not pods[0].can_ping(own["red1"].ip, tries=1))
        assert not pods[0].can_ping(pods[1].ip, tries=1) and not own["red2"].can_ping(pods[0].ip, tries=1)
        assert own["default1"].can_ping(pods[0].ip)
        own.assert_isolated()
    finally:
        own.patch(pluginName=SUBNET)
        own.wait_plugin(False)
        for pod in pods:
            lab.cmd("pod", "delete", pod.ref, check=False)


def test_vxlan_port_changes_on_every_node(own):
    before = own.identities()
    own.patch(vxlanPort=4790)
    try:
        for node in ("node1", "node2"):
            wait_for("the port", lambda: own.lab.vxlan_port(node) == 4790)
            wait_for("the rules", lambda: "udp dport 4790" in own.lab.ns(node, ["nft", "list", "table", "ip", "tenet"]).stdout)
            wait_for("the rules", lambda: [r for r in own.lab.rules(node) if re.search(r"tp_dst=4790|\"vxlanPort\": 4790", r)])
            assert not [r for r in own.lab.rules(node) if re.search(r"tp_dst=4789|\"vxlanPort\": 4789", r)]
        wait_for("the nodes to meet again", lambda: own["red1"].can_ping(own["red2"].ip))
        dump = own.lab.ns_popen("wire", ["timeout", "10", "tcpdump", "-lnni", "any", "-c", "1", "udp port 4790"])
        wait_for("a packet on the wire", lambda: own["red1"].can_ping(own["red2"].ip) and dump.poll() is not None)
        assert "4790" in dump.communicate()[0]
        assert own.identities() == before
        # A pod cannot write to the new port, as it could not to the old one.
        probe(own["red1"], "udp", ["10.245.2.4:4790"], timeout=0.2)
    finally:
        own.patch(vxlanPort=4789)
    for node in ("node1", "node2"):
        wait_for("the port", lambda: own.lab.vxlan_port(node) == 4789)
    wait_for("the nodes to meet again", lambda: own["red1"].can_ping(own["red2"].ip))
    own.assert_flat()


def mtu_of(pod):
    return int(re.search(r"mtu (\d+)", pod.ns(["ip", "link", "show", "eth0"]).stdout).group(1))


def test_mtu_for_new_pods_and_tun0(own):
    before = own.identities()
    old = mtu_of(own["red1"])
    own.patch(mtu=1300)
    try:
        for node in ("node1", "node2"):
            wait_for("tun0", lambda: "mtu 1300" in own.lab.ns(node, ["ip", "link", "show", "tun0"]).stdout)
        new = own.lab.pod("red/new", "node1")
        assert mtu_of(new) == 1300 and mtu_of(own["red1"]) == old
        assert new.can_ping(own["red2"].ip, size=1272, extra=("-M", "do"))
        assert own["red1"].can_ping(own["red2"].ip)
        own.lab.delete_pod("red/new")
        assert own.identities() == before
    finally:
        own.patch(mtu=old)
    for node in ("node1", "node2"):
        wait_for("tun0", lambda: f"mtu {old}" in own.lab.ns(node, ["ip", "link", "show", "tun0"]).stdout)


def ready_condition(lab, node):
    return next(c for c in lab.object("node", node)["status"]["conditions"] if c["type"] == "Ready")


def test_a_network_that_cannot_be_followed_is_told_and_the_old_one_stays(own):
    """More MTU than the hosts' links have: the node says so, and goes on; when it is mended it is ready."""
    rules = own.lab.rules("node1")
    own.patch(mtu=9000)
    try:
        wait_for("the node to say so", lambda: ready_condition(own.lab, "node1")["status"] == "False")
        condition = ready_condition(own.lab, "node1")
        assert condition["reason"] == "ClusterNetworkRefused" and "9000" in condition["message"]
        assert own.lab.rules("node1") == rules and own["red1"].can_ping(own["red2"].ip)
    finally:
        own.patch(mtu=1450)
    wait_for("the node to be ready", lambda: ready_condition(own.lab, "node1")["status"] == "True")


def test_invalid_values_are_refused(own):
    for field, value in (("vxlanPort", 0), ("vxlanPort", 65536), ("vxlanPort", "4789"), ("mtu", 575), ("mtu", 65537),
                         ("pluginName", "redhat/openshift-ovs-nothing")):
        r = own.lab.kubectl("patch", "clusternetwork", "default", "--type=merge", "-p", json.dumps({field: value}),
                            check=False)
        assert r.returncode != 0 and field in r.stderr, (field, value, r.stderr)


POLICY = "redhat/openshift-ovs-networkpolicy"
DENY = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "only-red", "namespace": "red"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]}}


def test_every_switch_between_the_three_plugins_is_without_loss(own):
    """Around all of them, under traffic that each allows: within a project, and between a global pod and others."""
    before = own.identities()
    pairs = [(own["red1"], own["red2"]), (own["default1"], own["blue2"])]
    own.lab.kubectl("create", "-f", "-", input=json.dumps(DENY))
    try:
        with Traffic(pairs, rate=1000):
            for plugin in (POLICY, MULTITENANT, POLICY, SUBNET, MULTITENANT, SUBNET):
                own.patch(pluginName=plugin)
                if plugin == POLICY:
                    wait_for("the policy to be in force", lambda: not own["blue1"].can_ping(own["red1"].ip, tries=1)
                             and not own["blue1"].can_ping(own["red2"].ip, tries=1))
                    wait_for("what no policy forbids", lambda: own["red1"].can_ping(own["blue1"].ip, tries=1)
                             and own["red1"].can_ping(own["blue2"].ip, tries=1))
                elif plugin == MULTITENANT:
                    own.wait_plugin(True)
                    own.assert_isolated()
                else:
                    wait_for("all to be open", lambda: own["blue1"].can_ping(own["red2"].ip, tries=1)
                             and own["blue2"].can_ping(own["red1"].ip, tries=1))
    finally:
        own.lab.kubectl("delete", "networkpolicy", "-n", "red", "only-red")
        own.patch(pluginName=SUBNET)
    own.assert_flat()
    assert own.identities() == before
