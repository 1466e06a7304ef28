"""contrib/instance with settings that a daemon refuses: whoever waits is told at once."""
import pytest

from harness.instance import Instance


def test_an_unknown_keyword_ends_the_wait():
    with pytest.raises(RuntimeError, match=r"sandboxd: configuration: .*unknown keyword: queue_wat\n"):
        Instance(sets=["sandboxd:queue_wat=5s"])


def test_a_setting_of_a_test_replaces_the_harness_s():
    i = Instance(sets=["sandboxd:queue_wait=17s"])
    try:
        with open(f"{i.state}/conf/sandboxd.conf", encoding="ascii") as f:
            assert [line for line in f if line.startswith("queue_wait")] == ["queue_wait 17s\n"]
    finally:
        i.close()
