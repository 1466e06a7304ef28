"""The page Activity: what happened beside calls, and the live tail."""
import json
import os
import re
import secrets

import pytest

from harness.clients.mcp import Client
from harness.patience import until
from harness.place import SRC

from .played import play, stop
from .seeds import login

NASTY = "\x1b[31m\u202e\u200b<img src=x onerror=__seen.canary++>"
#: As ui/tail.tsx keeps.
LINES_MAX = 200


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture
def nosuch(mcp, rest):
    """The name of a call that was refused, once the log has it."""
    name = "nosuch_" + secrets.token_hex(4)
    assert mcp.call(name).error
    until(lambda: rest.get("/api/activity?tool=" + name)[2]["items"])
    return name


def rows(page):
    return page.js("return [...document.querySelectorAll('.table[aria-label=Activity] tbody tr')].map(r => r.innerText)")


def lines(page):
    return page.js("return [...document.querySelectorAll('.tail li')].map(r => r.innerText.replace(/\\s+/g, ' '))")


def status(page):
    return page.js("return document.querySelector('.live [role=status]').innerText")


def watch(page):
    page.click("button", "Watch")
    page.see("Watching. Nothing happened yet.")


def events(*objects):
    """A stream of events that ends after the last."""
    return "".join(f"data: {json.dumps(o)}\n\n" for o in objects)


def test_each_kind_has_words(page, world):
    with open(os.path.join(SRC, "admind", "watch", "activity.def"), encoding="utf-8") as f:
        kinds = re.findall(r"^A\(\w+, (\w+),", f.read(), re.M)
    page.go("#/activity")
    offered = page.get("combobox", "Kind").js("return [...this.options].map(o => o.value).filter(v => v)")
    assert sorted(offered) == sorted(kinds) and len(kinds) > 5
    page.see("Process came")


def test_filters_narrow_the_list(page, world, nosuch):
    page.go("#/activity")
    page.fill("About", nosuch)
    until(lambda: len(rows(page)) == 1, say=lambda: rows(page))
    for text in ("Call refused", "warning", "no such tool", "local", "this machine"):
        assert text in rows(page)[0], text
    assert page.js("return location.hash") == "#/activity?tool=" + nosuch
    page.choose("Level", "error")
    page.see("Take a filter away to see more.")
    page.choose("Level", "warning")
    page.choose("Kind", "process_up")
    page.see("Take a filter away to see more.")
    page.click("link", "Clear all filters")
    until(lambda: len(rows(page)) > 1)
    page.fill("Why", "No Such")
    page.see("Small letters, digits and _ only")
    assert page.get("searchbox", "Why").value == "No Such" and not page.all("alert")


def test_the_tail_shows_what_happens_while_it_is_open(page, world, mcp):
    page.go("#/activity")
    assert page.get("button", "Watch").attr("aria-pressed") == "false"
    watch(page)
    name = "nosuch_" + secrets.token_hex(4)
    mcp.call(name)
    mcp.call("weather__forecast", {"city": "Oslo"})
    until(lambda: len(lines(page)) == 2, say=lambda: lines(page))
    assert "weather__forecast done local" in lines(page)[0] and f"Call refused warning {name} no such tool local" in lines(page)[1]
    # Screen readers hear a number, and no line.
    page.see("Watching. 2 came.")
    assert page.js("return document.querySelectorAll('[role=status] .tail, .tail [role=status], .tail [aria-live], [aria-live] .tail').length") == 0
    page.js("document.querySelector('.tail a').focus()")
    page.press("Enter")
    page.see("It ran and ended well.")


def test_its_filters_hold_for_the_tail(page, world, mcp):
    page.go("#/activity?kind=call_refused")
    watch(page)
    mcp.call("weather__forecast", {"city": "Oslo"})
    mcp.call("nosuch_tail")
    until(lambda: len(lines(page)) == 1, say=lambda: lines(page))
    assert "nosuch_tail" in lines(page)[0]


def test_new_lines_wait_while_the_reader_is_inside(page, world, mcp):
    page.go("#/activity")
    watch(page)
    mcp.call("weather__forecast", {"city": "Oslo"})
    until(lambda: len(lines(page)) == 1)
    page.js("document.querySelector('.tail a').focus()")
    mcp.call("weather__fails")
    page.see("1 new, held while you read")
    assert len(lines(page)) == 1
    page.click("button", "Show the new ones")
    until(lambda: len(lines(page)) == 2)
    assert "weather__fails" in lines(page)[0]
    page.gone("button", "Show the new ones")


def test_a_lost_connection_is_told_and_made_again(page, world, mcp):
    page.go("#/activity")
    play(page, {"part": "/api/activity/stream", "once": True, "type": "text/event-stream", "body": events(
        {"type": "activity", "kind": "database_up", "level": "info", "at": "2026-11-27T10:00:00.000Z"}, {"type": "dropped", "count": 7},
        {"type": "end", "failure_mode": "busy", "message": "The node was too busy."})})
    page.click("button", "Watch")
    page.see("There was too much to tell: 7 are only in the list.")
    page.see("The connection was away.")
    mcp.call("weather__fails")
    until(lambda: any("weather__fails" in x for x in lines(page)), say=lambda: lines(page))
    assert "Database came" in lines(page)[-1]
    stop(page)


def test_the_tail_is_bounded_and_hides_nothing(page, world):
    hostile = {"type": "activity", "kind": "__proto__", "level": "constructor", "subject": NASTY + "x" * 100_000, "principal": NASTY,
               "failure_mode": "hasOwnProperty", "at": "no time"}
    page.go("#/activity")
    play(page, {"part": "/api/activity/stream", "once": True, "type": "text/event-stream", "body": events(
        *[{"type": "activity", "kind": "process_up", "level": "info", "subject": f"number {n}"} for n in range(2 * LINES_MAX)], hostile)})
    page.click("button", "Watch")
    page.see(f"The newest {LINES_MAX} are shown here.")
    until(lambda: len(lines(page)) == LINES_MAX and "The connection was away" in lines(page)[0], say=lambda: lines(page)[:3])
    top = lines(page)[1]
    assert "\\u{1b}[31m\\u{202e}\\u{200b}<img" in top and "hasOwnProperty" in top and len(top) < 1000
    page.size(320)
    wide = page.js("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], wide
    stop(page)


def test_a_watcher_that_is_too_many_is_told_why(page, world):
    page.go("#/activity")
    play(page, {"part": "/api/activity/stream", "status": 503, "body": {
        "type": "about:blank", "title": "busy", "status": 503, "detail": "16 follow this node already.", "failure_mode": "busy", "fix": "Close one."}})
    page.click("button", "Watch")
    page.see("16 follow this node already. The page tries again by itself.")
    page.click("button", "Stop watching")
    page.see("Not watching.")
    page.not_see("16 follow this node already.")
    stop(page)


def test_a_viewer_sees_and_watches(as_role, world, mcp, nosuch):
    v = as_role("viewer").page
    v.go("#/activity?tool=" + nosuch)
    until(lambda: len(rows(v)) == 1)
    watch(v)
    mcp.call(nosuch)
    until(lambda: len(lines(v)) == 1)
    assert not v.all("alert")
    v.clean()


def test_the_connection_ends_with_the_page(page, world):
    """A tail that is left is not read on: sixteen would shut out all others."""
    for _ in range(20):
        page.go("#/activity")
        page.click("button", "Watch")
        page.see("Watching. Nothing happened yet.")
        page.go("#/")
