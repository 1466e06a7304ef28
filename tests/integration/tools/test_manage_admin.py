"""Servers, tools, versions and sources by REST and mcpboxctl."""
import hashlib
import urllib.parse
import uuid

import pytest

from harness.clients.mcp import Client

CODE = 'def main(name: str) -> str:\n    """Greets somebody."""\n    return name\n'


@pytest.fixture(scope="module")
def client(instance):
    with Client(instance.address) as c:
        yield c


def call(rest, method, path, body=None, **headers):
    status, heads, said = rest.request(method, path, body, headers=headers or None)
    return status, heads, said


def made(rest, name=None):
    status, _, server = call(rest, "POST", "/api/servers", {"name": name or "a" + uuid.uuid4().hex[:10],
                                                            "description": "By REST."})
    assert status == 200, server
    return server


def test_a_server_by_rest(client, rest):
    s = made(rest)
    path = f"/api/servers/{s['id']}"
    assert s["status"] == "running" and s["created_by"] == "admin" and s["tool_count"] == 0
    status, heads, same = call(rest, "GET", path)
    assert status == 200 and same == s
    assert call(rest, "POST", "/api/servers", {"name": s["name"]})[0] == 409
    assert call(rest, "POST", "/api/servers", {"name": "A b"})[0] == 400
    assert call(rest, "POST", "/api/servers", {"name": "ok", "more": 1})[0] == 400
    status, _, new = call(rest, "PATCH", path, {"description": "Other."}, **{"If-Match": heads["etag"]})
    assert status == 200 and new["description"] == "Other."
    # what was read is not what is there now
    status, _, problem = call(rest, "PATCH", path, {"description": "Third."}, **{"If-Match": heads["etag"]})
    assert status == 412 and problem["failure_mode"] == "hash_mismatch"
    assert call(rest, "POST", path + "/stop", {})[2]["status"] == "stopped"
    assert client.manage("mcpbox_get_server", server_id=s["id"])["status"] == "stopped"
    assert call(rest, "POST", path + "/start", {})[2]["status"] == "running"
    key = uuid.uuid4().hex
    first = call(rest, "DELETE", path, None, **{"Idempotency-Key": key})
    assert first[0] == 200 and first[2]["deleted_at"] and first[2]["name"] == s["name"]
    assert call(rest, "DELETE", path, None, **{"Idempotency-Key": key})[2] == first[2]
    assert call(rest, "DELETE", path)[0] == 404
    listed = call(rest, "GET", "/api/servers?state=deleted")[2]["items"]
    assert s["id"] in [x["id"] for x in listed]
    assert s["id"] not in [x["id"] for x in call(rest, "GET", "/api/servers")[2]["items"]]
    for other in ("start", "stop"):
        assert call(rest, "POST", f"{path}/{other}", {})[0] == 404
    assert call(rest, "POST", f"/api/servers/{uuid.uuid4()}/start", {})[0] == 404


def test_tools_and_versions_by_rest(instance, rest, client):
    s = made(rest)
    tool = client.manage("mcpbox_create_tool", server_id=s["id"], name="greet", python_code=CODE)["id"]
    client.manage("mcpbox_request_publish", tool_id=tool)
    item = next(i for i in instance.ctl_json("approvals", "list")["items"] if i["tool_id"] == tool)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    name, path = f"{s['name']}__greet", f"/api/tools/{tool}"
    assert not client.call(name, {"name": "a"}).result.get("isError")
    detail = call(rest, "GET", path)[2]
    assert detail["tool"]["callable"] is True and detail["versions"][0]["serving"] is True
    assert call(rest, "POST", path + "/disable", {})[2]["tool"]["enabled"] is False
    assert client.call(name, {"name": "a"}).error["data"]["failure_mode"] == "stopped"
    assert name not in client.tools()
    assert call(rest, "POST", path + "/enable", {})[2]["tool"]["enabled"] is True
    assert not client.call(name, {"name": "a"}).result.get("isError")

    client.manage("mcpbox_update_tool", tool_id=tool, python_code=CODE.replace("return name", "return name * 2"),
                  title="Second")
    lines = call(rest, "GET", f"/api/versions?tool={tool}")[2]["items"]
    assert [v["version"] for v in lines] == [2, 1] and [v["serving"] for v in lines] == [False, True]
    page = call(rest, "GET", f"/api/versions?tool={name}&limit=1")[2]
    assert page["items"] == lines[:1]
    assert call(rest, "GET", f"/api/versions?tool={name}&limit=1&cursor={page['next_cursor']}")[2]["items"] == lines[1:]
    assert call(rest, "GET", "/api/versions")[0] == 400
    whole = call(rest, "GET", path + "/versions/1")[2]
    assert whole["python_code"] == CODE and whole["serving"] is True and whole["change_source"] == "llm"
    assert call(rest, "GET", path + "/versions/3")[0] == 404
    assert call(rest, "GET", path + "/versions/a")[0] == 404
    diff = call(rest, "GET", path + "/diff/1-2")[2]
    assert {f["field"] for f in diff["changes"]["fields"]} == {"title"}
    assert "+    return name * 2" in diff["changes"]["diff"][0]["unified"]
    for odd in ("1-9", "1", "1-", "-", "1-2-3", "a-b"):
        assert call(rest, "GET", f"{path}/diff/{odd}")[0] == 404, odd

    heads = call(rest, "GET", path)[1]
    status, _, back = call(rest, "POST", path + "/rollback", {"version": 1}, **{"If-Match": heads["etag"]})
    assert status == 200 and back["tool"]["version"] == 3 and back["versions"][0]["change_source"] == "rollback"
    assert back["versions"][0]["created_by"] == "admin" and back["tool"]["approval_status"] == "draft"
    assert call(rest, "POST", path + "/rollback", {"version": 2}, **{"If-Match": heads["etag"]})[0] == 412
    assert call(rest, "POST", path + "/rollback", {"version": 99})[0] == 404
    assert call(rest, "POST", path + "/rollback", {"version": 99999999999})[0] == 404
    assert call(rest, "POST", path + "/rollback", {})[0] == 400
    status, _, new = call(rest, "PATCH", path, {"title": "Manual", "description": "By \u20ac hand.", "name": "hello"})
    assert status == 200 and new["versions"][0]["change_source"] == "manual"
    assert new["versions"][0]["change_note"] == "title, description, name"
    whole = call(rest, "GET", path + "/versions/4")[2]
    assert (whole["title"], whole["description"], whole["name"]) == ("Manual", "By \u20ac hand.", "hello")
    assert whole["python_code"] == CODE and whole["exposed_name"] == f"{s['name']}__hello"
    assert call(rest, "PATCH", path, {"title": ""})[2]["tool"]["version"] == 5
    assert call(rest, "GET", path + "/versions/5")[2]["title"] is None
    assert call(rest, "PATCH", path, {"title": ""})[2]["tool"]["version"] == 5     # nothing changed
    for bad in ({}, {"name": "A"}, {"name": "x" * 60}, {"title": "x" * 201}, {"description": 1}, {"python_code": "x"}):
        assert call(rest, "PATCH", path, bad)[0] == 400, bad
    diff = call(rest, "GET", path + "/diff/3-4")[2]["changes"]
    assert {f["field"] for f in diff["fields"]} == {"title", "description", "name", "exposed_name"} and not diff["diff"]
    assert call(rest, "POST", path + "/prune", {"keep": 1})[0] == 400
    assert call(rest, "POST", path + "/prune", {"keep": 10})[2]["pruned"] == 0
    gone = call(rest, "DELETE", path)
    assert gone[0] == 200 and gone[2]["tool"]["deleted_at"]
    assert client.call(name, {"name": "a"}).error["code"] == -32602
    assert call(rest, "DELETE", path)[0] == 404
    # its history stays for administrators
    assert call(rest, "GET", path + "/versions/1")[2]["python_code"] == CODE
    assert tool in [t["id"] for t in call(rest, "GET", f"/api/tools?server={s['id']}&state=deleted")[2]["items"]]


def test_lists_by_words_and_by_object(client, rest):
    word = "w" + uuid.uuid4().hex[:10]
    s = made(rest)
    new = {"server_id": s["id"], "python_code": CODE}
    first = client.manage("mcpbox_create_tool", name="paint", description=f"Has {word}one inside.", **new)["id"]
    second = client.manage("mcpbox_create_tool", name=word + "two", description="Paints, too.", **new)["id"]
    note = client.manage("mcpbox_create_prompt", server_id=s["id"], name="ask", description=f"About {word}one.", text="Ask.")["id"]

    def found(query, **more):
        status, _, page = call(rest, "GET", "/api/tools?" + urllib.parse.urlencode({"search": query, **more}))
        assert status == 200, page
        return [t["id"] for t in page["items"]]
    assert found(word) == [first, second, note]
    assert found(word, server=s["id"]) == found(word, state="draft") == [first, second, note]
    assert found(word.upper() + "ONE") == [first, note]
    assert found(f"paint {word}one") == [first], "all words must be there"
    assert found(f"{word}one' | {word}two") == [], "no operator is one"
    assert found(word, object="prompt") == [note] and found(word, object="tool", state="draft") == [first, second]
    assert found(word, server=str(uuid.uuid4())) == found(word, state="approved") == found("-- |") == []
    # an older version's words find nothing
    client.manage("mcpbox_update_tool", tool_id=first, description="Has another inside.")
    assert found(word) == [second, note] and found("another inside", server=s["id"]) == [first]
    page = call(rest, "GET", f"/api/tools?search={word}&limit=1")[2]
    assert [t["id"] for t in page["items"]] == [second] and page["next_cursor"]
    page = call(rest, "GET", f"/api/tools?search={word}&limit=1&cursor={page['next_cursor']}")[2]
    assert [t["id"] for t in page["items"]] == [note] and page["next_cursor"] is None
    objects = [t["object"] for t in call(rest, "GET", f"/api/tools?object=prompt&server={s['id']}")[2]["items"]]
    assert objects == ["prompt"]
    assert {t["object"] for t in call(rest, "GET", "/api/tools?object=prompt")[2]["items"]} == {"prompt"}
    assert call(rest, "GET", "/api/tools?object=source")[0] == 400


def test_sources_by_rest(client, rest):
    s = made(rest)
    path = f"/api/servers/{s['id']}/sources"
    status, _, source = call(rest, "POST", path, {"name": "files", "url": "https://mcp.example.org/"})
    assert status == 200 and source["server_id"] == s["id"] and source["created_by"] == "admin"
    assert call(rest, "POST", path, {"name": "files", "url": "https://mcp.example.org/"})[0] == 409
    status, _, problem = call(rest, "POST", path, {"name": "b", "url": "http://localhost/"})
    assert status == 400, problem
    assert call(rest, "GET", f"/api/sources?server={s['id']}")[2]["items"] == [source]
    assert source in call(rest, "GET", "/api/sources")[2]["items"]
    assert call(rest, "DELETE", f"/api/sources/{source['id']}")[0] == 200
    assert call(rest, "DELETE", f"/api/sources/{source['id']}")[0] == 404


def said(instance, *words, **more):
    return instance.ctl(*words, **more).stdout


def test_by_mcpboxctl(instance, client):
    name = "c" + uuid.uuid4().hex[:10]
    assert "runs" in said(instance, "servers", "create", name, "By ctl.")
    shown = instance.ctl_json("servers", name)
    assert shown["description"] == "By ctl." and shown["created_by"] == "root"
    instance.ctl("servers", "describe", name, "Other.")
    instance.ctl("servers", "stop", name)
    assert instance.ctl_json("servers", shown["id"])["status"] == "stopped"
    instance.ctl("servers", "start", name)
    tool = client.manage("mcpbox_create_tool", server_id=shown["id"], name="greet", python_code=CODE)["id"]
    client.manage("mcpbox_update_tool", tool_id=tool, python_code=CODE + "# more\n")
    exposed = f"{name}__greet"
    assert instance.ctl_json("tools", exposed)["tool"]["id"] == tool
    assert [v["version"] for v in instance.ctl_json("tools", "versions", exposed)["items"]] == [2, 1]
    assert "llm" in said(instance, "tools", "versions", exposed)
    assert instance.ctl_json("tools", "version", exposed, "1")["python_code"] == CODE
    assert "+# more" in said(instance, "tools", "diff", exposed, "1", "2")
    assert instance.ctl_json("tools", "diff", exposed, "1", "2")["identical"] is False
    assert instance.ctl_json("tools", "rollback", exposed, "1")["tool"]["version"] == 3
    described = instance.ctl_json("tools", "describe", exposed, "title=By hand")
    assert described["versions"][0]["change_source"] == "manual" and described["tool"]["version"] == 4
    assert instance.ctl_json("tools", "disable", exposed)["tool"]["enabled"] is False
    assert "enabled" in said(instance, "tools", "enable", exposed)
    assert instance.ctl_json("tools", "prune", exposed, "20")["pruned"] == 0
    source = instance.ctl_json("sources", "add", name, "files", "https://mcp.example.org/")
    assert "files" in said(instance, "sources", name)
    instance.ctl("sources", "delete", source["id"])
    assert instance.ctl_json("sources", name)["items"] == []
    seen = hashlib.sha256(b"other").hexdigest()
    assert instance.ctl("servers", "delete", name, "--hash", seen, check=False).returncode == 1
    assert instance.ctl("servers", "bogus", name, check=False).returncode == 2
    assert instance.ctl_json("servers", name)["status"] == "running"
    instance.ctl("tools", "delete", exposed)
    instance.ctl("servers", "delete", name)
    assert instance.ctl_json("servers", shown["id"])["deleted_at"]
    actions = [r[0] for r in instance.psql(
        "SELECT action FROM mcpbox.audit_log WHERE actor = 'root' ORDER BY seq")]
    for a in ("server_created", "server_updated", "server_stopped", "server_started", "tool_disabled", "tool_enabled",
              "tool_updated", "source_added", "source_deleted", "tool_deleted", "server_deleted"):
        assert a in actions, a
