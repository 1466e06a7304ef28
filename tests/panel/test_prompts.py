"""Prompts and resources in the panel: the list, drafts by hand, their text and URI, and a viewer."""
import types

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import until

from .seeds import login

NASTY = "\u202e\u200b<img src=x onerror=__seen.canary++>"
SHOWN = "\\u{202e}\\u{200b}<img src=x onerror=__seen.canary++>"


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture(scope="module")
def things(mcp):
    """A tool, a prompt, a resource and a family of resources of one server, all drafts."""
    tool = flow.draft(mcp, "library", "count", "def main() -> int:\n    return 1\n")
    [server] = [s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "library"]

    def make(kind, **fields):
        return mcp.manage("mcpbox_create_" + kind, server_id=server, **fields)["id"]
    return types.SimpleNamespace(
        server=server, tool=tool, make=make,
        prompt=make("prompt", name="summary", description="Sums up.", text="Sum up {words}.",
                    arguments=[{"name": "words", "description": "The words.", "required": True}]),
        resource=make("resource", name="guide", description="Guides.", uri="library://guide", text="Turn left.\n"),
        family=make("resource", name="shelf", uri_template="library://shelf/{number}",
                    python_code="def main(number: str) -> str:\n    return number\n"))


def named(rest, name):
    [row] = [t for t in rest.get("/api/tools?limit=200")[2]["items"] if t["exposed_name"] == name]
    return row


def whole(rest, row, number=None):
    return rest.get(f"/api/tools/{row['id']}/versions/{number or row['version']}")[2]


def test_the_list_has_all_but_tools(page, things):
    page.go("#/prompts")
    for name, kind in (("summary", "Prompt"), ("guide", "Resource"), ("shelf", "Resource template")):
        page.see("library__" + name)
        row = page.get("table", "Prompts and resources").js(
            "return [...this.tBodies[0].rows].find(r => r.innerText.includes(a[0])).innerText", "library__" + name)
        assert kind in row, row
    page.see("library://shelf/{number}")
    assert "library__count" not in page.text()
    page.fill("Words", "guides")
    until(lambda: "library__guide" in page.text() and "library__summary" not in page.text(), say=page.text)
    page.click("link", "library__guide")
    page.see("Turn left.")
    page.see("library://guide")
    page.click("link", "← Prompts and resources")
    page.get("heading", "Prompts and resources")


def test_a_prompt_shows_its_text_and_arguments(page, things):
    page.go("#/tools/" + things.prompt)
    page.see("Sum up {words}.")
    table = page.get("table", "Arguments, version 1").text
    assert "words" in table and "required" in table and "The words." in table, table


def test_a_prompt_is_drafted_changed_and_submitted(page, rest, things):
    page.go("#/prompts")
    page.click("link", "New prompt")
    page.choose("Server", things.server)
    page.fill("Name", "Bad Name")
    page.fill("Description", "Asks for a rhyme.")
    page.click("button", "Add an argument")
    page.fill("Name of argument 1", "topic")
    page.fill("Description of argument 1", "Of the rhyme.")
    page.fill("Text", "Rhyme on {topic}.")
    page.click("button", "Make the draft")
    until(lambda: "name" in (page.get("region", "Result").text if page.all("region", "Result") else page.text()).lower())
    assert page.get("textbox", "Name").value == "Bad Name" and page.get("textbox", "Text").value == "Rhyme on {topic}."
    page.fill("Name", "rhyme")
    page.click("button", "Make the draft")
    page.see("The draft is made.")
    row = named(rest, "library__rhyme")
    first = whole(rest, row)
    assert (row["object"], row["approval_status"], first["text"]) == ("prompt", "draft", "Rhyme on {topic}.")
    assert list(first["input_schema"]["properties"]) == ["topic"] and first["input_schema"]["required"] == ["topic"]
    page.fill("Text", "Rhyme twice on {topic}.")
    page.click("button", "Make the draft")
    page.see("Content, from version 2")
    assert whole(rest, row, 2)["text"] == "Rhyme twice on {topic}."
    page.fill("Notes for the reviewer", "Rhymes are fun.")
    page.click("button", "Ask for review")
    page.see("It waits for a review.")
    page.see("Rhymes are fun.")
    assert named(rest, "library__rhyme")["approval_status"] == "pending_review"


def test_a_resource_is_drafted_and_changed(page, rest, things):
    page.go("#/tools/new?object=resource&server=" + things.server)
    page.fill("Name", "hours")
    page.fill("URI", "no scheme")
    page.fill("MIME type", "text/markdown")
    page.fill("Text", "# Nine to five\n")
    page.click("button", "Make the draft")
    until(lambda: page.all("region", "Result") or page.all("alert") or "uri" in page.text(), say=page.text)
    assert [page.get("textbox", n).value for n in ("Name", "URI", "Text")] == ["hours", "no scheme", "# Nine to five\n"]
    page.fill("URI", "library://hours")
    page.click("button", "Make the draft")
    page.see("The draft is made.")
    row = named(rest, "library__hours")
    assert (row["object"], row["uri"], whole(rest, row)["text"]) == ("resource", "library://hours", "# Nine to five\n")
    page.fill("Text", "# Ten to four\n")
    page.click("button", "Make the draft")
    page.see("Content, from version 2")
    page.go(f"#/tools/{row['id']}/compare?a=1&b=2")
    page.see("Ten to four")


def test_a_family_of_resources_needs_code(page, rest, things):
    page.go("#/tools/new?object=resource&server=" + things.server)
    page.fill("Name", "room")
    page.fill("URI", "library://room/{number}")
    page.see("A family of resources needs code.")
    page.fill("Code", "def main(number: str) -> str:\n    return 'room ' + number\n")
    page.click("button", "Make the draft")
    page.see("The draft is made.")
    row = named(rest, "library__room")
    assert (row["object"], row["uri"], row["kind"]) == ("template", "library://room/{number}", "python")


def test_a_prompt_is_disabled_and_deleted(page, rest, things):
    one = things.make("prompt", name="short_lived", text="Soon gone.")
    page.go("#/tools/" + one)
    page.click("button", "Disable")
    page.fill("Reason", "not now")
    page.confirm("Disable")
    page.see("not now")
    assert named(rest, "library__short_lived")["enabled"] is False
    page.click("button", "Delete")
    page.confirm("Delete")
    page.see("It is deleted.")
    page.get("heading", "Prompts and resources")
    page.choose("State", "deleted")
    page.see("library__short_lived")


def test_hostile_text(page, things):
    one = things.make("prompt", name="nasty", description="Reads. " + NASTY, text="Ignore {constructor}. " + NASTY,
                      arguments=[{"name": "constructor", "description": NASTY}, {"name": "__proto__"}])
    page.go("#/prompts")
    page.see("Reads. " + SHOWN)
    page.go("#/tools/" + one)
    page.see("Ignore {constructor}. " + SHOWN)
    table = page.get("table", "Arguments, version 1").text
    assert "__proto__" in table and SHOWN in table, table
    for hidden in "\u202e\u200b":
        assert hidden not in page.text()


def test_a_viewer_reads_and_changes_nothing(as_role, things):
    page = as_role("viewer").page
    page.go("#/prompts")
    page.see("library__summary")
    assert not page.all("link", "New prompt") and not page.all("link", "New resource")
    page.click("link", "library__summary")
    page.see("Sum up {words}.")
    assert not page.all("link", "Edit") and not page.all("button", "Delete") and not page.all("alert")
    page.clean()
