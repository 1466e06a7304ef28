"""The policy of the page holds in a real browser: no script but its own, no sink of markup, nothing from elsewhere."""
import pytest

from harness.clients.chromium import Pages

SINKS = {
    "innerHTML": "document.createElement('div').innerHTML = '<img src=x onerror=\"window.ran = 1\">'",
    "insertAdjacentHTML": "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
    "outerHTML": "document.body.appendChild(document.createElement('p')).outerHTML = '<p>x</p>'",
    "document.write": "document.write('<p>x</p>')",
    "srcdoc": "document.createElement('iframe').srcdoc = '<p>x</p>'",
    "script text": "document.createElement('script').text = 'window.ran = 1'",
    "timer of text": "setTimeout('window.ran = 1')",
    "policy": "trustedTypes.createPolicy('x', {createHTML: x => x})",
}
TRY = "try { %s; return 'done' } catch (e) { return e.name }"


@pytest.fixture
def plain(chromium, browser):
    """A page without a policy, in the same browser; the panel is opened again after it."""
    site = Pages()
    browser.open_site = site.origin
    chromium.open(site.origin)
    yield browser
    site.close()
    browser.open()
    browser.drawn()


@pytest.mark.parametrize("name", SINKS)
def test_a_sink_works_on_a_page_without_a_policy(plain, name):
    assert plain.js(TRY % SINKS[name]) == "done"


@pytest.mark.parametrize("name", SINKS)
def test_the_panel_refuses_it(browser, name):
    browser.go("#/")
    assert browser.js(TRY % SINKS[name]) in ("TypeError", "EvalError")
    assert not browser.js("return window.ran"), name
    browser.open()
    browser.drawn()


def test_an_inline_script_does_not_run(browser):
    browser.go("#/")
    browser.js("""const s = document.createElement('script');
        s.appendChild(document.createTextNode('window.ran = 1')); document.body.appendChild(s)""")
    assert not browser.js("return window.ran")
    assert any(r.startswith(("script-src", "require-trusted-types")) for r in browser.seen()["csp"]), browser.seen()
    browser.open()
    browser.drawn()


def test_it_is_in_no_frame(chromium, browser, origin):
    site = Pages()
    try:
        chromium.open(f"{site.origin}/frame?{origin}/")
        chromium.frame(0)
        assert not chromium.command("POST", "/execute/sync", {"script": "return !!document.querySelector('#app')", "args": []})
        chromium.frame(None)
    finally:
        site.close()
        browser.open()
        browser.drawn()
