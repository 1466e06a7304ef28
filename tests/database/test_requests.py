"""sql/migrations/0003: bounds of what waits, and what a request says of what is in its
way; attacked as in test_database.py."""
import json
import uuid

import psycopg
import pytest

from database.test_approvals import act
from database.test_database import Tool, one, server
from database.test_limits_modules import module
from database.test_modules_installed import came, drain, name, report, take

MOST = 256


def said_limit(e):
    said = e.value.diag.message_primary
    assert e.value.diag.sqlstate == "MB001" and said.startswith("limit: "), said
    return said


def ask_module(c, tool, wanted, who):
    c.execute("SELECT mcpbox.request_module(gen_random_uuid(), gen_random_uuid(), %s, %s, '', 'x', %s)",
              (tool.id, wanted, who))


def ask_host(c, tool, host, who, person=False):
    c.execute("SELECT mcpbox.request_network(gen_random_uuid(), gen_random_uuid(), NULL, ARRAY[%s]::uuid[], %s, 443,"
              " 'x', %s, %s)", (tool.id, host, who, person))


def waiting(c, kind, who):
    return one(c, "SELECT count(*) FROM mcpbox.approval_requests WHERE kind = %s AND requested_by = %s"
               " AND state = 'pending'", kind, who)[0]


def filled(c, kind, who):
    """Tools with as many requests as their own bound lets be."""
    tools = []
    for n in range(MOST // 32):
        tools.append(Tool(c, f"t{n}"))
        for i in range(32):
            if kind == "module":
                ask_module(c, tools[-1], f"wish{i}", who)
            else:
                ask_host(c, tools[-1], f"h{i}.example.org", who)
    assert waiting(c, kind, who) == MOST
    return tools


@pytest.mark.parametrize("kind, ask, word", [("module", ask_module, "for modules"),
                                             ("network", ask_host, "for network access")])
def test_what_waits_is_bounded_a_principal(app, kind, ask, word):
    """32 a tool, or a server, is no bound: a client makes as many of those as it likes."""
    who = "token:" + uuid.uuid4().hex[:8]
    tools = filled(app, kind, who)
    app.commit()
    more = Tool(app)
    app.commit()
    with pytest.raises(psycopg.Error) as e:
        ask(app, more, "one-more.example" if kind == "network" else "onemore", who)
    said = said_limit(e)
    assert f"{MOST} of your requests {word} wait" in said and "mcpbox_list_pending_requests" in said
    app.rollback()
    ask(app, more, "one-more.example" if kind == "network" else "onemore", who + "2")   # its own bound
    # the other queue is another one
    other = ask_host if kind == "module" else ask_module
    other(app, more, "other.example" if kind == "module" else "other", who)
    # one that is decided makes room
    r, = one(app, "SELECT id FROM mcpbox.approval_requests WHERE requested_by = %s AND kind = %s AND state = 'pending'"
             " ORDER BY id LIMIT 1", who, kind)
    app.execute("SELECT mcpbox.decide_approval(%s, false, NULL, 'root', now(), 'no', NULL)", (r,))
    ask(app, more, "and-one.example" if kind == "network" else "andone", who)
    if kind == "module":
        # The one that was decided above may be one of these 32.
        of_tool, = one(app, "SELECT count(*) FROM mcpbox.approval_requests WHERE requested_by = %s AND kind = %s"
                       " AND state = 'pending' AND tool_id = %s", who, kind, tools[1].id)
        assert of_tool in (31, 32)
        app.execute("SELECT mcpbox.delete_object(%s, 'tool', %s)", (tools[1].id, who))
        assert waiting(app, kind, who) == MOST - of_tool


def test_what_is_replaced_needs_no_room(app):
    """A version that comes to serve changes what a pending request would touch: it is asked for again at the bound."""
    who = "token:" + uuid.uuid4().hex[:8]
    tools = filled(app, "network", who)
    pending = "SELECT id FROM mcpbox.approval_requests WHERE requested_by = %s AND state = 'pending'"
    before = set(app.execute(pending, (who,)).fetchall())
    Tool(app, "needs", server=(tools[0].server, tools[0].server_name), requires=("h0.example.org:443",)).approve()
    after = set(app.execute(pending, (who,)).fetchall())
    assert len(after) == MOST and len(before & after) == MOST - 1


def test_beyond_the_bound_others_decide(app):
    """Two requests at once may both be the last: then one more than the bound waits."""
    who = "token:" + uuid.uuid4().hex[:8]
    tools = filled(app, "network", who)
    with app.transaction():
        app.execute("SET LOCAL mcpbox.role = 'root'")
        ask_host(app, Tool(app), "one-more.example", who)
    assert waiting(app, "network", who) == MOST + 1
    Tool(app, "needs", server=(tools[0].server, tools[0].server_name), requires=("h0.example.org:443",)).approve()
    assert waiting(app, "network", who) == MOST + 1
    with pytest.raises(psycopg.Error) as e:
        ask_host(app, Tool(app), "another.example", who)
    said_limit(e)


def test_administrators_are_not_bounded(app):
    who = "token:" + uuid.uuid4().hex[:8]
    tools = filled(app, "network", who)
    act(app, "network_request", str(tools[0].server), {"host": "of-a-person.example"},
        role="administrator")


def test_needs_of_one_keep_nobody_from_theirs(app):
    """Who has no room gets no request for what a module needs; who has some gets his."""
    drain(app)
    full, free = "token:" + uuid.uuid4().hex[:8], "token:" + uuid.uuid4().hex[:8]
    tools = filled(app, "module", full)
    n = name()
    r, = one(app, "SELECT id FROM mcpbox.approval_requests WHERE requested_by = %s AND tool_id = %s AND state ="
             " 'pending' ORDER BY id LIMIT 1", full, tools[0].id)
    app.execute("SELECT mcpbox.decide_approval(%s, false, NULL, 'root', now(), 'no', NULL)", (r,))
    ask_module(app, tools[0], n, full)
    late = Tool(app)
    ask_module(app, late, n, free)
    need = name()
    while (row := take(app)) and row[0] != n:
        pass
    assert came(app, row, report(n, needs=[(need, "1.0")])) == ("1.0", None)
    while one(app, "SELECT mcpbox.module_need_ask()")[0]:
        pass
    assert app.execute("SELECT a.requested_by FROM mcpbox.module_requests m JOIN mcpbox.approval_requests a"
                       " ON a.subject = m.id WHERE m.name = %s", (need,)).fetchall() == [(free,)]
    assert waiting(app, "module", full) == MOST


def test_what_cannot_be_fetched_is_told(app):
    drain(app)
    t, n = Tool(app), name()
    fetch = "SELECT mcpbox.module_fetch_json(%s, '')"
    ask_module(app, t, n, "local")
    assert one(app, fetch, n)[0] == {"state": "waiting", "error": None}
    row = take(app)
    app.execute("SELECT mcpbox.module_install_failed(%s, '', %s, 'no module_index is configured', false)",
                (n, row[2]))
    assert one(app, fetch, n)[0] == {"state": "failed", "error": "no module_index is configured"}
    app.commit()
    with pytest.raises(psycopg.Error) as e:
        ask_module(app, t, n, "local")
    assert "asked for already" in str(e.value) and "could not be fetched: no module_index" in str(e.value)
    app.rollback()
    assert one(app, fetch, module(app)) == (None,)


def test_secrets_that_a_version_lacks_stand_beside_its_request(app):
    s = server(app)
    t = Tool(app, "lacks", server=s, secrets=("ABSENT", "EMPTY", "THERE"))
    for key, value in (("EMPTY", None), ("THERE", b"x")):
        app.execute("SELECT mcpbox.secret_create(%s, %s, '', 'local')", (s[0], key))
        if value:
            app.execute("SELECT mcpbox.secret_store(%s, %s, 'root', %s)", (s[1], key, value))
    r = t.publish()
    said, = one(app, "SELECT mcpbox.approval_circumstances(a) FROM mcpbox.approval_requests a WHERE id = %s", r)
    assert json.loads("{" + said + "}")["secrets_missing"] == [{"name": "ABSENT", "state": "absent"},
                                                               {"name": "EMPTY", "state": "empty"}]
