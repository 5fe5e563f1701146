# SPDX-License-Identifier: Apache-2.0
"""The wire format of protobuf as far as objects of Kubernetes need it: numbers, and runs of bytes."""
import struct

TYPE = "application/vnd.kubernetes.protobuf"


def varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """The fields of a message: (number, value) in their order."""
    at, found = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 2:
            size, at = varint(data, at)
            assert at + size <= len(data), "cut off"
            found.append((tag >> 3, data[at:at + size]))
            at += size
        elif tag & 7 == 1:
            found.append((tag >> 3, struct.unpack("<d", data[at:at + 8])[0]))
            at += 8
        else:
            assert tag & 7 == 0, f"type {tag & 7}"
            value, at = varint(data, at)
            found.append((tag >> 3, value))
    return found


def field(data, *path):
    """The last value at a path of numbers; None: absent."""
    for number in path:
        data = dict(fields(data)).get(number)
        if data is None:
            return None
    return data


def put_varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def put(number, value):
    """A field with bytes or text."""
    value = value.encode() if isinstance(value, str) else value
    return put_varint(number << 3 | 2) + put_varint(len(value)) + value


def opened(data):
    """(apiVersion, kind, message) of an envelope."""
    assert data[:4] == b"k8s\0", data[:40]
    assert data.endswith(b"\x1a\x00\x22\x00"), data[-10:]
    envelope = dict(fields(data[4:]))
    return field(envelope[1], 1).decode(), field(envelope[1], 2).decode(), envelope[2]


def enveloped(version, kind, message):
    return b"k8s\0" + put(1, put(1, version) + put(2, kind)) + put(2, message) + b"\x1a\x00\x22\x00"
