# SPDX-License-Identifier: Apache-2.0
"""A machine outside of the cluster with nothing but a Linux VXLAN device, which reaches pods by a ghost HostSubnet."""
import json
import re

import pytest

from lab import Server, probe, wait_for
from test_packets import Capture

GHOST = {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "host": "appliance", "hostIP": "10.245.2.254",
         "metadata": {"name": "appliance", "annotations": {"pod.network.openshift.io/assign-subnet": "true",
                                                           "pod.network.openshift.io/fixed-vnid-host": "0"}}}


def mac(ip):
    """The MAC that pods have."""
    return "0a:58:" + ":".join(f"{int(x):02x}" for x in ip.split("."))


class Appliance:
    """The lab's host "outside" with a device of VNI 0, the address of its ghost subnet, and each pod's node known to it."""

    def __init__(self, lab):
        self.lab = lab
        lab.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(GHOST))
        subnet = wait_for("the ghost's subnet", lambda: lab.object("hostsubnet", "appliance").get("subnet"))
        self.ip = re.sub(r"0/\d+$", "9", subnet)
        self.ns("ip", "link", "add", "tunnel", "address", mac(self.ip), "mtu", "1450", "type", "vxlan", "id", "0", "dstport", "4789",
                "local", GHOST["hostIP"], "nolearning")
        self.ns("ip", "link", "set", "tunnel", "up")
        # The mask is that of the cluster network, so that all pods are on the device.
        self.ns("ip", "addr", "add", f"{self.ip}/14", "dev", "tunnel")

    def ns(self, *argv, **kw):
        return self.lab.ns("outside", argv, **kw)

    def learn(self, pod):
        self.ns("ip", "neigh", "replace", pod.ip, "lladdr", mac(pod.ip), "dev", "tunnel")
        self.ns("bridge", "fdb", "replace", mac(pod.ip), "dev", "tunnel", "dst", self.lab.node(pod.node)["hostIP"])

    def remove(self):
        self.ns("ip", "link", "del", "tunnel", check=False)
        self.lab.kubectl("delete", "hostsubnet", "appliance")


@pytest.fixture(scope="module")
def lab(make_lab):
    """A node of each datapath."""
    lab = make_lab("ap", nodes=2, plugin="redhat/openshift-ovs-multitenant", datapath="ovs,ebpf")
    for project in ("red", "blue", "green"):
        lab.project(project)
    lab.pods = [lab.pod("red/a", "node1"), lab.pod("blue/a", "node2"), lab.pod("green/a", "node1")]
    return lab


@pytest.fixture
def appliance(lab):
    a = Appliance(lab)
    for pod in lab.pods:
        a.learn(pod)
    yield a
    a.remove()


def get(appliance, address):
    """The address with which the pod's server saw the appliance; "": none."""
    return appliance.ns("/usr/bin/python3", "-c", "import socket, sys; s = socket.create_connection((sys.argv[1], 9000), 2); "
                        "print(s.recv(64).decode())", address, check=False).stdout.strip()


def test_an_appliance_exchanges_tcp_with_pods_of_three_projects(lab, appliance):
    """SDN-M-23, SDN-N-25, ISO-05: each pod sees the appliance's own address, and every packet has VNI 0 in both directions."""
    assert len({p.vnid for p in lab.pods}) == 3 and 0 not in {p.vnid for p in lab.pods}
    servers = [Server(p.popen, "tcp", 9000) for p in lab.pods]
    try:
        wait_for("the nodes to know the ghost", lambda: all(get(appliance, p.ip) for p in lab.pods))
        with Capture(lambda argv: lab.ns_popen("outside", argv), "eth0", "udp port 4789") as wire:
            assert [get(appliance, p.ip) for p in lab.pods] == [appliance.ip] * 3
    finally:
        for s in servers:
            s.stop()
    vnis = re.findall(r"vni (\d+)", wire.text())
    assert len(vnis) >= 18 and set(vnis) == {"0"}
    for pod in lab.pods:
        assert f"{appliance.ip}." in wire.text() and f"{pod.ip}.9000 > {appliance.ip}." in wire.text()


def test_pods_of_every_project_begin_connections_to_it(lab, appliance):
    server = Server(lambda argv: lab.ns_popen("outside", argv), "tcp", 9001)
    try:
        for pod in lab.pods:
            wait_for("an answer", lambda: probe(pod, "tcp", [f"{appliance.ip}:9001"])[f"{appliance.ip}:9001"] == pod.ip)
    finally:
        server.stop()


@pytest.mark.parametrize("victim", [0, 1])
def test_an_appliance_cannot_send_as_a_pod_of_a_node(lab, appliance, victim):
    """The nodes take packets of a VTEP only with a source in its own subnet."""
    red = lab.pods[victim]
    other = lab.pods[1 - victim].ip.rsplit(".", 1)[0] + ".200"
    appliance.ns("ip", "addr", "add", f"{other}/32", "dev", "tunnel")
    try:
        with Capture(red.popen, "eth0", f"host {other}") as seen:
            appliance.ns("ping", "-c", "2", "-i", "0.2", "-W", "1", "-I", other, red.ip, check=False)
            appliance.ns("ping", "-c", "1", "-W", "2", red.ip)
    finally:
        appliance.ns("ip", "addr", "del", f"{other}/32", "dev", "tunnel")
    assert " > " not in seen.text()


def test_a_ghost_that_is_deleted_reaches_nothing(lab):
    a = Appliance(lab)

    def answers(pod):
        return a.ns("ping", "-c", "1", "-W", "1", pod.ip, check=False).returncode == 0

    try:
        for pod in lab.pods:
            a.learn(pod)
            wait_for("an answer", lambda: answers(pod))
    finally:
        lab.kubectl("delete", "hostsubnet", "appliance")
        try:
            wait_for("silence", lambda: not any(map(answers, lab.pods)))
        finally:
            a.ns("ip", "link", "del", "tunnel")
