"""Sandboxes of other kinds than test_cgroup's: there is one unit in the guest,
so this is a module of its own."""
import json
import os
import time

import pytest

from harness.sandbox import DONE
from vm.inside.calls import SPIN, Calls
from vm.inside.units import ROOT, UNIT, Delegated, eventually, read


def median(values):
    return sorted(values)[len(values) // 2]


def test_a_neighbour_is_not_starved():
    """One call spins with four processes; another one's calls take no more
    than twice as long, by the guest's clock."""
    with Delegated(slots=2, queue_wait="60s") as sandbox:
        calls = Calls(sandbox)

        def once():
            t = time.monotonic()
            assert calls.run("def main(): return 1").value == 1
            return time.monotonic() - t
        for _ in range(3):
            once()
        alone = median([once() for _ in range(9)])
        started = calls.start(SPIN.format(seconds=40), timeout=100000)
        eventually(lambda: any(
            "slot-" in d and len(read(UNIT, "pool", d, "cgroup.procs").split()) >= 4
            for d in os.listdir(os.path.join(UNIT, "pool"))))
        beside = median([once() for _ in range(9)])
        assert calls.end(started).outcome == DONE
        print(f"alone {alone:.3f} s, beside a spinner {beside:.3f} s")
        assert beside < 2 * alone, (alone, beside)
        calls.close()


# --- Where it is not delegated. ---

@pytest.mark.parametrize("settings, why", [
    ({"delegate": "no"}, "not delegated"),
    ({"delegate": "memory pids"}, "without the cpu controller"),
    ({"read_only": True}, "ProtectControlGroups"),
])
def test_degraded_says_why_and_still_runs(settings, why):
    with Delegated(slots=1, queue_wait="60s", **settings) as sandbox:
        calls = Calls(sandbox)
        assert calls.run("def main(): return 1").value == 1
        rows = {(r["process"], r["layer"]): r for r in json.loads(
            sandbox.peer_root("ctl").call("DOCTOR", timeout=60)["json"])}
        row = rows["sandboxd-spawn", "cgroup"]
        assert row["state"] == "degraded" and why in row["detail"] and row["fix"], row
        assert rows["sandboxd", "call_memory"]["state"] == "degraded"
        assert "cgroup=degraded" in sandbox.log("sandboxd-spawn")
        calls.close()


def test_the_guest_has_the_controllers():
    """The guest has what is claimed: version 2 alone, all controllers."""
    with open("/proc/self/mountinfo", encoding="ascii") as f:
        kinds = {line.split(" - ")[1].split()[0] for line in f if "cgroup" in line}
    assert kinds == {"cgroup2"}
    assert {"memory", "pids", "cpu"} <= set(read(ROOT, "cgroup.controllers").split())
