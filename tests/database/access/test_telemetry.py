"""The queue of telemetry (0015): what comes into it and when, claims, the bound, and what a batch costs among many
rows."""
import re
import uuid

import pytest

from database.test_access import as_new, store  # noqa: F401: each test begins without a document
from database.test_database import APP, DENIED, one

ON = '{"telemetry": {"endpoint": "https://collector.example"}}'
KEPT = 100000


@pytest.fixture(autouse=True)
def empty(schema):
    with schema.pg.connect("postgres") as c:
        c.execute("DELETE FROM mcpbox.telemetry_queue; DELETE FROM mcpbox.execution_queue;"
                  " UPDATE mcpbox.telemetry_state SET queued = false, dropped = 0")


def calls(c, n=1, kind="management", ended="now()"):
    """Ended calls, in order, which records_work() has not seen."""
    node, made = uuid.uuid4(), []
    c.execute("SELECT mcpbox.epoch_begin(%s, %s, 'admind')", (node, uuid.uuid4().hex))
    for _ in range(n):
        x = uuid.uuid4()
        c.execute("SELECT mcpbox.execution_close(%s, %s, 'failed', 'timeout', true, NULL, " + ended + ", 1, 'OUT', "
                  "'RESULT', %s, NULL, NULL, 'token:ann', 'local', 'mcpbox_x', %s, '{\"a\":\"ARGS\"}', " + ended + ", now())",
                  (x, node, kind, bytes(32)))
        made.append(x)
    return made


def work(c):
    while one(c, "SELECT mcpbox.records_work(250)")[0]:
        pass


def take(c, n=200, claim=None):
    """The ids of a batch; dropped and waiting."""
    claim = claim or uuid.uuid4()
    rows = c.execute("SELECT id, dropped, waiting FROM mcpbox.telemetry_take(%s, %s)", (claim, n)).fetchall()
    assert rows
    return claim, [r[0] for r in rows if r[0] is not None], rows[0][1:]


def end(c, claim, how):
    c.execute("SELECT mcpbox.telemetry_end(%s, %s)", (claim, how))


def count(owner):
    return one(owner, "SELECT count(*) FROM mcpbox.telemetry_queue")[0]


@pytest.mark.parametrize("document, queued", [
    (ON, 1), ("{}", 0), ('{"telemetry": null}', 0), ('{"telemetry": 1}', 0), ('{"a": "telemetry"}', 0),
    ('{"a": {"telemetry": {}}}', 0)])
def test_only_a_document_with_telemetry_fills_the_queue(app, owner, document, queued):
    store(app, document)
    made = calls(app)
    work(app)
    app.commit()
    assert take(app)[1] == (made if queued else [])


def test_a_document_without_it_empties_the_queue(app, owner):
    store(app, ON)
    calls(app, 3)
    work(app)
    app.commit()
    assert count(owner) == 3
    store(app, "{}")
    app.commit()
    owner.rollback()
    assert count(owner) == 0


def test_our_own_runs_and_old_calls_stay_out(app):
    store(app, ON)
    calls(app, 2, kind="inspect")
    calls(app, 2, kind="test")
    calls(app, 2, ended="now() - interval '25 hours'")
    made = calls(app)
    work(app)
    assert take(app)[1] == made


def test_a_batch_has_nothing_that_a_call_said(app):
    store(app, ON)
    calls(app)
    work(app)
    row = one(app, "SELECT t::text FROM mcpbox.telemetry_take(%s, 10) t", uuid.uuid4())[0]
    assert "mcpbox_x" in row and "timeout" in row, row
    assert not any(word in row for word in ("ARGS", "OUT", "RESULT")), row


def test_claims(app, schema):
    """No call is in two batches; one that went back is the first again; one whose sender died comes back."""
    store(app, ON)
    made = calls(app, 7)
    work(app)
    app.commit()
    first, got, (dropped, waiting) = take(app, 3)
    assert got == made[:3] and (dropped, waiting) == (0, 7)
    app.commit()
    second, got, _ = take(app, 3)
    assert got == made[3:6]
    app.commit()
    end(app, first, "back")
    app.commit()
    third, got, _ = take(app, 3)
    assert got == made[:3]
    end(app, third, "sent")
    end(app, second, "sent")
    app.commit()
    last, got, (dropped, waiting) = take(app, 3)
    assert got == made[6:] and (dropped, waiting) == (0, 1)
    app.commit()
    assert take(app, 3)[1] == []
    app.commit()
    with schema.pg.connect("postgres") as c:
        c.execute("UPDATE mcpbox.telemetry_queue SET claimed_until = now() - interval '1 second'")
    again, got, _ = take(app, 3)
    assert got == made[6:]
    # The one that was thought dead ends nothing of the other's.
    end(app, last, "sent")
    end(app, again, "dropped")
    assert take(app)[2] == (1, 0)


def test_two_nodes_take_at_once(app, schema):
    store(app, ON)
    made = calls(app, 4)
    work(app)
    app.commit()
    with schema.pg.connect(APP) as other:
        one_, got, _ = take(app, 2)
        two, others, _ = take(other, 2)     # does not wait for the other's transaction
        assert got == made[:2] and others == made[2:]
        end(other, two, "sent")
        other.commit()
        end(app, one_, "sent")
        app.commit()


def test_a_deleted_record_counts_as_dropped(app, schema):
    store(app, ON)
    made = calls(app, 3)
    work(app)
    app.commit()
    with schema.pg.connect("postgres") as c:
        c.execute("DELETE FROM mcpbox.executions WHERE id = %s", (made[1],))
    claim, got, (dropped, _) = take(app)
    assert got == [made[0], made[2]] and dropped == 1


def test_a_full_queue_counts_what_it_does_not_take(app, schema):
    store(app, ON)
    app.commit()
    with schema.pg.connect("postgres") as c:
        c.execute("INSERT INTO mcpbox.telemetry_queue (execution) SELECT gen_random_uuid()"
                  f" FROM generate_series(1, {KEPT})")
    calls(app, 5)
    work(app)
    app.commit()
    assert take(app, 1)[2] == (6, KEPT - 1)     # and the one whose record never was


def test_the_run_time_role_touches_no_table(app):
    for statement in ("INSERT INTO mcpbox.telemetry_queue (execution) VALUES (gen_random_uuid())",
                      "DELETE FROM mcpbox.telemetry_queue", "UPDATE mcpbox.telemetry_state SET dropped = 0",
                      "SELECT mcpbox.telemetry_put('{}')"):
        with pytest.raises(DENIED):
            app.execute(statement)
        app.rollback()


def test_a_batch_reads_no_more_than_itself(app, owner, schema):
    """Among many rows that wait, and many of another's claim at the front."""
    with schema.pg.connect("postgres") as c:
        c.execute("INSERT INTO mcpbox.telemetry_queue (execution, claim, claimed_until) SELECT gen_random_uuid(), "
                  "'00000000-0000-4000-8000-000000000001', 'infinity' FROM generate_series(1, 1000)")
        c.execute("INSERT INTO mcpbox.telemetry_queue (execution) SELECT gen_random_uuid()"
                  " FROM generate_series(1, 60000)")
        c.execute("ANALYZE mcpbox.telemetry_queue")
    owner.execute("SET LOCAL enable_seqscan = off")
    for statement in (
            "UPDATE mcpbox.telemetry_queue q SET claimed_until = clock_timestamp() WHERE q.seq = ANY (ARRAY(SELECT f.seq"
            " FROM mcpbox.telemetry_queue f WHERE f.claimed_until < clock_timestamp() ORDER BY f.seq LIMIT 200 FOR UPDATE"
            " SKIP LOCKED))",
            "DELETE FROM mcpbox.telemetry_queue WHERE claim = '00000000-0000-4000-8000-000000000002'",
            "SELECT max(seq) - min(seq) FROM mcpbox.telemetry_queue"):
        text = "\n".join(r[0] for r in owner.execute("EXPLAIN (ANALYZE, TIMING off) " + statement))
        rows = [int(n) * int(loops) for n, loops in re.findall(r"actual rows=(\d+) loops=(\d+)", text)]
        removed = [int(n) for n in re.findall(r"Rows Removed by Filter: (\d+)", text)]
        assert "Seq Scan" not in text and max(rows) <= 200 and sum(removed) <= 1000, text
