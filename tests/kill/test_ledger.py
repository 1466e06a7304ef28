"""Exactly one record, and it says what happened, whatever dies between a call's answer and its record: each way to die
is held still at that point."""
import contextlib
import json
import os
import signal
import threading
import time

import psycopg
import pytest

from harness import seed
from harness.clients import flow
from harness.clients.load import CODE, Load
from harness.clients.mcp import Client, text
from harness.instance import Instance
from harness.patience import patience, until

#: Kills of sandboxd under calls: tests/soak has as many as the promise names.
KILLS = 20


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "ledger", "slow", CODE)


@contextlib.contextmanager
def endings_held(instance):
    """Nothing is closed meanwhile: each closing puts a row into the queue, which is locked. Gives a function that says
    how many statements wait for that."""
    with psycopg.connect(host=instance.run("postgresql"), user="postgres", dbname="mcpbox") as c:
        c.execute("LOCK TABLE mcpbox.execution_queue IN SHARE ROW EXCLUSIVE MODE")
        yield lambda: len(c.execute("SELECT 1 FROM pg_locks WHERE relation = 'mcpbox.execution_queue'::regclass "
                                    "AND NOT granted").fetchall())
        c.rollback()


def forget_statements(instance):
    """What a dead admind had sent is not done after its death."""
    instance.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mcpbox_app'")


def kill(instance, *roles):
    """SIGKILL; returns when each has a successor."""
    old = {r: instance.service_pid(r) for r in roles}
    for pid in old.values():
        os.kill(pid, signal.SIGKILL)
    for r, pid in old.items():
        until(lambda r=r, pid=pid: instance.service_pid(r) not in (None, pid))


def rows(instance, nonce):
    return instance.psql(
        "SELECT state, outcome, delivered, result, cpu_us IS NULL FROM mcpbox.executions "
        f"WHERE kind = 'tool' AND arguments::json->>'nonce' = '{nonce}'")


def closed(instance, nonce):
    until(lambda: [r[0] for r in rows(instance, nonce)] == ["closed"], say=lambda: (rows(instance, nonce), instance.logs()))
    return rows(instance, nonce)[0]


def says_what_happened(instance, nonce):
    _, outcome, delivered, result, _ = closed(instance, nonce)
    assert (outcome, delivered) == ("done", "t"), (outcome, delivered, instance.logs())
    assert json.loads(result)["content"][0]["text"] == "ran " + nonce


def serves(instance, tool):
    """Until a call works again."""
    def works():
        try:
            with Client(instance.address, timeout=patience(15)) as c:
                r = c.call(tool, {"nonce": "probe"})
                return r.result and not r.result.get("isError")
        except (OSError, AssertionError):
            return False
    until(works, say=instance.logs)


class Call(threading.Thread):
    """One call of a second and a half, under way when this returns."""

    def __init__(self, instance, tool, nonce, ms=1500):
        super().__init__()
        self.instance, self.tool, self.nonce, self.ms, self.reply = instance, tool, nonce, ms, None
        assert not rows(instance, nonce)
        serves(instance, tool)
        self.start()
        until(lambda: instance.runners() and rows(instance, nonce), say=instance.logs)

    def run(self):
        with Client(self.instance.address) as c:
            self.reply = c.call(self.tool, {"nonce": self.nonce, "ms": self.ms})

    def answered(self):
        self.join(patience(30))
        assert self.reply is not None and text(self.reply) == "ran " + self.nonce, self.reply


def unrecorded(instance, tool, nonce, *roles):
    """A call that was answered and whose record can't leave: its runner is reaped by nobody. Stops these as well.
    Returns the nonce; where the machine was too slow to stop them in time, the next call takes longer."""
    for n in range(4):
        call = Call(instance, tool, f"{nonce}{n}", 1500 << n)
        stopped = [instance.pool()["mcpbox-pool-init"][0], *map(instance.service_pid, roles)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        call.answered()
        if rows(instance, call.nonce)[0][0] == "open":
            return call.nonce
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    raise AssertionError("each call ended before its runner's parent could be stopped")


def test_before_its_runner_was_reaped(instance, tool):
    """The answer does not wait for the reaping, the record does."""
    nonce = unrecorded(instance, tool, "unreaped")
    kill(instance, "sandboxd")
    says_what_happened(instance, nonce)
    assert closed(instance, nonce)[4] == "t", "nobody knows its CPU time"
    serves(instance, tool)


def test_while_admind_stands(instance, tool):
    """And its successor dies as well before admind has heard of it."""
    nonce = unrecorded(instance, tool, "deaf", "admind")
    try:
        kill(instance, "sandboxd")
        kill(instance, "sandboxd")
        assert rows(instance, nonce)[0][0] == "open"
    finally:
        os.kill(instance.service_pid("admind"), signal.SIGCONT)
    says_what_happened(instance, nonce)
    serves(instance, tool)


def test_delivered_by_both(instance, tool):
    """admind had the record from the socket, and has it again from the ledger: it counts once."""
    with endings_held(instance) as waiting:
        call = Call(instance, tool, "twice")
        call.answered()
        until(waiting)
        kill(instance, "sandboxd")
        until(lambda: waiting() > 1, say=instance.logs)
    says_what_happened(instance, "twice")
    until(lambda: instance.psql("SELECT 1 FROM mcpbox.execution_index WHERE outcome = 'done' AND tool = "
                                f"'{tool}' AND words @@ 'twice'::tsquery") == [["1"]])
    serves(instance, tool)


@pytest.mark.parametrize("roles", [("sandboxd", "admind"), ("admind", "sandboxd"),
                                   ("sandboxd", "admind", "admind-vault", "sandboxd-spawn", "gatewayd-local")])
def test_several_at_once(instance, tool, roles):
    """The record is on its way to the database when all who know of it die."""
    nonce = "all" + "-".join(roles)
    with endings_held(instance) as waiting:
        Call(instance, tool, nonce).answered()
        until(waiting)
        kill(instance, *roles)
        forget_statements(instance)
    says_what_happened(instance, nonce)
    serves(instance, tool)


def test_an_answer_of_admind_itself(instance, tool):
    """Management calls are closed by admind, after the answer."""
    before = {r[0] for r in instance.psql("SELECT id FROM mcpbox.executions")}
    with endings_held(instance) as waiting:
        with Client(instance.address) as c:
            assert c.manage("mcpbox_list_servers")["servers"]
        until(waiting)
        kill(instance, "admind")
        forget_statements(instance)
    mine = [r for r in instance.psql("SELECT id FROM mcpbox.executions WHERE tool = 'mcpbox_list_servers'")
            if r[0] not in before]
    assert len(mine) == 1
    query = f"SELECT state, outcome, delivered FROM mcpbox.executions WHERE id = '{mine[0][0]}'"
    until(lambda: instance.psql(query)[0][0] == "closed", say=instance.logs)
    assert instance.psql(query) == [["closed", "done", "t"]], instance.logs()
    serves(instance, tool)


def test_who_can_read_it(instance):
    """Its process alone: no runner, no gateway, nobody who may connect."""
    for process, user in (("sandboxd", "sandbox"), ("admind", "admind")):
        st = os.stat(instance.run(process, "ledger"))
        assert st.st_uid == instance.uid(user) and st.st_mode & 0o777 == 0o600
        for fd in instance.pids():
            with contextlib.suppress(OSError):
                held = [os.readlink(f"/proc/{fd}/fd/{n}") for n in os.listdir(f"/proc/{fd}/fd")]
                if instance.run(process, "ledger") in held:
                    assert fd == instance.service_pid(process)


def kills(instance, number):
    """SIGKILL of sandboxd under calls: what clients had is what the records say."""
    rng = seed.rng("ledger")
    with Load(instance) as load:
        load.resumed()
        for _ in range(number):
            kill(instance, "sandboxd")
            load.resumed()
            time.sleep(rng.uniform(0, 0.2))
    load.account()
    assert len(load.ok) > number
    return load


def test_kills(instance):
    kills(instance, KILLS)
