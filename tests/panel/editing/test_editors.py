"""Drafts by hand of every kind, with all that a version can say; judged by REST."""
import json
import types

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import until

from ..played import play, stop
from ..seeds import login, tool_id

CODE = 'def main(city: str) -> str:\n    """Tells the sky."""\n    return city\n'
SPEC = {"method": "GET", "url": "https://api.example.org/users/{id}", "parameters": {
    "id": {"in": "path", "schema": {"type": "integer", "maximum": 9007199254740993}}},
    "headers": {"Authorization": "Bearer {secret:API_KEY}"}}
NASTY = "\u202e\u200b<img src=x onerror=__seen.canary++>"
SHOWN = "\\u{202e}\\u{200b}<img src=x onerror=__seen.canary++>"
OPEN = "document.querySelectorAll('main details').forEach(d => { d.open = true; })"


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture(scope="module")
def server(mcp):
    flow.draft(mcp, "desk", "first", CODE, description="Is there.")
    [one] = [s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == "desk"]
    mcp.manage("mcpbox_create_server_secret", server_id=one, key="API_KEY")
    return one


@pytest.fixture
def make(mcp, server):
    """make(name, ...): a draft over MCP, and its editor's address."""
    def draft(name, what="tool", **fields):
        one = mcp.manage("mcpbox_create_" + what, server_id=server, name=name, **fields)["id"]
        return types.SimpleNamespace(id=one, route="#/tools/" + one, edit=f"#/tools/{one}/edit",
                                     change=lambda **f: mcp.manage("mcpbox_update_" + what, **{what + "_id": one}, **f))
    return draft


def newest(rest, one):
    tool = rest.get("/api/tools/" + one)[2]["tool"]
    return rest.get(f"/api/tools/{one}/versions/{tool['version']}")[2]


def opened(page, route, wait="Make the draft"):
    page.go(route)
    page.get("button", wait)
    page.js(OPEN)


def send(page):
    page.click("button", "Make the draft")


def test_a_command_is_drafted_changed_and_tried(page, rest, server):
    opened(page, "#/tools/new?server=" + server)
    page.fill("Name", "search_lines")
    page.fill("Description", "Finds lines.")
    page.choose("Kind", "command")
    page.fill("Program", "/usr/bin/grep")
    for n, word in enumerate(("-n", "--", "{pattern}"), 1):
        page.click("button", "Add to: Arguments of the program")
        page.fill(f"Arguments of the program, {n}", word)
    page.fill("Standard input", "{text}")
    page.fill("Exit codes that are no errors", "1, x")
    send(page)
    assert page.get("textbox", "Exit codes that are no errors").js("return this.validationMessage") == "Whole numbers, with commas between them."
    page.fill("Exit codes that are no errors", "1")
    page.click("button", "Add to: Environment")
    page.fill("Environment, name 1", "LC_ALL")
    page.fill("Environment, value 1", "C")
    send(page)
    page.see("The draft is made.")
    v = newest(rest, tool_id(rest, "desk__search_lines"))
    assert (v["kind"], v["executable"]) == ("command", "/usr/bin/grep")
    assert v["spec"] == {"argv": ["-n", "--", "{pattern}"], "stdin": "{text}", "env": {"LC_ALL": "C"}, "ok_exit_codes": [1]}
    page.js(OPEN)
    page.fill("Arguments of the program, 1", "-i")
    page.click("button", "Move up: Arguments of the program, 2")
    page.click("button", "Remove: Environment, 1")
    send(page)
    page.see("Content, from version 2")
    v = newest(rest, v["tool_id"])
    assert v["spec"] == {"argv": ["--", "-i", "{pattern}"], "stdin": "{text}", "ok_exit_codes": [1]}
    page.fill("pattern", "b")
    page.fill("text", "a\nb\n")
    page.click("button", "Try it")
    page.see("The command ended with exit code 2.")
    until(lambda: rest.get("/api/executions?tool=desk__search_lines&kind=test")[2]["items"], say=page.text)


def test_a_request_is_drafted_and_changed(page, rest, server):
    opened(page, "#/tools/new?server=" + server)
    page.fill("Name", "user")
    page.fill("Description", "Finds a user.")
    page.choose("Kind", "http")
    page.choose("Method", "GET")
    page.fill("Address of the request", "https://api.example.org/users/{id}")
    page.click("button", "Add to: Parameters")
    page.fill("Name of parameter 1", "id")
    page.choose("Place of parameter 1", "path")
    page.fill("Schema of parameter 1", '{"type": "integer", "maximum": 9007199254740993')
    send(page)
    assert page.get("textbox", "Schema of parameter 1").js("return this.validationMessage").startswith("This is no JSON.")
    page.fill("Schema of parameter 1", '{"type": "integer", "maximum": 9007199254740993}')
    page.click("button", "Add to: Fixed headers")
    page.fill("Fixed headers, name 1", "Authorization")
    page.fill("Fixed headers, value 1", "Bearer {secret:API_KEY}")
    send(page)
    page.see("The draft is made.")
    one = tool_id(rest, "desk__user")
    v = newest(rest, one)
    assert (v["kind"], v["spec"], v["secrets"], v["requires"]) == ("http", SPEC, ["API_KEY"], ["api.example.org:443"])
    page.see("A request is not tried")
    page.js(OPEN)
    page.choose("The result is", "json")
    page.fill("Part of the answer", "/data")
    page.fill("Redirects, at most", "2")
    page.fill("Answer, bytes", "2000")
    send(page)
    page.see("Content, from version 2")
    v = newest(rest, one)
    assert v["spec"] == {**SPEC, "response": {"as": "json", "pointer": "/data"}, "redirects": 2, "max_bytes": 2000}
    page.go(f"#/tools/{one}")
    until(lambda: "9007199254740993" in page.get("region", "Request or command, version 2").text, say=page.text)
    page.click("button", "Edit") if page.all("button", "Edit") else page.click("link", "Edit")
    page.click("button", "Specification as JSON")
    assert "9007199254740993" in page.get("textbox", "Specification as JSON").value
    page.fill("Specification as JSON", json.dumps({**SPEC, "method": "HEAD"}))
    send(page)
    page.see("Content, from version 3")
    assert newest(rest, one)["spec"]["method"] == "HEAD"


def test_all_else_of_a_tool_is_edited(page, rest, make):
    tool = make("all_else", python_code=CODE, description="Tells.")
    opened(page, tool.edit)
    assert page.get("button", "Make the draft").js("return this.disabled")
    page.click("checkbox", "API_KEY")
    page.fill("Another host", "api.example.org")
    page.click("button", "Add: Another host")
    page.click("checkbox", "roots")
    page.click("checkbox", "A person agrees to each call")
    page.choose("As a task", "optional")
    page.choose("It only reads", "true")
    page.fill("Title of the annotations", "Sky")
    page.fill("Time, ms", "5000")
    page.fill("Output schema", '{"type": "object", "x": 12345678901234567890')
    send(page)
    assert page.get("textbox", "Output schema").js("return this.validationMessage").startswith("This is no JSON.")
    page.fill("Output schema", '{"type": "object", "properties": {"n": {"type": "integer", "maximum": 9007199254740993}}}')
    page.fill("Icons", '[{"src": "https://example.org/a.png"}]')
    page.fill("Metadata", '{"house/kind": "sky"}')
    page.fill("Title", "The sky")
    page.fill("Name", "all_the_rest")
    send(page)
    page.see("Content, from version 2")
    v = newest(rest, tool.id)
    assert (v["name"], v["title"], v["secrets"], v["requires"], v["client_capabilities"]) == (
        "all_the_rest", "The sky", ["API_KEY"], ["api.example.org"], ["roots"])
    assert (v["confirm"], v["task"], v["annotations"], v["limits"]["timeout_ms"]) == (
        True, "optional", {"readOnlyHint": True, "title": "Sky"}, 5000)
    assert v["output_schema"]["properties"]["n"]["maximum"] == 9007199254740993
    assert (v["icons"], v["meta"]) == ([{"src": "https://example.org/a.png"}], {"house/kind": "sky"})
    page.js(OPEN)
    page.click("checkbox", "API_KEY")
    page.click("checkbox", "A person agrees to each call")
    page.choose("It only reads", "")
    page.fill("Title of the annotations", "")
    page.fill("Time, ms", "")
    send(page)
    assert page.get("spinbutton", "Time, ms").js("return this.validity.valueMissing"), "a limit can't be taken away"
    page.fill("Time, ms", "6000")
    send(page)
    page.see("Content, from version 3")
    v = newest(rest, tool.id)
    assert (v["secrets"], v["confirm"], v["annotations"], v["limits"]["timeout_ms"], v["task"]) == ([], False, {}, 6000, "optional")


def test_a_schema_of_ones_own_and_back(page, rest, make):
    tool = make("own_schema", python_code=CODE)
    made = newest(rest, tool.id)["input_schema"]
    opened(page, tool.edit)
    page.fill("Input schema", json.dumps({"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}))
    send(page)
    page.see("Content, from version 2")
    assert newest(rest, tool.id)["input_schema"]["properties"]["city"]["maxLength"] == 20
    page.js(OPEN)
    page.click("button", "Make the schema again from the content")
    send(page)
    page.see("Content, from version 3")
    assert newest(rest, tool.id)["input_schema"] == made


def test_prompts_and_resources_say_all_they_can(page, rest, make):
    prompt = make("letter", "prompt", text="To {who}.", arguments=[{"name": "who"}])
    opened(page, prompt.edit)
    page.fill("Title of argument 1", "Whom")
    page.click("button", "Add to: Suggested values of argument 1")
    page.fill("Suggested values of argument 1, 1", "Ada")
    send(page)
    page.see("Content, from version 2")
    assert newest(rest, prompt.id)["arguments"] == [{"name": "who", "title": "Whom", "values": ["Ada"]}]
    note = make("note", "resource", uri="desk://note", text="Hello.\n")
    opened(page, note.edit)
    page.fill("Kept by clients, ms", "60000")
    page.fill("MIME type", "text/plain")
    page.click("checkbox", "For people")
    page.fill("Priority", "0.5")
    send(page)
    page.see("Content, from version 2")
    v = newest(rest, note.id)
    assert (v["ttl_ms"], v["mime_type"], v["annotations"]) == (60000, "text/plain", {"audience": ["user"], "priority": 0.5})
    page.click("checkbox", "Python makes the content")
    page.fill("Code", "def main() -> str:\n    return 'now'\n")
    send(page)
    page.see("Content, from version 3")
    v = newest(rest, note.id)
    assert (v["kind"], v["text"], v["python_code"]) == ("python", None, "def main() -> str:\n    return 'now'\n")


def test_a_draft_made_meanwhile_is_not_overwritten(page, rest, make):
    tool = make("meanwhile", python_code=CODE, description="Tells.")
    opened(page, tool.edit)
    page.fill("Description", "Tells more.")
    tool.change(title="Theirs")
    send(page)
    page.click("button", "Read the newest version")
    page.see("Version 2 was made meanwhile by")
    assert page.get("textbox", "Description").value == "Tells more." and page.get("textbox", "Title").value == "Theirs"
    send(page)
    page.see("Content, from version 3")
    v = newest(rest, tool.id)
    assert (v["title"], v["description"]) == ("Theirs", "Tells more.")


def test_hostile_content_shows_and_stays(page, rest, make):
    """A long line, markup and characters without a form: nothing of it runs, what a field hides is said, and a change of
    one word sends none of it."""
    long = "x" * 90_000
    code = f'def main(a: str = r"""{NASTY}""") -> str:\n    b = "{long}"\n    return b\n'
    tool = make("hostile_py", python_code=code, description="Do. " + NASTY, title=NASTY)
    opened(page, tool.edit)
    assert page.get("textbox", "Code").value == code
    notes = "return [...document.querySelectorAll('.unseen')].map(e => e.innerText).join('|')"
    assert page.js(notes).count(SHOWN) == 4, "title, description, code and the schema's default"
    page.fill("Time, ms", "7000")
    send(page)
    page.see("Content, from version 2")
    v = newest(rest, tool.id)
    assert (v["python_code"], v["title"], v["description"]) == (code, NASTY, "Do. " + NASTY)
    shell = make("hostile_sh", kind="command", executable="/usr/bin/echo", description="Echoes.",
                 spec={"argv": [NASTY, "a\nb", "y" * 4000], "env": {"A": NASTY}})
    opened(page, shell.edit)
    assert page.get("textbox", "Arguments of the program, 2").value == "a\nb"
    assert page.js(notes).count(SHOWN) == 2
    page.click("button", "Specification as JSON")
    page.go(shell.route)
    until(lambda: "\\u202e\\u200b<img src=x" in page.get("region", "Request or command, version 1").text, say=page.text)
    for hidden in "\u202e\u200b":
        assert hidden not in page.text()


def test_typed_text_stays_when_the_login_ends(as_role, rest, make):
    person = as_role("administrator")
    page = person.page
    tool = make("kept_text", python_code=CODE, description="Tells.")
    opened(page, tool.edit)
    page.fill("Description", "Half typed.")
    page.fill("Metadata", '{"half')
    for login_ in rest.get("/api/logins")[2]["items"]:
        if login_["username"] == person.name:
            assert rest.request("DELETE", "/api/logins/" + login_["id"])[0] == 204
    page.fill("Metadata", '{"half/kind": 1}')
    send(page)
    page.get("dialog", "Your login is over")
    page.fill("Password", person.password)
    page.all("button", "Sign in")[-1].click()
    page.gone("dialog", "Your login is over")
    assert (page.get("textbox", "Description").value, page.get("textbox", "Metadata").value) == ("Half typed.", '{"half/kind": 1}')
    send(page)
    page.see("Content, from version 2")
    assert newest(rest, tool.id)["meta"] == {"half/kind": 1}


def test_a_tool_of_another_server_says_why_it_is_not_edited(page, rest, make):
    """Its kind is played: the tool is one of this instance."""
    one = make("foreign", python_code=CODE)
    answer = rest.get("/api/tools/" + one.id)[2]
    answer["tool"]["kind"] = "mcp"
    play(page, {"part": "/api/tools/" + one.id, "body": answer})
    page.go(one.edit)
    page.see("This tool is another MCP server's")
    page.get("link", "Sources")
    assert not page.all("button", "Make the draft")
    stop(page)


@pytest.mark.parametrize("kind", ["python", "command", "http", "prompt", "resource"])
def test_each_editor_is_whole(page, make, kind):
    """axe in both schemes, at a desktop's width and a phone's, with every part open."""
    fields = {"python": {"python_code": CODE, "limits": {"timeout_ms": 5000}, "secrets": ["API_KEY"]},
              "command": {"kind": "command", "executable": "/usr/bin/echo", "spec": {"argv": ["a", "{b}"], "env": {"A": "b"}}},
              "http": {"kind": "http", "spec": SPEC},
              "prompt": {"text": "To {who}.", "arguments": [{"name": "who", "values": ["Ada"]}]},
              "resource": {"uri": "desk://whole", "text": "Hello.\n"}}[kind]
    one = make("whole_" + kind, *([kind] if kind in ("prompt", "resource") else []), description="Is whole.", **fields)
    for width, scheme in ((1280, "light"), (360, "dark")):
        page.size(width)
        page.media(scheme)
        opened(page, one.edit)
        assert page.axe() == [], (kind, width, scheme)
        wide = page.js("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], (width, wide)
