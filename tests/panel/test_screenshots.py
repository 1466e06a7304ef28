"""The pictures of the documents: they are there, small, and of pages that this tree draws.

Each is made here and judged, and thrown away; docs/pictures/ stays as it is. With MCPBOX_PICTURES=1 the new ones are written
there, to be looked at and committed."""
import base64
import glob
import os
import re
import shutil
import struct
import subprocess

import pytest

from harness import house
from harness.place import SRC

from .pages import route

#: name -> (route, what is at the window's top: a selector, or None for the page's top; the colour scheme).
PICTURES = {
    "overview": ("#/", None, "light"),
    "review": ("#/approvals/{asks}", "section[aria-label='Permissions']", "light"),
    "review-dark": ("#/approvals/{asks}", "section[aria-label='Content']", "dark"),
    "tool": ("#/tools/{tool}", None, "light"),
    "calls": ("#/calls?kind=tool", None, "light"),
    "audit": ("#/audit", None, "light"),
    "access": ("#/access", None, "light"),
}
FOLDER = os.path.join(SRC, "docs", "pictures")
WIDTH, HEIGHT = 1280, 900
#: Bytes of all together, and of one.
ALL_MAX, ONE_MAX = 1_000_000, 200_000
#: A page has a ground, text and marks; a blank one has a colour or two.
COLOURS_MIN, MARKED_MIN = 8, 0.02
PNG = b"\x89PNG\r\n\x1a\n"
#: The browser reads the picture again. Returns the number of colours, and the part without the commonest one.
LOOK = """
const bytes = Uint8Array.from(atob(arguments[0]), c => c.charCodeAt(0));
return createImageBitmap(new Blob([bytes])).then(picture => {
    const drawn = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
    drawn.drawImage(picture, 0, 0);
    const counts = new Map();
    for (const c of new Uint32Array(drawn.getImageData(0, 0, picture.width, picture.height).data.buffer))
        counts.set(c, (counts.get(c) ?? 0) + 1);
    return [counts.size, 1 - Math.max(...counts.values()) / (picture.width * picture.height)];
});
"""
#: The page's head and menu stay in sight above what is shown.
SCROLL = """
document.activeElement.blur();
const at = arguments[0] && document.querySelector(arguments[0]);
if (arguments[0] && !at) return false;
scrollTo(0, at ? at.getBoundingClientRect().top + scrollY - 65 : 0);
return Promise.all([document.fonts.ready, new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))]).then(() => true);
"""


def read(path):
    with open(path, "rb") as f:
        return f.read()


def size(data):
    """Width and height by a PNG's head."""
    assert data[:8] == PNG and data[12:16] == b"IHDR"
    return struct.unpack(">II", data[16:24])


def shown():
    """The pictures that documents show, each with the document's path."""
    for path in (os.path.join(SRC, "README.md"), *glob.glob(os.path.join(SRC, "docs", "**", "*.md"), recursive=True)):
        for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", read(path).decode()):
            yield os.path.relpath(path, SRC), os.path.normpath(os.path.join(os.path.dirname(path), target))


def smaller(path):
    """Reduces a picture to a palette where pngquant is there. 98 and 99 say "not smaller" and "not good enough": the
    picture stays as it is."""
    if shutil.which("pngquant"):
        done = subprocess.run(["pngquant", "--force", "--skip-if-larger", "--strip", f"--output={path}", path], check=False)
        assert done.returncode in (0, 98, 99)


@pytest.fixture(scope="module")
def built(instance):
    return house.build(instance)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if os.environ.get("MCPBOX_PICTURES"):
        os.makedirs(FOLDER, exist_ok=True)
        return FOLDER
    return str(tmp_path_factory.mktemp("pictures"))


def test_a_blank_picture_is_found(browser, tmp_path):
    browser.js("document.body.hidden = true")
    data = browser.picture(str(tmp_path / "blank.png"))
    colours, marked = browser.js(LOOK, base64.b64encode(data).decode())
    browser.open()
    browser.drawn()
    assert colours < COLOURS_MIN or marked < MARKED_MIN


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_made(page, built, folder, name):
    where, top, scheme = PICTURES[name]
    page.size(WIDTH, HEIGHT)
    page.media(scheme, still=True)
    page.cdp("Emulation.setScrollbarsHidden", hidden=True)
    page.open()     # what it knew before the seeds came is forgotten
    page.drawn()
    page.go(route(where, built))
    if name == "overview":
        page.js("return new Promise(r => { const f = () => document.querySelector('canvas') ? r() : requestAnimationFrame(f); f(); })")
    assert page.js(SCROLL, top), f"no {top}"
    path = os.path.join(folder, name + ".png")
    page.picture(path)
    smaller(path)
    data = read(path)
    assert size(data) == (WIDTH, HEIGHT)
    colours, marked = page.js(LOOK, base64.b64encode(data).decode())
    assert colours >= COLOURS_MIN and marked >= MARKED_MIN, (colours, marked)
    assert len(data) <= ONE_MAX


def test_documents_show_what_is_there():
    """Each picture of the folder is shown by a document, and each that is shown is there."""
    found = {p for _, p in shown()}
    assert {os.path.join(FOLDER, n + ".png") for n in PICTURES} == found == {os.path.join(FOLDER, n) for n in os.listdir(FOLDER)}
    assert "README.md" in {d for d, _ in shown()}
    data = [read(p) for p in found]
    assert {size(d) for d in data} == {(WIDTH, HEIGHT)}
    assert sum(map(len, data)) < ALL_MAX and max(map(len, data)) <= ONE_MAX
