"""The next build over this one while clients call: nobody notices more than a
pause."""
import os
import time

from harness.clients.load import account
from harness.installed import UNITS, apt_install, command, show, systemctl
from harness.patience import eventually
from harness.traffic import Traffic

CONF = "/etc/mcpbox/gatewayd-local.conf"
MINE = "\n# The administrator's own line.\nidle_timeout 119s\n"
# What a call may be told while its machine is between two builds: all of these
# mean that it did not begin. Not lost, killed or internal.
MEANWHILE = {"upgrading", "busy", "storage_unavailable", "sandbox_unavailable",
             "vault_unavailable"}


def builds(suite):
    """Process -> the file that runs, or None when that was replaced."""
    return {p: None if (x := os.readlink(f"/proc/{pid}/exe")).endswith(" (deleted)") else x
            for p, pid in suite.pids().items()}


def migrations(suite):
    return [r[0] for r in suite.psql("SELECT version FROM mcpbox.schema_migrations ORDER BY 1")]


def test_upgrade_under_load(suite, tool, token, notes, packages):
    with open(CONF, "a", encoding="ascii") as f:
        f.write(MINE)
    pids, schema = suite.pids(), migrations(suite)
    records = int(suite.psql("SELECT count(*) FROM mcpbox.executions")[0][0])
    backups = set(os.listdir("/var/lib/mcpbox/backups"))
    with Traffic("upgrade", tool, ms=200, pause=1.5, token=token) as traffic:
        begin = time.time()
        apt_install(packages + "/next.deb", "-o", "Dpkg::Options::=--force-confold")
        end = time.time()
        assert eventually(suite.up), systemctl("list-units", "--all", "mcpbox*") + suite.logs()
        assert traffic.progress(2), (traffic.report(), suite.logs())
        traffic.stop()
    print(f"{traffic.report()}; {end - begin:.0f} s")
    # Calls were under way all the time.
    assert [m for m in traffic.seen("begin").values() if begin < m["at"] < end]
    assert traffic.seen("cut") == {}, traffic.seen("cut")
    assert traffic.unanswered() == set() and traffic.seen("odd") == {}
    strange = {n: m for n, m in traffic.seen("typed").items() if m["typed"] not in MEANWHILE}
    assert strange == {}, strange
    account(suite, tool, {n: m["ok"] for n, m in traffic.seen("ok").items()})
    # It is the next build that runs, all of it.
    now = suite.pids()
    assert all(now[p] != pids[p] for p in UNITS), (pids, now)
    assert None not in builds(suite).values(), builds(suite)
    version = command("dpkg-query", "-W", "-f=${Version}", "mcpbox").stdout
    assert version.endswith("+next"), version
    # Its migration ran, after a backup; what was there is there.
    assert migrations(suite)[:-1] == schema and len(migrations(suite)) == len(schema) + 1
    new = set(os.listdir("/var/lib/mcpbox/backups")) - backups
    assert len(new) == 1, new
    backup = os.path.join("/var/lib/mcpbox/backups", new.pop())
    assert "TABLE DATA mcpbox executions" in command("pg_restore", "--list", backup).stdout
    assert int(suite.psql("SELECT count(*) FROM mcpbox.executions")[0][0]) > records
    assert show("mcpbox-migrate.service", "Result") == {"Result": "success"}
    with open(CONF, encoding="ascii") as f:
        assert f.read().endswith(MINE)
    assert suite.failed() == []


def test_reload_is_checked_first(suite):
    """A wrong file fails the reload and what runs runs on; a right one is read."""
    unit, pid = UNITS["gatewayd-local"], suite.pid("gatewayd-local")
    with open(CONF, encoding="ascii") as f:
        right = f.read()
    with open(CONF, "w", encoding="ascii") as f:
        f.write(right + "no_such_key 1\n")
    try:
        assert command("systemctl", "reload", unit, check=False).returncode != 0
        assert pid and suite.pid("gatewayd-local") == pid
    finally:
        with open(CONF, "w", encoding="ascii") as f:
            f.write(right)
    systemctl("reload", unit)
    assert eventually(lambda: suite.pid("gatewayd-local") not in (None, pid))
    assert eventually(suite.up) and suite.failed() == []
