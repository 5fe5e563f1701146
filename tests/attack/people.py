# SPDX-License-Identifier: Apache-2.0
"""A master with HTTPS and people at work: ed has the role edit in project red, ada the role admin; blue is somebody else's."""
import base64

from lab import wait_for
from test_auth import RBAC, Cluster

MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
RED, BLUE = "/api/v1/namespaces/red", "/api/v1/namespaces/blue"
NETWORK = "/apis/network.openshift.io/v1"
SECRET = "cGFzc3dvcmQ="


def pod(name="p", node=None, labels=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {}), **spec}}


class People(Cluster):
    def __init__(self, tmp, plugin="redhat/openshift-ovs-multitenant", **extra):
        super().__init__(tmp, extra={"networkConfig": {"networkPluginName": plugin}, **extra})
        for name in ("red", "blue"):
            self.namespace(name)
            self.admin("POST", f"/api/v1/namespaces/{name}/secrets",
                       {"metadata": {"name": "own"}, "data": {"k": SECRET}}, 201)
            self.admin("POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "own"}, "data": {"k": "v"}}, 201)
            self.admin("POST", f"/api/v1/namespaces/{name}/pods", pod("own", "n1"), 201)
            self.admin("POST", f"/api/v1/namespaces/{name}/services",
                       {"metadata": {"name": "own"}, "spec": {"ports": [{"port": 80}]}}, 201)
        for i in (1, 2):
            self.admin("POST", "/api/v1/nodes", {"metadata": {"name": f"n{i}"}, "status": {
                "addresses": [{"type": "InternalIP", "address": f"10.245.2.{i + 2}"}]}}, 201)
        self.bind("red", "ed", "edit", user="ed")
        self.bind("red", "ada", "admin", user="ada")
        self.ed, self.ada, self.nobody = self.user("ed"), self.user("ada"), self.user("nobody")
        for who in (self.ed, self.ada):
            wait_for("the role's rules", lambda who=who: self.ask(who, "GET", f"{RED}/secrets")[0] == 200)

    def all_of_blue(self):
        """What must be the same after an attack: the objects of blue and those of no project."""
        paths = [f"{BLUE}/{k}" for k in ("secrets", "configmaps", "pods", "services", "serviceaccounts", "endpoints")]
        paths += [f"{RBAC}/namespaces/blue/rolebindings", f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings",
                  "/api/v1/namespaces", f"{NETWORK}/netnamespaces", f"{NETWORK}/hostsubnets"]
        out = {}
        for path in paths:
            for o in self.admin("GET", path)["items"]:
                out[path, o["metadata"]["name"]] = o
        return out


def b64(text):
    return base64.b64encode(text.encode()).decode()
