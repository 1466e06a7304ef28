"""The package of this machine's suite, built once from the work tree; the other
suite's is built for its guest. MCPBOX_PACKAGE names a directory where it is
already, with the build's output as build.log."""
import os
import pathlib
import re
import subprocess

import pytest

from harness.patience import patience

SRC = pathlib.Path(__file__).resolve().parents[2]


class Package:
    def __init__(self, where, unpacked):
        self.where, self.root, self.debug = where, unpacked / "root", unpacked / "debug"
        (self.deb,) = where.glob("mcpbox_*.deb")
        (self.symbols,) = where.glob("mcpbox-dbgsym_*.deb")
        (self.changes,) = where.glob("*.changes")
        self.log = (where / "build.log").read_text()
        subprocess.run(["dpkg-deb", "-x", self.deb, self.root], check=True)
        subprocess.run(["dpkg-deb", "-x", self.symbols, self.debug], check=True)
        self.programs = sorted([*self.root.glob("usr/libexec/mcpbox/*"),
                                *self.root.glob("usr/bin/*")])

    def field(self, name):
        return subprocess.run(["dpkg-deb", "-f", self.deb, name], check=True,
                              capture_output=True, text=True).stdout.strip()

    def script(self, name):
        return subprocess.run(["dpkg-deb", "-I", self.deb, name], check=True,
                              capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def suite():
    text = pathlib.Path("/etc/os-release").read_text()
    return re.search(r"^VERSION_CODENAME=(\w+)$", text, re.M)[1]


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    where = os.environ.get("MCPBOX_PACKAGE")
    if where is None:
        where = tmp_path_factory.mktemp("package")
        with open(where / "build.log", "wb") as log:
            subprocess.run([SRC / "contrib/debian/build", "--worktree", "--out", where],
                           check=True, timeout=patience(900), stdin=subprocess.DEVNULL,
                           stdout=log, stderr=subprocess.STDOUT)
    return Package(pathlib.Path(where), tmp_path_factory.mktemp("unpacked"))
