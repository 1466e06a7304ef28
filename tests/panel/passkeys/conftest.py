"""The panel at an https name, with a Chromium that knows the name and trusts the certificate."""
import secrets

import pytest

from harness.clients.chromium import Chromium

from .. import seeds
from .place import NAME, Place


@pytest.fixture(scope="module")
def place():
    p = Place()
    yield p
    p.close()


@pytest.fixture(scope="module")
def instance(place):
    return place.instance


@pytest.fixture
def chromium(place, chromium_uid):
    """One for each test: passkeys, cookies and devices are a browser's."""
    c = Chromium(chromium_uid, {NAME: "127.0.0.1"}, [place.certificate])
    yield c
    c.close()


@pytest.fixture(scope="module")
def admin(instance):
    return seeds.login(instance)


@pytest.fixture
def person(admin, instance):
    """A reviewer without passkeys: (name, password)."""
    return seeds.person(admin, instance, "reviewer")


@pytest.fixture
def label():
    return "key " + secrets.token_hex(3)
