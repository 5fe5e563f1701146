# SPDX-License-Identifier: Apache-2.0
"""A name server that tests make say what they want, right or wrong, over UDP and TCP; and bytes of DNS messages."""
import socket
import struct
import threading

A, NS, CNAME, SOA, PTR, TXT, AAAA, SRV, OPT, ANY = 1, 2, 5, 6, 12, 16, 28, 33, 41, 255
TC, NXDOMAIN, REFUSED = 0x0200, 3, 5


def wire_name(name):
    return b"".join(bytes([len(x)]) + x.encode() for x in name.rstrip(".").split(".") if x) + b"\0"


def query(name, qtype=A, ident=0x1234, flags=0x0100, klass=1, additional=b"", n_additional=0):
    return (struct.pack(">6H", ident, flags, 1, 0, 0, n_additional) + wire_name(name) + struct.pack(">HH", qtype, klass) +
            additional)


def question_of(message):
    """(name in lower case, type, bytes of the question)"""
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1").lower())
        at += 1 + message[at]
    return ".".join(labels), struct.unpack(">H", message[at + 1:at + 3])[0], message[12:at + 5]


def record(owner, rtype, data, ttl=60):
    return wire_name(owner) + struct.pack(">HHIH", rtype, 1, ttl, len(data)) + data


def a_record(owner, address, ttl=60):
    return record(owner, A, socket.inet_aton(address), ttl)


def soa_record(owner, minimum=60):
    return record(owner, SOA, wire_name("ns." + owner) + wire_name("h." + owner) +
                  struct.pack(">5I", 1, 2, 3, 4, minimum))


def answer(request, answers=(), authority=(), flags=0x8180, ident=None, question=None):
    return (struct.pack(">6H", struct.unpack(">H", request[:2])[0] if ident is None else ident, flags, 1, len(answers),
                        len(authority), 0) + (question or question_of(request)[2]) + b"".join(answers) + b"".join(authority))


def both_sockets(address="127.0.0.1", port=0, tries=50):
    """A UDP and a TCP socket bound to the same port; which one the kernel gives for one may be taken for the other."""
    for left in reversed(range(tries)):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            udp.bind((address, port))
            tcp.bind((address, udp.getsockname()[1]))
            return udp, tcp
        except OSError:
            udp.close()
            tcp.close()
            if not left:
                raise


class NameServer:
    """'zone': name to a function of (server, request, over TCP) that returns the messages to send, in turn.  What was
    asked is in 'asked'."""

    def __init__(self, zone, address="127.0.0.1", port=0):
        self.zone, self.asked, self.stopped = zone, [], False
        self.udp, self.tcp = both_sockets(address, port)
        self.port = self.udp.getsockname()[1]
        self.tcp.listen(16)
        self.udp.settimeout(0.1)  # how soon a stop is noticed
        self.tcp.settimeout(0.1)
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.serve_udp, self.serve_tcp)]
        for t in self.threads:
            t.start()

    def messages(self, request, tcp):
        name, qtype, _ = question_of(request)
        self.asked.append((name, qtype, "tcp" if tcp else "udp"))
        fn = self.zone.get(name)
        if fn is None:
            return [answer(request, authority=[soa_record("test")], flags=0x8180 | NXDOMAIN)]
        return fn(self, request, tcp)

    def serve_udp(self):
        while not self.stopped:
            try:
                request, peer = self.udp.recvfrom(4096)
            except TimeoutError:
                continue
            except ConnectionError:  # of an answer that nobody took
                continue
            if not self.stopped:
                for m in self.messages(request, False):
                    self.udp.sendto(m, peer)

    def serve_tcp(self):
        while not self.stopped:
            try:
                c, _ = self.tcp.accept()
            except TimeoutError:
                continue
            with c:
                c.settimeout(5)
                try:
                    size = struct.unpack(">H", c.recv(2, socket.MSG_WAITALL))[0]
                    for m in self.messages(c.recv(size, socket.MSG_WAITALL), True):
                        c.sendall(struct.pack(">H", len(m)) + m)
                except (OSError, struct.error):
                    pass

    def count(self, name):
        return sum(n == name for n, _, _ in self.asked)

    def stop(self):
        self.stopped = True
        for t in self.threads:
            t.join()
        self.udp.close()
        self.tcp.close()
