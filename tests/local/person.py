"""An ordinary user with a home folder and a project, who runs programs with and
without mcpbox-run. The tests run as root, so that there is a user beside it."""
import fcntl
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import tempfile
import termios

from harness.patience import patience, until
from harness.place import BUILD

RUN = os.environ.get("MCPBOX_RUN_PROGRAM", os.path.join(BUILD, "sandboxd/local/mcpbox-run"))
#: No user of the machine has it, and no other worker of the tests.
UID = 61234 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
CANARY = "canary-5c1d0a"


class Person:
    def __init__(self):
        # Not below a folder of root: the person must get there.
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="mcpbox-run-", dir="/var/tmp"))
        self.base.chmod(0o755)
        self.home = self.base / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        os.chown(self.home, UID, UID)
        os.chown(self.project, UID, UID)
        self.home.chmod(0o755)

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)

    def environment(self, **more):
        return {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8",
                **more}

    def write(self, path, text, mode=0o644):
        """A file of the person, below the home folder."""
        path = self.home / path
        missing = [p for p in path.parents if not p.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        for p in missing:
            os.chown(p, UID, UID)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, UID, UID)
        return path

    def start(self, *argv, cwd=None, env=None, preexec_fn=None, **options):
        def fresh():
            # A shell starts a run of the tests in the background with these ignored.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGQUIT, signal.SIG_DFL)
            if preexec_fn is not None:
                preexec_fn()
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "user": UID, "group": UID, "extra_groups": [], **options}
        return subprocess.Popen([str(a) for a in argv], cwd=cwd or self.project, preexec_fn=fresh,
                                env=self.environment(**(env or {})), **options)

    def outside(self, *argv, **options):
        """Runs a program as the person, without mcpbox-run."""
        given = options.pop("input", None)
        if given is not None:
            options["stdin"] = subprocess.PIPE
        p = self.start(*argv, **options)
        out, err = p.communicate(given, timeout=patience(60))
        return Result(p.returncode, out or b"", err or b"")

    def run(self, *argv, options=(), **more):
        return self.outside(RUN, *options, *argv, **more)

    def sh(self, script, options=(), **more):
        return self.run("sh", "-c", script, options=options, **more)

    def python(self, script, options=(), **more):
        return self.run("python3", "-c", script, options=options, **more)

    def terminal(self, *argv, options=(), confined=True, **more):
        return Terminal(self, [RUN, *options, *argv] if confined else list(argv), **more)


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out.decode(errors="replace"), err.decode(errors="replace")

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


class Terminal:
    """A program in a terminal, as a person's shell would start it."""

    def __init__(self, person, argv, rows=24, columns=80, **more):
        self.master, slave = pty.openpty()
        self.size(rows, columns)
        self.seen = b""

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.fchown(slave, UID, UID)
        with_terminal = {"stdin": slave, "stdout": slave, "stderr": slave, **more}
        self.process = person.start(*argv, preexec_fn=lead, **with_terminal)
        # Keeps its end, so that the terminal outlives the program.
        self.slave = slave
        os.set_blocking(self.master, False)

    def size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text):
        os.write(self.master, text.encode())

    def read(self):
        try:
            while True:
                got = os.read(self.master, 65536)
                if not got:
                    break
                self.seen += got
        except (BlockingIOError, OSError):
            pass
        return self.seen.decode(errors="replace")

    def expect(self, text, seconds=30):
        """Waits until the program has written the text; forgets what came up to it."""
        until(lambda: text in self.read(), seconds, say=lambda: f"{text!r} in {self.seen!r}")
        before, _, after = self.seen.partition(text.encode())
        self.seen = after
        return before.decode(errors="replace")

    def wait(self):
        """The status, once the program has ended. Reads on: a full terminal would hold it."""
        until(lambda: (self.read(), self.process.poll())[1] is not None, 60, say=lambda: repr(self.seen))
        self.read()
        return self.process.returncode

    def attributes(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def processes():
    """The person's processes, of all namespaces: pid -> command line."""
    out = {}
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if p.stat().st_uid == UID or f"\nUid:\t{UID}\t" in (p / "status").read_text():
                if "\nState:\tZ" not in (p / "status").read_text():
                    out[int(p.name)] = (p / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return out


def marked(mark):
    """Those of the person's processes whose command line has the mark."""
    return {pid: line for pid, line in processes().items() if mark in line}
