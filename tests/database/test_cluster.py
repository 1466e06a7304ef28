"""A database from nothing: initdb, roles, all migrations. Other tests copy one that was
made so (harness/template.py), so it is compared with such a copy."""
import subprocess

import pytest

from database.test_database import OWNER, Schema


@pytest.fixture(scope="module")
def empty():
    s = Schema(empty=True)
    yield s
    s.close()


def dump(pg, *options):
    """The cluster's text without what differs in each dump: a key of pg_dump's own."""
    text = subprocess.run([pg.bin / "pg_dumpall", "-h", pg.dir, "-p", str(pg.port), "-U", "postgres", *options],
                          check=True, capture_output=True, text=True).stdout
    return [line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def test_every_migration_is_applied_to_an_empty_database(empty):
    r = empty.migrate()
    assert r.returncode == 0 and "migrated" in r.stderr, r.stderr
    with empty.pg.connect(OWNER) as c:
        assert c.execute("SELECT count(*) > 0 FROM mcpbox.schema_migrations").fetchone()[0]


def test_a_copy_has_the_same_roles_and_the_same_schema(empty, schema):
    ours, theirs = dump(empty.pg, "--schema-only"), dump(schema.pg, "--schema-only")
    assert any(line.startswith("CREATE FUNCTION mcpbox.") for line in ours)
    assert ours == theirs
