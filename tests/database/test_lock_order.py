"""Changes that meet in the same rows end one after the other: none waits for
one that waits for it (PostgreSQL would end one of them with 40P01), and what
the later one leaves behind is true of both. Another transaction holds the rows
back until each of them waits where it is to wait."""
import threading
import time
import uuid
from contextlib import contextmanager

import psycopg

from database.test_approvals import network, pending, serve, state
from database.test_database import APP, OWNER, Tool, one, server
from database.test_limits_modules import add, grant, lock, module, request

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
        end = time.monotonic() + WAITS
        while not one(owner, "SELECT cardinality(pg_blocking_pids(%s)) > 0", self.pid)[0]:
            assert self.thread.is_alive(), f"it ended without waiting: {self.failed}"
            assert time.monotonic() < end, "it does not wait"
            time.sleep(0.01)

    def ends(self):
        self.thread.join(WAITS)
        assert not self.thread.is_alive(), "it waits still"
        self.c.close()
        assert self.failed is None, self.failed


@contextmanager
def held(schema, query, *args):
    """The rows of a query are locked meanwhile, as by somebody who decides them."""
    with schema.pg.connect(OWNER) as c:
        c.execute("BEGIN")
        assert c.execute(query + " FOR UPDATE", args).fetchall()
        yield
        c.execute("COMMIT")


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
