# SPDX-License-Identifier: Apache-2.0
"""OAuth tokens that two masters share: on one etcd, each judges the tokens of the other, and stores the uses that it saw."""
import signal
import tempfile

import pytest

import ha
from lab import wait_for
from oauth_objects import CLIENT, CLIENTS, TOKENS, USERS, make_client, make_token, make_user, name_of
from test_auth import Cluster

SELF = f"{USERS}/~"


@pytest.fixture
def masters(tmp_path):
    with tempfile.TemporaryDirectory(prefix="tenet-oauth-") as tmp:
        etcd, made = ha.Etcd(tmp), []
        try:
            for i in range(2):
                folder = tmp_path / str(i)
                folder.mkdir()
                made.append(Cluster(str(folder), {"storage": {"backend": "etcd", "endpoints": etcd.endpoints}}))
            yield made
        finally:
            for m in made:
                m.stop(signal.SIGKILL)
            etcd.close()


def status(master, token):
    return master.ask(token, "GET", SELF)[0]


def object_of(master, token):
    return master.ask(admin(master), "GET", f"{TOKENS}/{name_of(token)}")


def admin(master):
    master.admin("GET", "/api")
    return master._admin


def test_a_token_that_is_used_stays_and_another_ends(masters):
    one, two = masters
    uid = make_user(one, "jane")
    one.admin("POST", CLIENTS, {"metadata": {"name": CLIENT}, "grantMethod": "auto", "accessTokenInactivityTimeoutSeconds": 300}, 201)
    used, unused, both = (make_token(one, "jane", uid, inactivityTimeoutSeconds=20) for _ in range(3))
    wait_for("the second master to know the tokens", lambda: status(two, used) == 200)
    assert status(one, both) == status(two, both) == 200
    for token in (used, both):
        wait_for("the use to be stored", lambda: object_of(one, token)[1].get("inactivityTimeoutSeconds", 0) >= 300)
    # The controller deletes the token that nothing used; a request with it would be a use.
    wait_for("the unused token to go", lambda: all(object_of(m, unused)[0] == 404 for m in masters))
    assert [status(m, unused) for m in masters] == [401, 401]
    assert [status(m, token) for token in (used, both) for m in masters] == [200] * 4


def test_a_token_of_one_master_is_judged_by_the_other(masters):
    one, two = masters
    make_client(one)
    uid = make_user(one, "jane")
    token = make_token(one, "jane", uid)
    wait_for("the second master to accept it", lambda: status(two, token) == 200)
    two.admin("DELETE", f"{TOKENS}/{name_of(token)}")
    wait_for("the first master to refuse it", lambda: status(one, token) == 401)
    assert status(two, token) == 401
    short = make_token(two, "jane", uid, expiresIn=2)
    wait_for("its end at the first master", lambda: status(one, short) == 401)
    assert status(two, short) == 401
    other = make_token(one, "jane", uid)
    wait_for("the second master to accept it", lambda: status(two, other) == 200)
    one.admin("DELETE", f"{USERS}/jane")
    wait_for("the second master to refuse the deleted user", lambda: status(two, other) == 401)
