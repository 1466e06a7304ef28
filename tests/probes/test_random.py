"""Every runner is a fork of one interpreter and pid 1 of its namespace; no two
may draw the same random numbers."""
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
