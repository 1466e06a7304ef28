"""What tests of the network share. Nothing here reaches the network that the
machine is on: each module has a network namespace, in which addresses that look
public (harness/net/netns.py) are on lo, and a name server that lies on demand.

    ns        the namespace, of the module
    inside    the test's own thread is in it, for the module's time
    dns       the name server; tests fill dns.zone
    egress    mcpbox-sandboxd-egress alone, its peers played (harness/played/egress.py)
    instance  a whole suite in there; settings as of the module's INSTANCE_SETS
"""
import pytest

from harness.instance import Instance
from harness.played import dns as server
from harness.played.egress import DNS, Egress, namespace


@pytest.fixture(scope="module")
def ns(request):
    """With the module's ADDRESSES besides."""
    with namespace(getattr(request.module, "ADDRESSES", ())) as n:
        yield n


@pytest.fixture(scope="module")
def inside(ns):
    with ns.entered():
        yield ns


@pytest.fixture(scope="module")
def dns(ns):
    with server.Server(DNS, ns=ns) as s:
        yield s


@pytest.fixture(scope="module")
def egress(ns, dns, request):
    """With the module's EGRESS_SETS besides."""
    with Egress(ns, getattr(request.module, "EGRESS_SETS", ())) as e:
        yield e
        print(e.log()[-9000:])
        assert e.process.poll() is None, "egress ended"


@pytest.fixture(scope="module")
def instance(inside, dns, request):
    sets = (f"egress:dns_servers={DNS}", *getattr(request.module, "INSTANCE_SETS", ()))
    i = Instance(sets=sets)
    yield i
    i.close()
