# SPDX-License-Identifier: Apache-2.0
"""The host's shutdown: the kubelet ends the pods while logind waits; logind is a double of ours on a D-Bus daemon of ours."""
import pathlib
import subprocess
import tempfile

import pytest

import containerd as containerdlib
import lab as lablib
from lab import wait_for
from test_kubelet import NODE, SH, Cluster, ready


class Logind:
    """The bus, and tests/unit/kubelet/serve_logind.c on it."""

    def __init__(self, folder):
        self.env = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/bus"}
        (folder / "bus.conf").write_text(
            f'<busconfig><type>custom</type><listen>unix:path={folder}/bus</listen><auth>EXTERNAL</auth><policy context="default">'
            '<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>')
        self.bus = subprocess.Popen(["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--nopidfile"])
        wait_for("the bus", lambda: (folder / "bus").exists())
        self.proc = subprocess.Popen([lablib.BUILD / "tests/unit/kubelet/serve_logind"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True, env={**lablib.environment(), **self.env})

    def says(self):
        return self.proc.stdout.readline().strip()

    def announce(self, word):
        self.proc.stdin.write(word + "\n")
        self.proc.stdin.flush()

    def stop(self):
        self.proc.stdin.close()
        status = self.proc.wait(30)
        self.proc.stdout.close()
        self.bus.kill()
        self.bus.wait()
        assert status == 0


@pytest.fixture
def host():
    containerdlib.needed()
    with tempfile.TemporaryDirectory(prefix="tenet-shutdown-") as folder:
        logind = Logind(pathlib.Path(folder))
        try:
            c = Cluster(pathlib.Path(folder))
            try:
                c.logind = logind
                c.stop_kubelet()
                c.start_kubelet("--shutdown-grace-period", "60s", "--shutdown-grace-period-critical-pods", "20s", env=logind.env)
                assert logind.says() == "held"
                wait_for("the node to be ready", lambda: ready((c.get("node", NODE) or {}).get("status", {})))
                yield c
            finally:
                c.stop()
        finally:
            logind.stop()


def test_pods_end_before_the_host_does(host):
    """Critical pods last, each by its TERM; the Node says why it is not ready, and takes no more pods."""
    journal = host.dir / "journal"
    journal.mkdir()

    def begin(name, **spec):
        script = f"trap 'echo {name} >> /journal/ends; exit 0' TERM; echo up > /journal/{name}; while :; do sleep 0.1; done"
        return host.pod(name, {"command": [SH, "-c", script], "volumeMounts": [{"name": "j", "mountPath": "/journal"}]},
                        terminationGracePeriodSeconds=30, volumes=[{"name": "j", "hostPath": {"path": str(journal)}}], **spec)
    for name in (begin("critical", priorityClassName="system-node-critical"), begin("plain"), begin("other")):
        host.running(name)
        wait_for(f"{name} to have its trap", lambda name=name: (journal / name).exists())
    host.logind.announce("begin")
    assert host.logind.says() == "free"
    ends = (journal / "ends").read_text().split()
    assert sorted(ends) == ["critical", "other", "plain"] and ends[-1] == "critical"
    for name in ends:
        s = host.status(name)
        assert (s["phase"], s["reason"]) == ("Failed", "Terminated"), s
        assert s["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

    def says_why():
        status = (host.get("node", NODE) or {}).get("status", {})
        return any(c["type"] == "Ready" and c["status"] == "False" and c["message"] == "node is shutting down"
                   for c in status["conditions"]) or None
    wait_for("the Node to say why", says_why)
    late = host.pod("late", tolerations=[{"operator": "Exists"}])
    assert host.finished(late, "Failed")["reason"] == "NodeShutdown"
    # It was cancelled: the next shutdown waits, too, and the node takes pods again.
    host.logind.announce("cancel")
    assert host.logind.says() == "held"
    wait_for("the node to be ready", lambda: ready(host.get("node", NODE)["status"]))
    host.running(host.pod("again", {"command": [SH, "-c", "exec sleep 1000"]}))
