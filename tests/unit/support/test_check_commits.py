# SPDX-License-Identifier: Apache-2.0
"""tools/check-commits: which messages it finds wrong, and clones in which there is nothing to check."""
import pathlib
import subprocess

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[3] / "tools/check-commits"


def git(folder, *argv):
    return subprocess.run(["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@example.org", *argv], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def commit(folder, message, lines=1):
    with open(folder / "file", "a") as f:
        f.write("x\n" * lines)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def check(folder, *argv):
    r = subprocess.run([TOOL, *argv], cwd=folder, stdout=subprocess.PIPE, text=True)
    return r.returncode, r.stdout


@pytest.fixture
def tree(tmp_path):
    """Its history has a message from before the rule."""
    git(tmp_path, "init", "-q")
    commit(tmp_path, "Before the rule")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/check-commits").write_text("")
    commit(tmp_path, "tools: the rule")
    return tmp_path


@pytest.mark.parametrize("message, lines, said", [
    ("store: reads less", 3, None),
    ("base, tools/check: reads less\n\nWhy.", 30, None),
    ("store: reads less", 30, "30 lines change and no body says why"),
    ("Store: reads less", 3, "the subject is not"),
    ("reads less", 3, "the subject is not"),
    ("store: wip", 3, "not finished"),
    ("fixup! store: reads less", 3, "not finished"),
    ("store: " + "x" * 94, 3, "the subject has 101 characters"),
])
def test_messages(tree, message, lines, said):
    commit(tree, message, lines)
    status, out = check(tree)
    assert (status, said or "commits: 1 messages are right") == (1 if said else 0, said or out.strip())
    assert not said or said in out


def test_a_range_is_checked_whole(tree):
    status, out = check(tree, "HEAD")
    assert status == 1 and "Before the rule" in out
    assert check(tree, "nothing..HEAD")[0] == 1


def test_clones_without_history_are_no_failure(tree, tmp_path_factory):
    commit(tree, "store: reads less")
    shallow = tmp_path_factory.mktemp("shallow")
    git(tree, "clone", "-q", "--depth", "1", f"file://{tree}", str(shallow / "clone"))
    assert check(shallow / "clone") == (0, "commits: 0 messages are right\n")
    assert check(shallow)[0] == 0
