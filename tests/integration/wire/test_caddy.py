"""The tunnel behind a real Caddy, with the example of contrib/caddy, then with the file of `remote add`: who gets through, that events are not held back, that
fields and statuses arrive as they are, and that its logs have no credential."""
import json
import os
import shutil
import socket

import pytest

from harness.clients import flow
from harness.clients.api_token import Token
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request, text
from harness.clients.sse import Stream
from harness.net.caddy import Caddy
from harness.patience import patience, until

TELLS = """import mcpbox, time
def main(n: int = 5, stay: float = 0) -> str:
    for i in range(n):
        mcpbox.progress(i, n, str(i))
    time.sleep(stay)
    return "told"
"""
ECHO = "def main(s: str = '') -> str:\n    return s\n"


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        for name, code in (("tells", TELLS), ("echo", ECHO)):
            flow.publish(instance, c, "past", name, code, limits={"timeout_ms": 600000})


@pytest.fixture(scope="module", params=["example", "remote add"])
def caddy(instance, tools, request):
    site = None
    if request.param == "remote add":
        instance.ctl("remote", "add", "token", "door", "--resource", "https://mcp.example.org/mcp", "--proxy", "caddy",
                     "--out", instance.parent)
        site = os.path.join(instance.parent, "door.caddy")
    n = Caddy(instance, site)
    try:
        yield n
    finally:
        n.close()
        shutil.rmtree(n.dir)


@pytest.fixture(scope="module")
def token(instance):
    return Token(instance, scopes="tools:call,manage")


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_both_eras(caddy, token, version):
    with Client(caddy.where, version=version, token=token.text) as c:
        assert "past__echo" in c.tools()
        assert text(c.call("past__echo", {"s": "grüße"})) == "grüße"


def test_401_and_403_arrive_whole(caddy, instance):
    r = request(caddy.where(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert r.status == 401 and r.headers["www-authenticate"] == 'Bearer realm="mcpbox"'
    reads = Token(instance, scopes="tools:read")
    with Client(caddy.where, token=reads.text) as c:
        r = c.call("past__echo")
        assert r.status == 403 and 'error="insufficient_scope"' in r.headers["www-authenticate"]


def test_nothing_else_is_reached(caddy, token):
    """The answer of Caddy is empty; one of mcpbox would have words."""
    for path in ("/health", "/", "/mcp/", "/mcp/x/y", "/mcp/X", "/mcpx", "/.well-known/oauth-protected-resource/", "/api/me",
                 "/.well-known/oauth-authorization-server"):
        r = request(caddy.where(), "GET", path, headers=token.bearer())
        assert r.status == 404 and not r.raw, path


def test_the_metadata_is_asked_of_mcpbox(caddy):
    """There is no issuer here, and the 404 is mcpbox's own: the path goes through."""
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
                 "/.well-known/oauth-protected-resource/mcp/no-such", "/mcp/no-such"):
        r = request(caddy.where(), "GET", path)
        assert r.status == 404 and r.value["error"] == "not_found", path


def test_a_long_token_and_an_assertion_arrive(caddy):
    """Caddy cuts nothing and drops nothing: mcpbox itself refuses them, each for its own reason."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    r = request(caddy.where(), body=ping, headers={"Authorization": "Bearer " + "x" * 8192})
    assert r.status == 401 and "bytes" not in r.error["message"]
    r = request(caddy.where(), body=ping, headers={"Authorization": "Bearer " + "x" * 8193})
    assert r.status == 401 and "8193 bytes" in r.error["message"]
    r = request(caddy.where(), body=ping, headers={"Authorization": "Basic x", "Cf-Access-Jwt-Assertion": "a.b.c"})
    assert r.status == 401 and "is not read at this listener" in r.error["message"]


def outcome(instance):
    """The state and outcome of the newest call of the tool that tells."""
    return instance.psql("SELECT state, outcome FROM mcpbox.executions WHERE tool = 'past__tells'"
                         " ORDER BY created_at DESC LIMIT 1")[0]


def test_events_are_not_held_back_and_a_client_that_leaves_cancels(instance, caddy, token):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "past__tells", "arguments": {"n": 5, "stay": 600}, "_meta": {**meta(MODERN), "progressToken": "p"}}}
    with Stream(caddy.where(), body=body, headers={
            "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "past__tells", **token.bearer()}) as s:
        assert s.status == 200 and s.headers["content-type"].startswith("text/event-stream")
        assert [s.message("notifications/progress").json["params"]["message"] for _ in range(5)] == list("01234")
        assert outcome(instance)[0] == "open"
    until(lambda: outcome(instance) == ["closed", "killed"], say=lambda: outcome(instance))


def test_a_stream_ends_with_its_token(instance, caddy):
    t = Token(instance)
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True}, "_meta": meta(MODERN)}}
    with Stream(caddy.where(), body=body, headers={"MCP-Protocol-Version": MODERN, "Mcp-Method": body["method"],
                                                   **t.bearer()}) as s:
        s.message("notifications/subscriptions/acknowledged")
        t.revoke()
        s.rest()
        assert s.ended


def test_large_bodies(caddy, token):
    with Client(caddy.where, token=token.text) as c:
        assert len(text(c.call("past__echo", {"s": "x" * 900_000}))) == 900_000
    # mcpbox refuses more by the head alone, and its answer arrives.
    with socket.create_connection(caddy.where(), timeout=patience(10)) as s:
        s.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token.text}\r\nContent-Type: application/json\r\n"
                  f"Content-Length: {4 * 1024 * 1024 + 1}\r\n\r\n".encode())
        assert s.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_no_token_in_its_logs(caddy, token):
    until(lambda: caddy.log("access.log"))
    lines = [json.loads(line) for line in caddy.log("access.log").splitlines()]
    assert {"/mcp"} < {line["request"]["uri"] for line in lines}
    logs = caddy.log() + caddy.log("access.log")
    assert token.text not in logs and token.text[4:20] not in logs and "a.b.c" not in logs
