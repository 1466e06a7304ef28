"""`mcpboxctl setup` and `doctor` of an installed system (decision 0057), on a machine of namespaces
(harness/machine.py) with the distribution's own PostgreSQL: each step twice, and what each refuses."""
import json
import os
import time

import pytest

from harness.machine import Machine

STEPS = ["users", "directories", "runners", "database", "server", "roles", "access", "login", "key", "schema", "start",
         "administrator"]
KEY = "/etc/mcpbox/master.key"


@pytest.fixture(scope="module")
def m():
    x = Machine()
    yield x
    print(x.logs()[-4000:])
    x.close()


@pytest.fixture(scope="module")
def ready(m):
    """Set up, with a password from a file."""
    m.write("/etc/mcpbox/password", "correct horse battery\n", "0600")
    m.setup("--username", "ada", "--password-file", "/etc/mcpbox/password")
    return m


def stopped_at(answer, step):
    """The step failed, those before it did not, those behind it were not begun; why."""
    steps, status, _ = answer
    assert status != 0 and list(steps) == STEPS[:STEPS.index(step) + 1], steps
    assert all(s != "failed" for n, (s, _) in steps.items() if n != step)
    assert steps[step][0] == "failed"
    return steps[step][1]


def well(answer, *done):
    steps, status, _ = answer
    assert status == 0 and list(steps) == STEPS, answer
    assert {n for n, (s, _) in steps.items() if s == "done"} == set(done), steps
    assert {n for n, (s, _) in steps.items() if s == "already so"} == set(STEPS) - set(done)


# --- before anything is there, in the order of the steps ------------------


def test_only_root(m):
    r = m.run("setpriv", "--reuid", "65534", "--clear-groups", os.path.join(m.libexec, "mcpboxctl"), "setup",
              check=False)
    assert r.returncode == 1 and "root" in r.stderr


def test_users_and_directories(m):
    m.sh("cp /etc/passwd /etc/passwd.whole; sed -i /mcpbox-store/d /etc/passwd")
    assert "mcpbox-store" in (why := stopped_at(m.setup(), "users")) and "systemd-sysusers" in why
    m.sh("cat /etc/passwd.whole >/etc/passwd; mv /var/lib/mcpbox/backups /var/lib/mcpbox/elsewhere")
    assert "backups" in (why := stopped_at(m.setup(), "directories")) and "systemd-tmpfiles" in why
    m.sh("mkdir /var/lib/mcpbox/backups")       # root's is not the owner's
    assert "backups is no directory of mcpbox-owner" in stopped_at(m.setup(), "directories")
    m.sh("rmdir /var/lib/mcpbox/backups; mv /var/lib/mcpbox/elsewhere /var/lib/mcpbox/backups")


@pytest.mark.parametrize("path, line, why", [
    ("/etc/subuid", "ada:{last}:65536", "/etc/subuid has ada"),
    ("/etc/subgid", "ada:{before}:1025", "/etc/subgid has ada"),
    ("/etc/passwd", "ada:x:{first}:100::/:/bin/sh", "user ada"),
    ("/etc/group", "ada:x:{last}:", "group ada")])
def test_ids_of_runners_are_nobody_elses(m, path, line, why):
    first = m.base + 1024
    words = {"first": first, "last": first + 4095, "before": first - 1024}
    m.sh(f"cp {path} {path}.whole; echo '{line.format(**words)}' >>{path}")
    said = stopped_at(m.setup(), "runners")
    assert why in said and "runner_uid_base" in said
    m.sh(f"cat {path}.whole >{path}")


def test_a_range_that_ends_before_ours_is_no_neighbour(m):
    m.sh(f"cp /etc/subuid /etc/subuid.whole; echo 'ada:{m.base}:1024' >>/etc/subuid; rm -rf /var/lib/mcpbox/setup")
    m.pg("stop")
    # the step behind it is reached
    assert "no PostgreSQL server listens in /run/postgresql" in stopped_at(m.setup(), "server")
    m.sh("cat /etc/subuid.whole >/etc/subuid")


def test_a_server_at_another_port_is_named(m):
    m.write(f"{m.pgdir}/conf.d/port.conf", "port = 5433\n")
    m.pg("start")
    why = stopped_at(m.setup(), "server")
    assert "5433" in why and "admind.conf" in why
    m.sh(f"rm {m.pgdir}/conf.d/port.conf")
    m.pg("restart")


def test_foreign_roles_and_databases_are_left_alone(m):
    m.sql("CREATE ROLE mcpbox_app LOGIN SUPERUSER", "postgres")
    assert "mcpbox_app may do more" in stopped_at(m.setup(), "roles")
    m.sql("DROP ROLE mcpbox_app", "postgres")
    m.sql("CREATE DATABASE mcpbox ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0", "postgres")
    why = stopped_at(m.setup(), "roles")
    assert "postgres, encoding LATIN1" in why and "RENAME" in why
    assert m.sql("SELECT count(*) FROM pg_roles WHERE rolname ~ '^mcpbox'", "postgres") == "0"
    m.sql("DROP DATABASE mcpbox", "postgres")


def test_a_file_that_is_wrong_is_not_touched(m):
    hba = f"{m.pgdir}/pg_hba.conf"
    m.sh(f"cp -p {hba} {hba}.whole; echo 'local all all nonsense' >>{hba}; sha256sum {hba} >/run/sum")
    why = stopped_at(m.setup(), "access")
    assert hba in why and "nonsense" in why
    m.sh(f"sha256sum -c --status /run/sum; cat {hba}.whole >{hba}")
    # somebody else's: the lines are said, not written
    m.sh(f"chown root:postgres {hba}; sha256sum {hba} >/run/sum")
    why = stopped_at(m.setup(), "access")
    assert "local mcpbox mcpbox_app peer map=mcpbox" in why and "BEGIN mcpbox" in why
    m.sh(f"sha256sum -c --status /run/sum; chown postgres:postgres {hba}")
    # a link that the server's user laid is not followed with root's rights
    m.sh(f"echo canary >/etc/canary; chmod 600 /etc/canary; mv {hba} {hba}.aside; ln -s /etc/canary {hba}")
    stopped_at(m.setup(), "access")
    assert m.read("/etc/canary") == "canary\n"
    m.sh(f"rm {hba}; mv {hba}.aside {hba}")
    # half a block
    m.sh(f"sed -i '1i # BEGIN mcpbox' {hba}")
    assert "without its other half" in stopped_at(m.setup(), "access")
    m.sh(f"cat {hba}.whole >{hba}")


def test_killed_at_any_moment_it_goes_on(m):
    """And the file refuses our roles by a line of its own: ours are before it."""
    hba = f"{m.pgdir}/pg_hba.conf"
    m.sh(f"sed -i '1i local mcpbox mcpbox_owner,mcpbox_app reject' {hba}")
    # no service manager here yet: everything but the start comes to pass
    m.sh("rm -r /run/systemd/system")
    for ms in (20, 40, 60, 80, 110, 140, 170, 200, 250, 300, 400):
        m.run("timeout", "-s", "KILL", f"0.{ms:03}", os.path.join(m.libexec, "mcpboxctl"), "setup", check=False)
    answer = m.setup()
    if "start" not in answer[0]:
        # What the server still did for a killed one may be in the way once; then it is done.
        print(answer)
        time.sleep(2)
        answer = m.setup()
    why = stopped_at(answer, "start")
    assert answer[1] == 3 and "systemd does not run here" in why
    assert {n for n, (s, _) in m.setup()[0].items() if s == "done"} == set()
    m.sh("mkdir -p /run/systemd/system")
    text = m.read(hba)
    assert text.index("peer map=mcpbox") < text.index("local mcpbox mcpbox_owner,mcpbox_app reject")
    for f in (hba, f"{m.pgdir}/pg_ident.conf"):
        assert m.read(f).count("# BEGIN mcpbox") == 1


def test_one_at_a_time(m):
    m.sh("flock --no-fork /var/lib/mcpbox/backups sleep 30 >/dev/null 2>&1 & echo $! >/run/flock.pid; sleep 0.1")
    r = m.ctl("setup", check=False)
    assert r.returncode == 1 and "another setup is under way" in r.stderr
    m.sh("kill $(cat /run/flock.pid); sleep 0.1")
    # what anybody can open anybody can lock: nobody keeps root from it
    for d in ("/etc/mcpbox", "/run/mcpbox", "/var/lib/mcpbox", "/var/lib/mcpbox/backups"):
        m.sh(f"setpriv --reuid 65534 --clear-groups flock --no-fork {d} sleep 30 >/dev/null 2>&1 & echo $! >>/run/flocks")
    m.sh("sleep 0.3; mv /run/systemd/system /run/systemd/aside")    # the next tests begin it
    assert "systemd does not run here" in stopped_at(m.setup(), "start")
    m.sh("mv /run/systemd/aside /run/systemd/system; kill $(cat /run/flocks) 2>/dev/null || true")


def test_what_was_made(m):
    hba = f"{m.pgdir}/pg_hba.conf"
    assert m.sh(f"stat -c '%U:%G %a' {hba}").split() == ["postgres:postgres", "640"]
    assert "local mcpbox mcpbox_owner,mcpbox_app reject" in m.read(f"{hba}.before-mcpbox")
    assert "peer map" not in m.read(f"{hba}.before-mcpbox")
    assert m.sh(f"stat -c '%U %a %s' {KEY}").split() == ["root", "400", "32"]
    assert m.sh("stat -c '%U %a' /var/lib/mcpbox/setup").split() == ["root", "644"]
    assert m.sql("SELECT max(version) FROM mcpbox.schema_migrations") != ""
    # only ours: the map lets nobody else in, nor us into another database
    for user, role, db in (("mcpbox-vault", "mcpbox_app", "mcpbox"), ("mcpbox-admin", "mcpbox_owner", "mcpbox"),
                           ("mcpbox-owner", "mcpbox_owner", "postgres"), ("root", "mcpbox_app", "mcpbox")):
        r = m.run("setpriv", "--reuid", user, "--clear-groups", "psql", "-X", "-U", role, "-d", db, "-c", "SELECT 1",
                  check=False)
        assert r.returncode != 0, (user, role, db)
    assert m.run("setpriv", "--reuid", "mcpbox-admin", "--clear-groups", "psql", "-X", "-U", "mcpbox_app", "-d",
                 "mcpbox", "-c", "SELECT 1").returncode == 0


def test_the_service_manager_says_why_it_does_not_start(m):
    m.sh("echo 'Job for mcpbox.target failed: a canary' >/run/systemctl.fails")
    assert "a canary" in stopped_at(m.setup(), "start")
    m.sh("rm /run/systemctl.fails")


def test_a_password_that_the_vault_refuses(m):
    m.write("/etc/mcpbox/password", "short\n", "0600")
    why = stopped_at(m.setup("--password-file", "/etc/mcpbox/password"), "administrator")
    assert "12 to 128" in why
    assert "daemon-reload" in m.read("/run/systemctl.asked")
    stopped_at(m.setup("--password-file", "/nonexistent"), "administrator")


def test_the_prompt_asks_twice_and_shows_nothing(m):
    twice = ("New password (12 to 128 characters)", "The same again")
    status, shown = m.terminal("setup", answers=list(zip(twice, ("a longer canary", "another canary"))))
    assert status == 1 and "the passwords differ" in shown and "canary" not in shown
    status, shown = m.terminal("setup", "--username", "ada", answers=list(zip(twice, ["a longer canary"] * 2)))
    assert status == 0 and "administrator: done - ada was made" in shown.replace("\r", "")
    assert "canary" not in shown and "Next:" in shown
    assert m.sql("SELECT username FROM mcpbox.admin_users") == "ada"


# --- and again ------------------------------------------------------------


def test_again_everything_is_so(m, ready):
    well(m.setup())
    r = m.ctl("setup")
    assert r.stdout.count("already so") == len(STEPS) and "done" not in r.stdout.split("Next:")[0]
    assert "password" not in r.stdout.split("Next:")[0]


def test_a_key_is_never_made_anew(m, ready):
    before = m.sh(f"sha256sum {KEY}")
    # a secret, by the administrator who was sealed: the data name the key
    m.sh(f"mv {KEY} {KEY}.aside")
    why = stopped_at(m.setup(), "key")
    assert "which is not here" in why and "key import" in why
    assert m.run("test", "-e", KEY, check=False).returncode == 1
    m.sh(f"head -c 32 /dev/urandom >{KEY}; chmod 400 {KEY}; sha256sum {KEY} >/run/sum")
    assert "but the key here is" in stopped_at(m.setup(), "key")
    m.sh(f"sha256sum -c --status /run/sum; mv -f {KEY}.aside {KEY}")
    assert m.sh(f"sha256sum {KEY}") == before
    well(m.setup())


def test_a_key_is_imported_where_nothing_can_seal_it(m, ready):
    """systemd runs, but /var is in memory: no key of the host. As the step "key" of setup makes it."""
    assert m.run("systemd-creds", "encrypt", "/etc/hostname", "-", check=False).returncode != 0
    line = m.ctl("key", "export", "-").stdout
    assert len(line) == 45
    m.write("/run/key.txt", line, "0400")
    m.sh(f"mv {KEY} {KEY}.aside")
    m.ctl("key", "import", "/run/key.txt")
    assert m.sh(f"cmp {KEY} {KEY}.aside; stat -c '%a %U' {KEY}; ls {KEY}*") == f"400 root\n{KEY}\n{KEY}.aside\n"
    m.sh(f"mv {KEY}.aside {KEY}")
    # neither alphabet but the one it was written in, nor bits behind the last byte
    for wrong in (line.replace("=", ""), "-" * 43 + "=\n", line[:42] + "B=\n"):
        m.write("/run/wrong.txt", wrong)
        assert m.ctl("key", "import", "/run/wrong.txt", check=False).returncode != 0


def test_lines_that_somebody_edited_stay(m, ready):
    hba = f"{m.pgdir}/pg_hba.conf"
    m.sh(f"cp -p {hba} {hba}.whole; sed -i '/^local mcpbox,/i # ours, and this remark' {hba}; sha256sum {hba} >/run/sum")
    answer = m.setup()
    well(answer)
    assert "edited by hand" in answer[0]["access"][1]
    m.sh("sha256sum -c --status /run/sum")
    # edited so that it does not serve: said, not mended
    m.sh(f"sed -i 's/^local mcpbox,.*/local mcpbox mcpbox_owner reject/' {hba}; sha256sum {hba} >/run/sum")
    assert "mcpbox-owner does not get in" in stopped_at(m.setup(), "login")
    m.sh(f"sha256sum -c --status /run/sum; cat {hba}.whole >{hba}")
    well(m.setup())


def test_a_lost_block_is_made_again(m, ready):
    for f in ("pg_hba.conf", "pg_ident.conf"):
        m.sh(f"cat {m.pgdir}/{f}.before-mcpbox >{m.pgdir}/{f}")
    m.pg("reload")
    well(m.setup(), "access")


def test_after_a_crash_it_starts_what_is_left(m, ready):
    m.stop_daemons()
    well(m.setup(), "start")


def test_backup_and_restore_need_no_other_user(m, ready):
    m.ctl("backup", "/var/lib/mcpbox.dump")
    assert json.loads(m.ctl("--json", "restore", "/var/lib/mcpbox.dump").stdout)["database"] == "mcpbox"
    # not its services alone: the target has mcpbox-migrate, which a backup of an older schema needs
    assert "run `systemctl restart mcpbox.target`, then" in m.ctl("restore", "/var/lib/mcpbox.dump").stdout
    well(m.setup())


def test_a_generated_password_is_shown_once(m, ready):
    m.sql("SET session_replication_role = replica; DELETE FROM mcpbox.admin_users")
    m.stop_daemons()
    answer = m.setup()
    well(answer, "start", "administrator")
    password = answer[2]["password"]
    assert len(password) == 24 and m.sql("SELECT username FROM mcpbox.admin_users") == "admin"
    assert "password" not in m.setup()[2]


# Between mcpboxctl and the vault: the first connection that names an administrator is heard to its end by the vault and
# then closed without the answer. argv[1]: what else happens at that moment.
LOSES = """import os, socket, sys
os.chdir("/run/mcpbox/admind-vault")
os.rename("ctl.sock", "real.sock")
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("ctl.sock")
s.listen()
lost = None
while True:
    (client, _), vault = s.accept(), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    vault.connect("real.sock")
    while hello := client.recv(1 << 20):
        vault.sendall(hello)
        answer = vault.recv(1 << 20)
        if lost is None and b"admin" in hello and b"mcpboxctl" not in hello:
            lost = hello
            open("/run/lost", "wb").write(hello)
            os.system(sys.argv[1])
            break
        client.sendall(answer)
    client.close()
    vault.close()
"""


@pytest.fixture
def loses(m, ready):
    """No administrator, and a vault whose answer will be lost."""
    def begin(moment):
        m.sql("SET session_replication_role = replica; DELETE FROM mcpbox.admin_users")
        m.stop_daemons()
        m.sh("rm -f /run/mcpbox/*/ctl.sock /run/lost; systemctl start mcpbox.target")
        m.sh("for i in {1..200}; do [ ! -S /run/mcpbox/admind/ctl.sock ] || [ ! -S /run/mcpbox/admind-vault/ctl.sock ] || "
             f"{m.libexec}/mcpboxctl key status >/dev/null 2>&1 && break; sleep 0.1; done")
        m.write("/run/loses.py", LOSES)
        m.sh(f"setsid python3 /run/loses.py '{moment}' >/run/loses.log 2>&1 & echo $! >/run/loses.pid; "
             "for i in {1..100}; do [ ! -S /run/mcpbox/admind-vault/real.sock ] || [ ! -S /run/mcpbox/admind-vault/ctl.sock ] "
             "|| break; sleep 0.1; done")
    yield begin
    m.sh("kill -9 $(cat /run/loses.pid) || true; cat /run/loses.log; cd /run/mcpbox; mv -f admind-vault/real.sock admind-vault/ctl.sock; "
         "[ ! -e admind/aside.sock ] || mv admind/aside.sock admind/ctl.sock")


def test_a_password_whose_vault_s_answer_was_lost(m, loses):
    """It made the administrator with a password that only this run knows."""
    loses("true")
    steps, status, answer = m.setup()
    assert (status, steps["administrator"][0]) == (0, "done"), (steps["administrator"], m.read("/run/loses.log"))
    assert len(answer["password"]) == 24 and m.run("grep", "-cFe", answer["password"], "/run/lost").stdout == "1\n"


def test_a_password_of_which_nothing_is_known(m, loses):
    """Nor does admind list the administrators then: it may be in force, so it is shown with the failure."""
    loses("mv /run/mcpbox/admind/ctl.sock /run/mcpbox/admind/aside.sock")
    r = m.ctl("setup", check=False)
    shown = r.stdout.partition("shown only now: ")[2].split()[0]
    assert r.returncode != 0 and "administrator: failed: whether admin was made is not known" in r.stdout
    assert m.run("grep", "-cFe", shown, "/run/lost").stdout == "1\n"
    assert "Next:" not in r.stdout
    m.sh("mv /run/mcpbox/admind/aside.sock /run/mcpbox/admind/ctl.sock")
    # it was; who has lost the line, or killed it before, gets in all the same
    assert m.setup()[0]["administrator"][0] == "already so"
    m.write("/run/password", "another one that is known\n", "0600")
    m.ctl("administrators", "password", "admin", "--password-file", "/run/password")


# --- doctor ---------------------------------------------------------------

UNITS = ["mcpbox.target", "mcpbox-gatewayd@local.socket", "mcpbox-gatewayd@tunnel.socket", "mcpbox-admind-http.socket",
         "mcpbox-gatewayd@local.service", "mcpbox-gatewayd@tunnel.service", "mcpbox-admind-http.service",
         "mcpbox-admind.service", "mcpbox-admind-check.service", "mcpbox-admind-vault.service",
         "mcpbox-migrate.service", "mcpbox-sandboxd.service", "mcpbox-sandboxd-spawn.service",
         "mcpbox-sandboxd-egress.service", "mcpbox-sandboxd-store.service",
         "mcpbox-resolv.path", "mcpbox-resolv-link.path", "mcpbox-resolv.service"]


def show(**changes):
    """What `systemctl show` says: all well but for `changes` (unit without mcpbox-: lines)."""
    text = []
    for u in UNITS:
        lines = {"Id": u, "LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled",
                 "Result": "success", "MainPID": "0", "NRestarts": "0"}
        if "spawn" in u:
            lines["DelegateControllers"] = "cpu memory pids"
        lines |= changes.get(u, {})
        text.append("\n".join(f"{k}={v}" for k, v in lines.items()) + "\n")
    return "\n".join(text)


def doctor(m):
    """Rows of the installation: name -> (state, detail, fix), the worst of a name; the exit status."""
    r = m.ctl("--json", "doctor", check=False)
    rows = {}
    for row in json.loads(r.stdout):
        if row["process"] == "installation":
            if row["layer"] not in rows or row["state"] == "missing":
                rows[row["layer"]] = (row["state"], row["detail"], row["fix"])
    return rows, r.returncode


@pytest.fixture
def units(m, ready):
    def say(**changes):
        m.write("/run/systemctl.show", show(**changes))
        return doctor(m)[0]
    return say


def test_doctor_of_units(m, units):
    rows = units()
    assert rows["units"][:2] == ("enforced", f"{len(UNITS)} are as they should be")
    assert rows["cgroup_delegation"][0] == "enforced"
    # a program that was replaced under a process that runs
    m.sh("cp /bin/sleep /run/older; chmod 755 /run/older; /run/older 600 >/dev/null 2>&1 & echo $! >/run/older.pid; "
         "sleep 0.1; rm /run/older")
    rows = units(**{
        "mcpbox-admind.service": {"ActiveState": "failed", "Result": "watchdog"},
        "mcpbox-sandboxd.service": {"LoadState": "masked", "ActiveState": "inactive"},
        "mcpbox.target": {"UnitFileState": "disabled"},
        "mcpbox-sandboxd-store.service": {"NRestarts": "9"},
        "mcpbox-migrate.service": {"ActiveState": "inactive"},
        "mcpbox-resolv.service": {"ActiveState": "inactive"},
        "mcpbox-sandboxd-spawn.service": {"DelegateControllers": "cpu pids"},
        "mcpbox-gatewayd@local.service": {"MainPID": m.read("/run/older.pid").strip()}})
    assert not {"units", "mcpbox-migrate.service", "mcpbox-resolv.service"} & set(rows)
    assert rows["mcpbox-admind.service"][:2] == ("missing", "failed, watchdog")
    assert rows["mcpbox-sandboxd.service"][:2] == ("missing", "masked") and "unmask" in rows["mcpbox-sandboxd.service"][2]
    assert rows["mcpbox.target"][0] == "degraded" and "enable" in rows["mcpbox.target"][2]
    assert rows["mcpbox-sandboxd-store.service"][:2] == ("degraded", "restarted 9 times")
    assert rows["mcpbox-gatewayd@local.service"][0] == "degraded" and "replaced" in rows["mcpbox-gatewayd@local.service"][1]
    assert rows["cgroup_delegation"][0] == "degraded" and "no memory" in rows["cgroup_delegation"][1]
    m.sh("kill $(cat /run/older.pid)")
    rows = units(**{"mcpbox-migrate.service": {"ActiveState": "failed", "Result": "exit-code"}})
    assert rows["mcpbox-migrate.service"][0] == "missing"


def test_doctor_of_what_was_switched_off(m, units):
    """As OPERATIONS says it is done; a listener that failed is not one of these."""
    off = {"ActiveState": "inactive", "UnitFileState": "disabled"}
    rows = units(**{
        "mcpbox-gatewayd@tunnel.socket": off,
        "mcpbox-gatewayd@tunnel.service": {"ActiveState": "inactive", "UnitFileState": "static"},
        "mcpbox-admind-http.socket": {"ActiveState": "inactive", "LoadState": "masked", "UnitFileState": "masked"},
        "mcpbox-admind-http.service": off})
    for row, unit in (("listener_tunnel", "gatewayd@tunnel"), ("listener_admin", "admind-http")):
        assert rows[row][:2] == ("off", f"mcpbox-{unit}.socket is switched off") and "enable --now" in rows[row][2]
    assert rows["units"][0] == "enforced" and rows["listener_local"][0] == "missing"
    # disabled, but ended by itself; its service failed; or stopped by hand though enabled
    for state in ({"ActiveState": "failed", "UnitFileState": "disabled", "Result": "trigger-limit-hit"},
                  {"ActiveState": "inactive"}):
        rows = units(**{"mcpbox-gatewayd@tunnel.socket": state})
        assert rows["mcpbox-gatewayd@tunnel.socket"][0] == rows["listener_tunnel"][0] == "missing"
    rows = units(**{"mcpbox-admind-http.socket": off,
                    "mcpbox-admind-http.service": {"ActiveState": "failed", "Result": "exit-code"}})
    assert rows["mcpbox-admind-http.service"][0] == "missing" and rows["listener_admin"][0] == "off"
    # a daemon that listens to nobody is not a listener: off, it is missing
    rows = units(**{"mcpbox-sandboxd.service": off})
    assert rows["mcpbox-sandboxd.service"][0] == "missing"


# A kernel's settings that this one may not have.
KERNEL = ("mount -t tmpfs tmpfs /proc/sys/kernel; mkdir /proc/sys/kernel/yama; "
          "set -- %s; echo $2 >/proc/sys/kernel/$1")


def test_doctor_of_a_machine(m, ready):
    rows, _ = doctor(m)
    version = m.sql("SELECT max(version) FROM mcpbox.schema_migrations")
    for name, detail in (("version", ""), ("configuration", "10 files"), ("database", "PostgreSQL"),
                         ("schema", f"version {version}"), ("master_key", KEY), ("clock", ""), ("user_namespaces", ""),
                         ("yama", ""), ("runner_ids", str(m.base + 1024)), ("disk", "MiB"),
                         ("tunnel_group", "nobody but root")):
        assert rows[name][0] == "enforced" and detail in rows[name][1] and rows[name][2] == "", (name, rows[name])
    assert rows["journal"][0] == "degraded"
    # each thing wrong, and again right
    for wrong, name, state, detail, right in (
            ("echo nonsense 1 >>/etc/mcpbox/egress.conf", "configuration", "missing", "nonsense", "sed -i '$d' /etc/mcpbox/egress.conf"),
            (KERNEL % "yama/ptrace_scope 3", "yama", "degraded", "is 3", "umount /proc/sys/kernel"),
            (KERNEL % "unprivileged_userns_clone 0", "user_namespaces", "missing", "is 0", "umount /proc/sys/kernel"),
            (KERNEL % "apparmor_restrict_unprivileged_userns 1", "user_namespaces", "degraded", "is 1",
             "umount /proc/sys/kernel"),
            ("echo 0 >/run/n; mount --bind /run/n /proc/sys/user/max_user_namespaces", "user_namespaces", "missing", "is 0",
             "umount /proc/sys/user/max_user_namespaces"),
            (f"echo 'ada:{m.base + 1025}:1' >>/etc/subgid", "runner_ids", "missing", "ada", ": >/etc/subgid"),
            ("gpasswd -a www-data mcpbox-gw-tunnel", "tunnel_group", "enforced", "www-data", "gpasswd -d www-data mcpbox-gw-tunnel"),
            (f"mv {KEY} {KEY}.aside", "master_key", "missing", "there is none", f"mv {KEY}.aside {KEY}"),
            (f"cp -p {KEY} {KEY}.aside; head -c 32 /dev/urandom >{KEY}", "master_key", "missing", "sealed by the master key",
             f"mv -f {KEY}.aside {KEY}"),
            ("mkdir /var/log/journal", "journal", "enforced", "/var/log/journal", "rmdir /var/log/journal"),
            (f"mv {m.libexec}/mcpbox-sandboxd /run/aside", "version", "missing", "does not run",
             f"mv /run/aside {m.libexec}/mcpbox-sandboxd"),
            ("mkdir /run/small; mount -t tmpfs -o size=50m tmpfs /run/small; cp -a /var/lib/mcpbox/setup /run/small; "
             "mount --bind /run/small /var/lib/mcpbox", "disk", "missing", "MiB free", "umount /var/lib/mcpbox"),
            ("touch -d '+1 hour' /var/lib/mcpbox/setup", "clock", "missing", "behind the time of setup",
             "touch /var/lib/mcpbox/setup")):
        m.sh(wrong)
        rows, status = doctor(m)
        m.sh(right)
        assert rows[name][0] == state and detail in rows[name][1], (name, rows[name])
        assert bool(rows[name][2]) == (state != "enforced") and (status != 0 or state != "missing")


def test_doctor_of_the_database(m, ready):
    # backups: of an upgrade, or by hand (the audit log says so)
    m.sh("rm -f /var/lib/mcpbox/backups/*")
    m.sql("SET session_replication_role = replica; DELETE FROM mcpbox.audit_log WHERE action = 'backed_up'")
    assert doctor(m)[0]["backup"][:2] == ("degraded", "there is none")
    m.sh("touch -d '9 days ago' /var/lib/mcpbox/backups/before-0001-20260101T000000Z.dump")
    assert doctor(m)[0]["backup"][:2] == ("degraded", "the newest is 9 days old")
    m.ctl("backup", "/var/lib/of-today.dump")
    assert doctor(m)[0]["backup"][0] == "enforced"
    assert m.sql("SELECT actor FROM mcpbox.audit_log WHERE action = 'backed_up'") == "root"
    # rows of tomorrow: the clock was set back
    m.sql("SET session_replication_role = replica; ALTER TABLE mcpbox.audit_log DROP CONSTRAINT audit_log_check; "
          "UPDATE mcpbox.audit_log SET at = at + interval '1 day' WHERE seq = (SELECT max(seq) FROM mcpbox.audit_log)")
    assert "behind the newest audit row" in doctor(m)[0]["clock"][1]
    # an older schema, no way in for root, no server
    m.sql("SET session_replication_role = replica; UPDATE mcpbox.schema_migrations SET version = version + 1 WHERE version ="
          " (SELECT max(version) FROM mcpbox.schema_migrations)")
    assert doctor(m)[0]["schema"][0] == "missing"
    m.sql("SET session_replication_role = replica; UPDATE mcpbox.schema_migrations SET version = version - 1 WHERE version ="
          " (SELECT max(version) FROM mcpbox.schema_migrations)")
    m.sh(f"sed -i '/^mcpbox root/d' {m.pgdir}/pg_ident.conf")
    m.pg("reload")
    assert doctor(m)[0]["backup_login"][0] == "degraded"
    m.pg("stop")
    rows, status = doctor(m)
    assert rows["database"][0] == "missing" and "schema" not in rows and status != 0
