# SPDX-License-Identifier: Apache-2.0
"""Tests of what runs containers: too long for the gate, which has tests/integration; `make check-containers` runs them.
TENET_TEST_CRIO names a CRI-O that they run on instead of containerd."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import crio  # noqa: E402
import fixtures  # noqa: E402
import lab  # noqa: E402
from fixtures import *  # noqa: E402, F401, F403

# Tests compare the memory of daemons: what AddressSanitizer keeps of freed memory must not be most of it.
lab.asan_options = ":quarantine_size_mb=2"


def pytest_collection_modifyitems(config, items):
    fixtures.pytest_collection_modifyitems(config, items)
    if not crio.PROGRAM:
        return
    if not pathlib.Path(crio.PROGRAM).is_file():
        pytest.exit(f'TENET_TEST_CRIO: there is no file "{crio.PROGRAM}"', returncode=1)
    reasons = {i: crio.left_out(i.module.__name__, i.originalname) for i in items}
    lines = dict.fromkeys(f"left out: {i.module.__name__ if i.module.__name__ in crio.LEFT_OUT else i.nodeid}: {why}"
                          for i, why in reasons.items() if why)
    config.left_out = [*getattr(config, "left_out", []), *lines]
    config.hook.pytest_deselected(items=[i for i in items if reasons[i]])
    items[:] = [i for i in items if not reasons[i]]
