"""sql/schema/network.sql: what a grant means, how it reaches a call, what a call's
record says of the network; attacked as in test_database.py."""
import json
import uuid

import psycopg
import pytest

from harness.pg import ROOT
from harness.tlv import untlv
from database.test_approvals import act, callable_, decide, network, serve, state
from database.test_database import (Tool, call_open, epoch, guarded, one, open_call, refused)
from database.test_limits_modules import add

VECTORS = ROOT / "tests/golden/grantreq/needs.txt"
REPORT = [{"host": "api.example.org", "address": "203.0.113.9", "port": 443, "protocol": "tcp",
           "verdict": "ok", "reason": "", "bytes_in": 10, "bytes_out": 5, "started_ms": 1, "duration_ms": 2}]


def granted(c, tool, host, port=0):
    r = network(c, tool, host, port, person=True)
    decide(c, r)
    return r


# --- spelling -----------------------------------------------------------------


def needs():
    for line in VECTORS.read_text().splitlines():
        text, _, want = line.partition(" ")
        yield bytes.fromhex(text if text != "-" else ""), want


def test_needs_are_spelled_as_the_program_spells_them(app):
    """The golden vectors of grantreq_need(): the vault must read what is covered here."""
    n = 0
    for text, want in needs():
        if b"\0" in text:
            continue                            # no text of PostgreSQL's
        row = one(app, "SELECT proto, host, port, wrong FROM mcpbox.need_parts(%s)", text.decode())
        got = "-" if row[3] is not None else " ".join(map(str, row[:3]))
        assert got == want, (text, row)
        n += 1
    assert n >= 80


@pytest.mark.parametrize("name, alabel", [
    ("b\u00fccher.example", "xn--bcher-kva.example"), ("B\u00dcCHER.example", "xn--bcher-kva.example"),
    ("\u4f8b\u3048.\u30c6\u30b9\u30c8", "xn--r8jz45g.xn--zckzah"), ("stra\u00dfe.example", "xn--strae-oqa.example"),
    ("\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444", "xn--e1afmkfd.xn--p1ai"),
    ("a\u3002b\u00fc.example", "a.xn--b-eha.example"), ("*.b\u00fc.example", "*.xn--b-eha.example")])
def test_an_international_name_is_refused_with_its_ascii_form(app, name, alabel):
    with pytest.raises(psycopg.Error) as e:
        network(app, Tool(app), name)
    assert "as " + alabel in e.value.diag.message_primary, e.value
    # which is asked for as any other
    network(app, Tool(app), alabel)


def test_a_version_names_hosts_that_can_be_granted(app):
    t = Tool(app)
    for bad in ("http://example.org", "169.254.169.254:80", "example.org:0", "b\u00fccher.example", "*.org",
                "localhost:80", "udp:example.org", "a b.org"):
        refused(app, "invalid_arguments", "SELECT mcpbox.add_version(%s, %s, '', 'local')", uuid.uuid4(),
                with_need(t, bad))
    for good in ("*", "udp:time.example.org:123", "[2001:db8::1]:443", "192.168.1.5:8123", "127.0.0.1:8080"):
        add(app, t, (21, good))


def with_need(tool, text):
    from harness.played.admind import preimage
    from database.test_limits_modules import version_with
    return version_with(preimage(tool.server.bytes, tool.id.bytes, tool.server_name, tool.name), (21, text))


# --- meaning ------------------------------------------------------------------


def test_covering(app):
    def covers(grant, need):
        return one(app, "SELECT mcpbox.grant_covers(g.proto, g.host, g.port, n.proto, n.host, n.port) "
                   "FROM mcpbox.need_parts(%s) g, mcpbox.need_parts(%s) n", grant, need)[0]
    for grant, need in (
            # without a port: 80 and 443
            ("a.example.org", "a.example.org:443"), ("a.example.org", "a.example.org:80"),
            ("a.example.org", "A.example.org."), ("a.example.org:8443", "a.example.org"),
            ("a.example.org:8443", "a.example.org:8443"), ("*.example.org", "x.example.org"),
            ("*.example.org", "x.y.example.org:443"), ("*.example.org", "*.example.org"),
            ("*.example.org", "*.x.example.org"), ("*", "example.org"), ("*", "*"), ("*", "*.example.org:443"),
            ("*", "93.184.216.34"), ("*", "2606:2800:220:1::1"), ("*:8080", "example.org:8080"),
            ("2001:db8::1", "2001:DB8:0::1"), ("192.168.1.5:8123", "192.168.1.5:8123"),
            ("192.168.1.5:8123", "192.168.1.5"), ("127.0.0.1:5000", "127.0.0.1:5000"), ("[::1]:80", "::1"),
            ("udp:t.example.org:123", "udp:t.example.org:123"), ("udp:*:53", "udp:x.example.org:53")):
        assert covers(grant, need), (grant, need)
    for grant, need in (
            ("a.example.org", "a.example.org:8443"), ("a.example.org:443", "a.example.org:80"),
            ("a.example.org", "a.example.org:22"), ("*.example.org", "example.org"),
            ("*.example.org", "evilexample.org"), ("a.example.org", "*.example.org"),
            ("a.example.org", "b.example.org"), ("*.a.example.org", "*.example.org"),
            ("*.example.org:443", "x.example.org:80"), ("*.example.org", "*"), ("a.example.org", "*"),
            ("*", "example.org:8443"), ("*", "192.168.1.5:80"), ("*", "10.0.0.1"), ("*", "127.0.0.1:80"),
            ("*", "::1"), ("*", "[fd00::7]:443"), ("*", "100.64.0.1"), ("192.168.1.5:80", "192.168.1.6:80"),
            ("192.168.1.5", "192.168.1.5:80"), ("192.168.1.5:80", "192.168.1.5:443"),
            ("udp:t.example.org:123", "t.example.org:123"), ("t.example.org:123", "udp:t.example.org:123"),
            ("*", "udp:t.example.org:123"), ("a-example.org", "axexample.org")):
        assert not covers(grant, need), (grant, need)


def test_asking_says_what_is_missing(app):
    def ask(tool, host, port=0, person=True):
        r = uuid.uuid4()
        return r, one(app, "SELECT host, port, proto, asked, undeclared, tools FROM mcpbox.request_network("
                      "%s, %s, NULL, %s, %s, %s, 'x', 'local', %s)", r, uuid.uuid4(), [tool.id], host, port, person)
    t = Tool(app)
    add(app, t, (21, "api.example.org:8443"))
    assert ask(t, "API.example.org.", 8443)[1][:5] == ("api.example.org", 8443, "tcp", "api.example.org:8443", None)
    assert ask(t, " www.example.org:444 ")[1][:5] == ("www.example.org", 444, "tcp", "www.example.org:444", t.name)
    assert ask(t, "udp:time.example.org:123")[1][:5] == (
        "time.example.org", 123, "udp", "udp:time.example.org:123", t.name)
    assert ask(t, "[2001:db8::1]:443")[1][3] == "[2001:db8::1]:443"
    # 80 and 443 are no use to a tool that names 8443 alone
    r, said = ask(t, "api.example.org")
    assert said[4] == t.name and json.loads(said[5])[0]["declared"] is False
    decide(app, r)
    with pytest.raises(psycopg.Error) as e:
        ask(t, "api.example.org")
    assert "granted" in e.value.diag.message_primary and f"requires of {t.name}" in e.value.diag.message_primary
    add(app, t, (21, "*.example.org"))
    with pytest.raises(psycopg.Error) as e:
        ask(t, "api.example.org", 443)
    assert "granted" in e.value.diag.message_primary and "requires" not in e.value.diag.message_primary
    for host, port, why in (("a.org:1", 2, "another"), ("192.168.1.5", 0, "192.168.1.5:8080"),
                            ("127.0.0.1", 0, "127.0.0.1:8080"), ("fd00::1", 0, "[fd00::1]:8080"),
                            ("udp:a.org", 0, "port"), ("localhost", 80, "127.0.0.1:8080")):
        with pytest.raises(psycopg.Error) as e:
            ask(t, host, port)
        assert why in e.value.diag.message_primary, (host, e.value)


def test_a_request_shows_and_seals_what_it_is(app):
    t = Tool(app)
    serve(app, t, "udp:time.example.org:123", "time.example.org:123")
    r = network(app, t, "udp:time.example.org:123", 0)
    pre = one(app, "SELECT preimage FROM mcpbox.grant_requests WHERE id = %s", r)[0]
    assert b"udp" in pre and b"time.example.org" in pre and pre.count(t.hash) == 1
    item = json.loads(one(app, "SELECT mcpbox.approval_item(a) FROM mcpbox.approval_requests a WHERE id = %s", r)[0])
    assert (item["proto"], item["host"], item["port"]) == ("udp", "time.example.org", 123)
    decide(app, r)
    assert not callable_(app, t)
    r = network(app, t, "time.example.org:123", 0)  # the same over tcp is another
    decide(app, r)
    assert one(app, "SELECT mcpbox.server_hosts(%s)", t.server)[0] == [
        "time.example.org:123", "udp:time.example.org:123"]


# --- network_access_policy ----------------------------------------------------


def test_the_policy_is_a_grant(app, owner):
    def policy(p):
        return act(app, "network_policy", str(t.server), {"policy": p}, role="administrator")
    t = Tool(app)
    serve(app, t, "anything.example.org")
    assert not callable_(owner, t)
    shown = json.loads(one(app, "SELECT mcpbox.server_json(%s)", t.server)[0])
    assert shown["network_access_policy"] == "require_approval"
    said = policy("allow_all_public")
    assert said["network_access_policy"] == "require_approval" and said["pending_request"]
    assert policy("allow_all_public")["pending_request"] == said["pending_request"]     # asked for once
    assert not callable_(owner, t)                                                  # nobody approved yet
    decide(app, uuid.UUID(said["pending_request"]))
    assert callable_(owner, t)
    said = policy("allow_all_public")
    assert said["network_access_policy"] == "allow_all_public" and said["pending_request"] is None
    assert json.loads(one(app, "SELECT mcpbox.server_json(%s)", t.server)[0])[
        "network_access_policy"] == "allow_all_public"
    said = policy("require_approval")
    assert said["network_access_policy"] == "require_approval" and not callable_(owner, t)
    r = uuid.UUID(policy("allow_all_public")["pending_request"])
    assert policy("require_approval")["pending_request"] is None and state(app, r) == "superseded"
    for wrong in ("", "deny", None):
        refused(app, "invalid_params", "SELECT mcpbox.admin_act('network_policy', 'anna', 'administrator', %s, "
                "NULL, '', %s)", str(t.server), json.dumps({"policy": wrong}))
    refused(app, "not_found", "SELECT mcpbox.admin_act('network_policy', 'anna', 'administrator', %s, NULL, '', %s)",
            str(uuid.uuid4()), json.dumps({"policy": "require_approval"}))


# --- in calls -----------------------------------------------------------------


def material(c, server_id, *needs):
    got = untlv(one(c, "SELECT mcpbox.network_material(%s, %s)", server_id, list(needs))[0])
    assert [t for t, _ in got] == [31, 32] * (len(got) // 2)
    return [v for t, v in got if t == 32]


def hosts(pres):
    from database.test_approvals import fields
    return [dict(fields(p))[13].decode() for p in pres]


def test_a_context_gets_the_grants_it_may_use(app):
    t = Tool(app)
    away = granted(app, t, "gone.example.org")
    for host, port in (("api.example.org", 0), ("*.example.org", 8443), ("other.example.net", 0), ("*", 0),
                       ("192.168.1.5", 8123), ("udp:time.example.org:123", 0)):
        granted(app, t, host, port)
    act(app, "approval_revoke", str(away), {"reason": "x"})
    elsewhere = Tool(app)
    granted(app, elsewhere, "api.example.org")
    assert hosts(material(app, t.server, "api.example.org")) == ["*", "*.example.org", "192.168.1.5",
                                                                  "api.example.org"]
    assert hosts(material(app, t.server, "api.example.org:443")) == ["*", "api.example.org"]
    assert hosts(material(app, t.server, "*")) == ["*", "*.example.org", "192.168.1.5", "api.example.org",
                                                  "other.example.net"]
    assert hosts(material(app, t.server, "udp:time.example.org:123")) == ["time.example.org"]
    assert hosts(material(app, t.server, "192.168.1.5:8123")) == ["192.168.1.5"]
    assert material(app, t.server) == [] and material(app, uuid.uuid4(), "*") == []
    pre, seal = one(app, "SELECT q.preimage, s.seal FROM mcpbox.network_grants g JOIN mcpbox.grant_requests q "
                    "ON q.id = g.request_id JOIN mcpbox.approval_seals s ON s.request_id = g.request_id "
                    "WHERE g.server_id = %s AND g.host = '192.168.1.5'", t.server)
    assert material(app, t.server, "192.168.1.5:8123") == [pre] and seal == b"seal"


def limits_at(c, t):
    return one(c, "SELECT mcpbox.limits_at(l.updated_at, s.id, v.requires) FROM mcpbox.servers s "
               "JOIN mcpbox.tool_versions v ON v.id = %s LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id "
               "WHERE s.id = %s", t.version, t.server)[0]


def kept(c, t, e):
    return one(c, "SELECT limits_at FROM mcpbox.callable WHERE version_id = %s AND epoch = %s", t.version, e)[0]


def test_a_context_of_other_grants_gets_no_row(app):
    """Whatever changed of them: what was sealed from what was, runs no more."""
    t, e = Tool(app), epoch(app)
    serve(app, t, "api.example.org")
    first = granted(app, t, "api.example.org")
    at = limits_at(app, t)
    assert at is not None and kept(app, t, e) == at and call_open(app, t, e, limits=at)[1] == "ok"
    more = granted(app, t, "api.example.org", 8443)
    now = limits_at(app, t)
    assert now > at and kept(app, t, e) == now and call_open(app, t, e, limits=at)[1] == "stale"
    assert call_open(app, t, e, limits=now)[1] == "ok"
    act(app, "approval_revoke", str(more), {"reason": "x"})
    last = limits_at(app, t)
    assert last > now and kept(app, t, e) == last and call_open(app, t, e, limits=now)[1] == "stale"
    assert call_open(app, t, e, limits=last)[1] == "ok"
    act(app, "approval_revoke", str(first), {"reason": "x"})
    assert call_open(app, t, e, limits=limits_at(app, t))[1] == "missing_grant"


def test_who_needs_no_host_hears_nothing_of_grants(app):
    t, e = Tool(app).approve(), epoch(app)
    for host in ("a.example.org", "*"):
        granted(app, t, host)
    assert limits_at(app, t) is None and kept(app, t, e) is None and call_open(app, t, e)[1] == "ok"


def test_the_time_of_a_change_rises_whatever_the_clock_does(app, owner):
    t = Tool(app)
    a = granted(app, t, "a.example.org")
    with pytest.raises(psycopg.Error):
        app.execute("UPDATE mcpbox.network_grants SET changed_at = now() WHERE request_id = %s", (a,))
    guarded(owner, "UPDATE mcpbox.network_grants SET changed_at = '2100-01-01' WHERE request_id = %s", a)
    before = one(app, "SELECT mcpbox.network_changed(%s)", t.server)[0]
    act(app, "approval_revoke", str(a), {"reason": "x"})
    granted(app, t, "b.example.org")
    times = [r[0] for r in app.execute("SELECT changed_at FROM mcpbox.network_grants WHERE server_id = %s "
                                       "ORDER BY changed_at", (t.server,)).fetchall()]
    assert len(set(times)) == 2 and times[0] > before


def test_running_calls_are_told(app):
    t, e, other = Tool(app), epoch(app), epoch(app)
    serve(app, t, "*.example.org")
    granted(app, t, "*.example.org")
    plain = Tool(app).approve()
    assert open_call(app, plain, e)[1] == "ok"

    def regrants(who=e):
        return [(s, hosts(unpack(m))) for s, m in app.execute(
            "SELECT server_id, material FROM mcpbox.network_regrants(%s)", (who,)).fetchall()]
    assert regrants() == []
    i, how = open_call(app, t, e)
    assert how == "ok" and regrants() == [(t.server, ["*.example.org"])] and regrants(other) == []
    more = granted(app, t, "x.example.org", 8443)
    assert regrants() == [(t.server, ["*.example.org", "x.example.org"])]
    act(app, "approval_revoke", str(more), {"reason": "x"})
    assert regrants() == [(t.server, ["*.example.org"])]
    calls = "SELECT * FROM mcpbox.network_calls(%s, %s)"
    assert app.execute(calls, (e, t.server)).fetchall() == [(i,)]
    assert app.execute(calls, (other, t.server)).fetchall() == [] == app.execute(calls, (e, plain.server)).fetchall()


def test_an_old_change_is_no_news(app, owner):
    """A server whose grants rested long before its calls began is not told again at each change of the catalogue."""
    t, e = Tool(app), epoch(app)
    serve(app, t, "api.example.org")
    granted(app, t, "api.example.org")
    for later, told in (("6 minutes", []), ("4 minutes", [(t.server,)])):
        assert one(app, "SELECT mcpbox.execution_open(%s, 'tool', %s, %s, %s, 'local', 'local', %s, %s, '{}', 'c', "
                   "'p', now() + %s, now() + interval '1 hour')", uuid.uuid4(), t.version, t.hash, e,
                   f"{t.server_name}__{t.name}", bytes(32), later)[0] == "ok"
        assert app.execute("SELECT server_id FROM mcpbox.network_regrants(%s)", (e,)).fetchall() == told


def unpack(m):
    return [v for t, v in untlv(m) if t == 32]


# --- records ------------------------------------------------------------------


def shown(c, i):
    return one(c, "SELECT network FROM mcpbox.executions_search(%s, '', '', '', '', '', '', '', '-infinity', "
               "'infinity', 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 5)", str(i))[0]


def close(c, i, e, network, many=False):
    if many:
        return c.execute("SELECT * FROM mcpbox.executions_close(%s, %s, '{done}', '{NULL}', '{t}', '{NULL}', "
                         "ARRAY[now()], '{1}', '{\"\"}', '{\"{}\"}', %s)", (e, [i], [network])).fetchall() == [(i,)]
    return one(c, "SELECT mcpbox.execution_close(%s, %s, 'done', NULL, true, now(), now(), 1, '', '{}', NULL, NULL, "
               "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, %s)", i, e, network)[0] == "closed"


@pytest.mark.parametrize("many", [False, True])
def test_a_record_says_where_a_call_connected(app, many):
    t, e = Tool(app).approve(), epoch(app)
    i, _ = open_call(app, t, e)
    assert close(app, i, e, json.dumps(REPORT), many)
    assert shown(app, i) == REPORT
    i, _ = open_call(app, t, e)
    assert close(app, i, e, "", many) and shown(app, i) is None


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("text", [
    "{", "[", "null", "{}", "1", '"x"', '[{"a":1}', '[1] [2]', "[" * 16000, '["' + "x" * 16384 + '"]', '[nan]',
    "'; DROP TABLE x; --", '["\\ud800"]x', "\u2028"])
def test_what_is_no_report_is_said_to_be_none(app, text, many):
    """A taken-over sandbox: its row closes all the same, and all who show it get JSON."""
    t, e = Tool(app).approve(), epoch(app)
    i, _ = open_call(app, t, e)
    assert close(app, i, e, text, many)
    assert shown(app, i) == [{"verdict": "unreadable"}]


def test_a_report_is_of_an_ending(app, owner):
    t, e = Tool(app).approve(), epoch(app)
    i, _ = open_call(app, t, e)
    for change in ("network = '[]'", "network = '[]', state = 'open'"):
        with pytest.raises(psycopg.Error):
            owner.execute(f"UPDATE mcpbox.executions SET {change} WHERE id = %s", (i,))
        owner.rollback()
    with pytest.raises(psycopg.Error):
        app.execute("UPDATE mcpbox.executions SET network = '[]' WHERE id = %s", (i,))
    assert close(app, i, e, "[]")
    guarded(owner, "UPDATE mcpbox.executions SET network = NULL WHERE id = %s", i)


def test_calls_are_found_by_where_they_connected(app):
    t, e = Tool(app).approve(), epoch(app)
    i, _ = open_call(app, t, e)
    host = "h" + uuid.uuid4().hex[:12] + ".example.org"
    close(app, i, e, json.dumps([dict(REPORT[0], host=host)]))
    while one(app, "SELECT mcpbox.records_work(250)")[0]:
        pass
    found = app.execute("SELECT id FROM mcpbox.executions_search(%s, '', '', '', '', '', '', '', '-infinity', "
                        "'infinity', 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 5)", (host,)).fetchall()
    assert found == [(i,)]


def test_management_logs_show_it_and_always_fit(app):
    t, e = Tool(app).approve(), epoch(app)
    for _ in range(3):
        i, _ = open_call(app, t, e)
        assert close(app, i, e, json.dumps(REPORT * 60))
    logs = json.loads(one(app, "SELECT mcpbox.manage_get_logs(%s, 50)", t.id)[0])["logs"]
    assert len(logs) == 3
    for log in logs:
        assert log["network"] and all(c == REPORT[0] for c in log["network"])
        assert len(json.dumps(log["network"])) < 4500
    i, _ = open_call(app, t, e)
    close(app, i, e, None)
    assert json.loads(one(app, "SELECT mcpbox.manage_get_logs(%s, 1)", t.id)[0])["logs"][0]["network"] == []
