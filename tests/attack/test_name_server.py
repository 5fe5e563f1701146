# SPDX-License-Identifier: Apache-2.0
"""A name server, or a host that pretends to be one, against the egress firewalls whose rules have names."""
import pytest

from lab import wait_for
from test_egress import ADDRESSES, Egress


@pytest.fixture(scope="module")
def egress(make_lab, tmp_path_factory):
    lab = make_lab("en", nodes=2, plugin="networkpolicy", datapath="ovs,ebpf")
    e = Egress(lab, tmp_path_factory.mktemp("names"))
    yield e
    e.stop()
    lab.down(check=False)


@pytest.mark.parametrize("trouble", ["silent", "lies"])
def test_a_name_keeps_its_addresses(egress, trouble):
    """Whether nobody answers, or with other ids and malformed messages: another address opens nothing."""
    name = f"{trouble}.outside.test"
    egress.set_names({name: [[ADDRESSES[1]], 1]})
    egress.apply("out", f"+{name}", "-0.0.0.0/0")
    egress.expect(False, True, False)
    egress.set_names({name: trouble})
    wait_for("an Event", lambda: any(name in e["message"] for e in egress.events("NameNotResolved")))
    egress.expect(False, True, False)
    egress.set_names({name: [[ADDRESSES[0]], 1]})
    egress.expect(True, False, False)
    egress.delete("out")


def test_a_slow_name_does_not_delay_other_names(egress):
    egress.set_names({"slow.outside.test": "silent", "www.outside.test": [[ADDRESSES[0]], 1]})
    egress.apply("out", "+slow.outside.test", "+www.outside.test", "-0.0.0.0/0")
    egress.expect(True, False, False)
    egress.delete("out")
