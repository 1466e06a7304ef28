"""A page of the panel, used as a person uses it: things are found by their role and name as assistive technology
computes them, and clicks and keys are the browser's own events (DevTools' Accessibility and Input domains)."""
import base64
import json
import os

from harness.patience import until

#: Keeps what a page must not cause. The flag `canary` is set by hostile text that runs.
WATCH = """
window.__seen = {csp: [], errors: [], canary: 0};
addEventListener('securitypolicyviolation', e => __seen.csp.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sample}`));
addEventListener('error', e => __seen.errors.push(String(e.message)));
addEventListener('unhandledrejection', e => __seen.errors.push(String(e.reason)));
// The browser keeps 250 requests by itself.
performance.setResourceTimingBufferSize(100000);
// Questions whose answer is not read to its end. A stream has no end.
window.__unanswered = 0;
{
    const ask = window.fetch;
    window.fetch = async (to, how) => {
        if ((how?.method ?? 'GET') !== 'GET' || String(to).includes('/stream')) return ask(to, how);
        window.__unanswered++;
        try {
            const answer = await ask(to, how);
            answer.clone().arrayBuffer().catch(() => {}).finally(() => window.__unanswered--);
            return answer;
        } catch (e) {
            window.__unanswered--;
            throw e;
        }
    };
}
"""
#: How keys are named in DevTools: key, code, windowsVirtualKeyCode, text.
KEYS = {"Tab": ("Tab", "Tab", 9, ""), "Enter": ("Enter", "Enter", 13, "\r"), "Escape": ("Escape", "Escape", 27, ""),
        "Space": (" ", "Space", 32, " "), "ArrowDown": ("ArrowDown", "ArrowDown", 40, ""),
        "ArrowUp": ("ArrowUp", "ArrowUp", 38, ""), "End": ("End", "End", 35, ""), "Home": ("Home", "Home", 36, "")}
SHIFT = 8
#: Returns the middle of an element that can be clicked, or null. Its guard stops what meets another element, and counts that.
PLACE = """
// A tab in the background draws no frames.
const drawn = () => new Promise(done => document.hidden ? done() : requestAnimationFrame(done));
const where = () => [...this.getClientRects()].find(r => r.width > 0 && r.height > 0);
const meets = e => this.contains(e) || e.contains(this);
if (!this.isConnected || this.matches(':disabled, [aria-disabled=true]')) return null;
this.scrollIntoView({block: 'center', inline: 'nearest'});
const r = where();
await drawn();
const s = where();
if (!r || !s || r.x !== s.x || r.y !== s.y) return null;
const x = s.x + s.width / 2, y = s.y + s.height / 2, at = document.elementFromPoint(x, y);
if (!at || !meets(at)) return null;
const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
let missed = 0, hit = false;
const guard = e => {
    if (e.type === 'pointerdown') hit = meets(e.target);
    if (hit) return;
    missed++;
    e.preventDefault();
    e.stopImmediatePropagation();
};
for (const k of kinds) addEventListener(k, guard, true);
window.__guard = () => {
    for (const k of kinds) removeEventListener(k, guard, true);
    delete window.__guard;
    return missed;
};
return [x, y]"""
ROUTES_AWAY = ("data:", "blob:", "about:", "chrome:", "devtools:")


class Node:
    """One element of the page."""

    def __init__(self, page, backend):
        self.page = page
        self.id = page.cdp("DOM.resolveNode", backendNodeId=backend)["object"]["objectId"]
        self.backend = backend

    def js(self, body, *args):
        """Runs a function body with `this` as the element and `a` as the arguments."""
        r = self.page.cdp("Runtime.callFunctionOn", objectId=self.id, returnByValue=True, awaitPromise=True,
                          functionDeclaration=f"async function(...a) {{ {body} }}", arguments=[{"value": x} for x in args])
        assert "exceptionDetails" not in r, r
        return r["result"].get("value")

    @property
    def text(self):
        return self.js("return this.innerText")

    @property
    def value(self):
        return self.js("return this.value")

    def attr(self, name):
        return self.js("return this.getAttribute(a[0])", name)

    def focus(self):
        self.page.cdp("DOM.focus", backendNodeId=self.backend)

    def click(self):
        """At its middle, as a mouse does. It must be seen there, be covered by nothing, lie still and be able to act.

        A press that meets another element, since the page moved meanwhile, is kept from the page and done again."""
        until(self.pressed, say=lambda: f"{self.text!r} is covered, not drawn, moving or not able to act")

    def pressed(self):
        """Clicks if that can be done now, and tells whether it did."""
        at = self.js(PLACE)
        if at is None:
            return False
        for kind in ("mousePressed", "mouseReleased"):
            self.page.cdp("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)
        # A page that the click led to has no guard.
        return self.page.js("return !window.__guard || __guard() === 0")

    def fill(self, text):
        """Replaces the text of a field, as typing does."""
        self.focus()
        self.js("this.select && this.select()")
        if text == "":
            self.page.press("Delete")
        else:
            self.page.cdp("Input.insertText", text=text)

    def choose(self, value):
        """Chooses an option of a select by its value."""
        assert self.js("this.value = a[0]; this.dispatchEvent(new Event('change', {bubbles: true})); return this.value",
                       value) == value, f"no option {value!r}"


class Page:
    """The page that a Chromium shows."""

    def __init__(self, chromium, origin):
        self.chromium, self.origin = chromium, origin
        self.asked = []     # addresses that the page asked for
        self.others = ()    # origins that it may ask beside its own: the gateway's, of Playground
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.cdp("DOM.enable")
        self.cdp("Accessibility.enable")
        self.media()

    def cdp(self, command, **params):
        return self.chromium.command("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def js(self, script, *args):
        """The value of a function body; `arguments` are args."""
        return self.chromium.command("POST", "/execute/sync", {"script": script, "args": list(args)})

    # --- how it is shown ---

    def size(self, width, height=800):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, scheme="light", forced=False, still=False):
        """still: without motion. forced: with forced colours."""
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "forced-colors", "value": "active" if forced else "none"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])

    def picture(self, path, full=False):
        """Writes what is seen, or the full page, to a PNG file; its bytes."""
        data = base64.b64decode(self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"])
        with open(path, "wb") as f:
            f.write(data)
        return data

    # --- where it is ---

    def open(self, path="/"):
        self.chromium.open(self.origin + path)

    def go(self, route):
        """Opens a route of the panel and waits until it is drawn."""
        self.js("""
            const before = location.hash;
            location.hash = arguments[0];
            if (location.hash === before)
                return null;
            // The frame that draws the route, then the effects that begin to fetch.
            const drawn = () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
            let done;
            addEventListener('hashchange', () => document.hidden ? done() : drawn(), {once: true});
            return new Promise(r => done = r)""", route)
        self.drawn()

    def drawn(self):
        """Waits until the page has its title, has all its answers and shows them: a part that an answer brings may
        ask a question of its own, after the frame that draws it."""
        until(lambda: self.js("""
            return (async () => {
                const frame = () => new Promise(r => document.hidden ? r() : requestAnimationFrame(() => setTimeout(r)));
                const still = () => {
                    const wanted = location.hash.replace(/^#\\/?/, '').split(/[/?]/)[0];
                    const main = document.querySelector('main');
                    return main && main.querySelector('h1') && !document.querySelector('.loading') && window.__unanswered === 0
                        && (main.dataset.place ?? wanted) === wanted;
                };
                if (!still()) return false;
                await frame();
                await frame();
                return still();
            })()"""),
              say=lambda: (self.js("return [location.hash, window.__unanswered]"), self.text(), self.seen()))

    # --- what is on it ---

    def text(self):
        return self.js("return document.body.innerText")

    def see(self, text):
        """Waits until the page has this text."""
        until(lambda: text in self.text(), say=lambda: f"no {text!r} in\n{self.text()}\n{self.seen()}")

    def not_see(self, text):
        until(lambda: text not in self.text(), say=lambda: f"still {text!r} in\n{self.text()}")

    def all(self, role, name=None):
        """Elements of a role, in the order of the document; with this name, or whose name the pattern finds."""
        root = self.cdp("DOM.getDocument", depth=0)["root"]["backendNodeId"]
        query = {"backendNodeId": root, "role": role}
        if isinstance(name, str):
            query["accessibleName"] = name
        found = [n for n in self.cdp("Accessibility.queryAXTree", **query)["nodes"] if not n.get("ignored")]
        if name is not None and not isinstance(name, str):
            found = [n for n in found if name.search(n.get("name", {}).get("value", ""))]
        return [Node(self, n["backendDOMNodeId"]) for n in found]

    def get(self, role, name=None):
        """The first such element, once there is one."""
        def first():
            nodes = self.all(role, name)
            return nodes[0] if nodes else None
        return until(first, say=lambda: f"no {role} {name!r} on\n{self.text()}\n{self.seen()}")

    def gone(self, role, name=None):
        until(lambda: not self.all(role, name), say=lambda: f"still a {role} {name!r} on\n{self.text()}")

    def click(self, role, name=None):
        self.get(role, name).click()

    def confirm(self, name):
        """Clicks the button of the open dialog, once the dialog is there. The page below may have one of the same name."""
        self.get("dialog")
        until(lambda: (nodes := self.all("button", name)) and nodes[-1].pressed(),
              say=lambda: f"no button {name!r} to click on\n{self.text()}")

    def fill(self, name, text):
        """Fills the field with this label."""
        until(lambda: self.all("textbox", name) or self.all("spinbutton", name) or self.all("searchbox", name),
              say=lambda: f"no field {name!r} on\n{self.text()}")[0].fill(text)

    def choose(self, name, value):
        # Options may come after the field.
        until(lambda: self.get("combobox", name).js("return [...this.options].some(o => o.value === a[0])", value),
              say=lambda: f"no option {value!r} of {name!r}")
        self.get("combobox", name).choose(value)

    # --- keys ---

    def press(self, key, shift=False):
        if key == "Delete":
            named = ("Delete", "Delete", 46, "")
        elif key in KEYS:
            named = KEYS[key]
        else:
            named = (key, f"Key{key.upper()}" if key.isalpha() else "", ord(key.upper()), key)
        k, code, number, text = named
        event = {"key": k, "code": code, "windowsVirtualKeyCode": number, "modifiers": SHIFT if shift else 0}
        self.cdp("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        self.cdp("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.cdp("Input.insertText", text=text)

    def focused(self):
        """Role and name of the element with the focus."""
        node = self.cdp("Runtime.evaluate", expression="document.activeElement")["result"]["objectId"]
        ax = self.cdp("Accessibility.getPartialAXTree", objectId=node, fetchRelatives=False)["nodes"][0]
        return ax.get("role", {}).get("value"), ax.get("name", {}).get("value", "")

    # --- what it must not do ---

    def seen(self):
        """Reports of the policy, errors of scripts, and how often hostile text ran, since the page was opened."""
        return self.js("return window.__seen") or {}

    def clean(self, remark=None):
        """Asserts that nothing of that happened, and that the page asked nobody else. remark: words of a warning of the
        browser's own that is expected."""
        seen = self.seen()
        assert seen == {"csp": [], "errors": [], "canary": 0}, seen
        away = self.js("return performance.getEntriesByType('resource').map(e => e.name)")
        own = tuple(o + "/" for o in (self.origin, *self.others))
        assert not [u for u in away if not u.startswith((*own, *ROUTES_AWAY))], away
        # A refusal that a page shows is in the browser's log, too: an answer of its own server is no fault.
        bad = [e["message"] for e in self.logged() if e.get("source") != "network" or not e["message"].startswith(own)]
        bad = [m for m in bad if remark is None or remark not in m]
        assert not bad, bad

    def logged(self):
        """Errors and warnings that the browser logged since this was last asked: of scripts, the policy and requests."""
        return [e for e in self.chromium.command("POST", "/se/log", {"type": "browser"}) if e["level"] in ("SEVERE", "WARNING")]

    def axe(self, *, source=[]):  # noqa: B006 read once
        """Rules that the page breaks, each with its elements: axe-core, WCAG 2.2 A and AA and best practices."""
        if not source:
            with open(os.path.join(os.environ["MCPBOX_NODE_DIR"], "node_modules", "axe-core", "axe.min.js"), encoding="utf-8") as f:
                source.append(f.read())
        if not self.js("return 'axe' in window"):
            # DevTools is not held by the page's policy.
            self.cdp("Runtime.evaluate", expression=source[0])
        r = self.cdp("Runtime.evaluate", awaitPromise=True, returnByValue=True, expression="""
            axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(r =>
                r.violations.map(v => `${v.id}: ${v.help}: ` + v.nodes.slice(0, 4).map(n => `${n.target} ${n.html.slice(0, 160)} ${
                    (n.any[0] ?? n.all[0] ?? n.none[0])?.message ?? ''}`).join(' | ')))""")
        assert "exceptionDetails" not in r, json.dumps(r)[:2000]
        return r["result"]["value"]
