"""An instance whose circuit breakers don't end the flood of wrong calls."""
import pytest

from harness.instance import Instance


@pytest.fixture(scope="session")
def instance():
    i = Instance(sets=["admind:breakers=no"])
    yield i
    i.close()
