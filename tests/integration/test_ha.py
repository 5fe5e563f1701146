# SPDX-License-Identifier: Apache-2.0
"""Several masters on etcd: members and masters die, hang and come back, and nothing that was acknowledged is lost.

TENET_HA_SECONDS says for how long the faults go on (15; the long form: 600)."""
import concurrent.futures
import ipaddress
import os
import random
import re
import signal
import tempfile
import threading
import time

import pytest

import ha
from ha import LEASES, THE_LEASE, Gone, namespace, node, register
from lab import DEADLINE, run, wait_for

SECONDS = float(os.environ.get("TENET_HA_SECONDS", "15"))


@pytest.fixture
def world():
    """Function that makes an etcd cluster and masters on it, ready; all of it goes at the end."""
    made = []

    def make(members=1, masters=2, tls=None, conf=None, extra=(), **kw):
        tmp = tempfile.TemporaryDirectory(prefix="tenet-ha-")
        made.append([tmp, None, []])
        made[-1][1] = etcd = ha.Etcd(tmp.name, members, tls, extra)
        for i in range(masters):
            made[-1][2].append(ha.Master(tmp.name, f"master{i}", etcd, **kw, **(conf or {})))
        for m in made[-1][2]:
            m.wait_ready()
        return etcd, made[-1][2], tmp.name
    yield make
    for tmp, etcd, masters in made:
        for m in masters:
            if m.stopped:
                m.pause(False)
            m.kill(signal.SIGTERM if m.proc and etcd and len(etcd.alive()) * 2 > etcd.n else signal.SIGKILL)
        if etcd:
            etcd.close()
        tmp.cleanup()


def leader(masters):
    leading = [m for m in masters if m.proc and not m.stopped and m.leads()]
    return leading[0] if len(leading) == 1 else None


def wait_leader(masters):
    return wait_for("one leader", lambda: leader(masters))


def check_allocations(master, nodes, projects):
    """Every node and project has what it needs, and no two the same."""
    subnets = wait_for("all subnets", lambda: (s := master.subnets()) and set(nodes) <= set(s) and s)
    nets = sorted((ipaddress.ip_network(s) for s in subnets.values()), key=lambda n: n.network_address)
    assert all(not a.overlaps(b) for a, b in zip(nets, nets[1:])), nets
    ids = wait_for("all ids", lambda: (x := master.netids()) and set(projects) <= set(x) and x)
    assert ids.pop("default") == 0
    assert len(set(ids.values())) == len(ids) and all(v >= 10 for v in ids.values()), ids


class Growth(threading.Thread):
    """Nodes and projects come, so that whoever leads always has something to allocate."""

    def __init__(self, masters, seed):
        super().__init__(daemon=True)
        self.masters, self.random, self.stop = masters, random.Random(seed), threading.Event()
        self.nodes, self.projects = [], []

    def run(self):
        i = 0
        while i < 400 and not self.stop.is_set():  # there are 512 subnets
            i += 1
            for path, obj, names in (("/api/v1/nodes", node(f"n{i}", f"10.245.{i // 250}.{i % 250 + 1}"), self.nodes),
                                     ("/api/v1/namespaces", namespace(f"p{i}"), self.projects)):
                try:
                    status, _ = self.random.choice(self.masters).call("POST", path, obj, timeout=5)
                except Gone:
                    continue
                if status == 201:
                    names.append(obj["metadata"]["name"])
            self.stop.wait(0.03)


class Faults:
    """Kills, hangs and revives masters and members; a majority of the members and one master always live."""

    def __init__(self, etcd, masters, seed):
        self.etcd, self.masters, self.random, self.log = etcd, masters, random.Random(seed), []

    def step(self):
        kind = self.random.choice(["member", "master", "master", "leader", "pause"])
        if kind == "member":
            i = self.random.randrange(self.etcd.n)
            self.log.append(f"kill member {i}")
            self.etcd.kill(i)
            time.sleep(self.random.random() * 2)  # how long it is away
            self.etcd.start(i)
            self.etcd.wait_healthy()
            return
        m = (leader(self.masters) if kind in ("leader", "pause") else None) or self.random.choice(self.masters)
        if kind == "pause":
            self.log.append(f"stop {m.name} in its tracks")
            m.pause(True)
            time.sleep(3 + self.random.random() * 4)  # may be longer than its lease
            m.pause(False)
        else:
            self.log.append(f"kill {m.name}")
            m.kill(self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            time.sleep(self.random.random())  # how long it is away
            m.start()


def test_nothing_acknowledged_is_lost_whoever_dies(world):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    etcd, masters, tmp = world(members=3, masters=3, ttl=3)
    load = ha.Load(masters, seed)
    growth = Growth(masters, seed)
    growth.start()
    faults = Faults(etcd, masters, seed)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or len(faults.log) < 4:
        faults.step()
        time.sleep(0.3)  # some time without a fault, too
    for m in masters:
        m.wait_ready()
    growth.stop.set()
    growth.join(60)
    assert load.finish(tmp, faults.log) > 100
    check_allocations(masters[0], growth.nodes, growth.projects)
    wait_leader(masters)


def test_another_master_leads_at_once_when_the_leader_stops(world):
    """The lease is given up: with 600 seconds, nobody could wait for its end."""
    etcd, masters, _ = world(masters=2, ttl=600)
    first = wait_leader(masters)
    other = masters[1 - masters.index(first)]
    before = other.call("GET", THE_LEASE)[1]["spec"]
    assert before["leaseDurationSeconds"] == 600 and before["leaseTransitions"] == 0
    assert first.kill(signal.SIGTERM) == 0
    assert wait_leader(masters) is other
    after = other.call("GET", THE_LEASE)[1]["spec"]
    assert after["leaseTransitions"] == 1 and after["holderIdentity"] not in (before["holderIdentity"], "")
    other.call("POST", "/api/v1/nodes", node("n1", "10.245.0.1"))
    check_allocations(other, ["n1"], [])
    first.start()
    assert not first.leads() and "following" in first.text()


def test_a_leader_that_was_away_writes_nothing_more(world):
    etcd, masters, _ = world(masters=2, ttl=3)
    first = wait_leader(masters)
    other = masters[1 - masters.index(first)]
    holder = other.holder()
    header = {"Tenet-Lease": f"kube-system/tenet-controllers {holder}"}
    status, _ = other.call("POST", LEASES, register("under-the-lease", 1), headers=header)
    assert status == 201
    first.pause(True)
    wait_for("the other to lead", other.leads)
    for i in range(20):
        assert other.call("POST", "/api/v1/nodes", node(f"n{i}", f"10.245.0.{i + 1}"))[0] == 201
    check_allocations(other, [f"n{i}" for i in range(20)], [])
    # What the first one had sent would be refused now, by every master.
    status, body = other.call("PUT", f"{LEASES}/under-the-lease", register("under-the-lease", 2), headers=header)
    assert status == 409 and "not held by" in body["message"]
    first.pause(False)
    wait_for("it to notice", lambda: "not leading any more" in first.text())
    status, body = first.call("DELETE", f"{LEASES}/under-the-lease", headers=header)
    assert status == 409 and body["reason"] == "Conflict"
    assert wait_leader(masters) is other
    check_allocations(first, [f"n{i}" for i in range(20)], [])
    assert first.call("GET", f"{LEASES}/under-the-lease")[1]["spec"]["holderIdentity"] == "1"


def test_every_master_shows_what_any_has_acknowledged(world):
    """No sleep between a write at one and a read at another: a cache that lags would show."""
    etcd, masters, _ = world(members=3, masters=3)
    for i in range(60):
        a, b, c = (masters[(i + k) % 3] for k in range(3))
        status, obj = a.call("POST", LEASES, register(f"x{i}", 1))
        assert status == 201, obj
        assert b.call("GET", f"{LEASES}/x{i}")[0] == 200
        assert f"x{i}" in [o["metadata"]["name"] for o in c.items(LEASES)]
        obj["spec"]["holderIdentity"] = "2"
        status, new = b.call("PUT", f"{LEASES}/x{i}", obj)
        assert status == 200, new
        rv = new["metadata"]["resourceVersion"]
        assert c.call("GET", f"{LEASES}/x{i}?resourceVersion={rv}")[1]["spec"]["holderIdentity"] == "2"
        assert c.call("DELETE", f"{LEASES}/x{i}")[0] == 200
        assert a.call("GET", f"{LEASES}/x{i}")[0] == 404


def test_etcd_away(world):
    etcd, masters, _ = world(members=1, masters=1)
    m = masters[0]
    assert m.call("POST", LEASES, register("kept", 1))[0] == 201
    version = m.call("GET", LEASES)[1]["metadata"]["resourceVersion"]
    watcher = ha.Watcher(masters, version, 1)
    lines, stream = [], threading.Thread(target=lambda: watcher.watch(m, quiet=DEADLINE), daemon=True)
    watcher.random.randrange = lambda a, b=None: 600  # seconds of the one watch
    watcher.take = lambda event: lines.append(event) or True
    stream.start()
    etcd.kill(0)

    def refused():
        status, headers, body = m.raw("POST", LEASES, register("new", 1))
        return status == 503 and (headers, body)
    headers, body = wait_for("writes to be refused", refused)
    assert headers["Retry-After"] == "1" and body["kind"] == "Status" and body["reason"] == "ServiceUnavailable"
    assert body["details"]["retryAfterSeconds"] == 1
    wait_for("the loss to be noticed", lambda: "not available" in m.text())
    status, headers, body = m.raw("GET", f"{LEASES}/kept")
    assert status == 200 and body["spec"]["holderIdentity"] == "1"
    warning = re.match(r"299 .* resourceVersion (\d+)", headers["Warning"])
    assert warning and int(warning[1]) >= int(version), headers["Warning"]
    status, headers, body = m.raw("GET", f"{LEASES}?resourceVersion=0")
    assert status == 200 and "Warning" not in headers
    status, _, body = m.raw("POST", LEASES, register("new", 1))
    assert status == 503 and "127.0.0.1" in body["message"], body
    assert m.call("GET", "/readyz")[0] == 503 and m.call("GET", "/livez")[0] == 200
    assert stream.is_alive() and not [e for e in lines if e["type"] != "BOOKMARK"]
    etcd.start(0)
    wait_for("recovery", lambda: m.call("POST", LEASES, register("after", 1))[0] == 201)
    wait_for("the watch to go on", lambda: [e for e in lines if e["object"]["metadata"].get("name") == "after"])
    assert [e["type"] for e in lines if e["type"] != "BOOKMARK"] == ["ADDED"] and stream.is_alive()
    m.wait_ready()


def test_a_majority_of_members_is_needed_and_enough(world):
    etcd, masters, _ = world(members=3, masters=1)
    m = masters[0]

    def write(name):
        return m.call("POST", LEASES, register(name, 1), timeout=30)[0]
    assert write("three") == 201
    etcd.kill(0)
    wait_for("writes with two of three", lambda: write("two") in (201, 409))
    etcd.kill(1)
    wait_for("no writes with one of three", lambda: write("one") == 503)
    etcd.start(1)
    wait_for("writes again", lambda: write("again") in (201, 409))
    assert {"three", "two", "again"} <= {o["metadata"]["name"] for o in m.items(LEASES)}


def openssl(*args):
    return run(["openssl", *args])


def certificate(folder, name, cn, ca="ca", san=None):
    """NAME.crt and NAME.key, signed by CA.crt, or by itself when it is the CA."""
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / f"{name}.key",
           "-subj", f"/CN={cn}"]
    if name == ca:
        openssl("req", "-x509", *new, "-days", "2", "-out", folder / f"{name}.crt")
        return
    (folder / "ext").write_text(f"subjectAltName={san}\n" if san else "extendedKeyUsage=clientAuth\n")
    openssl("req", "-new", *new, "-out", folder / "csr")
    openssl("x509", "-req", "-in", folder / "csr", "-CA", folder / f"{ca}.crt", "-CAkey", folder / f"{ca}.key",
            "-CAcreateserial", "-days", "2", "-extfile", folder / "ext", "-out", folder / f"{name}.crt")


def client_info(etcd, tls, ca="ca", cert="client"):
    info = {"urls": etcd.endpoints.split(","), "ca": str(tls / f"{ca}.crt")}
    if cert:
        info |= {"certFile": str(tls / f"{cert}.crt"), "keyFile": str(tls / f"{cert}.key")}
    return info


def test_tls_and_users_of_etcd(world, tmp_path):
    for name, cn, ca, san in (("ca", "ca", "ca", None), ("etcd", "etcd", "ca", "IP:127.0.0.1"), ("client", "tenet", "ca", None),
                              ("other", "other", "other", None), ("stranger", "tenet", "other", None),
                              ("admin", "root", "ca", None)):
        certificate(tmp_path, name, cn, ca, san)
    etcd, _, tmp = world(members=3, masters=0, tls=tmp_path)

    def master(name, **info):
        m = ha.Master(tmp, name, etcd, storage={}, etcdClientInfo=client_info(etcd, tmp_path, **info))
        masters.append(m)
        return m
    masters = []
    try:
        good = master("good")
        good.wait_ready()
        assert good.call("POST", LEASES, register("a", 1))[0] == 201
        etcd.kill(0)
        wait_for("writes over another member", lambda: good.call("POST", LEASES, register("b", 1))[0] in (201, 409))
        etcd.start(0)
        etcd.wait_healthy()
        for name, info, words in (("no-certificate", {"cert": None}, "certificate"),
                                  ("stranger", {"cert": "stranger"}, "certificate"),
                                  ("wrong-ca", {"ca": "other"}, "unknown authority")):
            bad = master(name, **info)
            wait_for(words, lambda bad=bad, words=words: words in bad.text() and "etcd connection failed" in bad.text())
            assert bad.raw("GET", LEASES)[0] == 503
            bad.kill(signal.SIGTERM)
        # A user that etcd does not let in; let in, the master goes on by itself. The user is the certificate's CN.
        etcd.ctl("user", "add", "root:secret")
        etcd.ctl("user", "grant-role", "root", "root")
        etcd.ctl("auth", "enable")
        wait_for("writes to be refused", lambda: good.call("POST", LEASES, register("c", 1))[0] in (500, 503))
        late = master("late")
        wait_for("the reason", lambda: "etcd connection failed" in late.text() and
                 ("permission denied" in late.text() or "user" in late.text()))
        tls = [f"--cacert={tmp_path}/ca.crt", f"--cert={tmp_path}/admin.crt", f"--key={tmp_path}/admin.key"]
        run(["etcdctl", f"--endpoints={etcd.endpoints}", *tls, "user", "add", "tenet:x"],
            env={**os.environ, "ETCDCTL_API": "3"})
        run(["etcdctl", f"--endpoints={etcd.endpoints}", *tls, "user", "grant-role", "tenet", "root"],
            env={**os.environ, "ETCDCTL_API": "3"})
        wait_for("writes", lambda: good.call("POST", LEASES, register("c", 1))[0] in (201, 409))
        late.wait_ready()
        run(["etcdctl", f"--endpoints={etcd.endpoints}", *tls, "auth", "disable"], env={**os.environ, "ETCDCTL_API": "3"})
    finally:
        for m in masters:
            m.kill()


def test_a_lab_with_two_masters_goes_on_when_one_dies(make_lab):
    lab = make_lab("ha", nodes=1, masters=2, store="etcd")
    servers = [m["server"] for m in lab.status()["masters"]]
    assert len(set(servers)) == 2
    lab.project("red")
    a = lab.pod("red/a")
    lab.cmd("master", "kill", "1")
    assert [bool(m["pid"]) for m in lab.status()["masters"]] == [False, True]
    # The node, its agent and the command find the other; a new project gets its id from whoever leads now.
    lab.project("blue")
    b = lab.pod("blue/b")
    c = lab.pod("red/c")
    assert b.vnid != a.vnid == c.vnid
    lab.cmd("master", "start", "1")
    lab.cmd("master", "kill", "2")
    lab.pod("blue/d")
    lab.cmd("master", "start")
    r = lab.cmd("master", "stop", "3", check=False)
    assert r.returncode == 1 and "no master 3" in r.stderr
    lab.down()


def test_2000_nodes_register_at_once(tmp_path):
    m = ha.PlainMaster(tmp_path, network={"clusterNetworks": [{"cidr": "10.128.0.0/12", "hostSubnetLength": 9}]})
    try:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            codes = list(pool.map(lambda i: m.call("POST", "/api/v1/nodes", node(f"n{i}", f"192.168.{i // 250}.{i % 250 + 1}"))[0],
                                  range(2000)))
        assert codes == [201] * 2000
        subnets = wait_for("2000 subnets", lambda: (s := m.subnets()) and len(s) == 2000 and s)
        want = {f"10.{128 + (i >> 7)}.{(i & 127) * 2}.0/23" for i in range(2000)}
        assert set(subnets.values()) == want and len(subnets) == 2000
    finally:
        m.kill(signal.SIGTERM)
