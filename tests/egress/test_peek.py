"""connect(2) of a runner that is granted hosts, through the real pool: copied by
peek, answered by a played egress, put in place."""
import errno
import hashlib
import json
import os
import re
import select
import socket
import struct
import threading

import pytest

from harness.net.netpool import Echo, Egress, NetPool, inside
from harness.net.netpool import resolver_answer as answer
from harness.patience import patience, until


@pytest.fixture(scope="module")
def pool():
    p = NetPool(commands="/usr/bin/perl")
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


def peek_links(pool):
    """What the pool's peek has open."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.realpath(f"/proc/{pid}/exe") == os.path.join(pool.libexec, "mcpbox-peek"):
                return [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
        except OSError:         # it was just closed
            continue
    return []


def listeners(pool):
    """How many runners' listeners peek holds."""
    return sum("seccomp" in x for x in peek_links(pool))


def test_layers(pool):
    for name in ("peek_root", "peek_limits", "peek_capabilities", "peek_seccomp", "peek_reads",
                 "runner-network", "runner-seccomp", "runner-names"):
        assert pool.layers[name] == "enforced", pool.layers


BLOCKING = '''
def main(host: str, port: int) -> list:
    s = socket.create_connection((host, port), timeout=None)
    s.sendall(b"ping")
    return [s.recv(10).decode(), s.getpeername()[1], s.getblocking(), os.get_inheritable(s.fileno())]
'''


def test_blocking(pool, egress, echo):
    egress.allowed.add(echo.address)
    assert inside(pool, BLOCKING, host="127.0.0.1", port=echo.address[1]) == [
        "ping", echo.address[1], True, False]
    q, = egress.seen
    assert (q.net, q.address) == (pool.generation, echo.address)
    assert (q.family, q.type, q.nonblocking) == (socket.AF_INET, socket.SOCK_STREAM, 0)
    assert len(q.raw) == 16


def test_ipv6(pool, egress):
    with Echo(socket.AF_INET6, "::1") as echo:
        egress.allowed.add(echo.address)
        assert inside(pool, BLOCKING, host="::1", port=echo.address[1])[0] == "ping"
    q, = egress.seen
    assert q.family == socket.AF_INET6


def test_refusals_are_errors(pool, egress):
    code = '''
def main(port: int) -> list:
    return [attempt(socket.create_connection, ("127.0.0.1", port + i)) for i in range(3)]
'''
    egress.judge = lambda q: q.fail((errno.EACCES, errno.ECONNREFUSED, 70000)[q.address[1] - 4000])
    assert inside(pool, code, port=4000) == ["EACCES", "ECONNREFUSED", "EIO"]


NONBLOCKING = '''
import select
def main(port: int) -> list:
    s = socket.socket()
    s.setblocking(False)
    rc = s.connect_ex(("127.0.0.1", port))
    p = select.poll()
    p.register(s, select.POLLOUT)
    ready = bool(p.poll(60000))
    error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    again = s.connect_ex(("127.0.0.1", port))
    s.send(b"ping")
    select.select([s], [], [], 60)
    return [errno.errorcode.get(rc, rc), ready, error, s.getblocking(), errno.errorcode.get(again, again),
            s.recv(9).decode()]
'''


def test_nonblocking(pool, egress, echo):
    egress.allowed.add(echo.address)
    got = inside(pool, NONBLOCKING, port=echo.address[1])
    assert got[0] in ("EINPROGRESS", 0)
    assert got[1:] == [True, 0, False, "EISCONN", "ping"]
    q, = egress.seen        # the second one is peek's own answer
    assert q.nonblocking == 1


def test_an_answer_while_connecting(pool, egress):
    """EALREADY, and the error of a connect that failed, as the kernel has them."""
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    fill = [socket.socket() for _ in range(8)]
    for s in fill:
        s.setblocking(False)
        s.connect_ex(full.getsockname())
    gone = socket.create_server(("127.0.0.1", 0))
    nobody = gone.getsockname()
    gone.close()
    code = '''
import select
def main(full: int, nobody: int) -> list:
    out = []
    s = socket.socket()
    s.setblocking(False)
    out.append(s.connect_ex(("127.0.0.1", full)))
    out.append(s.connect_ex(("127.0.0.1", full)))
    t = socket.socket()
    t.setblocking(False)
    out.append(t.connect_ex(("127.0.0.1", nobody)))
    select.select([], [t], [], 60)
    out.append(t.connect_ex(("127.0.0.1", nobody)))
    return [errno.errorcode.get(n, n) for n in out]
'''
    def judge(q):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(q.address)
        q.give(s, errno.EINPROGRESS)
    egress.judge = judge
    try:
        assert inside(pool, code, full=full.getsockname()[1], nobody=nobody[1]) == [
            "EINPROGRESS", "EALREADY", "EINPROGRESS", "ECONNREFUSED"]
    finally:
        for s in [full, *fill]:
            s.close()


def test_options_are_carried_over(pool, egress, echo):
    code = '''
import struct
def options(s):
    t, l = socket.IPPROTO_TCP, socket.SOL_SOCKET
    return [s.getsockopt(t, socket.TCP_NODELAY), s.getsockopt(l, socket.SO_KEEPALIVE),
            s.getsockopt(t, socket.TCP_KEEPIDLE), s.getsockopt(t, socket.TCP_KEEPINTVL),
            s.getsockopt(t, socket.TCP_KEEPCNT), s.getsockopt(t, socket.TCP_USER_TIMEOUT),
            list(struct.unpack("ll", s.getsockopt(l, socket.SO_RCVTIMEO, 16)))]
def main(port: int) -> list:
    out = []
    for changed in (False, True):
        s = socket.socket()
        if changed:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 11)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 12)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 4444)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 500000))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
            s.set_inheritable(True)
        before = options(s)
        s.connect(("127.0.0.1", port))
        out.append([before, options(s), os.get_inheritable(s.fileno()),
                    list(struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)))])
    return out
'''
    egress.allowed.add(echo.address)
    plain, changed = inside(pool, code, port=echo.address[1])
    assert plain[0] == plain[1] and not plain[2]
    assert changed[0] == changed[1] == [1, 1, 11, 12, 3, 4444, [5, 500000]]
    assert changed[2] is True
    assert changed[3] == [0, 0]         # said to be done, and not done


def test_the_peer_sees_the_end(pool, egress, echo):
    """No copy of the socket stays with egress or peek, while the call goes on."""
    code = '''
import time
def main(port: int) -> None:
    s = socket.create_connection(("127.0.0.1", port))
    s.close()
    time.sleep(10 ** 6)
'''
    egress.allowed.add(echo.address)
    runner = pool.fork()
    try:
        runner.ready()
        runner.execute("import errno, os, socket\n" + code, {"port": echo.address[1]})
        until(lambda: echo.ended == 1)
        assert not select.select([runner.channel], [], [], 0)[0]
    finally:
        runner.close()


@pytest.mark.parametrize("made", [
    "socket.socket()", "socket.socket(socket.AF_INET6)", "socket.socket(type=socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_UNIX)", "socket.socketpair()[0]", "os.open('/tmp/f', os.O_CREAT)", "99"])
def test_what_is_answered_at_once(pool, egress, made):
    """Nothing of this reaches egress."""
    code = f'''
def main() -> list:
    def raw(fd, sa, n=None):
        return errno.errorcode[-syscall(42, fd, sa, len(sa) if n is None else n)]
    import struct
    s = {made}
    fd = s if isinstance(s, int) else s.fileno()
    v4 = struct.pack("=HH4s8x", 2, 1, bytes(4))
    v6 = struct.pack("=HHI16sI", 10, 1, 0, bytes(16), 0)
    return [raw(fd, bytes(16)), raw(fd, b"\\1\\0/tmp/x"), raw(fd, b"\\1\\0\\0abstract"), raw(fd, v4[:15]),
            raw(fd, v6[:23]), raw(fd, b"\\2"), raw(fd, b"", 0), raw(fd, v4, 129), raw(fd, v4, -1),
            raw(fd, v4 + bytes(200), 1 << 20), raw(fd, struct.pack("=H14x", 17)),
            errno.errorcode[-syscall(42, fd, 8, 16)], errno.errorcode[-syscall(42, fd, -4096, 16)]]
'''
    got = inside(pool, code)
    assert not egress.seen
    if made == "99":
        # The length is looked at first; the kernel has it the other way round.
        assert set(got) == {"EBADF", "EINVAL"}
    elif "os.open" in made:
        assert set(got) <= {"ENOTSOCK", "EINVAL", "EFAULT"}
    else:
        # An empty address with EFAULT: nothing was copied.
        assert got == ["EAFNOSUPPORT", "EPERM", "EPERM", "EINVAL", "EINVAL", "EINVAL", "EINVAL",
                       "EINVAL", "EINVAL", "EINVAL", "EAFNOSUPPORT", "EFAULT", "EFAULT"]


def test_threads_and_processes(pool, egress, echo):
    """Each by itself, through one listener."""
    code = '''
import threading
def one(port, out):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"x")
    out.append(s.recv(1))
    s.close()
def main(port: int) -> int:
    out, pids = [], []
    threads = [threading.Thread(target=one, args=(port, out)) for _ in range(20)]
    for t in threads: t.start()
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            mine = []
            one(port, mine)
            os._exit(0 if mine == [b"x"] else 1)
        pids.append(pid)
    for t in threads: t.join()
    return len(out) + sum(os.waitpid(p, 0)[1] == 0 for p in pids)
'''
    egress.allowed.add(echo.address)
    assert inside(pool, code, port=echo.address[1]) == 30
    assert len(egress.seen) == 30


def test_calls_are_told_apart(pool, egress, echo):
    """By their listener: whatever they run in parallel, each has its net."""
    nets, threads = {}, []
    egress.allowed.add(echo.address)
    code = "import socket\n" + '''
def main(port: int, n: int) -> None:
    for _ in range(5):
        socket.create_connection(("127.0.0.1", port), source_address=None).close()
    socket.socket().connect_ex(("127.0.0.9", n))
'''

    def run(n):
        runner = pool.fork()
        runner.ready()
        runner.execute(code, {"port": echo.address[1], "n": n})
        assert runner.result()[0] == "run_result"
        nets[n] = runner.generation
        runner.close()
    for n in range(5000, 5006):
        threads.append(threading.Thread(target=run, args=(n,)))
        threads[-1].start()
    for t in threads:
        t.join()
    assert {q.address[1]: q.net for q in egress.seen if q.address[0] == "127.0.0.9"} == nets


def test_udp_is_relayed(pool, egress):
    """connect(2) of a UDP socket gives an end of a pair; a second one another."""
    def judge(q):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        q.give(theirs)
        threading.Thread(target=lambda: ours.sendall(
            str(q.address).encode() + ours.recv(100)), daemon=True).start()
    egress.judge = judge
    code = '''
def main() -> list:
    s = socket.socket(type=socket.SOCK_DGRAM)
    out = []
    for port in (53, 123):
        s.connect(("192.0.2.1", port))
        s.send(b"!")
        out.append(s.recvfrom(100)[0].decode())
    return out + [s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)]
'''
    assert inside(pool, code) == ["('192.0.2.1', 53)!", "('192.0.2.1', 123)!", 5]
    assert [q.type for q in egress.seen] == [socket.SOCK_DGRAM] * 2


def test_names(pool, egress, echo):
    """The C library's resolver, over the stream that a connect to 127.0.0.1:53
    gives; all of Python's ways, and another program's."""
    asked = []

    def judge(q):
        if q.address != ("127.0.0.1", 53):
            egress.connect(q)
            return
        ours, theirs = socket.socketpair()
        q.give(theirs)
        threading.Thread(target=answer, args=(ours, {"echo.test": "127.0.0.1"}, asked), daemon=True).start()
    egress.judge = judge
    egress.allowed.add(echo.address)
    code = '''
import asyncio, urllib.request
async def loop(port):
    r, w = await asyncio.open_connection("echo.test", port)
    w.write(b"ping")
    got = await r.read(4)
    w.close()
    return got.decode()
def main(port: int) -> list:
    s = socket.create_connection(("echo.test", port))
    s.sendall(b"abc")
    first = s.recv(3).decode()
    try:
        socket.getaddrinfo("other.test", 1)
        other = "resolved"
    except socket.gaierror as e:
        other = e.args[0]
    return [first, socket.gethostbyname("echo.test"), asyncio.run(loop(port)), other,
            socket.gethostbyname("localhost"), socket.getservbyname("https")]
'''
    assert inside(pool, code, port=echo.address[1]) == ["abc", "127.0.0.1", "ping", -2, "127.0.0.1", 443]
    assert "echo.test" in asked and "other.test" in asked


def test_without_grants_nothing_is_asked(pool, egress):
    code = '''
def main() -> list:
    try:
        socket.getaddrinfo("echo.test", 80)
        name = "resolved"
    except socket.gaierror as e:
        name = e.args[0]
    try:
        socket.create_connection(("127.0.0.1", 53))
        made = "made"
    except OSError as e:
        made = errno.errorcode[e.errno]
    fds = sorted(int(n) for n in os.listdir("/proc/self/fd"))
    return [name, made, fds[:8], len(fds)]
'''
    assert inside(pool, code, profile={"network": 0}) == [-2, "EPERM", list(range(8)), 9]
    assert not egress.seen
    # Nor does a listener or door stay open with them.
    egress.judge = lambda q: q.fail(errno.EACCES)
    assert inside(pool, code) == [-3, "EACCES", list(range(8)), 9]


def test_certificates(pool):
    """The host's authorities are in the root, hashed and as a bundle (a guest of
    tests/vm has none)."""
    code = '''
import ssl
def main() -> list:
    c = ssl.create_default_context()
    names = os.listdir("/etc/ssl/certs")
    return [os.environ["SSL_CERT_DIR"], len(names), "ca-certificates.crt" in names,
            len([n for n in names if not n.endswith((".0", ".1", ".2", ".crt"))]), c.verify_mode.name,
            ssl.get_default_verify_paths().capath]
'''
    d, n, bundle, others, mode, capath = inside(pool, code)
    host = os.listdir("/etc/ssl/certs") if os.path.isdir("/etc/ssl/certs") else []
    assert d == capath == "/etc/ssl/certs" and others == 0 and mode == "CERT_REQUIRED"
    assert bundle == ("ca-certificates.crt" in host)
    assert n == bundle + len([x for x in host if re.fullmatch(r"[0-9a-f]{8}\.\d+", x)])


def test_commands_connect_too(pool, egress, echo):
    """A program of the toolbox, by its own C library."""
    egress.allowed.add(echo.address)
    program = """
socket(my $s, 2, 1, 0) or die "socket $!";
connect($s, pack("Sna4x8", 2, $ARGV[0], "\\x7f\\0\\0\\1")) or die "connect $!";
syswrite($s, "ping"); sysread($s, my $got, 9); print $got;"""
    with open("/usr/bin/perl", "rb") as f:
        digest = hashlib.sha256(f.read()).digest()
    call = pool.call(json.dumps({"argv": ["-e", program, "{port}"]}), {"port": echo.address[1]},
                     profile={"kind": 1}, executable="/usr/bin/perl", executable_digest=digest)
    assert call.kind == "run_result", call.body
    assert call.body["structuredContent"]["stdout"] == "ping"
    q, = egress.seen
    assert q.address == echo.address


def test_egress_restarts(pool, echo):
    """What waits is asked again of the new one; without one it fails soon. Where
    the new one took longer to come than peek waits for it, as it may on a slow
    machine, that is tried again."""
    code = "import socket\n" + BLOCKING.replace("os.get_inheritable(s.fileno())", "0")

    def restarted():
        egress = Egress(pool, judge=lambda q: None)
        egress.allowed.add(echo.address)
        runner = pool.fork()
        try:
            runner.ready()
            runner.execute(code, {"host": "127.0.0.1", "port": echo.address[1]})
            until(lambda: egress.seen)
            egress.sock.shutdown(socket.SHUT_WR)
            egress.thread.join(patience(10))        # peek has closed its end
            assert not egress.thread.is_alive()
            egress.sock.close()
            egress.judge = egress.connect
            egress.start()
            kind, _ = runner.result()
            if kind != "run_result":
                assert b"Network is unreachable" in runner.body, runner.body
                return False
            assert len(egress.seen) == 2 and egress.seen[0].raw == egress.seen[1].raw
            return True
        finally:
            runner.close()
            egress.stop()
    until(restarted)
    alone = '''
import time
def main() -> list:
    t = time.monotonic()
    return [attempt(socket.create_connection, ("127.0.0.1", 1)), time.monotonic() - t]
'''
    # This error is that limit's: an answer that does not come is ETIMEDOUT.
    error, took = inside(pool, alone)
    assert error == "ENETUNREACH" and took > 1.5


def test_a_hung_egress_keeps_nobody_else(pool, egress):
    """Calls that do not connect go on; calls whose connects are answered, too."""
    egress.judge = lambda q: None if q.address[1] == 1 else q.fail(errno.EACCES)
    code = '''
import socket
def main() -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", 1))
            return
        except TimeoutError:
            pass
'''
    stuck = []
    try:
        for _ in range(5):
            stuck.append(pool.fork())
            stuck[-1].ready()
            stuck[-1].execute(code, {})
        until(lambda: {q.net for q in egress.seen} == {r.generation for r in stuck})
        assert inside(pool, "def main() -> int:\n    return 7\n") == 7
        assert inside(pool, "def main() -> list:\n    return [attempt(socket.create_connection, ('127.0.0.1', 2))]\n"
                      ) == ["EACCES"]
        assert all(not select.select([r.channel], [], [], 0)[0] for r in stuck)
    finally:
        for r in stuck:
            r.close()


def test_frames_that_egress_may_not_send(pool, echo):
    """Its connection ends; the pool goes on, with the next one."""
    for name, fields in (("KILL", {"slot": 1, "generation": 1}), ("NET_OPEN", {}), ("HELLO", {"table": bytes(32)})):
        egress = Egress(pool)
        egress.send(name, 7, **fields)
        egress.thread.join(patience(10))
        assert not egress.thread.is_alive()
        egress.sock.close()
    egress = Egress(pool)
    egress.allowed.add(echo.address)
    assert inside(pool, BLOCKING, host="127.0.0.1", port=echo.address[1])[0] == "ping"
    egress.close()


@pytest.mark.parametrize("made", [
    "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "socket.socket(type=socket.SOCK_DGRAM)",
    "socket.socketpair(type=socket.SOCK_DGRAM)[0]", "socket.socket(fileno=os.open('/dev/null', 2))"])
def test_what_egress_may_not_give(pool, egress, made):
    """A socket that names its receivers would reach what nobody judged."""
    if "null" in made:
        def judge(q):
            fd = os.open("/dev/null", os.O_RDWR)
            egress.send("NET_CONNECTED", q.request, fd=fd, error=0)
            os.close(fd)
    else:
        def judge(q):
            q.give(eval(made))
    egress.judge = judge
    code = '''
def main() -> list:
    s = socket.socket(type=socket.SOCK_STREAM)
    return [attempt(s.connect, ("127.0.0.1", 1)), s.family.name, s.getsockopt(1, 3)]
'''
    assert inside(pool, code) == ["EIO", "AF_INET", 1]


def test_answers_nobody_asked_for(pool, egress, echo):
    for request in (0, 1, 1 << 16, (1 << 64) - 1):
        s = socket.create_connection(echo.address)
        egress.send("NET_CONNECTED", request, fd=s.fileno(), error=0)
        s.close()
        egress.send("NET_FAILED", request, error=1)
    egress.allowed.add(echo.address)
    assert inside(pool, BLOCKING, host="127.0.0.1", port=echo.address[1])[0] == "ping"
    until(lambda: echo.ended >= 4)          # they were closed, not kept


def test_an_answer_that_comes_too_late(pool, egress, echo):
    """The runner is gone: its connection ends with it."""
    held = []
    egress.judge = held.append
    until(lambda: listeners(pool) == 0)
    runner = pool.fork()
    runner.ready()
    runner.execute("import socket\n" + BLOCKING, {"host": "127.0.0.1", "port": echo.address[1]})
    until(lambda: held)
    assert listeners(pool) == 1
    runner.close()
    until(lambda: listeners(pool) == 0)
    held[0].give(socket.create_connection(echo.address))
    until(lambda: echo.ended == 1)
    egress.judge = egress.connect
    egress.allowed.add(echo.address)
    assert inside(pool, BLOCKING, host="127.0.0.1", port=echo.address[1])[0] == "ping"


def test_padding(pool, egress):
    """All that was passed is passed on, up to 128 bytes, and nothing else."""
    code = '''
import struct
def main() -> list:
    sa = struct.pack("=HHI16sI", 10, 80, 0, bytes(15) + b"\\1", 7) + bytes(range(100))
    s = socket.socket(socket.AF_INET6)
    return [-syscall(42, s.fileno(), sa, n) for n in (28, 128)]
'''
    egress.judge = lambda q: q.fail(errno.EACCES)
    assert inside(pool, code) == [errno.EACCES] * 2
    whole = struct.pack("=HHI16sI", 10, 80, 0, bytes(15) + b"\1", 7) + bytes(range(100))
    assert [q.raw for q in egress.seen] == [whole[:28], whole]
