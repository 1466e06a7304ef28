"""`mcpbox-admind -m -b DIR` (decision 0057): a backup before each migration, none without one, and
the way back with it by `mcpboxctl restore`."""
import hashlib
import os
import re
import shutil
import subprocess
import time
import uuid

import pytest

from harness.instance import BUILD, take_block
from harness.patience import patience, until
from harness.pg import Postgres
from harness.schema import checksums, migrations

OWNER = "mcpbox_owner"
MIGRATIONS, CHECKSUMS = migrations(), checksums()
LATEST = len(MIGRATIONS)
OLD = LATEST - 2    # a build of two migrations ago


class Migrator:
    """A private PostgreSQL, and the migration's unit as the service manager runs it."""

    def __init__(self):
        self.pg = Postgres()
        self.base, self.lock = take_block()
        self.pg.start()
        self.pg.roles()
        self.admind = self.pg.dir / "admind"
        shutil.copy(os.path.join(BUILD, "admind/mcpbox-admind"), self.admind)
        self.backups = self.pg.dir / "backups"
        self.backups.mkdir(mode=0o700)
        os.chown(self.backups, self.base + 10, self.base + 10)
        self.bin = self.pg.bin

    def argv(self, dbname="mcpbox", backups=None, postgres_bin=None):
        conf = self.pg.dir / f"{dbname}.conf"
        conf.write_text("gateway_local_user 1\ngateway_tunnel_user 1\nweb_user 1\n"
                        f"owner_database {self.pg.conninfo(OWNER, dbname)}\n"
                        f"postgres_bin {postgres_bin or self.bin}\n")
        uid = str(self.base + 10)
        return ["/usr/bin/setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", self.admind, "-m",
                "-b", backups or self.backups, "-f", conf]

    def migrate(self, *args, **kw):
        return subprocess.run(self.argv(*args, **kw), capture_output=True, text=True, check=False, timeout=patience(60))

    def dumps(self):
        return sorted(p.name for p in self.backups.iterdir())

    def old(self, dbname, version=OLD):
        """A database as an older build left it, with something in it."""
        with self.pg.connect("postgres", "postgres") as c:
            c.execute(f"CREATE DATABASE {dbname} OWNER mcpbox_owner ENCODING 'UTF8' TEMPLATE template0")
        with self.pg.connect(OWNER, dbname) as c:
            for n, (name, text) in enumerate(MIGRATIONS[:version], 1):
                with c.transaction():
                    c.execute(text)
                    c.execute("INSERT INTO mcpbox.schema_migrations (version, name, sha256) VALUES (%s, %s, %s)",
                              (n, name, CHECKSUMS[n - 1]))
            c.execute("SELECT mcpbox.create_server(%s, %s, '', 'local')", (uuid.uuid4(), dbname))

    def version(self, dbname):
        with self.pg.connect(OWNER, dbname) as c:
            return c.execute("SELECT max(version) FROM mcpbox.schema_migrations").fetchone()[0]

    def servers(self, dbname):
        with self.pg.connect(OWNER, dbname) as c:
            return [r[0] for r in c.execute("SELECT name FROM mcpbox.servers ORDER BY name")]

    def close(self):
        self.pg.close()
        self.lock.close()


@pytest.fixture(scope="module")
def m():
    x = Migrator()
    yield x
    x.close()


@pytest.fixture(autouse=True)
def empty(m):
    for p in m.backups.iterdir():
        p.unlink()


def test_what_is_new_or_done_needs_no_backup(m):
    r = m.migrate()
    assert r.returncode == 0 and m.version("mcpbox") == LATEST, r.stderr
    assert m.dumps() == []      # there was nothing to lose
    # It runs before each start: it asks a few things, and repeats no migration.
    with m.pg.connect("postgres", "postgres") as c:
        c.execute("ALTER ROLE mcpbox_owner SET log_statement = 'all'")
    log = m.pg.dir / "log"
    before = log.stat().st_size
    r = m.migrate()
    assert r.returncode == 0 and m.dumps() == [] and "migrated" not in r.stderr
    asked = log.read_bytes()[before:].decode()
    assert 0 < asked.count("statement: ") <= 5, asked
    with m.pg.connect("postgres", "postgres") as c:
        c.execute("ALTER ROLE mcpbox_owner RESET log_statement")


def test_an_upgrade_leaves_a_backup_that_restores(m, tmp_path):
    m.old("upgraded")
    r = m.migrate("upgraded")
    assert r.returncode == 0, r.stderr
    assert m.version("upgraded") == LATEST and m.servers("upgraded") == ["upgraded"]
    (name,) = m.dumps()
    assert re.fullmatch(rf"before-{OLD + 1:04}-\d{{8}}T\d{{6}}Z\.dump", name)
    st = os.stat(m.backups / name)
    assert st.st_mode & 0o777 == 0o600 and st.st_uid == m.base + 10
    assert r.stderr.index(name) < r.stderr.index("migrated")
    # the way back: the older schema with its data; and forward again
    conf = tmp_path / "ctl.conf"
    conf.write_text(f"owner_database {m.pg.conninfo(OWNER, 'upgraded')}\n"
                    f"superuser_database {m.pg.conninfo('postgres', 'postgres')}\npostgres_bin {m.bin}\n")
    with m.pg.connect(OWNER, "upgraded") as c:
        c.execute("SELECT mcpbox.create_server(%s, 'later', '', 'local')", (uuid.uuid4(),))
    back = subprocess.run([os.path.join(BUILD, "admind/ctl/mcpboxctl"), "-f", conf, "restore", m.backups / name],
                          capture_output=True, text=True, check=False, timeout=patience(60))
    assert back.returncode == 0, back.stderr
    assert m.version("upgraded") == OLD and m.servers("upgraded") == ["upgraded"]
    r = m.migrate("upgraded")   # in the same second or not
    assert r.returncode == 0 and m.version("upgraded") == LATEST, r.stderr


def test_two_backups_in_one_second(m):
    m.old("second")
    now = int(time.time())
    taken = [time.strftime(f"before-{OLD + 1:04}-%Y%m%dT%H%M%SZ.dump", time.gmtime(now + n)) for n in range(40)]
    for n in taken:
        (m.backups / n).write_text("")
    r = m.migrate("second")
    assert r.returncode == 0 and m.version("second") == LATEST, r.stderr
    left = m.dumps()
    # One of those before the same migration is kept beside the one that came.
    assert len(left) == 2 and left[0] in taken and left[1] > taken[-1]
    assert (m.backups / left[0]).stat().st_size == 0 < (m.backups / left[1]).stat().st_size


def test_no_migration_without_a_backup(m):
    m.old("unsaved")
    for kw, why in (({"postgres_bin": "/nonexistent"}, "/nonexistent/pg_dump"),
                    ({"backups": "/nonexistent"}, "/nonexistent")):
        r = m.migrate("unsaved", **kw)
        assert r.returncode == 1 and "no migration without a backup" in r.stderr and why in r.stderr
        assert m.version("unsaved") == OLD and m.dumps() == []
    # a pg_dump that ends well and wrote nothing of worth
    fake = m.pg.dir / "fake"
    fake.mkdir()
    (fake / "pg_dump").write_text("#!/bin/sh\necho nonsense\n")
    (fake / "pg_restore").symlink_to(m.bin / "pg_restore")
    (fake / "pg_dump").chmod(0o755)
    r = m.migrate("unsaved", postgres_bin=str(fake))
    assert r.returncode == 1 and "can't be read back" in r.stderr
    assert m.version("unsaved") == OLD and m.dumps() == []


def test_what_fails_at_once_leaves_neither_change_nor_backup(m):
    """The service manager tries again: that must not fill the disk."""
    m.old("stuck")
    with m.pg.connect("postgres", "stuck") as c:
        c.execute("ALTER TABLE mcpbox.schema_migrations ADD CONSTRAINT no CHECK (version <> %d)" % (OLD + 1))
    for _ in range(3):
        r = m.migrate("stuck")
        assert r.returncode == 1 and f"{OLD + 1}" in r.stderr
        assert m.version("stuck") == OLD and m.dumps() == []


def test_a_commit_of_which_nothing_is_known_keeps_the_backup(m):
    """The server ends the connection in the first migration's COMMIT. Here it did not come through; who asked can't tell."""
    m.old("unknown")
    with m.pg.connect("postgres", "unknown") as c:
        c.execute("CREATE FUNCTION public.ends() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
                  "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$")
        c.execute("CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON mcpbox.schema_migrations "
                  "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.ends()")
    r = m.migrate("unknown")
    assert r.returncode != 0 and m.version("unknown") == OLD, r.stderr
    (name,) = m.dumps()
    assert name.startswith(f"before-{OLD + 1:04}-")


def test_what_fails_half_way_keeps_the_backup(m):
    m.old("half")
    with m.pg.connect("postgres", "half") as c:
        c.execute("ALTER TABLE mcpbox.schema_migrations ADD CONSTRAINT no CHECK (version <> %d)" % LATEST)
    r = m.migrate("half")
    assert r.returncode == 1 and m.version("half") == LATEST - 1
    (name,) = m.dumps()
    assert name.startswith(f"before-{OLD + 1:04}-")
    # again: nothing can be done, and the same one is kept
    assert m.migrate("half").returncode == 1
    assert m.dumps() == [name]


def test_the_newest_five_are_kept_and_parts_of_killed_runs_go(m):
    m.old("many")
    foreign = m.backups / "before-my-own.dump"
    for n in range(1, 8):   # by their dates, whatever their numbers
        (m.backups / f"before-{9 - n:04}-2026010{n}T000000Z.dump").write_text(str(n))
    # of a run that was killed before the same migration: one is enough
    for hour in range(3):
        (m.backups / f"before-{OLD + 1:04}-20251231T0{hour}0000Z.dump").write_text("")
    (m.backups / f"before-{OLD + 1:04}-20260101T000000Z.dump.part").write_text("half")
    foreign.write_text("a person's")
    r = m.migrate("many")
    assert r.returncode == 0, r.stderr
    left = sorted((n for n in m.dumps() if n != foreign.name), key=lambda n: n[12:])
    assert foreign.exists() and len(left) == 5
    assert [n[12:20] for n in left[:4]] == ["20260104", "20260105", "20260106", "20260107"]
    assert left[4].startswith(f"before-{OLD + 1:04}-") and "-2025" not in left[4]


def test_a_killed_pg_dump_leaves_nothing_behind(m):
    m.old("killed")
    slow = m.pg.dir / "slow"
    slow.mkdir()
    (slow / "pg_dump").write_text("#!/bin/sh\necho begun\nexec sleep 600\n")
    (slow / "pg_dump").chmod(0o755)
    p = subprocess.Popen(m.argv("killed", postgres_bin=str(slow)), stderr=subprocess.PIPE)
    until(lambda: p.poll() is not None or m.dumps() and os.path.getsize(m.backups / m.dumps()[0]) > 0)
    assert p.poll() is None
    assert m.dumps()[0].endswith(".part")
    children = subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True, text=True, check=False).stdout.split()
    assert children
    p.kill()
    p.wait(patience(10))
    p.stderr.close()
    until(lambda: not any(os.path.exists(f"/proc/{c}/exe") for c in children))     # none goes on alone
    r = m.migrate("killed")
    assert r.returncode == 0 and len(m.dumps()) == 1 and m.dumps()[0].endswith(".dump"), r.stderr


def test_a_newer_schema_names_the_way_back(m):
    m.old("newer", LATEST)
    with m.pg.connect(OWNER, "newer") as c:
        c.execute("INSERT INTO mcpbox.schema_migrations (version, name, sha256) VALUES (%s, 'of_tomorrow', %s)",
                  (LATEST + 1, bytes(32)))
    r = m.migrate("newer")
    assert r.returncode == 1 and "use the newer program" in r.stderr and "restore" not in r.stderr
    names = [f"before-{LATEST + 2:04}-20270101T000000Z.dump", f"before-{LATEST + 1:04}-20260601T000000Z.dump",
             f"before-{LATEST:04}-20260101T000000Z.dump"]
    for n in names:
        (m.backups / n).write_text("")
    r = m.migrate("newer")
    # the newest that this program can use, not the newest
    assert r.returncode == 1 and f"mcpboxctl restore {m.backups}/{names[1]}" in r.stderr, r.stderr
    assert m.dumps() == sorted(names)


def test_the_password_is_no_argument(m):
    """pg_dump's arguments are for every user to read; its environment is not."""
    m.old("secret")
    see = m.pg.dir / "see"
    see.mkdir()
    (see / "pg_dump").write_text('#!/bin/sh\ntr "\\0" " " </proc/$$/cmdline >&2\necho "[$PGPASSWORD]" >&2\nexit 1\n')
    (see / "pg_dump").chmod(0o755)
    argv = m.argv("secret", postgres_bin=str(see))
    conf = argv[-1]
    conf.write_text(conf.read_text().replace("user=mcpbox_owner", "user=mcpbox_owner password='a canary''s'"
                                             .replace("''", r"\'")))
    r = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patience(60))
    assert r.returncode == 1 and "[a canary's]" in r.stderr, r.stderr
    assert "dbname='secret'" in r.stderr and r.stderr.count("canary") == 1, r.stderr


def test_a_server_that_starts_is_waited_for(m):
    """Last: it stops the server. Without -b one is told at once."""
    m.pg.stop()
    argv = m.argv()
    now = subprocess.run([a for a in argv if a not in ("-b", m.backups)], capture_output=True, text=True,
                         check=False, timeout=patience(10))
    # Not 1, as what is wrong with the schema: the unit tries this again.
    assert now.returncode == os.EX_TEMPFAIL and "No such file" in now.stderr
    p = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    said = p.stderr.readline()
    while "waiting" not in said:
        assert (line := p.stderr.readline()), said
        said += line
    m.pg.start()
    said += p.stderr.read()
    p.stderr.close()
    assert p.wait(patience(20)) == 0
    assert f"at version {LATEST}" in said
