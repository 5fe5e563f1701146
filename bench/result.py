# SPDX-License-Identifier: Apache-2.0
"""How a benchmark in Python gives its results to tools/bench; bench/measure.h has the same for C."""
import os


def digits(value):
    """Four digits, and all of those before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def result(measure, value, unit, peer="", peer_value=None, ratio=None):
    """Appends a row to the file that TENET_BENCH_ROWS names; without it, does nothing.

    'ratio' is that of value and peer's value, if not given.
    """
    path = os.environ.get("TENET_BENCH_ROWS")
    if not path:
        return
    if ratio is None and peer_value:
        ratio = value / peer_value
    fields = [measure, digits(value), unit, peer, "" if peer_value is None else digits(peer_value),
              "" if ratio is None else f"{ratio:.3g}"]
    with open(path, "a") as f:
        f.write("\t".join(fields) + "\n")
