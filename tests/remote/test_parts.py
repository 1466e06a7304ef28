"""The Worker's parts that need nothing of Cloudflare, by its own tests."""
import os
import re
import shutil
import subprocess

from harness.patience import patience
from harness.place import SRC, readable_directory
from remote.play import NODE, NODE_DIR


def test_parts_of_the_worker():
    with readable_directory() as d:
        there = shutil.copytree(os.path.join(SRC, "contrib/cloudflare"), d / "worker",
                                ignore=shutil.ignore_patterns("node_modules"))
        os.symlink(os.path.join(NODE_DIR, "node_modules"), there / "node_modules")
        r = subprocess.run([NODE, "--test", "--test-reporter=tap", "test/parts.test.ts"], cwd=there, text=True,
                           capture_output=True, timeout=patience(60), check=False)
    assert r.returncode == 0, r.stdout + r.stderr
    assert int(re.search(r"^# pass (\d+)$", r.stdout, re.M)[1]) >= 9, r.stdout
