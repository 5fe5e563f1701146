# SPDX-License-Identifier: Apache-2.0
"""A thread that plays the kubelets of a cluster without nodes: it writes the status that the pods' images ask for.

An image named "broken" never becomes ready, "done" succeeds, "fail" fails (its exit code is in the tag); all others become ready.
Pods in deletion are removed.
"""
import threading
import time


class PlayKubelet:
    def __init__(self, call):
        """'call(method, path, body, headers)' makes a request as an administrator and returns the decoded answer or None."""
        self.call, self.stopping = call, threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join(30)
        assert not self.error, self.error

    def run(self):
        try:
            while not self.stopping.wait(0.05):
                for p in (self.call("GET", "/api/v1/pods") or {"items": []})["items"]:
                    self.act(p)
        except Exception as e:  # shown by stop(), in the test's thread
            self.error = e

    def act(self, p):
        meta = p["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        phase = p.get("status", {}).get("phase")
        if meta.get("deletionTimestamp") and phase in ("Succeeded", "Failed", "Pending", "Running"):
            if phase in ("Pending", "Running") and meta.get("finalizers"):
                self.write(path, {"phase": "Failed"})
            self.call("DELETE", path + "?gracePeriodSeconds=0")
        elif phase == "Pending":
            self.write(path, self.status(p["spec"]["containers"][0]))

    def write(self, path, status):
        self.call("PATCH", path + "/status", {"status": status}, {"Content-Type": "application/strategic-merge-patch+json"})

    @staticmethod
    def status(container):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        name, _, tag = container["image"].partition(":")
        ended = {"done": "Succeeded", "fail": "Failed"}.get(name)
        ready = not ended and name != "broken"
        state = {"terminated": {"exitCode": int(tag or 1) if name == "fail" else 0, "finishedAt": now}} if ended \
            else {"running": {"startedAt": now}}
        return {"phase": ended or "Running", "startTime": now,
                "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": now}],
                "containerStatuses": [{"name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
                                       "restartCount": 0, "state": state}]}
