import contextlib

import pytest

from local.person import Person


@pytest.fixture
def person():
    p = Person()
    yield p
    p.close()


@pytest.fixture
def terminals():
    """Closes each terminal that a test opens."""
    with contextlib.ExitStack() as s:
        def add(t):
            s.callback(t.close)
            return t
        yield add
