"""sandboxd and spawn in the guest: spawn as a systemd unit whose cgroup is
delegated, everything else as in harness.played.sandbox."""
import os
import subprocess

from harness.instance import BUILD
from harness.patience import eventually, patience
from harness.played.sandbox import Sandbox

NAME = "mcpbox-sandboxd-spawn.service"
TEMPLATE = os.path.join(os.path.dirname(__file__), "..", NAME)
ROOT = "/sys/fs/cgroup"
# Alone in a slice: what it is not given no neighbour has brought there either
# (a unit of system.slice has the controllers that any other there asked for).
SLICE = "alone.slice"
UNIT = os.path.join(ROOT, SLICE, NAME)


def systemctl(*words):
    subprocess.run(["systemctl", *words], check=True, timeout=patience(120))


def read(*path):
    with open(os.path.join(*path), encoding="ascii") as f:
        return f.read()


def numbers(*path):
    """A file of `key value` lines."""
    return {k: int(v) for k, v in map(str.split, read(*path).splitlines())}


class Unit:
    """The unit, as harness.played.sandbox looks at a child process."""

    def __init__(self):
        self.returncode = None

    @property
    def pid(self):
        out = subprocess.check_output(["systemctl", "show", "-P", "MainPID", NAME], text=True)
        return int(out)

    def poll(self):
        return None if self.pid else 0

    def terminate(self):
        systemctl("stop", NAME)

    def kill(self):
        systemctl("kill", "--signal=KILL", NAME)

    def wait(self, timeout=None):
        eventually(lambda: not self.pid, timeout or 60)
        self.returncode = 0


class Delegated(Sandbox):
    """delegate: what Delegate= says; read_only: cgroupfs is."""

    def __init__(self, delegate="yes", read_only=False, **settings):
        self.delegate, self.read_only = delegate, read_only
        super().__init__(runner="sandboxd/runner/mcpbox-runner", **settings)

    def start(self, process):
        if process != "sandboxd-spawn":
            super().start(process)
            return
        self.logs.setdefault(process, open(self.path(process + ".log"), "ab"))
        self._user()
        words = {"BUILD": BUILD, "CONF": self.path(process + ".conf"),
                 "LOG": self.path(process + ".log"), "DELEGATE": self.delegate, "SLICE": SLICE,
                 "READ_ONLY": "yes" if self.read_only else "no"}
        text = read(TEMPLATE)
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        with open(os.path.join("/run/systemd/system", NAME), "w", encoding="ascii") as f:
            f.write(text)
        systemctl("daemon-reload")
        systemctl("start", NAME)
        self.children[process] = Unit()

    def _user(self):
        """systemd wants a name for User=."""
        uid = self.uid("pool")
        for path, line in (("/etc/passwd", f"mcpbox-pool:x:{uid}:{uid}::/:/usr/sbin/nologin"),
                           ("/etc/group", f"mcpbox-pool:x:{uid}:")):
            rest = [x for x in read(path).splitlines() if not x.startswith("mcpbox-pool:")]
            with open(path, "w", encoding="ascii") as f:
                f.write("\n".join([*rest, line]) + "\n")

    def leaf(self, slot=0):
        return os.path.join(UNIT, "pool", f"slot-{slot:03}")
