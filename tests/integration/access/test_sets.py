"""Permission sets (decision 0100), through the tunnel and all real daemons: the scopes that a client is told to ask
for, API tokens of a set, what another document changes for them, and rates of a set. What is refused is first shown to
be there, by a token that may."""
import re

import pytest

from harness.clients import flow
from harness.clients.api_token import Token, where
from harness.clients.mcp import LEGACY, MODERN, Client, request, text
from harness.clients.rest import Rest
from harness.clients.signed_token import Issuer, Person, document, set_document
from harness.instance import Instance
from harness.patience import until
from integration.access.test_identities import CANARY, SLOW, Running, bearer, failure, listen, post, users

META = "https://mcp.example.org/.well-known/oauth-protected-resource/mcp"
BARE = 'Bearer realm="mcpbox"'
NARROW, POCKET = Issuer("narrow", scopes="token"), Issuer()
RULES = (("narrow", "any", None, "home"), ("pocket", "group", ["staff"], "staff"), ("pocket", "sub", ["ann"], "use"))
SETS = {"home": {"scopes": ["tools:call", "manage"], "allow": ["*"]},
        "staff": {"scopes": ["manage"], "allow": ["*"]},
        "use": {"scopes": ["tools:call"], "allow": ["crm__*"]},
        "spare": {"scopes": ["tools:read"], "allow": ["*"]}}
BOTH = pytest.mark.parametrize("version", [LEGACY, MODERN])


def asks(instance, sets, rules=RULES):
    return set_document(instance, document((NARROW, POCKET), rules, {**SETS, **sets}))


def holds(instance, **sets):
    got = asks(instance, sets)
    assert got["_"] == "ACCESS_STATE", got


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:breakers=no"])
    i.ctl("settings", "set", "rate_tunnel_per_minute", "0")
    with Client(i.address) as c:
        flow.publish(i, c, "crm", "canary", CANARY)
        flow.publish(i, c, "crm", "slow", SLOW)
        i.ctl("servers", "limits", "crm", "timeout_ms=600000")
    yield i
    i.close()


@pytest.fixture(autouse=True)
def held(instance):
    """Each test begins with the same document, and leaves no token of a set."""
    holds(instance)
    yield
    for (name,) in instance.psql("SELECT name FROM mcpbox.api_tokens WHERE revoked_at IS NULL"):
        instance.ctl("tokens", "revoke", name)
    instance.ctl("settings", "set", "remote_tool_editing", "disabled")


@pytest.fixture
def eve(instance):
    """Whose token's scopes narrow her set."""
    return Person(instance, NARROW, "eve")


@pytest.fixture
def ann(instance):
    return Person(instance, POCKET, "ann")


class Holder:
    """An API token as a person, for Running."""

    def __init__(self, token):
        self.made, self.principal = token, token.principal

    def token(self):
        return self.made.text

    def client(self, token):
        return Client(where(self.made.instance), token=token)


def words(challenge):
    """The scopes of a challenge that a client acts on; None: of any other."""
    if 'error="insufficient_scope"' not in challenge:
        return None
    assert f'resource_metadata="{META}"' in challenge
    scope = re.search(r' scope="([^"]*)"', challenge)
    return scope.group(1) if scope else None


def steps_up(person, version, scope, ask):
    """What a client does: it asks, and signs in again for the union of its scopes and those of the challenge, as long
    as the challenge has more. (the last reply, the scopes of each challenge)."""
    told = []
    while True:
        with person.client(person.token(**({"scope": scope} if scope else {})), version) as c:
            r = ask(c)
        more = words(r.headers.get("www-authenticate", "")) if r.status == 403 else None
        if more is None or set(more.split()) <= set(scope.split()):
            return r, told
        told.append(more)
        scope = " ".join(sorted({*scope.split(), *more.split()}))


# ---- step-up ----

@BOTH
@pytest.mark.parametrize("scope, ask, needs", [
    ("", lambda c: c.call("crm__canary", {"n": 1}), "tools:call"),
    ("tools:read", lambda c: c.call("crm__canary", {"n": 1}), "tools:read tools:call"),
    ("manage", lambda c: c.call("crm__canary", {"n": 1}), "tools:call manage"),
    ("tools:read", lambda c: c.call("mcpbox_list_servers"), "tools:read manage"),
    ("tools:call", lambda c: c.call("mcpbox_list_servers"), "tools:read tools:call manage"),
    ("manage", lambda c: c.call("mcpbox_search_tools", {"query": "canary"}), "tools:read manage"),
    ("", lambda c: c.request("tools/list"), "tools:read"),
    ("manage", lambda c: c.request("prompts/list"), "tools:read manage"),
    ("", lambda c: c.request("resources/templates/list"), "tools:read")],
    ids=["call", "call-read", "call-manage", "manage-read", "manage-call", "search", "list", "prompts", "templates"])
def test_step_up(instance, eve, version, scope, ask, needs):
    """One challenge has all scopes, so the client signs in again once."""
    r, told = steps_up(eve, version, scope, ask)
    assert told == [needs]
    assert r.status == 200 and r.result and not r.result.get("isError"), r


@BOTH
def test_what_needs_no_step(instance, eve, version):
    with eve.client(eve.token(scope="manage"), version) as c:
        assert "mcpbox_list_servers" in c.tools() and users(c.tools()) == []
    # A resource that is not there is told to whoever may call.
    r, told = steps_up(eve, version, "tools:read", lambda c: c.request("resources/read", {"uri": "crm://nothing"}))
    assert told == ["tools:read tools:call"] and r.status == 200 and r.error, r


@BOTH
def test_the_body_says_it_too(instance, eve, version):
    with eve.client(eve.token(scope="tools:read"), version) as c:
        r = c.call("crm__slow", {"seconds": 600})	# which would stream
    assert r.status == 403 and r.headers["content-type"] == "application/json" and not r.events
    assert r.error["data"]["failure_mode"] == "forbidden"
    assert r.error["message"] == "this token lacks the scope tools:call, which its permission set home has"
    assert "WWW-Authenticate" in r.error["data"]["fix"]


@BOTH
def test_no_way_to_more(instance, eve, ann, version):
    """No token of theirs is enough: no error that makes a client sign in again, and a text."""
    def edits(c):
        return c.call("mcpbox_create_server", {"name": "never", "description": "x"})
    for person, ask, message in (
            (eve, edits, "the permission set home lacks the scope manage:edit"),
            (ann, edits, "the permission set use lacks the scope manage:edit"),
            (ann, lambda c: c.call("mcpbox_list_servers"), "the permission set use lacks the scope manage")):
        r, told = steps_up(person, version, "tools:call manage", ask)
        assert told == [] and r.status == 403 and r.headers["www-authenticate"] == BARE, r
        assert r.error["message"] == message and "administrator" in r.error["data"]["fix"]
    stranger = Person(instance, POCKET, "nobody")
    for token in (stranger.token(), stranger.token(scope="manage")):
        r = post(instance, bearer(token))
        assert r.status == 403 and r.headers["www-authenticate"] == BARE, r
    ann.withdraw()
    try:
        until(lambda: post(instance, bearer(ann.token())).status == 403)
        assert post(instance, bearer(ann.token())).headers["www-authenticate"] == BARE
    finally:
        ann.restore()
    # An API token keeps the error of RFC 6750, without scopes: it has no issuer.
    with Token(instance, scopes="tools:read").client(version) as c:
        r = c.call("crm__canary")
        assert r.status == 403 and words(r.headers["www-authenticate"]) is None
        assert 'error="insufficient_scope"' in r.headers["www-authenticate"]


def test_editing_is_off_at_the_tunnel(instance, eve):
    """It is no use to ask for a scope that this listener takes away."""
    holds(instance, home={"scopes": ["tools:call", "manage:edit"], "allow": ["*"]})

    def edits(c):
        return c.call("mcpbox_create_server", {"name": "of_eve", "description": "x"})
    r, told = steps_up(eve, MODERN, "tools:call", edits)
    assert told == [] and r.status == 403 and r.headers["www-authenticate"] == BARE
    instance.ctl("settings", "set", "remote_tool_editing", "enabled")
    r, told = steps_up(eve, MODERN, "tools:call", edits)
    assert told == ["tools:read tools:call manage:edit"] and r.result, r


def test_metadata_names_the_scopes(instance):
    r = request(where(instance)(), "GET", "/.well-known/oauth-protected-resource/mcp")
    assert r.status == 200 and r.value["scopes_supported"] == ["tools:read", "tools:call", "manage"]


# ---- API tokens of a set ----

def test_a_token_of_a_set(instance):
    t = Token(instance, set="use")
    shown = instance.ctl_json("tokens", "show", t.name)
    assert shown["set"] == "use" and shown["scopes"] == shown["allow"] == shown["deny"] == []
    with t.client() as c:
        assert users(c.tools()) == ["crm__canary", "crm__slow"] and "mcpbox_list_servers" not in c.tools()
        assert text(c.call("crm__canary", {"n": 5})) == "canary 5"
        r = c.call("mcpbox_list_servers")
        assert r.status == 403 and r.error["message"] == "the permission set use lacks the scope manage"
        # Another document: at once, also for a client that is there, and lost nothing.
        holds(instance, use={"scopes": ["tools:call", "manage"], "allow": ["*"], "deny": ["crm__slow"]})
        assert users(c.tools()) == ["crm__canary"]
        assert text(c.call("crm__canary", {"n": 6})) == "canary 6" and c.manage("mcpbox_list_servers")["servers"]
        holds(instance, use={"scopes": ["tools:read"], "allow": ["*"]})
        r = c.call("crm__canary")
        assert r.status == 403 and r.error["message"] == "the permission set use lacks the scope tools:call"
    # After a restart as before.
    instance.tool("restart", "admind")
    instance.tool("wait")
    with t.client() as c:
        until(lambda: c.request("tools/list").status == 200)
        assert users(c.tools()) == ["crm__canary", "crm__slow"] and c.call("crm__canary").status == 403


def test_a_set_that_loses_a_right(instance, ann):
    """All that runs by its tokens and people ends, and nothing of others."""
    lost, kept = Token(instance, set="use"), Token(instance, set="home")
    own = Token(instance, scopes="tools:call")
    with listen(instance, lost.text) as gone, listen(instance, kept.text) as stays:
        ends = [Running(instance, Holder(lost)), Running(instance, ann)]
        others = [Running(instance, Holder(kept)), Running(instance, Holder(own))]
        holds(instance, use={"scopes": ["tools:call"], "allow": ["crm__canary"]},
              home={**SETS["home"], "calls_per_minute": 600, "scopes": ["tools:call", "manage", "manage:edit"]})
        gone.rest()
        assert gone.ended
        for call in ends:
            assert failure(call.ended()) == "killed"
        killed = "SELECT count(*) FROM mcpbox.executions WHERE outcome = 'killed' AND principal = '%s'"
        assert [instance.psql(killed % p)[0][0] for p in (lost.principal, ann.principal)] == ["1", "1"]
        stays.quiet(0.3)
        for call in others:
            assert call.rows("state = 'open'") and call.thread.is_alive()
        with lost.client() as c:
            assert users(c.tools()) == ["crm__canary"]
        for token, call in ((kept, others[0]), (own, others[1])):
            token.revoke()
            assert failure(call.ended()) == "killed"


def test_a_set_that_tokens_have_stays(instance):
    tokens = [Token(instance, set="spare") for _ in range(2)]
    names = ", ".join(sorted(t.name for t in tokens))
    rest = {n: s for n, s in SETS.items() if n != "spare"}
    got = set_document(instance, document((NARROW, POCKET), RULES, rest))
    assert got["_"] == "REFUSED"
    assert got["message"] == f"/permission_sets lacks the set spare, which API tokens have: {names}"
    for t in tokens:
        assert post(instance, bearer(t.text)).status == 200
    assert set_document(instance, {})["_"] == "REFUSED"
    for t in tokens:
        t.revoke()
    assert set_document(instance, document((NARROW, POCKET), RULES, rest))["_"] == "ACCESS_STATE"
    r = instance.ctl("tokens", "create", "late", "--set", "spare", check=False)
    assert r.returncode == 1 and "the access document has no permission set spare" in r.stderr, r


@pytest.mark.parametrize("more", [["scopes=tools:call"], ["allow=*"], ["deny=crm__slow"]])
def test_a_set_or_lists(instance, more):
    r = instance.ctl("tokens", "create", "both", "--set", "use", *more, check=False)
    assert r.returncode == 1 and "not both" in r.stderr, r


def test_rest_makes_one(instance):
    rest = Rest(lambda: instance.address("admind-http"))
    assert rest.login("admin", instance.password)[0] == 200
    status, _, made = rest.request("POST", "/api/tokens", {"name": "by-rest", "set": "use"})
    assert status == 201 and made["set"] == "use" and made["scopes"] == []
    with Client(where(instance), token=made["token"]) as c:
        assert text(c.call("crm__canary", {"n": 1})) == "canary 1"
    assert rest.request("POST", "/api/tokens", {"name": "own", "set": None})[2]["scopes"] == ["tools:call", "tools:read"]
    for body, status in (({"set": "nosuch"}, 404), ({"set": "use", "scopes": ["manage"]}, 400), ({"set": 7}, 400),
                         ({"set": ""}, 400), ({"set": "use", "allow": ["*"]}, 400)):
        assert rest.request("POST", "/api/tokens", {"name": "bad", **body})[0] == status, body


# ---- rates ----

def limited(r):
    assert r.status == 200 and r.error and r.error["data"]["failure_mode"] == "rate_limited", r
    return r.error


def test_rate_of_a_set(instance, ann):
    """Two calls a minute for each of the set, whatever tokens they come with."""
    holds(instance, use={**SETS["use"], "calls_per_minute": 2})
    one, other = Token(instance, set="use"), Token(instance, set="use")
    with ann.client() as a, ann.client() as b, one.client() as c, other.client() as d:
        for first, second in ((a, b), (c, c)):
            assert text(first.call("crm__canary", {"n": 1})) == "canary 1"
            assert text(second.call("crm__canary", {"n": 2})) == "canary 2"
            for client in (first, second):
                error = limited(client.call("crm__canary", {"n": 3}))
                assert error["message"] == "you call too often: the permission set use permits 2 calls a minute"
                assert error["data"]["permission_set"] == "use" and error["data"]["per_minute"] == 2
        assert text(d.call("crm__canary", {"n": 1})) == "canary 1"
        # Another document: at once, and nothing ends by it.
        with listen(instance, one.text) as s:
            holds(instance, use={**SETS["use"], "calls_per_minute": 6000000})
            for client in (a, c):
                for n in range(5):
                    assert text(client.call("crm__canary", {"n": n})) == f"canary {n}"
            s.quiet(0.3)
        # A limit of the principal itself goes before.
        holds(instance, use={**SETS["use"], "calls_per_minute": 1})
        instance.ctl("rates", "set", "principal", one.principal, "6000000")
        for n in range(5):
            assert text(c.call("crm__canary", {"n": n})) == f"canary {n}"
        instance.ctl("rates", "remove", "principal", one.principal)
        until(lambda: (c.call("crm__canary", {"n": 1}).error or {"data": {}})["data"].get("permission_set") == "use")
        # Without the member the usual limit holds.
        holds(instance)
        until(lambda: not c.call("crm__canary", {"n": 1}).error)


# ---- management tools ----

@BOTH
def test_managing_is_the_same_for_all(instance, version):
    """A person, a token of a set and a token with lists: the same tools, answers and refusals."""
    bob = Person(instance, POCKET, "bob", groups=["staff"])
    lists, of_set = Token(instance, scopes="manage"), Token(instance, set="staff")
    here = Token(instance, scopes="manage", listeners="local")
    for scope, editing in (("manage", "disabled"), ("manage", "enabled"), ("manage:edit", "disabled"),
                           ("manage:edit", "enabled")):
        if scope == "manage:edit":
            lists, here = (Token(instance, scopes=scope, listeners=at) for at in ("tunnel", "local"))
            holds(instance, staff={"scopes": [scope], "allow": ["*"]})
        instance.ctl("settings", "set", "remote_tool_editing", editing)
        with bob.client(version=version) as a, of_set.client(version) as b, lists.client(version) as c, \
                here.client(version, "local") as d:
            seen = [sorted(x.tools()) for x in (a, b, c, d)]
            assert seen[0] == seen[1] == seen[2] and "mcpbox_list_servers" in seen[0]
            # The listener takes nothing but manage:edit, and only while editing is off there.
            assert (seen[2] == seen[3]) == (scope == "manage" or editing == "enabled")
            assert ("mcpbox_create_server" in seen[0]) == (scope == "manage:edit" and editing == "enabled")
            servers = [x.manage("mcpbox_list_servers")["servers"] for x in (a, b, c)]
            assert servers[0] == servers[1] == servers[2] and servers[0]
            # A tool that is in no list is refused: by its name, and by the tool that calls by name.
            for name in ("mcpbox_create_server", "mcpbox_delete_server"):
                if name not in seen[0]:
                    assert {x.call(name, {"name": "no", "description": "x"}).status for x in (a, b, c)} == {403}
