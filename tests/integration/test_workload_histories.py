# SPDX-License-Identifier: Apache-2.0
"""Random histories of a Deployment, a StatefulSet and a DeploymentConfig, whose rollouts the controllers do: they are scaled and
changed, a quota refuses pods in the middle, pods and nodes die, masters are killed and paused.  Whatever one list shows, it keeps
the bounds of the rollout; and in the end all is as desired.

TENET_HISTORIES=N makes N rounds; TENET_SEED repeats a history.
"""
import os
import random
import time

from ha import Etcd, Gone, Master, namespace
from lab import wait_for
from playkubelet import PlayKubelet
from test_scheduler import kubelet_node

APPS, PODS = "/apis/apps/v1/namespaces/default/", "/api/v1/namespaces/default/pods"
CONFIGS = "/apis/apps.openshift.io/v1/namespaces/default/deploymentconfigs"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
QUOTA = "/api/v1/namespaces/default/resourcequotas/pods"
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
ROUNDS = int(os.environ.get("TENET_HISTORIES", 5))
SURGE, UNAVAILABLE = 2, 1


def template(app, image):
    tolerations = [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute"} for k in ("not-ready", "unreachable")]
    return {"metadata": {"labels": {"app": app}},
            "spec": {"terminationGracePeriodSeconds": 0, "tolerations": tolerations, "containers": [{"name": "c", "image": image}]}}


class World:
    def __init__(self, tmp, rng):
        self.rng, self.broken_by_us = rng, False
        self.etcd = Etcd(tmp)
        self.masters = [Master(tmp, f"tenet{i}", self.etcd, ttl=3, kubernetesMasterConfig={"deployInProcess": True}) for i in range(2)]
        for m in self.masters:
            m.wait_ready()
        for i in range(3):
            self.add_node(f"n{i}")
        self.want("POST", "/api/v1/namespaces", namespace("kube-node-lease"))
        self.want("POST", QUOTA.rpartition("/")[0], self.quota(1000))
        self.replicas, self.image, self.version = 5, "web:0", 0
        self.want("POST", APPS + "deployments", {"metadata": {"name": "web"}, "spec": {
            "replicas": self.replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web", self.image),
            "strategy": {"rollingUpdate": {"maxSurge": SURGE, "maxUnavailable": UNAVAILABLE}}}})
        self.want("POST", APPS + "statefulsets", {"metadata": {"name": "db"}, "spec": {
            "replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db", self.image)}})
        self.want("POST", CONFIGS, {"metadata": {"name": "dc"}, "spec": {"replicas": 2, "template": template("dc", self.image), "strategy": {
            "type": "Rolling", "rollingParams": {"timeoutSeconds": 600}}}})
        self.begin_round()
        self.kubelet = PlayKubelet(self.call)

    def close(self):
        if hasattr(self, "kubelet"):
            self.kubelet.stop()
        for m in self.masters:
            m.kill()
        self.etcd.close()

    def call(self, method, path, body=None, headers=None):
        for m in self.masters:
            try:
                if m.proc and not m.stopped:
                    status, answer = m.call(method, path, body, headers=headers)
                    return answer if status < 300 else None
            except Gone:
                pass
        return None

    def want(self, *args):
        """The request's answer, when one is given; the objects of a history have names, so that none is made twice."""
        return wait_for(f"{args[0]} {args[1]}", lambda: self.call(*args))

    def add_node(self, name):
        n = kubelet_node(name)
        self.want("POST", "/api/v1/nodes", n)
        self.want("PATCH", f"/api/v1/nodes/{name}/status", {"status": n["status"]}, STRATEGIC)

    # ---- what happens ----

    def begin_round(self):
        self.most, self.least, self.killed = self.replicas, self.replicas, False

    def scale(self):
        self.replicas = self.rng.randint(2, 8)
        self.most, self.least = max(self.most, self.replicas), min(self.least, self.replicas)
        self.want("PATCH", APPS + "deployments/web", {"spec": {"replicas": self.replicas}}, MERGE)

    def change(self):
        self.version += 1
        self.image = f"web:{self.version}"
        if self.rng.random() < 0.3:  # One that never becomes ready, before the good one.
            self.apply(f"broken:{self.version}")
            self.watch_for(0.5)
        self.apply(self.image)

    def apply(self, image):
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
        self.want("PATCH", APPS + "deployments/web", patch, STRATEGIC)
        if not image.startswith("broken"):
            self.want("PATCH", APPS + "statefulsets/db", patch, STRATEGIC)
            self.want("PATCH", CONFIGS + "/dc", patch, STRATEGIC)

    def refuse(self):
        """A change while a quota gives no room, and masters that die meanwhile; then there is room."""
        pods = len(self.want("GET", PODS)["items"])
        self.want("PUT", QUOTA, self.quota(pods + self.rng.randint(0, 1)))
        self.change()
        for _ in range(self.rng.randint(0, 2)):
            self.kill_master()
        self.watch_for(self.rng.choice((0, 0.5, 2)))
        self.want("PUT", QUOTA, self.quota(1000))

    @staticmethod
    def quota(pods):
        return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"}, "spec": {"hard": {"count/pods": str(pods)}}}

    def kill_pod(self):
        self.killed = True
        pods = self.want("GET", PODS)["items"]
        if pods:
            name = self.rng.choice(pods)["metadata"]["name"]
            if self.rng.random() < 0.5:
                self.call("DELETE", f"{PODS}/{name}")
            else:
                self.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Failed"}}, MERGE)

    def kill_node(self):
        self.killed = True
        name = f"n{self.rng.randrange(3)}"
        self.call("DELETE", f"/api/v1/nodes/{name}")
        self.watch_for(0.3)
        self.add_node(name)

    def kill_master(self):
        m = self.rng.choice(self.masters)
        m.kill()
        self.watch_for(self.rng.choice((0, 0.5, 4)))  # 4 s: the other one leads.
        m.start()

    def pause_master(self):
        m = self.rng.choice(self.masters)
        m.pause(True)
        try:
            self.watch_for(self.rng.choice((0.5, 4)))
        finally:
            m.pause(False)

    # ---- what must hold ----

    def look(self):
        """Judges one list of pods: (pods of the Deployment, of the StatefulSet) that are not going."""
        answer = self.call("GET", PODS)
        if answer is None:
            return None
        living = [p for p in answer["items"] if not p["metadata"].get("deletionTimestamp")
                  and p.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
        web, db, dc = ([p for p in living if p["metadata"]["labels"]["app"] == app] for app in ("web", "db", "dc"))
        ready = [p for p in web if any(c["type"] == "Ready" and c["status"] == "True" for c in p.get("status", {}).get("conditions", []))]
        for p in answer["items"]:
            controllers = [o for o in p["metadata"].get("ownerReferences", []) if o.get("controller")]
            assert len(controllers) == 1, p["metadata"]
        assert len(web) <= self.most + SURGE, f"{len(web)} pods of at most {self.most} and {SURGE}"
        if self.settled_once and not self.killed:
            assert len(ready) >= self.least - UNAVAILABLE, f"{len(ready)} ready of at least {self.least} less {UNAVAILABLE}"
        names = [p["metadata"]["name"] for p in db]
        assert len(names) == len(set(names)) and set(names) <= {f"db-{i}" for i in range(3)}, names
        # A fourth of two pods, rounded up, may come before others go; an older rollout that is cancelled may have as many.
        assert len(dc) <= 6, [p["metadata"]["name"] for p in dc]
        return web, db, dc, ready

    settled_once = False

    def watch_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.02)

    def settled(self):
        seen = self.look()
        if seen is None:
            return False
        web, db, dc, ready = seen
        images = [p["spec"]["containers"][0]["image"] for p in web + db + dc]
        return len(ready) == len(web) == self.replicas and len(db) == 3 and len(dc) == 2 and set(images) == {self.image}

    def left(self):
        """What should not be there.  Sets without pods are history; every pod belongs to a set that exists, and the sets to the
        Deployment.  Failed pods of a ReplicaSet stay until there are many, as in Kubernetes."""
        sets, deployment = self.want("GET", APPS + "replicasets")["items"], self.want("GET", APPS + "deployments/web")
        uids = {s["metadata"]["uid"] for s in sets} | {self.want("GET", APPS + "statefulsets/db")["metadata"]["uid"]}
        controllers, config = self.want("GET", CONTROLLERS)["items"], self.want("GET", CONFIGS + "/dc")
        uids |= {c["metadata"]["uid"] for c in controllers}
        pods = self.want("GET", PODS)["items"]
        sizes = {c["metadata"]["name"]: c["spec"]["replicas"] for c in controllers}
        latest = f"dc-{config['status']['latestVersion']}"
        wrong = [f"{s['metadata']['name']} is of {s['metadata']['ownerReferences']}" for s in sets
                 if s["metadata"]["ownerReferences"][0]["uid"] != deployment["metadata"]["uid"]]
        wrong += [f"{p['metadata']['name']} has no owner" for p in pods if p["metadata"]["ownerReferences"][0]["uid"] not in uids]
        if {name for name, n in sizes.items() if n} != {latest} or sizes[latest] != 2:
            wrong.append(f"the controllers want {sizes}, and the latest is {latest}")
        if sum(s["spec"]["replicas"] for s in sets) != self.replicas:
            wrong.append(f"the sets want {[(s['metadata']['name'], s['spec']['replicas']) for s in sets]}, not {self.replicas}")
        living = [p["metadata"]["name"] for p in pods if p.get("status", {}).get("phase") != "Failed"]
        if len(living) != self.replicas + 3 + 2:
            wrong.append(f"pods: {living}")
        return wrong


def test_histories_keep_the_bounds_and_end_as_desired(tmp_path):
    seed = int(os.environ.get("TENET_SEED", random.randrange(1 << 32)))
    print(f"TENET_SEED={seed}")
    world = None
    try:
        world = World(tmp_path, random.Random(seed))
        wait_for("the first pods", world.settled, 60)
        for _ in range(ROUNDS):
            world.settled_once = True
            world.begin_round()
            gentle, rough = [world.scale, world.change, world.refuse, world.kill_master, world.pause_master], [world.kill_pod, world.kill_node]
            for _ in range(world.rng.randint(2, 4)):
                world.rng.choice(gentle if world.rng.random() < 0.7 else gentle + rough)()
                world.watch_for(world.rng.choice((0, 0.1, 0.5)))
            wait_for("the end of the round", world.settled, 120)
            try:
                wait_for("nothing to be left", lambda: not world.left(), 60)
            except AssertionError as e:
                raise AssertionError(f"{e}: {world.left()}") from e
    except AssertionError as e:
        raise AssertionError(f"TENET_SEED={seed}: {e}") from e
    finally:
        if world:
            world.close()
