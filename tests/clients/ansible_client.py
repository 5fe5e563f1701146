# SPDX-License-Identifier: Apache-2.0
"""Ansible's collections for Kubernetes and OKD as clients of the matrix: one play, in which each kind is a host."""
import json
import os
import pathlib
import subprocess

from client_matrix import Program, VERBS, wrong

HERE = pathlib.Path(__file__).parent


class Ansible(Program):
    asks = False  # It looks whether an object exists before it makes it, so kinds that are only asked are none for it.

    def __init__(self, name, unpacked, folder, module):
        """'module' is kubernetes.core.k8s or community.okd.k8s; the latter is older: its apply is the client's, and it makes a
        Project by another kind."""
        okd = module == "community.okd.k8s"
        # It has no watch.
        super().__init__(name, None, folder, without=("watch",))
        self.left_out = {"PolicyBinding": "it patches what exists, and the view of role bindings cannot be patched"}
        if okd:
            self.left_out["Project"] = "it makes a ProjectRequest of it: test_sessions.py does that"
        self.apply = "apply: true" if okd else "apply: true, server_side_apply: {field_manager: matrix, force_conflicts: true}"
        self.python_path, self.module = unpacked / "usr/lib/python3/dist-packages", module

    def run(self, items, report):
        work = json.loads(self.work(items).read_text())
        hosts = {f"kind{n}": {"item": item} for n, item in enumerate(work["items"])}
        (self.folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": {
            "ansible_python_interpreter": "/usr/bin/python3"}}}))
        play = self.folder / "matrix.yml"
        text = (HERE / "matrix.yml").read_text()
        play.write_text(text.replace(" kubernetes.core.k8s:", f" {self.module}:").replace("apply: APPLY", self.apply))
        env = {**os.environ, "PYTHONPATH": str(self.python_path), "HOME": str(self.folder), "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
               "ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_FORKS": str(os.cpu_count()), "LC_ALL": "C.UTF-8",
               "K8S_AUTH_KUBECONFIG": str(self.kubeconfig),
               "ANSIBLE_COLLECTIONS_PATH": str(self.python_path)}
        r = subprocess.run(["/usr/bin/python3", "-m", "ansible", "playbook", "-i", self.folder / "inventory.json", play], env=env,
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1800)
        assert '"plays"' in r.stdout, f"{self.name}: {r.stdout[-4000:]}{r.stderr[-4000:]}"
        by_host = dict(zip(hosts, items))
        for task in json.loads(r.stdout[r.stdout.index("{"):])["plays"][0]["tasks"]:
            verb = task["task"]["name"]
            for host, result in task["hosts"].items():
                if verb in VERBS and not result.get("skipped"):
                    report(by_host[host], verb, self.outcome(by_host[host], verb, result))

    @staticmethod
    def outcome(item, verb, result):
        if result.get("failed"):
            return f"{result.get('msg')} {result.get('module_stderr', '')}"[:3000]
        if verb == "list":
            names = [o["metadata"]["name"] for o in result["resources"]]
            there = item.object["metadata"]["name"] in names or "get" not in item.verbs  # else there is no object
            return None if there else f"it is not in the list: {names}"
        if verb == "delete":
            return None if result["changed"] else f"nothing was deleted: {result}"
        if verb == "get" and len(result["resources"]) != 1:
            return f"it was not found: {result}"
        return wrong(item, verb, result["resources"][0] if verb == "get" else result["result"])
