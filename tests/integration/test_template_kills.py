# SPDX-License-Identifier: Apache-2.0
"""TemplateInstances on a master that is killed after each of their writes: an instance is whole, or nothing of it is left."""
import pytest

from ha import Gone, KilledAfter, PlainMaster
from lab import wait_for
from test_templates import API, OWNER, configmap, template

MAPS = "/api/v1/namespaces/{}/configmaps"
INSTANCES = API + "/{}/templateinstances"
N_OBJECTS = 4
WRITES = 24  # More than an instance takes, as the test shows.


def watched(ns):
    return MAPS.format(ns), INSTANCES.format(ns)


def owned(m, ns, uid):
    return [o["metadata"]["name"] for o in m.items(MAPS.format(ns)) if o["metadata"].get("labels", {}).get(OWNER) == uid]


def ended(m, ns, name):
    status, o = m.call("GET", f"{INSTANCES.format(ns)}/{name}")
    assert status == 200, o
    return next((c for c in o.get("status", {}).get("conditions", []) if c["status"] == "True"), None)


def one_history(m, ns, limit):
    """Makes an instance, kills the master after 'limit' writes, and again when it is deleted."""
    name = f"i{limit}"
    path = f"{INSTANCES.format(ns)}/{name}"
    objects = template(*(configmap(f"{name}-{k}") for k in range(N_OBJECTS)))
    writes = KilledAfter(m, watched(ns), limit)
    try:
        m.call("POST", INSTANCES.format(ns), {"metadata": {"name": name}, "spec": {"template": objects}})
        wait_for("the kill, or the end", lambda: writes.reached.is_set() or ended(m, ns, name))
    except Gone:
        assert writes.reached.is_set()
    m.kill()
    writes.close()
    m.start()
    uid = m.call("GET", path)[1]["metadata"]["uid"]
    condition = wait_for("the instance to end", lambda: ended(m, ns, name))
    left = owned(m, ns, uid)
    return name, path, writes.reached.is_set(), condition, left


@pytest.mark.parametrize("refused", (False, True), ids=("whole", "refused"))
def test_an_instance_is_whole_or_leaves_nothing_whenever_the_master_dies(tmp_path, refused):
    m = PlainMaster(tmp_path)
    ns, killed = "red", 0
    try:
        assert m.call("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})[0] == 201
        if refused:
            # The dry run of each object alone passes; the third one is refused when it is created.
            hard = {"configmaps": str(N_OBJECTS - 2)}
            quota = f"/api/v1/namespaces/{ns}/resourcequotas"
            assert m.call("POST", quota, {"metadata": {"name": "q"}, "spec": {"hard": hard}})[0] == 201
            wait_for("the quota", lambda: m.items(quota)[0].get("status", {}).get("hard") == hard)
        others = {o["metadata"]["name"] for o in m.items(MAPS.format(ns))}
        for limit in range(1, WRITES):
            name, path, early, condition, left = one_history(m, ns, limit)
            if refused:
                assert condition["type"] == "InstantiateFailure" and "exceeded quota" in condition["message"], (limit, condition)
                assert not left, (limit, left)
            else:
                assert condition["type"] == "Ready" and sorted(left) == [f"{name}-{k}" for k in range(N_OBJECTS)], (limit, condition, left)
            writes = KilledAfter(m, watched(ns), 1 + limit % (N_OBJECTS + 2))
            try:
                m.call("DELETE", path)
                wait_for("the kill, or the end", lambda: writes.reached.is_set() or m.call("GET", path)[0] == 404)
            except Gone:
                assert writes.reached.is_set()
            killed += writes.reached.is_set()
            m.kill()
            writes.close()
            m.start()
            wait_for("the instance to go", lambda: m.call("GET", path)[0] == 404)
            assert {o["metadata"]["name"] for o in m.items(MAPS.format(ns))} == others, limit
        assert killed and not early  # There was a kill after each write.
    finally:
        m.kill()
