"""Two things at once on the admin side: exactly one of them happens, nobody's
work is lost, and a list asked for after an answer never shows what was before."""
import json
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import patience, until

#: Its callers repeat themselves, and are refused, for as long as the races take.
INSTANCE_SETS = ("admind:breakers=no",)

CODE = "def main(x: int = 0) -> int:\n    return x\n"


def at_once(*jobs):
    """Runs the jobs at the same time; their results in order."""
    start, got = threading.Barrier(len(jobs)), [None] * len(jobs)

    def run(n, job):
        start.wait(patience(30))
        got[n] = job()

    threads = [threading.Thread(target=run, args=(n, j)) for n, j in enumerate(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got


def mode(r):
    """None for success, else the failure mode."""
    if r.error:
        return r.error["data"]["failure_mode"]
    if r.result.get("isError"):
        return r.result["_meta"]["mcpbox/failure"]["failure_mode"]
    return None


def call(instance, name, /, **arguments):
    """As a job: one management call by a client of its own."""
    def job():
        with Client(instance.address) as c:
            return mode(c.call(name, arguments))
    return job


@pytest.fixture(scope="module")
def server(instance):
    with Client(instance.address) as c:
        return c.manage("mcpbox_create_server", name="races")["id"]


@pytest.fixture
def tool(mcp, server):
    """A draft: (id, name)"""
    name = "t" + uuid.uuid4().hex[:12]
    return mcp.manage("mcpbox_create_tool", server_id=server, name=name, python_code=CODE)["id"], name


def test_names_are_given_once(instance, mcp, server):
    for _ in range(5):
        n = "n" + uuid.uuid4().hex[:12]
        got = at_once(*[call(instance, "mcpbox_create_server", name=n)] * 4)
        assert sorted(map(str, got)) == ["None"] + ["conflict"] * 3, got
        got = at_once(*[call(instance, "mcpbox_create_tool", server_id=server, name=n, python_code=CODE)] * 4)
        assert sorted(map(str, got)) == ["None"] + ["conflict"] * 3, got
    rows = [t["name"] for t in mcp.manage("mcpbox_list_tools", server_id=server, page_size=100)["tools"]]
    assert len(rows) == len(set(rows))


def test_two_tools_never_take_one_name(instance, mcp, server):
    for _ in range(5):
        ids = [mcp.manage("mcpbox_create_tool", server_id=server, name="r" + uuid.uuid4().hex[:12],
                          python_code=CODE)["id"] for _ in range(2)]
        new = "m" + uuid.uuid4().hex[:12]
        got = at_once(*[call(instance, "mcpbox_update_tool", tool_id=i, name=new) for i in ids])
        assert sorted(map(str, got)) == ["None", "conflict"], got
        assert sum(t["name"] == new for t in mcp.manage("mcpbox_list_tools", server_id=server,
                                                        page_size=100)["tools"]) == 1


def test_publishing_twice_asks_once(instance, mcp, tool):
    got = at_once(*[call(instance, "mcpbox_request_publish", tool_id=tool[0])] * 4)
    assert sorted(map(str, got)) == ["None"] + ["conflict"] * 3, got
    assert instance.psql(f"SELECT count(*) FROM mcpbox.approval_requests WHERE tool_id = '{tool[0]}'") == [["1"]]


def test_no_edit_is_lost(instance, mcp, tool):
    """Edits of different fields at once: each is in the newest version, or its
    author was told that it is not."""
    edits = {"title": "A title", "description": "A description", "meta": {"k": 1}, "task": "optional"}
    told = set()
    for _ in range(6):
        fresh = {k: (v + uuid.uuid4().hex if isinstance(v, str) and k != "task" else v) for k, v in edits.items()}
        fresh["meta"] = {"k": uuid.uuid4().hex}
        fresh["task"] = {"optional": "forbidden", "forbidden": "optional"}[edits["task"]]
        edits["task"] = fresh["task"]
        got = dict(zip(fresh, at_once(*[call(instance, "mcpbox_update_tool", tool_id=tool[0], **{k: v})
                                        for k, v in fresh.items()])))
        told |= set(got.values())
        assert set(got.values()) <= {None, "conflict"} and None in got.values(), got
        row = instance.psql("SELECT title, description, convert_from(meta, 'UTF8'), task FROM mcpbox.tool_versions"
                            f" WHERE tool_id = '{tool[0]}' ORDER BY version_no DESC LIMIT 1")[0]
        newest = dict(zip(("title", "description", "meta", "task"), row))
        for k, v in fresh.items():
            if got[k] is None:
                assert newest[k] == (json.dumps(v) if k == "meta" else v), (k, got)


def test_an_edit_while_it_waits_is_not_what_is_approved(instance, mcp, rest, tool):
    """show, edit, ask again, approve what was shown: refused, and the new one still waits."""
    first = mcp.manage("mcpbox_request_publish", tool_id=tool[0])
    status, headers, _ = rest.get(f"/api/approvals/{first['request_id']}")
    assert status == 200
    mcp.manage("mcpbox_update_tool", tool_id=tool[0], python_code=CODE.replace("return x", "return -x"))
    # The edit is a draft of its own: what was shown may be approved, and is all that is.
    second = mcp.manage("mcpbox_request_publish", tool_id=tool[0])
    status, _, value = rest.request("POST", f"/api/approvals/{first['request_id']}/approve", None,
                                    {"If-Match": headers["etag"]})
    assert status == 409, value
    status, _, value = rest.request("POST", f"/api/approvals/{second['request_id']}/approve", None,
                                    {"If-Match": headers["etag"]})
    assert status == 412, value
    s = mcp.manage("mcpbox_get_tool_status", tool_id=tool[0])
    assert s["serving_version"] is None and s["approval_status"] == "pending_review"


def test_approve_against_asking_again(instance, mcp, tool):
    """Approval of version n and the request of version n + 1 at once: what
    serves is a version that was approved by its own hash, or nothing."""
    for n in range(5):
        asked = mcp.manage("mcpbox_request_publish", tool_id=tool[0])
        shown = instance.ctl_json("approvals", "show", asked["request_id"])
        mcp.manage("mcpbox_update_tool", tool_id=tool[0], description=f"edit {n}")

        def approve():
            return instance.ctl("approvals", "approve", asked["request_id"], "--hash", shown["hash"],
                                check=False).returncode

        code, again = at_once(approve, call(instance, "mcpbox_request_publish", tool_id=tool[0]))
        assert again is None and code in (0, 1)
        state = instance.psql("SELECT a.state, v.state, (SELECT serving_version FROM mcpbox.tools t WHERE t.id ="
                              " a.tool_id) IS NOT DISTINCT FROM v.id FROM mcpbox.approval_requests a JOIN"
                              f" mcpbox.tool_versions v ON v.id = a.subject WHERE a.id = '{asked['request_id']}'")[0]
        assert state == (["approved", "approved", "t"] if code == 0 else ["superseded", "rejected", "f"])
        newest = flow.pending(instance, tool[1])
        instance.ctl("approvals", "approve", newest["id"], "--hash", newest["hash"])
        mcp.manage("mcpbox_update_tool", tool_id=tool[0], description=f"next {n}")


def test_decisions_by_both_roads(instance, mcp, tool):
    """Browser and root at once: one decision, one audit row, one seal at most."""
    asked = mcp.manage("mcpbox_request_publish", tool_id=tool[0])
    shown = instance.ctl_json("approvals", "show", asked["request_id"])
    rests = []
    for _ in range(2):
        rests.append(Rest(lambda: instance.address("admind-http")))
        assert rests[-1].login("admin", instance.password)[0] == 200
    path = f"/api/approvals/{asked['request_id']}"
    got = at_once(
        lambda: rests[0].request("POST", path + "/approve", None, {"If-Match": f'"{shown["hash"]}"'})[0] == 200,
        lambda: rests[1].request("POST", path + "/reject", {"reason": "no"})[0] == 200,
        lambda: instance.ctl("approvals", "approve", asked["request_id"], "--hash", shown["hash"],
                             check=False).returncode == 0,
        lambda: instance.ctl("approvals", "reject", asked["request_id"], "--reason", "no",
                             check=False).returncode == 0)
    assert sum(got) == 1, got
    assert instance.psql("SELECT count(*) FROM mcpbox.audit_log WHERE action IN ('tool_approved', 'tool_rejected')"
                         f" AND detail::json ->> 'request_id' = '{asked['request_id']}'") == [["1"]]
    seals = instance.psql(f"SELECT count(*) FROM mcpbox.approval_seals WHERE request_id = '{asked['request_id']}'")
    assert seals == [["1" if got[0] or got[2] else "0"]]


def test_a_list_after_an_answer_is_never_the_old_one(instance, mcp):
    """100 changes, each followed at once by tools/list on another connection,
    while others keep lists on their way."""
    name = flow.publish(instance, mcp, "lists", "tool", CODE)
    tool = next(t for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"] if s["name"] == "lists"
                for t in mcp.manage("mcpbox_list_tools", server_id=s["id"])["tools"])
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"]
                  if s["name"] == "lists")
    stop = threading.Event()

    def lister():
        with Client(instance.address) as c:
            while not stop.is_set():
                c.tools()

    threads = [threading.Thread(target=lister) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        with Client(instance.address) as other, Client(instance.address, version="2025-11-25") as legacy:
            for n in range(25):
                for change, arguments, there in (
                        ("mcpbox_stop_server", {"server_id": server}, False),
                        ("mcpbox_start_server", {"server_id": server}, True),
                        ("mcpbox_update_tool", {"tool_id": tool["id"], "enabled": False}, False),
                        ("mcpbox_update_tool", {"tool_id": tool["id"], "enabled": True}, True)):
                    mcp.manage(change, **arguments)
                    assert (name in (other if n % 2 else legacy).tools()) == there, (n, change)
                    r = other.call(name, {"x": 3})
                    assert mode(r) == (None if there else "stopped"), (n, change, r)
            # Approvals by root: the old description is never listed after the answer.
            for n in range(10):
                mcp.manage("mcpbox_update_tool", tool_id=tool["id"], description=f"description {n}")
                asked = mcp.manage("mcpbox_request_publish", tool_id=tool["id"])
                shown = instance.ctl_json("approvals", "show", asked["request_id"])
                instance.ctl("approvals", "approve", asked["request_id"], "--hash", shown["hash"])
                assert other.tools()[name]["description"] == f"description {n}"
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_calls_while_the_server_stops_and_starts(instance, mcp):
    """Each call is either done or told why not, and has exactly one record."""
    name = flow.publish(instance, mcp, "flapping", "tool",
                        "import time\ndef main() -> int:\n    time.sleep(0.05)\n    return 1\n")
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"]
                  if s["name"] == "flapping")
    stop, seen, odd = threading.Event(), [], []

    def caller():
        with Client(instance.address) as c:
            while not stop.is_set():
                r = c.call(name)
                seen.append(mode(r))
                if seen[-1] not in (None, "stopped", "busy"):
                    odd.append(r)

    threads = [threading.Thread(target=caller) for _ in range(6)]
    for t in threads:
        t.start()
    for _ in range(15):
        mcp.manage("mcpbox_stop_server", server_id=server)
        mcp.manage("mcpbox_start_server", server_id=server)
    stop.set()
    for t in threads:
        t.join()
    assert not odd, odd[:3]
    assert seen.count(None) > 0 and seen.count("stopped") > 0, seen
    # A record comes a moment behind the answer.
    until(lambda: not instance.psql("SELECT 1 FROM mcpbox.executions WHERE state = 'open' AND"
                                    f" tool = '{name}'"), say=instance.logs)
    rows = instance.psql("SELECT state, outcome, coalesce(failure, ''), count(*) FROM mcpbox.executions WHERE tool ="
                         f" '{name}' AND kind = 'tool' GROUP BY 1, 2, 3")
    counted = {tuple(r[:3]): int(r[3]) for r in rows}
    assert all(k[0] == "closed" for k in counted), counted
    assert counted[("closed", "done", "")] == seen.count(None), (counted, seen.count(None))
    assert set(k[1:] for k in counted) <= {("done", ""), ("killed", "stopped"), ("refused", "stopped"),
                                           ("refused", "busy")}, counted
