# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "integration"), str(pathlib.Path(__file__).parent)]
from fixtures import *  # noqa: E402, F401, F403
