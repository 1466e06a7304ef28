"""`mcpboxctl setup --database URL` (decisions 0057 and 0059): on a machine without a PostgreSQL of its own, with
one elsewhere that speaks TLS and knows us by a role that may make roles, but is no superuser."""
import os
import shutil

import pytest

from harness.machine import Machine
from harness.net.pgtls import Authority

HOST, PORT, ROLE, PASSWORD = "db.test.example", 5444, "maker", "the maker's canary"
SOCKET = "/run/elsewhere"
CA = "/etc/ssl/db-ca.pem"
URL = f"postgresql://{ROLE}@{HOST}:{PORT}/postgres?sslmode=verify-full&sslrootcert={CA}"
LOCAL = {n: f"/etc/mcpbox/{n}.conf.local" for n in ("admind", "mcpboxctl", "egress")}
SECRETS = ("/etc/mcpbox/database.password", "/etc/mcpbox/owner_database.password")


@pytest.fixture(scope="module")
def m():
    x = Machine(cluster=False)
    try:
        authority = Authority(os.path.join(x.dir, "authority"))
        for source, name in zip(authority.issue(HOST), ("server.pem", "server.key")):
            shutil.copy(source, os.path.join(x.dir, "etc", name))
        shutil.copy(authority.cert, os.path.join(x.dir, "etc/ssl/db-ca.pem"))
        shutil.copy(Authority(os.path.join(x.dir, "other"), "another").cert, os.path.join(x.dir, "etc/ssl/other.pem"))
        x.sh(f"mkdir -p {SOCKET}; chown postgres:postgres {SOCKET} /etc/server.*; chmod 600 /etc/server.key; "
             f"chmod 644 /etc/ssl/*.pem; echo '127.0.0.1 {HOST} other.test.example' >>/etc/hosts")
        x.make_cluster("elsewhere", f"listen_addresses = '127.0.0.1'\nport = {PORT}\n"
                       f"unix_socket_directories = '{SOCKET}'\nssl = on\nssl_cert_file = '/etc/server.pem'\n"
                       "ssl_key_file = '/etc/server.key'\nlog_statement = 'all'\n", "-p", str(PORT))
        x.write(f"{x.pgdir}/pg_hba.conf", "local all postgres peer\nhostssl all all 127.0.0.1/32 scram-sha-256\n", "0640")
        x.pg("reload")
        quoted = PASSWORD.replace("'", "''")
        sql(x, f"CREATE ROLE {ROLE} LOGIN CREATEROLE CREATEDB PASSWORD '{quoted}'", "postgres")
        yield x
        print(x.logs()[-4000:])
    finally:
        x.close()


def sql(m, query, dbname="mcpbox"):
    m.sh(f"ln -sf {SOCKET}/.s.PGSQL.{PORT} {SOCKET}/.s.PGSQL.5432")
    return m.sql(query, dbname, socket=SOCKET)


def ask(m, url=URL, password=PASSWORD, **more):
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"} | more
    return m.setup("--database", url, env=env | ({"PGPASSWORD": password} if password else {}))


def failed(answer, step, *words):
    steps, status, _ = answer
    assert status != 0 and steps[step][0] == "failed", steps
    for w in words:
        assert w in steps[step][1], steps[step]


def unchanged(m):
    return m.sh("sha256sum /etc/mcpbox/*.conf /etc/mcpbox/*.local /etc/mcpbox/*password /etc/systemd/system/mcpbox-*.d/* 2>/dev/null || true")


def packaged(m):
    """What dpkg would ask about at an upgrade if it changed."""
    return m.sh("sha256sum /etc/mcpbox/*.conf; stat -c '%n %i %Y' /etc/mcpbox/*.conf")


def test_nothing_less_than_verified(m):
    before = unchanged(m)
    failed(ask(m, URL.replace("verify-full", "require")), "server", "sslmode=require", "verify-full")
    failed(ask(m, URL.replace("maker@", "maker:secret@")), "server", "every local user")
    failed(ask(m, URL.replace(HOST, "no.such.invalid")), "server", "can't be resolved")
    failed(ask(m, URL.replace(CA, "/etc/ssl/other.pem")), "roles", "certificate")
    failed(ask(m, URL.replace(HOST, "other.test.example")), "roles", "other.test.example")
    failed(ask(m, password="wrong"), "roles", "password authentication failed")
    failed(ask(m, URL.replace(str(PORT), "5999")), "roles", "refused")
    # a certificate for all to read, and nothing else of its file
    m.sh("cat /etc/ssl/db-ca.pem /etc/server.key >/etc/ssl/both.pem; chmod 600 /etc/ssl/both.pem")
    failed(ask(m, URL.replace(CA, "/etc/ssl/both.pem")), "server", "private key")
    # Kerberos's encryption would be tried before TLS, and no certificate looked at
    failed(ask(m, password="wrong", PGGSSENCMODE="require"), "roles", "password authentication failed")
    assert unchanged(m) == before
    assert sql(m, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^mcpbox'", "postgres") == "0"


def test_all_of_it_then_nothing(m):
    m.sh("ln -s db-ca.pem /etc/ssl/linked.pem")     # as most of /etc/ssl/certs are
    conffiles = packaged(m)
    steps, status, answer = ask(m, URL.replace(CA, "/etc/ssl/linked.pem"))
    assert status == 0, steps
    assert {n for n, (s, _) in steps.items() if s == "done"} == {"roles", "key", "schema", "start", "administrator"}
    # the package's files are the package's; what it says of the machine is in others, which say whose they are
    assert packaged(m) == conffiles
    for path in LOCAL.values():
        assert m.read(path).startswith("# Written by `mcpboxctl setup"), path
        assert m.sh(f"stat -c '%U %a' {path}").split() == ["root", "644"], path
    assert m.sh("ls /etc/mcpbox/*.local").split() == sorted(LOCAL.values())
    # neither the URL's password nor ours in what everybody may read, nor in the server's log
    ours = [m.read(p).strip() for p in SECRETS]
    assert all(len(p) == 43 for p in ours) and ours[0] != ours[1]
    assert m.sh(f"stat -c '%U %a' {' '.join(SECRETS)}").split() == ["root", "400"] * 2
    log = m.sh("cat /var/log/postgresql/*elsewhere*")
    assert "ALTER ROLE mcpbox_app PASSWORD 'SCRAM-SHA-256$" in log
    everything = log + m.sh("cat /etc/mcpbox/*.conf /etc/mcpbox/*.local /etc/systemd/system/mcpbox-*.d/*") + str(answer) + m.read("/var/log/mcpbox")
    assert not any(p in everything for p in (*ours, PASSWORD))
    # the role that made them is a member of the owner no more
    assert sql(m, "SELECT count(*) FROM pg_auth_members WHERE roleid = 'mcpbox_owner'::regrole AND member = "
                  f"'{ROLE}'::regrole AND (to_jsonb(pg_auth_members) ->> 'set_option') IS DISTINCT FROM 'false'") == "0"
    assert sql(m, "SELECT r.rolname FROM pg_database d JOIN pg_roles r ON r.oid = datdba WHERE datname = 'mcpbox'") == "mcpbox_owner"
    # again, without the password: nobody asks for it
    before = unchanged(m)
    steps, status, _ = ask(m, password=None)
    assert status == 0 and {s for s, _ in steps.values()} == {"already so"}, steps
    assert unchanged(m) == before


def test_doctor_says_how_it_is_reached(m):
    out = m.ctl("--json", "doctor", check=False).stdout
    assert '"layer":"database","state":"enforced"' in out.replace(" ", "") and "TLS" in out
    assert '"layer":"master_key","state":"enforced"' in out.replace(" ", "")


@pytest.mark.parametrize("role", ["mcpbox_owner", "mcpbox_app"])
def test_a_lost_password_is_made_anew(m, role):
    before = m.read(SECRETS[1])
    sql(m, f"ALTER ROLE {role} PASSWORD 'of somebody else'")
    failed(ask(m, password="wrong"), "roles", "password authentication failed")
    steps, status, _ = ask(m)
    assert status == 0 and steps["roles"][0] == "done" and steps["start"][0] == "done", steps
    assert m.read(SECRETS[1]) != before


def test_a_run_that_ended_before_the_restart(m):
    """What runs has the settings of before until somebody starts it anew: the next run does, though it finds nothing to change."""
    sql(m, "ALTER ROLE mcpbox_owner PASSWORD 'of somebody else'")
    m.sh("echo no >/run/systemctl.fails; : >/run/systemctl.asked")
    steps, status, _ = ask(m)
    assert status != 0 and steps["roles"][0] == "done" and steps["schema"][0] == "failed", steps
    m.sh("rm /run/systemctl.fails")
    steps, status, _ = ask(m, password=None)
    assert status == 0 and {n for n, (s, _) in steps.items() if s == "done"} == {"start"}, steps
    asked = [line.split()[-2:] for line in m.read("/run/systemctl.asked").splitlines() if "start " in line]
    assert asked == [["restart", "mcpbox-migrate.service"], ["restart", "mcpbox.target"]]
    steps, status, _ = ask(m, password=None)
    assert status == 0 and {s for s, _ in steps.values()} == {"already so"}, steps


def test_without_the_url_it_is_left_alone(m):
    before = unchanged(m)
    steps, status, _ = m.setup()
    assert status != 0 and steps["database"][0] == "failed" and "another machine" in steps["database"][1], steps
    assert unchanged(m) == before


def test_what_it_opens_and_what_it_closes(m):
    """The units' way out is that address; no tool's is. What an owner wrote stays."""
    for unit, secret in (("admind", "database"), ("migrate", "owner_database")):
        text = m.read(f"/etc/systemd/system/mcpbox-{unit}.service.d/database.conf")
        lines = [s for s in text.splitlines() if s and not s.startswith("#")]
        assert lines[-5:] == [
            "[Service]", "PrivateNetwork=no", "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
            "IPAddressAllow=127.0.0.1", f"LoadCredential={secret}_password:/etc/mcpbox/{secret}.password"]
    assert f"never 127.0.0.1:{PORT}\n" in m.read(LOCAL["egress"])
    m.sh(f"sed -i 's/^never .*/never 192.0.2.9/' {LOCAL['egress']}; echo 'connect_timeout 7s' >>{LOCAL['egress']}")
    steps, status, _ = ask(m)
    assert status == 0 and steps["roles"][0] == "done", steps
    assert f"never 192.0.2.9,127.0.0.1:{PORT}\nconnect_timeout 7s\n" in m.read(LOCAL["egress"])
    # what the package's file denies stays denied
    m.sh("echo 'never 192.0.2.10' >>/etc/mcpbox/egress.conf")
    shown = m.run(f"{m.libexec}/mcpbox-sandboxd-egress", "-T", "-f", "/etc/mcpbox/egress.conf").stdout
    assert f"never 192.0.2.10,192.0.2.9,127.0.0.1:{PORT}\n" in shown
    m.sh("sed -i '$d' /etc/mcpbox/egress.conf")
    assert m.sh("ls /etc/mcpbox /etc/systemd/system/mcpbox-*.d").count(".new") == 0


@pytest.mark.parametrize("broken", ["egress.conf.local", "admind.conf.local", "mcpboxctl.conf.local", "database-ca.pem",
                                    "database.password", "dropin"])
def test_a_run_that_was_killed_is_ended_by_the_next(m, broken):
    path = ("/etc/systemd/system/mcpbox-admind.service.d/database.conf" if broken == "dropin"
            else "/etc/mcpbox/" + broken)
    if broken.endswith(".local"):
        m.sh(f"sed -i '/hostaddr=/d; /^never/d' {path}")
    else:
        m.sh(f"rm {path}")
    m.sh(f"echo half >{path}.new")
    steps, status, _ = ask(m)
    assert status == 0 and steps["roles"][0] == "done", steps
    assert m.sh(f"ls {path}.new 2>/dev/null || true") == ""
    steps, status, _ = ask(m, password=None)
    assert status == 0 and {s for s, _ in steps.values()} == {"already so"}, steps


def test_lines_in_the_package_s_files_go_on_to_work(m):
    """Of somebody who wrote them there by hand, or of a set-up before decision 0062. None is taken away with what it names."""
    m.sh("cp -a /etc/mcpbox /etc/mcpbox.aside; cd /etc/mcpbox; for f in admind mcpboxctl egress; do "
         "grep -v '^#' $f.conf.local >>$f.conf; rm $f.conf.local; done")
    before = unchanged(m)
    steps, status, _ = ask(m, password=None)
    assert status == 0 and {s for s, _ in steps.values()} == {"already so"}, steps
    steps, status, _ = m.setup()
    assert status != 0 and "another machine" in steps["database"][1], steps
    steps, status, _ = m.setup("--database", "local")
    assert status != 0 and "/etc/mcpbox/admind.conf names" in steps["database"][1], steps
    assert unchanged(m) == before
    m.sh("rm -r /etc/mcpbox; mv /etc/mcpbox.aside /etc/mcpbox")


def test_a_file_of_one_s_own_that_is_wrong_stops_it(m):
    before = packaged(m)
    for make, says in ((f"echo nonsense 1 >>{LOCAL['egress']}", "egress.conf.local:"),
                       (f"chmod 666 {LOCAL['egress']}", "egress.conf.local: others may write it"),
                       (f"rm {LOCAL['egress']}; mkdir {LOCAL['egress']}", "egress.conf.local: not a regular file")):
        m.sh(f"cp -a {LOCAL['egress']} /etc/aside; {make}")
        failed(ask(m), "roles", says)
        r = m.run(f"{m.libexec}/mcpbox-sandboxd-egress", "-t", "-f", "/etc/mcpbox/egress.conf", check=False)
        assert r.returncode != 0 and says in r.stderr, r
        m.sh(f"rm -rf {LOCAL['egress']}; mv /etc/aside {LOCAL['egress']}")
    # the parser takes any text there; who reads it as addresses names both files
    m.sh(f"cp -a {LOCAL['egress']} /etc/aside; sed -i 's/^never /&nobody,/' {LOCAL['egress']}")
    r = m.run(f"{m.libexec}/mcpbox-sandboxd-egress", "-t", "-f", "/etc/mcpbox/egress.conf", check=False)
    assert r.returncode != 0 and r.stderr.startswith("/etc/mcpbox/egress.conf and its .local: "), r
    m.sh(f"mv /etc/aside {LOCAL['egress']}")
    assert packaged(m) == before


def test_the_way_back(m):
    """The lines of before, no way out, no password; the other server keeps its data."""
    m.sh("sed -i '/^#before-setup database/d; s/^database .*/&\\n#before-setup database host=\\/run\\/mine dbname=mcpbox user=mcpbox_app/' "
         f"{LOCAL['admind']}")
    conffiles = packaged(m)
    steps, status, _ = m.setup("--database", "local")
    assert steps["database"][0] == "done" and status != 0, "there is no server here to go on with"
    assert steps["server"][0] == "failed"
    assert packaged(m) == conffiles
    # of mcpboxctl's nothing was left, so it is gone
    assert m.sh("ls /etc/mcpbox/*.local").split() == [LOCAL["admind"], LOCAL["egress"]]
    assert "hostaddr" not in m.read(LOCAL["admind"])
    assert "database host=/run/mine dbname=mcpbox user=mcpbox_app" in m.read(LOCAL["admind"]).splitlines()
    assert m.sh("ls /etc/mcpbox/*.password /etc/mcpbox/database-ca.pem "
                "/etc/systemd/system/mcpbox-*.d/database.conf 2>/dev/null || true") == ""
    assert f"127.0.0.1:{PORT}" in m.read(LOCAL["egress"]), "tools are still kept from it"
    steps, status, _ = m.setup("--database", "local")
    assert steps["database"][0] == "already so"
    assert m.sh("ls /var/lib/mcpbox/setup.restart"), "what runs is to be started anew, whenever that is reached"
    m.sh(f"sed -i '/^database /d' {LOCAL['admind']}")
    steps, status, _ = ask(m)
    assert status == 0 and steps["roles"][0] == "done", steps
    assert sql(m, "SELECT count(*) > 0 FROM mcpbox.admin_users") == "t", "with the data of before"


def test_where_systemd_does_not_run(m):
    sql(m, "SET session_replication_role = replica; DELETE FROM mcpbox.schema_migrations WHERE version = 1")
    m.sh("mv /run/systemd/system /run/systemd/aside")
    failed(ask(m), "schema", "systemd does not run here")
    m.sh("mv /run/systemd/aside /run/systemd/system")
