"""One instance of the suite for tests: contrib/instance with a block of uids
that no passwd entry knows, free ports and a state directory of its own, so
that test runs stand beside each other and beside a quickstart."""
import contextlib
import fcntl
import functools
import importlib.machinery
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile

from harness import template
from harness.patience import QUEUE_WAIT, WAIT_FACTOR, patience, until
from harness.place import BUILD, SRC
from harness.played.started import started

TOOL = os.path.join(SRC, "contrib", "instance")
#: Seconds until an instance must be up, on an ordinary machine; ends a hang.
UP_S = 120

# Blocks of uids: docs of contrib/instance give the offsets.
BASE, BLOCK, BLOCKS = 1_900_000_000, 65536, 64
OFFSETS = {"gwlocal": 1, "gwtunnel": 2, "admind": 3, "adminweb": 4, "check": 5, "vault": 6,
           "sandbox": 7, "pool": 8, "egress": 9, "dbowner": 10, "log": 11, "stranger": 12, "store": 13}
# Supplementary groups of each client, as contrib/instance gives them.
GROUPS = {"gwlocal": ("admind", "sandbox"), "gwtunnel": ("admind", "sandbox"),
          "adminweb": ("admind", "vault"),
          "admind": ("check", "vault", "sandbox", "dbowner"),
          "sandbox": ("vault", "pool", "egress", "store")}
LOCKS = "/run/mcpbox-test-uids"
#: Instances whose panel and gateway must know each other's port have two of their own a block of uids: below the ports that
#: the system gives away (ip_local_port_range begins at 32768).
PORTS = 21_000
#: A guess at a password shall cost; the logins of tests need not. test_vault_hash.py looks
#: at the default.
CHEAP_HASHES = ("admind-vault:argon2_memory=8M", "admind-vault:argon2_passes=1")
#: No test takes the machine's power away, and the page cache outlives every SIGKILL.
NO_FSYNC = ("fsync=off",)
#: Daemons of a slow machine wait longer.
WAITS = (f"*:wait_factor={WAIT_FACTOR}", f"sandboxd:queue_wait={QUEUE_WAIT}")

#: Tests loop and fail on purpose; those of the breakers themselves say yes.
NO_BREAKERS = ("admind:breakers=no",)


def defaults(sets):
    """The settings of every test's instance but those that sets has itself."""
    given = {s.split("=")[0] for s in sets}
    return [s for s in (*CHEAP_HASHES, *WAITS, *NO_BREAKERS) if s.split("=")[0] not in given]


# Process, executable: every service of an instance but PostgreSQL.
DAEMONS = {"gatewayd-local": "mcpbox-gatewayd", "gatewayd-tunnel": "mcpbox-gatewayd",
           "admind": "mcpbox-admind",
           "admind-http": "mcpbox-admind-http", "admind-check": "mcpbox-admind-check",
           "admind-vault": "mcpbox-admind-vault", "sandboxd": "mcpbox-sandboxd",
           "sandboxd-spawn": "mcpbox-sandboxd-spawn",
           "egress": "mcpbox-sandboxd-egress", "sandboxd-store": "mcpbox-sandboxd-store"}


#: PostgreSQL's place in the order in which an instance is killed.
SIGQUIT_TURN = 2


def processes():
    """pid -> (ppid, state, uid, argv) of all live processes."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, ppid = read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split(None, 2)[:2]
            argv = read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
            found[int(pid)] = (int(ppid), state.decode(), os.stat(f"/proc/{pid}").st_uid, argv)
        except (OSError, IndexError):
            continue
    return found


def read(path):
    """A file of proc(5), without the layers of open(): tests look at all processes often."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


def take_block():
    """Locks a free block of uids; returns (base, lock file)."""
    os.makedirs(LOCKS, mode=0o700, exist_ok=True)
    busy = {uid for _, _, uid, _ in processes().values()}
    for n in range(BLOCKS):
        lock = open(os.path.join(LOCKS, f"{n:02}"), "w", encoding="ascii")
        base = BASE + n * BLOCK
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not any(base <= uid < base + BLOCK for uid in busy):
                return base, lock
        lock.close()
    raise RuntimeError("all 64 blocks of test uids are taken")


def waits(pid):
    """Is it in recvmsg(2) on descriptor 3, as a runner without a call?"""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            return f.read().split()[:2] == ["47", "0x3"]
    except OSError:
        return False


@functools.cache
def control():
    """contrib/instance as a module: what its commands do, without a process for each."""
    loader = importlib.machinery.SourceFileLoader("contrib_instance", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Instance:
    """Started by the constructor; close() ends and removes all of it. Its database is a
    copy (harness/template.py)."""

    def __init__(self, sets=(), pg_sets=(), admin=True, ports=False):
        self.base, self._lock = take_block()
        port = PORTS + 2 * ((self.base - BASE) // BLOCK) if ports else None
        self.parent = tempfile.mkdtemp(prefix="mcpb")
        os.chmod(self.parent, 0o711)
        self.state = os.path.join(self.parent, "s")
        self.password = secrets.token_urlsafe(18)
        self.ctl_prefix = []    # words before mcpboxctl: where it runs (creds.py)
        try:
            started("instance")
            os.mkdir(self.state)
            self.control = control().Instance(self.state)
            try:
                self.control.create(BUILD, str(self.base), sets=(*defaults(sets), *sets), pg_sets=(*NO_FSYNC, *pg_sets),
                                    cluster=template.cluster(), **({"mcp_port": port, "admin_port": port + 1} if ports else {}))
                self.control.start()
                self.control.wait(patience(UP_S))
            except control().Failed as e:
                raise RuntimeError(f"{e}\n{self.logs()}") from None
            if admin:
                self.setup()
        except BaseException:
            self.close()
            raise

    def tool(self, command, *args):
        """contrib/instance COMMAND STATE ARGS; raises with its output."""
        r = subprocess.run([TOOL, command, self.state, *args], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, check=False, timeout=patience(UP_S))
        if r.returncode != 0:
            raise RuntimeError(f"instance {command}: {r.stdout}{r.stderr}\n{self.logs()}")
        return r.stdout

    def close(self):
        try:
            keep = os.environ.get("MCPBOX_KEEP_LOGS")
            if keep and os.path.isdir(os.path.join(self.state, "log")):
                os.makedirs(keep, exist_ok=True)
                shutil.copytree(os.path.join(self.state, "log"),
                                os.path.join(keep, os.path.basename(self.parent)))
            self.kill()
        finally:
            shutil.rmtree(self.parent, ignore_errors=True)
            self._lock.close()

    def purge(self):
        """As `contrib/instance purge`, in order; close() kills instead."""
        self.tool("purge")

    def kill(self):
        """SIGKILL of every process: nothing here outlives the test. First those that would
        start others again. PostgreSQL gets SIGQUIT: it gives its shared memory back."""
        def inside(pid):
            try:
                return os.readlink(f"/proc/{pid}/cwd").startswith(self.state + "/")
            except OSError:
                return False

        def turn(pid, uid, argv):
            """Of a process of ours: its place in the order. None: it is not ours."""
            if argv[:3] == ["runsvdir", "-P", os.path.join(self.state, "service")]:
                return 0
            if argv[0] in ("runsv", "sv") and inside(pid):
                return 1
            if os.path.basename(argv[0]) == "postgres" and inside(pid):
                return SIGQUIT_TURN
            # A process that stays would disturb the next owner of these uids.
            return 3 if self.base <= uid < self.base + BLOCK or argv[0] == "svlogd" and inside(pid) else None

        def left():
            there = sorted((turn(pid, uid, argv), pid) for pid, (_, state, uid, argv) in processes().items()
                           if state != "Z" and turn(pid, uid, argv) is not None)
            for place, pid in there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGQUIT if place == SIGQUIT_TURN else signal.SIGKILL)
            return not there
        # One that was just starting another is dead by the next look, which finds the other.
        until(left, step=0.05, say=lambda: [p for p in processes().items() if turn(p[0], *p[1][2:]) is not None])
        with contextlib.suppress(ChildProcessError, AttributeError):
            os.waitpid(self.control.runsvdir, os.WNOHANG)

    def uid(self, name):
        return self.base + OFFSETS[name]

    def groups(self, name):
        return [self.uid(g) for g in GROUPS.get(name, ())]

    def run(self, *path):
        return os.path.join(self.state, "run", *path)

    def address(self, name="gatewayd-local"):
        """(host, port) where gatewayd-local or admind-http listens now."""
        def read():
            with open(self.run(name + ".addr"), encoding="ascii") as f:
                host, port = f.read().split("\n")[0].rsplit(":", 1)
                return host, int(port)
        return until(read, 10, during=(OSError, ValueError))

    def ctl(self, *args, check=True, stdin=None):
        r = subprocess.run([*self.ctl_prefix, os.path.join(self.state, "bin", "mcpboxctl"), *args], text=True,
                           capture_output=True, input=stdin, check=False, timeout=patience(60))
        if check and r.returncode != 0:
            raise RuntimeError(f"mcpboxctl {args}: {r.returncode} {r.stdout}{r.stderr}")
        return r

    def ctl_json(self, *args):
        return json.loads(self.ctl(*args, "--json").stdout)

    def setup(self):
        path = os.path.join(self.parent, "password")
        with open(path, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(self.password + "\n")
        self.ctl("setup", "--username", "admin", "--password-file", path)

    def psql(self, query, role="postgres"):
        """Rows as lists of text, tab-separated by psql."""
        r = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1",
                            "-h", self.run("postgresql"), "-U", role, "mcpbox", "-c", query],
                           capture_output=True, text=True, check=False, timeout=patience(60))
        if r.returncode != 0:
            raise RuntimeError(r.stderr)
        return [line.split("\t") for line in r.stdout.splitlines()]

    def service_pid(self, name):
        """Pid of a service's process, or None while it is down."""
        try:
            with open(os.path.join(self.state, "service", name, "supervise", "pid"),
                      encoding="ascii") as f:
                return int(f.read())
        except (OSError, ValueError):
            return None

    def pids(self):
        """Live processes of this instance's uids; runners included."""
        return [pid for pid, (_, state, uid, _) in processes().items()
                if self.base <= uid < self.base + BLOCK and state != "Z"]

    def pool(self):
        """Live processes named pool-init, peek or runner: role -> pids."""
        roles = {"mcpbox-pool-init": [], "mcpbox-peek": [], "mcpbox-runner": []}
        ours = set(self.pids())
        for pid, (_, _, _, argv) in processes().items():
            name = os.path.basename(argv[0])
            if pid in ours and name in roles:
                roles[name].append(pid)
        return roles

    def runners(self):
        """Processes of calls: runners that don't just wait for one, and what
        they made. (The zygote, the oldest, waits on descriptor 3 as well.)"""
        return [p for p in self.pool()["mcpbox-runner"] if not waits(p)]

    def logs(self, lines=15):
        """The end of every process's log, for failure messages."""
        text = []
        log = os.path.join(self.state, "log")
        for name in sorted(os.listdir(log)) if os.path.isdir(log) else ():
            with contextlib.suppress(OSError):
                with open(os.path.join(log, name, "current"), errors="replace",
                          encoding="utf-8") as f:
                    text += [f"--- {name}"] + [s[:400] for s in f.read().splitlines()[-lines:]]
        return "\n".join(text)
