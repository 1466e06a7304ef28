"""Per-call approval from end to end: real gatewayd, admind, vault, sandboxd,
PostgreSQL; a person is mcpboxctl."""
import threading
import time

import pytest

from harness.clients import confirm
from harness.clients.confirm import approve, expire, failure, numbers, one, reject, runs, waiting
from harness.clients.mcp import LEGACY, META, Client, text
from harness.clients.rest import Rest
from harness.clients.sse import Stream
from harness.clients.tasks import Tasks
from harness.instance import Instance
from harness.patience import patience, until

@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as c:
        return confirm.publish(instance, c, "risky", "wipe")


@pytest.fixture
def client(instance):
    with Client(instance.address) as c:
        yield c


def begin(client, tool, n):
    """A modern call: its requestState."""
    r = client.request("tools/call", {"name": tool, "arguments": {"n": n}})
    assert r.result["resultType"] == "input_required", r
    assert not r.result.get("inputRequests")
    return r.result["requestState"]


def go_on(client, tool, n, state):
    return client.request("tools/call", {"name": tool, "arguments": {"n": n},
                                         "requestState": state})


def all_closed(instance, n):
    """Returns whether no call with n is open. A record comes a moment behind the answer."""
    return one(instance, "SELECT count(*) FROM mcpbox.executions WHERE state = 'open'"
               f" AND arguments = '{{\"n\": {n}}}'") == "0"


def ran_once(instance, n):
    """Returns whether it ran once with n."""
    until(lambda: runs(instance, n) >= 1 and all_closed(instance, n), say=instance.logs)
    return runs(instance, n) == 1


def test_modern_waits_and_runs_once(instance, client, tool):
    n = next(numbers)
    state = begin(client, tool, n)
    item = waiting(instance, n)
    assert item["kind"] == "call" and item["state"] == "pending"
    shown = item["content"]
    assert shown["tool"] == tool and shown["arguments"] == {"n": n}
    assert shown["listener"] == "local" and shown["request"] == item["id"]
    assert shown["principal"] == item["requested_by"]
    assert runs(instance, n) == 0
    approve(instance, item)
    r = go_on(client, tool, n, state)
    assert text(r) == f"did {n}" and r.result["resultType"] == "complete"
    assert ran_once(instance, n)
    after = instance.ctl_json("approvals", "show", item["id"])
    assert after["state"] == "approved" and after["used_at"] and after["decided_by"] == "root"
    assert after["execution"].replace("-", "") == \
        r.result["_meta"]["mcpbox/execution"]["execution_id"].replace("-", "")
    # The state is used, and a new call is a new request.
    assert go_on(client, tool, n, state).error["code"] == -32602
    begin(client, tool, n)
    assert waiting(instance, n)["id"] != item["id"] and ran_once(instance, n)


def test_a_retry_is_kept_waiting_until_the_decision(instance, client, tool):
    n = next(numbers)
    state = begin(client, tool, n)
    item = waiting(instance, n)
    got = []
    t = threading.Thread(target=lambda: got.append(go_on(client, tool, n, state)))
    t.start()
    time.sleep(1)
    assert not got, "answered before the decision"
    approve(instance, item)
    t.join(patience(10))
    assert text(got[0]) == f"did {n}"


def test_other_arguments_are_another_call(instance, client, tool):
    n = next(numbers)
    state = begin(client, tool, n)
    approve(instance, waiting(instance, n))
    r = go_on(client, tool, next(numbers), state)
    assert r.error["code"] == -32602, r
    assert text(go_on(client, tool, n, state)) == f"did {n}"


def test_rejected_ends_typed_and_stays_refused(instance, client, tool):
    n = next(numbers)
    state = begin(client, tool, n)
    reject(instance, waiting(instance, n), "not on a Sunday")
    r = go_on(client, tool, n, state)
    assert failure(r) == "not_confirmed" and "not on a Sunday" in text(r)
    # Who repeats it gets no second person to ask.
    r = client.call(tool, {"n": n})
    assert failure(r) == "not_confirmed" and runs(instance, n) == 0


def test_expired_ends_typed(instance, client, tool):
    n = next(numbers)
    state = begin(client, tool, n)
    item = waiting(instance, n)
    got = []
    t = threading.Thread(target=lambda: got.append(go_on(client, tool, n, state)))
    t.start()
    time.sleep(1)
    assert not got, "answered before its time was over"
    expire(instance)
    t.join(patience(20))
    assert failure(got[0]) == "not_confirmed", got
    assert item["id"] in instance.ctl("approvals", "list", "--kind", "call", "--state", "expired").stdout
    out = instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"], check=False)
    assert out.returncode == 1 and "approved" not in out.stdout
    assert runs(instance, n) == 0
    begin(client, tool, n)      # and may be asked for anew


def test_bad_arguments_ask_nobody(instance, client, tool):
    before = one(instance, "SELECT count(*) FROM mcpbox.call_requests")
    assert failure(client.call(tool, {"n": "many"})) == "invalid_arguments"
    assert one(instance, "SELECT count(*) FROM mcpbox.call_requests") == before


def test_legacy_waits_on_its_stream(instance, tool):
    n = next(numbers)
    with Client(instance.address, version=LEGACY) as c:
        got = []
        t = threading.Thread(target=lambda: got.append(c.call(tool, {"n": n})))
        t.start()
        item = waiting(instance, n)
        assert not got
        approve(instance, item)
        t.join(patience(10))
        assert got[0].headers["content-type"].startswith("text/event-stream")
        assert b": keep-alive" in got[0].raw
        assert text(got[0]) == f"did {n}" and ran_once(instance, n)


def test_legacy_hears_of_rejection_and_expiry(instance, tool):
    with Client(instance.address, version=LEGACY) as c:
        n = next(numbers)
        t = threading.Thread(target=lambda: reject(instance, waiting(instance, n), "no"))
        t.start()
        assert failure(c.call(tool, {"n": n})) == "not_confirmed"
        t.join()
        n, got = next(numbers), []
        t = threading.Thread(target=lambda: got.append(c.call(tool, {"n": n})))
        t.start()
        waiting(instance, n)
        assert not got
        expire(instance)
        t.join(patience(20))
        assert failure(got[0]) == "not_confirmed"


def test_legacy_without_a_stream_calls_again(instance, tool):
    n = next(numbers)
    with Client(instance.address, version=LEGACY) as c:
        r = c.request("tools/call", {"name": tool, "arguments": {"n": n}},
                      {"Accept": "*/*"})
        assert failure(r) == "confirmation_pending"
        item = waiting(instance, n)
        assert item["id"] in text(r)
        approve(instance, item)
        r = c.request("tools/call", {"name": tool, "arguments": {"n": n}}, {"Accept": "*/*"})
        assert text(r) == f"did {n}" and ran_once(instance, n)


def test_who_left_finds_its_request_again(instance, tool):
    """A client that gave up waiting, whose model calls again."""
    n = next(numbers)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": {"n": n}}}
    s = Stream(instance.address(), body=body, headers={"MCP-Protocol-Version": LEGACY})
    item = waiting(instance, n)
    s.s.close()
    approve(instance, item)
    time.sleep(0.5)
    assert runs(instance, n) == 0, "ran for nobody"
    with Client(instance.address, version=LEGACY) as c:
        assert text(c.call(tool, {"n": n})) == f"did {n}"
    assert ran_once(instance, n)


def test_cancelled_while_it_waits(instance, tool):
    n = next(numbers)
    with Client(instance.address, version=LEGACY) as c:
        got = []
        t = threading.Thread(target=lambda: got.append(c.call(tool, {"n": n})))
        t.start()
        item = waiting(instance, n)
        with Client(instance.address, version=LEGACY) as other:
            other.session = c.session
            ident = next(c.ids) - 1
            other.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": ident}}, other._legacy())
        t.join(patience(10))
        assert failure(got[0]) == "killed"
    approve(instance, item)
    time.sleep(0.3)
    assert runs(instance, n) == 0


def test_one_yes_two_callers_one_run(instance, client, tool):
    """Two clients of one principal, the same call, one request."""
    n = next(numbers)
    with Client(instance.address) as other:
        state, twin = begin(client, tool, n), begin(other, tool, n)
        approve(instance, waiting(instance, n))
        got = [None, None]

        def call(i, c, s):
            got[i] = go_on(c, tool, n, s)

        threads = [threading.Thread(target=call, args=a)
                   for a in ((0, client, state), (1, other, twin))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(patience(20))
    done = [r for r in got if not r.result["isError"]]
    refused = [r for r in got if r.result["isError"]]
    assert len(done) == 1 and text(done[0]) == f"did {n}", got
    assert failure(refused[0]) == "not_confirmed"
    assert ran_once(instance, n)


def test_revoked_meanwhile(instance):
    with Client(instance.address) as c:
        name = confirm.publish(instance, c, "risky", "gone")
        n = next(numbers)
        state = begin(c, name, n)
        item = waiting(instance, n)
        version = one(instance, "SELECT v.id FROM mcpbox.tool_versions v WHERE"
                      f" v.exposed_name = '{name}' AND v.state = 'approved'")
        instance.psql(f"SELECT mcpbox.revoke_version('{version}', 'test', 'root')")
        # admind remembers the version until the database's notice is there: wrong arguments, which
        # ask nobody, show when that is.
        until(lambda: (wrong := c.call(name, {"n": "many"})).error
              and wrong.error["data"]["failure_mode"] == "revoked", say=instance.logs)
        r = go_on(c, name, n, state)
        assert r.error["data"]["failure_mode"] == "revoked", r
        assert instance.ctl_json("approvals", "show", item["id"])["state"] == "superseded"
        assert runs(instance, n) == 0


def test_changed_meanwhile(instance):
    """A yes to one version is none to the next."""
    with Client(instance.address) as c:
        name = confirm.publish(instance, c, "risky", "moved")
        n = next(numbers)
        state = begin(c, name, n)
        approve(instance, waiting(instance, n))
        tool_id = one(instance, "SELECT tool_id FROM mcpbox.tool_names"
                      f" WHERE exposed_name = '{name}'")
        c.manage("mcpbox_update_tool", tool_id=tool_id,
                 python_code=confirm.CODE.replace("did", "really did"))
        c.manage("mcpbox_request_publish", tool_id=tool_id)
        for item in instance.ctl_json("approvals", "list", "--kind", "tool")["items"]:
            if item["tool"] == "moved":
                approve(instance, item)
        r = go_on(c, name, n, state)
        assert failure(r) == "not_confirmed", r
        begin(c, name, n)
        assert runs(instance, n) == 0


def test_a_task_is_made_behind_the_yes(instance):
    with Client(instance.address) as c:
        name = confirm.publish(instance, c, "risky", "long", task="required")
    with Tasks(instance.address) as c:
        n = next(numbers)
        params = {"name": name, "arguments": {"n": n}}
        r = c.ask("tools/call", params)
        assert r.result["resultType"] == "input_required", r
        assert one(instance, "SELECT count(*) FROM mcpbox.tasks") == "0"
        approve(instance, waiting(instance, n))
        r = c.ask("tools/call", {**params, "requestState": r.result["requestState"]})
        assert r.result["resultType"] == "task", r
        end = c.until(r.result["taskId"])
        assert end["status"] == "completed" and ran_once(instance, n)
        assert end["result"]["content"][0]["text"] == f"did {n}"


def test_a_tool_that_asks_its_client_too(instance):
    """The states of both conversations are told apart."""
    code = ("import mcpbox\ndef main(n: int) -> str:\n"
            "    return mcpbox.elicit('Sure?', {'word': str}).content['word'] + str(n)\n")
    with Client(instance.address) as c:
        name = confirm.publish(instance, c, "risky", "asks", code)
        n = next(numbers)
        extra = {"_meta": {META + "clientCapabilities": {"elicitation": {}}}}
        params = {"name": name, "arguments": {"n": n}, **extra}
        first = c.request("tools/call", params).result
        approve(instance, waiting(instance, n))
        r = c.request("tools/call", {**params, "requestState": first["requestState"]}).result
        assert r["resultType"] == "input_required" and len(r["inputRequests"]) == 1
        key = next(iter(r["inputRequests"]))
        r = c.request("tools/call", {**params, "requestState": r["requestState"],
                                     "inputResponses": {key: {"action": "accept",
                                                              "content": {"word": "yes"}}}})
        assert text(r) == f"yes{n}"


def test_large_arguments_are_not_read_by_anybody(instance, client):
    code = "def main(s: str) -> str:\n    return s[:1]\n"
    name = confirm.publish(instance, client, "risky", "large", code)
    r = client.call(name, {"s": "x" * 70_000})
    assert failure(r) == "limit" and "65536" in text(r)


def test_the_policy_on_destructive_tools(instance, client):
    def made(tool, **annotations):
        return confirm.publish(instance, client, "policy", tool, confirm=False,
                               **({"annotations": annotations} if annotations else {}))

    plain = made("plain")
    reads = made("reads", readOnlyHint=True)
    mild = made("mild", destructiveHint=False)
    harsh = made("harsh", destructiveHint=True)

    def waits(name):
        n = next(numbers)
        r = client.call(name, {"n": n}).result
        assert r["resultType"] == "input_required" or r["content"][0]["text"] == f"did {n}", r
        return r["resultType"] == "input_required"

    tools = (plain, reads, mild, harsh)
    assert instance.ctl_json("settings", "confirm_destructive")["value"] == "off"
    assert [waits(t) for t in tools] == [False] * 4
    instance.ctl("settings", "set", "confirm_destructive", "on")
    try:
        assert [waits(t) for t in tools] == [True, False, False, True]
        n = next(numbers)
        state = begin(client, harsh, n)
        approve(instance, waiting(instance, n))
        assert text(go_on(client, harsh, n, state)) == f"did {n}"
    finally:
        instance.ctl("settings", "set", "confirm_destructive", "off")
    assert [waits(t) for t in tools] == [False] * 4
    actions = [r["action"] for r in instance.ctl_json("audit")["items"]]
    assert "setting_changed" in actions
    assert "such setting" in instance.ctl("settings", "set", "x", "on", check=False).stderr


def test_it_is_all_in_the_audit_log(instance):
    actions = {r["action"] for r in instance.ctl_json("audit", "--limit", "200")["items"]}
    assert {"call_requested", "call_approved", "call_confirmed"} <= actions


def test_what_people_read(instance, client, tool):
    n = next(numbers)
    begin(client, tool, n)
    item = waiting(instance, n)
    table = instance.ctl("approvals", "list", "--kind", "call").stdout
    assert "principal" in table and "arguments" in table and item["id"] in table
    shown = instance.ctl("approvals", "show", item["id"]).stdout
    assert f'1 | {{"n": {n}}}' in shown and item["hash"] in shown and tool in shown
    assert item["content"]["version_hash"] in shown


def test_by_rest(instance, client, tool):
    """As a reviewer's page would: list, read, approve what was read."""
    n, m = next(numbers), next(numbers)
    state, refused = begin(client, tool, n), begin(client, tool, m)
    item, no = waiting(instance, n), waiting(instance, m)
    rest = Rest(lambda: instance.address("admind-http"))
    assert rest.get("/api/approvals?kind=call")[0] == 401
    assert rest.login("admin", instance.password)[0] == 200
    rows = rest.get("/api/approvals?kind=call&state=pending")[2]["items"]
    row = next(r for r in rows if r["id"] == item["id"])
    assert row["arguments"] == f'{{"n": {n}}}' and row["principal"] and row["expires_at"]
    assert row["exposed_name"] == tool and row["used_at"] is None
    path = f"/api/approvals/{item['id']}"
    status, headers, value = rest.get(path)
    assert status == 200 and headers["etag"] == f'"{item["hash"]}"'
    assert value["kind"] == "call" and value["content"] == item["content"]
    assert value["content"]["arguments"] == {"n": n}
    assert rest.request("POST", path + "/approve", {})[0] == 428
    other = {"If-Match": f'"{no["hash"]}"'}
    assert rest.request("POST", path + "/approve", {}, other)[0] == 412
    assert runs(instance, n) == 0
    good = {"If-Match": headers["etag"]}
    assert rest.request("POST", path + "/approve", {}, good)[0] == 200
    assert rest.request("POST", path + "/approve", {}, good)[0] == 409
    assert text(go_on(client, tool, n, state)) == f"did {n}"
    path = f"/api/approvals/{no['id']}"
    assert rest.request("POST", path + "/reject", {"reason": "no"})[0] == 200
    assert failure(go_on(client, tool, m, refused)) == "not_confirmed"
    assert rest.get(path)[2]["decided_by"] == "admin"


def test_who_only_views_sees_no_arguments(instance, client, tool):
    """As little as in a call's record; all else of the queue it does see."""
    n = next(numbers)
    begin(client, tool, n)
    item = waiting(instance, n)
    instance.ctl("administrators", "create", "onlooker", "--role", "viewer",
                 stdin=instance.password + "\n")
    rest = Rest(lambda: instance.address("admind-http"))
    assert rest.login("onlooker", instance.password)[0] == 200
    server = item["server_id"]
    for query in ("", "?kind=call", "?state=pending", "?kind=call&state=pending",
                  f"?server={server}", f"?tool={tool}", "?search=risky"):
        status, _, page = rest.get("/api/approvals" + query)
        row = next(r for r in page["items"] if r["id"] == item["id"])
        assert row["principal"] and row["exposed_name"] == tool, query
        assert row["arguments"] is None, query
    for path in ("", "/diff"):
        assert rest.get(f"/api/approvals/{item['id']}{path}")[0] == 403
    assert rest.get("/api/approvals?kind=tool")[2]["items"]
    other = rest.get("/api/approvals?kind=tool")[2]["items"][0]["id"]
    assert rest.get("/api/approvals/" + other)[0] == 200
    assert rest.login("admin", instance.password)[0] == 200
    for query in ("", "?kind=call", "?state=pending", "?kind=call&state=pending",
                  f"?server={server}", f"?tool={tool}", "?search=risky"):
        rows = rest.get("/api/approvals" + query)[2]["items"]
        assert next(r for r in rows if r["id"] == item["id"])["arguments"] == f'{{"n": {n}}}'
    reject(instance, item, "seen")


def test_restarts(instance, client, tool):
    """gatewayd's state ends with it; admind's request does not."""
    n = next(numbers)
    begin(client, tool, n)
    item = waiting(instance, n)
    approve(instance, item)
    client.close()
    instance.tool("restart", "gatewayd-local")
    def did():
        with Client(instance.address) as c:
            assert text(c.call(tool, {"n": n})) == f"did {n}"
        return True
    until(did, 20, 0.1, during=(OSError, AssertionError))   # admind hears of the new one a moment later
    assert ran_once(instance, n)


def test_a_yes_ends_with_the_vault(instance, client, tool):
    """What was used before a restart is not known after it: so a yes from before
    runs nothing, its call is closed, and the next one is asked for anew."""
    plain = confirm.publish(instance, client, "risky", "plain", confirm=False)
    n = next(numbers)
    begin(client, tool, n)
    item = waiting(instance, n)
    approve(instance, item)
    vault = instance.control.services(("admind-vault",))
    assert instance.control.sv("-w", f"{patience(15):.0f}", "down", *vault) == 0
    def why_not():
        r = client.call(plain, {"n": next(numbers)})
        if r.error is None:
            assert text(r).startswith("did "), r
            return None
        why = r.error["data"]["failure_mode"]
        assert why in ("vault_unavailable", "sandbox_unavailable"), r
        return why
    until(lambda: why_not() == "vault_unavailable", 20, 0.1)
    # It is not back: nothing is used.
    r = client.call(tool, {"n": n})
    assert r.error and r.error["data"]["failure_mode"] == "vault_unavailable", r
    assert instance.control.sv("up", *vault) == 0
    # admind may find the vault before sandboxd has a key from it, and in between a call uses its
    # yes up and does not run. A call that needs no yes shows that all are back.
    until(lambda: why_not() is None, 20, 0.1, say=instance.logs)
    r = client.call(tool, {"n": n})
    assert failure(r) == "not_confirmed" and "restart" in text(r), r
    until(lambda: all_closed(instance, n), say=instance.logs)
    assert runs(instance, n) == 0
    assert one(instance, "SELECT state || ' ' || failure FROM mcpbox.executions"
               f" WHERE arguments = '{{\"n\": {n}}}'") == "closed not_confirmed"
    state = begin(client, tool, n)
    again = waiting(instance, n)
    assert again["id"] != item["id"]
    approve(instance, again)
    assert text(go_on(client, tool, n, state)) == f"did {n}"


def test_too_many_wait(instance, tool):
    """Of one principal 8 at a time; the next is told so, and asks nobody."""
    expire(instance)    # those of other tests
    with Client(instance.address) as c:
        mine = [next(numbers) for _ in range(9)]
        states = {n: begin(c, tool, n) for n in mine[:8]}
        r = c.call(tool, {"n": mine[8]})
        # No limit of the tool: `busy`, until people have decided.
        assert r.result is None and "8 of your calls" in r.error["message"], r
        data = r.error["data"]
        assert data["failure_mode"] == "busy" and data["retry_after_ms"] >= 10000
        n = mine[0]
        approve(instance, waiting(instance, n))
        assert text(go_on(c, tool, n, states[n])) == f"did {n}"
        begin(c, tool, mine[8])
