"""The end of sandboxd in order: what it still takes, what it waits for, what it
leaves; admind, vault and gatewayd are played by the tests."""
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest

from harness.instance import SRC
from harness.ipc import Closed
from harness.patience import patience, until
from harness.played.sandbox import DONE, FAILED, KILLED, REFUSED, Sandbox

RUNNER = "sandboxd/runner/mcpbox-runner"
SLEEP = "import mcpbox, time\ndef main():\n    mcpbox.log('runs')\n    time.sleep({})\n    return 'slept'\n"
ONE = "def main():\n    return 1\n"


#: Calls have this time to end; where it has to end as well, SHORT. No wait of these tests is as long as LONG.
LONG, SHORT = "600s", "1500ms"


@pytest.fixture
def parts(request):
    with Sandbox(runner=RUNNER, slots=1, queue=8, queue_wait="60s", pool_min=0, pool_max=0,
                 drain_timeout=getattr(request, "param", LONG)) as s:
        s.await_ready()
        s.tool_ms = 60000
        a, g = s.admind(), s.gateway()
        x = a.held(ONE)
        assert g.call("RUN", execution=x, arguments=b"{}")["outcome"] == DONE
        a.record(x)
        yield s, a, g


def mode(_, m):
    with open(os.path.join(SRC, "common", "base", "failure.def"), encoding="ascii") as f:
        return re.findall(r'^F\(\w+, "(\w+)"', f.read(), re.M)[m["failure"]]


def start(a, g, code, **kw):
    x = a.held(code, **kw)
    return x, g.start("RUN", execution=x, arguments=b"{}")


def begun(g, request):
    """Waits until the tool of this call runs."""
    got, m = g.receive()
    assert got == request and m["_"] == "CALL_EVENT" and b"runs" in m["json"], m


def answers(g, *requests):
    """The answer to each, whichever comes first."""
    got = {}
    while len(got) < len(requests):
        request, m = g.receive()
        if request in requests and g.table.by_name[m["_"]]["kind"] == "answer":
            got[request] = m
    return got


def said(m):
    return json.loads(m["body_meta"][:m["body_len"]])["content"][0]["text"]


def ended(s, since=0, low=0):
    """It exited with 0, so long after that at least."""
    assert s.children["sandboxd"].wait(patience(20)) == 0
    assert low <= time.monotonic() - since, time.monotonic() - since


def stop(s, sig=signal.SIGTERM):
    """Signals it; returns when, which is read first: its time begins later."""
    begin = time.monotonic()
    s.children["sandboxd"].send_signal(sig)
    return begin


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_runs_and_waits_may_end(parts, sig):
    s, a, g = parts
    first = start(a, g, SLEEP.format("0.5"))
    second = start(a, g, SLEEP.format("0.3"))   # waits for the slot
    held = a.held(ONE)
    begun(g, first[1])
    # It stays while a record is not acknowledged, however long this takes.
    kept, take = [], a.take
    a.acknowledge = False

    def keep(timeout):
        request, m = take(timeout)
        if m["_"] == "RECORD":
            kept.append(request)
        return request, m
    a.take = keep
    stop(s, sig)
    # Nothing of it ran, and nothing new does.
    r = a.record(held)
    assert (r["outcome"], mode(s, r), r["started_us"]) == (REFUSED, "upgrading", 0)
    m = g.call("RUN", execution=held, arguments=b"{}")
    assert m["_"] == "REFUSED" and mode(s, m) == "upgrading" and m["retry_after_ms"] > 0
    m = a.hold(ONE)[1]
    assert m["_"] == "REFUSED" and mode(s, m) == "upgrading"
    for x, request in (first, second):
        assert g.answer(request)["outcome"] == DONE
        r = a.record(x)
        assert (r["outcome"], r["delivered"]) == (DONE, 1)
    for request in kept:
        a.peer.send("OK", request=request)
    ended(s)


@pytest.mark.parametrize("parts", [SHORT], indirect=True)
def test_at_the_end_of_the_time(parts):
    """One runs, one waits for its slot."""
    s, a, g = parts
    runs = start(a, g, SLEEP.format("600"), timeout=600000)
    begun(g, runs[1])
    waits = start(a, g, ONE)
    begin = stop(s)
    got = answers(g, runs[1], waits[1])     # in the order of their ids
    assert time.monotonic() - begin > 1.4
    m = got[runs[1]]
    assert m["outcome"] == KILLED and mode(s, m) == "killed" and "restart" in said(m)
    m = got[waits[1]]
    assert m["_"] == "REFUSED" and mode(s, m) == "upgrading"
    r = a.record(runs[0])
    assert (r["outcome"], mode(s, r), r["delivered"]) == (KILLED, "killed", 1)
    assert b"restart" in r["stdout_result"] and r["started_us"] > 0
    r = a.record(waits[0])
    assert (r["outcome"], mode(s, r), r["started_us"]) == (REFUSED, "upgrading", 0)
    ended(s)


@pytest.mark.parametrize("parts", [SHORT], indirect=True)
def test_a_record_that_nobody_acknowledges(parts):
    """... is waited for, and not for ever."""
    s, a, g = parts
    a.acknowledge = False
    x, request = start(a, g, ONE)
    assert g.answer(request)["outcome"] == DONE
    a.record(x)
    begin = stop(s)
    ended(s, begin, 4.4)        # drain_timeout and DRAIN_LAST_MS
    assert "records_left" in s.log("sandboxd")


def waiting_at(s):
    """The listening sockets of sandboxd at whose door somebody waits, as the kernel shows them."""
    out = subprocess.run(["ss", "-xlH"], capture_output=True, text=True, check=True, timeout=patience(20)).stdout
    return [line.split()[4].removeprefix(s.path("run", "sandboxd") + "/") for line in out.splitlines()
            if line.split()[2] != "0" and line.split()[4].startswith(s.path("run", "sandboxd"))]


def test_admind_is_away(parts):
    """Nothing runs, and nobody takes the record: 3 s, time for a restart."""
    s, a, g = parts
    s.children["sandboxd"].poll()
    x = a.held(ONE)
    a.peer.sock.close()
    request = g.start("RUN", execution=x, arguments=b"{}")
    assert g.answer(request)["outcome"] == DONE
    # It stands still until admind is at its door again: its 3 s begin then.
    s.children["sandboxd"].send_signal(signal.SIGSTOP)
    stop(s)
    back = []
    door = threading.Thread(target=lambda: back.append(s.admind()))
    door.start()
    try:
        until(lambda: "admind.sock" in waiting_at(s))
    finally:
        s.children["sandboxd"].send_signal(signal.SIGCONT)
    door.join(patience(20))
    assert back[0].record(x)["outcome"] == DONE     # the record is not lost
    ended(s)


def test_idle(parts):
    s, _, g = parts
    stop(s)
    ended(s)
    with pytest.raises((Closed, OSError)):
        g.receive()


def test_a_failing_tool_is_no_killed_one(parts):
    """It ends by itself while the process waits: as always."""
    s, a, g = parts
    x, request = start(a, g, SLEEP.format("600"), timeout=2000)
    begun(g, request)
    stop(s)
    m = g.answer(request)
    assert (m["outcome"], mode(s, m)) == (FAILED, "timeout")
    assert a.record(x)["outcome"] == FAILED
    ended(s)


def test_who_does_not_read_its_answers_is_not_waited_for(parts):
    """More answers than its socket holds, and nothing else left to do: half a second
    for them, not the time that calls have."""
    s, a, g = parts
    for _ in range(2000):
        g.start("RUN", execution=os.urandom(16), arguments=b"{}")
    # Until it has read all of them.
    until(lambda: struct.unpack("i", fcntl.ioctl(g.sock, termios.TIOCOUTQ, bytes(4))) == (0,))
    ended(s, stop(s), 0.45)
