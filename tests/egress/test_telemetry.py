"""Spans and metrics (decision 0107), through the whole suite: real calls, real confined runs, and a collector that the
test plays, in a network namespace. The fastest document sends each ten seconds; a change of the document sends at
once, which the tests use."""
import datetime
import itertools
import json
import os
import secrets
import signal
import threading

import pytest

from harness import listening
from harness.clients.flow import publish
from harness.clients.mcp import Client, meta
from harness.clients.signed_token import set_document
from harness.instance import Instance
from harness.net.trust import Authority
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.collector import Collector, attrs
from harness.played.egress import DNS
from harness.played.upstream import Service

HOME, PUBLIC, OTHER, LOCAL, PORT = "192.168.1.5", "93.184.216.34", "142.250.185.14", "127.0.0.1", 4318
#: Each is planted where a call can leave something, and must be nowhere in what the collector gets.
ARGUMENT, OUTPUT, PRINTED, ERROR, SECRET = (f"canary{n}{secrets.token_hex(8)}" for n in
                                            ("argument", "output", "printed", "error", "secret"))
CODE = """
import mcpbox
def main(what: str, fail: bool = False) -> str:
    print("%s")
    if fail:
        raise ValueError("%s" + mcpbox.secrets["KEY"])
    return "%s"
""" % (PRINTED, ERROR, OUTPUT)
_turn = itertools.count(10)


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def instance(inside, dns, ca):
    with ca.trusted():
        i = Instance(sets=(f"egress:dns_servers={DNS}", "admind:breakers=no"))
    yield i
    i.close()


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as client:
        name = publish(instance, client, "demo", "told", CODE, secrets=["KEY"])
        server, = (s["id"] for s in client.manage("mcpbox_list_servers")["servers"] if s["name"] == "demo")
        client.manage("mcpbox_create_server_secret", server_id=server, key="KEY")
    instance.ctl("secret", "set", "demo", "KEY", stdin=SECRET)
    return name


def played(ns, address, context=None, port=PORT):
    c = Collector()
    return c, Service(c.handle, sock=ns.listen(address, port), context=context)


@pytest.fixture
def collector(ns, instance, tool):
    c, service = played(ns, HOME)
    with service:
        yield c
        holds(instance, None)
    assert c.faults == [], c.faults


def holds(instance, telemetry, **more):
    """Puts a document into force. Its next run is at once."""
    document = {} if telemetry is None else {"telemetry": {
        "endpoint": telemetry, "every_seconds": 10 + next(_turn) % 291, **more}}
    got = set_document(instance, document)
    assert got["_"] == "ACCESS_STATE", got


def to(instance, url=f"http://{HOME}:{PORT}", **more):
    holds(instance, url, **more)


def soon(instance, what, telemetry=f"http://{HOME}:{PORT}", **more):
    """Waits for an event. Calls reach the queue some seconds after their end, perhaps after a run, so a new document
    makes the next run begin."""
    def look():
        found = what()
        if not found:
            to(instance, telemetry, **more)
        return found
    return until(look, 180, 2, say=lambda: (state(instance), instance.logs()[-3000:]))


def state(instance):
    return instance.ctl_json("access", "show")["telemetry"]


def call(instance, tool, traceparent=None, **arguments):
    with Client(instance.address) as c:
        m = meta()
        if traceparent:
            m["traceparent"] = traceparent
        r = c.request("tools/call", {"name": tool, "arguments": {"what": ARGUMENT, **arguments}, "_meta": m})
    assert r.status == 200 and r.result, r
    return r.result


def ids():
    return secrets.token_hex(16), secrets.token_hex(8)


def of_trace(collector, trace):
    with collector.lock:
        return [s for s in collector.spans if s["traceId"] == trace]


def test_a_call_is_a_span_of_its_clients_trace(instance, collector, tool):
    to(instance)
    trace, span = ids()
    call(instance, tool, f"00-{trace}-{span}-01")
    s, = soon(instance, lambda: of_trace(collector, trace))
    a = attrs(s)
    assert (s["parentSpanId"], s["name"], s["kind"], s["status"]) == (span, f"tools/call {tool}", 2, {}), s
    assert (a["mcp.method.name"], a["gen_ai.operation.name"], a["gen_ai.tool.name"]) == ("tools/call", "execute_tool", tool)
    assert (a["mcpbox.server"], a["mcpbox.listener"], a["network.transport"]) == ("demo", "local", "tcp")
    assert "error.type" not in a and "mcpbox.principal" not in a, a
    row, = instance.psql("SELECT id, encode(substr(version_hash, 1, 6), 'hex'), protocol, (extract(epoch FROM created_at)"
                         " * 1000000)::bigint * 1000, (extract(epoch FROM ended_at) * 1000000)::bigint * 1000"
                         f" FROM mcpbox.executions WHERE replace(trace_id::text, '-', '') = '{trace}'")
    assert row == [a["mcpbox.execution"], a["mcpbox.version"], a["mcp.protocol.version"], s["startTimeUnixNano"],
                   s["endTimeUnixNano"]]
    resource = attrs(collector.posts[0][1]["resourceSpans" if "traces" in collector.posts[0][0] else "resourceMetrics"][0]
                     ["resource"])
    assert resource["service.name"] == "mcpbox" and resource["service.instance.id"], resource
    assert state(instance)["spans"] >= 1 and state(instance)["error"] is None
    assert "telemetry: " in instance.ctl("access", "show").stderr


def test_a_failure_has_its_name_and_no_more(instance, collector, tool):
    to(instance)
    trace, span = ids()
    assert call(instance, tool, f"00-{trace}-{span}-00", fail=True)["isError"]
    s, = soon(instance, lambda: of_trace(collector, trace))     # though its client did not sample it
    assert s["status"] == {"code": 2} and attrs(s)["error.type"] == "exception", s


def test_without_a_trace_the_record_is_the_trace(instance, collector, tool):
    to(instance)
    before = len(collector.named(tool))
    call(instance, tool)
    s = soon(instance, lambda: collector.named(tool)[before:])[-1]
    assert s["traceId"] == attrs(s)["mcpbox.execution"].replace("-", "") and "parentSpanId" not in s


def test_nothing_that_a_call_said_leaves(instance, collector, tool):
    to(instance, principals=True)
    trace, span = ids()
    call(instance, tool, f"00-{trace}-{span}-01", fail=True)
    call(instance, tool, f"00-{trace}-{span}-01")
    with Client(instance.address) as c:
        c.request("tools/call", {"name": "mcpbox_get_tool", "arguments": {"tool_id": ARGUMENT}})
    both = soon(instance, lambda: len(of_trace(collector, trace)) == 2 and of_trace(collector, trace), principals=True)
    assert {attrs(s)["mcpbox.principal"] for s in both} == {"local"}
    soon(instance, lambda: "mcp.server.operation.duration" in collector.metrics(), principals=True)
    with collector.lock:
        got = b"\n".join(collector.raw)
    assert tool.encode() in got and trace.encode() in got       # it would be found
    for canary in (ARGUMENT, OUTPUT, PRINTED, ERROR, SECRET, instance.run()):
        assert canary.encode() not in got, canary
    # The record of a run says no more than how many.
    kept = {r[0] for r in instance.psql("SELECT arguments FROM mcpbox.executions WHERE tool = 'telemetry'")}
    assert kept and all(set(json.loads(k)) == {"spans"} for k in kept), kept


def test_metrics(instance, collector, tool):
    to(instance)

    def mine():
        found = collector.metrics().get("mcp.server.operation.duration", {"histogram": {"dataPoints": []}})
        return {attrs(p).get("error.type", ""): p for p in found["histogram"]["dataPoints"]
                if attrs(p).get("gen_ai.tool.name") == tool}
    before = {k: int(p["count"]) for k, p in mine().items()}
    for i in range(5):
        call(instance, tool, fail=i < 2)
    soon(instance, lambda: int(mine().get("", {}).get("count", 0)) >= before.get("", 0) + 3
         and int(mine().get("exception", {}).get("count", 0)) >= before.get("exception", 0) + 2)
    p = mine()[""]
    assert p["explicitBounds"] == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
    assert 0 < p["sum"] and int(p["startTimeUnixNano"]) < int(p["timeUnixNano"])
    m = collector.metrics()
    assert m["mcp.server.operation.duration"]["unit"] == "s"
    assert m["mcp.server.operation.duration"]["histogram"]["aggregationTemporality"] == 2
    assert m["mcpbox.telemetry.dropped"]["gauge"]["dataPoints"][0]["asInt"] == "0"
    assert "mcpbox.calls.running" in m


def test_each_alone(instance, collector, tool):
    to(instance, metrics=False)
    trace, span = ids()
    call(instance, tool, f"00-{trace}-{span}-01")
    soon(instance, lambda: of_trace(collector, trace), metrics=False)
    with collector.lock:
        assert {path for path, _ in collector.posts} == {"/v1/traces"}
        collector.posts.clear()
    call(instance, tool)
    soon(instance, lambda: sum(p == "/v1/metrics" for p, _ in collector.posts) >= 2 and not instance.psql(
        "SELECT 1 FROM mcpbox.telemetry_queue"), spans=False)
    with collector.lock:
        assert {path for path, _ in collector.posts} == {"/v1/metrics"}


@pytest.mark.parametrize("answer, words", [
    ((503, {"Retry-After": "1"}, b""), "HTTP 503"),
    ((429, {"Retry-After": "1"}, b""), "HTTP 429"),
    ((500, {}, b""), "HTTP 500"),
    ((401, {}, b""), "HTTP 401"),
    ((307, {"Location": f"http://{OTHER}:{PORT}/v1/traces"}, b""), f"a redirect, which is not followed; it leads to http://{OTHER}"),
    ((503, {}, b"x" * (1 << 20)), "larger than 65536 bytes"),
], ids=["503", "429", "500", "401", "redirect", "1 MB"])
def test_a_collector_with_trouble_gets_the_span_later(ns, instance, collector, tool, answer, words):
    other, service = played(ns, OTHER)
    collector.answer = answer
    trace, span = ids()
    with service:
        to(instance)
        call(instance, tool, f"00-{trace}-{span}-01")
        soon(instance, lambda: any(trace in json.dumps(b) for _, b in collector.refused)
             and words in ((state(instance) or {}).get("error") or ""))
        assert of_trace(collector, trace) == []
        assert words in instance.ctl("access", "show").stderr
        collector.answer = None
        s, = soon(instance, lambda: of_trace(collector, trace))
        first = [x for _, b in collector.refused if "resourceSpans" in b for r in b["resourceSpans"]
                 for y in r["scopeSpans"] for x in y["spans"] if x["traceId"] == trace]
        assert first and all(x == s for x in first)     # the same span, if both had been kept
        until(lambda: state(instance)["error"] is None, 60)
        assert other.raw == []


@pytest.mark.parametrize("said, least, most", [("800", 700, 910), ("99999", 700, 1020), ("", 0, 75)])
def test_when_it_is_tried_again(instance, collector, tool, said, least, most):
    """After Retry-After, but within a quarter of an hour; without it after a minute at first."""
    collector.answer = 503, {"Retry-After": said} if said else {}, b""
    to(instance)
    until(lambda: "HTTP 503" in ((state(instance) or {}).get("error") or ""), 60, say=lambda: state(instance))
    begun, = instance.psql("SELECT extract(epoch FROM ended_at) FROM mcpbox.executions WHERE tool = 'telemetry'"
                           " AND state = 'closed' ORDER BY created_at DESC LIMIT 1")[0]
    wait = datetime.datetime.fromisoformat(state(instance)["next_at"]).timestamp() - float(begun)
    assert least <= wait <= most, wait


def test_retry_after_is_enough(instance, collector, tool):
    """The collector's word is taken, also if it is short."""
    collector.answer = lambda r: (429, {"Retry-After": "1"}, b"") if len(collector.refused) < 3 else None
    to(instance)
    until(lambda: collector.posts and state(instance)["error"] is None, 120, say=lambda: (state(instance), instance.logs()[-3000:]))
    assert len(collector.refused) >= 3


def test_what_a_collector_cannot_read_is_dropped(instance, collector, tool):
    collector.answer = lambda r: (400, {}, b"") if r.path == "/v1/traces" else None
    to(instance)
    trace, span = ids()
    call(instance, tool, f"00-{trace}-{span}-01")
    soon(instance, lambda: any(trace in json.dumps(b) for _, b in collector.refused))
    soon(instance, lambda: (state(instance) or {}).get("dropped"))
    collector.answer = None
    trace2, span = ids()
    call(instance, tool, f"00-{trace2}-{span}-01")
    soon(instance, lambda: of_trace(collector, trace2))
    assert of_trace(collector, trace) == []


def test_a_slow_collector_keeps_no_call_waiting(instance, collector, tool):
    over = threading.Event()
    collector.answer = lambda r: over.wait(patience(60)) and None
    to(instance)
    try:
        until(lambda: instance.psql("SELECT 1 FROM mcpbox.executions WHERE tool = 'telemetry' AND state = 'open'"), 60)
        for _ in range(5):
            call(instance, tool)
        until(lambda: "no whole answer in the time" in ((state(instance) or {}).get("error") or ""), 120,
              say=lambda: state(instance))
    finally:
        over.set()


def test_a_restart_goes_on(instance, collector, tool):
    """Calls of before wait in the database, and none is a span twice when all went well."""
    collector.answer = 503, {"Retry-After": "300"}, b""
    to(instance)
    traces = [ids() for _ in range(3)]
    for trace, span in traces:
        call(instance, tool, f"00-{trace}-{span}-01")
    until(lambda: len(instance.psql("SELECT 1 FROM mcpbox.telemetry_queue")) >= 3, 60)
    old = instance.service_pid("admind")
    os.kill(old, signal.SIGKILL)
    until(lambda: instance.service_pid("admind") not in (None, old), during=(OSError, ValueError))
    collector.answer = None
    until(lambda: all(of_trace(collector, t) for t, _ in traces), 180, say=lambda: instance.logs()[-3000:])
    assert [len(of_trace(collector, t)) for t, _ in traces] == [1, 1, 1]
    # A claim ends after the collector has answered.
    until(lambda: instance.psql("SELECT count(*) FROM mcpbox.telemetry_queue WHERE claim IS NOT NULL") == [["0"]], 60)


def test_by_tls_and_by_name(ns, dns, ca, instance, tool):
    """The certificate must be good. A name that leads to a private address needs it in hosts."""
    dns.zone["otel.example"], dns.zone["home.example"] = d.Answer(a=[PUBLIC]), d.Answer(a=[HOME])
    dns.zone["wrong.example"] = d.Answer(a=[PUBLIC])
    public, one = played(ns, PUBLIC, ca.context("otel.example"), 443)
    home, two = played(ns, HOME, ca.context("home.example"), 443)
    with one, two:
        to(instance, "https://otel.example")
        until(lambda: public.posts, 60, say=lambda: (state(instance), instance.logs()[-3000:]))
        before = len(public.raw)
        to(instance, "https://wrong.example")
        until(lambda: "https://wrong.example/v1/" in ((state(instance) or {}).get("error") or ""), 60, say=lambda: state(instance))
        to(instance, "https://home.example")
        until(lambda: "https://home.example/v1/" in ((state(instance) or {}).get("error") or ""), 60, say=lambda: state(instance))
        assert home.raw == [] and len(public.raw) == before
        to(instance, "https://home.example", hosts=[HOME + ":443"])
        until(lambda: home.posts, 60, say=lambda: (state(instance), instance.logs()[-3000:]))
        holds(instance, None)
    assert public.faults == home.faults == []


def test_a_collector_of_this_machine(ns, instance, tool):
    """By its loopback address. Listeners of the suite itself stay closed."""
    c, service = played(ns, LOCAL)
    with service:
        to(instance, f"http://{LOCAL}:{PORT}")
        until(lambda: c.posts, 60, say=lambda: (state(instance), instance.logs()[-3000:]))
        host, port = instance.address()
        to(instance, f"http://{host}:{port}")
        until(lambda: f"http://{host}:{port}/v1/" in ((state(instance) or {}).get("error") or ""), 60, say=lambda: state(instance))
        assert "HTTP 4" not in state(instance)["error"], state(instance)
        holds(instance, None)
    assert c.faults == []


def test_nobody_there(ns, instance, tool):
    s = ns.listen(HOME, 4319)
    listening.end(s)
    to(instance, f"http://{HOME}:4319")
    until(lambda: f"http://{HOME}:4319/v1/" in ((state(instance) or {}).get("error") or ""), 60, say=lambda: state(instance))
    holds(instance, None)


def test_nothing_when_it_is_not_configured(instance, collector, tool):
    holds(instance, None)
    assert state(instance) is None
    before = instance.psql("SELECT count(*) FROM mcpbox.executions WHERE tool = 'telemetry'")
    call(instance, tool)
    until(lambda: instance.psql("SELECT count(*) FROM mcpbox.execution_queue") == [["0"]], 60)
    assert instance.psql("SELECT count(*) FROM mcpbox.telemetry_queue") == [["0"]]
    assert instance.psql("SELECT count(*) FROM mcpbox.executions WHERE tool = 'telemetry'") == before
    assert collector.raw == []
