"""SIGKILL of whatever takes part in a restore, at each of its stages: the database
that is served is wholly the one before or wholly the one restored, what was
approved runs, and the same command goes through behind it."""
import contextlib
import json
import os
import secrets
import signal
import subprocess
import time

import psycopg
import pytest

from harness import flow
from harness.instance import Instance, processes
from harness.mcp import Client, text

#: How one sees from outside that a restore has come so far.
STAGES = {
    "created": "SELECT 1 FROM pg_database WHERE datname = 'mcpbox_restoring'",
    "fills": "SELECT 1 FROM pg_stat_activity WHERE datname = 'mcpbox_restoring' AND application_name = 'pg_restore'",
    "swaps": "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN;ALTER DATABASE%' AND wait_event_type = 'Lock'",
}


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(scope="module")
def saved(instance, tmp_path_factory):
    """(file, exposed name of a tool approved before it)"""
    with Client(instance.address) as c:
        tool = flow.publish(instance, c, "kept", "tool", "def main() -> str:\n    return 'kept'\n")
    path = str(tmp_path_factory.mktemp("backup") / "file")
    instance.ctl("backup", path)
    return path, tool


def superuser(instance):
    return psycopg.connect(f"host={instance.run('postgresql')} dbname=postgres user=postgres", autocommit=True)


def databases(instance):
    with superuser(instance) as c:
        return {r[0] for r in c.execute("SELECT datname FROM pg_database WHERE NOT datistemplate")} - {"postgres"}


def until(what, seconds=40):
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(AssertionError, RuntimeError, psycopg.Error, OSError):
            if (got := what()):
                return got
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def served(instance, tool):
    """Servers of the database that is served, once all is up again: what was
    approved before the backup is in either, and runs."""
    for s in ("admind-vault", "admind"):    # a restored audit log is older than what they remember
        pid = instance.service_pid(s)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until(lambda s=s, pid=pid: instance.service_pid(s) not in (None, pid))

    def runs():
        with Client(instance.address, timeout=10) as c:
            return text(c.call(tool)) == "kept"

    until(runs)
    return {s["name"] for s in instance.ctl_json("servers", "--limit", "200")["items"]}


@pytest.mark.parametrize("stage,victim", [
    ("created", "mcpboxctl"), ("fills", "pg_restore"), ("fills", "postgresql"),
    ("fills", "admind"), ("swaps", "mcpboxctl"), ("swaps", "postgresql"), ("swaps", "admind-vault")])
def test_killed_half_way(instance, saved, stage, victim):
    path, tool = saved
    later = "l" + secrets.token_hex(4)      # is there before the restore, and not behind it

    def make():
        with Client(instance.address, timeout=10) as c:
            return c.manage("mcpbox_create_server", name=later)

    until(make)
    with contextlib.ExitStack() as stack:
        c = stack.enter_context(superuser(instance))
        if stage == "swaps":
            holder = stack.enter_context(superuser(instance))
            holder.execute("BEGIN; COMMENT ON DATABASE mcpbox IS 'held'")
        p = subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "restore", path],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: c.execute(STAGES[stage]).fetchone())
        if victim == "mcpboxctl":
            os.kill(p.pid, signal.SIGKILL)
        elif victim == "pg_restore":
            child = [i for i, (ppid, _, _, argv) in processes().items()
                     if ppid == p.pid and os.path.basename(argv[0]) == "pg_restore"]
            assert child, "no pg_restore"
            os.kill(child[0], signal.SIGKILL)
        else:
            os.kill(instance.service_pid(victim), signal.SIGKILL)
        if stage == "swaps":
            with contextlib.suppress(psycopg.Error):
                holder.execute("ROLLBACK")
        p.wait(60)
        stack.pop_all()
        for x in (c, holder) if stage == "swaps" else (c,):
            with contextlib.suppress(psycopg.Error):
                x.close()
    there = until(lambda: databases(instance))
    assert "mcpbox" in there
    now = served(instance, tool)
    # wholly before, or wholly restored; and told so
    if p.returncode == 0:
        assert later not in now
    elif victim in ("pg_restore", "postgresql"):
        assert later in now
    # the command again
    again = until(lambda: (r := instance.ctl("--json", "restore", path, check=False)).returncode == 0
                  and json.loads(r.stdout))
    assert again["database"] == "mcpbox" and "mcpbox_restoring" not in databases(instance)
    assert later not in served(instance, tool)
    with superuser(instance) as c:
        for name in databases(instance) - {"mcpbox"}:
            c.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
