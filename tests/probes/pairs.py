"""Two runners at the same time, for tests that look across."""
from probes import runner_driver
from probes.conftest import PRELUDE, WRAP


def value(call):
    assert call.kind == "run_result", (call.kind, call.body)
    return call.value["value"]


def ask(pool, code, arguments=None, **more):
    """What main returned in a runner of its own."""
    return value(pool.call(PRELUDE + code + WRAP, arguments or {}, **more))


class Pair:
    """Two runners at the same time, forked one behind the other."""

    def __init__(self, pool, **profile):
        self.runners = [pool.fork(**profile) for _ in range(2)]
        for r in self.runners:
            assert r.ready()[0] == "ready"

    def start(self, which, code, arguments=None, **limits):
        self.runners[which].execute(PRELUDE + code + WRAP, arguments or {},
                                    **limits)

    def value(self, which, timeout=20):
        r = self.runners[which]
        return value(runner_driver.Call(r, r.result(timeout)))

    def close(self):
        for r in self.runners:
            r.close()
