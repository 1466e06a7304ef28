"""SIGKILL of each main process while calls run, and PostgreSQL restarted under
them: all comes back by itself, and each call has one record."""
import os
import signal
import time

from harness.clients.load import account
from harness.installed import UNITS, systemctl
from harness.patience import eventually
from harness.traffic import Traffic



def test_a_killed_process_is_back_and_no_call_is_lost(suite, tool, token):
    killed, back = {}, {}
    with Traffic("kills", tool, ms=500, pause=0.4, token=token) as traffic:
        for process in UNITS:
            old = suite.pid(process)
            killed[process] = time.time()
            os.kill(old, signal.SIGKILL)
            assert eventually(lambda: suite.pid(process) not in (None, old)), process
            assert eventually(suite.up), (process, systemctl("list-units", "--all", "mcpbox*"),
                                          suite.logs())
            # The first of two may be an answer that was sent before the death.
            assert traffic.progress(2), (process, traffic.report(), suite.logs())
            back[process] = time.time()
        traffic.stop()
    print(traffic.report())
    account(suite, tool, ok_of(traffic))
    assert traffic.unanswered() == set() and traffic.seen("odd") == {}
    # A gateway's own death cuts its connections; its socket refuses nobody, and
    # the death of anybody else is a typed answer.
    for m in traffic.seen("cut").values():
        process = "gatewayd-" + m["who"].split()[0]
        assert m["phase"] != "connect" and killed[process] <= m["at"] <= back[process], m
    assert traffic.seen("cut"), "a gateway was killed while calls ran and nobody noticed"
    assert suite.restarted() == list(UNITS)
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
