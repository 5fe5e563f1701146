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
from lab import run, wait_for

PLUGINS = "/usr/lib/cni"
IMAGE = "localhost/busybox:1"
APPLETS = ("sh", "sleep", "cat", "echo", "id", "true", "false", "ls", "env", "httpd", "wget", "dd", "kill", "hostname", "head", "ps")


def needed():
    """Skips, with the reason, where no container can be run."""
    for program in ("containerd", "runc", "busybox"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
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


def archive(folder, name=IMAGE, **settings):
    """An image of busybox, in the form of "docker save", with these settings ("Entrypoint", "User")."""
    data = layer(folder).read_bytes()
    config = json.dumps({
        "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"), "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "3600"], "Env": ["PATH=/bin"], **settings},
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


class Containerd:
    """Runs in a network and a mount namespace of its own; 'stop' ends its shims and unmounts what they had."""

    def __init__(self, folder, runtime="runc"):
        self.folder, self.socket, self.cgroup, self.runtime = folder, folder / "c.sock", folder.name, runtime
        self.endpoint = f"unix://{self.socket}"
        (folder / "net.d").mkdir()
        (folder / "net.d" / "10-test.conflist").write_text(json.dumps({
            "cniVersion": "1.0.0", "name": "test", "plugins": [
                {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipam": {
                    "type": "host-local", "dataDir": str(folder / "ipam"), "ranges": [[{"subnet": "10.77.0.0/16"}]]}}]}))
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
BinaryName = "{runtime}"
""")
        self.log = open(folder / "log", "w+")
        self.hold()
        self.proc = None
        self.start()
        run(["ctr", "-a", self.socket, "-n", "k8s.io", "images", "import", "--snapshotter", "native", archive(folder)])

    def hold(self):
        """Makes its namespaces."""
        # crun 1.8 refuses a machine with both versions of cgroups mounted.
        alone = "{ ! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified; } && " if self.runtime == "crun" else ""
        self.holder = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c",
                                        f"{alone}ip link set lo up && mkdir -p /run/netns && mount -t tmpfs none /run/netns && echo ready && exec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"

    def start(self):
        self.proc = subprocess.Popen(["nsenter", "-t", str(self.holder.pid), "--net", "--mount",
                                      "containerd", "--config", self.folder / "config.toml"], stdout=self.log, stderr=self.log)
        wait_for("containerd", lambda: run(["ctr", "-a", self.socket, "version"], check=False).returncode == 0)

    def kill(self):
        """As a crash: its shims and their containers go on."""
        self.proc.kill()
        self.proc.wait()

    def shims(self):
        """Their process ids, by the address in their arguments."""
        found = []
        for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                argv = p.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"shim" in argv[0] and str(self.socket).encode() in b" ".join(argv):
                found.append(int(p.parent.name))
        return found

    def stop(self):
        self.proc.terminate()
        self.proc.wait(30)
        for pid in self.shims():
            # The shim's children are the containers of its pod.
            tree = [pid, *descendants(pid)]
            for one in tree:
                try:
                    os.kill(one, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        # containerd leaves the cgroups of sandboxes behind, in every hierarchy.
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
