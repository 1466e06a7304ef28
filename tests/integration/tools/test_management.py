"""The ten management tools over MCP: what each answers, in which form, and what it says when it refuses."""
import json
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import until

CODE = 'def main(name: str, times: int = 1) -> str:\n    """Greets somebody."""\n    return name * times\n'
NAMES = {"mcpbox_list_servers", "mcpbox_create_server", "mcpbox_start_server", "mcpbox_stop_server",
         "mcpbox_list_tools", "mcpbox_create_tool", "mcpbox_update_tool", "mcpbox_request_publish",
         "mcpbox_get_tool_status", "mcpbox_list_pending_requests"}


def refused(reply, mode):
    """The text of an isError result of this failure mode."""
    assert reply.result is not None and reply.result.get("isError") is True, reply
    assert reply.result["_meta"]["mcpbox/failure"]["failure_mode"] == mode, reply
    assert reply.result["_meta"]["mcpbox/failure"]["fix"], reply
    return "".join(c["text"] for c in reply.result["content"])


@pytest.fixture(scope="module")
def server(instance):
    with Client(instance.address) as c:
        return c.manage("mcpbox_create_server", name="manage", description="Of these tests.")["id"]


def approve(instance, name):
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def test_definitions(mcp):
    tools = mcp.tools()
    assert NAMES <= set(tools)
    for name in NAMES:
        t = tools[name]
        assert t["title"] and len(t["description"]) > 30
        assert t["inputSchema"]["type"] == "object"
        assert isinstance(t["inputSchema"]["required"], list)
        assert t["inputSchema"]["additionalProperties"] is False
        assert t["annotations"]["readOnlyHint"] == (name.split("_")[1] in ("list", "get"))
    assert tools["mcpbox_stop_server"]["annotations"]["destructiveHint"] is True
    assert tools["mcpbox_start_server"]["annotations"]["idempotentHint"] is True


def test_result_is_text_and_structure(mcp):
    r = mcp.call("mcpbox_list_servers", {})
    assert [c["type"] for c in r.result["content"]] == ["text"]
    assert json.loads(r.result["content"][0]["text"]) == r.result["structuredContent"]
    assert not r.result.get("isError")


def test_servers_and_paging(mcp, server):
    for n in ("page_a", "page_b", "page_c"):
        made = mcp.manage("mcpbox_create_server", name=n)
        assert made["success"] and made["name"] == n and made["status"] == "running"
        assert uuid.UUID(made["id"]).version == 7
    whole = mcp.manage("mcpbox_list_servers", page_size=100)
    names = [s["name"] for s in whole["servers"]]
    assert names == sorted(names) and whole["total"] == len(names)
    one = next(s for s in whole["servers"] if s["id"] == server)
    assert one["description"] == "Of these tests." and one["tool_count"] >= 0 and one["created_at"].endswith("Z")
    some = [s["name"] for p in range(1, whole["total"] + 1)
            for s in mcp.manage("mcpbox_list_servers", page=p, page_size=1)["servers"]]
    assert some == names
    past = mcp.manage("mcpbox_list_servers", page=1000, page_size=100)
    assert past["servers"] == [] and past["total"] == whole["total"] and past["page"] == 1000
    assert mcp.manage("mcpbox_list_servers")["page_size"] == 50


def test_server_names(mcp, server):
    assert "manage" in refused(mcp.call("mcpbox_create_server", {"name": "manage"}), "conflict")
    assert "reserved" in refused(mcp.call("mcpbox_create_server", {"name": "mcpbox"}), "conflict")
    for bad in ("a__b", "A", "_a", "a_", "1a", "a-b", "", "x" * 25, "a\n", "a\u0000"):
        refused(mcp.call("mcpbox_create_server", {"name": bad}), "invalid_arguments")


def test_all_argument_errors_at_once(mcp, server):
    said = refused(mcp.call("mcpbox_create_tool", {"server_id": "x y", "name": 7, "code": "def main(): pass",
                                                   "limits": {"timeout_ms": 1}}), "invalid_arguments")
    for pointer in ("/server_id", "/name", "/code", "/python_code", "/limits/timeout_ms"):
        assert pointer in said, said


def test_create_tool_shows_what_it_read(mcp, server):
    t = mcp.manage("mcpbox_create_tool", server_id=server, name="created", python_code=CODE)
    assert t["success"] and t["exposed_name"] == "manage__created" and t["version"] == 1
    assert t["approval_status"] == "draft" and len(t["version_hash"]) == 64
    assert t["input_schema"]["required"] == ["name"]
    listed = {x["name"]: x for x in mcp.manage("mcpbox_list_tools", server_id=server)["tools"]}["created"]
    assert listed["description"] == "Greets somebody." and listed["enabled"] is True
    assert listed["approval_status"] == "draft" and listed["serving_version"] is None and listed["callable"] is False
    refused(mcp.call("mcpbox_create_tool", {"server_id": server, "name": "created", "python_code": CODE}), "conflict")


def test_create_tool_refuses(mcp, server):
    r = mcp.call("mcpbox_create_tool", {"server_id": server, "name": "broken", "python_code": "def main(:\n  pass"})
    said = refused(r, "bad_code")
    assert "SyntaxError" in said and "1" in said
    refused(mcp.call("mcpbox_create_tool", {"server_id": server, "name": "no_main", "python_code": "x = 1"}),
            "bad_code")
    refused(mcp.call("mcpbox_create_tool", {"server_id": str(uuid.uuid4()), "name": "a", "python_code": CODE}),
            "not_found")
    said = refused(mcp.call("mcpbox_create_tool", {"server_id": server, "name": "a", "python_code": CODE,
                                                   "input_schema": {"type": "object", "unevaluatedItems": {}}}),
                   "invalid_arguments")
    assert "/input_schema/unevaluatedItems" in said
    names = [t["name"] for t in mcp.manage("mcpbox_list_tools", server_id=server)["tools"]]
    assert "broken" not in names and "no_main" not in names and "a" not in names


def test_every_optional_field_is_in_the_reviewed_content(instance, mcp, server):
    given = {"title": "Full", "description": "All of it.", "input_schema": {"type": "object", "required": ["name"], "x-own": 1},
             "output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
             "annotations": {"readOnlyHint": True}, "icons": [{"src": "data:,"}], "meta": {"k": [1, {}]},
             "secrets": ["KEY_B", "KEY_A"], "modules": [], "requires": ["api.example.org:443"],
             "task": "optional", "confirm": True,
             "limits": {"timeout_ms": 1000, "memory_bytes": 67108864, "processes": 4, "tmp_bytes": 65536,
                        "result_bytes": 2048, "cpu_ms": 500, "files": 32, "file_bytes": 8192,
                        "stdout_bytes": 2048, "argument_bytes": 1000, "log_rate": 3, "progress_rate": 2}}
    t = mcp.manage("mcpbox_create_tool", server_id=server, name="full", python_code=CODE, **given)
    assert t["input_schema"] == given["input_schema"]
    mcp.manage("mcpbox_request_publish", tool_id=t["id"], notes="See all of it.")
    content = flow.pending(instance, "full")["content"]
    assert content["title"] == "Full" and content["code"] == CODE and content["description"] == "All of it."
    for k in ("input_schema", "output_schema", "annotations", "icons", "meta"):
        assert content[k] == given[k]
    assert content["secrets"] == ["KEY_A", "KEY_B"]
    assert content["requires"] == ["api.example.org:443"] and "modules" not in content
    assert content["task"] == "optional" and content["confirm"] == 1
    for k, v in given["limits"].items():
        assert content[k] == v


def test_life_of_a_tool(instance, mcp, server):
    tool = mcp.manage("mcpbox_create_tool", server_id=server, name="life", python_code=CODE)["id"]

    def status():
        return mcp.manage("mcpbox_get_tool_status", tool_id=tool)

    s = status()
    assert s["approval_status"] == "draft" and s["approved_at"] is None and s["approval_requested_at"] is None
    assert s["module_requests"] == [] and s["network_access_requests"] == [] and s["created_by"] == "local"
    asked = mcp.manage("mcpbox_request_publish", tool_id=tool, notes="please")
    assert asked["status"] == "pending_review" and asked["version"] == 1
    # Asking twice is refused and says how it stands.
    assert "pending review" in refused(mcp.call("mcpbox_request_publish", {"tool_id": tool}), "conflict")
    waiting = mcp.manage("mcpbox_list_pending_requests")
    mine = next(p for p in waiting["pending_tools"] if p["id"] == tool)
    assert mine["request_id"] == asked["request_id"] and mine["server_name"] == "manage" and mine["version"] == 1
    assert waiting["summary"]["tools"] >= 1 and waiting["summary"]["total"] >= 1
    assert waiting["pending_module_requests"] == [] and waiting["pending_network_requests"] == []
    s = status()
    assert s["publish_notes"] == "please" and s["approval_requested_at"] and s["request_id"] == asked["request_id"]

    approve(instance, "life")
    s = status()
    assert s["approval_status"] == "approved" and s["approved_at"] and s["approved_by"] and s["callable"] is True
    assert s["serving_version"] == 1 and s["rejection_reason"] is None
    assert "manage__life" in mcp.tools()

    # An edit is a draft; the approved version serves on, byte for byte.
    up = mcp.manage("mcpbox_update_tool", tool_id=tool,
                    python_code=CODE.replace("name * times", "name.upper()"))
    assert up["version"] == 2 and up["approval_status"] == "draft"
    s = status()
    assert s["approval_status"] == "draft" and s["serving_version"] == 1 and s["callable"] is True
    assert mcp.call("manage__life", {"name": "a", "times": 3}).result["content"][0]["text"] == "aaa"

    mcp.manage("mcpbox_request_publish", tool_id=tool)
    item = flow.pending(instance, "life")
    instance.ctl("approvals", "reject", item["id"], "--reason", "too loud")
    s = status()
    assert s["approval_status"] == "rejected" and s["rejection_reason"] == "too loud" and s["serving_version"] == 1
    # A rejected version can be asked for again, as a new one.
    assert mcp.manage("mcpbox_request_publish", tool_id=tool)["version"] == 3
    approve(instance, "life")
    assert status()["serving_version"] == 3
    assert mcp.call("manage__life", {"name": "a"}).result["content"][0]["text"] == "A"


def test_update_tool(mcp, server):
    tool = mcp.manage("mcpbox_create_tool", server_id=server, name="edit", description="One.", title="T",
                      python_code=CODE)["id"]
    said = refused(mcp.call("mcpbox_update_tool", {"tool_id": tool}), "invalid_arguments")
    assert "nothing" in said
    refused(mcp.call("mcpbox_update_tool", {"tool_id": str(uuid.uuid4()), "description": "x"}), "not_found")
    # The same again makes no version.
    same = mcp.manage("mcpbox_update_tool", tool_id=tool, description="One.", python_code=CODE)
    assert "version" not in same and "Nothing changed" in same["message"]
    # Code alone: description and title stay, the schema is read anew.
    up = mcp.manage("mcpbox_update_tool", tool_id=tool, python_code="def main(x: int) -> int:\n    return x\n")
    assert up["version"] == 2 and up["input_schema"]["required"] == ["x"]
    row = next(t for t in mcp.manage("mcpbox_list_tools", server_id=server)["tools"] if t["id"] == tool)
    assert row["description"] == "One." and row["title"] == "T"
    # A new name; the old one is free again.
    up = mcp.manage("mcpbox_update_tool", tool_id=tool, name="edited")
    assert up["exposed_name"] == "manage__edited"
    mcp.manage("mcpbox_create_tool", server_id=server, name="edit", python_code=CODE)
    refused(mcp.call("mcpbox_update_tool", {"tool_id": tool, "name": "edit"}), "conflict")
    said = refused(mcp.call("mcpbox_update_tool", {"tool_id": tool, "python_code": "def main(:"}), "bad_code")
    assert "SyntaxError" in said


def test_enabled_is_a_switch_not_a_version(instance, mcp, server):
    name = flow.publish(instance, mcp, "manage", "switch", CODE)
    tool = next(t for t in mcp.manage("mcpbox_list_tools", server_id=server)["tools"] if t["name"] == "switch")
    off = mcp.manage("mcpbox_update_tool", tool_id=tool["id"], enabled=False)
    assert off["enabled"] is False and "version" not in off
    # Answered means gone: from the list and by name.
    assert name not in mcp.tools()
    assert mcp.call(name, {"name": "a"}).error
    s = mcp.manage("mcpbox_get_tool_status", tool_id=tool["id"])
    assert s["enabled"] is False and s["callable"] is False and s["approval_status"] == "approved"
    assert mcp.manage("mcpbox_update_tool", tool_id=tool["id"], enabled=True)["enabled"] is True
    assert name in mcp.tools() and not mcp.call(name, {"name": "a"}).result.get("isError")


def test_start_and_stop(instance, mcp):
    name = flow.publish(instance, mcp, "halting", "tool", CODE)
    sid = next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"] if s["name"] == "halting")
    again = mcp.manage("mcpbox_start_server", server_id=sid)
    assert again["status"] == "running" and again["changed"] is False and again["callable_tools"] == 1
    off = mcp.manage("mcpbox_stop_server", server_id=sid)
    assert off["status"] == "stopped" and off["changed"] is True and off["callable_tools"] == 0
    assert name not in mcp.tools() and mcp.call(name, {"name": "a"}).error
    assert mcp.manage("mcpbox_stop_server", server_id=sid)["changed"] is False
    assert mcp.manage("mcpbox_list_tools", server_id=sid)["tools"][0]["callable"] is False
    assert mcp.manage("mcpbox_start_server", server_id=sid)["changed"] is True
    assert name in mcp.tools() and not mcp.call(name, {"name": "a"}).result.get("isError")
    refused(mcp.call("mcpbox_start_server", {"server_id": str(uuid.uuid4())}), "not_found")


def test_each_call_has_one_record(instance, mcp):
    count = "SELECT count(*) FROM mcpbox.executions WHERE kind = 'management'"
    before = int(instance.psql(count)[0][0])
    mcp.manage("mcpbox_list_pending_requests")
    refused(mcp.call("mcpbox_list_tools", {"server_id": str(uuid.uuid4())}), "not_found")

    def rows():
        return instance.psql("SELECT tool, state, outcome, coalesce(failure, '') FROM mcpbox.executions WHERE kind = "
                             f"'management' ORDER BY created_at, id OFFSET {before}")
    until(lambda: {r[1] for r in rows()} == {"closed"}, say=rows)     # a row is closed after its answer
    assert rows() == [["mcpbox_list_pending_requests", "closed", "done", ""],
                    ["mcpbox_list_tools", "closed", "failed", "not_found"]]
