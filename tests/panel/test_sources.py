"""Sources whose tools are known: what came in, what was left out and why, a consent, and words of the other server."""
import json
import secrets

import pytest

from . import played

NAME = "get <b>rain</b>\u202e"
DESCRIPTION = "Rain <img src=x onerror='__seen.canary++'> \u202e"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.fixture
def source(page, rest, instance):
    """A source that was asked, as the database keeps it: (the server's id, the source's id)."""
    name = "s" + secrets.token_hex(3)
    assert rest.request("POST", "/api/servers", {"name": name, "description": ""})[0] == 200
    [at] = [s["id"] for s in rest.get("/api/servers?limit=200")[2]["items"] if s["name"] == name]
    answer = rest.request("POST", f"/api/servers/{at}/sources", {"name": "far", "url": "https://mcp.example.org/mcp", "auth_type": "none"})
    assert answer[0] == 200, answer
    [one] = [s["id"] for s in rest.get("/api/sources?server=" + at)[2]["items"]]
    for upstream, sha in (("ping", "ab"), (NAME, "cd")):
        known = json.dumps({"description": DESCRIPTION, "input_schema": SCHEMA})
        instance.psql(f"INSERT INTO mcpbox.source_tools VALUES ('{one}', $${upstream}$$, repeat('{sha}', 32), $${known}$$)")
    instance.psql("UPDATE mcpbox.external_sources SET tool_count = 2, last_discovered_at = clock_timestamp(),"
                  f" checked_at = clock_timestamp(), last_failure = 'upstream_error', last_error = $${DESCRIPTION}$$ WHERE id = '{one}'")
    yield at, one
    played.stop(page)


def came(rest, at):
    """Tools of the server that were imported as far_ping."""
    return [t for t in rest.get(f"/api/tools?server={at}&limit=200")[2]["items"] if t["name"] == "far_ping"]


def tick(page, name):
    page.get("checkbox", name).click()


def test_chosen_tools_come_in_once(page, rest, source):
    at, one = source
    page.go("#/sources/" + one)
    tick(page, "ping")
    page.click("button", "Import 1")
    page.see("These came in. Each waits for a review:")
    [tool] = came(rest, at)
    assert page.get("link", tool["exposed_name"]).attr("href") == "#/tools/" + tool["id"]
    tick(page, "ping")
    page.click("button", "Import 1")
    page.see("the newest version is the same")
    assert len(came(rest, at)) == 1


def test_words_of_the_source_are_text(page, source):
    _, one = source
    page.go("#/sources/" + one)
    page.see("The last try failed: Rain <img src=x onerror='__seen.canary++'> \\u{202e}")
    page.see("get <b>rain</b>\\u{202e}")
    for summary in page.all("DisclosureTriangle"):
        summary.click()
    page.see("city")


def test_what_changed_there_is_named(page, source):
    _, one = source
    page.go("#/sources/" + one)
    played.play(page, {"part": "/discover", "once": True, "body": {
        "success": True, "source_id": one, "source_name": "far", "protocol": None, "tools": [], "total": 2, "quarantined": ["far__ping"],
        "message": "It has 2 tools."}})
    page.click("button", "Ask for its tools")
    page.see("The source changed these. They stopped, and need a new review:")
    page.see("far__ping")


@pytest.mark.parametrize("url, opens", [
    ("https://as.example.org/authorize?x=1", True), ("http://127.0.0.1:9/a", True), ("http://as.example.org/a", False),
    ("http://127.0.0.1:9@evil.example/a", False), ("javascript:__seen.canary++", False), ("https:", False)])
def test_a_consent_is_a_link_only_to_where_it_may_be(page, rest, source, url, opens):
    _, one = source
    shown = rest.get("/api/sources/" + one)[2]
    oauth = {"status": "none", "issuer": None, "expires_at": None, "refreshable": False}
    played.play(page, {"part": f"/api/sources/{one}/authorise", "body": {
        "source_id": one, "authorization_url": url, "redirect_uri": "", "issuer": "", "expires_at": "2030-01-01T00:00:00Z", "message": ""}},
        {"part": f"/api/sources/{one}/tools", "body": {"items": [], "next_cursor": None}},
        {"part": f"/api/sources/{one}", "body": {**shown, "auth_type": "oauth", "oauth": oauth}})
    page.go("#/sources/" + one)
    page.see("It was not authorised yet.")
    page.click("button", "Authorise")
    if opens:
        link = page.get("link", "Open the consent page")
        assert (link.attr("href"), link.attr("rel"), link.attr("target")) == (url, "noopener noreferrer", "_blank")
        page.see("the browser comes back and says what happened")
    else:
        page.see("so it is no link:")
        assert not page.all("link", "Open the consent page")


def test_a_viewer_reads_and_imports_nothing(as_role, source):
    _, one = source
    v = as_role("viewer").page
    v.go("#/sources/" + one)
    v.see("ping")
    assert not v.all("checkbox") and not v.all("button", "Ask for its tools") and not v.all("button", "Forget") and not v.all("alert")
    v.clean()
