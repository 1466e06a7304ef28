"""No other process can be seen, signalled, traced or read."""
import errno
import fcntl
import os
import pty
import socket
import subprocess
import termios
import time
import tty

import pytest

from harness.patience import patience, until
from probes import runner_driver
from probes.conftest import PRELUDE, WRAP, not_run


@pytest.fixture
def victim():
    """A process of everybody's: the weakest target there is."""
    p = subprocess.Popen(["/bin/sleep", "300"],
                         env={"CANARY": "victim-environment"})
    yield p
    p.kill()
    p.wait()


def test_only_itself_in_proc(sandbox):
    assert sandbox.inside(
        "def main(): return [p for p in os.listdir('/proc') if p.isdigit()]"
    ) == ["1"]


def test_is_pid_1_of_its_own_namespace(sandbox):
    assert sandbox.inside("def main(): return os.getpid()") == 1


def test_signals(sandbox, victim):
    code = '''
import signal
def main(pid: int):
    return attempt(os.kill, pid, 0)
'''
    outside, inside = sandbox.attack(code, pid=victim.pid)
    assert outside is None
    assert inside == "ESRCH"


def test_kill_all_reaches_nobody(sandbox, pool, victim):
    """kill(-1) as the call's uid: another running call must survive."""
    other = pool.fork()
    try:
        assert other.ready()[0] == "ready"
        sandbox.inside('''
def main():
    return attempt(os.kill, -1, 9)
''')
        time.sleep(0.1)
        assert victim.poll() is None
        assert not other.exited(0.1)
    finally:
        other.close()


@pytest.mark.parametrize("name,nr,args", [
    ("ptrace", 101, [0x4206, "PID", 0, 0]),
    ("process_vm_readv", 310, ["PID", 0, 0, 0, 0, 0]),
    ("process_vm_writev", 311, ["PID", 0, 0, 0, 0, 0]),
    ("kcmp", 312, ["PID", "PID", 0, 0, 0]),
    ("pidfd_getfd", 438, [0, 0, 0]),
    ("process_madvise", 440, [0, 0, 0, 0, 0]),
    ("prlimit64", 302, ["PID", 7, 0, 0]),
    ("migrate_pages", 256, ["PID", 0, 0, 0]),
    ("move_pages", 279, ["PID", 0, 0, 0, 0, 0]),
])
def test_calls_on_others(sandbox, victim, name, nr, args):
    code = '''
def main(nr: int, args: list):
    return syscall(nr, *args)
'''
    args = [victim.pid if a == "PID" else a for a in args]
    outside, inside = sandbox.attack(code, nr=nr, args=args)
    assert outside != -1, name      # reached: EPERM is the filter's word
    assert inside == -1, name


def test_memory_of_another_by_proc(sandbox, victim):
    code = '''
def main(pid: int):
    return [attempt(lambda p=p: open(f"/proc/{pid}/{p}", "rb").read(1))
            for p in ("environ", "maps", "cmdline", "status")]
'''
    outside, inside = sandbox.attack(code, pid=victim.pid)
    assert outside == [None] * 4
    assert inside == ["ENOENT"] * 4


def test_own_proc_is_closed(sandbox):
    """dumpable 0: not even its own memory file or environment by way of proc,
    and nothing that matters of pid 1 by a child of it."""
    code = '''
def main():
    own = [attempt(lambda p=p: open(f"/proc/self/{p}", "rb").read(1))
           for p in ("environ", "mem", "auxv", "pagemap", "stack")]
    r, w = os.pipe()
    parent = os.getpid()
    if os.fork() == 0:
        for p in ("maps", "mem", "environ", "syscall", "personality"):
            try:
                open(f"/proc/{parent}/{p}", "rb").close()
                os.write(w, b"+")
            except OSError:
                os.write(w, b"-")
        for p in ("fd", "map_files", "ns/user", "root", "cwd"):
            path = f"/proc/{parent}/{p}"
            f = os.readlink if p in ("ns/user", "root", "cwd") else os.listdir
            os.write(w, b"-" if attempt(f, path) else b"+")
        os._exit(0)
    os.wait()
    return own + [os.read(r, 100).decode()]
'''
    outside, inside = sandbox.attack(code)
    # address 0 of one's own memory answers EIO: the file could be opened
    assert outside[:3] == [None, "EIO", None] and outside[5] == "+" * 10
    assert set(inside[:5]) <= {"EACCES", "EPERM", "ENOENT"}, inside
    assert inside[5] == "-" * 10


def test_own_proc_cannot_be_written(sandbox):
    code = '''
def main():
    return [attempt(lambda p=p: open(f"/proc/self/{p}", "w").write("0"))
            for p in ("oom_score_adj", "uid_map", "gid_map", "setgroups",
                      "attr/current", "coredump_filter", "timerslack_ns", "autogroup")]
'''
    assert None not in sandbox.inside(code)


def test_environment(sandbox):
    got = sandbox.inside("def main(): return dict(os.environ)")
    assert got == {"HOME": "/tmp", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                   "TZ": "UTC", "TMPDIR": "/tmp", "SSL_CERT_DIR": "/etc/ssl/certs"}


def test_environment_of_the_zygote_is_wiped(sandbox):
    """A runner inherits the zygote's memory: what exec put on its stack must
    not be there. The driver starts it with CANARY_ENV=canary-env."""
    code = '''
import re
def main():
    # The stack is below the auxiliary vector, whose AT_EXECFN points at the
    # very end; walk back over what lies before it.
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    end = libc.getauxval(31)
    return b"canary-" in ctypes.string_at(end - 2048, 2048)
'''
    assert sandbox.inside(code) is False


def test_session_and_terminal(sandbox):
    code = '''
import fcntl, termios
def main():
    out = [os.getsid(0), os.getpgrp(), [os.isatty(fd) for fd in (0, 1, 2)]]
    r = []
    for path in ("/dev/tty", "/dev/console", "/dev/pts/0"):
        r.append(attempt(os.open, path, os.O_RDWR))
    return out + [r, attempt(fcntl.ioctl, 0, termios.TIOCSTI, b"x")]
'''
    sid, pgrp, ttys, opened, sti = sandbox.inside(code)
    assert (sid, pgrp, ttys) == (1, 1, [False] * 3)
    assert None not in opened
    assert sti == "EPERM"


SESSIONS = '''
import struct
def main():
    """Children and their children that ask for a session, by the C library and by
    number: each answer, and how many sessions there are but the first one's."""
    r, w = os.pipe()
    def ask():
        answers = [attempt(os.setsid), syscall(112)]
        os.write(w, struct.pack("???i", answers[0] is None, answers[0] == "EPERM",
                                answers[1] == -errno.EPERM, os.getsid(0)))
    for child in range(5):
        pid = os.fork()
        if pid == 0:
            ask()
            below = os.fork()
            if below == 0:
                ask()
                os._exit(0)
            os.waitpid(below, 0)
            os._exit(0)
        os.waitpid(pid, 0)
    got = list(struct.iter_unpack("???i", os.read(r, 4096)))
    return {"asked": len(got), "made": sum(g[0] for g in got),
            "EPERM": sum(g[1] and g[2] for g in got),
            "sessions": len({g[3] for g in got} - {os.getsid(0)})}
'''


def test_no_session_of_its_own(sandbox):
    """Each session has a share of the processors of its own (sched(7), autogroup):
    outside, each process makes one; a call has the one that it was born with."""
    outside, inside = sandbox.attack(SESSIONS)
    assert outside == {"asked": 10, "made": 10, "EPERM": 0, "sessions": 10}
    assert inside == {"asked": 10, "made": 0, "EPERM": 10, "sessions": 0}


SPLITS = '''
def main():
    for child in range(6):
        if os.fork() == 0:
            attempt(os.setsid)
            if child % 2 and os.fork():
                os._exit(0)
            attempt(os.setsid)
            time.sleep(600)
    time.sleep(600)
'''


def _sharing(uid):
    """Of the living processes of a uid: pid -> its group, policy and nice value."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
                status = f.read()
            if f"\nUid:\t{uid}\t" not in status or "\nState:\tZ" in status:
                continue
            with open(f"/proc/{pid}/autogroup", encoding="ascii") as f:
                found[int(pid)] = (f.read().strip(), os.sched_getscheduler(int(pid)),
                                   os.getpriority(os.PRIO_PROCESS, int(pid)))
        except OSError:
            continue
    return found


def test_a_call_is_one_scheduling_group(pool):
    """Two calls at once, each with children that try to leave: a group each, which is
    nobody else's, the ordinary policy, and the pool's nice value."""
    if not os.path.exists("/proc/self/autogroup"):
        not_run("this kernel has no scheduling group a session")
    groups = []
    runners = {uid: pool.fork(uid) for uid in (3001, 3002)}
    try:
        for uid, runner in runners.items():
            assert runner.ready()[0] == "ready"
            runner.execute(PRELUDE + SPLITS + WRAP, {})
            host = pool.base + runner_driver.RUNNER_UID + uid - 1
            until(lambda h=host: len(_sharing(h)) == 7)
            groups.append(set(_sharing(host).values()))
    finally:
        for runner in runners.values():
            runner.close()
    with open(f"/proc/{pool.init()}/autogroup", encoding="ascii") as f:
        pools = f.read().strip()
    assert [len(g) for g in groups] == [1, 1], groups
    (one,), (other,) = groups
    assert len({one[0], other[0], pools}) == 3
    assert one[1:] == other[1:] == (os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, pool.init()))


PUSH = '''
import array, ctypes, errno, os, socket
def main():
    """Pushes "x" into every terminal there is: what was opened, and for each
    descriptor the errno, with and without the request's upper half set."""
    libc = ctypes.CDLL(None, use_errno=True)
    out = {"opened": [], "pushed": []}
    s = socket.socket(fileno=os.dup(3))
    _, fds, _, _ = socket.recv_fds(s, 16, 4)
    out["given"] = len(fds)
    for path in ("/dev/tty", "/dev/console", "/dev/pts/0", "/dev/ptmx"):
        try:
            os.open(path, os.O_RDWR)
            out["opened"].append(path)
        except OSError:
            pass
    for fd in range(0, 32):
        for high in (0, 1 << 32):
            ctypes.set_errno(0)
            r = libc.syscall(ctypes.c_long(16), ctypes.c_long(fd),
                             ctypes.c_long(high | 0x5412), b"x")
            out["pushed"].append(0 if r == 0 else ctypes.get_errno())
    return out
'''


def _arrived(terminal):
    os.set_blocking(terminal, False)
    try:
        return os.read(terminal, 16)
    except BlockingIOError:
        return b""


def _push_outside(terminal):
    """Pushes a byte as root, which needs no legacy_tiocsti. None, or by name
    why it can't."""
    try:
        fcntl.ioctl(terminal, termios.TIOCSTI, b"c")
    except OSError as e:
        with open("/proc/sys/dev/tty/legacy_tiocsti", encoding="ascii") as f:
            return (f"{errno.errorcode[e.errno]}, dev.tty.legacy_tiocsti="
                    f"{f.read().strip()}")
    return None


def test_tiocsti_on_a_real_terminal():
    """The pool is started from a terminal: it is the zygote's controlling one
    and its standard streams. And a runner is even handed a descriptor of it.
    Nothing arrives there from inside; from outside it does."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    pool = runner_driver.Pool(terminal=slave)
    runner = None
    try:
        why_not = _push_outside(slave)
        if why_not is None:
            assert _arrived(slave) == b"c"
        else:
            assert why_not == "EIO, dev.tty.legacy_tiocsti=0"
        assert termios.TIOCSTI == 0x5412
        runner = pool.fork()
        assert runner.ready()[0] == "ready"
        runner.execute(PUSH, {})
        socket.send_fds(runner.channel, [b"terminal"], [slave])
        got = runner_driver.Call(runner, runner.result()).value
        assert got["given"] == 1 and got["opened"] == []
        assert set(got["pushed"]) == {errno.EPERM}
        assert _arrived(slave) == b""
    finally:
        if runner is not None:
            runner.close()
        pool.close()
        os.close(master)
        os.close(slave)


def test_inherited_descriptors(pool):
    """Canaries open in the zygote's parent and its socket to pool-init: no
    runner has a socket whose peer is not its own channel or its own pair."""
    code = '''
import os, socket, stat
def main():
    found = []
    for fd in range(64):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode):
            s = socket.socket(fileno=os.dup(fd))
            found.append([fd, s.type])
            s.close()
        elif not stat.S_ISFIFO(mode) and not stat.S_ISCHR(mode):
            found.append([fd, oct(mode)])
    return found
'''
    found = pool.call(code).value
    seqpacket = [fd for fd, kind in found if kind == 5]
    assert seqpacket == [3], found
    # the event loop's pair (stream) and its epoll and event descriptors
    assert len([1 for _, kind in found if kind == 1]) == 2, found


def test_orphans_die_with_the_call(pool):
    """A grandchild in its own group that keeps the output pipe open: the
    call ends at once, and the process with it."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute('''
import os, time
def main():
    if os.fork() == 0:
        os.setpgid(0, 0)
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    return "done"
''', {})
        assert runner.result()[0] == "run_result"
        assert runner.exited(patience(20))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/status", encoding="ascii",
                          errors="replace") as f:
                    status = f.read()
            except OSError:
                continue
            assert f"Uid:\t{pool.base + 1024 + 30}\t" not in status
    finally:
        runner.close()
