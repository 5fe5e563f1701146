# SPDX-License-Identifier: Apache-2.0
"""A master alone with the embedded store on loopback, for benchmarks of its controllers: clients, watches, its memory."""
import contextlib
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

MERGE = "application/merge-patch+json"


class Client:
    """One connection."""

    def __init__(self, port):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method, path, body=None, ctype="application/json"):
        self.http.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": ctype})
        r = self.http.getresponse()
        text = r.read()
        if r.status >= 300:
            sys.exit(f"{method} {path}: {r.status} {text.decode()}")
        return json.loads(text)


class Watch(threading.Thread):
    """Notes when each object was first seen in a state that 'state' tells: a list of keys for an object."""

    def __init__(self, port, path, state):
        super().__init__(daemon=True)
        self.state, self.seen, self.cond = state, {}, threading.Condition()
        version = Client(port).call("GET", path + "?limit=1")["metadata"]["resourceVersion"]
        self.http = http.client.HTTPConnection("127.0.0.1", port)
        self.http.request("GET", f"{path}?watch=1&resourceVersion={version}")
        self.stream = self.http.getresponse()
        self.start()

    def run(self):
        for line in self.stream:
            now, obj = time.monotonic(), json.loads(line)["object"]
            for key in self.state(obj):
                with self.cond:
                    self.seen.setdefault(key, now)
                    self.cond.notify_all()

    def wait(self, key, seconds=60):
        """When the key was first seen."""
        with self.cond:
            if not self.cond.wait_for(lambda: key in self.seen, seconds):
                sys.exit(f"never seen: {key}")
            return self.seen[key]

    def wait_count(self, count, seconds=300):
        """When the last of 'count' keys was first seen."""
        with self.cond:
            if not self.cond.wait_for(lambda: len(self.seen) >= count, seconds):
                sys.exit(f"seen {len(self.seen)} of {count}")
            return max(self.seen.values())


def quantile(values, q):
    """In milliseconds, of values in seconds."""
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] * 1000


class Master:
    def __init__(self, folder, build, **config):
        self.folder, self.build = pathlib.Path(folder), build
        self.conf = self.folder / "master.yaml"
        self.conf.write_text(json.dumps({"servingInfo": {"bindAddress": "127.0.0.1:0"},
                                         "storage": {"backend": "sqlite", "path": f"{folder}/registry.db"}, **config}))
        self.start()

    def start(self):
        log = self.folder / "log"
        with open(log, "w") as f:
            self.process = subprocess.Popen([f"{self.build}/src/cli/tenet", "master", "--config", self.conf], stderr=f)
        while " ready" not in (text := log.read_text()):
            if self.process.poll() is not None:
                sys.exit(text)
            time.sleep(0.005)
        self.port = int(re.search(r"address=127\.0\.0\.1:(\d+)", text)[1])

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def private_mib(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.M)) / 1024


@contextlib.contextmanager
def master(build, **config):
    """Runs a master until the block ends, also by SIGTERM; 'config': more of its configuration."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory(prefix="tenet-bench-") as tmp:
        m = Master(tmp, build, **config)
        try:
            yield m
        finally:
            m.kill()
