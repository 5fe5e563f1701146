# SPDX-License-Identifier: Apache-2.0
"""What is cheap to know about building and packaging: rights that targets need, and what each program says of itself."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

import lab as lablib
from lab import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.fixture
def tree():
    """A copy of what make reads, in a folder that a user without rights may read, and a folder of PATH that it may not."""
    with tempfile.TemporaryDirectory(prefix="tenet-") as folder:
        os.chmod(folder, 0o755)
        yield fill(pathlib.Path(folder))


def fill(tree):
    for name in ("Makefile", "tools/check", "tools/demo", "tools/deps", "packaging/packages.txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / "closed").mkdir(mode=0o700)
    return tree


def without_root(tree, *argv):
    # These tests may have been started by make, and this make is not a part of that one.
    made = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    env = {k: v for k, v in os.environ.items() if k not in made}
    env |= {"PATH": f"{tree}/closed:{os.environ['PATH']}", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([*NOBODY, *argv], cwd=tree, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


@pytest.mark.parametrize("argv", [["make", "demo"], ["make", "check"], ["make", "-j2", "clean", "check"], ["tools/check"],
                                  ["/usr/bin/python3", "tools/demo", "up", "build"]])
def test_without_root_a_target_that_needs_it_says_so_and_does_nothing_else(tree, argv):
    before = sorted(tree.rglob("*"))
    r = without_root(tree, *argv)
    assert r.returncode != 0 and re.search(r"needs root|run it as root", r.stdout), r.stdout
    assert "sudo make" in r.stdout and "Traceback" not in r.stdout and len(r.stdout.splitlines()) == 1, r.stdout
    assert sorted(tree.rglob("*")) == before


def test_a_command_that_cannot_be_executed_is_named_without_a_traceback(tree):
    r = without_root(tree, "env", f"PATH={tree}/closed", "/usr/bin/python3", "tools/check", "--only", "format")
    assert r.returncode != 0 and "clang-format: cannot be executed: Permission denied" in r.stdout and "Traceback" not in r.stdout, r.stdout


def test_make_alone_asks_for_what_building_needs_and_not_for_root(tree):
    """Of the list's sections only "build" counts, and what is installed is not asked for."""
    (tree / "list").write_text("# build\ndash\nno-such-package-of-tenet sh\n# run\nno-such-package-either\n")
    assert without_root(tree, "tools/deps", "list", "build").returncode == 0
    r = without_root(tree, "tools/deps", "list")
    assert r.returncode == 1 and "missing; run as root, or install them: no-such-package-either" in r.stdout, r.stdout
    assert "tools/deps packaging/packages.txt build" in without_root(tree, "make", "-n", "build").stdout


def version():
    return re.search(r"^\s*version: '([^']+)'", (ROOT / "meson.build").read_text(), re.M)[1]


def test_every_program_and_every_text_names_one_version():
    assert run([lablib.BUILD / "src/cli/tenet", "--version"]).stdout == f"tenet {version()}\n"
    assert run([lablib.CNI, "--version"]).stdout.startswith(f"tenet-cni {version()} ")
    assert run([lablib.BUILD / "src/pause/tenet-pause", "--version"]).stdout == f"tenet-pause {version()}\n"
    assert run([lablib.BUILD / "src/cli/tenet-deployer", "--version"]).stdout == f"tenet-deployer {version()}\n"
    assert (ROOT / "packaging/debian/changelog").read_text().startswith(f"tenet ({version()}-1)")
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1] == version()


@pytest.mark.parametrize("program", ("pause/tenet-pause", "cli/tenet-deployer"))
def test_the_only_file_of_an_image_needs_no_other_file(program, tmp_path):
    """Neither ldd(1) nor the program's own header names a library, and it runs where there is nothing else."""
    path = lablib.BUILD / "src" / program
    said = run(["ldd", path], check=False)
    assert "statically linked" in said.stdout or "not a dynamic executable" in said.stderr
    segments = run(["readelf", "-ld", path]).stdout
    assert "INTERP" not in segments and "(NEEDED)" not in segments
    shutil.copy(path, tmp_path / "program")
    os.chmod(tmp_path, 0o755)
    r = run(["chroot", "--userspec=65532:65532", tmp_path, "/program", "--version"])
    assert r.stdout == f"{path.name} {version()}\n"


def test_a_package_is_built_from_what_make_installs_before_it_builds():
    """Build-Depends of the packages are the section "build" of packages.txt, apart from what every build of Debian has."""
    control = (ROOT / "packaging/debian/control").read_text()
    depends = {re.sub(r"[ (:].*", "", d.strip()) for d in re.search(r"^Build-Depends:\n((?: .*\n)+)", control, re.M)[1].split(",")}
    section = (ROOT / "packaging/packages.txt").read_text().split("# build\n")[1].split("\n# ")[0]
    assert depends - {"debhelper-compat"} == {line.split()[0] for line in section.splitlines()} - {"gcc", "make", "libc6-dev"}
