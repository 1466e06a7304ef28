"""A module from the store to an import in a call, through the whole suite."""
import os
import subprocess
import sys

from harness.clients import flow
from harness.clients.mcp import text

ADD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "contrib", "module-add")


def approve(instance, mcp, tool, name):
    mcp.manage("mcpbox_request_publish", tool_id=tool)
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def add(instance, tmp_path, name, source):
    """Into the store; its digest."""
    tree = tmp_path / name
    tree.mkdir()
    (tree / f"{name}.py").write_text(source)
    return subprocess.run([sys.executable, ADD, os.path.join(instance.state, "modules"), str(tree)],
                          check=True, capture_output=True, text=True).stdout.strip()


CODE = ("def main():\n    try:\n        import storied\n    except ImportError as e:\n"
        "        return str(e)\n    return storied.TEXT\n")


def publish(instance, mcp, name):
    """(id, exposed name) of an approved tool that imports what it may not have yet."""
    tool = flow.draft(mcp, "store", name, CODE)
    approve(instance, mcp, tool, name)
    return tool, "store__" + name


def test_granted_module_is_imported(instance, mcp, tmp_path):
    tool, name = publish(instance, mcp, "imports")
    assert "mcpbox_request_module" in text(mcp.call(name))
    digest = add(instance, tmp_path, "storied", "TEXT = 'from the store'\n")
    instance.ctl("modules", "add", "storied", "1.0", digest, "1", "100")
    instance.ctl("modules", "grant", name, "storied==1.0")
    assert mcp.manage("mcpbox_update_tool", tool_id=tool, modules=["storied"])["version"] == 2
    # the version that serves is the one without it
    assert "mcpbox_request_module" in text(mcp.call(name))
    approve(instance, mcp, tool, "imports")
    for _ in range(3):
        assert text(mcp.call(name)) == "from the store"


def test_module_imported_at_the_top(instance, mcp, tmp_path):
    """New code is inspected with the modules it will have."""
    tool, name = publish(instance, mcp, "topmost")
    code = "import roof\n\ndef main(x: roof.Kind = roof.Kind.TIN):\n    return x\n"
    said = mcp.call("mcpbox_update_tool", {"tool_id": tool, "python_code": code})
    assert said.result["isError"] and "mcpbox_request_module" in text(said)
    digest = add(instance, tmp_path, "roof", "import enum\nclass Kind(enum.Enum):\n    TIN = 'tin'\n")
    instance.ctl("modules", "add", "roof", "1", digest, "1", "100")
    instance.ctl("modules", "grant", name, "roof==1")
    made = mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=code, modules=["roof"])
    assert made["version"] == 2
    assert made["input_schema"]["properties"]["x"] == {"type": "string", "enum": ["tin"], "default": "tin"}
    # the module named before is there when the code changes again
    made = mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=code + "\n")
    assert made["version"] == 3
    approve(instance, mcp, tool, "topmost")
    assert text(mcp.call(name)) == "tin"


def test_module_that_left_the_store(instance, mcp):
    """The call fails with its digest named; its neighbours don't."""
    tool, name = publish(instance, mcp, "bereft")
    digest = "ee" * 32
    instance.ctl("modules", "add", "gone", "1.0", digest, "1", "100")
    instance.ctl("modules", "grant", name, "gone==1.0")
    mcp.manage("mcpbox_update_tool", tool_id=tool, modules=["gone"])
    approve(instance, mcp, tool, "bereft")
    other = flow.publish(instance, mcp, "store", "neighbour", "def main(): return 'well'\n")
    for _ in range(3):
        reply = mcp.call(name)
        assert reply.error["data"]["failure_mode"] == "sandbox_unavailable", reply
        assert digest in reply.error["message"]
        assert text(mcp.call(other)) == "well"
