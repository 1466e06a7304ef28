"""The same bytes again: another path, time, user, umask, locale, time zone,
number of jobs, and another repository with the same files."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from harness.patience import patience

SRC = pathlib.Path(__file__).resolve().parents[2]
OTHER = 65533  # no account has it


@pytest.fixture(scope="module")
def again(package):
    top = pathlib.Path(tempfile.mkdtemp(prefix="another-place.", dir="/var/tmp"))
    try:
        top.chmod(0o755)
        tree, out = top / "deeper/than/before/checkout", top / "out"
        for d in (tree, out, top / "tmp"):
            d.mkdir(parents=True)
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                                "--exclude-standard", "--deduplicate"], cwd=SRC, check=True,
                               capture_output=True, text=True).stdout.split("\0")[:-1]
        for name in names:
            if (SRC / name).exists():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(SRC / name, tree / name, follow_symlinks=False)
        subprocess.run(["chown", "-R", f"{OTHER}:{OTHER}", top], check=True)
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/nonexistent", "LC_ALL": "C",
               "LANGUAGE": "de", "TZ": "Pacific/Kiritimati", "TMPDIR": str(top / "tmp"),
               "USER": "other", "DEB_BUILD_OPTIONS": "parallel=1",
               "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z"}
        got = subprocess.run(
            "umask 077; git init -q . && git add -A && git -c user.name=o -c user.email=o@o"
            f" commit -q -m o && exec contrib/debian/build --out {os.path.relpath(out, tree)}",
            shell=True, cwd=tree, env=env, check=False, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, user=OTHER, group=OTHER, extra_groups=[], timeout=patience(900))
        assert got.returncode == 0, got.stderr[-4000:]
        yield out
    finally:
        shutil.rmtree(top)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["mcpbox", "mcpbox-dbgsym"])
def test_same_bytes(package, again, name):
    (one,) = package.where.glob(f"{name}_*.deb")
    two = again / one.name
    if digest(one) != digest(two):
        differ = subprocess.run(
            "for d in 1 2; do mkdir $d; done; dpkg-deb -R \"$A\" 1/x; dpkg-deb -R \"$B\" 2/x;"
            " dpkg-deb -c \"$A\" >1/list; dpkg-deb -c \"$B\" >2/list; diff -r 1 2",
            shell=True, cwd=again, env={**os.environ, "A": str(one), "B": str(two)}, check=False,
            capture_output=True, text=True).stdout
        pytest.fail(differ[:4000])
