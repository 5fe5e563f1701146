# SPDX-License-Identifier: Apache-2.0
"""What a user does with workloads, by kubectl programs that tools/check-clients fetches."""
import pytest

import api_server
from test_workloads import Project, p  # noqa: F401 (a fixture)
from workload_steps import STEPS, Client

FOLDER = api_server.BUILD / "clients"
PROGRAMS = {"Debian's 1.20": "kubectl/usr/bin/kubectl", "1.20": "kubectl-1.20", "1.32": "kubectl-1.32", "1.35": "kubectl-1.35"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("workload-steps"))
    yield made
    made.stop()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_user_works_with(p, program, step):  # noqa: F811
    STEPS[step](Client(p, FOLDER / PROGRAMS[program]))
