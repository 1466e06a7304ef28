"""A hostile runner against peek: whatever its threads and processes do around
connect(2), nothing connects or listens that egress did not judge. Nobody asks
nicely here: the played egress allows one service and refuses all else; beside
it canaries listen, on the host's loopback, which an injected socket can reach.
"""
import ctypes
import errno
import os
import socket
import select
import threading

import pytest

from egress.test_peek import peek_links
from harness.net.netpool import Echo, Egress, NetPool, inside
from harness.patience import until


@pytest.fixture(scope="module")
def pool():
    p = NetPool()
    yield p
    p.close()


@pytest.fixture
def egress(pool):
    e = Egress(pool)
    yield e
    e.close()
    assert not e.errors, e.errors


@pytest.fixture
def echo():
    with Echo() as e:
        yield e


class Canary(Echo):
    """Must never see a connection; proves first that it would."""

    def __enter__(self):
        socket.create_connection(self.address).close()
        until(lambda: self.accepted == 1)
        return self

    def untouched(self):
        """Connections are accepted in their order: one that was made before this
        one is counted when this one is answered."""
        with socket.create_connection(self.address) as s:
            s.sendall(b"?")
            assert s.recv(1) == b"?"
        return self.accepted == 2


@pytest.fixture
def canary():
    with Canary() as c:
        yield c
        assert c.untouched()


@pytest.fixture
def allowed(egress, echo, canary):
    """Two ports for a probe: one that egress connects to, one that it doesn't."""
    egress.allowed.add(echo.address)
    return {"good": echo.address[1], "bad": canary.address[1]}


def judged_only(egress, echo):
    """What egress was asked, by port; the service saw no more than it allowed."""
    good = sum(q.address == echo.address for q in egress.seen)
    assert echo.accepted <= good
    return good


class Order:
    """A judge that holds each question of a call until the call has done what the
    test wants done meanwhile. The call says so by connecting to two further ports:
    `seen` is answered once egress holds `many` questions; at `done`, egress gives
    the answers that it held."""

    def __init__(self, egress, many=1):
        self.egress, self.many = egress, many
        self.held, self.waits, self.total = [], [], 0
        self.ports = {"seen": Echo(), "done": Echo()}
        self.seen, self.done = (e.address for e in self.ports.values())
        egress.allowed.update((self.seen, self.done))
        egress.judge = self.judge

    def judge(self, q):
        if q.address == self.seen:
            self.waits.append(q)
        elif q.address == self.done:
            held, self.held = self.held, []
            for h in held:
                self.egress.connect(h)
            self.egress.connect(q)
        else:
            self.held.append(q)
            self.total += 1
        if len(self.held) >= self.many:
            while self.waits:
                self.egress.connect(self.waits.pop())

    def __enter__(self):
        return {name: e.address[1] for name, e in self.ports.items()}

    def __exit__(self, *exc):
        for e in self.ports.values():
            e.__exit__()


SOCKADDR = '''
import random, struct, threading
def sa(port, host=b"\\x7f\\0\\0\\1"):
    return struct.pack("=H", 2) + struct.pack(">H4s8x", port, host)
def code(rc):
    return errno.errorcode.get(-rc, rc) if rc < 0 else rc
'''


def test_the_address_is_rewritten(pool, egress, echo, allowed):
    """By another thread, all the time, while connect is in flight: what egress
    saw is where the connection goes, and only those connect."""
    # CPython switches threads only where a loop jumps back: whatever is left there
    # is what a connect finds, so that is either one.
    code = SOCKADDR + '''
def main(good: int, bad: int) -> list:
    a = (ctypes.c_char * 16).from_buffer(bytearray(sa(good)))
    stop, wins, fails, odd = [], 0, 0, 0
    good_sa, bad_sa = both = sa(good), sa(bad)
    def flip():
        while not stop:
            a[:] = bad_sa
            a[:] = good_sa
            a[:] = both[random.getrandbits(1)]
    t = [threading.Thread(target=flip) for _ in range(2)]
    sys.setswitchinterval(1e-6)
    for x in t: x.start()
    for _ in range(5000):
        s = socket.socket()
        rc = syscall(42, s.fileno(), ctypes.addressof(a), 16)
        if rc == 0:
            wins += 1
            odd += s.getpeername()[1] != good
        else:
            fails += 1
        s.close()
        if wins >= 50 and fails >= 50:
            break
    stop.append(1)
    for x in t: x.join()
    return [wins, fails, odd]
'''
    wins, fails, odd = inside(pool, code, **allowed)
    assert wins >= 20 and fails >= 20 and odd == 0, (wins, fails, odd)
    assert judged_only(egress, echo) >= wins
    assert all(q.address[0] == "127.0.0.1" for q in egress.seen)


def test_dup2_over_the_socket(pool, egress, echo, allowed):
    """While it is in flight: the new one takes whatever number it was, and the
    tool keeps nothing that it would not have had."""
    code = SOCKADDR + '''
def main(good: int, bad: int) -> dict:
    s = socket.socket()
    fd = s.fileno()
    stop = []
    r, w = os.pipe()
    other = socket.socket()
    def shuffle():
        while not stop:
            os.dup2(r, fd)
            os.dup2(other.fileno(), fd)
            try:
                os.close(fd)
            except OSError:
                pass
            os.dup2((r, other.fileno(), other.fileno())[random.randrange(3)], fd)
    t = threading.Thread(target=shuffle)
    sys.setswitchinterval(1e-6)
    t.start()
    seen = {}
    for _ in range(5000):
        for port in (good, bad):
            key = str(code(syscall(42, fd, sa(port), 16))) + ("+" if port == good else "-")
            seen[key] = seen.get(key, 0) + 1
        if min(seen.get(k, 0) for k in ("0+", "EACCES-")) >= 20 and seen.get("ENOTSOCK-", 0) > 0:
            break
    stop.append(1)
    t.join()
    return seen
'''
    got = inside(pool, code, **allowed)
    assert "0-" not in got
    assert set(got) <= {f"{n}{p}" for n in ("0", "EACCES", "EBADF", "ENOTSOCK", "EISCONN", "EALREADY")
                        for p in "+-"}
    # It went through, was refused, and met another file.
    assert got["0+"] >= 20 and got["EACCES-"] >= 20 and got["ENOTSOCK-"] > 0, got
    judged_only(egress, echo)


def test_close_while_it_waits(pool, egress, echo, allowed):
    """The number is free, or another's, when the answer comes: it is the answer to
    what was asked, and takes that number."""
    code = SOCKADDR + '''
def main(good: int, bad: int, seen: int, done: int) -> list:
    out, null = [], os.open("/dev/null", os.O_RDONLY)
    for n in range(20):
        fd = socket.socket().detach()
        # Made now: one that is made later would have the free number.
        ask, tell = socket.socket(), socket.socket()
        def close():
            ask.connect(("127.0.0.1", seen))
            os.close(fd)
            if n % 2:
                os.dup2(null, fd)
            tell.connect(("127.0.0.1", done))
        t = threading.Thread(target=close)
        t.start()
        rc = code(syscall(42, fd, sa(good if n % 4 < 2 else bad), 16))
        t.join()
        peer = None
        if rc == 0:
            with socket.socket(fileno=fd) as s:
                peer = s.getpeername()[1] - good
        out.append([rc, peer])
        ask.close()
        tell.close()
    return out
'''
    with Order(egress) as ports:
        got = inside(pool, code, **allowed, **ports)
    assert got == [[0, 0], [0, 0], ["EACCES", None], ["EACCES", None]] * 5, got
    judged_only(egress, echo)


def test_the_caller_ends_while_it_waits(pool, egress, echo, allowed):
    """Killed threads' processes, whose pids come again at once: once egress has
    their questions, and its answers come when they are gone; and whenever it
    happens to be."""
    code = SOCKADDR + '''
import signal
def fork(port):
    pid = os.fork()
    if pid == 0:
        s = socket.socket()
        syscall(42, s.fileno(), sa(port), 16)
        os._exit(0)
    return pid
def end(pids):
    n = 0
    for p in pids:
        os.kill(p, signal.SIGKILL)
        n += os.waitpid(p, 0)[1] == signal.SIGKILL
    return n
def main(good: int, bad: int, seen: int, done: int) -> int:
    n = 0
    for _ in range(10 if seen else 25):
        pids = [fork(good if i % 2 else bad) for i in range(6)]
        if seen:
            socket.create_connection(("127.0.0.1", seen)).close()
        n += end(pids)
        if seen:
            socket.create_connection(("127.0.0.1", done)).close()
    return n
'''
    order = Order(egress, many=6)
    with order as ports:
        assert inside(pool, code, **allowed, **ports) == order.total == 10 * 6
    egress.judge = egress.connect
    assert inside(pool, code, seen=0, done=0, **allowed) <= 25 * 6
    judged_only(egress, echo)
    assert inside(pool, SOCKADDR + '''
def main(good: int, bad: int) -> list:
    return [attempt(socket.create_connection, ("127.0.0.1", p)) for p in (good, bad)]
''', **allowed) == [None, "EACCES"]


def test_fork_holds_the_socket(pool, egress, echo, allowed):
    """The child has the old one: not connected, and in an empty namespace."""
    code = SOCKADDR + '''
def main(good: int, bad: int) -> list:
    s = socket.socket()
    r, w = os.pipe()
    go_r, go_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(go_r, 1)
        out = [attempt(s.send, b"x"), attempt(s.getpeername), attempt(s.connect, ("127.0.0.1", bad)),
               attempt(s.connect, ("127.0.0.1", good)), attempt(s.send, b"y")]
        os.write(w, repr(out).encode())
        os._exit(0)
    s.connect(("127.0.0.1", good))
    os.write(go_w, b"g")
    got = os.read(r, 1000).decode()
    os.waitpid(pid, 0)
    s.send(b"z")
    return [got, s.recv(1).decode()]
'''
    assert inside(pool, code, **allowed) == [
        "['EPIPE', 'ENOTCONN', 'EACCES', None, None]", "z"]


def test_a_thousand_at_once(pool, egress, echo, allowed):
    """From calls, processes and threads at once: each is answered."""
    code = SOCKADDR + '''
def worker(good, bad, n):
    done = 0
    def one(i):
        nonlocal done
        s = socket.socket()
        port = bad if i % 5 == 0 else good
        got = attempt(s.connect, ("127.0.0.1", port))
        done += got == ("EACCES" if port == bad else None)
        s.close()
    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for t in threads: t.start()
    for t in threads: t.join()
    return done
def main(good: int, bad: int) -> int:
    pids, total = [], 0
    r, w = os.pipe()
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            n = sum(worker(good, bad, 10) for _ in range(5))
            os.write(w, bytes([n]))
            os._exit(0)
        pids.append(pid)
    for p in pids:
        os.waitpid(p, 0)
        total += os.read(r, 1)[0]
    return total
'''
    totals, errors = [], []

    def run():
        try:
            totals.append(inside(pool, code, timeout=60, **allowed))
        except AssertionError as e:
            errors.append(e)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and totals == [250] * 4
    assert len(egress.seen) == 1000
    assert judged_only(egress, echo) == 800


#: As sandboxd/pool/peek/peek_table.h has them.
PEEK_BURST, PEEK_PER_SECOND = 256, 1000


def test_one_call_floods(pool, egress, echo, allowed):
    """Its loop of connects leaves the others their answers: while two calls flood
    without end, another one's connects are answered; and what a flood gets is
    bounded by the second."""
    flood = "import ctypes, errno, os, socket, sys, time\n" + SOCKADDR.replace("def code", "def unused") + '''
def main(bad: int, many: int) -> float:
    libc = ctypes.CDLL(None)
    start, n = time.monotonic(), 0
    while many == 0 or n < many:
        s = socket.socket()
        libc.connect(s.fileno(), bytes(16), 16)
        if many == 0 and n % 100 == 0:
            libc.connect(s.fileno(), sa(bad), 16)       # for egress to see that it floods
        s.close()
        n += 1
    return time.monotonic() - start
'''

    def flooded(r):
        return sum(q.net == r.generation for q in egress.seen)
    # Answers to spare are counted by the millisecond.
    assert inside(pool, flood, bad=allowed["bad"], many=PEEK_BURST + PEEK_PER_SECOND) > 0.9
    runners = [pool.fork(), pool.fork()]
    try:
        for r in runners:
            r.ready()
            r.execute(flood, {"bad": allowed["bad"], "many": 0})
        for r in runners:
            until(lambda: flooded(r) >= 10)
        before = [flooded(r) for r in runners]
        assert inside(pool, SOCKADDR + '''
def main(good: int, bad: int) -> int:
    return sum(attempt(socket.create_connection, ("127.0.0.1", good)) is None for _ in range(50))
''', **allowed) == 50
        for r, n in zip(runners, before):
            until(lambda: flooded(r) > n + 1)
    finally:
        for r in runners:
            r.close()


def test_a_call_that_takes_no_answer(pool, egress, echo, allowed):
    """Threads that wait in connect are stopped before their answers come, and get no
    processor besides: others are answered meanwhile. They have theirs in the end."""
    mean = "import errno, os, signal, socket\n" + '''
def reach(port):
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except TimeoutError:    # which peek says after 30 s: it asks again
            pass
def main(good: int, seen: int, done: int, go_on: int) -> list:
    spin, stopped = [], []
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            while True:
                pass
        spin.append(pid)
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            rc = errno.ETIMEDOUT
            while rc == errno.ETIMEDOUT:
                s = socket.socket()
                rc = s.connect_ex(("127.0.0.1", good))
            os._exit(0 if rc == 0 and s.getpeername()[1] == good else 1)
        stopped.append(pid)
    reach(seen)
    for p in stopped:
        os.kill(p, signal.SIGSTOP)
    reach(done)
    reach(go_on)
    for p in spin:
        os.kill(p, signal.SIGKILL)
    for p in stopped:
        os.kill(p, signal.SIGCONT)
    return [os.waitpid(p, 0)[1] for p in stopped]
'''
    order = Order(egress, many=10)
    ended, waits = threading.Event(), []
    runner = pool.fork()
    with order as ports, Echo() as last:
        def judge(q):
            """The last port is answered when the others were; theirs at once."""
            if q.address == last.address:
                waits.append(q)
            elif q.net != runner.generation or ended.is_set():
                egress.connect(q)
            else:
                order.judge(q)
            if ended.is_set():
                while waits:
                    egress.connect(waits.pop())
        egress.allowed.add(last.address)
        egress.judge = judge
        try:
            runner.ready()
            runner.execute(mean, {"good": allowed["good"], "go_on": last.address[1], **ports})
            until(lambda: waits or select.select([runner.channel], [], [], 0)[0])
            assert waits, runner.result()
            assert order.total >= 10 and not order.held
            assert inside(pool, SOCKADDR + '''
def main(good: int, bad: int) -> int:
    return sum(attempt(socket.create_connection, ("127.0.0.1", good)) is None for _ in range(20))
''', **allowed) == 20
            assert not select.select([runner.channel], [], [], 0)[0]
            ended.set()
            # One of the others makes egress look at who waits.
            inside(pool, SOCKADDR + '''
def main(good: int, bad: int) -> None:
    socket.create_connection(("127.0.0.1", good)).close()
''', **allowed)
            assert runner.result()[0] == "run_result", runner.body
            assert b"[0,0,0,0,0,0,0,0,0,0]" in runner.body.replace(b" ", b""), runner.body
        finally:
            runner.close()


#: Each must fail, on a socket in every state it may be in.
WAYS = '''
def at(s, port):
    return ("::1" if s.family == socket.AF_INET6 else "127.0.0.1", port)
TRIED = {
    "fastopen": lambda s, bad: s.sendto(b"x", socket.MSG_FASTOPEN, at(s, bad)),
    "fastopen by msg": lambda s, bad: s.sendmsg([b"x"], [], socket.MSG_FASTOPEN, at(s, bad)),
    "bind": lambda s, bad: s.bind(at(s, 0)),
    "bind any": lambda s, bad: s.bind(("", 0)),
    "listen": lambda s, bad: s.listen(1),
    "accept": lambda s, bad: s.accept(),
    "fastopen connect": lambda s, bad: s.setsockopt(6, 30, 1),
    "fastopen listen": lambda s, bad: s.setsockopt(6, 23, 5),
    "ulp": lambda s, bad: s.setsockopt(6, 31, b"tls"),
    "repair": lambda s, bad: s.setsockopt(6, 19, 1),
    "device": lambda s, bad: s.setsockopt(1, 25, b"lo"),
    "mark": lambda s, bad: s.setsockopt(1, 36, 1),
    "transparent": lambda s, bad: s.setsockopt(0, 19, 1),
    "freebind": lambda s, bad: s.setsockopt(0, 15, 1),
    "interfaces": lambda s, bad: __import__("fcntl").ioctl(s.fileno(), 0x8912, b"\\0" * 16),
    "flags": lambda s, bad: __import__("fcntl").ioctl(s.fileno(), 0x8913, b"lo".ljust(40, b"\\0")),
    "unspec": lambda s, bad: (_ for _ in ()).throw(OSError(-syscall(42, s.fileno(), bytes(16), 16), "")),
}
def ways(s, bad):
    return {k: attempt(f, s, bad) for k, f in TRIED.items()}
'''
REFUSED = {"unspec": "EAFNOSUPPORT"}

STATES = {
    "new": "s = socket.socket()",
    "refused": "s = socket.socket(); s.connect_ex(('127.0.0.1', bad))",
    "connected": "s = socket.create_connection(('127.0.0.1', good))",
    "half open": "s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', good))",
    "shut down": "s = socket.create_connection(('127.0.0.1', good)); s.shutdown(2)",
    "ended": "s = socket.create_connection(('127.0.0.1', good)); s.shutdown(1); s.recv(1)",
    "v6": "s = socket.socket(socket.AF_INET6)",
}


@pytest.mark.parametrize("state", STATES)
def test_no_second_way_out(pool, egress, echo, allowed, state):
    code = SOCKADDR + WAYS + f'''
def main(good: int, bad: int) -> dict:
    {STATES[state]}
    return ways(s, bad)
'''
    got = inside(pool, code, **allowed)
    assert got == {k: REFUSED.get(k, "EPERM") for k in got} and len(got) == 17


def test_controls_outside(echo):
    """Outside, these get through: what stops them is the runner's."""
    disconnect = ctypes.CDLL(None).connect
    with Echo() as other:
        s = socket.create_connection(echo.address)
        assert disconnect(s.fileno(), bytes(16), 16) == 0
        assert s.sendto(b"x", socket.MSG_FASTOPEN, other.address) == 1
        assert s.recv(1) == b"x" and s.getpeername() == other.address
        s.close()
        s = socket.socket()
        with pytest.raises(ConnectionRefusedError):
            s.connect(("127.0.0.1", 1))
        assert s.sendto(b"x", socket.MSG_FASTOPEN, other.address) == 1
        s.shutdown(socket.SHUT_RDWR)
        assert disconnect(s.fileno(), bytes(16), 16) == 0
        s.bind(("127.0.0.1", 0))
        s.listen(1)
        socket.create_connection(s.getsockname()).close()
        s.close()


def test_sendto_with_an_address(pool, egress, echo, allowed):
    """On a connected socket it is not looked at; on one that isn't, and on a UDP
    socket, there is nobody in this namespace."""
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.3)
        with socket.socket(type=socket.SOCK_DGRAM) as outside:
            outside.sendto(b"control", udp.getsockname())
        assert udp.recv(10) == b"control"
        code = SOCKADDR + '''
def main(good: int, bad: int, udp: int) -> list:
    s = socket.create_connection(("127.0.0.1", good))
    out = [attempt(s.sendto, b"ab", ("127.0.0.1", bad)), s.recv(2).decode()]
    out.append(attempt(socket.socket().sendto, b"x", ("127.0.0.1", bad)))
    u = socket.socket(type=socket.SOCK_DGRAM)
    out.append(attempt(u.sendto, b"x", ("127.0.0.1", udp)))
    return out
'''
        assert inside(pool, code, udp=udp.getsockname()[1], **allowed) == [None, "ab", "EPIPE", "ENETUNREACH"]
        with pytest.raises(TimeoutError):
            udp.recv(10)


def test_the_relays_reach_nobody_else(pool, egress, tmp_path):
    """Their ends are sockets of the host's namespace: an address with a datagram
    must not name an abstract socket there, nor a descriptor go across."""
    name = "\0mcpbox-canary-" + os.urandom(6).hex()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as host:
        host.bind(name)
        host.settimeout(0.3)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
            outside.sendto(b"control", name)
        assert host.recv(10) == b"control"
        ours = []

        def judge(q):
            a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET if q.type == 2 else socket.SOCK_STREAM)
            ours.append(a)
            q.give(b)
        egress.judge = judge
        code = SOCKADDR + '''
import array
def main(name: str) -> list:
    out = []
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        s = socket.socket(type=kind)
        s.connect(("192.0.2.1", 53))
        u = socket.socket(socket.AF_UNIX, fileno=os.dup(s.fileno()))
        out.append(attempt(u.sendto, b"canary", name))
        out.append(code(syscall(42, s.fileno(), b"\\1\\0" + name.encode(), 2 + len(name))))
        out.append(attempt(u.bind, "\\0mine"))
    return out
'''
        got = inside(pool, code, name=name)
        assert [x for x in got[1::3]] == ["EPERM", "EPERM"] and got[2] == got[5] == "EPERM"
        with pytest.raises(TimeoutError):
            host.recv(10)
        for a in ours:
            a.close()


@pytest.mark.parametrize("family,kind,protocol", [
    (2, 1, 262), (10, 1, 262), (2, 3, 6), (2, 2, 1), (2, 1, 132), (2, 2, 136), (10, 3, 58), (16, 3, 0), (17, 3, 3),
    (40, 1, 0), (38, 5, 0), (43, 1, 0)])
def test_other_sockets(pool, egress, family, kind, protocol):
    code = '''
def main(family: int, kind: int, protocol: int) -> int:
    return -syscall(41, family, kind, protocol)
'''
    assert inside(pool, code, family=family, kind=kind, protocol=protocol) in (
        errno.EPERM, errno.EAFNOSUPPORT)


def test_a_socket_is_passed_to_a_sibling(pool, egress, echo, allowed):
    """By SCM_RIGHTS, connected and not: to the call's own processes, who may no
    more with it than who made it."""
    code = SOCKADDR + WAYS + '''
def main(good: int, bad: int) -> list:
    a, b = socket.socketpair()
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        fds = socket.recv_fds(b, 10, 2)[1]
        live, new = (socket.socket(fileno=fd) for fd in fds)
        live.send(b"q")
        out = [live.recv(1).decode(), set(ways(live, bad).values()) <= {"EPERM", "EAFNOSUPPORT"},
               attempt(new.connect, ("127.0.0.1", bad))]
        os.write(w, repr(out).encode())
        os._exit(0)
    s = socket.create_connection(("127.0.0.1", good))
    new = socket.socket()
    socket.send_fds(a, [b"x"], [s.fileno(), new.fileno()])
    got = os.read(r, 1000).decode()
    os.waitpid(pid, 0)
    return [got]
'''
    assert inside(pool, code, **allowed) == ["['q', True, 'EACCES']"]


def test_epoll_before_connect(pool, egress, echo, allowed):
    """The set watched the old socket; the new one is watched once it is added."""
    code = SOCKADDR + '''
import select
def main(good: int, bad: int) -> list:
    s = socket.socket()
    s.setblocking(False)
    e = select.epoll()
    e.register(s, select.EPOLLIN | select.EPOLLOUT)
    s.connect_ex(("127.0.0.1", good))
    before = e.poll(0.2)
    try:
        e.modify(s, select.EPOLLOUT)
    except FileNotFoundError:
        e.register(s, select.EPOLLOUT)
    after = e.poll(60)
    return [len(before), [x == s.fileno() for x, _ in after]]
'''
    before, after = inside(pool, code, **allowed)
    assert before in (0, 1) and after == [True]


def test_two_threads_connect_one_socket(pool, egress, echo, allowed):
    code = SOCKADDR + '''
def main(good: int, bad: int) -> int:
    wrong = 0
    for _ in range(60):
        s = socket.socket()
        got = {}
        def go(port):
            got[port] = attempt(s.connect, ("127.0.0.1", port))
        t = [threading.Thread(target=go, args=(p,)) for p in (good, bad)]
        for x in t: x.start()
        for x in t: x.join()
        wrong += got[bad] not in ("EACCES", "EISCONN") or got[good] not in (None, "EISCONN")
        wrong += s.getpeername()[1] != good
        s.close()
    return wrong
'''
    assert inside(pool, code, **allowed) == 0
    judged_only(egress, echo)


def test_signals_while_it_waits(pool, egress, echo, allowed):
    """A call that gets a signal while egress has its question is answered once."""
    code = SOCKADDR + '''
import signal
def main(good: int, bad: int, seen: int, done: int) -> list:
    got, out = [], []
    signal.signal(signal.SIGUSR1, lambda *a: got.append(1))
    me = threading.get_ident()
    def interrupt():
        socket.create_connection(("127.0.0.1", seen)).close()
        signal.pthread_kill(me, signal.SIGUSR1)
        socket.create_connection(("127.0.0.1", done)).close()
    for port in (good, bad) * 10:
        s = socket.socket()
        t = threading.Thread(target=interrupt)
        t.start()
        rc = attempt(s.connect, ("127.0.0.1", port))
        t.join()
        out.append(rc or s.getpeername()[1] - port)
    return [len(got), out]
'''
    order = Order(egress)
    with order as ports:
        assert inside(pool, code, **allowed, **ports) == [20, [0, "EACCES"] * 10]
    assert order.total == 20
    judged_only(egress, echo)


def test_signals_all_the_time(pool, egress, echo, allowed):
    """Before peek has seen it a signal may end it with EINTR, which Python takes for
    a connection that is being made; the socket is then none that is connected. A
    slow machine has only such, so how many there are says nothing."""
    code = SOCKADDR + '''
import signal
def main(good: int, bad: int) -> list:
    signal.signal(signal.SIGALRM, lambda *a: None)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    out = []
    for port in (good, bad) * 50:
        s = socket.socket()
        got = attempt(s.connect, ("127.0.0.1", port))
        if got is None:
            got = attempt(s.getpeername) or s.getpeername()[1] - port
        out.append(got)
    return out
'''
    got = inside(pool, code, **allowed)
    assert set(got[::2]) <= {0, "ENOTCONN"}
    assert set(got[1::2]) <= {"EACCES", "ENOTCONN"}
    judged_only(egress, echo)


def test_it_can_not_listen_itself(pool, egress):
    """No second listener, no other call's listener, no way to peek."""
    code = '''
def main() -> list:
    out = [code2(syscall(317, 1, 8, 0)), code2(syscall(438, 3, 3, 0)), code2(syscall(310, 1, 0, 0, 0, 0, 0))]
    for fd in range(3, 64):
        try:
            link = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if "seccomp" in link:
            out.append(link)
    return out
def code2(rc):
    return errno.errorcode[-rc]
'''
    assert inside(pool, code) == ["EPERM"] * 3


def test_peek_is_confined(pool):
    """From outside, as root: its root, capabilities, filter and descriptors."""
    pids = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                if f.read() == "mcpbox-peek\n" and os.path.realpath(f"/proc/{pid}/exe").startswith(pool.libexec):
                    pids[pid] = 1
        except OSError:
            continue
    pid, = pids
    status = {}
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            key, value = line.split(":", 1)
            status[key] = value.strip()
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 1 << 19       # CAP_SYS_PTRACE
    assert int(status["CapBnd"], 16) == int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1" and status["Threads"] == "1"
    assert os.listdir(f"/proc/{pid}/root") == ["proc"]
    assert os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{pool.init()}/ns/net")
    with open(f"/proc/{pid}/mounts", encoding="ascii") as f:
        mounts = [line.split()[1:4] for line in f]
    assert [m[0] for m in mounts] == ["/", "/proc"]
    assert all({"ro", "nosuid", "nodev", "noexec"} <= set(m[2].split(",")) for m in mounts), mounts


def test_nothing_is_left(pool, egress, echo, allowed):
    """After all that: peek has no descriptor of calls that ended."""
    def left():
        links = peek_links(pool)
        # 0 to 2, pool-init, the door, egress
        return [x for x in links if "seccomp" in x] or len(links) > 7
    until(lambda: not left(), say=lambda: peek_links(pool))
