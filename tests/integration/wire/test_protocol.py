"""MCP over HTTP, byte by byte: what each revision must answer, and with which
status and code."""
import socket

import pytest

from harness.clients.mcp import LEGACY, MODERN, Client, meta, request
from harness.patience import patience


def rpc(method, params=None, rid=1):
    m = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        m["params"] = params
    if rid is not None:
        m["id"] = rid
    return m


def initialize(version):
    return rpc("initialize", {"protocolVersion": version, "capabilities": {},
                              "clientInfo": {"name": "t", "version": "1"}})


@pytest.fixture
def post(instance):
    def send(body, **headers):
        return request(instance.address(), body=body,
                       headers={k.replace("_", "-"): v for k, v in headers.items()})
    return send


def modern(post, method, params=None, **headers):
    params = dict(params or {})
    params.setdefault("_meta", meta())
    h = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method}
    h.update(headers)
    return post(rpc(method, params), **h)


# Legacy era.

@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_initialize_agrees_on_a_known_version(post, version):
    r = post(initialize(version))
    assert r.status == 200
    assert r.result["protocolVersion"] == version
    assert "tools" in r.result["capabilities"]
    assert r.result["serverInfo"]["name"]


@pytest.mark.parametrize("version", ["2024-11-05", "1999-01-01"])
def test_initialize_offers_its_newest_legacy_version_otherwise(post, version):
    r = post(initialize(version))
    assert r.status == 200 and r.result["protocolVersion"] == LEGACY


def test_initialized_is_accepted_without_a_body(post):
    r = post(rpc("notifications/initialized", rid=None), MCP_Protocol_Version=LEGACY)
    assert r.status == 202 and r.raw == b""


def test_ping_and_unknown_method(instance):
    with Client(instance.address, LEGACY) as c:
        assert c.request("ping").result == {}
        assert c.request("no/such").error["code"] == -32601


def test_get_is_405(instance):
    r = request(instance.address(), "GET")
    assert r.status == 405 and "POST" in r.headers["allow"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD"])
def test_other_methods_are_405(instance, method):
    assert request(instance.address(), method).status == 405


def test_deleted_session_is_unknown(instance):
    with Client(instance.address, LEGACY) as c:
        assert c.session and len(c.session) <= 512
        assert all(0x21 <= ord(ch) <= 0x7e for ch in c.session)
        h = {"Mcp-Session-Id": c.session, "MCP-Protocol-Version": LEGACY}
        assert request(instance.address(), "DELETE", headers=h).status in (200, 204)
        assert c.request("tools/list").status == 404


@pytest.mark.parametrize("change", ["", "A", "flip"])
def test_forged_session_is_404(instance, change):
    with Client(instance.address, LEGACY) as c:
        s = c.session
        if change == "flip":
            i = len(s) // 2
            c.session = s[:i] + ("A" if s[i] != "A" else "B") + s[i + 1:]
        else:
            c.session = (s + change) if change else "nonsense"
        assert c.request("ping").status == 404


def test_batches_in_2025_03_26_only(instance, post):
    batch = [rpc("ping", rid=1), rpc("ping", rid=2)]
    r = post(batch, MCP_Protocol_Version="2025-03-26")
    assert r.status == 200 and sorted(m["id"] for m in r.value) == [1, 2]
    r = post(batch, MCP_Protocol_Version="2025-11-25")
    assert r.status == 400 and r.error["code"] == -32600
    r = post([rpc("ping", rid=i) for i in range(17)], MCP_Protocol_Version="2025-03-26")
    assert r.status == 400 and r.error["code"] == -32600


def test_unknown_legacy_version_header_is_400(post):
    assert post(rpc("ping"), MCP_Protocol_Version="2023-01-01").status == 400


# Modern era.

def test_discover(post):
    r = modern(post, "server/discover")
    assert r.status == 200
    assert MODERN in r.result["supportedVersions"]
    assert r.result["resultType"] == "complete"
    assert "tools" in r.result["capabilities"]
    assert r.result["ttlMs"] >= 0 and r.result["cacheScope"] in ("public", "private")


def test_modern_list(post):
    r = modern(post, "tools/list")
    names = [t["name"] for t in r.result["tools"]]
    assert names == [t["name"] for t in modern(post, "tools/list").result["tools"]]
    assert "mcpbox_create_server" in names
    assert r.result["resultType"] == "complete"
    for t in r.result["tools"]:
        assert t["inputSchema"]["type"] == "object"
        assert isinstance(t["inputSchema"].get("required", []), list)


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_missing_envelope_is_400(post, missing):
    m = meta()
    del m["io.modelcontextprotocol/" + missing]
    r = modern(post, "tools/list", {"_meta": m})
    assert r.status == 400 and r.error["code"] == -32602
    assert missing in r.error["message"] + str(r.error.get("data"))


def test_no_envelope_with_a_modern_header_is_400(post):
    r = post(rpc("tools/list", {}), MCP_Protocol_Version=MODERN, Mcp_Method="tools/list")
    assert r.status == 400 and r.error["code"] == -32602


@pytest.mark.parametrize("headers", [
    {"MCP_Protocol_Version": "2025-11-25"}, {"MCP_Protocol_Version": None},
    {"Mcp_Method": "tools/call"}, {"Mcp_Method": None}])
def test_header_mismatch_is_32020(post, headers):
    r = modern(post, "tools/list", **headers)
    assert r.status == 400 and r.error["code"] == -32020, r


@pytest.mark.parametrize("name", ["other", None, "=?base64?!!!?="])
def test_name_header_must_agree(post, name):
    r = modern(post, "tools/call", {"name": "mcpbox_list_servers", "arguments": {}}, Mcp_Name=name)
    assert r.status == 400 and r.error["code"] == -32020, r


def test_name_header_may_be_base64(post):
    r = modern(post, "tools/call", {"name": "mcpbox_list_servers", "arguments": {}},
               Mcp_Name="=?base64?bWNwYm94X2xpc3Rfc2VydmVycw==?=")
    assert r.status == 200 and r.result, r


def test_unsupported_version_names_the_supported(post):
    r = modern(post, "tools/list", {"_meta": meta("2099-01-01")},
               MCP_Protocol_Version="2099-01-01")
    assert r.status == 400 and r.error["code"] == -32022
    assert MODERN in r.error["data"]["supported"]
    assert r.error["data"]["requested"] == "2099-01-01"


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "no/such", "initialized"])
def test_modern_unknown_method_is_404(post, method):
    r = modern(post, method)
    assert r.status == 404 and r.error["code"] == -32601, r


def test_unknown_tool_is_in_band(post):
    r = modern(post, "tools/call", {"name": "no__such", "arguments": {}}, Mcp_Name="no__such")
    assert r.status == 200 and r.error["code"] == -32602


# Both.

@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"nonsense", b'{"jsonrpc":"2.0","id":1,"method":"ping"',
    b'\xff\xfe', b'{"a":1,"a":2}', b'{"a":\x01}', b"[" * 100 + b"]" * 100,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', b'"x"', b"1", b"null"])
def test_malformed_bodies_are_400(post, body):
    r = post(body)
    assert r.status == 400 and r.error["code"] in (-32700, -32600), r
    assert r.value["jsonrpc"] == "2.0" and r.value.get("id") is None


@pytest.mark.parametrize("message", [
    {"id": 1, "method": "ping"}, {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1}, {"jsonrpc": "2.0", "id": 1, "method": 5},
    {"jsonrpc": "2.0", "id": {}, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 7}])
def test_wrong_shapes_are_400(post, message):
    r = post(message)
    assert r.status == 400 and r.error["code"] in (-32600, -32602), r


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"},
    {"Origin": "http://evil.example"}, {"Origin": "null"}])
def test_foreign_host_or_origin_is_403(post, headers):
    assert post(rpc("ping"), **headers).status == 403


def test_content_type_must_be_json(post):
    assert post(rpc("ping"), Content_Type="text/plain").status in (400, 415)


def test_too_large_a_body_is_413(instance):
    # Announced, never sent: the answer must not wait for it.
    with socket.create_connection(instance.address(), timeout=patience(10)) as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                  b"Content-Length: 104857600\r\n\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_health(instance):
    r = request(instance.address(), "GET", "/health")
    assert r.status == 200


@pytest.mark.parametrize("path", ["/", "/mcp/", "/api/me", "/.well-known/oauth-protected-resource",
                                  "/.well-known/oauth-protected-resource/mcp",
                                  "/.well-known/oauth-authorization-server"])
def test_other_paths_are_404(instance, path):
    r = request(instance.address(), "GET", path)
    assert r.status == 404
    assert r.headers.get("content-type", "").startswith("application/json")
