"""docs/openapi.yaml against the running API: every operation is asked, every
status that it documents is seen, and every JSON answer is of its schema. (That
file and routes are the same set, tests/unit/admind/http/openapi_routes.py says.)"""
import http.client
import json
import pathlib
import re
import secrets
import socket
import time
import warnings

import jsonschema
import pytest
import yaml

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.played.authenticator import Passkey
from harness.patience import patience, until

with warnings.catch_warnings():  # superseded in newer releases, which have it still
    warnings.simplefilter("ignore", DeprecationWarning)
    from jsonschema import RefResolver

DOC = yaml.safe_load((pathlib.Path(__file__).resolve().parents[3] / "docs/openapi.yaml").read_text())
INSTANCE_SETS = ("admind-vault:passkey_rp_id=localhost", "admind-vault:passkey_origins=http://localhost:8000",
                 "admind-vault:passkey_localhost=yes")
OPERATIONS = {(m.upper(), p): op for p, ops in DOC["paths"].items() for m, op in ops.items()}
#: /health answers 503 only while a process is away (test_early.py).
#: What connects to another machine is answered in tests/egress.
#: The panel's files are asked for in test_panel_files.py.
PANEL_FILE = "/panel/{name}"
NOT_HERE = {("GET", "/health", "503"), ("GET", PANEL_FILE, "200"), ("GET", PANEL_FILE, "304"), ("GET", "/", "304"), ("GET", "/api/oauth/callback", "200"),
            ("POST", "/api/signin/begin", "200"), ("POST", "/api/signin/finish", "200"),
            *(("POST", f"/api/sources/{{id}}/{what}", "200") for what in ("discover", "import", "authorise"))}
CODE = "def main(n: int) -> int:\n    return n + %d\n"


def resolve(o):
    while isinstance(o, dict) and "$ref" in o:
        at = DOC
        for part in o["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        o = at
    return o


def check(schema, value, where):
    v = jsonschema.Draft202012Validator(schema, resolver=RefResolver.from_schema(DOC))
    errors = [f"{'/'.join(map(str, e.path))}: {e.message[:300]}" for e in v.iter_errors(value)]
    assert not errors, (where, errors[:5])


class Api:
    """A login whose every request is looked up in the file."""

    def __init__(self, instance, seen):
        self.rest, self.seen = Rest(lambda: instance.address("admind-http")), seen

    def go(self, method, template, *ids, body=None, query="", status=200, rest=None, headers=None):
        op = OPERATIONS[method, template]
        holes = iter(ids)
        path = re.sub(r"\{\w+\}", lambda m: str(next(holes)), template)
        if body is None and "requestBody" not in op and method == "POST":
            body = {}
        answer = (rest or self.rest).request(method, path + query, body, headers)
        assert answer[0] == status, (method, path, answer)
        self.judge(method, template, op, answer)
        return answer

    def judge(self, method, template, op, answer):
        code = str(answer[0])
        key = code if code in op["responses"] else "default"
        self.seen.add((method, template, key))
        doc = resolve(op["responses"][key])
        kind = answer[1].get("content-type", "").split(";")[0]
        assert kind in (list(doc.get("content", {})) or [""]), (method, template, code, kind)
        for name, header in doc.get("headers", {}).items():
            value = answer[1].get(name.lower())
            assert value is not None, (method, template, name)
            check(resolve(header)["schema"], value, (method, template, name))
        if kind in ("application/json", "application/problem+json"):
            check(doc["content"][kind]["schema"], answer[2], (method, template, code))

    def value(self, *args, **kw):
        return self.go(*args, **kw)[2]


@pytest.fixture(scope="module")
def seen():
    return set()


@pytest.fixture(scope="module")
def api(instance, seen):
    a = Api(instance, seen)
    status, headers, value = answer = a.rest.login("admin", instance.password)
    assert status == 200
    a.judge("POST", "/api/login", OPERATIONS["POST", "/api/login"], answer)
    assert value["username"] == "admin" and headers
    return a


def refs(o):
    if isinstance(o, dict):
        if isinstance(o.get("$ref"), str):
            yield o["$ref"]
        for v in o.values():
            yield from refs(v)
    elif isinstance(o, list):
        for v in o:
            yield from refs(v)


@pytest.mark.parametrize("method, path", sorted(k for k, op in OPERATIONS.items() if "requestBody" in op))
def test_every_request_has_an_example_of_its_schema(method, path):
    """To copy from: with each member that is needed, and none that the API would refuse."""
    content = OPERATIONS[method, path]["requestBody"]["content"]["application/json"]
    schema = resolve(content["schema"])
    assert schema["additionalProperties"] is False
    check(schema, content["example"], (method, path))
    assert content["example"] or not schema["properties"], "an example says something"


def test_the_file_itself():
    assert DOC["openapi"] == "3.1.0" and len(OPERATIONS) > 60
    used = set(refs(DOC))
    for r in used:
        resolve({"$ref": r})
    for kind, things in DOC["components"].items():
        if kind == "securitySchemes":
            continue
        for name, thing in things.items():
            assert f"#/components/{kind}/{name}" in used, f"{kind} {name} is used nowhere"
            if kind == "schemas":
                jsonschema.Draft202012Validator.check_schema(thing)
    for (method, path), op in OPERATIONS.items():
        assert op["summary"] and "default" in op["responses"], (method, path)


# --- every operation once -------------------------------------------------------


def test_servers_and_tools(instance, api):
    name = "o" + secrets.token_hex(4)
    s = api.value("POST", "/api/servers", body={"name": name, "description": "of a test"})
    api.value("GET", "/api/servers", query="?state=running&limit=200")
    code, headers, _ = api.go("GET", "/api/servers/{id}", s["id"])
    api.go("PATCH", "/api/servers/{id}", s["id"], body={"description": "another"}, headers={"If-Match": headers["etag"]})
    api.go("POST", "/api/servers/{id}/stop", s["id"])
    api.go("POST", "/api/servers/{id}/start", s["id"])
    source = api.value("POST", "/api/servers/{id}/sources", s["id"], body={
        "name": "elsewhere", "url": "https://mcp.example.org/mcp"})
    listed = api.value("GET", "/api/sources")["items"]
    source_id = source.get("id") or listed[0]["id"]
    api.go("GET", "/api/sources/{id}", source_id)
    api.go("GET", "/api/sources/{id}/tools", source_id)
    for what, body in (("discover", None), ("authorise", {})):
        api.go("POST", f"/api/sources/{{id}}/{what}", source_id, body=body, status=409)
    api.go("POST", "/api/sources/{id}/import", source_id, body={"names": ["x"]}, status=409)
    api.go("POST", "/api/sources/{id}/import", source_id, body={"names": []}, status=400)
    api.go("GET", "/api/oauth/callback", query="?state=" + "x" * 43 + "&code=y&more=z", status=400)
    api.go("DELETE", "/api/sources/{id}", source_id)
    api.go("POST", "/api/drafts", body={"name": "validate_code", "arguments": {"code": CODE % 1}})
    api.go("POST", "/api/drafts", body={"name": "delete_tool", "arguments": {}}, status=400)
    assert api.value("GET", "/api/panel")["origins"] == []
    assert api.value("GET", "/api/signin")["items"] == []
    api.go("POST", "/api/signin/begin", body={"issuer": "home"}, status=404)
    api.go("GET", "/api/signin/callback", query="?state=" + "x" * 118 + "&code=y&more=z", status=303)
    api.go("POST", "/api/signin/finish", body={"state": "x"}, status=401)
    document = {"openapi": "3.0.3", "servers": [{"url": "https://api.example"}],
                "paths": {"/a": {"get": {"operationId": "getA"}}, "/b": {"post": {"requestBody": {
                    "required": True, "content": {"image/png": {}}}}}}}
    made = api.value("POST", "/api/servers/{id}/openapi", s["id"], body={"document": document})
    assert made["count"] == 1 and len(made["skipped"]) == 1
    api.go("POST", "/api/servers/{id}/openapi", s["id"], body={"document": {}}, status=400)
    code, headers, limits = api.go("GET", "/api/servers/{id}/limits", s["id"])
    put = {"limits": {"timeout_ms": 5000}}
    api.go("PUT", "/api/servers/{id}/limits", s["id"], body=put, headers={"If-Match": headers["etag"]})
    api.go("PUT", "/api/servers/{id}/limits", s["id"], body=put, headers={"If-Match": headers["etag"]}, status=412)
    api.go("PUT", "/api/servers/{id}/limits", s["id"], body=put, status=428)
    api.go("PUT", "/api/servers/{id}/expose", s["id"], body={"expose": "prefixed"}, status=204)
    where = ("/api/servers/{name}/secrets", name)
    api.go("POST", *where, body={"key": "TOKEN", "description": "of a shop"})
    api.go("GET", *where)
    assert name in [i["server"] for i in api.value("GET", "/api/secrets", query="?limit=200")["items"]]
    one = ("/api/servers/{name}/secrets/{name2}", name, "TOKEN")
    api.go("GET", *one)
    api.go("PATCH", *one, body={"description": "of two shops"})
    api.go("PUT", *one, body={"value": secrets.token_hex(8)}, status=204)
    api.go("DELETE", *one)
    with Client(instance.address) as mcp:
        tool_id = flow.draft(mcp, name, "adds", CODE % 1)
        mcp.manage("mcpbox_request_publish", tool_id=tool_id)
        item = flow.pending(instance, "adds")
        approve(api, item["id"])
        api.go("POST", "/api/tools/{id}/disable", tool_id)
        api.go("POST", "/api/calls", body={"name": name + "__adds", "arguments": {"n": 1}}, status=409)
        api.go("POST", "/api/tools/{id}/enable", tool_id)
        assert mcp.call(name + "__adds", {"n": 1}).result
    api.go("POST", "/api/calls", body={"name": name + "__adds", "arguments": {"n": 1}})
    api.go("GET", "/api/tools", query=f"?server={s['id']}&state=approved")
    api.go("GET", "/api/tools/{id}", tool_id)
    api.go("PATCH", "/api/tools/{id}", tool_id, body={"title": "Adds one"})
    api.go("GET", "/api/tools/{id}/versions/{id2}", tool_id, 1)
    api.go("GET", "/api/tools/{id}/diff/{id2}", tool_id, "1-2")
    api.go("GET", "/api/versions", query=f"?tool={tool_id}")
    api.go("POST", "/api/tools/{id}/rollback", tool_id, body={"version": 1})
    api.go("POST", "/api/tools/{id}/prune", tool_id, body={"keep": 10})
    instance.ctl("modules", "add", "six", "1.16.0", "ab" * 32)
    instance.ctl("modules", "grant", name + "__adds", "six")
    assert api.value("GET", "/api/modules")["items"]
    api.go("POST", "/api/modules/{name}/install", "six", body={"version": "1.17.0"})
    assert api.value("GET", "/api/modules/installs")["items"]
    api.go("POST", "/api/tools/{id}/modules/{name}/revoke", tool_id, "six", body={})
    api.go("POST", "/api/tools/{id}/revoke", tool_id, body={"reason": "seen enough"})
    api.go("DELETE", "/api/tools/{id}", tool_id)
    api.go("DELETE", "/api/servers/{id}", s["id"])


def approve(api, item, status=200, etag=None):
    headers = api.go("GET", "/api/approvals/{id}", item)[1]
    return api.value("POST", "/api/approvals/{id}/approve", item, status=status,
                     headers={"If-Match": etag or headers["etag"]})


def test_approvals(instance, api):
    name = "q" + secrets.token_hex(4)
    with Client(instance.address) as mcp:
        ids = {}
        for tool in ("one", "two", "three"):
            tool_id = flow.draft(mcp, name, tool, CODE % 2)
            mcp.manage("mcpbox_request_publish", tool_id=tool_id)
            ids[tool] = next(i["id"] for i in instance.ctl_json("approvals", "list", "--limit", "200")["items"]
                             if i["tool_id"] == tool_id)
    api.go("GET", "/api/approvals", query="?kind=tool&state=pending&limit=1")
    api.go("GET", "/api/approvals", query="?order=newest")
    api.go("GET", "/api/approvals", query="?order=random", status=400)
    api.go("POST", "/api/approvals/{id}/comments", ids["one"], body={"text": "what for?"})
    api.go("GET", "/api/approvals/{id}/comments", ids["one"])
    api.go("GET", "/api/approvals/{id}/diff", ids["one"])
    api.go("POST", "/api/approvals/{id}/approve", ids["one"], status=428)
    approve(api, ids["one"], 412, '"' + "0" * 64 + '"')
    approve(api, ids["one"])
    approve(api, ids["one"], 409)
    api.go("POST", "/api/approvals/{id}/reject", ids["one"], body={"reason": "too late"}, status=409)
    api.go("POST", "/api/approvals/{id}/reject", ids["two"], body={"reason": "no"})
    shown = instance.ctl_json("approvals", "show", ids["three"])
    api.go("POST", "/api/approvals/bulk", body={"action": "approve", "items": [
        {"id": ids["three"], "hash": shown["hash"]}, {"id": ids["two"], "hash": shown["hash"]}]})
    api.go("POST", "/api/approvals/{id}/revoke", ids["three"], body={"reason": "changed my mind"})
    server = next(s["id"] for s in api.value("GET", "/api/servers", query="?limit=200")["items"] if s["name"] == name)
    api.go("POST", "/api/servers/{id}/network", server, body={"host": "api.example.org", "port": 443,
                                                              "justification": "weather"})
    host = api.value("GET", "/api/approvals", query="?kind=network&state=pending")["items"][0]
    approve(api, host["id"])
    assert api.value("GET", "/api/network")["items"]
    for policy in ("allow_all_public", "require_approval"):
        api.go("POST", "/api/servers/{id}/network-policy", server, body={"policy": policy})
    code, headers, _ = api.go("GET", "/api/approvals/policies")
    policy = {"tool": "require", "module": "require", "network": "require"}
    api.go("PUT", "/api/approvals/policies", body=policy, status=428)
    api.go("PUT", "/api/approvals/policies", body=policy, headers={"If-Match": '"' + "1" * 64 + '"'}, status=412)
    api.go("PUT", "/api/approvals/policies", body=policy, headers={"If-Match": headers["etag"]})


def test_people(instance, api):
    admin, person, word = instance.password, "p" + secrets.token_hex(4), secrets.token_urlsafe(16)
    api.go("GET", "/api/me")
    api.go("POST", "/api/administrators", status=204, body={
        "username": person, "role": "viewer", "new_password": word, "password": admin})
    api.go("GET", "/api/administrators")
    api.go("GET", "/api/administrators/{name}", person)
    api.go("PUT", "/api/administrators/{name}/role", person, status=204, body={"role": "reviewer", "password": admin})
    other = Rest(api.rest.where)
    assert other.login(person, word)[0] == 200
    logins = api.value("GET", "/api/logins")["items"]
    mine = next(x for x in logins if x["username"] == person)
    api.go("DELETE", "/api/logins/{id}", mine["id"], status=204)
    assert other.login(person, word)[0] == 200
    new = secrets.token_urlsafe(16)
    api.go("POST", "/api/proof", rest=other, status=204, body={"password": word})
    api.go("POST", "/api/password", rest=other, status=204, body={"old_password": word, "new_password": new})
    asked = api.value("POST", "/api/passkeys/challenge", rest=other, body={"kind": "register"})
    key = Passkey()
    api.go("POST", "/api/passkeys", rest=other, status=204,
           body={"label": "a key", "credential": key.created_json(asked)})
    listed = api.value("GET", "/api/passkeys", rest=other)["items"]
    api.go("POST", "/api/logout", rest=other, status=204)
    answer = other.login(person, new)
    api.judge("POST", "/api/login", OPERATIONS["POST", "/api/login"], answer)
    asked = api.value("POST", "/api/passkeys/challenge", rest=other, body={"kind": "login"})
    api.go("POST", "/api/login/passkey", rest=other, body={"assertion": key.got_json(asked)})
    api.go("POST", "/api/passkeys/remove", rest=other, status=204, body={"id": listed[0]["id"]})
    api.go("POST", "/api/logout", rest=other, status=204)
    api.go("DELETE", "/api/administrators/{name}/logins", person, status=204)
    api.go("POST", "/api/administrators/{name}/password", person, status=204, body={
        "new_password": word, "password": admin})
    api.go("POST", "/api/administrators/{name}/delete", person, status=204, body={"password": admin})
    key = api.value("POST", "/api/keys", body={"name": "k" + secrets.token_hex(4), "scopes": ["read"]}, status=201)
    assert key["name"] in [k["name"] for k in api.value("GET", "/api/keys")["items"]]
    api.go("POST", "/api/keys/{name}/revoke", key["name"], body={"reason": "a test"})
    made = api.value("POST", "/api/tokens", body={"name": "t" + secrets.token_hex(4)}, status=201)
    token = next(t for t in api.value("GET", "/api/tokens")["items"] if t["name"] == (made.get("name") or made["info"]["name"]))
    api.go("GET", "/api/tokens/{id}", token["id"])
    api.go("POST", "/api/tokens/{id}/revoke", token["id"], body={"reason": "a test"})


def test_people_with_signed_tokens(api):
    _, headers, _ = api.go("GET", "/api/access")
    example = OPERATIONS["PUT", "/api/access"]["requestBody"]["content"]["application/json"]["example"]
    _, headers, _ = api.go("PUT", "/api/access", body=example, headers={"If-Match": headers["etag"]})
    api.go("PUT", "/api/access", body={}, status=428)
    api.go("PUT", "/api/access", body={}, headers={"If-Match": '"' + "1" * 64 + '"'}, status=412)
    assert api.value("POST", "/api/access/refresh", body={"issuer": "pocket"})["items"][0]["state"] == "given"
    api.go("POST", "/api/access/refresh", body={"issuer": "none"}, status=404)
    api.go("POST", "/api/access/refresh", body={"issuer": ""}, status=400)
    who = {"principal": "oidc:pocket:alice"}
    api.go("POST", "/api/identities/withdraw", body={**who, "reason": "a test"})
    assert api.value("GET", "/api/identities", query="?issuer=pocket&state=withdrawn")["items"]
    api.go("POST", "/api/identities/restore", body=who)
    _, headers, _ = api.go("PUT", "/api/access", body={**example, "endpoints": [{"name": "home", "allow": ["*"]}]},
                           headers={"If-Match": headers["etag"]})
    assert api.value("GET", "/api/endpoints")["items"][0]["path"] == "/mcp/home"
    _, headers, _ = api.go("PUT", "/api/access", headers={"If-Match": headers["etag"]}, body={
        **example, "notifications": {"targets": [{"name": "phone", "notify": "ntfy http://127.0.0.1:9/topic"}]}})
    until(lambda: [t["target"] for t in api.value("GET", "/api/notifications")["items"]] == ["phone"], 60)
    said = api.value("POST", "/api/notifications/test", body={"target": "phone"})     # nobody listens there
    assert said["sent"] is False and "127.0.0.1:9" in said["error"], said
    api.go("POST", "/api/notifications/test", body={"target": "none"}, status=404)
    api.go("POST", "/api/notifications/test", body={"target": ""}, status=400)
    api.go("PUT", "/api/access", body={}, headers={"If-Match": headers["etag"]})


def test_records(instance, api):
    api.go("GET", "/api/audit", query="?limit=200")
    api.go("GET", "/api/audit/export")
    some = api.value("GET", "/api/executions", query="?limit=5")["items"]
    api.go("GET", "/api/executions/{id}", some[0]["id"])
    api.go("GET", "/api/executions", query="?hash=" + "0" * 64)
    api.go("GET", "/api/executions", query="?hash=" + "0" * 63, status=400)
    api.go("GET", "/api/executions/stats")
    api.go("GET", "/api/executions/export")
    api.go("GET", "/api/activity")
    api.go("GET", "/metrics")
    stream(instance, api)


def stream(instance, api):
    """The head and first event of what never ends."""
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=patience(20))
    c.request("GET", "/api/activity/stream", headers={"Cookie": api.rest.cookie,
                                                             "X-CSRF-Token": api.rest.csrf})
    r = c.getresponse()
    line, end = b"", time.monotonic() + patience(20)
    while not line.startswith(b"data:"):
        with Client(instance.address) as mcp:
            mcp.manage("mcpbox_list_servers")  # an execution of its own, so an event
        line = r.readline()
        assert line and time.monotonic() < end, line
    json.loads(line[5:])
    headers = {k.lower(): v for k, v in r.getheaders()}
    api.judge("GET", "/api/activity/stream", OPERATIONS["GET", "/api/activity/stream"], (r.status, headers, None))
    c.sock.shutdown(socket.SHUT_RDWR)
    c.close()


def test_the_whole(api):
    for where in ("/health", "/api/status", "/api/health", "/api/dashboard", "/api/settings", "/api/breakers",
                  "/api/rate-limits"):
        api.go("GET", where)
    api.go("GET", "/")
    api.go("GET", "/", headers={"Host": "localhost"}, status=307)
    code, headers, _ = api.go("GET", "/api/settings/{name}", "confirm_destructive")
    api.go("PUT", "/api/settings/{name}", "confirm_destructive", body={"value": "on"},
           headers={"If-Match": headers["etag"]})
    api.go("DELETE", "/api/settings/{name}", "confirm_destructive")
    api.go("POST", "/api/rate-limits", body={"scope": "principal", "subject": "somebody", "per_minute": 60})
    api.go("POST", "/api/rate-limits/remove", body={"scope": "principal", "subject": "somebody"})
    api.go("POST", "/api/breakers/reset")
    head = api.value("POST", "/api/exports", body={})
    lines, cursor = [], ""
    while cursor is not None:
        page = api.value("GET", "/api/exports/{id}/lines", head["id"], query=f"?cursor={cursor}" if cursor else "")
        lines, cursor = lines + page["items"], page["next_cursor"]
    text, at = "".join(line + "\n" for line in lines), 0
    begun = api.value("POST", "/api/imports")
    while at < len(text):
        api.go("PUT", "/api/imports/{id}/text", begun["id"], body={"from": at, "text": text[at:at + 8000]})
        at += 8000
    api.go("POST", "/api/imports/{id}/finish", begun["id"], body={"signature": head["signature"]})
    begun = api.value("POST", "/api/imports")
    api.go("DELETE", "/api/imports/{id}", begun["id"])


def test_every_refusal_is_a_problem(instance, api):
    """Without a login; what needs none gets a parameter it does not have."""
    stranger = Rest(api.rest.where)
    for (method, template), op in OPERATIONS.items():
        ids = ["1" * 8] * template.count("{")
        if op.get("security") == []:
            body = {"x": 1} if method == "POST" else None
            path = re.sub(r"\{\w+\}", "11111111", template)
            answer = stranger.request(method, path + ("?no=1" if method == "GET" else ""), body)
            assert answer[0] == 400, (method, template, answer)
            api.judge(method, template, op, answer)
        else:
            api.go(method, template, *ids, rest=stranger, status=401, body={} if method != "GET" else None)


def test_every_documented_answer_was_seen(seen):
    documented = {(m, p, code) for (m, p), op in OPERATIONS.items() for code in op["responses"]}
    assert documented - seen == NOT_HERE
