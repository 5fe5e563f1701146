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
import signal
import subprocess
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TENET_BUILD", ROOT / "build"))
TENET = str(BUILD / "src/cli/tenet")
CNI = str(BUILD / "src/cni/tenet-cni")
SLOWER = int(os.environ.get("TENET_SLOWER", "1"))  # than machines are: tools/check-kernels interprets some
DEADLINE = 60.0 * SLOWER
# What carries packets in labs whose test does not say: TENET_DATAPATH is ovs, ebpf or mixed.
DATAPATHS = {"ovs": "ovs", "ebpf": "ebpf", "mixed": "ebpf,ovs"}
DATAPATH = os.environ.get("TENET_DATAPATH", "ovs")
# Of Open vSwitch: netdev, its own, or system, the kernel's.
DATAPATH_TYPE = os.environ.get("TENET_DATAPATH_TYPE", "netdev")
# Maps that the agent fills, and no packet changes.
MAPS = ("pods", "pod_cache", "ports", "routes", "subnets", "vteps", "services", "backends", "serving", "settings", "classes", "blocks",
        "pairs", "port_sets")

# What the datapath ebpf makes use of where the kernel has it (docs/ebpf.md), and since when that is so.
SINCE = {"tcx": (6, 6), "scrub": (6, 15), "encap": (5, 13), "redirect_peer": (5, 10), "ringbuf": (5, 8)}
KERNEL = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))

_counter = itertools.count()
_sanitizer_dir = tempfile.mkdtemp(prefix="tenet-sanitizer-")


# More options of AddressSanitizer, which begin with ":".
asan_options = ""


def environment():
    """Sanitizer reports of daemons go to files that the session checks at its end."""
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = f"log_path={_sanitizer_dir}/asan:detect_leaks=1:abort_on_error=0{asan_options}"
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


def map_rows(pin):
    """[(key, value)] of a map of the datapath ebpf, as bytes."""
    dump = json.loads(run(["bpftool", "-j", "map", "dump", "pinned", pin]).stdout)
    # An entry that went during the dump has an error for a value.
    return [tuple([int(x, 16) for x in row[part]] for part in ("key", "value"))
            for row in dump if isinstance(row["value"], list)]


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


def kernel_has(feature, without=""):
    """Whether an agent whose 'ebpf.without' is this has to find it."""
    return KERNEL >= SINCE[feature] and feature not in without.split(",")


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
        self.options = {"datapath": DATAPATHS[DATAPATH], "datapath_type": DATAPATH_TYPE, **options}
        self.up_done = False

    # --- the command ---
    def cmd(self, *args, **kw):
        return run([TENET, "lab", "--name", self.name, *args], **kw)

    def json(self, *args, **kw):
        return json.loads(self.cmd("-o", "json", *args, **kw).stdout)

    def up(self):
        args = ["up"]
        options = dict(self.options)
        if not options.pop("containers", False):
            args.append("--no-containers")
        for key, value in options.items():
            args += ["--" + key.replace("_", "-")] + ([str(value)] if value != "" else [])
        self.cmd(*args, timeout=3 * DEADLINE)
        self.up_done = True
        return self

    def down(self, check=True):
        # Whoever builds meanwhile must not keep a lab from being removed: nobody else would.
        wait_for("the program", lambda: os.access(TENET, os.X_OK))
        return self.cmd("down", check=check, timeout=2 * DEADLINE)

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
        return run(["kubectl", *args], env=self.kubectl_environment(), **kw)

    def kubectl_popen(self, *args):
        """A kubectl that goes on, with its output as lines."""
        return subprocess.Popen(["kubectl", *args], env=self.kubectl_environment(), stdout=subprocess.PIPE, text=True)

    def kubectl_environment(self):
        return {**environment(), "KUBECONFIG": self.kubeconfig, "HOME": tempfile.gettempdir()}

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

    def folder(self, node):
        """What belongs to the node, its agent's configuration among it."""
        return pathlib.Path("/run/tenet/lab") / self.name / "nodes" / node

    def has_ovs(self, node):
        """By its datapath; nodes take those of the list in turn."""
        kinds = self.options["datapath"].split(",")
        return kinds[(int(node.removeprefix("node")) - 1) % len(kinds)] == "ovs"

    def ovs_rundir(self, node):
        return self.folder(node) / "ovs"

    def vsctl(self, node, *args):
        return self.ns(node, ["ovs-vsctl", f"--db=unix:{self.ovs_rundir(node)}/db.sock", *args]).stdout.strip()

    def records(self, node):
        """{container: what the datapath knows of a pod, by the names of its records}."""
        if not self.has_ovs(node):
            records = [json.loads(p.read_text()) for p in (self.folder(node) / "run/pods").glob("*.json")]
            return {r["containerID"]: r for r in records}
        rows = json.loads(self.vsctl(node, "-f", "json", "--columns=external_ids", "list", "interface"))["data"]
        all_ids = [dict(ids[1]) for ids, in rows]
        return {x["tenet-container"]: {"namespace": x["tenet-namespace"], "name": x["tenet-pod"], "ip": x["tenet-ip"],
                                       "vnid": int(x["tenet-vnid"]), "link": x["tenet-link"]}
                for x in all_ids if "tenet-container" in x}

    def ports(self, node):
        """{container: (port, number, row, address)} of the pods' ports: in br0, where spare ones are nobody's; else the
        links of the pods, and the files about them."""
        if not self.has_ovs(node):
            links = {x["ifname"]: x["ifindex"] for x in json.loads(self.ns(node, ["ip", "-j", "link"]).stdout)}
            return {c: (r["link"], links.get(r["link"]), r["containerID"], r["ip"]) for c, r in self.records(node).items()}
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

    def pins(self, node):
        """Links whose programs are held by a pin: with tcx, and if they stay."""
        return {p.name for p in (self.folder(node) / "run/bpf/links").glob("*")}

    def has_upgraded_hooks(self, node):
        """Whether the links of all pods of a node with the datapath ebpf have been upgraded to tcx, where the kernel has it."""
        return not kernel_has("tcx") or {r["link"] for r in self.records(node).values() if not r.get("bandwidth")} <= self.pins(node)

    def maps(self, node, name):
        """Entries of a map of the datapath ebpf, in words."""
        items, after = [], ""
        while after is not None:
            query = urllib.parse.urlencode({"name": f"tenet_{name}", **({"after": after} if after else {})})
            out = run(["curl", "-sf", "--unix-socket", self.folder(node) / "run/agent.sock", f"http://node/v1/maps?{query}"])
            answer = json.loads(out.stdout)["map"]
            items += answer["items"]
            after = answer.get("next")
        return items

    def without_pod(self, node, ip):
        """What to ask of bpftool, a map each, so that a node with the datapath ebpf does not know the pod."""
        cached = [["update", "pod_cache", "key", *i["key"]["index"].to_bytes(4, "little"), "value", *bytes(32)]
                  for i in self.maps(node, "pod_cache") if i["key"]["address"] == ip]
        return [*cached, ["delete", "pods", "key", *ip.split(".")]]

    def change_maps(self, node, changes):
        for what, name, *words in changes:
            run(["bpftool", "map", what, "pinned", self.folder(node) / f"run/bpf/maps/tenet_{name}", *map(str, words)])

    def rules(self, node):
        """What packets are judged by, without what changes by itself: flows of br0, or entries of maps, a line each."""
        if self.has_ovs(node):
            return self.flows(node)
        entries = [(name, {"key": i["key"], "value": i["value"]}) for name in MAPS for i in self.maps(node, name)]
        for name, entry in entries:
            # Who watches, generations, and ways to nodes, which follow the host's routes and neighbours for some time each.
            for changing in ("watched", "since", "directUntil", *(("link", "nextHop", "mtu") if name in ("routes", "subnets") else ())):
                entry["value"].pop(changing, None)
        return sorted(f"{name} {json.dumps(entry)}" for name, entry in entries)

    def serves(self, node, ip):
        """The rules by which pods of the node reach a service at this address."""
        if self.has_ovs(node):
            return [f for f in self.flows(node) if f"nw_dst={ip}," in f]
        return [i for i in self.maps(node, "services") if i["key"]["service"] == ip]

    def plugin_is_applied(self, node, multitenant):
        """Whether packets are judged by VNID there, or not."""
        if not self.has_ovs(node):
            return self.maps(node, "settings")[0]["value"]["compareVNIDs"] == multitenant
        by_vnid = [f for f in self.flows(node) if "table=80" in f and
                   re.search(r"reg0=0x[1-9a-f][0-9a-f]*,reg1=0x[1-9a-f]", f)]
        return bool(by_vnid) == multitenant

    def vxlan_port(self, node):
        """That the node's device of tunnels has."""
        if self.has_ovs(node):
            return int(re.search(r'dst_port="(\d+)"', self.vsctl(node, "get", "interface", "vxlan0", "options"))[1])
        link = self.ns(node, ["ip", "-d", "link", "show", "vxlan_tenet"], check=False).stdout
        return int(re.search(r"dstport (\d+)", link)[1]) if link else None  # it is made anew for another port

    def take_away_datapath(self, node):
        """What an administrator does to change the datapath of a node whose agent is stopped (docs/ebpf.md)."""
        if self.has_ovs(node):
            self.vsctl(node, "del-br", "br0")
        else:
            for link in ("tun0", "vxlan_tenet"):
                self.ns(node, ["ip", "link", "del", link])
            run(["umount", self.folder(node) / "run/bpf"])

    def power_off(self, node):
        """The agent and Open vSwitch end at once, and what a host forgets is forgotten, but its database."""
        os.kill(self.node(node)["pid"], signal.SIGKILL)
        if self.has_ovs(node):
            self.cmd("ovs", "kill", node)
        else:
            self.take_away_datapath(node)
            shutil.rmtree(self.folder(node) / "run")

    def power_on(self, node):
        if self.has_ovs(node):
            self.cmd("ovs", "start", node)
        self.cmd("node", "start", node, timeout=180)

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
