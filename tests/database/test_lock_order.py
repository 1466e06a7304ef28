"""Changes that meet in the same rows end one after the other: none waits for
one that waits for it (PostgreSQL would end one of them with 40P01), and what
the later one leaves behind is true of both. Another transaction holds the rows
back until each of them waits where it is to wait."""
import hashlib
import threading
import uuid
from contextlib import contextmanager

import psycopg
import pytest

from database import test_sources as sources
from database.test_access import NONE, as_new, now_us, read, store  # noqa: F401 (a fixture)
from database.test_approvals import network, pending, serve, state
from database.test_database import APP, OWNER, Tool, epoch, one, open_call, server
from database.test_http import IMPORT, declared
from database.test_limits_modules import add, grant, lock, module, request
from database.test_transfer import export, put

from harness.patience import patience, until

WAITS = 30
NEEDS = (21, "api.example.org")         # requires: what network() asks for
REQUEST = "SELECT 1 FROM mcpbox.approval_requests WHERE id = %s"


class Asked:
    """A statement of a connection of its own, in a thread of its own."""

    def __init__(self, schema, query, *args):
        self.failed = None
        self.c = schema.pg.connect(APP)
        self.pid = self.c.info.backend_pid
        self.thread = threading.Thread(target=self.run, args=(query, args))
        self.thread.start()

    def run(self, query, args):
        try:
            self.c.execute(query, args)
        except psycopg.Error as e:
            self.failed = e

    def waits(self, owner):
        """... for somebody's lock now, and so will not go on by itself."""
        def stands():
            if one(owner, "SELECT cardinality(pg_blocking_pids(%s)) > 0", self.pid)[0]:
                return True
            assert self.thread.is_alive(), f"it ended without waiting: {self.failed}"
            return False
        until(stands, WAITS, 0.01, say=lambda: "it does not wait")

    def ends(self, refused=False):
        """... well, or refused by a function of ours where that is an answer too."""
        self.thread.join(patience(WAITS))
        assert not self.thread.is_alive(), "it waits still"
        self.c.close()
        assert self.failed is None or (refused and self.failed.sqlstate == "MB001"), self.failed


@contextmanager
def held(schema, query, *args):
    """The rows of a query are locked meanwhile, as by somebody who decides them."""
    with schema.pg.connect(OWNER) as c:
        c.execute("BEGIN")
        assert c.execute(query + " FOR UPDATE", args).fetchall()
        yield
        c.execute("COMMIT")


def stores(c, document):
    """The statement that stores an access document over the one that is stored now."""
    return ("SELECT mcpbox.access_store(%s, %s, %s, 'ann', 'seal', '{}', '{}', %s)", now_us(), document,
            hashlib.sha256(document.encode()).digest(), read(c)[1] or NONE)


def waiting_version(c, tool, field):
    """A version with this field waits for review: the statement that approves it."""
    add(c, tool, field)
    r = uuid.uuid4()
    c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'local')", (r, uuid.uuid4(), tool.id))
    digest = one(c, "SELECT hash FROM mcpbox.approval_requests WHERE id = %s", r)[0]
    return "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), 'why', 'seal')", r, digest


def as_if_asked_now(c, wish):
    """The request that stands for a wish has the bytes that it would have now."""
    r = pending(c, wish)
    assert state(c, wish) == "superseded" and r != wish
    return one(c, "SELECT g.preimage = mcpbox.grant_preimage(a.kind, a.subject, a.id) "
               "FROM mcpbox.approval_requests a JOIN mcpbox.grant_requests g USING (id) "
               "WHERE a.id = %s", r)[0]


def test_a_version_revoked_while_another_comes_to_serve(schema, app, owner):
    """Both change what one request for a host would touch."""
    where = server(app)
    old, new = Tool(app, "old", server=where), Tool(app, "new", server=where)
    serve(app, old, NEEDS[1])
    wish = network(app, old)
    approve = waiting_version(app, new, NEEDS)
    with held(schema, REQUEST, wish):
        revoked = Asked(schema, "SELECT mcpbox.revoke_version(%s, 'why', 'root')", old.version)
        revoked.waits(owner)
        served = Asked(schema, *approve)
        served.waits(owner)
    revoked.ends()
    served.ends()
    assert old.serving() is None and new.serving() is not None
    assert as_if_asked_now(owner, wish)


def test_two_versions_come_to_serve_at_once(schema, app, owner):
    where = server(app)
    tools = [Tool(app, name, server=where) for name in ("one", "two", "three")]
    wish = network(app, tools[0])
    approvals = [waiting_version(app, t, NEEDS) for t in tools]
    with held(schema, REQUEST, wish):
        asked = []
        for approve in approvals:
            asked.append(Asked(schema, *approve))
            asked[-1].waits(owner)
    for a in asked:
        a.ends()
    assert all(t.serving() for t in tools)
    assert as_if_asked_now(owner, wish)


def test_a_module_withdrawn_while_a_version_with_it_comes_to_serve(schema, app, owner):
    tool, name = Tool(app), "m" + uuid.uuid4().hex[:8]
    module(app, name)
    wish = request(app, tool, name)
    grant(app, tool, name)
    approve = waiting_version(app, tool, (17, lock(name)))
    with held(schema, REQUEST, wish):
        withdrawn = Asked(schema, "SELECT mcpbox.withdraw_module(%s, '1.0', 'root')", name)
        withdrawn.waits(owner)
        served = Asked(schema, *approve)
        served.waits(owner)
    withdrawn.ends()
    served.ends()
    assert tool.serving() is not None
    assert as_if_asked_now(owner, wish)


# --- pairs that took them in another order ------------------------------------

ENABLE = "SELECT mcpbox.set_tool_enabled(%s, %s, 'root')"
ACT = "SELECT mcpbox.admin_act(%s, 'root', 'administrator', %s, NULL, '', %s)"
TURN, HEAD = "SELECT 1 FROM mcpbox.callable_turn", "SELECT 1 FROM mcpbox.audit_head"
SERVER, TOOL = ("SELECT 1 FROM mcpbox." + t + " WHERE id = %s" for t in ("servers", "tools"))


def a_server_deleted_while_its_tool_is_disabled(c):
    t = Tool(c).approve()
    return (TURN,), (ACT, "server_delete", str(t.server), "{}"), (ENABLE, t.id, False)


def a_server_deleted_while_its_tool_gets_a_module(c):
    t, name = Tool(c).approve(), module(c)
    return (TURN,), (ACT, "server_delete", str(t.server), "{}"), (
        "SELECT mcpbox.grant_module(%s, %s, '', 'root')", str(t.id), name)


def a_secret_set_while_it_is_described(c):
    i, name = server(c)
    c.execute("SELECT mcpbox.secret_create(%s, 'TOKEN', '', 'local')", (i,))
    return (SERVER, i), ("SELECT mcpbox.secret_store(%s, 'TOKEN', 'ann', %s)", name, b"\2" + bytes(52)), (
        ACT, "secret_describe", name + "/TOKEN", '{"description":"other"}')


def a_tool_disabled_while_a_server_is_imported(c):
    t, s = Tool(c).approve(), server(c)
    c.execute(ENABLE, (Tool(c, server=s).id, False))
    text = export(c, s[1])[0]
    return (TURN,), (ENABLE, t.id, False), (
        "SELECT mcpbox.import_finish(%s, %s, 'ann')", put(c, text), hashlib.sha256(text.encode()).digest())


def imported_again(c):
    """An OpenAPI document whose second operation is there already."""
    s = server(c)
    old = Tool(c, "foo", server=s)
    pre = [declared(s, "bar"), declared(s, "foo")]
    return old, (IMPORT, s[0], *([uuid.uuid4() for _ in pre] for _ in range(2)), pre, None)


def a_tool_disabled_while_its_document_is_imported(c):
    old, again = imported_again(c)
    return (HEAD,), again, (ENABLE, old.id, False)


def a_tool_approved_while_its_document_is_imported(c):
    old, again = imported_again(c)
    old.publish()
    return (HEAD,), again, ("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), 'why', 'seal')",
                            old.request, old.hash)


def a_request_commented_while_its_source_is_imported(c):
    s = sources.server(c)
    x = sources.source(c, s.id)
    sources.found(c, x, sources.tool("b"))
    made, = sources.imported(c, x, "b")
    r, = one(c, "SELECT id FROM mcpbox.approval_requests WHERE tool_id = %s AND state = 'pending'", made["id"])
    sources.found(c, x, sources.tool("a"), sources.tool("b", "changed"))
    rows = [(u, a) for u, a, _ in sources.candidates(c, x, "a", "b") if a]
    assert len(rows) == 2
    return (HEAD,), ("SELECT mcpbox.source_import(%s, %s, %s, '[]', 'local')", x, [u for u, _ in rows],
                     [a for _, a in rows]), (ACT, "approval_comment", str(r), '{"text":"why?"}')


def a_source_deleted_by_both_its_names(c):
    x = sources.source(c, sources.server(c).id)
    t, = one(c, "SELECT tool_id FROM mcpbox.external_sources WHERE id = %s", x)
    return (TOOL, t), (ACT, "tool_delete", str(t), "{}"), (ACT, "source_delete", str(x), "{}")


@pytest.mark.parametrize("pair", [
    a_server_deleted_while_its_tool_is_disabled, a_server_deleted_while_its_tool_gets_a_module,
    a_secret_set_while_it_is_described, a_tool_disabled_while_a_server_is_imported,
    a_tool_disabled_while_its_document_is_imported, a_tool_approved_while_its_document_is_imported,
    a_request_commented_while_its_source_is_imported, a_source_deleted_by_both_its_names],
    ids=lambda pair: pair.__name__)
def test_both_end(schema, app, owner, pair):
    """The second finds what the first left, and may be refused for that."""
    rows, first, second = pair(app)
    with held(schema, *rows):
        before = Asked(schema, *first)
        before.waits(owner)
        behind = Asked(schema, *second)
        behind.waits(owner)
    before.ends()
    behind.ends(refused=True)


@pytest.mark.parametrize("change", [
    "manage_rollback(gen_random_uuid(), %s, 1::int8, 'local')",
    "request_publish(gen_random_uuid(), gen_random_uuid(), %s, '', 'local')",
    "set_tool_enabled(%s, false, 'root')", "delete_object(%s, 'tool', 'local')"],
    ids=lambda change: change.partition("(")[0])
def test_a_change_takes_the_server_before_the_tool(schema, app, owner, change):
    """As the server's deletion does: a change that had the tool already while it waits
    for the server would wait for one that waits for it."""
    t = Tool(app).approve()
    t.update(code="def main(): return 2")
    with held(schema, SERVER, t.server):
        asked = Asked(schema, "SELECT mcpbox." + change, t.id)
        asked.waits(owner)
        assert owner.execute(TOOL + " FOR UPDATE SKIP LOCKED", (t.id,)).fetchall(), "it has the tool"
    asked.ends()


@pytest.mark.parametrize("batch", ["taken", "dropped"])
def test_a_document_stored_during_a_batch_of_telemetry(schema, app, owner, batch):
    """The queue before its state: a document that ends telemetry does not hold the state
    while it waits for a row, and so waits for no batch that counts what it lost."""
    claim, rows = uuid.uuid4(), [uuid.uuid4() for _ in range(2)]
    store(app, '{"telemetry": {"endpoint": "https://collector.example"}}')
    with schema.pg.connect("postgres") as c:
        c.execute("TRUNCATE mcpbox.telemetry_queue")
        c.execute("INSERT INTO mcpbox.telemetry_queue (execution, claim) VALUES (%s, NULL), (%s, %s)",
                  (*rows, claim if batch == "dropped" else None))
    lost = "SELECT dropped FROM mcpbox.telemetry_state"
    before, = one(owner, lost)
    with held(schema, "SELECT 1 FROM mcpbox.telemetry_queue WHERE execution = %s", rows[0]):
        stored = Asked(schema, *stores(app, "{}"))
        stored.waits(owner)
        ended = Asked(schema, *(("SELECT mcpbox.telemetry_end(%s, 'dropped')", claim) if batch == "dropped" else
                                ("SELECT count(*) FROM mcpbox.telemetry_take(%s, 10)", claim)))
        ended.ends()        # without waiting for the document
    stored.ends()
    assert one(owner, lost) == (before + 1,)
    assert one(owner, "SELECT count(*) FROM mcpbox.telemetry_queue") == (0,)


def test_a_sweep_leaves_what_somebody_closes(schema, app, owner):
    """... to him, or to the next one; he takes the records in another order."""
    t, node = Tool(app).approve(), "n" + uuid.uuid4().hex
    e = epoch(app, node=node)
    mine, his = (open_call(app, t, e)[0] for _ in range(2))
    epoch(app, node=node)
    outcome = "SELECT outcome FROM mcpbox.executions WHERE id = %s"
    app.execute(f"SET lock_timeout = '{patience(5):.0f}s'")      # it does not wait
    with held(schema, "SELECT 1 FROM mcpbox.executions WHERE id = %s", his):
        app.execute("SELECT mcpbox.sweep_epochs()")
        assert one(app, outcome, mine) == ("lost",) and one(app, outcome, his) == (None,)
    app.execute("SELECT mcpbox.sweep_epochs()")
    assert one(app, outcome, his) == ("lost",)
