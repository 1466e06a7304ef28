"""One secret through the whole suite: set by root, encrypted by the vault,
reaching only the runner of a tool whose approved version names it."""
import hashlib
import secrets as random

import pytest

from harness.clients import flow

CANARY = "CANARY" + random.token_hex(16)
SHOW = """import hashlib
def main() -> str:
    known = {k: hashlib.sha256(v.encode()).hexdigest() for k, v in dict(secrets).items()}
    return str(sorted(known.items()))
"""
LEAK = """def main() -> str:
    print(secrets["TOKEN"])
    return "it is " + secrets["TOKEN"]
"""


def publish(instance, mcp, server, tool, code, names):
    known = {s["name"]: s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"]}
    server_id = known.get(server) or mcp.manage("mcpbox_create_server", name=server,
                                                description="Of the tests.")["id"]
    tool_id = mcp.manage("mcpbox_create_tool", server_id=server_id, name=tool, description="d",
                         python_code=code, secrets=names)["id"]
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    item = flow.pending(instance, tool)
    assert item["content"].get("secrets", []) == names
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    return f"{server}__{tool}"


def call(mcp, name):
    answer = mcp.call(name, {})
    return answer.result, answer.raw


@pytest.fixture
def token(instance, mcp):
    known = [s["name"] for s in mcp.manage("mcpbox_list_servers")["servers"]]
    for server in ("vaulted", "other"):
        if server not in known:
            mcp.manage("mcpbox_create_server", name=server, description="Of the tests.")
    instance.ctl("secret", "set", "vaulted", "TOKEN", stdin=CANARY)
    return hashlib.sha256(CANARY.encode()).hexdigest()


def test_it_reaches_the_tool_that_names_it(instance, mcp, token):
    name = publish(instance, mcp, "vaulted", "with_it", SHOW, ["TOKEN"])
    result, _ = call(mcp, name)
    assert result["isError"] is False and token in result["content"][0]["text"]
    # Set anew, the next call has the new one.
    instance.ctl("secret", "set", "vaulted", "TOKEN", stdin="another value")
    result, _ = call(mcp, name)
    assert hashlib.sha256(b"another value").hexdigest() in result["content"][0]["text"]


def test_and_no_other(instance, mcp, token):
    without = publish(instance, mcp, "vaulted", "without_it", SHOW, [])
    assert call(mcp, without)[0]["content"][0]["text"] == "[]"
    other = publish(instance, mcp, "other", "of_another_server", SHOW, ["TOKEN"])
    result, body = call(mcp, other)
    assert result["isError"] is True and token.encode() not in body
    assert result["_meta"]["mcpbox/failure"]["failure_mode"] == "missing_grant"


def test_its_value_is_seen_nowhere_else(instance, mcp, token):
    name = publish(instance, mcp, "vaulted", "leaky", LEAK, ["TOKEN"])
    result, body = call(mcp, name)
    assert result["isError"] is False and CANARY.encode() not in body
    rows = instance.psql("SELECT encode(value, 'hex') FROM mcpbox.server_secrets")
    assert rows and not any(CANARY.encode().hex() in r[0] for r in rows)
    kept = instance.psql("SELECT e.*::text FROM mcpbox.executions e")
    assert kept and not any(CANARY in "".join(r) for r in kept)
    assert CANARY not in instance.logs(lines=2000)
    for what in ("servers", "tools", "executions", "audit", "status"):
        assert CANARY not in instance.ctl(what, "--json").stdout
