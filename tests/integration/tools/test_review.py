"""Reviewing over REST and mcpboxctl, from the request by MCP to the effect on a
call: hosts and modules, two persons, policies, many at once, what changed."""
import json
import os
import re
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.clients.rest import Rest
from harness.patience import patience, until

CODE = "def main() -> int:\n    return 1\n"
# It runs as long as its file is there.
RUNS = ("import os, time\ndef main() -> int:\n    open('/tmp/runs', 'w').close()\n"
        "    while os.path.exists('/tmp/runs'):\n        time.sleep(.02)\n    return 1\n")
SERVER = "review"
PASSWORD = "a long password of theirs"


@pytest.fixture(scope="module", autouse=True)
def plain_policy(instance):
    yield
    instance.ctl("policies", "set", "tool=require", "module=require", "network=require")


def unique(prefix="t"):
    return prefix + uuid.uuid4().hex[:10]


def draft(mcp, name=None, code=CODE, **more):
    name = name or unique()
    return flow.draft(mcp, SERVER, name, code, **more), name


def item(instance, request_id):
    return instance.ctl_json("approvals", "show", request_id)


def approve(rest, request_id, digest=None):
    if digest is None:
        digest = rest.get("/api/approvals/" + request_id)[1]["etag"].strip('"')
    return rest.request("POST", f"/api/approvals/{request_id}/approve", {}, {"If-Match": f'"{digest}"'})


def publish(mcp, tool_id):
    return mcp.manage("mcpbox_request_publish", tool_id=tool_id)["request_id"]


def failed(call, mode):
    """An isError result of this failure mode; its text."""
    r = call.result
    assert r.get("isError"), r
    assert mode in json.dumps(r.get("_meta", {})) + r["content"][0]["text"], r
    return r["content"][0]["text"]


# --- network ----------------------------------------------------------------


def test_a_host_from_wish_to_revocation(instance, mcp, rest):
    tool, name = draft(mcp, requires=["api.example.org:443"])
    assert approve(rest, publish(mcp, tool))[0] == 200
    exposed = f"{SERVER}__{name}"
    said = failed(mcp.call(exposed), "missing_grant")
    assert "api.example.org:443" in said and "mcpbox_request_network_access" in said
    status = mcp.manage("mcpbox_get_tool_status", tool_id=tool)
    assert "api.example.org" in status["missing_grant"] and status["network_access_requests"] == []

    asked = mcp.manage("mcpbox_request_network_access", tool_id=tool, host="API.example.org.", port=443,
                       justification="the weather")
    assert (asked["host"], asked["port"], asked["status"]) == ("api.example.org", 443, "pending")
    request = asked["request_id"]
    waiting = mcp.manage("mcpbox_list_pending_requests")
    mine = [w for w in waiting["pending_network_requests"] if w["id"] == request][0]
    assert (mine["host"], mine["port"], mine["tool_name"]) == ("api.example.org", 443, name)

    code, headers, shown = rest.get("/api/approvals/" + request)
    assert code == 200 and shown["kind"] == "network" and shown["notes"] == "the weather"
    content = shown["content"]
    assert (content["host"], content["port"], content["server"]) == ("api.example.org", 443, SERVER)
    version = rest.get("/api/tools/" + tool)[2]
    assert len(content["affected"]) == 1 and content["affected"][0] in json.dumps(version)
    assert [t["exposed_name"] for t in shown["affected_tools"]] == [exposed]
    assert "api.example.org" in instance.ctl("approvals", "show", request).stdout
    diff = rest.get(f"/api/approvals/{request}/diff")[2]
    assert diff["gains"]["hosts"] == ["api.example.org:443"] and diff["affected"] == content["affected"]

    assert approve(rest, request, "0" * 64)[0] == 412
    assert approve(rest, request, shown["hash"])[0] == 200
    assert text(mcp.call(exposed)) == "1"
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool)["hosts_granted"] == ["api.example.org:443"]
    granted = [g for g in rest.get("/api/network?state=active")[2]["items"] if g["id"] == request]
    assert granted[0]["granted_by"] == "admin" and granted[0]["automatic"] is False
    for query, found in ((shown["server_id"], True), (str(uuid.uuid4()), False)):
        here = rest.get(f"/api/network?server={query}&limit=200")[2]["items"]
        assert (request in [g["id"] for g in here]) is found

    code, _, answer = rest.request("POST", f"/api/approvals/{request}/revoke", {"reason": "no more"})
    assert code == 200 and answer["revoked"] is True
    failed(mcp.call(exposed), "missing_grant")
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool)["network_access_requests"][0]["status"] == "revoked"


def test_what_runs_goes_on_without_its_grant(instance, rest, mcp):
    """A host is out of reach of the next connect (tests/egress); what needs none
    to come to its end comes to it. No new call begins."""
    tool, name = draft(mcp, code=RUNS, requires=["slow.example.org"], limits={"timeout_ms": 600000})
    assert approve(rest, publish(mcp, tool))[0] == 200
    request = mcp.manage("mcpbox_request_network_access", tool_id=tool, host="slow.example.org",
                         justification="x")["request_id"]
    assert approve(rest, request)[0] == 200
    out = []
    with Client(instance.address) as other:
        thread = threading.Thread(target=lambda: out.append(other.call(f"{SERVER}__{name}")))
        thread.start()
        files = until(lambda: [f for p in instance.pool()["mcpbox-runner"]
                               if os.path.exists(f := f"/proc/{p}/root/tmp/runs")])
        try:
            assert rest.request("POST", f"/api/approvals/{request}/revoke", {"reason": "now"})[0] == 200
            failed(mcp.call(f"{SERVER}__{name}"), "missing_grant")
            assert not out
        finally:
            os.unlink(files[0])
            thread.join(patience(15))
    assert out and text(out[0]) == "1", out


def test_several_tools_of_one_server(mcp):
    one, _ = draft(mcp)
    two, _ = draft(mcp)
    asked = mcp.manage("mcpbox_request_network_access", tool_ids=[one, two], host=unique("h") + ".example.org",
                       justification="both")
    assert {t["id"] for t in asked["tools"]} == {one, two} and asked["port"] is None
    for tool in (one, two):
        assert len(mcp.manage("mcpbox_get_tool_status", tool_id=tool)["network_access_requests"]) == 1
    for wrong in ({"host": "x.example.org"}, {"tool_id": one, "tool_ids": [two], "host": "x.example.org"},
                  {"tool_id": one, "host": "http://x.example.org"}, {"tool_id": one, "host": "127.0.0.1"}):
        r = mcp.call("mcpbox_request_network_access", dict(wrong, justification="x")).result
        assert r["isError"], wrong


def test_what_it_touches_changes(mcp, rest):
    """A version that comes to serve makes of the request another one."""
    tool, _ = draft(mcp, requires=["changes.example.org"])
    request = mcp.manage("mcpbox_request_network_access", tool_id=tool, host="changes.example.org",
                         justification="x")["request_id"]
    digest = rest.get("/api/approvals/" + request)[2]["hash"]
    assert approve(rest, publish(mcp, tool))[0] == 200
    assert approve(rest, request, digest)[0] == 409
    fresh = mcp.manage("mcpbox_get_tool_status", tool_id=tool)["network_access_requests"]
    assert len(fresh) == 1 and fresh[0]["id"] != request
    assert len(rest.get("/api/approvals/" + fresh[0]["id"])[2]["content"]["affected"]) == 1
    assert approve(rest, fresh[0]["id"])[0] == 200


def test_an_administrator_asks(instance, rest, mcp):
    draft(mcp)
    server = [s for s in rest.get("/api/servers?limit=200")[2]["items"] if s["name"] == SERVER][0]["id"]
    code, _, made = rest.request("POST", f"/api/servers/{server}/network",
                                 {"host": "*.lab.example.org", "port": 22})
    assert code in (200, 201) and made["requested_by"] == "admin" and made["state"] == "pending"
    shown = instance.ctl("approvals", "show", made["id"]).stdout
    assert "*.lab.example.org" in shown and "22" in shown
    digest = item(instance, made["id"])["hash"]
    assert instance.ctl("approvals", "approve", made["id"], "--hash", digest).stdout == "approved\n"


# --- modules ----------------------------------------------------------------


def test_a_module_through_the_vault(instance, mcp, rest):
    tool, _ = draft(mcp)
    name = unique("mod")
    request = mcp.manage("mcpbox_request_module", tool_id=tool, module_name=name,
                         justification="to parse")["request_id"]
    code, _, problem = approve(rest, request)       # nobody recorded it
    assert code == 409 and problem["failure_mode"] == "missing_grant"
    assert item(instance, request)["content"]["recorded"] is False
    instance.ctl("modules", "add", name, "1.0", "ab" * 32, "3", "99")
    assert approve(rest, request)[0] == 409
    request = mcp.manage("mcpbox_get_tool_status", tool_id=tool)["module_requests"][0]["id"]
    content = item(instance, request)["content"]
    assert (content["module"], content["version"], content["digest"]) == (name, "1.0", "ab" * 32)
    assert "ab" * 32 in instance.ctl("approvals", "show", request).stdout
    assert approve(rest, request)[0] == 200
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool)["modules_granted"] == [name + "==1.0"]
    code, _, answer = rest.request("POST", f"/api/tools/{tool}/modules/{name}/revoke", {})
    assert code == 200 and answer["revoked"] == name + "==1.0"
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool)["modules_granted"] == []


# --- what changed -----------------------------------------------------------


def test_what_changed_since_the_approved_version(instance, mcp, rest):
    tool, _ = draft(mcp, code="def main() -> int:\n    x = 1\n    return x\n", description="One.",
                    limits={"cpu_ms": 1000})
    first = publish(mcp, tool)
    diff = rest.get(f"/api/approvals/{first}/diff")[2]
    assert diff["base"] is None and diff["diff"][0]["unified"].startswith("@@ -0,0 +1,3 @@\n+def main()")
    digest = rest.get("/api/approvals/" + first)[2]["hash"]
    assert approve(rest, first, digest)[0] == 200
    mcp.manage("mcpbox_update_tool", tool_id=tool, description="Two.", secrets=["TOKEN"],
               requires=["api.example.org"], limits={"cpu_ms": 2000},
               python_code="def main() -> int:\n    x = 2\n    return x\n")
    second = publish(mcp, tool)
    code, headers, diff = rest.get(f"/api/approvals/{second}/diff")
    assert code == 200 and diff["base"] == digest
    assert headers["etag"].strip('"') == rest.get("/api/approvals/" + second)[2]["hash"]
    assert {"field": "description", "before": "One.", "after": "Two."} in diff["fields"]
    assert diff["diff"] == [{"field": "code", "unified":
                             "@@ -1,3 +1,3 @@\n def main() -> int:\n-    x = 1\n+    x = 2\n     return x\n"}]
    gains = diff["gains"]
    assert gains["secrets"] == ["TOKEN"] and gains["hosts"] == ["api.example.org"] and gains["modules"] == []
    assert gains["limits"] == [{"limit": "cpu_ms", "before": 1000, "after": 2000}]
    shown = instance.ctl("approvals", "diff", second).stdout
    assert "+    x = 2" in shown and "TOKEN" in shown and digest in shown
    assert instance.ctl_json("approvals", "diff", second) == diff
    assert rest.get(f"/api/approvals/{uuid.uuid4()}/diff")[0] == 404


def test_a_forged_base_is_no_base(instance, mcp, rest):
    """Somebody with the owner's rights puts another pre-image behind the version
    that serves: the reviewer is told, not shown a difference that hides."""
    tool, _ = draft(mcp)
    assert approve(rest, publish(mcp, tool))[0] == 200
    mcp.manage("mcpbox_update_tool", tool_id=tool, python_code="def main() -> int:\n    return 2\n")
    second = publish(mcp, tool)
    assert rest.get(f"/api/approvals/{second}/diff")[0] == 200
    seal = f"(SELECT v.id FROM mcpbox.tool_versions v WHERE v.tool_id = '{tool}' AND v.state = 'approved')"
    instance.psql("ALTER TABLE mcpbox.approval_seals DISABLE TRIGGER USER; UPDATE mcpbox.approval_seals "
                  f"SET seal = set_byte(seal, 20, get_byte(seal, 20) # 1) WHERE subject = {seal}; "
                  "ALTER TABLE mcpbox.approval_seals ENABLE TRIGGER USER")
    code, _, problem = rest.get(f"/api/approvals/{second}/diff")
    assert code == 500 and "seal" in problem["detail"]
    assert instance.ctl("approvals", "diff", second, check=False).returncode == 1
    first = instance.psql(f"SELECT id FROM mcpbox.approval_requests WHERE tool_id = '{tool}' "
                          "AND state = 'approved'")[0][0]
    assert "DOES NOT VERIFY" in instance.ctl("approvals", "show", first).stdout


# --- comments, search -------------------------------------------------------


def test_comments_and_search(instance, mcp, rest):
    mark = unique("quux")
    tool, _ = draft(mcp, name=mark)
    request = publish(mcp, tool)
    code, _, said = rest.request("POST", f"/api/approvals/{request}/comments", {"text": "what for?"})
    assert code in (200, 201) and said["items"][0]["author"] == "admin"
    instance.ctl("approvals", "comment", request, "the author says: weather")
    items = rest.get(f"/api/approvals/{request}/comments")[2]["items"]
    assert [i["text"] for i in items] == ["what for?", "the author says: weather"]
    assert "weather" in instance.ctl("approvals", "comments", request).stdout
    assert rest.request("POST", f"/api/approvals/{request}/comments", {"text": ""})[0] in (400, 422)
    for query in (f"search={mark}", f"search={mark[:7]}&kind=tool", f"tool={SERVER}__{mark}", f"tool={tool}"):
        found = rest.get(f"/api/approvals?{query}&state=pending")[2]["items"]
        assert request in [f["id"] for f in found], query
    assert rest.get("/api/approvals?search=nothingofthatkind")[2]["items"] == []
    assert mark in instance.ctl("approvals", "list", "--search", mark).stdout
    page = rest.get("/api/approvals?limit=1")[2]
    assert len(page["items"]) == 1 and page["next_cursor"]
    assert rest.get(f"/api/approvals?limit=1&cursor={page['next_cursor']}")[2]["items"] != page["items"]


# --- many at once -----------------------------------------------------------


def test_many_at_once(instance, mcp, rest):
    made = [draft(mcp) for _ in range(4)]
    items = []
    for tool, _ in made:
        r = publish(mcp, tool)
        items.append({"id": r, "hash": rest.get("/api/approvals/" + r)[2]["hash"]})
    wrong = dict(items[1], hash="0" * 64)
    bulk = {"action": "approve", "items": [items[0], wrong, {"id": str(uuid.uuid4()), "hash": "1" * 64}, items[2]]}
    code, _, answer = rest.request("POST", "/api/approvals/bulk", bulk)
    assert code == 200 and (answer["done"], answer["failed"]) == (2, 2)
    assert [i.get("failure_mode") for i in answer["items"]] == [None, "hash_mismatch", "not_found", None]
    # once more: what was done says so, the rest is done
    bulk["items"][1] = items[1]
    answer = rest.request("POST", "/api/approvals/bulk", bulk)[2]
    assert [i.get("failure_mode") for i in answer["items"]] == ["already_decided", None, "not_found",
                                                                "already_decided"]
    bulk = {"action": "reject", "reason": "not now", "items": [{"id": items[3]["id"]}]}
    assert rest.request("POST", "/api/approvals/bulk", bulk)[2]["items"][0]["state"] == "rejected"
    for bad in ({"action": "approve", "items": []}, {"action": "burn", "items": [items[0]]},
                {"action": "approve", "items": [items[0], items[0]]},
                {"action": "approve", "items": [{"id": items[0]["id"]}]},
                {"action": "reject", "items": [{"id": items[0]["id"]}]},
                {"action": "approve", "items": [dict(items[0], more=1)]},
                {"action": "approve", "items": [dict(items[0], id="x")]},
                {"action": "approve", "items": [{"id": str(uuid.uuid4()), "hash": "1" * 64}] * 101}):
        assert rest.request("POST", "/api/approvals/bulk", bad)[0] in (400, 422), bad


def test_many_at_once_by_mcpboxctl(instance, mcp):
    lines = ""
    for _ in range(3):
        shown = item(instance, publish(mcp, draft(mcp)[0]))
        lines += f"{shown['id']} {shown['hash']}\n"
    # the first digits do, and what was decided is named whole
    r = instance.ctl("approvals", "bulk", "approve", stdin=re.sub(r"(?m)^(.{23})\S* ", r"\1 ", lines))
    assert r.stdout == re.sub(r"(?m) .*$", " approved", lines)
    r = instance.ctl("approvals", "bulk", "approve", stdin=lines, check=False)
    assert r.returncode == 1 and r.stdout.count(" refused\n") == 3
    assert instance.ctl("approvals", "bulk", "approve", stdin="nonsense\n", check=False).returncode == 2


# --- policies ---------------------------------------------------------------


def set_policy(rest, **body):
    etag = rest.get("/api/approvals/policies")[1]["etag"]
    return rest.request("PUT", "/api/approvals/policies", body, {"If-Match": etag})


def test_policies_over_rest(rest):
    code, headers, now = rest.get("/api/approvals/policies")
    assert code == 200 and now["tool"] in ("require", "second", "automatic")
    body = {"tool": "require", "module": "second", "network": "require"}
    assert rest.request("PUT", "/api/approvals/policies", body)[0] == 428
    assert rest.request("PUT", "/api/approvals/policies", body, {"If-Match": '"' + "1" * 64 + '"'})[0] == 412
    code, headers, now = set_policy(rest, **body)
    assert code == 200 and now["module"] == "second" and now["set_by"] == "admin" and now["profile"] is None
    assert headers["etag"] == rest.get("/api/approvals/policies")[1]["etag"]
    for bad in ({}, {"tool": "require"}, {"profile": "lax"}, {"profile": "strict", "tool": "require"},
                dict(body, days=91), dict(body, tool="never"), dict(body, more=1)):
        assert set_policy(rest, **bad)[0] in (400, 422), bad
    assert set_policy(rest, profile="strict")[2]["tool"] == "second"
    assert set_policy(rest, profile="balanced")[2]["profile"] == "balanced"


def test_policies_at_the_same_moment(instance, rest):
    """Two changes from the same policy: one holds, and the other's person is told."""
    others = [Rest(rest.where), Rest(rest.where)]
    for other in others:
        assert other.login("admin", instance.password)[0] == 200
    for _ in range(8):
        code, headers, _ = set_policy(rest, profile="balanced")
        assert code == 200
        answers = {}

        def change(i):
            answers[i] = others[i].request("PUT", "/api/approvals/policies", {
                "tool": ("require", "second")[i], "module": ("second", "require")[i], "network": "second"},
                {"If-Match": headers["etag"]})
        threads = [threading.Thread(target=change, args=(i,)) for i in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        first, = [i for i in answers if answers[i][0] == 200]
        assert (answers[1 - first][0], answers[1 - first][2]["failure_mode"]) == (412, "hash_mismatch")
        assert rest.get("/api/approvals/policies")[2]["tool"] == ("require", "second")[first]
    assert set_policy(rest, profile="balanced")[0] == 200


def test_two_persons(instance, mcp, rest):
    assert set_policy(rest, profile="strict")[0] == 200
    tool, name = draft(mcp)
    request = publish(mcp, tool)
    code, _, answer = approve(rest, request)
    assert code == 200 and answer["state"] == "pending"
    assert approve(rest, request)[0] == 409         # the same person's second yes
    shown = [i for i in rest.get(f"/api/approvals?search={name}")[2]["items"] if i["id"] == request][0]
    assert shown["first_approval"]["by"] == "admin" and shown["state"] == "pending"
    failed_call = mcp.call(f"{SERVER}__{name}")
    assert failed_call.result is None or failed_call.result.get("isError")
    digest = item(instance, request)["hash"]
    assert instance.ctl("approvals", "approve", request, "--hash", digest).stdout == "approved\n"
    assert text(mcp.call(f"{SERVER}__{name}")) == "1"
    assert "approved by root, before by admin" in instance.ctl("approvals", "show", request).stdout
    # the first yes alone doesn't outlive a refusal
    request = publish(mcp, draft(mcp)[0])
    assert approve(rest, request)[2]["state"] == "pending"
    assert rest.request("POST", f"/api/approvals/{request}/reject", {"reason": "after all"})[0] == 200
    digest = item(instance, request)["hash"]
    assert instance.ctl("approvals", "approve", request, "--hash", digest, check=False).returncode == 1


def test_automatic(instance, mcp, rest):
    code, _, now = set_policy(rest, profile="permissive", days=1)
    assert code == 200 and now["automatic_now"] is True and now["automatic_until"] > now["set_at"]
    tool, name = draft(mcp)
    answer = mcp.manage("mcpbox_request_publish", tool_id=tool)
    assert answer["status"] == "approved" and text(mcp.call(f"{SERVER}__{name}")) == "1"
    assert rest.get("/api/approvals/" + answer["request_id"])[2]["decided_by"] == "policy:admin"
    # what names secrets a person approves all the same
    tool, _ = draft(mcp, secrets=["TOKEN"])
    answer = mcp.manage("mcpbox_request_publish", tool_id=tool)
    assert answer["status"] == "pending_review"
    host = unique("h")
    asked = mcp.manage("mcpbox_request_network_access", tool_id=tool, host=host + ".example.org",
                       justification="x")
    assert asked["status"] == "approved"
    for local in (host, host + ".home.arpa", "192.168.7.7:80", "*." + host + ".example.org", "*",
                  "udp:" + host + ".example.org:53"):
        asked = mcp.manage("mcpbox_request_network_access", tool_id=tool, host=local, justification="x")
        assert asked["status"] == "pending", local
    module = unique("mod")
    instance.ctl("modules", "add", module, "1.0", "cd" * 32)
    asked = mcp.manage("mcpbox_request_module", tool_id=tool, module_name=module, justification="x")
    assert asked["status"] == "approved"
    # taken back, like any other
    grant = [g for g in rest.get("/api/network?state=active&limit=200")[2]["items"]
             if g["host"] == host + ".example.org"][0]
    assert grant["automatic"] is True
    assert rest.request("POST", f"/api/approvals/{grant['id']}/revoke", {"reason": "no"})[0] == 200
    assert instance.ctl("policies", "set", "strict").stdout.splitlines()[0].split() == ["tool", "second"]
    assert mcp.manage("mcpbox_request_publish", tool_id=draft(mcp)[0])["status"] == "pending_review"
    audit = instance.ctl_json("audit")["items"]
    assert [a["detail"]["tool"] for a in audit if a["action"] == "policy_set"][:2] == ["second", "automatic"]


def test_the_database_can_not_say_automatic(instance, mcp, rest):
    """Rows that say automatic, without the vault's seal: admind asks, the vault
    refuses, a person decides."""
    assert set_policy(rest, tool="require", module="require", network="require")[0] == 200
    instance.psql("INSERT INTO mcpbox.approval_policies (serial, tool, module, network, until, actor, seal) "
                  "SELECT max(serial) + 1, 'automatic', 'automatic', 'automatic', now() + interval '1 day', "
                  "'root', (array_agg(seal))[1] FROM mcpbox.approval_policies")
    tool, name = draft(mcp)
    assert mcp.manage("mcpbox_request_publish", tool_id=tool)["status"] == "pending_review"
    assert rest.get("/api/approvals/policies")[2]["tool"] == "require"
    assert set_policy(rest, tool="require", module="require", network="require")[0] == 200


@pytest.fixture(scope="module")
def people(instance):
    out = {}
    for name, role in (("rita", "reviewer"), ("rolf", "reviewer"), ("vic", "viewer")):
        instance.ctl("administrators", "create", name, "--role", role, stdin=PASSWORD + "\n")
        out[name] = Rest(lambda: instance.address("admind-http"))
        assert out[name].login(name, PASSWORD)[0] == 200
    return out


def test_roles(instance, mcp, rest, people):
    nobody = Rest(lambda: instance.address("admind-http"))
    request = publish(mcp, draft(mcp)[0])
    digest = rest.get("/api/approvals/" + request)[2]["hash"]
    for path, body in (("approve", {}), ("reject", {"reason": "x"}), ("comments", {"text": "x"}),
                       ("revoke", {"reason": "x"})):
        where = f"/api/approvals/{request}/{path}"
        match = {"If-Match": f'"{digest}"'} if path == "approve" else {}
        assert nobody.request("POST", where, body, match)[0] == 401, path
        assert people["vic"].request("POST", where, body, match)[0] == 403, path
    assert nobody.get("/api/approvals/policies")[0] == 401
    assert people["vic"].get("/api/approvals/policies")[0] == 200
    for who, code in ((nobody, 401), (people["vic"], 403), (people["rita"], 403)):
        etag = rest.get("/api/approvals/policies")[1]["etag"]
        assert who.request("PUT", "/api/approvals/policies", {"profile": "permissive"},
                           {"If-Match": etag})[0] == code
    bulk = {"action": "approve", "items": [{"id": request, "hash": digest}]}
    assert nobody.request("POST", "/api/approvals/bulk", bulk)[0] == 401
    assert people["vic"].request("POST", "/api/approvals/bulk", bulk)[2]["items"][0]["failure_mode"] == "forbidden"
    assert people["rita"].request("POST", "/api/approvals/bulk", bulk)[2]["done"] == 1
    assert rest.get("/api/approvals/" + request)[2]["decided_by"] == "rita"


def test_two_reviewers_race(instance, mcp, rest, people):
    """Both say yes at the same moment, several times over: each request ends
    approved once, by both, or waits for the other one."""
    assert set_policy(rest, profile="strict")[0] == 200
    for _ in range(4):
        request = publish(mcp, draft(mcp)[0])
        digest = rest.get("/api/approvals/" + request)[2]["hash"]
        answers = []
        threads = [threading.Thread(target=lambda p=p: answers.append(approve(p, request, digest)))
                   for p in (people["rita"], people["rolf"]) * 2]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for p in (people["rita"], people["rolf"]):
            approve(p, request, digest)
        assert sum(a[0] == 200 and a[2]["state"] == "approved" for a in answers) <= 1
        assert {a[0] for a in answers} <= {200, 409}
        assert rest.get("/api/approvals/" + request)[2]["state"] == "approved"
        rows = instance.psql("SELECT l.action, l.actor FROM mcpbox.audit_log l WHERE l.detail::json ->> "
                             f"'request_id' = '{request}' AND l.action IN ('approved_first', 'tool_approved')")
        assert sorted(r[0] for r in rows) == ["approved_first", "tool_approved"]
        assert {r[1] for r in rows} == {"rita", "rolf"}
    assert set_policy(rest, tool="require", module="require", network="require")[0] == 200
