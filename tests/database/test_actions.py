"""What administrators change: admin_act(), repeated requests, settings; as the
run-time role, and as the owner where a person could break it."""
import hashlib
import json
import secrets
import threading

import psycopg
import pytest

from database.test_database import APP, DENIED, OWNER, one, refused
from harness.patience import patience


def act(c, action, identifier="", body="{}", key="", seen=None, actor="ann", role="administrator"):
    return json.loads(one(c, "SELECT mcpbox.admin_act(%s, %s, %s, %s, %s, %s, %s)",
                          action, actor, role, identifier, seen, key, body)[0])


def refuse(c, failure, *args, **kw):
    with pytest.raises(psycopg.Error) as e:
        act(c, *args, **kw)
    c.rollback()
    assert e.value.sqlstate == "MB001" and str(e.value).startswith(failure + ": "), e.value


def setting(c, key="confirm_destructive"):
    return one(c, "SELECT mcpbox.setting(%s)", key)[0]


def etag(c, key="confirm_destructive"):
    return hashlib.sha256(one(c, "SELECT mcpbox.setting_json(%s)", key)[0].encode()).digest()


ON, OFF = '{"value":"on"}', '{"value":"off"}'


@pytest.fixture(autouse=True)
def fresh(schema):
    yield
    with schema.pg.connect(OWNER) as c:
        c.execute("DELETE FROM mcpbox.settings")


def test_a_setting_is_set_shown_and_reset(app):
    shown = act(app, "settings_set", "confirm_destructive", ON)
    assert (shown["key"], shown["value"], shown["default"], shown["updated_by"]) == (
        "confirm_destructive", "on", "off", "ann")
    assert shown["words"] == ["off", "on"] and setting(app) == "on"
    assert one(app, "SELECT actor, action, detail FROM mcpbox.audit_log ORDER BY seq DESC LIMIT 1") == (
        "ann", "setting_changed", '{"value" : "on"}')
    shown = act(app, "settings_reset", "confirm_destructive")
    assert shown["value"] == "off" and shown["updated_by"] is None and setting(app) == "off"
    seq = one(app, "SELECT seq, action FROM mcpbox.audit_log ORDER BY seq DESC LIMIT 1")
    assert seq[1] == "setting_reset"
    act(app, "settings_reset", "confirm_destructive")
    assert one(app, "SELECT max(seq) FROM mcpbox.audit_log")[0] == seq[0], "nothing was changed"


def test_if_match(app):
    seen = etag(app)
    act(app, "settings_set", "confirm_destructive", ON, seen=seen)
    refuse(app, "hash_mismatch", "settings_set", "confirm_destructive", OFF, seen=seen)
    refuse(app, "hash_mismatch", "settings_reset", "confirm_destructive", seen=seen)
    act(app, "settings_set", "confirm_destructive", OFF, seen=etag(app))


@pytest.mark.parametrize("value", ["maybe", "", "ON", "on ", "on'"])
def test_values_out_of_bounds(app, value):
    refuse(app, "invalid_params", "settings_set", "confirm_destructive", json.dumps({"value": value}))


def test_no_such_setting_or_action(app):
    refuse(app, "not_found", "settings_set", "other", ON)
    refuse(app, "not_found", "settings_reset", "")
    for action in ("nothing", "x; DROP TABLE mcpbox.servers", "", "Settings_set"):
        with pytest.raises(psycopg.Error):
            act(app, action)
        app.rollback()
    refuse(app, "internal", "settings_set", "confirm_destructive", ON, role="guest")
    with pytest.raises(psycopg.Error):
        act(app, "settings_set", "confirm_destructive", "not json")
    app.rollback()
    refuse(app, "invalid_params", "settings_set", "confirm_destructive", "[]")


@pytest.mark.parametrize("kind, bounds, words, good, bad", [
    ("integer", (-5, 1000), None, ["-5", "0", "1000"], ["-6", "1001", "01", "+1", "1.0", "1e2", " 1", "",
                                                         "9" * 30, "-0"]),
    ("text", (1, 5), None, ["a", "äöüßé"], ["", "abcdef", "a\nb", "\x7f"]),
    ("choice", (None, None), ["a", "b c"], ["a", "b c"], ["", "A", "b"])])
def test_kinds_of_settings(schema, kind, bounds, words, good, bad):
    with schema.pg.connect(OWNER) as c:
        try:
            c.execute("INSERT INTO mcpbox.setting_keys (key, type, min, max, \"default\", doc, words) VALUES "
                      "('x', %s, %s, %s, %s, 'a test', %s)", (kind, *bounds, good[0], words))
            for value in good:
                assert act(c, "settings_set", "x", json.dumps({"value": value}))["value"] == value
            for value in bad:
                refuse(c, "invalid_params", "settings_set", "x", json.dumps({"value": value}))
                with pytest.raises(psycopg.Error):  # nor past the function
                    c.execute("UPDATE mcpbox.settings SET value = %s WHERE key = 'x'", (value,))
                with pytest.raises(psycopg.errors.CheckViolation):  # nor as a default
                    c.execute("UPDATE mcpbox.setting_keys SET \"default\" = %s", (value,))
        finally:
            c.execute("DELETE FROM mcpbox.settings")
            c.execute("DELETE FROM mcpbox.setting_keys WHERE key = 'x'")


# --- repeated requests --------------------------------------------------------


def test_a_repeated_request_is_answered_and_not_done_again(app):
    key = secrets.token_hex(32)
    first = act(app, "settings_set", "confirm_destructive", ON, key)
    seq = one(app, "SELECT max(seq) FROM mcpbox.audit_log")[0]
    act(app, "settings_set", "confirm_destructive", OFF)
    assert act(app, "settings_set", "confirm_destructive", ON, key) == first
    assert setting(app) == "off" and one(app, "SELECT max(seq) FROM mcpbox.audit_log")[0] == seq + 1
    # another body, object, action or If-Match under the key is a mistake
    refuse(app, "conflict", "settings_set", "confirm_destructive", OFF, key)
    refuse(app, "conflict", "settings_set", "other", ON, key)
    refuse(app, "conflict", "settings_reset", "confirm_destructive", ON, key)
    refuse(app, "conflict", "settings_set", "confirm_destructive", ON, key, seen=bytes(32))
    # the key is its sender's own
    assert act(app, "settings_set", "confirm_destructive", ON, key, actor="bob")["updated_by"] == "bob"


def test_what_failed_may_be_tried_again(app):
    key = secrets.token_hex(8)
    refuse(app, "hash_mismatch", "settings_set", "confirm_destructive", ON, key, seen=bytes(32))
    act(app, "settings_set", "confirm_destructive", ON, key, seen=etag(app))


def test_a_key_lasts_a_day(app, owner):
    key, old = secrets.token_hex(8), secrets.token_hex(8)
    for k in (key, old):
        act(app, "settings_set", "confirm_destructive", ON, k)
    app.commit()
    owner.execute("UPDATE mcpbox.idempotency_keys SET at = at - interval '24 hours'")
    owner.commit()
    act(app, "settings_set", "confirm_destructive", OFF, key)
    assert setting(app) == "off"
    app.commit()
    assert owner.execute("SELECT count(*) FROM mcpbox.idempotency_keys WHERE key = %s", (old,)).fetchone() == (0,)


def test_the_same_request_twice_at_once(schema):
    """The second waits for the first, and is its answer."""
    key, answers = secrets.token_hex(8), []
    with schema.pg.connect(OWNER) as c:
        before = one(c, "SELECT count(*) FROM mcpbox.audit_log")[0]

    def send():
        with schema.pg.connect(APP) as c:
            answers.append(act(c, "settings_set", "confirm_destructive", ON, key))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(patience(30))
    assert len(answers) == 8 and all(a == answers[0] for a in answers)
    with schema.pg.connect(OWNER) as c:
        assert one(c, "SELECT count(*) FROM mcpbox.audit_log")[0] == before + 1


# --- the run-time role --------------------------------------------------------


@pytest.mark.parametrize("query", [
    "SELECT * FROM mcpbox.idempotency_keys", "INSERT INTO mcpbox.settings VALUES ('a', 'b', now(), 'c')",
    "UPDATE mcpbox.setting_keys SET max = 1", "SELECT mcpbox.setting_store('confirm_destructive', 'on', 'x')",
    "SELECT mcpbox.act_settings_set('x', 'confirm_destructive', NULL, '{\"value\":\"on\"}')"])
def test_a_taken_over_admind_has_no_other_way(app, query):
    with pytest.raises(DENIED):
        app.execute(query)
    app.rollback()


def test_the_owner_cannot_set_what_is_no_setting(owner):
    refused(owner, "not_found", "INSERT INTO mcpbox.settings VALUES ('other', 'x', now(), 'x')")
    owner.rollback()
