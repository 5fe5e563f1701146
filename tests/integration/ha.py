# SPDX-License-Identifier: Apache-2.0
"""What the tests of several masters share: an etcd cluster and masters on it, on loopback, that can be killed and come
back; and a history of what clients were told, for lincheck."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import lab as lablib
from lab import TENET, wait_for

TENET_PATH = str(pathlib.Path(TENET).resolve())
LINCHECK = pathlib.Path(TENET_PATH).parent.parent.parent / "tests" / "unit" / "lincheck"
NET = "/apis/network.openshift.io/v1/"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
THE_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/tenet-controllers"


def free_ports(n):
    socks = [socket.socket() for _ in range(n)]
    for s in socks:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in socks]
    for s in socks:
        s.close()
    return ports


class Etcd:
    """A cluster of 'n' members, each on ports of its own."""

    def __init__(self, tmp, n=1, tls=None, extra=()):
        self.dir, self.n, self.tls, self.extra = pathlib.Path(tmp), n, tls, list(extra)
        ports = free_ports(2 * n)
        self.client, self.peer = ports[:n], ports[n:]
        self.scheme = "https" if tls else "http"
        self.procs = [None] * n
        for i in range(n):
            self.start(i)
        self.wait_healthy()

    @property
    def endpoints(self):
        return ",".join(f"{self.scheme}://127.0.0.1:{p}" for p in self.client)

    def start(self, i, *more):
        peers = [f"http://127.0.0.1:{p}" for p in self.peer]
        url = f"{self.scheme}://127.0.0.1:{self.client[i]}"
        argv = ["etcd", "--name", f"m{i}", "--data-dir", self.dir / f"m{i}", "--listen-client-urls", url,
                "--advertise-client-urls", url, "--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
                "--initial-cluster", ",".join(f"m{j}={p}" for j, p in enumerate(peers)),
                "--initial-cluster-token", str(self.dir), *self.extra, *more]
        if self.tls:
            argv += ["--cert-file", self.tls / "etcd.crt", "--key-file", self.tls / "etcd.key",
                     "--trusted-ca-file", self.tls / "ca.crt", "--client-cert-auth"]
        log = open(self.dir / f"m{i}.log", "a")
        self.procs[i] = subprocess.Popen(argv, stdout=log, stderr=log)
        log.close()

    def kill(self, i, sig=signal.SIGKILL):
        if self.procs[i]:
            self.procs[i].send_signal(sig)
            self.procs[i].wait(timeout=30)
            self.procs[i] = None

    @contextlib.contextmanager
    def stopped(self, i):
        """The member hangs: its connections stay open, and it answers nothing."""
        self.procs[i].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.procs[i].send_signal(signal.SIGCONT)

    def alive(self):
        return [i for i in range(self.n) if self.procs[i]]

    def ctl(self, *args, check=True, endpoints=None, timeout=60):
        env = dict(os.environ, ETCDCTL_API="3")
        argv = ["etcdctl", f"--endpoints={endpoints or self.endpoints}", *args]
        if self.tls:
            argv += ["--cacert", self.tls / "ca.crt", "--cert", self.tls / "client.crt", "--key", self.tls / "client.key"]
        r = subprocess.run([str(a) for a in argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=timeout)
        assert not check or r.returncode == 0, r.stdout
        return r

    def wait_healthy(self):
        wait_for("etcd", lambda: self.ctl("endpoint", "health", check=False).returncode == 0)

    def close(self):
        for i in range(self.n):
            self.kill(i)


class Gone(Exception):
    """No answer: whether the request was carried out is not known."""


class Master:
    def __init__(self, tmp, name, etcd, ttl=4, wrap=(), **conf):
        self.dir, self.name = pathlib.Path(tmp) / name, name
        self.dir.mkdir()
        self.port = free_ports(1)[0]
        self.conf = {"networkConfig": {"networkPluginName": "redhat/openshift-ovs-multitenant"},
                     "servingInfo": {"bindAddress": f"127.0.0.1:{self.port}"},
                     "storage": {"backend": "etcd", "endpoints": etcd.endpoints}, "controllerLeaseTTL": ttl, **conf}
        self.proc, self.stopped, self.wrap = None, False, list(wrap)
        self.start(wait=False)

    def start(self, wait=True):
        (self.dir / "master.yaml").write_text(json.dumps(self.conf))
        log = open(self.dir / "log", "a")
        self.proc = subprocess.Popen([*self.wrap, TENET, "master", "--config", self.dir / "master.yaml"], stderr=log, stdout=log,
                                     env=lablib.environment())
        log.close()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self):
        wait_for(f"{self.name} to be ready", self.ready)

    def ready(self):
        assert self.proc.poll() is None, self.text()
        try:
            return self.call("GET", "/readyz")[0] == 200
        except Gone:
            return False

    def text(self):
        return (self.dir / "log").read_text()

    def pause(self, on):
        self.proc.send_signal(signal.SIGSTOP if on else signal.SIGCONT)
        self.stopped = on

    def kill(self, sig=signal.SIGKILL):
        if self.proc and self.proc.poll() is None:
            self.proc.send_signal(sig)
            self.proc.wait(timeout=30)
        code = self.proc.returncode if self.proc else None
        self.proc, self.stopped = None, False
        return code

    def raw(self, method, path, body=None, timeout=15, headers=None):
        """Status, headers and decoded body."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path, json.dumps(body) if body is not None else None,
                      {"Content-Type": "application/json", **(headers or {})})
            r = c.getresponse()
            text = r.read().decode()
            return r.status, r.headers, json.loads(text) if text.startswith("{") else text
        except (OSError, http.client.HTTPException) as e:
            raise Gone(str(e)) from e
        finally:
            c.close()

    def call(self, method, path, body=None, **kw):
        status, _, body = self.raw(method, path, body, **kw)
        return status, body

    def items(self, path):
        status, body = self.call("GET", path)
        assert status == 200, body
        return body["items"]

    def subnets(self):
        return {s["host"]: s["subnet"] for s in self.items(NET + "hostsubnets")}

    def netids(self):
        return {n["netname"]: n["netid"] for n in self.items(NET + "netnamespaces")}

    def holder(self):
        return self.call("GET", THE_LEASE)[1].get("spec", {}).get("holderIdentity")

    def leads(self):
        lines = [line for line in self.text().splitlines() if " leader: " in line]
        return bool(lines) and "leader: leading " in lines[-1]


class PlainMaster(Master):
    """A master on SQLite."""

    def __init__(self, tmp, name="master", path=None, wrap=(), network=(), **more):
        self.path = pathlib.Path(path or pathlib.Path(tmp) / f"{name}.db")
        self.endpoints = ""
        super().__init__(tmp, name, self, storage={"backend": "sqlite", "path": str(self.path)}, wrap=wrap,
                         networkConfig={"networkPluginName": "redhat/openshift-ovs-multitenant", **dict(network)}, **more)
        self.wait_ready()


class KilledAfter:
    """Counts the writes of the collections 'paths', and kills the master after 'limit' of them."""

    def __init__(self, master, paths, limit):
        self.master, self.limit, self.n = master, limit, 0
        self.lock, self.reached = threading.Lock(), threading.Event()
        self.threads = []
        for path in paths:
            version = master.call("GET", path)[1]["metadata"]["resourceVersion"]
            c = http.client.HTTPConnection("127.0.0.1", master.port, timeout=60)
            c.request("GET", f"{path}?watch=true&resourceVersion={version}")
            t = threading.Thread(target=self.read, args=(c, c.getresponse()), daemon=True)
            self.threads.append(t)
            t.start()

    def read(self, connection, response):
        try:
            while response.readline():
                with self.lock:
                    self.n += 1
                    if self.n == self.limit:
                        self.master.proc.kill()
                        self.reached.set()
        except (OSError, http.client.HTTPException):
            pass  # The master is dead.
        finally:
            connection.close()

    def close(self):
        for t in self.threads:
            t.join(30)
            assert not t.is_alive()


def node(name, ip):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"addresses": [{"type": "InternalIP", "address": ip}]}}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def register(key, value):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": key, "namespace": "default"},
            "spec": {"holderIdentity": str(value)}}


class History:
    """What clients did to registers, which are leases, and what they were told."""

    def __init__(self):
        self.lock, self.lines, self.next = threading.Lock(), [], 1
        self.acknowledged = {}  # resourceVersion: (key, value)
        self.seen = {}          # (key, resourceVersion): value, of all answers

    def value(self):
        with self.lock:
            self.next += 1
            return self.next

    def add(self, key, begin, end, kind, old, new, done):
        with self.lock:
            self.lines.append(f"{key} {begin} {end if end is not None else '-'} {kind} {old} {new} {int(done)}")

    def acknowledge(self, obj):
        meta, value = obj["metadata"], int(obj["spec"]["holderIdentity"])
        with self.lock:
            self.acknowledged[int(meta["resourceVersion"])] = (meta["name"], value)

    def check(self, tmp):
        path = pathlib.Path(tmp) / "history"
        path.write_text("\n".join(self.lines) + "\n")
        with open(path) as f:
            r = subprocess.run([LINCHECK], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert r.returncode == 0, r.stdout
        return len(self.lines)


class Load:
    """Clients and watches at work on some registers of 'masters', and the checks of all they were told."""

    KEYS = [f"r{i}" for i in range(6)]

    def __init__(self, masters, seed, n_clients=6, n_watchers=3):
        self.masters, self.history = masters, History()
        for k in self.KEYS:
            begin = time.monotonic_ns()
            status, obj = masters[0].call("POST", LEASES, register(k, self.history.value()))
            assert status == 201, obj
            self.history.add(k, begin, time.monotonic_ns(), "swap", 0, obj["spec"]["holderIdentity"], 1)
            self.history.acknowledge(obj)
        self.start = int(masters[0].call("GET", LEASES)[1]["metadata"]["resourceVersion"])
        self.watchers = [Watcher(masters, self.start, seed + i) for i in range(n_watchers)]
        self.clients = [Client(self.history, masters, self.KEYS, seed + i) for i in range(n_clients)]
        for t in (*self.watchers, *self.clients):
            t.start()

    def finish(self, tmp, faults):
        """Stops it, when the masters are ready; 'faults' goes with what is found wrong."""
        for c in self.clients:
            c.stop.set()
        for c in self.clients:
            c.join(60)
            assert not c.is_alive()
        assert not [c.error for c in self.clients if c.error], faults
        # The last state is the same at all masters, and is what the last acknowledged writes say.
        states = [{o["metadata"]["name"]: (int(o["metadata"]["resourceVersion"]), int(o["spec"]["holderIdentity"]))
                   for o in m.items(LEASES) if o["metadata"]["name"] in self.KEYS} for m in self.masters]
        assert all(s == states[0] for s in states)
        acknowledged = self.history.acknowledged
        for rv, (key, value) in acknowledged.items():
            assert states[0][key][0] > rv or states[0][key] == (rv, value), (key, rv, value, states[0], faults)
        begin = time.monotonic_ns()
        for key, (_, value) in states[0].items():
            self.history.add(key, begin, time.monotonic_ns(), "read", 0, value, 1)
        n = self.history.check(tmp)
        # Every watch saw every acknowledged change, once and in order, and the same as the others.
        last = max(rv for rv, _ in states[0].values())
        for w in self.watchers:
            wait_for("the watches to come to the end", lambda w=w: w.error or (w.events and w.events[-1][0] >= last))
            w.stop.set()
        for w in self.watchers:
            w.join(60)
            assert not w.error, (w.error, faults)
            assert w.events == self.watchers[0].events
        seen = {rv: (key, value) for rv, key, value in self.watchers[0].events}
        missing = {rv: x for rv, x in acknowledged.items() if rv > self.start and seen.get(rv) != x}
        assert not missing, (missing, faults)
        return n


class Client(threading.Thread):
    """Reads, writes and swaps registers at whichever master, until told to stop."""

    def __init__(self, history, masters, keys, seed):
        super().__init__(daemon=True)
        self.h, self.masters, self.keys, self.random = history, masters, keys, random.Random(seed)
        self.stop, self.error, self.done = threading.Event(), None, 0

    def run(self):
        try:
            while not self.stop.is_set():
                self.one()
                self.stop.wait(self.random.random() * 0.02)
        except Exception as e:  # told by the test
            self.error = e

    def one(self):
        key, master = self.random.choice(self.keys), self.random.choice(self.masters)
        path, what = f"{LEASES}/{key}", self.random.randrange(3)
        begin = time.monotonic_ns()
        try:
            status, headers, obj = master.raw("GET", path)
        except Gone:
            return
        if status != 200 or headers.get("Warning"):
            return
        self.done += 1
        old, version = int(obj["spec"]["holderIdentity"]), obj["metadata"]["resourceVersion"]
        self.h.add(key, begin, time.monotonic_ns(), "read", 0, old, 1)
        if what == 0:
            return
        new = self.h.value()
        body = register(key, new)
        if what == 2:
            kind, method, content = "swap", "PUT", "application/json"
            body["metadata"]["resourceVersion"] = version
        else:  # A PUT of a Lease needs the version; a patch writes whatever is there.
            kind, method, content = "write", "PATCH", "application/merge-patch+json"
        begin = time.monotonic_ns()
        try:
            status, _, obj = self.random.choice(self.masters).raw(method, path, body, headers={"Content-Type": content})
        except Gone:
            status, obj = None, None
        if status == 200:
            self.h.add(key, begin, time.monotonic_ns(), kind, old if what == 2 else 0, new, 1)
            self.h.acknowledge(obj)
            self.done += 1
        elif status == 409:
            if what == 2:
                self.h.add(key, begin, time.monotonic_ns(), kind, old, new, 0)
        else:
            assert status in (None, 500, 503, 504, 429), (status, obj)
            self.h.add(key, begin, None, kind, old if what == 2 else 0, new, 0)


class Watcher(threading.Thread):
    """One watch of the registers, resumed at whichever master when it breaks; each change must come once and in order."""

    def __init__(self, masters, version, seed):
        super().__init__(daemon=True)
        self.masters, self.version, self.random = masters, int(version), random.Random(seed)
        self.stop, self.error, self.events, self.relists = threading.Event(), None, [], 0

    def run(self):
        try:
            while not self.stop.is_set():
                self.watch(self.random.choice(self.masters))
                self.stop.wait(0.05)
        except Exception as e:  # told by the test
            self.error = e

    def watch(self, master, quiet=8):
        """One watch, until it ends, breaks, or is without a word for 'quiet' seconds."""
        query = urllib.parse.urlencode({"watch": 1, "resourceVersion": self.version, "allowWatchBookmarks": "true",
                                        "timeoutSeconds": self.random.randrange(2, 6)})
        c = http.client.HTTPConnection("127.0.0.1", master.port, timeout=quiet)
        try:
            c.request("GET", f"{LEASES}?{query}")
            r = c.getresponse()
            if r.status != 200:
                return
            for line in r:
                if not self.take(json.loads(line)):
                    return
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return  # it broke, perhaps within a line
        finally:
            c.close()

    def take(self, event):
        if event["type"] == "ERROR":
            raise AssertionError(f"watch from {self.version}: {event['object']}")
        version = int(event["object"]["metadata"]["resourceVersion"])
        if event["type"] == "BOOKMARK":
            assert version >= self.version, (version, self.version)
        else:
            assert version > self.version, (event, self.version)
            self.events.append((version, event["object"]["metadata"]["name"],
                                int(event["object"]["spec"]["holderIdentity"])))
        self.version = version
        return True
