"""sandboxd, spawn, pool-init and the real runner together."""
import json
import os
import random
import time

import pytest

from harness.instance import waits
from harness.patience import patience, until
from harness.played.sandbox import DONE, FAILED, INSPECT, KILLED, LOST, OWN, REFUSED, Sandbox

RUNNER = "sandboxd/runner/mcpbox-runner"
ONE = "def main():\n    return 1\n"


@pytest.fixture(scope="module")
def sandbox():
    # Without waiting runners, so that every process of the pool is a call's.
    with Sandbox(runner=RUNNER, slots=8, pool_min=0, pool_max=0, queue_wait="60s") as s:
        s.await_ready()
        s.tool_ms = 60000
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


def run(gateway, execution, arguments=b"{}"):
    m = gateway.call("RUN", execution=execution, arguments=arguments)
    assert m["_"] == "CALL_RESULT", m
    blob = m["body_meta"]
    return (m["outcome"], json.loads(blob[:m["body_len"]]), json.loads(blob[m["body_len"]:]))


def test_python_runs(sandbox, admind, gateway):
    arguments = b'{"name":"you"}'
    x = admind.held("def main(name: str) -> str:\n    print('out')\n    return 'hi ' + name\n",
                    arguments=arguments)
    outcome, body, meta = run(gateway, x, arguments)
    assert outcome == DONE and body["content"] == [{"type": "text", "text": "hi you"}]
    assert meta["mcpbox/execution"]["stdout"] == "out\n"
    assert admind.record(x)["cpu_us"] > 0


def test_secrets_reach_the_tool_and_no_one_else(sandbox, admind, gateway):
    value = "CANARY-7b1f\"e/+x"
    x = admind.held("import mcpbox\ndef main():\n    s = mcpbox.secrets['TOKEN']\n    print(s)\n"
                    "    return {'len': len(s), 's': s}\n", secrets=[("TOKEN", value)])
    outcome, body, meta = run(gateway, x)
    assert outcome == DONE, body
    assert json.dumps(len(value)) in json.dumps(body)
    assert "7b1f" not in json.dumps([body, meta])
    assert b"7b1f" not in admind.record(x)["stdout_result"]


@pytest.mark.parametrize("code, mode", [
    ("def main():\n    1 / 0\n", "exception"), ("def main(:\n", "bad_code"),
    ("import os\ndef main():\n    os._exit(4)\n", "exception"),
    ("import ctypes\ndef main():\n    ctypes.string_at(0)\n", "exception"),
    ("def main():\n    return 'x' * 2000000\n", "limit"),
    ("def main():\n    return len(bytearray(1 << 30))\n", "limit"),
    ("def main():\n    while True:\n        pass\n", "timeout")])
def test_typed_ends(sandbox, admind, gateway, code, mode):
    x = admind.held(code, timeout=700 if mode == "timeout" else 600000)
    outcome, body, meta = run(gateway, x)
    assert outcome == FAILED and meta["mcpbox/failure"]["failure_mode"] == mode
    assert body["isError"] is True
    assert admind.record(x)["outcome"] == FAILED


LEAVE = """
import os, threading
def say(n):
    os.write(1, (b"%04d\\n" % n) * 10000)   # under a pipe's capacity: it does not wait
def main():
    child = os.fork()
    if child == 0:
        os._exit(0)                         # as ever: it is not the runner
    os.waitpid(child, 0)
    try:
        os._exit("a status")
    except TypeError:
        say(1)
    {}
"""


@pytest.mark.parametrize("code", ["os._exit(4)", "t = threading.Thread(target=os._exit, args=(4,)); t.start(); t.join()",
                                  "from os import _exit; _exit(4)"])
def test_what_was_printed_before_the_process_left(sandbox, admind, gateway, code):
    """... is with its error, to the last byte: it says why."""
    for n in range(5):
        x = admind.held(LEAVE.format(code))
        outcome, body, meta = run(gateway, x)
        assert outcome == FAILED and "exit status 4" in body["content"][0]["text"]
        assert meta["mcpbox/execution"]["stdout"] == "0001\n" * 10000, n


@pytest.mark.parametrize("code", [
    # The channel is in the tool's process: it may write to it what it likes.
    "os.write(3, b'junk' * 10)", "os.close(3)",
    "os.write(3, bytes([0, 174, 0, 0, 0, 0, 0, 4]) + bytes(12))",
    "os.write(3, bytes([0, 154, 0, 0, 0, 0, 0, 0]) + bytes(8))"])
def test_tool_on_its_own_channel(sandbox, admind, gateway, code):
    x = admind.held(f"import os, time\ndef main():\n    {code}\n    time.sleep(600)\n", timeout=600000)
    outcome, _, meta = run(gateway, x)      # long before its time is over
    assert outcome in (FAILED, KILLED) and meta["mcpbox/failure"]["failure_mode"] != "timeout"
    assert admind.record(x)["outcome"] == outcome
    assert run(gateway, admind.held(ONE))[0] == DONE


def test_inspection(sandbox, admind):
    x = admind.held("def main(n: int):\n    'Doc.'\n", listener="admind", kind=INSPECT)
    m = admind.wait(admind.peer.start("RUN", execution=x, arguments=b"{}"))
    body = json.loads(m["body_meta"][:m["body_len"]])
    assert body["ok"] is True and body["input_schema"]["required"] == ["n"]


def fds(sandbox):
    pids = [p.pid for p in sandbox.children.values()] + list(sandbox.pool())
    return {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in pids}


def test_nothing_leaks(sandbox, admind, gateway):
    admind.record(next(iter([admind.held(ONE, hold=1)])))
    x = admind.held(ONE)
    run(gateway, x)
    admind.record(x)    # once its runner is reaped
    # The zygote may hold what it gave the runner until it waits for the next order.
    until(lambda: len(pool := sandbox.pool()) == OWN and any(map(waits, pool)), say=sandbox.pool)
    before, ids, waiting = fds(sandbox), [], set()
    while len(ids) < 200 or waiting:
        while len(ids) < 200 and len(waiting) < 16:
            ids.append(admind.held(ONE))
            waiting.add(gateway.start("RUN", execution=ids[-1], arguments=b"{}"))
        request, m = gateway.receive()
        assert m["_"] == "CALL_RESULT" and m["outcome"] == DONE
        waiting.remove(request)
    for x in ids:
        assert admind.record(x)["outcome"] == DONE
    until(lambda: fds(sandbox) == before, say=lambda: (before, fds(sandbox)), during=(FileNotFoundError,))


def test_one_record_each_while_the_pool_is_killed(sandbox, admind, gateway):
    """Runners, zygote, pool-init and spawn are killed at random under load: after some
    answers each time, so that a slow machine gets as far as a quick one."""
    rnd = random.Random(7)
    codes = (ONE, "import time\ndef main():\n    time.sleep(.1)\n")
    waiting, ids, kills, done, answers, due = set(), [], 0, 0, 0, 3
    end = time.monotonic() + patience(60)
    while (more := kills < 10 or done <= 10) or waiting:
        assert time.monotonic() < end, (kills, done, len(ids))
        while more and len(waiting) < 12:
            ids.append(admind.held(rnd.choice(codes)))
            waiting.add(gateway.start("RUN", execution=ids[-1], arguments=b"{}"))
        if more and answers >= due:
            due = answers + rnd.randint(2, 8)
            kills += 1
            if rnd.random() < 0.25:
                sandbox.kill("sandboxd-spawn")
                sandbox.start("sandboxd-spawn")
            elif pool := list(sandbox.pool()):
                try:
                    os.kill(rnd.choice(pool), 9)
                except ProcessLookupError:
                    pass
        try:
            request, m = gateway.receive(0.05)
        except TimeoutError:
            continue
        assert m["_"] in ("CALL_RESULT", "REFUSED")
        done += m["_"] == "CALL_RESULT" and m["outcome"] == DONE
        answers += 1
        waiting.remove(request)
    assert kills > 5 and len(ids) > 20
    ends = [admind.record(x)["outcome"] for x in ids]      # Admind asserts: once each
    assert set(ends) <= {DONE, FAILED, KILLED, LOST, REFUSED} and ends.count(DONE) > 10
    until(lambda: gateway.call("RUN", execution=admind.held(ONE), arguments=b"{}").get("outcome") == DONE)
