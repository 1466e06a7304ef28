"""Sandboxes of other kinds than test_cgroup's: there is one unit in the guest,
so this is a module of its own."""
import json
import os

import pytest

from harness.patience import eventually, patience
from vm.inside.calls import Calls
from vm.inside.units import ROOT, Delegated, numbers, read
from vm.programs import SPIN


def spinning(sandbox, slots, n, but=None):
    """The leaf in which SPIN runs with so many processes, once it does, but this one."""
    def look():
        for leaf in (sandbox.leaf(i) for i in range(slots)):
            try:
                pids = read(leaf, "cgroup.procs").split()
            except OSError:
                continue            # it was just replaced
            if leaf != but and len(pids) >= n and os.path.exists(f"/proc/{pids[0]}/root/tmp/spins"):
                return leaf
        return None
    found = eventually(look)
    assert found, sandbox.log("sandboxd")
    return found


def used(leaf):
    return numbers(leaf, "cpu.stat")["usage_usec"]


def portion(one, many, usec=4_000_000):
    """The processor time that `one` had for each second that `many` had, while the
    latter had so much. The kernel counts both, in the same time."""
    before = used(one), used(many)
    assert eventually(lambda: used(many) - before[1] >= usec)
    return (used(one) - before[0]) / (used(many) - before[1])


def test_a_neighbour_is_not_starved():
    """Four processes of one call, each of which asked for a session, spin, and one of
    another: each call has as much of the processors, or nearly. Were there no division by calls, one process would
    have a quarter of what four have. Beside the four, calls begin and end."""
    with Delegated(slots=3, queue_wait="60s") as sandbox:
        calls = Calls(sandbox)
        many = calls.start(SPIN.format(n=4), timeout=600000)
        large = spinning(sandbox, 3, 4)
        one = calls.start(SPIN.format(n=1), timeout=600000)
        small = spinning(sandbox, 3, 1, but=large)
        found = []
        while len(found) < 5 and max(found, default=0) < 0.5:
            found.append(portion(small, large))
        print(f"for each second of four processes: {found}")
        assert max(found) >= 0.5, found
        calls.admind.peer.send("CANCEL", execution=one[0])
        assert calls.end(one).failure == "killed"
        for n in range(3):
            assert calls.run(f"def main(): return {n}").value == n
        assert len(read(large, "cgroup.procs").split()) >= 4
        calls.admind.peer.send("CANCEL", execution=many[0])
        assert calls.end(many).failure == "killed"
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
            sandbox.peer_root("ctl").call("DOCTOR", timeout=patience(60))["json"])}
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
