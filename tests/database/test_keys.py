"""Secrets' rows, and what rests under two master keys (0013): as the run-time
role, and as the owner where a person could break it."""
import json
import secrets
import threading
import uuid

import psycopg
import pytest

from database.test_actions import act, refuse
from database.test_database import APP, DENIED, OWNER, Tool, blocked, guarded, one, refused, server

OLD, NEW, NEWER = (bytes([n]) * 8 for n in (1, 2, 3))


def sealed(key, body=b"body"):
    """As the vault makes it: {2, key id, body, 32 bytes}."""
    return b"\2" + key + body + secrets.token_bytes(32)


def history(app, s, key):
    return [(h["action"], h["version"]) for h in
            json.loads(one(app, "SELECT mcpbox.secret_json(%s, %s)", s, key)[0])["history"]]


@pytest.fixture(autouse=True)
def as_new(schema):
    """No rotation was ever; afterwards none is known either."""
    yield
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("UPDATE mcpbox.master_key SET key_id = NULL, next_id = NULL")
        c.execute("DELETE FROM mcpbox.server_secrets; DELETE FROM mcpbox.approval_seals;"
                  " DELETE FROM mcpbox.audit_anchors; DELETE FROM mcpbox.admin_users")


# --- secrets

def test_a_placeholder_and_its_values(app):
    i, name = server(app)
    shown = json.loads(one(app, "SELECT mcpbox.secret_create(%s, 'TOKEN', 'of it', 'local')", i)[0])
    assert (shown["key"], shown["has_value"], shown["version"], shown["description"]) == (
        "TOKEN", False, 0, "of it")
    refused(app, "conflict", "SELECT mcpbox.secret_create(%s, 'TOKEN', '', 'local')", i)
    for n in (1, 2):
        app.execute("SELECT mcpbox.secret_store(%s, 'TOKEN', 'ann', %s)", (name, sealed(OLD)))
    assert history(app, name, "TOKEN") == [("set", 2), ("set", 1), ("created", 0)]
    row = one(app, "SELECT version, set_by, updated_by, created_by FROM mcpbox.server_secrets"
              " WHERE server_id = %s", i)
    assert row == (2, "ann", "ann", "local")
    # Deleted and made again, it counts on.
    act(app, "secret_delete", name + "/TOKEN")
    assert one(app, "SELECT count(*) FROM mcpbox.server_secrets WHERE server_id = %s", i) == (0,)
    app.execute("SELECT mcpbox.secret_store(%s, 'TOKEN', 'ann', %s)", (name, sealed(OLD)))
    assert history(app, name, "TOKEN")[:3] == [("set", 3), ("created", 2), ("deleted", 2)]
    actions = [r[0] for r in app.execute(
        "SELECT action FROM mcpbox.audit_log WHERE subject = %s ORDER BY seq",
        ("secret " + name + "/TOKEN",))]
    assert actions == ["secret_created", "secret_set", "secret_set", "secret_deleted",
                       "secret_created", "secret_set"]


def test_history_is_bounded_and_not_to_be_altered(app, schema):
    i, name = server(app)
    for _ in range(120):
        app.execute("SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", (name, sealed(OLD)))
    h = history(app, name, "K")
    assert len(h) == 100 and h[0] == ("set", 120)
    with schema.pg.connect(OWNER) as c:
        guarded(c, "UPDATE mcpbox.server_secret_history SET actor = 'x'")
        guarded(c, "TRUNCATE mcpbox.server_secret_history")


@pytest.mark.parametrize("key", ["", "lower", "1A", "A-B", "A B", "Ä", "A" * 256, "_A"])
def test_names(app, key):
    i, name = server(app)
    refused(app, "invalid_params", "SELECT mcpbox.secret_create(%s, %s, '', 'local')", i, key)
    refused(app, "invalid_params", "SELECT mcpbox.secret_store(%s, %s, 'ann', %s)", name, key,
            sealed(OLD))


def test_a_server_has_a_bounded_number(app):
    i, _ = server(app)
    for n in range(256):
        app.execute("SELECT mcpbox.secret_create(%s, %s, '', 'local')", (i, f"K{n}"))
    refused(app, "limit", "SELECT mcpbox.secret_create(%s, 'ONE_MORE', '', 'local')", i)
    refused(app, "invalid_params", "SELECT mcpbox.secret_create(%s, 'D', %s, 'local')", i, "x" * 2001)
    refused(app, "not_found", "SELECT mcpbox.secret_create(%s, 'D', '', 'local')", uuid.uuid4())
    refused(app, "not_found", "SELECT mcpbox.secret_store('no_such', 'D', 'ann', %s)", sealed(OLD))


def test_actions_and_usage(app):
    t = Tool(app, secrets=["TOKEN"]).approve()
    shown = act(app, "secret_create", t.server_name, '{"key":"TOKEN","description":"d"}')
    assert [u["tool"] for u in shown["used_by"]] == [t.server_name + "__greet"]
    assert shown["used_by"][0]["serving"] is True and shown["used_by"][0]["state"] == "approved"
    path = t.server_name + "/TOKEN"
    seen = one(app, "SELECT sha256(convert_to(mcpbox.secret_json(%s, 'TOKEN'), 'UTF8'))",
               t.server_name)[0]
    shown = act(app, "secret_describe", path, '{"description":"other"}', seen=seen)
    assert shown["description"] == "other"
    refuse(app, "hash_mismatch", "secret_describe", path, '{"description":"x"}', seen=seen)
    refuse(app, "hash_mismatch", "secret_delete", path, seen=seen)
    for missing in ("no_such/TOKEN", t.server_name + "/NONE", t.server_name, "", "/"):
        refuse(app, "not_found", "secret_delete", missing)
        refuse(app, "not_found", "secret_describe", missing, '{"description":"x"}')
    gone = act(app, "secret_delete", path)
    assert gone["deleted"] is True and len(gone["used_by"]) == 1


def test_the_run_time_role_writes_no_row(app):
    i, name = server(app)
    app.execute("SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", (name, sealed(OLD)))
    for statement in ("UPDATE mcpbox.server_secrets SET value = NULL",
                      "DELETE FROM mcpbox.server_secrets", "UPDATE mcpbox.master_key SET key_id = NULL",
                      "INSERT INTO mcpbox.server_secret_history VALUES (%s, 'K', 9, 'set', 9, 'x')",
                      "SELECT mcpbox.secrets_drop(%s, 'x')", "UPDATE mcpbox.approval_seals SET seal = ''"):
        with pytest.raises(DENIED):
            app.execute(statement, (i,) if "%s" in statement else None)
        app.rollback()


# --- keys

def rest(app):
    """One of each that this file needs, under OLD: (server, tool)."""
    t = Tool(app)
    t.publish()
    t.decide(seal=sealed(OLD, b"what was said"))
    app.execute("SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", (t.server_name, sealed(OLD)))
    seq, head = one(app, "SELECT seq, hash FROM mcpbox.audit_head")
    app.execute("SELECT mcpbox.anchor_store(%s, %s, %s, %s)", (seq, head, b"s" * 32, OLD))
    return t, seq


def under(app, *kinds):
    return {r[0]: r[1] for r in app.execute(
        "SELECT kind, key_id FROM mcpbox.resting WHERE kind = ANY (%s)", (list(kinds),))}


def begin(app, key=NEW):
    app.execute("SELECT mcpbox.renew_begin(%s, 'root')", (key,))


def end(app, key=NEW, leave=0):
    app.execute("SELECT mcpbox.renew_end(%s, %s, 'root')", (key, leave))


def renew(app, key=NEW):
    """What the vault does, but for the cryptography. How many."""
    total = 0
    for kind in ("secret", "verifier", "seal", "first", "policy", "access", "anchor"):
        rows = app.execute("SELECT id, value FROM mcpbox.renew_rows(%s, '', %s, 1000)",
                           (kind, key)).fetchall()
        new = [b"n" * 32 if kind == "anchor" else
               b"\2" + key + (v[9:-32] if v[0] == 2 else v[1:-32]) + b"m" * 32 for _, v in rows]
        total += one(app, "SELECT mcpbox.renew_store(%s, %s, %s, %s)", kind,
                     [r[0] for r in rows], [r[1] for r in rows], new)[0]
    return total


def test_a_rotation(app):
    t, _ = rest(app)
    assert set(under(app, "secret", "seal", "anchor").values()) == {OLD}
    begin(app)
    begin(app)
    refused(app, "conflict", "SELECT mcpbox.renew_end(%s, 0, 'root')", NEW)
    refused(app, "conflict", "SELECT mcpbox.renew_end(%s, 100, 'root')", NEWER)
    assert renew(app) == 3 and renew(app) == 0
    assert set(under(app, "secret", "seal", "anchor").values()) == {NEW}
    end(app)
    end(app)
    assert one(app, "SELECT key_id, next_id FROM mcpbox.master_key") == (NEW, None)
    assert one(app, "SELECT state FROM mcpbox.tool_versions WHERE id = %s", t.version) == ("approved",)
    actions = [r[0] for r in app.execute(
        "SELECT action FROM mcpbox.audit_log ORDER BY seq DESC LIMIT 2")]
    assert actions == ["key_rotated", "key_rotation_begun"], "each once"


def test_what_is_older_than_rotation_counts_as_another_key(app):
    t = Tool(app)
    t.publish()
    t.decide(seal=b"\1said" + b"m" * 32)
    app.execute("SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)",
                (t.server_name, b"\1\1" + b"x" * 40))
    assert set(under(app, "secret", "seal").values()) == {bytes(8)}
    begin(app)
    assert renew(app) == 2
    end(app)


def test_nothing_under_a_key_that_is_gone(app):
    t, _ = rest(app)
    begin(app)
    # Meanwhile both.
    for key in (OLD, NEW):
        app.execute("SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", (t.server_name, sealed(key)))
    renew(app)
    end(app)
    refused(app, "conflict", "SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", t.server_name,
            sealed(OLD))
    refused(app, "conflict", "SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", t.server_name,
            b"\1\1" + b"x" * 40)
    seq, head = one(app, "SELECT seq, hash FROM mcpbox.audit_head")
    refused(app, "conflict", "SELECT mcpbox.anchor_store(%s, %s, %s, %s)", seq, head, b"s" * 32, OLD)
    other = Tool(app, server=(t.server, t.server_name), name="other")
    other.publish()
    with pytest.raises(psycopg.Error) as e:
        other.decide(seal=sealed(OLD))
    assert e.value.diag.message_primary.startswith("conflict: ")
    other.decide(seal=sealed(NEW))
    app.execute("SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", (t.server_name, sealed(NEW)))


def test_a_late_write_under_the_older_key_waits_and_is_refused_or_counted(schema, app):
    """Begun before the end: the end waits for it, and counts it."""
    t, _ = rest(app)
    begin(app)
    renew(app)
    late = psycopg.connect(schema.pg.conninfo(APP))
    late.execute("SELECT mcpbox.secret_store(%s, 'LATE', 'ann', %s)", (t.server_name, sealed(OLD)))
    said = []

    c = schema.pg.connect(APP)

    def ends():
        with c:
            try:
                end(c)
                said.append("ended")
            except psycopg.Error as e:
                said.append(e.diag.message_primary)

    thread = threading.Thread(target=ends)
    thread.start()
    blocked(app, c)
    assert not said, "it waits for the writer"
    late.commit()
    late.close()
    thread.join()
    assert said and said[0].startswith("conflict: 1 values"), said
    assert renew(app) == 1
    end(app)


def test_a_row_that_changed_meanwhile_is_left(app):
    t, _ = rest(app)
    begin(app)
    old = one(app, "SELECT id, value FROM mcpbox.resting WHERE kind = 'secret'")
    fresh = sealed(NEW)
    app.execute("SELECT mcpbox.secret_store(%s, 'K', 'ann', %s)", (t.server_name, fresh))
    assert one(app, "SELECT mcpbox.renew_store('secret', %s, %s, %s)", [old[0]], [old[1]],
               [sealed(NEW)]) == (0,)
    assert one(app, "SELECT value FROM mcpbox.server_secrets WHERE server_id = %s", t.server) == (fresh,)


def test_renewal_changes_key_and_mac_only(schema, app):
    """Outside a rotation not even those; the owner too."""
    t, seq = rest(app)
    said = one(app, "SELECT seal FROM mcpbox.approval_seals WHERE subject = %s", t.version)[0]
    with schema.pg.connect(OWNER) as c:
        change = "UPDATE mcpbox.approval_seals SET seal = %s WHERE subject = %s"
        guarded(c, change, sealed(NEW, b"what was said"), t.version)
        guarded(c, "UPDATE mcpbox.audit_anchors SET signature = %s, key_id = %s", b"x" * 32, NEW)
        begin(app)
        for bad in (sealed(NEW, b"what was sold"), sealed(OLD, b"what was said"),
                    sealed(NEWER, b"what was said"), b"\1what was said" + b"m" * 32, b"\2", b"",
                    sealed(NEW, b"what was said") + b"x"):
            guarded(c, change, bad, t.version)
        guarded(c, "UPDATE mcpbox.approval_seals SET sealed_at = now() WHERE subject = %s", t.version)
        guarded(c, "UPDATE mcpbox.audit_anchors SET head = %s WHERE seq = %s", b"x" * 32, seq)
        guarded(c, "UPDATE mcpbox.audit_anchors SET signature = %s WHERE seq = %s", b"x" * 32, seq)
        guarded(c, "DELETE FROM mcpbox.approval_seals")
        guarded(c, "DELETE FROM mcpbox.audit_anchors")
        guarded(c, "DELETE FROM mcpbox.master_key")
        c.execute(change, (sealed(NEW, b"what was said"), t.version))
    refused(app, "conflict", "SELECT mcpbox.renew_store('secret', %s, %s, %s)", ["x/y"], [said],
            [sealed(OLD)])


def test_no_renewal_without_a_rotation(app):
    rest(app)
    refused(app, "conflict", "SELECT mcpbox.renew_store('secret', '{}', '{}', '{}')")
    refused(app, "conflict", "SELECT mcpbox.renew_end(%s, 1000, 'root')", NEW)


def test_left_behind_when_told_so(app):
    t, _ = rest(app)
    begin(app)
    renew(app)
    app.execute("SELECT mcpbox.secret_store(%s, 'LEFT', 'ann', %s)", (t.server_name, sealed(OLD)))
    end(app, leave=1)
    assert one(app, "SELECT detail::json ->> 'left_unreadable' FROM mcpbox.audit_log"
               " WHERE action = 'key_rotated' ORDER BY seq DESC LIMIT 1") == ("1",)


def test_pages_of_a_pass(app):
    i, name = server(app)
    for n in range(7):
        app.execute("SELECT mcpbox.secret_store(%s, %s, 'ann', %s)", (name, f"K{n}", sealed(OLD)))
    seen, after = [], ""
    while True:
        rows = app.execute("SELECT id, \"column\" FROM mcpbox.renew_rows('secret', %s, NULL, 3)",
                           (after,)).fetchall()
        if not rows:
            break
        after, seen = rows[-1][0], seen + [r[1] for r in rows]
    assert sorted(seen) == [f"K{n}" for n in range(7)]
