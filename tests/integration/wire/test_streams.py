"""Event streams of both eras between real daemons: what a change does to them,
what a client that was cut off gets back, and who is told nothing."""
import itertools
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, META, MODERN, Client, meta, request, text
from harness.clients.sse import Stream
from harness.instance import Instance

STEPS = """import mcpbox, time
def main(n: int = 3, pause: float = 0.2, away: int = 0) -> int:
    for i in range(n):
        mcpbox.progress(i + 1, n)
        if away and i == 0:
            mcpbox.pause_stream(away)
        time.sleep(pause)
    return n
"""
names = itertools.count(1)


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(scope="module")
def steps(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "stream", "steps", STEPS)


def listen(instance, rid=1, **wanted):
    body = {"jsonrpc": "2.0", "id": rid, "method": "subscriptions/listen",
            "params": {"notifications": wanted, "_meta": meta()}}
    return Stream(instance.address(), body=body, headers={
        "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"})


def get(instance, client, last=None):
    h = {"MCP-Protocol-Version": client.version, "Mcp-Session-Id": client.session}
    if last:
        h["Last-Event-ID"] = last
    return Stream(instance.address(), "GET", headers=h)


def post_call(instance, client, name, arguments, rid=77):
    """A legacy call as a stream."""
    body = {"jsonrpc": "2.0", "id": rid, "method": "tools/call", "params": {
        "name": name, "arguments": arguments, "_meta": {"progressToken": "p"}}}
    return Stream(instance.address(), body=body, headers={
        "MCP-Protocol-Version": client.version, "Mcp-Session-Id": client.session})


def new_tool(instance, client):
    """Drafted and asked for: the approval that waits."""
    name = f"n{next(names)}"
    tool = flow.draft(client, "stream", name, "def main() -> int:\n    return 1\n")
    client.manage("mcpbox_request_publish", tool_id=tool)
    return tool, flow.pending(instance, name)


def approve(instance, item):
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def result(event):
    return event.json["result"]["content"][0]["text"]


def subscription(event):
    return event.json["params"]["_meta"][META + "subscriptionId"]


def test_listen_says_what_it_honours_first(instance, mcp):
    _, item = new_tool(instance, mcp)
    with listen(instance, rid="a b", toolsListChanged=True, promptsListChanged=False,
                resourceSubscriptions=["test://nowhere"]) as s:
        assert s.status == 200
        assert s.headers["content-type"] == "text/event-stream"
        assert s.headers["x-accel-buffering"] == "no"
        e = s.next()
        assert e.json == {"jsonrpc": "2.0",
                          "method": "notifications/subscriptions/acknowledged",
                          "params": {"_meta": {META + "subscriptionId": "a b"},
                                     "notifications": {"toolsListChanged": True}}}
        assert e.id is None  # the modern wire has no resume
        approve(instance, item)
        e = s.message("notifications/tools/list_changed")
        assert subscription(e) == "a b" and e.id is None


def test_changes_reach_the_right_streams(instance, mcp):
    one, first = new_tool(instance, mcp)
    two, second = new_tool(instance, mcp)
    with Client(instance.address, LEGACY) as legacy, \
            listen(instance, toolsListChanged=True) as tools, \
            listen(instance, promptsListChanged=True) as prompts, \
            get(instance, legacy) as own:
        for s in (tools, prompts):
            assert s.next().json["method"] == "notifications/subscriptions/acknowledged"
        assert own.next().data == ""

        def told():
            """Both are; the tools a client then finds."""
            for s in (tools, own):
                s.message("notifications/tools/list_changed")
            return set(mcp.tools())

        names = [f"stream__{i['tool']}" for i in (first, second)]
        approve(instance, first)
        assert names[0] in told()
        approve(instance, second)
        assert names[1] in told()
        instance.psql("SELECT mcpbox.revoke_version(v.id, 'why', 'root') FROM "
                      f"mcpbox.tool_versions v WHERE v.tool_id = '{one}'")
        assert names[0] not in told()
        mcp.manage("mcpbox_delete_tool", tool_id=two)
        assert names[1] not in told()
        prompts.quiet(0.3)


def test_who_watches_a_resource_is_told_of_its_next_version(instance, mcp, steps):
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"]
                  if s["name"] == "stream")

    def approved(made):
        mcp.manage("mcpbox_request_publish", tool_id=made["id"])
        approve(instance, flow.pending(instance, made["name"]))

    ids = []
    for n in "ab":
        made = mcp.manage("mcpbox_create_resource", server_id=server, name=f"watched_{n}",
                          uri=f"watch://{n}", text="1")
        approved(made)
        ids.append(made["id"])
    with Client(instance.address, LEGACY) as c, \
            listen(instance, resourceSubscriptions=["watch://a", "watch://none"]) as s, \
            get(instance, c) as own:
        assert s.next().json["params"]["notifications"] == {"resourceSubscriptions": ["watch://a"]}
        own.next()
        assert c.request("resources/subscribe", {"uri": "watch://a"}).result == {}
        assert c.request("resources/subscribe", {"uri": "watch://none"}).error
        # Another resource is none of theirs.
        approved(mcp.manage("mcpbox_update_resource", resource_id=ids[1], text="2"))
        own.message("notifications/resources/list_changed")
        s.quiet(0.2)
        approved(mcp.manage("mcpbox_update_resource", resource_id=ids[0], text="2"))
        e = s.message("notifications/resources/updated")
        assert e.json["params"]["uri"] == "watch://a"
        own.message("notifications/resources/list_changed")
        assert own.message("notifications/resources/updated").json["params"] == {"uri": "watch://a"}
        assert c.request("resources/unsubscribe", {"uri": "watch://a"}).result == {}
        mcp.manage("mcpbox_delete_resource", resource_id=ids[0])
        s.message("notifications/resources/updated")
        own.message("notifications/resources/list_changed")
        own.quiet(0.2)


def test_a_session_s_subscriptions_are_full(instance, mcp, steps):
    """64 of one session; the next is `busy`, since no tool has met a limit."""
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "stream")
    made = mcp.manage("mcpbox_create_resource", server_id=server, name="many", uri_template="many://{x}",
                      python_code="def main(x):\n    return x\n")
    mcp.manage("mcpbox_request_publish", tool_id=made["id"])
    approve(instance, flow.pending(instance, made["name"]))
    with Client(instance.address, LEGACY) as c:
        for n in range(64):
            assert c.request("resources/subscribe", {"uri": f"many://{n}"}).result == {}, n
        error = c.request("resources/subscribe", {"uri": "many://64"}).error
        assert "64 a session" in error["message"], error
        assert error["data"]["failure_mode"] == "busy", error
        assert c.request("resources/unsubscribe", {"uri": "many://0"}).result == {}
        assert c.request("resources/subscribe", {"uri": "many://64"}).result == {}


def test_get_resumes_what_was_missed(instance, mcp):
    with Client(instance.address, LEGACY) as c:
        with get(instance, c) as s:
            first = s.next()
            assert first.data == "" and first.retry and first.id
        _, item = new_tool(instance, mcp)
        approve(instance, item)
        with get(instance, c, first.id) as s:
            s.next()
            e = s.message("notifications/tools/list_changed")
            s.quiet(0.2)
        with get(instance, c, e.id) as s:
            s.next()
            s.quiet(0.2)
        # A second one takes its place.
        with get(instance, c) as one, get(instance, c) as two:
            assert [x.data for x in one.rest()] == [""]
            assert two.next().data == ""
        assert c.send({"jsonrpc": "2.0", "id": 9, "method": "ping"},
                      c._legacy()).result == {}
        # Another session's ids say nothing here.
        with Client(instance.address, LEGACY) as d, get(instance, d, e.id) as s:
            assert s.status == 200
        with get(instance, c) as s:
            s.next()
            r = request(instance.address(), "DELETE", headers={
                "Mcp-Session-Id": c.session, "MCP-Protocol-Version": LEGACY})
            assert r.status == 204
            assert s.rest() == []


def test_get_without_a_session_is_405(instance):
    for headers in ({}, {"MCP-Protocol-Version": MODERN, "Mcp-Session-Id": "x"}):
        r = request(instance.address(), "GET", headers=headers)
        assert r.status == 405 and "POST" in r.headers["allow"], r
    assert request(instance.address(), "GET", headers={"Mcp-Session-Id": "x"}).status == 404


def test_a_call_that_lost_its_connection_goes_on(instance, steps):
    with Client(instance.address, LEGACY) as c:
        with post_call(instance, c, steps, {"n": 3, "pause": 0.3}) as s:
            primed = s.next()
            assert primed.data == "" and primed.id
            e = s.message("notifications/progress")
        # Cut off at 1 of 3; back at once, while it runs ...
        with get(instance, c, e.id) as s:
            got = s.rest()
        assert [x.json["params"]["progress"] for x in got[:-1]] == [2, 3]
        assert got[-1].json["id"] == 77
        assert result(got[-1]) == "3"
        # ... and again when it is long over: the same events.
        with get(instance, c, primed.id) as s:
            again = s.rest()
        assert [x.id for x in again] == [e.id] + [x.id for x in got]
        assert again[-1].data == got[-1].data
        # Nothing is kept behind an id that never was.
        with get(instance, c, got[-1].id + "f") as s:
            assert s.rest() == []
        r = request(instance.address(), "GET", headers={
            "Mcp-Session-Id": c.session, "Last-Event-ID": got[-1].id.split("-")[0] + "-ff-1"})
        assert r.status == 400


def test_a_tool_may_send_its_client_away(instance, steps):
    with Client(instance.address, LEGACY) as c:
        with post_call(instance, c, steps, {"n": 2, "pause": 0.4, "away": 350}) as s:
            events = s.rest()
        assert [x.retry for x in events if x.retry] == [350]
        assert not [x for x in events if x.data and "result" in x.json]
        last = [x.id for x in events if x.id][-1]
        with get(instance, c, last) as s:
            assert result(s.rest()[-1]) == "2"
    # Who could not come back is not sent away.
    with Client(instance.address, "2025-06-18") as c:
        with post_call(instance, c, steps, {"n": 2, "pause": 0.1, "away": 350}) as s:
            events = s.rest()
        assert not [x for x in events if x.retry or x.data == ""]
        assert events[-1].json["id"] == 77
    with Client(instance.address) as c:
        assert text(c.call(steps, {"n": 1, "away": 100})) == "1"


def test_pausing_without_end_costs_the_tool_alone(instance, mcp):
    """Hints count as progress reports: over the rate they are dropped."""
    name = flow.publish(instance, mcp, "stream", "pauses", """import mcpbox
def main() -> str:
    for i in range(3000):
        mcpbox.pause_stream(0)
    try:
        mcpbox.pause_stream(60001)
    except ValueError:
        return "done"
""")
    r = mcp.call(name)
    assert text(r) == "done"
    dropped = r.result["_meta"]["mcpbox/execution"]["progress_reports_dropped"]
    assert dropped > 1000
    with Client(instance.address, LEGACY) as c:
        with post_call(instance, c, name, {}) as s:
            events = s.rest()
        assert len(events) == 2 and events[1].retry == 0, events
        # It may be sent away again, as long as the tool goes on.
        for _ in range(300):
            with get(instance, c, events[0].id) as s:
                last = s.rest()[-1]
            if last.data:
                break
        assert result(last) == "done"


def test_shutdown_ends_streams_by_their_last_message(instance, mcp):
    with listen(instance, rid=4, toolsListChanged=True) as s, \
            Client(instance.address, LEGACY) as c, get(instance, c) as own:
        s.next()
        own.next()
        pid = instance.service_pid("gatewayd-local")
        instance.tool("restart", "gatewayd-local")
        assert instance.service_pid("gatewayd-local") != pid
        end = s.rest()
        assert [x.json["id"] for x in end] == [4], end
        assert end[0].json["result"]["resultType"] == "complete"
        assert end[0].json["result"]["_meta"][META + "subscriptionId"] == 4
        assert own.rest() == []
    instance.tool("wait")
    # The session outlives the process; what may have changed is said.
    with get(instance, c, "00000000-0-1") as s:
        seen = {s.next().json.get("method") for _ in range(4)}
    assert {"notifications/tools/list_changed", "notifications/prompts/list_changed",
            "notifications/resources/list_changed"} < seen


def test_admind_that_was_away_may_have_changed_something(instance, mcp):
    """Streams survive it, and are told if the catalogue is another one."""
    _, item = new_tool(instance, mcp)
    with listen(instance, toolsListChanged=True) as s:
        s.next()
        instance.tool("restart", "admind")
        instance.tool("wait")
        s.quiet(0.5)
        approve(instance, item)
        s.message("notifications/tools/list_changed")
