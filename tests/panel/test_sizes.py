"""The first page is small, its files have hashed names, and the browser keeps them. Where there is much, a page asks for little and
draws little."""
import gzip
import http.client
import re

import psycopg
import pytest

from harness import scale
from harness.clients.visits import PAGES, visit, watch
from harness.patience import until

#: Everything that sign-in and Overview need, as it is sent.
FIRST_PAGE_MAX = 120_000
NAME = re.compile(r"/[\w/]*?[\w.]+-[A-Z0-9a-z]{8,}\.(?:js|css|svg)$")
PAINT_S = 60
#: Of a page where there is much: requests, rows of one answer, bytes of all answers, rows and elements that are drawn. The
#: server's choice has an option for each of 200 servers.
ASKED_MAX, ITEMS_MAX, BYTES_MAX, ROWS_MAX, OPTIONS_MAX, ELEMENTS_MAX = 8, 200, 250_000, 150, 250, 2500
#: Lists that have more than a page here.
LONG = ("approvals", "tools", "servers", "calls", "activity", "audit", "access", "access/keys", "access/identities", "settings/limits")


def fetch(instance, path, **headers):
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=PAINT_S)
    try:
        c.request("GET", path, headers=headers)
        r = c.getresponse()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
    finally:
        c.close()


def paths(page):
    return page.js("""return performance.getEntriesByType('resource').map(e => new URL(e.name)).filter(u => u.protocol !== 'data:'
        && !u.pathname.startsWith('/api/')).map(u => u.pathname)""")


def test_the_first_page_is_small(page, instance):
    page.open()
    page.go("#/")
    files = sorted({"/", *paths(page)})
    assert any(f.endswith(".js") for f in files) and any(f.endswith(".css") for f in files), files
    sizes = {}
    for f in files:
        status, headers, sent = fetch(instance, f, **{"Accept-Encoding": "gzip"})
        assert status == 200, f
        sizes[f] = len(sent)
        plain = fetch(instance, f)[2]
        assert (gzip.decompress(sent) if headers.get("content-encoding") == "gzip" else sent) == plain, f
        if f != "/":
            assert NAME.search(f) and "immutable" in headers["cache-control"], (f, headers)
    print(sum(sizes.values()), sizes)
    assert sum(sizes.values()) <= FIRST_PAGE_MAX, sizes


def test_a_second_visit_fetches_no_file_again(page):
    page.open()
    page.go("#/")
    page.open()
    page.go("#/")
    again = page.js("""return performance.getEntriesByType('resource').filter(e => !e.name.includes('/api/') && !e.name.startsWith('data:')
        && e.transferSize > 0).map(e => e.name)""")
    assert again == []


@pytest.fixture(scope="module")
def much(browser, instance):
    """More of everything than a page shows, and than the bounds allow to be drawn."""
    with psycopg.connect(f"host={instance.run('postgresql')} user=postgres dbname=mcpbox", autocommit=True) as db:
        scale.fill(db, tools=2000, executions=20_000, audit=500)
        for table in ("approval_requests WHERE state = 'pending'", "tools", "executions", "activity", "audit_log", "api_tokens", "script_keys",
                      "identities", "rate_limits"):
            assert db.execute(f"SELECT count(*) FROM mcpbox.{table}").fetchone()[0] > ROWS_MAX, table
    watch(browser)


@pytest.mark.parametrize("where", PAGES)
def test_a_page_asks_and_draws_little(page, much, where):
    got = visit(page, where)
    told = {k: v for k, v in got.items() if k != "ms"}
    assert got["asked"] and {a["status"] for a in got["asked"]} == {200}, told
    assert len(got["asked"]) <= ASKED_MAX and max(a["items"] for a in got["asked"]) <= ITEMS_MAX, told
    assert sum(a["bytes"] for a in got["asked"]) <= BYTES_MAX, told
    assert got["rows"] <= ROWS_MAX and got["options"] <= OPTIONS_MAX and got["elements"] <= ELEMENTS_MAX, told


@pytest.mark.parametrize("place", LONG)
def test_a_long_list_comes_by_pages(page, much, place):
    """One more page is one more request, and as many rows again. Counts that are read each half minute are none of it."""
    first = visit(page, "#/" + place)
    page.js("__asked.done = []")
    page.click("button", "Show more")
    rows = until(lambda: (n := page.js("return document.querySelectorAll('main tbody tr, main li').length")) > first["rows"] and n)
    [asked] = [a for a in page.js("return __asked.done") if "cursor=" in a["to"]]
    [before] = [a for a in first["asked"] if a["to"].split("?")[0] == asked["to"].split("?")[0]]
    assert asked["items"] == before["items"] <= ROWS_MAX
    assert rows == first["rows"] + asked["items"]
