"""sandboxd and spawn alone, as real processes of their own users; the test
plays vault, admind and gatewayd over their sockets."""
import contextlib
import ctypes
import ctypes.util
import hashlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from harness import listening
from harness.instance import BUILD, GROUPS, OFFSETS, processes, take_block
from harness.ipc import Closed, Peer, Table, socket_as
from harness.patience import WAIT_FACTOR, eventually, patience, until
from harness.tlv import tlv

# common/crypto/context.h
CTX = {"secret_name": 3, "secret_value": 4, "code": 5, "name": 6, "args": 7, "timeout": 8,
       "memory": 9, "processes": 10, "tmp": 11, "result": 12, "hold": 13, "intent": 14,
       "version": 15, "kind_text": 23, "spec": 24, "require": 33, "grant": 34, "server": 35,
       "connections": 36, "network_bytes": 37, "network_rate": 38}
LISTENER = {"local": 1, "tunnel": 2, "admind": 3}
TOOL, INSPECT, TEST, GRANTS, MODULE = 1, 2, 3, 5, 6
DONE, FAILED, KILLED, REFUSED, LOST = 1, 2, 3, 4, 5
OWN = 4     # processes of a pool that are no runners: pool-init, its starter, peek, a zygote


def intent_of(execution, principal=b"local"):
    """An intent of no row: a principal, by whose share sandboxd counts, and what tells one from another (INTENT_TOOL)."""
    return b"".join(bytes([tag]) + len(v).to_bytes(4, "big") + v for tag, v in ((4, principal), (3, execution.hex().encode())))


_ssl = ctypes.CDLL(ctypes.util.find_library("crypto"))
for _f in ("EVP_CIPHER_CTX_new", "EVP_aes_256_gcm"):
    getattr(_ssl, _f).restype = ctypes.c_void_p


def gcm_seal(key, nonce, aad, plain):
    """AES-256-GCM by libcrypto: ciphertext and tag."""
    ctx = ctypes.c_void_p(_ssl.EVP_CIPHER_CTX_new())
    out, n = ctypes.create_string_buffer(len(plain) + 16), ctypes.c_int()
    tag = ctypes.create_string_buffer(16)
    try:
        assert _ssl.EVP_EncryptInit_ex(ctx, ctypes.c_void_p(_ssl.EVP_aes_256_gcm()), None,
                                       key, nonce) == 1
        assert _ssl.EVP_EncryptUpdate(ctx, None, ctypes.byref(n), aad, len(aad)) == 1
        assert _ssl.EVP_EncryptUpdate(ctx, out, ctypes.byref(n), plain, len(plain)) == 1
        size = n.value
        assert _ssl.EVP_EncryptFinal_ex(ctx, out, ctypes.byref(n)) == 1
        assert _ssl.EVP_CIPHER_CTX_ctrl(ctx, 0x10, 16, tag) == 1
    finally:
        _ssl.EVP_CIPHER_CTX_free(ctx)
    return out.raw[:size] + tag.raw


# Runs in a process of its own: becomes the pool's root with every capability
# there (pid 0: stays outside), without any filter, and asks for a user
# namespace. Prints the limit it sees and the errno.
_AS_POOL_ROOT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if sys.argv[1] != "0":
    fds = [os.open(f"/proc/{sys.argv[1]}/ns/{n}", os.O_RDONLY) for n in ("user", "mnt")]
    for fd in fds:
        if libc.setns(fd, 0) != 0:
            sys.exit(f"setns: {ctypes.get_errno()}")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
with open("/proc/sys/user/max_user_namespaces") as f:
    limit = int(f.read())
ctypes.set_errno(0)
libc.unshare(0x10000000)
print(limit, ctypes.get_errno())
"""


def ask_for_user_namespace(pool_init):
    """(user.max_user_namespaces, errno) as the root of that pool; outside for
    pid 0."""
    done = subprocess.run([sys.executable, "-I", "-c", _AS_POOL_ROOT, str(pool_init)],
                          capture_output=True, text=True, check=False, timeout=patience(20))
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


# Until a daemon that was told to end has; tests/vm/run gives its emulated machine more.
END_SECONDS = float(os.environ.get("MCPBOX_END_SECONDS", "10"))


class Vault(threading.Thread):
    """Answers CONTEXT_KEY_GET with a fresh key on each connection."""

    def __init__(self, table, path):
        super().__init__(daemon=True)
        self.table, self.path = table, path
        self.key, self.counter, self.epoch = None, 0, None
        self.have_key = threading.Event()
        self.connection = None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        os.chmod(path, 0o666)
        self.listener.listen(4)

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with contextlib.suppress(Closed, OSError, TimeoutError), sock:
                self.connection = sock
                peer = Peer(self.table, sock)
                while True:
                    request, m = peer.receive(None)
                    assert m["_"] == "CONTEXT_KEY_GET"
                    self.key, self.counter, self.epoch = os.urandom(32), 0, m["epoch"]
                    peer.send("CONTEXT_KEY", request=request, key=self.key)
                    self.have_key.set()

    def drop(self):
        """Ends the connection, as a vault that was restarted."""
        self.have_key.clear()
        self.connection.shutdown(socket.SHUT_RDWR)

    def seal(self, execution, listener, kind, plain):
        self.counter += 1
        nonce = struct.pack(">IQ", 0, self.counter)
        aad = (b"mcpbox context 1\0" + self.epoch + execution
               + bytes([LISTENER[listener], kind]))
        return b"\1" + nonce + gcm_seal(self.key, nonce, aad, plain)


class Sandbox:
    """The two daemons; close() ends everything. egress: settings of a third,
    mcpbox-sandboxd-egress, which runs in the namespace ns (harness/net/netns.py). older: sandboxd
    and egress on a kernel that can't refuse descriptors."""
    tool_ms = 5000      # for a tool that is given no other time; more where none may run out of it

    def __init__(self, runner=None, zygote="", egress=None, ns=None, older=False, **settings):
        self.ns, self.older = ns, older
        self.base, self._lock = take_block()
        self.dir = tempfile.mkdtemp(prefix="mcpbsb")
        os.chmod(self.dir, 0o711)
        self.table = Table()
        self.children, self.peers, self.logs = {}, [], {}
        self.libexec = os.path.join(self.dir, "libexec")
        os.mkdir(self.libexec, 0o755)
        self.program("sandboxd/pool/mcpbox-pool-init", "mcpbox-pool-init")
        self.program("sandboxd/pool/mcpbox-peek", "mcpbox-peek")
        self.program(runner or "tests/unit/sandboxd/fake-runner", "mcpbox-runner")
        if zygote:
            self.zygote(zygote)
        for name, user in (("sandboxd", "sandbox"), ("sandboxd-spawn", "pool"),
                           ("admind-vault", "vault"), ("egress", "egress")):
            os.makedirs(self.path("run", name), mode=0o755)
            os.chown(self.path("run", name), self.uid(user), self.uid(user))
            os.chmod(self.path("run", name), 0o750)
        self.vault = Vault(self.table, self.path("run", "admind-vault", "sandboxd.sock"))
        self.vault.start()
        self.conf("sandboxd", gateway_local_user=self.uid("gwlocal"),
                  gateway_tunnel_user=self.uid("gwtunnel"), admind_user=self.uid("admind"),
                  **settings)
        self.conf("sandboxd-spawn", sandboxd_user=self.uid("sandbox"),
                  runner_uid_base=self.base + 1024, runner_uid_count=4096,
                  libexec_dir=self.libexec)
        self.start("sandboxd-spawn")
        self.start("sandboxd")
        if egress is not None:
            self.conf("egress", sandboxd_user=self.uid("sandbox"), own_users=self.uid("gwlocal"),
                      **egress)
            self.start("egress")

    def await_key(self):
        """Until the vault gave sandboxd a context key."""
        until(self.vault.have_key.is_set, seconds=10, say=lambda: self.log("sandboxd"))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def uid(self, name):
        return self.base + OFFSETS[name]

    def program(self, built, name):
        shutil.copy(os.path.join(BUILD, built), os.path.join(self.libexec, name))

    def zygote(self, mode):
        with open(os.path.join(self.libexec, "FAKE_ZYGOTE"), "w", encoding="ascii") as f:
            f.write(mode)

    def conf(self, process, **settings):
        settings = {"run_dir": self.path("run"), "wait_factor": WAIT_FACTOR, **settings}
        with open(self.path(process + ".conf"), "w", encoding="ascii") as f:
            f.writelines(f"{k} {v}\n" for k, v in settings.items())

    def start(self, process):
        user = {"sandboxd": "sandbox", "sandboxd-spawn": "pool", "egress": "egress"}[process]
        groups = ",".join(str(self.uid(g)) for g in (user, *GROUPS.get(user, ())))
        caps = (["--inh-caps", "+setuid,+setgid", "--ambient-caps", "+setuid,+setgid"]
                if user == "pool" else [])
        built = {"sandboxd": "sandboxd/mcpbox-sandboxd",
                 "sandboxd-spawn": "sandboxd/spawn/mcpbox-sandboxd-spawn",
                 "egress": "sandboxd/egress/mcpbox-sandboxd-egress"}[process]
        popen = self.ns.popen if process == "egress" else subprocess.Popen
        older = [sys.executable, "-I", os.path.join(os.path.dirname(__file__), "older_kernel.py")] if (
            self.older and process != "sandboxd-spawn") else []
        log = self.logs.setdefault(process, open(self.path(process + ".log"), "ab"))
        # LeakSanitizer can't look at a process that isn't dumpable.
        env = {"ASAN_OPTIONS": "detect_leaks=0", **os.environ}
        self.children[process] = popen(
            [*older, "setpriv", "--reuid", str(self.uid(user)), "--regid", str(self.uid(user)),
             "--groups", groups, *caps, "--",
             os.path.join(BUILD, built), "-f",
             self.path(process + ".conf")], env=env, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log)

    def kill(self, process):
        self.children[process].kill()
        self.children[process].wait()

    def pool(self):
        """pids of the pool's processes: pool-init, zygote and runners."""
        own = {p.pid for p in self.children.values()}
        low, high = self.base + 1024, self.base + 65536
        return {pid: argv for pid, (_, state, uid, argv) in processes().items()
                if state != "Z" and pid not in own
                and (uid == self.uid("pool") or low <= uid < high)}

    def await_pool(self):
        """Until the pool's own processes run; only then does what pool() says
        serve as a `before`."""
        until(lambda: len(self.pool()) >= OWN, 10, say=lambda: (self.pool(), self.log("sandboxd-spawn")))

    def await_ready(self):
        """Until a call need not wait for the pool: it does so for queue_wait, a minute at most."""
        until(lambda: "pool_ready" in self.log("sandboxd"), say=lambda: self.log("sandboxd") + self.log("sandboxd-spawn"))

    def log(self, process):
        with open(self.path(process + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def peer(self, who, name, wait=True):
        """A connection to sandboxd as one of its clients."""
        def connected():
            return Peer(self.table, socket_as(
                self.uid(who), [self.uid(g) for g in GROUPS.get(who, ())],
                self.path("run", "sandboxd", name + ".sock")))
        p = until(connected, 10, during=(OSError, Closed)) if wait else connected()
        self.peers.append(p)
        return p

    def peer_root(self, name):
        p = Peer(self.table, socket_as(0, [], self.path("run", "sandboxd", name + ".sock")))
        self.peers.append(p)
        return p

    def gateway(self, listener="local"):
        return self.peer("gw" + listener, "gateway-" + listener)

    def admind(self):
        return Admind(self)

    def close(self):
        for p in self.peers:
            p.sock.close()
        bad = []
        for name, child in self.children.items():
            if child.poll() is None:
                child.terminate()
                if name == "sandboxd":	# a second signal: it does not wait for what runs
                    child.send_signal(signal.SIGINT)
                try:
                    child.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
                bad += [f"{name}: {child.returncode}"] if child.returncode != 0 else []
        listening.end(self.vault.listener, self.vault)
        eventually(lambda: not self.pool(), 5, 0.02)
        left = self.pool()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for f in self.logs.values():
            f.close()
        logs = "".join(self.log(b.split(":")[0])[-4000:] for b in bad)
        shutil.rmtree(self.dir, ignore_errors=True)
        self._lock.close()
        assert not left, f"left behind: {left}"
        assert not bad, f"did not end in order: {bad}\n{logs}"


class Admind:
    """admind's connection: hands contexts in, collects records."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.peer = sandbox.peer("admind", "admind")
        self.records, self.named = {}, []
        self.acknowledge = True
        # Records from the ledger of an earlier life of sandboxd come first.
        while (m := self.take(patience(20))[1])["_"] == "RECORD":
            pass
        assert m["_"] == "EPOCH_BEGIN"
        self.epoch = m["epoch"]
        while (m := self.peer.receive()[1])["_"] == "EPOCH_ITEM":
            self.named.append((m["execution"], m["state"]))
        assert m["_"] == "EPOCH_END" and m["count"] == len(self.named)

    def plain(self, code, arguments=b"{}", timeout=None, secrets=(), **more):
        out = tlv((CTX["code"], code)) + tlv((CTX["name"], "demo__fake"))
        out += tlv((CTX["args"], hashlib.sha256(arguments).digest()))
        out += tlv((CTX["timeout"], timeout or self.sandbox.tool_ms))
        for name, value in secrets:
            out += tlv((CTX["secret_name"], name)) + tlv((CTX["secret_value"], value))
        for name, value in more.items():
            for v in value if isinstance(value, list) else [value]:
                out += tlv((CTX[name], v))
        return out

    def regrant(self, server, hosts, sealed=None, inside=None):
        """REGRANT of a server's new list; the answer."""
        self.sandbox.await_key()
        if sealed is None:
            sealed = self.sandbox.vault.seal(
                server, "admind", GRANTS, tlv((CTX["server"], inside or server))
                + b"".join(tlv((CTX["grant"], h)) for h in hosts))
        return self.wait(self.peer.start("REGRANT", server=server, context=sealed))

    def hold(self, code, listener="local", kind=TOOL, execution=None, sealed=None, **kw):
        """HELD; returns (execution, answer)."""
        self.sandbox.await_key()
        execution = execution or os.urandom(16)
        kw.setdefault("intent", intent_of(execution))
        if sealed is None:
            sealed = self.sandbox.vault.seal(execution, listener, kind, self.plain(code, **kw))
        request = self.peer.start("HELD", execution=execution, listener=LISTENER[listener],
                                  context=sealed)
        return execution, self.wait(request)

    def held(self, code, **kw):
        """A context that must be accepted. The key may be a moment old at
        first, as for admind itself."""
        said = []

        def taken():
            execution, answer = self.hold(code, **kw)
            said[:] = [answer]
            if answer["_"] == "OK":
                return execution
            assert answer["failure"], answer
            return None
        return until(taken, 10, say=lambda: said)

    def take(self, timeout):
        request, m = self.peer.receive(timeout)
        if m["_"] == "RECORD":
            # Not acknowledged within RECORD_ANSWER_MS, it comes again: the same.
            assert self.records.get(m["execution"], m) == m, (self.records[m["execution"]], m)
            self.records[m["execution"]] = m
            if self.acknowledge:
                self.peer.send("OK", request=request)
        return request, m

    def wait(self, request, timeout=patience(20)):
        while True:
            got, m = self.take(timeout)
            if got == request and m["_"] != "RECORD":
                return m

    def record(self, execution, timeout=patience(10)):
        deadline = time.monotonic() + timeout
        while execution not in self.records:
            self.take(max(0, deadline - time.monotonic()))
        return self.records[execution]
