# SPDX-License-Identifier: Apache-2.0
"""The log as JSON: every line that the programs of a cluster write is as docs/logs.md says."""
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import lab as lablib
from lab import TENET, run, wait_for

TABLE = re.compile(r"^\| `(\w+)` \| (\w+) \| (always|sometimes) \|", re.M)
TYPES = {"string": str, "number": int, "object": dict}
PRIORITIES = {"error": 3, "warn": 4, "info": 6, "debug": 7}


def schema():
    rows = TABLE.findall((pathlib.Path(__file__).parents[2] / "docs/logs.md").read_text())
    assert len(rows) >= 7
    return {name: (TYPES[kind], there == "always") for name, kind, there in rows}


def no_duplicates(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), f"a name twice: {pairs}"
    return dict(pairs)


def check_lines(path):
    """The objects of a log, each of them checked."""
    rows, objects = schema(), []
    for line in path.read_text().splitlines():
        o = json.loads(line, object_pairs_hook=no_duplicates)
        objects.append(o)
        for name, (kind, always) in rows.items():
            assert name in o or not always, f"{name} is missing: {line}"
            assert name not in o or type(o[name]) is kind, f"{name}: {line}"
        assert set(o) <= set(rows), f"not in docs/logs.md: {line}"
        assert o["priority"] == PRIORITIES[o["level"]], line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", o["time"]), line
        assert all(isinstance(v, str) for v in o["fields"].values()), line
        assert o["message"] and "%" not in o["message"], line
    assert objects
    return objects


@pytest.fixture
def programs(tmp_path):
    running = []

    def start(name, *args, **kw):
        p = subprocess.Popen([TENET, *map(str, args)], stdout=subprocess.DEVNULL, stderr=open(tmp_path / f"{name}.log", "w"),
                             env={**lablib.environment(), **kw})
        running.append(p)
        return p
    yield start
    for p in running:
        p.kill()
        p.wait(10)


def test_every_line_of_a_master_is_an_object(programs, tmp_path):
    log = tmp_path / "master.log"
    p = programs("master", "master", "--bind-address", "127.0.0.1:0", "--storage-path", tmp_path / "r.db", "--dns-bind-address",
                 "none", "--log-format", "json", "--log-level", "debug", "--pki-dir", tmp_path / "pki")
    wait_for("the master to be ready", lambda: '"message":"ready"' in log.read_text() or p.poll() is not None)
    port = next(o["fields"]["address"] for o in check_lines(log) if o["fields"].get("address", "").startswith("127.0.0.1:"))
    # What a client sends is in fields, and makes none.
    run(["curl", "-sk", "-o", "/dev/null", f"https://{port}/api/v1/namespaces/x%22%20level=%22error"], check=False)
    run(["curl", "-s", "-o", "/dev/null", f"http://{port}/"], check=False)
    p.send_signal(signal.SIGHUP)
    wait_for("the configuration to be read", lambda: '"module":"audit"' in log.read_text() or len(log.read_text().splitlines()) > 20)
    p.send_signal(signal.SIGTERM)
    assert p.wait(30) == 0
    objects = check_lines(log)
    assert {"apiserver", "master"} <= {o["module"] for o in objects}
    assert any(o["level"] == "debug" for o in objects)


def test_the_last_error_is_an_object_too(programs, tmp_path):
    p = programs("fails", "master", "--bind-address", "127.0.0.1:0", "--storage-path", "/proc/none/r.db",
                 "--dns-bind-address", "none", "--log-format", "json")
    assert p.wait(30) == 1
    last = check_lines(tmp_path / "fails.log")[-1]
    assert (last["module"], last["level"], last["message"]) == ("tenet", "error", "failed") and "/proc/none" in last["fields"]["error"]


def test_the_environment_chooses_the_format_from_the_first_line(programs, tmp_path):
    p = programs("env", "node", "--config", tmp_path / "none.yaml", TENET_LOG_FORMAT="json")
    assert p.wait(30) == 1
    assert "none.yaml" in check_lines(tmp_path / "env.log")[-1]["fields"]["error"]


def test_a_wrong_format_is_named(tmp_path):
    r = run([TENET, "master", "--log-format", "xml"], check=False)
    assert r.returncode == 2 and "--log-format" in r.stderr and "text" in r.stderr


def test_every_line_of_a_node_and_its_pods_is_an_object(make_lab):
    lab = make_lab("lj", nodes=1, datapath="ebpf")
    try:
        config = lab.folder("node1") / "node-config.yaml"
        config.write_text(config.read_text() + "logFormat: json\nlogLevel: debug\n")
        lab.cmd("node", "stop", "node1")
        log = lab.folder("node1") / "node.log"
        assert log.stat().st_size
        os.truncate(log, 0)
        lab.cmd("node", "start", "node1")
        lab.project("red")
        pod = lab.pod("red/a", "node1")
        assert pod.ip
        lab.delete_pod("red/a")
        lab.cmd("node", "stop", "node1")
        objects = check_lines(log)
        assert any(o["fields"].get("pod") == "red/a" for o in objects), [o for o in objects if "pod" in o["fields"]]
    finally:
        lab.down(check=False)
