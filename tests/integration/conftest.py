"""What tests of admind alone share; whose peers are played (harness/played/admind.py)."""
import pytest

from harness.played.admind import Admind


@pytest.fixture(scope="module")
def a(request):
    """With the admind.conf lines of the module's ADMIND_CONF, else without
    breakers: tests loop and fail on purpose."""
    x = Admind(settings=getattr(request.module, "ADMIND_CONF", ("breakers no",)))
    try:
        x.all_up()
        yield x
        print(x.logs()[-6000:])
    finally:
        x.close()


@pytest.fixture
def honest(a):
    """For usefixtures: after each test the peers are played honestly again."""
    yield
    a.on_check = lambda m: ("CHECK_OK", {})
    a.on_vault, a.on_sandbox = a.honest_vault, a.honest_sandbox


@pytest.fixture
def gw(a):
    with a.gateway() as g:
        yield g
