"""Sets of passkeys (0014): as the run-time role, and as the owner where a person could break it."""
import uuid

import psycopg
import pytest

from database.test_administrators import STORE as ADMIN
from database.test_database import APP, DENIED, one, refused
from database.test_keys import NEW, OLD, begin, end, sealed

STORE = "SELECT mcpbox.passkeys_store(%s, %s, %s, %s, %s, %s, %s)"


@pytest.fixture(autouse=True)
def as_new(schema):
    with schema.pg.connect(APP) as c:
        if one(c, "SELECT count(*) FROM mcpbox.admin_users") == (0,):
            c.execute(ADMIN, ("setup", "boss", "administrator", "root", sealed(OLD)))
    yield
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("UPDATE mcpbox.master_key SET key_id = NULL, next_id = NULL;"
                  " DELETE FROM mcpbox.admin_passkeys; DELETE FROM mcpbox.admin_users")


@pytest.fixture
def person(app):
    name = "u" + uuid.uuid4().hex[:12]
    app.execute(ADMIN, ("create", name, "reviewer", "root", sealed(OLD)))
    return name


def kept(app, name):
    return (app.execute("SELECT passkeys FROM mcpbox.admin_passkeys WHERE username = %s", (name,)).fetchone(),
            app.execute("SELECT verifier FROM mcpbox.admin_users WHERE username = %s", (name,)).fetchone())


def test_a_life(app, person):
    before = kept(app, person)[1][0]
    first, second, verifier = sealed(OLD), sealed(OLD) + b"2", sealed(OLD) + b"v"
    app.execute(STORE, ("register", person, "reviewer", person, '{"label":"a"}', verifier, first))
    assert kept(app, person) == ((first,), (verifier,)) and before != verifier
    app.execute(STORE, ("login", person, "reviewer", person, "{}", b"", second))
    app.execute(STORE, ("proof", person, "reviewer", person, "{}", b"", second))
    assert kept(app, person) == ((second,), (verifier,))
    app.execute(STORE, ("remove", person, "reviewer", "root", "{}", before, b""))
    assert kept(app, person) == (None, (before,))
    rows = app.execute("SELECT actor, action, detail FROM mcpbox.audit_log WHERE subject LIKE '%%' || %s"
                       " ORDER BY seq", (person,)).fetchall()
    assert rows[1:] == [(person, "passkey_registered", '{"label":"a"}'), (person, "login", "{}"),
                        (person, "proof", "{}"), ("root", "passkey_removed", "{}")]
    # gone with its person
    app.execute(STORE, ("register", person, "reviewer", person, "{}", verifier, first))
    app.execute(ADMIN, ("delete", person, "", "root", b""))
    assert kept(app, person) == (None, None)


def test_a_person_of_an_issuer(app):
    app.execute(STORE, ("register", "jo@corp", "", "jo@corp", "{}", b"", sealed(OLD)))
    assert kept(app, "jo@corp")[0] is not None


def test_what_is_refused(app, person):
    value = sealed(OLD)
    refused(app, "invalid_params", STORE, "forge", person, "reviewer", person, "{}", b"", value)
    # sealed for a role that the person no longer has; a password without a verifier
    refused(app, "conflict", STORE, "login", person, "viewer", person, "{}", b"", value)
    refused(app, "conflict", STORE, "login", "nobody", "viewer", "nobody", "{}", b"", value)
    refused(app, "invalid_params", STORE, "login", person, "", person, "{}", b"", value)
    assert kept(app, person)[0] is None
    for name in ("a b@corp", "x" * 66 + "@c", "jo@corp\n"):
        with pytest.raises(psycopg.errors.CheckViolation):
            app.execute(STORE, ("register", name, "", "root", "{}", b"", value))
    with pytest.raises(psycopg.errors.CheckViolation):
        app.execute(STORE, ("register", "jo@corp", "", "root", "{}", b"", value + bytes(32769)))


def test_the_run_time_role_writes_by_the_function_alone(app, person):
    for text in ("INSERT INTO mcpbox.admin_passkeys VALUES ('x', '\\x01')",
                 "UPDATE mcpbox.admin_passkeys SET passkeys = '\\x01'", "DELETE FROM mcpbox.admin_passkeys",
                 "TRUNCATE mcpbox.admin_passkeys"):
        with pytest.raises(DENIED):
            app.execute(text)


def test_a_rotation_renews_them(app, person):
    old, new = sealed(OLD), sealed(NEW)
    app.execute(STORE, ("register", person, "reviewer", person, "{}", b"", old))
    begin(app, NEW)
    row = one(app, "SELECT id, place, \"column\", value FROM mcpbox.renew_rows('passkeys', '', %s, 10)", NEW)
    assert row == (person, person, "passkeys", old)
    assert one(app, "SELECT mcpbox.renew_store('passkeys', %s, %s, %s)", [person], [old], [new]) == (1,)
    for name, in app.execute("SELECT username FROM mcpbox.admin_users").fetchall():
        was = one(app, "SELECT verifier FROM mcpbox.admin_users WHERE username = %s", name)[0]
        app.execute("SELECT mcpbox.renew_store('verifier', %s, %s, %s)", ([name], [was], [sealed(NEW)]))
    end(app, NEW)
    refused(app, "conflict", STORE, "proof", person, "reviewer", person, "{}", b"", sealed(OLD))
    assert kept(app, person)[0] == (new,)
