"""sql/schema/approvals.sql: grants, first yeses, policies, attacked as in
test_database.py."""
import hashlib
import json
import threading
import uuid

import psycopg
import pytest

from database.test_database import APP, Tool, blocked, guarded, one, refused, server
from database.test_limits_modules import add, grant, lock, module, request
from harness.tlv import tlv

MAGIC = b"mcpbox grant 1\0"


def fields(pre):
    assert pre.startswith(MAGIC)
    body, out = pre[len(MAGIC):], []
    while body:
        n = int.from_bytes(body[1:5], "big")
        out.append((body[0], body[5:5 + n]))
        body = body[5 + n:]
    return out


def network(c, tool, host="api.example.org", port=443, tools=None, person=False):
    r = uuid.uuid4()
    one(c, "SELECT mcpbox.request_network(%s, %s, NULL, %s, %s, %s, 'to look', 'local', %s)",
        r, uuid.uuid4(), tools or [tool.id], host, port, person)
    return r


def state(c, r):
    return one(c, "SELECT state FROM mcpbox.approval_requests WHERE id = %s", r)[0]


def content(c, r):
    pre, digest = one(c, "SELECT g.preimage, a.hash FROM mcpbox.grant_requests g "
                      "JOIN mcpbox.approval_requests a USING (id) WHERE a.id = %s", r)
    assert hashlib.sha256(pre).digest() == digest
    return pre, digest


def decide(c, r, approved=True, digest=None, actor="root", seal=b"seal"):
    c.execute("SELECT mcpbox.decide_approval(%s, %s, %s, %s, now(), 'why', %s)",
              (r, approved, digest or content(c, r)[1], actor, seal))


def pending(c, subject_of):
    """The request that stands now for the same wish."""
    return one(c, "SELECT b.id FROM mcpbox.approval_requests a JOIN mcpbox.approval_requests b "
               "ON b.subject = a.subject AND b.kind = a.kind WHERE a.id = %s "
               "AND b.state = 'pending'", subject_of)[0]


def serve(c, tool, *requires):
    version = add(c, tool, *[(21, h) for h in sorted(requires)])
    tool.version = version
    tool.request = uuid.uuid4()
    c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'local')",
              (tool.request, uuid.uuid4(), tool.id))
    tool.hash = one(c, "SELECT hash FROM mcpbox.tool_versions WHERE id = %s", version)[0]
    tool.decide()
    return tool.hash


def callable_(owner, tool):
    epoch = uuid.uuid4()
    owner.execute("SELECT mcpbox.epoch_begin(%s, %s, 'sandboxd')", (epoch, "n" + epoch.hex))
    owner.commit() if not owner.autocommit else None
    return one(owner, "SELECT count(*) FROM mcpbox.callable WHERE tool_id = %s AND epoch = %s",
               tool.id, epoch)[0] == 1


def test_a_request_for_the_version_that_was_read(app):
    ask = "SELECT version_no, exposed_name FROM mcpbox.request_publish_seen(%s, %s, %s, 'why', 'anna', %s)"
    t = Tool(app)
    read = t.hash
    t.update(code="def main(): return 'swapped'")
    # A client drafted in between: nothing of the request is left.
    for wrong in (read, b"", None):
        refused(app, "hash_mismatch", ask, uuid.uuid4(), uuid.uuid4(), t.id, wrong)
    assert t.state() == "draft"
    assert one(app, "SELECT count(*) FROM mcpbox.approval_requests WHERE tool_id = %s", t.id)[0] == 0
    t.request = uuid.uuid4()
    assert one(app, ask, t.request, uuid.uuid4(), t.id, t.hash) == (2, f"{t.server_name}__{t.name}")
    assert one(app, "SELECT requested_by, notes, hash FROM mcpbox.approval_requests WHERE id = %s", t.request) == (
        "anna", "why", t.hash)
    t.decide(approved=False)
    # A rejected version is asked for again under the next number.
    assert one(app, ask, uuid.uuid4(), uuid.uuid4(), t.id, t.hash)[0] == 3
    refused(app, "not_found", ask, uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), t.hash)


# --- the bytes --------------------------------------------------------------


def test_the_bytes_of_a_host(app):
    t = Tool(app)
    r = network(app, t, "API.Example.org.", 8443)
    pre, _ = content(app, r)
    assert fields(pre) == fields(MAGIC + tlv(
        (1, 2), (2, r.bytes), (3, t.server.bytes), (4, t.server_name), (12, "tcp"),
        (13, "api.example.org"), (14, 8443)))
    need = serve(app, Tool(app, "other", server=(t.server, t.server_name)), "api.example.org")
    # what it touches is part of it: another request
    assert state(app, r) == "superseded"
    r2 = pending(app, r)
    assert fields(content(app, r2)[0])[-1] == (15, need)
    refused(app, "already_decided", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 's')",
            r, hashlib.sha256(pre).digest())
    decide(app, r2)
    assert state(app, r2) == "approved"


def test_the_bytes_of_a_module(app):
    t, name = Tool(app), "m" + uuid.uuid4().hex[:8]
    r = request(app, t, name)
    tags = [tag for tag, _ in fields(content(app, r)[0])]
    assert tags == [1, 2, 3, 4, 5, 6, 7]        # nobody recorded it yet
    refused(app, "missing_grant", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 's')",
            r, content(app, r)[1])
    module(app, name)
    assert state(app, r) == "superseded"
    r = pending(app, r)
    f = dict(fields(content(app, r)[0]))
    assert (f[7], f[8]) == (name.encode(), b"1.0") and len(f[9]) == 32
    decide(app, r)
    assert one(app, "SELECT request_id FROM mcpbox.tool_modules WHERE tool_id = %s AND name = %s",
               t.id, name)[0] == r
    add(app, t, (17, lock(name)))               # and so it may be named


def test_a_withdrawn_module_is_another_request(app):
    t, name = Tool(app), "m" + uuid.uuid4().hex[:8]
    module(app, name)
    r = request(app, t, name)
    digest = content(app, r)[1]
    app.execute("SELECT mcpbox.withdraw_module(%s, '1.0', 'root')", (name,))
    assert state(app, r) == "superseded"
    refused(app, "already_decided",
            "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 's')", r, digest)


def test_a_module_of_a_later_version_is_another_request(app):
    t, name = Tool(app), "m" + uuid.uuid4().hex[:8]
    module(app, name)
    r = request(app, t, name)
    module(app, name, "2.0")
    fresh = pending(app, r)
    assert fresh != r and dict(fields(content(app, fresh)[0]))[8] == b"2.0"


# --- deciding ---------------------------------------------------------------


def test_no_grant_without_its_request_and_seal(app, owner):
    t = Tool(app)
    r = network(app, t)
    row = "INSERT INTO mcpbox.network_grants (request_id, server_id, proto, host, port, automatic, " \
          "granted_at, granted_by) VALUES (%s, %s, 'tcp', %s, 443, false, now(), 'root')"
    guarded(owner, row, r, t.server, "api.example.org")
    with pytest.raises(psycopg.Error):
        app.execute(row, (r, t.server, "api.example.org"))
    decide(app, r)
    other = network(app, t, "b.example.org")
    decide(app, other)
    guarded(owner, row, other, t.server, "evil.example")
    for attack in ("UPDATE mcpbox.network_grants SET host = '*.example.org' WHERE request_id = %s",
                   "UPDATE mcpbox.network_grants SET port = 0 WHERE request_id = %s",
                   "DELETE FROM mcpbox.network_grants WHERE request_id = %s",
                   "UPDATE mcpbox.grant_requests SET preimage = '' WHERE id = %s",
                   "UPDATE mcpbox.network_requests SET host = 'evil.example' WHERE id = "
                   "(SELECT subject FROM mcpbox.approval_requests WHERE id = %s)"):
        guarded(owner, attack, r)


def test_another_hash_decides_nothing(app):
    t = Tool(app)
    r = network(app, t)
    refused(app, "hash_mismatch", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 's')",
            r, bytes(32))
    decide(app, r)
    refused(app, "already_decided", "SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 's')",
            r, content(app, r)[1])


def test_a_call_needs_its_hosts(app, owner):
    t = Tool(app)
    serve(app, t, "api.example.org:443", "www.example.org")
    assert not callable_(owner, t)
    missing = "SELECT mcpbox.grant_missing(%s, %s, '{}', ARRAY['api.example.org:443', 'www.example.org'])"
    assert "api.example.org:443" in one(app, missing, t.server, t.id)[0]
    decide(app, network(app, t))
    assert not callable_(owner, t) and "www.example.org" in one(app, missing, t.server, t.id)[0]
    assert "mcpbox_request_network_access" in one(app, missing, t.server, t.id)[0]
    r = network(app, t, "www.example.org", 8080)
    decide(app, r)
    assert callable_(owner, t) and one(app, missing, t.server, t.id)[0] is None
    other = Tool(app)                           # another server's grants are its own
    serve(app, other, "api.example.org:443")
    assert not callable_(owner, other)
    act(app, "approval_revoke", str(r), {"reason": "enough"})
    assert not callable_(owner, t)


@pytest.mark.parametrize("host", [
    "", ".", "localhost", "a.localhost", "127.0.0.1", "127.1", "0x7f.1", "2130706433", "0.0.0.0", "::1", "::",
    "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "224.0.0.1", "http://example.org", "example.org/x",
    "exa mple.org", "*.org", "*example.org", "a.*.org", "-a.org", "a-.org", "a..org", "a_b.org",
    "b\u00fccher.example", "example.org\u0000"[:-1] + "\u200b", "192.168.001.1", "1.2.3.4/8", "x" * 64 + ".org",
    "a." * 127 + "org", "user@example.org", "example.org:0", "udp:example.org"])
def test_not_a_host(app, host):
    refused(app, "invalid_arguments",
            "SELECT mcpbox.request_network(%s, %s, NULL, %s, %s, 0, 'x', 'local', false)",
            uuid.uuid4(), uuid.uuid4(), [Tool(app).id], host)


def test_asking_again_and_too_often(app):
    t = Tool(app)
    r = network(app, t)
    call = "SELECT mcpbox.request_network(%s, %s, NULL, %s, %s, %s, 'x', 'local', %s)"
    ids = [uuid.uuid4(), uuid.uuid4()]
    refused(app, "conflict", call, *ids, [t.id], "api.example.org", 443, False)
    decide(app, r, approved=False)
    refused(app, "conflict", call, *ids, [t.id], "api.example.org", 443, False)
    r = network(app, t, person=True)            # an administrator is bound by nobody's refusal
    decide(app, r)
    refused(app, "conflict", call, *ids, [t.id], "api.example.org", 443, True)
    refused(app, "not_found", call, *ids, [uuid.uuid4()], "c.example.org", 1, False)
    refused(app, "invalid_arguments", call, *ids, [t.id, Tool(app).id], "c.example.org", 1, False)
    refused(app, "invalid_arguments", call, *ids, [t.id], "c.example.org", 70000, False)
    for i in range(32):
        network(app, t, f"h{i}.example.org")
    refused(app, "limit", call, *ids, [t.id], "more.example.org", 443, False)
    network(app, Tool(app), "more.example.org")


def test_the_first_of_two(app, owner):
    t = Tool(app)
    t.publish()
    first = "SELECT mcpbox.first_approval(%s, %s, %s, now(), 'sealed')"
    refused(app, "hash_mismatch", first, t.request, bytes(32), "anna")
    app.execute(first, (t.request, t.hash, "anna"))
    assert state(app, t.request) == "pending" and t.state() == "pending_review"
    refused(app, "conflict", first, t.request, t.hash, "bob")
    for attack in ("UPDATE mcpbox.approval_firsts SET actor = 'bob' WHERE request_id = %s",
                   "DELETE FROM mcpbox.approval_firsts WHERE request_id = %s"):
        guarded(owner, attack, t.request)
    item = json.loads(one(app, "SELECT mcpbox.approval_item(a) FROM mcpbox.approval_requests a WHERE id = %s",
                          t.request)[0])
    assert item["first_approval"]["by"] == "anna"
    t.decide()
    assert t.state() == "approved"


# --- policies ---------------------------------------------------------------


def test_policies(app, owner):
    def mode():
        return [one(app, "SELECT mcpbox.review_mode(%s)", q)[0] for q in ("tool", "module", "network")]
    store = "SELECT mcpbox.policy_store(%s, %s, %s, %s, 'anna', %s, 'sealed', %s)"
    assert mode() == ["require"] * 3
    app.execute(store, (10, "automatic", "second", "require", "2999-01-01", 0))
    assert mode() == ["automatic", "second", "require"]
    t = Tool(app)
    published = "SELECT automatic FROM mcpbox.request_publish(%s, %s, %s, '', 'local')"
    assert one(app, published, uuid.uuid4(), uuid.uuid4(), t.id)[0] is True
    t = Tool(app)
    add(app, t, (20, "TOKEN"))                  # what names secrets is a person's
    assert one(app, published, uuid.uuid4(), uuid.uuid4(), t.id)[0] is False
    # over the row that it was made from, and later than this
    for over in (0, 9, 11, None):
        refused(app, "hash_mismatch", store, 12, "require", "require", "require", None, over)
    for serial in (10, 9):
        refused(app, "conflict", store, serial, "require", "require", "require", None, 10)
    app.execute(store, (11, "automatic", "automatic", "automatic", "2001-01-01", 10))
    assert mode() == ["require"] * 3            # it has ended
    guarded(app, store, 12, "automatic", "require", "require", None, 11)
    for attack in ("UPDATE mcpbox.approval_policies SET tool = 'automatic' WHERE serial = %s",
                   "DELETE FROM mcpbox.approval_policies WHERE serial = %s"):
        guarded(owner, attack, 11)


def test_two_policies_at_the_same_moment(schema, app):
    """The second one waits for the first one's transaction, and is refused."""
    store = "SELECT mcpbox.policy_store(%s, 'require', %s, 'require', 'anna', NULL, 'sealed', %s)"
    base, = one(app, "SELECT coalesce(max(serial), 0) FROM mcpbox.approval_policies")
    said = []

    def second(c):
        with pytest.raises(psycopg.Error) as e:
            c.execute(store, (base + 2, "require", base))
        said.append(e.value.diag.message_primary)

    with schema.pg.connect(APP) as other:
        t = threading.Thread(target=second, args=(other,))
        with app.transaction():
            app.execute(store, (base + 1, "second", base))
            t.start()
            blocked(app, other)
        t.join()
    assert said == ["hash_mismatch: the policy was changed meanwhile: read it again"]
    assert one(app, "SELECT serial, module FROM mcpbox.approval_policies ORDER BY serial DESC LIMIT 1") == (
        base + 1, "second")


# --- actions ----------------------------------------------------------------


def act(c, action, id_, body, actor="anna", role="reviewer"):
    return json.loads(one(c, "SELECT mcpbox.admin_act(%s, %s, %s, %s, NULL, '', %s)",
                          action, actor, role, id_, json.dumps(body))[0])


def act_refused(c, failure, action, id_, body):
    refused(c, failure, "SELECT mcpbox.admin_act(%s, 'anna', 'reviewer', %s, NULL, '', %s)",
            action, id_, json.dumps(body))


def test_comments(app, owner):
    t = Tool(app)
    t.publish()
    act(app, "approval_comment", str(t.request), {"text": " why does it need that? "})
    items = act(app, "approval_comment", str(t.request), {"text": "asked the author"}, "bob")["items"]
    assert [(i["author"], i["text"]) for i in items] == [("anna", "why does it need that?"),
                                                         ("bob", "asked the author")]
    act_refused(app, "invalid_params", "approval_comment", str(t.request), {"text": " \n"})
    act_refused(app, "not_found", "approval_comment", str(uuid.uuid4()), {"text": "x"})
    act_refused(app, "not_found", "approval_comment", "nonsense", {"text": "x"})
    guarded(owner, "UPDATE mcpbox.approval_comments SET text = 'fine' WHERE request_id = %s", t.request)


def test_revoking(app):
    t = Tool(app).approve()
    act_refused(app, "invalid_params", "approval_revoke", str(t.request), {"reason": " "})
    assert act(app, "approval_revoke", str(t.request), {"reason": "bad"})["revoked"] is True
    assert t.state() == "revoked" and t.serving() is None
    act_refused(app, "conflict", "approval_revoke", str(t.request), {"reason": "bad"})
    t = Tool(app).approve()
    act(app, "tool_revoke", str(t.id), {"reason": "bad"})
    assert t.state() == "revoked"
    act_refused(app, "conflict", "tool_revoke", str(t.id), {"reason": "bad"})
    r = network(app, t)
    act_refused(app, "conflict", "approval_revoke", str(r), {"reason": "not decided"})
    decide(app, r)
    act(app, "approval_revoke", str(r), {"reason": "bad"})
    act_refused(app, "conflict", "approval_revoke", str(r), {"reason": "bad"})
    name = module(app)
    r = request(app, t, name)
    decide(app, r)
    add(app, t, (17, lock(name)))
    act(app, "approval_revoke", str(r), {"reason": "bad"})
    with pytest.raises(psycopg.Error, match="missing_grant"):
        add(app, t, (17, lock(name)))
    r = request(app, t, name)                   # asked for anew, and given
    decide(app, r)
    assert act(app, "module_revoke", f"{t.id}/{name}", {})["revoked"] == f"{name}==1.0"


def test_an_administrator_asks_for_a_host(app):
    i, _ = server(app)
    item = act(app, "network_request", str(i), {"host": "*.Example.org", "port": 443}, role="administrator")
    assert (item["kind"], item["host"], item["port"], item["state"]) == ("network", "*.example.org", 443, "pending")
    act_refused(app, "invalid_params", "network_request", str(i), {"host": "x.example.org", "port": 0})
    act_refused(app, "invalid_arguments", "network_request", str(i), {"host": "localhost"})
    act_refused(app, "not_found", "network_request", str(uuid.uuid4()), {"host": "x.example.org"})


# --- finding ----------------------------------------------------------------


def test_searching(app):
    mark = "quux" + uuid.uuid4().hex[:6]
    t = Tool(app, mark + "_fetch")
    t.publish()
    r = network(app, t, mark + ".example.org")

    def found(words):
        return [x[0] for x in app.execute(
            "SELECT id FROM mcpbox.approval_requests WHERE search @@ mcpbox.approval_query(%s)",
            (words,)).fetchall()]
    assert found(mark) == sorted([t.request, r], key=lambda u: u) or set(found(mark)) == {t.request, r}
    assert found(mark + " fetch") == [t.request]
    assert found(mark[:8] + " examp") == [r]
    for odd in ("&|!():*'\\", "", "  "):        # no words, no rows, no error
        assert found(odd) == []


def test_the_list_s_statements_use_indexes(app, owner):
    """Each leading filter has its own; judged on a table that is not small."""
    t = Tool(app)
    owner.execute("ALTER TABLE mcpbox.approval_requests DISABLE TRIGGER USER")
    owner.execute("INSERT INTO mcpbox.approval_requests (id, kind, subject, hash, server_id, tool_id, "
                  "requested_by, state, decided_at, decided_by, search) SELECT gen_random_uuid(), 'module', "
                  "gen_random_uuid(), sha256('x'), %s, %s, 'x', 'rejected', now(), 'x', to_tsvector('simple', "
                  "'word' || (i %% 1000)) FROM generate_series(1, 20000) i", (t.server, t.id))
    owner.execute("ALTER TABLE mcpbox.approval_requests ENABLE TRIGGER USER")
    if not owner.autocommit:
        owner.commit()
    owner.autocommit = True
    owner.execute("ANALYZE mcpbox.approval_requests")
    page = " AND a.id > '00000000-0000-0000-0000-000000000000' ORDER BY a.id LIMIT 50"
    for where in ("a.search @@ mcpbox.approval_query('word77')", "a.kind = 'tool'", "a.state = 'pending'",
                  "a.kind = 'tool' AND a.state = 'pending'", f"a.server_id = '{uuid.uuid4()}'",
                  f"a.tool_id = '{uuid.uuid4()}'", "true"):
        plan = "\n".join(r[0] for r in owner.execute(
            "EXPLAIN SELECT a.id FROM mcpbox.approval_requests a WHERE " + where + page).fetchall())
        assert "Index" in plan and "Seq Scan on approval_requests" not in plan, (where, plan)


# --- all at once ------------------------------------------------------------


def test_everything_at_once(schema):
    """Requests, decisions, modules coming and going, versions coming to serve and
    revoked, from six sides: nobody deadlocks, and at the end each request that
    waits has the bytes that it would have if it were made now."""
    import random
    import threading
    from database.test_database import APP

    with schema.pg.connect(APP) as c:
        where = server(c)
        tools = [Tool(c, f"t{i}", server=where) for i in range(4)]
        names = [module(c, "r" + uuid.uuid4().hex[:8]) for _ in range(3)]
    hosts = [f"h{i}.example.org" for i in range(4)]
    wrong, counts = [], {}

    def step(c, r):
        tool, name, host = r.choice(tools), r.choice(names), r.choice(hosts)
        what = r.randrange(7)
        if what == 0:
            request(c, tool, name)
        elif what == 1:
            network(c, tool, host, r.choice((0, 443)), person=True)
        elif what == 2:
            add(c, tool, (21, host))
            c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'local')",
                      (uuid.uuid4(), uuid.uuid4(), tool.id))
            return "version"
        elif what in (3, 4):
            row = c.execute("SELECT id, hash FROM mcpbox.approval_requests WHERE state = 'pending' "
                            "AND server_id = %s ORDER BY random() LIMIT 1", (where[0],)).fetchone()
            if row:
                c.execute("SELECT mcpbox.decide_approval(%s, %s, %s, 'root', now(), 'x', 'seal')",
                          (row[0], r.random() < .8, row[1]))
        elif what == 5:
            if r.random() < .5:
                c.execute("SELECT mcpbox.withdraw_module(%s, '1.0', 'root')", (name,))
            else:
                module(c, name)
        else:
            row = c.execute("SELECT id FROM mcpbox.approval_requests WHERE state = 'approved' "
                            "AND server_id = %s ORDER BY random() LIMIT 1", (where[0],)).fetchone()
            if row:
                act(c, "approval_revoke", str(row[0]), {"reason": "x"})
        return str(what)

    def run(seed):
        r = random.Random(seed)
        with schema.pg.connect(APP) as c:
            c.autocommit = True
            for _ in range(40):
                try:
                    done = step(c, r)
                    counts[done] = counts.get(done, 0) + 1
                except psycopg.Error as e:
                    if e.diag.sqlstate != "MB001":
                        wrong.append((e.diag.sqlstate, str(e)))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]
    assert len(counts) >= 6, counts
    with schema.pg.connect("postgres") as c:
        stale = c.execute("SELECT a.id, a.kind FROM mcpbox.approval_requests a JOIN mcpbox.grant_requests g "
                          "USING (id) WHERE a.state = 'pending' AND g.preimage <> "
                          "mcpbox.grant_preimage(a.kind, a.subject, a.id)").fetchall()
        assert stale == []
        assert c.execute("SELECT count(*) FROM mcpbox.network_grants g LEFT JOIN mcpbox.approval_seals s "
                         "USING (request_id) WHERE s.seal IS NULL").fetchone() == (0,)
        assert c.execute("SELECT n.version_id, n.epoch FROM mcpbox.callable_now n EXCEPT "
                         "SELECT c.version_id, c.epoch FROM mcpbox.callable c").fetchall() == []
