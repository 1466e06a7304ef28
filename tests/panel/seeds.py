"""What the tests of the panel put into an instance, by the roads that people take."""
import json
import secrets
import types

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest

FORECAST = '''def main(city: str, days: int = 3) -> str:
    """Returns a forecast."""
    # ask the weather service
    lines = [f"{city}: day {n} is sunny" for n in range(days)]
    return "\\n".join(lines)
'''
FAILS = "def main() -> str:\n    raise ValueError('no such city')\n"


def login(instance):
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    return r


def person(rest, instance, role):
    """A new administrator of a role: (name, password)."""
    name, password = role + "_" + secrets.token_hex(3), secrets.token_urlsafe(18)
    answer = rest.request("POST", "/api/administrators", {
        "username": name, "new_password": password, "role": role, "password": instance.password})
    assert answer[0] == 204, answer
    return name, password


def tool_id(rest, exposed):
    [row] = [t for t in rest.get("/api/tools?limit=200")[2]["items"] if t["exposed_name"] == exposed]
    return row["id"]


def make(instance):
    """An approved tool with calls that went well and badly, a change of it that waits, a new tool that waits, and a draft.
    The ids by name."""
    rest = login(instance)
    with Client(instance.address) as mcp:
        flow.publish(instance, mcp, "weather", "forecast", FORECAST, description="Tells the weather of a city.")
        flow.publish(instance, mcp, "weather", "fails", FAILS, description="Fails, for the records.")
        mcp.call("weather__forecast", {"city": "Oslo", "days": 2})
        mcp.call("weather__forecast", {"days": "x"})
        mcp.call("weather__fails")
        tool = tool_id(rest, "weather__forecast")
        mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=FORECAST.replace("sunny", "rainy"))
        change = mcp.manage("mcpbox_request_publish", tool_id=tool, notes="The forecast was too sunny.")["request_id"]
        new = flow.draft(mcp, "notes", "count", "def main(text: str) -> dict:\n    return {'n': len(text)}\n",
                         description="Counts characters.")
        request = mcp.manage("mcpbox_request_publish", tool_id=new, notes="Needed for the essay.")["request_id"]
        draft = flow.draft(mcp, "notes", "later", "def main() -> int:\n    return 1\n", description="Comes later.")
    servers = {s["name"]: s["id"] for s in rest.get("/api/servers")[2]["items"]}
    call = rest.get("/api/executions?tool=weather__forecast")[2]["items"][0]["id"]
    assert rest.request("POST", "/api/servers/weather/secrets", {"key": "API_KEY", "description": "Of the service."})[0] in (200, 201)
    return types.SimpleNamespace(tool=tool, change=change, request=request, draft=draft, new=new, servers=servers, call=call,
                                 rest=rest)


def more(instance, world):
    """What only single pages show: a prompt, a resource, a source with tools that are known. The world with their ids."""
    with Client(instance.address) as mcp:
        prompt = mcp.manage("mcpbox_create_prompt", server_id=world.servers["notes"], name="summary", description="Sums up.",
                            text="Sum up {words}.", arguments=[{"name": "words", "description": "The words.", "required": True}])["id"]
        resource = mcp.manage("mcpbox_create_resource", server_id=world.servers["notes"], name="guide", uri="notes://guide",
                              description="Guides.", text="Turn left.\n")["id"]
    answer = world.rest.request("POST", f"/api/servers/{world.servers['weather']}/sources",
                                {"name": "far", "url": "https://mcp.example.org/mcp", "auth_type": "none"})
    assert answer[0] == 200, answer
    source = answer[2]["id"]
    for name, sha in (("ping", "ab"), ("rain", "cd")):
        known = json.dumps({"description": "Of the source.", "input_schema": {"type": "object", "properties": {}}})
        instance.psql(f"INSERT INTO mcpbox.source_tools VALUES ('{source}', '{name}', repeat('{sha}', 32), $${known}$$)")
    instance.psql(f"UPDATE mcpbox.external_sources SET tool_count = 2, last_discovered_at = clock_timestamp() WHERE id = '{source}'")
    server = world.servers["weather"]
    return types.SimpleNamespace(**vars(world), prompt=prompt, resource=resource, source=source, server=server)
