# SPDX-License-Identifier: Apache-2.0
"""The master on SQLite under kill -9, and on a disk that fills up: nothing acknowledged is lost, and it says what is wrong.

TENET_CRASH_SECONDS says for how long it is killed (8; the long form: 600).  Torn writes: test_torn in the unit tests."""
import os
import pathlib
import random
import signal
import subprocess
import time

import ha
from ha import LEASES, Gone, register
from lab import wait_for

SECONDS = float(os.environ.get("TENET_CRASH_SECONDS", "8"))


def test_histories_stay_linearizable_over_kill_9(tmp_path):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rnd, kills = random.Random(seed), []
    m = ha.PlainMaster(tmp_path)
    try:
        load = ha.Load([m], seed)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or len(kills) < 5:
            time.sleep(rnd.random())  # the moment of the crash is what varies
            m.kill()
            kills.append(f"kill at {time.monotonic()}")
            m.start()
        n = load.finish(tmp_path, kills)
        assert n > 100
    finally:
        m.kill(signal.SIGTERM)


def test_full_disk(tmp_path):
    """A tmpfs in a mount namespace of the master's own; the test reaches it through /proc."""
    disk = tmp_path / "disk"
    disk.mkdir()
    m = ha.PlainMaster(tmp_path, path=disk / "registry.db",
                       wrap=["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=6m tmpfs {disk} && exec \"$@\"", "sh"])
    try:
        assert m.call("POST", LEASES, register("kept", 1))[0] == 201
        inside = pathlib.Path(f"/proc/{m.proc.pid}/root{disk}")
        ballast = inside / "ballast"
        with open(ballast, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 65536)
            except OSError:
                pass
        big = register("big", 1)
        big["metadata"]["annotations"] = {"a": "x" * 200000}
        answers, i = [], 0
        while not answers or answers[-1][0] == 201:  # what the file has room for still is written
            i += 1
            big["metadata"]["name"] = f"big{i}"
            answers.append(m.call("POST", LEASES, big))
        status, body = answers[-1]
        # 503: a write of the master's own met the full disk first.
        assert (status, body["kind"], body["reason"]) in ((507, "Status", "InsufficientStorage"),
                                                          (503, "Status", "ServiceUnavailable"))
        assert "full" in body["message"]
        status, headers, body = m.raw("POST", LEASES, register("more", 1))
        assert status in (503, 507) and body["kind"] == "Status"
        assert m.call("GET", f"{LEASES}/kept")[1]["spec"]["holderIdentity"] == "1"
        wait_for("the loss to show", lambda: m.call("GET", "/readyz")[0] == 503)
        status, headers, body = m.raw("POST", LEASES, register("more", 1))
        assert status == 503 and headers["Retry-After"] == "1" and "full" in body["message"], body
        ballast.unlink()
        wait_for("writes again", lambda: m.call("POST", LEASES, register("more", 1))[0] in (201, 409))
        names = {o["metadata"]["name"] for o in m.items(LEASES)}
        assert names == {"kept", "more", *(f"big{k}" for k in range(1, i))}
        subprocess.run(["nsenter", "-m", "-r", "-t", str(m.proc.pid), ha.TENET_PATH, "store", "check", "--storage-path",
                        m.path], check=True, stdout=subprocess.PIPE)
    finally:
        m.kill(signal.SIGTERM)


def test_damaged_database_is_refused_clearly(tmp_path):
    m = ha.PlainMaster(tmp_path)
    for i in range(50):
        assert m.call("POST", LEASES, register(f"x{i}", i + 1))[0] == 201
    assert m.kill(signal.SIGTERM) == 0
    data = bytearray(m.path.read_bytes())
    data[len(data) // 2:len(data) // 2 + 8192] = b"Z" * 8192
    m.path.write_bytes(data)
    m.start(wait=False)
    assert m.proc.wait(timeout=30) == 1
    last = m.text().splitlines()[-1]
    assert str(m.path) in last and "corrupt" in last and "tenet store restore" in last
    assert m.path.read_bytes() == data, "it is left as it is"
