"""What a person would do first, and what holds it: layers, scores, limits."""
import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.installed import SCORES, UNITS, command, show, systemctl
from harness.patience import eventually, patience, until
from vm.programs import FORKS, SPIN, TREE, go, waiting

MIB = 1 << 20
ROOT = "/sys/fs/cgroup"


def test_the_tool_that_a_client_made_is_approved_and_called(suite, client, tool, token):
    """Drafted over MCP, approved by mcpboxctl on what it shows, called over both
    listeners; before that it can't be called, and without a token the tunnel
    admits nobody."""
    draft = flow.draft(client, "load", "unread", "def main(): return 1\n")
    assert draft and client.call("load__unread", {}).error["data"]["failure_mode"] in (
        "unknown_tool", "not_approved")
    assert text(client.call(tool, {"nonce": "1"})) == "ran 1"
    tunnel = lambda: suite.run("gatewayd-tunnel", "mcp.sock")	# noqa: E731
    with Client(tunnel, token=token, timeout=patience(120)) as c:
        assert text(c.call(tool, {"nonce": "2"})) == "ran 2"
    with Client(tunnel, timeout=patience(120)) as c:
        assert c.call(tool, {"nonce": "3"}).status == 401
    # A record follows its answer.
    assert eventually(lambda: suite.psql("SELECT outcome FROM mcpbox.executions "
                                         f"WHERE tool = '{tool}' AND kind = 'tool'") == [["done"]] * 2)


def test_every_layer_that_this_kernel_has(suite):
    assert eventually(suite.runs_tools, step=1), suite.logs()
    rows = {(r["process"], r["layer"]): r for r in suite.ctl_json("doctor")}
    abi = ctypes.CDLL(None).syscall(444, None, 0, 1)	# landlock_create_ruleset(2), VERSION
    print(f"Landlock ABI {abi}, {len(rows)} layers")
    assert rows["sandboxd-spawn", "cgroup"]["state"] == "enforced", rows
    assert rows["pool", "call_cgroup"]["state"] == "enforced", rows
    weak = {k: (r["state"], r["detail"]) for k, r in rows.items() if r["state"] != "enforced"}
    # Landlock judges TCP from its fourth version on, abstract sockets and signals
    # from its sixth. What an older kernel lacks is named, not passed over.
    lacks = [name for name, since in (("tcp", 4), ("scope", 6)) if abi < since]
    expected = {k for k in rows if k[1].replace("runner-", "").replace("-", "_") in
                ["landlock_" + n for n in lacks]}
    assert bool(lacks) == bool(expected)
    # Nobody has made a backup of this machine yet, and doctor says so.
    assert set(weak) - {("installation", "backup")} == expected, weak
    assert {p for p, _ in rows} >= {"gatewayd-local", "gatewayd-tunnel", "admind", "sandboxd"}, rows


@pytest.mark.parametrize("process", sorted(SCORES))
def test_score(process):
    """systemd's own judgement of the unit as it runs."""
    out = systemctl_security(UNITS[process])
    score = float(re.search(r"exposure level for .*: ([0-9.]+) ", out)[1])
    print(f"{process} {score}")
    assert score <= SCORES[process], out


def systemctl_security(unit):
    return command("systemd-analyze", "security", "--no-pager", unit).stdout


def journal(**fields):
    out = command("journalctl", "-b", "--no-pager", "-o", "json",
                  *(f"{k}={v}" for k, v in fields.items()), check=False).stdout
    return [json.loads(line) for line in out.splitlines()]


def test_the_journal_has_fields(suite, client):
    """By which a line is found: an event's, and the execution's that
    PostgreSQL has a record of; a name that nobody uses finds nothing."""
    client.manage("mcpbox_list_servers")
    assert journal(MCPBOX_EVENT="no_such_event") == []
    row = journal(MCPBOX_EVENT="answered")[-1]
    assert row["SYSLOG_IDENTIFIER"] == "mcpbox-admind" and row["_SYSTEMD_UNIT"] == UNITS["admind"]
    assert row["MCPBOX_PRINCIPAL"] == "local" and "mcpbox_list_servers" in row["MESSAGE"]
    execution = row["MCPBOX_EXECUTION_ID"]
    assert suite.psql(f"SELECT tool FROM mcpbox.executions WHERE id = '{execution}'") \
        == [["mcpbox_list_servers"]]
    assert row["MESSAGE"] in [r["MESSAGE"] for r in journal(MCPBOX_EXECUTION_ID=execution)]


# --- A runner's limits, in the delegated part of the service's cgroup. ---

@pytest.fixture(scope="module")
def pool():
    group = show(UNITS["sandboxd-spawn"], "ControlGroup")["ControlGroup"]
    assert "/mcpbox-pool.slice/" in group, group
    return ROOT + group + "/pool"


def read(*path):
    with open(os.path.join(*path), encoding="ascii") as f:
        return f.read()


def numbers(*path):
    return {k: int(v) for k, v in map(str.split, read(*path).splitlines())}


def leaves(pool):
    """Path -> pids of every call's leaf."""
    found = {}
    for d in os.listdir(pool):
        if d.startswith("slot-"):
            try:
                found[os.path.join(pool, d)] = [int(p) for p in
                                                read(pool, d, "cgroup.procs").split()]
            except OSError:
                continue	# it was just replaced
    return found


class Calls:
    """Calls of tools with a limit to reach, one at a time, beside the test."""

    def __init__(self, suite, client):
        self.suite, self.client = suite, client

    def publish(self, name, code):
        return flow.publish(self.suite, self.client, "limits", name, code)

    def start(self, name):
        code = ("import sys\nsys.path.insert(0, '.')\nfrom harness.clients.mcp import Client\n"
                f"r = Client(lambda: ('127.0.0.1', 8002), timeout={patience(170)}).call({name!r}, {{}})\n"
                "import json\nprint(json.dumps(r.value))")
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                                cwd=os.path.join(os.path.dirname(__file__), "..", ".."))

    def end(self, process):
        out, _ = process.communicate(timeout=patience(180))
        return json.loads(out)["result"]


@pytest.fixture(scope="module")
def calls(suite, client):
    return Calls(suite, client)


def words(result):
    return "".join(c.get("text", "") for c in result["content"])


def test_memory_max_bites(calls, client, pool):
    """Ten processes of 40 MiB: each far below RLIMIT_AS, together above
    memory.max. The same program outside, and a smaller tree inside, succeed."""
    outside = subprocess.run([sys.executable, "-c", TREE.format(n=10, mib=40, stay=False)
                              + "\nprint(main())"], capture_output=True, text=True, check=True,
                             timeout=patience(120))
    assert outside.stdout.strip() == "10"
    small = calls.publish("small_tree", TREE.format(n=2, mib=40, stay=False))
    large = calls.publish("large_tree", TREE.format(n=10, mib=40, stay=True))
    assert words(client.call(small, {}).result) == "2"
    killed = numbers(pool, "memory.events")["oom_kill"]
    end = client.call(large, {}).result
    assert end["isError"] and f"memory_bytes is {256 * MIB} bytes" in words(end), end
    assert end["_meta"]["mcpbox/failure"]["failure_mode"] == "limit"
    assert numbers(pool, "memory.events")["oom_kill"] > killed
    assert words(client.call(small, {}).result) == "2"


def test_pids_max_bites(calls, pool):
    """Its RLIMIT_NPROC, which says the same, is taken away from outside: what
    refuses the fork then is the cgroup."""
    started = calls.start(calls.publish("forks", waiting(FORKS)))

    def running():
        for leaf, pids in leaves(pool).items():
            for p in pids[:1]:
                if resource.prlimit(p, resource.RLIMIT_NPROC)[0] == 64 and \
                        os.path.exists(f"/proc/{p}/root/tmp"):
                    return leaf, p
        return None
    leaf, pid = eventually(running, 60)
    assert int(read(leaf, "pids.max")) == 64
    before = numbers(leaf, "pids.events")["max"]
    resource.prlimit(pid, resource.RLIMIT_NPROC,
                     (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    go(pid)
    n, error = json.loads(words(calls.end(started)))
    assert error == 11 and 40 <= n < 64
    assert numbers(leaf, "pids.events")["max"] > before
    # Outside, far more than that are no trouble.
    outside = subprocess.run([sys.executable, "-c", "import os, time\ndef main():"
                              + FORKS.replace("500", "100").replace("600", "5")
                              + "\nprint(main()[1])"], capture_output=True, text=True,
                             check=True, timeout=patience(120))
    assert outside.stdout.strip() == "0"


PLAIN = """
import os
for _ in range(3):
    if os.fork() == 0: break
while True: pass
"""


def used(group):
    return numbers(group, "cpu.stat")["usage_usec"]


def share(group, fits, seconds=8):
    """Processors' worth that a cgroup used for some seconds: the first of several
    that fits, since another guest may have the machine's processors meanwhile."""
    found = []

    def look():
        # The clock is read around all that is measured: a halt makes it less.
        t = time.monotonic()
        before = used(group)
        time.sleep(seconds)
        now = used(group)
        found.append((now - before) / 1e6 / (time.monotonic() - t))
        return fits(found[-1])
    until(look, say=lambda: f"{group}: {found}")
    return found[-1]


@contextmanager
def second_processor():
    """Starts the guest's other one for a while: an emulated guest does without it
    (tests/vm/guest). Nothing is asked of the suite meanwhile: a guest of two, where
    the machine has less for it, may stand still for longer than one daemon waits
    for another."""
    switch = Path("/sys/devices/system/cpu/cpu1/online")
    before = switch.read_text(encoding="ascii")
    switch.write_text("1", encoding="ascii")
    try:
        assert os.sysconf("SC_NPROCESSORS_ONLN") == 2
        yield
    finally:
        switch.write_text(before, encoding="ascii")


def test_cpu_max_bites(suite, calls, pool):
    """Four processes that spin get one processor, not the two there are: as
    many get more than one in a unit without a quota."""
    spin = calls.publish("spin", SPIN.format(n=4))
    suite.ctl("servers", "limits", "limits", "timeout_ms=600000", "cpu_ms=3600000")
    started = calls.start(spin)
    leaf = eventually(lambda: [p for p, pids in leaves(pool).items() if len(pids) >= 4])[0]
    pid, freeze = leaves(pool)[leaf][0], Path(leaf, "cgroup.freeze")
    assert read(leaf, "cpu.max").split() == ["100000", "100000"]
    began, throttled = used(leaf), numbers(leaf, "cpu.stat")["nr_throttled"]
    with second_processor():
        inside = share(leaf, lambda n: 0.5 < n < 1.1)
        assert numbers(leaf, "cpu.stat")["nr_throttled"] > throttled
        usec = used(leaf) - began
        # The same load where there is no quota, measured the same way, while the
        # call stands still.
        freeze.write_text("1", encoding="ascii")
        command("systemd-run", "--quiet", "--unit=plain", sys.executable, "-c", PLAIN)
        try:
            outside = share(ROOT + "/system.slice/plain.service", lambda n: n > 1.3, 4)
        finally:
            systemctl("kill", "-s", "KILL", "plain.service")
            freeze.write_text("0", encoding="ascii")
    command("systemctl", "reset-failed", "plain.service", check=False)
    go(pid)
    assert words(calls.end(started)) == "1"
    # The record has the whole tree's time, not just that of who was waited for.
    record = eventually(lambda: suite.psql("SELECT cpu_us FROM mcpbox.executions "
                                           "WHERE tool = 'limits__spin' AND kind = 'tool' "
                                           "AND state <> 'open'"))
    assert int(record[0][0]) >= usec, (record, usec)
    print(f"inside {inside:.2f}, outside {outside:.2f} processors")


def test_nothing_failed(suite):
    """Neither for good nor until systemd started it again."""
    assert suite.failed() == []
    assert suite.restarted() == [], suite.logs()
    assert eventually(suite.up), suite.logs()
