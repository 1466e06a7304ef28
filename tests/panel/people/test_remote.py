"""The page Remote: the command that it shows is run as it is shown, and the page sees what it did."""
import json
import re
import subprocess

import pytest

from harness.clients.api_token import where
from harness.clients.mcp import Client
from harness.patience import until

from ..played import play, stop
from ..seeds import login

RESOURCE = "https://mcp.example.org/mcp"
PEOPLE = ["ann@example.org", "bob@example.org"]
#: Kind, its own answers, and what the command must have made.
KINDS = {
    "oidc": ({"Issuer": "https://id.example.org"}, "https://id.example.org"),
    "access": ({"Team": "home", "AUD tag": "a" * 64}, "https://home.cloudflareaccess.com"),
    "worker": ({"Issuer": "https://id.example.org"}, "https://mcp.example.org"),
    "tailscale": ({}, None),
    "token": ({}, None),
}


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(autouse=True)
def as_before(instance, rest):
    yield
    names = [i["name"] for i in (rest.get("/api/access")[2]["document"] or {}).get("issuers", [])]
    names += [t["name"] for t in rest.get("/api/tokens?state=active&limit=200")[2]["items"]]
    for name in names:
        instance.ctl("remote", "remove", name, "--yes")


def shown(page, label):
    """The text of a box to copy, once it is there."""
    return until(lambda: page.js("""return [...document.querySelectorAll('.copy pre')]
        .find(e => e.ariaLabel === arguments[0])?.textContent""", label), say=page.text)


def words_of(command):
    """The words that a shell gives to sudo."""
    r = subprocess.run(["sh", "-c", "sudo() { printf '%s\\0' \"$@\"; }\n" + command], capture_output=True, text=True, check=True)
    assert r.stderr == ""
    return r.stdout.split("\0")[:-1]


def run(instance, command, out):
    """Runs it at the instance, into a directory of the test's."""
    program, *words, last = words_of(command)
    assert (program, words[-1], last) == ("mcpboxctl", "--out", "."), command
    return instance.ctl(*words, str(out), "--yes")


def answer(page, kind, name, **fields):
    page.go("#/remote/new")
    page.choose("How clients come in", kind)
    page.fill("Name", name)
    page.fill("Address for clients", RESOURCE)
    for label, value in fields.items():
        page.fill(label, value)
    if kind in ("oidc", "access", "worker"):
        page.fill("Who may come in", " ".join(PEOPLE))


def test_an_empty_page_teaches(page):
    page.go("#/remote")
    page.see("Nobody comes in from elsewhere")
    page.click("link", "New way in")
    page.get("heading", "New way in")


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_makes_it_and_the_page_sees_it(page, rest, instance, tmp_path, kind):
    fields, issuer = KINDS[kind]
    name = "by-" + kind     # a name means one issuer for good
    answer(page, kind, name, **fields)
    page.click("button", "Show the command")
    page.see("The command has not been run yet.")
    assert shown(page, "Address for clients") == RESOURCE
    run(instance, shown(page, "Command that makes it"), tmp_path)
    assert list(tmp_path.iterdir()), "a file for the proxy"
    page.see("The way in is made. This page waits for the first request by it.")
    page.click("link", "See this way in")
    page.get("heading", name)
    if issuer:
        document = rest.get("/api/access")[2]["document"]
        assert [i["issuer"] for i in document["issuers"]] == [issuer]
        assert document["rules"] == [{"issuer": name, "claim": "email", "values": PEOPLE, "set": name}]
        page.see(issuer)
        page.see("Nobody came yet")
    else:
        [token] = rest.get("/api/tokens?state=active")[2]["items"]
        assert (token["name"], token["listeners"]) == (name, ["tunnel"])
        page.see("not used yet")
    assert shown(page, "Command that checks") == "sudo mcpboxctl remote check " + name


def test_the_first_request_is_seen(page, instance, tmp_path):
    answer(page, "token", "tablet")
    page.choose("Proxy", "caddy")
    page.click("button", "Show the command")
    token = run(instance, shown(page, "Command that makes it"), tmp_path).stdout.strip().splitlines()[-1]
    assert [f.name for f in tmp_path.iterdir()] == ["tablet.caddy"]
    page.see("This page waits for the first request by it.")
    with Client(where(instance), token=token) as c:
        assert c.tools() is not None
    page.see("The first request has come:")
    page.go("#/remote")
    page.see("in use")
    page.click("link", "tablet")
    page.click("link", "Calls by this token")
    assert page.js("return location.hash") == "#/calls?principal=token%3Atablet"


def test_a_set_that_is_there_is_chosen(page, rest, instance, tmp_path):
    sets = [{"name": "guests", "scopes": ["tools:read"], "allow": ["demo__*"]}]
    tag = rest.get("/api/access")[1].get("etag")
    assert rest.request("PUT", "/api/access", {"permission_sets": sets}, {"If-Match": tag})[0] == 200
    answer(page, "oidc", "by-oidc", **KINDS["oidc"][0])
    page.choose("Permission set", "guests")
    page.gone("textbox", "Tools that they may use")
    page.click("button", "Show the command")
    run(instance, shown(page, "Command that makes it"), tmp_path)
    document = rest.get("/api/access")[2]["document"]
    assert document["rules"][0]["set"] == "guests" and [s["name"] for s in document["permission_sets"]] == ["guests"]


def test_wrong_answers_are_said_at_their_fields_and_kept(page):
    page.go("#/remote/new")
    for label, value in {"Name": "Home Box", "Address for clients": "http://mcp.example.org", "Issuer": "id.example.org",
                         "Who may come in": "ann, bob@example.org", "Tools that they may use": ""}.items():
        page.fill(label, value)
    page.click("button", "Show the command")
    for text in ("A name is a small letter", "This is https://HOST/mcp", "An issuer is an https address.", "Each is name@host.",
                 "Name at least one tool"):
        page.see(text)
    assert page.get("textbox", "Name").value == "Home Box" and page.get("textbox", "Who may come in").value == "ann, bob@example.org"
    assert page.get("textbox", "Name").attr("aria-invalid") == "true"
    assert not page.js("return document.querySelector('.copy')")
    page.fill("Name", "home")
    page.not_see("A name is a small letter")


def test_a_name_that_is_taken_is_refused(page, instance, tmp_path):
    instance.ctl("remote", "add", "token", "phone", "--resource", RESOURCE, "--out", str(tmp_path), "--yes")
    answer(page, "token", "phone")
    page.click("button", "Show the command")
    page.see("Another way in has this name.")
    assert not page.js("return document.querySelector('.copy')")


@pytest.mark.parametrize("hostile", ["a'$(touch${IFS}/nowhere)'", '";reboot;"', "`id`", "\\'", "--yes", "$HOME"])
def test_a_shell_takes_each_answer_as_one_word(page, hostile):
    answer(page, "access", "home", **{"Team": "home", "AUD tag": hostile})
    page.click("button", "Show the command")
    words = words_of(shown(page, "Command that makes it"))
    assert words[words.index("--aud") + 1] == hostile
    assert words[:5] == ["mcpboxctl", "remote", "add", "access", "home"]
    assert words[words.index("--email") + 1] == ",".join(PEOPLE)


def test_faults_of_an_issuer_are_shown_as_text(page, rest):
    document = {"resource": RESOURCE, "permission_sets": [{"name": "all", "scopes": ["tools:read"], "allow": ["*"]}],
                "issuers": [{"name": "by-oidc", "issuer": "https://id.example.org", "jwks_url": "https://id.example.org/keys"}],
                "rules": [{"issuer": "by-oidc", "claim": "email", "values": PEOPLE, "set": "all"}]}
    tag = rest.get("/api/access")[1].get("etag")
    status, _, said = rest.request("PUT", "/api/access", document, {"If-Match": tag})
    assert status == 200, json.dumps(said)
    until(lambda: rest.get("/api/access")[2]["keys"][0]["error"])
    page.go("#/remote")
    page.see("faulty")
    page.click("link", "by-oidc")
    page.see(rest.get("/api/access")[2]["keys"][0]["error"][:40])
    assert shown(page, "Address for clients") == RESOURCE


def test_an_escape_sequence_is_not_offered_for_a_terminal(page, rest):
    """A hostile admind names an address that would end a terminal's paste."""
    issuers = [{"name": "by-oidc", "issuer": "https://id.example.org"}]
    play(page, {"part": "/api/access", "body": {**rest.get("/api/access")[2], "in_force": True, "keys": [], "document": {
        "resource": RESOURCE + "\x1b[201~\nreboot\n", "issuers": issuers}}})
    page.go("#/remote/by-oidc")
    page.see(RESOURCE + "\\u{1b}[201~")
    assert shown(page, "Command that checks") == "sudo mcpboxctl remote check by-oidc"
    assert not page.all("button", "Copy: Address for clients") and page.all("button", "Copy: Command that checks")
    stop(page)


def test_others_see_the_ways_and_make_none(as_role, instance, tmp_path):
    instance.ctl("remote", "add", "token", "home", "--resource", RESOURCE, "--out", str(tmp_path), "--yes")
    v = as_role("viewer").page
    v.go("#/remote")
    v.see("API token")
    assert not v.all("link", "New way in") and not v.all("alert")
    v.go("#/remote/new")
    v.see("Only administrators make ways in.")
    assert not v.all("button", re.compile("^Show"))
    v.clean()
