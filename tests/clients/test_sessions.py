# SPDX-License-Identifier: Apache-2.0
"""Login, projects, groups, roles, security context constraints and logout by clients as they are, on a real master with its
OAuth server."""
import json
import os
import pathlib
import signal
import subprocess

import pytest
import yaml

import api_server
from lab import TENET, run, wait_for
from test_login import Client
from test_login_master import Master, provider

HERE = pathlib.Path(__file__).parent
FOLDER = api_server.BUILD / "clients"
KUBECTLS = {"1.20": "kubectl-1.20", "1.35": "kubectl-1.35"}


@pytest.fixture
def master(tmp_path):
    made = Master(tmp_path, provider("AllowAll"))
    admin = [TENET, "adm", "policy", "--kubeconfig", made.pki / "admin.kubeconfig"]
    run([*admin, "add-cluster-role-to-user", "cluster-admin", "boss"])
    yield made
    made.stop(signal.SIGKILL)


def ended(master, token):
    wait_for("the end of the token", lambda: master.ask(token, "GET", "/version")[0] == 401)


@pytest.mark.parametrize("version", KUBECTLS)
def test_kubectl(master, tmp_path, version):
    """kubectl has no login: it uses the kubeconfig that `tenet login` wrote."""
    def user(name):
        (tmp_path / name / "home").mkdir(parents=True)
        client = Client(tmp_path / name, master.pki / "ca.crt")
        client.login(master, "-u", name, "-p", "x")

        def kubectl(*args, check=True, **kw):
            return run([FOLDER / KUBECTLS[version], *args], check=check, env=client.env, **kw)
        return client, kubectl
    jane, kubectl = user("jane")
    boss, admin = user("boss")
    project = {"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": {"name": "red"}}
    assert kubectl("create", "-f", "-", input=json.dumps(project), check=False).returncode == 1
    assert admin("create", "-f", "-", input=json.dumps(project)).stdout == "project.project.openshift.io/red created\n"
    admin("create", "rolebinding", "admin", "--clusterrole=admin", "--user=jane", "-n", "red")
    wait_for("the project", lambda: kubectl("get", "projects", "-o", "name").stdout == "project.project.openshift.io/red\n")
    assert kubectl("get", "users", "~", "-o", "jsonpath={.metadata.name}").stdout == "jane"
    assert kubectl("auth", "can-i", "create", "rolebindings", "-n", "red").stdout == "yes\n"
    assert kubectl("auth", "can-i", "get", "nodes", check=False).stdout.startswith("no")
    # A group, a role for it, and the right that comes of both.
    group = {"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": {"name": "dev"}, "users": ["joe"]}
    assert kubectl("create", "-f", "-", input=json.dumps(group), check=False).returncode == 1
    admin("create", "-f", "-", input=json.dumps(group))
    kubectl("create", "rolebinding", "devs", "--clusterrole=view", "--group=dev", "-n", "red")
    _, joe = user("joe")
    wait_for("the right", lambda: joe("auth", "can-i", "list", "pods", "-n", "red", check=False).stdout == "yes\n")
    assert joe("get", "pods", "-n", "red").returncode == 0 and joe("get", "secrets", "-n", "red", check=False).returncode == 1
    assert "dev" in admin("get", "groups").stdout
    # Constraints: who may use them decides about a pod.
    assert admin("get", "scc", "-o", "name").stdout.count("securitycontextconstraints.security.openshift.io/") >= 7
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [
        {"name": "c", "image": "i", "securityContext": {"privileged": True}}]}}
    r = kubectl("create", "-f", "-", "-n", "red", input=json.dumps(pod), check=False)
    assert r.returncode == 1 and "unable to validate against any security context constraint" in r.stderr, r.stderr
    boss.run("adm", "policy", "add-scc-to-user", "privileged", "-z", "default", "-n", "red")
    wait_for("the use", lambda: kubectl("create", "-f", "-", "-n", "red", input=json.dumps(pod), check=False).returncode == 0)
    assert kubectl("get", "pod", "web", "-n", "red", "-o", "jsonpath={.metadata.annotations.openshift\\.io/scc}").stdout == "privileged"
    jane.run("logout")
    r = kubectl("get", "projects", check=False, stdin=subprocess.DEVNULL)
    assert r.returncode == 1


def play(tmp_path, tasks):
    """Runs tasks by Ansible's collections; returns what each, by its name, gave."""
    packages = FOLDER / "ansible/usr/lib/python3/dist-packages"
    (tmp_path / "play.yml").write_text(yaml.safe_dump([{"hosts": "localhost", "connection": "local", "gather_facts": False,
                                                        "vars": {"ansible_python_interpreter": "/usr/bin/python3"}, "tasks": tasks}]))
    env = {**os.environ, "PYTHONPATH": str(packages), "HOME": str(tmp_path), "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
           "ANSIBLE_LOCALHOST_WARNING": "false", "LC_ALL": "C.UTF-8", "ANSIBLE_COLLECTIONS_PATH": str(packages)}
    r = subprocess.run(["/usr/bin/python3", "-m", "ansible", "playbook", "-i", "localhost,", tmp_path / "play.yml"], env=env, text=True,
                       capture_output=True, timeout=300)
    assert '"plays"' in r.stdout, r.stdout + r.stderr
    return {t["task"]["name"]: t["hosts"]["localhost"] for t in json.loads(r.stdout[r.stdout.index("{"):])["plays"][0]["tasks"]}


def test_ansible_okd(master, tmp_path):
    at = {"host": master.url, "ca_cert": str(master.pki / "ca.crt")}
    key = {**at, "api_key": "{{ login.openshift_auth.api_key }}"}
    group = {"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": {"name": "dev"}, "users": ["jane"]}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "devs", "namespace": "red"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}]}
    project = {"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": {"name": "red"}}
    requested = {**project, "metadata": {"name": "orange", "annotations": {"openshift.io/display-name": "Orange"}}}
    # Ansible masks the password wherever it occurs in a result: a short one would spoil the token.
    done = play(tmp_path, [
        {"name": "login", "community.okd.openshift_auth": {**at, "username": "boss", "password": "long-password"},
         "register": "login"},
        {"name": "project", "kubernetes.core.k8s": {**key, "definition": project}},
        # This module makes a ProjectRequest of a Project that is not there, which does not take its annotations; then it patches.
        *({"name": name, "community.okd.k8s": {**key, "definition": requested}} for name in ("request", "annotate", "no change")),
        {"name": "group", "community.okd.k8s": {**key, "definition": group}},
        {"name": "binding", "community.okd.k8s": {**key, "definition": binding}},
        {"name": "again", "community.okd.k8s": {**key, "definition": binding}},
        {"name": "scc", "kubernetes.core.k8s_info": {**key, "api_version": "security.openshift.io/v1",
                                                     "kind": "SecurityContextConstraints", "name": "restricted"}},
        {"name": "logout", "community.okd.openshift_auth": {**key, "state": "absent"}}])
    assert [f"{r.get('msg')} {r.get('module_stderr')}" for r in done.values() if r.get("failed")] == []
    assert [done[n]["changed"] for n in ("project", "group", "binding", "again")] == [True, True, True, False]
    assert [done[n]["changed"] for n in ("request", "annotate", "no change")] == [True, True, False]
    notes = master.admin("GET", "/api/v1/namespaces/orange")["metadata"]["annotations"]
    assert (notes["openshift.io/requester"], notes["openshift.io/display-name"]) == ("boss", "Orange"), notes
    assert done["scc"]["resources"][0]["metadata"]["name"] == "restricted"
    assert done["login"]["openshift_auth"]["username"] == "boss"
    token = done["login"]["openshift_auth"]["api_key"]
    ended(master, token)
    assert master.admin("GET", "/apis/user.openshift.io/v1/groups/dev")["users"] == ["jane"]


def test_python3_openshift(master, tmp_path):
    """The older client of Ansible, by a token that `tenet login` got."""
    (tmp_path / "home").mkdir()
    client = Client(tmp_path, master.pki / "ca.crt")
    client.login(master, "-u", "boss", "-p", "x")
    program = """
import json, sys
from kubernetes import client, config
from openshift.dynamic import DynamicClient
d = DynamicClient(config.new_client_from_config(sys.argv[1]))
def of(version, kind):
    return d.resources.get(api_version=version, kind=kind)
out = {}
of("project.openshift.io/v1", "Project").create(body={"metadata": {"name": "red"}, "kind": "Project",
                                                      "apiVersion": "project.openshift.io/v1"})
out["projects"] = [p.metadata.name for p in of("project.openshift.io/v1", "Project").get().items]
out["user"] = of("user.openshift.io/v1", "User").get(name="~").metadata.name
groups = of("user.openshift.io/v1", "Group")
groups.create(body={"kind": "Group", "apiVersion": "user.openshift.io/v1", "metadata": {"name": "dev"}, "users": ["jane"]})
out["group"] = groups.patch(name="dev", body={"users": ["jane", "joe"]}, content_type="application/merge-patch+json").users
bindings = of("rbac.authorization.k8s.io/v1", "RoleBinding")
bindings.create(namespace="red", body={"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "devs"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}]})
out["bindings"] = [b.metadata.name for b in bindings.get(namespace="red").items]
out["sccs"] = [s.metadata.name for s in of("security.openshift.io/v1", "SecurityContextConstraints").get().items]
print(json.dumps(out))
"""
    env = {**os.environ, "PYTHONPATH": str(FOLDER / "openshift/usr/lib/python3/dist-packages"), "HOME": str(tmp_path)}
    out = json.loads(run(["/usr/bin/python3", "-c", program, client.config], env=env).stdout)
    assert "red" in out["projects"] and out["user"] == "boss" and out["group"] == ["jane", "joe"]
    assert "devs" in out["bindings"] and {"restricted", "privileged", "anyuid"} <= set(out["sccs"])
    token = client.run("whoami", "-t").stdout.strip()
    client.run("logout")
    ended(master, token)


def test_openshift_rest_client(master, tmp_path):
    """It logs in by itself, and exchanges name and password for a token as oc does."""
    program = """
import openshift from 'openshift-rest-client';
const url = process.argv[2];
const client = async (username, password) => openshift.OpenshiftClient({ config: { url, auth: { username, password } } });
const c = await client('boss', 'x');
const v1 = (group) => c.apis[group].v1;
const out = {};
await v1('project.openshift.io').projects.post({ body: { kind: 'Project', apiVersion: 'project.openshift.io/v1',
  metadata: { name: 'red' } } });
out.projects = (await v1('project.openshift.io').projects.get()).body.items.map((p) => p.metadata.name);
out.user = (await v1('user.openshift.io').users('~').get()).body.metadata.name;
await v1('user.openshift.io').groups.post({ body: { kind: 'Group', apiVersion: 'user.openshift.io/v1', metadata: { name: 'dev' },
  users: ['jane'] } });
out.groups = (await v1('user.openshift.io').groups.get()).body.items.map((g) => g.metadata.name);
await v1('rbac.authorization.k8s.io').namespaces('red').rolebindings.post({ body: { kind: 'RoleBinding',
  apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'devs' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'dev' }] } });
out.bindings = (await v1('rbac.authorization.k8s.io').namespaces('red').rolebindings.get()).body.items.map((b) => b.metadata.name);
out.sccs = (await v1('security.openshift.io').securitycontextconstraints.get()).body.items.map((s) => s.metadata.name);
console.log(JSON.stringify(out));
"""
    (FOLDER / "session.mjs").write_text(program)
    env = {**os.environ, "NODE_EXTRA_CA_CERTS": str(master.pki / "ca.crt"), "HOME": str(tmp_path), "KUBECONFIG": ""}
    out = json.loads(run(["node", FOLDER / "session.mjs", master.url], env=env).stdout.splitlines()[-1])
    assert "red" in out["projects"] and out["user"] == "boss" and out["groups"] == ["dev"]
    assert "devs" in out["bindings"] and {"restricted", "privileged", "anyuid"} <= set(out["sccs"])
