# SPDX-License-Identifier: Apache-2.0
"""Tests of what is packaged for Prometheus and Grafana, with a real Prometheus: its package is large, so `make check-monitoring`
runs them, and not the gate."""
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
from fixtures import *  # noqa: E402, F401, F403
