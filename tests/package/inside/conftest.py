"""Runs in a throw-away root of the suite as its root user (tests/run): packages
are installed and removed for real, with the package below test as
/tmp/package/mcpbox_*.deb. No systemd runs there; what maintainer scripts ask
of one is heard by a stand-in."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness.patience import patience

(DEB,) = pathlib.Path("/tmp/package").glob("mcpbox_*.deb")
FAKE = pathlib.Path("/tmp/systemctl")
SYSTEMCTL = """#!/bin/sh
# Writes down what it is told; its answers are files. Which units are enabled is
# links in /etc, for which no manager is needed.
case $* in
*preset*) SYSTEMD_OFFLINE=1 exec /usr/bin/systemctl "$@" ;;
esac
echo "$*" >>/tmp/systemctl/calls
answer=
for word; do
	case $word in
	is-active | is-failed | is-enabled | list-units) answer=$word ;;
	esac
done
case $answer in
is-enabled) echo enabled ;;
list-units) cat /tmp/systemctl/running ;;
is-active) case "$*" in *mcpbox.target*) test -e /tmp/systemctl/target ;; *mcpbox-processes.target*) test -e /tmp/systemctl/processes ;; *) grep -q -F "${*##* }" /tmp/systemctl/running ;; esac ;;
is-failed) test -e /tmp/systemctl/failed ;;
esac
"""


class Machine:
    """dpkg, and what it said."""

    def dpkg(self, *words, rc=0):
        env = {"PATH": f"{FAKE / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
        got = subprocess.run(["dpkg", *words], check=False, text=True, env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=patience(120))
        assert got.returncode == rc, got.stdout
        return got.stdout

    def install(self, deb=DEB, **more):
        return self.dpkg("-i", "--force-unsafe-io", "--force-confdef", "--force-confold", str(deb), **more)

    def status(self):
        got = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", "mcpbox"], check=False,
                             capture_output=True, text=True)
        return got.stdout

    def systemd(self, running=(), target=True, migration_fails=False, processes=None):
        """From here on there is a service manager."""
        pathlib.Path("/run/systemd/system").mkdir(parents=True, exist_ok=True)
        (FAKE / "running").write_text("".join(f"{u} loaded active running x\n" for u in running))
        (FAKE / "calls").write_text("")
        for name, there in (("target", target), ("failed", migration_fails),
                            ("processes", target if processes is None else processes)):
            (FAKE / name).unlink(missing_ok=True)
            if there:
                (FAKE / name).touch()

    def told(self, action):
        """The units of each call with this action."""
        calls = [c.split() for c in (FAKE / "calls").read_text().splitlines()]
        return [[w for w in c[c.index(action) + 1:] if w != "--"] for c in calls if action in c]


# The index of manual pages, made anew at each installation, is not looked at.
pathlib.Path("/var/lib/man-db/auto-update").unlink(missing_ok=True)


def clean():
    subprocess.run(["dpkg", "--purge", "mcpbox"], check=False, capture_output=True)
    for path in ("/var/lib/mcpbox", "/etc/mcpbox", "/run/mcpbox", "/run/systemd", "/etc/postgresql", FAKE,
                 "/tmp/repacked", *pathlib.Path("/etc/systemd/system").glob("mcpbox*")):
        shutil.rmtree(path, ignore_errors=True)
    for line in pathlib.Path("/etc/passwd").read_text().splitlines():
        if line.startswith("mcpbox-"):
            subprocess.run(["userdel", line.split(":")[0]], check=True)
    pathlib.Path("/run/mcpbox-upgrade").unlink(missing_ok=True)


def fresh():
    clean()
    (FAKE / "bin").mkdir(parents=True)
    (FAKE / "bin/systemctl").write_text(SYSTEMCTL)
    (FAKE / "bin/systemctl").chmod(0o755)
    return Machine()


@pytest.fixture
def machine():
    yield fresh()
    clean()


@pytest.fixture(scope="module")
def installed():
    """For tests that only look."""
    m = fresh()
    m.said = m.install()
    yield m
    clean()


@pytest.fixture
def newer(tmp_path):
    """newer(change) -> a package of a later version, in which change(tree) has
    been made."""
    def make(change=lambda tree: None):
        tree = tmp_path / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-R", DEB, tree], check=True)
        control = tree / "DEBIAN/control"
        control.write_text(re.sub(r"^(Version: .*)$", r"\1+later1", control.read_text(), flags=re.M))
        change(tree)
        os.chmod(tree, 0o755)
        out = tmp_path / "newer.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, out], check=True,
                       capture_output=True)
        return out
    return make
