"""A name server of a test's own that may lie: other answers each time, mixed
public and private, chains of CNAMEs, truncation, delay, silence, junk.

    with dns.Server("93.184.216.35") as s:
        s.zone["a.example"] = dns.Answer(a=["93.184.216.34"])
        s.zone["b.example"] = [dns.Answer(a=[X]), dns.Answer(a=[Y])]  # in turn

A list is answered in turn, one entry a query of each type, the last for ever.
Names end below: *.a.example serves every name under a.example. Unknown names do
not exist."""
import dataclasses
import select
import socket
import struct
import threading
import time

from harness.patience import patience

TYPES = {1: "A", 28: "AAAA", 5: "CNAME", 6: "SOA", 65: "HTTPS"}
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, REFUSED = 0, 1, 2, 3, 5


@dataclasses.dataclass
class Answer:
    a: list = ()
    aaaa: list = ()
    cname: list = ()         # names on the way: the addresses belong to the last
    rcode: int = NOERROR
    delay: float = 0         # seconds
    truncate: bool = False   # over UDP: TC and nothing, so that TCP is asked
    drop: bool = False       # no answer at all
    drop_tcp: bool = False
    raw: bytes = None        # these bytes behind the id
    ttl: int = 0
    owner: str = None        # addresses belong to this name instead (a lie)


def name_bytes(name):
    out = b""
    for label in name.strip(".").split("."):
        raw = label.encode()
        out += bytes([len(raw)]) + raw
    return out + b"\0"


def read_name(m, at):
    labels = []
    while m[at]:
        labels.append(m[at + 1:at + 1 + m[at]].decode("latin-1"))
        at += 1 + m[at]
    return ".".join(labels).lower(), at + 1


def record(owner, kind, ttl, data):
    return name_bytes(owner) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def question(name, kind=1, ident=0x1234, flags=0x0100, klass=1):
    """A query, for tests that are the resolver."""
    return struct.pack(">HHHHHH", ident, flags, 1, 0, 0, 0) + name_bytes(name) \
        + struct.pack(">HH", kind, klass)


def read_answer(m):
    """(id, rcode, [addresses]) of an answer to such a query."""
    ident, flags, qd, an, _, _ = struct.unpack_from(">HHHHHH", m)
    at = 12
    for _ in range(qd):
        _, at = read_name(m, at)
        at += 4
    found = []
    for _ in range(an):
        if m[at] & 0xc0:
            at += 2
        else:
            _, at = read_name(m, at)
        kind, _, _, n = struct.unpack_from(">HHIH", m, at)
        at += 10
        if kind == 1:
            found.append(socket.inet_ntop(socket.AF_INET, m[at:at + n]))
        elif kind == 28:
            found.append(socket.inet_ntop(socket.AF_INET6, m[at:at + n]))
        at += n
    return ident, flags & 15, found


class Server:
    """UDP and TCP on one address; runs in threads until close(). ns: the
    netns.Namespace it listens in, if not this thread's own."""

    def __init__(self, address, port=53, ns=None):
        self.zone, self.queries, self.turn = {}, [], {}
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        make = ns.new_socket if ns else socket.socket
        self.udp, self.tcp = make(family, socket.SOCK_DGRAM), make(family, socket.SOCK_STREAM)
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.udp.bind((address, port))
        self.tcp.bind((address, port))
        self.tcp.listen(64)
        self.threads = [threading.Thread(target=f, daemon=True)
                        for f in (self._serve_udp, self._serve_tcp)]
        for t in self.threads:
            t.start()

    def close(self):
        self.stopped.set()
        for t in self.threads:
            t.join(patience(5))
        self.udp.close()
        self.tcp.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def asked(self, name, wanted="A"):
        """How often an address of that name and type was asked for."""
        with self.lock:
            return sum(1 for n, kind, _ in self.queries if n == name and kind == wanted)

    def _find(self, name, kind):
        with self.lock:
            found = self.zone.get(name)
            labels = name.split(".")
            for i in range(1, len(labels)):
                if found is None:
                    found = self.zone.get("*." + ".".join(labels[i:]))
            if not isinstance(found, list):
                return found
            i = self.turn.get((name, kind), 0)
            self.turn[name, kind] = i + 1
            return found[min(i, len(found) - 1)]

    def _answer(self, m, over):
        name, at = read_name(m, 12)
        kind = TYPES.get(struct.unpack_from(">H", m, at)[0], "?")
        with self.lock:
            self.queries.append((name, kind, over))
        found = self._find(name, kind)
        if found is None:
            found = Answer(rcode=NXDOMAIN)
        if found.delay:
            time.sleep(found.delay)
        if found.drop or (found.drop_tcp and over == "tcp"):
            return None
        if found.raw is not None:
            return m[:2] + found.raw
        tc = 0x0200 if found.truncate and over == "udp" else 0
        records, owner = [], name
        if not tc:
            for target in found.cname:
                records.append(record(owner, 5, found.ttl, name_bytes(target)))
                owner = target
            owner = found.owner or owner
            if kind == "A":
                records += [record(owner, 1, found.ttl, socket.inet_pton(socket.AF_INET, x))
                            for x in found.a]
            elif kind == "AAAA":
                records += [record(owner, 28, found.ttl, socket.inet_pton(socket.AF_INET6, x))
                            for x in found.aaaa]
        return (m[:2] + struct.pack(">HHHHH", 0x8180 | tc | found.rcode, 1, len(records), 0, 0)
                + m[12:at + 4] + b"".join(records))

    def _serve_udp(self):
        while not self.stopped.is_set():
            if not select.select([self.udp], [], [], 0.1)[0]:
                continue
            m, peer = self.udp.recvfrom(4096)
            threading.Thread(target=self._one_udp, args=(m, peer), daemon=True).start()

    def _one_udp(self, m, peer):
        try:
            out = self._answer(m, "udp")
            if out:
                self.udp.sendto(out, peer)
        except OSError:
            pass

    def _serve_tcp(self):
        while not self.stopped.is_set():
            if select.select([self.tcp], [], [], 0.1)[0]:
                c, _ = self.tcp.accept()
                threading.Thread(target=self._one_tcp, args=(c,), daemon=True).start()

    def _one_tcp(self, c):
        with c:
            c.settimeout(patience(5))
            try:
                while True:
                    head = c.recv(2, socket.MSG_WAITALL)
                    if len(head) < 2:
                        return
                    m = c.recv(struct.unpack(">H", head)[0], socket.MSG_WAITALL)
                    out = self._answer(m, "tcp")
                    if out:
                        c.sendall(struct.pack(">H", len(out)) + out)
            except OSError:
                return
