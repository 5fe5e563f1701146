# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 by hand (RFC 9113, RFC 7541): frames on a socket, for tests that say what no library would."""
import collections
import select
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
Frame = collections.namedtuple("Frame", "type flags stream payload")
STATUSES = dict(zip(range(8, 15), (200, 204, 206, 304, 400, 404, 500)))
DIGITS = {f"{i:05b}": str(i) for i in range(3)} | {f"{0b011001 + i - 3:06b}": str(i) for i in range(3, 10)}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(n, bits):
    top = (1 << bits) - 1
    if n < top:
        return bytes([n])
    out, n = bytes([top]), n - top
    while n >= 128:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


def fields(pairs):
    """A header block of literals that go into no table."""
    return b"".join(b"\0" + b"".join(integer(len(s), 7) + s for s in (name.encode(), value.encode()))
                    for name, value in pairs)


def status_of(block):
    """The status, which is first; the client has forbidden a dynamic table."""
    while block[0] & 0xe0 == 0x20:  # a new size of the table
        block = block[1:] if block[0] & 0x1f < 0x1f else block[2:]
    if block[0] & 0x80:
        return STATUSES[block[0] & 0x7f]
    assert block[0] & 0x0f == 8, block
    size, text = block[1] & 0x7f, block[2:2 + (block[1] & 0x7f)]
    if not block[1] & 0x80:
        return int(text)
    bits, digits = "".join(f"{b:08b}" for b in text[:size]), ""
    while len(digits) < 3:
        n = 5 if bits[:5] in DIGITS else 6
        digits, bits = digits + DIGITS[bits[:n]], bits[n:]
    return int(digits)


class Reply:
    def __init__(self, stream):
        self.stream, self.status, self.body = stream, None, b""
        self.ended = False  # by END_STREAM
        self.error = None  # of RST_STREAM


class Connection:
    """'window': what each stream may send before it is given more, which read() does unless 'greedy' is False."""

    def __init__(self, sock, window=1 << 20, greedy=True):
        self.sock, self.greedy = sock, greedy
        self.next, self.replies, self.buffer, self.goaway, self.closed = 1, {}, b"", None, False
        sock.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HIHI", 1, 0, INITIAL_WINDOW_SIZE, window)) +
                     frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 30))))

    def send(self, *args):
        self.sock.sendall(frame(*args))

    def ask(self, method, path, headers=(), body=None, end=True):
        stream, self.next = self.next, self.next + 2
        scheme = "https" if hasattr(self.sock, "selected_alpn_protocol") else "http"
        block = fields([(":method", method), (":scheme", scheme), (":authority", "t"), (":path", path), *headers])
        self.send(HEADERS, END_HEADERS | (END_STREAM if body is None and end else 0), stream, block)
        for at in range(0, len(body or b""), 16384):
            part = body[at:at + 16384]
            self.send(DATA, END_STREAM if end and at + len(part) == len(body) else 0, stream, part)
        self.replies[stream] = Reply(stream)
        return self.replies[stream]

    def take(self, f):
        r = self.replies.get(f.stream)
        if f.type == SETTINGS and not f.flags & ACK:
            self.send(SETTINGS, ACK, 0)
        elif f.type == PING and not f.flags & ACK:
            self.send(PING, ACK, 0, f.payload)
        elif f.type == GOAWAY:
            self.goaway = struct.unpack(">II", f.payload[:8])
        elif r and f.type == HEADERS:
            r.status = status_of(f.payload)
        elif r and f.type == DATA:
            r.body += f.payload
            if self.greedy and f.payload and not f.flags & END_STREAM:
                self.send(WINDOW_UPDATE, 0, f.stream, struct.pack(">I", len(f.payload)))
        elif r and f.type == RST_STREAM:
            r.error = struct.unpack(">I", f.payload)[0]
        if r and f.type in (HEADERS, DATA) and f.flags & END_STREAM:
            r.ended = True

    def read(self, timeout=0.05):
        """Takes what there is, and waits for something at most so long; False: there was nothing."""
        pending = getattr(self.sock, "pending", lambda: 0)
        if self.closed or not (pending() or select.select([self.sock], [], [], timeout)[0]):
            return False
        try:
            part = self.sock.recv(1 << 16)
        except (ConnectionError, OSError):
            part = b""
        self.closed = not part
        self.buffer += part
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                break
            head, payload = self.buffer[:9], self.buffer[9:9 + size]
            self.buffer = self.buffer[9 + size:]
            try:
                self.take(Frame(head[3], head[4], int.from_bytes(head[5:9], "big"), payload))
            except (ConnectionError, OSError):
                self.closed = True
        return not self.closed

    def close(self):
        self.sock.close()


def connect(port, context=None, source="127.0.0.1", **kw):
    s = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))
    if context:
        context.set_alpn_protocols(["h2"])
        s = context.wrap_socket(s, server_hostname="127.0.0.1")
    return Connection(s, **kw)
