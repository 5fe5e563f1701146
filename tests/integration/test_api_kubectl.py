# SPDX-License-Identifier: Apache-2.0
"""The API as kubectl sees it: unmodified kubectl against the API server alone (tests/unit/apiserver/apitest_server)."""
import json
import re

import pytest

import api_server
from lab import wait_for

NETWORK = """
apiVersion: v1
kind: Node
metadata: {name: node1, labels: {node-role.kubernetes.io/compute: "true", zone: a}}
status:
  addresses: [{type: InternalIP, address: 192.0.2.1}]
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {kubeletVersion: v0.1, osImage: Debian, kernelVersion: "6.1"}
---
apiVersion: network.openshift.io/v1
kind: ClusterNetwork
metadata: {name: default}
clusterNetworks: [{CIDR: 10.128.0.0/14, hostSubnetLength: 9}]
serviceNetwork: 172.30.0.0/16
pluginName: redhat/openshift-ovs-multitenant
---
apiVersion: network.openshift.io/v1
kind: HostSubnet
metadata: {name: node1}
host: node1
hostIP: 192.0.2.1
subnet: 10.128.0.0/23
---
apiVersion: network.openshift.io/v1
kind: NetNamespace
metadata: {name: default}
netname: default
netid: 0
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: web}}
spec: {nodeName: node1, containers: [{name: c, image: busybox}]}
"""


@pytest.fixture
def server(tmp_path):
    s = api_server.start(tmp_path)
    yield s
    s.stop()


@pytest.fixture
def cluster(server):
    server.kubectl("create", "-f", "-", input=NETWORK)
    server.kubectl("create", "namespace", "red")
    server.kubectl("create", "-n", "red", "-f", "-", input=POD.replace("NAME", "web"))
    return server


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_create_needs_no_flags(server):
    out = server.kubectl("create", "-f", "-", input=NETWORK)
    assert out.splitlines() == ["node/node1 created", "clusternetwork.network.openshift.io/default created",
                                "hostsubnet.network.openshift.io/node1 created",
                                "netnamespace.network.openshift.io/default created"]
    err = server.kubectl("create", "-f", "-", input=NETWORK, fails=True)
    assert err.count("already exists") == 4


def test_api_resources(server):
    out = server.kubectl("api-resources", "-o", "name")
    assert set(out.split()) >= {"configmaps", "events", "events.events.k8s.io", "leases.coordination.k8s.io",
                                "namespaces", "nodes", "pods", "secrets", "serviceaccounts",
                                "clusternetworks.network.openshift.io", "hostsubnets.network.openshift.io",
                                "netnamespaces.network.openshift.io", "roles.rbac.authorization.k8s.io",
                                "clusterrolebindings.rbac.authorization.k8s.io",
                                "certificatesigningrequests.certificates.k8s.io",
                                "selfsubjectaccessreviews.authorization.k8s.io"}
    assert "network.openshift.io/v1" in server.kubectl("api-versions")


def test_get_shows_the_columns_users_know(cluster):
    nodes = rows(cluster.kubectl("get", "nodes", "-o", "wide"))
    assert nodes[0][:8] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION", "INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE"]
    assert nodes[1][:3] == ["node1", "Ready", "compute"] and nodes[1][4:6] == ["v0.1", "192.0.2.1"]
    subnets = cluster.kubectl("get", "hostsubnets").splitlines()
    assert subnets[0].split("  ")[0] == "NAME"
    for column in ("HOST", "HOST IP", "SUBNET", "EGRESS CIDRS", "EGRESS IPS"):
        assert column in subnets[0]
    assert subnets[1].split()[:4] == ["node1", "node1", "192.0.2.1", "10.128.0.0/23"]
    nets = rows(cluster.kubectl("get", "netnamespaces"))
    assert nets == [["NAME", "NETID", "EGRESS", "IPS"], ["default", "0", "[]"]]
    cn = cluster.kubectl("get", "clusternetworks").splitlines()
    assert "CLUSTER NETWORK" in cn[0] and "PLUGIN NAME" in cn[0]
    assert cn[1].split() == ["default", "10.128.0.0/14:9", "172.30.0.0/16", "redhat/openshift-ovs-multitenant"]
    pods = rows(cluster.kubectl("get", "pods", "-n", "red", "-o", "wide"))
    assert pods[0][:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert pods[1][:4] == ["web", "0/1", "Pending", "0"] and pods[1][6] == "node1"
    both = cluster.kubectl("get", "nodes,hostsubnets", "-o", "wide")
    assert "node/node1" in both and "hostsubnet.network.openshift.io/node1" in both


def test_output_formats_and_selectors(cluster):
    assert json.loads(cluster.kubectl("get", "hostsubnet", "node1", "-o", "json"))["subnet"] == "10.128.0.0/23"
    assert "subnet: 10.128.0.0/23\n" in cluster.kubectl("get", "hostsubnet", "node1", "-o", "yaml")
    assert cluster.kubectl("get", "ns", "-o", "name").split() == \
        ["namespace/default", "namespace/kube-system", "namespace/red"]
    assert cluster.kubectl("get", "no", "-l", "zone in (a,b),!x", "-o", "name") == "node/node1\n"
    assert cluster.kubectl("get", "no", "-l", "zone=b", "-o", "name") == ""
    by_node = ["get", "po", "-A", "-o", "name", "--field-selector"]
    assert cluster.kubectl(*by_node, "spec.nodeName=node1") == "pod/web\n"
    assert cluster.kubectl(*by_node, "spec.nodeName=node2") == ""
    assert "field label not supported" in cluster.kubectl(*by_node, "spec.x=1", fails=True)
    assert cluster.kubectl("get", "po", "-n", "red", "-o", "jsonpath={.items[*].spec.nodeName}") == "node1"
    assert "NotFound" in cluster.kubectl("get", "hostsubnet", "none", fails=True)


def test_chunks_make_one_list(server):
    for i in range(7):
        server.kubectl("create", "-f", "-", input=POD.replace("NAME", f"p{i}"))
    out = server.kubectl("get", "pods", "--chunk-size=2", "-o", "name")
    assert out.split() == [f"pod/p{i}" for i in range(7)]


def test_apply_twice(server):
    server.kubectl("apply", "-f", "-", input=NETWORK)
    assert server.kubectl("apply", "-f", "-", input=NETWORK).count("unchanged") == 4
    changed = NETWORK.replace("192.0.2.1\n", "192.0.2.2\n").replace("zone: a", "zone: b")
    out = server.kubectl("apply", "-f", "-", input=changed)
    assert "node/node1 configured" in out and "hostsubnet.network.openshift.io/node1 configured" in out
    assert server.kubectl("get", "hostsubnet", "node1", "-o", "jsonpath={.hostIP}") == "192.0.2.2"
    assert server.kubectl("get", "node", "node1", "-o", "jsonpath={.metadata.labels.zone}") == "b"


def test_label_annotate_patch_edit(cluster):
    cluster.kubectl("label", "node", "node1", "a=b", "zone-")
    cluster.kubectl("annotate", "hostsubnet", "node1", "pod.network.openshift.io/fixed-vnid-host=5")
    err = cluster.kubectl("annotate", "hostsubnet", "node1", "--overwrite",
                          "pod.network.openshift.io/fixed-vnid-host=x", fails=True)
    assert "metadata.annotations[pod.network.openshift.io/fixed-vnid-host]" in err
    cluster.kubectl("patch", "hostsubnet", "node1", "--type=merge", "-p", '{"egressIPs":["192.0.2.9"]}')
    cluster.kubectl("patch", "hostsubnet", "node1", "--type=json",
                    "-p", '[{"op":"add","path":"/egressIPs/-","value":"192.0.2.10"}]')
    cluster.kubectl("patch", "node", "node1", "-p", '{"spec":{"unschedulable":true}}')
    cluster.patch_status("/api/v1/namespaces/red/pods/web", '{"status":{"phase":"Running","podIP":"10.128.0.2"}}')
    node = json.loads(cluster.kubectl("get", "node", "node1", "-o", "json"))
    assert node["metadata"]["labels"]["a"] == "b" and "zone" not in node["metadata"]["labels"]
    assert node["spec"]["unschedulable"] is True and node["status"]["addresses"]
    hs = json.loads(cluster.kubectl("get", "hostsubnet", "node1", "-o", "json"))
    assert hs["egressIPs"] == ["192.0.2.9", "192.0.2.10"]
    assert "10.128.0.2" in cluster.kubectl("get", "pods", "-n", "red", "-o", "wide")
    cluster.kubectl("uncordon", "node1")
    assert "Ready,SchedulingDisabled" not in cluster.kubectl("get", "nodes")


def test_validation_errors_name_the_field(server):
    bad = NETWORK.replace("10.128.0.0/23", "10.128.0.1/23")
    err = server.kubectl("create", "-f", "-", input=bad, fails=True)
    assert 'The HostSubnet "node1" is invalid: subnet: Invalid value: "10.128.0.1/23"' in err
    bad = NETWORK.replace("hostSubnetLength: 9", "hostSubnetLength: 30")
    err = server.kubectl("create", "-f", "-", input=bad, fails=True)
    assert "clusterNetworks[0].hostSubnetLength" in err


def test_describe(cluster):
    uid = cluster.kubectl("get", "pod", "web", "-n", "red", "-o", "jsonpath={.metadata.uid}")
    cluster.kubectl("create", "-f", "-", input=f"""
apiVersion: v1
kind: Event
metadata: {{name: e1, namespace: red}}
involvedObject: {{kind: Pod, namespace: red, name: web, uid: {uid}, apiVersion: v1}}
reason: Attached
message: address 10.128.0.2
type: Normal
count: 1
""")
    out = cluster.kubectl("describe", "pod", "web", "-n", "red")
    assert "node1" in out and "Attached" in out and "address 10.128.0.2" in out
    assert "10.128.0.0/23" in cluster.kubectl("describe", "hostsubnet", "node1")
    assert "192.0.2.1" in cluster.kubectl("describe", "node", "node1")
    assert "Active" in cluster.kubectl("describe", "ns", "red")
    events = cluster.kubectl("get", "events", "-n", "red")
    assert events.splitlines()[0].split()[:4] == ["LAST", "SEEN", "TYPE", "REASON"] and "pod/web" in events


def test_watch(cluster):
    watcher = cluster.popen("get", "pods", "-n", "red", "-w", "-o", "wide")
    lines = iter(watcher.stdout.readline, "")
    assert next(lines).split()[0] == "NAME"
    assert next(lines).split()[0] == "web"
    cluster.patch_status("/api/v1/namespaces/red/pods/web", '{"status":{"phase":"Running","podIP":"10.128.0.2"}}')
    seen = next(lines).split()
    assert seen[0] == "web" and seen[2] == "Running" and "10.128.0.2" in seen
    # It runs on a node, which has time to end it, and says when it is ended.
    cluster.kubectl("delete", "pod", "web", "-n", "red", "--wait=false")
    assert next(lines).split()[0] == "web"
    assert "Terminating" in cluster.kubectl("get", "pod", "web", "-n", "red")
    cluster.kubectl("delete", "pod", "web", "-n", "red", "--grace-period=0", "--force")
    assert next(lines).split()[0] == "web"
    watcher.kill()
    watcher.wait()


def test_wait(cluster):
    waiter = cluster.popen("wait", "--for=condition=Ready", "pod/web", "-n", "red", "--timeout=30s")
    cluster.patch_status("/api/v1/namespaces/red/pods/web",
                         '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}')
    assert waiter.wait(30) == 0


def test_delete_waits(cluster):
    deleting = cluster.popen("delete", "-n", "red", "pod", "web", "--wait=true", "--timeout=30s")
    wait_for("its deletion", lambda: "Terminating" in cluster.kubectl("get", "pod", "web", "-n", "red"))
    assert deleting.poll() is None
    cluster.kubectl("delete", "pod", "web", "-n", "red", "--grace-period=0", "--force")
    assert deleting.wait(30) == 0
    assert "NotFound" in cluster.kubectl("get", "pod", "web", "-n", "red", fails=True)
    # The test server finalizes namespaces, as the master's controller does.
    cluster.kubectl("delete", "namespace", "red", "--wait=true", "--timeout=30s")
    assert "NotFound" in cluster.kubectl("get", "ns", "red", fails=True)
    cluster.kubectl("delete", "hostsubnets", "--all")
    assert cluster.kubectl("get", "hostsubnets", "-o", "name") == ""
    assert "NotFound" in cluster.kubectl("delete", "-f", "-", input=NETWORK, fails=True)
    assert cluster.kubectl("get", "nodes,clusternetworks,netnamespaces", "-o", "name") == ""


def test_run(server):
    server.kubectl("run", "quick", "--image=busybox")
    assert server.kubectl("get", "pod", "quick", "-o", "jsonpath={.spec.containers[0].image}") == "busybox"
    err = server.kubectl("run", "Bad_Name", "--image=busybox", fails=True)
    assert "metadata.name" in err


def test_replace_conflicts(cluster):
    hs = json.loads(cluster.kubectl("get", "hostsubnet", "node1", "-o", "json"))
    cluster.kubectl("annotate", "hostsubnet", "node1", "x=y")
    hs["egressIPs"] = ["192.0.2.77"]
    err = cluster.kubectl("replace", "-f", "-", input=json.dumps(hs), fails=True)
    assert "Conflict" in err and "the object has been modified" in err


def test_explain(server):
    out = server.kubectl("explain", "hostsubnet")
    assert re.search(r"KIND:\s+HostSubnet", out)
    # Group and version are one line or two, as kubectl's version has it.
    assert re.search(r"VERSION:\s+network.openshift.io/v1|GROUP:\s+network.openshift.io\nKIND:.*\nVERSION:\s+v1", out)


def test_a_restart_keeps_objects_and_watch_versions(tmp_path):
    s = api_server.Server(tmp_path, database=tmp_path / "registry.db")
    s.kubectl("create", "-f", "-", input=NETWORK)
    version = json.loads(s.kubectl("get", "hostsubnet", "node1", "-o", "json"))["metadata"]["resourceVersion"]
    s.kubectl("patch", "hostsubnet", "node1", "--type=merge", "-p", '{"egressIPs":["192.0.2.9"]}')
    s.stop()
    s.start()
    after = json.loads(s.kubectl("get", "hostsubnet", "node1", "-o", "json"))
    assert after["egressIPs"] == ["192.0.2.9"] and int(after["metadata"]["resourceVersion"]) > int(version)
    # A watch from before the restart is told what happened since.
    status, text = s.get("/apis/network.openshift.io/v1/hostsubnets?watch=1&timeoutSeconds=1"
                         f"&resourceVersion={version}")
    events = [json.loads(line) for line in text.splitlines()]
    for o in (events[0]["object"], after):
        o["metadata"].pop("managedFields", None)  # Newer kubectls do not show them.
    assert status == 200 and events[0]["type"] == "MODIFIED" and events[0]["object"] == after
    s.stop()
