# SPDX-License-Identifier: Apache-2.0
"""Faults around tenet router: the router, HAProxy or the API server ends, hangs or refuses; what was served goes on."""
import os
import signal

from lab import wait_for
from routers import Load, namespace, needs_haproxy, own  # noqa: F401

pytestmark = needs_haproxy


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
