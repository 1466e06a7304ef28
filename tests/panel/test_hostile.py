"""Names, notes, code, arguments, results and errors that attack the page or its reader. Nothing runs, nothing hides, and the
page asks nobody else. The same text is shown to work on a page that is not the panel."""
import json
import re
import types

import pytest

from harness.clients import flow
from harness.clients.chromium import Pages
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.clients.signed_token import Issuer, Person, document, set_document
from harness.patience import until

from . import seeds
from .pages import PAGES

MARKUP = '<img src=x onerror="window.__seen.canary++"><script>window.__seen.canary++</script><svg onload="window.__seen.canary++">'
LINK = "javascript:window.__seen.canary++"
#: Turns the direction, has no width, or is a letter that nothing draws (a soft hyphen, a tag, a variation).
BIDI = "\u202egnirts\u2066\u200b\ufeff\u200d\u2060\u061c\u00ad\U000e0041\ufe0f\u180e"
#: The same in what a page may not show by itself.
UNSEEN = re.compile("[\x1b\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]")
ANSI = "\x1b[31mred\x1b[0m"
LONG = "long" * 25_000
TEMPLATE = "${window.__seen.canary++} {{constructor.constructor('window.__seen.canary++')()}} %s"
NAMES = "__proto__ constructor toString hasOwnProperty"
ALL = " ".join((MARKUP, LINK, BIDI, TEMPLATE, NAMES))
CODE = f"""def main(text: str = '') -> str:
    # {ALL.replace(chr(0xfeff), '')}
    {'x = ' + repr('y' * 20_000)}
    print({ALL + ANSI!r})
    return {ALL + ANSI!r} + {'z' * 60_000!r}
"""
#: A subject may have all of ASCII but the blank.
SUBJECT = "<img/src=x/onerror=window.__seen.canary++>javascript:__seen.canary++"
RAISES = f"def main() -> str:\n    raise ValueError({ALL + ANSI!r})\n"
#: All that a reader or a screen reader gets of the page. A field that is edited has the text itself, which is not of this.
SHOWN = """
const said = ['title', 'aria-label', 'aria-description', 'alt', 'placeholder', 'label'];
return [document.title, document.body.innerText, ...[...document.querySelectorAll('*')].flatMap(e => said.map(n => e.getAttribute(n) ?? ''))].join('\\n');
"""


def person(instance):
    """Someone of an issuer whose name is markup, and whose requests say what they like."""
    issuer = Issuer()
    got = set_document(instance, document([issuer], ((issuer.name, "any", None, "all"),), {
        "all": {"scopes": ("tools:read", "tools:call"), "allow": ["*"], "deny": []}}))
    assert got["_"] == "ACCESS_STATE", got
    return Person(instance, issuer, SUBJECT, email=SUBJECT[:40] + "@example.org", email_verified=True)


@pytest.fixture(scope="module")
def evil(instance):
    """An instance whose every text of others is hostile."""
    rest = seeds.login(instance)
    made = types.SimpleNamespace(rest=rest, refused=[])

    def put(method, path, body):
        status, _, answer = rest.request(method, path, body)
        if status >= 400:
            made.refused.append((path, answer["detail"]))
    put("POST", "/api/servers", {"name": "evil", "description": ALL})
    [server] = [s["id"] for s in rest.get("/api/servers")[2]["items"] if s["name"] == "evil"]
    with Client(instance.address) as mcp:
        made.tool = flow.draft(mcp, "evil", "attack", CODE, description=ALL[:2000])
        made.request = mcp.manage("mcpbox_request_publish", tool_id=made.tool, notes=ALL[:2000])["request_id"]
        item = flow.pending(instance, "attack")
        rest.request("POST", f"/api/approvals/{made.request}/comments", {"text": ALL[:2000]})
        instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
        flow.publish(instance, mcp, "evil", "raises", RAISES, description=ALL[:2000])
        mcp.call("evil__attack", {"text": ALL + LONG})
        mcp.call("evil__raises")
        mcp.call("evil__attack", {"__proto__": ALL})
        mcp.call(NAMES.split(maxsplit=1)[0], {})
        mcp.manage("mcpbox_update_tool", tool_id=made.tool, python_code=CODE.replace("text: str", "text: str = 'a', more: str"))
        made.waiting = mcp.manage("mcpbox_request_publish", tool_id=made.tool, notes=ALL[:2000])["request_id"]
        made.prompt = mcp.manage("mcpbox_create_prompt", server_id=server, name="speak", description=ALL[:1000], text=ALL)["id"]
    with person(instance).client() as other:
        other.call("evil__attack", {"text": ALL})
        other.call(MARKUP.replace(" ", "/")[:60], {})
    source = rest.request("POST", f"/api/servers/{server}/sources", {"name": "far", "url": "https://mcp.example.org/mcp?a=%3Cscript%3E"})[2]
    made.source = source["id"]
    known = json.dumps({"description": ALL, "input_schema": {"type": "object", "properties": {"__proto__": {"type": "string", "description": ALL}}}})
    for n, name in enumerate((MARKUP, *NAMES.split())):
        instance.psql(f"INSERT INTO mcpbox.source_tools VALUES ('{made.source}', $${name}$$, repeat('a{n}', 32), $${known}$$)")
    instance.psql(f"UPDATE mcpbox.external_sources SET tool_count = 5, last_discovered_at = clock_timestamp(), checked_at = clock_timestamp(),"
                  f" last_failure = 'upstream_error', last_error = $${ALL + ANSI}$$ WHERE id = '{made.source}'")
    # A browser names itself (a head has ASCII alone), and a name that nobody has goes to the audit log.
    for name in ("admin", MARKUP, "constructor"):
        Rest(lambda: instance.address("admind-http")).once("POST", "/api/login", {"username": name, "password": instance.password if name == "admin" else MARKUP},
                                    {"User-Agent": f"{LINK} {MARKUP}"})
    put("POST", "/api/servers/evil/secrets", {"key": "CONSTRUCTOR", "description": ALL})
    put("POST", "/api/servers/{}/network".format(server), {"host": "xn--e1awd7f.example", "justification": ALL})
    put("POST", "/api/tokens", {"name": "constructor", "allow": ["evil__*"]})
    put("POST", "/api/keys", {"name": "constructor", "scopes": ["read"]})
    put("POST", "/api/rate-limits", {"scope": "principal", "subject": "token:constructor", "per_minute": 5})
    put("POST", "/api/tools/{}/disable".format(made.tool), {"reason": MARKUP[:150]})
    made.server = server
    made.call = rest.get("/api/executions?tool=evil__attack&kind=tool")[2]["items"][0]["id"]
    made.error = rest.get("/api/executions?tool=evil__raises&kind=tool")[2]["items"][0]["id"]
    assert not [r for r in made.refused if "comments" not in r[0]], made.refused
    return made


def places(evil):
    return [r for r, _ in PAGES if "{" not in r] + [
        f"#/approvals/{evil.request}", f"#/approvals/{evil.waiting}", f"#/approvals?search={'constructor'}", f"#/tools/{evil.tool}",
        f"#/tools/{evil.tool}/versions/1", f"#/tools/{evil.tool}/compare?a=1&b=2", f"#/tools/{evil.tool}/run", f"#/tools/{evil.tool}/edit",
        f"#/tools/{evil.prompt}", f"#/servers/{evil.server}", f"#/sources/{evil.source}", "#/secrets/evil/CONSTRUCTOR", f"#/calls/{evil.call}", f"#/calls/{evil.error}",
        "#/calls?tool=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "#/access/keys", "#/access/identities", "#/access/document",
        "#/access/endpoints", "#/people/logins", "#/settings/limits", "#/settings/breakers", "#/constructor", "#/__proto__/x",
        "#/%E0%A4%A", "#/calls/%3Cscript%3E"]


def test_the_text_works_elsewhere(chromium, browser):
    """The control: the same text as markup on a page without a policy runs."""
    site = Pages()
    try:
        chromium.open(site.origin)
        browser.js("document.body.innerHTML = arguments[0]", MARKUP)
        until(lambda: browser.js("return window.__seen.canary") > 0)
    finally:
        site.close()
        browser.open()
        browser.drawn()


def test_nothing_runs_and_nothing_leaves(page, evil):
    for where in places(evil):
        page.js("location.hash = arguments[0]", where)
        until(lambda: page.js("return !!document.querySelector('main h1') && !document.querySelector('.loading')"), say=lambda: (where, page.text()[:2000]))
        page.js("document.querySelectorAll('main details:not([open])').forEach(d => { d.open = true })")
        seen = page.seen()
        assert seen["canary"] == 0 and seen["errors"] == [] and seen["csp"] == [], (where, seen)
        links = page.js("return [...document.querySelectorAll('a')].map(a => a.getAttribute('href') ?? '')")
        assert not [a for a in links if not re.match(r"#|https?://", a)], where
        assert page.js("return document.querySelectorAll('main img, main iframe, main script, main svg, main object').length") == 0, where
        assert (found := UNSEEN.findall(page.js(SHOWN))) == [], (where, found)
        wide = page.js("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], (where, wide)
    page.go("#/")


def test_what_hides_is_shown(page, evil):
    page.go(f"#/approvals/{evil.waiting}")
    page.see("\\u{202e}")
    page.see("\\u{200b}")
    assert "<img src=x" in page.text()
    page.go(f"#/calls/{evil.call}")
    page.see("\\u{1b}[31m")
    page.see("\\u{202e}")
    page.go(f"#/tools/{evil.tool}")
    page.see("\\u{202e}")
    page.go(f"#/sources/{evil.source}")
    page.see(MARKUP)
    page.see("\\u{e0041}")
    page.go("#/people/logins")
    page.see("<img src=x")
    page.see("javascript:window")
    for where in ("#/access/identities", "#/calls"):
        page.go(where)
        page.see("oidc:pocket:" + SUBJECT)


def test_an_argument_named_proto_is_an_argument(page, evil, instance):
    """The form sends it as a member of its own, and the tool gets it."""
    with Client(instance.address) as mcp:
        flow.publish(instance, mcp, "evil", "proto", "def main(__proto__: str, constructor: int = 1) -> str:\n    return f'{__proto__} {constructor}'\n")
    page.go(f"#/tools/{seeds.tool_id(evil.rest, 'evil__proto')}/run")
    page.fill("__proto__", "polluted")
    page.fill("constructor", "7")
    page.click("button", "Run")
    page.see("polluted 7")
