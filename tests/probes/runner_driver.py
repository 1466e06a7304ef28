"""A pool without sandboxd: plays spawn, pool-init and the broker for tests of
mcpbox-runner alone. Needs root, like everything that writes an id map."""

import ctypes
import fcntl
import json
import os
import re
import select
import signal
import socket
import termios

from harness.instance import BUILD, take_block
from harness.patience import patience
from harness.tlv import tlv
from probes import ipcframes

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x20000, 0x2000000, 0x4000000
CLONE_NEWIPC, CLONE_NEWUSER = 0x8000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
POOL_UID, RUNNER_UID = 8, 1024  # within a test's block of uids
RUNNER_COUNT = 4096
EXECUTABLE = os.path.join(BUILD, "sandboxd", "runner", "mcpbox-runner")
KIND_TOOL, KIND_INSPECT = 1, 2

#: Names of the failures by number, as common/base/failure.def has them.
with open(os.path.join(ipcframes.ROOT, "common", "base", "failure.def"),
          encoding="utf-8") as _f:
    FAILURES = re.findall(r'^F\(\w+, "(\w+)"', _f.read(), re.M)

_libc = ctypes.CDLL(None, use_errno=True)


def _check(rc, what):
    if rc != 0:
        raise OSError(ctypes.get_errno(), what)


def _pool_init(executable, sock, zygote_pid, arguments):
    """pid 1 of the pool: an own proc, the zygote, and reaping."""
    os.setresgid(0, 0, 0)
    os.setgroups([])
    os.setresuid(0, 0, 0)
    _check(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None),
           "private")
    _check(_libc.mount(b"proc", b"/proc", b"proc",
                       MS_NOSUID | MS_NODEV | MS_NOEXEC, None), "proc")
    with open("/proc/sys/user/max_user_namespaces", "w") as f:
        f.write("0")
    for _ in range(2, zygote_pid):      # pids are given in order
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    pid = os.fork()
    if pid == 0:
        os.dup2(sock, 3, inheritable=True)
        os.closerange(4, 4096)
        os.execve(executable, ["mcpbox-runner", *arguments], {"CANARY_ENV": "canary-env"})
    os.close(sock)
    while True:
        try:
            done, _ = os.wait()
        except ChildProcessError:
            os._exit(0)
        if done == pid:     # no zygote, no pool
            os._exit(0)


class Runner:
    """One forked runner: its channel and its pidfd."""

    def __init__(self, channel, pidfd):
        self.channel = channel
        self.pidfd = pidfd
        self.stdout = b""
        self.events = []
        self.body = b""

    def close(self):
        self.channel.close()
        if self.pidfd is not None:
            try:
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass
            # As sandboxd does it: its uid is nobody's before it is gone.
            self.exited(30)
            os.close(self.pidfd)
            self.pidfd = None

    def exited(self, timeout):
        """Did the process end within that time?"""
        return bool(select.select([self.pidfd], [], [], timeout)[0])

    def ready(self):
        """What the runner says after its confinement: ready, or why not."""
        return ipcframes.receive(self.channel)

    def execute(self, code, arguments, secrets=(), kind=KIND_TOOL,
                name="probe", stdout_max=65536, result_max=1 << 20,
                compiled=b"", executable="", executable_digest=b"", form=0, driver=0, network=0,
                **limits):
        values = dict(memory_bytes=256 << 20, cpu_ms=30000, processes=64,
                      files=256, file_bytes=64 << 20)
        values.update(limits)
        if isinstance(code, str):
            code = code.encode("utf-8")
        named = tlv(*(f for key, value in secrets for f in ((1, key), (2, value))))
        ipcframes.send(self.channel, "execute", kind=kind, name=name,
                       form=form, driver=driver, network=network,
                       stdout_max=stdout_max, result_max=result_max,
                       source_len=len(code), code=code + compiled,
                       executable=executable,
                       executable_digest=executable_digest, **values)
        if not isinstance(arguments, bytes):
            arguments = json.dumps(arguments).encode("utf-8")
        ipcframes.send(self.channel, "arguments", json=arguments)
        ipcframes.send(self.channel, "secrets", tlv=named)

    def result(self, timeout=patience(30)):
        """(kind, fields) of the final frame; None if it ended without."""
        self.channel.settimeout(timeout)
        while True:
            try:
                got = ipcframes.receive(self.channel)
            except ConnectionResetError:
                return None
            if got is None:
                return None
            kind, fields = got
            if kind == "stdout":
                self.stdout += fields["data"]
            elif kind == "content_part":
                self.body += fields["data"]
            elif kind in ("run_result", "run_error"):
                assert fields["length"] == len(self.body)
                return kind, fields
            else:
                self.events.append(got)
            if kind == "ask":       # nobody is there
                ipcframes.send(
                    self.channel, "answer", number=fields["number"],
                    json=json.dumps({k: {"error": {
                        "code": -32021, "message": "nobody to ask"}}
                        for k in json.loads(fields["json"])}).encode())


class Call:
    """How one call ended."""

    def __init__(self, runner, end):
        self.kind = end[0] if end else "gone"
        self.failure = end[1].get("failure", 0) if end else None
        self.body = json.loads(runner.body) if end else None
        self.raw = runner.body
        self.stdout = runner.stdout
        self.events = runner.events

    @property
    def failure_name(self):
        return FAILURES[self.failure]

    @property
    def text(self):
        return "".join(b.get("text", "") for b in self.body["content"])

    @property
    def value(self):
        """What main returned, if it was JSON."""
        return json.loads(self.text)


class Pool:
    """A zygote in a user namespace of its own. zygote_pid: its pid in the
    pool. terminal: becomes its controlling terminal and standard streams."""

    def __init__(self, executable=EXECUTABLE, zygote_pid=2, terminal=None,
                 store="", commands=""):
        self.base, self._lock = take_block()
        self._zygote_pid, self._terminal = zygote_pid, terminal
        self._arguments = (store, commands)
        ours, theirs = socket.socketpair(socket.AF_UNIX,
                                         socket.SOCK_SEQPACKET)
        up_r, up_w = os.pipe()
        go_r, go_w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                # Nothing of this process, least of all another pool's socket:
                # that pool would outlive its test.
                keep = {0, 1, 2, theirs.fileno(), up_w, go_r, terminal}
                for fd in map(int, os.listdir("/proc/self/fd")):
                    if fd not in keep:
                        try:
                            os.close(fd)
                        except OSError:
                            pass        # the listing's own
                self._spawn(executable, theirs.fileno(), up_w, go_r)
            finally:
                os._exit(1)
        theirs.close()
        os.close(up_w)
        os.close(go_r)
        if os.read(up_r, 1) != b"u":
            raise RuntimeError("the pool's namespaces could not be made")
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{self.pid}/{name}", "w") as f:
                f.write(f"0 {self.base + POOL_UID} 1\n"
                        f"1 {self.base + RUNNER_UID} {RUNNER_COUNT}\n")
        os.write(go_w, b"g")
        os.close(up_r)
        os.close(go_w)
        self.sock = ours
        self.sock.settimeout(patience(30))
        self.generation = 0
        kind, fields = ipcframes.receive(self.sock) or ("nothing", {})
        if kind != "pool_report":
            raise RuntimeError(f"the zygote said {kind}, not pool_report")
        self.layers = dict(line.split("=", 1)
                           for line in fields["layers"].splitlines())

    def _spawn(self, executable, sock, up, go):
        uid = self.base + POOL_UID
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        os.setsid()
        if self._terminal is not None:
            fcntl.ioctl(self._terminal, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self._terminal, fd)
        _check(_libc.unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS
                             | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
                             | CLONE_NEWCGROUP), "unshare")
        os.write(up, b"u")
        if os.read(go, 1) != b"g":
            os._exit(1)
        pid = os.fork()
        if pid == 0:
            try:
                self._first(executable, sock)
            finally:
                os._exit(1)
        os.close(sock)
        os.waitpid(pid, 0)
        os._exit(0)

    def _first(self, executable, sock):
        """In pid 1 of the pool."""
        _pool_init(executable, sock, self._zygote_pid, self._arguments)

    def close(self):
        self.sock.close()
        os.waitpid(self.pid, 0)
        self._lock.close()

    def init(self):
        """Host pid of the pool's pid 1."""
        path = f"/proc/{self.pid}/task/{self.pid}/children"
        with open(path, encoding="ascii") as f:
            return int(f.read().split()[0])

    def fork(self, uid=None, **profile):
        """A runner of this profile that confines itself."""
        self.generation += 1
        values = dict(kind=0, network=0, tmp_bytes=64 << 20, tmp_inodes=4096,
                      memory_bytes=256 << 20, processes=64, cpu_percent=100,
                      modules=b"")
        values.update(profile)
        if uid is None:
            uid = 1 + self.generation % (RUNNER_COUNT - 1)
        ours, theirs = socket.socketpair(socket.AF_UNIX,
                                         socket.SOCK_SEQPACKET)
        ours.settimeout(patience(30))
        ipcframes.send(self.sock, "fork", slot=self.generation % 64,
                       generation=self.generation, uid=uid,
                       channel=theirs.fileno(), **values)
        theirs.close()
        kind, fields = ipcframes.receive(self.sock)
        assert kind == "forked", (kind, fields)
        assert fields["generation"] == self.generation
        return Runner(ours, fields["pidfd"])

    def call(self, code, arguments=None, timeout=patience(30), uid=None, profile=None,
             **execute):
        """Forks, confines and runs one tool to its end."""
        runner = self.fork(uid, **(profile or {}))
        try:
            kind, fields = runner.ready()
            assert kind == "ready", (kind, fields)
            runner.execute(code, arguments or {}, **execute)
            return Call(runner, runner.result(timeout))
        finally:
            runner.close()

    def inspect(self, code, **more):
        return self.call(code, kind=KIND_INSPECT, **more).body
