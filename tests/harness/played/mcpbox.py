"""mcpbox as a proxy sees it: notes each request, and answers as the test says."""
import http.server
import queue
import threading


class Request:
    def __init__(self, handler, body):
        self.method, self.target, self.body = handler.command, handler.path, body
        self.headers = {k.lower(): v for k, v in handler.headers.items()}


class Mcpbox:
    """`answer` gets the handler and the Request; a plain 200 at first. `seen`: a queue of Requests."""

    def __init__(self):
        self.seen = queue.Queue()
        self.plain()
        mcpbox = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def _any(self):
                request = Request(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))
                mcpbox.seen.put(request)
                mcpbox.answer(self, request)

            do_GET = do_POST = do_DELETE = do_PUT = _any

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def plain(self):
        self.answer = lambda h, r: self.say(h, 200, b'{"jsonrpc":"2.0","id":1,"result":{}}')

    @staticmethod
    def say(handler, status, body=b"", **headers):
        handler.send_response(status)
        for k, v in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
            handler.send_header(k.replace("_", "-"), str(v))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
