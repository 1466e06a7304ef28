"""Nobody outside can be reached, by any family of sockets."""
import os
import socket
import threading

import pytest

from harness import listening
from harness.patience import until

CONNECT = '''
def main(family: int, address, kind: int):
    try:
        s = socket.socket(family, kind)
    except OSError as e:
        return "socket: " + errno.errorcode[e.errno]
    s.settimeout(3)
    try:
        s.connect(tuple(address) if isinstance(address, list) else address)
        s.sendall(b"canary")
        return "sent"
    except OSError as e:
        return str(e)
'''


class Listener:
    """A host service that counts what reaches it."""

    def __init__(self, family, address, kind=socket.SOCK_STREAM):
        self.sock = socket.socket(family, kind)
        self.sock.bind(address)
        self.got = []
        if kind == socket.SOCK_STREAM:
            self.sock.listen()
        self.kind = kind
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            try:
                if self.kind == socket.SOCK_STREAM:
                    c, _ = self.sock.accept()
                    with c:
                        self.got.append(c.recv(64))
                else:
                    self.got.append(self.sock.recv(64))
            except OSError:
                return

    def close(self):
        listening.end(self.sock)

    def receives(self, n):
        until(lambda: len(self.got) >= n)


@pytest.mark.parametrize("family,host", [
    (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_host_listener(sandbox, family, host, kind):
    listener = Listener(family, (host, 0), kind)
    try:
        port = listener.sock.getsockname()[1]
        arguments = dict(family=int(family), address=[host, port],
                         kind=int(kind))
        assert sandbox.outside(CONNECT, **arguments) == "sent"
        listener.receives(1)
        assert listener.got == [b"canary"]
        assert sandbox.inside(CONNECT, **arguments) == "socket: EPERM"
        assert listener.got == [b"canary"]
    finally:
        listener.close()


def test_abstract_unix_socket_of_the_host(sandbox):
    name = "\0mcpbox-canary-" + os.urandom(8).hex()
    listener = Listener(socket.AF_UNIX, name)
    try:
        arguments = dict(family=int(socket.AF_UNIX), address=name,
                         kind=int(socket.SOCK_STREAM))
        assert sandbox.outside(CONNECT, **arguments) == "sent"
        assert sandbox.inside(CONNECT, **arguments) != "sent"
        listener.receives(1)
        assert listener.got == [b"canary"]
    finally:
        listener.close()


def test_unix_datagram_needs_no_connect(sandbox):
    """sendto names its receiver itself: the namespace must hold, not only
    the filter."""
    name = "\0mcpbox-canary-" + os.urandom(8).hex()
    listener = Listener(socket.AF_UNIX, name, socket.SOCK_DGRAM)
    code = '''
def main(name: str):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    return attempt(s.sendto, b"canary", name)
'''
    try:
        outside, inside = sandbox.attack(code, name=name)
        assert outside is None
        assert inside is not None
        listener.receives(1)
        assert listener.got == [b"canary"]
    finally:
        listener.close()


@pytest.mark.parametrize("family,kind,protocol", [
    ("AF_NETLINK", 3, 0), ("AF_PACKET", 3, 3), ("AF_VSOCK", 1, 0),
    ("AF_ALG", 5, 0), ("AF_INET", 1, 262), ("AF_INET", 3, 1), ("AF_KEY", 3, 2),
    ("AF_BLUETOOTH", 3, 1), ("AF_TIPC", 1, 0), ("AF_CAN", 3, 1),
])
def test_other_families(sandbox, family, kind, protocol):
    number = getattr(socket, family, 15)
    code = '''
def main(n: int, kind: int, protocol: int):
    return syscall(41, n, kind, protocol)
'''
    assert sandbox.inside(code, n=int(number), kind=kind,
                          protocol=protocol) == -1


def test_names_do_not_resolve_outside(sandbox):
    code = '''
def main():
    return attempt(socket.getaddrinfo, "example.com", 80) or "resolved"
'''
    assert sandbox.inside(code) != "resolved"


def test_nothing_listens(sandbox):
    code = '''
def main():
    a, b = socket.socketpair()
    u = socket.socket(socket.AF_UNIX)
    return [attempt(u.bind, "/tmp/s"), attempt(a.listen),
            attempt(u.bind, "\\0canary"), attempt(u.connect, "/tmp/s")]
'''
    outside, inside = sandbox.attack(code)
    assert outside[0] is None
    assert inside == ["EPERM"] * 4
    os.path.exists("/tmp/s") and os.unlink("/tmp/s")


def test_the_network_namespace_is_empty(sandbox):
    code = '''
def main():
    return [name for _, name in socket.if_nameindex()]
'''
    # if_nameindex asks netlink or an ioctl, both refused: no list at all.
    assert "PermissionError" in sandbox.error(code)
