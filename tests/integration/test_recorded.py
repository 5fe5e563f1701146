# SPDX-License-Identifier: Apache-2.0
"""What users see of the API is as recorded in recorded/, kind by kind.

With TENET_RECORD=1 the files are written instead, so that a reviewer reads in their diff what changes for users.
"""
import difflib
import os
import pathlib

import pytest

import record_api
import api_server

RECORDED = pathlib.Path(__file__).parent / "recorded"


@pytest.fixture
def server(tmp_path):
    s = api_server.Server(tmp_path)
    yield s
    s.stop()


def test_the_api_is_as_recorded(server):
    files = record_api.recorded(server.port)
    if os.environ.get("TENET_RECORD"):
        RECORDED.mkdir(exist_ok=True)
        for old in RECORDED.glob("*.txt"):
            old.unlink()
        for name, text in files.items():
            (RECORDED / name).write_text(text)
    there = {p.name: p.read_text() for p in RECORDED.glob("*.txt")}
    diff = []
    for name in sorted(there.keys() | files.keys()):
        diff += difflib.unified_diff(there.get(name, "").split("\n"), files.get(name, "").split("\n"),
                                     f"recorded/{name}", f"{name} now", lineterm="", n=1)
    assert not diff, "the API differs; if that is meant, record it with TENET_RECORD=1:\n" + "\n".join(diff[:100])
