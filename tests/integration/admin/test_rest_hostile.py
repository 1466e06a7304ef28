"""The admin REST API against a hostile page, a hostile browser and hostile
content: every value gets its typed answer, none a 500."""
import http.client
import json
import socket
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import patience, until

CODE = "def main() -> int:\n    return 1\n"
NASTY = "\"}],\\ \u202e\u0007\n\u2028</script>' -- é😀"


@pytest.fixture(scope="module")
def item(instance):
    """A pending request with hostile text in every field that a client fills."""
    with Client(instance.address) as c:
        server = c.manage("mcpbox_create_server", name="hostile", description=NASTY)["id"]
        tool = c.manage("mcpbox_create_tool", server_id=server, name="nasty", description=NASTY, title=NASTY,
                        python_code=CODE, meta={NASTY: [NASTY, "\u0000"]})["id"]
        c.manage("mcpbox_request_publish", tool_id=tool, notes=NASTY)
    return dict(flow.pending(instance, "nasty"), server_id=server, tool_id=tool)


def problem(answer, *statuses):
    """The failure mode of a problem that every client can read."""
    status, headers, value = answer
    assert status in statuses, answer
    assert headers["content-type"] == "application/problem+json", answer
    assert headers["cache-control"] == "no-store"
    assert value["status"] == status and value["title"] and value["detail"] and value["fix"], answer
    return value["failure_mode"]


@pytest.mark.parametrize("cursor", [
    "x", "..", "'", "99999999999999999999", "-1", "0", "1.5", "9223372036854775807", "NaN", "infinity", "1e5", "0x10",
    "1.x", "9223372036854775807.00000000-0000-0000-0000-000000000000", "%27%20OR%201=1--", "a" * 128, "a" * 256])
def test_cursors_are_only_places(rest, cursor):
    for what in ("servers", "tools", "approvals", "audit", "executions"):
        answer = rest.get(f"/api/{what}?cursor={cursor}")
        if answer[0] != 200:
            assert problem(answer, 400) == "invalid_params"


@pytest.mark.parametrize("query", [
    "cursor=", "cursor=%00", "cursor=%ff", "cursor=%", "cursor=%2", "cursor=%20", "cursor=a%0d%0aX", "cursor=" + "a" * 301,
    "limit=0", "limit=201", "limit=-1", "limit=1e2", "limit=1&limit=2", "LIMIT=1", "limit", "limit==1", "limit=1&",
    "&limit=1", "&", "x=1", "state=nope", "state=pending;x", "kind=", "kind=TOOL", "server=1", "%6cimit=1"])
def test_parameters_are_exact(rest, query):
    assert problem(rest.get("/api/approvals?" + query), 400) == "invalid_params"


def test_ids_name_something_or_nothing(rest, item):
    for bad in ("x", "1", "%2e%2e", "..", "../tools", "a" * 36, "a" * 37, "0" * 32, str(uuid.uuid4()),
                "{%s}" % uuid.uuid4(), "", "%00", item["tool_id"] + "/", item["tool_id"] + "%20", NASTY.encode().hex()):
        for what in ("servers", "tools", "approvals", "executions"):
            assert problem(rest.get(f"/api/{what}/{bad}"), 404) == "not_found"
        for verb in ("approve", "reject"):
            assert problem(rest.request("POST", f"/api/approvals/{bad}/{verb}", {"reason": "x"},
                                        {"If-Match": '"' + "0" * 64 + '"'}), 404) == "not_found"
    assert problem(rest.get(f"/api/tools/{item['tool_id']}?x=1"), 400) == "invalid_params"


def test_only_one_strong_hash_approves(rest, item):
    h = item["hash"]
    path = f"/api/approvals/{item['id']}/approve"
    for tag in (f'W/"{h}"', h, f'"{h}", "{"0" * 64}"', f'"{h}","{h}"', f'"{h.upper()}"', '"*"', "", '""', f'"{h[:-1]}"',
                f"'{h}'", f'"{h}";q=1', f'"{h}"x', '"' + "0" * 64 + '"'):
        assert problem(rest.request("POST", path, None, {"If-Match": tag}), 412) == "hash_mismatch"
    for headers in ({}, {"If-Match": "*"}):
        assert problem(rest.request("POST", path, None, headers), 428) == "hash_required"
    assert rest.get(f"/api/approvals/{item['id']}")[2]["state"] == "pending"


def test_methods(rest, item):
    for path, allow in (("/api/approvals", "GET, HEAD"), ("/api/login", "POST"), ("/api/me", "GET, HEAD"),
                        (f"/api/approvals/{item['id']}/approve", "POST")):
        for method in ("OPTIONS", "PUT", "DELETE", "PATCH"):
            answer = rest.request(method, path)
            assert problem(answer, 405) == "method_not_found" and answer[1]["allow"] == allow
    status, headers, value = rest.request("HEAD", "/api/approvals")
    assert status == 200 and value is None and int(headers["content-length"]) > 2
    assert rest.request("HEAD", "/api/login")[0] == 405
    for method in ("TRACE", "CONNECT", "get", "PROPFIND"):
        assert problem(rest.request(method, "/api/me"), 501) == "invalid_request"


def test_bodies(instance, rest, item):
    path = f"/api/approvals/{item['id']}/reject"
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                 "application/json; charset=utf-16", "application/json, text/plain", "application/jsonx", ""):
        assert problem(rest.request("POST", path, {"reason": "x"}, {"Content-Type": kind}), 415) == "invalid_request"
    for bad in ({}, [], "x", 5, True, {"reason": ""}, {"reason": 5}, {"reason": None}, {"reason": {}},
                {"reason": "\0"}, {"reason": "x" * 2001}, {"reason": "a", "x": 1}):
        assert problem(rest.request("POST", path, bad), 400) in ("invalid_params", "parse_error"), bad

    def raw(data):
        c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=patience(30))
        c.request("POST", path, data, {"Content-Type": "application/json", "Cookie": rest.cookie,
                                       "X-CSRF-Token": rest.csrf})
        r = c.getresponse()
        got = r.status, {k.lower(): v for k, v in r.getheaders()}, json.loads(r.read())
        c.close()
        return got

    for bad in (b"", b"{", b'{"reason":"a","reason":"b"}', b'{"reason":"\xff"}', b'{"reason":"\\ud800"}',
                b'\xef\xbb\xbf{"reason":"a"}', b'{"reason":"a"}x', b"[" * 30000):
        assert problem(raw(bad), 400) == "parse_error"
    assert problem(raw(b" " * (32 * 1024 + 1)), 413) == "too_large"
    assert rest.get(f"/api/approvals/{item['id']}")[2]["state"] == "pending"


def test_other_names_and_origins(rest):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.", "127.1", "0x7f000001"):
        assert problem(rest.request("GET", "/api/me", headers={"Host": host}), 403) == "forbidden_origin"
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
                    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        for method, path in (("GET", "/api/me"), ("POST", "/api/login"), ("POST", "/api/logout"), ("GET", "/health")):
            body = {"username": "admin", "password": "x"} if method == "POST" else None
            assert problem(rest.request(method, path, body, headers), 403) == "forbidden_origin"
    assert rest.get("/api/me")[0] == 200


def raw_status(address, head):
    """What a listener answers to these bytes; address: (host, port), or a socket's path."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(patience(10))
        s.connect(address)
        s.sendall(head)
        return int(s.makefile("rb").readline().split()[1])


def test_every_face_refuses_what_two_programs_read_differently(instance):
    """A port that is none in Host, and tabs around what frames a body."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for face in (instance.address(), instance.run("gatewayd-tunnel", "mcp.sock"), instance.address("admind-http")):
        for host in (b"localhost:99999", b"127.0.0.1:65536", b"[::1]:99999"):
            assert raw_status(face, b"GET /health HTTP/1.1\r\nHost: " + host + b"\r\n\r\n") == 400, (face, host)
        assert raw_status(face, b"GET /health HTTP/1.1\r\nHost: localhost:65535\r\n\r\n") != 400
        for field in (b"Content-Length:\t%d", b"Content-Length: %d\t"):
            assert raw_status(face, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + field % len(body)
                              + b"\r\n\r\n" + body) == 400, (face, field)
        assert raw_status(face, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\tchunked\r\n\r\n"
                          b"2\r\n{}\r\n0\r\n\r\n") == 400


def test_cookies(rest):
    token = rest.cookie.split("=", 1)[1]
    good = f"mcpbox_session={token}"
    for cookie in (f"{good}; {good}", f"{good};mcpbox_session=x", f"mcpbox_session=x; {good}", f'mcpbox_session="{token}"',
                   f"MCPBOX_SESSION={token}", f"x{good}", f"a={good}", good + "x", good[:-1], f"mcpbox_session ={token}",
                   f"mcpbox_session= {token}", f"{good},{good}", "mcpbox_session=", "", ";", "=" + token):
        assert problem(rest.request("GET", "/api/me", headers={"Cookie": cookie}), 401) == "unauthenticated", cookie
    for cookie in (f"a=b; {good}", f"{good}; a", ";" * 1000 + good):
        assert rest.request("GET", "/api/me", headers={"Cookie": cookie})[0] == 200


def test_a_planted_session_is_never_taken_over(instance):
    planted = "A" * 43
    r = Rest(lambda: instance.address("admind-http"))
    status, headers, _ = r.request("POST", "/api/login", {"username": "admin", "password": instance.password},
                                   {"Cookie": f"mcpbox_session={planted}"})
    assert status == 200 and planted not in headers["set-cookie"]
    assert r.request("GET", "/api/me", headers={"Cookie": f"mcpbox_session={planted}"})[0] == 401


def test_a_login_that_ended_is_nothing(instance):
    """Neither half of it works with another login's."""
    a, b = (Rest(lambda: instance.address("admind-http")) for _ in range(2))
    for r in (a, b):
        assert r.login("admin", instance.password)[0] == 200
    assert problem(a.request("POST", "/api/logout", None, {"X-CSRF-Token": b.csrf}), 401) == "unauthenticated"
    assert a.request("POST", "/api/logout")[0] == 204
    for r, headers in ((a, {}), (a, {"X-CSRF-Token": b.csrf})):
        assert problem(r.request("POST", "/api/logout", None, headers), 401) == "unauthenticated"
    assert problem(b.request("POST", "/api/logout", None, {"X-CSRF-Token": a.csrf}), 401) == "unauthenticated"
    assert b.get("/api/me")[0] == 200


def test_hostile_text_is_only_text(instance, rest, item):
    status, _, whole = rest.get(f"/api/approvals/{item['id']}")
    assert status == 200 and whole["notes"] == NASTY and whole["content"]["title"] == NASTY
    assert whole["content"]["meta"] == {NASTY: [NASTY, "\0"]} and whole["id"] == item["id"]
    assert next(a for a in rest.get("/api/approvals?limit=200")[2]["items"] if a["id"] == item["id"])["notes"] == NASTY
    assert rest.get(f"/api/servers/{item['server_id']}")[2]["description"] == NASTY
    assert rest.get(f"/api/tools/{item['tool_id']}")[2]["tool"]["description"] == NASTY
    for words in (("approvals", "show", item["id"]), ("approvals", "list"), ("servers",), ("tools", item["tool_id"])):
        out = instance.ctl(*words).stdout
        assert all(" " <= c <= "~" or c in "\néü" or c in "é😀" for c in out), (words, out)
        assert instance.ctl(*words, "--json").stdout.isascii()


def test_long_lists_are_pages(instance, rest):
    """More than a page of the largest items: each page is whole, none repeats."""
    with Client(instance.address) as c:
        for n in range(205):
            c.manage("mcpbox_create_server", name=f"many{n}", description="\u0007" * 2000)
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        status, _, page = rest.get("/api/servers?limit=200" + (f"&cursor={cursor}" if cursor else ""))
        assert status == 200 and page["items"], page
        seen += [s["name"] for s in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert pages >= 2 and len(seen) == len(set(seen)) and {f"many{n}" for n in range(205)} <= set(seen)
    for limit, words in (("200", ("servers",)), ("7", ("servers",))):
        assert len(instance.ctl_json(*words, "--limit", limit)["items"]) <= int(limit)


def test_a_page_larger_than_a_message_is_cut(instance, rest):
    """Audit rows may be large; a page then ends early instead of failing."""
    detail = json.dumps({"x": "a" * 16000})
    instance.psql("SELECT mcpbox.audit_append('x', 'noise', '', '" + detail + "') FROM generate_series(1, 210)",
                  role="mcpbox_app")
    seen, cursor = [], ""
    while cursor is not None and len(seen) < 210:
        status, _, page = rest.get("/api/audit?limit=200" + (f"&cursor={cursor}" if cursor else ""))
        assert status == 200 and page["items"], page
        seen += [r["seq"] for r in page["items"]]
        cursor = page["next_cursor"]
    assert seen == list(range(seen[0], seen[0] - len(seen), -1)) and len(seen) >= 210


def test_a_tool_with_many_versions_is_shown(instance, rest, item):
    instance.psql("SELECT mcpbox.add_version(gen_random_uuid(), v.preimage, repeat('\u202e', 2000), 'x')"
                  f" FROM generate_series(1, 1500), LATERAL (SELECT preimage FROM mcpbox.tool_versions WHERE tool_id ="
                  f" '{item['tool_id']}' LIMIT 1) v", role="mcpbox_app")
    status, _, value = rest.get(f"/api/tools/{item['tool_id']}")
    assert status == 200, value
    assert value["tool"]["version"] >= 1501 and value["versions"][0]["version"] == value["tool"]["version"]


def test_passwords_are_not_guessed_from_a_stolen_login(instance):
    """Each attempt by a connection of its own: the source counts, not the port."""
    r = Rest(lambda: instance.address("admind-http"))
    until(lambda: r.login("admin", instance.password)[0] == 200, step=1)
    codes = [r.request("POST", "/api/password", {"old_password": f"wrong password {n}",
                                                 "new_password": "another password"})[0] for n in range(16)]
    assert codes[:3] == [401] * 3 and codes[-1] == 429, codes
    status, headers, value = r.request("POST", "/api/password", {"old_password": "w" * 12, "new_password": "n" * 12})
    assert status == 429 and int(headers["retry-after"]) > 0 and value["failure_mode"] == "rate_limited"
