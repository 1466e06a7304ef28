"""Administrators and the audit log's readers in the database, as the run-time
role and as the owner."""
import threading
import uuid

import psycopg
import pytest

from database.test_database import APP, guarded, one, refused

STORE = "SELECT mcpbox.admin_store(%s, %s, %s, %s, %s)"


@pytest.fixture(scope="module")
def first(schema):
    with schema.pg.connect(APP) as c:
        c.execute(STORE, ("setup", "admin", "administrator", "root", b"v"))
    return "admin"


def unique():
    return "u" + uuid.uuid4().hex[:12]


def test_a_life(app, first):
    name = unique()
    app.execute(STORE, ("create", name, "viewer", first, b"v1"))
    app.execute(STORE, ("role", name, "reviewer", first, b"v2"))
    app.execute(STORE, ("own_password", name, "reviewer", name, b"v3"))
    app.execute(STORE, ("password", name, "reviewer", "root", b"v4"))
    row = one(app, "SELECT role, verifier, created_by, password_at > created_at FROM mcpbox.admin_users "
              "WHERE username = %s", name)
    assert row == ("reviewer", b"v4", "admin", True)
    app.execute(STORE, ("delete", name, "", "root", b""))
    assert one(app, "SELECT count(*) FROM mcpbox.admin_users WHERE username = %s", name) == (0,)
    rows = app.execute("SELECT actor, action, detail::json ->> 'role' FROM mcpbox.audit_log WHERE subject = %s "
                       "ORDER BY seq", ("administrator " + name,)).fetchall()
    assert rows == [("admin", "admin_created", "viewer"), ("admin", "admin_role_changed", "reviewer"),
                    (name, "password_change", "reviewer"), ("root", "password_reset", "reviewer"),
                    ("root", "admin_deleted", "reviewer")]


def test_refusals(app, first):
    refused(app, "conflict", STORE, "setup", unique(), "administrator", "root", b"v")
    refused(app, "conflict", STORE, "create", "ADMIN", "viewer", "root", b"v")
    refused(app, "conflict", STORE, "create", "admin", "viewer", "root", b"v")
    for name in ("root", "Local", "mcpbox", "UNKNOWN", "token"):
        refused(app, "invalid_params", STORE, "create", name, "viewer", "root", b"v")
    for change in ("role", "password", "own_password", "delete"):
        refused(app, "not_found", STORE, change, unique(), "viewer", "root", b"v")
    refused(app, "invalid_params", STORE, "erase", "admin", "viewer", "root", b"v")
    # the vault sealed a verifier for a role that it is no longer
    refused(app, "conflict", STORE, "password", "admin", "viewer", "root", b"v")
    with pytest.raises(psycopg.errors.CheckViolation):
        app.execute(STORE, ("create", unique(), "emperor", "root", b"v"))


def test_there_is_always_an_administrator(app, owner, first):
    refused(app, "conflict", STORE, "role", "admin", "viewer", "root", b"v")
    refused(app, "conflict", STORE, "delete", "admin", "", "root", b"")
    for attack in ("DELETE FROM mcpbox.admin_users", "UPDATE mcpbox.admin_users SET role = 'viewer'"):
        refused(owner, "conflict", attack)
    guarded(owner, "TRUNCATE mcpbox.admin_users")
    for attack in ("DELETE FROM mcpbox.admin_users", "UPDATE mcpbox.admin_users SET verifier = 'x'",
                   "INSERT INTO mcpbox.admin_users (username, role, verifier) VALUES ('eve', 'administrator', 'v')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute(attack)


def test_two_demotions_at_once(schema, app, first):
    """Of the last two, however they meet."""
    for _ in range(5):
        other = unique()
        app.execute(STORE, ("create", other, "administrator", "root", b"v"))
        done = []

        def demote(name):
            with schema.pg.connect(APP) as c:
                try:
                    c.execute(STORE, ("role", name, "viewer", "root", b"v"))
                    done.append(name)
                except psycopg.Error as e:
                    assert e.diag.message_primary.startswith("conflict"), e

        threads = [threading.Thread(target=demote, args=(n,)) for n in ("admin", other)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(done) == 1
        app.execute(STORE, ("role", "admin", "administrator", "root", b"v"))
        app.execute(STORE, ("delete", other, "", "root", b""))


def test_words(app):
    app.execute("SELECT mcpbox.audit_append('zoe@example.org', 'test_words', 'tool demo__find_me', %s)",
                ('{"host": "api.example.org:443", "n": [1, {"deep": "Blüte"}]}',))
    for words, found in (("find me", 1), ("demo__find_me", 1), ("FIND", 1), ("zoe@example.org", 1), ("blüte", 1),
                         ("api.example.org", 1), ("443 deep", 1), ("test words", 1), ("fin", 0), ("find you", 0),
                         ("'; DROP TABLE x; --", 0), ("find & | ! me", 1)):
        n = one(app, "SELECT count(*) FROM mcpbox.audit_log l WHERE l.action = 'test_words' AND mcpbox.audit_words("
                "l.actor, l.action, l.subject, l.detail) @@ mcpbox.audit_query(%s)", words)[0]
        assert n == found, words
