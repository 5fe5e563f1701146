# SPDX-License-Identifier: Apache-2.0
"""A webhook behind a service (docs/webhooks.md): an API server on a node asks a server in a pod, through the node's datapath."""
import base64
import json
import subprocess
import sys

import pytest

from lab import TENET, Lab, environment, wait_for
from webhook_server import VALIDATING

URL = "http://127.0.0.1:8099"
HOOK = """
import http.server, json, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        print(json.dumps([self.path, request["name"], self.headers["Host"], self.client_address[0]]), flush=True)
        allowed = request["name"] != "no"
        answer = {"uid": request["uid"], "allowed": allowed, "status": {"message": "not by the pod"}}
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("0.0.0.0", 9443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
"""


class World:
    """A lab with a pod that serves the webhook, and a master of its own beside the node's agent, which knows that pod."""

    def __init__(self, tmp):
        self.tmp, self.procs = tmp, []
        self.lab = Lab("wh", nodes=1)
        try:
            self.lab.up()
            self.lab.project("red")
            self.pod = self.lab.pod("red/hook")
            self.serve()
            self.start_master()
        except BaseException:
            self.close()
            raise

    def serve(self):
        pem, self.crt = self.tmp / "hook.pem", self.tmp / "hook.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", pem,
                        "-out", self.crt, "-days", "2", "-subj", "/CN=hook", "-addext", "subjectAltName=DNS:hook.red.svc"],
                       check=True, capture_output=True)
        with open(pem, "a") as f:
            f.write(self.crt.read_text())
        script = self.tmp / "hook.py"
        script.write_text(HOOK)
        self.hook = self.pod.popen([sys.executable, script, pem])
        self.procs.append(self.hook)
        assert self.hook.stdout.readline() == "ready\n"

    def start_master(self):
        config = self.tmp / "master.json"
        config.write_text(json.dumps({"servingInfo": {"bindAddress": "127.0.0.1:8099"}, "storage": {"backend": "memory"},
                                      "kubernetesMasterConfig": {"runScheduler": False}}))
        self.log = open(self.tmp / "log", "w")
        self.procs.append(self.lab.ns_popen("node1", [TENET, "master", "--config", config], stdout=self.log, env=environment()))
        wait_for("the master", lambda: self.call("GET", "/readyz")[0] == 200)

    def call(self, method, path, body=None, kind="application/json"):
        r = self.lab.ns("node1", ["curl", "-s", "-X", method, "-w", "\n%{http_code}", "-H", f"Content-Type: {kind}", "-d",
                                  json.dumps(body) if body else "", URL + path], check=False)
        text, _, status = r.stdout.rpartition("\n")
        return int(status or 0), json.loads(text) if text.startswith("{") else text

    def make(self, path, body, want=201, **kw):
        status, answer = self.call("POST", path, body, **kw)
        assert status == want, answer
        return answer

    def close(self):
        for p in reversed(self.procs):
            p.kill()
            p.wait()
        self.lab.down(check=False)


@pytest.fixture
def world(tmp_path):
    w = World(tmp_path)
    yield w
    w.close()


def test_a_service_leads_to_the_webhook_in_a_pod(world):
    w = world
    subnet = w.lab.object("hostsubnets", "node1")
    w.make("/apis/network.openshift.io/v1/hostsubnets", {
        "metadata": {"name": "node1"}, **{k: subnet[k] for k in ("host", "hostIP", "subnet")}})
    w.make("/api/v1/nodes", {"metadata": {"name": "node1"}, "status": {"addresses": [{"type": "InternalIP", "address": subnet["hostIP"]}]}})
    w.make("/api/v1/namespaces", {"metadata": {"name": "red"}})
    w.make("/api/v1/namespaces/red/services", {"metadata": {"name": "hook"}, "spec": {
        "selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 9443}]}})
    ca = base64.b64encode(w.crt.read_bytes()).decode()
    w.make(VALIDATING, {"metadata": {"name": "by-service"}, "webhooks": [{
        "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
        "clientConfig": {"service": {"namespace": "red", "name": "hook", "path": "/judge"}, "caBundle": ca},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "red"}}}]})
    maps = "/api/v1/namespaces/red/configmaps"
    status, answer = w.call("POST", maps, {"metadata": {"name": "early"}})
    assert status == 500 and 'no endpoints available for service "hook"' in answer["message"], answer
    w.make("/api/v1/namespaces/red/pods", {"metadata": {"name": "hook", "labels": {"app": "hook"}}, "spec": {
        "nodeName": "node1", "containers": [{"name": "c", "image": "i"}]}})
    ready = {"phase": "Running", "podIP": w.pod.ip, "conditions": [{"type": "Ready", "status": "True"}]}
    assert w.call("PATCH", "/api/v1/namespaces/red/pods/hook/status", {"status": ready}, "application/merge-patch+json")[0] == 200
    wait_for("the webhook", lambda: w.call("POST", f"{maps}?dryRun=All", {"metadata": {"name": "yes"}})[0] == 201)
    path, name, host, client = json.loads(w.hook.stdout.readline())
    assert (path, name, host) == ("/judge?timeout=10s", "yes", "hook.red.svc:443")
    w.make(maps, {"metadata": {"name": "yes"}})
    status, answer = w.call("POST", maps, {"metadata": {"name": "no"}})
    assert (status, answer["message"]) == (400, 'admission webhook "hook.example.com" denied the request: not by the pod')
    # The name in the certificate is that of the service: another service to the same pod is not trusted.
    w.make("/api/v1/namespaces/red/services", {"metadata": {"name": "alias"}, "spec": {
        "selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 9443}]}})
    wait_for("its endpoints", lambda: w.call("GET", "/api/v1/namespaces/red/endpoints/alias")[1].get("subsets"))
    assert w.call("PATCH", f"{VALIDATING}/by-service", [{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "alias"}],
                  "application/json-patch+json")[0] == 200
    wait_for("the other service", lambda: w.call("POST", maps, {"metadata": {"name": "more"}})[0] == 500)
