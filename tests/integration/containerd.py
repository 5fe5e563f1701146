# SPDX-License-Identifier: Apache-2.0
"""A containerd of a test's own, in namespaces of its own, with images made here; and src/runtime/runtime.h driven against it."""
import errno
import hashlib
import io
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import tarfile
import threading
import time

import pytest

import lab as lablib
import needs
from lab import run, wait_for

PLUGINS = "/usr/lib/cni"
IMAGE = "localhost/busybox:1"
APPLETS = ("sh", "sleep", "cat", "echo", "id", "true", "false", "ls", "env", "httpd", "wget", "dd", "kill", "hostname", "head", "ps")


def needed():
    """Ends the test, with the reason, where no container can be run."""
    for program, package in (("containerd", None), ("runc", None), ("busybox", "busybox-static")):
        needs.program(program, package)
    if os.environ.get("TENET_TEST_CRIO"):
        import crio
        crio.needed()
    root = pathlib.Path("/sys/fs/cgroup")
    unified = (root / "cgroup.controllers").exists()
    probe = (root if unified else root / "pids") / f"tenet-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as e:
        pytest.skip(f"no container can be run where no cgroup can be made: {e}")


def left(lab, node=None):
    """Processes, mounts, cgroups and files of the lab, or of one node."""
    path, group, found = f"/{lab.name}/nodes/{node}/" if node else f"/{lab.name}/", f"tenet-{lab.name}/{node or ''}", []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if not (proc / "cmdline").read_bytes():
                continue  # it has ended, and this machine's init has not reaped it yet
            if group.encode() in (proc / "cgroup").read_bytes() or path.encode() in (proc / "cmdline").read_bytes():
                found.append((proc.name, (proc / "cmdline").read_bytes()))
        except OSError:
            continue
    found += [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if path in line]
    places = [pathlib.Path("/run/tenet/lab") / path[1:], pathlib.Path("/var/lib/tenet/lab") / lab.name / (node or "")]
    root = pathlib.Path("/sys/fs/cgroup")
    return found + [p for p in places if p.exists()] + [*root.glob(group), *root.glob(f"*/{group}")]


def layer(folder):
    path = folder / "layer.tar"
    with tarfile.open(path, "w") as t:
        for name in ("bin", "tmp", "proc", "sys", "dev", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            t.addfile(entry)
        t.add(shutil.which("busybox"), "bin/busybox", filter=lambda i: setattr(i, "mode", 0o755) or i)
        for applet in APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, "busybox", 0o777
            t.addfile(entry)
        for name, text in (("etc/passwd", "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n"), ("etc/known", "known content\n")):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            t.addfile(entry, io.BytesIO(text.encode()))
    return path


def program_layer(folder, program, name):
    """A layer with one program."""
    path = folder / "layer.tar"
    with tarfile.open(path, "w") as t:
        t.add(program, name, filter=lambda i: setattr(i, "mode", 0o755) or i)
    return path


def archive(folder, name=IMAGE, **settings):
    """An image of busybox, with these settings ("Entrypoint", "User")."""
    return packed(folder, name, layer(folder), **{"Cmd": ["/bin/sleep", "3600"], **settings})


def packed(folder, name, layer_file, **settings):
    """An image of one layer, in the form of "docker save"."""
    data = layer_file.read_bytes()
    config = json.dumps({
        "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"), "os": "linux",
        "config": {"Env": ["PATH=/bin"], **settings},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]}}).encode()
    file = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": file, "RepoTags": [name], "Layers": ["l.tar"]}]).encode()
    path = folder / "image.tar"
    with tarfile.open(path, "w") as t:
        for file_name, content in ((file, config), ("l.tar", data), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(file_name)
            entry.size = len(content)
            t.addfile(entry, io.BytesIO(content))
    return path


def start(folder, runtime="runc", netns=None):
    """The runtime that the tests are for: a containerd, or the CRI-O that TENET_TEST_CRIO names."""
    if os.environ.get("TENET_TEST_CRIO"):
        import crio
        return crio.Crio(folder, runtime, netns)
    return Containerd(folder, runtime, netns)


class Containerd:
    """Runs in a network and a mount namespace of its own; 'stop' ends its shims and unmounts what they had.

    'netns' is the path of the network namespace, if it is not to make one."""

    NAME = "containerd"
    IMAGES = "native"
    GROUP = "{}"  # the control group of a container in that of its pod

    def __init__(self, folder, runtime="runc", netns=None):
        self.folder, self.socket, self.cgroup, self.runtime, self.netns = folder, folder / "c.sock", folder.name, runtime, netns
        self.endpoint = f"unix://{self.socket}"
        (folder / "net.d").mkdir()
        (folder / "net.d" / "10-test.conflist").write_text(json.dumps({
            "cniVersion": "1.0.0", "name": "test", "plugins": [
                {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipam": {
                    "type": "host-local", "dataDir": str(folder / "ipam"), "ranges": [[{"subnet": "10.77.0.0/16"}]]}}]}))
        self.configure()
        self.log = open(folder / "log", "w+")
        self.hold()
        self.proc = None
        try:
            self.start()
            self.load_first()
        except BaseException:
            self.stop()
            raise

    def configure(self):
        folder = self.folder
        (folder / "config.toml").write_text(f"""
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
address = "{self.socket}"
[ttrpc]
address = "{folder}/t.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{IMAGE}"
restrict_oom_score_adj = true
disable_apparmor = true
disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{folder}/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{self.runtime}"
""")

    def holder_commands(self):
        return "true"

    def command(self):
        return ["containerd", "--config", self.folder / "config.toml"]

    def answers(self):
        return self.ctr("version", check=False).returncode == 0

    def load_first(self):
        self.load(archive(self.folder))

    def hold(self):
        """Makes its namespaces."""
        # crun 1.8 refuses a machine with both versions of cgroups mounted.
        alone = "{ ! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified; } && " if self.runtime == "crun" else ""
        enter = ["nsenter", f"--net={self.netns}", "unshare"] if self.netns else ["unshare", "--net"]
        self.holder = subprocess.Popen([*enter, "--mount", "--propagation", "private", "sh", "-c",
                                        f"{alone}ip link set lo up && mkdir -p /run/netns && mount -t tmpfs none /run/netns && "
                                        f"{self.holder_commands()} && echo ready && exec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"

    def inside(self, argv):
        return ["nsenter", "-t", str(self.holder.pid), "--net", "--mount", *map(str, argv)]

    def start(self):
        self.proc = subprocess.Popen(self.inside(self.command()), stdout=self.log, stderr=self.log)

        def look():
            assert self.proc.poll() is None, (self.folder / "log").read_text()[-4000:]
            return self.answers()
        wait_for(self.NAME, look)

    def kill(self):
        """As a crash: the containers and their monitors go on."""
        self.proc.kill()
        self.proc.wait()

    # ---- by the runtime alone, without CRI ----

    def ctr(self, *args, check=True):
        return run(["ctr", "-a", self.socket, "-n", "k8s.io", *args], check=check)

    def load(self, file):
        """Imports an archive of images."""
        self.ctr("images", "import", "--snapshotter", "native", file)

    def tag(self, source, target):
        self.ctr("images", "tag", source, target)

    def images(self):
        """Their names."""
        return set(self.ctr("images", "ls", "-q").stdout.split())

    def containers(self):
        """The ids of containers and sandboxes."""
        return self.ctr("containers", "ls", "-q").stdout.split()

    def of(self, pod, container=None):
        """The ids of a pod's containers and sandboxes, or of its containers with this name."""
        more = [f'labels."io.kubernetes.container.name"=={container}'] if container else []
        return self.ctr("containers", "ls", "-q", ",".join([f'labels."io.kubernetes.pod.name"=={pod}', *more])).stdout.split()

    def labels(self, ident):
        return json.loads(self.ctr("containers", "info", ident).stdout)["Labels"]

    def sandbox(self, pod):
        """The id of a pod's only sandbox."""
        return next(i for i in self.of(pod) if self.labels(i).get("io.cri-containerd.kind") == "sandbox")

    def pid(self, ident):
        """Of the container's first process; 0: it does not run."""
        lines = [line.split() for line in self.ctr("tasks", "ls").stdout.splitlines()]
        return next((int(pid) for i, pid, state in lines if i == ident and state == "RUNNING"), 0)

    def slay(self, ident):
        """Kills the first process of a container or sandbox."""
        pid = self.pid(ident)
        assert pid, f"{ident} does not run"
        os.kill(pid, signal.SIGKILL)

    def exec(self, ident, argv, check=True):
        """Runs a command of busybox in a container."""
        return self.ctr("tasks", "exec", "--exec-id", f"t{time.monotonic_ns()}", ident, "/bin/busybox", *argv, check=check)

    def oci_state(self):
        """The folder in which runc or crun keeps what it knows of containers."""
        return pathlib.Path("/run/containerd/runc/k8s.io")

    # ---- ends ----

    @staticmethod
    def processes(name, argument):
        """The ids of processes whose program's name has 'name', and whose arguments have 'argument'."""
        found = []
        for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                argv = p.read_bytes().split(b"\0")
            except OSError:
                continue
            if name in argv[0] and argument in b" ".join(argv):
                found.append(int(p.parent.name))
        return found

    def monitors(self):
        """The ids of the shims, by the address in their arguments."""
        return self.processes(b"shim", str(self.socket).encode())

    def networks(self):
        """The names of the network namespaces of sandboxes."""
        return run(self.inside(["ls", "/run/netns"])).stdout.split()

    def stop(self):
        self.proc.terminate()
        self.proc.wait(30)
        for pid in self.monitors():
            # The monitor's children are containers.
            tree = [pid, *descendants(pid)]
            for one in tree:
                try:
                    os.kill(one, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        # The runtimes leave the cgroups of sandboxes behind, in every hierarchy.
        for path in [*pathlib.Path("/sys/fs/cgroup").glob(self.cgroup), *pathlib.Path("/sys/fs/cgroup").glob(f"*/{self.cgroup}")]:
            for one in [*sorted(path.rglob("*/"), key=lambda p: -len(p.parts)), path]:
                wait_for(f"{one} to be empty", lambda one=one: is_removed(one))  # those who were killed end a little later
        self.log.close()


def is_removed(group):
    try:
        group.rmdir()
    except OSError as e:
        assert e.errno == errno.EBUSY, e
        return False
    return True


def descendants(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found += [int(child), *descendants(int(child))]
        except OSError:
            continue
    return found


class Driver:
    """tests/support/drive_runtime.c: calls by name, and the events that came."""

    def __init__(self, endpoint, kind="cri", program=lablib.BUILD / "tests/unit/runtime/drive_runtime"):
        self.proc = subprocess.Popen([program, kind, endpoint], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, env=lablib.environment())
        self.answers, self.events, self.next, self.lock = {}, queue.Queue(), 0, threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for text in self.proc.stdout:
            line = json.loads(text)
            line["at"] = time.monotonic()
            if "event" in line:
                self.events.put(line)
                continue
            with self.lock:
                self.answers[line["id"]] = line
                self.lock.notify_all()

    def begin(self, call, **arguments):
        self.next += 1
        self.proc.stdin.write(json.dumps({"id": self.next, "call": call, **arguments}) + "\n")
        self.proc.stdin.flush()
        return self.next

    def end(self, number, deadline=lablib.DEADLINE):
        with self.lock:
            assert self.lock.wait_for(lambda: number in self.answers, deadline), "no answer"
            return self.answers.pop(number)

    def __call__(self, call, **arguments):
        """The answer of a call that must succeed."""
        answer = self.end(self.begin(call, **arguments))
        assert answer["error"] == 0, (call, answer)
        return answer

    def fails(self, call, **arguments):
        """(errno's name, text) of a call that must fail."""
        answer = self.end(self.begin(call, **arguments))
        assert answer["error"] < 0, (call, answer)
        return errno.errorcode[-answer["error"]], answer.get("text", "")

    def event(self, what, deadline=lablib.DEADLINE):
        """The next event for which 'what(event)' is true; those before it are dropped."""
        end = time.monotonic() + deadline
        while True:
            try:
                e = self.events.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError("the event did not come") from None
            if what(e):
                return e

    def drop_events(self):
        while not self.events.empty():
            self.events.get()

    def close(self):
        self.proc.stdin.close()
        status = self.proc.wait(30)
        self.reader.join(10)
        self.proc.stdout.close()
        assert status == 0, f"drive_runtime ended with {status}"
