"""Grants through a whole instance: asked for, approved, used, withdrawn while a
call runs; what the call did with them, wherever records are shown."""
import json
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.egress import Canary
from integration.admin.test_records import export, metrics

WEB, OTHER = "93.184.216.34", "142.250.185.14"
SERVER = "grants"
#: Tries each 100 ms until what became of it has changed so often, and so many times
#: more; says what became of each try. After the first that failed it connects to
#: `tell`, if it was given that.
TRIES = """
import socket, time
def main(host: str, port: int = 80, changes: int = 0, more: int = 0, tell: str = "") -> list:
    out = []
    while True:
        try:
            socket.create_connection((host, port), 60).close()
            out.append("ok")
        except OSError as e:
            out.append("no")
            if tell:
                socket.create_connection((tell, 80), 60).close()
                tell = ""
        if sum(a != b for a, b in zip(out, out[1:])) >= changes:
            if more == 0:
                return out
            more -= 1
        time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def world(instance, ns, dns):
    dns.zone["api.example.org"] = d.Answer(a=[WEB])
    dns.zone["other.example.org"] = d.Answer(a=[OTHER])
    canaries = [Canary(ns, a, p) for a, p in ((WEB, 80), (WEB, 8443), (OTHER, 80))]
    for c in canaries:
        c.prove()
    yield dict(zip(("web", "high", "other"), canaries))
    for c in canaries:
        c.close()


def approve(instance, request):
    shown = instance.ctl_json("approvals", "show", request)
    instance.ctl("approvals", "approve", request, "--hash", shown["hash"])


def ask(instance, mcp, tool, host, **more):
    said = mcp.manage("mcpbox_request_network_access", tool_id=tool, host=host, justification="x", **more)
    approve(instance, said["request_id"])
    return said["request_id"]


def revoke(rest, request):
    assert rest.request("POST", f"/api/approvals/{request}/revoke", {"reason": "x"})[0] == 200


def tool(instance, mcp, *requires, server=None):
    server, name = server or SERVER + uuid.uuid4().hex[:6], "t" + uuid.uuid4().hex[:8]
    exposed = flow.publish(instance, mcp, server, name, TRIES, requires=list(requires))
    tools = mcp.manage("mcpbox_list_tools", server_id=next(
        s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == server))["tools"]
    return exposed, next(t["id"] for t in tools if t["name"] == name)


def tries(client, exposed, **arguments):
    result = client.call(exposed, arguments).result
    assert not result.get("isError"), result
    return json.loads(result["content"][0]["text"])


def test_from_wish_to_record(instance, mcp, rest, world):
    exposed, tool_id = tool(instance, mcp, "api.example.org", "other.example.org:80")
    said = mcp.manage("mcpbox_request_network_access", tool_id=tool_id, host="api.example.org:8443", justification="x")
    assert said["declared"] is True and said["requires"] == "api.example.org:8443"
    said = mcp.manage("mcpbox_request_network_access", tool_id=tool_id, host="else.example.org", justification="x")
    assert said["declared"] is False and '"else.example.org"' in said["next_step"]
    assert "mcpbox_update_tool" in said["next_step"]
    ask(instance, mcp, tool_id, "api.example.org")
    failed = mcp.call(exposed, {"host": "api.example.org"}).result      # the other need is not met
    assert failed["isError"] and "other.example.org:80" in failed["content"][0]["text"]
    ask(instance, mcp, tool_id, "other.example.org")
    before = metrics(rest.get("/metrics")[2])
    assert tries(mcp, exposed, host="api.example.org") == ["ok"]
    # 80 and 443 are what a grant without a port opens
    assert tries(mcp, exposed, host="api.example.org", port=8443) == ["no"]

    ended = records(rest, exposed, 2)
    assert {(c["host"], c["address"], c["port"]) for e in ended for c in e["network"]} == {
        ("api.example.org", WEB, 80), ("api.example.org", "", 8443)}
    logs = mcp.manage("mcpbox_get_tool_logs", tool_id=tool_id)["logs"]
    assert any(c["address"] == WEB and c["port"] == 80 for log in logs for c in log["network"])
    lines = [x for x in export(rest, f"?tool={exposed}&kind=tool") if x["outcome"] == "done" and x["network"]]
    assert len(lines) == 2 and all(x["network"][0]["host"] == "api.example.org" for x in lines)
    assert "api.example.org" in instance.ctl("query", "execution", ended[0]["id"]).stdout
    now = metrics(rest.get("/metrics")[2])
    assert now["mcpbox_call_connections_total"] >= before["mcpbox_call_connections_total"] + 1
    assert now["mcpbox_call_connections_refused_total"] >= before["mcpbox_call_connections_refused_total"] + 1


def records(rest, exposed, n):
    """Those of this tool that say where they connected, once there are n."""
    def look():
        found = [rest.get("/api/executions/" + e["id"])[2]
                 for e in rest.get(f"/api/executions?tool={exposed}&outcome=done")[2]["items"]]
        found = [e for e in found if e["network"]]
        return found if len(found) >= n else None
    return until(look)


def in_time(instance, exposed):
    """Calls of this tool may last as long as the test needs them to."""
    instance.ctl("servers", "limits", exposed.split("__")[0], "timeout_ms=600000")


def test_a_withdrawal_holds_for_the_next_connect_of_a_running_call(instance, mcp, rest, world):
    exposed, tool_id = tool(instance, mcp, "api.example.org", "other.example.org")
    request = ask(instance, mcp, tool_id, "api.example.org")
    ask(instance, mcp, tool_id, "other.example.org")
    in_time(instance, exposed)
    out = []
    world["web"].reached(), world["other"].reached()
    with Client(instance.address, timeout=patience(60)) as c:
        t = threading.Thread(target=lambda: out.extend(tries(
            c, exposed, host="api.example.org", changes=2, tell="other.example.org")))
        t.start()
        until(world["web"].reached)
        revoke(rest, request)
        until(world["other"].reached)
        ask(instance, mcp, tool_id, "api.example.org")
        t.join(patience(60))
    runs = [k for i, k in enumerate(out) if i == 0 or out[i - 1] != k]
    assert runs == ["ok", "no", "ok"], out


def test_once_told_nothing_connects(instance, mcp, rest, world):
    """No connection begins behind the answer to who revoked."""
    exposed, tool_id = tool(instance, mcp, "api.example.org")
    request = ask(instance, mcp, tool_id, "api.example.org")
    out = []
    in_time(instance, exposed)
    world["web"].reached()
    with Client(instance.address, timeout=patience(60)) as c:
        t = threading.Thread(target=lambda: out.extend(tries(c, exposed, host="api.example.org", changes=1, more=10)))
        t.start()
        until(world["web"].reached)
        revoke(rest, request)
        world["web"].reached()
        t.join(patience(60))
    # one may have been made and not yet been counted
    assert "ok" in out and out[-11:] == ["no"] * 11 and world["web"].reached() <= 1, out


def test_every_public_host(instance, mcp, rest, world):
    """network_access_policy allow_all_public, and back."""
    exposed, tool_id = tool(instance, mcp, "*")
    server = next(s["id"] for s in rest.get("/api/servers?limit=200")[2]["items"] if s["name"] == exposed.split("__")[0])
    assert mcp.call(exposed, {"host": "api.example.org"}).result["isError"]

    def policy(p):
        code, _, said = rest.request("POST", f"/api/servers/{server}/network-policy", {"policy": p})
        assert code == 200, said
        return said
    approve(instance, policy("allow_all_public")["pending_request"])
    assert policy("allow_all_public")["network_access_policy"] == "allow_all_public"
    for host in ("api.example.org", "other.example.org", WEB):
        assert tries(mcp, exposed, host=host) == ["ok"], host
    for host, port in (("127.0.0.1", 80), ("api.example.org", 8443), ("10.0.0.1", 80), ("169.254.169.254", 80)):
        assert tries(mcp, exposed, host=host, port=port) == ["no"], host
    assert policy("require_approval")["network_access_policy"] == "require_approval"
    assert mcp.call(exposed, {"host": "api.example.org"}).result["isError"]


def test_who_declares_nothing_reaches_nothing(instance, mcp, world):
    server = SERVER + uuid.uuid4().hex[:6]
    exposed, tool_id = tool(instance, mcp, server=server)
    ask(instance, mcp, tool_id, "*")
    assert tries(mcp, exposed, host="api.example.org") == ["no"]


def test_limits_of_a_server(instance, mcp, rest, world):
    """connections as an administrator set it for the server, else the version's."""
    exposed, tool_id = tool(instance, mcp, "api.example.org")
    ask(instance, mcp, tool_id, "api.example.org")
    instance.ctl("servers", "limits", exposed.split("__")[0], "connections=3")
    out = tries(mcp, exposed, host="api.example.org", more=6)
    assert out[:3] == ["ok"] * 3 and len(out) > 4 and set(out[3:]) == {"no"}, out
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, limits={"connections": 5, "network_bytes": 4096, "network_rate": 4096})
    status = mcp.manage("mcpbox_get_tool", tool_id=tool_id)
    assert status["limits"] == {"connections": 5, "network_bytes": 4096, "network_rate": 4096}
