"""A house of some days for pictures: names and numbers are the same in each run. Tools, requests and some calls come by the
roads that people take; the calls of the day before are rows."""
import json
import types

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest

FORECAST = '''def main(city: str, days: int = 3) -> str:
    """Tells the weather of a city."""
    lines = [f"{city}: day {n + 1} is sunny" for n in range(days)]
    return "\\n".join(lines)
'''
CHART = '''def main(place: str) -> dict:
    """Tells when the tide is high and low."""
    return {"place": place, "high": ["03:12", "15:40"], "low": ["09:26", "21:51"]}
'''
WARNINGS = '''def main(region: str) -> list[str]:
    """Returns the warnings of a region."""
    return [f"{region}: strong wind in the evening"]
'''
#: The change that is reviewed: it reaches a host, takes a key and may run longer than its server allows by itself.
ASKS = '''import json
import urllib.request

import mcpbox


def main(region: str) -> list[str]:
    """Returns the warnings of a region, the newest first."""
    request = urllib.request.Request("https://alerts.example.org/v1/" + region)
    request.add_header("Authorization", "Bearer " + mcpbox.secrets["WEATHER_KEY"])
    with urllib.request.urlopen(request) as answer:
        found = json.load(answer)
    return [w["text"] for w in found["warnings"]]
'''
TOOLS = (
    ("weather", "forecast", FORECAST, "Tells the weather of a city for some days."),
    ("weather", "warnings", WARNINGS, "Lists the weather warnings of a region."),
    ("harbour", "tides", CHART, "Tells when the tide is high and low at a place."),
    ("harbour", "arrivals", "def main(day: str = 'today') -> list[str]:\n    return ['Nordlys at 08:30', 'Vega at 17:05']\n",
     "Lists the ships that arrive on a day."),
    ("office", "summary", "def main(text: str) -> str:\n    return text.split('.')[0] + '.'\n", "Sums up a text in one sentence."),
    ("office", "invoice", "def main(number: int) -> dict:\n    return {'number': number, 'paid': number % 2 == 0}\n",
     "Finds an invoice by its number."),
)
#: Calls in each of the 24 hours that lead to now, the newest last; errors in the same.
HOURS = (8, 5, 3, 2, 2, 4, 9, 22, 41, 58, 64, 60, 47, 66, 71, 63, 52, 38, 27, 24, 19, 16, 12, 14)
ERRORS = (0, 0, 0, 0, 0, 0, 1, 0, 2, 1, 0, 3, 1, 0, 5, 2, 0, 1, 0, 0, 1, 0, 0, 1)
#: The hour and the tool of the one call that went over a limit.
OVER = (21, "weather__warnings")
#: Milliseconds of a call in each.
TOOK = (31, 29, 27, 26, 28, 30, 34, 39, 44, 47, 52, 49, 45, 58, 83, 61, 50, 43, 40, 38, 36, 35, 33, 34)
#: Tool, its part of a hundred calls, and its caller.
SHARES = (("weather__forecast", 38, "local"), ("harbour__tides", 24, "token:planner"), ("office__summary", 18, "oidc:company:anna"),
          ("weather__warnings", 12, "token:planner"), ("office__invoice", 8, "oidc:company:anna"))
#: Rows of the newest calls: minutes ago, tool, caller, ending, failure, ms, arguments.
CALLS = (
    (2, "weather__forecast", "local", "done", None, 34, {"city": "Oslo", "days": 3}),
    (4, "harbour__tides", "token:planner", "done", None, 41, {"place": "Bergen"}),
    (9, "office__summary", "oidc:company:anna", "done", None, 29, {"text": "The board met on Monday. It was short."}),
    (13, "office__invoice", "oidc:company:anna", "failed", "exception", 22, {"number": 4711}),
    (17, "weather__forecast", "local", "done", None, 37, {"city": "Hamar"}),
    (26, "weather__warnings", "token:planner", "done", None, 52, {"region": "north"}),
    (38, "harbour__tides", "token:planner", "done", None, 40, {"place": "Tromso"}),
    (51, "weather__forecast", "local", "done", None, 35, {"city": "Molde", "days": 1}),
    (64, "office__summary", "oidc:company:anna", "done", None, 31, {"text": "Sales rose by a tenth. Costs did not."}),
    (122, "weather__warnings", "token:planner", "killed", "limit", 88, {"region": "coast"}),
    (185, "harbour__arrivals", "local", "done", None, 28, {"day": "today"}),
    (244, "weather__forecast", "local", "done", None, 36, {"city": "Oslo"}),
)
#: How long ago each request was asked for, in minutes; the key is the tool's name.
ASKED = {"warnings": 42, "tides": 95, "translate": 190}


def rows(instance):
    """Writes the day's calls. Triggers are off: nobody made these, so no process says how they ended."""
    sql = ["SET session_replication_role = replica", "SET search_path = mcpbox", "TRUNCATE execution_stats, execution_hours,"
           " execution_days, execution_index, executions",
           "DELETE FROM execution_queue"]
    for n, (ago, tool, caller, ending, failure, ms, arguments) in enumerate(CALLS):
        fail = "NULL" if failure is None else f"'{failure}'"
        begun = f"clock_timestamp() - interval '{ago} minutes 20 seconds'"
        way = "'local'" if caller == "local" else "'tunnel'"
        sql.append(
            "INSERT INTO executions (id, kind, state, outcome, failure, delivered, owner_epoch, principal, listener, tool, version_id,"
            " version_hash, args_sha256, arguments, created_at, deadline, started_at, ended_at, cpu_us, stdout, result)"
            f" SELECT '0000000{n:x}-0000-4000-8000-000000000000', 'tool', 'closed', '{ending}', {fail}, true, (SELECT epoch FROM epochs"
            f" LIMIT 1), '{caller}', {way}, '{tool}', v.id, v.hash, sha256('{n}'), $${json.dumps(arguments)}$$, b, b + interval '60 s',"
            f" b, b + interval '{ms} ms', 1000, '', '{{\"content\":[]}}' FROM (SELECT {begun} AS b) x, tool_versions v JOIN tools t ON"
            f" t.serving_version = v.id WHERE v.exposed_name = '{tool}'")
    sql.append(
        "INSERT INTO execution_index SELECT e.id, e.created_at, e.tool, e.principal, e.listener, e.kind, e.outcome, e.failure,"
        " e.version_id, t.server_id, NULL, '' FROM executions e JOIN tool_versions v ON v.id = e.version_id JOIN tools t ON t.id = v.tool_id")
    for n, (calls, errors, took) in enumerate(zip(HOURS, ERRORS, TOOK, strict=True)):
        hour = f"date_trunc('hour', clock_timestamp() - interval '{len(HOURS) - 1 - n} hours', 'UTC')"
        for tool, share, caller in SHARES:
            well = max(1, calls * share // 100)
            bad, over = errors if tool == "office__invoice" else 0, 1 if (n, tool) == OVER else 0
            for ending, failure, number in (("done", "", well), ("failed", "exception", bad), ("killed", "limit", over)):
                if number:
                    sql.append(
                        f"INSERT INTO execution_stats VALUES ({hour}, '{tool}', '{caller}', '{'local' if caller == 'local' else 'tunnel'}',"
                        f" 'tool', '{ending}', '{failure}', {number}, {number * took * 1000}, {took * 2000}, {number * 9000})")
    sql.append("SELECT execution_sum(array_agg(s)) FROM execution_stats s GROUP BY hour")
    for name, ago in ASKED.items():
        sql.append(f"UPDATE approval_requests a SET requested_at = clock_timestamp() - interval '{ago} minutes 20 seconds', requested_by ="
                   f" 'oidc:company:anna' FROM tools t WHERE t.id = a.tool_id AND t.name = '{name}' AND a.state = 'pending'")
    sql += [f"UPDATE {table} SET created_at = clock_timestamp() - interval '5 days 1 hour'" for table in ("tools", "tool_versions", "api_tokens")]
    instance.psql("; ".join(sql))


def build(instance):
    """The ids of what pictures show: `asks` is the change that is reviewed, `tool` a tool that serves."""
    rest = Rest(lambda: instance.address("admind-http"))
    assert rest.login("admin", instance.password)[0] == 200
    with Client(instance.address) as mcp:
        for server, name, code, description in TOOLS:
            flow.publish(instance, mcp, server, name, code, description=description)
        assert rest.request("POST", "/api/servers/weather/secrets", {"key": "WEATHER_KEY", "description": "Of the weather service."})[0] in (200, 201)
        ids = {t["exposed_name"]: t["id"] for t in rest.get("/api/tools")[2]["items"]}
        warnings, tides = ids["weather__warnings"], ids["harbour__tides"]
        mcp.manage("mcpbox_update_tool", tool_id=warnings, python_code=ASKS, secrets=["WEATHER_KEY"], limits={"timeout_ms": 30_000},
                   requires=["alerts.example.org"])
        asks = mcp.manage("mcpbox_request_publish", tool_id=warnings, notes="Warnings come from the weather service now.")["request_id"]
        mcp.manage("mcpbox_update_tool", tool_id=tides, python_code=CHART.replace("03:12", "03:15"))
        mcp.manage("mcpbox_request_publish", tool_id=tides, notes="The table of this year is three minutes later.")
        new = flow.draft(mcp, "office", "translate", "def main(text: str, to: str) -> str:\n    return text\n", description="Translates a text.")
        mcp.manage("mcpbox_request_publish", tool_id=new, notes="For letters to customers abroad.")
    for name, allow in (("planner", ["harbour__*", "weather__*"]), ("night-report", ["office__summary"])):
        assert rest.request("POST", "/api/tokens", {"name": name, "allow": allow})[0] in (200, 201)
    rows(instance)
    return types.SimpleNamespace(asks=asks, tool=ids["weather__forecast"])
