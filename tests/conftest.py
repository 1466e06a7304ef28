"""Fixtures of every test that needs real daemons."""

import pytest

from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.instance import Instance
from harness.patience import until


@pytest.fixture(scope="module")
def instance(request):
    """With the settings of the module's INSTANCE_SETS, if it has some, and with known ports if INSTANCE_PORTS."""
    i = Instance(sets=getattr(request.module, "INSTANCE_SETS", ()), ports=getattr(request.module, "INSTANCE_PORTS", False))
    yield i
    i.close()


@pytest.fixture
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture
def rest(instance):
    """Logged in as the administrator."""
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    # the login was the vault's; admind may come later
    until(lambda: r.get("/api/servers?limit=1")[0] != 503,
          10, 0.05, say=lambda: "admind-http does not reach admind")
    return r


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the end of the daemons' logs."""
    report = (yield).get_result()
    i = getattr(item, "funcargs", {}).get("instance")
    if report.failed and i is not None and call.when == "call":
        report.sections.append(("daemons' logs", i.logs()))
