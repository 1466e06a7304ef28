"""Tests have the same names in each process that collects them.

tests/run gives the files of some folders to several workers, and pytest runs
none of a folder's tests if two workers collected different ones: one name with
a time in it, or made from a set, fails them all now and then. So each of those
folders is collected twice here, with other hashes and in another second.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from runner import jobs     # noqa: E402 # tests/run's table of jobs
PLANTED = """
import pytest, time
@pytest.mark.parametrize("when", [str(int(time.time()))])
def test_by_the_clock(when): pass
@pytest.mark.parametrize("one", {"a", "b", "c", "d", "e", "f", "g", "h"})
def test_of_a_set(one): pass
def test_same(): pass
"""


#: A collection takes a few seconds; a machine may be a hundred times slower.
HANG_S = 600


def collect(seed, folder):
    # What tests/run tells of caches and builds is looked at by no name.
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1",
           "MCPBOX_NODE_DIR": "/nonexistent", "MCPBOX_BUILD": "/nonexistent"}
    # Names don't depend on how asserts are compiled, which takes most of the time.
    p = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--assert=plain",
                        "--collect-only", folder], cwd=ROOT, env=env, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S, check=False)
    names = [line for line in p.stdout.splitlines() if "::" in line]
    if p.returncode != 0 or not names:
        sys.exit(f"{folder} could not be collected:\n{p.stdout[-3000:]}")
    return names


def differing(folder):
    """Names that only one of two collections has, or that change places."""
    a = collect(1, folder)
    began = int(time.time())
    while int(time.time()) == began:    # gzip's header, for one, counts whole seconds
        time.sleep(0.05)
    b = collect(2, folder)
    return [x for x, y in zip(a, b) if x != y] + a[len(b):] + b[len(a):]


def main():
    with tempfile.TemporaryDirectory() as d:
        (pathlib.Path(d) / "test_planted.py").write_text(PLANTED)
        found = " ".join(differing(d))
    if "by_the_clock" not in found or "of_a_set" not in found or "test_same" in found:
        sys.exit(f"the check can't fail: {found!r}")
    bad = 0
    for folder in jobs.several():
        for name in differing(folder):
            print(f"{folder}: not the same in each worker: {name[:200]}")
            bad += 1
    return 1 if bad else 0


sys.exit(main())
