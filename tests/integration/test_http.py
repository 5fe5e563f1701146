# SPDX-License-Identifier: Apache-2.0
"""The API server as an HTTP server: both versions on one port, limits, priority, shutdown, health, metrics, and
clients that mean harm."""
import json
import pathlib
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

import h2raw
import lab as lablib
import prometheus
from lab import TENET, run, wait_for

ENHANCE_YOUR_CALM = 11


class Master:
    def __init__(self, tmp, tls=False, **limits):
        self.dir, self.tls = pathlib.Path(tmp), tls
        conf = {"servingInfo": {"bindAddress": "127.0.0.1:0", "tls": "auto" if tls else "off",
                                **({"pkiDir": str(self.dir / "pki")} if tls else {})},
                "storage": {"backend": "sqlite", "path": str(self.dir / "registry.db")}, "limits": limits}
        (self.dir / "master.yaml").write_text(json.dumps(conf))
        self.log = open(self.dir / "log", "w")
        self.proc = subprocess.Popen([TENET, "master", "--config", self.dir / "master.yaml"], stderr=self.log,
                                     stdout=self.log, env=lablib.environment())
        self.port = wait_for("the master to be ready", self.look)

    def look(self):
        assert self.proc.poll() is None, self.text()
        serving = re.search(r"address=127\.0\.0\.1:(\d+)", self.text())
        return int(serving[1]) if serving and " ready" in self.text() else None

    def text(self):
        return (self.dir / "log").read_text()

    def context(self, user="system:admin", group="system:masters"):
        """TLS as the user, with a certificate by the master's authority; None: as nobody."""
        if not self.tls:
            return None
        c = ssl.create_default_context(cafile=str(self.dir / "pki/ca.crt"))
        if user:
            stem = str(self.dir / user.replace(":", "-"))
            if not pathlib.Path(stem + ".crt").exists():
                run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                     stem + ".key", "-subj", f"/O={group}/CN={user}", "-out", stem + ".csr"])
                (self.dir / "ext").write_text("basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n")
                run(["openssl", "x509", "-req", "-in", stem + ".csr", "-CA", self.dir / "pki/ca.crt", "-CAkey",
                     self.dir / "pki/ca.key", "-CAcreateserial", "-CAserial", stem + ".srl", "-days", "1", "-extfile",
                     self.dir / "ext", "-out", stem + ".crt"])
            c.load_cert_chain(stem + ".crt", stem + ".key")
        return c

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def call(self, method, path, body=None, agent="test", context=None):
        request = urllib.request.Request(self.url + path, method=method, data=body and json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json", "User-Agent": agent})
        try:
            with urllib.request.urlopen(request, timeout=60, context=context or self.context()) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def metrics(self):
        return prometheus.parse(self.get("/metrics")[1])

    def metric(self, name, **labels):
        return self.metrics().get((name, tuple(sorted(labels.items()))), 0)

    def waiting(self):
        """Requests that wait in the default level; asked as a node, who does not."""
        text = self.get("/metrics", agent="tenet-node/x")[1]
        return prometheus.parse(text)["apiserver_flowcontrol_current_inqueue_requests", (("priority_level", "default"),)]

    def h2(self, **kw):
        return h2raw.connect(self.port, self.context(), **kw)

    def raw(self, source="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=(source, 0))

    def stop(self, sig=signal.SIGTERM):
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
            self.proc.wait(timeout=60)
        self.log.close()
        return self.proc.returncode


@pytest.fixture
def start_master():
    made = []

    def start(**kw):
        tmp = tempfile.TemporaryDirectory(prefix="tenet-http-")
        m = Master(tmp.name, **kw)
        made.append((m, tmp))
        return m
    yield start
    for m, tmp in made:
        m.stop(signal.SIGKILL)
        tmp.cleanup()


def namespace(name, size=0):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": {"a": "x" * size}}}


def until(c, what, condition):
    """Reads from the HTTP/2 connection 'c' until the condition holds."""
    def look():
        while c.read():
            pass
        return condition()
    return wait_for(what, look)


def answer(c, r):
    until(c, "the answer", lambda: r.ended or r.error is not None or c.closed)
    assert r.ended, (r.error, c.goaway)
    return r.status, r.body


def receive(s):
    """All that comes on the socket until its end."""
    out = b""
    try:
        while part := s.recv(1 << 16):
            out += part
    except ConnectionError:
        pass
    return out


# ---- both versions ----

def test_kubectl_speaks_http2_over_tls(start_master):
    m = start_master(tls=True)
    env = {**lablib.environment(), "HOME": str(m.dir)}
    kubectl = ["kubectl", "--kubeconfig", str(m.dir / "pki/admin.kubeconfig")]
    watch = subprocess.Popen([*kubectl, "get", "pods", "-w", "-o", "name"], stdout=subprocess.PIPE, text=True, env=env)
    try:
        wait_for("HTTP/2", lambda: m.metric("http_server_http2_connections") == 1)
        wait_for("the watch", lambda: m.metric("http_server_http2_streams") == 1)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert m.call("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201
        assert watch.stdout.readline() == "pod/a\n"
    finally:
        watch.kill()
        watch.wait()
    wait_for("its end", lambda: m.metric("http_server_http2_connections") == 0)
    assert "200 OK" in run([*kubectl, "get", "namespaces", "-v=8"], env=env).stderr
    assert m.stop() == 0


def test_curl_speaks_both_versions_on_one_port(start_master):
    for tls in (True, False):
        m = start_master(tls=tls)
        ca = []
        if tls:
            m.context()  # makes the certificate
            ca = ["--cacert", m.dir / "pki/ca.crt", "--cert", m.dir / "system-admin.crt", "--key", m.dir / "system-admin.key"]
        for option, version in ((["--http2"] if tls else ["--http2-prior-knowledge"], "2"), (["--http1.1"], "1.1")):
            curl = ["curl", "-sS", "--fail", *ca, *option]
            shown = run([*curl, "-o", "/dev/null", "-w", "%{http_version} %{http_code}", f"{m.url}/healthz"]).stdout
            assert shown == f"{version} 200"
            name = f"big{version[0]}"
            (m.dir / "big.json").write_text(json.dumps(namespace(name, 200000)))
            run([*curl, "-H", "Content-Type: application/json", "--data-binary", f"@{m.dir / 'big.json'}",
                 f"{m.url}/api/v1/namespaces"])
            back = run([*curl, f"{m.url}/api/v1/namespaces/{name}"]).stdout
            assert json.loads(back)["metadata"]["annotations"]["a"] == "x" * 200000


@pytest.mark.parametrize("tls", [False, True])
def test_many_watches_share_a_connection(start_master, tls):
    m = start_master(tls=tls)
    # The controllers have begun their watches, which are counted with those of the test.
    wait_for("the controllers' work", lambda: m.call("GET", "/apis/network.openshift.io/v1/clusternetworks/default")[0] == 200)
    c = m.h2()
    watches = [c.ask("GET", f"/api/v1/namespaces?watch=1&timeoutSeconds=600&n={i}") for i in range(100)]
    until(c, "the beginning", lambda: all(b"default" in w.body for w in watches))
    all_of_them = m.metric("apiserver_longrunning_requests")
    assert m.call("POST", "/api/v1/namespaces", namespace("new"))[0] == 201
    until(c, "the event", lambda: all(b'"name":"new"' in w.body for w in watches))
    assert answer(c, c.ask("POST", "/api/v1/namespaces", [("content-type", "application/json")],
                           json.dumps(namespace("two", 100000)).encode()))[0] == 201
    until(c, "the event", lambda: all(b'"name":"two"' in w.body for w in watches))
    for w in watches[:50]:
        c.send(h2raw.RST_STREAM, 0, w.stream, struct.pack(">I", 8))
    wait_for("half of them to go", lambda: m.metric("apiserver_longrunning_requests") <= all_of_them - 45)
    assert answer(c, c.ask("GET", "/healthz"))[0] == 200
    c.close()
    assert m.stop() == 0


# ---- limits ----

def has_headers_of_all_answers(headers, audit_id=None):
    headers = {name.lower(): value for name, value in headers.items()}
    assert headers["cache-control"] == "no-cache, private" and headers["date"].endswith(" GMT")
    assert headers["audit-id"] == audit_id if audit_id else re.fullmatch(r"[0-9a-f-]{36}", headers["audit-id"])


def test_limits_are_told_as_status(start_master):
    m = start_master(maxBodyBytes=20000, maxURIBytes=2000, maxHeaderBytes=6000, headerTimeoutSeconds=1, bodyTimeoutSeconds=1)
    c = m.h2()
    kind = [("content-type", "application/json")]
    long = "/api/v1/namespaces/" + "n" * 3000
    cases = [
        (413, "RequestEntityTooLarge", c.ask("POST", "/api/v1/namespaces", kind, b"x" * 30000)),
        (413, "RequestEntityTooLarge", c.ask("POST", "/api/v1/namespaces", [*kind, ("content-length", "30000")], b"x", end=False)),
        (414, None, c.ask("GET", long)),
        (431, None, c.ask("GET", "/api", [("x", "y" * 7000)])),
        (408, "Timeout", c.ask("POST", "/api/v1/namespaces", kind, b"{", end=False)),
    ]
    for code, reason, r in cases:
        status, body = answer(c, r)
        told = json.loads(body)
        assert (status, told["kind"], told["code"], told.get("reason")) == (code, "Status", code, reason)
    assert answer(c, c.ask("GET", "/healthz"))[0] == 200
    told = run(["curl", "-s", "--http2-prior-knowledge", "-D", "-", "-o", "/dev/null", "-H", "Audit-Id: mine",
                f"http://127.0.0.1:{m.port}{long}"]).stdout
    assert told.startswith("HTTP/2 414")
    has_headers_of_all_answers(dict(line.split(": ", 1) for line in told.splitlines()[1:] if line), "mine")
    texts = {
        413: f"POST /api/v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n{'x' * 100}",
        414: f"GET {long} HTTP/1.1\r\nHost: h\r\n\r\n",
        431: f"GET /api HTTP/1.1\r\nHost: h\r\nX: {'y' * 7000}\r\n\r\n",
        408: "POST /api/v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{",
    }
    for code, text in texts.items():
        with m.raw() as s:
            s.sendall(text.encode())
            head, body = receive(s).split(b"\r\n\r\n", 1)
            assert head.startswith(b"HTTP/1.1 %d " % code) and b"Connection: close" in head
            has_headers_of_all_answers(dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:]))
            assert json.loads(body)["code"] == code
    with m.raw() as s:  # a head that does not come
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
        assert receive(s).startswith(b"HTTP/1.1 408 ")


def test_connections_of_one_address_are_limited(start_master):
    m = start_master(maxConnectionsPerClient=20)
    held = [m.raw("127.0.0.2") for _ in range(20)]
    for s in held:  # all are accepted and served
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert s.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    with m.raw("127.0.0.2") as s:
        assert receive(s) == b""
    assert m.get("/healthz")[0] == 200
    assert m.metric("http_server_refused_total") == 1
    for s in held:
        s.close()

    def room():
        with m.raw("127.0.0.2") as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            return b"200 OK" in receive(s)
    wait_for("room", room)


def test_the_masters_own_connections_are_no_clients(start_master):
    m = start_master(maxConnectionsPerClient=1)
    assert m.get("/readyz")[0] == 200  # its controllers work

    def hold():
        """A connection that is served, once the master has seen the end of the one before."""
        s = m.raw()
        try:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            if s.recv(1 << 16).startswith(b"HTTP/1.1 200 "):
                return s
        except ConnectionError:
            pass
        s.close()
        return None
    with wait_for("a connection", hold), m.raw() as t:
        assert receive(t) == b""


def test_watches_are_limited(start_master):
    m = start_master(maxWatches=200)
    c = m.h2()
    watches = [c.ask("GET", "/api/v1/pods?watch=1") for _ in range(210)]
    until(c, "the answers", lambda: all(w.status for w in watches))
    assert {w.status for w in watches} == {200, 429}
    # With those of the master's own controllers, which may still be beginning.
    assert m.metric("apiserver_longrunning_requests") == 200
    refused = next(w for w in watches if w.status == 429)
    assert json.loads(answer(c, refused)[1])["reason"] == "TooManyRequests"


# ---- priority ----

def test_a_node_is_served_while_a_flood_fills_its_queue(start_master):
    """Two clients that do not read hold the level's two places; a flood fills its queue; a node, whose requests are of
    another level, is answered as if there were nobody."""
    m = start_master(maxRequestsInFlight=5, maxRequestsQueued=40, queueTimeoutSeconds=600, writeTimeoutSeconds=600)
    for i in range(4):
        assert m.call("POST", "/api/v1/namespaces", namespace(f"n{i}", 200000), agent="tenet-node/x")[0] == 201
    stuck, lists = [], []
    for name in ("a", "b"):
        c = m.h2(window=1000, greedy=False)
        lists.append(c.ask("GET", "/api/v1/namespaces", [("user-agent", name)]))
        until(c, "the list to begin", lambda: lists[-1].status)
        stuck.append(c)
    flood = m.h2()
    asked = [flood.ask("GET", f"/api/v1/namespaces/n{i % 4}", [("user-agent", f"flood{i % 10}")]) for i in range(200)]
    until(flood, "the queue to be full", lambda: [r.status for r in asked].count(429) == 160)

    def stats(name):
        body = m.get("/metrics", agent="tenet-node/x")[1]
        return prometheus.parse(body)[f"apiserver_flowcontrol_{name}", (("priority_level", "default"),)]
    assert stats("current_inqueue_requests") == 40
    assert stats("current_executing_requests") == 2
    refused = next(r for r in asked if r.status == 429)
    told = json.loads(answer(flood, refused)[1])
    assert told["reason"] == "TooManyRequests" and told["details"]["retryAfterSeconds"] == 1
    with m.raw() as s:
        s.sendall(b"GET /api/v1/namespaces/n0 HTTP/1.1\r\nHost: h\r\nUser-Agent: flood0\r\nConnection: close\r\n\r\n")
        head = receive(s).split(b"\r\n\r\n")[0]
        assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n") and b"\r\nRetry-After: 1" in head
    # What is asked from now on is answered one after the other, all while the flood waits.
    for i in range(20):
        assert m.call("POST", "/api/v1/namespaces", namespace(f"node{i}"), agent="tenet-node/x")[0] == 201
    waiting = [r for r in asked if not r.status]
    flood.read()
    assert len(waiting) == 40 and not any(r.status for r in waiting)
    # Another of the flood's level waits as well, and comes before the flood's rest when there is room again.
    late = flood.ask("GET", "/api/v1/namespaces/n0", [("user-agent", "late")])
    wait_for("it to wait", lambda: stats("current_inqueue_requests") == 40 and stats("current_flows") >= 12)
    stuck[0].close()  # its place is free
    stuck[1].close()
    until(flood, "all answers", lambda: late.ended and all(r.ended for r in asked))
    assert late.status == 200
    assert sorted({r.status for r in asked}) == [200, 429]
    assert m.metric("apiserver_flowcontrol_current_executing_seats", priority_level="system") == 0
    assert m.stop() == 0


def test_priority_goes_by_who_asks(start_master):
    """The same with certificates: people's requests fill their queue, a node and the administrator are answered."""
    m = start_master(tls=True, maxRequestsInFlight=5, maxRequestsQueued=20, queueTimeoutSeconds=600, writeTimeoutSeconds=600)
    for i in range(4):
        assert m.call("POST", "/api/v1/namespaces", namespace(f"n{i}", 200000))[0] == 201
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "team"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team"}]}
    assert m.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)[0] == 201
    kept = []
    for name in ("jane", "joe"):
        c = h2raw.connect(m.port, m.context(name, "team"), window=1000, greedy=False)
        r = c.ask("GET", "/api/v1/namespaces")
        until(c, "the list to begin", lambda: r.status)
        kept.append(c)
    flood = h2raw.connect(m.port, m.context("jane", "team"))
    asked = [flood.ask("GET", "/api/v1/namespaces/n0") for _ in range(100)]
    until(flood, "the flow's part of the queue to be full", lambda: [r.status for r in asked].count(429) == 95)
    node = m.context("system:node:n1", "system:nodes")
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.245.2.9"}]}}
    assert m.call("POST", "/api/v1/nodes", body, context=node)[0] == 201
    for _ in range(10):
        assert m.get("/api/v1/nodes/n1", context=node)[0] == 200
        assert m.get("/api/v1/namespaces/n1")[0] == 200
        assert m.get("/livez", context=m.context(None))[0] == 200
    flood.read()
    assert [r.status for r in asked].count(None) == 5
    for c in kept:
        c.close()
    until(flood, "the rest", lambda: all(r.ended for r in asked))
    assert [r.status for r in asked].count(200) == 5
    assert m.metric("apiserver_flowcontrol_exempt_requests_total") > 10
    assert m.metric("apiserver_flowcontrol_dispatched_requests_total", priority_level="system") >= 11
    assert m.stop() == 0


def test_who_goes_away_leaves_the_queue(start_master):
    m = start_master(maxRequestsInFlight=5, writeTimeoutSeconds=600)
    for i in range(4):
        m.call("POST", "/api/v1/namespaces", namespace(f"n{i}", 200000))
    stuck = []
    for name in ("a", "b"):
        c = m.h2(window=1000, greedy=False)
        r = c.ask("GET", "/api/v1/namespaces", [("user-agent", name)])
        until(c, "the list to begin", lambda: r.status)
        stuck.append(c)

    c = m.h2()
    asked = [c.ask("GET", "/api/v1/namespaces") for _ in range(20)]
    wait_for("them to wait", lambda: m.waiting() == 20)
    for r in asked[:10]:
        c.send(h2raw.RST_STREAM, 0, r.stream, struct.pack(">I", 8))
    wait_for("half to leave", lambda: m.waiting() == 10)
    c.close()
    wait_for("all to leave", lambda: m.waiting() == 0)


# ---- health, metrics ----

def test_health_checks_by_name(start_master):
    m = start_master()
    assert m.get("/readyz") == (200, "ok")
    status, text = m.get("/readyz?verbose")
    assert status == 200 and text.splitlines() == ["[+]ping ok", "[+]etcd ok", "[+]registry ok", "[+]integrity ok",
                                                   "[+]shutdown ok", "[+]controllers ok", "readyz check passed"]
    assert m.get("/livez?verbose=1")[1].splitlines() == ["[+]ping ok", "livez check passed"]
    assert m.get("/readyz?verbose&exclude=etcd")[1].splitlines()[1] == "[+]etcd excluded: ok"
    for path in ("/readyz/etcd", "/readyz/controllers", "/livez/ping", "/healthz/registry"):
        assert m.get(path) == (200, "ok"), path
    for path in ("/readyz/nosuch", "/livez/shutdown", "/healthz/", "/healthzz"):
        assert m.get(path)[0] == (200 if path == "/healthz/" else 404), path
    assert m.call("POST", "/healthz")[0] == 405


def test_metrics_are_well_formed_and_count(start_master):
    m = start_master()
    m.call("POST", "/api/v1/namespaces", namespace("a"))
    m.get("/api/v1/namespaces/a")
    m.get("/api/v1/namespaces/nosuch")
    c = m.h2()
    watch = c.ask("GET", "/api/v1/namespaces?watch=1")
    until(c, "the watch", lambda: watch.body)
    s = m.metrics()

    def of(name, **labels):
        return s[name, tuple(sorted(labels.items()))]
    assert of("apiserver_request_total", verb="create", resource="namespaces", code="201") >= 1
    assert of("apiserver_request_total", verb="get", resource="namespaces", code="404") >= 1
    assert of("apiserver_request_duration_seconds_count", verb="get", resource="namespaces") >= 2
    assert of("apiserver_storage_objects", resource="namespaces") >= 2
    assert of("apiserver_registered_watchers", resource="namespaces") >= 1
    assert of("apiserver_store_write_duration_seconds_count", operation="put") >= 1
    assert of("apiserver_flowcontrol_request_concurrency_limit", priority_level="default") == 160
    assert of("http_server_http2_connections") == 1 and of("http_server_http2_streams") == 1
    status = pathlib.Path(f"/proc/{m.proc.pid}/status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024
    assert 0.5 < of("process_resident_memory_bytes") / resident < 2
    assert of("process_cpu_seconds_total") > 0 and of("process_max_fds") >= of("process_open_fds") > 5
    assert of("process_start_time_seconds") > 1.6e9
    again = m.metrics()
    for key in s:
        if key[0].endswith(("_total", "_count", "_bucket")):
            assert again[key] >= s[key], key


# ---- shutdown ----

def test_shutdown_is_announced_before_it_begins(start_master):
    m = start_master(shutdownDelaySeconds=3600)
    c = m.h2()
    watch = c.ask("GET", "/api/v1/namespaces?watch=1")
    until(c, "the watch", lambda: watch.body)
    m.proc.send_signal(signal.SIGTERM)
    status, text = wait_for("/readyz to fail", lambda: (r := m.get("/readyz"))[0] == 503 and r)
    assert "[-]shutdown failed: the server is shutting down\n" in text and text.endswith("readyz check failed\n")
    assert m.get("/livez") == (200, "ok")
    # Everything else is served, new connections too.
    assert m.call("POST", "/api/v1/namespaces", namespace("late"))[0] == 201
    until(c, "the event", lambda: b'"late"' in watch.body)
    assert not watch.ended and not c.goaway
    m.proc.send_signal(signal.SIGTERM)  # enough waited
    assert m.proc.wait(timeout=60) == 0


def test_shutdown_ends_watches_cleanly_and_answers_what_was_asked(start_master):
    m = start_master()
    c, h1, half = m.h2(), m.raw(), m.raw()
    watch = c.ask("GET", "/api/v1/namespaces?watch=1")
    h1.sendall(b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n")
    until(c, "the watch", lambda: watch.body)
    assert b"200 OK" in h1.recv(1 << 16)
    half.sendall(b"GET /livez HTTP/1.1\r\nHo")
    wait_for("the three", lambda: m.metric("http_server_connections") >= 3)
    m.proc.send_signal(signal.SIGTERM)
    until(c, "the end of the watch", lambda: watch.ended)
    until(c, "the end of the connection", lambda: c.goaway and c.closed)
    assert c.goaway[1] == 0 and watch.error is None
    assert receive(h1).endswith(b"0\r\n\r\n")
    half.sendall(b"st: h\r\n\r\n")
    assert b"HTTP/1.1 200 OK\r\n" in receive(half)
    assert m.proc.wait(timeout=60) == 0


def test_shutdown_with_a_full_queue(start_master):
    """Requests that wait for their turn are answered when there is time, and leave nothing behind when there is not."""
    for patient in (True, False):
        m = start_master(maxRequestsInFlight=5, writeTimeoutSeconds=600, shutdownTimeoutSeconds=3600)
        for i in range(4):
            m.call("POST", "/api/v1/namespaces", namespace(f"n{i}", 200000))
        stuck, lists = [m.h2(window=1000, greedy=False) for _ in range(2)], []
        for i, c in enumerate(stuck):
            lists.append(c.ask("GET", "/api/v1/namespaces", [("user-agent", f"a{i}")]))
            until(c, "the list to begin", lambda: lists[-1].status)
        c = m.h2()
        asked = [c.ask("GET", "/api/v1/namespaces/n0") for _ in range(20)]
        wait_for("them to wait", lambda: m.waiting() == 20)
        m.proc.send_signal(signal.SIGTERM)
        until(c, "GOAWAY", lambda: c.goaway)
        assert not any(r.status for r in asked)
        if patient:
            for s in stuck:
                s.close()
            until(c, "the answers", lambda: all(r.ended for r in asked))
            assert {r.status for r in asked} == {503}  # by then it is shutting down
        else:
            m.proc.send_signal(signal.SIGTERM)
        assert m.proc.wait(timeout=60) == 0


# ---- clients that mean harm ----

class Bystander:
    """A client whose requests must go on being answered, and the master's memory, which must stay bounded."""

    def __init__(self, m):
        self.m, self.n = m, 0
        self.check()
        self.before = self.memory()

    def memory(self):
        return self.m.metric("process_resident_memory_bytes")

    def check(self):
        self.n += 1
        assert self.m.call("POST", "/api/v1/namespaces", namespace(f"by{self.n}"))[0] == 201
        assert self.m.get(f"/api/v1/namespaces/by{self.n}")[0] == 200

    def grown(self):
        return self.memory() - self.before


def sanitized():
    return "asan" in run(["ldd", TENET], check=False).stdout


def test_slow_and_stalled_clients_change_nothing(start_master):
    for tls in (False, True):
        m = start_master(tls=tls, headerTimeoutSeconds=2)
        by = Bystander(m)
        own = m.metric("http_server_connections")  # most of them the controllers' watches
        hello = bytes.fromhex("16030100c8010000c40303")  # the beginning of a TLS greeting
        stalled = [m.raw("127.0.0.3") for _ in range(500)]
        for i, s in enumerate(stalled):
            s.sendall(hello if tls else (b"GET /api HTTP/1.1\r\nX-%d: y\r\n" % i) if i % 2 else h2raw.PREFACE[:i % 20])
        by.check()
        wait_for("them to be cut off", lambda: m.metric("http_server_connections") < own + 100)
        by.check()
        for s in stalled:
            s.close()


def test_thousands_of_idle_connections_are_cheap_and_give_way(start_master):
    m = start_master(maxConnections=1500)
    by = Bystander(m)
    idle = [m.raw("127.0.0.3") for _ in range(2000)]
    by.check()
    assert m.metric("http_server_connections") <= 1500
    assert m.metric("http_server_refused_total") >= 500
    if not sanitized():
        assert by.grown() < 1500 * 4096
    for s in idle:
        s.close()
    assert m.stop() == 0


def test_floods_of_frames_and_resets(start_master):
    m = start_master()
    by = Bystander(m)
    request = h2raw.fields([(":method", "GET"), (":scheme", "http"), (":authority", "t"), (":path", "/api/v1/namespaces")])
    kinds = {
        "reset": lambda i: (h2raw.frame(h2raw.HEADERS, 5, 2 * i + 1, request) +
                            h2raw.frame(h2raw.RST_STREAM, 0, 2 * i + 1, struct.pack(">I", 8))),
        "ping": lambda i: h2raw.frame(h2raw.PING, 0, 0, b"12345678"),
        "settings": lambda i: h2raw.frame(h2raw.SETTINGS, 0, 0),
        "continuation": lambda i: h2raw.frame(h2raw.CONTINUATION if i else h2raw.HEADERS, 0, 1, b"\0\1x\1y"),
    }
    for name, make in kinds.items():
        c = m.h2()
        try:
            for i in range(0, 20000, 500):
                c.sock.sendall(b"".join(make(i + k) for k in range(500)))
                c.read(0)
                if c.goaway or c.closed:
                    break
        except OSError:
            pass
        until(c, f"the end of the {name} flood", lambda: c.goaway or c.closed)
        if c.goaway and name != "continuation":
            assert c.goaway[1] == ENHANCE_YOUR_CALM, name
        by.check()
        c.close()
    wait_for("nothing to be left", lambda: m.metric("http_server_http2_streams") == 0)
    assert m.metric("apiserver_flowcontrol_current_inqueue_requests", priority_level="default") == 0
    assert m.stop() == 0


def test_connections_that_are_reset_at_once(start_master):
    for tls in (False, True):
        m = start_master(tls=tls)
        by = Bystander(m)
        own = m.metric("http_server_connections")
        for i in range(2000):
            with m.raw("127.0.0.3") as s:
                if i % 3 == 1:
                    s.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")
                elif i % 3 == 2:
                    s.sendall(b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n")
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        by.check()
        wait_for("them to be gone", lambda: m.metric("http_server_connections") <= own + 5)
        wait_for("what they sent to be gone", lambda: m.metric("http_server_request_body_bytes") == 0)
        assert m.stop() == 0


def test_broken_and_huge_bodies(start_master):
    m = start_master()
    by = Bystander(m)
    kind = [("content-type", "application/json")]
    deep = b"[" * 100000
    twice = b'{"metadata":{"name":"a","name":"b"}}'
    c = m.h2()
    for body, words in ((deep, "deep"), (twice, "name"), (b'{"a":' * 50000, "deep")):
        status, text = answer(c, c.ask("POST", "/api/v1/namespaces", kind, body))
        told = json.loads(text)
        assert status == 400 and told["reason"] == "BadRequest" and words in told["message"], told
    by.check()
    # Bodies without end on many streams: one address may have a part of the room, and the rest is told so.
    hog = h2raw.connect(m.port, source="127.0.0.3")
    part = b"x" * 16384
    replies = [hog.ask("POST", "/api/v1/namespaces", kind, b"x", end=False) for _ in range(200)]
    for _ in range(160):
        for r in replies:
            if r.status is None:
                try:
                    select.select([], [hog.sock], [], 5)
                    hog.send(h2raw.DATA, 0, r.stream, part)
                except OSError:
                    break
        hog.read(0)
        if hog.closed or hog.goaway or any(r.status for r in replies):
            break
    until(hog, "the refusal", lambda: hog.closed or any(r.status == 503 for r in replies))
    assert m.metric("http_server_request_body_bytes") <= (64 * 3 << 20) / 4 + (1 << 20)
    by.check()
    hog.close()
    wait_for("the bodies to be gone", lambda: m.metric("http_server_request_body_bytes") == 0)
    with m.raw() as s:  # thousands of requests at once, answered one after the other
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n" * 5000 +
                  b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert receive(s).count(b"HTTP/1.1 200 OK") == 5001
    by.check()
    assert m.stop() == 0


def test_readers_that_are_stuck_are_cut(start_master):
    m = start_master(writeTimeoutSeconds=1)
    for i in range(40):
        assert m.call("POST", "/api/v1/namespaces", namespace(f"n{i}", 200000))[0] == 201
    by = Bystander(m)
    h1 = [m.raw("127.0.0.3") for _ in range(5)]
    for s in h1:  # with little room, or the kernel takes it all
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(b"GET /api/v1/namespaces HTTP/1.1\r\nHost: h\r\n\r\n")
    h2 = [h2raw.connect(m.port, source="127.0.0.3", window=0, greedy=False) for _ in range(5)]
    for c in h2:
        for _ in range(6):
            c.ask("GET", "/api/v1/namespaces")
    by.check()
    wait_for("them to be cut", lambda: m.metric("http_server_cut_total") >= 5 + 5 * 6)
    wait_for("their memory to be free",
             lambda: m.metric("apiserver_flowcontrol_current_executing_requests", priority_level="default") <= 1)
    by.check()
    assert m.stop() == 0
