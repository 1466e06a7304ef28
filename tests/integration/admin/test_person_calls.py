"""An administrator's own calls and drafts over REST (decision 0111), in the whole suite: the same code, limits and records
as a client's, and no way around an approval, a proof or a role."""
import json
import secrets
import socket

import pytest

from harness.clients import confirm, flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import patience, until
from integration.admin.test_proof import stale, wants_proof

CODE = "def main(n: int = 1) -> int:\n    return n + {}\n"
FAILS = "def main() -> int:\n    raise ValueError('no such city')\n"


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture(scope="module")
def rest(instance):
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    return r


def logged_in(instance, rest, role, name=None):
    """A login of a new administrator with this role."""
    name = name or role + secrets.token_hex(3)
    password = secrets.token_urlsafe(18)
    status, _, answer = rest.request("POST", "/api/administrators", {
        "username": name, "new_password": password, "role": role, "password": instance.password})
    assert status == 204, answer
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login(name, password)[0] == 200
    return r


def call(rest, name, /, **arguments):
    return rest.request("POST", "/api/calls", {"name": name, "arguments": arguments})


def draft(rest, name, /, **arguments):
    return rest.request("POST", "/api/drafts", {"name": name, "arguments": arguments})


def result(answer):
    """(failure mode, CallToolResult) of an answer."""
    status, _, value = answer
    assert status == 200, answer
    return value["failure_mode"], json.loads(value["result"])


def refused(answer):
    status, _, problem = answer
    assert status >= 400 and problem["fix"], answer
    return status, problem["failure_mode"]


@pytest.fixture(scope="module")
def tool(instance, mcp):
    return flow.publish(instance, mcp, "own", "adds", CODE.format(1), description="Adds.")


def record(rest, execution):
    """The record of a call that ended; it is closed after the answer."""
    def closed():
        kept = rest.get("/api/executions/" + execution)[2]
        return kept if kept["state"] == "closed" else None
    return until(closed)


def test_from_a_draft_to_a_call(instance, mcp, rest):
    server = flow.draft(mcp, "own", "other", CODE.format(3)) and next(
        s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "own")
    code = CODE.format(2)
    failure, made = result(draft(rest, "create_tool", server_id=server, name="life", description="Adds two.", python_code=code))
    assert failure is None and not made.get("isError"), made
    tool_id = made["structuredContent"]["id"]
    assert result(draft(rest, "validate_code", code=code))[0] is None
    failure, tried = result(draft(rest, "test_code", tool_id=tool_id, arguments={"n": 5}))
    assert failure is None and "7" in json.dumps(tried), tried
    # What is drafted serves nobody.
    assert refused(call(rest, "own__life", n=1)) == (409, "not_approved")
    request = result(draft(rest, "request_publish", tool_id=tool_id, notes="Two is enough."))[1]["structuredContent"]["request_id"]
    _, headers, item = rest.get("/api/approvals/" + request)
    assert item["requested_by"] == "admin" and item["content"]["code"] == code, item
    assert rest.request("POST", f"/api/approvals/{request}/approve", {}, {"If-Match": headers["etag"]})[0] == 200
    answer = call(rest, "own__life", n=5)
    assert result(answer)[0] is None and result(answer)[1]["content"][0]["text"] == "7", answer
    kept = record(rest, answer[2]["execution"])
    assert (kept["principal"], kept["listener"], kept["tool"], kept["outcome"]) == ("admin", "admind", "own__life", "done"), kept
    assert json.loads(kept["arguments"]) == {"n": 5}
    # A client sees the same tool.
    assert mcp.call("own__life", {"n": 5}).result["content"][0]["text"] == "7"
    failure, changed = result(draft(rest, "update_tool", tool_id=tool_id, python_code=CODE.format(9)))
    assert failure is None, changed
    assert {(v["change_source"], v["created_by"]) for v in rest.get("/api/versions?tool=" + tool_id)[2]["items"]} == {("manual", "admin")}
    assert result(call(rest, "own__life", n=5))[1]["content"][0]["text"] == "7", "an approved version serves until the next"


def test_what_may_not_run_now_is_a_conflict(instance, mcp, rest):
    """... that another state of the tool would end; a client's fault has its own status."""
    name = flow.publish(instance, mcp, "own", "halts", CODE.format(1))
    [row] = [t for t in rest.get("/api/tools?limit=200")[2]["items"] if t["exposed_name"] == name]
    assert result(call(rest, name))[0] is None
    assert rest.request("POST", f"/api/tools/{row['id']}/disable", {"reason": "odd"})[0] == 200
    answer = call(rest, name)
    assert refused(answer) == (409, "stopped") and answer[1]["content-type"] == "application/problem+json", answer
    assert (answer[2]["status"], answer[2]["title"]) == (409, "Conflict")
    assert rest.request("POST", f"/api/tools/{row['id']}/enable")[0] == 200
    assert result(call(rest, name))[0] is None
    assert rest.request("POST", f"/api/servers/{row['server_id']}/stop", {})[0] == 200
    assert refused(call(rest, name)) == (409, "stopped")
    assert rest.request("POST", f"/api/servers/{row['server_id']}/start")[0] == 200
    assert rest.request("POST", f"/api/tools/{row['id']}/revoke", {"reason": "wrong"})[0] == 200
    assert refused(call(rest, name)) == (409, "revoked")
    assert refused(call(rest, "own__nothing")) == (404, "unknown_tool")


def test_bad_input_gets_a_clear_answer(instance, mcp, rest, tool):
    failure, answer = result(call(rest, tool, n="x"))
    assert failure == "invalid_arguments" and answer["isError"] and "/n" in answer["content"][0]["text"], answer
    fails = flow.publish(instance, mcp, "own", "fails", FAILS)
    failure, answer = result(call(rest, fails))
    assert failure == "exception" and answer["isError"] and "no such city" in answer["content"][0]["text"], answer
    assert refused(call(rest, "own__nothing"))[1] == "unknown_tool"
    for body in ({"name": tool}, {"name": tool, "arguments": []}, {"arguments": {}}, {"name": 1, "arguments": {}},
                 {"name": "x" * 300, "arguments": {}}, {"name": "mcpbox_create_tool", "arguments": {}},
                 {"name": "a\u0000b", "arguments": {}}, {"name": tool, "arguments": {}, "more": 1}):
        assert refused(rest.request("POST", "/api/calls", body))[0] == 400, body
    failure, answer = result(draft(rest, "create_tool", name="x"))
    assert failure == "invalid_arguments" and answer["isError"], answer


@pytest.mark.parametrize("number", ["99999999999999999999", "-99999999999999999999", "18446744073709551616", "1e2"])
def test_a_tool_gets_the_numbers_that_were_sent(instance, mcp, rest, number):
    name = flow.publish(instance, mcp, "own", "shows" + secrets.token_hex(3), "def main(n: int) -> str:\n    return repr(n)\n")
    answer = rest.request("POST", "/api/calls", f'{{"name": "{name}", "arguments": {{"n": {number} }} }}'.encode())
    assert result(answer)[1]["content"][0]["text"] == repr(int(float(number)) if "e" in number else int(number)), answer
    assert json.loads(record(rest, answer[2]["execution"])["arguments"]) == {"n": json.loads(number)}


def test_tools_with_a_route_of_their_own_are_refused(rest):
    for name in ("delete_tool", "start_server", "stop_server", "delete_server", "get_tool_logs", "call_tool", "nothing", ""):
        assert refused(draft(rest, name))[0] == 400, name


def test_a_draft_switches_nothing(instance, mcp, rest):
    name = flow.publish(instance, mcp, "own", "stays", CODE.format(1))
    [row] = [t for t in rest.get("/api/tools?limit=200")[2]["items"] if t["exposed_name"] == name]

    def switch():
        return next((t["enabled"], t["disabled_authority"]) for t in rest.get("/api/tools?limit=200")[2]["items"]
                    if t["id"] == row["id"])

    old = stale(instance)
    failure, answer = result(draft(old, "update_tool", tool_id=row["id"], enabled=False))
    assert failure == "invalid_arguments" and "/api/tools/{id}/disable" in answer["content"][0]["text"], answer
    failure, answer = result(draft(old, "update_tool", tool_id=row["id"], python_code=CODE.format(2), enabled=False))
    assert failure == "invalid_arguments", answer
    assert switch()[0] and len(rest.get("/api/versions?tool=" + row["id"])[2]["items"]) == 1
    # A person's stop is an administrator's, by its own route: no client undoes it.
    assert rest.request("POST", f"/api/tools/{row['id']}/disable", {})[0] == 200
    assert result(draft(old, "update_tool", tool_id=row["id"], enabled=True))[0] == "invalid_arguments"
    assert switch() == (False, "administrator")


def test_no_client_slips_its_content_into_a_draft(instance, mcp, rest):
    tool_id = flow.draft(mcp, "own", "slips", CODE.format(1))

    def hash_of(version):
        return rest.get(f"/api/tools/{tool_id}/versions/{version}")[2]["version_hash"]

    def drafted(name, match, /, **arguments):
        return rest.request("POST", "/api/drafts", {"name": name, "arguments": {"tool_id": tool_id, **arguments}},
                            {"If-Match": f'"{match}"'})
    read = hash_of(1)
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code="def main() -> str:\n    return 'slipped in'\n")
    # The person read version 1, and changes its description or asks for its review.
    for name, arguments in (("update_tool", {"description": "Adds one."}), ("test_code", {}), ("request_publish", {})):
        failure, answer = result(drafted(name, read, **arguments))
        assert failure == "hash_mismatch" and answer["isError"], (name, answer)
    versions = rest.get("/api/versions?tool=" + tool_id)[2]["items"]
    assert [(v["version"], v["created_by"]) for v in versions] == [(2, "local"), (1, "local")], versions
    assert not [i for i in instance.ctl_json("approvals", "list")["items"] if i["tool"] == "slips"]
    assert result(drafted("update_tool", hash_of(2), python_code=CODE.format(3)))[0] is None
    newest = rest.get("/api/versions?tool=" + tool_id)[2]["items"][0]
    assert (newest["version"], newest["created_by"], newest["change_source"]) == (3, "admin", "manual"), newest
    assert result(drafted("test_code", hash_of(3)))[0] is None
    asked = result(drafted("request_publish", hash_of(3)))[1]["structuredContent"]
    assert rest.get("/api/approvals/" + asked["request_id"])[2]["hash"] == hash_of(3)
    # Where none is compared, the name of a version is refused.
    assert refused(drafted("create_tool", read))[0] == 400 and refused(drafted("update_tool", "x"))[0] == 412
    assert refused(rest.request("POST", "/api/calls", {"name": "own__slips", "arguments": {}}, {"If-Match": f'"{read}"'}))[0] == 400


def test_a_tool_that_asks_its_client_goes_on(instance, mcp, rest):
    code = ("import mcpbox\n\ndef main() -> str:\n    said = ''\n    for n in range(3):\n        try:\n"
            "            mcpbox.elicit(f'Delete {n}?', {'sure': bool})\n            said += 'answered '\n"
            "        except mcpbox.ClientError as e:\n            said += f'{e} '\n    return said\n")
    name = flow.publish(instance, mcp, "own", "wonders", code)
    failure, answer = result(call(rest, name))
    assert failure is None and answer["content"][0]["text"].count("did not answer") == 3, answer


def test_a_stale_proof_calls_nothing(instance, rest, tool):
    before = rest.get("/api/executions?principal=admin&tool=" + tool)[2]["items"]
    old = stale(instance)
    wants_proof(call(old, tool, n=1))
    assert rest.get("/api/executions?principal=admin&tool=" + tool)[2]["items"] == before
    assert result(draft(old, "validate_code", code=CODE.format(1)))[0] is None, "a draft serves nobody"
    assert old.prove()[0] in (401, 204) and old.once("POST", "/api/proof", {"password": instance.password})[0] == 204
    assert result(call(old, tool, n=1))[0] is None


@pytest.mark.parametrize("role", ["reviewer", "viewer"])
def test_only_administrators_call(instance, rest, tool, role):
    r = logged_in(instance, rest, role)
    assert refused(call(r, tool, n=1)) == (403, "forbidden")
    assert refused(draft(r, "validate_code", code=CODE.format(1))) == (403, "forbidden")


def test_half_a_login_and_a_key_call_nothing(instance, rest, tool):
    half = Rest(lambda: instance.address("admind-http"))
    half.cookie = rest.cookie
    assert call(half, tool, n=1)[0] == 401
    status, _, key = rest.request("POST", "/api/keys", {"name": "caller", "scopes": ["read", "operate"], "expires_in_days": 1})
    assert status in (200, 201), key
    bearer = Rest(lambda: instance.address("admind-http"))
    for path in ("/api/calls", "/api/drafts"):
        answer = bearer.once("POST", path, {"name": tool, "arguments": {}}, {"Authorization": "Bearer " + key["key"]})
        assert answer[0] == 403, answer


def test_a_call_that_a_person_must_allow_is_not_begun(instance, mcp, rest):
    asks = confirm.publish(instance, mcp, "own", "asks", confirm=True)
    before = [i["id"] for i in instance.ctl_json("approvals", "list")["items"] if i["kind"] == "call"]
    failure, answer = result(call(rest, asks, n=1))
    assert failure == "forbidden" and "waits for an approval" in answer["content"][0]["text"], answer
    assert [i["id"] for i in instance.ctl_json("approvals", "list")["items"] if i["kind"] == "call"] == before


def test_no_administrator_has_the_name_of_a_client(instance, rest):
    for name in ("local", "token:x", "oidc:home:1"):
        status, _, problem = rest.request("POST", "/api/administrators", {
            "username": name, "new_password": secrets.token_urlsafe(18), "role": "administrator",
            "password": instance.password})
        assert status == 400, (name, problem)


def test_a_revoked_tool_is_not_called(instance, mcp, rest):
    name = flow.publish(instance, mcp, "own", "goes", CODE.format(4))
    assert result(call(rest, name, n=1))[0] is None
    [row] = [t for t in rest.get("/api/tools?limit=200")[2]["items"] if t["exposed_name"] == name]
    assert rest.request("POST", f"/api/tools/{row['id']}/revoke", {"reason": "gone"})[0] == 200
    assert refused(call(rest, name, n=1))[1] == "revoked"


def head(instance, path, length, more=()):
    """(a connection, the answer to a head alone or None): no byte of the body is sent."""
    c = socket.create_connection(instance.address("admind-http"), timeout=patience(30))
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {length}", *more]
    c.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return c


def answer_of(c):
    """(status, problem) of the one answer that ends the connection."""
    text = b""
    while data := c.recv(65536):
        text += data
    c.close()
    first, _, rest = text.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(rest)


def credentials(rest):
    return ("Cookie: " + rest.cookie, "X-CSRF-Token: " + rest.csrf)


@pytest.mark.parametrize("size", [40_000, 99_000])
def test_a_draft_may_be_as_long_as_a_clients(instance, mcp, rest, tool, size):
    """Code of up to 100,000 bytes, of which JSON makes more."""
    mark = secrets.token_hex(4)
    code = f"# {mark}\n" + "# \"\\\t\n" * ((size - 60) // 6) + "def main() -> int:\n    return 1\n"
    assert size - 100 < len(code) <= size and len(json.dumps(code)) > 32 * 1024 * size // 40_000
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "own")
    failure, made = result(draft(rest, "create_tool", server_id=server, name="long" + mark, description="Long.", python_code=code))
    assert failure is None and not made.get("isError"), made
    shown = rest.get(f"/api/tools/{made['structuredContent']['id']}/versions/1")[2]
    assert code in json.dumps(shown) or mark in json.dumps(shown)
    # the longest code is the same as a client's
    failure, made = result(draft(rest, "validate_code", code="#" * 100_001 + "\n"))
    assert failure == "limit" or failure == "invalid_arguments" or made.get("structuredContent", {}).get("valid") is False, made


def test_a_call_may_have_long_arguments(instance, mcp, rest):
    name = flow.publish(instance, mcp, "own", "measures", "def main(text: str) -> int:\n    return len(text)\n")
    assert result(call(rest, name, text="x" * 500_000))[1]["content"][0]["text"] == "500000"


def test_a_large_body_waits_for_the_login(instance, rest, tool):
    """Nothing of the body was sent, and the answer is there: who has no login, or no proof, is not read."""
    half = credentials(rest)
    # a half of the same form that is another's
    other = [h[:-20] + ("A" if h[-20] != "A" else "B") + h[-19:] for h in half]
    for more in ((), (half[0],), (half[1],), (other[0], half[1]), (half[0], other[1])):
        status, problem = answer_of(head(instance, "/api/drafts", 500_000, more))
        assert (status, problem["failure_mode"]) == (401, "unauthenticated"), more
    status, problem = answer_of(head(instance, "/api/drafts", 500_000, ("Authorization: Bearer mbk_" + "a" * 43,)))
    assert status in (401, 403), problem
    status, problem = answer_of(head(instance, "/api/drafts", 500_000, (*half, "Origin: http://evil.example")))
    assert (status, problem["failure_mode"]) == (403, "forbidden_origin")
    status, problem = answer_of(head(instance, "/api/calls", 500_000, credentials(stale(instance))))
    assert (status, problem["failure_mode"]) == (403, "proof_required")


@pytest.mark.parametrize("path", ["/api/servers", "/api/login", "/api/password", "/api/approvals/bulk"])
def test_other_routes_take_no_large_body(instance, rest, path):
    status, problem = answer_of(head(instance, path, 33_000, credentials(rest)))
    assert (status, problem["failure_mode"]) == (413, "too_large") and problem["fix"]


def test_bodies_over_the_largest_are_refused(instance, rest):
    for length in (1024 * 1024 + 32 * 1024 + 1, 9_999_999, 10_000_000):
        status, problem = answer_of(head(instance, "/api/drafts", length, credentials(rest)))
        assert (status, problem["failure_mode"]) == (413, "too_large"), length
    body = b'{"name": "validate_code", "arguments": {"code": ""}}'.ljust(1024 * 1024 + 32 * 1024)
    assert rest.request("POST", "/api/drafts", body)[0] == 200


def test_eight_large_bodies_come_at_once(instance, rest):
    """... and a ninth is told to come again; all else is served."""
    begun = []
    for _ in range(8):
        c = head(instance, "/api/drafts", 100_000, (*credentials(rest), "Expect: 100-continue"))
        assert c.recv(64).startswith(b"HTTP/1.1 100 ")
        begun.append(c)
    status, problem = answer_of(head(instance, "/api/drafts", 100_000, credentials(rest)))
    assert (status, problem["failure_mode"]) == (503, "busy") and problem["retry_after_ms"] == 1000
    assert result(draft(rest, "validate_code", code="def main() -> int:\n    return 1\n"))[0] is None
    for c in begun:
        c.close()
    until(lambda: draft(rest, "validate_code", code="#" * 50_000 + "\n")[0] == 200)
