"""The measurements. Each takes the suite and a number of rounds and returns
name -> list of values, one a round; what is compared is measured in the same
round, in turn (A B A B), so that a machine whose speed drifts moves both."""
import os
import subprocess
import tempfile
import time
from concurrent import futures

import machine
from harness.clients import flow
from harness.clients.mcp import Client
from harness.instance import Instance
from harness.patience import eventually
from management import management
from pages import fill, pages
from paint import paint
from requests import requests
from signed import signed
from suite import POOL_MIN, PROGRAMS, SETS, SETTLE, Suite, program
from values import Values

PYTHON = ("/usr/bin/python3", "-I", "-S", "-c", "pass")
BWRAP = ("bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
         "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
         "--tmpfs", "/tmp", *PYTHON)
CLIENTS = (1, 8, 16, 32)
FLOOR = 300         # forks of one measurement
# Between an answer and the client's next call: a model thinks for longer, and
# the pool has had a runner made by then.
SPACE_MS = 20
# Above all that other measurements count to.
NEW_FROM = 100_000


def starts(values, name, command, at_once, count):
    values.times(name, program("start", "-n", count, "-j", at_once, "--", *command))
    time.sleep(SETTLE)


def calls(suite, rounds, ms, say):
    """Latency and rate of calls beside process starts and pings."""
    v = Values()
    for n in range(rounds):
        say(f"calls and starts, round {n + 1} of {rounds}")
        for clients in CLIENTS:
            v.times(f"ping {clients}", suite.load(clients=clients, ms=ms // 4))
            if clients in (1, 16):
                count = max(20, ms // 25) if clients == 1 else max(80, ms // 6)
                starts(v, f"python3 {clients}", PYTHON, clients, count)
                v.times(f"plain {clients}", suite.load("plain", clients, ms=ms))
                starts(v, f"bwrap {clients}", BWRAP, clients, count)
                v.times(f"aio {clients}", suite.load("aio", clients, ms=ms))
            else:
                v.times(f"plain {clients}", suite.load("plain", clients, ms=ms))
                v.times(f"aio {clients}", suite.load("aio", clients, ms=ms))
        v.times("floor", program("floor", "-n", FLOOR))
    return v


def lone(suite, rounds, ms, say):
    """Calls of one client with a pause between them, in short turns with process
    starts: a round takes three seconds, so what else the machine does meets both."""
    v = Values()
    say(f"calls {SPACE_MS} ms apart, {rounds} rounds")
    for n in range(rounds):
        for tool in ("plain", "aio"):
            # of numbers that no call had: what admind remembers of arguments
            # (decision 0053) is measured by itself
            v.times(f"{tool} spaced", suite.load(tool, ms=ms, pause=SPACE_MS,
                                                 first=(n + 1) * NEW_FROM))
            v.times(f"{tool} spaced again", suite.load(tool, ms=ms, pause=SPACE_MS, same=True))
        starts(v, "bwrap", BWRAP, 1, max(20, ms // 25))
    return v


def floor_cpu(v, name, background, *options):
    busy, t = machine.busy_us(), time.monotonic()
    r = program("floor", "-n", FLOOR, *options)
    time.sleep(SETTLE)
    whole = machine.busy_us() - busy - background * (time.monotonic() - t)
    v.add(f"{name} process", r["cpu_us"])
    v.add(f"{name} machine", whole / FLOOR)


def call_cpu(suite, v, tool, clients, count, background):
    """Three accounts of the same calls: ours by process and record; the whole
    machine without PostgreSQL and the client; what is left of the machine when
    every living process is taken off, which is what the runners used."""
    name = f"{tool} {clients}"
    groups = {g: [p for p in pids if p] for g, pids in suite.groups().items()}
    groups.pop("runners")   # the records have them; these are still unused
    postgresql = suite.postgresql()
    since = suite.now()
    time.sleep(SETTLE)
    before = {p: machine.cpu_us(p) for pids in groups.values() for p in pids}
    before_pg = {p: machine.cpu_us(p) for p in postgresql}
    busy, t = machine.busy_us(), time.monotonic()
    r = suite.load(tool, clients, calls=count)
    whole = machine.busy_us() - busy - background * (time.monotonic() - t)
    total = 0
    for group, pids in groups.items():
        # one that was replaced meanwhile is missing from the sum by what it used last
        used = sum(max(0, machine.cpu_us(p) - before[p]) for p in pids) / count
        v.add(f"{name} {group}", used)
        total += used
    pg = sum(max(0, machine.cpu_us(p) - before_pg.get(p, 0)) for p in suite.postgresql()) / count
    n, us = suite.records(tool, since)
    if n != count:
        raise RuntimeError(f"{count} calls, {n} records")
    v.add(f"{name} runners", us / n)
    v.add(f"{name} ours", total + us / n)
    v.add(f"{name} postgresql", pg)
    v.add(f"{name} client", r["cpu_us"])
    v.add(f"{name} machine", whole / count - pg - r["cpu_us"])


def cpu(suite, rounds, count, say):
    """Processor time of a call and of the kernel's floor."""
    v = Values()
    zygote = suite.groups()["zygote"][0]
    with open(f"/proc/{zygote}/mountinfo", encoding="utf-8") as f:
        mounts = len(f.readlines())
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = max(0, mounts - len(f.readlines()))
    for n in range(rounds):
        say(f"processor time, round {n + 1} of {rounds}")
        background = machine.idle_rate()
        for tool, clients in (("plain", 1), ("aio", 1), ("plain", 16), ("aio", 16)):
            floor_cpu(v, "floor", background)
            call_cpu(suite, v, tool, clients, count, background)
        floor_cpu(v, "floor with a runner's binds", background, "-m", mounts)
    return v


def pss(suite):
    """KiB: name -> of all its processes."""
    with suite.still():
        return {group: sum(machine.pss_kib(p) for p in pids if p)
                for group, pids in suite.groups().items()}


def memory(suite, rounds, ms, say):
    """At rest, when the pool has shrunk to its least, then the most of all
    samples while 16 clients call."""
    v = Values()
    for n in range(rounds):
        say(f"memory, round {n + 1} of {rounds}")
        time.sleep(1)
        eventually(lambda: len(suite.groups()["runners"]) <= POOL_MIN, 60, 1)
        found = pss(suite)
        for group, kib in found.items():
            v.add(f"idle {group}", kib)
        v.add("idle all", sum(found.values()))
        v.add("idle runners' number", len(suite.groups()["runners"]))
        with futures.ThreadPoolExecutor(1) as beside:
            load = beside.submit(suite.load, "plain", 16, ms=ms)
            found = []
            while not load.done():
                time.sleep(0.05)
                found.append(pss(suite))
            load.result()
        most = max(found, key=lambda f: sum(f.values()))
        v.add("load runners", most["runners"])
        v.add("load all", sum(most.values()))
    return v


def startup(suite, rounds, say):
    """From `instance start` of a stopped suite, PostgreSQL included, until the
    first call of a tool is answered."""
    v = Values()
    for n in range(rounds):
        say(f"start, round {n + 1} of {rounds}")
        suite.tool("stop")
        for name in ("gatewayd-local", "admind-http"):
            if os.path.exists(suite.run(name, "addr")):
                os.unlink(suite.run(name, "addr"))
        begin = time.monotonic()
        suite.tool("start")
        while True:
            try:
                with Client(suite.address, timeout=5) as c:
                    r = c.call("bench__plain", {"n": 1})
                if r.result and not r.result.get("isError"):
                    break
            except (OSError, AssertionError, ValueError):
                pass
            if time.monotonic() - begin > 60:
                raise RuntimeError("the suite did not come up within a minute")
            time.sleep(0.005)
        v.add("seconds", time.monotonic() - begin)
        suite.tool("wait")
    return v


HOSTILE = '''\
import os, signal, time
def session():
    try:
        os.setsid()
    except OSError:
        pass
def main(what: str, seconds: float = 2.0) -> str:
    end = time.monotonic() + seconds
    if what == "sleeps":
        time.sleep(seconds)
    elif what == "spins":
        while time.monotonic() < end:
            pass
    elif what in ("forks", "splits"):
        while time.monotonic() < end:
            try:
                pid = os.fork()
            except OSError:
                continue
            if pid == 0:
                if what == "splits":
                    session()
                while time.monotonic() < end:
                    pass
                os._exit(0)
    elif what == "storms":
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        left = 1 << 62
        while left and time.monotonic() < end:
            left -= 1
            try:
                if os.fork() == 0:
                    session()
                    left = 16
            except OSError:
                pass
        if os.getpid() != 1:
            os._exit(0)
    elif what == "allocates":
        kept = []
        while time.monotonic() < end:
            try:
                kept.append(bytearray(os.urandom(64)) * 16384)
            except MemoryError:
                kept.clear()
    elif what == "floods":
        line = "x" * 4095
        while time.monotonic() < end:
            print(line)
    elif what == "fills":
        while time.monotonic() < end:
            try:
                with open("/tmp/full", "wb", buffering=0) as f:
                    while time.monotonic() < end:
                        f.write(b"y" * 1048576)
            except OSError:
                pass
            os.unlink("/tmp/full")
    return "over"
'''
# "splits": as "forks", and each process asks for a session; "storms": processes in
# sessions that fork and end.
HOSTILE_WHAT = ("sleeps", "spins", "forks", "splits", "storms", "allocates", "floods", "fills")


def neighbours(suite, rounds, ms, say):
    """A trivial tool's p50, alone and beside a tool that behaves badly."""
    v = Values()
    with Client(suite.address) as c:
        flow.publish(suite, c, "bench", "hostile", HOSTILE)
    for n in range(rounds):
        say(f"neighbours, round {n + 1} of {rounds}")
        for what in HOSTILE_WHAT:
            alone = suite.load("plain", ms=ms)
            # without -e: how its own call ends (a limit, an error) is its affair
            arguments = '{"what":"%s","seconds":%.1f}' % (what, ms / 1000 + 1)
            with tempfile.TemporaryFile() as sink:
                with subprocess.Popen(
                        [os.path.join(PROGRAMS, "bench-load"), "-t", str(ms + 700),
                         "-T", "bench__hostile", "-a", arguments,
                         *map(str, suite.address())], stdout=sink, stderr=sink) as hostile:
                    time.sleep(0.7)
                    beside = suite.load("plain", ms=ms)
                    # its last call ends by itself: the next must find none
                    hostile.wait(60)
            v.add(f"{what} alone", alone["p50"])
            v.add(f"{what} beside", beside["p50"])
            v.add(f"{what} ratio", beside["p50"] / alone["p50"])
            v.add(f"{what} beside p99", beside["p99"])
            time.sleep(SETTLE)
    return v


def all_parts(quick, say):
    """Everything, in one run, on an instance of its own."""
    rounds, ms, count = (2, 600, 300) if quick else (3, 1500, 800)
    others = machine.idle_rate(2.0) / 1e4
    with_suite = Suite()
    try:
        return {
            "startup": startup(with_suite, 1 if quick else 3, say),
            # before any load: for minutes behind it records are indexed, which
            # a lone call is not to be measured with
            "lone": lone(with_suite, 3 * rounds, ms // 2, say),
            "memory": memory(with_suite, 1 if quick else 3, ms, say),
            "calls": calls(with_suite, rounds, ms, say),
            "cpu": cpu(with_suite, rounds, count, say),
            "neighbours": neighbours(with_suite, 1 if quick else 3, ms, say),
            "requests": requests(with_suite, 1 if quick else 5, 150 if quick else 400, say),
            "signed": signed(with_suite, 150 if quick else 500, 60 if quick else 200, say),
            # before the million records of what follows
            "paint": paint(with_suite, 3 if quick else 15, say),
            "management": management(with_suite, 1 if quick else 5, 200 if quick else 500, say),
            # among the million records of what was before
            "pages": pages(with_suite, 1 if quick else 5, say),
        }, {"cpu_controller": cpu_controller(with_suite), "percent_busy_before": round(others, 1)}
    finally:
        with_suite.close()


def panel_parts(quick, say):
    """The panel alone, on an instance of its own."""
    with_suite = Instance(sets=SETS)
    try:
        painted = paint(with_suite, 3 if quick else 15, say)
        say("the panel with much: making ten thousand tools")
        fill(with_suite)
        return {"paint": painted, "pages": pages(with_suite, 1 if quick else 5, say)}
    finally:
        with_suite.close()


def cpu_controller(suite):
    """Does a cgroup share out the processors among the runners of this run?
    spawn takes all its controllers or none."""
    rows = suite.ctl_json("doctor")
    rows = rows if isinstance(rows, list) else next(
        v for v in rows.values() if isinstance(v, list))
    return [r["state"] for r in rows if r["layer"] == "cgroup"] == ["enforced"]
