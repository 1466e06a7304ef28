"""The approval gate, attacked: nothing runs that was not approved as it is.
Each test ends by calling; what may run says which content it is."""
import json
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import text

SERVER = "gate"


def code(n):
    return f"def main() -> str:\n    return 'content {n}'\n"


def unique():
    return "t" + uuid.uuid4().hex[:10]


@pytest.fixture
def tool(mcp, rest):
    """An approved tool that says content 1: (id, name, exposed, request, hash)."""
    name = unique()
    tool_id = flow.draft(mcp, SERVER, name, code(1))
    request, digest = pending(mcp, rest, tool_id)
    assert approve(rest, request, digest)[0] == 200
    assert says(mcp, f"{SERVER}__{name}") == "content 1"
    return tool_id, name, f"{SERVER}__{name}", request, digest


def pending(mcp, rest, tool_id):
    request = mcp.manage("mcpbox_request_publish", tool_id=tool_id)["request_id"]
    return request, rest.get("/api/approvals/" + request)[2]["hash"]


def approve(rest, request, digest):
    return rest.request("POST", f"/api/approvals/{request}/approve", {}, {"If-Match": f'"{digest}"'})


def says(mcp, exposed):
    """What ran; None: nothing did."""
    r = mcp.call(exposed)
    if r.error is not None or r.result.get("isError"):
        return None
    return text(r)


def test_approve_while_editing(mcp, rest, tool):
    tool_id, _, exposed, _, _ = tool
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(2))
    request, digest = pending(mcp, rest, tool_id)
    done = []
    threads = [threading.Thread(target=lambda: done.append(approve(rest, request, digest)[0])),
               threading.Thread(target=lambda: mcp.manage("mcpbox_update_tool", tool_id=tool_id,
                                                          python_code=code(3)))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert done[0] in (200, 409)
    assert says(mcp, exposed) == ("content 2" if done[0] == 200 else "content 1")


def test_edit_after_review(mcp, rest, tool):
    tool_id, _, exposed, _, _ = tool
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(2))
    request, digest = pending(mcp, rest, tool_id)
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(3))
    fresh, other = pending(mcp, rest, tool_id)
    assert approve(rest, request, digest)[0] == 409             # superseded
    assert approve(rest, fresh, digest)[0] == 412               # the old hash for the new content
    assert says(mcp, exposed) == "content 1"
    assert approve(rest, fresh, other)[0] == 200 and says(mcp, exposed) == "content 3"


@pytest.mark.parametrize("change", [
    {"description": "Deletes nothing, honestly."}, {"annotations": {"readOnlyHint": True}},
    {"input_schema": {"type": "object", "properties": {}}}, {"title": "Harmless"},
    {"limits": {"timeout_ms": 600000}}, {"secrets": ["TOKEN"]}, {"requires": ["evil.example.org"]},
    {"confirm": True}])
def test_a_change_of_anything_is_reviewed(mcp, rest, tool, change):
    tool_id, _, exposed, _, digest = tool
    assert mcp.manage("mcpbox_update_tool", tool_id=tool_id, **change)["version_hash"] != digest
    listed = mcp.tools()[exposed]
    assert listed.get("title") != "Harmless" and "honestly" not in listed.get("description", "")
    assert listed.get("annotations", {}).get("readOnlyHint") is not True
    assert says(mcp, exposed) == "content 1"
    request, new = pending(mcp, rest, tool_id)
    assert new != digest and approve(rest, request, digest)[0] == 412


def test_rename(mcp, rest, tool):
    tool_id, _, exposed, _, digest = tool
    other = unique()
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, name=other, python_code=code(2))
    assert says(mcp, f"{SERVER}__{other}") is None and says(mcp, exposed) == "content 1"
    request, new = pending(mcp, rest, tool_id)
    assert approve(rest, request, new)[0] == 200
    assert says(mcp, exposed) is None                           # by the old name
    assert says(mcp, f"{SERVER}__{other}") == "content 2"
    # nobody takes the name over without review
    taken = flow.draft(mcp, SERVER, tool[1], code(9))
    assert says(mcp, exposed) is None
    request, digest = pending(mcp, rest, taken)
    assert says(mcp, exposed) is None
    assert approve(rest, request, digest)[0] == 200 and says(mcp, exposed) == "content 9"


def test_rollback_to_a_revoked_version(mcp, rest, tool):
    tool_id, _, exposed, request, digest = tool
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(2))
    second, new = pending(mcp, rest, tool_id)
    assert approve(rest, second, new)[0] == 200
    assert rest.request("POST", f"/api/approvals/{request}/revoke", {"reason": "bad"})[0] == 200
    mcp.manage("mcpbox_rollback_tool", tool_id=tool_id, version=1)
    assert says(mcp, exposed) == "content 2"
    again, same = pending(mcp, rest, tool_id)
    assert same == digest and says(mcp, exposed) == "content 2"
    assert approve(rest, request, digest)[0] == 409             # the old yes, replayed
    assert says(mcp, exposed) == "content 2"
    assert approve(rest, again, digest)[0] == 200 and says(mcp, exposed) == "content 1"


def test_taken_away(mcp, rest, tool):
    tool_id, _, exposed, request, digest = tool
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, enabled=False)
    assert says(mcp, exposed) is None and exposed not in mcp.tools()
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, enabled=True)
    assert says(mcp, exposed) == "content 1"
    assert rest.request("POST", f"/api/tools/{tool_id}/revoke", {"reason": "bad"})[0] == 200
    assert says(mcp, exposed) is None
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, enabled=True)     # a switch is no approval
    assert approve(rest, request, digest)[0] == 409 and says(mcp, exposed) is None


def test_deleted(mcp, rest, tool):
    tool_id, name, exposed, request, digest = tool
    mcp.manage("mcpbox_delete_tool", tool_id=tool_id)
    assert says(mcp, exposed) is None
    # the same bytes but the ids, under the same name: another tool
    again = flow.draft(mcp, SERVER, name, code(1))
    assert again != tool_id and says(mcp, exposed) is None
    fresh, other = pending(mcp, rest, again)
    assert other != digest and approve(rest, fresh, digest)[0] == 412 and says(mcp, exposed) is None


def test_a_stopped_and_a_deleted_server(mcp, rest):
    server, name = unique()[:12], unique()
    tool_id = flow.draft(mcp, server, name, code(1))
    request, digest = pending(mcp, rest, tool_id)
    assert approve(rest, request, digest)[0] == 200
    sid = [s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"] if s["name"] == server][0]
    mcp.manage("mcpbox_stop_server", server_id=sid)
    assert says(mcp, f"{server}__{name}") is None
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(2))
    request, digest = pending(mcp, rest, tool_id)
    assert approve(rest, request, digest)[0] == 200             # approving starts nothing
    assert says(mcp, f"{server}__{name}") is None
    mcp.manage("mcpbox_start_server", server_id=sid)
    assert says(mcp, f"{server}__{name}") == "content 2"
    mcp.manage("mcpbox_delete_server", server_id=sid)
    assert says(mcp, f"{server}__{name}") is None
    assert approve(rest, request, digest)[0] == 409 and says(mcp, f"{server}__{name}") is None


def test_the_same_bytes_under_another_tool_or_server(mcp, rest, tool):
    """Code alone is no identity: another tool's hash is another one, and neither
    approval passes for the other."""
    twin = flow.draft(mcp, SERVER, unique(), code(1))
    third = flow.draft(mcp, unique()[:12], tool[1], code(1))
    for t in (twin, third):
        request, digest = pending(mcp, rest, t)
        assert digest != tool[4] and approve(rest, request, tool[4])[0] == 412
        assert mcp.manage("mcpbox_get_tool_status", tool_id=t)["callable"] is False


def test_a_wider_host_under_an_approved_tool(mcp, rest, tool):
    """A grant gives nothing to a version that does not name the host, and a
    version that names a wider one waits for grant and review."""
    tool_id, _, exposed, _, _ = tool
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(2), requires=["a.gate.example.org"])
    request, digest = pending(mcp, rest, tool_id)
    assert approve(rest, request, digest)[0] == 200 and says(mcp, exposed) is None
    asked = mcp.manage("mcpbox_request_network_access", tool_id=tool_id, host="a.gate.example.org",
                       justification="x")["request_id"]
    assert approve(rest, asked, rest.get("/api/approvals/" + asked)[2]["hash"])[0] == 200
    assert says(mcp, exposed) == "content 2"
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(3), requires=["*.gate.example.org"])
    request, digest = pending(mcp, rest, tool_id)
    assert says(mcp, exposed) == "content 2"
    assert approve(rest, request, digest)[0] == 200
    assert says(mcp, exposed) is None                           # the wider one is not granted
    missing = mcp.call(exposed).result
    assert "*.gate.example.org" in json.dumps(missing)


def test_a_replayed_yes(mcp, rest, tool):
    tool_id, _, exposed, request, digest = tool
    for _ in range(2):
        assert approve(rest, request, digest)[0] == 409
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(2))
    fresh, _ = pending(mcp, rest, tool_id)
    assert approve(rest, fresh, digest)[0] == 412
    code_, _, answer = rest.request("POST", "/api/approvals/bulk", {
        "action": "approve", "items": [{"id": fresh, "hash": digest}, {"id": request, "hash": digest}]})
    assert code_ == 200 and answer["done"] == 0
    assert says(mcp, exposed) == "content 1"


def test_rows_that_say_approved(instance, mcp, rest, tool):
    """Somebody with the owner's rights writes what a taken-over admind could only
    dream of: the vault still wants its own seal over these bytes."""
    tool_id, _, exposed, _, _ = tool
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code(2))
    request, _ = pending(mcp, rest, tool_id)
    instance.psql(
        "ALTER TABLE mcpbox.tool_versions DISABLE TRIGGER USER; "
        "INSERT INTO mcpbox.approval_seals SELECT a.id, a.subject, a.hash, s.seal, now() "
        "FROM mcpbox.approval_requests a, mcpbox.approval_seals s JOIN mcpbox.tool_versions v ON v.id = s.subject "
        f"WHERE a.id = '{request}' AND v.tool_id = '{tool_id}'; "
        f"UPDATE mcpbox.tool_versions SET state = 'approved' WHERE tool_id = '{tool_id}' AND version_no = 2; "
        "ALTER TABLE mcpbox.tool_versions ENABLE TRIGGER USER; "
        "UPDATE mcpbox.tools SET serving_version = (SELECT id FROM mcpbox.tool_versions "
        f"WHERE tool_id = '{tool_id}' AND version_no = 2) WHERE id = '{tool_id}'")
    assert says(mcp, exposed) is None
