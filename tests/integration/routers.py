# SPDX-License-Identifier: Apache-2.0
"""A router with a real HAProxy, an API server without controllers, and endpoints.

A test says itself which endpoints a service has.  Router, HAProxy and the endpoints (small servers that say their names) are in a
network namespace of the module, which has one address.
"""
import contextlib
import ctypes
import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
import time

import api_server
import needs
import pytest
from lab import wait_for

TENET = api_server.BUILD / "src/cli/tenet"
ROUTES = "/apis/route.openshift.io/v1/namespaces/{}/routes"
HAPROXY = "/usr/sbin/haproxy"
ADDRESS = "198.51.100.7"  # Endpoints may not be on loopback.
CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def own_network():
    """A network namespace for this thread, and the threads and programs that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)
        yield
    finally:
        assert libc.setns(before, CLONE_NEWNET) == 0
        os.close(before)


@pytest.fixture(scope="module", autouse=True)
def namespace():
    with own_network():
        yield


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Endpoint:
    """Answers each request with its name, the path and the headers that it got."""

    def __init__(self, name, cert=None):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests += 1
                time.sleep(outer.delay)
                body = json.dumps({"name": name, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.requests, self.delay = 0, 0
        self.server = Server((ADDRESS, 0), Handler)
        if cert:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*cert)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def make_cert(folder, name):
    """(certificate, key) for the host, self-signed."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", cert, "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-days", "2"],
                   check=True, capture_output=True)
    return cert, key


class Router:
    def __init__(self, api, folder, *args, env={}, haproxy=HAPROXY):
        self.api, self.folder, self.args, self.env, self.haproxy = api, folder, args, env, haproxy
        self.http, self.https, self.stats = free_port(), free_port(), free_port()
        self.process = None
        self.start()

    def start(self):
        command = [TENET, "router", "--kubeconfig", self.api.kubeconfig, "--dir", self.folder, "--listen-address", "127.0.0.1",
                   "--http-port", str(self.http), "--https-port", str(self.https), "--stats-address", f"127.0.0.1:{self.stats}",
                   "--haproxy", self.haproxy, "--max-connections", "400", "--shutdown-timeout", "2s", *self.args]
        self.log = open(f"{self.folder}.log", "a")
        self.process = subprocess.Popen([str(c) for c in command], stderr=self.log, stdout=self.log,
                                        env=dict(os.environ, **self.env))
        wait_for("the router to be ready", lambda: self.stat("/healthz/ready")[0] == 200, 30)

    def stat(self, path):
        p = subprocess.run(["curl", "-s", "-m", "5", "-w", "\n%{http_code}", f"http://127.0.0.1:{self.stats}{path}"],
                           capture_output=True, text=True)
        body, _, code = p.stdout.rpartition("\n")
        return int(code or 0), body

    def metric(self, name):
        for line in self.stat("/metrics")[1].splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return None

    def curl(self, url, *args):
        """(status, body, headers); connections to any host go to the router."""
        p = subprocess.run(["curl", "-sk", "-m", "10", "-i", "--connect-to", f"::127.0.0.1:{self.https}" if url.startswith("https")
                            else f"::127.0.0.1:{self.http}", *args, url], capture_output=True)
        head, _, body = p.stdout.decode().partition("\r\n\r\n")
        lines = head.split("\r\n")
        headers = [tuple(x.split(": ", 1)) for x in lines[1:] if ": " in x]
        return int(lines[0].split()[1]) if lines[0] else 0, body, [(k.lower(), v) for k, v in headers]

    def get(self, url, *args):
        """Name of the endpoint that answers; None: another answer than 200."""
        status, body, _ = self.curl(url, *args)
        return json.loads(body)["name"] if status == 200 else None

    def haproxy_pids(self):
        found = []
        for p in pathlib.Path("/proc").iterdir():
            if p.name.isdigit():
                try:
                    words = (p / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0].endswith(b"haproxy") and str(self.folder / "haproxy.pid").encode() in words:
                    found.append(int(p.name))
        return sorted(found)

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        code = self.process.wait(60)
        self.log.close()
        return code

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        for pid in self.haproxy_pids():
            os.kill(pid, signal.SIGKILL)
        wait_for("HAProxy to end", lambda: not self.haproxy_pids())


class Cluster:
    """An API server, endpoints, and one router."""

    def __init__(self, folder):
        needs.program("haproxy")
        self.folder = folder
        (folder / "api").mkdir()
        self.api = api_server.Server(folder / "api")
        self.endpoints, self.routers = {}, []
        for ns in ("red", "blue"):
            self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})

    def router(self, *args, name="r", **options):
        (self.folder / name).mkdir(exist_ok=True)
        r = Router(self.api, self.folder / name, *args, **options)
        self.routers.append(r)
        return r

    def post(self, path, body):
        status, answer = self.api.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        assert status == 201, answer
        return json.loads(answer)

    def patch(self, path, body):
        status, answer = self.api.request("PATCH", path, json.dumps(body), {"Content-Type": "application/merge-patch+json"})
        assert status == 200, answer

    def endpoint(self, name, cert=None):
        self.endpoints[name] = Endpoint(name, cert)
        return self.endpoints[name]

    def slice_of(self, name, ports, ns):
        return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": name, "namespace": ns, "labels": {"kubernetes.io/service-name": name.rsplit("--")[0]}},
                "ports": [{"name": "", "port": ports, "protocol": "TCP"}],
                "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}]}

    def service(self, name, *endpoints, ns="red"):
        """A service with these endpoints, each in a slice of its own because of its port."""
        self.post(f"/api/v1/namespaces/{ns}/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": ns},
            "spec": {"ports": [{"port": 80}]}})
        for e in endpoints:
            self.add_endpoint(name, e, ns)

    def add_endpoint(self, name, e, ns="red"):
        self.post(f"/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices", self.slice_of(f"{name}--{e.port}", e.port, ns))

    def remove_endpoint(self, name, e, ns="red"):
        assert self.api.request("DELETE", f"/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices/{name}--{e.port}")[0] == 200

    def route(self, name, host, service, ns="red", annotations={}, labels={}, **spec):
        return self.post(ROUTES.format(ns), {
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": {"name": name, "namespace": ns, "annotations": annotations, "labels": labels},
            "spec": {"host": host, "to": {"kind": "Service", "name": service}, **spec}})

    def delete_route(self, name, ns="red"):
        assert self.api.request("DELETE", ROUTES.format(ns) + "/" + name)[0] == 200

    def admitted(self, name, ns="red", router="public"):
        """(status, reason, message) of the router's condition."""
        obj = json.loads(self.api.get(ROUTES.format(ns) + "/" + name)[1])
        for i in obj.get("status", {}).get("ingress") or []:
            if i["routerName"] == router:
                c = i["conditions"][0]
                return c["status"], c.get("reason"), c.get("message")
        return None

    def end(self):
        for r in self.routers:
            r.end()
        for e in self.endpoints.values():
            e.stop()
        self.api.stop()


@pytest.fixture
def own(tmp_path):
    c = Cluster(tmp_path)
    try:
        c.a, c.b = c.endpoint("a"), c.endpoint("b")
        c.service("a", c.a)
        c.service("b", c.b)
        yield c
    finally:
        c.end()


class Load:
    """Requests without end in threads; counts those that fail."""

    def __init__(self, router, host, threads=4):
        self.router, self.host, self.stop = router, host, False
        self.good, self.bad = 0, []
        self.threads = [threading.Thread(target=self.run) for _ in range(threads)]
        for t in self.threads:
            t.start()

    def run(self):
        c = None
        while not self.stop:
            try:
                c = c or http.client.HTTPConnection("127.0.0.1", self.router.http, timeout=5)
                c.request("GET", "/", headers={"Host": self.host})
                r = c.getresponse()
                r.read()
                if r.status == 200:
                    self.good += 1
                else:
                    self.bad.append(r.status)
                if self.good % 50 == 0:
                    c.close()
                    c = None
            except (http.client.RemoteDisconnected, http.client.BadStatusLine):
                c = None  # a kept connection may end between two requests; the client repeats
            except OSError as e:
                self.bad.append(repr(e))
                c = None

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()
        return self.good, self.bad
