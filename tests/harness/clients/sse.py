"""An event stream read from a socket as it comes: events with the time each
arrived. Enough of HTTP for what gatewayd sends: a head, then chunks."""
import json
import socket
import time

from harness.patience import patience

ACCEPT = "Accept: application/json, text/event-stream\r\n"


class Event:
    """One event: id, retry, data as text ("" if it has an empty one, None if
    it has none), comment lines don't count."""

    def __init__(self, block):
        self.id = self.retry = self.data = None
        self.at = time.monotonic()
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self.data = value if self.data is None else self.data + "\n" + value
            elif name == "id":
                self.id = value
            elif name == "retry":
                self.retry = int(value)

    @property
    def json(self):
        return json.loads(self.data) if self.data else {}

    def __repr__(self):
        return f"<id {self.id} retry {self.retry} data {self.data!r}>"


class Stream:
    """One request whose answer is expected to be a stream."""

    def __init__(self, address, method="POST", body=None, headers=None, timeout=patience(10), path="/mcp"):
        if isinstance(address, str):	# the path of a unix socket
            self.s = socket.socket(socket.AF_UNIX)
            self.s.settimeout(timeout)
            self.s.connect(address)
        else:
            self.s = socket.create_connection(address, timeout=timeout)
        self.raw = self.text = b""
        self.ended = False
        self.comments = 0
        data = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{ACCEPT}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        for k, v in (headers or {}).items():
            head += f"{k}: {v}\r\n"
        self.s.sendall(head.encode() + b"\r\n" + data)
        while b"\r\n\r\n" not in self.raw:
            self._more()
        head, _, self.raw = self.raw.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {k.lower(): v for k, v in (x.split(": ", 1) for x in lines[1:])}
        self._chunks()

    def _more(self):
        got = self.s.recv(65536)
        if not got:
            raise EOFError(self.raw)
        self.raw += got

    def _chunks(self):
        while not self.ended and b"\r\n" in self.raw:
            size, _, rest = self.raw.partition(b"\r\n")
            n = int(size, 16)
            if len(rest) < n + 2:
                return
            self.text, self.raw = self.text + rest[:n], rest[n + 2:]
            self.ended = n == 0

    def next(self, timeout=patience(10)):
        """The next event, comments left out; None at the end of the stream."""
        deadline = time.monotonic() + timeout
        while True:
            while b"\n\n" in self.text:
                block, _, self.text = self.text.partition(b"\n\n")
                if any(not line.startswith(b":") for line in block.split(b"\n")):
                    return Event(block.decode())
                self.comments += 1
            if self.ended:
                return None
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no event")
            self.s.settimeout(left)
            self._more()
            self._chunks()

    def message(self, method, timeout=patience(10)):
        """The next event that is this notification; none before it may be a
        message of another kind."""
        while True:
            e = self.next(timeout)
            assert e is not None, "the stream ended"
            if e.data:
                assert e.json.get("method") == method, e
                return e

    def rest(self, timeout=patience(10)):
        """All events up to the end."""
        found = []
        while (e := self.next(timeout)) is not None:
            found.append(e)
        return found

    def quiet(self, seconds):
        """Nothing but comments for so long."""
        try:
            e = self.next(seconds)
        except TimeoutError:
            return
        raise AssertionError(f"not quiet: {e}")

    def close(self):
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
