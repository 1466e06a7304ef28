"""connect(2) of a runner that is granted hosts, through the real pool: copied by
peek, answered by a played egress, put in place."""
import errno
import json
import socket
import threading
import time

import pytest

from harness.netpool import Egress, NetPool
from probes.conftest import PRELUDE


@pytest.fixture(scope="module")
def pool():
    p = NetPool(commands="/usr/bin/python3 /usr/bin/true")
    yield p
    p.close()


@pytest.fixture
def egress(pool):
    e = Egress(pool)
    yield e
    e.close()
    assert not e.errors, e.errors


class Echo:
    """A host service: answers each connection's first bytes, and counts."""

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
        with c:
            while data := c.recv(65536):
                c.sendall(data)
        self.ended += 1

    def close(self):
        self.sock.close()


@pytest.fixture
def echo():
    e = Echo()
    yield e
    e.close()


def inside(pool, code, timeout=30, profile=None, **arguments):
    call = pool.call(PRELUDE + code, arguments, timeout=timeout, profile=profile)
    assert call.kind == "run_result", (call.kind, call.body, call.stdout)
    return json.loads(call.text) if call.text else None


def test_layers(pool):
    for name in ("peek_root", "peek_limits", "peek_capabilities", "peek_seccomp", "peek_reads",
                 "runner-network", "runner-seccomp"):
        assert pool.layers[name] == "enforced", pool.layers


BLOCKING = '''
def main(host: str, port: int) -> list:
    s = socket.create_connection((host, port), timeout=None)
    s.sendall(b"ping")
    return [s.recv(10).decode(), s.getpeername()[1], s.getblocking(), os.get_inheritable(s.fileno())]
'''


def test_blocking(pool, egress, echo):
    egress.allowed.add(echo.address)
    assert inside(pool, BLOCKING, host="127.0.0.1", port=echo.address[1]) == [
        "ping", echo.address[1], True, False]
    q, = egress.seen
    assert (q.net, q.address) == (pool.generation, echo.address)
    assert (q.family, q.type, q.nonblocking) == (socket.AF_INET, socket.SOCK_STREAM, 0)
    assert len(q.raw) == 16
