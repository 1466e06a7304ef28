"""What each process tells a service manager and takes from it: real processes,
confined, in a whole instance; the manager is played."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness.clients.mcp import Client
from harness.instance import DAEMONS
from harness.patience import patience
from harness.played.manager import WATCHDOG, Manager

# Nobody waits for it longer than the time after which a manager kills.
LATE = WATCHDOG
# A thread of the test's own that wakes as often as processes do: so long, its machine stood still.
CONTROL_LATE = 0.6 * WATCHDOG
QUIET = 1.5 * WATCHDOG
# The timer is the same in all: one that has priorities, one that only answers
# and one with work of its own.
STUCK = ("egress", "admind-check", "sandboxd")


def field(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(x.split()[1] for x in f if x.startswith(name + ":"))


def answer(where, timeout=patience(10)):
    """Status of GET / there; where: (host, port) or a path."""
    with socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET) as s:
        s.settimeout(timeout)
        s.connect(where)
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        got = b""
        while chunk := s.recv(65536):
            got += chunk
    return int(got.split(b" ")[1])


def watchdog_in_time(m):
    """Asserts that WATCHDOG=1 comes in time. Where the control beside it did not, looks at the next one."""
    for _ in range(50):
        stop, gaps = threading.Event(), []

        def control(stop=stop, gaps=gaps):
            while not stop.is_set():
                began = time.monotonic()
                stop.wait(WATCHDOG / 2)
                gaps.append(time.monotonic() - began)
        thread = threading.Thread(target=control)
        began = time.monotonic()
        thread.start()
        try:
            m.until(lambda x: x.get("WATCHDOG") == "1")
            took = time.monotonic() - began
        finally:
            stop.set()
            thread.join()
        if took < LATE:
            return
        if max(gaps) < CONTROL_LATE:
            pytest.fail(f"WATCHDOG=1 after {took} s, beside {gaps}")
    pytest.fail("the machine stood still each time")


def sanitized():
    """Such builds leave the filter out (common/confine/confine.c)."""
    return "asan" in os.environ.get("MCPBOX_BUILD", "")


@pytest.mark.parametrize("service", sorted(DAEMONS))
def test_ready_watchdog_stop(instance, service):
    """READY=1 comes when it is confined; then WATCHDOG=1, in time; none from a
    loop that stands still; STOPPING=1 at SIGTERM, and exit status 0."""
    with Manager(instance, service) as m:
        m.start()
        status = m.ready()["STATUS"]
        assert status and status.isprintable()
        # A filter of its own, or spawn's list of what is denied.
        assert field(m.pid, "NoNewPrivs") == "1"
        assert sanitized() or field(m.pid, "Seccomp") == "2"
        with open(f"/proc/{m.pid}/environ", "rb") as f:
            assert b"NOTIFY_SOCKET" in f.read()     # the start's, as the kernel keeps it
        for _ in range(2):
            watchdog_in_time(m)
        if service in STUCK:
            m.process.send_signal(signal.SIGSTOP)
            while field(m.pid, "State") != "T":
                time.sleep(0.01)
            while m.next(0.01)[0] is not None:
                pass
            assert m.next(QUIET)[0] is None
            m.process.send_signal(signal.SIGCONT)
            watchdog_in_time(m)
        assert m.stop() == 0


def test_ready_is_serving(instance):
    """Without a listener of the manager's: it answers from READY=1 on."""
    for service in ("gatewayd-local", "admind-http"):
        with Manager(instance, service) as m:
            m.start()
            status = m.ready()["STATUS"]
            assert answer(instance.address(service)) in range(200, 500)
            host, port = instance.address(service)
            assert f"on {host}:{port}" in status


def test_status_of_gatewayd(instance):
    """Of whom it waits for, then how many are connected."""
    with Manager(instance, "gatewayd-local") as m:
        m.start()
        assert re.fullmatch(r"local listener on 127\.0\.0\.1:\d+, 0 connections, waiting for "
                            r"\w+", m.ready()["STATUS"])
        m.until(lambda x: x.get("STATUS", "").endswith(", 0 connections, serving"))
        with Client(instance.address) as c:
            c.request("tools/list")
            m.until(lambda x: ", 1 connections, serving" in x.get("STATUS", ""))
        # Nothing is said again while nothing changes.
        m.until(lambda x: ", 0 connections, serving" in x.get("STATUS", ""))
        end = time.monotonic() + 6
        while time.monotonic() < end:
            got, _ = m.next(end - time.monotonic())
            assert got is None or list(got) == ["WATCHDOG"]


def test_status_of_admind(instance):
    """Ready without a database; the status says why it has none."""
    pg = os.path.join(instance.state, "service", "postgresql")
    with Manager(instance, "admind") as m:
        try:
            subprocess.run(["sv", "-w", "20", "down", pg], check=True, stdout=subprocess.DEVNULL)
            m.start()
            assert m.ready()["STATUS"] == "connecting to the database"
            s = m.until(lambda x: x.get("STATUS", "").startswith("no database, trying again: "))
            assert "No such file or directory" in s["STATUS"]
            subprocess.run(["sv", "up", pg], check=True, stdout=subprocess.DEVNULL)
            m.until(lambda x: x.get("STATUS") == "serving, database reached")
        finally:
            subprocess.run(["sv", "up", pg], check=True, stdout=subprocess.DEVNULL)


def test_status_of_sandboxd(instance):
    with Manager(instance, "sandboxd") as m:
        m.start()
        assert m.ready()["STATUS"] == "waiting for a pool"
        s = m.until(lambda x: re.match(r"[1-9]\d* runners wait", x.get("STATUS", "")))
        assert re.fullmatch(r"\d+ runners wait, 0 run a call, \d+ of \d+ slots in use"
                            r"(, waiting for admind)?", s["STATUS"])


# ---- inherited listeners

def listener(instance, service):
    """As a socket unit makes it: (socket, where, what addr_file says)."""
    if service != "gatewayd-tunnel":
        s = socket.create_server(("127.0.0.1", 0), backlog=64)
        host, port = s.getsockname()
        return s, (host, port), f"{host}:{port}"
    path = os.path.join(instance.parent, "inherited.sock")
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(64)
    return s, path, path


@pytest.mark.parametrize("service", ["gatewayd-local", "gatewayd-tunnel", "admind-http"])
def test_inherited(instance, service):
    """It serves on the manager's socket, in a network namespace without any
    interface; who connects while it is away is answered by its next life."""
    s, where, text = listener(instance, service)
    with s, Manager(instance, service) as m:
        m.start([s], network=False)
        assert f"on {text}, " in m.ready()["STATUS"]
        assert answer(where) in range(200, 500)
        with open(instance.run(service, "addr"), encoding="ascii") as f:
            assert f.read() == text + "\n"
        m.kill()
        with socket.socket(s.family) as early:
            early.connect(where)
            early.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            early.settimeout(0.3)
            with pytest.raises(TimeoutError):
                early.recv(1)
            m.start([s], network=False)
            m.ready()
            early.settimeout(patience(10))
            assert early.recv(100).startswith(b"HTTP/1.1 ")
        assert m.stop() == 0
    if isinstance(where, str):
        os.unlink(where)


def test_descriptors_of_another(instance):
    """LISTEN_PID is not its own: it listens itself, where its file says."""
    s, where, text = listener(instance, "gatewayd-local")
    with s, Manager(instance, "gatewayd-local") as m:
        m.start([s], pid="1")
        assert text not in m.ready()["STATUS"]
        assert instance.address() != where
        assert answer(instance.address()) in range(200, 500)
        with socket.create_connection(where) as c:   # the kernel takes it, nobody answers
            c.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            c.settimeout(1)
            with pytest.raises(TimeoutError):
                c.recv(1)


def connected():
    a, b = socket.socketpair()
    b.close()
    return a


NO_LISTENERS = [
    (lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "http",
     "inherited descriptor 3 is no listening stream socket"),
    (lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM), "http",
     "inherited descriptor 3 is no listening stream socket"),
    (connected, "http", "inherited descriptor 3 is no listening stream socket"),
    (lambda: open("/dev/null", "rb"), "http", "inherited descriptor 3 is no socket"),
    (lambda: socket.create_server(("127.0.0.1", 0)), "mcpbox.socket",
     'of 1 descriptors passed none is named \\"http\\"'),
]


@pytest.mark.parametrize("service", ["gatewayd-local", "admind-http"])
def test_no_listener(instance, service):
    """A unit that passes something else: no READY=1, the reason in the log."""
    with Manager(instance, service) as m:
        for make, names, why in NO_LISTENERS:
            before = len(m.text()) if os.path.exists(m.log) else 0
            with make() as s:
                m.start([s], names=names)
            assert m.process.wait(patience(20)) == 1
            assert m.next(0.1)[0] is None
            assert why in m.text()[before:]


def test_listener_that_nobody_takes(instance):
    s = socket.create_server(("127.0.0.1", 0))
    with s, Manager(instance, "admind-check") as m:
        m.start([s])
        assert m.process.wait(patience(20)) == 1
        assert "was passed, but this program takes none" in m.text()


# ---- the journal

def journald(directory):
    """journald's socket, as its socket unit makes it."""
    path = os.path.join(directory, "socket")
    if os.path.exists(path):
        os.unlink(path)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(path)
    os.chmod(path, 0o666)
    s.settimeout(patience(10))
    return s


def entry(s):
    """The fields of the next entry, all in the form with a length."""
    data, fields = s.recv(65536), {}
    while data:
        name, _, rest = data.partition(b"\n")
        n = int.from_bytes(rest[:8], "little")
        assert re.fullmatch(rb"[A-Z_]+", name) and rest[8 + n:9 + n] == b"\n"
        fields[name.decode()] = rest[8:8 + n].decode()
        data = rest[9 + n:]
    return fields


def entry_of(s, event):
    while (e := entry(s))["MCPBOX_EVENT"] != event:
        pass
    return e


@pytest.mark.parametrize("service, name", [
    ("gatewayd-local", "gatewayd"), ("admind-check", "admind-check"),
    ("sandboxd-spawn", "sandboxd-spawn")])
def test_journal(instance, service, name):
    """Entries with fields from a confined process; nothing on standard error but
    what journald did not take; and entries again from a journald that came back
    with another socket."""
    directory = os.path.join(instance.parent, "journal")
    os.makedirs(directory, exist_ok=True)
    with Manager(instance, service) as m:
        with journald(directory) as s:
            m.start(journal=directory)
            m.ready()
            e = entry_of(s, "ready")
            assert (e["PRIORITY"], e["SYSLOG_IDENTIFIER"]) == ("6", "mcpbox-" + name)
            # The instance asks for JSON: the message is the line as it was.
            line = json.loads(e["MESSAGE"])
            assert (line["event"], line["proc"], line["pid"]) == ("ready", name, m.pid)
            with pytest.raises(BlockingIOError):
                m.stream.recv(1, socket.MSG_DONTWAIT)
        os.unlink(os.path.join(directory, "socket"))
        if service == "gatewayd-local":     # it connects again and says so
            subprocess.run(["sv", "restart", os.path.join(instance.state, "service", "admind")],
                           check=True, stdout=subprocess.DEVNULL)
            m.stream.settimeout(patience(20))
            assert m.stream.recv(4096).startswith(b"<")
        with journald(directory) as s:
            assert m.stop() == 0
            assert entry_of(s, "stopping")["PRIORITY"] == "6"
