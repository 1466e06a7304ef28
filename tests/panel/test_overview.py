"""The first page: it teaches on a fresh installation, then says what waits, what failed, how much is called and whether all
processes are well."""
import re
import subprocess

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import until

URL = "http://127.0.0.1:18002/mcp"
INSTANCE_SETS = (f"admind:mcp_url={URL}",)
HOSTILE = "<img src=x onerror='__seen.canary++'> \u202etxt.exe \u200b"
TABLE = "Show the numbers as a table"


def again(page):
    """Makes the page read again, as it does when it is seen again."""
    page.js("document.dispatchEvent(new Event('visibilitychange'))")


def fresh(page):
    page.open()
    page.drawn()


def links(page, name):
    return [n.attr("href") for n in page.all("link", name)]


@pytest.fixture
def figures(world, rest):
    """The dashboard once the calls of the seeds are counted."""
    def counted():
        d = rest.get("/api/dashboard")[2]
        return d if d["calls"]["calls"] >= 2 and d["calls"]["errors"] >= 1 else None
    return until(counted, say=lambda: rest.get("/api/dashboard"))


def test_a_fresh_installation_teaches(page):
    """The first test of the file, while there is no tool."""
    page.see("No tools yet")
    page.see("claude mcp add --transport http mcpbox " + URL)
    page.see("Ask it: make an mcpbox server")
    assert page.get("region", "Health") and not page.all("region", "Calls over time")
    assert page.js("return document.querySelector('main .empty li:last-child a').hash") == "#/approvals"
    assert page.axe() == []


def test_it_says_what_waits(page, world):
    fresh(page)
    assert links(page, "2 versions") == ["#/approvals?state=pending&kind=tool"]
    assert "#/approvals/" + world.change in links(page, "weather__forecast")
    page.see("The forecast was too sunny.")
    page.click("link", "notes__count")
    assert page.js("return location.hash") == "#/approvals/" + world.request


def test_it_says_what_failed_in_words(page, figures):
    fresh(page)
    page.see("An error of the tool: 1")
    newest = [e["id"] for e in figures["recent_errors"]]
    assert newest and "#/calls/" + newest[0] in [a for n in page.all("link") if (a := n.attr("href"))]
    assert "failure=exception" in links(page, "An error of the tool")[0]


def test_a_chart_is_told_as_a_sentence_and_a_table(page, figures):
    fresh(page)
    calls = figures["calls"]["calls"]
    page.see(f"{calls} calls in the last 24 hours, {figures['calls']['errors']} with an error.")
    page.get("button", TABLE).focus()
    page.press("Enter")
    page.get("button", "Hide the table")
    rows = page.js("""return [...document.querySelector('section[aria-label="Calls over time"] tbody').rows].map(r => [...r.cells].map(c => c.innerText))""")
    assert sum(int(r[1]) for r in rows) == calls and len(rows) == len(figures["calls_over_time"])


def test_the_charts_draw_lines(page, figures):
    fresh(page)
    # Of a copy: the browser warns of a canvas that is read more than once.
    drawn = """return [...document.querySelectorAll('.chart canvas')].map(c => {
        const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});
        copy.drawImage(c, 0, 0);
        return copy.getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; })"""
    until(lambda: len(page.js(drawn)) == 2 and all(page.js(drawn)), say=lambda: page.js(drawn))


def test_a_period_is_in_the_address(page, figures):
    page.choose("Period", "7d")
    page.see("in the last 7 days")
    assert page.js("return location.hash") == "#/?period=7d"
    page.go("#/?period=constructor")
    page.see("in the last 24 hours")


def test_busy_tools_and_servers_lead_on(page, world, figures):
    fresh(page)
    assert "#/servers/" + world.servers["weather"] in links(page, "weather")
    assert any(a.startswith("#/calls?tool=weather__fails") for a in links(page, "weather__fails"))
    tools = page.get("link", re.compile("^Tools that serve"))
    assert f"{figures['tools']['serving']} of {figures['tools']['all']}" in tools.text and tools.attr("href") == "#/tools"


def test_health_names_what_is_away_and_what_to_do(page, world, instance):
    """While it reads again, nothing moves the focus."""
    fresh(page)
    page.see("All processes answer")
    page.see("runs tools, each call in a box of its own")
    page.get("button", re.compile(TABLE + "|Hide the table")).focus()
    before = page.focused()
    service = f"{instance.state}/service/gatewayd-local"
    subprocess.run(["sv", "down", service], check=True, capture_output=True)
    try:
        def seen():
            again(page)
            return "does not answer" in page.text()
        until(seen, step=0.2, say=page.text)
        page.see("Calls may fail now.")
        page.see("Start mcpbox-gatewayd for the local listener.")
        assert page.focused() == before
    finally:
        subprocess.run(["sv", "up", service], check=True, capture_output=True)
        instance.tool("wait")

    def well():
        again(page)
        return "does not answer" not in page.text()
    until(well, step=0.2, say=page.text)
    assert page.focused() == before


def test_new_requests_come_by_themselves_and_hostile_notes_show(page, world, instance, rest):
    fresh(page)
    page.see("Waits for a person")
    waiting = rest.get("/api/dashboard")[2]["pending"]["all"]
    with Client(instance.address) as mcp:
        tool = flow.draft(mcp, "notes", "hostile", "def main() -> int:\n    return 2\n", description=HOSTILE)
        mcp.manage("mcpbox_request_publish", tool_id=tool, notes=HOSTILE)

    def came():
        again(page)
        return page.get("link", re.compile("^Waiting approvals")).text.split()[-1] == str(waiting + 1)
    until(came, step=0.2, say=page.text)
    page.see("<img src=x onerror='__seen.canary++'> \\u{202e}txt.exe \\u{200b}")
    assert page.js("return document.querySelectorAll('main img').length") == 0


def test_a_viewer_sees_it_all(as_role, world, figures):
    p = as_role("viewer").page
    p.see("All processes answer")
    p.see("An error of the tool: 1")
    assert p.all("alert") == [] and links(p, re.compile("version"))
    p.clean()
