"""A whole pool (pool-init, peek, zygote, runners) between a played sandboxd and
a played egress. Needs root, like everything that writes an id map."""
import array
import contextlib
import errno
import json
import os
import select
import shutil
import socket
import struct
import tempfile
import threading

from harness.instance import BUILD
from harness.ipc import Table
from harness.patience import patience
from probes import ipcframes
from probes.runner_driver import Call, Pool, Runner

PROGRAMS = ("sandboxd/pool/mcpbox-pool-init", "sandboxd/pool/mcpbox-peek",
            "sandboxd/runner/mcpbox-runner")


class NetRunner(Runner):
    """One whose pidfd pool-init keeps."""

    def __init__(self, pool, channel, slot, generation):
        super().__init__(channel, None)
        self.pool, self.slot, self.generation = pool, slot, generation

    def close(self):
        super().close()
        self.pool.kill(self.slot, self.generation)


class NetPool(Pool):
    """The broker's side; `exits` has EXITED frames by generation."""

    def __init__(self, store="", commands=""):
        self.libexec = tempfile.mkdtemp(prefix="mcpbox-netpool.")
        os.chmod(self.libexec, 0o755)
        for program in PROGRAMS:
            shutil.copy(os.path.join(BUILD, program), self.libexec)
        self.lock = threading.Lock()
        try:
            super().__init__(store=store, commands=commands)
        except BaseException:
            shutil.rmtree(self.libexec)
            raise

    def _first(self, executable, sock):
        os.setresgid(0, 0, 0)
        os.setgroups([])
        os.setresuid(0, 0, 0)
        os.umask(0o022)
        # spawn's socket, whose end pool-init waits for: it holds both itself
        # (5 would be a cgroup's directory), so this pool ends with the
        # broker's socket.
        live = socket.socketpair()
        parked = [os.dup(fd) for fd in (sock, live[0].fileno(), live[1].fileno())]
        high = [os.dup2(fd, 100 + i) for i, fd in enumerate(parked)]
        for number, fd in zip((3, 4, 5), high):
            os.dup2(fd, number, inheritable=True)
        os.closerange(6, 4096)
        program = os.path.join(self.libexec, "mcpbox-pool-init")
        os.execve(program, [program, self.libexec, *self._arguments], {})

    def fork(self, uid=None, **profile):
        with self.lock:
            self.generation += 1
            generation, slot = self.generation, self.generation % 256
            values = {"kind": 0, "network": 1, "tmp_bytes": 64 << 20, "tmp_inodes": 4096,
                      "memory_bytes": 256 << 20, "processes": 64, "cpu_percent": 100,
                      "modules": b""} | profile
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.settimeout(patience(30))
            ipcframes.send(self.sock, "fork", slot=slot, generation=generation,
                           uid=uid or 1 + generation % 4000, channel=theirs.fileno(), **values)
            theirs.close()
        return NetRunner(self, ours, slot, generation)

    def kill(self, slot, generation):
        with self.lock, contextlib.suppress(OSError):
            ipcframes.send(self.sock, "kill", slot=slot, generation=generation)

    def link(self, sock):
        """PEEK_LINK."""
        with self.lock:
            ipcframes.send(self.sock, "peek_link", link=sock.fileno())

    def call(self, code, arguments=None, timeout=patience(30), uid=None, profile=None, **execute):
        runner = self.fork(uid, **(profile or {}))
        try:
            kind, fields = runner.ready()
            assert kind == "ready", (kind, fields)
            runner.execute(code, arguments or {}, **execute)
            return Call(runner, runner.result(timeout))
        finally:
            runner.close()

    def close(self):
        super().close()
        shutil.rmtree(self.libexec)


class Question:
    """A NET_CONNECT as it came."""

    def __init__(self, egress, request, fields):
        self.egress, self.request = egress, request
        self.net, self.family = fields["net"], fields["family"]
        self.type, self.nonblocking = fields["type"], fields["nonblocking"]
        self.raw = fields["address"]
        family, = struct.unpack_from("=H", self.raw)
        if family == socket.AF_INET:
            self.address = (socket.inet_ntop(family, self.raw[4:8]),
                            *struct.unpack_from(">H", self.raw, 2))
        else:
            self.address = (socket.inet_ntop(family, self.raw[8:24]),
                            *struct.unpack_from(">H", self.raw, 2))

    def fail(self, error):
        self.egress.send("NET_FAILED", self.request, error=error)

    def give(self, sock, error=0):
        """Passes a descriptor and closes it, as egress must."""
        sock.setblocking(False)
        self.egress.send("NET_CONNECTED", self.request, fd=sock.fileno(), error=error)
        sock.close()


class Egress:
    """Answers peek in a thread by `judge(question)`, which calls fail, give or
    neither. The default connects TCP to what is in `allowed` for its port, and
    refuses the rest with EACCES."""

    def __init__(self, pool, judge=None):
        self.pool, self.judge = pool, judge or self.connect
        self.table = Table()
        self.allowed, self.seen, self.errors = set(), [], []
        self.sock = None
        self.lock = threading.Lock()
        self.start()

    def start(self):
        """A new connection, as after a restart."""
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pool.link(theirs)
        theirs.close()
        self.send("HELLO", 0, table=self.table.hash, process="egress", build="test",
                  epoch=os.urandom(16))
        self.thread = threading.Thread(target=self.run, args=(self.sock,), daemon=True)
        self.thread.start()

    def stop(self):
        """Ends as a process that is killed."""
        self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(patience(10))
        self.sock.close()

    close = stop

    def send(self, name, request, fd=None, **fields):
        payload = self.table.encode(name, fields)
        head = struct.pack(">HHIQ", self.table.by_name[name]["number"], 0, len(payload), request)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd is not None else []
        with self.lock:
            self.sock.sendmsg([head + payload], ancillary)

    def run(self, sock):
        while True:
            try:
                data = sock.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            number, _, _, request = struct.unpack_from(">HHIQ", data)
            fields = self.table.decode(number, data[16:], None)
            if fields["_"] != "NET_CONNECT":
                continue
            q = Question(self, request, fields)
            self.seen.append(q)
            try:
                self.judge(q)
            except Exception as e:                  # for the test to show
                self.errors.append(e)

    def connect(self, q):
        if (q.address[0], q.address[1]) not in self.allowed:
            q.fail(errno.EACCES)
            return
        s = socket.socket(q.family, q.type)
        s.setblocking(False)
        rc = s.connect_ex(q.address)
        if rc == errno.EINPROGRESS and not q.nonblocking:
            select.select([], [s], [], 10)
            rc = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if rc in (0, errno.EINPROGRESS):
            q.give(s, rc)
        else:
            s.close()
            q.fail(rc)


def inside(pool, code, timeout=patience(30), profile=None, **arguments):
    """What main returned, with the probes' helpers."""
    from probes.conftest import PRELUDE
    call = pool.call(PRELUDE + code, arguments, timeout=timeout, profile=profile)
    assert call.kind == "run_result", (call.kind, call.body, call.stdout)
    return json.loads(call.text) if call.text else None


class Echo:
    """A service of the host's: sends back what it gets, and counts."""

    def __init__(self, family=socket.AF_INET, host="127.0.0.1"):
        self.sock = socket.create_server((host, 0), family=family, backlog=1024)
        self.address = self.sock.getsockname()[:2]
        self.accepted, self.ended = 0, 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        with c, contextlib.suppress(OSError):
            while data := c.recv(65536):
                c.sendall(data)
        self.ended += 1

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def resolver_answer(sock, zone, asked):
    """DNS over TCP on one stream: A records of `zone`, else NXDOMAIN."""
    with sock:
        while head := sock.recv(2, socket.MSG_WAITALL):
            query = sock.recv(struct.unpack(">H", head)[0], socket.MSG_WAITALL)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            kind, = struct.unpack_from(">H", query, at + 1)
            name = ".".join(labels)
            asked.append(name)
            known = name in zone
            found = known and kind == 1
            reply = query[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, int(found), 0, 0)
            reply += query[12:at + 5]
            if found:
                reply += struct.pack(">HHHIH4s", 0xc00c, 1, 1, 60, 4, socket.inet_aton(zone[name]))
            sock.sendall(struct.pack(">H", len(reply)) + reply)
