#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time from the creation of a claim to Bound, as a watcher sees both, among many volumes.

Starts a master with the embedded store on loopback, and makes the volumes, each of another size, so that the search has
something to choose.  Then one claim after the other is created: a watch of claims reports when the claim and when its
phase Bound arrive, and the time from the request to Bound is the one of the goal.  The peer is one durable write of a
claim.  At last many claims come at once.

usage: claims.py [--build build] [--volumes 2000] [--claims 300] [--burst 1000]
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from endpoints import Client, Watch, quantile
from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def volume(i):
    return {"metadata": {"name": f"v{i}"}, "spec": {
        "capacity": {"storage": f"{1000 + i}Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": f"c{i % 4}",
        "nfs": {"server": "192.0.2.1", "path": f"/{i}"}}}


def claim(name, i):
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": f"c{i % 4}",
                                                 "resources": {"requests": {"storage": "1Gi"}}}}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--volumes", type=int, default=2000)
    ap.add_argument("--claims", type=int, default=300)
    ap.add_argument("--burst", type=int, default=1000)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenet-claims-") as tmp:
        conf, log = pathlib.Path(tmp) / "c", pathlib.Path(tmp) / "log"
        conf.write_text(json.dumps({"servingInfo": {"bindAddress": "127.0.0.1:0"},
                                    "storage": {"backend": "sqlite", "path": f"{tmp}/r.db"}}))
        proc = subprocess.Popen([f"{a.build}/src/cli/tenet", "master", "--config", conf], stderr=open(log, "w"))
        try:
            while " ready" not in (text := log.read_text()):
                if proc.poll() is not None:
                    sys.exit(text)
                time.sleep(0.02)
            run(a, int(re.search(r"address=127\.0\.0\.1:(\d+)", text)[1]))
        finally:
            proc.kill()


def run(a, port):
    local = threading.local()

    def create(path, body):
        if not hasattr(local, "c"):
            local.c = Client(port)
        sent = time.monotonic()
        local.c.call("POST", path, body)
        return sent, time.monotonic()

    volumes = Watch(port, "/api/v1/persistentvolumes", lambda o: [(o["metadata"]["name"], o["status"].get("phase"))])
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: create("/api/v1/persistentvolumes", volume(i)), range(a.volumes)))
    for i in range(a.volumes):
        volumes.wait((f"v{i}", "Available"))
    bound = Watch(port, CLAIMS, lambda o: [(o["metadata"]["name"], o["status"].get("phase"))])
    took, writes = [], []
    for i in range(a.claims):
        sent, answered = create(CLAIMS, claim(f"one{i}", i))
        took.append(bound.wait((f"one{i}", "Bound")) - sent)
        writes.append(answered - sent)
    n = min(a.burst, a.volumes - a.claims - 8)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: create(CLAIMS, claim(f"many{i}", i)), range(n)))
    made = time.monotonic() - begin
    whole = max(bound.wait((f"many{i}", "Bound")) for i in range(n)) - begin
    p50, p99, write = quantile(took, 0.5), quantile(took, 0.99), quantile(writes, 0.5)
    print(f"volumes={a.volumes} bound_p50_ms={p50:.2f} bound_p99_ms={p99:.2f} write_p50_ms={write:.2f}")
    print(f"burst={n} created_s={made:.2f} bound_s={whole:.2f}")
    result("claim created to Bound, p50", p50, "ms", "a write of the claim", write)
    result("claim created to Bound, p99", p99, "ms")
    result("claims bound a second, created at once", n / whole, "/s", "their creation", n / made)


if __name__ == "__main__":
    main()
