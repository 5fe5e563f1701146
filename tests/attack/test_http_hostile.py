# SPDX-License-Identifier: Apache-2.0
"""Clients of the API's port that mean harm: requests smuggled in others, floods of frames, slow ones, bombs in bodies.  The master
goes on, its memory stays bounded, and a bystander is served meanwhile."""
import gzip
import json
import re
import socket
import struct
import threading

import pytest

import h2raw
from lab import wait_for
from test_http import Bystander, Master, answer, namespace, receive, sanitized, start_master, until  # noqa: F401 (a fixture)

EVIL = "127.0.0.3"
HOST = b"Host: h\r\n"
NAMESPACES = "/api/v1/namespaces"
ROOM = (700 if sanitized() else 250) << 20  # what a master may grow by; freed memory stays with a sanitizer for a while
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def m(start_master):  # noqa: F811
    made = start_master()
    by = Bystander(made)
    made.by = by
    yield made
    by.check()
    assert by.grown() < ROOM
    assert made.stop() == 0


def say(m, data, source=EVIL, timeout=20):
    """All that the master answers to these bytes until it closes; b"" when it says nothing."""
    with m.raw(source) as s:
        s.settimeout(timeout)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            return receive(s)
        except OSError:
            return b""


def statuses(text):
    return [int(x) for x in re.findall(rb"HTTP/1\.[01] (\d{3})", text)]


# ---- smuggling ----

HIDDEN = b"DELETE /api/v1/namespaces/by1 HTTP/1.1\r\nHost: h\r\n\r\n"


def post(headers, body=b""):
    return b"POST /api/v1/namespaces HTTP/1.1\r\n" + HOST + headers + b"\r\n" + body


SMUGGLED = {
    "both lengths": post(b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + HIDDEN),
    "both lengths, the other way round": post(b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", b"0\r\n\r\n" + HIDDEN),
    "two lengths": post(b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(HIDDEN), HIDDEN),
    "two lengths in one": post(b"Content-Length: 0, %d\r\n" % len(HIDDEN), HIDDEN),
    "a length with a sign": post(b"Content-Length: +0\r\n", HIDDEN), "a negative length": post(b"Content-Length: -1\r\n", HIDDEN),
    "a length in hex": post(b"Content-Length: 0x0\r\n", HIDDEN), "a length with a space": post(b"Content-Length: 0 0\r\n", HIDDEN),
    "a huge length": post(b"Content-Length: 18446744073709551616\r\n", HIDDEN),
    "a length of nothing": post(b"Content-Length: \r\n", HIDDEN),
    "a space before the colon": post(b"Content-Length : 0\r\n", HIDDEN),
    "a tab before the colon": post(b"Transfer-Encoding\t: chunked\r\n", HIDDEN),
    "a folded header": post(b"X: y\r\n Content-Length: 0\r\n", HIDDEN),
    "a folded coding": post(b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n" + HIDDEN),
    "bare newlines": (b"POST /api/v1/namespaces HTTP/1.1\nHost: h\nContent-Length: 0\n\n") + HIDDEN,
    "a bare newline within": post(b"X: y\nContent-Length: 0\r\n", HIDDEN),
    "a bare return within": post(b"X: y\rContent-Length: 0\r\n", HIDDEN),
    "a NUL within": post(b"X: y\0Content-Length: 0\r\n", HIDDEN),
    "another coding": post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + HIDDEN),
    "two codings": post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"0\r\n\r\n" + HIDDEN),
    "a list of codings": post(b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n" + HIDDEN),
    "a coding in quotes": post(b'Transfer-Encoding: "chunked"\r\n', b"0\r\n\r\n" + HIDDEN),
    "a chunk's sign": post(b"Transfer-Encoding: chunked\r\n", b"+0\r\n\r\n" + HIDDEN),
    "a chunk's newline": post(b"Transfer-Encoding: chunked\r\n", b"0\n\n" + HIDDEN),
    "a chunk's space": post(b"Transfer-Encoding: chunked\r\n", b"0 \r\n\r\n" + HIDDEN),
    "a chunk's overflow": post(b"Transfer-Encoding: chunked\r\n", b"10000000000000000\r\n\r\n" + HIDDEN),
    "a chunk that is longer than it says": post(b"Transfer-Encoding: chunked\r\n", b"1\r\nab\r\n0\r\n\r\n" + HIDDEN),
    "trailers that are headers": post(b"Transfer-Encoding: chunked\r\n", b"0\r\nContent-Length: 5\r\nHost: x\r\n\r\nab" +
                                      HIDDEN[:0]),
    "an old version with chunks": b"POST /api/v1/namespaces HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
    HIDDEN,
    "no host": b"GET /version HTTP/1.1\r\n\r\n", "two hosts": b"GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "an odd method": b"G ET /version HTTP/1.1\r\nHost: h\r\n\r\n", "an odd version": b"GET /version HTTP/1.1x\r\nHost: h\r\n\r\n",
    "version 3": b"GET /version HTTP/3.0\r\nHost: h\r\n\r\n", "no version": b"GET /version\r\n\r\n",
    "a header without a name": b"GET /version HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n",
    "a header without a colon": b"GET /version HTTP/1.1\r\nHost: h\r\nabc\r\n\r\n",
    "a space before the first header": b"GET /version HTTP/1.1\r\n Host: h\r\n\r\n",
    "a space in the path": b"GET /ver sion HTTP/1.1\r\nHost: h\r\n\r\n",
}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    made = Master(str(tmp_path_factory.mktemp("http")))
    made.by = Bystander(made)
    yield made
    assert made.stop() == 0


@pytest.mark.parametrize("how", SMUGGLED)
def test_a_request_that_two_readers_would_read_differently_is_refused(quiet, how):
    """And nothing that follows in it is taken for a request."""
    got = statuses(say(quiet, SMUGGLED[how]))
    assert len(got) <= 1 and all(s >= 400 for s in got), got
    assert quiet.get(f"{NAMESPACES}/by1")[0] == 200
    assert json.loads(quiet.get(f"{NAMESPACES}/by1")[1])["status"]["phase"] == "Active"


def test_a_plain_request_behind_another_is_served(quiet):
    """The control: two honest requests on a connection have two answers."""
    two = b"GET /version HTTP/1.1\r\nHost: h\r\n\r\nGET /version HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    assert statuses(say(quiet, two)) == [200, 200]
    chunked = post(b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\nConnection: close\r\n",
                   b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")
    assert statuses(say(quiet, chunked)) == [422]


def test_http2_pseudo_headers_and_forbidden_ones_are_refused(quiet):
    """Twice, in the wrong order, with line ends: what would become another request at a proxy behind."""
    for headers in ([("transfer-encoding", "chunked")], [("connection", "close")], [("host", "a\r\nX: y")], [("x\r\ny", "z")],
                    [("x", "a\0b")],
                    [(":path", "/other")], [("content-length", "5"), ("content-length", "6")], [("Upper", "x")], [("", "x")]):
        c = h2raw.connect(quiet.port, source=EVIL)
        r = c.ask("GET", "/version", headers)
        until(c, "the refusal", lambda c=c, r=r: r.ended or r.error is not None or c.closed or c.goaway)
        assert r.status != 200 or headers[0][0] in ("host",) or r.error is not None, headers
        c.close()
    c = h2raw.connect(quiet.port, source=EVIL)
    assert answer(c, c.ask("GET", "/version"))[0] == 200
    c.close()


# ---- floods ----

def flood(m, make, n=20000, step=400):
    """Frames of 'make(i)' on one connection until it is ended; whether it was."""
    c = h2raw.connect(m.port, source=EVIL)
    try:
        for i in range(0, n, step):
            c.sock.sendall(b"".join(make(i + k) for k in range(step)))
            c.read(0)
            if c.goaway or c.closed:
                break
    except OSError:
        c.closed = True
    ended = bool(c.goaway or c.closed)
    c.close()
    return ended


REQUEST = h2raw.fields([(":method", "GET"), (":scheme", "http"), (":authority", "t"), (":path", NAMESPACES)])
WATCH = h2raw.fields([(":method", "GET"), (":scheme", "http"), (":authority", "t"), (":path", NAMESPACES + "?watch=1")])
FLOODS = {
    "requests that are reset": lambda i: h2raw.frame(1, 5, 2 * i + 1, REQUEST) + h2raw.frame(3, 0, 2 * i + 1, struct.pack(">I", 8)),
    "watches that are reset": lambda i: h2raw.frame(1, 5, 2 * i + 1, WATCH) + h2raw.frame(3, 0, 2 * i + 1, struct.pack(">I", 8)),
    "pings": lambda i: h2raw.frame(6, 0, 0, b"12345678"), "settings": lambda i: h2raw.frame(4, 0, 0),
    "continuations": lambda i: h2raw.frame(9 if i else 1, 0, 1, b"\0\1x\1y"),
    "empty continuations": lambda i: h2raw.frame(9 if i else 1, 0, 1, b""),
    "large headers": lambda i: h2raw.frame(9 if i else 1, 0, 1, h2raw.fields([("x", "y" * 8000)])),
    "tables": lambda i: h2raw.frame(1, 5, 2 * i + 1, b"\x3f\xe1\xff\xff\x03" + REQUEST),
    "padding only": lambda i: h2raw.frame(1, 4, 1, REQUEST) if i == 0 else h2raw.frame(0, 8, 1, b"\xff" + bytes(255)),
}


@pytest.mark.parametrize("what", FLOODS)
def test_floods_of_frames_end_the_flooders_connection_only(m, what):
    assert flood(m, FLOODS[what]) or what == "padding only"
    m.by.check()
    wait_for("nothing to be left", lambda: m.metric("http_server_http2_streams") == 0)


def test_windows_and_priorities_that_are_abused(m):
    """Windows of nothing for answers, overflows, and streams that depend on themselves."""
    for f in (h2raw.frame(8, 0, 0, struct.pack(">I", 0)), h2raw.frame(8, 0, 0, struct.pack(">I", 0x7fffffff)) * 2,
              h2raw.frame(2, 0, 1, struct.pack(">IB", 1, 255)), h2raw.frame(5, 4, 1, b"\0\0\0\2"), h2raw.frame(0, 0, 0, b"x"),
              h2raw.frame(4, 0, 0, struct.pack(">HI", 4, 0xffffffff)), h2raw.frame(4, 0, 0, b"x"), h2raw.frame(7, 0, 0, b""),
              h2raw.frame(1, 4, 2, REQUEST), h2raw.frame(0x42, 0, 0, b"x" * 100), b"\xff\xff\xff" + bytes(6) + b"x" * 1000):
        c = h2raw.connect(m.port, source=EVIL)
        try:
            c.sock.sendall(f)
            c.read(0.05)
        except OSError:
            pass
        c.close()
    m.by.check()
    starving = [h2raw.connect(m.port, source=EVIL, window=0, greedy=False) for _ in range(20)]
    for c in starving:
        for _ in range(20):
            c.ask("GET", NAMESPACES)
    m.by.check()
    for c in starving:
        c.close()


def test_slow_requests_hold_nobody_up(start_master):  # noqa: F811
    """Headers a byte at a time, bodies that never come, readers that never read; over TLS a greeting only."""
    for tls in (False, True):
        m = start_master(tls=tls, headerTimeoutSeconds=2)
        by = Bystander(m)
        slow = [m.raw(EVIL) for _ in range(300)]
        starts = [b"\x16\x03\x01\x00\xc8\x01"] if tls else [
            b"GET /api HTTP/1.1\r\nX-", b"P", b"POST /api/v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n{",
            b"POST /api/v1/namespaces HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n", h2raw.PREFACE[:9]]
        for i, s in enumerate(slow):
            s.sendall(starts[i % len(starts)])
        by.check()
        wait_for("those without headers to be cut", lambda: m.metric("http_server_connections") < 200)
        by.check()
        for s in slow:
            s.close()
        assert m.stop() == 0


def test_many_connections_give_way(start_master):  # noqa: F811
    m = start_master(maxConnections=400)
    by = Bystander(m)
    idle = [m.raw(EVIL) for _ in range(800)]
    by.check()
    assert m.metric("http_server_connections") <= 400
    for s in idle:
        s.close()
    assert m.stop() == 0


def test_watches_without_end_are_limited(m):
    """Each of thousands of watches costs little, one address has a limit, and writes go on."""
    conns = []
    for _ in range(20):
        c = h2raw.connect(m.port, source=EVIL)
        conns.append(c)
        for _ in range(100):
            c.ask("GET", NAMESPACES + "?watch=1&resourceVersion=0")
    for i in range(5):
        m.by.check()
    for c in conns:
        c.read(0)
        c.close()
    wait_for("nothing to be left", lambda: m.metric("http_server_http2_streams") == 0)


# ---- sizes ----

def test_sizes_are_bounded(quiet):
    """The line, a header, their number, all headers, a path, a query: each is told with 4xx or the end, and nothing waits."""
    big = b"x" * (1 << 20)
    for name, data in {"line": b"GET /" + big + b" HTTP/1.1\r\nHost: h\r\n\r\n",
                       "header": b"GET /version HTTP/1.1\r\nHost: h\r\nX: " + big + b"\r\n\r\n",
                       "name": b"GET /version HTTP/1.1\r\nHost: h\r\n" + big + b": x\r\n\r\n",
                       "number": b"GET /version HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 200000 + b"\r\n",
                       "query": b"GET /version?" + b"a=b&" * 300000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
                       "method": big + b" / HTTP/1.1\r\n\r\n",
                       "extension": post(b"Transfer-Encoding: chunked\r\n", b"1;" + big + b"\r\nx\r\n0\r\n\r\n"),
                       "trailers": post(b"Transfer-Encoding: chunked\r\n", b"0\r\n" + b"X: y\r\n" * 200000 + b"\r\n"),
                       "body": post(b"Content-Length: 99999999999\r\n", big)}.items():
        got = statuses(say(quiet, data))
        assert not [s for s in got if s < 400], (name, got)
    assert quiet.get("/version")[0] == 200


def call(m, method, path, body, kind="application/json", **headers):
    """(status, text) of a body as it is, from the attacker's address."""
    head = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **headers}
    text = f"{method} {path} HTTP/1.1\r\nHost: h\r\n" + "".join(f"{k}: {v}\r\n" for k, v in head.items()) + "\r\n"
    got = say(m, text.encode() + body, timeout=60)
    return (statuses(got) or [0])[0], got


def test_compressed_bombs_are_not_opened(m):
    """A body of a kilobyte that would be a gigabyte: such a coding is refused, or ends at the body's limit."""
    bomb = gzip.compress(b'{"metadata":{"name":"' + b"a" * (100 << 20) + b'"}}')
    for coding in ("gzip", "deflate", "br", "gzip, gzip", "x-gzip", "identity, gzip"):
        status, _ = call(m, "POST", NAMESPACES, bomb, **{"Content-Encoding": coding})
        assert status in (0, 400, 413, 415, 422), coding


BOMBS = {
    "depth": b"[" * 400000, "depth of objects": b'{"a":' * 200000, "depth, closed": b'{"metadata":' + b"[" * 5000 + b"]" * 5000 +
    b"}",
    "a key twice": b'{"metadata":{"name":"a","name":"b"}}', "a key twice, escaped": b'{"metadata":{"name":"a","n\\u0061me":"b"}}',
    "a number without end": b'{"metadata":{"name":"x","labels":{"a":' + b"9" * 500000 + b"}}}",
    "an exponent": b'{"metadata":{"generation":1e999999999}}',
    "a fraction": b'{"metadata":{"generation":1.' + b"0" * 500000 + b"1}}", "not a number": b'{"metadata":{"generation":NaN}}',
    "text without end": b'{"metadata":{"name":"' + b"x" * 2000000, "half a character": b'{"metadata":{"name":"\\ud800"}}',
    "bytes": b'{"metadata":{"name":"\xff\xfe"}}',
    "a NUL": b'{"metadata":{"name":"a\\u0000b"}}', "many keys": b"{" + b",".join(b'"k%d":1' % i for i in range(200000)) + b"}",
    "keys that collide": b"{" + b",".join(b'"%s":1' % (b"Aa" * i) for i in range(1200)) + b"}", "nothing": b"",
    "spaces": b" " * 2000000,
    "many annotations": json.dumps({"metadata": {"name": "x", "annotations": {f"k{i}": "v" for i in range(60000)}}}).encode(),
    "many owners": json.dumps({"metadata": {"name": "x", "ownerReferences": [{"uid": str(i)} for i in range(50000)]}}).encode(),
    "a byte order mark": b'\xef\xbb\xbf{"metadata":{"name":"bom"}}', "comments": b'{"metadata":/*x*/{"name":"x"}}',
    "behind": b'{"metadata":{"name":"x"}}{}',
}


@pytest.mark.parametrize("what", BOMBS)
def test_bombs_of_json_are_refused(quiet, what):
    status, _ = call(quiet, "POST", NAMESPACES, BOMBS[what])
    assert status in (400, 413, 422), status
    assert quiet.get("/version")[0] == 200


YAML = {
    "laughs": "\n".join(["a: &a [x,x,x,x,x,x,x,x,x]"] + [f"{b}: &{b} [{','.join(['*' + a] * 9)}]"
                                                         for a, b in zip("abcdefghi", "bcdefghij")]),
    "itself": "a: &a [*a]", "merges": "a: &a {x: 1}\nb:\n  <<: [*a, *a]\nmetadata: {<<: *a, name: x}",
    "depth": "- " * 20000 + "x", "flow depth": "[" * 50000,
    "a tag": "!!python/object/apply:os.system ['id']", "binary": "metadata: {name: !!binary /w==}",
    "many documents": "---\na: b\n" * 20000,
    "a key twice": "metadata: {name: a}\nmetadata: {name: b}", "a huge scalar": "a: |\n" + "  x\n" * 300000,
    "anchors": "\n".join(f"k{i}: &a{i} x" for i in range(50000)),
    "a directive": "%YAML 9.9\n---\na: b", "bytes": "a: \x01",
}


@pytest.mark.parametrize("what", YAML)
def test_bombs_of_yaml_are_refused(quiet, what):
    for method, path, kind in (("POST", NAMESPACES, "application/yaml"), ("PATCH", f"{NAMESPACES}/by1?fieldManager=x", APPLY)):
        status, got = call(quiet, method, path, YAML[what].encode(), kind)
        assert status in (0, 413) or 400 <= status < 500 or (method == "PATCH" and status == 200), (status, got[-500:])
    assert len(quiet.get(f"{NAMESPACES}/by1")[1]) < 10000, "what is unknown is not kept"
    assert quiet.get("/version")[0] == 200


def protobuf(body):
    return b"k8s\0" + body


def field(n, data):
    return varint(n << 3 | 2) + varint(len(data)) + data


def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def definition(numbers):
    """A definition whose schema has schemas within each other, by fields of these numbers."""
    schema = b""
    for i in range(5000):
        schema = field(numbers[i % len(numbers)], schema)
    kind = field(1, b"apiextensions.k8s.io/v1") + field(2, b"CustomResourceDefinition")
    return protobuf(field(1, kind) + field(2, field(2, field(7, field(4, field(1, schema))))))


TYPE = field(1, field(1, b"v1") + field(2, b"Namespace"))
PROTOBUF = {
    "no magic": b"xxxx" + TYPE, "magic only": protobuf(b""), "a length beyond the end": protobuf(TYPE + b"\x12" +
        varint(1 << 30) + b"x"),
    "a length of 2^63": protobuf(TYPE + b"\x12" + b"\xff" * 9 + b"\x7f"), "a length without end": protobuf(TYPE + b"\x12" +
        b"\xff" * 50),
    "a field 0": protobuf(TYPE + b"\x02\x01x"), "a group": protobuf(TYPE + b"\x13" * 5000),
    "a wire type that is none": protobuf(TYPE + b"\x17"),
    "depth": protobuf(TYPE + field(2, b"".join(b"\x0a" + varint(60000 - i) for i in range(20000)))), "no type": protobuf(field(2,
        b"x")),
    "another type": protobuf(field(1, field(1, b"v1") + field(2, b"Secret")) + field(2, b"")),
    "metadata cut": protobuf(TYPE + field(2, b"\x0a\x7fabc")), "bytes in a name": protobuf(TYPE + field(2,
        field(1, field(1, b"\xff\xfe")))),
    "a NUL in a name": protobuf(TYPE + field(2, field(1, field(1, b"a\0b")))),
    "many maps": protobuf(TYPE + field(2, field(1, b"".join(field(11, field(1, b"k%d" % i)) for i in range(50000))))),
    "schemas in each other": definition((28,)), "elements in each other": definition((2, 24)),
    "properties in each other": definition((2, 29)), "others in each other": definition((2, 30)),
    "empty fields": protobuf(TYPE + field(2, field(1, b"\x0a\x00" * 200000))),
}


@pytest.mark.parametrize("what", PROTOBUF)
def test_lies_in_protobuf_are_refused(quiet, what):
    status, got = call(quiet, "POST", NAMESPACES, PROTOBUF[what], "application/vnd.kubernetes.protobuf")
    assert 400 <= status < 500, (status, got[-300:])
    assert quiet.get("/version")[0] == 200


def test_patches_that_grow_are_bounded(quiet):
    """Copies of copies, tests without end, indices that are odd, pointers that are deep."""
    name = f"{NAMESPACES}/patched"
    assert quiet.call("POST", NAMESPACES, namespace("patched", 1000))[0] == 201
    double = [{"op": "copy", "from": "/metadata/annotations/a", "path": "/metadata/annotations/b"}]
    double += [{"op": "add", "path": "/metadata/annotations", "value": {}}, {"op": "add", "path": "/metadata/annotations/x",
        "value": {"y": "z" * 100}}]
    double += [{"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/x{i}"} for i in range(40)]
    for body in (double, [{"op": "test", "path": "/metadata/name", "value": "patched"}] * 100000,
                 [{"op": "add", "path": "/" + "a/" * 50000, "value": 1}],
                 [{"op": "remove", "path": ""}], [{"op": "add", "path": "/metadata/finalizers/99999999999", "value": "x"}],
                 [{"op": "move", "from": "/metadata", "path": "/metadata/annotations/a"}], [{"op": "x", "path": "/a"}],
                 [{"path": "/a"}], {}, [1], "x"):
        status, got = call(quiet, "PATCH", name, json.dumps(body).encode(), "application/json-patch+json")
        assert 400 <= status < 500, (str(body)[:100], status, got[-300:])
    for kind, body in ((MERGE, b'{"metadata":' * 20000), (MERGE, b"null"), (MERGE, b"[]"),
                       ("application/strategic-merge-patch+json", b'{"$patch":"delete"}'),
                       ("application/strategic-merge-patch+json", b'{"metadata":{"$patch":"nonsense"}}'),
                       ("application/x-unknown", b"{}")):
        status, got = call(quiet, "PATCH", name, body, kind)
        assert status == 0 or 400 <= status < 500 or b'"name":"patched"' in got, (kind, body[:50], status)
    assert json.loads(quiet.get(name)[1])["metadata"]["annotations"]["a"] == "x" * 1000


def test_selectors_and_continuations_that_are_odd_are_refused(quiet):
    for query in ("labelSelector=" + "a%3Db," * 20000, "labelSelector=((((", "labelSelector=a%20in%20(" + "b," * 20000 + ")",
                  "fieldSelector=" + "metadata.name%3D" * 2000,
                  "fieldSelector=x", "continue=AAAA", "continue=" + "A" * 60000, "limit=-1", "limit=99999999999999999999",
                  "resourceVersion=-1",
                  "resourceVersion=99999999999999999999", "resourceVersionMatch=x", "watch=maybe", "timeoutSeconds=-1",
                  "allowWatchBookmarks=x", "%", "%zz", "a=%00"):
        status, _ = call(quiet, "GET", f"{NAMESPACES}?{query}", b"")
        assert status in (200, 400, 410, 414, 422, 431), (query[:60], status)
    assert quiet.get("/version")[0] == 200


def test_patterns_of_a_kind_cannot_take_all_time(quiet):
    """A schema whose pattern backtracks without end, and a name that makes it."""
    crd = {"metadata": {"name": "slows.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
                                                               "names": {"plural": "slows", "kind": "Slow"}, "versions": [{
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "a": {"type": "string", "pattern": "^(a+)+$"}, "b": {"type": "string", "pattern": "^(.*a){20}$"}}}}}]}}
    assert quiet.call("POST", CRDS, crd)[0] == 201
    wait_for("the kind", lambda: quiet.get("/apis/example.com/v1/slows")[0] == 200)
    got = []
    t = threading.Thread(target=lambda: got.append(call(quiet, "POST", "/apis/example.com/v1/slows", json.dumps(
        {"metadata": {"name": "x"}, "a": "a" * 5000 + "!", "b": "a" * 5000 + "!"}).encode())[0]))
    t.start()
    quiet.by.check()
    t.join(timeout=60)
    assert got and got[0] in (400, 422), got


def test_answers_are_not_split_by_what_a_client_sends(quiet):
    """Line ends in a path, a name or a header come back in no header of the answer."""
    for data in (b"GET /version%0d%0aX-Evil:%20y HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
                 b"GET /version HTTP/1.1\r\nHost: h\r\nAudit-ID: a%0d%0aX-Evil: y\r\nConnection: close\r\n\r\n",
                 b"GET /api/v1/namespaces/x%0d%0aX-Evil:y HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"):
        head = say(quiet, data).split(b"\r\n\r\n")[0]
        assert b"\r\nX-Evil" not in head, head
