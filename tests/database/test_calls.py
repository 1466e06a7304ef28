"""sql/schema/confirm.sql: per-call approval, attacked as in test_database.py."""
import hashlib
import threading
import uuid

import psycopg
import pytest

from database.test_database import (APP, DENIED, Tool, blocked, epoch, guarded, one,
                                    refused)
from database.test_limits_modules import version_with
from harness.patience import patience

ARGS = hashlib.sha256(b'{"n":1}').digest()


class Calls:
    """One approved tool, and whoever calls it."""

    def __init__(self, c, principal=None):
        self.c, self.principal = c, principal or "p" + uuid.uuid4().hex
        self.tool = Tool(c).approve()
        self.epoch = epoch(c)
        self.name = one(c, "SELECT exposed_name FROM mcpbox.tool_versions WHERE id = %s",
                        self.tool.version)[0]

    def ask(self, approval=None, args=ARGS, seconds=600, listener="local", principal=None,
            own=8, every=256, c=None, pre=None):
        """what, request, expires, reason, seal"""
        i = uuid.uuid4()
        pre = pre or b"pre-image " + i.bytes
        self.hash = hashlib.sha256(pre).digest()
        return one(c or self.c, "SELECT * FROM mcpbox.call_ask(%s, %s, %s, %s, %s, %s, %s, '{}', "
                   "%s, now() + %s * interval '1 second', %s, %s)", i, approval, self.tool.version,
                   principal or self.principal, listener, self.name, args, pre, seconds, own,
                   every)

    def decide(self, request, approved=True, digest=None, c=None):
        (c or self.c).execute("SELECT mcpbox.decide_approval(%s, %s, %s, 'root', now(), 'why', "
                              "'seal')", (request, approved, digest or self.hash))

    def asked(self, **kw):
        r = self.ask(**kw)
        assert r[0] == "pending", r
        return r[1]

    def open(self, request, args=ARGS, c=None, i=None, principal=None, listener="local",
             version=None):
        return one(c or self.c, "SELECT mcpbox.call_open_confirmed(%s, %s, %s, %s, null, %s, %s, "
                   "%s, %s, '{}', 'c', 'p', now(), now() + interval '1 minute', %s)",
                   i or uuid.uuid4(), version or self.tool.version, self.tool.hash, self.epoch,
                   principal or self.principal, listener, self.name, args, request)[0]


def test_from_question_to_use(app):
    k = Calls(app)
    request = k.asked()
    assert k.ask(request)[:2] == ("pending", request)
    assert k.ask()[:2] == ("pending", request), "an equal call shares it"
    assert k.open(request) == "not_confirmed"
    k.decide(request, digest=one(app, "SELECT hash FROM mcpbox.approval_requests WHERE id = %s",
                                 request)[0])
    what, which, _, _, seal = k.ask()
    assert (what, which, bytes(seal)) == ("approved", request, b"seal")
    assert k.open(request) == "ok"
    assert k.open(request) == "not_confirmed"
    assert k.ask(request)[0] == "used"
    assert k.ask()[1] != request, "the next call is another"
    rows = [r[0] for r in app.execute("SELECT action FROM mcpbox.audit_log ORDER BY seq DESC "
                                      "LIMIT 4").fetchall()]
    assert rows[1:] == ["call_confirmed", "call_approved", "call_requested"]


def test_only_its_own_call(app):
    k = Calls(app)
    request = k.asked()
    k.decide(request)
    other = hashlib.sha256(b"{}").digest()
    for kw in ({"args": other}, {"principal": "another"}, {"listener": "tunnel"}):
        assert k.ask(request, **kw)[0] == "none", kw
        assert k.open(request, **kw) == "not_confirmed", kw
    assert k.open(uuid.uuid4()) == "not_confirmed"
    assert k.open(None) == "not_confirmed"
    assert k.open(request) == "ok"


def test_one_yes_runs_once_however_many_ask(schema):
    """Many connections at once, each with the same yes."""
    for _ in range(5):
        with schema.pg.connect(APP) as c:
            k = Calls(c)
            request = k.asked()
            k.decide(request)
            got, start = [], threading.Barrier(8)

            def use(k=k, request=request, got=got, start=start):
                with schema.pg.connect(APP) as own:
                    start.wait(patience(10))
                    got.append(k.open(request, c=own))

            threads = [threading.Thread(target=use) for _ in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(patience(30))
            assert sorted(got) == ["not_confirmed"] * 7 + ["ok"]
            assert one(c, "SELECT count(*) FROM mcpbox.executions WHERE version_id = %s",
                       k.tool.version)[0] == 1


def test_the_second_waits_for_the_first(schema):
    """Two connections, step by step: the row is locked until the first is
    committed, and one that is rolled back used nothing."""
    with schema.pg.connect(APP) as a, schema.pg.connect(APP) as b:
        k = Calls(a)
        request = k.asked()
        k.decide(request)
        for end, expected in (("ROLLBACK", "ok"), ("COMMIT", "not_confirmed")):
            if end == "COMMIT":
                k = Calls(a)
                request = k.asked()
                k.decide(request)
            got = []
            a.execute("BEGIN")
            assert k.open(request, c=a) == "ok"
            t = threading.Thread(target=lambda k=k, r=request: got.append(k.open(r, c=b)))
            t.start()
            blocked(a, b)
            assert t.is_alive() and not got, "did not wait"
            a.execute(end)
            t.join(patience(10))
            assert got == [expected]


def test_equal_calls_at_once_make_one_request(schema):
    with schema.pg.connect(APP) as c:
        k = Calls(c)
        got, start = [], threading.Barrier(6)

        def ask():
            with schema.pg.connect(APP) as own:
                start.wait(patience(10))
                got.append(k.ask(c=own)[1])

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(patience(30))
        assert len(set(got)) == 1


def test_bounds_hold_against_many_at_once(schema):
    with schema.pg.connect(APP) as c:
        k = Calls(c)
        got, start = [], threading.Barrier(8)

        def ask(n):
            with schema.pg.connect(APP) as own:
                start.wait(patience(10))
                got.append(k.ask(c=own, args=hashlib.sha256(bytes([n])).digest(), own=3)[0])

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(patience(30))
        assert sorted(got) == ["limit"] * 5 + ["pending"] * 3
        assert Calls(c).ask(every=1)[0] == "full"
        assert Calls(c).ask()[0] == "pending", "others are not in its way"


def test_rejected_stays_rejected(app):
    k = Calls(app)
    request = k.asked()
    k.decide(request, approved=False)
    assert k.ask(request)[0] == "rejected"
    what, which, _, reason, seal = k.ask()
    assert (what, which, reason, seal) == ("rejected", request, "why", None)
    assert k.open(request) == "not_confirmed"
    refused(app, "already_decided", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), "
            "'', 's')", request, k.hash)


def expire(schema, *requests):
    """As if their time were over. No role of the suite's may move it."""
    with schema.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        c.execute("UPDATE mcpbox.call_requests SET expires_at = now() - interval '1 second' WHERE id = ANY (%s)",
                  (list(requests),))


def test_expired(schema, app):
    k = Calls(app)
    late = k.asked()
    yes = Calls(app)
    used = yes.asked()
    yes.decide(used)
    mine = k.hash
    assert (k.ask(late)[0], yes.ask(used)[0]) == ("pending", "approved")
    expire(schema, late, used)
    refused(app, "already_decided", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), "
            "'', 's')", late, mine)
    assert yes.open(used) == "not_confirmed"
    assert yes.ask(used)[0] == "expired"
    assert one(app, "SELECT mcpbox.calls_sweep()")[0] >= 1
    assert one(app, "SELECT a.state, c.preimage FROM mcpbox.approval_requests a "
               "JOIN mcpbox.call_requests c USING (id) WHERE a.id = %s", late) == ("expired", None)
    assert one(app, "SELECT state FROM mcpbox.approval_requests WHERE id = %s", used)[0] == \
        "approved", "what was decided stays"
    assert k.ask(late)[0] == "expired"
    assert k.ask()[1] != late
    assert one(app, "SELECT mcpbox.calls_sweep()")[0] == 0


def test_what_no_longer_serves_is_superseded(app):
    k = Calls(app)
    waiting = k.asked()
    yes = k.asked(args=hashlib.sha256(b"2").digest())
    k.decide(yes)
    app.execute("SELECT mcpbox.revoke_version(%s, '', 'root')", (k.tool.version,))
    assert one(app, "SELECT state FROM mcpbox.approval_requests WHERE id = %s",
               waiting)[0] == "superseded"
    assert k.open(yes, args=hashlib.sha256(b"2").digest()) == "revoked"
    assert one(app, "SELECT used_at FROM mcpbox.call_requests WHERE id = %s", yes)[0] is None
    k = Calls(app)
    yes = k.asked()
    k.decide(yes)
    first = k.tool.version
    k.tool.update()
    k.tool.publish()
    k.tool.decide()
    assert k.tool.version != first
    assert k.ask(yes)[0] == "changed"
    assert k.open(yes) == "not_confirmed"
    assert k.open(yes, version=first) != "ok"


def test_decisions_are_told(schema, app):
    k = Calls(app)
    with schema.pg.connect(APP) as c:
        c.execute("LISTEN mcpbox_call")
        yes, no = k.asked(), k.asked(args=hashlib.sha256(b"no").digest())
        k.decide(yes, digest=one(app, "SELECT hash FROM mcpbox.approval_requests WHERE id = %s",
                                 yes)[0])
        k.decide(no, approved=False)
        told = c.notifies()
        heard = [next(told).payload for _ in range(2)]
    assert heard == [f"{yes} 1", f"{no} 0"]


def test_the_run_time_role_can_not_write_it(app, owner):
    k = Calls(app)
    request = k.asked()
    for query in ("UPDATE mcpbox.call_requests SET used_at = null WHERE id = %s",
                  "DELETE FROM mcpbox.call_requests WHERE id = %s",
                  "SELECT mcpbox.call_take(%s, null, null, null, null, null)",
                  "SELECT mcpbox.call_used(%s, gen_random_uuid())"):
        with pytest.raises(DENIED):
            app.execute(query, (request,))
    # Nor could a wrong function.
    for change in ("args_sha256 = sha256('')", "principal = 'x'", "preimage = 'x'",
                   "expires_at = now() + interval '1 day'", "tool = 'x'"):
        guarded(owner, f"UPDATE mcpbox.call_requests SET {change} WHERE id = %s", request)
    guarded(owner, "DELETE FROM mcpbox.call_requests WHERE id = %s", request)
    guarded(owner, "UPDATE mcpbox.approval_requests SET state = 'approved', decided_by = 'x', "
            "decided_at = now() WHERE id = %s", request)
    k.decide(request)
    assert k.open(request) == "ok"
    guarded(owner, "UPDATE mcpbox.call_requests SET used_at = null, execution = null "
            "WHERE id = %s", request)


@pytest.mark.parametrize("annotations,destructive", [
    (None, True), (b"{}", True), (b'{"destructiveHint":true}', True),
    (b'{"destructiveHint":false}', False), (b'{"readOnlyHint":true}', False),
    (b'{"readOnlyHint":false}', True), (b'{"readOnlyHint":true,"destructiveHint":true}', True),
    (b'{"destructiveHint":"no"}', True), (b'{"destructiveHint":null,"readOnlyHint":true}', False),
    (b"[]", True), (b"not json", True), (b"\xff", True)])
def test_what_is_destructive(app, annotations, destructive):
    assert one(app, "SELECT mcpbox.tool_destructive(%s)", annotations)[0] is destructive
    assert one(app, "SELECT mcpbox.call_confirms(0, 'tool', %s)", annotations)[0] is False
    assert one(app, "SELECT mcpbox.call_confirms(1, 'tool', %s)", annotations)[0] is True


def test_the_policy(app):
    def confirms(object_name="tool"):
        return one(app, "SELECT mcpbox.call_confirms(null, %s, null)", object_name)[0]

    def change(key, value):
        return ("SELECT mcpbox.admin_act('settings_set', 'root', 'root', %s, null, '', "
                "json_build_object('value', %s::text)::text)", key, value)

    assert confirms() is False
    one(app, *change("confirm_destructive", "on"))
    assert confirms() is True and confirms("prompt") is False
    one(app, *change("confirm_destructive", "off"))
    assert confirms() is False
    refused(app, "invalid_params", *change("confirm_destructive", "x"))
    refused(app, "not_found", *change("other", "on"))


def test_a_versions_own_word(app):
    t = Tool(app)
    pre = version_with(t.pre, (23, 1))
    version = uuid.uuid4()
    app.execute("SELECT mcpbox.add_version(%s, %s, '', 'local')", (version, pre))
    assert one(app, "SELECT confirm FROM mcpbox.tool_versions WHERE id = %s", version)[0] == 1


def test_a_confirmed_task(app):
    k = Calls(app)
    request = k.asked()
    query = ("SELECT mcpbox.task_open_confirmed(%s, %s, %s, %s, null, %s, 'local', %s, %s, '{}', "
             "'c', 'p', now(), now() + interval '1 minute', 0, 60000, 4, 4, %s)")

    def make(i):
        return one(app, query, i, k.tool.version, k.tool.hash, k.epoch, k.principal, k.name, ARGS,
                   request)[0]

    i = uuid.uuid4()
    assert make(i) == "not_confirmed"
    k.decide(request)
    assert make(i) == "ok"
    assert one(app, "SELECT execution FROM mcpbox.call_requests WHERE id = %s", request)[0] == i
    assert one(app, "SELECT state FROM mcpbox.tasks WHERE id = %s", i)[0] == "working"
    assert make(uuid.uuid4()) == "not_confirmed"


def test_other_kinds_are_as_before(app):
    t = Tool(app)
    t.publish()
    t.decide()
    assert t.state() == "approved"
    with pytest.raises(psycopg.Error):
        t.decide()
