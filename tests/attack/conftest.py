# SPDX-License-Identifier: Apache-2.0
"""The labs that packets are sent into: each datapath under each plug-in that separates projects."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import lab as lablib  # noqa: E402
from fixtures import *  # noqa: E402, F401, F403
from hostile import Net  # noqa: E402

PLUGINS = ("multitenant", "networkpolicy")
DATAPATHS = ("ovs", "ebpf") if lablib.DATAPATH == "ovs" else (lablib.DATAPATHS[lablib.DATAPATH],)


@pytest.fixture(scope="module", params=[f"{d}-{p}" for d in DATAPATHS for p in PLUGINS])
def net(request, make_lab):
    """Two nodes; projects red (the attacker's), blue and the global one; see Net."""
    datapath, plugin = request.param.split("-")
    lab = make_lab("atk", nodes=2, plugin=plugin, datapath=datapath)
    made = Net(lab, plugin)
    yield made
    made.close()
    lab.down(check=False)
