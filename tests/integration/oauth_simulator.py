# SPDX-License-Identifier: Apache-2.0
"""A server that follows the exchange of `oc login` request by request, and lies where a test tells it to.

Tests of the client use it for what a server of ours never answers: redirects to other hosts, loops, endpoints of another
issuer, escape sequences, huge answers.  It has one user, jane with the password secret, and the projects of a list.
"""
import base64
import hashlib
import http.server
import json
import secrets
import ssl
import threading
import urllib.parse


class Simulator:
    def __init__(self, cert, key, projects=("blue", "red")):
        self.projects, self.motd, self.may_request = list(projects), None, True
        self.tokens, self.codes, self.requests = {}, {}, []
        self.lies = {}  # path → a function of the request, which answers in its place and returns True
        self.document = {}  # keys of the discovery document that differ
        simulator = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                size = int(self.headers.get("Content-Length") or 0)
                self.body = self.rfile.read(size).decode()
                parsed = urllib.parse.urlsplit(self.path)
                self.route, self.query = parsed.path, dict(urllib.parse.parse_qsl(parsed.query))
                simulator.requests.append((self.command, self.path, dict(self.headers), self.body))
                lie = simulator.lies.get(self.route)
                if not (lie and lie(self)):
                    simulator.answer(self)
            do_GET = do_POST = do_HEAD = do_DELETE = do

            def send(self, status, body=b"", headers=(), kind="application/json"):
                data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def log_message(self, *args):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args):
                pass  # A client that refuses the certificate ends the connection.

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        if cert:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if cert else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    # ---- answers ----

    def answer(self, x):
        routes = {"/": self.root, "/version": self.version, "/.well-known/oauth-authorization-server": self.discovery,
                  "/oauth/authorize": self.authorize, "/oauth/token": self.token,
                  "/apis/user.openshift.io/v1/users/~": self.me, "/apis/project.openshift.io/v1/projects": self.list_projects,
                  "/apis/project.openshift.io/v1/projectrequests": self.request_project,
                  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": self.access,
                  "/api/v1/namespaces/openshift/configmaps/motd": self.message}
        if x.route in routes:
            return routes[x.route](x)
        own = "/apis/oauth.openshift.io/v1/useroauthaccesstokens/"
        one = "/apis/project.openshift.io/v1/projects/"
        if x.route.startswith(own) and x.command == "DELETE":
            return self.delete_token(x, urllib.parse.unquote(x.route[len(own):]))
        if x.route.startswith(one):
            name = x.route[len(one):]
            return x.send(200, project(name)) if name in self.projects else self.refuse(x, 403, "Forbidden")
        return self.refuse(x, 404, "NotFound")

    @staticmethod
    def refuse(x, status, reason, message=None):
        x.send(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message or reason, "reason": reason,
                        "code": status})

    def root(self, x):
        self.refuse(x, 403, "Forbidden")

    def version(self, x):
        x.send(200, {"major": "1", "minor": "11"})

    def discovery(self, x):
        x.send(200, {"issuer": self.url, "authorization_endpoint": f"{self.url}/oauth/authorize",
                     "token_endpoint": f"{self.url}/oauth/token", "scopes_supported": ["user:full"],
                     "response_types_supported": ["code", "token"],
                     "grant_types_supported": ["authorization_code", "implicit"],
                     "code_challenge_methods_supported": ["plain", "S256"], **self.document})

    def authorize(self, x):
        q = x.query
        if q.get("client_id") == "openshift-cli-client":
            return self.give_code(x)
        if q.get("client_id") != "openshift-challenging-client" or q.get("response_type") != "code":
            return x.send(400, {"error": "unauthorized_client"})
        given = x.headers.get("Authorization")
        if given is None or given != "Basic " + base64.b64encode(b"jane:secret").decode():
            assert x.headers.get("X-CSRF-Token"), "a client without this header gets no challenge"
            return x.send(401, "", [("WWW-Authenticate", 'Basic realm="openshift"')])
        return self.give_code(x)

    def give_code(self, x):
        code = "sha256~" + secrets.token_urlsafe(32)
        self.codes[code] = x.query
        back = {"code": code, **({"state": x.query["state"]} if "state" in x.query else {})}
        x.send(302, "", [("Location", x.query["redirect_uri"] + "?" + urllib.parse.urlencode(back))])

    def token(self, x):
        form = dict(urllib.parse.parse_qsl(x.body, strict_parsing=True))
        asked = self.codes.pop(form.get("code"), None)
        hashed = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
        if (x.command != "POST" or not asked or form["grant_type"] != "authorization_code" or asked["code_challenge_method"] != "S256"
                or form["client_id"] != asked["client_id"] or form["redirect_uri"] != asked["redirect_uri"]
                or hashed != asked["code_challenge"]):
            return x.send(400, {"error": "invalid_grant", "error_description": "the code is not good"})
        made = "sha256~" + secrets.token_urlsafe(32)
        self.tokens[made] = "jane"
        x.send(200, {"access_token": made, "token_type": "Bearer", "expires_in": 86400, "scope": "user:full"})

    def user(self, x):
        return self.tokens.get((x.headers.get("Authorization") or "").removeprefix("Bearer "))

    def me(self, x):
        if not self.user(x):
            return self.refuse(x, 401, "Unauthorized")
        x.send(200, {"kind": "User", "apiVersion": "user.openshift.io/v1", "metadata": {"name": self.user(x)}})

    def list_projects(self, x):
        if not self.user(x):
            return self.refuse(x, 401, "Unauthorized")
        x.send(200, {"kind": "ProjectList", "items": [project(p) for p in self.projects]})

    def request_project(self, x):
        if not self.may_request:
            return self.refuse(x, 403, "Forbidden", "ask the help desk for a project")
        if x.command == "GET":
            return x.send(200, {"kind": "Status", "status": "Success"})
        name = json.loads(x.body)["metadata"]["name"]
        self.projects.append(name)
        x.send(201, project(name))

    def access(self, x):
        x.send(201, {"kind": "SelfSubjectAccessReview", "status": {"allowed": self.may_request}})

    def message(self, x):
        if self.motd is None:
            return self.refuse(x, 404, "NotFound")
        x.send(200, {"kind": "ConfigMap", "data": {"message": self.motd}})

    def delete_token(self, x, name):
        for token in list(self.tokens):
            hashed = base64.urlsafe_b64encode(hashlib.sha256(token[7:].encode()).digest()).decode().rstrip("=")
            if name == f"sha256~{hashed}":
                del self.tokens[token]
                return x.send(200, {"kind": "Status", "status": "Success"})
        return self.refuse(x, 404, "NotFound")


def project(name):
    return {"kind": "Project", "apiVersion": "project.openshift.io/v1", "metadata": {"name": name}}
