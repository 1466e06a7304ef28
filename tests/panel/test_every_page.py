"""Each page of the table in pages.py: at a desktop's and a phone's width, in both schemes, in forced colours, without
motion, and by keyboard alone. The judgements are judge.py's."""
import os
import re

import pytest

from harness.place import SRC

from . import judge, seeds
from .pages import PAGES, route

ROUTES = [pytest.param(r, h, id=r.strip("#/") or "overview") for r, h in PAGES]


@pytest.fixture(scope="module")
def house(instance, world):
    return seeds.more(instance, world)


def title(page, text):
    assert page.get("heading", re.compile("^" + re.escape(text))).js("return this.tagName") == "H1"
    assert page.js("return document.querySelectorAll('h1').length") == 1
    assert page.js("return document.title").endswith(" · mcpbox")


def go(page, house, where, heading):
    page.go(route(where, house))
    title(page, heading)


def test_the_table_has_every_page():
    with open(os.path.join(SRC, "admind", "panel", "src", "pages.tsx"), encoding="utf-8") as f:
        places = set(re.findall(r'{place: "(\w*)"', f.read()))
    assert len(places) > 10
    assert {re.split("[/?]", r.removeprefix("#/"))[0] for r, _ in PAGES} == places


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("where,heading", ROUTES)
def test_it_is_whole(page, house, where, heading, width, scheme):
    page.size(width)
    page.media(scheme)
    go(page, house, where, heading)
    assert page.axe() == []
    assert judge.width(page) == []


@pytest.mark.parametrize("where,heading", ROUTES)
def test_it_fits_320(page, house, where, heading):
    page.size(320)
    go(page, house, where, heading)
    assert judge.width(page) == []


@pytest.mark.parametrize("where,heading", ROUTES)
def test_it_is_reached_by_keyboard(page, house, where, heading):
    page.media(still=True)
    go(page, house, where, heading)
    assert judge.keys(page) == []


@pytest.mark.parametrize("where,heading", ROUTES)
def test_forced_colours(page, house, where, heading):
    """The system's colours, which have no shadows: the focus is seen by its outline."""
    page.media(forced=True, still=True)
    go(page, house, where, heading)
    assert page.js("return matchMedia('(forced-colors: active)').matches")
    assert page.axe() == []
    assert judge.marks(page) == []


@pytest.mark.parametrize("where,heading", ROUTES)
def test_it_keeps_still(page, house, where, heading):
    page.media(still=True)
    go(page, house, where, heading)
    assert judge.motion(page) == []


def test_the_skip_link_leads_past_the_menu(page):
    page.js(judge.TOP)
    page.press("Tab")
    assert page.focused() == ("link", "Skip to the content")
    page.press("Enter")
    assert page.js("return document.activeElement.id") == "content"


def test_an_unknown_address_says_so(page):
    page.js("location.hash = '#/nothing/here'")
    page.see("There is no such page")
