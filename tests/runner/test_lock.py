"""Two runs in one folder of builds."""
import subprocess
import sys

import pytest

from runner import lock


def test_a_second_run_is_refused_and_told_of_the_first(tmp_path):
    held = lock.take(tmp_path / "build")
    with pytest.raises(lock.Busy) as e:
        lock.take(tmp_path / "build")
    assert f"pid {lock.os.getpid()} uses {tmp_path}/build" in str(e.value)
    assert "MCPBOX_TEST_BUILD" in str(e.value)
    lock.take(tmp_path / "other").close()
    held.close()
    lock.take(tmp_path / "build").close()


def test_a_run_that_ended_leaves_no_lock(tmp_path):
    code = f"import pathlib; from runner import lock; f = lock.take(pathlib.Path({str(tmp_path)!r})); import os; os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    lock.take(tmp_path).close()


def test_a_job_of_a_killed_run_keeps_the_folder(tmp_path):
    """A job that still runs writes to the folder."""
    code = ("import os, pathlib, sys; from runner import lock\n"
            f"f = lock.take(pathlib.Path({str(tmp_path)!r}))\n"
            "if os.fork() == 0:\n    print('up', flush=True); sys.stdin.read(); os._exit(0)\n"
            "os._exit(9)\n")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"up\n" and p.wait() == 9
        with pytest.raises(lock.Busy):
            lock.take(tmp_path)
        p.stdin.close()
        p.stdout.read()	# ends with the job
    lock.take(tmp_path).close()
