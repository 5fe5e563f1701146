# SPDX-License-Identifier: Apache-2.0
"""What is full or refuses: the disk of Open vSwitch's database, a flow table, a row.  The ADD fails with the reason and is
undone, pods that run notice nothing, and it works again as soon as the cause is gone."""
import concurrent.futures
import contextlib
import json
import os
import pathlib

import pytest

from lab import run, wait_for
from traffic import Connection, Traffic

pytestmark = pytest.mark.ovs_only("its database and its tables are full")

SCHEMA = pathlib.Path("/usr/share/openvswitch/vswitch.ovsschema")


@pytest.fixture(scope="module")
def own(make_lab):
    lab = make_lab("full", nodes=2, plugin="redhat/openshift-ovs-multitenant")
    lab.project("red")
    lab.pods = [lab.pod("red/a", "node1"), lab.pod("red/b", "node1"), lab.pod("red/c", "node2")]
    yield lab
    lab.down(check=False)


def state(lab):
    return lab.pod_links("node1"), sorted(lab.ports("node1")), lab.flows("node1")


def refused_add(lab, name, *words, about=None, reason="AttachFailed"):
    """The ADD fails and says why, in its answer and in an Event; nothing of it is left."""
    about = about or ("red", name)
    before = state(lab)
    r = lab.cmd("pod", "add", f"red/{name}", "--node", "node1", check=False)
    text = r.stdout + r.stderr
    assert r.returncode != 0, text
    for word in words:
        assert word in text, f"{word!r} not in: {text}"
    wait_for("an Event", lambda: [e for e in lab.objects("events", "-n", about[0]) if e["reason"] == reason
                                  and e["involvedObject"]["name"] == about[1] and words[-1] in e["message"]])
    wait_for("nothing to be left", lambda: state(lab) == before)


def works(lab, name):
    pod = lab.pod(f"red/{name}", "node1")
    assert pod.can_ping(lab.pods[2].ip) and lab.pods[0].can_ping(pod.ip)
    lab.delete_pod(f"red/{name}")


@contextlib.contextmanager
def running_pods(lab):
    """Nothing is lost within the node, and no connection is cut.  Between nodes the userspace datapath itself loses single
    packets while the host's links change (docs/ovs.md)."""
    a, b, c = lab.pods
    between = Connection(c, a)
    try:
        with Traffic([(a, b)], rate=300):
            yield
    except BaseException:
        between.kill()
        raise
    between.assert_never_cut()


@contextlib.contextmanager
def changed_database(lab, change):
    """Open vSwitch of node1 with a database that 'change(path)' has changed while nothing ran."""
    db = pathlib.Path(lab.ovs_rundir("node1")) / "conf.db"
    lab.cmd("ovs", "stop", "node1")
    try:
        with contextlib.ExitStack() as stack:
            change(db, stack)
            stack.callback(lab.cmd, "ovs", "stop", "node1")
            lab.cmd("ovs", "start", "node1")
            back(lab)
            yield
    finally:
        lab.cmd("ovs", "start", "node1")
        back(lab)


def back(lab):
    a, b, c = lab.pods
    wait_for("the pods", lambda: a.can_ping(b.ip, tries=1) and a.can_ping(c.ip, tries=1))
    wait_for("the node", lambda: lab.node("node1")["ready"])


def test_disk_of_the_database_is_full(own, tmp_path):
    small = tmp_path / "small"
    small.mkdir()

    def move(db, stack):
        run(["mount", "-t", "tmpfs", "-o", "size=1m", f"tenet-{own.name}", small])
        stack.callback(run, ["umount", "-l", small])
        target = small / "conf.db"
        target.write_bytes(db.read_bytes())
        db.unlink()
        db.symlink_to(target)

        def restore():
            data = target.read_bytes()
            db.unlink()
            db.write_bytes(data)
        stack.callback(restore)

    def fill():
        with open(small / "rest", "wb") as f, contextlib.suppress(OSError):
            while True:
                os.write(f.fileno(), b"x" * 4096)
        # And the last page of the database itself.
        sock = f"--db=unix:{own.ovs_rundir('node1')}/db.sock"
        for size in (1000, 100):
            for i in range(40):
                r = own.ns("node1", ["ovs-vsctl", sock, "--no-wait", "set", "open_vswitch", ".",
                                     f"external_ids:filler={i:0{size}}"], check=False)
                if r.returncode:
                    break
            assert r.returncode, "the disk is not full"

    with changed_database(own, move):
        with running_pods(own):
            fill()
            refused_add(own, "nodisk", "the database refused", "I/O error")
            (small / "rest").unlink()
            works(own, "disk")
        fill()
        own.cmd("node", "restart", "node1")  # Reads, and writes nothing.
        assert own.pods[0].can_ping(own.pods[2].ip)
        (small / "rest").unlink()
        works(own, "again")


def test_row_that_the_database_refuses(own, tmp_path):
    """A constraint of the schema that one pod's row breaks: others at the same time are attached."""
    strict = json.loads(SCHEMA.read_text())
    strict["tables"]["Interface"]["columns"]["external_ids"]["type"]["value"] = {"type": "string", "maxLength": 80}
    (tmp_path / "strict").write_text(json.dumps(strict))
    long = "long-" * 20 + "name"

    def convert(db, stack):
        run(["ovsdb-tool", "convert", db, tmp_path / "strict"])
        stack.callback(run, ["ovsdb-tool", "convert", db, SCHEMA])

    with changed_database(own, convert), running_pods(own):
        refused_add(own, long, "the database refused", "constraint violation")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            bad = pool.submit(own.cmd, "pod", "add", f"red/{long}", "--node", "node1", check=False)
            good = [pool.submit(own.pod, f"red/g{i}", "node1") for i in range(3)]
            assert bad.result().returncode != 0
            pods = [g.result() for g in good]
        assert pods[0].can_ping(pods[1].ip) and pods[2].can_ping(own.pods[2].ip)
        for i in range(3):
            own.delete_pod(f"red/g{i}")


def test_flow_table_is_at_its_limit(own):
    limit = len([f for f in own.flows("node1") if "table=20," in f])
    own.vsctl("node1", "--", "--id=@t", "create", "Flow_Table", f"flow_limit={limit}", "overflow_policy=refuse", "--",
              "set", "bridge", "br0", "flow_tables:20=@t")
    try:
        with running_pods(own):
            refused_add(own, "noflow", "table=20,from-pod", "table full", about=("default", "node1"),
                        reason="FlowsRefused")
            wait_for("the node to be ready again", lambda: own.node("node1")["ready"])
            conditions = own.object("node", "node1")["status"]["conditions"]
            assert {c["type"]: c["status"] for c in conditions}["NetworkUnavailable"] == "False", conditions
    finally:
        own.vsctl("node1", "clear", "bridge", "br0", "flow_tables")
    works(own, "flow")
