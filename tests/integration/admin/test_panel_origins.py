"""The panel at an https name (panel_origins), through contrib/nginx/mcpbox-panel.conf: what of it comes in, and from where;
and that all other names, origins and cookies are refused as before. tests/panel/passkeys has the browser."""
import http.client
import json
import os
import ssl

import pytest

from harness.clients.rest import Rest
from harness.instance import Instance
from harness.net.authority import Authority
from harness.net.nginx import Nginx, PanelNginx
from harness.net.proxy import free_port
from harness.patience import patience

#: The example's.
NAME = "mcpbox.example.org"
PREFIX = "__Host-"


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def origin(port):
    return f"https://{NAME}:{port}"


@pytest.fixture(scope="module")
def instance(origin):
    i = Instance(sets=(f"admind-http:panel_origins={origin},https://other.example",))
    yield i
    i.close()


@pytest.fixture(scope="module")
def authority(instance):
    folder = os.path.join(instance.parent, "tls")
    os.mkdir(folder)
    os.chmod(folder, 0o711)
    return Authority(folder)


@pytest.fixture(scope="module")
def nginx(instance, authority, port):
    n = PanelNginx(instance, tls=authority.of(NAME), port=port)
    yield n
    n.close()


class Named(http.client.HTTPSConnection):
    """A connection to nginx from an address of the inside network; the certificate must be that of the name."""

    def __init__(self, nginx, authority, source):
        super().__init__(NAME, nginx.port, timeout=patience(30), context=ssl.create_default_context(cafile=authority.path))
        self.nginx, self.source = nginx, source

    def connect(self):
        raw = http.client.HTTPConnection(*self.nginx.where(), timeout=patience(30), source_address=(self.source, 0))
        raw.connect()
        self.sock = self._context.wrap_socket(raw.sock, server_hostname=NAME)


@pytest.fixture
def ask(nginx, authority):
    """ask(method, path, body, headers): (status, header fields, value), by https from an inside address."""
    def send(method, path, body=None, headers=None, source="127.0.0.2"):
        c = Named(nginx, authority, source)
        try:
            more = {} if body is None else {"Content-Type": "application/json"}
            c.request(method, path, None if body is None else json.dumps(body), {**more, **(headers or {})})
            r = c.getresponse()
            text = r.read()
            try:
                value = json.loads(text) if text else None
            except ValueError:
                value = text
            return r.status, r.headers, value
        finally:
            c.close()
    return send


def login(ask, instance, origin):
    """Both halves of a login that was made at the name: (cookie, header)."""
    status, headers, value = ask("POST", "/api/login", {"username": "admin", "password": instance.password},
                                 {"Origin": origin, "Sec-Fetch-Site": "same-origin"})
    assert status == 200, value
    made = {c.partition("=")[0]: c for c in headers.get_all("Set-Cookie")}
    assert set(made) == {PREFIX + "mcpbox_session", PREFIX + "mcpbox_device"}
    for c in made.values():
        words = c.split("; ")[1:]
        assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(words), c
        assert not [w for w in words if w.startswith("Domain")], c
    return made[PREFIX + "mcpbox_session"].split(";")[0], value["csrf_token"]


def forbidden(answer):
    status, headers, value = answer
    assert status == 403 and value["failure_mode"] == "forbidden_origin", (status, value)
    assert "set-cookie" not in {k.lower() for k in dict(headers)}


def test_the_page_and_a_login(ask, instance, origin):
    assert ask("GET", "/")[0] == 200
    assert ask("GET", "/api/panel")[2] == {"origins": [origin, "https://other.example"]}
    cookie, half = login(ask, instance, origin)
    status, headers, value = ask("GET", "/api/me", headers={"Cookie": cookie, "X-CSRF-Token": half})
    assert status == 200 and value["username"] == "admin"
    # HSTS is of the proxy's owner, and the policies are those of the address.
    assert headers["Strict-Transport-Security"] is None and "default-src 'none'" in headers["Content-Security-Policy"]
    # half a login is none here either
    assert ask("GET", "/api/me", headers={"Cookie": cookie})[0] == 401
    assert ask("GET", "/api/me", headers={"X-CSRF-Token": half})[0] == 401
    # a name without the prefix could be planted by a page of a neighbouring name
    bare = cookie.removeprefix(PREFIX)
    assert ask("GET", "/api/me", headers={"Cookie": bare, "X-CSRF-Token": half})[0] == 401
    assert ask("GET", "/api/me", headers={"Cookie": bare.replace("=", "=x", 1) + "; " + cookie, "X-CSRF-Token": half})[0] == 200
    status, headers, _ = ask("POST", "/api/logout", {}, {"Cookie": cookie, "X-CSRF-Token": half, "Origin": origin})
    assert status == 204 and headers["Set-Cookie"].startswith(cookie.split("=")[0] + "=; ")


def test_pages_of_others_are_refused(ask, instance, origin):
    cookie, half = login(ask, instance, origin)
    both = {"Cookie": cookie, "X-CSRF-Token": half}
    for wrong in ("https://evil.example", f"http://{NAME}", origin.replace("https", "http"), f"https://{NAME}",
                  "https://other.example", "null", "http://127.0.0.1", f"https://sub.{NAME}"):
        forbidden(ask("POST", "/api/logout", {}, {**both, "Origin": wrong}))
        forbidden(ask("GET", "/api/me", headers={**both, "Origin": wrong}))
    for site in ("cross-site", "same-site", "same-origin, none"):
        forbidden(ask("GET", "/api/me", headers={**both, "Sec-Fetch-Site": site}))
    assert ask("GET", "/api/me", headers=both)[0] == 200


def test_another_name_is_refused_by_mcpbox_itself(ask, port):
    """nginx has one server at that port, and passes the name on."""
    for host in ("evil.example", f"evil.example:{port}", NAME, f"{NAME}:1", f"{NAME}.:{port}", f"{NAME}:{port}.evil.example"):
        answer = ask("GET", "/api/panel", headers={"Host": host})
        assert answer[0] in (400, 403), answer
        assert answer[0] == 400 or answer[2]["failure_mode"] == "forbidden_origin"


def test_fields_of_proxies_count_for_nothing(instance, origin, port):
    """A program of this machine writes them to admind-http itself."""
    rest = Rest(lambda: instance.address("admind-http"))
    body = {"username": "admin", "password": instance.password}
    for more in ({"X-Forwarded-Host": f"{NAME}:{port}"}, {"Forwarded": f"host={NAME}:{port};proto=https"},
                 {"X-Original-Host": f"{NAME}:{port}"}):
        forbidden(rest.request("POST", "/api/login", body, {**more, "Host": "rebound.example"}))
        forbidden(rest.request("POST", "/api/login", body, {**more, "Origin": origin}))
    status, headers, _ = rest.request("POST", "/api/login", body, {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.9"})
    assert status == 200 and "Secure" not in headers["set-cookie"] and PREFIX not in headers["set-cookie"]
    assert "192.0.2.9" not in json.dumps(instance.ctl_json("logins"))


def test_the_address_is_as_before(instance, origin, port):
    """With the list, too: no other name, no https, and no cookie of the name."""
    rest = Rest(lambda: instance.address("admind-http"))
    assert rest.login("admin", instance.password)[0] == 200 and rest.cookie.startswith("mcpbox_session=")
    assert rest.get("/api/me")[0] == 200
    for host in ("evil.example", "localhost.", NAME, f"sub.{NAME}:{port}"):
        forbidden(rest.request("GET", "/api/me", headers={"Host": host}))
    for headers in ({"Origin": origin}, {"Origin": "https://127.0.0.1"}, {"Sec-Fetch-Site": "same-site"}):
        forbidden(rest.request("GET", "/api/me", headers=headers))
    assert rest.request("GET", "/api/me", headers={"Cookie": PREFIX + rest.cookie})[0] == 401
    # A page by http whose name server says 127.0.0.1: it has the name of the list, and neither https nor a cookie.
    rebound = {"Host": f"{NAME}:{port}", "Cookie": None, "X-CSRF-Token": None}
    body = {"username": "admin", "password": instance.password}
    forbidden(rest.request("POST", "/api/login", body, {**rebound, "Origin": f"http://{NAME}:{port}"}))
    assert rest.once("GET", "/api/me", None, rebound)[0] == 401


def test_no_login_at_localhost_with_a_list(instance):
    rest = Rest(lambda: instance.address("admind-http"))
    forbidden(rest.request("POST", "/api/login", {"username": "admin", "password": instance.password}, {"Host": "localhost"}))


def test_the_example_opens_the_panel_alone(ask):
    """And to the inside network alone, without the machine's own address, from which a tunnel's program comes."""
    for path in ("/health", "/metrics", "/mcp", "/panel", "/api", "/.well-known/oauth-protected-resource", "/index.html"):
        assert ask("GET", path)[0] == 404, path
    for source in (PanelNginx.OWN, "127.0.1.1", "127.9.9.9"):
        for path in ("/", "/api/panel", "/api/signin"):
            status, _, value = ask("GET", path, source=source)
            assert status == 403 and b"nginx" in value, (source, path, value)
    assert ask("GET", "/", source="127.0.0.3")[0] == 200


def test_the_tunnel_does_not_lead_to_the_panel(instance, authority, port, ask):
    """mcpbox.conf, which a tunnel leads to, has the panel under no name and no path."""
    n = Nginx(instance, name="tunnel", tls=authority.of("mcp.example.org"))
    try:
        c = http.client.HTTPSConnection(*n.where(), timeout=patience(30), context=ssl._create_unverified_context())
        for host in ("mcp.example.org", f"{NAME}:{port}", NAME, "127.0.0.1:8000"):
            for path in ("/", "/api/panel", "/api/signin", "/panel/main.js", "/api/login"):
                c.request("GET", path, headers={"Host": host})
                r = c.getresponse()
                assert (r.status, b"nginx" in r.read()) == (404, True), (host, path)
        c.close()
    finally:
        n.close()
    assert ask("GET", "/api/panel")[0] == 200


def test_an_events_stream_comes_at_once(nginx, authority, ask, instance, origin):
    cookie, half = login(ask, instance, origin)
    c = Named(nginx, authority, "127.0.0.2")
    try:
        c.request("GET", "/api/activity/stream", headers={"Cookie": cookie, "X-CSRF-Token": half})
        r = c.getresponse()
        assert r.status == 200 and r.headers["Content-Type"].startswith("text/event-stream")
        assert r.fp.readline()
    finally:
        c.close()


def test_the_way_back_from_an_issuer_stays_at_the_name(ask):
    status, headers, _ = ask("GET", "/api/signin/callback?state=" + "x" * 118 + "&code=y", headers={"Sec-Fetch-Site": "cross-site"})
    assert (status, headers["Location"].partition("#")[0]) == (303, "/")
