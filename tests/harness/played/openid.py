"""An OpenID provider that lies as the test says. It signs everybody in at once."""
import base64
import hashlib
import hmac
import http.server
import json
import threading
import time
import urllib.parse

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class OpenId:
    """`id_token`: makes the ID token of (self, claims), honest at first. `answer`: fields of its redirect that differ;
    None leaves one out. `userinfo`: what it says there. `seen`: what it was asked at its two endpoints."""

    def __init__(self):
        self.key, self.other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        self.asked = {}
        self.seen = []
        self.honest()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def _say(self, status, value=None, **headers):
                body = json.dumps(value).encode() if value is not None else b""
                self.send_response(status)
                for k, v in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
                    self.send_header(k, str(v))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                if url.path == "/.well-known/openid-configuration":
                    self._say(200, provider.metadata())
                elif url.path == "/jwks":
                    self._say(200, {"keys": [provider.jwk()]})
                elif url.path == "/userinfo":
                    self._say(200 if self.headers["Authorization"] == "Bearer a" else 401, provider.userinfo)
                elif url.path == "/authorize":
                    self._say(302, Location=provider.redirect(dict(urllib.parse.parse_qsl(url.query))))
                else:
                    self._say(404)

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self._say(200, provider.token(form, self.headers))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def honest(self):
        self.id_token, self.answer = (lambda p, claims: p.sign(claims)), {}
        self.userinfo = {"sub": "ann"}

    def metadata(self):
        return {"issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize",
                "token_endpoint": self.issuer + "/token", "jwks_uri": self.issuer + "/jwks",
                "userinfo_endpoint": self.issuer + "/userinfo",
                "authorization_response_iss_parameter_supported": True}

    def jwk(self):
        point = self.key.public_key().public_bytes(serialization.Encoding.X962,
                                                   serialization.PublicFormat.UncompressedPoint)
        return {"kty": "EC", "crv": "P-256", "kid": "k", "alg": "ES256", "x": b64(point[1:33]), "y": b64(point[33:])}

    def redirect(self, asked):
        self.seen.append(asked)
        code = b64(hashlib.sha256(asked["state"].encode()).digest())
        self.asked[code] = asked
        fields = {"code": code, "state": asked["state"], "iss": self.issuer, **self.answer}
        return asked["redirect_uri"] + "?" + urllib.parse.urlencode({k: v for k, v in fields.items() if v is not None})

    def token(self, form, headers):
        self.seen.append({**form, "authorization": headers["Authorization"]})
        asked = self.asked.pop(form["code"])
        assert b64(hashlib.sha256(form["code_verifier"].encode()).digest()) == asked["code_challenge"]
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": asked["client_id"], "sub": "ann", "nonce": asked["nonce"], "iat": now,
                  "exp": now + 300, "email": "ann@example.org", "email_verified": True, "name": "Ann"}
        return {"access_token": "a", "token_type": "Bearer", "id_token": self.id_token(self, claims)}

    @staticmethod
    def said(head, claims):
        return b64(json.dumps(head).encode()) + "." + b64(json.dumps(claims).encode())

    def sign(self, claims, key=None, **head):
        said = self.said({"alg": "ES256", "kid": "k", **head}, claims)
        r, s = decode_dss_signature((key or self.key).sign(said.encode(), ec.ECDSA(hashes.SHA256())))
        return said + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))

    def unsigned(self, claims):
        return self.said({"alg": "none"}, claims) + "."

    def by_secret(self, claims, secret):
        """HS256, with what a forger has."""
        said = self.said({"alg": "HS256", "kid": "k"}, claims)
        return said + "." + b64(hmac.digest(secret, said.encode(), "sha256"))

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
