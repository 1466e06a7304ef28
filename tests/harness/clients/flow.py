"""From nothing to an approved tool, by the roads a person would take."""


def draft(client, server, tool, code, description="A tool of the tests.", **more):
    """Creates the server unless it exists, then the tool: its id. more: other
    arguments of mcpbox_create_tool."""
    known = {s["name"]: s["id"] for s in client.manage("mcpbox_list_servers")["servers"]}
    server_id = known.get(server) or client.manage(
        "mcpbox_create_server", name=server, description="Of the tests.")["id"]
    return client.manage("mcpbox_create_tool", server_id=server_id, name=tool,
                         description=description, python_code=code, **more)["id"]


def pending(instance, tool_name):
    """The pending approval request of a tool, as mcpboxctl shows it."""
    for item in instance.ctl_json("approvals", "list")["items"]:
        if (item["tool"] == tool_name and item["kind"] == "tool"
                and item.get("state", "pending") == "pending"):
            return instance.ctl_json("approvals", "show", item["id"])
    raise AssertionError(f"no pending request for {tool_name}")


def publish(instance, client, server, tool, code, **more):
    """An approved tool; returns its exposed name."""
    tool_id = draft(client, server, tool, code, **more)
    client.manage("mcpbox_request_publish", tool_id=tool_id)
    item = pending(instance, tool)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    return f"{server}__{tool}"
