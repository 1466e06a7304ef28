"""Ten thousand tools and a million records: every list finds its rows by an
index, whatever it is filtered by; a server with a thousand tools serves them.

What PostgreSQL did is its own word: auto_explain logs the plan of each statement
that admind ran, those inside functions as well."""
import glob
import json
import os
import re
import uuid

import psycopg
import pytest

from harness import scale
from harness.clients.mcp import Client
from harness.instance import SRC, Instance
from harness.ipc import Peer, Table, socket_as
from harness.patience import until
from harness.played.admind import preimage
from harness.tlv import tlv

pytestmark = pytest.mark.large

# A scan of so few rows is not worth an index.
SMALL = 1000
# Rows looked at for one page of 50, with all that hangs on them: more would be
# a scan under the name of an index.
ROWS_MAX = 12_000
THOUSAND = 1000
# What only a scan can answer, each with its reason.
SCANS = {
    # a word inside a name that no word begins with: names alone, 1 MB
    "search inside names": {"tool_names"},
    # a text that is in no row: the log is bounded at 100,000 short ones
    "activity": {"activity"},
}
ROLE = {"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
        "auto_explain.log_analyze": "on", "auto_explain.log_timing": "off",
        "auto_explain.log_nested_statements": "on", "auto_explain.log_format": "json"}
SERVER, TOOL = "00000001-0000-7000-8000-000000000001", "00000002-0000-7000-8000-000000000003"


def sources():
    return "".join(open(f, encoding="ascii").read()
                   for f in sorted(glob.glob(os.path.join(SRC, "admind", "admin", "adminq_*.c"))))


LISTS = sorted(re.findall(r'\{"(\w+)",\s*QUESTION_LIST', sources()))
FILTERS = re.findall(r"^F\((\w+),", open(os.path.join(SRC, "common", "admin", "admin_filter.def"),
                                         encoding="ascii").read(), flags=re.M)
# A value of each filter that some rows have, by list where it means another
# thing there; the rarer the harder.
VALUES = {"KIND": "tool", "STATE": "pending", "SERVER": SERVER, "TOOL": "bulk_1__tool_3",
          "PRINCIPAL": "token:t10", "LISTENER": "tunnel", "OUTCOME": "killed",
          "FAILURE": "timeout", "SINCE": "2020-01-01T00:00:00Z", "UNTIL": "2099-01-01T00:00:00Z",
          "SEARCH": "tool_77", "ACTOR": "alice", "ACTION": "setting_changed",
          "OBJECT": "tool bulk_1__tool_7", "LEVEL": "error", "PERIOD": "day", "ISSUER": "few", "ORDER": "newest"}
NEEDS_A_FILTER = ("versions", "export_lines", "source_tools")
OTHER = {("export_lines", "OBJECT"): SERVER, ("source_tools", "OBJECT"): SERVER, ("tools", "STATE"): "pending_review", ("tools", "OBJECT"): "prompt", ("servers", "STATE"): "running",
         ("executions", "STATE"): "open", ("executions_export", "STATE"): "open",
         ("executions", "KIND"): "management", ("executions_export", "KIND"): "management",
         ("modules", "STATE"): "available", ("network", "STATE"): "active",
         ("tokens", "STATE"): "active", ("identities", "STATE"): "withdrawn", ("activity", "KIND"): "refused"}


#: admind removes old records by its own clock, so also while a test looks; these
#: statements are judged in test_records.py.
UPKEEP = re.compile(r"(WITH old AS \( )?DELETE FROM (executions|activity|execution_stats)\b")


class Log:
    """The plans that PostgreSQL logged since the last look."""

    def __init__(self, instance, db):
        self.folder = os.path.join(instance.state, "pg", "log")
        self.at, self.db = {}, db
        self.plans()

    def plans(self):
        """All up to now: the collector has them when it has the line that follows them."""
        last, found = "mark " + uuid.uuid4().hex, []
        self.db.execute(f"DO $$ BEGIN RAISE LOG '{last}'; END $$")
        until(lambda: self.more(found, last))
        return found

    def more(self, found, last):
        """Adds the plans of the lines since the last look; is the last line among them?"""
        came = False
        for path in sorted(glob.glob(os.path.join(self.folder, "*.json"))):
            with open(path, encoding="utf-8") as f:
                f.seek(self.at.get(path, 0))
                while (line := f.readline()).endswith("\n"):
                    self.at[path] = f.tell()
                    m = json.loads(line)
                    came = came or m["message"] == last
                    if m.get("user") == "mcpbox_app" and " plan:\n" in m["message"]:
                        found.append(json.loads(m["message"].split(" plan:\n", 1)[1]))
        return came


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


class Scale:
    def __init__(self, instance):
        self.instance = instance
        self.db = psycopg.connect(f"host={instance.run('postgresql')} user=postgres dbname=mcpbox",
                                  autocommit=True)
        scale.fill(self.db)
        self.explain(True)
        self.log = Log(instance, self.db)
        self.hash = self.db.execute("SELECT encode(hash, 'hex') FROM mcpbox.tool_versions WHERE exposed_name ="
                                    " 'bulk_1__tool_7'").fetchone()[0]
        self.size = {r: n for r, n in self.db.execute(
            "SELECT relname, reltuples FROM pg_class WHERE relnamespace = 'mcpbox'::regnamespace")}

    def explain(self, on):
        for key, value in ROLE.items():
            self.db.execute(f"ALTER ROLE mcpbox_app SET {key} = '{value}'" if on else
                            f"ALTER ROLE mcpbox_app RESET {key}")
        self.db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE usename = 'mcpbox_app'")
        until(lambda: (r := self.instance.ctl("status", check=False)).returncode == 0 and "counts: -" not in r.stdout,
              20, 0.1)

    def judge(self, what, allowed=()):
        """Every statement that ran since the last look: large tables by their
        indexes only. Returns the rows looked at."""
        most = 0
        for p in self.log.plans():
            text = " ".join(p["Query Text"].split())
            if UPKEEP.match(text):
                continue
            looked = 0
            for n in nodes(p["Plan"]):
                table = n.get("Relation Name", "")
                rows = (n.get("Actual Rows", 0) + n.get("Rows Removed by Filter", 0)
                        + n.get("Rows Removed by Index Recheck", 0)) * n.get("Actual Loops", 1)
                if table:
                    looked += rows
                if n["Node Type"].endswith("Seq Scan") and self.size.get(table, 0) > SMALL \
                        and n.get("Actual Loops", 1) > 0 and table not in allowed:
                    raise AssertionError((what, "scans", table, text[:300]))
            most = max(most, looked)
            assert looked <= ROWS_MAX or allowed, (what, "looks at", looked, "rows", text[:300])
        return most


@pytest.fixture(scope="module")
def big():
    i = Instance(sets=["admind:breakers=no"],
                 pg_sets=["logging_collector=on", "log_destination=jsonlog"])
    try:
        yield Scale(i)
    finally:
        i.close()


@pytest.fixture(scope="module")
def ctl(big):
    with Peer(Table(), socket_as(0, [], big.instance.run("admind", "ctl.sock"))) as c:
        yield c


def page(ctl, what, filters, cursor="", **kw):
    m = ctl.call("ADMIN_QUERY", what=what, filters=tlv(*((1 + FILTERS.index(f), v) for f, v in filters.items())),
                 cursor=cursor, limit=50, **kw)
    return json.loads(m["json"]) if m["_"] == "ADMIN_JSON" else m


def test_that_much_is_there(big):
    counts = {t: big.db.execute(f"SELECT count(*) FROM mcpbox.{t}").fetchone()[0]
              for t in ("tools", "executions", "callable")}
    assert counts["tools"] == scale.TOOLS and counts["executions"] >= scale.EXECUTIONS
    assert counts["callable"] >= scale.TOOLS // 2


def test_a_scan_would_be_seen(big, ctl):
    """The judge finds what it is there for."""
    big.log.plans()
    name, definition = big.db.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE"
        " pg_get_indexdef(indexrelid) LIKE '%%ON mcpbox.execution_index USING btree (tool,%%'"
    ).fetchone()
    big.db.execute(f"DROP INDEX {name}")
    try:
        page(ctl, "executions", {"TOOL": "bulk_1__tool_nothing"})
        with pytest.raises(AssertionError, match="looks at|scans"):
            big.judge("a list without its index")
    finally:
        big.db.execute(definition)
        big.db.execute("ANALYZE mcpbox.execution_index")


@pytest.mark.parametrize("what", LISTS)
def test_every_list_by_every_filter_uses_an_index(big, ctl, what):
    assert len(LISTS) >= 10
    asked = 0
    big.log.plans()
    for f in [None, *FILTERS]:
        filters = {f: big.hash if f == "HASH" else OTHER.get((what, f), VALUES[f])} if f else {}
        first = page(ctl, what, filters)
        if "items" not in first:
            assert first["_"] == "REFUSED", first
            assert f is not None or what in NEEDS_A_FILTER, first	# it takes no such filter
            continue
        asked += 1
        if first["next_cursor"]:
            assert page(ctl, what, filters, first["next_cursor"])["items"], (what, f)
    assert asked
    big.judge(what, SCANS.get(what, ()))


def test_the_last_page_is_as_quick_as_the_first(big, ctl):
    """By a cursor in the midst and near the end."""
    for n in (10_000, 500_000, 999_900):
        at, id_ = big.db.execute(
            "SELECT (extract(epoch FROM created_at) * 1000000)::bigint, id FROM mcpbox.executions "
            "ORDER BY created_at DESC LIMIT 1 OFFSET %s", (n,)).fetchone()
        big.log.plans()
        assert page(ctl, "executions", {}, f"{at}.{id_}")["items"]
        big.judge(("executions", n))
    big.log.plans()
    assert page(ctl, "tools", {}, f"00000002-0000-7000-8000-{scale.TOOLS - 20:012x}")["items"]
    big.judge("tools, last page")


def listed(c):
    """Every tool, page by page."""
    cursor = None
    while True:
        r = c.request("tools/list", {"cursor": cursor} if cursor else {}).result
        yield from r["tools"]
        cursor = r.get("nextCursor")
        if not cursor:
            return


def test_management_tools_use_indexes(big):
    """Each that only reads, with the arguments that its schema asks for."""
    known = {"server_id": SERVER, "tool_id": TOOL, "query": "weather number", "page": 1,
             "from_version": 1, "to_version": 1, "version": 1, "name": "bulk_1__tool_3"}
    with Client(big.instance.address) as c:
        asked = []
        big.log.plans()
        for t in listed(c):
            schema = t["inputSchema"]
            if (not t["name"].startswith("mcpbox_") or not t["annotations"].get("readOnlyHint")
                    or any(k not in known for k in schema.get("required", ()))):
                continue
            r = c.call(t["name"], {k: known[k] for k in schema.get("required", ())})
            assert r.result, (t["name"], r)
            asked.append(t["name"])
        assert len(asked) >= 8, asked
        big.judge("management tools")
        r = c.call("mcpbox_search_tools", {"query": "ool_777"})
        assert "tool_777" in json.dumps(r.result)
        big.judge("search inside names", SCANS["search inside names"])


def test_of_a_common_word_only_the_best_are_looked_up(big):
    """250 are ranked; what serves, and on which server, is asked of the first."""
    with Client(big.instance.address) as c:
        for words in ("weather 77", "number"):
            big.log.plans()
            assert len(c.manage("mcpbox_search_tools", query=words)["tools"]) == 10
            assert big.judge(words) <= 400


def test_objects_use_indexes(big, ctl):
    names = re.findall(r'\{"(\w+)",\s*QUESTION_(OBJECT|NAMED|SINGLE)', sources())
    assert len(names) >= 8
    execution = big.db.execute("SELECT id FROM mcpbox.executions LIMIT 1").fetchone()[0]
    request = "00000004-0000-7000-8000-000000000003"
    ids = {"server": SERVER, "tool": TOOL, "execution": str(execution), "comments": request,
           "version": f"{TOOL}/1", "limits": SERVER, "setting": "breaker_reset_s",
           "version_diff": f"{TOOL}/1-1", "token": "bulk7"}
    singles = {"executions", "tools", "audit_log", "approval_requests", "tool_versions",
               "execution_stats", "execution_days", "activity", "api_tokens"}
    for single in (False, True):
        big.log.plans()
        for what, shape in names:
            if (shape == "SINGLE") == single:
                ctl.call("ADMIN_QUERY", what=what, id="" if single else ids.get(what, SERVER))
        # figures of everything count everything
        big.judge("objects", allowed=singles if single else ())


@pytest.mark.parametrize("period", ["1h", "6h", "24h", "7d"])
def test_a_dashboard_reads_counts_of_one_day_at_most(big, ctl, period):
    """Each statement of it: the rest of a week comes from sums."""
    week, day = (big.db.execute("SELECT count(*) FROM mcpbox.execution_stats WHERE hour >= "
                                "date_trunc('hour', now() - %s::interval)", (span,)).fetchone()[0]
                 for span in ("7 days", "25 hours"))
    assert day < week / 5 and week > 500_000
    big.log.plans()
    ask = page(ctl, "dashboard", {"PERIOD": period})
    assert ask["calls"]["calls"] > 0 and len(ask["busiest_servers"]) == 10 and len(ask["top_tools"]) == 5
    looked = {}
    for p in big.log.plans():
        for n in nodes(p["Plan"]):
            if table := n.get("Relation Name", ""):
                looked[table] = looked.get(table, 0) + n.get("Actual Loops", 1) * (
                    n.get("Actual Rows", 0) + n.get("Rows Removed by Filter", 0) + n.get("Rows Removed by Index Recheck", 0))
    assert 0 < looked["execution_stats"] <= day, looked
    assert looked["execution_hours"] <= SMALL * 3 and looked.get("execution_days", 0) < week / 5, looked


def made(big, c, count, server="among"):
    """Drafts by the functions that admind calls, reviewed by the real vault."""
    server_id = c.manage("mcpbox_create_server", name=server)["id"]
    for n in range(count):
        tool, version = uuid.uuid4(), uuid.uuid4()
        big.db.execute("SELECT mcpbox.create_tool(%s, %s, 'local')", (version, preimage(
            uuid.UUID(server_id).bytes, tool.bytes, server, f"tool_{n}",
            code="def main(n: int = 0) -> int:\n    return n\n",
            schema=b'{"type":"object","properties":{"n":{"type":"integer"}}}')))
        # no principal has more than 256 waiting
        big.db.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', %s)",
                       (uuid.uuid4(), uuid.uuid4(), tool, f"token:author{n // 100}"))
    with Peer(Table(), socket_as(0, [], big.instance.run("admind-vault", "ctl.sock"))) as vault:
        for request, digest in big.db.execute(
                "SELECT a.id, a.hash FROM mcpbox.approval_requests a JOIN mcpbox.servers s"
                " ON s.id = a.server_id WHERE s.name = %s AND a.state = 'pending'", (server,)):
            assert vault.call("APPROVE", approval=request.bytes, reviewed=digest)["_"] == "OK"
    return [f"{server}__tool_{n}" for n in range(count)]


def test_a_call_of_a_tool_among_many_uses_indexes(big):
    with Client(big.instance.address) as c:
        name = made(big, c, 1)[0]
        assert c.call(name, {"n": 1}).result
        big.log.plans()
        assert c.call(name, {"n": 2}).result
        until(lambda: big.db.execute("SELECT count(*) FROM mcpbox.executions WHERE tool = %s AND state = 'closed'",
                                     (name,)).fetchone() == (2,))
        big.judge("a call")


def test_the_catalogue_is_listed_whole(big):
    """Six thousand serving tools, in pages; each name once."""
    serving = big.db.execute("SELECT count(DISTINCT tool_id) FROM mcpbox.callable").fetchone()[0]
    with Client(big.instance.address) as c:
        seen = [t["name"] for t in listed(c)]
        bulk = [n for n in seen if not n.startswith("mcpbox_")]
        assert len(bulk) == len(set(bulk)) == serving


def test_a_thousand_tools_on_one_server(big):
    """Made, reviewed, listed in pages of both lists, and called."""
    big.explain(False)	# a thousand reviews need no plans
    with Client(big.instance.address) as c:
        names = made(big, c, THOUSAND, "thousand")
        server = next(s["id"] for s in big.instance.ctl_json("query", "servers", "--limit", "200")
                      ["items"] if s["name"] == "thousand")
        mine = [t["name"] for t in listed(c) if t["name"].startswith("thousand__")]
        assert sorted(mine) == sorted(names)
        seen, page_ = [], 1
        while True:
            r = c.manage("mcpbox_list_tools", server_id=server, page=page_, page_size=100)
            assert r["total"] == THOUSAND
            seen += [t["name"] for t in r["tools"]]
            if len(r["tools"]) < 100:
                break
            page_ += 1
        assert len(seen) == len(set(seen)) == THOUSAND
        for n in (0, 1, THOUSAND // 2, THOUSAND - 1):
            assert c.call(names[n], {"n": n}).result["content"][0]["text"] == str(n)
        c.manage("mcpbox_stop_server", server_id=server)
        assert not [t for t in listed(c) if t["name"].startswith("thousand__")]
