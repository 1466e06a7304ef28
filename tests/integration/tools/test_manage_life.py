"""The life of servers, tools and versions by the management tools. Every result
is judged by its tool's published outputSchema, and is the same as text."""
import json
import os
import re
import threading
import uuid

import jsonschema
import pytest

from harness.clients import tasks
from harness.clients.mcp import Client, text
from harness.patience import patience, until

CODE = 'def main(name: str, times: int = 1) -> str:\n    """Greets somebody."""\n    return name * times\n'
SLEEPS = "import time\ndef main() -> str:\n    time.sleep(600)\n    return 'slept'\n"
# without structured content of their own
PASSES_ON = {"mcpbox_call_tool"}
#: They succeed where there is another machine: tests/egress judges them.
ELSEWHERE = {"mcpbox_discover_external_tools", "mcpbox_import_external_tools"}


class Manager:
    """A client whose every management result is checked."""

    def __init__(self, client):
        self.client = client
        self.tools = {n: t for n, t in client.tools().items() if n.startswith("mcpbox_")}
        self.used = set()

    def __call__(self, name, /, **arguments):
        name = "mcpbox_" + name
        r = self.client.call(name, arguments)
        assert r.result is not None and not r.result.get("isError"), r
        said = r.result["structuredContent"]
        jsonschema.Draft202012Validator(self.tools[name]["outputSchema"]).validate(said)
        if name != "mcpbox_guide":
            assert json.loads(r.result["content"][0]["text"]) == said
        self.used.add(name)
        return said

    def refused(self, name, mode, /, **arguments):
        r = self.client.call("mcpbox_" + name, arguments)
        assert r.result is not None and r.result.get("isError") is True, r
        assert r.result["_meta"]["mcpbox/failure"]["failure_mode"] == mode, r
        assert "structuredContent" not in r.result
        return text(r)


@pytest.fixture(scope="module")
def manager(instance):
    with Client(instance.address) as c:
        yield Manager(c)


@pytest.fixture
def server(manager):
    made = manager("create_server", name="s" + uuid.uuid4().hex[:12], description="Of these tests.")
    assert made["status"] == "running"
    return made["id"], made["name"]


def tool_of(manager, server, name="greet", code=CODE, **more):
    return manager("create_tool", server_id=server[0], name=name, python_code=code,
                   description="A tool.", **more)["id"]


def published(instance, manager, server, name="greet", code=CODE, **more):
    tool = tool_of(manager, server, name, code, **more)
    manager("request_publish", tool_id=tool, notes="please")
    for item in instance.ctl_json("approvals", "list")["items"]:
        if item["tool_id"] == tool and item["state"] == "pending":
            shown = instance.ctl_json("approvals", "show", item["id"])
            instance.ctl("approvals", "approve", item["id"], "--hash", shown["hash"])
    return tool


def test_every_tool_says_what_it_is(manager):
    assert len(manager.tools) >= 38
    for name, t in manager.tools.items():
        jsonschema.Draft202012Validator.check_schema(t["inputSchema"])
        assert t["inputSchema"]["additionalProperties"] is False
        assert set(t["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert ("outputSchema" in t) == (name not in PASSES_ON), name
        if "outputSchema" in t:
            jsonschema.Draft202012Validator.check_schema(t["outputSchema"])
            assert t["outputSchema"]["type"] == "object"


def test_server_shown_described_deleted(instance, manager, server):
    i, name = server
    tool = published(instance, manager, server)
    manager("create_prompt", server_id=i, name="ask", text="Ask {what}.", arguments=[{"name": "what"}])
    manager("create_resource", server_id=i, name="note", uri=f"notes://{name}", text="n")
    manager("create_server_secret", server_id=i, key="API_KEY", description="Of the API.")
    shown = manager("get_server", server_id=i)
    assert shown["tool_count"] == 1 and [t["id"] for t in shown["tools"]] == [tool]
    assert shown["tools"][0]["approval_status"] == "approved" and shown["default_timeout_ms"] == 30000
    assert shown["allowed_hosts"] == [] and shown["pending_requests"]["modules"] == 0
    assert manager("update_server", server_id=i, description="Other.")["description"] == "Other."
    assert manager("get_server", server_id=i)["description"] == "Other."
    assert not manager.client.call(f"{name}__greet", {"name": "a"}).result.get("isError")

    gone = manager("delete_server", server_id=i)
    assert gone["name"] == name and gone["deleted_tools"] == 3
    assert manager.client.call(f"{name}__greet", {"name": "a"}).error["code"] == -32602
    assert f"{name}__greet" not in manager.client.tools()
    for call in (("get_server", {}), ("delete_server", {}), ("start_server", {}), ("stop_server", {}),
                 ("update_server", {"description": "x"}), ("list_tools", {}), ("list_server_secrets", {}),
                 ("create_server_secret", {"key": "B"}), ("list_external_sources", {}),
                 ("create_tool", {"name": "other", "python_code": CODE})):
        manager.refused(call[0], "not_found", server_id=i, **call[1])
    for call in ("get_tool", "list_tool_versions", "get_tool_logs", "test_code", "request_publish", "get_tool_status"):
        manager.refused(call, "not_found", tool_id=tool)
    assert name not in [s["name"] for s in manager("list_servers", page_size=100)["servers"]]
    assert manager("list_endpoints") == {"endpoints": [], "total": 0}
    # the name is free, and nothing of the old one comes with it
    again = manager("create_server", name=name)
    assert again["id"] != i
    assert manager("list_server_secrets", server_id=again["id"])["secrets"] == []
    assert manager("list_tools", server_id=again["id"])["total"] == 0
    manager("delete_server", server_id=again["id"])


@pytest.mark.parametrize("how", ["delete_server", "stop_server", "delete_tool", "disable"])
def test_what_runs_ends_at_once(instance, manager, server, how):
    # Its own end is further away than a hang: only the change can end it meanwhile.
    tool = published(instance, manager, server, code=SLEEPS, limits={"timeout_ms": 600000})
    said = []

    def run():
        with Client(instance.address) as c:
            said.append(c.call(f"{server[1]}__greet", {}))
    t = threading.Thread(target=run)
    t.start()
    until(lambda: instance.psql("SELECT count(*) FROM mcpbox.executions WHERE state = 'open' AND "
                                f"tool = '{server[1]}__greet'") != [["0"]])
    until(instance.runners)
    if how.endswith("_server"):
        manager(how, server_id=server[0])
    elif how == "disable":
        manager("update_tool", tool_id=tool, enabled=False)
    else:
        manager(how, tool_id=tool)
    t.join(patience(10))
    assert not t.is_alive()
    mode = said[0].error["data"]["failure_mode"] if said[0].error else \
        said[0].result["_meta"]["mcpbox/failure"]["failure_mode"]
    assert mode in ("stopped", "revoked"), said
    if how != "delete_server":
        manager("delete_server", server_id=server[0])


def test_a_tool_whole_and_by_version(instance, manager, server):
    given = {"title": "Full", "output_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
             "annotations": {"readOnlyHint": True}, "secrets": ["KEY"], "requires": ["example.org:443"],
             "limits": {"timeout_ms": 5000}}
    tool = tool_of(manager, server, "full", **given)
    shown = manager("get_tool", tool_id=tool)
    assert shown["python_code"] == CODE and shown["object"] == "tool" and shown["kind"] == "python"
    for k, v in given.items():
        assert shown[k] == v, k
    assert shown["timeout_ms"] == 5000 and shown["version"] == shown["current_version"] == 1
    assert shown["serving_version"] is None and shown["input_schema"]["required"] == ["name"]
    manager("update_tool", tool_id=tool, python_code=CODE.replace("times", "count"), title="")
    assert manager("get_tool", tool_id=tool)["title"] is None
    old = manager("get_tool", tool_id=tool, version=1)
    assert old["title"] == "Full" and old["version"] == 1 and old["current_version"] == 2
    manager.refused("get_tool", "not_found", tool_id=tool, version=3)
    manager.refused("get_tool", "not_found", tool_id=str(uuid.uuid4()))
    # characters that JSON escapes, and a default of null
    code = 'def main(a: str | None = None):\n    return "\\t\\u20ac\\\\"\n'
    other = tool_of(manager, server, "odd", code)
    shown = manager("get_tool", tool_id=other)
    assert shown["python_code"] == code and shown["input_schema"]["properties"]["a"]["default"] is None
    static = manager("create_resource", server_id=server[0], name="note", uri=f"n://{server[1]}", text="whole")["id"]
    assert manager("get_tool", tool_id=static)["text"] == "whole"


def test_versions_compared_and_rolled_back(instance, manager, server):
    tool = published(instance, manager, server)
    manager("update_tool", tool_id=tool, python_code=CODE.replace("name * times", "name"), secrets=["KEY"])
    listed = manager("list_tool_versions", tool_id=tool)
    assert listed["current_version"] == 2 and listed["serving_version"] == 1 and listed["total_versions"] == 2
    assert [v["version"] for v in listed["versions"]] == [2, 1]
    assert [v["serving"] for v in listed["versions"]] == [False, True]
    assert {v["change_source"] for v in listed["versions"]} == {"llm"}
    assert listed["versions"][0]["change_summary"] == "python_code, secrets"
    assert len(manager("list_tool_versions", tool_id=tool, page=2, page_size=1)["versions"]) == 1
    diff = manager("diff_tool_versions", tool_id=tool, from_version=1)
    assert diff["to_version"] == 2 and diff["identical"] is False
    assert "-    return name * times" in diff["changes"]["diff"][0]["unified"]
    assert {f["field"] for f in diff["changes"]["fields"]} == {"secrets"}
    assert manager("diff_tool_versions", tool_id=tool, from_version=1, to_version=1)["identical"] is True
    manager.refused("diff_tool_versions", "not_found", tool_id=tool, from_version=1, to_version=9)

    back = manager("rollback_tool", tool_id=tool, version=1)
    assert back["current_version"] == 3 and back["approval_status"] == "draft"
    assert manager("get_tool", tool_id=tool)["python_code"] == CODE
    newest = manager("list_tool_versions", tool_id=tool)["versions"][0]
    assert newest["change_source"] == "rollback" and newest["change_summary"] == "back to version 1"
    manager.refused("rollback_tool", "conflict", tool_id=tool, version=1)
    manager.refused("rollback_tool", "not_found", tool_id=tool, version=17)
    # the approved one serves on; the draft with the same bytes is reviewed as any other
    status = manager("get_tool_status", tool_id=tool)
    assert status["serving_version"] == 1 and status["approval_status"] == "draft"
    instance.psql(f"SELECT mcpbox.revoke_version((SELECT serving_version FROM mcpbox.tools WHERE id = '{tool}'),"
                  " 'bad', 'root')", role="mcpbox_owner")
    assert manager.client.call(f"{server[1]}__greet", {"name": "a"}).error["data"]["failure_mode"] in (
        "not_approved", "revoked")
    manager("rollback_tool", tool_id=tool, version=2)
    manager("rollback_tool", tool_id=tool, version=1)
    assert manager.client.call(f"{server[1]}__greet", {"name": "a"}).error["data"]["failure_mode"] in (
        "not_approved", "revoked")


def test_code_is_judged_without_a_tool(manager):
    good = manager("validate_code", code=CODE)
    assert good["valid"] and good["has_main"] and good["error"] is None
    assert good["parameters"] == [{"name": "name", "type": "string", "required": True},
                                  {"name": "times", "type": "integer", "required": False}]
    assert good["input_schema"]["properties"]["times"]["default"] == 1
    bad = manager("validate_code", code="def main(:\n    pass")
    assert bad["valid"] is False and "SyntaxError" in bad["error"] and "line 1" in bad["error"]
    assert "main" in manager("validate_code", code="x = 1")["error"]
    assert manager("validate_code", code="def main():\n    return 1")["parameters"] == []
    assert manager("validate_code", code="raise SystemExit(3)")["valid"] is False


def test_a_draft_is_tried(instance, manager, server):
    tool = tool_of(manager, server, "tried", "import mcpbox, os, socket\ndef main(n: int) -> dict:\n"
                   "    print('said', n)\n    if n == 1:\n        raise mcpbox.ToolError('no ones')\n"
                   "    if n == 2:\n        return {'secrets': list(mcpbox.secrets)}\n"
                   "    if n == 3:\n        socket.create_connection(('127.0.0.1', 5432), 2)\n"
                   "    if n == 4:\n        return {'asked': mcpbox.elicit('?', {'a': str}).content}\n"
                   "    return {'n': n, 'nul': '\\x00'}\n", secrets=["KEY"])
    instance.ctl("secret", "set", server[1], "KEY", stdin="S3CRET-canary-value")
    good = manager("test_code", tool_id=tool, arguments={"n": 7})
    assert good["success"] and good["result"]["structuredContent"] == {"n": 7, "nul": "\x00"}
    assert good["stdout"] == "said 7\n" and good["error"] is None and good["version"] == 1
    bad = manager("test_code", tool_id=tool, arguments={"n": 1})
    assert bad["success"] is False and bad["result"] is None and "no ones" in bad["error"]
    assert manager("test_code", tool_id=tool, arguments={"n": 2})["result"]["structuredContent"] == {"secrets": []}
    assert manager("test_code", tool_id=tool, arguments={"n": 3})["success"] is False
    assert "test run" in manager("test_code", tool_id=tool, arguments={"n": 4})["error"]
    assert "/n" in manager.refused("test_code", "invalid_arguments", tool_id=tool, arguments={"n": "x"})
    manager.refused("test_code", "invalid_arguments", tool_id=tool)
    # recorded as what it was, and never as a call
    logs = manager("get_tool_logs", tool_id=tool, limit=50)
    assert {x["kind"] for x in logs["logs"]} == {"test"} and logs["total"] == 5
    assert logs["logs"][-1]["input_args"] == {"n": 7} and logs["logs"][-1]["executed_by"] == "local"
    assert logs["logs"][-1]["stdout"] == "said 7\n" and logs["logs"][-1]["version"] == 1
    assert manager.client.call(f"{server[1]}__tried", {"n": 7}).error["data"]["failure_mode"] == "not_approved"


def test_a_try_has_the_limits_of_its_author_and_its_schema(manager, server):
    slow = tool_of(manager, server, "slow", "import time\ndef main():\n    time.sleep(20)\n",
                   limits={"timeout_ms": 500})
    r = manager("test_code", tool_id=slow)
    assert r["success"] is False and r["failure_mode"] == "timeout" and "500 ms" in r["error"], r
    wide = tool_of(manager, server, "wide", "def main():\n    return {'b': len(bytearray(600 << 20))}\n",
                   limits={"memory_bytes": 4 << 30})
    assert manager("test_code", tool_id=wide)["success"] is False
    wrong = tool_of(manager, server, "wrong", "def main() -> dict:\n    return {'a': 1}\n",
                    output_schema={"type": "object", "properties": {"a": {"type": "string"}}})
    r = manager("test_code", tool_id=wrong)
    assert r["success"] is False and r["failure_mode"] == "bad_result", r
    prompt = manager("create_prompt", server_id=server[0], name="p", text="Hi.")["id"]
    manager.refused("test_code", "invalid_arguments", tool_id=prompt)


def test_a_tool_called_by_name(instance, manager, server):
    published(instance, manager, server)
    name = f"{server[1]}__greet"
    direct = manager.client.call(name, {"name": "ab", "times": 2}).result
    by_name = manager.client.call("mcpbox_call_tool", {"name": name, "arguments": {"name": "ab", "times": 2}}).result
    assert by_name["content"] == direct["content"] == [{"type": "text", "text": "abab"}]
    # what is wrong is as wrong as when called directly
    r = manager.client.call("mcpbox_call_tool", {"name": name, "arguments": {"name": 1}})
    assert r.result["isError"] and "/name" in text(r)
    assert manager.client.call("mcpbox_call_tool", {"name": "no__such"}).error["code"] == -32602
    draft = tool_of(manager, server, "draft")
    assert manager.client.call("mcpbox_call_tool", {"name": f"{server[1]}__draft", "arguments": {"name": "a"}}
                               ).error["data"]["failure_mode"] == "not_approved"
    for bad in ({}, {"name": 1}, {"name": name, "arguments": []}, {"name": name, "more": 1},
                {"name": "mcpbox_list_servers"}, {"name": "mcpbox_call_tool", "arguments": {"name": name}}):
        r = manager.client.call("mcpbox_call_tool", bad)
        assert r.result["_meta"]["mcpbox/failure"]["failure_mode"] == "invalid_arguments", (bad, r)
    assert draft


def test_a_task_by_name_ends_with_its_server(instance, manager, server):
    name = tasks.publish(instance, manager.client, server[1], "work", tasks.WORK, "optional")
    with tasks.Tasks(instance.address) as c:
        made = c.ask("tools/call", {"name": "mcpbox_call_tool", "arguments": {
            "name": name, "arguments": {"seconds": 30, "note": "n"}}}).result
        assert made["resultType"] == "task" and c.get(made["taskId"])["status"] == "working"
        manager("delete_server", server_id=server[0])
        end = c.until(made["taskId"])
    assert end["status"] == "failed" and end["error"]["data"]["failure_mode"] in ("stopped", "revoked"), end


def test_search_by_words(instance, manager, server):
    published(instance, manager, server, "paint_houses", CODE)
    found = manager("search_tools", query="houses paint")["tools"]
    assert found[0]["name"] == f"{server[1]}__paint_houses"
    assert manager("search_tools", query="hous")["tools"][0]["name"].endswith("paint_houses")
    assert any(t["name"].endswith("paint_houses") for t in manager("search_tools", query="aint_ho")["tools"])
    for odd in ("'", "a & | !", "(", "\\", "' :*", "%", "zzz' | 'paint"):
        manager("search_tools", query=odd)
    manager("stop_server", server_id=server[0])
    assert manager("search_tools", query="paint_houses")["total"] == 0


def test_secrets_have_names_and_no_values(instance, manager, server):
    made = manager("create_server_secret", server_id=server[0], key="API_KEY", description="Of the API.")
    assert made["has_value"] is False
    manager.refused("create_server_secret", "conflict", server_id=server[0], key="API_KEY")
    manager.refused("create_server_secret", "invalid_arguments", server_id=server[0], key="api")
    instance.ctl("secret", "set", server[1], "API_KEY", stdin="a-value-nobody-sees")
    listed = manager("list_server_secrets", server_id=server[0])
    assert listed["secrets"] == [{"key": "API_KEY", "description": "Of the API.", "has_value": True}]
    assert "a-value-nobody-sees" not in json.dumps(listed)


def test_sources_elsewhere(manager, server):
    i = server[0]
    manager("create_server_secret", server_id=i, key="TOKEN")
    made = manager("add_external_source", server_id=i, name="files", url="https://mcp.example.org/mcp",
                   auth_type="bearer", auth_secret_name="TOKEN")
    assert made["transport_type"] == "streamable_http" and made["auth_type"] == "bearer"
    listed = manager("list_external_sources", server_id=i)
    assert listed["total"] == 1 and listed["sources"][0]["tool_count"] == 0
    # two requests: the source, and its host
    waits = manager("list_pending_requests")
    assert any("files" in json.dumps(r) for r in waits["pending_tools"])
    assert any(r["host"] == "mcp.example.org" and r["port"] == 443 for r in waits["pending_network_requests"])
    # nothing connects, nothing is imported before a person agreed
    source = made["source_id"]
    manager.refused("discover_external_tools", "missing_grant", source_id=source)
    manager.refused("import_external_tools", "conflict", source_id=source, tool_names=["x"])
    manager.refused("discover_external_tools", "not_found", source_id=i)
    # the source is no tool: not listed, not to be changed or deleted as one
    assert made["tool_id"] not in {t["id"] for t in manager("list_tools", server_id=i)["tools"]}
    manager.refused("update_tool", "not_found", tool_id=made["tool_id"], description="x")
    manager.refused("delete_tool", "not_found", tool_id=made["tool_id"])
    manager.refused("add_external_source", "conflict", server_id=i, name="files", url="https://a.example/")
    manager.refused("add_external_source", "not_found", server_id=i, name="b", url="https://a.example/",
                    auth_type="bearer", auth_secret_name="NONE")
    for more in ({"auth_type": "bearer"}, {"auth_secret_name": "TOKEN"},
                 {"auth_type": "header", "auth_secret_name": "TOKEN"},
                 {"auth_type": "header", "auth_secret_name": "TOKEN", "auth_header_name": "Host"},
                 {"auth_type": "oauth"}, {"transport_type": "stdio"}, {"name": "A B"}):
        manager.refused("add_external_source", "invalid_arguments",
                        **{"server_id": i, "name": "b", "url": "https://a.example/", **more})
    for url in ("ftp://a.example/", "https://", "https://u:p@a.example/", "https://a.example/#x", "https://a b/",
                "http://2130706433/", "http://0x7f.1/", "http://localhost:3000/",
                "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest", "https://a.example:99999/",
                "https://bücher.example/", "https://a.example/\n", "http://127.1/", "http://x.localhost./"):
        manager.refused("add_external_source", "invalid_arguments", server_id=i, name="b", url=url)


def test_an_openapi_document(manager, server):
    """tests/egress/test_http_kind.py has the rest."""
    document = {"openapi": "3.1.0", "servers": [{"url": "https://api.example"}],
                "paths": {"/things/{id}": {"get": {"operationId": "getThing", "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]}}}}
    got = manager("import_openapi", server_id=server[0], document=document)
    assert [t["name"] for t in got["tools"]] == ["get_thing"] and got["skipped"] == []
    assert manager("get_tool", tool_id=got["tools"][0]["id"])["kind"] == "http"
    manager.refused("import_openapi", "invalid_arguments", server_id=server[0], document={})
    manager.refused("import_openapi", "not_found", server_id=str(uuid.uuid4()), document=document)


def test_modules_and_the_guide(manager):
    m = manager("get_server_modules")
    assert m["default_modules"] and m["total_allowed"] == len(m["allowed_modules"])
    guide = manager("guide")["guide"]
    assert guide.startswith("# How to write a tool")
    for name in ("mcpbox_test_code", "mcpbox_validate_code", "mcpbox_call_tool", "mcpbox_rollback_tool"):
        assert name in guide, name
    assert manager("list_pending_requests")["summary"]["total"] >= 0


#: All that MCPBox has, by its inventory.
ORIGINALS = """list_servers get_server create_server delete_server list_tools get_tool create_tool update_tool
delete_tool test_code start_server stop_server validate_code get_server_modules request_publish request_module
request_network_access get_tool_status list_tool_versions rollback_tool create_server_secret list_server_secrets
list_pending_requests get_tool_logs add_external_source list_external_sources discover_external_tools
import_external_tools""".split()


def test_none_of_the_28_is_missing(manager):
    assert len(ORIGINALS) == 28
    assert {"mcpbox_" + name for name in ORIGINALS} <= set(manager.tools)


def test_names_in_the_texts_are_names(manager):
    """What guide, instructions and descriptions name is there."""
    said = manager("guide")["guide"] + json.dumps(manager.tools)
    for name in set(re.findall(r"mcpbox_[a-z_]+", said)):
        assert name in manager.tools or name.rstrip("_") in ("mcpbox",), name


def test_the_page_names_every_tool(manager):
    """docs/MANAGEMENT.md: each tool, its hints, and no other."""
    with open(os.path.join(os.path.dirname(__file__), "../../../docs/MANAGEMENT.md"), encoding="utf-8") as f:
        page = f.read()
    assert set(re.findall(r"`(mcpbox_[a-z_]+)`", page)) - {"mcpbox_"} == set(manager.tools)
    for name, hints in re.findall(r"^\| `(mcpbox_[a-z_]+)` \| ([a-z, ]*)\|", page, re.M):
        said = {h.strip() for h in hints.split(",")} - {""}
        a = manager.tools[name]["annotations"]
        assert a["readOnlyHint"] == ("reads" in said), name
        assert a["destructiveHint"] == ("destructive" in said), name


def test_prompts_resources_and_requests(manager, server):
    i, name = server
    prompt = manager("create_prompt", server_id=i, name="ask", text="Ask {what}.", arguments=[{"name": "what"}])["id"]
    note = manager("create_resource", server_id=i, name="note", uri=f"notes://{name}", text="n")["id"]
    manager("update_prompt", prompt_id=prompt, text="Ask about {what}.")
    manager("update_resource", resource_id=note, text="m")
    manager("update_resource", resource_id=note, enabled=False)
    assert [p["version"] for p in manager("list_prompts", server_id=i)["prompts"]] == [2]
    assert [r["uri"] for r in manager("list_resources", server_id=i)["resources"]] == [f"notes://{name}"]
    assert manager("get_tool", tool_id=prompt, version=1)["text"] == "Ask {what}."
    assert manager("rollback_tool", tool_id=prompt, version=1)["current_version"] == 3
    assert manager("diff_tool_versions", tool_id=note, from_version=1)["changes"]["diff"][0]["field"] == "text"
    tool = tool_of(manager, server)
    manager("request_module", tool_id=tool, module_name="requests==2.31.0", justification="To fetch.")
    asked = manager("request_network_access", tool_id=tool, host="Example.ORG.", port=443, justification="To fetch.")
    assert asked["host"] == "example.org" and asked["port"] == 443
    manager("request_publish", tool_id=tool)
    assert manager("get_server", server_id=i)["pending_requests"] == {"modules": 1, "network": 1, "tools": 1}
    pending = manager("list_pending_requests")
    assert tool in [t["id"] for t in pending["pending_tools"]]
    status = manager("get_tool_status", tool_id=tool)
    assert status["module_requests"][0]["module_name"] == "requests"
    assert status["network_access_requests"][0]["host"] == "example.org"
    manager("stop_server", server_id=i)
    assert manager("start_server", server_id=i)["changed"] is True
    assert manager("delete_prompt", prompt_id=prompt)["object"] == "prompt"
    assert manager("delete_resource", resource_id=note)["object"] == "resource"
    assert manager("delete_tool", tool_id=tool)["object"] == "tool"


def test_all_results_were_judged(manager):
    """The last: every tool with an outputSchema was used by the tests above."""
    unused = set(manager.tools) - manager.used - PASSES_ON - ELSEWHERE
    assert not unused, f"no test above has a success of {sorted(unused)}"
