"""Runs one job in processes of its own, and ends all of them.

A job is a supervisor and a worker. The worker runs the job's function. The
supervisor is the worker's parent and a child subreaper (PR_SET_CHILD_SUBREAPER,
prctl(2)): each process that the job leaves behind becomes the supervisor's child, is
waited for, and is killed when the worker has ended. So the times that wait4(2) tells
of the supervisor are those of everything that the job ran, daemons included.
"""
import ctypes
import os
import resource
import signal
import sys
import time
import traceback

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: Seconds that a job which is told to end has for its own cleaning up.
GRACE = 30

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option, value):
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def _kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _work(function, log):
    """The worker: runs the function, whose output goes to the log. Never returns."""
    status = 1
    try:
        os.setpgid(0, 0)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        # A handler, since what is ignored stays ignored in the programs that the job
        # starts: these end at SIGINT, and the worker sees how.
        signal.signal(signal.SIGINT, lambda *a: None)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
        status = 0 if function() else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _supervise(function, log):
    """Never returns; its exit status is the worker's."""
    told = []
    try:
        os.setsid()
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        worker = os.fork()
        if worker == 0:
            _work(function, log)

        def end(*_):
            if not told:
                told.append(time.monotonic())
                try:
                    os.killpg(worker, signal.SIGINT)
                except ProcessLookupError:
                    pass
                signal.alarm(GRACE)
            elif time.monotonic() - told[0] >= GRACE - 1:
                _kill(worker, signal.SIGKILL)

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGALRM, end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = None
        while status is None:
            pid, s = os.wait()
            if pid == worker:
                status = os.waitstatus_to_exitcode(s)
        signal.alarm(0)
        # The children of a killed process become ours: repeat until there are none.
        left = 0
        while children := _children(os.getpid()):
            for pid in children:
                left += 1
                _kill(pid, signal.SIGKILL)
            for _ in children:
                try:
                    os.wait()
                except ChildProcessError:
                    break
        if left:
            with open(log, "a", encoding="utf-8") as f:
                f.write(f"{left} processes were left behind and killed\n")
        os._exit(status if 0 <= status < 125 else 1)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


class Running:
    """A job that runs. function: called in the worker, true if all went well."""

    def __init__(self, function, log):
        self.log = log
        self.began = time.monotonic()
        self.ended = self.usage = self.status = None
        self.out_of_time = False
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _supervise(function, log)

    def stop(self, out_of_time=False):
        """Asks for the end; poll() tells when it came."""
        self.out_of_time = self.out_of_time or out_of_time
        _kill(self.pid, signal.SIGTERM)

    def poll(self):
        """True once it has ended."""
        if self.status is None:
            pid, status, self.usage = os.wait4(self.pid, os.WNOHANG)
            if pid == 0:
                return False
            self.ended = time.monotonic()
            self.status = os.waitstatus_to_exitcode(status)
        return True

    @property
    def seconds(self):
        return (self.ended or time.monotonic()) - self.began

    @property
    def cpu(self):
        """Processor seconds of all that the job ran; known at its end."""
        return self.usage.ru_utime + self.usage.ru_stime if self.usage else 0.0


def own_cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
