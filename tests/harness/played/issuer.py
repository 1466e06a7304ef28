"""An OpenID issuer on loopback: its metadata and its keys, as a client and `mcpboxctl remote check` read them. It
signs tokens as harness.clients.signed_token does."""
import email.utils
import http.server
import json
import threading
import time

from cryptography.hazmat.primitives.asymmetric import ec

from harness.clients.signed_token import Issuer


class PlayedIssuer(Issuer):
    """metadata: members that differ. ahead: seconds by which its clock is wrong."""

    def __init__(self, name="home", **more):
        super().__init__(name, **more)
        self.metadata, self.ahead = {}, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):	# the name is http.server's
                body = outer.answer(self.path)
                self.send_response_only(200 if body is not None else 404)
                self.send_header("Date", email.utils.formatdate(time.time() + outer.ahead, usegmt=True))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode() if body is not None else b"")

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path):
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.url, "jwks_uri": self.url + "/keys", "code_challenge_methods_supported": ["S256"],
                    **self.metadata}
        return self.entry()["jwks"] if path == "/keys" else None

    def rotate(self):
        self.key = ec.generate_private_key(ec.SECP256R1())

    def close(self):
        self.server.shutdown()
        self.server.server_close()
