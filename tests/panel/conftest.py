"""The panel of a real instance, in a real Chromium."""
import os
import types

import pytest

from harness.clients.chromium import Chromium
from harness.clients.page import Page
from harness.place import BUILD

from . import seeds


@pytest.fixture(scope="session")
def chromium_uid():
    """Nobody's: the browser has no right of a daemon."""
    return 65534


@pytest.fixture(scope="module")
def chromium(chromium_uid):
    c = Chromium(chromium_uid)
    yield c
    c.close()


@pytest.fixture(scope="module")
def origin(instance):
    """The panel's address, once it is served."""
    assert os.path.exists(os.path.join(BUILD, "admind", "panel", "panel", "index.html")), (
        "this build has no panel: configure it with -Dpanel=enabled; npm must be there")
    return "http://{}:{}".format(*instance.address("admind-http"))


@pytest.fixture(scope="module")
def world(instance):
    """What a house has after some days: seeds.py says what is in it."""
    return seeds.make(instance)


def sign_in(page, name, password):
    """By the form."""
    page.fill("User name", name)
    page.fill("Password", password)
    page.click("button", "Sign in")
    page.get("navigation", "Pages")
    page.drawn()


@pytest.fixture(scope="module")
def browser(chromium, origin, instance):
    """The panel with an administrator's login."""
    page = Page(chromium, origin)
    page.size(1280)
    page.open()
    sign_in(page, "admin", instance.password)
    return page


@pytest.fixture
def page(browser):
    """The same at a desktop's size, on the first page. The test must leave nothing behind that a page may not cause."""
    browser.size(1280)
    browser.media()
    browser.go("#/")
    yield browser
    browser.clean()


@pytest.fixture
def as_role(instance, rest, origin):
    """as_role(role): a page in a browser of its own with a login of that role."""
    opened = []

    def make(role):
        name, password = seeds.person(rest, instance, role)
        c = Chromium(65534)
        opened.append(c)
        p = Page(c, origin)
        p.size(1280)
        p.open()
        sign_in(p, name, password)
        return types.SimpleNamespace(page=p, name=name, password=password)
    yield make
    for c in opened:
        c.close()
