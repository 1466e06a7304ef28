"""SIGKILL of each main process while calls run, and PostgreSQL restarted under
them: all comes back by itself, and each call has one record."""
import os
import signal
import time

from harness.installed import UNITS, eventually, show, systemctl
from harness.load import account
from harness.traffic import Traffic

CALLS = 4	# clients at once


def test_a_killed_process_is_back_and_no_call_is_lost(suite, tool, token):
    answered_before = {}
    killed = {}
    with Traffic("kills", tool, ms=500, pause=0.4, token=token) as traffic:
        for process in UNITS:
            old = suite.pid(process)
            os.kill(old, signal.SIGKILL)
            killed[process] = time.time()
            assert eventually(lambda: suite.pid(process) not in (None, old)), process
            assert eventually(suite.up), (process, systemctl("list-units", "--all", "mcpbox*"),
                                          suite.logs())
            answered_before[process] = len(traffic.seen("ok"))
            assert traffic.progress(1), (process, traffic.report(), suite.logs())
        traffic.stop()
    print(traffic.report())
    # sandboxd may die between a call's answer and its record.
    account(suite, tool, ok_of(traffic), lost=CALLS)
    assert traffic.unanswered() == set() and traffic.seen("odd") == {}
    # A gateway's own death cuts its connections; its socket refuses nobody, and
    # the death of anybody else is a typed answer.
    gateways = {"local": killed["gatewayd-local"], "tunnel": killed["gatewayd-tunnel"]}
    for m in traffic.seen("cut").values():
        t = gateways[m["who"].split()[0]]
        assert m["phase"] != "connect" and t - 1 < m["at"] < t + 30, m
    assert traffic.seen("cut"), "a gateway was killed while calls ran and nobody noticed"
    assert {int(show(u, "NRestarts")["NRestarts"]) >= 1 for u in UNITS.values()} == {True}
    assert suite.failed() == []


def ok_of(traffic):
    return {n: m["ok"] for n, m in traffic.seen("ok").items()}


def test_postgresql_restarts_under_load(suite, tool, token):
    pids = suite.pids()
    with Traffic("postgresql", tool, ms=300, token=token) as traffic:
        systemctl("restart", "postgresql.service")
        assert traffic.progress(1), (traffic.report(), suite.logs())
        traffic.stop()
    print(traffic.report())
    account(suite, tool, ok_of(traffic))
    assert traffic.unanswered() == set()
    assert traffic.seen("cut") == {} and traffic.seen("odd") == {}
    # Nothing of ours had to start anew for that.
    assert suite.pids() == pids and suite.up()
