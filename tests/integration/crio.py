# SPDX-License-Identifier: Apache-2.0
"""A CRI-O of a test's own in the place of containerd, chosen by TENET_TEST_CRIO: the path of the program; pinns is beside it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

import containerd
import lab as lablib
import needs
from lab import run, wait_for

PROGRAM = os.environ.get("TENET_TEST_CRIO")
PAUSE = "localhost/pause:1"
# With "no", the runtime has no events, and its client lists everything each second.
EVENTS = os.environ.get("TENET_TEST_CRIO_EVENTS", "yes") != "no"
# With "yes", each sandbox has a process, as each of containerd's has.
INFRA = os.environ.get("TENET_TEST_CRIO_INFRA", "no") == "yes"

OF_THE_LAB = "`tenet lab` starts containerd itself"
EXIT_WHILE_IT_STARTS = "CRI-O 1.26 says for ever that a container runs which ends between its start's look at it and its watch of exits"
LEFT_OUT = {
    "test_kills.test_agent_and_runtime_killed_at_random": EXIT_WHILE_IT_STARTS,
    "test_lab_containers": OF_THE_LAB,
}
NO_PROCESS = "a sandbox has no process, as drop_infra_ctr is true; TENET_TEST_CRIO_INFRA=yes runs it"
LEFT_OUT_WITHOUT_INFRA = {
    "test_kubelet.test_a_lost_sandbox_is_made_anew": NO_PROCESS,
    "test_runtime.test_a_sandbox_whose_process_dies_is_told": NO_PROCESS,
}


def left_out(module, test):
    """Why a test does not run on CRI-O; None: it runs."""
    table = LEFT_OUT if INFRA else {**LEFT_OUT, **LEFT_OUT_WITHOUT_INFRA}
    return table.get(module) or table.get(f"{module}.{test}")


def needed():
    """Ends the test, with the reason, where CRI-O cannot run."""
    for program in ("conmon", "podman"):
        needs.program(program)


def is_restricted():
    """Whether CAP_SYS_RESOURCE is lacking."""
    status = pathlib.Path("/proc/self/status").read_text()
    return not int(next(line for line in status.splitlines() if line.startswith("CapBnd")).split()[1], 16) >> 24 & 1


class Crio(containerd.Containerd):
    """The interface of Containerd.  Sandboxes and containers are read from CRI-O's storage, processes from the OCI runtime."""

    NAME = "cri-o"
    IMAGES = "vfs-images"  # the folder of ImageFsInfo
    GROUP = "crio-{}"

    def __init__(self, folder, runtime="runc", netns=None):
        # conmon makes unix sockets in it, whose paths may have 107 characters; podman takes 50 characters for its own.
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="tc-"))
        super().__init__(folder, runtime, netns)

    def configure(self):
        folder = self.folder
        for name in ("cni-cache", "config.d", "exits"):
            (folder / name).mkdir()
        runtime = shutil.which(self.runtime)
        (folder / "oci").write_text(OCI.format(runtime=runtime) if is_restricted() else f'#!/bin/sh\nexec {runtime} "$@"\n')
        (folder / "oci").chmod(0o755)
        (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        (folder / "registries.conf").write_text('[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n')
        (folder / "crio.conf").write_text(f"""
[crio]
root = "{folder}/root"
runroot = "{self.run}/storage"
storage_driver = "vfs"
log_dir = "{folder}/pod-logs"
version_file = "{folder}/state/version"
version_file_persist = "{folder}/version"
clean_shutdown_file = "{folder}/clean.shutdown"
[crio.api]
listen = "{self.socket}"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
default_runtime = "{self.runtime}"
conmon = "{shutil.which('conmon')}"
conmon_cgroup = "pod"
cgroup_manager = "cgroupfs"
log_level = "{os.environ.get('TENET_TEST_CRIO_LOG', 'info')}"
container_exits_dir = "{folder}/exits"
container_attach_socket_dir = "{self.run}/attach"
namespaces_dir = "{folder}/state/ns"
pinns_path = "{pathlib.Path(PROGRAM).parent / 'pinns'}"
drop_infra_ctr = {str(not INFRA).lower()}
enable_pod_events = {str(EVENTS).lower()}
hooks_dir = []
irqbalance_config_file = ""
[crio.runtime.runtimes.{self.runtime}]
runtime_path = "{folder}/oci"
runtime_root = "{folder}/state/oci"
runtime_type = "oci"
[crio.image]
pause_image = "{PAUSE}"
pause_command = ""
signature_policy = "{folder}/policy.json"
insecure_registries = ["127.0.0.0/8"]
[crio.network]
network_dir = "{folder}/net.d"
plugin_dirs = ["{containerd.PLUGINS}"]
""")

    def holder_commands(self):
        # The results of CNI plug-ins stay over a start of the host, and are no other CRI-O's.
        return f"mkdir -p /var/lib/cni && mount --bind {self.folder}/cni-cache /var/lib/cni"

    def command(self):
        return ["env", f"CONTAINERS_REGISTRIES_CONF={self.folder}/registries.conf", PROGRAM, "--config", self.folder / "crio.conf",
                "--config-dir", self.folder / "config.d"]

    def start(self):
        for path in (self.folder / "state/ns", self.run / "attach"):
            path.mkdir(parents=True, exist_ok=True)
        super().start()

    def answers(self):
        return self.socket.exists() and run(["curl", "-sf", "--unix-socket", self.socket, "http://crio/info"], check=False).returncode == 0

    def load_first(self):
        folder = self.folder / "pause"
        folder.mkdir()
        program = lablib.BUILD / "src/pause/tenet-pause"
        self.load(containerd.packed(folder, PAUSE, containerd.program_layer(folder, program, "pause"), Entrypoint=["/pause"]))
        super().load_first()

    # ---- images ----

    def podman(self, *args):
        """podman on the storage of CRI-O."""
        options = ["--root", self.folder / "root", "--runroot", self.run / "storage", "--storage-driver", "vfs",
                   "--tmpdir", self.folder / "podman", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
        return run(self.inside(["podman", *options, *args]))

    def load(self, archive):
        self.podman("load", "-q", "-i", archive)

    def tag(self, source, target):
        self.podman("tag", source, target)

    def images(self):
        found = self.folder / "root/vfs-images/images.json"
        return {name for image in json.loads(found.read_text()) for name in image.get("names", [])}

    # ---- sandboxes and containers ----

    def records(self):
        """What the storage has of them."""
        folder = self.folder / "root/vfs-containers"
        files = [folder / name for name in ("containers.json", "volatile-containers.json")]
        return [record for f in files if f.exists() for record in json.loads(f.read_text())]

    def containers(self):
        return [c["id"] for c in self.records()]

    def of(self, pod, container=None):
        found = {i: self.labels(i) for i in self.containers()}
        return [i for i, labels in found.items() if labels.get("io.kubernetes.pod.name") == pod and (
            container is None or labels.get("io.kubernetes.container.name") == container)]

    def labels(self, ident):
        try:
            spec = json.loads((self.folder / "root/vfs-containers" / ident / "userdata/config.json").read_text())
        except FileNotFoundError:
            return {}
        return json.loads(spec["annotations"]["io.kubernetes.cri-o.Labels"])

    def sandbox(self, pod):
        return next(i for i in self.of(pod) if i in self.sandboxes())

    def sandboxes(self):
        return {c["id"] for c in self.records() if json.loads(c["metadata"])["pod-id"] == c["id"]}

    def oci(self, *args, check=True):
        return run(self.inside([self.runtime, "--root", self.folder / "state/oci", *args]), check=check)

    def pid(self, ident):
        """Of the container's first process; 0: it does not run."""
        r = self.oci("state", ident, check=False)
        state = json.loads(r.stdout) if r.returncode == 0 else {}
        return state["pid"] if state.get("status") == "running" else 0

    def exec(self, ident, argv, check=True):
        return self.oci("exec", ident, "/bin/busybox", *argv, check=check)

    def oci_state(self):
        return self.folder / "state/oci"

    # ---- ends ----

    def monitors(self):
        return self.processes(b"conmon", str(self.folder).encode())

    def networks(self):
        folder = self.folder / "state/ns/netns"
        return [p.name for p in folder.iterdir()] if folder.exists() else []

    def stop(self):
        super().stop()
        shutil.rmtree(self.run, ignore_errors=True)


# Without CAP_SYS_RESOURCE a process may not lower its oom_score_adj, and CRI-O has no setting like containerd's
# restrict_oom_score_adj.  It also gives privileged containers every capability, whether it has them itself or not.
OCI = """#!/bin/sh
bundle= previous=
for word; do
    [ "$previous" != --bundle ] || bundle=$word
    previous=$word
done
if [ -n "$bundle" ] && [ -f "$bundle/config.json" ]; then
    sed -z -i 's/"oomScoreAdj": *-[0-9]*/"oomScoreAdj": 0/; s/"CAP_SYS_RESOURCE",\\s*//g; s/,\\s*"CAP_SYS_RESOURCE"//g' \\
        "$bundle/config.json"
fi
exec {runtime} "$@"
"""
