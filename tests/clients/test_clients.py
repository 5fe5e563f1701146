# SPDX-License-Identifier: Apache-2.0
"""Every kind that is served, by clients that tools/check-clients fetches (make check-clients)."""
import pathlib

import pytest

import api_server
from ansible_client import Ansible
from client_matrix import Kubectl, Matrix, Program

HERE = pathlib.Path(__file__).parent
FOLDER = api_server.BUILD / "clients"


def node(client, **more):
    return lambda folder: Program(f"npm {client}", ["node", FOLDER / "matrix.mjs", client], folder, **more)


LOWER_CASE = "it asks for names in lower case"
OTHER_MODEL = "it sends the fields of the kind of the same name in authorization.k8s.io"
# A JSON patch has no kind, by which KubernetesObjectApi finds the path.
CLIENTS = {
    "kubectl 1.20 of Debian": lambda folder: Kubectl("Debian 1.20", FOLDER / "kubectl/usr/bin/kubectl", folder),
    "kubectl 1.20 of npm": lambda folder: Kubectl("kubectl 1.20", FOLDER / "kubectl-1.20", folder),
    "kubectl 1.35 of npm": lambda folder: Kubectl("kubectl 1.35", FOLDER / "kubectl-1.35", folder),
    "client-node, objects": node("objects", without=("json",), left_out={
        "OAuthAccessToken": LOWER_CASE, "OAuthAuthorizeToken": LOWER_CASE,
        "Template": "it takes processedtemplates for the resource, which have the same kind, on OpenShift as well",
        "authorization.openshift.io/v1/LocalSubjectAccessReview": OTHER_MODEL,
        "authorization.openshift.io/v1/SubjectAccessReview": OTHER_MODEL}),
    "client-node, typed": node("typed"),
    "openshift-rest-client": node("openshift"),
    "Ansible, kubernetes.core": lambda folder: Ansible("kubernetes.core", FOLDER / "ansible", folder, "kubernetes.core.k8s"),
    "Ansible, community.okd": lambda folder: Ansible("community.okd", FOLDER / "ansible", folder, "community.okd.k8s"),
}


@pytest.fixture(scope="module")
def matrix(request):
    made = Matrix()
    yield made
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\n" + made.table())


@pytest.mark.parametrize("name", CLIENTS)
def test_every_kind(name, matrix, tmp_path):
    # Modules are looked for beside the program.
    (FOLDER / "matrix.mjs").write_text((HERE / "matrix.mjs").read_text())
    client = CLIENTS[name](tmp_path)
    server = api_server.Server(tmp_path)
    try:
        matrix.run(client, server)
    finally:
        server.stop()
    cells = {key: error for key, error in matrix.cells.items() if key[0] == client.name}
    assert len(cells) > 300
    assert not matrix.bad(client.name), matrix.bad(client.name)
