"""Calls that connect: sandboxd, its pool and sandboxd-egress as real processes,
vault, admind and gateway played. What is declared and granted is in the sealed
contexts, as the vault puts it there."""
import contextlib
import json
import os
import select
import signal
import socket
import threading
import time

import pytest

from harness.ipc import Peer
from harness.listening import end
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.egress import DNS, Canary
from harness.played.sandbox import (DONE, FAILED, KILLED, REFUSED, TEST, CTX, Sandbox)
from harness.tlv import tlv

RUNNER = "sandboxd/runner/mcpbox-runner"
WEB, OTHER = "93.184.216.34", "142.250.185.14"
SERVER = bytes(range(16))
#: What is declared and granted to most of these.
API = {"require": ["tcp api.example 0"], "grant": ["tcp api.example 80"], "server": SERVER}
HELLO = """
import socket
def main(host="api.example", port=80, text="ping"):
    with socket.create_connection((host, port), 5) as s:
        s.sendall(text.encode())
        return s.recv(100).decode()
"""


class Web:
    """Answers pong to whatever comes, and keeps count."""

    def __init__(self, ns, address, port=80):
        self.socket = ns.listen(address, port)
        self.came = 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.socket.accept()
                self.came += 1
                threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    @staticmethod
    def serve(s):
        with contextlib.suppress(OSError), s:
            while data := s.recv(65536):
                if data.startswith(b"GET "):
                    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong")
                elif len(data) < 100:
                    s.sendall(b"pong")

    def close(self):
        end(self.socket)


@pytest.fixture(scope="module")
def web(ns):
    w = Web(ns, WEB)
    yield w
    w.close()


@pytest.fixture(scope="module")
def other(ns):
    c = Canary(ns, OTHER, 80)
    c.prove()
    yield c
    c.close()


@pytest.fixture(scope="module")
def names(dns):
    dns.zone["api.example"] = d.Answer(a=[WEB])
    dns.zone["other.example"] = d.Answer(a=[OTHER])
    return dns


@pytest.fixture(scope="module")
def sandbox(ns, names):
    with Sandbox(runner=RUNNER, slots=8, pool_min=1, pool_max=1, egress={"dns_servers": DNS},
                 ns=ns) as s:
        s.await_ready()
        yield s


@pytest.fixture
def admind(sandbox):
    a = sandbox.admind()
    yield a
    a.peer.sock.close()


@pytest.fixture
def gateway(sandbox):
    with sandbox.gateway() as g:
        yield g


def failures():
    from integration.sandbox.test_sandboxd import failures as read
    return read(None)


class Call:
    """One from HELD to its answer; its events are kept."""

    def __init__(self, admind, gateway, code, arguments=b"{}", kind=1, **context):
        self.admind, self.gateway, self.events = admind, gateway, []
        self.execution = admind.held(code, arguments=arguments, kind=kind, **context,
                                     listener="local" if kind == 1 else "admind")
        peer = gateway if kind == 1 else admind.peer
        self.peer = peer
        self.request = peer.start("RUN", execution=self.execution, arguments=arguments)

    def answer(self, timeout=patience(20)):
        deadline = time.monotonic() + timeout
        while True:
            if self.peer is self.admind.peer:
                got, m = self.admind.take(max(0, deadline - time.monotonic()))
            else:
                got, m = self.peer.receive(max(0, deadline - time.monotonic()))
            if m["_"] == "CALL_EVENT":
                self.events.append(json.loads(m["json"]))
            elif got == self.request and m["_"] in ("CALL_RESULT", "REFUSED"):
                break
        self.outcome = m.get("outcome")
        self.failure = failures()[m["failure"]]
        if m["_"] == "CALL_RESULT":
            body = json.loads(m["body_meta"][:m["body_len"]])
            self.text = "\n".join(b["text"] for b in body["content"])
        else:
            self.text = m["message"]
        return self

    def record(self):
        r = self.admind.record(self.execution)
        return r, json.loads(r["network"]) if r["network"] else []

    def wait_for(self, word, timeout=patience(10)):
        """Until the tool has logged this."""
        deadline = time.monotonic() + timeout
        while not any(e.get("data") == word for e in self.events):
            _, m = self.gateway.receive(max(0, deadline - time.monotonic()))
            assert m["_"] == "CALL_EVENT", m
            self.events.append(json.loads(m["json"]))


def call(admind, gateway, code, **kw):
    return Call(admind, gateway, code, **kw).answer()


# --- What is granted. ---

def test_a_granted_host_by_name(admind, gateway, web):
    def told_in_full():
        c = call(admind, gateway, HELLO, **API)
        assert (c.outcome, c.text) == (DONE, "pong"), c.text
        r, (row,) = c.record()
        assert (r["connections"], r["net_refused"]) == (1, 0)
        assert r["net_bytes"] <= 10
        assert (row["host"], row["address"], row["port"], row["protocol"], row["verdict"]) \
            == ("api.example", WEB, 80, "tcp", "connected")
        assert c.events == []
        return r["net_bytes"] >= 8
    # The record may come before the kernel's last figures (METER_FINISH_MS).
    until(told_in_full)


@pytest.mark.parametrize("code", [
    "import urllib.request\ndef main():\n"
    "  return urllib.request.urlopen('http://api.example/', timeout=5).read().decode()",
    "import asyncio\nasync def main():\n"
    "  r, w = await asyncio.open_connection('api.example', 80)\n"
    "  w.write(b'ping'); return (await r.read(4)).decode()",
    "import socket\ndef main():\n  s = socket.socket(); s.connect(('" + WEB + "', 80))\n"
    "  s.send(b'ping'); return s.recv(4).decode()",
], ids=["urllib", "asyncio", "an address"])
def test_ordinary_libraries(admind, gateway, web, code):
    context = {**API, "require": [*API["require"], f"tcp {WEB} 0"],
               "grant": [*API["grant"], f"tcp {WEB} 80"]}
    c = call(admind, gateway, code, **context)
    assert (c.outcome, c.text) == (DONE, "pong"), c.text


def test_a_specification_is_driven(admind, gateway, web):
    """Kind http: our driver, in such a runner."""
    spec = {"method": "GET", "url": "http://api.example/", "parameters": {}}
    c = call(admind, gateway, "", kind_text="http", spec=json.dumps(spec), **API)
    assert "no driver" not in c.text, c.text
    r, rows = c.record()
    assert r["connections"] == 1 and rows[0]["host"] == "api.example", (c.text, rows)


# --- What is not. ---

@pytest.mark.parametrize("context,says", [
    ({**API, "require": ["tcp api.example 0", "tcp other.example 0"]}, "not granted to its server"),
    ({**API, "grant": ["tcp api.example 80", "tcp other.example 80"]}, "not declared by the version"),
    (API, "neither declared nor granted"),
], ids=["not granted", "not declared", "neither"])
def test_both_lists_must_have_it(admind, gateway, web, other, context, says):
    c = call(admind, gateway, HELLO, arguments=b'{"host":"other.example"}', **context)
    assert (c.outcome, c.failure) == (FAILED, "missing_grant"), c.text
    assert "other.example" in c.text and says in c.text, c.text
    assert ("mcpbox_request_network_access" in c.text) == ("granted" in says), c.text
    assert ("mcpbox_update_tool" in c.text) == ("declared" in says), c.text
    (e,) = [e for e in c.events if e["level"] == "warning"]
    assert "other.example" in e["data"]
    r, rows = c.record()
    assert r["failure"] == failures().index("missing_grant")
    assert all(row["verdict"] != "connected" for row in rows)
    assert other.reached() == 0
    # Both: it is reached.
    both = {**API, "require": ["tcp other.example 0"], "grant": ["tcp other.example 80"]}
    Call(admind, gateway, HELLO, arguments=b'{"host":"other.example"}', **both)
    assert select.select([other.socket], [], [], 5)[0]
    assert other.reached() == 1


def test_an_address_is_refused_too(admind, gateway, web, other):
    c = call(admind, gateway, HELLO, arguments=json.dumps({"host": OTHER}).encode(), **API)
    assert (c.outcome, c.failure) == (FAILED, "missing_grant"), c.text
    assert OTHER in c.text and "port 80" in c.text
    r, _ = c.record()
    assert r["net_refused"] == 1 and other.reached() == 0


def test_what_no_grant_opens(admind, gateway):
    everything = {"require": ["tcp * 0"], "grant": ["tcp * 0"], "server": SERVER}
    c = call(admind, gateway, HELLO, arguments=b'{"host":"169.254.169.254"}', **everything)
    assert c.outcome == FAILED and c.failure == "exception", (c.failure, c.text)
    assert "169.254.169.254" in c.text and "Ask for access" not in c.text


def test_one_that_declares_nothing_has_no_way_out(admind, gateway, web):
    came = web.came
    c = call(admind, gateway, HELLO, arguments=json.dumps({"host": WEB}).encode(),
             grant=["tcp * 0"], server=SERVER)
    assert c.outcome == FAILED and c.failure == "exception", c.text
    r, rows = c.record()
    assert (r["connections"], r["net_bytes"], rows, web.came) == (0, 0, [], came)


def test_what_nobody_approved_reaches_nothing(admind, gateway):
    execution, answer = admind.hold(HELLO, kind=TEST, listener="admind", **API)
    assert answer["_"] == "REFUSED", answer


def test_a_refusal_that_the_tool_minds(admind, gateway):
    c = call(admind, gateway, "import socket\ndef main():\n  try:\n"
             "    socket.create_connection(('nowhere.example', 80), 5)\n"
             "  except OSError as e:\n    return type(e).__name__\n", **API)
    assert (c.outcome, c.text) == (DONE, "gaierror"), c.text
    assert "nowhere.example" in c.events[0]["data"]


@pytest.mark.parametrize("host", ["{}.other.example", "{}.api.example"],
                         ids=["refused", "granted"])
def test_a_secret_that_becomes_a_name(admind, gateway, names, web, host):
    """What was looked up is a foreign text: the client, the error and the
    record get it without the call's secrets."""
    canary = "canary7secret7value"
    names.zone["*.api.example"] = d.Answer(a=[WEB])
    code = ("import socket, mcpbox\ndef main():\n"
            f"  host = {host!r}.format(mcpbox.secrets['k'])\n"
            "  socket.create_connection((host, 80), 5).close()\n  raise ValueError('after')\n")
    context = {"require": ["tcp *.api.example 0"], "grant": ["tcp *.api.example 0"],
               "server": SERVER}
    c = call(admind, gateway, code, secrets=[("k", canary)], **context)
    assert c.outcome == FAILED and canary not in c.text
    assert canary not in json.dumps(c.events)
    r, rows = c.record()
    assert canary.encode() not in r["network"] + r["stdout_result"]
    if "api" in host:
        assert rows[0]["host"] == "[secret].api.example", rows
    else:
        assert "[secret].other.example" in c.text, c.text


# --- Limits. ---

def test_bytes_end_the_call(admind, gateway, web):
    c = call(admind, gateway, "import socket\ndef main():\n"
             "  s = socket.create_connection(('api.example', 80), 5)\n"
             "  while True: s.sendall(b'x' * 65536)\n",
             network_bytes=1 << 20, timeout=15000, **API)
    assert (c.outcome, c.failure) == (FAILED, "limit"), c.text
    assert "network_bytes is 1048576 bytes" in c.text
    r, _ = c.record()
    assert r["net_bytes"] >= 1 << 20


def test_rate_ends_the_call(admind, gateway, web):
    c = call(admind, gateway, "import socket, time\ndef main():\n"
             "  s = socket.create_connection(('api.example', 80), 5)\n"
             "  while True:\n    s.sendall(b'x' * 65536)\n    time.sleep(0.001)\n",
             network_rate=1 << 20, timeout=15000, **API)
    assert (c.outcome, c.failure) == (FAILED, "limit"), c.text
    assert "network_rate is 1048576 bytes a minute" in c.text


def test_connections_are_counted(admind, gateway, web):
    c = call(admind, gateway, "import socket\ndef main():\n  n = 0\n  try:\n"
             "    while n < 9:\n"
             "      socket.create_connection(('api.example', 80), 5).close()\n      n += 1\n"
             "  except OSError:\n    pass\n  return n\n", connections=3, **API)
    assert (c.outcome, c.text) == (DONE, "3"), c.text
    assert c.events and "connections" in c.events[0]["data"]


# --- Grants that change while a call runs. ---

LOOP = """
import mcpbox, socket, time
def main():
    last = None
    while True:
        try:
            with socket.create_connection(("api.example", 80), 60):
                now = "in"
        except OSError:
            now = "out"
        if now != last:
            mcpbox.log(now)
            last = now
        time.sleep(0.05)
"""


def test_grants_hold_for_the_next_connect(sandbox, admind, gateway, web):
    server = os.urandom(16)
    c = Call(admind, gateway, LOOP, timeout=600000, **{**API, "server": server})
    c.wait_for("in")
    older = sandbox.vault.seal(server, "admind", 5,
                               tlv((CTX["server"], server), (CTX["grant"], "tcp api.example 80")))
    assert admind.regrant(server, [])["_"] == "OK"
    c.wait_for("out")
    # One that was sealed before is too late, another server's is none of its,
    # and one that names another inside opens for nobody.
    assert admind.regrant(server, [], sealed=older)["_"] == "OK"
    assert admind.regrant(server, [], sealed=older)["_"] == "REFUSED"
    assert admind.regrant(os.urandom(16), ["tcp api.example 80"])["_"] == "OK"
    assert admind.regrant(server, ["tcp api.example 80"], inside=os.urandom(16))["_"] == "REFUSED"
    c.events.clear()
    with pytest.raises(TimeoutError):
        c.wait_for("in", 1)
    assert admind.regrant(server, ["tcp api.example 80"])["_"] == "OK"
    c.wait_for("in")
    gateway.send("CANCEL", execution=c.execution)
    assert c.answer().outcome in (KILLED, None)


def test_no_gateway_may_say_it(sandbox, gateway):
    sealed = sandbox.vault.seal(SERVER, "admind", 5, tlv((CTX["server"], SERVER)))
    gateway.start("REGRANT", server=SERVER, context=sealed)
    assert gateway.closed()


# --- egress ends, hangs, or is not there. ---

PATIENT = """
import mcpbox, os, socket, time
def main():
    mcpbox.log("ready")
    while True:
        try:
            with socket.create_connection(("api.example", 80), 60) as s:
                s.sendall(b"ping")
                if tries:
                    return s.recv(4).decode()
                mcpbox.log("first")
                tries.append(1)
        except OSError as e:
            tries.append(e)
        time.sleep(0.2)
tries = []
"""


def test_egress_is_restarted(sandbox, admind, gateway, web):
    c = Call(admind, gateway, PATIENT, timeout=600000, **API)
    c.wait_for("first")
    sandbox.kill("egress")
    # Who connects to nothing does not notice.
    with sandbox.gateway() as g:
        assert call(admind, g, "def main():\n  return 1\n").text == "1"
    sandbox.start("egress")
    assert (c.answer().outcome, c.text) == (DONE, "pong"), (
        c.text, sandbox.log("sandboxd")[-2000:], sandbox.log("sandboxd-spawn")[-2000:])
    r, rows = c.record()
    assert rows[0]["verdict"] == "unknown" and rows[-1]["verdict"] == "connected"


BUSY = """
import socket, time
def main(n=0):
    time.sleep(n % 5 * 0.05)
    for _ in range(3):
        try:
            with socket.create_connection(("api.example", 80), 3) as s:
                s.sendall(b"ping")
                s.recv(4)
        except OSError:
            pass
    if n % 3 == 0:
        socket.create_connection(("other.example", 80), 3)
    return "ok"
"""


def test_everything_at_once(sandbox, admind, gateway, web):
    """Calls end, fail and are cancelled, grants come and go, egress and then
    the pool end, all at any moment: each call has one answer and one record."""
    waiting, begun, n = {}, [], 0
    due = [(30, "egress"), (60, "mcpbox-peek"), (90, "egress"), (120, "mcpbox-pool-init")]
    while waiting or n < 150:
        while len(waiting) < 12 and n < 150:
            n += 1
            arguments = json.dumps({"n": n}).encode()
            x = admind.held(BUSY, arguments=arguments, timeout=15000, **API)
            waiting[gateway.start("RUN", execution=x, arguments=arguments)] = x
            begun.append(x)
            if n % 7 == 0:
                hosts = ["tcp api.example 80"] if n % 2 else []
                assert admind.regrant(SERVER, hosts)["_"] == "OK"
            if n % 11 == 0:
                gateway.send("CANCEL", execution=x, failure=0)
        if due and n >= due[0][0]:
            _, what = due.pop(0)
            if what == "egress":
                sandbox.kill("egress")
                sandbox.start("egress")
            else:
                os.kill(next(p for p, argv in sandbox.pool().items() if argv[0].endswith(what)),
                        signal.SIGKILL)
        request, m = gateway.receive()
        if m["_"] in ("CALL_RESULT", "REFUSED"):
            del waiting[request]
    for x in begun:
        admind.record(x, patience(20))
    assert sandbox.children["sandboxd"].poll() is None
    c = call(admind, gateway, HELLO, **API)
    assert (c.outcome, c.text) == (DONE, "pong"), c.text


@pytest.fixture
def alone(ns):
    """A sandbox that nobody gives an egress."""
    with Sandbox(runner=RUNNER, slots=4, pool_min=1, pool_max=1) as s:
        s.await_ready()
        yield s


def test_no_egress(alone):
    admind = alone.admind()
    with alone.gateway() as g:
        assert call(admind, g, "def main():\n  return 1\n").text == "1"
        time.sleep(2.2)
        c = call(admind, g, HELLO, **API)
        assert (c.outcome, c.failure) == (None, "sandbox_unavailable"), c.text
        assert "egress" in c.text
        assert c.record()[0]["outcome"] == REFUSED
        assert call(admind, g, "def main():\n  return 1\n").text == "1"
    with alone.peer_root("ctl") as ctl:
        rows = json.loads(ctl.call("DOCTOR")["json"])
    row, = [r for r in rows if r["layer"] == "egress"]
    assert row["state"] == "missing" and row["fix"]


def listening(sandbox, name):
    """The played egress' listener."""
    path = sandbox.path("run", "egress", name + ".sock")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    os.chmod(path, 0o666)
    listener.listen(4)
    listener.settimeout(patience(10))
    return listener


def test_peek_gets_a_link_again(alone):
    """sandboxd makes it, says nothing on it, and peek speaks. One that ends is
    told by egress, and another is made."""
    with listening(alone, "peek") as links, listening(alone, "sandboxd") as control:
        sock, _ = control.accept()
        with Peer(alone.table, sock) as egress:
            for _ in range(3):
                link, _ = links.accept()
                with Peer(alone.table, link) as peek:
                    assert peek.hello["process"] == "peek"
                links.settimeout(0.3)
                with pytest.raises(TimeoutError):
                    links.accept()
                links.settimeout(patience(10))
                egress.send("NET_EVENT", net=0, kind=6, host="", port=0, text="lost")


def test_a_hung_egress_delays_only_who_connects(alone):
    """It takes connections and says HELLO, and nothing after that."""
    listener = listening(alone, "sandboxd")
    admind = alone.admind()
    sock, _ = listener.accept()
    with Peer(alone.table, sock) as egress, alone.gateway() as g, alone.gateway() as h:

        def meanwhile():
            """Has the other call its answer before sandboxd gives this one up? It does
            so after some seconds, which may not do on a slow machine."""
            slow = Call(admind, g, HELLO, **API)
            while (m := egress.receive()[1])["_"] != "NET_OPEN":
                pass
            assert m["hosts"] == b"tcp api.example 0\ntcp api.example 80\n"
            assert call(admind, h, "def main():\n  return 1\n").text == "1"
            waits = not select.select([g.sock], [], [], 0)[0]
            slow.answer()
            assert slow.failure == "sandbox_unavailable" and "egress" in slow.text
            return waits
        until(meanwhile)
        # It says what it may not: the connection is closed, and comes again.
        egress.send("NET_CLOSE", request=5, net=1)
        assert egress.closed()
        listener.accept()[0].close()
    listener.close()
