# SPDX-License-Identifier: Apache-2.0
"""What the integration tests and the attack suite share of pytest: hooks, labs, and the check that nothing is left behind.
Each conftest.py imports all of it."""
import os
import pathlib
import signal

import pytest

import api_server
import lab as lablib


def interrupted(signo, frame):
    raise KeyboardInterrupt


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.addinivalue_line("markers", "has_nodes: it makes a lab without a fixture")
    config.addinivalue_line("markers", "ovs_only(reason): it is about Open vSwitch itself (docs/ebpf.md, \"Tests\")")
    if api_server.OTHER and not pathlib.Path(api_server.OTHER).is_file():
        pytest.exit(f"TENET_TEST_KUBECONFIG: there is no file \"{api_server.OTHER}\"", returncode=1)
    if lablib.DATAPATH not in lablib.DATAPATHS:
        pytest.exit(f"TENET_DATAPATH: \"{lablib.DATAPATH}\" is none of {', '.join(lablib.DATAPATHS)}", returncode=1)
    signal.signal(signal.SIGTERM, interrupted)  # fixtures take down what they made
    if os.geteuid() != 0:
        pytest.exit("these tests need root: they make network namespaces", returncode=1)
    if not pathlib.Path(lablib.TENET).exists():
        pytest.exit(f"{lablib.TENET} is not built; set TENET_BUILD or run 'make check'", returncode=1)


def pytest_collection_modifyitems(config, items):
    """With another API server (TENET_TEST_KUBECONFIG): the tests that need nothing else.  With another datapath
    (TENET_DATAPATH): the tests that have nodes, but for those about Open vSwitch."""
    if api_server.OTHER:
        reasons = {i: api_server.left_out(i.module.__name__, i.originalname) for i in items}
        whole = sorted({i.module.__name__ for i in items if i.module.__name__ not in api_server.MODULES})
        config.left_out = [f"left out: {i.module.__name__}.{i.originalname}: {why}" for i, why in reasons.items()
                           if why and i.module.__name__ not in whole]
        config.left_out += [f"left out: {', '.join(whole)}: {api_server.OF_THEIR_OWN}"] if whole else []
        config.hook.pytest_deselected(items=[i for i in items if reasons[i]])
        items[:] = [i for i in items if not reasons[i]]
        return
    if lablib.DATAPATH == "ovs":
        return
    def has_nodes(item):  # 'cluster' with a parameter asks for its lab only when it is set up
        by_name = "cluster" in getattr(getattr(item, "callspec", None), "params", {})
        return by_name or bool(item.get_closest_marker("has_nodes")) or not {"make_lab", "lab"}.isdisjoint(item.fixturenames)
    marks = {i: i.get_closest_marker("ovs_only") for i in items if has_nodes(i)}
    config.left_out = [f"left out: {i.nodeid}: {mark.args[0]}" for i, mark in marks.items() if mark]
    config.hook.pytest_deselected(items=[i for i in items if marks.get(i, True)])
    items[:] = [i for i, mark in marks.items() if not mark]


def pytest_report_collectionfinish(config):
    return getattr(config, "left_out", [])


@pytest.fixture(scope="session", autouse=True)
def clean_sanitizers():
    """No daemon or command may have tripped a sanitizer in the whole session."""
    yield
    reports = lablib.sanitizer_reports()
    lablib.forget_sanitizer_reports()
    assert not reports, "\n".join(f"{k}:\n{v[:4000]}" for k, v in reports.items())


@pytest.fixture(scope="session")
def make_lab():
    """Function that makes a lab and brings it up; all of them go down when their scope ends, also on failure."""
    made = []

    def make(label="t", up=True, **options):
        lab = lablib.Lab(label, **options)
        made.append(lab)
        return lab.up() if up else lab

    yield make
    for lab in reversed(made):
        lab.down(check=False)
    left = [x for lab in made for x in lablib.leftovers(lab.name)]
    assert not left, f"left behind: {left}"
