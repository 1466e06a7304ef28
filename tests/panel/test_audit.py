"""The page Audit log: rows, filters, what the browser proves of the chain, and the download."""
import json
import re

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import until

from .played import play, saved, saves, stop
from .seeds import login

NASTY = "\u202e\u200b<img src=x onerror=__seen.canary++>"


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


def rows(page):
    return page.js("return [...document.querySelectorAll('.table[aria-label=\"Audit log\"] > table > tbody > tr')].map(r => r.innerText)")


def log(rest, words=""):
    return rest.get(f"/api/audit?limit=200{words and '&' + words}")[2]["items"]


def test_filters_narrow_the_log(page, world, rest):
    page.go("#/audit?action=tool_approved")
    want = log(rest, "action=tool_approved")
    until(lambda: len(rows(page)) == len(want) > 0)
    assert all("tool approved" in r for r in rows(page))
    page.fill("Object", "tool weather__fails")
    until(lambda: len(rows(page)) == 1)
    page.fill("By", "nobody")
    page.see("No rows here")
    page.click("link", "Clear all filters")
    until(lambda: len(rows(page)) > len(want))
    page.click("link", "server created")
    until(lambda: page.js("return location.hash") == "#/audit?action=server_created" and all("server created" in r for r in rows(page)))


def test_a_detail_is_names_and_values(page, world, rest):
    row = log(rest, "action=tool_approved")[0]
    page.go("#/audit?action=tool_approved")
    page.js("document.querySelector('.table summary').focus()")
    page.press("Enter")
    for name, value in row["detail"].items():
        page.see(name)
        if value not in ("", None):
            page.see(str(value))
    for text in (row["action"], row["at"], row["hash"], row["prev_hash"]):
        page.see(text)
    assert '{"' not in page.js("return document.querySelector('.table details[open]').innerText")


def test_the_browser_checks_the_chain_and_says_what_it_did(page, world, rest):
    page.go("#/audit")
    n = len(rows(page))
    assert n > 5
    page.see(f"computed the SHA-256 of the {n} rows below again")
    page.see(f"Links between neighbours that were compared: {n - 1}.")
    page.see("Not checked here: rows that are not shown, rows missing at the end, and the vault's signatures.")
    page.see("mcpboxctl audit verify")
    assert page.get("region", "Chain").js("return this.querySelector('.state').innerText") == "holds"
    page.see(f"the log has {rest.get('/api/health')[2]['counts']['audit_rows']} rows")
    # Rows that are no neighbours have no link to compare.
    page.go("#/audit?action=server_created")
    page.see("compared: 0.")


def test_the_last_check_of_the_whole_log(instance, page, world):
    page.go("#/audit")
    page.see("mcpboxctl audit verify has not been run yet")
    assert instance.ctl("audit", "verify").returncode == 0
    rows = instance.ctl_json("query", "status")["counts"]["audit_verified"]["rows"]
    page.go("#/")
    page.go("#/audit")
    page.see("Last verified")
    page.see(f"read {rows:,} rows and")
    page.see("without the journal. The chain held.")
    assert page.axe() == []
    # as of a chain that does not hold
    instance.psql("UPDATE mcpbox.audit_verdict SET problems = 3", role="mcpbox_owner")
    page.go("#/")
    page.go("#/audit")
    page.see("found 3 problems. Run it again as root")


@pytest.mark.parametrize("fault,change,says", [
    ("hash", lambda r: r.update(hash="0" * 64), "its bytes have another hash"),
    ("actor", lambda r: r.update(actor="somebody else"), "its bytes say something else than what is shown"),
    ("detail", lambda r: r.update(detail={"reason": "another"}), "its bytes say something else than what is shown"),
    ("time", lambda r: r.update(at="2020-01-01T00:00:00.000Z"), "its bytes say something else than what is shown"),
    ("bytes", lambda r: r.update(row="zz"), "its bytes have another hash"),
    ("link", lambda r: r.update(prev_hash="1" * 64), "it names another hash than the row before has"),
])
def test_a_changed_row_is_named(page, world, rest, fault, change, says):
    items = log(rest)
    change(items[2])
    play(page, {"part": "/api/audit", "body": {"items": items, "next_cursor": None}})
    page.go("#/audit")
    page.see(f"Row {items[2]['seq']:,}: {says}")
    assert page.get("region", "Chain").js("return this.querySelector('.state').innerText") == "broken"
    stop(page)


def test_hostile_rows_are_shown_and_do_nothing(page, world, instance, mcp, rest):
    tool = flow.draft(mcp, "odd", "nasty", "def main() -> int:\n    return 1\n", description="Is rejected.")
    request = mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"]
    answer = rest.request("POST", f"/api/approvals/{request}/reject", {"reason": NASTY})
    assert answer[0] in (200, 204), answer
    items = log(rest, "action=tool_rejected")
    long = dict(items[0], seq=items[0]["seq"] - 1, actor=NASTY, subject="x" * 100_000, action="__proto__",
                detail=json.loads('{"__proto__": {"constructor": 1}, "hasOwnProperty": "%s"}' % ("y" * 100_000)))
    play(page, {"part": "/api/audit", "body": {"items": [items[0], long], "next_cursor": None}})
    page.go("#/audit")
    page.js("for (const d of document.querySelectorAll('.table details')) d.open = true")
    shown = "\\u{202e}\\u{200b}<img src=x onerror=__seen.canary++>"
    assert shown in rows(page)[0] and shown in rows(page)[1]
    for text in ("__proto__", '{"constructor":1}', "hasOwnProperty"):
        assert text in rows(page)[1], text
    page.size(320)
    wide = page.js("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], wide
    stop(page)


def test_all_rows_are_downloaded(page, world, rest):
    page.go("#/audit")
    saves(page)
    page.click("button", "Download all as JSON Lines")
    name, text = until(lambda: saved(page))
    assert name == "audit.jsonl"
    got = [json.loads(x) for x in text.splitlines()]
    assert [r["seq"] for r in got] == list(range(1, len(got) + 1)) and len(got) >= len(rows(page))
    page.go("#/audit?action=server_created")
    saves(page)
    page.click("button", "Download these as JSON Lines")
    _, text = until(lambda: saved(page))
    assert {json.loads(x)["action"] for x in text.splitlines()} == {"server_created"}


def test_a_viewer_is_told_and_sees_no_error(as_role, world):
    v = as_role("viewer").page
    v.go("#/audit")
    v.see("The audit log is for reviewers")
    assert not v.all("alert") and not v.all("button", re.compile("Download"))
    v.clean()
