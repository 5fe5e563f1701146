# SPDX-License-Identifier: Apache-2.0
"""Clusters that are shared by many tests."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import lab as lablib  # noqa: E402
from fixtures import *  # noqa: E402, F401, F403


def _cluster(make_lab, plugin, label, **options):
    """Three nodes; two projects and default; a pod of each on every node."""
    lab = make_lab(label, nodes=3, plugin=plugin, **options)
    lab.project("red")
    lab.project("blue")
    lab.pods = [lab.pod(f"{project}/{project}-{i}", f"node{i}")
                for project in ("default", "red", "blue") for i in (1, 2, 3)]
    # Nodes are ready before they know of the API's service, which tests that compare rules would see come.
    ip = lab.object("service", "kubernetes")["spec"]["clusterIP"]
    for i in (1, 2, 3):
        lablib.wait_for("the API's service", lambda: lab.serves(f"node{i}", ip))
    return lab


@pytest.fixture(scope="session")
def multitenant(make_lab):
    lab = _cluster(make_lab, "redhat/openshift-ovs-multitenant", "mt")
    yield lab
    lab.down(check=False)


@pytest.fixture(scope="session")
def subnet(make_lab):
    lab = _cluster(make_lab, "redhat/openshift-ovs-subnet", "sn")
    yield lab
    lab.down(check=False)


@pytest.fixture(scope="session")
def mixed(make_lab):
    """One node with Open vSwitch, and two with eBPF."""
    lab = _cluster(make_lab, "redhat/openshift-ovs-multitenant", "mx", datapath="ovs,ebpf,ebpf")
    yield lab
    lab.down(check=False)


@pytest.fixture(params=["subnet", "multitenant"])
def cluster(request):
    """The cluster of pods under each plug-in."""
    return request.getfixturevalue(request.param)
