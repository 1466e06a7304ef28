"""SIGKILL of each process at random, under load, 50 times."""
import contextlib
import os
import signal
import time

import pytest

from harness import seed
from harness.clients.load import Load
from harness.instance import DAEMONS, Instance
from harness.patience import until

KILLS = 50


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:call_timeout=5s"])
    yield i
    i.close()


def victims(instance):
    """Role -> pids: the services, and what the pool is made of."""
    found = {n: [p] for n in DAEMONS if (p := instance.service_pid(n))}
    pool = instance.pool()
    found["pool-init"] = pool["mcpbox-pool-init"]
    found["peek"] = pool["mcpbox-peek"]
    # The zygote is the oldest of the pool's interpreters; the rest are calls.
    interpreters = sorted(pool["mcpbox-runner"])
    found["zygote"], found["runner"] = interpreters[:1], interpreters[1:]
    return {role: pids for role, pids in found.items() if pids}


def comm(pid):
    """Its own name for itself, or None if it ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()
    return None


def shot(pids):
    """Kills the first of these that is still there; returns it, or None."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return pid
    return None


def test_fifty_kills(instance):
    rng = seed.rng("test_fifty_kills")
    killed, slowest = [], 0
    todo = []
    with Load(instance) as load:
        load.resumed()
        for _ in range(KILLS):
            there = victims(instance)
            if not todo:	# each role in turn, in random order
                todo = sorted(set(DAEMONS) | {"pool-init", "peek", "zygote", "runner"})
                rng.shuffle(todo)
            role = todo.pop()
            if role not in there:
                role = rng.choice(sorted(there))
            try:
                os.kill(rng.choice(there[role]), signal.SIGKILL)
            except ProcessLookupError:
                pass	# a runner that had just ended
            killed.append((time.monotonic(), role))
            time.sleep(rng.uniform(0, 0.3))
            slowest = max(slowest, load.resumed())
    by_nonce = load.account()
    print(f"{len(by_nonce)} calls, {len(load.ok)} ok, typed "
          f"{ {m: len(c) for m, c in load.typed.items()} }, {len(load.transport)} cut; "
          f"slowest resumption {slowest:.2f} s")
    assert len({r for _, r in killed}) >= len(DAEMONS)
    assert len(load.ok) > 100
    # A cut connection is gatewayd's own death; everything else is an answer.
    gateway = [t for t, role in killed if role == "gatewayd-local"]
    strange = [c for c in load.transport.values()
               if not any(t - 0.5 <= c[1] <= t + 5 for t in gateway)]
    assert not strange, strange[:5]
    # Nothing of the killed lives on.
    pool = instance.pool()
    assert len(pool["mcpbox-pool-init"]) == 1, pool


@pytest.mark.parametrize("role", sorted(set(DAEMONS) | {"pool-init", "peek", "zygote", "runner"}))
def test_a_call_under_way_when_it_dies(instance, role):
    """One long call, one death in its middle: one record, a typed answer."""
    with Load(instance, at_once=1, ms=700) as load:
        load.resumed()
        until(instance.runners, 10, 0.01)	# a call runs
        time.sleep(0.2)
        if role == "runner":    # a call's, not the zygote; it may end between the look and the kill
            until(lambda: shot([p for p in instance.runners() if comm(p) == "mcpbox-tool"]), 10, 0.01)
        elif pids := victims(instance).get(role):
            os.kill(pids[-1], signal.SIGKILL)
        load.stopping.set()
        load.resumed()
    load.account()


def test_a_dead_broker_leaves_no_runner(instance):
    """The pool ends with sandboxd, with sandboxd-spawn, with pool-init and peek."""
    for role in ("sandboxd", "sandboxd-spawn", "pool-init", "peek"):
        with Load(instance, at_once=4, ms=3000) as load:
            load.resumed()
            time.sleep(0.5)
            old = {p for pids in instance.pool().values() for p in pids}
            assert len(old) > 2
            os.kill(victims(instance)[role][0], signal.SIGKILL)
            load.stopping.set()
            until(lambda: not old & {p for pids in instance.pool().values() for p in pids},
                  3, 0.05, say=lambda: (role, instance.pool()))
            load.resumed()
        load.account()
