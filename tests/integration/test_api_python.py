# SPDX-License-Identifier: Apache-2.0
"""The Python client (python3-kubernetes) against the API server alone: typed calls, watches, and resync after 410."""
import threading

import pytest
from kubernetes import client, config, watch

import api_server


@pytest.fixture
def server(tmp_path):
    s = api_server.start(tmp_path)
    yield s
    s.stop()


@pytest.fixture
def api(server):
    return client.CoreV1Api(config.new_client_from_config(str(server.kubeconfig)))


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"t": "1"}), data=data)


def test_objects(api):
    made = api.create_namespaced_config_map("default", config_map("a", x="1"))
    assert made.metadata.uid and made.data == {"x": "1"}
    made.data["x"] = "2"
    stale = made.metadata.resource_version
    api.replace_namespaced_config_map("a", "default", made)
    made.metadata.resource_version = stale
    with pytest.raises(client.ApiException) as e:
        api.replace_namespaced_config_map("a", "default", made)
    assert e.value.status == 409
    api.patch_namespaced_config_map("a", "default", {"data": {"y": "3"}})
    assert api.read_namespaced_config_map("a", "default").data == {"x": "2", "y": "3"}
    generated = client.V1ObjectMeta(generate_name="g-", labels={"t": "1"})
    api.create_namespaced_config_map("default", client.V1ConfigMap(metadata=generated))
    names = [o.metadata.name for o in api.list_namespaced_config_map("default", label_selector="t=1").items]
    assert len(names) == 2 and names[0] == "a" and names[1].startswith("g-")
    api.delete_namespaced_config_map("a", "default", grace_period_seconds=0, propagation_policy="Background")
    api.delete_collection_namespaced_config_map("default", label_selector="t=1")
    assert api.list_namespaced_config_map("default", label_selector="t=1").items == []
    with pytest.raises(client.ApiException) as e:
        api.read_namespaced_config_map("a", "default")
    assert e.value.status == 404


def test_pages(api):
    # Those that controllers of another server make; an answer with a selector has no remaining count.
    others = [o.metadata.name for o in api.list_namespaced_config_map("default").items]
    for i in range(7):
        api.create_namespaced_config_map("default", config_map(f"c{i}"))
    page = api.list_namespaced_config_map("default", limit=3)
    seen = [o.metadata.name for o in page.items]
    assert page.metadata.remaining_item_count == 4 + len(others)
    while page.metadata._continue:
        page = api.list_namespaced_config_map("default", limit=3, _continue=page.metadata._continue)
        seen += [o.metadata.name for o in page.items]
    assert seen == sorted([f"c{i}" for i in range(7)] + others)


def test_a_watch_sees_changes_in_order(api):
    start = api.list_namespaced_config_map("default").metadata.resource_version

    def write():
        for i in range(5):
            api.create_namespaced_config_map("default", config_map(f"c{i}"))
        api.delete_namespaced_config_map("c0", "default")
    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    for event in watch.Watch().stream(api.list_namespaced_config_map, "default", resource_version=start,
                                      timeout_seconds=30):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 6:
            break
    thread.join()
    assert seen == [("ADDED", f"c{i}") for i in range(5)] + [("DELETED", "c0")]


def test_a_watch_that_is_too_old_lists_again(api):
    """What an informer does: list, watch; when the version is gone (410), list and watch again."""
    first = api.create_namespaced_config_map("default", config_map("c"))
    old = first.metadata.resource_version
    for i in range(9000):  # More than the window keeps.
        api.patch_namespaced_config_map("c", "default", {"data": {"n": str(i)}})
    with pytest.raises(client.ApiException) as e:
        for _ in watch.Watch().stream(api.list_namespaced_config_map, "default", resource_version=old,
                                      timeout_seconds=30):
            pass
    assert e.value.status == 410
    page = api.list_namespaced_config_map("default")
    assert [o.data["n"] for o in page.items] == ["8999"]
    api.patch_namespaced_config_map("c", "default", {"data": {"n": "last"}})
    for event in watch.Watch().stream(api.list_namespaced_config_map, "default",
                                      resource_version=page.metadata.resource_version, timeout_seconds=30):
        assert (event["type"], event["object"].data["n"]) == ("MODIFIED", "last")
        break
