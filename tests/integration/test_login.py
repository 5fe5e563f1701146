# SPDX-License-Identifier: Apache-2.0
"""`tenet login`, `logout`, `whoami`, `project`, `projects` and `new-project`, against a server that speaks as oc's servers do."""
import base64
import json
import os
import pathlib
import pty
import re
import select
import ssl
import stat
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
import yaml

from lab import DEADLINE, TENET, environment, run, wait_for
from oauth_simulator import Simulator


@pytest.fixture
def pki(tmp_path):
    crt, key = str(tmp_path / "server.crt"), str(tmp_path / "server.key")
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", crt,
         "-subj", "/CN=simulator", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"])
    return crt, key


@pytest.fixture
def server(pki):
    made = Simulator(*pki)
    yield made
    made.stop()


class Client:
    """The program, with a kubeconfig of its own."""

    def __init__(self, folder, ca):
        self.folder, self.ca, self.config = folder, ca, folder / "home/.kube/config"
        self.env = {**environment(), "HOME": str(folder / "home"), "KUBECONFIG": ""}

    def run(self, *args, check=True, **kw):
        return run([TENET, *args], check=check, env=self.env, **kw)

    def login(self, server, *args, check=True, **kw):
        return self.run("login", server.url, "--certificate-authority", self.ca, *args, check=check, stdin=subprocess.DEVNULL, **kw)

    def kubeconfig(self):
        return yaml.safe_load(self.config.read_text())

    def at_terminal(self, *args, answers=()):
        """Runs the program at a terminal; 'answers' are (prompt, what is typed).  Returns exit status and what was shown."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(TENET, [str(TENET), *map(str, args)], {k: str(v) for k, v in self.env.items()})
        shown, todo, end = "", list(answers), time.monotonic() + DEADLINE
        try:
            while True:
                assert time.monotonic() < end, shown
                if not select.select([fd], [], [], 1)[0]:
                    continue
                try:
                    data = os.read(fd, 4096)
                except OSError:
                    break
                if not data:
                    break
                shown += data.decode()
                if todo and todo[0][0] in shown:
                    os.write(fd, todo.pop(0)[1].encode())
        finally:
            status = os.waitpid(pid, 0)[1]
            os.close(fd)
        return os.waitstatus_to_exitcode(status), shown.replace("\r\n", "\n")


@pytest.fixture
def client(tmp_path, pki):
    (tmp_path / "home").mkdir()
    return Client(tmp_path, pki[0])


# ---- the exchange ----

def test_a_login_is_the_exchange_that_oc_makes(client, server):
    r = client.login(server, "-u", "jane", "-p", "secret")
    assert r.stdout == ("Login successful.\n\n"
                        "You have access to the following projects and can switch between them with 'tenet project <projectname>':\n\n"
                        "  * blue\n    red\n\nUsing project \"blue\".\nWelcome! See 'tenet help' to get started.\n")
    asked = [(method, path.split("?")[0]) for method, path, _, _ in server.requests]
    assert asked == [("HEAD", "/"), ("GET", "/.well-known/oauth-authorization-server"), ("GET", "/oauth/authorize"),
                     ("GET", "/oauth/authorize"), ("POST", "/oauth/token"), ("GET", "/apis/user.openshift.io/v1/users/~"),
                     ("GET", "/apis/project.openshift.io/v1/projects"), ("GET", "/api/v1/namespaces/openshift/configmaps/motd")]
    first, second = server.requests[2:4]
    assert re.fullmatch(r"/oauth/authorize\?client_id=openshift-challenging-client&code_challenge=[\w-]{43}&code_challenge_method=S256"
                        r"&redirect_uri=https%3A%2F%2F127\.0\.0\.1%3A\d+%2Foauth%2Ftoken%2Fimplicit&response_type=code", first[1])
    assert first[2]["X-CSRF-Token"] == "1" and "Authorization" not in first[2] and second[1] == first[1]
    assert second[2]["Authorization"] == "Basic " + base64.b64encode(b"jane:secret").decode()
    assert "secret" not in server.requests[4][3], "the token endpoint gets no password"


def test_the_kubeconfig_is_as_oc_writes_it(client, server):
    client.login(server, "-u", "jane", "-p", "secret", "-n", "red")
    cluster = f"127-0-0-1:{server.port}"
    config = client.kubeconfig()
    assert config["current-context"] == f"red/{cluster}/jane"
    assert config["contexts"] == [{"name": f"red/{cluster}/jane", "context": {
        "cluster": cluster, "namespace": "red", "user": f"jane/{cluster}"}}]
    assert config["users"] == [{"name": f"jane/{cluster}", "user": {"token": next(iter(server.tokens))}}]
    assert config["clusters"][0]["cluster"]["server"] == server.url
    assert base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode() == pathlib.Path(client.ca).read_text()
    assert stat.S_IMODE(os.stat(client.config).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(client.config.parent).st_mode) == 0o700
    assert sorted(p.name for p in client.config.parent.iterdir()) == ["config"]


def test_what_others_wrote_into_the_kubeconfig_stays(client, server):
    client.config.parent.mkdir()
    client.config.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "mine", "preferences": {"colors": True}, "extra": [1, "x"],
        "clusters": [{"name": "mine", "cluster": {"server": "https://other:6443"}}],
        "contexts": [{"name": "mine", "context": {"cluster": "mine", "user": "me"}}],
        "users": [{"name": "me", "user": {"exec": {"command": "helper", "args": ["a"]}}}]}))
    client.config.chmod(0o644)
    client.login(server, "-u", "jane", "-p", "secret")
    config = client.kubeconfig()
    assert config["extra"] == [1, "x"] and config["preferences"] == {"colors": True}
    assert config["users"][0] == {"name": "me", "user": {"exec": {"command": "helper", "args": ["a"]}}}
    assert len(config["contexts"]) == len(config["clusters"]) == len(config["users"]) == 2
    assert stat.S_IMODE(os.stat(client.config).st_mode) == 0o600, "it has a token now"
    # And kubectl uses it.
    assert run(["kubectl", "--kubeconfig", client.config, "config", "current-context"]).stdout.strip() == config["current-context"]


def test_name_and_password_are_asked_for_without_echo(client, server):
    status, shown = client.at_terminal("login", server.url, "--certificate-authority", client.ca,
                                       answers=[("Username: ", "jane\n"), ("Password: ", "secret\n")])
    assert status == 0 and "Login successful." in shown
    assert f"Authentication required for {server.url} (openshift)\nUsername: jane\nPassword: \nLogin successful." in shown
    assert "secret" not in shown
    # Control and C while it asks: no token, and a terminal that shows again what is typed.
    status, shown = client.at_terminal("login", server.url, "-u", "other", answers=[("Password: ", "\x03")])
    assert status == 1 and "no name and password" in shown


def test_the_password_may_come_by_standard_input(client, server):
    r = run([TENET, "login", server.url, "--certificate-authority", client.ca, "-u", "jane"], env=client.env, input="secret\n")
    assert "Login successful." in r.stdout


def test_a_wrong_password_is_said_as_oc_says_it(client, server):
    r = client.login(server, "-u", "jane", "-p", "guess", check=False)
    assert r.returncode == 1 and not client.config.exists()
    assert r.stdout == "Login failed (401 Unauthorized)\nVerify you have provided the correct credentials.\n"
    assert [path.split("?")[0] for _, path, _, _ in server.requests].count("/oauth/authorize") == 2, "one attempt, and no more"
    r = client.login(server, "-u", "a:b", "-p", "x", check=False)
    assert r.returncode == 1 and "username a:b is invalid" in r.stderr


def test_a_token_is_enough(client, server):
    server.tokens["sha256~" + "t" * 43] = "jane"
    r = client.login(server, "--token", "sha256~" + "t" * 43)
    assert r.stdout.startswith(f'Logged into "{server.url}" as "jane" using the token provided.\n\n')
    r = client.login(server, "--token=sha256~wrong", check=False)
    assert (r.returncode, r.stderr) == (1, "error: The token provided is invalid or expired.\n")
    assert client.kubeconfig()["users"][0]["user"]["token"] == "sha256~" + "t" * 43


def test_credentials_that_are_good_are_used_again(client, server):
    client.login(server, "-u", "jane", "-p", "secret")
    n = len(server.tokens)
    assert client.run("login").stdout.startswith(f'Logged into "{server.url}" as "jane" using existing credentials.\n\n')
    assert client.run("login", server.url, "-u", "jane").returncode == 0
    assert len(server.tokens) == n
    server.tokens.clear()
    r = client.run("login", "-u", "jane", "-p", "secret")
    assert "Login successful." in r.stdout and len(client.kubeconfig()["users"]) == 1


def test_a_browser_logs_in_by_a_listener_on_loopback(client, server, pki):
    proc = subprocess.Popen([TENET, "login", server.url, "--certificate-authority", client.ca, "--web"], env=client.env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        line = proc.stdout.readline()
        url = re.search(r"https://\S+", line)[0]
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        assert query["client_id"] == "openshift-cli-client" and re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", query["redirect_uri"])
        # Another program of the machine cannot end the login, nor give it a code of its own.
        for wrong in ("?code=x", "?code=x&state=y", "?error=access_denied&state="):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(query["redirect_uri"] + wrong, timeout=10)
            assert refused.value.code == 400
        context = ssl.create_default_context(cafile=pki[0])
        page = urllib.request.urlopen(url, timeout=10, context=context)
        assert "The login is complete" in page.read().decode() and "default-src 'none'" in page.headers["Content-Security-Policy"]
        out, err = proc.communicate(timeout=30)
        assert proc.returncode == 0 and "Login successful." in out, err
    finally:
        proc.kill()
        proc.wait()
    assert server.tokens[client.kubeconfig()["users"][0]["user"]["token"]] == "jane"


def test_a_certificate_that_nobody_vouches_for_is_asked_about(client, server):
    r = client.run("login", server.url, "-u", "jane", "-p", "secret", check=False, stdin=subprocess.DEVNULL)
    assert r.returncode == 1 and "--insecure-skip-tls-verify" in r.stderr and not server.requests
    words = ("The server uses a certificate signed by an unknown authority.\n",
             "You can bypass the certificate check, but any data you send to the server could be intercepted by others.\n"
             "Use insecure connections? (y/n): ")
    status, shown = client.at_terminal("login", server.url, "-u", "jane", "-p", "secret", answers=[("(y/n): ", "n\n")])
    assert status == 1 and all(w in shown for w in words) and not server.requests and not client.config.exists()
    status, shown = client.at_terminal("login", server.url, "-u", "jane", "-p", "secret", answers=[("(y/n): ", "y\n")])
    assert status == 0
    assert client.kubeconfig()["clusters"][0]["cluster"] == {"server": server.url, "insecure-skip-tls-verify": True}
    client.run("whoami")
    r = client.run("login", server.url, "-u", "jane", "-p", "secret", "--insecure-skip-tls-verify=false", check=False,
                   stdin=subprocess.DEVNULL)
    assert r.returncode == 1


def test_without_a_provider_that_takes_passwords_the_way_is_told(client, server):
    def no_challenge(x):
        x.send(401, "You must obtain an API token by visiting https://idp.example/token\n",
               [("Warning", '199 127.0.0.1:1 "You must obtain an API token by visiting https://idp.example/token"'),
                ("Link", '<https://idp.example/token>; rel="related"')], "text/plain")
        return True
    server.lies["/oauth/authorize"] = no_challenge
    r = client.login(server, "-u", "jane", "-p", "secret", check=False)
    assert r.returncode == 1 and "You must obtain an API token by visiting https://idp.example/token\nWarning: 199" in r.stderr
    assert 'Link: <https://idp.example/token>; rel="related"' in r.stderr and "--token" in r.stderr and "--web" in r.stderr


def test_the_message_of_the_day_and_the_number_of_projects(client, server):
    server.motd = "Maintenance on Friday."
    server.projects = [f"p{n:03}" for n in range(60)]
    out = client.login(server, "-u", "jane", "-p", "secret").stdout
    assert "Maintenance on Friday.\n" in out and "You have access to 60 projects, the list has been suppressed." in out
    server.projects = ["red"]
    out = client.login(server, "-u", "jane", "-p", "secret").stdout
    assert 'You have one project on this server: "red"\n\nUsing project "red".\n' in out
    server.projects = []
    out = client.login(server, "-u", "jane", "-p", "secret").stdout
    assert out.endswith("You don't have any projects. You can try to create a new project, by running\n\n"
                        "    tenet new-project <projectname>\n\n")
    assert client.kubeconfig()["current-context"] == f"/127-0-0-1:{server.port}/jane"
    server.may_request = False
    out = client.login(server, "-u", "jane", "-p", "secret").stdout
    assert out.endswith("You don't have any projects. Contact your system administrator to request a project.\n")


# ---- afterwards ----

def test_who_one_is(client, server):
    client.login(server, "-u", "jane", "-p", "secret")
    config = client.kubeconfig()
    assert client.run("whoami").stdout == "jane\n"
    assert client.run("whoami", "-t").stdout.strip() == config["users"][0]["user"]["token"]
    assert client.run("whoami", "-c").stdout.strip() == config["current-context"]
    assert client.run("whoami", "--show-server").stdout.strip() == server.url
    assert client.run("whoami", "--show-console").stdout.strip() == server.url
    server.tokens.clear()
    r = client.run("whoami", check=False)
    assert r.returncode == 1 and f"log in again with: tenet login {server.url}\n" in r.stderr


def test_projects_are_listed_and_changed(client, server):
    client.login(server, "-u", "jane", "-p", "secret")
    assert client.run("project").stdout == f'Using project "blue" on server "{server.url}".\n'
    assert client.run("project", "-q").stdout == "blue\n"
    assert client.run("project", "red").stdout == f'Now using project "red" on server "{server.url}".\n'
    config = client.kubeconfig()
    assert config["current-context"] == f"red/127-0-0-1:{server.port}/jane" and len(config["users"]) == 1
    assert client.run("projects", "-q").stdout == "blue\nred\n"
    assert client.run("projects").stdout == (
        "You have access to the following projects and can switch between them with 'tenet project <projectname>':\n\n"
        f'    blue\n  * red\n\nUsing project "red" on server "{server.url}".\n')
    r = client.run("project", "green", check=False)
    assert (r.returncode, r.stderr) == (1, 'error: You are not a member of project "green".\nYour projects are:\n* blue\n* red\n\n')
    assert client.kubeconfig() == config
    # A context by its name.
    name = f"blue/127-0-0-1:{server.port}/jane"
    assert client.run("project", name).stdout == (
        f'Now using project "blue" from context named "{name}" on server "{server.url}".\n')


def test_a_project_is_requested(client, server):
    client.login(server, "-u", "jane", "-p", "secret")
    out = client.run("new-project", "green", "--display-name", "Green & co", "--description", "d").stdout
    assert out.startswith(f'Now using project "green" on server "{server.url}".\n\n')
    asked = json.loads(server.requests[-1][3])
    assert asked == {"kind": "ProjectRequest", "apiVersion": "project.openshift.io/v1", "metadata": {"name": "green"},
                     "displayName": "Green & co", "description": "d"}
    assert client.kubeconfig()["current-context"].startswith("green/")
    out = client.run("new-project", "other", "--skip-config-write").stdout
    assert "    tenet project other\n" in out and client.kubeconfig()["current-context"].startswith("green/")
    server.may_request = False
    r = client.run("new-project", "third", check=False)
    assert (r.returncode, r.stderr) == (1, "error: ask the help desk for a project\n"), "the administrator's words, as they are"


def test_logout_ends_the_token_everywhere(client, server):
    client.login(server, "-u", "jane", "-p", "secret")
    token = client.run("whoami", "-t").stdout.strip()
    assert client.run("logout").stdout == f'Logged "jane" out on "{server.url}"\n'
    assert not server.tokens and token not in client.config.read_text()
    assert client.kubeconfig()["clusters"], "the server is still known"
    r = client.run("logout", check=False)
    assert (r.returncode, r.stderr) == (1, "error: You must have a token in order to logout.\n")


def test_what_is_missing_is_told(client):
    for args in (("whoami",), ("projects",), ("get", "pods")):
        r = client.run(*args, check=False)
        assert r.returncode == 1 and "Log in with: tenet login URL" in r.stderr, args
    r = client.run("login", check=False, stdin=subprocess.DEVNULL)
    assert r.returncode == 1 and "tenet login https://HOST:8443" in r.stderr


def together(client, commands):
    """Runs all at once; the errors of those that failed."""
    running = [subprocess.Popen(c, env=client.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for c in commands]
    return [(p.returncode, err) for p, err in [(p, p.communicate(timeout=DEADLINE)[1]) for p in running] if p.returncode]


def test_twenty_writers_at_once_lose_nothing(client, server, tmp_path):
    client.login(server, "-u", "jane", "-p", "secret")
    server.projects = [f"p{n}" for n in range(20)]
    assert not together(client, [[TENET, "project", name] for name in server.projects])
    assert {c["context"]["namespace"] for c in client.kubeconfig()["contexts"]} == {"blue", *server.projects}
    # kubectl does not wait for the lock, and undoes what came between its two looks at the file; but the file stays whole.
    failed = together(client, [[TENET, "project", name] if n % 2 else
                               ["kubectl", "--kubeconfig", client.config, "config", "set-context", name, "--namespace", name]
                               for n, name in enumerate(server.projects)])
    assert all("config.lock" in err for _, err in failed), failed
    assert client.kubeconfig()["users"] and not list(client.config.parent.glob("*.lock"))


def test_a_lock_that_was_left_is_named(client, server):
    client.login(server, "-u", "jane", "-p", "secret")
    lock = pathlib.Path(f"{client.config}.lock")
    lock.touch()
    r = client.run("project", "red", check=False)
    assert r.returncode == 1 and str(lock) in r.stderr and "remove it" in r.stderr
    lock.unlink()
    wait_for("the project", lambda: client.run("project", "red").returncode == 0)


# ---- names of the program, and plug-ins ----

def test_called_as_oc_it_speaks_of_oc(client, server, tmp_path):
    bin = tmp_path / "bin"
    bin.mkdir()
    for name in ("oc", "kubectl-tenet"):
        (bin / name).symlink_to(TENET)
    client.env["PATH"] = f"{bin}:{client.env['PATH']}"
    server.projects = []
    r = run([bin / "oc", "login", server.url, "-u", "jane", "-p", "secret", "--certificate-authority", client.ca], env=client.env)
    assert "    oc new-project <projectname>\n" in r.stdout and "Welcome! See 'oc help' to get started.\n" in r.stdout
    r = run([bin / "oc", "frob"], env=client.env, check=False)
    assert (r.returncode, r.stderr) == (2, 'oc: unknown command "frob" See oc --help\n')
    # As a plug-in of kubectl.
    assert run(["kubectl", "tenet", "whoami"], env=client.env).stdout == "jane\n"
    r = run(["kubectl", "tenet", "whoami", "x"], env=client.env, check=False)
    assert r.returncode == 2 and "see kubectl tenet whoami --help" in r.stderr


def test_plug_ins_are_found_as_kubectl_finds_them(client, tmp_path):
    bin = tmp_path / "bin"
    bin.mkdir()
    client.env["PATH"] = f"{bin}:{client.env['PATH']}"
    for name in ("tenet-foo", "tenet-foo-bar_baz", "kubectl-foo-bar_baz-x", "kubectl-only", "tenet-whoami"):
        (bin / name).write_text('#!/bin/sh\necho "$(basename "$0"):$*"\nexit 3\n')
        (bin / name).chmod(0o755)
    (bin / "tenet-not").write_text("#!/bin/sh\n")  # may not be executed
    for args, out in ((("foo", "a"), "tenet-foo:a"), (("foo", "bar-baz", "--x"), "tenet-foo-bar_baz:--x"),
                      (("foo", "bar-baz", "x"), "tenet-foo-bar_baz:x"), (("only", "--", "y"), "kubectl-only:-- y")):
        r = client.run(*args, check=False)
        assert (r.returncode, r.stdout) == (3, out + "\n")
    assert "tenet-whoami" not in client.run("whoami", check=False).stdout, "a command is never shadowed"
    for name in ("not", "../bin/foo"):
        r = client.run(name, check=False)
        assert r.returncode == 2 and "unknown command" in r.stderr
