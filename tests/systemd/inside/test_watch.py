"""egress reads /etc/resolv.conf once: what it says later reaches it by a restart,
and the same said again does not (decision 0063)."""
import os
import re
import shutil
import threading
import time

import pytest

from harness.installed import command, show, systemctl
from harness.patience import eventually

CONF = "/etc/resolv.conf"
STUB = "/run/systemd/resolve/stub-resolv.conf"
EGRESS, WATCH, LINK = "mcpbox-sandboxd-egress.service", "mcpbox-resolv.path", "mcpbox-resolv-link.path"
LOOK, SETTLE = "mcpbox-resolv.service", "mcpbox-resolv-settle.service"
PAUSE = 0.1	# of its second
RESTARTS = 4
SECONDS = 15


@pytest.fixture(scope="module", autouse=True)
def quick(suite):
    """A shorter pause; the file as it was, afterwards."""
    folder = f"/run/systemd/system/{SETTLE}.d"
    os.makedirs(folder)
    with open(folder + "/test.conf", "w", encoding="ascii") as f:
        f.write(f"[Service]\nExecStart=\nExecStart=/bin/sleep {PAUSE}\n")
    systemctl("daemon-reload")
    with open(CONF, encoding="ascii") as f:
        before = f.read()
    looked = looks()
    write(lines(1))
    assert eventually(lambda: looks() != looked and servers(suite) == 1, SECONDS)
    yield
    if os.path.lexists(CONF):
        os.unlink(CONF)
    write(before)
    shutil.rmtree(folder)
    systemctl("daemon-reload")


def lines(n):
    return "# of a test\n" + "".join(f"nameserver 127.0.0.{i + 1}\n" for i in range(n))


def write(text, path=CONF):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def replace(text, path=CONF):
    write(text, path + ".new")
    os.rename(path + ".new", path)


def servers(suite):
    """How many name servers the egress that runs has read."""
    out = command("journalctl", "-b", "-o", "cat", "-u", EGRESS, "MCPBOX_EVENT=ready",
                  f"_PID={suite.pid('egress')}").stdout
    found = re.findall(r"(\d+) name servers", out)
    return int(found[-1]) if found else None


def looks():
    """When it was last looked into, and everything rests again."""
    def rests():
        return {show(w, "SubState")["SubState"] for w in (WATCH, LINK)} == {"waiting"} and \
            systemctl("is-active", SETTLE, LOOK, check=False).split() == ["inactive", "inactive"]
    assert eventually(rests, SECONDS, 0.03), command("systemctl", "status", WATCH, SETTLE, LOOK, check=False).stdout
    return int(show(LOOK, "InactiveEnterTimestampMonotonic").popitem()[1])


@pytest.fixture
def does(suite):
    """does(action, n): a restart follows, after which egress has n servers; none
    follows if n is None."""
    def do(action, n):
        before, pid = looks(), suite.pid("egress")
        action()
        assert eventually(lambda: looks() != before, SECONDS, 0.03), "nobody looked"
        if n is None:
            time.sleep(0.1)
            assert suite.pid("egress") == pid
        else:
            assert eventually(lambda: suite.pid("egress") not in (None, pid) and servers(suite) == n, SECONDS)
            looks()
            assert suite.failed() == []
    return do


def test_a_boot_does_not_wait_for_the_network():
    for unit in (EGRESS, WATCH, LINK, SETTLE, LOOK, "mcpbox-sandboxd.service", "mcpbox-processes.target"):
        s = show(unit, "After", "Wants", "Requires")
        assert "network" not in " ".join(s.values()), unit
    assert LOOK in show(EGRESS, "After")["After"] and WATCH in show(LOOK, "After")["After"]


def test_what_differs_restarts_it_once(suite, does):
    begun = len(command("journalctl", "-b", "-u", EGRESS, "MCPBOX_EVENT=ready", "-o", "cat").stdout.splitlines())
    does(lambda: write(lines(2)), 2)
    does(lambda: write(lines(2)), None)
    does(lambda: replace(lines(2)), None)
    does(lambda: replace(lines(3)), 3)
    now = len(command("journalctl", "-b", "-u", EGRESS, "MCPBOX_EVENT=ready", "-o", "cat").stdout.splitlines())
    assert now - begun == 2


def test_a_link_is_followed(does):
    """To a file that is written or replaced, to none yet; and it is replaced itself."""
    os.makedirs(os.path.dirname(STUB), exist_ok=True)
    write(lines(1) + "# stub\n", STUB)

    def link(to):
        os.symlink(to, CONF + ".new")
        os.rename(CONF + ".new", CONF)
    does(lambda: link(STUB), 1)
    does(lambda: write(lines(2), STUB), 2)
    does(lambda: replace(lines(3), STUB), 3)
    does(lambda: shutil.rmtree(os.path.dirname(STUB)), 1)	# c-ares: of this machine

    def appear():
        os.mkdir(os.path.dirname(STUB))
        write(lines(2), STUB)
    does(appear, 2)
    os.makedirs("/run/elsewhere", exist_ok=True)
    write(lines(3), "/run/elsewhere/conf")
    does(lambda: link("../run/elsewhere/conf"), 3)
    does(lambda: replace(lines(2)), 2)	# a file again
    shutil.rmtree(os.path.dirname(STUB))


def test_it_starts_without_the_file(suite, does):
    does(lambda: os.unlink(CONF), 1)
    systemctl("restart", "mcpbox-processes.target")
    assert eventually(suite.up, SECONDS) and suite.failed() == []
    assert show(EGRESS, "ActiveState") == {"ActiveState": "active"}
    pid = suite.pid("egress")
    looks()
    assert suite.pid("egress") == pid	# it has read what is not there: no second start
    does(lambda: write(lines(3)), 3)


def test_a_file_that_is_always_rewritten(suite):
    """The watch lives, a pause is before each restart, and what was written last is in effect."""
    stop = threading.Event()

    def rewrite():
        i = 0
        while not stop.wait(0.002):
            i += 1
            (write if i % 2 else replace)(lines(1 + i % 2) + f"# {i}\n")
    seen = {suite.pid("egress")}
    began = time.monotonic()

    def restarted():
        seen.add(suite.pid("egress"))
        return len(seen - {None}) > RESTARTS
    t = threading.Thread(target=rewrite)
    t.start()
    try:
        assert eventually(restarted, SECONDS, 0.02)
    finally:
        stop.set()
        t.join()
    replace(lines(3))
    assert eventually(lambda: servers(suite) == 3, SECONDS)
    assert RESTARTS * PAUSE <= time.monotonic() - began
    assert show(WATCH, "ActiveState", "Result") == {"ActiveState": "active", "Result": "success"}
    assert suite.failed() == []


def test_no_moment_is_blind(suite):
    """A second change about when the pause ends: systemd does not watch then."""
    for i in range(5):
        looks()
        write(lines(1) + f"# {i}\n")
        time.sleep(PAUSE + 0.006 * i)
        write(lines(2 + i % 2))
        assert eventually(lambda n=2 + i % 2: servers(suite) == n, SECONDS), i


def test_it_stops_and_starts_with_the_rest(suite):
    # It is at it for a tenth of a second each time.
    for i in range(20):
        looks()
        write(lines(2) + f"# stop {i}\n")
        if eventually(lambda: show(SETTLE, "ActiveState")["ActiveState"] == "activating", 1, 0.01):
            break
    else:
        pytest.fail("it was never seen at it")
    systemctl("stop", "mcpbox.target")
    ours = (EGRESS, WATCH, LINK, SETTLE, LOOK)
    assert eventually(lambda: systemctl("is-active", *ours, check=False).split() == ["inactive"] * 5, SECONDS)
    write(lines(3))
    time.sleep(2 * PAUSE)
    assert systemctl("is-active", *ours, check=False).split() == ["inactive"] * 5
    assert suite.failed() == []
    systemctl("start", "mcpbox.target")
    assert eventually(suite.up, SECONDS) and eventually(lambda: servers(suite) == 3, SECONDS)
    looks()
    write(lines(1))
    assert eventually(lambda: servers(suite) == 1, SECONDS)
