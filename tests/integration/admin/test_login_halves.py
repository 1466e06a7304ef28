"""A login is two halves: who has the cookie alone, as every server on another
port of this machine may, can do nothing; nor who has the header alone."""
import http.client
import http.cookiejar
import http.server
import json
import pathlib
import re
import threading
import urllib.request
import uuid

import pytest

from harness.clients.rest import Rest
from harness.patience import patience

ROOT = pathlib.Path(__file__).resolve().parents[3]


def routes():
    """Every (method, path) that needs a login, with something in place of ids and names."""
    found = []
    for name in ("admind/http/routes.def", "common/admin/admin_action.def"):
        text = re.sub(r"/\*.*?\*/", "", (ROOT / name).read_text(), flags=re.S)
        for m in re.finditer(r'^R\((\w+),\s*"([^"]+)",\s*(\w+)', text, re.M):
            if m.group(3) in ("READ", "WRITE", "PENDING") or m.group(2) == "/metrics":
                found.append((m.group(1), m.group(2)))
        for m in re.finditer(r'^A\(\w+,\s*\w+,\s*\w+,\s*(\w+),\s*"([^"]+)"', text, re.M):
            found.append((m.group(1), m.group(2)))
    assert len(found) > 90
    return [(method, re.sub(r"\{id2?\}", str(uuid.uuid4()), re.sub(r"\{name2?\}", "admin", path)))
            for method, path in found]


def raw(instance, method, path, headers, body=None):
    """Status and the problem, of a request with just these fields."""
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=patience(30))
    try:
        c.request(method, path, body, headers)
        r = c.getresponse()
        return r.status, dict(r.getheaders()), r.read() if r.status != 200 else b""
    finally:
        c.close()


def logins(instance):
    return sorted(x["id"] for x in instance.ctl_json("logins")["items"])


def refused_everywhere(instance, headers):
    for method, path in routes():
        for m in (method, "HEAD") if method == "GET" else (method,):
            body = None if m in ("GET", "HEAD") else b"{}"
            extra = {} if body is None else {"Content-Type": "application/json", "If-Match": '"' + "1" * 64 + '"'}
            status, _, text = raw(instance, m, path, headers | extra, body)
            assert status == 401, (m, path, status, text)
            if m != "HEAD":
                value = json.loads(text)
                assert value["failure_mode"] == "unauthenticated" and "Sign in again" in value["fix"], (path, value)


class Neighbour:
    """Another program of this machine, with a web server on another port."""

    def __init__(self):
        seen = self.seen = []

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.headers["Cookie"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Page)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def stolen(instance):
    """The cookie that a browser, logged in here, brings to a server on another port."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    host, port = instance.address("admind-http")
    assert host == "127.0.0.1"
    body = json.dumps({"username": "admin", "password": instance.password}).encode()
    with browser.open(urllib.request.Request(f"http://{host}:{port}/api/login", body,
                                             {"Content-Type": "application/json"}), timeout=patience(30)) as r:
        half = json.load(r)["csrf_token"]
    n = Neighbour()
    try:
        browser.open(f"http://127.0.0.1:{n.server.server_port}/", timeout=patience(30)).close()
    finally:
        n.close()
    cookie, = n.seen
    assert cookie.startswith("mcpbox_session=") and half not in cookie
    # what it came from is a login
    assert raw(instance, "GET", "/api/me", {"Cookie": cookie, "X-CSRF-Token": half})[0] == 200
    return cookie, half


def test_a_neighbour_with_the_cookie_can_do_nothing(instance, stolen):
    """It may send what a browser sends, to every address there is."""
    cookie, _ = stolen
    before = logins(instance)
    host = "%s:%d" % instance.address("admind-http")
    for more in ({}, {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}):
        refused_everywhere(instance, {"Cookie": cookie} | more)
    assert logins(instance) == before


def test_the_header_alone_can_do_nothing(instance, stolen):
    before = logins(instance)
    refused_everywhere(instance, {"X-CSRF-Token": stolen[1]})
    assert logins(instance) == before


def test_a_guessed_half_is_none(instance, stolen):
    cookie, right = stolen
    near = right[:-1] + ("A" if right[-1] != "A" else "E")
    for wrong in ("", "A" * 43, "A" * 42, "A" * 44, "A" * 42 + "=", "A" * 86, near, right[1:] + right[0], right * 2):
        for method, path in (("GET", "/api/servers"), ("POST", "/api/logout"), ("GET", "/api/activity/stream")):
            status, _, text = raw(instance, method, path, {"Cookie": cookie, "X-CSRF-Token": wrong})
            assert status == 401 and json.loads(text)["failure_mode"] == "unauthenticated"
    # a half in the other one's place is none either
    assert raw(instance, "GET", "/api/me", {"Cookie": f"mcpbox_session={right}",
                                            "X-CSRF-Token": cookie.split("=")[1]})[0] == 401


def test_halves_of_two_logins_do_not_fit(instance):
    a, b = (Rest(lambda: instance.address("admind-http")) for _ in range(2))
    for r in (a, b):
        assert r.login("admin", instance.password)[0] == 200
    assert a.csrf != b.csrf and a.cookie != b.cookie
    for path in ("/api/me", "/api/servers", "/api/activity/stream"):
        assert raw(instance, "GET", path, {"Cookie": a.cookie, "X-CSRF-Token": b.csrf})[0] == 401
    for r in (a, b):
        assert r.get("/api/me")[0] == 200


def test_the_second_half_is_said_once(instance, rest):
    """Neither /api/me nor another answer repeats what login said."""
    for path in ("/api/me", "/api/logins", "/api/administrators/admin", "/api/audit"):
        status, headers, value = rest.get(path)
        assert status == 200
        text = json.dumps([headers, value])
        assert rest.csrf not in text and rest.cookie.split("=")[1] not in text and "csrf" not in text, path


def test_the_tail_as_fetch_reads_it(instance, rest):
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=patience(30))
    c.request("GET", "/api/activity/stream", headers={"Cookie": rest.cookie, "X-CSRF-Token": rest.csrf})
    r = c.getresponse()
    assert r.status == 200 and r.getheader("Content-Type").startswith("text/event-stream")
    c.close()


def test_a_client_of_before_is_told_to_sign_in_again(instance, rest):
    """It kept a cookie, and sent the header with changes alone."""
    for path in ("/api/me", "/api/activity/stream"):
        status, headers, text = raw(instance, "GET", path, {"Cookie": rest.cookie})
        value = json.loads(text)
        assert status == 401 and value["failure_mode"] == "unauthenticated"
        assert "X-CSRF-Token" in value["detail"] and value["fix"].startswith("Sign in again"), value
        assert headers["WWW-Authenticate"].startswith("Session")
    # and of a login that the vault no longer knows
    status, _, text = raw(instance, "GET", "/api/me", {"Cookie": "mcpbox_session=" + "A" * 43, "X-CSRF-Token": "A" * 43})
    assert status == 401 and json.loads(text)["fix"].startswith("Sign in again")


def test_no_login_at_the_name_localhost(instance):
    """A program at [::1] and our port is the same origin to a browser that goes to localhost: it would get both halves."""
    host, port = instance.address("admind-http")
    body = json.dumps({"username": "admin", "password": instance.password}).encode()
    before = logins(instance)
    for name in ("localhost", "LOCALHOST", f"localhost:{port}"):
        status, headers, text = raw(instance, "POST", "/api/login",
                                    {"Content-Type": "application/json", "Host": name}, body)
        said = json.loads(text)
        assert status == 403 and said["failure_mode"] == "forbidden_origin" and "Set-Cookie" not in headers, said
        assert "localhost" in said["detail"] and f"http://{host}" in said["fix"]
    assert logins(instance) == before
    for name in (host, f"{host}:{port}"):
        status, headers, _ = raw(instance, "POST", "/api/login", {"Content-Type": "application/json", "Host": name}, body)
        assert status == 200 and "Set-Cookie" in headers
    assert len(logins(instance)) == len(before) + 2
