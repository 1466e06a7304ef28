"""The twenty defects that were verified in the system this one replaces, by
their numbers. Each test makes what led to the defect and says in its first
line what the old system answered; all of it through real daemons."""
import concurrent.futures
import json
import pathlib
import subprocess
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, Client, request, text
from harness.clients.rest import Rest
from harness.patience import patience, until

SERVER = "defects"
MARK = "def main():\n    return 'IT RAN'\n"
#: Longer than the 30 s after which the old gateway sent a call once more.
LONG_S = 33


def unique(prefix="t"):
    return prefix + uuid.uuid4().hex[:10]


def failure(reply):
    """The failure mode of a call that did not run; the call must not have."""
    assert b"IT RAN" not in reply.raw, reply
    if reply.error:
        return reply.error["data"]["failure_mode"]
    assert reply.result.get("isError"), reply
    return reply.result["_meta"]["mcpbox/failure"]["failure_mode"]


def approve(instance, mcp, tool_id, name):
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def server_id(mcp, name):
    return next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"] if s["name"] == name)


def records(instance, name, n):
    """A tool's calls, closed: a record follows the answer."""
    def items():
        return instance.ctl_json("executions", f"tool={name}", "kind=tool")["items"]
    return until(lambda: i if len(i := items()) >= n and all(e["state"] == "closed" for e in i) else None,
                 10, 0.05, say=items)


@pytest.fixture(scope="module")
def long_call(instance):
    """Begins before the other tests and is looked at by its own (10)."""
    with Client(instance.address) as c:
        name = flow.publish(instance, c, SERVER, unique("long"), "import time\ndef main():\n"
                            f"    time.sleep({LONG_S})\n    return 'slept'\n", limits={"timeout_ms": 60000})
    got = {}

    def run():
        with Client(instance.address, timeout=patience(120)) as c:
            got["reply"] = c.call(name)

    t = threading.Thread(target=run)
    t.start()
    yield name, t, got
    t.join()


@pytest.fixture(autouse=True)
def begun(long_call):
    """Every test runs beside the long call."""


def test_defect_01_nothing_unapproved_is_callable_by_name(instance, mcp, rest):
    """Old: starting a server made drafts, pending, rejected and disabled tools callable: "DRAFT RAN"."""
    s = unique("s")
    names = {k: unique(k[:5]) for k in ("draft", "pending", "rejected", "disabled", "good")}
    ids = {k: flow.draft(mcp, s, n, MARK) for k, n in names.items()}
    for k in ("disabled", "good"):
        approve(instance, mcp, ids[k], names[k])
        assert text(mcp.call(f"{s}__{names[k]}")) == "IT RAN"   # the canary can be seen
    mcp.manage("mcpbox_update_tool", tool_id=ids["disabled"], enabled=False)
    mcp.manage("mcpbox_request_publish", tool_id=ids["rejected"])
    instance.ctl("approvals", "reject", flow.pending(instance, names["rejected"])["id"], "--reason", "no")
    mcp.manage("mcpbox_request_publish", tool_id=ids["pending"])
    sid = server_id(mcp, s)

    def none_runs():
        for k in ("draft", "pending", "rejected", "disabled"):
            failure(mcp.call(f"{s}__{names[k]}"))
            failure(mcp.call("mcpbox_call_tool", {"name": f"{s}__{names[k]}", "arguments": {}}))

    none_runs()
    mcp.manage("mcpbox_stop_server", server_id=sid)
    mcp.manage("mcpbox_start_server", server_id=sid)
    none_runs()
    assert rest.request("POST", f"/api/servers/{sid}/stop", {})[0] == 200
    assert rest.request("POST", f"/api/servers/{sid}/start", {})[0] == 200
    none_runs()
    assert [n for n in mcp.tools() if n.startswith(s + "__")] == [f"{s}__{names['good']}"]
    assert text(mcp.call(f"{s}__{names['good']}")) == "IT RAN"


def test_defect_02_tools_of_a_deleted_server_end(instance, mcp):
    """Old: deleting a running server removed rows; its tools answered on."""
    s = unique("s")
    name = flow.publish(instance, mcp, s, "t", MARK)
    assert text(mcp.call(name)) == "IT RAN"
    mcp.manage("mcpbox_delete_server", server_id=server_id(mcp, s))
    assert failure(mcp.call(name)) == "unknown_tool"
    assert name not in mcp.tools()


def test_defect_03_a_rollback_hides_and_reveals_nothing(instance, mcp):
    """Old: a rollback hid the tool from the list and left the code it replaced callable."""
    tool, code = unique(), "def main():\n    return 'version {}'\n"
    tool_id = flow.draft(mcp, SERVER, tool, code.format(1))
    approve(instance, mcp, tool_id, tool)
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=code.format(2))
    approve(instance, mcp, tool_id, tool)
    name = f"{SERVER}__{tool}"
    mcp.manage("mcpbox_rollback_tool", tool_id=tool_id, version=1)
    assert name in mcp.tools() and text(mcp.call(name)) == "version 2"
    status = mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)
    assert status["approval_status"] == "draft"
    instance.ctl("call", "tool_revoke", tool_id, "reason=of the test")
    assert name not in mcp.tools()
    r = mcp.call(name)      # and version 1, approved once, is not behind it either
    assert r.error and r.error["data"]["failure_mode"] in ("unknown_tool", "revoked", "not_approved"), r
    approve(instance, mcp, tool_id, tool)
    assert text(mcp.call(name)) == "version 1"


def test_defect_05_no_schema_has_null_where_a_list_belongs(instance, mcp):
    """Old: `"required": null` for tools without parameters; SDKs refused the whole list."""
    flow.publish(instance, mcp, SERVER, unique(), MARK)
    for tool in mcp.tools().values():
        for schema in (tool["inputSchema"], tool.get("outputSchema", {})):
            assert "null" not in json.dumps({k: v for k, v in schema.items() if k in ("required", "properties")}
                                            if schema.get("required") is None else {}), tool
            assert isinstance(schema.get("required", []), list), tool


def test_defect_06_ping(instance):
    """Old: -32601."""
    for version in (LEGACY, "2025-06-18", "2025-03-26"):
        with Client(instance.address, version=version) as c:
            assert c.request("ping").result == {}


def test_defect_07_results_are_json(instance, mcp):
    """Old: repr, `{'ok': True, 'none': None}`."""
    name = flow.publish(instance, mcp, SERVER, unique(),
                        "def main():\n    return {'ok': True, 'none': None, 'text': \"it's\"}\n")
    assert json.loads(text(mcp.call(name))) == {"ok": True, "none": None, "text": "it's"}


def test_defect_08_more_than_fifty_tools_of_a_server(instance, mcp):
    """Old: the fifty-first tool of a server was neither listed nor registered."""
    s = unique("s")
    first = flow.draft(mcp, s, "t00", MARK)
    sid = mcp.manage("mcpbox_get_tool", tool_id=first)["server_id"]
    ids = [first] + [mcp.manage("mcpbox_create_tool", server_id=sid, name=f"t{i:02}", description="Of the tests.",
                                python_code=MARK)["id"] for i in range(1, 53)]
    for i in (0, 52):
        approve(instance, mcp, ids[i], f"t{i:02}")
    assert mcp.manage("mcpbox_get_server", server_id=sid)["tool_count"] == 53
    listed, page = [], 1
    while True:
        got = mcp.manage("mcpbox_list_tools", server_id=sid, page=page)
        listed += [t["name"] for t in got["tools"]]
        if len(listed) >= got["total"] or not got["tools"]:
            break
        page += 1
    assert sorted(listed) == [f"t{i:02}" for i in range(53)]
    mcp.manage("mcpbox_stop_server", server_id=sid)
    mcp.manage("mcpbox_start_server", server_id=sid)
    assert text(mcp.call(f"{s}__t52")) == "IT RAN"


def test_defect_09_defaults_are_optional_and_lists_are_lists(instance, mcp):
    """Old: a parameter with a default was required, list[str] was "string"."""
    name = flow.publish(instance, mcp, SERVER, unique(), "def main(names: list[str], *, n: int = 2) -> str:\n"
                        "    return ','.join(names * n)\n")
    schema = mcp.tools()[name]["inputSchema"]
    assert schema["required"] == ["names"]
    assert schema["properties"]["names"] == {"type": "array", "items": {"type": "string"}}
    assert schema["properties"]["n"]["default"] == 2
    assert text(mcp.call(name, {"names": ["a"]})) == "a,a"
    assert failure(mcp.call(name, {"names": "a"})) == "invalid_arguments"


def test_defect_11_a_busy_tool_stops_nobody(instance, mcp):
    """Old: one event loop for all: 5.55 s for a call while another tool slept."""
    most = {"timeout_ms": 600000, "cpu_ms": 600000}
    name = unique()
    busy = flow.publish(instance, mcp, SERVER, name, "def main():\n    while True:\n        pass\n", limits=most)
    tool = next(t["id"] for t in mcp.manage("mcpbox_list_tools", server_id=server_id(mcp, SERVER), page_size=100)["tools"]
                if t["name"] == name)
    quick = flow.publish(instance, mcp, SERVER, unique(), MARK)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, Client(instance.address) as other:
        running = pool.submit(other.call, busy)
        try:    # it ends when it is told to, which is after the others were answered
            until(lambda: instance.psql(f"SELECT 1 FROM mcpbox.executions WHERE tool = '{busy}' AND state = 'open'")
                  and instance.runners())
            for _ in range(3):
                assert text(mcp.call(quick)) == "IT RAN"
            assert not running.done(), running.result()
        finally:
            mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=False)
        assert failure(running.result()) in ("stopped", "revoked")


def test_defect_12_calls_leave_nothing_behind(instance, mcp):
    """Old: after 28 calls the sandbox was out of memory for good."""
    eater = flow.publish(instance, mcp, SERVER, unique(), "def main():\n    x = []\n    while True:\n"
                         "        x.append(bytearray(1 << 20))\n")
    quick = flow.publish(instance, mcp, SERVER, unique(), MARK)
    for _ in range(3):
        assert failure(mcp.call(eater)) in ("limit", "exception", "killed")
        for _ in range(20):
            assert text(mcp.call(quick)) == "IT RAN"


def test_defect_13_what_escapes_python_is_still_in_the_sandbox(instance, mcp):
    """Old: asyncio.create_subprocess_exec and attrgetter left the restricted interpreter, and with it the only wall
    between tools."""
    canary = pathlib.Path(instance.parent) / "canary"
    canary.write_text("the canary")
    canary.chmod(0o644)
    code = ("import asyncio, operator, os\n"
            "async def main(path: str):\n"
            "    root = operator.attrgetter('__cl' + 'ass__.__ba' + 'se__')([])\n"
            "    out = {'object': root is object, 'uid': os.getuid(), 'processes': sorted(p for p in os.listdir('/proc') "
            "if p.isdigit())}\n"
            "    try:\n"
            "        p = await asyncio.create_subprocess_exec('/usr/bin/id', stdout=-1)\n"
            "        out['id'] = (await p.communicate())[0].decode()\n"
            "    except OSError as e:\n        out['id'] = type(e).__name__\n"
            "    try:\n        out['canary'] = open(path).read()\n"
            "    except OSError as e:\n        out['canary'] = type(e).__name__\n"
            "    return out\n")
    outside = subprocess.run(["setpriv", "--reuid", str(instance.uid("stranger")), "--clear-groups", "cat", str(canary)],
                             capture_output=True, check=True, text=True).stdout
    if outside != "the canary":
        pytest.fail("the canary is not reachable from outside")
    name = flow.publish(instance, mcp, SERVER, unique(), code)
    got = json.loads(text(mcp.call(name, {"path": str(canary)})))
    assert got["object"] is True                # Python hides nothing, and need not
    assert got["canary"] == "FileNotFoundError" and got["id"] == "PermissionError", got
    assert len(got["processes"]) <= 2, got


def test_defect_14_classes_dataclasses_enums(instance, mcp):
    """Old: no `class` statement."""
    name = flow.publish(instance, mcp, SERVER, unique(), "import dataclasses, enum\n"
                        "class Colour(enum.Enum):\n    RED = 'red'\n"
                        "@dataclasses.dataclass\nclass Point:\n    x: int = 1\n    colour: Colour = Colour.RED\n"
                        "def main():\n    p = Point(3)\n    return [p.x, p.colour.value, type(p).__mro__[0].__name__]\n")
    assert json.loads(text(mcp.call(name))) == [3, "red", "Point"]


def test_defect_15_every_policy_acts(instance, mcp):
    """Old: three switches of the security policy were stored and read by nothing."""
    def ask(suffix):
        tool = unique()
        tool_id = flow.draft(mcp, SERVER, tool, MARK)
        published = mcp.manage("mcpbox_request_publish", tool_id=tool_id)
        host = mcp.manage("mcpbox_request_network_access", tool_id=tool_id, host=f"{suffix}.example.org", port=443,
                          justification="of the tests")
        return tool, published["status"], host["status"]

    tool, published, host = ask(unique("h"))
    assert (published, host) == ("pending_review", "pending")
    assert failure(mcp.call(f"{SERVER}__{tool}")) in ("unknown_tool", "not_approved")
    try:
        instance.ctl("policies", "set", "tool=automatic", "module=automatic", "network=automatic")
        tool, published, host = ask(unique("h"))
        assert (published, host) == ("approved", "approved")
        assert text(mcp.call(f"{SERVER}__{tool}")) == "IT RAN"
    finally:
        instance.ctl("policies", "set", "tool=require", "module=require", "network=require")
    tool, published, host = ask(unique("h"))
    assert (published, host) == ("pending_review", "pending")


def test_defect_16_ended_logins_open_nothing(instance, rest):
    """Old: a revoked login was accepted 16 times of 16, and one from before a password change, too."""
    where = rest.where
    name, first, second = unique("admin"), "a first long password", "a second long password"
    instance.ctl("administrators", "create", name, "--role", "administrator", stdin=first + "\n")
    one, two = Rest(where), Rest(where)
    for r in (one, two):
        assert r.login(name, first)[0] == 200
        assert r.get("/api/servers")[0] == 200
    old = (one.cookie, one.csrf)
    assert one.request("POST", "/api/logout", {})[0] in (200, 204)
    one.cookie, one.csrf = old
    for _ in range(16):
        assert one.get("/api/servers")[0] == 401
    three = Rest(where)
    assert three.login(name, first)[0] == 200
    assert three.request("POST", "/api/password", {"old_password": first, "new_password": second})[0] in (200, 204)
    assert three.get("/api/servers")[0] == 200      # the one that changed it stays
    for _ in range(16):
        assert two.get("/api/servers")[0] == 401
    assert Rest(where).login(name, first)[0] == 401


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"},
                                     {"Host": "127.0.0.1.evil.example"}, {"Origin": "null"}], ids=str)
def test_defect_17_names_from_elsewhere_are_refused(instance, headers):
    """Old: Host and Origin of any site: 200."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert request(instance.address(), body=body).status == 200
    assert request(instance.address(), body=body, headers=headers).status == 403
    r = Rest(lambda: instance.address("admind-http"))
    assert r.request("GET", "/health", headers=headers)[0] == 403


def test_defect_18_secrets_in_lists_and_exceptions(instance, mcp):
    """Old: only strings and dicts of a success were searched; lists, exceptions and failed output showed the value."""
    secret = "the-marked-value-" + uuid.uuid4().hex
    s = unique("s")
    flow.draft(mcp, s, "other", MARK)
    sid = server_id(mcp, s)
    mcp.manage("mcpbox_create_server_secret", server_id=sid, key="API_KEY")
    instance.ctl("secret", "set", s, "API_KEY", stdin=secret)
    name = flow.publish(instance, mcp, s, "t", "import mcpbox, base64\ndef main(how: str):\n"
                        "    v = mcpbox.secrets['API_KEY']\n    print('out ' + v)\n"
                        "    if how == 'raise':\n        raise ValueError('value ' + v)\n"
                        "    if how == 'length':\n        return len(v)\n"
                        "    return [v, {v: [v]}, base64.b64encode(v.encode()).decode()]\n", secrets=["API_KEY"])
    assert text(mcp.call(name, {"how": "length"})) == str(len(secret))      # it has it
    for how in ("list", "raise"):
        r = mcp.call(name, {"how": how})
        assert secret.encode() not in r.raw, r
    for e in records(instance, name, 3):
        assert secret not in instance.ctl("executions", e["id"], "--json").stdout


def test_defect_19_names_are_taken_once(mcp):
    """Old: a second tool of a name was an HTTP 500, a second server of a name was made."""
    s = unique("s")
    flow.draft(mcp, s, "twin", MARK)
    sid = server_id(mcp, s)
    r = mcp.call("mcpbox_create_tool", {"server_id": sid, "name": "twin", "description": "d", "python_code": MARK})
    assert r.status == 200 and failure(r) == "conflict"
    r = mcp.call("mcpbox_create_server", {"name": s})
    assert r.status == 200 and failure(r) == "conflict"


def test_defect_20_a_draft_is_tried_before_it_is_approved(mcp):
    """Old: refused until approved, in the default mode."""
    tool_id = flow.draft(mcp, SERVER, unique(), MARK)
    got = mcp.manage("mcpbox_test_code", tool_id=tool_id)
    assert got["success"] and "IT RAN" in json.dumps(got["result"]), got


def test_defect_10_a_long_call_runs_once(instance, long_call):
    """Old: after 30 s without an answer the call was sent again: four runs of a tool that slept 40 s, and no result."""
    name, thread, got = long_call
    thread.join(LONG_S + patience(60))
    assert text(got["reply"]) == "slept", got
    runs = records(instance, name, 1)
    assert [(e["outcome"], e["delivered"]) for e in runs] == [("done", True)]


# Last: it kills the gateway of all the others.
def test_defect_04_sessions_live_on_every_connection_and_over_a_restart(instance):
    """Old: four workers, a table of sessions each: half of the requests on new connections were 404."""
    with Client(instance.address, version=LEGACY) as c:
        headers = {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": c.session}

        def lists():
            for i in range(24):
                r = request(instance.address(), body={"jsonrpc": "2.0", "id": i, "method": "tools/list"},
                            headers=headers)
                assert r.status == 200 and r.result["tools"], r

        lists()
        pid = instance.service_pid("gatewayd-local")
        subprocess.run(["kill", "-KILL", str(pid)], check=True)

        def back():
            try:
                return instance.service_pid("gatewayd-local") not in (None, pid) and \
                    request(instance.address(), "GET", "/health").status == 200
            except OSError:
                return False

        until(back, 20)
        lists()
