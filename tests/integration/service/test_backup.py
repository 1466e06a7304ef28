"""mcpboxctl backup and restore (decision 0034): consistent, judged before it is
used, swapped at once; whatever ends it in between, the old data are there."""
import json
import os
import secrets
import signal
import subprocess

import psycopg
import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.clients.rest import Rest
from harness.patience import patience, until

CODE = "def main() -> str:\n    return %r\n"


def superuser(instance, dbname="postgres"):
    return psycopg.connect(f"host={instance.run('postgresql')} dbname={dbname} user=postgres", autocommit=True)


def databases(instance):
    with superuser(instance) as c:
        return {r[0] for r in c.execute("SELECT datname FROM pg_database WHERE NOT datistemplate")} - {"postgres"}


def restart(instance, *services):
    for s in services:
        pid = instance.service_pid(s)
        os.kill(pid, signal.SIGTERM)
        until(lambda: instance.service_pid(s) not in (None, pid), 20, 0.05)
    instance.tool("wait")


def settled(instance):
    """admind answers from the database again."""
    until(lambda: instance.ctl("servers", check=False).returncode == 0, 20, 0.05, say=instance.logs)


def names(instance):
    return {s["name"] for s in instance.ctl_json("servers", "--limit", "200")["items"]}


@pytest.fixture(scope="module")
def saved(instance, tmp_path_factory):
    """(file, server, exposed name of a tool that was approved before it)"""
    server = "b" + secrets.token_hex(4)
    with Client(instance.address) as mcp:
        tool = flow.publish(instance, mcp, server, "kept", CODE % "before")
    path = str(tmp_path_factory.mktemp("backup") / "mcpbox.backup")
    said = json.loads(instance.ctl("--json", "backup", path).stdout)
    assert said == {"file": path, "bytes": os.path.getsize(path)} and said["bytes"] > 10000
    assert os.stat(path).st_mode & 0o777 == 0o600
    return path, server, tool


def test_a_backup_never_overwrites_and_leaves_nothing_half(instance, saved, tmp_path):
    path, _, _ = saved
    before = open(path, "rb").read()
    r = instance.ctl("backup", path, check=False)
    assert r.returncode == 1 and "exists" in r.stderr
    assert open(path, "rb").read() == before and not os.path.exists(path + ".part")
    r = instance.ctl("backup", str(tmp_path / "none" / "x"), check=False)
    assert r.returncode == 1
    # killed in the middle: the name is not there, and the next run is not disturbed
    new = str(tmp_path / "new")
    with superuser(instance, "mcpbox") as c, superuser(instance) as watch:
        c.execute("BEGIN; LOCK TABLE mcpbox.servers IN ACCESS EXCLUSIVE MODE")
        p = subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "backup", new])
        activity(watch, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'mcpboxctl' "
                 "AND wait_event_type = 'Lock'")
        r = instance.ctl("backup", new, check=False)
        assert r.returncode == 1 and "another backup" in r.stderr
        assert os.path.exists(new + ".part"), "one does not take the other's away"
        p.kill()
        p.wait(patience(10))
        c.execute("ROLLBACK")
    assert os.path.exists(new + ".part") and not os.path.exists(new)
    instance.ctl("backup", new)
    assert os.path.exists(new) and not os.path.exists(new + ".part")


def test_nothing_secret_in_arguments_and_no_escape_sequences(instance, tmp_path):
    """pg_dump's arguments are for every user to read; and what it says, the server's words among it, goes to root's terminal."""
    with open(os.path.join(instance.state, "conf", "mcpboxctl.conf"), encoding="utf-8") as f:
        lines = [s for s in f.read().splitlines() if not s.startswith(("owner_database ", "postgres_bin "))]
    (tmp_path / "pg_dump").write_text('#!/bin/sh\ntr "\\0" " " </proc/$$/cmdline >&2\nprintf "[$PGPASSWORD]\\033[2J\\n" >&2\nexit 1\n')
    (tmp_path / "pg_dump").chmod(0o755)
    conf = tmp_path / "ctl.conf"
    conf.write_text("\n".join(lines + [f"postgres_bin {tmp_path}", "owner_database host=" + instance.run("postgresql")
                                       + " dbname=mcpbox user=mcpbox_owner password='a \\'canary'", ""]))
    r = subprocess.run([os.path.join(instance.state, "libexec", "mcpboxctl"), "-f", conf, "backup", tmp_path / "x"],
                       capture_output=True, text=True, check=False, timeout=patience(60))
    said = r.stderr.replace("\n       + ", "")      # a row ends where the path is long
    assert r.returncode == 1 and "user='mcpbox_owner'" in said and "[a 'canary]" in said, said
    assert said.count("canary") == 1 and "\x1b" not in said and "\\u{1b}[2J" in said, said


def test_a_file_that_was_put_in_its_way_is_not_written_to(instance, tmp_path):
    """It would be its owner's to read, and to change before a restore."""
    new, aside = str(tmp_path / "new"), str(tmp_path / "aside")
    with open(new + ".part", "w", encoding="ascii") as theirs:
        os.chown(theirs.name, 65534, 65534)
        os.chmod(theirs.name, 0o666)
        os.link(theirs.name, aside)
        instance.ctl("backup", new)
    st = os.stat(new)
    assert st.st_uid == 0 and st.st_mode & 0o777 == 0o600 and st.st_size > 10000
    assert os.path.getsize(aside) == 0


def test_restored_it_is_what_it_was(instance, mcp, rest, saved):
    path, server, tool = saved
    later = "l" + secrets.token_hex(4)
    flow.publish(instance, mcp, later, "new", CODE % "after")
    here = next(t for t in instance.ctl_json("tools", "--limit", "200")["items"] if t["exposed_name"] == tool)
    mcp.manage("mcpbox_delete_tool", tool_id=here["id"])
    assert mcp.call(tool).result is None and text(mcp.call(later + "__new")) == "after"
    revision = instance.ctl_json("status")["counts"]["catalogue_revision"]
    said = json.loads(instance.ctl("--json", "restore", path).stdout)
    assert said["database"] == "mcpbox" and said["kept"] in databases(instance)
    settled(instance)
    assert server in names(instance) and later not in names(instance)
    assert instance.ctl_json("status")["counts"]["catalogue_revision"] > revision, "gateways ask anew"
    restart(instance, "admind-vault", "admind")
    settled(instance)
    r = until(lambda: r if (r := mcp.call(tool)).result is not None else None, 20, 0.1, say=lambda: mcp.call(tool))
    assert text(r) == "before" and mcp.call(later + "__new").result is None
    assert tool in mcp.tools() and later + "__new" not in mcp.tools()
    # the vault's seals and verifiers are good, the chain goes on
    assert instance.ctl("key", "verify").returncode == 0
    again = Rest(lambda: instance.address("admind-http"))
    assert again.login("admin", instance.password)[0] == 200
    assert instance.ctl_json("audit")["items"][0]["action"] in ("restored", "login")
    assert "restored" in [r["action"] for r in instance.ctl_json("audit")["items"]]
    assert instance.ctl("audit", "verify", check=False).returncode == 0
    # what was there is there still, under the other name
    with superuser(instance, said["kept"]) as c:
        assert c.execute("SELECT 1 FROM mcpbox.servers WHERE name = %s", (later,)).fetchone()
    with superuser(instance) as c:
        c.execute(f'DROP DATABASE "{said["kept"]}"')


def test_rights_are_those_of_a_new_database(instance):
    with superuser(instance) as c:
        acl, owner = c.execute("SELECT datacl::text, pg_get_userbyid(datdba) FROM pg_database "
                               "WHERE datname = 'mcpbox'").fetchone()
    assert owner == "mcpbox_owner" and "mcpbox_app=c/" in acl and "{=" not in acl and ",=" not in acl
    with psycopg.connect(f"host={instance.run('postgresql')} dbname=mcpbox user=mcpbox_app") as c:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            c.execute("DELETE FROM mcpbox.settings")


@pytest.mark.parametrize("what", ["no file", "empty", "cut", "another's", "garbage inside"])
def test_what_is_no_backup_changes_nothing(instance, saved, tmp_path, what):
    path, server, _ = saved
    bad = str(tmp_path / "bad")
    data = open(path, "rb").read()
    if what == "empty":
        data = b""
    elif what == "cut":
        data = data[:len(data) // 2]
    elif what == "garbage inside":
        data = data[:len(data) // 2] + bytes(4096) + data[len(data) // 2 + 4096:]
    if what == "another's":
        with superuser(instance) as c:
            c.execute("CREATE DATABASE other")
        with superuser(instance, "other") as c:
            c.execute("CREATE TABLE t (a int)")
        data = subprocess.run(["pg_dump", "-Fc", "-h", instance.run("postgresql"), "-U", "postgres", "other"],
                              stdout=subprocess.PIPE, check=True).stdout
        with superuser(instance) as c:
            c.execute("DROP DATABASE other")
    if what != "no file":
        with open(bad, "wb") as f:
            f.write(data)
    before = databases(instance)
    r = instance.ctl("restore", bad, check=False)
    assert r.returncode == 1 and "nothing was changed" in r.stderr, r
    assert databases(instance) == before == {"mcpbox"} and server in names(instance)


def repacked(instance, path, to, sql):
    """The backup, unpacked, edited and packed again."""
    pg = ["-h", instance.run("postgresql"), "-U", "postgres"]
    with superuser(instance) as c:
        c.execute("CREATE DATABASE forged OWNER mcpbox_owner")
    try:
        subprocess.run(["pg_restore", *pg, "-d", "forged", path], check=True)
        with superuser(instance, "forged") as c:
            c.execute(sql)
        subprocess.run(["pg_dump", "-Fc", "-n", "mcpbox", *pg, "-f", to, "forged"], check=True)
    finally:
        with superuser(instance) as c:
            c.execute("DROP DATABASE forged")
    return to


def test_an_altered_audit_log_is_seen(instance, saved, tmp_path):
    """A backup that somebody unpacked, edited and packed again."""
    # The row has a new hash of its own: the rows after it do not fit.
    bad = repacked(instance, saved[0], str(tmp_path / "forged"),
                   "SET session_replication_role = replica; UPDATE mcpbox.audit_log SET actor = 'nobody', "
                   "hash = sha256(prev || mcpbox.audit_row(seq, at, 'nobody', action, subject, detail)) "
                   "WHERE seq = 3")
    r = instance.ctl("restore", bad, check=False)
    assert r.returncode == 1 and "audit log was changed" in r.stderr and databases(instance) == {"mcpbox"}


def test_a_backup_of_before_the_one_schema_is_named(instance, saved, tmp_path):
    """27 migrations, of which the first is no sql/schema (decision 0088): no newer version, which it
    looks like by its number, but one whose data travel by an export."""
    old = repacked(instance, saved[0], str(tmp_path / "old"),
                   "SET session_replication_role = replica; DELETE FROM mcpbox.schema_migrations;"
                   " INSERT INTO mcpbox.schema_migrations (version, name, sha256) SELECT n, CASE n WHEN 1 THEN 'initial'"
                   " ELSE 'other_' || n END, sha256(int4send(n)) FROM generate_series(1, 27) n")
    r = instance.ctl("restore", old, check=False)
    said = r.stderr.replace("\n       + ", "")
    assert r.returncode == 1 and "of a build from before the one schema" in said and "newer" not in said, said
    assert "mcpboxctl export" in said and "mcpboxctl import" in said and "nothing was changed" in said
    assert databases(instance) == {"mcpbox"} and saved[1] in names(instance)


def activity(c, query):
    until(lambda: c.execute(query).fetchone(), 20, 0.01)


def test_killed_while_it_fills(instance, saved):
    path, server, _ = saved
    with superuser(instance) as c:
        for _ in range(3):
            p = subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "restore", path],
                                 stdout=subprocess.DEVNULL)
            activity(c, "SELECT 1 FROM pg_stat_activity WHERE datname = 'mcpbox_restoring'")
            p.kill()
            p.wait(patience(10))
            assert server in names(instance)
            assert databases(instance) <= {"mcpbox", "mcpbox_restoring"}
            activity(c, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory')")
    # and the next one is not disturbed by what is left
    said = json.loads(instance.ctl("--json", "restore", path).stdout)
    assert databases(instance) == {"mcpbox", said["kept"]}
    with superuser(instance) as c:
        c.execute(f'DROP DATABASE "{said["kept"]}"')
    restart(instance, "admind-vault", "admind")


def test_killed_while_it_swaps(instance, saved):
    """A lock on the database's own row holds the renaming up; mcpboxctl is
    killed there, and a second time the whole server."""
    path, server, _ = saved
    with superuser(instance) as c:
        with superuser(instance) as holder:
            holder.execute("BEGIN; COMMENT ON DATABASE mcpbox IS 'held'")
            p = subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "restore", path],
                                 stdout=subprocess.DEVNULL)
            activity(c, "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN;ALTER DATABASE%' "
                     "AND wait_event_type = 'Lock'")
            p.kill()
            p.wait(patience(10))
            holder.execute("ROLLBACK")
        activity(c, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity "
                 "WHERE query LIKE 'BEGIN;ALTER DATABASE%' AND pid <> pg_backend_pid())")
        left = databases(instance)
        # either both names changed, or neither
        assert left == {"mcpbox", "mcpbox_restoring"} or len(left) == 2 and "mcpbox" in left and \
            "mcpbox_restoring" not in left
    settled(instance)
    assert server in names(instance)
    said = json.loads(instance.ctl("--json", "restore", path).stdout)
    assert said["kept"] in databases(instance) and "mcpbox_restoring" not in databases(instance)


def test_into_a_server_without_the_database(instance, saved):
    path, server, tool = saved
    with superuser(instance) as c:
        c.execute("DROP DATABASE mcpbox WITH (FORCE)")
    said = json.loads(instance.ctl("--json", "restore", path).stdout)
    assert said == {"database": "mcpbox", "kept": None}
    restart(instance, "admind-vault", "admind")
    settled(instance)
    assert server in names(instance)
    with Client(instance.address) as mcp:
        r = until(lambda: r if (r := mcp.call(tool)).result is not None else None, 20, 0.1,
                  say=lambda: mcp.call(tool))
        assert text(r) == "before"
