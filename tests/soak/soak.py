#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ADD and DEL for a long time, one in a hundred killed in the middle, with agents that die and hosts that restart.

A node whose subnet has 61 addresses; some workers attach and detach pods at random, as runtimes do: whatever
fails, or is killed, is followed by DEL until that succeeds.  One call in a hundred is killed after a random
time, tenet-cni by SIGKILL; the agent is killed now and then, and some times the host "restarts": the agent
and Open vSwitch die, all devices are gone, and the database of Open vSwitch stays (with the datapath ebpf, nothing).  At every pause, and in the
end, what there is must be what the runtimes believe: ports, their addresses, flows (or entries of maps), links, descriptors and
memory; at last the whole subnet is filled once, so that no address can be missing.

usage: soak.py [--build build] [--rounds 10000] [--workers 4] [--reboots 4] [--seed N]

Prints what it did; exit status 1 when anything was left behind.
"""
import argparse
import json
import os
import pathlib
import random
import secrets
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOST_BITS = 6
ADDRESSES = 2 ** HOST_BITS - 3  # network, gateway, broadcast
SLOTS = 6  # a worker
KILLED = 0.01  # of the calls
AGENT_KILLED = 0.002  # a call
RSS_GROWTH_KB = 4096
FD_SLACK = 8
FD_PORT = 4  # that a port of the switch may have
PAUSES = 20  # at which all is looked at


class Slot:
    """A pod's place: a network namespace, and the container that is in it."""

    def __init__(self, soak, number):
        self.soak, self.ns = soak, f"tenet-{soak.lab.name}-soak-{number}"
        self.id = self.ip = None

    def make(self):
        self.soak.run(["ip", "netns", "add", self.ns])

    def remove(self):
        self.soak.run(["ip", "netns", "del", self.ns], check=False)
        self.id = self.ip = None

    def cni(self, command, kill_after=None):
        """(status, output); status None when it was killed."""
        env = {**self.soak.env, "CNI_COMMAND": command, "CNI_CONTAINERID": self.id,
               "CNI_NETNS": f"/run/netns/{self.ns}", "CNI_IFNAME": "eth0", "CNI_PATH": os.path.dirname(self.soak.cni),
               "CNI_ARGS": f"K8S_POD_NAMESPACE=red;K8S_POD_NAME={self.id[:12]}"}
        if kill_after is not None:
            env["ASAN_OPTIONS"] = "detect_leaks=0"  # a report that is killed in the middle is an empty file
        p = subprocess.Popen([self.soak.cni], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        if kill_after is not None:
            try:
                p.communicate(self.soak.conf, timeout=kill_after)
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
                return None, ""
        else:
            out = p.communicate(self.soak.conf, timeout=120)[0]
            return p.returncode, out
        return None, ""

    def delete(self):
        """As a runtime: until it succeeds."""
        end = time.monotonic() + 120
        while self.cni("DEL")[0] != 0:
            assert time.monotonic() < end, f"DEL of {self.id} fails for ever"
            self.soak.count("failed DEL")
            time.sleep(0.02)  # a runtime does not try at once, either
        self.id = self.ip = None

    def step(self, rng):
        kill = rng.random() * 0.012 if rng.random() < self.soak.killed else None
        if kill is not None:
            self.soak.count("killed")
        if self.id is None:
            self.id = secrets.token_hex(32)
            self.soak.count("ADD")
            status, out = self.cni("ADD", kill)
            if status == 0:
                self.ip = json.loads(out)["ips"][0]["address"].split("/")[0]
            else:
                if status is not None:
                    self.soak.count("failed ADD")
                self.delete()
        else:
            self.soak.count("DEL")
            if kill is not None:
                self.cni("DEL", kill)
            self.delete()


class Soak:
    def __init__(self, lab, cni, run, wait_for, environment, rounds, workers, reboots, seed, killed):
        self.lab, self.cni, self.run, self.wait_for = lab, cni, run, wait_for
        self.rounds, self.reboots, self.seed, self.killed = rounds, reboots, seed, killed
        self.env = {k: v for k, v in environment().items() if not k.startswith("CNI_")}
        self.conf = next(pathlib.Path(lab.node("node1")["cniConfDir"]).glob("*.conf")).read_text()
        self.counts, self.lock = {}, threading.Lock()
        self.sanitized = b"__asan_init" in pathlib.Path(cni).read_bytes()
        self.slots = [Slot(self, i) for i in range(workers * SLOTS)]
        self.workers = workers
        self.base = self.rss = None
        self.one_agent = False  # No agent is killed any more: its memory is watched.

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + n

    # --- what there is ---
    def addresses(self):
        """{container: address} of the datapath's pods."""
        return {container: port[3] for container, port in self.lab.ports("node1").items()}

    def links(self):
        """Those of pods."""
        return set(self.lab.pod_links("node1"))

    def pods_in_rules(self):
        """How many there are by what packets are judged by: five flows each, or an entry of their address and of their link."""
        if self.lab.has_ovs("node1"):
            return len([f for f in self.lab.flows("node1") if "cookie=0x3" in f]) / 5
        return (len(self.lab.maps("node1", "pods")) + len(self.lab.maps("node1", "ports"))) / 2

    def descriptors(self, pid):
        return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))

    def ovs_pid(self):
        return int((pathlib.Path(self.lab.ovs_rundir("node1")) / "ovs-vswitchd.pid").read_text())

    def measure(self):
        pid = self.lab.node("node1")["pid"]
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        has_ovs = self.lab.has_ovs("node1")
        return {"agent": self.descriptors(pid), "ovs": self.descriptors(self.ovs_pid()) if has_ovs else 0,
                "ports": len(self.lab.vsctl("node1", "list-ports", "br0").split()) if has_ovs else 0,
                "rss": int(status["VmRSS"].split()[0]), "links": len(self.links()), "pid": pid}

    def look(self, what):
        """All is as the runtimes believe.  Links go a moment after the answer to DEL."""
        live = {s.id: s.ip for s in self.slots if s.id}
        try:
            self.wait_for("ports", lambda: self.addresses() == live, 30)
            self.wait_for("rules", lambda: self.pods_in_rules() == len(live), 30)
            self.wait_for("links", lambda: len(self.links()) == self.base["links"] + len(live), 30)
        except AssertionError as e:
            raise AssertionError(f"{what}: {e}: {len(live)} pods, ports {self.addresses()}, "
                                 f"pods in rules {self.pods_in_rules()}, links {self.links()}") from e
        assert len(set(live.values())) == len(live), f"{what}: two pods have one address: {live}"

    def look_at_rest(self, what):
        """No pods: also descriptors and memory are as in the beginning."""
        self.look(what)
        def closed():
            now, base = self.measure(), self.base
            spare = max(0, now["ports"] - base["ports"]) * FD_PORT
            return now["agent"] <= base["agent"] + FD_SLACK and now["ovs"] <= base["ovs"] + FD_SLACK + spare
        self.wait_for(f"{what}: descriptors to be closed", closed, 30)

    # --- what happens ---
    def work(self, number, rounds, failures):
        rng = random.Random(self.seed * 1000 + number)
        slots = self.slots[number * SLOTS:(number + 1) * SLOTS]
        try:
            for _ in range(rounds):
                rng.choice(slots).step(rng)
        except BaseException as e:  # told by the main thread
            failures.append(e)

    def run_workers(self, rounds):
        failures = []
        threads = [threading.Thread(target=self.work, args=(i, rounds // self.workers, failures))
                   for i in range(self.workers)]
        rng = random.Random(self.seed)
        self.seed += 1
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            threads[0].join(0.05)
            done = self.counts.get("ADD", 0) + self.counts.get("DEL", 0)
            if rng.random() < AGENT_KILLED * max(0, done - self.seen) and not (failures or self.one_agent):
                self.lab.cmd("node", "kill", "node1")
                self.lab.cmd("node", "start", "node1", timeout=180)
                self.count("agent killed")
            self.seen = done
        if failures:
            raise failures[0]

    def reboot(self):
        """The power goes and comes back."""
        self.lab.power_off("node1")
        for s in self.slots:
            s.remove()
        self.wait_for("the devices to be gone", lambda: len(self.links()) <= self.base["links"], 60)
        self.lab.power_on("node1")
        for s in self.slots:
            s.make()
        self.count("reboot")
        self.look("after a restart of the host")

    def empty(self):
        for s in self.slots:
            if s.id:
                s.delete()

    def fill_the_subnet(self):
        """Every address can be had, all at once, and no more than that."""
        extra = [Slot(self, 1000 + i) for i in range(ADDRESSES + 1)]
        try:
            for s in extra:
                s.make()
                s.id = secrets.token_hex(32)
            results = [s.cni("ADD") for s in extra]
            good = [json.loads(out)["ips"][0]["address"] for status, out in results if status == 0]
            assert len(set(good)) == len(good) == ADDRESSES, f"{len(good)} of {ADDRESSES} addresses can be had"
        finally:
            for s in extra:
                s.delete()
                s.remove()

    def go(self):
        for s in self.slots:
            s.make()
        try:
            self.base = {"links": len(self.links())}
            self.run_workers_first()
            self.all_rounds()
            self.empty()
            self.look_at_rest("in the end")
            self.fill_the_subnet()
            self.look_at_rest("after the subnet was full")
            m = self.measure()
            assert self.rss["pid"] == m["pid"], "the agent died"
            if not self.sanitized:
                grown = m["rss"] - self.rss["rss"]
                self.count("KiB of memory more", grown)
                assert grown <= RSS_GROWTH_KB, f"the agent's memory grew by {grown} KiB"
        finally:
            for s in self.slots:
                s.remove()

    def run_workers_first(self):
        """Some calls, so that caches are full; then what the rest is compared with."""
        self.seen = 0
        for s in self.slots[:8]:
            s.id = secrets.token_hex(32)
            assert s.cni("ADD")[0] == 0
        for s in self.slots[:8]:
            s.delete()
        self.look("in the beginning")
        self.base = self.measure()

    def all_rounds(self):
        pauses = min(PAUSES, max(2, self.rounds // 100))
        # A call that makes a pod and the one that removes it are two: rounds are ADDs.
        part = 2 * self.rounds // pauses
        reboot_at = {(k + 1) * pauses // (self.reboots + 1) for k in range(self.reboots)}
        for i in range(pauses):
            if i >= int(0.8 * pauses) and not self.one_agent:
                self.one_agent = True
                self.run_workers(part)  # its buffers have the size that they need
                self.rss = self.measure()
            self.run_workers(part)
            self.look(f"pause {i + 1} of {pauses}")
            if i + 1 in reboot_at:
                self.reboot()
            print(f"pause {i + 1} of {pauses}: " + ", ".join(f"{k} {v}" for k, v in sorted(self.counts.items())),
                  flush=True)


def soak(rounds, workers=4, reboots=4, seed=1, killed=KILLED):
    """Runs it in a lab of its own; the counts, or AssertionError."""
    import lab as lablib
    lab = lablib.Lab("soak", nodes=1, plugin="redhat/openshift-ovs-multitenant", host_subnet_length=HOST_BITS)
    try:
        lab.up()
        lab.project("red")
        s = Soak(lab, lablib.CNI, lablib.run, lablib.wait_for, lablib.environment, rounds, workers, reboots, seed,
                 killed)
        s.go()
        return s.counts
    finally:
        lab.down(check=False)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--rounds", type=int, default=10000, help="ADDs, each with its DEL (default %(default)s)")
    ap.add_argument("--workers", type=int, default=4)
    ap.add_argument("--reboots", type=int, default=4)
    ap.add_argument("--seed", type=int, default=int(time.time()))
    args = ap.parse_args()
    os.environ["TENET_BUILD"] = args.build
    sys.path.insert(0, str(ROOT / "tests/integration"))
    print(f"seed {args.seed}", flush=True)
    start = time.monotonic()
    try:
        counts = soak(args.rounds, args.workers, args.reboots, args.seed)
    except AssertionError as e:
        print(f"FAILED: {e}")
        return 1
    print(f"nothing left behind after {time.monotonic() - start:.0f} s: " +
          ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
