"""Straight: an OpenID provider signs the access tokens, nginx is before the tunnel's socket, and the official clients
find the way by themselves, from the first 401 to a call."""
import base64
import hashlib
import json
import urllib.parse

import pytest

from harness.clients import flow
from harness.clients.browser import CALLBACK, Browser
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request
from harness.clients.signed_token import set_document
from harness.clients.sse import Stream
from harness.clients.tasks import DECLARED
from harness.net.nginx import Nginx
from harness.net.pgtls import Authority
from harness.patience import patience, until
from remote.play import Provider, Sdk, b64

CANARY = "def main(n: int = 0) -> str:\n    return f'canary {n}'\n"
KNOWN = {"client_id": "known", "client_secret": "a secret that both of them know", "redirect_uris": [CALLBACK],
         "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
         "application_type": "native"}
SETS = [{"name": "family", "scopes": ["tools:read", "tools:call"], "allow": ["crm__*"], "deny": ["crm__secret"]},
        {"name": "readers", "scopes": ["tools:read"], "allow": ["crm__*"], "deny": []}]


class Way:
    """All that a client needs to come in, made once a module."""

    def __init__(self, instance):
        self.instance = instance
        instance.ctl("settings", "set", "rate_tunnel_per_minute", "0")
        with Client(instance.address) as c:
            for name in ("canary", "secret"):
                flow.publish(instance, c, "crm", name, CANARY)
        self.authority = Authority(instance.parent + "/authority")
        self.nginx = Nginx(instance, tls=self.authority.issue("localhost"))
        self.op = Provider([KNOWN])
        self.resource = f"https://localhost:{self.nginx.port}/mcp"
        self.holds(scopes="token")

    def holds(self, **more):
        """The access document, with these members of its issuer."""
        got = set_document(self.instance, {
            "resource": self.resource,
            "issuers": [{"name": "op", "issuer": self.op.issuer, "algorithms": ["ES256"], "jwks": self.op.jwks(), **more}],
            "rules": [{"issuer": "op", "claim": "email", "values": [f"{who}@example.org" for who in people], "set": name}
                      for name, people in (("family", ("ann", "sdk", "client")), ("readers", ("bob",)))],
            "permission_sets": SETS})
        assert got["_"] == "ACCESS_STATE", got

    def sdk(self, name, **more):
        return Sdk(name, self.resource, self.authority.cert, **more)

    def browser(self, who="ann", grants=None):
        browser = Browser(who, self.authority.cert)
        if grants:
            browser.fields["X-Grants"] = grants
        return browser

    def close(self):
        self.op.close()
        self.nginx.close()


@pytest.fixture(scope="module")
def way(instance):
    w = Way(instance)
    yield w
    w.close()


def query(url):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def listed(instance, token):
    """tools/list by this token, at the tunnel's socket."""
    return request(instance.run("gatewayd-tunnel", "mcp.sock"),
                   body={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
                   headers={"MCP-Protocol-Version": LEGACY, "Authorization": "Bearer " + token})


@pytest.mark.parametrize("how", ["dcr", "cimd", "known"])
@pytest.mark.parametrize("sdk, revision", [("sdk", LEGACY), ("client", MODERN)])
def test_finds_the_way_and_calls(instance, way, sdk, revision, how):
    with way.sdk(sdk, how=how, known=KNOWN) as c:
        asked = query(c.sign_in(way.browser()))
        assert asked["resource"] == way.resource and asked["code_challenge_method"] == "S256"
        assert {"tools:read", "tools:call"} <= set(asked["scope"].split())
        tools = c.good("list")["tools"]
        assert "crm__canary" in tools and "crm__secret" not in tools
        assert c.text("crm__canary", n=5) == "canary 5"
        assert c.good("connect")["version"] == revision
    assert instance.psql("SELECT DISTINCT listener FROM mcpbox.executions WHERE principal = 'oidc:op:ann'") == [["tunnel"]]


@pytest.mark.parametrize("how", ["dcr", "cimd", "known"])
@pytest.mark.parametrize("sdk", ["sdk", "client"])
def test_finds_the_way_where_scopes_do_not_count(way, sdk, how):
    """By default the set alone decides, and the issuer need not know our rights. The provider refuses a client that asks
    for nothing (access_denied): the metadata name what it can ask for."""
    way.holds()
    try:
        with way.sdk(sdk, how=how, known=KNOWN) as c:
            asked = query(c.sign_in(way.browser()))
            # The 2.x client adds the scope that brings a refresh token.
            assert set(asked["scope"].split()) - {"offline_access"} == {"openid", "email"}, asked
            assert asked["resource"] == way.resource
            tools = c.good("list")["tools"]
            assert "crm__canary" in tools and "crm__secret" not in tools
            assert c.text("crm__canary", n=7) == "canary 7"
    finally:
        way.holds(scopes="token")


@pytest.mark.parametrize("sdk", ["sdk", "client"])
def test_refreshes_by_itself(way, sdk):
    with way.sdk(sdk) as c:
        c.sign_in(way.browser())
        c.good("spoil")
        first = c.token()
        assert c.text("crm__canary", n=1) == "canary 1"
        assert c.token() != first


@pytest.mark.parametrize("sdk", ["sdk", "client"])
def test_step_up(instance, way, sdk):
    """The person grants tools:read alone at first. One 403 tells the client all rights to ask for; the call runs once."""
    def sign_in(url):
        return way.browser(sdk).sign_in(url)
    with way.sdk(sdk) as c:
        c.sign_in(way.browser(sdk, grants="tools:read"))
        assert c.good("tokens")["tokens"]["scope"] == "tools:read" and "crm__canary" in c.good("list")["tools"]
        signed, refreshed = way.op.counts()
        if sdk == "sdk":
            # The 1.x client refreshes in place of it, to the same rights, and gives up; without a refresh token it steps up.
            assert "after trying upscoping" in c.do("call", name="crm__canary")["error"]
            assert way.op.counts() == (signed, refreshed + 1)
            c.good("forget")
            c.good("connect")
        got, asked = c.steps_up(sign_in, "crm__canary")
        assert asked == [{"tools:read", "tools:call"}] and "error" not in got, (got, asked)
        assert got["result"]["content"][0]["text"] == "canary 0"
        assert way.op.counts()[0] == signed + 1
    assert instance.psql(f"SELECT count(*) FROM mcpbox.executions WHERE principal = 'oidc:op:{sdk}'") == [["1"]]


@pytest.mark.parametrize("sdk", ["sdk", "client"])
def test_no_step_up_where_the_set_lacks_the_right(instance, way, sdk):
    """No sign-in helps: the client is not told that one would, and asks for none."""
    with way.sdk(sdk) as c:
        c.sign_in(way.browser("bob"))
        assert set(c.good("tokens")["tokens"]["scope"].split()) >= {"tools:read", "tools:call"}
        before = way.op.counts()
        got, asked = c.steps_up(way.browser("bob").sign_in, "crm__canary")
        assert asked == [] and "the permission set readers lacks the scope tools:call" in got["error"], (got, asked)
        assert way.op.counts() == before
    assert instance.psql("SELECT count(*) FROM mcpbox.executions WHERE principal = 'oidc:op:bob'") == [["0"]]


def test_one_without_a_rule(instance, way):
    """He has a good token of the provider, and is told 403: signing in again is no help."""
    with way.sdk("sdk") as c:
        got = c.do("connect")
        came = c.do("finish", url=way.browser("eve").sign_in(got["authorize"]))
        assert "error" in came, came
        token = c.good("tokens")["tokens"]["access_token"]
    r = listed(instance, token)
    assert r.status == 403 and r.error["data"]["failure_mode"] == "forbidden", r


def test_a_token_for_another_resource(instance, way):
    """The provider signs for whatever resource a client names, and we take tokens for ours alone."""
    def status(resource):
        browser, verifier = way.browser(), "v" * 43
        challenge = b64(hashlib.sha256(verifier.encode()).digest())
        came = browser.sign_in(way.op.issuer + "/auth?" + urllib.parse.urlencode({
            "response_type": "code", "client_id": "known", "redirect_uri": CALLBACK, "scope": "tools:read tools:call",
            "resource": resource, "state": "s", "code_challenge": challenge, "code_challenge_method": "S256"}))
        login = base64.b64encode(b"known:" + urllib.parse.quote_plus(KNOWN["client_secret"]).encode())
        page = browser.ask("POST", way.op.issuer + "/token", [
            ("grant_type", "authorization_code"), ("code", query(came)["code"]), ("redirect_uri", CALLBACK),
            ("code_verifier", verifier)], headers={"Authorization": "Basic " + login.decode()})
        assert page.status == 200, page
        return listed(instance, json.loads(page.text)["access_token"]).status
    assert status(way.resource) == 200
    assert status("https://else.example.org/mcp") == 401


def test_end_of_a_token_ends_its_stream(instance, way):
    way.op.seconds(int(patience(2)))
    try:
        with way.sdk("client") as c:
            c.sign_in(way.browser())
            token = c.token()
        body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": True}, "_meta": meta(MODERN, DECLARED)}}
        with Stream(instance.run("gatewayd-tunnel", "mcp.sock"), body=body, headers={
                "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen",
                "Authorization": "Bearer " + token}) as s:
            assert s.status == 200, s.headers
            s.message("notifications/subscriptions/acknowledged")
            s.rest(timeout=patience(90))
            assert s.ended
    finally:
        way.op.seconds(3600)


def test_withdrawn(instance, way):
    with way.sdk("client") as c:
        c.sign_in(way.browser())
        act = "SELECT mcpbox.act_identity_{}('root', NULL, NULL, '{{\"principal\": \"oidc:op:ann\"{}}}')"
        instance.psql(act.format("withdraw", ', "reason": "tried"'))
        try:
            until(lambda: "error" in c.do("call", name="crm__canary"))
        finally:
            instance.psql(act.format("restore", ""))
        until(lambda: "error" not in c.do("call", name="crm__canary"))
