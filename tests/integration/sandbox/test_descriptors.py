"""Descriptors that a runner sends over its channel: refused by the kernel, and, on one
that can't, closed by a process that may wait; real sandboxd, spawn, pool-init and runner."""
import contextlib
import json
import os
import signal

import pytest

from harness.patience import patience, until
from harness.played.hostile import FLOOD_DESCRIPTORS
from harness.played.sandbox import DONE, KILLED, Sandbox
from harness.work import least

RUNNER = "sandboxd/runner/mcpbox-runner"
MIB = 1 << 20
ONE = "def main():\n    return 1\n"


@pytest.fixture(scope="module", params=["this kernel", "older"])
def sandbox(request):
    # Without waiting runners, so that every process of the pool is a call's.
    with Sandbox(runner=RUNNER, slots=8, memory=64 * MIB, memory_budget=512 * MIB, pool_min=0, pool_max=0,
                 older=request.param == "older") as s:
        s.await_ready()
        yield s


@pytest.fixture
def admind(sandbox):
    a = sandbox.admind()
    yield a
    a.peer.sock.close()


@pytest.fixture
def gateway(sandbox):
    with sandbox.gateway() as g:
        yield g


def run(gateway, execution, timeout=patience(30)):
    m = gateway.call("RUN", timeout=timeout, execution=execution, arguments=b"{}")
    assert m["_"] == "CALL_RESULT", m
    blob = m["body_meta"]
    return m["outcome"], json.loads(blob[:m["body_len"]]), json.loads(blob[m["body_len"]:])


def closer_of(pid):
    """The process that closes for this one, or None."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        children = f.read().split()
    for child in children:
        with open(f"/proc/{child}/comm", encoding="ascii") as f:
            if f.read().strip() == "mcpbox-closer":
                return int(child)
    return None


@pytest.mark.parametrize("count, flag", [(1, 0), (1, 1), (2, 1), (8, 0), (9, 0), (120, 1)])
def test_descriptors_over_the_channel(sandbox, admind, gateway, count, flag):
    """A frame with descriptors, which nobody asked for, is refused to the tool, or
    ends its call at once; none of them stays open in sandboxd or its closer."""
    run(gateway, admind.held(ONE))
    pid = sandbox.children["sandboxd"].pid
    closer = closer_of(pid)
    before = len(os.listdir(f"/proc/{pid}/fd"))
    # Not its time ends it, nor does it end by itself.
    code = FLOOD_DESCRIPTORS.replace("COUNT", str(count)).replace("FLAG", str(flag))
    outcome, body, meta = run(gateway, admind.held(code, timeout=20000))
    if closer is None:
        assert outcome == DONE and body["content"][0]["text"] == "refused", body
    else:
        assert outcome == KILLED and meta["mcpbox/failure"]["failure_mode"] == "killed"
    until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before)
    if closer is not None:
        until(lambda: sorted(os.listdir(f"/proc/{closer}/fd")) == ["2", "3"],
              say=lambda: os.listdir(f"/proc/{closer}/fd"))
    assert run(gateway, admind.held(ONE))[0] == DONE


#: Sets that watch a hundred pipes under 150 numbers each; packets that nobody reads keep
#: the pipes. WHAT happens to them then: what is sent is closed here before sandboxd, which
#: is stopped, sees it. UNREAD: what comes before ends the call, and sandboxd reads no more.
BOMB = '''
import array, os, select, signal, socket, time
def rights(s, fds, frame=b"x"):
    s.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
def main():
    stopped = []
    signal.signal(signal.SIGUSR1, lambda *_: stopped.append(1))
    bombs = [select.epoll() for _ in range(4)]
    a, b = socket.socketpair()
    for _ in range(100):
        r, w = os.pipe()
        fds = [r] + [os.dup(r) for _ in range(149)]
        for bomb in bombs:
            for fd in fds:
                bomb.register(fd, select.EPOLLIN)
        rights(a, [r])
        for fd in fds + [w]:
            os.close(fd)
    s = socket.socket(fileno=os.dup(3))
    began, pipe = time.thread_time_ns(), os.pipe()
    if "WHAT" == "closed":
        for bomb in bombs:
            bomb.close()
        return str(time.thread_time_ns() - began)
    sent = [bomb.fileno() for bomb in bombs] if "WHAT" == "bomb" else list(pipe)
    os.mkdir("/tmp/built")
    while not stopped:
        time.sleep(.01)
    if UNREAD:
        s.send(b"no frame")
    try:
        rights(s, sent)
    except PermissionError:
        pass
    for fd in sent:
        os.close(fd)
    os.mkdir("/tmp/sent")
    while len(stopped) < 2:
        time.sleep(.01)
    return "refused"
'''


@pytest.mark.parametrize("unread", [False, True])
def test_what_comes_costs_no_more_than_a_pipe(sandbox, admind, gateway, unread):
    """Whatever is slow to close, sandboxd spends no time on it: compared with a pipe
    and with what the sets cost the one who made them, in the same run."""
    pid = sandbox.children["sandboxd"].pid
    run(gateway, admind.held(ONE))
    before = len(os.listdir(f"/proc/{pid}/fd"))

    def code(what):
        return BOMB.replace("WHAT", what).replace("UNREAD", str(unread))

    def runner_that(has):
        return next((p for p in sandbox.pool() if os.path.exists(f"/proc/{p}/root/tmp/{has}")), None)

    def job(what):
        request = gateway.start("RUN", execution=admind.held(code(what), timeout=60000), arguments=b"{}")
        runner = until(lambda: runner_that("built"))
        os.kill(pid, signal.SIGSTOP)
        try:
            os.kill(runner, signal.SIGUSR1)
            until(lambda: runner_that("sent"))
        finally:
            os.kill(pid, signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError):   # it may have been ended
            os.kill(runner, signal.SIGUSR1)
        while gateway.receive(patience(30))[0] != request:
            pass
        until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before and runner_that("built") is None)

    outcome, body, _ = run(gateway, admind.held(code("closed"), timeout=60000))
    assert outcome == DONE, body
    closing = int(body["content"][0]["text"]) / 1e9
    bomb, pipe = least(pid, lambda: job("bomb"), lambda: job("pipe"))
    assert bomb - pipe < closing / 4, (bomb, pipe, closing)
