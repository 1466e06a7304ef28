"""Servers, versions and sources over their life (0010): what no function and no
person at psql may do, and what the functions keep to."""
import json
import threading
import uuid

import psycopg
import pytest

from database.test_database import APP, Tool, guarded, one, refused, server
from harness.work import pages


def act(owner, name, subject, body=None, seen=None, actor="admin"):
    return json.loads(one(owner, "SELECT coalesce(mcpbox.admin_act(%s, %s, 'administrator', %s, %s, '', %s), '{}')",
                          name, actor, str(subject), seen, json.dumps(body or {}))[0])


def versions(c, tool):
    return [r[0] for r in c.execute("SELECT version_no FROM mcpbox.tool_versions WHERE tool_id = %s ORDER BY 1",
                                    (tool.id,)).fetchall()]


# --- servers ------------------------------------------------------------------


def test_a_deleted_server_lets_go_of_all(app, owner):
    t = Tool(app).approve()
    other = Tool(app, "other", server=(t.server, t.server_name))
    other.publish()
    app.execute("SELECT mcpbox.manage_create_secret(%s, 'KEY', 'd', 'local')", (t.server,))
    owner.execute("SELECT mcpbox.secret_store(%s, 'KEY', 'root', 'sealed'::bytea)", (t.server_name,))
    app.execute("SELECT mcpbox.manage_add_source(%s, %s, 'a', 'https://a.example/', 'bearer', 'KEY', NULL, NULL, 'x')",
                (uuid.uuid4(), t.server))
    before = one(app, "SELECT revision FROM mcpbox.catalogue")[0]
    said = json.loads(one(app, "SELECT mcpbox.manage_delete_server(%s, 'local')", t.server)[0])
    # two tools and the source, which is an object, too (0021)
    assert said["deleted_tools"] == 3 and said["name"] == t.server_name
    assert one(app, "SELECT status, name, deleted_by FROM mcpbox.servers WHERE id = %s", t.server) == (
        "stopped", f"{t.server_name}@{t.server}", "local")
    assert t.state() == "revoked" and other.state() == "rejected" and t.serving() is None
    assert one(app, "SELECT count(*) FROM mcpbox.tools WHERE server_id = %s AND deleted_at IS NULL", t.server) == (0,)
    for table, column in (("server_secrets", "server_id"), ("external_sources", "server_id"), ("callable", "tool_id")):
        assert one(owner, f"SELECT count(*) FROM mcpbox.{table} WHERE {column} IN (%s, %s)", t.server, t.id) == (0,)
    assert one(app, "SELECT count(*) FROM mcpbox.tool_names WHERE tool_id IN (%s, %s)", t.id, other.id) == (0,)
    assert one(app, "SELECT count(*) FROM mcpbox.approval_requests WHERE server_id = %s AND state = 'pending'",
               t.server) == (0,)
    assert one(app, "SELECT revision FROM mcpbox.catalogue")[0] > before
    # the same name again is another server, with nothing of the old one
    again, _ = server(app, t.server_name)
    assert again != t.server
    assert one(app, "SELECT mcpbox.manage_list_secrets(%s, 1, 10)::json ->> 'total'", again)[0] == "0"
    # and no row of the old one comes back
    for attack in ("UPDATE mcpbox.servers SET status = 'running' WHERE id = %s",
                   "UPDATE mcpbox.servers SET deleted_at = NULL, deleted_by = NULL WHERE id = %s",
                   "UPDATE mcpbox.servers SET name = 'back' WHERE id = %s", "DELETE FROM mcpbox.servers WHERE id = %s",
                   "UPDATE mcpbox.tools SET deleted_at = NULL, deleted_by = NULL WHERE server_id = %s",
                   "UPDATE mcpbox.tools SET enabled = true WHERE server_id = %s"):
        guarded(owner, attack, t.server)
    refused(app, "not_found", "SELECT mcpbox.manage_delete_server(%s, 'local')", t.server)
    refused(app, "not_found", "SELECT mcpbox.set_server_status(%s, 'running', 'x')", t.server)
    refused(app, "not_found", "SELECT mcpbox.manage_update_server(%s, 'd', 'x')", t.server)
    refused(app, "not_found", "SELECT mcpbox.manage_create_secret(%s, 'B', '', 'x')", t.server)
    with pytest.raises(psycopg.Error):
        Tool(app, "late", server=(t.server, t.server_name))
    guarded(owner, "INSERT INTO mcpbox.approval_requests (id, kind, subject, hash, server_id, requested_by)"
            " VALUES (gen_random_uuid(), 'network', gen_random_uuid(), sha256(''), %s, 'x')", t.server)


def test_a_live_server_is_not_called_deleted(owner, app):
    i, name = server(app)
    guarded(owner, "UPDATE mcpbox.servers SET name = name || '@' || id WHERE id = %s", i)
    guarded(owner, "UPDATE mcpbox.servers SET deleted_at = now() WHERE id = %s", i)
    Tool(app, server=(i, name))
    guarded(owner, "UPDATE mcpbox.servers SET status = 'stopped', deleted_at = now(), deleted_by = 'x',"
            " name = name || '@' || id WHERE id = %s", i)
    guarded(owner, "TRUNCATE mcpbox.servers CASCADE")


def test_a_tool_made_while_its_server_goes(schema, app):
    """Whichever commits first: no live tool on a deleted server, and no deadlock."""
    for _ in range(5):
        i, name = server(app)
        errors = []

        def make(n):
            with schema.pg.connect(APP) as c:
                try:
                    Tool(c, f"t{n}", server=(i, name)).approve()
                except psycopg.Error as e:
                    errors.append(e.diag.sqlstate)
        threads = [threading.Thread(target=make, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        with schema.pg.connect(APP) as c:
            c.execute("SELECT mcpbox.manage_delete_server(%s, 'local')", (i,))
        for t in threads:
            t.join()
        assert set(errors) <= {"MB001"}, errors
        assert one(app, "SELECT count(*) FROM mcpbox.tools WHERE server_id = %s AND deleted_at IS NULL", i) == (0,)
        assert one(app, "SELECT count(*) FROM mcpbox.tool_versions WHERE server_id = %s AND state IN "
                   "('approved', 'pending_review')", i) == (0,)


@pytest.mark.large
def test_a_thousand_tools_go_with_their_server(app):
    """A page of them costs what it costs with a hundred; all go for a few times what
    one of a hundred costs (a look at all of them for each would be ten times that)."""
    looked, gone = {}, {}
    for count in (100, 1000):
        i, name = server(app)
        for n in range(count):
            Tool(app, f"t{n}", server=(i, name))
        said = json.loads(one(app, "SELECT mcpbox.manage_get_server(%s, 30000)", i)[0])
        assert said["tool_count"] == count and len(said["tools"]) == 50
        looked[count] = pages(app, "SELECT mcpbox.manage_get_server(%s, 30000)", i)
        with app.transaction(force_rollback=True):
            gone[count] = pages(app, "SELECT mcpbox.manage_delete_server(%s, 'local')", i) / count
        assert json.loads(one(app, "SELECT mcpbox.manage_delete_server(%s, 'local')", i)[0])["deleted_tools"] == count
    print(looked, gone)
    assert looked[1000] < 4 * looked[100] and gone[1000] < 3 * gone[100], (looked, gone)


# --- versions -----------------------------------------------------------------


def test_old_drafts_go_and_what_counts_stays(app, owner):
    t = Tool(app).approve()                     # 1: approved
    approved = t.version
    t.update(code="def main(): return 2")       # 2: rejected by a person
    t.publish()
    t.decide(approved=False)
    t.update(code="def main(): return 3")       # 3: superseded by the next
    t.publish()
    t.update(code="def main(): return 4")       # 4: waits
    t.publish()
    for n in range(5, 40):
        t.update(code=f"def main(): return {n}")
    assert versions(app, t) == list(range(1, 40))
    assert act(owner, "versions_prune", t.id, {"keep": 10}) == {
        "tool_id": str(t.id), "pruned": 26, "total_versions": 13}
    assert versions(app, t) == [1, 2, 4] + list(range(30, 40))
    assert t.serving() == approved
    assert act(owner, "versions_prune", t.id, {"keep": 10})["pruned"] == 0
    # a number is never given again
    t.update(code="def main(): return 40")
    assert versions(app, t)[-1] == 40
    assert one(owner, "SELECT detail::json ->> 'versions' FROM mcpbox.audit_log WHERE action = 'versions_pruned'"
               " ORDER BY seq DESC LIMIT 1")[0] == "26"


def test_each_new_version_prunes(app, owner):
    owner.execute("SELECT mcpbox.setting_store('versions_kept', '10', 'root')")
    try:
        t = Tool(app)
        for n in range(30):
            t.update(code=f"def main(): return {n}")
        assert versions(app, t) == list(range(22, 32))
    finally:
        owner.execute("DELETE FROM mcpbox.settings WHERE key = 'versions_kept'")
    with pytest.raises(psycopg.Error):
        owner.execute("SELECT mcpbox.setting_store('versions_kept', '9', 'root')")


def test_the_floor_holds_for_everybody(app, owner):
    t = Tool(app).approve()
    first = t.version
    second = t.update(code="def main(): return 2")
    t.publish()
    third = t.update(code="def main(): return 3")
    for v in (first, second, third):    # approved, waiting, newest
        guarded(owner, "DELETE FROM mcpbox.tool_versions WHERE id = %s", v)
    app_made = t.update(code="def main(): return 4")
    owner.execute("DELETE FROM mcpbox.tool_versions WHERE id = %s", (third,))
    guarded(owner, "DELETE FROM mcpbox.tool_versions WHERE id = %s", app_made)
    t2 = Tool(app).approve()
    owner.execute("SELECT mcpbox.revoke_version(%s, 'bad', 'root')", (t2.version,))
    t2.update(code="def main(): return 5")
    guarded(owner, "DELETE FROM mcpbox.tool_versions WHERE tool_id = %s AND version_no = 1", t2.id)
    guarded(owner, "UPDATE mcpbox.tool_versions SET change_source = 'manual' WHERE id = %s", first)


def test_going_back_needs_review_again(app, owner):
    t = Tool(app).approve()
    first = t.version
    t.update(code="def main(): return 2")
    made = json.loads(one(app, "SELECT mcpbox.manage_rollback(%s, %s, 1, 'local')", uuid.uuid4(), t.id)[0])
    assert made["current_version"] == 3 and made["approval_status"] == "draft"
    new = one(app, "SELECT id, state, change_source, hash, created_by FROM mcpbox.tool_versions "
              "WHERE tool_id = %s AND version_no = 3", t.id)
    assert new[1:3] == ("draft", "rollback") and new[4] == "local"
    assert new[3] == one(app, "SELECT hash FROM mcpbox.tool_versions WHERE id = %s", first)[0]
    # the old seal is over the very same bytes, and still not over this version
    guarded(owner, "UPDATE mcpbox.tool_versions SET state = 'approved' WHERE id = %s", new[0])
    guarded(owner, "UPDATE mcpbox.tools SET serving_version = %s WHERE id = %s", new[0], t.id)
    assert t.serving() == first
    owner.execute("SELECT mcpbox.revoke_version(%s, 'bad', 'root')", (first,))
    assert t.serving() is None
    refused(app, "conflict", "SELECT mcpbox.manage_rollback(%s, %s, 1, 'x')", uuid.uuid4(), t.id)
    refused(app, "not_found", "SELECT mcpbox.manage_rollback(%s, %s, 9, 'x')", uuid.uuid4(), t.id)
    refused(app, "not_found", "SELECT mcpbox.manage_rollback(%s, %s, 1, 'x')", uuid.uuid4(), uuid.uuid4())


def test_going_back_across_another_way_of_naming(app, owner):
    t = Tool(app)
    t.update(code="def main(): return 2")
    owner.execute("SELECT mcpbox.set_server_expose(%s, 'bare', 'root')", (t.server_name,))
    refused(app, "conflict", "SELECT mcpbox.manage_rollback(%s, %s, 1, 'x')", uuid.uuid4(), t.id)


# --- sources ------------------------------------------------------------------


@pytest.mark.parametrize("url", ["https://mcp.example.org/mcp", "http://mcp.example.org", "https://a.example:8443/x?y=1",
                                 "https://192.0.2.7/", "https://10.1.2.3:8080/mcp", "https://[2001:db8::1]:443/",
                                 "https://a-b.c_d.example/%20", "https://127.0.0.1/", "http://127.0.0.1:8080/mcp",
                                 "http://127.3.2.1:1/", "https://[::1]/", "http://[::1]:3000/mcp"])
def test_urls_that_are_taken(owner, url):
    assert one(owner, "SELECT mcpbox.source_url_wrong(%s)", url)[0] is None


@pytest.mark.parametrize("url", [
    "", "https://", "ftp://a.example/", "HTTPS://a.example/", "https://u@a.example/", "https://u:p@a.example/",
    "https://a.example/#f", "https://a.example/ b", "https://a.example\\@b.example/", "https://a.example/\x01",
    "https://a.example:0/", "https://a.example:65536/", "https://a.example:/", "https://-a.example/",
    "https://a..example/", "https://.a.example/", "https://" + "a" * 64 + ".example/",
    "https://localhost/", "https://LOCALHOST./", "https://a.localhost/", "https://x.local/", "https://m.internal/",
    "https://127.0.0.1./", "https://0.0.0.0/", "https://127.1/", "https://2130706433/",
    "https://0177.0.0.1/", "https://0x7f000001/", "https://a.0x7f/", "https://a.1/", "https://256.1.1.1/",
    "https://169.254.169.254/", "https://224.0.0.1/", "https://255.255.255.255/", "https://[::]/",
    "https://[fe80::1]/", "https://[::ffff:127.0.0.1]/", "https://[ff02::1]/", "https://[fd00:ec2::254]/",
    "https://[1::2::3]/", "https://[zz]/", "https://bücher.example/", "https://a.example/ü"])
def test_urls_that_are_not(owner, url):
    assert one(owner, "SELECT mcpbox.source_url_wrong(%s)", url)[0] is not None, url


def test_a_source_names_a_secret_and_holds_none(app, owner):
    i, _ = server(app)

    def add(*args):
        return ("SELECT mcpbox.manage_add_source(%s, %s, %s, 'https://a.example/', %s, %s, %s, NULL, 'x')",
                uuid.uuid4(), i, *args)
    refused(app, "not_found", *add("a", "bearer", "NONE", None))
    refused(app, "invalid_arguments", *add("a", "bearer", None, None))
    refused(app, "invalid_arguments", *add("a", "none", "KEY", None))
    refused(app, "invalid_arguments", *add("a", "header", "KEY", "Transfer-Encoding"))
    refused(app, "invalid_arguments", *add("a", "header", "KEY", "Mcp-Session-Id"))
    refused(app, "invalid_arguments", *add("A b", "none", None, None))
    app.execute("SELECT mcpbox.manage_create_secret(%s, 'KEY', '', 'x')", (i,))
    one(app, *add("a", "header", "KEY", "X-Api-Key"))
    refused(app, "conflict", *add("a", "none", None, None))
    for n in range(99):
        one(app, *add(f"n{n}", "none", None, None))
    refused(app, "limit", *add("last", "none", None, None))


# --- searching ----------------------------------------------------------------


def test_no_word_is_an_operator(app):
    for words in ("'", "a & b", "!a", "(((", "a:*", "\\", "%", "a' | 'b", "<->", " ", "é", "x" * 200):
        app.execute("SELECT * FROM mcpbox.search_tools(%s, 10)", (words,)).fetchall()


def test_search_ranks_names_first(app):
    t = Tool(app, "paint_house", description="About something.").approve()
    u = Tool(app, "about_it", description="It can paint.").approve()
    found = [r[0] for r in app.execute("SELECT exposed_name FROM mcpbox.search_tools('paint', 50)").fetchall()]
    assert found.index(f"{t.server_name}__paint_house") < found.index(f"{u.server_name}__about_it")
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (t.id,))
    found = [r[0] for r in app.execute("SELECT exposed_name FROM mcpbox.search_tools('paint', 50)").fetchall()]
    assert f"{t.server_name}__paint_house" not in found


def test_search_finds_what_serves_among_many_versions(app):
    """More approved versions have the word than are ranked; of each tool one serves."""
    here = server(app)
    tools = [Tool(app, f"bird_{n}", server=here, description="Watches a heron.").approve() for n in range(9)]
    for t in tools:
        for n in range(30):
            t.update(description=f"Watches heron {n}.")
            t.approve()
    find = "SELECT exposed_name, description FROM mcpbox.search_tools('heron', %s)"
    assert sorted(app.execute(find, (9,)).fetchall()) == sorted(
        (f"{here[1]}__{t.name}", "Watches heron 29.") for t in tools)
    assert len(app.execute(find, (3,)).fetchall()) == 3
    app.execute("SELECT mcpbox.set_tool_enabled(%s, false, 'x')", (tools[8].id,))
    assert sorted(r[0] for r in app.execute(find, (9,))) == sorted(f"{here[1]}__{t.name}" for t in tools[:8])


# --- what administrators write of a version -----------------------------------


def test_one_field_of_a_pre_image(app, owner):
    t = Tool(app)

    def fields(pre):
        return {n: one(owner, "SELECT mcpbox.version_text(%s, %s)", pre, n)[0] for n in (4, 5, 6, 7, 8, 14, 15, 40)}

    def put(pre, tag, value):
        return one(owner, "SELECT mcpbox.version_with(%s, %s, %s)", pre, tag, value)[0]
    was = fields(t.pre)
    for tag, value in ((7, "A title \u20ac"), (8, ""), (8, "x" * 300), (15, "def main(): return 7"), (40, "behind all")):
        assert fields(put(t.pre, tag, value)) == {**was, tag: value}
        assert put(put(t.pre, tag, value), tag, was[tag]) == t.pre
    assert put(t.pre, 7, None) == t.pre
    for bad in (b"", b"mcpbox version 1", t.pre[:-1], t.pre + b"\x01"):
        with pytest.raises(psycopg.Error):
            put(bad, 7, "x")


def test_a_draft_by_an_administrator(app, owner):
    t = Tool(app).approve()
    before = t.serving()
    said = act(owner, "tool_update", f"{t.server_name}__greet", {"name": "hello", "description": "d"})
    assert said["tool"]["version"] == 2 and said["tool"]["approval_status"] == "draft"
    assert said["versions"][0]["change_source"] == "manual" and said["versions"][0]["created_by"] == "admin"
    assert t.serving() == before
    assert one(app, "SELECT name FROM mcpbox.tools WHERE id = %s", t.id) == ("hello",)
    other = Tool(app, "taken", server=(t.server, t.server_name))
    for body in ({"name": "taken"}, {"name": "mcpbox__x"}, {"name": "A"}, {}):
        with pytest.raises(psycopg.Error) as e:
            act(owner, "tool_update", t.id, body)
        assert e.value.diag.sqlstate == "MB001", body
    assert other.state() == "draft"
    app.execute("SELECT mcpbox.delete_object(%s, 'tool', 'x')", (t.id,))
    with pytest.raises(psycopg.Error):
        act(owner, "tool_update", t.id, {"title": "late"})
