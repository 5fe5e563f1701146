# SPDX-License-Identifier: Apache-2.0
"""Rollouts of a DeploymentConfig and of a Deployment whose master is killed after each of their writes: the next one goes on from
the objects, makes nothing twice, and keeps no more and no fewer pods than the strategy allows."""
import pytest

from ha import Gone, KilledAfter, PlainMaster
from lab import wait_for
from playkubelet import PlayKubelet

CORE = "/api/v1/namespaces/default/"
CONFIGS = "/apis/apps.openshift.io/v1/namespaces/default/deploymentconfigs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
CONTROLLERS = CORE + "replicationcontrollers"
MERGE = {"Content-Type": "application/merge-patch+json"}
REPLICAS, SURGE = 3, 1
WRITES = 60  # More than a rollout takes, as the test shows.


def template(image):
    return {"metadata": {"labels": {"app": "x"}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": image}]}}


class Config:
    """A DeploymentConfig, whose rollouts the controllers do themselves."""

    path, parts = CONFIGS, CONTROLLERS
    body = {"metadata": {"name": "x"}, "spec": {"replicas": REPLICAS, "template": template("web:0"), "triggers": [{"type": "ConfigChange"}],
            "strategy": {"type": "Rolling", "rollingParams": {"maxSurge": SURGE, "maxUnavailable": 0}}}}

    @staticmethod
    def complete(c, n):
        # The phase of the version's controller says it, as in "oc rollout status"; the status of the config follows later.
        o = c.call("GET", f"{CONTROLLERS}/x-{n + 1}")
        return o and o["metadata"]["annotations"].get("openshift.io/deployment.phase") == "Complete" \
            and o["status"].get("availableReplicas") == REPLICAS


class Deployment:
    path, parts = DEPLOYMENTS, SETS
    body = {"metadata": {"name": "x"}, "spec": {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "x"}}, "template": template("web:0"),
            "revisionHistoryLimit": 2, "strategy": {"rollingUpdate": {"maxSurge": SURGE, "maxUnavailable": 0}}}}

    @staticmethod
    def complete(c, n):
        o = c.call("GET", DEPLOYMENTS + "/x") or {"metadata": {}}
        s = o.get("status", {})
        return s.get("observedGeneration") == o["metadata"].get("generation") and s.get("replicas") == s.get("updatedReplicas") \
            == s.get("availableReplicas") == REPLICAS and not s.get("unavailableReplicas")


class Cluster:
    def __init__(self, tmp):
        self.master = PlainMaster(tmp, kubernetesMasterConfig={"deployInProcess": True})
        self.most = 0
        self.kubelet = PlayKubelet(self.call)

    def close(self):
        self.kubelet.stop()
        self.master.kill()

    def call(self, method, path, body=None, headers=None):
        """The answer; None when there is none, or it is an error."""
        try:
            status, answer = self.master.call(method, path, body, headers=headers)
        except Gone:
            return None
        if path == "/api/v1/pods" and status == 200:
            self.most = max(self.most, sum(not p["metadata"].get("deletionTimestamp") for p in answer["items"]))
        return answer if status < 300 else None


@pytest.mark.parametrize("kind", (Config, Deployment), ids=("config", "deployment"))
def test_a_rollout_goes_on_whenever_the_master_dies(tmp_path, kind):
    c = Cluster(tmp_path)
    m, one = c.master, kind.path + "/x"
    try:
        wait_for("the object", lambda: c.call("POST", kind.path, kind.body))
        wait_for("the first rollout", lambda: kind.complete(c, 0))
        killed = 0
        for n in range(1, WRITES):
            kill = KilledAfter(m, (kind.path, kind.parts, CORE + "pods"), n)
            c.call("PATCH", one, {"spec": {"template": template(f"web:{n}")}}, MERGE)
            wait_for("the kill, or the end", lambda: kill.reached.is_set() or kind.complete(c, n))
            early = kill.reached.is_set()
            m.kill()
            kill.close()
            m.start()
            m.wait_ready()
            spec = wait_for("the object", lambda: c.call("GET", one))["spec"]
            assert spec["template"]["spec"]["containers"][0]["image"] == f"web:{n}", n  # It was written before the kill.
            wait_for(f"the rollout after {n} writes", lambda: kind.complete(c, n), 60)
            wait_for("the pods of the last template alone", lambda: sorted(
                p["spec"]["containers"][0]["image"] for p in (c.call("GET", CORE + "pods") or {"items": []})["items"])
                == [f"web:{n}"] * REPLICAS)
            parts = m.items(kind.parts)
            images = [p["spec"]["template"]["spec"]["containers"][0]["image"] for p in parts]
            assert len(images) == len(set(images)), (n, images)  # Nothing was made twice.
            assert {p["spec"]["replicas"] for p, i in zip(parts, images) if i != f"web:{n}"} <= {0}, n
            killed += early
            if not early:
                break
        assert killed and not early  # There was a kill after each write.
        assert c.most <= REPLICAS + SURGE
    finally:
        c.close()
