"""Ten thousand idle streams on one gatewayd: at most 10 KiB of its memory each, and a
change reaches them all while others are served. test_streams_speed.py judges how
fast, in tests/run bench."""
import json
import multiprocessing
import resource
import select
import socket
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, MODERN, Client, meta
from harness.instance import Instance
from harness.patience import patience

pytestmark = pytest.mark.alone
STREAMS = 10_000
EACH_MAX = 10 * 1024
ROOM = STREAMS + 512


@pytest.fixture(scope="module")
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = STREAMS + 1024
    if hard != resource.RLIM_INFINITY and hard < need:
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, need))  # root may
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, need), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def instance(descriptors):
    i = Instance(sets=[f"gatewayd-local:{k}={ROOM}" for k in (
        "max_connections", "max_connections_per_source", "max_streams",
        "max_streams_per_principal")])
    yield i
    i.close()


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(x.split()[1]) * 1024 for x in f if x.startswith("Pss:"))


def listen_request():
    body = json.dumps({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True, "promptsListChanged": True,
                                     "resourcesListChanged": True}, "_meta": meta()}}).encode()
    return (f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: {MODERN}\r\n"
            "Mcp-Method: subscriptions/listen\r\nAccept: application/json, text/event-stream\r\n"
            "Content-Type: application/json\r\nUser-Agent: tests\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def get_request(session):
    return (f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: {LEGACY}\r\n"
            f"Mcp-Session-Id: {session}\r\nAccept: text/event-stream\r\n\r\n").encode()


def initialize(address):
    with Client(lambda: address, LEGACY) as c:
        return c.session


class Crowd:
    """Many open streams, each read only as far as it must be."""

    def __init__(self, address, count, request, first):
        self.poll = select.epoll()
        self.socks = {}
        for n in range(count):
            s = socket.create_connection(address, timeout=patience(30))
            s.sendall(request(n))
            self.socks[s.fileno()] = s
            self.poll.register(s, select.EPOLLIN)
            if n % 64 == 63:
                self.until(first, n + 1)
        self.until(first, count)

    def until(self, word, count, deadline=patience(60)):
        """Until so many have had an event with this word since the last time
        they were asked for. Returns when each had."""
        if not hasattr(self, "had"):
            self.had = {}
        had = self.had.setdefault(word, {})
        end = time.monotonic() + deadline
        while len(had) < count:
            left = end - time.monotonic()
            assert left > 0, f"{len(had)} of {count} had {word}"
            for fd, _ in self.poll.poll(left, 4096):
                data = self.socks[fd].recv(4096)
                assert data, "a stream ended"
                if word in data:
                    had[fd] = time.monotonic()
        return had

    def forget(self):
        self.had = {}

    def close(self):
        for s in self.socks.values():
            s.close()
        self.poll.close()


class Beside(multiprocessing.Process):
    """Another client meanwhile, in a process of its own so that reading the
    streams doesn't hold it up: how long each of its requests takes."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.stop = address, multiprocessing.Event()
        self.out, self.end = multiprocessing.Pipe(duplex=False)

    def run(self):
        took = []
        with Client(lambda: self.address) as c:
            while not self.stop.is_set():
                began = time.monotonic()
                assert c.request("server/discover").result
                took.append(time.monotonic() - began)
                time.sleep(0.001)
        self.end.send(took)

    def finish(self):
        """What each request took, the shortest first."""
        self.stop.set()
        assert self.out.poll(patience(20))
        took = self.out.recv()
        self.join()
        return sorted(took)


def approve_one(instance, name):
    with Client(instance.address) as c:
        tool = flow.draft(c, "many", name, "def main() -> int:\n    return 1\n")
        c.manage("mcpbox_request_publish", tool_id=tool)
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def check(instance, name, request, first):
    """Returns the seconds from the first stream's being told to the last one's, and what
    99 of 100 requests beside them took at most."""
    # A new process: nothing that was freed before is used again.
    instance.tool("restart", "gatewayd-local")
    instance.tool("wait")
    pid = instance.service_pid("gatewayd-local")
    # What the first streams and calls bring into memory for good.
    approve_one(instance, name + "_before")
    small = Crowd(instance.address(), 64, request, first)
    small.close()
    time.sleep(0.5)
    before = pss(pid)
    crowd = Crowd(instance.address(), STREAMS, request, first)
    try:
        time.sleep(0.5)
        each = (pss(pid) - before) / STREAMS
        print(f"{name}: {each:.0f} bytes a stream")
        beside = Beside(instance.address())
        beside.start()
        crowd.forget()
        approving = threading.Thread(target=approve_one, args=(instance, name + "_now"))
        approving.start()
        # The catalogue changes once, at an instant only the first stream knows.
        had = crowd.until(b"tools/list_changed", STREAMS)
        approving.join()
        waits = beside.finish()
        took = max(had.values()) - min(had.values())
        p99 = waits[len(waits) * 99 // 100]
        print(f"{name}: all told {took:.3f} s after the first; beside them {len(waits)} requests, "
              f"p99 {p99 * 1000:.1f} ms")
        assert instance.service_pid("gatewayd-local") == pid
        assert each <= EACH_MAX and waits
        return took, p99
    finally:
        crowd.close()


def listen(instance):
    return check(instance, "listen", lambda n: LISTEN, b"subscriptions/acknowledged")


def sessions(instance):
    return check(instance, "sessions", lambda n: get_request(initialize(instance.address())), b"data: \n\n")


def test_ten_thousand_listen(instance):
    listen(instance)


def test_ten_thousand_sessions(instance):
    """Legacy GET streams: a session each, with its record."""
    sessions(instance)


LISTEN = listen_request()
