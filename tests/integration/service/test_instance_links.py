"""contrib/instance writes as root into folders of other users, who may put links there."""
import os
import pathlib
import subprocess

import pytest

from harness.instance import TOOL, take_block
from harness.place import BUILD


@pytest.fixture
def state():
    base, lock = take_block()
    d = pathlib.Path("/tmp", f"mcpl{os.getpid()}")
    d.mkdir(mode=0o711)
    yield base, d / "s"
    subprocess.run([TOOL, "purge", d / "s"], check=True, capture_output=True)
    d.rmdir()
    lock.close()


def create(base, state):
    return subprocess.run([TOOL, "create", state, "--build", BUILD, "--users", str(base)], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL)


def test_root_follows_no_link_of_a_log_s_user(state, tmp_path):
    base, there = state
    r = create(base, there)
    assert r.returncode == 0, r.stderr
    canary, config = tmp_path / "canary", there / "log/admind/config"
    canary.write_text("of root")
    config.unlink()
    config.symlink_to(canary)
    assert config.read_text() == "of root"     # whoever follows the link is at the canary
    r = create(base, there)
    assert r.returncode == 1 and f"{config} is a symbolic link" in r.stderr and "remove it" in r.stderr
    assert "Traceback" not in r.stderr and canary.read_text() == "of root"
    config.unlink()
    assert create(base, there).returncode == 0
