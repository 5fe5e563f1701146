# SPDX-License-Identifier: Apache-2.0
"""The alert rules by promtool: each one fires for the series that it is about, and not for those of a healthy cluster."""
import json
import pathlib
import re

import pytest
import yaml

from lab import run

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
RULES = PACKAGING / "prometheus/tenet.rules.yml"
MASTER, NODE, KUBELET = 'job="tenet-master",instance="m1"', 'job="tenet-node",instance="n1",node="n1"', 'job="tenet-kubelet",node="n1"'
RUNS = f"controller_running{{{MASTER},name=\"subnets\"}}"

# Alert: series that make it fire, and similar ones that do not; values begin at minute 0 and are a minute apart.
CASES = {
    "TenetMasterDown": ({f"up{{{MASTER}}}": "0x20"}, {f"up{{{MASTER}}}": "1x5 0 1x14"}),
    "TenetNoMaster": ({f"up{{{MASTER}}}": "0x20"}, {f"up{{{MASTER}}}": "1x60", 'up{job="tenet-master",instance="m2"}': "0x60"}),
    "TenetStoreUnavailable": ({f"apiserver_storage_available{{{MASTER}}}": "1x5 0x15"}, {f"apiserver_storage_available{{{MASTER}}}": "1x20"}),
    "TenetStoreDamaged": ({f"apiserver_storage_unreadable_objects{{{MASTER}}}": "0 1x20"},
                          {f"apiserver_storage_unreadable_objects{{{MASTER}}}": "0x20"}),
    "TenetApiErrors": ({f'apiserver_request_total{{{MASTER},code="200"}}': "0+600x40", f'apiserver_request_total{{{MASTER},code="503"}}': "0+60x40"},
                       {f'apiserver_request_total{{{MASTER},code="200"}}': "0+600x40", f'apiserver_request_total{{{MASTER},code="503"}}': "0+6x40",
                        f'apiserver_request_total{{{MASTER},code="404"}}': "0+600x40"}),
    "TenetApiOverloaded": ({f'apiserver_flowcontrol_rejected_requests_total{{{MASTER},priority_level="users",reason="queue-full"}}': "0+60x40"},
                           {f'apiserver_flowcontrol_rejected_requests_total{{{MASTER},priority_level="users",reason="queue-full"}}': "0+1x40"}),
    "TenetControllersMissing": ({RUNS: "0x20"}, {RUNS: "1x60", RUNS.replace("m1", "m2"): "0x60"}),
    "TenetControllerFails": ({f'workqueue_errors_total{{{MASTER},name="gc"}}': "0+60x60"}, {f'workqueue_errors_total{{{MASTER},name="gc"}}': "0+1x60"}),
    "TenetControllerBehind": ({f'workqueue_depth{{{MASTER},name="gc"}}': "101x40"}, {f'workqueue_depth{{{MASTER},name="gc"}}': "500x10 99x30"}),
    "TenetPodsWithoutNode": ({f'scheduler_pending_pods{{{MASTER},queue="unschedulable"}}': "1x40"},
                             {f'scheduler_pending_pods{{{MASTER},queue="unschedulable"}}': "0x40", f'scheduler_pending_pods{{{MASTER},queue="active"}}': "9x40"}),
    "TenetNodeDown": ({f"up{{{NODE}}}": "0x20"}, {f"up{{{NODE}}}": "0x4 1x16"}),
    "TenetNodeNotReady": ({f"tenet_node_ready{{{NODE}}}": "0x20"}, {f"tenet_node_ready{{{NODE}}}": "1x20"}),
    "TenetNodeSwitchGone": ({f"tenet_node_switch_in_place{{{NODE}}}": "0x20"}, {f"tenet_node_switch_in_place{{{NODE}}}": "1 0 1x18"}),
    "TenetNodeWithoutMaster": ({f"tenet_node_master_connected{{{NODE}}}": "0x20"}, {f"tenet_node_master_connected{{{NODE}}}": "0x4 1x16"}),
    "TenetNodeRefuses": ({f"tenet_node_bundles_refused_total{{{NODE}}}": "0x18 1x22"}, {f"tenet_node_bundles_refused_total{{{NODE}}}": "7x40"}),
    "TenetForgedPackets": ({f'tenet_node_drops_total{{{NODE},cause="spoofed-source"}}': "0+600x40"},
                           {f'tenet_node_drops_total{{{NODE},cause="spoofed-source"}}': "0+6x40", f'tenet_node_drops_total{{{NODE},cause="isolated"}}': "0+6000x40"}),
    "TenetAttachFails": ({f'tenet_node_cni_requests_total{{{NODE},command="ADD",result="failed"}}': "0+1x40"},
                         {f'tenet_node_cni_requests_total{{{NODE},command="ADD",result="ok"}}': "0+9x40",
                          f'tenet_node_cni_requests_total{{{NODE},command="ADD",result="failed"}}': "5x40"}),
    "TenetServicesStale": ({f"tenet_proxy_current{{{NODE}}}": "0x20"}, {f"tenet_proxy_current{{{NODE}}}": "1x20", f"tenet_node_services_connected{{{NODE}}}": "1x20"}),
    "TenetHostPortsClosed": ({f"tenet_node_host_ports_closed{{{NODE}}}": "2x20"}, {f"tenet_node_host_ports_closed{{{NODE}}}": "0x20"}),
    "TenetDNSFails": ({f"tenet_dns_upstream_failures_total{{{NODE}}}": "0+600x40"}, {f"tenet_dns_upstream_failures_total{{{NODE}}}": "0+6x40"}),
    "TenetKubeletDown": ({f"up{{{KUBELET}}}": "0x20"}, {f"up{{{KUBELET}}}": "1x20"}),
    "TenetKubeletFails": ({f"tenet_kubelet_action_errors_total{{{KUBELET}}}": "0+60x60"}, {f"tenet_kubelet_action_errors_total{{{KUBELET}}}": "0+1x60"}),
    "TenetImagePullsFail": ({f"tenet_kubelet_image_pull_failures_total{{{KUBELET}}}": "0+1x40"}, {f"tenet_kubelet_image_pull_failures_total{{{KUBELET}}}": "3x40"}),
}
# What a cluster has beside a case's series, so that alerts about what is absent do not fire.
HEALTHY = {f"up{{{MASTER}}}": "1x60", RUNS: "1x60"}


def rules():
    return [r for g in yaml.safe_load(RULES.read_text())["groups"] for r in g["rules"]]


def promtool(*args):
    return run(["promtool", *args], check=False)


def test_the_rules_and_the_configuration_are_valid(tmp_path):
    r = promtool("check", "rules", RULES)
    assert r.returncode == 0, r.stdout + r.stderr
    for name in ("prometheus.yml", "tenet.rules.yml"):
        (tmp_path / name).write_text((PACKAGING / "prometheus" / name).read_text())
    (tmp_path / "tenet").mkdir()
    for name, text in (("ca.crt", "x"), ("token", "x"), ("targets.json", "[]")):
        (tmp_path / "tenet" / name).write_text(text)
    r = promtool("check", "config", "--syntax-only", tmp_path / "prometheus.yml")
    assert r.returncode == 0, r.stdout + r.stderr


def test_every_alert_says_what_is_wrong_and_what_to_do():
    for r in rules():
        assert set(r["annotations"]) == {"summary", "action"} and r["labels"]["severity"] in ("critical", "warning"), r["alert"]
        assert r["annotations"]["summary"].endswith("."), r["alert"]
    assert sorted(CASES) == sorted(r["alert"] for r in rules())


def firing(tmp_path, alert, series, count):
    """promtool's result for 'count' firing alerts at some minute up to the hour."""
    wanted = [{"labels": "{}", "value": count}] if count else []
    test = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [{
        "interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series.items()],
        "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})', "eval_time": "20m" if count else t,
                              "exp_samples": wanted} for t in (["20m"] if count else ["8m", "14m", "20m", "38m"])]}]}
    file = tmp_path / f"{alert}-{count}.yml"
    file.write_text(json.dumps(test))
    return promtool("test", "rules", file)


@pytest.mark.parametrize("alert", sorted(CASES))
def test_an_alert_fires_for_its_cause_alone(tmp_path, alert):
    bad, good = CASES[alert]
    r = firing(tmp_path, alert, bad, 1)
    assert r.returncode == 0, r.stdout + r.stderr
    r = firing(tmp_path, alert, {**HEALTHY, **good}, 0)
    assert r.returncode == 0, r.stdout + r.stderr


def test_a_test_that_expects_the_wrong_thing_fails(tmp_path):
    """The control: promtool notices."""
    bad, _ = CASES["TenetMasterDown"]
    assert firing(tmp_path, "TenetMasterDown", bad, 0).returncode != 0
    assert firing(tmp_path, "TenetMasterDown", HEALTHY, 1).returncode != 0


def test_metrics_in_rules_and_dashboard_exist():
    """Each name is in docs/metrics.md, or in the table of the controllers' metrics, or Prometheus' own."""
    known = set(re.findall(r"^\| `(\w+)` \|", (PACKAGING.parent / "docs/metrics.md").read_text(), re.M))
    known |= set(re.findall(r"^\| `(\w+)` \|", (PACKAGING.parent / "docs/operations.md").read_text(), re.M)) | {"up"}
    dashboard = json.loads((PACKAGING / "grafana/tenet.json").read_text())
    queries = [t["expr"] for p in dashboard["panels"] for t in p.get("targets", [])] + [r["expr"] for r in rules()]
    names = {n for q in queries for n in re.findall(r"\b((?:apiserver|tenet|workqueue|controller|scheduler|process|pod|up)(?:_\w+|\b))(?=[{\[\s)]|$)", q)}
    assert len(names) > 40
    for name in names - {"pod"}:
        assert name in known or re.sub("_(bucket|sum|count)$", "", name) in known, name
