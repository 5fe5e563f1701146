# SPDX-License-Identifier: Apache-2.0
"""src/runtime against a real runtime: each call, its errors, events of exits, and a runtime that is killed."""
import pathlib
import re
import secrets
import shutil
import tempfile
import time
import urllib.request

import pytest

import containerd as ctd
from lab import wait_for

CREATED, RUNNING, EXITED = 0, 1, 2


@pytest.fixture(scope="module")
def own():
    ctd.needed()
    path = pathlib.Path(tempfile.mkdtemp(prefix="tenet-cri-"))
    c = None
    try:
        c = ctd.start(path)
        yield c
    finally:
        if c:
            c.stop()
        shutil.rmtree(path)


@pytest.fixture
def cri(own):
    d = ctd.Driver(own.endpoint)
    d.event(lambda e: e["event"] == "resync")
    made = []
    d.made = made
    yield d
    for sandbox in d("list_sandboxes")["result"]:
        d("stop_sandbox", of=sandbox["id"])
        d("remove_sandbox", of=sandbox["id"])
    d.close()


def sandbox(own, name="web", **extra):
    uid = extra.pop("uid", secrets.token_hex(8))
    return {"name": name, "uid": uid, "namespace": "red", "attempt": 0, "hostname": name, "logs": str(own.folder / "logs" / uid),
            "cgroupParent": f"/{own.cgroup}/{uid}",
            "labels": {"io.kubernetes.pod.uid": uid, "io.kubernetes.pod.name": name}, "annotations": {"a": "b"}, **extra}


def container(name="c", command=("/bin/sleep", "1000"), **extra):
    return {"name": name, "attempt": 0, "image": ctd.IMAGE, "command": list(command), "logPath": f"{name}/0.log",
            "labels": {"io.kubernetes.container.name": name}, "annotations": {"io.kubernetes.container.restartCount": "0"}, **extra}


def run_container(cri, own, spec, sandbox_spec=None):
    """(sandbox's id, container's id), started."""
    s = sandbox_spec or sandbox(own)
    pathlib.Path(s["logs"], spec["name"]).mkdir(parents=True, exist_ok=True)
    sid = cri("run_sandbox", sandbox=s)["result"]
    spec = {**spec, "labels": {**spec["labels"], "io.kubernetes.pod.uid": s["uid"]}}
    cid = cri("create_container", of=sid, container=spec, sandbox=s)["result"]
    cri("start_container", of=cid)
    return sid, cid


def status(cri, cid):
    return cri("get_container", of=cid)["result"][0]


def log_of(own, s, name="c"):
    return pathlib.Path(s["logs"], name, "0.log").read_text()


def test_the_runtime_says_what_it_is(cri, own):
    version = cri("version")
    assert version["name"] == own.NAME and version["version"]
    answer = cri("status")
    assert answer["runtime"] and answer["network"], answer


def test_a_sandbox_lives_and_goes(cri, own):
    before = time.time_ns()
    s = sandbox(own, dnsServers=["10.0.0.1"], dnsSearches=["red.svc"], dnsOptions=["ndots:5"])
    sid = cri("run_sandbox", sandbox=s)["result"]
    listed = {x["id"]: x for x in cri("list_sandboxes")["result"]}[sid]
    assert (listed["name"], listed["namespace"], listed["uid"], listed["attempt"]) == ("web", "red", s["uid"], 0)
    assert listed["ready"] and s["labels"].items() <= listed["labels"].items() and listed["annotations"] == s["annotations"]
    assert before <= listed["created"] <= time.time_ns()
    assert [x["id"] for x in cri("list_sandboxes", of=s["uid"])["result"]] == [sid]
    assert cri("list_sandboxes", of="another")["result"] == []
    full = cri("get_sandbox", of=sid)["result"][0]
    assert full["ip"].startswith("10.77.") and full["network"] == 0 and s["labels"].items() <= full["labels"].items()
    cri("stop_sandbox", of=sid)
    assert not cri("get_sandbox", of=sid)["result"][0]["ready"]
    assert not {x["id"]: x for x in cri("list_sandboxes")["result"]}[sid]["ready"]
    cri("stop_sandbox", of=sid)
    cri("remove_sandbox", of=sid)
    assert cri.fails("get_sandbox", of=sid)[0] == "ENOENT"
    cri("remove_sandbox", of=sid)  # it is idempotent in CRI


def test_a_sandbox_in_the_network_of_the_node(cri, own):
    sid = cri("run_sandbox", sandbox=sandbox(own, hostNetwork=True, hostname=""))["result"]
    assert cri("get_sandbox", of=sid)["result"][0]["network"] == 2


def test_a_container_lives_and_ends(cri, own):
    s = sandbox(own)
    sid, cid = run_container(cri, own, container(
        command=["/bin/sh", "-c", "echo $GREETING; cat /etc/known; id -u; exit 3"], env={"GREETING": "hello = you"}, user=1000), s)
    e = cri.event(lambda e: cid in (e.get("container"), e.get("sandbox")) and status(cri, cid)["state"] == EXITED)
    assert e["event"] == "changed"
    c = status(cri, cid)
    assert (c["exitCode"], c["reason"], c["name"], c["attempt"]) == (3, "Error", "c", 0)
    assert c["created"] <= min(c["started"], c["finished"]) and max(c["started"], c["finished"]) <= time.time_ns()
    assert c["logPath"].endswith("c/0.log") and c["annotations"] == {"io.kubernetes.container.restartCount": "0"}
    lines = [line.split(" ", 3) for line in log_of(own, s).splitlines()]
    assert [(stream, tag, text) for _, stream, tag, text in lines] == [
        ("stdout", "F", "hello = you"), ("stdout", "F", "known content"), ("stdout", "F", "1000")]
    listed = cri("list_containers", of=s["uid"])["result"]
    assert [(x["id"], x["sandbox"], x["state"]) for x in listed] == [(cid, sid, EXITED)]
    cri("remove_container", of=cid)
    assert cri.fails("get_container", of=cid)[0] == "ENOENT"


def test_exits_are_told_when_the_status_shows_them(cri, own):
    """Of 10 containers that end, the last event finds the status EXITED, soon, and the container can be removed at once."""
    late = []
    for i in range(10):
        sid, cid = run_container(cri, own, container(command=["/bin/sleep", "0.2"]), sandbox(own, f"p{i}"))
        cri.event(lambda e: cid in (e.get("container"), e.get("sandbox")) and status(cri, cid)["state"] == EXITED, 30)
        c = status(cri, cid)
        assert c["exitCode"] == 0 and c["reason"] == "Completed"
        late.append(time.time_ns() - c["finished"])
        cri("remove_container", of=cid)
        cri("stop_sandbox", of=sid)
        cri("remove_sandbox", of=sid)
    assert min(late) < 1e9, late


def test_a_container_is_stopped(cri, own):
    _, cid = run_container(cri, own, container(command=["/bin/sh", "-c", "trap 'exit 7' TERM; while true; do sleep 0.1; done"]))
    wait_for("the trap", lambda: "trap" in cri("exec_sync", of=cid, cmd=["/bin/ps"])["out"])
    cri("stop_container", of=cid, grace=30)
    c = status(cri, cid)
    assert c["state"] == EXITED and c["exitCode"] in (7, 143)
    _, stubborn = run_container(cri, own, container(command=["/bin/sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"]),
                                sandbox(own, "stubborn"))
    began = time.monotonic()
    cri("stop_container", of=stubborn, grace=1)
    assert time.monotonic() - began >= 1
    assert status(cri, stubborn)["exitCode"] == 137


def test_a_sandbox_whose_process_dies_is_told(cri, own):
    s = sandbox(own)
    sid = cri("run_sandbox", sandbox=s)["result"]
    cri.drop_events()
    pids = [p for monitor in own.monitors() for p in ctd.descendants(monitor)]
    assert len(pids) == 1, pids
    import os
    os.kill(pids[0], 9)
    cri.event(lambda e: e.get("sandbox") == sid and not e.get("container") and not cri("get_sandbox", of=sid)["result"][0]["ready"])


def test_security_and_resources(cri, own):
    s = sandbox(own)
    _, cid = run_container(cri, own, container(
        user=1000, readonlyRoot=True, noNewPrivs=True, dropCapabilities=["ALL"], seccompDefault=True, memory=64 << 20,
        cpuShares=512, maskedPaths=["/proc/kcore"], readonlyPaths=["/proc/sys"], oomScoreAdj=900), s)
    out = cri("exec_sync", of=cid, cmd=["/bin/cat", "/proc/self/status"])["out"]
    values = dict(line.split(":\t", 1) for line in out.splitlines() if ":\t" in line)
    assert values["Uid"].split()[0] == "1000" and values["NoNewPrivs"] == "1" and values["Seccomp"] == "2"
    assert int(values["CapBnd"], 16) == 0
    r = cri("exec_sync", of=cid, cmd=["/bin/sh", "-c", "echo x > /x"])
    assert r["exitCode"] != 0 and "Read-only" in r["err"]
    assert cri("exec_sync", of=cid, cmd=["/bin/cat", "/proc/1/oom_score_adj"])["out"].strip() == "900"
    cri("update_resources", of=cid, container={"memory": 128 << 20})


def test_an_oom_kill_has_its_reason(cri, own):
    """containerd watches the cgroup's events, and misses that of a container that is gone before it looks, on a busy machine."""
    reasons = []
    while len(reasons) < 5 and "OOMKilled" not in reasons:
        _, cid = run_container(cri, own, container(command=["/bin/sh", "-c", "exec dd if=/dev/zero of=/dev/null bs=200M"],
                                                   memory=16 << 20))
        cri.event(lambda e, cid=cid: e.get("container") == cid and status(cri, cid)["state"] == EXITED)
        c = status(cri, cid)
        assert c["exitCode"] == 137
        reasons.append(c["reason"])
    assert "OOMKilled" in reasons, reasons


def test_commands_in_a_container(cri, own):
    _, cid = run_container(cri, own, container())
    r = cri("exec_sync", of=cid, cmd=["/bin/sh", "-c", "echo out; echo err >&2; exit 5"])
    assert (r["out"], r["err"], r["exitCode"]) == ("out\n", "err\n", 5)
    error, text = cri.fails("exec_sync", of=cid, cmd=["/bin/sleep", "10"], timeout=1)
    assert error == "ETIMEDOUT", text
    big = cri("exec_sync", of=cid, cmd=["/bin/sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x || dd if=/dev/zero bs=5000000 count=1"])
    assert len(big["out"]) + len(big["err"]) > 0
    for call, extra in (("exec", {"cmd": ["/bin/true"]}), ("attach", {})):
        url = cri(call, of=cid, **extra)["result"]
        assert url.startswith("http://127.0.0.1:"), url
    assert cri.fails("exec_sync", of="absent", cmd=["/bin/true"])[0] == "ENOENT"


def test_a_url_for_ports(cri, own):
    sid, _ = run_container(cri, own, container())
    assert cri("port_forward", of=sid, port=80)["result"].startswith("http://127.0.0.1:")


def test_a_log_is_opened_again(cri, own):
    s = sandbox(own)
    _, cid = run_container(cri, own, container(command=["/bin/sh", "-c", "while true; do echo tick; sleep 0.05; done"]), s)
    path = pathlib.Path(s["logs"], "c", "0.log")
    wait_for("a line", lambda: "tick" in path.read_text())
    path.rename(path.with_suffix(".old"))
    cri("reopen_log", of=cid)
    wait_for("a line in the new file", lambda: path.exists() and "tick" in path.read_text())


def test_images(cri, own):
    images = cri("list_images")["result"]
    assert any(ctd.IMAGE in i["tags"] for i in images)
    one = cri("get_image", of=ctd.IMAGE)["result"][0]
    assert re.fullmatch("(sha256:)?[0-9a-f]{64}", one["id"]) and one["size"] > 500000
    assert cri.fails("get_image", of="localhost/absent:1")[0] == "ENOENT"
    error, text = cri.fails("pull_image", of="127.0.0.1:1/absent:1")
    assert error in ("EIO", "ENOENT", "EAGAIN") and re.search("absent|127.0.0.1:1/", text), (error, text)
    usage = wait_for("the usage of the images' file system", lambda: cri("image_filesystems")["result"])
    assert usage[0]["mountpoint"].endswith(own.IMAGES)
    if own.NAME == "cri-o":
        assert cri.fails("remove_image", of="localhost/absent:1")[1] == "image not known"
    else:
        cri("remove_image", of="localhost/absent:1")


def test_failures_have_the_runtimes_words(cri, own):
    s = sandbox(own)
    pathlib.Path(s["logs"], "c").mkdir(parents=True)
    sid = cri("run_sandbox", sandbox=s)["result"]
    error, text = cri.fails("create_container", of=sid, container=container(image="localhost/absent:1"), sandbox=s)
    assert "absent" in text or text == "image not known", (error, text)  # by CRI-O
    spec = container(command=["/bin/no-such-program"])
    if own.NAME == "cri-o":  # begins the process, up to its program, when it makes the container
        error, text = cri.fails("create_container", of=sid, container=spec, sandbox=s)
    else:
        cid = cri("create_container", of=sid, container=spec, sandbox=s)["result"]
        error, text = cri.fails("start_container", of=cid)
        assert status(cri, cid)["reason"] == "StartError"
    assert "no-such-program" in text and "no such file" in text, (error, text)
    if own.NAME == "cri-o":  # answers with the sandbox that has the name
        assert cri("run_sandbox", sandbox=s)["result"] == sid
    else:
        error, text = cri.fails("run_sandbox", sandbox=s)
        assert "reserved" in text or "reserve" in text, text


def test_a_runtime_that_is_killed(cri, own):
    """Calls under way end with EAGAIN; later calls, too, until it is back; containers go on; exits meanwhile are found."""
    _, stays = run_container(cri, own, container(), sandbox(own, "stays"))
    _, ends = run_container(cri, own, container(command=["/bin/sleep", "2"]), sandbox(own, "ends"))
    running = cri.begin("exec_sync", of=stays, cmd=["/bin/sleep", "1000"], timeout=0)
    wait_for("the command", lambda: "sleep 1000" in cri("exec_sync", of=stays, cmd=["/bin/ps"])["out"])
    cri.drop_events()
    own.kill()
    assert cri.end(running)["error"] == -11
    lost = cri.event(lambda e: e["event"] == "connection")
    assert "c.sock" in lost["lost"], lost
    assert cri.fails("list_sandboxes")[0] == "EAGAIN"
    own.start()
    assert cri.event(lambda e: e["event"] == "connection")["lost"] is None
    cri.event(lambda e: e["event"] == "resync")
    assert status(cri, stays)["state"] == RUNNING
    wait_for("the exit", lambda: status(cri, ends)["state"] == EXITED)
    assert status(cri, ends)["exitCode"] == 0
    # Events come again.
    cri.event(lambda e: e["event"] == "resync")
    _, next_one = run_container(cri, own, container(command=["/bin/sleep", "0.2"]), sandbox(own, "next"))
    cri.event(lambda e: e.get("container") == next_one and status(cri, next_one)["state"] == EXITED)


def test_a_long_call_outlives_silence(cri, own):
    """No PING of ours ends the connection: grpc-go allows one every five minutes only."""
    _, cid = run_container(cri, own, container())
    r = cri("exec_sync", of=cid, cmd=["/bin/sh", "-c", "sleep 25; echo done"], timeout=60)
    assert r["out"] == "done\n"


def test_a_hundred_calls_at_once(cri, own):
    _, cid = run_container(cri, own, container())
    calls = [cri.begin("list_containers") for _ in range(300)] + [cri.begin("exec_sync", of=cid, cmd=["/bin/true"]) for _ in range(5)]
    assert all(cri.end(c, 60)["error"] == 0 for c in calls)


def test_an_address_without_a_runtime(own):
    d = ctd.Driver(f"unix://{own.folder}/absent.sock")
    try:
        assert "absent.sock" in d.event(lambda e: e["event"] == "connection")["lost"]
        error, text = d.fails("version")
        assert error == "EAGAIN" and "absent.sock" in text
    finally:
        d.close()
