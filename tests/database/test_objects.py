"""sql/schema/tools.sql: prompts, resources, templates, deletion, revisions per list; attacked as in test_database.py."""
import hashlib
import threading
import uuid

import psycopg
import pytest

from harness.patience import until
from harness.played.admind import preimage
from harness.tlv import tlv
from database.test_database import (APP, DENIED, Tool, call_open, epoch, guarded, one, open_call, refused,
                                    server)
from database.test_limits_modules import version_with

KIND, CODE = tlv((14, "python")), tlv((15, "def main(): pass"))
STATIC = (14, "static")


class Object(Tool):
    """An object: fields are those of the pre-image beside names and schema."""

    def __init__(self, c, *fields, name="it", server=None):
        self.fields = fields
        super().__init__(c, name, **({"server": server} if server else {}))

    def make(self, call, name, **kw):
        version = uuid.uuid4()
        pre = preimage(self.server.bytes, self.id.bytes, self.server_name, name).replace(KIND, b"").replace(CODE, b"")
        self.pre = version_with(pre, *self.fields)
        self.hash = hashlib.sha256(self.pre).digest()
        self.c.execute(call, (version, self.pre))
        return version

    def change(self, *fields, name=None):
        self.fields = fields
        return self.update(name)

    def delete(self, word):
        return one(self.c, "SELECT object, exposed_name FROM mcpbox.delete_object(%s, %s, 'local')", self.id, word)


def uri():
    return f"x://{uuid.uuid4().hex}"


def prompt(c, text="Hi", **kw):
    return Object(c, STATIC, (36, "prompt"), (39, "[]"), (40, text), **kw)


def resource(c, at=None, **kw):
    return Object(c, STATIC, (36, "resource"), (37, at or uri()), (40, "text"), **kw)


# --- versions ---------------------------------------------------------------


def test_columns_are_what_was_hashed(app):
    o = Object(app, STATIC, (36, "resource"), (37, "x://columns"), (38, "text/plain"), (41, "AAECAw=="), (42, 60000),
               (43, "roots"))
    row = one(app, "SELECT object, uri, mime_type, arguments, content_bytes, ttl_ms, client_capabilities, kind "
              "FROM mcpbox.tool_versions WHERE id = %s", o.version)
    assert row == ("resource", "x://columns", "text/plain", None, 4, 60000, ["roots"], "static")
    o = Object(app, STATIC, (36, "prompt"), (39, '[{"name":"a"}]'), (40, "\u20ac"))
    row = one(app, "SELECT object, uri, arguments, content_bytes FROM mcpbox.tool_versions WHERE id = %s", o.version)
    assert row == ("prompt", None, b'[{"name":"a"}]', 3)
    assert one(app, "SELECT object FROM mcpbox.tool_versions WHERE id = %s", Tool(app).version) == ("tool",)


@pytest.mark.parametrize("blob", ["", "AA==", "AAA=", "AAAA", "AAAAAA=="])
def test_the_size_of_a_blob(app, blob):
    o = Object(app, STATIC, (36, "resource"), (37, uri()), (41, blob))
    assert one(app, "SELECT content_bytes FROM mcpbox.tool_versions WHERE id = %s", o.version) \
        == ({0: 0, 1: 1, 2: 2, 3: 3, 4: 4}[len(blob.rstrip("=")) * 3 // 4],)


PYTHON = ((14, "python"), (15, "def main(): pass"))
PROMPT, RESOURCE, TEMPLATE = (36, "prompt"), (36, "resource"), (36, "template")
ARGS, URI, TEXT, BLOB = (39, "[]"), (37, "x://y"), (40, "t"), (41, "AAAA")


@pytest.mark.parametrize("fields, good", [
    ((STATIC, PROMPT, ARGS, TEXT), True), ((*PYTHON, PROMPT, ARGS), True),
    ((STATIC, RESOURCE, URI, TEXT), True), ((STATIC, RESOURCE, URI, BLOB), True), ((*PYTHON, RESOURCE, URI), True),
    ((*PYTHON, TEMPLATE, URI), True), ((*PYTHON, TEMPLATE, URI, ARGS), True), (PYTHON, True),
    ((*PYTHON, (43, "roots")), True), ((*PYTHON, RESOURCE, URI, (20, "KEY")), True),
    ((STATIC, TEXT), False), ((*PYTHON, (36, "tool")), False), ((*PYTHON, URI), False), ((*PYTHON, ARGS), False),
    ((*PYTHON, TEXT), False), ((*PYTHON, (42, 1)), False), ((*PYTHON, (36, "other")), False),
    ((STATIC, PROMPT, ARGS), False), ((STATIC, PROMPT, ARGS, BLOB), False), ((*PYTHON, PROMPT, TEXT), False),
    ((STATIC, PROMPT, ARGS, TEXT, URI), False), ((STATIC, PROMPT, ARGS, TEXT, (15, "x")), False),
    ((STATIC, PROMPT, ARGS, TEXT, (20, "KEY")), False), ((STATIC, PROMPT, ARGS, TEXT, (42, 1)), False),
    ((STATIC, PROMPT, ARGS, TEXT, (12, "{}")), False), ((STATIC, PROMPT, ARGS, TEXT, (22, "optional")), False),
    ((STATIC, PROMPT, ARGS, TEXT, (23, 1)), False),
    ((STATIC, RESOURCE, TEXT), False), ((STATIC, RESOURCE, URI), False), ((STATIC, RESOURCE, URI, TEXT, BLOB), False),
    ((STATIC, RESOURCE, URI, TEXT, ARGS), False), ((STATIC, TEMPLATE, URI, TEXT), False), ((*PYTHON, TEMPLATE), False),
    ((STATIC, RESOURCE, (37, "x" * 1025), TEXT), False), ((STATIC, RESOURCE, URI, (40, "x" * 524289)), False),
    ((STATIC, RESOURCE, URI, TEXT, (42, 31536000001)), False), ((*PYTHON, (43, "everything")), False),
    (((14, "command"), (16, "{}"), (18, "/bin/x"), (19, "0" * 64), RESOURCE, URI), False)])
def test_a_version_has_the_parts_of_its_object(app, fields, good):
    if good:
        Object(app, *fields)
    else:
        with pytest.raises(psycopg.Error):
            Object(app, *fields)


def test_an_object_stays_what_it_is(app, owner):
    o = prompt(app)
    with pytest.raises(psycopg.Error, match="stays one"):
        o.change(STATIC, (36, "resource"), (37, uri()), (40, "x"))
    app.rollback()
    t = resource(app)
    with pytest.raises(psycopg.Error, match="stays one"):
        t.change(*PYTHON, (36, "template"), (37, uri()))
    app.rollback()
    o = prompt(app)
    app.commit()
    guarded(owner, "UPDATE mcpbox.tools SET object = 'tool' WHERE id = %s", o.id)
    guarded(owner, "DELETE FROM mcpbox.tools WHERE id = %s", o.id)
    guarded(owner, "TRUNCATE mcpbox.tools CASCADE")


def test_names_are_one_space(app):
    s = server(app)
    prompt(app, name="one", server=s)
    with pytest.raises(psycopg.Error, match="has a prompt named one"):
        Tool(app, "one", server=s)


# --- names and URIs -----------------------------------------------------------


def holds(c, at):
    r = one(c, "SELECT tool_id FROM mcpbox.resource_uris WHERE uri = %s", at)
    return r[0] if r else None


def test_a_uri_is_claimed_by_asking_and_kept_by_serving(app, schema):
    at = uri()
    a, b = resource(app, at), resource(app, at)
    assert holds(app, at) is None
    a.publish()
    assert holds(app, at) == a.id
    app.commit()
    refused(app, "conflict", "SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", uuid.uuid4(), uuid.uuid4(), b.id)
    app.rollback()
    a.decide(approved=False)
    assert holds(app, at) is None
    b.approve()
    assert holds(app, at) == b.id
    # Another URI waits for review: both are b's.
    second = uri()
    b.change(STATIC, (36, "resource"), (37, second), (40, "x"))
    b.publish()
    assert holds(app, at) == holds(app, second) == b.id
    # A newer draft changes nothing.
    b_request, b_hash = b.request, b.hash
    b.change(STATIC, (36, "resource"), (37, uri()), (40, "x"))
    b.request, b.hash = b_request, b_hash
    b.decide()
    assert holds(app, at) is None and holds(app, second) == b.id
    with schema.pg.connect(APP) as c:
        with pytest.raises(DENIED):
            c.execute("INSERT INTO mcpbox.resource_uris VALUES (%s, %s)", (at, a.id))


def test_an_approval_keeps_the_name_of_what_it_makes_serve(app):
    """A draft with another name came behind the version that is approved."""
    t = Tool(app, "first")
    t.publish()
    request, digest = t.request, t.hash
    t.update("second")
    t.request, t.hash = request, digest
    t.decide()
    names = {r[0] for r in app.execute("SELECT exposed_name FROM mcpbox.tool_names WHERE tool_id = %s",
                                       (t.id,)).fetchall()}
    assert names == {f"{t.server_name}__first", f"{t.server_name}__second"}


# --- deletion -------------------------------------------------------------------


@pytest.mark.parametrize("make, word", [(Tool, "tool"), (prompt, "prompt"), (resource, "resource")])
def test_deletion(app, owner, make, word):
    o = make(app).approve()
    served, name = o.version, f"{o.server_name}__{o.name}"
    if isinstance(o, Object):
        o.change(*o.fields[:-1], (40, "new"))
    else:
        o.update(code="def main(): return 2")
    o.publish()
    at = one(app, "SELECT uri FROM mcpbox.tool_versions WHERE id = %s", served)[0]
    app.commit()
    for other in {"tool", "prompt", "resource", "template"} - {word}:
        refused(app, "not_found", "SELECT mcpbox.delete_object(%s, %s, 'x')", o.id, other)
        app.rollback()
    assert one(app, "SELECT object, exposed_name FROM mcpbox.delete_object(%s, %s, 'local')", o.id, word) == (word, name)
    assert o.state(served) == "revoked" and o.state() == "rejected" and o.serving() is None
    assert one(app, "SELECT state, reason FROM mcpbox.approval_requests WHERE id = %s", o.request) \
        == ("superseded", "deleted")
    assert one(app, "SELECT count(*) FROM mcpbox.tool_names WHERE tool_id = %s", o.id) == (0,)
    assert one(app, "SELECT count(*) FROM mcpbox.resource_uris WHERE tool_id = %s", o.id) == (0,)
    assert one(app, "SELECT action, subject FROM mcpbox.audit_log ORDER BY seq DESC LIMIT 1") \
        == ("tool_deleted", f"{word} {name}")
    app.commit()
    # Nothing brings it back.
    for query, args in (
            ("SELECT mcpbox.delete_object(%s, %s, 'x')", (o.id, word)),
            ("SELECT mcpbox.add_version(%s, %s, '', 'x')", (uuid.uuid4(), o.pre)),
            ("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", (uuid.uuid4(), uuid.uuid4(), o.id)),
            ("SELECT mcpbox.set_tool_enabled(%s, true, 'x')", (o.id,)),
            ("SELECT mcpbox.request_module(%s, %s, %s, 'numpy', '', 'why', 'x')",
             (uuid.uuid4(), uuid.uuid4(), o.id))):
        refused(app, "not_found", query, *args)
        app.rollback()
    refused(app, "already_decided", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 'seal')",
            o.request, o.hash)
    app.rollback()
    for change in ("deleted_at = NULL, deleted_by = NULL", "enabled = true", "name = 'other'"):
        with pytest.raises(psycopg.Error):
            owner.execute(f"UPDATE mcpbox.tools SET {change} WHERE id = %s", (o.id,))
        owner.rollback()
    # The name is free: with the row of before, one more.
    again = make(app, server=(o.server, o.server_name))
    assert again.id != o.id
    if at:
        again.change(STATIC, (36, "resource"), (37, at), (40, "x"))
    again.approve()
    assert one(app, "SELECT count(*) FROM mcpbox.tools WHERE server_id = %s AND name = %s", o.server, o.name) == (2,)


def test_what_was_deleted_never_runs(app):
    t = Tool(app).approve()
    e = epoch(app)
    assert open_call(app, t, e)[1] == "ok" and call_open(app, t, e)[1] == "ok"
    app.execute("SELECT mcpbox.delete_object(%s, 'tool', 'x')", (t.id,))
    assert open_call(app, t, e)[1] == "revoked" and call_open(app, t, e)[1] == "revoked"


def test_deletion_and_approval_at_once(schema, app):
    """Whichever comes first: it ends deleted, and nothing serves."""
    for _ in range(8):
        t = Tool(app)
        t.publish()
        app.commit()
        start, ends = threading.Barrier(2), []

        def run(query, args):
            with schema.pg.connect(APP) as c:
                start.wait()
                try:
                    c.execute(query, args)
                    ends.append("ok")
                except psycopg.Error as e:
                    ends.append(e.diag.message_primary)

        threads = [threading.Thread(target=run, args=a) for a in (
            ("SELECT mcpbox.delete_object(%s, 'tool', 'x')", (t.id,)),
            ("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 'seal')", (t.request, t.hash)))]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        assert ends.count("ok") == 2 or any(e.startswith("already_decided") for e in ends), ends
        assert one(app, "SELECT serving_version, enabled, deleted_at IS NOT NULL FROM mcpbox.tools WHERE id = %s",
                   t.id) == (None, False, True)
        assert t.state() in ("revoked", "rejected")


# --- the catalogue ----------------------------------------------------------------


def revisions(c):
    return one(c, "SELECT revision, tools, prompts, resources, templates FROM mcpbox.catalogue")


def test_each_list_has_its_revision(schema, app):
    s = server(app)
    template = Object(app, *PYTHON, (36, "template"), (37, "x://{a}"), name="t", server=s)
    objects = [Tool(app, "tool", server=s), prompt(app, name="p", server=s), resource(app, name="r", server=s), template]
    with schema.pg.connect(APP) as c:
        c.autocommit = True
        c.execute("LISTEN mcpbox_catalogue")
        told = []
        c.add_notify_handler(lambda n: told.append(n.payload))

        def hear(wanted):
            def heard():
                c.execute("SELECT 1")   # what was sent arrives with an answer
                return wanted in told
            until(heard, 5, say=lambda: (wanted, told))

        def changed(step, mask):
            before = revisions(app)
            step()
            app.commit()
            after = revisions(app)
            assert [i for i in range(4) if after[i + 1] != before[i + 1]] == [i for i in range(4) if mask >> i & 1]
            assert all(after[i + 1] == after[0] for i in range(4) if mask >> i & 1)
            if mask:
                hear(f"{after[0]} {mask}")

        for i, o in enumerate(objects):
            changed(o.publish, 0)
            changed(o.decide, 1 << i)
        changed(lambda: app.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", s[:1]), 15)
        changed(lambda: app.execute("SELECT mcpbox.set_server_status(%s, 'running', 'x')", s[:1]), 15)
        changed(lambda: app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (objects[1].id,)), 2)
        changed(lambda: app.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", s[:1]), 13)
        changed(lambda: app.execute("SELECT mcpbox.set_server_status(%s, 'running', 'x')", s[:1]), 13)
        # A disabled resource keeps its URI from templates: gateways are told which it is.
        for o, fields, mask in ((objects[1], [(39, "[]")], 0), (objects[2], [(37, uri())], 4)):
            app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (o.id,))
            app.commit()
            o.change(STATIC, (36, ("prompt", "resource")[mask // 4]), *fields, (40, "other"))
            o.publish()
            changed(o.decide, mask)
        changed(lambda: app.execute("SELECT mcpbox.delete_object(%s, 'resource', 'x')", (objects[2].id,)), 4)
        # What nobody sees changes no list; but that something may no longer run is told.
        first = objects[0].version
        objects[0].update(code="def main(): return 3")
        objects[0].publish()
        changed(objects[0].decide, 1)
        changed(lambda: app.execute("SELECT mcpbox.revoke_version(%s, 'old', 'x')", (first,)), 0)
        hear(f"{revisions(app)[0]} 0")
        empty = server(app)
        changed(lambda: app.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", empty[:1]), 0)


# --- what admind answers itself ----------------------------------------------------


def static_open(c, o, e, version=None, digest=None, name=None):
    return one(c, "SELECT mcpbox.static_open(%s, %s, %s, %s, 'local', 'local', %s, %s, '{}', '', '', now(), now())",
               uuid.uuid4(), version or o.version, digest or o.hash, e, name or f"{o.server_name}__{o.name}",
               bytes(32))[0]


def test_static_content_is_recorded_if_it_serves(app):
    admind, sandbox = epoch(app, "admind"), epoch(app)
    p = prompt(app)
    assert static_open(app, p, admind) == "not_approved"
    p.approve()
    assert static_open(app, p, admind) == "ok"
    assert one(app, "SELECT kind, version_hash FROM mcpbox.executions WHERE version_id = %s", p.version) \
        == ("management", p.hash)
    assert static_open(app, p, sandbox) != "ok"
    assert static_open(app, p, admind, digest=bytes(32)) == "not_approved"
    assert static_open(app, p, admind, name="other") == "not_approved"
    t = Tool(app).approve()
    assert static_open(app, t, admind) == "not_approved"
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (p.id,))
    assert static_open(app, p, admind) == "stopped"
    app.execute("SELECT mcpbox.set_tool_enabled(%s, true, 'x')", (p.id,))
    app.execute("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", (p.server,))
    assert static_open(app, p, admind) == "stopped"
    app.execute("SELECT mcpbox.set_server_status(%s, 'running', 'x')", (p.server,))
    app.execute("SELECT mcpbox.revoke_version(%s, '', 'x')", (p.version,))
    assert static_open(app, p, admind) == "revoked"
    assert static_open(app, p, uuid.uuid4()) == "storage_unavailable"
