"""No version holds code that reads differently than it runs, whoever makes it: as SQL.
The same characters as tests/unit/common/version/test_version_gate.c."""
import hashlib
import uuid

import psycopg
import pytest

from database.test_database import Tool, one, server
from database.test_transfer import export, finish, put

REFUSED = [*range(1, 9), 0xb, 0xc, 0xd, *range(0xe, 0x20), *range(0x7f, 0xa0), 0x2028, 0x2029, 0xfeff]
HIDES = "# each record ends with\r    return 666\n"


def code(c):
    return f"def main():\n\tx = 1  # é\n    a{chr(c)}b\n".encode()


def test_characters(app):
    t = Tool(app)
    for c in REFUSED:
        with pytest.raises(psycopg.Error) as e:
            t.update(code=code(c))
        assert f"invalid_arguments: code: character 6 of line 3 is U+{c:04X}," in str(e.value), c
    for c in (9, 0x20, 0x7e, 0xa0, 0xe9, 0x202e, 0x200b, 0x1f600, 0x2027, 0x202a, 0xfefe):
        t.update(code=code(c))
    with pytest.raises(psycopg.Error, match="character 1 of line 1 is U[+]FEFF"):
        t.update(code="\ufeffdef main(): pass".encode())


@pytest.fixture
def stored(app, owner):
    """A tool whose first version is from before the rule; its second is not."""
    t = Tool(app)
    owner.execute("ALTER TABLE mcpbox.tool_versions DISABLE TRIGGER lines")
    t.update(code=("def main():\n    " + HIDES).encode())
    owner.execute("ALTER TABLE mcpbox.tool_versions ENABLE TRIGGER lines")
    return t


def test_what_is_stored_stays_and_does_not_come_back(app, stored):
    old = stored.version
    assert stored.state() == "draft"
    stored.update(code=b"def main(): pass\n")
    with pytest.raises(psycopg.Error, match="invalid_arguments: code: character 28 of line 2 is U[+]000D"):
        one(app, "SELECT mcpbox.manage_rollback(%s, %s, 2::int8, 'local')", uuid.uuid4(), stored.id)
    assert stored.state(old) == "draft"


def test_an_import_leaves_it_out_and_says_why(app, stored):
    text, _ = export(app, stored.server_name)
    said = finish(app, put(app, text), text)
    assert said["objects"] == 0 and said["skipped_count"] == 1
    assert "character 28 of line 2 is U+000D" in said["skipped"][0]["why"]
