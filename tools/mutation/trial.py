# SPDX-License-Identifier: Apache-2.0
"""Trying a mutation: a copy of the tree with a build of its own, and tests in namespaces of their own.

A mutant runs as root and may do anything, so a unit test gets its own network, processes, /tmp and /run, and sees the
file system read-only.
"""
import dataclasses
import fcntl
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

# Own unit tests come first, then those of folders that use this one: what they see of it they may judge.
ALSO = {
    "base": ["wire/*"],
    "wire": ["dns/*", "store/rpc", "node/node-pods", "datapath/flow_*", "net/http", "net/http2", "sdn/explain"],
    "api": ["cli/cli_output", "apiserver/apiserver_kinds", "apiserver/apiserver_write", "apiserver/apiserver_read", "client/informer"],
    "sdn": ["datapath/ovs_plan", "controllers/plans"],
    "net": ["datapath/services*", "datapath/ebpf_paths", "node/node-host", "apiserver/apiserver_read"],
    "client": ["cli/cli_input", "controllers/leader", "node/node-objects"],
    "apiserver": ["controllers/controllers_security", "controllers/project_*", "client/*"],
    "controller": ["controllers/*"],
}
# Where the tests of a folder are not those of tests/unit/FOLDER.  Of tests that do not name what was changed, those of the
# first pattern come first.
OWN = {
    "net": ["net/*", "store/rpc"],
    "controller": ["controllers/workqueue", "controllers/leader", "controllers/controllers_framework",
                   "controllers/controllers_recorder"],
    # Its own files are called through the datapaths: not all tests of these, some of which take minutes.
    "datapath": ["datapath/outbox", "datapath/ebpf_datapath", "datapath/datapath_ovs", "datapath/datapath_ovs_live"],
    "datapath/ovs": ["datapath/*ovs*", "datapath/flow_*"],
    "datapath/services": ["datapath/services*"],
    "datapath/ebpf": ["datapath/ebpf_datapath", "datapath/ebpf*"],
    "datapath/ebpf/bpf": ["datapath/ebpf_model", "datapath/ebpf*"],
}
# With --integration: what remains is shown to these.
INTEGRATION = {
    "cli": ["test_explain.py", "test_adm.py", "test_store.py"],
    "cni": ["test_cni.py"],
    "dns": ["test_dns.py"],
    "node": ["test_node.py", "test_cni.py"],
    "net": ["test_http.py"],
    "lab": ["test_lab.py"],
    "master": ["test_tls.py", "test_auth.py"],
    "datapath/ebpf/bpf": ["test_ebpf_wire.py", "test_ebpf.py"],
}
BPF, BPF_OBJECT = "datapath/ebpf/bpf", "src/datapath/ebpf/bpf/datapath.bpf.o"
PROGRAMS = ["src/cli/tenet", "src/cni/tenet-cni", "tests/unit/apiserver/apitest_server"]
MEMORY = 6 << 30  # Of a mutant without sanitizers; a lost bound shall not take the machine's.
FILE_SIZE = 1 << 30
# A test program that has failed once need not go on, and its later tests may take long for the same reason.
FAILED, LINE = re.compile(rb"^\[  (FAILED  |ERROR   )\] \w+\s*$", re.M), 200
# $1 is where the copy and its build are, which may be below /tmp.
SANDBOX = """set -e
mount --make-rprivate /
mount -o remount,ro,bind /
mount --bind "$1" /mnt
mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /run
case $1 in /tmp/*|/run/*) mkdir -p "$1" && mount --bind /mnt "$1" ;; esac
umount /mnt
mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf || true
mkdir /run/netns
ip link set lo up
shift
"$@" || exit $?  # Not as the first process: signals have no default for that one.
"""


@dataclasses.dataclass
class Test:
    name: str  # As meson has it.
    folder: str
    sources: list
    target: str  # What ninja builds, and the program.
    seconds: float = 0.0
    rank: int = 0  # The pattern by which it was found.

    @property
    def limit(self):
        """Seconds after which the test hangs; the machine may have other work."""
        return 20 + 8 * self.seconds


def run(argv, **kw):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **kw)


def wait_for(p, seconds, log, until):
    """The exit status; None: it hangs; 1: what it wrote matches 'until'."""
    end, seen = time.monotonic() + seconds, 0
    while True:
        try:
            return p.wait(min(0.5, max(0, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            written = os.fstat(log.fileno()).st_size
            # Not by seek: the process writes at the same offset.
            if until and until.search(os.pread(log.fileno(), written - seen + LINE, max(0, seen - LINE))):
                return 1
            seen = written
            if time.monotonic() >= end:
                return None


class Workshop:
    """One copy of the tree and its build; a worker's own."""

    def __init__(self, root, scratch, sanitize):
        self.root, self.scratch, self.sanitize = root, scratch, sanitize
        self.tree, self.build = scratch / "tree", scratch / ("build-asan" if sanitize else "build")
        self.fingerprints, self.child, self.stopped = {}, None, False

    def claim(self):
        """Whether no other run has this workshop; it is ours until the process ends."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.lock = open(self.scratch / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.close()
            return False
        return True

    def release(self):
        self.lock.close()

    # ---- the copy ----

    def files(self):
        if (self.root / ".git").exists():
            names = run(["git", "-C", str(self.root), "ls-files", "-co", "--exclude-standard"]).stdout.split("\n")
            return {n for n in names if n and (self.root / n).is_file()}
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*")
                if p.is_file() and not p.relative_to(self.root).parts[0].startswith("build")}

    def sync(self):
        """Makes the copy what the tree is; a file that did not change keeps its time, for ninja."""
        wanted = self.files()
        for p in [p for p in self.tree.rglob("*") if not p.is_dir()]:
            if str(p.relative_to(self.tree)) not in wanted:
                p.unlink()
        for name in sorted(wanted):
            source, copy = self.root / name, self.tree / name
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
                shutil.copymode(source, copy)

    def configure(self):
        """The text of meson's error, or None."""
        self.sync()
        if not (self.build / "build.ninja").exists():
            kind = ["-Doptimization=1", "-Db_sanitize=address,undefined"] if self.sanitize else ["-Doptimization=0"]
            options = [*kind, "-Ddebug=false", "-Dwerror=false", "-Dfuzz=off", "-Dbench=false"]
            known = self.tree / "meson_options.txt"
            options = [o for o in options if o[2:].split("=")[0] not in ("fuzz", "bench") or known.exists()]
            env = dict(os.environ, **({"CC_LD": "mold"} if shutil.which("mold") else {}))
            r = run(["meson", "setup", str(self.build), str(self.tree), *options], env=env)
            if r.returncode != 0:
                return r.stdout
        return self.ninja("build.ninja")  # Tests may have come since the last run.

    def ninja(self, *targets, keep=True):
        env = dict(os.environ, **({} if keep else {"CCACHE_READONLY": "1"}))
        r = run(["ninja", "-C", str(self.build), *targets], env=env)
        return None if r.returncode == 0 else r.stdout

    def tests(self):
        """All unit tests, with the folder that each is in."""
        r = run(["meson", "introspect", str(self.build), "--tests", "--targets"])
        said = json.loads(r.stdout)
        by_id = {t["id"]: t for t in said["targets"]}
        found = []
        for t in said["tests"]:
            target = by_id.get((t["depends"] or [""])[0])
            if not target or target["type"] != "executable":
                continue
            sources = [pathlib.Path(s) for group in target["target_sources"] for s in group.get("sources", [])]
            main = next((s for s in sources if s.name.startswith("test_")), None)
            if main:
                found.append(Test(t["name"], main.parent.name, sources,
                                  str(pathlib.Path(target["filename"][0]).relative_to(self.build))))
        return found

    # ---- what the compiler makes of a source ----

    def compile_command(self, file):
        if file.startswith(f"src/{BPF}/"):
            r = run(["ninja", "-C", str(self.build), "-t", "commands", BPF_OBJECT])
            words = shlex.split(r.stdout.strip().split("\n")[-1])
        else:
            commands = json.loads((self.build / "compile_commands.json").read_text())
            suffix = "/" + file
            words = next((shlex.split(c["command"]) for c in commands if c["file"].endswith(suffix)), [])
        result, skip = [], False
        for w in words:
            skip, drop = False, skip
            if w in ("-MF", "-MQ", "-o"):
                skip = True
            elif not drop and w not in ("-MD", "-g", "-Werror", "ccache"):
                result.append(w)
        return result

    def fingerprint(self, file):
        """A hash of the optimised object code of 'file', which has nothing of line numbers; None if it does not compile."""
        command = self.compile_command(file)
        if not command:
            return None
        with tempfile.TemporaryDirectory() as tmp:
            out = os.path.join(tmp, "o")
            r = run([*command, "-O2", "-w", "-o", out], cwd=self.build)
            return hashlib.sha256(pathlib.Path(out).read_bytes()).hexdigest() if r.returncode == 0 else None

    # ---- running ----

    def stop(self):
        self.stopped = True
        child = self.child
        if child:
            os.killpg(child.pid, signal.SIGKILL)

    def limits(self):
        if not self.sanitize:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def execute(self, argv, seconds, env, grace=0, limited=True, until=None):
        """(exit status or None for a hang, output); output that matches 'until' ends it, with status 1."""
        with tempfile.TemporaryFile() as log:
            p = subprocess.Popen(argv, cwd=self.tree, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                 env=env, preexec_fn=self.limits if limited else None)
            self.child = p
            try:
                status = wait_for(p, seconds, log, until)
                if status is None and grace:  # What it made it takes down.
                    p.terminate()
                    try:
                        p.wait(grace)
                    except subprocess.TimeoutExpired:
                        pass
            finally:
                self.child = None
                try:
                    os.killpg(p.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                p.wait()
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - 200_000))
            return status, log.read().decode(errors="replace")

    def run_unit(self, test, seconds):
        env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="STDOUT", TENET_ALL_TESTS="1", TMPDIR="/tmp")
        argv = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "--net", "--pid", "--fork",
                "--kill-child", "--mount-proc", "sh", "-c", SANDBOX, "sh", str(self.scratch), str(self.build / test.target)]
        return self.execute(argv, seconds, env, until=FAILED)

    def run_integration(self, file):
        env = dict(os.environ, TENET_BUILD=str(self.build), TENET_SLOWER="2", PYTHONDONTWRITEBYTECODE="1")
        argv = ["/usr/bin/python3", "-m", "pytest", "-x", "-q", "--color=no", "-p", "no:cacheprovider", "--tb=line",
                "--timeout=600", f"tests/integration/{file}"]
        return self.execute(argv, 1800, env, grace=60, limited=False)


def failed_test(name, status, output):
    """How the table names what killed a mutant."""
    first = re.search(r"^\[  (?:FAILED  |ERROR   )\] (\w+)\s*$|^FAILED \S+::(\w+)", output, re.M)
    if first and (first.group(1) or first.group(2)) != "test":
        name = f"{name}::{first.group(1) or first.group(2)}"
    return name if status is not None and status >= 0 and status < 128 else f"{name} ({'hang' if status is None else 'crash'})"


def tests_for(folder, tests):
    """The folder's tests, then its dependents'."""
    own = OWN.get(folder, [folder + "/*"])
    also = ALSO.get(folder, [])

    def stage(globs):
        found = []
        for t in tests:
            rank = next((i for i, g in enumerate(globs) if fnmatch.fnmatch(f"{t.folder}/{t.name}", g)), None)
            found += [] if rank is None else [dataclasses.replace(t, rank=rank)]
        return found
    first = stage(own)
    names = {t.name for t in first}
    return first, [t for t in stage(also) if t.name not in names]


class Trial:
    """Tries mutations of one folder in one workshop."""

    def __init__(self, workshop, folder, stages, integration):
        self.workshop, self.folder, self.stages = workshop, folder, stages
        self.integration = INTEGRATION.get(folder, []) if integration else []
        self.killers = {}  # The file -> names of tests that killed mutants of it.

    def order(self, tests, mutation):
        """A test that killed a mutant of this file, then those that name the function or the header, then the quick ones."""
        stem = pathlib.Path(mutation.file).stem
        header = str(pathlib.PurePath(mutation.file.removeprefix("src/")).with_suffix('.h"'))

        def named(t):
            texts = [s.read_text(errors="replace") for s in t.sources if s.exists()]
            return any(mutation.function in text or header in text for text in texts)
        known = self.killers.get(mutation.file, [])
        return sorted(tests, key=lambda t: (-known.count(t.name), not (stem in t.name or named(t)), t.rank, t.seconds))

    def differs(self, mutation, mutated, original):
        """Whether the compiler takes the mutant and makes other code of it."""
        w, path = self.workshop, self.workshop.tree / mutation.file
        if mutation.file not in w.fingerprints:
            w.fingerprints[mutation.file] = w.fingerprint(mutation.file)
        path.write_text(mutated)
        try:
            new = w.fingerprint(mutation.file)
        finally:
            path.write_text(original)
        return new is not None and new != w.fingerprints[mutation.file]

    def outcome(self, mutation):
        """"killed by TEST", "lived", or None: not a mutant."""
        path = self.workshop.tree / mutation.file
        original = path.read_text()
        mutated = mutation.apply(original)
        before = path.stat()
        if not self.differs(mutation, mutated, original):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            return None
        path.write_text(mutated)
        try:
            return self.judge(mutation)
        finally:
            path.write_text(original)

    def judge(self, mutation):
        w = self.workshop
        for stage in self.stages:
            for test in self.order(stage, mutation):
                if w.stopped:
                    return None
                if w.ninja(test.target, keep=False) is not None:
                    return None
                status, said = w.run_unit(test, test.limit)
                if status not in (0, None):  # Once more: it may have been the test.
                    status, said = w.run_unit(test, test.limit)
                if status != 0:
                    self.killers.setdefault(mutation.file, []).append(test.name)
                    return "killed by " + failed_test(test.name, status, said)
        if self.integration and w.ninja(*PROGRAMS, keep=False) is not None:
            return None
        for file in self.integration:
            status, said = w.run_integration(file)
            if status != 0:
                return "killed by " + failed_test(file, status, said)
        return "lived"


def workshops(root, scratch, sanitize, n):
    """The first 'n' that no other run has."""
    found, i = [], 0
    while len(found) < n:
        shop = Workshop(root, scratch / str(i), sanitize)
        found += [shop] if shop.claim() else []
        i += 1
    return found


class Durations:
    """How long the tests took that passed without a mutation, kept beside the build: a run that goes on does not time them
    again, as long as program and tests/ are the same."""

    def __init__(self, workshop):
        self.workshop, self.path = workshop, workshop.scratch / f"durations-{workshop.build.name}.json"
        self.known = json.loads(self.path.read_text()) if self.path.exists() else {}
        files = sorted((str(p), p.stat().st_mtime_ns) for p in (workshop.tree / "tests").rglob("*") if p.is_file())
        self.tests = hashlib.sha256(repr(files).encode()).hexdigest()

    def digest(self, test):
        return hashlib.sha256((self.workshop.build / test.target).read_bytes()).hexdigest() + self.tests

    def get(self, test):
        digest, seconds = self.known.get(test.name, (None, None))
        return seconds if digest == self.digest(test) else None

    def set(self, test):
        self.known[test.name] = self.digest(test), test.seconds
        self.path.write_text(json.dumps(self.known))


def baseline(workshop, stages, say):
    """Times the tests without a mutation.  Those that fail are left out, with a word: they could not tell a mutant."""
    good, durations = [], Durations(workshop)
    for stage in stages:
        good.append([])
        for test in stage:
            known = durations.get(test)
            if known:
                test.seconds = known
                good[-1].append(test)
                continue
            begin = time.monotonic()
            status, said = workshop.run_unit(test, 600)
            test.seconds = time.monotonic() - begin
            if status == 0:
                good[-1].append(test)
                durations.set(test)
            else:
                said = "\n".join(said.strip().splitlines()[-8:])
                say(f"left out: {test.name} fails without a mutation ({'hang' if status is None else status})\n{said}")
    return good


class Crew:
    """Workers with a workshop each, that take mutations from one list until 'count' are judged."""

    def __init__(self, trials, drawn, count, report):
        self.trials, self.drawn, self.count, self.report = trials, iter(drawn), count, report
        self.lock, self.begun, self.failure = threading.Lock(), 0, None

    def take(self):
        with self.lock:
            m = next(self.drawn, None) if self.begun < self.count and not self.failure else None
            self.begun += m is not None
            return m

    def work(self, trial):
        try:
            while (m := self.take()) and not trial.workshop.stopped:
                begin = time.monotonic()
                outcome = trial.outcome(m)
                if trial.workshop.stopped:
                    return
                with self.lock:
                    self.begun -= outcome is None  # Another is drawn.
                    self.report(m, outcome, time.monotonic() - begin)
        except Exception as e:  # For the main thread to raise.
            self.failure = e

    def run(self):
        workers = [threading.Thread(target=self.work, args=(t,), daemon=True) for t in self.trials]
        for w in workers:
            w.start()
        try:
            for w in workers:
                w.join()
        except BaseException:
            for t in self.trials:
                t.workshop.stop()
            for w in workers:
                w.join(30)
            raise
        if self.failure:
            raise self.failure
