"""From a fresh Debian to a running service."""
import os
import pwd
import re
import socket

from harness.installed import (SOCKETS, UNITS, USERS, apt_install, command, systemctl)
from harness.patience import eventually
from vm.installed.tree import paths


def users():
    return [u for u in USERS if u in {p.pw_name for p in pwd.getpwall()}]


def of_ours():
    """Processes of our users."""
    uids = {pwd.getpwnam(u).pw_uid for u in users()}
    return [p for p in filter(str.isdigit, os.listdir("/proc"))
            if os.path.exists(f"/proc/{p}") and os.stat(f"/proc/{p}").st_uid in uids]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_a_fresh_system(suite, notes):
    """As Debian makes it: its PostgreSQL runs with one cluster that knows
    nothing of us, and nothing of ours is there."""
    assert systemctl("is-active", "postgresql.service").strip() == "active"
    assert suite.psql("SELECT 1", "postgres") == [["1"]]
    assert suite.psql("SELECT rolname FROM pg_roles WHERE rolname ~ 'mcpbox'", "postgres") == []
    assert users() == [] and not os.path.exists("/etc/mcpbox")
    assert command("dpkg", "-s", "mcpbox", check=False).returncode != 0
    assert suite.failed() == []
    notes["fresh"] = sorted(paths())


def test_it_installs_with_nothing_but_debian(packages):
    apt_install(packages + "/first.deb")
    assert command("dpkg-query", "-W", "-f=${db:Status-Abbrev}", "mcpbox").stdout.strip() == "ii"
    assert users() == list(USERS)
    assert command("dpkg", "--verify", "mcpbox").stdout == ""
    # Nobody can log in as one of them.
    for u in users():
        assert pwd.getpwnam(u).pw_shell in ("/usr/sbin/nologin", "/sbin/nologin"), u


def settings():
    """Path -> text of every file of settings."""
    found = {}
    for name in sorted(os.listdir("/etc/mcpbox")):
        if name.endswith(".conf"):
            with open(os.path.join("/etc/mcpbox", name), encoding="utf-8") as f:
                found[name] = f.read()
    return found


def test_a_slow_machine_is_told_to_wait(notes):
    """An emulated processor is 20 to 40 times slower (tests/vm/guest): what its
    administrator would set, in every process's file, before setup."""
    assert len(settings()) >= len(UNITS)
    for name in settings():
        with open(os.path.join("/etc/mcpbox", name), "a", encoding="utf-8") as f:
            f.write("\n# A slow machine.\nwait_factor 20\n")
            if name == "sandboxd.conf":
                f.write("queue_wait 60s\n")
    notes["settings"] = settings()


def test_before_setup_nothing_runs_and_nothing_failed(suite):
    assert of_ours() == []
    assert not listens(8002) and not listens(8000)
    # Even if somebody starts it.
    systemctl("start", "mcpbox.target")
    assert systemctl("is-active", "mcpbox.target", check=False).strip() == "inactive"
    assert of_ours() == [] and suite.failed() == []
    # And what it says of that is what to do.
    doctor = suite.ctl("doctor", check=False)
    assert doctor.returncode != 0 and "mcpboxctl setup" in doctor.stdout + doctor.stderr, doctor


def steps(said):
    """Step -> what became of it, of setup's words."""
    return dict(re.findall(r"^(\w+): (done|already so) - ", said, re.M))


# A changed file of dpkg --verify: path, or "c" and path (dpkg(1)).
VERIFIED = re.compile(r"(/etc/\S+)$", re.M)
STEPS = {"users", "directories", "runners", "database", "server", "roles", "access", "login",
         "key", "schema", "start", "administrator"}


def test_setup_does_all_and_says_so(suite, notes):
    said = suite.ctl("setup", "--username", "admin", "--password-file",
                     notes.path("password")).stdout
    print(said)
    did = steps(said)
    assert set(did) == STEPS, said
    for step in ("roles", "access", "key", "schema", "start", "administrator"):
        assert did[step] == "done", said
    assert os.path.exists("/var/lib/mcpbox/setup")
    assert suite.psql("SELECT count(*) FROM mcpbox.admin_users") == [["1"]]
    # The files are as they were: the package's, and the administrator's own lines.
    assert settings() == notes["settings"]
    assert set(VERIFIED.findall(command("dpkg", "--verify", "mcpbox", check=False).stdout)) \
        <= {"/etc/mcpbox/" + name for name in settings()}


def test_it_is_up(suite):
    assert eventually(suite.up), systemctl("list-units", "--all", "mcpbox*") + suite.logs()
    assert suite.failed() == []
    assert listens(8002) and listens(8000)
    assert systemctl("is-enabled", "mcpbox.target", *SOCKETS, check=False).split() \
        == ["enabled"] * (1 + len(SOCKETS))
    # Each is who it should be, and nobody is root.
    got = {p: os.stat(f"/proc/{pid}").st_uid for p, pid in suite.pids().items()}
    assert len(set(got.values())) == len(UNITS) and 0 not in got.values(), got


def key_material():
    """Every file that holds the key, with its content."""
    found = {}
    for top in ("/etc/mcpbox", "/etc/credstore", "/etc/credstore.encrypted", "/var/lib/mcpbox"):
        for folder, _, files in os.walk(top):
            for f in files:
                if "key" in f:
                    with open(os.path.join(folder, f), "rb") as text:
                        found[os.path.join(folder, f)] = text.read()
    return found


def test_setup_twice_is_harmless(suite, notes):
    key, pids = key_material(), suite.pids()
    assert key
    hba = suite.psql("SELECT count(*) FROM pg_hba_file_rules", "postgres")
    said = suite.ctl("setup", "--username", "admin", "--password-file",
                     notes.path("password")).stdout
    assert steps(said) == dict.fromkeys(STEPS, "already so"), said
    assert key_material() == key and suite.pids() == pids and suite.up()
    assert suite.psql("SELECT count(*) FROM pg_hba_file_rules", "postgres") == hba
    assert suite.psql("SELECT count(*) FROM mcpbox.admin_users") == [["1"]]


def test_nobody_else_reads_the_key():
    for path in key_material():
        s = os.stat(path)
        assert s.st_uid == 0 and s.st_mode & 0o077 == 0, (path, oct(s.st_mode))
