"""sql/schema/store.sql: the installer's queue and what it brings, attacked as in
test_database.py."""
import hashlib
import json
import uuid

import psycopg
import pytest

from database.test_approvals import act, act_refused, content, decide, fields, pending
from database.test_database import Tool, guarded, one, refused, server
from database.test_limits_modules import module, request

A = hashlib.sha256(b"a").digest()
B = hashlib.sha256(b"b").digest()


def name():
    return "p" + uuid.uuid4().hex[:12]


def report(n, version="1.0", needs=(), **kw):
    said = {"name": n, "version": version, "filename": f"{n}-{version}-py3-none-any.whl",
            "sha256": "ab" * 32, "url": "https://index.example/x.whl", "size": 1234,
            "summary": "what it is", "license": "ISC", "requires_python": ">=3.9",
            "requires": [f"{m}>=1" for m, _ in needs],
            "needs": [{"requirement": f"{m}>=1", "name": m, "version": v} for m, v in needs],
            "advisories": None, "digest": "00" * 32, "files": 1, "bytes": 1}
    said.update(kw)
    return json.dumps({"content": [], "structuredContent": said, "isError": False}).encode()


def drain(c):
    """Nothing is due."""
    while take(c) is not None:
        pass


def take(c, node="n1", lease=60000):
    run = uuid.uuid4()
    row = c.execute("SELECT name, version FROM mcpbox.module_install_next(%s, %s, %s)",
                    (node, run, lease)).fetchone()
    return row and (row[0], row[1], run)


def came(c, row, body=None, digest=A, files=3, size=99):
    n, v, run = row
    return one(c, "SELECT * FROM mcpbox.module_installed(%s, %s, %s, %s, %s, %s, %s)",
               n, v, run, body or report(n), digest, files, size)


def state(c, n, v=""):
    return one(c, "SELECT state, error, attempts FROM mcpbox.module_installs WHERE name = %s"
               " AND version = %s", n, v)


def test_a_request_is_fetched_and_then_has_its_digest(app):
    drain(app)
    t, n = Tool(app), name()
    r = request(app, t, n)
    assert 9 not in dict(fields(content(app, r)[0]))
    refused(app, "missing_grant", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 's')",
            r, content(app, r)[1])
    row = take(app)
    assert row[:2] == (n, "") and take(app) is None
    assert came(app, row) == ("1.0", None)
    assert state(app, n)[:2] == ("done", None)
    fresh = pending(app, r)
    assert fresh != r
    got = dict(fields(content(app, fresh)[0]))
    assert got[8] == b"1.0" and got[9] == A and int.from_bytes(got[10], "big") == 3
    said = json.loads("{" + one(app, "SELECT mcpbox.module_circumstances(a) FROM"
                                " mcpbox.approval_requests a WHERE id = %s", fresh)[0][1:] + "}")
    assert said["wheel"]["sha256"] == "ab" * 32 and said["wheel"]["bytes"] == 1234
    assert said["install"]["state"] == "done"
    decide(app, fresh, digest=content(app, fresh)[1])
    assert one(app, "SELECT digest FROM mcpbox.tool_modules WHERE tool_id = %s", t.id)[0] == A


def test_what_is_there_is_not_fetched(app):
    drain(app)
    n = module(app)
    request(app, Tool(app), n)
    assert take(app) is None
    request(app, Tool(app), n, "2.0")
    assert take(app)[:2] == (n, "2.0")


def test_one_at_a_time_and_another_after_the_lease(app):
    drain(app)
    n = name()
    request(app, Tool(app), n)
    request(app, Tool(app), n)      # two tools: one installation
    first = take(app, lease=0)
    second = take(app, node="n2")
    assert first[:2] == second[:2] == (n, "") and take(app) is None
    # the first was overtaken: what it brings now counts for nothing
    assert came(app, first)[1] == "another attempt took its place"
    one(app, "SELECT mcpbox.module_install_failed(%s, '', %s, 'late', false)", n, first[2])
    assert state(app, n)[0] == "running"
    assert came(app, second) == ("1.0", None)


def test_failures(app, owner):
    drain(app)
    t, n = Tool(app), name()
    request(app, t, n)
    for i in range(1, 6):
        row = take(app)
        assert row is not None, i
        one(app, "SELECT mcpbox.module_install_failed(%s, %s, %s, %s, true)", *row,
            "the index\x1b[2J answered 503")
        assert state(app, n) == ("waiting" if i < 5 else "failed", "the index [2J answered 503", i)
        assert take(app) is None      # not before its time
        app.commit()
        owner.execute("UPDATE mcpbox.module_installs SET due = now() WHERE name = %s", (n,))
        owner.commit()
    assert take(app) is None
    # who asks anew has it tried again: another tool, or an administrator
    request(app, Tool(app), n)
    row = take(app)
    one(app, "SELECT mcpbox.module_install_failed(%s, %s, %s, 'no such package', false)", *row)
    assert state(app, n)[:2] == ("failed", "no such package")
    said = act(app, "module_install", n, {})
    assert said["state"] == "waiting" and take(app)[:2] == (n, "")


BAD = [{"name": "other"}, {"version": "2.0"}, {"version": None}, {"version": "1 0"}, {"version": "1" * 70},
       {"sha256": "xx"}, {"sha256": None}, {"size": "1e9"}, {"size": -1}, {"filename": ""}, {"url": None}]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_report_that_is_none(app, bad):
    drain(app)
    n = name()
    request(app, Tool(app), n, "1.0")
    version, wrong = came(app, take(app), report(n, **bad))
    assert wrong and state(app, n, "1.0")[0] == "failed"
    assert one(app, "SELECT count(*) FROM mcpbox.modules WHERE name = %s", n) == (0,)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"structuredContent": 3}', b"\xff"])
def test_a_body_that_is_none(app, body):
    drain(app)
    n = name()
    request(app, Tool(app), n, "1.0")
    row = take(app)
    try:
        with app.transaction():
            assert came(app, row, body or b" ")[1]
    except psycopg.Error:
        pass
    assert one(app, "SELECT count(*) FROM mcpbox.modules WHERE name = %s", n) == (0,)


def test_the_same_version_means_the_same_bytes(app):
    drain(app)
    t, n = Tool(app), module(app, digest=A)
    app.execute("SELECT mcpbox.withdraw_module(%s, '1.0', 'root')", (n,))
    request(app, t, n, "1.0")
    row = take(app)
    assert "another one now" in came(app, row, digest=B)[1]
    assert one(app, "SELECT digest, state FROM mcpbox.modules WHERE name = %s", n) == (A, "withdrawn")
    # and what a person withdrew does not come back by being asked for
    act(app, "module_install", n, {"version": "1.0"})
    assert "withdrew" in came(app, take(app), digest=A)[1]


def test_dependencies_become_requests(app):
    drain(app)
    t, n, d1, d2, there = Tool(app), name(), name(), name(), module(app)
    request(app, t, n)
    assert came(app, take(app), report(n, needs=[(d1, "3.1"), (d2, "0.5"), (there, "1.0"),
                                                 ("Bad_Name", "1"), ("x", "1 1")])) == ("1.0", None)
    while one(app, "SELECT mcpbox.module_need_ask()")[0]:
        pass
    got = app.execute("SELECT r.name, r.version, r.justification FROM mcpbox.module_requests r"
                      " WHERE r.tool_id = %s ORDER BY r.name", (t.id,)).fetchall()
    why = f"needed by {n}==1.0"
    assert sorted(got) == sorted([(d1, "3.1", why), (d2, "0.5", why), (there, "1.0", why),
                                  (n, "", "to parse")])
    assert sorted(r[:2] for r in (take(app), take(app))) == sorted([(d1, "3.1"), (d2, "0.5")])
    assert take(app) is None
    # a refused one is not asked for again
    for (r,) in app.execute("SELECT a.id FROM mcpbox.approval_requests a JOIN mcpbox.module_requests m"
                            " ON m.id = a.subject WHERE m.name = %s", (d1,)).fetchall():
        one(app, "SELECT mcpbox.decide_approval(%s, false, NULL, 'root', now(), 'no', NULL)", r)
    assert one(app, "SELECT mcpbox.module_need_ask()") == (False,)


def test_a_ring_of_dependencies_ends(app):
    drain(app)
    t, a, b = Tool(app), name(), name()
    request(app, t, a)
    came(app, take(app), report(a, needs=[(b, "1.0"), (a, "1.0")]))
    while one(app, "SELECT mcpbox.module_need_ask()")[0]:
        pass
    assert came(app, take(app), report(b, needs=[(a, "1.0")]), digest=B) == ("1.0", None)
    assert one(app, "SELECT mcpbox.module_need_ask()") == (False,)
    assert take(app) is None


def test_no_more_than_32_requests(app):
    drain(app)
    t, n = Tool(app), name()
    request(app, t, n)
    came(app, take(app), report(n, needs=[(name(), "1") for _ in range(60)]))
    asked = 0
    while one(app, "SELECT mcpbox.module_need_ask()")[0]:
        asked += 1
    assert asked == 31


def test_who_waits_for_an_automatic_policy(app, owner):
    drain(app)
    app.commit()
    t = Tool(app)
    cases = {name(): None, name(): {"known": [], "more": 0}, name(): {"known": [{"id": "X"}], "more": 0},
             name(): {"error": "no answer"}}
    for n, advisories in cases.items():
        request(app, t, n)
        came(app, take(app), report(n, advisories=advisories))

    def waiting():
        return [n for n in cases if app.execute("SELECT mcpbox.module_waiting(%s, '1.0')", (n,)).fetchall()]
    assert waiting() == []
    app.commit()
    app.execute("SELECT mcpbox.policy_store(extract(epoch FROM clock_timestamp())::bigint * 1000000,"
                " 'require', 'automatic', 'require', 'root', now() + interval '1 day', 'seal',"
                " (SELECT coalesce(max(serial), 0) FROM mcpbox.approval_policies))")
    assert waiting() == list(cases)[:2]
    app.rollback()


def test_what_the_run_time_role_cannot_do(app, owner):
    drain(app)
    n = name()
    request(app, Tool(app), n)
    came(app, take(app))
    for sql in ("UPDATE mcpbox.module_wheels SET sha256 = sha256", "DELETE FROM mcpbox.module_wheels",
                "UPDATE mcpbox.module_installs SET state = 'waiting'",
                "SELECT mcpbox.module_want('x', '')",
                "SELECT mcpbox.act_module_install('root', 'x', NULL, '{}')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            with app.transaction():
                app.execute(sql)
    app.commit()
    for sql in ("UPDATE mcpbox.module_wheels SET url = 'x'", "DELETE FROM mcpbox.module_wheels"):
        with pytest.raises(psycopg.Error):
            with owner.transaction():
                owner.execute(sql)


def test_the_action(app):
    drain(app)
    n = name()
    assert act(app, "module_install", n.upper(), {"version": "1.0"})["name"] == n
    assert one(app, "SELECT action, subject FROM mcpbox.audit_log WHERE action = 'module_install'"
               " ORDER BY seq DESC LIMIT 1") == ("module_install", f"module {n}==1.0")
    act_refused(app, "invalid_params", "module_install", "a b", {})
    act_refused(app, "invalid_params", "module_install", n, {"version": "1 0"})
    came(app, take(app))
    act_refused(app, "conflict", "module_install", n, {"version": "1.0"})
    assert json.loads(one(app, "SELECT mcpbox.manage_get_modules(1, 200)")[0])["total_allowed"] >= 1
