# SPDX-License-Identifier: Apache-2.0
"""Isolation while something ends and begins again: a pod that never stops trying gets through in no moment of it."""
import contextlib
import threading

import pytest

from hostile import marker
from lab import wait_for


class Trying:
    """The attacker's datagrams to blue, forged and honest, for as long as the block runs; 'heard' is where any arrived."""

    def __init__(self, net):
        self.net, self.text, self.stopping, self.rounds = net, marker(), threading.Event(), 0
        targets = [net.pods["blue/near"], net.pods["blue/far"]]
        self.frames = [bytes(net.udp(t, self.text, source=s)) for t in targets
                       for s in (None, net.pods["blue/a"].ip, net.pods["red/near"].ip, net.gateway["node1"])]

    def run(self):
        while not self.stopping.is_set():
            with contextlib.suppress(OSError):  # the link may be away for a moment
                self.net.taps["red/a"].send(*self.frames)
            self.rounds += 1
            for name in ("blue/near", "blue/far"):
                self.net.taps[name].frames = [f for f in self.net.taps[name].read() if self.text in f]
            self.stopping.wait(0.002)

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        wait_for("tries", lambda: self.rounds > 5)
        return self

    def __exit__(self, *exc):
        before = self.rounds
        wait_for("tries after it", lambda: self.rounds > before + 20)
        self.stopping.set()
        self.thread.join()
        self.heard = self.net.who_heard(self.text, ("blue/near", "blue/far"))


def again(net):
    wait_for("both nodes", lambda: all(net.lab.node(n)["ready"] for n in net.host))
    wait_for("separate projects", net.is_separated)


@pytest.mark.parametrize("how", ["restart", "kill"])
@pytest.mark.parametrize("node", ["node1", "node2"])
def test_isolation_holds_while_an_agent_is_away_and_comes_back(net, node, how):
    with Trying(net) as t:
        if how == "restart":
            net.lab.cmd("node", "restart", node)
        else:
            net.lab.cmd("node", "kill", node)
            net.lab.cmd("node", "start", node)
        again(net)
    assert t.heard == []


def test_isolation_holds_while_the_switch_is_away_and_comes_back(net):
    """Of Open vSwitch; the other datapath has none, and its programs stay when its agent ends."""
    with Trying(net) as t:
        for node in net.host:
            if net.lab.has_ovs(node):
                net.lab.cmd("ovs", "kill", node)
                net.lab.cmd("ovs", "start", node)
        again(net)
    assert t.heard == []


def test_isolation_holds_without_a_master_and_when_it_is_back(net):
    with Trying(net) as t:
        net.lab.cmd("master", "kill")
        net.lab.cmd("node", "kill", "node1")
        before = t.rounds
        wait_for("tries", lambda: t.rounds > before + 100)
        net.lab.cmd("master", "start")
        net.lab.cmd("node", "start", "node1")
        again(net)
    assert t.heard == []


def test_isolation_holds_while_pods_come_and_go(net):
    """An address that was blue's is given to red, and the other way round: nobody hears what was for the one before."""
    with Trying(net) as t:
        for i in range(6):
            for project in ("red", "blue"):
                net.lab.pod(f"{project}/churn", "node1" if i % 2 else "node2")
            for project in ("red", "blue"):
                net.lab.delete_pod(f"{project}/churn")
    assert t.heard == []
    again(net)
