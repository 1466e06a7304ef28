"""The methods of every revision against the real suite: what is declared, lists and their pages, completion, log
levels, capabilities, what browsers and clients with deviations get."""
import json
import os

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, META, MODERN, Client, request
from harness.instance import Instance
from harness.patience import until

LEGACY_REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
ORIGIN = "https://app.example"
LISTS = [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources"),
         ("resources/templates/list", "resourceTemplates")]
SCHEMA = ('{ "type": "object","$comment":"kept \\u00e9" , "properties":{"b":{"type":"string","x-mcp-header":"Region"},'
          '"a":{"type":"integer","minimum":1.0}},"required":[ "a" ]}')


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["gatewayd-local:page_size=3", f"gatewayd-local:allowed_origin={ORIGIN}",
                       "gatewayd-local:quirk_header_version=yes", "gatewayd-local:quirk_missing_accept=no"])
    yield i
    i.close()


@pytest.fixture(scope="module")
def things(instance):
    """Seven prompts, one with values to complete; a resource; a template; two tools."""
    with Client(instance.address) as c:
        server = c.manage("mcpbox_create_server", name="m", description="Of these tests.")["id"]

        def approve(made):
            c.manage("mcpbox_request_publish", tool_id=made["id"])
            item = flow.pending(instance, made["name"])
            instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
            return made["id"]

        ids = {}
        for i in range(7):
            ids[f"p{i}"] = approve(c.manage(
                "mcpbox_create_prompt", server_id=server, name=f"p{i}", description=f"Prompt {i}.", text="Go to {city}.",
                arguments=[{"name": "city", "values": ["Paris", "Parma", "Rome"]}]))
        ids["r"] = approve(c.manage("mcpbox_create_resource", server_id=server, name="r", uri="m://text",
                                    description="A text.", mime_type="text/plain", text="here", ttl_ms=7000))
        ids["t"] = approve(c.manage(
            "mcpbox_create_resource", server_id=server, name="t", uri_template="m://item/{id}", description="Items.",
            python_code="def main(id: str):\n    return 'item ' + id\n"))
        ids["echo"] = approve(c.manage(
            "mcpbox_create_tool", server_id=server, name="echo", description="Tells.",
            python_code="def main(a, b='x'):\n    return f'{a} {b}'\n", input_schema=json.loads(SCHEMA)))
        ids["needs"] = approve(c.manage(
            "mcpbox_create_tool", server_id=server, name="needs", description="Needs sampling.",
            client_capabilities=["sampling"], python_code="def main():\n    return 1\n"))
    return ids


def legacy(instance, revision=LEGACY):
    return Client(instance.address, version=revision)


# --- what is declared -------------------------------------------------------

@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_initialize_declares_what_is_there(instance, revision):
    with legacy(instance, revision) as c:
        capabilities = c.info["capabilities"]
        assert set(capabilities) == {"tools", "prompts", "resources", "completions", "logging"}
        assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
        assert len(c.info["instructions"].splitlines()) >= 20 and len(c.info["instructions"]) < 2048
        for method, key in LISTS:
            assert isinstance(c.request(method).result[key], list)
        assert c.request("ping").result == {}
        assert c.request("server/discover").error["code"] == -32601


def test_discover_declares_the_same_and_tasks(instance):
    with Client(instance.address) as c:
        r = c.request("server/discover").result
        assert r["supportedVersions"] == [MODERN] and r["resultType"] == "complete"
        assert "io.modelcontextprotocol/tasks" in r["capabilities"]["extensions"]
        assert r["cacheScope"] in ("public", "private") and r["ttlMs"] >= 0
        assert r["_meta"][META + "serverInfo"]["name"] == "mcpbox"
        for method in ("ping", "initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "x"):
            gone = c.request(method)
            assert gone.status == 404 and gone.error["code"] == -32601, method


# --- lists ------------------------------------------------------------------

def pages(c, method, key):
    """The pages of a list, each its names."""
    got, cursor = [], None
    while True:
        r = c.request(method, {"cursor": cursor} if cursor else {}).result
        got.append([o["name"] for o in r[key]])
        cursor = r.get("nextCursor")
        if cursor is None:
            return got


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_pages_hold_all_once_and_in_one_order(instance, things, revision):
    with Client(instance.address, version=revision) as c:
        got = pages(c, "prompts/list", "prompts")
        assert [len(p) for p in got] == [3, 3, 1]
        assert sum(got, []) == [f"m__p{i}" for i in range(7)]
        tools = sum(pages(c, "tools/list", "tools"), [])
        assert len(tools) == len(set(tools)) and tools[:2] == ["m__echo", "m__needs"]
        assert all(t.startswith("mcpbox_") for t in tools[2:]) and len(tools) > 10
        assert sum(pages(c, "tools/list", "tools"), []) == tools


def test_a_cursor_survives_changes(instance, things):
    with legacy(instance) as c, Client(instance.address) as m:
        first = c.request("prompts/list").result
        assert [p["name"] for p in first["prompts"]][-1] == "m__p2"
        # What it stands behind goes, so does what comes next.
        for name in ("p2", "p3"):
            m.manage("mcpbox_update_prompt", prompt_id=things[name], enabled=False)
        second = c.request("prompts/list", {"cursor": first["nextCursor"]}).result
        assert [p["name"] for p in second["prompts"]] == ["m__p4", "m__p5", "m__p6"] and "nextCursor" not in second
        for name in ("p2", "p3"):
            m.manage("mcpbox_update_prompt", prompt_id=things[name], enabled=True)


@pytest.mark.parametrize("cursor", ["", "x", "A" * 200, "%%%", "\0"])
def test_cursors_of_nobody(instance, cursor):
    for revision in (LEGACY, MODERN):
        with Client(instance.address, version=revision) as c:
            r = c.request("tools/list", {"cursor": cursor})
            assert r.status == 200 and r.error["code"] == -32602, r


def test_a_cursor_is_of_one_list(instance, things):
    with legacy(instance) as c:
        cursor = c.request("prompts/list").result["nextCursor"]
        r = c.request("tools/list", {"cursor": cursor})
        assert r.error["code"] == -32602 and r.error["data"]["failure_mode"] == "bad_cursor"


def test_lists_keep_bytes_and_hide_what_is_ours(instance, things):
    with legacy(instance) as c:
        raw = c.request("tools/list").raw.decode()
        assert '"minimum":1.0' in raw.replace(" ", "") and "x-mcp-header" in raw
        p = c.request("prompts/list").result["prompts"][0]
        assert p["arguments"] == [{"name": "city"}]
    with Client(instance.address) as c:
        for method, _ in LISTS:
            r = c.request(method).result
            assert r["ttlMs"] >= 0 and r["cacheScope"] == "private" and r["resultType"] == "complete"


# --- resources --------------------------------------------------------------

def test_reading(instance, things):
    with Client(instance.address) as c:
        r = c.request("resources/read", {"uri": "m://text"}).result
        assert r["contents"] == [{"uri": "m://text", "mimeType": "text/plain", "text": "here"}]
        assert (r["ttlMs"], r["cacheScope"]) == (7000, "private")
        r = c.request("resources/read", {"uri": "m://item/a%20b"}).result
        assert r["contents"][0]["uri"] == "m://item/a%20b" and r["contents"][0]["text"] == "item a b"


@pytest.mark.parametrize("uri", ["m://nothing", "m://item/", "m://item/a/b", "", "x" * 3000, "m://item/%00"])
def test_no_such_resource(instance, things, uri):
    with Client(instance.address) as c:
        r = c.request("resources/read", {"uri": uri}, {"Mcp-Name": uri} if len(uri) < 2000 else None)
        if len(uri) < 2000:
            assert r.status == 200 and r.error["code"] == -32602 and r.error["data"]["uri"] == uri
        else:
            assert r.error is not None
    for revision in LEGACY_REVISIONS:
        with legacy(instance, revision) as c:
            r = c.request("resources/read", {"uri": uri})
            assert r.status == 200 and r.error["code"] == -32002 and r.error["data"]["uri"] == uri


# --- completion, log levels, capabilities -----------------------------------

@pytest.mark.parametrize("revision", [*LEGACY_REVISIONS, MODERN])
def test_completion(instance, things, revision):
    context = {} if revision == LEGACY_REVISIONS[0] else {"context": {"arguments": {}}}

    def complete(ref, name, value):
        return c.request("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}, **context})
    prompt = {"type": "ref/prompt", "name": "m__p0"}
    with Client(instance.address, version=revision) as c:
        got = complete(prompt, "city", "pa").result["completion"]
        assert got == {"values": ["Paris", "Parma"], "total": 2, "hasMore": False}
        assert complete(prompt, "city", "").result["completion"]["total"] == 3
        assert complete(prompt, "nothing", "").result["completion"]["values"] == []
        assert complete({"type": "ref/resource", "uri": "m://item/{id}"}, "id", "").result["completion"]["values"] == []
        assert complete({"type": "ref/prompt", "name": "nobody"}, "city", "").error["code"] == -32602
        assert complete({"type": "ref/tool", "name": "m__echo"}, "city", "").error["code"] == -32602
        if not context:     # the first revision does not have it
            context = {"context": {"arguments": {}}}
            assert complete(prompt, "city", "pa").error["data"]["faults"] == [{
                "pointer": "/params/context",
                "fix": "Leave it out: completion/complete of 2025-03-26 has ref, argument, _meta."}]


def test_a_log_level_is_of_its_session(instance):
    with legacy(instance) as c:
        assert c.request("logging/setLevel", {"level": "error"}).result == {}
        assert c.request("logging/setLevel", {"level": "loud"}).error["code"] == -32602
        session, c.session = c.session, None
        assert c.request("logging/setLevel", {"level": "error"}).error["code"] == -32600
        c.session = session


def test_a_missing_capability_is_named_before_anything_runs(instance, things):
    with Client(instance.address) as c:
        before = instance.psql("SELECT count(*) FROM mcpbox.executions")
        r = c.call("m__needs")
        assert r.status == 400 and r.error["code"] == -32021
        assert r.error["data"]["requiredCapabilities"] == {"sampling": {}}
        assert instance.psql("SELECT count(*) FROM mcpbox.executions") == before
    with legacy(instance) as c:
        r = c.call("m__needs")
        assert r.status == 200 and r.error["code"] == -32021


def test_marked_arguments_must_be_in_the_head(instance, things):
    with Client(instance.address) as c:
        def call(value, header):
            return c.request("tools/call", {"name": "m__echo", "arguments": {"a": 1, **value}},
                             {"Mcp-Param-Region": header} if header is not None else None)
        assert call({"b": "eu"}, "eu").result["content"][0]["text"] == "1 eu"
        assert call({"b": "é"}, "=?base64?w6k=?=").result["content"][0]["text"] == "1 é"
        assert call({}, None).result["content"][0]["text"] == "1 x"
        for value, header in (({"b": "eu"}, None), ({"b": "eu"}, "us"), ({"b": "é"}, "=?base64?w6k?=")):
            r = call(value, header)
            assert r.status == 400 and r.error["code"] == -32020, (value, header)


# --- HTTP -------------------------------------------------------------------

def test_a_browser_of_an_allowed_origin(instance):
    r = request(instance.address(), "OPTIONS", headers={
        "Origin": ORIGIN, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "mcp-method, Mcp-Param-Region, x-evil"})
    assert r.status == 204 and r.headers["access-control-allow-origin"] == ORIGIN
    allowed = {h.strip().lower() for h in r.headers["access-control-allow-headers"].split(",")}
    assert allowed >= {"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "authorization",
                       "last-event-id", "content-type", "mcp-param-region"}
    assert "x-evil" not in allowed
    assert {m.strip() for m in r.headers["access-control-allow-methods"].split(",")} >= {"GET", "POST", "DELETE"}
    r = request(instance.address(), body={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"Origin": ORIGIN})
    exposed = {h.strip().lower() for h in r.headers["access-control-expose-headers"].split(",")}
    assert r.status == 200 and exposed >= {"mcp-session-id", "www-authenticate"}
    assert r.headers["vary"] == "Origin"
    r = request(instance.address(), "OPTIONS", headers={"Origin": "https://evil.example"})
    assert r.status == 403 and "access-control-allow-origin" not in r.headers


@pytest.mark.parametrize("path", [
    "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration", "/register"])
def test_probes_for_oauth_get_plain_json(instance, path):
    r = request(instance.address(), "GET", path)
    assert r.status == 404 and r.headers["content-type"] == "application/json" and r.value["error"] == "not_found"


def test_methods_of_http(instance):
    for method, headers in (("GET", {}), ("GET", {"MCP-Protocol-Version": MODERN}),
                            ("DELETE", {"MCP-Protocol-Version": MODERN}), ("PUT", {}), ("PATCH", {})):
        r = request(instance.address(), method, headers={"Accept": "text/event-stream", **headers})
        assert r.status == 405, (method, r)
        assert method not in r.headers["allow"].split(", ")


# --- settings that let deviations pass --------------------------------------

def log_of(instance):
    with open(os.path.join(instance.state, "log", "gatewayd-local", "current"), encoding="utf-8") as f:
        return [line for line in f if '"event":"quirk"' in line]


def test_deviations_pass_by_setting_and_are_logged(instance):
    envelope = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": envelope}}
    # On here, off by default (test_wire and the unit tests have it off).
    r = request(instance.address(), body=body, headers={
        "MCP-Protocol-Version": LEGACY, "Mcp-Method": "server/discover", "User-Agent": "odd connector"})
    assert r.status == 200 and r.result["resultType"] == "complete"
    r = request(instance.address(), body=body, headers={
        "MCP-Protocol-Version": "2024-01-01", "Mcp-Method": "server/discover"})
    assert r.status == 400 and r.error["code"] == -32020
    # On by default.
    init = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": LEGACY, "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}}
    r = request(instance.address(), body=init, headers={"MCP-Protocol-Version": MODERN})
    assert r.status == 200 and r.result["protocolVersion"] == LEGACY
    # Off here.
    r = request(instance.address(), body=init, headers={"Accept": "application/json"})
    assert r.status == 406 and r.error["code"] == -32600
    # another process writes the log
    until(lambda: any("quirk_initialize_after_discover" in x for x in log_of(instance)), 10, 0.05)
    lines = log_of(instance)
    assert len([x for x in lines if "quirk_header_version" in x and "odd connector" in x]) == 1
    assert len([x for x in lines if "quirk_initialize_after_discover" in x]) == 1
    assert not [x for x in lines if "quirk_missing_accept" in x]
