"""A fresh installation: users, directories, what is enabled, and that each
configuration file means what was intended."""
import grp
import os
import pathlib
import pwd
import re
import stat
import subprocess

import pytest

from harness.patience import patience

USERS = """mcpbox-gw-local mcpbox-gw-tunnel mcpbox-admin mcpbox-adminweb mcpbox-check
    mcpbox-vault mcpbox-sandbox mcpbox-pool mcpbox-egress mcpbox-store mcpbox-owner""".split()
PROGRAM = {"gatewayd-local": "gatewayd", "gatewayd-tunnel": "gatewayd", "egress": "sandboxd-egress"}
PROCESS = {"gatewayd-local": "gatewayd", "gatewayd-tunnel": "gatewayd"}
# What the package sets; everything else is the default.
SET = {
    "gatewayd-local": {"addr_file": "/run/mcpbox/gatewayd-local/addr"},
    "gatewayd-tunnel": {"listener": "tunnel", "addr_file": "/run/mcpbox/gatewayd-tunnel/addr"},
    "admind-http": {"addr_file": "/run/mcpbox/admind-http/addr"},
    "sandboxd-spawn": {"runner_uid_base": "1930000000"},
}
CONF = """admind admind-check admind-http admind-vault egress gatewayd-local
    gatewayd-tunnel sandboxd sandboxd-spawn sandboxd-store""".split()
DIRECTORIES = {
    "/run/mcpbox": ("root", "root", 0o755),
    "/run/mcpbox/gatewayd-local": ("mcpbox-gw-local", "mcpbox-gw-local", 0o755),
    "/run/mcpbox/gatewayd-tunnel": ("mcpbox-gw-tunnel", "mcpbox-gw-tunnel", 0o750),
    "/run/mcpbox/admind": ("mcpbox-admin", "mcpbox-admin", 0o750),
    "/run/mcpbox/admind-http": ("mcpbox-adminweb", "mcpbox-adminweb", 0o755),
    "/run/mcpbox/admind-check": ("mcpbox-check", "mcpbox-check", 0o750),
    "/run/mcpbox/admind-vault": ("mcpbox-vault", "mcpbox-vault", 0o750),
    "/run/mcpbox/sandboxd": ("mcpbox-sandbox", "mcpbox-sandbox", 0o750),
    "/run/mcpbox/sandboxd-spawn": ("mcpbox-pool", "mcpbox-pool", 0o750),
    "/run/mcpbox/egress": ("mcpbox-egress", "mcpbox-egress", 0o750),
    "/run/mcpbox/sandboxd-store": ("mcpbox-store", "mcpbox-store", 0o750),
    "/var/lib/mcpbox": ("root", "root", 0o755),
    "/var/lib/mcpbox/modules": ("root", "mcpbox-store", 0o1775),
    "/var/lib/mcpbox/backups": ("mcpbox-owner", "mcpbox-owner", 0o700),
    "/etc/mcpbox": ("root", "root", 0o755),
}


def defaults(process):
    """keyword -> default, from the table itself."""
    text = pathlib.Path("/src/common/conf/conf_keys.def").read_text()
    rows = re.findall(r'^K\("([^"]+)", (\w+), \w+, "([^"]*)"', text, re.M)
    return {name: value for p, name, value in rows if p in ("*", process)}


def run(*command):
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=patience(20))


def test_users_and_directories(installed):
    assert 'mcpboxctl setup' in installed.said
    assert installed.status() == "install ok installed"
    for user in USERS:
        p = pwd.getpwnam(user)
        assert p.pw_shell.endswith("/nologin") and p.pw_uid < 1000, p
        assert p.pw_gecos.startswith("mcpbox (") and "," not in p.pw_gecos # a comma parts its fields
        assert grp.getgrgid(p.pw_gid).gr_name == user and not grp.getgrgid(p.pw_gid).gr_mem
    for path, (user, group, mode) in DIRECTORIES.items():
        st = os.stat(path)
        found = (pwd.getpwuid(st.st_uid).pw_name, grp.getgrgid(st.st_gid).gr_name,
                 stat.S_IMODE(st.st_mode))
        assert found == (user, group, mode), path
    assert not pathlib.Path("/var/lib/mcpbox/setup").exists()
    verified = run("dpkg", "--verify", "mcpbox")
    assert verified.stdout == ""


def test_what_is_enabled(installed):
    """The target at boot, the listeners with the target; the target itself names
    the rest, but for what these bring along."""
    etc = pathlib.Path("/etc/systemd/system")
    assert (etc / "multi-user.target.wants/mcpbox.target").is_symlink()
    units = pathlib.Path("/usr/lib/systemd/system")
    wanted = {u.name for u in units.glob("mcpbox*") if "WantedBy=mcpbox.target" in u.read_text()}
    assert wanted == {"mcpbox-gatewayd@local.socket", "mcpbox-gatewayd@tunnel.socket",
                      "mcpbox-admind-http.socket"}
    assert {u.name for u in (etc / "mcpbox.target.wants").iterdir()} == wanted
    brought = {w for u in units.glob("mcpbox*") if u.is_file()
               for line in re.findall("^Wants=(.*)", u.read_text(), re.M) for w in line.split()}
    assert {u.name for u in units.glob("mcpbox*.service")} - {"mcpbox-gatewayd@.service",
                                                              "mcpbox-resolv-settle.service"} <= brought


@pytest.mark.parametrize("name", CONF)
def test_configuration(installed, name):
    """-t takes the file, and -T shows the defaults but for what was meant."""
    program = f"/usr/libexec/mcpbox/mcpbox-{PROGRAM.get(name, name)}"
    path = pathlib.Path(f"/etc/mcpbox/{name}.conf")
    got = run(program, "-t", "-f", str(path))
    assert got.returncode == 0, got.stderr
    wanted = {**defaults(PROCESS.get(name, name)), **SET.get(name, {})}
    shown = run(program, "-T", "-f", str(path))
    assert shown.returncode == 0, shown.stderr
    found = {}
    for line in shown.stdout.splitlines():
        if line.startswith("# "):
            found[line.split()[1]] = ""
        else:
            found[line.split(" ", 1)[0]] = line.split(" ", 1)[1]
    assert found == wanted
    # Every key stands there with its default, to be taken over by removing #.
    text = path.read_text()
    for key, value in defaults(PROCESS.get(name, name)).items():
        assert re.search(f"^#{key}{re.escape(' ' + value) if value else ''}$", text, re.M), key


@pytest.mark.parametrize("name", CONF)
def test_each_default_line_is_a_valid_line(installed, name, tmp_path):
    """The commented lines are what they say: with all of them made active the
    file means the same."""
    program = f"/usr/libexec/mcpbox/mcpbox-{PROGRAM.get(name, name)}"
    text = pathlib.Path(f"/etc/mcpbox/{name}.conf").read_text()
    lines = [line[1:] if re.match(r"#[a-z_0-9]+ \S", line) and line[1:].split()[0] not in SET.get(name, {})
             else line for line in text.splitlines()]
    active = tmp_path / "active.conf"
    active.write_text("\n".join(lines) + "\n")
    assert run(program, "-T", "-f", str(active)).stdout == \
        run(program, "-T", "-f", f"/etc/mcpbox/{name}.conf").stdout


def test_programs_find_their_libraries(installed):
    for path in [*pathlib.Path("/usr/libexec/mcpbox").iterdir(), pathlib.Path("/usr/bin/mcpboxctl"),
                 pathlib.Path("/usr/bin/mcpbox-stdio"), pathlib.Path("/usr/bin/mcpbox-run")]:
        assert "not found" not in run("ldd", str(path)).stdout, path
    assert run("mcpboxctl", "--version").stdout.startswith("mcpboxctl ")
    for program in ("mcpboxctl", "mcpbox-stdio", "mcpbox-run"):
        assert run(program, "--help").stdout.startswith(f"usage: {program} ")


def test_mcpboxctl_reads_its_own_file(machine):
    machine.install()
    path = pathlib.Path("/etc/mcpbox/mcpboxctl.conf")
    got = run("mcpboxctl", "status")
    assert got.returncode != 0 and "mcpboxctl.conf" not in got.stderr
    path.write_text("no_such_keyword 1\n")
    got = run("mcpboxctl", "status")
    assert got.returncode != 0 and "mcpboxctl.conf:1: unknown keyword" in got.stderr


def test_an_administrators_disable_lasts(machine, newer):
    machine.install()
    subprocess.run(["/usr/bin/systemctl", "disable", "mcpbox-gatewayd@tunnel.socket"], check=True,
                   capture_output=True)
    machine.install(newer())
    wants = pathlib.Path("/etc/systemd/system/mcpbox.target.wants")
    assert not (wants / "mcpbox-gatewayd@tunnel.socket").exists()
    assert (wants / "mcpbox-gatewayd@local.socket").exists()
