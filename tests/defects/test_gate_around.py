"""The approval gate attacked from beside the code: what an approved version may
use is made wider, and what stands around it (server, tool, its review, another
instance's export) is changed. See harness/clients/gate.py for how a run is seen."""
import hashlib
import os
import subprocess
import threading

import pytest

from harness.clients import flow, tasks
from harness.clients.gate import CODE, NO, Gate, failure, unique
from harness.clients.mcp import Client, text
from harness.instance import SRC
from harness.patience import patience, until

SERVER = "around"


@pytest.fixture(scope="module")
def gate(instance):
    with Client(instance.address) as c:
        c.manage("mcpbox_create_server", name=SERVER)
    return Gate(instance)


def server_of(mcp, name):
    return next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"] if s["name"] == name)


def rest_yes(rest, item, digest=None):
    return rest.request("POST", f"/api/approvals/{item['id']}/approve", {},
                        {"If-Match": f'"{digest or item["hash"]}"'})[0]


def test_what_is_not_approved(gate, mcp):
    """Draft, waiting, rejected, asked for again; and approved at last."""
    tool, name, mark = gate.draft(mcp, SERVER)
    exposed = f"{SERVER}__{name}"
    for _ in range(2):
        gate.silent(mcp, exposed, mark)
        item = gate.ask(mcp, tool)
        gate.silent(mcp, exposed, mark)
        gate.instance.ctl("approvals", "reject", item["id"], "--reason", "no")
        gate.silent(mcp, exposed, mark)
        assert gate.yes(item) == 1      # what was rejected isn't approved later
        gate.silent(mcp, exposed, mark)
    gate.approve(mcp, tool)
    gate.runs(mcp, exposed, mark)


def test_a_stopped_server(gate, mcp, rest):
    """Stopped by either road; a request that is approved meanwhile waits, too."""
    server = unique("s")
    tool, exposed, mark = gate.approved(mcp, server)
    waits, name, other = gate.draft(mcp, server)
    item = gate.ask(mcp, waits)
    sid = server_of(mcp, server)
    mcp.manage("mcpbox_stop_server", server_id=sid)
    assert gate.silent(mcp, exposed, mark) == {"stopped"}
    mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=False)
    mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=True)
    gate.silent(mcp, exposed, mark)
    assert gate.yes(item) == 0
    assert gate.silent(mcp, f"{server}__{name}", other) == {"stopped"}
    mcp.manage("mcpbox_start_server", server_id=sid)
    gate.runs(mcp, exposed, mark)
    gate.runs(mcp, f"{server}__{name}", other)
    assert rest.request("POST", f"/api/servers/{sid}/stop", {})[0] == 200
    gate.silent(mcp, exposed, mark)
    assert rest.request("POST", f"/api/servers/{sid}/start", {})[0] == 200
    gate.runs(mcp, exposed, mark)


def test_a_deleted_server(gate, mcp, rest):
    """Its tools are gone, its requests are not decided any more, and who takes up
    both names with the same bytes has a draft."""
    server = unique("s")
    _, exposed, mark = gate.approved(mcp, server)
    waits, name, other = gate.draft(mcp, server)
    item = gate.ask(mcp, waits)
    mcp.manage("mcpbox_delete_server", server_id=server_of(mcp, server))
    gate.silent(mcp, exposed, mark)
    assert gate.yes(item) == 1 and rest_yes(rest, item) in (404, 409)
    gate.silent(mcp, f"{server}__{name}", other)
    heir = flow.draft(mcp, server, exposed.partition("__")[2], CODE.format(mark))
    gate.silent(mcp, exposed, mark)
    mcp.manage("mcpbox_request_publish", tool_id=heir)
    gate.silent(mcp, exposed, mark)
    assert gate.yes(flow.pending(gate.instance, exposed.partition("__")[2])) == 0
    gate.runs(mcp, exposed, mark)


def test_a_disabled_and_a_deleted_tool(gate, mcp, rest):
    tool, exposed, mark = gate.approved(mcp, SERVER)
    for off, on in ((lambda: mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=False),
                     lambda: mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=True)),
                    (lambda: rest.request("POST", f"/api/tools/{tool}/disable", {}),
                     lambda: rest.request("POST", f"/api/tools/{tool}/enable", {}))):
        off()
        gate.silent(mcp, exposed, mark)
        sid = server_of(mcp, SERVER)
        mcp.manage("mcpbox_stop_server", server_id=sid)     # starting enables nothing
        mcp.manage("mcpbox_start_server", server_id=sid)
        gate.silent(mcp, exposed, mark)
        on()
        gate.runs(mcp, exposed, mark)
    # a version that is approved while the tool is disabled doesn't enable it
    second, code = gate.code()
    mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=code)
    mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=False)
    gate.approve(mcp, tool)
    gate.silent(mcp, exposed, mark, second)
    mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=True)
    gate.runs(mcp, exposed, second)
    third, code = gate.code()
    mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=code)
    item = gate.ask(mcp, tool)
    mcp.manage("mcpbox_delete_tool", tool_id=tool)
    gate.silent(mcp, exposed, mark, second, third)
    assert gate.yes(item) == 1 and rest_yes(rest, item) in (404, 409)
    gate.silent(mcp, exposed, mark, second, third)
    with pytest.raises(RuntimeError):   # nor does its row come back
        gate.instance.psql(f"UPDATE mcpbox.tools SET deleted_at = NULL WHERE id = '{tool}'")


def test_an_imported_tool(gate, mcp, tmp_path):
    """Approved where it was exported, with the seal and all: here it is a draft."""
    server = unique("s")
    _, exposed, mark = gate.approved(mcp, server)
    path = tmp_path / "export"
    path.write_text(gate.instance.ctl("export", server).stdout, encoding="utf-8")
    gate.instance.ctl("import", str(path))
    name = exposed.partition("__")[2]
    copy = f"{server}_imported__{name}"
    gate.silent(mcp, copy, mark)
    sid = server_of(mcp, server + "_imported")
    mcp.manage("mcpbox_stop_server", server_id=sid)
    mcp.manage("mcpbox_start_server", server_id=sid)
    gate.silent(mcp, copy, mark)
    # into the place of what it was: the original deleted, its bytes imported
    mcp.manage("mcpbox_delete_server", server_id=server_of(mcp, server))
    gate.instance.ctl("import", str(path))
    gate.silent(mcp, exposed, mark)
    tool = next(t["id"] for t in mcp.manage("mcpbox_list_tools", server_id=sid)["tools"])
    gate.approve(mcp, tool)
    gate.runs(mcp, copy, mark)
    gate.silent(mcp, exposed, mark)


def test_what_runs_ends_with_its_approval(gate, instance, mcp):
    """Revoked, disabled or stopped under a call: the call ends, with no result."""
    server, mark = unique("s"), gate.code()[0]
    name = unique("long")
    tool = flow.draft(mcp, server, name, "import time\ndef main(s: float = 0):\n    time.sleep(s)\n"
                      f"    print('{mark}')\n    return '{mark}'\n", limits={"timeout_ms": 600000})
    gate.approve(mcp, tool)
    exposed, sid = f"{server}__{name}", server_of(mcp, server)
    gate.runs(mcp, exposed, mark)
    for end, again in (
            (lambda: mcp.manage("mcpbox_stop_server", server_id=sid),
             lambda: mcp.manage("mcpbox_start_server", server_id=sid)),
            (lambda: mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=False),
             lambda: mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=True)),
            (lambda: instance.ctl("call", "tool_revoke", tool, "reason=now"), lambda: None)):
        got = {}

        def call():
            with Client(instance.address) as c:
                got["reply"] = c.call(exposed, {"s": 599})

        t = threading.Thread(target=call)
        t.start()
        until(lambda: instance.psql(f"SELECT 1 FROM mcpbox.executions WHERE tool = '{exposed}' AND state = 'open'"),
              15, 0.05)
        end()
        t.join(patience(15))
        assert not t.is_alive() and mark.encode() not in got["reply"].raw
        assert failure(got["reply"]) in ("stopped", "revoked"), got["reply"]
        again()
    gate.silent(mcp, exposed, mark)


def test_prompts_and_resources(gate, mcp):
    """What runs no code passes the same gate: texts that nobody approved are not read."""
    server, words = unique("s"), [unique("TEXT") for _ in range(4)]
    sid, uri = mcp.manage("mcpbox_create_server", name=server)["id"], f"gate://{server}"
    prompt = mcp.manage("mcpbox_create_prompt", server_id=sid, name="p", description="d", text=words[0])["id"]
    note = mcp.manage("mcpbox_create_resource", server_id=sid, name="r", uri=uri, text=words[1])["id"]

    def seen():
        """Which of the texts anybody is told."""
        got = [mcp.request("prompts/get", {"name": f"{server}__p"}), mcp.request("resources/read", {"uri": uri}),
               mcp.request("prompts/list"), mcp.request("resources/list"),
               mcp.request("completion/complete", {"ref": {"type": "ref/prompt", "name": f"{server}__p"},
                                                   "argument": {"name": "x", "value": ""}})]
        assert all(r.error is None or failure(r) for r in got)
        return {w for w in words for r in got if w.encode() in r.raw}

    assert seen() == set()
    items = [gate.ask(mcp, i) for i in (prompt, note)]
    assert seen() == set()
    assert gate.yes(items[0], items[1]["hash"]) == 1 and seen() == set()
    assert [gate.yes(i) for i in items] == [0, 0]
    assert seen() == set(words[:2])
    mcp.manage("mcpbox_update_prompt", prompt_id=prompt, text=words[2])
    mcp.manage("mcpbox_update_resource", resource_id=note, text=words[3])
    assert seen() == set(words[:2])
    later = [gate.ask(mcp, i) for i in (prompt, note)]
    assert seen() == set(words[:2])
    mcp.manage("mcpbox_stop_server", server_id=sid)
    assert seen() == set()
    mcp.manage("mcpbox_start_server", server_id=sid)
    mcp.manage("mcpbox_update_resource", resource_id=note, enabled=False)
    assert seen() == {words[0]}
    mcp.manage("mcpbox_update_resource", resource_id=note, enabled=True)
    gate.instance.ctl("call", "tool_revoke", prompt, "reason=of the test")
    assert seen() == {words[1]}
    assert [gate.yes(i) for i in later] == [0, 0]
    assert seen() == set(words[2:])
    mcp.manage("mcpbox_delete_server", server_id=sid)
    assert seen() == set()


def test_no_task_around_it(gate, instance, mcp):
    """A call that is to run later is asked what a call is asked, now and then."""
    server = unique("s")
    tool, name, mark = gate.draft(mcp, server, task="optional")
    exposed = f"{server}__{name}"
    with tasks.Tasks(instance.address) as c:
        def refused():
            for params in ({"name": exposed, "arguments": {}},
                           {"name": "mcpbox_call_tool", "arguments": {"name": exposed, "arguments": {}}}):
                r = c.ask("tools/call", params)
                assert failure(r) in NO and b"taskId" not in r.raw, r

        refused()
        item = gate.ask(mcp, tool)
        refused()
        assert gate.yes(item) == 0
        made = c.ask("tools/call", {"name": exposed, "arguments": {}}).result
        assert made["resultType"] == "task", made
        end = c.until(made["taskId"])
        assert end["status"] == "completed" and mark in str(end)
        gate.meant[mark] += 1
        mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=False)
        refused()
        mcp.manage("mcpbox_update_tool", tool_id=tool, enabled=True)
        gate.instance.ctl("call", "tool_revoke", tool, "reason=of the test")
        refused()


def test_a_wider_host(gate, mcp, rest):
    """A grant opens what the approved content names; more of either alone opens nothing."""
    tool, name, mark = gate.draft(mcp, SERVER, requires=["api.gate.example.org:443"])
    exposed = f"{SERVER}__{name}"
    gate.approve(mcp, tool)
    # it is listed: who calls it is told what to ask for
    assert gate.silent(mcp, exposed, mark, listed=True) == {"missing_grant"}

    def wish(host, port):
        return gate.instance.ctl_json("approvals", "show", mcp.manage(
            "mcpbox_request_network_access", tool_id=tool, host=host, port=port, justification="x")["request_id"])

    for host, port in (("other.gate.example.org", 443), ("api.gate.example.org", 80), ("gate.example.org", 443)):
        assert gate.yes(wish(host, port)) == 0
        assert failure(mcp.call(exposed)) == "missing_grant", (host, port)
    narrow = wish("api.gate.example.org", 443)
    # the yes to one host is not one to a wider one
    wide = wish("*.gate.example.org", 443)
    assert gate.yes(wide, narrow["hash"]) == 1 and rest_yes(rest, wide, narrow["hash"]) == 412
    assert failure(mcp.call(exposed)) == "missing_grant"
    assert gate.yes(narrow) == 0
    gate.runs(mcp, exposed, mark)
    # the version that names more: a draft, and nothing for the one that serves
    mcp.manage("mcpbox_update_tool", tool_id=tool, requires=["api.gate.example.org:443", "*.gate.example.org"])
    gate.runs(mcp, exposed, mark)
    for change in ("host = '*.example.org'", "port = 0", "revoked_at = NULL"):
        with pytest.raises(RuntimeError, match="permission denied"):
            gate.instance.psql(f"UPDATE mcpbox.network_grants SET {change} WHERE request_id = '{narrow['id']}'",
                               role="mcpbox_app")
    gate.instance.ctl("call", "approval_revoke", narrow["id"], "reason=no more")
    assert failure(mcp.call(exposed)) == "missing_grant"


@pytest.fixture(scope="module")
def store(instance, tmp_path_factory):
    """Two modules `gatepkg` in the store: (digests of 1.0 and 2.0)"""
    out = []
    for version in ("one", "two"):
        d = tmp_path_factory.mktemp(version)
        (d / "gatepkg").mkdir()
        (d / "gatepkg" / "__init__.py").write_text(f"SAYS = '{version}'\n")
        out.append(subprocess.run([os.path.join(SRC, "contrib/module-add"), os.path.join(instance.state, "modules"),
                                   str(d)], capture_output=True, text=True, check=True).stdout.strip())
    return out


def test_another_module_version(gate, mcp, store):
    """The digest is in the approved bytes: another version of the module,
    recorded and granted, doesn't get under it."""
    ctl = gate.instance.ctl
    tool, name, _ = gate.draft(mcp, SERVER)
    exposed = f"{SERVER}__{name}"
    ctl("modules", "add", "gatepkg", "1.0", store[0])
    ctl("modules", "grant", exposed, "gatepkg==1.0")
    mcp.manage("mcpbox_update_tool", tool_id=tool, modules=["gatepkg==1.0"],
               python_code="import gatepkg\ndef main():\n    return gatepkg.SAYS\n")
    gate.approve(mcp, tool)
    assert text(mcp.call(exposed)) == "one"
    # the same name and version with other bytes is refused where it is recorded
    assert ctl("modules", "add", "gatepkg", "1.0", store[1], check=False).returncode == 1
    ctl("modules", "add", "gatepkg", "2.0", store[1])
    ctl("modules", "grant", exposed, "gatepkg==2.0")
    assert text(mcp.call(exposed)) == "one"
    mcp.manage("mcpbox_update_tool", tool_id=tool, modules=["gatepkg==2.0"])
    item = gate.ask(mcp, tool)
    assert store[1] in str(item["content"]) and text(mcp.call(exposed)) == "one"
    ctl("modules", "revoke", exposed, "gatepkg==1.0")
    assert failure(mcp.call(exposed)) == "missing_grant"    # 2.0 doesn't stand in
    assert gate.yes(item) == 0
    assert text(mcp.call(exposed)) == "two"


def test_another_executable(gate, mcp):
    """A command's path and the digest of the program are in the approved bytes."""
    server_id = server_of(mcp, SERVER)
    name, lines = unique("cmd"), "one\ntwo\nthree\n"
    made = mcp.manage("mcpbox_create_tool", server_id=server_id, name=name, kind="command", description="Lines.",
                      executable="/usr/bin/head", spec={"argv": ["-n", "1"], "stdin": "{text}"})
    exposed = f"{SERVER}__{name}"
    assert failure(mcp.call(exposed, {"text": lines})) == "not_approved"
    shown = gate.ask(mcp, made["id"])
    with open("/usr/bin/head", "rb") as f:
        assert shown["content"]["executable_digest"] == hashlib.sha256(f.read()).hexdigest()
    mcp.manage("mcpbox_update_tool", tool_id=made["id"], executable="/usr/bin/tail")
    waits = gate.ask(mcp, made["id"])
    assert gate.yes(shown) == 1 and gate.yes(waits, shown["hash"]) == 1
    assert failure(mcp.call(exposed, {"text": lines})) == "not_approved"
    mcp.manage("mcpbox_update_tool", tool_id=made["id"], executable="/usr/bin/head")
    gate.approve(mcp, made["id"])
    said = text(mcp.call(exposed, {"text": lines}))
    assert "one" in said and "three" not in said
    for change in ({"executable": "/usr/bin/tail"}, {"spec": {"argv": ["-n", "2"], "stdin": "{text}"}}):
        mcp.manage("mcpbox_update_tool", tool_id=made["id"], **change)
        gate.ask(mcp, made["id"])
        assert text(mcp.call(exposed, {"text": lines})) == said


def test_a_wider_limit(gate, mcp):
    """An approved time is what it ends by, whatever a draft behind it asks for."""
    name = unique("slow")
    mark, _ = gate.code()
    tool = flow.draft(mcp, SERVER, name, f"import time\ndef main(s: float = 0):\n    time.sleep(s)\n    print('{mark}')\n"
                      f"    return '{mark}'\n", limits={"timeout_ms": 2000})
    gate.approve(mcp, tool)
    exposed = f"{SERVER}__{name}"
    gate.runs(mcp, exposed, mark)
    mcp.manage("mcpbox_update_tool", tool_id=tool, limits={"timeout_ms": 60000})
    item = gate.ask(mcp, tool)
    assert failure(mcp.call(exposed, {"s": 3})) == "timeout"
    assert gate.records(mark) == gate.meant[mark]
    assert gate.yes(item) == 0
    assert text(mcp.call(exposed, {"s": 3})) == mark
    gate.meant[mark] += 1


def test_nothing_else_ran(gate):
    gate.balance()
