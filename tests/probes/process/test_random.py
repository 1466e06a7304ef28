"""Every runner is a fork of one interpreter and pid 1 of its namespace; no two
may draw the same random numbers."""
import platform

import pytest

from probes import runner_driver

DRAW = '''
import os, random, secrets as library_secrets, ssl, tempfile, uuid
def main():
    import importlib
    library = importlib.import_module("secrets")
    return {
        "ssl": ssl.RAND_bytes(16).hex(),
        "random": random.random(),
        "randrange": random.getrandbits(64),
        "uuid4": str(uuid.uuid4()),
        "uuid1": str(uuid.uuid1()),
        "secrets": library.token_hex(16),
        "urandom": os.urandom(16).hex(),
        "system": str(random.SystemRandom().getrandbits(128)),
        "tempfile": tempfile.mktemp(),
    }
'''


def test_no_two_runners_draw_the_same(pool):
    # all forked before the first one runs: nothing but the reseed tells
    # them apart
    runners = [pool.fork() for _ in range(8)]
    drawn = []
    try:
        for i, r in enumerate(runners):
            assert r.ready()[0] == "ready"
            r.execute(DRAW, {})
        for r in runners:
            end = r.result()
            drawn.append(runner_driver.Call(r, end).value)
    finally:
        for r in runners:
            r.close()
    for source in drawn[0]:
        values = [d[source] for d in drawn]
        assert len(set(values)) == len(values), (source, values)


def test_the_reseed_is_what_tells_runners_apart():
    """OpenSSL itself notices a fork by another pid, and a runner is pid 1
    while the zygote is not: usually it would reseed by itself, and a missing
    reset go unseen. It does not where the pid is the zygote's again:
    here the zygote is pid 3, which is also the first child of a tool (2 is
    the thread that reads its output)."""
    code = '''
import os, ssl
def main():
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, b"%d " % os.getpid() + ssl.RAND_bytes(16).hex().encode())
        os._exit(0)
    os.wait()
    return os.read(r, 100).decode()
'''
    pool = runner_driver.Pool(zygote_pid=3)
    try:
        drawn = [pool.call(code).text.split() for _ in range(4)]
    finally:
        pool.close()
    assert [pid for pid, _ in drawn] == ["3"] * 4
    assert len({value for _, value in drawn}) == 4


def test_private_generator_of_openssl(pool):
    """RAND_priv_bytes has a generator of its own."""
    code = '''
import ctypes, glob
def main():
    path = glob.glob("/usr/lib/*/libcrypto.so.*")[0]
    crypto = ctypes.CDLL(path)
    b = ctypes.create_string_buffer(16)
    assert crypto.RAND_priv_bytes(b, 16) == 1
    return b.raw.hex()
'''
    values = {pool.call(code).text for _ in range(4)}
    assert len(values) == 4


def test_hash_seeds_of_two_zygotes(pool):
    """The seed of str hashes belongs to a zygote (it cannot change in a
    running interpreter): random, so two of them differ."""
    code = "def main(): return [hash('canary-%d' % i) for i in range(4)]"
    second = runner_driver.Pool()
    try:
        assert pool.call(code).value != second.call(code).value
    finally:
        second.close()


GUARDS = '''
import ctypes, os, threading
def here():
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_void_p
    block = libc.pthread_self()
    stack, pointer = (ctypes.c_uint64.from_address(block + at).value for at in (0x28, 0x30))
    return {"stack": "%016x" % stack, "pointer": "%016x" % pointer}
def main():
    found, threads = here(), []
    t = threading.Thread(target=lambda: threads.append(here()))
    t.start()
    t.join()
    libc = ctypes.CDLL(None)
    return {**found, "thread": threads[0] == found, "layout": ctypes.cast(libc.exit, ctypes.c_void_p).value}
'''


@pytest.mark.skipif(platform.machine() != "x86_64", reason="their place is known on x86-64 only (runner/guards.c)")
def test_no_two_runners_have_the_same_guards(pool):
    """Of the stack and of pointers; the layout, which runners of one zygote share, shows that these are of one."""
    values = [pool.call(GUARDS).value for _ in range(4)]
    assert len({v["layout"] for v in values}) == 1, values
    for guard in ("stack", "pointer"):
        assert len({v[guard] for v in values}) == 4, values
        assert all(int(v[guard], 16) > 1 << 32 for v in values), values
    # A string ends there; and threads have those of their process.
    assert all(v["stack"].endswith("00") and v["thread"] for v in values), values


def test_exit_still_ends_a_process(pool):
    """exit(3) of a tool's process, behind whatever libraries put down for it before."""
    code = '''
import ctypes, os
def main():
    if (pid := os.fork()) == 0:
        ctypes.CDLL(None).exit(7)
    return os.waitpid(pid, 0)[1]
'''
    assert pool.call(code).value == 7 << 8
