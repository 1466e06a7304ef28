"""API tokens behind the tunnel's socket and on the local listener: whom they let in, what they may see and call, and
that nothing of theirs outlives them. What is refused is first shown to be there, by a client that may."""
import json
import os
import threading

import pytest

from harness.clients import flow
from harness.clients.api_token import Token, where
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request, text
from harness.clients.rest import Rest
from harness.clients.sse import Stream
from harness.clients.tasks import DECLARED, WORK, Tasks
from harness.clients.tasks import publish as publish_task
from harness.patience import patience, until

CANARY = "import mcpbox\ndef main(n: int = 0) -> str:\n    return f'canary {n}'\n"
ASKS = "import mcpbox\ndef main() -> str:\n    return str(mcpbox.elicit('Name?', {'name': str}).content)\n"
SLOW = "import time\ndef main(seconds: float = 30) -> str:\n    time.sleep(seconds)\n    return 'slept'\n"
ALL = {"elicitation": {"form": {}}}


@pytest.fixture(scope="module")
def world(instance):
    """Servers crm and finance, one with bare names; tools, a prompt, a resource, a template, on each."""
    with Client(instance.address) as c:
        for server in ("crm", "finance"):
            flow.publish(instance, c, server, "canary", CANARY)
            sid = {s["name"]: s["id"] for s in c.manage("mcpbox_list_servers")["servers"]}[server]
            for kind, fields in (
                    ("prompt", {"name": "hello", "text": "Hello {who}", "arguments": [
                        {"name": "who", "values": ["alice", "bob"]}]}),
                    ("resource", {"name": "page", "uri": f"{server}://page", "text": f"page of {server}"}),
                    ("resource", {"name": "item", "uri_template": f"{server}://item/{{id}}",
                                  "python_code": "def main(id: str) -> str:\n    return 'item ' + id\n"})):
                made = c.manage(f"mcpbox_create_{kind}", server_id=sid, **fields)
                approve(instance, c, made["id"], fields["name"])
        flow.publish(instance, c, "crm", "asks", ASKS)
        flow.publish(instance, c, "crm", "slow", SLOW)
        publish_task(instance, c, "crm", "work", WORK, "required")
        instance.ctl("servers", "limits", "crm", "timeout_ms=600000")
        c.manage("mcpbox_create_server", name="plain", description="Bare names.")
        instance.ctl("servers", "expose", "plain", "bare")
        flow.publish(instance, c, "plain", "lonely", CANARY)
        ids = {t["exposed_name"]: t["id"] for s in c.manage("mcpbox_list_servers")["servers"]
               for t in c.manage("mcpbox_list_tools", server_id=s["id"])["tools"]}
        servers = {s["name"]: s["id"] for s in c.manage("mcpbox_list_servers")["servers"]}
    return {"tools": ids, "servers": servers}


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all of them: each is an Argon2 hash."""
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    return r


def approve(instance, c, object_id, name):
    c.manage("mcpbox_request_publish", tool_id=object_id)
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def users(tools):
    return sorted(n for n in tools if not n.startswith("mcpbox_"))


def refused(r, status=401):
    assert r.status == status, r
    assert r.headers["www-authenticate"].startswith('Bearer realm="mcpbox"'), r
    return r.headers["www-authenticate"]


def unknown(r, mode="unknown_tool"):
    assert r.status == 200 and r.error and r.error["data"]["failure_mode"] == mode, r


def post(instance, listener, token, method="tools/list", **params):
    h = {"MCP-Protocol-Version": LEGACY}
    if token is not None:
        h["Authorization"] = "Bearer " + token
    return request(where(instance, listener)(), body={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                   headers=h)


# ---- who is let in ----

def test_nobody_without_a_token(instance, world):
    assert "error=" not in refused(post(instance, "tunnel", None))
    for wrong in ("x", "mbt_", "mbt_" + "A" * 43, "mbt_" + "A" * 4000, ""):
        refused(post(instance, "tunnel", wrong))
    assert 'error="invalid_token"' in refused(post(instance, "tunnel", "mbt_" + "A" * 43))
    # Neither does it tell anything about addresses.
    assert request(where(instance)(), "GET", "/health").status == 404


def test_a_token_is_good_where_it_says(instance, world):
    tunnel, local = Token(instance), Token(instance, listeners="local")
    both = Token(instance, listeners="local,tunnel")
    for token, listener, status in ((tunnel, "tunnel", 200), (tunnel, "local", 401), (local, "tunnel", 401),
                                    (local, "local", 200), (both, "tunnel", 200), (both, "local", 200)):
        assert post(instance, listener, token.text).status == status, (token.name, listener)
    # On the local listener, where nobody needs a token, a bad one does not become `local`.
    assert post(instance, "local", None).status == 200
    refused(post(instance, "local", "mbt_" + "A" * 43))
    with local.client(listener="local") as c:
        unknown_management(c)
        rows = "SELECT principal, listener FROM mcpbox.executions WHERE principal = '%s'" % local.principal
        assert text(c.call("crm__canary", {"n": 5})) == "canary 5"
        assert instance.psql(rows) == [[local.principal, "local"]]


def unknown_management(c):
    r = c.call("mcpbox_create_server", {"name": "never"})
    assert 'error="insufficient_scope"' in refused(r, 403), r


def test_expired(instance, world):
    t = Token(instance, expires="1d")
    with t.client() as c:
        assert "crm__canary" in c.tools()
        # The clock of the row, which is what a real expiry is: the trigger forbids it to everybody else.
        instance.psql("ALTER TABLE mcpbox.api_tokens DISABLE TRIGGER guard; UPDATE mcpbox.api_tokens SET created_at ="
                      f" now() - interval '2 days', expires_at = now() - interval '1 s' WHERE id = '{t.id}';"
                      " ALTER TABLE mcpbox.api_tokens ENABLE TRIGGER guard;")
        instance.tool("restart", "admind")
        instance.tool("wait")
        refused(c.request("tools/list"))
    assert instance.ctl_json("tokens", "show", t.name)["state"] == "expired"
    assert t.name in {x["name"] for x in instance.ctl_json("tokens", "list", "--state", "expired")["items"]}


def test_expires_while_it_is_used(instance, world):
    t = Token(instance)

    def over():
        return instance.psql(f"SELECT expires_at <= clock_timestamp() FROM mcpbox.api_tokens WHERE id = '{t.id}'") == [["t"]]
    s = listen(instance, t)
    instance.psql("ALTER TABLE mcpbox.api_tokens DISABLE TRIGGER guard; UPDATE mcpbox.api_tokens SET expires_at ="
                  f" now() + interval '15 s' WHERE id = '{t.id}'; ALTER TABLE mcpbox.api_tokens ENABLE TRIGGER guard;")
    instance.tool("restart", "admind")	# which reads it anew, and ends it by its own clock
    instance.tool("wait")
    with t.client() as c:
        r = c.request("tools/list")
        # A machine that was so slow that its time is over by now has shown nothing here.
        if not over():
            assert "crm__canary" in {x["name"] for x in r.result["tools"]}
    s.rest(timeout=patience(22))
    assert s.ended and over()
    refused(post(instance, "tunnel", t.text))


# ---- what is made, shown, kept ----

def test_the_first_digits_of_an_id_end_one_token(instance):
    """A name that reads as digits goes before, and two that begin so are not guessed between."""
    one, beef = Token(instance), Token(instance, name="beef2")
    assert instance.ctl_json("tokens", "show", "beef2")["id"] == beef.id
    r = instance.ctl("tokens", "revoke", os.path.commonprefix([one.id, beef.id]), check=False)
    assert r.returncode == 1 and "ambiguous" in r.stderr and "`mcpboxctl tokens`" in r.stderr, r
    listed = {line.split()[0] for line in instance.ctl("tokens").stdout.splitlines()}
    assert {one.id, beef.id} <= listed      # there they are
    assert {instance.ctl_json("tokens", "show", t.name)["state"] for t in (one, beef)} == {"active"}
    assert instance.ctl_json("tokens", "revoke", one.id[:-1], "tried")["reason"] == "tried"
    assert [instance.ctl_json("tokens", "show", t.name)["state"] for t in (one, beef)] == ["revoked", "active"]


def test_what_is_kept_of_a_token(instance, rest):
    t = Token(instance, scopes="tools:read", allow="crm__*", deny="crm__slow")
    shown = instance.ctl_json("tokens", "show", t.name)
    assert shown["scopes"] == ["tools:read"] and shown["allow"] == ["crm__*"] and shown["deny"] == ["crm__slow"]
    assert shown["principal"] == t.principal and shown["state"] == "active"
    assert instance.ctl_json("tokens", "show", t.id[:-1]) == shown == instance.ctl_json("query", "token", t.id[:-1])
    words = instance.ctl("tokens", "show", t.name).stdout.splitlines()
    assert words == instance.ctl("query", "token", t.id).stdout.splitlines()
    assert {f"id: {t.id}", "scopes: tools:read,", "allow: crm__*,", "deny: crm__slow,", "revoked_at: -"} <= set(words), words
    dump = "\n".join("\t".join(r) for r in instance.psql(
        "SELECT t::text FROM mcpbox.api_tokens t UNION ALL SELECT a::text FROM mcpbox.audit_log a"))
    assert t.name in dump and t.text not in dump and t.text[4:] not in dump
    for path in (f"/api/tokens/{t.id}", "/api/tokens", "/api/audit"):
        status, _, value = rest.get(path)
        assert status == 200 and t.text not in json.dumps(value)
    with t.client() as c:
        c.request("tools/list")
    until(lambda: instance.ctl_json("tokens", "show", t.name)["last_used_at"])
    assert instance.ctl_json("tokens", "show", t.name)["last_used_listener"] == "tunnel"


def test_rest_makes_and_revokes(instance, rest, world):
    status, headers, made = rest.request("POST", "/api/tokens", {
        "name": "by-rest", "scopes": ["tools:call"], "listeners": ["tunnel"], "allow": ["crm__canary"],
        "expires_in_days": None})
    assert status == 201 and headers["cache-control"] == "no-store" and made["expires_at"] is None
    with Client(where(instance), token=made["token"]) as c:
        assert users(c.tools()) == ["crm__canary"]
        status, _, shown = rest.request("POST", f"/api/tokens/{made['id']}/revoke", {"reason": "tried"})
        assert status == 200 and shown["state"] == "revoked" and shown["reason"] == "tried"
        refused(c.request("tools/list"))
    # Again is harmless, and says the same.
    again = rest.request("POST", f"/api/tokens/{made['id']}/revoke", {})[2]
    assert again["reason"] == "tried" and again["revoked_at"] == shown["revoked_at"]
    assert rest.request("POST", "/api/tokens", {"name": "By-Rest"})[0] == 409
    assert "by-rest" in {x["name"] for x in rest.get("/api/tokens?state=revoked")[2]["items"]}
    assert "by-rest" not in {x["name"] for x in rest.get("/api/tokens?state=active")[2]["items"]}
    actions = [r[0] for r in instance.psql(
        "SELECT action FROM mcpbox.audit_log WHERE subject = 'token by-rest' ORDER BY seq")]
    assert actions == ["token_created", "token_revoked"]


@pytest.mark.parametrize("body", [
    {}, {"name": ""}, {"name": "a b"}, {"name": "-a"}, {"name": "x" * 65}, {"name": "a\nb"}, {"name": 7},
    {"name": "ok1", "scopes": []}, {"name": "ok1", "scopes": ["root"]}, {"name": "ok1", "scopes": ["tools:read\nmanage"]},
    {"name": "ok1", "listeners": ["admind"]}, {"name": "ok1", "listeners": []},
    {"name": "ok1", "allow": ["a__b__c"]}, {"name": "ok1", "allow": ["A"]}, {"name": "ok1", "allow": ["a*"]},
    {"name": "ok1", "allow": ["**"]}, {"name": "ok1", "deny": ["x" * 65]}, {"name": "ok1", "allow": ["a"] * 1 + [1]},
    {"name": "ok1", "allow": [f"s{i}" for i in range(257)]}, {"name": "ok1", "expires_in_days": 0},
    {"name": "ok1", "expires_in_days": 3651}, {"name": "ok1", "expires_in_days": 1.5}, {"name": "ok1", "more": 1}])
def test_nothing_else_makes_one(rest, body):
    status, _, value = rest.request("POST", "/api/tokens", body)
    assert status == 400 and value["failure_mode"] in ("invalid_params", "invalid_request"), (status, value)


def test_roles_and_csrf(instance, rest):
    status = rest.request("POST", "/api/tokens", {"name": "nocsrf"}, {"X-CSRF-Token": "x"})[0]
    assert status == 401 and instance.ctl("tokens", "show", "nocsrf", check=False).returncode == 1


def test_the_row_is_closed(instance):
    t = Token(instance)
    for change in ("scopes = '{manage:edit}'", "allow = '{*,x}'", "listeners = '{local}'", "name = 'other'",
                   "expires_at = NULL", r"digest = '\x" + "00" * 32 + "'"):
        with pytest.raises(RuntimeError, match="not changed"):
            instance.psql(f"UPDATE mcpbox.api_tokens SET {change} WHERE id = '{t.id}'")
    for sentence in (f"DELETE FROM mcpbox.api_tokens WHERE id = '{t.id}'", "TRUNCATE mcpbox.api_tokens"):
        with pytest.raises(RuntimeError):
            instance.psql(sentence)
    for sentence in ("INSERT INTO mcpbox.api_tokens (name) VALUES ('x')", "UPDATE mcpbox.api_tokens SET reason = 'x'",
                     "DELETE FROM mcpbox.api_tokens"):
        with pytest.raises(RuntimeError, match="permission denied"):
            instance.psql(sentence, role="mcpbox_app")
    t.revoke()
    with pytest.raises(RuntimeError, match="not changed"):
        instance.psql(f"UPDATE mcpbox.api_tokens SET revoked_at = NULL, revoked_by = NULL WHERE id = '{t.id}'")


# ---- what it may see and use ----

def test_scopes(instance, world):
    reads, calls = Token(instance, scopes="tools:read"), Token(instance, scopes="tools:call")
    manages, edits = Token(instance, scopes="manage"), Token(instance, scopes="manage:edit")
    with reads.client() as c:
        tools = c.tools()
        assert "crm__canary" in tools and "mcpbox_search_tools" in tools and "mcpbox_call_tool" not in tools
        for r in (c.call("crm__canary"), c.request("prompts/get", {"name": "crm__hello"}),
                  c.request("resources/read", {"uri": "crm://page"}),
                  c.request("resources/read", {"uri": "crm://item/1"}),
                  c.call("mcpbox_call_tool", {"name": "crm__canary", "arguments": {}})):
            assert 'error="insufficient_scope"' in refused(r, 403)
        assert c.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "crm__hello"}, "argument": {
            "name": "who", "value": "a"}}).result["completion"]["values"] == ["alice"]
    with calls.client() as c:
        assert text(c.call("crm__canary")) == "canary 0"
        assert text(c.call("mcpbox_call_tool", {"name": "crm__canary", "arguments": {"n": 3}})) == "canary 3"
        unknown_management(c)
        refused(c.call("mcpbox_list_servers"), 403)
    with manages.client() as c:
        tools = c.tools()
        assert users(tools) == [] and "mcpbox_list_servers" in tools
        assert not {"mcpbox_create_tool", "mcpbox_delete_tool", "mcpbox_create_server"} & set(tools)
        refused(c.call("crm__canary"), 403)
        assert {"crm", "finance"} <= {s["name"] for s in c.manage("mcpbox_list_servers")["servers"]}
        unknown_management(c)
    # Behind the tunnel editing needs the setting as well.
    with edits.client() as c:
        assert "mcpbox_create_server" not in c.tools()
        assert "remote_tool_editing" in c.call("mcpbox_create_server", {"name": "no"}).error["message"]


def test_remote_tool_editing(instance, world):
    t = Token(instance, scopes="manage:edit")
    with t.client() as c, listen(instance, t) as s:
        assert "mcpbox_create_server" not in c.tools()
        instance.ctl("settings", "set", "remote_tool_editing", "enabled")
        s.message("notifications/tools/list_changed")
        assert "mcpbox_create_server" in c.tools()
        assert c.manage("mcpbox_create_server", name="remote", description="x")["status"] == "running"
        instance.ctl("settings", "set", "remote_tool_editing", "disabled")
        s.message("notifications/tools/list_changed")
        assert "mcpbox_create_server" not in c.tools()
        refused(c.call("mcpbox_create_server", {"name": "remote_two"}), 403)
    assert instance.psql("SELECT created_by FROM mcpbox.servers WHERE name = 'remote'") in ([[t.principal]], [])


def test_patterns_filter_every_list_and_every_road(instance, world):
    t = Token(instance, scopes="tools:call,manage", allow="crm__*,plain__*", deny="crm__slow")
    with t.client() as c, Client(instance.address) as everybody:
        assert users(everybody.tools()) == ["crm__asks", "crm__canary", "crm__slow", "crm__work", "finance__canary",
                                            "lonely"]
        assert users(c.tools()) == ["crm__asks", "crm__canary", "crm__work", "lonely"]
        for method, key in (("prompts/list", "prompts"), ("resources/list", "resources"),
                            ("resources/templates/list", "resourceTemplates")):
            assert {o["name"].split("__")[0] for o in everybody.request(method).result[key]} == {"crm", "finance"}
            assert {o["name"].split("__")[0] for o in c.request(method).result[key]} == {"crm"}
        assert text(everybody.call("finance__canary")) == "canary 0"
        for name in ("finance__canary", "crm__slow", "finance__nothing"):
            unknown(c.call(name))
            unknown(c.call("mcpbox_call_tool", {"name": name, "arguments": {}}))
        assert text(c.call("lonely")) == "canary 0"
        assert everybody.request("prompts/get", {"name": "finance__hello"}).result
        unknown(c.request("prompts/get", {"name": "finance__hello"}), "unknown_prompt")
        assert c.request("prompts/get", {"name": "crm__hello"}).result
        for uri in ("finance://page", "finance://item/1"):
            assert everybody.request("resources/read", {"uri": uri}).result
            unknown(c.request("resources/read", {"uri": uri}), "unknown_resource")
        assert c.request("resources/read", {"uri": "crm://item/1"}).result["contents"][0]["text"] == "item 1"
        ref = {"ref": {"type": "ref/prompt", "name": "finance__hello"}, "argument": {"name": "who", "value": ""}}
        assert everybody.request("completion/complete", ref).result["completion"]["values"]
        unknown(c.request("completion/complete", ref), "unknown_prompt")
        ref["ref"] = {"type": "ref/resource", "uri": "finance://item/{id}"}
        assert everybody.request("completion/complete", ref).result
        assert c.request("completion/complete", ref).error
        found = {x["name"] for x in everybody.manage("mcpbox_search_tools", query="canary")["tools"]}
        assert {"finance__canary", "crm__canary"} <= found
        assert {x["name"] for x in c.manage("mcpbox_search_tools", query="canary tests")["tools"]} == {
            "crm__asks", "crm__canary", "crm__work", "lonely"}
        # Management by id, and what it lists.
        assert {s["name"] for s in c.manage("mcpbox_list_servers")["servers"]} == {"crm", "plain"}
        listed = c.manage("mcpbox_list_tools", server_id=world["servers"]["crm"])
        assert {x["name"] for x in listed["tools"]} == {"asks", "canary", "work"} and listed["total"] == 3
        assert everybody.manage("mcpbox_get_tool_status", tool_id=world["tools"]["finance__canary"])
        for tool, args in (("mcpbox_list_tools", {"server_id": world["servers"]["finance"]}),
                           ("mcpbox_get_tool_status", {"tool_id": world["tools"]["finance__canary"]}),
                           ("mcpbox_request_publish", {"tool_id": world["tools"]["crm__slow"]})):
            r = c.call(tool, args)
            assert r.result["_meta"]["mcpbox/failure"]["failure_mode"] == "not_found", r
        assert c.manage("mcpbox_get_tool_status", tool_id=world["tools"]["lonely"])
        # What could show or change the rest is not offered.
        assert "mcpbox_list_pending_requests" not in c.tools() and "mcpbox_stop_server" not in c.tools()
        refused(c.call("mcpbox_list_pending_requests"), 403)


def test_a_bare_name_is_denied_by_its_server(instance, world):
    t = Token(instance, scopes="tools:call", deny="plain__*")
    with t.client() as c:
        assert "lonely" not in c.tools() and "crm__canary" in c.tools()
        unknown(c.call("lonely"))
    t = Token(instance, scopes="tools:call", allow="lonely")
    with t.client() as c:
        assert users(c.tools()) == ["lonely"] and text(c.call("lonely")) == "canary 0"


def test_nothing_is_allowed_by_an_empty_list(instance, rest, world):
    made = rest.request("POST", "/api/tokens", {"name": "empty", "allow": []})[2]
    with Client(where(instance), token=made["token"]) as c:
        assert users(c.tools()) == []
        unknown(c.call("crm__canary"))


def test_two_tokens_have_two_catalogues(instance, world):
    """Cached lists and identities of one are never the other's, in any order."""
    a, b = Token(instance, allow="crm__canary"), Token(instance, allow="finance__canary")
    with a.client() as x, b.client() as y:
        for _ in range(3):
            assert users(x.tools()) == ["crm__canary"] and users(y.tools()) == ["finance__canary"]
            unknown(x.call("finance__canary"))
            assert text(y.call("finance__canary")) == "canary 0"


# ---- one principal's things are not another's ----

def test_sessions_are_their_principals(instance, world):
    a, b = Token(instance), Token(instance)
    with a.client(version=LEGACY) as x, b.client(version=LEGACY) as y:
        assert x.session and x.tools()
        x.session, mine = y.session, x.session
        r = x.request("tools/list")
        assert r.status == 404 and r.error["data"]["failure_mode"] == "session_unknown"
        x.session = mine
        assert x.tools()
        # Nor on the other listener, nor for a local client.
        with Client(instance.address, version=LEGACY) as z:
            z.session = mine
            assert z.request("tools/list").status == 404


def test_tasks_are_their_principals(instance, world):
    a, b = Token(instance), Token(instance)
    with a.client(cls=Tasks) as x, b.client(cls=Tasks) as y, Tasks(instance.address) as z:
        task = x.start("crm__work", seconds=0.2)
        assert x.get(task)["taskId"] == task
        for other in (y, z):
            for method in ("tasks/get", "tasks/cancel", "tasks/update"):
                r = other.ask(method, {"taskId": task, **({"inputResponses": {}} if "update" in method else {})})
                unknown(r, "unknown_task")
        assert x.until(task)["status"] == "completed"
    reads = Token(instance, scopes="tools:read")
    with reads.client(cls=Tasks) as c:
        refused(c.ask("tasks/get", {"taskId": task}), 403)


def asked(c, name):
    r = c.request("tools/call", {"name": name, "arguments": {}, "_meta": meta(MODERN, ALL)})
    assert r.result and r.result["resultType"] == "input_required", r
    return r.result["requestState"]


def go_on(c, name, state):
    return c.request("tools/call", {"name": name, "arguments": {}, "requestState": state, "inputResponses": {
        "q1": {"action": "accept", "content": {"name": "Ann"}}}, "_meta": meta(MODERN, ALL)})


def test_request_state_is_its_principals(instance, world):
    a, b = Token(instance), Token(instance)
    with a.client() as x, b.client() as y:
        state = asked(x, "crm__asks")
        unknown(go_on(y, "crm__asks", state), "bad_state")
        assert text(go_on(x, "crm__asks", state)) == "{'name': 'Ann'}"


# ---- the end of one ----

def listen(instance, token, **wanted):
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": wanted or {"toolsListChanged": True}, "_meta": meta(MODERN, DECLARED)}}
    s = Stream(where(instance)(), body=body, headers={
        "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen", **token.bearer()})
    assert s.status == 200, s.headers
    s.message("notifications/subscriptions/acknowledged")
    return s


def closed(instance, principal):
    """(outcome, failure) of all executions of a principal, once none is open."""
    def rows():
        return instance.psql("SELECT state, outcome, coalesce(failure, '') FROM mcpbox.executions"
                             f" WHERE principal = '{principal}' AND kind = 'tool' ORDER BY created_at")
    ended = until(lambda: (x := rows()) and all(r[0] == "closed" for r in x) and x, say=rows)
    return [tuple(r[1:]) for r in ended]


def test_revoked_while_a_stream_is_open(instance, world):
    t, other = Token(instance), Token(instance)
    with listen(instance, t) as s, listen(instance, other) as o, t.client(version=LEGACY) as c:
        own = Stream(where(instance)(), "GET", headers={
            "MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": c.session, **t.bearer()})
        assert own.status == 200
        t.revoke()
        # Both end by themselves: nothing had to happen that would be told.
        s.rest()
        own.rest()
        assert s.ended and own.ended
        o.quiet(0.3)
        refused(c.request("tools/list"))


def test_revoked_while_a_call_runs(instance, world):
    t = Token(instance)
    got = {}

    def run():
        with t.client() as c:
            got["r"] = c.call("crm__slow", {"seconds": 600})
    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: instance.psql(f"SELECT 1 FROM mcpbox.executions WHERE principal = '{t.principal}' AND state = 'open'"))
    t.revoke()
    thread.join(patience(10))
    assert not thread.is_alive()
    assert "slept" not in json.dumps(got["r"].value), got
    assert closed(instance, t.principal) == [("killed", "killed")]


def test_revoked_while_a_call_is_parked(instance, world):
    t = Token(instance)
    with t.client() as c:
        state = asked(c, "crm__asks")
        t.revoke()
        assert closed(instance, t.principal) == [("killed", "killed")]
        refused(go_on(c, "crm__asks", state))
    # And its state is nobody else's way in.
    with Token(instance).client() as c:
        unknown(go_on(c, "crm__asks", state), "bad_state")


def test_revoked_while_a_task_works(instance, world):
    t = Token(instance)
    with t.client(cls=Tasks) as c:
        task = c.start("crm__work", seconds=600)
        with listen(instance, t, taskIds=[task]) as s:
            t.revoke()
            s.rest()
        refused(c.ask("tasks/get", {"taskId": task}))
        assert closed(instance, t.principal) == [("killed", "killed")]


def test_a_revocation_has_happened_when_it_is_said(instance, world):
    """Whatever a gateway had cached, the next request after the answer is refused: tried in many turns."""
    for _ in range(15):
        t = Token(instance)
        with t.client() as c, t.client(version=LEGACY) as old:
            assert "crm__canary" in c.tools() and "crm__canary" in old.tools()	# cached: identity and catalogue
            t.revoke()
            refused(c.request("tools/list"))
            refused(old.request("tools/list"))
            refused(c.call("crm__canary"))
            refused(request(where(instance)(), "GET", headers={
                "MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": old.session, **t.bearer()}))


def test_the_database_away(instance, world):
    """No token is good while a revocation could not be heard; they are good again afterwards."""
    t, gone = Token(instance), Token(instance)
    with t.client() as c, gone.client() as d:
        assert c.tools() and d.tools()
        gone.revoke()
        instance.tool("restart", "postgresql")

        def again():
            r = c.request("tools/list")
            assert r.result or r.status in (200, 503) and r.error["data"]["failure_mode"] in (
                "storage_unavailable", "busy", "upgrading"), r
            return r.status == 200 and r.result
        until(again)
        refused(d.request("tools/list"))
