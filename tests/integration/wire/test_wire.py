"""A hostile or unusual client on TCP: raw bytes, floods, slow readers, and
clients that leave at every moment."""
import collections
import contextlib
import http.client
import json
import os
import select
import socket
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request
from harness.instance import Instance
from harness.patience import patience, until

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
L = {"MCP-Protocol-Version": LEGACY}


@pytest.fixture(scope="module")
def instance():
    # Room for the floods below beside honest clients.
    i = Instance(sets=["gatewayd-local:max_connections_per_source=512",
                       "gatewayd-local:header_timeout=15s", "sandboxd:queue=512",
                       "sandboxd:queue_wait=60s"])
    yield i
    i.close()


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        return {n: flow.publish(instance, c, "wire", n, code, limits={"timeout_ms": 600000}) for n, code in {
            "sleep": "import time\ndef main(s: float = 600) -> str:\n    time.sleep(s)\n    return 'slept'\n",
            # It ends when its file is removed.
            "stays": "import os, time\ndef main() -> str:\n    open('/tmp/stays', 'w').close()\n"
                     "    while os.path.exists('/tmp/stays'):\n        time.sleep(.02)\n    return 'done'\n",
            "big": "def main() -> str:\n    return 'x' * 1000000\n",
            "steps": "import mcpbox, time\ndef main(n: int = 5) -> int:\n    for i in range(n):\n"
                     "        mcpbox.progress(i + 1, n)\n        time.sleep(0.02)\n    return n\n",
        }.items()}


def gateway_pid(instance):
    return instance.service_pid("gatewayd-local")


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def message(method, params=None, rid=1):
    m = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        m["params"] = params
    if rid is not None:
        m["id"] = rid
    return m


def post_bytes(body, fields=b""):
    return HEAD + fields + b"Content-Length: %d\r\n\r\n" % len(body) + body


def raw(address, data, source=None, timeout=patience(10)):
    """Sends bytes, returns the status line's code of the first answer (0: the
    connection was closed without one) and all that came with it."""
    with socket.create_connection(address, timeout=timeout, source_address=source) as s:
        s.sendall(data)
        got = b""
        while b"\r\n\r\n" not in got:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
        return (int(got[9:12]) if got else 0), got


def open_call(instance, tool, arguments, modern):
    params = {"name": tool, "arguments": arguments}
    if modern:
        params["_meta"] = meta()
        fields = (f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\n"
                  f"Mcp-Name: {tool}\r\n")
    else:
        fields = f"MCP-Protocol-Version: {LEGACY}\r\n"
    s = socket.create_connection(instance.address(), timeout=patience(10))
    s.sendall(post_bytes(json.dumps(message("tools/call", params)).encode(), fields.encode()))
    return s


def outcomes(instance, tool):
    return collections.Counter(row[0] for row in instance.psql(
        f"SELECT coalesce(outcome, state) FROM mcpbox.executions WHERE tool = '{tool}'"))


def counted(instance, tool):
    """Counts its calls, after one more that is sent here: the control, for it is counted."""
    before = sum(outcomes(instance, tool).values())
    call = message("tools/call", {"name": tool, "arguments": {"s": 0}})
    r = request(instance.address(), body=call, headers=L)
    assert r.result["content"][0]["text"] == "slept", r
    now = sum(outcomes(instance, tool).values())
    assert now == before + 1
    return now


# What clients of other languages send.

def test_offer_to_upgrade_is_served_as_it_stands(instance):
    """Java's HttpClient offers h2c; a switch of protocols must not follow."""
    for offer in (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                  b"HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n",
                  b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"):
        with socket.create_connection(instance.address(), timeout=patience(10)) as s:
            for _ in range(2):      # and the connection goes on
                s.sendall(post_bytes(PING, offer))
                got = s.recv(65536)
                assert got.startswith(b"HTTP/1.1 200 ") and got.endswith(b'"result":{}}')


def test_null_is_as_good_as_absent(instance):
    for m in (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}',
              b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null,"_meta":null}}',
              b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
              b'{"name":"mcpbox_list_servers","arguments":null}}'):
        r = request(instance.address(), body=m, headers=L)
        assert r.status == 200 and r.result, r


@pytest.mark.parametrize("params, faults", [
    ({"argument": {"s": 0}}, {"/params/argument": "Write arguments."}),
    ({"Arguments": {"s": 0}}, {"/params/Arguments": "Write arguments."}),
    ({"arguments": {"s": 0}, "task": {}, "stream": False}, {
        f"/params/{n}": "Leave it out: tools/call of 2025-06-18 has name, arguments, _meta."
        for n in ("task", "stream")}),
])
def test_a_member_nobody_defined_runs_nothing(instance, tools, params, faults):
    before = counted(instance, tools["sleep"])
    r = request(instance.address(), body=message("tools/call", {"name": tools["sleep"], **params}),
                headers={"MCP-Protocol-Version": "2025-06-18"})
    assert (r.status, r.error["code"]) == (200, -32602)
    assert {f["pointer"]: f["fix"] for f in r.error["data"]["faults"]} == faults
    assert r.error["message"].startswith(": ".join(next(iter(faults.items()))))
    assert counted(instance, tools["sleep"]) == before + 1


def test_a_message_is_one_thing(instance, tools):
    """A request that is a response, too, and members that JSON-RPC does not have."""
    call = message("tools/call", {"name": tools["sleep"], "arguments": {"s": 0}})
    before = counted(instance, tools["sleep"])
    for more, pointers in (({"result": {}}, ["/result"]), ({"error": {}}, ["/error"]),
                           ({"Params": {}, "meta": {}}, ["/Params", "/meta"])):
        r = request(instance.address(), body={**call, **more}, headers=L)
        assert (r.status, r.error["code"], r.value["id"]) == (400, -32600, 1)
        assert sorted(f["pointer"] for f in r.error["data"]["faults"]) == pointers
    assert counted(instance, tools["sleep"]) == before + 1
    r = request(instance.address(), body=message("notifications/cancelled", {"request_id": 1}, None), headers=L)
    assert (r.status, r.error["data"]["faults"]) == (400, [
        {"pointer": "/params/request_id", "fix": "Write requestId."}])


@pytest.mark.parametrize("rid, good", [
    ('"a"', True), ('""', True), ("0", True), ("-1", True), ("12345678901234567890123", True),
    ('"' + "x" * 1022 + '"', True), ('"' + "x" * 1023 + '"', False), ("1.0", False),
    ("1e3", False), ("null", False), ("true", False), ("[]", False)])
def test_ids_come_back_as_they_were_sent(instance, rid, good):
    r = request(instance.address(), headers=L, body=b'{"jsonrpc":"2.0","id":%s,"method":"ping"}'
                % rid.encode())
    if good:
        assert r.status == 200 and r.raw == b'{"jsonrpc":"2.0","id":%s,"result":{}}' % rid.encode()
    else:
        assert r.status == 400 and r.error["code"] == -32600 and r.value.get("id") is None


def test_what_asks_nothing_is_202(instance):
    for body in ({"jsonrpc": "2.0", "id": 1, "result": {}},
                 {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
                 message("notifications/unknown", rid=None)):
        r = request(instance.address(), body=body, headers=L)
        assert (r.status, r.raw) == (202, b""), r
    r = request(instance.address(), body=[message("notifications/initialized", rid=None),
                                          {"jsonrpc": "2.0", "id": 5, "result": {}}])
    assert (r.status, r.raw) == (202, b""), r


def test_mixed_batch(instance, tools):
    r = request(instance.address(), body=[
        message("ping", rid="a"), message("no/such", rid=2),
        message("notifications/initialized", rid=None), {"jsonrpc": "2.0", "id": 9, "result": {}},
        message("tools/call", {"name": tools["sleep"], "arguments": {"s": 0}}, 7), 5])
    assert r.status == 200
    by_id = {m["id"]: m for m in r.value}
    assert len(r.value) == 4 and set(by_id) == {"a", 2, 7, None}
    assert by_id["a"]["result"] == {} and by_id[2]["error"]["code"] == -32601
    assert by_id[7]["result"]["content"][0]["text"] == "slept"
    assert by_id[None]["error"]["code"] == -32600


@pytest.mark.parametrize("size, status", [(4 * 1024 * 1024, 200), (4 * 1024 * 1024 + 1, 413),
                                          (6 * 1024 * 1024, 413)])
def test_largest_body(instance, size, status):
    """Also one beyond the limit learns why, from a library that reads only
    after it has sent all."""
    frame = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"%s"}}'
    body = (frame % ("x" * (size - len(frame) + 2))).encode()
    assert len(body) == size
    assert request(instance.address(), body=body, headers=L).status == status


@pytest.mark.parametrize("host, good", [
    ("localhost", True), ("LOCALHOST:1", True), ("127.0.0.1", True), ("127.9.8.7:80", True),
    ("[::1]", True), ("[::1]:5", True), ("localhost.", False), ("127.0.0.1.", False),
    ("u@localhost", False), ("localhost@evil", False), ("localhost, evil", False),
    ("0.0.0.0", False), ("[::ffff:127.0.0.1]", False), ("2130706433", False), ("127.1", False),
    ("[::1]x", False), ("localhost:", False), ("", False), ("localhost:1:2", False)])
def test_host(instance, host, good):
    status, _ = raw(instance.address(), f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert status == 200 if good else status in (400, 403)


@pytest.mark.parametrize("line, status", [
    (b"GET /mcp HTTP/1.1", 405), (b"HEAD /mcp HTTP/1.1", 405), (b"OPTIONS /mcp HTTP/1.1", 204),
    (b"GET /%6dcp HTTP/1.1", 404), (b"GET //mcp HTTP/1.1", 404), (b"GET /x/../mcp HTTP/1.1", 404),
    (b"GET /mcp?a=b HTTP/1.1", 405), (b"GET http://localhost/mcp HTTP/1.1", 400),
    (b"OPTIONS * HTTP/1.1", 400), (b"CONNECT localhost:80 HTTP/1.1", 400),
    (b"TRACE / HTTP/1.1", 501), (b"GET /mcp HTTP/1.0", 505), (b"PRI * HTTP/2.0", 505)])
def test_targets(instance, line, status):
    code, got = raw(instance.address(), line + b"\r\nHost: localhost\r\n\r\n")
    assert code == status, got
    if code == 405:
        assert b"\r\nAllow: POST, DELETE, OPTIONS\r\n" in got


def test_pipelined_requests_are_answered_in_turn(instance):
    many = b"".join(post_bytes(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % i) for i in range(200))
    with socket.create_connection(instance.address(), timeout=patience(10)) as s:
        s.sendall(many)
        got = b""
        while got.count(b'"result":{}') < 200:
            piece = s.recv(65536)
            assert piece, got[-500:]
            got += piece
    ids = [int(x.split(b",")[0]) for x in got.split(b'"id":')[1:]]
    assert ids == list(range(200))


# Clients that leave, and those who would end another's call.

def test_closing_a_modern_stream_kills(instance, tools):
    s = open_call(instance, tools["sleep"], {}, modern=True)
    until(lambda: outcomes(instance, tools["sleep"])["open"] == 1)
    until(instance.runners)
    before = outcomes(instance, tools["sleep"])["killed"]
    s.close()
    until(lambda: outcomes(instance, tools["sleep"])["killed"] == before + 1)


def test_closing_at_any_moment_leaves_nothing_open(instance, tools):
    """Between authorisation and RUN too: what sandboxd holds is let go at once,
    else a burst of such clients would fill its set."""
    for i in range(60):
        s = open_call(instance, tools["sleep"], {}, modern=True)
        time.sleep(i / 4000)
        s.close()
    until(lambda: not outcomes(instance, tools["sleep"])["open"], say=lambda: outcomes(instance, tools["sleep"]))


def test_closing_a_legacy_connection_cancels_nothing(instance, tools):
    before = outcomes(instance, tools["stays"])
    s = open_call(instance, tools["stays"], {}, modern=False)
    files = until(lambda: [f for p in instance.pool()["mcpbox-runner"]
                           if os.path.exists(f := f"/proc/{p}/root/tmp/stays")])
    assert outcomes(instance, tools["stays"]) == before + collections.Counter(open=1)
    s.close()
    # The gateway has seen it when it answers who came later.
    assert raw(instance.address(), HEALTH)[0] == 200
    assert outcomes(instance, tools["stays"]) == before + collections.Counter(open=1)
    os.unlink(files[0])
    until(lambda: outcomes(instance, tools["stays"]) == before + collections.Counter(done=1),
          say=lambda: outcomes(instance, tools["stays"]))


def test_only_the_own_session_cancels(instance, tools):
    answers = {}

    def run(client, key):
        answers[key] = client.send(message("tools/call", {"name": tools["sleep"], "arguments": {}}, 7), client._legacy())
    with Client(instance.address, LEGACY) as a, Client(instance.address, LEGACY) as b:
        t = threading.Thread(target=run, args=(a, "a"))
        t.start()
        until(lambda: outcomes(instance, tools["sleep"])["open"] == 1)
        own = {**L, "Mcp-Session-Id": a.session}
        cancel = message("notifications/cancelled", {"requestId": 7}, None)
        for headers in ({**L, "Mcp-Session-Id": b.session}, L):
            assert request(instance.address(), body=cancel, headers=headers).status == 202
        flipped = a.session[:-1] + ("A" if a.session[-1] != "A" else "B")
        assert request(instance.address(), body=cancel,
                       headers={**L, "Mcp-Session-Id": flipped}).status == 404
        other = message("notifications/cancelled", {"requestId": "7"}, None)
        assert request(instance.address(), body=other, headers=own).status == 202
        time.sleep(0.5)
        assert t.is_alive()
        assert request(instance.address(), body=cancel, headers=own).status == 202
        t.join(patience(5))
        assert not t.is_alive()
    assert answers["a"].result["_meta"]["mcpbox/failure"]["failure_mode"] == "killed"


# Floods.

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_two_thousand_connections(instance):
    """More than are let in, from many addresses, and silent: no spinning, the
    oldest are closed, and whoever says something is served."""
    address, pid = instance.address(), gateway_pid(instance)
    with contextlib.ExitStack() as stack:
        socks = []
        begun = time.monotonic()
        for i in range(2000):
            s = socket.socket()
            stack.callback(s.close)
            s.settimeout(patience(5))
            s.bind((f"127.0.0.{2 + i % 8}", 0))
            s.connect(address)
            socks.append(s)
        poll = select.poll()
        for s in socks:
            poll.register(s, select.POLLIN)
        closed = set()
        until(lambda: closed.update(fd for fd, _ in poll.poll(0)) or len(closed) >= 2000 - 1024)
        # Before the time of the first was over (header_timeout) none had left by itself.
        if time.monotonic() - begun < 15:
            assert closed == {s.fileno() for s in socks[:2000 - 1024]}

        def idle():
            begin = cpu(pid)
            time.sleep(1)
            return cpu(pid) == begin
        until(idle)     # one that spins never is
        assert raw(address, HEALTH)[0] == 200
    assert gateway_pid(instance) == pid


def test_silent_connections_shut_nobody_out(instance):
    """As many of one address as there may be, all kept alive after a request:
    the next ones are served, and those that were idle for longest have gone."""
    address = instance.address()
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_connection(address, timeout=patience(5))) for _ in range(512)]
        for s in socks:
            s.sendall(HEALTH)
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
        for _ in range(4):
            assert raw(address, HEALTH)[0] == 200
        assert socks[0].recv(1) == b""
        socks[-1].sendall(HEALTH)
        assert socks[-1].recv(65536).startswith(b"HTTP/1.1 200 ")


def over(s):
    """Tells whether it was answered or closed."""
    p = select.poll()
    p.register(s, select.POLLIN)
    return bool(p.poll(0))


def test_one_source_leaves_room_for_others(instance):
    """Connections whose requests are under way are never closed for others: one
    too many is told which limit it met."""
    address = instance.address()
    with contextlib.ExitStack() as stack:
        held = []

        def told():
            for s in [s for s in held if over(s)]:     # header_timeout ended it
                held.remove(s)
                s.close()
            while len(held) < 512:
                held.append(stack.enter_context(socket.create_connection(address, timeout=patience(5))))
                held[-1].sendall(b"GET /health HTTP/1.1\r\nHo")
            status, got = raw(address, HEALTH)
            return status == 503 and got
        head, _, body = until(told).partition(b"\r\n\r\n")
        error = json.loads(body)["error"]
        assert b"\r\nRetry-After: 1" in head and error["data"]["failure_mode"] == "busy", error
        assert error["message"] == ("Not served now: 512 connections of your address have requests under way, "
                                    "which is the limit max_connections_per_source.")
        assert raw(address, HEALTH, source=("127.0.0.77", 0))[0] == 200


def test_slow_readers_of_large_results(instance, tools):
    """They hold their own result and nobody else up."""
    with contextlib.ExitStack() as stack:
        socks = []
        for _ in range(60):
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(patience(60))
            s.connect(instance.address())
            body = json.dumps(message("tools/call", {"name": tools["big"]})).encode()
            s.sendall(post_bytes(body, b"MCP-Protocol-Version: 2025-11-25\r\n"))
            socks.append(s)
        until(lambda: outcomes(instance, tools["big"])["done"] >= 60)
        with Client(instance.address) as c:     # none of them has read anything
            assert c.call(tools["sleep"], {"s": 0}).result
        for s in socks:
            r = http.client.HTTPResponse(s)
            r.begin()
            got = json.loads(r.read())
            assert len(got["result"]["content"][0]["text"]) == 1000000


def test_a_hundred_streams_at_once(instance, tools):
    """Each stream has its own call's progress, in order, then its result."""
    wrong = []

    def one(i):
        with Client(instance.address, timeout=patience(90)) as c:
            r = c.request("tools/call", {"name": tools["steps"], "arguments": {"n": 5},
                                         "_meta": {"progressToken": f"t{i}"}})
            steps = [e["params"] for e in r.events if e.get("method") == "notifications/progress"]
            if ([p["progress"] for p in steps] != [1, 2, 3, 4, 5] or
                    {p["progressToken"] for p in steps} != {f"t{i}"} or
                    r.result["content"][0]["text"] != "5"):
                wrong.append((i, r))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, (len(wrong), wrong[:2])


# The tunnel's listener.

class Tunnel:
    """Requests by hand at the tunnel's socket."""

    def __init__(self, instance):
        self.path = instance.run("gatewayd-tunnel", "mcp.sock")
        # Attached: its refusals are then admind's, not "busy".
        until(lambda: self.post(PING, b"Authorization: Bearer x\r\n")[0] == 401)

    def send(self, data):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(patience(20))
            s.connect(self.path)
            s.sendall(data)
            got = b""
            while b"\r\n\r\n" not in got:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
            return int(got[9:12]), got

    def post(self, body, fields=b""):
        return self.send(b"POST /mcp HTTP/1.1\r\nHost: mcp.example.com\r\n" + fields +
                         b"Content-Length: %d\r\n\r\n" % len(body) + body)


def test_the_tunnel_lets_nobody_in_without_a_credential(instance, tools):
    call = json.dumps(message("tools/call", {"name": tools["sleep"], "arguments": {"s": 0}})).encode()
    with Client(instance.address, LEGACY) as local:
        session = local.session.encode()
        before = instance.psql("SELECT count(*) FROM mcpbox.executions")
        t = Tunnel(instance)
        bodies = (PING, call, b"{", b"", json.dumps(message("tools/list")).encode(),
                  json.dumps(message("initialize", {"protocolVersion": LEGACY, "capabilities": {},
                                                    "clientInfo": {"name": "x", "version": "1"}})).encode())
        fields = (b"", b"Authorization: Bearer " + b"A" * 43 + b"\r\n",
                  b"Authorization: Basic bG9jYWw6\r\n", b"Authorization: Bearer local\r\n",
                  b"Authorization: \r\n", b"Mcp-Session-Id: " + session + b"\r\n",
                  b"Authorization: Bearer x\r\nMcp-Session-Id: " + session + b"\r\n",
                  b"X-Forwarded-For: 127.0.0.1\r\n", b"Cf-Access-Jwt-Assertion: a.b.c\r\n")
        for body in bodies:
            for f in fields:
                status, got = t.post(body, f)
                assert status == 401, (body, f, got)
                assert b"\r\nWWW-Authenticate: Bearer" in got
                assert b"Mcp-Session-Id" not in got and b'"result"' not in got
        for method in (b"GET", b"DELETE", b"PUT"):
            status, got = t.send(method + b" /mcp HTTP/1.1\r\nHost: x\r\n\r\n")
            assert status == 401 and b"\r\nWWW-Authenticate: Bearer" in got
        # A page of any origin, and what only local clients may ask.
        assert t.post(PING, b"Origin: http://evil.example\r\n")[0] == 403
        assert t.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 404
        # The local listener goes on beside it.
        assert local.call(tools["sleep"], {"s": 0}).result["content"][0]["text"] == "slept"
        after = instance.psql("SELECT count(*) FROM mcpbox.executions")
        assert int(after[0][0]) == int(before[0][0]) + 1
        assert instance.psql("SELECT count(*) FROM mcpbox.executions WHERE listener = 'tunnel'") == [["0"]]
