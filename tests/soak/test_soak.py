"""Half an hour of calls (MCPBOX_SOAK_SECONDS): no error, no growth."""
import os
import time

from harness.instance import DAEMONS
from harness.load import Load

SECONDS = int(os.environ.get("MCPBOX_SOAK_SECONDS", "1800"))
# What a process may grow by after it is warm: caches and allocator slack.
GROWTH_KIB = 16 * 1024


def rss(instance):
    """Resident KiB of each service's process."""
    found = {}
    for name in DAEMONS:
        with open(f"/proc/{instance.service_pid(name)}/status", encoding="ascii") as f:
            found[name] = next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))
    return found


def test_nothing_grows(instance):
    with Load(instance, at_once=8, ms=0) as load:
        time.sleep(min(60, SECONDS / 4))
        pids, warm = [instance.service_pid(n) for n in DAEMONS], rss(instance)
        time.sleep(SECONDS)
        after = rss(instance)
        assert pids == [instance.service_pid(n) for n in DAEMONS]
    load.account()
    assert not load.transport and not load.typed, (load.typed, load.transport)
    grown = {n: (warm[n], after[n]) for n in DAEMONS if after[n] > warm[n] + GROWTH_KIB}
    assert not grown, grown
    print(f"{len(load.ok)} calls; KiB then {warm}, now {after}")
