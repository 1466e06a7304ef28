"""What a probe runs in, and how it is compared with the world outside.

A probe is a tool's code that tries something. `attack` runs it twice: outside,
as root, where it must succeed (a probe that could not succeed anywhere proves
nothing), and inside, where it must fail.
"""
import json
import os
import subprocess
import sys

import pytest

from probes import runner_driver

#: Helpers every probe may use: raw system calls with their errno.
PRELUDE = '''
import ctypes, errno, os, socket, sys
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
'''

OUTSIDE = '''
import asyncio, inspect, json, sys
exec(compile(sys.argv[1], "probe", "exec"), globals())
result = main(**json.loads(sys.argv[2]))
if inspect.isawaitable(result):
    result = asyncio.run(result)
print("\\n@@" + json.dumps(result))
'''


#: So that text is told from JSON whatever main returns.
WRAP = '''
_probe = main
def main(**arguments):
    return {"value": _probe(**arguments)}
'''


@pytest.fixture(scope="session")
def pool():
    p = runner_driver.Pool()
    yield p
    p.close()


class Sandbox:
    def __init__(self, pool):
        self.pool = pool

    def call(self, code, arguments=None, **more):
        return self.pool.call(PRELUDE + code, arguments, **more)

    def inside(self, code, **arguments):
        """What main returned; the call must not have failed."""
        call = self.call(code + WRAP, arguments)
        assert call.kind == "run_result", (call.kind, call.body, call.stdout)
        return call.value["value"]

    @staticmethod
    def outside(code, **arguments):
        """The same code as root, in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-I", "-c", OUTSIDE, PRELUDE + code,
             json.dumps(arguments)], stdin=subprocess.DEVNULL, timeout=60,
            capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"]})
        assert "\n@@" in done.stdout, done.stderr
        return json.loads(done.stdout.rsplit("\n@@", 1)[1])

    def attack(self, code, **arguments):
        """(outside, inside)"""
        return (self.outside(code, **arguments),
                self.inside(code, **arguments))


@pytest.fixture(scope="session")
def sandbox(pool):
    return Sandbox(pool)
