"""admind and its tasks between a played gateway and a played sandbox: what is
said when, and what neither of them gains."""
import contextlib
import json
import os
import secrets
import signal
import time
import uuid

import pytest

from harness.ipc import Closed
from harness.patience import patience, until
from harness.played.admind import DONE, FAILURES, KILLED, Admind, failure
from harness.tlv import untlv

MAY = 1
WORKING, INPUT_REQUIRED, COMPLETED, FAILED, CANCELLED = 1, 2, 3, 4, 5
ADMIND = 3	# enum listener
QUESTION = b'{"k":{"method":"elicitation/create","params":{"message":"?"}}}'


@pytest.fixture(scope="module")
def a():
    x = Admind(settings=["tasks_active 6"])
    try:
        x.all_up()
        yield x
        print(x.logs()[-6000:])
    finally:
        x.close()


@pytest.fixture(autouse=True)
def honest(a):
    yield
    a.on_check = lambda m: ("CHECK_OK", {})
    a.on_vault, a.on_sandbox = a.honest_vault, a.honest_sandbox
    a.named.clear()
    a.sql("UPDATE mcpbox.tasks SET principal = 'done', state = 'cancelled', questions = NULL,"
          " failure = NULL, result = NULL")


@pytest.fixture
def name(a):
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server, task="required")
    return server + "__greet"


def sandbox(a):
    return a.fakes["sandbox"]


def said(a, what, task):
    return [m for m in sandbox(a).seen if m["_"] == what and m["execution"] == task]


def start(gw, name, arguments=b"{}", declared=33):
    m = gw.call("AUTHORISE", tool=name, arguments=arguments, task=MAY, declared=declared)
    assert m["_"] == "TASK_STATE", m
    return m["task"]


def run(a, gw, name, **kw):
    """A task, and the RUN of it."""
    task = start(gw, name, **kw)
    a.until(lambda: said(a, "RUN", task))
    return task, said(a, "RUN", task)[0]


def ask(a, task, run, number=1, questions=QUESTION):
    sandbox(a).peer.send("CALL_EVENT", request=run["_request"], execution=task, kind=3,
                         number=number, json=questions)


def get(gw, task):
    return gw.call("TASK_GET", task=task, credential="")


def reaches(gw, task, status, seconds=10):
    def there():
        m = get(gw, task)
        # PostgreSQL may be away for a moment.
        assert m["_"] == "TASK_STATE" or failure(m) == "STORAGE_UNAVAILABLE", m
        return m if m.get("status") == status else None
    return until(there, seconds, say=lambda: get(gw, task))


def kept(a, task):
    """The intent that the sandbox was given for its record."""
    return dict(untlv(a.held[task]["context"][len("sealed:"):]))[14]


def row(a, task):
    return a.rows("SELECT state, outcome, failure FROM mcpbox.executions WHERE id = %s",
                  uuid.UUID(bytes=task))


def test_admind_runs_it(a, gw, name):
    task, r = run(a, gw, name, arguments=b'{"x": 1}')
    assert r["arguments"] == b'{"x": 1}'
    assert a.held[task]["listener"] == ADMIND
    context = dict(untlv(a.held[task]["context"][len("sealed:"):]))
    assert int.from_bytes(context[30], "big") == 1
    # The answer follows the commit of both rows.
    assert row(a, task) == [("open", None, None)]
    m = get(gw, task)
    assert m["status"] == WORKING and m["ttl_ms"] == 3600000 and m["poll_ms"] == 1000
    assert a.record(task, intent=kept(a, task), meta_len=2,
                    result=b'{"content":[]}{}')["_"] == "OK"
    m = get(gw, task)
    assert m["status"] == COMPLETED and m["body_len"] == 14 and m["body_meta"] == b'{"content":[]}{}'
    assert row(a, task) == [("closed", "done", None)]
    assert len(said(a, "RUN", task)) == 1


def test_a_wish_alone_makes_no_task(a, gw):
    """Only a version's mode does."""
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server)
    m = gw.call("AUTHORISE", tool=server + "__greet", arguments=b"{}", task=MAY, declared=32)
    assert m["_"] == "RUN_ID"
    a.record(m["execution"], intent=kept(a, m["execution"]))


def test_required_and_not_declared(a, gw, name):
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}", task=0)
    assert m["_"] == "REFUSED" and failure(m) == "CAPABILITY_REQUIRED"
    assert json.loads("{" + m["data"].decode() + "}") == {
        "requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


def test_the_commit_is_synchronous(a, gw, name):
    """A backend with synchronous_commit off may not make the row."""
    with a.pg.connect("postgres") as c:
        c.execute("CREATE OR REPLACE FUNCTION public.sure() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                  " IF current_setting('synchronous_commit') = 'off' THEN RAISE 'unsure'; END IF;"
                  " RETURN NULL; END $$")
        c.execute("GRANT EXECUTE ON FUNCTION public.sure TO PUBLIC")
        c.execute("CREATE TRIGGER zz_sure AFTER INSERT OR UPDATE OF result ON mcpbox.tasks"
                  " FOR EACH ROW EXECUTE FUNCTION public.sure()")
    try:
        task, _ = run(a, gw, name)
        assert a.record(task, intent=kept(a, task))["_"] == "OK"
        assert get(gw, task)["status"] == COMPLETED
    finally:
        with a.pg.connect("postgres") as c:
            c.execute("DROP TRIGGER zz_sure ON mcpbox.tasks")


def test_questions_and_answers(a, gw, name):
    task, r = run(a, gw, name)
    two = b'{"k":{"method":"elicitation/create"},"s":{"method":"sampling/createMessage"}}'
    ask(a, task, r, questions=two)
    m = reaches(gw, task, INPUT_REQUIRED)
    # What its client did not declare is not asked.
    assert json.loads(m["body_meta"][:m["body_len"]]) == {"1-k": {"method": "elicitation/create"}}
    assert not said(a, "CALL_ANSWER", task)
    m = gw.call("TASK_UPDATE", task=task, credential="", answers=b'{"1-k":{"action":"accept"}}')
    assert m["_"] == "TASK_STATE" and m["status"] == WORKING
    a.until(lambda: said(a, "CALL_ANSWER", task))
    answer = said(a, "CALL_ANSWER", task)[0]
    assert answer["number"] == 1
    got = json.loads(answer["json"])
    assert got["k"] == {"result": {"action": "accept"}} and got["s"]["error"]["code"] == -32602
    # All of it undeclared: answered at once.
    ask(a, task, r, number=2, questions=b'{"s":{"method":"roots/list"}}')
    a.until(lambda: [m for m in said(a, "CALL_ANSWER", task) if m["number"] == 2])
    assert get(gw, task)["status"] == WORKING
    a.record(task, intent=kept(a, task))


@pytest.mark.parametrize("bad", [b"", b"[]", b"{", b'{"k":1}{', b'{"\\u0000":{"method":"x"}}', b"\xff"])
def test_questions_that_are_none(a, gw, name, bad):
    """sandboxd never sends these: whatever does, its call ends."""
    task, r = run(a, gw, name)
    ask(a, task, r, questions=bad)
    a.until(lambda: (task, FAILURES["KILLED"]) in a.cancelled)
    assert get(gw, task)["status"] == WORKING
    a.record(task, KILLED, "KILLED", intent=kept(a, task), result=b"")
    assert get(gw, task)["status"] == FAILED


@pytest.mark.parametrize("bad", [b"", b"[]", b"{", b'{"1-k":1}', b'{"1-k":null}', b"\xff{}",
                                 b'{"1-k":{"\\u0000":1}', b"[" * 100000])
def test_answers_that_are_none(a, gw, name, bad):
    task, r = run(a, gw, name)
    ask(a, task, r)
    reaches(gw, task, INPUT_REQUIRED)
    m = gw.call("TASK_UPDATE", task=task, credential="", answers=bad)
    assert m["_"] == "REFUSED" and failure(m) in ("INVALID_PARAMS", "INTERNAL"), m
    assert get(gw, task)["status"] == INPUT_REQUIRED
    assert not said(a, "CALL_ANSWER", task)
    a.record(task, intent=kept(a, task))


def test_a_new_connection_attaches_and_runs_nothing(a, gw, name):
    task, r = run(a, gw, name)
    ask(a, task, r)
    reaches(gw, task, INPUT_REQUIRED)
    a.named.append(task)
    sandbox(a).drop()
    a.until(lambda: said(a, "ATTACH", task))
    assert len(said(a, "RUN", task)) == 1
    # Asked again by the sandbox it is the same question, and answered once.
    ask(a, task, said(a, "ATTACH", task)[0])
    assert reaches(gw, task, INPUT_REQUIRED)["body_len"] > 0
    gw.call("TASK_UPDATE", task=task, credential="", answers=b'{"1-k":{"action":"decline"}}')
    a.until(lambda: said(a, "CALL_ANSWER", task))
    # The answer is lost with this connection: it is told once more.
    n = len(said(a, "CALL_ANSWER", task))
    sandbox(a).drop()
    a.until(lambda: len(said(a, "ATTACH", task)) == 2)
    ask(a, task, said(a, "ATTACH", task)[1])
    a.until(lambda: len(said(a, "CALL_ANSWER", task)) > n)
    a.record(task, intent=kept(a, task))
    assert get(gw, task)["status"] == COMPLETED


def test_what_the_sandbox_does_not_name_is_lost(a, gw, name):
    task, _ = run(a, gw, name)
    sandbox(a).drop()	# and names nothing
    m = reaches(gw, task, FAILED)
    assert failure(m) == "LOST"
    a.until(lambda: row(a, task) == [("closed", "lost", "lost")])
    assert not said(a, "ATTACH", task)


@pytest.mark.parametrize("how", ["kill", "database"])
def test_a_restart_attaches(a, gw, name, how):
    task, r = run(a, gw, name)
    a.named.append(task)
    if how == "kill":
        a.kill()
        a.start()
    else:
        with a.pg.connect("postgres") as c:
            c.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      " WHERE usename = 'mcpbox_app'")
    # What happened meanwhile is told by the sandbox.
    if how == "kill":
        a.until(lambda: said(a, "ATTACH", task))
        r = said(a, "ATTACH", task)[0]
        gw = a.gateway()
    ask(a, task, r)
    reaches(gw, task, INPUT_REQUIRED)
    assert a.record(task, intent=kept(a, task))["_"] == "OK"
    assert reaches(gw, task, COMPLETED)
    assert len(said(a, "RUN", task)) == 1
    if how == "kill":
        gw.__exit__()


def test_cancelled_while_admind_was_away(a, gw, name):
    task, _ = run(a, gw, name)
    a.named.append(task)
    a.kill()
    a.sql("UPDATE mcpbox.tasks SET cancelled = true WHERE id = %s", uuid.UUID(bytes=task))
    a.start()
    a.until(lambda: (task, FAILURES["KILLED"]) in a.cancelled)
    a.record(task, KILLED, "KILLED", intent=kept(a, task))
    with a.gateway() as g:
        assert reaches(g, task, CANCELLED)


def begun_after_questions(a, gw, stops=False):
    """A call of a tool with after_questions that runs and has asked nothing yet. stops:
    admind is stopped since then, so that it counts no seconds without a question."""
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server, task="after_questions")

    def on_sandbox(m):
        if stops and m["_"] == "RUN":
            a.proc.send_signal(signal.SIGSTOP)
        return a.honest_sandbox(m)

    def begun():
        if any(m["_"] == "RUN" and m["execution"] in a.held and a.rows(
                "SELECT 1 FROM mcpbox.tasks WHERE id = %s AND tool = %s AND state = 'working'",
                uuid.UUID(bytes=m["execution"]), server + "__greet") for m in sandbox(a).seen):
            return True
        if stops:	# its row may need a moment more of admind's
            a.proc.send_signal(signal.SIGCONT)
            time.sleep(0.02)
            if [m for m in sandbox(a).seen if m["_"] == "RUN" and m["execution"] in a.held]:
                a.proc.send_signal(signal.SIGSTOP)
        return False

    a.on_sandbox = on_sandbox
    gw.start("AUTHORISE", tool=server + "__greet", arguments=b"{}", task=MAY, declared=33)
    a.until(begun)
    a.on_sandbox = a.honest_sandbox
    return [m for m in sandbox(a).seen if m["_"] == "RUN"][-1]["execution"]


def asked_first(a, gw):
    """A call of a tool with after_questions that asked something: its client knows no task.
    If two seconds passed before the question, the client knows it: then another one."""
    for _ in range(20):
        task = begun_after_questions(a, gw)
        ask(a, task, said(a, "RUN", task)[0])
        while (m := gw.receive()[1])["_"] != "TASK_STATE" or m["task"] != task:
            pass
        if m["status"] == INPUT_REQUIRED:
            return task
        a.record(task, intent=kept(a, task))
    raise AssertionError("each task was told of before its question")


def test_a_task_that_no_client_knows_is_dropped(a, gw):
    """Its credential may be over, so none is asked for."""
    task = asked_first(a, gw)
    with a.gateway() as other, a.gateway("tunnel") as tunnel:
        for stranger in (other, tunnel):
            assert failure(stranger.call("TASK_DROP", task=task)) == "UNKNOWN_TASK"
    assert failure(gw.call("TASK_DROP", task=os.urandom(16))) == "UNKNOWN_TASK"
    assert (task, FAILURES["KILLED"]) not in a.cancelled
    assert gw.call("TASK_DROP", task=task)["_"] == "OK"
    a.until(lambda: (task, FAILURES["KILLED"]) in a.cancelled)
    a.record(task, KILLED, "KILLED", intent=kept(a, task))
    assert reaches(gw, task, CANCELLED)


def test_a_task_that_its_client_knows_is_not_dropped(a, gw):
    """Neither one that was told of at once, nor one whose questions were answered, nor one
    that somebody asked for, nor one of an earlier connection."""
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server, task="required")
    task, _ = run(a, gw, server + "__greet")
    assert failure(gw.call("TASK_DROP", task=task)) == "UNKNOWN_TASK"
    a.record(task, intent=kept(a, task))
    for how in ("answered", "asked for", "reconnected"):
        with a.gateway() as g:
            task = asked_first(a, g)
            if how == "answered":
                m = g.call("TASK_UPDATE", task=task, credential="", answers=b'{"1-k":{"action":"accept"}}')
                assert m["status"] == WORKING, m
            elif how == "asked for":
                assert get(g, task)["status"] == INPUT_REQUIRED
            if how != "reconnected":
                assert failure(g.call("TASK_DROP", task=task)) == "UNKNOWN_TASK", how
        if how == "reconnected":
            with a.gateway() as g:
                assert failure(g.call("TASK_DROP", task=task)) == "UNKNOWN_TASK"
        assert (task, FAILURES["KILLED"]) not in a.cancelled
        a.record(task, intent=kept(a, task))


def heard(gw):
    """Was a task told of on this connection, whose other end has died?"""
    with contextlib.suppress(Closed):
        while True:
            if gw.receive()[1]["_"] == "TASK_STATE":
                return True
    return False


@pytest.mark.parametrize("known", [False, True])
def test_a_task_that_nobody_heard_of_ends(a, known):
    """after_questions: admind dies before the first question, or after it. That nothing is
    asked for two seconds is told too: where these passed before the death, it dies again."""
    for _ in range(20):
        with a.gateway() as gw:
            task = begun_after_questions(a, gw, stops=not known)
            while known and gw.receive()[1]["_"] != "TASK_STATE":
                pass
            a.named.append(task)
            a.kill()
            told = known or heard(gw)
        a.start()
        a.until(lambda: said(a, "ATTACH", task))
        if told is known:
            break
        a.record(task, KILLED, "KILLED", intent=kept(a, task))
    assert told is known
    if known:
        time.sleep(0.3)
    else:
        a.until(lambda: (task, FAILURES["KILLED"]) in a.cancelled)
    assert ((task, FAILURES["KILLED"]) in a.cancelled) is not known
    a.record(task, KILLED, "KILLED", intent=kept(a, task))


def test_an_orderly_end_tells_what_a_call_became(a, gw):
    """after_questions, before the first question: a task now, that the next life finds."""
    task = begun_after_questions(a, gw)
    a.named.append(task)
    a.stop()
    while (m := gw.receive()[1])["_"] == "CATALOGUE_CHANGED":
        pass
    assert m["_"] == "TASK_STATE" and m["task"] == task and m["status"] == WORKING, m
    a.start()
    a.until(lambda: said(a, "ATTACH", task))
    time.sleep(0.3)
    assert (task, FAILURES["KILLED"]) not in a.cancelled
    a.record(task, intent=kept(a, task))
    with a.gateway() as g:
        assert reaches(g, task, COMPLETED)


def test_cancelled_too_late_is_completed(a, gw, name):
    task, _ = run(a, gw, name)
    m = gw.call("TASK_CANCEL", task=task, credential="")
    assert m["_"] == "TASK_STATE" and m["status"] == WORKING
    a.until(lambda: (task, FAILURES["KILLED"]) in a.cancelled)
    a.record(task, intent=kept(a, task))
    assert get(gw, task)["status"] == COMPLETED


def test_a_record_comes_twice(a, gw, name):
    task, _ = run(a, gw, name)
    a.record(task, intent=kept(a, task), result=b'{"content":[1]}')
    before = get(gw, task)
    a.record(task, KILLED, "KILLED", intent=kept(a, task), result=b'{"content":[2]}')
    assert get(gw, task) == before
    assert row(a, task) == [("closed", "done", None)]


def test_a_result_that_was_dropped_is_none(a, gw, name):
    task, _ = run(a, gw, name)
    a.record(task, intent=kept(a, task), result=b"")
    m = get(gw, task)
    assert m["status"] == FAILED and failure(m) == "LOST"
    assert row(a, task) == [("closed", "done", None)]


@pytest.mark.parametrize("fail, status", [
    ("EXCEPTION", COMPLETED), ("TIMEOUT", COMPLETED), ("LIMIT", COMPLETED), ("NO_ANSWER", COMPLETED),
    ("BAD_RESULT", COMPLETED), ("KILLED", COMPLETED), ("TOOL_PROTOCOL", FAILED), ("REVOKED", FAILED),
    ("BUSY", FAILED), ("SANDBOX_UNAVAILABLE", FAILED)])
def test_what_a_failure_means(a, gw, name, fail, status):
    """As for a call: an isError result completes, a JSON-RPC error fails."""
    task, _ = run(a, gw, name)
    a.record(task, 2, fail, intent=kept(a, task),
             result=b'{"content":[{"type":"text","text":"why"}],"isError":true}')
    m = get(gw, task)
    assert m["status"] == status
    if status == FAILED:
        assert failure(m) == fail and m["message"] == "why"


def test_a_record_that_lies_about_its_lengths(a, gw, name):
    task, _ = run(a, gw, name)
    with pytest.raises((AssertionError, Closed, OSError, Exception)):
        a.fakes["sandbox"].call("RECORD", timeout=2, execution=task, epoch=a.sandbox_epoch,
                                outcome=DONE, failure=0, stdout_len=2, meta_len=5,
                                stdout_result=b"123456", intent=b"", ended_us=1)
    a.until(lambda: sandbox(a).up.is_set())


def test_a_foreign_id_and_a_sandboxs_lie(a, gw, name):
    """Whoever ran it, a record can't make a task of a call, or a call of a task."""
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server)
    call = gw.call("AUTHORISE", tool=server + "__greet", arguments=b"{}")["execution"]
    task, _ = run(a, gw, name)
    a.record(call, intent=kept(a, task))	# the intent of another
    assert not a.rows("SELECT 1 FROM mcpbox.tasks WHERE id = %s", uuid.UUID(bytes=call))
    a.record(task, intent=b"")	# none: closed as a call; the sweep ends the task
    m = reaches(gw, task, FAILED)
    assert row(a, task) == [("closed", "done", None)] and failure(m) == "LOST"


def test_who_may(a, gw, name):
    task, r = run(a, gw, name)
    ask(a, task, r)
    reaches(gw, task, INPUT_REQUIRED)
    with a.gateway("tunnel") as t:
        for what, more in (("TASK_GET", {}), ("TASK_CANCEL", {}), ("TASK_UPDATE", {"answers": b"{}"})):
            for credential in ("", "local", "x" * 100):
                m = t.call(what, task=task, credential=credential, **more)
                assert m["_"] == "REFUSED" and failure(m) == "UNAUTHENTICATED", m
    # The right listener, another principal: as one that there is not.
    a.sql("UPDATE mcpbox.tasks SET principal = 'other' WHERE id = %s", uuid.UUID(bytes=task))
    there = get(gw, task)
    none = get(gw, os.urandom(16))
    for m in there, none:
        m.pop("_request", None)
    assert there == none and failure(there) == "UNKNOWN_TASK"
    assert failure(gw.call("TASK_CANCEL", task=task, credential="")) == "UNKNOWN_TASK"
    assert not [c for c in a.cancelled if c[0] == task]
    a.sql("UPDATE mcpbox.tasks SET principal = 'local', listener = 'tunnel' WHERE id = %s",
          uuid.UUID(bytes=task))
    assert failure(get(gw, task)) == "UNKNOWN_TASK"
    a.record(task, intent=kept(a, task))


def test_only_its_listeners_gateways_hear_of_it(a, gw, name):
    with a.gateway("tunnel") as t:
        task, _ = run(a, gw, name)
        a.record(task, intent=kept(a, task))
        end = time.monotonic() + patience(10)
        while True:
            _, m = gw.receive(max(0, end - time.monotonic()))
            if m["_"] == "TASK_CHANGED":
                break
        assert m == {"_": "TASK_CHANGED", "task": task, "status": COMPLETED, "principal": "local"}
        with pytest.raises(TimeoutError):
            while True:
                assert t.receive(0.3)[1]["_"] != "TASK_CHANGED"


def test_quota(a, gw, name):
    tasks = [run(a, gw, name)[0] for _ in range(6)]
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}", task=MAY, declared=32)
    # No limit of the tool.
    assert m["_"] == "REFUSED" and failure(m) == "BUSY" and "tasks_active" in str(m["message"]), m
    # No row, no context left at the sandbox.
    a.record(tasks[0], intent=kept(a, tasks[0]))
    start(gw, name)


def test_withdrawn_before_and_behind(a, gw, name):
    """The version's row is locked while the task is made: a withdrawal comes
    before it, and refuses, or behind it, and sees it."""
    tool = a.rows("SELECT t.id FROM mcpbox.tools t JOIN mcpbox.tool_names n ON n.tool_id = t.id"
                  " WHERE n.exposed_name = %s", name)[0][0]
    task, _ = run(a, gw, name)
    a.sql("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", tool)
    a.until(lambda: (task, FAILURES["STOPPED"]) in a.cancelled)
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}", task=MAY, declared=32)
    assert m["_"] == "REFUSED" and failure(m) == "STOPPED"
    a.record(task, KILLED, "STOPPED", intent=kept(a, task))
    m = get(gw, task)
    assert m["status"] == FAILED and failure(m) == "STOPPED"


def test_app_writes_no_task(a):
    for sql in ("INSERT INTO mcpbox.tasks SELECT * FROM mcpbox.tasks", "DELETE FROM mcpbox.tasks",
                "UPDATE mcpbox.tasks SET state = 'working'",
                "SELECT mcpbox.task_end(NULL, '', '', '', '', '', '')",
                "SELECT mcpbox.task_find(NULL, '', '')"):
        with pytest.raises(Exception, match="permission denied"), a.pg.connect("mcpbox_app") as c:
            c.execute(sql)
