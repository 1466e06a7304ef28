"""A migrated schema of each module's own, and connections as the run-time role
and as the owner."""
import pytest

from database.test_database import APP, OWNER, Schema


@pytest.fixture(scope="module")
def schema():
    s = Schema()
    r = s.migrate()
    assert r.returncode == 0, r.stderr
    yield s
    s.close()


@pytest.fixture
def app(schema):
    with schema.pg.connect(APP) as c:
        yield c


@pytest.fixture
def owner(schema):
    with schema.pg.connect(OWNER) as c:
        yield c
