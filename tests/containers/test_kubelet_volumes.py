# SPDX-License-Identifier: Apache-2.0
"""Environment, names and volumes of containers: `tenet kubelet` on a containerd of its own."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

import containerd as containerdlib
from lab import run, wait_for
from test_kubelet import NODE, SH, Cluster, ready


class Volumes(Cluster):
    def start_kubelet(self, *args, **kw):
        super().start_kubelet("--cluster-dns", "10.77.0.1", *args, **kw)

    def put(self, kind, name, data, **more):
        self.kubectl("apply", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": name}, ("stringData" if kind == "Secret" else "data"): data, **more}))

    def folder(self, name):
        return self.dir / "kubelet" / "pods" / self.get("pod", name)["metadata"]["uid"]

    def mounts(self):
        """What the kubelet has mounted."""
        text = pathlib.Path(f"/proc/{self.cd.holder.pid}/mountinfo").read_text()
        root = str(self.dir / "kubelet")
        return [line.split()[4] for line in text.splitlines() if line.split()[4].startswith(root)]

    def waits(self, name, text):
        """Waits until a container waits for this reason or message."""
        return self.wait(name, lambda s: text in json.dumps(s.get("containerStatuses", "")).replace('\\"', '"'), f"{name}: {text}")


@pytest.fixture(scope="module")
def cluster():
    containerdlib.needed()
    with tempfile.TemporaryDirectory(prefix="tenet-volumes-") as folder:
        c = Volumes(pathlib.Path(folder))
        try:
            wait_for("the node to be ready", lambda: ready((c.get("node", NODE) or {}).get("status", {})))
            yield c
            assert not c.mounts()
        finally:
            with contextlib.suppress(Exception):
                c.kubectl("delete", "pods", "--all", "--wait=true", timeout=60)
            c.stop()


def key_ref(source, name, key, **more):
    return {"valueFrom": {source: {"name": name, "key": key, **more}}}


def test_environment_comes_from_everything(cluster):
    cluster.put("ConfigMap", "env", {"a": "1", "b": "two", "9x": "bad"})
    cluster.put("Secret", "env", {"pw": "hunter2"})
    cluster.kubectl("create", "service", "clusterip", "my-db", "--tcp=5432:5432")
    host = json.loads(cluster.kubectl("get", "service", "my-db", "-o", "json").stdout)["spec"]["clusterIP"]
    env = [{"name": "LIT", "value": "x"}, {"name": "REF", "value": "$(LIT)-$(P_a)-$$(LIT)-$(NOPE)-$(MY_DB_SERVICE_PORT)"},
           {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
           {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
           {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
           {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
           {"name": "MAP", **key_ref("configMapKeyRef", "env", "b")}, {"name": "PW", **key_ref("secretKeyRef", "env", "pw")},
           {"name": "NONE", **key_ref("secretKeyRef", "env", "zz", optional=True)}]
    container = {"command": [SH, "-c", "env; echo 'ARG=$(REF)' $0", "$(PW)"], "env": env, "resources": {"limits": {"memory": "64Mi", "cpu": "250m"}},
                 "envFrom": [{"prefix": "P_", "configMapRef": {"name": "env"}}, {"configMapRef": {"name": "env"}}]}
    cluster.pod("env-all", container, restartPolicy="Never")
    cluster.pod("env-links", {"command": ["env"]}, restartPolicy="Never", enableServiceLinks=False)
    cluster.finished("env-all")
    cluster.finished("env-links")
    out, without = cluster.output("env-all"), cluster.output("env-links")
    assert {"LIT=x", "REF=x-1-$(LIT)-$(NOPE)-5432", "NAME=env-all", "MEM=64", "CPU=250", "MAP=two", "PW=hunter2", "a=1", "P_a=1",
            "P_b=two", "P_9x=bad", f"MY_DB_SERVICE_HOST={host}", "ARG=x-1-$(LIT)-$(NOPE)-5432 hunter2"} <= set(out)
    assert not [v for v in out if v.startswith(("9x=", "NONE="))]
    assert not [v for v in without if v.startswith("MY_DB_")] and "KUBERNETES_SERVICE_PORT=443" in without
    wait_for("an Event", lambda: "Keys [9x] from the EnvFrom configMap default/env were skipped" in cluster.events("env-all").get(
        "InvalidEnvironmentVariableNames", ""))
    for name in ("env-all", "env-links"):
        cluster.delete(name)


def test_a_missing_key_holds_its_container_until_it_is_there(cluster):
    cluster.pod("env-late", {"command": [SH, "-c", "echo got $X"], "env": [{"name": "X", **key_ref("configMapKeyRef", "late", "k")}]},
                restartPolicy="Never")
    s = cluster.waits("env-late", "CreateContainerConfigError")
    assert s["containerStatuses"][0]["state"]["waiting"]["message"] == 'configmap "late" not found'
    cluster.put("ConfigMap", "late", {"other": "1"})
    cluster.waits("env-late", "couldn't find key k in ConfigMap default/late")
    cluster.put("ConfigMap", "late", {"k": "now"})
    cluster.finished("env-late")
    assert cluster.output("env-late") == ["got now"]
    cluster.delete("env-late")


def test_names_and_hosts(cluster):
    cluster.pod("names", {"command": [SH, "-c", "hostname; cat /etc/hosts"]}, restartPolicy="Never", hostname="h", subdomain="sub",
                hostAliases=[{"ip": "192.0.2.1", "hostnames": ["one", "two.example"]}])
    cluster.pod("names-fqdn", {"command": ["hostname"]}, restartPolicy="Never", subdomain="sub", setHostnameAsFQDN=True)
    s = cluster.finished("names")
    cluster.finished("names-fqdn")
    out = cluster.output("names")
    assert out[0] == "h" and out[1] == "# Kubernetes-managed hosts file."
    assert f"{s['podIP']}\th.sub.default.svc.cluster.local\th" in out and "192.0.2.1\tone\ttwo.example" in out
    assert cluster.output("names-fqdn") == ["names-fqdn.sub.default.svc.cluster.local"]
    for name in ("names", "names-fqdn"):
        cluster.delete(name)


def test_the_four_dns_policies(cluster):
    config = {"nameservers": ["192.0.2.53"], "searches": ["a.example"], "options": [{"name": "ndots", "value": "2"}]}
    pods = {"dns-first": {}, "dns-default": {"dnsPolicy": "Default"},
            "dns-host": {"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, "dns-none": {"dnsPolicy": "None", "dnsConfig": config},
            "dns-more": {"dnsConfig": config}}
    for name, spec in pods.items():
        cluster.pod(name, {"command": ["cat", "/etc/resolv.conf"]}, restartPolicy="Never", **spec)
    lines = {}
    for name in pods:
        cluster.finished(name)
        lines[name] = cluster.output(name)
        cluster.delete(name)
    search = "search default.svc.cluster.local svc.cluster.local cluster.local"
    for name in ("dns-first", "dns-host"):
        assert "nameserver 10.77.0.1" in lines[name] and any(v.startswith(search) for v in lines[name]), lines[name]
        assert "options ndots:5" in lines[name]
    assert "nameserver 10.77.0.1" not in lines["dns-default"] and not any("cluster.local" in v for v in lines["dns-default"])
    assert sorted(lines["dns-none"]) == ["nameserver 192.0.2.53", "options ndots:2", "search a.example"]
    assert {"nameserver 10.77.0.1", "nameserver 192.0.2.53", "options ndots:2"} <= set(lines["dns-more"])


def test_empty_dirs_are_shared_and_survive_their_container(cluster):
    mount = {"volumeMounts": [{"name": "e", "mountPath": "/e"}, {"name": "m", "mountPath": "/m"}]}
    look = "ls -ld /e | head -c 10; echo; echo $(cat /e/from-a) $(cat /e/n); echo x >> /e/n; "
    name = cluster.pod("empty", [
        {"name": "a", "command": [SH, "-c", "echo hello > /e/from-a; sleep 3600"], **mount},
        {"name": "b", "command": [SH, "-c", "while ! cat /e/from-a; do sleep 0.1; done; " + look + "grep ' /m ' /proc/self/mountinfo; exit 1"], **mount}],
        volumes=[{"name": "e", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "2Mi"}}])
    cluster.wait(name, lambda s: cluster.container(name, "b") and cluster.container(name, "b")["restartCount"] >= 1)
    wait_for("the second attempt's output", lambda: "hello x" in cluster.output(name, "b", attempt=1))
    out = cluster.output(name, "b")
    assert "drwxrwxrwx" in out and any("tmpfs" in v and "size=2048k" in v for v in out), out
    folder = cluster.folder(name)
    assert (folder / "volumes/kubernetes.io~empty-dir/e/from-a").read_text() == "hello\n"
    assert [m for m in cluster.mounts() if m.startswith(str(folder))]
    cluster.delete(name)
    wait_for("the pod's directory to be gone", lambda: not folder.exists())
    assert not [m for m in cluster.mounts() if m.startswith(str(folder))]


def test_host_paths_by_type(cluster):
    path = cluster.dir / "host"
    path.mkdir()
    (path / "f").write_text("from the node\n")
    volumes = [{"name": "d", "hostPath": {"path": str(path), "type": "Directory"}},
               {"name": "n", "hostPath": {"path": str(path / "new" / "dir"), "type": "DirectoryOrCreate"}}]
    cluster.pod("host-ok", {"command": [SH, "-c", "cat /d/f; echo out > /n/o; touch /d/x 2>/dev/null || echo read-only"], "volumeMounts": [
        {"name": "d", "mountPath": "/d", "readOnly": True}, {"name": "n", "mountPath": "/n"}]}, restartPolicy="Never", volumes=volumes)
    cluster.pod("host-bad", {}, volumes=[{"name": "v", "hostPath": {"path": str(path / "f"), "type": "Directory"}}])
    cluster.finished("host-ok")
    out = cluster.output("host-ok")
    assert out[0] == "from the node" and out[-1] == "read-only" and (path / "new/dir/o").read_text() == "out\n"
    want = f'MountVolume.SetUp failed for volume "v" : hostPath type check failed: {path}/f is not a directory'
    wait_for("the Event", lambda: cluster.events("host-bad").get("FailedMount") == want)
    assert cluster.status("host-bad")["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    cluster.delete("host-ok")
    cluster.delete("host-bad")
    assert (path / "f").exists() and (path / "new/dir/o").exists()


def test_a_claim_leads_to_its_volume(cluster):
    """A volume that names another claim is not mounted, even when a user forges the claim's status."""
    path = cluster.dir / "claimed"
    path.mkdir()
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    cluster.kubectl("create", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {**spec, "volumeName": "data", "resources": {"requests": {"storage": "1Mi"}}}}))
    name = cluster.pod("claims", {"command": [SH, "-c", "echo kept > /d/f; sleep 3600"], "volumeMounts": [{"name": "v", "mountPath": "/d"}]},
                       volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    wait_for("the Event", lambda: "default/data: PVC is not bound" in cluster.events(name).get("FailedMount", ""))
    claim = cluster.get("pvc", "data")

    def volume(uid):
        return json.dumps({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "data"}, "spec": {
            **spec, "capacity": {"storage": "1Mi"}, "hostPath": {"path": str(path)},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": uid}}})
    cluster.kubectl("create", "-f", "-", input=volume("of-another-claim"))
    claim["status"] = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": {"storage": "1Mi"}}
    cluster.kubectl("replace", "--raw", "/api/v1/namespaces/default/persistentvolumeclaims/data/status", "-f", "-", input=json.dumps(claim))
    wait_for("the binder", lambda: cluster.get("pvc", "data")["status"]["phase"] == "Pending")
    assert not (path / "f").exists()
    cluster.kubectl("delete", "pv", "data")
    cluster.kubectl("create", "-f", "-", input=volume(claim["metadata"]["uid"]))
    cluster.running(name)
    assert cluster.get("pvc", "data")["status"]["phase"] == "Bound"
    wait_for("the file", lambda: (path / "f").exists() and (path / "f").read_text() == "kept\n")
    cluster.delete(name)
    assert (path / "f").exists()
    cluster.kubectl("delete", "pvc/data", "pv/data")


def test_config_maps_and_secrets_are_awaited_and_followed(cluster):
    volumes = [{"name": "m", "configMap": {"name": "files", "defaultMode": 0o440, "items": [
        {"key": "k", "path": "deep/er", "mode": 0o400}, {"key": "l", "path": "l"}]}},
        {"name": "s", "secret": {"secretName": "files"}}, {"name": "o", "configMap": {"name": "absent", "optional": True}}]
    mounts = [{"name": n, "mountPath": f"/{n}"} for n in "mso"]
    name = cluster.pod("files", {"command": [SH, "-c", "ls -lR /m/..data/ /s/..data/; ls /o; cat /m/deep/er /s/pw; grep ' /s ' /proc/self/mountinfo;"
                                             "echo x > /m/l || echo refused; sleep 3600"], "volumeMounts": mounts}, volumes=volumes)
    text = 'MountVolume.SetUp failed for volume "m" : configmap "files" not found'
    wait_for("the Event", lambda: cluster.events(name).get("FailedMount") == text)
    cluster.put("ConfigMap", "files", {"k": "one\n", "l": "other\n"})
    cluster.put("Secret", "files", {"pw": "hunter2\n"})
    cluster.running(name)
    out = wait_for("the output", lambda: (lambda o: "refused" in o and o)(cluster.output(name)))
    assert {"one", "hunter2"} <= set(out) and any("tmpfs" in v for v in out)
    assert any(v.startswith("-r--------") and v.endswith("er") for v in out) and any(v.startswith("-r--r-----") and v.endswith(" l") for v in out)
    cluster.put("ConfigMap", "files", {"k": "two\n", "l": "other\n"})
    wait_for("the new text", lambda: cluster.exec(name, ["cat", "/m/deep/er"]).stdout == "two\n")
    cluster.delete(name)


def test_an_update_is_seen_whole(cluster):
    """A container reads two files of one directory again and again; they never differ."""
    cluster.put("ConfigMap", "pair", {"a": "0", "b": "0"})
    look = ("n=0; while [ ! -e /stop ]; do cd -P /v/..data && a=$(cat a) && b=$(cat b) && { [ \"$a\" = \"$b\" ] || exit 1; n=$((n+1)); "
            "[ \"$a\" = 30 ] && { echo $n; exit 0; }; }; done 2>/dev/null")
    name = cluster.pod("whole", {"command": [SH, "-c", look], "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                       volumes=[{"name": "v", "configMap": {"name": "pair"}}], restartPolicy="Never")
    cluster.running(name)
    for i in range(1, 31):
        cluster.put("ConfigMap", "pair", {"a": str(i), "b": str(i)})
    cluster.finished(name)
    assert int(cluster.output(name)[0]) > 10
    cluster.delete(name)


def test_projected_sources_and_labels_that_follow(cluster):
    cluster.put("ConfigMap", "proj", {"k": "map"})
    cluster.put("Secret", "proj", {"k2": "secret"})
    sources = [{"configMap": {"name": "proj"}}, {"secret": {"name": "proj", "items": [{"key": "k2", "path": "dir/k2"}]}},
               {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                                          {"path": "note", "fieldRef": {"fieldPath": "metadata.annotations['note']"}},
                                          {"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "requests.cpu", "divisor": "1m"}}]}}]
    name = cluster.pod("proj", {"command": ["sleep", "3600"], "volumeMounts": [{"name": "p", "mountPath": "/p"}],
                                "resources": {"requests": {"cpu": "10m"}}}, volumes=[{"name": "p", "projected": {"sources": sources}}])
    cluster.running(name)
    assert cluster.exec(name, [SH, "-c", "echo $(cat /p/k /p/dir/k2 /p/cpu)"]).stdout == "mapsecret10\n"
    cluster.kubectl("label", "pod", name, "tier=web")
    wait_for("the new label", lambda: cluster.exec(name, ["cat", "/p/labels"]).stdout == 'tier="web"')
    cluster.kubectl("annotate", "pod", name, "note=changed")
    wait_for("the new annotation", lambda: cluster.exec(name, ["cat", "/p/note"]).stdout == "changed")
    cluster.delete(name)


def test_subpaths_stay_in_their_volume(cluster):
    volumes = [{"name": "e", "emptyDir": {}}]
    init = [{"name": "i", "command": [SH, "-c", "busybox mkdir /e/d; echo inside > /e/d/f; busybox ln -s / /e/out; busybox ln -s d /e/in"],
             "volumeMounts": [{"name": "e", "mountPath": "/e"}]}]
    mounts = [{"name": "e", "mountPath": "/d", "subPath": "d"}, {"name": "e", "mountPath": "/f", "subPath": "in/f"},
              {"name": "e", "mountPath": "/x", "subPathExpr": "logs/$(NAME)"}]
    env = [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    cluster.pod("sub", {"command": [SH, "-c", "cat /d/f /f; echo log > /x/l; sleep 3600"], "env": env, "volumeMounts": mounts}, volumes=volumes,
                initContainers=init)
    cluster.running("sub")
    wait_for("the output", lambda: cluster.output("sub") == ["inside", "inside"])
    folder = cluster.folder("sub")
    wait_for("the file", lambda: (folder / "volumes/kubernetes.io~empty-dir/e/logs/sub/l").exists())
    cluster.pod("sub-out", {"volumeMounts": [{"name": "e", "mountPath": "/x", "subPath": "out/etc"}]}, volumes=volumes, initContainers=init)
    s = cluster.waits("sub-out", "CreateContainerConfigError")
    assert s["containerStatuses"][0]["state"]["waiting"]["message"] == (
        'failed to prepare subPath for volumeMount "e" of container "c": subPath out/etc leads out of the volume')
    cluster.delete("sub")
    cluster.delete("sub-out")
    wait_for("the pod's directory to be gone", lambda: not folder.exists())


def test_fs_group_owns_the_volumes(cluster):
    cluster.put("Secret", "group", {"k": "v"})
    look = "id; ls -ln / ; ls -lnd /e /s; ls -lnL /s/k; echo x > /e/new && ls -ln /e"
    cluster.pod("group", {"command": [SH, "-c", look], "volumeMounts": [{"name": "e", "mountPath": "/e"}, {"name": "s", "mountPath": "/s"}]},
                securityContext={"runAsUser": 1000, "fsGroup": 4242, "fsGroupChangePolicy": "OnRootMismatch"}, restartPolicy="Never",
                volumes=[{"name": "e", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "group", "defaultMode": 0o400}}])
    cluster.finished("group")
    out = cluster.output("group")
    assert "4242" in out[0]
    new = next(v.split() for v in out if v.endswith(" new"))
    key = next(v.split() for v in out if v.endswith("/s/k"))
    assert (new[2], new[3]) == ("1000", "4242") and (key[0], key[3]) == ("-r--r-----", "4242"), out
    assert any(v.startswith("drwxrwsrwx") and v.endswith("/e") for v in out)
    cluster.delete("group")


def test_mounts_propagate_three_ways(cluster):
    path = cluster.dir / "shared"
    (path / "m").mkdir(parents=True)
    run(cluster.inside(["mount", "--bind", path, path]))
    run(cluster.inside(["mount", "--make-shared", path]))
    volumes = [{"name": "v", "hostPath": {"path": str(path)}}]

    def pod(name, how, command, **more):
        cluster.pod(name, {"command": [SH, "-c", command], "volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": how}], **more},
                    volumes=volumes)
        cluster.running(name)
    try:
        pod("prop-none", "None", "sleep 3600")
        pod("prop-to", "HostToContainer", "sleep 3600")
        pod("prop-both", "Bidirectional", "busybox mount -t tmpfs none /v/m && echo mounted > /v/m/f; sleep 3600",
            securityContext={"privileged": True})
        wait_for("the mount", lambda: cluster.exec("prop-to", ["cat", "/v/m/f"], check=False).stdout == "mounted\n")
        assert run(cluster.inside(["cat", path / "m/f"])).stdout == "mounted\n"
        assert cluster.exec("prop-none", ["cat", "/v/m/f"], check=False).returncode != 0
    finally:
        for name in ("prop-none", "prop-to", "prop-both"):
            cluster.kubectl("delete", "pod", name, "--ignore-not-found", "--wait=false")
        for name in ("prop-none", "prop-to", "prop-both"):
            wait_for(f"{name} to be gone", lambda: not cluster.get("pod", name))
        run(cluster.inside(["umount", "-R", path]), check=False)


SILENT = """
import ctypes, os, sys, time
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
print(ctypes.CDLL(None).mount(b"silent", os.fsencode(sys.argv[1]), b"fuse", 0, options.encode()), flush=True)
time.sleep(3600)
"""


def test_a_file_system_that_does_not_answer_holds_up_its_own_pod_alone(cluster):
    """As a dead file server: every look at it hangs.  Other pods start, the node stays ready, the pod can be deleted."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("there is no /dev/fuse")
    path = cluster.dir / "silent"
    path.mkdir()
    server = subprocess.Popen(cluster.inside(["/usr/bin/python3", "-c", SILENT, path]), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "0\n"
        cluster.pod("hangs", {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                    volumes=[{"name": "v", "hostPath": {"path": str(path), "type": "Directory"}}])
        for i in range(2):
            name = cluster.pod(f"beside-{i}", {"command": ["sleep", "3600"], "volumeMounts": [{"name": "e", "mountPath": "/e"}]},
                               volumes=[{"name": "e", "emptyDir": {"medium": "Memory"}}])
            cluster.running(name)
            assert cluster.status("hangs")["phase"] == "Pending" and ready(cluster.get("node", NODE)["status"])
            if i == 0:  # also for an agent that is started now
                cluster.stop_kubelet(signal.SIGKILL)
                cluster.start_kubelet()
        for name in ("hangs", "beside-0", "beside-1"):
            cluster.delete(name)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
        run(cluster.inside(["umount", "-l", path]), check=False)


def test_pods_and_a_restarted_kubelet_leave_nothing(cluster):
    cluster.put("Secret", "many", {"k": "v"})
    names = [f"many-{i}" for i in range(8)]
    for name in names:
        cluster.pod(name, {"command": ["sleep", "3600"], "volumeMounts": [{"name": "m", "mountPath": "/m", "subPath": "x"},
                                                                           {"name": "s", "mountPath": "/s"}]},
                    volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}, {"name": "s", "secret": {"secretName": "many"}}])
    ids = {}
    for name in names:
        ids[name] = cluster.running(name)["containerStatuses"][0]["containerID"]
    folders = [cluster.folder(name) for name in names]
    before = sorted(cluster.mounts())
    assert len(before) >= 3 * len(names)
    cluster.stop_kubelet()
    orphan = cluster.dir / "kubelet/pods/00000000-gone/volumes/kubernetes.io~empty-dir/e"
    orphan.mkdir(parents=True)
    run(cluster.inside(["mount", "-t", "tmpfs", "none", orphan]))
    (cluster.dir / "kept").mkdir(exist_ok=True)
    (cluster.dir / "kept/f").write_text("x")
    os.symlink(cluster.dir / "kept", orphan.parent / "link")
    cluster.start_kubelet()
    wait_for("the orphan to be gone", lambda: not (cluster.dir / "kubelet/pods/00000000-gone").exists())
    assert (cluster.dir / "kept/f").read_text() == "x"
    for name in names:
        assert cluster.running(name)["containerStatuses"][0]["containerID"] == ids[name]
    assert sorted(cluster.mounts()) == before
    for name in names:
        cluster.kubectl("delete", "pod", name, "--wait=false")
    for name in names:
        wait_for(f"{name} to be gone", lambda: not cluster.get("pod", name))
    wait_for("the directories to be gone", lambda: not any(f.exists() for f in folders))
    assert not [m for m in cluster.mounts() if m.startswith(tuple(map(str, folders)))]
