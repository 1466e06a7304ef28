"""Figures of long spans: sums are those of the counts they were made from, whatever wrote
them, and a week is not read row by row."""
import datetime
import json
import threading
import uuid

import pytest

from database.test_database import APP, DENIED, OWNER, blocked, one
from database.test_records import stats
from harness.patience import patience
from harness.schema import migrations
from harness.work import pages

HOURS, TOOLS, PRINCIPALS = 8 * 24, 40, 6
#: The names by which a row of each table of sums is found, and the counts of its row.
SUMS = {
    "execution_hours": ("hour, kind, listener, outcome, failure", "calls, duration_us, cpu_us", ("",)),
    "execution_days": ("day, name, kind, listener, outcome", "calls, duration_us",
                       ("tool", "principal")),
}


def differs(c):
    """Sums that are not those of execution_stats, or lack there."""
    found = []
    for table, (keys, counts, parts) in SUMS.items():
        for part in parts:
            own = f"SELECT {keys}, {counts} FROM mcpbox.{table}" + (f" WHERE part = '{part}'" if part else "")
            of = keys.replace("name", f"{part} AS name").replace("day", "date_trunc('day', hour, 'UTC') AS day")
            made = (f"SELECT {keys}, " + ", ".join(f"sum({n})::bigint" for n in counts.split(", "))
                    + f" FROM (SELECT {of}, {counts} FROM mcpbox.execution_stats) s GROUP BY {keys}")
            found += c.execute(f"({own} EXCEPT {made}) UNION ALL ({made} EXCEPT {own})").fetchall()
    return found


def call(c, epoch, tool, at="now()", end=True):
    x = uuid.uuid4()
    assert one(c, f"SELECT mcpbox.management_open(%s, %s, 'local', 'local', %s, %s, '{{}}', '', '', {at}, "
               f"{at} + interval '1 minute', NULL, NULL, NULL)", x, epoch, tool, bytes(32))[0] == "ok"
    if end:
        assert close(c, epoch, x) == "closed"
    return x


def close(c, epoch, x, outcome="done", failure=None):
    return one(c, "SELECT mcpbox.execution_close(%s, %s, %s, %s, true, NULL, now(), 1000, '', '{}', NULL, NULL, NULL, "
               "NULL, NULL, NULL, NULL, NULL, NULL, NULL)", x, epoch, outcome, failure)[0]


def count(c):
    while one(c, "SELECT mcpbox.records_work(250)")[0]:
        pass


@pytest.fixture(scope="module")
def week(schema):
    """More than a week of counts, as a schema before the sums had them; then the sums, by the migration's own
    statements."""
    with schema.pg.connect(OWNER) as owner:
        owner.execute(f"""
            INSERT INTO mcpbox.execution_stats
            SELECT date_trunc('hour', now() - h * interval '1 hour', 'UTC'), 's__t' || t, 'user' || p,
                CASE WHEN p = 1 THEN 'tunnel' ELSE 'local' END, CASE WHEN t = 2 THEN 'test' ELSE 'tool' END,
                CASE WHEN (h + t) % 9 = 0 THEN 'failed' ELSE 'done' END,
                CASE WHEN (h + t) % 9 = 0 THEN 'exception' ELSE '' END, 1 + t, 1000 * t, 100 * h, 10 * p
            FROM generate_series(1, {HOURS}) h, generate_series(1, {TOOLS}) t, generate_series(1, {PRINCIPALS}) p""")
        text = dict(migrations())["figures"].decode()
        fill = text[text.index("LOCK TABLE execution_stats"):text.index("-- Replaces the function of 0015")]
        with owner.transaction():
            owner.execute("SET LOCAL search_path = mcpbox, pg_temp")
            owner.execute("DELETE FROM execution_hours; DELETE FROM execution_days")
            owner.execute(fill)
        owner.execute("VACUUM (ANALYZE)")


@pytest.fixture
def epoch(app):
    e = uuid.uuid4()
    app.execute("SELECT mcpbox.epoch_begin(%s, %s, 'admind')", (e, uuid.uuid4().hex))
    return e


def test_the_migration_sums_what_was_counted(owner, week):
    assert one(owner, "SELECT count(*) FROM mcpbox.execution_stats")[0] == HOURS * TOOLS * PRINCIPALS
    assert one(owner, "SELECT sum(calls) > 0 FROM mcpbox.execution_hours")[0] and differs(owner) == []


def test_what_is_counted_is_in_the_sums(app, owner, week, epoch):
    for tool in ("mcpbox_a", "mcpbox_b", "mcpbox_a"):
        call(app, epoch, tool)
    call(app, epoch, "mcpbox_a", "now() - interval '30 hours'")
    before = one(owner, "SELECT sum(calls) FROM mcpbox.execution_hours")[0]
    count(app)
    assert one(owner, "SELECT sum(calls) FROM mcpbox.execution_hours")[0] == before + 4
    assert differs(owner) == []


def test_a_loss_that_was_none_leaves_the_sums(app, owner, week, epoch):
    """... the call is counted by the end that it has then, and no row of 0 calls stays."""
    tool = "mcpbox_" + uuid.uuid4().hex[:8]
    x = call(app, epoch, tool, end=False)
    assert close(app, epoch, x, "lost", "lost") == "closed"
    owner.execute("INSERT INTO mcpbox.executions_presumed (id) VALUES (%s)", (x,))
    count(app)
    named = "SELECT outcome, calls FROM mcpbox.execution_days WHERE part = 'tool' AND name = %s"
    assert owner.execute(named, (tool,)).fetchall() == [("lost", 1)]
    assert close(app, epoch, x) == "corrected"
    assert owner.execute(named, (tool,)).fetchall() == [] and differs(owner) == []
    count(app)
    assert owner.execute(named, (tool,)).fetchall() == [("done", 1)] and differs(owner) == []


def test_two_that_count_at_once_both_count(schema, owner, week, app, epoch):
    """The later one waits for the rows of the first and adds to them."""
    tools = ["mcpbox_" + uuid.uuid4().hex[:8] for _ in range(5)]
    for tool in tools + tools[::-1]:
        call(app, epoch, tool)
    assert one(owner, "SELECT count(*) FROM mcpbox.execution_queue")[0] == 10
    with schema.pg.connect(APP) as first, schema.pg.connect(APP) as second:
        first.autocommit = False
        assert one(first, "SELECT mcpbox.records_work(5)")[0] == 5
        got = []
        t = threading.Thread(target=lambda: got.append(one(second, "SELECT mcpbox.records_work(5)")[0]))
        t.start()
        blocked(owner, second)
        first.commit()
        t.join(patience(30))
        assert got == [5]
    assert differs(owner) == []
    assert owner.execute("SELECT calls FROM mcpbox.execution_days WHERE part = 'tool' AND name = ANY (%s)",
                         (tools,)).fetchall() == [(2,)] * 5


def plainly(c, since, until, kind=""):
    """The statistics as they are by execution_stats alone."""
    rows = c.execute("SELECT tool, principal, outcome, calls FROM mcpbox.execution_stats WHERE hour >= "
                     "date_trunc('hour', %s, 'UTC') AND hour < %s AND (%s = '' OR kind = %s)",
                     (since, until, kind, kind)).fetchall()

    def of(n):
        sums = {}
        for r in rows:
            calls, errors = sums.get(r[n], (0, 0))
            sums[r[n]] = calls + r[3], errors + (r[3] if r[2] != "done" else 0)
        return sorted(([name, *s] for name, s in sums.items()), key=lambda s: (-s[1], s[0]))[:20]
    return sum(r[3] for r in rows), of(0), of(1)


@pytest.mark.parametrize("hours", [1, 7, 24, 25, 47, 48, 49, 100, 7 * 24])
@pytest.mark.parametrize("ago", [0, 3, 11, 24])
def test_any_span_has_each_call_once(app, week, hours, ago):
    """Days, the hours before them and those after them: none twice, none left out."""
    until = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=ago)
    since = until - datetime.timedelta(hours=hours)
    for kind in ("", "tool"):
        s = stats(app, since, until, "hour", kind=kind)
        total, tools, principals = plainly(app, since, until, kind)
        assert s["total"]["calls"] == total == sum(p["calls"] for p in s["periods"])
        assert [[t["tool"], t["calls"], t["errors"]] for t in s["tools"]] == tools
        assert [[p["principal"], p["calls"], p["errors"]] for p in s["principals"]] == principals


def test_spans_that_end_with_a_day(app, week):
    midnight = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    day = datetime.timedelta(days=1)
    for since, until in ((midnight - 3 * day, midnight), (midnight - day, midnight),
                         (midnight - 2 * day, midnight - day / 2), (midnight - 1.5 * day, midnight)):
        total, tools, _ = plainly(app, since, until)
        s = stats(app, since, until, "hour")
        assert total > 0 and s["total"]["calls"] == total
        assert [[t["tool"], t["calls"], t["errors"]] for t in s["tools"]] == tools


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_days_are_those_of_utc(app, week, zone):
    until = datetime.datetime.now(datetime.timezone.utc)
    since = until - datetime.timedelta(days=6)
    before = stats(app, since, until, "hour")
    app.execute(f"SET timezone = '{zone}'")
    assert stats(app, since, until, "hour") == before and before["total"]["calls"] > 0


def test_names_narrow_the_figures(app, week):
    since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=6)
    s = stats(app, since, period="hour", tool="s__t7")
    assert [t["tool"] for t in s["tools"]] == ["s__t7"] and s["tools"][0]["calls"] == s["total"]["calls"] > 0
    assert sum(p["calls"] for p in s["principals"]) == s["total"]["calls"] and len(s["principals"]) == PRINCIPALS
    s = stats(app, since, period="hour", principal="user1", tool="s__t7")
    assert s["listeners"] == {"tunnel": s["total"]["calls"]}
    assert s["principals"] == [{"principal": "user1", "calls": s["total"]["calls"], "errors": s["total"]["errors"]}]
    s = stats(app, since, period="hour", tool="s__nothing")
    assert s["tools"] == s["principals"] == s["periods"] == [] and s["total"]["calls"] == 0


def test_a_week_is_not_read_row_by_row(app, week):
    """Against a look at each count of the week, which figures were made of before."""
    every = pages(app, "SELECT sum(calls) FROM mcpbox.execution_stats WHERE hour >= now() - interval '7 days'")
    day = pages(app, "SELECT sum(calls) FROM mcpbox.execution_stats WHERE hour >= now() - interval '24 hours'")
    hour, got = (pages(app, f"SELECT mcpbox.dashboard('{p}')") for p in ("1h", "7d"))
    # beside what every dashboard asks for: the hours of one day, and the sums
    assert day < every / 4 and got - hour < every / 2, (every, day, hour, got)
    json.loads(one(app, "SELECT mcpbox.dashboard('7d')")[0])


def test_sums_are_forgotten_with_the_counts(app, owner, week):
    old = "INSERT INTO mcpbox.execution_stats SELECT now() - interval '402 days', 'old', 'p', 'local', 'tool', 'done', '', 1, 1, 1, 1"
    owner.execute(old)
    owner.execute("INSERT INTO mcpbox.execution_hours SELECT now() - interval '402 days', 'tool', 'local', 'done', '', 1, 1, 1, 1")
    owner.execute("INSERT INTO mcpbox.execution_days SELECT 'tool', now() - interval '402 days', 'old', 'tool', 'local', 'done', 1, 1")
    app.execute("SELECT mcpbox.records_expire(1000)")
    for table in ("execution_stats WHERE tool = 'old'", "execution_days WHERE name = 'old'",
                  "execution_hours WHERE hour < now() - interval '401 days'"):
        assert one(owner, f"SELECT count(*) FROM mcpbox.{table}")[0] == 0, table
    assert differs(owner) == []


def test_a_rebuild_makes_the_sums_again(app, owner, week):
    owner.execute("SELECT mcpbox.records_rebuild()")
    for table in SUMS:
        assert one(owner, f"SELECT count(*) FROM mcpbox.{table}")[0] == 0
    count(app)
    assert one(owner, "SELECT sum(calls) > 0 FROM mcpbox.execution_hours")[0] and differs(owner) == []


@pytest.mark.parametrize("attack", ["UPDATE mcpbox.execution_hours SET calls = 0", "DELETE FROM mcpbox.execution_days",
                                    "SELECT mcpbox.execution_sum('{}')", "SELECT mcpbox.execution_count('{}')"])
def test_the_run_time_role_reads_sums_and_no_more(app, attack):
    with pytest.raises(DENIED):
        app.execute(attack)
