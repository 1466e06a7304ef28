"""A whole suite whose database is on another machine (decision 0059): TLS with a
proven server, passwords in files. A tool's whole life, calls through a restart
of the server, migrations with a backup, backup and restore by mcpboxctl."""
import os
import signal

import psycopg
import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.instance import Instance
from harness.net.pgtls import Authority, free_port
from harness.patience import until

NAME, PASSWORD = "db.test.example", "over' the \\ wire"
CODE = "def main() -> str:\n    return %r\n"


def lines(instance, process, words):
    """Replaces settings in a process's file."""
    path = os.path.join(instance.state, "conf", process + ".conf")
    with open(path, encoding="ascii") as f:
        kept = [s for s in f if s.split()[0] not in words]
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(kept) + "".join(f"{k} {v}\n" for k, v in words.items()))


def secret(path, uid):
    with open(path, "w", encoding="ascii") as f:
        f.write(PASSWORD + "\n")
    os.chmod(path, 0o400)
    os.chown(path, uid, uid)
    return path


def again(instance, service, how=signal.SIGTERM):
    pid = instance.service_pid(service)
    os.kill(pid, how)
    until(lambda: instance.service_pid(service) not in (None, pid), 20, 0.05, say=instance.logs)


class Far:
    """What a test knows of the instance."""

    def __init__(self, instance):
        self.instance, self.port = instance, free_port("127.0.0.1")
        self.authority = Authority(os.path.join(instance.state, "authority"))

    def conninfo(self, user, dbname="mcpbox"):
        return (f"host={NAME} hostaddr=127.0.0.1 port={self.port} dbname={dbname} user={user} "
                f"sslmode=verify-full sslrootcert={self.authority.cert}")

    def socket(self, dbname="postgres", user="postgres"):
        return psycopg.connect(f"host={self.instance.run('postgresql')} port={self.port} "
                               f"dbname={dbname} user={user}", autocommit=True)

    def move(self):
        """The server gets TLS and passwords; only superusers and root may use its socket."""
        i, pg = self.instance, os.path.join(self.instance.state, "pg")
        st = os.stat(pg)
        for source, name in zip(self.authority.issue(NAME), ("server.pem", "server.key")):
            path = os.path.join(pg, name)
            with open(source, "rb") as f, open(path, "wb") as g:
                g.write(f.read())
            os.chown(path, st.st_uid, st.st_gid)
            os.chmod(path, 0o600)
        with psycopg.connect(f"host={i.run('postgresql')} dbname=postgres user=postgres",
                             autocommit=True) as c:
            quoted = PASSWORD.replace("'", "''")
            for role in ("mcpbox_app", "mcpbox_owner", "postgres"):
                c.execute(f"ALTER ROLE {role} PASSWORD '{quoted}'")
        with open(os.path.join(pg, "postgresql.conf"), "a", encoding="ascii") as f:
            f.write(f"listen_addresses = '127.0.0.1'\nport = {self.port}\nssl = on\n"
                    "ssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n")
        with open(os.path.join(pg, "pg_hba.conf"), "w", encoding="ascii") as f:
            f.write("local all postgres trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
        again(i, "postgresql", signal.SIGINT)
        app = secret(os.path.join(i.state, "app.password"), i.uid("admind"))
        owner = secret(os.path.join(i.state, "owner.password"), i.uid("dbowner"))
        roots = secret(os.path.join(i.state, "ctl.password"), 0)
        lines(i, "admind", {
            "database": self.conninfo("mcpbox_app"), "database_password_file": app,
            "owner_database": self.conninfo("mcpbox_owner"),
            "owner_database_password_file": owner})
        lines(i, "mcpboxctl", {
            "owner_database": self.conninfo("mcpbox_owner"), "owner_database_password_file": roots,
            "superuser_database": self.conninfo("postgres", "postgres"),
            "superuser_database_password_file": roots})
        again(i, "admind")
        i.tool("wait")

    def tls(self):
        with self.socket() as c:
            return c.execute(
                "SELECT p.usename, s.ssl FROM pg_stat_activity p JOIN pg_stat_ssl s USING (pid)"
                " WHERE p.usename LIKE 'mcpbox%'").fetchall()


@pytest.fixture(scope="module")
def far():
    i = Instance()
    try:
        f = Far(i)
        f.move()
        yield f
    finally:
        i.close()


def test_all_of_it_goes_over_tls(far):
    with Client(far.instance.address) as c:
        tool = flow.publish(far.instance, c, "remote", "first", CODE % "over the wire")
        assert text(c.call(tool)) == "over the wire"
    now = far.tls()
    assert len(now) == 4 and all(ssl for _, ssl in now), now
    with psycopg.connect(far.conninfo("mcpbox_app") + " password='over\\' the \\\\ wire'") as c:
        assert c.execute("SELECT count(*) FROM mcpbox.executions").fetchone()[0] > 0


def test_a_change_is_heard_of(far):
    """LISTEN over TLS: what is published by one connection is listed by another."""
    with Client(far.instance.address) as c:
        tool = flow.publish(far.instance, c, "remote", "second", CODE % "2")
        until(lambda: tool in c.tools(), 10, 0.05)
        assert text(c.call(tool)) == "2"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_server_is_restarted(far, how):
    again(far.instance, "postgresql", how)
    with Client(far.instance.address) as c:
        def served():
            r = c.call("remote__first")
            if r.result is not None and text(r) == "over the wire":
                return True
            assert r.error is None or r.error["data"]["failure_mode"] == "storage_unavailable", r
            return False
        until(served, 30, 0.1, say=far.instance.logs)
    until(lambda: len(far.tls()) == 4, 20, 0.1)


def test_a_backup_and_its_restore(far, tmp_path):
    i = far.instance
    path = str(tmp_path / "mcpbox.backup")
    i.ctl("backup", path)
    assert os.path.getsize(path) > 10000
    with Client(i.address) as c:
        flow.publish(i, c, "remote", "later", CODE % "later")
    i.ctl("restore", path)
    until(lambda: i.ctl("servers", check=False).returncode == 0, 20, 0.1, say=i.logs)
    for s in ("admind-vault", "admind"):
        again(i, s)
    i.tool("wait")
    with Client(i.address) as c:
        assert text(c.call("remote__first")) == "over the wire"
        assert c.call("remote__later").result is None
    assert i.ctl("doctor", check=False).stdout
    assert i.ctl("key", "verify").returncode == 0


def test_the_password_is_in_no_log_and_no_argument(far):
    for root, _, files in os.walk(os.path.join(far.instance.state, "log")):
        for name in files:
            with open(os.path.join(root, name), "rb") as f:
                assert PASSWORD.encode() not in f.read(), name
    for pid in far.instance.pids():
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            assert PASSWORD.encode() not in f.read()
