"""GET / of the admin port where no panel is installed: a plain page, the same for everybody.
test_panel_files.py has the panel's."""
import html.parser
import http.client

import pytest

from harness.clients.rest import Rest
from harness.patience import patience

#: Also where the build that is tested has a panel.
INSTANCE_SETS = ("admind-http:panel=-",)
PATHS = ("/index.html", "/panel", "//", "/.", "/..", "/api", "/api/", "/favicon.ico", "/%2f", "/health/", "/x",
         "/panel/", "/panel/index.html", "/panel/main-12345678.js")


def ask(instance, method="GET", path="/", **headers):
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=patience(30))
    try:
        c.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
    finally:
        c.close()


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.words = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("href", "src", "action")]
        assert not [k for k, _ in attrs if k.startswith("on") or k == "style"], attrs

    def handle_data(self, data):
        self.words += data


def test_a_page_to_read(instance):
    status, headers, body = ask(instance)
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8"
    policy = {d.split()[0]: d.split()[1:] for d in headers["content-security-policy"].split("; ")}
    assert policy == {w: ["'none'"] for w in ("default-src", "frame-ancestors", "base-uri", "form-action")}
    assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store" and "set-cookie" not in headers
    page = Page(body.decode())
    assert not set(page.tags) & {"script", "style", "form", "iframe", "img", "link", "object", "base", "svg"}
    assert sorted(page.links) == ["/api/health", "/health"]
    for word in ("mcpbox", "-Dpanel=enabled", "admind-http.conf", "mcpboxctl approvals show", "mcpboxctl status", "X-CSRF-Token", "/api/login",
                 "openapi.yaml"):
        assert word in page.words, word


def test_its_links_lead_somewhere(instance, rest):
    assert ask(instance, path="/health")[0] == 200
    assert ask(instance, path="/api/health")[0] == 401      # as the page says
    assert rest.get("/api/health")[0] == 200


def test_it_is_the_same_for_everybody(instance, rest):
    """Nothing of a request or a login is in it, also where a link of another site leads to it."""
    _, _, body = ask(instance)
    for headers in ({"Cookie": rest.cookie, "X-CSRF-Token": rest.csrf}, {"Sec-Fetch-Site": "cross-site"},
                    {"Accept": "application/json"}, {"Accept-Language": "<b>de</b>"}):
        assert ask(instance, **headers)[::2] == (200, body), headers


def test_head(instance):
    status, headers, body = ask(instance, "HEAD")
    whole = ask(instance)
    assert (status, body) == (200, b"") and int(headers["content-length"]) == len(whole[2])
    assert headers["content-type"] == whole[1]["content-type"]
    assert headers["content-security-policy"] == whole[1]["content-security-policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods(instance, method):
    status, headers, _ = ask(instance, method)
    assert status == 405 and headers["allow"] == "GET, HEAD"
    assert headers["content-type"] == "application/problem+json"


def test_other_addresses_are_unknown(instance):
    r = Rest(lambda: instance.address("admind-http"))
    for path in PATHS:
        status, headers, value = r.get(path)
        assert status == 404 and headers["content-type"] == "application/problem+json", path
        assert value["failure_mode"] == "not_found", path
    status, _, value = r.get("/?x=%3Cscript%3E")
    assert status == 400 and value["failure_mode"] == "invalid_params"


def test_other_names_and_origins_get_none(instance):
    for headers in ({"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Origin": "http://evil.example"},
                    {"Origin": "null"}):
        assert ask(instance, **headers)[0] == 403, headers


def test_localhost_is_sent_on_to_the_address(instance):
    """A program at [::1] and our port would be the same origin to a browser that goes to localhost."""
    for host, to in (("localhost", "http://127.0.0.1/"), ("localhost:8000", "http://127.0.0.1:8000/"),
                     ("LOCALHOST:1", "http://127.0.0.1:1/")):
        for method in ("GET", "HEAD"):
            status, headers, _ = ask(instance, method, Host=host)
            assert status == 307 and headers["location"] == to
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
