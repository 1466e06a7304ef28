"""What a probe runs in, and how it is compared with the world outside.

A probe is a tool's code that tries something. `attack` runs it twice: outside,
as root, where it must succeed (a probe that could not succeed anywhere proves
nothing), and inside, where it must fail.
"""
import json

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.instance import Instance
from probes import runner_driver
from probes.controls import Controls

#: Helpers every probe may use: raw system calls with their errno.
PRELUDE = '''
import ctypes, errno, os, socket, sys, time
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
def syscall(nr, *args):
    """The result, or minus errno."""
    ctypes.set_errno(0)
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    r = _libc.syscall(ctypes.c_long(nr), *args)
    return -ctypes.get_errno() if r == -1 else r
def attempt(f, *args):
    """None if it worked, else the name of the error."""
    try:
        f(*args)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno)) if e.errno else str(e)
    return None
#: Below it a probe and the test that watches it meet (probes/pairs.py).
MEET = "/tmp"
def hold():
    """Waits until the test lets go. A directory needs no descriptor."""
    held = os.path.join(MEET, "held")
    os.mkdir(held)
    while os.path.exists(held):
        time.sleep(0.01)
'''


#: So that text is told from JSON whatever main returns.
WRAP = '''
_probe = main
def main(**arguments):
    return {"value": _probe(**arguments)}
'''


CONTROLS = Controls()


def not_run(why):
    """For a probe whose control this kernel has no place for: tests/run names
    it, and counts it neither as passed nor as failed. Only after the inside
    was found shut."""
    pytest.skip("not run: " + why)


@pytest.fixture(scope="session")
def pool():
    p = runner_driver.Pool()
    yield p
    p.close()
    CONTROLS.close()


@pytest.fixture
def pair(pool):
    from probes.pairs import Pair
    p = Pair(pool)
    yield p
    p.close()


@pytest.fixture
def twins(pool):
    """The broker's worst mistake: two running calls with one uid."""
    from probes.pairs import Pair
    p = Pair(pool, uid=1234)
    yield p
    p.close()


#: In a whole instance one approved tool runs all probes: what it is given is
#: code, which then has what any tool of this instance has.
RUNS_PROBES = '''
def main(code: str, arguments: dict) -> dict:
    scope = {"__name__": "probe"}
    exec(compile(code, "probe", "exec"), scope)
    return scope["main"](**arguments)
'''


class Sandbox:
    """Runs probes over a zygote and its runners alone."""

    def __init__(self, pool):
        self.pool = pool

    def inside(self, code, **arguments):
        """What main returned; the call must not have failed."""
        call = self.pool.call(PRELUDE + code + WRAP, arguments)
        assert call.kind == "run_result", (call.kind, call.body, call.stdout)
        return call.value["value"]

    def error(self, code, **arguments):
        """The text of the error the call ended with."""
        call = self.pool.call(PRELUDE + code + WRAP, arguments)
        assert call.kind == "run_error", (call.kind, call.body)
        return call.text

    @staticmethod
    def outside(code, **arguments):
        """The same code as root, in a process of its own."""
        return CONTROLS.run(PRELUDE + code, arguments)

    def attack(self, code, **arguments):
        """(outside, inside)"""
        return (self.outside(code, **arguments),
                self.inside(code, **arguments))


class WholeSandbox(Sandbox):
    """Runs probes as calls of an approved tool, by way of /mcp."""

    def __init__(self, instance):
        self.client = Client(instance.address)
        self.tool = flow.publish(instance, self.client, "probes", "run",
                                 RUNS_PROBES)

    def _call(self, code, arguments):
        reply = self.client.call(self.tool, {
            "code": PRELUDE + code + WRAP, "arguments": arguments})
        assert reply.status == 200 and not reply.error, reply
        return reply.result

    def inside(self, code, **arguments):
        result = self._call(code, arguments)
        assert not result.get("isError"), result
        return json.loads(result["content"][0]["text"])["value"]

    def error(self, code, **arguments):
        result = self._call(code, arguments)
        assert result["isError"] is True
        return result["content"][0]["text"]


@pytest.fixture(scope="session", params=["runner", "instance"])
def sandbox(request):
    """Every probe that uses this runs twice: over the runner alone, and
    through all processes of an instance."""
    if request.param == "runner":
        yield Sandbox(request.getfixturevalue("pool"))
        return
    instance = Instance()
    try:
        yield WholeSandbox(instance)
    finally:
        instance.close()
