"""Scripts' keys (0013): as the run-time role, and as the owner where a person could break it."""
import json
import secrets
import threading

import psycopg
import pytest

from database.test_actions import act, refuse
from database.test_database import APP, DENIED, guarded, one, refused
from harness.patience import patience, until

CREATE = "SELECT mcpbox.script_key_create(%s, %s, %s, %s, %s)"
USE = "SELECT name, state, allowed, role FROM mcpbox.script_key_use(%s, %s)"
STORE = "SELECT mcpbox.admin_store(%s, %s, %s, %s, %s)"


@pytest.fixture(scope="module", autouse=True)
def first(schema):
    with schema.pg.connect(APP) as c:
        c.execute(STORE, ("setup", "admin", "administrator", "root", b"v"))


@pytest.fixture(autouse=True)
def no_keys(schema):
    yield
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("DELETE FROM mcpbox.script_keys")


def unique():
    return "k" + secrets.token_hex(6)


def create(c, name=None, scopes="read", days=90, actor="root"):
    """(the key as it is shown, its digest)"""
    digest = secrets.token_bytes(32)
    return json.loads(one(c, CREATE, name or unique(), digest, scopes, days, actor)[0]), digest


def person(c, role="administrator"):
    name = "p" + secrets.token_hex(6)
    c.execute(STORE, ("create", name, role, "admin", b"v"))
    return name


def audit(c, name):
    return c.execute("SELECT actor, action, detail::json ->> 'reason' FROM mcpbox.audit_log WHERE subject = %s"
                     " ORDER BY seq", ("key " + name,)).fetchall()


def test_a_life(app):
    key, digest = create(app, "Backup.1", "operate\nread\nread")
    assert (key["name"], key["actor"], key["state"], key["scopes"], key["created_by"]) == (
        "Backup.1", "key:Backup.1", "active", ["operate", "read"], "root")
    assert key["last_used_at"] is None and "digest" not in key
    assert one(app, USE, digest, "read") == ("Backup.1", "active", True, "administrator")
    assert one(app, USE, digest, "operate")[2] and not one(app, USE, digest, "export")[2]
    assert app.execute(USE, (secrets.token_bytes(32), "read")).fetchall() == []
    shown = act(app, "key_revoke", "Backup.1", '{"reason":"lost"}')
    assert (shown["state"], shown["revoked_by"], shown["reason"]) == ("revoked", "ann", "lost")
    assert act(app, "key_revoke", "Backup.1", '{"reason":"again"}', actor="bob") == shown
    assert one(app, USE, digest, "read")[1] == "revoked"
    assert audit(app, "Backup.1") == [("root", "key_created", None), ("ann", "key_revoked", "lost")]
    refuse(app, "not_found", "key_revoke", "backup.1")
    for name in ("Backup.1", "bAckup.1"):     # never given twice
        refused(app, "conflict", CREATE, name, secrets.token_bytes(32), "read", 90, "root")


def test_refusals(app):
    def no(failure, name="ok", scopes="read", days=90, actor="root"):
        refused(app, failure, CREATE, name, secrets.token_bytes(32), scopes, days, actor)

    for name in ("", "-a", "a b", "a/b", "a:b", "x" * 65, "a\n"):
        no("invalid_params", name=name)
    for scopes in ("", "never", "read\nvault", "READ", "manage", "tools:read"):
        no("invalid_params", scopes=scopes)
    for days in (0, -1, 366):
        no("invalid_params", days=days)
    create(app, days=365)
    create(app, days=1)


def test_its_maker_is_root_or_an_administrator_with_a_row(app):
    viewer, reviewer = person(app, "viewer"), person(app, "reviewer")
    for actor in (viewer, reviewer, "nobody", "alice@issuer", "key:other", "local"):
        refused(app, "forbidden", CREATE, unique(), secrets.token_bytes(32), "read", 90, actor)
    assert create(app, actor="admin")[0]["created_by"] == "admin"


def test_it_never_may_more_than_its_maker(app):
    maker = person(app)
    digest = create(app, actor=maker, scopes="operate")[1]
    assert one(app, USE, digest, "operate")[3] == "administrator"
    for role in ("reviewer", "viewer", "administrator"):
        app.execute(STORE, ("role", maker, role, "admin", b"v"))
        assert one(app, USE, digest, "operate")[3] == role


def test_it_ends_with_its_maker(app):
    maker, other = person(app), person(app)
    (first, one_digest), (second, _), (his, his_digest) = (
        create(app, actor=maker), create(app, actor=maker), create(app, actor=other))
    root = create(app)[1]
    act(app, "key_revoke", second["name"], '{"reason":"before"}')
    app.execute(STORE, ("delete", maker, "", "admin", b""))
    assert one(app, USE, one_digest, "read")[1] == "revoked"
    assert one(app, USE, his_digest, "read")[1] == "active" and one(app, USE, root, "read")[1] == "active"
    assert audit(app, first["name"])[-1] == ("mcpbox", "key_revoked", "the administrator who made it was removed")
    assert audit(app, second["name"])[-1][2] == "before"
    # Another person who gets the name gets no key with it.
    app.execute(STORE, ("create", maker, "administrator", "admin", b"v"))
    assert one(app, USE, one_digest, "read")[1] == "revoked"


def test_a_key_made_while_its_maker_is_removed(app, owner, schema):
    """Either is first: the key is made and ends, or it is not made."""
    maker = person(app)
    app.execute("BEGIN")
    digest = create(app, actor=maker)[1]
    done = []

    def remove():
        with schema.pg.connect(APP) as c:
            done.append(c.info.backend_pid)
            c.execute(STORE, ("delete", maker, "", "admin", b""))
    t = threading.Thread(target=remove)
    t.start()
    until(lambda: done and one(owner, "SELECT cardinality(pg_blocking_pids(%s)) > 0", done[0])[0], 30, 0.02)
    app.execute("COMMIT")
    t.join(patience(30))
    assert one(app, USE, digest, "read")[1] == "revoked"
    refused(app, "forbidden", CREATE, unique(), secrets.token_bytes(32), "read", 90, maker)


def test_its_time(app, owner):
    digest = secrets.token_bytes(32)
    owner.execute("INSERT INTO mcpbox.script_keys (name, digest, scopes, created_at, created_by, expires_at) VALUES"
                  " ('old', %s, '{read}', now() - interval '2 days', 'root', now() - interval '1 day')", (digest,))
    assert one(app, USE, digest, "read")[:2] == ("old", "expired")
    assert one(app, "SELECT mcpbox.script_key_json(k)::json ->> 'state' FROM mcpbox.script_keys k") == ("expired",)
    assert one(app, "SELECT last_used_at FROM mcpbox.script_keys") == (None,)


def test_use_is_noted_once_a_minute(app, owner):
    digest = create(app)[1]
    used = []
    for _ in range(3):
        assert one(app, USE, digest, "read")[1] == "active"
        used.append(one(app, "SELECT last_used_at FROM mcpbox.script_keys")[0])
    assert used[0] is not None and len(set(used)) == 1
    # A lock of the row makes no request wait.
    owner.execute("BEGIN")
    owner.execute("UPDATE mcpbox.script_keys SET last_used_at = now() - interval '1 hour'")
    app.execute("SET lock_timeout = '5s'")
    assert one(app, USE, digest, "read")[1] == "active"
    owner.execute("ROLLBACK")


def test_there_are_256(app):
    for i in range(256):
        create(app, f"n{i}")
    refused(app, "limit", CREATE, unique(), secrets.token_bytes(32), "read", 90, "root")
    act(app, "key_revoke", "n7")
    create(app)


def test_a_row_stays_as_it_is(app, owner):
    create(app, "fixed", actor="admin")
    for change in ("scopes = '{export,read}'", "digest = sha256('x')", "created_by = 'root'", "name = 'other'",
                   "expires_at = expires_at + interval '1 day'", "created_at = now()"):
        guarded(owner, f"UPDATE mcpbox.script_keys SET {change}")
    guarded(owner, "DELETE FROM mcpbox.script_keys")
    guarded(owner, "TRUNCATE mcpbox.script_keys")
    act(app, "key_revoke", "fixed")
    guarded(owner, "UPDATE mcpbox.script_keys SET revoked_at = NULL, revoked_by = NULL")
    for values in ("'{}', now() + interval '1 day'", "'{never}', now() + interval '1 day'",
                   "'{read}', now() + interval '366 days'", "'{read}', now() - interval '1 day'", "'{read}', NULL"):
        with pytest.raises(psycopg.errors.IntegrityError):
            owner.execute("INSERT INTO mcpbox.script_keys (name, digest, created_by, scopes, expires_at)"
                          f" VALUES ('x', sha256('y'), 'root', {values})")


def test_the_run_time_role_writes_by_functions_alone(app):
    for q in ("INSERT INTO mcpbox.script_keys (name) VALUES ('x')", "UPDATE mcpbox.script_keys SET reason = 'x'",
              "DELETE FROM mcpbox.script_keys", "SELECT mcpbox.act_key_revoke('a', 'b', NULL, '{}')",
              "SELECT mcpbox.script_keys_orphaned()"):
        with pytest.raises(DENIED):
            app.execute(q)
