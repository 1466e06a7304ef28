"""Access documents, and people who come in with signed tokens (0009): as the run-time
role, and as the owner where a person could break it."""
import datetime
import hashlib
import json
import threading
import time

import psycopg
import pytest

from database.test_actions import act, refuse
from database.test_database import APP, DENIED, OWNER, blocked, guarded, one, refused
from database.test_keys import NEW, OLD, begin, end, sealed

DAY_US = 86400 * 1000000
POCKET = ("pocket", "https://id.example.org")
ALICE, BOB = "oidc:pocket:alice", "oidc:pocket:bob"


@pytest.fixture(autouse=True)
def as_new(schema):
    yield
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("UPDATE mcpbox.master_key SET key_id = NULL, next_id = NULL;"
                  " DELETE FROM mcpbox.identities; DELETE FROM mcpbox.access_voids;"
                  " DELETE FROM mcpbox.access_judged;"
                  " DELETE FROM mcpbox.access_documents; DELETE FROM mcpbox.access_issuers;"
                  " DELETE FROM mcpbox.rate_limits; DELETE FROM mcpbox.settings")


def now_us():
    return time.time_ns() // 1000


NONE = bytes(32)


def read(c):
    """Seal, SHA-256 and serial, as admind reads them for the vault."""
    return one(c, "SELECT seal, sha256, serial FROM mcpbox.access_read()")


def store(c, document='{"a": 1}\n', serial=None, issuers=(POCKET,), seal=b"seal", sha256=None, actor="ann",
          over=None):
    """What admind calls; the serial. over: None, the document that is stored now."""
    serial = now_us() if serial is None else serial
    over = (read(c)[1] or NONE) if over is None else over
    c.execute("SELECT mcpbox.access_store(%s, %s, %s, %s, %s, %s, %s, %s)",
              (serial, document, hashlib.sha256(document.encode()).digest() if sha256 is None else sha256, actor, seal,
               [n for n, _ in issuers], [u for _, u in issuers], over))
    return serial


def sentence(c, failure, *args, **kw):
    """The sentence of a refused store()."""
    with pytest.raises(psycopg.Error) as e:
        store(c, *args, **kw)
    c.rollback()
    mode, _, text = e.value.diag.message_primary.partition(": ")
    assert (e.value.sqlstate, mode) == ("MB001", failure), e.value
    return text


def holds(c):
    return one(c, "SELECT serial, document FROM mcpbox.access_now")


def ahead(schema, serial, document='{"ahead": true}'):
    """A document as an earlier clock dated it."""
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("INSERT INTO mcpbox.access_documents (serial, document, sha256, actor, seal) VALUES"
                  " (%s, %s, sha256(convert_to(%s, 'UTF8')), 'ann', 'seal')", (serial, document, document))


def seen(c, *people, at=None, listener="tunnel"):
    """Notes [(principal, email, set)] as admind does."""
    at = at or datetime.datetime.now(datetime.timezone.utc)
    c.execute("SELECT mcpbox.identity_seen(%s, %s, %s, %s, %s, %s, %s)",
              ([p for p, _, _ in people], [p.split(":")[1] for p, _, _ in people],
               [p.split(":", 2)[2] for p, _, _ in people], [e for _, e, _ in people],
               [s for _, _, s in people], [at] * len(people), [listener] * len(people)))


def identity(c, principal):
    r = one(c, "SELECT mcpbox.identity_json(i) FROM mcpbox.identities i WHERE principal = %s", principal)
    return r and json.loads(r[0])


def newest_audit(c):
    actor, action, subject, detail = one(c, "SELECT actor, action, subject, detail FROM mcpbox.audit_log"
                                         " ORDER BY seq DESC LIMIT 1")
    return actor, action, subject, json.loads(detail)


def withdraw(c, principal, reason=None):
    body = {"principal": principal} if reason is None else {"principal": principal, "reason": reason}
    return act(c, "identity_withdraw", body=json.dumps(body))


def restore(c, principal):
    return act(c, "identity_restore", body=json.dumps({"principal": principal}))


# --- the document ---------------------------------------------------------------


def test_a_document_is_stored_shown_and_followed(app):
    assert json.loads(one(app, "SELECT mcpbox.access_json()")[0]) == {
        "document": None, "sha256": None, "serial": None, "actor": None, "stored_at": None}
    first = store(app)
    shown = json.loads(one(app, "SELECT mcpbox.access_json()")[0])
    assert (shown["document"], shown["serial"], shown["actor"]) == ({"a": 1}, first, "ann")
    assert shown["sha256"] == hashlib.sha256(b'{"a": 1}\n').hexdigest(), "of the bytes, not of the JSON"
    assert newest_audit(app) == ("ann", "access_set", "access document", {
        "serial": first, "sha256": shown["sha256"], "issuers": ["pocket"], "voided": []})
    second = store(app, "{}", issuers=())
    assert holds(app) == (second, "{}")
    assert one(app, "SELECT count(*) FROM mcpbox.access_documents") == (2,), "the first is kept"


def test_serials_rise(app):
    serial = store(app)
    for older in (serial, serial - 1, serial - DAY_US + 1000000):
        assert sentence(app, "hash_mismatch", serial=older) == (
            "the access document was changed meanwhile: read it again")
    assert "set the clocks" in sentence(app, "conflict", serial=serial - DAY_US - 1)
    store(app, serial=serial + 1)


def test_only_over_what_was_read(app):
    said = "the access document was changed meanwhile: read it again"
    assert read(app) == (None, None, 0)
    for over in (b"", b"x" * 32, hashlib.sha256(b"{}").digest()):
        assert sentence(app, "hash_mismatch", over=over) == said
    first = store(app, "{}", over=NONE, seal=b"one")
    assert read(app) == (b"one", hashlib.sha256(b"{}").digest(), first)
    for over in (NONE, b"x" * 32):
        assert sentence(app, "hash_mismatch", over=over) == said
    refused(app, "hash_mismatch", "SELECT mcpbox.access_store(%s, '{}', sha256('{}'), 'ann', 'seal', '{}', '{}', NULL)",
            now_us())
    store(app, over=hashlib.sha256(b"{}").digest())


def test_two_at_the_same_moment(schema, app):
    """Both read the first document. The second one waits for the first one's transaction, and is refused."""
    store(app, '{"base": true}')
    over, said = read(app)[1], []
    with schema.pg.connect(APP) as other:
        t = threading.Thread(target=lambda: said.append(sentence(other, "hash_mismatch", '{"second": true}', over=over)))
        with app.transaction():
            store(app, '{"first": true}', over=over)
            t.start()
            blocked(app, other)
        t.join()
    assert said == ["the access document was changed meanwhile: read it again"]
    assert holds(app)[1] == '{"first": true}'


def test_the_serial_that_is_followed(schema, app):
    """Of rows that are dated more than a day ahead none counts, nor of those that are void."""
    soon, future = now_us() + DAY_US // 2, now_us() + 3650 * DAY_US
    store(app, serial=soon)
    ahead(schema, future)
    assert read(app) == (b"seal", hashlib.sha256(b'{"ahead": true}').digest(), soon)
    store(app, "{}", serial=soon + 1)
    assert read(app) == (b"seal", hashlib.sha256(b"{}").digest(), soon + 1)


def test_a_serial_of_the_day_after_tomorrow(app):
    assert "set the clocks of both machines right" in sentence(app, "conflict", serial=now_us() + DAY_US + 60000000)
    store(app, serial=now_us() + DAY_US - 60000000)


def test_a_clock_that_was_ahead_locks_nothing_out(schema, app):
    future = now_us() + 3650 * DAY_US
    store(app, '{"real": true}')
    app.commit()
    ahead(schema, future)
    ahead(schema, future + 1)
    assert holds(app)[0] == future + 1, "admind asks the vault, which refuses its date"
    serial = store(app, '{"next": true}')
    assert holds(app) == (serial, '{"next": true}')
    assert newest_audit(app)[3]["voided"] == [future, future + 1]
    store(app, '{"then": true}')
    assert newest_audit(app)[3]["voided"] == [], "once"
    assert one(app, "SELECT count(*) FROM mcpbox.access_documents") == (5,)


def test_a_name_is_one_issuer_for_good(app):
    store(app)
    store(app, "{}", issuers=())
    said = sentence(app, "conflict", issuers=(("other", "https://o.example.org"), ("pocket", POCKET[1] + "/")))
    assert said.startswith("the name pocket means the issuer https://id.example.org for good"), said
    assert one(app, "SELECT count(*) FROM mcpbox.access_issuers") == (1,), "nothing of it was stored"
    store(app, issuers=(POCKET, ("other", "https://id.example.org")))


@pytest.mark.parametrize("names,urls", [(["a"], []), ([], ["https://a"]), (["a", "a"], ["https://a", "https://b"]),
                                        ([None], ["https://a"]), (None, [])])
def test_names_without_urls(app, names, urls):
    refused(app, "invalid_params", "SELECT mcpbox.access_store(%s, '{}', sha256('{}'), 'ann', 'seal', %s, %s, %s)",
            now_us(), names, urls, NONE)


@pytest.mark.parametrize("bad", [
    {"document": ""}, {"document": "[]"}, {"document": "no JSON"}, {"sha256": b"x" * 32}, {"sha256": b""},
    {"document": '{"a": "' + "x" * 262144 + '"}'}, {"seal": b""}, {"seal": b"x" * 513}, {"actor": ""},
    {"serial": 0}, {"serial": -1}, {"issuers": (("Pocket", "https://a"),)}, {"issuers": (("a" * 33, "https://a"),)},
    {"issuers": (("a", ""),)}, {"issuers": (("a", "https://" + "a" * 505),)}])
def test_what_is_no_document(app, bad):
    with pytest.raises(psycopg.Error):
        store(app, **bad)
    app.rollback()
    assert holds(app) is None
    # the control: the same without the fault
    store(app, '{"a": "' + "x" * 262135 + '"}', seal=b"x" * 512, issuers=(("a" * 32, "https://" + "a" * 504),))


def test_documents_are_neither_changed_nor_deleted(schema, app):
    serial = store(app)
    app.commit()
    with schema.pg.connect(OWNER) as c:
        for statement in ("DELETE FROM mcpbox.access_documents", "TRUNCATE mcpbox.access_documents",
                          "TRUNCATE mcpbox.access_documents CASCADE", "UPDATE mcpbox.access_documents SET actor = 'x'",
                          "UPDATE mcpbox.access_documents SET seal = 'x'",
                          "UPDATE mcpbox.access_documents SET document = '{}', sha256 = sha256('{}')",
                          "UPDATE mcpbox.access_documents SET serial = serial + 1",
                          "DELETE FROM mcpbox.access_issuers", "TRUNCATE mcpbox.access_issuers CASCADE",
                          "UPDATE mcpbox.access_issuers SET issuer = 'https://evil.example.org'"):
            guarded(c, statement)
            c.rollback()
        late = "INSERT INTO mcpbox.access_documents VALUES (%s, '{}', sha256('{}'), 'x', 'seal')"
        guarded(c, late, serial - 1)
        c.rollback()
        guarded(c, late, now_us() + 2 * DAY_US)
        c.rollback()
        # nor is an older one brought back by taking the newer away
        guarded(c, "INSERT INTO mcpbox.access_voids VALUES (%s)", serial)
        c.rollback()
    assert holds(app)[0] == serial


def test_voids_stay(schema, app):
    future = now_us() + 10 * DAY_US
    ahead(schema, future)
    store(app)
    app.commit()
    with schema.pg.connect(OWNER) as c:
        for statement in ("DELETE FROM mcpbox.access_voids", "TRUNCATE mcpbox.access_voids",
                          "UPDATE mcpbox.access_voids SET voided_at = now()"):
            guarded(c, statement)
            c.rollback()


# --- the master key -------------------------------------------------------------


def test_the_document_that_holds_is_renewed_and_no_other(app):
    store(app, '{"old": 1}', seal=sealed(OLD, b"old"))
    serial = store(app, seal=sealed(OLD, b"said"))
    assert app.execute("SELECT id, place, \"column\", key_id FROM mcpbox.resting WHERE kind = 'access'").fetchall() == [
        (str(serial), "", "", OLD)]
    begin(app)
    app.commit()
    refused(app, "conflict", "SELECT mcpbox.renew_end(%s, 0, 'root')", NEW)
    app.rollback()
    row = one(app, "SELECT id, value FROM mcpbox.renew_rows('access', '', %s, 10)", NEW)
    assert row[0] == str(serial)
    new = sealed(NEW, b"said")
    assert one(app, "SELECT mcpbox.renew_store('access', %s, %s, %s)", [row[0]], [row[1]], [new]) == (1,)
    assert one(app, "SELECT seal FROM mcpbox.access_now") == (new,)
    end(app)
    assert one(app, "SELECT count(*) FROM mcpbox.resting WHERE key_id <> %s", NEW) == (0,)
    app.commit()
    assert sentence(app, "conflict", seal=sealed(OLD)).startswith("it was sealed under a master key")
    store(app, seal=sealed(NEW))


def test_renewal_changes_key_and_mac_only(schema, app):
    store(app, seal=sealed(OLD, b"said"))
    begin(app)
    app.commit()
    change = "UPDATE mcpbox.access_documents SET seal = %s"
    with schema.pg.connect(OWNER) as c:
        for bad in (sealed(NEW, b"sold"), sealed(OLD, b"said"), b"\2", b"x" * 60):
            guarded(c, change, bad)
            c.rollback()
        guarded(c, "UPDATE mcpbox.access_documents SET seal = %s, actor = 'eve'", sealed(NEW, b"said"))
        c.rollback()
        c.execute(change, (sealed(NEW, b"said"),))


# --- people -----------------------------------------------------------------------


def test_people_are_noted_many_at_once(app):
    store(app)
    app.commit()
    t = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    seen(app, (BOB, "bob@example.org", "family"), (ALICE, "", "guests"), at=t)
    assert identity(app, BOB) == {
        "principal": BOB, "issuer": "pocket", "subject": "bob", "email": "bob@example.org", "set": "family",
        "state": "active", "first_seen": "2026-01-02T03:04:05.000Z", "last_used_at": "2026-01-02T03:04:05.000Z",
        "last_used_listener": "tunnel", "withdrawn_at": None, "withdrawn_by": None, "reason": None}
    assert identity(app, ALICE)["email"] is None
    later = t + datetime.timedelta(hours=1)
    seen(app, (BOB, "b@example.org", "staff"), at=later, listener="local")
    seen(app, (BOB, "old@example.org", "old"), at=t)
    i = identity(app, BOB)
    assert (i["email"], i["set"], i["first_seen"][11:16], i["last_used_at"][11:16], i["last_used_listener"]) == (
        "b@example.org", "staff", "03:04", "04:04", "local")


def test_one_person_twice_in_one_statement(app):
    store(app)
    t = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    app.execute("SELECT mcpbox.identity_seen(%s, %s, %s, %s, %s, %s, %s)", (
        [BOB] * 2, ["pocket"] * 2, ["bob"] * 2, ["new@a.org", "old@a.org"], ["s"] * 2,
        [t + datetime.timedelta(hours=2), t], ["tunnel"] * 2))
    i = identity(app, BOB)
    assert (i["email"], i["first_seen"][11:13], i["last_used_at"][11:13]) == ("new@a.org", "00", "02")
    app.execute("SELECT mcpbox.identity_seen('{}', '{}', '{}', '{}', '{}', '{}', '{}')")


@pytest.mark.parametrize("principal,issuer,subject", [
    ("oidc:pocket:bob", "pocket", "alice"), ("token:bob", "pocket", "bob"), ("oidc:other:bob", "other", "bob"),
    ("oidc:pocket:a b", "pocket", "a b"), ("oidc:pocket:", "pocket", ""), ("oidc:pocket:é", "pocket", "é"),
    ("oidc:pocket:" + "x" * 201, "pocket", "x" * 201)])
def test_who_is_nobody(app, owner, principal, issuer, subject):
    store(app)
    app.commit()
    with pytest.raises(psycopg.errors.IntegrityError):
        app.execute("SELECT mcpbox.identity_seen(%s, %s, %s, '{\"\"}', '{s}', %s, '{tunnel}')", (
            [principal], [issuer], [subject], [datetime.datetime.now(datetime.timezone.utc)]))
    app.rollback()
    longest = "oidc:pocket:" + "~" * 200
    seen(app, (longest, "", "s"))
    assert one(owner, "SELECT mcpbox.actor_ok(principal) FROM mcpbox.identities WHERE principal = %s", longest) == (True,)


def test_the_longest_principal_is_one():
    """oidc: + 32 + : + 200 fits actor_ok, and so every table of principals."""
    assert len("oidc:" + "a" * 32 + ":" + "x" * 200) <= 254


def test_a_person_is_withdrawn_and_restored(app):
    store(app)
    seen(app, (BOB, "bob@example.org", "family"))
    shown = withdraw(app, BOB, "left")
    assert (shown["state"], shown["withdrawn_by"], shown["reason"], shown["email"]) == (
        "withdrawn", "ann", "left", "bob@example.org")
    audit = newest_audit(app)
    assert audit == ("ann", "identity_withdrawn", "identity " + BOB, {"reason": "left", "email": "bob@example.org"})
    again = act(app, "identity_withdraw", body=json.dumps({"principal": BOB, "reason": "other"}), actor="eve")
    assert again == shown and newest_audit(app) == audit, "the first withdrawal holds"
    seen(app, (BOB, "bob@example.org", "family"))
    assert identity(app, BOB)["state"] == "withdrawn", "a late note of admind restores nobody"
    assert app.execute("SELECT principal FROM mcpbox.identities WHERE withdrawn_at IS NOT NULL").fetchall() == [(BOB,)]
    shown = restore(app, BOB)
    assert (shown["state"], shown["withdrawn_at"], shown["withdrawn_by"], shown["reason"]) == ("active", None, None, None)
    audit = newest_audit(app)
    assert audit == ("ann", "identity_restored", "identity " + BOB, {"email": "bob@example.org"})
    assert restore(app, BOB) == shown and newest_audit(app) == audit


def test_one_who_never_came_is_withdrawn(app):
    store(app)
    strange = "oidc:pocket:a:b/c"
    shown = withdraw(app, strange)
    assert (shown["issuer"], shown["subject"], shown["first_seen"], shown["reason"]) == ("pocket", "a:b/c", None, None)
    seen(app, (strange, "", "s"))
    assert identity(app, strange)["first_seen"] is not None
    assert restore(app, strange)["state"] == "active"


@pytest.mark.parametrize("principal,failure", [
    ("local", "invalid_params"), ("token:bob", "invalid_params"), ("oidc:pocket", "invalid_params"),
    ("oidc:pocket:", "invalid_params"), ("oidc:Pocket:bob", "invalid_params"), ("", "invalid_params"),
    ("oidc:pocket:a b", "invalid_params"), ("oidc:pocket:" + "x" * 201, "invalid_params"),
    ("oidc:poket:bob", "not_found")])
def test_who_is_not_to_be_withdrawn(app, principal, failure):
    store(app)
    app.commit()
    for action in ("identity_withdraw", "identity_restore"):
        refuse(app, failure, action, body=json.dumps({"principal": principal}))


def test_other_refusals(app):
    store(app)
    app.commit()
    refuse(app, "not_found", "identity_restore", body=json.dumps({"principal": BOB}))
    refuse(app, "invalid_params", "identity_withdraw", body=json.dumps({"principal": BOB, "reason": "x" * 2001}))
    refuse(app, "invalid_params", "identity_withdraw", body="{}")
    assert withdraw(app, BOB, "x" * 2000)["reason"] == "x" * 2000


def test_withdrawn_people_are_bounded(schema, app):
    store(app)
    app.commit()
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("INSERT INTO mcpbox.identities (principal, issuer, subject, withdrawn_at, withdrawn_by)"
                  " SELECT 'oidc:pocket:' || n, 'pocket', n::text, now(), 'ann' FROM generate_series(1, 16384) n")
    refuse(app, "limit", "identity_withdraw", body=json.dumps({"principal": BOB}))
    assert withdraw(app, "oidc:pocket:7")["state"] == "withdrawn", "a repetition needs no room"
    restore(app, "oidc:pocket:7")
    assert withdraw(app, BOB)["state"] == "withdrawn"


def crowd(schema, n, withdrawn="NULL", issuer="pocket", first=1):
    """n people of an issuer, of whom number 1 came first."""
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("INSERT INTO mcpbox.identities (principal, issuer, subject, first_seen, last_used_at,"
                  " last_used_listener, withdrawn_at, withdrawn_by)"
                  f" SELECT 'oidc:{issuer}:' || n, '{issuer}', n::text, t, t, 'tunnel', {withdrawn}::timestamptz,"
                  f" CASE WHEN {withdrawn} IS NOT NULL THEN 'ann' END"
                  " FROM generate_series(%s::int, %s::int) n, LATERAL (SELECT now() - interval '1 day'"
                  " + n * interval '1 second') x (t)", (first, first + n - 1))


def rows_of(c, issuer="pocket"):
    return one(c, "SELECT count(*), count(*) FILTER (WHERE withdrawn_at IS NOT NULL) FROM mcpbox.identities"
               " WHERE issuer = %s", issuer)


def test_rows_of_an_issuer_are_bounded(schema, app):
    """Who came longest ago goes first, a withdrawn person never, and no person of another issuer."""
    store(app, issuers=(POCKET, ("door", "https://door.example.org")))
    app.commit()
    crowd(schema, 16384)
    crowd(schema, 3, issuer="door")
    withdraw(app, "oidc:pocket:1")
    seen(app, ("oidc:pocket:2", "", "s"), ("oidc:pocket:5", "", "s"))
    assert rows_of(app) == (16384, 1), "people who came before make no room"
    seen(app, (ALICE, "", "s"), (BOB, "", "s"), ("oidc:door:9", "", "s"))
    assert rows_of(app) == (16384, 1) and rows_of(app, "door") == (4, 0)
    assert [bool(identity(app, f"oidc:pocket:{n}")) for n in range(1, 7)] == [True, True, False, False, True, True]
    assert identity(app, ALICE) and identity(app, BOB)
    # One who was restored and never came is older than all.
    withdraw(app, "oidc:pocket:never")
    restore(app, "oidc:pocket:never")
    seen(app, ("oidc:pocket:new", "", "s"))
    assert rows_of(app) == (16384, 1)
    assert identity(app, "oidc:pocket:never") is None and identity(app, "oidc:pocket:6") is None


def test_all_rows_are_of_withdrawn_people(schema, app):
    """admind lets nobody else in then; a note that comes all the same keeps no row."""
    store(app)
    app.commit()
    crowd(schema, 16384, withdrawn="now()")
    seen(app, (BOB, "", "s"))
    assert rows_of(app) == (16384, 16384) and identity(app, BOB) is None


def test_a_withdrawal_is_not_removed(schema, app):
    store(app)
    seen(app, (BOB, "", "s"), (ALICE, "", "s"))
    withdraw(app, BOB)
    app.commit()
    with schema.pg.connect(OWNER) as c:
        guarded(c, "DELETE FROM mcpbox.identities")
        c.rollback()
        c.execute("DELETE FROM mcpbox.identities WHERE principal = %s", (ALICE,))
        c.rollback()


def test_two_nodes_remove_rows_at_once(schema, app):
    """Neither waits for the other, and neither fails."""
    store(app)
    app.commit()
    crowd(schema, 16384)
    with schema.pg.connect(APP) as other:
        seen(app, (ALICE, "", "s"))
        seen(other, (BOB, "", "s"))
        other.commit()
        app.commit()
    seen(app, ("oidc:pocket:new", "", "s"))
    assert rows_of(app) == (16384, 0)


def test_a_node_notes_what_it_judged(app):
    first = store(app)
    second = store(app, serial=first + 1)
    for serial in (first, second, second):
        app.execute("SELECT mcpbox.access_judged_note('one', %s)", (serial,))
    app.execute("SELECT mcpbox.access_judged_note('two', %s)", (first,))
    assert app.execute("SELECT node, serial FROM mcpbox.access_judged ORDER BY node").fetchall() == [
        ("one", second), ("two", first)]
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        app.execute("SELECT mcpbox.access_judged_note('one', 7)")
    app.rollback()


def test_identities_keep_what_they_are(schema, app):
    store(app)
    seen(app, (BOB, "", "s"))
    withdraw(app, BOB, "left")
    app.commit()
    with schema.pg.connect(OWNER) as c:
        for statement in ("DELETE FROM mcpbox.identities", "TRUNCATE mcpbox.identities",
                          "UPDATE mcpbox.identities SET first_seen = now()",
                          "UPDATE mcpbox.identities SET first_seen = NULL, last_used_at = NULL, last_used_listener = NULL",
                          "UPDATE mcpbox.identities SET principal = 'oidc:pocket:eve', subject = 'eve'",
                          "UPDATE mcpbox.identities SET reason = 'other'",
                          "UPDATE mcpbox.identities SET withdrawn_by = 'eve'",
                          "UPDATE mcpbox.identities SET withdrawn_at = NULL"):
            guarded(c, statement)
            c.rollback()


def test_admind_is_told(schema, app):
    with schema.pg.connect(APP) as c:
        c.execute("LISTEN mcpbox_access")
        c.commit()
        store(app)
        app.commit()
        withdraw(app, BOB)
        withdraw(app, BOB)
        seen(app, (BOB, "", "s"), (ALICE, "", "s"))
        app.commit()
        restore(app, BOB)
        app.commit()
        with schema.pg.connect(OWNER) as owner:     # a person at psql, too
            owner.execute("UPDATE mcpbox.identities SET withdrawn_at = now(), withdrawn_by = 'root'"
                          " WHERE principal = %s", (ALICE,))
        heard = c.notifies()
        told = [next(heard).payload for _ in range(4)]
    assert told == ["document", "withdrawn " + BOB, "restored " + BOB, "withdrawn " + ALICE]


# --- rates ------------------------------------------------------------------------


def limit(c, principal):
    return one(c, "SELECT per_minute FROM mcpbox.rate_limit_of('principal', %s)", principal)


def test_a_person_has_the_limit_of_a_token(app, owner):
    act(app, "settings_set", "rate_token_per_minute", '{"value":"7"}')
    assert limit(owner, BOB) == limit(owner, "token:ci") == (7,)
    assert limit(owner, "local") is None
    act(app, "rate_limit_set", body=json.dumps({"scope": "principal", "subject": BOB, "per_minute": 9}))
    assert limit(owner, BOB) == (9,) and limit(owner, ALICE) == (7,)
    act(app, "settings_set", "rate_principal_per_minute", '{"value":"5"}')
    assert limit(owner, ALICE) == limit(owner, "local") == (5,)


# --- the run-time role --------------------------------------------------------------


@pytest.mark.parametrize("query", [
    "INSERT INTO mcpbox.access_documents VALUES (1, '{}', sha256('{}'), 'x', 'seal')",
    "UPDATE mcpbox.access_documents SET seal = 'x'", "INSERT INTO mcpbox.access_voids VALUES (1)",
    "INSERT INTO mcpbox.access_issuers VALUES ('a', 'https://a')", "DELETE FROM mcpbox.identities",
    "UPDATE mcpbox.identities SET withdrawn_at = NULL",
    "SELECT mcpbox.act_identity_restore('x', '', NULL, '{\"principal\":\"oidc:a:b\"}')",
    "SELECT mcpbox.act_identity_withdraw('x', '', NULL, '{\"principal\":\"oidc:a:b\"}')",
    "SELECT mcpbox.identity_parts('oidc:a:b')", "SELECT mcpbox.identities_prune('a')",
    "INSERT INTO mcpbox.access_judged VALUES ('n', 1)", "UPDATE mcpbox.access_judged SET serial = 1"])
def test_a_taken_over_admind_has_no_other_way(app, query):
    with pytest.raises(DENIED):
        app.execute(query)
    app.rollback()
