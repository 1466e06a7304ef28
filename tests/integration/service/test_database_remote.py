"""admind with a database elsewhere (decision 0059): TLS with a server that
proves its name, and nothing else of the network or of the file system."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness.net.pgtls import Authority, PostgresTls
from harness.patience import patience
from harness.played.admind import Admind


def secret(a, name, user="admind", text=PostgresTls.PASSWORD, mode=0o400):
    path = a.path(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + "\n")
    os.chmod(path, mode)
    os.chown(path, a.uid(user), a.uid(user))
    return path


def configure(a, text, owner=None):
    """admind's database, and its passwords."""
    with open(a.path("conf"), encoding="ascii") as f:
        lines = [s for s in f if s.split()[0] not in (
            "database", "owner_database", "database_password_file",
            "owner_database_password_file")]
    with open(a.path("conf"), "w", encoding="ascii") as f:
        f.write("".join(lines) + f"database {text}\n"
                f"owner_database {owner or a.pg.suite('mcpbox_owner')}\n"
                f"database_password_file {secret(a, 'password')}\n"
                f"owner_database_password_file {secret(a, 'owner', 'dbowner')}\n")


@pytest.fixture(scope="module")
def elsewhere():
    pg = PostgresTls()
    try:
        pg.start()
        pg.roles()
        pg.passwords()
        a = Admind(pg=pg)
        try:
            configure(a, pg.suite("mcpbox_app"))
            for name in ("check", "vault", "sandbox"):
                a.fake(name)
            assert (r := a.migrate()).returncode == 0, r.stderr
            yield a
        finally:
            if a.proc is not None and a.proc.poll() is None:
                a.kill()
            a.close()
    finally:
        pg.close()


@pytest.fixture
def a(elsewhere):
    configure(elsewhere, elsewhere.pg.suite("mcpbox_app"))
    yield elsewhere
    if elsewhere.proc is not None and elsewhere.proc.poll() is None:
        elsewhere.stop()


def connected(a):
    return a.rows("SELECT s.ssl FROM pg_stat_activity p JOIN pg_stat_ssl s USING (pid)"
                  " WHERE p.usename = 'mcpbox_app' AND p.client_addr IS NOT NULL")


def up(a, seconds=20):
    """All of admind's connections are there, by TLS."""
    a.until(lambda: len(c := connected(a)) == 4 and all(s for (s,) in c), seconds)


@contextlib.contextmanager
def refused(a, *says):
    """The start is refused with that, and the log says it as one line."""
    before = len(a.logs())
    yield
    a.proc = subprocess.Popen(a.command(), stdin=subprocess.DEVNULL, stdout=a.log, stderr=a.log)
    assert a.proc.wait(patience(15)) != 0
    text = a.logs()[before:]
    assert "admind: ready" not in text
    line = next(s for s in text.splitlines() if "admind: database:" in s or "admind: start:" in s)
    for word in says:
        assert word in line, line
    assert PostgresTls.PASSWORD not in text


def test_migrations_and_service_over_tls(a):
    assert a.migrate().returncode == 0
    a.start()
    up(a)
    a.until(lambda: "sandbox_ready" in a.logs())
    with a.ctl() as c:
        report = c.call("DOCTOR")["json"].decode()
    for layer in ("landlock_files", "landlock_scope", "seccomp", "database"):
        assert f'"layer":"{layer}","state":"enforced"' in report, report
    # NOTIFY reaches it by that connection.
    before = len(a.logs())
    a.approved_tool("remote")
    a.until(lambda: "catalogue: revision" in a.logs()[before:])
    assert PostgresTls.PASSWORD not in a.logs()


def test_the_password_is_no_argument_and_in_no_environment(a):
    a.start()
    up(a)
    for name in ("cmdline", "environ"):
        with open(f"/proc/{a.proc.pid}/{name}", "rb") as f:
            assert PostgresTls.PASSWORD.encode() not in f.read()


# --- what is refused at the start


@pytest.mark.parametrize("changed, says", [
    ({"sslmode": None}, ["sslmode=verify-full", "setup --database"]),
    ({"sslmode": "verify-ca"}, ["sslmode=verify-full"]),
    ({"sslmode": "require"}, ["sslmode=verify-full"]),
    ({"sslmode": "disable"}, ["sslmode=verify-full"]),
    ({"hostaddr": None}, ["db.test.example", "needs hostaddr", "no name is looked up"]),
    ({"hostaddr": "localhost"}, ["localhost", "no numeric address"]),
    ({"host": None}, ["needs a host"]),
    ({"host": "a,b"}, ["needs hostaddr"]),
    ({"hostaddr": "127.0.0.1,127.0.0.2"}, ["needs a host"]),
    ({"host": "db.test.example,/run/postgresql", "hostaddr": "127.0.0.1,"}, ["do not mix"]),
    ({"port": "1,2"}, ["one port for all"]),
    ({"port": "70000"}, ["port is a number"]),
    ({"sslrootcert": None}, ["sslrootcert=/PATH is missing"]),
    ({"sslrootcert": "system"}, ["sslrootcert=/PATH is missing"]),
    ({"sslrootcert": "/nonexistent/ca.pem"}, ["sslrootcert /nonexistent/ca.pem", "No such file"]),
    ({"sslrootcert": "/etc/passwd"}, ["no certificate in PEM"]),
    ({"sslrootcert": "/etc"}, ["no certificate in PEM"]),
    ({"password": "hidden"}, ["does not belong here", "database_password_file"]),
    ({"passfile": "/etc/passwd"}, ["passfile is not supported"]),
    ({"service": "x"}, ["service"]),
    ({"sslkey": "/etc/passwd"}, ["sslkey is not supported"]),
    ({"sslcrl": "/etc/passwd"}, ["sslcrl is not supported"]),
    ({"nonsense": "1"}, ["nonsense"]),
])
def test_refused_with_what_to_write(a, changed, says):
    configure(a, a.pg.suite("mcpbox_app", **changed))
    with refused(a, *says):
        pass
    assert "hidden" not in a.logs()


@pytest.mark.parametrize("how, says", [
    ("missing", "No such file"), ("readable", "its owner alone may read"),
    ("empty", "1 to 1024 characters"), ("long", "1 to 1024 characters"),
    ("another's", "Permission denied"), ("fifo", "its owner alone may read")])
def test_a_password_file_that_is_wrong(a, how, says):
    path = a.path("password")
    os.unlink(path)
    if how == "fifo":
        os.mkfifo(path, 0o400)
        os.chown(path, a.uid("admind"), a.uid("admind"))
    elif how != "missing":
        secret(a, "password", user="check" if how == "another's" else "admind",
               mode=0o440 if how == "readable" else 0o400,
               text={"empty": "", "long": "x" * 1025}.get(how, PostgresTls.PASSWORD))
    with refused(a, "password", says):
        pass
    if how == "fifo":
        os.unlink(path)


def test_the_owners_string_is_held_to_the_same(a):
    configure(a, a.pg.suite("mcpbox_app"), owner=a.pg.suite("mcpbox_owner", sslmode="require"))
    r = a.migrate()
    assert r.returncode != 0 and "owner_database: sslmode=verify-full" in r.stderr
    configure(a, a.pg.suite("mcpbox_app"))
    secret(a, "owner", "dbowner", text="wrong")
    r = a.migrate()
    assert r.returncode != 0 and "password authentication failed" in r.stderr


def test_a_credential_wins(a):
    """As a unit's LoadCredential gives it: root's, and seen as 0440."""
    directory = a.path("credentials")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "database_password")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(path, "w", encoding="utf-8") as f:
        f.write(PostgresTls.PASSWORD)
    os.chown(path, 0, a.uid("admind"))
    os.chmod(path, 0o440)
    secret(a, "password", text="wrong")
    command = a.command()
    at = command.index(a.program)
    a.proc = subprocess.Popen(
        [*command[:at], "env", f"CREDENTIALS_DIRECTORY={directory}", *command[at:]],
        stdin=subprocess.DEVNULL, stdout=a.log, stderr=a.log)
    up(a)


# --- the server


@pytest.mark.parametrize("wrong", ["name", "authority", "password", "plain"])
def test_a_server_that_is_not_ours(a, wrong, tmp_path_factory):
    """Reached, and refused before or at the password; then it is ours again."""
    pg, before = a.pg, len(a.logs())
    good = (pg.dir / "authority" / f"{pg.NAME}.pem", pg.dir / "authority" / f"{pg.NAME}.key")
    says = {"name": "does not match host name", "authority": "certificate verify failed",
            "password": "password authentication failed",
            "plain": "server does not support SSL, but SSL was required"}[wrong]
    if wrong == "name":
        pg.use(pg.authority.issue("other.test.example"))
    elif wrong == "authority":
        directory = tmp_path_factory.mktemp("authority")
        pg.use(Authority(directory, "somebody else").issue(pg.NAME))
    elif wrong == "password":
        pg.passwords("changed meanwhile")
    else:
        pg.options[pg.options.index("ssl=on")] = "ssl=off"
    try:
        if wrong != "password":
            pg.stop()
            pg.start()
        a.start()
        a.until(lambda: says in a.logs()[before:])
        assert a.proc.poll() is None and not connected(a)
        with a.ctl() as c:
            report = c.call("DOCTOR")["json"].decode()
        assert '"layer":"database","state":"missing"' in report, report
        attempts = a.rows("SELECT count(*) FROM pg_stat_activity WHERE usename = 'mcpbox_app'")
        assert attempts == [(0,)]
    finally:
        pg.use(good)
        if wrong == "password":
            pg.passwords()
        else:
            pg.stop()
            pg.start()
    up(a)


def test_the_server_goes_away_and_comes_back(a):
    a.start()
    up(a)
    before = len(a.logs())
    a.pg.kill()
    a.until(lambda: "db_down" in a.logs()[before:])
    time.sleep(0.5)
    a.pg.start()
    up(a)
    assert a.proc.poll() is None
    # Asked by it all the way: a call's words reach the database again.
    assert a.rows("SELECT 1 FROM mcpbox.epochs WHERE kind = 'admind'")


def test_what_the_server_says_does_not_forge_log_lines(a):
    a.start()
    up(a)
    before = len(a.logs())
    a.rows("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
           " WHERE usename = 'mcpbox_app'")
    a.until(lambda: "db_down" in a.logs()[before:])
    up(a)
    for line in a.logs()[before:].splitlines():
        assert line.startswith("<"), line


class Silent:
    """A host that takes connections and says nothing."""

    def __init__(self, address, port):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        self.socket.listen(64)
        self.held = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                self.held.append(self.socket.accept()[0])

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for s in self.held:
            s.close()


def two_hosts(a, first, second):
    name, port = a.pg.NAME, a.pg.port
    return a.pg.suite("mcpbox_app", host=f"{name},{name}", hostaddr=f"{first},{second}", port=port)


def test_another_host_when_the_first_refuses(a):
    configure(a, two_hosts(a, "127.0.0.9", "127.0.0.1"))
    a.start()
    up(a)


def test_another_host_when_the_first_is_silent(a):
    silent = Silent("127.0.0.9", a.pg.port)
    try:
        configure(a, two_hosts(a, "127.0.0.9", "127.0.0.1"))
        a.start()
        up(a, 40)
        assert silent.held, "it was tried"
    finally:
        silent.close()


def test_a_standby_is_passed_by(a):
    """target_session_attrs=read-write is meant where there are several."""
    before = len(a.logs())
    with a.pg.connect("postgres") as c:
        c.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        c.execute("SELECT pg_reload_conf()")
    try:
        configure(a, two_hosts(a, "127.0.0.1", "127.0.0.1"))
        a.start()
        a.until(lambda: "session is read-only" in a.logs()[before:])
        a.until(lambda: not connected(a))   # between its looks: a connection that is taken stays
    finally:
        with a.pg.connect("postgres") as c:
            c.execute("SET default_transaction_read_only = off")
            c.execute("ALTER SYSTEM RESET default_transaction_read_only")
            c.execute("SELECT pg_reload_conf()")
    up(a)


# --- what it may do beside that


WORDS = ("open", "openat", "creat", "socket", "connect", "execve", "bind", "listen", "openat2")


straced = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace(1)")


@straced
def test_it_opens_nothing_but_the_certificate(a):
    """All that it asks the kernel for from its confinement on: through a loss of
    the database, new connections, and a certificate that does not verify."""
    trace = a.path("trace")
    command = a.command()
    a.proc = subprocess.Popen(["strace", "-f", "-qq", "-o", trace, "-e", "trace=" + ",".join(
        WORDS + ("landlock_restrict_self",)), *command],
        stdin=subprocess.DEVNULL, stdout=a.log, stderr=a.log)
    try:
        up(a)
        a.pg.stop()
        a.pg.start()
        up(a)
    finally:
        with open(f"/proc/{a.proc.pid}/task/{a.proc.pid}/children", encoding="ascii") as f:
            os.kill(int(f.read().split()[0]), signal.SIGTERM)
        a.proc.wait(patience(15))
        a.proc = None
    with open(trace, encoding="utf-8") as f:
        lines = f.read().splitlines()
    start = next(i for i, s in enumerate(lines) if "landlock_restrict_self" in s and "= 0" in s)
    opened, sockets, ports = set(), set(), set()
    for line in lines[start + 1:]:
        call = line.split(None, 1)[1]
        if call.startswith(("open", "creat")) and "= -1" not in call:
            opened.add(call.split('"')[1])
        elif call.startswith("socket("):
            sockets.add(call.split("(")[1].split(",")[0])
        elif call.startswith("connect(") and "AF_INET" in call:
            ports.add(call.split("htons(")[1].split(")")[0])
        assert not call.startswith(("execve", "bind", "listen")), call
    assert opened == {a.pg.authority.cert}
    assert sockets == {"AF_UNIX", "AF_INET"} and ports == {str(a.pg.port)}


def test_a_certificate_that_is_replaced_needs_a_restart(a, tmp_path_factory):
    """Another file of that name is not the one that may be read: no connection,
    and no file that somebody put there."""
    path = os.path.join(str(a.pg.dir), "authority", "swapped.pem")
    shutil.copy(a.pg.authority.cert, path)
    os.chmod(path, 0o644)
    configure(a, a.pg.suite("mcpbox_app", sslrootcert=path))
    a.start()
    up(a)
    shutil.copy(path, path + ".new")
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)
    before = len(a.logs())
    a.rows("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
           " WHERE usename = 'mcpbox_app'")
    a.until(lambda: "could not read root certificate file" in a.logs()[before:])
    a.until(lambda: not connected(a))   # the last of those that end; a new one would stay
    a.stop()
    a.start()
    up(a)


@straced
def test_without_landlock_the_start_is_refused(a):
    """And goes on as before where the database is a socket. strace(1) plays the
    kernel that has none."""
    inject = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset",
              "-e", "inject=landlock_create_ruleset:error=ENOSYS"]
    before = len(a.logs())
    p = subprocess.run([*inject, *a.command()], stdin=subprocess.DEVNULL, stdout=a.log,
                       stderr=a.log, timeout=patience(20), check=False)
    assert p.returncode != 0
    assert "needs Landlock" in a.logs()[before:] and "unix socket" in a.logs()[before:]
    configure(a, a.pg.conninfo("mcpbox_app"))
    before = len(a.logs())
    p = subprocess.Popen([*inject, *a.command()], stdin=subprocess.DEVNULL, stdout=a.log,
                         stderr=a.log)
    a.until(lambda: "admind: ready" in a.logs()[before:])
    with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
        os.kill(int(f.read().split()[0]), signal.SIGTERM)
    p.wait(patience(15))


@straced
def test_a_socket_gives_no_right_to_the_network(a):
    """The filter of an admind with a database behind a socket has no TCP in it."""
    def filters(text):
        configure(a, text)
        command = a.command()
        trace = a.path("filter")
        before = len(a.logs())
        p = subprocess.Popen(["strace", "-f", "-qq", "-v", "-s", "100000", "-o", trace, "-e",
                              "trace=seccomp,landlock_add_rule", *command],
                             stdin=subprocess.DEVNULL, stdout=a.log, stderr=a.log)
        a.until(lambda: "admind: ready" in a.logs()[before:])
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
            os.kill(int(f.read().split()[0]), signal.SIGTERM)
        p.wait(patience(15))
        with open(trace, encoding="utf-8") as f:
            text = f.read()
        program = next(s for s in text.splitlines() if "SECCOMP_SET_MODE_FILTER, 0, {len" in s)
        return int(program.split("len=")[1].split(",")[0]), text.count("landlock_add_rule")
    near, near_rules = filters(a.pg.conninfo("mcpbox_app"))
    far, far_rules = filters(a.pg.suite("mcpbox_app"))
    assert near_rules == 0 and far_rules >= 1
    assert far > near
