"""SIGKILL of each main process while calls run, and PostgreSQL restarted under
them: all comes back by itself, and each call has one record."""
import os
import signal
import time

from harness.clients.load import account
from harness.installed import UNITS, systemctl
from harness.patience import eventually
from harness.traffic import Traffic


GATEWAYS = ("gatewayd-local", "gatewayd-tunnel")
#: Kills of one gateway. Between two calls of all its clients nobody notices one;
#: half of the time and more a call is under way.
TRIES = 20


def gateway_of(cut):
    return "gatewayd-" + cut["who"].split()[0]


def kill(suite, traffic, process):
    """Kills it; it is back, and calls go on."""
    old = suite.pid(process)
    os.kill(old, signal.SIGKILL)
    assert eventually(lambda: suite.pid(process) not in (None, old)), process
    assert eventually(suite.up), (process, systemctl("list-units", "--all", "mcpbox*"),
                                  suite.logs())
    # The first of two may be an answer that was sent before the death.
    assert traffic.progress(2), (process, traffic.report(), suite.logs())


def test_a_killed_process_is_back_and_no_call_is_lost(suite, tool, token):
    killed, back = {}, {}
    with Traffic("kills", tool, ms=500, pause=0.4, token=token) as traffic:
        for process in UNITS:
            killed[process] = time.time()
            for _ in range(TRIES if process in GATEWAYS else 1):
                kill(suite, traffic, process)
                if process in map(gateway_of, traffic.seen("cut").values()):
                    break
            back[process] = time.time()
        traffic.stop()
    print(traffic.report())
    account(suite, tool, ok_of(traffic))
    assert traffic.unanswered() == set() and traffic.seen("odd") == {}
    # A gateway's own death cuts its connections; its socket refuses nobody, and
    # the death of anybody else is a typed answer.
    for m in traffic.seen("cut").values():
        process = gateway_of(m)
        assert m["phase"] != "connect" and killed[process] <= m["at"] <= back[process], m
    assert set(map(gateway_of, traffic.seen("cut").values())) == set(GATEWAYS), \
        "a gateway was killed while calls ran and nobody noticed"
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
