"""Two runners at the same time, for tests that look across, and how a test meets a
probe that runs: hold() of the probe waits until the test has seen it and lets go."""
import os

from harness.patience import patience, until
from probes import outside, runner_driver
from probes.conftest import PRELUDE, WRAP


def value(call):
    assert call.kind == "run_result", (call.kind, call.body)
    return call.value["value"]


def ask(pool, code, arguments=None, **more):
    """What main returned in a runner of its own."""
    return value(pool.call(PRELUDE + code + WRAP, arguments or {}, **more))


def _held(runner):
    return f"/proc/{outside.host_pid(runner)}/root/tmp/held"


def await_hold(runner):
    """Waits until the probe in the runner has called hold()."""
    until(lambda: os.path.exists(_held(runner)))


def let_go(runner):
    os.rmdir(_held(runner))


class Pair:
    """Two runners at the same time, forked one after the other."""

    def __init__(self, pool, **profile):
        self.runners = [pool.fork(**profile) for _ in range(2)]
        for r in self.runners:
            assert r.ready()[0] == "ready"

    def start(self, which, code, arguments=None, **limits):
        self.runners[which].execute(PRELUDE + code + WRAP, arguments or {},
                                    **limits)

    def await_hold(self, which):
        await_hold(self.runners[which])

    def let_go(self, which):
        """Ends the probe's hold(); what it returned then."""
        let_go(self.runners[which])
        return self.value(which)

    def value(self, which, timeout=patience(20)):
        r = self.runners[which]
        return value(runner_driver.Call(r, r.result(timeout)))

    def close(self):
        for r in self.runners:
            r.close()
