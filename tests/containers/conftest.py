# SPDX-License-Identifier: Apache-2.0
"""Tests of what runs containers: too long for the gate, which has tests/integration; `make check-containers` runs them."""
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import lab  # noqa: E402
from fixtures import *  # noqa: E402, F401, F403

# Tests compare the memory of daemons: what AddressSanitizer keeps of freed memory must not be most of it.
lab.asan_options = ":quarantine_size_mb=2"
