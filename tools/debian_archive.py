# SPDX-License-Identifier: Apache-2.0
"""Where this machine's apt has Debian's packages from: no address of a mirror is in the tree."""
import pathlib
import re
import subprocess
import sys


def debian_archives(suites):
    """["URI SUITE", ...] for suites of Debian, those of security updates included.  Ends the tool when apt knows none."""
    argv = ["apt-get", "indextargets", "--format", "$(CREATED_BY)|$(ORIGIN)|$(REPO_URI)|$(RELEASE)"]
    found = {}
    for line in subprocess.run(argv, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines():
        created, origin, uri, release = line.split("|")
        if created == "Packages" and origin == "Debian" and re.search(r"^[a-z]+(-security)?$", release):
            found[release.endswith("-security")] = uri
    if len(found) < 2:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: apt knows no packages of Debian and its security updates here: "
                 '"apt-get update" on a Debian machine comes first')
    return [f"{found[s.endswith('-security')]} {s}" for s in suites]
