"""Signed tokens of an issuer that the test plays, the access document that lists it,
and people who come with its tokens behind the tunnel."""
import base64
import hashlib
import itertools
import json
import time
import uuid

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from harness.clients.api_token import where
from harness.clients.mcp import MODERN, Client
from harness.ipc import Peer, Table, socket_as

RESOURCE = "https://mcp.example.org/mcp"
_ids = itertools.count(1)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """One with an ES256 key. more: other members of its entry in the document."""

    kid = "k"     # of its key

    def __init__(self, name="pocket", **more):
        self.name, self.url, self.more = name, f"https://{name}.example.org", more
        self.key = ec.generate_private_key(ec.SECP256R1())

    def entry(self):
        point = self.key.public_key().public_bytes(serialization.Encoding.X962,
                                                   serialization.PublicFormat.UncompressedPoint)
        jwk = {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": b64(point[1:33]), "y": b64(point[33:])}
        return {"name": self.name, "issuer": self.url, "jwks": {"keys": [jwk]}, **self.more}

    def sign(self, sub, seconds=3600, **claims):
        """A token whose time is over in so many seconds; no two are equal."""
        head = {"alg": "ES256", "kid": self.kid, "typ": "at+jwt"}
        body = {"iss": self.url, "aud": RESOURCE, "sub": sub, "exp": int(time.time()) + seconds,
                "jti": str(next(_ids)), **claims}
        body = {k: v for k, v in body.items() if v is not None}
        said = b64(json.dumps(head).encode()) + "." + b64(json.dumps(body).encode())
        r, s = decode_dss_signature(self.key.sign(said.encode(), ec.ECDSA(hashes.SHA256())))
        return said + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


class Worker(Issuer):
    """An issuer that binds each token to one request (decision 0098)."""

    def __init__(self, name="worker", **more):
        super().__init__(name, bound=True, **more)

    def bind(self, sub, method="POST", target="/mcp", body=b"", seconds=60, **claims):
        """A token for one request. A claim that is None is left out."""
        now = int(time.time())
        said = {"iat": now, "exp": now + seconds, "jti": uuid.uuid4().hex, "htm": method,
                "htu": RESOURCE.removesuffix("/mcp") + target,
                "bsha256": b64(hashlib.sha256(body).digest()), "session_exp": now + 3600, **claims}
        return self.sign(sub, **said)


class Bound:
    """Before a Client's class: signs each request of `person`, who is of a Worker."""

    def __init__(self, where_, person, **more):
        self.person = person
        super().__init__(where_, **more)

    def send(self, message, headers):
        self.token = self.person.bind(body=json.dumps(message).encode())
        return super().send(message, headers)


class Person:
    """Someone of an issuer: a new token for each client, unless told otherwise."""

    def __init__(self, instance, issuer, sub, **claims):
        self.instance, self.issuer, self.sub, self.claims = instance, issuer, sub, claims
        self.principal = f"oidc:{issuer.name}:{sub}"

    def token(self, seconds=3600, **more):
        return self.issuer.sign(self.sub, seconds, **{**self.claims, **more})

    def bind(self, **more):
        return self.issuer.bind(self.sub, **{**self.claims, **more})

    def client(self, token=None, version=MODERN, listener="tunnel", cls=Client, **more):
        return cls(where(self.instance, listener), version=version, token=token or self.token(), **more)

    def withdraw(self, reason="tried"):
        self._act("withdraw", {"principal": self.principal, "reason": reason})

    def restore(self):
        self._act("restore", {"principal": self.principal})

    def _act(self, verb, body):
        self.instance.psql(f"SELECT mcpbox.act_identity_{verb}('root', NULL, NULL, '{json.dumps(body)}')")


def document(issuers, rules=(), sets=()):
    """rules: (issuer's name, claim, values, set); sets: name -> members."""
    return {"resource": RESOURCE, "issuers": [i.entry() for i in issuers],
            "rules": [{"issuer": i, "claim": c, **({"values": v} if v else {}), "set": s} for i, c, v, s in rules],
            "permission_sets": [{"name": n, **m} for n, m in dict(sets).items()]}


def set_document(instance, value):
    """Sets it as uid 0, at the vault; the answer, ACCESS_STATE or REFUSED."""
    rows = instance.psql("SELECT encode(sha256, 'hex') FROM mcpbox.access_now")
    text = json.dumps(value).encode()
    sock = socket_as(0, [], instance.run("admind-vault", "ctl.sock"))
    with Peer(Table(), sock) as vault:
        got = vault.call("ACCESS_SET", seen=bytes.fromhex(rows[0][0]) if rows else bytes(32), document=text)
    if got["_"] == "ACCESS_STATE":
        assert got["document"] == hashlib.sha256(text).digest()
    return got
