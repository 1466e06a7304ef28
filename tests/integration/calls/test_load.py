"""1,000 calls, 32 at a time: no error, and nothing left behind."""
import collections
import contextlib
import os
import re
import threading

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.instance import DAEMONS
from harness.patience import eventually, until

CALLS, AT_ONCE = 1000, 32


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def mounts(pid):
    with open(f"/proc/{pid}/mountinfo", "rb") as f:
        return len(f.read().splitlines())


def cgroups():
    """Every cgroup of this machine."""
    found = set()
    for root, dirs, _ in os.walk("/sys/fs/cgroup"):
        found.update(os.path.join(root, d) for d in dirs)
    return found


def snapshot(instance):
    """What must be the same before and after: per process its open files,
    the processes themselves, mounts here and in the pool, cgroups."""
    names = {instance.service_pid(n): n for n in DAEMONS}
    s = {"fds": {n: fds(p) for p, n in names.items()}}
    pool = instance.pool()
    s["pool"] = {n: len(p) for n, p in pool.items()}
    s["pool fds"] = {n: sorted(fds(p) for p in pids) for n, pids in pool.items()}
    s["pool mounts"] = {n: sorted(mounts(p) for p in pids) for n, pids in pool.items()}
    s["mounts"] = mounts("self")
    s["processes"] = len(instance.pids())
    return s


def settled(instance, before, seconds=15):
    """The snapshot once it equals `before`, or the last one."""
    after = []

    def same():
        with contextlib.suppress(FileNotFoundError):    # a runner ended during the look
            after[:] = [snapshot(instance)]
        return after == [before]
    eventually(same, seconds, 0.25)
    return after[0]


def full(instance):
    """Returns whether sandboxd has all the runners that it wants, and none of them has a call."""
    detail = next(r["detail"] for r in instance.ctl_json("doctor") if r["layer"] == "runners")
    waiting, wanted, made, busy, ending = map(int, re.match(
        r"(\d+) wait, (\d+) should .*?, (\d+) are being made, (\d+) run a call, (\d+) end;", detail).groups())
    return waiting == wanted and made == busy == ending == 0


def at_rest(instance):
    """Waits until the pool is full and nothing changes any more; returns the snapshot."""
    until(lambda: full(instance), say=instance.logs)
    last = [None]

    def same():
        before, last[0] = last[0], snapshot(instance)
        return before == last[0] and not instance.runners()
    until(same, step=0.25, say=lambda: last, during=FileNotFoundError)
    return last[0]


def test_thousand_calls(instance):
    with Client(instance.address) as c:
        name = flow.publish(instance, c, "load", "echo",
                            "def main(n: int) -> int:\n    return n * n\n")
        # Connections, prepared statements and caches reach their level.
        warm_up(instance, name)
        groups = cgroups()
        before = at_rest(instance)
        errors = run(instance, name, CALLS)
        assert not errors, (len(errors), errors[:3])
        # PostgreSQL's own helpers come and go; they are not ours.
        after = settled(instance, before)
        assert after == before
        assert cgroups() - groups == set()
    # A record comes a moment behind the answer.
    until(lambda: not instance.psql("SELECT 1 FROM mcpbox.executions WHERE state = 'open' AND"
                                    " tool = 'load__echo'"), say=instance.logs)
    rows = dict(instance.psql("SELECT state || ' ' || coalesce(outcome, ''), count(*) FROM "
                              "mcpbox.executions WHERE tool = 'load__echo' AND kind = 'tool' GROUP BY 1"))
    assert rows == {"closed done": str(CALLS + 4 * AT_ONCE)}


def warm_up(instance, name):
    assert not run(instance, name, 4 * AT_ONCE)


def run(instance, name, calls):
    todo = collections.deque(range(calls))
    errors = []

    def worker():
        with Client(instance.address) as c:
            while True:
                try:
                    n = todo.popleft()
                except IndexError:
                    return
                r = c.call(name, {"n": n})
                if not r.result or r.result.get("isError") or text(r) != str(n * n):
                    errors.append((n, r))

    threads = [threading.Thread(target=worker) for _ in range(AT_ONCE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return errors
