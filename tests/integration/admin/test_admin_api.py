"""Actions and questions of administrators over REST and mcpboxctl: what every
one of them has in common, and settings, dashboard, health."""
import hashlib
import json
import pathlib
import re
import secrets
import uuid

import pytest

from harness.clients import flow
from harness.clients.rest import Rest
from harness.patience import until

KEY = "/api/settings/confirm_destructive"
TABLE = pathlib.Path(__file__).resolve().parents[3] / "common/admin/admin_action.def"


def actions():
    """The rows of admin_action.def."""
    names = "name role scope method path seen members".split()
    rows = re.findall(r'^A\((\w+), (\w+), (\w+), (\w+), "([^"]+)", (\w+), "([^"]*)"', TABLE.read_text(), re.M)
    return [dict(zip(names, r)) for r in rows]


@pytest.fixture
def setting(rest):
    """(object, ETag); the default again afterwards."""
    code, headers, value = rest.get(KEY)
    assert code == 200
    yield value, headers["etag"]
    assert rest.request("DELETE", KEY)[0] == 200


def put(rest, value="on", body=None, **headers):
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    return rest.request("PUT", KEY, {"value": value} if body is None else body, headers)


def audit(instance, action):
    return [r for r in instance.ctl_json("audit", "--limit", "200")["items"] if r["action"] == action]


def mode(answer, status):
    assert answer[0] == status, answer
    assert answer[1]["content-type"] == "application/problem+json"
    return answer[2]["failure_mode"]


def test_a_change_and_its_etag(instance, rest, setting):
    shown, tag = setting
    assert shown["value"] == shown["default"] == "off" and shown["words"] == ["off", "on"]
    code, headers, changed = put(rest, If_Match=tag)
    assert code == 200 and changed["value"] == "on" and changed["updated_by"] == "admin"
    code, again, value = rest.get(KEY)
    assert value == changed and again["etag"] == headers["etag"] != tag
    # made from what is no more
    assert mode(put(rest, "off", If_Match=tag), 412) == "hash_mismatch"
    assert mode(rest.request("DELETE", KEY, headers={"If-Match": tag}), 412) == "hash_mismatch"
    assert rest.request("DELETE", KEY, headers={"If-Match": again["etag"]})[2]["value"] == "off"
    assert audit(instance, "setting_changed")[0]["actor"] == "admin"
    assert audit(instance, "setting_reset")[0]["subject"] == "setting confirm_destructive"


@pytest.mark.parametrize("body, status", [
    ({}, 400), ({"value": 1}, 400), ({"value": None}, 400), ({"value": "on", "x": 1}, 400), ([], 400), ("on", 400),
    ({"value": "on\0"}, 400), ({"value": "perhaps"}, 400), ({"value": ["on"]}, 400)])
def test_bodies_are_closed(rest, setting, body, status):
    assert mode(put(rest, body=body), status) == "invalid_params"
    assert rest.get(KEY)[2]["value"] == "off"


def test_forms(rest, setting):
    for value in ("*", '"x"', '"' + "0" * 64 + '"', "W/" + setting[1], setting[1] + ", " + setting[1]):
        code = put(rest, If_Match=value)[0]
        assert code == (200 if value == "*" else 412), value
    put(rest, "off")
    assert mode(put(rest, Content_Type="text/plain"), 415) == "invalid_request"
    for key in ("", "a b", "x" * 65, "\xe9"):
        assert put(rest, Idempotency_Key=key)[0] == 400, key
    assert rest.get(KEY)[2]["value"] == "off"
    for where in ("/api/settings/none", "/api/settings/" + "x" * 255):
        assert mode(rest.request("PUT", where, {"value": "on"}), 404) == "not_found"
    assert rest.request("POST", KEY, {})[0] == 405
    assert rest.request("POST", KEY, {})[1]["allow"] == "GET, HEAD, PUT, DELETE"
    # a body where none is needed is checked as well
    assert rest.request("DELETE", KEY, {})[0] == 200
    assert mode(rest.request("DELETE", KEY, {"value": "on"}), 400) == "invalid_params"


def test_a_repeated_request_is_not_done_again(instance, rest, setting):
    key = secrets.token_hex(16)
    first = put(rest, Idempotency_Key=key)
    n = len(audit(instance, "setting_changed"))
    put(rest, "off")
    second = put(rest, Idempotency_Key=key)
    assert (second[0], second[2]) == (first[0], first[2]) and rest.get(KEY)[2]["value"] == "off"
    assert len(audit(instance, "setting_changed")) == n + 1
    assert mode(put(rest, "off", Idempotency_Key=key), 409) == "conflict"


def test_without_a_login_or_its_second_half(instance, rest, setting):
    stranger = Rest(lambda: instance.address("admind-http"))
    for path in ("/api/settings", KEY, "/api/dashboard", "/api/health"):
        assert stranger.get(path)[0] == 401
    assert put(stranger)[0] == 401
    csrf, rest.csrf = rest.csrf, "A" * 43
    assert mode(put(rest), 401) == "unauthenticated"
    rest.csrf = csrf
    assert rest.get(KEY)[2]["value"] == "off"


def test_every_change_is_checked_the_same_way(instance, rest):
    """Each row of admin_action.def: an unknown member never gets through, and a
    stranger gets nothing."""
    stranger = Rest(lambda: instance.address("admind-http"))
    rows = actions()
    assert len(rows) >= 2
    for row in rows:
        path = row["path"]
        for hole in ("{id}", "{id2}"):
            path = path.replace(hole, str(uuid.uuid4()))
        for hole in ("{name}", "{name2}"):
            path = path.replace(hole, "nobody")
        headers = {"If-Match": '"' + "1" * 64 + '"'} if row["seen"] != "NONE" else {}
        answer = rest.request(row["method"], path, {"no_such_member": 1}, headers)
        assert mode(answer, 400) == "invalid_params", (row, answer)
        assert stranger.request(row["method"], path, {}, headers)[0] == 401, row
        if row["seen"] == "REQUIRED":
            assert mode(rest.request(row["method"], path, {}), 428) == "hash_required", row
        if row["seen"] == "NONE":
            answer = rest.request(row["method"], path, {}, {"If-Match": '"' + "0" * 64 + '"'})
            assert mode(answer, 400) == "invalid_params", row


# --- mcpboxctl ------------------------------------------------------------------


def test_call_and_query(instance, setting):
    said = instance.ctl("call").stdout
    assert "settings_set ID value:s!" in said and "settings_reset ID" in said
    text = instance.ctl("--json", "query", "setting", "confirm_destructive").stdout.strip()
    tag = hashlib.sha256(json.dumps(json.loads(text)).encode()).hexdigest()
    shown = instance.ctl_json("call", "settings_set", "confirm_destructive", "value=on")
    assert shown["value"] == "on" and shown["updated_by"] == "root"
    r = instance.ctl("call", "settings_set", "confirm_destructive", "value=off", "--hash", tag, check=False)
    assert r.returncode == 1 and "changed meanwhile" in r.stderr
    for words in (["settings_set", "confirm_destructive"], ["settings_set", "confirm_destructive", "value=a", "value=b"],
                  ["settings_set"], ["no_such"], ["settings_set", "confirm_destructive", "x=1"],
                  ["settings_set", "confirm_destructive", "value=on", "--hash", "abc"]):
        assert instance.ctl("call", *words, check=False).returncode == 2, words
    key = secrets.token_hex(8)
    for value in ("on", "on"):
        instance.ctl("call", "settings_set", "confirm_destructive", "value=" + value, "--key", key)
    assert instance.ctl("call", "settings_set", "confirm_destructive", "value=off", "--key", key,
                        check=False).returncode == 1
    assert instance.ctl_json("settings", "reset", "confirm_destructive")["value"] == "off"
    assert "confirm_destructive" in instance.ctl("settings").stdout


# --- what is shown -----------------------------------------------------------


def test_dashboard(instance, mcp, rest):
    name = "t" + secrets.token_hex(5)
    before = rest.get("/api/dashboard?period=1h")[2]
    flow.publish(instance, mcp, "board", name, "def main(n: int) -> int:\n    return 1 // n\n")
    for n in (1, 1, 0):
        mcp.call("board__" + name, {"n": n})
    def counted():  # a moment later
        board = rest.get("/api/dashboard?period=1h")[2]
        return board if board["calls"]["calls"] >= before["calls"]["calls"] + 3 and any(
            t["tool"] == "board__" + name and t["calls"] == 3 for t in board["top_tools"]) else None
    board = until(counted, 10, 0.1, say=lambda: rest.get("/api/dashboard?period=1h")[2])
    assert {"tool": "board__" + name, "calls": 3, "errors": 1}.items() <= next(
        t for t in board["top_tools"] if t["tool"] == "board__" + name).items()
    assert board["tools"]["all"] == before["tools"]["all"] + 1
    assert board["tools"]["serving"] == before["tools"]["serving"] + 1
    server = next(s for s in board["busiest_servers"] if s["name"] == "board")
    assert server["calls"] >= 3 and server["errors"] >= 1
    error = board["recent_errors"][0]
    assert (error["tool"], error["failure_mode"]) == ("board__" + name, "exception")
    assert rest.get(f"/api/executions/{error['id']}")[2]["outcome"] == "failed"
    for period in ("6h", "24h", "7d"):
        assert rest.get("/api/dashboard?period=" + period)[2]["period"] == period
    assert mode(rest.get("/api/dashboard?period=2h"), 400) == "invalid_params"
    assert "busiest_servers" in instance.ctl("dashboard").stdout


def test_health(instance, rest):
    code, _, value = rest.get("/api/health")
    assert code == 200 and value["status"] == "ok", value
    assert value["counts"]["database_bytes"] > 1000000 and value["counts"]["overdue_executions"] == 0
    assert {n["kind"] for n in value["counts"]["nodes"]} == {"admind", "sandboxd"}
    assert {"process": "admind", "layer": "database", "state": "enforced", "detail": "", "fix": ""} in value["layers"]
    assert instance.ctl_json("health")["version"] == value["version"]
