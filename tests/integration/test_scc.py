# SPDX-License-Identifier: Apache-2.0
"""Security context constraints by kubectl on a real master: what oc's users see, the values of projects on two masters, restarts."""
import concurrent.futures
import json
import signal
import tempfile

import pytest

import ha
from lab import run, wait_for, TENET
from test_auth import Cluster

SCCS = "/apis/security.openshift.io/v1/securitycontextconstraints"
NAMES = ["anyuid", "hostaccess", "hostmount-anyuid", "hostnetwork", "hostnetwork-v2", "nonroot", "nonroot-v2",
         "privileged", "restricted", "restricted-v2"]
RANGE, LEVEL = "openshift.io/sa.scc.uid-range", "openshift.io/sa.scc.mcs"
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
def c(tmp_path):
    made = Cluster(str(tmp_path))
    wait_for("the default constraints", lambda: len(made.admin("GET", SCCS)["items"]) == 10)
    yield made
    made.stop(signal.SIGKILL)


@pytest.fixture
def etcd():
    with tempfile.TemporaryDirectory(prefix="tenet-scc-") as tmp:
        made = ha.Etcd(tmp)
        yield made
        made.close()


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "i"}], **spec}}


def create(c, obj, user, ns="red"):
    (c.dir / "object.json").write_text(json.dumps(obj))
    return c.kubectl("create", "-n", ns, "--as", user, "-f", c.dir / "object.json", check=False)


def test_they_look_as_in_openshift(c):
    assert [o["metadata"]["name"] for o in c.admin("GET", SCCS)["items"]] == NAMES
    lines = c.kubectl("get", "scc").stdout.splitlines()
    assert lines[0].split() == ["NAME", "PRIV", "CAPS", "SELINUX", "RUNASUSER", "FSGROUP", "SUPGROUP", "PRIORITY", "READONLYROOTFS",
                                "VOLUMES"]
    rows = {x.split()[0]: x.split()[1:] for x in lines[1:]}
    assert rows["restricted"][:8] == ["false", "[]", "MustRunAs", "MustRunAsRange", "MustRunAs", "RunAsAny", "<none>", "false"]
    assert rows["anyuid"][6] == "10" and rows["privileged"][0] == "true" and rows["privileged"][-1] == "[*]"
    whole = json.loads(c.kubectl("get", "scc/privileged", "-o", "json").stdout)
    assert whole["kind"] == "SecurityContextConstraints" and whole["priority"] is None
    for key in ("defaultAddCapabilities", "requiredDropCapabilities"):
        assert key in whole and whole[key] is None
    for key in ("HostDirVolumePlugin", "HostIPC", "HostNetwork", "HostPID", "HostPorts", "PrivilegedContainer"):
        assert whole["allow" + key] is True
    assert whole["groups"] == ["system:cluster-admins", "system:nodes"] and len(whole["users"]) == 3
    assert whole["readOnlyRootFilesystem"] is False and whole["volumes"] == ["*"]
    assert whole["metadata"]["annotations"]["kubernetes.io/description"]
    (c.dir / "scc.json").write_text(json.dumps({
        "apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": "own"},
        "runAsUser": {"type": "RunAsAny"}, "seLinuxContext": {"type": "Nonsense"}}))
    r = c.kubectl("create", "-f", c.dir / "scc.json", check=False)
    assert r.returncode == 1 and "seLinuxContext.type: Invalid value: \"Nonsense\": invalid strategy type." in r.stderr, r


def test_the_first_that_fits_decides(c):
    c.namespace("red")
    c.bind("red", "eve", "edit", user="eve")
    wait_for("the role", lambda: create(c, pod("plain"), "eve").returncode == 0)

    def scc(name):
        return c.admin("GET", f"/api/v1/namespaces/red/pods/{name}")["metadata"]["annotations"]["openshift.io/scc"]
    assert scc("plain") == "restricted"
    r = create(c, pod("root", securityContext={"runAsUser": 0}), "eve")
    assert r.returncode == 1 and "must be in the ranges: [" in r.stderr and "tenet adm policy add-scc-to-user SCC -z default -n red" in r.stderr
    # What the message says is what helps; a constraint for the account is one for its pods, whoever makes them.
    run([TENET, "adm", "policy", "add-scc-to-user", "anyuid", "-z", "default", "-n", "red", "--kubeconfig", c.pki / "admin.kubeconfig"])
    wait_for("the right", lambda: create(c, pod("root", securityContext={"runAsUser": 0}), "eve").returncode == 0)
    assert scc("root") == "anyuid"
    run([TENET, "adm", "policy", "remove-scc-from-user", "anyuid", "-z", "default", "-n", "red", "--kubeconfig", c.pki / "admin.kubeconfig"])
    wait_for("the right to end", lambda: create(c, pod("again", securityContext={"runAsUser": 0}), "eve").returncode == 1)
    # Constraints of a chart, with a priority, are chosen before.
    c.admin("POST", SCCS, {"metadata": {"name": "chart"}, "priority": 20, "users": ["eve"], "runAsUser": {"type": "MustRunAs", "uid": 999},
                           "seLinuxContext": {"type": "RunAsAny"}, "volumes": ["secret", "emptyDir"]}, 201)
    wait_for("the new constraints", lambda: create(c, pod("charted"), "eve").returncode == 0 and scc("charted") == "chart" or
             c.kubectl("delete", "pod", "charted", "-n", "red", "--now", check=False) and False)
    spec = c.admin("GET", "/api/v1/namespaces/red/pods/charted")["spec"]
    assert spec["containers"][0]["securityContext"]["runAsUser"] == 999


def test_what_an_administrator_changed_survives_a_restart(c):
    """Missing ones come back; lists, priorities and strategies of the others stay."""
    c.admin("PATCH", f"{SCCS}/restricted", {"groups": [], "priority": 3}, headers=MERGE)
    c.admin("PATCH", f"{SCCS}/anyuid", {"users": ["joe"], "priority": None}, headers=MERGE)
    c.admin("DELETE", f"{SCCS}/nonroot")
    before = {o["metadata"]["name"]: o for o in c.admin("GET", SCCS)["items"]}
    c.stop()
    c.start()
    wait_for("the missing one", lambda: len(c.admin("GET", SCCS)["items"]) == 10)
    after = {o["metadata"]["name"]: o for o in c.admin("GET", SCCS)["items"]}
    assert {n: o for n, o in after.items() if n != "nonroot"} == before


def test_namespaces_of_an_earlier_version_get_their_values(tmp_path):
    """They were made by a server that gave none: one that trusts every client."""
    c = Cluster(str(tmp_path), {"authorization": {"mode": "AlwaysAllow"}})
    try:
        for name in ("old1", "old2"):
            c.namespace(name)
            assert RANGE not in c.admin("GET", f"/api/v1/namespaces/{name}")["metadata"].get("annotations", {})
        c.stop()
        c.extra = {}
        c.start()

        def ranges():
            found = [o["metadata"].get("annotations", {}).get(RANGE) for o in c.admin("GET", "/api/v1/namespaces")["items"]]
            return found if all(found) else None
        found = wait_for("the values", ranges)
        assert len(set(found)) == len(found) >= 6
    finally:
        c.stop(signal.SIGKILL)


def test_masters_that_race_give_no_value_twice(etcd, tmp_path):
    masters = []
    try:
        for i in range(2):
            folder = tmp_path / str(i)
            folder.mkdir()
            masters.append(Cluster(str(folder), {"storage": {"backend": "etcd", "endpoints": etcd.endpoints}}))

        def make(i):
            return masters[i % 2].admin("POST", "/api/v1/namespaces", {"metadata": {"name": f"race{i}"}}, 201)
        for m in masters:
            m.admin("GET", "/api/v1/namespaces")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            made = list(pool.map(make, range(60)))
        everything = [o["metadata"]["annotations"] for o in masters[0].admin("GET", "/api/v1/namespaces")["items"]
                      if RANGE in o["metadata"].get("annotations", {})]
        assert len(made) == 60 and len(everything) >= 60
        for key in (RANGE, LEVEL):
            assert len({a[key] for a in everything}) == len(everything), key
        # A block that is free again is used again.
        first = made[0]["metadata"]["annotations"][RANGE]
        masters[1].admin("DELETE", "/api/v1/namespaces/race0")
        wait_for("it to go on both", lambda: all(m.ask(m._admin, "GET", "/api/v1/namespaces/race0")[0] == 404 for m in masters))
        starts = sorted(int(o["metadata"]["annotations"][RANGE].split("/")[0]) for o in made[1:])
        again = [masters[i % 2].admin("POST", "/api/v1/namespaces", {"metadata": {"name": f"again{i}"}}, 201)
                 for i in range(30)]
        used = [o["metadata"]["annotations"][RANGE] for o in again]
        assert len(set(used)) == 30 and (first in used or int(first.split("/")[0]) > starts[-1])
    finally:
        for m in masters:
            m.stop(signal.SIGKILL)


def test_the_constraints_of_openshift_4_are_there_for_those_who_are_given_them(c):
    """A pod of restricted-v2 keeps to the restricted standard of Kubernetes, without saying anything itself."""
    c.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "v2", "labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}}, 201)
    c.bind("v2", "ann", "edit", user="ann")
    ann, pods = c.user("ann"), "/api/v1/namespaces/v2/pods"
    wait_for("the account", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/v2/serviceaccounts/default")[0] == 200)
    wait_for("ann's right", lambda: c.ask(ann, "GET", pods)[0] == 200)
    assert "violates PodSecurity" in c.ask(ann, "POST", pods, pod("a"), want=403)["message"]
    c.bind("v2", "use", "system:openshift:scc:restricted-v2", user="ann")
    made = c.ask(ann, "POST", pods, pod("b"), want=201)
    assert made["metadata"]["annotations"]["openshift.io/scc"] == "restricted-v2"
    security = made["spec"]["containers"][0]["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]} and security["allowPrivilegeEscalation"] is False
    assert made["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    adds = {"containers": [{"name": "c", "image": "i", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}]}
    c.ask(ann, "POST", pods, pod("c", **adds), want=403)


def test_a_user_is_told_which_constraints_admit_a_pod_and_why_others_do_not(c):
    """`tenet scc why`: for the user and the account, as admission decides; `tenet scc list` has the order."""
    c.namespace("red")
    c.bind("red", "jane", "admin", user="jane")

    def tenet(*args, user="jane"):
        return run([TENET, *args, "--kubeconfig", c.pki / "admin.kubeconfig", "-n", "red", "--as", user], check=False)

    def file(name, obj):
        (c.dir / name).write_text(json.dumps(obj))
        return c.dir / name
    wait_for("the right of jane", lambda: create(c, pod("plain"), "jane").returncode == 0)
    r = tenet("scc", "why", "plain")
    assert (r.returncode, r.stderr) == (0, ""), r
    assert r.stdout.startswith("The pod was admitted by restricted.\nPod/plain for you and service account default:\n\n")
    rows = [line.split(maxsplit=2) for line in r.stdout.splitlines()[3:]]
    assert rows[0] == ["CONSTRAINTS", "ADMIT", "REASON"]
    assert ["anyuid", "no", "not usable by user or serviceaccount"] in rows
    assert rows[-1] == ["restricted", "yes", "the first that fits decides"]
    root = file("root.json", pod("root", hostNetwork=True, containers=[
        {"name": "c", "image": "i", "securityContext": {"runAsUser": 0, "privileged": True}}]))
    r = tenet("scc", "why", "-f", root)
    assert (r.returncode, r.stderr) == (1, ""), r
    assert "Pod/root for you and service account default:" in r.stdout and " yes " not in r.stdout
    for text in ("spec.hostNetwork: Invalid value: true: Host network is not allowed to be used",
                 "spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges: [",
                 "spec.containers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed"):
        assert text in r.stdout, r.stdout
    assert r.stdout.endswith("    tenet adm policy add-scc-to-user SCC -z default -n red\n")
    # The reasons are those of the refusal.
    refusal = create(c, json.loads(root.read_text()), "jane").stderr
    for line in r.stdout.splitlines()[3:-5]:
        reason = line.split(maxsplit=2)[-1] if not line.startswith(" ") else line.strip()
        assert reason in refusal, (reason, refusal)
    # The advice helps: the account may, and so may its controller; another user alone may not.
    assert run([TENET, "adm", "policy", "add-scc-to-user", "privileged", "-z", "default", "-n", "red", "--kubeconfig",
                c.pki / "admin.kubeconfig"], check=False).returncode == 0
    wait_for("the constraints", lambda: tenet("scc", "why", "-f", root).returncode == 0)
    assert create(c, json.loads(root.read_text()), "jane").returncode == 0
    assert tenet("scc", "why", "root").stdout.startswith("The pod was admitted by privileged.\n")
    spec = json.loads(root.read_text())["spec"]
    deployment = file("deployment.json", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}})
    r = tenet("scc", "why", "-f", deployment)
    assert r.returncode == 0 and r.stdout.startswith("Deployment/web for service account default:\n"), r
    r = tenet("scc", "why", "-f", deployment, "-z", "builder")
    assert r.returncode == 1 and "for service account builder:" in r.stdout, r
    r = tenet("scc", "why", "-f", root, "-u", "joe", "-z", "builder")
    assert r.returncode == 1 and "Pod/root for user joe and service account builder:" in r.stdout, r
    # One that is required is the only one that is tried.
    pinned = pod("pinned")
    pinned["metadata"]["annotations"] = {"openshift.io/required-scc": "anyuid"}
    r = tenet("scc", "why", "-f", file("pinned.json", pinned))
    assert r.returncode == 1 and "anyuid" in r.stdout and "restricted" not in r.stdout, r
    for words, text in ((("why",), "a pod, KIND/NAME or --filename is needed"), (("why", "nosuch"), "NotFound"),
                        (("why", "configmaps/kube-root-ca.crt"), "is no pod and has no template of pods"),
                        (("list", "x"), "x"), (("list",), "Forbidden")):
        r = tenet("scc", *words)
        assert r.returncode and text in r.stderr, (words, r)
    r = tenet("scc", "list", user="system:admin")
    assert r.returncode == 0, r
    assert [line.split()[0] for line in r.stdout.splitlines()] == [
        "NAME", "anyuid", "restricted-v2", "restricted", "nonroot-v2", "nonroot", "hostmount-anyuid", "hostnetwork-v2", "hostnetwork",
        "hostaccess", "privileged"]
