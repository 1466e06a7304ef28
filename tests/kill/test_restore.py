"""SIGKILL of whatever takes part in a restore, at each of its stages: the database
that is served is wholly the one before or wholly the one restored, what was
approved runs, and the same command goes through behind it.

A restore stays in a stage for as long as the test wants, however fast the
machine is: the backup comes through a pipe, of which nothing arrives while the
database has only been made and all but its last byte while it is filled, and a
lock keeps both databases' names.
"""
import contextlib
import json
import os
import secrets
import signal
import subprocess
import threading

import psycopg
import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.instance import Instance, processes
from harness.patience import patience, until

#: How one sees from outside that a restore has come so far.
STAGES = {
    "created": "SELECT 1 FROM pg_database WHERE datname = 'mcpbox_restoring'",
    "fills": "SELECT 1 FROM pg_stat_activity WHERE datname = 'mcpbox_restoring' AND query LIKE 'COPY mcpbox.%'"
             " AND state = 'active' AND wait_event = 'ClientRead'",
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


class Held(threading.Thread):
    """The backup as a pipe. That part of its bytes comes at once, and the others
    after let_go()."""

    def __init__(self, path, part):
        super().__init__(daemon=True)
        with open(path, "rb") as f:
            data = f.read()
        self.now = data[part]
        self.later = data[len(self.now):]
        self.path, self.go = path + ".pipe", threading.Event()
        os.mkfifo(self.path, 0o600)
        self.start()

    def run(self):
        # Of what was killed, nobody reads the rest.
        with contextlib.suppress(BrokenPipeError), open(self.path, "wb") as f:
            f.write(self.now)
            f.flush()
            self.go.wait()
            f.write(self.later)

    def let_go(self):
        self.go.set()

    def close(self):
        self.let_go()
        # A reader, should there never have been one.
        os.close(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK))
        self.join(patience(20))
        os.unlink(self.path)
        assert not self.is_alive()


#: What of the backup has come in each stage: the last byte belongs to the last
#: table's rows, so that its COPY waits for it.
COME = {"created": slice(0), "fills": slice(-1), "swaps": slice(None)}


def superuser(instance):
    return psycopg.connect(f"host={instance.run('postgresql')} dbname=postgres user=postgres", autocommit=True)


def databases(instance):
    with superuser(instance) as c:
        return {r[0] for r in c.execute("SELECT datname FROM pg_database WHERE NOT datistemplate")} - {"postgres"}


def comes(what, seconds=40):
    return until(what, seconds, 0.01, during=(AssertionError, RuntimeError, psycopg.Error, OSError))


def served(instance, tool):
    """Servers of the database that is served, once all is up again: what was
    approved before the backup is in either, and runs."""
    for s in ("admind-vault", "admind"):    # a restored audit log is older than what they remember
        pid = instance.service_pid(s)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        comes(lambda s=s, pid=pid: instance.service_pid(s) not in (None, pid))

    def runs():
        with Client(instance.address, timeout=patience(10)) as c:
            return text(c.call(tool)) == "kept"

    comes(runs)
    return {s["name"] for s in instance.ctl_json("servers", "--limit", "200")["items"]}


@pytest.mark.parametrize("stage,victim", [
    ("created", "mcpboxctl"), ("fills", "pg_restore"), ("fills", "postgresql"),
    ("fills", "admind"), ("swaps", "mcpboxctl"), ("swaps", "postgresql"), ("swaps", "admind-vault")])
def test_killed_half_way(instance, saved, stage, victim):
    path, tool = saved
    later = "l" + secrets.token_hex(4)      # is there before the restore, and not behind it

    def make():
        with Client(instance.address, timeout=patience(10)) as c:
            return c.manage("mcpbox_create_server", name=later)

    comes(make)
    with contextlib.ExitStack() as stack:
        c = stack.enter_context(contextlib.closing(superuser(instance)))
        if stage == "swaps":
            holder = stack.enter_context(contextlib.closing(superuser(instance)))
            holder.execute("BEGIN; COMMENT ON DATABASE mcpbox IS 'held'")
        pipe = stack.enter_context(contextlib.closing(Held(path, COME[stage])))
        p = subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "restore", pipe.path],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        comes(lambda: c.execute(STAGES[stage]).fetchone())
        assert p.poll() is None
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
        pipe.let_go()
        p.wait(patience(60))
    there = comes(lambda: databases(instance))
    assert "mcpbox" in there
    now = served(instance, tool)
    # wholly before, or wholly restored; and told so
    if p.returncode == 0:
        assert later not in now
    elif victim in ("pg_restore", "postgresql"):
        assert later in now
    # the command again
    again = comes(lambda: (r := instance.ctl("--json", "restore", path, check=False)).returncode == 0
                  and json.loads(r.stdout))
    assert again["database"] == "mcpbox" and "mcpbox_restoring" not in databases(instance)
    assert later not in served(instance, tool)
    with superuser(instance) as c:
        for name in databases(instance) - {"mcpbox"}:
            c.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
