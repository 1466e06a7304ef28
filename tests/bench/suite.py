"""An instance of the suite to measure, and the programs that load it."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

import machine
from harness.clients import flow
from harness.clients.mcp import Client
from harness.instance import BUILD, DAEMONS, Instance
from harness.patience import eventually

PROGRAMS = os.path.join(BUILD, "tests", "bench")
# The pool that is judged: four runners ready while nothing is called.
POOL_MIN = 4
# A program that measures is a loop: circuit breakers would end it.
SETS = (f"sandboxd:pool_min={POOL_MIN}", "admind:breakers=no")
TOOLS = {
    "plain": "def main(n: int = 0) -> int:\n    return n\n",
    "aio": "async def main(n: int = 0) -> int:\n    return n\n",
}
SETTLE = 0.3    # seconds: records, reaping and the kernel's own cleaning


def program(name, *args, quiet=False):
    """Runs one of tests/bench's programs: the object it prints."""
    r = subprocess.run([os.path.join(PROGRAMS, "bench-" + name), *map(str, args)],
                       stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False,
                       stderr=subprocess.DEVNULL if quiet else None, timeout=900)
    if r.returncode != 0:
        raise RuntimeError(f"bench-{name} {args}: status {r.returncode}")
    return json.loads(r.stdout)


class Suite(Instance):
    """With the two trivial tools approved."""

    def __init__(self, sets=SETS):
        super().__init__(sets=sets)
        try:
            with Client(self.address) as c:
                for name, code in TOOLS.items():
                    flow.publish(self, c, "bench", name, code)
        except BaseException:
            self.close()
            raise

    def load(self, tool=None, clients=1, ms=None, calls=None, must=True, pause=None, first=1,
             same=False):
        """Calls (without a tool: pings) as fast as they are answered, or one
        client's with `pause` ms between an answer and the next call. Arguments
        are other ones in each call, numbered from `first`; or always the same."""
        args = ["-c", clients]
        args += ["-t", ms] if ms else ["-n", calls]
        if pause:
            args += ["-p", pause]
        if tool:
            n = "7" if same else "@"
            args += ["-T", "bench__" + tool, "-a", f'{{"n":{n}}}', "-e", f'"text":"{n}"',
                     "-f", first]
        r = program("load", *args, *self.address())
        if must and set(r["endings"]) != {"done"}:
            raise RuntimeError(f"calls of {tool} went wrong: {r['endings']}")
        time.sleep(SETTLE)
        return r

    def groups(self):
        """Every process of ours but PostgreSQL and the loggers: name -> pids."""
        found = {name: [self.service_pid(name)] for name in DAEMONS}
        found.update({"pool-init": [], "zygote": [], "runners": []})
        for pid in machine.children(found["sandboxd-spawn"][0])[1:]:
            # pool-init, and the starter that keeps rights for the next zygote
            found[{"mcpbox-zygote": "zygote", "mcpbox-tool": "runners"}.get(
                machine.comm(pid), "pool-init")].append(pid)
        return found

    @contextlib.contextmanager
    def still(self):
        """The pool stopped: no runner begins or ends while it is looked at."""
        spawn, stopped = self.service_pid("sandboxd-spawn"), []
        try:
            while True:
                new = [p for p in machine.children(spawn)[1:] if p not in stopped]
                if not new:
                    break
                for pid in new:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                stopped += new
            yield
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def postgresql(self):
        return machine.children(self.service_pid("postgresql"))

    def records(self, tool, since):
        """(number, microseconds of processor time) of a tool's calls since."""
        name = "bench__" + tool
        assert re.fullmatch(r"[a-z_]+", name)
        where = f"FROM mcpbox.executions WHERE tool = '{name}' AND created_at >= '{since}'"
        eventually(lambda: self.psql(f"SELECT count(*) {where} AND state = 'open'") == [["0"]], 10, 0.05)
        n, us = self.psql(f"SELECT count(*), coalesce(sum(cpu_us), 0) {where}")[0]
        return int(n), int(us)

    def now(self):
        return self.psql("SELECT clock_timestamp()")[0][0]
