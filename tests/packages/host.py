# SPDX-License-Identifier: Apache-2.0
"""A Debian 12 with systemd as its first process, in namespaces of its own (systemd-nspawn), without network.

tools/package makes the system (`host`) and the packages (`deb`, `previous`).  A Host is a copy of that system; commands run
in it as its root.  The machine's own systemd, cgroup version and network do not matter.  What differs from a real host: the
kernel is this machine's, and its clock cannot be set.
"""
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from lab import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build-packages"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
UNIFIED = (CGROUPS / "cgroup.controllers").exists()
PACKAGES = ("tenet", "tenet-master", "tenet-node", "tenet-kubelet")
BOOT_S = 120
ASKS_FOR_REBOOT = 133  # exit status of systemd-nspawn with --keep-unit

# nspawn wants /run to be a tmpfs.  With cgroups of version 1 the system gets a group of its own in each hierarchy.
START = """
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /run
if [ "$unified" = no ]; then
    for group in /sys/fs/cgroup/*/; do
        mountpoint -q "$group" || continue
        mkdir -p "$group$name"
        for file in cpuset.cpus cpuset.mems; do
            [ ! -e "$group$file" ] || cat "$group$file" >"$group$name/$file"
        done
        echo $$ >"$group$name/cgroup.procs"
    done
    export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=0
fi
exec systemd-nspawn --quiet --directory="$root" --boot --register=no --keep-unit --private-network --machine="$name" \\
    --capability=all --drop-capability=CAP_SYS_TIME,CAP_SYS_MODULE \\
    --system-call-filter="@known ~@clock ~@module ~@raw-io ~@swap" --console=pipe --link-journal=no \\
    --bind=/dev/net/tun --bind=/dev/fuse
"""

# What systemd does as the first process of a host, and leaves in a container: mounts are shared, cgroups are writable.
AS_A_HOST = """
[Unit]
DefaultDependencies=no
Before=local-fs-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mount --make-rshared /
ExecStart=-/bin/sh -c 'for d in /sys/fs/cgroup/*/; do ! mountpoint -q $$d || mount -o remount,bind,rw $$d; done'
"""


def version_of(text):
    return re.search(r"^\s*version: '([^']+)'", text, re.M)[1]


def versions():
    """(this version, the one before it), as packages name them."""
    commit = (ROOT / "packaging/previous-release").read_text().split()[0]
    before = subprocess.run(["git", "show", f"{commit}:meson.build"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
    return f"{version_of((ROOT / 'meson.build').read_text())}-1", f"{version_of(before)}-1"


def debs(version):
    """The packages of a version, without those of debug symbols."""
    return [next((BUILT / version.split("-")[0]).glob(f"{p}_{version}_*.deb")) for p in PACKAGES]


def removed(group):
    """Removes a cgroup and those below it; false while one has a process, which may have ended a moment ago."""
    try:
        for folder in [*sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True), group]:
            folder.rmdir()
    except OSError as e:
        if e.errno != errno.EBUSY:
            raise
        return False
    return True


class Host:
    count = 0

    def __init__(self):
        Host.count += 1
        self.name = f"tenet-host-{os.getpid()}-{Host.count}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=self.name, dir=BUILT))
        self.root = self.folder / "root"
        subprocess.run(["cp", "-a", "--reflink=auto", BUILT / "host", self.root], check=True)
        self.prepare()
        self.process = None
        self.kubeconfig = "/etc/tenet/node.kubeconfig"

    def prepare(self):
        """A link with an address and a default route, as a host has them; and apt's only source is a folder."""
        (self.root / "etc/network/interfaces.d/eth0").write_text(
            "auto eth0\niface eth0 inet static\n  pre-up ip link add eth0 type veth peer name uplink; ip link set uplink up\n  address 192.0.2.11/24\n"
            "  gateway 192.0.2.1\n")
        units = self.root / "etc/systemd/system"
        # A container whose first process ignores SIGTERM would keep the system from going down for a minute and a half.
        (self.root / "etc/systemd/system.conf.d").mkdir()
        (self.root / "etc/systemd/system.conf.d/stop.conf").write_text("[Manager]\nDefaultTimeoutStopSec=10s\n")
        (units / "as-a-host.service").write_text(AS_A_HOST)
        (units / "sysinit.target.wants").mkdir(exist_ok=True)
        (units / "sysinit.target.wants/as-a-host.service").symlink_to("../as-a-host.service")
        (self.root / "etc/hostname").write_text("node1\n")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n192.0.2.11 node1\n")
        (self.root / "etc/resolv.conf").unlink(missing_ok=True)
        (self.root / "etc/resolv.conf").write_text("nameserver 192.0.2.1\n")
        (self.root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/srv/repository ./\n")
        (self.root / "etc/apt/apt.conf.d/90test").write_text('APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "true";\n')
        for file in (self.root / "etc/apt/sources.list.d").iterdir():
            file.unlink()
        shutil.rmtree(self.root / "var/lib/apt/lists", ignore_errors=True)
        (self.root / "srv/repository").mkdir(parents=True)
        for deb in (BUILT / "pool").glob("*.deb"):
            self.offer(deb)

    def offer(self, *files):
        """Adds packages to apt's source; apt sees them after index()."""
        for file in files:
            shutil.copy(file, self.root / "srv/repository" / file.name)

    def withdraw(self, *files):
        for file in files:
            (self.root / "srv/repository" / file.name).unlink()

    def index(self):
        folder = self.root / "srv/repository"
        text = subprocess.run(["apt-ftparchive", "packages", "."], cwd=folder, check=True, stdout=subprocess.PIPE).stdout
        (folder / "Packages").write_bytes(text)
        if self.process:
            self.sh("apt-get -q update")

    # ---- power ----

    def start(self):
        env = dict(os.environ, name=self.name, root=str(self.root), unified="yes" if UNIFIED else "no")
        self.console = open(self.folder / "console", "a")
        self.process = subprocess.Popen(["unshare", "--mount", "sh", "-c", START], env=env, stdin=subprocess.DEVNULL,
                                        stdout=self.console, stderr=self.console)
        self.wait_booted()

    def first(self):
        """The process that is the system's first one; None while there is none."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in children.read_text().split() if self.process.poll() is None else []:
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
                    return int(pid)
            except OSError:
                pass
        return None

    def wait_booted(self):
        def booted():
            assert self.process.poll() is None, (self.folder / "console").read_text()
            pid = self.first()
            if not pid:
                return False
            r = subprocess.run(["nsenter", "-t", str(pid), "-a", "systemctl", "is-system-running"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            return r.stdout.strip() in ("running", "degraded") and self.first() == pid
        wait_for("the system to be up", booted, BOOT_S)

    def reboot(self):
        self.sh("systemctl reboot", check=False)
        wait_for("the system to be down", lambda: self.process.poll() is not None, BOOT_S)
        assert self.process.returncode == ASKS_FOR_REBOOT
        self.start()

    def cut_power(self):
        """Nothing of the system gets to do another thing."""
        first = self.first()
        self.process.kill()
        if first:
            os.kill(first, signal.SIGKILL)  # and with it all of its namespace
        self.process.wait()

    def remove(self):
        if self.process and self.process.poll() is None:
            self.cut_power()
        for group in () if UNIFIED else CGROUPS.glob(f"*/{self.name}"):
            wait_for("the processes of the cgroup to be gone", lambda: removed(group))
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- use ----

    def argv(self, command):
        return ["nsenter", "-t", str(self.first()), "-a", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
                "DEBIAN_FRONTEND=noninteractive", f"KUBECONFIG={self.kubeconfig}", "sh", "-c", f"cd /srv; {command}"]

    def run(self, command, timeout=240, **kw):
        return subprocess.run(self.argv(command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              errors="replace", stdin=subprocess.DEVNULL, **kw)

    def sh(self, command, check=True, **kw):
        """The output of a command, its errors included."""
        r = self.run(command, **kw)
        assert not check or r.returncode == 0, f"{command}: exit status {r.returncode}\n{r.stdout[-6000:]}"
        return r.stdout

    def json(self, kind, *args):
        return json.loads(self.sh(f"tenet get {kind} -o json {' '.join(args)}"))

    def installed(self):
        """{package: version} of what is Tenet's and installed."""
        text = self.sh("dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' 'tenet*' 2>/dev/null", check=False)
        return {line.split()[0]: line.split()[1] for line in text.splitlines() if line.endswith(" installed")}

    def journal(self, unit):
        return self.sh(f"journalctl --no-pager -o cat -u {unit}")

    def pid_here(self, word):
        """The process of this machine whose command line has that word: of a container in the system."""
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if word.encode() in (proc / "cmdline").read_bytes().split(b"\0"):
                    return int(proc.name)
            except OSError:
                continue
        return None

    def files(self):
        """Paths of the system's own file system, without caches, logs and what dpkg and apt know."""
        left_out = r"/(var/(cache|log/journal|lib/(apt|dpkg|systemd)|tmp)|srv|tmp|run|proc|sys|dev)(/|$)"
        found = self.sh("find / -xdev -printf '%y %p\\n'").splitlines()
        return {line for line in found if not re.match(left_out, line[2:])}

    def processes(self):
        """Names, without those of the shell and of ps that list them."""
        names = self.sh("ps -e -o comm=").split()
        names.remove("sh")
        names.remove("ps")
        return sorted(names)
