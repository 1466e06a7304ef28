"""mcpbox as one service: in which order it starts, what runs then, what comes
back, what stops."""
import ctypes
import glob
import http.client
import os
import pwd
import shutil
import signal
import socket
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, connection, text
from harness.installed import SOCKETS, UNITS, USERS, WATCH, command, show, systemctl
from harness.patience import eventually, patience

from .conftest import SETUP

TUNNEL = "/run/mcpbox/gatewayd-tunnel/mcp.sock"
# Each before those that follow it; reversed, the order of the end.
ORDER = [{"admind-check", "admind-vault"}, {"admind"},
         {"sandboxd-spawn", "egress", "sandboxd-store"}, {"sandboxd"},
         {"gatewayd-local", "gatewayd-tunnel", "admind-http"}]
SECONDS = 15	# for anything to come back; a second is the rule
LISTEN_FD = 3	# sd_listen_fds(3)
ANSWERS = (200, 404, 503)	# of /health; 503: not attached to admind yet; 404: not for the tunnel


def health(address, timeout=20):
    """GET /health on a connection of its own: the status."""
    c = connection(address, timeout)
    try:
        c.request("GET", "/health")
        return c.getresponse().status
    finally:
        c.close()


@pytest.fixture(scope="module")
def tool(suite):
    with Client(suite.address) as c:
        return flow.publish(suite, c, "demo", "twice", "def main(n: int) -> int:\n    return 2 * n\n")


def works(suite, tool):
    """Does a call come through, on a new connection?"""
    try:
        with Client(suite.address, timeout=patience(15)) as c:
            r = c.call(tool, {"n": 21})
    except (OSError, http.client.HTTPException):
        return False
    return r.result is not None and not r.result.get("isError") and text(r) == "42"


def is_back(suite, tool, since):
    assert eventually(lambda: works(suite, tool), SECONDS), (since, suite.logs(100))
    assert eventually(suite.up, SECONDS), (since, systemctl("list-units", "mcpbox*"))
    assert suite.failed() == []


def moments(which):
    """Process -> when its unit did that, in us."""
    return {p: int(show(u, which)[which]) for p, u in UNITS.items()}


def test_it_starts_in_order(suite):
    ready, begun = moments("ActiveEnterTimestampMonotonic"), moments("InactiveExitTimestampMonotonic")
    for i, later in enumerate(ORDER):
        for b in later:
            for a in set().union(*ORDER[:i]):
                assert ready[a] <= begun[b], (a, b)
    migrated = int(show("mcpbox-migrate.service", "ActiveEnterTimestampMonotonic").popitem()[1])
    assert 0 < migrated <= begun["admind"]
    whole = int(show("mcpbox.target", "ActiveEnterTimestampMonotonic").popitem()[1])
    assert max(ready.values()) <= whole
    # Not here, but where it is: the server, and a clock that somebody sets.
    after = show("mcpbox-admind.service", "After")["After"].split()
    assert {"postgresql.service", "time-sync.target"} <= set(after)


def test_all_of_it_runs(suite):
    assert suite.failed() == []
    for process, unit in UNITS.items():
        s = show(unit, "ActiveState", "SubState", "Result", "NRestarts", "StatusText", "Slice", "User")
        assert (s["ActiveState"], s["SubState"], s["NRestarts"]) == ("active", "running", "0"), (unit, s)
        assert s["StatusText"] and s["User"] in USERS, (unit, s)
        assert s["Slice"] == ("mcpbox-pool.slice" if process == "sandboxd-spawn" else "mcpbox.slice")
    for unit in SOCKETS:
        assert show(unit, "SubState", "FileDescriptorName") == \
            {"SubState": "running", "FileDescriptorName": "http"}, unit
    assert health(suite.address()) == 200
    assert health(TUNNEL) in ANSWERS
    assert command("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "starting")


def test_a_tool_is_made_approved_and_called(suite, tool):
    assert works(suite, tool)


def test_one_target_is_the_whole_service(suite):
    """It wants all but the processes of listeners, which their sockets bring."""
    served = {s: s.replace(".socket", ".service") for s in SOCKETS}
    listed = set(show("mcpbox.target", "Wants")["Wants"].split())
    assert listed >= {*SOCKETS, *(set(UNITS.values()) - set(served.values())), *WATCH[:2],
                      "mcpbox-migrate.service"}
    assert not listed & set(served.values())
    for listener, service in served.items():
        assert service in show(listener, "Wants")["Wants"].split()


def test_a_listener_that_is_switched_off_stays_off(suite):
    """By its socket alone, though the target is restarted."""
    command("systemctl", "disable", "--now", "mcpbox-admind-http.socket")
    try:
        command("systemctl", "restart", "mcpbox.target")
        assert eventually(lambda: health(TUNNEL) in ANSWERS, 20)
        for unit in ("mcpbox-admind-http.socket", "mcpbox-admind-http.service"):
            assert show(unit, "ActiveState") == {"ActiveState": "inactive"}
    finally:
        command("systemctl", "enable", "--now", "mcpbox-admind-http.socket")
    assert eventually(suite.up, 20), suite.logs(100)


SYS_PIDFD_GETFD = 438	# <asm-generic/unistd.h>; Python has no name for it


def copy_of_listener(process):
    """A copy of the listener that this process was given, as an int."""
    pid = int(show(UNITS[process], "MainPID")["MainPID"])
    there = os.pidfd_open(pid)
    try:
        fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, there, LISTEN_FD, 0)
    finally:
        os.close(there)
    assert fd != -1, os.strerror(ctypes.get_errno())
    return fd


@pytest.mark.parametrize("process", ["admind-http", "gatewayd-local"])
def test_a_copy_of_a_listener_does_not_keep_the_next_from_its_port(suite, tool, process):
    """A child of systemd has one until its exec, while the target is restarted."""
    with socket.socket(fileno=copy_of_listener(process)) as copy:
        assert copy.getsockname() == suite.address(process)
        assert copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        systemctl("restart", "mcpbox.target")
        assert suite.failed() == []
    is_back(suite, tool, process)


def test_another_user_does_not_share_a_listener_s_port(suite):
    """Its port is refused to whoever is not root, with the same option or without."""
    code = ("import os, socket, sys\nos.setuid(65534)\ns = socket.socket()\n"
            "s.setsockopt(socket.SOL_SOCKET, getattr(socket, sys.argv[1]), 1)\n"
            "s.bind(('127.0.0.1', int(sys.argv[2])))\ns.listen()\nprint('listens')\n")
    for option in ("SO_REUSEADDR", "SO_REUSEPORT"):
        assert "listens" in command("python3", "-c", code, option, "0").stdout
        for process in ("admind-http", "gatewayd-local"):
            r = command("python3", "-c", code, option, str(suite.address(process)[1]), check=False)
            assert r.returncode != 0 and "Address already in use" in r.stderr, (process, option, r)


def test_what_is_part_of_it(suite):
    bound = set(show("mcpbox.target", "ConsistsOf")["ConsistsOf"].split())
    assert bound >= {*SOCKETS, *WATCH, *UNITS.values(), "mcpbox-migrate.service"}
    # And one restarts all of it but the listeners.
    kept = set(show("mcpbox-processes.target", "ConsistsOf")["ConsistsOf"].split())
    assert kept == {*WATCH, *UNITS.values(), "mcpbox-migrate.service"}


def test_layers_hold_under_the_units(suite):
    """What only the service manager can take away is taken away, and nothing that
    a process needs for its own layers. Controllers are this machine's matter."""
    def states():
        return {(x["process"], x["layer"]): x["state"] for x in suite.ctl_json("doctor")
                if x["process"] != "installation"}
    # The pool is there some time after its processes are.
    assert eventually(lambda: states().get(("sandboxd", "runners")) == "enforced", SECONDS)
    layers = states()
    assert {n for _, n in layers} >= {"bounding_set", "securebits", "key_memory", "own_listeners"}
    assert {k for k, state in layers.items() if state != "enforced"} <= \
        {("sandboxd-spawn", "cgroup"), ("sandboxd-spawn", "call_share"), ("sandboxd", "call_memory")}


@pytest.mark.parametrize("process", UNITS)
def test_it_comes_back_when_killed(suite, tool, process):
    old = suite.pid(process)
    os.kill(old, signal.SIGKILL)
    assert eventually(lambda: suite.pid(process) not in (None, old), SECONDS)
    is_back(suite, tool, process)


def test_it_comes_back_when_all_are_killed(suite, tool):
    for pid in suite.pids().values():
        os.kill(pid, signal.SIGKILL)
    is_back(suite, tool, "all")


def postmaster():
    path, = glob.glob("/var/lib/postgresql/*/main/postmaster.pid")
    with open(path, encoding="ascii") as f:
        return int(f.readline())


def cluster():
    return os.path.basename(glob.glob("/etc/postgresql/*")[0]) + "-main"


def test_it_outlives_postgresql(suite, tool):
    before = suite.pids()
    systemctl("restart", f"postgresql@{cluster()}.service")
    is_back(suite, tool, "PostgreSQL restarted")
    os.kill(postmaster(), signal.SIGKILL)
    assert eventually(lambda: not works(suite, tool), SECONDS)
    systemctl("stop", f"postgresql@{cluster()}.service")
    systemctl("start", f"postgresql@{cluster()}.service")
    is_back(suite, tool, "PostgreSQL killed")
    assert suite.pids() == before	# nobody had to end for it


@pytest.fixture
def dropin():
    """dropin(unit, text): settings of a unit, until the test is over."""
    made = []

    def put(unit, text):
        folder = f"/run/systemd/system/{unit}.d"
        os.makedirs(folder)
        made.append(folder)
        with open(folder + "/test.conf", "w", encoding="ascii") as f:
            f.write(text)
        systemctl("daemon-reload")
    yield put
    for folder in made:
        shutil.rmtree(folder)
    systemctl("daemon-reload")


def test_a_late_server_leaves_nothing_failed(suite, tool, dropin):
    """EX_TEMPFAIL of migrate, for which the server that is away is played: admind
    starts without it, and it is done later."""
    with open("/etc/mcpbox/late", "w", encoding="ascii"):
        pass
    dropin("mcpbox-migrate.service", "[Service]\nRestartSec=3s\nExecStart=\n"
           "ExecStart=/bin/sh -c 'test ! -e /etc/mcpbox/late || exit 75'\n")
    systemctl("restart", "mcpbox.target")
    assert eventually(lambda: works(suite, tool), SECONDS)
    assert show("mcpbox-migrate.service", "ActiveState")["ActiveState"] == "activating"
    assert suite.failed() == []
    os.unlink("/etc/mcpbox/late")
    assert eventually(lambda: show("mcpbox-migrate.service", "ActiveState")["ActiveState"] == "active",
                      SECONDS)
    is_back(suite, tool, "late")


def test_a_migration_that_fails_is_not_tried_for_ever(suite, dropin):
    dropin("mcpbox-migrate.service", "[Service]\nRestartSec=0\nExecStart=\nExecStart=/bin/false\n")
    systemctl("restart", "mcpbox-migrate.service", check=False)
    assert eventually(lambda: show("mcpbox-migrate.service", "ActiveState")["ActiveState"] == "failed")
    assert show("mcpbox-migrate.service", "ActiveState", "NRestarts") == \
        {"ActiveState": "failed", "NRestarts": "0"}
    systemctl("reset-failed", "mcpbox-migrate.service")


def test_a_service_that_is_skipped_is_not_started_for_ever(suite, tool):
    """A connection waits for a service that its condition keeps from starting:
    without a limit systemd would try it some thousand times a second."""
    service, unit = UNITS["admind-http"], "mcpbox-admind-http.socket"
    systemctl("stop", service)
    os.rename(SETUP, SETUP + ".away")
    try:
        with socket.create_connection(suite.address("admind-http"), patience(5)):
            assert eventually(lambda: show(unit, "Result")["Result"] == "trigger-limit-hit", SECONDS)
    finally:
        os.rename(SETUP + ".away", SETUP)
    systemctl("restart", "mcpbox.target")
    is_back(suite, tool, "condition")


def test_a_process_that_hangs_is_replaced(suite, tool):
    """The watchdog, its time cut from 30 s."""
    folder = "/run/systemd/system/mcpbox-admind-check.service.d"
    os.makedirs(folder)
    with open(folder + "/test.conf", "w", encoding="ascii") as f:
        f.write("[Service]\nWatchdogSec=1s\n")
    systemctl("daemon-reload")
    systemctl("restart", UNITS["admind-check"])
    old = suite.pid("admind-check")
    os.kill(old, signal.SIGSTOP)
    assert eventually(lambda: suite.pid("admind-check") not in (None, old), SECONDS)
    is_back(suite, tool, "watchdog")
    os.unlink(folder + "/test.conf")
    systemctl("daemon-reload")


class Visitors:
    """Clients with a new connection for each question, without rest."""

    def __init__(self, *addresses):
        self.done, self.wrong, self.longest, self.stop = [0] * len(addresses), [], (0, 0), False
        self.threads = [threading.Thread(target=self.visit, args=(i, a))
                        for i, a in enumerate(addresses)]

    def visit(self, i, address):
        while not self.stop:
            begin = time.monotonic()
            try:
                status = health(address)
                if status not in ANSWERS:
                    self.wrong.append((address, status))
            except (OSError, http.client.HTTPException) as e:
                self.wrong.append((address, repr(e)))
            self.longest = max(self.longest, (begin, time.monotonic()), key=lambda s: s[1] - s[0])
            self.done[i] += 1
            time.sleep(0.002)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.stop = True
        for t in self.threads:
            t.join()


def test_no_connection_is_refused_while_services_restart(suite, tool):
    """As at an upgrade: one transaction for all services; the sockets stay, and
    who comes meanwhile waits in their backlog."""
    before = suite.pids()
    since = {u: show(u, "ActiveEnterTimestampMonotonic") for u in SOCKETS}
    addresses = (suite.address(), suite.address(), TUNNEL)
    with Visitors(*addresses) as v:
        assert eventually(lambda: min(v.done) > 10, SECONDS)
        systemctl("restart", "mcpbox-processes.target")
        after = [n + 10 for n in v.done]
        assert eventually(lambda: all(n > m for n, m in zip(v.done, after)), SECONDS)
    assert v.wrong == []
    # The longest visit began before a service that it needs did: it waited for it.
    begun = [int(show(u, "ExecMainStartTimestampMonotonic").popitem()[1]) / 1e6
             for u in (UNITS["gatewayd-local"], UNITS["gatewayd-tunnel"])]
    assert any(v.longest[0] < b < v.longest[1] for b in begun), "nobody ever waited: what did this show?"
    assert not set(before.values()) & set(suite.pids().values())
    assert since == {u: show(u, "ActiveEnterTimestampMonotonic") for u in SOCKETS}
    is_back(suite, tool, "restart")


def test_reload_starts_it_anew_and_refuses_a_wrong_file(suite, tool):
    unit, conf = UNITS["gatewayd-local"], "/etc/mcpbox/gatewayd-local.conf"
    with open(conf, encoding="utf-8") as f:
        good = f.read()
    with open(conf, "w", encoding="utf-8") as f:
        f.write(good + "no_such_setting 1\n")
    old = suite.pid("gatewayd-local")
    assert command("systemctl", "reload", unit, check=False).returncode != 0
    assert works(suite, tool) and suite.pid("gatewayd-local") == old
    with open(conf, "w", encoding="utf-8") as f:
        f.write(good)
    with Visitors(suite.address()) as v:
        assert eventually(lambda: v.done[0] > 10, SECONDS)
        systemctl("reload", unit, check=False)
        assert eventually(lambda: suite.pid("gatewayd-local") not in (None, old), 20)
        last = v.done[0]
        assert eventually(lambda: v.done[0] > last + 10, SECONDS)
    assert v.wrong == []
    is_back(suite, tool, "reload")


def owned():
    """Processes of our users."""
    uids = {pwd.getpwnam(u).pw_uid for u in USERS}
    found = []
    for p in glob.glob("/proc/[0-9]*"):
        try:
            if os.stat(p).st_uid in uids or set(uids_of(p)) & uids:
                found.append(p)
        except OSError:
            pass
    return found


def uids_of(path):
    with open(path + "/status", encoding="ascii") as f:
        return next([int(x) for x in line.split()[1:]] for line in f if line.startswith("Uid:"))


def test_stopping_the_target_stops_all_and_in_order(suite, tool):
    assert len(owned()) >= len(UNITS)
    systemctl("stop", "mcpbox.target")
    # It does not wait for what it stops.
    all_of_it = ("mcpbox.target", *SOCKETS, *WATCH, *UNITS.values(), "mcpbox-migrate.service")
    assert eventually(lambda: set(systemctl("is-active", *all_of_it, check=False).split()) ==
                      {"inactive"}, SECONDS), systemctl("list-units", "mcpbox*")
    assert owned() == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(suite.address(), patience(5))
    assert not os.path.exists(TUNNEL)
    assert suite.failed() == []
    ended, begun = moments("InactiveEnterTimestampMonotonic"), moments("ActiveExitTimestampMonotonic")
    for i, later in enumerate(ORDER):
        for b in later:
            for a in set().union(*ORDER[:i]):
                assert ended[b] <= begun[a], (a, b)
    systemctl("start", "mcpbox.target")
    is_back(suite, tool, "start")
