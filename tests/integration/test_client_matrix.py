# SPDX-License-Identifier: Apache-2.0
"""Every kind that is served, by the clients that Debian packages: kubectl and the Python client.  Further clients: tests/clients."""
import api_server
from client_matrix import Kubectl, Matrix, PythonDynamic, PythonTyped


def test_every_kind_by_every_client(tmp_path, capsys):
    matrix = Matrix()
    for client in (Kubectl("kubectl", "kubectl", tmp_path), PythonDynamic(), PythonTyped()):
        folder = tmp_path / client.name.replace(" ", "-")
        folder.mkdir()
        server = api_server.Server(folder)
        try:
            matrix.run(client, server)
        finally:
            server.stop()
    with capsys.disabled():
        print("\n" + matrix.table())
    assert len(matrix.items) > 50 and len(matrix.cells) > 50 * 3 * 5
    assert not matrix.bad(), matrix.bad()
