"""mcpbox_guide through the whole suite: what it returns is docs/TOOLS.md, and a
model that follows it gets what it says. (probes/test_guide.py asks the runner
alone, and compares the page's numbers.)"""
import json
import os
import re

import pytest

from harness.clients import flow
from harness.clients.mcp import text
from harness.instance import SRC

with open(os.path.join(SRC, "docs", "TOOLS.md"), encoding="utf-8") as _f:
    PAGE = _f.read()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
PYTHON = [code for kind, code in BLOCKS if kind == "python"]


def test_it_is_the_page(mcp):
    assert text(mcp.call("mcpbox_guide", {})) == PAGE


@pytest.mark.parametrize("n", range(len(PYTHON)))
def test_an_example_from_draft_to_result(instance, mcp, n):
    arguments, shown = re.match(r"# example: (\{.*?\}) -> (.*)\n", PYTHON[n]).groups()
    name = flow.publish(instance, mcp, "guide", f"example{n}", PYTHON[n])
    r = mcp.call(name, json.loads(arguments)).result
    assert r["content"][0]["text"] == shown and not r.get("isError"), r


def test_the_command_from_draft_to_result(instance, mcp):
    given, _ = [json.loads(code) for kind, code in BLOCKS if kind == "json"]
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "guide")
    tool = mcp.manage("mcpbox_create_tool", server_id=server, name="command", kind="command", **given)
    mcp.manage("mcpbox_request_publish", tool_id=tool["id"])
    item = flow.pending(instance, "command")
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    r = mcp.call("guide__command", {"pattern": "-B", "text": "a\n-b\n"}).result
    assert r["structuredContent"]["stdout"] == "2:-b\n" and r["structuredContent"]["exit_code"] == 0


def test_the_declared_call_to_a_draft(mcp):
    """Its request is tests/egress's; here is no network."""
    _, given = [json.loads(code) for kind, code in BLOCKS if kind == "json"]
    server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "guide")
    tool = mcp.manage("mcpbox_create_tool", server_id=server, name="rest", kind="http", **given)
    assert tool["input_schema"]["required"] == ["id"] and "tag" in tool["input_schema"]["properties"]
    shown = mcp.manage("mcpbox_get_tool", tool_id=tool["id"])
    assert shown["requires"] == ["api.example.com:443"] and shown["secrets"] == ["API_KEY"]


def test_what_it_names_is_there(mcp):
    tools = mcp.tools()
    assert set(re.findall(r"`(mcpbox_\w+)`", PAGE)) <= set(tools)
    fields = tools["mcpbox_create_tool"]["inputSchema"]["properties"]
    for name in re.findall(r"`(\w+)`", PAGE.split("## Limits of a call")[1].split("Code has")[0]):
        assert name in fields["limits"]["properties"], name
    for name in ("input_schema", "output_schema", "secrets", "modules", "limits", "kind", "executable", "spec"):
        assert name in fields and f"`{name}`" in PAGE or name in PAGE, name


def test_the_texts_mention_what_a_tool_may_have(mcp):
    """Network, REST calls, secrets, prompts and resources: what a model is not told of it does without."""
    tools = mcp.tools()
    said = tools["mcpbox_create_tool"]["description"]
    for words in ("`requires`", "mcpbox_request_network_access", "kind http", "kind command", "`secrets`", "mcpbox_guide"):
        assert words in said, words
    said = tools["mcpbox_guide"]["description"]
    for words in ("network", "HTTP", "secrets", "prompts", "resources"):
        assert words in said and words.lower() in PAGE.lower(), words
    for other in ("mcpbox_create_prompt", "mcpbox_create_resource", "mcpbox_create_server_secret"):
        assert other in tools
