"""The guest is one machine with one spawn: tests share it, module by module."""
import pytest

from vm.inside.calls import Calls
from vm.inside.units import Delegated


@pytest.fixture(scope="module")
def sandbox():
    with Delegated(slots=1, queue_wait="60s") as s:
        yield s


@pytest.fixture(scope="module")
def calls(sandbox):
    c = Calls(sandbox)
    yield c
    c.close()
