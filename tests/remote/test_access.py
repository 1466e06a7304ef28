"""Cloudflare Access without a Worker: a request as Access hands it on, with its assertion in a field of its own,
through nginx as contrib has it. The settings are those of docs/ACCESS.md."""
import base64
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from harness.clients import flow
from harness.clients.mcp import LEGACY, Client, request
from harness.clients.signed_token import RESOURCE, set_document
from harness.net.nginx import Nginx

TEAM = "https://team.cloudflareaccess.com"
AUD = "32eafc7626e737b1db5fb0cb4a9d3d9a0d9bfdb7a6f3f3d3b8d1d8e1ab1f0f00"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Access:
    """Signs as Access does: RS256, claims as its documents name them."""

    def __init__(self):
        self.key = rsa.generate_private_key(65537, 2048)
        n = self.key.public_key().public_numbers().n
        self.jwk = {"kid": "6x", "kty": "RSA", "alg": "RS256", "use": "sig", "e": "AQAB",
                    "n": b64(n.to_bytes((n.bit_length() + 7) // 8, "big"))}

    def assertion(self, **claims):
        now = int(time.time())
        body = {"aud": [AUD], "email": "ann@example.org", "exp": now + 900, "iat": now, "nbf": now, "iss": TEAM,
                "type": "app", "identity_nonce": "6ei69kawdKzMIAPF", "sub": "7335d417-61da-459d-899c-0a01c76a2f94",
                "country": "DE", **claims}
        said = b64(json.dumps({"alg": "RS256", "kid": "6x", "typ": "JWT"}).encode()) + "." + b64(json.dumps(body).encode())
        return said + "." + b64(self.key.sign(said.encode(), padding.PKCS1v15(), hashes.SHA256()))


@pytest.fixture(scope="module")
def access(instance):
    with Client(instance.address) as c:
        flow.publish(instance, c, "crm", "canary", "def main() -> str:\n    return 'canary'\n")
    a = Access()
    got = set_document(instance, {
        "resource": RESOURCE,
        "issuers": [{"name": "door", "issuer": TEAM, "header": "cf-access-jwt-assertion", "audiences": [AUD],
                     "email": "trusted", "types": ["jwt"], "algorithms": ["RS256"], "jwks": {"keys": [a.jwk]}}],
        "rules": [{"issuer": "door", "claim": "email", "values": ["ann@example.org"], "set": "family"}],
        "permission_sets": [{"name": "family", "scopes": ["tools:call"], "allow": ["crm__*"], "deny": []}]})
    assert got["_"] == "ACCESS_STATE", got
    a.nginx = Nginx(instance)
    yield a
    a.nginx.close()


def ask(access, **headers):
    return request(access.nginx.where(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                                               "params": {"name": "crm__canary", "arguments": {}}},
                   headers={"MCP-Protocol-Version": LEGACY, **headers})


def test_a_call(instance, access):
    r = ask(access, **{"Cf-Access-Jwt-Assertion": access.assertion()})
    assert r.status == 200 and r.result["content"][0]["text"] == "canary", r
    assert instance.psql("SELECT DISTINCT principal FROM mcpbox.executions WHERE listener = 'tunnel'") == [
        ["oidc:door:7335d417-61da-459d-899c-0a01c76a2f94"]]


@pytest.mark.parametrize("claims, status", [
    ({"aud": ["0" * 64]}, 401), ({"iss": TEAM + "/"}, 401), ({"exp": 1}, 401), ({"email": "eve@example.org"}, 403)],
    ids=["aud", "iss", "exp", "person"])
def test_refused(access, claims, status):
    assert ask(access, **{"Cf-Access-Jwt-Assertion": access.assertion()}).status == 200
    assert ask(access, **{"Cf-Access-Jwt-Assertion": access.assertion(**claims)}).status == status


def test_of_another_team(access):
    assert ask(access, **{"Cf-Access-Jwt-Assertion": Access().assertion()}).status == 401


def test_in_the_wrong_field(access):
    assert ask(access, Authorization="Bearer " + access.assertion()).status == 401
