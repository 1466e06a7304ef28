"""Attacks on the Worker by a stranger, a lying provider and a hostile client. Each is beside the honest way, which
works."""
import json
import urllib.parse

import pytest

from harness.clients.browser import CALLBACK, Page
from harness.patience import patience
from remote.worker.conftest import STRANGE, VERIFIER, query

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=y>\u202eevil"


def refused(page, status=400):
    assert isinstance(page, Page), page
    assert page.status == status, page
    return page.text


# ---- codes and PKCE ----

def test_the_honest_way(alone):
    status, got = alone.exchange(alone.client, alone.browser().sign_in(alone.authorize(alone.client)))
    assert status == 200 and got["token_type"].lower() == "bearer", got
    assert got["scope"] == "tools:read tools:call" and got["refresh_token"] and got["expires_in"] == 3600


def test_wrong_verifier(alone):
    came = alone.browser().sign_in(alone.authorize(alone.client))
    status, got = alone.exchange(alone.client, came, "w" * 43)
    assert status == 400 and got["error"] == "invalid_grant", got


def test_code_used_twice(alone):
    """The second use ends what the first one got, too: one of the two was a thief (RFC 6749 section 4.1.2)."""
    came = alone.browser().sign_in(alone.authorize(alone.client))
    status, got = alone.exchange(alone.client, came)
    assert status == 200
    bearer = {"Authorization": "Bearer " + got["access_token"]}
    assert alone.ask("GET", "/mcp", **bearer).status == 200
    status, again = alone.exchange(alone.client, came)
    assert status == 400 and again["error"] == "invalid_grant", again
    assert alone.ask("GET", "/mcp", **bearer).status == 401


@pytest.mark.parametrize("fields", [
    {"code_challenge": None, "code_challenge_method": None}, {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
    {"code_challenge": VERIFIER, "code_challenge_method": None}], ids=["none", "plain", "no method"])
def test_without_s256(alone, fields):
    came = alone.browser().open(alone.authorize(alone.client, **fields))
    if isinstance(came, Page):
        refused(came)
    else:
        assert "code" not in query(came) and query(came)["error"] == "invalid_request", came


def test_code_of_another_client(alone):
    status, other = alone.register()
    assert status == 201
    came = alone.browser().sign_in(alone.authorize(alone.client))
    status, got = alone.exchange(other["client_id"], came)
    assert status == 400 and got["error"] == "invalid_grant", got


def test_answer_names_its_issuer(alone):
    came = query(alone.browser().sign_in(alone.authorize(alone.client)))
    assert came["iss"] == alone.url and came["state"] == "the state"


# ---- where codes may go ----

@pytest.mark.parametrize("uri", ["https://evil.example.net/in", "https://claude.ai/api/mcp/auth_callback/x",
                                 "http://claude.ai/api/mcp/auth_callback", "http://localhost.evil.example.net/callback",
                                 "http://127.0.0.1@evil.example.net/"])
def test_redirect_that_is_not_listed(alone, uri):
    status, got = alone.register(redirect_uris=[CALLBACK, uri])
    assert status == 400, got
    assert alone.register(redirect_uris=[CALLBACK, "https://claude.ai/api/mcp/auth_callback"],
                          )[0] == 201


def test_redirect_of_a_clients_own_site(alone):
    """A document (CIMD) is not registered, so the list is asked when it is used. No error goes there, either."""
    page = alone.browser().open(alone.authorize(STRANGE, redirect_uri="https://strange.example.net/in"))
    assert "REDIRECTS" in refused(page)
    # Not even with something wrong that is otherwise told to the client.
    page = alone.browser().open(alone.authorize(STRANGE, redirect_uri="https://strange.example.net/in",
                                                response_type="token"))
    refused(page)


def test_redirect_of_another_client(alone):
    refused(alone.browser().open(alone.authorize(alone.client, redirect_uri="https://claude.ai/api/mcp/auth_callback")))


def test_another_resource(alone):
    came = alone.browser().open(alone.authorize(alone.client, resource="https://else.example.org/mcp"))
    assert query(came)["error"] == "invalid_target"


# ---- registration ----

@pytest.mark.parametrize("fields", [
    {"client_name": "n" * 101}, {"redirect_uris": [f"http://localhost:{p}/" for p in range(1, 12)]},
    {"redirect_uris": ["http://localhost/" + "a" * 512]}, {"redirect_uris": ["cursor://only/this"]},
    {"redirect_uris": []}], ids=["name", "number", "length", "scheme", "none"])
def test_registration_has_bounds(alone, fields):
    status, got = alone.register(alone.browser(), **fields)
    assert status == 400 and got["error"] == "invalid_client_metadata", got


# ---- the consent page ----

def test_hostile_name_is_text(alone):
    status, got = alone.register(client_name=HOSTILE)
    assert status == 201
    page = alone.browser().open(alone.authorize(got["client_id"]))
    assert page.status == 200 and "&#60;script&#62;alert(1)" in page.text
    assert "<script" not in page.text and "<img" not in page.text and "\u202e" not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "script-src" not in policy
    assert page.headers["x-frame-options"] == "DENY" and page.headers["cache-control"] == "no-store"


def test_page_says_who_where_and_what(alone):
    page = alone.browser().open(alone.authorize(alone.client, scope="tools:call manage offline_access nonsense"))
    for part in ("mcpbox tests", "localhost", "your own computer", "nobody has verified its name"):
        assert part in page.text, page
    assert page.scopes == ["tools:call", "manage"]


def test_consent_of_another_browser(alone):
    """A site that leads its victim to a form of its own session's gets nothing."""
    page = alone.browser().open(alone.authorize(alone.client))
    refused(alone.browser().decide(page))


def test_consent_twice(alone):
    browser = alone.browser()
    page = browser.open(alone.authorize(alone.client))
    kept = {host: dict(jar) for host, jar in browser.jar.items()}
    assert query(browser.decide(page))["code"]
    browser.jar = kept
    refused(browser.decide(page))


def test_form_of_another_site(alone):
    browser = alone.browser()
    page = browser.open(alone.authorize(alone.client))
    form = [("handle", page.handle), ("decision", "allow"), ("scope", "tools:call")]
    refused(browser.ask("POST", alone.url + "/authorize", form, headers={"Origin": "https://evil.example.net"}))
    assert browser.ask("POST", alone.url + "/authorize", form, headers={"Origin": alone.url}).next


def test_refusal(alone):
    browser = alone.browser()
    came = query(browser.decide(browser.open(alone.authorize(alone.client)), decision="deny"))
    assert came["error"] == "access_denied" and came["state"] == "the state" and "code" not in came
    assert not [s for s in alone.openid.seen[-1:] if s.get("state") == "the state"]


def test_rights_that_nobody_has(alone):
    browser = alone.browser()
    came = query(browser.decide(browser.open(alone.authorize(alone.client)), scope=["root"]))
    assert came["error"] == "access_denied", came


# ---- the provider's answer ----

def test_asks_the_provider_well(alone):
    alone.browser().sign_in(alone.authorize(alone.client))
    asked, told = alone.openid.seen[-2:]
    assert asked["code_challenge_method"] == "S256" and len(asked["nonce"]) >= 43 and len(asked["state"]) >= 43
    assert asked["redirect_uri"] == alone.url + "/callback" and "openid" in asked["scope"].split()
    assert told["authorization"].startswith("Basic ") and alone.worker.SECRET not in json.dumps(asked)


def changed(**claims):
    return lambda p, c: p.sign({**c, **claims})


@pytest.mark.parametrize("token", [
    changed(nonce="another"), changed(aud="another"), changed(aud=["worker", "another"]), changed(azp="another"),
    changed(iss="https://another.example.org"), changed(exp=1), changed(iat=4102444800), changed(sub=""),
    changed(sub=7), changed(sub="s" * 256),
    lambda p, c: p.sign({k: v for k, v in c.items() if k != "nonce"}),
    lambda p, c: p.sign({k: v for k, v in c.items() if k != "exp"}),
    lambda p, c: p.unsigned(c), lambda p, c: p.by_secret(c, b"the secret of the worker at its provider"),
    lambda p, c: p.by_secret(c, json.dumps(p.jwk()).encode()), lambda p, c: p.sign(c, key=p.other),
    lambda p, c: p.sign(c, kid="unknown"), lambda p, c: p.sign(c, crit=["x"], x=1), lambda p, c: "a.b.c",
    lambda p, c: None],
    ids=["nonce", "aud", "two aud", "azp", "iss", "expired", "future", "no subject", "subject is a number",
         "long subject", "without nonce", "without exp", "alg none", "HS256 by secret", "HS256 by public key",
         "another key", "unknown kid", "crit", "no token", "missing"])
def test_id_token(alone, token):
    alone.openid.id_token = token
    browser = alone.browser()
    page = browser.decide(browser.open(alone.authorize(alone.client)))
    assert "sign-in failed" in refused(page)


def test_userinfo(alone):
    """Asked where the ID token has no address. It counts for this person only, and with its own word on the address."""
    alone.openid.id_token = lambda p, c: p.sign({k: v for k, v in c.items() if k != "email"})
    alone.openid.userinfo = {"sub": "ann", "email": "other@example.org"}
    alone.ask("GET", "/mcp", Authorization="Bearer " + alone.token(alone.client))
    token = alone.mcpbox.seen.get(timeout=patience(20)).headers["authorization"].split(" ")[1]
    said = alone.worker.key.read(token)[1]
    assert said["sub"] == "ann" and said["email"] == "other@example.org" and "email_verified" not in said
    alone.openid.userinfo = {"sub": "eve", "email": "eve@example.org"}
    browser = alone.browser()
    assert "another person" in refused(browser.decide(browser.open(alone.authorize(alone.client))))


def forged(alone, change):
    """The browser's way to /callback, where `change` turns the address into another."""
    browser = alone.browser()
    page = browser.open(alone.authorize(alone.client))
    page = browser.ask("POST", alone.url + "/authorize", [("handle", page.handle), ("decision", "allow"),
                                                          ("scope", "tools:call")])
    to = browser.ask("GET", page.next).next
    url = urllib.parse.urlsplit(to)
    fields = dict(urllib.parse.parse_qsl(url.query))
    change(fields)
    return browser, url._replace(query=urllib.parse.urlencode(fields)).geturl()


def test_state(alone):
    browser, url = forged(alone, lambda fields: None)
    assert query(browser.open(url))["code"]
    refused(browser.open(url))
    for change in (lambda f: f.update(state="forged"), lambda f: f.pop("state")):
        browser, url = forged(alone, change)
        refused(browser.open(url))
    # A stranger's good state in the victim's browser: login CSRF.
    _, url = forged(alone, lambda fields: None)
    refused(alone.browser().open(url))


def test_issuer_of_the_answer(alone):
    for change in (lambda f: f.update(iss="https://another.example.org"), lambda f: f.pop("iss"), lambda f: f.pop("code")):
        browser, url = forged(alone, change)
        refused(browser.open(url))


def test_provider_refuses(alone):
    alone.openid.answer = {"code": None, "error": "access_denied"}
    browser = alone.browser()
    came = query(browser.decide(browser.open(alone.authorize(alone.client))))
    assert came["error"] == "access_denied" and "code" not in came
