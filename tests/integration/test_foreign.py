# SPDX-License-Identifier: Apache-2.0
"""Nodes and controllers on an API server that knows nothing of them: the network's kinds come as the definitions of
packaging/kubernetes, and a recording proxy between them compares each request with what any Kubernetes API server
takes, and with the rules of rbac.yaml."""
import contextlib
import json
import pathlib
import re
import secrets
import subprocess
import sys

import pytest

import lab as lablib
from lab import ROOT, TENET, run, wait_for

SERVER = lablib.BUILD / "tests/unit/apiserver/apitest_server"
MANIFESTS = ROOT / "packaging/kubernetes"
LISTS = {"limit", "continue", "fieldSelector", "labelSelector", "resourceVersion", "resourceVersionMatch"}
WATCHES = {"watch", "allowWatchBookmarks", "timeoutSeconds", "resourceVersion", "fieldSelector", "labelSelector"}
WRITES = {"fieldManager", "fieldValidation", "dryRun"}


class Foreign:
    """The other cluster: API server and recorder in the lab's master namespace, agents and controllers on it."""

    def __init__(self, lab, tmp):
        self.lab, self.tmp, self.processes = lab, tmp, []
        self.log = tmp / "requests"
        self.log.touch()
        server = self.start("master", [SERVER, "--without", "network.openshift.io"], stdin=subprocess.PIPE)
        self.backend = int(server.stdout.readline())
        addresses = json.loads(lab.ns("master", ["ip", "-j", "-4", "addr", "show", "scope", "global"]).stdout)
        address = addresses[0]["addr_info"][0]["local"]
        proxy = self.start("master", [sys.executable, pathlib.Path(__file__).parent / "recorder.py",
                                      f"{address}:0", self.backend, self.log])
        self.kubeconfig = tmp / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "f",
            "clusters": [{"name": "f", "cluster": {"server": f"http://{address}:{int(proxy.stdout.readline())}"}}],
            "users": [{"name": "u", "user": {}}], "contexts": [{"name": "f", "context": {"cluster": "f", "user": "u"}}]}))

    def start(self, host, argv, **kw):
        log = open(self.tmp / f"log{len(self.processes)}", "w")
        p = self.lab.ns_popen(host, argv, stderr=log, env=lablib.environment(), **kw)
        self.processes.append(p)
        return p

    def stop(self):
        for p in reversed(self.processes):
            p.terminate()
        for p in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(20)
            p.kill()
            p.wait()

    def kubectl(self, *args, **kw):
        """Past the recorder: what users do is not what is examined."""
        env = {**lablib.environment(), "HOME": str(self.tmp)}
        return run(["ip", "netns", "exec", self.lab.ns_name("master"), "kubectl", "-s",
                    f"http://127.0.0.1:{self.backend}", *args], env=env, **kw)

    def objects(self, plural):
        return json.loads(self.kubectl("get", plural, "-o", "json").stdout)["items"]

    def requests(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def logs(self):
        return "\n".join(p.read_text() for p in sorted(self.tmp.glob("log*")))


@pytest.fixture
def foreign(make_lab, tmp_path):
    lab = make_lab("fo", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    nodes = [n["name"] for n in lab.status()["nodes"]]
    sandboxes = []
    dirs = {n: pathlib.Path(lab.node(n)["cniConfDir"]) for n in nodes}
    for n in nodes:
        lab.cmd("node", "stop", n)
    f = Foreign(lab, tmp_path)
    f.nodes, f.dirs, f.sandboxes = nodes, dirs, sandboxes
    try:
        f.kubectl("apply", "-f", MANIFESTS / "crds.yaml")
        f.kubectl("wait", "--for=condition=established", "crd", "--all", "--timeout=30s")
        yield f
    finally:
        for ns in sandboxes:
            run(["ip", "netns", "del", ns], check=False)
        f.stop()
        lab.down(check=False)


def attach(f, node, pod, project):
    """What a container runtime does for a new pod; returns its address and namespace."""
    conf = json.loads(next(f.dirs[node].glob("*.conf")).read_text())
    ns = f"tenet-{f.lab.name}-sb-{secrets.token_hex(4)}"
    run(["ip", "netns", "add", ns])
    f.sandboxes.append(ns)
    env = {**lablib.environment(), "CNI_COMMAND": "ADD", "CNI_CONTAINERID": secrets.token_hex(32), "CNI_IFNAME": "eth0",
           "CNI_NETNS": f"/run/netns/{ns}", "CNI_PATH": str(pathlib.Path(lablib.CNI).parent),
           "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={project};K8S_POD_NAME={pod}"}
    r = run(["ip", "netns", "exec", f.lab.ns_name(node), lablib.CNI], input=json.dumps(conf), env=env)
    return json.loads(r.stdout)["ips"][0]["address"].split("/")[0], ns


def put(f, path, change):
    """Changes an object (or its status) through the REST API, past the recorder."""
    url = f"http://127.0.0.1:{f.backend}{path}"
    obj = json.loads(f.lab.ns("master", ["curl", "-fsS", url]).stdout)
    change(obj)
    f.lab.ns("master", ["curl", "-fsS", "-X", "PUT", "-H", "Content-Type: application/json", "-d", json.dumps(obj),
                        url])


def rules():
    """Of rbac.yaml: role to a list of (API groups, resources, verbs)."""
    found = {}
    for doc in (MANIFESTS / "rbac.yaml").read_text().split("\n---\n"):
        kind = re.search(r"^kind: (Role|ClusterRole)$", doc, re.M)
        if kind:
            name = re.search(r"name: ([\w:-]+)", doc).group(1)
            found[kind.group(1), name] = [
                tuple([w.strip(' "') for w in part.split(",")] for part in m)
                for m in re.findall(r"apiGroups: \[(.*?)\]\n  resources: \[(.*?)\]\n  verbs: \[(.*?)\]", doc)]
    return found


def attributes(r):
    """(verb, group, namespace, resource with subresource, name) of a request, as a Kubernetes API server reads it."""
    m = re.fullmatch(r"/(?:api/v1|apis/([\w.-]+)/v1(?:alpha1)?)(?:/namespaces/([\w.-]+)(?=/))?/([a-z]+)(?:/([^/]+))?(?:/(status))?",
                     r["path"])
    assert m, r
    group, ns, resource, name, sub = m.groups()
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete" if name else "deletecollection",
            "GET": "watch" if r["query"].get("watch") == "true" else "get" if name else "list"}[r["method"]]
    return verb, group or "", ns, resource + (f"/{sub}" if sub else ""), name


def check_request(r, roles):
    verb, group, ns, resource, name = attributes(r)
    who = "tenet-controllers" if r["agent"].startswith("tenet-controllers/") else "tenet-node"
    granted = roles["ClusterRole", who] + (roles["Role", who] if ns == "kube-system" and ("Role", who) in roles else [])
    assert any(group in g and resource in res and verb in v for g, res, v in granted), f"not granted to {who}: {r}"
    known = {"list": LISTS, "watch": WATCHES, "get": set(), "create": WRITES, "update": WRITES}.get(verb, set())
    assert set(r["query"]) <= known, r
    if verb == "watch":
        assert r["query"]["resourceVersion"] not in ("", "0"), r
    if verb in ("create", "update"):
        assert r["type"] == "application/json", r
        meta = r["body"]["metadata"]
        assert r["body"]["apiVersion"] == (f"{group}/v1" if group else "v1") and r["body"]["kind"], r
        assert meta.get("namespace", ns) == ns
        # A custom resource is not updated without its version; nothing is created with one.
        assert bool(meta.get("resourceVersion")) == (verb == "update"), r
    if verb == "delete" and r["body"]:
        assert r["body"]["kind"] == "DeleteOptions" and set(r["body"]) <= {
            "kind", "apiVersion", "preconditions", "propagationPolicy", "gracePeriodSeconds"}, r


def test_nodes_and_controllers_on_another_api_server(foreign):
    f = foreign
    f.start("master", [TENET, "controllers", "--network-only", "--status-bind-address", "none", "--kubeconfig", f.kubeconfig,
                       "--plugin", "redhat/openshift-ovs-multitenant"])
    for n in f.nodes:
        f.start(n, [TENET, "node", "--config", f.dirs[n].parent / "node-config.yaml", "--kubeconfig", f.kubeconfig])
    f.kubectl("create", "namespace", "red")

    def up():
        ready = [c for node in f.objects("nodes") for c in node["status"].get("conditions", [])
                 if c["type"] == "NetworkUnavailable" and c["status"] == "False"]
        return len(ready) == 2 and all(list(d.glob("*.conf")) for d in f.dirs.values())
    try:
        wait_for("both nodes to be on the network", up)
    except AssertionError as e:
        raise AssertionError(f"{e}\n{f.logs()}") from None
    assert sorted(s["subnet"] for s in f.objects("hostsubnets")) == ["10.128.0.0/23", "10.128.2.0/23"]
    wait_for("the project's network", lambda: "red" in [n["netname"] for n in f.objects("netnamespaces")])
    # NODE-14, NODE-16: what an agent tells of its host.
    for node in f.objects("nodes"):
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]
        info = node["status"]["nodeInfo"]
        assert re.fullmatch(r"[0-9a-f-]{36}", info["bootID"]) and info["kernelVersion"] and info["osImage"]
    # Packets flow, and projects are kept apart.
    one, _ = attach(f, f.nodes[0], "one", "red")
    _, two = attach(f, f.nodes[1], "two", "red")
    _, apart = attach(f, f.nodes[1], "apart", "kube-system")
    assert run(["ip", "netns", "exec", two, "ping", "-n", "-q", "-c", "3", "-W", "2", one]).returncode == 0
    assert run(["ip", "netns", "exec", apart, "ping", "-n", "-q", "-c", "2", "-W", "1", one], check=False).returncode
    columns = f.kubectl("get", "hostsubnets").stdout.splitlines()
    # Which node came first is chance.
    assert columns[0].split()[:3] == ["NAME", "HOST", "HOST"] and re.search(r" 10\.128\.[02]\.0/23", columns[1])
    # The server forgets the versions that watches are at: all are listed again, and go on.
    gone = pathlib.Path(f"{f.log}.gone")
    before = len(f.requests())
    gone.touch()
    f.kubectl("create", "namespace", "blue")
    f.kubectl("annotate", "hostsubnets,netnamespaces,clusternetworks,nodes", "--all", "example.com/poke=1")

    def listed_again():
        lists = {attributes(r)[3] for r in f.requests()[before:] if attributes(r)[0] == "list"}
        return {"namespaces", "nodes", "hostsubnets", "netnamespaces", "clusternetworks"} <= lists
    wait_for("all kinds to be listed again", listed_again)
    gone.unlink()
    f.kubectl("create", "namespace", "green")
    wait_for("the projects' networks", lambda: {"red", "blue", "green"} <= {
        n["netname"] for n in f.objects("netnamespaces")})
    wait_for("the nodes to hear of it", lambda: attach(f, f.nodes[0], "three", "green"))
    f.kubectl("delete", "node", f.nodes[1])
    wait_for("its subnet to go", lambda: len(f.objects("hostsubnets")) == 1)
    # Not one request that another API server would not take, or that the rules do not grant.
    roles = rules()
    requests = f.requests()
    for r in requests:
        check_request(r, roles)
    assert len(requests) > 30
    assert not [r for r in requests if r["status"] in (400, 405, 415, 422)]


def test_an_agent_that_may_not_update_its_node_goes_on(foreign):
    """rbac.yaml does not let agents write annotations of Nodes: host ports stay closed to the outside, nothing else."""
    f = foreign
    pathlib.Path(f"{f.log}.denied").write_text("PUT /api/v1/nodes/[^/?]+")
    f.start("master", [TENET, "controllers", "--network-only", "--status-bind-address", "none", "--kubeconfig", f.kubeconfig,
                       "--plugin", "redhat/openshift-ovs-multitenant"])
    f.start(f.nodes[0], [TENET, "node", "--config", f.dirs[f.nodes[0]].parent / "node-config.yaml",
                         "--kubeconfig", f.kubeconfig])
    f.kubectl("create", "namespace", "red")
    wait_for("the agent to be ready", lambda: list(f.dirs[f.nodes[0]].glob("*.conf")))
    wait_for("the project's network", lambda: "red" in [n["netname"] for n in f.objects("netnamespaces")])
    f.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "red"},
        "spec": {"nodeName": f.nodes[0], "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 7077}]}]}}))
    attach(f, f.nodes[0], "web", "red")
    wait_for("the refusal to be logged", lambda: "may not update its Node" in f.logs())

    def writes():
        return [r["status"] for r in f.requests() if r["method"] == "PUT" and r["path"] == f"/api/v1/nodes/{f.nodes[0]}"]
    assert writes() == [403]
    # It is asked once, and what else the agent has to write is written.
    attach(f, f.nodes[0], "other", "red")
    wait_for("the condition", lambda: [
        c for n in f.objects("nodes") for c in n["status"].get("conditions", [])
        if c["type"] == "NetworkUnavailable" and c["status"] == "False"])
    assert writes() == [403]


def test_policies_of_another_api_server(foreign):
    """Which has NetworkPolicy, as each has, and not at first the kinds of administrators' policies."""
    f = foreign
    without = pathlib.Path(f"{f.log}.without")
    without.write_text("policy.networking.k8s.io")
    plugin = "redhat/openshift-ovs-networkpolicy"
    f.start("master", [TENET, "controllers", "--network-only", "--status-bind-address", "none", "--kubeconfig", f.kubeconfig, "--plugin", plugin])
    for n in f.nodes:
        config = f.dirs[n].parent / "node-config.yaml"
        config.write_text(config.read_text().replace("redhat/openshift-ovs-multitenant", plugin))
        f.start(n, [TENET, "node", "--config", config, "--kubeconfig", f.kubeconfig])
    f.kubectl("create", "namespace", "red")
    wait_for("the project's network", lambda: "red" in [n["netname"] for n in f.objects("netnamespaces")])
    try:
        wait_for("both agents to be ready", lambda: all(list(d.glob("*.conf")) for d in f.dirs.values()))
    except AssertionError as e:
        raise AssertionError(f"{e}\n{f.logs()}") from None

    def pod(name, node, app):
        """What kubelet tells of a pod, and what the runtime does."""
        path = "/api/v1/namespaces/red/pods"
        f.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "red", "labels": {"app": app}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}}))
        address, ns = attach(f, node, name, "red")
        put(f, f"{path}/{name}/status", lambda p: p.update(
            status={"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}))
        return address, ns

    server, _ = pod("server", f.nodes[0], "server")
    _, client = pod("client", f.nodes[1], "client")

    def reaches():
        return run(["ip", "netns", "exec", client, "ping", "-n", "-q", "-c", "1", "-W", "1", server],
                   check=False).returncode == 0
    wait_for("the server to be reached", reaches)
    deny = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "deny", "namespace": "red"}, "spec": {"podSelector": {"matchLabels": {"app": "server"}}}}
    f.kubectl("apply", "-f", "-", input=json.dumps(deny))
    wait_for("the policy to be enforced", lambda: not reaches())
    allow = {**deny, "metadata": {"name": "allow", "namespace": "red"},
             "spec": {**deny["spec"], "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}}
    f.kubectl("apply", "-f", "-", input=json.dumps(allow))
    wait_for("the server to be reached again", reaches)
    # Now the administrators' kinds are installed, and found without a restart.
    without.unlink()
    f.kubectl("apply", "-f", "-", input=json.dumps({
        "apiVersion": "policy.networking.k8s.io/v1alpha1", "kind": "AdminNetworkPolicy", "metadata": {"name": "closed"},
        "spec": {"priority": 1, "subject": {"namespaces": {"matchLabels": {"kubernetes.io/metadata.name": "red"}}},
                 "ingress": [{"action": "Deny", "from": [{"namespaces": {}}]}]}}))
    wait_for("the administrator's policy to be enforced", lambda: not reaches(), deadline=90)
    roles = rules()
    for r in f.requests():
        check_request(r, roles)
    assert not [r for r in f.requests() if r["status"] in (400, 405, 415, 422)]


def test_only_one_copy_of_the_controllers_works(foreign):
    f = foreign
    command = [TENET, "controllers", "--network-only", "--status-bind-address", "none", "--kubeconfig", f.kubeconfig]
    first, second = f.start("master", command), f.start("master", command)

    def holder():
        leases = json.loads(f.kubectl("get", "leases", "-n", "kube-system", "-o", "json").stdout)["items"]
        return leases[0]["spec"].get("holderIdentity") if leases else None
    wait_for("one to be elected", holder)
    f.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.245.9.9"}]}}))
    wait_for("its subnet", lambda: len(f.objects("hostsubnets")) == 1)
    first.terminate()
    assert first.wait(20) == 0
    f.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.245.9.10"}]}}))
    wait_for("the next subnet", lambda: len({s["subnet"] for s in f.objects("hostsubnets")}) == 2)
    assert second.poll() is None
    made = [r["body"]["metadata"]["name"] for r in f.requests()
            if r["method"] == "POST" and r["path"].endswith("/hostsubnets")]
    assert sorted(made) == ["n1", "n2"]


def test_wrong_use_is_told(tmp_path):
    r = run([TENET, "master", "--kubeconfig", tmp_path / "k"], check=False)
    assert r.returncode == 2 and "--kubeconfig" in r.stderr
    r = run([TENET, "controllers", "--network-only", "--kubeconfig", tmp_path / "absent"], check=False)
    assert r.returncode == 1 and "absent" in r.stderr
