"""Modules: those of the store with where they came from, and those that are fetched from the index."""
import json
import re

import pytest

from harness.patience import until

SUMMARY = "Helpers <img src=x onerror='__seen.canary++'> \u202e"
URL = "javascript:__seen.canary++"
WHEEL = """INSERT INTO mcpbox.module_wheels (name, version, filename, sha256, url, bytes, about, advisories, execution)
    VALUES ('six', '1.16.0', 'six-1.16.0-py3-none-any.whl', decode(repeat('ab', 32), 'hex'), $${url}$$, 11000, $${about}$$, $${known}$$,
    '00bdaea7-27e7-c8c9-0aae-20999f54b724')"""
NO_INDEX = "no module_index is configured"


@pytest.fixture(scope="module")
def store(world, instance):
    """Modules: one with a weakness that a tool is granted, one that root withdrew."""
    instance.ctl("modules", "add", "six", "1.16.0", "ab" * 32)
    instance.ctl("modules", "grant", "weather__forecast", "six")
    instance.psql(WHEEL.format(
        url=URL, about=json.dumps({"summary": SUMMARY, "license": "MIT", "requires_python": ">=3.8",
                                   "needs": [{"requirement": "colour>=2", "name": "colour", "version": "2.1"}]}),
        known=json.dumps({"known": [{"id": "OSV-2026-7", "aliases": ["CVE-2026-1"], "summary": "it shines too much"}], "more": 2})))
    instance.ctl("modules", "add", "olden", "0.1", "cd" * 32)
    instance.ctl("modules", "withdraw", "olden", "0.1")


def install(rest, name):
    return next((i for i in rest.get("/api/modules/installs")[2]["items"] if i["name"] == name), None)


def test_without_modules_it_says_how_they_come(page):
    """The first test of the file, while there is none."""
    page.go("#/modules")
    page.see("No modules yet")
    page.see("mcpbox_request_module")
    assert page.get("link", "Requests for modules").attr("href") == "#/approvals?state=pending&kind=module"


def test_a_module_is_fetched_and_its_failure_comes_by_itself(page, rest):
    page.go("#/modules")
    page.fill("Name on the index", "yaml")
    page.fill("Version", "6.0.2")
    page.click("button", "Fetch")
    page.see("yaml will be fetched.")
    page.see(NO_INDEX)
    got = install(rest, "yaml")
    assert (got["version"], got["state"]) == ("6.0.2", "failed")
    assert page.get("link", "The installer's run").attr("href") == "#/calls/" + got["execution"]


def test_a_failed_module_is_fetched_again(page, rest):
    assert rest.request("POST", "/api/modules/once-more/install", {})[0] == 200
    before = until(lambda: (i := install(rest, "once-more")) and i["state"] == "failed" and i, say=lambda: install(rest, "once-more"))
    page.go("#/")
    page.go("#/modules")
    page.see("once-more (newest)")
    row = [b for b in page.all("button", "Fetch again") if "once-more" in b.js("return this.closest('tr').innerText")]
    row[0].click()
    page.get("dialog", "Fetch once-more again?")
    page.confirm("Fetch again")
    page.see("once-more will be fetched.")
    until(lambda: install(rest, "once-more")["updated_at"] > before["updated_at"], say=lambda: install(rest, "once-more"))


def test_a_refused_name_is_kept(page, rest):
    page.go("#/modules")
    page.fill("Name on the index", "no such/name")
    page.click("button", "Fetch")
    page.get("alert")
    assert page.get("textbox", "Name on the index").value == "no such/name"
    assert install(rest, "no such/name") is None


def test_a_module_says_where_it_came_from_and_what_is_known(page, store):
    page.go("#/")
    page.go("#/modules")
    page.see("3 known weaknesses")
    page.js("[...document.querySelectorAll('main summary')].find(s => s.innerText === 'six').focus()")
    page.press("Enter")
    page.see("Helpers <img src=x onerror='__seen.canary++'> \\u{202e}")
    for text in (URL, "MIT", "colour>=2", "it shines too much", "CVE-2026-1", "and 2 more"):
        page.see(text)
    assert page.js("return document.querySelectorAll('main img, main a[href^=javascript]').length") == 0
    assert page.axe() == []


def test_a_module_names_the_tools_that_have_it(page, store):
    page.go("#/modules")
    page.see("3 known weaknesses")
    assert page.get("link", "weather__forecast").attr("href") == "#/approvals?state=approved&kind=module&tool=weather__forecast"


def test_withdrawn_modules_are_found(page, store):
    page.go("#/modules")
    page.see("olden")
    page.choose("State", "withdrawn")
    page.not_see("1.16.0")
    page.see("olden")
    assert page.js("return location.hash") == "#/modules?state=withdrawn"


def test_a_viewer_reads_and_fetches_nothing(as_role, store, rest):
    rest.request("POST", "/api/modules/yaml/install", {"version": "6.0.2"})
    until(lambda: install(rest, "yaml")["state"] == "failed", say=lambda: install(rest, "yaml"))
    p = as_role("viewer").page
    p.go("#/modules")
    p.see("3 known weaknesses")
    p.see(NO_INDEX)
    assert p.all("alert") == [] and p.all("button", re.compile("Fetch")) == [] and p.all("textbox") == []
    p.clean()
