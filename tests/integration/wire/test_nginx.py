"""The tunnel behind a real nginx, with the example of contrib/nginx: who gets through, that events are not held back,
that fields and statuses arrive as they are, and where its limits are."""
import json
import os
import socket
import stat
import threading

import pytest

from harness.clients import flow
from harness.clients.api_token import Token
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request, text
from harness.clients.sse import Stream
from harness.net.nginx import Nginx
from harness.patience import until

TELLS = """import mcpbox, time
def main(n: int = 5, stay: float = 0) -> str:
    for i in range(n):
        mcpbox.progress(i, n, str(i))
        time.sleep(0.2)
    time.sleep(stay)
    return "told"
"""
ECHO = "def main(s: str = '') -> str:\n    return s\n"
ASKS = "import mcpbox\ndef main() -> str:\n    return str(mcpbox.elicit('Name?', {'name': str}).content)\n"


@pytest.fixture(scope="module")
def nginx(instance):
    with Client(instance.address) as c:
        for name, code in (("tells", TELLS), ("echo", ECHO), ("asks", ASKS)):
            flow.publish(instance, c, "via", name, code, limits={"timeout_ms": 600000})
    n = Nginx(instance)
    yield n
    n.close()


@pytest.fixture(scope="module")
def token(instance):
    return Token(instance, scopes="tools:call,manage")


@pytest.fixture(params=[MODERN, LEGACY])
def client(request, nginx, token):
    with Client(nginx.where, version=request.param, token=token.text) as c:
        yield c


def test_the_socket_is_for_its_group_alone(instance, nginx):
    """nginx gets there by a group; whoever is not in it does not, whatever its mode."""
    path = instance.run("gatewayd-tunnel")
    st = os.stat(path)
    assert stat.S_IMODE(st.st_mode) == 0o750 and st.st_gid == instance.uid("gwtunnel")
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(instance.uid("stranger"))
        os.setuid(instance.uid("stranger"))
        try:
            socket.socket(socket.AF_UNIX).connect(os.path.join(path, "mcp.sock"))
            os._exit(0)
        except PermissionError:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_both_eras(client):
    assert "via__echo" in client.tools()
    assert text(client.call("via__echo", {"s": "grüße"})) == "grüße"
    assert client.manage("mcpbox_list_servers")["total"] >= 1


def test_401_and_403_arrive_whole(nginx, instance):
    r = request(nginx.where(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert r.status == 401 and r.headers["www-authenticate"] == 'Bearer realm="mcpbox"'
    r = request(nginx.where(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
                headers={"Authorization": "Bearer mbt_" + "x" * 43})
    assert r.status == 401 and 'error="invalid_token"' in r.headers["www-authenticate"]
    assert r.error["data"]["failure_mode"] == "unauthenticated"
    reads = Token(instance, scopes="tools:read")
    with Client(nginx.where, token=reads.text) as c:
        r = c.call("via__echo")
        assert r.status == 403 and 'error="insufficient_scope"' in r.headers["www-authenticate"]


def test_headers_pass_in_both_directions(nginx, token):
    with Client(nginx.where, version=LEGACY, token=token.text) as c:
        assert c.session	# Mcp-Session-Id came through, and goes back
        assert c.tools()
        r = request(nginx.where(), "DELETE", headers={**token.bearer(), "Mcp-Session-Id": c.session,
                                                      "MCP-Protocol-Version": LEGACY})
        assert r.status == 204
        assert c.request("tools/list").status == 404
    # What is only of this machine is not behind the proxy.
    for path in ("/health", "/", "/mcp/", "/mcp/x/y", "/mcp/X", "/mcpx", "/.well-known/oauth-protected-resource/", "/api/me",
                 "/.well-known/oauth-authorization-server"):
        assert request(nginx.where(), "GET", path, headers=token.bearer()).status == 404, path


def test_the_metadata_is_asked_of_mcpbox(nginx):
    """There is no issuer here, and the 404 is mcpbox's own: the path goes through."""
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
                 "/.well-known/oauth-protected-resource/mcp/no-such", "/mcp/no-such"):
        r = request(nginx.where(), "GET", path)
        assert r.status == 404 and r.value["error"] == "not_found", path


def test_a_long_token_and_an_assertion_arrive(nginx):
    """nginx cuts nothing and drops nothing: mcpbox itself refuses them, each for its own reason."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    r = request(nginx.where(), body=ping, headers={"Authorization": "Bearer " + "x" * 8192})
    assert r.status == 401 and "bytes" not in r.error["message"]
    r = request(nginx.where(), body=ping, headers={"Authorization": "Bearer " + "x" * 8193})
    assert r.status == 401 and "8193 bytes" in r.error["message"]
    r = request(nginx.where(), body=ping, headers={"Authorization": "Basic x", "Cf-Access-Jwt-Assertion": "a.b.c"})
    assert r.status == 401 and "is not read at this listener" in r.error["message"]
    r = request(nginx.where(), body=ping, headers={"Authorization": "Bearer x", "Cf-Access-Jwt-Assertion": "a.b.c"})
    assert r.status == 400 and "two credentials" in r.error["message"]


def stream(where, token, body, **headers):
    return Stream(where, body=body, headers={"MCP-Protocol-Version": MODERN, "Mcp-Method": body["method"],
                                             **token.bearer(), **headers})


def tells(**arguments):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "via__tells", "arguments": arguments, "_meta": {**meta(MODERN), "progressToken": "p"}}}


def outcome(instance):
    """The state and outcome of the newest call of the tool that tells."""
    return instance.psql("SELECT state, outcome FROM mcpbox.executions WHERE tool = 'via__tells'"
                         " ORDER BY created_at DESC LIMIT 1")[0]


def test_events_are_not_held_back(instance, nginx, token):
    """Progress while the tool runs, not when it has ended: one that ends after the test tells all the same."""
    with stream(nginx.where(), token, tells(n=5, stay=600), **{"Mcp-Name": "via__tells"}) as s:
        assert s.status == 200 and s.headers["content-type"].startswith("text/event-stream")
        assert [s.message("notifications/progress").json["params"]["message"] for _ in range(5)] == list("01234")
        assert outcome(instance)[0] == "open"
    until(lambda: outcome(instance)[0] == "closed")
    with stream(nginx.where(), token, tells(n=5), **{"Mcp-Name": "via__tells"}) as s:
        events = s.rest()
    assert len(events) == 6 and json.loads(events[-1].data)["result"]["content"][0]["text"] == "told"


def test_a_stream_hears_and_ends_with_its_token(instance, nginx):
    t = Token(instance)
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True}, "_meta": meta(MODERN)}}
    with stream(nginx.where(), t, body) as s, Client(instance.address) as local:
        s.message("notifications/subscriptions/acknowledged")
        flow.publish(instance, local, "via", "fresh", ECHO)
        s.message("notifications/tools/list_changed")
        t.revoke()
        s.rest()
        assert s.ended


def test_a_client_that_leaves_cancels(instance, nginx, token):
    s = stream(nginx.where(), token, tells(n=1, stay=600), **{"Mcp-Name": "via__tells"})
    assert s.next()
    s.close()
    until(lambda: outcome(instance) == ["closed", "killed"], say=lambda: outcome(instance))


def test_questions_through_the_proxy(nginx, token):
    with Client(nginx.where, token=token.text) as c:
        args = {"name": "via__asks", "arguments": {}, "_meta": meta(MODERN, {"elicitation": {"form": {}}})}
        r = c.request("tools/call", args)
        r = c.request("tools/call", {**args, "requestState": r.result["requestState"], "inputResponses": {
            "q1": {"action": "accept", "content": {"name": "Ann"}}}})
        assert text(r) == "{'name': 'Ann'}"


def test_large_bodies(nginx, token):
    with Client(nginx.where, token=token.text) as c:
        assert len(text(c.call("via__echo", {"s": "x" * 900_000}))) == 900_000
    # Above what mcpbox takes nginx refuses by itself; so does mcpbox where there is no nginx.
    r = request(nginx.where(), body=b" " * (4 * 1024 * 1024 + 1), headers=token.bearer())
    assert r.status == 413


def test_the_proxy_restarts(instance, nginx, token):
    """gatewayd restarts behind it: kept connections are found dead and new ones made."""
    with Client(nginx.where, token=token.text) as c:
        assert c.tools()
        instance.tool("restart", "gatewayd-tunnel")
        instance.tool("wait")
        until(lambda: c.request("tools/list").result)


def test_rates_and_connections_of_one_address(nginx, token):
    """Last, since it uses up the rate: a burst is 429, and what is behind is not asked."""
    got = []

    def many():
        for _ in range(30):
            got.append(request(nginx.where(), body={"jsonrpc": "2.0", "id": 1, "method": "ping"},
                               headers=token.bearer()).status)
    threads = [threading.Thread(target=many) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got.count(429) > 20 and got.count(200) >= 40, {s: got.count(s) for s in set(got)}


def test_no_token_in_its_logs(nginx, token):
    logs = nginx.log() + nginx.log("access.log")
    assert '"POST /mcp HTTP/1.1"' in logs and token.text not in logs and token.text[4:20] not in logs
