# SPDX-License-Identifier: Apache-2.0
"""Hostile webhooks, and people who would like to have one (docs/webhooks.md)."""
import threading

import pytest

from people import RED, SECRET, People, pod
from webhook_server import MUTATING, VALIDATING, Webhook, answer


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    people = People(str(tmp_path_factory.mktemp("webhooks")))
    yield people
    people.stop()


@pytest.fixture
def hook(tmp_path):
    h = Webhook(tmp_path)
    yield h
    h.stop()


@pytest.fixture
def configure(c):
    made = []

    def fn(kind, *entries):
        c.admin("POST", kind, {"metadata": {"name": "evil"}, "webhooks": list(entries)}, 201)
        made.append(kind)
    yield fn
    for kind in made:
        c.admin("DELETE", f"{kind}/evil")
    assert c.proc.poll() is None, c.text()[-4000:]


def red(**more):
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "red"}}, **more}


def test_only_the_cluster_administrator_has_webhooks(c, hook, configure):
    for who in c.ed, c.ada, c.nobody:
        for kind in MUTATING, VALIDATING:
            for method, path in (("POST", kind), ("GET", kind), ("DELETE", f"{kind}/evil"), ("PUT", f"{kind}/evil")):
                body = {"metadata": {"name": "evil"}, "webhooks": []} if method in ("POST", "PUT") else None
                assert c.ask(who, method, path, body)[0] == 403, (method, path)
    hook.paths["/allow"] = answer
    configure(VALIDATING, hook.entry("/allow", resources=("pods",), **red()))  # the control
    assert c.ask(c.ed, "POST", f"{RED}/pods", pod("asked"))[0] == 201 and hook.asked("/allow")


def test_a_webhook_gives_nobody_more_than_the_constraints(c, hook, configure):
    hook.paths["/root"] = lambda r: answer(r, patch=[
        {"op": "add", "path": "/spec/hostNetwork", "value": True},
        {"op": "add", "path": "/spec/containers/0/securityContext", "value": {"privileged": True, "runAsUser": 0}}])
    configure(MUTATING, hook.entry("/root", resources=("pods",), operations=("CREATE",), **red()))
    status, body = c.ask(c.ed, "POST", f"{RED}/pods", pod("root"))
    assert status == 403 and "unable to validate against any security context constraint" in str(body), body
    assert hook.asked("/root")


def test_a_webhook_grants_no_role(c, hook, configure):
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    hook.paths["/all"] = lambda r: answer(r, patch=[{"op": "replace", "path": "/rules", "value": rules}])
    configure(MUTATING, hook.entry("/all", resources=("roles",), groups=("rbac.authorization.k8s.io",), **red()))
    status, body = c.ask(c.ada, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/roles",
                         {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
    assert status == 403, body


def test_a_webhook_that_asks_itself_ends_by_its_time(c, hook, configure):
    """The webhook writes what it is asked about, which asks it again."""
    depth = []

    def loop(review):
        depth.append(1)
        if len(depth) < 50:
            c.ask(c.ed, "POST", f"{RED}/configmaps", {"metadata": {"name": f"loop-{len(depth)}"}})
        return answer(review)
    hook.paths["/loop"] = loop
    configure(VALIDATING, hook.entry("/loop", resources=("configmaps",), operations=("CREATE",), timeoutSeconds=1, **red()))
    status, body = c.ask(c.ed, "POST", f"{RED}/configmaps", {"metadata": {"name": "loop"}})
    assert status in (201, 500)
    if status == 500:
        assert "no answer within 1000 ms" in str(body)
    assert c.ask(c.ada, "GET", f"{RED}/pods")[0] == 200


def test_bombs_in_patches_are_bounded(c, hook, configure):
    copies = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    copies += [{"op": "copy", "from": "/data", "path": f"/data/k{i}"} for i in range(40)]
    many = [{"op": "add", "path": "/metadata/labels", "value": {}}] * 20000
    deep = [{"op": "add", "path": "/metadata/annotations", "value": "[" * 5000}]
    for ops in copies, many, deep:
        hook.paths["/bomb"] = lambda r, ops=ops: answer(r, patch=ops)
        c.admin("POST", MUTATING, {"metadata": {"name": "evil"}, "webhooks": [
            hook.entry("/bomb", resources=("configmaps",), **red())]}, 201)
        try:
            status, _ = c.ask(c.ed, "POST", f"{RED}/configmaps", {"metadata": {"name": "bomb"}})
            assert status in (413, 422, 500), status
        finally:
            c.admin("DELETE", f"{MUTATING}/evil")
    assert c.proc.poll() is None


def test_slow_webhooks_hold_up_only_their_own_writes(c, hook, configure):
    done = threading.Event()
    hook.paths["/slow"] = lambda r: (done.wait(60), answer(r))[1]
    configure(VALIDATING, hook.entry("/slow", resources=("configmaps",), timeoutSeconds=30, **red()))
    threads = [threading.Thread(target=c.ask, args=(c.ed, "POST", f"{RED}/configmaps", {"metadata": {"name": f"s{i}"}}))
               for i in range(20)]
    for t in threads:
        t.start()
    try:
        assert c.ask(c.ada, "GET", f"{RED}/secrets")[0] == 200
        assert c.ask(c.ed, "POST", f"{RED}/services", {"metadata": {"name": "free"}, "spec": {"ports": [{"port": 80}]}})[0] == 201
    finally:
        done.set()
        for t in threads:
            t.join(60)


def test_texts_of_a_webhook_forge_no_log_and_leak_no_secret(c, hook, configure):
    hook.paths["/forge"] = lambda r: (500, {}, b"x")
    hook.paths["/deny"] = lambda r: answer(r, False, status={"message": "a\nINFO apiserver: forged line"})
    configure(VALIDATING, hook.entry("/forge", resources=("secrets",), **red()), hook.entry("/deny", resources=("secrets",), **red()))
    status, body = c.ask(c.ed, "POST", f"{RED}/secrets", {"metadata": {"name": "s"}, "data": {"k": SECRET}})
    assert status in (400, 500), body
    text = c.text()
    assert SECRET not in text and "\nINFO apiserver: forged line" not in text
    assert all("Authorization" not in h for h in hook.headers)
