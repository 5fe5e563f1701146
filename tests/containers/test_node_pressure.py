# SPDX-License-Identifier: Apache-2.0
"""What a node itself decides about pods: which it takes, and which it evicts."""
import contextlib
import json
import pathlib
import re
import tempfile

import pytest

import containerd as containerdlib
from lab import run, wait_for
from test_kubelet import NODE, SH, Cluster, ready


class Node(Cluster):
    """A node whose root directory is a small file system of its own."""
    thresholds = "nodefs.available<30%"

    def start_kubelet(self, *args):
        root = self.dir / "kubelet"
        if not root.exists():
            root.mkdir()
            run(self.inside(["mount", "-t", "tmpfs", "-o", "size=64m", "none", root]))
        super().start_kubelet("--max-pods", "6", "--eviction-pressure-transition-period", "2s", "--eviction-hard",
                              self.thresholds, *args)

    def restart(self, thresholds, *args):
        self.stop_kubelet()
        self.thresholds = thresholds
        self.start_kubelet(*args)

    def images(self):
        return self.cd.images()

    def conditions(self):
        return {c["type"]: c["status"] for c in self.get("node", NODE)["status"]["conditions"]}

    def taints(self):
        return {t["key"].split("/")[1] for t in self.get("node", NODE)["spec"].get("taints", [])}

    def evicted(self, name):
        s = self.finished(name, "Failed")
        assert s["reason"] == "Evicted", s
        wait_for("the event", lambda: node_event(self, name) == s["message"])
        return s["message"]

    def evictions(self):
        """The names of evicted pods in their order."""
        return re.findall(r"a pod is evicted pod=default/(\S+)", self.log())

    def clear(self):
        self.kubectl("delete", "pods", "--all", "--wait=true", timeout=60)


def node_event(node, name):
    return node.events(name).get("Evicted")


@pytest.fixture(scope="module")
def node():
    containerdlib.needed()
    with tempfile.TemporaryDirectory(prefix="tenet-pressure-") as folder:
        c = Node(pathlib.Path(folder))
        try:
            wait_for("the node to be ready", lambda: ready((c.get("node", NODE) or {}).get("status", {})))
            yield c
        finally:
            with contextlib.suppress(Exception):
                c.clear()
            c.stop()


def resources(**requests):
    return {"command": ["sleep", "3600"], "resources": {"requests": requests}}


def test_the_node_refuses_what_it_has_no_room_for(node):
    milli = 1000 * int(node.get("node", NODE)["status"]["allocatable"]["cpu"])
    node.pod("first", resources(cpu=f"{milli - 100}m") | {"ports": [{"containerPort": 80, "hostPort": 8081}]})
    node.running("first")
    node.pod("cpu", resources(cpu="200m"))
    s = node.finished("cpu", "Failed")
    words = f"Node didn't have enough resource: cpu, requested: 200, used: {milli - 100}, capacity: {milli}"
    assert (s["reason"], s["message"]) == ("OutOfcpu", "Pod was rejected: " + words)
    wait_for("the event", lambda: node.events("cpu").get("OutOfcpu") == words)
    node.pod("memory", resources(memory="1000Gi"))
    node.pod("port", {"command": ["sleep", "3600"], "ports": [{"containerPort": 80, "hostPort": 8081}]})
    node.pod("affinity", {"command": ["sleep", "3600"]}, nodeSelector={"zone": "elsewhere"})
    node.pod("claims-to-be-static", resources(cpu="200m"), {"kubernetes.io/config.source": "file"})
    assert node.finished("memory", "Failed")["reason"] == "OutOfmemory"
    assert node.finished("port", "Failed")["reason"] == "NodePorts"
    assert node.finished("affinity", "Failed")["reason"] == "NodeAffinity"
    assert node.finished("claims-to-be-static", "Failed")["reason"] == "OutOfcpu"

    # Pods that were there before a restart of the agent come before one that was made meanwhile.
    node.stop_kubelet()
    node.pod("a-later-one", resources(cpu="200m") | {"ports": [{"containerPort": 80, "hostPort": 8082}]})
    node.start_kubelet()
    assert node.finished("a-later-one", "Failed")["reason"] == "OutOfcpu"
    assert node.running("first")["containerStatuses"][0]["restartCount"] == 0
    # What has ended gives its room back.
    node.delete("first")
    node.pod("second", resources(cpu="200m") | {"ports": [{"containerPort": 80, "hostPort": 8081}]})
    node.running("second")

    for i in range(5):
        node.pod(f"many-{i}", {"command": ["sleep", "3600"]})
        node.running(f"many-{i}")
    node.pod("one-too-many", {"command": ["sleep", "3600"]})
    s = node.finished("one-too-many", "Failed")
    assert s["reason"] == "OutOfpods" and "requested: 1, used: 6, capacity: 6" in s["message"]
    node.clear()


def fill(megabytes, path="/v/data"):
    return {"command": [SH, "-c", f"dd if=/dev/zero of={path} bs=1M count={megabytes} && exec sleep 3600"],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def volume(**source):
    return {"volumes": [{"name": "v", "emptyDir": source}]}


def test_a_pod_over_its_limits_of_local_storage_is_evicted(node):
    node.pod("within", fill(3), **volume(sizeLimit="4Mi"))
    node.pod("over", fill(5), **volume(sizeLimit="4Mi"))
    limits = {"resources": {"limits": {"ephemeral-storage": "2Mi"}}}
    node.pod("talks", limits | {"command": [SH, "-c", "head -c 4000000 /dev/zero; exec sleep 3600"]})
    assert node.evicted("over") == 'Usage of EmptyDir volume "v" exceeds the limit "4Mi". '
    assert node.evicted("talks") == "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "
    assert node.running("within")["containerStatuses"][0]["restartCount"] == 0
    assert set(node.evictions()) == {"over", "talks"}
    node.clear()


def test_disk_pressure_evicts_what_uses_most_and_ends(node):
    """Of 64 MB 30 % have to stay free."""
    node.pod("small", fill(8), **volume())
    node.running("small")
    node.pod("large", fill(40), **volume())
    message = node.evicted("large")
    assert message.startswith("The node was low on resource: ephemeral-storage. Threshold quantity: ")
    wait_for("the pressure to end", lambda: node.conditions()["DiskPressure"] == "False")
    assert node.running("small")["containerStatuses"][0]["restartCount"] == 0
    node.clear()

    # What is not a pod's stays: the condition stays as well, and is a taint, and no pod is taken.
    ballast = node.dir / "kubelet" / "ballast"
    run(node.inside(["dd", "if=/dev/zero", f"of={ballast}", "bs=1M", "count=50"]))
    wait_for("the pressure", lambda: node.conditions()["DiskPressure"] == "True")
    wait_for("the taint", lambda: "disk-pressure" in node.taints())
    node.pod("late", resources(cpu="1m"))
    assert node.finished("late", "Failed")["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "
    run(node.inside(["rm", ballast]))
    wait_for("the pressure to end", lambda: node.conditions()["DiskPressure"] == "False")
    wait_for("the taint to go", lambda: "disk-pressure" not in node.taints())
    node.clear()


def test_memory_pressure_evicts_in_order(node):
    node.pod("modest", {"command": ["sleep", "3600"], "resources": {"requests": {"memory": "100Mi"}}})
    node.pod("greedy", {"command": [SH, "-c", "dd if=/dev/zero of=/dev/shm/x bs=1M count=20 && exec sleep 3600"]})
    node.pod("needed", {"command": ["sleep", "3600"]}, priorityClassName="system-node-critical")
    for name in ("modest", "greedy", "needed"):
        node.running(name)
    before = len(node.evictions())
    node.restart("memory.available<100%")
    message = node.evicted("greedy")
    assert message.startswith("The node was low on resource: memory. Threshold quantity: ") and "Container c was using " in message
    assert message.endswith(", request is 0, has larger consumption of memory. ")
    node.evicted("modest")
    assert node.evictions()[before:] == ["greedy", "modest"]
    wait_for("the condition and its taint", lambda: node.conditions()["MemoryPressure"] == "True" and "memory-pressure" in node.taints())
    node.pod("best-effort", {"command": ["sleep", "3600"]})
    assert node.finished("best-effort", "Failed")["message"] == "Pod was rejected: The node had condition: [MemoryPressure]. "
    assert node.running("needed")["containerStatuses"][0]["restartCount"] == 0
    node.restart("memory.available<1Mi")
    wait_for("the pressure to end", lambda: node.conditions()["MemoryPressure"] == "False")
    node.pod("again", {"command": ["sleep", "3600"]})
    node.running("again")
    node.clear()


def test_unused_images_are_collected(node, monkeypatch):
    for name, applet in (("localhost/used:1", "nc"), ("localhost/unused:1", "tr")):
        monkeypatch.setattr(containerdlib, "APPLETS", (*containerdlib.APPLETS, applet))  # another image
        node.cd.load(containerdlib.archive(node.cd.folder, name))
    node.pod("user", {"image": "localhost/used:1", "command": ["sleep", "3600"]})
    node.running("user")
    assert {"localhost/used:1", "localhost/unused:1", containerdlib.IMAGE} <= node.images()
    node.restart("memory.available<1Mi", "--image-gc-high-threshold", "1", "--image-gc-low-threshold", "0",
                 "--minimum-image-ttl-duration", "0s", "--pod-infra-container-image", containerdlib.IMAGE)
    wait_for("the unused image to be gone", lambda: "localhost/unused:1" not in node.images())
    wait_for("the event", lambda: "Failed to garbage collect required amount of images" in node.events(NODE).get("FreeDiskSpaceFailed", ""))
    assert {"localhost/used:1", containerdlib.IMAGE} <= node.images()
    node.clear()


def test_runtime_classes_choose_the_handler(node):
    def runtime_class(name, handler):
        node.kubectl("apply", "-f", "-", input=json.dumps({
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler,
            "overhead": {"podFixed": {"cpu": "100m"}}}))
    runtime_class("plain", "runc")
    runtime_class("other", "not-there")
    node.pod("plain", {"command": ["sleep", "3600"]}, runtimeClassName="plain")
    node.pod("other", {"command": ["sleep", "3600"]}, runtimeClassName="other")
    node.running("plain")
    assert node.get("pod", "plain")["spec"]["overhead"] == {"cpu": "100m"}
    words = 'no runtime for "not-there" is configured|failed to find runtime handler not-there'
    wait_for("the runtime's words", lambda: re.search(words, node.events("other").get("FailedCreatePodSandBox", "")))
    # A class that is gone when the pod starts.
    node.stop_kubelet()
    runtime_class("gone", "runc")
    node.pod("classless", {"command": ["sleep", "3600"]}, runtimeClassName="gone")
    node.kubectl("delete", "runtimeclass", "gone")
    node.start_kubelet()
    wait_for("the event", lambda: node.events("classless").get("FailedCreatePodSandBox", "").endswith('RuntimeClass "gone" not found'))
    runtime_class("gone", "runc")
    node.running("classless")
    node.clear()
