#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the master's memory for idle watches: five watches for each of 1,000 clients, as node agents have them.

HTTP/1.1 has one connection a watch, HTTP/2 one connection a client; plain and with TLS.  For each way it starts a master
on loopback, opens the watches, and reads the growth of the master's private memory.

usage: watches.py [--build build] [--clients 1000] [--watches 5]
"""
import argparse
import base64
import json
import pathlib
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time

from result import result

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ["namespaces", "nodes", "pods", "events", "namespaces"]


class Master:
    def __init__(self, build, tls):
        self.tmp = tempfile.TemporaryDirectory(prefix="tenet-watches-")
        self.dir = pathlib.Path(self.tmp.name)
        serving = {"bindAddress": "127.0.0.1:0", "tls": "off"}
        if tls:
            serving.update(tls="auto", pkiDir=str(self.dir / "pki"))
        (self.dir / "c").write_text(json.dumps({
            "servingInfo": serving, "storage": {"backend": "memory"},
            "limits": {"maxConnectionsPerClient": 1000000, "maxRequestsQueued": 1000000}}))
        self.proc = subprocess.Popen([f"{build}/src/cli/tenet", "master", "--config", self.dir / "c"],
                                     stderr=open(self.dir / "log", "w"))
        while " ready" not in (text := (self.dir / "log").read_text()):
            if self.proc.poll() is not None:
                sys.exit(text)
            time.sleep(0.02)
        self.port = int(re.search(r"address=127\.0\.0\.1:(\d+)", text)[1])
        self.context = self.as_administrator() if tls else None

    def as_administrator(self):
        config = (self.dir / "pki/admin.kubeconfig").read_text()
        pem = b"".join(base64.b64decode(re.search(rf"client-{what}-data: *\"?([^\s\"]+)", config)[1])
                       for what in ("certificate", "key"))
        (self.dir / "admin.pem").write_bytes(pem)
        context = ssl.create_default_context(cafile=str(self.dir / "pki/ca.crt"))
        context.load_cert_chain(str(self.dir / "admin.pem"))
        return context

    def private(self):
        text = pathlib.Path(f"/proc/{self.proc.pid}/smaps_rollup").read_text()
        return sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.M)) * 1024

    def stop(self):
        self.proc.kill()
        self.proc.wait()
        self.tmp.cleanup()


def open_h1(m, i, n, h2raw):
    made = []
    for k in range(n):
        s = socket.create_connection(("127.0.0.1", m.port))
        s = m.context.wrap_socket(s, server_hostname="127.0.0.1") if m.context else s
        s.sendall(f"GET /api/v1/{KINDS[k % 5]}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: h\r\n"
                  "Accept: application/json\r\nUser-Agent: tenet-node/bench\r\n\r\n".encode())
        assert b" 200 " in s.recv(65536)
        made.append(s)
    return made


def open_h2(m, i, n, h2raw):
    c = h2raw.connect(m.port, m.context)
    asked = [c.ask("GET", f"/api/v1/{KINDS[k % 5]}?watch=1&resourceVersion=1",
                   [("accept", "application/json"), ("user-agent", "tenet-node/bench")]) for k in range(n)]
    while not all(r.status for r in asked):
        c.read(1)
    assert all(r.status == 200 for r in asked)
    return [c]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default=str(ROOT / "build"))
    ap.add_argument("--clients", type=int, default=1000)
    ap.add_argument("--watches", type=int, default=5)
    args = ap.parse_args()
    sys.path.insert(0, str(ROOT / "tests/integration"))
    import h2raw
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"{args.clients} clients, {args.watches} watches each")
    print(f"{'':<16}{'MiB':>8}{'KiB a watch':>13}{'KiB a client':>14}")
    for name, tls, make in (("HTTP/1.1", False, open_h1), ("HTTP/2", False, open_h2),
                            ("HTTP/1.1 TLS", True, open_h1), ("HTTP/2 TLS", True, open_h2)):
        m = Master(args.build, tls)
        try:
            warm = make(m, 0, 1, h2raw)
            before = m.private()
            kept = [make(m, i, args.watches, h2raw) for i in range(args.clients)]
            time.sleep(1)
            grown = m.private() - before
            print(f"{name:<16}{grown / 2**20:>8.1f}{grown / 1024 / args.clients / args.watches:>13.2f}"
                  f"{grown / 1024 / args.clients:>14.2f}", flush=True)
            result(f"a client, {name}", grown / 1024 / args.clients, "KiB")
            result(f"a watch, {name}", grown / 1024 / args.clients / args.watches, "KiB")
            for x in [x for group in [warm, *kept] for x in group]:
                x.close()
        finally:
            m.stop()


if __name__ == "__main__":
    main()
