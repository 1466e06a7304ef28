"""MCP over Streamable HTTP, by hand: tests decide every byte."""
import http.client
import itertools
import json
import select
import socket

from harness.patience import patience

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the tunnel's unix socket, as a proxy speaks it."""

    def __init__(self, path, timeout):
        super().__init__("mcp.example", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def connection(address, timeout):
    """address: (host, port), or the path of a unix socket."""
    if isinstance(address, str):
        return UnixConnection(address, timeout)
    return http.client.HTTPConnection(*address, timeout=timeout)


class Reply:
    """status, headers (lower case), raw body and, if it is JSON, its value.
    An event stream's last message with an id or error counts as the value."""

    def __init__(self, r):
        self.status = r.status
        self.headers = {k.lower(): v for k, v in r.getheaders()}
        self.raw = r.read()
        self.events = []
        self.value = None
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            for block in self.raw.decode().replace("\r\n", "\n").split("\n\n"):
                data = "\n".join(line[5:].lstrip(" ") for line in block.split("\n")
                                 if line.startswith("data:"))
                if data:
                    self.events.append(json.loads(data))
            if self.events:
                self.value = self.events[-1]
        elif self.raw:
            try:
                self.value = json.loads(self.raw)
            except ValueError:
                self.value = None

    @property
    def error(self):
        return self.value.get("error") if isinstance(self.value, dict) else None

    @property
    def result(self):
        return self.value.get("result") if isinstance(self.value, dict) else None

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.raw[:2000]!r}>"


def request(address, method="POST", path="/mcp", body=None, headers=None, timeout=patience(60)):
    """One request on a connection of its own. body: bytes or a JSON value."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    all_headers = {"Accept": "application/json, text/event-stream",
                   "Content-Type": "application/json"}
    all_headers.update(headers or {})
    c = connection(address, timeout)
    try:
        c.request(method, path, body, {k: v for k, v in all_headers.items() if v is not None})
        return Reply(c.getresponse())
    finally:
        c.close()


def meta(version=MODERN, capabilities=None):
    return {META + "protocolVersion": version,
            META + "clientCapabilities": capabilities or {},
            META + "clientInfo": {"name": "tests", "version": "1"}}


class Client:
    """A session of one era on one kept-alive connection.

    where: a callable giving (host, port), asked again for each connection, so
    that a listener that came back on another port is found."""

    def __init__(self, where, version=MODERN, token=None, timeout=patience(60), path="/mcp"):
        self.where, self.version, self.timeout, self.path = where, version, timeout, path
        self.modern = version >= "2026"
        self.ids = itertools.count(1)
        self.session = None
        self.token = token
        self.conn = None
        self.info = None
        if not self.modern:
            self._initialize()

    def close(self):
        if self.conn is not None:
            self.conn.close()
            self.conn = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _initialize(self):
        r = self.send({"jsonrpc": "2.0", "id": next(self.ids), "method": "initialize", "params": {
            "protocolVersion": self.version, "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"}}}, {})
        assert r.status == 200 and r.result, r
        self.info = r.result
        self.session = r.headers.get("mcp-session-id")
        r = self.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._legacy())
        assert r.status == 202, r

    def _legacy(self):
        h = {"MCP-Protocol-Version": self.version}
        if self.session:
            h["Mcp-Session-Id"] = self.session
        return h

    def _closed(self):
        """Has the server closed the kept connection, which was idle for too long?"""
        if self.conn.sock is None:
            return False
        look = select.poll()	# select(2) has no place for a descriptor above 1023
        look.register(self.conn.sock, select.POLLIN)
        return bool(look.poll(0))

    def send(self, message, headers):
        """POST on the kept connection; a dead one is replaced for the next
        request, never is the request itself sent twice."""
        h = {"Accept": "application/json, text/event-stream",
             "Content-Type": "application/json"}
        if self.token:
            h["Authorization"] = "Bearer " + self.token
        h.update(headers)
        if self.conn is not None and self._closed():
            self.close()
        if self.conn is None:
            self.conn = connection(self.where(), self.timeout)
        try:
            self.conn.request("POST", self.path, json.dumps(message).encode(), h)
            return Reply(self.conn.getresponse())
        except BaseException:
            self.close()
            raise

    def request(self, method, params=None, headers=None):
        params = dict(params or {})
        if self.modern:
            params["_meta"] = {**meta(self.version), **params.get("_meta", {})}
            h = {"MCP-Protocol-Version": self.version, "Mcp-Method": method}
            if method in ("tools/call", "prompts/get"):
                h["Mcp-Name"] = params["name"]
            elif method == "resources/read":
                h["Mcp-Name"] = params["uri"]
        else:
            h = self._legacy()
        h.update(headers or {})
        return self.send({"jsonrpc": "2.0", "id": next(self.ids), "method": method,
                          "params": params}, h)

    def call(self, name, arguments=None):
        params = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        return self.request("tools/call", params)

    def tools(self):
        r = self.request("tools/list")
        assert r.result is not None, r
        return {t["name"]: t for t in r.result["tools"]}

    def manage(self, name, /, **arguments):
        """A management tool that must succeed: the object in its text."""
        r = self.call(name, arguments)
        assert r.result is not None and not r.result.get("isError"), (r.error or r.result, r)
        return json.loads(r.result["content"][0]["text"])


def text(reply):
    """The text of a tool's result."""
    assert reply.result is not None, reply
    return "".join(c.get("text", "") for c in reply.result["content"])
