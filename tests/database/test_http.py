"""sql/schema/versions.sql: tools of kind http that were imported, and the one name of
the prefix web_ that may be taken."""
import json
import uuid

import psycopg
import pytest

from database.test_database import DENIED, Tool, one, preimage, refused, server
from harness.tlv import tlv

SPEC = '{"method":"GET","url":"https://api.example/"}'
IMPORT = "SELECT mcpbox.import_http_tools(%s, %s::uuid[], %s::uuid[], %s::bytea[], %s, 'local')"


def declared(s, name, code=None, requires=("api.example:443",)):
    fields = [(1, 1), (2, s[0].bytes), (3, uuid.uuid4().bytes), (4, s[1]), (5, name), (6, f"{s[1]}__{name}"), (8, "x"),
              (11, b'{"type":"object"}'), (14, "http")] + ([(15, code)] if code else []) + [(16, SPEC)]
    return b"mcpbox version 1\0" + tlv(*fields, *[(21, r) for r in requires])


def imported(c, s, *pre, skipped=None):
    ids = [[uuid.uuid4() for _ in pre] for _ in range(2)]
    return json.loads(one(c, IMPORT, s[0], *ids, list(pre), skipped)[0])


def test_each_is_a_request(app):
    s = server(app)
    got = imported(app, s, declared(s, "a"), declared(s, "b"), skipped=["get /x: why"])
    assert [t["name"] for t in got["tools"]] == ["a", "b"] and got["count"] == 2 and got["skipped"] == ["get /x: why"]
    for t in got["tools"]:
        assert one(app, "SELECT kind, state, subject IS NOT NULL FROM mcpbox.approval_requests WHERE id = %s",
                   t["request_id"]) == ("tool", "pending", True)
        assert one(app, "SELECT state, change_source FROM mcpbox.tool_versions WHERE tool_id = %s", t["id"]) == (
            "pending_review", "import")
    action, detail = one(app, "SELECT action, detail FROM mcpbox.audit_log WHERE subject = %s ORDER BY seq DESC LIMIT 1",
                         "server " + s[1])
    assert action == "openapi_imported" and json.loads(detail) == {"tools": 2, "skipped": 1}
    assert imported(app, s)["count"] == 0


def test_what_cannot_stand_is_left_out_alone(app):
    s = server(app)
    Tool(app, "taken", server=s)
    got = imported(app, s, declared(s, "taken"), declared(s, "free"), declared(s, "both", code=b"def main(): pass"),
                   declared(s, "nowhere", requires=[]))
    assert [t["name"] for t in got["tools"]] == ["free"]
    assert [x.split(":")[0] for x in got["skipped"]] == ["taken", "both", "nowhere"]


def test_nothing_else_comes_this_way(app):
    s, other = server(app), server(app)
    for pre in (declared(other, "a"), preimage(s[0].bytes, uuid.uuid4().bytes, s[1], "python")):
        refused(app, "invalid_params", IMPORT, s[0], [uuid.uuid4()], [uuid.uuid4()], [pre], None)
    refused(app, "not_found", IMPORT, uuid.uuid4(), [], [], [], None)
    assert one(app, "SELECT count(*) FROM mcpbox.tools WHERE server_id = %s", s[0])[0] == 0


def test_web_fetch_is_the_one_of_its_prefix(app, owner):
    s = server(app)
    owner.execute("UPDATE mcpbox.servers SET expose = 'bare' WHERE id = %s", (s[0],))

    def make(name):
        app.execute("SELECT mcpbox.create_tool(%s, %s, 'x')", (uuid.uuid4(), preimage(
            s[0].bytes, uuid.uuid4().bytes, s[1], name, exposed=name)))
    make("web_fetch")
    for name in ("web_search", "web_fetch_2", "mcpbox_web_fetch", "sandbox_x"):
        with pytest.raises(psycopg.Error, match=f"conflict: the name {name} is reserved"):
            make(name)
    with pytest.raises(DENIED):
        app.execute("UPDATE mcpbox.servers SET expose = 'bare'")
