"""One run at a time in a folder of builds. Two would build and remove each other's
files, and their tests would fail for it."""
import fcntl
import os


class Busy(Exception):
    """Another run has the folder; the words name it and the way out."""


def take(build):
    """Returns the lock of this folder as an open file. Jobs are forks and hold it too,
    so a run that was killed keeps the folder until its last job has ended. Raises Busy."""
    build.mkdir(parents=True, exist_ok=True)
    lock = open(build / ".run.lock", "a+", encoding="ascii")	# pylint: disable=consider-using-with
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip()
        lock.close()
        raise Busy(f"a run with pid {holder} uses {build}: wait for its end, or give this one "
                   "another folder with MCPBOX_TEST_BUILD=DIR") from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock
