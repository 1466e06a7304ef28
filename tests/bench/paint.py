"""When a browser has drawn the panel: the sign-in page, and Overview with a login, each with an empty cache and with the
files that it kept. Debian's Chromium without a screen, on loopback.

A page is useful when its title and its content are there and nothing says that it loads. The page itself notes the
next frame after that, by the clock that starts where the navigation starts."""
import os

from harness.clients.chromium import Chromium
from harness.clients.page import Page
from harness.patience import until
from harness.place import BUILD
from values import Values

#: What a reader waits for on each page.
USEFUL = {"sign-in": "form input[type=password]", "overview": "main h1"}
NOTE = """
window.__useful = 0;
new MutationObserver((_, watch) => {
    if (document.querySelector('form input[type=password], main h1') && !document.querySelector('.loading')) {
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.__useful = performance.now(); }));
    }
}).observe(document, {childList: true, subtree: true});
"""
TIMES = "return [window.__useful, performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0]"


def sign_in(page, suite):
    page.fill("User name", "admin")
    page.fill("Password", suite.password)
    page.click("button", "Sign in")
    page.get("heading", "Overview")


def load(page, what, values, cached):
    """Opens the page once, and notes its two times in milliseconds."""
    if not cached:
        page.cdp("Network.clearBrowserCache")
    page.open()
    times = until(lambda: (t := page.js(TIMES)) and all(t) and t, say=page.text)
    if not page.js("return !!document.querySelector(arguments[0])", USEFUL[what]):
        raise RuntimeError(f"not the page {what}: {page.text()}")
    kind = "cached" if cached else "empty"
    values.add(f"{what} {kind} useful", times[0])
    values.add(f"{what} {kind} first", times[1])


def paint(suite, rounds, say):
    """Milliseconds: "PAGE empty|cached useful|first" -> one value a load."""
    if not os.path.exists(os.path.join(BUILD, "admind", "panel", "panel", "index.html")):
        raise RuntimeError("this build has no panel: configure it with -Dpanel=enabled")
    say(f"the panel's first page, {rounds} loads of each kind")
    values, chromium = Values(), Chromium(suite.uid("stranger"))
    try:
        page = Page(chromium, "http://{}:{}".format(*suite.address("admind-http")))
        page.cdp("Page.addScriptToEvaluateOnNewDocument", source=NOTE)
        page.size(1280)
        for what in USEFUL:
            if what == "overview":
                sign_in(page, suite)
            load(page, what, Values(), True)    # not counted: programs and tables become warm
            for _ in range(rounds):
                for cached in (False, True):
                    load(page, what, values, cached)
    finally:
        chromium.close()
    return values
