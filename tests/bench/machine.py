"""What the kernel says about processes and the machine: processor time,
memory, and the facts a reader needs to compare with another machine."""
import contextlib
import os
import platform
import re
import subprocess
import time

CPUACCT = "/sys/fs/cgroup/cpuacct/cpuacct.usage"


def _text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def cpu_us(pid):
    """Microseconds that a process's living threads ran (scheduler's count, not
    ticks); 0 if it is gone."""
    total = 0
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                total += int(_text(f"/proc/{pid}/task/{task}/schedstat").split()[0])
    return total / 1000


def busy_us():
    """Microseconds that all processors together were not idle. cgroup v1's
    root counts what tasks ran; without it, what the idle task did not."""
    with contextlib.suppress(OSError):
        return int(_text(CPUACCT)) / 1000
    fields = [int(n) for n in _text("/proc/stat").split("\n", 1)[0].split()[1:]]
    busy = sum(fields[:8]) - fields[3] - fields[4] - fields[7]
    return busy * 1e6 / os.sysconf("SC_CLK_TCK")


def pss_kib(pid):
    with contextlib.suppress(OSError):
        found = re.search(r"^Pss:\s+(\d+)", _text(f"/proc/{pid}/smaps_rollup"), re.M)
        return int(found[1]) if found else 0
    return 0


def comm(pid):
    with contextlib.suppress(OSError):
        return _text(f"/proc/{pid}/comm").strip()
    return ""


def children(pid):
    """Living descendants of a process, itself included."""
    found, new = [], [pid]
    while new:
        found += new
        below = []
        for p in new:
            with contextlib.suppress(OSError):
                below += map(int, _text(f"/proc/{p}/task/{p}/children").split())
        new = below
    return found


def idle_rate(seconds=1.0):
    """Microseconds a second that this machine is busy with nothing of ours
    to do, the suite's own idling included."""
    begin, t = busy_us(), time.monotonic()
    time.sleep(seconds)
    return (busy_us() - begin) / (time.monotonic() - t)


def _version(*command):
    with contextlib.suppress(OSError):
        r = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"\d+(\.\d+)+", r.stdout + r.stderr)
        return found[0] if found else "?"
    return "none"


def facts():
    """No name of the machine, nothing that tells where it stands."""
    model = re.search(r"model name\s*: (.*)", _text("/proc/cpuinfo"))
    memory = int(re.search(r"MemTotal:\s+(\d+)", _text("/proc/meminfo"))[1])
    controllers = ""
    with contextlib.suppress(OSError):
        controllers = _text("/sys/fs/cgroup/cgroup.controllers").strip()
    thp = "?"
    with contextlib.suppress(OSError, TypeError):
        thp = re.search(r"\[(\w+)\]", _text("/sys/kernel/mm/transparent_hugepage/enabled"))[1]
    return {
        "kernel": re.match(r"\d+\.\d+", platform.release())[0],
        "processors": os.cpu_count(),
        "processor": model[1] if model else platform.machine(),
        "memory_mib": memory // 1024,
        "cgroup_v2_controllers": controllers or "none",
        "transparent_hugepages": thp,
        "python": _version("/usr/bin/python3", "--version"),
        "bubblewrap": _version("bwrap", "--version"),
        "postgresql": _version("psql", "--version"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
