"""Debian's Chromium by ChromeDriver, and pages to open in it. WebDriver is JSON over HTTP (W3C WebDriver); its
authenticators in software are of WebAuthn Level 3, section 11."""
import base64
import contextlib
import hashlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from harness.patience import patience, until

#: It shows pages of this machine only, and asks nobody else: it knows the names that it was told. It has no sandbox of its
#: own, which would need more of a container than it has; its user is a stranger.
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
         "--disable-dev-shm-usage", "--disable-breakpad")
#: The driver takes a port of IPv6, then the same of IPv4, which another may have.
PORT_TAKEN = "IPv4 port not available"
#: What WebDriver's authenticator is made with: the device's own, its owner there and proven.
DEVICE = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
          "isUserConsenting": True, "isUserVerified": True}
CEREMONY = """
const [call, parse, options, done] = arguments;
(async () => {
    const publicKey = PublicKeyCredential[parse](options);
    const credential = await navigator.credentials[call]({publicKey});
    done({credential: credential.toJSON()});
})().catch(e => done({refused: e.name, why: e.message}));
"""


class WebDriverError(Exception):
    """ChromeDriver's own error, not a page's."""


class Refused(Exception):
    """A ceremony that the browser refused. `name` is the DOMException's."""

    def __init__(self, name, why):
        super().__init__(f"{name}: {why}")
        self.name = name


def spki(certificate):
    """The hash of a certificate's key, as Chromium takes it. certificate: a file, PEM."""
    with open(certificate, "rb") as f:
        key = x509.load_pem_x509_certificate(f.read()).public_key()
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Chromium:
    """One browser with a profile of its own, as user `uid`. names: {name: address} that it knows beside localhost.
    certificates: files of the servers that it trusts, and it trusts no other."""

    def __init__(self, uid, names=(), certificates=()):
        self.dir, self.devices = tempfile.mkdtemp(prefix="mcpchr"), []
        known = {"localhost": "127.0.0.1", **dict(names)}
        flags = [*FLAGS, "--host-resolver-rules=" + ",".join(f"MAP {n} {a}" for n, a in known.items())
                 + ",MAP * ~NOTFOUND" + "".join(f",EXCLUDE {a}" for a in sorted(set(known.values())))]
        if certificates:
            flags.append("--ignore-certificate-errors-spki-list=" + ",".join(map(spki, certificates)))
        self.driver = self.session = self.browser = None
        try:
            os.chown(self.dir, uid, uid)
            env = {"PATH": os.environ["PATH"], "HOME": self.dir, "TMPDIR": self.dir, "LANG": "C.UTF-8"}
            self.port = None
            while self.port is None:
                with open(self.path("driver.log"), "wb") as log:
                    self.driver = subprocess.Popen(["chromedriver", "--port=0"], env=env, cwd=self.dir, user=uid, group=uid,
                                                   extra_groups=[], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                [self.port] = until(self._listens, say=self.log)
            made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:loggingPrefs": {"browser": "ALL"},
                "goog:chromeOptions": {
                "binary": shutil.which("chromium"), "args": [*flags, f"--user-data-dir={self.path('profile')}"]}}}})
            self.session, self.browser = made["sessionId"], made["capabilities"]["goog:processID"]
            # A script that never answers is a hang, not a verdict.
            self.command("POST", "/timeouts", {"script": int(patience(60) * 1000), "pageLoad": int(patience(60) * 1000)})
        except BaseException:
            self.close()
            raise

    def path(self, name):
        return os.path.join(self.dir, name)

    def log(self):
        with open(self.path("driver.log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def _listens(self):
        """[the port that the driver says], or [None] where another driver took that port of IPv4 meanwhile."""
        ended, log = self.driver.poll() is not None, self.log()
        if ended and PORT_TAKEN in log:
            return [None]
        assert not ended, log
        said = re.search(r"started successfully on port (\d+)", log)
        return [int(said[1])] if said else None

    def ask(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience(120))
        try:
            c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            r = c.getresponse()
            value = json.loads(r.read())["value"]
        finally:
            c.close()
        if r.status != 200:
            raise WebDriverError(f"{method} {path}: {value['error']}: {value['message']}")
        return value

    def command(self, method, path, body=None):
        return self.ask(method, f"/session/{self.session}{path}", body)

    def open(self, url):
        self.command("POST", "/url", {"url": url})

    def run(self, script, *args):
        return self.command("POST", "/execute/async", {"script": script, "args": list(args)})

    def frame(self, number):
        """Goes into a frame of the page; None: out of all."""
        self.command("POST", "/frame", {"id": number})

    # --- authenticators ---

    def device(self, **more):
        """A new authenticator; its id."""
        made = self.command("POST", "/webauthn/authenticator", {**DEVICE, **more})
        self.devices.append(made)
        return made

    def unplug(self):
        """Takes all authenticators away."""
        while self.devices:
            self.command("DELETE", f"/webauthn/authenticator/{self.devices.pop()}")

    def verifies(self, device, yes):
        """Whether its owner proves to be the owner from now on."""
        self.command("POST", f"/webauthn/authenticator/{device}/uv", {"isUserVerified": yes})

    def credentials(self, device):
        """What it holds, private keys too."""
        return self.command("GET", f"/webauthn/authenticator/{device}/credentials")

    def put(self, device, credential):
        self.command("POST", f"/webauthn/authenticator/{device}/credential", credential)

    # --- ceremonies of the page that is open ---

    def _ceremony(self, call, parse, options, more):
        got = self.run(CEREMONY, call, parse, {**options["publicKey"], **more})
        if "refused" in got:
            raise Refused(got["refused"], got["why"])
        return got["credential"]

    def create(self, options, **more):
        """Answers creation options. more: what the page writes over them."""
        return self._ceremony("create", "parseCreationOptionsFromJSON", options, more)

    def get(self, options, **more):
        return self._ceremony("get", "parseRequestOptionsFromJSON", options, more)

    def close(self):
        if self.session is not None:
            with contextlib.suppress(OSError, http.client.HTTPException, WebDriverError):
                self.command("DELETE", "")
        if self.driver is not None:
            self.driver.terminate()
            try:
                self.driver.wait(patience(10))
            except subprocess.TimeoutExpired:
                self.driver.kill()
                self.driver.wait()
        if self.browser is not None and self._is_ours(self.browser):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.browser, signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)

    def _is_ours(self, pid):
        """A number is given out again: its words must still name our profile."""
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return self.path("profile").encode() in f.read()
        return False


class Pages:
    """A site at a port of its own: `/` is a page, `/frame?URL` one with that URL in a frame."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                _, _, url = self.path.partition("?")
                text = "<!doctype html><title>page</title>" + (
                    f'<iframe allow="publickey-credentials-get *; publickey-credentials-create *" src="{url}"></iframe>'
                    if url else "")
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://localhost:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
