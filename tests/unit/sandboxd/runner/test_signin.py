"""The sign-in of administrators in a plain interpreter: what the metadata say of it, and the exchange of a code. The
other server is played below HTTP."""

import json
import types
import urllib.parse

import pytest

from test_inspect import fake  # noqa: F401: the played _mcpbox

import mcpbox_drivers as drivers
import mcpbox_hide
import mcpbox_http
import mcpbox_keys

ISSUER = "https://id.example"
META = ISSUER + "/.well-known/openid-configuration"
GOOD = {"issuer": ISSUER, "jwks_uri": ISSUER + "/jwks", "authorization_endpoint": ISSUER + "/authorize?p=1",
        "token_endpoint": ISSUER + "/token", "authorization_response_iss_parameter_supported": True}
EXCHANGE = {"client": "a b", "redirect": "http://127.0.0.1:8000/api/signin/callback", "code": "CODE" * 8,
            "verifier": "VERIFIER" * 5}


@pytest.fixture
def server(monkeypatch):
    played = types.SimpleNamespace(meta=dict(GOOD), answer=(200, {}, {"id_token": "h.c.s"}), posts=[])

    def request(method, address, headers, body=None, *, timeout, max_bytes):
        assert 0 < timeout <= mcpbox_keys.FETCH_S and max_bytes == mcpbox_keys.DOCUMENT_MAX
        if method == "POST":
            assert headers["Content-Type"] == "application/x-www-form-urlencoded"
            played.posts.append((address, dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))))
            page = played.answer
        elif address == META:
            page = 200, {}, played.meta
        else:
            page = (200, {}, {"keys": []}) if address.endswith("/jwks") else (404, {}, b"")
        if isinstance(page, Exception):
            raise page
        status, fields, text = page
        return mcpbox_http.Response(status, "", fields, address,
                                    text if isinstance(text, bytes) else json.dumps(text).encode())
    monkeypatch.setattr(mcpbox_http, "request", request)
    yield played
    mcpbox_hide.hide_secrets([])


def run(arguments, hosts=("tcp id.example 443",)):
    return mcpbox_keys.main({"url": ISSUER, "hosts": list(hosts)}, arguments, {}).value["structuredContent"]


def test_metadata(server):
    assert run({"discovery": True})["sign_in"] == {"url": GOOD["authorization_endpoint"], "iss": True}
    server.meta["authorization_response_iss_parameter_supported"] = "true"
    assert run({"discovery": True})["sign_in"]["iss"] is False


@pytest.mark.parametrize("member, value, words", [
    ("authorization_endpoint", None, "authorization_endpoint"),
    ("authorization_endpoint", 1, "authorization_endpoint"),
    ("authorization_endpoint", "http://id.example/a", "without https"),
    ("authorization_endpoint", "https://other.example/a", "another host, other.example"),
    ("authorization_endpoint", "https://id.example:8443/a", "another host, id.example:8443"),
    ("authorization_endpoint", ISSUER + "/a?state=x", "no usable authorization_endpoint"),
    ("authorization_endpoint", ISSUER + "/a?p=1&redirect_uri=https://evil.example", "no usable authorization_endpoint"),
    ("token_endpoint", None, "token_endpoint"),
    ("token_endpoint", "https://other.example/t", "another host"),
    ("code_challenge_methods_supported", ["plain"], "S256"),
])
def test_no_sign_in_costs_no_keys(server, member, value, words):
    server.meta[member] = value
    said = run({"discovery": True})
    assert words in said["sign_in"]["fault"] and json.loads(said["keys"]) == {"keys": []}


def test_another_host_of_the_document(server):
    server.meta["token_endpoint"] = "https://tokens.example/t"
    hosts = ("tcp id.example 443", "tcp tokens.example 443")
    assert "url" in run({"discovery": True}, hosts)["sign_in"]
    run({"exchange": EXCHANGE}, hosts)
    assert server.posts[0][0] == "https://tokens.example/t"


def test_exchange(server):
    assert run({"exchange": EXCHANGE}) == {"id_token": "h.c.s"}
    assert server.posts == [(ISSUER + "/token", {
        "grant_type": "authorization_code", "code": EXCHANGE["code"], "redirect_uri": EXCHANGE["redirect"],
        "client_id": "a b", "code_verifier": EXCHANGE["verifier"]})]


@pytest.mark.parametrize("answer, words", [
    ((400, {}, {"error": "invalid_grant"}), "HTTP 400 (invalid_grant)"),
    ((401, {}, {"error": "invalid_client"}), "a public one"),
    ((400, {}, {"error": EXCHANGE["code"]}), "HTTP 400"),
    ((400, {}, {"error": ["x"]}), "HTTP 400"),
    ((500, {}, b"<html>"), "HTTP 500"),
    ((302, {"location": "https://evil.example"}, b""), "not followed"),
    ((200, {}, b"[]"), "no usable id_token"),
    ((200, {}, {"id_token": ""}), "no usable id_token"),
    ((200, {}, {"id_token": "a" * 8193}), "no usable id_token"),
    (mcpbox_http.TooLarge("more than 65536 bytes"), "65536"),
    (mcpbox_http.Timeout("no whole answer"), "20 s"),
])
def test_refused(server, answer, words):
    server.answer = answer
    with pytest.raises(drivers.Failure) as e:
        run({"exchange": EXCHANGE})
    assert words in str(e.value)
    for secret in (EXCHANGE["code"], EXCHANGE["verifier"]):
        assert secret not in str(e.value)


def test_nothing_is_sent_to_another_host_or_issuer(server):
    server.meta["token_endpoint"] = "https://other.example/t"
    with pytest.raises(drivers.MissingGrant):
        run({"exchange": EXCHANGE})
    server.meta = {**GOOD, "issuer": "https://other.example"}
    with pytest.raises(drivers.Upstream):
        run({"exchange": EXCHANGE})
    assert server.posts == []
