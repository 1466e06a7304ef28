"""A network namespace of a test's own, in which "public" can be tested: lo is
up, and addresses that look public are on it. Nothing in it reaches the machine
or the network it is on.

    with netns.Namespace() as ns:
        ns.enter()                  # this thread, for good; or
        with ns.entered(): ...      # this thread, for a while
        ns.popen([...])             # a program in it

enter_here() moves the calling thread of a test process whose whole life is in
there (tests/egress/conftest.py)."""
import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading

from harness.patience import until

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
RTM_NEWADDR, NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 20, 1, 4, 0x400
IFA_ADDRESS, IFA_LOCAL, IFA_FLAGS, IFA_F_NODAD = 1, 2, 8, 2

# On lo of every such namespace: (address, prefix length).
PUBLIC = ("93.184.216.34", "93.184.216.35", "142.250.185.14", "8.8.8.8", "1.1.1.1", "172.15.0.1",
          "2606:2800:220:1::1", "2606:2800:220:1::2")
PRIVATE = ("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1",
           "192.168.255.255", "192.168.1.5", "100.64.0.1", "fd12:3456::1", "fc00::1")

_libc = ctypes.CDLL(None, use_errno=True)


def _check(rc):
    if rc != 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def unshare_network():
    _check(_libc.unshare(CLONE_NEWNET))


def set_up(name="lo"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", name.encode(), 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), flags | IFF_UP))


def _netlink(kind, flags, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0)
               + body)
        error = struct.unpack_from("=i", s.recv(4096), 16)[0]
    if error not in (0, -17):  # EEXIST
        raise OSError(-error, os.strerror(-error))


def _attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _packed(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


def add_address(address, index=1):
    """On lo (interface 1 of a new namespace), as a host address."""
    family, raw = _packed(address)
    _netlink(RTM_NEWADDR, NLM_F_CREATE,
             struct.pack("=BBBBI", family, len(raw) * 8, 0, 0, index)
             + _attribute(IFA_LOCAL, raw) + _attribute(IFA_ADDRESS, raw)
             + _attribute(IFA_FLAGS, struct.pack("=I", IFA_F_NODAD)))
    # The kernel makes the routes of an IPv6 address from a work queue, one after
    # the other: a datagram to itself needs them all.
    def has_routes():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(0.05)
            s.bind((address, 0))
            s.connect(s.getsockname())
            s.send(b"x")
            return s.recv(1)
    if family == socket.AF_INET6:
        until(has_routes, 5, 0.001, during=OSError)


def enter_here(addresses=PUBLIC + PRIVATE):
    """A new namespace for the calling thread and what it starts."""
    unshare_network()
    set_up("lo")
    for a in addresses:
        add_address(a)


class Namespace:
    """Made by a thread of its own; lives until close()."""

    def __init__(self, addresses=PUBLIC + PRIVATE):
        error = []

        def make():
            try:
                enter_here(addresses)
                self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            except BaseException as e:  # given to whoever asked
                error.append(e)
        t = threading.Thread(target=make)
        t.start()
        t.join()
        if error:
            raise error[0]

    def enter(self):
        """The calling thread, and what it starts, for good."""
        _check(_libc.setns(self.fd, CLONE_NEWNET))

    @contextlib.contextmanager
    def entered(self):
        back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.enter()
        try:
            yield self
        finally:
            _check(_libc.setns(back, CLONE_NEWNET))
            os.close(back)

    def popen(self, argv, **kw):
        """subprocess.Popen of a program in it."""
        with self.entered():
            return subprocess.Popen(argv, **kw)

    def new_socket(self, *args):
        """A socket that belongs to it, whichever namespace its user is in."""
        with self.entered():
            return socket.socket(*args)

    def listen(self, address, port=0, kind=socket.SOCK_STREAM):
        """A bound socket in it (and listening, if of that kind)."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        s = self.new_socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen(128)
        return s

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
