# SPDX-License-Identifier: Apache-2.0
"""tenet store: moving a registry between SQLite and etcd, backups, checks; and etcd's own tools for the same."""
import base64
import contextlib
import hashlib
import json
import shutil
import signal
import sqlite3
import stat
import subprocess
import time

import pytest

import ha
from ha import LEASES, register
from lab import TENET, run, wait_for


@pytest.fixture
def made(tmp_path):
    """Things to be ended, in that order."""
    things = []
    yield things
    for t in things:
        t.kill(signal.SIGTERM) if isinstance(t, ha.Master) else t.close()


def store(*args, **kw):
    return run([TENET, "store", *args], **kw)


def fill(m, n):
    for i in range(n):
        status, obj = m.call("POST", LEASES, register(f"x{i}", i + 1))
        assert status == 201, obj
        if i % 3 == 0:
            obj["spec"]["holderIdentity"] = str(1000 + i)
            assert m.call("PUT", f"{LEASES}/x{i}", obj)[0] == 200
    assert m.call("DELETE", f"{LEASES}/x1")[0] == 200


def content(m):
    """Objects without their versions, but for what masters themselves keep changing."""
    return {o["metadata"]["uid"]: {**o, "metadata": {**o["metadata"], "resourceVersion": ""}}
            for path in (LEASES, "/api/v1/namespaces", ha.NET + "netnamespaces", ha.NET + "clusternetworks")
            for o in m.items(path) if o["metadata"]["name"] != "kube-system"}


def revision(m):
    return int(m.call("GET", LEASES)[1]["metadata"]["resourceVersion"])


def test_from_sqlite_to_etcd_and_back(made, tmp_path):
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    fill(m, 30)
    before, rev = content(m), revision(m)
    out = tmp_path / "registry.jsonl"
    r = store("export", out, "--storage-path", m.path)  # the master runs
    assert "exported" in r.stderr and stat.S_IMODE(out.stat().st_mode) == 0o600
    lines = out.read_text().splitlines()
    head, last = json.loads(lines[0]), json.loads(lines[-1])
    assert head == {"format": "tenet-registry", "version": 1, "revision": rev, "keys": len(lines) - 2}
    assert last["sha256"] == hashlib.sha256("".join(line + "\n" for line in lines[:-1]).encode()).hexdigest()
    assert sorted(json.loads(line)["key"] for line in lines[1:-1]) == [json.loads(line)["key"] for line in lines[1:-1]]
    m.kill(signal.SIGTERM)

    etcd = ha.Etcd(tmp_path)
    made.append(etcd)
    to_etcd = ["--storage-backend", "etcd", "--storage-endpoints", etcd.endpoints]
    store("import", out, *to_etcd)
    r = store("import", out, *to_etcd, check=False)
    assert r.returncode == 1 and "--force replaces them" in r.stderr
    m2 = ha.Master(tmp_path, "on-etcd", etcd)
    made.insert(0, m2)
    m2.wait_ready()
    got = content(m2)
    assert {k: got.get(k) for k in before} == before
    assert revision(m2) > rev, "a client that has seen a version must never be told of an older one"
    assert all(int(o["metadata"]["resourceVersion"]) > rev for o in m2.items(LEASES))
    assert m2.call("POST", LEASES, register("later", 7))[0] == 201
    rev2 = revision(m2)
    with open(tmp_path / "two.jsonl", "w") as f:
        subprocess.run([TENET, "store", "export", "-", *to_etcd], stdout=f, check=True)
    m2.kill(signal.SIGTERM)

    with open(tmp_path / "two.jsonl") as f:
        r = subprocess.run([TENET, "store", "import", "-", "--storage-path", m.path], stdin=f, stderr=subprocess.PIPE,
                           text=True)
    assert r.returncode == 1 and "--force replaces them" in r.stderr
    store("import", tmp_path / "two.jsonl", "--storage-path", m.path, "--force")
    assert not list(tmp_path.glob("*.import*")) and not list(tmp_path.glob("*.export*"))
    m.start()
    assert content(m).keys() >= before.keys() and m.call("GET", f"{LEASES}/later")[0] == 200
    assert revision(m) > rev2
    assert store("check", "--storage-path", m.path).stdout.startswith(f"{m.path}: good\n")


def test_exports_that_were_changed_are_refused(made, tmp_path):
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    fill(m, 5)
    good = tmp_path / "good"
    store("export", good, "--storage-path", m.path)
    lines = good.read_text().splitlines(keepends=True)
    cases = {
        "cut": ("".join(lines[:-1]), "cut off"),
        "short": ("".join(lines[:2] + lines[3:]), "some are missing"),
        "changed": ("".join(lines).replace("holderIdentity", "HolderIdentity", 1), "checksum"),
        "head": ("".join(lines[1:]), "no exported registry"),
        "newer": ("".join(lines).replace('"version":1', '"version":2', 1), "newer version"),
        "order": ("".join([lines[0], lines[2], lines[1], *lines[3:]]), "not in order"),
        "twice": ("".join(lines + lines), "after the end"),
        "text": ("hello\n", "line 1: "),
    }
    for name, (text, words) in cases.items():
        (tmp_path / name).write_text(text)
        r = store("import", tmp_path / name, "--storage-path", tmp_path / "new.db", check=False)
        assert r.returncode == 1 and words in r.stderr, (name, r.stderr)
        assert not (tmp_path / "new.db").exists() and not list(tmp_path.glob("new.db.import*"))
    r = store("import", good, "--storage-path", m.path, "--force", check=False)
    assert r.returncode == 1 and "in use by process" in r.stderr
    r = store("export", good, "--storage-path", m.path, check=False)
    assert r.returncode == 1 and "exists" in r.stderr


def test_an_import_that_was_broken_off_is_not_served_and_can_be_repeated(made, tmp_path):
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    fill(m, 10)
    before = content(m)
    out = tmp_path / "out"
    store("export", out, "--storage-path", m.path)
    m.kill(signal.SIGTERM)
    etcd = ha.Etcd(tmp_path)
    made.append(etcd)
    to_etcd = ["--storage-backend", "etcd", "--storage-endpoints", etcd.endpoints]
    # As it is when the power goes in the middle: the mark, and some of the keys.
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    etcd.ctl("put", "/registry/tenet.io/import", lines[-1]["sha256"])
    etcd.ctl("put", lines[1]["key"], lines[1]["value"])
    etcd.ctl("put", lines[2]["key"], "something else")
    m2 = ha.Master(tmp_path, "on-etcd", etcd)
    made.insert(0, m2)
    wait_for("the master to say why", lambda: "import into the registry is not finished" in m2.text())
    assert m2.raw("GET", LEASES)[0] == 503 and m2.raw("GET", "/readyz")[0] == 503
    m2.kill()
    other = tmp_path / "other"
    shutil.copy(m.path, tmp_path / "copy.db")
    store("import", out, *to_etcd)
    r = store("import", out, *to_etcd, check=False)
    assert r.returncode == 1, "it is whole now"
    m2.start()
    got = content(m2)
    assert {k: got.get(k) for k in before} == before
    # Into a running master's etcd: it stops serving what is being replaced.
    store("import", out, *to_etcd, "--force")
    wait_for("the master to notice", lambda: m2.raw("GET", "/readyz")[0] == 503)
    assert m2.raw("POST", LEASES, register("z", 1))[0] == 503
    assert not other.exists()


def test_backup_restore_check_and_defrag_of_sqlite(made, tmp_path):
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    fill(m, 30)
    before, rev = content(m), revision(m)
    backup = tmp_path / "backup.db"
    store("backup", backup, "--storage-path", m.path)  # while it runs
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert store("backup", backup, "--storage-path", m.path, check=False).returncode == 1
    text = store("check", "--storage-path", m.path).stdout
    assert f"revision: {rev}\n" in text
    for i in range(40):
        assert m.call("POST", LEASES, register(f"after{i}", i))[0] == 201
    newest = revision(m)
    for command in (["restore", backup, "--force"], ["defrag"]):
        r = store(*command, "--storage-path", m.path, check=False)
        assert r.returncode == 1 and "in use by process" in r.stderr
    m.kill(signal.SIGTERM)
    r = store("restore", backup, "--storage-path", m.path, check=False)
    assert r.returncode == 1 and "--force replaces them" in r.stderr
    store("restore", backup, "--storage-path", m.path, "--force")
    assert store("check", "--storage-path", m.path).returncode == 0
    m.start()
    assert content(m) == before
    assert revision(m) > newest
    # A version from before is too old, not from the future: clients list again.
    status, body = m.call("GET", f"{LEASES}?watch=1&resourceVersion={newest}&timeoutSeconds=1")
    event = body if isinstance(body, dict) else json.loads(body.splitlines()[0])
    assert status == 410 or (event["type"] == "ERROR" and event["object"]["code"] == 410), (status, body)
    m.kill(signal.SIGTERM)
    # On an empty machine; from a damaged backup; on a damaged database.
    store("restore", backup, "--storage-path", tmp_path / "fresh.db")
    assert store("check", "--storage-path", tmp_path / "fresh.db").returncode == 0
    damaged = tmp_path / "damaged.db"
    data = bytearray(backup.read_bytes())
    data[len(data) // 2:len(data) // 2 + 4096] = b"Z" * 4096
    damaged.write_bytes(data)
    r = store("check", "--storage-path", damaged, check=False)
    assert r.returncode == 1 and "corrupt" in r.stderr and str(damaged) in r.stderr
    r = store("restore", damaged, "--storage-path", m.path, "--force", check=False)
    assert r.returncode == 1 and "corrupt" in r.stderr
    m.start()
    assert content(m) == before
    m.kill(signal.SIGTERM)
    r = store("restore", backup, "--storage-path", damaged, check=False)
    assert r.returncode == 1 and "corrupt" in r.stderr
    store("restore", backup, "--storage-path", damaged, "--force")
    assert store("check", "--storage-path", damaged).returncode == 0
    assert not [p.name for p in tmp_path.iterdir() if p.suffix in (".part", ".restore", ".check")]


def test_defrag_gives_space_back(made, tmp_path):
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    big = register("big", 1)
    big["metadata"]["annotations"] = {"a": "x" * 100000}
    for i in range(60):
        big["metadata"]["name"] = f"big{i}"
        assert m.call("POST", LEASES, big)[0] == 201
    assert m.call("DELETE", LEASES)[0] == 200
    before = content(m)
    m.kill(signal.SIGTERM)
    # Deleted objects are history for a while; an export leaves it behind.
    store("export", tmp_path / "out", "--storage-path", m.path)
    size = m.path.stat().st_size
    with contextlib.closing(sqlite3.connect(m.path)) as db:
        db.executescript("DELETE FROM change WHERE length(value) > 90000; DELETE FROM change WHERE value IS NULL;")
        sums = [row[0] for row in db.execute("SELECT sum FROM change")]
        total = sum(sums) % 2**64
        db.execute("UPDATE state SET n = ?, total = ?", (len(sums), total - 2**64 if total >= 2**63 else total))
        db.commit()
    (m.path.parent / (m.path.name + ".lock")).unlink()  # It says that there were newer changes.
    assert store("defrag", "--storage-path", m.path).stdout.startswith(f"{m.path}: {size} bytes before")
    assert m.path.stat().st_size < size / 10
    m.start()
    assert content(m) == before


def test_etcds_own_backup_restore_and_defrag(made, tmp_path):
    etcd = ha.Etcd(tmp_path)
    made.append(etcd)
    m = ha.Master(tmp_path, "master", etcd)
    made.insert(0, m)
    m.wait_ready()
    fill(m, 20)
    before = content(m)
    etcd.ctl("snapshot", "save", tmp_path / "snap")
    assert m.call("POST", LEASES, register("after", 1))[0] == 201
    etcd.ctl("defrag")
    wait_for("writes after defragmentation", lambda: m.call("POST", LEASES, register("defragged", 1))[0] in (201, 409))
    newest = revision(m)
    m.kill(signal.SIGTERM)
    etcd.kill(0)
    shutil.rmtree(tmp_path / "m0")
    etcd.ctl("snapshot", "restore", tmp_path / "snap", "--data-dir", tmp_path / "m0", "--name", "m0",
             "--initial-cluster", f"m0=http://127.0.0.1:{etcd.peer[0]}", "--initial-cluster-token", "restored",
             "--initial-advertise-peer-urls", f"http://127.0.0.1:{etcd.peer[0]}")
    etcd.start(0)
    etcd.wait_healthy()
    # Its revisions went back; an export and an import make them go on after the newest that clients have seen.
    to_etcd = ["--storage-backend", "etcd", "--storage-endpoints", etcd.endpoints]
    store("export", tmp_path / "out", *to_etcd)
    lines = (tmp_path / "out").read_text().splitlines()
    assert json.loads(lines[0])["revision"] < newest
    store("import", tmp_path / "out", *to_etcd, "--force", "--min-revision", str(newest))
    m.start()
    assert content(m) == before
    assert m.call("POST", LEASES, register("now", 1))[0] == 201
    assert revision(m) > newest


def test_wrong_usage(tmp_path):
    for args, words in ((["fly"], "not one of"), (["export"], "takes a FILE"), (["check", "x"], "takes no FILE"),
                        (["backup", "x", "--storage-backend", "etcd", "--storage-endpoints", "http://127.0.0.1:1"], "etcdctl"),
                        (["export", "x", "--storage-backend", "memory"], "memory"), (["export", "x", "--nope"], "wrong option")):
        r = store(*args, check=False)
        assert r.returncode == 2 and words in r.stderr, (args, r.stderr)
    r = store("export", tmp_path / "x", "--storage-path", tmp_path / "absent.db", check=False)
    assert r.returncode == 1 and "absent.db" in r.stderr and not (tmp_path / "absent.db").exists()
    r = store("import", tmp_path / "absent", "--storage-path", tmp_path / "absent.db", check=False)
    assert r.returncode == 1 and not (tmp_path / "absent.db").exists()


# ---- damage ----

def health(m, path="/readyz"):
    return m.call("GET", path)


def flip(m, key):
    """Changes one character of the newest value of 'key' where SQLite does not notice."""
    with contextlib.closing(sqlite3.connect(m.path)) as db:
        db.execute("UPDATE change SET value = CAST(replace(CAST(value AS TEXT), '10.128.0.0/23', '10.128.2.0/23') AS BLOB)"
                   " WHERE rev = (SELECT max(rev) FROM change WHERE key = ?)", (key,))
        db.commit()


def test_a_damaged_host_subnet_is_found_and_its_number_is_not_given_out_again(made, tmp_path):
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    key = "/registry/network.openshift.io/hostsubnets/n1"
    assert m.call("POST", "/api/v1/nodes", ha.node("n1", "10.9.0.1"))[0] == 201
    wait_for("a subnet", lambda: m.subnets() == {"n1": "10.128.0.0/23"})
    subnet = m.items(ha.NET + "hostsubnets")[0]
    fill(m, 5)
    assert m.kill(signal.SIGTERM) == 0
    flip(m, key)
    r = store("check", "--storage-path", m.path, check=False)
    assert r.returncode == 1 and f'of the key "{key}" is not what was written' in r.stdout, r
    m.start(wait=False)
    assert m.proc.wait(timeout=30) == 1
    last = m.text().splitlines()[-1]
    assert key in last and "is not what was written" in last and "tenet store repair" in last, last
    r = store("repair", "--storage-path", m.path, check=False)
    assert r.returncode == 1 and "1 findings; nothing was changed" in r.stderr and key in r.stdout, r
    r = store("repair", "--storage-path", m.path, "--force")
    assert "1 were taken out" in r.stdout and "store release hostsubnets" in r.stdout, r
    assert "netnamespaces" not in r.stdout and (tmp_path / "master.db.damaged").exists()
    m.start()
    # The node would get another subnet, and another node would get this one.
    assert m.call("POST", "/api/v1/nodes", ha.node("n2", "10.9.0.2"))[0] == 201

    def told(name):
        conditions = m.call("GET", f"/api/v1/nodes/{name}")[1]["status"].get("conditions", [])
        return any("no subnet is given out" in c.get("message", "") for c in conditions) or [
            e for e in m.items("/api/v1/events")
            if e["involvedObject"]["name"] == name and "no subnet is given out" in e["message"]]
    wait_for("n1 to be refused", lambda: told("n1"))
    wait_for("n2 to be refused", lambda: told("n2"))
    assert m.subnets() == {}
    # The administrator knows what it was.
    for k in ("resourceVersion", "uid", "creationTimestamp"):
        subnet["metadata"].pop(k)
    status, body = m.call("POST", ha.NET + "hostsubnets", subnet)
    assert status == 403 and "no subnet is given out" in body["message"], body
    subnet["metadata"]["annotations"]["tenet.io/number-is-known"] = "true"
    assert m.call("POST", ha.NET + "hostsubnets", subnet)[0] == 201
    assert m.kill(signal.SIGTERM) == 0
    assert store("release", "hostsubnets", "--storage-path", m.path).stdout == "hostsubnets: released\n"
    assert store("release", "hostsubnets", "--storage-path", m.path).stdout == "hostsubnets: nothing was held\n"
    m.start()
    wait_for("n2's subnet", lambda: m.subnets() == {"n1": "10.128.0.0/23", "n2": "10.128.2.0/23"})
    assert len(m.items(LEASES)) >= 4
    r = store("repair", "--storage-path", m.path, "--force", check=False)
    assert r.returncode == 1 and "in use by process" in r.stderr


@pytest.mark.parametrize("what", ["deleted", "replaced", "wal"])
def test_files_that_go_under_a_running_master(made, tmp_path, what):
    m = ha.PlainMaster(tmp_path)
    made.append(m)
    fill(m, 5)
    assert health(m)[0] == 200
    if what == "deleted":
        m.path.unlink()
    elif what == "replaced":
        shutil.copy(m.path, tmp_path / "other")
        (tmp_path / "other").rename(m.path)
    else:
        with open(f"{m.path}-wal", "r+b") as f:
            f.write(b"garbage" * 1000)
    status, body = wait_for("the master to notice", lambda: (r := health(m))[0] == 503 and r)
    assert "[-]etcd failed: the store is not available" in body and "while the master worked on it" in body, body
    assert health(m, "/livez") == (200, "ok")
    status, body = m.call("POST", LEASES, register("late", 1))
    assert status == 503 and "while the master worked on it" in body["message"], body
    assert m.call("GET", f"{LEASES}/x0")[0] == 200
    m.kill(signal.SIGTERM)
    if what == "replaced":  # By the same, and the WAL is still there: nothing is missing.
        m.start()
        assert m.call("GET", f"{LEASES}/x0")[0] == 200
        return
    m.start(wait=False)
    assert m.proc.wait(timeout=30) == 1, "nothing takes the place of what was acknowledged"
    last = m.text().splitlines()[-1]
    assert "were acknowledged" in last or "corrupt" in last, last
    assert what != "deleted" or not m.path.exists()


def test_ready_says_what_writes_say_when_etcd_hangs(made, tmp_path):
    etcd = ha.Etcd(tmp_path)
    made.append(etcd)
    m = ha.Master(tmp_path, "on-etcd", etcd)
    made.insert(0, m)
    m.wait_ready()
    assert m.call("POST", LEASES, register("a", 1))[0] == 201
    with etcd.stopped(0):
        time.sleep(1)  # So long a good answer counts.
        status, body = m.call("GET", "/readyz", timeout=3)
        assert status == 503 and "[-]etcd failed: the store has not answered a write" in body, body
        assert m.call("GET", "/livez") == (200, "ok")
        assert m.call("GET", "/readyz?exclude=etcd")[0] == 200
    wait_for("it to be ready again", lambda: health(m)[0] == 200)
    assert m.call("POST", LEASES, register("b", 1))[0] == 201
    etcd.kill(0)
    status, body = wait_for("the loss to show", lambda: (r := health(m))[0] == 503 and r)
    assert "[-]etcd failed: " in body, body
    etcd.start(0)
    wait_for("it to be ready again", lambda: health(m)[0] == 200)


def test_an_object_that_cannot_be_read_is_not_deleted(made, tmp_path):
    etcd = ha.Etcd(tmp_path)
    made.append(etcd)
    m = ha.Master(tmp_path, "on-etcd", etcd)
    made.insert(0, m)
    m.wait_ready()
    wait_for("the controllers", m.leads)
    assert m.call("POST", "/api/v1/nodes", ha.node("n1", "10.9.0.1"))[0] == 201
    wait_for("a subnet", lambda: m.subnets() == {"n1": "10.128.0.0/23"})
    key = "/registry/network.openshift.io/hostsubnets/n1"
    good = json.loads(etcd.ctl("get", key, "-w", "json").stdout)["kvs"][0]["value"]
    etcd.ctl("put", key, "{damaged")
    status, body = wait_for("it to show", lambda: (r := m.call("GET", ha.NET + "hostsubnets"))[0] == 500 and r)
    assert key in body["message"], body
    assert f"[-]integrity failed: an object cannot be read: {key}" in health(m)[1]
    m.kill()
    m.start(wait=False)  # Also one that has never seen another value.

    def posted():
        with contextlib.suppress(ha.Gone):
            return m.call("POST", "/api/v1/nodes", ha.node("n2", "10.9.0.2"))[0] == 201
    wait_for("the master to take a node", posted)
    other = {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "metadata": {"name": "n2"}, "host": "n2",
             "hostIP": "10.9.0.2", "subnet": "10.128.0.0/23"}
    status, body = m.call("POST", ha.NET + "hostsubnets", other)
    assert status == 403 and "no subnet is given out" in body["message"], body
    etcd.ctl("put", key, base64.b64decode(good).decode())
    wait_for("n2's subnet", lambda: health(m)[0] == 200 and
             m.subnets() == {"n1": "10.128.0.0/23", "n2": "10.128.2.0/23"})
