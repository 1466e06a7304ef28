"""What the Worker passes on to mcpbox and back: the signed identity, nothing that could be a credential, events as
they come; and what it says where there is no answer."""
import hashlib
import http.client
import json
import queue
import socket
import ssl
import threading
import time

import pytest

from harness.patience import patience
from remote.play import b64

BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


@pytest.fixture(scope="module")
def bearer(alone_all):
    alone_all.openid.honest()
    return "Bearer " + alone_all.token(alone_all.client)


def seen(alone):
    return alone.mcpbox.seen.get(timeout=patience(20))


def claims(alone, request):
    scheme, token = request.headers["authorization"].split(" ")
    assert scheme == "Bearer"
    return alone.worker.key.read(token)


@pytest.mark.parametrize("method, path, body", [
    ("POST", "/mcp", BODY), ("POST", "/mcp?a=1&b=%20", BODY), ("GET", "/mcp", None), ("DELETE", "/mcp", None)])
def test_token_is_bound_to_the_request(alone, bearer, method, path, body):
    now = int(time.time())
    assert alone.ask(method, path, body, Authorization=bearer, Content_Type="application/json").status == 200
    request = seen(alone)
    assert (request.method, request.target, request.body) == (method, path, body or b"")
    head, said = claims(alone, request)
    assert head == {"alg": "EdDSA", "kid": alone.worker.key.public["kid"], "typ": "at+jwt"}
    assert said["htm"] == method and said["htu"] == alone.url + path
    assert said["bsha256"] == b64(hashlib.sha256(body or b"").digest())
    assert said["iss"] == alone.url and said["aud"] == alone.resource
    assert said["exp"] - said["iat"] == 60 and now - 60 <= said["iat"] <= time.time() + 60
    assert now < said["session_exp"] <= time.time() + 3600
    assert (said["sub"], said["email"], said["email_verified"], said["name"]) == ("ann", "ann@example.org", True, "Ann")
    assert said["client_id"] == alone.client and said["scope"] == "tools:read tools:call"


def test_no_token_twice(alone, bearer):
    for _ in range(3):
        alone.ask("POST", "/mcp", BODY, Authorization=bearer)
    jti = {claims(alone, seen(alone))[1]["jti"] for _ in range(3)}
    assert len(jti) == 3 and all(len(j) >= 22 for j in jti)


def test_only_what_mcpbox_needs_passes(alone, bearer):
    passes = {"Accept": "text/event-stream", "Content-Type": "application/json", "Mcp-Session-Id": "s",
              "MCP-Protocol-Version": "2025-11-25", "Last-Event-Id": "7", "Mcp-Method": "tools/list"}
    stays = {"Cf-Access-Jwt-Assertion": "x", "Cf-Access-Client-Id": "x", "Cf-Access-Client-Secret": "x", "Cookie": "x=1",
             "X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1", "Origin": "https://evil.example.net",
             "X-Api-Key": "x", "X-Who": "x", "Proxy-Authorization": "x"}
    alone.ask("POST", "/mcp", BODY, Authorization=bearer, **{**passes, **stays})
    request = seen(alone)
    for name, value in passes.items():
        assert request.headers[name.lower()] == value
    assert not {n.lower() for n in stays} & set(request.headers), request.headers
    assert bearer not in str(request.headers)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD"])
def test_other_methods(alone, bearer, method):
    r = alone.ask(method, "/mcp", Authorization=bearer)
    assert r.status == 405 and r.headers["allow"] == "POST, GET, DELETE"
    assert alone.mcpbox.seen.empty()


@pytest.mark.parametrize("authorization", [None, "Bearer x", "Bearer a:b:c", "Basic YTpi"])
def test_without_a_good_token(alone, authorization):
    r = alone.ask("POST", "/mcp", BODY, **({"Authorization": authorization} if authorization else {}))
    assert r.status == 401
    challenge = r.headers["www-authenticate"]
    assert f'resource_metadata="{alone.url}/.well-known/oauth-protected-resource/mcp"' in challenge
    assert 'scope="tools:read tools:call"' in challenge
    assert alone.mcpbox.seen.empty()


def test_token_in_the_query(alone, bearer):
    assert alone.ask("GET", "/mcp?access_token=" + bearer.split(" ")[1]).status == 401
    assert alone.mcpbox.seen.empty()


def test_both_forms_of_the_metadata(alone):
    one, other = (alone.ask("GET", "/.well-known/oauth-protected-resource" + end) for end in ("", "/mcp"))
    assert one.status == other.status == 200 and json.loads(one.text) == json.loads(other.text)
    said = json.loads(one.text)
    assert said["resource"] == alone.resource and said["authorization_servers"] == [alone.url]
    server = json.loads(alone.ask("GET", "/.well-known/oauth-authorization-server").text)
    assert server["issuer"] == alone.url and server["code_challenge_methods_supported"] == ["S256"]
    assert server["client_id_metadata_document_supported"] is True and "none" in server[
        "token_endpoint_auth_methods_supported"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert "implicit" not in server["grant_types_supported"]


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp/x", "/api/servers", "/oauth", "/.well-known/openid-configuration"])
def test_nothing_else_is_there(alone, bearer, path):
    assert alone.ask("GET", path, Authorization=bearer).status == 404
    assert alone.mcpbox.seen.empty()


def test_refusals_of_mcpbox(alone, bearer):
    """403 tells the client which rights are missing. 401 would make it sign in again for nothing."""
    challenge = 'Bearer error="insufficient_scope", scope="manage"'
    alone.mcpbox.answer = lambda h, r: alone.mcpbox.say(h, 403, b"{}", WWW_Authenticate=challenge, Set_Cookie="a=b")
    r = alone.ask("POST", "/mcp", BODY, Authorization=bearer)
    assert r.status == 403 and r.headers["www-authenticate"] == challenge and not r.cookies
    alone.mcpbox.answer = lambda h, r: alone.mcpbox.say(h, 503, b"{}", Retry_After="7")
    r = alone.ask("POST", "/mcp", BODY, Authorization=bearer)
    assert r.status == 503 and r.headers["retry-after"] == "7"
    alone.mcpbox.answer = lambda h, r: alone.mcpbox.say(h, 401, b"{}", WWW_Authenticate="Bearer error=x")
    r = alone.ask("POST", "/mcp", BODY, Authorization=bearer)
    assert r.status == 502 and "www-authenticate" not in r.headers and "signature" in r.text


def test_long_body(alone, bearer):
    assert alone.ask("POST", "/mcp", b" " * (4 << 20), Authorization=bearer).status == 200
    assert len(seen(alone).body) == 4 << 20
    assert alone.ask("POST", "/mcp", b" " * ((4 << 20) + 1), Authorization=bearer).status == 413
    assert alone.mcpbox.seen.empty()


def test_events_pass_as_they_come(alone, bearer):
    """The second event is sent only when the client has the first; when the client goes, mcpbox hears of it."""
    go, gone = threading.Event(), queue.Queue()

    def answer(handler, _request):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("X-Accel-Buffering", "no")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

        def event(text):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            handler.wfile.flush()
        event(b"id: 1\ndata: one\n\n")
        go.wait(patience(20))
        event(b": still here\n\nid: 2\ndata: two\n\n")
        handler.connection.settimeout(patience(20))
        try:
            gone.put(handler.connection.recv(1))
        except (ConnectionError, socket.timeout) as e:
            gone.put(e)
        handler.close_connection = True
    alone.mcpbox.answer = answer
    c = http.client.HTTPSConnection("localhost", alone.worker.port, timeout=patience(20),
                                    context=ssl.create_default_context(cafile=alone.authority.cert))
    c.request("GET", "/mcp", headers={"Authorization": bearer, "Accept": "text/event-stream"})
    r = c.getresponse()
    assert r.status == 200 and r.getheader("Content-Type") == "text/event-stream"
    want = b"id: 1\ndata: one\n\n"
    assert r.read(len(want)) == want
    go.set()
    want = b": still here\n\nid: 2\ndata: two\n\n"
    assert r.read(len(want)) == want
    r.close()
    c.close()
    ended = gone.get(timeout=patience(30))
    assert ended == b"" or isinstance(ended, ConnectionError), ended


def test_registrations_an_hour(alone):
    """Ten of one address, also of one household's IPv6 network; others are not disturbed."""
    for many, same, other in (("192.0.2.7", "192.0.2.7", "192.0.2.8"),
                              ("2001:db8:0:1::7", "2001:db8:0:1:a:b:c:d", "2001:db8:0:2::7")):
        for _ in range(10):
            status, got = alone.register(alone.browser(address=many))
            assert status == 201, got
        page = alone.ask("POST", "/oauth/register", b"{}", alone.browser(address=same), Content_Type="application/json")
        assert page.status == 429 and 0 < int(page.headers["retry-after"]) <= 3600, page
        assert alone.register(alone.browser(address=other))[0] == 201
