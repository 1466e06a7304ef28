"""Descriptors that a runner sends to its name server, or over a UDP relay: they cost
egress no more than a pipe does, on this kernel and on one that can't refuse them."""
import contextlib
import os
import select
import signal
import socket
import time

import pytest

from harness.patience import until
from harness.played import dns as d
from harness.played.egress import DGRAM, STREAM, Egress
from harness.work import least

WEB = "93.184.216.34"
KINDS = ("stream", "datagrams", "relay")


@pytest.fixture(scope="module", params=["this kernel", "older"])
def egress(ns, dns, request):
    with Egress(ns, older=request.param == "older") as e:
        yield e
        print(e.log()[-9000:])
        assert e.process.poll() is None, "egress ended"


def bombs():
    """Sets that watch a hundred pipes under 150 numbers each, and what keeps these."""
    sets = [select.epoll() for _ in range(4)]
    a, b = socket.socketpair()
    for _ in range(100):
        r, w = os.pipe()
        fds = [r] + [os.dup(r) for _ in range(149)]
        for e in sets:
            for fd in fds:
                e.register(fd, select.EPOLLIN)
        socket.send_fds(a, [b"x"], [r])
        for fd in fds + [w]:
            os.close(fd)
    return sets, (a, b)


def end_of(egress, net, kind):
    """The runner's end of what egress reads."""
    if kind == "relay":
        return egress.connect(net, WEB, 5355, DGRAM)[1]
    return egress.resolver(net, STREAM if kind == "stream" else DGRAM)


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_costs_no_more_than_a_pipe(egress, kind):
    net = egress.open(["r.example", f"udp {WEB} 5355"])
    pid = egress.process.pid
    assert egress.resolve(net, "r.example")[0] == 0
    before = len(os.listdir(f"/proc/{pid}/fd"))

    def job(what):
        kept, sent = (), [open(fd, "rb", 0) for fd in os.pipe()]
        if what == "bomb":
            sent, kept = bombs()
        with end_of(egress, net, kind) as s:
            os.kill(pid, signal.SIGSTOP)
            try:
                socket.send_fds(s, [b"\0\1x"], [f.fileno() for f in sent])
            except PermissionError:
                pass
            finally:
                for f in sent:      # nobody but the packet has them now
                    f.close()
                os.kill(pid, signal.SIGCONT)
        until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before)
        for s in kept:
            s.close()

    sets, kept = bombs()
    began = time.thread_time()
    for e in sets:
        e.close()
    closing = time.thread_time() - began
    for s in kept:
        s.close()
    bomb, pipe = least(pid, lambda: job("bomb"), lambda: job("pipe"))
    assert bomb - pipe < closing / 4, (bomb, pipe, closing)
    assert egress.resolve(net, "r.example")[0] == 0
    egress.finish(net)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_refused_or_end_the_socket(egress, kind):
    """No descriptor stays; what was asked before is answered."""
    net = egress.open(["r.example", f"udp {WEB} 5355"])
    question = d.question("r.example")
    with end_of(egress, net, kind) as s:
        if kind == "stream":
            s.sendall(len(question).to_bytes(2, "big") + question)
            assert s.recv(4096)
        elif kind == "datagrams":
            s.send(question)
            assert s.recv(4096)
        r, w = os.pipe()
        try:
            socket.send_fds(s, [b"\0\1x"], [w])
            refused = False
        except PermissionError:
            refused = True
        os.close(w)
        assert os.read(r, 1) == b""
        os.close(r)
        if not refused:
            with contextlib.suppress(ConnectionResetError):     # it left something unread
                assert s.recv(1) == b""
    egress.finish(net)
