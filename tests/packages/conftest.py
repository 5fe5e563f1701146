# SPDX-License-Identifier: Apache-2.0
"""Tests of the packages on a system of their own: `make check-packages` builds the packages and runs them."""
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
sys.path.insert(0, str(HERE))
