"""A person with a password: a passkey is registered, is the second half of the sign-in, proves, and is removed. And what
the panel says where it can use none."""
import re

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import until
from harness.played.authenticator import ES256, Passkey
from harness.proof import age, boot_ms

from ..seeds import tool_id
from .place import NAME, cookies, half, login_token, signs_in

CODE = "def main() -> int:\n    return {}\n"
#: Chromium misses RS256, which the vault does not take.
REMARK = "publicKey.pubKeyCredParams is missing at least one of the default algorithm identifiers"


@pytest.fixture
def page(place, chromium):
    p = place.page(chromium)
    yield p
    p.clean(REMARK)


def in_(page, name, password):
    """Signs in a person without passkeys."""
    signs_in(page, name, password)
    page.get("button", "Sign out")
    page.drawn()


def registers(page, label):
    page.go("#/account")
    page.fill("Name of the new passkey", label)
    page.click("button", "Register a passkey")


def registered(page, person, label):
    """Signs in, and registers the first passkey. The device's id."""
    device = page.chromium.device()
    in_(page, *person)
    registers(page, label)
    page.see("The passkey is registered.")
    return device


def out(page):
    page.click("button", "Sign out")
    page.get("textbox", "User name")


def logins(instance, name):
    return [x for x in instance.ctl_json("logins")["items"] if x["username"] == name]


def test_register_sign_in_and_remove(place, page, instance, person, label):
    other = Rest(lambda: instance.address("admind-http"))
    assert other.login(*person)[0] == 200
    registered(page, person, label)
    listed, = instance.ctl_json("passkeys", person[0])["items"]
    assert listed["label"] == label
    page.see(label)
    # The first passkey ended the login that never showed one.
    assert other.get("/api/me")[0] == 401
    assert page.axe() == []
    out(page)
    signs_in(page, *person)
    page.get("navigation", "Pages")
    login, = logins(instance, person[0])
    assert not login["pending"] and login["by"] == "password"
    page.go("#/account")
    page.click("button", "Remove")
    page.get("dialog", f"Remove {label}?")
    page.confirm("Remove")
    page.see("The passkey is removed.")
    assert instance.ctl_json("passkeys", person[0])["items"] == []
    out(page)
    page.chromium.unplug()
    in_(page, *person)
    assert [k for k in cookies(page) if k.startswith("mcpbox")] == []


def test_cookies_of_the_name(page, person):
    """They are Secure and of this host alone, and no script reads one."""
    in_(page, *person)
    made = cookies(page)
    assert set(made) == {"__Host-mcpbox_session", "__Host-mcpbox_device"}
    for c in made.values():
        assert (c["secure"], c["httpOnly"], c["sameSite"], c["domain"], c["path"]) == (True, True, "Strict", NAME, "/"), c
    assert page.js("return document.cookie") == ""


def test_without_a_device_the_password_opens_nothing(page, instance, person, label):
    """Then again by the button, once the device is there."""
    device = registered(page, person, label)
    key, = page.chromium.credentials(device)
    out(page)
    page.chromium.unplug()
    # A device of somebody else's.
    page.chromium.device()
    signs_in(page, *person)
    page.see("The browser gave no passkey")
    page.see("mcpboxctl passkeys remove NAME ID")
    assert half(page) is None and not page.all("navigation", "Pages")
    assert [x["pending"] for x in logins(instance, person[0])] == [True]
    assert page.axe() == []
    page.chromium.unplug()
    page.chromium.put(page.chromium.device(), key)
    page.click("button", "Use your passkey")
    page.get("navigation", "Pages")
    assert [x["pending"] for x in logins(instance, person[0])] == [False]


def test_a_cancelled_sign_in_leaves_no_login(page, instance, person, label):
    device = registered(page, person, label)
    out(page)
    # The device waits for its owner.
    page.chromium.verifies(device, False)
    signs_in(page, *person)
    page.see("The browser gave no passkey")
    page.click("button", "Cancel")
    page.get("textbox", "User name")
    until(lambda: logins(instance, person[0]) == [], say=lambda: logins(instance, person[0]))
    page.chromium.verifies(device, True)
    signs_in(page, *person)
    page.get("navigation", "Pages")


def test_a_copied_passkey_says_what_to_do(page, instance, person, label):
    device = registered(page, person, label)
    key, = page.chromium.credentials(device)
    out(page)
    signs_in(page, *person)
    page.get("navigation", "Pages")
    out(page)
    page.chromium.unplug()
    page.chromium.put(page.chromium.device(), key)
    signs_in(page, *person)
    page.see("there may be a copy of it")
    assert half(page) is None


def drafted(instance, name, number):
    """A request that waits: (its id, its tool)."""
    with Client(instance.address) as mcp:
        tool = flow.draft(mcp, "proofs", name, CODE.format(number))
        return mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"], tool


def asks_to_approve(page, request):
    page.go("#/approvals/" + request)
    page.get("heading", "Decision")
    page.click("button", "Approve…")
    page.get("dialog", "Approve this content")
    page.get("button", re.compile("^Approve [0-9a-f]{12}$")).click()
    page.get("dialog", "Confirm that it is you")


def state(admin, request):
    return admin.get("/api/approvals/" + request)[2]["state"]


def test_a_passkey_approves_a_version(page, instance, admin, person, label):
    since = boot_ms()
    device = registered(page, person, label)
    request, _ = drafted(instance, "byverify", 1)
    age(instance.service_pid("admind-vault"), login_token(page), since)
    asks_to_approve(page, request)
    assert page.axe() == []
    # The owner does not prove to be the owner: nothing is approved, and the dialog stays.
    page.chromium.verifies(device, False)
    page.click("button", "Use your passkey")
    page.see("The browser gave no passkey")
    assert state(admin, request) == "pending"
    # By keys: the dialog ends, and nothing is left of the refusal when it comes again.
    page.press("Escape")
    page.gone("dialog", "Confirm that it is you")
    page.press("Escape")
    page.gone("dialog")
    assert state(admin, request) == "pending"
    page.chromium.verifies(device, True)
    page.go("#/")
    asks_to_approve(page, request)
    page.not_see("The browser gave no passkey")
    until(lambda: page.focused() == ("button", "Use your passkey"), say=page.focused)
    page.press("Enter")
    page.see("Approved proofs__byverify")
    after = admin.get("/api/approvals/" + request)[2]
    assert (after["state"], after["decided_by"]) == ("approved", person[0])
    assert tool_id(admin, "proofs__byverify")


def test_a_password_proves_too(page, instance, admin, person, label):
    since = boot_ms()
    registered(page, person, label)
    request, _ = drafted(instance, "bypassword", 2)
    age(instance.service_pid("admind-vault"), login_token(page), since)
    asks_to_approve(page, request)
    page.fill("Password", person[1])
    page.click("button", "Confirm")
    page.see("Approved proofs__bypassword")
    assert state(admin, request) == "approved"


def test_a_second_passkey_needs_a_proof_first(page, instance, person, label):
    """The proof has a challenge of its own, so it comes before the ceremony. A device holds one passkey of a person."""
    since = boot_ms()
    registered(page, person, label)
    age(instance.service_pid("admind-vault"), login_token(page), since)
    registers(page, label + " b")
    page.get("dialog", "Confirm that it is you")
    page.see("Register a passkey.")
    page.click("button", "Use your passkey")
    page.see("This device has a passkey of yours already.")
    assert page.get("textbox", "Name of the new passkey").value == label + " b"
    page.chromium.unplug()
    page.chromium.device()
    page.click("button", "Register a passkey")
    page.see(label + " b")
    assert [k["label"] for k in instance.ctl_json("passkeys", person[0])["items"]] == [label, label + " b"]


def test_a_proof_that_is_not_given_registers_nothing(page, instance, person, label):
    since = boot_ms()
    page.chromium.device()
    in_(page, *person)
    age(instance.service_pid("admind-vault"), login_token(page), since)
    registers(page, label)
    page.get("dialog", "Confirm that it is you")
    page.click("button", "Cancel")
    page.gone("dialog")
    assert page.get("textbox", "Name of the new passkey").value == label
    assert instance.ctl_json("passkeys", person[0])["items"] == []


def test_at_the_address_it_says_where_to_go(place, chromium, instance, person, label):
    """At the address all works as before, and each place that a passkey would be used at names the page that can."""
    page = place.page(chromium, place.address)
    in_(page, *person)
    page.go("#/account")
    page.see("this page is at an address")
    page.see("Open the panel at " + place.origin)
    assert page.get("link", place.origin).attr("href") == place.origin + "/"
    assert not page.all("button", "Register a passkey")
    assert page.axe() == []
    # By another program meanwhile: a passkey for this person.
    rest = Rest(lambda: instance.address("admind-http"), proves=False)
    assert rest.login(*person)[0] == 200
    asked = rest.request("POST", "/api/passkeys/challenge", {"kind": "register"})[2]
    key = Passkey(ES256)
    key.rp_id = NAME
    credential = key.created_json(asked, origin=place.origin)
    assert rest.request("POST", "/api/passkeys", {"label": label, "credential": credential})[0] == 204
    page.js("sessionStorage.clear(); location.reload()")
    page.get("button", "Sign in")
    signs_in(page, *person)
    page.see("The password is right, but you have a passkey")
    page.see("Open the panel at " + place.origin)
    assert page.get("textbox", "User name").value == person[0]
    assert half(page) is None and page.axe() == []
    # The half login ends at once.
    until(lambda: not [x for x in logins(instance, person[0]) if x["pending"]])
    page.size(360)
    assert page.js("return document.documentElement.scrollWidth <= innerWidth") is True
    page.clean()


def test_a_proof_at_the_address_is_the_password(place, chromium, instance, admin, person, label):
    """The login itself registered a passkey, by another program. The dialog names the page that can use it."""
    since = boot_ms()
    page = place.page(chromium, place.address)
    in_(page, *person)
    rest = Rest(lambda: instance.address("admind-http"), proves=False)
    rest.cookie, rest.csrf = f"mcpbox_session={cookies(page)['mcpbox_session']['value']}", half(page)
    key = Passkey(ES256)
    key.rp_id = NAME
    credential = key.created_json(rest.request("POST", "/api/passkeys/challenge", {"kind": "register"})[2], origin=place.origin)
    assert rest.request("POST", "/api/passkeys", {"label": label, "credential": credential})[0] == 204
    request, _ = drafted(instance, "ataddress", 4)
    age(instance.service_pid("admind-vault"), cookies(page)["mcpbox_session"]["value"] + half(page), since)
    asks_to_approve(page, request)
    page.see("Open the panel at " + place.origin)
    assert not page.all("button", "Use your passkey") and page.axe() == []
    page.fill("Password", person[1])
    page.click("button", "Confirm")
    page.see("Approved proofs__ataddress")
    assert state(admin, request) == "approved"
    page.clean()


def test_by_keys_alone_and_narrow(page, instance, person, label):
    page.size(360)
    page.chromium.device()
    in_(page, *person)
    page.go("#/account")
    assert page.js("return document.documentElement.scrollWidth <= innerWidth") is True
    page.get("textbox", "Name of the new passkey").focus()
    page.type(label)
    page.press("Tab")
    assert page.focused() == ("button", "Register a passkey")
    page.press("Enter")
    page.see("The passkey is registered.")
    assert page.axe() == []
    page.js("sessionStorage.clear(); location.reload()")
    until(lambda: page.focused()[1] == "User name")
    page.type(person[0])
    page.press("Tab")
    page.type(person[1])
    page.press("Enter")
    page.get("button", "Sign out")
    assert page.js("return document.documentElement.scrollWidth <= innerWidth") is True
