"""The Worker alone, between a provider and an mcpbox that are played, so that a test decides what both say."""
import base64
import hashlib
import itertools
import json
import urllib.parse

import pytest

from harness.clients.browser import CALLBACK, Browser, Page
from harness.net.pgtls import Authority
from harness.place import readable_directory
from harness.played.mcpbox import Mcpbox
from harness.played.openid import OpenId
from remote.play import Worker

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
#: A site that anyone may have: its document names an address that is not on the list.
STRANGE = "https://strange.example.net/mcp.json"
DOCUMENTS = {STRANGE: {"client_id": STRANGE, "client_name": "Strange", "redirect_uris": ["https://strange.example.net/in"],
                       "token_endpoint_auth_method": "none"}}


class Alone:
    def __init__(self, directory):
        self.authority = Authority(directory)
        self.openid, self.mcpbox = OpenId(), Mcpbox()
        self.worker = Worker(self.authority, self.openid.issuer, self.mcpbox.address, documents=DOCUMENTS)
        self.url, self.resource = self.worker.url, self.worker.resource
        self.addresses = itertools.count(1)

    def close(self):
        for part in (self.worker, self.openid, self.mcpbox):
            part.close()

    def browser(self, address=None):
        """Each of an address of its own, unless told: what one address may do is a test of its own."""
        n = next(self.addresses)
        return Browser("ann", self.authority.cert, address or f"198.18.{n // 256}.{n % 256}")

    def ask(self, method, path, body=None, browser=None, **headers):
        return (browser or self.browser()).ask(method, self.url + path, body,
                                               {k.replace("_", "-"): v for k, v in headers.items()})

    def register(self, browser=None, **more):
        page = self.ask("POST", "/oauth/register", json.dumps({
            "client_name": "mcpbox tests", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none",
            **more}).encode(), browser, Content_Type="application/json")
        return page.status, json.loads(page.text)

    def authorize(self, client, **more):
        """The address of a sign-in. more: other parameters; None leaves one out."""
        fields = {"response_type": "code", "client_id": client, "redirect_uri": CALLBACK, "scope": "tools:read tools:call",
                  "state": "the state", "code_challenge": CHALLENGE, "code_challenge_method": "S256",
                  "resource": self.resource, **more}
        return self.url + "/authorize?" + urllib.parse.urlencode({k: v for k, v in fields.items() if v is not None})

    def exchange(self, client, came, verifier=VERIFIER, **more):
        """Status and answer of the token endpoint for the callback that came."""
        page = self.ask("POST", "/oauth/token", list({
            "grant_type": "authorization_code", "code": query(came)["code"], "redirect_uri": CALLBACK,
            "client_id": client, "code_verifier": verifier, **more}.items()))
        return page.status, json.loads(page.text)

    def token(self, client):
        status, got = self.exchange(client, self.browser().sign_in(self.authorize(client)))
        assert status == 200, got
        return got["access_token"]


def query(url):
    assert not isinstance(url, Page), url
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


@pytest.fixture(scope="module")
def alone_all():
    with readable_directory() as d:
        a = Alone(d / "authority")
        a.client = a.register()[1]["client_id"]
        yield a
        a.close()


@pytest.fixture
def alone(alone_all):
    """Both played parts are honest at first."""
    alone_all.openid.honest()
    alone_all.mcpbox.plain()
    while not alone_all.mcpbox.seen.empty():
        alone_all.mcpbox.seen.get()
    return alone_all
