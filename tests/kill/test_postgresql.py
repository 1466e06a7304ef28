"""PostgreSQL dies, or is away, under load: clear errors meanwhile, nothing
lost, service resumes by itself."""
import os
import signal
import subprocess
import time

import pytest

from harness.clients.load import Load
from harness.instance import Instance
from harness.patience import patience, until


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:call_timeout=5s"])
    yield i
    i.close()


def summary(load):
    return {"ok": len(load.ok), "cut": len(load.transport),
            **{m: len(c) for m, c in load.typed.items()}}


def test_backends_killed(instance):
    """Each SIGKILL of a backend makes PostgreSQL restart all of them."""
    with Load(instance) as load:
        load.resumed()
        for _ in range(5):
            pids = instance.psql("SELECT pid FROM pg_stat_activity WHERE usename = 'mcpbox_app'")
            assert pids
            os.kill(int(pids[0][0]), signal.SIGKILL)
            time.sleep(0.3)
            load.resumed()
    load.account()
    assert not load.transport, summary(load)
    assert len(load.ok) > 20, summary(load)


def test_postmaster_killed(instance):
    with Load(instance) as load:
        load.resumed()
        for _ in range(3):
            os.kill(instance.service_pid("postgresql"), signal.SIGKILL)
            time.sleep(0.5)
            load.resumed(60)
    load.account()
    assert not load.transport, summary(load)
    assert len(load.ok) > 20, summary(load)


def test_stopped_and_started(instance):
    service = os.path.join(instance.state, "service", "postgresql")
    with Load(instance) as load:
        load.resumed()
        for _ in range(2):
            subprocess.run(["sv", "-w", "15", "down", service], check=True, stdout=subprocess.DEVNULL)
            begin = time.monotonic()
            time.sleep(3)
            # While it is away, new calls are told so, soon.
            away = until(lambda begin=begin: [c for c in load.typed.get("storage_unavailable", ())
                                              if c[1] >= begin], say=lambda: summary(load))
            assert all(end - start < patience(3) for _, start, end in away), away
            subprocess.run(["sv", "up", service], check=True, stdout=subprocess.DEVNULL)
            load.resumed(60)
    load.account()
    assert not load.transport, summary(load)


def test_ctl_says_what_is_wrong(instance):
    """An administrator's question while PostgreSQL is away."""
    service = os.path.join(instance.state, "service", "postgresql")
    subprocess.run(["sv", "-w", "15", "down", service], check=True, stdout=subprocess.DEVNULL)
    try:
        r = instance.ctl("approvals", "list", check=False)
        assert r.returncode != 0
        assert "storage" in (r.stdout + r.stderr).lower() or "PostgreSQL" in r.stdout + r.stderr
    finally:
        subprocess.run(["sv", "up", service], check=True, stdout=subprocess.DEVNULL)
        instance.tool("wait")
