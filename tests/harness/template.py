"""A database cluster that tests copy instead of making their own: initdb, roles and all
migrations, done once for each state of sql/ and each PostgreSQL.

tests/quickstart and tests/database/test_cluster.py make theirs from nothing."""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time

from harness.place import BUILD, SRC

CACHE = pathlib.Path(os.environ.get("MCPBOX_TEST_CACHE", "/var/cache/mcpbox-tests"), "clusters")
KEPT_DAYS = 7   # of states of sql/ that nobody has asked for since


def bindir():
    """The newest PostgreSQL that is installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if not found:
        raise RuntimeError("PostgreSQL's server programs are not installed")
    return found[-1].parent


def key():
    h = hashlib.sha256(pathlib.Path(__file__).read_bytes())
    h.update(subprocess.run([bindir() / "postgres", "--version"], check=True, capture_output=True).stdout)
    for p in sorted(pathlib.Path(SRC, "sql").rglob("*.sql")):
        h.update(p.name.encode() + b"\0" + p.read_bytes())
    return h.hexdigest()[:32]


def make(where):
    """The cluster is the user postgres' and has no server when this returns."""
    bin_, user = bindir(), pwd.getpwnam("postgres")
    with tempfile.TemporaryDirectory(prefix="mcpt.") as d:
        os.chown(d, user.pw_uid, user.pw_gid)
        os.chmod(d, 0o711)

        def run(*argv, **kw):
            r = subprocess.run([str(a) for a in argv], check=False, cwd="/", text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                               **({"user": "postgres", "group": "postgres", "extra_groups": []} | kw))
            if r.returncode != 0:
                raise RuntimeError(f"{argv[0]}: {r.stdout}")

        run(bin_ / "initdb", "-D", where, "-A", "trust", "--encoding=UTF8", "--locale=C.UTF-8", "-U", "postgres",
            "--no-sync", "--wal-segsize=1")     # each copy has two segments; of 1 MB, not 16
        control = (bin_ / "pg_ctl", "-D", where, "-w", "-s")
        run(*control, "-l", f"{d}/log", "-o", f"-k {d} -c listen_addresses= -c fsync=off", "start")
        try:
            # By a copy: postgres may not be able to read a checkout in a home folder.
            roles = pathlib.Path(d, "roles.sql")
            shutil.copyfile(os.path.join(SRC, "sql/roles.sql"), roles)
            roles.chmod(0o644)
            run(bin_ / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", d, "-U", "postgres", "-d", "postgres",
                "-f", roles)
            program, conf = pathlib.Path(d, "admind"), pathlib.Path(d, "conf")
            shutil.copy(os.path.join(BUILD, "admind/mcpbox-admind"), program)
            conf.write_text("gateway_local_user 1\ngateway_tunnel_user 1\nweb_user 1\n"
                            f"owner_database host={d} dbname=mcpbox user=mcpbox_owner\n", encoding="ascii")
            run(program, "-m", "-f", conf)
        finally:
            run(*control, "-m", "fast", "stop")


def cluster():
    """The path of a cluster to copy, made now if need be."""
    CACHE.mkdir(parents=True, exist_ok=True)
    CACHE.chmod(0o755)
    there = CACHE / key()
    with open(CACHE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not there.exists():
            new = CACHE / "new"
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(mode=0o700)
            shutil.chown(new, "postgres", "postgres")
            make(new)
            new.rename(there)
            for old in CACHE.iterdir():
                if old.is_dir() and old.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
                    shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.utime(there)
    return there


def copy(to):
    """A copy of the cluster, the user postgres' too."""
    subprocess.run(["cp", "-a", "--reflink=auto", cluster(), to], check=True)
