"""Removed, installed again, purged."""
import os
import pwd
import re

from harness.clients.mcp import Client
from harness.installed import SOCKETS, UNITS, USERS, apt_install, command, systemctl
from harness.patience import eventually, patience
from vm.installed.test_1_install import listens, of_ours
from vm.installed.tree import owned, paths


def apt(*words):
    return command("apt-get", "-y", *words,
                   env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}).stdout


def units():
    """Every unit file and loaded unit of ours."""
    out = systemctl("list-unit-files", "--no-legend", "mcpbox*", check=False) + \
        systemctl("list-units", "--all", "--plain", "--no-legend", "mcpbox*", check=False)
    return sorted({line.split()[0] for line in out.splitlines() if line.strip()})


def test_removed_it_stops_and_keeps_what_is_the_owners(suite, notes):
    assert of_ours() != [] and set(UNITS.values()) <= set(units()) | {
        u for u in UNITS.values() if "@" in u}
    apt("remove", "mcpbox")
    assert of_ours() == [] and not listens(8002) and not listens(8000)
    assert not os.path.exists("/usr/libexec/mcpbox")
    assert suite.failed() == []
    assert suite.psql("SELECT count(*) FROM mcpbox.admin_users") == [["1"]]
    assert os.path.exists("/var/lib/mcpbox/setup") and os.listdir("/var/lib/mcpbox/backups")
    with open("/etc/mcpbox/gatewayd-local.conf", encoding="ascii") as f:
        assert "The administrator's own line" in f.read()


def test_installed_again_it_works_with_that(suite, tool, packages):
    apt_install(packages + "/next.deb")
    assert eventually(suite.up), systemctl("list-units", "--all", "mcpbox*") + suite.logs()
    assert eventually(suite.runs_tools, step=1), suite.logs()
    with Client(suite.address, timeout=patience(120)) as c:
        assert suite.ran(c, tool, "again") == "ran again"


def named(said, path):
    """Is this path, whole, in what purge said?"""
    return re.search(r"(?<![\w/.-])" + re.escape(path) + r"(?![\w/-])", said) is not None


def test_purged_it_leaves_only_what_it_names(suite, notes):
    ids = {pwd.getpwnam(u).pw_uid for u in USERS} | {pwd.getpwnam(u).pw_gid for u in USERS}
    assert owned(ids), "there was nothing to leave"
    said = apt("purge", "mcpbox")
    print(said)
    assert not any(os.path.exists(f"/proc/{p}") and os.stat(f"/proc/{p}").st_uid in ids
                   for p in filter(str.isdigit, os.listdir("/proc")))
    assert not any(listens(p) for p in (8000, 8002))
    left = {p for p in owned(ids) if not named(said, p)}
    assert left == set(), (left, said)
    systemctl("daemon-reload")
    assert units() == [] and suite.failed() == [], units()
    assert not [s for s in (*SOCKETS, *UNITS.values())
                if os.path.lexists("/run/systemd/units/invocation:" + s)]
    # Nor anything that belongs to root.
    new = {p for p in paths() - set(notes["fresh"]) if not named(said, p)}
    assert new == set(), (sorted(new), said)
    # The database is another package's to keep: it is there, and was named.
    assert suite.psql("SELECT count(*) FROM mcpbox.admin_users") == [["1"]]
    assert "database" in said and "mcpbox" in said
    assert named(said, "/var/lib/mcpbox") == os.path.exists("/var/lib/mcpbox"), said
