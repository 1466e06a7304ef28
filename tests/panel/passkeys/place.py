"""The panel at an https name: contrib/nginx/mcpbox-panel.conf, a certificate of a made authority, and the settings that go
with it."""
import contextlib
import os

from harness.clients.page import Page
from harness.instance import Instance
from harness.net.authority import Authority
from harness.net.nginx import PanelNginx
from harness.net.proxy import free_port

#: The example's.
NAME = "mcpbox.example.org"


class Place:
    """An instance with nginx before its panel. origin: where browsers open it; address: the one without a proxy."""

    def __init__(self, sets=(), trusted=contextlib.nullcontext):
        """trusted: a context in which the instance is made, for the authorities that its runs trust."""
        self.port = free_port()
        self.origin = f"https://{NAME}:{self.port}"
        with trusted():
            self.instance = Instance(sets=(
                f"admind-vault:passkey_rp_id={NAME}", f"admind-vault:passkey_origins={self.origin}",
                f"admind-http:panel_origins={self.origin}", *sets))
        try:
            folder = os.path.join(self.instance.parent, "tls")
            os.mkdir(folder)
            os.chmod(folder, 0o711)
            self.certificate, key = Authority(folder).of(NAME)
            self.nginx = PanelNginx(self.instance, tls=(self.certificate, key), port=self.port)
        except BaseException:
            self.instance.close()
            raise

    @property
    def address(self):
        return "http://{}:{}".format(*self.instance.address("admind-http"))

    def page(self, chromium, origin=None, width=1280):
        """The panel without a login, at its name or at another origin."""
        p = Page(chromium, origin or self.origin)
        p.size(width)
        p.open()
        p.get("button", "Sign in")
        return p

    def close(self):
        self.nginx.close()
        self.instance.close()


def half(page):
    """What the page keeps of its login."""
    return page.js("return sessionStorage.getItem('mcpbox-half')")


def cookies(page):
    return {c["name"]: c for c in page.cdp("Network.getAllCookies")["cookies"]}


def login_token(page):
    """The token of the page's login, both halves."""
    return cookies(page)["__Host-mcpbox_session"]["value"] + half(page)


def signs_in(page, name, password):
    """The form, with the password alone."""
    page.fill("User name", name)
    page.fill("Password", password)
    page.click("button", "Sign in")
