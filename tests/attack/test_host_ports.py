# SPDX-License-Identifier: Apache-2.0
"""Ports of the host and of nodes: what a pod with a host port can take from the node, and whom it lets past projects and policies.

Who may have one is the API's (test_project_member.py); here somebody has it."""
import contextlib
import errno
import json
import pathlib
import socket
import struct

import pytest

from hostile import marker
from lab import Server, run, wait_for
from nameserver import NameServer, a_record, answer, query
from netns import inside, tcp_connects, tcp_listener, udp_socket
from test_cni import Sandbox
from test_runtimes import pod_object


@pytest.fixture(scope="module")
def hp(net):
    """The lab with what Sandbox needs."""
    net.lab.conf = json.loads(next(pathlib.Path(net.lab.node("node1")["cniConfDir"]).glob("*.conf")).read_text())
    return net


@contextlib.contextmanager
def pod_with(net, project, *ports):
    """A sandbox on node1 with these (host port, container port, protocol[, host address]); yields it, status and answer of ADD."""
    name = "hp-" + marker().decode().strip("!")
    mappings = [dict(zip(("hostPort", "containerPort", "protocol", "hostIP"), p)) for p in ports]
    pod_object(net.lab, name, project, ports=mappings)
    box = Sandbox(net.lab, name, project)
    box.netns = f"/run/netns/{box.ns}"
    try:
        status, out = box.call("ADD", conf={**net.lab.conf, "runtimeConfig": {"portMappings": mappings}})
        yield box, status, out
    finally:
        box.remove()
        net.lab.kubectl("delete", "pod", name, "-n", project, "--grace-period=0", "--force", check=False)


def refused(net, *ports):
    with pod_with(net, "red", *ports) as (_, status, out):
        return status != 0 and out


def resolves(net, pod, server):
    """The address that the name server says of the API's service, or None."""
    with udp_socket(pod.netns) as s:
        s.settimeout(2)
        for i in range(4):
            with contextlib.suppress(OSError):
                s.sendto(query("kubernetes.default.svc.cluster.local", ident=i + 1), (server, 53))
                data = s.recv(2000)
                return socket.inet_ntoa(data[-4:]) if data[3] & 15 == 0 and struct.unpack(">H", data[6:8])[0] else None
    return None


def test_a_host_port_takes_no_names_from_anybody(hp):
    """Port 53 of the node, if it is given at all, is not that of the gateway: pods of all projects ask there."""
    api = hp.lab.object("service", "kubernetes")["spec"]["clusterIP"]
    victims = [hp.pods["blue/near"], hp.pods["red/near"]]
    assert all(wait_for("names", lambda p=p: resolves(hp, p, hp.gateway["node1"])) == api for p in victims)
    with pod_with(hp, "red", (53, 53, "UDP"), (53, 53, "TCP")) as (box, status, _):
        forged = inside(box.netns, lambda: NameServer({"kubernetes.default.svc.cluster.local": lambda s, r, tcp: [
            answer(r, [a_record("kubernetes.default.svc.cluster.local", "198.51.100.66")])]}, "0.0.0.0",
            53)) if status == 0 else None
        try:
            for p in victims:
                assert resolves(hp, p, hp.gateway["node1"]) == api, p
            assert resolves(hp, hp.pods["blue/far"], hp.gateway["node1"]) in (api, None)
            assert forged is None or not forged.asked
        finally:
            if forged:
                forged.stop()


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "the node's"])
@pytest.mark.parametrize("proto", ["TCP", "UDP"])
def test_a_port_on_which_the_host_listens_is_refused(hp, proto, address):
    """Whoever listens; what comes to the host's own address and to its loopback stays its own."""
    ip = hp.host["node1"] if address == "the node's" else address
    path = hp.path("node1")
    listening = tcp_listener(path, 2379, ip) if proto == "TCP" else udp_socket(path, ip, 2379)
    with listening:
        out = refused(hp, (2379, 80, proto))
        assert out and out["code"] and "2379" in out["msg"] + out.get("details", ""), out
    assert refused(hp, (2379, 80, proto)) is False, "the control: nobody listens any more"


@pytest.mark.parametrize("port,proto", [(4789, "UDP")])
def test_ports_of_tenets_own_parts_are_refused(hp, port, proto):
    assert refused(hp, (port, 80, proto))


def test_a_host_port_is_not_at_a_loopback_address_where_the_host_listens(hp):
    """A listener that comes after the pod keeps what comes to its loopback, or is told that the port is taken."""
    with pod_with(hp, "red", (2380, 80, "TCP")) as (box, status, out):
        assert status == 0, out
        try:
            own = tcp_listener(hp.path("node1"), 2380, "127.0.0.1")
        except OSError as e:
            assert e.errno == errno.EADDRINUSE
            return  # the agent holds the port: who begins to listen later is told
        with own, tcp_listener(box.netns, 80) as pods:
            for _ in range(3):
                assert tcp_connects(hp.path("node1"), "127.0.0.1", 2380)
            assert wait_for("the host's listener", lambda: accepted(own), deadline=5)
            assert not accepted(pods)


def accepted(listener):
    try:
        listener.accept()[0].close()
        return True
    except BlockingIOError:
        return False


def test_what_is_denied_directly_is_denied_by_a_host_port(hp):
    """From the same node and another: by the node's address and its gateway; red is what blue's policy or VNID denies."""
    with pod_with(hp, "blue", (8088, 80, "TCP"), (8088, 80, "UDP")) as (box, status, out):
        assert status == 0, out
        ip = out["ips"][0]["address"].split("/")[0]
        with tcp_listener(box.netns, 80):
            friend = hp.pods["blue/far"]
            wait_for("the pod", lambda: tcp_connects(friend.netns, ip, 80))
            wait_for("its host port, for a friend", lambda: tcp_connects(friend.netns, hp.host["node1"], 8088))
            for ref in ("red/a", "red/near", "red/far"):
                enemy = hp.pods[ref]
                assert not tcp_connects(enemy.netns, ip, 80, 0.5), ref
                for way in (hp.host["node1"], hp.gateway["node1"]):
                    assert not tcp_connects(enemy.netns, way, 8088, 0.5), (ref, way)


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "np", "namespace": "blue", "labels": {"a": "b"}},
           "spec": {"type": "NodePort", "selector": {"app": "np"}, "ports": [{"port": 80, "targetPort": 7075, "protocol": "TCP"}]}}


def test_a_node_port_of_another_project_is_denied_at_every_address_of_a_node(hp):
    """At the second address of a node, too, and at the gateways."""
    lab, near = hp.lab, hp.pods["blue/near"]
    lab.kubectl("label", "pod", "near", "-n", "blue", "app=np")
    lab.kubectl("create", "-f", "-", input=json.dumps(SERVICE))
    second = {"node1": "10.245.2.233", "node2": "10.245.2.234"}
    device = {n: run(["ip", "-j", "-n", lab.ns_name(n), "route", "get", "10.245.2.254"]).stdout for n in hp.host}
    device = {n: json.loads(text)[0]["dev"] for n, text in device.items()}
    server = Server(near.popen, "tcp", 7075)
    try:
        for n, ip in second.items():
            run(["ip", "-n", lab.ns_name(n), "addr", "add", f"{ip}/24", "dev", device[n]])
        port = lab.object("service", "np", "-n", "blue")["spec"]["ports"][0]["nodePort"]
        friend = hp.pods["blue/far"]
        wait_for("the node port, for a friend", lambda: tcp_connects(friend.netns, hp.host["node1"], port))
        for ref in ("red/a", "red/far"):
            for address in [*hp.host.values(), *second.values(), *hp.gateway.values()]:
                assert not tcp_connects(hp.pods[ref].netns, address, port, 0.5), (ref, address)
    finally:
        server.stop()
        for n, ip in second.items():
            run(["ip", "-n", lab.ns_name(n), "addr", "del", f"{ip}/24", "dev", device[n]], check=False)
        lab.kubectl("delete", "service", "np", "-n", "blue")
