# SPDX-License-Identifier: Apache-2.0
"""tenet adm import openshift-sdn: subnets and VNIDs of an existing cluster, from its API and from files."""
import json

import pytest

import api_server
from lab import TENET, run, wait_for
from webhook_server import VALIDATING, Webhook, answer, configured

UID = "pod.network.openshift.io/node-uid"
PLUGIN = "redhat/openshift-ovs-multitenant"


def adm(lab, *args, **kw):
    return run([TENET, "adm", "import", "openshift-sdn", *args, "--kubeconfig", lab.kubeconfig], **kw)


def node_with_subnet(lab, name, address, subnet):
    """A node of the other cluster, which got this subnet there long ago."""
    lab.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(
        {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "host": name, "hostIP": address, "subnet": subnet,
         "metadata": {"name": name}}))
    lab.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
         "status": {"addresses": [{"type": "InternalIP", "address": address}]}}))
    wait_for("the node's mark", lambda: UID in (lab.object("hostsubnet", name)["metadata"].get("annotations") or {}))


def netids(lab):
    return {o["netname"]: o["netid"] for o in lab.objects("netnamespaces")}


def state(lab):
    """All that an import could write."""
    return (netids(lab), {o["host"]: o["subnet"] for o in lab.objects("hostsubnets")},
            sorted(o["metadata"]["name"] for o in lab.objects("namespaces")))


@pytest.fixture(scope="module")
def old(make_lab):
    """The other cluster: projects with VNIDs that nobody would allocate, two of them joined."""
    lab = make_lab("old", nodes=0, plugin=PLUGIN)
    for name in ("red", "blue", "green"):
        lab.project(name)
    for name, netid in (("red", 4711), ("blue", 15000000), ("green", 4711)):
        lab.kubectl("patch", "netnamespace", name, "--type=merge", "-p", json.dumps({"netid": netid}))
    node_with_subnet(lab, "node1", "10.245.2.3", "10.129.6.0/23")
    node_with_subnet(lab, "node2", "10.245.2.4", "10.131.250.0/23")
    return lab


@pytest.fixture(scope="module")
def new(make_lab):
    return make_lab("new", nodes=0, plugin=PLUGIN)


def exported(lab):
    out = lab.kubectl("get", "clusternetworks,hostsubnets,netnamespaces,namespaces", "-o", "json").stdout
    return json.loads(out)


def test_conflicts_are_refused_and_nothing_is_written(old, new, tmp_path):
    before = state(new)
    objects = exported(old)
    for item in objects["items"]:
        if item["kind"] == "HostSubnet" and item["host"] == "node2":
            item["subnet"] = "10.129.6.0/24"
    file = tmp_path / "old.json"
    file.write_text(json.dumps(objects))
    out = adm(new, "-f", file, check=False)
    assert out.returncode == 1
    assert "HostSubnet node2: 10.129.6.0/24 overlaps with 10.129.6.0/23 of HostSubnet node1" in out.stderr
    assert "nothing is imported: 1 conflicts" in out.stderr
    assert state(new) == before


def test_what_the_api_server_refuses_is_not_written_in_part(old, new, tmp_path):
    before = state(new)
    objects = exported(old)
    next(i for i in objects["items"] if i["kind"] == "HostSubnet")["hostIP"] = "224.0.0.1"
    file = tmp_path / "old.json"
    file.write_text(json.dumps(objects))
    out = adm(new, "-f", file, check=False)
    assert out.returncode == 1
    assert "must be the address of one host" in out.stderr and "the API server refuses objects" in out.stderr
    assert state(new) == before


def test_a_dry_run_writes_nothing(old, new):
    before = state(new)
    out = adm(new, "--from-kubeconfig", old.kubeconfig, "--dry-run").stdout
    assert "HostSubnet node1 imported (dry run)" in out and "NetNamespace red imported (dry run)" in out
    assert state(new) == before


def test_nodes_and_projects_keep_their_numbers(old, new):
    """From the other cluster's API; the nodes join later and get the subnets that they had."""
    adm(new, "--from-kubeconfig", old.kubeconfig)
    assert {k: netids(new)[k] for k in netids(old)} == netids(old)
    assert {o["host"]: o["subnet"] for o in new.objects("hostsubnets")} == {
        "node1": "10.129.6.0/23", "node2": "10.131.250.0/23"}
    for name in ("node1", "node2"):
        new.cmd("node", "add", name, timeout=120)
    assert {n["name"]: n["subnet"] for n in new.status()["nodes"]} == {"node1": "10.129.6.0/23", "node2": "10.131.250.0/23"}
    red, green, blue = new.pod("red/a", "node1"), new.pod("green/a", "node2"), new.pod("blue/a", "node2")
    assert (red.vnid, green.vnid, blue.vnid) == (4711, 4711, 15000000)
    assert red.ip.startswith("10.129.6.") and green.ip.startswith("10.131.250.")
    assert red.can_ping(green.ip) and not red.can_ping(blue.ip)


def test_an_import_can_be_repeated(old, new):
    before = state(new)
    out = adm(new, "--from-kubeconfig", old.kubeconfig)
    assert "imported" not in out.stdout
    assert state(new) == before


def test_a_project_with_pods_keeps_its_own(old, new, tmp_path):
    objects = exported(old)
    next(i for i in objects["items"] if i["kind"] == "NetNamespace" and i["netname"] == "red")["netid"] = 99
    file = tmp_path / "old.json"
    file.write_text(json.dumps(objects))
    out = adm(new, "-f", file, check=False)
    assert out.returncode == 1
    assert "NetNamespace red: VNID 4711 here, 99 in the import, and the project has pods" in out.stderr


@pytest.fixture
def server(tmp_path):
    s = api_server.Server(tmp_path)
    yield s
    s.stop()


@pytest.fixture
def hook(tmp_path):
    h = Webhook(tmp_path)
    yield h
    h.stop()


def test_a_write_that_fails_takes_back_those_before_it(server, hook, tmp_path):
    """The API server accepts all objects when it is only asked, and refuses the second HostSubnet then."""
    network = {"apiVersion": "network.openshift.io/v1", "kind": "ClusterNetwork", "metadata": {"name": "default"},
               "network": "10.128.0.0/14", "hostsubnetlength": 9, "serviceNetwork": "172.30.0.0/16", "pluginName": PLUGIN,
               "clusterNetworks": [{"CIDR": "10.128.0.0/14", "hostSubnetLength": 9}]}

    def namespace(name):
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}

    def net(name, netid):
        return {"apiVersion": "network.openshift.io/v1", "kind": "NetNamespace", "netname": name, "netid": netid,
                "metadata": {"name": name}}

    def subnet(name, i):
        return {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "host": name, "hostIP": f"192.0.2.{i}",
                "subnet": f"10.128.{2 * i}.0/23", "metadata": {"name": name}}

    for o in (network, namespace("blue"), net("blue", 20)):
        server.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(o))
    file = tmp_path / "old.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        network, namespace("blue"), net("blue", 4711), namespace("red"), net("red", 4712), subnet("a", 1), subnet("b", 2)]}))
    hook.paths["/once"] = lambda review: answer(review, review["request"]["dryRun"] or review["request"]["name"] != "b",
                                                status={"code": 403, "message": "not today"})
    with configured(server, VALIDATING, "v", hook.entry("/once", ["hostsubnets"], groups=["network.openshift.io"])):
        out = run([TENET, "adm", "import", "openshift-sdn", "-f", file, "--kubeconfig", server.kubeconfig], check=False)
    assert out.returncode == 1
    assert "not today" in out.stderr and "what was written was taken back" in out.stderr, out.stderr
    assert json.loads(server.kubectl("get", "hostsubnets", "-o", "json"))["items"] == []
    nets = json.loads(server.kubectl("get", "netnamespaces", "-o", "json"))["items"]
    assert [(o["netname"], o["netid"]) for o in nets] == [("blue", 20)]
    projects = json.loads(server.kubectl("get", "namespaces", "-o", "json"))["items"]
    assert not [o for o in projects if o["metadata"]["name"] == "red" and o["status"]["phase"] == "Active"]
