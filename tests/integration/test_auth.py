# SPDX-License-Identifier: Apache-2.0
"""Who asks, and whether they may: a real `tenet master` with HTTPS, through kubectl and the REST API."""
import base64
import json
import os
import pathlib
import re
import signal
import ssl
import stat
import time

import pytest

import lab as lablib
from lab import TENET, run, wait_for
from test_tls import Master, make_pki, openssl, start_master  # noqa: F401 (a fixture)

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CSR = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class Cluster(Master):
    """A master, and users of it."""

    def __init__(self, tmp, extra=None, **serving):
        super().__init__(tmp, extra=extra, pkiDir=tmp + "/pki", **serving)
        self.ca = str(self.pki / "ca.crt"), str(self.pki / "ca.key")

    def user(self, name, *groups):
        """TLS context of a user with a certificate of the cluster's CA."""
        subject = "".join(f"/O={g}" for g in groups) + f"/CN={name}"
        file = "user-" + re.sub(r"[^a-z0-9]", "-", name)
        return self.context(make_pki(self.dir, file, subject, ca=self.ca))

    def ask(self, who, method, path, body=None, headers=None, want=None):
        """'who': a TLS context, or a bearer token."""
        headers = dict(headers or {})
        context = who
        if not isinstance(who, ssl.SSLContext):
            context = self.context()
            if who:
                headers["Authorization"] = f"Bearer {who}"
        status, text = self.call(path, context, headers, body, method)
        answer = json.loads(text) if text.startswith("{") else {"text": text}
        if want is not None:
            assert status == want, (method, path, status, text)
        return answer if want is not None else (status, answer)

    def admin(self, method, path, body=None, want=200, **kw):
        if not hasattr(self, "_admin"):
            self._admin = self.user("root", "system:masters")
        return self.ask(self._admin, method, path, body, want=want, **kw)

    def namespace(self, name):
        self.admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, 201)
        wait_for("the service account", lambda: self.ask(
            self._admin, "GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200)

    def role(self, ns, name, *rules):
        kind, path = ("Role", f"{RBAC}/namespaces/{ns}/roles") if ns else ("ClusterRole", f"{RBAC}/clusterroles")
        self.admin("POST", path, {"kind": kind, "metadata": {"name": name}, "rules": list(rules)}, 201)

    def bind(self, ns, name, role, user=None, group=None, kind="ClusterRole"):
        path = f"{RBAC}/namespaces/{ns}/rolebindings" if ns else f"{RBAC}/clusterrolebindings"
        subject = {"kind": "User", "name": user} if user else {"kind": "Group", "name": group}
        self.admin("POST", path, {"metadata": {"name": name}, "subjects": [subject],
                                  "roleRef": {"kind": kind, "name": role}}, 201)

    def token(self, ns, name, **spec):
        answer = self.admin("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/{name}/token", {"spec": spec}, 201)
        return answer["status"]["token"]

    def review(self, token, **spec):
        return self.admin("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                          {"spec": {"token": token, **spec}}, 201)["status"]

    def whoami(self, who, **kw):
        return self.ask(who, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, want=201,
                        **kw)["status"]["userInfo"]


@pytest.fixture
def cluster(tmp_path):
    made = []

    def start(**extra):
        made.append(Cluster(str(tmp_path), extra))
        return made[-1]
    yield start
    for c in made:
        c.stop(signal.SIGKILL)


@pytest.fixture
def c(cluster):
    return cluster()


def pods(*verbs):
    return {"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}


# ---- who asks ----

def test_certificates_are_users_and_groups(c):
    who = c.whoami(c.user("jane", "dev", "ops"))
    assert who["username"] == "jane" and sorted(who["groups"]) == ["dev", "ops", "system:authenticated"]


def test_nobody_is_anonymous_and_a_wrong_credential_is_401(c):
    status, answer = c.ask(None, "GET", "/api/v1/nodes")
    assert status == 403 and answer["message"] == (
        'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope')
    assert c.ask(None, "GET", "/version", want=200)["minor"]
    assert c.ask(None, "GET", "/api", want=403)["message"] == (
        'forbidden: User "system:anonymous" cannot get path "/api"')
    good = c.token("default", "default")
    for wrong in ("nonsense", good[:-3] + "AAA", good.split(".")[0] + "..", "abcdef.0123456789abcdef"):
        for path in ("/version", "/healthz", "/api/v1/nodes"):
            assert c.ask(wrong, "GET", path)[0] == 401, wrong
    for header in ("Basic YTpi", "Bearer", "Bearer a b"):
        assert c.ask(None, "GET", "/version", headers={"Authorization": header})[0] == 401, header
    # A certificate of another authority does not even get through the handshake.
    stranger = make_pki(c.dir, "stranger", "/O=system:masters/CN=mallory")
    with pytest.raises((OSError, ssl.SSLError)):
        c.ask(c.context(stranger), "GET", "/version")
    assert c.ask(None, "GET", f"/version?access_token={good}x")[0] == 401


def test_service_account_tokens(c):
    c.namespace("red")
    token = c.token("red", "default", expirationSeconds=600)
    who = c.whoami(token)
    assert who["username"] == "system:serviceaccount:red:default"
    assert {"system:serviceaccounts", "system:serviceaccounts:red", "system:authenticated"} == set(who["groups"])
    assert c.ask(None, "POST", f"/apis/authentication.k8s.io/v1/selfsubjectreviews?access_token={token}", {},
                 want=201)["status"]["userInfo"]["username"] == who["username"]
    header, claims = (json.loads(base64.urlsafe_b64decode(p + "==")) for p in token.split(".")[:2])
    assert header["alg"] == "ES256" and claims["iss"] == "https://kubernetes.default.svc"
    assert claims["exp"] - claims["iat"] == 600 and claims["kubernetes.io"]["serviceaccount"]["uid"] == who["uid"]
    review = c.review(token)
    assert review["authenticated"] and review["user"]["username"] == who["username"]
    assert review["audiences"] == ["https://kubernetes.default.svc"]
    # Others verify it by what is published, for accounts only.
    found = c.ask(token, "GET", "/.well-known/openid-configuration", want=200)
    assert found["issuer"] == claims["iss"] and found["id_token_signing_alg_values_supported"] == ["ES256"]
    assert c.ask(token, "GET", "/openid/v1/jwks", want=200)["keys"][0]["kid"] == header["kid"]
    assert c.ask(None, "GET", "/openid/v1/jwks")[0] == 403
    # For somebody else: only they take it.
    other = c.token("red", "default", audiences=["vault"])
    assert c.ask(other, "GET", "/version")[0] == 401
    assert not c.review(other)["authenticated"]
    assert c.review(other, audiences=["vault", "x"])["audiences"] == ["vault"]
    # The header's algorithm counts for nothing.
    def b64(v):
        return base64.urlsafe_b64encode(json.dumps(v).encode()).decode().rstrip("=")
    parts = token.split(".")
    for alg in ("none", "HS256", "RS256"):
        assert c.ask(".".join([b64({"alg": alg}), parts[1], parts[2]]), "GET", "/version")[0] == 401
    claims["sub"] = "system:serviceaccount:kube-system:default"
    assert c.ask(".".join([parts[0], b64(claims), parts[2]]), "GET", "/version")[0] == 401
    for bad in ({"expirationSeconds": 10}, {"boundObjectRef": {"kind": "Node", "apiVersion": "v2", "name": "n"}}):
        c.admin("POST", "/api/v1/namespaces/red/serviceaccounts/default/token", {"spec": bad}, 422)
    # With its account it ends; the account that comes back is another one.
    c.admin("DELETE", "/api/v1/namespaces/red/serviceaccounts/default")
    wait_for("401", lambda: c.ask(token, "GET", "/version")[0] == 401)
    wait_for("the account", lambda: c.ask(c._admin, "GET",
                                          "/api/v1/namespaces/red/serviceaccounts/default")[0] == 200)
    assert c.ask(token, "GET", "/version")[0] == 401


def test_a_bound_token_ends_with_what_it_is_bound_to(c):
    c.namespace("red")
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "b"}],
                                                 "serviceAccountName": "default"}}
    c.admin("POST", "/api/v1/namespaces/red/pods", pod, 201)
    token = c.token("red", "default", boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "web"})
    assert c.whoami(token)["extra"]["authentication.kubernetes.io/pod-name"] == ["web"]
    c.admin("POST", "/api/v1/namespaces/red/serviceaccounts/builder/token",
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "web"}}}, 400)
    c.admin("DELETE", "/api/v1/namespaces/red/pods/web")
    assert c.ask(token, "GET", "/version")[0] == 401
    c.admin("POST", "/api/v1/namespaces/red/pods", pod, 201)
    assert c.ask(token, "GET", "/version")[0] == 401, "another pod of that name"


def test_token_secrets_are_filled_and_go_with_their_account(c):
    c.namespace("red")
    c.admin("POST", "/api/v1/namespaces/red/serviceaccounts", {"metadata": {"name": "robot"}}, 201)
    path = "/api/v1/namespaces/red/secrets"
    secret = {"metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
              "type": "kubernetes.io/service-account-token"}
    c.admin("POST", path, secret, 201)
    data = wait_for("the token", lambda: c.admin("GET", f"{path}/robot-token").get("data"))
    assert base64.b64decode(data["namespace"]).decode() == "red"
    assert base64.b64decode(data["ca.crt"]).decode() == (c.pki / "ca.crt").read_text()
    token = base64.b64decode(data["token"]).decode()
    assert c.whoami(token)["username"] == "system:serviceaccount:red:robot"
    # It is good across a restart, and ends with the secret.
    c.stop()
    c.start()
    assert c.whoami(token)["username"] == "system:serviceaccount:red:robot"
    c.admin("DELETE", f"{path}/robot-token")
    assert c.ask(token, "GET", "/version")[0] == 401
    c.admin("POST", path, secret, 201)
    wait_for("the token", lambda: c.admin("GET", f"{path}/robot-token").get("data"))
    c.admin("DELETE", "/api/v1/namespaces/red/serviceaccounts/robot")
    wait_for("the secret to go", lambda: c.ask(c._admin, "GET", f"{path}/robot-token")[0] == 404)


def test_other_keys_for_tokens(cluster, tmp_path):
    openssl("genrsa", "-out", str(tmp_path / "rsa.key"), "2048")
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(tmp_path / "ec.key"))
    openssl("ec", "-in", str(tmp_path / "ec.key"), "-pubout", "-out", str(tmp_path / "ec.pub"))
    c = cluster(serviceAccountConfig={"privateKeyFile": str(tmp_path / "ec.key")})
    old = c.token("default", "default")
    assert not (c.pki / "sa.key").exists()
    c.stop()
    c.extra["serviceAccountConfig"] = {"privateKeyFile": str(tmp_path / "rsa.key"),
                                       "publicKeyFiles": [str(tmp_path / "ec.pub")]}
    c.start()
    new = c.token("default", "default")
    assert json.loads(base64.urlsafe_b64decode(new.split(".")[0] + "=="))["alg"] == "RS256"
    for token in (old, new):
        assert c.whoami(token)["username"] == "system:serviceaccount:default:default"
    c.stop()
    del c.extra["serviceAccountConfig"]["publicKeyFiles"]
    c.start()
    assert c.ask(old, "GET", "/version")[0] == 401 and c.ask(new, "GET", "/version")[0] == 200


def test_every_namespace_has_its_service_accounts(cluster):
    c = cluster(serviceAccountConfig={"managedNames": ["default", "robot"]})
    c.namespace("red")

    def names():
        items = c.admin("GET", "/api/v1/namespaces/red/serviceaccounts")["items"]
        return sorted(i["metadata"]["name"] for i in items) == ["default", "robot"]
    wait_for("the accounts", names)
    c.admin("DELETE", "/api/v1/namespaces/red/serviceaccounts/robot")
    wait_for("the account to come back", names)
    c.admin("DELETE", "/api/v1/namespaces/red")
    wait_for("the namespace to go", lambda: c.ask(c._admin, "GET", "/api/v1/namespaces/red")[0] == 404)


# ---- nodes ----

def csr(c, subject, name, *, signer="kubernetes.io/kube-apiserver-client-kubelet", usages=("client auth",), **spec):
    """A request by the openssl program, and the path of its key."""
    key, out = str(c.dir / f"{name}.key"), str(c.dir / f"{name}.csr")
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
            "-subj", subject, "-out", out)
    return {"metadata": {"name": name}, "spec": {
        "request": base64.b64encode(pathlib.Path(out).read_bytes()).decode(), "signerName": signer,
        "usages": list(usages), **spec}}


def issued(c, name):
    def look():
        status = c.admin("GET", f"{CSR}/{name}").get("status", {})
        return status.get("certificate")
    file = c.dir / f"{name}.crt"
    file.write_bytes(base64.b64decode(wait_for("the certificate", look)))
    return c.context((str(file), str(c.dir / f"{name}.key")))


def node_token(c, **data):
    r = c.tenet("token", "create", "--ttl", "1h", "--write-kubeconfig", c.dir / "bootstrap")
    return r.stdout.strip()


def test_a_node_joins_by_a_bootstrap_token(c):
    token = node_token(c)
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", token)
    assert stat.S_IMODE(os.stat(c.dir / "bootstrap").st_mode) == 0o600
    who = c.whoami(token)
    assert who["username"] == f"system:bootstrap:{token[:6]}" and "system:bootstrappers" in who["groups"]
    assert c.ask(token, "GET", "/api/v1/nodes")[0] == 403
    c.ask(token, "POST", CSR, csr(c, "/O=system:nodes/CN=system:node:n1", "n1", expirationSeconds=3600), want=201)
    node = issued(c, "n1")
    assert c.whoami(node)["username"] == "system:node:n1"
    ends = run(["openssl", "x509", "-in", c.dir / "n1.crt", "-noout", "-checkend", "4000"], check=False)
    assert "will expire" in ends.stdout and ends.returncode == 1
    # What it asks for is written by the server, whatever it says itself.
    forged = csr(c, "/O=system:nodes/CN=system:node:n2", "n2", username="system:admin", groups=["system:masters"])
    assert c.ask(node, "POST", CSR, forged)[0] == 403, "another node's certificate"
    made = c.ask(token, "POST", CSR, forged, want=201)
    assert made["spec"]["username"] == who["username"] and "system:masters" not in made["spec"]["groups"]
    # Renewal: with its own certificate, for itself.
    c.ask(node, "POST", CSR, csr(c, "/O=system:nodes/CN=system:node:n1", "again"), want=201)
    assert c.whoami(issued(c, "again"))["username"] == "system:node:n1"
    # Nothing but a node's certificate comes by itself.
    c.ask(token, "POST", CSR, csr(c, "/CN=jane", "jane", signer="kubernetes.io/kube-apiserver-client"), want=201)
    assert c.ask(token, "POST", CSR, csr(c, "/O=system:masters/CN=jane", "boss",
                                         signer="kubernetes.io/kube-apiserver-client"))[0] == 403
    assert c.ask(token, "POST", CSR, {"metadata": {"name": "bad"}, "spec": {
        **csr(c, "/CN=x", "x")["spec"], "request": base64.b64encode(b"nothing").decode()}})[0] == 422
    # Only for names that a Node can have.
    for i, cn in enumerate(("system:node:../../x", "system:node:NODE1", "system:node:a b", "system:node:", "system:node:n1.")):
        escaped = cn.replace("/", "\\/")
        for signer in ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kube-apiserver-client"):
            status, answer = c.ask(token, "POST", CSR, csr(c, f"/O=system:nodes/CN={escaped}", f"odd{i}", signer=signer))
            assert status == 422 and f'spec.request: the common name "{cn}" is of no node' in answer["message"], answer
    # The token's end.
    listed = c.tenet("token", "list").stdout
    assert token[:6] in listed and token[7:] not in listed
    c.tenet("token", "delete", token[:6])
    assert c.ask(token, "GET", "/version")[0] == 401
    assert c.whoami(node)["username"] == "system:node:n1"


def test_bootstrap_tokens_that_are_over_or_for_something_else(c):
    def secret(ident, **data):
        base = {"token-id": ident, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
        c.admin("POST", "/api/v1/namespaces/kube-system/secrets",
                {"metadata": {"name": f"bootstrap-token-{ident}"}, "type": "bootstrap.kubernetes.io/token",
                 "stringData": {k: v for k, v in {**base, **data}.items() if v is not None}}, 201)
        return f"{ident}.0123456789abcdef"
    assert c.ask(secret("aaaaaa"), "GET", "/version")[0] == 200
    assert c.ask("aaaaaa.0123456789abcdee", "GET", "/version")[0] == 401
    assert c.ask(secret("bbbbbb", expiration="2020-01-01T00:00:00Z"), "GET", "/version")[0] == 401
    wait_for("the token to be removed", lambda: c.ask(
        c._admin, "GET", "/api/v1/namespaces/kube-system/secrets/bootstrap-token-bbbbbb")[0] == 404)
    assert c.ask(secret("cccccc", expiration="2999-01-01T00:00:00Z"), "GET", "/version")[0] == 200
    assert c.ask(secret("dddddd", expiration="soon"), "GET", "/version")[0] == 401
    assert c.ask(secret("eeeeee", **{"usage-bootstrap-authentication": None}), "GET", "/version")[0] == 401
    assert c.ask(secret("ffffff", **{"token-id": "gggggg"}), "GET", "/version")[0] == 401
    groups = c.whoami(secret("hhhhhh", **{"auth-extra-groups": "system:bootstrappers:x,system:masters"}))["groups"]
    assert "system:bootstrappers:x" in groups and "system:masters" not in groups


def test_a_node_has_what_is_its_own(c):
    node = c.user("system:node:n1", "system:nodes")
    c.namespace("red")
    for name in ("n1", "n2"):
        c.admin("POST", "/api/v1/nodes", {"metadata": {"name": name}}, 201)

    def pod(name, on, secret=None):
        volumes = [{"name": "v", "secret": {"secretName": secret}}] if secret else []
        c.admin("POST", "/api/v1/namespaces/red/pods", {
            "metadata": {"name": name}, "spec": {"nodeName": on, "volumes": volumes,
                                                 "containers": [{"name": "a", "image": "b"}]}}, 201)
    for name in ("mine", "theirs"):
        c.admin("POST", "/api/v1/namespaces/red/secrets", {"metadata": {"name": name}}, 201)
    pod("here", "n1", "mine")
    pod("there", "n2", "theirs")
    red = "/api/v1/namespaces/red"
    status = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {}}
    cases = [
        (200, "GET", "/api/v1/nodes/n1"), (403, "GET", "/api/v1/nodes/n2"), (403, "GET", "/api/v1/nodes"),
        (200, "GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1"),
        (200, "GET", f"{red}/pods/here"), (403, "GET", f"{red}/pods/there"), (403, "GET", "/api/v1/pods"),
        (200, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"),
        (403, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"),
        (403, "GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3Dn2"),
        (200, "GET", f"{red}/secrets/mine"), (403, "GET", f"{red}/secrets/theirs"), (403, "GET", f"{red}/secrets"),
        (200, "GET", "/apis/network.openshift.io/v1/hostsubnets"),
        (200, "GET", "/apis/network.openshift.io/v1/netnamespaces"),
        (200, "GET", "/apis/network.openshift.io/v1/clusternetworks/default"),
        (403, "DELETE", "/apis/network.openshift.io/v1/hostsubnets/n1"),
        (403, "DELETE", "/api/v1/nodes/n1"), (403, "DELETE", f"{red}/pods/there"), (403, "GET", f"{RBAC}/clusterroles"),
        (200, "PUT", "/api/v1/nodes/n1/status", status),
        (403, "PUT", "/api/v1/nodes/n2/status", {**status, "metadata": {"name": "n2"}}),
        (403, "POST", "/api/v1/nodes", {"metadata": {"name": "n3"}}),
        (403, "PATCH", "/api/v1/nodes/n1",
         {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}),
        (200, "PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"a": "b"}}}),
        (201, "POST", f"{red}/serviceaccounts/default/token",
         {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "here"}}}),
        (403, "POST", f"{red}/serviceaccounts/default/token", {"spec": {}}),
        (403, "POST", f"{red}/serviceaccounts/default/token",
         {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "there"}}}),
        (403, "POST", f"{red}/serviceaccounts/builder/token", {"spec": {}}),
        (403, "POST", f"{red}/pods", {"metadata": {"name": "x"}}),
        (200, "DELETE", f"{red}/pods/here"),
    ]
    for want, method, path, *body in cases:
        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        got, answer = c.ask(node, method, path, *body, headers=headers)
        assert got == want, (method, path, got, answer)
    # The name alone makes no node.
    assert c.ask(c.user("system:node:n2"), "GET", "/api/v1/nodes/n2")[0] == 403


def test_nodes_know_all_pods_where_policy_needs_them(cluster):
    c = cluster(networkConfig={"networkPluginName": "redhat/openshift-ovs-networkpolicy"})
    node = c.user("system:node:n1", "system:nodes")
    for path in ("/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces", "/apis/networking.k8s.io/v1/networkpolicies",
                 "/apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies",
                 "/apis/policy.networking.k8s.io/v1alpha1/baselineadminnetworkpolicies"):
        assert c.ask(node, "GET", path)[0] == 200, path
    assert c.ask(node, "GET", "/api/v1/secrets")[0] == 403
    assert c.ask(node, "POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
                 {"metadata": {"name": "p"}, "spec": {"podSelector": {}}})[0] == 403


@pytest.fixture
def tls_lab():
    """A lab with HTTPS and two nodes: its name, and a function that runs `tenet lab`."""
    name = f"a{os.getpid()}tls"

    def lab(*args):
        return run([TENET, "lab", "--name", name, *args], timeout=180).stdout
    try:
        lab("up", "--no-containers", "--nodes", "2", "--tls")
        yield pathlib.Path(f"/run/tenet/lab/{name}"), lab
    finally:
        lab("down")


def nodes_ready(home):
    nodes = json.loads(run([TENET, "get", "nodes", "-o", "json", "--kubeconfig", home / "kubeconfig"]).stdout)["items"]
    return sorted(n["metadata"]["name"] for n in nodes if any(
        k["type"] == "Ready" and k["status"] == "True" for k in n["status"]["conditions"]))


def test_the_lab_with_https(tls_lab):
    home, lab = tls_lab
    assert nodes_ready(home) == ["node1", "node2"]
    for n in ("node1", "node2"):
        own = home / f"nodes/{n}/node.kubeconfig"
        assert f"user: system:node:{n}" in own.read_text() and stat.S_IMODE(own.stat().st_mode) == 0o600
        before = own.read_text()
        lab("node", "restart", n)
        assert own.read_text() == before, "a restart needs no new certificate"
    lab("project", "add", "red")
    for pod in ("red/a", "red/b"):
        lab("pod", "add", pod)
    pod = json.loads(run([TENET, "get", "pod", "b", "-n", "red", "-o", "json",
                          "--kubeconfig", home / "kubeconfig"]).stdout)
    lab("exec", "red/a", "--", "ping", "-c", "1", "-W", "5", pod["status"]["podIP"])


def old_certificate(folder, pki, subject, ends):
    """A certificate by the lab's authority that began long ago and ends at the time 'ends'."""
    key, csr_file, crt = (folder / f"old.{x}" for x in ("key", "csr", "crt"))
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(key),
            "-subj", subject, "-out", str(csr_file))
    (folder / "index").write_text("")
    (folder / "serial").write_text("7777\n")
    (folder / "ca.cnf").write_text(f"""
[ca]
default_ca = d
[d]
new_certs_dir = {folder}
database = {folder}/index
serial = {folder}/serial
default_md = sha256
policy = p
x509_extensions = x
[p]
organizationName = supplied
commonName = supplied
[x]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
""")
    openssl("ca", "-batch", "-notext", "-config", str(folder / "ca.cnf"), "-cert", str(pki / "ca.crt"), "-keyfile",
            str(pki / "ca.key"), "-in", str(csr_file), "-out", str(crt), "-startdate", "20200101000000Z", "-enddate",
            time.strftime("%Y%m%d%H%M%SZ", time.gmtime(ends)))
    return crt.read_bytes(), key.read_bytes()


def test_a_node_renews_its_certificate_and_joins_again_when_it_is_over(tls_lab, tmp_path):
    home, lab = tls_lab
    own = home / "nodes/node1/node.kubeconfig"

    def with_certificate(ends):
        lab("node", "stop", "node1")
        crt, key = old_certificate(tmp_path, home / "master/pki", "/O=system:nodes/CN=system:node:node1", ends)
        text = own.read_text()
        for name, value in (("certificate", crt), ("key", key)):
            text = re.sub(rf"client-{name}-data: *\S+", f"client-{name}-data: {base64.b64encode(value).decode()}", text)
        own.write_text(text)
        return text
    # Over: it asks with the token.
    before = with_certificate(time.time() - 60)
    lab("node", "start", "node1")
    assert own.read_text() != before and "node1" in nodes_ready(home)
    # Near its end: it asks with what it has, as the token is gone, and goes on with the new one.
    ident = re.search(r"token: *(\w{6})\.", (home / "bootstrap.kubeconfig").read_text())[1]
    run([TENET, "token", "delete", ident, "--kubeconfig", home / "kubeconfig"])
    before = with_certificate(time.time() + 3600)
    lab("node", "start", "node1")
    wait_for("the new certificate", lambda: own.read_text() != before)
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    requests = json.loads(run([TENET, "get", "csr", "-o", "json", "--kubeconfig", home / "kubeconfig"]).stdout)
    assert "system:node:node1" in [r["spec"]["username"] for r in requests["items"]]
    wait_for("the node", lambda: "node1" in nodes_ready(home))
    lab("project", "add", "red")
    lab("pod", "add", "red/a", "--node", "node1")


# ---- whether they may ----

def test_roles_and_bindings_decide(c):
    c.namespace("red")
    c.namespace("blue")
    jane, joe = c.user("jane", "dev"), c.user("joe")
    status, answer = c.ask(jane, "GET", "/api/v1/namespaces/red/pods")
    assert status == 403 and answer["reason"] == "Forbidden" and answer["details"] == {"kind": "pods"}
    assert answer["message"] == ('pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the '
                                 'namespace "red"')
    assert c.ask(jane, "GET", "/apis/network.openshift.io/v1/hostsubnets/x", want=403)["message"] == (
        'hostsubnets.network.openshift.io "x" is forbidden: User "jane" cannot get resource "hostsubnets" in API group '
        '"network.openshift.io" at the cluster scope')
    assert c.ask(jane, "PUT", "/api/v1/namespaces/red/pods/p/status", {}, want=403)["message"].startswith(
        'pods "p" is forbidden: User "jane" cannot update resource "pods/status" in API group ""')
    # Who may not know hears nothing of what there is.
    assert c.ask(jane, "GET", "/apis/no.such/v1/things")[0] == 403
    c.role("red", "reader", pods("get", "list", "watch"))
    c.bind("red", "readers", "reader", group="dev", kind="Role")
    assert c.ask(jane, "GET", "/api/v1/namespaces/red/pods")[0] == 200
    assert c.ask(jane, "GET", "/api/v1/namespaces/blue/pods")[0] == 403
    assert c.ask(joe, "GET", "/api/v1/namespaces/red/pods")[0] == 403
    c.role(None, "one", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["s"]})
    c.bind("blue", "one", "one", user="joe")
    assert c.ask(joe, "GET", "/api/v1/namespaces/blue/secrets/s")[0] == 404
    assert c.ask(joe, "GET", "/api/v1/namespaces/blue/secrets/t")[0] == 403
    # It ends with the binding, at once.
    c.admin("DELETE", f"{RBAC}/namespaces/red/rolebindings/readers")
    assert c.ask(jane, "GET", "/api/v1/namespaces/red/pods")[0] == 403
    # A binding to a role that is not there says so.
    c.bind("red", "late", "nosuch", group="dev")
    assert c.ask(jane, "GET", "/api/v1/namespaces/red/pods", want=403)["message"].endswith(
        'clusterrole.rbac.authorization.k8s.io "nosuch" not found')


def test_project_administrators_cannot_escalate(c):
    c.namespace("red")
    jane = c.user("jane")
    c.bind("red", "admin", "admin", user="jane")
    wait_for("the role's rules", lambda: c.ask(jane, "GET", "/api/v1/namespaces/red/secrets")[0] == 200)
    path = f"{RBAC}/namespaces/red/rolebindings"

    def binding(name, role, user="joe"):
        return {"metadata": {"name": name}, "subjects": [{"kind": "User", "name": user}],
                "roleRef": {"kind": "ClusterRole", "name": role}}
    for role in ("view", "edit", "admin"):
        c.ask(jane, "POST", path, binding(f"joe-{role}", role), want=201)
    answer = c.ask(jane, "POST", path, binding("x", "cluster-admin"), want=403)
    assert answer["message"].startswith(
        'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "jane" (groups=["system:authenticated"]) is '
        'attempting to grant RBAC permissions not currently held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}')
    assert c.ask(jane, "POST", path, binding("x", "nosuch"))[0] == 404
    # Roles of the project: with what the administrator has, and nothing else.
    roles = f"{RBAC}/namespaces/red/roles"
    c.ask(jane, "POST", roles, {"metadata": {"name": "readers"}, "rules": [pods("get")]}, want=201)
    answer = c.ask(jane, "POST", roles, {"metadata": {"name": "big"}, "rules": [{**pods("get"), "resources": ["nodes"]}]}, want=403)
    assert answer["message"].startswith(
        'roles.rbac.authorization.k8s.io "big" is forbidden: user "jane" (groups=["system:authenticated"]) is '
        'attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}')
    # With "bind" and "escalate" it may be more.
    c.role("red", "helper", {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
                             "verbs": ["bind"], "resourceNames": ["cluster-admin"]})
    c.bind("red", "helper", "helper", user="jane", kind="Role")
    c.ask(jane, "POST", path, binding("x", "cluster-admin"), want=201)
    # cluster-admin in one project is everything in it and nothing outside.
    joe = c.user("joe")
    c.ask(joe, "POST", f"{RBAC}/namespaces/red/roles", {"metadata": {"name": "r"}, "rules": [pods("get")]}, want=201)
    assert c.ask(joe, "GET", "/api/v1/nodes")[0] == 403
    # Roles, too: who may write them cannot write more than they have.
    c.role(None, "roles", {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
                           "verbs": ["create", "update", "get"]})
    c.bind(None, "roles", "roles", user="jim")
    jim = c.user("jim")
    body = {"metadata": {"name": "mine"}, "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]}
    assert c.ask(jim, "POST", f"{RBAC}/clusterroles", body)[0] == 403
    reader = c.ask(jim, "GET", f"{RBAC}/clusterroles/cluster-reader", want=200)
    reader["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] = "true"
    assert c.ask(jim, "PUT", f"{RBAC}/clusterroles/cluster-reader", reader)[0] == 403, "a label gives its rules away"
    sly = {"metadata": {"name": "sly"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    assert c.ask(jim, "POST", f"{RBAC}/clusterroles", sly)[0] == 403
    c.role(None, "escalate", {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
                              "verbs": ["escalate"]})
    c.bind(None, "escalate", "escalate", user="jim")
    c.ask(jim, "POST", f"{RBAC}/clusterroles", body, want=201)


def test_everybody_reads_what_the_project_openshift_shares(c):
    """The role shared-resource-viewer: templates of the project openshift, for all authenticated users, and nothing else there."""
    jane = c.user("jane")
    templates = "/apis/template.openshift.io/v1/namespaces/openshift/templates"
    wait_for("the project openshift", lambda: c.ask(jane, "GET", templates)[0] == 200)
    c.admin("POST", templates, {"metadata": {"name": "own"}, "objects": []}, 201)
    assert c.ask(jane, "GET", f"{templates}/own", want=200)["metadata"]["name"] == "own"
    for method, path, body in (("POST", templates, {"metadata": {"name": "x"}, "objects": []}), ("DELETE", f"{templates}/own", None),
                               ("GET", "/api/v1/namespaces/openshift/secrets", None), ("GET", "/api/v1/namespaces/openshift/pods", None),
                               ("GET", templates.replace("/openshift/", "/kube-system/"), None)):
        assert c.ask(jane, method, path, body)[0] == 403, (method, path)
    assert c.ask(None, "GET", templates)[0] == 403


def test_cluster_roles_gather_rules_by_labels(c):
    c.namespace("red")
    c.bind("red", "jane", "view", user="jane")
    jane = c.user("jane")
    path = "/apis/network.openshift.io/v1/netnamespaces"
    assert c.ask(jane, "GET", path)[0] == 403
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    c.admin("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "more", "labels": label}, "rules": [
        {"apiGroups": [""], "resources": ["widgets"], "verbs": ["list"]}]}, 201)

    def allowed():
        return c.ask(jane, "GET", "/api/v1/namespaces/red/widgets")[0] == 404
    wait_for("the new rule", allowed)
    c.admin("DELETE", f"{RBAC}/clusterroles/more")
    wait_for("the rule to go", lambda: not allowed())


def test_default_roles_are_reconciled_at_start(c):
    def get(name):
        return c.admin("GET", f"{RBAC}/clusterroles/{name}")
    admin = c._admin if hasattr(c, "_admin") else None
    role = get("system:discovery")
    wanted = role["rules"]
    role["rules"] = [{"verbs": ["get"], "nonResourceURLs": ["/mine"]}]
    c.admin("PUT", f"{RBAC}/clusterroles/system:discovery", role)
    kept = get("basic-user")
    kept["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    kept["rules"] = []
    c.admin("PUT", f"{RBAC}/clusterroles/basic-user", kept)
    c.admin("DELETE", f"{RBAC}/clusterroles/cluster-reader")
    c.admin("DELETE", f"{RBAC}/clusterrolebindings/system:discovery")
    assert admin is None or c._admin is admin
    c.stop()
    c.start()
    assert get("system:discovery")["rules"] == role["rules"] + wanted
    assert not get("basic-user").get("rules")
    assert get("cluster-reader")["rules"]
    c.admin("GET", f"{RBAC}/clusterrolebindings/system:discovery")


def test_access_reviews(c):
    c.namespace("red")
    c.role("red", "reader", pods("get"))
    c.bind("red", "b", "reader", group="dev", kind="Role")
    jane = c.user("jane", "dev")
    auth = "/apis/authorization.k8s.io/v1"

    def mine(**attrs):
        return c.ask(jane, "POST", f"{auth}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attrs}},
                     want=201)["status"]["allowed"]
    assert mine(namespace="red", verb="get", resource="pods")
    assert not mine(namespace="red", verb="list", resource="pods")
    assert not mine(namespace="blue", verb="get", resource="pods")
    assert c.ask(jane, "POST", f"{auth}/selfsubjectaccessreviews",
                 {"spec": {"nonResourceAttributes": {"path": "/api", "verb": "get"}}}, want=201)["status"]["allowed"]
    rules = c.ask(jane, "POST", f"{auth}/selfsubjectrulesreviews", {"spec": {"namespace": "red"}},
                  want=201)["status"]
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]} in rules["resourceRules"]
    assert rules["incomplete"] is False
    about = {"user": "x", "groups": ["dev"], "resourceAttributes": {"namespace": "red", "verb": "get",
                                                                    "resource": "pods"}}
    assert c.ask(jane, "POST", f"{auth}/subjectaccessreviews", {"spec": about})[0] == 403
    assert c.admin("POST", f"{auth}/subjectaccessreviews", {"spec": about}, 201)["status"]["allowed"]
    local = f"{auth}/namespaces/red/localsubjectaccessreviews"
    assert c.admin("POST", local, {"metadata": {"namespace": "red"}, "spec": about}, 201)["status"]["allowed"]
    other = {**about, "resourceAttributes": {**about["resourceAttributes"], "namespace": "blue"}}
    c.admin("POST", local, {"metadata": {"namespace": "red"}, "spec": other}, 422)
    c.admin("POST", f"{auth}/subjectaccessreviews", {"spec": {"user": "x"}}, 422)
    c.admin("GET", f"{auth}/subjectaccessreviews", want=405)


def test_impersonation(c):
    c.namespace("red")
    jane = c.user("jane")
    c.bind(None, "sudo", "sudoer", user="jane")
    assert c.ask(jane, "DELETE", "/api/v1/nodes")[0] == 403
    as_admin = {"Impersonate-User": "system:admin"}
    assert c.ask(jane, "DELETE", "/api/v1/nodes", headers=as_admin)[0] == 200
    assert c.whoami(jane, headers=as_admin)["groups"] == ["system:authenticated"]
    status, answer = c.ask(jane, "GET", "/api/v1/nodes", headers={"Impersonate-User": "joe"})
    assert status == 403 and answer["message"] == (
        'users "joe" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster '
        'scope')
    assert c.ask(jane, "GET", "/version", headers={**as_admin, "Impersonate-Group": "dev"})[0] == 403
    assert c.ask(jane, "GET", "/version", headers={"Impersonate-Group": "system:masters"})[0] == 400
    assert c.ask(jane, "GET", "/version", headers={**as_admin, "Impersonate-Extra-a": "b"})[0] == 403
    assert c.ask(None, "GET", "/version", headers=as_admin)[0] == 403
    who = c.whoami(c._admin, headers={"Impersonate-User": "joe", "Impersonate-Uid": "7", "Impersonate-Group": "dev",
                                      "Impersonate-Extra-scopes%2fa": "b"})
    assert who == {"username": "joe", "uid": "7", "groups": ["dev", "system:authenticated"],
                   "extra": {"scopes/a": ["b"]}}
    # Editors of a project act as its service accounts, and as no others.
    c.bind("red", "ed", "edit", user="ed")
    ed = c.user("ed")
    as_robot = {"Impersonate-User": "system:serviceaccount:red:default"}
    wait_for("the role's rules", lambda: c.ask(ed, "GET", "/version", headers=as_robot)[0] == 200)
    assert "system:serviceaccounts:red" in c.whoami(ed, headers=as_robot)["groups"]
    assert c.ask(ed, "GET", "/version", headers={"Impersonate-User": "system:serviceaccount:default:default"})[0] == 403


# ---- audit ----

def test_audit_log(cluster, tmp_path):
    log, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text("""
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:admin"]}
- {level: RequestResponse, resources: [{group: "", resources: [namespaces, secrets, serviceaccounts/token]}]}
- {level: Metadata}
""")
    c = cluster(auditConfig={"auditFilePath": str(log), "policyFile": str(policy)})
    jane = c.user("jane")
    c.ask(jane, "GET", "/api/v1/nodes?limit=1", headers={"Audit-ID": "abc-1"}, want=403)
    c.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "red"}}, 201)
    c.admin("POST", "/api/v1/namespaces/red/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "hush-hush"}}, 201)
    token = c.token("default", "default")
    c.ask(None, "GET", f"/version?access_token={token}&x=1", want=200)
    c.ask("wrong", "GET", "/version", want=401)
    c.admin("GET", "/version", headers={"Impersonate-User": "joe"})
    c.ask(jane, "GET", "/version", headers={"Impersonate-User": "root", "Audit-ID": "abc-2"}, want=403)

    def lines():
        return [json.loads(line) for line in log.read_text().splitlines()]
    events = wait_for("the events", lambda: [e for e in lines() if e["auditID"] == "abc-2"] and lines())
    assert all(e["kind"] == "Event" and e["apiVersion"] == "audit.k8s.io/v1" for e in events)
    assert not [e for e in events if e["user"].get("username") == "system:admin"]
    refused = next(e for e in events if e["auditID"] == "abc-1")
    assert refused["verb"] == "list" and refused["user"]["username"] == "jane" and refused["level"] == "Metadata"
    assert refused["responseStatus"]["code"] == 403 and refused["requestURI"] == "/api/v1/nodes?limit=1"
    assert refused["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert refused["sourceIPs"] == ["127.0.0.1"] and refused["stage"] == "ResponseComplete"
    made = next(e for e in events if e["verb"] == "create" and e["objectRef"]["resource"] == "namespaces")
    assert made["requestObject"]["metadata"]["name"] == "red" and made["responseObject"]["metadata"]["uid"]
    secret = next(e for e in events if e.get("objectRef", {}).get("resource") == "secrets")
    assert secret["level"] == "Metadata" and "requestObject" not in secret
    text = log.read_text()
    assert "hush-hush" not in text and base64.b64encode(b"hush-hush").decode() not in text and token not in text
    assert "access_token=REDACTED&x=1" in text
    assert next(e for e in events if e["responseStatus"]["code"] == 401)["user"] == {}
    assert next(e for e in events if "impersonatedUser" in e)["impersonatedUser"]["username"] == "joe"
    # SIGHUP reads the policy again.
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}")
    c.proc.send_signal(signal.SIGHUP)
    wait_for("the reload", lambda: "certificates reloaded" in c.text())
    before = len(lines())
    c.ask(jane, "GET", "/version", want=200)
    c.stop()
    assert len(lines()) == before


def test_audit_log_is_rotated(cluster, tmp_path):
    log = tmp_path / "audit.log"
    log.write_text("x" * (1 << 20) + "\n")
    (tmp_path / "audit.log-2020-01-01T00:00:00.000Z").write_text("old")
    c = cluster(auditConfig={"auditFilePath": str(log), "maximumFileSizeMegabytes": 1, "maximumRetainedFiles": 1})
    wait_for("a new file", lambda: log.stat().st_size < 1 << 20)
    wait_for("the old one to go", lambda: len(list(tmp_path.glob("audit.log-*"))) == 1)
    assert next(tmp_path.glob("audit.log-*")).stat().st_size > 1 << 20
    c.admin("GET", "/version")
    c.stop()
    assert all(json.loads(line)["auditID"] for line in log.read_text().splitlines())


# ---- unmodified kubectl ----

def kubectl_version():
    text = run(["kubectl", "version", "--client", "-o", "json"]).stdout
    return int(re.match(r"\d+", json.loads(text)["clientVersion"]["minor"])[0])


def test_kubectl(c):
    c.namespace("red")
    k = c.kubectl
    k("create", "role", "reader", "-n", "red", "--verb=get,list", "--resource=pods")
    k("create", "rolebinding", "b", "-n", "red", "--role=reader", "--user=jane", "--serviceaccount=red:robot")
    k("create", "sa", "robot", "-n", "red")
    k("create", "clusterrole", "urls", "--verb=get", "--non-resource-url=/x")
    k("create", "clusterrolebinding", "urls", "--clusterrole=urls", "--group=dev")
    k("create", "secret", "generic", "s", "-n", "red", "--from-literal=a=b")
    assert k("get", "secret", "s", "-n", "red", "-o", "jsonpath={.data.a}").stdout == "Yg=="
    assert re.search(r"b +Role/reader +\S+ +jane +red/robot",
                     k("get", "rolebinding", "b", "-n", "red", "-o", "wide").stdout)
    assert k("auth", "can-i", "get", "pods", "-n", "red", "--as", "jane").stdout == "yes\n"
    no = k("auth", "can-i", "delete", "pods", "-n", "red", "--as", "jane", check=False)
    assert no.returncode == 1 and no.stdout == "no\n"
    listed = k("auth", "can-i", "--list", "-n", "red", "--as", "jane").stdout
    assert re.search(r"^pods +\[\] +\[\] +\[get list\]$", listed, re.M)
    refused = k("get", "pods", "-n", "default", "--as", "jane", check=False)
    assert refused.returncode == 1 and refused.stderr == (
        'Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource "pods" in API group "" in '
        'the namespace "default"\n')
    (c.dir / "role.yaml").write_text(json.dumps({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader", "namespace": "red"},
        "rules": [pods("watch")]}))
    k("auth", "reconcile", "-f", c.dir / "role.yaml")
    assert k("auth", "can-i", "watch", "pods", "-n", "red", "--as", "jane").stdout == "yes\n"
    assert k("auth", "can-i", "get", "pods", "-n", "red", "--as", "jane").stdout == "yes\n"
    # A certificate by request, granted by hand.
    request = csr(c, "/O=dev/CN=jane", "jane", signer="kubernetes.io/kube-apiserver-client")
    (c.dir / "csr.json").write_text(json.dumps({"apiVersion": "certificates.k8s.io/v1",
                                                "kind": "CertificateSigningRequest", **request}))
    k("create", "-f", c.dir / "csr.json")
    assert "Pending" in k("get", "csr", "jane").stdout
    k("certificate", "approve", "jane")
    jane = issued(c, "jane")
    assert "Approved,Issued" in k("get", "csr", "jane").stdout
    assert c.whoami(jane)["groups"] == ["dev", "system:authenticated"]
    c.ask(jane, "GET", "/api/v1/namespaces/red/pods", want=200)
    request["metadata"]["name"] = "again"
    c.admin("POST", CSR, request, 201)
    k("certificate", "deny", "again")
    assert "Denied" in k("get", "csr", "again").stdout
    if kubectl_version() >= 24:
        token = k("create", "token", "robot", "-n", "red", "--duration=20m").stdout.strip()
        c.ask(token, "GET", "/api/v1/namespaces/red/pods", want=200)
    if kubectl_version() >= 28:
        assert "system:admin" in k("auth", "whoami").stdout
    wrong = run(["kubectl", "--server", f"https://127.0.0.1:{c.port}", "--certificate-authority", c.pki / "ca.crt",
                 "--token", "wrong", "get", "pods"], check=False,
                env={**lablib.environment(), "HOME": str(c.dir), "KUBECONFIG": "/dev/null"})
    assert wrong.returncode == 1 and "You must be logged in to the server" in wrong.stderr


def test_each_sees_the_own_projects(c):
    """Listed and watched are the projects that one may get; whoever may list namespaces sees all."""
    path = "/apis/project.openshift.io/v1/projects"
    for name in ("red", "blue"):
        c.namespace(name)
    c.bind("red", "jane-views", "view", user="jane")
    jane = c.user("jane")

    def names(who, path=path):
        return {o["metadata"]["name"] for o in c.ask(who, "GET", path, want=200)["items"]}
    assert names(jane) == {"red"}
    assert names(jane, path + "?limit=1") == {"red"} and names(jane, path + "?fieldSelector=metadata.name%3Dblue") == set()
    assert {"red", "blue", "default"} <= names(c._admin)
    assert c.ask(jane, "GET", path + "/red", want=200)["kind"] == "Project"
    for who, what in ((jane, path + "/blue"), (jane, "/api/v1/namespaces"), (None, path)):
        assert c.ask(who, "GET", what)[0] == 403, what
    assert c.ask(jane, "DELETE", path + "/red")[0] == 403
    seen = c.call(path + "?watch=1&timeoutSeconds=1", jane, {}, None, "GET")[1]
    assert {json.loads(line)["object"]["metadata"]["name"] for line in seen.splitlines()} == {"red"}
