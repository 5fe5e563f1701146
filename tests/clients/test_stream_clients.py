# SPDX-License-Identifier: Apache-2.0
"""Commands in containers, files, ports and logs by the oldest and the newest kubectl that tools/check-clients fetches."""
import contextlib
import os
import re
import subprocess

import pytest

import containerd as ctd
from lab import BUILD, run, wait_for

IMAGE = "localhost/busybox:1"
KUBECTLS = {"1.20": BUILD / "clients/kubectl/usr/bin/kubectl", "1.35": BUILD / "clients/kubectl-1.35"}


@pytest.fixture(scope="module")
def own(make_lab):
    ctd.needed()
    lab = make_lab("sc", nodes=1, containers=True)
    lab.project("red")
    lab.kubectl("-n", "red", "run", "web", f"--image={IMAGE}", "--", "httpd", "-f", "-p", "80", "-h", "/www")
    lab.kubectl("-n", "red", "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    lab.kubectl("-n", "red", "run", "reader", f"--image={IMAGE}", "--stdin", "--leave-stdin-open", "--",
                "sh", "-c", "while read x; do echo got $x; done")
    lab.kubectl("-n", "red", "wait", "--for=condition=Ready", "pod/reader", "--timeout=60s")
    yield lab
    lab.down(check=False)


@pytest.mark.parametrize("version", KUBECTLS)
def test_streams_by_kubectl(own, version, tmp_path):
    """1.20 speaks SPDY, 1.35 WebSocket."""
    env = own.kubectl_environment()

    def kubectl(*args, **kw):
        return run([KUBECTLS[version], "-n", "red", *args], env=env, **kw)

    def begun(*args, **kw):
        return subprocess.Popen([KUBECTLS[version], "-n", "red", *args], env=env, stdout=subprocess.PIPE, text=True, **kw)
    assert f'v{version}.' in kubectl("version", "--client", "-o", "json").stdout
    for code in (0, 7):
        r = kubectl("exec", "web", "--", "sh", "-c", f"echo out; echo err >&2; exit {code}", check=False)
        assert (r.returncode, r.stdout) == (code, "out\n") and r.stderr.startswith("err\n")
    assert kubectl("exec", "-i", "web", "--", "wc", "-c", input="x" * 1000000).stdout.strip() == "1000000"
    assert len(kubectl("exec", "web", "--", "head", "-c", "10000000", "/dev/zero").stdout) == 10000000
    (tmp_path / "there").write_bytes(os.urandom(3 << 20))
    kubectl("cp", str(tmp_path / "there"), "web:/tmp/file")
    kubectl("cp", "web:/tmp/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes()
    forward = begun("port-forward", "pod/web", ":80")
    said = open(tmp_path / "attach", "w+")
    attached = begun("attach", "-i", "reader", stdin=subprocess.PIPE, stderr=said)
    follow = begun("logs", "-f", "reader")
    try:
        port = re.search(r"127\.0\.0\.1:(\d+)", forward.stdout.readline())[1]
        for _ in range(3):
            assert run(["curl", "-sf", f"http://127.0.0.1:{port}/"]).stdout == "it works\n"
        attached.stdin.write(f"by {version}\n")
        attached.stdin.flush()
        assert f"got by {version}\n" in iter(attached.stdout.readline, "")
        assert f"got by {version}\n" in iter(follow.stdout.readline, "")
    finally:
        for p in (forward, attached, follow):
            p.kill()
            p.wait()
            p.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            attached.stdin.close()
        print((tmp_path / "attach").read_text())  # shown when it fails
        said.close()
    assert wait_for("its log", lambda: f"got by {version}" in kubectl("logs", "reader").stdout)
