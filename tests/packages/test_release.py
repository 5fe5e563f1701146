# SPDX-License-Identifier: Apache-2.0
"""What `make release` leaves: packages with the files that they must have, and no others; images; the bill of materials."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile

import pytest

from host import BUILT, PACKAGES, debs, versions

NEW, OLD = versions()
RELEASE = BUILT / "release"
VERSION = NEW.split("-")[0]

# The files of each package, beside manual pages and what every package of Debian has below /usr/share/doc.
FILES = {
    "tenet": {"usr/bin/kubectl-tenet", "usr/bin/oadm", "usr/bin/oc", "usr/bin/tenet", "usr/libexec/tenet/tenet-cni",
              "usr/libexec/tenet/tenet-deployer", "usr/libexec/tenet/tenet-pause",
              "usr/share/bash-completion/completions/tenet", "usr/share/fish/vendor_completions.d/tenet.fish",
              "usr/share/lintian/overrides/tenet", "usr/share/tenet/grafana/tenet.json",
              "usr/share/tenet/prometheus/prometheus.yml", "usr/share/tenet/prometheus/rbac.yaml",
              "usr/share/tenet/prometheus/tenet.rules.yml", "usr/share/tenet/kubernetes/crds.yaml", "usr/share/tenet/kubernetes/rbac.yaml",
              "usr/share/zsh/vendor-completions/_tenet"},
    "tenet-master": {"etc/tenet/master-config.yaml", "lib/systemd/system/tenet-apiserver.service",
                     "lib/systemd/system/tenet-apiserver.socket", "lib/systemd/system/tenet-certs.service",
                     "lib/systemd/system/tenet-certs.timer", "lib/systemd/system/tenet-controllers.service",
                     "lib/systemd/system/tenet-master.service", "lib/systemd/system/tenet-master.socket"},
    "tenet-node": {"etc/tenet/node-config.yaml", "lib/systemd/system/tenet-node.service", "usr/lib/cni/tenet-cni",
                   "usr/lib/tmpfiles.d/tenet-node.conf", "usr/share/tenet/node.kubeconfig"},
    "tenet-kubelet": {"etc/tenet/kubelet-config.yaml", "lib/systemd/system/tenet-kubelet.service"},
}


def run(*argv):
    return subprocess.run([str(a) for a in argv], check=True, text=True, stdout=subprocess.PIPE).stdout


def files_of_deb(deb):
    return {line.split(None, 5)[5].split(" -> ")[0].removeprefix("./") for line in run("dpkg-deb", "-c", deb).splitlines()
            if not line.startswith("d")}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_its_files_and_no_others(package):
    deb = next(d for d in debs(NEW) if d.name.startswith(f"{package}_"))
    found = files_of_deb(deb)
    pages = {f for f in found if f.startswith("usr/share/man/")}
    assert {f for f in found - pages if not f.startswith(f"usr/share/doc/{package}/")} == FILES[package]
    if package == "tenet":
        sources = {p.name for p in (pathlib.Path(__file__).parents[2] / "packaging/man").iterdir()}
        names = {f"{name}.1" for name in ("kubectl-tenet", "oadm", "oc")}
        assert {pathlib.Path(p).name.removesuffix(".gz") for p in pages} == sources | names
    owners = {line.split()[1] for line in run("dpkg-deb", "-c", deb).splitlines()}
    assert owners == {"root/root"}
    conffiles = run("dpkg-deb", "--info", deb, "conffiles").split() if any(f.startswith("etc/") for f in FILES[package]) else []
    assert conffiles == sorted(f"/{f}" for f in FILES[package] if f.startswith("etc/"))


def test_an_rpm_has_the_files_of_the_deb_of_its_name():
    rpms = {re.match(r"(.*)-[^-]+-[^-]+$", r.name)[1]: r for r in (BUILT / "rpm").glob("*.rpm")}
    assert set(rpms) == set(PACKAGES)
    # Debian looks for units in /lib and for plug-ins in /usr/lib/cni, the distributions of RPM elsewhere.
    moved = {"lib/systemd": "usr/lib/systemd", "usr/lib/cni": "usr/libexec/cni"}
    for package, rpm in rpms.items():
        wanted = {next((new + f[len(old):] for old, new in moved.items() if f.startswith(old)), f)
                  for f in FILES[package] if "lintian" not in f}
        found = {line.lstrip("/") for line in run("rpm", "-qlp", rpm).splitlines()}
        folders = {f for f in found if any(g.startswith(f + "/") for g in found)} | {"etc/tenet"}
        assert {f for f in found - folders if not re.match("usr/share/(man|doc|licenses)/", f)} == wanted
        config = {f.lstrip("/") for f in run("rpm", "-qcp", rpm).splitlines() if f.startswith("/")}
        assert config == {f for f in wanted if f.startswith("etc/")}


def test_every_file_of_the_release_has_its_checksum():
    sums = dict(reversed(line.split()) for line in (RELEASE / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {f.name for f in RELEASE.iterdir()} - {"SHA256SUMS"}
    assert all(hashlib.sha256((RELEASE / name).read_bytes()).hexdigest() == value for name, value in sums.items())
    assert {f"tenet_{VERSION}.orig.tar.xz", f"tenet-{VERSION}.spdx.json", *(d.name for d in debs(NEW))} <= set(sums)


def test_the_bill_of_materials_names_each_file_and_each_library():
    bill = json.loads((RELEASE / f"tenet-{VERSION}.spdx.json").read_text())
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0" and bill["SPDXID"] == "SPDXRef-DOCUMENT"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["creationInfo"]["created"]) and bill["creationInfo"]["creators"]
    ids = {p["SPDXID"]: p for p in bill["packages"]}
    assert len(ids) == len(bill["packages"]) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
    assert all(p["name"] and p["downloadLocation"] and p["versionInfo"] for p in bill["packages"])
    relations = {(r["relationshipType"], r["relatedSpdxElement"] if r["relationshipType"] != "GENERATED_FROM" else r["spdxElementId"])
                 for r in bill["relationships"]}
    assert {i for r in bill["relationships"] for i in (r["spdxElementId"], r["relatedSpdxElement"])} <= {*ids, "SPDXRef-DOCUMENT"}
    files = {ids[i]["name"]: ids[i]["checksums"][0]["checksumValue"] for kind, i in relations if kind == "GENERATED_FROM"}
    assert set(files) == {f.name for f in RELEASE.iterdir()} - {"SHA256SUMS", f"tenet-{VERSION}.spdx.json"}
    assert all(hashlib.sha256((RELEASE / name).read_bytes()).hexdigest() == value for name, value in files.items())
    depends = run("dpkg-deb", "--field", debs(NEW)[0], "Depends")
    assert {ids[i]["name"] for kind, i in relations if kind == "DEPENDS_ON"} == {re.sub(r"[ (].*", "", d.strip())
                                                                                for d in depends.split(",")}
    assert {ids[i]["name"] for kind, i in relations if kind == "STATIC_LINK"} == {
        f"{n}-dev-static" for n in ("libc6", "libpcre2", "libssl", "libuv1", "libyaml", "musl")}


@pytest.mark.parametrize("name,user", [("tenet-master", "65532:65532"), ("tenet-deployer", "65532:65532"), ("tenet-node", "0:0")])
def test_an_image_is_whole_and_its_program_runs_with_nothing_beside_it(name, user, tmp_path):
    with tarfile.open(next(RELEASE.glob(f"{name}_{VERSION}_*.oci.tar"))) as t:
        content = {m.name: t.extractfile(m).read() for m in t.getmembers() if m.isfile()}
    assert json.loads(content["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def blob(descriptor):
        data = content[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"] and len(data) == descriptor["size"]
        return data
    index = json.loads(content["index.json"])["manifests"]
    assert [m["annotations"]["org.opencontainers.image.ref.name"] for m in index] == [f"localhost/{name}:{VERSION}"]
    manifest = json.loads(blob(index[0]))
    config, packed = json.loads(blob(manifest["config"])), blob(manifest["layers"][0])
    plain = gzip.decompress(packed)
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(plain).hexdigest()}"] and config["config"]["User"] == user
    with tarfile.open(fileobj=io.BytesIO(plain)) as t:
        assert all((m.uid, m.gid) == (0, 0) for m in t.getmembers())
        t.extractall(tmp_path)
    os.chmod(tmp_path, 0o755)
    if name == "tenet-deployer":
        assert [str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*")] == [name]
        assert config["config"]["Entrypoint"] == ["/tenet-deployer"] and "Cmd" not in config["config"]
    else:
        assert config["config"]["Entrypoint"] + config["config"]["Cmd"] == ["/usr/bin/tenet", name.removeprefix("tenet-")]
    program = config["config"]["Entrypoint"][0]
    assert run("chroot", f"--userspec={user}", tmp_path, program, "--version") == f"{program.rpartition('/')[2]} {VERSION}\n"
    if name == "tenet-node":
        assert run("chroot", tmp_path, "/usr/sbin/nft", "--version").startswith("nftables")
