# SPDX-License-Identifier: Apache-2.0
"""Faults around tenet router: the router, HAProxy or the API server ends, hangs or refuses; what was served goes on."""
import os
import pathlib
import signal

from lab import wait_for
from routers import HAPROXY, Load, namespace, own  # noqa: F401


def test_a_router_that_is_killed_or_replaced_finds_its_haproxy(own):
    r = own.router()
    own.route("kept", "kept.example.com", "a")
    wait_for("the route", lambda: r.get("http://kept.example.com/") == "a")
    pids, load = r.haproxy_pids(), Load(r, "kept.example.com", 2)
    r.process.kill()
    r.process.wait(10)
    own.route("later", "later.example.com", "b")
    own.delete_route("kept")
    own.route("kept", "kept.example.com", "a")
    r.start()
    wait_for("the change meanwhile", lambda: r.get("http://later.example.com/") == "b")
    assert r.stop(signal.SIGQUIT) == 0
    assert r.get("http://later.example.com/") == "b"
    r.start()
    good, bad = load.end()
    assert good > 20 and not bad and r.haproxy_pids() == pids, (good, bad[:5])
    assert r.stop() == 0 and not r.haproxy_pids()


def test_haproxy_killed_or_stopped_comes_back_with_all_routes(own):
    r = own.router()
    own.route("back", "back.example.com", "a")
    wait_for("the route", lambda: r.get("http://back.example.com/") == "a")
    for pid in r.haproxy_pids():
        os.kill(pid, signal.SIGKILL)
    wait_for("HAProxy again", lambda: r.get("http://back.example.com/") == "a", 20)
    worker = r.haproxy_pids()[-1]
    os.kill(worker, signal.SIGSTOP)
    own.route("more", "more.example.com", "b")
    wait_for("HAProxy again", lambda: r.get("http://more.example.com/", "-m", "1") == "b", 40)
    assert r.get("http://back.example.com/") == "a"


def test_the_api_server_away_changes_nothing(own):
    r = own.router()
    own.route("on", "on.example.com", "a")
    wait_for("the route", lambda: r.get("http://on.example.com/") == "a")
    own.api.stop()
    try:
        assert r.get("http://on.example.com/") == "a" and r.stat("/healthz/ready")[0] == 200
        os.kill(r.haproxy_pids()[0], signal.SIGKILL)
        wait_for("HAProxy again", lambda: r.get("http://on.example.com/") == "a", 20)
    finally:
        own.api.start()


def test_a_refused_configuration_is_tried_less_often_and_said_once(own, tmp_path):
    refuse, calls, program = tmp_path / "refuse", tmp_path / "calls", tmp_path / "wrapped"
    calls.touch()
    program.write_text(f"""#!/bin/sh
if [ "$1" = -c ]; then
    date +%s%N >> {calls}
    reason=$(cat {refuse} 2>/dev/null) && {{ echo "[ALERT]    ($$) : config : $reason" >&2; exit 1; }}
fi
exec {HAPROXY} "$@"
""")
    program.chmod(0o755)
    r = own.router("--reload-interval", "100ms", haproxy=program)
    own.route("served", "served.example.com", "a")
    wait_for("the route", lambda: r.get("http://served.example.com/") == "a")

    def lines():
        return [x for x in pathlib.Path(f"{r.folder}.log").read_text().splitlines() if "was not loaded" in x]

    def failed():
        return r.metric("tenet_router_failed_reloads_total")

    def refuse_with(text):
        (tmp_path / "next").write_text(text)
        (tmp_path / "next").rename(refuse)

    before = len(calls.read_text().split())
    refuse_with("first reason")
    own.route("new", "new.example.com", "a", annotations={"router.openshift.io/cookie_name": "mine"})
    wait_for("attempts", lambda: failed() >= 6, 30)
    times = [int(x) for x in calls.read_text().split()][before:]
    assert times[5] - times[4] > 1.1e9  # 1.2 s to 1.6 s; the first is 100 ms
    assert len(lines()) == 1 and "first reason" in lines()[0] and r.get("http://served.example.com/") == "a"
    refuse_with("second reason")
    n = failed()
    own.route("other", "other.example.com", "a", annotations={"router.openshift.io/cookie_name": "other"})
    wait_for("attempts", lambda: failed() >= n + 3, 30)
    assert len(lines()) == 2 and "second reason" in lines()[1]
    refuse.unlink()
    wait_for("both routes", lambda: r.get("http://new.example.com/") == r.get("http://other.example.com/") == "a", 30)
    assert len(lines()) == 2


def test_haproxy_that_cannot_start_is_said_once_and_serves_when_it_can(own, tmp_path):
    refuse, calls, program = tmp_path / "refuse", tmp_path / "calls", tmp_path / "wrapped"
    calls.touch()
    program.write_text(f"""#!/bin/sh
if [ "$1" = -W ]; then
    echo >> {calls}
    [ ! -e {refuse} ] || exit 3
fi
exec {HAPROXY} "$@"
""")
    program.chmod(0o755)
    r = own.router(haproxy=program)
    own.route("back", "back.example.com", "a")
    wait_for("the route", lambda: r.get("http://back.example.com/") == "a")
    refuse.touch()
    before = len(calls.read_text())
    for pid in r.haproxy_pids():
        os.kill(pid, signal.SIGKILL)
    wait_for("attempts", lambda: len(calls.read_text()) >= before + 4, 30)
    refuse.unlink()
    wait_for("HAProxy again", lambda: r.get("http://back.example.com/") == "a", 30)
    said = [x for x in pathlib.Path(f"{r.folder}.log").read_text().splitlines() if "HAProxy does not run" in x]
    assert len(said) == 2, said  # the end by SIGKILL, and the failed starts


def test_a_router_is_ready_only_when_it_serves_all_routes(own):
    hosts = [f"r{i}.example.com" for i in range(60)]  # more than the free backends of the first configuration
    for host in hosts:
        own.route(host.split(".")[0], host, "a")
    r = own.router()  # waits until it is ready
    assert [h for h in hosts if r.get(f"http://{h}/") != "a"] == []
