"""First by its name: a machine on which `mcpboxctl setup` has not run."""
import os

from harness.installed import SOCKETS, UNITS, WATCH, show, systemctl

from .conftest import SETUP


def test_nothing_starts_before_setup(machine):
    assert not os.path.exists(SETUP)
    systemctl("start", "mcpbox.target")
    for u in ("mcpbox.target", *SOCKETS, *WATCH[:2], *UNITS.values()):
        assert show(u, "ActiveState", "ConditionResult") == \
            {"ActiveState": "inactive", "ConditionResult": "no"}, u
    assert machine.failed() == []
