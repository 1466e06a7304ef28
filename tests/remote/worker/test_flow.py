"""Through the Worker, with real parts all the way: official client, workerd, oidc-provider upstream, nginx, mcpbox."""
import json
import urllib.parse

import pytest

from harness.clients.mcp import LEGACY, MODERN
from harness.patience import until
from remote.worker.way import Way


@pytest.fixture(scope="module")
def way(instance):
    w = Way(instance)
    yield w
    w.close()


@pytest.mark.parametrize("how", ["dcr", "cimd", "known"])
@pytest.mark.parametrize("sdk, revision", [("sdk", LEGACY), ("client", MODERN)])
def test_finds_the_way_and_calls(instance, way, sdk, revision, how):
    with way.sdk(sdk, how=how) as c:
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(c.sign_in(way.browser())).query))
        assert asked["resource"] == way.worker.resource and asked["code_challenge_method"] == "S256"
        tools = c.good("list")["tools"]
        assert "crm__canary" in tools and "mcpbox_list_servers" not in tools
        assert c.text("crm__canary", n=5) == "canary 5"
        assert c.text("crm__tells") == "told"
        assert c.good("connect")["version"] == revision
    assert instance.psql("SELECT DISTINCT principal FROM mcpbox.executions WHERE listener = 'tunnel'") == [
        ["oidc:worker:ann"]]


@pytest.mark.parametrize("sdk", ["sdk", "client"])
def test_refresh_and_revocation(way, sdk):
    with way.sdk(sdk) as c:
        c.sign_in(way.browser())
        c.good("spoil")
        spoilt = c.token()
        assert c.text("crm__canary", n=1) == "canary 1"
        got = c.good("tokens")
        assert got["tokens"]["access_token"] != spoilt
        revoked = way.browser().ask("POST", way.worker.url + "/oauth/token", [
            ("token", got["tokens"]["refresh_token"]), ("token_type_hint", "refresh_token"),
            ("client_id", got["client"]["client_id"])])
        assert revoked.status == 200, revoked
        # Neither token is any good now: the client has to ask its person again.
        again = c.do("call", name="crm__canary")
        assert "authorize" in again or "error" in again, again
        ended = way.browser().ask("POST", way.worker.url + "/oauth/token", [
            ("grant_type", "refresh_token"), ("refresh_token", got["tokens"]["refresh_token"]),
            ("client_id", got["client"]["client_id"])])
        assert ended.status == 400 and json.loads(ended.text)["error"] == "invalid_grant", ended


def test_the_person_decides_the_rights(way):
    with way.sdk("client", scope="tools:read tools:call manage") as c:
        c.sign_in(way.browser(), scope=["tools:read", "tools:call", "manage"])
        assert "mcpbox_list_servers" in c.good("list")["tools"]
    with way.sdk("client", scope="tools:read tools:call manage") as c:
        c.sign_in(way.browser(), scope=["tools:read"])
        assert "mcpbox_list_servers" not in c.good("list")["tools"]
        assert "error" in c.do("call", name="crm__canary")


@pytest.mark.parametrize("sdk", ["sdk", "client"])
def test_step_up(instance, way, sdk):
    """The person leaves the client tools:read alone at first. Each 403 of mcpbox comes through with all rights to ask
    for, and the consent page shows them; each call runs once."""
    shown = []

    def consents(url):
        browser = way.browser(sdk)
        page = browser.open(url)
        shown.append((page.scopes, "See and try what is being made" in page.text))
        return browser.decide(page)
    with way.sdk(sdk, how="cimd") as c:
        c.sign_in(way.browser(sdk), scope=["tools:read"])
        signed, _ = way.op.counts()
        if sdk == "sdk":
            # The 1.x client refreshes in place of it, to the same rights, and gives up; without a refresh token it steps up.
            assert "after trying upscoping" in c.do("call", name="crm__canary")["error"]
            assert way.op.counts()[0] == signed and shown == []
            c.good("forget")
            c.good("connect")
        got, asked = c.steps_up(consents, "crm__canary")
        assert asked == [{"tools:read", "tools:call"}] and "error" not in got, (got, asked)
        assert got["result"]["content"][0]["text"] == "canary 0"
        if sdk == "sdk":
            c.good("forget")
        got, asked = c.steps_up(consents, "mcpbox_list_servers")
        assert asked == [{"tools:read", "tools:call", "manage"}] and "error" not in got, (got, asked)
        assert shown == [(["tools:read", "tools:call"], False), (["tools:read", "tools:call", "manage"], True)]
        assert way.op.counts()[0] == signed + 2
        # Each right that was asked for is one that the Worker's metadata name.
        told = way.browser().ask("GET", way.worker.url + "/.well-known/oauth-authorization-server")
        assert asked[0] <= set(json.loads(told.text)["scopes_supported"])
    assert instance.psql("SELECT tool, count(*) FROM mcpbox.executions WHERE principal = "
                         f"'oidc:worker:{sdk}' GROUP BY tool ORDER BY tool") == [
                             ["crm__canary", "1"], ["mcpbox_list_servers", "1"]]


@pytest.mark.parametrize("sdk", ["sdk", "client"])
def test_no_step_up_where_the_set_lacks_the_right(instance, way, sdk):
    """No sign-in helps: the client is not told that one would, and asks for none."""
    with way.sdk(sdk, how="cimd") as c:
        c.sign_in(way.browser("bob"))
        assert c.good("tokens")["tokens"]["scope"] == "tools:read tools:call"
        before = way.op.counts()
        got, asked = c.steps_up(way.browser("bob").sign_in, "crm__canary")
        assert asked == [] and "the permission set readers lacks the scope tools:call" in got["error"], (got, asked)
        assert way.op.counts() == before
    assert instance.psql("SELECT count(*) FROM mcpbox.executions WHERE principal = 'oidc:worker:bob'") == [["0"]]


def test_withdrawn_at_mcpbox(instance, way):
    """The client keeps its token: it is told 403, not to sign in again."""
    act = "SELECT mcpbox.act_identity_{}('root', NULL, NULL, '{{\"principal\": \"oidc:worker:ann\"{}}}')"
    with way.sdk("client") as c:
        c.sign_in(way.browser())
        instance.psql(act.format("withdraw", ', "reason": "tried"'))
        try:
            until(lambda: "error" in c.do("call", name="crm__canary"))
            r = way.browser().ask("POST", way.worker.resource, b"{}", headers={
                "Authorization": "Bearer " + c.token(), "Content-Type": "application/json"})
            assert r.status == 403, r
        finally:
            instance.psql(act.format("restore", ""))
        until(lambda: "error" not in c.do("call", name="crm__canary"))


def test_one_without_a_rule(way):
    with way.sdk("sdk") as c:
        got = c.do("connect")
        assert "error" in c.do("finish", url=way.browser("eve").sign_in(got["authorize"]))
