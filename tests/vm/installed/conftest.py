"""One machine on which mcpbox is installed, used, upgraded and removed: the
modules run in the order of their names and each begins where the one before
ended, some after a reboot. What they tell each other is below /var/tmp/installed.

MCPBOX_PACKAGES: a directory with first.deb and next.deb."""
import json
import os
import secrets

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.installed import Installed
from harness.patience import eventually, patience
from harness.traffic import CODE

NOTES = "/var/tmp/installed"


class Notes:
    """Values by name, on the disk."""

    def __setitem__(self, name, value):
        os.makedirs(NOTES, mode=0o700, exist_ok=True)
        with open(os.path.join(NOTES, name), "w", encoding="utf-8") as f:
            json.dump(value, f)

    def __getitem__(self, name):
        with open(os.path.join(NOTES, name), encoding="utf-8") as f:
            return json.load(f)

    def get(self, name):
        try:
            return self[name]
        except FileNotFoundError:
            return None

    def path(self, name):
        return os.path.join(NOTES, name)


@pytest.fixture(scope="session")
def notes():
    return Notes()


@pytest.fixture(scope="session")
def packages():
    return os.environ["MCPBOX_PACKAGES"]


@pytest.fixture(scope="session")
def suite(notes):
    """mcpbox as it is installed; its administrator's password is in a file."""
    path = notes.path("password")
    if not os.path.exists(path):
        notes["begun"] = True
        with open(path, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(secrets.token_urlsafe(18) + "\n")
    with open(path, encoding="ascii") as f:
        return Installed(f.read().strip())


@pytest.fixture(scope="session")
def client(suite):
    """Of the local listener."""
    with Client(suite.address, timeout=patience(120)) as c:
        yield c


@pytest.fixture(scope="session")
def tool(suite, notes):
    """The approved tool that traffic calls, made once: its exposed name."""
    if not notes.get("tool"):
        assert eventually(suite.up) and eventually(suite.runs_tools, step=1), suite.logs()
        with Client(suite.address, timeout=patience(120)) as c:
            notes["tool"] = flow.publish(suite, c, "load", "nonce", CODE)
    return notes["tool"]


@pytest.fixture(scope="session")
def token(suite, notes):
    """A token for the tunnel."""
    if not notes.get("token"):
        notes["token"] = suite.ctl_json("tokens", "create", "traffic")["token"]
    return notes["token"]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Where installing failed there is nothing to look at: each other test
    would wait for its own failure."""
    report = (yield).get_result()
    if report.failed and "test_1_install" in item.nodeid:
        item.session.shouldfail = "it did not install"
