"""Answers of REST that a test plays inside the page, for what a real instance does not make at will; and files that the
page has the browser save."""
import json
import os
import shutil

#: Keeps the real fetch() and answers the addresses of `played`: [part of the address, status, type, body]. A body of
#: several parts ends after the last; `once`: the next request is answered by the server again.
PLAY = """
window.realFetch ??= window.fetch;
const played = arguments[0];
window.fetch = (to, options) => {
    const i = played.findIndex(p => String(to).includes(p.part));
    if (i < 0)
        return realFetch(to, options);
    const p = played[i];
    if (p.once)
        played.splice(i, 1);
    return Promise.resolve(new Response(p.body, {status: p.status ?? 200, headers: {'Content-Type': p.type ?? 'application/json'}}));
};
"""


def play(page, *played):
    """played: dicts with part, body and maybe status, type, once."""
    page.js(PLAY, [{**p, "body": p["body"] if isinstance(p["body"], str) else json.dumps(p["body"])} for p in played])


def stop(page):
    """The server answers again."""
    page.js("if (window.realFetch) window.fetch = window.realFetch")


def saves(page):
    """Has the browser write downloads into an empty folder of its own."""
    folder = page.chromium.path("files")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    owner = os.stat(page.chromium.dir)
    os.chown(folder, owner.st_uid, owner.st_gid)
    page.cdp("Page.setDownloadBehavior", behavior="allow", downloadPath=folder)


def saved(page):
    """The file that was downloaded, (name, text), or None."""
    folder = page.chromium.path("files")
    names = [n for n in os.listdir(folder) if not n.startswith(".") and not n.endswith(".crdownload")]
    if len(names) != 1:
        return None
    with open(os.path.join(folder, names[0]), encoding="utf-8") as f:
        return names[0], f.read()
