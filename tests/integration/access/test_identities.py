"""People who come with signed tokens, through the tunnel's socket and all real daemons: whom the access document lets
in and with which rights, what ends with a withdrawal or another document, what a restart and an outage change, and
what one person can take from others. What is refused is first shown to be there, by a token that may."""
import threading

import pytest

from harness.clients import flow
from harness.clients.api_token import where
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request, text
from harness.clients.signed_token import Issuer, Person, document, set_document
from harness.clients.sse import Stream
from harness.clients.tasks import ASKS, DECLARED, WORK, Tasks
from harness.clients.tasks import publish as publish_task
from harness.instance import Instance
from harness.patience import patience, until

SLOTS = 8
CANARY = "def main(n: int = 0) -> str:\n    return f'canary {n}'\n"
SLOW = "import time\ndef main(seconds: float = 30) -> str:\n    time.sleep(seconds)\n    return 'slept'\n"
POCKET, DOOR = Issuer(), Issuer("door", header="cf-access-jwt-assertion")
RULES = (("pocket", "email", ["ann@example.org"], "family"), ("pocket", "group", ["staff"], "staff"),
         ("door", "any", None, "family"))
SETS = {"family": {"scopes": ["tools:call"], "allow": ["crm__*"], "deny": ["crm__secret"]},
        "staff": {"scopes": ["tools:read", "tools:call", "manage"], "allow": ["*"], "deny": []}}


def holds(instance, issuers=(POCKET, DOOR), rules=RULES, sets=None):
    got = set_document(instance, document(issuers, rules, {**SETS, **(sets or {})}))
    assert got["_"] == "ACCESS_STATE", got


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:breakers=no", f"sandboxd:slots={SLOTS}", "sandboxd:queue=512",
                       "sandboxd:queue_wait=60s", "gatewayd-tunnel:max_connections=128"])
    i.ctl("settings", "set", "rate_tunnel_per_minute", "0")
    with Client(i.address) as c:
        for name, code in (("canary", CANARY), ("secret", CANARY), ("slow", SLOW)):
            flow.publish(i, c, "crm", name, code)
        flow.publish(i, c, "finance", "canary", CANARY)
        publish_task(i, c, "crm", "work", WORK, "optional")
        publish_task(i, c, "crm", "asks", ASKS, "after_questions")
        i.ctl("servers", "limits", "crm", "timeout_ms=600000")
    yield i
    i.close()


@pytest.fixture(autouse=True)
def held(instance):
    """Each test begins with the same document and nobody withdrawn."""
    for row in instance.psql("SELECT principal FROM mcpbox.identities WHERE withdrawn_at IS NOT NULL"):
        instance.psql("SELECT mcpbox.act_identity_restore('root', NULL, NULL, json_build_object('principal',"
                      f" '{row[0]}'))")
    holds(instance)


@pytest.fixture
def ann(instance):
    return Person(instance, POCKET, "ann", email="ann@example.org", email_verified=True)


@pytest.fixture
def bob(instance):
    return Person(instance, POCKET, "bob", groups=["staff"])


def users(tools):
    return sorted(n for n in tools if not n.startswith("mcpbox_"))


def post(instance, headers, listener="tunnel"):
    return request(where(instance, listener)(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
                   headers={"MCP-Protocol-Version": LEGACY, **headers})


def bearer(token):
    return {"Authorization": "Bearer " + token}


def refused(r, status=401):
    assert r.status == status, r
    return r.headers["www-authenticate"]


def failure(r):
    """The failure mode of a tool's result."""
    assert r.result["isError"], r
    return r.result["_meta"]["mcpbox/failure"]["failure_mode"]


def listen(instance, token):
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True}, "_meta": meta(MODERN, DECLARED)}}
    s = Stream(where(instance)(), body=body, headers={
        "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen", **bearer(token)})
    assert s.status == 200, s.headers
    s.message("notifications/subscriptions/acknowledged")
    return s


class Running:
    """A call under way, until it is ended from outside."""

    def __init__(self, instance, person, token=None):
        self.instance, self.person = instance, person
        self.thread = threading.Thread(target=self._run, args=(token or person.token(),))
        self.thread.start()
        until(lambda: self.rows("state = 'open'"))

    def _run(self, token):
        with self.person.client(token) as c:
            self.reply = c.call("crm__slow", {"seconds": 600})

    def rows(self, where_):
        return self.instance.psql("SELECT id FROM mcpbox.executions WHERE principal ="
                                  f" '{self.person.principal}' AND {where_}")

    def ended(self):
        self.thread.join(patience(40))
        assert not self.thread.is_alive()
        until(lambda: not self.rows("state = 'open'"))
        return self.reply


# ---- who is let in ----

def test_rights_by_set(instance, ann, bob):
    with ann.client() as a, bob.client() as b:
        assert users(a.tools()) == ["crm__asks", "crm__canary", "crm__slow", "crm__work"]
        assert {"crm__secret", "finance__canary", "mcpbox_list_servers"} <= set(b.tools())
        assert text(a.call("crm__canary", {"n": 1})) == "canary 1"
        assert text(b.call("finance__canary", {"n": 2})) == "canary 2"
        for name in ("crm__secret", "finance__canary"):
            assert a.call(name).error["data"]["failure_mode"] == "unknown_tool"
        refused(a.call("mcpbox_list_servers"), 403)
    rows = instance.psql("SELECT DISTINCT principal, listener FROM mcpbox.executions WHERE principal LIKE 'oidc:%'")
    assert [ann.principal, "tunnel"] in rows and [bob.principal, "tunnel"] in rows
    until(lambda: instance.psql("SELECT email, permission_set, last_used_listener FROM mcpbox.identities WHERE"
                                f" principal = '{ann.principal}'") == [["ann@example.org", "family", "tunnel"]])


def test_by_the_other_header(instance):
    token = DOOR.sign("guest")
    assert post(instance, {"Cf-Access-Jwt-Assertion": token}).status == 200
    # In the header of another issuer it is nothing.
    refused(post(instance, bearer(token)))
    refused(post(instance, {"Cf-Access-Jwt-Assertion": POCKET.sign("ann", email="ann@example.org",
                                                                    email_verified=True)}))


@pytest.mark.parametrize("token, status", [
    (lambda: Issuer().sign("ann", email="ann@example.org", email_verified=True), 401),
    (lambda: POCKET.sign("ann", seconds=-3600, email="ann@example.org", email_verified=True), 401),
    (lambda: POCKET.sign("ann", email="ann@example.org"), 403),
    (lambda: POCKET.sign("eve", email="eve@example.org", email_verified=True), 403),
    (lambda: POCKET.sign("ann", email="ann@example.org", email_verified=True, aud="https://else.example.org"), 401),
    (lambda: "a.b.c", 401)], ids=["key", "expired", "unverified", "no rule", "audience", "no token"])
def test_nobody_else(instance, ann, token, status):
    assert post(instance, bearer(ann.token())).status == 200
    said = token()
    r = post(instance, bearer(said))
    challenge = refused(r, status)
    assert said not in challenge and said not in r.raw.decode()
    # Nor does anybody become `local`, where a client without a token is.
    assert post(instance, {}, "local").status == 200
    refused(post(instance, bearer(said), "local"))
    refused(post(instance, bearer(ann.token()), "local"))
    refused(post(instance, {"Cf-Access-Jwt-Assertion": said}, "local"))


def test_the_documents_own_listener(instance, ann):
    here = Issuer("here", listeners=["local"])
    holds(instance, (POCKET, DOOR, here), (*RULES, ("here", "any", None, "family")))
    token = here.sign("carol")
    assert post(instance, bearer(token), "local").status == 200
    refused(post(instance, bearer(token)))
    with Client(instance.address, token=token) as c:
        assert users(c.tools()) == ["crm__asks", "crm__canary", "crm__slow", "crm__work"]


# ---- ends ----

def test_withdrawal_ends_all(instance, ann, bob):
    first, second = ann.token(), ann.token()
    with listen(instance, first) as s, listen(instance, bob.token()) as other, \
            Tasks(where(instance), token=second) as t:
        task = t.ask("tools/call", {"name": "crm__work", "arguments": {"seconds": 600}}).result["taskId"]
        call = Running(instance, ann, second)
        ann.withdraw()
        s.rest()
        assert s.ended
        assert failure(call.ended()) == "killed"
        rows = instance.psql(f"SELECT outcome FROM mcpbox.executions WHERE id = '{task}'")
        assert rows == [["killed"]], rows
        other.quiet(0.3)
        for token in (first, second, ann.token()):
            refused(post(instance, bearer(token)), 403)
        assert post(instance, bearer(bob.token())).status == 200
        ann.restore()
        until(lambda: post(instance, bearer(first)).status == 200)


def test_one_who_never_came(instance, ann):
    eve = Person(instance, POCKET, "eve", groups=["staff"])
    eve.withdraw()
    until(lambda: post(instance, bearer(eve.token())).status == 403)
    assert post(instance, bearer(ann.token())).status == 200


def test_another_document_judges_again(instance, ann, bob):
    mine, his = ann.token(), bob.token()
    with listen(instance, mine) as s, listen(instance, his) as other:
        losing, keeping = Running(instance, ann), Running(instance, bob)
        holds(instance, sets={"family": {"scopes": ["tools:read"], "allow": ["crm__*"], "deny": []}})
        s.rest()
        assert s.ended
        assert failure(losing.ended()) == "killed"
        other.quiet(0.3)
        assert keeping.rows("state = 'open'") and keeping.thread.is_alive()
        # The next request has the new rights.
        with ann.client(mine) as c:
            assert "crm__secret" in c.tools()
            refused(c.call("crm__canary"), 403)
        bob.withdraw()
        keeping.ended()


def test_issuer_that_is_gone(instance, ann):
    token = ann.token()
    assert post(instance, bearer(token)).status == 200
    holds(instance, (DOOR,), RULES[2:])
    refused(post(instance, bearer(token)))
    assert set_document(instance, {})["_"] == "ACCESS_STATE"
    refused(post(instance, {"Cf-Access-Jwt-Assertion": DOOR.sign("guest")}))
    holds(instance)
    assert post(instance, bearer(token)).status == 200


def test_document_with_faults_changes_nothing(instance, ann):
    got = set_document(instance, document((POCKET,), (("pocket", "email", ["x"], "nosuch"),), SETS) | {"more": 1})
    assert got["_"] == "REFUSED"
    assert "/rules/0/set" in got["message"] and "/more" in got["message"], got
    assert post(instance, bearer(ann.token())).status == 200


def test_time_of_a_token(instance, ann):
    """Its streams end with it, and its task goes on: that belongs to the principal."""
    short = ann.token(seconds=int(patience(2)))
    with Tasks(where(instance), token=short) as t:
        s = listen(instance, short)
        task = t.ask("tools/call", {"name": "crm__work", "arguments": {"seconds": 600}}).result["taskId"]
    s.rest(timeout=patience(30))
    assert s.ended
    with Tasks(where(instance), token=ann.token()) as t:
        assert t.get(task)["status"] == "working"
        t.cancel(task)


def test_time_of_a_token_that_is_not_remembered(instance, ann):
    """admind remembers sixteen tokens of a person. The stream of a seventeenth ends with its token all the same."""
    short = ann.token(seconds=int(patience(4)))
    with listen(instance, short) as s:
        for _ in range(17):
            assert post(instance, bearer(ann.token())).status == 200
        s.rest(timeout=patience(30))
        assert s.ended


def test_task_that_nobody_knows_ends_with_its_token(instance, ann):
    """Its call asked something, so its client was told of no task, and can't come back with this token."""
    short = ann.token(seconds=int(patience(4)))
    with Tasks(where(instance), token=short) as t:
        r = t.ask("tools/call", {"name": "crm__asks", "arguments": {}})
        assert r.result["resultType"] == "input_required", r
    rows = lambda: instance.psql("SELECT state, outcome FROM mcpbox.executions WHERE tool = 'crm__asks'"
                                 f" AND principal = '{ann.principal}'")
    assert rows() == [["open", None]] or rows() == [["open", ""]], rows()
    until(lambda: [r[0] for r in rows()] == ["closed"], say=rows)
    assert rows() == [["closed", "killed"]]


# ---- restarts and outages ----

def test_document_that_changed_while_admind_was_away(instance, ann, bob):
    """What its node judged last is another document than the one that holds now."""
    older = instance.psql("SELECT serial FROM mcpbox.access_now")[0][0]
    holds(instance, sets={"family": {"scopes": ["tools:call"], "allow": ["crm__*"], "deny": []}},
          issuers=(POCKET, DOOR, Issuer("more")))
    guest = Person(instance, DOOR, "guest")
    guest_token, token = guest.token(), ann.token()
    note = lambda: instance.psql("SELECT serial = (SELECT serial FROM mcpbox.access_now) FROM mcpbox.access_judged")
    until(lambda: note() == [["t"]], say=note)
    losing = Running(instance, ann, token)

    def restarted():
        instance.tool("restart", "admind")
        instance.tool("wait")
        until(lambda: post(instance, bearer(bob.token())).status == 200)
    # Nothing changed meanwhile: the run goes on.
    restarted()
    assert losing.rows("state = 'open'") and losing.thread.is_alive()
    assert post(instance, {"Cf-Access-Jwt-Assertion": guest_token}).status == 200
    instance.psql(f"UPDATE mcpbox.access_judged SET serial = {older}")
    restarted()
    losing.ended()
    assert losing.rows("outcome = 'killed'")
    until(lambda: note() == [["t"]], say=note)
    assert post(instance, bearer(token)).status == 200


def test_restart_keeps(instance, ann, bob):
    bob.withdraw()
    token = ann.token()
    assert post(instance, bearer(token)).status == 200
    instance.tool("restart", "admind")
    instance.tool("wait")
    until(lambda: post(instance, bearer(token)).status == 200)
    refused(post(instance, bearer(bob.token())), 403)


def test_without_database_nobody_is_let_in(instance, ann, bob):
    here = Issuer("here", listeners=["local", "tunnel"])
    holds(instance, (POCKET, DOOR, here), (*RULES, ("here", "any", None, "family")))
    mine, his, hers = ann.token(), bob.token(), here.sign("carol")
    for token in (mine, his):
        assert post(instance, bearer(token)).status == 200
    assert post(instance, bearer(hers), "local").status == 200
    instance.psql("ALTER ROLE mcpbox_app NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                  " WHERE usename = 'mcpbox_app'")
    try:
        # A gateway remembers an identity for moments only; a call always asks.
        with Client(instance.address, token=hers) as c, ann.client(ann.token()) as d:
            for client in (c, d):
                r = client.call("crm__canary", {"n": 1})
                assert r.error and r.error["data"]["failure_mode"] == "storage_unavailable", r
    finally:
        instance.psql("ALTER ROLE mcpbox_app LOGIN")
    until(lambda: post(instance, bearer(mine)).status == 200)


# ---- what one can take from others ----

def test_flood_of_unknown_tokens(instance, ann):
    """Tokens that nobody knows: each is refused, or told to come again; who is known is served meanwhile."""
    known = ann.token()
    assert post(instance, bearer(known)).status == 200
    forger, replies, stop = Issuer(), [], threading.Event()

    def flood():
        while not stop.is_set():
            replies.append(post(instance, bearer(forger.sign("ann"))).status)
    threads = [threading.Thread(target=flood) for _ in range(8)]
    for t in threads:
        t.start()
    try:
        until(lambda: len(replies) > 50)
        with ann.client(known) as c:
            for n in range(5):
                assert text(c.call("crm__canary", {"n": n})) == f"canary {n}"
        assert post(instance, bearer(ann.token())).status == 200
    finally:
        stop.set()
        for t in threads:
            t.join(patience(40))
    assert set(replies) <= {401, 503} and 401 in replies, set(replies)


def test_shares_are_of_the_person(instance):
    """Forty calls of one person, whose tokens have different rights: half of the slots, as of one token."""
    narrow = Issuer("narrow", scopes="token")
    holds(instance, (POCKET, DOOR, narrow), (*RULES, ("narrow", "any", None, "staff")))
    one, other = Person(instance, narrow, "one"), Person(instance, POCKET, "bob", groups=["staff"])
    with one.client(one.token(scope="tools:call")) as c, one.client(one.token(scope="tools:call manage")) as d:
        assert "mcpbox_list_servers" not in c.tools() and "mcpbox_list_servers" in d.tools()
    replies, threads = [], []

    def call(scope):
        with one.client(one.token(scope=scope)) as client:
            replies.append(client.call("crm__slow", {"seconds": 600}))
    for i in range(40):
        threads.append(threading.Thread(target=call, args=("tools:call" if i % 2 else "tools:call manage",)))
        threads[-1].start()
    try:
        until(lambda: len(replies) == 8)
        until(lambda: len(instance.runners()) == SLOTS // 2, say=instance.runners)
        assert all(r.error["data"]["failure_mode"] == "busy" for r in replies), replies
        with other.client() as c:
            assert text(c.call("crm__canary", {"n": 3})) == "canary 3"
    finally:
        one.withdraw()
        for t in threads:
            t.join(patience(60))
    assert not any(t.is_alive() for t in threads)
