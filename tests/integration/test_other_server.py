# SPDX-License-Identifier: Apache-2.0
"""The tests of the API on an API server that they did not start (TENET_TEST_KUBECONFIG, docs/kubernetes.md)."""
import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import api_server
from test_http import Master

HERE = pathlib.Path(__file__).parent


def test_what_is_left_out_exists():
    names = {f"{m}.{f.name}" for m in api_server.MODULES for f in ast.parse((HERE / f"{m}.py").read_text()).body
             if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")}
    assert [name for name in api_server.LEFT_OUT if name not in names] == []
    assert all(api_server.LEFT_OUT.values())


def kubeconfig_of(master):
    """Of a user with all rights, who has a certificate."""
    master.context("system:admin", "system:masters")
    path = master.dir / "kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{master.port}",
                                               "certificate-authority": str(master.dir / "pki/ca.crt")}}],
        "users": [{"name": "u", "user": {"client-certificate": str(master.dir / "system-admin.crt"),
                                         "client-key": str(master.dir / "system-admin.key")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
    return path


def test_a_master_that_was_started_apart(tmp_path):
    """With TLS, users, RBAC and all controllers, of which the tests know nothing."""
    master = Master(tmp_path, tls=True)
    try:
        ran = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA", str(HERE)],
                             env={**os.environ, "TENET_TEST_KUBECONFIG": str(kubeconfig_of(master))}, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280)
    finally:
        master.stop()
    assert ran.returncode == 0, ran.stdout[-20000:]
    for name, why in api_server.LEFT_OUT.items():
        assert f"left out: {name}: {why}" in ran.stdout
    assert re.search(f"left out: test_addresses, .*: {api_server.OF_THEIR_OWN}", ran.stdout)
    assert int(re.search(r"(\d+) passed", ran.stdout)[1]) > 30
