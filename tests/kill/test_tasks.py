"""Tasks outlive processes: each one killed while a task works, waits for its
client, or has ended. The task is right afterwards, there is one record of it,
and it never ran twice."""
import http.client
import os
import signal
import time

import pytest

from harness.clients import tasks
from harness.clients.mcp import Client
from harness.clients.tasks import Tasks, record
from harness.instance import Instance
from harness.patience import patience, until

# Whoever dies, a task goes on; but with the sandbox its runner is gone.
GOES_ON = ("gatewayd-local", "admind", "admind-check", "admind-vault", "postgresql", "backends")
ENDS = ("sandboxd", "sandboxd-spawn", "pool-init", "runner")
#: The tools begin so. A process with this file in its own /tmp runs one: no zygote has it, and no
#: runner that waits.
RUNS = 'open("/tmp/runs", "w").close()\n'


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:call_timeout=60s", "admind:tasks_active=64"])
    yield i
    i.close()


@pytest.fixture(scope="module")
def names(instance):
    with Client(instance.address) as c:
        return {"work": tasks.publish(instance, c, "kill", "work", RUNS + tasks.WORK, "required"),
                "asks": tasks.publish(instance, c, "kill", "asks", RUNS + tasks.ASKS, "required"),
                "first": tasks.publish(instance, c, "kill", "first", RUNS + tasks.ASKS,
                                       "after_questions")}


class Patient(Tasks):
    """Asks again while something restarts; a call it sends once."""

    def get(self, task):
        def got():
            r = self.ask("tasks/get", {"taskId": task})
            assert r.result or r.error["code"] == -32603, r
            return r.result
        return until(got, 30, 0.05, during=(OSError, http.client.HTTPException))

    def again(self, what, *args, **kw):
        return until(lambda: [what(*args, **kw)], 30, 0.05,
                     during=(OSError, http.client.HTTPException, AssertionError))[0]


@pytest.fixture
def client(instance, names):
    """Each test begins with a whole service, on which nothing runs."""
    instance.control.wait(patience(60))
    with Patient(instance.address) as c:
        task = c.again(c.start, names["work"])
        assert c.until(task, timeout=30)["status"] in tasks.ENDED
        until(lambda: not instance.runners(), 10)
        yield c


def tools(instance):
    """The runners whose tool runs."""
    return [p for p in instance.pool()["mcpbox-runner"] if os.path.exists(f"/proc/{p}/root/tmp/runs")]


def kill(instance, role):
    if role == "backends":
        pids = [int(r[0]) for r in instance.psql(
            "SELECT pid FROM pg_stat_activity WHERE usename = 'mcpbox_app'")][:1]
    elif role == "runner":
        pids = tools(instance)
    elif role == "pool-init":
        pids = instance.pool()["mcpbox-pool-init"]
    else:
        pids = [instance.service_pid(role)]
    assert pids and all(pids), role
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def running(instance):
    until(lambda: tools(instance), 10, 0.01, say=instance.logs)


def psql(instance, query):
    """PostgreSQL may have just been killed."""
    return until(lambda: [instance.psql(query)], 30, 0.1, during=RuntimeError)[0]


def closed(instance, task):
    psql(instance, "SELECT 1")
    return record(instance, task)


def runs(instance, task):
    """How often sandboxd says that a call of this id ended; it logs so once a
    run, killed or not."""
    n = 0
    log = os.path.join(instance.state, "log", "sandboxd")
    for name in os.listdir(log):
        if name != "current" and not name.startswith("@"):
            continue
        with open(os.path.join(log, name), encoding="utf-8", errors="replace") as f:
            n += sum('"call_ended"' in line and task in line for line in f)
    return n


@pytest.mark.parametrize("role", GOES_ON)
def test_while_it_works(instance, client, names, role):
    task = client.start(names["work"], seconds=2.5, note=role)
    running(instance)
    time.sleep(0.3)
    kill(instance, role)
    t = client.until(task, timeout=30)
    assert t["status"] == "completed", t
    assert t["result"]["content"][0]["text"] == "done " + role
    assert closed(instance, task) == ("done", "")
    assert runs(instance, task) <= 1	# done is logged at debug level


@pytest.mark.parametrize("role", GOES_ON)
def test_while_it_asks(instance, client, names, role):
    """The question is asked again of whoever came back, and answered once."""
    task = client.start(names["asks"], rounds=2)
    first = client.questions(task)
    kill(instance, role)
    time.sleep(0.2)
    again = client.questions(task, timeout=30)
    assert again == first
    (key,) = first
    client.again(client.update, task, **{key: {"action": "accept", "content": {"name": "one"}}})
    second = until(lambda: q if (q := client.questions(task, timeout=30)) != first else None, 30)
    (key,) = second
    kill(instance, role)	# the answer may meet nobody
    client.again(client.update, task, **{key: {"action": "accept", "content": {"name": "two"}}})
    t = client.until(task, timeout=30)
    assert t["status"] == "completed" and t["result"]["content"][0]["text"] == "one two", t
    assert closed(instance, task) == ("done", "")


@pytest.mark.parametrize("role", GOES_ON)
def test_right_behind_the_answer(instance, client, names, role):
    """The client has the id: from here on nothing may be forgotten."""
    task = client.start(names["work"], seconds=0.5)
    kill(instance, role)
    t = client.until(task, timeout=40)
    outcome = closed(instance, task)
    # RUN may not have left a dying admind: then it is told, and is not run.
    if role == "admind" and t["status"] == "failed":
        assert outcome[0] in ("lost", "refused", "killed"), outcome
        return
    assert t["status"] == "completed" and outcome == ("done", ""), (t, outcome)


@pytest.mark.parametrize("role", ENDS)
@pytest.mark.parametrize("stage", ["works", "asks"])
def test_the_sandbox_dies(instance, client, names, role, stage):
    if stage == "works":
        task = client.start(names["work"], seconds=30)
        running(instance)
    else:
        task = client.start(names["asks"])
        client.questions(task)
    kill(instance, role)
    t = client.until(task, timeout=30)
    outcome = closed(instance, task)
    if role == "runner":
        assert t["status"] == "completed" and t["result"]["isError"] is True, t
        assert outcome == ("killed", "killed"), outcome     # it met no limit
    else:
        assert t["status"] == "failed" and t["error"]["code"] == -32603, t
        assert outcome[0] == "lost", outcome
    # Nobody runs it once more: the pool comes back, and is idle (its zygote
    # looks busy while it begins).
    instance.control.wait(patience(60))
    assert client.until(client.again(client.start, names["work"]))["status"] == "completed"
    until(lambda: not instance.runners(), 5, 0.05)
    assert client.get(task)["lastUpdatedAt"] == t["lastUpdatedAt"]
    assert closed(instance, task) == outcome


@pytest.mark.parametrize("role", ["gatewayd-local", "admind", "sandboxd", "postgresql"])
def test_after_it_ended(instance, client, names, role):
    task = client.start(names["work"], note="kept")
    end = client.until(task)
    kill(instance, role)
    time.sleep(0.3)
    assert client.get(task) == end
    assert closed(instance, task) == ("done", "")


@pytest.mark.parametrize("role", ["admind", "postgresql", "gatewayd-local"])
def test_cancelled_meanwhile(instance, client, names, role):
    task = client.start(names["work"], seconds=30)
    running(instance)
    kill(instance, role)
    client.again(client.cancel, task)
    assert client.until(task, timeout=30)["status"] == "cancelled"
    assert closed(instance, task) == ("killed", "killed")


def test_questions_before_the_task_and_a_dead_gateway(instance, client, names):
    """What it gave out is no good any more; nothing that nobody knows of stays."""
    r = client.ask("tools/call", {"name": names["first"], "arguments": {}})
    assert r.result["resultType"] == "input_required", r
    kill(instance, "gatewayd-local")
    params = {"name": names["first"], "arguments": {}, "requestState": r.result["requestState"]}
    # it is starting
    r = until(lambda: r if (r := client.again(client.ask, "tools/call", params)).error["code"] != -32603 else None,
              20, 0.1)
    assert r.error["code"] == -32602, r
    instance.psql("UPDATE mcpbox.tasks SET expires_at = now() WHERE state = 'input_required'")
    until(lambda: not instance.runners(), 10, 0.05)


def test_one_record_each(instance):
    """Of all that was done to them: every task has ended, each with its one
    execution, and none is left running."""
    rows = psql(instance, "SELECT count(*), count(x.id), count(*) FILTER (WHERE x.state = 'closed')"
                " FROM mcpbox.tasks t LEFT JOIN mcpbox.executions x ON x.id = t.id")
    assert rows[0][0] == rows[0][1] == rows[0][2], rows
    assert not psql(instance, "SELECT 1 FROM mcpbox.tasks WHERE state IN ('working', 'input_required')")
