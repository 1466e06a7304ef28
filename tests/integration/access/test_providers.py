"""Six products as issuers, each by the document that "Issuers" of docs/ACCESS.md tells its reader to write, through the
tunnel's socket and all real daemons: a token as the product's own documents describe it comes in, and each mistake that
the page warns about is refused by name. No product runs here. Two things differ from the page: the keys are given
(`jwks`) and not fetched, and they are the test's."""
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from harness.clients import flow
from harness.clients.api_token import where
from harness.clients.mcp import LEGACY, Client, request
from harness.clients.signed_token import RESOURCE, Issuer, b64, document, set_document
from harness.instance import Instance
from integration.access.test_identities import bearer, users

KEY = rsa.generate_private_key(65537, 2048)
SETS = {"family": {"scopes": ["tools:read", "tools:call"], "allow": ["crm__canary"]},
        "staff": {"scopes": ["tools:read", "tools:call"], "allow": ["*"]}}
UUID, ELSE, TENANT = ("7335d417-61da-459d-899c-0a01c76a2f94", "32eafc76-616d-4eaf-8dc3-e63d7bcbed58",
                      "9f2c6d2e-0c0f-4f0e-8a57-2d5b1f6f7a10")
CLIENT, AUD = "Qx5Yt0aB3kfWm7dRzU1hJpLc", "32eafc7626e737b1" * 4
ANN = {"email": "ann@example.org", "email_verified": True}


class Product(Issuer):
    """rule: the claim and value by which Ann gets her set. claims: those of her token. more: members of the entry."""

    kid = "6x"

    def __init__(self, name, url, rule, typ, claims, **more):
        self.name, self.url, self.rule, self.typ, self.claims, self.more = name, url, rule, typ, claims, more

    def entry(self):
        n = KEY.public_key().public_numbers().n
        jwk = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "e": "AQAB",
               "n": b64(n.to_bytes(256, "big"))}
        return {"name": self.name, "issuer": self.url, "jwks": {"keys": [jwk]}, **self.more}

    def token(self, **changes):
        """Ann's, with claims that differ; one that is None is left out."""
        now = int(time.time())
        body = {"iss": self.url, "sub": UUID, "iat": now, "exp": now + 900, **self.claims, **changes}
        said = ".".join(b64(json.dumps(part).encode()) for part in (
            {"alg": "RS256", "kid": self.kid, "typ": self.typ}, {k: v for k, v in body.items() if v is not None}))
        return said + "." + b64(KEY.sign(said.encode(), padding.PKCS1v15(), hashes.SHA256()))

    def document(self, rule=None, **members):
        """members: of the entry, that differ. Another issuer needs another name for good."""
        entry = {**self.entry(), **members}
        entry["name"] += "-else" * ("issuer" in members)
        claim, value = rule or self.rule
        rules = ((entry["name"], claim, [value + "-else"], "staff"), (entry["name"], claim, [value], "family"))
        return {**document([], rules, SETS), "issuers": [entry]}


# Release 2.14: APIs, tokens of RFC 9068. Its issues 1389 and 837: nothing about the person beside `sub`. Its source,
# oidc/access_token_scope.go: with `openid`, `aud` has Pocket ID as well.
POCKET = Product("pocket", "https://id.example.org", ("sub", UUID), "at+jwt", {
    "aud": [RESOURCE, "https://id.example.org"], "client_id": ELSE, "scope": "openid email", "jti": "p1"},
    algorithms=["RS256"])
# Server administration guide, "Audience support" and "Protocol mappers": `azp` is the client, `typ` a claim as well,
# `account` in `aud` comes with roles; a group is its path unless the mapper's full path is off.
KEYCLOAK = Product("keycloak", "https://sso.example.org/realms/home", ("group", "family"), "JWT", {
    "aud": [RESOURCE, "account"], "typ": "Bearer", "azp": "claude", "sid": "s", "acr": "1", "jti": "onrtac:1",
    "scope": "openid profile email", "groups": ["family"], "preferred_username": "ann", **ANN})
# "OAuth2 provider" and "Property mappings": scope mappings fill access tokens too, `email_verified` is false since
# 2025.10; groups are of the scope `profile`. `azp`, `uid` and `nonce`: its source, providers/oauth2/id_token.py.
AUTHENTIK = Product("authentik", "https://auth.example.org/application/o/mcpbox/", ("group", "family"), "JWT", {
    "aud": CLIENT, "azp": CLIENT, "uid": "u", "acr": "goauthentik.io/providers/oauth2/default", "sub": "5f" * 32,
    "email": "ann@example.org", "email_verified": False, "groups": ["family", "authentik Admins"]}, audiences=[CLIENT])
# "OpenID Connect 1.0 clients" (audience, access_token_signed_response_alg) and "Provider" (claims_policies): a JWT of
# RFC 9068, with what its policy copies into it.
AUTHELIA = Product("authelia", "https://login.example.org", ("email", "ann@example.org"), "at+jwt", {
    "aud": [RESOURCE], "client_id": "claude", "scope": "openid email groups", "jti": ELSE, "groups": ["family"], **ANN})
# "Access token claims reference": `typ` is JWT, version 2.0 has the API's id as `aud`; groups are object ids.
ENTRA = Product("entra", f"https://login.microsoftonline.com/{TENANT}/v2.0", ("group", ELSE), "JWT", {
    "aud": UUID, "azp": CLIENT, "azpacr": "0", "ver": "2.0", "tid": TENANT, "oid": UUID, "scp": "use", "uti": "u",
    "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "groups": [ELSE], "email": "ann@example.org"},
    audiences=[UUID], types=["jwt"])
# "Application token": `aud` is an array with the AUD tag, `type` is app; a service has `common_name`, empty `sub`.
ACCESS = Product("access", "https://team.cloudflareaccess.com", ("email", "ann@example.org"), "JWT", {
    "aud": [AUD], "email": "ann@example.org", "type": "app", "identity_nonce": "6ei69kawdKzMIAPF", "country": "DE"},
    header="cf-access-jwt-assertion", audiences=[AUD], email="trusted", types=["jwt"])
ALL = (POCKET, KEYCLOAK, AUTHENTIK, AUTHELIA, ENTRA, ACCESS)

NOT_FOR_US, NO_RULE = "is for another server: its `aud` names none", "no rule of the access document fits"
ISS = "`iss` is not an issuer of the access document: it is compared byte by byte"
SERVICE = {"sub": "", "email": None, "common_name": "e367.access"}
ADDRESS = ("email", "ann@example.org")
# The claims, members and rule that differ; the status and words of the answer.
MISTAKES = {
    "pocket: another API": (POCKET, {"aud": ["https://mcp.example.org", POCKET.url]}, {}, None, 401, NOT_FOR_US),
    "pocket: address": (POCKET, {}, {}, ADDRESS, 403, NO_RULE),
    "keycloak: no mapper": (KEYCLOAK, {"aud": None}, {}, None, 401, "the token has no `aud`: its issuer must be told"),
    "keycloak: full path": (KEYCLOAK, {"groups": ["/family"]}, {}, None, 403, NO_RULE),
    "authentik: resource": (AUTHENTIK, {}, {"audiences": [RESOURCE]}, None, 401, NOT_FOR_US),
    "authentik: no slash": (AUTHENTIK, {}, {"issuer": AUTHENTIK.url.rstrip("/")}, None, 401, ISS),
    "authentik: address": (AUTHENTIK, {}, {}, ADDRESS, 403, NO_RULE),
    "authentik: nonce": (AUTHENTIK, {"nonce": "n"}, {}, None, 401, "the token is an ID token"),
    "authelia: no audience": (AUTHELIA, {"aud": []}, {}, None, 401, NOT_FOR_US),
    "authelia: slash": (AUTHELIA, {}, {"issuer": AUTHELIA.url + "/"}, None, 401, ISS),
    "authelia: no policy": (AUTHELIA, {"email": None, "email_verified": None, "groups": None}, {}, None, 403, NO_RULE),
    "entra: version 1": (ENTRA, {"iss": f"https://sts.windows.net/{TENANT}/", "aud": f"api://{UUID}", "ver": "1.0"}, {},
                         None, 401, ISS),
    "entra: resource": (ENTRA, {}, {"audiences": [RESOURCE]}, None, 401, NOT_FOR_US),
    "entra: name of a group": (ENTRA, {}, {}, ("group", "family"), 403, NO_RULE),
    "entra: address": (ENTRA, {}, {}, ADDRESS, 403, NO_RULE),
    "access: another AUD": (ACCESS, {"aud": ["0" * 64]}, {}, None, 401, NOT_FOR_US),
    "access: service": (ACCESS, SERVICE, {}, None, 403, NO_RULE),
    "access: nobody": (ACCESS, {**SERVICE, "common_name": None}, {}, None, 401, "the token's `sub` is empty"),
    "access: not trusted": (ACCESS, {}, {"email": "verified"}, None, 403, NO_RULE)}


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:breakers=no"])
    i.ctl("settings", "set", "rate_tunnel_per_minute", "0")
    with Client(i.address) as c:
        for name in ("canary", "secret"):
            flow.publish(i, c, "crm", name, f"def main() -> str:\n    return '{name}'\n")
    yield i
    i.close()


def holds(instance, value):
    got = set_document(instance, value)
    assert got["_"] == "ACCESS_STATE", got


def carried(product, token):
    """The field that a proxy or Access hands the token on in."""
    return {"Cf-Access-Jwt-Assertion": token} if product is ACCESS else bearer(token)


def post(instance, fields, method="tools/list", **params):
    return request(where(instance)(), body={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                   headers={"MCP-Protocol-Version": LEGACY, **fields})


def comes_in(instance, product, token, sub):
    """Its set shows one tool, which can be called; the call is the person's."""
    fields = carried(product, token)
    assert users(t["name"] for t in post(instance, fields).result["tools"]) == ["crm__canary"]
    r = post(instance, fields, "tools/call", name="crm__canary", arguments={})
    assert r.status == 200 and r.result["content"][0]["text"] == "canary", r
    r = post(instance, fields, "tools/call", name="crm__secret", arguments={})
    assert r.error["data"]["failure_mode"] == "unknown_tool", r
    assert [f"oidc:{product.name}:{sub}"] in instance.psql(
        "SELECT DISTINCT principal FROM mcpbox.executions WHERE listener = 'tunnel'")


@pytest.mark.parametrize("product", ALL, ids=lambda p: p.name)
def test_as_the_page_says(instance, product):
    holds(instance, product.document())
    comes_in(instance, product, product.token(), product.claims.get("sub", UUID))


@pytest.mark.parametrize("product, claim, members", [
    (KEYCLOAK, ADDRESS, {}), (AUTHENTIK, ADDRESS, {"email": "trusted"}), (AUTHELIA, ("group", "family"), {}),
    (ENTRA, ADDRESS, {"email": "trusted"})], ids=("keycloak", "authentik", "authelia", "entra"))
def test_other_rules(instance, product, claim, members):
    holds(instance, product.document(claim, **members))
    comes_in(instance, product, product.token(), product.claims.get("sub", UUID))


def test_a_nonce_of_authentik(instance):
    holds(instance, AUTHENTIK.document(id_tokens=True))
    comes_in(instance, AUTHENTIK, AUTHENTIK.token(nonce="n"), "5f" * 32)


def test_a_service_of_access(instance):
    holds(instance, ACCESS.document(("sub", "service/e367.access")))
    comes_in(instance, ACCESS, ACCESS.token(**SERVICE), "service/e367.access")


@pytest.mark.parametrize("product, claims, members, rule, status, words", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake(instance, product, claims, members, rule, status, words):
    """By the right document and token the person comes in first, so nothing but the mistake can be refused."""
    holds(instance, product.document())
    assert post(instance, carried(product, product.token())).status == 200
    holds(instance, product.document(rule, **members))
    r = post(instance, carried(product, product.token(**claims)))
    assert r.status == status and words in r.headers["www-authenticate"] + r.raw.decode(), (r, r.headers)


def test_an_opaque_token_of_authelia(instance):
    """It has not the three parts of a signed token, so it is no issuer's that could be named."""
    holds(instance, AUTHELIA.document())
    r = post(instance, bearer("authelia_at_" + "x" * 43 + "." + "y" * 43))
    assert r.status == 401 and "needs a credential that is valid here" in r.headers["www-authenticate"], r.headers
