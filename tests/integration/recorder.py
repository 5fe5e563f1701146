# SPDX-License-Identifier: Apache-2.0
"""A proxy before an API server that writes down every request, for tests of what a client asks for.

    recorder.py LISTEN_HOST:PORT BACKEND_PORT LOG

Each line of LOG is a JSON object: method, path, query, content type, body and status.  While a file LOG.gone
exists, watches are answered as a server does that has forgotten their version.  While LOG.without exists, the API
group in it is not known.  While LOG.denied exists, requests that match its regular expression, "METHOD PATH" as a whole,
are forbidden.
"""
import http.client
import http.server
import json
import os
import re
import socketserver
import sys
import threading
import urllib.parse

GONE = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                                    "message": "too old resource version", "reason": "Expired", "code": 410}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def record(self, status, body):
        url = urllib.parse.urlsplit(self.path)
        line = {"method": self.command, "path": url.path,
                "query": dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True)),
                "type": self.headers.get("Content-Type"), "agent": self.headers.get("User-Agent"),
                "body": json.loads(body) if body else None, "status": status}
        with self.server.lock, open(self.server.log, "a") as f:
            f.write(json.dumps(line) + "\n")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def unknown(self):
        try:
            with open(self.server.log + ".without") as f:
                return self.path.startswith(f"/apis/{f.read()}/")
        except FileNotFoundError:
            return False

    def denied(self):
        try:
            with open(self.server.log + ".denied") as f:
                return re.fullmatch(f.read(), f"{self.command} {self.path}")
        except FileNotFoundError:
            return None

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "watch=" in self.path and os.path.exists(self.server.log + ".gone"):
            self.record(200, body)
            self.begin(200, "application/json")
            self.chunk(json.dumps(GONE).encode() + b"\n")
            self.chunk(b"")
            return
        if self.unknown():
            self.record(404, body)
            self.begin(404, "text/plain; charset=utf-8")
            self.chunk(b"404 page not found\n")
            self.chunk(b"")
            return
        if self.denied():
            self.record(403, body)
            self.begin(403, "application/json")
            self.chunk(json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
                                   "reason": "Forbidden", "message": "not granted"}).encode())
            self.chunk(b"")
            return
        backend = http.client.HTTPConnection("127.0.0.1", self.server.backend)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
        backend.request(self.command, self.path, body or None, headers)
        answer = backend.getresponse()
        self.record(answer.status, body)
        self.begin(answer.status, answer.headers.get("Content-Type", "application/json"))
        while True:
            data = answer.read1(65536)
            self.chunk(data)
            if not data:
                break
            if "watch=" in self.path and os.path.exists(self.server.log + ".gone"):
                self.close_connection = True  # cut off, as when a server restarts
                break
        backend.close()

    def begin(self, status, content_type):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    server = Server((host, int(port)), Handler)
    server.backend, server.log, server.lock = int(sys.argv[2]), sys.argv[3], threading.Lock()
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
