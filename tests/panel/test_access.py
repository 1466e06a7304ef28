"""API tokens, keys, people, the access document, administrators and the own account, by clicks; effects are checked by REST."""
import http.client
import json
import re
import secrets

import pytest

from harness.clients.api_token import where
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import until
from harness.proof import age, boot_ms

from . import seeds


def name_of(prefix):
    return prefix + secrets.token_hex(3)


def opened(page, summary):
    page.get("DisclosureTriangle", summary).click()


def stale(page, instance, since):
    """Makes the proof of the page's login too old."""
    half = page.js("return sessionStorage.getItem('mcpbox-half')")
    [cookie] = [c["value"] for c in page.cdp("Network.getAllCookies")["cookies"] if c["name"] == "mcpbox_session"]
    age(instance.service_pid("admind-vault"), cookie + half, since)


def test_a_token_is_made_shown_once_and_works(page, rest, instance):
    name = name_of("t")
    page.go("#/access/tokens")
    opened(page, "Make a token")
    page.fill("Name", name)
    page.click("button", "Make the token")
    page.see("It is shown this once")
    token = page.js("return document.querySelector('.secret').textContent")
    assert re.fullmatch(r"mbt_[\w-]{43}", token)
    with Client(where(instance), token=token) as c:
        assert c.tools() is not None
    page.go("#/access/keys")
    page.go("#/access/tokens")
    assert token not in page.js("return document.documentElement.outerHTML")
    [row] = [k for k in rest.get("/api/tokens?limit=200")[2]["items"] if k["name"] == name]
    assert row["state"] == "active"
    page.click("button", "Revoke")
    page.get("dialog")
    page.fill("Reason", "it was in a log")
    page.confirm("Revoke")
    page.see(f"{name} is revoked")
    assert rest.get("/api/tokens/" + row["id"])[2]["state"] == "revoked"


def test_a_stale_proof_is_asked_for_and_the_change_goes_through(page, rest, instance):
    since = boot_ms()
    page.js("sessionStorage.clear(); location.reload()")
    page.get("button", "Sign in")
    page.fill("User name", "admin")
    page.fill("Password", instance.password)
    page.click("button", "Sign in")
    page.get("navigation", "Pages")
    stale(page, instance, since)
    name = name_of("k")
    page.go("#/access/keys")
    opened(page, "Make a key")
    page.fill("Name", name)
    page.click("button", "Make the key")
    page.get("dialog", "Confirm that it is you")
    page.see("Make a key for scripts.")
    # Another page is no place to confirm it at: the dialog ends, and with it the change.
    page.js("location.hash = '#/access/tokens'")
    page.gone("dialog")
    page.go("#/access/keys")
    assert name not in [k["name"] for k in rest.get("/api/keys")[2]["items"]]
    opened(page, "Make a key")
    page.fill("Name", name)
    page.click("button", "Make the key")
    page.get("dialog", "Confirm that it is you")
    page.fill("Password", "wrong" + instance.password)
    page.click("button", "Confirm")
    page.get("alert")
    assert name not in [k["name"] for k in rest.get("/api/keys")[2]["items"]]
    page.fill("Password", instance.password)
    page.click("button", "Confirm")
    page.see("It is shown this once")
    assert name in [k["name"] for k in rest.get("/api/keys")[2]["items"]]


def test_the_access_document_is_changed_and_a_mistake_keeps_the_text(page, rest):
    page.go("#/access/document")
    page.click("button", "Change")
    page.fill("Document, as JSON", '{"rules": 1}')
    page.click("button", "Store the document")
    page.get("alert")
    assert page.get("textbox", "Document, as JSON").value == '{"rules": 1}'
    page.fill("Document, as JSON", "{")
    page.click("button", "Store the document")
    page.see("This is no JSON.")
    page.fill("Document, as JSON", json.dumps({"permission_sets": [{"name": "family", "scopes": ["tools:read"], "allow": ["*"]}]}))
    page.click("button", "Store the document")
    page.see("The document is stored")
    page.see("in force")
    assert rest.get("/api/access")[2]["document"]["permission_sets"][0]["name"] == "family"
    opened(page, "Permission sets (1)")
    page.see('"family"')


def test_an_administrator_is_made_changed_and_removed(page, rest, instance):
    name, password = name_of("rita_"), secrets.token_urlsafe(18)
    page.go("#/people")
    page.click("button", "New administrator")
    page.fill("Name", name)
    page.fill("New password", "short")
    page.fill("Your own password", instance.password)
    page.click("button", "Make the administrator")
    page.get("alert")
    assert page.get("textbox", "Name").value == name
    page.fill("New password", password)
    page.click("button", "Make the administrator")
    page.see(f"{name} is made")
    page.click("button", f"Role of {name}")
    page.choose("Role", "viewer")
    page.fill("Your own password", instance.password)
    page.click("button", "Give the role")
    page.see(f"{name} has the role")
    assert rest.get("/api/administrators/" + name)[2]["role"] == "viewer"
    other = Rest(lambda: instance.address("admind-http"))
    assert other.login(name, password)[0] == 200
    page.go("#/people/logins")
    page.see(name)
    page.go("#/people")
    page.click("button", f"Remove {name}")
    page.fill("Your own password", instance.password)
    page.click("button", "Remove")
    page.see(f"{name} is removed")
    assert rest.get("/api/administrators/" + name)[0] == 404
    until(lambda: other.get("/api/me")[0] == 401)


def test_the_own_password_is_changed(as_role, instance):
    who = as_role("reviewer")
    fresh = secrets.token_urlsafe(18)
    who.page.go("#/account")
    who.page.fill("Present password", who.password)
    who.page.fill("New password", fresh)
    who.page.fill("New password again", fresh + "x")
    who.page.see("The two differ.")
    who.page.fill("New password again", fresh)
    who.page.click("button", "Change the password")
    who.page.see("Your password is changed")
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login(who.name, who.password)[0] == 401 and r.login(who.name, fresh)[0] == 200


def test_a_cookie_alone_reads_nothing(page, instance):
    [cookie] = [c["value"] for c in page.cdp("Network.getAllCookies")["cookies"] if c["name"] == "mcpbox_session"]
    c = http.client.HTTPConnection(*instance.address("admind-http"))
    c.request("GET", "/api/approvals", headers={"Cookie": "mcpbox_session=" + cookie})
    assert c.getresponse().status == 401
    c.close()


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_other_roles_see_no_buttons_that_are_refused(as_role, role):
    p = as_role(role).page
    for where_ in ("#/access/tokens", "#/access/keys", "#/access/identities", "#/access/document", "#/access/endpoints", "#/people",
                   "#/people/logins", "#/account", "#/settings", "#/settings/limits", "#/modules"):
        p.go(where_)
        assert not [b.text for b in p.all("button", re.compile("^(Make|Revoke|Withdraw|Change$|New administrator|Set a limit|Fetch)"))], where_
        assert not p.all("alert"), (where_, p.text())
    p.clean()


def test_seeds_are_of_this_instance(world):
    assert seeds.tool_id(world.rest, "weather__forecast") == world.tool
