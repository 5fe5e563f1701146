# SPDX-License-Identifier: Apache-2.0
"""tools/bench: which goals a result reaches, which run is the latest, what it records, and when the page differs."""
import importlib.machinery
import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
from result import result  # noqa: E402

HEAD = "date\tcommit\tkernel\tbenchmark\toptions\tmeasure\tvalue\tunit\tpeer\tpeer value\tratio\tgoal\n"
PAGE = "# Figures\n\n<!-- generated: results of demo -->\nold\n<!-- generated: end -->\n\nText.\n"
DEMO = """from result import result
result("time", 4, "ms", "sleep", 8)
result("rate", 20160.4, "/s")
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """tools/bench, which works on a tree of its own with the benchmark 'demo'."""
    loader = importlib.machinery.SourceFileLoader("bench", str(ROOT / "tools/bench"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
    loader.exec_module(module)
    (tmp_path / "bench/results").mkdir(parents=True)
    (tmp_path / "bench/demo.py").write_text(DEMO)
    (tmp_path / "bench/result.py").write_text((ROOT / "bench/result.py").read_text())
    (tmp_path / "bench/goals.tsv").write_text("benchmark\toptions\tmeasure\tgoal\ndemo\t--fast\ttime\tratio <= 0.4\n")
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "bench/results")
    monkeypatch.setattr(module, "GOALS", tmp_path / "bench/goals.tsv")
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    return module


def row(day, commit, measure, value, ratio="", goal=""):
    return f"2026-01-{day}\t{commit}\t6.18\tdemo\t\t{measure}\t{value}\tms\tsleep\t\t{ratio}\t{goal}\n"


@pytest.mark.parametrize("value, ratio, goal, met", [
    ("3", "", "value <= 3", True),
    ("3.1", "", "value <= 3", False),
    ("5000", "", "value >= 5000", True),
    ("4999", "", "value >= 5000", False),
    ("2", "0.3", "value <= 3, ratio <= 0.2", False),
    ("4", "0.1", "value <= 3, ratio <= 0.2", False),
    ("2", "0.2", "value <= 3, ratio <= 0.2", True),
    ("", "0.9", "ratio >= 1", False),
    ("2", "", "ratio <= 0.2", True),
])
def test_a_result_reaches_a_goal_when_every_bound_holds(bench, value, ratio, goal, met):
    assert bench.is_met({"value": value, "ratio": ratio, "goal": goal}) is met


def test_the_latest_run_replaces_earlier_ones_as_a_whole(bench):
    (bench.RESULTS / "2026-01-02.tsv").write_text(HEAD + row("02", "b", "time", 2) + row("02", "b", "time", 1))
    (bench.RESULTS / "2026-01-01.tsv").write_text(HEAD + row("01", "a", "time", 9) + row("01", "a", "gone", 9))
    rows = bench.latest_results()["demo", ""]
    assert [(r["measure"], r["value"]) for r in rows] == [("time", "1")]


def test_a_run_is_recorded_with_its_commit_options_and_goal(bench, capfd):
    assert bench.run("build", "abc", "demo", ["--fast"]) == 0
    [path] = bench.RESULTS.glob("*.tsv")
    time, rate = bench.read_tsv(path)
    assert (time["commit"], time["options"], time["value"], time["peer value"], time["ratio"]) == ("abc", "--fast", "4", "8", "0.5")
    assert time["goal"] == "ratio <= 0.4" and time["date"] == path.stem
    assert (rate["value"], rate["unit"], rate["peer"], rate["goal"]) == ("20160", "/s", "", "")
    assert "goal of time: ratio <= 0.4: MISSED" in capfd.readouterr().out


def test_a_run_that_fails_leaves_no_results(bench, tmp_path):
    (tmp_path / "bench/demo.py").write_text(DEMO + "raise SystemExit(3)\n")
    assert bench.run("build", "abc", "demo", []) == 3
    assert not list(bench.RESULTS.iterdir())


def test_the_page_has_the_latest_results_and_keeps_its_text(bench):
    (bench.RESULTS / "2026-01-01.tsv").write_text(HEAD + row("01", "a", "time", 4, "0.5", "ratio <= 0.4"))
    new, old = bench.page()
    assert new != old and "| time | ratio <= 0.4 (missed) | 4 ms | sleep | 0.5 |" in new
    assert "old" not in new and new.startswith("# Figures\n") and new.endswith("<!-- generated: end -->\n\nText.\n")
    bench.PAGE.write_text(new)
    assert bench.page() == (new, new)


def test_results_without_a_part_of_the_page_are_an_error(bench):
    (bench.RESULTS / "2026-01-01.tsv").write_text(HEAD + row("01", "a", "time", 4).replace("demo", "other"))
    with pytest.raises(SystemExit, match="no part with the results of other"):
        bench.page()


def test_a_benchmark_alone_writes_no_results(tmp_path, monkeypatch):
    monkeypatch.delenv("TENET_BENCH_ROWS", raising=False)
    monkeypatch.chdir(tmp_path)
    result("time", 4, "ms")
    assert not list(tmp_path.iterdir())
