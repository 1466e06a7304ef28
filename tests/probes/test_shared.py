"""What all runners have mapped and the host too: its files, read-only; and what
is counted by user over all namespaces (docs/decisions/0019)."""
import ctypes
import fcntl
import os
import struct

import pytest

from harness.patience import until
from probes import outside, runner_driver
from probes.conftest import PRELUDE, WRAP
from probes.pairs import ask, await_hold, let_go, value

#: A file of the host that every runner sees.
SHARED = ctypes.__file__
HOLD = '''
def main():
    out = attack()
    hold()
    return out
'''


class Control:
    """The same code in a process of this machine, as root; let_go() ends it."""

    def __init__(self, code, directory):
        self._held = directory / "held"
        self.pid = os.fork()
        if self.pid == 0:
            scope = {}
            exec(PRELUDE + code, scope)
            scope["MEET"] = str(directory)
            scope["main"]()
            os._exit(0)
        until(self._held.exists)

    def let_go(self):
        self._held.rmdir()
        os.waitpid(self.pid, 0)


# --- Locks on files that the host has too. ---

def _locked_outside():
    """Can root lock the shared file exclusively at this moment?"""
    with open(SHARED, "rb") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


FLOCK = '''
import fcntl
def attack():
    global held
    held = open(PATH, "rb")
    return attempt(fcntl.flock, held, fcntl.LOCK_EX)
'''


def test_flock_of_a_file_of_the_host(pool, tmp_path):
    """A lock needs no right to write. The control takes it in another
    process; the same code inside does not."""
    code = FLOCK.replace("PATH", repr(SHARED)) + HOLD
    control = Control(code, tmp_path)
    assert _locked_outside()
    control.let_go()
    assert not _locked_outside()
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + code + WRAP, {})
        await_hold(runner)
        assert not _locked_outside()
        let_go(runner)
        assert value(runner_driver.Call(runner, runner.result())) == "ENOSYS"
    finally:
        runner.close()


def test_flock_says_what_to_use(pool):
    """The way it names works: two processes, one lock, no lost update."""
    call = pool.call("import fcntl\ndef main():\n"
                     "    with open('/tmp/x', 'w') as f:\n"
                     "        fcntl.flock(f, fcntl.LOCK_EX)\n")
    assert call.kind == "run_error"
    assert "multiprocessing's locks" in call.text, call.text
    assert ask(pool, '''
import multiprocessing as m
def work(lock):
    for _ in range(200):
        with lock:
            with open("/tmp/n") as f:
                n = int(f.read())
            with open("/tmp/n", "w") as f:
                f.write(str(n + 1))
def main():
    with open("/tmp/n", "w") as f:
        f.write("0")
    context = m.get_context("fork")
    lock = context.Lock()
    made = [context.Process(target=work, args=(lock,)) for _ in range(4)]
    [p.start() for p in made]
    [p.join() for p in made]
    return int(open("/tmp/n").read())
''') == 800


def _locks_of(pid):
    """The host's list of locks, by pid."""
    with open("/proc/locks", encoding="ascii") as f:
        return [line for line in f if f" {pid} " in line]


LOCKS = '''
import fcntl, struct
def attack():
    """Locks ranges of a file of its own and of one of the host's."""
    global held
    held = [open("/tmp/locks-%d" % os.getpid(), "w+b"), open(PATH, "rb")]
    n = 0
    for f, kind in zip(held, (fcntl.F_WRLCK, fcntl.F_RDLCK)):
        for command in (fcntl.F_SETLK, fcntl.F_SETLKW, 37, 38):
            for i in range(100):
                if attempt(fcntl.fcntl, f, command, struct.pack(
                        "hhqqi4x", kind, 0, n * 2, 1, 0)) is None:
                    n += 1
    os.unlink(held[0].name)
    return n
'''


def test_ranges_of_files_cost_the_kernel_nothing(pool, tmp_path):
    """A record of a lock is kernel memory that nothing counts, and on files of
    the host it would be seen by others. Granted, and none is there."""
    code = LOCKS.replace("PATH", repr(SHARED)) + HOLD
    control = Control(code, tmp_path)
    seen = _locks_of(control.pid)
    control.let_go()
    assert len(seen) > 300      # the control: that is where they would show
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + code + WRAP, {})
        await_hold(runner)
        assert _locks_of(outside.host_pid(runner)) == []
        let_go(runner)
        assert value(runner_driver.Call(runner, runner.result())) == 800
    finally:
        runner.close()


def test_a_lock_of_the_host_is_not_seen(pool):
    """Nor does a runner learn who locks what: F_GETLK tells no pid."""
    with open(SHARED, "rb") as f:
        fcntl.fcntl(f, fcntl.F_SETLK, struct.pack(
            "hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
        got = ask(pool, '''
import fcntl, struct
def main(path: str):
    with open(path, "rb") as f:
        return struct.unpack("hhqqi4x", fcntl.fcntl(f, fcntl.F_GETLK,
            struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)))
''', {"path": SHARED})
    assert got[4] in (0, -1)


def test_sqlite_still_works(pool):
    """What stands on those locks, in one process and from two threads."""
    assert ask(pool, '''
import sqlite3, threading
def main():
    a = sqlite3.connect("/tmp/db", timeout=5)
    a.execute("pragma journal_mode=wal")
    a.execute("create table t(n)")
    a.commit()
    def work():
        b = sqlite3.connect("/tmp/db", timeout=5)
        for i in range(100):
            b.execute("insert into t values (?)", (i,))
            b.commit()
        b.close()
    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return [a.execute("select count(*), sum(n) from t").fetchone(),
            a.execute("pragma integrity_check").fetchone()]
''') == [[300, 14850], ["ok"]]


# --- What is counted by user, over all namespaces. ---

EATS = '''
import fcntl
def main():
    """As many pipes as there are descriptors, in several processes, until the
    kernel gives this user small ones."""
    for _ in range(6):
        if os.fork() == 0:
            break
    held = []
    try:
        while True:
            a, b = os.pipe()
            held.append((a, b))
            os.set_blocking(b, False)
            try:
                while True:
                    os.write(b, b"x" * 65536)
            except BlockingIOError:
                pass
    except OSError:
        pass
    if os.getpid() != 1:
        time.sleep(10 ** 6)
    size = 65536
    while size == 65536:
        for fd in held.pop():
            os.close(fd)
        held.append(os.pipe())
        size = fcntl.fcntl(held[-1][0], fcntl.F_GETPIPE_SZ)
    hold()
    return len(held)
'''


def test_one_s_pipes_do_not_shrink_the_other_s(pair):
    """Beyond fs.pipe-user-pages-soft a user's new pipes are small: each call
    is a user of its own."""
    pair.start(0, EATS, files=2000)
    pair.await_hold(0)
    pair.start(1, '''
import fcntl
def main():
    return [fcntl.fcntl(os.pipe()[0], fcntl.F_GETPIPE_SZ) for _ in range(50)]
''')
    assert set(pair.value(1)) == {65536}
    assert pair.let_go(0) > 100


@pytest.mark.parametrize("code", [
    "[select.epoll() for _ in range(200)]",
    "[socket.socketpair() for _ in range(100)]",
    "[os.eventfd(0) for _ in range(200)]",
    "[os.memfd_create('x') for _ in range(0)] + [os.pipe() for _ in "
    "range(100)]",
    "[threading.Thread(target=time.sleep, args=(10 ** 6,), daemon=True)"
    ".start() for _ in range(20)]",
    "[os.open('/tmp', os.O_RDONLY) for _ in range(200)]",
])
def test_one_uses_up_the_other_has_its_own(pair, code):
    body = ("import select, threading\ndef main():\n    global held\n"
            "    held = []\n    try:\n        while True:\n"
            f"            held.append({code})\n    except (OSError, "
            "RuntimeError):\n        pass\n    hold()\n"
            "    return len(held)\n")
    pair.start(0, body, files=4000)
    pair.await_hold(0)
    pair.start(1, "import select, threading\ndef main():\n"
                  f"    return len({code})\n")
    assert pair.value(1) > 0
    pair.let_go(0)
