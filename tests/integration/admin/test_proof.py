"""A fresh proof over REST, in the whole suite: a login that was stolen without its password
approves nothing once its last proof is five minutes old (nobody waits: harness/proof.py)."""
import json
import secrets

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.proof import age, boot_ms

CODE = "def main() -> int:\n    return {}\n"
SERVER = "proofs"


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


def stale(instance):
    """A login of the administrator, whose proof is too old, and which proves nothing by itself."""
    rest, since = Rest(lambda: instance.address("admind-http"), proves=False), boot_ms()
    assert rest.login("admin", instance.password)[0] == 200
    age(instance.service_pid("admind-vault"), rest.cookie.split("=", 1)[1] + rest.csrf, since)
    return rest


def pending(mcp, name):
    """A request for a version: (its id, the tool's)."""
    tool = flow.draft(mcp, SERVER, name, CODE.format(1))
    return mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"], tool


def approve(rest, request):
    tag = rest.get("/api/approvals/" + request)[1]["etag"]
    return rest.request("POST", f"/api/approvals/{request}/approve", {}, {"If-Match": tag})


def wants_proof(answer):
    status, _, problem = answer
    assert (status, problem["failure_mode"]) == (403, "proof_required"), answer
    assert problem["fix"].startswith("Prove yourself again: POST /api/proof"), problem
    return problem


def audited(instance, action):
    return [(r["actor"], r["subject"], r["detail"]) for r in map(
        json.loads, instance.ctl("audit", "export", "--json").stdout.splitlines()) if r["action"] == action]


def state(rest, request):
    return rest.get("/api/approvals/" + request)[2]["state"]


def test_a_stolen_login_approves_nothing(instance, mcp):
    request, _ = pending(mcp, "stolen")
    rest = stale(instance)
    assert rest.get("/api/me")[2]["proof_until"] is None
    wants_proof(approve(rest, request))
    assert state(rest, request) == "pending"
    actor, subject, detail = audited(instance, "approve_refused")[-1]
    assert (actor, subject) == ("admin", request) and "proof_required" in json.dumps(detail)
    # with the password it does, and the page knows until when
    assert rest.request("POST", "/api/proof", {"password": "wrong wrong wrong"})[2]["failure_mode"] == "bad_login"
    wants_proof(approve(rest, request))
    assert rest.request("POST", "/api/proof", {"password": instance.password})[0] == 204
    me = rest.get("/api/me")[2]
    assert me["proof_until"] is not None and me["proof_until"] < me["expires_at"]
    assert approve(rest, request)[0] == 200 and state(rest, request) == "approved"
    assert [r[0] for r in audited(instance, "proof")][-1] == "admin"
    assert [r[0] for r in audited(instance, "proof_failed")][-1] == "admin"


def test_a_stolen_login_changes_no_rule(instance):
    """Neither the policy of review, nor the access document, nor an administrator, though
    it brings the password for the last."""
    rest = stale(instance)
    for path, body in (("/api/approvals/policies", {"profile": "permissive"}), ("/api/access", {})):
        status, headers, before = rest.get(path)
        assert status == 200
        wants_proof(rest.request("PUT", path, body, {"If-Match": headers.get("etag", '"' + "0" * 64 + '"')}))
        assert rest.get(path)[2] == before
    wants_proof(rest.request("POST", "/api/administrators", {
        "username": "mallory", "role": "administrator", "new_password": "a long password", "password": instance.password}))
    wants_proof(rest.request("POST", "/api/administrators/admin/delete", {"password": instance.password}))
    assert [a["username"] for a in rest.get("/api/administrators")[2]["items"]] == ["admin"]


def test_a_stolen_login_makes_nothing_that_outlives_it(instance):
    """Neither a script's key nor an API token; to end one needs no proof."""
    rest, name = stale(instance), "p" + secrets.token_hex(5)
    bodies = {"/api/keys": {"name": name, "scopes": ["read"]}, "/api/tokens": {"name": name}}
    for path, body in bodies.items():
        problem = wants_proof(rest.request("POST", path, body))
        assert problem["detail"] == "this needs a proof at most five minutes old that you are there"
        wants_proof(rest.request("POST", path, {"no_such": 1}))     # the body of a stranger is not read
        assert name not in [x["name"] for x in rest.get(path + "?limit=200")[2]["items"]]
    assert rest.prove()[0] == 204
    made = {path: rest.request("POST", path, body) for path, body in bodies.items()}
    assert {path: answer[0] for path, answer in made.items()} == {"/api/keys": 201, "/api/tokens": 201}
    other = stale(instance)
    for path in (f"/api/keys/{name}/revoke", f"/api/tokens/{made['/api/tokens'][2]['id']}/revoke"):
        assert other.request("POST", path, {"reason": "a test"})[0] == 200


def test_many_at_once(instance, mcp):
    """None is decided; a rejection needs no proof."""
    requests = [pending(mcp, name)[0] for name in ("many1", "many2")]
    rest = stale(instance)
    items = [{"id": r, "hash": rest.get("/api/approvals/" + r)[2]["hash"]} for r in requests]
    problem = wants_proof(rest.request("POST", "/api/approvals/bulk", {"action": "approve", "items": items}))
    assert "nothing was decided" in problem["detail"]
    assert [state(rest, r) for r in requests] == ["pending", "pending"]
    bulk = {"action": "reject", "reason": "no", "items": [{"id": requests[0]}]}
    assert rest.request("POST", "/api/approvals/bulk", bulk)[2]["done"] == 1
    assert rest.request("POST", f"/api/approvals/{requests[1]}/reject", {"reason": "no"})[0] == 200


def test_a_page_goes_on(instance, mcp):
    """As harness/clients/rest.py: asked for a proof, it gives one and sends the request again."""
    request, _ = pending(mcp, "page")
    rest = stale(instance)
    rest.proves = True
    assert approve(rest, request)[0] == 200


def test_root_needs_none(instance, mcp):
    """mcpboxctl is the way back in, and has no login that could be old."""
    request, _ = pending(mcp, "root")
    digest = instance.ctl_json("approvals", "show", request)["hash"]
    instance.ctl("approvals", "approve", request, "--hash", digest)
    assert instance.ctl_json("approvals", "show", request)["state"] == "approved"
    instance.ctl("policies", "set", "tool=require", "module=require", "network=require")
    assert [r for r in audited(instance, "approve_refused") if r[0] == "root"] == []
