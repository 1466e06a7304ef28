"""admind alone over a private PostgreSQL; the test plays check, vault and
sandboxd, and connects as gatewayd, admind-http and mcpboxctl."""
import contextlib
import hashlib
import hmac
import os
import queue
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

from harness import listening
from harness.instance import BUILD, GROUPS, OFFSETS, SRC, take_block
from harness.ipc import Closed, Peer, Table, socket_as
from harness.patience import WAIT_FACTOR, patience, until
from harness.pg import Postgres
from harness.tlv import tlv


def failures():
    with open(os.path.join(SRC, "common", "base", "failure.def"), encoding="ascii") as f:
        names = [line[2:].split(",")[0] for line in f if line.startswith("F(")]
    return {n: i for i, n in enumerate(names)}


FAILURES = failures()
DONE, FAILED, KILLED, REFUSED, LOST = 1, 2, 3, 4, 5


def failure(m):
    """The name of a message's failure mode."""
    return next(n for n, i in FAILURES.items() if i == m["failure"])


def preimage(server, tool, server_name="demo", name="greet", exposed=None, code="def main(): pass",
             schema=b'{"type":"object"}', secrets=(), **more):
    """The hash pre-image of a version (common/version/version.h)."""
    fields = [(1, 1), (2, server), (3, tool), (4, server_name), (5, name),
              (6, exposed or f"{server_name}__{name}"), (8, more.get("description", "greets")),
              (11, schema), (14, "python"), (15, code)]
    fields += [(20, s) for s in sorted(secrets)]
    fields += [(21, r) for r in sorted(more.get("requires", ()))]
    if "task" in more:
        fields.append((22, more["task"]))
    if "confirm" in more:
        fields.append((23, more["confirm"]))
    if "timeout" in more:
        fields.append((24, more["timeout"]))
    return b"mcpbox version 1\0" + tlv(*fields)


class Fake(threading.Thread):
    """One listening process played by the test. handle(message) gives the
    answer as (name, fields), a list of them, or None for silence."""

    def __init__(self, table, path, handle, greet=None):
        super().__init__(daemon=True)
        self.table, self.path, self.handle, self.greet = table, path, handle, greet
        self.peer, self.up = None, threading.Event()
        self.answers = queue.Queue()
        self.seen, self.lock = [], threading.Lock()
        self.epoch = os.urandom(16)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        os.chmod(path, 0o666)
        self.listener.listen(4)
        self.start()

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with contextlib.suppress(Closed, OSError, ValueError, TimeoutError), sock:
                peer = Peer(self.table, sock, hello=False)
                peer.epoch = self.epoch
                peer.send("HELLO", table=self.table.hash, process="fake", build="test",
                          epoch=self.epoch, layers="seccomp=enforced\n")
                assert peer.receive()[1]["_"] == "HELLO"
                self.peer = peer
                if self.greet:
                    self.greet(peer)
                self.up.set()
                self.serve(peer)
            self.up.clear()

    def serve(self, peer):
        while True:
            request, m = peer.receive(None)
            kind = self.table.by_name[m["_"]]["kind"]
            if kind in ("answer", "part"):
                self.answers.put((request, m))
                continue
            m["_request"] = request
            self.seen.append(m)
            got = self.handle(m)
            for name, fields in [got] if isinstance(got, tuple) else got or []:
                peer.send(name, request=request if self.table.by_name[name]["kind"] != "event"
                          else 0, **fields)

    def call(self, name, timeout=patience(10), **fields):
        """A request of this process to admind; its answer."""
        with self.lock:
            assert self.up.wait(timeout)
            request = self.peer.start(name, **fields)
            deadline = time.monotonic() + timeout
            while True:
                got, m = self.answers.get(timeout=max(0.01, deadline - time.monotonic()))
                if got == request:
                    return m

    def drop(self):
        """Ends the connection, as a process that died."""
        self.up.clear()
        with contextlib.suppress(OSError):
            self.peer.sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        listening.end(self.listener)
        with contextlib.suppress(OSError, AttributeError):
            self.peer.sock.shutdown(socket.SHUT_RDWR)


class Admind:
    AUDIT_KEY = b"audit key of the test".ljust(32)

    def __init__(self, settings=(), build=BUILD, pg=None):
        """pg: another one's database, for a second node of it."""
        self.base, self._lock = take_block()
        self.table = Table(build)
        self.dir = tempfile.mkdtemp(prefix="mcpa")
        os.chmod(self.dir, 0o711)
        os.mkdir(self.path("run"), 0o755)
        self.proc, self.fakes = None, {}
        self.pg, self.own_pg = pg or Postgres(), pg is None
        try:
            if self.own_pg:
                self.pg.start()
                self.pg.roles()
            self.program = self.path("admind")
            shutil.copy(os.path.join(build, "admind/mcpbox-admind"), self.program)
            for name, user in (("admind", "admind"), ("admind-check", "check"),
                               ("admind-vault", "vault"), ("sandboxd", "sandbox")):
                os.mkdir(self.path("run", name))
                os.chown(self.path("run", name), self.uid(user), self.uid(user))
                os.chmod(self.path("run", name), 0o750)
            with open(self.path("conf"), "w", encoding="ascii") as f:
                f.write(f"run_dir {self.path('run')}\nwait_factor {WAIT_FACTOR}\n"
                        f"database {self.pg.suite('mcpbox_app')}\n"
                        f"owner_database {self.pg.suite('mcpbox_owner')}\n"
                        f"gateway_local_user {self.uid('gwlocal')}\n"
                        f"gateway_tunnel_user {self.uid('gwtunnel')}\n"
                        f"web_user {self.uid('adminweb')}\n"
                        + "".join(s + "\n" for s in settings))
            self.log = open(self.path("log"), "wb")
            # what the fakes do, for tests to change
            self.held, self.cancelled, self.named = {}, [], []
            self.on_check = lambda m: ("CHECK_OK", {})
            self.on_vault = self.honest_vault
            self.on_sandbox = self.honest_sandbox
            self.sandbox_epoch = os.urandom(16)
            self.logins = {}
        except BaseException:
            self.close()
            raise

    def path(self, *p):
        return os.path.join(self.dir, *p)

    def run(self, *p):
        return self.path("run", *p)

    def uid(self, name):
        return self.base + OFFSETS[name]

    def groups(self, name):
        return [self.uid(g) for g in GROUPS.get(name, ())]

    def logs(self):
        with open(self.path("log"), "rb") as f:
            return f.read().decode(errors="replace")

    # --- the processes

    def command(self, *args, user="admind"):
        groups = ",".join(map(str, self.groups("admind")))
        return ["/usr/bin/setpriv", f"--reuid={self.uid(user)}", f"--regid={self.uid(user)}",
                f"--groups={groups}", "--no-new-privs", self.program, *args, "-f",
                self.path("conf")]

    def migrate(self):
        return subprocess.run(self.command("-m", user="dbowner"), capture_output=True, text=True,
                              check=False, timeout=patience(60))

    def start(self, ready="ready", lives=True):
        before = len(self.logs())
        self.proc = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=self.log)
        self.until(lambda: ready in self.logs()[before:] or self.proc.poll() is not None)
        assert not lives or self.proc.poll() is None, self.logs()

    def until(self, what, seconds=15):
        until(what, seconds, say=lambda: self.logs()[-3000:])

    def stop(self):
        if self.proc is not None and self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            assert self.proc.wait(patience(15)) == 0, self.logs()[-2000:]

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def fake(self, name):
        if name == "check":
            path, handle, greet = "admind-check", lambda m: self.on_check(m), None
        elif name == "vault":
            path, handle, greet = "admind-vault", lambda m: self.on_vault(m), None
        else:
            path, handle, greet = "sandboxd", lambda m: self.on_sandbox(m), self.name_epoch
        self.fakes[name] = Fake(self.table, self.run(path, "admind.sock"), handle, greet)
        return self.fakes[name]

    def all_up(self):
        """Everything running, and the sandbox's executions named."""
        assert self.migrate().returncode == 0
        for name in ("check", "vault", "sandbox"):
            self.fake(name)
        self.start()
        self.until(lambda: "sandbox_ready" in self.logs())
        self.until(lambda: self.rows("SELECT 1 FROM mcpbox.epochs WHERE kind = 'admind'"))
        return self

    # --- honest answers

    def honest_vault(self, m):
        if m["_"] == "SESSION_KEY_GET":
            return "SESSION_KEY", {"key": b"k" * 32}
        if m["_"] == "SEAL_CONTEXT":
            return "SEALED", {"context": b"sealed:" + m["material"]}
        if m["_"] == "AUDIT_SIGN":
            return "AUDIT_SIGNATURE", {"signature": self.signature(m["seq"], m["head"]),
                                       "key": b"K" * 8}
        if m["_"] == "SESSION_LOOKUP":
            who = self.logins.get(m["token"])
            if who is None:
                return "REFUSED", {"failure": FAILURES["UNAUTHENTICATED"], "message": "no"}
            return "SESSION_INFO", {"username": who[0], "role": who[1],
                                    "expires_ms": 1 << 42}
        if m["_"] in ("SIGNIN_HOLDS", "SIGNIN_DROP"):
            return "OK", {}
        return None

    def signature(self, seq, head):
        return hmac.new(self.AUDIT_KEY, struct.pack(">Q", seq) + head, hashlib.sha256).digest()

    def honest_sandbox(self, m):
        if m["_"] == "HELD":
            self.held[m["execution"]] = m
            return "OK", {}
        if m["_"] == "CANCEL":
            self.cancelled.append((m["execution"], m["failure"]))
        return None

    def name_epoch(self, peer):
        peer.send("EPOCH_BEGIN", epoch=self.sandbox_epoch)
        for execution in self.named:
            peer.send("EPOCH_ITEM", execution=execution, state=2)
        peer.send("EPOCH_END", count=len(self.named))

    def record(self, execution, outcome=DONE, failure="NONE", epoch=None, result=b'{"content":[]}',
               out=b"", intent=b"", **more):
        now = time.time_ns() // 1000
        return self.fakes["sandbox"].call(
            "RECORD", execution=execution, epoch=epoch or self.sandbox_epoch, outcome=outcome,
            failure=FAILURES[failure], delivered=1, started_us=now - 1000, ended_us=now, cpu_us=5,
            intent=intent, stdout_len=len(out), stdout_result=out + result, **more)

    # --- clients

    def gateway(self, listener="local"):
        return Peer(self.table, socket_as(
            self.uid("gw" + listener), [self.uid("admind")],
            self.run("admind", f"gateway-{listener}.sock")))

    def web(self):
        return Peer(self.table, socket_as(self.uid("adminweb"), [self.uid("admind")],
                                          self.run("admind", "http.sock")))

    def ctl(self):
        return Peer(self.table, socket_as(0, [], self.run("admind", "ctl.sock")))

    # --- the database

    def rows(self, query, *args, user="postgres"):
        with self.pg.connect(user) as c:
            return c.execute(query, args or None).fetchall()

    def sql(self, query, *args, user="postgres"):
        with self.pg.connect(user) as c:
            c.execute(query, args or None)

    def approved_tool(self, server_name="demo", name="greet", **kw):
        """A server, a tool and its approved version, by the same functions
        that admind uses. Returns (version id, hash)."""
        import uuid
        with self.pg.connect("mcpbox_app") as c:
            row = c.execute("SELECT id FROM mcpbox.servers WHERE name = %s",
                            (server_name,)).fetchone()
            server = row[0] if row else uuid.uuid4()
            if not row:
                c.execute("SELECT mcpbox.create_server(%s, %s, '', 'local')", (server, server_name))
            tool, version, request = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
            pre = preimage(server.bytes, tool.bytes, server_name, name, **kw)
            digest = hashlib.sha256(pre).digest()
            c.execute("SELECT mcpbox.create_tool(%s, %s, 'local')", (version, pre))
            c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'local')",
                      (request, uuid.uuid4(), tool))
            c.execute("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', %s)",
                      (request, digest, b"seal"))
        return version, digest

    def close(self):
        with contextlib.suppress(Exception):
            if self.proc is not None and self.proc.poll() is None:
                self.proc.kill()
                self.proc.wait()
        for f in self.fakes.values():
            f.close()
        if self.own_pg:
            self.pg.close()
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        self._lock.close()
