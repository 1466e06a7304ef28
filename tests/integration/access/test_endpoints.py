"""Endpoints (decision 0102) through both listeners and all real daemons: what each method has of the catalogue there,
names, sessions, tokens, metadata and challenges, and what another document ends. What an endpoint lacks is first shown
to be there, at /mcp."""
import json

import pytest

from harness.clients import flow
from harness.clients.api_token import Token, where
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request, text
from harness.clients.signed_token import RESOURCE, Bound, Issuer, Person, Worker, document, set_document
from harness.clients.sse import Stream
from harness.clients.tasks import DECLARED, WORK, Tasks
from harness.clients.tasks import publish as publish_task
from harness.instance import Instance
from harness.patience import until
from integration.access.test_identities import CANARY, SLOW, Running, bearer, users

POCKET, WORKER = Issuer(scopes="token"), Worker()
RULES = (("pocket", "any", None, "all"), ("worker", "any", None, "all"))
SETS = {"all": {"scopes": ["tools:call", "manage"], "allow": ["*"]},
        "look": {"scopes": ["tools:read"], "allow": ["*"], "deny": ["crm__work"]}}
HOME = {"name": "home", "allow": ["crm__*", "lost__*"], "deny": ["crm__secret"], "instructions": "At \"home\".",
        "rename": [{"tool": "crm__canary", "as": "canary", "description": "Sings."},
                   {"tool": "lost__tool", "as": "crm__other"}]}
FIND = {"name": "find", "allow": ["crm__*"], "deny": ["crm__secret"], "mode": "search", "rename": HOME["rename"]}
LOOK = {"name": "look", "allow": ["*"], "set": "look"}
HERE = {"name": "here", "allow": ["*"], "listeners": ["local"]}
KEEP = {"name": "keep", "allow": ["crm__slow", "mcpbox_list_endpoints"]}
ALL = (HOME, FIND, LOOK, HERE, KEEP)
UNKNOWN = "unknown_tool"
WELL_KNOWN = "/.well-known/oauth-protected-resource/mcp"
BOTH = pytest.mark.parametrize("version", [LEGACY, MODERN])


def holds(instance, endpoints=ALL, sets=SETS):
    got = set_document(instance, {**document((POCKET, WORKER), RULES, sets), "endpoints": list(endpoints)})
    assert got["_"] == "ACCESS_STATE", got


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:breakers=no"])
    i.ctl("settings", "set", "rate_tunnel_per_minute", "0")
    with Client(i.address) as c:
        for name, code in (("canary", CANARY), ("secret", CANARY), ("slow", SLOW), ("other", CANARY)):
            flow.publish(i, c, "crm", name, code)
        flow.publish(i, c, "finance", "canary", CANARY)
        publish_task(i, c, "crm", "work", WORK, "optional")
        publish_task(i, c, "finance", "work", WORK, "optional")
        for server in c.manage("mcpbox_list_servers")["servers"]:
            for tool, fields in (("mcpbox_create_prompt", {"name": "ask", "text": "Ask."}),
                                 ("mcpbox_create_resource", {"name": "note", "text": "n",
                                                             "uri": f"notes://{server['name']}"})):
                made = c.manage(tool, server_id=server["id"], **fields)
                c.manage("mcpbox_request_publish", tool_id=made["id"])
                for item in i.ctl_json("approvals", "list")["items"]:
                    if item.get("state", "pending") == "pending":
                        shown = i.ctl_json("approvals", "show", item["id"])
                        i.ctl("approvals", "approve", item["id"], "--hash", shown["hash"])
        i.ctl("servers", "limits", "crm", "timeout_ms=600000")
    yield i
    i.close()


@pytest.fixture(autouse=True)
def held(instance):
    holds(instance)


@pytest.fixture
def ann(instance):
    return Person(instance, POCKET, "ann", scope="tools:call manage")


def at(instance, name, version=MODERN, listener="local", cls=Client, **more):
    return cls(where(instance, listener), version=version, path=f"/mcp/{name}" if name else "/mcp", **more)


def refused(reply, failure=UNKNOWN):
    assert reply.error and reply.error["data"]["failure_mode"] == failure, reply


def names(client, method, member, key="name"):
    r = client.request(method)
    assert r.result is not None, r
    return [x[key] for x in r.result[member]]


def tail(path):
    return path.rsplit("__", 1)[-1]


# ---- a part of the catalogue ----

@BOTH
def test_lists_and_calls(instance, version):
    with at(instance, "", version) as whole, at(instance, "home", version) as home:
        assert {"crm__canary", "crm__secret", "crm__other", "finance__canary", "mcpbox_guide"} <= set(whole.tools())
        tools = home.tools()
        # The document gave the name crm__other to a tool that is not there.
        assert sorted(tools) == ["canary", "crm__slow", "crm__work"]
        assert tools["canary"]["description"] == "Sings."
        assert tools["canary"]["inputSchema"] == whole.tools()["crm__canary"]["inputSchema"]
        assert text(home.call("canary", {"n": 3})) == "canary 3"
        for name in ("crm__canary", "crm__secret", "crm__other", "finance__canary", "lost__tool", "nothing",
                     "mcpbox_search_tools", "mcpbox_guide"):
            r = home.call(name, {"query": "x"} if "search" in name else {})
            assert r.error and not r.result, (name, r)
        for name in ("crm__canary", "crm__secret", "crm__other", "finance__canary"):
            refused(home.call(name))
            assert text(whole.call(name)) == "canary 0"
        # A call that another name carries is a call of that tool, and there is no such tool at home.
        assert text(whole.call("mcpbox_call_tool", {"name": "crm__canary"})) == "canary 0"
        refused(home.call("mcpbox_call_tool", {"name": "canary"}))
        assert sorted(map(tail, names(whole, "prompts/list", "prompts"))) == ["ask", "ask"]
        prompts = names(home, "prompts/list", "prompts")
        assert prompts == ["crm__ask"]
        assert home.request("prompts/get", {"name": "crm__ask"}).result["messages"]
        refused(home.request("prompts/get", {"name": "finance__ask"}), "unknown_prompt")
        assert sorted(names(whole, "resources/list", "resources", "uri")) == ["notes://crm", "notes://finance"]
        assert names(home, "resources/list", "resources", "uri") == ["notes://crm"]
        assert home.request("resources/read", {"uri": "notes://crm"}).result["contents"]
        assert home.request("resources/read", {"uri": "notes://finance"}).error
        ref = {"ref": {"type": "ref/prompt", "name": "finance__ask"}, "argument": {"name": "a", "value": ""}}
        assert whole.request("completion/complete", ref).result
        refused(home.request("completion/complete", ref), "unknown_prompt")
    rows = instance.psql("SELECT DISTINCT tool FROM mcpbox.executions WHERE tool IN ('canary', 'crm__canary')")
    assert rows == [["crm__canary"]]


def test_rights_of_a_token_are_rights_at_an_endpoint(instance):
    """An endpoint only narrows: what the token lacks is not there either."""
    token = Token(instance, scopes="tools:call", allow="crm__slow,crm__canary,finance__canary")
    with token.client() as whole, token.client(path="/mcp/home") as home:
        assert users(whole.tools()) == ["crm__canary", "crm__slow", "finance__canary"]
        assert sorted(home.tools()) == ["canary", "crm__slow"]
        refused(home.call("crm__work"))
        refused(home.call("finance__canary"))
    reader = Token(instance, scopes="tools:read", allow="*")
    with reader.client(path="/mcp/home") as home:
        assert "canary" in home.tools()
        assert home.call("canary").status == 403


def test_set_of_an_endpoint(instance, ann):
    with at(instance, "look") as look, ann.client(path="/mcp/look") as remote:
        for client in (look, remote):
            assert "crm__canary" in client.tools() and "crm__work" not in client.tools()
            r = client.call("crm__canary")
            assert r.status == 403, r
            # No token gives the right here, so the client is not sent to get one.
            assert "insufficient_scope" not in r.headers["www-authenticate"]
            assert client.call("mcpbox_list_servers").status == 403
    with ann.client() as whole:
        assert text(whole.call("crm__canary")) == "canary 0"


@BOTH
def test_search_mode(instance, version):
    with at(instance, "find", version) as find, at(instance, "", version) as whole:
        assert sorted(find.tools()) == ["mcpbox_call_tool", "mcpbox_search_tools"]
        found = {t["name"]: t for t in find.manage("mcpbox_search_tools", query="canary secret")["tools"]}
        more = {t["name"] for t in whole.manage("mcpbox_search_tools", query="canary secret")["tools"]}
        assert {"crm__canary", "finance__canary"} <= more
        assert found["canary"]["description"] == "Sings." and not {"crm__canary", "crm__secret",
                                                                   "finance__canary"} & set(found)
        assert text(find.call("mcpbox_call_tool", {"name": "canary", "arguments": {"n": 4}})) == "canary 4"
        for name in ("crm__canary", "crm__secret", "finance__canary", "crm__other"):
            refused(find.call("mcpbox_call_tool", {"name": name}))
        assert find.call("mcpbox_list_servers").error or find.call("mcpbox_list_servers").status == 403


def test_search_mode_compares_no_fields(instance):
    """No list has the tool, so nothing says which argument a field mirrors. Without such a field it is called."""
    with at(instance, "find") as find:
        def call(name, **fields):
            return find.request("tools/call", {"name": name, "arguments": {"n": 6}}, fields)
        assert text(call("canary")) == "canary 6"
        r = call("canary", **{"Mcp-Param-N": "6"})
        assert r.status == 400 and r.error["code"] == -32020 and "mcp-param-n" in r.error["message"], r
        # A tool of the list is compared as ever: this one marks no argument.
        r = find.request("tools/call", {"name": "mcpbox_search_tools", "arguments": {"query": "canary"}},
                         {"Mcp-Param-N": "6"})
        assert r.result and not r.result.get("isError"), r


def test_instructions(instance):
    with at(instance, "home", LEGACY) as home, at(instance, "", LEGACY) as whole, at(instance, "find", LEGACY) as find:
        assert home.info["instructions"] == 'At "home".'
        assert "mcpbox_guide" in whole.info["instructions"]
        assert "mcpbox_search_tools" in find.info["instructions"]
        assert "mcpbox_guide" not in find.info["instructions"]
    with at(instance, "home") as home:
        assert home.request("server/discover").result["instructions"] == 'At "home".'


def test_management_tool_that_an_endpoint_names(instance):
    with at(instance, "keep") as keep, at(instance, "") as whole:
        assert sorted(keep.tools()) == ["crm__slow", "mcpbox_list_endpoints"]
        mine = {e["name"]: e for e in keep.manage("mcpbox_list_endpoints")["endpoints"]}
        every = {e["name"]: e for e in whole.manage("mcpbox_list_endpoints")["endpoints"]}
    assert every["home"]["tools"] == ["canary", "crm__slow", "crm__work"]
    assert every["home"]["prompts"] == ["crm__ask"] and every["home"]["resources"] == ["notes://crm"]
    assert every["home"]["missing"] == ["lost__tool"] and every["home"]["hidden"] == ["crm__other"]
    # The reader's own patterns hold for what it reads of others.
    assert mine["home"]["tools"] == ["crm__slow"]


# ---- which there are ----

def test_unknown_paths_are_alike(instance, ann):
    """No answer tells a name that no endpoint has, one of the other listener, and any other path apart."""
    paths = ["/mcp/nothing", "/mcp/", "/mcp/home/", "/mcp/home/x", "/mcp/HOME", "/mcp/..", "/other", "/mcp/" + "a" * 33]
    for listener, more in (("local", []), ("tunnel", ["/mcp/here"])):
        for headers in ({}, bearer(ann.token())):
            got = [request(where(instance, listener)(), "POST", p, body={"x": 1}, headers=headers)
                   for p in paths + more]
            assert {(r.status, r.raw, json.dumps({k: v for k, v in r.headers.items() if k != "date"}, sort_keys=True))
                    for r in got} == {(404, got[0].raw, json.dumps(
                        {k: v for k, v in got[0].headers.items() if k != "date"}, sort_keys=True))}, got
    with at(instance, "here") as here:
        assert "finance__canary" in here.tools()


def test_sessions_belong_to_their_endpoint(instance):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with at(instance, "home", LEGACY) as home, at(instance, "", LEGACY) as whole:
        for client, path, status in ((home, "/mcp/home", 200), (home, "/mcp", 404), (home, "/mcp/find", 404),
                                     (whole, "/mcp", 200), (whole, "/mcp/home", 404)):
            r = request(instance.address(), path=path, body=body, headers={
                "MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": client.session})
            assert r.status == status, (path, r)
            if status == 404:
                assert r.error["data"]["failure_mode"] == "session_unknown"
        r = request(instance.address(), "DELETE", "/mcp", headers={
            "MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": home.session})
        assert r.status == 404 and "canary" in home.tools()


def test_tasks_of_other_tools_are_not_there(instance):
    token = Token(instance, scopes="tools:call", allow="*")
    with token.client(cls=Tasks) as whole, token.client(cls=Tasks, path="/mcp/home") as home:
        other, mine = whole.start("finance__work", note="a"), home.start("crm__work", note="b")
        until(lambda: whole.get(other)["status"] == "completed" and home.get(mine)["status"] == "completed")
        for method in ("tasks/get", "tasks/cancel"):
            refused(home.ask(method, {"taskId": other}), "unknown_task")
        refused(home.ask("tasks/update", {"taskId": other, "inputResponses": {}}), "unknown_task")


# ---- tokens from outside ----

def test_metadata_and_challenge(instance, ann):
    whole = request(where(instance)(), "GET", WELL_KNOWN).value
    home = request(where(instance)(), "GET", WELL_KNOWN + "/home").value
    assert whole["resource"] == RESOURCE and home == {**whole, "resource": RESOURCE + "/home"}
    look = request(where(instance)(), "GET", WELL_KNOWN + "/look").value
    assert look["scopes_supported"] == ["tools:read"]
    for name in ("nothing", "here", "home/"):
        assert request(where(instance)(), "GET", f"{WELL_KNOWN}/{name}").status == 404
    address = 'resource_metadata="https://mcp.example.org' + WELL_KNOWN
    for path, end in (("/mcp", '"'), ("/mcp/home", '/home"')):
        for headers, status in (({}, 401), (bearer("a.b.c"), 401), (bearer(ann.token(scope="tools:read")), 403)):
            r = request(where(instance)(), path=path, headers={"MCP-Protocol-Version": LEGACY, **headers}, body={
                "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "crm__slow"}})
            assert r.status == status and address + end in r.headers["www-authenticate"], (path, r)


def test_audience_is_the_endpoint_alone(instance, ann):
    """A token that a person consented to for an endpoint opens neither the whole nor another endpoint."""
    home, both = ann.token(aud=RESOURCE + "/home"), ann.token(aud=[RESOURCE + "/home/", RESOURCE + "/look"])
    tries = ((ann.token(), "", 200), (ann.token(), "home", 200), (home, "home", 200), (home, "", 401),
             (home, "find", 401), (both, "home", 200), (both, "look", 200), (both, "", 401), (both, "find", 401),
             (ann.token(aud=RESOURCE + "/nothing"), "home", 401), (ann.token(aud=RESOURCE + "/nothing"), "", 401),
             (ann.token(aud=[RESOURCE, RESOURCE + "/home"]), "find", 200),
             (home, "home", 200))
    for i, (token, name, status) in enumerate(tries):
        r = request(where(instance)(), path=f"/mcp/{name}" if name else "/mcp", headers={
            "MCP-Protocol-Version": LEGACY, **bearer(token)}, body={
            "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
        assert r.status == status, (i, r)
        if status == 401:
            assert 'error="invalid_token"' in r.headers["www-authenticate"]
    # It is remembered now, at both sides.
    with ann.client(home, path="/mcp/home") as c:
        assert text(c.call("canary")) == "canary 0"
        with pytest.raises(AssertionError):
            ann.client(home, version=LEGACY)


class BoundClient(Bound, Client):
    def send(self, message, headers):
        self.token = self.person.bind(body=json.dumps(message).encode(), target=self.path)
        return super(Bound, self).send(message, headers)


def test_bound_tokens_name_the_endpoint(instance):
    eve = Person(instance, WORKER, "eve")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    raw = json.dumps(body).encode()

    def asks(path, target):
        r = request(where(instance)(), path=path, body=raw, headers={
            "MCP-Protocol-Version": LEGACY, **bearer(eve.bind(body=raw, target=target))})
        return r.status if r.result or r.status != 200 else r.error["data"]["failure_mode"]

    until(lambda: asks("/mcp/home", "/mcp/home") == 200)     # `busy` for its leeway after the start
    assert asks("/mcp/home", "/mcp") == 401
    assert asks("/mcp", "/mcp/home") == 401
    with BoundClient(where(instance), eve, path="/mcp/home") as c:
        assert sorted(c.tools()) == ["canary", "crm__slow", "crm__work"]
        assert text(c.call("canary", {"n": 5})) == "canary 5"


# ---- another document ----

def listen(instance, token, name):
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True}, "_meta": meta(MODERN, DECLARED)}}
    s = Stream(where(instance)(), path=f"/mcp/{name}", body=body, headers={
        "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen", **bearer(token)})
    assert s.status == 200, s.headers
    s.message("notifications/subscriptions/acknowledged")
    return s


class RunningAt(Running):
    path = "/mcp"

    def __init__(self, instance, person, path):
        self.path = path
        super().__init__(instance, person)

    def _run(self, token):
        with self.person.client(token, path=self.path) as c:
            self.reply = c.call("crm__slow", {"seconds": 600})


def test_document_ends_what_loses(instance):
    """Work that came by an endpoint ends with its rights there. The same person's work elsewhere goes on."""
    people = [Person(instance, POCKET, n, scope="tools:call") for n in ("ida", "joe", "kim")]
    home, keep, whole = (RunningAt(instance, p, path) for p, path in zip(people, ("/mcp/home", "/mcp/keep", "/mcp")))
    changed = {**HOME, "deny": ["crm__secret", "crm__slow"]}
    holds(instance, (changed, FIND, LOOK, HERE, KEEP))
    assert home.ended().result["isError"]
    assert keep.rows("state = 'open'") and whole.rows("state = 'open'")
    # More than before disturbs nothing.
    holds(instance, (changed, {**KEEP, "allow": [*KEEP["allow"], "crm__work"]}))
    assert keep.rows("state = 'open'")
    with people[1].client(path="/mcp/keep") as c:
        assert "crm__work" in c.tools()
    # An endpoint that is gone.
    holds(instance, (changed,))
    assert keep.ended().result["isError"]
    assert whole.rows("state = 'open'")
    people[2].withdraw()
    whole.ended()


def test_streams_hear_of_another_document(instance, ann):
    with listen(instance, ann.token(), "home") as home, listen(instance, ann.token(), "keep") as keep:
        holds(instance, ({**HOME, "rename": []}, KEEP))
        home.message("notifications/tools/list_changed")
        with ann.client(path="/mcp/home") as c:
            assert "crm__canary" in c.tools() and "canary" not in c.tools()
        holds(instance, (HOME,))
        keep.rest()
        home.message("notifications/tools/list_changed")


def test_faults_change_nothing(instance):
    got = set_document(instance, {**document((POCKET, WORKER), RULES, SETS), "endpoints": [
        {"name": "Home", "allow": ["*"]}, {"name": "a", "allow": [], "set": "none"}]})
    assert got["_"] == "REFUSED" and "/endpoints/0/name" in got["message"], got
    with at(instance, "home") as home:
        assert "canary" in home.tools()


def test_shown_to_administrators(instance):
    items = {e["name"]: e for e in instance.ctl_json("endpoints")["items"]}
    assert sorted(items) == sorted(e["name"] for e in ALL)
    assert items["home"]["tools"] == ["canary", "crm__slow", "crm__work"] and items["home"]["tools_total"] == 3
    assert items["here"]["listeners"] == ["local"] and items["look"]["set"] == "look"
    assert "finance__canary" in items["look"]["tools"]
    assert "canary" in instance.ctl("endpoints").stdout
