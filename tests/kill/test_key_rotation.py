"""mcpboxctl key rotate: all goes on meanwhile, and SIGKILL of anything half way
loses nothing; the command run again ends what was begun."""
import glob
import hashlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.instance import Instance
from harness.patience import patience, until
from kill.halfway import stopped_after

SECRETS, TOOLS = 40, 4
SHOW = """import hashlib
def main() -> str:
    return hashlib.sha256(secrets["S0"].encode()).hexdigest()
"""


def value(n):
    return f"value-of-{n}-" + hashlib.sha256(str(n).encode()).hexdigest()


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    try:
        with Client(i.address) as c:
            c.manage("mcpbox_create_server", name="rotated", description="Of the tests.")
            for n in range(SECRETS):
                i.ctl("secret", "set", "rotated", f"S{n}", stdin=value(n))
            server = c.manage("mcpbox_list_servers")["servers"][0]["id"]
            for n in range(TOOLS):
                tool = c.manage("mcpbox_create_tool", server_id=server, name=f"t{n}",
                                description="d", python_code=SHOW, secrets=["S0"])["id"]
                c.manage("mcpbox_request_publish", tool_id=tool)
                item = flow.pending(i, f"t{n}")
                i.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
        yield i
    finally:
        i.close()


def keys(instance):
    """Names in the directory of the key, of what they are: id -> file."""
    return {os.path.basename(p) for p in glob.glob(os.path.join(instance.state, "key", "*"))}


def status(instance):
    return instance.ctl_json("key", "status")


def counts(instance):
    """How many rows are under which key."""
    return {k: int(n) for k, n in instance.psql(
        "SELECT encode(key_id, 'hex'), count(*) FROM mcpbox.resting GROUP BY 1")}


def answers(instance, name="rotated__t0", expected=value(0)):
    with Client(instance.address) as c:
        r = c.call(name, {}).result
    assert r["isError"] is False, r
    assert r["content"][0]["text"] == hashlib.sha256(expected.encode()).hexdigest()


def resumed(instance, seconds=30):
    """After something was killed: everything that rests opens, and serves."""
    last = []

    def verified():
        last[:] = [r := instance.ctl("key", "verify", "--json", check=False)]
        assert r.returncode == 0 or '"unreadable"' not in r.stdout, (r.stdout, r.stderr)
        return r if r.returncode == 0 else None
    r = until(verified, seconds, 0.1, say=lambda: last)
    assert '"unreadable":0}' in r.stdout, r.stdout
    until(lambda: answers(instance) or True, seconds, 0.1, during=(AssertionError, OSError, KeyError, TypeError))
    rest = Rest(lambda: instance.address("admind-http"))
    until(lambda: rest.login("admin", instance.password)[0] == 200, seconds, 0.1)


def seen(instance, seconds):
    """What the command says once it has looked at all that rests."""
    return until(lambda: r if '"seen"' in (r := instance.ctl("key", "verify", "--json", check=False)).stdout else None,
                 seconds, 0.1, say=lambda: instance.ctl("key", "verify", "--json", check=False).stderr)


class Half:
    """A rotation that is stopped in the middle; the process that drives it."""

    def __init__(self, instance, renewed):
        self.instance, before = instance, status(instance)["key"]
        self.ctl = stopped_after(instance, renewed, lambda: subprocess.Popen(
            [os.path.join(instance.state, "bin", "mcpboxctl"), "key", "rotate", "--batch", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        now = counts(instance)
        assert sum(n for k, n in now.items() if k not in (before, "0" * 16)) >= renewed, now
        assert now.get(before, 0) > 0, ("it was over already", now)
        assert "master.key.next" in keys(instance)

    def go(self):
        os.kill(self.ctl.pid, signal.SIGCONT)
        out, err = self.ctl.communicate(timeout=patience(60))
        return self.ctl.returncode, out, err

    def kill(self):
        self.ctl.kill()
        self.ctl.wait()


def finish(instance):
    """The command again: all is under one key, whose file has its place."""
    instance.ctl("key", "rotate", "--batch", "50")
    now = status(instance)["key"]
    assert set(counts(instance)) == {now}
    assert {n for n in keys(instance) if n in ("master.key.next", "master.key.fresh")} == set()
    resumed(instance)
    # the newest anchor may be on its way yet
    until(lambda: instance.ctl("audit", "verify", check=False).returncode == 0, 10, 0.1,
          say=lambda: instance.ctl("audit", "verify", check=False).stderr)
    return now


def test_all_goes_on_meanwhile(instance):
    """Calls without an error; what is written half way is not lost."""
    before, failed, calls = status(instance)["key"], [], 0
    stop = threading.Event()

    def call():
        nonlocal calls
        while not stop.is_set():
            try:
                answers(instance)
                calls += 1
            except Exception as e:  # noqa: BLE001 whatever it was is the finding
                failed.append(e)

    rest = Rest(lambda: instance.address("admind-http"))
    assert rest.login("admin", instance.password)[0] == 200
    t = threading.Thread(target=call)
    t.start()
    try:
        half = Half(instance, 5)
        both = status(instance)
        assert both["older"] == before and both["key"] != before
        instance.ctl("secret", "set", "rotated", "S39", stdin="set half way")
        instance.ctl("secret", "set", "rotated", "S0", stdin=value(0))
        assert rest.request("POST", "/api/password", {
            "old_password": instance.password, "new_password": instance.password + "x"})[0] == 204
        assert rest.request("POST", "/api/password", {
            "old_password": instance.password + "x", "new_password": instance.password})[0] == 204
        with Client(instance.address) as c:
            flow.publish(instance, c, "rotated", "made_half_way", SHOW, secrets=["S0"])
        code, out, err = half.go()
        assert code == 0, (out, err)
        time.sleep(0.5)
    finally:
        stop.set()
        t.join()
    assert not failed and calls > 5, (failed, calls)
    now = status(instance)["key"]
    assert now == both["key"] and set(counts(instance)) == {now}
    assert keys(instance) == {"master.key", "master.key." + before}
    answers(instance, "rotated__made_half_way")
    resumed(instance)
    # Heads that were signed with the older key are still known by the journal.
    instance.ctl("audit", "verify", "--journal",
                 os.path.join(instance.state, "log", "admind-vault", "current"))


@pytest.mark.parametrize("victim", ["admind-vault", "admind", "postgresql", "ctl"])
@pytest.mark.parametrize("renewed", [1, 30])
def test_killed_half_way(instance, victim, renewed):
    before = status(instance)["key"]
    half = Half(instance, renewed)
    if victim == "ctl":
        half.kill()
    else:
        os.kill(instance.service_pid(victim), signal.SIGKILL)
        half.go()   # it fails, or went on behind the restart
    resumed(instance)
    assert finish(instance) != before


def test_all_killed_half_way(instance):
    half = Half(instance, 10)
    for name in ("admind-vault", "admind", "postgresql"):
        os.kill(instance.service_pid(name), signal.SIGKILL)
    half.kill()
    resumed(instance)
    both = status(instance)
    assert both["older"] is not None, "the vault read both files"
    assert finish(instance) == both["key"], "no third key was made"


def test_killed_between_the_end_and_the_files(instance):
    """The database takes the new key alone, and the files are as before."""
    d = os.path.join(instance.state, "key")
    before = status(instance)["key"]
    now = finish(instance)
    os.rename(os.path.join(d, "master.key"), os.path.join(d, "master.key.next"))
    os.rename(os.path.join(d, "master.key." + before), os.path.join(d, "master.key"))
    os.kill(instance.service_pid("admind-vault"), signal.SIGKILL)
    resumed(instance)
    assert finish(instance) == now
    os.kill(instance.service_pid("admind-vault"), signal.SIGKILL)
    resumed(instance)
    assert status(instance)["key"] == now


def test_killed_with_a_new_file_that_nobody_uses_yet(instance):
    """Between the first step and the second; and a file that was not whole."""
    d, before = os.path.join(instance.state, "key"), status(instance)["key"]
    st = os.stat(os.path.join(d, "master.key"))
    for name, size in (("fresh", 7), ("next", 32)):
        path = os.path.join(d, "master.key." + name)
        with open(path, "wb") as f:
            f.write(os.urandom(size))
        os.chown(path, st.st_uid, st.st_gid)
        os.chmod(path, 0o400)
    os.kill(instance.service_pid("admind-vault"), signal.SIGKILL)
    resumed(instance)
    both = status(instance)
    assert both["older"] == before
    # Before the command is run again: what is written is readable, and stays.
    instance.ctl("secret", "set", "rotated", "S1", stdin="with the new key")
    assert finish(instance) == both["key"]


def test_a_key_that_is_lost_is_not_hidden(instance):
    """A value that no key opens: named, left as it is, and nothing is ended."""
    instance.psql("SET session_replication_role = replica; UPDATE mcpbox.server_secrets"
                  " SET value = overlay(value placing '\\x00'::bytea from 30) WHERE key = 'S2'")
    before = status(instance)["key"]
    r = instance.ctl("key", "verify", check=False)
    assert r.returncode == 1 and "secret rotated/S2" in r.stderr, r.stderr
    r = instance.ctl("key", "rotate", check=False)
    assert r.returncode == 1 and "secret rotated/S2" in r.stderr, r.stderr
    assert status(instance)["older"] == before
    answers(instance)
    # Set anew, it is whole again; the command ends.
    instance.ctl("secret", "set", "rotated", "S2", stdin=value(2))
    finish(instance)


def test_left_behind_when_told_so(instance):
    instance.psql("SET session_replication_role = replica; UPDATE mcpbox.server_secrets"
                  " SET value = overlay(value placing '\\x00'::bytea from 30) WHERE key = 'S3'")
    instance.ctl("key", "rotate", "--leave-unreadable")
    now = status(instance)["key"]
    assert counts(instance)[now] > SECRETS and sum(counts(instance).values()) == counts(instance)[now] + 1
    instance.ctl("secret", "delete", "rotated", "S3")
    assert set(counts(instance)) == {now}
    resumed(instance)


def test_another_key_file_is_refused(instance, tmp_path):
    other = tmp_path / "master.key"
    other.write_bytes(os.urandom(32))
    r = instance.ctl("key", "rotate", "--key-file", str(other), check=False)
    assert r.returncode == 1 and "not the one" in r.stderr
    assert os.listdir(tmp_path) == ["master.key"], "nothing was made"


RESTING = {"server_secrets": ("value",), "admin_users": ("verifier",), "approval_seals": ("seal",),
           "audit_anchors": ("signature", "key_id"), "master_key": ("key_id", "next_id")}


def test_a_backup_from_before(instance):
    """The rows as they were, the older key's file back: as OPERATIONS says."""
    d, before = os.path.join(instance.state, "key"), finish(instance)
    for table in RESTING:
        instance.psql(f"CREATE TABLE public.kept_{table} AS SELECT * FROM mcpbox.{table}")
    now = finish(instance)
    for table, columns in RESTING.items():
        key = {"server_secrets": "k.server_id = t.server_id AND k.key = t.key",
               "admin_users": "k.username = t.username", "audit_anchors": "k.seq = t.seq",
               "approval_seals": "k.request_id = t.request_id", "master_key": "true"}[table]
        # What was made since then is not in a backup.
        instance.psql(
            f"SET session_replication_role = replica; UPDATE mcpbox.{table} t SET "
            + ", ".join(f"{c} = k.{c}" for c in columns) + f" FROM public.kept_{table} k WHERE {key};"
            + (f"DELETE FROM mcpbox.{table} t WHERE NOT EXISTS (SELECT 1 FROM public.kept_{table} k"
               f" WHERE {key})" if table != "master_key" else "") + f"; DROP TABLE public.kept_{table}")
    assert set(counts(instance)) == {before}
    os.rename(os.path.join(d, "master.key"), os.path.join(d, "master.key.next"))
    os.rename(os.path.join(d, "master.key." + before), os.path.join(d, "master.key"))
    os.kill(instance.service_pid("admind-vault"), signal.SIGKILL)
    resumed(instance)
    assert status(instance)["older"] == before
    instance.ctl("key", "rotate")
    assert status(instance)["key"] == now and set(counts(instance)) == {now}
    resumed(instance)


def restart_vault(instance):
    os.kill(instance.service_pid("admind-vault"), signal.SIGKILL)
    resumed(instance)


def test_a_restore_needs_the_key_of_its_time(instance, tmp_path):
    """A backup, a rotation, a restore: refused before anything changes, with the command that comes
    first; and what that leads to serves after a restart."""
    before, path = finish(instance), str(tmp_path / "before.backup")
    instance.ctl("backup", path)
    now = finish(instance)
    assert now != before and set(counts(instance)) == {now}
    r = instance.ctl("restore", path, check=False)
    kept = os.path.join(instance.state, "key", "master.key." + before)
    assert r.returncode == 1 and f"under the master key {before}, which is not here" in r.stderr, r.stderr
    assert f"`mcpboxctl key import {kept}`" in r.stderr and "nothing was changed" in r.stderr
    assert set(counts(instance)) == {now}
    restart_vault(instance)     # what it still held of the older key is gone
    # Imported, not yet read: verify says that a restart is missing.
    instance.ctl("key", "import", kept)
    r = instance.ctl("key", "verify", check=False)
    assert r.returncode == 1 and f"has not read the key {before}" in r.stderr, r.stderr
    restart_vault(instance)
    assert instance.ctl("key", "verify").returncode == 0
    said = instance.ctl("restore", path).stdout
    assert "`mcpboxctl key rotate`" in said
    resumed(instance)
    restart_vault(instance)
    instance.ctl("key", "rotate")
    assert set(counts(instance)) == {now}
    instance.ctl("key", "verify")
    resumed(instance)


def test_verify_does_not_count_a_key_that_ends(instance, tmp_path):
    """Restored all the same: for half a minute the older key still opens, a restart forgets it."""
    before, path = finish(instance), str(tmp_path / "before.backup")
    instance.ctl("backup", path)
    restart_vault(instance)
    now = finish(instance)
    instance.ctl("restore", "--leave-unreadable", path)
    r = seen(instance, 30)
    assert r.returncode == 1 and json.loads(r.stdout)["unreadable"] > 0, r
    assert set(counts(instance)) == {before} and status(instance)["key"] == now
    instance.ctl("key", "import", os.path.join(instance.state, "key", "master.key." + before))
    restart_vault(instance)
    instance.ctl("key", "rotate")
    resumed(instance)


def test_verify_says_that_a_file_is_gone(instance, tmp_path):
    finish(instance)
    path = os.path.join(instance.state, "key", "master.key")
    os.rename(path, path + ".aside")
    try:
        r = instance.ctl("key", "verify", check=False)
        assert r.returncode == 1 and "after a restart what is under it does not open" in r.stderr, r.stderr
        r = instance.ctl("restore", str(tmp_path / "none"), check=False)
        assert r.returncode == 1 and "nothing was changed" in r.stderr
    finally:
        os.rename(path + ".aside", path)
    instance.ctl("key", "verify")


def test_a_lost_key(instance):
    """Another key under a database that takes the old one alone: nothing is
    read any more, and one command later all can be made anew."""
    d, st = os.path.join(instance.state, "key"), os.stat(os.path.join(instance.state, "key/master.key"))
    path = os.path.join(d, "master.key")
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(os.urandom(32))
    os.chown(path, st.st_uid, st.st_gid)
    os.chmod(path, 0o400)
    os.kill(instance.service_pid("admind-vault"), signal.SIGKILL)
    seen(instance, 20)
    r = instance.ctl("secret", "set", "rotated", "S0", stdin="x", check=False)
    assert r.returncode == 1 and "no longer valid" in r.stderr, r.stderr
    r = instance.ctl("key", "rotate", check=False)
    assert r.returncode == 1 and "administrator admin" in r.stderr, r.stderr
    instance.ctl("key", "rotate", "--leave-unreadable")
    instance.ctl("secret", "set", "rotated", "S0", stdin=value(0))
    with Client(instance.address) as c:
        flow.publish(instance, c, "rotated", "made_again", SHOW, secrets=["S0"])
    answers(instance, "rotated__made_again")
