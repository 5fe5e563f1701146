# SPDX-License-Identifier: Apache-2.0
"""Runs in a pod: serves TCP, UDP and SCTP on two ports, and tries those of other pods when told to.

One JSON line in, one out.  {"go": [addresses], "want": n, "round": r} tries every port of every address until n of
the TCP and UDP tries were answered and a pause has passed in which nothing more was; the answer lists what was.
{"arrivals": r} tells which SCTP packets of that round came here: SCTP is spoken raw, as the kernel may have none.
"""
import json
import select
import socket
import struct
import sys
import time

PORTS = (80, 81)
PAUSE, AGAIN, LIMIT = 0.2, 0.2, 3.0

CRC = []
for i in range(256):
    c = i
    for _ in range(8):
        c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    CRC.append(c)


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = (c >> 8) ^ CRC[(c ^ b) & 0xFF]
    return c ^ 0xFFFFFFFF


def sctp_init(sport, dport, tag):
    """RFC 9260: common header and an INIT chunk."""
    chunk = struct.pack("!BBHIIHHI", 1, 0, 20, tag, 65536, 1, 1, tag)
    head = struct.pack("!HHI", sport, dport, 0)
    return head + struct.pack("<I", crc32c(head + b"\0\0\0\0" + chunk)) + chunk


class Prober:
    def __init__(self):
        self.poll = select.poll()
        self.tcp, self.udp = {}, {}
        for port in PORTS:
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("0.0.0.0", port))
            s.listen(256)
            self.add(self.tcp, s)
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind(("0.0.0.0", port))
            self.add(self.udp, s)
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)
        self.raw.setblocking(False)
        self.poll.register(self.raw, select.POLLIN)
        self.poll.register(0, select.POLLIN)
        self.arrived = set()
        self.sport = 20000 + 256 * int(sys.argv[1])

    def add(self, table, s):
        s.setblocking(False)
        table[s.fileno()] = s
        self.poll.register(s, select.POLLIN)

    def serve(self, fd):
        if fd in self.tcp:
            while True:
                try:
                    self.tcp[fd].accept()[0].close()
                except OSError:
                    return
        if fd in self.udp:
            try:
                data, peer = self.udp[fd].recvfrom(2048)
                self.udp[fd].sendto(data, peer)
            except OSError:
                pass
        if fd == self.raw.fileno():
            try:
                data, peer = self.raw.recvfrom(2048)
            except OSError:
                return
            at = (data[0] & 15) * 4
            port = struct.unpack("!H", data[at + 2:at + 4])[0]
            if len(data) >= at + 20 and data[at + 12] == 1:
                self.arrived.add((struct.unpack("!I", data[at + 16:at + 20])[0], peer[0], port))

    def go(self, targets, want, tag):
        got, tries = set(), {}
        ends = [(ip, port) for ip in targets for port in PORTS]
        start = again = time.monotonic()
        last = start
        while True:
            now = time.monotonic()
            done = len(got) >= want and now - last >= PAUSE
            if done or now - start >= LIMIT:
                break
            if now >= again:
                again = now + AGAIN
                for ip, port in ends:
                    for proto in ("tcp", "udp"):
                        if (proto, ip, port) in got:
                            continue
                        s = socket.socket(socket.AF_INET,
                                          socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM)
                        s.setblocking(False)
                        try:
                            s.connect((ip, port))
                        except BlockingIOError:
                            pass
                        except OSError:
                            s.close()
                            continue
                        if proto == "udp":
                            try:
                                s.send(b"?")
                            except OSError:
                                pass
                        tries[s.fileno()] = (s, proto, ip, port)
                        self.poll.register(s, select.POLLOUT if proto == "tcp" else select.POLLIN)
                    try:
                        self.raw.sendto(sctp_init(self.sport, port, tag), (ip, 0))
                    except OSError:
                        pass
            for fd, _ in self.poll.poll(20):
                if fd not in tries:
                    self.serve(fd)
                    continue
                s, proto, ip, port = tries.pop(fd)
                self.poll.unregister(fd)
                try:
                    if proto == "tcp":
                        good = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
                    else:
                        good = s.recv(16) == b"?"
                except OSError:
                    good = False
                if good and (proto, ip, port) not in got:
                    got.add((proto, ip, port))
                    last = time.monotonic()
                s.close()
        for fd, (s, *_) in tries.items():
            self.poll.unregister(fd)
            s.close()
        return sorted(got)

    def run(self):
        print("ready", flush=True)
        while True:
            for fd, _ in self.poll.poll():
                if fd != 0:
                    self.serve(fd)
                    continue
                line = sys.stdin.readline()
                if not line:
                    return
                order = json.loads(line)
                if "go" in order:
                    answer = self.go(order["go"], order["want"], order["round"])
                else:
                    while True:  # what has arrived and was not read yet
                        events = self.poll.poll(0)
                        if not any(f != 0 for f, _ in events):
                            break
                        for f, _ in events:
                            if f != 0:
                                self.serve(f)
                    answer = sorted(x[1:] for x in self.arrived if x[0] == order["arrivals"])
                    self.arrived.clear()
                print(json.dumps(answer), flush=True)


Prober().run()
