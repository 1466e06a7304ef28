"""Jobs as processes: what they leave, what they cost, how they are ended."""
import os
import subprocess
import sys
import time

from harness.patience import until
from harness.pg import lives
from runner.execute import Running


def ended(running):
    until(running.poll, step=0.01, say=lambda: "the job does not end")
    return running


def appears(path):
    return until(lambda: path.exists() and path.read_text(), step=0.01, say=lambda: f"{path} does not appear")


def test_status_and_output(tmp_path):
    def job():
        print("said", flush=True)
        subprocess.run(["sh", "-c", "echo from a child; echo from it >&2"], check=True)
        return True
    r = ended(Running(job, tmp_path / "log"))
    assert r.status == 0
    assert (tmp_path / "log").read_text() == "said\nfrom a child\nfrom it\n"
    assert ended(Running(lambda: False, tmp_path / "log2")).status == 1


def test_an_exception_is_in_the_log(tmp_path):
    r = ended(Running(lambda: 1 // 0, tmp_path / "log"))
    assert r.status == 1 and "ZeroDivisionError" in (tmp_path / "log").read_text()


def test_daemons_that_are_left_behind_are_killed(tmp_path):
    """In sessions of their own, and orphans of a process that has ended."""
    pid = tmp_path / "pid"

    def job():
        subprocess.run(["sh", "-c", f"setsid sh -c 'echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 1000' &"],
                       check=True)
        appears(pid)
        return True
    r = ended(Running(job, tmp_path / "log"))
    assert r.status == 0
    assert not lives(int(pid.read_text()))
    assert "1 processes were left behind and killed" in (tmp_path / "log").read_text()


def test_processor_time_of_daemons_counts(tmp_path):
    """An orphan in another session burns 0.3 s of processor time and ends."""
    burn = "import time\nwhile time.process_time() < 0.3: pass\n"

    def job():
        subprocess.run(["sh", "-c", f"setsid {sys.executable} -c '{burn}' & echo $! >{tmp_path}/pid"], check=True)
        while lives(int((tmp_path / "pid").read_text())):
            time.sleep(0.01)
        return True
    assert ended(Running(job, tmp_path / "log")).cpu >= 0.3


def test_who_is_told_to_end_cleans_up(tmp_path):
    """SIGINT, as by a terminal: pytest's fixtures are torn down. A handler that is
    installed in the job does not make its programs deaf."""
    code = ("import pathlib, time\n"
            f"p = pathlib.Path({str(tmp_path)!r})\n"
            "try:\n"
            "    (p / 'up').write_text('yes')\n"
            "    time.sleep(1000)\n"
            "finally:\n"
            "    (p / 'cleaned').write_text('yes')\n")

    def job():
        return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    r = Running(job, tmp_path / "log")
    appears(tmp_path / "up")
    r.stop(out_of_time=True)
    ended(r)
    assert (tmp_path / "cleaned").exists() and r.out_of_time and r.status == 1


def test_the_end_of_the_runner_is_the_end_of_its_jobs(tmp_path):
    """Killed, it can't say anything: the kernel tells its jobs (PR_SET_PDEATHSIG)."""
    up = tmp_path / "up"
    code = ("import subprocess, sys, time\n"
            "from runner.execute import Running\n"
            "def job():\n"
            f"    subprocess.run(['sh', '-c', 'echo $$ >{up}; exec sleep 1000'])\n"
            f"Running(job, {str(tmp_path / 'log')!r})\n"
            "time.sleep(1000)\n")
    p = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))})
    pid = int(appears(up))
    p.kill()
    p.wait()
    until(lambda: not lives(pid), step=0.01)
