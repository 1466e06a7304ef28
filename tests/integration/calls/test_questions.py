"""A tool asks its client: both eras, the whole suite, real sandbox."""
import contextlib
import http.client
import json
import os
import signal
import threading
import time

import pytest

from harness.clients.flow import pending, publish
from harness.clients.mcp import LEGACY, MODERN, Client, Reply, meta, text
from harness.clients.sse import Stream
from harness.patience import patience, until

ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
CODE = {
    "name": "import mcpbox\ndef main(who: str = 'you'):\n"
            "    a = mcpbox.elicit('Name of ' + who + '?', {'name': str})\n"
            "    return f'{a.action} {a.content}'\n",
    "twice": "import mcpbox\ndef main():\n"
             "    a = mcpbox.ask({'k': mcpbox.Elicit('1', {'n': int})})['k']\n"
             "    b = mcpbox.ask({'k': mcpbox.Elicit('2', {'n': int})})['k']\n"
             "    return str(a.content['n'] + b.content['n'])\n",
    "awaits": "import asyncio, mcpbox\nasync def main():\n"
              "    ticks = []\n"
              "    async def tick():\n"
              "        while True:\n"
              "            ticks.append(1)\n"
              "            await asyncio.sleep(0.01)\n"
              "    t = asyncio.create_task(tick())\n"
              "    a = await mcpbox.elicit('Name?', {'name': str})\n"
              "    r = await mcpbox.roots()\n"
              "    t.cancel()\n"
              "    return f\"{a.content['name']} {len(r)} {len(ticks) > 2}\"\n",
    "several": "import mcpbox\ndef main():\n"
               "    a = mcpbox.ask({'e': mcpbox.Elicit('Name?', {'name': str}),\n"
               "                    's': mcpbox.Sample('Say x', max_tokens=5, temperature=0.5),\n"
               "                    'r': mcpbox.Roots(), 'u': mcpbox.ElicitUrl('Go', 'https://h/x')})\n"
               "    return '; '.join(f'{k}={v.text if k == \"s\" and hasattr(v, \"text\") else v}' for k, v in a.items())\n",
    "tells": "import mcpbox\ndef main():\n"
             "    mcpbox.progress(1, 3, 'one')\n"
             "    mcpbox.log('first')\n"
             "    mcpbox.elicit('Name?', {'name': str})\n"
             "    mcpbox.progress(2, 3, 'two')\n"
             "    mcpbox.log('second')\n",
    "sleeps": "import mcpbox, time\ndef main():\n"
              "    mcpbox.elicit('Name?', {'name': str})\n"
              "    mcpbox.progress(1, 2, 'answered')\n"
              "    time.sleep(600)\n",
}
ANSWER = {"action": "accept", "content": {"name": "Ann"}}


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        return {k: publish(instance, c, "asks", k, code) for k, code in CODE.items()}


def call(c, name, capabilities=ALL, arguments=None, **more):
    return c.request("tools/call", {"name": name, "arguments": arguments or {}, **more,
                                    "_meta": meta(MODERN, capabilities)})


def asked(r):
    assert r.result and r.result["resultType"] == "input_required", r
    return r.result["inputRequests"], r.result["requestState"]


def wrong(r):
    assert r.status == 200 and r.error and r.error["code"] == -32602, r
    assert r.error["data"]["failure_mode"] == "bad_state"


# ---- modern ----

def test_one_question(mcp, tools):
    q, state = asked(call(mcp, tools["name"]))
    assert q == {"q1": {"method": "elicitation/create", "params": {
        "message": "Name of you?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}}
    r = call(mcp, tools["name"], inputResponses={"q1": ANSWER}, requestState=state)
    assert r.result["resultType"] == "complete"
    assert text(r) == "accept {'name': 'Ann'}"


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_refused_by_the_person(mcp, tools, action):
    _, state = asked(call(mcp, tools["name"]))
    r = call(mcp, tools["name"], inputResponses={"q1": {"action": action}}, requestState=state)
    assert text(r) == f"{action} {{}}"


def test_rounds_have_states_of_their_own(mcp, tools):
    one, a = asked(call(mcp, tools["twice"]))
    two, b = asked(call(mcp, tools["twice"], inputResponses={"k": {"action": "accept", "content": {"n": 40}}},
                        requestState=a))
    assert a != b and one["k"]["params"]["message"] == "1" and two["k"]["params"]["message"] == "2"
    wrong(call(mcp, tools["twice"], inputResponses={"k": ANSWER}, requestState=a))      # used
    r = call(mcp, tools["twice"], inputResponses={"k": {"action": "accept", "content": {"n": 2}}}, requestState=b)
    assert text(r) == "42"
    wrong(call(mcp, tools["twice"], inputResponses={"k": ANSWER}, requestState=b))


def test_missing_and_wrong_answers_are_asked_for_again(mcp, tools):
    _, state = asked(call(mcp, tools["name"]))
    for responses in ({}, {"other": ANSWER}, {"q1": 12345}, {"q1": {"action": "maybe"}},
                      {"q1": {"action": "accept", "content": [1]}}):
        q, state = asked(call(mcp, tools["name"], inputResponses=responses, requestState=state))
        assert list(q) == ["q1"]
    r = call(mcp, tools["name"], inputResponses={"q1": ANSWER, "more": 1}, requestState=state)
    assert text(r) == "accept {'name': 'Ann'}"


def test_answers_may_come_with_the_first_request(mcp, tools):
    r = call(mcp, tools["name"], inputResponses={"q1": ANSWER, "unknown": {"action": "accept"}})
    assert text(r) == "accept {'name': 'Ann'}"
    # They are for the first question only.
    r = call(mcp, tools["twice"], inputResponses={"k": {"action": "accept", "content": {"n": 1}}})
    assert asked(r)[0]["k"]["params"]["message"] == "2"


def test_no_responses_object(mcp, tools):
    for bad in (None, 1, []):
        r = call(mcp, tools["name"], inputResponses=bad)
        assert (r.error and r.error["code"] == -32602) or r.result["resultType"] == "input_required", r


def test_several_at_once(mcp, tools):
    q, state = asked(call(mcp, tools["several"]))
    assert {k: v["method"] for k, v in q.items()} == {
        "e": "elicitation/create", "s": "sampling/createMessage", "r": "roots/list", "u": "elicitation/create"}
    assert q["s"]["params"] == {"messages": [{"role": "user", "content": {"type": "text", "text": "Say x"}}],
                                "maxTokens": 5, "temperature": 0.5}
    assert q["r"]["params"] == {} and q["u"]["params"] == {"mode": "url", "message": "Go", "url": "https://h/x"}
    # Some now, the others later: only those are asked again.
    q, state = asked(call(mcp, tools["several"], requestState=state, inputResponses={
        "e": ANSWER, "r": {"roots": [{"uri": "file:///a"}]}}))
    assert set(q) == {"s", "u"}
    r = call(mcp, tools["several"], requestState=state, inputResponses={
        "s": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
        "u": {"action": "accept"}})
    assert text(r) == ("e=Elicitation('accept', {'name': 'Ann'}); s=x; r=[{'uri': 'file:///a'}]; "
                       "u=Elicitation('accept', {})")


def test_only_what_is_declared(mcp, tools):
    q, _ = asked(call(mcp, tools["several"], {"sampling": {}}))
    assert set(q) == {"s"}
    q, _ = asked(call(mcp, tools["several"], {"elicitation": {}}))
    assert set(q) == {"e"}
    r = call(mcp, tools["name"], {})
    assert r.result["isError"] and "elicitation" in text(r), r
    assert r.result["_meta"]["mcpbox/failure"]["failure_mode"] == "no_answer"


def test_answer_that_does_not_fit_the_form(mcp, tools):
    _, state = asked(call(mcp, tools["name"]))
    r = call(mcp, tools["name"], inputResponses={"q1": {"action": "accept", "content": {"name": 7}}},
             requestState=state)
    assert r.result["isError"] and "does not fit" in text(r)


def test_awaited(mcp, tools):
    for pause in (0.2, 1, 5, 25):   # until it was long enough for some ticks
        _, state = asked(call(mcp, tools["awaits"]))
        time.sleep(pause)
        _, state = asked(call(mcp, tools["awaits"], inputResponses={"q1": ANSWER}, requestState=state))
        r = call(mcp, tools["awaits"], inputResponses={"q2": {"roots": []}}, requestState=state)
        if text(r) != "Ann 0 False":
            break
    assert text(r) == "Ann 0 True"


def test_state_is_bound(mcp, tools):
    _, state = asked(call(mcp, tools["name"], arguments={"who": "a"}))
    give = {"inputResponses": {"q1": ANSWER}}
    wrong(call(mcp, tools["name"], arguments={"who": "b"}, requestState=state, **give))
    wrong(call(mcp, tools["twice"], arguments={"who": "a"}, requestState=state, **give))
    flipped = ("B" if state[20] == "A" else "A").join((state[:20], state[21:]))
    for bad in (flipped, state + "-TAMPERED", state[:-1], "", "x" * 5000, state.swapcase()):
        wrong(call(mcp, tools["name"], arguments={"who": "a"}, requestState=bad, **give))
    r = call(mcp, tools["name"], arguments={"who": "a"}, requestState=state, **give)
    assert text(r) == "accept {'name': 'Ann'}"


def test_one_of_two_that_bring_the_same_state(instance, tools):
    with Client(instance.address) as c:
        _, state = asked(call(c, tools["name"]))
    got = []

    def again():
        with Client(instance.address) as c:
            got.append(call(c, tools["name"], inputResponses={"q1": ANSWER}, requestState=state))
    threads = [threading.Thread(target=again) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(r.error is None for r in got) == [False] * 7 + [True]


def test_closing_the_retry_cancels(instance, mcp, tools):
    _, state = asked(call(mcp, tools["sleeps"]))
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": tools["sleeps"], "arguments": {}, "requestState": state, "inputResponses": {"q1": ANSWER},
        "_meta": {**meta(MODERN, ALL), "progressToken": "p"}}}
    with Stream(instance.address(), body=body, headers={
            "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tools["sleeps"]}) as s:
        assert s.message("notifications/progress").json["params"]["message"] == "answered"
    assert ended(instance, tools["sleeps"]) == "killed"


def ended(instance, tool):
    """Outcome of the tool's last execution, once it has one."""
    return until(lambda: rows(instance, tool)[0][1])


def test_progress_and_logs_go_to_the_request_that_is_there(mcp, tools):
    """The first request hears what came before the question, the retry the
    rest, each by its own token and level."""
    def said(r):
        return [(e["method"], e["params"].get("progressToken"), e["params"].get("message", e["params"].get("data")))
                for e in r.events if "method" in e]

    def again(token, level, **more):
        m = {**meta(MODERN, ALL), "progressToken": token}
        if level:
            m["io.modelcontextprotocol/logLevel"] = level
        return mcp.request("tools/call", {"name": tools["tells"], "arguments": {}, **more, "_meta": m})
    r = again("a", "info")
    assert said(r) == [("notifications/progress", "a", "one"), ("notifications/message", None, "first")]
    assert r.value["result"]["resultType"] == "input_required"
    r = again("b", None, inputResponses={"q1": ANSWER}, requestState=r.value["result"]["requestState"])
    assert said(r) == [("notifications/progress", "b", "two")]
    assert r.value["result"]["resultType"] == "complete"


# ---- legacy ----

class Session(Client):
    def __init__(self, where, capabilities=ALL, version=LEGACY):
        self.capabilities = capabilities
        super().__init__(where, version)

    def _initialize(self):
        r = self.send({"jsonrpc": "2.0", "id": next(self.ids), "method": "initialize", "params": {
            "protocolVersion": self.version, "capabilities": self.capabilities,
            "clientInfo": {"name": "tests", "version": "1"}}}, {})
        self.session = r.headers["mcp-session-id"]

    def stream(self, name, arguments=None):
        """The events of a call, as they come."""
        c = http.client.HTTPConnection(*self.where(), timeout=patience(30))
        c.request("POST", "/mcp", json.dumps({
            "jsonrpc": "2.0", "id": next(self.ids), "method": "tools/call",
            "params": {"name": name, "arguments": arguments or {}}}).encode(), {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                **self._legacy()})
        r = c.getresponse()
        if not r.headers["content-type"].startswith("text/event-stream"):
            yield json.loads(r.read())
            return
        data = []
        for line in r:
            line = line.decode().rstrip("\r\n")
            if line.startswith("data:") and line[5:].strip():
                data.append(line[5:].strip())
            elif not line and data:
                yield json.loads("\n".join(data))
                data = []
        c.close()

    def respond(self, message):
        with Client(self.where) as other:
            r = other.send({"jsonrpc": "2.0", **message}, self._legacy())
        assert r.status == 202, r


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_legacy_question(instance, tools, version):
    with Session(instance.address, version=version) as s:
        events = s.stream(tools["name"])
        q = next(events)
        assert q["method"] == "elicitation/create" and len(q["id"]) == 22
        assert q["params"]["message"] == "Name of you?"
        s.respond({"id": q["id"], "result": ANSWER})
        assert next(events)["result"]["content"][0]["text"] == "accept {'name': 'Ann'}"


def test_legacy_several_and_an_error(instance, tools):
    with Session(instance.address) as s:
        events = s.stream(tools["several"])
        q = {}
        for _ in range(4):
            e = next(events)
            q[e["params"].get("url", e["method"])] = e
        assert q["https://h/x"]["params"]["elicitationId"]
        s.respond({"id": q["roots/list"]["id"], "error": {"code": -1, "message": "no roots today"}})
        s.respond({"id": q["elicitation/create"]["id"], "result": ANSWER})
        s.respond({"id": q["https://h/x"]["id"], "result": {"action": "decline"}})
        s.respond({"id": q["sampling/createMessage"]["id"], "result": {"roots": []}})    # not what was asked
        out = next(events)["result"]["content"][0]["text"]
        assert "r=no roots today" in out and "'Ann'" in out and "decline" in out and "not what was asked" in out


def test_legacy_answers_of_others_are_nothing(instance, tools):
    with Session(instance.address) as s, Session(instance.address) as other:
        events = s.stream(tools["name"])
        q = next(events)
        other.respond({"id": q["id"], "result": {"action": "accept", "content": {"name": "Eve"}}})
        s.respond({"id": "A" * 22, "result": ANSWER})
        s.respond({"id": 1, "result": ANSWER})
        s.respond({"id": q["id"], "result": ANSWER})
        s.respond({"id": q["id"], "result": {"action": "decline"}})      # late
        assert next(events)["result"]["content"][0]["text"] == "accept {'name': 'Ann'}"


def test_legacy_without_what_it_takes(instance, tools):
    with Session(instance.address, {}) as s:
        out = next(s.stream(tools["name"]))["result"]
        assert out["isError"] and "elicitation" in out["content"][0]["text"]
    with Client(instance.address, version=LEGACY) as c:     # no capabilities in this one
        c.session = None
        r = c.call(tools["name"])
        assert r.result["isError"], r


def test_legacy_progress_stays_on_the_calls_stream(instance, tools):
    with Session(instance.address) as s:
        seen, events = [], s.stream(tools["tells"])
        for e in events:
            seen.append(e.get("method", "result"))
            if e.get("method") == "elicitation/create":
                s.respond({"id": e["id"], "result": ANSWER})
        # No token was given, so no progress; logs from info on.
        assert seen == ["notifications/message", "elicitation/create", "notifications/message", "result"]


def test_legacy_cancel_while_asked(instance, tools):
    with Session(instance.address) as s:
        events = s.stream(tools["sleeps"])
        next(events)
        s.respond({"method": "notifications/cancelled", "params": {"requestId": 2, "reason": "x"}})
        assert next(events)["result"]["isError"]
    assert ended(instance, tools["sleeps"]) == "killed"


def test_both_eras_at_once(instance, tools):
    """Questions of many calls do not get mixed up."""
    failed = []

    def modern(i):
        try:
            with Client(instance.address) as c:
                _, state = asked(call(c, tools["name"], arguments={"who": str(i)}))
                r = call(c, tools["name"], arguments={"who": str(i)}, requestState=state,
                         inputResponses={"q1": {"action": "accept", "content": {"name": str(i)}}})
                assert text(r) == f"accept {{'name': '{i}'}}"
        except BaseException as e:
            failed.append(e)

    def legacy(i):
        try:
            with Session(instance.address) as s:
                events = s.stream(tools["name"], {"who": str(i)})
                q = next(events)
                assert q["params"]["message"] == f"Name of {i}?"
                s.respond({"id": q["id"], "result": {"action": "accept", "content": {"name": str(i)}}})
                assert next(events)["result"]["content"][0]["text"] == f"accept {{'name': '{i}'}}"
        except BaseException as e:
            failed.append(e)
    threads = [threading.Thread(target=f, args=(i,)) for i in range(3) for f in (modern, legacy)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed


# ---- prompts and resources ----

ASKS = "import mcpbox\ndef main({}):\n    return mcpbox.elicit('Name?', {{'name': str}}).content['name']\n"


@pytest.fixture(scope="module")
def objects(instance, tools):
    with Client(instance.address) as c:
        server = next(s["id"] for s in c.manage("mcpbox_list_servers")["servers"] if s["name"] == "asks")
        for how, name, fields in (
                ("mcpbox_create_prompt", "prompt", {"python_code": ASKS.format("")}),
                ("mcpbox_create_resource", "resource", {"uri": "asks://one", "python_code": ASKS.format("")}),
                ("mcpbox_create_resource", "template", {"uri_template": "asks://of/{who}",
                                                        "python_code": ASKS.format("who")})):
            made = c.manage(how, server_id=server, name=name, **fields)
            c.manage("mcpbox_request_publish", tool_id=made["id"])
            item = pending(instance, name)
            instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


@pytest.mark.parametrize("method, params, other", [
    ("prompts/get", {"name": "asks__prompt"}, {"arguments": {"x": "y"}}),
    ("resources/read", {"uri": "asks://one"}, {"uri": "asks://of/one"}),
    ("resources/read", {"uri": "asks://of/ann"}, {"uri": "asks://of/bob"}),
])
def test_prompts_and_resources_ask_too(mcp, objects, method, params, other):
    given = {"_meta": meta(MODERN, ALL)}
    _, state = asked(mcp.request(method, {**params, **given}))
    more = {"inputResponses": {"q1": ANSWER}, "requestState": state, **given}
    wrong(mcp.request(method, {**params, **other, **more}))
    r = mcp.request(method, {**params, **more})
    assert r.result["resultType"] == "complete"
    if method == "prompts/get":
        assert r.result["messages"] == [{"role": "user", "content": {"type": "text", "text": "Ann"}}]
    else:
        assert r.result["contents"][0]["text"] == "Ann" and r.result["contents"][0]["uri"] == params["uri"]
        assert "ttlMs" in r.result
    wrong(mcp.request(method, {**params, **more}))
    # Where nobody can be asked it is an error: these methods know no isError.
    r = mcp.request(method, params)
    assert r.error and r.error["data"]["failure_mode"] == "no_answer", r


# ---- whatever dies ----

def rows(instance, tool):
    return instance.psql(f"SELECT state, coalesce(outcome, '') FROM mcpbox.executions WHERE tool = '{tool}'"
                         " ORDER BY created_at DESC")


@pytest.mark.parametrize("victim", ["gatewayd-local", "sandboxd", "admind", "sandboxd-spawn"])
def test_one_record_whoever_is_killed(instance, tools, victim):
    tool = tools["sleeps"]
    before = len(rows(instance, tool))
    with Client(instance.address) as c:
        _, state = asked(call(c, tool))
    assert len(rows(instance, tool)) == before + 1
    pid = instance.service_pid(victim)
    os.kill(pid, signal.SIGKILL)
    # Until it is another process, the call and all others may still be answered.
    until(lambda: instance.service_pid(victim) not in (None, pid))

    def back():
        with contextlib.suppress(OSError), Client(instance.address) as c:
            r = call(c, tools["name"], {})
            return r.result and "capability elicitation" in text(r)
    until(back)
    with Client(instance.address) as c:
        r = call(c, tool, inputResponses={"q1": {"action": "accept", "content": {"name": 1}}}, requestState=state)
    # admind's death is nothing to a call that runs; the others' end it.
    if victim == "gatewayd-local":
        wrong(r)
    elif victim == "admind":
        assert r.result["isError"] and "does not fit" in text(r), r
    else:
        assert r.error and r.error["data"]["failure_mode"] in ("lost", "sandbox_unavailable"), r
    until(lambda: rows(instance, tool)[0][0] != "open")
    got = rows(instance, tool)
    assert len(got) == before + 1
    assert got[0] == ["closed", "lost" if victim.startswith("sandboxd") else "failed"], got[0]
