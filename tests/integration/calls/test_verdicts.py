"""Arguments that were found valid once are not judged again (decision 0053), by admind alone,
whose peers are played: the process that judges counts what it is asked."""
import hashlib
import os
import secrets
import time
import uuid

import pytest

from harness.patience import until
from harness.played.admind import FAILURES, failure, preimage
from harness.tlv import untlv

pytestmark = pytest.mark.usefixtures("honest")

LOOSE, STRICT = b'{"type":"object"}', b'{"type":"object","maxProperties":0}'
WRONG = ("CHECK_ERRORS", {"failure": FAILURES["INVALID_ARGUMENTS"], "summary": "1 error",
                          "json": b'[{"pointer":"/a","message":"too much"}]'})


@pytest.fixture(name="asked")
def _asked(a):
    """Questions to the process that judges: schema and arguments as one. Only the
    strict schema's are refused."""
    seen = []

    def judge(m):
        if m["_"] != "CHECK_ARGUMENTS":
            return "CHECK_OK", {}
        seen.append(bytes(m["schema_arguments"]))
        if m["schema_arguments"].startswith(STRICT):
            return WRONG
        return "CHECK_OK", {"kept": b'{"password":"[redacted]"}'
                            if b"password" in m["schema_arguments"] else b""}

    a.on_check = judge
    return seen


def tool(a):
    server = "v" + secrets.token_hex(5)
    version, _ = a.approved_tool(server)
    return server + "__greet", version


def call(a, gw, name, arguments, **more):
    """RUN_ID's execution, whose record has come as well."""
    m = gw.call("AUTHORISE", tool=name, arguments=arguments, **more)
    assert m["_"] == "RUN_ID", m
    assert a.record(m["execution"])["_"] == "OK"
    return m["execution"]


def test_the_same_question_is_asked_once(a, gw, asked):
    name, _ = tool(a)
    raw = b'{"password":"p"}'
    runs = [call(a, gw, name, raw) for _ in range(5)]
    assert asked == [LOOSE + raw]
    # all of them are recorded in full, as records keep arguments; and sealed for what was sent
    for i, run in enumerate(runs):
        assert a.rows("SELECT arguments, args_sha256, state FROM mcpbox.executions WHERE id = %s",
                      uuid.UUID(bytes=run)) == [
            ('{"password":"[redacted]"}', hashlib.sha256(raw).digest(), "closed")], i
        held = a.held[run]
        material = dict(untlv(held["context"][len("sealed:"):]))
        assert material[7] == hashlib.sha256(raw).digest()
        # HELD brings what is kept, or the intent under the seal has it
        assert b'"[redacted]"' in held["arguments"] + held["context"]
        assert b'"p"' not in held["arguments"] + held["context"]
    # every byte counts
    for other in (b'{"password":"q"}', b'{"password": "p"}', b"{}"):
        call(a, gw, name, other)
        assert asked.pop() == LOOSE + other
    # so does the version, though its schema be the same
    call(a, gw, tool(a)[0], raw)
    assert asked == [LOOSE + raw] * 2


def test_somebody_else_asks_anew(a, gw, asked):
    """Or the time of an answer would tell what others send."""
    name, _ = tool(a)
    call(a, gw, name, b'{"password":"p"}')
    with a.ctl() as c:
        token = c.call("TOKEN_CREATE", name="v" + secrets.token_hex(4), scopes="tools:call",
                       listeners="tunnel", allow="*", deny="", expires_ms=0, token="")["secret"]
    with a.gateway("tunnel") as tunnel:
        for _ in range(2):
            call(a, tunnel, name, b'{"password":"p"}', credential=token)
    assert asked == [LOOSE + b'{"password":"p"}'] * 2


def test_refusals_are_judged_each_time(a, gw, asked):
    name, _ = tool(a)
    a.on_check, judge = (lambda m: asked.append(m) or WRONG), a.on_check
    for _ in range(3):
        m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
        assert m["_"] == "RESULT" and failure(m) == "INVALID_ARGUMENTS"
    assert len(asked) == 3
    a.on_check = judge
    call(a, gw, name, b"{}")


def stricter(a, name, version):
    server, t = a.rows("SELECT server_id, tool_id FROM mcpbox.tool_versions WHERE id = %s",
                       version)[0]
    pre = preimage(server.bytes, t.bytes, name.split("__")[0], schema=STRICT)
    request = uuid.uuid4()
    a.sql("SELECT mcpbox.add_version(%s, %s, '', 'x')", uuid.uuid4(), pre)
    a.sql("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", request, uuid.uuid4(), t)
    a.sql("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', %s)", request,
          hashlib.sha256(pre).digest(), b"seal")


def test_a_stricter_version_refuses_at_once(a, gw, asked):
    name, version = tool(a)
    for _ in range(2):
        call(a, gw, name, b'{"a":1}')
    assert asked == [LOOSE + b'{"a":1}']
    stricter(a, name, version)
    for n in (2, 3):
        m = gw.call("AUTHORISE", tool=name, arguments=b'{"a":1}')
        assert m["_"] == "RESULT" and failure(m) == "INVALID_ARGUMENTS"
        assert asked[1:] == [STRICT + b'{"a":1}'] * (n - 1)


def test_a_stricter_version_that_nobody_was_told_of(a, gw, asked):
    """It comes to serve behind the lookup: the remembered version and its verdict are there
    still, and the intent's INSERT finds neither enough."""
    name, version = tool(a)
    call(a, gw, name, b'{"a":1}')
    with a.pg.connect("postgres") as c:
        # admind hears nothing until this is committed, and its INSERT waits for it
        with c.transaction():
            c.execute("LOCK TABLE mcpbox.callable IN ACCESS EXCLUSIVE MODE")
            request = gw.start("AUTHORISE", tool=name, arguments=b'{"a":1}')
            time.sleep(0.3)
            assert asked == [LOOSE + b'{"a":1}']        # it is on its way, unasked
            server, t = c.execute("SELECT server_id, tool_id FROM mcpbox.tool_versions WHERE id = %s",
                                  (version,)).fetchone()
            pre = preimage(server.bytes, t.bytes, name.split("__")[0], schema=STRICT)
            ask = uuid.uuid4()
            c.execute("SELECT mcpbox.add_version(%s, %s, '', 'x')", (uuid.uuid4(), pre))
            c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", (ask, uuid.uuid4(), t))
            c.execute("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', %s)",
                      (ask, hashlib.sha256(pre).digest(), b"seal"))
    while True:
        got, m = gw.receive()
        if m["_"] != "CATALOGUE_CHANGED":
            break
    assert got == request
    assert m["_"] == "RESULT" and failure(m) == "INVALID_ARGUMENTS"
    assert asked[1:] == [STRICT + b'{"a":1}']
    assert a.rows("SELECT count(*) FROM mcpbox.executions WHERE tool = %s", name) == [(1,)]


def test_what_a_process_said_ends_with_its_connection(a, gw, asked):
    name, _ = tool(a)
    for _ in range(2):
        call(a, gw, name, b"{}")
    assert len(asked) == 1
    a.fakes["check"].drop()

    def again():    # not while it is away, even though it was known
        m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
        assert m["_"] == "RUN_ID" or failure(m) == "BUSY"
        return m["_"] == "RUN_ID" and m
    m = until(again)
    assert len(asked) == 2
    a.record(m["execution"])
    call(a, gw, name, b"{}")
    assert len(asked) == 2


def test_nothing_is_known_while_nobody_judges(a, gw, asked):
    name, _ = tool(a)
    call(a, gw, name, b"{}")
    check = a.fakes["check"]
    os.rename(check.path, check.path + ".away")
    try:
        check.drop()
        time.sleep(0.2)
        m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
        assert m["_"] == "REFUSED" and failure(m) == "BUSY"
        assert len(asked) == 1
    finally:
        os.rename(check.path + ".away", check.path)
    a.until(check.up.is_set)
    a.until(lambda: gw.call("AUTHORISE", tool=name, arguments=b"{}")["_"] == "RUN_ID")
    assert len(asked) == 2


def test_large_arguments_are_asked_about_each_time(a, gw, asked):
    name, _ = tool(a)
    for size, questions in ((4096, 1), (4097, 2)):
        asked.clear()
        raw = b'{"n":"' + b"x" * (size - 8) + b'"}'
        assert len(raw) == size
        for _ in range(2):
            call(a, gw, name, raw)
        assert asked == [LOOSE + raw] * questions


def test_it_is_bounded(a, gw, asked):
    """By what is kept of arguments, here 4096 bytes of each: 64 of them (VERDICTS_BYTES_MAX), the
    least used goes first. By number: tests/unit/admind/core/test_verdicts.c."""
    name, _ = tool(a)
    a.on_check = lambda m: asked.append(bytes(m["schema_arguments"])) or (
        "CHECK_OK", {"kept": b'"' + b"k" * 4094 + b'"'})
    for n in range(65):
        call(a, gw, name, b'{"n":%d}' % n)
        if n < 64:
            call(a, gw, name, b'{"n":0}')
    assert len(asked) == 65
    call(a, gw, name, b'{"n":64}')
    call(a, gw, name, b'{"n":0}')
    assert len(asked) == 65
    call(a, gw, name, b'{"n":1}')
    assert asked[65:] == [LOOSE + b'{"n":1}']
