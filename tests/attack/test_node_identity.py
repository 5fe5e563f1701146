# SPDX-License-Identifier: Apache-2.0
"""What somebody with the certificate of one node can ask of the API: no more than that node needs."""
import base64
import ipaddress

import pytest

from lab import wait_for
from people import APPLY, BLUE, JSON_PATCH, MERGE, NETWORK, RED, People, pod
from test_auth import CSR, RBAC, csr, issued, node_token
from test_project_member import refused

BOUND = {"kind": "Pod", "apiVersion": "v1"}
STATUS = {"apiVersion": "v1", "kind": "Node", "status": {}}
SERVING = "kubernetes.io/kubelet-serving"


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("node")))
    people.node = people.user("system:node:n1", "system:nodes")
    people.admin("POST", f"{RED}/secrets", {"metadata": {"name": "used"}, "data": {"k": "djE="}}, 201)
    people.admin("POST", f"{RED}/configmaps", {"metadata": {"name": "used"}}, 201)
    people.admin("POST", f"{BLUE}/secrets", {"metadata": {"name": "used"}, "data": {"k": "djI="}}, 201)
    volumes = [{"name": "s", "secret": {"secretName": "used"}}, {"name": "c", "configMap": {"name": "used"}}]
    people.admin("POST", f"{RED}/pods", pod("mine", "n1", volumes=volumes, serviceAccountName="default"), 201)
    people.admin("POST", f"{BLUE}/pods", pod("theirs", "n2", volumes=volumes), 201)
    for i in (1, 2):
        wait_for("the subnet", lambda i=i: people.ask(people._admin, "GET", f"{NETWORK}/hostsubnets/n{i}")[0] == 200)
    yield people
    people.stop()


@pytest.fixture(autouse=True)
def alive(c):
    yield
    assert c.proc.poll() is None, c.text()[-4000:]


def subnet(c, node="n1"):
    return ipaddress.ip_network(c.admin("GET", f"{NETWORK}/hostsubnets/{node}")["subnet"])


def test_a_node_does_its_work(c):
    """The control: what it reads and writes for the pods that run on it."""
    for path in ("/api/v1/nodes/n1", f"{RED}/pods/mine", f"{RED}/secrets/used", f"{RED}/configmaps/used", f"{NETWORK}/hostsubnets",
                 "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"):
        c.ask(c.node, "GET", path, want=200)
    ip = str(subnet(c)[20])
    c.ask(c.node, "PATCH", f"{RED}/pods/mine/status", {"status": {"podIP": ip, "podIPs": [{"ip": ip}]}}, headers=MERGE, want=200)
    assert c.admin("GET", f"{RED}/pods/mine")["status"]["podIP"] == ip
    c.ask(c.node, "POST", f"{RED}/serviceaccounts/default/token", {"spec": {"boundObjectRef": {**BOUND, "name": "mine"}}}, want=201)


def test_objects_of_other_nodes_and_their_pods_are_closed(c):
    table = [("node", "GET", "/api/v1/nodes/n2"), ("nodes", "GET", "/api/v1/nodes"),
             ("nodes by another field", "GET", "/api/v1/nodes?fieldSelector=metadata.name!%3Dn1"),
             ("pods", "GET", "/api/v1/pods"), ("pods of another", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"),
             ("pods of nobody", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D"),
             ("pods of not", "GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1"),
             ("pods by a label", "GET", "/api/v1/pods?labelSelector=a"), ("pods of red", "GET", f"{RED}/pods"),
             ("pods twice", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2&fieldSelector=spec.nodeName%3Dn1"),
             ("a pod", "GET", f"{BLUE}/pods/theirs"), ("its status", "PATCH", f"{BLUE}/pods/theirs/status",
                                                       {"status": {"phase": "x"}}, MERGE),
             ("delete it", "DELETE", f"{BLUE}/pods/theirs"), ("evict it", "POST", f"{BLUE}/pods/theirs/eviction", {}),
             ("exec in it", "POST", f"{BLUE}/pods/theirs/exec?command=sh"),
             ("its secret", "GET", f"{BLUE}/secrets/used"), ("its config", "GET", f"{BLUE}/configmaps/used"),
             ("other secrets", "GET", f"{RED}/secrets/own"), ("secrets", "GET", f"{RED}/secrets"), ("all secrets", "GET",
                 "/api/v1/secrets"),
             ("secrets by name", "GET", f"{RED}/secrets?fieldSelector=metadata.name%3Downed"),
             ("another's by name", "GET", f"{BLUE}/secrets?fieldSelector=metadata.name%3Dused"),
             ("all of that name", "GET", "/api/v1/secrets?fieldSelector=metadata.name%3Dused"),
             ("watch secrets", "GET", f"{RED}/secrets?watch=1"),
             ("write a secret", "PATCH", f"{RED}/secrets/used", {"data": {"k": "eA=="}}, MERGE),
             ("put a secret", "PUT", f"{RED}/secrets/used", {"metadata": {"name": "used"}}),
             ("delete a secret", "DELETE", f"{RED}/secrets/used"), ("make a secret", "POST", f"{RED}/secrets",
                 {"metadata": {"name": "x"}}),
             ("write a config", "PATCH", f"{RED}/configmaps/used", {"data": {"k": "v"}}, MERGE),
             ("a pod's spec", "PATCH", f"{RED}/pods/mine", {"spec": {"nodeName": "n2"}}, MERGE),
             ("a pod's labels", "PATCH", f"{RED}/pods/mine", {"metadata": {"labels": {"a": "b"}}}, MERGE),
             ("make a pod", "POST", f"{RED}/pods", pod("x", "n1")), ("bind a pod", "POST", f"{RED}/pods/mine/binding",
                 {"target": {"name": "n1"}}),
             ("roles", "GET", f"{RBAC}/clusterroles"), ("bindings", "GET", f"{RBAC}/namespaces/red/rolebindings"),
             ("another node", "POST", "/api/v1/nodes", {"metadata": {"name": "n3"}}), ("delete itself", "DELETE",
                 "/api/v1/nodes/n1"),
             ("delete another", "DELETE", "/api/v1/nodes/n2"), ("delete all", "DELETE", "/api/v1/nodes"),
             ("another's status", "PUT", "/api/v1/nodes/n2/status", {**STATUS, "metadata": {"name": "n2"}}),
             ("another's name in the body", "PUT", "/api/v1/nodes/n1/status", {**STATUS, "metadata": {"name": "n2"}}),
             ("change another", "PATCH", "/api/v1/nodes/n2", {"metadata": {"labels": {"a": "b"}}}, MERGE)]
    assert refused(c, c.node, table) == []
    both = c.ask(c.node, "GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1,metadata.name%3Dn2")[1]
    assert not both.get("items")
    for path in ("status", "status/"):  # which speaks of the status only
        c.ask(c.node, "PATCH", f"{RED}/pods/mine/{path}", {"metadata": {"labels": {"a": "b"}, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]}, "spec": {"nodeName": "n2"}}, headers=MERGE)
        now = c.admin("GET", f"{RED}/pods/mine")
        assert not now["metadata"].get("labels") and "ownerReferences" not in now["metadata"] and now["spec"]["nodeName"] == "n1"


KIND_OF = {"hostsubnets": "HostSubnet", "netnamespaces": "NetNamespace", "clusternetworks": "ClusterNetwork"}


def test_the_network_is_not_a_nodes_to_change(c):
    table = []
    for kind, name, body in (("hostsubnets", "n1", {"hostIP": "10.245.2.9"}), ("hostsubnets", "n2", {"hostIP": "10.245.2.9"}),
                             ("hostsubnets", "n1", {"subnet": "10.128.0.0/14"}), ("netnamespaces", "red", {"netid": 0}),
                             ("netnamespaces", "red", {"egressIPs": ["10.245.2.3"]}), ("clusternetworks", "default",
                                 {"pluginName": "x"})):
        path = f"{NETWORK}/{kind}"
        table += [(f"patch {kind}", "PATCH", f"{path}/{name}", body, MERGE), (f"delete {kind}", "DELETE", f"{path}/{name}"),
                  (f"make {kind}", "POST", path, {"metadata": {"name": "x"}, **body}),
                  (f"apply {kind}", "PATCH", f"{path}/{name}?fieldManager=x",
                   {"apiVersion": "network.openshift.io/v1", "kind": KIND_OF[kind], "metadata": {"name": name}, **body}, APPLY)]
    for path in (f"{RED}/services", f"{RED}/endpoints", "/apis/discovery.k8s.io/v1/namespaces/red/endpointslices",
                 "/apis/networking.k8s.io/v1/namespaces/red/networkpolicies", "/api/v1/namespaces",
                 "/apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies"):
        table.append((f"make {path}", "POST", path, {"metadata": {"name": "x"}}))
    assert refused(c, c.node, table) == []


LIES = ["10.245.2.2", "10.245.2.4", "172.30.0.1", "198.51.100.10", "127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1",
        "169.254.169.254", "10.130.5.5", "::1"]


def pod_addresses(c):
    s = c.admin("GET", f"{RED}/pods/mine").get("status", {})
    return {s.get("podIP")} | {x.get("ip") for x in s.get("podIPs", [])}


@pytest.mark.parametrize("lie", [*LIES, "another node's pod", "its gateway", "another node's gateway", "its network",
                                 "its broadcast"])
def test_a_pods_address_is_one_that_the_node_gives_out(c, lie):
    """By each way of writing a status; the lie is refused, or does not count."""
    mine, other = subnet(c), subnet(c, "n2")
    ip = {"another node's pod": str(other[20]), "its gateway": str(mine[1]), "another node's gateway": str(other[1]),
          "its network": str(mine[0]), "its broadcast": str(mine.broadcast_address)}.get(lie, lie)
    status = {"podIP": ip, "podIPs": [{"ip": ip}]}
    path = f"{RED}/pods/mine/status"
    tries = [("PATCH", path, {"status": status}, MERGE), ("PATCH", path, {"status": {"podIPs": [{"ip": str(mine[20])},
        {"ip": ip}]}}, MERGE),
             ("PATCH", path, [{"op": "add", "path": "/status/podIP", "value": ip}], JSON_PATCH),
             ("PATCH", path + "?fieldManager=x&force=true", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine"},
                                                             "status": status},
              APPLY),
             ("PUT", path, {**c.admin("GET", f"{RED}/pods/mine"), "status": status}, None)]
    for method, where, body, headers in tries:
        got, answer = c.ask(c.node, method, where, body, headers=headers)
        assert ip not in pod_addresses(c), (method, got, answer)
    assert ip not in str(c.admin("GET", f"{RED}/endpoints")["items"])


def test_a_host_network_pod_has_its_own_nodes_address_only(c):
    c.admin("POST", f"{RED}/pods", pod("host", "n1", hostNetwork=True), 201)
    path = f"{RED}/pods/host/status"
    try:
        for ip in ("10.245.2.4", "10.245.2.2", str(subnet(c, "n2")[9])):
            c.ask(c.node, "PATCH", path, {"status": {"podIP": ip, "podIPs": [{"ip": ip}], "hostIP": ip}}, headers=MERGE)
            assert c.admin("GET", f"{RED}/pods/host").get("status", {}).get("podIP") != ip
        c.ask(c.node, "PATCH", path, {"status": {"podIP": "10.245.2.3", "podIPs": [{"ip": "10.245.2.3"}]}}, headers=MERGE, want=200)
    finally:
        c.admin("DELETE", f"{RED}/pods/host")


@pytest.mark.parametrize("lie", ["10.245.2.4", "172.30.0.1", "10.128.2.9", "10.128.0.1", "127.0.0.1", "0.0.0.0", "224.0.0.1",
                                 "255.255.255.255"])
def test_a_node_cannot_take_an_address_that_is_known_to_be_anothers(c, lie):
    """Another node's, a service's, a pod's, the gateway's; hostIP of its HostSubnet would follow."""
    assert lie not in str(c.admin("GET", f"{NETWORK}/hostsubnets/n1"))
    body = {"status": {"addresses": [{"type": "InternalIP", "address": lie}]}}
    try:
        c.ask(c.node, "PATCH", "/api/v1/nodes/n1/status", body, headers=MERGE)
        # What the controllers do is seen behind an honest change of the other node.
        c.admin("PATCH", "/api/v1/nodes/n2/status", {"status": {"addresses": [{"type": "InternalIP", "address": "10.245.2.7"}]}},
                headers=MERGE)
        wait_for("the other change", lambda: c.admin("GET", f"{NETWORK}/hostsubnets/n2")["hostIP"] == "10.245.2.7")
        assert c.admin("GET", f"{NETWORK}/hostsubnets/n1")["hostIP"] == "10.245.2.3"
    finally:
        for i in (1, 2):
            c.admin("PATCH", f"/api/v1/nodes/n{i}/status", {"status": {"addresses": [
                {"type": "InternalIP", "address": f"10.245.2.{i + 2}"}]}}, headers=MERGE)
            wait_for("as before", lambda i=i: c.admin("GET", f"{NETWORK}/hostsubnets/n{i}")["hostIP"] == f"10.245.2.{i + 2}")


def test_taints_and_restricted_labels_are_the_administrators(c):
    c.admin("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"node-restriction.kubernetes.io/zone": "a"}},
                                          "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, headers=MERGE)
    for path in ("/api/v1/nodes/n1", "/api/v1/nodes/n1/status"):
        for headers, body in ((MERGE, {"spec": {"taints": []}}), (MERGE, {"spec": {"taints": None}}),
                              (MERGE, {"metadata": {"labels": {"node-restriction.kubernetes.io/zone": "b"}}}),
                              (MERGE, {"metadata": {"labels": {"node-restriction.kubernetes.io/zone": None}}}),
                              (MERGE, {"metadata": {"labels": {"x.node-restriction.kubernetes.io/y": "b"}}}),
                              (MERGE, {"metadata": {"labels": None}}),
                              (JSON_PATCH, [{"op": "remove", "path": "/spec/taints"}]),
                              (JSON_PATCH, [{"op": "remove", "path": "/metadata/labels"}]),
                              (MERGE, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x",
                                  "uid": "y"}]}})):
            c.ask(c.node, "PATCH", path, body, headers=headers)
            now = c.admin("GET", "/api/v1/nodes/n1")
            assert now["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}], (path, body)
            restricted = {k: v for k, v in now["metadata"]["labels"].items() if "node-restriction" in k}
            assert restricted == {"node-restriction.kubernetes.io/zone": "a"}, (path, body)
            assert not now["metadata"].get("ownerReferences"), (path, body)
    c.ask(c.node, "PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"free": "yes"}}}, headers=MERGE, want=200)


# ---- tokens, leases, certificates ----

def test_tokens_only_for_accounts_of_its_pods_and_bound_to_them(c):
    red = f"{RED}/serviceaccounts"
    table = [("unbound", "POST", f"{red}/default/token", {"spec": {}}),
             ("another account", "POST", f"{red}/builder/token", {"spec": {"boundObjectRef": {**BOUND, "name": "mine"}}}),
             ("another node's pod", "POST", f"{BLUE}/serviceaccounts/default/token", {"spec": {"boundObjectRef": {**BOUND,
                 "name": "theirs"}}}),
             ("another project", "POST", f"{BLUE}/serviceaccounts/default/token", {"spec": {"boundObjectRef": {**BOUND,
                 "name": "mine"}}}),
             ("a pod that is not", "POST", f"{red}/default/token", {"spec": {"boundObjectRef": {**BOUND, "name": "nosuch"}}}),
             ("a wrong uid", "POST", f"{red}/default/token", {"spec": {"boundObjectRef": {**BOUND, "name": "mine", "uid": "x"}}}),
             ("bound to a secret", "POST", f"{red}/default/token", {"spec": {"boundObjectRef": {
                 "kind": "Secret", "apiVersion": "v1", "name": "used"}}}),
             ("bound to a node", "POST", f"{red}/default/token", {"spec": {"boundObjectRef": {
                 "kind": "Node", "apiVersion": "v1", "name": "n1"}}}),
             ("of kube-system", "POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}}),
             ("accounts", "GET", red), ("make an account", "POST", red, {"metadata": {"name": "x"}})]
    assert refused(c, c.node, table) == []


def test_leases_are_its_own_in_one_namespace_only(c):
    leases = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
    own = {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1"}}
    c.ask(c.node, "POST", leases.format("kube-node-lease"), own, want=201)
    table = [("another's", "POST", leases.format("kube-node-lease"), {"metadata": {"name": "n2"}}),
             ("list", "GET", leases.format("kube-node-lease"))]
    for ns in ("kube-system", "default", "red"):
        table += [(f"in {ns}", "POST", leases.format(ns), own), (f"write in {ns}", "PUT", leases.format(ns) + "/n1", own),
                  (f"controllers' in {ns}", "PATCH", leases.format(ns) + "/tenet-controllers", {"spec": {"holderIdentity": "n1"}},
                   MERGE)]
    assert refused(c, c.node, table) == []


NAMES = ["/O=system:nodes/CN=system:node:n2", "/O=system:masters/CN=system:node:n1", "/CN=system:node:n1",
         "/O=system:nodes/CN=system:admin",
         "/O=system:nodes/O=system:masters/CN=system:node:n1", "/O=system:nodes/CN=system:node:",
         "/O=system:nodes/CN=system:node:..\\/..\\/x",
         "/O=system:nodes/CN=system:node:N1", "/O=system:nodes/CN=system:node:n 1",
         "/O=system:nodes/CN=system:node:n1/CN=system:node:n2",
         "/O=system:nodes/CN=system:node:" + "n" * 254, "/O=system:nodes/OU=system:masters/CN=system:node:n2", "/CN=root",
         "/O=system:masters/CN=x"]


def unsigned(c, name):
    """Behind a request that is signed, this one has been looked at, too, and is not."""
    mark = f"mark-{name}"
    c.ask(c.node, "POST", CSR, csr(c, "/O=system:nodes/CN=system:node:n1", mark), want=201)
    issued(c, mark)
    status = c.ask(c._admin, "GET", f"{CSR}/{name}")[1].get("status", {})
    return not status.get("certificate")


@pytest.mark.parametrize("i", range(len(NAMES)), ids=[n[:40] for n in NAMES])
def test_certificates_for_other_names_are_not_signed(c, i):
    """Asked for by the node, and with a bootstrap token where the name is none that a Node can have."""
    try:
        request = csr(c, NAMES[i], f"by-node-{i}")
    except AssertionError:
        return  # openssl itself refuses such a name
    status, answer = c.ask(c.node, "POST", CSR, request)
    assert status in (400, 403, 422) or unsigned(c, f"by-node-{i}"), answer
    if any(x in NAMES[i] for x in ("CN=system:node:n2", "/O=system:nodes/CN=system:node:n1")) and "OU=" not in NAMES[i]:
        return  # who has a bootstrap token may ask for any node's name
    request["metadata"]["name"] = f"by-token-{i}"
    status, answer = c.ask(node_token(c), "POST", CSR, request)
    assert status in (400, 403, 422) or unsigned(c, f"by-token-{i}"), answer


def test_requests_of_others_are_closed(c):
    c.admin("POST", CSR, csr(c, "/CN=jane", "janes", signer="kubernetes.io/kube-apiserver-client"), 201)
    condition = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x", "message": "y"}]}}
    table = [("list", "GET", CSR), ("get", "GET", f"{CSR}/janes"), ("delete", "DELETE", f"{CSR}/janes"),
             ("approve", "PATCH", f"{CSR}/janes/approval", condition, MERGE), ("approve by status", "PATCH",
                 f"{CSR}/janes/status", condition, MERGE),
             ("write the certificate", "PATCH", f"{CSR}/janes/status", {"status": {"certificate": "eA=="}}, MERGE),
             ("change it", "PATCH", f"{CSR}/janes", {"spec": {"username": "root"}}, MERGE)]
    assert refused(c, c.node, table) == []
    own = csr(c, "/O=system:nodes/CN=system:node:n1", "self-approved", signer="kubernetes.io/kube-apiserver-client")
    c.ask(c.node, "POST", CSR, {**own, "status": {**condition["status"], "certificate": base64.b64encode(b"x").decode()}})
    assert unsigned(c, "self-approved")


def test_serving_certificates_are_for_its_own_name_and_not_for_clients(c):
    for i, (subject, usages) in enumerate((("/O=system:nodes/CN=system:node:n2", ("server auth",)),
                                           ("/O=system:nodes/CN=system:node:n1", ("server auth", "client auth")),
                                           ("/O=system:nodes/CN=system:node:n1", ("any",)), ("/CN=kubernetes", ("server auth",)))):
        status, _ = c.ask(c.node, "POST", CSR, csr(c, subject, f"serving-{i}", signer=SERVING, usages=usages))
        assert status in (403, 422) or unsigned(c, f"serving-{i}")
    for i, signer in enumerate(("kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown", "example.com/x", "x")):
        status, _ = c.ask(c.node, "POST", CSR, csr(c, "/O=system:nodes/CN=system:node:n1", f"signer-{i}", signer=signer))
        assert status in (400, 403, 422) or unsigned(c, f"signer-{i}")


def test_the_name_or_the_group_alone_make_no_node(c):
    for who in (c.user("system:node:n1"), c.user("x", "system:nodes"), c.user("system:node:", "system:nodes"),
                c.user("system:node:n1:x", "system:nodes")):
        for path in ("/api/v1/nodes/n1", f"{RED}/secrets/used", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"):
            assert c.ask(who, "GET", path)[0] == 403, path


def test_a_bootstrap_token_only_asks_for_a_certificate(c):
    token = node_token(c)
    table = [(p, "GET", p) for p in ("/api/v1/nodes", "/api/v1/nodes/n1", "/api/v1/pods", f"{RED}/secrets",
                                     f"{NETWORK}/hostsubnets",
                                     "/api/v1/namespaces/kube-system/secrets")]
    table += [("a node", "POST", "/api/v1/nodes", {"metadata": {"name": "x"}}), ("delete requests", "DELETE", CSR)]
    assert refused(c, token, table) == []
