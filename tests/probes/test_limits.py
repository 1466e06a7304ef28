"""What a call uses up ends the call, not the machine."""
import pytest

from harness.patience import patience

LIMITS = dict(memory_bytes=256 << 20, processes=16, files=64, cpu_ms=2000,
              file_bytes=1 << 20)
TMP = dict(tmp_bytes=2 << 20, tmp_inodes=64)


def run(pool, code, timeout=patience(20), **more):
    return pool.call(code, profile=TMP, timeout=timeout, **{**LIMITS, **more})


def test_memory(pool):
    call = run(pool, "def main():\n    return len(bytearray(512 << 20))\n")
    assert call.kind == "run_error" and call.failure_name == "limit"
    assert "memory" in call.text
    small = run(pool, "def main():\n    return len(bytearray(64 << 20))\n")
    assert small.value == 64 << 20


def test_memory_bit_by_bit(pool):
    call = run(pool, "def main():\n    a = []\n    while True:\n"
                     "        a.append(b'x' * 65536 + bytes(len(a)))\n",
               cpu_ms=20000)	# memory alone shall end it, whatever a page costs here
    assert call.kind == "run_error" and call.failure_name == "limit"


def test_fork_bomb(pool):
    call = run(pool, '''
import os, time
def main():
    n = 0
    try:
        while True:
            if os.fork() == 0:
                time.sleep(600)
                os._exit(0)
            n += 1
    except OSError as e:
        return [n, e.errno]
''')
    made, errno = call.value
    # this process and the thread that reads its output count too
    assert made == LIMITS["processes"] - 2 and errno == 11


def test_thread_bomb(pool):
    call = run(pool, '''
import threading, time
def main():
    n = 0
    try:
        while True:
            threading.Thread(target=time.sleep, args=(600,),
                             daemon=True).start()
            n += 1
    except RuntimeError:
        return n
''')
    assert call.value == LIMITS["processes"] - 2


def test_descriptors(pool):
    call = run(pool, '''
import os
def main():
    held = []
    try:
        while True:
            held.append(os.pipe())
    except OSError as e:
        for a, b in held:
            os.close(a); os.close(b)
        return [len(held), e.errno]
''')
    pairs, errno = call.value
    assert pairs * 2 < LIMITS["files"] and errno == 24


def test_bytes_of_tmp(pool):
    call = run(pool, '''
def main():
    n = 0
    try:
        for i in range(50):
            with open(f"/tmp/{i}", "wb") as f:
                f.write(b"x" * 1000000)
            n += 1
    except OSError as e:
        return [n, e.errno]
''')
    assert call.value == [2, 28]


def test_inodes_of_tmp(pool):
    call = run(pool, '''
def main():
    n = 0
    try:
        while True:
            open(f"/tmp/{n}", "wb").close()
            n += 1
    except OSError as e:
        return [n, e.errno]
''')
    n, errno = call.value
    assert 50 < n < 64 and errno == 28


def test_size_of_a_file(pool):
    call = run(pool, '''
import signal
def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with open("/tmp/x", "wb") as f:
            f.write(b"x" * 2000000)
    except OSError as e:
        return e.errno
''')
    assert call.value == 27


def test_cpu_time(pool):
    call = run(pool, "def main():\n    while True: pass\n", cpu_ms=1000)
    assert call.kind == "gone"


def test_buffers_of_sockets(sandbox):
    """What waits in a socket is the kernel's memory and counted nowhere: with
    large buffers the pairs of one call held 8 GiB."""
    code = '''
def main():
    out = []
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):  # 32: ..FORCE
        a, b = socket.socketpair()
        out.append(attempt(a.setsockopt, socket.SOL_SOCKET, option, 1 << 30))
    a, b = socket.socketpair()
    a.setblocking(False)
    held = 0
    try:
        while True:
            held += a.send(b"x" * 32768)
    except BlockingIOError:
        return [out, held]
'''
    (outside, _), (inside, held) = sandbox.attack(code)
    assert outside == [None] * 4
    assert inside == ["EPERM"] * 4
    assert held <= 4 << 20


def test_printing_for_ever(pool):
    """Neither memory grows nor does the call wait for a reader: what is
    beyond the limit is thrown away."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute('''
def main():
    for _ in range(5000):
        print("x" * 4000)
''', {}, stdout_max=10000, **LIMITS)
        assert runner.result()[0] == "run_result"
        assert len(runner.stdout) <= 10000
        assert b"more bytes were printed" in runner.stdout
    finally:
        runner.close()


def test_printing_thread_does_not_hold_the_end(pool):
    call = run(pool, '''
import os, threading
def spam():
    while True:
        os.write(1, b"x" * 60000)
def main():
    threading.Thread(target=spam).start()
    return "done"
''')
    assert call.text == "done"


@pytest.mark.parametrize("size,kind", [(1000, "run_result"),
                                       (200000, "run_error")])
def test_result_size(pool, size, kind):
    call = pool.call(f"def main():\n    return 'x' * {size}\n",
                     result_max=65536)
    assert call.kind == kind
    if kind == "run_error":
        assert call.failure_name == "limit" and "65536" in call.text


def test_result_stops_before_it_is_made(pool):
    """A structure that is small in memory and a million million bytes as JSON: who
    made it would not come to an end before this test gives up."""
    call = pool.call("def main():\n    a = ['x' * 1000]\n"
                     "    for _ in range(30):\n        a = [a, a]\n"
                     "    return a\n")
    assert call.failure_name == "limit"
