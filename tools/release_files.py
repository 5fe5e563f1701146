# SPDX-License-Identifier: Apache-2.0
"""What a release has beside its packages: container images (OCI image layout) and a bill of materials (SPDX 2.3), as bytes that
depend on the content alone."""
import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import time


def digest(content):
    return hashlib.sha256(content).hexdigest()


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def timestamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


# ---- container images ----

IMAGES = {
    # name: (packages, program, arguments, user)
    "tenet-master": (("tenet",), "/usr/bin/tenet", ["master"], "65532:65532"),
    "tenet-node": (("tenet", "tenet-node"), "/usr/bin/tenet", ["node"], "0:0"),
    "tenet-deployer": (("tenet",), "/tenet-deployer", [], "65532:65532"),
}
# Images with a static program and nothing else: its path in the packages.
STATIC = {"tenet-deployer": "usr/libexec/tenet/tenet-deployer"}
# The packages of the libraries that tenet-cni, tenet-pause (musl) and tenet-deployer contain.
STATIC_LIBRARIES = ("libc6-dev", "libpcre2-dev", "libssl-dev", "libuv1-dev", "libyaml-dev", "musl-dev")
PASSWD = {"etc/passwd": b"root:x:0:0:root:/:/sbin/nologin\ntenet:x:65532:65532:tenet:/:/sbin/nologin\n",
          "etc/group": b"root:x:0:\ntenet:x:65532:\n"}


def add(tar, name, content, stamp, mode=0o644, link=None, folder=False):
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode, entry.size = stamp, mode, len(content)
    if link is not None:
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, link, 0o777
    if folder:
        entry.type, entry.mode = tarfile.DIRTYPE, mode
    tar.addfile(entry, io.BytesIO(content))


def layer(name, root, stamp):
    """The files of a folder, owned by root, in the order of their names; of an image of STATIC its program alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        if name in STATIC:
            add(tar, name, (root / STATIC[name]).read_bytes(), stamp, 0o755)
            tar.close()
            return out.getvalue()
        add(tar, "tmp", b"", stamp, 0o1777, folder=True)
        for name, content in PASSWD.items():
            add(tar, name, content, stamp)
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if path.is_symlink():
                add(tar, name, b"", stamp, link=os.readlink(path))
            elif path.is_dir():
                add(tar, name, b"", stamp, 0o755, folder=True)
            else:
                add(tar, name, path.read_bytes(), stamp, 0o755 if path.stat().st_mode & 0o100 else 0o644)
    return out.getvalue()


def image(name, version, root, stamp, architecture):
    """An archive of the OCI image layout with one image, whose only layer is the folder 'root'."""
    _, program, arguments, user = IMAGES[name]
    plain = layer(name, root, stamp)
    packed = gzip.compress(plain, mtime=0)
    config = compact({
        "architecture": architecture, "os": "linux", "created": timestamp(stamp),
        "config": {"Entrypoint": [program], **({"Cmd": arguments} if arguments else {}), "User": user, "Env": ["PATH=/usr/sbin:/usr/bin"],
                   "Labels": {"org.opencontainers.image.title": name, "org.opencontainers.image.version": version,
                              "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(plain)}"]},
        "history": [{"created": timestamp(stamp), "created_by": "tools/package release"}]})

    def descriptor(kind, content, **more):
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest(content)}", "size": len(content), **more}
    manifest = compact({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                        "config": descriptor("config.v1+json", config), "layers": [descriptor("layer.v1.tar+gzip", packed)]})
    index = compact({"schemaVersion": 2, "manifests": [descriptor(
        "manifest.v1+json", manifest, platform={"architecture": architecture, "os": "linux"},
        annotations={"org.opencontainers.image.ref.name": f"localhost/{name}:{version}"})]})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            add(tar, folder, b"", stamp, 0o755, folder=True)
        for blob in sorted((config, manifest, packed), key=digest):
            add(tar, f"blobs/sha256/{digest(blob)}", blob, stamp)
        add(tar, "index.json", index, stamp)
        add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}', stamp)
    return out.getvalue()


# ---- bill of materials ----

def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", text)


def bill_of_materials(version, stamp, files, depends, static, built_with):
    """SPDX 2.3 as JSON.  'files' are the release's {name: bytes}; 'depends', 'static' and 'built_with' are {package of Debian:
    version} of the libraries that the program is linked with, of those that are in its files, and of what made it."""
    packages, relations = [], []

    def package(name, package_version, **more):
        packages.append({"name": name, "SPDXID": spdx_id(f"{name}-{package_version}"), "versionInfo": package_version,
                         "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
                         "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more})
        return packages[-1]["SPDXID"]

    def relate(one, kind, other):
        relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})
    own = {"licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0"}
    tenet = package("tenet", version, **own, primaryPackagePurpose="APPLICATION")
    relate("SPDXRef-DOCUMENT", "DESCRIBES", tenet)
    for name, content in sorted(files.items()):
        purpose = "CONTAINER" if name.endswith(".oci.tar") else "SOURCE" if ".orig." in name else "INSTALL"
        made = package(name, version, **own, packageFileName=name, primaryPackagePurpose=purpose,
                       checksums=[{"algorithm": "SHA256", "checksumValue": digest(content)}])
        relate(made, "GENERATED_FROM", tenet)
    built_with = {name: v for name, v in built_with.items() if name not in depends}
    for kind, found in (("DEPENDS_ON", depends), ("STATIC_LINK", static), ("BUILD_TOOL_OF", built_with)):
        for name, debian_version in sorted(found.items()):
            other = package(name if kind != "STATIC_LINK" else f"{name}-static", debian_version, externalRefs=[{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{name}@{debian_version.replace(':', '%3A').replace('+', '%2B')}"}])
            relate(*((other, kind, tenet) if kind == "BUILD_TOOL_OF" else (tenet, kind, other)))
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"tenet-{version}",
        "documentNamespace": f"https://tenet.example/spdx/tenet-{version}-{digest(compact(packages))}",
        "creationInfo": {"created": timestamp(stamp), "creators": ["Tool: tenet-tools-package"]},
        "packages": packages, "relationships": relations}
    return json.dumps(document, indent=1).encode() + b"\n"
