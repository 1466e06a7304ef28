"""Everything of an instance that could pile up, as one dict of numbers."""
import contextlib
import os
import re

from harness.instance import BLOCK, DAEMONS, processes

RUNNERS = 1024  # offset of the runners' uids in an instance's block
# Kernel objects of a runner that outlive its process if something leaks. The
# slab allocator counts them in batches a processor, so these have slack.
SLABS = ("net_namespace", "pid_namespace")


def _lines(path):
    with contextlib.suppress(OSError):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.readlines()
    return []


def _fds(pid):
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def _kib(pid, field):
    for line in _lines(f"/proc/{pid}/smaps_rollup"):
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


def _below(pid, parents):
    found, new = [], [pid]
    while new:
        found += new
        new = [c for p in new for c in parents.get(p, ())]
    return found[1:]


def _cgroups(pid):
    """Directories of the cgroup v2 subtree that the pool runs in."""
    for line in _lines(f"/proc/{pid}/cgroup"):
        if line.startswith("0::/") and line.strip() != "0::/":
            for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                path = os.path.join(root, line.strip()[4:])
                if os.path.isdir(path):
                    return sum(1 for _ in os.walk(os.path.dirname(path)))
    return 0


def names(instance):
    """Role -> pid of what lives as long as the suite."""
    found = {n: instance.service_pid(n) for n in DAEMONS}
    for pid in instance.pool()["mcpbox-pool-init"]:
        found["pool-init"] = pid
    return found


def zygote(instance):
    """Pids of the process that runners are forked from; two while one
    replaces the other."""
    return [p for p in instance.pool()["mcpbox-runner"]
            if _lines(f"/proc/{p}/comm") == ["mcpbox-zygote\n"]]


def runner_uids(instance):
    """Uids of the range reserved for runners that processes have now."""
    return {uid for _, _, uid, _ in processes().values()
            if instance.base + RUNNERS <= uid < instance.base + BLOCK}


def state(instance):
    everything = processes()
    parents = {}
    for pid, (ppid, _, _, _) in everything.items():
        parents.setdefault(ppid, []).append(pid)
    s = {}
    long_lived = names(instance)
    for name, pid in long_lived.items():
        s[f"descriptors of {name}"] = _fds(pid)
        s[f"private KiB of {name}"] = _kib(pid, "Pss_Anon") or _kib(pid, "Anonymous")
    pool = _below(long_lived["sandboxd-spawn"], parents)
    s["processes of the pool"] = len(pool)
    s["zombies"] = sum(letter == "Z" and instance.base <= uid < instance.base + BLOCK
                       for _, letter, uid, _ in everything.values())
    base = instance.base + RUNNERS
    s["runner uids in use"] = len(runner_uids(instance))
    s["keyrings of runner uids"] = sum(
        bool(m) and base <= int(m[1]) < instance.base + BLOCK
        for m in (re.match(r"\s*(\d+):", line) for line in _lines("/proc/key-users")))
    s["mounts of the machine"] = len(_lines("/proc/self/mountinfo"))
    s["mounts of the pool"] = len(_lines(f"/proc/{long_lived['pool-init']}/mountinfo"))
    s["cgroups"] = _cgroups(long_lived["pool-init"])
    for line in _lines("/proc/slabinfo"):
        fields = line.split()
        if fields[0] in SLABS:
            s[f"kernel's {fields[0]} objects"] = int(fields[1])
    return s
