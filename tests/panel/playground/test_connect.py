"""Connections of Playground: as a client of this machine, by a token that is pasted, by one that the page makes and revokes;
to an endpoint; and what the page says where it can't connect."""
import http.client
import http.server
import os
import secrets
import signal
import threading

import pytest

from harness.clients import flow
from harness.clients.api_token import Token
from harness.clients.mcp import Client, request
from harness.clients.signed_token import document, set_document
from harness.patience import patience, until

from ..seeds import login
from .conftest import connect, entries, opened

INSTANCE_PORTS = True
SUM = 'def main(a: int, b: int) -> int:\n    """Adds."""\n    return a + b\n'


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module", autouse=True)
def tools(instance):
    with Client(instance.address) as c:
        return [flow.publish(instance, c, "math", name, SUM, description="Adds.") for name in ("sum", "plus")]


def name_of(prefix):
    return prefix + secrets.token_hex(3)


def call_sum(page, a=2, b=40):
    page.click("button", "math__sum")
    page.fill("a", str(a))
    page.fill("b", str(b))
    page.click("button", "Call")
    until(lambda: str(a + b) in page.js("return document.querySelector('section[aria-label=Result]').innerText"), say=page.text)


def principals(rest):
    return [e["principal"] for e in rest.get("/api/executions?tool=math__sum&limit=50")[2]["items"]]


def made(rest):
    """The tokens that pages made, newest first."""
    found = [k for k in rest.get("/api/tokens?limit=200")[2]["items"] if k["name"].startswith("playground-admin-")]
    return sorted(found, key=lambda k: k["created_at"], reverse=True)


def temporary(page, instance):
    """Connects by a temporary token, with a proof if one is asked for."""
    page.choose("Connect as", "temporary")
    page.choose("Revision of MCP", "2026-07-28")
    page.click("button", "Connect")

    def there():
        if page.all("dialog"):
            page.fill("Password", instance.password)
            page.click("button", "Confirm")
            page.gone("dialog")
        return page.all("button", "Disconnect")
    until(there, say=page.text)
    page.get("list", "Tools")


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_client_of_this_machine(play, rest, revision):
    connect(play, revision)
    play.see("a client of this machine")
    assert revision in play.text()
    call_sum(play, 2, {"2026-07-28": 40, "2025-11-25": 41, "2025-06-18": 42, "2025-03-26": 43}[revision])
    assert principals(rest)[0] == "local"
    lines = entries(play)
    assert any("sent" in e and "tools/call" in e and "POST" in e for e in lines), lines
    sent = opened(play, ["sent", "tools/call"])
    assert '"math__sum"' in sent["text"] and "Authorization" not in sent["head"]
    assert ("Mcp-Method: tools/call" in sent["head"]) == (revision >= "2026")
    assert ("Mcp-Session-Id" in sent["head"]) == (revision < "2026")
    play.click("button", "Disconnect")
    play.get("button", "Connect")
    assert any("DELETE" in e for e in entries(play)) == (revision < "2026")


def test_a_token_that_is_pasted(play, rest, instance):
    token = Token(instance, name_of("t"), allow="math__plus", listeners="local")
    play.choose("Connect as", "pasted")
    play.fill("API token", token.text)
    connect(play)
    play.get("button", "math__plus")
    assert not play.all("button", "math__sum")
    sent = opened(play, ["sent", "tools/list"])
    assert "Authorization: Bearer (not shown)" in sent["head"]
    assert token.text not in play.js("return document.documentElement.outerHTML")
    assert token.text not in play.js("return JSON.stringify([{...sessionStorage}, {...localStorage}])")
    token.revoke()


def test_a_temporary_token_ends_with_the_connection(play, rest, instance):
    temporary(play, instance)
    [token] = [k for k in made(rest) if k["state"] == "active"]
    assert token["listeners"] == ["local"] and token["created_by"] == "admin"
    play.see("token " + token["name"])
    call_sum(play, 5, 6)
    assert principals(rest)[0] == token["principal"]
    # Its secret is shown when it is asked for, and stored nowhere.
    assert "mbt_" not in play.js("return document.documentElement.outerHTML + JSON.stringify([{...sessionStorage}, {...localStorage}])")
    play.click("button", "Show the token")
    secret = until(lambda: play.js("return document.querySelector('.copy pre')?.innerText"))
    assert secret.startswith("mbt_")
    with Client(instance.address, token=secret) as c:
        assert "math__sum" in c.tools()
    play.click("button", "Disconnect")
    play.see(f"The token {token['name']} is revoked.")
    assert rest.get("/api/tokens/" + token["id"])[2]["state"] == "revoked"
    assert request(instance.address(), body={"jsonrpc": "2.0", "id": 1, "method": "ping"},
                   headers={"Authorization": "Bearer " + secret}).status == 401


def test_a_temporary_token_has_the_rights_that_were_chosen(play, rest, instance):
    play.choose("Connect as", "temporary")
    play.fill("May use", "math__plus")
    temporary(play, instance)
    play.get("button", "math__plus")
    assert not play.all("button", "math__sum")
    [token] = [k for k in made(rest) if k["state"] == "active"]
    assert token["allow"] == ["math__plus"] and sorted(token["scopes"]) == ["tools:call", "tools:read"]


@pytest.mark.parametrize("way", ["another page of the panel", "another site", "reload"])
def test_a_temporary_token_ends_when_the_person_leaves(play, rest, instance, browser, way):
    temporary(play, instance)
    [token] = [k for k in made(rest) if k["state"] == "active"]
    if way == "another page of the panel":
        play.go("#/account")
    elif way == "another site":
        browser.chromium.open("about:blank")
    else:
        play.open()
    until(lambda: rest.get("/api/tokens/" + token["id"])[2]["state"] == "revoked")
    browser.open()
    browser.drawn()
    assert not [k for k in made(rest) if k["state"] == "active"]


def test_signing_out_ends_it_first(as_role, instance, rest, gateway):
    other = as_role("administrator")
    page = other.page
    page.others = (gateway,)
    page.go("#/playground")
    page.choose("Connect as", "temporary")
    page.click("button", "Connect")
    page.get("button", "Disconnect")
    [token] = [k for k in rest.get("/api/tokens?limit=200")[2]["items"] if k["state"] == "active" and k["name"].startswith("playground-")]
    page.click("button", "Sign out")
    page.get("button", "Sign in")
    until(lambda: rest.get("/api/tokens/" + token["id"])[2]["state"] == "revoked")


def test_only_administrators_make_one(as_role, gateway):
    page = as_role("viewer").page
    page.others = (gateway,)
    page.go("#/playground")
    options = page.get("combobox", "Connect as").js("return [...this.options].map(o => o.value)")
    assert options == ["local", "pasted"]


def test_an_endpoint(play, rest, instance):
    name = name_of("e")
    got = set_document(instance, {**document([]), "endpoints": [
        {"name": name, "allow": ["math__sum"], "rename": [{"tool": "math__sum", "as": "add"}]}]})
    assert got["_"] == "ACCESS_STATE", got
    until(lambda: [e for e in rest.get("/api/endpoints")[2]["items"] if e["name"] == name])
    play.go("#/account")
    play.go("#/playground")
    play.choose("Endpoint", name)
    connect(play)
    play.see(f"/mcp/{name}")
    play.get("button", "add")
    assert not play.all("button", "math__plus")


# --- where it can't connect ---

def test_a_wrong_token(play):
    play.choose("Connect as", "pasted")
    play.fill("API token", "mbt_" + "A" * 43)
    play.click("button", "Connect")
    play.see("Connect with an API token that is good on the local listener")
    play.see("401")
    assert any("401" in e for e in entries(play))


def test_a_scope_that_the_token_lacks(play, instance, rest):
    token = Token(instance, name_of("t"), scopes="tools:read", listeners="local")
    play.choose("Connect as", "pasted")
    play.fill("API token", token.text)
    connect(play)
    play.click("button", "math__sum")
    play.fill("a", "1")
    play.fill("b", "1")
    play.click("button", "Call")
    play.see("403")
    play.see("tools:call")
    token.revoke()


def test_a_gateway_that_is_away(play, instance, gateway):
    """The browser says no reason; the page finds it, and names the port to forward."""
    service = f"{instance.state}/service/gatewayd-local"
    assert instance.control.sv("-w", f"{patience(15):.0f}", "down", service) == 0
    try:
        play.click("button", "Connect")
        port = gateway.rsplit(":", 1)[1]
        play.see(f"ssh -L {port}:127.0.0.1:{port} HOST")
    finally:
        assert instance.control.sv("up", service) == 0
        until(lambda: request(instance.address(), "GET", "/health").status == 200, during=(OSError, http.client.HTTPException))


@pytest.fixture
def silent(instance):
    """Stops the gateway: it takes connections and says nothing. Goes on after the test."""
    pid = instance.service_pid("gatewayd-local")
    yield lambda: os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)


def test_a_gateway_that_says_nothing(play, silent):
    """The person need not wait for the gateway, neither to begin nor to end."""
    silent()
    play.click("button", "Connect")
    play.click("button", "Cancel")
    play.get("button", "Connect")
    play.gone("button", "Cancel")


def test_a_session_ends_without_its_gateway(play, silent):
    connect(play, "2025-11-25")
    silent()
    play.click("button", "Disconnect")
    play.see("Disconnected.")
    play.get("button", "Connect")


def test_a_page_of_another_origin_is_refused(instance, origin, gateway):
    """The panel's origin, and that alone."""
    address = instance.address()
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert request(address, body=body, headers={"Origin": origin}).headers["access-control-allow-origin"] == origin
    for other in ("http://127.0.0.1:1", origin + "0", origin.replace("http", "https"), origin.replace("127.0.0.1", "localhost"), "null",
                  origin + "/", "https://evil.example"):
        r = request(address, body=body, headers={"Origin": other})
        assert r.status == 403 and "access-control-allow-origin" not in r.headers, (other, r)
    # The tunnel's listener has no such origin.
    r = request(instance.run("gatewayd-tunnel", "mcp.sock"), "OPTIONS", headers={"Origin": origin})
    assert r.status == 403 and "access-control-allow-origin" not in r.headers


def test_the_policy_has_one_more_origin(instance, gateway):
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=patience(60))
    c.request("GET", "/")
    policy = c.getresponse().getheader("Content-Security-Policy")
    c.close()
    [connects] = [d for d in policy.split("; ") if d.startswith("connect-src")]
    assert connects == f"connect-src 'self' {gateway}"


def test_the_policy_refuses_any_other(browser):
    browser.go("#/playground")
    failed = browser.js("return fetch('http://127.0.0.1:1/mcp').then(() => 'sent', e => e.name)")
    assert failed == "TypeError" and any(r.startswith("connect-src http://127.0.0.1:1") for r in browser.seen()["csp"])
    # The browser's reports are no fault of the page.
    assert browser.logged()
    browser.open()
    browser.drawn()


def test_nothing_of_the_login_goes_to_the_gateway(play, instance, gateway):
    """The browser would send the login's cookie to each port of this host. The control: a fetch that asks for it does."""
    heard = []

    class Ear(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802 its name is the server's
            heard.append({k.lower(): v for k, v in self.headers.items()})
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(503)
            self.send_header("Access-Control-Allow-Origin", play.origin)
            self.send_header("Access-Control-Allow-Credentials", "true")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_OPTIONS(self):  # noqa: N802
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", play.origin)
            self.send_header("Access-Control-Allow-Headers", self.headers.get("Access-Control-Request-Headers", ""))
            self.send_header("Access-Control-Max-Age", "0")
            self.end_headers()

        def log_message(self, *args):
            pass
    service = f"{instance.state}/service/gatewayd-local"
    at = instance.address()
    assert instance.control.sv("-w", f"{patience(15):.0f}", "down", service) == 0
    try:
        with http.server.ThreadingHTTPServer(at, Ear) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                play.js("return fetch(arguments[0], {method: 'POST', credentials: 'include'}).then(() => 1, e => String(e))", gateway + "/mcp")
                assert "mcpbox_session=" in heard.pop()["cookie"]
                play.click("button", "Connect")
                play.see("The answer 503 is no message of MCP.")
            finally:
                server.shutdown()
                thread.join()
    finally:
        assert instance.control.sv("up", service) == 0
        until(lambda: request(instance.address(), "GET", "/health").status == 200, during=(OSError, http.client.HTTPException))
    [said] = heard
    assert said["mcp-method"] == "server/discover" and said["origin"] == play.origin
    assert "cookie" not in said and "x-csrf-token" not in said and "referer" not in said and "authorization" not in said
