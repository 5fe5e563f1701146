# SPDX-License-Identifier: Apache-2.0
"""An identity server that answers slowly, never, or lies, while many people log in there: others log in, and the API answers."""
import concurrent.futures
import signal
import time

import pytest

import directory
from test_oauth import ASKED, CHALLENGING, USERS, OAuth, basic, provider

SILENT = 70  # More than the attempts that a provider has under way.


@pytest.fixture
def silent():
    s = directory.Liar(lambda c: time.sleep(60))
    yield s
    s.close()


def form(c, name, user, password):
    """A login by the page of the provider: the answer to the form, and how long it took."""
    b = c.browser()
    page = b.get(f"/login/{name}?then=%2Foauth%2Ftoken%2Frequest")
    begun = time.monotonic()
    return b.log_in(page, user, password), time.monotonic() - begun


def test_logins_at_a_silent_server_hold_up_nobody(silent, tmp_path):
    slow = {"name": "slow", "challenge": False, "login": True, "mappingMethod": "claim",
            "provider": {"kind": "BasicAuthPasswordIdentityProvider", "url": f"http://127.0.0.1:{silent.port}/"}}
    c = OAuth(str(tmp_path), providers=[slow, provider("files", f"{tmp_path}/users")])
    try:
        with concurrent.futures.ThreadPoolExecutor(SILENT) as pool:
            waiting = [pool.submit(form, c, "slow", f"user{i}", "x") for i in range(SILENT)]
            while len(silent.connections) < 3:
                time.sleep(0.01)
            # The control: others, by page and by challenge, and the API.
            answer, took = form(c, "files", "bob", "secret")
            assert answer.status == 302 and "reason=" not in answer.location and took < 5
            challenged = c.browser().authorize(CHALLENGING, headers={**ASKED, **basic("ann", "sesame")}, response_type="token")
            assert "access_token" in challenged.query()
            assert c.ask(challenged.query()["access_token"], "GET", f"{USERS}/~", want=200)["metadata"]["name"] == "ann"
            answers = [f.result() for f in waiting]
        assert all("reason=authentication_error" in a.location for a, _ in answers)
        assert any(took < 5 for _, took in answers), "those above the limit end at once"
        assert max(took for _, took in answers) < 30
        assert {u["metadata"]["name"] for u in c.admin("GET", USERS)["items"]} == {"ann", "bob"}
        # It is silent, and not locked out: the next one is asked again.
        before = len(silent.connections)
        form(c, "slow", "late", "x")
        assert len(silent.connections) > before
    finally:
        c.stop(signal.SIGKILL)
