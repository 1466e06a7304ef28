"""What probes look at from outside, as root in the host's proc."""
import os

#: Linux's names of the five sets of capabilities in /proc/PID/status.
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def host_pid(runner):
    """The host's pid of one of the driver's runners."""
    with open(f"/proc/self/fdinfo/{runner.pidfd}", encoding="ascii") as f:
        return int(next(line.split()[1] for line in f
                        if line.startswith("Pid:")))


def status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii",
              errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f
                    if ":\t" in line)


def descriptors(pid):
    """number -> what it is open on"""
    where = f"/proc/{pid}/fd"
    return {int(n): os.readlink(f"{where}/{n}") for n in os.listdir(where)}


def areas(pid):
    """(start, end, rights, name) of each mapping."""
    out = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        for line in f:
            parts = line.split(maxsplit=5)
            low, high = (int(x, 16) for x in parts[0].split("-"))
            out.append((low, high, parts[1],
                        parts[5].strip() if len(parts) > 5 else ""))
    return out


def memory_has(pid, canaries):
    """Those of the canaries that are in that process's memory, read-only
    parts included."""
    found = set()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for low, high, rights, name in areas(pid):
            if "r" not in rights or name in ("[vvar]", "[vsyscall]"):
                continue
            try:
                mem.seek(low)
                data = mem.read(high - low)
            except (OSError, ValueError, OverflowError):
                continue
            found |= {c for c in canaries if c in data}
    return found


def holds_nothing(pid):
    """Asserts that a process has no right and is under all of its filters."""
    s = status(pid)
    assert [s[c].strip() for c in CAPABILITIES] == ["0" * 16] * 5, s
    assert s["NoNewPrivs"].strip() == "1" and s["Seccomp"].strip() == "2"
    assert s["Groups"].strip() == ""
    uids, gids = s["Uid"].split(), s["Gid"].split()
    assert len(set(uids)) == 1 and len(set(gids)) == 1
    return int(uids[0]), int(gids[0])
