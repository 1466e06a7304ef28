"""The fetch of an issuer's keys in a plain interpreter: where it looks, what it
takes, and what it says of the rest. The other server is played below HTTP."""

import json
import types

import pytest

from test_inspect import fake  # noqa: F401: the played _mcpbox

import mcpbox_drivers as drivers
import mcpbox_http
import mcpbox_keys

ISSUER = "https://id.example/realm"
KEYS = {"keys": [{"kty": "OKP"}]}
META = ISSUER + "/.well-known/openid-configuration"


@pytest.fixture
def server(monkeypatch):
    """pages: address -> (status, headers, body) or an exception; asked: all of
    the addresses that were asked for, in order."""
    played = types.SimpleNamespace(pages={}, asked=[])

    def request(method, address, headers, *, timeout, max_bytes):
        assert method == "GET" and 0 < timeout <= mcpbox_keys.FETCH_S
        assert max_bytes == mcpbox_keys.DOCUMENT_MAX
        played.asked.append(address)
        page = played.pages.get(address, (404, {}, b""))
        if isinstance(page, Exception):
            raise page
        status, fields, body = page
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return mcpbox_http.Response(status, "", fields, address, body)
    monkeypatch.setattr(mcpbox_http, "request", request)
    return played


def fetch(url=ISSUER, discovery=True, hosts=("tcp id.example 443",)):
    body = mcpbox_keys.main({"url": url, "hosts": list(hosts)},
                            {"discovery": discovery}, {})
    return body.value["structuredContent"]


def test_discovery_asks_three_places_in_order(server):
    server.pages[META] = 200, {}, {"issuer": ISSUER, "jwks_uri": "https://id.example/jwks"}
    server.pages["https://id.example/jwks"] = 200, {"cache-control": "public, max-age=77"}, KEYS
    said = fetch()
    assert json.loads(said["keys"]) == KEYS and said["max_age"] == 77
    assert server.asked == [
        "https://id.example/.well-known/oauth-authorization-server/realm",
        "https://id.example/.well-known/openid-configuration/realm",
        META, "https://id.example/jwks"]


def test_places():
    # a slash at the end is a part of the name, not of the places
    assert mcpbox_keys.places(ISSUER + "/") == mcpbox_keys.places(ISSUER)
    assert mcpbox_keys.places("https://id.example:8443") == [
        "https://id.example:8443/.well-known/oauth-authorization-server",
        "https://id.example:8443/.well-known/openid-configuration"]


def test_an_address_is_asked_alone(server):
    server.pages["https://id.example/jwks"] = 200, {}, KEYS
    said = fetch("https://id.example/jwks", discovery=False)
    assert json.loads(said["keys"]) == KEYS and said["max_age"] == mcpbox_keys.AGE_S
    assert server.asked == ["https://id.example/jwks"]


@pytest.mark.parametrize("named", ["https://id.example/realm/", "https://id.example", "http://id.example/realm",
                                   "https://ID.example/realm", None, 1, ["https://id.example/realm"]])
def test_metadata_must_be_of_this_issuer(server, named):
    server.pages[META] = 200, {}, {"issuer": named, "jwks_uri": "https://id.example/jwks"}
    with pytest.raises(drivers.Upstream, match="byte by byte"):
        fetch()
    assert "https://id.example/jwks" not in server.asked


@pytest.mark.parametrize("uri, kind, words", [
    ("http://id.example/jwks", drivers.Upstream, "without https"),
    ("https://other.example/jwks", drivers.MissingGrant, "other.example: .* add it to key_hosts"),
    ("https://id.example:8443/jwks", drivers.MissingGrant, "id.example:8443: .* add it to key_hosts"),
    ("https://192.168.1.5/jwks", drivers.MissingGrant, "192.168.1.5"),
    ("https://a@id.example/jwks", drivers.Upstream, "no usable jwks_uri"),
    ("file:///etc/passwd", drivers.Upstream, "no usable jwks_uri"),
    (None, drivers.Upstream, "no usable jwks_uri"), ([], drivers.Upstream, "no usable jwks_uri")])
def test_metadata_does_not_choose_another_host(server, uri, kind, words):
    server.pages[META] = 200, {}, {"issuer": ISSUER, "jwks_uri": uri}
    with pytest.raises(kind, match=words):
        fetch()
    assert server.asked[-1] == META


def test_a_listed_host_may_have_the_keys(server):
    server.pages[META] = 200, {}, {"issuer": ISSUER, "jwks_uri": "https://keys.example:8443/jwks"}
    server.pages["https://keys.example:8443/jwks"] = 200, {}, KEYS
    assert fetch(hosts=("tcp id.example 443", "tcp keys.example 8443"))["keys"]


def test_what_is_no_metadata_leads_to_the_next_place(server):
    first, second, third = mcpbox_keys.places(ISSUER)
    server.pages.update({first: (200, {}, b"<html>"), second: (200, {}, b"[]"), third: (500, {}, b"")})
    with pytest.raises(drivers.Upstream) as e:
        fetch()
    assert server.asked == [first, second, third]
    assert str(e.value).count("no JSON object") == 2 and "HTTP 500" in str(e.value)


def test_no_redirect_is_followed(server):
    server.pages["https://id.example/jwks"] = 302, {"location": "https://other.example/\n" + "x" * 900}, b""
    with pytest.raises(drivers.Upstream) as e:
        fetch("https://id.example/jwks", discovery=False)
    assert "a redirect, which is not followed; it leads to https://other.example/" in str(e.value)
    assert len(str(e.value)) < 400 and server.asked == ["https://id.example/jwks"]


@pytest.mark.parametrize("error, kind", [
    (mcpbox_http.Timeout("late"), drivers.Timeout), (mcpbox_http.TooLarge("long"), drivers.Limit),
    (mcpbox_http.ConnectError("nobody"), drivers.Upstream), (mcpbox_http.TlsError("refused"), drivers.Upstream)])
def test_errors_name_the_address(server, error, kind):
    server.pages["https://id.example/jwks"] = error
    with pytest.raises(kind, match="https://id.example/jwks: " + str(error)):
        fetch("https://id.example/jwks", discovery=False)


def test_bytes_that_are_no_text(server):
    server.pages["https://id.example/jwks"] = 200, {}, b"\xff{}"
    with pytest.raises(drivers.Upstream, match="not UTF-8"):
        fetch("https://id.example/jwks", discovery=False)


@pytest.mark.parametrize("header, seconds", [
    (None, 3600), ("", 3600), ("public", 3600), ("max-age=0", 0), ("max-age=60", 60), ("MAX-AGE=60, private", 60),
    ('max-age="60"', 60), ("s-maxage=5, max-age=60", 60), ("x-max-age=60", 3600), ("max-age=60x", 3600),
    ("max-age=-1", 3600), ("no-store", 0), ("max-age=60, no-cache", 0), ("max-age=9999999999", 1 << 31)])
def test_ages(header, seconds):
    assert mcpbox_keys.age(header) == seconds


def test_all_requests_share_one_end(server, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(mcpbox_keys.time, "monotonic", lambda: now[0])
    real = mcpbox_http.request

    def slow(method, address, headers, **more):
        now[0] += 10
        return real(method, address, headers, **more)
    monkeypatch.setattr(mcpbox_http, "request", slow)
    with pytest.raises(drivers.Timeout, match="20 s for all requests"):
        fetch()
    assert len(server.asked) == 2
