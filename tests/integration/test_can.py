# SPDX-License-Identifier: Apache-2.0
"""`tenet can`, `tenet policy can-i`, `tenet adm policy` and impersonation: a real master that decides by RBAC."""
import base64
import json

import pytest

from lab import TENET, environment, run, wait_for
from test_auth import RBAC, c, cluster, pods  # noqa: F401 (fixtures)


@pytest.fixture
def tenet(c):  # noqa: F811
    c.admin("GET", "/api/v1/namespaces")
    c.namespace("red")

    def call(*args, check=False):
        return run([TENET, *args, "--kubeconfig", c.pki / "admin.kubeconfig"], check=check)
    return call


def as_jane(*args):
    return (*args, "-n", "red", "--as", "jane", "--as-group", "system:authenticated")


def test_a_refusal_says_what_would_allow_it_and_the_answer_changes(tenet):
    r = tenet(*as_jane("can", "get", "pods"))
    assert (r.returncode, r.stdout, r.stderr) == (1, "no\n", "")
    # An administrator sees the roles, so the question about another user is asked by a review as that user.
    r = tenet(*as_jane("can", "get", "pods", "--why"))
    assert r.returncode == 1 and r.stdout.startswith("no\n") and 'no binding of a role allows it to "jane"\n' in r.stdout
    assert tenet("adm", "policy", "add-role-to-user", "view", "jane", "-n", "red").stdout == (
        'clusterrole.rbac.authorization.k8s.io/view added: "jane"\n')
    wait_for("the right", lambda: tenet(*as_jane("can", "get", "pods")).stdout == "yes\n")
    assert tenet(*as_jane("can", "get", "pods", "--why")).stdout == (
        'yes\nRBAC: allowed by RoleBinding "view/red" of ClusterRole "view" to User "jane"\n')
    for words, status in ((("get", "po"), 0), (("get", "pods/web"), 0), (("list", "deployments.apps"), 0), (("get", "pods", "web"), 0),
                          (("delete", "pods"), 1), (("get", "secrets"), 1), (("get", "nodes"), 1), (("get", "pods", "-A"), 1),
                          (("create", "pods", "--subresource", "exec"), 1), (("get", "pods", "--subresource=log"), 0)):
        r = tenet(*as_jane("can", *words))
        assert (r.returncode, r.stdout) == (status, "no\n" if status else "yes\n"), words
        r = tenet(*as_jane("policy", "can-i", *words, "-q"))
        assert (r.returncode, r.stdout) == (status, ""), words
    assert "".join(tenet("adm", "policy", "remove-role-from-user", "view", "jane", "-n", "red").stdout.split('"')[1]) == "jane"
    wait_for("the right to end", lambda: tenet(*as_jane("can", "get", "pods")).stdout == "no\n")


def test_the_role_that_would_help_is_named_to_users_who_may_read_it(tenet):
    tenet("adm", "policy", "add-cluster-role-to-user", "cluster-reader", "jane", check=True)
    wait_for("the right", lambda: tenet(*as_jane("can", "get", "pods")).stdout == "yes\n")
    r = tenet(*as_jane("can", "delete", "pods", "--why"))
    assert r.returncode == 1 and r.stdout.endswith("The role edit allows it. An administrator of the project can give it:\n\n"
                                                   "    tenet adm policy add-role-to-user edit jane -n red\n")
    r = tenet(*as_jane("can", "delete", "nodes", "--why"))
    assert r.stdout.endswith("    tenet adm policy add-cluster-role-to-user cluster-admin jane\n")


def test_all_rights_are_listed(tenet):
    tenet("adm", "policy", "add-role-to-user", "view", "jane", "-n", "red", check=True)
    wait_for("the right", lambda: tenet(*as_jane("can", "get", "pods")).stdout == "yes\n")
    for words in (("can", "--list"), ("policy", "can-i", "--list")):
        rows = tenet(*as_jane(*words)).stdout.splitlines()
        assert rows[0].split("  ")[0] == "Resources" and any("pods" in r and "list" in r for r in rows), rows
    r = tenet(*as_jane("can", "--list", "-q"))
    assert r.returncode == 2


def test_paths_and_unknown_resources(tenet):
    assert tenet(*as_jane("can", "get", "/healthz")).stdout in ("yes\n", "no\n")
    assert tenet("can", "get", "/metrics").stdout == "yes\n"
    r = tenet("can", "get", "frobs")
    assert r.stderr == "warning: the server doesn't have a resource type 'frobs'\n" and r.stdout == "yes\n"
    assert tenet("can", "get").returncode == 2


def test_any_command_may_act_as_another_user(tenet):
    assert tenet("whoami", "--as", "jane").stdout == "jane\n"
    r = tenet(*as_jane("get", "secrets"))
    assert r.returncode == 1 and 'User "jane" cannot list resource "secrets"' in r.stderr
    r = tenet("whoami", "--as-group", "x")
    assert (r.returncode, r.stderr) == (1, "error: --as-group needs --as\n")
    # A token stands for itself, beside the certificate of the kubeconfig; and without the right, nobody is another user.
    token = tenet("sa", "new-token", "default", "-n", "red", check=True).stdout.strip()
    assert tenet("whoami", "--token", token).stdout == "system:serviceaccount:red:default\n"
    r = tenet("whoami", "--token", token, "--as", "root")
    assert r.returncode == 1 and 'cannot impersonate resource "users"' in r.stderr and token not in r.stderr


def test_tokens_of_accounts(c, tenet):  # noqa: F811
    r = tenet("sa", "get-token", "default", "-n", "red")
    assert r.returncode == 1 and "could not find a service account token" in r.stderr and "tenet sa new-token default" in r.stderr
    c.admin("POST", "/api/v1/namespaces/red/secrets", {
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token"}, 201)
    token = wait_for("the token", lambda: tenet("sa", "get-token", "default", "-n", "red").stdout.strip())
    assert c.whoami(token)["username"] == "system:serviceaccount:red:default"
    new = tenet("sa", "new-token", "builder", "-n", "red", "--duration", "700").stdout.strip()
    assert c.whoami(new)["username"] == "system:serviceaccount:red:builder"
    # A kubeconfig that is the account's alone, for us and for kubectl.
    for account in ("default", "builder"):
        made = c.dir / f"{account}.kubeconfig"
        made.write_text(tenet("sa", "create-kubeconfig", account, "-n", "red", check=True).stdout)
        assert "client-certificate" not in made.read_text()
        for program in ([TENET, "whoami"], ["kubectl", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]):
            r = run([*program, "--kubeconfig", made], env={**environment(), "HOME": str(c.dir)})
            assert r.stdout.strip() == f"system:serviceaccount:red:{account}"
    assert tenet("sa", "get-token", "nobody", "-n", "red").returncode == 1
    r = tenet("sa", "new-token", "nobody", "-n", "red")
    assert r.returncode == 1 and 'serviceaccounts "nobody" not found' in r.stderr
    for words in (("sa",), ("sa", "frob"), ("sa", "get-token"), ("sa", "get-token", "a", "--duration", "5"),
                  ("sa", "new-token", "a", "--duration", "0")):
        assert tenet(*words).returncode == 2, words


def test_who_may_do_something_and_by_which_binding(tenet):
    tenet("adm", "policy", "add-role-to-user", "view", "jane", "-n", "red", check=True)
    tenet("adm", "policy", "add-role-to-user", "edit", "-z", "web", "-n", "red", check=True)
    tenet("adm", "policy", "add-cluster-role-to-group", "cluster-reader", "auditors", check=True)
    r = tenet("adm", "policy", "who-can", "list", "deploy", "-n", "red", check=True)
    assert r.stdout.startswith("Namespace: red\nVerb:      list\nResource:  deployments.apps\n\n"), r.stdout
    rows = [x.split() for x in r.stdout.splitlines()]
    assert ["User", "jane", "RoleBinding/view", "ClusterRole/view"] in rows
    assert ["ServiceAccount", "red/web", "RoleBinding/edit", "ClusterRole/edit"] in rows
    assert ["Group", "auditors", "ClusterRoleBinding/cluster-readers", "ClusterRole/cluster-reader"] in rows
    everywhere = tenet("adm", "policy", "who-can", "list", "deploy", "-A", check=True).stdout
    assert "jane" not in everywhere and "auditors" in everywhere
    may_delete = tenet("policy", "who-can", "delete", "deploy", "web", "-n", "red", check=True).stdout
    assert "jane" not in may_delete and "red/web" in may_delete and "auditors" not in may_delete
    assert "red/web" in tenet("policy", "who-can", "create", "pods", "--subresource=exec", "-n", "red", check=True).stdout
    assert "auditors" in tenet("policy", "who-can", "get", "/metrics", check=True).stdout
    assert tenet("policy", "who-can", "get").returncode == 2
    assert tenet(*as_jane("policy", "who-can", "get", "pods")).returncode == 1  # She may not read the bindings of the cluster.


def test_default_objects_are_reconciled_on_demand(tenet, c):  # noqa: F811
    kinds = ("cluster-roles", "cluster-role-bindings", "sccs")
    for kind in kinds:  # The master has just done it.
        shown = tenet("adm", "policy", f"reconcile-{kind}", check=True).stdout
        assert shown == "", shown
    rbac, scc = f"{RBAC}/clusterroles/basic-user", "/apis/security.openshift.io/v1/securitycontextconstraints/restricted"
    role, binding = c.admin("GET", rbac), c.admin("GET", f"{RBAC}/clusterrolebindings/basic-users")
    constraints = c.admin("GET", scc)
    c.admin("PUT", rbac, {**role, "rules": [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["frobs"]}]})
    c.admin("DELETE", f"{RBAC}/clusterrolebindings/basic-users")
    c.admin("PUT", scc, {**constraints, "allowHostPID": True, "users": ["jane"], "priority": 3})
    shown = tenet("adm", "policy", "reconcile-sccs", check=True).stdout
    assert "allowHostPID: false" in shown and c.admin("GET", scc)["allowHostPID"] is True
    assert tenet("adm", "policy", "reconcile-cluster-roles", "edit", check=True).stdout == ""
    for kind, name in zip(kinds, ("clusterrole.rbac.authorization.k8s.io/basic-user",
                                  "clusterrolebinding.rbac.authorization.k8s.io/basic-users",
                                  "securitycontextconstraints.security.openshift.io/restricted")):
        assert tenet("adm", "policy", f"reconcile-{kind}", "--confirm", check=True).stdout == f"{name}\n"
        assert tenet("adm", "policy", f"reconcile-{kind}", check=True).stdout == ""
    after = c.admin("GET", scc)
    assert (after["allowHostPID"], after["users"], after["priority"]) == (False, ["jane"], 3)
    rules = c.admin("GET", rbac)["rules"]
    assert len(rules) > 3 and any("frobs" in r["resources"] for r in rules)
    assert c.admin("GET", f"{RBAC}/clusterrolebindings/basic-users")["subjects"] == binding["subjects"]
    r = tenet("adm", "policy", "reconcile-sccs", "x")
    assert (r.returncode, r.stderr) == (1, 'error: "x" is none of the default securitycontextconstraints\n')


def test_questions_about_other_users_and_about_scopes(tenet):
    tenet("adm", "policy", "add-role-to-user", "edit", "jane", "-n", "red", check=True)
    tenet("adm", "policy", "add-role-to-group", "view", "dev", "-n", "red", check=True)
    wait_for("the right", lambda: tenet(*as_jane("can", "delete", "pods")).stdout == "yes\n")
    ask = ("policy", "can-i", "-n", "red")
    for words, answer in (
            (("delete", "pods", "--user", "jane"), "yes"), (("delete", "nodes", "--user", "jane"), "no"),
            (("delete", "pods", "--user", "joe"), "no"), (("list", "pods", "--user", "joe", "--groups", "a,dev"), "yes"),
            (("delete", "pods", "--user", "jane", "--scopes", "user:full"), "yes"),
            (("delete", "pods", "--user", "jane", "--scopes", "user:info"), "no"),
            (("list", "pods", "--user", "jane", "--scopes", "user:info,role:view:red"), "yes"),
            (("delete", "pods", "--user", "jane", "--scopes", "role:view:red"), "no"),
            (("delete", "pods", "--scopes", "role:view:red"), "no"), (("delete", "pods", "--scopes", "user:full"), "yes")):
        assert tenet(*ask, *words).stdout == f"{answer}\n", words
    r = tenet(*ask, "delete", "pods", "--user", "jane", "--scopes=user:info", "--why")
    assert r.stdout == "no\nRBAC: scopes [user:info] prevent this action\n"
    assert tenet(*ask, "--list", "--user", "jane").returncode == 2
    assert "cannot create" in tenet(*as_jane("can", "get", "pods", "--user", "joe")).stderr


def test_tokens_by_kubectls_words(tenet, c):  # noqa: F811
    token = tenet("create", "token", "default", "-n", "red", "--duration", "30m", "--audience", "vault", check=True).stdout.strip()
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert (claims["sub"], claims["aud"]) == ("system:serviceaccount:red:default", ["vault"])
    assert 1700 < claims["exp"] - claims["iat"] <= 1800
    own = tenet("create", "token", "default", "-n", "red", check=True).stdout.strip()
    assert c.ask(own, "GET", "/version")[0] == 200
    for words in (("token",), ("token", "a", "b"), ("token", "default", "--duration", "soon"), ("token", "default", "-o", "yaml"),
                  ("namespace", "x", "--duration", "30m")):
        assert tenet("create", *words).returncode == 2, words
    # oc's older word.
    assert len(tenet("serviceaccounts", "new-token", "default", "-n", "red", check=True).stdout.split(".")) == 3


def test_secrets_and_links_to_them(tenet, c, tmp_path):  # noqa: F811
    (tmp_path / "key").write_bytes(b"\x00key\xff")
    (tmp_path / "git").write_text("[http]\n")

    def secrets(*words):
        return tenet("secrets", *words, "-n", "red")

    def stored(name):
        o = c.admin("GET", f"/api/v1/namespaces/red/secrets/{name}")
        return o["type"], {k: base64.b64decode(v) for k, v in o["data"].items()}

    def account():
        o = c.admin("GET", "/api/v1/namespaces/red/serviceaccounts/default")
        return [[x["name"] for x in o.get(key, ())] for key in ("secrets", "imagePullSecrets")]
    assert secrets("new", "plain", tmp_path / "key", f"other={tmp_path}/git").stdout == "secret/plain\n"
    assert stored("plain") == ("Opaque", {"key": b"\x00key\xff", "other": b"[http]\n"})
    assert secrets("new-dockercfg", "pull", "--docker-server", "r.example", "--docker-username", "u", "--docker-password", "p:w",
                   "--docker-email", "a@b").stdout == "secret/pull\n"
    kind, data = stored("pull")
    assert kind == "kubernetes.io/dockercfg" and json.loads(data[".dockercfg"]) == {
        "r.example": {"username": "u", "password": "p:w", "email": "a@b", "auth": base64.b64encode(b"u:p:w").decode()}}
    assert secrets("new-basicauth", "basic", "--username", "u", "--password", "p", "--gitconfig", tmp_path / "git").returncode == 0
    assert stored("basic") == ("kubernetes.io/basic-auth", {"username": b"u", "password": b"p", ".gitconfig": b"[http]\n"})
    assert secrets("new-sshauth", "ssh", "--ssh-privatekey", tmp_path / "key").returncode == 0
    assert stored("ssh") == ("kubernetes.io/ssh-auth", {"ssh-privatekey": b"\x00key\xff"})
    before = account()
    assert secrets("link", "default", "plain", "basic").returncode == 0 and secrets("add", "default", "pull", "--for=pull").returncode == 0
    assert account() == [before[0] + ["plain", "basic"], before[1] + ["pull"]]
    assert secrets("link", "default", "plain").returncode == 0 and account()[0].count("plain") == 1
    assert secrets("unlink", "default", "plain", "basic", "pull").returncode == 0 and account() == before
    r = secrets("unlink", "default", "plain")
    assert (r.returncode, r.stderr) == (1, "error: the service account default has no link to plain\n")
    r = secrets("link", "default", "none")
    assert r.returncode == 1 and 'secrets "none" not found' in r.stderr
    for words in ((), ("frob",), ("link", "default"), ("new", "x"), ("new-sshauth", "x"), ("new-dockercfg", "x"),
                  ("new", "x", "f", "--password", "y"), ("link", "a", "b", "--for", "x"), ("new-sshauth", "x", "y")):
        assert secrets(*words).returncode == 2, words
    assert secrets("new", "x", tmp_path / "none").returncode == 1 and secrets("new-basicauth", "x").returncode == 1


def test_an_administrator_makes_a_project_for_a_user(tenet, c):  # noqa: F811
    r = tenet("adm", "new-project", "blue", "--admin", "jane", "--display-name", "Blue", "--description", "x", "--node-selector", "")
    assert r.stdout == 'Created project blue\nclusterrole.rbac.authorization.k8s.io/admin added: "jane"\n', r.stderr
    notes = c.admin("GET", "/apis/project.openshift.io/v1/projects/blue")["metadata"]["annotations"]
    assert [notes[f"openshift.io/{k}"] for k in ("display-name", "description", "node-selector")] == ["Blue", "x", ""]
    wait_for("the right", lambda: tenet("can", "delete", "pods", "-n", "blue", "--user", "jane").stdout == "yes\n")
    r = tenet("adm", "new-project", "blue")
    assert r.returncode == 1 and "AlreadyExists" in r.stderr
    assert tenet("adm", "new-project").returncode == 2
    r = tenet(*as_jane("adm", "new-project", "green"))
    assert r.returncode == 1 and "Forbidden" in r.stderr


def test_objects_are_exported(tenet, c):  # noqa: F811
    """What is exported creates the object again, in another project too."""
    c.namespace("blue")
    for name, port in (("web", 80), ("db", 5432)):
        c.admin("POST", "/api/v1/namespaces/red/services", {"metadata": {"name": name, "labels": {"app": name}}, "spec": {
            "type": "NodePort", "ports": [{"port": port}]}}, 201)
    r = tenet("export", "svc/web", "-n", "red")
    assert r.returncode == 0, r
    for text in ("clusterIP", "nodePort", "uid", "resourceVersion", "creationTimestamp", "namespace", "status"):
        assert text not in r.stdout, r.stdout
    (c.dir / "web.yaml").write_text(r.stdout)
    assert tenet("create", "-f", c.dir / "web.yaml", "-n", "blue").returncode == 0
    assert c.admin("GET", "/api/v1/namespaces/blue/services/web")["spec"]["ports"][0]["port"] == 80
    whole = json.loads(tenet("export", "svc", "-n", "red", "-o", "json").stdout)
    assert whole["kind"] == "List" and {o["metadata"]["name"] for o in whole["items"]} == {"web", "db"}
    one = json.loads(tenet("export", "svc", "-n", "red", "-l", "app=db", "-o", "json").stdout)
    assert one["kind"] == "Service" and one["metadata"]["name"] == "db"
    made = json.loads(tenet("export", "svc", "-n", "red", "--as-template", "both", "-o", "json").stdout)
    assert (made["kind"], made["metadata"]["name"], len(made["objects"])) == ("Template", "both", 2)
    assert "resourceVersion" in tenet("export", "svc/web", "-n", "red", "--raw").stdout
    scc = json.loads(tenet("export", "scc/privileged", "-o", "json").stdout)
    assert scc["priority"] is None and "uid" not in scc["metadata"] and scc["metadata"]["name"] == "privileged"
    for args, text in ((("svc/nosuch",), "NotFound"), ((), "a kind is needed"), (("svc", "-o", "wide"), "is not yaml or json"),
                       (("configmaps", "-l", "none=here"), "nothing to export")):
        r = tenet("export", *args, "-n", "red")
        assert r.returncode and text in r.stderr, (args, r)


def test_words_of_oc(tenet, c, tmp_path):  # noqa: F811
    for name in ("oc", "oadm"):
        (tmp_path / name).symlink_to(TENET)
    r = tenet("policy", "can-i", "get", "pods", "--loglevel=8", check=True)
    assert r.stdout == "yes\n" and "POST https://" in r.stderr and "/selfsubjectaccessreviews OK in " in r.stderr
    assert tenet("policy", "can-i", "get", "pods", "--loglevel=5", check=True).stderr == ""
    assert tenet("whoami", "--loglevel", "x").returncode == 2
    # Options before the command.
    assert tenet("--as", "jane", "--loglevel=0", "whoami", check=True).stdout == "jane\n"
    assert tenet("-n", "red", "get", "sa", "default", "-o", "name", check=True).stdout == "serviceaccount/default\n"
    assert "deploymentconfig (dc)" in tenet("types").stdout
    r = run([tmp_path / "oadm", "policy", "who-can", "get", "/metrics", "--kubeconfig", c.pki / "admin.kubeconfig"])
    assert r.stdout.startswith("Verb:      get\nPath:      /metrics\n")
    r = run([tmp_path / "oadm", "policy", "frob"], check=False)
    assert (r.returncode, r.stderr) == (2, 'oc adm policy: unknown command "frob"; see oc adm policy --help\n')
    assert run([tmp_path / "oadm"], check=False).returncode == 2
