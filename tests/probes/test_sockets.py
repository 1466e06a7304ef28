"""Every family and type of socket there could be, and every way to speak to
one without connecting."""
import errno
import os
import socket
import threading

import pytest

from probes import runner_driver
from probes.conftest import PRELUDE, not_run
from probes.pairs import await_hold, let_go

#: The rest, which few kernels have, is in test_unix_sockets_are_all_there_is.
FAMILIES = {
    "INET": 2, "INET6": 10, "KEY": 15, "NETLINK": 16, "PACKET": 17, "RDS": 21,
    "PPPOX": 24, "CAN": 29, "TIPC": 30, "BLUETOOTH": 31, "RXRPC": 33,
    "ALG": 38, "NFC": 39, "VSOCK": 40, "KCM": 41, "SMC": 43, "XDP": 44,
}
ASK = '''
def ask(family):
    """The descriptors that any type and protocol gives; the errors."""
    made, errors = [], set()
    for kind in (1, 2, 3, 4, 5, 6, 10):
        for protocol in (0, 1, 3, 6, 17, 58, 132, 255, 262, 768):
            fd = syscall(41, family, kind, protocol)
            if fd >= 0:
                made.append([kind, protocol])
                os.close(fd)
            else:
                errors.add(-fd)
            errors.add(-syscall(53, family, kind, protocol,
                                ctypes.create_string_buffer(8)))
    return [made, sorted(errors)]
def main(families: list):
    return {f: ask(f) for f in families}
'''


@pytest.fixture(scope="module")
def answers(sandbox):
    return sandbox.attack(ASK, families=list(FAMILIES.values()))


@pytest.mark.parametrize("name", FAMILIES)
def test_family(answers, name):
    outside, (made, errors) = (a[str(FAMILIES[name])] for a in answers)
    assert made == [] and errors == [errno.EPERM]
    if not outside[0]:
        not_run(f"AF_{name}: this kernel has no such socket")


def test_unix_sockets_are_all_there_is(sandbox):
    out, inside = sandbox.attack('''
def main():
    out = []
    for family in range(0, 64):
        for high in (0, 1 << 32):
            fd = syscall(41, high | family, 1, 0)
            if fd >= 0:
                out.append(high | family)
                os.close(fd)
    return out
''')
    assert 2 in out and inside == [1]


NAMES = '''
def main(names: list):
    """Datagrams and stream data to a name, without connect()."""
    sent = []
    for name in names:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM,
                     socket.SOCK_SEQPACKET, socket.SOCK_RAW):
            s = socket.socket(socket.AF_UNIX, kind)
            for how in (lambda: s.sendto(b"canary", name),
                        lambda: s.sendmsg([b"canary"], [], 0, name),
                        lambda: s.connect(name)):
                if attempt(how) is None:
                    sent.append([name, kind])
            s.close()
    return sent
'''


def test_names_of_the_host(sandbox, tmp_path):
    """Abstract and in the file system, listening in the host's namespace."""
    path, abstract = str(tmp_path / "s"), "\0mcpbox-" + os.urandom(6).hex()
    got, socks = [], []
    for name in (path, abstract):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(name)
        s.settimeout(0.3)
        socks.append(s)
    os.chmod(tmp_path, 0o755)
    os.chmod(path, 0o777)

    def read(s):
        try:
            while True:
                got.append(s.recv(64))
        except OSError:
            pass
    try:
        outside_, inside = None, sandbox.inside(NAMES, names=[path, abstract])
        assert inside == []
        for s in socks:
            read(s)
        assert got == []
        threads = [threading.Thread(target=read, args=(s,)) for s in socks]
        outside_ = sandbox.outside(NAMES, names=[path, abstract])
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(outside_) >= 2 and b"canary" in got
    finally:
        for s in socks:
            s.close()


def test_abstract_names_of_another_runner(pool):
    """Even if bind() passed, each has a namespace of its own: names that the
    kernel itself gives (autobind) in one are not found from another."""
    first, second = pool.fork(), pool.fork()
    code = '''
def main():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    t = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    # a datagram to anybody: the sender is given a name first
    attempt(s.sendto, b"x", "\\0nobody")
    name = s.getsockname()
    own = None if not name else attempt(t.sendto, b"canary", name)
    hold()
    hits = [n for n in range(0x200) if attempt(
        t.sendto, b"other", b"\\0%05x" % n) is None]
    s.setblocking(False)
    got = []
    try:
        while True:
            got.append(s.recv(9).decode())
    except OSError:
        pass
    return {"value": [bool(name), own, got]}
'''
    try:
        for r in (first, second):
            assert r.ready()[0] == "ready"
            r.execute(PRELUDE + code, {})
        for r in (first, second):
            await_hold(r)
        # The second searches while the first has its name.
        for r in (second, first):
            let_go(r)
            named, own, got = runner_driver.Call(
                r, r.result()).value["value"]
            if named:
                assert own is None
            assert set(got) <= {"canary", "other"}
            assert got.count("other") <= 1      # its own search found it
    finally:
        first.close()
        second.close()
