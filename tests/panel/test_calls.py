"""The page Calls: the list with its filters, figures, download and tail, and one call whole."""
import json
import os
import re

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import until
from harness.place import SRC

from .played import play, saved, saves, stop
from .seeds import login

#: Turns direction, joins, is a terminal's colour, is markup.
NASTY = "\x1b[31m\u202e\u200b<img src=x onerror=__seen.canary++>"
LONG = 100_000
NASTY_CODE = f'''def main(n: int = 1) -> dict:
    """Returns what it likes."""
    print({NASTY!r} + "y" * {LONG})
    if n == 2:
        raise ValueError({NASTY!r})
    return {{"__proto__": {{"constructor": 1}}, "hasOwnProperty": {NASTY!r}, "big": 12345678901234567890}}
'''
TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PAGE = 50


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture(scope="module")
def nasty(instance, mcp):
    return flow.publish(instance, mcp, "odd", "nasty", NASTY_CODE, description="Returns what it likes.")


def calls(rest, words=""):
    return rest.get(f"/api/executions?limit=200{words and '&' + words}")[2]["items"]


def rows(page):
    """The names in the list of calls."""
    return page.js("""return [...document.querySelectorAll('.table[aria-label=Calls] tbody th a')].map(a => a.innerText)""")


def count_is(page, n):
    until(lambda: len(rows(page)) == n and not page.js("return document.querySelector('.loading')"), say=lambda: (n, rows(page), page.text()))


def failure_modes():
    """Names of the modes that a record can have, by the side of the failure."""
    with open(os.path.join(SRC, "common", "base", "failure.def"), encoding="utf-8") as f:
        return re.findall(r'^F\(\w+, "(\w+)",.*, (?:TOOL|PLATFORM), "', f.read(), re.M)


def test_filters_narrow_the_list_and_stand_in_the_address(page, world, rest):
    page.go("#/calls")
    count_is(page, min(PAGE, len(calls(rest))))
    page.fill("Tool", "weather__fails")
    want = calls(rest, "tool=weather__fails&kind=tool")
    page.choose("Kind", "tool")
    count_is(page, len(want))
    assert set(rows(page)) == {"weather__fails"}
    until(lambda: set(re.split("[?&]", page.js("return location.hash"))) == {"#/calls", "tool=weather__fails", "kind=tool"})
    page.choose("Ended", "done")
    page.see("No call fits")
    page.choose("Ended", "failed")
    page.choose("Failure", "exception")
    count_is(page, len(want))
    page.choose("Came by", "tunnel")
    page.see("No call fits")
    page.click("link", "Clear all filters")
    until(lambda: page.js("return location.hash") == "#/calls" and len(rows(page)) > len(want))
    assert page.get("searchbox", "Tool").value == ""


def test_server_words_and_time_are_filters(page, world, rest):
    page.go("#/calls?server=" + world.servers["weather"])
    count_is(page, len(calls(rest, "server=" + world.servers["weather"])))
    page.fill("Words in it", "Oslo")
    page.see("Words are not searched within one server.")
    assert page.get("searchbox", "Words in it").value == "Oslo"
    page.choose("Server", "")
    until(lambda: len(calls(rest, "search=Oslo")) > 0)
    want = len(calls(rest, "search=Oslo"))
    until(lambda: (page.go("#/calls"), page.go("#/calls?search=Oslo"), len(rows(page)) == want)[-1])
    page.go("#/calls?since=2031-01-01T00:00:00.000Z")
    page.see("No call fits")
    assert page.js("return document.querySelectorAll('input[type=datetime-local]')[0].value").startswith("203")


def test_each_failure_of_a_record_has_words_and_a_remedy(page, world):
    page.go("#/calls")
    offered = page.get("combobox", "Failure").js("return [...this.options].map(o => o.value)")
    assert len(failure_modes()) > 20
    assert set(failure_modes()) <= set(offered)


def test_a_name_that_cannot_be_is_said_at_its_field(page, world):
    page.go("#/calls")
    page.fill("Tool", "a b<c")
    page.see("Letters, digits and . _ - @ : * only")
    field = page.get("searchbox", "Tool")
    assert field.value == "a b<c" and field.attr("aria-invalid") == "true"
    assert rows(page) and not page.all("alert")


def test_a_long_list_comes_by_pages(page, world, instance, mcp, rest):
    name = flow.publish(instance, mcp, "many", "often", "def main() -> int:\n    return 1\n", description="Is called often.")
    for _ in range(PAGE + 5):
        assert mcp.call(name).result is not None
    page.go(f"#/calls?tool={name}&kind=tool")
    count_is(page, PAGE)
    page.click("button", "Show more")
    count_is(page, PAGE + 5)
    page.gone("button", "Show more")
    ids = page.js("return [...document.querySelectorAll('.table[aria-label=Calls] tbody th a')].map(a => a.hash.split('/').pop())")
    assert ids == [c["id"] for c in calls(rest, f"tool={name}&kind=tool")]


def test_figures_count_what_the_filters_let_through(page, world, rest):
    def counted():
        total = rest.get("/api/executions/stats?tool=weather__fails&kind=tool")[2]["total"]
        return total if total["calls"] == len(calls(rest, "tool=weather__fails&kind=tool")) else None
    total = until(counted)
    page.go("#/calls?tool=weather__fails&kind=tool")
    part = page.get("region", re.compile("^Figures of "))
    assert f"Calls\n{total['calls']}\n" in part.text and f"With an error\n{total['errors']}\n" in part.text
    page.js("document.querySelector('main details').open = true")
    page.see("By ending")
    page.go("#/calls?failure=exception")
    page.see("Figures are not kept by failure")


def test_one_call_is_whole(page, world, mcp, rest):
    r = mcp.request("tools/call", {"name": "weather__forecast", "arguments": {"city": "Bergen", "days": 1},
                                   "_meta": {"traceparent": f"00-{TRACE}-{SPAN}-01"}})
    assert r.result is not None, r
    one = until(lambda: [c for c in calls(rest, "tool=weather__forecast&kind=tool") if c["trace_id"] == TRACE and c["state"] == "closed"])[0]
    page.go("#/calls?tool=weather__forecast&kind=tool")
    until(lambda: one["id"] in page.js("return document.querySelector('.table[aria-label=Calls] tbody th a').hash"))
    page.js("document.querySelector('.table[aria-label=Calls] tbody th a').focus()")
    page.press("Enter")
    page.see("It ran and ended well.")
    for text in ("Bergen: day 0 is sunny", '"city": "Bergen"', TRACE, SPAN, one["hash"], one["id"], "this machine", one["client"], one["protocol"],
                 "Started", "Waited", "Took", "CPU time", "Deadline", "It printed nothing.", "It made none"):
        page.see(text)
    page.click("button", "As it was sent: Arguments")
    page.see('{"city": "Bergen", "days": 1}')
    page.click("link", "version 1")
    page.get("heading", re.compile("^weather__forecast|^forecast"))
    assert page.js("return location.hash") == f"#/tools/{world.tool}/versions/1"
    page.go("#/calls/" + one["id"])
    page.click("link", "its approval")
    until(lambda: page.js("return location.hash").startswith("#/approvals/"))
    request = page.js("return location.hash").rsplit("/", 1)[1]
    assert rest.get("/api/approvals/" + request)[2]["version_id"] == one["version_id"]


def test_a_failed_call_says_what_to_do(page, world, rest):
    one = calls(rest, "tool=weather__fails&kind=tool")[0]
    page.go("#/calls/" + one["id"])
    page.see("It ran and ended with an error.")
    page.see("an error of the tool")
    page.see("If the code is wrong, change the tool.")
    page.see("ValueError: no such city")


def test_hostile_output_is_shown_and_does_nothing(page, nasty, mcp, rest):
    for n in (1, 2):
        assert mcp.call(nasty, {"n": n}).result is not None
    done, failed = until(lambda: (lambda c: len(c) == 2 and [next(x for x in c if x["outcome"] == o) for o in ("done", "failed")])(
        [x for x in calls(rest, f"tool={nasty}&kind=tool") if x["state"] == "closed"]))
    page.go("#/calls/" + failed["id"])
    page.see("ValueError: \\u{1b}[31m\\u{202e}\\u{200b}<img src=x onerror=__seen.canary++>")
    page.go("#/calls/" + done["id"])
    page.get("region", "Printed")
    printed = page.js("return document.querySelector('pre[aria-label=Printed]').innerText")
    kept = rest.get("/api/executions/" + done["id"])[2]["stdout"]
    assert printed.startswith("\\u{1b}[31m\\u{202e}\\u{200b}<img") and printed.count("y") == kept.count("y") > 60_000
    page.see("The record is cut")
    for text in ('"__proto__"', "12345678901234567890"):
        page.see(text)
    page.click("button", "As it was sent: Result")
    page.see("hasOwnProperty")
    assert page.js("return document.querySelectorAll('main img').length") == 0
    wide = page.js("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]


def test_connections_pictures_and_restored_rows_are_explained(page, world, rest):
    detail = rest.get("/api/executions/" + world.call)[2]
    line = {"host": "api.example", "address": "192.0.2.7", "port": 443, "protocol": "tls", "verdict": "connected", "reason": "",
            "bytes_in": 2048, "bytes_out": 10, "started_ms": 1, "duration_ms": 7}
    refused = {**line, "host": "evil.example" + NASTY, "address": "", "verdict": "refused", "reason": "not granted"}
    picture = {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}], "isError": False}
    play(page, {"part": "/api/executions/" + world.call, "body": {
        **detail, "restored": True, "network": [line, line, refused], "result": json.dumps(picture), "outcome": "lost", "failure_mode": "__proto__"}})
    page.go("#/calls/" + world.call)
    table = page.get("table", "Connections")
    assert table.js("return this.querySelectorAll('tbody tr').length") == 3
    for text in ("api.example:443", "192.0.2.7", "2.0 KiB", "evil.example\\u{1b}[31m\\u{202e}\\u{200b}<img", "not granted"):
        assert text in table.text, text
    page.see("A crash of PostgreSQL lost this row")
    page.see("It may have run.")
    page.see("Content that is not drawn here: image")
    assert page.js("return document.querySelectorAll('main img').length") == 0
    stop(page)


def test_calls_are_downloaded_as_lines(page, world, rest):
    page.go("#/calls?tool=weather__fails")
    saves(page)
    page.click("button", "Download as JSON Lines")
    name, text = until(lambda: saved(page))
    assert name == "calls.jsonl"
    assert [json.loads(x)["id"] for x in text.splitlines()] == [c["id"] for c in calls(rest, "tool=weather__fails")]
    saves(page)
    play(page, {"part": "/api/executions/export", "type": "application/x-ndjson",
                "body": '{"event": "tool"}\n{"event": "export_failed", "message": "PostgreSQL is away."}\n'})
    page.click("button", "Download as JSON Lines")
    page.see("so no file was saved. PostgreSQL is away.")
    assert saved(page) is None
    stop(page)


def test_the_tail_shows_a_call_that_is_made_while_it_is_open(page, world, mcp):
    page.go("#/calls?tool=weather__fails")
    page.click("button", "Watch")
    page.see("Watching. Nothing happened yet.")
    mcp.call("weather__forecast", {"city": "Oslo"})
    mcp.call("weather__fails")
    page.see("Watching. 1 came.")
    tail = page.get("region", "Now")
    assert "weather__fails failed an error of the tool local" in re.sub(r"\s+", " ", tail.text) and "weather__forecast" not in tail.text
    page.click("button", "Stop watching")
    page.see("Not watching.")


def test_a_viewer_sees_calls_and_no_content(as_role, world, rest):
    v = as_role("viewer").page
    v.go("#/calls?tool=weather__forecast&kind=tool")
    until(lambda: rows(v))
    assert not v.all("button", "Download as JSON Lines") and not v.all("searchbox", "Words in it")
    v.js("document.querySelector('.table[aria-label=Calls] tbody th a').click()")
    v.see("Arguments, results, output and connections are for reviewers and administrators.")
    v.see("It ran and ended well.")
    assert not v.all("alert") and "Oslo" not in v.text()
    # An address that somebody sent: the call is among the newest, or it is explained.
    v.open()
    v.drawn()
    v.go("#/calls/" + calls(rest, "tool=weather__fails&kind=tool")[0]["id"])
    v.see("It ran and ended with an error.")
    v.go("#/calls/00000000-0000-0000-0000-000000000000")
    v.see("This call is not among the newest")
    assert not v.all("alert")
    v.clean()
