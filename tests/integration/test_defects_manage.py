"""Defects of MCPBox that were verified there, by their number (8.5): those of
servers, tools and versions. Each test does what went wrong there."""
import uuid

import pytest

from harness.mcp import Client, text

CODE = 'def main() -> str:\n    return "RAN"\n'
MANY = 60    # MCPBox served, listed and started the first 50


@pytest.fixture(scope="module")
def client(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture
def server(client):
    name = "d" + uuid.uuid4().hex[:10]
    return client.manage("mcpbox_create_server", name=name)["id"], name


def draft(client, server, name="tool", code=CODE):
    return client.manage("mcpbox_create_tool", server_id=server[0], name=name, python_code=code)["id"]


def approve(instance, client, *tools):
    """In one go, each with the hash of what is asked for."""
    for t in tools:
        client.manage("mcpbox_request_publish", tool_id=t)
    items, cursor = {}, []
    while True:
        page = instance.ctl_json("approvals", "list", "--limit", "200", *cursor)
        items.update({i["tool_id"]: i for i in page["items"] if i["state"] == "pending"})
        if not page["next_cursor"]:
            break
        cursor = ["--cursor", page["next_cursor"]]
    lines = "".join(f"{items[t]['id']} {items[t]['hash']}\n" for t in tools)
    instance.ctl("approvals", "bulk", "approve", stdin=lines)


def mode(reply):
    return reply.error["data"]["failure_mode"] if reply.error else "ran"


def test_1_starting_a_server_makes_no_unapproved_tool_callable(instance, client, rest, server):
    """Drafts, pending, rejected and disabled tools could be called by name once an administrator started the server."""
    tools = {n: draft(client, server, n) for n in ("draft", "pending", "rejected", "disabled", "good")}
    approve(instance, client, tools["good"], tools["disabled"])
    client.manage("mcpbox_update_tool", tool_id=tools["disabled"], enabled=False)
    for n in ("pending", "rejected"):
        client.manage("mcpbox_request_publish", tool_id=tools[n])
    item = next(i for i in instance.ctl_json("approvals", "list")["items"] if i["tool_id"] == tools["rejected"])
    instance.ctl("approvals", "reject", item["id"], "--reason", "no")
    path = f"/api/servers/{server[0]}"
    for what in ("stop", "start", "start"):
        assert rest.request("POST", f"{path}/{what}", {})[0] == 200
    instance.ctl("servers", "stop", server[1])
    instance.ctl("servers", "start", server[1])
    client.manage("mcpbox_start_server", server_id=server[0])
    listed = client.tools()
    for n in tools:
        name = f"{server[1]}__{n}"
        for call in (lambda: client.call(name, {}), lambda: client.call("mcpbox_call_tool", {"name": name})):
            r = call()
            if n == "good":
                assert text(r) == "RAN"
            else:
                assert mode(r) in ("not_approved", "stopped"), (n, r)
        assert (name in listed) == (n == "good")


def test_2_a_deleted_servers_tools_are_gone(instance, client, server):
    tool = draft(client, server)
    approve(instance, client, tool)
    name = f"{server[1]}__tool"
    assert text(client.call(name, {})) == "RAN"
    client.manage("mcpbox_delete_server", server_id=server[0])
    assert client.call(name, {}).error["code"] == -32602 and name not in client.tools()
    # nor under a new server of that name
    again = client.manage("mcpbox_create_server", name=server[1])["id"]
    assert client.call(name, {}).error["code"] == -32602
    draft(client, (again, server[1]))
    assert mode(client.call(name, {})) == "not_approved"


def test_3_rolling_back_leaves_nothing_that_is_not_shown(instance, client, server):
    """The old code stayed callable while the tool was hidden from the list."""
    tool = draft(client, server)
    approve(instance, client, tool)
    client.manage("mcpbox_update_tool", tool_id=tool, python_code=CODE.replace("RAN", "SECOND"))
    approve(instance, client, tool)
    name = f"{server[1]}__tool"
    assert text(client.call(name, {})) == "SECOND"
    client.manage("mcpbox_rollback_tool", tool_id=tool, version=1)
    # what runs is what is listed, and what is listed is what was approved
    assert text(client.call(name, {})) == "SECOND" and name in client.tools()
    assert client.manage("mcpbox_get_tool_status", tool_id=tool)["serving_version"] == 2
    approve(instance, client, tool)
    assert text(client.call(name, {})) == "RAN"
    instance.psql(f"SELECT mcpbox.revoke_version((SELECT serving_version FROM mcpbox.tools WHERE id = '{tool}'),"
                  " 'bad', 'root')", role="mcpbox_owner")
    client.manage("mcpbox_rollback_tool", tool_id=tool, version=2)
    assert mode(client.call(name, {})) in ("revoked", "not_approved") and name not in client.tools()


def test_5_no_schema_says_required_null(client, server):
    draft(client, server)
    for t in client.tools().values():
        assert isinstance(t["inputSchema"].get("required", []), list), t["name"]


def test_8_a_server_has_more_than_fifty_tools(instance, client, server):
    tools = [draft(client, server, f"t{n}") for n in range(MANY)]
    approve(instance, client, *tools)
    pages = [client.manage("mcpbox_list_tools", server_id=server[0], page=p, page_size=25) for p in (1, 2, 3)]
    assert [len(p["tools"]) for p in pages] == [25, 25, 10] and all(p["total"] == MANY for p in pages)
    assert client.manage("mcpbox_stop_server", server_id=server[0])["changed"] is True
    assert client.manage("mcpbox_start_server", server_id=server[0])["callable_tools"] == MANY
    listed = client.tools()
    for n in range(MANY):
        assert f"{server[1]}__t{n}" in listed
    for n in (0, 49, 50, 51, MANY - 1):
        assert text(client.call(f"{server[1]}__t{n}", {})) == "RAN"


def test_19_a_name_is_one_things(client, server):
    """A second tool of a name was HTTP 500, a second server of a name was taken."""
    draft(client, server)
    for name, arguments in (("mcpbox_create_tool", {"server_id": server[0], "name": "tool", "python_code": CODE}),
                            ("mcpbox_create_prompt", {"server_id": server[0], "name": "tool", "text": "t"}),
                            ("mcpbox_create_server", {"name": server[1]})):
        r = client.call(name, arguments)
        assert r.status == 200 and r.result["isError"] is True
        assert r.result["_meta"]["mcpbox/failure"]["failure_mode"] == "conflict", r


def test_20_a_tool_is_tried_before_it_is_approved(client, server):
    tool = draft(client, server)
    assert client.manage("mcpbox_test_code", tool_id=tool)["result"]["content"][0]["text"] == "RAN"
    assert mode(client.call(f"{server[1]}__tool", {})) == "not_approved"
