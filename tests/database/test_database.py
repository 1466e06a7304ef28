"""The database's invariants, attacked as the run-time role (a taken-over
admind) and, where a person or a wrong function could break them, as the
owner. A private PostgreSQL; the schema comes from `mcpbox-admind -m`."""
import datetime
import hashlib
import os
import shutil
import struct
import subprocess
import threading
import time
import uuid

import psycopg
import pytest

from harness.instance import BUILD, take_block
from harness.patience import patience, until
from harness.pg import Postgres
from harness.played.admind import preimage
from harness.schema import checksums, migrations
from harness.tlv import tlv

APP, OWNER = "mcpbox_app", "mcpbox_owner"
DENIED = psycopg.errors.InsufficientPrivilege


class Schema:
    def __init__(self, empty=False):
        self.pg = Postgres(empty)
        self.base, self.lock = take_block()
        self.pg.start()
        self.pg.roles()
        self.admind = self.pg.dir / "admind"
        shutil.copy(os.path.join(BUILD, "admind/mcpbox-admind"), self.admind)
        self.conf = self.pg.dir / "conf"
        self.conf.write_text("gateway_local_user 1\ngateway_tunnel_user 1\nweb_user 1\n"
                             f"owner_database {self.pg.conninfo(OWNER)}\n")

    def migrate(self, dbname="mcpbox"):
        # Several at once: none may read a file that another is writing.
        fresh = self.pg.dir / f"conf.{threading.get_ident()}"
        fresh.write_text("gateway_local_user 1\ngateway_tunnel_user 1\nweb_user 1\n"
                         f"owner_database {self.pg.conninfo(OWNER, dbname)}\n")
        fresh.replace(self.conf)
        uid = str(self.base + 10)
        return subprocess.run(["/usr/bin/setpriv", "--reuid", uid, "--regid", uid,
                               "--clear-groups", self.admind, "-m", "-f", self.conf],
                              capture_output=True, text=True, check=False, timeout=patience(60))

    def close(self):
        self.pg.close()
        self.lock.close()


def one(c, query, *args):
    return c.execute(query, args).fetchone()


def blocked(c, other):
    """Waits until that connection waits for somebody's lock: it does not go on by itself."""
    until(lambda: one(c, "SELECT cardinality(pg_blocking_pids(%s)) > 0", other.info.backend_pid)[0])


def server(c, name=None):
    name = "s" + uuid.uuid4().hex[:12] if name is None else name
    i = uuid.uuid4()
    c.execute("SELECT mcpbox.create_server(%s, %s, '', 'local')", (i, name))
    return i, name


class Tool:
    def __init__(self, c, name="greet", **kw):
        self.c = c
        self.server, self.server_name = kw.pop("server", None) or server(c)
        self.id, self.name, self.kw = uuid.uuid4(), name, kw
        self.version = self.make("SELECT mcpbox.create_tool(%s, %s, 'local')", name)

    def make(self, call, name, **kw):
        version = uuid.uuid4()
        self.pre = preimage(self.server.bytes, self.id.bytes, self.server_name, name,
                            **{**self.kw, **kw})
        self.hash = hashlib.sha256(self.pre).digest()
        self.c.execute(call, (version, self.pre))
        return version

    def update(self, name=None, **kw):
        self.version = self.make("SELECT mcpbox.add_version(%s, %s, '', 'local')",
                                 name or self.name, **kw)
        return self.version

    def publish(self):
        self.request = uuid.uuid4()
        self.c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'local')",
                       (self.request, uuid.uuid4(), self.id))
        return self.request

    def decide(self, approved=True, digest=None, seal=b"seal"):
        self.c.execute("SELECT mcpbox.decide_approval(%s, %s, %s, 'root', now(), 'why', %s)",
                       (self.request, approved, digest or self.hash, seal))

    def approve(self):
        self.publish()
        self.decide()
        return self

    def state(self, version=None):
        return one(self.c, "SELECT state FROM mcpbox.tool_versions WHERE id = %s",
                   version or self.version)[0]

    def serving(self):
        return one(self.c, "SELECT serving_version FROM mcpbox.tools WHERE id = %s", self.id)[0]


def refused(c, failure, query, *args):
    """The statement raises MB001 with this failure mode."""
    with pytest.raises(psycopg.Error) as e:
        c.execute(query, args)
    assert e.value.diag.sqlstate == "MB001", e.value
    assert e.value.diag.message_primary.startswith(failure + ": "), e.value


def guarded(c, query, *args):
    """A trigger or constraint stops the statement, not a privilege."""
    with pytest.raises(psycopg.Error) as e:
        c.execute(query, args)
    # 0A000: TRUNCATE of what others refer to PostgreSQL refuses by itself
    assert e.value.diag.sqlstate in ("MB001", "MB002", "0A000") \
        or e.value.diag.sqlstate.startswith("23"), e.value


# --- migrations and roles -------------------------------------------------


def test_migrations_apply_once_and_know_their_content(schema, owner):
    r = schema.migrate()
    assert r.returncode == 0 and "migrated" not in r.stderr, r.stderr
    rows = owner.execute("SELECT name, sha256 FROM mcpbox.schema_migrations "
                         "ORDER BY version").fetchall()
    assert [(name, c) for (name, _), c in zip(migrations(), checksums())] == rows


def test_changed_or_newer_migrations_are_refused(schema, owner):
    good = one(owner, "SELECT sha256 FROM mcpbox.schema_migrations WHERE version = 1")[0]
    owner.execute("UPDATE mcpbox.schema_migrations SET sha256 = %s WHERE version = 1", (bytes(32),))
    r = schema.migrate()
    assert r.returncode != 0 and "other content" in r.stderr
    owner.execute("UPDATE mcpbox.schema_migrations SET sha256 = %s WHERE version = 1", (good,))
    owner.execute("INSERT INTO mcpbox.schema_migrations VALUES (999, 'later', %s)", (bytes(32),))
    r = schema.migrate()
    assert r.returncode != 0 and "newer program" in r.stderr
    owner.execute("DELETE FROM mcpbox.schema_migrations WHERE version = 999")
    assert schema.migrate().returncode == 0


def test_a_database_from_before_the_schema_is_refused_and_left_alone(schema):
    """The migrations that made it are no more; the sentence says what to do."""
    with schema.pg.connect("postgres") as c:
        c.autocommit = True
        c.execute("CREATE DATABASE oldform OWNER mcpbox_owner ENCODING 'UTF8' TEMPLATE template0")
    with schema.pg.connect(OWNER, "oldform") as c:
        c.execute("CREATE SCHEMA mcpbox")
        c.execute("CREATE TABLE mcpbox.schema_migrations (version int PRIMARY KEY, name text NOT NULL, "
                  "sha256 bytea NOT NULL)")
        c.execute("INSERT INTO mcpbox.schema_migrations SELECT n, CASE n WHEN 1 THEN 'initial' ELSE 'later' END, "
                  "sha256(n::text::bytea) FROM generate_series(1, 27) n")
        c.execute("CREATE TABLE mcpbox.servers AS SELECT 'kept' AS name")
        c.commit()

        def held():
            return c.execute("SELECT oid::regclass::text, relfilenode FROM pg_class WHERE relnamespace = "
                             "'mcpbox'::regnamespace ORDER BY 1").fetchall(), \
                c.execute("SELECT * FROM mcpbox.schema_migrations ORDER BY 1").fetchall(), \
                c.execute("SELECT name FROM mcpbox.servers").fetchall()
        before = held()
        c.commit()
        r = schema.migrate("oldform")
        assert r.returncode == 1, r.stderr
        assert "from before the one schema" in r.stderr and "mcpboxctl export" in r.stderr
        assert "mcpboxctl import" in r.stderr and "newer program" not in r.stderr
        assert held() == before


def test_two_migrations_at_once(schema):
    with schema.pg.connect("postgres", "postgres") as c:
        c.execute("CREATE DATABASE twice OWNER mcpbox_owner")
    results = []
    threads = [threading.Thread(target=lambda: results.append(schema.migrate("twice")))
               for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r.returncode for r in results] == [0, 0, 0], [r.stderr for r in results]
    assert sum("migrated" in r.stderr for r in results) == 1


def test_another_encoding_is_refused(schema):
    with schema.pg.connect("postgres", "postgres") as c:
        c.execute("CREATE DATABASE latin OWNER mcpbox_owner ENCODING 'LATIN1' LOCALE 'C' "
                  "TEMPLATE template0")
    r = schema.migrate("latin")
    assert r.returncode != 0 and "encoding" in r.stderr


def test_roles_are_what_they_must_be(app):
    rows = app.execute("SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolbypassrls "
                       "FROM pg_roles WHERE rolname LIKE 'mcpbox%' ORDER BY 1").fetchall()
    assert rows == [(APP, False, False, False, False), (OWNER, False, False, False, False)]
    assert one(app, "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r "
               "ON r.oid = m.member WHERE r.rolname = 'mcpbox_app'")[0] == 0


def test_app_writes_no_table(app):
    tables = [r[0] for r in app.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'mcpbox'").fetchall()]
    assert len(tables) >= 16
    for t in tables:
        column = one(app, "SELECT attname FROM pg_attribute WHERE "  # those it can't read too
                     "attrelid = ('mcpbox.' || %s)::regclass AND attnum > 0 AND "
                     "attgenerated = '' AND NOT attisdropped ORDER BY attnum LIMIT 1", t)[0]
        for attack in (f"INSERT INTO mcpbox.{t} DEFAULT VALUES", f"DELETE FROM mcpbox.{t}",
                       f"UPDATE mcpbox.{t} SET {column} = {column}", f"TRUNCATE mcpbox.{t}",
                       f"ALTER TABLE mcpbox.{t} DISABLE TRIGGER ALL", f"DROP TABLE mcpbox.{t}"):
            with pytest.raises(DENIED):
                app.execute(attack)


def test_app_makes_nothing_and_becomes_nobody(app):
    for attack in ("CREATE TABLE mcpbox.x (a int)", "CREATE TABLE public.x (a int)",
                   "CREATE SCHEMA x", "CREATE ROLE x", "SET ROLE mcpbox_owner",
                   "SET SESSION AUTHORIZATION mcpbox_owner", "COPY mcpbox.servers TO PROGRAM 'id'",
                   "COPY mcpbox.servers TO '/tmp/x'", "CREATE TEMP TABLE t (a int)",
                   "CREATE FUNCTION mcpbox.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                   "SELECT pg_read_file('/etc/passwd')", "SELECT lo_import('/etc/passwd')",
                   "SET session_replication_role = replica", "ALTER SYSTEM SET fsync = off",
                   "CREATE EXTENSION pgcrypto", "CREATE PUBLICATION p", "CREATE DOMAIN mcpbox.d AS int",
                   "CREATE TRIGGER t BEFORE INSERT ON mcpbox.servers EXECUTE FUNCTION mcpbox.refuse()",
                   "CREATE RULE r AS ON INSERT TO mcpbox.audit_log DO INSTEAD NOTHING",
                   "CREATE INDEX ON mcpbox.servers ((1 / 0))", "ALTER TABLE mcpbox.servers OWNER TO mcpbox_app",
                   "REASSIGN OWNED BY mcpbox_owner TO mcpbox_app", "SELECT 1 FROM mcpbox.audit_head FOR UPDATE",
                   "DO $$ BEGIN LOCK TABLE mcpbox.servers IN SHARE MODE; END $$",
                   "SELECT mcpbox.fail('x', 'y')", "SELECT mcpbox.version_fields('', 1)",
                   "ALTER FUNCTION mcpbox.fail(text, text) SECURITY DEFINER"):
        with pytest.raises(psycopg.Error) as e:
            app.execute(attack)
        assert e.value.diag.sqlstate == "42501", (attack, e.value)


def test_definer_functions_have_a_fixed_search_path(app):
    rows = app.execute(
        "SELECT p.proname, p.proconfig FROM pg_proc p JOIN pg_namespace n ON n.oid = "
        "p.pronamespace WHERE n.nspname = 'mcpbox' AND p.prosecdef").fetchall()
    assert rows
    for name, config in rows:
        assert config == ["search_path=mcpbox, pg_temp"], name


def test_a_stranger_can_not_connect(schema):
    with schema.pg.connect("postgres", "postgres") as c:
        c.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(psycopg.OperationalError):
        schema.pg.connect("stranger")


OF_PUBLIC = """SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'mcpbox' AND has_function_privilege('public', p.oid, 'EXECUTE')"""


def test_public_may_call_nothing(schema):
    """PostgreSQL lets everybody execute a new function, until a migration revokes it."""
    with schema.pg.connect("postgres") as c:
        assert c.execute(OF_PUBLIC).fetchall() == []
        c.execute("BEGIN")
        c.execute("CREATE FUNCTION mcpbox.forgotten() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        assert c.execute(OF_PUBLIC).fetchall() == [("mcpbox.forgotten()",)]
        c.execute("ROLLBACK")


# --- names ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "A", "1a", "a__b", "_a", "a_", "a-b", "a b", "ä", "a\n",
                                  "a" * 25, "mcpbox", "sandbox", "web"])
def test_server_names(app, name):
    with pytest.raises(psycopg.Error):
        server(app, name)


def test_server_name_is_unique_and_immutable(app, owner):
    i, name = server(app)
    refused(app, "conflict", "SELECT mcpbox.create_server(%s, %s, '', 'x')", uuid.uuid4(), name)
    guarded(owner, "UPDATE mcpbox.servers SET name = 'other' WHERE id = %s", i)
    guarded(owner, "UPDATE mcpbox.servers SET id = gen_random_uuid() WHERE id = %s", i)


@pytest.mark.parametrize("name", ["A", "a__b", "a_", "a" * 65, "a\n", "1"])
def test_tool_names(app, name):
    with pytest.raises(psycopg.Error):
        Tool(app, name)


def test_what_clients_see_has_at_most_64_characters(app):
    s = server(app)
    longest = 64 - len(s[1]) - 2
    Tool(app, "a" * longest, server=s)
    with pytest.raises(psycopg.Error, match="exposed_name_check"):
        Tool(app, "a" * (longest + 1), server=s)


def test_exposed_names_are_unique_over_serving_and_pending(app, owner):
    s = server(app)
    a = Tool(app, "one", server=s).approve()
    b = Tool(app, "two", server=s)
    refused(app, "conflict", "SELECT mcpbox.add_version(%s, %s, '', 'x')", uuid.uuid4(),
            preimage(s[0].bytes, b.id.bytes, s[1], "one"))
    # a is renamed: while the old name serves, both names are a's
    a.update("three")
    names = {r[0] for r in app.execute(
        "SELECT exposed_name FROM mcpbox.tool_names WHERE tool_id = %s", (a.id,)).fetchall()}
    assert names == {f"{s[1]}__one", f"{s[1]}__three"}
    refused(app, "conflict", "SELECT mcpbox.add_version(%s, %s, '', 'x')", uuid.uuid4(),
            preimage(s[0].bytes, b.id.bytes, s[1], "three"))
    # once the new one serves, the old name is free
    a.approve()
    Tool(app, "one", server=s)
    guarded(owner, "INSERT INTO mcpbox.tool_names VALUES (%s, %s)", f"{s[1]}__three", b.id)


def test_a_pre_image_with_another_servers_name_is_refused(app):
    s, other = server(app), server(app)
    for pre in (preimage(s[0].bytes, uuid.uuid4().bytes, other[1], "x"),
                preimage(s[0].bytes, uuid.uuid4().bytes, s[1], "x", exposed=f"{other[1]}__x"),
                preimage(s[0].bytes, uuid.uuid4().bytes, s[1], "x", exposed="mcpbox_x"),
                preimage(s[0].bytes, uuid.uuid4().bytes, s[1], "x", exposed="x")):
        refused(app, "invalid_params", "SELECT mcpbox.create_tool(%s, %s, 'x')", uuid.uuid4(), pre)


def test_bare_names_never_shadow_reserved_ones(app, owner):
    s = server(app)
    owner.execute("UPDATE mcpbox.servers SET expose = 'bare' WHERE id = %s", (s[0],))
    plain = "plain" + uuid.uuid4().hex[:6]
    app.execute("SELECT mcpbox.create_tool(%s, %s, 'x')", (uuid.uuid4(), preimage(
        s[0].bytes, uuid.uuid4().bytes, s[1], plain, exposed=plain)))
    refused(app, "conflict", "SELECT mcpbox.create_tool(%s, %s, 'x')", uuid.uuid4(), preimage(
        s[0].bytes, uuid.uuid4().bytes, s[1], "mcpbox_list", exposed="mcpbox_list"))


# --- versions -------------------------------------------------------------


def test_columns_are_what_was_hashed(app, owner):
    t = Tool(app, secrets=("B_KEY", "A_KEY"), schema=b'{"type": "object"}', timeout=1234)
    row = one(app, "SELECT hash, exposed_name, name, kind, input_schema, secrets, timeout_ms, "
              "state, version_no FROM mcpbox.tool_versions WHERE id = %s", t.version)
    assert row == (t.hash, f"{t.server_name}__greet", "greet", "python", b'{"type": "object"}',
                   ["A_KEY", "B_KEY"], 1234, "draft", 1)
    for column in ("name", "input_schema", "exposed_name", "secrets"):
        with pytest.raises(psycopg.errors.GeneratedAlways):
            owner.execute(f"UPDATE mcpbox.tool_versions SET {column} = NULL")


@pytest.mark.parametrize("damage", [
    lambda p: p[:-1], lambda p: p + b"\0", lambda p: b"x" + p[1:], lambda p: p[:17],
    lambda p: b"", lambda p: p[:17] + b"\xff" * 5 + p[17:],
    lambda p: p.replace(struct.pack(">BI", 1, 8), struct.pack(">BI", 1, 7))])
def test_malformed_pre_images(app, damage):
    s = server(app)
    with pytest.raises(psycopg.Error):
        app.execute("SELECT mcpbox.create_tool(%s, %s, 'x')", (uuid.uuid4(), damage(
            preimage(s[0].bytes, uuid.uuid4().bytes, s[1], "x"))))


def test_content_is_immutable(app, owner):
    t = Tool(app).approve()
    other = preimage(t.server.bytes, t.id.bytes, t.server_name, "greet", code="evil")
    guarded(owner, "UPDATE mcpbox.tool_versions SET preimage = %s WHERE id = %s", other, t.version)
    guarded(owner, "UPDATE mcpbox.tool_versions SET preimage = %s, hash = sha256(%s) "
            "WHERE id = %s", other, other, t.version)
    guarded(owner, "UPDATE mcpbox.tool_versions SET hash = %s WHERE id = %s", bytes(32), t.version)
    guarded(owner, "UPDATE mcpbox.tool_versions SET version_no = 9 WHERE id = %s", t.version)
    guarded(owner, "DELETE FROM mcpbox.tool_versions WHERE id = %s", t.version)
    guarded(owner, "TRUNCATE mcpbox.tool_versions CASCADE")
    guarded(owner, "INSERT INTO mcpbox.tool_versions (id, version_no, preimage, hash, created_by) "
            "VALUES (gen_random_uuid(), 7, %s, %s, 'x')", t.pre, bytes(32))


STATES = ("draft", "pending_review", "approved", "rejected", "revoked")
FORWARD = {("draft", "pending_review"), ("pending_review", "approved"),
           ("pending_review", "rejected"), ("approved", "revoked")}


def in_state(c, state):
    t = Tool(c)
    if state != "draft":
        t.publish()
    if state in ("approved", "revoked"):
        t.decide()
    if state == "rejected":
        t.decide(False)
    if state == "revoked":
        c.execute("SELECT mcpbox.revoke_version(%s, '', 'root')", (t.version,))
    assert t.state() == state
    return t


@pytest.mark.parametrize("old", STATES)
@pytest.mark.parametrize("new", STATES)
def test_states_go_only_forward(app, owner, old, new):
    t = in_state(app, old)
    query = "UPDATE mcpbox.tool_versions SET state = %s WHERE id = %s"
    # approved also needs a seal, which this one has not
    if (old, new) in FORWARD and new != "approved":
        owner.execute(query, (new, t.version))
        assert t.state() == new
    else:
        guarded(owner, query, new, t.version)


def test_a_version_begins_as_a_draft(app, owner):
    t = Tool(app)
    for state in STATES[1:]:
        guarded(owner, "INSERT INTO mcpbox.tool_versions (id, version_no, state, preimage, hash, "
                "created_by) VALUES (gen_random_uuid(), 2, %s, %s, %s, 'x')", state, t.pre, t.hash)


# --- approvals ------------------------------------------------------------


def test_approval_serves_and_is_decided_once(app):
    t = Tool(app)
    assert t.serving() is None
    before = one(app, "SELECT revision FROM mcpbox.catalogue")[0]
    t.approve()
    assert t.serving() == t.version and t.state() == "approved"
    assert one(app, "SELECT revision FROM mcpbox.catalogue")[0] > before
    for approved in (True, False):
        refused(app, "already_decided", "SELECT mcpbox.decide_approval(%s, %s, %s, 'r', now(), "
                "'', 's')", t.request, approved, t.hash)


def test_approval_needs_the_reviewed_hash(app):
    t = Tool(app)
    t.publish()
    refused(app, "hash_mismatch", "SELECT mcpbox.decide_approval(%s, true, %s, 'r', now(), '', "
            "'s')", t.request, bytes(32))
    assert t.state() == "pending_review" and t.serving() is None
    with pytest.raises(psycopg.Error):
        t.decide(seal=b"")
    assert t.state() == "pending_review"


def test_no_approval_without_a_seal(app, owner):
    t = in_state(app, "pending_review")
    guarded(owner, "UPDATE mcpbox.tool_versions SET state = 'approved' WHERE id = %s", t.version)
    guarded(owner, "UPDATE mcpbox.approval_requests SET state = 'approved', decided_by = 'x', "
            "decided_at = now() WHERE id = %s", t.request)
    guarded(owner, "INSERT INTO mcpbox.approval_seals VALUES (%s, %s, %s, 's', now())",
            t.request, t.version, bytes(32))
    guarded(owner, "INSERT INTO mcpbox.approval_seals VALUES (%s, %s, %s, 's', now())",
            t.request, uuid.uuid4(), t.hash)


def test_only_an_approved_version_of_its_own_serves(app, owner):
    t, other = in_state(app, "rejected"), Tool(app).approve()
    for version in (t.version, other.version):
        guarded(owner, "UPDATE mcpbox.tools SET serving_version = %s WHERE id = %s",
                version, t.id)


def test_seals_and_requests_are_kept(app, owner):
    t = Tool(app).approve()
    for attack in ("UPDATE mcpbox.approval_seals SET seal = 'other'",
                   "DELETE FROM mcpbox.approval_seals", "TRUNCATE mcpbox.approval_seals",
                   "DELETE FROM mcpbox.approval_requests",
                   "UPDATE mcpbox.approval_requests SET state = 'pending'",
                   "UPDATE mcpbox.approval_requests SET hash = hash"):
        guarded(owner, attack)
    pending = in_state(app, "pending_review")
    guarded(owner, "UPDATE mcpbox.approval_requests SET hash = %s, state = 'rejected', "
            "decided_by = 'x', decided_at = now() WHERE id = %s", bytes(32), pending.request)
    assert t.state() == "approved"


def test_an_edit_leaves_the_approved_version_serving(app):
    t = Tool(app).approve()
    first = t.version
    t.update(code="def main(): return 2")
    assert t.serving() == first and t.state() == "draft"
    t.publish()
    assert t.serving() == first
    t.decide()
    assert t.serving() == t.version != first


def test_a_newer_request_supersedes(app):
    t = Tool(app)
    old_request, old = t.publish(), t.version
    t.update(code="def main(): return 2")
    t.publish()
    assert one(app, "SELECT state FROM mcpbox.approval_requests WHERE id = %s",
               old_request)[0] == "superseded"
    assert t.state(old) == "rejected"
    refused(app, "already_decided", "SELECT mcpbox.decide_approval(%s, true, %s, 'r', now(), '', "
            "'s')", old_request, hashlib.sha256(b"").digest())


def test_rejected_content_can_be_asked_for_again(app):
    t = in_state(app, "rejected")
    t.publish()
    rows = app.execute("SELECT state, hash FROM mcpbox.tool_versions WHERE tool_id = %s "
                       "ORDER BY version_no", (t.id,)).fetchall()
    assert rows == [("rejected", t.hash), ("pending_review", t.hash)]
    refused(app, "conflict", "SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", uuid.uuid4(),
            uuid.uuid4(), t.id)


def test_revocation_takes_out_of_service(app):
    t = Tool(app).approve()
    app.execute("SELECT mcpbox.revoke_version(%s, 'bad', 'root')", (t.version,))
    assert t.serving() is None and t.state() == "revoked"
    refused(app, "conflict", "SELECT mcpbox.revoke_version(%s, '', 'root')", t.version)


def test_two_decisions_at_once(schema, app):
    for _ in range(5):
        t = Tool(app)
        t.publish()
        results = []

        def decide(approved, t=t, results=results):
            with schema.pg.connect(APP) as c:
                try:
                    c.execute("SELECT mcpbox.decide_approval(%s, %s, %s, 'r', now(), '', 's')",
                              (t.request, approved, t.hash))
                    results.append("ok")
                except psycopg.Error as e:
                    results.append(e.diag.message_primary.split(":")[0])

        threads = [threading.Thread(target=decide, args=(n % 2 == 0,)) for n in range(4)]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        assert sorted(results) == ["already_decided"] * 3 + ["ok"]


# --- executions -----------------------------------------------------------


def epoch(c, kind="sandboxd", node=None):
    e = uuid.uuid4()
    c.execute("SELECT mcpbox.epoch_begin(%s, %s, %s)", (e, node or "n" + e.hex, kind))
    return e


OPEN = ("SELECT mcpbox.execution_open(%s, %s, %s, %s, %s, 'local', 'local', %s, %s, '{}', 'c', "
        "'p', now(), now() + interval '1 minute')")


def open_call(c, t, e, i=None, tool=None, digest=None, version=None):
    i = i or uuid.uuid4()
    return i, one(c, OPEN, i, "tool", version or t.version, digest or t.hash, e,
                  tool or f"{t.server_name}__{t.name}", bytes(32))[0]


def close(c, i, e, outcome="done", failure=None, whole=False, t=None):
    rest = ["tool", t.version, t.hash, "local", "local", "x", bytes(32), "{}"] if whole \
        else [None] * 8
    return one(c, "SELECT mcpbox.execution_close(%s, %s, %s, %s, true, now(), now(), 1, 'out', "
               "'{}', %s, %s, %s, %s, %s, %s, %s, %s, " + ("now(), now())" if whole
                                                           else "NULL, NULL)"),
               i, e, outcome, failure, *rest)[0]


def test_an_execution_closes_once(app, owner):
    t, e = Tool(app).approve(), epoch(app)
    i, how = open_call(app, t, e)
    assert how == "ok"
    assert close(app, i, epoch(app)) == "already"      # another owner's record
    assert one(app, "SELECT state FROM mcpbox.executions WHERE id = %s", i)[0] == "open"
    assert close(app, i, e) == "closed"
    assert close(app, i, e, "lost", "lost") == "already"
    assert one(app, "SELECT state, outcome FROM mcpbox.executions WHERE id = %s",
               i) == ("closed", "done")
    guarded(owner, "UPDATE mcpbox.executions SET outcome = 'failed' WHERE id = %s", i)
    guarded(owner, "UPDATE mcpbox.executions SET state = 'open', outcome = NULL, ended_at = NULL "
            "WHERE id = %s", i)
    with pytest.raises(psycopg.errors.UniqueViolation):
        open_call(app, t, e, i)


def test_only_what_may_run_is_opened(app):
    t, e = Tool(app).approve(), epoch(app)
    good = t.version
    assert open_call(app, t, e)[1] == "ok"
    assert open_call(app, t, e, tool="demo__other")[1] == "not_approved"
    assert open_call(app, t, e, digest=bytes(32))[1] == "not_approved"
    assert open_call(app, t, e, version=uuid.uuid4())[1] == "not_approved"
    draft = t.update(code="def main(): return 2")
    assert open_call(app, t, e, version=draft)[1] == "not_approved"
    t.hash = one(app, "SELECT hash FROM mcpbox.tool_versions WHERE id = %s", good)[0]
    t.version = good
    app.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", (t.server,))
    assert open_call(app, t, e)[1] == "stopped"
    app.execute("SELECT mcpbox.set_server_status(%s, 'running', 'x')", (t.server,))
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (t.id,))
    assert open_call(app, t, e)[1] == "stopped"
    app.execute("SELECT mcpbox.set_tool_enabled(%s, true, 'x')", (t.id,))
    assert open_call(app, t, e)[1] == "ok"
    app.execute("SELECT mcpbox.revoke_version(%s, '', 'x')", (t.version,))
    assert open_call(app, t, e)[1] == "revoked"


def test_only_a_living_epoch_owns_new_rows(app):
    t, node = Tool(app).approve(), "n" + uuid.uuid4().hex
    e = epoch(app, node=node)
    i, how = open_call(app, t, e)
    assert how == "ok"
    epoch(app, node=node)
    assert open_call(app, t, e)[1] == "sandbox_unavailable"
    assert open_call(app, t, uuid.uuid4())[1] == "sandbox_unavailable"
    assert open_call(app, t, epoch(app, "admind"))[1] != "ok"
    # an ended one never comes back
    refused(app, "conflict", "SELECT mcpbox.epoch_begin(%s, %s, 'sandboxd')", e, node)
    # and what it left is lost, once
    assert one(app, "SELECT mcpbox.sweep_epochs()")[0] >= 1
    assert one(app, "SELECT outcome, failure FROM mcpbox.executions WHERE id = %s",
               i) == ("lost", "lost")
    assert close(app, i, e) == "already"


def call_open(c, t, e, limits=None, i=None, tool=None, digest=None, version=None):
    i = i or uuid.uuid4()
    return i, one(c, "SELECT mcpbox.call_open(%s, %s, %s, %s, %s, 'local', 'local', %s, %s, '{}', "
                  "'c', 'p', now(), now() + interval '1 minute')", i, version or t.version,
                  digest or t.hash, e, limits, tool or f"{t.server_name}__{t.name}", bytes(32))[0]


def test_a_call_of_a_remembered_version_is_asked_all_again(app):
    t, e = Tool(app).approve(), epoch(app)
    assert call_open(app, t, e)[1] == "ok"
    assert call_open(app, t, e, limits=datetime.datetime.now(datetime.UTC))[1] == "stale"
    assert call_open(app, t, e, tool="demo__other")[1] == "not_approved"
    assert call_open(app, t, e, digest=bytes(32))[1] == "not_approved"
    assert call_open(app, t, e, version=uuid.uuid4())[1] == "not_approved"
    assert call_open(app, t, uuid.uuid4())[1] == "sandbox_unavailable"
    assert call_open(app, t, epoch(app, "admind"))[1] != "ok"
    shown = one(app, "SELECT sha256(convert_to(mcpbox.server_limits_json(%s), 'UTF8'))",
                str(t.server))[0]
    app.execute("SELECT mcpbox.set_server_limits(%s, %s, 'root', 200, " +
                ", ".join(["NULL"] * 15) + ")", (t.server, shown))
    at = one(app, "SELECT updated_at FROM mcpbox.server_limits WHERE server_id = %s", t.server)[0]
    assert call_open(app, t, e)[1] == "stale"
    assert call_open(app, t, e, limits=at)[1] == "ok"
    app.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", (t.server,))
    assert call_open(app, t, e, limits=at)[1] == "stopped"
    app.execute("SELECT mcpbox.set_server_status(%s, 'running', 'x')", (t.server,))
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (t.id,))
    assert call_open(app, t, e, limits=at)[1] == "stopped"
    app.execute("SELECT mcpbox.set_tool_enabled(%s, true, 'x')", (t.id,))
    app.execute("SELECT mcpbox.revoke_version(%s, '', 'x')", (t.version,))
    assert call_open(app, t, e, limits=at)[1] == "revoked"
    assert one(app, "SELECT count(*) FROM mcpbox.executions WHERE version_id = %s",
               t.version)[0] == 2


def test_the_view_of_intents_makes_open_rows_and_nothing_else(app):
    t, e = Tool(app).approve(), epoch(app)
    row = {"id": "gen_random_uuid()", "kind": "'tool'", "owner_epoch": f"'{e}'",
           "principal": "'local'", "listener": "'local'",
           "tool": f"'{t.server_name}__{t.name}'", "version_id": f"'{t.version}'",
           "version_hash": f"'\\x{t.hash.hex()}'",
           "args_sha256": "sha256('')", "arguments": "'{}'", "created_at": "now()",
           "deadline": "now()"}

    def insert(r):
        return (f"INSERT INTO mcpbox.intents ({', '.join(r)}) VALUES ({', '.join(r.values())}) "
                "RETURNING id")

    i = one(app, insert(row))[0]
    assert one(app, "SELECT state, outcome FROM mcpbox.executions WHERE id = %s",
               i) == ("open", None)
    for column in ("state", "outcome", "ended_at", "restored"):
        with pytest.raises(psycopg.errors.UndefinedColumn):
            app.execute(insert(row | {column: "NULL"}))
    # Nor of what may not be called: the view's own rules.
    for bad in ({"kind": "'other'"}, {"kind": "'management'"}, {"principal": "''"},
                {"principal": r"E'a\x01b'"}, {"principal": "repeat('a', 255)"},
                {"listener": "'x'"}, {"args_sha256": "'short'"},
                {"arguments": "repeat('a', 4097)"}, {"version_id": "gen_random_uuid()"},
                {"version_id": "NULL"}, {"version_hash": "sha256('')"},
                {"version_hash": "NULL"}, {"tool": "'x'"},
                {"owner_epoch": "gen_random_uuid()"}, {"owner_epoch": f"'{epoch(app, 'admind')}'"},
                {"arguments": "NULL"}, {"deadline": "NULL"}):
        with pytest.raises((psycopg.errors.WithCheckOptionViolation,
                            psycopg.errors.NotNullViolation)):
            app.execute(insert(row | bad))
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (t.id,))
    with pytest.raises(psycopg.errors.WithCheckOptionViolation):
        app.execute(insert(row))
    for attack in ("UPDATE mcpbox.intents SET tool = 'y'", "DELETE FROM mcpbox.intents",
                   "TRUNCATE mcpbox.executions",
                   "INSERT INTO mcpbox.executions SELECT * FROM mcpbox.executions"):
        with pytest.raises(DENIED):
            app.execute(attack)


def close_many(c, e, *ids, outcome="done", failure=None):
    n = len(ids)
    now = [datetime.datetime.now(datetime.UTC)] * n
    return {r[0] for r in c.execute(
        "SELECT mcpbox.executions_close(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (e, list(ids), [outcome] * n, [failure] * n, [True] * n, now, now, [1] * n, ["out"] * n,
         ["{}"] * n)).fetchall()}


def test_several_close_at_once_and_each_once(app):
    t, e, other = Tool(app).approve(), epoch(app), epoch(app)
    ids = [call_open(app, t, e)[0] for _ in range(5)]
    foreign = call_open(app, t, other)[0]
    assert close(app, ids[0], e) == "closed"
    assert close_many(app, e, *ids, foreign, uuid.uuid4(), ids[1]) == set(ids[1:])
    assert close_many(app, e, *ids, outcome="lost", failure="lost") == set()
    assert one(app, "SELECT count(*) FROM mcpbox.executions WHERE id = ANY (%s) AND state = "
               "'closed' AND outcome = 'done' AND stdout = 'out'", ids)[0] == 5
    assert one(app, "SELECT state FROM mcpbox.executions WHERE id = %s", foreign)[0] == "open"
    with pytest.raises(psycopg.errors.CheckViolation):
        close_many(app, other, foreign, outcome="won", failure="x")


@pytest.mark.parametrize("change", [
    {"kind": "'other'"}, {"state": "'half'"}, {"listener": "'x'"}, {"principal": "''"},
    {"principal": r"E'a\nb'"}, {"principal": "repeat('x', 255)"}, {"version_hash": "'x'"},
    {"version_hash": "NULL"}, {"args_sha256": "'x'"}, {"arguments": "repeat('x', 4097)"},
    {"kind": "NULL"}, {"principal": "NULL"}, {"arguments": "NULL"}, {"state": "NULL"},
    {"version_id": "gen_random_uuid()"}, {"outcome": "'done'"}, {"ended_at": "now()"},
    {"result": "'{}'"}, {"stdout": "''"}, {"delivered": "true"}, {"failure": "'x'"},
    {"state": "'closed'"}, {"state": "'closed'", "ended_at": "now()"},
    {"state": "'closed'", "ended_at": "now()", "outcome": "'failed'"},
    {"state": "'closed'", "ended_at": "now()", "outcome": "'done'",
     "stdout": "repeat('x', 65537)"},
    {"state": "'closed'", "ended_at": "now()", "outcome": "'done'",
     "result": "repeat('x', 1048577)"}])
def test_executions_are_well_formed_from_the_start(app, owner, change):
    t = Tool(app).approve()
    row = {"id": "gen_random_uuid()", "kind": "'tool'", "owner_epoch": "gen_random_uuid()",
           "principal": "'local'", "listener": "'local'",
           "tool": f"'{t.server_name}__{t.name}'", "version_id": f"'{t.version}'",
           "version_hash": f"'\\x{t.hash.hex()}'",
           "args_sha256": "sha256('')", "arguments": "'{}'", "created_at": "now()",
           "deadline": "now()"}

    def insert(r):
        return f"INSERT INTO mcpbox.executions ({', '.join(r)}) VALUES ({', '.join(r.values())})"

    guarded(owner, insert(row | change))
    owner.execute(insert(row))


def test_a_lost_intent_is_restored_from_the_record(app):
    t, e, i = Tool(app).approve(), epoch(app), uuid.uuid4()
    assert close(app, i, e) == "unknown"
    assert close(app, i, e, whole=True, t=t) == "restored"
    assert close(app, i, e, whole=True, t=t) == "already"
    assert one(app, "SELECT state, outcome, restored FROM mcpbox.executions WHERE id = %s",
               i) == ("closed", "done", True)
    t.version = uuid.uuid4()    # a version that is not there must not block the record
    assert close(app, uuid.uuid4(), e, whole=True, t=t) == "restored"


@pytest.mark.parametrize("ending", [
    "outcome = 'done', failure = 'lost', ended_at = now()", "outcome = 'failed', ended_at = now()",
    "outcome = 'won', failure = 'x', ended_at = now()", "outcome = 'done'", "ended_at = now()",
    "outcome = 'done', ended_at = now(), principal = 'x'",
    "outcome = 'done', ended_at = now(), owner_epoch = gen_random_uuid()",
    "outcome = 'done', ended_at = now(), args_sha256 = sha256('x')",
    "outcome = 'done', ended_at = now(), tool = 'x'"])
def test_endings_are_well_formed(app, owner, ending):
    t, e = Tool(app).approve(), epoch(app)
    i, _ = open_call(app, t, e)
    guarded(owner, f"UPDATE mcpbox.executions SET state = 'closed', {ending} WHERE id = %s", i)
    owner.execute("UPDATE mcpbox.executions SET state = 'closed', outcome = 'done', "
                  "ended_at = now() WHERE id = %s", (i,))


# --- audit ----------------------------------------------------------------


def rows(c):
    return c.execute("SELECT seq, at, actor, action, subject, detail, prev, hash FROM "
                     "mcpbox.audit_log ORDER BY seq").fetchall()


def row_bytes(r):
    seq, at, *texts = r[:6]
    out = b"mcpbox audit 1\0" + struct.pack(">QQ", seq, round(at.timestamp() * 1000))
    for t in texts:
        out += struct.pack(">I", len(t.encode())) + t.encode()
    return out


def test_the_chain_holds_and_nothing_is_missing(app):
    app.execute("SELECT mcpbox.audit_append('ä\U0001f600', 'test', 'sübject', %s)",
                ('{"a": "\\u0000 ü"}',))
    Tool(app).approve()
    prev, all_rows = bytes(32), rows(app)
    for n, r in enumerate(all_rows, 1):
        assert r[0] == n and r[6] == prev
        prev = hashlib.sha256(prev + row_bytes(r)).digest()
        assert r[7] == prev
    assert one(app, "SELECT seq, hash FROM mcpbox.audit_head") == (len(all_rows), prev)


def test_the_log_is_append_only_even_for_the_owner(app, owner):
    app.execute("SELECT mcpbox.audit_append('x', 'test', '', '{}')")
    seq, prev = one(app, "SELECT seq, hash FROM mcpbox.audit_head")
    for attack in ("UPDATE mcpbox.audit_log SET actor = 'y'", "DELETE FROM mcpbox.audit_log",
                   "TRUNCATE mcpbox.audit_log CASCADE", "DELETE FROM mcpbox.audit_head",
                   "UPDATE mcpbox.audit_head SET seq = 1", "UPDATE mcpbox.audit_head SET "
                   "hash = sha256('x')", "UPDATE mcpbox.audit_head SET seq = seq + 1"):
        guarded(owner, attack)
    # neither a gap, nor a fork, nor a row with a wrong hash
    for s, p, h in ((seq + 2, prev, None), (seq + 1, bytes(32), None), (seq + 1, prev, bytes(32))):
        guarded(owner, "INSERT INTO mcpbox.audit_log VALUES (%s, date_trunc('milliseconds', "
                "now()), 'x', 'test', '', '{}', %s, coalesce(%s, sha256(%s || mcpbox.audit_row(%s,"
                " date_trunc('milliseconds', now()), 'x', 'test', '', '{}'))))", s, p, h, p, s)


@pytest.mark.parametrize("actor, action, detail", [
    ("", "test", "{}"), ("a\nb", "test", "{}"), ("a", "Not A Name", "{}"), ("a", "test", "[]"),
    ("a", "test", "no json"), ("a", "test", '{"a":1} x')])
def test_audit_rows_are_well_formed(app, actor, action, detail):
    with pytest.raises(psycopg.Error):
        app.execute("SELECT mcpbox.audit_append(%s, %s, '', %s)", (actor, action, detail))


def test_parallel_appends_make_one_chain(schema, app):
    def work():
        with schema.pg.connect(APP) as c:
            for _ in range(20):
                c.execute("SELECT mcpbox.audit_append('x', 'test', '', '{}')")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    prev = bytes(32)
    for n, r in enumerate(rows(app), 1):
        assert r[0] == n and r[6] == prev
        prev = r[7]


def test_anchors(app, owner):
    app.execute("SELECT mcpbox.audit_append('x', 'test', '', '{}')")
    seq, head = one(app, "SELECT seq, hash FROM mcpbox.audit_head")
    refused(app, "conflict", "SELECT mcpbox.anchor_store(%s, %s, %s, NULL)", seq, bytes(32), bytes(32))
    app.execute("SELECT mcpbox.anchor_store(%s, %s, %s, %s)", (seq, head, b"s" * 32, b"k" * 8))
    app.execute("SELECT mcpbox.anchor_store(%s, %s, %s, %s)", (seq, head, b"t" * 32, b"k" * 8))
    assert one(app, "SELECT signature FROM mcpbox.audit_anchors WHERE seq = %s",
               seq)[0] == b"s" * 32
    guarded(owner, "UPDATE mcpbox.audit_anchors SET signature = %s", b"t" * 32)
    guarded(owner, "DELETE FROM mcpbox.audit_anchors")


# --- administrators, secrets, sessions -----------------------------------


def test_the_first_administrator_is_made_once(schema, app):
    results = []

    def setup(n):
        with schema.pg.connect(APP) as c:
            try:
                c.execute("SELECT mcpbox.admin_store('setup', %s, 'administrator', 'root', 'v')",
                          (f"admin{n}",))
                results.append("ok")
            except psycopg.Error as e:
                results.append(e.diag.message_primary.split(":")[0])

    threads = [threading.Thread(target=setup, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == ["conflict"] * 3 + ["ok"]
    with pytest.raises(psycopg.errors.CheckViolation):
        app.execute("SELECT mcpbox.admin_store('create', 'x', 'emperor', 'root', 'v')")


def test_secrets(app):
    s, name = server(app)
    app.execute("SELECT mcpbox.secret_store(%s, 'API_KEY', 'root', 'sealed')", (name,))
    assert one(app, "SELECT value FROM mcpbox.server_secrets WHERE server_id = %s",
               s)[0] == b"sealed"
    refused(app, "not_found", "SELECT mcpbox.secret_store('nobody', 'K', 'root', 'v')")
    refused(app, "invalid_params", "SELECT mcpbox.secret_store(%s, 'lower', 'root', 'v')", name)
    details = app.execute("SELECT detail, subject FROM mcpbox.audit_log WHERE action = "
                          "'secret_set'").fetchall()
    assert details and all("sealed" not in d + s for d, s in details)


def test_ended_sessions_are_told_and_forgotten(app):
    told = []
    app.add_notify_handler(lambda n: told.append(n.payload))
    app.execute("LISTEN mcpbox_session")
    i = uuid.uuid4()
    app.execute("SELECT mcpbox.session_end(%s, now() - interval '1 s')", (i,))
    j = uuid.uuid4()
    soon = int(time.time()) + 1000
    app.execute("SELECT mcpbox.session_end(%s, to_timestamp(%s))", (j, soon))
    app.execute("SELECT mcpbox.session_end(%s, to_timestamp(%s))", (j, soon))
    far = uuid.uuid4()
    app.execute("SELECT mcpbox.session_end(%s, to_timestamp(4000000000))", (far,))
    app.execute("SELECT 1")
    assert told.count(f"{j} {soon}000") == 2
    assert one(app, "SELECT expires_at < now() + interval '32 days' FROM mcpbox.ended_sessions "
               "WHERE id = %s", far)[0]
    assert one(app, "SELECT count(*) FROM mcpbox.ended_sessions WHERE id IN (%s, %s)",
               i, j)[0] == 1


def test_tlv_helper_agrees_with_the_schema(app):
    assert one(app, "SELECT mcpbox.audit_row(1, to_timestamp(0), 'a', 'b', '', '{}')")[0] \
        == b"mcpbox audit 1\0" + struct.pack(">QQ", 1, 0) + b"\0\0\0\1a\0\0\0\1b\0\0\0\0\0\0\0\2{}"
    assert tlv((1, 1)) == b"\1\0\0\0\x08" + struct.pack(">Q", 1)
