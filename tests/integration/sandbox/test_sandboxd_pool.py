"""Runners that wait, zygotes that are replaced and compiled code that is kept,
with real processes; admind, vault and gatewayd are played by the tests."""
import json
import os
import re
import signal
import socket
import time

import pytest

from harness.instance import waits
from harness.patience import patience, until
from harness.played.sandbox import DONE, FAILED, INSPECT, OWN, TEST, Sandbox

RUNNER = "sandboxd/runner/mcpbox-runner"
ONE = "def main():\n    return 1\n"


def box(**settings):
    """A sandbox whose pool is up, and in which a call has time until another one is."""
    s = Sandbox(queue_wait="60s", **settings)
    s.tool_ms = 60000
    try:
        s.await_ready()
    except AssertionError:
        s.close()
        raise
    return s


def doctor(sandbox):
    """The numbers of sandboxd's lines about its runners and its cache."""
    until(lambda: os.path.exists(sandbox.path("run", "sandboxd", "ctl.sock")))
    peer = sandbox.peer_root("ctl")
    try:
        rows = json.loads(peer.call("DOCTOR")["json"])
        peer.sock.shutdown(socket.SHUT_WR)
        assert peer.closed()    # sandboxd's end is none of its descriptors any more
    finally:
        peer.sock.close()
    text = {r["layer"]: r["detail"] for r in rows if r["process"] == "sandboxd"}
    found = {}
    for layer, pattern in (
            ("runners", r"(?P<waiting>\d+) wait, (?P<target>\d+) should \(at most (?P<max>\d+)\), "
                        r"(?P<forking>\d+) are being made, (?P<taken>\d+) run a call, "
                        r"(?P<ending>\d+) end; .* (?P<forks>\d+) forks at .* "
                        r"(?P<failed>\d+) failed, (?P<recycles>\d+) zygotes replaced; "
                        r"(?P<hits>\d+) calls found one waiting, (?P<misses>\d+) did not"),
            ("code_cache", r"(?P<versions>\d+) versions in .*; (?P<cached>\d+) hits, "
                           r"(?P<uncached>\d+) misses, (?P<made>\d+) compiled, "
                           r"(?P<differed>\d+) differed")):
        m = re.fullmatch(pattern, text[layer])
        assert m, text[layer]
        found |= {k: int(v) for k, v in m.groupdict().items()}
    return found


def settled(sandbox, n):
    """So many wait, and nothing else is under way."""
    def look():
        d = doctor(sandbox)
        return d if (d["waiting"], d["forking"], d["taken"], d["ending"]) == (n, 0, 0, 0) else None
    return until(look)


def run(gateway, execution):
    return gateway.call("RUN", execution=execution, arguments=b"{}")


def text(m):
    return json.loads(m["body_meta"][:m["body_len"]])["content"][0]["text"]


def runners(sandbox):
    """All but pool-init, the starter, peek and the zygotes, by being older."""
    return sorted(sandbox.pool())[OWN:]


# --- Waiting runners. ---

def test_calls_use_runners_that_wait():
    with box(slots=6, pool_min=3, pool_max=3) as s:
        a, g = s.admind(), s.gateway()
        before = settled(s, 3)
        waited = set(runners(s))
        assert len(waited) == 3 and before["forks"] == 3
        for i in range(1, 11):
            x = a.held("echo")
            assert run(g, x)["outcome"] == DONE
            assert a.record(x)["outcome"] == DONE
            now = settled(s, 3)
            assert (now["hits"], now["misses"]) == (i, 0)
            assert now["forks"] == 3 + i    # one each, never two
        # Each was used once: those that waited first are gone, or not used yet.
        assert len(runners(s)) == 3
        assert len(waited - set(runners(s))) >= 1


def test_more_calls_than_wait_at_once():
    """They get forks of their own; how many wait follows, up to its bound."""
    with box(slots=8, pool_min=1, pool_max=4) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 1)
        for _ in range(3):
            waiting = {g.start("RUN", execution=a.held("echo"), arguments=b"{}")
                       for _ in range(8)}
            while waiting:
                request, m = g.receive()
                assert m["outcome"] == DONE
                waiting.remove(request)
        d = settled(s, 4)
        assert d["target"] == 4 and d["misses"] > 0 and d["hits"] + d["misses"] >= 24


def test_a_waiting_runner_that_dies():
    with box(slots=6, pool_min=2, pool_max=2) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 2)
        victim = runners(s)[-1]
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in s.pool())
        d = settled(s, 2)
        assert d["failed"] == 1 and "a waiting runner ended" in s.log("sandboxd")
        assert run(g, a.held("echo"))["outcome"] == DONE


def test_runners_that_keep_dying_are_no_storm():
    with box(slots=6, pool_min=2, pool_max=2) as s:
        settled(s, 2)
        start = time.monotonic()
        while time.monotonic() < start + 3:
            for pid in runners(s):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        # Pauses of 0.1, 0.2, 0.4 ... s; two may die before the first of them. A machine that stood still gets
        # one more for each second.
        assert doctor(s)["forks"] <= 14 + max(0, time.monotonic() - start - 3)
        # A call still gets one.
        a, g = s.admind(), s.gateway()
        assert run(g, a.held("echo"))["outcome"] == DONE


def test_another_profile_is_forked_for_its_call():
    with box(runner=RUNNER, slots=6, pool_min=2, pool_max=2) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 2)
        code = "import os\ndef main():\n    v = os.statvfs('/tmp')\n    return v.f_blocks * v.f_frsize\n"
        assert text(run(g, a.held(code, tmp=(1 << 20).to_bytes(8)))) == str(1 << 20)
        assert text(run(g, a.held(code))) == str(64 << 20)
        # One of the other kind waits as well, for a while.
        d = until(lambda: (d := doctor(s))["waiting"] == 3 and d)
        assert d["misses"] == 1
        forks = d["forks"]
        assert text(run(g, a.held(code, tmp=(1 << 20).to_bytes(8)))) == str(1 << 20)
        assert doctor(s)["misses"] == 1 and doctor(s)["forks"] <= forks + 1


def test_no_slot_is_lost_to_waiting_runners():
    """Every slot waits for ordinary calls; one that needs another gets it."""
    with box(runner=RUNNER, slots=2, pool_min=2, pool_max=2) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 2)
        for _ in range(3):
            assert run(g, a.held(ONE, tmp=(1 << 20).to_bytes(8)))["outcome"] == DONE
            assert run(g, a.held(ONE))["outcome"] == DONE


def two_of_four(s, a, g):
    """Makes four calls, of which one runs and one waits: its runner stands still until the others
    are refused. The refusals."""
    settled(s, 1)
    runner, = runners(s)
    executions = [a.held("slow") for _ in range(4)]
    os.kill(runner, signal.SIGSTOP)
    for x in executions:
        g.start("RUN", execution=x, arguments=b"{}")
    refused = [g.receive()[1] for _ in range(2)]
    os.kill(runner, signal.SIGCONT)
    assert [m["_"] for m in refused] == ["REFUSED"] * 2
    assert [g.receive()[1]["outcome"] for _ in range(2)] == [DONE] * 2
    return refused


def test_busy_says_when_to_try_again():
    with box(slots=1, queue=1, pool_min=1, pool_max=1) as s:
        a, g = s.admind(), s.gateway()
        refused = two_of_four(s, a, g)
        assert all(100 <= m["retry_after_ms"] <= 30000 for m in refused)
        # 300 ms each on the one slot: whoever comes after three of them is
        # told to wait longer than at first.
        for _ in range(2):
            assert run(g, a.held("slow"))["outcome"] == DONE
        again = two_of_four(s, a, g)
        assert min(m["retry_after_ms"] for m in again) > min(
            m["retry_after_ms"] for m in refused)


def test_nothing_leaks_with_runners_that_wait():
    with box(runner=RUNNER, slots=8, pool_min=3, pool_max=3) as s:
        a, g = s.admind(), s.gateway()
        s.await_pool()
        own = [p.pid for p in s.children.values()] + sorted(s.pool())[:OWN]

        def fds():
            return {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in own}

        def calls(n):
            for _ in range(n):
                x = a.held(ONE, version=b"v" * 32)
                assert run(g, x)["outcome"] == DONE
                assert a.record(x)["outcome"] == DONE
            return settled(s, 3)

        calls(20)
        # The zygote may hold what it gave the last runner until it waits for the next order.
        until(lambda: waits(zygote(s)))
        before = fds()
        calls(100)
        until(lambda: fds() == before)
        assert len(s.pool()) == OWN + 3


# --- Zygotes. ---

def zygote(sandbox):
    """The newest of pool-init's own: no runner here has run for long."""
    name = os.path.basename
    named = [pid for pid, argv in sandbox.pool().items() if name(argv[0]) == "mcpbox-runner"]
    with_uid0 = [pid for pid in named if uid_inside(pid) == "0"]
    return max(with_uid0)


def uid_inside(pid):
    """None for a process that ended since it was listed: a runner whose call is over."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            outside = int(re.search(r"^Uid:\t(\d+)", f.read(), re.M).group(1))
        with open(f"/proc/{pid}/uid_map", encoding="ascii") as f:
            table = [tuple(map(int, line.split())) for line in f]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((str(outside - base + inside) for inside, base, count in table
                 if base <= outside < base + count), None)


def use_up(a, g, forks, code=ONE):
    """Calls, each of which forks a runner, until the zygote has made them
    all: the last of them has another one started."""
    for _ in range(forks):
        assert run(g, a.held(code))["outcome"] == DONE


def test_a_zygote_is_replaced_under_a_running_call():
    with box(runner=RUNNER, slots=6, pool_min=2, pool_max=2, zygote_forks=20) as s:
        a, g, g2 = s.admind(), s.gateway(), s.gateway()
        settled(s, 2)
        old, waited = zygote(s), set(runners(s))
        x = a.held("import mcpbox\ndef main():\n    mcpbox.roots()\n    return 'lived on'\n",
                   timeout=600000)     # 21 other calls come before its answer
        request = g.start("RUN", execution=x, arguments=b"{}")
        assert g.receive()[1]["number"] == 1    # it runs, and waits for the answer
        use_up(a, g2, 20)
        until(lambda: doctor(s)["recycles"] == 1)
        until(lambda: old not in s.pool())
        assert zygote(s) != old
        # Calls go on meanwhile, in runners of the new one.
        assert run(g2, a.held(ONE))["outcome"] == DONE
        g.send("CALL_ANSWER", execution=x, number=1, json=b'{"q1":{"result":{"roots":[]}}}')
        assert text(g.answer(request)) == "lived on"
        settled(s, 2)
        until(lambda: not waited & set(s.pool()))       # the call's own is reaped after its answer
        # pool-init reaped it.
        until(lambda: not os.path.exists(f"/proc/{old}"))


def test_a_zygote_is_replaced_after_its_forks():
    with box(slots=6, pool_min=1, pool_max=1, zygote_forks=10) as s:
        a, g = s.admind(), s.gateway()
        for _ in range(15):
            assert run(g, a.held("echo"))["outcome"] == DONE
        d = until(lambda: (d := doctor(s))["recycles"] and d)
        assert d["recycles"] == 1   # not at each fork after the tenth


@pytest.mark.parametrize("mode", ["stillborn", "mute"])
def test_a_new_zygote_that_fails_changes_nothing(mode):
    with box(slots=6, pool_min=1, pool_max=1, zygote_forks=10) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 1)
        s.zygote(mode)
        use_up(a, g, 10, "echo")
        if mode == "stillborn":
            until(lambda: "zygote_failed" in s.log("sandboxd-spawn"))
        for _ in range(5):
            assert run(g, a.held("echo"))["outcome"] == DONE
        assert doctor(s)["recycles"] == 0
        if mode == "mute":
            return      # sandboxd waits 20 s for the report
        s.zygote("")
        use_up(a, g, 5, "echo")


def test_another_interpreter_drops_compiled_code():
    """The fake runner 'compiles' nothing; what counts is that it is asked."""
    with box(slots=6, pool_min=1, pool_max=1, zygote_forks=12) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 1)
        assert run(g, a.held("echo", version=b"v" * 32))["outcome"] == DONE
        until(lambda: doctor(s)["versions"] == 1)
        s.zygote("another")
        use_up(a, g, 12, "echo")
        until(lambda: doctor(s)["recycles"] == 1)
        assert run(g, a.held("echo"))["outcome"] == DONE
        assert run(g, a.held("echo", version=b"w" * 32))["outcome"] == DONE
        until(lambda: doctor(s)["versions"] == 1)   # of w: v's is gone


# --- Compiled code. ---

# Whatever two processes could marshal differently, if anything.
SOURCES = [
    ONE,
    "def main():\n    return len({'a', 'b', 'c', 1, 2.5, (1, 2), b'x', None, True} - {None})\n",
    "X = frozenset(['q', 'w', 'e', 'r', 't', 'y'])\ndef main(k='q'):\n"
    "    return k in {'q', 'w', 'e', 'r', 't', 'y'} and len(X)\n",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\n    y: 'list[int]' = None\n"
    "def main():\n    '''Doc \\u00fcml\\u00e4ut.'''\n    return P(2).x\n",
    "import enum, json, os.path as p\nclass E(enum.Enum):\n    A = 'a'\n    B = 'b'\n"
    "async def main():\n    return [f'{e.name!r:>5}{e.value}' for e in E if (lambda v: v)(e)]\n",
    "def main():\n    big = 123456789012345678901234567890\n    z = 3 + 4j\n    e = ...\n"
    "    match z:\n        case complex(real=r):\n            return [big, r, e is Ellipsis, 'same', 'same', 1e309 > 1]\n",
    "def deco(*a, **k):\n    def inner(f):\n        global G\n        G = a, k\n        return f\n    return inner\n"
    "@deco('main', main='main')\ndef main(*, a: int = 1, b: str = 'x', c=(1, (2, (3,)))):\n"
    "    def gen():\n        try:\n            yield from range(a)\n        finally:\n            pass\n"
    "    return [list(gen()), b, c, G]\n",
    "\n".join(f"def f{i}(x=None, y={i}, *, s='s{i}'):\n    return [x, y, s, '{'long' * (i % 7)}']"
              for i in range(300)) + "\ndef main():\n    return f7()\n",
]


def test_compiled_code_is_made_and_used():
    with box(runner=RUNNER, slots=6, pool_min=2, pool_max=2, zygote_forks=100) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 2)
        first = {}
        for i, code in enumerate(SOURCES):
            first[i] = run(g, a.held(code, version=bytes([i + 1]) * 32))
            assert first[i]["outcome"] == DONE, (code, first[i])
            d = until(lambda: (d := doctor(s))["made"] + d["differed"] == i + 1 and d)
            assert d["differed"] == 0, code
        before = doctor(s)
        for i, code in enumerate(SOURCES):
            m = run(g, a.held(code, version=bytes([i + 1]) * 32))
            assert text(m) == text(first[i])
        assert doctor(s)["cached"] == before["cached"] + len(SOURCES)
        # The same interpreter again: what it made is still good.
        use_up(a, g, 100 - before["forks"])
        until(lambda: doctor(s)["recycles"] == 1)
        assert text(run(g, a.held(ONE, version=b"\1" * 32))) == "1"
        assert doctor(s)["cached"] == before["cached"] + len(SOURCES) + 1


def test_errors_read_the_same_from_compiled_code():
    code = ("def check(x):\n    if x > 1:\n        raise ValueError(f'no {x}')\n\n"
            "def main():\n    print('before')\n    return [check(n) for n in range(3)]\n")
    with box(runner=RUNNER, slots=6, pool_min=2, pool_max=2) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 2)
        first = run(g, a.held(code, version=b"v" * 32))
        assert first["outcome"] == FAILED and "line 3" in text(first) and "before" in text(first)
        until(lambda: doctor(s)["made"] == 1)
        again = run(g, a.held(code, version=b"v" * 32))
        assert doctor(s)["cached"] == 1
        assert text(again) == text(first)


def test_a_hash_with_other_code_gets_none_of_it():
    """The vault never says so; if it did, the source decides what runs."""
    with box(runner=RUNNER, slots=6, pool_min=2, pool_max=2) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 2)
        run(g, a.held(ONE, version=b"v" * 32))
        until(lambda: doctor(s)["made"] == 1)
        other = ONE.replace("1", "2")
        assert text(run(g, a.held(other, version=b"v" * 32))) == "2"
        assert doctor(s)["cached"] == 0
        assert text(run(g, a.held(ONE, version=b"v" * 32))) == "1"
        assert doctor(s)["cached"] == 1


def test_what_is_not_approved_is_not_compiled_ahead():
    with box(runner=RUNNER, slots=6, pool_min=2, pool_max=2) as s:
        a = s.admind()
        settled(s, 2)
        for kind in (TEST, INSPECT):
            x = a.held(ONE, listener="admind", kind=kind, version=b"v" * 32)
            assert a.wait(a.peer.start("RUN", execution=x, arguments=b"{}"))["outcome"] == DONE
        time.sleep(0.5)
        assert doctor(s)["versions"] == 0


# --- An end to all of it. ---

def alive(pids):
    """Those of them that are there and no zombies; nothing else is looked at,
    for that takes longer than what is measured."""
    found = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                if f.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    found.add(pid)
        except OSError:
            continue
    return found


def death(role):
    """Kills this one; the seconds until nothing of its pool lives."""
    with box(runner=RUNNER, slots=6, pool_min=3, pool_max=3) as s:
        a, g = s.admind(), s.gateway()
        settled(s, 3)
        g.start("RUN", execution=a.held(
            "import os, time\ndef main():\n    os.fork()\n    time.sleep(600)\n", timeout=600000),
            arguments=b"{}")
        until(lambda: len(s.pool()) == OWN + 3 + 2)
        old = set(s.pool())
        pid = (s.children[role].pid if role in s.children else
               zygote(s) if role == "zygote" else
               next(p for p, argv in s.pool().items() if argv[0].endswith("mcpbox-" + role)))
        os.kill(pid, signal.SIGKILL)
        start = time.monotonic()
        until(lambda: not alive(old), step=0.001, say=lambda: alive(old))
        took = time.monotonic() - start
        if role in s.children:
            s.children.pop(role).wait()
        a.peer.sock.close()
        g.sock.close()
    return took


@pytest.mark.alone
@pytest.mark.parametrize("role", ["sandboxd", "sandboxd-spawn", "pool-init", "starter", "peek", "zygote"])
def test_50_ms_after_a_death_no_runner_lives(role):
    """Those that wait, those that run a call, and what that has made: about as soon as after the death of their
    pid 1, which the kernel ends them with."""
    took, control = [], []
    while not took or min(took) > 10 * max(control):
        assert len(took) < 3, (took, control)
        took.append(death(role))
        control.append(death("pool-init"))
