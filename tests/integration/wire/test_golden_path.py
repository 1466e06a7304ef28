"""One tool from draft to answer, over MCP and REST, and what each step leaves
behind."""
import hashlib
import json
import re

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, Client, text
from harness.patience import patience

GREET = '''\
def main(name: str = "world", times: int = 1) -> str:
    """Greets.

    Args:
        name: Who is greeted.
        times: How often.
    """
    return "Hello, " + name + "!" * times
'''


@pytest.fixture(scope="module")
def greet(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "golden", "greet", GREET)


def test_draft_is_neither_listed_nor_callable(instance, mcp):
    flow.draft(mcp, "golden", "unseen", "def main() -> int:\n    return 1\n")
    assert "golden__unseen" not in mcp.tools()
    r = mcp.call("golden__unseen", {})
    assert r.status == 200 and r.error, r


def test_approval_over_rest_then_call(instance, mcp, rest):
    tool_id = flow.draft(mcp, "golden", "shout", GREET)
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)["approval_status"] == "draft"
    mcp.manage("mcpbox_request_publish", tool_id=tool_id, notes="please")
    status = mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)
    assert status["approval_status"] == "pending_review"

    code, _, page = rest.get("/api/approvals?kind=tool&state=pending")
    assert code == 200
    item = next(i for i in page["items"] if i["tool"] == "shout")
    code, headers, whole = rest.get(f"/api/approvals/{item['id']}")
    assert code == 200
    # The content is exactly what was drafted; the ETag is its hash.
    assert whole["content"]["code"] == GREET
    assert whole["content"]["exposed_name"] == "golden__shout"
    assert headers["etag"] == f'"{whole["hash"]}"'
    assert re.fullmatch("[0-9a-f]{64}", whole["hash"])

    code, _, _ = rest.request("POST", f"/api/approvals/{item['id']}/approve", {},
                              {"If-Match": headers["etag"]})
    assert code in (200, 204)
    status = mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)
    assert status["approval_status"] == "approved"
    # Approval is answered only once gateways dropped their cached lists.
    assert "golden__shout" in mcp.tools()
    assert text(mcp.call("golden__shout", {"name": "Ada", "times": 3})) == "Hello, Ada!!!"


def test_schema_comes_from_the_signature(instance, mcp, greet):
    schema = mcp.tools()[greet]["inputSchema"]
    assert schema["properties"]["name"]["type"] == "string"
    assert schema["properties"]["name"]["default"] == "world"
    assert schema["properties"]["name"]["description"] == "Who is greeted."
    assert schema["properties"]["times"]["type"] == "integer"
    assert schema.get("required", []) == []


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])
def test_every_revision_calls(instance, greet, version):
    with Client(instance.address, version) as c:
        r = c.call(greet, {"name": "Eve"})
        assert text(r) == "Hello, Eve!", r
        assert not r.result.get("isError")


def test_result_names_its_execution_and_the_record_agrees(instance, mcp, greet):
    r = mcp.call(greet, {"name": "record"})
    e = r.result["_meta"]["mcpbox/execution"]
    execution = e["execution_id"].replace("-", "")
    rows = instance.psql(
        "SELECT state, outcome, principal, listener, tool, encode(args_sha256, 'hex'), arguments, "
        f"delivered, result FROM mcpbox.executions WHERE replace(id::text, '-', '') = '{execution}'")
    # The record follows the answer; ask until it is committed.
    deadline = patience(50)
    while rows and rows[0][0] == "open" and deadline > 0:
        rows = instance.psql(
            "SELECT pg_sleep(0.1), state, outcome, principal, listener, tool, "
            "encode(args_sha256, 'hex'), arguments, delivered, result FROM mcpbox.executions "
            f"WHERE replace(id::text, '-', '') = '{execution}'")
        rows = [r[1:] for r in rows]
        deadline -= 1
    assert len(rows) == 1
    state, outcome, principal, listener, tool, digest, arguments, delivered, result = rows[0]
    assert (state, outcome, principal, listener, tool) == ("closed", "done", "local", "local", greet)
    assert json.loads(arguments) == {"name": "record"}
    assert digest == hashlib.sha256(arguments.encode()).hexdigest()
    assert delivered == "t"
    assert "Hello, record!" in result


def test_update_needs_a_new_approval_and_the_old_one_serves_on(instance, mcp):
    name = flow.publish(instance, mcp, "golden", "evolving", "def main() -> str:\n    return 'one'\n")
    tools = mcp.manage("mcpbox_list_tools", server_id=server_id(mcp, "golden"))["tools"]
    tool_id = next(t["id"] for t in tools if t["name"] == "evolving")
    mcp.manage("mcpbox_update_tool", tool_id=tool_id,
               python_code="def main() -> str:\n    return 'two'\n")
    assert text(mcp.call(name, {})) == "one"
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    assert text(mcp.call(name, {})) == "one"
    item = flow.pending(instance, "evolving")
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    assert text(mcp.call(name, {})) == "two"


def server_id(mcp, name):
    return next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == name)


def test_stop_and_start_of_a_server_hold_at_once(instance, mcp):
    name = flow.publish(instance, mcp, "switch", "light", "def main() -> str:\n    return 'on'\n")
    sid = server_id(mcp, "switch")
    for _ in range(2):
        mcp.manage("mcpbox_stop_server", server_id=sid)	# idempotent
    assert name not in mcp.tools()
    r = mcp.call(name, {})
    assert r.status == 200 and r.error, r
    for _ in range(2):
        mcp.manage("mcpbox_start_server", server_id=sid)
    assert name in mcp.tools()
    assert text(mcp.call(name, {})) == "on"


def test_rejection_tells_the_author_why(instance, mcp):
    tool_id = flow.draft(mcp, "golden", "unloved", "def main():\n    return 1\n")
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    item = flow.pending(instance, "unloved")
    instance.ctl("approvals", "reject", item["id"], "--reason", "Not useful.")
    status = mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)
    assert status["approval_status"] == "rejected"
    assert status["rejection_reason"] == "Not useful."
    r = mcp.call("golden__unloved", {})
    assert r.error, r


def test_pending_requests_are_listed(instance, mcp):
    tool_id = flow.draft(mcp, "golden", "waiting", "def main():\n    return 1\n")
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    listed = mcp.manage("mcpbox_list_pending_requests")
    assert "waiting" in [t["name"] for t in listed["pending_tools"]]


def test_a_legacy_session_works_beside_a_modern_one(instance, greet):
    with Client(instance.address, LEGACY) as old, Client(instance.address) as new:
        assert text(old.call(greet, {"name": "old"})) == "Hello, old!"
        assert text(new.call(greet, {"name": "new"})) == "Hello, new!"
        assert set(old.tools()) == set(new.tools())
