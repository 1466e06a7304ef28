"""Two runners of one pool, and what one leaves for the next."""
import glob
import os
import re
import signal

import pytest

from harness.instance import processes
from harness.patience import until
from probes import ipcframes, outside, runner_driver
from probes.conftest import PRELUDE
from probes.pairs import ask


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
    open("/tmp/" + file, "w").write(file)
    global kept
    kept = [heap * 50, mcpbox.secrets["T"]]
    b = "%s"
    print(printed)
    time.sleep(3)
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
        busy = outside.host_pid(runner)
        kind, fields = ipcframes.receive(runner.channel)    # what it does last: all is there
        assert kind == "stdout"
        runner.stdout += fields["data"]
        os.kill(busy, signal.SIGSTOP)
        found = outside.memory_has(busy, c.values())
        os.kill(busy, signal.SIGCONT)
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
            os.setpgid(0, 0)
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
        until(lambda: len(pids(pool, 66)) >= 10)
        runner.close()
        assert runner_exited(pool, 66)
        assert ask(pool, FINDS, uid=66, processes=8)["processes"] == 6


def runner_exited(pool, uid):
    """SIGKILL takes the whole namespace before the runner counts as ended."""
    until(lambda: not pids(pool, uid))
    return True


# --- At the same time. ---

@pytest.mark.parametrize("two", ["pair", "twins"])
def test_signals_do_not_cross(request, two):
    """Every pid and group there could be, each signal that kills or stops;
    with one uid for both it is the pid namespace alone that holds."""
    two = request.getfixturevalue(two)
    two.start(1, "def main():\n    hold()\n    return 'alive'\n")
    two.await_hold(1)
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
    assert two.let_go(1) == "alive"


@pytest.mark.parametrize("two", ["pair", "twins"])
def test_proc_does_not_show_the_other(request, two):
    two = request.getfixturevalue(two)
    two.start(1, "def main():\n    hold()\n")
    two.await_hold(1)
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
    two.let_go(1)


def test_twins_are_not_traced_or_read(twins):
    twins.start(1, "def main():\n    hold()\n")
    twins.await_hold(1)
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
    twins.let_go(1)


def test_tmp_of_the_other_by_size(pair):
    """Neither names nor room: one fills its /tmp, the other's free space and
    number of files stay."""
    measure = '''
def free():
    s = os.statvfs("/tmp")
    return [s.f_bfree, s.f_ffree]
def main():
    before = free()
    hold()
    return [before, free()]
'''
    pair.start(1, measure)
    pair.await_hold(1)
    pair.start(0, '''
def main():
    for i in range(500):
        open("/tmp/%d" % i, "w").write("x" * 60000)
    s = os.statvfs("/tmp")
    return [s.f_bfree, s.f_ffree]
''')
    full = pair.value(0)
    before, after = pair.let_go(1)
    assert before == after != full


def test_inherited_memory_is_a_copy(pool, pair):
    """Both are forks of one zygote, so an address means the same place in
    both. What one writes there the other does not see, nor does the zygote,
    nor one forked later."""
    write = '''
def main():
    place = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_UTF8Mode")
    old, place.value = place.value, 0x5ca1ab1e
    hold()
    return [ctypes.addressof(place), old]
'''
    read = '''
def main():
    place = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_UTF8Mode")
    return [ctypes.addressof(place), place.value]
'''
    pair.start(0, write)
    pair.await_hold(0)
    pair.start(1, read)
    address2, seen = pair.value(1)
    address, old = pair.let_go(0)
    assert address == address2      # the control: the same place
    assert seen == old != 0x5ca1ab1e
    assert ask(pool, read) == [address, old]


def calls(runner):
    """The system call that each thread of a runner is in, with its arguments (proc(5))."""
    return [read_text(p) for p in glob.glob(f"/proc/{outside.host_pid(runner)}/task/*/syscall")]


def read_text(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def test_futex_in_inherited_memory(pair):
    """A thread of one sleeps on a word that both inherited and that it has written,
    the other wakes all sleepers at that address: nobody. Its own process wakes it
    after, the control. By files that both have
    mapped two willing runners can wake each other, see decision 0019."""
    word = '''
    place = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_UTF8Mode")
    place.value = 7
    at = ctypes.addressof(place)
'''
    pair.start(0, "import threading\ndef main():" + word + '''
    woke = []
    t = threading.Thread(target=lambda: woke.append(syscall(202, at, 0, 7, 0, 0, 0)))
    t.start()
    hold()
    woken = syscall(202, at, 1, 1000, 0, 0, 0)
    t.join()
    return [woken, woke]
''')
    pair.await_hold(0)
    # 202: futex; 0: FUTEX_WAIT; 7: the value that it waits at.
    until(lambda: any(re.match(r"202 0x[0-9a-f]+ 0x0 0x7 ", c) for c in calls(pair.runners[0])))
    pair.start(1, "def main():" + word + '''
    return [syscall(202, at, 1, 1000, 0, 0, 0),
            syscall(202, at, 129, 1000, 0, 0, 0)]
''')
    assert pair.value(1) == [0, 0]
    assert pair.let_go(0) == [1, [0]]


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
