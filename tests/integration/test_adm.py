# SPDX-License-Identifier: Apache-2.0
"""Administration of projects' networks: join, isolate, global; by our command and by the annotation that oc writes."""
import contextlib
import json
import time

import pytest

from lab import TENET, run, wait_for
from traffic import Traffic

CHANGE = "pod.network.openshift.io/multitenant.change-network"


class Cluster:
    def __init__(self, lab):
        self.lab = lab
        self.pods = {}
        for project in ("red", "blue", "green"):
            lab.project(project)
        for project in ("default", "red", "blue", "green"):
            for node in (1, 2):
                ref = f"{project}/p{node}"
                self.pods[f"{project}{node}"] = lab.pod(ref, f"node{node}")

    def __getitem__(self, name):
        return self.pods[name]

    def adm(self, *args, check=True, expect=None):
        r = run([TENET, "adm", "pod-network", *args, "--kubeconfig", self.lab.kubeconfig], check=check)
        if expect is not None:
            assert r.returncode != 0 and expect in r.stderr, r.stdout + r.stderr
        return r

    def netid(self, project):
        return self.lab.object("netnamespace", project)["netid"]

    def annotate(self, project, text):
        return self.lab.kubectl("annotate", "--overwrite", "netnamespace", project, f"{CHANGE}={text}", check=False)

    def request(self, project):
        return self.lab.object("netnamespace", project)["metadata"].get("annotations", {}).get(CHANGE)

    @contextlib.contextmanager
    def changes(self, plural, name):
        """The object as it is, and each change of it, as a line: a step that lasts a moment is not missed."""
        watch = ["get", plural, name, "-w", "-o", "jsonpath={@}{'\\n'}", "--request-timeout=60s"]
        with self.lab.kubectl_popen(*watch) as process:
            try:
                yield process.stdout
            finally:
                process.kill()

    def reset(self):
        """Every project alone again; also a request that a test left is taken away."""
        for project in ("red", "blue", "green"):
            self.lab.kubectl("annotate", "netnamespace", project, CHANGE + "-", check=False)
        self.adm("isolate-projects", "red", "blue", "green")

    def reach(self, a, b):
        return self[a].can_ping(self[b].ip, tries=2)

    def cannot_reach(self, a, b):
        return not self[a].can_ping(self[b].ip, tries=1)

    def moves_are_over(self):
        """No node takes the VNIDs of before: in br0 there is one isolation flow a VNID."""
        for node in ("node1", "node2"):
            def settled():
                if self.lab.has_ovs(node):
                    return not [f for f in self.lab.flows(node) if "table=80" in f and "nw_dst=" in f]
                return not [p for p in self.lab.maps(node, "pods") if "alsoVNID" in p["value"]]
            wait_for("the moves to end on " + node, settled)


@pytest.fixture(scope="module")
def own(make_lab):
    lab = make_lab("adm", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    yield Cluster(lab)
    lab.down(check=False)


@pytest.fixture
def cluster(own):
    own.reset()
    yield own


def test_join_isolate_and_global(cluster):
    """SDN-M-18: the three commands, each with its effect on running pods of both nodes, local and remote."""
    assert cluster.cannot_reach("red1", "blue1") and cluster.cannot_reach("red1", "blue2")
    cluster.adm("join-projects", "--to=red", "blue", "green")
    assert cluster.netid("blue") == cluster.netid("green") == cluster.netid("red") >= 10
    for a, b in (("red1", "blue1"), ("red1", "blue2"), ("green2", "blue1"), ("blue1", "blue2")):
        assert cluster.reach(a, b) and cluster.reach(b, a)
    cluster.moves_are_over()

    cluster.adm("isolate-projects", "blue")
    assert cluster.netid("blue") != cluster.netid("red") == cluster.netid("green")
    assert cluster.reach("red1", "green2") and cluster.reach("blue1", "blue2")
    assert cluster.cannot_reach("red1", "blue2") and cluster.cannot_reach("blue1", "green1")

    cluster.adm("make-projects-global", "green")
    assert cluster.netid("green") == 0
    assert cluster.reach("green1", "blue2") and cluster.reach("red2", "green1") and cluster.reach("green1", "red1")
    assert cluster.cannot_reach("red1", "blue1")

    cluster.adm("isolate-projects", "green")
    assert cluster.netid("green") >= 10 and cluster.netid("green") not in (cluster.netid("red"), cluster.netid("blue"))
    assert cluster.cannot_reach("green1", "red2") and cluster.reach("green1", "green2")
    assert cluster.reach("green1", "default2")
    # Joining the default project is being global.
    cluster.adm("join-projects", "--to=default", "green")
    assert cluster.netid("green") == 0 and cluster.reach("green1", "red2")


def test_isolated_projects_stay_as_they_are(cluster):
    before = {p: cluster.netid(p) for p in ("red", "blue")}
    cluster.adm("isolate-projects", "red", "blue")
    cluster.adm("join-projects", "--to=red", "red")
    assert before == {p: cluster.netid(p) for p in ("red", "blue")}


def test_selector(cluster):
    for project in ("blue", "green"):
        cluster.lab.kubectl("label", "--overwrite", "namespace", project, "colour=cold")
    cluster.adm("join-projects", "--to=red", "--selector=colour=cold")
    assert cluster.netid("blue") == cluster.netid("green") == cluster.netid("red")
    cluster.adm("isolate-projects", "--selector", "colour in (cold)")
    assert len({cluster.netid(p) for p in ("red", "blue", "green")}) == 3
    cluster.adm("make-projects-global", "--selector=colour=cold")
    assert cluster.netid("blue") == cluster.netid("green") == 0
    cluster.adm("make-projects-global", "--selector=colour=none", check=False, expect="no projects found")


def test_wrong_use_says_what_oc_says(cluster):
    adm = cluster.adm
    adm("join-projects", "blue", check=False, expect="error: must provide --to=<project_name>")
    adm("join-projects", "--to=red", check=False, expect="must provide --selector=<project_selector> or projects")
    adm("isolate-projects", "--selector=a=b", "red", check=False,
        expect="either specify --selector=<project_selector> or projects but not both")
    adm("isolate-projects", "red", "nope", "none", check=False, expect="projects nope, none not found")
    adm("join-projects", "--to=nope", "red", check=False, expect="projects nope not found")
    adm("isolate-projects", "default", check=False,
        expect='error: network isolation for project "default" is forbidden')
    adm("join-projects", check=False,
        expect="error: [must provide --selector=<project_selector> or projects, must provide --to=<project_name>]")
    assert adm("merge-projects", "red", check=False).returncode == 2
    assert adm("isolate-projects", "--to=red", "blue", check=False).returncode == 2
    assert adm("--help").stdout.startswith("usage:")
    assert run([TENET, "adm", "--help"]).stdout.startswith("usage:")
    assert run([TENET, "adm", "nope"], check=False).returncode == 2


def test_what_oc_writes_is_carried_out(cluster):
    """oc reads the object, adds the annotation, writes it back as a whole, and waits until the annotation is gone."""
    for text, done in (("join:red", lambda: cluster.netid("blue") == cluster.netid("red")),
                       ("isolate", lambda: cluster.netid("blue") not in (0, cluster.netid("red"))),
                       ("global", lambda: cluster.netid("blue") == 0),
                       ("isolate:", lambda: cluster.netid("blue") != 0),
                       ("global:", lambda: cluster.netid("blue") == 0)):
        net = cluster.lab.object("netnamespace", "blue")
        net["metadata"].setdefault("annotations", {})[CHANGE] = text
        cluster.lab.kubectl("replace", "--validate=false", "-f", "-", input=json.dumps(net))
        wait_for(f"{text} to be done", lambda: cluster.request("blue") is None, 16)
        assert done(), text


def test_requests_of_oc_adm_pod_network(cluster):
    """What oc asks, request by request: the plug-in, the projects (by name and by label), their NetNamespaces."""
    def raw(path):
        return json.loads(cluster.lab.kubectl("get", "--raw", path).stdout)
    net, project = "/apis/network.openshift.io/v1", "/apis/project.openshift.io/v1"
    assert raw(f"{net}/clusternetworks/default")["pluginName"].lower() == "redhat/openshift-ovs-multitenant"
    blue = raw(f"{project}/projects/blue")
    assert (blue["kind"], blue["apiVersion"]) == ("Project", "project.openshift.io/v1")
    assert blue["metadata"]["name"] == "blue" and blue["status"]["phase"] == "Active"
    cluster.lab.kubectl("label", "namespace", "blue", "team=a")
    try:
        chosen = raw(f"{project}/projects?labelSelector=team%3Da")
        assert chosen["kind"] == "ProjectList" and [o["metadata"]["name"] for o in chosen["items"]] == ["blue"]
        for o in chosen["items"]:
            netns = raw(f"{net}/netnamespaces/{o['metadata']['name']}")
            netns["metadata"].setdefault("annotations", {})[CHANGE] = "join:red"
            cluster.lab.kubectl("replace", "--validate=false", "-f", "-", input=json.dumps(netns))
        wait_for("the join", lambda: CHANGE not in raw(f"{net}/netnamespaces/blue")["metadata"].get("annotations", {}))
        assert cluster.netid("blue") == cluster.netid("red")
    finally:
        cluster.lab.kubectl("label", "namespace", "blue", "team-")


def test_projects_are_namespaces(cluster):
    kubectl = cluster.lab.kubectl
    kubectl("create", "--validate=false", "-f", "-", input=json.dumps({
        "apiVersion": "project.openshift.io/v1", "kind": "Project",
        "metadata": {"name": "violet", "annotations": {"openshift.io/display-name": "Violet things"}}}))
    try:
        assert cluster.lab.object("namespace", "violet")["metadata"]["annotations"] == {
            "openshift.io/display-name": "Violet things"}
        shown = kubectl("get", "projects", "violet").stdout.split("\n")
        assert shown[0].split() == ["NAME", "DISPLAY", "NAME", "STATUS"]
        assert shown[1].split() == ["violet", "Violet", "things", "Active"]
        wait_for("its network", lambda: cluster.netid("violet"))
        kubectl("create", "configmap", "kept", "-n", "violet")
    finally:
        kubectl("delete", "project", "violet")
    assert kubectl("get", "namespace", "violet", check=False).returncode != 0
    r = kubectl("delete", "project", "default", check=False)
    assert r.returncode != 0 and "may not be deleted" in r.stderr


def test_bad_requests_are_refused_by_the_api(cluster):
    for project, text in (("blue", "join"), ("blue", "join:"), ("blue", "join:A_b"), ("blue", "join:a:b"),
                          ("blue", "split"), ("blue", ""), ("default", "isolate")):
        r = cluster.annotate(project, text)
        assert r.returncode != 0 and CHANGE in r.stderr, (text, r.stderr)
    assert cluster.request("blue") is None and cluster.request("default") is None


def test_join_to_a_project_that_is_gone(cluster):
    """Told by an event and in the object at once; given up later, so that it never comes as a surprise."""
    assert cluster.annotate("blue", "join:gone").returncode == 0
    reason = 'netid not found for project "gone"'
    wait_for("the reason in the object", lambda: cluster.lab.object("netnamespace", "blue")["metadata"]
             ["annotations"].get("tenet.io/change-refused") == reason)
    wait_for("the event", lambda: [e for e in cluster.lab.objects("events", "-n", "default")
                                   if e["reason"] == "NetworkChangeRefused" and e["message"] == reason
                                   and e["involvedObject"]["name"] == "blue" and e["type"] == "Warning"])
    wait_for("the request to be given up", lambda: cluster.request("blue") is None)
    assert "tenet.io/change-refused" not in cluster.lab.object("netnamespace", "blue")["metadata"].get("annotations", {})
    # One that is there in time is joined.
    assert cluster.annotate("blue", "join:late").returncode == 0
    cluster.lab.project("late")
    try:
        wait_for("the join", lambda: cluster.request("blue") is None
                 and cluster.netid("blue") == cluster.netid("late"))
    finally:
        cluster.lab.cmd("project", "delete", "late")
    # The project that was joined has gone: who joined it keeps the network, and nobody else gets it.
    netid = cluster.netid("blue")
    cluster.lab.project("late")
    try:
        assert cluster.netid("late") != netid == cluster.netid("blue")
        assert cluster.reach("blue1", "blue2")
    finally:
        cluster.lab.cmd("project", "delete", "late")


def test_nothing_is_lost_while_projects_move(cluster):
    """Traffic that is allowed before and after, within projects and with global pods, across nodes and on one:
    at a thousand packets a second none is lost, and no connection is cut, by any of the three."""
    pairs = [(cluster["blue1"], cluster["blue2"]), (cluster["default1"], cluster["blue2"]),
             (cluster["green2"], cluster["default1"])]
    with Traffic(pairs, rate=1000):
        cluster.adm("join-projects", "--to=red", "blue", "green")
        cluster.adm("isolate-projects", "blue")
        cluster.adm("make-projects-global", "blue", "green")
        cluster.adm("isolate-projects", "blue", "green")
    assert cluster.cannot_reach("blue1", "red1") and cluster.cannot_reach("blue1", "green2")


def test_projects_that_move_together_are_not_parted(cluster):
    """blue and green share a network, and both join red's: they reach each other all the way."""
    cluster.adm("join-projects", "--to=blue", "green")
    with Traffic([(cluster["blue1"], cluster["green2"]), (cluster["green1"], cluster["blue1"])], rate=1000):
        cluster.adm("join-projects", "--to=red", "blue", "green")
    assert cluster.reach("red1", "green2")


def test_agent_restarted_in_the_middle_of_a_move(cluster):
    pair = (cluster["blue1"], cluster["blue2"])
    with cluster.changes("netnamespace", "blue") as changes, Traffic([pair], rate=1000):
        next(changes)
        assert cluster.annotate("blue", "join:red").returncode == 0
        assert any("tenet.io/next-netid" in c for c in changes), "the move did not begin"
        cluster.lab.cmd("node", "restart", "node1")
        wait_for("the move to end", lambda: cluster.request("blue") is None)
    assert cluster.reach("blue1", "red2") and cluster.netid("blue") == cluster.netid("red")


def test_master_killed_in_the_middle_of_moves_goes_on(cluster):
    """Whatever step it died in, the next one finishes it, and the accounts are right: an id is free when the last
    project has left it, and not before."""
    lab = cluster.lab
    for delay in (0.2, 1.2, 2.1):
        cluster.adm("join-projects", "--to=red", "blue")
        with Traffic([(cluster["blue1"], cluster["blue2"])], rate=1000):
            assert cluster.annotate("blue", "isolate").returncode == 0
            time.sleep(delay)  # some step of the move
            lab.cmd("master", "kill")
            lab.cmd("master", "start")
            wait_for("the move to end", lambda: cluster.request("blue") is None)
        assert cluster.netid("blue") not in (0, cluster.netid("red"))
        assert cluster.cannot_reach("blue1", "red1")
        with contextlib.ExitStack() as stack:
            ids = {cluster.netid(p) for p in ("red", "blue", "green")}
            for i in range(3):  # none of them is given out again
                lab.project(f"n{i}")
                stack.callback(lab.cmd, "project", "delete", f"n{i}")
            assert not ids & {cluster.netid(f"n{i}") for i in range(3)}


def test_only_ovs_multitenant_has_it(make_lab):
    lab = make_lab("adms", nodes=1, plugin="redhat/openshift-ovs-subnet")
    try:
        lab.project("red")
        r = run([TENET, "adm", "pod-network", "isolate-projects", "red", "--kubeconfig", lab.kubeconfig], check=False)
        assert r.returncode == 1 and ('using plugin: "redhat/openshift-ovs-subnet", managing pod network is only '
                                      'supported for openshift multitenant network plugin') in r.stderr, r.stderr
    finally:
        lab.down()
