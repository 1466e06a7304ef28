"""Each failure tells this case's next step (common/base/fix.def): real errors of every
face and their fix. tests/lint/fixes.py compares the table with the sources."""
import json
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, Client, meta, request

CODE = "def main(n: int = 0) -> int:\n    return n\n"
RAISES = "import mcpbox\ndef main(how: str):\n    if how == 'said':\n        raise mcpbox.ToolError('no such page')\n" \
         "    if how == 'late':\n        raise mcpbox.ToolError('too slow', failure='timeout')\n" \
         "    if how == 'exit':\n        import os\n        os._exit(3)\n" \
         "    if how == 'big':\n        return 'x' * 3000000\n" \
         "    if how == 'bytes':\n        return b'x'\n    return 1 // 0\n"
GREP = {"kind": "command", "executable": "/usr/bin/grep", "description": "Finds."}
SPEC = {"argv": ["-E", "--", "{pattern}"], "stdin": "{text}"}
#: Nobody's.
NO_ID = "00000000-0000-4000-8000-000000000000"


def told(reply):
    """(mode, fix) of what an MCP client was told."""
    if reply.error is not None:
        data = reply.error["data"]
    else:
        assert reply.result["isError"], reply
        data = reply.result["_meta"]["mcpbox/failure"]
    return data["failure_mode"], data["fix"]


class World:
    """An instance with something of everything."""

    def __init__(self, instance, mcp, rest):
        self.instance, self.mcp, self.rest = instance, mcp, rest
        self.tool = flow.publish(instance, mcp, "fixes", "good", CODE)
        self.server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "fixes")
        self.raises = flow.publish(instance, mcp, "fixes", "raises", RAISES)
        self.grep = self.command("grep")
        self.draft = flow.draft(mcp, "fixes", "draft", CODE)
        mcp.manage("mcpbox_create_server_secret", server_id=self.server, key="KEY")
        self.id = {t["name"]: t["id"] for t in mcp.manage("mcpbox_list_tools", server_id=self.server)["tools"]}
        self.waits = flow.draft(mcp, "fixes", "waits", CODE)
        mcp.manage("mcpbox_request_publish", tool_id=self.waits)
        self.resource = mcp.manage("mcpbox_create_resource", server_id=self.server, name="pages",
                                   uri_template="page:{n}", description="Pages.",
                                   python_code="import mcpbox\ndef main(n):\n    raise mcpbox.NotFound('no page ' + n)\n")
        mcp.manage("mcpbox_request_publish", tool_id=self.resource["id"])
        item, = [i for i in instance.ctl_json("approvals", "list")["items"] if "pages" in json.dumps(i)]
        shown = instance.ctl_json("approvals", "show", item["id"])
        instance.ctl("approvals", "approve", item["id"], "--hash", shown["hash"])

    def command(self, name, **spec):
        t = self.mcp.manage("mcpbox_create_tool", server_id=self.server, name=name, spec={**SPEC, **spec}, **GREP)
        self.mcp.manage("mcpbox_request_publish", tool_id=t["id"])
        item = flow.pending(self.instance, name)
        self.instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
        return f"fixes__{name}"

    def call(self, tool, /, **arguments):
        return told(self.mcp.call(tool, arguments))

    def post(self, path, body=None, method="POST", **headers):
        status, _, said = self.rest.request(method, path, body, headers=headers or None)
        assert status >= 400, said
        return said["failure_mode"], said["fix"]

    def raw(self, method="POST", body=b"{}", path="/mcp", **headers):
        r = request(self.instance.address(), method, path, body=body, headers={
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            **{k.replace("_", "-"): v for k, v in headers.items()}})
        return told(r)

    def old(self, method, params):
        with Client(self.instance.address, version=LEGACY) as c:
            return c.request(method, params)


@pytest.fixture(scope="module")
def world(instance):
    from harness.clients.rest import Rest
    with Client(instance.address) as c:
        r = Rest(lambda: instance.address("admind-http"))
        assert r.login("admin", instance.password)[0] == 200
        yield World(instance, c, r)


#: What is done, the mode, its fix.
CASES = [
    # HTTP and JSON-RPC
    (lambda w: w.raw(Content_Type="text/plain"), "invalid_request", "Send Content-Type: application/json."),
    (lambda w: w.raw(method="PUT"), "invalid_request", "Send POST, or with a session GET and DELETE."),
    (lambda w: w.raw(method="POST", path="/health"), "invalid_request", "Send GET."),
    (lambda w: w.raw(Host="example.com"), "forbidden_origin", "Connect to 127.0.0.1, [::1] or localhost."),
    (lambda w: w.raw(Origin="https://example.com"), "forbidden_origin",
     "Send no Origin, or have an administrator add yours to allowed_origins."),
    (lambda w: w.raw(body=b"[]", MCP_Protocol_Version="2025-03-26"), "invalid_request",
     "Send at least one message, as an object of its own."),
    (lambda w: w.raw(body=b"[]", MCP_Protocol_Version="2025-06-18"), "invalid_request",
     "Send each message in a request of its own."),
    (lambda w: w.raw(body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}', MCP_Protocol_Version="1999-01-01"),
     "invalid_request", "Send one of the revisions that the message names."),
    # what is called
    (lambda w: w.call("fixes__nothing"), "unknown_tool", "Call tools/list and use a name from it."),
    (lambda w: w.call("fixes__draft"), "not_approved",
     "Ask for review with mcpbox_request_publish, or wait if that was done."),
    (lambda w: w.call(w.tool, n="x"), "invalid_arguments", "Correct the arguments; every error is listed."),
    # runs
    (lambda w: w.call(w.raises, how="code"), "exception", "Mend the tool's code; the error shows the line."),
    (lambda w: w.call(w.raises, how="said"), "exception",
     "Do what the error says; if the code is at fault, its author mends it."),
    (lambda w: w.call(w.raises, how="late"), "timeout", "Do less per call or ask for a longer limit."),
    (lambda w: w.call(w.raises, how="exit"), "exception",
     "Let main return its result, and raise mcpbox.ToolError instead of ending the process."),
    (lambda w: w.call(w.raises, how="big"), "limit", "Ask for less: a summary, a page, or the part that is needed."),
    (lambda w: w.call(w.grep, pattern="q", text="a\n"), "exception", "Read stderr and correct the arguments; if this"
     " code is a normal end, its author lists it in ok_exit_codes."),
    (lambda w: w.call(w.grep, pattern="x" * 200000, text=""), "invalid_arguments",
     "Correct the arguments; every error is listed."),
    (lambda w: told(w.old("resources/read", {"uri": "page:7"})), "unknown_resource",
     "Call resources/list and resources/templates/list and use a URI from them."),
    # drafts
    (lambda w: w.call("mcpbox_create_server", name="fixes", description="x"), "conflict",
     "Use that server, or choose another name."),
    (lambda w: w.call("mcpbox_create_tool", server_id=w.server, name="good", python_code=CODE), "conflict",
     "Change that one, or choose another name."),
    (lambda w: w.call("mcpbox_create_tool", server_id=NO_ID, name="x", python_code=CODE), "not_found",
     "Take the id from mcpbox_list_servers."),
    (lambda w: w.call("mcpbox_update_tool", tool_id=NO_ID, description="x"), "not_found",
     "Take the id from mcpbox_list_tools."),
    (lambda w: w.call("mcpbox_update_tool", tool_id=w.draft), "invalid_arguments", "Give at least one field beside the id."),
    (lambda w: w.call("mcpbox_test_code", tool_id=NO_ID), "not_found", "Take the id from mcpbox_list_tools."),
    (lambda w: w.call("mcpbox_test_code", tool_id=w.resource["id"]), "invalid_arguments",
     "Name a tool; a prompt or a resource is looked at once it is approved."),
    (lambda w: w.call("mcpbox_create_tool", server_id=w.server, name="mod", python_code=CODE, modules=["six"]),
     "missing_grant", "Create it without modules and their imports, ask with mcpbox_request_module, then name the module."),
    (lambda w: w.call("mcpbox_update_tool", tool_id=w.draft, modules=["six"]), "missing_grant",
     "Ask for it with mcpbox_request_module."),
    (lambda w: w.call("mcpbox_request_publish", tool_id=w.waits), "conflict",
     "Nothing is to be done; to have something else reviewed, change the tool first."),
    (lambda w: w.call("mcpbox_rollback_tool", tool_id=w.draft, version=1), "conflict",
     "Nothing is to be done: the content is what was asked for."),
    (lambda w: w.call("mcpbox_rollback_tool", tool_id=w.draft, version=77), "not_found",
     "List the tool's versions and use one of their numbers."),
    (lambda w: w.call("mcpbox_create_server_secret", server_id=w.server, key="KEY"), "conflict",
     "Use it: the value is set by an administrator; or choose another name."),
    (lambda w: w.call("mcpbox_delete_tool", tool_id=NO_ID), "not_found", "List the tools and use one of them."),
    (lambda w: w.call("mcpbox_diff_tool_versions", tool_id=w.draft, from_version=1, to_version=9), "not_found",
     "Take the number from mcpbox_list_tool_versions."),
    (lambda w: w.call("mcpbox_create_tool", server_id=w.server, name="long", python_code="x = 1\n" * 20000),
     "invalid_arguments", "Correct the arguments; every error is listed."),
    (lambda w: w.call("mcpbox_create_tool", server_id=w.server, name="sh", kind="command", executable="/bin/sh",
                      spec={"argv": []}), "bad_code",
     "Use a program that the message names, or have an administrator add it to commands."),
    (lambda w: w.call("mcpbox_discover_external_tools", source_id=NO_ID), "not_found",
     "Take the id from mcpbox_list_external_sources."),
    # administration
    (lambda w: w.post("/api/servers/" + NO_ID + "/stop", {}), "not_found", "List the servers and use one of them."),
    (lambda w: w.post("/api/approvals/" + NO_ID + "/approve", {}), "hash_required",
     "Read the request, then send its ETag as If-Match."),
    (lambda w: w.post("/api/approvals/" + NO_ID + "/approve", {}, **{"If-Match": "x"}), "hash_mismatch",
     "Send the ETag of what was read as it came, in its quotes."),
    (lambda w: w.post("/api/settings/none", None, method="DELETE"), "not_found", "List the settings and use one of their keys."),
    (lambda w: w.post("/api/administrators", {"username": "another", "new_password": "x" * 20, "role": "viewer",
                                              "password": "wrong wrong wrong"}), "bad_login",
     "Give the password that you log in with yourself."),
    (lambda w: w.post("/api/nothing"), "not_found", "See docs/openapi.yaml for all addresses."),
    (lambda w: w.post("/api/me", {}), "method_not_found", "Use a method that Allow lists."),
]


@pytest.mark.parametrize("n", range(len(CASES)))
def test_a_failure_tells_the_next_step(world, n):
    do, mode, fix = CASES[n]
    assert do(world) == (mode, fix)


def test_the_own_second_approval_waits_for_another_person(world):
    tag = world.rest.get("/api/approvals/policies")[1]["etag"]
    set_to = {"module": "require", "network": "require"}
    assert world.rest.request("PUT", "/api/approvals/policies", {"tool": "second", **set_to}, {"If-Match": tag})[0] == 200
    try:
        world.mcp.manage("mcpbox_request_publish", tool_id=flow.draft(world.mcp, "fixes", "twice", CODE))
        item = flow.pending(world.instance, "twice")
        once = [world.rest.request("POST", f"/api/approvals/{item['id']}/approve", {},
                                   {"If-Match": f'"{item["hash"]}"'}) for _ in range(2)]
        assert once[0][0] == 200, once
        assert (once[1][2]["failure_mode"], once[1][2]["fix"]) == (
            "conflict", "Ask another administrator to approve it; yours is the first of two.")
    finally:
        tag = world.rest.get("/api/approvals/policies")[1]["etag"]
        world.rest.request("PUT", "/api/approvals/policies", {"tool": "require", **set_to}, {"If-Match": tag})


def stop(world, by):
    """A server of its own, stopped by a client, an administrator or root."""
    name = "s" + uuid.uuid4().hex[:10]
    exposed = flow.publish(world.instance, world.mcp, name, "greet" + uuid.uuid4().hex[:6], CODE)
    server = next(s["id"] for s in world.mcp.manage("mcpbox_list_servers", page_size=100)["servers"]
                  if s["name"] == name)
    if by == "client":
        world.mcp.manage("mcpbox_stop_server", server_id=server)
    elif by == "root":
        world.instance.ctl("servers", "stop", name)
    else:
        assert world.rest.request("POST", f"/api/servers/{server}/stop", {})[0] == 200
    return exposed


@pytest.mark.parametrize("by,fix", [
    ("client", "Start the server with mcpbox_start_server, if it is to run."),
    ("administrator", "Ask an administrator to start the server; no management tool does it."),
    ("root", "Ask whoever administers this machine to start the server; only root can.")])
def test_a_stop_tells_who_undoes_it(world, by, fix):
    assert world.call(stop(world, by)) == ("stopped", fix)


@pytest.mark.parametrize("by,fix", [
    ("client", "Enable it with the tool that the message names, if it is to be used."),
    ("administrator", "Ask an administrator to enable it; no management tool does it.")])
def test_a_disabled_tool_is_not_started_but_enabled(world, by, fix):
    name = "t" + uuid.uuid4().hex[:8]
    exposed = flow.publish(world.instance, world.mcp, "fixes", name, CODE)
    tool = next(t["id"] for t in world.mcp.manage("mcpbox_list_tools", server_id=world.server, page_size=100)["tools"]
                if t["name"] == name)
    if by == "client":
        world.mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=False)
    else:
        assert world.rest.request("POST", f"/api/tools/{tool}/disable", {})[0] == 200
    assert world.call(exposed) == ("stopped", fix)


def test_a_declared_exit_code_is_a_result(world):
    """grep's 1 says that nothing matched; its 2 is an error all the same."""
    name = world.command("grep_or_not", ok_exit_codes=[1])
    r = world.mcp.call(name, {"pattern": "q", "text": "a\n"}).result
    assert not r.get("isError") and r["structuredContent"]["exit_code"] == 1, r
    assert world.mcp.call(name, {"pattern": "a", "text": "a\n"}).result["structuredContent"]["exit_code"] == 0
    assert world.call(name, pattern="(", text="a\n")[0] == "exception"


@pytest.mark.parametrize("codes,what", [
    ("1", "/spec/ok_exit_codes"), ([0], "/spec/ok_exit_codes/0"), ([1, 256], "/spec/ok_exit_codes/1"),
    ([1.5], "/spec/ok_exit_codes/0"), ([1, 1], "/spec/ok_exit_codes"), ([True], "/spec/ok_exit_codes/0"),
    (list(range(1, 34)), "/spec/ok_exit_codes")])
def test_what_is_no_list_of_exit_codes(world, codes, what):
    r = world.mcp.call("mcpbox_create_tool", {"server_id": world.server, "name": "bad",
                                              "spec": {**SPEC, "ok_exit_codes": codes}, **GREP})
    assert r.result["isError"] and what in json.dumps(r.result), r


def test_the_codes_are_reviewed(world):
    """They are part of what is hashed and shown."""
    t = world.mcp.manage("mcpbox_create_tool", server_id=world.server, name="shown",
                         spec={**SPEC, "ok_exit_codes": [1, 3]}, **GREP)
    world.mcp.manage("mcpbox_request_publish", tool_id=t["id"])
    item = flow.pending(world.instance, "shown")
    assert item["content"]["spec"]["ok_exit_codes"] == [1, 3]
    assert "ok_exit_codes" in world.instance.ctl("approvals", "show", item["id"]).stdout
    world.mcp.manage("mcpbox_update_tool", tool_id=t["id"], spec=SPEC)
    world.mcp.manage("mcpbox_request_publish", tool_id=t["id"])
    assert flow.pending(world.instance, "shown")["hash"] != item["hash"]


@pytest.mark.parametrize("version,code", [("2025-03-26", -32002), ("2025-06-18", -32002), ("2025-11-25", -32002),
                                          (None, -32602)])
def test_a_missing_resource_has_the_revisions_code(world, version, code):
    """Of no template, and of a template whose code says that there is none."""
    for uri in ("page:7", "nothing:7"):
        if version is None:
            r = world.mcp.request("resources/read", {"uri": uri, "_meta": meta()})
        else:
            with Client(world.instance.address, version=version) as c:
                r = c.request("resources/read", {"uri": uri})
        assert (r.error["code"], r.error["data"]["failure_mode"], r.error["data"]["uri"]) == (
            code, "unknown_resource", uri), r
