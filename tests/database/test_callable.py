"""sql/schema/callable.sql: the table of what may be called now, which the intent of each
call reads instead of the tables it follows. After any change of any of them, by
functions or by hand, alone or many at once, it must say what they say."""
import random
import threading
import uuid

import psycopg
import pytest

from database.test_database import (APP, DENIED, OWNER, Tool, blocked, call_open, epoch, guarded,
                                    one, server)
from database.test_limits_modules import add, grant, lock, module
from harness.patience import patience

# Written down again, not the view's: from the tables, by hand.
TRUE = """
SELECT v.id, e.epoch, v.hash, v.exposed_name, (SELECT l.updated_at FROM mcpbox.server_limits l
    WHERE l.server_id = s.id), t.id
FROM mcpbox.tool_versions v, mcpbox.tools t, mcpbox.servers s, mcpbox.epochs e
WHERE v.state = 'approved' AND t.serving_version = v.id AND v.tool_id = t.id AND t.enabled
    AND t.deleted_at IS NULL AND t.server_id = s.id AND s.status = 'running'
    AND e.kind = 'sandboxd' AND e.ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM unnest(v.modules) AS k (line) WHERE NOT EXISTS
    (SELECT 1 FROM mcpbox.tool_modules g, mcpbox.modules m WHERE g.tool_id = t.id
    AND g.revoked_at IS NULL AND m.name = g.name AND m.version = g.version
    AND m.digest = g.digest AND m.state = 'available'
    AND k.line = g.name || ' ' || g.version || ' ' || encode(g.digest, 'hex')))"""
KEPT = ("SELECT version_id, epoch, hash, exposed_name, limits_at, tool_id "
        "FROM mcpbox.callable")


def rows(c):
    """How many are callable; the table is what the tables say."""
    kept, true = set(c.execute(KEPT)), set(c.execute(TRUE))
    assert kept == true, (kept - true, true - kept)
    return len(kept)


def callable_(c, version):
    rows(c)
    return one(c, "SELECT count(*) FROM mcpbox.callable WHERE version_id = %s", version)[0]


def limits(c, server_id, timeout=200):
    shown = one(c, "SELECT sha256(convert_to(mcpbox.server_limits_json(%s), 'UTF8'))",
                str(server_id))[0]
    c.execute("SELECT mcpbox.set_server_limits(%s, %s, 'root', %s, " +
              ", ".join(["NULL"] * 15) + ")", (server_id, shown, timeout))


def test_each_thing_that_takes_a_version_away_takes_its_row(app, owner):
    e, t = epoch(app), Tool(app)
    assert callable_(app, t.version) == 0
    t.publish()
    assert callable_(app, t.version) == 0
    t.decide()
    n = callable_(app, t.version)
    assert n == one(app, "SELECT count(*) FROM mcpbox.epochs WHERE kind = 'sandboxd' "
                    "AND ended_at IS NULL")[0]
    for off, on in (("set_server_status(%(s)s, 'stopped', 'x')",
                     "set_server_status(%(s)s, 'running', 'x')"),
                    ("set_tool_enabled(%(t)s, false, 'x')", "set_tool_enabled(%(t)s, true, 'x')")):
        app.execute("SELECT mcpbox." + off, {"s": t.server, "t": t.id})
        assert callable_(app, t.version) == 0
        app.execute("SELECT mcpbox." + on, {"s": t.server, "t": t.id})
        assert callable_(app, t.version) == n
    limits(app, t.server)
    assert callable_(app, t.version) == n
    owner.execute("DELETE FROM mcpbox.server_limits WHERE server_id = %s", (t.server,))
    assert callable_(app, t.version) == n
    owner.execute("UPDATE mcpbox.epochs SET ended_at = now() WHERE epoch = %s", (e,))
    assert callable_(app, t.version) == n - 1
    first = t.version
    t.update(name="greet_again")
    t.approve()
    assert callable_(app, first) == 0 and callable_(app, t.version) == n - 1
    app.execute("SELECT mcpbox.revoke_version(%s, '', 'x')", (t.version,))
    assert callable_(app, t.version) == 0
    u = Tool(app).approve()
    assert callable_(app, u.version) == n - 1
    app.execute("SELECT * FROM mcpbox.delete_object(%s, 'tool', 'x')", (u.id,))
    assert callable_(app, u.version) == 0


def test_grants_count(app):
    epoch(app)
    t = Tool(app)
    m = module(app)
    grant(app, t, m)
    t.version = add(app, t, (17, lock(m).encode()))
    t.hash = one(app, "SELECT hash FROM mcpbox.tool_versions WHERE id = %s", t.version)[0]
    t.approve()
    n = callable_(app, t.version)
    assert n > 0
    for off, on in (("revoke_module(%(t)s, %(m)s, '', 'x')", "grant_module(%(t)s, %(m)s, '', 'x')"),
                    ("withdraw_module(%(m)s, '1.0', 'x')",
                     "add_module(%(m)s, '1.0', %(d)s, 3, 99, 'x')")):
        names = {"t": str(t.id), "m": m, "d": bytes.fromhex(lock(m).split()[2])}
        app.execute("SELECT mcpbox." + off, names)
        assert callable_(app, t.version) == 0
        app.execute("SELECT mcpbox." + on, names)
        assert callable_(app, t.version) == n


def test_truncated_tables_are_followed(owner):
    epoch(owner)
    t = Tool(owner).approve()
    limits(owner, t.server)
    for table in ("server_limits", "tool_modules", "epochs"):
        owner.execute(f"TRUNCATE mcpbox.{table}")
        rows(owner)
    assert callable_(owner, t.version) == 0
    epoch(owner)
    assert callable_(owner, t.version) == 1


def test_nobody_makes_a_row_that_is_not_true(app, owner):
    e, t = epoch(app), Tool(app).approve()
    for attack in ("DELETE FROM mcpbox.callable", "UPDATE mcpbox.callable SET limits_at = now()",
                   "INSERT INTO mcpbox.callable SELECT * FROM mcpbox.callable",
                   "TRUNCATE mcpbox.callable", "UPDATE mcpbox.callable_turn SET turn = 0",
                   "SELECT mcpbox.callable_refresh('{}')", "SELECT * FROM mcpbox.callable_now"):
        with pytest.raises(DENIED):
            app.execute(attack)
    row = one(owner, KEPT + " WHERE version_id = %s AND epoch = %s", t.version, e)
    insert = ("INSERT INTO mcpbox.callable (version_id, epoch, hash, exposed_name, limits_at, "
              "tool_id) VALUES (%s, %s, %s, %s, %s, %s)")
    # A row may go, and then calls are judged by call_open(), which needs none.
    owner.execute("DELETE FROM mcpbox.callable WHERE version_id = %s AND epoch = %s",
                  (t.version, e))
    assert call_open(app, t, e)[1] == "ok"
    for i, other in ((0, uuid.uuid4()), (1, uuid.uuid4()), (2, bytes(32)), (3, "x__y"),
                     (4, "2026-01-01"), (5, uuid.uuid4())):
        guarded(owner, insert, *[other if k == i else v for k, v in enumerate(row)])
    owner.execute(insert, row)
    guarded(owner, "UPDATE mcpbox.callable SET limits_at = now()")
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (t.id,))
    guarded(owner, insert, *row)
    rows(owner)


def test_the_owners_own_intents_are_judged_by_the_trigger(app, owner):
    """The rules that the run-time role meets in the view stand for all others in
    the table: of a version that is not there, by hand."""
    t, e = Tool(app).approve(), epoch(app)
    row = ("INSERT INTO mcpbox.executions (id, kind, owner_epoch, principal, listener, tool, "
           "version_id, version_hash, args_sha256, arguments, created_at, deadline) VALUES "
           "(gen_random_uuid(), %s, %s, 'p', 'local', 'x', %s, sha256(''), sha256(''), '{}', "
           "now(), now())")
    guarded(owner, row, "tool", e, uuid.uuid4())
    guarded(owner, row, "other", e, t.version)
    owner.execute(row, ("tool", e, t.version))


class World:
    """Random changes of everything that callable follows, by functions."""

    def __init__(self, c, rng):
        self.c, self.rng = c, rng
        self.servers = [server(c) for _ in range(2)]
        self.tools = [Tool(c, name=f"t{i}", server=rng.choice(self.servers)) for i in range(5)]
        self.modules = [module(c) for _ in range(2)]
        self.nodes = ["n" + uuid.uuid4().hex for _ in range(2)]
        for t in self.tools:
            t.versions = []
        self.did = 0

    def step(self, c=None):
        c, r = c or self.c, self.rng
        t, s, m = r.choice(self.tools), r.choice(self.servers)[0], r.choice(self.modules)
        what = r.choice(("status", "enabled", "limits", "approve", "approve", "approve", "revoke",
                         "grant", "grant", "ungrant", "withdraw", "record", "epoch", "delete"))
        if what == "status":
            c.execute("SELECT mcpbox.set_server_status(%s, %s, 'x')",
                      (s, r.choice(("running", "running", "stopped"))))
        elif what == "enabled":
            c.execute("SELECT mcpbox.set_tool_enabled(%s, %s, 'x')", (t.id, r.random() < .7))
        elif what == "limits":
            limits(c, s, r.randint(100, 999))
        elif what == "approve":
            self.approve(c, t, m if r.random() < .5 else None)
        elif what == "revoke":
            if t.versions:
                c.execute("SELECT mcpbox.revoke_version(%s, '', 'x')", (r.choice(t.versions),))
        elif what == "grant":
            grant(c, t, m)
        elif what == "ungrant":
            c.execute("SELECT mcpbox.revoke_module(%s, %s, '', 'x')", (str(t.id), m))
        elif what == "withdraw":
            c.execute("SELECT mcpbox.withdraw_module(%s, '1.0', 'x')", (m,))
        elif what == "record":
            module(c, m)
        elif what == "epoch":
            epoch(c, node=r.choice(self.nodes))
        elif r.random() < .1:
            c.execute("SELECT * FROM mcpbox.delete_object(%s, 'tool', 'x')", (t.id,))
        self.did += 1

    def approve(self, c, t, m):
        fields = [(17, lock(m).encode())] if m else []
        version = add(c, t, *fields)
        request = uuid.uuid4()
        c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')",
                  (request, uuid.uuid4(), t.id))
        digest = one(c, "SELECT hash FROM mcpbox.approval_requests WHERE id = %s", request)[0]
        c.execute("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 's')",
                  (request, digest))
        t.versions.append(version)


def steps(world, c, n):
    """Refusals are part of it: what they undo must be undone here too."""
    for _ in range(n):
        try:
            world.step(c)
        except psycopg.DatabaseError as e:
            # deadlocks would be ours
            assert e.sqlstate.startswith("MB") or e.sqlstate == "23505", e
        yield


@pytest.mark.parametrize("seed", range(6))
def test_after_any_sequence_the_table_is_what_the_tables_say(app, seed):
    world = World(app, random.Random(seed))
    most = 0
    for _ in steps(world, app, 120):
        most = max(most, rows(app))
    assert most > 0 and world.did > 40


def test_transactions_that_are_undone_leave_nothing(schema, app):
    world = World(app, random.Random(99))
    for _ in steps(world, app, 40):
        pass
    before = rows(app)
    with schema.pg.connect(APP) as c:
        for _ in range(10):
            with c.transaction(force_rollback=True):
                for _ in range(5):
                    try:
                        with c.transaction():
                            world.step(c)
                    except psycopg.DatabaseError as e:
                        assert e.sqlstate.startswith("MB"), e
                    rows(c)
    assert rows(app) == before


def test_many_at_once(schema, app):
    """Each of two transactions that see only their own half would leave a row
    that is not true; the lock of callable_turn is what this tests."""
    world = World(app, random.Random(7))
    failed = []

    def work(seed):
        mine = World.__new__(World)
        mine.__dict__.update(world.__dict__)
        mine.rng = random.Random(seed)
        try:
            with schema.pg.connect(APP) as c:
                for _ in steps(mine, c, 60):
                    pass
        except Exception as e:  # pylint: disable=broad-except
            failed.append(e)

    for k in range(3):
        threads = [threading.Thread(target=work, args=(k * 10 + i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failed, failed
        rows(app)


def test_two_halves_do_not_make_a_row(schema, app):
    """One stops the server while another, that began before, enables its tool."""
    epoch(app)
    t = Tool(app).approve()
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (t.id,))
    with schema.pg.connect(APP) as a, schema.pg.connect(APP) as b:
        a.execute("BEGIN")
        a.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", (t.server,))
        other = threading.Thread(target=lambda: b.execute(
            "SELECT mcpbox.set_tool_enabled(%s, true, 'x')", (t.id,)))
        other.start()
        blocked(a, b)
        assert other.is_alive()
        a.execute("COMMIT")
        other.join(patience(30))
    assert callable_(app, t.version) == 0


def test_an_older_snapshot_does_not_keep_the_table(schema, owner):
    """Repeatable read: a change that saw the others as they were is refused."""
    epoch(owner)
    t = Tool(owner).approve()
    owner.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (t.id,))
    with schema.pg.connect(OWNER) as c:
        c.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        c.execute("SELECT 1 FROM mcpbox.tools")
        owner.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", (t.server,))
        with pytest.raises(psycopg.errors.SerializationFailure):
            c.execute("UPDATE mcpbox.tools SET enabled = true WHERE id = %s", (t.id,))
        c.execute("ROLLBACK")
    assert callable_(owner, t.version) == 0


INTENT = ("INSERT INTO mcpbox.intents (id, kind, owner_epoch, principal, listener, tool, "
          "version_id, version_hash, args_sha256, arguments, client, protocol, created_at, "
          "deadline) SELECT gen_random_uuid(), 'tool', c.epoch, 'p', 'local', c.exposed_name, "
          "c.version_id, c.hash, sha256(''), '{}', '', '', now(), now() FROM mcpbox.callable c "
          "WHERE c.version_id = %s AND c.epoch = %s AND c.limits_at IS NULL")


def test_a_withdrawal_wins_from_its_commit_on(schema, app):
    """admind's statement, against each withdrawal: before its commit a row may
    come, which withdrawal then finds; behind it none does."""
    for off in ("set_server_status(%(s)s, 'stopped', 'x')", "set_tool_enabled(%(t)s, false, 'x')",
                "revoke_version(%(v)s, '', 'x')", "delete_object(%(t)s, 'tool', 'x')",
                "epoch_begin(gen_random_uuid(), %(n)s, 'sandboxd')"):
        node = "n" + uuid.uuid4().hex
        t, e = Tool(app).approve(), epoch(app, node=node)
        with schema.pg.connect(APP) as c:
            assert c.execute(INTENT, (t.version, e)).rowcount == 1
            with app.transaction():
                app.execute("SELECT mcpbox." + off,
                            {"s": t.server, "t": t.id, "v": t.version, "n": node})
                assert c.execute(INTENT, (t.version, e)).rowcount == 1
            assert c.execute(INTENT, (t.version, e)).rowcount == 0, off
