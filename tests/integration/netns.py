# SPDX-License-Identifier: Apache-2.0
"""Sockets of the test's own process that live in another network namespace: a packet costs no process.

A socket belongs to the namespace in which its thread was when it made it, for as long as it lives."""
import concurrent.futures
import ctypes
import os
import select
import socket
import time

CLONE_NEWNET = 0x40000000
PACKET_OUTGOING = 4
ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
libc = ctypes.CDLL(None, use_errno=True)


def inside(path, call):
    """Result of 'call()' in the network namespace at the path.  A thread of its own enters it, and ends after the call."""
    def enter():
        fd = os.open(path, os.O_RDONLY)
        try:
            if libc.setns(fd, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns {path}")
        finally:
            os.close(fd)
        return call()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()


def udp_socket(path, address="0.0.0.0", port=0):
    def make():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((address, port))
        s.setblocking(False)
        return s
    return inside(path, make)


def tcp_listener(path, port, address="0.0.0.0"):
    def make():
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, port))
        s.listen(128)
        s.setblocking(False)
        return s
    return inside(path, make)


def tcp_connects(path, address, port, timeout=1.0):
    """Whether a TCP connection from the namespace comes about."""
    s = inside(path, socket.socket)
    with s:
        s.settimeout(timeout)
        try:
            s.connect((address, port))
            return True
        except OSError:
            return False


class Tap:
    """A packet socket on an interface: it sends frames as they are, and keeps those that arrive there."""

    def __init__(self, path, interface):
        def make():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            s.bind((interface, 0))
            s.setblocking(False)
            return s
        self.sock, self.frames = inside(path, make), []
        self.name = f"{os.path.basename(path)}/{interface}"

    def send(self, *frames):
        """Each may be bytes, or a packet of scapy."""
        for f in frames:
            # A device whose queue is full takes the frame a moment later.
            select.select([], [self.sock], [], 5)
            self.sock.send(bytes(f))

    def read(self):
        while True:
            try:
                data, address = self.sock.recvfrom(1 << 17)
            except BlockingIOError:
                return self.frames
            if address[2] != PACKET_OUTGOING:
                self.frames.append(data)

    def heard(self, marker):
        return any(marker in f for f in self.read())

    def forget(self):
        self.read()
        self.frames.clear()

    def close(self):
        self.sock.close()


def answered(sock, target, data=b"?", tries=3, timeout=0.5):
    """Whether the UDP socket gets the same bytes back from the target."""
    for _ in range(tries):
        try:
            sock.sendto(data, target)
        except OSError:
            pass  # the error of a packet before
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            if not select.select([sock], [], [], left)[0]:
                break
            try:
                if sock.recvfrom(2048)[0] == data:
                    return True
            except OSError:
                pass
    return False
