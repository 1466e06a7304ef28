"""Endpoints (0016): patterns in groups, and the names that an endpoint has, as the run-time role."""
import json

import pytest

from database.test_access import as_new, store  # noqa: F401: each test begins without a document
from database.test_database import Tool, one

AND = "\n\f\n"


@pytest.mark.parametrize("allow, deny, permits", [
    (None, None, True), ("*", "", True), ("*" + AND + "a__*", "", True), ("*" + AND + "a__b", "", True),
    ("a__*" + AND + "a__b" + AND + "*", "", True), ("c__*" + AND + "*", "", False), ("*" + AND + "c__*", "", False),
    ("" + AND + "*", "", False), ("*" + AND + "", "", False), ("", "", False), ("*" + AND + AND + "*", "", False),
    ("*" + AND + "*", "a__b", False), ("*" + AND + "*", "c__b", True)])
def test_groups_of_patterns(app, allow, deny, permits):
    """A name is in each group, as admind has it (unit/admind/tooldef/test_permit.c)."""
    assert one(app, "SELECT mcpbox.token_permits(%s, %s, 'a__b', 'a', 'b')", allow, deny) == (permits,)


@pytest.mark.parametrize("allow, deny, permits", [
    (None, None, True), ("*" + AND + "a__b", "", True), ("*" + AND + "c__b", "", False), ("a__*" + AND + "*", "", True),
    ("" + AND + "*", "", False), ("", "", False), ("*" + AND + "a__*", "a__*", False)])
def test_servers_by_groups(app, allow, deny, permits):
    assert one(app, "SELECT mcpbox.token_permits_server(%s, %s, 'a')", allow, deny) == (permits,)


def test_names_without_and_with_a_document(app):
    said = "SELECT mcpbox.manage_list_endpoints(NULL, NULL)"
    assert json.loads(one(app, said)[0]) == {"endpoints": [], "total": 0}
    store(app, json.dumps({"endpoints": [
        {"name": "home", "allow": ["x__*"], "rename": [{"tool": "x__y", "as": "y"}], "listeners": ["local"]},
        {"name": "all", "allow": [], "mode": "search"}]}))
    got = json.loads(one(app, said)[0])
    assert [e["name"] for e in got["endpoints"]] == ["all", "home"] and got["total"] == 2
    home = got["endpoints"][1]
    assert home["missing"] == ["x__y"] and home["tools"] == [] and home["listeners"] == ["local"]
    assert got["endpoints"][0]["mode"] == "search" and got["endpoints"][0]["listeners"] == ["local", "tunnel"]


def test_a_limited_reader_hears_of_no_other_name(app):
    """mcpbox_list_endpoints by a token that permits one server."""
    mine, other = Tool(app).approve(), Tool(app).approve()
    names = [one(app, "SELECT exposed_name FROM mcpbox.tool_names WHERE tool_id = %s", t.id)[0] for t in (mine, other)]
    gone = Tool(app)        # with a name, and no version that serves
    gone_name, = one(app, "SELECT exposed_name FROM mcpbox.tool_names WHERE tool_id = %s", gone.id)
    said = "SELECT mcpbox.manage_list_endpoints(%s, %s)"
    store(app, json.dumps({"endpoints": [
        {"name": "both", "allow": names},
        {"name": "others", "allow": [names[1]]},
        {"name": "lost", "allow": ["*"], "rename": [{"tool": gone_name, "as": "z"}, {"tool": "never__was", "as": "y"}]},
        {"name": "nothing", "allow": []}]}))
    every = {e["name"]: e for e in json.loads(one(app, said, None, None)[0])["endpoints"]}
    assert sorted(every) == ["both", "lost", "nothing", "others"]
    assert sorted(every["both"]["tools"]) == sorted(names)
    assert every["lost"]["missing"] == [gone_name, "never__was"]
    got = json.loads(one(app, said, names[0], "")[0])
    assert [(e["name"], e["tools"], e["tools_total"], e["missing"]) for e in got["endpoints"]] == [
        ("both", names[:1], 1, []), ("lost", names[:1], 1, [])] and got["total"] == 2
    got = json.loads(one(app, said, gone_name, "")[0])
    assert [(e["name"], e["tools"], e["missing"]) for e in got["endpoints"]] == [("lost", [], [gone_name])]
    assert json.loads(one(app, said, "*", gone_name)[0])["total"] == 3


def test_a_task_that_is_not_there(app):
    assert one(app, "SELECT mcpbox.task_permits(gen_random_uuid(), '*', '')") == (False,)
