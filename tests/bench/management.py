"""Management calls, as an agent makes them: on a small suite, where the original
was measured, then with ten thousand tools and a million records (harness/scale).

One client that sends the next call when it has the last answer, as the original
was measured; then eight, whose records wait in a queue that lists read as well."""
import json

import psycopg

from harness import scale
from harness.clients.mcp import Client
from suite import program
from values import Values

SERVER, TOOL = "00000001-0000-7000-8000-000000000001", "00000002-0000-7000-8000-000000000003"
# tool -> arguments, of what scale.fill() made
CALLS = {
    "mcpbox_get_tool_logs": {"tool_id": TOOL},
    "mcpbox_list_servers": {},
    "mcpbox_list_tools": {"server_id": SERVER},
    "mcpbox_get_tool": {"tool_id": TOOL},
    "mcpbox_get_tool_status": {"tool_id": TOOL},
    "mcpbox_search_tools": {"query": "weather 77"},
    "mcpbox_list_pending_requests": {},
}
CLIENTS = (1, 8)


def load(suite, tool, arguments, clients, ms):
    r = program("load", "-c", clients, "-t", ms, "-T", tool, "-a", json.dumps(arguments),
                "-e", '"structuredContent"', *suite.address())
    if set(r["endings"]) != {"done"}:
        raise RuntimeError(f"calls of {tool} went wrong: {r['endings']}")
    return r


def management(suite, rounds, ms, say):
    """The suite is full afterwards: nothing else may be measured on it."""
    v = Values()
    say("management calls, a small suite")
    for _ in range(rounds):
        v.times("small", load(suite, "mcpbox_list_servers", {}, 1, ms))
    say("management calls: making ten thousand tools")
    with psycopg.connect(f"host={suite.run('postgresql')} user=postgres dbname=mcpbox",
                         autocommit=True) as db:
        scale.fill(db)
        # as after a while of use: plans know how much there is
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                   " WHERE usename = 'mcpbox_app'")
    suite.tool("wait")
    with Client(suite.address) as c:
        for tool, arguments in CALLS.items():
            if c.call(tool, arguments).result.get("isError"):
                raise RuntimeError(f"{tool} fails with ten thousand tools")
    for clients in CLIENTS:
        for n in range(rounds):
            say(f"management calls, {clients} at once, round {n + 1} of {rounds}")
            for tool, arguments in CALLS.items():
                v.times(f"{tool} {clients}", load(suite, tool, arguments, clients, ms))
    return v
