"""The approvals queue over REST and mcpboxctl: who may decide, and on what."""
import os
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.rest import Rest

CODE = "def main() -> int:\n    return 1\n"


@pytest.fixture
def item(instance, mcp, request):
    """A pending request of a tool of this test's own."""
    name = "t" + uuid.uuid4().hex[:12]
    tool_id = flow.draft(mcp, "queue", name, CODE)
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    return dict(flow.pending(instance, name), tool_id=tool_id, name=name)


def approve(rest, item, etag=None, **kw):
    headers = {} if etag is None else {"If-Match": etag}
    return rest.request("POST", f"/api/approvals/{item['id']}/approve", {}, headers, **kw)


def status(mcp, item):
    return mcp.manage("mcpbox_get_tool_status", tool_id=item["tool_id"])["approval_status"]


def test_login_is_needed(instance, item):
    r = Rest(lambda: instance.address("admind-http"))
    for path in ("/api/me", "/api/approvals", f"/api/approvals/{item['id']}", "/api/servers",
                 "/api/tools", "/api/audit"):
        code, headers, value = r.get(path)
        assert code == 401, path
        assert headers["content-type"].startswith("application/problem+json")
        assert value["failure_mode"]
    assert approve(r, item, f'"{item["hash"]}"')[0] == 401


@pytest.mark.parametrize("user,password", [("admin", "wrong-password-x"), ("nobody", None), ("", "")])
def test_wrong_login(instance, user, password):
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login(user, instance.password if password is None else password)[0] in (400, 401)


def test_login_cookie_and_csrf(instance, rest, item, mcp):
    code, headers, value = Rest(lambda: instance.address("admind-http")).login(
        "admin", instance.password)
    cookie = headers["set-cookie"]
    assert code == 200 and value["username"] == "admin" and value["role"] == "administrator"
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    # A write without the token, as another site's form would send it.
    csrf, rest.csrf = rest.csrf, None
    assert approve(rest, item, f'"{item["hash"]}"')[0] == 401
    rest.csrf = "A" * 43
    assert approve(rest, item, f'"{item["hash"]}"')[0] == 401
    assert status(mcp, item) == "pending_review"
    rest.csrf = csrf
    code, _, _ = rest.request("POST", f"/api/approvals/{item['id']}/approve", {},
                              {"If-Match": f'"{item["hash"]}"', "Origin": "http://evil.example"})
    assert code == 403
    code, _, _ = rest.request("GET", "/api/me", headers={"Host": "evil.example"})
    assert code == 403


def test_approve_needs_the_reviewed_hash(rest, item, mcp):
    assert approve(rest, item)[0] == 428
    assert approve(rest, item, '"' + "0" * 64 + '"')[0] == 412
    assert approve(rest, item, "*")[0] in (400, 412, 428)
    assert status(mcp, item) == "pending_review"
    assert approve(rest, item, f'"{item["hash"]}"')[0] in (200, 204)
    assert status(mcp, item) == "approved"
    assert approve(rest, item, f'"{item["hash"]}"')[0] == 409
    code, _, _ = rest.request("POST", f"/api/approvals/{item['id']}/reject", {"reason": "late"})
    assert code == 409


def test_an_edit_moves_the_hash(instance, rest, item, mcp):
    mcp.manage("mcpbox_update_tool", tool_id=item["tool_id"],
               python_code="def main() -> int:\n    return 2\n")
    # What was reviewed is not what is there: whatever became of the request,
    # the new content is not approved by the old hash.
    code, _, _ = approve(rest, item, f'"{item["hash"]}"')
    assert code in (200, 204, 404, 409, 412)
    versions = instance.psql(
        "SELECT encode(v.hash, 'hex') FROM mcpbox.tool_versions v JOIN mcpbox.tools t "
        f"ON v.tool_id = t.id WHERE t.name = '{item['name']}' AND v.state = 'approved'")
    assert all(v == [item["hash"]] for v in versions)
    assert code in (404, 409, 412) or versions


def test_unknown_request(rest):
    assert rest.get(f"/api/approvals/{uuid.uuid4()}")[0] == 404
    assert rest.get("/api/approvals/nonsense")[0] in (400, 404)


def test_two_administrators_at_once(instance, item, mcp):
    """Exactly one decision is committed."""
    codes = []

    def decide(what):
        r = Rest(lambda: instance.address("admind-http"))
        r.login("admin", instance.password)
        if what == "approve":
            codes.append(approve(r, item, f'"{item["hash"]}"')[0])
        else:
            codes.append(r.request("POST", f"/api/approvals/{item['id']}/reject",
                                   {"reason": "no"})[0])

    threads = [threading.Thread(target=decide, args=(w,)) for w in ("approve", "reject") * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(codes) == 4
    assert sum(c in (200, 204) for c in codes) == 1, codes
    assert sum(c == 409 for c in codes) == 3, codes


def test_logout_ends_the_login(instance):
    r = Rest(lambda: instance.address("admind-http"))
    r.login("admin", instance.password)
    assert r.get("/api/me")[0] == 200
    assert r.request("POST", "/api/logout", {})[0] in (200, 204)
    assert r.get("/api/me")[0] == 401


def test_ctl_refuses_another_hash(instance, item, mcp):
    r = instance.ctl("approvals", "approve", item["id"], "--hash", "0" * 64, check=False)
    assert r.returncode == 1
    assert status(mcp, item) == "pending_review"
    shown = instance.ctl("approvals", "show", item["id"]).stdout
    assert "return 1" in shown and item["hash"] in shown
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    r = instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"], check=False)
    assert r.returncode == 1


def test_ctl_usage_and_unreachable(instance, tmp_path):
    assert instance.ctl("no-such-command", check=False).returncode == 2
    assert instance.ctl("approvals", "approve", check=False).returncode == 2


def test_ids_by_their_first_digits(instance, mcp, item):
    """As long as no other begins so; a name goes before; in every table that has such ids."""
    assert item["hash"] in instance.ctl("approvals", "show", item["id"][:-1].upper()).stdout
    mcp.manage("mcpbox_create_server", name="beef1")
    servers = {s["name"]: s["id"] for s in instance.ctl_json("servers", "--limit", "200")["items"]}
    assert instance.ctl_json("servers", "beef1")["id"] == servers["beef1"]
    assert instance.ctl_json("servers", servers["beef1"][:-1])["name"] == "beef1"
    shared = os.path.commonprefix(list(servers.values())[:2])
    assert len(servers) > 1 and len(shared) >= 4
    r = instance.ctl("servers", shared, check=False)
    assert r.returncode == 1 and "ambiguous" in r.stderr and "`mcpboxctl servers`" in r.stderr, r.stderr
    r = instance.ctl("servers", "ffff", check=False)
    assert r.returncode == 1 and "not found" in r.stderr, r.stderr
    tool = instance.ctl_json("tools", "--limit", "1")["items"][0]
    assert instance.ctl_json("tools", tool["id"][:-2])["tool"]["id"] == tool["id"]
    for kind in ("executions", "sources"):
        words = [kind, "ffff"] if kind == "executions" else [kind, "show", "ffff"]
        assert "not found" in instance.ctl(*words, check=False).stderr


def test_setup_works_once(instance, tmp_path):
    f = tmp_path / "password"
    f.write_text("another-long-password\n")
    f.chmod(0o600)
    r = instance.ctl("setup", "--username", "second", "--password-file", str(f), check=False)
    assert r.returncode == 1
    assert Rest(lambda: instance.address("admind-http")).login("second", "another-long-password")[0] == 401


def test_decisions_and_logins_are_audited(instance, rest, item):
    approve(rest, item, f'"{item["hash"]}"')
    code, _, page = rest.get("/api/audit?limit=200")
    assert code == 200
    seen = str(page["items"])
    assert "login" in seen and "approve" in seen
    assert instance.ctl_json("audit")


def test_lists_are_paged(instance, rest, item):
    code, _, page = rest.get("/api/audit?limit=1")
    assert code == 200 and len(page["items"]) == 1 and page["next_cursor"]
    code, _, second = rest.get(f"/api/audit?limit=1&cursor={page['next_cursor']}")
    assert code == 200 and second["items"] != page["items"]
    for path in ("/api/servers", "/api/tools", "/api/approvals?kind=tool&state=approved"):
        code, _, page = rest.get(path)
        assert code == 200 and "items" in page and "next_cursor" in page
    assert rest.get("/api/audit?limit=0")[0] == 400
    assert rest.get("/api/audit?limit=x")[0] == 400
