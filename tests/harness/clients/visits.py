"""Visits of the panel's pages, with all that each asks of REST and draws."""
from harness.patience import until

#: Of harness/scale.
SERVER, TOOL, REQUEST, CALL = (f"{kind:08d}-0000-7000-8000-{n:012d}" for kind, n in ((1, 1), (2, 3), (4, 1), (6, 9)))
#: Each list, with filters that people use, and one page of each kind of thing.
PAGES = (
    "#/", "#/?period=7d", "#/approvals", "#/approvals?state=all", "#/approvals?order=newest", "#/approvals?search=tool_77", f"#/approvals/{REQUEST}", "#/approvals/policy",
    "#/tools", "#/tools?state=pending_review", f"#/tools?server={SERVER}", "#/tools?search=weather", f"#/tools/{TOOL}",
    "#/prompts", "#/servers", f"#/servers/{SERVER}", "#/secrets", "#/network", "#/modules", "#/sources",
    "#/calls", "#/calls?outcome=failed", "#/calls?tool=bulk_1__tool_3", "#/calls?principal=token%3At10", "#/calls?search=tool_77",
    f"#/calls?server={SERVER}", f"#/calls/{CALL}", "#/activity", "#/activity?level=error",
    "#/audit", "#/audit?actor=alice", "#/access", "#/access/keys", "#/access/identities", "#/access/document", "#/access/endpoints",
    "#/people", "#/people/logins", "#/settings", "#/settings/limits", "#/settings/breakers")

#: Notes each request from its start until its body was read. `left` are those that are on their way.
WATCH = """
window.__asked = {left: 0, done: []};
const real = window.fetch;
window.fetch = async (...args) => {
    const begun = performance.now();
    let open = true;
    const end = (status, text) => {
        if (!open) return;
        open = false;
        __asked.left--;
        let items = 0;
        try { items = JSON.parse(text).items.length; } catch { items = 0; }
        __asked.done.push({to: String(args[0]), status, ms: performance.now() - begun, bytes: text.length, items});
    };
    __asked.left++;
    try {
        const answer = await real(...args);
        if (answer.status === 204) end(204, '');
        for (const way of ['text', 'json']) {
            const read = answer[way].bind(answer);
            answer[way] = async () => {
                const text = await answer.clone().text().catch(() => '');
                try { return await read(); } finally { end(answer.status, text); }
            };
        }
        return answer;
    } catch (e) {
        end(0, '');
        throw e;
    }
};
"""
#: Goes to the route and waits until a frame has all of it. A second frame confirms: what came may ask for more.
GO = """
const [route, patience] = arguments;
const begun = performance.now();
const frame = () => new Promise(done => requestAnimationFrame(done));
const still = () => __asked.left === 0 && document.querySelector('main h1') && !document.querySelector('.loading');
__asked.done = [];
location.hash = route;
return (async () => {
    await frame();
    while (performance.now() - begun < patience) {
        await frame();
        const at = performance.now();
        if (!still()) continue;
        await frame();
        await frame();
        if (still())
            return {ms: at - begun, asked: __asked.done, rows: document.querySelectorAll('main tbody tr, main li').length,
                options: document.querySelectorAll('main option').length, elements: document.querySelectorAll('main *').length};
    }
    return null;
})();
"""


def watch(page):
    """Opens the panel with the notes; the login stays."""
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    page.open()
    page.drawn()
    until(lambda: page.js("return __asked.left") == 0)


def visit(page, route, patience=60):
    """Opens a route: {"ms", "asked": [{"to", "status", "ms", "bytes", "items"}], "rows", "options", "elements"}."""
    page.js("location.hash = arguments[0]", "#/account")
    page.drawn()
    until(lambda: page.js("return __asked.left") == 0)
    got = page.js(GO, route, patience * 1000)
    if got is None:
        raise AssertionError((route, page.js("return __asked"), page.text()[:2000]))
    return got
