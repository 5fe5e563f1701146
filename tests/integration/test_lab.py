# SPDX-License-Identifier: Apache-2.0
"""The lab itself: side by side, clean-up after everything, and what it prints."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import lab as lablib
from lab import Lab, TENET, leftovers, run, wait_for


def test_two_labs_side_by_side(make_lab):
    a = make_lab("one", nodes=1, plugin="redhat/openshift-ovs-multitenant")
    b = make_lab("two", nodes=1, plugin="redhat/openshift-ovs-subnet")
    for lab in (a, b):
        lab.project("red")
    pod_a, pod_b = a.pod("red/x"), b.pod("red/x")
    assert pod_a.ip == pod_b.ip and pod_a.netns != pod_b.netns
    a.down()
    assert not leftovers(a.name)
    assert pod_b.can_ping(b.node("node1")["hostIP"])
    b.down()
    assert not leftovers(b.name)


@pytest.mark.parametrize("after", ["wire", "master", "node1"])
def test_down_cleans_up_after_a_kill_in_the_middle(after):
    """kill -9 while the namespace 'after' is there already and the rest is not."""
    lab = Lab("kill", nodes=2)
    proc = subprocess.Popen([TENET, "lab", "--name", lab.name, "up", "--no-containers", "--nodes", "2"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env=lablib.environment())
    try:
        wait_for(f"namespace {after}", lambda: pathlib.Path(f"/run/netns/{lab.ns_name(after)}").exists()
                 or proc.poll() is not None)
        proc.send_signal(signal.SIGKILL)
        proc.wait()
        again = run([TENET, "lab", "--name", lab.name, "up"], check=False)
        assert again.returncode != 0 and "lab down" in again.stderr.replace(f" --name {lab.name}", "")
    finally:
        proc.kill()
        proc.wait()
        lab.down()
    assert not leftovers(lab.name)


def test_a_lab_of_another_version_is_told_and_can_be_removed(make_lab):
    lab = make_lab("older", nodes=1)
    path = pathlib.Path(f"/run/tenet/lab/{lab.name}/lab.json")
    config = json.loads(path.read_text())
    config["masterPort"] = config.pop("ports")[0]
    path.write_text(json.dumps(config))
    for args in (["lab", "--name", lab.name, "status"], ["trace", "--lab", lab.name, "red/a", "10.128.0.1"]):
        r = run([TENET, *args], check=False)
        assert r.returncode in (1, 3) and f"tenet lab --name {lab.name} down" in r.stderr, (args, r)
    lab.down()
    assert not leftovers(lab.name)


def test_wrong_usage(make_lab):
    for args, words in ((["jump"], ["jump"]), (["up", "--nodes", "x"], ["--nodes"]), (["up", "--datapath", "no"], ["ovs"]),
                        (["pod", "add", "justname"], ["PROJECT/NAME"])):
        r = run([TENET, "lab", "--name", "nosuchlab", *args], check=False)
        assert r.returncode == 2, (args, r.stderr)
        for w in words:
            assert w in r.stderr
    r = run([TENET, "lab", "--name", "nosuchlab", "status"], check=False)
    assert r.returncode == 1 and "nosuchlab" in r.stderr


def test_exec_passes_exit_status_and_output(multitenant):
    r = multitenant.cmd("exec", "red/red-1", "--", "sh", "-c", "ip -o addr; exit 7", check=False)
    assert r.returncode == 7 and multitenant.pods[3].ip in r.stdout
    r = multitenant.cmd("node", "exec", "node2", "--", "cat", "/proc/sys/net/ipv4/ip_forward")
    assert r.stdout.strip() == "1"


def test_unknown_names_are_refused(multitenant):
    r = multitenant.cmd("pod", "add", "nosuch/x", check=False)
    assert r.returncode == 1 and "nosuch" in r.stderr
    r = multitenant.cmd("pod", "add", "red/x", "--node", "node99", check=False)
    assert r.returncode == 1 and "node99" in r.stderr
    r = multitenant.cmd("exec", "red/absent", "--", "true", check=False)
    assert r.returncode != 0 and "red/absent" in r.stderr


def test_status_is_complete(multitenant):
    status = multitenant.status()
    assert pathlib.Path(status["kubeconfig"]).exists()
    assert [n["name"] for n in status["nodes"]] == ["node1", "node2", "node3"]
    for n in status["nodes"]:
        assert n["subnet"].endswith("/23") and n["hostIP"].startswith("10.245.2.") and n["pid"] > 0
        os.kill(n["pid"], 0)
    text = multitenant.cmd("status").stdout
    assert "node3" in text and status["kubeconfig"] in text and "log in" not in text and status["oauth"] == {}


def test_a_person_logs_in_at_a_lab(make_lab, tmp_path):
    """By the command that its status names; without the option there is no such line."""
    lab = make_lab("oauth", nodes=0, oauth="")
    words = next(line for line in lab.cmd("status").stdout.splitlines() if line.startswith("log in")).split()
    words = words[words.index("login"):]
    assert words[1] == lab.status()["oauth"]["server"] and words[-2:] == ["-u", "NAME"]
    env = {**lablib.environment(), "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
    run([TENET, *words[:-1], "eve", "-p", "x"], env=env, stdin=subprocess.DEVNULL)
    assert run([TENET, "whoami"], env=env).stdout.strip() == "eve"
    lab.project("red")
    run([TENET, "adm", "policy", "add-role-to-user", "view", "eve", "-n", "red", "--kubeconfig", lab.kubeconfig])
    wait_for("the right", lambda: run([TENET, "get", "pods", "-n", "red"], env=env, check=False).returncode == 0)
    refused = run([TENET, "get", "nodes"], env=env, check=False)
    assert refused.returncode == 1 and 'User "eve" cannot list resource "nodes"' in refused.stderr
    run([TENET, "logout"], env=env)
    assert run([TENET, "whoami"], env=env, check=False).returncode != 0


def test_lab_on_etcd(make_lab):
    """The same cluster with its registry in etcd: nothing is lost when the master goes away and comes back."""
    lab = make_lab("etcd", nodes=2, plugin="redhat/openshift-ovs-multitenant", store="etcd")
    lab.project("red")
    lab.project("blue")
    a, b, c = lab.pod("red/a", "node1"), lab.pod("red/b", "node2"), lab.pod("blue/c", "node2")
    assert a.can_ping(b.ip) and not a.can_ping(c.ip, tries=1)
    before = sorted((s["host"], s["subnet"]) for s in lab.objects("hostsubnets"))
    lab.cmd("master", "restart")
    assert sorted((s["host"], s["subnet"]) for s in lab.objects("hostsubnets")) == before
    lab.down()
    assert not leftovers(lab.name)


def test_demo(tmp_path):
    """make demo's script: the matrix comes out as expected, and the cluster stays for the user."""
    root = lablib.ROOT
    env = {**lablib.environment(), "TENET_DEMO_NAME": f"demo{os.getpid() % 100000}"}
    try:
        r = run([root / "tools/demo", "up", lablib.BUILD], env=env, timeout=240)
        assert "10.128.0.0/23" in r.stdout and "red" in r.stdout and "blue" in r.stdout
        assert "as expected" in r.stdout
        status = json.loads(run([TENET, "lab", "--name", env["TENET_DEMO_NAME"], "-o", "json", "status"]).stdout)
        assert len(status["nodes"]) == 3
    finally:
        run([root / "tools/demo", "down", lablib.BUILD], env=env, timeout=120)
    assert not leftovers(env["TENET_DEMO_NAME"])
