# SPDX-License-Identifier: Apache-2.0
"""Traffic that notices: numbered datagrams, a thousand and more a second, and TCP connections that stay open.

Senders and receivers are processes in the pods' namespaces.  A test starts them, does what must not disturb
them, and asks at the end what was lost.  Every datagram is sent back, so both directions are looked at, and
only so many are under way that no queue of a switch overflows which the machine gives no time: a busy machine
makes it slower, and is not mistaken for a lost packet."""
import json
import threading

WINDOW = 64  # datagrams under way; what Open vSwitch reads from has room for some hundred

RECEIVER = """
import json, signal, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
except OSError:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
s.bind(("0.0.0.0", int(sys.argv[1])))
seen = set()
last = None
gap = 0.0
stop = False
def end(*a):
    global stop
    stop = True
signal.signal(signal.SIGTERM, end)
s.settimeout(0.2)
print("ready", flush=True)
while True:
    try:
        data, peer = s.recvfrom(256)
        s.sendto(data, peer)
    except socket.timeout:
        if stop:
            break
        continue
    now = time.monotonic()
    seen.add(int(data))
    if last is not None and now - last > gap:
        gap = now - last
    last = now
print(json.dumps({"received": len(seen), "highest": max(seen, default=-1), "gap_ms": gap * 1000,
                  "missing": sorted(set(range(max(seen, default=-1) + 1)) - seen)[:20]}), flush=True)
"""

SENDER = """
import json, signal, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
target, rate, window = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])
stop = False
def end(*a):
    global stop
    stop = True
signal.signal(signal.SIGTERM, end)
sent, under_way, lost = 0, set(), 0
start = heard = time.monotonic()
print("ready", flush=True)
while not stop or (under_way and window):
    now = time.monotonic()
    due = int((now - start) * rate)
    if not stop and sent < due and not (window and len(under_way) >= window):
        # What the machine kept us from sending is sent bit by bit: a burst would overflow somebody's queue.
        for i in range(min(due - sent, 8)):
            try:
                s.sendto(b"%d" % sent, target)
            except BlockingIOError:
                break  # the queue of the pod's own link is full
            except OSError:
                pass  # what could not even leave is lost
            under_way.add(sent)
            sent += 1
        if not window:
            under_way.clear()
    try:
        while True:
            under_way.discard(int(s.recv(256)))
            heard = now
    except BlockingIOError:
        pass
    except OSError:
        pass  # an ICMP error tells of one before
    if not under_way:
        heard = now
    elif now - heard > 5:  # far more than any queue holds
        lost += len(under_way)
        under_way.clear()
    time.sleep(0.001)
print(json.dumps({"sent": sent, "not_returned": lost, "seconds": time.monotonic() - start}), flush=True)
"""

ECHO = """
import socket, sys, threading
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", int(sys.argv[1])))
s.listen(16)
def serve(c):
    while True:
        data = c.recv(65536)
        if not data:
            return
        c.sendall(data)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""

TALKER = """
import signal, socket, sys, time
c = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
stop = False
def end(*a):
    global stop
    stop = True
signal.signal(signal.SIGTERM, end)
n = 0
print("ready", flush=True)
while not stop:
    line = b"%08d" % n
    c.sendall(line)
    back = b""
    while len(back) < len(line):
        part = c.recv(len(line) - len(back))
        if not part:
            print("closed after", n, flush=True)
            sys.exit(1)
        back += part
    if back != line:
        print("wrong answer", back, flush=True)
        sys.exit(1)
    n += 1
    time.sleep(0.005)
print(n, flush=True)
"""


def start(popen, code, *args):
    p = popen(["/usr/bin/python3", "-c", code, *map(str, args)])
    line = p.stdout.readline().strip()
    assert line == "ready", line + p.stdout.read()
    return p


def said(p, seconds=60):
    """The next line that it prints; "" when it says nothing for so long, and is killed."""
    timer = threading.Timer(seconds, p.kill)
    timer.start()
    try:
        return p.stdout.readline().strip()
    finally:
        timer.cancel()


def finish(p):
    p.terminate()
    out = p.communicate(timeout=60)[0].strip()
    return p.returncode, out


class Flow:
    """Datagrams from one pod to another.  stop() returns what became of them."""

    def __init__(self, source, target, port=7000, rate=1000):
        self.name = f"{source} to {target}"
        self.rate = rate
        self.receiver = start(target.popen, RECEIVER, port)
        self.sender = start(source.popen, SENDER, target.ip, port, rate, WINDOW)

    def stop(self):
        sender = json.loads(finish(self.sender)[1])
        receiver = json.loads(finish(self.receiver)[1])
        return {"name": self.name, "lost": sender["sent"] - receiver["received"], **sender, **receiver}

    def kill(self):
        for p in (self.sender, self.receiver):
            p.kill()
            p.communicate()


class Connection:
    """A TCP connection that says something all the time and wants it back."""

    def __init__(self, source, target, port=7100):
        self.name = f"{source} to {target}"
        self.server = start(target.popen, ECHO, port)
        self.client = start(source.popen, TALKER, target.ip, port)

    def assert_never_cut(self):
        code, out = finish(self.client)
        self.server.kill()
        self.server.communicate()
        assert code == 0 and int(out) > 0, f"{self.name}: {out}"

    def kill(self):
        for p in (self.client, self.server):
            p.kill()
            p.communicate()


class Traffic:
    """Both kinds between each of the pairs, all at the same time; nothing may be lost when the block ends."""

    def __init__(self, pairs, rate=1000):
        self.flows, self.connections = [], []
        try:
            for i, (a, b) in enumerate(pairs):
                # A userspace switch that has not met the next hop of a tunnel drops the first packet.
                assert a.can_ping(b.ip), (a, b)
                self.flows.append(Flow(a, b, 7000 + i, rate))
                self.connections.append(Connection(a, b, 7100 + i))
        except BaseException:
            self.kill()
            raise

    def kill(self):
        for x in self.flows + self.connections:
            x.kill()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()
            return
        results = [f.stop() for f in self.flows]
        for c in self.connections:
            c.assert_never_cut()
        assert all(r["sent"] > 0 for r in results), results
        assert not [r for r in results if r["lost"] or r["not_returned"]], results
        self.results = results
