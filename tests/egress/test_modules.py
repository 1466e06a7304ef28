"""Modules from an index to an import in a call, through the whole suite: asked
for, fetched by an installer that reaches the index alone, stored, shown,
approved, imported. The index is on the loopback and not always honest."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time

import pytest

from harness import wheels
from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.egress import Canary

INDEX, OTHER = "93.184.216.34", "142.250.185.14"
INSTANCE_SETS = ("sandboxd:module_index=http://index.example/simple/",
                 "sandboxd:module_advisories=http://osv.example",
                 "sandboxd-store:module_bytes=8M", "sandboxd-store:module_files=300")


@pytest.fixture(scope="module")
def index(inside, dns):
    dns.zone["index.example"] = dns.zone["osv.example"] = d.Answer(a=[INDEX])
    dns.zone["other.example"] = d.Answer(a=[OTHER])
    with wheels.Index(INDEX, 80) as i:
        yield i


@pytest.fixture(scope="module")
def mcp(instance, index):
    with Client(instance.address) as c:
        yield c


@pytest.fixture(autouse=True)
def honest(index):
    index.bodies.clear()
    index.slow = 0


TRY = ("def main(module: str, attribute: str = 'NAME'):\n    import importlib\n    try:\n"
       "        value = getattr(importlib.import_module(module), attribute)\n"
       "    except ImportError as e:\n        return str(e)\n"
       "    return value() if callable(value) else value\n")


def tool(instance, mcp, name, **more):
    return flow.draft(mcp, "wheels", name, TRY, **more), "wheels__" + name


def approve(instance, item):
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def publish(instance, mcp, tool_id, name):
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    approve(instance, flow.pending(instance, name))


def ask(mcp, tool_id, module):
    return mcp.manage("mcpbox_request_module", tool_id=tool_id, module_name=module,
                      justification="the tests need it")


def items(instance, tool_id, state="pending"):
    return [i for i in instance.ctl_json("approvals", "list", "--kind", "module", "--state", state)["items"]
            if i["tool_id"] == tool_id]


def show(instance, tool_id, module):
    """What a reviewer is shown of the request that stands now."""
    for i in items(instance, tool_id):
        if i["module"] == module:
            return instance.ctl_json("approvals", "show", i["id"])
    return None


def settled(instance, tool_id, module, state="done", timeout=25):
    """The request once its installation came to this."""
    def come():
        item = show(instance, tool_id, module)
        # not the one that was listed before its installation put another in its place
        there = item is not None and item["state"] == "pending" and (item.get("install") or {}).get("state") == state
        return item if there else None
    return until(come, timeout, 0.1,
                 say=lambda: (json.dumps(show(instance, tool_id, module))[:3000], index_log(instance)))


def index_log(instance):
    return instance.logs()[-6000:]


def entries(instance):
    return sorted(n for n in os.listdir(os.path.join(instance.state, "modules")) if not n.startswith("."))


def installed(instance, mcp, name, module, version=None):
    """A published tool that has it: (tool id, exposed name)."""
    tool_id, exposed = tool(instance, mcp, name)
    publish(instance, mcp, tool_id, name)
    ask(mcp, tool_id, module if version is None else f"{module}=={version}")
    approve(instance, settled(instance, tool_id, module))
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, modules=[module])
    publish(instance, mcp, tool_id, name)
    return tool_id, exposed


def test_from_the_index_to_an_import(instance, mcp, index):
    name, data = wheels.wheel("sunny", "1.2", {"sunny/__init__.py": b"NAME = 'from a wheel'\n"})
    index.add((name, data))
    index.vulns["sunny", "1.2"] = [{"id": "OSV-2026-7", "summary": "it shines too much"}]
    tool_id, exposed = tool(instance, mcp, "imports")
    publish(instance, mcp, tool_id, "imports")
    assert "mcpbox_request_module" in text(mcp.call(exposed, {"module": "sunny"}))
    before = entries(instance)
    said = ask(mcp, tool_id, "Sunny")
    assert said["status"] == "pending", said
    item = settled(instance, tool_id, "sunny")
    # what a reviewer sees
    assert item["content"]["version"] == "1.2" and item["content"]["recorded"]
    new, = set(entries(instance)) - set(before)
    assert item["content"]["digest"] == new
    assert item["content"]["files"] == 4 and item["content"]["size"] > 0
    wheel = item["wheel"]
    assert wheel["filename"] == name and wheel["sha256"] == hashlib.sha256(data).hexdigest()
    assert wheel["bytes"] == len(data) and wheel["license"] == "ISC"
    assert [v["id"] for v in wheel["advisories"]["known"]] == ["OSV-2026-7"]
    # it is in the store, and runs for nobody
    assert "mcpbox_request_module" in text(mcp.call(exposed, {"module": "sunny"}))
    assert mcp.call("mcpbox_update_tool", {"tool_id": tool_id, "modules": ["sunny"]}).result["isError"]
    approve(instance, item)
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, modules=["sunny"])
    publish(instance, mcp, tool_id, "imports")
    assert text(mcp.call(exposed, {"module": "sunny"})) == "from a wheel"
    # its record says where the installer went
    run = instance.ctl_json("executions", wheel["execution"])
    assert run["kind"] == "inspect" and run["principal"] == "installer"
    network = run["network"]
    assert {(c["host"], c["port"], c["verdict"]) for c in network} == {
        ("index.example", 80, "allowed"), ("osv.example", 80, "allowed")} or {
        c["host"] for c in network} == {"index.example", "osv.example"}, network
    # a second tool: nothing is fetched again
    seen = len(index.seen)
    other, _ = tool(instance, mcp, "imports_too")
    ask(mcp, other, "sunny")
    assert show(instance, other, "sunny")["content"]["digest"] == new
    time.sleep(1.5)
    assert len(index.seen) == seen


SOURCE = r"""
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL}};
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, .m_name = "swift", .m_methods = methods};
PyMODINIT_FUNC PyInit_swift(void) { return PyModule_Create(&def); }
"""


def test_a_compiled_extension(instance, mcp, index, tmp_path):
    (tmp_path / "swift.c").write_text(SOURCE)
    so = tmp_path / ("swift" + sysconfig.get_config_var("EXT_SUFFIX"))
    subprocess.run(["cc", "-shared", "-fPIC", "-I", sysconfig.get_path("include"), "-o", str(so),
                    str(tmp_path / "swift.c")], check=True)
    me = f"cp3{sys.version_info[1]}"
    tag = f"{me}-{me}-linux_{os.uname().machine}"
    index.add(wheels.wheel("swift", "1.0", {so.name: so.read_bytes()}, tag=tag))
    index.add(wheels.wheel("swift", "1.0", {"swift.py": b"def answer(): return 'slow'\n"}))
    index.add(wheels.wheel("swift", "1.0", {"swift.py": b""}, tag="cp36-cp36m-win_amd64"))
    _, exposed = installed(instance, mcp, "compiled", "swift")
    assert text(mcp.call(exposed, {"module": "swift", "attribute": "answer"})) == "42"


def bomb():
    return wheels.wheel("hostile", "1.0", {"hostile/zeros": bytes(60 << 20)})


#: What of a wheel cannot be wrong without ending its installation, with a part
#: of the sentence that says why.
REFUSED = {
    "wrong hash": (wheels.wheel("hostile"), {"sha256": "ab" * 32}, "SHA-256"),
    "bomb": (bomb(), {}, "bytes, unpacked"),
    "many": (wheels.wheel("hostile", "1.0", {f"hostile/{i}": b"" for i in range(400)}), {},
             "300 files"),
    "up": (wheels.wheel("hostile", extra=[("../../evil.py", b"1")]), {}, "name"),
    "link": (wheels.wheel("hostile", extra=[wheels.link("hostile/x", "/etc/passwd")]), {}, "link"),
    "not in RECORD": (wheels.wheel("hostile", extra=[("hostile/evil.py", b"1")]), {}, "RECORD"),
    "another package": (("hostile-1.0-py3-none-any.whl", wheels.wheel("other", "9.9")[1]), {}, "called"),
    "no compatible wheel": (wheels.wheel("hostile", tag="cp36-cp36m-win_amd64"), {}, "no wheel fits"),
    "another Python": (wheels.wheel("hostile"), {"python": "<3"}, "needs Python"),
    "no wheel": (("hostile-1.0-py3-none-any.whl", b"PK not at all"), {}, "ZIP"),
}


def test_hostile_wheels(instance, mcp, index):
    """None of them leaves anything behind, and each says why it is not there."""
    before = entries(instance)
    tools = {}
    for i, (case, (made, kw, _)) in enumerate(REFUSED.items()):
        project = f"hostile{chr(97 + i)}"
        # each under a project of its own, so that they are independent
        filename, data = made
        fresh = filename.replace("hostile", project, 1)
        index.add((fresh, data), name=project, **kw)
        tools[case], _ = tool(instance, mcp, f"hostile_{i}")
        ask(mcp, tools[case], project)
    for i, (case, (_, _, why)) in enumerate(REFUSED.items()):
        item = settled(instance, tools[case], f"hostile{chr(97 + i)}", "failed")
        error = item["install"]["error"]
        assert not item["content"]["recorded"] and item["wheel"] is None
        assert why in error or "is called" in error, (case, error)
        r = instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"], check=False)
        assert r.returncode != 0
    assert entries(instance) == before
    assert os.listdir(os.path.join(instance.state, "modules", ".incoming")) == []


def test_reaches_the_index_alone(instance, mcp, index, ns):
    """A page or a redirect that leads elsewhere: nothing is connected to."""
    canary = Canary(ns, OTHER, 80)
    try:
        name = index.add(wheels.wheel("astray", "1.0"))
        index.bodies[name] = "http://other.example/astray-1.0-py3-none-any.whl"
        index.add(wheels.wheel("away", "1.0"), url="http://other.example/away-1.0-py3-none-any.whl")
        a, _ = tool(instance, mcp, "astray")
        ask(mcp, a, "astray")
        b, _ = tool(instance, mcp, "away")
        ask(mcp, b, "away")
        for t, module in ((a, "astray"), (b, "away")):
            until(lambda t=t, module=module: "other.example" in (
                (show(instance, t, module)["install"] or {}).get("error") or ""), 20, 0.1,
                say=lambda t=t, module=module: show(instance, t, module)["install"])
        assert canary.reached() == 0
        canary.prove()
    finally:
        canary.socket.close()


def test_dependencies_are_asked_for_with_it(instance, mcp, index):
    index.add(wheels.wheel("upper", "2.0", {"upper.py": b"import lower\ndef both(): return lower.NAME + '!'\n"},
                           requires=["lower>=1,<2", "never; sys_platform == 'win32'"]))
    for v in ("1.0", "1.4", "2.0"):
        index.add(wheels.wheel("lower", v, {"lower.py": f"NAME = 'lower {v}'\n".encode()}))
    tool_id, exposed = tool(instance, mcp, "depends")
    publish(instance, mcp, tool_id, "depends")
    ask(mcp, tool_id, "upper")
    item = settled(instance, tool_id, "upper")
    assert item["wheel"]["requires"] == ["lower>=1,<2", "never; sys_platform == 'win32'"]
    below = settled(instance, tool_id, "lower")
    assert below["content"]["version"] == "1.4" and below["notes"] == "needed by upper==2.0"
    for i in (item, below):
        approve(instance, i)
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, modules=["upper", "lower"])
    publish(instance, mcp, tool_id, "depends")
    assert text(mcp.call(exposed, {"module": "upper", "attribute": "both"})) == "lower 1.4!"


def lose(instance, digest):
    """As another node, or an operator's hand, would leave it."""
    top = os.path.join(instance.state, "modules", digest)
    for path, _, _ in os.walk(top):
        os.chmod(path, 0o755)
    shutil.rmtree(top)
    instance.tool("restart", "sandboxd")
    instance.tool("wait")


def test_another_node_fetches_the_same_bytes(instance, mcp, index):
    """What is granted and not in this node's store is fetched by its SHA-256;
    other bytes under the same name are not what was approved."""
    made = wheels.wheel("steady", "1.0", {"steady.py": b"NAME = 'as approved'\n"})
    index.add(made)
    _, exposed = installed(instance, mcp, "steady", "steady")
    assert text(mcp.call(exposed, {"module": "steady"})) == "as approved"
    digest = next(m["digest"] for m in instance.ctl_json("modules")["items"] if m["name"] == "steady")
    # the index has another wheel now, and says so openly
    index.links["steady"] = []
    changed = wheels.wheel("steady", "1.0", {"steady.py": b"NAME = 'changed'\n"})
    index.add(changed)
    mark = len(index.seen)
    lose(instance, digest)
    until(lambda: "/simple/steady/" in index.seen[mark:], 20, 0.1, say=lambda: index_log(instance))
    time.sleep(1)
    assert digest not in entries(instance)
    said = mcp.call(exposed, {"module": "steady"})
    assert "be mounted from the module store" in str(said) and "changed'" not in str(said)
    # the honest one again
    index.links["steady"] = []
    index.add(made)
    instance.tool("restart", "sandboxd")
    instance.tool("wait")
    until(lambda: digest in entries(instance), 20, 0.1, say=lambda: index_log(instance))
    assert text(mcp.call(exposed, {"module": "steady"})) == "as approved"


def test_a_slow_index_keeps_nobody_waiting(instance, mcp, index):
    name, data = wheels.wheel("snail", "1.0", {"snail.bin": os.urandom(100_000)})
    index.add((name, data))
    held = threading.Event()
    index.bodies[name] = lambda: held.wait(patience(60)) and data
    tool_id, exposed = tool(instance, mcp, "snail")
    publish(instance, mcp, tool_id, "snail")
    mark = len(index.seen)
    ask(mcp, tool_id, "snail")
    until(lambda: any(s.startswith("/files/snail") for s in index.seen[mark:]), say=lambda: index_log(instance))
    assert "no_such_module_at_all" in text(mcp.call(exposed, {"module": "no_such_module_at_all"}))
    assert show(instance, tool_id, "snail")["install"]["state"] == "running"
    held.set()
    settled(instance, tool_id, "snail")


def test_an_automatic_policy(instance, mcp, index):
    """Approved when it is there; not what something is known against."""
    index.add(wheels.wheel("welcome", "1.0"))
    index.add(wheels.wheel("dubious", "1.0"))
    index.vulns["dubious", "1.0"] = [{"id": "OSV-2026-8", "summary": "tells everybody"}]
    instance.ctl("policies", "set", "tool=require", "module=automatic", "network=require", "days=1")
    try:
        tool_id, _ = tool(instance, mcp, "by_policy")
        assert ask(mcp, tool_id, "welcome")["status"] == "pending"
        ask(mcp, tool_id, "dubious")
        settled(instance, tool_id, "dubious")
        until(lambda: items(instance, tool_id, "approved"), 15, 0.1, say=lambda: index_log(instance))
        assert [i["module"] for i in items(instance, tool_id, "approved")] == ["welcome"]
        assert items(instance, tool_id, "approved")[0]["decided_by"].startswith("policy:")
        assert [i["module"] for i in items(instance, tool_id)] == ["dubious"]
        # the next tool gets it at once
        other, _ = tool(instance, mcp, "by_policy_too")
        assert ask(mcp, other, "welcome")["status"] == "approved"
        assert ask(mcp, other, "dubious")["status"] == "pending"
        time.sleep(1)
        assert [i["module"] for i in items(instance, other)] == ["dubious"]
    finally:
        instance.ctl("policies", "set", "strict")


def test_the_action_and_the_lists(instance, mcp, index):
    index.add(wheels.wheel("early", "0.1"))
    said = json.loads(instance.ctl("call", "module_install", "early", "--json").stdout)
    assert said["state"] in ("waiting", "running")
    until(lambda: any(m["name"] == "early" and m["wheel"] is not None
                  for m in instance.ctl_json("modules")["items"]), 15, 0.1, say=lambda: index_log(instance))
    assert "early==0.1" in mcp.manage("mcpbox_get_server_modules", page_size=100)["allowed_modules"]
    assert any(i["name"] == "early" and i["state"] == "done"
               for i in instance.ctl_json("modules", "installs")["items"])
