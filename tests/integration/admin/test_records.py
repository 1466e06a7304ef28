"""Records of executions: what they keep and what not, trace ids, filters, search, statistics,
export; the activity log and its live tail; /metrics."""
import contextlib
import http.client
import json
import os
import pathlib
import queue
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, MODERN, Client, meta, text
from harness.clients.rest import Rest
from harness.instance import Instance
from harness.patience import patience, until

CODE = '''\
def main(password: str = "", note: str = "", options: dict = {}, fail: bool = False) -> dict:
    """Gives back what it was given."""
    if fail:
        raise ValueError("as asked")
    return {"api_key": password, "note": note, "max_tokens": 5, "options": options}
'''


@pytest.fixture(scope="module")
def metrics_token():
    d = tempfile.mkdtemp(prefix="mcpbm")
    os.chmod(d, 0o755)
    path, token = os.path.join(d, "token"), secrets.token_urlsafe(24)
    with open(path, "w", encoding="ascii") as f:
        f.write(token + "\n")
    os.chmod(path, 0o644)
    yield path, token
    shutil.rmtree(d)


@pytest.fixture(scope="module")
def instance(metrics_token):
    i = Instance(sets=[f"admind-http:metrics_token_file={metrics_token[0]}"])
    yield i
    i.close()


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "records", "echo", CODE)


def newest(rest, query):
    code, _, page = rest.get("/api/executions?limit=1&" + query)
    assert code == 200, page
    return page["items"][0] if page["items"] else None


def whole(rest, tool, n=1):
    """The newest closed record of the tool."""
    def closed():
        x = newest(rest, f"tool={tool}")
        return x if x and x["state"] == "closed" else None
    x = until(closed)
    code, _, record = rest.get("/api/executions/" + x["id"])
    assert code == 200
    return record


# --- what is kept ------------------------------------------------------------


def test_values_of_telling_names_are_not_kept(instance, mcp, rest, tool):
    password, deep, plain = (f"{w}-{secrets.token_hex(8)}" for w in ("pw", "deep", "plain"))
    r = mcp.call(tool, {"password": password, "note": plain, "options": {
        "db": {"Connection-String": deep, "retries": 3}, "clientSecret": [deep, deep],
        "page_token": plain, "token": None}})
    assert password in text(r) and deep in text(r), "the tool and its client have them"
    x = whole(rest, tool)
    kept = json.dumps(x)
    assert password not in kept and deep not in kept, kept
    arguments = json.loads(x["arguments"])
    assert arguments["password"] == "[redacted]" and arguments["note"] == plain
    assert arguments["options"]["db"] == {"Connection-String": "[redacted]", "retries": 3}
    assert arguments["options"]["clientSecret"] == "[redacted]"
    assert arguments["options"]["page_token"] == plain and arguments["options"]["token"] is None
    result = json.loads(x["result"])
    inner = json.loads(result["content"][0]["text"])
    assert inner["api_key"] == "[redacted]" and inner["note"] == plain and inner["max_tokens"] == 5
    assert not x["truncated"]
    # nor anywhere else in the database or the logs
    for table in ("executions", "execution_index", "execution_stats", "activity", "audit_log"):
        assert instance.psql(f"SELECT count(*) FROM mcpbox.{table} t "
                             f"WHERE t::text LIKE '%{password}%'") == [["0"]]
    assert password not in instance.logs(500)
    # the canary: what has no such name is there, so the search above finds what is kept
    assert instance.psql("SELECT count(*) FROM mcpbox.executions t "
                         f"WHERE t::text LIKE '%{plain}%'") != [["0"]]


def test_long_arguments_and_results_are_cut_and_say_so(mcp, rest, tool):
    mcp.call(tool, {"note": "x" * 20000, "password": "hunter2hunter2"})
    x = whole(rest, tool)
    arguments = json.loads(x["arguments"])  # still JSON
    assert arguments["note"] == "x" * 500 + "…" or arguments["note"].endswith("…")
    assert arguments["password"] == "[redacted]" and "hunter2" not in json.dumps(x)
    assert len(x["arguments"]) <= 4096
    mcp.call(tool, {"note": "y" * 900000})
    x = whole(rest, tool)
    assert len(x["result"]) <= 65536 and len(x["arguments"]) <= 4096


def test_management_arguments_lose_them_too(instance, mcp, rest):
    marker = "sk-" + secrets.token_hex(12)
    mcp.request("tools/call", {"name": "mcpbox_create_tool", "arguments": {
        "server_id": str(uuid.uuid4()), "name": "x", "description": "d",
        "python_code": "def main() -> int:\n    return 1\n",
        "meta": {"api_token": marker}}})
    assert instance.psql("SELECT count(*) FROM mcpbox.executions t "
                         f"WHERE t::text LIKE '%{marker}%'") == [["0"]]


# --- trace ids ---------------------------------------------------------------


def traced(address, version, name, arguments, traceparent):
    with Client(address, version) as c:
        m = meta() if version == MODERN else {}
        m["traceparent"] = traceparent
        return c.request("tools/call", {"name": name, "arguments": arguments, "_meta": m})


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_a_trace_of_meta_is_in_the_record(instance, rest, tool, version):
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    r = traced(instance.address, version, tool, {"note": "t"}, f"00-{trace}-{span}-01")
    assert r.status == 200 and r.result, r
    x = until(lambda: newest(rest, "search=" + trace))
    assert (x["trace_id"], x["span_id"]) == (trace, span)
    assert (x["session_id"] is not None) == (version == LEGACY)


@pytest.mark.parametrize("bad", [
    "", "00", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "00-" + "1" * 32 + "-" + "0" * 16 + "-01",
    "ff-" + "1" * 32 + "-" + "1" * 16 + "-01", "00-" + "A" * 32 + "-" + "1" * 16 + "-01",
    "00-" + "1" * 32 + "-" + "1" * 16 + "-01-x", "00-" + "1" * 32 + "_" + "1" * 16 + "-01",
    "x" * 4000])
def test_what_is_no_traceparent_is_none(instance, rest, tool, bad):
    r = traced(instance.address, MODERN, tool, {"note": "none"}, bad)
    assert r.status == 200 and r.result, r
    assert whole(rest, tool)["trace_id"] is None


@pytest.mark.parametrize("kind", [5, {"a": 1}, None, ["00"]])
def test_a_traceparent_of_another_type_breaks_nothing(instance, tool, kind):
    assert traced(instance.address, MODERN, tool, {}, kind).result


def test_management_calls_are_traced(instance, rest):
    trace = secrets.token_hex(16)
    traced(instance.address, MODERN, "mcpbox_list_servers", {}, f"00-{trace}-{'2' * 16}-00")
    x = until(lambda: newest(rest, "search=" + trace))
    assert x["tool"] == "mcpbox_list_servers" and x["kind"] == "management"


# --- finding -----------------------------------------------------------------


def test_filters_over_rest_and_ctl(instance, mcp, rest, tool):
    mcp.call(tool, {"fail": True})
    x = whole(rest, tool)
    assert x["outcome"] == "failed" and x["failure_mode"] == "exception"
    for query in (f"tool={tool}&outcome=failed", "failure=exception", "outcome=failed&kind=tool",
                  "principal=local&failure=exception", "listener=local&outcome=failed",
                  f"since={x['created_at']}&tool={tool}"):
        assert x["id"] in [i["id"] for i in rest.get("/api/executions?" + query)[2]["items"]], query
    for query in ("listener=tunnel", "principal=nobody", "tool=none__such", "state=open&tool=" + tool,
                  "until=2001-01-01T00:00:00Z"):
        assert rest.get("/api/executions?" + query)[2]["items"] == [], query
    assert rest.get("/api/executions?outcome=nonsense")[0] == 400
    items = instance.ctl_json("executions", f"tool={tool}", "outcome=failed")["items"]
    assert x["id"] in [i["id"] for i in items]
    out = instance.ctl("executions", "--tool", tool).stdout
    assert tool in out and "failed" in out


def test_full_text_search(instance, mcp, rest, tool):
    word = "zebra" + secrets.token_hex(4)
    mcp.call(tool, {"note": f"a striped {word} of the plain"})
    x = until(lambda: newest(rest, "search=" + word))
    assert x["tool"] == tool
    assert newest(rest, f"search=striped+{word}&outcome=failed") is None
    assert newest(rest, f"search=%22{word}+striped%22") is None, "a phrase has an order"
    assert newest(rest, f"search=%22striped+{word}%22")["id"] == x["id"]


def viewer(instance):
    name = "v" + secrets.token_hex(4)
    instance.ctl("administrators", "create", name, "--role", "viewer", stdin=instance.password + "\n")
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login(name, instance.password)[0] == 200
    return r


def test_who_only_views_sees_no_content(instance, tool):
    r = viewer(instance)
    assert r.get("/api/executions")[0] == 200
    assert r.get("/api/executions/stats")[0] == 200
    assert r.get("/api/activity")[0] == 200
    x = r.get("/api/executions?limit=1")[2]["items"][0]
    assert "arguments" not in x and "result" not in x
    assert r.get("/api/executions/" + x["id"])[0] == 403
    assert r.get("/api/executions?search=x")[0] == 403, "an oracle for what it may not read"
    assert r.get("/api/executions/export")[0] == 403


def test_statistics(instance, mcp, rest, tool):
    before = rest.get(f"/api/executions/stats?tool={tool}")[2]["total"]["calls"]
    for _ in range(3):
        mcp.call(tool, {})
    s = until(lambda: (lambda s: s if s["total"]["calls"] >= before + 3 else None)(
        rest.get(f"/api/executions/stats?tool={tool}")[2]), 15)
    assert s["tools"][0]["tool"] == tool and s["principals"][0]["principal"] == "local"
    assert s["outcomes"]["done"] >= 3 and s["period"] == "hour"
    assert sum(p["calls"] for p in s["periods"]) == s["total"]["calls"]
    assert rest.get("/api/executions/stats?period=week")[0] == 400
    assert json.loads(instance.ctl("executions", "stats", f"tool={tool}",
                                   "--json").stdout)["total"]["calls"] == s["total"]["calls"]


# --- export ------------------------------------------------------------------

ADR010 = {"timestamp", "event", "container_id", "chat_id", "argv", "command", "duration_ms",
          "exit_code", "truncated", "stopped_reason", "error"}


def export(rest, query=""):
    h = {"Cookie": rest.cookie, "X-CSRF-Token": rest.csrf, "Host": "127.0.0.1"}
    c = http.client.HTTPConnection(*rest.where(), timeout=patience(30))
    c.request("GET", "/api/executions/export" + query, headers=h)
    r = c.getresponse()
    body = r.read().decode()
    c.close()
    assert r.status == 200, body
    assert r.getheader("Content-Type") == "application/x-ndjson"
    return [json.loads(line) for line in body.splitlines()]


def test_export_has_every_record_once_with_the_fields_of_adr_010(instance, mcp, rest, tool):
    mcp.call(tool, {})
    mcp.call(tool, {"fail": True})
    whole(rest, tool)
    lines = export(rest, f"?tool={tool}&kind=tool")
    n = int(instance.psql("SELECT count(*) FROM mcpbox.executions "
                          f"WHERE tool = '{tool}' AND kind = 'tool'")[0][0])
    assert len(lines) == n == len({x["id"] for x in lines})
    for x in lines:
        assert ADR010 <= set(x), ADR010 - set(x)
        assert x["command"] == tool and x["argv"][0] == tool and x["event"] == "tool_call"
    failed = next(x for x in lines if x["outcome"] == "failed")
    assert failed["exit_code"] == 1 and failed["stopped_reason"] == "exception"
    assert "as asked" in failed["error"]
    done = next(x for x in lines if x["outcome"] == "done")
    assert done["exit_code"] == 0 and done["error"] is None and done["stopped_reason"] == "complete"
    out = instance.ctl("executions", "export", f"tool={tool}", "kind=tool", "--json").stdout
    assert {json.loads(line)["id"] for line in out.splitlines()} == {x["id"] for x in lines}


def test_export_shows_the_program_of_a_command(instance, mcp, rest):
    """What ran and how it ended, not the tool's name and a 1."""
    server = mcp.manage("mcpbox_create_server", name="programs", description="Of the tests.")["id"]
    t = mcp.manage("mcpbox_create_tool", server_id=server, name="find", kind="command", executable="/usr/bin/grep",
                   description="Finds.", spec={"argv": ["-c", "--max-count={most}", "--", "{what}", "{b}{a}"],
                                               "stdin": "{text}", "ok_exit_codes": [1]},
                   input_schema={"type": "object", "properties": {
                       "most": {"type": "integer"}, "what": {"type": "string"}, "text": {"type": "string"},
                       "a": {}, "b": {}}, "required": ["what", "text"]})
    mcp.manage("mcpbox_request_publish", tool_id=t["id"])
    item = flow.pending(instance, "find")
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    for given in ({"what": "q", "text": "a"}, {"what": "a{b}", "most": 3, "text": "a{b}"}, {"what": "(\\", "text": ""},
                  {"what": "q", "text": "q", "a": ["x"], "b": "/no"}):
        mcp.call("programs__find", given)
    lines = until(lambda: (lambda x: x if len(x) == 4 and all(r["state"] == "closed" for r in x) else None)(
        export(rest, "?tool=programs__find&kind=tool")), say=lambda: export(rest, "?tool=programs__find&kind=tool"))
    assert {x["command"] for x in lines} == {"/usr/bin/grep"}
    assert [(x["argv"], x["exit_code"], x["outcome"]) for x in reversed(lines)] == [
        (["/usr/bin/grep", "-c", "--", "q"], 1, "done"),
        (["/usr/bin/grep", "-c", "--max-count=3", "--", "a{b}"], 0, "done"),
        (["/usr/bin/grep", "-c", "--", "(\\"], 2, "failed"),
        (["/usr/bin/grep", "-c", "--", "q", '/no["x"]'], 2, "failed")]


def test_export_of_more_than_a_page(instance, rest, tool):
    instance.psql("""
        INSERT INTO mcpbox.executions (id, kind, state, outcome, delivered, owner_epoch, principal,
            listener, tool, args_sha256, arguments, created_at, deadline, ended_at, stdout, result)
        SELECT gen_random_uuid(), 'management', 'closed', 'done', true, gen_random_uuid(), 'bulk',
            'local', 'mcpbox_bulk', sha256('{}'), '{}', now() - i * interval '1 s', now(), now(), '',
            repeat('r', 20000) FROM generate_series(1, 450) i""")
    instance.psql("INSERT INTO mcpbox.execution_queue SELECT id, tool, created_at FROM mcpbox.executions "
                  "WHERE principal = 'bulk'")
    lines = export(rest, "?principal=bulk")
    assert len(lines) == 450 == len({x["id"] for x in lines})
    # a client that goes away half-way does no harm
    h = {"Cookie": rest.cookie, "X-CSRF-Token": rest.csrf, "Host": "127.0.0.1"}
    c = http.client.HTTPConnection(*rest.where(), timeout=patience(30))
    c.request("GET", "/api/executions/export?principal=bulk", headers=h)
    c.getresponse().read(1000)
    c.close()
    assert rest.get("/health")[0] == 200


# --- activity ----------------------------------------------------------------


def test_refusals_are_in_the_activity_log_and_counted(instance, mcp, rest):
    name = "none__" + secrets.token_hex(4)
    for _ in range(5):
        mcp.call(name, {"password": "never in a log"})
    x = until(lambda: (rest.get(f"/api/activity?tool={name}")[2]["items"] or [None])[0])
    assert (x["kind"], x["level"], x["principal"], x["listener"]) == (
        "call_refused", "warning", "local", "local")
    assert x["failure_mode"]
    assert until(lambda: sum(i["count"] for i in rest.get(
        f"/api/activity?tool={name}")[2]["items"]) == 5)
    assert instance.psql("SELECT count(*) FROM mcpbox.activity t "
                         "WHERE t::text LIKE '%never in a log%'") == [["0"]]
    assert name in instance.ctl("activity", f"tool={name}").stdout


def test_processes_that_come_and_go_are_noted(instance, rest):
    ups = rest.get("/api/activity?kind=process_up&limit=200")[2]["items"]
    assert {"gatewayd", "sandboxd", "admind-vault", "admind-check"} <= {i["subject"] for i in ups}
    assert rest.get("/api/activity?kind=nonsense")[2]["items"] == []
    assert rest.get("/api/activity?level=fatal")[0] == 400


def test_names_that_are_no_names_are_made_harmless(instance, rest):
    with Client(instance.address, LEGACY) as c:	# names no tool in a header
        c.call("evil\x1b[2J<script>", {})
    x = until(lambda: (rest.get("/api/activity?search=script")[2]["items"] or [None])[0])
    assert "\x1b" not in x["subject"] and "<" not in x["subject"]


class Tail:
    """GET /api/activity/stream."""

    def __init__(self, rest, query=""):
        self.c = http.client.HTTPConnection(*rest.where(), timeout=patience(10))
        self.c.request("GET", "/api/activity/stream" + query,
                       headers={"Cookie": rest.cookie or "", "X-CSRF-Token": rest.csrf or "",
                                "Host": "127.0.0.1"})
        self.r = self.c.getresponse()
        self.status = self.r.status

    def event(self, want):
        """The first event that want() takes."""
        deadline = time.monotonic() + patience(8)
        while time.monotonic() < deadline:
            line = self.r.fp.readline()
            if line.startswith(b"data: "):
                e = json.loads(line[6:])
                if want(e):
                    return e
        raise AssertionError("no such event")

    def close(self):
        self.c.close()


def test_the_tail_tells_calls_and_activity(instance, mcp, rest, tool):
    t = Tail(rest)
    assert t.status == 200 and t.r.getheader("Content-Type").startswith("text/event-stream")
    mcp.call(tool, {"note": "live", "password": "not told"})
    e = t.event(lambda e: e["type"] == "call" and e["tool"] == tool)
    assert e["outcome"] == "done" and e["principal"] == "local" and e["listener"] == "local"
    assert "arguments" not in e
    mcp.manage("mcpbox_list_servers")
    assert t.event(lambda e: e["type"] == "call" and e["tool"] == "mcpbox_list_servers")[
        "kind"] == "management"
    mcp.call("none__tail", {})
    e = t.event(lambda e: e["type"] == "activity")
    assert e["kind"] == "call_refused" and e["subject"] == "none__tail"
    t.close()


def test_the_tail_of_the_log_alone(mcp, rest, tool):
    t = Tail(rest, "?kind=activity")
    mcp.call(tool, {})
    mcp.call("none__alone", {})
    assert t.event(lambda e: True)["type"] == "activity"
    t.close()


def test_the_tail_tells_what_other_nodes_logged(instance, rest):
    t = Tail(rest, "?kind=activity")
    told = threading.Event()

    def log():      # it follows from some moment on
        while not told.wait(0.5):
            instance.psql("INSERT INTO mcpbox.activity (at, node, kind, level, principal, listener, "
                          "subject, failure, count) VALUES (now() - interval '3 s', 'elsewhere', "
                          "'process_down', 'error', '', '', 'sandboxd', '', 1)")
    other = threading.Thread(target=log)
    other.start()
    try:
        e = t.event(lambda e: e["node"] == "elsewhere")
    finally:
        told.set()
        other.join()
    assert (e["type"], e["kind"], e["subject"]) == ("activity", "process_down", "sandboxd")
    t.close()


def test_the_tail_needs_a_login_and_has_an_end(instance, rest):
    r = Rest(lambda: instance.address("admind-http"))
    assert Tail(r).status == 401
    r.cookie, r.csrf = "mcpbox_session=" + "A" * 43, "A" * 43
    assert Tail(r).status == 401
    tails = [Tail(rest) for _ in range(16)]
    assert {t.status for t in tails} == {200}
    assert Tail(rest).status == 503
    tails.pop().close()
    # whoever goes makes room at once
    again = until(lambda: (lambda t: t if t.status == 200 else None)(Tail(rest)))
    for t in tails + [again]:
        t.close()


def test_ctl_tails(instance, mcp, tool):
    lines, p = queue.Queue(), None
    try:
        e, end = {}, time.monotonic() + patience(30)
        while e.get("tool") != tool:    # it follows from some moment on
            assert time.monotonic() < end
            # It is refused while those of the test before keep their places.
            if p is None or p.poll() is not None:
                p = subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "activity", "tail",
                                      "--json"], stdout=subprocess.PIPE, text=True)
                threading.Thread(target=lambda f: [lines.put(x) for x in f], args=(p.stdout,), daemon=True).start()
            mcp.call(tool, {})
            with contextlib.suppress(queue.Empty):
                e = json.loads(lines.get(timeout=0.5))
        assert e["outcome"] == "done"
    finally:
        p.kill()
        p.wait()


# --- metrics -----------------------------------------------------------------


def metrics(value):
    """name{labels} -> number, of Prometheus' text format."""
    found = {}
    for line in value.decode().splitlines():
        if line.startswith("#"):
            assert line.split(" ", 3)[1] in ("HELP", "TYPE"), line
            continue
        name, number = line.rsplit(" ", 1)
        assert name not in found, name
        found[name] = float(number)
    return found


def test_metrics(instance, mcp, rest, tool):
    mcp.call(tool, {"fail": True})      # its arguments are known now
    whole(rest, tool)
    before = metrics(rest.get("/metrics")[2])
    for _ in range(3):
        mcp.call(tool, {"password": "in no metric"})
    # judged once, and recorded each time as if it had been
    assert json.loads(whole(rest, tool)["arguments"])["password"] == "[redacted]"
    mcp.call(tool, {"fail": True})
    mcp.call("none__metric", {})
    whole(rest, tool)
    status, headers, raw = rest.get("/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    m = metrics(raw)

    def grown(name):
        return m.get(name, 0) - before.get(name, 0)
    assert grown('mcpbox_calls_total{outcome="done"}') >= 1
    assert grown('mcpbox_calls_total{outcome="failed"}') == 1
    assert grown('mcpbox_arguments_valid_total{by="check"}') == 1
    assert grown('mcpbox_arguments_valid_total{by="memory"}') == 3
    assert grown('mcpbox_call_failures_total{failure_mode="exception"}') == 1
    assert sum(grown(k) for k in m if k.startswith("mcpbox_calls_refused_total")) == 1
    assert grown("mcpbox_call_duration_seconds_count") >= 2
    assert m['mcpbox_call_duration_seconds_bucket{le="+Inf"}'] == \
        m["mcpbox_call_duration_seconds_count"]
    assert m['mcpbox_process_up{process="sandboxd"}'] == 1
    assert m["mcpbox_tools"] >= 1 and m["mcpbox_versions_callable"] >= 1
    # nobody's name and no tool's
    assert b"local" not in raw and tool.encode() not in raw and b"in no metric" not in raw
    # documented by name
    doc = (pathlib.Path(__file__).parents[3] / "docs/OPERATIONS.md").read_text(encoding="utf-8")
    for name in {k.split("{")[0] for k in m}:
        base = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        assert base in doc, base


def test_metrics_need_a_login_or_the_token(instance, rest, metrics_token):
    r = Rest(lambda: instance.address("admind-http"))
    assert r.get("/metrics")[0] == 401
    assert r.request("GET", "/metrics", headers={"Authorization": "Bearer wrong"})[0] == 401
    # a wrong token is not mended by a login beside it
    assert rest.request("GET", "/metrics", headers={"Authorization": "Bearer "})[0] == 401
    token = metrics_token[1]
    ask = lambda t: r.request("GET", "/metrics", headers={"Authorization": "Bearer " + t})
    assert ask(token)[0] == 200 and b"mcpbox_calls_total" in ask(token)[2]
    for wrong in (token[:-1], token + "x", "", token.upper()):
        assert ask(wrong)[0] == 401
    assert r.request("GET", "/metrics", headers={"Authorization": "Basic " + token})[0] == 401
