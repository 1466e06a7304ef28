"""A runner that was told its code while the call's intent is on its way to the
disk (sandboxd/calls/early.h): until SECRETS no byte of the tool's may run, be
imported, or be heard of."""
import marshal
import select

import pytest

from probes import ipcframes

from harness.patience import until

#: At import: a log line by way of the harness, one printed, and a frame that
#: is written to the channel by hand. Each is a canary that is heard outside.
CODE = '''
import _mcpbox, os, sys
_mcpbox.log(6, b'"canary of the harness"')
print("canary that is printed", flush=True)
class Told:
    def __del__(self):
        print("canary of an end", flush=True)
told = Told()
def main():
    return "canary of main"
'''
COMPILED = marshal.dumps(compile(CODE, "probe", "exec", dont_inherit=True))
#: Bytes that are no code object, and one of something else.
BROKEN = {"cut short": COMPILED[:40], "no code": marshal.dumps({"main": 1}),
          "nothing known": b"\xff" * 64}


def packed(runner, code, **more):
    """EXECUTE, ARGUMENTS and SECRETS of a call, not sent."""
    frames, real = [], ipcframes.send

    def catch(sock, name, /, **values):
        frames.append((name, values))
    ipcframes.send = catch
    try:
        runner.execute(code, {}, **more)
    finally:
        ipcframes.send = real
    assert [name for name, _ in frames] == ["execute", "arguments", "secrets"]
    return frames


def say(runner, frame):
    name, values = frame
    ipcframes.send(runner.channel, name, **values)


def silent(runner, seconds):
    return not select.select([runner.channel], [], [], seconds)[0]


@pytest.fixture
def prepared(pool):
    """(runner, what is still to come), given its compiled code."""
    runner = pool.fork()
    assert runner.ready()[0] == "ready"
    frames = packed(runner, CODE, compiled=COMPILED)
    say(runner, frames[0])
    yield runner, frames[1:]
    runner.close()


def test_nothing_runs_before_secrets(prepared):
    """The control is the same runner: what was silent is heard at once."""
    runner, (arguments, secrets) = prepared
    assert silent(runner, 0.5)
    assert not runner.exited(0)
    say(runner, arguments)
    assert silent(runner, 0.5)
    say(runner, secrets)
    assert runner.result()[0] == "run_result"
    assert b"canary of main" in runner.body
    assert b"canary that is printed" in runner.stdout
    assert any(kind == "log" and b"canary of the harness" in fields["json"]
               for kind, fields in runner.events)


@pytest.mark.parametrize("told", (0, 1))
def test_one_that_is_thrown_away_says_nothing(prepared, told):
    """The call was refused: its end runs no destructor, no exit handler."""
    runner, frames = prepared
    for frame in frames[:told]:
        say(runner, frame)
    assert silent(runner, 0.2)
    runner.channel.shutdown(1)
    assert runner.exited(2)
    heard = b""
    while silent(runner, 0) is False:
        piece = runner.channel.recv(65536)
        if not piece:
            break
        heard += piece
    assert heard == b""


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_code_is_compiled_instead(pool, what):
    """A cache that was damaged costs time: the source counts."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        frames = packed(runner, CODE, compiled=BROKEN[what])
        say(runner, frames[0])
        assert silent(runner, 0.3)
        for frame in frames[1:]:
            say(runner, frame)
        end = runner.result()
        assert end is not None, "the runner died of it"
        if what != "no code":
            assert end[0] == "run_result" and b"canary of main" in runner.body
    finally:
        runner.close()


# --- Pages that calls write are there before the call (sandboxd/runner/life/prefault.c).

def seen(runner):
    """(page faults, times that it began to wait) until now."""
    with open(f"/proc/self/fdinfo/{runner.pidfd}", encoding="ascii") as f:
        pid = next(int(line.split()[1]) for line in f if line.startswith("Pid:"))
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        faults = int(f.read().rsplit(")", 1)[1].split()[7])
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return faults, next(int(line.split()[1]) for line in f if line.startswith("voluntary_"))


def faults_of_code(pool, form, idle):
    """Of a runner that waited so long, from EXECUTE until it waits for ARGUMENTS."""
    code = f"{form} main(n: int = 0) -> int:\n    return n\n"
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        frames = packed(runner, code, compiled=marshal.dumps(compile(code, "probe", "exec", dont_inherit=True)))
        assert silent(runner, idle)
        before, waits = seen(runner)
        say(runner, frames[0])
        until(lambda: seen(runner)[1] != waits, 20, 0.005)
        return seen(runner)[0] - before
    finally:
        runner.close()


@pytest.mark.parametrize("form", ("def", "async def"))
def test_who_waited_long_enough_has_its_pages(pool, form):
    """The control is told at once, and meets them one by one. On a busy machine "at
    once" may be too late: then it is tried again."""
    cold = []
    until(lambda: cold.append(faults_of_code(pool, form, 0)) or max(cold) > 60, say=lambda: cold)
    warm = [faults_of_code(pool, form, 0.5) for _ in range(3)]
    assert 10 * min(warm) < max(cold), (cold, warm)
