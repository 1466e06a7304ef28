"""The queue of notifications (0019): what comes into it and when, claims, who waits for whom, and what a look costs."""
import uuid

import pytest

from database.test_database import APP, DENIED, Tool, one, server
from database.test_lock_order import Asked, held


@pytest.fixture(autouse=True)
def empty(schema):
    yield
    with schema.pg.connect("postgres") as c:
        c.execute("DELETE FROM mcpbox.notification_targets")


def follow(c, *names):
    c.execute("SELECT mcpbox.notification_follow(%s::text[])", (list(names),))


def waits(c, name="demo"):
    """A request that waits."""
    t = Tool(c, name + uuid.uuid4().hex[:8])
    t.publish()
    return t


def take(c, *names, n=10, claim=None, servers=None, keys=None):
    """The target and the ids of what it is told; how many there are; the claim."""
    claim = claim or uuid.uuid4()
    empty = [""] * len(names)
    rows = c.execute("SELECT target, id, total, line, item::json, secret FROM mcpbox.notification_take(%s, %s, %s, %s, %s)",
                     (claim, n, list(names), servers or empty, keys or empty)).fetchall()
    return claim, rows


def ids(rows):
    return [r[1] for r in rows]


def end(c, claim, error="", wait=0, ours=False):
    c.execute("SELECT mcpbox.notification_end(%s, %s, %s, %s)", (claim, error, wait, ours))


def due(schema):
    with schema.pg.connect("postgres") as c:
        c.execute("UPDATE mcpbox.notification_targets SET due_at = '-infinity'")


def mine(rows, *tools):
    """Other tests leave requests that wait: those of these tools, in order."""
    known = {t.request for t in tools}
    return [r for r in ids(rows) if r in known]


def test_a_target_is_told_once(app, schema):
    before = waits(app)
    follow(app, "a")
    first, second = waits(app), waits(app)
    claim, rows = take(app, "a", n=1000)
    assert {r[0] for r in rows} == {"a"} and mine(rows, before, first, second) == [first.request, second.request]
    assert {r[2] for r in rows} == {len(rows)}
    row, = (r for r in rows if r[1] == second.request)
    assert row[3] == (f"tool {second.server_name}__{second.name}, version 1 (server {second.server_name}), asked by local, "
                      f"hash {second.hash.hex()[:12]}")
    assert row[4]["hash"] == second.hash.hex() and "notes" not in row[4] and "arguments" not in row[4]
    assert take(app, "a")[1] == []          # the claim holds
    end(app, claim)
    due(schema)
    assert take(app, "a")[1] == []          # all was told
    third = waits(app)
    due(schema)
    assert ids(take(app, "a")[1]) == [third.request]


def notification(c, name):
    """(the id of the notification that is due, its claim)."""
    claim = uuid.uuid4()
    rows = c.execute("SELECT DISTINCT notification FROM mcpbox.notification_take(%s, 10, %s, %s, %s)",
                     (claim, [name], [""], [""])).fetchall()
    assert len(rows) == 1, rows
    return rows[0][0], claim


def test_each_try_of_one_digest_has_one_id(app, schema):
    follow(app, "a", "b")
    first = waits(app)
    one, claim = notification(app, "a")
    assert isinstance(one, uuid.UUID)
    for error, ours in (("HTTP 503", False), ("the sandbox is full", True)):
        end(app, claim, error, ours=ours)
        due(schema)
        again, claim = notification(app, "a")
        assert again == one
    # another target is another reader
    assert notification(app, "b")[0] != one
    # another request makes another digest, and so does one that was decided
    end(app, claim, "HTTP 503")
    due(schema)
    second = waits(app)
    two, claim = notification(app, "a")
    assert two != one
    end(app, claim, "HTTP 503")
    due(schema)
    first.decide(False)
    three, claim = notification(app, "a")
    assert three not in (one, two)
    end(app, claim)
    due(schema)
    second.decide(False)
    assert take(app, "a")[1] == []


def test_not_before_a_minute(app, owner, schema):
    follow(app, "a")
    waits(app)
    claim, rows = take(app, "a")
    assert rows
    end(app, claim)
    waits(app)
    assert take(app, "a")[1] == []
    assert one(owner, "SELECT due_at - sent_at = '1 minute', sent, error"
                      " FROM mcpbox.notification_targets") == (True, 1, "")


@pytest.mark.parametrize("failures, wait, least, most", [
    (0, 0, 60, 68), (1, 0, 120, 135), (3, 0, 480, 540), (9, 0, 900, 1013), (200, 0, 900, 1013), (0, 5000, 60, 68), (0, 300000, 300, 338),
    (3, 10 ** 15, 900, 1013)])
def test_when_it_is_tried_again(app, owner, schema, failures, wait, least, most):
    follow(app, "a")
    t = waits(app)
    with schema.pg.connect("postgres") as c:
        c.execute("UPDATE mcpbox.notification_targets SET failures = %s", (failures,))
    claim, _ = take(app, "a")
    end(app, claim, "HTTP 503 " + "x" * 400, wait)
    got, failed, error, sent = one(owner, "SELECT extract(epoch FROM due_at - now()), failures, error, sent FROM mcpbox.notification_targets")
    assert least - 3 <= got <= most and failed == failures + 1 and len(error) == 320 and sent == 0
    due(schema)
    assert t.request in ids(take(app, "a", n=1000)[1])          # nothing was lost


def test_our_own_fault_is_a_minute_and_does_not_count(app, owner, schema):
    follow(app, "a")
    waits(app)
    with schema.pg.connect("postgres") as c:
        c.execute("UPDATE mcpbox.notification_targets SET failures = 3")
    claim, _ = take(app, "a")
    end(app, claim, "no slot became free in time", 0, True)
    assert one(owner, "SELECT due_at - now() BETWEEN '50 seconds' AND '68 seconds', failures, error"
                      " FROM mcpbox.notification_targets") == (True, 3, "no slot became free in time")


def test_an_asker_s_name_makes_no_link(app, owner):
    t = waits(app)
    line, = one(owner, "SELECT mcpbox.notification_line(jsonb_populate_record(a, jsonb_build_object('requested_by', %s::text)))"
                       " FROM mcpbox.approval_requests a WHERE id = %s",
                "oidc:home:https://evil.example/\u202e?a=b \u2028 @room", t.request)
    assert "asked by oidc:home:https:__evil.example___a_b___@room, hash" in line, line


def test_what_was_decided_is_not_told(app, owner, schema):
    follow(app, "a")
    gone, stays = waits(app), waits(app)
    gone.decide(approved=False)
    claim, rows = take(app, "a", n=1000)
    assert mine(rows, gone, stays) == [stays.request]
    end(app, claim, "HTTP 500")
    due(schema)
    stays.decide(approved=False)
    assert mine(take(app, "a", n=1000)[1], gone, stays) == []
    assert one(owner, "SELECT count(*) FROM mcpbox.notification_queue WHERE request IN (%s, %s)",
               gone.request, stays.request) == (0,)


def test_each_target_for_itself(app, schema):
    follow(app, "a", "b")
    t = waits(app)
    claim, rows = take(app, "a", "b", n=1000)
    other, others = take(app, "a", "b", n=1000)
    assert {rows[0][0], others[0][0]} == {"a", "b"} and t.request in ids(rows) and t.request in ids(others)
    end(app, claim)
    end(app, other, "HTTP 500")
    due(schema)
    again = take(app, "a", "b", n=1000)[1]
    assert again[0][0] == others[0][0] and t.request in ids(again)
    # A target that the asker's document does not have is not taken.
    follow(app, "c")
    assert take(app, "a")[1] == [] and one(app, "SELECT count(*) FROM mcpbox.notification_targets")[0] == 1


def test_a_claim_of_a_dead_process_is_void(app, schema):
    follow(app, "a")
    t = waits(app)
    first, rows = take(app, "a", n=1000)
    with schema.pg.connect("postgres") as c:
        c.execute("UPDATE mcpbox.notification_targets SET claimed_until = now() - interval '1 second'")
    second, again = take(app, "a", n=1000)
    assert ids(again) == ids(rows) and t.request in ids(again)
    end(app, first)         # the one that was thought dead ends nothing of the other's
    assert one(app, "SELECT claim FROM mcpbox.notification_targets")[0] == second


def test_a_secret_comes_with_its_target_alone(app, schema):
    s, name = server(app)
    app.execute("SELECT mcpbox.secret_create(%s, 'HOOK', '', 'local')", (s,))
    follow(app, "a", "b")
    waits(app)
    taken = app.execute("SELECT * FROM mcpbox.notification_secret(%s, 'HOOK')", (name,))
    assert taken.fetchall() == []           # it has no value yet
    app.execute("SELECT mcpbox.secret_store(%s, 'HOOK', 'root', %s)", (name, b"sealed"))
    got = {}
    for _ in range(2):
        rows = take(app, "a", "b", servers=["", name], keys=["", "HOOK"])[1]
        got[rows[0][0]] = rows[0][5]
    assert got == {"a": None, "b": b"sealed"}
    assert one(app, "SELECT * FROM mcpbox.notification_secret(%s, 'HOOK')", name) == (b"sealed",)
    assert one(app, "SELECT * FROM mcpbox.notification_secret(%s, 'OTHER')", name) is None


def test_two_nodes_take_at_once(app, schema):
    follow(app, "a", "b")
    waits(app)
    with schema.pg.connect(APP) as other, app.transaction():
        _, rows = take(app, "a", "b")
        _, others = take(other, "a", "b")       # does not wait for the other's transaction
        assert {rows[0][0], others[0][0]} == {"a", "b"}
        assert take(other, "a", "b")[1] == []


def publishes(schema):
    """The statement that makes a request, and its id."""
    with schema.pg.connect(APP) as c:
        t, request = Tool(c, "w" + uuid.uuid4().hex[:8]), uuid.uuid4()
    return request, ("SELECT mcpbox.request_publish(%s, %s, %s, '', 'local')", request, uuid.uuid4(), t.id)


@pytest.mark.parametrize("error", ["", "HTTP 500"])
def test_a_notification_keeps_no_request_waiting(app, schema, error):
    """Neither while it is taken nor while it ends. What comes meanwhile is told the next time."""
    follow(app, "a")
    waits(app)
    first, statement = publishes(schema)
    with app.transaction():
        claim, rows = take(app, "a", n=1000)
        Asked(schema, *statement).ends()
    second, statement = publishes(schema)
    with app.transaction():
        end(app, claim, error)
        Asked(schema, *statement).ends()
    due(schema)
    again = ids(take(app, "a", n=1000)[1])
    assert {first, second} <= set(again) and (set(ids(rows)) <= set(again)) == bool(error)


def test_a_request_during_a_change_of_the_targets(app, owner, schema):
    """A target that goes fails no request."""
    follow(app, "a", "b")
    request, statement = publishes(schema)
    with app.transaction():
        follow(app)
        asked = Asked(schema, *statement)
        asked.waits(owner)
    asked.ends()
    assert one(owner, "SELECT state FROM mcpbox.approval_requests WHERE id = %s", request) == ("pending",)
    assert one(owner, "SELECT count(*) FROM mcpbox.notification_queue") == (0,)


def test_targets_that_go_and_a_request_wait_in_one_order(app, owner, schema):
    """Each row's lock is taken by name, however the rows lie: neither waits for one that waits for it."""
    follow(app, "b")
    follow(app, "a", "b")
    request, statement = publishes(schema)
    with held(schema, "SELECT 1 FROM mcpbox.notification_targets WHERE name = %s", "a"):
        gone = Asked(schema, "SELECT mcpbox.notification_follow('{}')")
        gone.waits(owner)
        asked = Asked(schema, *statement)
        asked.waits(owner)
    gone.ends()
    asked.ends()
    assert one(owner, "SELECT count(*) FROM mcpbox.notification_targets") == (0,)


def test_a_new_target_waits_for_no_decision(app, schema):
    t = waits(app)
    with held(schema, "SELECT 1 FROM mcpbox.approval_requests WHERE id = %s", t.request):
        Asked(schema, "SELECT mcpbox.notification_follow('{a}')").ends()


def test_the_run_time_role_touches_no_table(app):
    for statement in ("INSERT INTO mcpbox.notification_targets (name) VALUES ('x')", "DELETE FROM mcpbox.notification_queue",
                      "UPDATE mcpbox.notification_targets SET sent = 1"):
        with pytest.raises(DENIED):
            app.execute(statement)
        app.rollback()
