"""Stopping and reloading processes while clients are at work: nothing that was
asked stays without an answer, and every call has one record."""
import http.client
import itertools
import json
import os
import random
import re
import select
import signal
import threading
import time

import pytest

from harness import flow
from harness.listener import Held
from harness.load import CODE
from harness.mcp import Client, meta, text
from harness.patience import patience
from harness.rest import Rest
from harness.sse import Stream

pytestmark = pytest.mark.alone
INSTANCE_SETS = ("admind:call_timeout=60s", "admind:breakers=no", "gatewayd-local:drain_timeout=8s",
                 "sandboxd:drain_timeout=4s")
NUMBER = itertools.count()


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "drain", "nonce", CODE)


@pytest.fixture
def held(instance, tool):
    """gatewayd-local by socket activation, serving."""
    with Held(instance) as h:
        serving(h, tool)
        yield h
        print(h.text()[-3000:])


def nonce():
    return f"drain-{next(NUMBER):06}"


def serving(h, tool):
    end = time.monotonic() + patience(20)
    while True:
        with Client(lambda: h.address) as c:
            r = c.call(tool, {"nonce": nonce()})
        if r.result and not r.result.get("isError"):
            return
        assert time.monotonic() < end, (r, h.text())
        time.sleep(0.05)


def mode(r):
    if r.error:
        return r.error["data"]["failure_mode"]
    return r.result.get("_meta", {}).get("mcpbox/failure", {}).get("failure_mode")


def set_conf(instance, process, keyword, value):
    """Another value in its file, in the place of the one that is there."""
    path = os.path.join(instance.state, "conf", process + ".conf")
    with open(path, encoding="utf-8") as f:
        lines = [x for x in f.read().splitlines() if x.split()[:1] != [keyword]]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join([*lines, f"{keyword} {value}", ""]))


def records(instance, n, seconds=30):
    """(outcome, failure, delivered, result) of the call with this nonce, once
    it is closed. There is exactly one."""
    end = time.monotonic() + patience(seconds)
    while True:
        rows = instance.psql(
            "SELECT outcome, failure, delivered, result FROM mcpbox.executions WHERE "
            f"tool LIKE 'drain\\_\\_%' AND state = 'closed' AND arguments LIKE '%{n}%'")
        if rows:
            assert len(rows) == 1, rows
            return rows[0]
        assert time.monotonic() < end, instance.logs()
        time.sleep(0.1)


class InFlight(threading.Thread):
    """One call on its own connection: its reply, or what went wrong."""

    def __init__(self, where, tool, ms, version="2026-07-28"):
        super().__init__()
        self.nonce, self.reply, self.error, self.took = nonce(), None, None, None
        self.where, self.tool, self.ms, self.version = where, tool, ms, version
        self.start()

    def run(self):
        begin = time.monotonic()
        try:
            with Client(self.where, version=self.version) as c:
                self.reply = c.call(self.tool, {"nonce": self.nonce, "ms": self.ms})
        except (OSError, http.client.HTTPException, AssertionError) as e:
            self.error = e
        self.took = time.monotonic() - begin


class Clients:
    """Some keep their connection, as real ones do: one that the server has
    closed is seen before it is used again. The others connect anew each time.
    All that is not an answer to what was asked is kept in `bad`."""

    def __init__(self, address, tool, kept=10, fresh=6):
        self.address, self.tool = address, tool
        self.bad, self.answered, self.reused, self.slowest = [], 0, 0, 0.0
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(i < kept, i))
                        for i in range(kept + fresh)]

    def _ask(self, c, n):
        r = c.call(self.tool, {"nonce": n, "ms": 5})
        if not r.result or r.result.get("isError") or text(r) != "ran " + n:
            raise AssertionError(repr(r))

    def _work(self, keeps, seed):
        rng, client = random.Random(seed), None
        while not self.stop.is_set():
            sock = client.conn.sock if client is not None and client.conn is not None else None
            if client is not None and (not keeps or sock is None
                                       or select.select([sock], [], [], 0)[0]):
                client.close()
                client = None
            reused = client is not None
            client = client or Client(lambda: self.address, timeout=40)
            begin, n = time.monotonic(), nonce()
            try:
                self._ask(client, n)
                with self.lock:
                    self.answered += 1
                    self.reused += reused
                    self.slowest = max(self.slowest, time.monotonic() - begin)
            except (OSError, http.client.HTTPException, AssertionError) as e:
                with self.lock:
                    self.bad.append((keeps, reused, n, repr(e)[:600]))
                client.close()
                client = None
            time.sleep(rng.choice((0, 0, 0.003, 0.03, 0.3)))
        if client is not None:
            client.close()

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.stop.set()
        for t in self.threads:
            t.join()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP])
def test_nobody_notices_a_restart(held, tool, sig):
    """Kept and fresh connections, restart after restart: every request has its
    answer, a real one."""
    with Clients(held.address, tool) as clients:
        time.sleep(1)
        for _ in range(4):
            assert held.signal(sig) < 4
            time.sleep(1)
    print(clients.answered, clients.reused, clients.slowest)
    assert not clients.bad, (len(clients.bad), clients.bad[:3], held.text()[-3000:])
    assert clients.reused > 100 and clients.slowest < 6
    assert held.statuses == [0] * 4


def test_an_idle_one_ends_at_once(held, tool):
    with Client(lambda: held.address) as c:
        assert c.call(tool, {"nonce": nonce()}).result
        time.sleep(2.2)     # idle for long: its connection holds nothing up
        assert held.signal(signal.SIGTERM) < 0.5
        assert c.conn.sock.recv(1) == b""
    serving(held, tool)
    assert held.signal(signal.SIGHUP) < 0.5
    assert held.statuses == [0, 0]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_call_in_flight_is_answered(instance, held, tool, version):
    call = InFlight(lambda: held.address, tool, 5000, version)
    time.sleep(0.7)
    assert 3 < held.signal(signal.SIGTERM) < 7
    call.join()
    assert call.error is None and text(call.reply) == "ran " + call.nonce
    assert call.reply.headers["connection"] == "close"
    outcome, failure, delivered, _ = records(instance, call.nonce)
    assert (outcome, failure, delivered) == ("done", "", "t")
    serving(held, tool)


def test_streams_end_last_and_in_order(held, tool):
    """Behind the call that is waited for, and told before that; then another
    process takes the next. A client that comes back at once finds that one."""
    call = InFlight(lambda: held.address, tool, 2500)
    with Stream(held.address, body={
            "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
            "params": {"_meta": meta(), "notifications": {"toolsListChanged": True}}},
            headers={"MCP-Protocol-Version": "2026-07-28",
                     "Mcp-Method": "subscriptions/listen"}) as s:
        assert s.headers["connection"] == "close"
        time.sleep(0.5)
        begin = time.monotonic()
        done = threading.Thread(target=held.signal, args=(signal.SIGHUP,))
        done.start()
        last = s.rest()[-1].json
        # The call's rest, not drain_timeout.
        assert 1.5 < time.monotonic() - begin < 5
        assert last["id"] == 7 and "result" in last and s.ended
    call.join()
    assert text(call.reply) == "ran " + call.nonce
    done.join()
    serving(held, tool)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_who_takes_too_long_is_told_so(instance, held, tool, version):
    """A changed setting has effect by SIGHUP; then a call longer than it."""
    set_conf(instance, "gatewayd-local", "drain_timeout", "1s")
    set_conf(instance, "gatewayd-local", "log_level", "debug")
    try:
        held.signal(signal.SIGHUP)
        serving(held, tool)
        assert '"call_state"' in held.text()    # at debug level only
        call = InFlight(lambda: held.address, tool, 6000, version)
        time.sleep(0.7)
        assert 0.9 < held.signal(signal.SIGTERM) < 2.8
        call.join()
        assert call.error is None and mode(call.reply) == "lost", (call.error, call.reply)
        assert "retry_after_ms" not in call.reply.error["data"]
        assert call.took < 4
        # It went on: nobody killed it, and nobody was given its result.
        outcome, failure, delivered, _ = records(instance, call.nonce)
        assert (outcome, failure, delivered) == ("done", "", "f")
    finally:
        set_conf(instance, "gatewayd-local", "drain_timeout", "8s")
        set_conf(instance, "gatewayd-local", "log_level", "info")
    serving(held, tool)


def test_a_second_signal_ends_it_at_once(instance, held, tool):
    call = InFlight(lambda: held.address, tool, 5000)
    time.sleep(0.7)
    pid, begin = held.process, time.monotonic()
    pid.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert pid.poll() is None
    pid.send_signal(signal.SIGTERM)
    assert pid.wait(5) == 0 and time.monotonic() - begin < 1.5
    assert "second signal" in held.text()
    call.join()
    assert call.error is not None       # cut, as by a crash
    # On this wire that is how a client cancels.
    assert records(instance, call.nonce)[0] == "killed"
    serving(held, tool)


def test_sandboxd_lets_calls_end(instance, tool):
    pid = instance.service_pid("sandboxd")
    call = InFlight(instance.address, tool, 2500)
    time.sleep(0.8)
    os.kill(pid, signal.SIGHUP)
    time.sleep(0.3)
    with Client(instance.address) as c:
        begin = time.monotonic()
        r = c.call(tool, {"nonce": nonce()})
        assert mode(r) == "upgrading" and r.error["data"]["retry_after_ms"] > 0, r
        assert time.monotonic() - begin < 0.5
    call.join()
    assert text(call.reply) == "ran " + call.nonce
    assert records(instance, call.nonce)[:3] == ["done", "", "t"]
    again(instance, tool, pid)


def test_sandboxd_kills_what_does_not_end(instance, tool):
    """At its drain_timeout: typed, recorded with the reason, nothing left."""
    pid = instance.service_pid("sandboxd")
    calls = [InFlight(instance.address, tool, 30000) for _ in range(4)]
    time.sleep(1)
    begin = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    for c in calls:
        c.join()
        assert 3.5 < time.monotonic() - begin < 6
        assert mode(c.reply) == "killed", c.reply
    while instance.service_pid("sandboxd") == pid:
        assert time.monotonic() < begin + 8
        time.sleep(0.02)
    for c in calls:
        outcome, failure, delivered, result = records(instance, c.nonce)
        assert (outcome, failure, delivered) == ("killed", "killed", "t")
        assert "stopped for a restart" in result
    again(instance, tool, pid)


def test_sandboxd_ends_at_once_when_idle_or_asked_twice(instance, tool):
    again(instance, tool, None)
    pid, begin = instance.service_pid("sandboxd"), time.monotonic()
    os.kill(pid, signal.SIGTERM)
    gone(pid, 0.5)
    again(instance, tool, pid)
    call = InFlight(instance.address, tool, 20000)
    time.sleep(1)
    pid, begin = instance.service_pid("sandboxd"), time.monotonic()
    os.kill(pid, signal.SIGTERM)
    time.sleep(0.5)
    os.kill(pid, signal.SIGTERM)
    gone(pid, 0.5)
    assert time.monotonic() - begin < 1.5
    call.join()
    assert mode(call.reply) == "lost"
    assert records(instance, call.nonce)[0] == "lost"
    again(instance, tool, pid)


def gone(pid, seconds):
    end = time.monotonic() + patience(seconds)
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < end
        time.sleep(0.002)


def again(instance, tool, pid):
    """Another process serves."""
    end = time.monotonic() + patience(20)
    while True:
        with Client(instance.address) as c:
            r = c.call(tool, {"nonce": nonce()})
        if r.result and not r.result.get("isError"):
            assert instance.service_pid("sandboxd") != pid
            return
        assert time.monotonic() < end, r
        time.sleep(0.05)


def test_admind_http_answers_all(instance):
    with Held(instance, "admind-http", "adminweb", "mcpbox-admind-http") as h:
        r = Rest(lambda: h.address)
        end = time.monotonic() + patience(10)
        while r.login("admin", instance.password)[0] != 200:
            assert time.monotonic() < end
            time.sleep(0.05)
        bad, count, stop = [], [0], threading.Event()

        def work():
            mine = Rest(lambda: h.address)
            mine.cookie, mine.csrf = r.cookie, r.csrf
            while not stop.is_set():
                try:
                    code, _, body = mine.get("/api/servers?limit=1")
                    count[0] += 1
                    if code != 200:
                        bad.append((code, body))
                except (OSError, http.client.HTTPException) as e:
                    bad.append(repr(e))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for t in threads:
            t.start()
        for _ in range(3):
            time.sleep(0.5)
            assert h.signal(signal.SIGHUP) < 4
        stop.set()
        for t in threads:
            t.join()
        assert not bad, (len(bad), bad[:3])
        assert count[0] > 100 and h.statuses == [0, 0, 0]


def test_admind_answers_what_is_in_work(instance, tool):
    """Its clients are told `upgrading` or have an answer; what was done is said
    to be done. Nothing in work: milliseconds."""
    made, typed, stop, odd = [], [], threading.Event(), []

    def work(k):
        with Client(instance.address) as c:
            for i in itertools.count():
                if stop.is_set():
                    return
                r = c.call("mcpbox_create_server", {"name": f"drain_{k}_{i}",
                                                    "description": "Of the tests."})
                if r.result and not r.result.get("isError"):
                    made.append(f"drain_{k}_{i}")
                elif mode(r) in ("upgrading", "busy", "storage_unavailable"):
                    typed.append(mode(r))
                    time.sleep(0.02)
                else:       # `lost` too: what was sent was read, or could not be sent
                    odd.append((f"drain_{k}_{i}", r))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for _ in range(3):
        time.sleep(0.7)
        pid = instance.service_pid("admind")
        os.kill(pid, signal.SIGTERM)
        gone(pid, 1.5)
        end = time.monotonic() + patience(15)
        before = len(made)
        while len(made) < before + 10:
            assert time.monotonic() < end, instance.logs()
            time.sleep(0.02)
    stop.set()
    for t in threads:
        t.join()
    assert not odd, odd[:3]
    there = {r[0] for r in instance.psql("SELECT name FROM mcpbox.servers WHERE name LIKE 'drain\\_%'")}
    assert there == set(made), (there ^ set(made), typed)
    pid = instance.service_pid("admind")
    os.kill(pid, signal.SIGTERM)
    gone(pid, 0.5)
