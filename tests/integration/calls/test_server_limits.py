"""Limits, commands, modules and the guide through the whole suite: an LLM's
management tools on one side, mcpboxctl and REST on the other."""
import hashlib
import json
import os
import subprocess
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import text
from harness.instance import SRC

CODE = 'def main(name: str = "world") -> str:\n    """Greets."""\n    return "Hello, " + name\n'


@pytest.fixture(scope="module")
def made(instance):
    """(server id, exposed name) of an approved tool."""
    from harness.clients.mcp import Client
    with Client(instance.address) as c:
        name = flow.publish(instance, c, "lim", "greet", CODE)
        server = next(s["id"] for s in c.manage("mcpbox_list_servers")["servers"] if s["name"] == "lim")
    return server, name


def failed(reply, mode):
    """The text of an isError result of this failure mode."""
    r = reply.result
    assert r is not None and r["isError"] and r["_meta"]["mcpbox/failure"]["failure_mode"] == mode \
        if isinstance(r["_meta"]["mcpbox/failure"], dict) else r["_meta"]["mcpbox/failure"] == mode, reply
    return r["content"][0]["text"]


def set_limits(instance, *words):
    return instance.ctl("servers", "limits", "lim", *words)


# --- mcpboxctl ------------------------------------------------------------------


def test_ctl_shows_and_sets(instance, made):
    shown = instance.ctl("servers", "limits", "lim").stdout.splitlines()
    assert len(shown) == 16 and all(line.endswith(" default") for line in shown)
    try:
        out = set_limits(instance, "timeout_ms=2000", "memory_bytes=128M", "files=64").stdout
        assert "timeout_ms       2000 ms" in out and f"{128 << 20} bytes" in out
        o = instance.ctl_json("servers", "limits", "lim")
        assert o["server"] == "lim" and o["limits"]["files"] == 64 and o["updated_by"] == "root"
        # those not named stay, `default` and nothing unset
        set_limits(instance, "files=", "timeout_ms=default")
        o = instance.ctl_json("servers", "limits", "lim")["limits"]
        assert o["files"] is None and o["timeout_ms"] is None and o["memory_bytes"] == 128 << 20
    finally:
        set_limits(instance, "memory_bytes=", "files=", "timeout_ms=")


@pytest.mark.parametrize("word,status", [
    ("timeout_ms=99", 2), ("timeout_ms=600001", 2), ("timeout_ms=-1", 2), ("timeout_ms=1e3", 2),
    ("timeout_ms=1X", 2), ("timeout_ms=1KK", 2), ("timeout_ms= 1000", 2), ("timeout_ms=0", 2), ("timeout=1000", 2),
    ("=1", 2), ("timeout_ms", 2), ("memory_bytes=99999999999G", 2), ("memory_bytes=32G", 2)])
def test_ctl_refuses(instance, made, word, status):
    r = instance.ctl("servers", "limits", "lim", word, check=False)
    assert r.returncode == status and r.stderr, r
    assert all(v is None for v in instance.ctl_json("servers", "limits", "lim")["limits"].values())


def test_ctl_names_an_unknown_server(instance, made):
    assert instance.ctl("servers", "limits", "nobody", check=False).returncode == 1
    assert instance.ctl("servers", "limits", "nobody", "files=20", check=False).returncode == 1
    assert instance.ctl("servers", "limits", check=False).returncode == 2


# --- REST -----------------------------------------------------------------------


def test_rest_replaces_what_was_read(instance, rest, made):
    path = f"/api/servers/{made[0]}/limits"
    status, headers, o = rest.get(path)
    assert status == 200 and o["server"] == "lim" and set(o["limits"].values()) == {None}
    tag = headers["etag"]
    assert tag == '"%s"' % hashlib.sha256(json.dumps(o).encode()).hexdigest() or len(tag) == 66
    body = {"limits": {"timeout_ms": 2500, "log_rate": None}}
    for match, status in ((None, 428), ("*", 428), ('"' + "0" * 64 + '"', 412), ("x", 412), (tag[1:-1], 412)):
        assert rest.request("PUT", path, body, {"If-Match": match})[0] == status, match
    assert rest.request("PUT", path, body, {"If-Match": tag, "X-CSRF-Token": None})[0] == 401
    assert rest.request("PUT", path, body, {"If-Match": tag, "Cookie": None})[0] == 401
    assert rest.get(path)[1]["etag"] == tag
    status, headers, o = rest.request("PUT", path, body, {"If-Match": tag})
    assert status == 200 and o["limits"]["timeout_ms"] == 2500 and o["updated_by"] == "admin", o
    assert headers["etag"] != tag and rest.get(path)[1]["etag"] == headers["etag"]
    assert rest.request("PUT", path, body, {"If-Match": tag})[0] == 412  # what was read is old
    status, _, o = rest.request("PUT", path, {"limits": {}}, {"If-Match": headers["etag"]})
    assert status == 200 and set(o["limits"].values()) == {None}
    audit = rest.get("/api/audit?limit=10")[2]["items"]
    assert any(r["action"] == "server_limits_set" and r["actor"] == "admin" for r in audit)


@pytest.mark.parametrize("body", [
    {}, {"limits": None}, {"limits": []}, {"limits": {"timeout_ms": 99}}, {"limits": {"timeout_ms": 600001}},
    {"limits": {"timeout_ms": "1000"}}, {"limits": {"timeout_ms": 1000.5}}, {"limits": {"timeout_ms": True}},
    {"limits": {"timeout": 1000}}, {"limits": {"memory_bytes": 2**64}}, {"limits": {"memory_bytes": -1}},
    {"limits": {}, "server_id": "x"}, {"limits": {"cpu_ms": {}}}, {"limits": {"code_bytes": 100001}}])
def test_rest_refuses(instance, rest, made, body):
    path = f"/api/servers/{made[0]}/limits"
    tag = rest.get(path)[1]["etag"]
    status, headers, o = rest.request("PUT", path, body, {"If-Match": tag})
    assert status == 400 and headers["content-type"] == "application/problem+json" and o["detail"], (body, o)
    assert rest.get(path)[1]["etag"] == tag


def test_rest_knows_no_other_server(instance, rest, made):
    for i in (uuid.uuid4(), "1", "-"):
        assert rest.get(f"/api/servers/{i}/limits")[0] == 404
        answer = rest.request("PUT", f"/api/servers/{i}/limits", {"limits": {}}, {"If-Match": '"' + "0" * 64 + '"'})
        assert answer[0] == 404, answer


# --- what calls get ---------------------------------------------------------------


def test_arguments_and_code_are_measured(instance, mcp, made):
    server, name = made
    try:
        set_limits(instance, "argument_bytes=64", "code_bytes=1000")
        assert text(mcp.call(name, {"name": "x" * 40})) == "Hello, " + "x" * 40
        said = failed(mcp.call(name, {"name": "x" * 60}), "limit")
        assert "argument_bytes" in said and "64" in said
        long = CODE + "#" * 1000
        said = failed(mcp.call("mcpbox_create_tool", {"server_id": server, "name": "long", "python_code": long}),
                      "limit")
        assert "code_bytes" in said and "1000" in said and str(len(long)) in said
    finally:
        set_limits(instance, "argument_bytes=", "code_bytes=")
    assert text(mcp.call(name, {"name": "x" * 60})) == "Hello, " + "x" * 60


def test_a_servers_time_limit_ends_a_call(instance, mcp, made):
    name = flow.publish(instance, mcp, "lim", "sleepy", "import time\ndef main():\n    time.sleep(20)\n")
    try:
        set_limits(instance, "timeout_ms=300")
        said = failed(mcp.call(name), "timeout")
        assert "300" in said, said
    finally:
        set_limits(instance, "timeout_ms=")


def test_a_versions_limits_are_reviewed(instance, mcp, rest, made):
    server, _ = made
    t = mcp.manage("mcpbox_create_tool", server_id=server, name="limited", python_code=CODE,
                   limits={"cpu_ms": 1000, "log_rate": 7})
    changed = mcp.manage("mcpbox_update_tool", tool_id=t["id"], limits={"cpu_ms": 2000})
    assert changed["version"] == 2 and changed["version_hash"] != t["version_hash"]
    status, _, o = rest.get("/api/tools/" + t["id"])
    assert status == 200 and o["limits"] == {"cpu_ms": 2000, "log_rate": 7} and o["modules"] == []
    mcp.manage("mcpbox_request_publish", tool_id=t["id"])
    content = flow.pending(instance, "limited")["content"]
    assert content["cpu_ms"] == 2000 and content["log_rate"] == 7
    shown = instance.ctl("approvals", "show", flow.pending(instance, "limited")["id"]).stdout
    assert "cpu_ms             2000" in shown


# --- the guide ------------------------------------------------------------------


def test_the_guide_is_one_page_of_text(mcp):
    r = mcp.call("mcpbox_guide", {}).result
    assert not r.get("isError") and len(r["content"]) == 1 and r["content"][0]["type"] == "text"
    page = r["content"][0]["text"]
    assert page.startswith("# ") and "def main" in page and len(page) < 32768
    t = mcp.tools()["mcpbox_guide"]
    assert t["annotations"]["readOnlyHint"] is True and t["inputSchema"]["properties"] == {}
    assert "mcpbox_guide" in mcp.tools()["mcpbox_create_tool"]["description"]


# --- modules --------------------------------------------------------------------


def test_a_module_is_asked_for_granted_and_locked(instance, mcp, made):
    server, _ = made
    tool = mcp.manage("mcpbox_create_tool", server_id=server, name="modular", python_code=CODE)["id"]
    mcp.manage("mcpbox_request_publish", tool_id=tool)
    item = flow.pending(instance, "modular")
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    said = failed(mcp.call("mcpbox_update_tool", {"tool_id": tool, "modules": ["six==1.16.0"]}), "missing_grant")
    assert "six==1.16.0" in said and "mcpbox_request_module" in said
    said = failed(mcp.call("mcpbox_create_tool", {"server_id": server, "name": "modular_two", "python_code": CODE,
                                                  "modules": ["six"]}), "missing_grant")
    assert "mcpbox_request_module" in said
    asked = mcp.manage("mcpbox_request_module", tool_id=tool, module_name="Six==1.16.0", justification="old code")
    assert asked["status"] == "pending" and asked["module_name"] == "six==1.16.0"
    failed(mcp.call("mcpbox_request_module", {"tool_id": tool, "module_name": "six==1.16.0",
                                              "justification": "again"}), "conflict")
    waiting = mcp.manage("mcpbox_list_pending_requests")
    assert [w for w in waiting["pending_module_requests"] if w["id"] == asked["request_id"]][0]["module_name"] == "six"
    assert waiting["summary"]["modules"] == 1
    status = mcp.manage("mcpbox_get_tool_status", tool_id=tool)
    assert status["module_requests"][0]["status"] == "pending" and status["modules_granted"] == []
    listed = instance.ctl_json("approvals", "list", "--kind", "module")["items"]
    assert listed[0]["module"] == "six" and listed[0]["tool"] == "modular"

    digest = hashlib.sha256(b"six").hexdigest()
    instance.ctl("modules", "add", "six", "1.16.0", digest, "3", "1000")
    instance.ctl("modules", "grant", "lim__modular", "six==1.16.0")
    assert instance.ctl_json("modules")["items"][0]["tools"] == ["lim__modular"]
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool)["modules_granted"] == ["six==1.16.0"]
    made_ = mcp.manage("mcpbox_update_tool", tool_id=tool, modules=["six"])
    assert made_["version"] == 2
    # the approved version without it serves on
    assert text(mcp.call("lim__modular")) == "Hello, world"
    mcp.manage("mcpbox_request_publish", tool_id=tool)
    content = flow.pending(instance, "modular")["content"]
    assert content["modules"] == [f"six 1.16.0 {digest}"]
    # fields left out keep the lock, an empty list ends it
    assert mcp.manage("mcpbox_update_tool", tool_id=tool, description="Greets people.")["version"] == 3
    instance.ctl("modules", "revoke", "lim__modular", "six")
    said = failed(mcp.call("mcpbox_update_tool", {"tool_id": tool, "title": "x"}), "missing_grant")
    assert "six" in said and "mcpbox_request_module" in said
    assert mcp.manage("mcpbox_update_tool", tool_id=tool, modules=[])["version"] == 4


def test_a_granted_module_is_there_for_its_tool_alone(instance, mcp, made, tmp_path):
    """From the store on disk to an import, and to its end."""
    server, _ = made
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("CANARY = 'of the module'\n")
    digest = subprocess.run([os.path.join(SRC, "contrib/module-add"), os.path.join(instance.state, "modules"),
                             str(tmp_path)], capture_output=True, text=True, check=True).stdout.strip()
    code = "def main():\n    import pkg\n    return pkg.CANARY\n"

    def publish(tool):
        mcp.manage("mcpbox_request_publish", tool_id=tool)
        name = mcp.manage("mcpbox_get_tool_status", tool_id=tool)["name"]
        item = flow.pending(instance, name)
        instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
        return "lim__" + name

    tools = [mcp.manage("mcpbox_create_tool", server_id=server, name=n, python_code=code)["id"]
             for n in ("with_pkg", "without_pkg")]
    instance.ctl("modules", "add", "pkg", "1.0", digest)
    instance.ctl("modules", "grant", "lim__with_pkg", "pkg")
    mcp.manage("mcpbox_update_tool", tool_id=tools[0], modules=["pkg==1.0"])
    failed(mcp.call("mcpbox_update_tool", {"tool_id": tools[1], "modules": ["pkg==1.0"]}), "missing_grant")
    with_, without = map(publish, tools)
    assert text(mcp.call(with_)) == "of the module"
    r = mcp.call(without).result
    assert r["isError"] and "mcpbox_request_module" in r["content"][0]["text"], r
    instance.ctl("modules", "withdraw", "pkg", "1.0")
    said = failed(mcp.call(with_), "missing_grant")
    assert "pkg" in said and "mcpbox_request_module" in said
    instance.ctl("modules", "add", "pkg", "1.0", digest)
    assert text(mcp.call(with_)) == "of the module"


@pytest.mark.parametrize("name", ["../x", "", "a b", "-a", "a-", "a==", "a==1==2", "a\n", "a;rm", "a" * 129, "==1"])
def test_a_modules_name_is_a_name(mcp, made, name):
    r = mcp.call("mcpbox_request_module", {"tool_id": str(uuid.uuid4()), "module_name": name, "justification": "x"})
    failed(r, "invalid_arguments")


@pytest.mark.parametrize("words,status", [
    (("add", "six"), 2), (("add", "six", "1", "zz"), 2), (("add", "six", "1", "A" * 64), 2),
    (("add", "six", "1", "a" * 64, "x", "1"), 2), (("grant", "lim__greet", ""), 2), (("grant", "lim__greet", "six=="), 2),
    (("grant", "lim__greet", "never"), 1), (("revoke", "lim__greet", "never"), 1), (("withdraw", "never", "1"), 1),
    (("frob",), 2), (("add", "../x", "1", "a" * 64), 1)])
def test_ctl_refuses_modules(instance, made, words, status):
    r = instance.ctl("modules", *words, check=False)
    assert r.returncode == status, r


# --- commands --------------------------------------------------------------------

SPEC = {"argv": ["-n", "{count}"], "stdin": "{text}"}


def command(server, name, **more):
    return {"server_id": server, "name": name, "kind": "command", "executable": "/usr/bin/head", "spec": SPEC, **more}


def test_a_command_from_draft_to_result(instance, mcp, made):
    server, _ = made
    t = mcp.manage("mcpbox_create_tool", **command(server, "first", description="First lines."))
    assert t["input_schema"]["properties"] == {"count": {"type": "string"}, "text": {"type": "string"}}
    assert sorted(t["input_schema"]["required"]) == ["count", "text"]
    mcp.manage("mcpbox_request_publish", tool_id=t["id"])
    item = flow.pending(instance, "first")
    content = item["content"]
    assert content["kind"] == "command" and content["spec"] == SPEC and "code" not in content
    assert content["executable"] == "/usr/bin/head"
    with open("/usr/bin/head", "rb") as f:
        assert content["executable_digest"] == hashlib.sha256(f.read()).hexdigest()
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    r = mcp.call("lim__first", {"count": "1", "text": "one\ntwo\n"})
    assert "one" in text(r) and "two" not in text(r), r


def test_a_commands_own_schema_covers_its_placeholders(mcp, made):
    server, _ = made
    good = {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1}, "text": {"type": "string"},
                                             "more": {}}, "required": ["count"]}
    t = mcp.manage("mcpbox_create_tool", **command(server, "typed", input_schema=good))
    assert t["input_schema"] == good
    bad = {"type": "object", "properties": {"count": {"type": "integer"}}}
    said = failed(mcp.call("mcpbox_create_tool", command(server, "untyped", input_schema=bad)), "invalid_arguments")
    assert "/spec/stdin" in said and "{text}" in said
    # an update that gives only one of the two is judged with the other's present form
    failed(mcp.call("mcpbox_update_tool", {"tool_id": t["id"], "input_schema": bad}), "invalid_arguments")
    new = mcp.manage("mcpbox_update_tool", tool_id=t["id"], spec={"argv": ["{file}"]})
    assert new["input_schema"]["properties"] == {"file": {"type": "string"}}


@pytest.mark.parametrize("change,mode,what", [
    ({"executable": "/bin/sh"}, "bad_code", "allowed"), ({"executable": "/usr/bin/no-such"}, "bad_code", "allowed"),
    ({"executable": "head"}, "invalid_arguments", "/executable"),
    ({"executable": "/usr/bin/../bin/head"}, "bad_code", "allowed"),
    ({"spec": {"argv": "x"}}, "invalid_arguments", "/spec/argv"), ({"spec": {}}, "invalid_arguments", "/spec"),
    ({"spec": {"argv": [1]}}, "invalid_arguments", "/spec/argv/0"),
    ({"spec": {"argv": ["a\u0000b"]}}, None, ""), ({"spec": {"argv": [], "shell": True}}, "invalid_arguments", "shell"),
    ({"spec": {"argv": [], "env": {"A B": "x"}}}, None, ""), ({"spec": {"argv": [], "stdin": "x{a}"}},
                                                              "invalid_arguments", "/spec/stdin"),
    ({"spec": {"argv": ["x" * 4097]}}, "invalid_arguments", "/spec/argv/0"),
    ({"spec": {"argv": ["x"] * 257}}, "invalid_arguments", "/spec/argv"),
    ({"python_code": CODE}, "invalid_arguments", "python_code"), ({"modules": ["six"]}, None, ""),
    ({"secrets": ["KEY"]}, "invalid_arguments", "secrets"),
    ({"spec": None}, "invalid_arguments", "/spec"), ({"executable": None}, "invalid_arguments", "/executable"),
    ({"kind": "shell"}, "invalid_arguments", "/kind")])
def test_what_is_no_command(mcp, made, change, mode, what):
    server, _ = made
    arguments = {k: v for k, v in command(server, "nope", **change).items() if v is not None}
    r = mcp.call("mcpbox_create_tool", arguments)
    assert r.result is not None and r.result["isError"], r
    if mode:
        assert what in failed(r, mode), r
    names = [t["name"] for t in mcp.manage("mcpbox_list_tools", server_id=server, page_size=100)["tools"]]
    assert "nope" not in names


def test_a_tool_may_change_its_kind(mcp, made):
    server, _ = made
    t = mcp.manage("mcpbox_create_tool", server_id=server, name="change", python_code=CODE)
    failed(mcp.call("mcpbox_update_tool", {"tool_id": t["id"], "kind": "command"}), "invalid_arguments")
    failed(mcp.call("mcpbox_update_tool", {"tool_id": t["id"], "spec": SPEC}), "invalid_arguments")
    new = mcp.manage("mcpbox_update_tool", tool_id=t["id"], kind="command", executable="/usr/bin/head", spec=SPEC)
    assert set(new["input_schema"]["properties"]) == {"count", "text"}
    failed(mcp.call("mcpbox_update_tool", {"tool_id": t["id"], "python_code": CODE}), "invalid_arguments")
    new = mcp.manage("mcpbox_update_tool", tool_id=t["id"], kind="python", python_code=CODE)
    assert set(new["input_schema"]["properties"]) == {"name"}


# --- names --------------------------------------------------------------------

def test_a_server_may_name_its_tools_barely(instance, mcp, rest):
    """From then on; what was reviewed under another name keeps it."""
    before = flow.publish(instance, mcp, "names", "one", CODE)
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "names")
    instance.ctl("servers", "expose", "names", "bare")
    flow.publish(instance, mcp, "names", "two_bare", CODE)
    assert {before, "two_bare"} <= set(mcp.tools())
    assert mcp.call("two_bare", {}).result["content"][0]["text"] == "Hello, world"
    path = f"/api/servers/{server}/expose"
    assert rest.request("PUT", path, {"expose": "prefixed"})[0] == 204
    flow.publish(instance, mcp, "names", "three", CODE)
    assert {before, "two_bare", "names__three"} <= set(mcp.tools())
    assert rest.request("PUT", path, {"expose": "hidden"})[0] == 400
    assert rest.request("PUT", f"/api/servers/{uuid.uuid4()}/expose", {"expose": "bare"})[0] == 404
    seen = instance.psql("SELECT string_agg(actor || ' ' || (detail::json ->> 'expose'), ',' ORDER BY seq)"
                         " FROM mcpbox.audit_log WHERE action = 'server_expose_set'")
    assert "root bare,admin prefixed" in str(seen)


def test_two_servers_can_t_give_one_bare_name(instance, mcp):
    for server in ("bare_a", "bare_b"):
        mcp.manage("mcpbox_create_server", name=server, description="")
        instance.ctl("servers", "expose", server, "bare")
    flow.publish(instance, mcp, "bare_a", "same_name", CODE)
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "bare_b")
    r = mcp.call("mcpbox_create_tool", {"server_id": server, "name": "same_name", "python_code": CODE})
    assert "something else has the name same_name" in str(r.result or r.error), r
    # Its own server can hold it under the longer name.
    instance.ctl("servers", "expose", "bare_b", "prefixed")
    assert flow.publish(instance, mcp, "bare_b", "same_name", CODE) == "bare_b__same_name"
    assert {"same_name", "bare_b__same_name"} <= set(mcp.tools())
    assert instance.ctl("servers", "expose", "no_such", "bare", check=False).returncode == 1
