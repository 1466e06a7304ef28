"""The emergency stop: what an administrator stops or disables no client starts
again, by no road of the management tools, at no listener; and whoever calls it is
told whose act it was and who may undo it."""
import json
import os
import signal
import threading
import uuid

import pytest

from harness.clients import flow, tasks
from harness.clients.api_token import Token
from harness.clients.mcp import Client, text
from harness.patience import patience, until

CODE = "def main() -> str:\n    return 'ran'\n"
SLEEPS = "import time\ndef main() -> str:\n    time.sleep(599)\n    return 'ran'\n"


class Stopped:
    """A server with an approved tool, and what its client hears."""

    def __init__(self, instance, mcp, code=CODE, **more):
        self.name = "s" + uuid.uuid4().hex[:10]
        self.exposed = flow.publish(instance, mcp, self.name, "t" + uuid.uuid4().hex[:8], code, **more)
        self.id = next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"]
                       if s["name"] == self.name)
        self.tool = next(t["id"] for t in mcp.manage("mcpbox_list_tools", server_id=self.id)["tools"])


@pytest.fixture
def it(instance, mcp):
    return Stopped(instance, mcp)


def failure(reply):
    """(mode, what it says, its fix) of a failed call of a tool, or of a tool's stop."""
    if reply.error is not None:
        data = reply.error["data"]
        return data["failure_mode"], reply.error["message"] + json.dumps(data), json.dumps(data)
    assert reply.result["isError"], reply
    meta = reply.result["_meta"]["mcpbox/failure"]
    return meta["failure_mode"], text(reply), meta["fix"]


def stops_a_model(client, tool, **arguments):
    """This management tool is refused: whose act, and no tool that would undo it."""
    mode, said, fix = failure(client.call(tool, arguments))
    assert mode == "forbidden" and "the administrator admin" in said, said
    assert "mcpbox_" not in said + fix, said
    return said


def silent(client, exposed):
    """It cannot be called, by no form of a call; returns what is said."""
    heard = set()
    for reply in (client.call(exposed), client.call("mcpbox_call_tool", {"name": exposed, "arguments": {}})):
        mode, said, _ = failure(reply)
        assert mode == "stopped" and "mcpbox_start_server" not in said, said
        heard.add(said)
    return heard.pop()


def post(rest, path, body=None):
    status, _, said = rest.request("POST", path, body or {})
    assert status == 200, said
    return said


def test_a_stopped_server_stays_stopped(instance, mcp, rest, it):
    assert text(mcp.call(it.exposed)) == "ran"
    shown = post(rest, f"/api/servers/{it.id}/stop", {"reason": "it mails strangers"})
    assert shown["stopped_by"] == "admin" and shown["stopped_authority"] == "administrator"
    token = Token(instance, scopes="tools:call,manage,manage:edit", listeners="local,tunnel")
    instance.ctl("settings", "set", "remote_tool_editing", "enabled")
    with token.client() as elsewhere, token.client(listener="local") as here:
        for c in (mcp, elsewhere, here):
            said = stops_a_model(c, "mcpbox_start_server", server_id=it.id)
            assert it.name in said and shown["stopped_at"] in said and "it mails strangers" in said
            stops_a_model(c, "mcpbox_delete_server", server_id=it.id)
            off = c.manage("mcpbox_stop_server", server_id=it.id)       # takes nothing over
            assert off["changed"] is False and "mcpbox_start_server" not in off["message"]
            c.manage("mcpbox_update_server", server_id=it.id, description="other")
            c.manage("mcpbox_update_tool", tool_id=it.tool, enabled=False)
            c.manage("mcpbox_update_tool", tool_id=it.tool, enabled=True)
            assert "it mails strangers" in silent(c, it.exposed)
            for tool, key, value in (("mcpbox_get_server", "server_id", it.id),
                                     ("mcpbox_get_tool_status", "tool_id", it.tool)):
                assert "the administrator admin" in c.manage(tool, **{key: value})["stopped"]
    instance.ctl("settings", "reset", "remote_tool_editing")
    # another version, approved by a person, starts nothing either
    mcp.manage("mcpbox_update_tool", tool_id=it.tool, python_code=CODE + "# more\n")
    mcp.manage("mcpbox_request_publish", tool_id=it.tool)
    item = flow.pending(instance, it.exposed.partition("__")[2])
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    silent(mcp, it.exposed)
    assert rest.request("POST", f"/api/servers/{it.id}/start", {})[2]["stopped_by"] is None
    assert text(mcp.call(it.exposed)) == "ran"


def test_a_disabled_tool_stays_disabled(instance, mcp, rest, it):
    post(rest, f"/api/tools/{it.tool}/disable", {"reason": "broken"})
    assert "broken" in stops_a_model(mcp, "mcpbox_update_tool", tool_id=it.tool, enabled=True)
    # whole or not at all: no draft is made of the other fields
    stops_a_model(mcp, "mcpbox_update_tool", tool_id=it.tool, enabled=True, description="Other.")
    assert mcp.manage("mcpbox_list_tool_versions", tool_id=it.tool)["total_versions"] == 1
    stops_a_model(mcp, "mcpbox_delete_tool", tool_id=it.tool)
    stops_a_model(mcp, "mcpbox_delete_server", server_id=it.id)
    stops_a_model(mcp, "mcpbox_update_tool", tool_id=it.tool, name="other")
    mcp.manage("mcpbox_stop_server", server_id=it.id)
    assert "broken" in silent(mcp, it.exposed)          # the higher authority's act is told
    mcp.manage("mcpbox_start_server", server_id=it.id)
    silent(mcp, it.exposed)
    assert post(rest, f"/api/tools/{it.tool}/enable")["tool"]["disabled_by"] is None
    assert text(mcp.call(it.exposed)) == "ran"


def test_prompts_and_resources(mcp, rest):
    name = "p" + uuid.uuid4().hex[:10]
    sid = mcp.manage("mcpbox_create_server", name=name)["id"]
    prompt = mcp.manage("mcpbox_create_prompt", server_id=sid, name="ask", text="x")["id"]
    note = mcp.manage("mcpbox_create_resource", server_id=sid, name="note", uri=f"notes://{name}", text="n")["id"]
    for kind, i in (("prompt", prompt), ("resource", note)):
        post(rest, f"/api/tools/{i}/disable")
        stops_a_model(mcp, f"mcpbox_update_{kind}", **{f"{kind}_id": i, "enabled": True})
        stops_a_model(mcp, f"mcpbox_delete_{kind}", **{f"{kind}_id": i})
    stops_a_model(mcp, "mcpbox_update_resource", resource_id=note, uri=f"notes://{name}.other")


def approved(instance, mcp, made):
    mcp.manage("mcpbox_request_publish", tool_id=made["id"])
    item = flow.pending(instance, made["name"])
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    return made["id"]


def test_no_template_takes_a_stopped_resource_over(instance, mcp, rest):
    """Another server's template matches the URI: it answers for others of its URIs,
    never for that of a resource that somebody stopped."""
    name = "u" + uuid.uuid4().hex[:10]
    mine, other = (mcp.manage("mcpbox_create_server", name=name + x)["id"] for x in ("a", "b"))
    note = approved(instance, mcp, mcp.manage("mcpbox_create_resource", server_id=mine, name=f"note_{name}",
                                              uri=f"notes://{name}/x", text="the note"))
    approved(instance, mcp, mcp.manage("mcpbox_create_resource", server_id=other, name=f"family_{name}",
                                       uri_template=f"notes://{name}/{{what}}", description="Any.",
                                       python_code="def main(what: str) -> str:\n    return 'taken ' + what\n"))

    def read(uri):
        reply = mcp.request("resources/read", {"uri": uri})
        if reply.error is None:
            return reply.result["contents"][0]["text"]
        return reply.error["data"]["failure_mode"], reply.error["message"] + json.dumps(reply.error["data"])

    x, y, z = (f"notes://{name}/{i}" for i in "xyz")
    assert read(x) == "the note" and read(y) == "taken y"
    post(rest, f"/api/tools/{note}/disable", {"reason": "it is wrong"})
    mode, said = read(x)
    assert mode == "stopped" and "the administrator admin" in said and "it is wrong" in said
    assert read(y) == "taken y"
    assert x not in {r["uri"] for r in mcp.request("resources/list").result["resources"]}
    # another URI, by a version that is approved while it is disabled, is kept, too
    post(rest, f"/api/tools/{note}/enable")
    mcp.manage("mcpbox_update_resource", resource_id=note, uri=z)
    post(rest, f"/api/tools/{note}/disable")
    assert read(z) == "taken z"
    approved(instance, mcp, {"id": note, "name": f"note_{name}"})
    assert read(z)[0] == "stopped" and read(x) == "taken x"
    post(rest, f"/api/tools/{note}/enable")
    assert read(z) == "the note"
    post(rest, f"/api/servers/{mine}/stop", {"reason": "all of it"})
    mode, said = read(z)
    assert mode == "stopped" and "all of it" in said
    rest.request("DELETE", f"/api/servers/{mine}")
    assert read(z) == "taken z"         # nobody's any more


def test_what_a_client_stopped_says_how_it_starts(mcp, it):
    mcp.manage("mcpbox_stop_server", server_id=it.id)
    mode, said, _ = failure(mcp.call(it.exposed))
    assert mode == "stopped" and "mcpbox_start_server" in said
    mcp.manage("mcpbox_start_server", server_id=it.id)
    mcp.manage("mcpbox_update_tool", tool_id=it.tool, enabled=False)
    mode, said, _ = failure(mcp.call(it.exposed))
    assert mode == "stopped" and "mcpbox_update_tool" in said and "mcpbox_start_server" not in said
    mcp.manage("mcpbox_update_tool", tool_id=it.tool, enabled=True)
    assert text(mcp.call(it.exposed)) == "ran"


def test_root_by_mcpboxctl(instance, mcp, rest, it):
    """An administrator takes a client's stop over, root an administrator's; the way
    back is the same."""
    mcp.manage("mcpbox_stop_server", server_id=it.id)
    post(rest, f"/api/servers/{it.id}/stop")
    stops_a_model(mcp, "mcpbox_start_server", server_id=it.id)
    instance.ctl("servers", "stop", it.name, "--reason", "by night")
    shown = instance.ctl_json("servers", it.name)
    assert (shown["stopped_by"], shown["stopped_authority"], shown["stopped_reason"]) == ("root", "root", "by night")
    listed = next(line for line in instance.ctl("servers").stdout.splitlines() if it.name in line)
    assert " root " in listed and shown["stopped_at"] in listed
    mode, said, _ = failure(mcp.call("mcpbox_start_server", {"server_id": it.id}))
    assert mode == "forbidden" and f"mcpboxctl servers start {it.name}" in said
    status, _, problem = rest.request("POST", f"/api/servers/{it.id}/start", {})
    assert status == 403 and problem["failure_mode"] == "forbidden" and "only root" in problem["detail"]
    instance.ctl("servers", "start", it.name)
    assert text(mcp.call(it.exposed)) == "ran"
    instance.ctl("tools", "disable", it.exposed, "one word")
    assert instance.ctl_json("tools", it.exposed)["tool"]["disabled_reason"] == "one word"
    assert rest.request("POST", f"/api/tools/{it.tool}/enable", {})[0] == 403
    instance.ctl("tools", "enable", it.exposed)
    assert instance.ctl("servers", "start", it.name, "--reason", "x", check=False).returncode == 2
    assert rest.request("POST", f"/api/servers/{it.id}/stop", {"reason": "x" * 201})[0] == 400


def test_what_runs_meanwhile(instance, mcp, rest):
    """A call and a task under way end; neither is told a tool that undoes the stop."""
    it = Stopped(instance, mcp, SLEEPS, limits={"timeout_ms": 600000}, task="optional")
    heard = []

    def call():
        with Client(instance.address) as c:
            heard.append(c.call(it.exposed))
    thread = threading.Thread(target=call)
    thread.start()
    with tasks.Tasks(instance.address) as c:
        task = c.start(it.exposed)
        until(lambda: instance.psql("SELECT count(*) FROM mcpbox.executions WHERE state = 'open' AND "
                                    f"tool = '{it.exposed}'") == [["2"]])
        post(rest, f"/api/servers/{it.id}/stop", {"reason": "now"})
        ended = c.until(task)
    thread.join(patience(15))
    assert not thread.is_alive()
    mode, said, _ = failure(heard[0])
    assert mode == "stopped" and "mcpbox_start_server" not in said
    assert ended["status"] == "failed" and ended["error"]["data"]["failure_mode"] == "stopped"
    assert "mcpbox_start_server" not in json.dumps(ended)
    assert "now" in silent(mcp, it.exposed)


def test_a_stop_outlives_admind(instance, mcp, rest, it):
    post(rest, f"/api/servers/{it.id}/stop")
    old = instance.service_pid("admind")
    os.kill(old, signal.SIGKILL)
    until(lambda: instance.service_pid("admind") not in (None, old))
    until(lambda: mcp.call("mcpbox_list_servers").error is None)
    stops_a_model(mcp, "mcpbox_start_server", server_id=it.id)
    silent(mcp, it.exposed)
