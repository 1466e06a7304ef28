"""A person of an issuer, who has no password here: signs in by the issuer at the panel's name, registers the first passkey
with root's code, approves with it, and signs in at the address. The whole suite and the browser are in a network
namespace, with an OpenID provider that the test plays."""
import re
import urllib.parse

import pytest

from egress.test_issuer_keys import ID, ca, fetched, served  # noqa: F401: a fixture
from egress.test_signin import Provider, holds
from harness.clients import flow
from harness.clients.chromium import Chromium
from harness.clients.mcp import Client
from harness.patience import until
from harness.played import dns as d
from harness.played.egress import DNS, namespace

from .place import NAME, Place, half
from .test_passkeys import REMARK, registers

HOST = "id.example"


class Shown(Provider):
    """With a page at which the person signs in: it sends the browser back at once."""

    def serve(self, server, max_age=3600):
        super().serve(server, max_age)
        server.pages[self.path + "/authorize"] = self.comes
        self.server = server

    def comes(self, r):
        back = self.authorise(self.url + "/authorize?" + urllib.parse.urlencode(r.query))
        return 302, {"Location": self.source["sign_in"]["redirect"] + "?" + urllib.parse.urlencode(back)}, b""


def came(page):
    """Waits until the issuer has led the browser back. A script asks, since Chromium's tree of roles can crash the tab
    while another site's page takes the place of ours."""
    until(lambda: page.js("return document.querySelector('.who') !== null"), say=page.text)
    page.drawn()


@pytest.fixture(scope="module")
def ns():
    with namespace(()) as n:
        yield n


@pytest.fixture(scope="module")
def dns(ns):
    with d.Server(DNS, ns=ns) as s:
        s.zone[HOST] = d.Answer(a=[ID])
        yield s


@pytest.fixture(scope="module")
def place(ns, dns, ca):  # noqa: F811
    with ns.entered():
        p = Place((f"egress:dns_servers={DNS}", "admind:breakers=no"), ca.trusted)
        yield p
        p.close()


@pytest.fixture(scope="module")
def provider(place, ns, ca):  # noqa: F811
    server, service = served(ns, ca, ID, HOST)
    with service:
        p = Shown(place.origin + "/api/signin/callback")
        p.serve(server)
        holds(place.instance, p)
        fetched(place.instance)
        yield p


@pytest.fixture
def chromium(place, provider, ca, chromium_uid):  # noqa: F811
    c = Chromium(chromium_uid, {NAME: "127.0.0.1", HOST: ID}, [place.certificate, ca.top / HOST / "crt"])
    yield c
    c.close()


def test_first_passkey_by_a_code_and_an_approval(place, provider, chromium, instance, label):
    page = place.page(chromium)
    who = f"ann@{provider.name}"
    chromium.device()
    page.click("button", f"Sign in by {provider.name}")
    came(page)
    with Client(instance.address) as mcp:
        tool = flow.draft(mcp, "issued", "one", "def main() -> int:\n    return 1\n")
        request = mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"]

    def approve():
        page.go("#/approvals/" + request)
        page.get("heading", "Decision")
        page.click("button", "Approve…")
        page.get("dialog", "Approve this content")
        page.get("button", re.compile("^Approve [0-9a-f]{12}$")).click()
        page.get("dialog", "Confirm that it is you")

    # Without a passkey there is nothing to prove with: the dialog leads to the account.
    approve()
    page.see("You have no passkey yet.")
    assert not page.all("textbox", "Password") and not page.all("button", "Use your passkey")
    assert page.axe() == []
    page.get("dialog", "Confirm that it is you")
    page.all("link", "Your account")[-1].click()
    page.get("heading", "Your account")
    page.gone("dialog")
    assert page.axe() == [] and not page.all("textbox", "Present password")
    # A code of another person's opens nothing.
    code = instance.ctl_json("passkeys", "code", f"eve@{provider.name}", "--role", "administrator")["code"]
    page.fill("Code of root", code)
    registers(page, label)
    page.see("the code is not this person's")
    assert instance.ctl_json("passkeys", who)["items"] == []
    code = instance.ctl_json("passkeys", "code", who, "--role", "reviewer")["code"]
    page.fill("Code of root", code)
    page.click("button", "Register a passkey")
    page.see("The passkey is registered.")
    listed, = instance.ctl_json("passkeys", who)["items"]
    assert (listed["label"], listed["role"]) == (label, "reviewer")
    page.see("at most reviewer")
    # The login has the lesser role now, and the frame shows that.
    assert page.js("return document.querySelector('.who').innerText").endswith("reviewer")
    page.click("button", "Sign out")
    # The next login is unproven: the passkey approves.
    page.click("button", f"Sign in by {provider.name}")
    came(page)
    approve()
    assert page.axe() == [] and not page.all("textbox", "Password")
    page.click("button", "Use your passkey")
    page.see("Approved issued__one")
    assert instance.ctl_json("approvals", "show", request)["decided_by"] == who
    page.clean(REMARK)


def test_the_way_back_leads_to_the_name_alone(place, provider, chromium):
    """A sign-in that was begun at the address comes back to the name, where its ticket is not: no login comes of it."""
    page = place.page(chromium, place.address)
    page.click("button", f"Sign in by {provider.name}")
    page.see("Sign in")
    page.get("textbox", "User name")
    assert page.js("return location.origin") == place.origin
    assert half(page) is None and not page.all("navigation", "Pages")
