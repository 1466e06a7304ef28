"""Connections of the page Playground."""
import pytest

from harness.clients.mcp import Client
from harness.patience import until


@pytest.fixture(scope="module")
def gateway(instance):
    """The origin of the local listener."""
    return "http://{}:{}".format(*instance.address("gatewayd-local"))


@pytest.fixture
def play(page, gateway, browser):
    """The page, open and not connected. The gateway is the one other place that it may ask."""
    page.others = (gateway,)
    page.go("#/playground")
    page.get("button", "Connect")
    yield page
    page.go("#/account")
    browser.others = (gateway,)


@pytest.fixture
def mcp(instance):
    with Client(instance.address) as c:
        yield c


def connect(page, revision="2026-07-28"):
    """As what the form says."""
    page.choose("Revision of MCP", revision)
    page.click("button", "Connect")
    page.get("button", "Disconnect")
    page.get("list", "Tools")
    page.drawn()


def entries(page):
    """The messages that are shown, newest first, as their lines."""
    return page.js("return [...document.querySelectorAll('ul[aria-label=Messages] > li summary')].map(e => e.innerText)")


def opened(page, pattern):
    """Opens the newest message whose line has the words; the text of its headers and of its JSON."""
    def there():
        return page.js("""const d = [...document.querySelectorAll('ul[aria-label=Messages] > li details')]
            .find(d => arguments[0].every(w => d.querySelector('summary').innerText.includes(w)));
            if (!d) return null;
            d.open = true;
            const view = d.querySelector('.code-view'), head = d.querySelector('pre.plain');
            return view || head ? {head: head?.innerText ?? '', text: view?.innerText ?? ''} : null""", pattern)
    return until(there, say=lambda: (pattern, entries(page)))
