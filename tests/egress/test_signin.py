"""Administrators sign in by an issuer (decision 0105), through the whole suite: real confined runs against an OpenID
provider that the test plays, in a network namespace, and a browser with its cookies."""
import base64
import hashlib
import http.client
import json
import os
import queue
import threading
import time
import urllib.parse

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from egress.test_issuer_keys import ca, fetched, servers, SETS, Fetched  # noqa: F401: fixtures
from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.clients.signed_token import b64, document, set_document
from harness.instance import Instance
from harness.ipc import Peer, Table
from harness.patience import patience, until
from harness.played.egress import DNS

CLIENT = "mcpbox-panel"
RULES = [("sub", ["ann"], "administrator"), ("group", ["readers"], "viewer")]


@pytest.fixture(scope="module")
def instance(inside, dns, ca):  # noqa: F811
    with ca.trusted():
        i = Instance(sets=(f"egress:dns_servers={DNS}", "admind:breakers=no"))
    yield i
    i.close()


def signed(issuer, claims, **head):
    """An ID token. head: members that differ."""
    head = {"alg": "ES256", "kid": issuer.kid, "typ": "JWT", **head}
    said = b64(json.dumps({k: v for k, v in head.items() if v is not None}).encode()) + "." + b64(
        json.dumps({k: v for k, v in claims.items() if v is not None}).encode())
    r, s = decode_dss_signature(issuer.key.sign(said.encode(), ec.ECDSA(hashes.SHA256())))
    return said + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


class Provider(Fetched):
    """An issuer with a sign-in. claims: those of its ID tokens that differ; None leaves one out. head: likewise of
    their header. answer: what the token endpoint says in place of a token. forms: what it was sent."""

    def __init__(self, redirect, **metadata):
        super().__init__({"discovery": True, "sign_in": {"client_id": CLIENT, "redirect": redirect}})
        self.metadata = metadata
        self.claims, self.head, self.answer, self.forms, self.asked = {}, {}, None, [], {}

    def serve(self, server, max_age=3600):
        super().serve(server, max_age)
        server.pages[self.meta] = 200, {}, {
            "issuer": self.url, "jwks_uri": self.url + "/jwks", "authorization_endpoint": self.url + "/authorize",
            "token_endpoint": self.url + "/token", "authorization_response_iss_parameter_supported": True,
            **self.metadata}
        server.pages[self.path + "/token"] = self.token

    def authorise(self, url):
        """The browser is at the issuer. The query that it brings back."""
        at, _, query = url.partition("?")
        assert at == self.url + "/authorize", url
        asked = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
        assert asked["response_type"] == "code" and asked["client_id"] == CLIENT, asked
        assert asked["code_challenge_method"] == "S256" and "openid" in asked["scope"].split(), asked
        code = "code-" + hashlib.sha256(asked["state"].encode()).hexdigest()
        self.asked[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.url}

    def token(self, r):
        form = dict(urllib.parse.parse_qsl(r.body.decode(), strict_parsing=True))
        self.forms.append(form)
        if self.answer is not None:
            return self.answer(r) if callable(self.answer) else self.answer
        asked = self.asked.pop(form["code"], None)
        if asked is None or form["redirect_uri"] != asked["redirect_uri"] or form["client_id"] != CLIENT or b64(
                hashlib.sha256(form["code_verifier"].encode()).digest()) != asked["code_challenge"]:
            return 400, {}, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "ann", "nonce": asked["nonce"], "iat": now, "exp": now + 300,
                  "email": "ann@example.org", "email_verified": True, **self.claims}
        return 200, {}, {"access_token": "a", "token_type": "Bearer", "id_token": signed(self, claims, **self.head)}


class Browser:
    """One with cookies, as far as a sign-in needs them."""

    def __init__(self, instance):
        self.where = lambda: instance.address("admind-http")
        self.cookies, self.half = {}, None

    def send(self, method, path, body=None, **headers):
        c = http.client.HTTPConnection(*self.where(), timeout=patience(120))
        try:
            h = {k.replace("_", "-"): v for k, v in headers.items()}
            if self.cookies:
                h["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
            if body is not None:
                h["Content-Type"] = "application/json"
            c.request(method, path, json.dumps(body).encode() if body is not None else None, h)
            r = c.getresponse()
            text = r.read()
            for k, v in r.getheaders():
                if k.lower() == "set-cookie":
                    name, _, value = v.split(";")[0].partition("=")
                    self.cookies[name] = value
                    self.cookies = {k: v for k, v in self.cookies.items() if v}
            return r.status, {k.lower(): v for k, v in r.getheaders()}, text
        finally:
            c.close()

    def begin(self, name):
        status, _, text = self.send("POST", "/api/signin/begin", {"issuer": name})
        assert status == 200, text
        said = json.loads(text)
        self.half = said["csrf_token"]
        return said["url"]

    def back(self, query, **headers):
        """A browser's way back: a navigation that another site caused. The answer of the issuer, as the page at `/`
        finds it in its fragment."""
        headers = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document", **headers}
        status, headers, text = self.send("GET", "/api/signin/callback?" + urllib.parse.urlencode(query), **headers)
        assert status == 303 and text == b"" and "set-cookie" not in headers, (status, headers, text)
        at, _, fragment = headers["location"].partition("#")
        assert at == "/", headers
        return dict(urllib.parse.parse_qsl(fragment, strict_parsing=True))

    def finish(self, answer, half=None):
        return self.send("POST", "/api/signin/finish", answer, X_CSRF_Token=half or self.half)

    def comes_back(self, query):
        return self.finish(self.back(query))

    def rest(self, text):
        """A client of REST with the login."""
        r = Rest(self.where, proves=False)
        r.cookie, r.csrf = f"mcpbox_session={self.cookies['mcpbox_session']}", json.loads(text)["csrf_token"]
        return r


def redirect(instance):
    host, port = instance.address("admind-http")
    return f"http://{host}:{port}/api/signin/callback"


def rules(p, made=RULES):
    return [{"issuer": p.name, "claim": c, "values": v, "role": r} for c, v, r in made]


def holds(instance, *providers, made=RULES):
    value = document(providers, [(providers[0].name, "any", None, "use")], SETS)
    value["administrators"] = [rule for p in providers for rule in rules(p, made)]
    got = set_document(instance, value)
    assert got["_"] == "ACCESS_STATE", got


@pytest.fixture(scope="module")
def provider(instance, servers):  # noqa: F811
    p = Provider(redirect(instance))
    p.serve(servers[0])
    holds(instance, p)
    fetched(instance)
    return p


@pytest.fixture(autouse=True)
def honest(request):
    yield
    if "provider" in request.fixturenames:
        p = request.getfixturevalue("provider")
        p.claims, p.head, p.answer = {}, {}, None


def signs_in(instance, p):
    """The browser, and its REST client."""
    b = Browser(instance)
    status, _, text = b.comes_back(p.authorise(b.begin(p.name)))
    assert status == 200, (text, instance.logs()[-3000:])
    return b, b.rest(text)


def audit(instance, action):
    return [x for x in instance.ctl_json("audit", f"action={action}")["items"]]


def newest(instance, action):
    """Its number in the audit log; 0: there is none."""
    return next((x["seq"] for x in audit(instance, action)), 0)


def failed_since(instance, seq):
    """The record of a failed sign-in after that number. It is written after the answer, so it may be on its way."""
    return until(lambda: next((x for x in audit(instance, "login_failed") if x["seq"] > seq), None))


def refused(instance, p, query, mode="unauthenticated", browser=None):
    """The way back fails, and no login comes of it."""
    status, headers, text = browser.comes_back(query)
    said = json.loads(text)
    assert said["failure_mode"] == mode and status >= 400, (said, instance.logs()[-3000:])
    assert "set-cookie" not in headers and "mcpbox_session" not in browser.cookies
    for name in ("code", "state"):
        assert query.get(name, "-" * 50) not in said["detail"], said
    return said


def test_list_has_names_alone(instance, provider):
    status, _, text = Browser(instance).send("GET", "/api/signin")
    assert status == 200 and json.loads(text) == {"items": [{"name": provider.name}], "next_cursor": None}, text


def test_good(instance, provider):
    b, rest = signs_in(instance, provider)
    assert "mcpbox_signin" not in b.cookies
    status, _, me = rest.get("/api/me")
    assert status == 200 and (me["username"], me["role"]) == (f"ann@{provider.name}", "administrator"), me
    login, = [x for x in instance.ctl_json("logins")["items"] if x["username"] == me["username"]]
    assert login["by"] == "issuer", login
    # the exchange was of a public client, with the verifier of this sign-in
    form = provider.forms[-1]
    assert set(form) == {"grant_type", "code", "redirect_uri", "client_id", "code_verifier"}, form
    row = until(lambda: next((x for x in audit(instance, "login") if x["actor"] == me["username"]), None))
    assert row["detail"]["issuer"] == provider.name and row["detail"]["subject"] == "ann", row
    assert row["detail"]["email"] == "ann@example.org", row
    # neither code nor verifier is in a record or a log
    kept = "".join(map(str, instance.psql("SELECT e::text FROM mcpbox.executions e"))) + instance.logs(100000)
    assert "signin:" in kept
    for secret in (form["code"], form["code_verifier"], b.half):
        assert secret not in kept
    assert rest.request("POST", "/api/logout")[0] == 204


def test_it_seals_nothing(instance, provider):
    with Client(instance.address) as c:
        tool_id = flow.draft(c, "own", "wanted", "def main() -> int:\n    return 2\n")
        c.manage("mcpbox_request_publish", tool_id=tool_id)
    item = flow.pending(instance, "wanted")
    _, rest = signs_in(instance, provider)
    assert rest.get("/api/approvals")[0] == 200
    status, _, value = rest.request("POST", f"/api/approvals/{item['id']}/approve", {},
                                    {"If-Match": f'"{item["hash"]}"'})
    assert (status, value["failure_mode"]) == (403, "proof_required"), value
    status, headers, value = rest.get("/api/access")
    status, _, value = rest.request("PUT", "/api/access", value["document"], {"If-Match": headers["etag"]})
    assert (status, value["failure_mode"]) == (403, "proof_required"), value
    status, _, value = rest.request("POST", "/api/administrators", {
        "username": "mallory", "password": "p" * 20, "new_password": "p" * 20, "role": "administrator"})
    assert (status, value["failure_mode"]) == (403, "proof_required"), value
    status, _, value = rest.request("PUT", "/api/servers/own/secrets/KEY", {"value": "x"})
    assert (status, value["failure_mode"]) == (403, "proof_required"), value
    assert flow.pending(instance, "wanted")["hash"] == item["hash"]
    rest.request("POST", "/api/logout")


def test_a_viewer_only_reads(instance, provider):
    provider.claims = {"sub": "bob", "groups": ["readers"]}
    _, rest = signs_in(instance, provider)
    assert rest.get("/api/me")[2]["role"] == "viewer"
    status, _, value = rest.request("PUT", "/api/servers/own/secrets/KEY", {"value": "x"})
    assert status == 403, value
    item = flow.pending(instance, "wanted")
    status, _, value = rest.request("POST", f"/api/approvals/{item['id']}/approve", {},
                                    {"If-Match": f'"{item["hash"]}"'})
    assert status == 403, value
    rest.request("POST", "/api/logout")


def test_names(instance, provider):
    """A name is a subject's own, or of its hash; no password's administrator has one."""
    for sub in ("a|b", "0123456789abcdef", "x" * 33):
        provider.claims = {"sub": sub, "groups": ["readers"]}
        _, rest = signs_in(instance, provider)
        digits = hashlib.sha256(sub.encode()).hexdigest()[:16]
        assert rest.get("/api/me")[2]["username"] == f"{digits}@{provider.name}"
        rest.request("POST", "/api/logout")
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    status, _, value = r.request("POST", "/api/administrators", {
        "username": f"ann@{provider.name}", "password": instance.password, "new_password": "p" * 20, "role": "viewer"})
    assert (status, value["failure_mode"]) == (400, "invalid_params"), value
    assert "member" not in value["detail"], value
    r.request("POST", "/api/logout")


BAD_TOKENS = {
    "nonce": ({"nonce": "another"}, {}), "no_nonce": ({"nonce": None}, {}),
    "aud": ({"aud": "another"}, {}), "our_resource": ({"aud": "https://mcp.example.org/mcp"}, {}),
    "azp": ({"azp": "another"}, {}), "several_aud": ({"aud": [CLIENT, "another"]}, {}),
    "several_aud_azp": ({"aud": [CLIENT, "another"], "azp": "another"}, {}),
    "iss": ({"iss": "https://id.example/other"}, {}),
    "expired": ({"exp": 1700000000}, {}), "no_exp": ({"exp": None}, {}),
    "old": ({"iat": 1700000000}, {}), "no_iat": ({"iat": None}, {}),
    "no_sub": ({"sub": None}, {}),
    "none": ({}, {"alg": "none"}), "hs256": ({}, {"alg": "HS256"}), "jwk": ({}, {"jwk": {"kty": "oct", "k": "AA"}}),
    "logout": ({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}, {}),
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_bad_token(instance, provider, name):
    provider.claims, provider.head = BAD_TOKENS[name]
    b = Browser(instance)
    seq = newest(instance, "login_failed")
    refused(instance, provider, provider.authorise(b.begin(provider.name)), browser=b)
    assert len(provider.forms) > 0
    row = failed_since(instance, seq)
    assert row["detail"]["issuer"] == provider.name and row["detail"]["reason"], row


def test_no_rule(instance, provider):
    provider.claims = {"sub": "mallory"}
    b = Browser(instance)
    seq = newest(instance, "login_failed")
    refused(instance, provider, provider.authorise(b.begin(provider.name)), mode="forbidden", browser=b)
    row = failed_since(instance, seq)
    assert row["detail"]["subject"] == "mallory", row


def other_text(text):
    return ("x" if text[0] != "x" else "y") + text[1:]


def exchanges(provider, act):
    """How many codes were exchanged meanwhile."""
    before = len(provider.forms)
    act()
    return len(provider.forms) - before


def test_state(instance, provider):
    """Only this browser's, once."""
    def tries():
        b, other = Browser(instance), Browser(instance)
        query = provider.authorise(b.begin(provider.name))
        cookies, half = dict(b.cookies), b.half
        refused(instance, provider, {**query, "state": other_text(query["state"])}, mode="not_found", browser=b)
        assert b.finish({"code": query["code"], "iss": query["iss"]})[0] == 400
        # no cookie, another browser's, and another page's half
        b.cookies = {}
        refused(instance, provider, query, browser=b)
        other.begin(provider.name)
        refused(instance, provider, query, mode="not_found", browser=other)
        b.cookies, b.half = dict(other.cookies), half
        refused(instance, provider, query, mode="not_found", browser=b)
        b.cookies, b.half = dict(cookies), other.half
        refused(instance, provider, query, mode="not_found", browser=b)
        b.cookies, b.half = cookies, half
        return b, query
    made = []
    assert exchanges(provider, lambda: made.extend(tries())) == 0
    b, query = made
    cookies = dict(b.cookies)
    # none of these used it up; then it serves once
    assert b.comes_back(query)[0] == 200
    b.cookies = cookies
    assert exchanges(provider, lambda: b.comes_back(query)) == 0
    assert b.comes_back(query)[0] == 404


def test_a_neighbour_plants_its_cookie(instance, provider):
    """A program on another port sets the cookie of a sign-in of its own, and leads the browser to the issuer. It gets
    no login as this person; nor does the person get one as whoever the program is."""
    neighbour, person = Browser(instance), Browser(instance)
    url = neighbour.begin(provider.name)
    planted = dict(neighbour.cookies)
    # the person begins, too: the page of this origin has a half of its own
    person.begin(provider.name)
    person.cookies = dict(planted)
    query = provider.authorise(url)
    answer = person.back(query)
    assert person.finish(answer)[0] == 404
    assert "mcpbox_session" not in person.cookies
    # without the answer, which is in the fragment of our origin alone, its own halves are of no use
    assert neighbour.finish({"state": answer["state"]})[0] == 401
    # the other way round: its code, in the person's browser
    code = provider.authorise(neighbour.begin(provider.name))
    person.begin(provider.name)
    assert person.finish(person.back(code))[0] == 404


def test_pages_of_others(instance, provider):
    b = Browser(instance)
    query = provider.authorise(b.begin(provider.name))
    for path in ("/api/signin/begin", "/api/signin/finish"):
        for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
                        {"Origin": "http://evil.example"}, {"Host": "evil.example"}):
            status, _, text = b.send("POST", path, {"issuer": provider.name}, X_CSRF_Token=b.half, **headers)
            assert status == 403 and json.loads(text)["failure_mode"] == "forbidden_origin", text
    host, port = instance.address("admind-http")
    # the name localhost is led to the address; logins are not made there
    status, headers, _ = b.send("GET", "/api/signin/callback?state=s%26x&code=c&more=m", Host=f"localhost:{port}")
    assert (status, headers["location"]) == (303, f"http://127.0.0.1:{port}/#state=s%26x&code=c"), headers
    for path in ("/api/signin/begin", "/api/signin/finish"):
        status, _, text = b.send("POST", path, {"issuer": provider.name}, X_CSRF_Token=b.half, Host=f"localhost:{port}")
        assert status == 403 and json.loads(text)["failure_mode"] == "forbidden_origin", text
    # it leads nowhere else, and is for answers alone
    for bad in ("", "?code=c", "?state=a&state=b", "?state=%00", "?state=%zz", "?state=" + "x" * 3000):
        status, headers, _ = b.send("GET", "/api/signin/callback" + bad)
        assert status >= 400 and "location" not in headers, (bad, headers)
    status, headers, _ = b.send("GET", "/api/signin/callback?state=//evil.example/%0d%0aX:y", Host=f"127.0.0.1:{port}")
    assert status >= 400 or headers["location"].startswith("/#state="), headers
    assert b.comes_back(query)[0] == 200


def test_answer_of_the_issuer(instance, provider, servers):  # noqa: F811
    def one(change):
        b = Browser(instance)
        query = provider.authorise(b.begin(provider.name))
        refused(instance, provider, change(query), browser=b)
    def changes():
        one(lambda q: {**q, "iss": "https://id.example/other"})
        one(lambda q: {k: v for k, v in q.items() if k != "iss"})
        one(lambda q: {"state": q["state"], "iss": q["iss"], "error": "access_denied"})
        one(lambda q: {k: v for k, v in q.items() if k != "code"})
    assert exchanges(provider, changes) == 0
    until(lambda: "another issuer" in "".join(str(x["detail"]) for x in audit(instance, "login_failed")))


def test_mix_up(instance, provider, servers):  # noqa: F811
    """A hostile issuer, which promises no `iss`, leads the browser on to another one that sends none, with the state of
    ours that it got. The other's code is not sent to it. Alone, an issuer may do without `iss`."""
    quiet = {"authorization_response_iss_parameter_supported": False}
    hostile, honest = Provider(redirect(instance), **quiet), Provider(redirect(instance), **quiet)
    for p in (hostile, honest):
        p.serve(servers[0])
    holds(instance, hostile, honest)
    until(lambda: all(x["count"] for x in instance.ctl_json("access", "show")["keys"]), 120)
    b = Browser(instance)
    url = b.begin(hostile.name)
    query = honest.authorise(url.replace(hostile.url + "/authorize", honest.url + "/authorize"))
    told = refused(instance, honest, {k: v for k, v in query.items() if k != "iss"}, browser=b)
    assert "only issuer with `sign_in`" in told["detail"], told
    # that the honest one sends it is enough, whatever it promises
    refused(instance, honest, honest.authorise(b.begin(hostile.name).replace(hostile.url, honest.url)), browser=b)
    assert hostile.forms == honest.forms == []
    signs_in(instance, honest)[1].request("POST", "/api/logout")
    holds(instance, honest)
    fetched(instance)
    query = honest.authorise(b.begin(honest.name))
    status, _, text = b.comes_back({k: v for k, v in query.items() if k != "iss"})
    assert status == 200, text
    b.rest(text).request("POST", "/api/logout")
    holds(instance, provider)
    fetched(instance)


BAD_ANSWERS = {
    "gone": ((404, {}, b""), "404"),
    "denied": ((400, {}, {"error": "invalid_client"}), "public one"),
    "redirect": ((302, {"Location": "https://other.example/token"}, b""), "redirect"),
    "huge": ((200, {}, b"{" + b" " * (1 << 20) + b"}"), "65536"),
    "no_json": ((200, {}, b"<html>"), "id_token"),
    "no_token": ((200, {}, {"access_token": "a"}), "id_token"),
    "long": ((200, {}, {"id_token": "a" * 9000}), "id_token"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_token_endpoint(instance, provider, servers, name):  # noqa: F811
    provider.answer, word = BAD_ANSWERS[name]
    before = servers[1].asked.copy()
    b = Browser(instance)
    query = provider.authorise(b.begin(provider.name))
    seq = newest(instance, "login_failed")
    told = refused(instance, provider, query, mode="upstream_error", browser=b)
    assert word in told["detail"], told
    said = str(failed_since(instance, seq)["detail"])
    assert word in said and query["code"] not in said, said
    assert servers[1].asked == before


def test_token_endpoint_is_slow(instance, provider):
    stop = threading.Event()
    provider.answer = lambda r: (stop.wait(patience(120)), (200, {}, {}))[1]
    b = Browser(instance)
    seq = newest(instance, "login_failed")
    told = refused(instance, provider, provider.authorise(b.begin(provider.name)), mode="upstream_error", browser=b)
    stop.set()
    assert "20 s" in told["detail"]
    assert "20 s" in str(failed_since(instance, seq)["detail"])


@pytest.mark.parametrize("metadata, word", [
    ({"authorization_endpoint": "https://other.example/authorize"}, "other.example"),
    ({"token_endpoint": "https://other.example/token"}, "other.example"),
    ({"authorization_endpoint": "http://id.example/authorize"}, "https"),
    ({"authorization_endpoint": "https://id.example/authorize?state=mine"}, "authorization_endpoint"),
    ({"token_endpoint": None}, "token_endpoint"),
    ({"code_challenge_methods_supported": ["plain"]}, "S256"),
])
def test_metadata(instance, provider, servers, metadata, word):  # noqa: F811
    """Nobody can sign in there. Its keys are fetched all the same."""
    p = Provider(redirect(instance), **metadata)
    p.serve(servers[0])
    holds(instance, p, provider)
    until(lambda: all(x["count"] for x in instance.ctl_json("access", "show")["keys"]), 120)
    status, _, text = Browser(instance).send("POST", "/api/signin/begin", {"issuer": p.name})
    assert status != 200 and word in json.loads(text)["detail"], text
    holds(instance, provider)


def test_metadata_of_another_issuer(instance, provider, servers):  # noqa: F811
    p = Provider(redirect(instance))
    p.serve(servers[0])
    p.metadata = {"issuer": provider.url}
    p.serve(servers[0])
    holds(instance, p, provider)
    until(lambda: any("byte by byte" in (x["error"] or "") for x in instance.ctl_json("access", "show")["keys"]), 120)
    status, _, text = Browser(instance).send("POST", "/api/signin/begin", {"issuer": p.name})
    assert status == 503 and json.loads(text)["failure_mode"] == "issuer_unavailable", text
    holds(instance, provider)


def ended(rest):
    return until(lambda: rest.get("/api/me")[0] == 401)


def test_ends(instance, provider):
    """A document without the rule, and a withdrawal, end the logins; a password's login stays."""
    mine = Rest(lambda: instance.address("admind-http"))
    assert mine.login("admin", instance.password)[0] == 200
    _, rest = signs_in(instance, provider)
    holds(instance, provider, made=RULES[1:])
    ended(rest)
    holds(instance, provider)
    _, rest = signs_in(instance, provider)
    instance.ctl("identities", "withdraw", f"oidc:{provider.name}:ann", "--yes", check=False)
    if rest.get("/api/me")[0] == 200:
        body = json.dumps({"principal": f"oidc:{provider.name}:ann", "reason": "tried"})
        instance.psql(f"SELECT mcpbox.act_identity_withdraw('root', NULL, NULL, '{body}')")
    ended(rest)
    b = Browser(instance)
    refused(instance, provider, provider.authorise(b.begin(provider.name)), mode="forbidden", browser=b)
    body = json.dumps({"principal": f"oidc:{provider.name}:ann"})
    instance.psql(f"SELECT mcpbox.act_identity_restore('root', NULL, NULL, '{body}')")
    until(lambda: Browser.comes_back(c := Browser(instance), provider.authorise(c.begin(provider.name)))[0] == 200)
    # a change between the beginning and the end
    b = Browser(instance)
    query = provider.authorise(b.begin(provider.name))
    holds(instance, provider, made=RULES[:1])
    refused(instance, provider, query, mode="not_found", browser=b)
    holds(instance, provider)
    # and while the code is exchanged
    b = Browser(instance)
    asked, go = threading.Event(), threading.Event()
    provider.answer = lambda r: (asked.set(), go.wait(patience(60)), setattr(provider, "answer", None), provider.token(r))[3]
    answers = queue.Queue()
    threading.Thread(target=lambda: answers.put(b.comes_back(provider.authorise(b.begin(provider.name))))).start()
    assert asked.wait(patience(60))
    holds(instance, provider, made=RULES[1:])
    until(lambda: instance.ctl_json("access", "show")["in_force"])
    go.set()
    got = answers.get(timeout=patience(60))
    assert (got[0], json.loads(got[2])["failure_mode"]) == (409, "conflict"), got
    holds(instance, provider)
    assert mine.get("/api/me")[0] == 200
    until(lambda: {"issuers", f"ann@{provider.name}"} <= {x["subject"] for x in audit(instance, "login_ended")})


def test_a_flood_of_beginnings_is_forgotten(instance, provider):
    """Nothing is remembered of a beginning, so those before it are not pushed out."""
    first = Browser(instance)
    query = provider.authorise(first.begin(provider.name))
    rss = resident(instance)
    for _ in range(1500):
        assert Browser(instance).begin(provider.name)
    assert resident(instance) - rss < 16 << 20
    assert first.comes_back(query)[0] == 200


def resident(instance):
    with open(f"/proc/{instance.service_pid('admind')}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * 4096


def redeem(instance, ticket, answers):
    """As admind-http does."""
    with Peer.open(Table(), instance, "adminweb", "admind-vault", "http") as web:
        answers.put(web.call("SIGNIN_REDEEM", ticket=ticket, source="127.0.0.1", agent="x"))


def test_a_hostile_admind(instance, provider):
    """It can grant a login to whoever helps it. It can't fetch one, name a password's person, or seal by it."""
    _, rest = signs_in(instance, provider)
    rest.request("POST", "/api/logout")
    ticket = b64(os.urandom(64))
    grant = {"ticket": hashlib.sha256(ticket.encode()).digest(), "role": "administrator", "issuer": provider.name,
             "subject": "x", "email": "", "basis": bytes(32)}
    with Peer.open(Table(), instance, "admind", "admind-vault", "admind") as vault:
        for name in ("admin", "admin@", f"@{provider.name}", f"ad min@{provider.name}", "ann@other"):
            got = vault.call("SIGNIN_GRANT", **grant, username=name)
            assert got["_"] == "REFUSED", (name, got)
        got = vault.call("SIGNIN_DROP", username="admin")
        assert got["_"] == "REFUSED", got
        # its own word on what holds
        assert vault.call("SIGNIN_HOLDS", issuers=bytes(32))["_"] == "OK"
        assert vault.call("SIGNIN_GRANT", **grant, username=f"boss@{provider.name}")["_"] == "OK"
        answers = queue.Queue()
        threading.Thread(target=redeem, args=(instance, ticket, answers)).start()
        number, asked = vault.receive(patience(30))     # the vault asks the newest connection of admind's user
        assert asked["_"] == "AUDIT_EVENT", asked
        vault.send("OK", request=number)
        got = answers.get(timeout=patience(30))
    assert got["_"] == "LOGIN_OK", got
    rest = Rest(lambda: instance.address("admind-http"), proves=False)
    rest.cookie, rest.csrf = f"mcpbox_session={got['token'][:43]}", got["token"][43:]
    with Peer.open(Table(), instance, "adminweb", "admind-vault", "http") as web:    # once
        assert web.call("SIGNIN_REDEEM", ticket=ticket, source="", agent="")["_"] == "REFUSED"
    status, _, value = rest.request("PUT", "/api/servers/own/secrets/KEY", {"value": "x"})
    assert (status, value["failure_mode"]) == (403, "proof_required"), value
    rest.request("POST", "/api/logout")
