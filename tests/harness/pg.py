"""A private PostgreSQL for one test session: its own directory, a unix socket
only, trust authentication (the directory is 0711 and the socket's directory
is of this test alone), ended and removed with the object."""
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg

from harness import template
from harness.patience import patience, until
from harness.played.started import started

ROOT = Path(__file__).resolve().parents[2]


def lives(pid):
    """Neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Postgres:
    """start() makes the cluster on its first use; stop(), kill() and start()
    again are what the outage tests do. The cluster is a copy that has roles and schema
    (harness/template.py); with empty=True it is initdb's."""

    def __init__(self, empty=False):
        self.empty = empty
        self.bin = template.bindir()
        self.dir = Path(tempfile.mkdtemp(prefix="mcpg."))
        self.user = pwd.getpwnam("postgres")
        os.chmod(self.dir, 0o711)
        os.chown(self.dir, self.user.pw_uid, self.user.pw_gid)
        self.data = self.dir / "data"
        self.options = ["listen_addresses="]
        self.port = 5432
        self.proc = None

    def _demote(self):
        os.setsid()
        os.setgroups([])
        os.setgid(self.user.pw_gid)
        os.setuid(self.user.pw_uid)

    def _run(self, *argv):
        subprocess.run(argv, check=True, preexec_fn=self._demote, cwd=self.dir,
                       stdout=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin",
                                                       "LC_ALL": "C.UTF-8"})

    def start(self):
        if not self.data.exists() and not self.empty:
            started("PostgreSQL")
            template.copy(self.data)
        elif not self.data.exists():
            started("PostgreSQL from nothing")
            self._run(str(self.bin / "initdb"), "-D", str(self.data), "-A", "trust",
                      "--encoding=UTF8", "--locale=C.UTF-8", "-U", "postgres",
                      "--no-sync")
        log = open(self.dir / "log", "ab")
        self.proc = subprocess.Popen(
            [str(self.bin / "postgres"), "-D", str(self.data), "-k", str(self.dir),
             *(x for o in self.options for x in ("-c", o)), "-c", "unix_socket_permissions=0777",
             "-c", "fsync=off", "-c", "max_connections=50",
             "-c", "shared_buffers=16MB"],
            preexec_fn=self._demote, cwd=self.dir, stdout=log, stderr=log,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
        log.close()
        self.wait()

    def wait(self):
        def up():
            try:
                psycopg.connect(self.conninfo("postgres", "postgres")).close()
                return True
            except psycopg.OperationalError:
                if self.proc.poll() is not None:
                    raise RuntimeError((self.dir / "log").read_text()[-2000:]) from None
                return False
        until(up, say=lambda: (self.dir / "log").read_text()[-2000:])

    def conninfo(self, user, dbname="mcpbox"):
        return f"host={self.dir} port={self.port} dbname={dbname} user={user}"

    def suite(self, user):
        """What the suite's own configuration says."""
        return self.conninfo(user)

    def connect(self, user, dbname="mcpbox", **kw):
        return psycopg.connect(self.conninfo(user, dbname), autocommit=True, **kw)

    def roles(self):
        """sql/roles.sql, as an administrator would run it, where the cluster is empty."""
        if not self.empty:
            return
        subprocess.run([str(self.bin / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1",
                        "-h", str(self.dir), "-p", str(self.port), "-U", "postgres", "-d", "postgres",
                        "-f", str(ROOT / "sql/roles.sql")], check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self):
        """Fast shutdown; start() brings the same data back."""
        if self.proc and self.proc.poll() is None:
            self.proc.send_signal(signal.SIGINT)
            self.proc.wait(patience(30))
        self.proc = None

    def kill(self):
        """SIGKILL of the postmaster alone; its children notice by themselves, and
        no other can start before they have."""
        pid = self.proc.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            children = f.read().split()
        self.proc.kill()
        self.proc.wait(patience(30))
        self.proc = None
        until(lambda: not any(map(lives, children)), say=lambda: children)

    def backends(self, user="mcpbox_app"):
        with self.connect("postgres", "postgres") as c:
            return [r[0] for r in c.execute(
                "SELECT pid FROM pg_stat_activity WHERE usename = %s", (user,))]

    def close(self):
        if self.proc and self.proc.poll() is None:
            self.proc.send_signal(signal.SIGQUIT)
            self.proc.wait(patience(30))
        shutil.rmtree(self.dir, ignore_errors=True)


if __name__ == "__main__":
    pg = Postgres()
    pg.start()
    pg.roles()
    print(pg.dir)
    try:
        signal.pause()
    finally:
        pg.close()
