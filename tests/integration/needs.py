# SPDX-License-Identifier: Apache-2.0
"""Packages that a test needs: a test fails without one that `make deps` installs, and is skipped without any other."""
import pathlib
import shutil

import pytest

LIST = pathlib.Path(__file__).parent.parent.parent / "packaging/packages.txt"


def installed_by_deps():
    return {line.split()[0] for line in LIST.read_text().splitlines() if line.strip() and not line.startswith("#")}


def missing(package):
    """Ends the test."""
    if package in installed_by_deps():
        pytest.fail(f"the package {package} is not installed: make deps installs it", pytrace=False)
    pytest.skip(f"the package {package} is not installed")


def program(name, package=None):
    """Ends the test where the program of the package (by default of the same name) is absent."""
    if not shutil.which(name):
        missing(package or name)
