# SPDX-License-Identifier: Apache-2.0
"""Services for pods of a node with the datapath ebpf (node1) beside one with Open vSwitch: what test_services.py asks of
every datapath, and what is this one's own."""
import json

import pytest

import test_services
from lab import wait_for
from test_services import (PLUGINS, STORM, Services, finish, start, storm_counts,  # noqa: F401
                           test_affinity_keeps_to_an_endpoint_while_it_is_there,
                           test_answers_to_the_host_are_not_for_node_ports,
                           test_endpoint_removed_under_load, test_endpoints_outside_the_cluster,
                           test_every_kind_of_address_from_everywhere,
                           test_idle_service_asks_for_pods_and_keeps_who_called,
                           test_large_datagrams_and_errors_come_back_translated, test_new_connections_are_spread_evenly,
                           test_nodes_and_the_outside_reach_every_kind_of_address,
                           test_open_connections_outlive_endpoint_and_service,
                           test_terminating_endpoints_serve_when_no_other_is_left, test_traffic_policy_local,
                           test_udp_goes_elsewhere_when_its_endpoint_ends)


EBPF_HAS_POLICY = 40  # where struct ebpf_settings has it


@pytest.fixture(scope="module")
def services(make_lab):
    s = Services(lambda label, **kw: make_lab(label, datapath="ebpf,ovs", **kw), PLUGINS[1])
    yield s
    s.stop()
    s.lab.down(check=False)


@pytest.fixture
def one(services):
    yield services
    services.clean()


@pytest.fixture
def any_plugin(one):
    return one


def test_a_project_that_becomes_global_opens_its_services(one):
    s = one
    ip = s.service("shared", [s.b])

    def reached():
        return s.who(s.x, f"tcp:{ip}:80:1", timeout=0.3) == [{s.b.ip}]

    assert not reached()
    try:
        test_services.tenet(s, "adm", "pod-network", "make-projects-global", "red")
        wait_for("it to be reached", reached)
    finally:
        test_services.tenet(s, "adm", "pod-network", "isolate-projects", "red")
    wait_for("it to be closed", lambda: not reached())


def test_agent_restarted_under_load(one):
    """Connections go on, and new ones are made, while there is no agent and while one comes back."""
    s = one
    plain = s.service("calm", [s.b, s.c])
    storm = start(s.a.popen, STORM, plain, 80)
    try:
        for _ in range(2):
            s.lab.cmd("node", "restart", "node1")
        before = sum(storm_counts(storm)[0].values())
        wait_for("more connections", lambda: sum(storm_counts(storm)[0].values()) > before + 50)
        errors = json.loads(finish(storm)[1])[1]
        assert not errors, errors[:5]
    finally:
        storm.kill()
        storm.communicate()


def test_what_leads_nowhere_is_said_at_once(one):
    """Also without an agent: the programs say it themselves."""
    s = one
    ip, nowhere = s.service("none", []), s.service("nowhere", ["10.128.250.9"])
    targets = [f"tcp:{ip}:80:1", f"udp:{ip}:80:1", f"tcp:{ip}:81:1", "tcp:172.30.9.9:80:1", f"tcp:{nowhere}:80:1"]
    want = [{"ECONNREFUSED"}] * 4 + [{"EHOSTUNREACH"}]
    assert s.who(s.a, *targets) == want
    assert s.drops("service-without-endpoints") >= 2 and s.drops("service-not-available") >= 2
    s.lab.cmd("node", "stop", "node1")
    try:
        assert wait_for("the limit of errors to be over", lambda: s.who(s.a, *targets) == want)
    finally:
        s.lab.cmd("node", "start", "node1")


def test_errors_are_limited(one):
    code = """
import errno, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
s.connect((sys.argv[1], 9))
errors, end = 0, time.monotonic() + 2
while time.monotonic() < end:
    try:
        s.send(b"x")
        time.sleep(0.002)
    except OSError as e:
        errors += e.errno == errno.ECONNREFUSED
print(errors)
"""
    errors = int(one.b.ns(["/usr/bin/python3", "-c", code, "172.30.9.9"]).stdout)
    assert 10 <= errors <= 40, errors


def test_what_asks_an_endpoint_itself_is_answered_by_it(one):
    """Also from a port from which it asked the service before."""
    s = one
    ip = s.service("both", [s.c])
    code = """
import socket, sys
for target in ((sys.argv[1], 80), (sys.argv[2], int(sys.argv[3])), (sys.argv[1], 80)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.bind(("", 40123))
    s.connect(target)
    s.send(b"?")
    print(s.recv(64).decode().split()[0])
    s.close()
"""
    out = s.a.ns(["/usr/bin/python3", "-c", code, ip, s.c.ip, str(test_services.PORT)]).stdout.split()
    assert out == [s.c.ip] * 3


def test_policy_sees_both_true_ends(one):
    """Of connections to services; where policies are none's business before and after."""
    s = one

    def plugin(name, ready):
        s.kubectl("patch", "clusternetwork", "default", "--type=merge", "-p", json.dumps({"pluginName": name}))
        wait_for(name, lambda: all(ready(node) for node in ("node1", "node2")))

    def in_force(node):
        if node == "node1":
            return any(value[EBPF_HAS_POLICY] for _, value in s.rows("tenet_settings"))
        return s.flows_of("table=31,", node)
    try:
        plugin(PLUGINS[2], in_force)
        test_services.test_policy_sees_both_true_ends(lambda _: s)
    finally:
        plugin(PLUGINS[1], lambda node: not in_force(node))
