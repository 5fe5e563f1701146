#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cold start of tenet router: neither it nor HAProxy runs, and its folder is empty.  Each of 2,000 routes, half of them
edge, has a service with one endpoint at an API server without controllers, which the build has with -Dtests=true.

  cold, ready    from the start of the process to 200 from /healthz/ready, in steps of 50 ms; all routes must answer then

usage: router.py [--build build] [--routes 2000] [--rounds 5]
"""
import argparse
import http.client
import os
import pathlib
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent


def unanswered(router, n):
    """Hosts of which the endpoint does not answer; one connection for each protocol."""
    context = ssl._create_unverified_context()
    kinds = (http.client.HTTPConnection("127.0.0.1", router.http, timeout=10),
             http.client.HTTPSConnection("127.0.0.1", router.https, timeout=10, context=context))
    missing = []
    for i in range(n):
        c = kinds[i % 2]
        c.request("GET", "/", headers={"Host": f"r{i}.example.com"})
        answer = c.getresponse()
        answer.read()
        if answer.status != 200:
            missing.append(i)
    for c in kinds:
        c.close()
    return missing


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("--routes", type=int, default=2000)
    p.add_argument("--rounds", type=int, default=5)
    args = p.parse_args()
    os.environ["TENET_BUILD"] = str(pathlib.Path(args.build).resolve())
    sys.path.insert(0, str(ROOT / "tests/integration"))
    import routers

    class Cold(routers.Router):
        def start(self):
            self.began = time.monotonic()
            super().start()

        def stat(self, path):  # a program for each question would take longer than what is measured
            c = http.client.HTTPConnection("127.0.0.1", self.stats, timeout=5)
            try:
                c.request("GET", path)
                answer = c.getresponse()
                body = answer.read().decode()
                if answer.status == 200 and path == "/healthz/ready":
                    self.ready = time.monotonic()
                return answer.status, body
            except OSError:
                return 0, ""
            finally:
                c.close()

    routers.Router = Cold
    times = []
    with routers.own_network(), tempfile.TemporaryDirectory(prefix="tenet-bench-") as folder:
        cluster = routers.Cluster(pathlib.Path(folder))
        try:
            at = cluster.endpoint("a")
            for i in range(args.routes):
                cluster.service(f"s{i}", at)
                cluster.route(f"r{i}", f"r{i}.example.com", f"s{i}", **({"tls": {"termination": "edge"}} if i % 2 else {}))
            for i in range(args.rounds):
                r = cluster.router(name=f"cold{i}")
                missing = unanswered(r, args.routes)
                if missing:
                    sys.exit(f"{len(missing)} routes were not served when the router was ready: {missing[:5]}")
                times.append((r.ready - r.began) * 1000)
                print(f"round {i + 1}: {times[-1]:.0f} ms, {r.metric('tenet_router_reloads_total'):.0f} reloads", flush=True)
                r.stop()
        finally:
            cluster.end()
    print(f"{args.routes} routes, cold: median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms")
    result("cold, ready", statistics.median(times), "ms")
    result("cold, ready, slowest", max(times), "ms")


if __name__ == "__main__":
    main()
