"""The suite's own IPC, spoken by hand as any user: what a taken-over process
could say. The table comes from the build's ipc-text, so that tests follow it."""
import array
import contextlib
import fcntl
import hashlib
import os
import select
import socket
import struct
import subprocess
import time

from harness.instance import BUILD
from harness.patience import patience

HEADER = struct.Struct(">HHIQ")
FLAG_MEMFD = 1
FRAME_MAX = 65536
NUMBERS = {"u8": ">B", "u16": ">H", "u32": ">I", "u64": ">Q"}


class Table:
    def __init__(self, build=BUILD):
        raw = subprocess.check_output([os.path.join(build, "common", "ipc", "ipc-text")])
        self.hash = hashlib.sha256(raw).digest()
        self.by_name, self.by_number = {}, {}
        for line in raw.decode().splitlines():
            words = line.split()
            if words[0] == "message":
                m = {"number": int(words[1]), "name": words[2], "kind": words[3], "fields": []}
                self.by_name[m["name"]] = self.by_number[m["number"]] = m
            else:
                m["fields"].append((words[0], words[1]))

    def encode(self, name, fields, apart=False):
        """Payload bytes; apart: the blob's bytes travel in a memfd."""
        out, m = b"", self.by_name[name]
        for kind, field in m["fields"]:
            value = fields.get(field, 0 if kind in NUMBERS else b"")
            if isinstance(value, str):
                value = value.encode()
            if kind in NUMBERS:
                out += struct.pack(NUMBERS[kind], value)
            elif kind in ("id", "hash"):
                out += value or bytes(16 if kind == "id" else 32)
            elif kind != "fd":
                out += struct.pack(">I", len(value))
                if kind != "blob" or not apart:
                    out += value
        return out

    def decode(self, number, payload, blob):
        m = self.by_number[number]
        fields, pos = {"_": m["name"]}, 0
        for kind, field in m["fields"]:
            if kind in NUMBERS:
                n = struct.calcsize(NUMBERS[kind])
                fields[field], = struct.unpack_from(NUMBERS[kind], payload, pos)
            elif kind in ("id", "hash"):
                n = 16 if kind == "id" else 32
                fields[field] = payload[pos:pos + n]
            elif kind == "fd":
                continue
            elif kind == "blob" and blob is not None:
                size, = struct.unpack_from(">I", payload, pos)
                assert size == len(blob)
                n = 4
                fields[field] = blob
            else:
                size, = struct.unpack_from(">I", payload, pos)
                pos, n = pos + 4, size
                fields[field] = payload[pos:pos + size]
                if kind == "str":
                    fields[field] = fields[field].decode()
            pos += n
        assert pos == len(payload), (m["name"], pos, len(payload))
        return fields


def socket_as(uid, groups, path):
    """A connected SEQPACKET socket whose peer credentials say `uid`: a child
    takes on the identity, connects and passes the descriptor back. Raises
    OSError with the child's errno."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(path)
            socket.send_fds(there, [b"0"], [s.fileno()])
        except OSError as e:
            there.send(str(e.errno).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    there.close()
    try:
        data, fds, _, _ = socket.recv_fds(here, 16, 1)
    finally:
        here.close()
    if not fds:
        raise OSError(int(data), os.strerror(int(data)), path)
    return socket.socket(fileno=fds[0])


class Closed(Exception):
    """The peer closed the connection."""


class Peer:
    """One connection, after HELLO unless told otherwise."""

    def __init__(self, table, sock, hello=True, process="test"):
        self.table, self.sock = table, sock
        self.next_id = 1
        self.epoch = os.urandom(16)
        self.hello = None
        if hello:
            self.send("HELLO", table=table.hash, process=process, build="test", epoch=self.epoch)
            self.hello = self.receive()[1]
            assert self.hello["_"] == "HELLO", self.hello

    @classmethod
    def open(cls, table, instance, who, *path, **kw):
        """Connects as one of the instance's users to run/PROCESS/NAME.sock."""
        return cls(table, socket_as(instance.uid(who), instance.groups(who),
                                    instance.run(*path) + ".sock"), **kw)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def raw(self, packet, fds=()):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            self.sock.sendmsg([packet], ancillary)

    def send(self, name, /, request=0, **fields):
        payload = self.table.encode(name, fields)
        number = self.table.by_name[name]["number"]
        if len(payload) + HEADER.size <= FRAME_MAX:
            self.raw(HEADER.pack(number, 0, len(payload), request) + payload)
            return
        blob = fields[next(f for k, f in self.table.by_name[name]["fields"] if k == "blob")]
        rest = self.table.encode(name, fields, apart=True)
        fd = os.memfd_create("blob", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.write(fd, blob.encode() if isinstance(blob, str) else blob)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW
                        | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
            self.raw(HEADER.pack(number, FLAG_MEMFD, len(rest), request) + rest, [fd])
        finally:
            os.close(fd)

    def receive(self, timeout=patience(20)):
        """(request id, fields with the name as "_"). Closed at the end."""
        if not select.select([self.sock], [], [], timeout)[0]:
            raise TimeoutError("no frame")
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, FRAME_MAX + 64, 2)
        except ConnectionResetError:
            raise Closed from None
        if not data:
            raise Closed
        number, flags, length, request = HEADER.unpack_from(data)
        payload = data[HEADER.size:]
        assert len(payload) == length
        blob = None
        if flags & FLAG_MEMFD:
            blob = os.pread(fds[0], os.fstat(fds[0]).st_size, 0)
        for fd in fds:
            os.close(fd)
        return request, self.table.decode(number, payload, blob)

    def start(self, name, /, **fields):
        request, self.next_id = self.next_id, self.next_id + 1
        self.send(name, request=request, **fields)
        return request

    def call(self, name, /, timeout=patience(20), **fields):
        """The final answer to one request; parts and events are passed over."""
        request = self.start(name, **fields)
        return self.answer(request, timeout)

    def answer(self, request, timeout=patience(20)):
        deadline = time.monotonic() + timeout
        while True:
            got, fields = self.receive(max(0, deadline - time.monotonic()))
            kind = self.table.by_name[fields["_"]]["kind"]
            if got == request and kind == "answer":
                return fields
            if kind == "request":
                # A server's own request (a stale catalogue): agree.
                self.send("OK", request=got)

    def closed(self, timeout=patience(5)):
        """Does the peer close within that time? Frames before are dropped."""
        deadline = time.monotonic() + timeout
        try:
            while True:
                self.receive(max(0, deadline - time.monotonic()))
        except Closed:
            return True
        except TimeoutError:
            return False
