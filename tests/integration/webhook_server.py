# SPDX-License-Identifier: Apache-2.0
"""A webhook over HTTPS on loopback, whose behaviour a test chooses for each path, and the configurations that name it."""
import base64
import contextlib
import http.server
import json
import ssl
import subprocess
import threading

GROUP = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations"


def answer(review, allowed=True, patch=None, **more):
    response = {"uid": review["request"]["uid"], "allowed": allowed, **more}
    if patch is not None:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class Webhook:
    """'paths' maps a path to a function of the review, which returns the answer: a dict, or bytes, or (status, headers, bytes)."""

    def __init__(self, folder):
        self.paths, self.reviews, self.headers = {}, [], []
        self.lock = threading.Lock()
        key, cert = folder / "hook.key", folder / "hook.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=webhook",
                        "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True, capture_output=True)
        self.ca = base64.b64encode(cert.read_bytes()).decode()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.split("?")[0]
                with hook.lock:
                    hook.reviews.append((path, review["request"]))
                    hook.headers.append(dict(self.headers))
                out = hook.paths[path](review)
                status, headers, body = out if isinstance(out, tuple) else (200, {}, out)
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                with contextlib.suppress(OSError):  # The API server may have given up.
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, address):
                pass  # A client that closes its connection early is part of the tests.

        self.server = Threads(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()
        self.port = self.server.server_address[1]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def asked(self, path):
        with self.lock:
            return [r for p, r in self.reviews if p == path]

    def entry(self, path, resources=("configmaps",), operations=("*",), name=None, groups=("",), versions=("v1",), **more):
        """A webhook of a configuration, for the path."""
        return {"name": name or f"{path.strip('/')}.webhooks.test", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca},
                "rules": [{"operations": list(operations), "apiGroups": list(groups), "apiVersions": list(versions),
                           "resources": list(resources)}], **more}


@contextlib.contextmanager
def configured(server, kind, name, *entries):
    """A configuration, which is deleted at the end."""
    status, body = server.request("POST", kind, json.dumps({"metadata": {"name": name}, "webhooks": list(entries)}),
                                  {"Content-Type": "application/json"})
    assert status == 201, body
    try:
        yield
    finally:
        status, body = server.request("DELETE", f"{kind}/{name}")
        assert status == 200, body
