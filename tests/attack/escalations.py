# SPDX-License-Identifier: Apache-2.0
"""Requests by which somebody with a role in project red would get more than red: (what, method, path, body, headers)."""
import urllib.parse

from people import APPLY, BLUE, JSON_PATCH, MERGE, NETWORK, RED, b64, pod
from test_auth import CSR, RBAC

EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
PROJECTS = "/apis/project.openshift.io/v1/projects"
POLICY = "/apis/policy.networking.k8s.io/v1alpha1"
NETPOL = "/apis/networking.k8s.io/v1"
USER = "/apis/user.openshift.io/v1"
KINDS_OF_BLUE = ("pods", "secrets", "configmaps", "services", "endpoints", "serviceaccounts", "events")


def binding(role, kind="ClusterRole", user="ed", ns="red"):
    return {"metadata": {"name": "x", "namespace": ns} if ns else {"name": "x"}, "subjects": [{"kind": "User", "name": user}],
            "roleRef": {"kind": kind, "name": role}}


def other_projects():
    """Reading and writing in blue, by every kind."""
    out = []
    for kind in KINDS_OF_BLUE:
        out += [(f"list {kind} of blue", "GET", f"{BLUE}/{kind}"), (f"watch {kind} of blue", "GET", f"{BLUE}/{kind}?watch=1"),
                (f"get {kind} of blue", "GET", f"{BLUE}/{kind}/own"), (f"delete {kind} of blue", "DELETE", f"{BLUE}/{kind}/own"),
                (f"delete all {kind} of blue", "DELETE", f"{BLUE}/{kind}"),
                (f"create {kind} in blue", "POST", f"{BLUE}/{kind}", {"metadata": {"name": "x"}}),
                (f"patch {kind} of blue", "PATCH", f"{BLUE}/{kind}/own", {"metadata": {"labels": {"a": "b"}}}, MERGE),
                (f"apply {kind} in blue", "PATCH", f"{BLUE}/{kind}/own?fieldManager=x", {"metadata": {"name": "own"}}, APPLY),
                (f"list {kind} of all", "GET", f"/api/v1/{kind}"), (f"watch {kind} of all", "GET", f"/api/v1/{kind}?watch=1"),
                (f"watch {kind} the old way", "GET", f"/api/v1/watch/{kind}"),
                (f"watch {kind} of blue the old way", "GET", f"/api/v1/watch/namespaces/blue/{kind}")]
        for field in ("metadata.namespace=red", "metadata.namespace==red", "metadata.name=own", "metadata.namespace!=blue"):
            out.append((f"list {kind} of all where {field}", "GET", f"/api/v1/{kind}?fieldSelector={urllib.parse.quote(field)}"))
    return out


def paths():
    """Other spellings of paths in blue, and of red's that end in blue."""
    secrets = ["/api/v1/namespaces/red/../blue/secrets/own", "/api/v1/namespaces/red/..%2fblue/secrets/own",
               "/api/v1/namespaces/red/%2e%2e/blue/secrets/own", "/api/v1/namespaces/red%2f..%2fblue/secrets/own",
               "/api/v1/namespaces/red/secrets/../../blue/secrets/own",
               "/api/v1/namespaces/red/secrets/..%2f..%2fblue%2fsecrets%2fown",
               "//api/v1/namespaces/blue/secrets/own", "/api//v1/namespaces/blue/secrets/own",
               "/api/v1//namespaces/blue/secrets/own",
               "/api/v1/namespaces//blue/secrets/own", "/api/v1/namespaces/blue//secrets/own",
               "/api/v1/namespaces/blue/secrets//own",
               "/api/v1/namespaces/blue/secrets/own/", "/api/v1/namespaces/./blue/secrets/own",
               "/./api/v1/namespaces/blue/secrets/own",
               "/api/v1/namespaces/%62lue/secrets/own", "/api/v1/namespaces/blue/%73ecrets/own",
               "/api/v1/namespaces/Blue/secrets/own",
               "/api/v1/namespaces/blue%00/secrets/own", "/api/v1/namespaces/red%00blue/secrets/own",
               "/api/v1/namespaces/blue;red/secrets/own",
               "/api/v1/namespaces/blue/secrets/own?namespace=red", "/api/v1/namespaces/blue/secrets/own?ns=red",
               "/api/v1/secrets/own?namespace=red", "/api/v1/secrets?namespace=red", "/api/v1/secrets?namespaces=red",
               "/api/v1/namespaces/blue/secrets/own#/namespaces/red", "/api/v1/namespaces/red/secrets/own?/../../blue/secrets/own",
               "/api/v1/namespaces/*/secrets", "/api/v1/namespaces//secrets", "/api/v1/namespaces/ /secrets",
               "/api/v1/namespaces/-/secrets",
               "/api/v1/namespaces/red,blue/secrets", "/api/v1/namespaces/blue/secrets%3fwatch=1",
               "/API/v1/namespaces/blue/secrets",
               "/api/v1/proxy/namespaces/blue/secrets/own", "/api/v1/namespaces/blue\\secrets\\own",
               "/api/v1/namespaces/blue/secrets/own%20",
               "/api/v1/namespaces/%ff%fe/secrets", "/api/v1/namespaces/blue/secrets/own/status",
               "/apis//v1/namespaces/blue/secrets"]
    return [(p, "GET", p) for p in secrets]


def cluster_scope():
    """What belongs to no project."""
    node = {"metadata": {"name": "x"}}
    out = [("list nodes", "GET", "/api/v1/nodes"), ("get a node", "GET", "/api/v1/nodes/n1"),
           ("make a node", "POST", "/api/v1/nodes", node), ("delete a node", "DELETE", "/api/v1/nodes/n1"),
           ("label a node", "PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"a": "b"}}}, MERGE),
           ("a node's status", "PATCH", "/api/v1/nodes/n1/status", {"status": {"phase": "x"}}, MERGE),
           ("a node's proxy", "GET", "/api/v1/nodes/n1/proxy/"), ("metrics", "GET", "/metrics"),
           ("make a namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}}),
           ("make a project", "POST", PROJECTS, {"metadata": {"name": "mine"}}),
           ("delete another namespace", "DELETE", "/api/v1/namespaces/blue"), ("delete another project", "DELETE",
               f"{PROJECTS}/blue"),
           ("get another project", "GET", f"{PROJECTS}/blue"), ("list namespaces", "GET", "/api/v1/namespaces"),
           ("finalize a namespace", "PUT", "/api/v1/namespaces/red/finalize", {"metadata": {"name": "red"},
               "spec": {"finalizers": []}}),
           ("finalize another", "PUT", "/api/v1/namespaces/blue/finalize", {"metadata": {"name": "blue"},
               "spec": {"finalizers": []}}),
           ("join networks", "PATCH", f"{NETWORK}/netnamespaces/red", {"netid": 0}, MERGE),
           ("join networks by annotation", "PATCH", f"{NETWORK}/netnamespaces/red",
            {"metadata": {"annotations": {"pod.network.openshift.io/multitenant.change-network": "global"}}}, MERGE),
           ("a HostSubnet", "POST", f"{NETWORK}/hostsubnets", {"metadata": {"name": "x"}, "host": "x", "hostIP": "10.245.2.9",
                                                              "subnet": "10.130.0.0/23"}),
           ("change a HostSubnet", "PATCH", f"{NETWORK}/hostsubnets/n1", {"hostIP": "10.245.2.9"}, MERGE),
           ("list NetNamespaces", "GET", f"{NETWORK}/netnamespaces"), ("the ClusterNetwork", "GET", f"{NETWORK}/clusternetworks"),
           ("an AdminNetworkPolicy", "POST", f"{POLICY}/adminnetworkpolicies",
            {"metadata": {"name": "x"}, "spec": {"priority": 0, "subject": {"namespaces": {}}}}),
           ("a BaselineAdminNetworkPolicy", "POST", f"{POLICY}/baselineadminnetworkpolicies",
            {"metadata": {"name": "default"}, "spec": {"subject": {"namespaces": {}}}}),
           ("a policy of blue", "POST", f"{NETPOL}/namespaces/blue/networkpolicies",
            {"metadata": {"name": "x"}, "spec": {"podSelector": {}}}),
           ("make a user", "POST", f"{USER}/users", {"metadata": {"name": "x"}}), ("list users", "GET", f"{USER}/users"),
           ("get a user", "GET", f"{USER}/users/ada"), ("list identities", "GET", f"{USER}/identities"),
           ("make a group", "POST", f"{USER}/groups", {"metadata": {"name": "x"}, "users": ["ed", "ada"]}),
           ("join a group", "PATCH", f"{USER}/groups/x", {"users": ["ed", "ada"]}, MERGE),
           ("apply a group", "PATCH", f"{USER}/groups/x?fieldManager=x", {
               "apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": {"name": "x"}, "users": ["ed"]}, APPLY),
           ("list groups", "GET", f"{USER}/groups"), ("delete a group", "DELETE", f"{USER}/groups/x"),
           ("make an identity", "POST", f"{USER}/identities", {"providerName": "a", "providerUserName": "b"}),
           ("map an identity", "POST", f"{USER}/useridentitymappings", {"identity": {"name": "a:b"}, "user": {"name": "ed"}}),
           ("move an identity", "PUT", f"{USER}/useridentitymappings/a:b", {"identity": {"name": "a:b"}, "user": {"name": "ed"}}),
           ("a kind", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
               "metadata": {"name": "xs.example.com"}, "spec": {"group": "example.com", "scope": "Cluster", "names": {
                   "plural": "xs", "kind": "X"}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                       "openAPIV3Schema": {"type": "object"}}}]}}),
           ("an API service", "POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.x"}}),
           ("a webhook", "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            {"metadata": {"name": "x"}}),
           ("a webhook that changes", "POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            {"metadata": {"name": "x"}}),
           ("list webhooks", "GET", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"),
           ("a cluster role", "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "x"}, "rules": [EVERYTHING]}),
           ("a cluster role that gathers", "POST", f"{RBAC}/clusterroles",
            {"metadata": {"name": "x", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}, "rules": [EVERYTHING]}),
           ("a cluster role binding", "POST", f"{RBAC}/clusterrolebindings", binding("cluster-admin", ns=None)),
           ("change edit", "PATCH", f"{RBAC}/clusterroles/edit", {"rules": [EVERYTHING]}, MERGE),
           ("change edit by its rules", "PATCH", f"{RBAC}/clusterroles/system:aggregate-to-edit",
            [{"op": "add", "path": "/rules/-", "value": EVERYTHING}], JSON_PATCH),
           ("a role", "POST", f"{RBAC}/namespaces/red/roles", {"metadata": {"name": "x"}, "rules": [EVERYTHING]}),
           ("a binding in blue", "POST", f"{RBAC}/namespaces/blue/rolebindings", binding("edit", ns="blue")),
           ("a binding in kube-system", "POST", f"{RBAC}/namespaces/kube-system/rolebindings", binding("edit", ns="kube-system")),
           ("a binding to cluster-admin", "POST", f"{RBAC}/namespaces/red/rolebindings", binding("cluster-admin")),
           ("a certificate as master", "POST", CSR, {"metadata": {"name": "x"}, "spec": {
               "request": b64("x"), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}}),
           ("list certificate requests", "GET", CSR), ("secrets of kube-system", "GET", "/api/v1/namespaces/kube-system/secrets"),
           ("a bootstrap token", "POST", "/api/v1/namespaces/kube-system/secrets", {
               "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": {
                   "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}}),
           ("the controllers' lease", "PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/tenet-controllers",
            {"spec": {"holderIdentity": "me"}}, MERGE),
           ("endpoints of the API", "PATCH", "/api/v1/namespaces/default/endpoints/kubernetes", {"subsets": []}, MERGE),
           ("the API's service", "DELETE", "/api/v1/namespaces/default/services/kubernetes"),
           ("token reviews", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
           ("access reviews of others", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": {"user": "ada", "resourceAttributes": {"verb": "get", "resource": "secrets"}}}),
           ("a token of blue", "POST", f"{BLUE}/serviceaccounts/default/token", {"spec": {}}),
           ("a token of kube-system", "POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}}),
           ("a pod's binding in blue", "POST", f"{BLUE}/pods/own/binding", {"target": {"name": "n2"}}),
           ("exec in blue", "POST", f"{BLUE}/pods/own/exec?command=sh"), ("logs in blue", "GET", f"{BLUE}/pods/own/log"),
           ("a proxy in blue", "GET", f"{BLUE}/services/own/proxy/"),
           ("a pod's status", "PATCH", f"{RED}/pods/own/status", {"status": {"podIP": "10.128.0.9"}}, MERGE),
           ("another token's audience", "POST", f"{RED}/serviceaccounts/default/token/../../../blue/serviceaccounts/default/token",
            {"spec": {}})]
    return out


def as_somebody_else():
    """Headers that say who asks."""
    users = ["system:admin", "root", "ada", "system:node:n1", "system:serviceaccount:blue:default",
             "system:kube-controller-manager",
             "system:serviceaccount:kube-system:default", "system:serviceaccount:red:default:x",
             "system:serviceaccount:red/default",
             "system:serviceaccount:", "system:serviceaccount::", "system:serviceaccount:red"]
    out = [(f"as {u}", {"Impersonate-User": u}) for u in users]
    robot = {"Impersonate-User": "system:serviceaccount:red:default"}
    out += [("with masters' group", {**robot, "Impersonate-Group": "system:masters"}),
            ("with nodes' group", {**robot, "Impersonate-Group": "system:nodes"}),
            ("with accounts of blue", {**robot, "Impersonate-Group": "system:serviceaccounts:blue"}),
            ("with a uid", {**robot, "Impersonate-Uid": "0"}), ("with extra", {**robot, "Impersonate-Extra-scopes": "all"}),
            ("group without user", {"Impersonate-Group": "system:masters"}), ("uid without user", {"Impersonate-Uid": "0"}),
            ("in other letters", {"impersonate-user": "system:admin"}), ("by a proxy's header", {"X-Remote-User": "system:admin"})]
    return out


def pods():
    """Fields of a pod that the policy "restricted" would refuse, as the spec's members."""
    def of(**context):
        return {"containers": [{"name": "c", "image": "i", "securityContext": context}]}
    out = {"hostNetwork": {"hostNetwork": True}, "hostPID": {"hostPID": True}, "hostIPC": {"hostIPC": True},
           "hostPath": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
           "hostPort": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 53, "hostPort": 53,
               "protocol": "UDP"}]}]},
           "privileged": of(privileged=True), "escalation": of(allowPrivilegeEscalation=True),
           "capabilities": of(capabilities={"add": ["NET_ADMIN"]}), "all capabilities": of(capabilities={"add": ["ALL"]}),
           "user 0": of(runAsUser=0), "pod's user 0": {"securityContext": {"runAsUser": 0}},
           "seccomp": of(seccompProfile={"type": "Unconfined"}),
           "pod's seccomp": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
           "sysctls": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
           "network's sysctls": {"securityContext": {"sysctls": [{"name": "net.ipv4.conf.all.accept_redirects", "value": "1"}]}}}
    return out


def within(field, spec, where):
    """The field in another list of containers; None where it is not a container's."""
    c = (spec.get("containers") or [{}])[0]
    if where == "containers":
        return spec
    if "securityContext" not in c and "ports" not in c:
        return None
    return {"containers": [{"name": "main", "image": "i"}], where: [dict(c, name="second")]}


def pod_with(field, where="containers", name="x"):
    spec = within(field, pods()[field], where)
    return pod(name, **spec) if spec else None
