# SPDX-License-Identifier: Apache-2.0
"""The lab as tests see it: a thin wrapper of `tenet lab` plus waiting for conditions.

Every lab has a name of its own (pid and counter), so two copies of the tests never meet.  Nothing here
waits for a time: wait_for polls a condition until a deadline that is far beyond what is needed.
"""
import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TENET_BUILD", ROOT / "build"))
TENET = str(BUILD / "src/cli/tenet")
CNI = str(BUILD / "src/cni/tenet-cni")
DEADLINE = 60.0

_counter = itertools.count()
_sanitizer_dir = tempfile.mkdtemp(prefix="tenet-sanitizer-")


def environment():
    """Sanitizer reports of daemons go to files that the session checks at its end."""
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = f"log_path={_sanitizer_dir}/asan:detect_leaks=1:abort_on_error=0"
    env["UBSAN_OPTIONS"] = f"log_path={_sanitizer_dir}/ubsan:print_stacktrace=1"
    return env


def sanitizer_reports():
    return {p.name: p.read_text(errors="replace") for p in pathlib.Path(_sanitizer_dir).iterdir()}


def forget_sanitizer_reports():
    shutil.rmtree(_sanitizer_dir, ignore_errors=True)


def run(argv, check=True, timeout=DEADLINE, **kw):
    kw.setdefault("env", environment())
    r = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       errors="replace", timeout=timeout, **kw)
    if check and r.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: exit {r.returncode}\n{r.stdout}\n{r.stderr}")
    return r


def wait_for(what, condition, deadline=DEADLINE):
    """Value of 'condition()' once it is true; fails with 'what' after the deadline."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline:.0f} s in vain for {what}")
        time.sleep(0.05)  # between two looks at the condition


class Pod:
    def __init__(self, lab, ref, info):
        self.lab, self.ref = lab, ref
        self.project, self.name = ref.split("/")
        self.ip, self.vnid = info["podIP"], info["vnid"]
        self.node, self.netns = info["node"], info["netns"]

    def __repr__(self):
        return f"{self.ref}@{self.node}({self.ip})"

    def ns(self, argv, **kw):
        """Runs a command in the pod's network namespace, quicker than through the lab."""
        return run(["ip", "netns", "exec", os.path.basename(self.netns), *argv], **kw)

    def popen(self, argv, **kw):
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.STDOUT)
        return subprocess.Popen(["ip", "netns", "exec", os.path.basename(self.netns), *map(str, argv)], text=True,
                                errors="replace", **kw)

    def can_ping(self, address, size=56, tries=2, extra=()):
        return self.ns(["ping", "-n", "-q", "-c", "1", "-W", "1", "-s", str(size), *extra, address],
                       check=False).returncode == 0 or (
            tries > 1 and self.can_ping(address, size, tries - 1, extra))


class Lab:
    def __init__(self, label="t", **options):
        self.name = f"{label}{os.getpid() % 100000}x{next(_counter)}"
        self.options = options
        self.up_done = False

    # --- the command ---
    def cmd(self, *args, **kw):
        return run([TENET, "lab", "--name", self.name, *args], **kw)

    def json(self, *args, **kw):
        return json.loads(self.cmd("-o", "json", *args, **kw).stdout)

    def up(self):
        args = ["up"]
        for key, value in self.options.items():
            args += ["--" + key.replace("_", "-"), str(value)]
        self.cmd(*args, timeout=180)
        self.up_done = True
        return self

    def down(self, check=True):
        return self.cmd("down", check=check, timeout=120)

    def status(self):
        return self.json("status")

    def node(self, name):
        return next(n for n in self.status()["nodes"] if n["name"] == name)

    @property
    def kubeconfig(self):
        return self.status()["kubeconfig"]

    def project(self, name):
        self.cmd("project", "add", name)

    def pod(self, ref, node=None, labels=None, ports=()):
        """'ports': "NAME=NUMBER[/PROTO]"."""
        args = ["pod", "add", ref] + (["--node", node] if node else [])
        args += [f"--label={k}={v}" for k, v in (labels or {}).items()] + [f"--port={p}" for p in ports]
        return Pod(self, ref, self.json(*args))

    def delete_pod(self, ref):
        self.cmd("pod", "delete", ref)

    # --- clients ---
    def kubectl(self, *args, **kw):
        env = environment()
        env["KUBECONFIG"] = self.kubeconfig
        env["HOME"] = tempfile.gettempdir()
        return run(["kubectl", *args], env=env, **kw)

    def objects(self, plural, *args):
        return json.loads(self.kubectl("get", plural, "-o", "json", *args).stdout)["items"]

    def object(self, plural, name, *args):
        return json.loads(self.kubectl("get", plural, name, "-o", "json", *args).stdout)

    # --- inside ---
    def ns_name(self, host):
        return f"tenet-{self.name}-{host}"

    def ns(self, host, argv, **kw):
        return run(["ip", "netns", "exec", self.ns_name(host), *argv], **kw)

    def ns_popen(self, host, argv, **kw):
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.STDOUT)
        return subprocess.Popen(["ip", "netns", "exec", self.ns_name(host), *map(str, argv)], text=True,
                                errors="replace", **kw)

    def ovs_rundir(self, node):
        return self.node(node)["ovsRunDir"]

    def vsctl(self, node, *args):
        return self.ns(node, ["ovs-vsctl", f"--db=unix:{self.ovs_rundir(node)}/db.sock", *args]).stdout.strip()

    def ports(self, node):
        """{container: (port, number, row, address)} of the pods' ports in br0; spare ones are nobody's."""
        rows = json.loads(self.vsctl(node, "-f", "json", "--columns=name,ofport,_uuid,external_ids", "list",
                                     "interface"))["data"]
        ids = [(name, number, uuid[1], dict(x[1])) for name, number, uuid, x in rows]
        return {x["tenet-container"]: (name, number, uuid, x["tenet-ip"]) for name, number, uuid, x in ids
                if "tenet-container" in x}

    def pod_links(self, node):
        """Links of the node that lead to pods: ends of veth pairs, and other ends of ports with a pod's MAC."""
        pairs = re.findall(r"\d+: (veth[^@:]+)", self.ns(node, ["ip", "-o", "link"]).stdout)
        ends = os.path.dirname(self.node(node)["agentSocket"]) + "/ports.netns"
        if not os.path.exists(ends):
            return sorted(pairs)
        there = run(["nsenter", f"--net={ends}", "ip", "-o", "link"]).stdout
        return sorted(pairs + re.findall(r"\d+: (tp\d+x)@.*link/ether 0a:58:", there))

    def flows(self, node):
        """Flows of br0 without what changes by itself (counters, age)."""
        out = self.ns(node, ["ovs-ofctl", "-O", "OpenFlow14", "--no-stats", "--no-names", "dump-flows",
                             f"unix:{self.ovs_rundir(node)}/br0.mgmt"]).stdout
        return sorted(line.strip() for line in out.splitlines() if "table=" in line or "priority" in line)

    def agent_log(self, node):
        return pathlib.Path(self.node(node)["log"]).read_text(errors="replace")


def leftovers(name):
    """What of lab 'name' is still on this machine: namespaces, run directory, processes."""
    left = [p.name for p in pathlib.Path("/run/netns").glob(f"tenet-{name}-*")]
    left += [str(p) for p in pathlib.Path("/etc/netns").glob(f"tenet-{name}-*")]
    left += [str(p) for p in pathlib.Path("/run/tenet/lab").glob(name)]
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"/run/tenet/lab/{name}/" in (p / "cmdline").read_bytes().decode(errors="replace"):
                left.append(f"process {p.name}")
    return left


class Server:
    """A TCP or UDP echo server in a namespace, up when the constructor returns."""

    CODE = """
import socket, sys
kind = socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM
s = socket.socket(socket.AF_INET, kind)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[3], int(sys.argv[2])))
if sys.argv[1] == "tcp":
    s.listen(64)
print("ready", flush=True)
while True:
    if sys.argv[1] == "tcp":
        c, peer = s.accept()
        c.sendall(peer[0].encode())
        c.close()
    else:
        data, peer = s.recvfrom(2048)
        s.sendto(peer[0].encode(), peer)
"""

    def __init__(self, popen, proto, port, address="0.0.0.0"):
        self.proc = popen(["/usr/bin/python3", "-c", self.CODE, proto, port, address])
        assert self.proc.stdout.readline().strip() == "ready"

    def stop(self):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()


PROBE = """
import socket, sys
proto, timeout = sys.argv[1], float(sys.argv[2])
for target in sys.argv[3:]:
    host, port = target.rsplit(":", 1)
    seen = "-"
    for attempt in range(2):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM)
        s.settimeout(timeout)
        try:
            s.connect((host, int(port)))
            if proto == "udp":
                s.send(b"hello")
            seen = s.recv(64).decode() or "-"
            break
        except OSError:
            pass
        finally:
            s.close()
    print(target, seen, flush=True)
"""


def probe(pod, proto, targets, timeout=1.0):
    """{target: address the server saw us with, or None} for each "host:port", tried from the pod in turn."""
    out = pod.ns(["/usr/bin/python3", "-c", PROBE, proto, str(timeout), *targets], timeout=300).stdout
    seen = dict(line.split() for line in out.splitlines())
    return {t: (None if seen[t] == "-" else seen[t]) for t in targets}
