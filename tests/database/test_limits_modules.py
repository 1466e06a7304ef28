"""Limits and modules, attacked as in test_database.py."""
import hashlib
import re
import uuid

import psycopg
import pytest

from harness.pg import ROOT
from harness.played.admind import preimage
from harness.tlv import tlv
from database.test_database import DENIED, Tool, guarded, one, refused, server

DIGEST = hashlib.sha256(b"module").digest()
NONE = (None,) * 16


def limit_table():
    """Name: (min, max) of common/version/limit.h, in its order."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "common/version/limit.h").read_text())
    rows = re.findall(r'(?:FIRST|L)\(\w+, "(\w+)", "[^"]+", (\d+),\s*(\d+),', text)
    assert len(rows) == 16, rows
    return {n: (int(lo), int(hi)) for n, lo, hi in rows}


LIMITS = limit_table()


def version_with(pre, *fields):
    """The pre-image with further fields in their places."""
    head, body, out = pre[:17], pre[17:], []
    while body:
        n = int.from_bytes(body[1:5], "big")
        out.append((body[0], body[5:5 + n]))
        body = body[5 + n:]
    return head + tlv(*sorted(out + list(fields), key=lambda f: f[0]))


def add(c, tool, *fields):
    pre = preimage(tool.server.bytes, tool.id.bytes, tool.server_name, tool.name)
    pre = version_with(pre, *fields)
    version = uuid.uuid4()
    c.execute("SELECT mcpbox.add_version(%s, %s, '', 'local')", (version, pre))
    return version


def module(c, name=None, version="1.0", digest=DIGEST):
    name = name or "m" + uuid.uuid4().hex[:10]
    c.execute("SELECT mcpbox.add_module(%s, %s, %s, 3, 99, 'root')", (name, version, digest))
    return name


def grant(c, tool, name, version=""):
    return one(c, "SELECT mcpbox.grant_module(%s, %s, %s, 'root')", str(tool.id), name, version)[0]


def lock(name, version="1.0", digest=DIGEST):
    return f"{name} {version} {digest.hex()}"


# --- limits ---------------------------------------------------------------


def test_bounds_are_those_of_the_program(owner):
    """Each column's CHECK, and the rule for columns without one, against limit.h."""
    for table, names in (("server_limits", LIMITS), ("tool_versions", list(LIMITS)[5:15])):
        for name in names:
            text = one(owner, "SELECT pg_get_constraintdef(oid) FROM pg_constraint "
                       "WHERE conrelid = %s::regclass AND conname = %s",
                       "mcpbox." + table, f"{table}_{name}_check")[0]
            assert tuple(map(int, re.findall(r"\d{2,}|\b\d\b", text))) == LIMITS[name], text
    columns = {r[0] for r in owner.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'mcpbox.server_limits'::regclass "
        "AND attnum > 0").fetchall()}
    assert columns - {"server_id", "updated_at", "updated_by"} == set(LIMITS)


@pytest.mark.parametrize("name", [n for n in LIMITS if n != "code_bytes"])
def test_a_version_stays_within_bounds(app, name):
    t = Tool(app)
    at = list(LIMITS).index(name)
    tag = 24 + at if at < 12 else 32 + at       # the last three came later
    lo, hi = LIMITS[name]
    for good in (lo, hi):
        v = add(app, t, (tag, good))
        assert one(app, f"SELECT {name} FROM mcpbox.tool_versions WHERE id = %s", v)[0] == good
    for bad in (lo - 1, hi + 1, 2**63 - 1):
        with pytest.raises(psycopg.Error):
            add(app, t, (tag, bad))


def present(c, s):
    return one(c, "SELECT mcpbox.server_limits_json(%s)", str(s))[0]


def set_limits(c, s, values, seen=None):
    row = [values.get(n) for n in LIMITS]
    seen = hashlib.sha256(present(c, s).encode()).digest() if seen is None else seen
    return one(c, "SELECT mcpbox.set_server_limits(%s, %s, 'anna'" + ", %s::bigint" * 16 + ")",
               s, seen, *row)[0]


def test_server_limits_are_replaced_by_what_was_read(app):
    s, name = server(app)
    first = present(app, name)
    assert first == present(app, s) and '"timeout_ms" : null' in first
    now = set_limits(app, s, {"timeout_ms": 2000, "code_bytes": 5000})
    assert now == present(app, name) != first and '"timeout_ms" : 2000' in now
    assert one(app, "SELECT actor, action, subject, detail FROM mcpbox.audit_log ORDER BY seq DESC LIMIT 1") \
        [:3] == ("anna", "server_limits_set", "server " + name)
    stale = hashlib.sha256(first.encode()).digest()
    for seen in (stale, bytes(32), b"", None):
        refused(app, "hash_mismatch",
                "SELECT mcpbox.set_server_limits(%s, %s, 'x'" + ", NULL" * 16 + ")", s, seen)
    assert present(app, name) == now
    # the very same values set again are another state: their time differs
    assert set_limits(app, s, {"timeout_ms": 2000, "code_bytes": 5000}) != now
    assert '"timeout_ms" : null' in set_limits(app, s, {})
    assert present(app, "no_such") is None
    refused(app, "not_found", "SELECT mcpbox.set_server_limits(%s, ''::bytea, 'x'" + ", NULL" * 16 + ")",
            uuid.uuid4())


@pytest.mark.parametrize("name", LIMITS)
def test_server_limits_stay_within_bounds(app, name):
    s, _ = server(app)
    before = present(app, s)
    lo, hi = LIMITS[name]
    for bad in (lo - 1, hi + 1, -1, 2**63 - 1):
        with pytest.raises(psycopg.errors.CheckViolation):
            set_limits(app, s, {name: bad})
    assert present(app, s) == before
    for good in (lo, hi):
        set_limits(app, s, {name: good})


def test_app_writes_none_of_the_tables(app):
    s, _ = server(app)
    for attack in ("INSERT INTO mcpbox.server_limits (server_id, updated_by) VALUES (%s, 'x')",
                   "UPDATE mcpbox.server_limits SET timeout_ms = 600000 WHERE server_id <> %s",
                   "DELETE FROM mcpbox.modules WHERE name <> %s::text",
                   "INSERT INTO mcpbox.tool_modules SELECT %s, 'a', '1', '', now(), 'x'",
                   "UPDATE mcpbox.tool_modules SET revoked_at = NULL WHERE tool_id <> %s",
                   "DELETE FROM mcpbox.module_requests WHERE id <> %s",
                   "SELECT mcpbox.tool_named(%s::text)"):
        with pytest.raises(DENIED):
            app.execute(attack, (s,))


# --- modules --------------------------------------------------------------


def test_a_module_is_one_content_for_ever(app, owner):
    name = module(app)
    module(app, name)  # the same again
    refused(app, "conflict", "SELECT mcpbox.add_module(%s, '1.0', %s, 0, 0, 'root')", name, bytes(32))
    for c in (app, owner):
        with pytest.raises(psycopg.Error):
            c.execute("UPDATE mcpbox.modules SET digest = %s WHERE name = %s", (bytes(32), name))
    guarded(owner, "DELETE FROM mcpbox.modules WHERE name = %s", name)
    guarded(owner, "TRUNCATE mcpbox.modules CASCADE")
    for bad in ("", "-a", "a-", "../x", "a b", "a\n", "A_"):
        with pytest.raises(psycopg.Error):
            module(app, bad or " ")
    for bad in ("", " ", "1 0", "1\n", "-1", "1/2", "x" * 65):
        with pytest.raises(psycopg.Error):
            module(app, version=bad)
    for bad in (b"", DIGEST[:31], DIGEST + b"x"):
        with pytest.raises(psycopg.Error):
            module(app, digest=bad)


def test_names_have_one_spelling(app):
    t, n = Tool(app), "n" + uuid.uuid4().hex[:8]
    module(app, f"{n.upper()}._Two")
    assert grant(app, t, f"{n}_two") == f"{n}-two==1.0"
    assert one(app, "SELECT mcpbox.module_lock(%s, %s)", t.id, [f"{n}.TWO"])[0] == lock(f"{n}-two")


def test_a_version_has_only_modules_granted_to_its_tool(app):
    t, other = Tool(app), Tool(app)
    name = module(app)
    want = (17, lock(name))
    with pytest.raises(psycopg.Error, match="missing_grant.*mcpbox_request_module"):
        add(app, t, want)
    grant(app, other, name)
    with pytest.raises(psycopg.Error, match="missing_grant"):
        add(app, t, want)
    grant(app, t, name)
    version = add(app, t, want)
    assert one(app, "SELECT modules FROM mcpbox.tool_versions WHERE id = %s", version)[0] == [lock(name)]
    for wrong in (lock(name, "1.1"), lock(name, digest=bytes(32)), name, f"{name}==1.0", f"{name} 1.0",
                  lock(name) + " ", lock(name).upper()):
        with pytest.raises(psycopg.Error, match="missing_grant"):
            add(app, t, (17, wrong))


def test_a_lock_names_what_was_granted(app):
    t = Tool(app)
    a, b = sorted((module(app), module(app)))
    module(app, a, "2.0", bytes(32))
    grant(app, t, b)
    assert grant(app, t, a) == f"{a}==2.0"  # the one recorded last
    grant(app, t, a, "1.0")

    def locked(*wanted):
        return [r[0] for r in app.execute("SELECT mcpbox.module_lock(%s, %s)", (t.id, list(wanted))).fetchall()]

    assert locked(b, f"{a}==2.0") == [lock(a, "2.0", bytes(32)), lock(b)]
    assert locked(a) == [lock(a)]  # the one granted last
    assert locked() == []
    refused(app, "missing_grant", "SELECT mcpbox.module_lock(%s, %s)", t.id, [b, "requests"])
    refused(app, "missing_grant", "SELECT mcpbox.module_lock(%s, %s)", t.id, [f"{a}==3.0"])
    refused(app, "invalid_arguments", "SELECT mcpbox.module_lock(%s, %s)", t.id, [f"{a}==1.0", f"{a}==2.0"])
    for wanted in (["%"], ["' OR true --"], ["=="], [""]):
        refused(app, "missing_grant", "SELECT mcpbox.module_lock(%s, %s)", t.id, wanted)


def opened(c, schema, t):
    epoch = one(c, "SELECT epoch FROM mcpbox.epochs WHERE node = 'modules' AND ended_at IS NULL")
    if epoch is None:
        epoch = (uuid.uuid4(),)
        c.execute("SELECT mcpbox.epoch_begin(%s, 'modules', 'sandboxd')", epoch)
    v = one(c, "SELECT id, hash, exposed_name FROM mcpbox.tool_versions WHERE id = %s", t.serving())
    return one(c, "SELECT mcpbox.execution_open(%s, 'tool', %s, %s, %s, 'local', 'local', %s, %s, "
               "'{}', '', '', now(), now() + interval '1 minute')",
               uuid.uuid4(), v[0], v[1], epoch[0], v[2], bytes(32))[0]


@pytest.mark.parametrize("how", ["revoke", "withdraw"])
def test_what_is_taken_back_never_runs_again(app, schema, how):
    t, name = Tool(app), module(app)
    grant(app, t, name)
    pre = version_with(preimage(t.server.bytes, t.id.bytes, t.server_name, t.name), (17, lock(name)))
    app.execute("SELECT mcpbox.add_version(%s, %s, '', 'local')", (uuid.uuid4(), pre))
    t.hash = hashlib.sha256(pre).digest()
    t.approve()
    assert opened(app, schema, t) == "ok"
    if how == "revoke":
        assert one(app, "SELECT mcpbox.revoke_module(%s, %s, '', 'root')", str(t.id), name)[0] == f"{name}==1.0"
        refused(app, "not_found", "SELECT mcpbox.revoke_module(%s, %s, '', 'root')", str(t.id), name)
    else:
        app.execute("SELECT mcpbox.withdraw_module(%s, '1.0', 'root')", (name,))
        refused(app, "not_found", "SELECT mcpbox.withdraw_module(%s, '1.0', 'root')", name)
        refused(app, "not_found", "SELECT mcpbox.grant_module(%s, %s, '', 'root')", str(t.id), name)
    assert opened(app, schema, t) == "missing_grant"
    with pytest.raises(psycopg.Error, match="missing_grant"):
        add(app, t, (17, lock(name)))
    if how == "withdraw":
        module(app, name)
    else:
        grant(app, t, name)
    assert opened(app, schema, t) == "ok"


def test_a_new_draft_with_modules_leaves_the_approved_version_serving(app, schema):
    t = Tool(app).approve()
    serving, name = t.serving(), module(app)
    grant(app, t, name)
    add(app, t, (17, lock(name)))
    assert t.serving() == serving and opened(app, schema, t) == "ok"


# --- requests -------------------------------------------------------------


def request(c, t, name, version=""):
    r = uuid.uuid4()
    c.execute("SELECT mcpbox.request_module(%s, %s, %s, %s, %s, 'to parse', 'local')",
              (r, uuid.uuid4(), t.id, name, version))
    return r


def test_requests_for_modules(app, owner):
    t = Tool(app)
    r = request(app, t, "Some_Thing", "2.0")
    kind, subject, digest, notes = one(app, "SELECT kind, subject, hash, notes FROM mcpbox.approval_requests "
                                       "WHERE id = %s", r)
    assert kind == "module" and notes == "to parse"
    name, version, pre = one(app, "SELECT name, version, preimage FROM mcpbox.module_requests WHERE id = %s",
                             subject)
    assert (name, version) == ("some-thing", "2.0")
    assert pre == b"mcpbox module request 1\0" + tlv((1, t.id.bytes), (2, name), (3, version), (4, "to parse"))
    # what is approved are the bytes of the grant, not of the wish
    assert one(app, "SELECT sha256(preimage) FROM mcpbox.grant_requests WHERE id = %s", r)[0] == digest
    again = "SELECT mcpbox.request_module(%s, %s, %s, %s, %s, 'x', 'local')"
    refused(app, "conflict", again, uuid.uuid4(), uuid.uuid4(), t.id, "some.thing", "2.0")
    request(app, t, "some-thing")  # any version is another wish
    refused(app, "not_found", again, uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), "a", "")
    granted = module(app)
    grant(app, t, granted)
    refused(app, "conflict", again, uuid.uuid4(), uuid.uuid4(), t.id, granted, "")
    for attack in ("UPDATE mcpbox.module_requests SET name = 'evil' WHERE id = %s",
                   "DELETE FROM mcpbox.module_requests WHERE id = %s"):
        guarded(owner, attack, subject)
    # nobody can decide what nobody recorded
    refused(app, "missing_grant", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 'seal')",
            r, digest)


def test_requests_of_a_tool_are_bounded(app):
    """A client can't push other requests out of an administrator's sight."""
    t, other = Tool(app), Tool(app)
    for i in range(32):
        request(app, t, f"wish{i}")
    refused(app, "limit", "SELECT mcpbox.request_module(%s, %s, %s, %s, %s, 'x', 'local')",
            uuid.uuid4(), uuid.uuid4(), t.id, "onemore", "")
    request(app, other, "onemore")      # another tool's are counted apart


# --- kinds ----------------------------------------------------------------

PYTHON, COMMAND = (14, "python"), (14, "command")
CODE = (15, "def main(): pass")
SPEC, PATH, SUM = (16, '{"argv":[]}'), (18, "/usr/bin/wc"), (19, "0" * 64)


@pytest.mark.parametrize("fields,good", [
    ((PYTHON, CODE), True), ((COMMAND, SPEC, PATH, SUM), True),
    ((PYTHON,), False), ((PYTHON, CODE, SPEC), False), ((PYTHON, CODE, PATH), False),
    ((PYTHON, CODE, SUM), False), ((COMMAND, CODE, SPEC, PATH, SUM), False), ((COMMAND, PATH, SUM), False),
    ((COMMAND, SPEC, SUM), False), ((COMMAND, SPEC, PATH), False), ((COMMAND, SPEC, PATH, (19, "0" * 63)), False),
    ((COMMAND, SPEC, PATH, (19, "A" * 64)), False),
    ((COMMAND, SPEC, PATH, SUM, (20, "KEY")), False), (((14, "http"), CODE), False), (((14, "mcp"), CODE), False),
    (((14, "Python"), CODE), False)])
def test_a_version_has_the_parts_of_its_kind(app, fields, good):
    t = Tool(app)
    pre = preimage(t.server.bytes, t.id.bytes, t.server_name, t.name)
    pre = version_with(pre.replace(tlv(PYTHON), b"").replace(tlv(CODE), b""), *fields)
    made = "SELECT mcpbox.add_version(%s, %s, '', 'local')", (uuid.uuid4(), pre)
    if good:
        app.execute(*made)
    else:
        with pytest.raises(psycopg.Error):
            app.execute(*made)
