"""mcpbox-stdio between a host that speaks lines and a real gatewayd: both eras,
streams, cancelling, errors, restarts."""
import contextlib
import http.server
import json
import os
import queue
import socket
import subprocess
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, meta
from harness.instance import BUILD
from harness.patience import patience, until

BRIDGE = os.path.join(BUILD, "gatewayd", "stdio", "mcpbox-stdio")
SLOW = """import time, mcpbox
def main(n: int = 3):
    for i in range(n):
        mcpbox.progress(i + 1, total=n)
        time.sleep(0.05)
    return "slept"
"""


class Host:
    """What a host does: starts the program, writes lines, reads lines."""

    def __init__(self, *args):
        self.p = subprocess.Popen([BRIDGE, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.p.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.p.stdin.write(data + b"\n")
        self.p.stdin.flush()

    def get(self):
        return self.lines.get(timeout=patience(20))

    def answer(self, ident):
        """The answer with this id; what came before it."""
        before = []
        while True:
            m = self.get()
            assert m is not None, f"the bridge ended: {self.p.stderr.read()}"
            if m.get("id") == ident and "method" not in m:
                return m, before
            before.append(m)

    def ask(self, ident, method, params=None):
        self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}})
        return self.answer(ident)[0]

    def initialize(self, version="2025-11-25"):
        m = self.ask("i", "initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": {"name": "host", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return m["result"]

    def close(self):
        self.p.stdin.close()
        assert self.p.wait(patience(20)) == 0, self.p.stderr.read()


@contextlib.contextmanager
def host(*args):
    h = Host(*args)
    try:
        yield h
    finally:
        h.p.kill()
        h.p.wait()


def url(instance):
    return "http://%s:%d/mcp" % instance.address()


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        return (flow.publish(instance, c, "bridge", "greet", 'def main(name: str):\n    return f"Hi {name}"\n'),
                flow.publish(instance, c, "bridge", "slow", SLOW))


def test_legacy_from_initialize_to_goodbye(instance, tools):
    with host("--url", url(instance)) as h:
        assert h.initialize()["protocolVersion"] == "2025-11-25"
        listed = {t["name"] for t in h.ask(1, "tools/list")["result"]["tools"]}
        assert set(tools) <= listed
        r = h.ask("two", "tools/call", {"name": tools[0], "arguments": {"name": "Ä\nö"}})
        assert r["result"]["content"][0]["text"] == "Hi Ä\nö"
        assert h.ask(3, "ping")["result"] == {}
        # The error of the server, with the id of the host's request.
        assert h.ask(4, "tools/call", {"name": "no_such"})["error"]["code"] == -32602
        h.close()


def test_progress_comes_before_the_result(instance, tools):
    with host("--url", url(instance)) as h:
        h.initialize()
        h.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
            "name": tools[1], "arguments": {}, "_meta": {"progressToken": "p"}}})
        r, before = h.answer(5)
        assert r["result"]["content"][0]["text"] == "slept"
        assert [m["params"]["progress"] for m in before if m["method"] == "notifications/progress"] == [1, 2, 3]


def test_modern(instance, tools):
    with host("--url", url(instance)) as h:
        r = h.ask(1, "server/discover", {"_meta": meta()})["result"]
        assert "2026-07-28" in r["supportedVersions"]
        r = h.ask(2, "tools/call", {"name": tools[0], "arguments": {"name": "you"}, "_meta": meta()})
        assert r["result"]["resultType"] == "complete" and r["result"]["content"][0]["text"] == "Hi you"
        # A name that no header can carry is encoded, and refused as a tool, not as a header.
        r = h.ask(3, "tools/call", {"name": "grüße", "arguments": {}, "_meta": meta()})
        assert r["error"]["code"] == -32602, r


def test_marked_arguments_travel_as_headers_too(instance, tools):
    """x-mcp-header: learnt from the list, as the specification asks of clients."""
    schema = {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer", "x-mcp-header": "N"}}}
    with Client(instance.address) as c:
        server = next(s["id"] for s in c.manage("mcpbox_list_servers")["servers"] if s["name"] == "bridge")
        tool = c.manage("mcpbox_create_tool", server_id=server, name="marked", description="Marked.",
                        input_schema=schema, python_code="def main(region=None, n=None): return f'{region} {n}'")["id"]
        c.manage("mcpbox_request_publish", tool_id=tool)
    item = flow.pending(instance, "marked")
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    call = {"name": "bridge__marked", "arguments": {"region": " Süd", "n": 7}, "_meta": meta()}
    with host("--url", url(instance)) as h:
        # Before any list the bridge can't know; the server says what is missing.
        assert h.ask(1, "tools/call", call)["error"]["code"] == -32020
        assert h.ask(2, "tools/list", {"_meta": meta()})["result"]["tools"]
        assert h.ask(3, "tools/call", call)["result"]["content"][0]["text"] == " Süd 7"


def test_cancelling_on_the_modern_wire_kills_the_call(instance, tools):
    with host("--url", url(instance)) as h:
        h.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": tools[1], "arguments": {"n": 10000}, "_meta": meta()}})
        until(lambda: any(e["tool"] == tools[1] and e["state"] == "open"
                          for e in instance.ctl_json("executions")["items"]))
        h.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})

        def newest():
            return next(e for e in instance.ctl_json("executions")["items"] if e["tool"] == tools[1])
        until(lambda: newest()["state"] == "closed", say=newest)
        assert newest()["outcome"] == "killed"
        assert h.ask(8, "server/discover", {"_meta": meta()})["result"]


def test_answers_come_after_the_input_has_ended(instance, tools):
    """echo '...' | mcpbox-stdio"""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tools[1], "arguments": {"n": 4}, "_meta": meta()}})
    p = subprocess.run([BRIDGE, "--url", url(instance)], input=line.encode(), capture_output=True,
                       timeout=patience(30), check=True)
    got = [json.loads(text) for text in p.stdout.splitlines()]
    assert got[-1]["id"] == 1 and got[-1]["result"]["content"][0]["text"] == "slept"


@pytest.mark.parametrize("line, code", [
    (b"{", -32700), (b"17", -32600), (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"\\u0000"}', -32600)])
def test_a_line_that_is_no_message_has_one_error_and_breaks_nothing(instance, line, code):
    with host("--url", url(instance)) as h:
        h.send(line)
        assert h.get()["error"]["code"] == code
        assert h.initialize()["serverInfo"]["name"]


def test_nobody_there():
    """A request waits a while for the suite to start, then is told."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{s.getsockname()[1]}/mcp"
        with host("--url", closed) as h:
            began = time.monotonic()
            h.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            m = h.get()
            assert m["id"] == 1 and m["error"]["data"]["failure_mode"] == "busy"
            assert "is mcpbox running?" in m["error"]["message"]
            assert time.monotonic() - began > 8


class Played(http.server.BaseHTTPRequestHandler):
    """A server whose session ends after each second request, and whose streams break."""
    protocol_version = "HTTP/1.1"
    seen = []

    def log_message(self, *args):
        pass

    def reply(self, status, kind=None, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.seen.append(("GET", self.headers.get("Last-Event-ID"), self.headers.get("Mcp-Session-Id")))
        if self.headers.get("Last-Event-ID") == "e-1":
            self.reply(200, "text/event-stream", b'id: e-2\r\ndata: {"jsonrpc":"2.0",\r\ndata: "id":9,"result":{"late":true}}\r\n\r\n')
        else:
            self.reply(405)

    def do_DELETE(self):
        self.seen.append(("DELETE", None, self.headers.get("Mcp-Session-Id")))
        self.reply(204)

    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get("Mcp-Session-Id")
        self.seen.append((m.get("method"), m.get("id"), session))
        if m.get("method") == "initialize":
            n = sum(s[0] == "initialize" for s in self.seen)
            body = {"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25", "n": n}}
            self.reply(200, "application/json", json.dumps(body).encode(), Mcp_Session_Id=f"s{n}")
        elif "id" not in m:
            self.reply(202)
        elif m["method"] == "ends" and session == "s1":
            self.reply(404, "application/json", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"gone"}}')
        elif m["method"] == "breaks":
            self.reply(200, "text/event-stream", b'retry: 20\nid: e-1\ndata: \n\n: comment\n\n')
        elif m["method"] == "silent":
            self.reply(200, "text/event-stream", b": nothing\n\n")
        else:
            self.reply(200, "application/json", json.dumps(
                {"jsonrpc": "2.0", "id": m["id"], "result": {"session": session}}, indent=1).encode())


@pytest.fixture
def played():
    Played.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Played)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:%d/mcp" % server.server_port
    server.shutdown()
    server.server_close()


def test_a_request_waits_for_a_suite_that_starts():
    Played.seen = []
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with host("--url", f"http://127.0.0.1:{port}/mcp") as h:
        h.send({"jsonrpc": "2.0", "id": 1, "method": "early"})
        time.sleep(1)
        assert h.lines.empty()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Played)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            assert h.answer(1)[0]["result"] == {"session": None}
            assert [s[0] for s in Played.seen] == ["early"]
        finally:
            server.shutdown()
            server.server_close()


def test_a_session_that_ended_is_begun_again_unseen(played):
    with host("--url", played) as h:
        h.initialize()
        assert h.ask(1, "ends")["result"] == {"session": "s2"}
        h.close()
    assert [s[0] for s in Played.seen].count("initialize") == 2
    assert ("DELETE", None, "s2") in Played.seen
    # The request went out twice: refused unserved the first time, never served twice.
    assert [s for s in Played.seen if s[0] == "ends"] == [("ends", 1, "s1"), ("ends", 1, "s2")]


def test_a_stream_that_broke_is_resumed_never_sent_again(played):
    with host("--url", played) as h:
        h.initialize()
        assert h.ask(9, "breaks")["result"] == {"late": True}
    assert [s[0] for s in Played.seen].count("breaks") == 1
    assert ("GET", "e-1", "s1") in Played.seen


def test_a_stream_that_can_t_be_resumed_is_lost_not_repeated(played):
    with host("--url", played) as h:
        h.initialize()
        assert h.ask(9, "silent")["error"]["data"]["failure_mode"] == "lost"
    assert [s[0] for s in Played.seen].count("silent") == 1


def test_answers_are_one_line_each(played):
    with host("--url", played) as h:
        h.initialize()
        assert h.ask(1, "indented")["result"] == {"session": "s1"}


def test_a_host_that_does_not_read_stops_the_server_not_our_memory(instance, tools):
    """Lists until the pipe is full: the bridge waits, and goes on when read."""
    p = subprocess.Popen([BRIDGE, "--url", url(instance)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        def feed():
            for i in range(200):
                p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/list",
                                          "params": {"_meta": meta()}}).encode() + b"\n")
            p.stdin.close()
        threading.Thread(target=feed, daemon=True).start()
        seen = []

        def settled():
            """It has all it takes: half a second without a page or a tick of its own. Until
            then each answer that arrives is there twice."""
            with open(f"/proc/{p.pid}/statm", encoding="ascii") as f:
                resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
                seen.append((resident, *f.read().rsplit(")", 1)[1].split()[11:13]))
            return len(seen) > 2 and seen[-1] == seen[-2] and seen[-1][1:] != seen[0][1:]
        until(settled, step=0.5, say=lambda: seen)
        assert seen[-1][0] < 64 << 20, seen
        ids = sorted(json.loads(line)["id"] for line in p.stdout)
        assert ids == list(range(200)) and p.wait(patience(20)) == 0
    finally:
        p.kill()
        p.wait()


def test_usage():
    for args in (["--nothing"], ["extra"], ["--url", "ftp://127.0.0.1/"], ["--token-file", "/nonexistent"]):
        assert subprocess.run([BRIDGE, *args], capture_output=True, check=False).returncode == 2, args


@pytest.mark.parametrize("owner, mode, good", [
    (0, 0o600, True), (0, 0o400, True), (0, 0o640, False), (0, 0o620, False), (0, 0o604, False), (0, 0o602, False),
    # shared by somebody else, by group or ACL
    (12345, 0o640, True), (12345, 0o644, False)])
def test_others_may_not_read_the_token(tmp_path, owner, mode, good):
    path = tmp_path / "token"
    path.write_text("canary-token\n")
    os.chown(path, owner, owner)
    path.chmod(mode)
    r = subprocess.run([BRIDGE, "--token-file", path], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert r.returncode == (0 if good else 2), r
    assert good or (f"other users may read or write {path}" in r.stderr and "chmod 600" in r.stderr)


def test_a_token_comes_by_a_pipe():
    for program, status in (("echo canary-token", 0), ("true", 2)):
        r = subprocess.run(["bash", "-c", f"exec {BRIDGE} --token-file <({program})"], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=False)
        assert r.returncode == status, r
