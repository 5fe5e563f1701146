# SPDX-License-Identifier: Apache-2.0
"""Network policy on a node of the datapath ebpf (node1) beside one with Open vSwitch: what test_networkpolicy.py asks of
every datapath, and what is this one's own."""
import pathlib

import pytest

from lab import TENET, map_rows, run, wait_for
from netpol import Cluster, admin, expr, netpol
from test_ebpf import configured, in_place, metrics
from test_networkpolicy import (A, NODES, SERVES, SWAPPED, X, Y, Z, block, cases, enforce, judge_cases, lift,  # noqa: F401
                                port, spaces,
                                test_add_is_never_reachable_before_its_policy,
                                test_add_waits_for_the_pods_object_and_fails_closed,
                                test_changes_take_effect_on_running_pods, test_fragments_of_what_a_port_allows_pass,
                                test_open_connection_follows_the_policy,
                                test_outside_is_judged_by_block, test_own_node_reaches_isolated_pods_and_gets_answers,
                                test_stored_policy_that_cannot_be_compiled_isolates_and_is_told)
from traffic import Traffic


@pytest.fixture(scope="module")
def cluster(make_lab):
    lab = make_lab("ep", nodes=2, plugin="networkpolicy", datapath="ebpf,ovs")
    c = Cluster(lab, {"x": {"ns": "x"}, "y": {"ns": "y", "team": "ops"}, "z": {"ns": "z", "team": "ops"}})
    try:
        for ref, node in NODES.items():
            c.add(ref, node, {"pod": ref[-1]}, SWAPPED if ref == "y/b" else SERVES)
        yield c
    finally:
        c.close()
        lab.down(check=False)


def rows(cluster, name):
    return map_rows(pathlib.Path(cluster.lab.node("node1")["agentSocket"]).parent / "bpf/maps" / name)


TABLES = ("tenet_classes", "tenet_blocks", "tenet_pairs", "tenet_port_sets")


def test_truth_tables(cluster):
    """Every eighth of them, and all of the administrator's kinds."""
    every = cases(cluster)
    chosen = {k: v for i, (k, v) in enumerate(every.items()) if i % 8 == 0 or "admin" in k or "baseline" in k}
    assert len(chosen) >= 18
    judge_cases(cluster, chosen)
    wait_for("nothing to be left in the maps", lambda: not any(rows(cluster, t) for t in TABLES))


def test_restart_of_the_agent_loses_and_writes_nothing(cluster):
    """Also of connections that only their tracking allows: what they answer has no policy that would let it."""
    a, b, far = cluster.pod("x/a"), cluster.pod("x/b"), cluster.pod("x/c")
    policies = [netpol("in", "x", expr("pod", "In", "a"), ingress=[{"from": [spaces(X)]}], egress=[],
                       types=["Ingress", "Egress"]),
                admin("p", 3, {"namespaces": Z}, egress=[{"action": "Deny", "to": [{"networks": ["10.128.2.0/23"]}],
                                                          "ports": [{"portNumber": {"protocol": "TCP", "port": 80}}]}])]
    enforce(cluster, policies)
    try:
        assert not cluster.check(policies)
        before = {t: rows(cluster, t) for t in TABLES}
        assert all(before.values())
        with Traffic([(b, a), (far, a)], rate=1000):
            cluster.lab.cmd("node", "restart", "node1")
        assert in_place(cluster.lab)["changes"] == "0"
        assert {t: rows(cluster, t) for t in TABLES} == before
        assert not cluster.check(policies)
    finally:
        lift(cluster, policies)


def test_errors_about_a_connection_reach_who_began_it(cluster):
    """A port that nobody listens on: the error comes from a pod that may send nothing."""
    a, b = cluster.pod("x/a"), cluster.pod("x/b")
    p = netpol("p", "x", A, ingress=[{}], egress=[], types=["Ingress", "Egress"])
    cluster.policy(p)
    try:
        assert not cluster.check([p])
        r = b.ns(["/usr/bin/python3", "-c", "import socket, sys\n"
                    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)\n"
                    "s.connect((sys.argv[1], 9)); s.send(b'x')\n"
                    "try: s.recv(1)\n"
                    "except ConnectionRefusedError: print('refused')", a.ip])
        assert r.stdout.strip() == "refused"
        assert not a.can_ping(b.ip, tries=1)
    finally:
        lift(cluster, [p])


def test_what_does_not_fit_isolates_whom_it_is_about(cluster):
    """Maps with room for a dozen, and a policy with more ports than that."""
    def refused():
        return int(metrics(cluster.lab)['tenet_node_refused_total{what="policy"}'])
    many = netpol("many", "x", A, ingress=[{"ports": [port(n) for n in range(80, 120, 2)]}])
    with configured(cluster.lab, "node1", "ebpf:\n  maxEntries: 12\n"):
        cluster.policy(many)
        try:
            wait_for("rows to be refused", refused)
            assert "network policy does not all come into force" in cluster.lab.agent_log("node1")
            # Nobody reaches the pod; all others go on.
            assert not cluster.check([netpol("as-if", "x", A, types=["Ingress"])])
        finally:
            lift(cluster, [many])
        assert not cluster.check([])
    assert not cluster.check([])


def test_a_trace_says_when_the_maps_do_not_do_what_policies_say(cluster):
    """Somebody takes a row away: the packet passes, and should not."""
    a, z = cluster.pod("x/a"), cluster.pod("z/a")
    p = netpol("p", "x", {}, types=["Ingress"])
    trace = [TENET, "trace", "--lab", cluster.lab.name, z.ref, a.ref, "udp", "81"]
    enforce(cluster, [p])
    try:
        assert not cluster.check([p])
        pin = pathlib.Path(cluster.lab.node("node1")["agentSocket"]).parent / "bpf/maps/tenet_classes"
        run(["bpftool", "map", "delete", "pinned", pin, "key", *a.ip.split(".")])
        r = wait_for("what has just changed to be none", lambda: (lambda r: r if r.returncode == 3 else None)(run(trace, check=False)))
        said = "ingress policies deny it: pods selected by NetworkPolicy x/p (isolated: what no rule allows is denied), THE DATAPATH DOES NOT"
        assert said in r.stdout and "switch and model disagree" in r.stdout and "MODEL DISAGREES" not in r.stdout
        assert "the datapath does not do what the policies say" in cluster.lab.agent_log("node1")
        cluster.lab.cmd("node", "restart", "node1")
        assert run(trace, check=False).returncode == 1
        assert not cluster.check([p])
    finally:
        lift(cluster, [p])
