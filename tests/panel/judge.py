"""Judgements of a page that is open. Each returns what is wrong in words, [] for nothing; test_judges.py gives each a page
with the fault that it is for."""
#: A person who goes by keyboard passes these; a longer way is a fault of the page.
STOPS_MAX = 120
#: Seconds.
MOTION_MAX = 0.01
#: A field of a time has a stop for each of its parts (day, hour and so on) and for its calendar.
TIME_PARTS = 9

STOPS = """
for (const e of document.querySelectorAll('[data-stop], [data-visited]')) { delete e.dataset.stop; delete e.dataset.visited; }
return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter(e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true})).map((e, i) => {
        e.dataset.stop = i;
        return e.outerHTML.slice(0, 120);
    });
"""
TOP = """
document.activeElement.blur();
getSelection().removeAllRanges();
scrollTo(0, 0);
document.body.tabIndex = -1;
document.body.focus();
document.body.removeAttribute('tabindex');
"""
#: Of the element that has the focus. Its first box is looked at: a link over two lines has two.
#: Some of that must be seen (WCAG 2.2, 2.4.11); a long text's rest may be below the window.
FOCUS = """
const e = document.activeElement;
if (!e || e === document.body) return null;
const look = () => { const s = getComputedStyle(e);
    return (s.outlineStyle === 'none' ? '' : [s.outlineStyle, s.outlineWidth, s.outlineColor].join()) + s.boxShadow; };
const now = look(), again = e.dataset.visited === '1';
if (again && e.type === 'datetime-local') return {part: true};
const r = [...e.getClientRects()].find(r => r.width > 0 && r.height > 0);
const parts = [0.02, 0.25, 0.5, 0.75, 0.98];
const seen = !!r && parts.some(x => parts.some(y => {
    const at = document.elementFromPoint(r.x + r.width * x, r.y + r.height * y);
    return at && e.contains(at);
}));
e.dataset.visited = '1';
e.blur();
const before = look();
e.focus();
return {what: e.outerHTML.slice(0, 120), stop: e.dataset.stop === undefined ? null : +e.dataset.stop, marked: now !== before, again,
    seen};
"""
#: After a key, a script's focus is marked as a key's is.
MARKS = """
const look = e => { const s = getComputedStyle(e);
    return (s.outlineStyle === 'none' ? '' : [s.outlineStyle, s.outlineWidth, s.outlineColor].join()) + s.boxShadow; };
return [...document.querySelectorAll('[data-stop]')].filter(e => {
    document.activeElement.blur();
    const before = look(e);
    e.focus();
    return document.activeElement !== e || look(e) === before;
}).map(e => e.outerHTML.slice(0, 120));
"""
MOTION = """
const long = t => t.split(',').some(x => parseFloat(x) * (x.trim().endsWith('ms') ? 0.001 : 1) > arguments[0]);
const styled = [...document.querySelectorAll('*')].filter(e => [null, '::before', '::after'].some(part => {
    const s = getComputedStyle(e, part);
    return long(s.transitionDuration) || (s.animationName !== 'none' && long(s.animationDuration)); }));
const running = document.getAnimations().filter(a => (a.effect.getComputedTiming().activeDuration ?? 0) > arguments[0] * 1000).map(a => a.effect.target);
return [...new Set([...styled, ...running])].map(e => e.outerHTML.slice(0, 120));
"""


def width(page):
    """Does the document scroll sideways? WCAG 2.2, 1.4.10."""
    whole, shown = page.js("return [document.documentElement.scrollWidth, innerWidth]")
    return [f"the page is {whole} wide, its window {shown}"] if whole > shown else []


def motion(page):
    """Elements that move for longer than MOTION_MAX."""
    return page.js(MOTION, MOTION_MAX)


def keys(page):
    """Tab goes to everything that can have the focus, once, in the order of the document, shows where it is, and leaves the
    page after the last (WCAG 2.2, 2.1.1, 2.1.2, 2.4.3, 2.4.7, 2.4.11)."""
    page.js(TOP)
    stops, bad = page.js(STOPS), []
    if not stops or len(stops) > STOPS_MAX:
        return [f"{len(stops)} stops"]
    for n, what in enumerate(stops):
        at = tab(page)
        if at is None or at["stop"] != n:
            return [*bad, f"after {n} came not {what} but {at}"]
        if not (at["marked"] and at["seen"]) or at["again"]:
            bad.append(str(at))
    # After the last comes the browser's own, or, where it has none, the page's first.
    at = tab(page)
    if at is not None and at["stop"] != 0:
        bad.append(f"the last stop holds the focus: {at}")
    return bad


def tab(page):
    """Presses Tab, past the parts of one time's field; what has the focus then."""
    for _ in range(TIME_PARTS):
        page.press("Tab")
        at = page.js(FOCUS)
        if at is None or "part" not in at:
            break
    return at


def marks(page):
    """Elements that look the same with the focus and without, without a walk to each."""
    page.js(TOP)
    page.js(STOPS)
    page.press("Tab")
    return page.js(MARKS)
