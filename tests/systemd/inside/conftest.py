"""The machine is there for these tests alone: what they find is an installation
that has just been made, and they take its first steps."""
import glob
import os

import pytest

from harness.installed import SOCKETS, Installed, command, systemctl
from harness.patience import eventually

PASSWORD = "correct horse battery staple"
SETUP = "/var/lib/mcpbox/setup"
UNITS = "/usr/lib/systemd/system"


def unit_files():
    """Names of all our units; those of the template's instances for its own."""
    names = sorted(os.path.basename(p) for p in glob.glob(os.path.join(UNITS, "mcpbox*.*")))
    names.remove("mcpbox-gatewayd@.service")
    return names + ["mcpbox-gatewayd@local.service", "mcpbox-gatewayd@tunnel.service"]


@pytest.fixture(scope="session")
def machine():
    """What the package does when it is installed: users, directories, units."""
    for words in (["systemd-sysusers"],
                  ["systemd-tmpfiles", "--create", "/usr/lib/tmpfiles.d/mcpbox.conf"]):
        said = command(*words).stderr
        assert "mcpbox" not in said, said
    systemctl("daemon-reload")
    systemctl("enable", "mcpbox.target", *SOCKETS)
    return Installed(PASSWORD)


@pytest.fixture(scope="session")
def suite(machine):
    """Running, with an administrator."""
    assert eventually(lambda: "active" in systemctl(
        "is-active", "postgresql.service", check=False).split(), 20)
    path = "/root/password"
    with open(path, "w", encoding="ascii") as f:
        f.write(PASSWORD + "\n")
    r = machine.ctl("setup", "--username", "admin", "--password-file", path, check=False)
    assert r.returncode == 0, (r.stdout, r.stderr, machine.logs(200))
    assert eventually(machine.up, 15), machine.logs(200)
    return machine


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the end of the journal."""
    report = (yield).get_result()
    i = getattr(item, "funcargs", {}).get("suite")
    if report.failed and i is not None:
        report.sections.append(("journal", i.logs()))
