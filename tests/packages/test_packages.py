# SPDX-License-Identifier: Apache-2.0
"""The life of a host with the packages: installed, a node, rebooted, upgraded, downgraded, removed, purged; and what goes wrong."""
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

import containerd
import traffic
from host import BUILT, PACKAGES, ROOT, Host, debs, versions
from lab import wait_for

NEW, OLD = versions()
POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"terminationGracePeriodSeconds": 1}}
REGISTRY = "/var/lib/tenet/registry.db"

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def host():
    h = Host()
    h.start()
    yield h
    h.remove()


def readme():
    """The commands of README.md for real hosts, as they are there: the installation, with tenet setup, by hand."""
    text = (ROOT / "README.md").read_text()
    part = re.search(r"^## On real hosts\n(.*?)^## ", text, re.S | re.M)[1]
    blocks = re.findall(r"\n\n((?:    .*\n)+)", part)
    return [[re.sub(r"\s+#.*", "", line.strip()).replace("sudo ", "") for line in block.splitlines()] for block in blocks]


def offer(host, *which):
    for version in which:
        host.offer(*debs(version))
    host.index()


def install(host, version):
    host.sh(" ".join(["apt-get -q --allow-downgrades install", *(f"{p}={version}" for p in PACKAGES)]))


def load_image(host):
    """The image of the test's pods, which is that of their sandboxes as well: there is no registry to fetch one from.  The
    kernel may refuse what protects a sandbox from the OOM killer where this machine is a container itself."""
    with tempfile.TemporaryDirectory() as tmp:
        image = containerd.archive(pathlib.Path(tmp))
        (host.root / "srv/image.tar").write_bytes(image.read_bytes())
    host.sh(f"""sed -i 's|^.*grpc.v1.cri"\\]$|&\\n    sandbox_image = "{containerd.IMAGE}"\\n    restrict_oom_score_adj = true|' /etc/containerd/config.toml""")
    host.sh("systemctl restart containerd && ctr -n k8s.io images import /srv/image.tar")


def become_node(host):
    """What README.md says to do by hand after the packages are installed; the release before had no socket for the API."""
    load_image(host)
    for command in readme()[2]:
        host.sh(command if NEW in host.installed().values() else command.replace("tenet-master.socket ", ""))
    wait_for("the node", lambda: "node1" in host.sh("tenet get nodes", check=False))


class Pod:
    def __init__(self, host, name, seconds):
        self.host, self.name, self.word = host, name, str(seconds)
        spec = {**POD["spec"], "volumes": [{"name": "data", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}],
                "containers": [{"name": "c", "image": containerd.IMAGE, "command": ["/bin/sleep", self.word],
                                "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "memory", "mountPath": "/memory"}]}]}
        (host.root / f"srv/{name}.json").write_text(json.dumps({**POD, "metadata": {"name": name, "namespace": "default"}, "spec": spec}))
        host.sh(f"tenet create -f /srv/{name}.json")

    def status(self):
        return self.host.json("pod", self.name, "-n default")["status"]

    def wait(self):
        def ready():
            return any(c["type"] == "Ready" and c["status"] == "True" for c in self.status().get("conditions", []))
        try:
            wait_for(f"pod {self.name} to be ready", ready)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.host.sh('tenet describe pod -n default ' + self.name, check=False)}\n"
                                 + "".join(self.host.journal(u)[-3000:] for u in ("tenet-node", "tenet-kubelet", "containerd"))) from e
        self.ip, self.pid = self.status()["podIP"], self.host.pid_here(self.word)
        return self

    def argv(self, argv):
        return ["nsenter", "-t", str(self.pid), "--net", *map(str, argv)]

    def popen(self, argv):
        return subprocess.Popen(self.argv(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def reaches(self, other):
        return subprocess.run(self.argv(["ping", "-q", "-c", "1", "-W", "2", other.ip]), stdout=subprocess.DEVNULL).returncode == 0


    def write(self, path, text):
        pathlib.Path(f"/proc/{self.pid}/root{path}").write_text(text)

    def volume(self, name):
        """The folder of a volume as the host has it, where the kubelet of the newer release keeps it."""
        return f"/var/lib/tenet-kubelet/pods/{self.host.json('pod', self.name, '-n default')['metadata']['uid']}/volumes/" \
               f"kubernetes.io~empty-dir/{name}"


def two_pods(host):
    pods = [Pod(host, "one", 36001), Pod(host, "two", 36002)]
    return [p.wait() for p in pods]


def record(name, value):
    """Figures for docs/packages.md, which a run with -s shows."""
    print(f"{name}: {value}", flush=True)


# ---- the life of a host ----

def memory(host):
    """{service: KiB} at rest: proportional set sizes."""
    found = {}
    for unit in ("tenet-master", "tenet-node", "tenet-kubelet"):
        pid = host.sh(f"systemctl show -P MainPID {unit}").strip()
        found[unit] = int(re.search(r"^Pss:\s+(\d+)", host.sh(f"cat /proc/{pid}/smaps_rollup"), re.M)[1])
    return found


def test_a_host_from_its_first_package_to_the_purge(host):
    files, processes = host.files(), host.processes()
    offer(host, NEW)
    began = time.monotonic()
    host.sh("cd /srv/repository; " + readme()[0][0])
    assert host.installed() == {p: NEW for p in PACKAGES}
    assert host.sh("systemctl is-enabled tenet-master tenet-node tenet-kubelet", check=False).split() == ["disabled"] * 3
    become_node(host)
    one, two = two_pods(host)
    wait_for("the pods to reach each other", lambda: one.reaches(two))
    record("install to first pod connected, s", round(time.monotonic() - began, 1))
    record("memory at rest, KiB", memory(host))
    record("installed size, KiB", host.sh("dpkg-query -W -f '${Package} ${Installed-Size}\\n' 'tenet*'").split())
    for unit in ("tenet-master", "tenet-node", "tenet-kubelet"):
        status = host.sh(f"systemctl show -P Type -P WatchdogUSec -P StatusText -P NRestarts {unit}")
        assert "notify" in status and "1min" in status, status
    assert "carries the pods" in host.sh("systemctl status tenet-node")
    assert host.sh("/opt/cni/bin/tenet-cni --version") == host.sh("/usr/lib/cni/tenet-cni --version")

    host.reboot()
    for pod in (one, two):
        wait_for("the container to run again", lambda: host.pid_here(pod.word))
        pod.wait()
    wait_for("the pods to reach each other", lambda: one.reaches(two))

    host.sh("tenet delete pod one two -n default")
    wait_for("the pods to be gone", lambda: not host.pid_here(one.word) and not host.pid_here(two.word))
    host.sh("apt-get -q remove 'tenet*'")
    assert host.installed() == {}
    assert not [p for p in host.processes() if p.startswith("tenet")]
    assert "br0" not in host.sh("ovs-vsctl show") and "tenet" not in host.sh("nft list tables")
    assert not host.sh("ls /etc/cni/net.d 2>/dev/null; ls -d /run/tenet 2>/dev/null; true").strip()
    left = {line[2:] for line in host.files() - files if re.search("tenet", line)}
    assert {"/etc/tenet/master-config.yaml", "/etc/tenet/node-config.yaml", "/etc/tenet/kubelet-config.yaml"} <= left
    assert host.sh(f"ls {REGISTRY}").strip() == REGISTRY  # data stays until the purge

    host.sh("apt-get -q purge 'tenet*' && apt-get -q autoremove --purge")
    assert host.processes() == processes
    left = {line[2:] for line in host.files() - files}
    assert not {f for f in left if "tenet" in f or f.startswith(("/etc/cni", "/opt", "/var/log/pods"))}, sorted(left)
    record("files that other packages leave", sorted(left))
    assert sorted(files - host.files()) == []


def test_setup_makes_a_host_a_master_and_a_node(host):
    files, processes = host.files(), host.processes()
    offer(host, NEW)
    host.sh("cd /srv/repository; " + readme()[0][0])
    load_image(host)
    check, master, node = readme()[1]
    began = time.monotonic()
    host.sh(check)
    said = host.sh(master)
    token, address = re.search(r"tenet setup node --join (\S+) (\S+)", said).groups()
    host.sh(node.replace("TOKEN", token).replace("HOST:PORT", address))
    host.kubeconfig = "/var/lib/tenet/pki/admin.kubeconfig"
    wait_for("the account of pods", lambda: "default" in host.sh("tenet get serviceaccounts -n default", check=False))
    one, two = two_pods(host)
    wait_for("the pods to reach each other", lambda: one.reaches(two))
    record("setup to first pod connected, s", round(time.monotonic() - began, 1))
    assert "Forbidden" in host.sh("KUBECONFIG=/etc/tenet/node.kubeconfig tenet get secrets -n kube-system", check=False)

    # Run again, nothing changes, and after a restart of the host all is as it was.
    before = host.sh("find /etc/tenet /var/lib/tenet/pki /etc/systemd -type f -exec sha256sum {} + | sort")
    host.sh(master)
    assert host.sh("find /etc/tenet /var/lib/tenet/pki /etc/systemd -type f -exec sha256sum {} + | sort") == before
    host.reboot()
    for pod in (one, two):
        wait_for("the container to run again", lambda: host.pid_here(pod.word))
        pod.wait()
    wait_for("the pods to reach each other", lambda: one.reaches(two))

    host.sh("tenet delete pod one two -n default")
    wait_for("the pods to be gone", lambda: not host.pid_here(one.word) and not host.pid_here(two.word))
    host.sh("tenet setup remove --purge")
    assert not [p for p in host.processes() if p.startswith("tenet")]
    assert "br0" not in host.sh("ovs-vsctl show") and "tenet" not in host.sh("nft list tables")
    host.sh("apt-get -q purge 'tenet*' && apt-get -q autoremove --purge")
    assert host.processes() == processes
    left = {line[2:] for line in host.files() - files}
    assert not {f for f in left if "tenet" in f or f.startswith(("/etc/cni", "/opt", "/var/log/pods"))}, sorted(left)


# ---- upgrade and downgrade ----

def test_an_upgrade_and_a_downgrade_lose_no_packet_and_touch_no_pod(host):
    offer(host, OLD, NEW)
    install(host, OLD)
    become_node(host)
    one, two = two_pods(host)
    pids = [p.pid for p in (one, two)]
    for name in ("data", "memory"):
        one.write(f"/{name}/file", f"in {name}")
    echo = traffic.start(two.popen, traffic.RECEIVER, 7000)
    sender = traffic.start(one.popen, traffic.SENDER, two.ip, 7000, 500, traffic.WINDOW)
    server = traffic.start(two.popen, traffic.ECHO, 7001)
    talker = traffic.start(one.popen, traffic.TALKER, two.ip, 7001)
    try:
        for version in (NEW, OLD, NEW):
            starts = host.sh("systemctl show -P ActiveEnterTimestampMonotonic tenet-master tenet-node tenet-kubelet").split()
            install(host, version)
            assert host.installed() == {p: version for p in PACKAGES}
            wait_for("the agent to carry pods", lambda: host.sh("ls /etc/cni/net.d", check=False).strip())
            after = host.sh("systemctl show -P ActiveEnterTimestampMonotonic tenet-master tenet-node tenet-kubelet").split()
            assert all(int(b) > int(a) for a, b in zip(starts, after)), "each service was restarted"
            wait_for("the kubelet to report", lambda: one.status()["phase"] == "Running")
            # The older release had its folder elsewhere, and finds it by a link.
            for name in ("data", "memory"):
                assert host.sh(f"cat {one.volume(name)}/file") == f"in {name}"
    finally:
        code, said = traffic.finish(talker)
        counts = json.loads(traffic.finish(sender)[1].splitlines()[-1])
        for p in (echo, server):
            p.kill()
            p.wait()
    assert code == 0 and int(said) > 100, said
    assert counts["not_returned"] == 0 and counts["sent"] > 1000, counts
    record("datagrams sent over three changes of version, all returned", counts["sent"])
    assert [host.pid_here(p.word) for p in (one, two)] == pids
    assert all(c["restartCount"] == 0 for p in (one, two) for c in p.status()["containerStatuses"])
    copies = host.sh("ls /var/backups/tenet").split()
    assert [re.sub(r"^registry-\d+-", "", c) for c in copies] == [f"{v}.db" for v in (OLD, NEW, OLD)], copies
    for c in copies:
        assert sqlite3.connect(f"file:{host.root}/var/backups/tenet/{c}?mode=ro", uri=True).execute(
            "SELECT count(*) FROM change").fetchone()[0] > 10


# ---- what goes wrong ----

def with_master(host, version=OLD):
    """A host that is a master of that version, with an object to lose."""
    offer(host, OLD, NEW)
    host.sh(f"apt-get -q install tenet={version} tenet-master={version} && systemctl enable --now tenet-master")
    (host.root / "etc/tenet/node.kubeconfig").write_text((ROOT / "packaging/config/node.kubeconfig").read_text())
    (host.root / "srv/keep.json").write_text(json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keep", "namespace": "default"}, "data": {"k": "v"}}))
    host.sh("tenet create -f /srv/keep.json")


def keeps_its_data(host):
    wait_for("the master to answer", lambda: host.run("tenet get configmaps -n default keep").returncode == 0)
    return host.json("configmap", "keep", "-n default")["data"] == {"k": "v"}


MASTER = "apt-get -q --allow-downgrades install tenet={0} tenet-master={0}"


def interrupt(host, power):
    """Begins an upgrade, and ends it by force when the first of the packages is unpacked and none is configured."""
    upgrade = subprocess.Popen(host.argv(MASTER.format(NEW)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    status = host.root / "var/lib/dpkg"

    def midway():
        text = status.joinpath("status").read_text() + "".join(p.read_text() for p in (status / "updates").iterdir() if p.is_file())
        return re.search(r"^Status: install ok (unpacked|half-installed|half-configured)", text, re.M) or upgrade.poll() is not None
    wait_for("the upgrade to be midway", midway)
    if power:
        host.cut_power()
    else:
        for pid in [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*") if is_of(p, host, ("dpkg", "apt-get", "dpkg-deb"))]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    upgrade.communicate()


def is_of(proc, host, names):
    try:
        return (proc / "comm").read_text().strip() in names and os.readlink(proc / "ns/pid") == os.readlink(f"/proc/{host.first()}/ns/pid")
    except OSError:
        return False


@pytest.mark.parametrize("power", [False, True], ids=["dpkg-killed", "power-lost"])
def test_an_interrupted_upgrade_is_finished_and_loses_nothing(host, power):
    with_master(host)
    interrupt(host, power)
    if power:
        host.start()
    host.sh("dpkg --configure -a; apt-get -q --fix-broken install && " + MASTER.format(NEW))
    assert host.installed() == {"tenet": NEW, "tenet-master": NEW}
    assert keeps_its_data(host)
    assert host.sh("dpkg --audit") == ""


def test_without_room_for_the_copy_nothing_is_changed(host):
    with_master(host)
    host.sh("mkdir -p -m 0700 /var/backups/tenet && mount -t tmpfs -o size=16k tmpfs /var/backups/tenet")
    r = host.run(MASTER.format(NEW))
    assert r.returncode != 0 and "so nothing was changed" in r.stdout, r.stdout
    assert re.search(r"No space left on device|disk is full|no room", r.stdout), r.stdout
    assert host.installed() == {"tenet": OLD, "tenet-master": OLD}
    assert keeps_its_data(host) and host.sh("dpkg --audit") == "" and not os.listdir(host.root / "var/backups/tenet")
    host.sh("umount /var/backups/tenet && " + MASTER.format(NEW))
    assert keeps_its_data(host) and host.sh("ls /var/backups/tenet").strip() == f"registry-0001-{OLD}.db"


def changed_package(version, name, conffile):
    """The newest package as if another release had changed its conffile."""
    deb = debs(NEW)[PACKAGES.index(name)]
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp) / "d"
        subprocess.run(["dpkg-deb", "-R", deb, folder], check=True)
        control = folder / "DEBIAN/control"
        control.write_text(control.read_text().replace(f"Version: {NEW}", f"Version: {version}"))
        with open(folder / conffile, "a") as f:
            f.write("# a later release's line\n")
        out = BUILT / f"{name}_{version}_changed.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder, out], check=True, stdout=subprocess.DEVNULL)
        content = out.read_bytes()
        out.unlink()
    return content


def test_a_changed_conffile_stays_the_administrators(host):
    with_master(host, NEW)
    config = host.root / "etc/tenet/master-config.yaml"
    config.write_text(config.read_text().replace("mtu: 1450", "mtu: 1400"))
    host.sh("systemctl restart tenet-master")
    assert "mtu: 1400" in config.read_text() and keeps_its_data(host)
    (host.root / "srv/later.deb").write_bytes(changed_package(f"{NEW}.1", "tenet-master", "etc/tenet/master-config.yaml"))
    # Nobody answers dpkg's question: it stops, says which file it asked about, and leaves the file as it is.
    r = host.run("dpkg -i /srv/later.deb </dev/null")
    assert r.returncode != 0 and "/etc/tenet/master-config.yaml" in r.stdout and "mtu: 1400" in config.read_text(), r.stdout
    assert keeps_its_data(host)
    host.sh("dpkg --force-confdef --force-confold --configure -a")
    assert "mtu: 1400" in config.read_text() and "a later release's line" in config.with_name("master-config.yaml.dpkg-dist").read_text()
    host.sh("systemctl restart tenet-master")
    assert keeps_its_data(host)


def test_a_clock_in_1970_is_said_and_loses_nothing(host):
    with_master(host, NEW)
    host.sh("apt-get -q install faketime")
    library = next(f for f in host.sh("dpkg -L libfaketime").split() if f.endswith("libfaketime.so.1"))
    folder = host.root / "etc/systemd/system/tenet-master.service.d"
    folder.mkdir()
    (folder / "clock.conf").write_text(f'[Service]\nEnvironment="LD_PRELOAD={library}" "FAKETIME=@1970-01-01 00:01:00"\n')
    host.sh("systemctl daemon-reload && systemctl restart tenet-master")
    assert keeps_its_data(host) and "the clock of this host was not set" in host.journal("tenet-master")
    (host.root / "srv/early.json").write_text((host.root / "srv/keep.json").read_text().replace('"keep"', '"early"'))
    host.sh("tenet create -f /srv/early.json")
    assert host.json("configmap", "early", "-n default")["metadata"]["creationTimestamp"].startswith("1970-01-01")
    (folder / "clock.conf").unlink()
    host.sh("systemctl daemon-reload && systemctl restart tenet-master")
    assert keeps_its_data(host) and host.json("configmap", "early", "-n default")["data"] == {"k": "v"}


def test_a_registry_of_an_older_schema_is_copied_and_migrated(host):
    with_master(host)
    host.sh("systemctl stop tenet-master")
    path = host.root / "var/lib/private/tenet/registry.db"
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT rev, prev_rev, key, value FROM change ORDER BY rev").fetchall()
        newest = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    # The first schema had no checksums.
    owner, mode = path.stat(), path.stat().st_mode
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE change (rev INTEGER PRIMARY KEY, prev_rev INTEGER NOT NULL, key TEXT NOT NULL, value BLOB) STRICT")
        db.executemany("INSERT INTO change VALUES (?, ?, ?, ?)", rows)
        db.execute("PRAGMA application_id = 0x54656e65")
        db.execute("PRAGMA user_version = 1")
    db.close()
    os.chown(path, owner.st_uid, owner.st_gid)
    path.chmod(mode & 0o777)

    host.sh(MASTER.format(NEW) + " && systemctl start tenet-master")
    assert keeps_its_data(host) and "database gets checksums" in host.journal("tenet-master")
    host.sh("systemctl stop tenet-master")
    copy = host.root / f"var/backups/tenet/registry-0001-{OLD}.db"
    for file in (copy, path):
        db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        assert db.execute("PRAGMA user_version").fetchone()[0] == newest
        assert db.execute("SELECT rev, prev_rev, key, value FROM change ORDER BY rev").fetchall()[:len(rows)] == rows
        db.close()
    # The way back of docs/packages.md: the older release leaves the file to root.
    restore = f"systemctl stop tenet-master && tenet store restore --force /var/backups/tenet/{copy.name}"
    host.sh(MASTER.format(OLD))
    host.sh(f"{restore} && chown --reference=/var/lib/tenet/. /var/lib/tenet/registry.db* && systemctl start tenet-master")
    assert host.installed() == {"tenet": OLD, "tenet-master": OLD} and keeps_its_data(host)
    host.sh(MASTER.format(NEW))
    host.sh(f"{restore} && systemctl start tenet-master")
    assert keeps_its_data(host)


def test_a_registry_of_a_newer_version_is_refused_and_left_as_it_is(host):
    with_master(host, NEW)
    host.sh("systemctl stop tenet-master")
    path = host.root / "var/lib/private/tenet/registry.db"
    db = sqlite3.connect(path)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute(f"PRAGMA user_version = {version + 1}")
    db.commit()
    db.close()
    content = path.read_bytes()
    assert host.run("systemctl start tenet-master").returncode != 0
    host.sh("systemctl stop tenet-master")
    assert f"written by a newer version of tenet (schema {version + 1}, this one knows {version})" in host.journal("tenet-master")
    assert path.read_bytes() == content
    # Neither is a downgrade stopped half-way by it: the copy cannot be made, and dpkg says so before it unpacks.
    r = host.run(MASTER.format(OLD))
    assert r.returncode != 0 and "so nothing was changed" in r.stdout and host.installed()["tenet"] == NEW, r.stdout
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()
    host.sh("systemctl reset-failed tenet-master; systemctl start tenet-master")
    assert keeps_its_data(host)
