"""The one helper of waits: what it returns, whom it ends, and that a machine which
stood still is looked at once more. Its clock is the test's."""
import pytest

from harness import patience as p


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(p, "time", Clock())
    return p.time


def late(clock):
    return clock.now > p.patience(10)


def test_what_came(clock):
    looks = iter([None, 0, "", "it"])
    assert p.until(lambda: next(looks), 10, 1) == "it" and clock.now == 3
    looks = iter([[], [1]])
    assert p.eventually(lambda: next(looks), 10, 1) == [1]


def test_what_never_comes(clock):
    with pytest.raises(AssertionError, match="still not after .*: the words"):
        p.until(lambda: False, 10, 1, say=lambda: "the words")
    assert late(clock)
    clock.now = 0
    assert p.eventually(lambda: (), 10, 1) == () and late(clock)


def test_exceptions_that_mean_not_yet(clock):
    def look():
        if clock.now < 5:
            raise KeyError("not yet")
        return "it"
    assert p.until(look, 10, 1, during=(KeyError, OSError)) == "it"
    clock.now = 0
    with pytest.raises(KeyError):
        p.until(look, 10, 1)
    assert clock.now == 0


def test_an_exception_that_lasts_is_told(clock):
    def look():
        raise OSError("why")
    with pytest.raises(OSError, match="why"):
        p.until(look, 10, 1, during=OSError)
    assert late(clock)


def test_a_machine_that_stood_still_is_asked_once_more(clock):
    """It stands still during a look: the next one still counts."""
    looks = []

    def look():
        looks.append(clock.now)
        if len(looks) == 1:
            clock.now += p.patience(1000)
            return None
        return "it"
    assert p.until(look, 10, 1) == "it"
    looks.clear()
    assert p.eventually(look, 10, 1) == "it"
