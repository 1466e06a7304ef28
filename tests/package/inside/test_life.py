"""Upgrade, removal and purge: what is kept, what is told to systemd, and that
whatever is left has been named."""
import grp
import os
import pathlib
import pwd
import re
import subprocess

SERVICES = ["mcpbox-admind.service", "mcpbox-gatewayd@local.service", "mcpbox-migrate.service",
            "mcpbox-sandboxd.service"]
WATCH = "mcpbox-resolv.path"
SOCKETS = ["mcpbox-admind-http.socket", "mcpbox-gatewayd@local.socket"]
UNITS = pathlib.Path("lib/systemd/system")
HBA = pathlib.Path("/etc/postgresql/15/main/pg_hba.conf.before-mcpbox")


def set_up():
    """What `mcpboxctl setup` and some use leave behind."""
    owner = pwd.getpwnam("mcpbox-owner")
    pathlib.Path("/var/lib/mcpbox/setup").write_text("1\n")
    pathlib.Path("/etc/mcpbox/master.key").write_bytes(bytes(32))
    os.chmod("/etc/mcpbox/master.key", 0o400)
    backup = pathlib.Path("/var/lib/mcpbox/backups/before-0023-20261122.dump")
    backup.write_text("dump")
    os.chown(backup, owner.pw_uid, owner.pw_gid)
    module = pathlib.Path("/var/lib/mcpbox/modules") / ("a" * 64)
    module.mkdir()
    (module / "m.py").write_text("")
    store = pwd.getpwnam("mcpbox-store")
    os.chown(module, store.pw_uid, store.pw_gid)
    pathlib.Path("/run/mcpbox/admind/main.sock").touch()
    HBA.parent.mkdir(parents=True, exist_ok=True)
    HBA.write_text("local all all peer\n")


def unit(tree, name):
    """A unit's file in an unpacked package of either suite."""
    (path,) = [p for p in (tree / UNITS / name, tree / "usr" / UNITS / name) if p.exists()]
    return path


def test_upgrade_keeps_data_and_configuration(machine, newer):
    machine.install()
    set_up()
    egress = pathlib.Path("/etc/mcpbox/egress.conf")
    changed = egress.read_text() + "connect_timeout 7s\n"
    egress.write_text(changed)

    def change(tree):
        for name in ("egress", "admind"):
            with open(tree / f"etc/mcpbox/{name}.conf", "a") as f:
                f.write("# of the later version\n")

    said = machine.install(newer(change))
    assert machine.status() == "install ok installed"
    assert egress.read_text() == changed
    assert "# of the later version" in pathlib.Path("/etc/mcpbox/admind.conf").read_text()
    for path in ("/var/lib/mcpbox/setup", "/etc/mcpbox/master.key",
                 "/var/lib/mcpbox/backups/before-0023-20261122.dump",
                 "/var/lib/mcpbox/modules/" + "a" * 64 + "/m.py"):
        assert pathlib.Path(path).exists(), path
    assert "mcpboxctl setup" not in said


def test_upgrade_restarts_what_ran_and_no_socket(machine, newer):
    machine.install()
    set_up()
    machine.systemd(running=SERVICES)
    said = machine.install(newer())
    # The target alone: services named one by one would not be one transaction.
    assert machine.told("restart") == [["mcpbox-processes.target"]]
    assert not machine.told("stop") and not machine.told("try-restart")
    # What the later version may have added comes up with the whole.
    assert machine.told("start") == [["mcpbox.target"]]
    calls = (pathlib.Path("/tmp/systemctl/calls")).read_text().splitlines()
    reload = next(i for i, c in enumerate(calls) if "daemon-reload" in c)
    assert reload < next(i for i, c in enumerate(calls) if " restart " in c)
    assert "opened anew" not in said and "migration_failed" not in said
    assert not pathlib.Path("/run/mcpbox-upgrade").exists()


def test_upgrade_restarts_services_without_their_target(machine, newer):
    """Started one by one, or by a version that had no such target."""
    machine.install()
    set_up()
    for target in (True, False):
        machine.systemd(running=SERVICES, target=target, processes=False)
        machine.install(newer())
        assert machine.told("try-restart") == [["mcpbox-*.service", "mcpbox-*.path"]] and not machine.told("restart")
        assert machine.told("start") == ([["mcpbox.target"]] if target else [])


def test_upgrade_of_a_stopped_suite_starts_nothing(machine, newer):
    machine.install()
    set_up()
    machine.systemd(target=False)

    def change(tree):
        path = unit(tree, SOCKETS[0])
        path.write_text(path.read_text().replace("[Socket]\n", "[Socket]\nReusePort=yes\n"))

    said = machine.install(newer(change))
    assert not machine.told("restart") and not machine.told("start")
    assert "opened anew" not in said


def test_upgrade_reopens_a_listener_that_changed_and_says_so(machine, newer):
    machine.install()
    set_up()
    machine.systemd(running=SERVICES)

    def change(tree):
        path = unit(tree, SOCKETS[0])
        path.write_text(path.read_text().replace("[Socket]\n", "[Socket]\nReusePort=yes\n"))
        path = unit(tree, SOCKETS[1])
        path.write_text("# of the later version\n" + path.read_text())

    said = machine.install(newer(change))
    assert machine.told("restart") == [[SOCKETS[0]], ["mcpbox-processes.target"]]
    assert re.search(f"opened anew;.*{SOCKETS[0]}", said) and SOCKETS[1] not in said


def test_upgrade_stops_what_is_gone(machine, newer):
    """Without its file a service is no part of the target that is restarted."""
    machine.install()
    set_up()
    machine.systemd(running=SERVICES)

    def change(tree):
        for name in (SOCKETS[0], SERVICES[0], WATCH, "mcpbox-gatewayd@.service"):
            unit(tree, name).unlink()

    said = machine.install(newer(change))
    (stopped,) = machine.told("stop")
    assert sorted(stopped) == sorted([SOCKETS[0], SERVICES[0], WATCH, "mcpbox-gatewayd@*.service"])
    assert "opened anew" not in said


def test_an_upgrade_behind_one_that_was_only_unpacked(machine, newer):
    """What runs is still what was there before the first one."""
    machine.install()
    set_up()
    machine.systemd(running=SERVICES)
    later = newer(lambda tree: unit(tree, SERVICES[0]).unlink())
    machine.dpkg("--unpack", "--force-unsafe-io", "--force-confold", str(later))
    assert not machine.told("stop") and not machine.told("restart")
    machine.install(later)
    assert machine.told("stop") == [[SERVICES[0]]]
    assert machine.told("restart") == [["mcpbox-processes.target"]]
    assert not pathlib.Path("/run/mcpbox-upgrade").exists()


def test_an_upgrade_that_is_given_up_starts_nothing(machine, newer):
    """It has stopped nothing: what an administrator stopped stays stopped."""
    machine.install()
    set_up()
    machine.systemd(target=False)

    def change(tree):
        with open(tree / "DEBIAN/preinst", "a") as f:
            f.write("exit 1\n")

    machine.install(newer(change), rc=1)
    assert machine.status() == "install ok installed"
    assert not machine.told("start") and not machine.told("restart") and not machine.told("stop")
    assert not pathlib.Path("/run/mcpbox-upgrade").exists()


def test_a_removal_that_is_given_up_starts_it_again(machine):
    machine.install()
    set_up()
    machine.systemd(running=SERVICES)
    prerm = pathlib.Path("/var/lib/dpkg/info/mcpbox.prerm")
    with open(prerm, "a") as f:
        f.write("exit 1\n")
    machine.dpkg("-r", "mcpbox", rc=1)
    assert len(machine.told("stop")) == 1 and machine.told("start") == [["mcpbox.target"]]


def test_upgrade_names_a_failed_migration(machine, newer):
    """The package is installed, so that a later one can be; what failed is said."""
    machine.install()
    set_up()
    machine.systemd(running=SERVICES, migration_fails=True)
    said = machine.install(newer())
    assert machine.status() == "install ok installed"
    for words in ("migration_failed", "journalctl -u mcpbox-migrate.service",
                  "/var/lib/mcpbox/backups"):
        assert words in said


def test_installation_starts_the_target_only(machine):
    machine.systemd(target=False)
    machine.install()
    assert machine.told("start") == [["mcpbox.target"]]
    assert not machine.told("restart") and not machine.told("stop")


def test_removal_stops_and_keeps(machine):
    machine.install()
    set_up()
    machine.systemd(running=SERVICES)
    machine.dpkg("-r", "mcpbox")
    (stopped,) = machine.told("stop")
    assert {"mcpbox.target", "mcpbox-*.socket", "mcpbox-*.service", "mcpbox-*.path", "mcpbox.slice"} <= set(stopped)
    assert machine.told("reset-failed") # nothing of it stays in systemd's list
    assert machine.status() == "deinstall ok config-files"
    for path in ("/usr/libexec/mcpbox", "/usr/bin/mcpboxctl", "/run/mcpbox",
                 "/usr/lib/systemd/system/mcpbox.target"):
        assert not pathlib.Path(path).exists(), path
    for path in ("/etc/mcpbox/admind.conf", "/etc/mcpbox/master.key", "/var/lib/mcpbox/setup"):
        assert pathlib.Path(path).exists(), path
    # And back: it runs again by itself, with what it had.
    machine.systemd(target=False)
    machine.install()
    assert machine.told("start") == [["mcpbox.target"]]


def left_behind():
    """Every file that a purged package could have left, wherever it is."""
    ids = {p.pw_uid for p in pwd.getpwall() if p.pw_name.startswith("mcpbox-")}
    found = set()
    for top in ("/etc", "/var", "/run", "/usr", "/opt", "/srv", "/home", "/root"):
        for directory, dirs, files in os.walk(top):
            for name in dirs + files:
                path = os.path.join(directory, name)
                st = os.lstat(path)
                if "mcpbox" in path or st.st_uid in ids or st.st_gid in ids:
                    found.add(path)
    return {p for p in found if not p.startswith(("/usr/share/mcpbox-test", "/root/.cache"))
            and ".mcpbox" not in p}


def test_purge_names_what_it_leaves(machine):
    machine.install()
    set_up()
    dropins = pathlib.Path("/etc/systemd/system/mcpbox-admind.service.d")
    dropins.mkdir()
    (dropins / "database.conf").write_text("# Written by `mcpboxctl setup --database`, removed by\n[Service]\n")
    (dropins / "mine.conf").write_text("[Service]\nNice=5\n")
    # systemctl mask, set-property
    masked = pathlib.Path("/etc/systemd/system/mcpbox-sandboxd-egress.service")
    masked.symlink_to("/dev/null")
    control = pathlib.Path("/etc/systemd/system.control/mcpbox.slice.d")
    control.mkdir(parents=True)
    (control / "50-MemoryMax.conf").write_text("[Slice]\nMemoryMax=2G\n")
    subprocess.run(["userdel", "mcpbox-egress"], check=True)
    subprocess.run(["usermod", "-aG", "mcpbox-gw-tunnel", "www-data"], check=True)
    # Whoever owns a directory chooses names in it.
    odd = [HBA.with_name(n + ".before-mcpbox") for n in (
        "x; touch canary #", "x\n    rm -rf canary", "x\x1b[2J")]
    for path in odd:
        path.write_text("")
    machine.systemd(running=SERVICES)
    said = machine.dpkg("--purge", "mcpbox")
    assert "canary" not in said and "\x1b" not in said
    assert "unusual names, which ls -lbR /etc/postgresql shows" in said
    for path in odd:
        path.unlink()
    left = left_behind()
    kept = {"/etc/mcpbox", "/etc/mcpbox/master.key", "/var/lib/mcpbox", "/var/lib/mcpbox/backups",
            "/var/lib/mcpbox/backups/before-0023-20261122.dump", str(dropins),
            str(dropins / "mine.conf"), str(HBA), str(masked), str(control),
            str(control / "50-MemoryMax.conf")}
    assert left == kept
    for path in left:
        assert path in said, path
    for words in ("dropdb mcpbox", "dropuser mcpbox_app", "dropuser mcpbox_owner", "pg_hba.conf",
                  "pg_ident.conf", *(f"userdel {p.pw_name}" for p in pwd.getpwall()
                                     if p.pw_name.startswith("mcpbox-"))):
        assert words in said, words
    # The named commands do it.
    for line in said.splitlines():
        if re.match(r" +(rm|rmdir|userdel|groupdel) ", line):
            assert os.system(line) == 0, line
    assert left_behind() == set()
    assert not [p for p in pwd.getpwall() if p.pw_name.startswith("mcpbox-")]
    assert not [g for g in grp.getgrall() if g.gr_name.startswith("mcpbox-")]


def test_purge_of_what_was_never_set_up(machine):
    machine.install()
    said = machine.dpkg("--purge", "mcpbox")
    assert left_behind() == set()
    assert "dropdb" not in said and "master key" not in said
