"""Each judgement finds the fault that it is for, on a page that has this fault and no policy; and finds nothing on a good one."""
import pytest

from harness.clients.chromium import Chromium, Pages
from harness.clients.page import Page
from harness.patience import until

from . import judge

GOOD = """<main style="background: #fff; color: #000"><h1>Good</h1>
<style>:focus { outline: 2px solid #00f } button, a { display: inline-block; min-width: 30px; min-height: 30px; margin: 4px }</style>
<p><a href="#a">First</a> <button>Second</button> <input type="datetime-local" aria-label="When"> <button id="last">Last</button></p></main>"""
#: Faults that axe knows: markup, a word of what axe says.
AXE = {
    "no name": ("<button></button>", "button-name"),
    "contrast": ("<p style='color: #999'>pale</p>", "color-contrast"),
    "no alternative": ("<img src='data:,'>", "image-alt"),
    "no label": ("<input>", "label"),
    "order of headings": ("<h4>deep</h4>", "heading-order"),
    "small target": ("<button style='min-width: 0; min-height: 0; width: 9px; height: 9px; padding: 0; margin: 0' aria-label=a></button>" * 2, "target-size"),
    "unknown role": ("<div role='nothing'>x</div>", "aria-roles"),
}
KEYS = {
    "a trap": "document.getElementById('last').addEventListener('keydown', e => e.preventDefault())",
    "no mark": "document.querySelector('style').textContent += 'button:focus { outline: none }'",
    "another order": "document.querySelector('button').tabIndex = 3",
    "nothing": "document.querySelector('p').remove()",
    "too many": "for (let i = 0; i < 130; i++) document.querySelector('p').append(document.createElement('button'))",
    "covered": "const d = document.createElement('div'); d.style = 'position: fixed; inset: 0; background: #fff'; document.body.append(d)",
}
MOTION = {
    "transition": "document.querySelector('a').style.transition = 'color 1s'",
    "milliseconds": "document.querySelector('a').style.transition = 'color 0s, margin 50ms'",
    "animation": "document.querySelector('style').textContent += '@keyframes k { to { opacity: 0 } } a::before { content: \"x\"; animation: k 2s infinite }'",
    "script": "document.querySelector('a').animate([{opacity: 0}, {opacity: 1}], 5000)",
}
#: What clean() must not let through.
UNCLEAN = {
    "a script's error": "setTimeout(() => { throw new Error('thrown') })",
    "a rejection": "Promise.reject(new Error('rejected'))",
    "an error of the console": "console.error('said')",
    "a warning of the console": "console.warn('said')",
    "a request to elsewhere": "fetch('http://elsewhere.example/').catch(() => {})",
    "a picture of elsewhere": "document.body.append(Object.assign(document.createElement('img'), {src: 'http://elsewhere.example/x.png'}))",
    "hostile text that ran": "document.body.insertAdjacentHTML('beforeend', '<img src=x: onerror=\"__seen.canary++\">')",
    "a report of a policy": """const m = document.createElement('meta'); m.httpEquiv = 'Content-Security-Policy'; m.content = "img-src 'none'";
        document.head.append(m); document.body.append(Object.assign(document.createElement('img'), {src: '/x.png'}))""",
}


@pytest.fixture(scope="module")
def site():
    s = Pages()
    yield s
    s.close()


@pytest.fixture(scope="module")
def shown(site, chromium_uid):
    c = Chromium(chromium_uid)
    p = Page(c, site.origin)
    p.size(1280)
    p.media(still=True)
    yield p
    c.close()


@pytest.fixture
def good(shown):
    shown.open()
    shown.logged()
    shown.js("document.documentElement.lang = 'en'; document.body.innerHTML = arguments[0]", GOOD)
    return shown


def test_a_good_page_is_good(good):
    assert good.axe() == []
    assert judge.keys(good) == []
    assert judge.marks(good) == []
    assert judge.motion(good) == []
    assert judge.width(good) == []
    good.clean()


@pytest.mark.parametrize("name", AXE)
def test_axe_finds(good, name):
    markup, rule = AXE[name]
    good.js("document.querySelector('main').insertAdjacentHTML('beforeend', arguments[0])", markup)
    assert any(v.startswith(rule) for v in good.axe()), good.axe()


@pytest.mark.parametrize("name", KEYS)
def test_the_walk_finds(good, name):
    good.js(KEYS[name])
    assert judge.keys(good) != []


def test_a_mark_of_shadow_alone_is_none_in_forced_colours(good):
    good.js("document.querySelector('style').textContent += 'button:focus { outline: none; box-shadow: 0 0 0 3px #00f }'")
    assert judge.marks(good) == []
    good.media(forced=True, still=True)
    assert len(judge.marks(good)) == 2
    good.media(still=True)


@pytest.mark.parametrize("name", MOTION)
def test_motion_is_found(good, name):
    good.js(MOTION[name])
    assert judge.motion(good) != []


def test_a_wide_page_is_found(good):
    good.js("document.querySelector('h1').style.width = '2000px'")
    assert judge.width(good) != []


def clean(page):
    try:
        page.clean()
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", UNCLEAN)
def test_clean_finds(good, name):
    good.js(UNCLEAN[name])
    until(lambda: not clean(good), say=lambda: good.seen())


def test_a_dialog_ends_the_test(good):
    """WebDriver refuses the next command while, or after, a page asked with alert()."""
    good.js("setTimeout(() => alert('here'))")
    with pytest.raises(Exception, match="unexpected alert open"):
        until(lambda: good.js("return false"))


@pytest.mark.parametrize("fault", [
    KEYS["covered"],
    "document.querySelector('button').disabled = true",
    "document.querySelector('button').ariaDisabled = 'true'",
    """const b = document.querySelector('button');
       b.style.position = 'relative';
       let n = 0;
       (function move() { b.style.left = `${++n % 50}px`; requestAnimationFrame(move); })()""",
], ids=["covered", "disabled", "aria-disabled", "moving"])
def test_the_mouse_clicks_nothing_that_cannot_be_clicked(good, monkeypatch, fault):
    monkeypatch.setattr("harness.patience.FACTOR", 0.01)
    good.js("addEventListener('click', () => __seen.canary++, true)")
    good.js(fault)
    with pytest.raises(AssertionError, match="covered, not drawn, moving or not able to act"):
        good.click("button", "Second")
    assert good.seen()["canary"] == 0


def test_a_press_that_meets_another_element_is_done_again(good):
    """The button moves away between the look and the press."""
    good.js("""
        const b = document.querySelector('button');
        window.__clicked = [];
        addEventListener('click', e => __clicked.push(e.target.innerText));
        let guard;
        Object.defineProperty(window, '__guard', {configurable: true, get: () => guard, set(f) {
            guard = f;
            Object.assign(b.style, {position: 'fixed', left: '700px', top: '500px'});
        }})""")
    good.click("button", "Second")
    assert good.js("return __clicked") == ["Second"]
