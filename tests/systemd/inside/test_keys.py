"""The master key as a credential (decision 0058), by the unit and the systemd
that will read it; and a database elsewhere (decision 0059), by the drop-ins that
setup writes."""
import glob
import os
import shutil

from harness.clients import flow
from harness.clients.mcp import Client
from harness.installed import command, show, systemctl
from harness.patience import eventually

CONF = "/etc/mcpbox"
VAULT = "mcpbox-admind-vault.service"
HOST = "db.test.example"


def names():
    return {os.path.basename(p) for p in glob.glob(f"{CONF}/master.key*")}


def serves(suite):
    """Everything that rests opens."""
    assert eventually(lambda: suite.ctl("key", "verify", check=False).returncode == 0, 20), suite.logs()


def status(suite):
    return suite.ctl_json("key", "status")


def restart(suite):
    systemctl("restart", VAULT)
    serves(suite)


def test_setup_sealed_it(suite):
    suite.ctl("secret", "list", "none", check=False)
    assert names() == {"master.key.cred"}
    now = status(suite)
    assert now["credential"] is True and now["older"] is None
    assert all(os.stat(f"{CONF}/{n}").st_mode & 0o777 == 0o400 for n in names())
    # Nobody but the vault is given it.
    given = f"/run/credentials/{VAULT}"
    assert os.path.getsize(f"{given}/master.key.cred") == 32
    assert os.path.getsize(f"{given}/master.key") == os.path.getsize(f"{given}/master.key.next") == 4


def test_it_is_rotated_sealed(suite):
    before = status(suite)["key"]
    suite.ctl("key", "rotate")
    now = status(suite)["key"]
    assert now != before and names() == {"master.key.cred", f"master.key.{before}.cred"}
    restart(suite)
    assert status(suite)["key"] == now
    assert all(os.path.getsize(f"{CONF}/{n}") > 100 for n in names())


def test_both_are_given_in_the_middle(suite, tmp_path):
    """A kept key comes back, as for an older backup; the rotation ends with ours."""
    now = status(suite)["key"]
    older = next(n for n in names() if n not in ("master.key.cred",))
    suite.ctl("key", "import", f"{CONF}/{older}")
    assert "master.key.next.cred" in names()
    restart(suite)
    both = status(suite)
    assert both["key"] == now and both["older"] in older
    suite.ctl("key", "rotate")
    assert status(suite)["key"] == now and "master.key.next.cred" not in names()
    restart(suite)


def test_plain_and_sealed_again(suite, tmp_path):
    """Either form is taken without a word to systemd: the files decide."""
    now, copy = status(suite)["key"], str(tmp_path / "copy")
    suite.ctl("key", "export", copy)
    shutil.move(f"{CONF}/master.key.cred", tmp_path / "aside")   # /tmp may be another file system
    shutil.copy(copy, f"{CONF}/master.key")
    os.chmod(f"{CONF}/master.key", 0o400)
    restart(suite)
    assert status(suite) == {"key": now, "older": None, "credential": True}
    suite.ctl("key", "rotate")
    assert {"master.key", f"master.key.{now}"} <= names()
    restart(suite)
    now = status(suite)["key"]
    os.unlink(copy)
    suite.ctl("key", "export", copy)
    os.unlink(f"{CONF}/master.key")
    suite.ctl("key", "import", copy)
    restart(suite)
    assert status(suite)["key"] == now and "master.key.cred" in names()


def test_a_blob_that_does_not_open_is_an_error(suite):
    path = f"{CONF}/master.key.cred"
    with open(path, "rb") as f:
        good = f.read()
    os.rename(path, path + ".good")
    try:
        # Another name's: not taken, though this machine sealed it.
        shutil.copy(next(p for p in glob.glob(f"{CONF}/master.key.*.cred")), path)
        r = command("systemctl", "restart", VAULT, check=False)
        assert r.returncode != 0
        assert eventually(lambda: show(VAULT, "ExecMainStatus")["ExecMainStatus"] == "243", 10)
    finally:
        os.rename(path + ".good", path)
    with open(path, "rb") as f:
        assert f.read() == good
    restart(suite)
    assert eventually(suite.up, 15)


def serve_tls():
    """The machine's own PostgreSQL, by TCP with a certificate; a role that may make roles."""
    d = "/etc/postgresql/tls"
    os.makedirs(d, exist_ok=True)
    command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", "/CN=authority", "-keyout", f"{d}/ca.key", "-out", "/etc/ssl/db-ca.pem")
    command("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={HOST}", "-keyout", f"{d}/server.key", "-out", f"{d}/server.csr")
    with open(f"{d}/ext", "w", encoding="ascii") as f:
        f.write(f"subjectAltName=DNS:{HOST}\n")
    command("openssl", "x509", "-req", "-in", f"{d}/server.csr", "-CA", "/etc/ssl/db-ca.pem", "-CAkey",
            f"{d}/ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{d}/ext", "-out", f"{d}/server.pem")
    command("chown", "-R", "postgres:postgres", d)
    os.chmod("/etc/ssl/db-ca.pem", 0o644)
    conf = glob.glob("/etc/postgresql/*/main")[0]
    with open(f"{conf}/postgresql.conf", "a", encoding="ascii") as f:
        f.write(f"\nlisten_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = '{d}/server.pem'\n"
                f"ssl_key_file = '{d}/server.key'\n")
    with open("/etc/hosts", "a", encoding="ascii") as f:
        f.write(f"127.0.0.1 {HOST}\n")
    systemctl("restart", "postgresql.service")


def test_a_database_elsewhere_and_back(suite):
    """The same server by TLS: other units' rules, the same data."""
    serve_tls()
    assert eventually(lambda: suite.ctl("servers", check=False).returncode == 0, 20)
    suite.psql("CREATE ROLE maker LOGIN SUPERUSER PASSWORD 'made'", "postgres")
    with Client(suite.address) as c:
        tool = flow.publish(suite, c, "elsewhere", "kept", "def main(nonce: str) -> str:\n    return 'kept ' + nonce\n")
    env = {**os.environ, "PGPASSWORD": "made"}
    url = f"postgresql://maker@{HOST}/postgres?sslmode=verify-full&sslrootcert=/etc/ssl/db-ca.pem"
    r = command("mcpboxctl", "setup", "--database", url, env=env)
    assert "failed" not in r.stdout, r.stdout
    rules = show("mcpbox-admind.service", "PrivateNetwork", "IPAddressAllow", "IPAddressDeny",
                 "RestrictAddressFamilies")
    assert rules["PrivateNetwork"] == "no"
    assert rules["IPAddressAllow"] == "127.0.0.1/32"
    assert set(rules["IPAddressDeny"].split()) == {"::/0", "0.0.0.0/0"}
    assert set(rules["RestrictAddressFamilies"].split()) == {"AF_UNIX", "AF_INET", "AF_INET6"}
    rows = suite.psql("SELECT s.ssl FROM pg_stat_activity p JOIN pg_stat_ssl s USING (pid)"
                      " WHERE p.usename = 'mcpbox_app'")
    assert rows == [["t"]] * 4, rows
    assert eventually(suite.up, 20), suite.logs(200)
    with Client(suite.address) as c:
        assert suite.ran(c, tool, "there") == "kept there"
    assert not suite.failed()
    assert show("mcpbox-migrate.service", "Result")["Result"] == "success"
    out = command("systemd-analyze", "security", "--no-pager", "mcpbox-admind.service", check=False).stdout
    assert float(out.rsplit("mcpbox-admind.service:", 1)[1].split()[0]) <= 1.5, out
    r = command("mcpboxctl", "setup", "--database", "local")
    assert "database: done" in r.stdout and "failed" not in r.stdout, r.stdout
    assert show("mcpbox-admind.service", "PrivateNetwork")["PrivateNetwork"] == "yes"
    assert not glob.glob("/etc/systemd/system/mcpbox-*.d/database.conf") + glob.glob(f"{CONF}/*.password")
    assert eventually(suite.up, 20)
    with Client(suite.address) as c:
        assert suite.ran(c, tool, "here") == "kept here"
