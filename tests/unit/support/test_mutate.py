# SPDX-License-Identifier: Apache-2.0
"""tools/mutate: which mutations it sees, how it names them, and what it says of a small project whose tests have a hole."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
from mutation import results, source, trial  # noqa: E402


def of(body, result="int"):
    """(kind, the mutated body) of each mutation of a function."""
    head = f"{result} f(int a, int b)\n{{\n"
    text = f"{head}    {body}\n}}\n"
    return [(m.kind, m.apply(text)[len(head) + 4:-3]) for m in source.mutations("f.c", text)]


@pytest.mark.parametrize("body, kind, mutants", [
    ("if (a) {\n    }", "negate", ["if (!(a)) {\n    }"]),
    ("} else if (a) {", "negate", []),
    ("b = a ? 1 : 2;", "negate", ["b = !(a) ? 1 : 2;"]),
    ("b = a < 1 || a >= b;", "bound", ["b = a <= 1 || a >= b;", "b = a < 1 || a > b;"]),
    ("b = a == b;", "equal", ["b = a != b;"]),
    ("b = a && b;", "logic", ["b = a || b;"]),
    ("b = !g(a)->x[1];", "not", ["b = g(a)->x[1];"]),
    ("b = a + 0x10;", "constant", ["b = a + (0x10 + 1);"]),
    ("g(a);", "drop", [";"]),
    ("b = 1;", "drop", [";"]),
    ("x_free(a);", "drop", []),
    ("int c = g(a);", "drop", []),
    ("struct x y = {0};", "constant", []),
    ("char text[8];", "constant", []),
    ("log_info(\"a\", \"n=%d\", a < 1);", "bound", []),
    ("assert(a < 1);", "bound", []),
    ("p = xcalloc(a + 1, 2);", "constant", []),
    ("return -EACCES;", "return", ["return 0;"]),
    ("return 0;", "return", ["return -EIO;"]),
    ("return err_set(e, -EINVAL, \"x %d\", 1);", "return", ["return 0;"]),
    ("return err_set(e, -EINVAL, \"x %d\", 1);", "constant", []),
])
def test_each_kind_of_mutation(body, kind, mutants):
    assert [text for k, text in of(body) if k == kind] == mutants


@pytest.mark.parametrize("body, mutants", [
    ("b = a && b;", ["b =  b;", "b = a ;"]),
    ("b = a && g(a, b) && c;", ["b =  g(a, b) && c;", "b = a  && c;", "b = a && g(a, b) ;"]),
    ("b = a || b && c;", ["b =  b && c;", "b = a ;", "b = a ||  c;", "b = a || b ;"]),
    ("if (x(a && b) || c) {\n    }", ["if (x( b) || c) {\n    }", "if (x(a ) || c) {\n    }", "if ( c) {\n    }", "if (x(a && b) ) {\n    }"]),
])
def test_each_clause_of_a_condition_is_left_out(body, mutants):
    assert sorted(text for k, text in of(body) if k == "clause") == sorted(mutants)


@pytest.mark.parametrize("result, body, mutants", [
    ("bool", "return true;", ["return false;"]),
    ("bool", "return a < b;", ["return false;", "return true;"]),
    ("struct x *", "return g(a);", ["return NULL;"]),
    ("void", "return;", []),
])
def test_returns_by_the_type_of_the_function(result, body, mutants):
    assert [text for k, text in of(body, result) if k == "return"] == mutants


def test_comments_texts_macros_and_tables_are_left_alone():
    text = ('#define F(x) \\\n    if (x < 1) { }\n/* a < b */\nstatic const int t[] = {1, 2};\n'
            'enum { A = 1 };\nint f(void);\nvoid f(void)\n{\n    // a < b\n    static const int u = 3;\n    g("a < b");\n}\n')
    assert [m.kind for m in source.mutations("f.c", text)] == ["drop"]


def test_a_mutation_keeps_its_identity_when_its_line_moves():
    text = "int f(int a)\n{\n    if (a) {\n        g(a);\n    }\n    return a;\n}\n"
    moved = "/* A comment. */\n" + text.replace("int f(", "int h(int b)\n{\n    k(b);\n}\n\nint f(")
    before = {m.id for m in source.mutations("f.c", text)}
    assert before <= {m.id for m in source.mutations("f.c", moved)}
    assert not before & {m.id for m in source.mutations("other.c", text)}


def test_equal_lines_have_identities_of_their_own():
    text = "int f(int a)\n{\n    a = a < 1 && a < 1;\n    g(a);\n    a = a < 1 && a < 1;\n}\n"
    ids = [m.id for m in source.mutations("f.c", text)]
    assert len(ids) == len(set(ids))


def test_the_lottery_draws_one_of_a_line_and_the_same_after_a_change_elsewhere():
    text = "int f(int a)\n{\n" + "".join(f"    if (a < {n} && b) {{\n        g({n});\n    }}\n" for n in range(40)) + "}\n"
    first = list(source.draw(source.mutations("f.c", text), "1"))
    assert len({m.line for m in first}) == len(first)
    shorter = text.replace("    if (a < 7 && b) {\n        g(7);\n    }\n", "")
    second = [m.id for m in source.draw(source.mutations("f.c", shorter), "1")]
    assert [m.id for m in first if m.id in second] == second
    assert [m.id for m in first] != [m.id for m in source.draw(source.mutations("f.c", text), "2")]


def test_lines_keep_their_numbers_in_a_mutant():
    text = "int f(int a)\n{\n    if (a < 1 &&\n        g(a)) {\n    }\n    h(a,\n      a);\n    return 2;\n}\n"
    for m in source.mutations("f.c", text):
        assert m.apply(text).count("\n") == text.count("\n")


def test_the_table_keeps_reasons_and_forgets_lines_that_are_gone(tmp_path):
    table = results.Table(tmp_path / "t.tsv")
    a, b = source.mutations("src/x/f.c", "int f(int a)\n{\n    g(a);\n    h(a);\n}\n")
    table.set("x", a, "lived")
    table.set("x", b, "killed by t::one")
    table.save()
    text = (tmp_path / "t.tsv").read_text()
    (tmp_path / "t.tsv").write_text(text.replace("lived", "equivalent: g does nothing"))
    table = results.Table(tmp_path / "t.tsv")
    table.set("x", a, "lived")
    assert table.rows[a.id].outcome == "equivalent: g does nothing"
    assert results.summary(table, ["x"])[1].split() == ["x", "1", "0", "1", "100", "%"]
    table.set("x", a, "killed by t")
    assert table.rows[a.id].outcome == "killed by t"
    assert table.forget_gone("x", {a.id}) == 1 and b.id not in table.rows
    (tmp_path / "t.tsv").write_text("one\ttwo\n")
    with pytest.raises(ValueError, match="t.tsv:1: 2 columns, expected 6"):
        results.Table(tmp_path / "t.tsv")


@pytest.mark.parametrize("status, output, name", [
    (1, "[  FAILED  ] one: 1 test(s)\n[  FAILED  ] bounds_are_kept\n", "unit::bounds_are_kept"),
    (1, "FAILED tests/integration/test_x.py::test_y - assert\n", "unit::test_y"),
    (134, "", "unit (crash)"),
    (None, "", "unit (hang)"),
])
def test_what_killed_is_named(status, output, name):
    assert trial.failed_test("unit", status, output) == name


PROJECT = {
    "meson.build": "project('p', 'c')\nt = executable('test_f', 'tests/unit/x/test_f.c', 'src/x/f.c')\ntest('f', t)\n",
    "src/x/f.c": "int within(int a)\n{\n    int unused = a > 3;\n    if (a >= 1 &&\n        a < 10) {\n        return 7;\n    }\n"
                 "    return 0;\n}\n",
    # Nobody asks for 10.
    "tests/unit/x/test_f.c": "int within(int a);\nint main(void)\n{\n    return !(within(1) == 7 && !within(0) && within(9) == 7 && !within(11));\n}\n",
}


def mutate(root, *arguments):
    return subprocess.run([str(ROOT / "tools/mutate"), "--root", str(root), "--jobs", "1", *arguments],
                          capture_output=True, text=True, timeout=250)


@pytest.fixture
def project(tmp_path):
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def outcomes(root):
    return {r.mutation: r.outcome for r in results.Table(root / "tests/mutation/results.tsv").rows.values()}


def test_two_runs_write_one_table(tmp_path):
    first, second = results.Table(tmp_path / "t.tsv"), results.Table(tmp_path / "t.tsv")
    a, b = source.mutations("src/x/f.c", "int f(int a)\n{\n    g(a);\n    h(a);\n}\n")
    first.set("x", a, "lived")
    first.save()
    second.set("x", b, "lived")
    second.save()
    first.set("x", a, "killed by t")
    first.save()
    rows = results.Table(tmp_path / "t.tsv").rows
    assert (rows[a.id].outcome, rows[b.id].outcome) == ("killed by t", "lived")


def test_all_mutations_of_a_line(project):
    r = mutate(project, "--only", "src/x/f.c:5", "--only", "src/x/f.c:3")
    assert r.returncode == 1, r.stdout + r.stderr
    assert "f.c:3" not in r.stdout  # Nobody uses what is counted there: the compiler makes the same of the mutants.
    assert "lived: src/x/f.c:5: bound: && a < 10): < to <=" in r.stdout
    assert "-        a < 10) {\n+        a <= 10) {" in r.stdout
    assert outcomes(project) == {}  # They are not of the sample.
    assert (project / "src/x/f.c").read_text() == PROJECT["src/x/f.c"]


def test_a_hole_in_the_tests_is_shown_until_it_is_closed(project):
    r = mutate(project, "--count", "2", "x")
    assert r.returncode == 0, r.stdout + r.stderr
    first = outcomes(project)
    assert len(first) == 2

    r = mutate(project, "--resume", "--count", "100", "x")
    assert r.returncode == 1, r.stdout + r.stderr
    every = outcomes(project)
    assert first.items() <= every.items() and len(every) > 2
    assert every["bound: && a < 10): < to <="] == "lived"
    assert {o for m, o in every.items() if m != "bound: && a < 10): < to <="} == {"killed by f"}

    test = project / "tests/unit/x/test_f.c"
    test.write_text(test.read_text().replace("!within(11)", "!within(10)"))
    r = mutate(project, "--lived", "x")
    assert r.returncode == 0, r.stdout + r.stderr
    assert outcomes(project)["bound: && a < 10): < to <="] == "killed by f"


def test_a_test_that_came_since_the_last_run_is_run(project):
    r = mutate(project, "--only", "src/x/f.c:5")
    assert r.returncode == 1, r.stdout + r.stderr
    (project / "tests/unit/x/test_g.c").write_text("int within(int a);\nint main(void)\n{\n    return within(10) == 7;\n}\n")
    build = project / "meson.build"
    build.write_text(build.read_text() + "u = executable('test_g', 'tests/unit/x/test_g.c', 'src/x/f.c')\ntest('g', u)\n")
    r = mutate(project, "--only", "src/x/f.c:5")
    assert r.returncode == 0, r.stdout + r.stderr


def test_sub_folders_belong_to_the_folder_above_unless_they_are_folders_of_their_own(tmp_path):
    for file in ("x/a.c", "x/deep/b.c", "x/deep/er/c.c", "datapath/a.c", "datapath/ovs/b.c"):
        path = tmp_path / "src" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("void f(void)\n{\n    g();\n}\n")

    def listed(*arguments):
        lines = mutate(tmp_path, "--list", *arguments).stdout.splitlines()
        return sorted(line.split(" ")[1].split(":")[0].removeprefix("src/") for line in lines)
    assert listed("x") == ["x/a.c", "x/deep/b.c", "x/deep/er/c.c"]
    assert listed("datapath") == ["datapath/a.c"]
    assert listed("datapath/ovs") == ["datapath/ovs/b.c"]
    assert listed("--only", "src/x/deep/b.c") == ["x/deep/b.c"]
    r = mutate(tmp_path, "--list", "x/deep")
    assert r.returncode == 2 and "folder x/deep: it is a part of folder x" in r.stderr


def test_a_folder_that_is_not_there_is_named(tmp_path):
    r = mutate(tmp_path, "nowhere")
    assert r.returncode == 2 and "folder nowhere: there is no src/nowhere" in r.stderr


def test_a_program_that_says_failed_is_not_waited_for(tmp_path):
    def status_of(script, until):
        with open(tmp_path / "log", "w+b") as log:
            p = subprocess.Popen(["sh", "-c", script], stdout=log)
            status = trial.wait_for(p, 30, log, until)
            p.kill()
            p.wait()
            return status
    assert status_of("echo '[  FAILED  ] f'; exec sleep 60", trial.FAILED) == 1
    assert status_of("echo '[  FAILED  ] 1 test(s), listed below:'; sleep 1; exit 3", trial.FAILED) == 3
    assert status_of("echo '[  FAILED  ] f'; sleep 1", None) == 0


def test_durations_are_kept_until_the_program_or_the_tests_change(tmp_path):
    shop = trial.Workshop(tmp_path, tmp_path / "0", False)
    source_file, program = shop.tree / "tests/unit/x/test_f.c", shop.build / "test_f"
    for path in (source_file, program):
        path.parent.mkdir(parents=True)
        path.write_text("1")
    test = trial.Test("f", "x", [source_file], "test_f", 2.5)
    assert trial.Durations(shop).get(test) is None
    trial.Durations(shop).set(test)
    assert trial.Durations(shop).get(test) == 2.5
    program.write_text("2")
    assert trial.Durations(shop).get(test) is None
    program.write_text("1")
    assert trial.Durations(shop).get(test) == 2.5
    (shop.tree / "tests/unit/x/f.json").write_text("{}")
    assert trial.Durations(shop).get(test) is None


def test_tests_of_the_first_pattern_come_first_unless_another_names_the_header(tmp_path):
    trial.OWN["of_the_test"] = ["x/slow", "x/*"]
    try:
        texts = {"slow": "", "quick": "", "middle": '#include "x/f.h"\n', "other": ""}
        tests = []
        for i, (name, text) in enumerate(texts.items()):
            (tmp_path / name).write_text(text)
            tests.append(trial.Test(name, "y" if name == "other" else "x", [tmp_path / name], name, 9 - i))
        stage, more = trial.tests_for("of_the_test", tests)
    finally:
        del trial.OWN["of_the_test"]
    mutation = source.mutations("src/x/f.c", "int f(int a)\n{\n    g(a);\n}\n")[0]
    order = trial.Trial(None, "of_the_test", [stage, more], False).order(stage, mutation)
    assert [t.name for t in order] == ["middle", "slow", "quick"] and not more
