#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the packets lost by restarts: numbered datagrams between two pods of one node, 2,000 a second.

  agent restart, kill -9   the number of lost datagrams: it must be 0
  upgrade                  the same with the flows of another version in br0 when the agent starts
  Open vSwitch             its daemons are killed and started, each and both: the longest time without a packet, and the
                           part of it that is Tenet's: from when the switch answers again (br0.mgmt sends its HELLO)
                           until the first packet arrives

With the userspace datapath the switch also stops while it has no database, and forwards again up to a second after it has
found the database.

usage: restart.py [--build build] [--rounds 5]
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATE = 2000

# Prints the arrival times of all packets as JSON when it is told to end.
ARRIVALS = """
import json, signal, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
s.bind(("0.0.0.0", int(sys.argv[1])))
s.settimeout(0.3)
stop = False
def end(*a):
    global stop
    stop = True
signal.signal(signal.SIGTERM, end)
times = {}
print("ready", flush=True)
while True:
    try:
        n = int(s.recv(64))
    except socket.timeout:
        if stop:
            break
        continue
    times[n] = time.monotonic()
print(json.dumps(sorted(times.items())), flush=True)
"""


class Packets:
    def __init__(self, traffic, a, b):
        self.traffic = traffic
        self.receiver = traffic.start(b.popen, ARRIVALS, 7000)
        self.sender = traffic.start(a.popen, traffic.SENDER, b.ip, 7000, RATE, 0)
        time.sleep(0.5)  # some packets before it begins

    def stop(self):
        """(sent, [(number, time of arrival)])"""
        time.sleep(0.5)  # and some after
        sent = json.loads(self.traffic.finish(self.sender)[1])["sent"]
        return sent, json.loads(self.traffic.finish(self.receiver)[1])


def longest_gap(arrivals):
    """(length, end) of the longest time without a packet."""
    times = sorted(t for _, t in arrivals)
    return max((b - a, b) for a, b in zip(times, times[1:]))


class Answer(threading.Thread):
    """Notes when the switch answers for the first time from now on."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.at = path, None
        self.start()

    def run(self):
        while self.at is None:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(0.02)
                try:
                    s.connect(self.path)
                    if s.recv(8):
                        self.at = time.monotonic()
                except OSError:
                    time.sleep(0.001)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--rounds", type=int, default=5)
    args = ap.parse_args()
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    import traffic
    from lab import Lab, wait_for
    from test_restart import older_pipeline

    lab = Lab("rst", nodes=1, plugin="redhat/openshift-ovs-multitenant")
    try:
        lab.up()
        lab.project("red")
        a, b = lab.pod("red/a"), lab.pod("red/b")
        rundir = pathlib.Path(lab.ovs_rundir("node1"))
        mgmt = str(rundir / "br0.mgmt")
        flows = lab.flows("node1")

        def as_before():
            try:
                return lab.flows("node1") == flows
            except AssertionError:  # nobody listens yet
                return False

        def kill_agent():
            os.kill(lab.node("node1")["pid"], signal.SIGKILL)

        def upgrade():
            lab.cmd("node", "stop", "node1")
            with tempfile.NamedTemporaryFile("w", suffix=".flows") as file:
                file.write(older_pipeline(flows, 3))
                file.flush()
                lab.ns("node1", ["ovs-ofctl", "-O", "OpenFlow14", "--bundle", "replace-flows", f"unix:{mgmt}",
                                 file.name])

        print(f"{RATE} packets a second, {args.rounds} rounds\n{'agent':<24}{'sent':>10}{'lost':>8}")
        for name, before in (("restart", None), ("kill -9", kill_agent), ("upgrade", upgrade)):
            sent = lost = 0
            for _ in range(args.rounds):
                p = Packets(traffic, a, b)
                if before:
                    before()
                lab.cmd("node", "restart", "node1")
                wait_for("our flows", as_before)
                n, arrivals = p.stop()
                sent, lost = sent + n, lost + n - len(arrivals)
            print(f"{name:<24}{sent:>10}{lost:>8}")
            result(f"packets lost, agent: {name}", lost, f"of {sent}")

        print(f"\n{'Open vSwitch':<24}{'no packet for':>20}{'of that ours':>20}")
        for name, daemons in (("ovs-vswitchd", ["ovs-vswitchd"]), ("ovsdb-server", ["ovsdb-server"]),
                              ("both", ["ovs-vswitchd", "ovsdb-server"])):
            gaps, mine = [], []
            for _ in range(args.rounds):
                p = Packets(traffic, a, b)
                for d in daemons:
                    os.kill(int((rundir / f"{d}.pid").read_text()), signal.SIGKILL)
                time.sleep(0.05)  # until nothing of the old one can answer
                answer = Answer(mgmt)
                lab.cmd("ovs", "start", "node1")
                wait_for("our flows", as_before)
                arrivals = p.stop()[1]
                gap, end = longest_gap(arrivals)
                gaps.append(gap * 1000)
                mine.append(max(0.0, (end - answer.at) * 1000))
            print(f"{name:<24}{statistics.median(gaps):>11.0f} ms median{statistics.median(mine):>11.0f} ms median, "
                  f"{max(mine):.0f} worst")
            result(f"no packet for, killed: {name}", statistics.median(gaps), "ms")
            result(f"of that after the switch answers, killed: {name}", statistics.median(mine), "ms")
            result(f"the same, worst, killed: {name}", max(mine), "ms")
    finally:
        lab.down(check=False)


if __name__ == "__main__":
    main()
