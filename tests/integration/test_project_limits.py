# SPDX-License-Identifier: Apache-2.0
"""ProjectRequestLimit (docs/admission.md): how many projects a user may request, also at once, and from two masters."""
import concurrent.futures
import signal

import pytest

from ha import Etcd, Master
from lab import wait_for
from test_auth import RBAC, Cluster
from test_projects import API, REQUESTS, request

USERS = "/apis/user.openshift.io/v1/users"


def config(**doc):
    return {"pluginConfig": {"ProjectRequestLimit": {"configuration": {"apiVersion": "v1", "kind": "ProjectRequestLimitConfig", **doc}}}}


@pytest.fixture
def c(tmp_path):
    made = Cluster(str(tmp_path), {"admissionConfig": config(
        limits=[{"selector": {"level": "gold"}}, {"selector": {"level": "silver"}, "maxProjects": 4}, {"maxProjects": 2}],
        maxProjectsForServiceAccounts=1, maxProjectsForSystemUsers=0)})
    wait_for("the default bindings", lambda: made.ask(made.user("root", "system:masters"), "GET",
                                                      f"{RBAC}/clusterrolebindings/self-provisioners")[0] == 200)
    yield made
    made.stop(signal.SIGKILL)


def refusal(name, user, n):
    return f'projectrequests.project.openshift.io "{name}" is forbidden: user {user} cannot create more than {n} project(s).'


def user(c, name, **labels):
    c.admin("POST", USERS, {"metadata": {"name": name, "labels": labels}}, 201)
    return c.user(name, "system:authenticated:oauth")


def test_the_first_limit_whose_labels_the_user_has_counts(c):
    gold, silver, plain = user(c, "gold", level="gold"), user(c, "silver", level="silver"), user(c, "plain", other="gold")
    stranger = c.user("stranger", "system:authenticated:oauth")  # Has no object, and so no labels.
    for who, name, n in ((gold, "gold", None), (silver, "silver", 4), (plain, "plain", 2), (stranger, "stranger", 2)):
        for i in range(n or 5):
            request(c, who, f"{name}-{i}", 201)
        if n:
            status, answer = request(c, who, f"{name}-more")
            assert (status, answer["message"], answer["reason"]) == (403, refusal(f"{name}-more", name, n), "Forbidden")
            # Nor by a dry run, nor by the older path.
            assert c.ask(who, "POST", f"{REQUESTS}?dryRun=All", {"metadata": {"name": "x1"}})[0] == 403
            assert c.ask(who, "POST", "/oapi/v1/projectrequests", {"metadata": {"name": "x1"}})[0] == 403
    # The limit follows the labels at once.
    c.admin("PATCH", f"{USERS}/plain", {"metadata": {"labels": {"level": "silver"}}},
            headers={"Content-Type": "application/merge-patch+json"})
    request(c, plain, "plain-2", 201)
    # Accounts and system users have numbers of their own.
    c.bind(None, "provisioners", "self-provisioner", group="system:serviceaccounts")
    c.bind(None, "provisioners-system", "self-provisioner", user="system:robot")
    c.namespace("robots")
    token = c.token("robots", "default")
    wait_for("the binding", lambda: c.ask(token, "GET", REQUESTS)[0] == 200)
    request(c, token, "account-0", 201)
    account = "system:serviceaccount:robots:default"
    assert request(c, token, "account-1") [1]["message"] == refusal("account-1", account, 1)
    assert request(c, c.user("system:robot"), "robot-0")[1]["message"] == refusal("robot-0", "system:robot", 0)
    # Administrators who make namespaces themselves are not limited.
    for i in range(3):
        c.admin("POST", f"{API}/projects", {"metadata": {"name": f"made-{i}"}}, 201)


def test_two_projects_that_are_being_deleted_do_not_count(c):
    jane = user(c, "jane")
    for i in range(2):
        request(c, jane, f"p{i}", 201)
        c.admin("PATCH", f"/api/v1/namespaces/p{i}", {"metadata": {"finalizers": ["example.com/hold"]}},
                headers={"Content-Type": "application/merge-patch+json"})
        c.ask(jane, "DELETE", f"{API}/projects/p{i}", want=200)
        assert c.admin("GET", f"/api/v1/namespaces/p{i}")["status"]["phase"] == "Terminating"
    for i in range(2, 4):
        request(c, jane, f"p{i}", 201)
    assert request(c, jane, "p4")[0] == 403
    c.ask(jane, "DELETE", f"{API}/projects/p3", want=200)  # The third one that goes, unless it is gone already.
    wait_for("room", lambda: request(c, jane, "p4")[0] == 201)
    assert request(c, jane, "p5")[0] == 403


def test_a_user_does_not_get_around_the_limit_by_its_own_projects(c):
    jane = user(c, "jane")
    merge = {"Content-Type": "application/merge-patch+json"}
    other = {"metadata": {"annotations": {"openshift.io/requester": "other"}}}
    for i in range(2):
        request(c, jane, f"p{i}", 201)
        assert c.ask(jane, "PATCH", f"{API}/projects/p{i}", other, headers=merge)[0] == 422
        assert c.ask(jane, "PATCH", f"/api/v1/namespaces/p{i}", other, headers=merge)[0] == 403
        assert c.ask(jane, "PUT", f"/api/v1/namespaces/p{i}/finalize", {"metadata": {"name": f"p{i}"}})[0] == 403
    assert c.ask(jane, "PATCH", f"{USERS}/jane", {"metadata": {"labels": {"level": "gold"}}}, headers=merge)[0] == 403
    assert c.ask(jane, "POST", REQUESTS, {"metadata": {"name": "p2", "annotations": other["metadata"]["annotations"]}})[0] == 403
    assert c.ask(jane, "POST", f"{API}/projects", {"metadata": {"name": "p2"}})[0] == 403
    assert c.ask(jane, "POST", REQUESTS, {"metadata": {"name": "p2"}}, headers={"Impersonate-User": "other"})[0] == 403


def test_racing_requests_get_no_more_than_the_limit(c):
    jane, other = user(c, "jane"), user(c, "other", level="silver")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        codes = list(pool.map(lambda i: request(c, (jane, other)[i % 2], f"race-{i}")[0], range(40)))
    assert sorted(codes[::2]) == [201] * 2 + [403] * 18 and sorted(codes[1::2]) == [201] * 4 + [403] * 16, codes


def test_two_masters_give_no_more_than_one_would(tmp_path):
    etcd = Etcd(tmp_path)
    masters = []
    try:
        masters = [Master(tmp_path, f"tenet{i}", etcd, admissionConfig=config(maxProjectsForSystemUsers=3)) for i in range(2)]
        for m in masters:
            m.wait_ready()

        def at_once(n, prefix):
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                return sorted(pool.map(lambda i: masters[i % 2].call("POST", REQUESTS, {"metadata": {"name": f"{prefix}{i}"}},
                                                                     timeout=60)[0], range(n)))
        assert at_once(30, "pa") == [201] * 3 + [403] * 27
        names = [o["metadata"]["name"] for o in masters[0].items("/api/v1/namespaces") if o["metadata"]["name"].startswith("pa")]
        assert len(names) == 3
        assert masters[0].call("DELETE", f"/api/v1/namespaces/{names[0]}")[0] == 200
        for m in masters:
            wait_for("the deletion", lambda m=m: m.call("GET", f"/api/v1/namespaces/{names[0]}")[0] == 404)
        assert at_once(20, "pb") == [201] + [403] * 19
    finally:
        for m in masters:
            m.kill()
        etcd.close()
