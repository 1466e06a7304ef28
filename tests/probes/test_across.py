"""Two runners of one pool, and what one leaves for the next."""
import ctypes
import fcntl
import os
import struct
import time

import pytest

from harness.instance import processes
from probes import outside, runner_driver
from probes.conftest import PRELUDE, WRAP

#: A file of the host that every runner sees.
SHARED = ctypes.__file__
HOLD = '''
import time
def main(seconds: float = 1.0):
    out = attack()
    time.sleep(seconds)
    return out
'''


def value(call):
    assert call.kind == "run_result", (call.kind, call.body)
    return call.value["value"]


def ask(pool, code, arguments=None, **more):
    """What main returned in a runner of its own."""
    return value(pool.call(PRELUDE + code + WRAP, arguments or {}, **more))


class Pair:
    """Two runners at the same time, forked one behind the other."""

    def __init__(self, pool, **profile):
        self.runners = [pool.fork(**profile) for _ in range(2)]
        for r in self.runners:
            assert r.ready()[0] == "ready"

    def start(self, which, code, arguments=None, **limits):
        self.runners[which].execute(PRELUDE + code + WRAP, arguments or {},
                                    **limits)

    def value(self, which, timeout=20):
        r = self.runners[which]
        return value(runner_driver.Call(r, r.result(timeout)))

    def close(self):
        for r in self.runners:
            r.close()


@pytest.fixture
def pair(pool):
    p = Pair(pool)
    yield p
    p.close()


@pytest.fixture
def twins(pool):
    """The broker's worst mistake: two running calls with one uid."""
    p = Pair(pool, uid=1234)
    yield p
    p.close()


def pids(pool, uid):
    """Host pids of everything that has this uid of the pool."""
    host = pool.base + runner_driver.RUNNER_UID + uid - 1
    return [pid for pid, (_, state, owner, _) in processes().items()
            if owner == host and state != "Z"]


# --- What a call leaves behind. ---

def canaries():
    return {w: ("CANARY" + w + os.urandom(8).hex()).encode()
            for w in ("code", "argument", "secret", "printed", "result",
                      "file", "heap")}


KEEPS = '''
import mcpbox, time
def main(a: str, parts: list):
    # made here, so that the code does not hold them
    printed, result, file, heap = ["".join(p) for p in parts]
    print(printed)
    open("/tmp/" + file, "w").write(file)
    global kept
    kept = [heap * 50, mcpbox.secrets["T"]]
    b = "%s"
    time.sleep(0.7)
    return result
'''


def _run_with(pool, c, runner):
    parts = [[c[w].decode()[:10], c[w].decode()[10:]]
             for w in ("printed", "result", "file", "heap")]
    runner.execute(KEEPS % c["code"].decode(),
                   {"a": c["argument"].decode(), "parts": parts},
                   secrets=[("T", c["secret"].decode())])


def test_memory_of_a_call_is_nobody_else_s(pool):
    """Searched for in the runner while it runs, where all of it is; then in
    the zygote, in a runner that waited meanwhile, and in one forked after."""
    c = canaries()
    early, runner = pool.fork(), pool.fork()
    late = None
    try:
        assert early.ready()[0] == "ready" and runner.ready()[0] == "ready"
        _run_with(pool, c, runner)
        time.sleep(0.4)
        busy = outside.host_pid(runner)
        found = outside.memory_has(busy, c.values())
        assert found == set(c.values())
        assert runner.result()[0] == "run_result"
        late = pool.fork()
        assert late.ready()[0] == "ready"
        init = pool.init()
        with open(f"/proc/{init}/task/{init}/children",
                  encoding="ascii") as f:
            children = [int(p) for p in f.read().split()]
        assert len(children) >= 3   # zygote, early, late
        for pid in children:
            if pid != busy:
                assert not outside.memory_has(pid, c.values()), pid
    finally:
        early.close()
        runner.close()
        if late is not None:
            late.close()


SEARCH = '''
def places(data, w):
    at = data.find(w)
    while at >= 0:
        yield at
        at = data.find(w, at + 1)
def main(coded: list):
    """Which of these texts, told backwards so that asking does not find
    itself, are anywhere in this process?"""
    wanted = [c.encode()[::-1] for c in coded]
    out = set()
    own = [id(w) for w in wanted]
    for line in open("/proc/self/maps"):
        area, rights = line.split()[:2]
        if "r" not in rights or "[v" in line:
            continue
        low, high = (int(x, 16) for x in area.split("-"))
        for at in range(low, high, 1 << 16):
            # pieces that overlap: none is missed at an edge
            data = ctypes.string_at(at, min((1 << 16) + 256, high - at))
            for i, w in enumerate(wanted):
                out |= {i for p in places(data, w)
                        if not any(o <= at + p < o + 200 for o in own)}
    return sorted(out)
'''


def test_searching_one_s_own_memory(pool):
    """From inside, by a tool that has the next runner of the same zygote."""
    c = canaries()
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        _run_with(pool, c, runner)
        assert runner.result()[0] == "run_result"
    finally:
        runner.close()
    coded = [w.decode()[::-1] for w in c.values()]
    assert ask(pool, SEARCH, {"coded": coded}) == []
    # the control: what this very call holds is found
    planted = SEARCH.replace(
        "    out = set()\n", "    out = set()\n    kept = [ctypes."
        "create_string_buffer(w) for w in wanted]\n", 1)
    assert ask(pool, planted, {"coded": coded}) == list(
        range(len(coded)))


LEAVES = '''
import signal, threading
def main():
    """Leaves all that a process can leave."""
    out = {}
    out["keyring"] = syscall(250, 1, 0, 0, 0, 0)
    out["key"] = syscall(248, b"user", b"canary", b"x", 1, -3)
    out["shm"] = syscall(29, 0x6d637062, 4096, 0o1666)
    out["sem"] = syscall(64, 0x6d637062, 1, 0o1666)
    out["msg"] = syscall(68, 0x6d637062, 0o1666)
    out["mq"] = syscall(240, b"canary", 0o102, 0o666, 0)
    out["name"] = attempt(lambda: socket.socket(socket.AF_UNIX).bind(
        "\\0canary"))
    open("/tmp/canary", "w").write("x" * 4096)
    for _ in range(5):
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.setsid()
            while True:
                signal.pause()
    return out
'''
FINDS = '''
def main():
    out = {}
    out["keyring"] = syscall(250, 10, -3, b"user", b"canary", 0)
    out["shm"] = syscall(29, 0x6d637062, 0, 0)
    out["sem"] = syscall(64, 0x6d637062, 0, 0)
    out["msg"] = syscall(68, 0x6d637062, 0)
    out["mq"] = syscall(240, b"canary", 2, 0, 0)
    out["tmp"] = os.listdir("/tmp")
    out["pids"] = [p for p in os.listdir("/proc") if p.isdigit()]
    out["unix"] = open("/proc/self/net/unix").read().count("canary")
    n = 0
    while True:
        try:
            if os.fork() == 0:
                import time
                time.sleep(30)
        except OSError:
            break
        n += 1
    out["processes"] = n
    return out
'''


def test_uid_used_again_at_once(pool):
    """Keyrings, IPC objects, files, processes and what is counted by uid: the
    next call with the same uid, the moment the first one is gone, finds as
    little as one with a fresh uid."""
    left = ask(pool, LEAVES, uid=77)
    assert {k: v for k, v in left.items() if k not in ("name",)} == dict.\
        fromkeys(("keyring", "key", "shm", "sem", "msg", "mq"), -1)
    assert left["name"] == "EPERM"
    again = ask(pool, FINDS, uid=77, processes=8)
    fresh = ask(pool, FINDS, uid=3003, processes=8)
    assert again == fresh
    assert again["tmp"] == [] and again["pids"] == ["1"]
    assert again["unix"] == 0 and again["processes"] == 6


def test_uid_used_again_while_its_processes_die(pool):
    """Ten times: SIGKILL for a runner with many children, and at once another
    with its uid, whose count of processes begins anew."""
    bomb = '''
import time
def main():
    try:
        while os.fork():
            pass
    except OSError:
        pass
    time.sleep(60)
'''
    for _ in range(10):
        runner = pool.fork(66)
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + bomb, {}, processes=30)
        end = time.monotonic() + 5
        while len(pids(pool, 66)) < 10 and time.monotonic() < end:
            time.sleep(0.01)
        runner.close()
        assert runner_exited(pool, 66)
        assert ask(pool, FINDS, uid=66, processes=8)["processes"] == 6


def runner_exited(pool, uid):
    """SIGKILL takes the whole namespace before the runner counts as ended."""
    end = time.monotonic() + 2
    while pids(pool, uid) and time.monotonic() < end:
        time.sleep(0.005)
    return not pids(pool, uid)


# --- At the same time. ---

@pytest.mark.parametrize("two", ["pair", "twins"])
def test_signals_do_not_cross(request, two):
    """Every pid and group there could be, each signal that kills or stops;
    with one uid for both it is the pid namespace alone that holds."""
    two = request.getfixturevalue(two)
    two.start(1, "import time\ndef main():\n    time.sleep(2)\n"
                 "    return 'alive'\n")
    two.start(0, '''
import signal
def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hit = []
    for pid in [-1, 0] + list(range(2, 600)) + [-n for n in range(2, 600)]:
        for sig in (signal.SIGCONT, signal.SIGTERM, signal.SIGSTOP,
                    signal.SIGKILL):
            if sig == signal.SIGKILL and pid in (-1, 0):
                continue
            # 2 is a thread of this process: not a process of its own
            if attempt(os.kill, pid, sig) is None and pid not in (-1, 0, 2):
                hit.append(pid)
    return hit
''')
    assert two.value(0) == []
    assert two.value(1) == "alive"


@pytest.mark.parametrize("two", ["pair", "twins"])
def test_proc_does_not_show_the_other(request, two):
    two = request.getfixturevalue(two)
    two.start(1, "import time\ndef main():\n    time.sleep(1)\n")
    two.start(0, '''
def main():
    found = [p for p in os.listdir("/proc") if p.isdigit()]
    opened = []
    for pid in range(2, 2000):
        for f in ("status", "environ", "maps", "mem", "cmdline", "root",
                  "cwd", "fd", "ns/user"):
            # the reader's thread has a directory of its own, unlisted
            if pid != 2 and os.path.lexists(f"/proc/{pid}/{f}"):
                opened.append(pid)
    return [found, opened]
''')
    assert two.value(0) == [["1"], []]


def test_twins_are_not_traced_or_read(twins):
    twins.start(1, "import time\ndef main():\n    time.sleep(1)\n")
    time.sleep(0.1)
    other = outside.host_pid(twins.runners[1])
    twins.start(0, '''
def main(pid: int):
    out = []
    for p in (pid, 1, 2, 3):
        out += [syscall(101, 16, p, 0, 0), syscall(310, p, 0, 0, 0, 0, 0),
                syscall(312, p, 1, 0, 0, 0)]
    return out + [attempt(os.pidfd_open, pid)]
''', {"pid": other})
    got = twins.value(0)
    assert set(got[:-1]) == {-1} and got[-1] in ("ESRCH", "EINVAL")


def test_tmp_of_the_other_by_size(pair):
    """Neither names nor room: one fills its /tmp, the other's free space and
    number of files stay."""
    measure = '''
import time
def main():
    out = []
    for _ in range(2):
        s = os.statvfs("/tmp")
        out.append([s.f_bfree, s.f_ffree])
        time.sleep(0.7)
    return out
'''
    pair.start(1, measure)
    time.sleep(0.2)
    pair.start(0, '''
def main():
    for i in range(500):
        open("/tmp/%d" % i, "w").write("x" * 60000)
    s = os.statvfs("/tmp")
    return [s.f_bfree, s.f_ffree]
''')
    before, after = pair.value(1)
    assert before == after
    assert pair.value(0) != before


def test_inherited_memory_is_a_copy(pool, pair):
    """Both are forks of one zygote, so an address means the same place in
    both. What one writes there the other does not see, nor does the zygote,
    nor one forked later."""
    write = '''
import time
def main():
    place = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_UTF8Mode")
    old, place.value = place.value, 0x5ca1ab1e
    time.sleep(0.6)
    return [ctypes.addressof(place), old]
'''
    read = '''
import time
def main():
    time.sleep(0.3)
    place = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_UTF8Mode")
    return [ctypes.addressof(place), place.value]
'''
    pair.start(0, write)
    pair.start(1, read)
    (address, old), (address2, seen) = pair.value(0), pair.value(1)
    assert address == address2      # the control: the same place
    assert seen == old != 0x5ca1ab1e
    assert ask(pool, read) == [address, old]


def test_futex_in_inherited_memory(pair):
    """One sleeps on a word that both inherited and that it has written, the
    other wakes all sleepers at that address: nobody. By files that both have
    mapped two willing runners can wake each other, see sandboxd/DESIGN.md."""
    word = '''
    place = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_UTF8Mode")
    place.value = 7
    at = ctypes.addressof(place)
'''
    pair.start(0, "def main():" + word + '''
    ts = (ctypes.c_long * 2)(1, 0)
    return syscall(202, at, 0, 7, ts, 0, 0)
''')
    time.sleep(0.3)
    pair.start(1, "def main():" + word + '''
    return [syscall(202, at, 1, 1000, 0, 0, 0),
            syscall(202, at, 129, 1000, 0, 0, 0)]
''')
    assert pair.value(1) == [0, 0]
    assert pair.value(0) == -110    # its own time ran out


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


def test_flock_of_a_file_of_the_host(pool):
    """A lock needs no right to write. The control takes it in another
    process; the same code inside does not."""
    code = FLOCK.replace("PATH", repr(SHARED)) + HOLD
    pid = os.fork()
    if pid == 0:
        scope = {}
        exec(PRELUDE + code, scope)
        scope["main"](0.6)
        os._exit(0)
    time.sleep(0.3)
    assert _locked_outside()
    os.waitpid(pid, 0)
    assert not _locked_outside()
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + code + WRAP, {"seconds": 0.6})
        time.sleep(0.3)
        assert not _locked_outside()
        assert value(runner_driver.Call(runner, runner.result())) == "ENOSYS"
    finally:
        runner.close()


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


def test_ranges_of_files_cost_the_kernel_nothing(pool):
    """A record of a lock is kernel memory that nothing counts, and on files of
    the host it would be seen by others. Granted, and none is there."""
    code = LOCKS.replace("PATH", repr(SHARED)) + HOLD
    pid = os.fork()
    if pid == 0:
        scope = {}
        exec(PRELUDE + code, scope)
        scope["main"](0.8)
        os._exit(0)
    time.sleep(0.5)
    seen = _locks_of(pid)
    os.waitpid(pid, 0)
    assert len(seen) > 300      # the control: that is where they would show
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + code + WRAP, {"seconds": 0.6})
        time.sleep(0.4)
        assert _locks_of(outside.host_pid(runner)) == []
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
import time
def main():
    """As many of each as there are descriptors, in several processes."""
    import signal
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
        time.sleep(30)
    time.sleep(1.5)
    return len(held)
'''


def test_one_s_pipes_do_not_shrink_the_other_s(pair):
    """Beyond fs.pipe-user-pages-soft a user's new pipes are small: each call
    is a user of its own."""
    pair.start(0, EATS, files=2000)
    time.sleep(0.8)
    pair.start(1, '''
import fcntl
def main():
    return [fcntl.fcntl(os.pipe()[0], fcntl.F_GETPIPE_SZ) for _ in range(50)]
''')
    assert set(pair.value(1)) == {65536}
    assert pair.value(0) > 100


@pytest.mark.parametrize("code", [
    "[select.epoll() for _ in range(200)]",
    "[socket.socketpair() for _ in range(100)]",
    "[os.eventfd(0) for _ in range(200)]",
    "[os.memfd_create('x') for _ in range(0)] + [os.pipe() for _ in "
    "range(100)]",
    "[threading.Thread(target=time.sleep, args=(1.5,)).start() for _ in "
    "range(20)]",
    "[os.open('/tmp', os.O_RDONLY) for _ in range(200)]",
])
def test_one_uses_up_the_other_has_its_own(pair, code):
    body = ("import select, threading, time\ndef main():\n    global held\n"
            "    held = []\n    try:\n        while True:\n"
            f"            held.append({code})\n    except (OSError, "
            "RuntimeError):\n        pass\n    time.sleep(1.2)\n"
            "    return len(held)\n")
    pair.start(0, body, files=4000)
    time.sleep(0.6)
    pair.start(1, "import select, threading, time\ndef main():\n"
                  f"    return len({code})\n")
    assert pair.value(1) > 0
    pair.value(0)


# --- The same numbers twice. ---

def test_hash_of_objects_and_names(pair):
    """Two forks of one zygote have one seed for str (it can't change in a
    running interpreter); what is drawn per call differs all the same."""
    code = '''
import random, secrets, tempfile, uuid
def main():
    r = random.Random()
    return [r.random(), random.random(), secrets.token_hex(8),
            str(uuid.uuid4()), tempfile.mkdtemp(), os.urandom(8).hex(),
            random.SystemRandom().random(), os.getrandom(8).hex()]
'''
    pair.start(0, code)
    pair.start(1, code)
    assert not set(pair.value(0)) & set(pair.value(1))
