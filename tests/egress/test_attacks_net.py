"""Attacks on the way out: a hostile tool against peek and egress, which all calls
share. Each was a way in, or a way to keep everybody else out, before it stood
here."""
import contextlib
import errno
import os
import select
import socket
import struct
import time

import pytest

from harness.net import netns, netpool
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.egress import DGRAM, STREAM, Canary, Egress

WEB = "93.184.216.34"


# --- peek ---------------------------------------------------------------------

@pytest.fixture(scope="module")
def pool():
    p = netpool.NetPool()
    yield p
    p.close()


@pytest.fixture
def played(pool):
    e = netpool.Egress(pool)
    yield e
    e.close()
    assert not e.errors, e.errors


#: An epoll set of 400,000 entries, by 40 processes with their own descriptors.
#: The kernel writes all of them into fdinfo before it gives the first line.
LARGE = '''
import ctypes, os, select, time
def large():
    ep = select.epoll()
    for child in range(40):
        r, w = os.pipe()
        if os.fork() == 0:
            for f in [os.eventfd(0) for _ in range(100)]:
                for number in range(140, 240):
                    os.dup2(f, number)
                    ep.register(number, 0)
            os.close(w)
            time.sleep(1000)
        os.close(w); os.read(r, 1); os.close(r)
    return ep
libc = ctypes.CDLL(None)
'''
ONE = '''
import socket
def main(good: int) -> int:
    for _ in range(30):
        socket.create_connection(("127.0.0.1", good)).close()
    return 30
'''
#: The same number of looks at a descriptor of one line and at that one, in turns;
#: the connects between say where they begin and end. Then only at that one.
TURNS = LARGE + '''
import socket
def main(good: int) -> None:
    small, ep = os.eventfd(0), large()
    for fd in (small, ep.fileno()) * 3:
        socket.create_connection(("127.0.0.1", good)).close()
        for _ in range(20):
            libc.connect(fd, bytes(16), 16)
    socket.create_connection(("127.0.0.1", good)).close()
    while True:
        libc.connect(ep.fileno(), bytes(16), 16)
'''


def peek_time(pool):
    """Nanoseconds of a processor that peek has had."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.path.realpath(f"/proc/{pid}/exe") == os.path.join(pool.libexec, "mcpbox-peek"):
                with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                    return int(f.read().split()[0])
    raise AssertionError("no peek")


def test_a_descriptor_that_is_long_to_describe(pool, played):
    """connect(2) on an epoll set with very many entries: reading /proc/TID/fdinfo
    of it held peek up for a second each, and no other call connected any more. So a
    look at it costs peek no more than one at a small one."""
    with netpool.Echo() as echo:
        played.allowed.add(echo.address)
        port, at = echo.address[1], []

        def judge(q):
            at.append(peek_time(pool))
            played.connect(q)
        played.judge = judge
        runner = pool.fork()
        try:
            runner.ready()
            runner.execute(TURNS, {"good": port})
            until(lambda: len(at) == 7)
            played.judge = played.connect
            costs = [b - a for a, b in zip(at, at[1:])]
            assert min(costs[1::2]) < 10 * min(costs[::2]), costs
            assert netpool.inside(pool, ONE, good=port) == 30
            assert not select.select([runner.channel], [], [], 0)[0]
        finally:
            runner.close()


def test_a_socket_that_lingers(pool, played):
    """A taken-over egress gives a socket whose close waits for hours for a peer that
    reads nothing. peek's copy is the last one."""
    def deaf():
        s = socket.socket()
        s.connect(silent.getsockname())
        s.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                s.send(bytes(65536))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 36000))
        return s

    silent = socket.create_server(("127.0.0.1", 0))
    with netpool.Echo() as echo:
        played.allowed.add(echo.address)
        port = echo.address[1]
        assert netpool.inside(pool, ONE, good=port) == 30
        for request in (1, 2):                      # nobody asked for these
            s = deaf()
            played.send("NET_CONNECTED", request, fd=s.fileno(), error=0)
            # Ours goes first: it is in a frame then, and peek has the last one.
            os.close(s.detach())
        assert netpool.inside(pool, ONE, good=port) == 30
    silent.close()


# --- egress -------------------------------------------------------------------

@pytest.fixture(scope="module")
def web(ns):
    c = Canary(ns, WEB, 80)
    c.prove()
    yield c
    c.close()


def latency(egress, web, net, many=20):
    """Seconds of the quickest of so many connects. They end whatever another call does;
    and one of them meets nobody else on the machine."""
    took = []
    for _ in range(many):
        start = time.perf_counter()
        error, s = egress.connect(net, WEB, 80)
        took.append(time.perf_counter() - start)
        assert error == 0
        s.close()
        web.reached()
    return min(took)


class Flood:
    """A process that writes to sockets as fast as they take it, and reads what
    comes."""

    def __init__(self, sockets, data):
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.run(sockets, data)
            finally:
                os._exit(1)

    @staticmethod
    def run(sockets, data):
        poll = select.epoll()
        by_number = {s.fileno(): s for s in sockets}
        for s in sockets:
            s.setblocking(False)
            poll.register(s.fileno(), select.EPOLLIN | select.EPOLLOUT)
        while True:
            for number, _ in poll.poll():
                s = by_number[number]
                with contextlib.suppress(BlockingIOError):
                    s.recv(65536)
                with contextlib.suppress(BlockingIOError):
                    for _ in range(20):
                        s.send(data)

    def __enter__(self):
        time.sleep(0.5)
        assert os.waitpid(self.pid, os.WNOHANG) == (0, 0), "the attack ended"
        return self

    def __exit__(self, *exc):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@pytest.mark.alone
@pytest.mark.parametrize("kind", [STREAM, DGRAM], ids=["streams", "datagrams"])
def test_questions_without_end(egress, web, kind):
    """64 resolver sockets of one call, and lists as long as they may be: others
    waited 200 ms and more for each connect."""
    good = egress.open([WEB])
    quiet = latency(egress, web, good)
    bad = egress.open([f"h{i}.declared.example" for i in range(64)],
                      granted=[f"h{i}.granted.example" for i in range(1000)])
    q = d.question("h63.declared.example", 1)
    socks = [egress.resolver(bad, kind) for _ in range(64)]
    with Flood(socks, (struct.pack(">H", len(q)) + q) * 40 if kind == STREAM else q):
        # It was 200 ms for each of them.
        assert any(latency(egress, web, good, 5) < 20 * quiet + 0.05 for _ in range(40))
    for s in socks:
        s.close()
    # Who asks much waits, and is not forgotten. (Those that were closed are
    # noticed when it is their turn.)
    def answer():
        error, s = egress.connect(bad, "127.0.0.1", 53)
        assert error in (0, errno.EAGAIN)
        return s
    with until(answer, step=0.1) as s:
        s.settimeout(patience(10))
        s.sendall((struct.pack(">H", len(q)) + q) * 20)
        for _ in range(20):
            size, = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))
            assert d.read_answer(s.recv(size, socket.MSG_WAITALL))[1] == d.NXDOMAIN
    egress.finish(bad)
    egress.finish(good)


@pytest.mark.alone
def test_datagrams_without_end(egress, ns, web):
    """64 UDP sockets of one call, one byte each time."""
    there = Canary(ns, WEB, 9020, DGRAM)
    there.prove()
    good = egress.open([WEB])
    quiet = latency(egress, web, good)
    bad = egress.open([f"udp {WEB} 9020"])
    socks = [egress.connect(bad, WEB, 9020, DGRAM)[1] for _ in range(64)]
    with Flood(socks, b"x"):
        # It was 200 ms for each of them.
        assert any(latency(egress, web, good, 5) < 20 * quiet + 0.05 for _ in range(40))
    assert there.reached() > 0
    for s in socks:
        s.close()
    egress.finish(bad)
    egress.finish(good)
    there.close()


def test_udp_sockets_are_counted_when_they_are_made(egress, ns, dns):
    """Connects that wait for a name together are not one look at the number."""
    dns.zone["slow.example"] = d.Answer(a=[WEB], delay=1)
    there = Canary(ns, WEB, 9021, DGRAM)
    there.prove()
    net = egress.open(["udp slow.example 9021", f"udp {WEB} 9021"])
    keep = [egress.connect(net, WEB, 9021, DGRAM)[1] for _ in range(40)]
    _, found = egress.resolve(net, "slow.example")
    asked = [egress.start_connect(net, found[0], 9021, DGRAM) for _ in range(60)]
    answers = [egress.peek.receive()[1] for _ in asked]
    made = [a["fd"] for a in answers if a["_"] == "NET_CONNECTED"]
    assert len(made) == 24 and len(answers) == 60
    for s in keep + made:
        s.close()
    egress.finish(net)
    there.close()


@pytest.fixture
def silent(ns, inside):
    """The port at which 32 addresses don't answer a SYN: a queue that is full."""
    for i in range(1, 33):
        netns.add_address(f"93.184.217.{i}")
    s = ns.new_socket(socket.AF_INET)
    s.bind(("0.0.0.0", 0))
    s.listen(0)
    fill = []
    for _ in range(4):
        c = ns.new_socket(socket.AF_INET)
        c.setblocking(False)
        c.connect_ex(("93.184.217.1", s.getsockname()[1]))
        fill.append(c)
    time.sleep(0.1)
    yield s.getsockname()[1]
    for c in [*fill, s]:
        c.close()


@pytest.fixture
def patient(ns, dns):
    """Starts an egress that gives no connect up before the test has looked at it."""
    with Egress(ns, ["connect_timeout=120s"]) as e:
        yield e


def test_descriptors_of_names_with_many_silent_addresses(patient, dns, silent):
    """A name of the attacker's own with 32 addresses at which nobody answers: its
    connects held 32 descriptors each, of those that all calls share."""
    egress = patient
    dns.zone["silent.example"] = d.Answer(a=[f"93.184.217.{i}" for i in range(1, 33)])
    net = egress.open([f"tcp silent.example {silent}"])
    _, found = egress.resolve(net, "silent.example")
    before = len(os.listdir(f"/proc/{egress.process.pid}/fd"))
    asked = [egress.start_connect(net, found[0], silent) for _ in range(32)]
    # As many as there will be; then what would come beyond them has time to.
    def more():
        return len(os.listdir(f"/proc/{egress.process.pid}/fd")) - before
    until(lambda: more() > 32 * 6, say=more)
    most = 0
    for _ in range(20):
        most = max(most, more())
        time.sleep(0.2)
    assert most <= 32 * 8 + 16
    egress.finish(net)
    for _ in asked:
        assert egress.peek.receive()[1]["error"] == errno.ENETUNREACH


def test_the_suite_behind_nat64(egress, ns, inside):
    """64:ff9b::/96 and this machine's public address: a gateway sends that back
    here, so a listener of the suite's is never open by that spelling either."""
    other = "64:ff9b::5db8:d822"                    # WEB; on lo it stands for the gateway
    netns.add_address(other)
    gateway = Canary(ns, other, 9022)
    gateway.prove()
    net = egress.open(["tcp * 9022"])
    assert egress.connect(net, other, 9022)[0] == 0 and gateway.reached() == 1
    back = os.geteuid()
    os.seteuid(egress.base + 1)
    try:
        mine = socket.create_server((WEB, 9022))
    finally:
        os.seteuid(back)
    assert egress.connect(net, other, 9022)[0] == errno.EACCES and gateway.reached() == 0
    report = egress.finish(net)
    assert any("listener of mcpbox itself" in r["reason"] for r in report["rows"])
    mine.close()
    gateway.close()


def test_a_runner_of_an_earlier_sandboxd(ns, dns, web):
    """sandboxd begins anew and numbers its nets from 1 again; a peek of before
    could still name that number."""
    with Egress(ns) as e:
        net = e.open([])
        old, e.peek = e.peek, None
        e.sandboxd.sock.close()
        assert not old.sock.recv(65536), "its link ends with sandboxd's connection"
        old.sock.close()
        e.sandboxd, e.next_net = e.connect_as("sandboxd"), net
        e.peek = e.connect_as("peek")
        assert e.open([WEB]) == net
        assert e.connect(net, WEB, 80)[0] == 0 and web.reached() == 1
        e.finish(net)
