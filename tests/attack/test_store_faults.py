# SPDX-License-Identifier: Apache-2.0
"""What disks, other processes and etcd do to the registry: a damaged one is never served as a good one, what is not safe is not
acknowledged, and what was acknowledged is there after a restart."""
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

import ha
from ha import LEASES, Gone, register
from lab import TENET, run, wait_for

NET = ha.NET


@pytest.fixture
def made(tmp_path):
    """Things to be ended, in that order."""
    things = []
    yield things
    for t in things:
        t.kill(signal.SIGKILL) if isinstance(t, ha.Master) else t.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A database of a master that has ended: nodes with subnets, projects with VNIDs, leases with values to find."""
    tmp = tmp_path_factory.mktemp("filled")
    m = ha.PlainMaster(tmp)
    try:
        for i in range(4):
            assert m.call("POST", "/api/v1/nodes", ha.node(f"n{i}", f"10.245.2.{i + 3}"))[0] == 201
            assert m.call("POST", "/api/v1/namespaces", ha.namespace(f"p{i}"))[0] == 201
        for i in range(20):
            assert m.call("POST", LEASES, register(f"lease-{i:03}", 770000 + i))[0] == 201
        wait_for("subnets and VNIDs", lambda: len(m.subnets()) == 4 and {f"p{i}" for i in range(4)} <= set(m.netids()))
        content = everything(m)
    finally:
        m.kill(signal.SIGTERM)
    with sqlite3.connect(m.path) as db:  # all of it into the file
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return m.path, content


def everything(m):
    """Objects that the tests made, and those that numbers come from, without what masters themselves keep changing."""
    out = {}
    for path in (LEASES, "/api/v1/namespaces", "/api/v1/nodes", NET + "netnamespaces", NET + "hostsubnets",
                 NET + "clusternetworks"):
        for o in m.items(path):
            out[path, o["metadata"]["name"]] = {**o, "metadata": {"name": o["metadata"]["name"], "uid": o["metadata"]["uid"]}}
    return out


def place(data, what, nth=0):
    """Where in the file the nth occurrence of these bytes is."""
    at = -1
    for _ in range(nth + 1):
        at = data.index(what, at + 1)
    return at


# What a byte of it is worth: (where, by which bytes it is found, how far behind them).
BYTES = {
    "a value": (b"770007", 3), "a key": (b"leases/default/lease-005", 20), "a name in a value": (b'"lease-011"', 8),
    "a subnet": (b'"subnet":"10.128.2.0/23"', 17),
    "an address": (b'"hostIP":"10.245.2.4"', 18), "a VNID": (b'"netname":"p1"', 12), "a key of a subnet": (b"hostsubnets/n2", 13),
    "a key of a VNID": (b"netnamespaces/p2", 15), "a namespace": (b"namespaces/p3", 12),
    "the kind of a row": (b"leases/default/lease-009", -8),
}


def started(tmp, path):
    """A master on a copy, or None when it refuses; it may also run, say 503, and tell why."""
    m = ha.PlainMaster.__new__(ha.PlainMaster)
    m.path, m.endpoints = path, ""
    try:
        ha.Master.__init__(m, tmp, "damaged", m, storage={"backend": "sqlite", "path": str(path)},
                           networkConfig={"networkPluginName": "redhat/openshift-ovs-multitenant"})
        wait_for("ready, refused, or ended", lambda: m.proc.poll() is not None or is_ready(m) or (
            answers(m) and re.search(r"damage|checksum|corrupt|malformed", m.text())))
    except AssertionError:
        m.kill()
        raise
    return m


def answers(m):
    try:
        return m.raw("GET", "/readyz")[0]
    except Gone:
        return None


def is_ready(m):
    return answers(m) == 200


@pytest.mark.parametrize("what", BYTES)
def test_a_flipped_byte_is_found_and_never_served(filled, tmp_path, what):
    """By `tenet store check` and at start: the master serves what it had, or nothing, and gives no number out twice."""
    source, content = filled
    find, behind = BYTES[what]
    path = tmp_path / "damaged.db"
    data = bytearray(source.read_bytes())
    at = place(data, find) + behind
    data[at] ^= 0x01
    path.write_bytes(data)
    r = run([TENET, "store", "check", "--storage-path", path], check=False)
    assert r.returncode == 1 and "good" not in r.stdout, (r.stdout, r.stderr)
    m = started(tmp_path, path)
    try:
        if m.proc.poll() is not None or not is_ready(m):
            assert re.search(r"damage|checksum|corrupt|malformed", m.text()), m.text()
            return
        served = everything(m)
        assert {k: served.get(k, v) for k, v in content.items()} == content, "what is served is what was stored"
        m.call("POST", "/api/v1/nodes", ha.node("new", "10.245.2.99"))
        m.call("POST", "/api/v1/namespaces", ha.namespace("newp"))
        wait_for("a subnet", lambda: "new" in m.subnets() and "newp" in m.netids())
        old_subnets = {o["subnet"] for (p, _), o in content.items() if p.endswith("hostsubnets")}
        assert m.subnets()["new"] not in old_subnets
        assert m.netids()["newp"] not in {o["netid"] for (p, _), o in content.items() if p.endswith("netnamespaces")}
    finally:
        m.kill()


def test_an_undamaged_database_is_good(filled, tmp_path):
    """The control of the above."""
    source, content = filled
    path = tmp_path / "good.db"
    shutil.copy(source, path)
    assert run([TENET, "store", "check", "--storage-path", path]).stdout.startswith(f"{path}: good\n")
    m = started(tmp_path, path)
    try:
        assert is_ready(m) and everything(m) == content
    finally:
        m.kill()


@pytest.mark.parametrize("how", ["a row removed", "a row's copy", "a row of before", "two rows exchanged", "the file cut",
                                 "zeroes", "text", "empty WAL of another"])
def test_a_database_that_was_edited_is_not_served_as_good(filled, tmp_path, how):
    source, content = filled
    path = tmp_path / "edited.db"
    shutil.copy(source, path)
    if how in ("the file cut", "zeroes", "text"):
        data = path.read_bytes()
        path.write_bytes({"the file cut": data[:len(data) // 2], "zeroes": data[:4096] + bytes(len(data) - 4096),
                          "text": b"hello\n"}[how])
    elif how == "empty WAL of another":
        pathlib.Path(f"{path}-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(28) + b"x" * 8000)
    else:
        with sqlite3.connect(path) as db:
            a, b = [r[0] for r in db.execute("SELECT rev FROM change WHERE key LIKE '%lease-00%' ORDER BY rev LIMIT 2")]
            if how == "a row removed":
                db.execute("DELETE FROM change WHERE rev = ?", (a,))
            elif how == "a row of before":
                db.execute("UPDATE change SET value = NULL WHERE rev = ?", (a,))
            elif how == "two rows exchanged":
                (va,), (vb,) = (db.execute("SELECT value FROM change WHERE rev = ?", (x,)).fetchone() for x in (a, b))
                db.execute("UPDATE change SET value = ? WHERE rev = ?", (vb, a))
                db.execute("UPDATE change SET value = ? WHERE rev = ?", (va, b))
            else:
                db.execute("UPDATE change SET value = (SELECT value FROM change WHERE rev = ?) WHERE rev = ?", (b, a))
    m = started(tmp_path, path)
    try:
        if is_ready(m):
            assert everything(m) == content  # a WAL that is not this file's is nothing
        else:
            assert run([TENET, "store", "check", "--storage-path", path], check=False).returncode == 1
    finally:
        m.kill()


def acknowledges(m, i):
    try:
        return m.raw("POST", LEASES, register(f"later-{i}", i), timeout=30)[0] == 201
    except Gone:
        return False


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced", "WAL deleted", "WAL overwritten", "WAL cut", "file cut"])
def test_nothing_is_acknowledged_once_the_database_is_gone(made, tmp_path, how):
    """Under a running master: it notices with the next write at the latest, says so, and is not ready."""
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    for i in range(30):
        assert acknowledges(m, i)
    db, wal = m.path, pathlib.Path(f"{m.path}-wal")
    if how == "deleted":
        db.unlink()
    elif how == "moved":
        db.rename(tmp_path / "elsewhere")
    elif how == "replaced":
        shutil.copy(db, tmp_path / "copy")
        os.replace(tmp_path / "copy", db)
    elif how == "WAL deleted":
        wal.unlink()
    elif how == "WAL overwritten":
        wal.write_bytes(os.urandom(max(wal.stat().st_size, 8192)))
    elif how == "WAL cut":
        os.truncate(wal, 0)
    else:
        os.truncate(db, 4096)
    told = [i for i in range(100, 140) if acknowledges(m, i)]
    ready = is_ready(m)
    log = m.text()
    m.kill()
    # What was acknowledged is there, or nothing was.
    lost = told
    if told:
        again = started(tmp_path, db) if db.exists() else None
        if again and is_ready(again):
            names = {o["metadata"]["name"] for o in again.items(LEASES)}
            lost = [i for i in told if f"later-{i}" not in names] + [i for i in range(30) if f"later-{i}" not in names]
        if again:
            again.kill()
    assert not lost, f"acknowledged and gone: {lost}"
    if not told:
        assert not ready and re.search(r"delet|replac|moved|gone|overwrit|changed|damage|shorter|cut", log), log[-2000:]


def test_a_full_disk_refuses_writes_serves_reads_and_lets_room_be_made(made, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=160m", "tenet-attack", small])
    try:
        m = ha.PlainMaster(tmp_path, path=small / "registry.db")
        made.append(m)
        big = {"metadata": {"annotations": {"a": "x" * 200000}}}
        stored, refused = [], 0
        for i in range(1200):
            status = m.call("POST", "/api/v1/namespaces", {**ha.namespace(f"big{i}"), "metadata": {"name": f"big{i}",
                **big["metadata"]}})[0]
            if status == 201:
                stored.append(i)
            else:
                refused += 1
                if refused == 5:
                    break
        assert refused and stored, "the disk is not full"
        assert m.call("GET", f"/api/v1/namespaces/big{stored[0]}")[0] == 200
        # An administrator makes room with the API itself, once the master has opened the database again.
        # What grows is taken again when as much is free as the reserve needs.
        kept = stored[-20:]
        for i in stored[:-20]:
            wait_for(f"big{i} to be deleted", lambda i=i: m.call("DELETE", f"/api/v1/namespaces/big{i}")[0] in (200, 404))
        wait_for("them to go", lambda: m.call("GET", f"/api/v1/namespaces/big{stored[0]}")[0] == 404)
        wait_for("a write", lambda: m.call("POST", LEASES, register("after", 1))[0] in (201, 409))
        m.kill()
        m.start()
        names = {o["metadata"]["name"] for o in m.items("/api/v1/namespaces")}
        assert {f"big{i}" for i in kept} <= names and m.call("GET", f"{LEASES}/after")[0] == 200
        m.kill()
    finally:
        run(["umount", "-l", small])


def test_ready_is_what_writes_say_while_etcd_hangs(made, tmp_path):
    etcd = ha.Etcd(tmp_path)
    made.append(etcd)
    m = ha.Master(tmp_path, "m", etcd)
    made.insert(0, m)
    m.wait_ready()
    assert m.call("POST", LEASES, register("before", 1))[0] == 201
    with etcd.stopped(0):
        began = time.monotonic()
        status, _ = m.call("PUT", f"{LEASES}/before", register("before", 2), timeout=40)
        assert status == 503, "the write is refused"
        assert m.raw("GET", "/readyz")[0] != 200, f"ready {time.monotonic() - began:.0f} s after a write was refused"
        assert m.raw("GET", "/livez")[0] == 200
    m.wait_ready()
    assert wait_for("a write", lambda: m.call("POST", LEASES, register("after", 3))[0] == 201)
    assert m.call("GET", f"{LEASES}/before")[1]["spec"]["holderIdentity"] in ("1", "2")


def test_what_was_acknowledged_survives_any_kill(made, tmp_path):
    """SIGKILL in the middle of writes, again and again."""
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    told, n = {}, 0
    for _ in range(4):
        stop = threading.Event()

        def write():
            nonlocal n
            while not stop.is_set():
                n += 1
                try:
                    status, o = m.call("POST", LEASES, register(f"k{n}", n))
                except Gone:
                    return
                if status == 201:
                    told[f"k{n}"] = o["metadata"]["resourceVersion"]
        t = threading.Thread(target=write)
        count = len(told)
        t.start()
        wait_for("writes", lambda: len(told) > count + 20)
        m.kill()
        stop.set()
        t.join()
        assert run([TENET, "store", "check", "--storage-path", m.path]).stdout.startswith(f"{m.path}: good\n")
        m.start()
        now = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in m.items(LEASES)}
        assert {k: now.get(k) for k in told} == told
    revisions = list(told.values())
    assert len(set(revisions)) == len(revisions)


def test_a_second_master_and_other_programs_are_kept_out(made, tmp_path):
    """No two write to one file; a database of something else, of a newer version, or a folder is left as it is."""
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    conf = json.dumps({"servingInfo": {"bindAddress": "127.0.0.1:0"}, "storage": {"backend": "sqlite", "path": str(m.path)}})
    (tmp_path / "second.yaml").write_text(conf)
    r = subprocess.run([TENET, "master", "--config", tmp_path / "second.yaml"], capture_output=True, text=True, timeout=60)
    assert r.returncode != 0 and "in use" in r.stderr + r.stdout
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    before = other.read_bytes()
    for path in (other, tmp_path, pathlib.Path("/dev/null")):
        (tmp_path / "third.yaml").write_text(conf.replace(str(m.path), str(path)))
        with open(tmp_path / "third.log", "w") as log:
            p = subprocess.Popen([TENET, "master", "--config", tmp_path / "third.yaml"], stdout=log, stderr=log)
        try:
            wait_for("the refusal", lambda p=p: p.poll() is not None or " ERROR " in (tmp_path / "third.log").read_text() or
                     " WARN " in (tmp_path / "third.log").read_text())
            assert " ready" not in (tmp_path / "third.log").read_text()
        finally:
            p.kill()
            p.wait()
    assert other.read_bytes() == before
    assert m.call("POST", LEASES, register("still", 1))[0] == 201
