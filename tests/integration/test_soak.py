# SPDX-License-Identifier: Apache-2.0
"""A short run of tests/soak/soak.py: `make soak` is the long one."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soak"))
from soak import soak  # noqa: E402


@pytest.mark.has_nodes
def test_adds_and_dels_killed_in_the_middle_leave_nothing():
    """Some hundred, one in ten killed, agents killed, and the host restarted twice."""
    counts = soak(rounds=300, reboots=2, killed=0.1)
    assert counts["reboot"] == 2 and counts["killed"] > 10 and counts["ADD"] > 200
