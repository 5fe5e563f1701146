# SPDX-License-Identifier: Apache-2.0
"""The API server of tests that need nothing else: Tenet's own without controllers (tests/unit/apiserver/apitest_server), or,
with TENET_TEST_KUBECONFIG, any other that this kubeconfig leads to, with all rights.

Tests that ask for Tenet's own, or for one that nobody else uses, are in LEFT_OUT with the reason.  On another server each test
leaves what it found: objects that came meanwhile are deleted at its end.
"""
import http.client
import json
import os
import pathlib
import re
import subprocess

from lab import wait_for

BUILD = pathlib.Path(os.environ.get("TENET_BUILD", pathlib.Path(__file__).parents[2] / "build"))
SERVER = BUILD / "tests/unit/apiserver/apitest_server"
OTHER = os.environ.get("TENET_TEST_KUBECONFIG")
MODULES = ("test_api_answers", "test_api_apply", "test_api_kubectl", "test_api_protobuf", "test_api_python",
           "test_pod_api", "test_workload_kinds")
OF_THEIR_OWN = "they make an API server, a lab or programs of their own"
KINDS = "it needs kinds that only Tenet compiles in, with nothing that writes them"
LEFT_OUT = {
    **{f"test_api_kubectl.test_{name}": KINDS for name in (
        "create_needs_no_flags", "api_resources", "get_shows_the_columns_users_know", "output_formats_and_selectors", "apply_twice",
        "label_annotate_patch_edit", "validation_errors_name_the_field", "describe", "watch", "wait", "delete_waits",
        "replace_conflicts", "explain")},
    "test_api_apply.test_explain_knows_all_fields": KINDS,
    "test_api_kubectl.test_a_restart_keeps_objects_and_watch_versions": "it stops and starts the server",
    "test_api_protobuf.test_every_kind_is_read_and_written": KINDS,
    "test_api_protobuf.test_metadata_in_protobuf": KINDS,
    "test_api_protobuf.test_metrics_in_protobuf": "it asks for metrics, which another server may not have",
    "test_api_protobuf.test_the_rules_of_schemas_hold_for_protobuf": "the words are this server's",
    "test_api_python.test_a_watch_that_is_too_old_lists_again": "it asks for events that are kept by number, not for a time",
    "test_workload_kinds.test_every_write_says_what_does_not_happen": "controllers of another server act upon these kinds",
}


def left_out(module, function):
    """Why the test does not run on another server; None: it does."""
    if module not in MODULES:
        return OF_THEIR_OWN
    return LEFT_OUT.get(f"{module}.{function}")


class Server:
    """Tenet's own, with nothing in it."""

    def __init__(self, folder, database=None):
        self.folder, self.kubeconfig = folder, folder / "kubeconfig"
        self.database = database  # None: the registry ends with the server.
        self.start()

    def start(self):
        command = [str(SERVER)] + ([str(self.database)] if self.database else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(self.folder / "log", "a"), text=True)
        self.port = int(self.process.stdout.readline())
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "t",
            "clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}],
            "users": [{"name": "t", "user": {}}]}))
        wait_for("the server to be ready", lambda: self.get("/api/v1/namespaces/default")[0] == 200)

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0, (self.folder / "log").read_text()

    def request(self, method, path, body=None, headers={}):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request(method, path, body, headers)
        r = c.getresponse()
        return r.status, r.read()

    def get(self, path):
        return self.request("GET", path)

    def patch_status(self, path, body):
        """As kubectl patch --subresource=status, which Debian's kubectl does not have yet."""
        status, answer = self.request("PATCH", path + "/status", body, {"Content-Type": "application/merge-patch+json"})
        assert status == 200, answer

    def popen(self, *args, **kwargs):
        env = dict(os.environ, KUBECONFIG=str(self.kubeconfig), HOME=str(self.folder))
        return subprocess.Popen(["kubectl", *args], env=env, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **kwargs)

    def kubectl(self, *args, input=None, fails=False):
        p = self.popen(*args, stdin=subprocess.PIPE)
        out, err = p.communicate(input or "", timeout=60)
        assert (p.returncode != 0) == fails, f"kubectl {args}: {p.returncode}\n{out}\n{err}"
        return err if fails else out

    def resources(self):
        """The resources of discovery: [(path of the group's version, resource)]."""
        groups = json.loads(self.get("/apis")[1])["groups"]
        for path in ["/api/v1", *(f"/apis/{v['groupVersion']}" for g in groups for v in g["versions"])]:
            status, answer = self.get(path)
            if status != 404:  # else the group's last definition has gone since
                yield from ((path, r) for r in json.loads(answer)["resources"] if "/" not in r["name"])


class OtherServer(Server):
    """One that was there before; 'kubectl proxy' takes care of TLS and the user for requests of our own."""

    def __init__(self, folder):
        self.folder, self.kubeconfig = folder, pathlib.Path(OTHER).resolve()
        self.process = self.popen("proxy", "--port=0", "--reject-paths=^$")
        line = self.process.stdout.readline()
        found = re.search(r"Starting to serve on 127\.0\.0\.1:(\d+)", line)
        assert found, f"TENET_TEST_KUBECONFIG={OTHER}: kubectl proxy: {line}{self.process.stderr.read()}"
        self.port = int(found[1])
        status, answer = self.get("/api/v1/namespaces/default")
        assert status == 200, f"TENET_TEST_KUBECONFIG={OTHER}: {status} {answer}"
        self.before = set(self.objects().values())

    def stop(self):
        try:
            wait_for("what the test made to be gone", lambda: not self.delete_new(), 60)
        except AssertionError as e:
            raise AssertionError(f"{e}: {self.delete_new()}") from None
        finally:
            self.process.terminate()
            self.process.wait(10)

    def objects(self):
        """{uid: path} of all objects that can be deleted, namespaces first."""
        found = {}
        for base, r in sorted(self.resources(), key=lambda x: x[1]["name"] != "namespaces"):
            if not {"list", "delete"} <= set(r["verbs"]):
                continue
            status, answer = self.get(f"{base}/{r['name']}")
            for o in json.loads(answer).get("items") or [] if status == 200 else []:
                meta = o["metadata"]
                where = f"{base}/namespaces/{meta['namespace']}" if r["namespaced"] else base
                found.setdefault(meta["uid"], f"{where}/{r['name']}/{meta['name']}")
        return found

    def delete_new(self):
        """Deletes what was not there before, with its finalizers; returns the paths of these objects."""
        # A controller makes anew what a test deleted: its path was there.
        new = [path for path in self.objects().values() if path not in self.before]
        for path in new:
            self.request("DELETE", path + "?gracePeriodSeconds=0&propagationPolicy=Background")
            if not re.fullmatch("/api/v1/namespaces/[^/]+", path):
                self.request("PATCH", path, '{"metadata":{"finalizers":null}}', {"Content-Type": "application/merge-patch+json"})
        return new


def start(folder):
    """The server of a test; its stop() ends the use."""
    return OtherServer(folder) if OTHER else Server(folder)
