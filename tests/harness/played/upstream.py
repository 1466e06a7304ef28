"""Other servers, played: one that answers with given bytes, and a small REST
service. Both note what they were asked. A listening socket may be given, so
that they can stand in a network namespace (netns.py)."""
import http.server
import json
import socket
import socketserver
import sys
import threading
import types
import urllib.parse
from pathlib import Path

from harness import listening

HARNESS = Path(__file__).resolve().parents[3] / "sandboxd" / "runner" / "harness"


def runner_modules():
    """The runner's modules in this interpreter, with a played _mcpbox: for
    what can be tested without a sandbox."""
    if "_mcpbox" not in sys.modules:
        fake = types.ModuleType("_mcpbox")
        for i, name in enumerate(("EXCEPTION", "BAD_CODE", "INVALID_ARGUMENTS", "LIMIT", "PROTOCOL", "NO_ANSWER",
                                  "MISSING_GRANT", "UPSTREAM", "UPSTREAM_CHANGED", "TIMEOUT",
                                  "UNKNOWN_RESOURCE"), 1):
            setattr(fake, name, i)
        sys.modules["_mcpbox"] = fake
    if str(HARNESS) not in sys.path:
        sys.path.insert(0, str(HARNESS))


class Raw:
    """Accepts one connection for each reply: bytes, or a function that gets
    the socket. `seen` has the heads (and what came with them)."""

    def __init__(self, *replies, sock=None):
        self.sock = sock or socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.seen = []
        self.replies = replies
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        for reply in self.replies:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            with c:
                try:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        more = c.recv(65536)
                        if not more:
                            break
                        head += more
                    self.seen.append(head)
                    reply(c) if callable(reply) else c.sendall(reply)
                except OSError:
                    pass

    def url(self, path="/", host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def close(self):
        listening.end(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Service:
    """An HTTP server in threads. handle(request) -> (status, headers, body);
    request has method, path, query (pairs), headers and body. A body that is
    no bytes is sent as JSON."""

    def __init__(self, handle, sock=None, context=None):
        service = self
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def any(self):
                parts = urllib.parse.urlsplit(self.path)
                r = types.SimpleNamespace(
                    method=self.command, target=self.path, path=parts.path,
                    query=urllib.parse.parse_qsl(parts.query, keep_blank_values=True), headers=self.headers,
                    body=self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                service.requests.append(r)
                status, headers, body = handle(r)
                if not isinstance(body, bytes):
                    body = json.dumps(body).encode()
                    headers = {"Content-Type": "application/json", **headers}
                self.send_response(status)
                for k, v in headers.items():
                    self.send_header(k, v)
                if status not in (204, 304):
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = any

            def log_message(self, *args):
                pass

        class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *args):
                pass

        self.server = Server(("127.0.0.1", 0), Handler, bind_and_activate=sock is None)
        if sock is not None:
            self.server.socket.close()
            self.server.socket = sock
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def url(self, path="/", host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
