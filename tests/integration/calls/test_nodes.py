"""Two nodes of one database (decision 0077): what a node that is gone left open past its deadline, the other closes; a
node that was only away says how it ended. Time is not waited for: the rows are made old."""
import secrets
import uuid

import pytest

from harness.played.admind import Admind
from integration.calls.test_tasks_admind import FAILED, MAY, get, kept

OPEN, LOST = [("open", None)], [("closed", "lost")]


@pytest.fixture(scope="module")
def a():
    x = Admind(settings=("node node1",))
    try:
        yield x.all_up()
        print(x.logs()[-3000:])
    finally:
        x.close()


@pytest.fixture(scope="module")
def b(a):
    x = Admind(settings=("node node2",), pg=a.pg)
    try:
        yield x.all_up()
        print(x.logs()[-3000:])
    finally:
        x.close()


def row(a, execution):
    return a.rows("SELECT state, outcome FROM mcpbox.executions WHERE id = %s", uuid.UUID(bytes=execution))


def aged(a, *executions):
    """Their deadline passed an hour ago."""
    with a.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")     # an intent does not change
        c.execute("UPDATE mcpbox.executions SET deadline = now() - interval '1 hour' WHERE id = ANY (%s)",
                  ([uuid.UUID(bytes=x) for x in executions],))


def set_node(a, node, what, ago):
    a.sql(f"UPDATE mcpbox.nodes SET {what} = now() - %s * interval '1 second' WHERE node = %s", ago, node)


def looked(b, beside=lambda: None):
    """The second node has been there, and looked, after this was asked. beside: called
    before each look of the test."""
    def seen():
        return b.rows("SELECT seen_at FROM mcpbox.nodes WHERE node = 'node2'")
    for _ in range(2):
        before = seen()
        b.until(lambda before=before: (beside(), seen() != before)[1], 30)


def call(gw, tool):
    m = gw.call("AUTHORISE", tool=tool, arguments=b'{"n": "%s"}' % secrets.token_hex(4).encode())
    assert m["_"] == "RUN_ID", m
    return m["execution"]


def counts(a, tool):
    return {o: int(n) for o, n in a.rows(
        "SELECT outcome, sum(calls) FROM mcpbox.execution_stats WHERE tool = %s GROUP BY 1", tool)}


def test_gone_and_back(a, b):
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server)
    a.approved_tool(server, "later", task="required")
    tool = server + "__greet"
    with a.gateway() as gw:
        x, y, z = call(gw, tool), call(gw, tool), call(gw, tool)
        task = gw.call("AUTHORISE", tool=server + "__later", arguments=b"{}", task=MAY, declared=33)["task"]
    a.until(lambda: row(a, task) == OPEN and x in a.held and z in a.held)
    intent = kept(a, x)
    a.kill()
    aged(a, x, z, task)     # y has time left

    # Its owner was here just now, however long the looks take.
    set_node(a, "node1", "seen_at", 30)
    set_node(a, "node2", "since", 3600)
    looked(b, lambda: set_node(a, "node1", "seen_at", 30))
    assert row(a, x) == row(a, task) == OPEN
    # Nobody was here: the database was away.
    set_node(a, "node1", "seen_at", 3600)
    set_node(a, "node2", "seen_at", 3600)
    looked(b)
    assert row(a, x) == row(a, task) == OPEN
    # It is gone, and the other one was here all the time.
    set_node(a, "node2", "since", 3600)
    b.until(lambda: row(a, x) == row(a, z) == row(a, task) == LOST, 30)
    assert row(a, y) == OPEN
    b.until(lambda: a.rows("SELECT 1 FROM mcpbox.tasks WHERE id = %s AND state = 'failed'", uuid.UUID(bytes=task)), 30)
    with b.gateway() as gw:
        assert get(gw, task)["status"] == FAILED
    assert "executions of nodes that are gone" in b.logs()
    b.until(lambda: counts(a, tool).get("lost") == 2, 90)

    # It was only away: its sandbox, which ran on, knows.
    a.named[:] = [x, y]
    before = a.logs().count("sandbox_ready")
    a.start()
    a.until(lambda: a.logs().count("sandbox_ready") > before)
    assert a.record(x, intent=intent, result=b'{"content":[{"type":"text","text":"hello"}]}')["_"] == "OK"
    assert a.rows("SELECT outcome, failure, result LIKE '%%hello%%', cpu_us FROM mcpbox.executions WHERE id = %s",
                  uuid.UUID(bytes=x)) == [("done", None, True, 5)]
    assert a.record(y)["_"] == "OK" and row(a, y) == [("closed", "done")]
    a.until(lambda: counts(a, tool) == {"lost": 1, "done": 2}, 90)
    found = a.rows("SELECT outcome FROM mcpbox.execution_index WHERE tool = %s ORDER BY 1", tool)
    assert found == [("done",), ("done",), ("lost",)]

    # Once: then it is a closed row like any, also for whoever would correct it again.
    assert a.record(x, outcome=2, failure="EXCEPTION")["_"] == "OK"
    assert row(a, x) == [("closed", "done")]
    with pytest.raises(Exception, match="closes once"):
        a.sql("UPDATE mcpbox.executions SET outcome = 'lost', failure = 'lost' WHERE id = %s", uuid.UUID(bytes=x))
    # And only by its owner: what z's sandbox says is of another epoch.
    assert a.record(z, epoch=b.sandbox_epoch)["_"] == "OK" and row(a, z) == LOST
