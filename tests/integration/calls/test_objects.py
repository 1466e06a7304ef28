"""Prompts, resources and templates through all daemons: made, reviewed, listed, read, changed, deleted; each call one
record; what hostile arguments and two authors at once can't do."""
import base64
import hashlib
import json
import os
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, Client
from harness.instance import Instance

TEXT = "Say {what} to {who}. {{who}} {json: 1} {unclosed"
ARGUMENTS = [{"name": "what", "required": True, "description": "What to say.", "values": ["hello", "help"]},
             {"name": "who", "title": "Whom"}]


def refused(reply, mode):
    assert reply.result is not None and reply.result.get("isError") is True, reply
    assert reply.result["_meta"]["mcpbox/failure"]["failure_mode"] == mode, reply
    return "".join(c["text"] for c in reply.result["content"])


@pytest.fixture(scope="module")
def server(instance):
    with Client(instance.address) as c:
        return c.manage("mcpbox_create_server", name="things", description="Of these tests.")["id"]


def approve(instance, mcp, made):
    mcp.manage("mcpbox_request_publish", tool_id=made["id"])
    item = flow.pending(instance, made["name"])
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    return item["content"]


def prompt(instance, mcp, server, name, **fields):
    made = mcp.manage("mcpbox_create_prompt", server_id=server, name=name, **fields)
    approve(instance, mcp, made)
    return made["id"]


def resource(instance, mcp, server, name, **fields):
    made = mcp.manage("mcpbox_create_resource", server_id=server, name=name, **fields)
    approve(instance, mcp, made)
    return made["id"]


def listed(mcp, method, key):
    return {o["name"]: o for o in mcp.request(method).result[key]}


def prompts(mcp):
    return listed(mcp, "prompts/list", "prompts")


def resources(mcp):
    return listed(mcp, "resources/list", "resources")


def templates(mcp):
    return listed(mcp, "resources/templates/list", "resourceTemplates")


def get(mcp, name, **arguments):
    return mcp.request("prompts/get", {"name": name, "arguments": arguments})


def read(mcp, uri):
    return mcp.request("resources/read", {"uri": uri})


def records(instance, name):
    return instance.psql("SELECT kind, state, outcome, coalesce(failure, ''), version_hash IS NOT NULL FROM "
                         f"mcpbox.executions WHERE tool = '{name}' AND kind <> 'inspect' ORDER BY created_at, id")


# --- prompts ----------------------------------------------------------------


def test_life_of_a_static_prompt(instance, mcp, server):
    made = mcp.manage("mcpbox_create_prompt", server_id=server, name="say", title="Say", description="Says.",
                      text=TEXT, arguments=ARGUMENTS, icons=[{"src": "data:,"}], meta={"k": 1})
    name = made["exposed_name"]
    assert made["approval_status"] == "draft" and name == "things__say"
    assert made["input_schema"] == {"type": "object", "additionalProperties": False, "required": ["what"],
                                    "properties": {"what": {"type": "string", "description": "What to say."},
                                                   "who": {"type": "string"}}}
    # A draft is nobody's to use.
    assert name not in prompts(mcp) and get(mcp, name, what="x").error["data"]["failure_mode"] == "not_approved"
    content = approve(instance, mcp, made)
    assert content["object"] == "prompt" and content["kind"] == "static" and content["text"] == TEXT
    assert content["arguments"] == ARGUMENTS

    shown = prompts(mcp)[name]
    assert shown == {"name": name, "title": "Say", "description": "Says.", "icons": [{"src": "data:,"}],
                     "arguments": [{k: v for k, v in a.items() if k != "values"} for a in ARGUMENTS],
                     "_meta": {"k": 1}}
    r = get(mcp, name, what="{who} and {{who}}", who='"\\\n\u20ac').result
    assert r["description"] == "Says."
    # What is put in is not looked at again.
    assert r["messages"] == [{"role": "user", "content": {
        "type": "text", "text": 'Say {who} and {{who}} to "\\\n\u20ac. {who} {json: 1} {unclosed'}}]
    # Optional ones may be left out; required ones and others' may not be.
    assert "Say x to ." in get(mcp, name, what="x").result["messages"][0]["content"]["text"]
    for arguments in ({}, {"what": "x", "other": "y"}, {"what": 1}):
        e = get(mcp, name, **arguments).error
        assert e["code"] == -32602, e
    assert records(instance, name) == [["management", "closed", "done", "", "t"]] * 2
    # It is a prompt: not a tool, not a resource.
    assert mcp.call(name, {"what": "x"}).error["data"]["failure_mode"] == "unknown_tool"
    assert name not in mcp.tools()
    listing = mcp.manage("mcpbox_list_prompts", server_id=server)["prompts"]
    assert [p["callable"] for p in listing if p["name"] == "say"] == [True]
    assert all(t["name"] != "say" for t in mcp.manage("mcpbox_list_tools", server_id=server)["tools"])

    # A change is a draft; the approved text serves on.
    up = mcp.manage("mcpbox_update_prompt", prompt_id=made["id"], text="New {what}.")
    assert up["version"] == 2 and up["input_schema"] == made["input_schema"]
    assert get(mcp, name, what="x").result["messages"][0]["content"]["text"].startswith("Say x")
    approve(instance, mcp, up)
    assert get(mcp, name, what="x").result["messages"][0]["content"]["text"] == "New x."
    # A tool's id is no prompt's, nor the other way round.
    refused(mcp.call("mcpbox_update_tool", {"tool_id": made["id"], "description": "x"}), "not_found")
    refused(mcp.call("mcpbox_delete_tool", {"tool_id": made["id"]}), "not_found")
    refused(mcp.call("mcpbox_delete_resource", {"resource_id": made["id"]}), "not_found")


def test_several_messages(instance, mcp, server):
    text = json.dumps([{"role": "user", "content": "I am {who}."},
                       {"role": "assistant", "content": {"type": "text", "text": "Hi {who}"}},
                       {"role": "user", "content": {"type": "resource", "resource": {
                           "uri": "a:{who}", "text": "{{who}}", "mimeType": "text/plain"}}}])
    prompt(instance, mcp, server, "talk", text=text, arguments=[{"name": "who", "required": True}])
    r = get(mcp, "things__talk", who='","role":"x"}').result
    assert r["messages"] == [
        {"role": "user", "content": {"type": "text", "text": 'I am ","role":"x"}.'}},
        {"role": "assistant", "content": {"type": "text", "text": 'Hi ","role":"x"}'}},
        {"role": "user", "content": {"type": "resource", "resource": {
            "uri": 'a:","role":"x"}', "text": "{who}", "mimeType": "text/plain"}}}]


def test_python_prompt(instance, mcp, server):
    prompt(instance, mcp, server, "made", arguments=[{"name": "n", "required": True}],
           python_code="import mcpbox\ndef main(n: str):\n"
           "    return [mcpbox.Message('user', n), mcpbox.Message('assistant', 'ok')]\n")
    r = get(mcp, "things__made", n="7")
    assert r.result, r
    r = r.result
    assert [(m["role"], m["content"]["text"]) for m in r["messages"]] == [("user", "7"), ("assistant", "ok")]
    assert records(instance, "things__made") == [["tool", "closed", "done", "", "t"]]
    assert get(mcp, "things__made").error["code"] == -32602
    # Text replaces code, and back; the arguments stay.
    made = next(p for p in mcp.manage("mcpbox_list_prompts", server_id=server)["prompts"] if p["name"] == "made")
    up = mcp.manage("mcpbox_update_prompt", prompt_id=made["id"], text="Just {n}")
    assert "code" not in approve(instance, mcp, up)
    assert get(mcp, "things__made", n="7").result["messages"][0]["content"]["text"] == "Just 7"
    up = mcp.manage("mcpbox_update_prompt", prompt_id=made["id"], python_code="def main(n):\n    return 'p' + n\n")
    assert "text" not in approve(instance, mcp, up)
    assert get(mcp, "things__made", n="7").result["messages"][0]["content"]["text"] == "p7"


@pytest.mark.parametrize("fields, word", [
    ({}, "one of them"),
    ({"text": "x", "python_code": "def main(a): return ''"}, "one of them"),
    ({"text": ""}, "text"),
    ({"text": "Hi {nobody}"}, "nobody"),
    ({"text": "x" * (512 * 1024 + 1)}, "524288"),
    ({"text": "a\0b"}, "U+0000"),
    ({"text": "[]"}, "1 to 100"),
    ({"text": '[{"role":"system","content":"x"}]'}, "role"),
    ({"text": '[{"role":"user","content":{"type":"text"}}]'}, "content"),
    ({"text": '[{"role":"user","content":"x","more":1}]'}, "role"),
    ({"text": "x", "arguments": [{"name": "a"}, {"name": "a"}]}, "before"),
    ({"text": "x", "arguments": [{"name": "a-b"}]}, "arguments/0/name"),
    ({"text": "x", "arguments": [{"name": "a", "type": "int"}]}, "arguments/0"),
    ({"text": "x", "arguments": [{}]}, "name"),
    ({"text": "x", "meta": {"mcpbox/ttlMs": 1}}, "reserved"),
    ({"text": "x", "secrets": ["KEY"]}, "python_code"),
    ({"text": "x", "kind": "command"}, "kind"),
    ({"text": "x", "uri": "a:b"}, "uri"),
])
def test_prompts_that_cannot_be(mcp, server, fields, word):
    before = mcp.manage("mcpbox_list_prompts", server_id=server)["total"]
    said = refused(mcp.call("mcpbox_create_prompt", {"server_id": server, "name": "bad", **fields}),
                   "invalid_arguments")
    assert word in said
    assert mcp.manage("mcpbox_list_prompts", server_id=server)["total"] == before


def test_a_prompt_whose_code_is_broken(mcp, server):
    said = refused(mcp.call("mcpbox_create_prompt", {"server_id": server, "name": "bad",
                                                     "python_code": "def main(args:\n"}), "bad_code")
    assert "SyntaxError" in said


# --- resources --------------------------------------------------------------


def test_static_resources(instance, mcp, server):
    data = os.urandom(1000)
    resource(instance, mcp, server, "note", uri="things://note", mime_type="text/markdown", text="# {x} \u20ac\n",
             description="A note.", annotations={"audience": ["user"], "priority": 0.5}, ttl_ms=60000, meta={"k": 1})
    resource(instance, mcp, server, "bytes", uri="things://bytes", blob=base64.b64encode(data).decode(),
             mime_type="application/octet-stream")
    assert resources(mcp)["things__note"] == {
        "uri": "things://note", "name": "things__note", "description": "A note.", "mimeType": "text/markdown",
        "annotations": {"audience": ["user"], "priority": 0.5}, "size": 10,
        "_meta": {"mcpbox/ttlMs": 60000, "k": 1}}
    assert resources(mcp)["things__bytes"]["size"] == 1000
    r = read(mcp, "things://note").result
    assert r["contents"] == [{"uri": "things://note", "mimeType": "text/markdown", "text": "# {x} \u20ac\n"}]
    assert r["ttlMs"] == 60000
    got = read(mcp, "things://bytes").result["contents"][0]
    assert base64.b64decode(got["blob"], validate=True) == data and got["uri"] == "things://bytes"
    assert records(instance, "things__bytes") == [["management", "closed", "done", "", "t"]]
    for uri in ("things://note/", "things://NOTE", "things://not", "x:y"):
        e = read(mcp, uri).error
        assert e["code"] in (-32602, -32002) and e["data"]["uri"] == uri, e


def test_python_resource_and_template(instance, mcp, server):
    resource(instance, mcp, server, "live", uri="things://live", mime_type="application/json",
             python_code="def main():\n    return {'a': 1}\n")
    assert json.loads(read(mcp, "things://live").result["contents"][0]["text"]) == {"a": 1}
    made = mcp.manage("mcpbox_create_resource", server_id=server, name="family",
                      uri_template="things://{kind}/by-id/{+rest}", mime_type="text/plain",
                      arguments=[{"name": "kind", "values": ["a", "b"]}],
                      python_code="def main(kind, rest):\n    return kind + '|' + rest\n")
    assert made["input_schema"]["required"] == ["kind", "rest"]
    approve(instance, mcp, made)
    shown = templates(mcp)["things__family"]
    assert shown == {"uriTemplate": "things://{kind}/by-id/{+rest}", "name": "things__family",
                     "mimeType": "text/plain"}
    done = mcp.request("completion/complete", {"ref": {"type": "ref/resource", "uri": shown["uriTemplate"]},
                                               "argument": {"name": "kind", "value": "a"}})
    assert done.result["completion"]["values"] == ["a"], done
    assert "things__family" not in resources(mcp)
    got = read(mcp, "things://a%20b/by-id/x/y").result["contents"][0]
    assert got["text"] == "a b|x/y" and got["uri"] == "things://a%20b/by-id/x/y"
    assert read(mcp, "things://a%2Fb/by-id/x").error
    assert read(mcp, "things:///by-id/x").error
    listing = {r["name"]: r for r in mcp.manage("mcpbox_list_resources", server_id=server)["resources"]}
    assert listing["family"]["uri_template"] == "things://{kind}/by-id/{+rest}" and listing["live"]["uri"]
    # What it is it stays.
    said = refused(mcp.call("mcpbox_update_resource", {"resource_id": made["id"], "uri": "things://x"}),
                   "invalid_arguments")
    assert "template" in said
    said = refused(mcp.call("mcpbox_update_resource", {"resource_id": made["id"], "text": "x"}),
                   "invalid_arguments")
    assert "python_code" in said
    refused(mcp.call("mcpbox_update_resource", {"resource_id": listing["live"]["id"],
                                                "uri_template": "things://{x}",
                                                "python_code": "def main(b): return ''"}), "invalid_arguments")
    up = mcp.manage("mcpbox_update_resource", resource_id=made["id"], uri_template="things://{one}")
    assert up["input_schema"]["required"] == ["one"]


@pytest.mark.parametrize("fields, word", [
    ({"text": "x"}, "uri"),
    ({"uri": "a:b", "uri_template": "a:{b}", "text": "x"}, "one of them"),
    ({"uri": "a:b"}, "one of them"),
    ({"uri": "a:b", "text": "x", "blob": ""}, "one of them"),
    ({"uri": "no-scheme", "text": "x"}, "scheme"),
    ({"uri": "a:b c", "text": "x"}, "offset 3"),
    ({"uri": "a:{b}", "text": "x"}, "offset 2"),
    ({"uri": "a:\u20ac", "text": "x"}, "offset"),
    ({"uri": "a:" + "b" * 1023, "text": "x"}, "/uri"),
    ({"uri_template": "a:{b}", "text": "x"}, "python_code"),
    ({"uri_template": "a:b", "python_code": "def main(b): return ''"}, "variable"),
    ({"uri_template": "a:{b}{c}", "python_code": "def main(b): return ''"}, "between"),
    ({"uri_template": "a:{b}/{b}", "python_code": "def main(b): return ''"}, "before"),
    ({"uri_template": "a:{b*}", "python_code": "def main(b): return ''"}, "offset 2"),
    ({"uri_template": "a:{b}", "python_code": "def main(b): return ''", "arguments": [{"name": "c"}]}, "variable"),
    ({"uri": "a:b", "text": "x", "arguments": [{"name": "c"}]}, "uri_template"),
    ({"uri": "a:b", "blob": "AAA"}, "base64"),
    ({"uri": "a:b", "blob": "AA\nA"}, "base64"),
    ({"uri": "a:b", "blob": "AAB="}, "base64"),
    ({"uri": "a:b", "blob": "AA=A"}, "base64"),
    ({"uri": "a:b", "blob": "A" * (512 * 1024 + 4)}, "524288"),
    ({"uri": "a:b", "text": "x", "mime_type": "text"}, "mime_type"),
    ({"uri": "a:b", "text": "x", "mime_type": "text/html\n"}, "mime_type"),
    ({"uri": "a:b", "text": "x", "ttl_ms": -1}, "ttl_ms"),
    ({"uri": "a:b", "text": "x", "annotations": {"priority": 2}}, "priority"),
    ({"uri": "a:b", "text": "x", "annotations": {"readOnlyHint": True}}, "annotations"),
    ({"uri": "a:b", "text": "x", "confirm": True}, "confirm"),
])
def test_resources_that_cannot_be(mcp, server, fields, word):
    said = refused(mcp.call("mcpbox_create_resource", {"server_id": server, "name": "bad", **fields}),
                   "invalid_arguments")
    assert word in said
    assert all(r["name"] != "bad" for r in mcp.manage("mcpbox_list_resources", server_id=server)["resources"])


def test_the_largest_content(instance, mcp, server):
    text = "x" * (512 * 1024)
    resource(instance, mcp, server, "large", uri="things://large", text=text)
    assert read(mcp, "things://large").result["contents"][0]["text"] == text
    # What a prompt becomes has a limit, however it is met.
    resource(instance, mcp, server, "escapes", uri="things://escapes", text="\x01" * (170 * 1024))
    assert read(mcp, "things://escapes").result["contents"][0]["text"] == "\x01" * (170 * 1024)
    prompt(instance, mcp, server, "grows", text="{a}" * 40, arguments=[{"name": "a"}])
    assert len(get(mcp, "things__grows", a="y" * 20000).result["messages"][0]["content"]["text"]) == 800000
    assert get(mcp, "things__grows", a="y" * 40000).error["data"]["failure_mode"] == "limit"
    assert get(mcp, "things__grows", a="\x01" * 20000).error["data"]["failure_mode"] == "limit"
    assert [r[1:4] for r in records(instance, "things__grows")] == [["closed", "done", ""]]
    assert read(mcp, "things://large").result


def test_a_uri_belongs_to_one(instance, mcp, server):
    first = mcp.manage("mcpbox_create_resource", server_id=server, name="first", uri="things://one", text="1")
    second = mcp.manage("mcpbox_create_resource", server_id=server, name="second", uri="things://one", text="2")
    # Drafts claim nothing; the first to ask for review does.
    mcp.manage("mcpbox_request_publish", tool_id=second["id"])
    said = refused(mcp.call("mcpbox_request_publish", {"tool_id": first["id"]}), "conflict")
    assert "things://one" in said
    item = flow.pending(instance, "second")
    instance.ctl("approvals", "reject", item["id"], "--reason", "no")
    approve(instance, mcp, first)
    assert read(mcp, "things://one").result["contents"][0]["text"] == "1"
    refused(mcp.call("mcpbox_request_publish", {"tool_id": second["id"]}), "conflict")
    # Another URI serves: the old one is free, and nothing is at it any more.
    up = mcp.manage("mcpbox_update_resource", resource_id=first["id"], uri="things://moved")
    refused(mcp.call("mcpbox_request_publish", {"tool_id": second["id"]}), "conflict")
    approve(instance, mcp, up)
    assert read(mcp, "things://one").error
    assert read(mcp, "things://moved").result["contents"][0]["text"] == "1"
    approve(instance, mcp, second)
    assert read(mcp, "things://one").result["contents"][0]["text"] == "2"


def test_many_authors_ask_for_one_uri_at_once(instance, mcp, server):
    ids = [mcp.manage("mcpbox_create_resource", server_id=server, name=f"race{i}", uri="things://race",
                      text=str(i))["id"] for i in range(6)]
    replies, start = [], threading.Barrier(len(ids))

    def ask(i):
        with Client(instance.address) as c:
            start.wait()
            replies.append(c.call("mcpbox_request_publish", {"tool_id": i}))

    threads = [threading.Thread(target=ask, args=(i,)) for i in ids]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    won = [r for r in replies if not r.result.get("isError")]
    assert len(won) == 1
    for r in replies:
        if r not in won:
            refused(r, "conflict")
    assert instance.psql("SELECT count(*) FROM mcpbox.resource_uris WHERE uri = 'things://race'") == [["1"]]


def test_names_are_shared_by_all(mcp, server):
    mcp.manage("mcpbox_create_prompt", server_id=server, name="taken", text="x")
    said = refused(mcp.call("mcpbox_create_resource", {"server_id": server, "name": "taken", "uri": "things://t",
                                                       "text": "x"}), "conflict")
    assert "prompt" in said
    refused(mcp.call("mcpbox_create_tool", {"server_id": server, "name": "taken",
                                            "python_code": "def main(): pass"}), "conflict")


def test_what_a_reviewer_sees(instance, mcp, server, rest):
    """No field can pass for another, nothing is invisible, a file is known by its digest."""
    data = os.urandom(3000)
    blob = base64.b64encode(data).decode()
    text = "one\nsecrets            NONE\x1b[2J\u202e\u0430\nhash 00"
    for name, fields in (("seen_text", {"uri": "things://seen?x=%0a", "text": text, "mime_type": "text/plain"}),
                         ("seen_blob", {"uri": "things://blob", "blob": blob})):
        made = mcp.manage("mcpbox_create_resource", server_id=server, name=name, **fields)
        mcp.manage("mcpbox_request_publish", tool_id=made["id"])
        item = flow.pending(instance, name)
        assert item["content"].get("text", item["content"].get("blob")) == fields.get("text", blob)
        shown = instance.ctl("approvals", "show", item["id"]).stdout
        lines = shown.splitlines()
        assert any(line.split() == ["object", "resource"] for line in lines)
        assert any(line.split() == ["uri", fields["uri"]] for line in lines)
        if name == "seen_text":
            assert shown.isascii() and "\x1b" not in shown
            assert "     2 | secrets            NONE\\u{1b}[2J\\u{202e}\\u{430}" in lines
            assert "     3 | hash 00" in lines and not any(line.startswith(("secrets", "hash 00")) for line in lines)
        else:
            n = lines.index("blob               3000 bytes, SHA-256")
            assert lines[n + 1].strip() == hashlib.sha256(data).hexdigest()
            assert lines[n + 2].startswith("  begins           " + blob[:20]) and len(lines[n + 2]) <= 80
        r = rest.get(f"/api/approvals/{item['id']}")[2]
        assert r["content"]["object"] == "resource" and r["content"].get("text", blob) == fields.get("text", blob)
    tools = rest.get("/api/tools?limit=200")[2]["items"]
    assert {t["name"]: t["object"] for t in tools}["seen_blob"] == "resource"


# --- switching, stopping, deleting --------------------------------------------


def test_enabled_and_stopped(instance, mcp, server):
    other = mcp.manage("mcpbox_create_server", name="halt")["id"]
    i = resource(instance, mcp, other, "r", uri="halt://r", text="x")
    assert mcp.manage("mcpbox_update_resource", resource_id=i, enabled=False)["enabled"] is False
    assert "halt__r" not in resources(mcp) and read(mcp, "halt://r").error
    mcp.manage("mcpbox_update_resource", resource_id=i, enabled=True)
    assert read(mcp, "halt://r").result
    mcp.manage("mcpbox_stop_server", server_id=other)
    assert "halt__r" not in resources(mcp) and read(mcp, "halt://r").error
    mcp.manage("mcpbox_start_server", server_id=other)
    assert read(mcp, "halt://r").result


@pytest.mark.parametrize("what", ["tool", "prompt", "resource"])
def test_deletion(instance, mcp, server, what):
    name, gone = f"gone_{what}", f"things__gone_{what}"
    fields = {"tool": {"python_code": "def main() -> str:\n    return 'here'\n"}, "prompt": {"text": "here"},
              "resource": {"uri": "things://gone", "text": "here"}}[what]
    made = mcp.manage(f"mcpbox_create_{what}", server_id=server, name=name, **fields)
    approve(instance, mcp, made)

    def use():
        return {"tool": lambda: mcp.call(gone, {}), "prompt": lambda: get(mcp, gone),
                "resource": lambda: read(mcp, "things://gone")}[what]()

    assert "here" in use().raw.decode()
    # Another draft of it waits for review meanwhile.
    up = mcp.manage(f"mcpbox_update_{what}", **{f"{what}_id": made["id"]}, description="New.")
    mcp.manage("mcpbox_request_publish", tool_id=up["id"])
    waiting = flow.pending(instance, name)
    done = mcp.manage(f"mcpbox_delete_{what}", **{f"{what}_id": made["id"]})
    assert done["success"] and done["name"] == gone and done["object"] == what
    # Answered means gone: by name, from every list, from review.
    assert use().error["code"] in (-32602, -32002)
    assert gone not in mcp.tools() and gone not in prompts(mcp) and gone not in resources(mcp)
    assert all(o["name"] != name for o in mcp.manage(f"mcpbox_list_{what}s", server_id=server)[f"{what}s"])
    assert instance.ctl("approvals", "approve", waiting["id"], "--hash", waiting["hash"], check=False).returncode != 0
    for call, arguments in ((f"mcpbox_update_{what}", {f"{what}_id": made["id"], "description": "x"}),
                            (f"mcpbox_update_{what}", {f"{what}_id": made["id"], "enabled": True}),
                            (f"mcpbox_delete_{what}", {f"{what}_id": made["id"]}),
                            ("mcpbox_request_publish", {"tool_id": made["id"]})):
        refused(mcp.call(call, arguments), "not_found")
    # History stays.
    assert instance.psql("SELECT version_no, state FROM mcpbox.tool_versions WHERE tool_id = "
                         f"'{made['id']}' ORDER BY 1") == [["1", "revoked"], ["2", "rejected"]]
    assert len(records(instance, gone)) >= 1
    assert instance.psql("SELECT count(*) FROM mcpbox.audit_log WHERE action = 'tool_deleted' AND subject = "
                         f"'{what} {gone}'") == [["1"]]
    assert instance.ctl_json("tools", made["id"])["tool"]["deleted_at"]
    assert made["id"] in instance.ctl("tools", "--state", "deleted", "--limit", "200").stdout
    assert made["id"] not in instance.ctl("tools", "--limit", "200").stdout
    # Name and URI are free, and the new one is not the old one.
    again = mcp.manage(f"mcpbox_create_{what}", server_id=server, name=name, **fields)
    assert again["id"] != made["id"] and use().error
    approve(instance, mcp, again)
    assert "here" in use().raw.decode()


def test_deletion_can_be_switched_off():
    i = Instance(sets=["admind:local_destructive=no"])
    try:
        with Client(i.address) as c:
            sid = c.manage("mcpbox_create_server", name="keep")["id"]
            for what, fields in (("tool", {"python_code": "def main(): pass"}), ("prompt", {"text": "x"}),
                                 ("resource", {"uri": "keep://x", "text": "x"})):
                made = c.manage(f"mcpbox_create_{what}", server_id=sid, name=f"kept_{what}", **fields)
                r = c.call(f"mcpbox_delete_{what}", {f"{what}_id": made["id"]})
                assert r.error and r.error["data"]["failure_mode"] == "forbidden", r
                assert len(c.manage(f"mcpbox_list_{what}s", server_id=sid)[f"{what}s"]) == 1
    finally:
        i.close()


# --- capabilities, search ------------------------------------------------------


def test_client_capabilities(instance, mcp, server):
    made = mcp.manage("mcpbox_create_tool", server_id=server, name="needs", python_code="def main(): return 'ran'",
                      client_capabilities=["sampling", "elicitation.url"])
    assert approve(instance, mcp, made)["client_capabilities"] == ["elicitation.url", "sampling"]
    r = mcp.call("things__needs", {})
    assert r.error["code"] == -32021, r
    assert r.error["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}, "sampling": {}}
    assert records(instance, "things__needs") == []
    meta = {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "elicitation": {"url": {}}}}
    r = mcp.request("tools/call", {"name": "things__needs", "arguments": {}, "_meta": meta})
    assert r.result["content"][0]["text"] == "ran", r
    refused(mcp.call("mcpbox_create_tool", {"server_id": server, "name": "bad", "python_code": "def main(): pass",
                                            "client_capabilities": ["root"]}), "invalid_arguments")


def test_search(instance, mcp, server):
    flow.publish(instance, mcp, "things", "find_whales", "def main():\n    '''Counts 100% of them_all.'''\n")
    flow.publish(instance, mcp, "things", "find_fish", "def main():\n    '''No whales.'''\n")

    def found(query, **more):
        return [t["name"] for t in mcp.manage("mcpbox_search_tools", query=query, **more)["tools"]]

    assert found("WHALES find")[:2] == ["things__find_whales", "things__find_fish"]
    assert found("whales", limit=1) == ["things__find_whales"]
    assert found("nothing_like_it") == [] and found("   ") == []
    # Words are no patterns.
    for word in ("%", "_all", "100%", "'", "\\", ".*"):
        assert set(found(word, limit=50)) <= {"things__find_whales", "things__find_fish"} | {
            n for n, t in mcp.tools().items() if word.lower() in (n + t.get("title", "") + t["description"]).lower()}
    sid = mcp.manage("mcpbox_create_tool", server_id=server, name="hidden_whales", python_code="def main(): pass")["id"]
    assert uuid.UUID(sid) and "things__hidden_whales" not in found("whales", limit=50)


def test_legacy_clients_have_them_too(instance, mcp, server):
    prompt(instance, mcp, server, "old_p", text="Hi {a}", arguments=[{"name": "a", "required": True}])
    resource(instance, mcp, server, "old_r", uri="things://old", text="x")
    with Client(instance.address, LEGACY) as c:
        assert "things__old_p" in prompts(c) and "things__old_r" in resources(c)
        assert get(c, "things__old_p", a="you").result["messages"][0]["content"]["text"] == "Hi you"
        assert read(c, "things://old").result["contents"][0]["text"] == "x"
