"""Records and the activity log by admind alone, whose peers are played."""
import json
import secrets
import time

import pytest

from harness.played.admind import failure
from harness.tlv import tlv

pytestmark = pytest.mark.usefixtures("honest")


def entries(a, principal):
    return a.rows("SELECT subject, count::int FROM mcpbox.activity WHERE principal = %s AND kind = 'call_refused'",
                  principal)


def test_a_caller_of_ever_other_names_does_not_fill_the_activity_log(a):
    """It would push out what others did, and leave no room for what they do."""
    name = "flood" + secrets.token_hex(4)
    with a.ctl() as c:
        token = c.call("TOKEN_CREATE", name=name, scopes="tools:call", listeners="tunnel", allow="none__such",
                       deny="", expires_ms=0, token="")["secret"]
    with a.gateway("tunnel") as gw, a.gateway() as local:
        began, n = time.monotonic(), 900
        for i in range(n):
            gw.call("AUTHORISE", credential=token, tool=f"n{i}", arguments=b"{}")
        assert failure(local.call("AUTHORISE", tool="of_another", arguments=b"{}")) == "UNKNOWN_TOOL"
        took = time.monotonic() - began
    a.until(lambda: sum(r[1] for r in entries(a, "token:" + name)) == n)
    rows = entries(a, "token:" + name)
    # of a second four names; the rest without, once for each reason
    assert len(rows) <= (took + 2) * (4 + 3)
    assert {r[0] for r in rows} > {"", "n0"}
    a.until(lambda: any(r[0] == "of_another" for r in entries(a, "local")))
    assert a.rows("SELECT 1 FROM mcpbox.activity WHERE kind = 'activity_dropped'") == []


def test_a_sandbox_ends_nothing_in_the_future(a):
    """What is newest stands first in all lists."""
    server = "s" + secrets.token_hex(4)
    a.approved_tool(server)
    with a.gateway() as gw:
        m = gw.call("AUTHORISE", tool=f"{server}__greet", arguments=json.dumps({"n": "x"}).encode())
        assert m["_"] == "RUN_ID"
    year = 365 * 86400 * 10**6
    now = time.time_ns() // 1000
    m = a.fakes["sandbox"].call(
        "RECORD", execution=m["execution"], epoch=a.sandbox_epoch, outcome=1, failure=0, delivered=1,
        started_us=now + year, ended_us=2**64 - 1, cpu_us=2**64 - 1, intent=b"", stdout_len=0,
        stdout_result=b'{"content":[]}')
    assert m["_"] == "OK"
    assert a.rows("SELECT started_at <= clock_timestamp() AND ended_at <= clock_timestamp() FROM mcpbox.executions "
                  "WHERE tool = %s", f"{server}__greet") == [(True,)]


def test_a_gateway_of_the_tunnel_leaves_room_for_others(a):
    """It needs no client's credential to keep admind at work: records and administrators are served beside it."""
    with a.gateway("tunnel") as gw, a.pg.connect("postgres") as c:
        c.autocommit = False
        c.execute("LOCK TABLE mcpbox.ended_sessions")
        for _ in range(600):
            gw.start("SESSION_END", session=secrets.token_bytes(16), expires_ms=int(time.time() * 1000) + 60000)
        with a.ctl() as ctl:
            assert ctl.call("ADMIN_QUERY", what="rate_limits", cursor="", limit=3)["_"] == "ADMIN_JSON"
        c.rollback()


SEARCH, TOOL = 11, 4    # common/admin/admin_filter.def, from 1


@pytest.mark.parametrize("what,filters,table", [
    ("executions", [(SEARCH, "-nothing")], "execution_index"), ("executions", [(TOOL, "s__t")], "execution_index"),
    ("activity", [(SEARCH, "nothing")], "activity"), ("audit", [(SEARCH, "nothing")], "audit_log")])
def test_a_slow_list_keeps_no_call_waiting(a, what, filters, table):
    """An administrator's search may take as long as a statement may; intents have their own connection."""
    server = "s" + secrets.token_hex(4)
    a.approved_tool(server)
    with a.gateway() as gw, a.ctl() as ctl, a.pg.connect("postgres") as c:
        c.autocommit = False
        # all that it reads are locked: as if it read for ever
        c.execute(f"LOCK TABLE mcpbox.{table}")
        ctl.start("ADMIN_QUERY", what=what, cursor="", limit=3, filters=tlv(*filters))
        a.until(lambda: a.rows("SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessShareLock'"
                               " AND relation = %s::regclass", "mcpbox." + table))
        m = gw.call("AUTHORISE", tool=f"{server}__greet", arguments=json.dumps({"n": "x"}).encode())
        assert m["_"] == "RUN_ID", m    # while the list still waits for its lock
        c.rollback()
