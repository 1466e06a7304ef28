"""What a tool with an output schema returns is checked before anyone gets it."""
import contextlib
import json
import os
import signal
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import MODERN, Client, Reply, connection, meta
from harness.clients.sse import Stream
from harness.patience import patience, until

#: Floods of results that are wrong: breakers would end them.
INSTANCE_SETS = ("admind:breakers=no",)
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
          "required": ["n"], "additionalProperties": False}
CODE = '''
import json, mcpbox
def main(value: str = "{}", how: str = "value"):
    value = json.loads(value)
    if how == "result":
        return mcpbox.Result(value, "shown")
    if how == "text":
        return mcpbox.Text("no value")
    if how == "error":
        raise mcpbox.ToolError("of its own")
    return value
'''


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        return {name: flow.publish(instance, c, "out", name, CODE, output_schema=schema)
                for name, schema in (
                    ("object", OBJECT),
                    ("array", {"type": "array", "items": {"type": "string"}, "maxItems": 3}),
                    ("any", {"not": {"const": 7}}),
                    ("null", {"type": "null"}))}


def call(client, tool, value, **more):
    return client.call(tool, {"value": json.dumps(value), **more})


def failure(reply):
    return reply.result["_meta"].get("mcpbox/failure", {}).get("failure_mode")


def text(reply):
    return reply.result["content"][0]["text"]


def test_what_it_promises_passes(mcp, tools):
    r = call(mcp, tools["object"], {"n": 1, "s": "x"})
    assert r.result["structuredContent"] == {"n": 1, "s": "x"}
    assert json.loads(text(r)) == {"n": 1, "s": "x"} and not r.result["isError"]
    r = call(mcp, tools["object"], {"n": 2}, how="result")
    assert r.result["structuredContent"] == {"n": 2} and text(r) == "shown"


@pytest.mark.parametrize("tool, value", [
    ("array", ["a", "b"]), ("array", []), ("any", "text"), ("any", 1.5), ("any", True), ("any", None),
    ("null", None)])
def test_values_of_any_type(mcp, tools, tool, value):
    for how in ("value", "result"):
        r = call(mcp, tools[tool], value, how=how)
        assert r.result["structuredContent"] == value, r


def test_all_errors_are_listed(instance, mcp, tools):
    r = call(mcp, tools["object"], {"s": 1, "x/y": 2, "z": 3})
    assert r.result["isError"] is True and failure(r) == "bad_result"
    assert "structuredContent" not in r.result
    errors = {e["pointer"]: e["message"] for e in json.loads(text(r).split("\n", 1)[1])}
    assert errors["/s"] == "must be a string, not an integer"
    assert errors["/n"] == "is required"
    assert set(errors) == {"/s", "/n", "/x~1y", "/z"}
    execution = r.result["_meta"]["mcpbox/execution"]["execution_id"]
    rows = until(lambda: instance.psql(f"SELECT outcome, failure FROM mcpbox.executions WHERE id = '{execution}'"
                                       " AND state = 'closed'"))
    assert rows == [["failed", "bad_result"]]


@pytest.mark.parametrize("tool, value", [("array", {"a": 1}), ("array", ["a"] * 4), ("array", [1]), ("any", 7),
                                         ("null", 0), ("object", [])])
def test_what_it_does_not_promise_fails(mcp, tools, tool, value):
    r = call(mcp, tools[tool], value)
    assert r.result["isError"] is True and failure(r) == "bad_result"
    assert "structuredContent" not in r.result


def test_content_alone_is_no_value(mcp, tools):
    r = call(mcp, tools["any"], None, how="text")
    assert failure(r) == "bad_result" and "mcpbox.Result" in text(r)


def test_errors_of_its_own_need_none(mcp, tools):
    r = call(mcp, tools["object"], None, how="error")
    assert failure(r) == "exception" and text(r) == "of its own"


def test_secrets_are_gone_before(instance, mcp):
    """The errors quote the value; no secret is in it any more."""
    with Client(instance.address) as c:
        server = c.manage("mcpbox_create_server", name="hush", description="Of the tests.")["id"]
    assert server
    name = flow.publish(instance, mcp, "hush", "leak",
                        "import mcpbox\ndef main():\n    return {'k': mcpbox.secrets['KEY']}\n",
                        secrets=["KEY"], output_schema={"properties": {"k": {"enum": ["other"]}}})
    instance.ctl("secret", "set", "hush", "KEY", stdin="canary-of-the-output-check")
    r = mcp.call(name, {})
    assert failure(r) == "bad_result", r
    assert "canary" not in json.dumps(r.result)


def test_legacy_clients_get_objects_only(instance, mcp, tools):
    for version in ("2025-03-26", "2025-06-18", "2025-11-25"):
        with Client(instance.address, version) as c:
            r = call(c, tools["object"], {"n": 1})
            assert r.result["structuredContent"] == {"n": 1}
            r = call(c, tools["array"], ["a"])
            assert "structuredContent" not in r.result
            assert json.loads(text(r)) == ["a"] and not r.result["isError"]
            listed = c.tools()
            assert listed[tools["object"]]["outputSchema"] == OBJECT
            assert "outputSchema" not in listed[tools["array"]]
    assert mcp.tools()[tools["array"]]["outputSchema"]["type"] == "array"


class Unread:
    """Keeps a response as it came: Reply() parses it when nobody waits."""

    def __init__(self, r):
        self.status, self.headers, self.raw = r.status, r.getheaders(), r.read()

    def getheaders(self):
        return self.headers

    def read(self):
        return self.raw


def test_a_flood_of_large_results_delays_nobody(instance, tools):
    """32 results of nearly 1 MiB from 8 clients; meanwhile arguments of other
    calls are checked by the same process: each waits for one of the results at most,
    not for all that came before."""
    with Client(instance.address) as c:
        big = flow.publish(instance, c, "out", "big",
                           "import mcpbox\ndef main():\n"
                           "    return mcpbox.Result([{'a': i, 'b': 'x' * 30} for i in range(15000)], 'many')\n",
                           output_schema={"type": "array", "items": {
                               "type": "object", "properties": {"a": {"type": "integer"}}}})
        done, waits, answered = [], [], 0
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                           "params": {"name": big, "arguments": {}, "_meta": meta()}}).encode()
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
                   "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": big}

        def flood():
            # Parsed afterwards: else the wait below would be for this process, too.
            with contextlib.closing(connection(instance.address(), patience(60))) as mine:
                for _ in range(4):
                    mine.request("POST", "/mcp", body, headers)
                    done.append(Unread(mine.getresponse()))
        threads = [threading.Thread(target=flood) for _ in range(8)]
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            before = len(done)
            r = c.call("mcpbox_list_servers", {"page": 0})
            waits.append(len(done) - before)
            # A slow machine may take longer than admind waits: it says so, and no more.
            assert r.error is None or r.error["data"]["failure_mode"] == "busy", r
            answered += r.error is None
        for t in threads:
            t.join()
        assert len(done) == 32
        done = list(map(Reply, done))
        for r in done:
            assert r.error is None or r.error["data"]["failure_mode"] == "busy", r
        assert sum(r.error is None for r in done) >= 8
        assert all(len(r.result["structuredContent"]) == 15000 for r in done if r.error is None)
        assert answered
        assert sorted(waits)[len(waits) // 2] <= 1, waits


# It runs until the test answers.
ASKS = ("import mcpbox\ndef main():\n    mcpbox.elicit('Go on?', {'yes': bool})\n"
        "    mcpbox.progress(1, 1)\n    return {'n': 1}\n")
FORMS = {"elicitation": {"form": {}}}


def asked(c, name):
    """Calls it until it asks: its arguments were checked. The state that goes on."""
    r = c.request("tools/call", {"name": name, "arguments": {}, "_meta": meta(MODERN, FORMS)})
    assert r.result and r.result["resultType"] == "input_required", r
    return r.result["requestState"]


def answer(name, state):
    return {"name": name, "arguments": {}, "requestState": state, "_meta": meta(MODERN, FORMS),
            "inputResponses": {"q1": {"action": "accept", "content": {"yes": True}}}}


def test_without_anyone_to_check_it_nobody_gets_it(instance, mcp, tools):
    """admind-check stopped: the call ends as lost, in bounded time, and other
    calls go on."""
    pid = instance.service_pid("admind-check")
    name = flow.publish(instance, mcp, "out", "slow", ASKS, output_schema=OBJECT)
    state = asked(mcp, name)
    os.kill(pid, signal.SIGSTOP)
    try:
        got = mcp.request("tools/call", answer(name, state))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert got.error["data"]["failure_mode"] == "lost", got
    assert "could not be checked" in got.error["message"]
    r = call(mcp, tools["object"], {"n": 3})
    assert r.result["structuredContent"] == {"n": 3}


def test_a_call_may_be_cancelled_while_it_is_checked(instance, mcp, tools):
    """Its client leaves (modern: that cancels) while nobody judges the result:
    it ends at once, as killed, and the verdict that comes later reaches nobody."""
    name = flow.publish(instance, mcp, "out", "left", ASKS, output_schema=OBJECT)
    state = asked(mcp, name)
    pid = instance.service_pid("admind-check")
    params = answer(name, state)
    params["_meta"]["progressToken"] = "p"
    os.kill(pid, signal.SIGSTOP)
    try:
        with Stream(instance.address(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
                    headers={"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}) as s:
            s.message("notifications/progress")
            time.sleep(1)       # it has run, and waits for its verdict; killed before is killed, too
        until(lambda: instance.psql("SELECT outcome FROM mcpbox.executions WHERE kind = 'tool' AND"
                                    f" tool = '{name}'") == [["killed"]])
    finally:
        os.kill(pid, signal.SIGCONT)
    assert call(mcp, tools["object"], {"n": 4}).result["structuredContent"] == {"n": 4}


def test_a_restart_of_the_checker_loses_nothing(instance, mcp, tools):
    name = flow.publish(instance, mcp, "out", "slower", ASKS, output_schema=OBJECT)
    state = asked(mcp, name)
    os.kill(instance.service_pid("admind-check"), signal.SIGKILL)
    got = mcp.request("tools/call", answer(name, state))
    assert got.result and got.result["structuredContent"] == {"n": 1}, got
