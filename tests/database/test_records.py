"""How records are found, counted, searched and forgotten; what of an
execution may still change; the activity log."""
import datetime
import json
import pathlib
import re
import uuid

import psycopg
import pytest

from database.test_database import APP, DENIED, OWNER, Tool, epoch, guarded, one
from harness.patience import patience
from harness.work import cpu, least, pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOW = datetime.datetime.now(datetime.timezone.utc)
ROWS = 60000


def statements():
    """admind's own texts, by name: what is explained here is what runs there."""
    import subprocess
    source = f'#include "{ROOT}/admind/admin/adminq_records.c"\n' + r"""
#include <stdio.h>
static void show(const struct question_form *f) {
	for (; f->stmt.name != NULL; f++)
		printf("%s\t%s\n", f->stmt.name, f->stmt.sql);
}
int main(void) {
	show(executions); show(lines); show(execution); show(stats); show(activity);
	return 0;
}
"""
    out = subprocess.run(["cc", "-D_GNU_SOURCE", '-DMCPBOX_VERSION="0"', *(f"-I{d}" for d in sorted((ROOT / "common").glob("*/"))),
                          *(f"-I{ROOT}/admind/{room}" for room in ("admin", "core", "db", "tooldef")),
                          "-x", "c", "-", "-o", "/tmp/records-sql." + uid],
                         input=source, text=True, capture_output=True, timeout=patience(60))
    assert out.returncode == 0, out.stderr
    try:
        text = subprocess.run(["/tmp/records-sql." + uid], text=True, capture_output=True,
                              check=True, timeout=patience(10)).stdout
    finally:
        pathlib.Path("/tmp/records-sql." + uid).unlink()
    return dict(line.split("\t", 1) for line in text.splitlines())


uid = uuid.uuid4().hex[:8]
FILTERS = ["kind", "state", "server", "tool", "principal", "listener", "outcome", "failure",
           "since", "until"]


def bind(sql, values):
    """$1::text … as literals: psycopg counts otherwise."""
    return re.sub(r"\$(\d+)", lambda m: str(psycopg.sql.Literal(
        values[int(m.group(1)) - 1]).as_string(None)), sql)


def find(c, sqls, form="", limit=50, cursor="", base="adminq_executions", search=None, **given):
    values = [given.get(f, "") for f in FILTERS]
    if search is not None:
        values.append(search)
    values += [cursor, limit]
    sql = bind(sqls[base + form], values)
    return [(json.loads(r[0]), r[1]) for r in c.execute(sql).fetchall()]


def plan(c, sqls, form, generic=True, **given):
    values = [given.get(f, "") for f in FILTERS] + ["", 50]
    if not generic:
        return "\n".join(r[0] for r in c.execute(
            "EXPLAIN ANALYZE " + bind(sqls["adminq_executions" + form], values)).fetchall())
    c.execute("SET plan_cache_mode = force_generic_plan")
    name = "p" + uuid.uuid4().hex[:8]
    types = ", ".join(["text"] * 11 + ["int8"])
    c.execute(f"PREPARE {name} ({types}) AS " + sqls["adminq_executions" + form])
    args = ", ".join(str(psycopg.sql.Literal(v).as_string(None)) for v in values)
    text = "\n".join(r[0] for r in c.execute(
        f"EXPLAIN ANALYZE EXECUTE {name} ({args})").fetchall())
    c.execute(f"DEALLOCATE {name}")
    c.execute("RESET plan_cache_mode")
    return text


@pytest.fixture(scope="module")
def sqls():
    return statements()


@pytest.fixture(scope="module")
def many(schema):
    """Rows of a month: 40 tools of one server, 5 principals; one in 50 failed."""
    with schema.pg.connect(APP) as app, schema.pg.connect(OWNER) as owner:
        e = epoch(app)
        t = Tool(app, "t0").approve()
        owner.execute("ALTER TABLE mcpbox.executions DISABLE TRIGGER USER")
        owner.execute("""
            INSERT INTO mcpbox.executions (id, kind, state, outcome, failure, delivered,
                owner_epoch, principal, listener, tool, version_id, version_hash, args_sha256,
                arguments, created_at, deadline, started_at, ended_at, cpu_us, stdout, result)
            SELECT gen_random_uuid(), CASE WHEN i %% 1000 = 7 THEN 'test' ELSE 'tool' END,
                'closed', CASE WHEN i %% 50 = 0 THEN 'failed' ELSE 'done' END,
                CASE WHEN i %% 50 = 0 THEN 'exception' END, true, %s, 'user' || i %% 5,
                CASE WHEN i %% 100 = 3 THEN 'tunnel' ELSE 'local' END,
                CASE WHEN i %% 40 = 0 THEN %s ELSE 'other__t' || i %% 40 END,
                CASE WHEN i %% 40 = 0 THEN %s::uuid END, %s,
                sha256('{}'), '{"n": ' || i || ', "word": "w' || i %% 7 || '"}',
                %s::timestamptz - i * interval '40 seconds',
                %s::timestamptz - i * interval '40 seconds' + interval '1 minute',
                %s::timestamptz - i * interval '40 seconds' + interval '1 millisecond',
                %s::timestamptz - i * interval '40 seconds' + interval '11 milliseconds', 5000, '',
                '{"content":[{"type":"text","text":"' || md5(i::text) || '"}]}'
            FROM generate_series(1, %s) i""", (e, f"{t.server_name}__t0", t.version, t.hash,
                                               NOW, NOW, NOW, NOW, ROWS))
        owner.execute("ALTER TABLE mcpbox.executions ENABLE TRIGGER USER")
        owner.execute("SELECT mcpbox.records_rebuild()")
        while one(app, "SELECT mcpbox.records_work(2000)")[0]:
            pass
        owner.execute("ANALYZE")
        yield {"tool": t, "epoch": e}


def mine(c, sqls, **given):
    form = "_" + next(iter(given)).upper() if given else ""
    return find(c, sqls, form, **given)


@pytest.mark.parametrize("given", [
    {}, {"tool": "other__t3"}, {"principal": "user2"}, {"failure": "exception"},
    {"outcome": "failed"}, {"outcome": "done"}, {"kind": "test"}, {"kind": "tool"},
    {"listener": "tunnel"}, {"listener": "local"}, {"state": "closed"}, {"state": "open"},
    {"state": "failed"}, {"server": True},
    {"tool": "other__t3", "since": (NOW - datetime.timedelta(days=20)).isoformat(),
     "until": (NOW - datetime.timedelta(days=10)).isoformat()}],
    ids=lambda g: "-".join(f"{k}={str(v)[:10]}" for k, v in g.items()) or "all")
def test_every_form_reads_few_rows_by_an_index(app, many, sqls, given):
    if "server" in given:
        given = {"server": str(many["tool"].server)}
    form = "_" + next(iter(given)).upper() if given else ""
    for generic in (True, False):
        text = plan(app, sqls, form, generic, **given)
        assert "Seq Scan on execution" not in text.replace("Seq Scan on execution_queue", ""), text
        assert "using" in text, text
        removed = sum(int(n) for n in re.findall(r"Rows Removed by Filter: (\d+)", text))
        # a page of 50: what is rare is 1 in 50 at most where it has no index
        assert removed < 3000, text


def test_pages_follow_each_other_and_end(app, many, sqls):
    seen, cursor = [], ""
    while True:
        page = find(app, sqls, "_FAILURE", 201, cursor, failure="exception")
        seen += [x["id"] for x, _ in page[:200]]
        assert all(x["failure_mode"] == "exception" for x, _ in page)
        if len(page) <= 200:
            break
        cursor = page[199][1]
    assert len(seen) == len(set(seen)) == ROWS // 50


@pytest.mark.parametrize("form,given,expect", [
    ("_TOOL", {"tool": "other__t3"}, lambda x: x["tool"] == "other__t3"),
    ("_PRINCIPAL", {"principal": "user0", "outcome": "failed"},
     lambda x: x["principal"] == "user0" and x["outcome"] == "failed"),
    ("_LISTENER", {"listener": "tunnel"}, lambda x: x["listener"] == "tunnel"),
    ("_KIND", {"kind": "test"}, lambda x: x["kind"] == "test")])
def test_filters_filter_and_the_newest_comes_first(app, many, sqls, form, given, expect):
    rows = [x for x, _ in find(app, sqls, form, **given)]
    assert len(rows) == 50 and all(expect(x) for x in rows)
    assert [x["created_at"] for x in rows] == sorted((x["created_at"] for x in rows),
                                                     reverse=True)


def test_a_tools_newest_calls_are_listed_while_all_wait(owner, many):
    """The queue may be long (60,000 here, of 40 tools): a tool's list reads a page."""
    logs = ("SELECT mcpbox.manage_get_logs(%s, 10)", many["tool"].id)
    newest = json.loads(one(owner, *logs)[0])["logs"]
    assert len(newest) == 10
    with owner.transaction(force_rollback=True):
        owner.execute("SELECT mcpbox.records_rebuild()")
        assert one(owner, "SELECT count(*) FROM mcpbox.execution_queue")[0] >= ROWS
        assert json.loads(one(owner, *logs)[0])["logs"] == newest
        # the one that ended last, behind all others
        t, last = many["tool"], uuid.uuid4()
        assert one(owner, "SELECT mcpbox.execution_close(%s, %s, 'done', NULL, true, NULL, now(), 1, '', "
                   "'{}', 'tool', %s, %s, 'local', 'local', %s, %s, '{}', now(), now())", last,
                   many["epoch"], t.version, t.hash, f"{t.server_name}__t0", bytes(32))[0] == "restored"
        now = json.loads(one(owner, *logs)[0])["logs"]
        assert now[0]["id"] == str(last) and now[1:] == newest[:9]
        newest = now
        for generic in ("on", "off"):
            # as admind has it planned, once a connection
            owner.execute("SET LOCAL enable_seqscan = off")
            owner.execute("SET LOCAL plan_cache_mode = " + (
                "force_generic_plan" if generic == "on" else "force_custom_plan"))
            owner.execute("PREPARE of_tool (text, bigint) AS SELECT * FROM "
                          "mcpbox.executions_of_tool($1, '{tool,test,management}', $2)")
            text = "\n".join(r[0] for r in owner.execute(
                f"EXPLAIN (ANALYZE, TIMING off) EXECUTE of_tool ('{t.server_name}__t0', 10)"))
            owner.execute("DEALLOCATE of_tool")
            rows = [int(n) * int(loops) for n, loops in
                    re.findall(r"actual rows=(\d+) loops=(\d+)", text)]
            assert rows and max(rows) <= 30, text
        # some are searchable already, others wait
        assert one(owner, "SELECT mcpbox.records_work(2000)")[0] == 2000
        assert json.loads(one(owner, *logs)[0])["logs"] == newest


def test_a_server_is_known_by_its_versions(app, many, sqls):
    rows = [x for x, _ in find(app, sqls, "_SERVER", server=str(many["tool"].server))]
    assert len(rows) == 50
    assert {x["tool"] for x in rows} == {f"{many['tool'].server_name}__t0"}
    assert find(app, sqls, "_SERVER", server=str(uuid.uuid4())) == []


# --- search ----------------------------------------------------------------


def test_search_finds_rare_and_frequent_words(app, many, sqls):
    import hashlib
    digest = hashlib.md5(b"777").hexdigest()
    rare = find(app, sqls, "_search", search=digest)
    assert len(rare) == 1
    frequent = find(app, sqls, "_search", search="w3")
    assert len(frequent) == 50 and frequent[0][0]["created_at"] > frequent[-1][0]["created_at"]
    both = find(app, sqls, "_search", search=f"{digest} w3")
    assert both == []
    assert len(find(app, sqls, "_search", search="t3 w3", tool="other__t3")) == 50
    # fewer pages than one look through either table
    whole = one(app, "SELECT least(pg_relation_size('mcpbox.executions'), "
                "pg_relation_size('mcpbox.execution_index')) / 8192")[0]
    for words, given in ((digest, {}), ("w3", {}), (f"{digest} w3", {}), ("t3 w3", {"tool": "other__t3"})):
        values = [given.get(f, "") for f in FILTERS] + [words, "", 50]
        looked = pages(app, bind(sqls["adminq_executions_search"], values))
        print(words, looked, whole)
        assert looked < whole, (words, looked, whole)
    again = find(app, sqls, "_search", search="w3", cursor=frequent[-1][1])
    assert {x["id"] for x, _ in again}.isdisjoint({x["id"] for x, _ in frequent})


def test_search_takes_an_id(app, many, sqls):
    x = find(app, sqls)[0][0]
    assert find(app, sqls, "_search", search=x["id"])[0][0]["id"] == x["id"]
    assert find(app, sqls, "_search", search=x["id"].replace("-", ""))[0][0]["id"] == x["id"]


@pytest.mark.parametrize("text", ["'", '"', "a & b", "a:*", "!", "(", "\\", "-", "or", "é"])
def test_any_text_may_be_searched_for(app, many, sqls, text):
    find(app, sqls, "_search", search=text)


# --- statistics ------------------------------------------------------------


def stats(c, since=None, until=None, period="", tool="", principal="", listener="", kind="",
          outcome=""):
    return json.loads(one(c, "SELECT mcpbox.execution_statistics(%s, %s, %s, %s, %s, %s, %s, %s)",
                          since, until, period, tool, principal, listener, kind, outcome)[0])


def test_statistics_count_each_row_once(app, many):
    s = stats(app, NOW - datetime.timedelta(days=60), NOW + datetime.timedelta(hours=1), "day")
    assert s["total"]["calls"] == ROWS and s["total"]["errors"] == ROWS // 50
    assert s["outcomes"] == {"done": ROWS - ROWS // 50, "failed": ROWS // 50}
    assert s["failures"] == {"exception": ROWS // 50}
    assert s["total"]["duration_ms_average"] == 10 and s["total"]["duration_ms_max"] == 10
    assert s["total"]["cpu_ms"] == ROWS * 5
    assert len(s["tools"]) == 20 and sum(p["calls"] for p in s["periods"]) == ROWS
    assert sum(s["kinds"].values()) == ROWS == sum(s["listeners"].values())
    one_tool = stats(app, NOW - datetime.timedelta(days=60), NOW, "day", tool="other__t3")
    assert one_tool["total"]["calls"] == ROWS // 40
    assert stats(app)["period"] == "hour"


@pytest.mark.parametrize("bad", [{"period": "year"}, {"since": NOW, "until": NOW},
                                 {"since": NOW - datetime.timedelta(days=500)},
                                 {"since": NOW - datetime.timedelta(days=60), "period": "hour"}])
def test_statistics_have_bounds(app, many, bad):
    with pytest.raises(psycopg.Error, match="invalid_params"):
        stats(app, **bad)


def test_what_closes_is_counted_and_found_once(app, many, sqls):
    def call(kind="management"):
        x = uuid.uuid4()
        assert one(app, "SELECT mcpbox.management_open(%s, %s, 'local', 'local', 'mcpbox_x', "
                   "%s, '{\"q\": \"heliotrope\"}', '', '', now(), now() + interval '1 minute', "
                   "NULL, NULL, NULL)", x, a, bytes(32))[0] == "ok"
        return x

    a = uuid.uuid4()
    app.execute("SELECT mcpbox.epoch_begin(%s, %s, 'admind')", (a, uuid.uuid4().hex))
    before = stats(app, tool="mcpbox_x")["total"]["calls"]
    x = call()
    assert app.execute("SELECT * FROM mcpbox.executions_close(%s, %s, %s, %s, %s, %s, %s, %s, %s, "
                       "%s)", (a, [x], ["done"], [None], [True], [None], [NOW], [7], [""],
                               ["{}"])).fetchall() == [(x,)]
    y = call()
    close = ("SELECT mcpbox.execution_close(%s, %s, 'failed', 'exception', true, NULL, now(), 1, "
             "'', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
    assert one(app, close, y, a)[0] == "closed"
    assert one(app, close, y, a)[0] == "already"
    z = call()
    app.execute("SELECT mcpbox.epoch_begin(%s, (SELECT node FROM mcpbox.epochs WHERE epoch = %s), "
                "'admind')", (uuid.uuid4(), a))
    assert one(app, "SELECT mcpbox.sweep_epochs()")[0] == 1
    assert one(app, "SELECT mcpbox.records_work(100)")[0] == 3
    assert one(app, "SELECT mcpbox.records_work(100)")[0] == 0
    assert stats(app, tool="mcpbox_x")["total"]["calls"] == before + 3
    found = {r["id"] for r, _ in find(app, sqls, "_search", search="heliotrope")}
    assert found == {str(x), str(y), str(z)}


def test_no_record_stops_the_counting(app):
    """Times are what a sandbox says: sums of the largest there are fit no column, and the queue goes on."""
    a, tool = uuid.uuid4(), "mcpbox_" + uuid.uuid4().hex[:8]
    app.execute("SELECT mcpbox.epoch_begin(%s, %s, 'admind')", (a, uuid.uuid4().hex))
    for _ in range(2):
        for _ in range(40):
            x = uuid.uuid4()
            app.execute("SELECT mcpbox.management_open(%s, %s, 'local', 'local', %s, %s, '{}', '', '', now(), "
                        "now() + interval '1 minute', NULL, NULL, NULL)", (x, a, tool, bytes(32)))
            app.execute("SELECT mcpbox.execution_close(%s, %s, 'done', NULL, true, '1970-01-01 00:00:00.000001Z', "
                        "'9999-12-30Z', 9223372036854775807, '', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
                        "NULL, NULL, NULL)", (x, a))
        while one(app, "SELECT mcpbox.records_work(250)")[0]:
            pass
    got = stats(app, tool=tool)["total"]
    assert got["calls"] == 80 and got["cpu_ms"] == got["duration_ms_max"] == 9e12


@pytest.mark.parametrize("text", ["1a@", "a_", "e-e.", "/~", "./", "<@", "-1.a", "a@b.c/d_", "1a@1a@/"])
def test_no_text_is_slow_to_index(app, owner, text):
    """PostgreSQL's parser takes seconds for some; a caller writes them in each of his calls."""
    a = uuid.uuid4()
    app.execute("SELECT mcpbox.epoch_begin(%s, %s, 'admind')", (a, uuid.uuid4().hex))
    long = (text * 4096)[:8192]
    owner.execute("SET statement_timeout = '60s'")
    plain = ("some plain words " * 4096)[:8192]
    sql = "SELECT to_tsvector('pg_catalog.simple', mcpbox.plain_words(%s))"
    got = least(owner.info.backend_pid, lambda: owner.execute(sql, (long,)), lambda: owner.execute(sql, (plain,)))
    assert got[0] < 20 * got[1], got

    def kept(said):
        """CPU seconds that a record of this text takes to become searchable."""
        x = uuid.uuid4()
        app.execute("SELECT mcpbox.management_open(%s, %s, 'local', 'local', 'mcpbox_slow', %s, %s, '', '', now(), "
                    "now() + interval '1 minute', NULL, NULL, NULL)", (x, a, bytes(32), said[:4096]))
        app.execute("SELECT mcpbox.execution_close(%s, %s, 'done', NULL, true, now(), now(), 1, %s, %s, NULL, NULL, "
                    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)", (x, a, said[:4096], said))
        before = cpu(app.info.backend_pid)
        while one(app, "SELECT mcpbox.records_work(250)")[0]:
            pass
        return cpu(app.info.backend_pid) - before

    kept(plain)     # plans are made
    of_long, of_plain = (min(x) for x in zip(*((kept(long), kept(plain)) for _ in range(3))))
    assert of_long < 10 * of_plain, (of_long, of_plain)


@pytest.mark.parametrize("search, finds", [
    ("heron@marsh.example", True), ("marsh.example", True), ("heron -otter", True), ("heron -reed", False),
    ("reed-bed", True), ('"reed bed"', True), ('"bed reed"', False), ("bird_of_water", True), ("/var/nest/3.14", True),
    ("heron@desert.example", False), ("heron or camel", True)])
def test_words_are_found_as_they_are_written(app, sqls, search, finds):
    a, x = uuid.uuid4(), uuid.uuid4()
    app.execute("SELECT mcpbox.epoch_begin(%s, %s, 'admind')", (a, uuid.uuid4().hex))
    app.execute("SELECT mcpbox.management_open(%s, %s, 'local', 'local', 'mcpbox_bird_of_water', %s, %s, '', '', "
                "now(), now() + interval '1 minute', NULL, NULL, NULL)", (x, a, bytes(32), json.dumps(
                    {"to": "heron@marsh.example", "note": "a reed-bed\nheron", "path": "/var/nest/3.14"})))
    app.execute("SELECT mcpbox.execution_close(%s, %s, 'done', NULL, true, now(), now(), 1, '', '{}', NULL, NULL, "
                "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)", (x, a))
    while one(app, "SELECT mcpbox.records_work(250)")[0]:
        pass
    assert (str(x) in {r["id"] for r, _ in find(app, sqls, "_search", search=search)}) == finds


# --- what may change ---------------------------------------------------------


def open_row(app, **more):
    e = epoch(app)
    t = Tool(app).approve()
    x = uuid.uuid4()
    cols = dict(id=x, kind="tool", owner_epoch=e, principal="local", listener="local",
                tool=f"{t.server_name}__greet", version_id=t.version, version_hash=t.hash,
                args_sha256=bytes(32), arguments="{}", client="", protocol="", created_at=NOW,
                deadline=NOW, **more)
    app.execute(f"INSERT INTO mcpbox.intents ({', '.join(cols)}) VALUES "
                f"({', '.join(['%s'] * len(cols))})", list(cols.values()))
    return x


def test_an_intent_has_its_trace_from_its_insert(app, sqls):
    trace, span, session = uuid.uuid4(), b"12345678", uuid.uuid4()
    x = open_row(app, trace_id=trace, span_id=span, session_id=session)
    r = find(app, sqls, "_search", search=trace.hex)[0][0]
    assert (r["id"], r["trace_id"], r["span_id"], r["session_id"]) == (
        str(x), trace.hex, span.hex(), str(session))
    with pytest.raises(psycopg.Error):
        open_row(app, trace_id=trace, span_id=b"short")


def test_marks_come_once_and_never_to_a_closed_row(app, owner):
    x = open_row(app)
    mark = "SELECT mcpbox.execution_marked(%s, %s, %s, %s, %s)"
    assert one(app, mark, "revoked", x, uuid.uuid4(), b"12345678", None)[0] == "revoked"
    get = "SELECT trace_id, session_id FROM mcpbox.executions WHERE id = %s"
    assert one(app, get, x) == (None, None)
    t, s = uuid.uuid4(), uuid.uuid4()
    assert one(app, mark, "ok", x, t, b"12345678", s)[0] == "ok"
    one(app, mark, "ok", x, uuid.uuid4(), b"12345678", None)
    assert one(app, get, x) == (t, s)
    guarded(owner, "UPDATE mcpbox.executions SET trace_id = NULL WHERE id = %s", x)
    guarded(owner, "UPDATE mcpbox.executions SET arguments = 'x' WHERE id = %s", x)
    y = open_row(app)
    guarded(owner, "UPDATE mcpbox.executions SET trace_id = gen_random_uuid(), tool = 'x' "
            "WHERE id = %s", y)
    guarded(owner, "UPDATE mcpbox.executions SET trace_id = gen_random_uuid(), span_id = 'x' "
            "WHERE id = %s", y)
    owner.execute("UPDATE mcpbox.executions SET state = 'closed', outcome = 'done', "
                  "ended_at = now() WHERE id = %s", (y,))
    one(app, mark, "ok", y, t, b"12345678", s)
    assert one(app, get, y) == (None, None)
    guarded(owner, "UPDATE mcpbox.executions SET trace_id = gen_random_uuid() WHERE id = %s", y)


def test_the_run_time_role_reads_and_no_more(app):
    for attack in ("INSERT INTO mcpbox.execution_queue VALUES (gen_random_uuid())",
                   "DELETE FROM mcpbox.executions", "DELETE FROM mcpbox.activity",
                   "UPDATE mcpbox.execution_stats SET calls = 0",
                   "SELECT mcpbox.records_rebuild()"):
        with pytest.raises(DENIED):
            app.execute(attack)


# --- activity and forgetting -------------------------------------------------


def entry(c, kind="call_refused", subject="a__b", at=None, level="warning", principal="local"):
    c.execute("SELECT mcpbox.activity_add('n1', %s, %s, %s, %s, %s, %s, %s, %s)",
              ([at or NOW], [kind], [level], [principal], ["local"], [subject], ["revoked"], [2]))


def activity(c, sqls, form="", limit=50, cursor="", **given):
    values = [given.get(k, "") for k in ("kind", "level", "tool", "principal", "listener",
                                         "failure", "since", "until", "search")]
    return [json.loads(r[0]) for r in c.execute(
        bind(sqls["adminq_activity" + form], values + [cursor, limit])).fetchall()]


def test_activity_is_listed_newest_first_and_filtered(app, sqls):
    for i in range(5):
        entry(app, subject=f"s__{i}", kind="call_refused" if i % 2 else "auth_failed",
              level="warning" if i else "info")
    rows = activity(app, sqls)
    assert [r["subject"] for r in rows[:5]] == [f"s__{i}" for i in (4, 3, 2, 1, 0)]
    assert rows[0]["count"] == 2 and rows[0]["failure_mode"] == "revoked"
    assert all(r["kind"] == "auth_failed" for r in activity(app, sqls, "_kind",
                                                            kind="auth_failed"))
    assert [r["subject"] for r in activity(app, sqls, "_tool", tool="s__3")] == ["s__3"]
    assert activity(app, sqls, search="S__2")[0]["subject"] == "s__2"
    assert len(activity(app, sqls, cursor=str(rows[2]["seq"]), principal="local")) >= 2
    assert "s__0" not in [r["subject"] for r in activity(app, sqls, "_level", level="warning")]


def test_old_rows_go_in_pieces_and_take_no_lock_from_calls(schema, app, owner, many):
    days = one(app, "SELECT mcpbox.setting('log_retention_days')")[0]
    assert days == "30"
    owner.execute("UPDATE mcpbox.settings SET value = '20' WHERE key = 'log_retention_days'")
    owner.execute("INSERT INTO mcpbox.settings (key, value, updated_by) VALUES "
                  "('log_retention_days', '20', 'x') ON CONFLICT DO NOTHING")
    # Rows grow old while this runs: those of now are the least that go.
    old = f"created_at < '{one(app, 'SELECT now()')[0]}'::timestamptz - interval '20 days'"
    n = one(app, f"SELECT count(*) FROM mcpbox.executions WHERE {old}")[0]
    closed = "SELECT count(*) FROM mcpbox.executions WHERE state = 'closed'"
    before = one(app, closed)[0]
    words = one(app, "SELECT count(*) FROM mcpbox.execution_index")[0]
    counted = stats(app, NOW - datetime.timedelta(days=60), NOW, "day")["total"]["calls"]
    entry(app, at=NOW - datetime.timedelta(days=21), subject="old")
    assert n > 5000
    # someone holds some of them: they are left, nobody waits
    with schema.pg.connect(OWNER) as other:
        other.autocommit = False
        held = [r[0] for r in other.execute(
            f"SELECT id FROM mcpbox.executions WHERE {old} ORDER BY created_at LIMIT 10 "
            "FOR UPDATE").fetchall()]
        app.execute(f"SET lock_timeout = '{patience(5):.0f}s'")
        assert one(app, "SELECT mcpbox.records_expire(1000)")[0] == 1000
        assert one(app, "SELECT count(*) FROM mcpbox.executions WHERE id = ANY (%s)", held)[0] == 10
        # while a piece is deleted, calls come and go
        other.rollback()
        other.execute("SELECT mcpbox.records_expire(1000)")
        open_row(app)
        assert one(app, "SELECT mcpbox.records_expire(10)")[0] == 10
        other.commit()
    # A piece costs as much at the end as at first.
    cost = []
    while True:
        with app.transaction(force_rollback=True):
            cost.append(pages(app, "SELECT mcpbox.records_expire(1000)"))
        if one(app, "SELECT mcpbox.records_expire(1000)")[0] < 1000:
            break
    gone = before - one(app, closed)[0]
    assert gone >= n
    assert len(cost) <= gone // 1000 + 1 and max(cost) < 2 * cost[0], (gone, cost)
    assert one(app, f"SELECT count(*) FROM mcpbox.executions WHERE {old}")[0] == 0
    assert one(app, "SELECT count(*) FROM mcpbox.execution_index")[0] == words - gone
    assert stats(app, NOW - datetime.timedelta(days=60), NOW, "day")["total"]["calls"] == counted
    assert one(app, "SELECT count(*) FROM mcpbox.activity WHERE subject = 'old'")[0] == 0


def test_the_activity_log_is_bounded(app, owner):
    owner.execute("INSERT INTO mcpbox.activity (at, node, kind, level, principal, listener, "
                  "subject, failure, count) SELECT now(), 'n', 'session_ended', 'info', '', '', "
                  "'', '', 1 FROM generate_series(1, 103000)")
    for _ in range(5):
        app.execute("SELECT mcpbox.records_expire(1000)")
    assert one(app, "SELECT count(*) FROM mcpbox.activity")[0] == 100000
