"""Settings, rate limits and circuit breakers: each change is made once by its button and looked for by REST."""
import urllib.parse

import pytest

from harness.clients.mcp import Client
from harness.patience import until

INSTANCE_SETS = ("admind:breakers=yes",)
KEY = "log_retention_days"
STALE = "Somebody else changed this meanwhile."
HOSTILE = "tunnel:<b onmouseover='__seen.canary++'>a"


def setting(rest, key=KEY):
    return rest.get("/api/settings/" + key)[2]


def put(rest, value, key=KEY):
    assert rest.request("PUT", "/api/settings/" + key, {"value": value})[0] == 200


def limits(rest):
    return {(r["scope"], r["subject"]): (r["per_minute"], r["burst"]) for r in rest.get("/api/rate-limits")[2]["items"]}


@pytest.fixture(autouse=True)
def as_before(rest):
    yield
    for s in rest.get("/api/settings?limit=200")[2]["items"]:
        if s["updated_at"]:
            assert rest.request("DELETE", "/api/settings/" + s["key"])[0] == 200
    for scope, subject in limits(rest):
        assert rest.request("POST", "/api/rate-limits/remove", {"scope": scope, "subject": subject})[0] == 200


def change(page, key, value):
    page.click("button", "Change " + key)
    page.fill("Value", value)
    page.click("button", "Set")


def test_a_setting_is_found(page):
    page.go("#/settings")
    page.see("versions_kept")
    page.fill("Find a setting", "retention")
    page.see("1 of ")
    page.not_see("versions_kept")
    assert page.js("return location.hash") == "#/settings?find=retention"
    page.fill("Find a setting", "no such words")
    page.see("No setting has these words.")


def test_a_setting_is_changed(page, rest):
    page.go("#/settings")
    page.see("1 to 3,650")
    change(page, KEY, "20")
    page.see(KEY + " is changed.")
    page.gone("dialog")
    page.see("by admin")
    now = setting(rest)
    assert (now["value"], now["updated_by"]) == ("20", "admin")


def test_a_setting_is_changed_by_keys_alone(page, rest):
    page.go("#/settings?find=" + KEY)
    page.get("button", "Change " + KEY).focus()
    page.press("Enter")
    page.get("dialog", "Change " + KEY)
    assert page.focused() == ("textbox", "Value")
    page.press("End")
    page.press("Home", shift=True)
    page.type("25")
    until(lambda: page.get("button", "Set").js("return !this.disabled"))
    page.press("Enter")
    page.gone("dialog")
    assert setting(rest)["value"] == "25" and page.focused() == ("button", "Change " + KEY)


def test_a_choice_is_made(page, rest):
    page.go("#/settings?find=confirm_destructive")
    page.click("button", "Change confirm_destructive")
    page.choose("Value", "on")
    page.click("button", "Set")
    page.see("confirm_destructive is changed.")
    assert setting(rest, "confirm_destructive")["value"] == "on"


def test_a_refused_value_is_kept_and_said_at_its_field(page, rest):
    page.go("#/settings")
    change(page, KEY, "99999")
    page.see(f"{KEY} is an integer from 1 to 3650")
    field = page.get("textbox", "Value")
    assert field.value == "99999" and field.attr("aria-invalid") == "true"
    assert field.js("return document.getElementById(this.getAttribute('aria-describedby').split(' ').at(-1)).innerText").startswith(KEY)
    page.press("Escape")
    page.gone("dialog")
    assert setting(rest)["updated_at"] is None


def test_a_change_of_somebody_else_is_not_undone(page, rest):
    page.go("#/settings")
    page.click("button", "Change " + KEY)
    until(lambda: page.get("button", "Set").js("return !this.disabled"))
    put(rest, "40")
    page.fill("Value", "50")
    page.click("button", "Set")
    page.see(STALE)
    page.see("Now: 40")
    assert page.get("textbox", "Value").value == "50" and setting(rest)["value"] == "40"
    page.click("button", "Set")
    page.see(KEY + " is changed.")
    assert setting(rest)["value"] == "50"


def test_a_setting_goes_back_to_its_default(page, rest):
    put(rest, "41")
    page.go("#/")
    page.go("#/settings")
    page.see("Default: 30")
    page.click("button", "Change " + KEY)
    page.click("button", "Back to the default")
    page.get("dialog", f"Take {KEY} back to its default?")
    page.confirm("Back to the default")
    page.see(KEY + " has its default again.")
    now = setting(rest)
    assert (now["value"], now["updated_at"]) == ("30", None)


def test_a_rate_limit_is_set_changed_and_removed(page, rest, world):
    page.go("#/settings/limits")
    page.see("No limits yet")
    page.fill("Name", "weather__forecast")
    page.fill("Calls a minute", "60")
    page.click("button", "Set the limit")
    page.see("The limit of weather__forecast holds.")
    assert limits(rest) == {("tool", "weather__forecast"): (60, 60)}
    page.click("button", "Change weather__forecast")
    assert page.get("textbox", "Name").value == "weather__forecast"
    page.fill("At once", "7")
    page.click("button", "Set the limit")
    until(lambda: limits(rest) == {("tool", "weather__forecast"): (60, 7)}, say=page.text)
    page.see("\t7\t")
    page.click("button", "Remove")
    page.get("dialog", "Remove the limit of weather__forecast?")
    page.confirm("Remove")
    page.see("The limit of weather__forecast is removed.")
    assert limits(rest) == {}


def test_a_refused_limit_is_kept_and_said_at_its_field(page, rest):
    page.go("#/settings/limits")
    page.choose("Kind", "listener")
    page.fill("Name", "elsewhere")
    page.fill("Calls a minute", "5")
    page.click("button", "Set the limit")
    page.see("subject is local or tunnel")
    assert page.get("textbox", "Name").attr("aria-invalid") == "true" and page.get("textbox", "Name").value == "elsewhere"
    page.fill("Name", "local")
    page.fill("At once", "99999")
    page.click("button", "Set the limit")
    page.see("burst is 1 to 60 times per_minute")
    assert page.get("spinbutton", "At once").attr("aria-invalid") == "true" and page.get("spinbutton", "Calls a minute").value == "5"
    assert limits(rest) == {}


def test_hostile_names_are_text(page, rest):
    assert rest.request("POST", "/api/rate-limits", {"scope": "principal", "subject": HOSTILE, "per_minute": 3})[0] == 200
    page.go("#/settings/limits")
    page.see(HOSTILE)
    assert page.js("return document.querySelectorAll('main b').length") == 0
    page.go("#/settings?find=" + urllib.parse.quote("<img src=x onerror='__seen.canary++'>"))
    page.see("No setting has these words.")


def test_breakers_are_shown_and_closed(page, rest, world, instance):
    page.go("#/settings/breakers")
    page.see("No breaker is open")
    put(rest, "3", "breaker_principal_errors")

    def opened():
        with Client(instance.address) as mcp:
            mcp.call("weather__fails")
        return rest.get("/api/breakers")[2]["open"]
    until(opened, step=0.1, say=lambda: rest.get("/api/breakers"))
    page.see("errors of one caller")
    page.see("3 in a row")
    page.go("#/")
    page.see("One circuit breaker is open.")
    page.click("link", "See them, or close them")
    page.click("button", "Close all")
    page.confirm("Close all")
    page.see("All breakers are closed.")
    until(lambda: rest.get("/api/breakers")[2]["open"] == [], say=lambda: rest.get("/api/breakers"))
    page.see("No breaker is open")


def test_a_viewer_reads_and_changes_nothing(as_role, rest):
    put(rest, "42")
    p = as_role("viewer").page
    for route, text in (("#/settings", "Default: 30"), ("#/settings/limits", "No limits yet"), ("#/settings/breakers", "No breaker is open")):
        p.go(route)
        p.see(text)
        assert p.all("alert") == []
        assert p.js("return document.querySelectorAll('main button').length") == 0
    p.clean()
