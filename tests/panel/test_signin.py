"""The way in and out: the form, other tabs, the end of a login while something is typed."""
import pytest

from harness.clients.chromium import Chromium
from harness.clients.page import Page
from harness.patience import until

from .conftest import sign_in


@pytest.fixture
def visitor(origin, chromium_uid):
    """A page without a login, in a browser of its own."""
    c = Chromium(chromium_uid)
    p = Page(c, origin)
    p.size(1280)
    p.open()
    p.get("button", "Sign in")
    yield p
    c.close()


def to(page, handle):
    """Goes to a tab."""
    page.chromium.command("POST", "/window", {"handle": handle})


def tab(page):
    """Opens the panel in another tab of the same browser and goes there; the handle of the one before."""
    before = page.chromium.command("GET", "/window")
    to(page, page.chromium.command("POST", "/window/new", {"type": "tab"})["handle"])
    page.open()
    return before


def test_a_wrong_password_says_so_and_keeps_the_name(visitor, instance):
    visitor.fill("User name", "admin")
    visitor.fill("Password", "not the password")
    visitor.click("button", "Sign in")
    visitor.get("alert")
    assert visitor.get("textbox", "User name").value == "admin"
    assert visitor.axe() == []
    visitor.fill("Password", instance.password)
    visitor.press("Enter")
    visitor.get("navigation", "Pages")
    visitor.clean()


def test_by_keyboard_alone(visitor, instance):
    until(lambda: visitor.focused()[1] == "User name")
    visitor.type("admin")
    visitor.press("Tab")
    assert visitor.focused()[1] == "Password"
    visitor.type(instance.password)
    visitor.press("Tab")
    assert visitor.focused() == ("button", "Sign in")
    visitor.press("Space")
    visitor.get("navigation", "Pages")


def test_a_reload_and_a_second_tab_need_no_password(visitor, instance):
    sign_in(visitor, "admin", instance.password)
    visitor.chromium.command("POST", "/refresh", {})
    visitor.get("navigation", "Pages")
    # By scripts: DevTools does not answer for a second tab of a browser without a window.
    before = tab(visitor)
    until(lambda: visitor.js("return !!document.querySelector('nav.menu')"))
    visitor.js("[...document.querySelectorAll('button')].find(b => b.textContent === 'Sign out').click()")
    until(lambda: visitor.js("return !!document.querySelector('main.signin input[type=password]')"))
    to(visitor, before)
    visitor.see("Your login is over")


def test_a_login_that_ends_keeps_what_was_typed(visitor, instance, rest):
    sign_in(visitor, "admin", instance.password)
    visitor.go("#/servers")
    visitor.click("button", "New server")
    visitor.fill("Name", "halftyped")
    mine = [x for x in rest.get("/api/logins")[2]["items"] if not x["current"] and "Chrom" in x["agent"]]
    for x in mine:
        assert rest.request("DELETE", "/api/logins/" + x["id"])[0] == 204
    visitor.click("button", "Make the server")
    visitor.get("dialog", "Your login is over")
    assert "halftyped" not in [s["name"] for s in rest.get("/api/servers?limit=200")[2]["items"]]
    visitor.fill("Password", instance.password)
    visitor.all("button", "Sign in")[-1].click()
    visitor.gone("dialog", "Your login is over")
    assert visitor.get("textbox", "Name").value == "halftyped"
    visitor.click("button", "Make the server")
    visitor.see("The server halftyped is made")


def test_an_address_is_kept_over_the_sign_in(visitor, instance):
    visitor.open("/#/calls?outcome=failed")
    sign_in(visitor, "admin", instance.password)
    visitor.get("heading", "Calls")
    assert visitor.js("return location.hash") == "#/calls?outcome=failed"


def test_many_wrong_passwords_ask_for_a_code(visitor):
    visitor.fill("User name", "nobody")

    def limited():
        visitor.fill("Password", "wrong")
        visitor.click("button", "Sign in")
        until(lambda: visitor.all("button", "Sign in"))
        return visitor.all("textbox", "Code for a new browser")
    until(limited)
    assert visitor.axe() == []


def test_an_answer_of_an_issuer_that_nobody_asked_for_begins_nothing(visitor):
    visitor.open("/#state=abc&code=def")
    visitor.get("button", "Sign in")
    assert not visitor.all("navigation", "Pages")
    visitor.clean()


def test_without_a_name_the_account_says_how_to_get_one(visitor, instance):
    """No proxy serves this panel, so no page of it can use a passkey."""
    sign_in(visitor, "admin", instance.password)
    visitor.go("#/account")
    visitor.see("A browser uses passkeys only at a page with a name")
    visitor.see("Have root serve the panel at an https name")
    assert not visitor.all("button", "Register a passkey")
    visitor.clean()
