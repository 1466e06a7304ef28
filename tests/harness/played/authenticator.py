"""An authenticator of WebAuthn in software: makes passkeys and uses them, as a browser would bring
it, with every part that a test may want wrong."""
import base64
import hashlib
import json
import os
import struct

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

UP, UV, BE, BS, AT = 0x01, 0x04, 0x08, 0x10, 0x40
ES256, EDDSA = -7, -8
ORIGIN, RP_ID = "http://localhost:8000", "localhost"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def blob(data):
    """A byte string of CBOR."""
    n = len(data)
    head = bytes([0x40 + n]) if n < 24 else bytes([0x58, n]) if n < 256 else b"\x59" + struct.pack(">H", n)
    return head + data


class Passkey:
    """One passkey. `flags`, `count` and what the methods take may be set to what a test wants."""

    def __init__(self, alg=ES256, rp_id=RP_ID):
        self.alg, self.rp_id, self.id = alg, rp_id, os.urandom(32)
        self.key = ec.generate_private_key(ec.SECP256R1()) if alg == ES256 else ed25519.Ed25519PrivateKey.generate()
        self.flags, self.count, self.handle = UP | UV, 0, b""

    def cose(self):
        public = self.key.public_key()
        if self.alg == EDDSA:
            raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            return bytes.fromhex("a401010327200621") + blob(raw)
        point = public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        return bytes.fromhex("a501020326200121") + blob(point[1:33]) + b"\x22" + blob(point[33:])

    def auth_data(self, registers):
        flags = self.flags | (AT if registers else 0)
        data = hashlib.sha256(self.rp_id.encode()).digest() + bytes([flags]) + struct.pack(">I", self.count)
        if registers:
            data += bytes(16) + struct.pack(">H", len(self.id)) + self.id + self.cose()
        return data

    @staticmethod
    def client_data(kind, challenge, origin):
        return json.dumps({"type": "webauthn." + kind, "challenge": challenge, "origin": origin,
                           "crossOrigin": False}, separators=(",", ":")).encode()

    def create(self, options, origin=ORIGIN):
        """Answers creation options: (clientDataJSON, attestationObject)."""
        options = options["publicKey"]
        self.handle = unb64(options["user"]["id"])
        client = self.client_data("create", options["challenge"], origin)
        attestation = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData" + blob(self.auth_data(True))
        return client, attestation

    def get(self, options, origin=ORIGIN):
        """Answers request options: the fields of PASSKEY_ASSERT."""
        client = self.client_data("get", options["publicKey"]["challenge"], origin)
        data = self.auth_data(False)
        text = data + hashlib.sha256(client).digest()
        signature = self.key.sign(text, ec.ECDSA(hashes.SHA256())) if self.alg == ES256 else self.key.sign(text)
        return {"credential": self.id, "client_data": client, "auth_data": data, "signature": signature,
                "handle": self.handle}

    def created_json(self, options, origin=ORIGIN):
        """The same as create(), as a browser's PublicKeyCredential.toJSON()."""
        client, attestation = self.create(options, origin)
        return {"id": b64(self.id), "rawId": b64(self.id), "type": "public-key", "clientExtensionResults": {},
                "response": {"clientDataJSON": b64(client), "attestationObject": b64(attestation)}}

    def got_json(self, options, origin=ORIGIN):
        got = self.get(options, origin)
        return {"id": b64(self.id), "rawId": b64(self.id), "type": "public-key", "clientExtensionResults": {},
                "response": {"clientDataJSON": b64(got["client_data"]),
                             "authenticatorData": b64(got["auth_data"]), "signature": b64(got["signature"]),
                             "userHandle": b64(got["handle"])}}
