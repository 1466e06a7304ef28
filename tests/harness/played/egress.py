"""mcpbox-sandboxd-egress alone, in a network namespace of its own, with a
played sandboxd and a played peek."""
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from harness import ipc
from harness.instance import BUILD, take_block
from harness.net import netns
from harness.patience import patience, until

PROGRAM = os.path.join(BUILD, "sandboxd", "egress", "mcpbox-sandboxd-egress")
DNS = "93.184.216.35"
STREAM, DGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM


class FdPeer(ipc.Peer):
    """Keeps what is passed to it: the descriptor of an answer is in fields."""

    def receive(self, timeout=patience(20)):
        if not select.select([self.sock], [], [], timeout)[0]:
            raise TimeoutError("no frame")
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, ipc.FRAME_MAX + 64, 2)
        except ConnectionResetError:
            raise ipc.Closed from None
        if not data:
            raise ipc.Closed
        number, flags, _, request = ipc.HEADER.unpack_from(data)
        blob = None
        if flags & ipc.FLAG_MEMFD:
            fd = fds.pop(0)
            blob = os.pread(fd, os.fstat(fd).st_size, 0)
            os.close(fd)
        fields = self.table.decode(number, data[ipc.HEADER.size:], blob)
        if fds:
            fields["fd"] = socket.socket(fileno=fds[0])
        return request, fields


def sockaddr(address, port, family=None, scope=0):
    """struct sockaddr_in or _in6 as connect(2) is given it."""
    family = family or (socket.AF_INET6 if ":" in address else socket.AF_INET)
    raw = socket.inet_pton(family, address)
    if family == socket.AF_INET:
        return struct.pack("=H", family) + struct.pack(">H", port) + raw + bytes(8)
    return struct.pack("=H", family) + struct.pack(">HI", port, 0) + raw + struct.pack("=I", scope)


def lines(hosts):
    """["a.example", "udp b.example 53", "tcp x 80"] as lists are spelled."""
    out = ""
    for h in hosts:
        words = h.split()
        if len(words) == 1:
            words = ["tcp", words[0], "0"]
        out += " ".join(words) + "\n"
    return out.encode()


class Egress:
    """sets: lines of its configuration; older: on a kernel that can't refuse descriptors.
    Everything ends with close()."""

    def __init__(self, ns=None, sets=(), start=True, older=False):
        self.ns, self.older = ns, older
        self.base, self._lock = take_block()
        self.uid = self.base + 9
        self.dir = tempfile.mkdtemp(prefix="mcpeg")
        os.chmod(self.dir, 0o755)
        self.listeners = os.path.join(self.dir, "run", "egress")
        os.makedirs(self.listeners)
        os.chown(self.listeners, self.uid, self.uid)
        self.conf = os.path.join(self.dir, "egress.conf")
        keys = {"run_dir": os.path.join(self.dir, "run"), "sandboxd_user": "0",
                "dns_servers": DNS, "own_users": str(self.base + 1), "log_level": "info"}
        keys.update(s.split("=", 1) for s in sets)
        with open(self.conf, "w", encoding="utf-8") as f:
            f.writelines(f"{k} {v}\n" for k, v in keys.items())
        self.table = ipc.Table(BUILD)
        self.next_net = 1
        self.process = self.sandboxd = self.peek = None
        self.events = []
        if start:
            self.start()

    def start(self):
        argv = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups",
                "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", PROGRAM, "-f", self.conf]
        if self.older:
            argv = [sys.executable, "-I", os.path.join(os.path.dirname(__file__), "older_kernel.py"), *argv]
        with open(os.path.join(self.dir, "log"), "ab") as log:
            run = self.ns.popen if self.ns else subprocess.Popen
            self.process = run(argv, stderr=log, stdin=subprocess.DEVNULL)
        def connected():
            try:
                return self.connect_as("sandboxd")
            except (FileNotFoundError, ConnectionRefusedError):
                assert self.process.poll() is None, self.log()
                return None
        self.sandboxd = until(connected, 20, say=self.log)
        self.peek = self.connect_as("peek")
        return self

    def connect_as(self, name):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(os.path.join(self.listeners, name + ".sock"))
        return FdPeer(self.table, s)

    def log(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(patience(10))
            finally:
                self.process.kill()
                self.process.wait()
        for p in (self.sandboxd, self.peek):
            if p is not None:
                p.sock.close()
        status, self.process = self.process and self.process.returncode, None
        return status

    def close(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
        self._lock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # -- as sandboxd --

    def open(self, declared=(), granted=None, connections=1000, size=1 << 40, minute=1 << 40):
        """A net; granted None: what is declared. Its number."""
        net, self.next_net = self.next_net, self.next_net + 1
        first = lines(declared)
        answer = self.sandboxd.call(
            "NET_OPEN", net=net, execution=os.urandom(16), connections=connections, bytes=size,
            bytes_minute=minute, requires_len=len(first),
            hosts=first + lines(declared if granted is None else granted))
        assert answer["_"] == "OK", answer
        return net

    def grant(self, net, granted):
        self.sandboxd.send("NET_GRANTS", net=net, grants=lines(granted))
        # One that is answered: what was sent before has been read.
        self.sandboxd.call("NET_CLOSE", net=1 << 60)

    def finish(self, net):
        """NET_REPORT's fields, its array as `rows`, its events as `events`."""
        request = self.sandboxd.start("NET_CLOSE", net=net)
        while True:
            got, fields = self.sandboxd.receive()
            if fields["_"] == "NET_EVENT":
                self.events.append(fields)
            elif got == request:
                break
        assert fields["_"] == "NET_REPORT", fields
        fields["rows"] = json.loads(fields["json"])
        fields["events"] = [e for e in self.events if e["net"] == net]
        return fields

    def event(self, net, timeout=patience(10)):
        """The next NET_EVENT of that net."""
        deadline = time.monotonic() + timeout
        while True:
            _, fields = self.sandboxd.receive(max(0.01, deadline - time.monotonic()))
            if fields["_"] == "NET_EVENT":
                self.events.append(fields)
                if fields["net"] == net:
                    return fields

    # -- as peek --

    def start_connect(self, net, address, port, kind=STREAM, nonblocking=False, family=None, raw=None,
                      scope=0):
        own = family or (socket.AF_INET6 if ":" in address else socket.AF_INET)
        return self.peek.start(
            "NET_CONNECT", net=net, family=own, type=kind, nonblocking=int(nonblocking),
            address=sockaddr(address, port, family, scope) if raw is None else raw)

    def connect(self, net, address, port, *args, timeout=patience(30), **kw):
        """(errno, socket): connect(2) of the net's runner. The socket blocks."""
        request = self.start_connect(net, address, port, *args, **kw)
        fields = self.peek.answer(request, timeout)
        if fields["_"] == "NET_FAILED":
            return fields["error"], None
        assert fields["_"] == "NET_CONNECTED", fields
        fields["fd"].settimeout(patience(10))
        return fields["error"], fields["fd"]

    def resolver(self, net, kind=STREAM):
        error, s = self.connect(net, "127.0.0.1", 53, kind)
        assert error == 0, error
        return s

    def resolve(self, net, name, kind=1):
        """(rcode, addresses) as the runner's resolver hears it."""
        from harness.played import dns
        with self.resolver(net) as s:
            q = dns.question(name, kind)
            s.sendall(struct.pack(">H", len(q)) + q)
            size, = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))
            ident, rcode, found = dns.read_answer(s.recv(size, socket.MSG_WAITALL))
            assert ident == 0x1234
            return rcode, found

    def by_name(self, net, name, port=80, *args, **kw):
        """connect(2) to what the name resolves to in the runner."""
        rcode, found = self.resolve(net, name)
        assert rcode == 0 and len(found) == 1, (name, rcode, found)
        return self.connect(net, found[0], port, *args, **kw)


class Canary:
    """A listener that counts who came, in a namespace."""

    def __init__(self, ns, address, port=80, kind=STREAM):
        self.ns, self.address, self.kind = ns, address, kind
        self.socket = ns.listen(address, port, kind) if ns else None
        self.port = self.socket.getsockname()[1]
        self.socket.settimeout(0)

    def reached(self):
        """How often since the last asking."""
        n = 0
        while True:
            try:
                if self.kind == STREAM:
                    self.socket.accept()[0].close()
                else:
                    self.socket.recvfrom(65536)
                n += 1
            except BlockingIOError:
                return n

    def prove(self):
        """From outside the boundary it can be reached."""
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        with self.ns.new_socket(family, self.kind) as s:
            s.settimeout(patience(2))
            s.connect((self.address, self.port))
            if self.kind == DGRAM:
                s.send(b"canary")
        assert self.reached() == 1, f"the canary {self.address} {self.port} can't be reached at all"

    def close(self):
        self.socket.close()


def namespace(addresses=()):
    return netns.Namespace(netns.PUBLIC + netns.PRIVATE + tuple(addresses))
