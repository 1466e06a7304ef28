"""Calls that wait for their clients, at sandboxd's own sockets: clocks, bounds,
who may answer, and runners and gateways that do not keep to the rules. Real
sandboxd, spawn, pool-init and runner."""
import json
import os
import signal
import struct
import time

import pytest

from harness.ipc import Closed
from harness.played.sandbox import CTX, DONE, FAILED, KILLED, LOST, Sandbox, TEST

RUNNER = "sandboxd/runner/mcpbox-runner"
ASK_TIMEOUT = 1000      # ms
PARKED_MAX = 3
CTX["cpu"] = 16
FORM = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ASKS = ("import mcpbox\ndef main():\n"
        "    return mcpbox.elicit('How many?', {'n': int}).content['n']\n")
ONE = "def main():\n    return 1\n"


@pytest.fixture(scope="module")
def sandbox():
    # A client may take longer here than any wait of these tests.
    with Sandbox(runner=RUNNER, slots=8, ask_timeout="600s", queue_wait="60s", parked_max=PARKED_MAX) as s:
        s.await_ready()
        s.tool_ms = 60000
        yield s


@pytest.fixture(scope="module")
def impatient():
    """admind and a gateway of a sandbox whose clients have little time."""
    with Sandbox(runner=RUNNER, slots=4, ask_timeout=f"{ASK_TIMEOUT}ms", queue_wait="60s") as s:
        s.await_ready()
        s.tool_ms = 60000
        a = s.admind()
        yield a, s.gateway()
        a.peer.sock.close()


@pytest.fixture
def admind(sandbox):
    a = sandbox.admind()
    yield a
    a.peer.sock.close()


@pytest.fixture
def gateway(sandbox):
    with sandbox.gateway() as g:
        yield g


class Call:
    """A RUN whose questions and end are taken one by one."""

    def __init__(self, admind, gateway, code, **kw):
        self.gateway, self.execution = gateway, admind.held(code, **kw)
        self.began = time.monotonic()   # before it is sent: its clocks begin later
        self.request = gateway.start("RUN", execution=self.execution, arguments=b"{}")

    def next(self):
        while True:
            got, m = self.gateway.receive()
            if got == self.request:
                return m

    def question(self, number=1):
        m = self.next()
        assert m["_"] == "CALL_EVENT" and m["kind"] == 3 and m["number"] == number, m
        assert m["execution"] == self.execution
        return json.loads(m["json"])

    def answer(self, number, json_text, by=None, execution=None):
        (by or self.gateway).send("CALL_ANSWER", execution=execution or self.execution, number=number,
                                  json=json_text if isinstance(json_text, bytes) else json.dumps(json_text).encode())

    def accept(self, number, n, **kw):
        self.answer(number, {f"q{number}": {"result": {"action": "accept", "content": {"n": n}}}}, **kw)

    def end(self, given=None):
        m = given or self.next()
        assert m["_"] == "CALL_RESULT", m
        blob = m["body_meta"]
        body, meta = json.loads(blob[:m["body_len"]]), json.loads(blob[m["body_len"]:])
        return (m["outcome"], "".join(c.get("text", "") for c in body["content"]),
                meta.get("mcpbox/failure", {}).get("failure_mode"))


# ---- clocks ----

def test_the_wall_clock_stands_still(admind, gateway):
    """It is asked for longer than it may run. A machine that needs more than that for
    the running alone gets more; a clock that went on would end each of these."""
    for limit in (600, 2400, 9600, 38400):
        c = Call(admind, gateway, ASKS, timeout=limit)
        m = c.next()
        if m["_"] == "CALL_EVENT":
            assert json.loads(m["json"]) == {"q1": {"method": "elicitation/create", "params": {
                "message": "How many?", "requestedSchema": FORM}}}
            time.sleep(limit / 1000 + 0.2)
            c.accept(1, 7)
            m = None
        if (end := c.end(given=m)) != (FAILED, end[1], "timeout"):
            break
    assert end == (DONE, "7", None)
    assert admind.record(c.execution)["outcome"] == DONE


def test_and_goes_on_where_it_stood(admind, gateway):
    """It runs for a tenth of its time between two questions. Did each answer give it all
    its time again, it would end by the 64 questions that it may ask."""
    c = Call(admind, gateway, "import mcpbox, time\ndef main():\n    while True:\n        time.sleep(0.1)\n"
             "        mcpbox.elicit('n', {'n': int})\n", timeout=1000)
    while (m := c.next())["_"] == "CALL_EVENT":
        c.accept(m["number"], 1)
    outcome, text, failure = c.end(given=m)
    assert (outcome, failure) == (FAILED, "timeout") and "timeout_ms is 1000 ms" in text, text


def test_a_silent_client(impatient):
    c = Call(*impatient, ASKS)
    c.question()
    outcome, text, failure = c.end()
    took = (time.monotonic() - c.began) * 1000
    assert (outcome, failure) == (FAILED, "no_answer") and "ask_timeout is 1000 ms" in text
    assert ASK_TIMEOUT - 20 <= took, took


def test_the_tool_may_go_on_without(impatient):
    c = Call(*impatient, "import mcpbox\ndef main():\n    try:\n        mcpbox.elicit('n', {'n': int})\n"
             "    except mcpbox.ClientError as e:\n        return 'without'\n")
    c.question()
    m = c.next()
    c.accept(1, 3)      # late: nothing
    assert c.end(given=m) == (DONE, "without", None)


def test_cpu_time_is_counted(admind, gateway):
    c = Call(admind, gateway, "import mcpbox, threading\ndef burn():\n    while True:\n        pass\ndef main():\n"
             "    threading.Thread(target=burn, daemon=True).start()\n    mcpbox.elicit('n', {'n': int})\n", cpu=1000)
    c.question()    # and nobody answers
    outcome, text, failure = c.end()
    assert (outcome, failure) == (FAILED, "limit") and "cpu_ms" in text


def test_a_tool_that_stops_waiting(admind, gateway):
    c = Call(admind, gateway, "import asyncio, mcpbox\nasync def main():\n    try:\n"
             "        await asyncio.wait_for(mcpbox.elicit('n', {'n': int}), 0.1)\n"
             "    except asyncio.TimeoutError:\n        mcpbox.log('left')\n"
             "    return (await mcpbox.elicit('n', {'n': int})).content['n']\n")
    c.question()
    m = c.next()
    assert m["_"] == "CALL_EVENT" and b"left" in m["json"], m
    c.accept(1, 1)
    c.question(2)
    c.accept(2, 2)
    assert c.end() == (DONE, "2", None)
    # One that does not ask again just ends, question or not: it leaves its thread time to ask.
    for pause in (0.2, 1, 5, 25):
        c = Call(admind, gateway, "import threading, time, mcpbox\ndef main():\n"
                 "    t = threading.Thread(target=lambda: mcpbox.elicit('n', {'n': int}), daemon=True)\n"
                 f"    t.start()\n    time.sleep({pause})\n    return 'left'\n", timeout=60000)
        m = c.next()
        if m["_"] == "CALL_EVENT":
            break
    assert m["_"] == "CALL_EVENT" and c.end() == (DONE, "left", None)


# ---- bounds ----

def test_so_many_may_wait_and_the_rest_runs(admind, gateway):
    parked = [Call(admind, gateway, ASKS) for _ in range(PARKED_MAX)]
    seen = {}
    for _ in parked:
        request, m = gateway.receive()
        seen[request] = m
    assert all(m["_"] == "CALL_EVENT" and m["kind"] == 3 for m in seen.values())
    c = Call(admind, gateway, ASKS)
    outcome, text, failure = c.end()
    assert (outcome, failure) == (FAILED, "no_answer") and f"parked_max is {PARKED_MAX}" in text
    assert Call(admind, gateway, ONE).end() == (DONE, "1", None)
    for p in parked:
        p.accept(1, 5)
    ends = [gateway.receive()[1] for _ in parked]
    assert [m["outcome"] for m in ends] == [DONE] * PARKED_MAX
    c = Call(admind, gateway, ASKS)     # their places are free again
    c.question()
    c.accept(1, 6)
    assert c.end() == (DONE, "6", None)


def test_never_more_than_half_of_the_slots():
    with Sandbox(runner=RUNNER, slots=3, parked_max=200, queue_wait="60s") as s:
        s.await_ready()
        s.tool_ms = 60000
        a, g = s.admind(), s.gateway()
        # The time of the first call is that of the pool's start, too.
        both = [Call(a, g, ASKS, timeout=60000) for _ in range(2)]
        assert all(g.receive()[1]["kind"] == 3 for _ in both)
        assert "parked_max is 2" in Call(a, g, ASKS).end()[1]
        assert Call(a, g, ONE).end() == (DONE, "1", None)


def test_asking_has_an_end(admind, gateway):
    c = Call(admind, gateway, "import mcpbox\ndef main():\n    for i in range(1000):\n"
             "        mcpbox.roots()\n")
    for i in range(1, 65):
        assert list(c.question(i)) == [f"q{i}"]
        c.answer(i, {f"q{i}": {"result": {"roots": []}}})
    outcome, text, failure = c.end()
    assert (outcome, failure) == (FAILED, "limit") and "64" in text


# ---- answers ----

def test_only_who_runs_it_may_answer(sandbox, admind, gateway):
    c = Call(admind, gateway, ASKS)
    c.question()
    with sandbox.gateway() as other, sandbox.gateway("tunnel") as tunnel:
        for by in (other, tunnel, admind.peer):
            c.accept(1, 666, by=by)
        c.accept(2, 666)
        c.accept(0, 666)
        c.accept(2 ** 32 - 1, 666)
        c.accept(1, 666, execution=os.urandom(16))
        # Each connection answers in order: these came after what it said before.
        for by in (other, tunnel):
            assert by.call("RUN", execution=os.urandom(16), arguments=b"{}")["_"] == "REFUSED"
        m = admind.wait(admind.peer.start("RUN", execution=os.urandom(16), arguments=b"{}"))
        assert m["_"] == "REFUSED"
        c.accept(1, 8)
        assert c.end() == (DONE, "8", None)
        c.accept(1, 9)      # it has ended
        assert Call(admind, gateway, ONE).end() == (DONE, "1", None)


@pytest.mark.parametrize("json_text, said", [
    (b"", "can't be used"), (b"{", "can't be used"), (b'{"q1":1,"q1":2}', "can't be used"),
    (b"\xff", "can't be used"), (b"[" * 100, "can't be used"),
    (b"[]", "did not answer"), (b"null", "did not answer"), (b"{}", "did not answer"),
    (b'{"q1":7}', "did not answer"), (b'{"q1":{"result":7}}', "did not answer"),
    (b'{"q2":{"result":{}}}', "did not answer"),
    (b'{"q1":{"error":{"code":-1,"message":"not today"}}}', "not today"),
    (b'{"q1":{"error":{"code":"x","message":{}}}}', ""),
    (b'{"q1":{"result":{"action":"accept","content":{"n":1e400}}}}', "can't be used"),
    (b'{"q1":{"result":{"action":"accept","content":{"n":"x"}}}}', "does not fit"),
    (b'{"q1":{"result":{"action":"accept","content":{}}}}', "lacks 'n'"),
    (b'{"q1":{"result":{"action":"rm -rf"}}}', "no action"),
])
def test_answers_that_are_none(admind, gateway, json_text, said):
    c = Call(admind, gateway, ASKS)
    c.question()
    c.answer(1, json_text)
    outcome, text, failure = c.end()
    assert outcome == FAILED and failure == "no_answer" and said in text, text


def test_large_answers(admind, gateway):
    code = ("import mcpbox\ndef main():\n"
            "    return str(len(mcpbox.sample('x')['content']['text']))\n")
    for size, want in ((60_000, "60000"), (900_000, "900000")):
        c = Call(admind, gateway, code)
        c.question()
        c.answer(1, {"q1": {"result": {"role": "assistant", "content": {"type": "text", "text": "x" * size}}}})
        assert c.end() == (DONE, want, None)


def test_malformed_frame_closes_the_gateway(sandbox, admind):
    with sandbox.gateway() as g:
        number = sandbox.table.by_name["CALL_ANSWER"]["number"]
        g.raw(struct.pack(">HHIQ", number, 0, 3, 0) + b"abc")
        with pytest.raises(Closed):
            g.receive()


def test_nobody_to_ask(sandbox, admind, gateway):
    # A test run has no client.
    execution = admind.held(ASKS, listener="admind", kind=TEST)
    m = admind.wait(admind.peer.start("RUN", execution=execution, arguments=b"{}"))
    assert m["_"] == "CALL_RESULT" and b"test run" in m["body_meta"]
    # The gateway dies while the client is asked: the tool hears it at once.
    with sandbox.gateway() as g:
        c = Call(admind, g, ASKS)
        c.question()
    r = admind.record(c.execution)      # long before a client's time is over
    assert r["outcome"] == FAILED and not r["delivered"]
    assert b"gone" in r["stdout_result"]


def test_cancelled_while_asked(admind, gateway):
    c = Call(admind, gateway, ASKS)
    c.question()
    gateway.send("CANCEL", execution=c.execution, failure=0)
    assert c.end()[0] == KILLED
    assert admind.record(c.execution)["outcome"] == KILLED


def test_one_record_whatever_dies(sandbox, gateway):
    a = sandbox.admind()
    c = Call(a, gateway, ASKS)
    c.question()
    zygotes = [pid for pid, argv in sandbox.pool().items() if argv[0].endswith("pool-init")]
    os.kill(zygotes[0], signal.SIGKILL)
    assert c.next()["_"] in ("REFUSED", "CALL_RESULT")
    assert a.record(c.execution)["outcome"] == LOST
    # admind is away when it ends: the record comes once, later.
    c = Call(a, gateway, ASKS)
    c.question()
    a.peer.sock.close()
    c.accept(1, 2)
    assert c.end() == (DONE, "2", None)
    a = sandbox.admind()
    # Named while its runner is being reaped (2) or when it waits as a record (3).
    assert [state for x, state in a.named if x == c.execution] in ([2], [3])
    assert a.record(c.execution)["outcome"] == DONE
    a.peer.sock.close()


# ---- runners that were taken over ----

RAW = """
import json, os, socket, struct, time
import mcpbox
S = socket.socket(fileno=os.dup(3))
def send(kind, payload):
    S.send(struct.pack(">HHIQ", kind, 0, len(payload), 0) + payload)
def ask(number, text):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    send(176, struct.pack(">II", number, len(text)) + text)
Q = {"q1": {"method": "roots/list", "params": {}}}
def main():
    DO
    time.sleep(60)
"""


@pytest.mark.parametrize("do", [
    "ask(2, Q)", "ask(0, Q)", "ask(1, Q); ask(1, Q)", "ask(1, Q); ask(2, Q)",
    "[ask(i, Q) for i in range(1, 100000)]",
    "ask(1, b'')", "ask(1, b'{')", "ask(1, b'[]')", "ask(1, {})", "ask(1, {'q1': 1})",
    "ask(1, {'q1': {}})", "ask(1, {'q1': {'method': 'roots/list'}})",
    "ask(1, {'q1': {'method': 'roots/list', 'params': []}})",
    "ask(1, {'q1': {'method': 'tools/call', 'params': {}}})",
    "ask(1, {'': Q['q1']})", "ask(1, {'a b': Q['q1']})", "ask(1, {'k' * 65: Q['q1']})",
    "ask(1, {'k%d' % i: Q['q1'] for i in range(17)})",
    "ask(1, b'{\"q1\":' + json.dumps(Q['q1']).encode() + b',\"q1\":1}')",
    "ask(1, b'{\"q1\":{\"method\":\"roots/list\",\"params\":{\"a\":\"\\xff\"}}}')",
    "ask(1, b' ' * 60000)", "send(176, b'x')", "send(166, b'')",
])
def test_malformed_questions_end_the_tool(admind, gateway, do):
    c = Call(admind, gateway, RAW.replace("DO", do))
    m = c.next()
    while m["_"] == "CALL_EVENT":       # a first one that was good
        m = c.next()
    assert m["_"] == "CALL_RESULT" and m["outcome"] == KILLED, m
    assert admind.record(c.execution)["outcome"] == KILLED
    assert Call(admind, gateway, ONE).end() == (DONE, "1", None)


def test_only_known_members_pass(admind, gateway):
    do = ("ask(1, {'f': {'method': 'elicitation/create', 'params': {'message': 'm', 'requestedSchema': {}, "
          "'_meta': {'progressToken': 1}, 'url': 'https://evil/', 'task': {}}, 'id': 7},"
          "'s': {'method': 'sampling/createMessage', 'params': {'messages': [], 'maxTokens': 1, 'x': 1}},"
          "'r': {'method': 'roots/list', 'params': {'_meta': {}}}})")
    c = Call(admind, gateway, RAW.replace("DO", do))
    assert c.question() == {
        "f": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}},
        "s": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        "r": {"method": "roots/list", "params": {}}}
    gateway.send("CANCEL", execution=c.execution, failure=0)


def test_what_has_no_form_is_told_to_the_tool(admind, gateway):
    for question in ("mcpbox.Sample([], temperature='warm')", "mcpbox.Elicit('x' * 60000, {'n': int})",
                     "mcpbox.Sample('x', stop_sequences='no list')"):
        c = Call(admind, gateway, f"import mcpbox\ndef main():\n    return repr(mcpbox.ask({{'k': {question}}})['k'])\n")
        outcome, text, failure = c.end()
        assert "wrong type" in text or "too long" in text, text


def test_a_child_can_not_ask(admind, gateway):
    c = Call(admind, gateway, "import mcpbox, os\ndef main():\n    r, w = os.pipe()\n    if os.fork() == 0:\n"
             "        try:\n            mcpbox.roots()\n        except RuntimeError as e:\n"
             "            os.write(w, str(e).encode())\n        os._exit(0)\n    return os.read(r, 999).decode()\n")
    assert "only the process that runs main" in c.end()[1]


# ---- secrets ----

SECRET = "Tr0ub4dor&3/secret"


def test_secrets_do_not_leave_in_questions(admind, gateway):
    code = ("import mcpbox\ndef main():\n    s = mcpbox.secrets['K']\n    mcpbox.ask({\n"
            "      'a': mcpbox.Elicit('canary ' + s, {s: str, 'canary': [s, 'x']}),\n"
            "      'b': mcpbox.Sample([('user', 'canary' + s[::-1] + s)], system_prompt=s),\n"
            "      'c': mcpbox.ElicitUrl('m', 'https://h/?canary=' + s)})\n")
    c = Call(admind, gateway, code, secrets=[("K", SECRET)])
    said = json.dumps(c.question())
    assert SECRET not in said and said.count("canary") == 5 and said.count("[secret]") == 7, said
    gateway.send("CANCEL", execution=c.execution, failure=0)


def test_a_secret_that_looks_like_the_protocol(admind, gateway):
    c = Call(admind, gateway, ASKS, secrets=[("K", "elicitation/create"), ("L", "requestedSchema")])
    assert c.question()["q1"]["method"] == "elicitation/create"
    c.accept(1, 1)
    assert c.end() == (DONE, "1", None)


def test_a_key_that_is_a_secret(admind, gateway):
    code = "import mcpbox\ndef main():\n    return repr(mcpbox.ask({mcpbox.secrets['K']: mcpbox.Roots()}))\n"
    c = Call(admind, gateway, code, secrets=[("K", "canarykey1")])
    outcome, text, _ = c.end()
    assert outcome == DONE and "holds a secret" in text and "canarykey1" not in text
