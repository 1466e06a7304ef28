"""The management tools against a client that sends anything: every value of
every argument gets a result or a typed error that says how to mend it."""
import json
import time
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.patience import until

CODE = "def main() -> int:\n    return 1\n"
VALUES = [
    None, True, -1, 1.5, 1e308, 2 ** 64, 10 ** 300, "", "x", "\0", "\u202e", "A" * 1000, "é" * 70000, [], {}, [None],
    ["A", "A"], ["A"] * 65, ["x" * 256], {"a": {"b": [{}] * 50}}, {"type": "object"}, {"$ref": "http://x/"},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}},
    {"type": "object", "properties": {f"p{n}": {} for n in range(3000)}}, str(uuid.UUID(int=1)), {"timeout_ms": 10 ** 9}]


#: Hundreds of wrong calls in a row are what circuit breakers end.
INSTANCE_SETS = ("admind:breakers=no",)


@pytest.fixture(scope="module")
def known(instance):
    with Client(instance.address) as c:
        server = c.manage("mcpbox_create_server", name="any")["id"]
        tool = c.manage("mcpbox_create_tool", server_id=server, name="base", python_code=CODE)["id"]
        schemas = {n: t["inputSchema"] for n, t in c.tools().items() if n.startswith("mcpbox_")}
        return {"server_id": server, "tool_id": tool, "name": "made", "python_code": CODE}, schemas


def seconds(mcp, name, arguments):
    """A call's answer, and how long it took."""
    begin = time.monotonic()
    r = mcp.call("mcpbox_" + name, arguments)
    return r, time.monotonic() - begin


@pytest.fixture(scope="module")
def ordinary(instance, known):
    """Takes the time of the costliest ordinary call, which has code inspected."""
    def once():
        with Client(instance.address) as c:
            arguments = known[0] | {"name": "o" + uuid.uuid4().hex[:10]}
            del arguments["tool_id"]
            r, took = seconds(c, "create_tool", arguments)
            assert not r.result.get("isError"), r
            return took
    return once


#: No value makes a call so many times as costly as an ordinary one.
TIMES = 25


@pytest.mark.parametrize("name", [
    "list_servers", "create_server", "start_server", "stop_server", "list_tools", "create_tool", "update_tool",
    "request_publish", "get_tool_status", "list_pending_requests"])
def test_any_value_of_any_argument(mcp, known, ordinary, name):
    good, schemas = known
    control = min(ordinary() for _ in range(3))
    schema = schemas["mcpbox_" + name]
    for argument in [*schema["properties"], "unknown", ""]:
        for value in VALUES:
            arguments = {k: good[k] for k in schema["required"]} | {argument: value}
            r, took = seconds(mcp, name, arguments)
            what = (argument, repr(value)[:60], r)
            assert r.status == 200 and r.error is None, what
            # A machine that stopped for a while is none of its cost: the two are tried alternately.
            tries = 0
            while took >= TIMES * control:
                tries += 1
                assert tries < 5, (what, took, control)
                took = min(took, seconds(mcp, name, arguments)[1])
                control = max(control, ordinary())
            if r.result.get("isError"):
                failure = r.result["_meta"]["mcpbox/failure"]
                assert failure["failure_mode"] in ("invalid_arguments", "not_found", "conflict", "bad_code"), what
                assert failure["fix"] and r.result["content"][0]["text"].startswith("Error: "), what
                if argument not in schema["properties"]:
                    assert failure["failure_mode"] == "invalid_arguments" and "unknown" in str(r.result), what
            else:
                assert json.loads(r.result["content"][0]["text"]) == r.result["structuredContent"], what


def test_limits_are_exact(mcp, known):
    good, _ = known
    server = next(s["name"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"]
                  if s["id"] == good["server_id"])
    longest = 64 - len(server + "__")

    def code(n):
        return CODE + "#" * (n - len(CODE))

    def mode(name, /, **arguments):
        r = mcp.call("mcpbox_" + name, arguments)
        return r.result["_meta"]["mcpbox/failure"]["failure_mode"] if r.result.get("isError") else None

    for name, field, fits, more in (
            ("create_server", "name", "s" * 24, "s" * 25),
            ("create_server", "description", "😀" * 2000, "😀" * 2001),
            ("create_tool", "name", "t" * longest, "t" * (longest + 1)),
            ("create_tool", "description", "\u0007" * 2000, "\u0007" * 2001),
            ("create_tool", "title", "é" * 200, "é" * 201),
            ("create_tool", "python_code", code(100000), code(100001)),
            ("create_tool", "secrets", [f"K{n}" for n in range(64)], [f"K{n}" for n in range(65)])):
        base = {"name": "l" + uuid.uuid4().hex[:10]}
        if name == "create_tool":
            base |= {"server_id": good["server_id"], "python_code": CODE}
        assert mode(name, **(base | {field: more})) == "invalid_arguments", field
        assert mode(name, **(base | {field: fits})) is None, field


@pytest.mark.parametrize("code,said", [
    ("def main(" + ", ".join(f"a{n}: int" for n in range(4000)) + "): return 1\n", "input_schema"),
    ("def main(*args): return args\n", "*args"),
    ("import os\nos._exit(0)\ndef main(): return 1\n", "inspected"),
    ("raise SystemExit(3)\ndef main(): return 1\n", "SystemExit"),
    ("def main(:\n", "line 1"),
    ("main = 5\n", "main"),
    ("import no_such_module\ndef main(): return 1\n", "no_such_module"),
    ("def main(x: 'NoSuchType'): return 1\n", "NoSuchType")])
def test_code_that_can_not_be_read_says_why(mcp, known, code, said):
    r = mcp.call("mcpbox_create_tool", {"server_id": known[0]["server_id"], "name": "c" + uuid.uuid4().hex[:10],
                                        "python_code": code})
    assert r.result["isError"] is True and r.result["_meta"]["mcpbox/failure"]["failure_mode"] == "bad_code", r
    assert said in r.result["content"][0]["text"], r


def test_nothing_of_it_is_served(instance, mcp, known):
    """Drafts are in no list; every call that was taken has one closed record."""
    assert all(n.startswith("mcpbox_") for n in mcp.tools())
    def left():
        return instance.psql("SELECT count(*) FROM mcpbox.executions WHERE state = 'open'")
    until(lambda: left() == [["0"]], say=left)     # a row closes after the answer
    name = flow.publish(instance, mcp, "any", "still_works", CODE)
    assert text(mcp.call(name)) == "1"
