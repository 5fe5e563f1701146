# SPDX-License-Identifier: Apache-2.0
"""No first packet between nodes is lost: the userspace datapath of Open vSwitch resolves the next hops of tunnels by a
table of its own, and drops what it has no entry for.  The agent fills that table."""
import re

import pytest

from lab import DATAPATH_TYPE, wait_for
from test_restart import kill_ovs

pytestmark = pytest.mark.skipif(DATAPATH_TYPE != "netdev", reason="the kernel's neighbours serve the kernel's datapath")


class Nodes:
    def __init__(self, lab):
        self.lab = lab
        lab.project("red")
        self.near, self.far = lab.pod("red/near", "node1"), lab.pod("red/far", "node2")
        self.ip = {n["name"]: n["hostIP"] for n in lab.status()["nodes"]}

    def appctl(self, *args, node="node1"):
        pid = (self.lab.ovs_rundir(node) / "ovs-vswitchd.pid").read_text().strip()
        control = self.lab.ovs_rundir(node) / f"ovs-vswitchd.{pid}.ctl"
        return self.lab.ns(node, ["ovs-appctl", "-t", control, *args]).stdout

    def entry(self):
        """The MAC by which node1's switch sends to node2; None: it would drop the packet."""
        found = re.search(rf"^{re.escape(self.ip['node2'])} +(\S+) +br-phy", self.appctl("tnl/neigh/show"), re.M)
        return found and found[1]

    def mac(self):
        return self.lab.ns("node2", ["cat", "/sys/class/net/br-phy/address"]).stdout.strip()

    def reached_at_once(self):
        """By the first packet, and the switch remembers nothing of earlier ones."""
        self.appctl("dpctl/del-flows")
        return self.near.can_ping(self.far.ip, tries=1)


@pytest.fixture(scope="module")
def nodes(make_lab):
    lab = make_lab("tu", nodes=2, plugin="redhat/openshift-ovs-subnet", datapath="ovs")
    yield Nodes(lab)
    lab.down(check=False)


def test_the_first_packet_of_a_new_cluster(nodes):
    wait_for("the entry of node2", lambda: nodes.entry() == nodes.mac())
    assert nodes.near.can_ping(nodes.far.ip, tries=1)


def test_an_entry_that_aged(nodes):
    for _ in range(3):
        nodes.appctl("tnl/neigh/flush")
        wait_for("the entry of node2", lambda: nodes.entry() == nodes.mac())
        assert nodes.reached_at_once()


def test_a_neighbour_with_another_mac(nodes):
    old = nodes.mac()
    new = old[:-2] + ("11" if old[-2:] != "11" else "12")
    nodes.lab.vsctl("node2", "set", "bridge", "br-phy", f'other_config:hwaddr="{new}"')
    wait_for("the new MAC of node2", lambda: nodes.mac() == new)
    # Node2 speaks first, as a host does whose address moved to another card.
    nodes.lab.ns("node2", ["ip", "neigh", "flush", "dev", "br-phy"])
    nodes.lab.ns("node2", ["ping", "-n", "-q", "-c", "3", "-i", "0.2", nodes.ip["node1"]], check=False)
    wait_for("node1's switch to send there", lambda: nodes.entry() == new)
    assert nodes.reached_at_once()


def test_a_restarted_switch(nodes):
    kill_ovs(nodes.lab, "ovs-vswitchd")
    nodes.lab.cmd("ovs", "start", "node1")
    wait_for("packets", lambda: nodes.near.can_ping(nodes.far.ip, tries=1))
    wait_for("the entry of node2", lambda: nodes.entry() == nodes.mac())
    assert nodes.reached_at_once()
