"""API tokens of a permission set, and rates of a set (0010): as the run-time role, and as the owner where a person
could break it."""
import json
import secrets
import threading
import uuid

import psycopg
import pytest

from database.test_access import as_new, store  # noqa: F401: each test begins without a document
from database.test_actions import act
from database.test_database import APP, DENIED, blocked, guarded, one, refused
from harness.patience import patience


def document(*names):
    return json.dumps({"permission_sets": [{"name": n, "scopes": ["manage"], "allow": []} for n in names]})


def create(c, name=None, scopes="", allow="", deny="", set_="use", expires=None):
    name = name or "t" + secrets.token_hex(6)
    return json.loads(one(c, "SELECT mcpbox.token_create(%s, %s, %s, %s, 'tunnel', %s, %s, %s, 'root', %s)",
                          uuid.uuid4(), name, secrets.token_bytes(32), scopes, allow, deny, expires, set_)[0])


CREATE = "SELECT mcpbox.token_create(%s, %s, %s, %s, 'tunnel', %s, %s, NULL, 'root', %s)"


def refused_create(c, failure, scopes="", allow="", deny="", set_="use"):
    refused(c, failure, CREATE, uuid.uuid4(), "t" + secrets.token_hex(6), secrets.token_bytes(32), scopes, allow,
            deny, set_)
    c.rollback()


@pytest.fixture(autouse=True)
def no_tokens(schema):
    yield
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("DELETE FROM mcpbox.api_tokens; DELETE FROM mcpbox.rate_buckets")


def test_a_token_of_a_set(app):
    store(app, document("use", "other"))
    made = create(app)
    assert (made["set"], made["scopes"], made["allow"], made["deny"]) == ("use", [], [], [])
    assert one(app, "SELECT detail::json ->> 'set' FROM mcpbox.audit_log WHERE action = 'token_created'"
                    " ORDER BY seq DESC LIMIT 1") == ("use",)
    own = create(app, scopes="manage", set_="")
    assert (own["set"], own["scopes"]) == (None, ["manage"])


def test_a_set_or_lists(app, owner):
    store(app, document("use"))
    app.commit()
    for lists in ({"scopes": "manage"}, {"allow": "*"}, {"deny": "a"}):
        refused_create(app, "invalid_params", **lists)
    refused_create(app, "invalid_params", set_="")
    for name in ("other", "us", "USE", "use ", "'"):
        refused_create(app, "not_found", set_=name)
    # The table says so, too.
    row = ("INSERT INTO mcpbox.api_tokens (id, name, digest, scopes, listeners, allow, deny, created_by,"
           " permission_set) VALUES (%s, 'x', %s, %s, '{tunnel}', %s, '{}', 'root', %s)")
    for scopes, allow, name in (([], ["*"], None), (["manage"], [], "use"), ([], ["*"], "use"), ([], [], "Use")):
        guarded(owner, row, uuid.uuid4(), secrets.token_bytes(32), scopes, allow, name)
        owner.rollback()


def test_without_a_document_no_set(app):
    refused_create(app, "not_found")


@pytest.mark.parametrize("text", ["{}", '{"permission_sets": {}}', '{"permission_sets": [1, "use", {}, {"name": 1}]}',
                                  '{"use": [{"name": "use"}]}'])
def test_documents_without_the_set(app, text):
    store(app, text)
    app.commit()
    refused_create(app, "not_found")


def test_the_set_is_closed(app, owner):
    store(app, document("use", "more"))
    made = create(app)
    app.commit()
    for change in ("permission_set = 'more'", "permission_set = NULL, scopes = '{manage}'", "scopes = '{manage}'"):
        with pytest.raises(psycopg.Error, match="not changed"):
            owner.execute(f"UPDATE mcpbox.api_tokens SET {change} WHERE id = %s", (made["id"],))
        owner.rollback()
        with pytest.raises(DENIED):
            app.execute(f"UPDATE mcpbox.api_tokens SET {change} WHERE id = %s", (made["id"],))
        app.rollback()


def test_a_set_that_tokens_have_stays(app):
    store(app, document("use", "other"))
    names = sorted(create(app)["name"] for _ in range(12))
    app.commit()
    for text in ("{}", document("other"), '{"permission_sets": 1}'):
        with pytest.raises(psycopg.Error) as e:
            store(app, text)
        app.rollback()
        assert e.value.diag.message_primary == (
            "conflict: /permission_sets lacks the set use, which API tokens have: " + ", ".join(names[:10])
            + " and 2 more")
    store(app, document("use"))
    # Tokens that are over need none.
    for name in names[1:]:
        app.execute("SELECT mcpbox.token_revoke(%s, NULL, 'root')", (name,))
    app.commit()
    with pytest.raises(psycopg.Error) as e:
        store(app, "{}")
    app.rollback()
    assert e.value.diag.message_primary.endswith("have: " + names[0])
    app.execute("SELECT mcpbox.token_revoke(%s, NULL, 'root')", (names[0],))
    store(app, "{}")


def test_a_token_and_a_document_at_once(schema, app):
    """One waits for the other, so no token comes without its set."""
    store(app, document("use"))
    app.commit()
    with schema.pg.connect(APP) as other:
        app.execute("BEGIN")
        made, got = create(app), []

        def remove():
            try:
                store(other, "{}")
            except psycopg.Error as e:
                got.append(e.diag.message_primary)
        t = threading.Thread(target=remove)
        t.start()
        with schema.pg.connect("postgres") as watch:
            blocked(watch, other)
        app.execute("COMMIT")
        t.join(patience(20))
        assert got == ["conflict: /permission_sets lacks the set use, which API tokens have: " + made["name"]]


# --- rates ----------------------------------------------------------------------


def lease(c, subject, want, per_minute, scope="principal"):
    return one(c, "SELECT granted, per_minute, burst FROM mcpbox.rate_lease(%s, %s, %s, %s)", scope, subject, want,
               per_minute)


def test_the_limit_of_a_set(app):
    who = "oidc:pocket:" + secrets.token_hex(6)
    assert lease(app, who, 100, 30) == (30, 30, 30)
    # Another number holds for the same bucket: more does not fill it.
    granted, per_minute, burst = lease(app, who, 100, 60)
    assert granted <= 1 and (per_minute, burst) == (60, 60)
    # Less cuts off what is there.
    other = "token:" + secrets.token_hex(6)
    assert lease(app, other, 1, 100) == (1, 100, 100)
    assert lease(app, other, 100, 5) == (5, 5, 5)


def test_what_goes_before_the_set(app):
    who = "token:" + secrets.token_hex(6)
    act(app, "rate_limit_set", body=json.dumps({"scope": "principal", "subject": who, "per_minute": 7}))
    assert lease(app, who, 100, 30) == (7, 7, 7)
    other = "token:" + secrets.token_hex(6)
    act(app, "settings_set", "rate_token_per_minute", '{"value":"9"}')
    for none in (None, 0, -1):
        assert lease(app, other + str(none), 100, none) == (9, 9, 9)
    # Only principals have sets.
    assert lease(app, "local", 100, 30, "listener")[1] is None
