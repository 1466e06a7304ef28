"""What a person does with a connection of Playground: lists by pages, calls with progress and questions, prompts, resources, and the
messages that pass; the looks of all that; and text of others that attacks it."""
import json
import re

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import until

from .. import judge
from ..seeds import login
from ..test_hostile import ALL, ANSI, MARKUP, SHOWN, UNSEEN
from .conftest import connect, entries, opened

INSTANCE_PORTS = True
#: Lists come by pages of this size.
INSTANCE_SETS = ("gatewayd-local:page_size=5",)
TELLS = """import mcpbox
def main(rows: int = 3) -> dict:
    mcpbox.log('it begins')
    for n in range(rows):
        mcpbox.progress(n + 1, total=rows, message=f'row {n + 1}')
    return {'rows': rows, 'big': 9007199254740993}
"""
ASKS = "import mcpbox\ndef main() -> str:\n    a = mcpbox.elicit('Whose name?', {'name': str})\n    return f'{a.action} {a.content}'\n"
VISITS = "import mcpbox\ndef main() -> str:\n    return mcpbox.elicit_url('Look there', 'https://example.org/x').action\n"
SLOW = "import mcpbox, time\ndef main():\n    mcpbox.log('it sleeps')\n    time.sleep(600)\n"
FAILS = "import mcpbox\ndef main():\n    raise mcpbox.ToolError('the well is dry')\n"
EVIL = f"""import mcpbox
def main(text: str = '', __proto__: str = '') -> str:
    mcpbox.log({ALL + ANSI!r})
    mcpbox.progress(1, 2, {ALL[:200]!r})
    a = mcpbox.elicit({ALL!r}, {{'constructor': str}})
    return {ALL + ANSI!r} + a.action + __proto__
"""
CODE = {"tells": TELLS, "asks": ASKS, "visits": VISITS, "slow": SLOW, "fails": FAILS, "evil": EVIL}
#: Elements that leave the window, for the message of a failure.
WIDE = """return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth)
    .map(e => `${e.tagName}.${e.className} ${e.ariaLabel ?? ''} ${e.outerHTML.slice(0, 80)}`).slice(0, 12)"""
BOTH = pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module", autouse=True)
def things(instance, rest):
    with Client(instance.address) as c:
        for name, code in CODE.items():
            flow.publish(instance, c, "play", name, code, description=ALL[:2000] if name == "evil" else f"It {name}.")
        [server] = [s["id"] for s in rest.get("/api/servers")[2]["items"] if s["name"] == "play"]
        for tool, fields in (
                ("mcpbox_create_prompt", {"name": "sum", "text": "Sum up {words}.", "description": "Sums up.",
                                          "arguments": [{"name": "words", "description": "The words.", "required": True}]}),
                ("mcpbox_create_resource", {"name": "guide", "uri": "play://guide", "text": "Turn left.\n" + ALL, "description": "Guides."})):
            made = c.manage(tool, server_id=server, **fields)
            request = c.manage("mcpbox_request_publish", tool_id=made["id"])["request_id"]
            shown = instance.ctl_json("approvals", "show", request)
            instance.ctl("approvals", "approve", request, "--hash", shown["hash"])


@pytest.fixture
def connected(play):
    def make(revision="2026-07-28"):
        connect(play, revision)
        return play
    yield make
    if play.all("button", "Disconnect"):
        play.click("button", "Disconnect")
        play.get("button", "Connect")


def pick(page, tool):
    """Chooses a tool, which may be on a later page of the list."""
    page.fill("Find in Tools", "")
    while not page.all("button", "play__" + tool):
        page.click("button", "Fetch more")
        page.drawn()
    page.click("button", "play__" + tool)
    page.get("button", "Call")


def result(page):
    return page.js("return document.querySelector('section[aria-label=Result]')?.innerText ?? ''")


def call(page, tool):
    pick(page, tool)
    page.click("button", "Call")


@BOTH
def test_lists_come_by_pages(connected, revision):
    page = connected(revision)
    names = "return [...document.querySelectorAll('ul[aria-label=Tools] button')].map(e => e.innerText)"
    assert len(page.js(names)) == 5
    page.click("button", "Fetch more")
    until(lambda: len(page.js(names)) == 10, say=page.text)
    assert '"cursor"' in opened(page, ["sent", "tools/list"])["text"]
    page.fill("Find in Tools", "no such words")
    page.see("Nothing here has these words.")


@BOTH
def test_progress_and_logs(connected, revision):
    page = connected(revision)
    pick(page, "tells")
    page.fill("rows", "4")
    page.click("button", "Call")
    until(lambda: "row 4" in result(page) and "it begins" in result(page), say=page.text)
    # A number beyond the browser's own is shown as it was sent.
    page.get("DisclosureTriangle", "Structured content").click()
    until(lambda: "9007199254740993" in result(page), say=page.text)
    assert any("notifications/progress" in e and "received" in e for e in entries(page)), entries(page)


@BOTH
@pytest.mark.parametrize("how,says", [("Answer", "accept {'name': 'Ann'}"), ("Decline", "decline"), ("Cancel", "cancel"), ("Escape", "cancel")])
def test_a_question(connected, revision, how, says):
    page = connected(revision)
    call(page, "asks")
    page.get("dialog", "A tool asks")
    page.see("Whose name?")
    if how == "Answer":
        page.fill("name", "Ann")
    if how == "Escape":
        page.press("Escape")
    else:
        page.all("button", how)[-1].click()
    until(lambda: says in result(page), say=page.text)


def test_a_page_to_visit_is_text(connected):
    page = connected()
    call(page, "visits")
    page.get("dialog", "A tool asks")
    page.see("https://example.org/x")
    assert not page.js("return [...document.querySelectorAll('dialog a')].length")
    page.click("button", "I was there")
    until(lambda: "accept" in result(page), say=page.text)


@BOTH
def test_a_call_is_cancelled(connected, revision, instance):
    page = connected(revision)
    call(page, "slow")
    until(lambda: "it sleeps" in result(page), say=page.text)
    page.click("button", "Cancel the call")
    page.see("The call is cancelled.")
    until(lambda: not instance.runners(), say=instance.runners)


def test_a_failure_of_the_tool(connected):
    page = connected()
    call(page, "fails")
    until(lambda: "the well is dry" in result(page), say=page.text)


def test_raw_arguments(connected):
    page = connected()
    pick(page, "tells")
    page.click("button", "As JSON")
    page.fill("As JSON", json.dumps({"rows": "many"}))
    page.click("button", "Call")
    until(lambda: "invalid_arguments" in result(page), say=page.text)
    assert '"many"' in opened(page, ["sent", "tools/call"])["text"]


@BOTH
def test_a_prompt_and_a_resource(connected, revision):
    page = connected(revision)
    page.click("link", "Prompts")
    page.click("button", "play__sum")
    page.fill("words", "the sky")
    page.click("button", "Get")
    page.see("Sum up the sky.")
    page.click("link", "Resources")
    page.click("button", "play://guide")
    page.click("button", "Read")
    page.see("Turn left.")
    page.see("\\u{202e}")


def test_messages_are_copied_forgotten_and_bounded(connected):
    page = connected()
    page.js("""window.__copied = ''; navigator.clipboard.writeText = t => { window.__copied = t; return Promise.resolve(); }""")
    opened(page, ["sent", "server/discover"])
    page.click("button", "Copy the message")
    page.see("Copied")
    message = json.loads(page.js("return window.__copied"))
    assert message["method"] == "server/discover" and message["jsonrpc"] == "2.0"
    pick(page, "tells")
    page.fill("rows", "90")
    # A call has at most as many reports as its rate lets through.
    for _ in range(100):
        page.click("button", "Call")
        until(lambda: "rows" in result(page) and not page.all("button", "Cancel the call"), say=page.text)
        if "older ones left" in page.text():
            break
    page.see("older ones left")
    assert len(entries(page)) == 20
    page.click("button", "Forget them")
    until(lambda: entries(page) == [], say=page.text)


@BOTH
def test_text_that_attacks(connected, revision):
    page = connected(revision)
    pick(page, "evil")
    page.fill("__proto__", "own")
    page.click("button", "Call")
    page.get("dialog", "A tool asks")
    page.see(MARKUP)
    page.see("\\u{202e}")
    page.fill("constructor", "x")
    page.click("button", "Answer")
    until(lambda: "acceptown" in result(page), say=page.text)
    page.js("document.querySelectorAll('main details:not([open])').forEach(d => { d.open = true })")
    page.drawn()
    assert page.seen() == {"csp": [], "errors": [], "canary": 0}
    assert page.js("return document.querySelectorAll('main img, main iframe, main script, main svg, main object').length") == 0
    assert (found := UNSEEN.findall(page.js(SHOWN))) == [], found
    assert judge.width(page) == [], page.js(WIDE)
    links = page.js("return [...document.querySelectorAll('a')].map(a => a.getAttribute('href') ?? '')")
    assert not [a for a in links if not re.match("#", a)], links


# --- its looks ---

@pytest.fixture
def busy(connected):
    """A connection with a call's result and an open message."""
    page = connected()
    call(page, "tells")
    until(lambda: "row 3" in result(page), say=page.text)
    opened(page, ["received", "answer"])
    page.drawn()
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360, 320])
def test_it_is_whole(busy, width, scheme):
    busy.size(width)
    busy.media(scheme)
    busy.drawn()
    assert busy.axe() == []
    assert judge.width(busy) == []


def test_forced_colours_and_keys(busy):
    busy.media(forced=True, still=True)
    busy.drawn()
    assert busy.axe() == []
    assert judge.keys(busy) == []
    assert judge.motion(busy) == []


@pytest.mark.parametrize("width", [1280, 360])
def test_a_question_is_whole(connected, width):
    page = connected()
    page.size(width)
    call(page, "asks")
    page.get("dialog", "A tool asks")
    assert page.axe() == []
    assert judge.width(page) == []
    page.press("Escape")
    page.gone("dialog")


def test_all_by_keyboard(play):
    """From the form to a result, without a mouse."""
    play.get("combobox", "Connect as").focus()
    for _ in range(10):
        if play.focused() == ("button", "Connect"):
            break
        play.press("Tab")
    play.press("Enter")
    play.get("button", "Disconnect")
    play.get("list", "Tools")
    pick(play, "tells")
    play.get("button", "Call").focus()
    play.press("Enter")
    until(lambda: "row 3" in result(play), say=play.text)
    play.get("button", "Disconnect").focus()
    play.press("Space")
    play.get("button", "Connect")
