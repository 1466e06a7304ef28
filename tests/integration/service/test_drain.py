"""Stopping and reloading processes while clients are at work: nothing that was
asked stays without an answer, and every call has one record."""
import contextlib
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

from harness.clients import flow
from harness.clients.listener import Held
from harness.clients import load
from harness.clients.mcp import Client, meta, text
from harness.clients.rest import Rest
from harness.clients.sse import Stream
from harness.patience import FACTOR, SLACK, patience, until

INSTANCE_SETS = ("admind:call_timeout=60s", "admind:breakers=no", "gatewayd-local:drain_timeout=60s",
                 "sandboxd:drain_timeout=60s")
NUMBER = itertools.count()
#: Says in its own /tmp that it runs.
BODY = '    time.sleep('
CODE = load.CODE.replace(BODY, '    with open("/tmp/runs", "w") as f:\n        f.write(nonce)\n' + BODY)
assert "/tmp/runs" in CODE


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


@pytest.fixture
def back(instance, tool):
    """The instance's own gatewayd, after a test that had another in its place."""
    def serves():
        try:
            with Client(instance.address) as c:
                r = c.call(tool, {"nonce": nonce()})
        except (OSError, http.client.HTTPException):
            return False
        return r.result and not r.result.get("isError")
    until(serves, say=instance.logs)


def nonce():
    return f"drain-{next(NUMBER):06}"


def serving(h, tool):
    last = []

    def served():
        with Client(lambda: h.address) as c:
            last[:] = [c.call(tool, {"nonce": nonce()})]
        return last[0].result and not last[0].result.get("isError")
    until(served, 20, 0.05, say=lambda: (last, h.text()))


def restart(h, sig):
    """Signals it and waits for the next one: seconds, and what the one that ended said."""
    before = len(h.text())
    took = h.signal(sig, wait=patience(60))
    return took, h.text()[before:]


def in_time(said):
    """It ended because nothing was left, not because its time was over."""
    return "drain_timeout" not in said and "records_left" not in said


def log_of(instance, process):
    with open(os.path.join(instance.state, "log", process, "current"), encoding="utf-8", errors="replace") as f:
        return f.read()


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
    """(outcome, failure, delivered, result, when it ended) of the call with this
    nonce, once it is closed. There is exactly one."""
    rows = until(lambda: instance.psql(
        "SELECT outcome, failure, delivered, result, extract(epoch FROM ended_at) FROM mcpbox.executions WHERE "
        f"tool LIKE 'drain\\_\\_%' AND state = 'closed' AND arguments LIKE '%{n}%'"),
        seconds, 0.1, say=instance.logs)
    assert len(rows) == 1, rows
    return rows[0]


def lasting(ms):
    """So long that a signal comes before a call's end: longer where the machine is slow,
    shorter than the drain's time."""
    return min(40000, round(ms * FACTOR / SLACK))


def running(instance):
    """The nonces of the calls whose tool runs."""
    found = set()
    for pid in instance.pool()["mcpbox-runner"]:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/root/tmp/runs", encoding="ascii") as f:
            found.add(f.read())
    return found


class InFlight(threading.Thread):
    """One call on its own connection: its reply, or what went wrong."""

    def __init__(self, where, tool, ms, version="2026-07-28"):
        super().__init__()
        self.nonce, self.reply, self.error, self.at = nonce(), None, None, None
        self.where, self.tool, self.ms, self.version = where, tool, ms, version
        self.start()

    def runs(self, instance):
        """Waits until its tool runs; returns itself."""
        def there():
            assert self.at is None, (self.error, self.reply)    # it ended, or never began
            return instance.psql("SELECT 1 FROM mcpbox.executions WHERE state = 'open' AND "
                                 f"arguments LIKE '%{self.nonce}%'") and self.nonce in running(instance)
        until(there, say=instance.logs)
        return self

    def run(self):
        try:
            with Client(self.where, version=self.version) as c:
                self.reply = c.call(self.tool, {"nonce": self.nonce, "ms": self.ms})
        except (OSError, http.client.HTTPException, AssertionError) as e:
            self.error = e
        self.at = time.time()


class Control(threading.Thread):
    """Asks PostgreSQL, again and again, for what takes milliseconds. `slowest`: the longest that an
    answer was waited for."""

    def __init__(self, instance):
        super().__init__()
        self.instance, self.slowest, self.done = instance, 0, threading.Event()

    def run(self):
        last = time.monotonic()
        while not self.done.wait(0.05):
            self.instance.psql("SELECT 1")
            last, before = time.monotonic(), last
            self.slowest = max(self.slowest, last - before)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.done.set()
        self.join()


class Clients:
    """Some keep their connection, as real ones do: one that the server has
    closed is seen before it is used again. The others connect anew each time.
    All that is not an answer to what was asked is kept in `bad`."""

    def __init__(self, address, tool, kept=10, fresh=6):
        self.address, self.tool = address, tool
        self.bad, self.answered, self.reused = [], 0, 0
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
            client = client or Client(lambda: self.address, timeout=patience(40))
            n = nonce()
            try:
                self._ask(client, n)
                with self.lock:
                    self.answered += 1
                    self.reused += reused
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
        def asked(times):
            before = clients.answered, clients.reused
            until(lambda: clients.answered >= before[0] + 3 * times and clients.reused >= before[1] + times,
                  say=lambda: clients.bad[:3])

        asked(25)
        for _ in range(4):
            assert in_time(restart(held, sig)[1])
            asked(25)
    print(clients.answered, clients.reused)
    assert not clients.bad, (len(clients.bad), clients.bad[:3], held.text()[-3000:])
    assert clients.reused > 100
    assert held.statuses == [0] * 4


def test_an_idle_one_ends_at_once(held, tool):
    with Client(lambda: held.address) as c:
        assert c.call(tool, {"nonce": nonce()}).result
        time.sleep(2.2)     # idle for long: its connection holds nothing up
        assert in_time(restart(held, signal.SIGTERM)[1])
        assert c.conn.sock.recv(1) == b""
    serving(held, tool)
    assert in_time(restart(held, signal.SIGHUP)[1])
    assert held.statuses == [0, 0]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_call_in_flight_is_answered(instance, held, tool, version):
    call = InFlight(lambda: held.address, tool, lasting(3000), version).runs(instance)
    assert in_time(restart(held, signal.SIGTERM)[1])
    call.join()
    assert call.error is None and text(call.reply) == "ran " + call.nonce
    assert call.reply.headers["connection"] == "close"
    outcome, failure, delivered = records(instance, call.nonce)[:3]
    assert (outcome, failure, delivered) == ("done", "", "t")
    serving(held, tool)


def test_streams_end_last_and_in_order(instance, held, tool):
    """Behind the call that is waited for, and told before that; then another
    process takes the next. A client that comes back at once finds that one."""
    call = InFlight(lambda: held.address, tool, lasting(2500)).runs(instance)
    with Stream(held.address, body={
            "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
            "params": {"_meta": meta(), "notifications": {"toolsListChanged": True}}},
            headers={"MCP-Protocol-Version": "2026-07-28",
                     "Mcp-Method": "subscriptions/listen"}) as s:
        assert s.headers["connection"] == "close"
        said = []
        done = threading.Thread(target=lambda: said.append(restart(held, signal.SIGHUP)[1]))
        done.start()
        last = s.rest(patience(30))[-1].json
        ended = time.time()
        assert last["id"] == 7 and "result" in last and s.ended
    call.join()
    assert text(call.reply) == "ran " + call.nonce
    done.join()
    # The call's rest, not drain_timeout.
    assert float(records(instance, call.nonce)[4]) <= ended and in_time(said[0])
    serving(held, tool)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_who_takes_too_long_is_told_so(instance, held, tool, version):
    """A changed setting has effect by SIGHUP; then a call longer than it."""
    set_conf(instance, "gatewayd-local", "drain_timeout", "1s")
    set_conf(instance, "gatewayd-local", "log_level", "debug")
    try:
        restart(held, signal.SIGHUP)
        serving(held, tool)
        assert '"call_state"' in held.text()    # at debug level only
        call = InFlight(lambda: held.address, tool, lasting(10000), version).runs(instance)
        took, said = restart(held, signal.SIGTERM)
        assert took > 0.9 and "1 calls are not waited for any longer" in said, said
        call.join()
        assert call.error is None and mode(call.reply) == "lost", (call.error, call.reply)
        assert "retry_after_ms" not in call.reply.error["data"]
        # It went on: nobody killed it, and nobody was given its result.
        outcome, failure, delivered, _, ended = records(instance, call.nonce)
        assert (outcome, failure, delivered) == ("done", "", "f") and call.at < float(ended)
    finally:
        set_conf(instance, "gatewayd-local", "drain_timeout", "60s")
        set_conf(instance, "gatewayd-local", "log_level", "info")
    serving(held, tool)


def test_a_second_signal_ends_it_at_once(instance, held, tool):
    call = InFlight(lambda: held.address, tool, lasting(10000)).runs(instance)
    pid, before = held.process, len(held.text())
    pid.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in held.text()[before:])
    time.sleep(0.5)
    assert pid.poll() is None
    pid.send_signal(signal.SIGTERM)
    assert pid.wait(patience(20)) == 0
    assert "second signal" in held.text()[before:] and in_time(held.text()[before:])
    call.join()
    assert call.error is not None       # cut, as by a crash
    # On this wire that is how a client cancels, but it did not: the call went on.
    outcome, failure, delivered = records(instance, call.nonce, 60)[:3]
    assert (outcome, failure, delivered) == ("done", "", "f")
    serving(held, tool)


@pytest.mark.usefixtures("back")
def test_sandboxd_lets_calls_end(instance, tool):
    pid = instance.service_pid("sandboxd")
    call = InFlight(instance.address, tool, lasting(8000)).runs(instance)
    before = len(log_of(instance, "sandboxd"))
    os.kill(pid, signal.SIGHUP)
    until(lambda: "stopping" in log_of(instance, "sandboxd")[before:])
    with Client(instance.address) as c:
        r = c.call(tool, {"nonce": nonce()})
        assert mode(r) == "upgrading" and r.error["data"]["retry_after_ms"] > 0, r
    refused = time.time()
    call.join()
    assert refused < float(records(instance, call.nonce)[4])    # it did not wait for that one
    assert text(call.reply) == "ran " + call.nonce
    assert records(instance, call.nonce)[:3] == ["done", "", "t"]
    again(instance, tool, pid)


@pytest.mark.usefixtures("back")
def test_sandboxd_kills_what_does_not_end(instance, tool):
    """At its drain_timeout: typed, recorded with the reason, nothing left."""
    set_conf(instance, "sandboxd", "drain_timeout", "4s")
    try:
        pid = instance.service_pid("sandboxd")
        os.kill(pid, signal.SIGTERM)
        gone(pid)
        again(instance, tool, pid)
        pid = instance.service_pid("sandboxd")
        calls = [InFlight(instance.address, tool, 55000) for _ in range(4)]
        for c in calls:
            c.runs(instance)
        before, begin = len(log_of(instance, "sandboxd")), time.monotonic()
        os.kill(pid, signal.SIGTERM)
        for c in calls:
            c.join()
            assert time.monotonic() - begin > 3.9
            assert mode(c.reply) == "killed", c.reply
        gone(pid)
        assert "4 calls are not waited for any longer" in log_of(instance, "sandboxd")[before:]
        for c in calls:
            outcome, failure, delivered, result = records(instance, c.nonce)[:4]
            assert (outcome, failure, delivered) == ("killed", "killed", "t")
            assert "stopped for a restart" in result
    finally:
        set_conf(instance, "sandboxd", "drain_timeout", "60s")
        os.kill(instance.service_pid("sandboxd"), signal.SIGTERM)
    again(instance, tool, pid)


@pytest.mark.usefixtures("back")
def test_sandboxd_ends_at_once_when_idle_or_asked_twice(instance, tool):
    again(instance, tool, None)
    pid, before = instance.service_pid("sandboxd"), len(log_of(instance, "sandboxd"))
    os.kill(pid, signal.SIGTERM)
    gone(pid)
    again(instance, tool, pid)
    call = InFlight(instance.address, tool, 55000).runs(instance)
    pid, once = instance.service_pid("sandboxd"), len(log_of(instance, "sandboxd"))
    os.kill(pid, signal.SIGTERM)
    until(lambda: "stopping" in log_of(instance, "sandboxd")[once:])
    time.sleep(0.5)
    assert os.path.exists(f"/proc/{pid}")
    os.kill(pid, signal.SIGTERM)
    gone(pid)
    assert in_time(log_of(instance, "sandboxd")[before:])
    call.join()
    assert mode(call.reply) == "lost"
    assert records(instance, call.nonce)[0] == "lost"
    again(instance, tool, pid)


def gone(pid):
    until(lambda: not os.path.exists(f"/proc/{pid}"), step=0.002)


def again(instance, tool, pid):
    """Another process serves."""
    last = []

    def served():
        with Client(instance.address) as c:
            last[:] = [c.call(tool, {"nonce": nonce()})]
        return last[0].result and not last[0].result.get("isError")
    until(served, 20, 0.05, say=lambda: last)
    assert instance.service_pid("sandboxd") != pid


def test_admind_http_answers_all(instance):
    with Held(instance, "admind-http", "adminweb", "mcpbox-admind-http") as h:
        r = Rest(lambda: h.address)
        until(lambda: r.login("admin", instance.password)[0] == 200, 10, 0.05)
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
            before = count[0]
            until(lambda least=before + 40: count[0] > least, say=lambda: bad[:3])
            assert in_time(restart(h, signal.SIGHUP)[1])
        stop.set()
        for t in threads:
            t.join()
        assert not bad, (len(bad), bad[:3])
        assert count[0] > 100 and h.statuses == [0, 0, 0]


def admind_drains(instance, n):
    """Round n: ends admind four times beside its clients, and judges all answers. False: admind waits
    2 s for what is in work (DRAIN_MS), and on a machine where milliseconds took half of that it may
    have said `lost` of the rest."""
    made, typed, stop, odd = [], [], threading.Event(), []

    def work(k):
        with Client(instance.address) as c:
            for i in itertools.count():
                if stop.is_set():
                    return
                r = c.call("mcpbox_create_server", {"name": f"drain{n}_{k}_{i}",
                                                    "description": "Of the tests."})
                if r.result and not r.result.get("isError"):
                    made.append(f"drain{n}_{k}_{i}")
                elif mode(r) in ("upgrading", "busy", "storage_unavailable"):
                    typed.append(mode(r))
                    time.sleep(0.02)
                else:       # `lost` too: what was sent was read, or could not be sent
                    odd.append((f"drain{n}_{k}_{i}", r))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    begun = len(log_of(instance, "admind"))
    with Control(instance) as control:
        for t in threads:
            t.start()
        for _ in range(3):
            before = len(made)
            until(lambda least=before + 10: len(made) >= least, say=instance.logs)
            pid = instance.service_pid("admind")
            os.kill(pid, signal.SIGTERM)
            gone(pid)
        before = len(made)
        until(lambda: len(made) >= before + 10, say=instance.logs)
        stop.set()
        for t in threads:
            t.join()
        pid = instance.service_pid("admind")
        os.kill(pid, signal.SIGTERM)
        gone(pid)
    there = {r[0] for r in instance.psql(f"SELECT name FROM mcpbox.servers WHERE name LIKE 'drain{n}\\_%'")}
    if control.slowest > 1:
        lost = {name for name, r in odd if mode(r) == "lost"}
        assert len(odd) == len(lost) and there ^ set(made) <= lost, (control.slowest, odd[:3])
        return False
    assert not odd, (control.slowest, odd[:3])
    assert there == set(made), (there ^ set(made), typed)
    assert in_time(log_of(instance, "admind")[begun:])
    return True


def test_admind_answers_what_is_in_work(instance, tool):
    """Its clients are told `upgrading` or have an answer; what was done is said
    to be done. Nothing in work: milliseconds. Judged in a round in which the control
    beside it was in time."""
    assert any(admind_drains(instance, n) for n in range(20)), "the machine was too slow each time"
