"""A hundred thousand calls (MCPBOX_SOAK_CALLS), good and bad ones, zygotes
replaced in between: nothing grows, and each call has its one record.

MCPBOX_WRITE=1 (`tests/run soak --record`) writes what came out into docs/BENCHMARKS.md.
"""
import collections
import json
import os
import subprocess
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.document import replace_section, table
from harness.instance import BUILD, SRC, Instance
from harness.patience import until
from soak.machine_state import names, runner_uids, state, zygote

CALLS = int(os.environ.get("MCPBOX_SOAK_CALLS", "100000"))
CHUNKS = 10
WARM = 2    # chunks after which nothing may grow any more
CLIENTS = 16
TIMEOUT = 5     # seconds; calls in 1000 that run into it: 1
# What may differ between two moments of rest. Allocators keep what they once
# needed; a leak of 64 bytes a call would be 5 MiB.
SLACK = {"private KiB": 3 * 1024, "kernel's": 128}
POOL_MIN = 4
RECYCLE = 60    # seconds between two zygotes at least (POOL_RECYCLE_RETRY_MS)
REST = 90   # seconds until all is over: a pool that grew takes some to shrink

CODE = '''\
import os, sys, threading, time
def main(n: int) -> str:
    what = n % 1000
    if what == 1:
        raise ValueError("as asked")
    if what == 2:
        os._exit(3)
    if what == 3:
        sys.exit(1)
    if what == 4:
        return "x" * 2_000_000
    if what == 5:
        bytearray(10 ** 10)
    if what == 6:
        time.sleep(60)
    if what == 7:
        for _ in range(3):
            if os.fork() == 0:
                os.setpgid(0, 0)
                time.sleep(60)
    if what == 8:
        print("y" * 1_000_000)
    if what == 9:
        with open("/tmp/z", "wb") as f:
            f.write(b"z" * 20_000_000)
    if what == 10:
        for _ in range(8):
            threading.Thread(target=time.sleep, args=(0,)).start()
    if what == 11:
        a, b = os.pipe()
        os.write(b, b"w")
    return "ran %d" % n
'''
# n % 1000 -> how the client sees it, and the record's outcome and failure.
ENDS = {1: ("exception", "failed", "exception"), 2: ("exception", "failed", "exception"),
        3: ("exception", "failed", "exception"), 4: ("limit", "failed", "limit"),
        5: ("limit", "failed", "limit"), 6: ("timeout", "failed", "timeout")}
DONE = ("done", "done", "")


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=[f"admind:call_timeout={TIMEOUT}s", "admind:breakers=no",	# it is a loop
                       f"sandboxd:zygote_forks={max(500, CALLS // 20)}",
                       f"sandboxd:pool_min={POOL_MIN}"])
    yield i
    i.close()


def chunk(instance, tool, first, count, out):
    """One tenth of the calls; the zygote is due to be replaced while they run (zygote_forks)."""
    with subprocess.Popen(
            [os.path.join(BUILD, "tests", "bench", "bench-load"), "-c", str(CLIENTS),
             "-n", str(count), "-T", tool, "-a", '{"n":@}', "-e", '"text":"ran @"',
             "-f", str(first), "-o", out, *map(str, instance.address())],
            stdout=subprocess.DEVNULL) as load:
        try:
            assert load.wait(3600) == 0, "the load ended early"
        finally:
            load.kill()


def rest(instance):
    """No record open, no runner busy, the pool as small as it may be, one
    zygote: from here any two moments are alike."""
    until(lambda: not instance.psql("SELECT 1 FROM mcpbox.executions WHERE state = 'open' LIMIT 1"),
          REST, 0.2, say=lambda: "records stay open")
    looks = []

    def at_rest():
        looks.append(len(runner_uids(instance)) == POOL_MIN and len(zygote(instance)) == 1)
        return looks[-4:] == [True] * 4
    until(at_rest, REST, 0.5, say=lambda: "the pool does not come to rest")


def grown(warm, after):
    found = {}
    for name, value in after.items():
        slack = next((s for prefix, s in SLACK.items() if name.startswith(prefix)), 0)
        if value > warm.get(name, 0) + slack:
            found[name] = (warm.get(name), value)
    return found


def answers(path):
    with open(path, encoding="ascii") as f:
        for line in f:
            n, ending, execution = line.split()
            yield int(n), ending, execution.replace("-", "")


def check_records(instance, tool, seen):
    rows = instance.psql(
        "SELECT replace(id::text, '-', ''), state, outcome, coalesce(failure, ''), arguments "
        f"FROM mcpbox.executions WHERE tool = '{tool}' AND kind = 'tool'")
    assert len(rows) == CALLS, f"{CALLS} calls, {len(rows)} records"
    left = dict(seen)
    for execution, closed, outcome, failure, arguments in rows:
        n = json.loads(arguments)["n"]
        assert n in left, f"a second record, or one of a call that nobody made: {n}"
        ending, answered = left.pop(n)
        wanted = ENDS.get(n % 1000, DONE)
        assert (ending, outcome, failure) == wanted, (n, ending, outcome, failure)
        assert closed == "closed" and answered in (execution, "-"), (n, answered, execution)
    assert not left, f"calls without a record: {sorted(left)[:5]}"
    return collections.Counter(f"{r[2]} {r[3]}".strip() for r in rows)


def test_nothing_grows(instance, tmp_path):
    with Client(instance.address) as c:
        tool = flow.publish(instance, c, "soak", "mixed", CODE)
    seen, states, first, seconds = {}, [], 0, 0.0
    size = CALLS // CHUNKS
    pids, zygotes, replaced = None, set(), 0.0
    for number in range(CHUNKS):
        count = size if number < CHUNKS - 1 else CALLS - first
        out = str(tmp_path / f"{number}")
        time.sleep(max(0, replaced + RECYCLE - time.monotonic()))
        begin = time.monotonic()
        chunk(instance, tool, first, count, out)
        seconds += time.monotonic() - begin
        for n, ending, execution in answers(out):
            assert n not in seen
            seen[n] = (ending, execution)
        first += count
        rest(instance)
        states.append(state(instance))
        zygotes |= set(zygote(instance))
        replaced = time.monotonic()
        pids = pids or names(instance)
        print(f"{first} calls, {first / seconds:.0f} a second:",
              collections.Counter(e for e, _ in seen.values()), flush=True)
    assert pids == names(instance), "a process was replaced"
    assert len(zygotes) == CHUNKS, "the zygote was not replaced in each tenth"
    outcomes = check_records(instance, tool, seen)
    warm, after = states[WARM - 1], states[-1]
    body = table(("after", *(f"{size * k}" for k in (WARM, CHUNKS // 2)), CALLS),
                 [(name, warm[name], states[CHUNKS // 2 - 1].get(name), value)
                  for name, value in after.items()])
    text = (f"{CALLS} calls by {CLIENTS} clients, {CALLS / seconds:.0f} a second, one in "
            f"{round(CALLS / sum(n % 1000 in ENDS for n in range(CALLS)))} made to fail. Records: "
            + ", ".join(f"{n} {o}" for o, n in outcomes.most_common()) + f".\n\n{body}")
    print(text)
    assert not grown(warm, after), grown(warm, after)
    if os.environ.get("MCPBOX_WRITE") == "1":
        replace_section(os.path.join(SRC, "docs", "BENCHMARKS.md"), "tests/run soak", text)
