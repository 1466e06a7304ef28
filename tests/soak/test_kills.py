"""sandboxd is killed under calls as often as the promise names: what clients had is what the records say."""
import pytest

from harness.instance import Instance
from kill.test_ledger import kills

KILLS = 300


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


def test_three_hundred_kills(instance):
    load = kills(instance, KILLS)
    print(f"{KILLS} kills, {len(load.ok)} answered with a result, each recorded as done; typed",
          {m: len(c) for m, c in load.typed.items()}, f"{len(load.transport)} cut")
