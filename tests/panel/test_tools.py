"""Tools in the panel: lists, versions, comparison, and every change that the page offers, judged by REST or by a client."""
import json
import types

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.patience import until

from .seeds import login, tool_id

ONE = 'def main(city: str, days: int = 3) -> str:\n    """Tells the sky."""\n    return f"{city} is sunny"\n'
TWO = ONE.replace("sunny", "rainy")
#: Turns direction, has no width, is markup, and looks like an escape.
NASTY = "\u202e\u200b<img src=x onerror=__seen.canary++>\\u{61}"
SHOWN = "\\u{202e}\\u{200b}<img src=x onerror=__seen.canary++>\\u{5c}u{61}"
ADMINISTERS = ("Disable", "Revoke approval", "Rename or describe", "Delete old drafts", "Delete", "Draft from this")


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture
def tool(instance, mcp, rest, request):
    """An approved tool of a test's own."""
    name = request.node.name.split("[")[0][5:].replace("_and_", "_")[:40].strip("_")
    exposed = flow.publish(instance, mcp, "sky", name, ONE, description="Tells the sky.")
    one = tool_id(rest, exposed)
    return types.SimpleNamespace(id=one, name=name, exposed=exposed, route="#/tools/" + one,
                                 change=lambda **fields: mcp.manage("mcpbox_update_tool", tool_id=one, **fields))


def read(rest, tool):
    return rest.get("/api/tools/" + tool.id)[2]["tool"]


def version(rest, tool, number):
    return rest.get(f"/api/tools/{tool.id}/versions/{number}")[2]


def opened(page, tool):
    page.go(tool.route)
    page.see("Serves: version 1")


def agree(page, verb):
    """Presses the button of the open dialog that does it."""
    page.get("dialog")
    page.confirm(verb)


def rows(page, table):
    return page.get("table", table).js("return [...this.tBodies[0].rows].map(r => r.cells[0].querySelector('a').innerText)")


def test_the_list_is_filtered(page, rest, mcp, tool):
    other = flow.draft(mcp, "notes", "unfinished", "def main() -> int:\n    return 1\n", description="Counts clouds.")
    page.go("#/tools")
    until(lambda: {tool.exposed, "notes__unfinished"} <= set(rows(page, "Tools")), say=page.text)
    page.choose("State", "draft")
    until(lambda: tool.exposed not in page.text() and "notes__unfinished" in page.text(), say=page.text)
    page.choose("State", "")
    page.fill("Words", "tells " + tool.name)
    until(lambda: rows(page, "Tools") == [tool.exposed], say=page.text)
    page.fill("Words", "no such words")
    page.see("Nothing matches")
    page.click("link", "Show all")
    page.choose("Server", rest.get("/api/tools/" + other)[2]["tool"]["server_id"])
    until(lambda: set(rows(page, "Tools")) == {"notes__unfinished"}, say=page.text)
    page.get("link", "notes__unfinished").click()
    page.see("Newest: version 1")


def test_a_tool_is_disabled_and_enabled(page, rest, mcp, tool):
    opened(page, tool)
    page.click("button", "Disable")
    page.fill("Reason", "until the author answers")
    agree(page, "Disable")
    page.see("The tool is disabled.")
    now = read(rest, tool)
    assert (now["enabled"], now["disabled_by"], now["disabled_reason"]) == (False, "admin", "until the author answers")
    page.see("until the author answers")
    assert "until the author answers" in str(mcp.request("tools/call", {"name": tool.exposed, "arguments": {"city": "Oslo"}}))
    page.click("button", "Enable")
    agree(page, "Enable")
    page.see("The tool is enabled.")
    assert read(rest, tool)["enabled"] is True
    assert text(mcp.call(tool.exposed, {"city": "Oslo"})) == "Oslo is sunny"


def test_an_approval_is_revoked(page, rest, mcp, tool):
    opened(page, tool)
    page.click("button", "Revoke approval")
    page.fill("Reason", "it guesses")
    agree(page, "Revoke approval")
    page.see("The approval is revoked.")
    now = read(rest, tool)
    assert (now["callable"], now["serving_version"], now["approval_status"]) == (False, None, "revoked")
    page.gone("button", "Revoke approval")
    page.see("Newest: version 1")
    assert "error" in str(mcp.request("tools/call", {"name": tool.exposed, "arguments": {"city": "Oslo"}}))


def test_an_older_version_becomes_a_draft(page, rest, tool):
    tool.change(python_code=TWO)
    opened(page, tool)
    page.click("button", "Draft from this")
    agree(page, "Draft from this")
    page.see("A draft with the content of version 1 is made.")
    now = read(rest, tool)
    assert (now["version"], now["serving_version"], now["approval_status"]) == (3, 1, "draft")
    third = version(rest, tool, 3)
    assert (third["python_code"], third["change_source"]) == (ONE, "rollback")
    page.see("Newest: version 3")
    assert page.get("link", "version 3")


def test_old_drafts_are_deleted(page, rest, tool):
    for n in range(14):
        tool.change(python_code=ONE + f"# {n}\n")
    opened(page, tool)
    page.click("button", "Delete old drafts")
    page.fill("Keep the newest", "3")
    agree(page, "Delete old drafts")
    assert page.get("spinbutton", "Keep the newest").js("return this.validity.rangeUnderflow")
    page.fill("Keep the newest", "10")
    agree(page, "Delete old drafts")
    page.see("4 versions are deleted.")
    left = [v["version"] for v in rest.get(f"/api/versions?tool={tool.id}&limit=200")[2]["items"]]
    assert left == [*range(15, 5, -1), 1]
    page.gone("link", "version 5")


def test_a_module_is_taken_back(instance, page, rest, mcp, tool):
    instance.ctl("modules", "add", "six", "1.16.0", "ab" * 32)
    instance.ctl("modules", "grant", tool.exposed, "six")
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool.id)["modules_granted"] == ["six==1.16.0"]
    tool.change(modules=["six"])
    opened(page, tool)
    page.click("button", "Take back six")
    agree(page, "Take back six")
    page.see("The module six is taken back.")
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool.id)["modules_granted"] == []
    page.gone("button", "Take back six")


def test_a_new_name_title_and_description_make_a_draft(page, rest, mcp, tool):
    """A name that is taken is refused, and what was typed stays."""
    flow.draft(mcp, "sky", "taken", ONE)
    opened(page, tool)
    page.click("button", "Rename or describe")
    until(lambda: page.all("textbox", "Title") and not page.get("textbox", "Title").js("return this.disabled"), say=page.text)
    page.fill("Name", "taken")
    page.fill("Title", "The sky")
    page.fill("Description", "Tells the sky of a city.")
    agree(page, "Make the draft")
    page.get("alert")
    assert read(rest, tool)["version"] == 1
    assert [page.get("textbox", n).value for n in ("Name", "Title", "Description")] == ["taken", "The sky", "Tells the sky of a city."]
    page.fill("Name", tool.name + "_2")
    agree(page, "Make the draft")
    page.see("The draft is made.")
    now, second = read(rest, tool), version(rest, tool, 2)
    assert (now["serving_version"], now["approval_status"]) == (1, "draft")
    assert (second["name"], second["title"], second["description"]) == (tool.name + "_2", "The sky", "Tells the sky of a city.")


def test_a_change_of_something_older_is_refused(page, rest, tool):
    opened(page, tool)
    tool.change(python_code=TWO)
    page.click("button", "Rename or describe")
    page.fill("Description", "Tells nothing.")
    agree(page, "Make the draft")
    assert "412" in page.get("alert").text
    assert page.get("textbox", "Description").value == "Tells nothing."
    assert read(rest, tool)["version"] == 2


def test_a_tool_is_deleted(page, rest, mcp, tool):
    opened(page, tool)
    page.click("button", "Delete")
    page.get("dialog", f"Delete {tool.exposed}?")
    page.press("Escape")
    page.gone("dialog")
    assert read(rest, tool)["callable"]
    page.click("button", "Delete")
    agree(page, "Delete")
    page.see("It is deleted.")
    page.get("heading", "Tools")
    assert tool.exposed not in mcp.tools()
    page.choose("State", "deleted")
    page.see(tool.exposed)
    page.click("link", tool.exposed)
    page.see("deleted")
    assert not any(page.all("button", b) for b in ADMINISTERS)


def test_any_two_versions_are_compared(page, tool):
    tool.change(python_code=TWO)
    tool.change(description="Tells more.", python_code=ONE + "# the end\n")
    page.go(tool.route + "/compare?a=1&b=2")
    removed = "return [...this.querySelectorAll('del')].map(e => e.innerText).join(' ')"
    page.see("rainy")
    assert "sunny" in page.get("region", "Code, before and after").js(removed)
    page.choose("After", "3")
    until(lambda: "# the end" in page.text() and "rainy" not in page.text(), say=page.text)
    page.see("Tells more.")
    assert page.js("return location.hash").endswith("a=1&b=3")
    page.choose("Before", "3")
    page.see("Both have the same content.")
    page.click("link", "← The tool")
    page.see("Serves: version 1")


def test_each_member_that_differs_is_compared(page, tool):
    tool.change(confirm=True, limits={"cpu_ms": 700}, icons=[{"src": "https://example.org/a.png"}], client_capabilities=["roots"])
    page.go(tool.route + "/compare?a=1&b=2")
    for what in ("A person agrees to each call", "Limits", "Icons", "https://example.org/a.png", "Needs of the client", "roots"):
        page.see(what)
    page.not_see("Both have the same content.")
    page.not_see("The contents differ in what this page does not get")


def test_a_version_is_shown_whole(page, tool):
    tool.change(python_code=TWO, limits={"timeout_ms": 5000})
    opened(page, tool)
    page.click("link", "version 2")
    page.see("rainy")
    page.not_see("sunny")
    page.see("5,000")
    table = page.get("table", "Arguments, version 2").text
    assert "city" in table and "required" in table and "integer" in table and "3" in table, table


def test_a_tool_is_run(page, rest, mcp, tool):
    opened(page, tool)
    page.click("link", "Run")
    page.fill("city", "Oslo")
    page.fill("days", "many")
    page.click("button", "Run")
    page.see("days")
    assert page.get("textbox", "city").value == "Oslo"
    page.fill("days", "2")
    page.click("button", "Run")
    page.see("Oslo is sunny")
    page.get("link", "Its record")

    def last():
        return rest.get(f"/api/executions?tool={tool.exposed}&kind=tool&limit=1")[2]["items"][0]
    until(lambda: last()["outcome"] == "done", say=last)    # the record follows the answer
    assert last()["principal"] == "admin"


def test_a_tool_is_drafted_tried_and_submitted(page, rest, mcp, tool):
    """From an empty form to the page of its review. Bad code is refused and stays in the form."""
    page.go("#/tools/new")
    page.choose("Server", read(rest, tool)["server_id"])
    page.fill("Name", "by_hand")
    page.fill("Description", "Greets.")
    page.fill("Code", "def main(name: str) -> str\n")
    page.click("button", "Make the draft")
    page.see("line 1")
    assert page.get("textbox", "Code").value == "def main(name: str) -> str\n"
    page.fill("Code", "def main(name: str) -> str:\n    return 'hello ' + name\n")
    page.click("button", "Make the draft")
    page.see("The draft is made.")
    page.see("Try version 1")
    page.fill("name", "Ada")
    page.click("button", "Try it")
    page.see("hello Ada")
    page.fill("Description", "Greets a person.")
    page.click("button", "Make the draft")
    page.see("Try version 2")
    page.fill("Notes for the reviewer", "A greeting is polite.")
    page.click("button", "Ask for review")
    page.see("It waits for a review.")
    page.see("A greeting is polite.")
    [item] = rest.get("/api/approvals?tool=sky__by_hand")[2]["items"]
    assert (item["state"], item["requested_by"]) == ("pending", "admin")
    assert page.js("return location.hash").endswith(item["id"])


def test_hostile_text(page, mcp, tool):
    """It is text, and what has no form of its own shows."""
    code = f'def main(city: str = r"""{NASTY}""", constructor: str = "x", __proto__: str = "y") -> str:\n    return city\n'
    tool.change(python_code=code, description="Do. " + NASTY, title=NASTY)
    page.go("#/tools")
    page.see("Do. " + SHOWN)
    opened(page, tool)
    page.see("Do. " + SHOWN)
    until(lambda: SHOWN in page.get("region", "Code, version 2").text, say=page.text)
    table = page.get("table", "Arguments, version 2")
    assert all(w in table.text for w in ("constructor", "__proto__", "\\u{202e}")), table.text
    page.go(tool.route + "/compare?a=1&b=2")
    page.see("__proto__")
    page.see(SHOWN)
    for hidden in "\u202e\u200b":
        assert hidden not in page.text()
    page.go(tool.route + "/edit")
    assert json.dumps(page.get("textbox", "Code").value) == json.dumps(code)


def test_a_viewer_reads_and_changes_nothing(as_role, rest, tool):
    tool.change(python_code=TWO)
    page = as_role("viewer").page
    page.go("#/tools")
    page.see(tool.exposed)
    assert not page.all("link", "New tool")
    opened(page, tool)
    page.see("Newest: version 2")
    assert not any(page.all("button", b) for b in ADMINISTERS)
    assert not page.all("link", "Run") and not page.all("link", "Edit")
    page.click("link", "Compare what serves with the newest")
    page.see("rainy")
    assert not page.all("alert")
    page.clean()


def test_each_page_of_a_tool_is_whole(page, tool):
    """As test_every_page.py judges the lists: axe, in both schemes, and 320 px."""
    tool.change(python_code=TWO, description="Tells the rain.")
    for where in ("", "/edit", "/run", "/compare?a=1&b=2", "/versions/2"):
        whole(page, tool.route + where)


@pytest.mark.parametrize("object_", ["tool", "prompt", "resource"])
def test_a_form_of_something_new_is_whole(page, object_):
    whole(page, "#/tools/new?object=" + object_)


def whole(page, route):
    for width, scheme in ((1280, "light"), (320, "dark")):
        page.size(width)
        page.media(scheme)
        page.go(route)
        page.get("heading")
        for button in page.all("button", "Add an argument"):
            button.click()
        assert page.axe() == [], (route, width, scheme)
        wide = page.js("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], (width, wide)
