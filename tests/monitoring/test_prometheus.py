# SPDX-License-Identifier: Apache-2.0
"""What is packaged for Prometheus and Grafana, on a real Prometheus that scrapes a lab with kubelets and pods."""
import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse

import pytest

import lab as lablib
from lab import TENET, run, wait_for

ROOT = pathlib.Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
PORT = 19090  # in the namespace of the master's host
JOBS = {"tenet-master": 1, "tenet-node": 2, "tenet-kubelet": 2, "tenet-pods": 2}


class Prometheus:
    """In the network namespace of the lab's master, from where all targets are reached."""

    def __init__(self, lab, folder):
        self.lab, self.folder = lab, folder
        for name in ("prometheus.yml", "tenet.rules.yml"):
            # The only change: it looks every second.
            text = (PACKAGING / "prometheus" / name).read_text()
            (folder / name).write_text(re.sub(r"(scrape|evaluation)_interval: 15s", r"\1_interval: 1s", text))
        (folder / "tenet").mkdir()
        lab.kubectl("apply", "-f", PACKAGING / "prometheus/rbac.yaml")
        secret = wait_for("the token", lambda: (s := json.loads(lab.kubectl(
            "-n", "kube-system", "get", "secret", "tenet-prometheus", "-o", "json").stdout)).get("data", {}).get("token") and s)
        (folder / "tenet/token").write_text(run(["base64", "-d"], input=secret["data"]["token"]).stdout)
        (folder / "tenet/ca.crt").write_text(run(["base64", "-d"], input=secret["data"]["ca.crt"]).stdout)
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "t", "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}],
            "clusters": [{"name": "t", "cluster": {"server": "https://10.245.2.2:8443", "certificate-authority": str(folder / "tenet/ca.crt")}}],
            "users": [{"name": "t", "user": {"token": (folder / "tenet/token").read_text()}}]}))
        self.targets()
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{lab.ns_name('master')}", "prometheus", f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{PORT}"],
            stdout=open(folder / "log", "w"), stderr=subprocess.STDOUT)
        wait_for("Prometheus to be ready", lambda: self.http("/-/ready", check=False).returncode == 0)

    def targets(self):
        """As the documentation says, with the rights of Prometheus' own account."""
        self.lab.ns("master", [TENET, "adm", "prometheus-targets", "--output", self.folder / "tenet/targets.json", "--kubeconfig", self.kubeconfig])
        return json.loads((self.folder / "tenet/targets.json").read_text())

    def http(self, path, check=True):
        return self.lab.ns("master", ["curl", "-sf", f"http://127.0.0.1:{PORT}{path}"], check=check)

    def api(self, path, **query):
        r = self.lab.ns("master", ["curl", "-s", f"http://127.0.0.1:{PORT}/api/v1/{path}?{urllib.parse.urlencode(query)}"])
        answer = json.loads(r.stdout)
        assert answer["status"] == "success", (query, answer)
        return answer["data"]

    def query(self, expr):
        return self.api("query", query=expr)["result"]

    def end(self):
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture(scope="module")
def prometheus(make_lab, tmp_path_factory):
    lab = make_lab("prom", nodes=2, containers=True, plugin="redhat/openshift-ovs-multitenant", datapath="ovs,ebpf")
    server = None
    try:
        for node in lab.status()["nodes"]:
            config = lab.folder(node["name"]) / "node-config.yaml"
            config.write_text(config.read_text() + f"metricsBindAddress: {node['hostIP']}:9101\n")
            lab.cmd("node", "restart", node["name"])
        lab.project("red")
        lab.kubectl("-n", "red", "run", "a", "--image=localhost/busybox:1", "--restart=Never", "--", "sleep", "1000")
        lab.kubectl("-n", "red", "create", "service", "clusterip", "web", "--tcp=80:80")
        wait_for("the pod to run", lambda: lab.kubectl("-n", "red", "get", "pod", "a", "-o", "jsonpath={.status.phase}").stdout == "Running", 120)
        server = Prometheus(lab, tmp_path_factory.mktemp("prometheus"))
        yield server
    finally:
        if server:
            server.end()
        lab.down(check=False)


def test_every_target_is_scraped(prometheus):
    def up():
        return {j: len(prometheus.query(f'up{{job="{j}"}} == 1')) for j in JOBS}
    try:
        wait_for("all targets to be up", lambda: up() == JOBS)
    except AssertionError:
        raise AssertionError([(t["labels"], t["lastError"]) for t in prometheus.api("targets")["activeTargets"]]) from None
    nodes = {r["metric"]["node"] for r in prometheus.query('up{job="tenet-node"}')}
    assert nodes == {"node1", "node2"}


def test_the_targets_follow_the_cluster(prometheus):
    before = prometheus.targets()
    assert prometheus.targets() == before
    kinds = sorted(t["labels"]["__meta_tenet_kind"] for t in before)
    assert kinds == ["kubelet", "kubelet", "master", "node", "node"]
    assert {t["targets"][0] for t in before if t["labels"]["__meta_tenet_kind"] == "master"} == {"10.245.2.2:8443"}


def test_the_token_reads_metrics_and_nothing_else(prometheus):
    def may(*args):
        return prometheus.lab.ns("master", ["kubectl", "--kubeconfig", prometheus.kubeconfig, "auth", "can-i", *args], check=False).stdout.strip()
    assert may("get", "/metrics") == may("list", "nodes") == "yes"
    for args in (("list", "secrets", "-A"), ("get", "pods", "-A"), ("create", "pods", "-A"), ("get", "nodes/proxy"), ("get", "/logs"),
                 ("list", "endpoints", "-n", "default"), ("impersonate", "users")):
        assert may(*args) == "no", args


def test_the_dashboard_is_what_its_tool_prints():
    assert run([ROOT / "tools/gen-dashboard"]).stdout == (PACKAGING / "grafana/tenet.json").read_text()


# Queries that have no result while nothing of the kind has happened.
MAY_BE_EMPTY = re.compile("workqueue_errors_total")


def test_every_query_of_the_dashboard_has_a_result(prometheus):
    dashboard = json.loads((PACKAGING / "grafana/tenet.json").read_text())
    queries = [(p["title"], t["expr"]) for p in dashboard["panels"] for t in p.get("targets", [])]
    assert len(queries) > 35
    empty = {}

    def all_answered():
        empty.clear()
        for title, expr in queries:
            result = prometheus.query(expr.replace("$node", ".*"))
            if not result and not MAY_BE_EMPTY.search(expr):
                empty[title] = expr
            for r in result:
                assert len(r["value"]) == 2, (title, r)
        return not empty
    try:
        wait_for("results", all_answered)
    except AssertionError:
        raise AssertionError(f"without a result: {empty}") from None
    variable = dashboard["templating"]["list"][1]["query"]
    selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable).groups()
    assert {r["metric"][label] for r in prometheus.query(selector)} == {"node1", "node2"}


def test_titles_of_lines_name_labels_that_the_results_have(prometheus):
    dashboard = json.loads((PACKAGING / "grafana/tenet.json").read_text())
    for p in dashboard["panels"]:
        for t in p.get("targets", []):
            for r in prometheus.query(t["expr"].replace("$node", ".*")):
                for label in re.findall(r"{{(\w+)}}", t["legendFormat"]):
                    assert label in r["metric"], (p["title"], label, r["metric"])


def test_a_healthy_cluster_raises_no_alert_and_a_dead_agent_does(prometheus):
    rules = [r for g in prometheus.api("rules")["groups"] for r in g["rules"]]
    assert len(rules) > 20 and all(r["health"] == "ok" for r in rules), [r["lastError"] for r in rules if r["health"] != "ok"]
    prometheus.lab.cmd("node", "kill", "node2")
    try:
        wait_for("the alert to be pending", lambda: {a["labels"].get("node") for a in prometheus.api("alerts")["alerts"]
                                                     if a["labels"]["alertname"] == "TenetNodeDown"} == {"node2"})
    finally:
        prometheus.lab.cmd("node", "start", "node2")
    wait_for("no alert", lambda: not [a for a in prometheus.api("alerts")["alerts"] if a["labels"]["alertname"] == "TenetNodeDown"])
