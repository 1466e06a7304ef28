"""Scripts' keys for REST: what each scope opens, that nothing else opens, and
that nothing of a key outlives it."""
import http.client
import json
import pathlib
import re
import secrets
import uuid

import pytest

from harness.clients.rest import Rest
from harness.patience import patience
from integration.admin.test_proof import stale

ROOT = pathlib.Path(__file__).resolve().parents[3]
PASSWORD = "a long password of tests"

# The routes that each scope opens, written by hand: routes.def and admin_action.def must say
# the same, and every other route must be closed to all keys.
OPEN = {
    "read": """GET /api/servers
        GET /api/servers/{id}
        GET /api/servers/{id}/limits
        GET /api/secrets
        GET /api/servers/{name}/secrets
        GET /api/servers/{name}/secrets/{name2}
        GET /api/modules
        GET /api/modules/installs
        GET /api/tools
        GET /api/tools/{id}
        GET /api/tools/{id}/versions/{id2}
        GET /api/tools/{id}/diff/{id2}
        GET /api/versions
        GET /api/sources
        GET /api/sources/{id}
        GET /api/sources/{id}/tools
        GET /api/approvals
        GET /api/approvals/{id}
        GET /api/approvals/{id}/comments
        GET /api/network
        GET /api/tokens
        GET /api/tokens/{id}
        GET /api/keys
        GET /api/access
        GET /api/endpoints
        GET /api/notifications
        GET /api/identities
        GET /api/executions
        GET /api/executions/stats
        GET /api/activity
        GET /api/activity/stream
        GET /api/rate-limits
        GET /api/breakers
        GET /api/dashboard
        GET /api/health
        GET /api/status
        GET /api/settings
        GET /api/settings/{name}""",
    "metrics": "GET /metrics",
    "export": """GET /api/audit/export
        GET /api/executions/export
        POST /api/exports
        GET /api/exports/{id}/lines""",
    "operate": """POST /api/servers/{id}/start
        POST /api/servers/{id}/stop
        PUT /api/servers/{id}/limits
        POST /api/tools/{id}/enable
        POST /api/tools/{id}/disable
        POST /api/tools/{id}/rollback
        POST /api/tools/{id}/prune
        POST /api/rate-limits
        POST /api/rate-limits/remove
        POST /api/breakers/reset""",
}
OPEN = {tuple(line.split()): scope for scope, text in OPEN.items() for line in text.splitlines()}
# Nobody is asked who he is.
PUBLIC = {("GET", "/"), ("GET", "/panel/{name}"), ("GET", "/api/panel"), ("GET", "/health"), ("POST", "/api/login"),
          ("GET", "/api/oauth/callback"),
          ("GET", "/api/signin"), ("POST", "/api/signin/begin"), ("GET", "/api/signin/callback"),
          ("POST", "/api/signin/finish")}


def table():
    """(method, path): the scope of its row, of all routes."""
    found = {}
    for name, row in (("admind/http/routes.def", r'^R\((?P<m>\w+), "(?P<p>[^"]+)", \w+, (?P<s>\w+),'),
                      ("common/admin/admin_action.def",
                       r'^A\(\w+, \w+, (?P<s>\w+), (?P<m>\w+), "(?P<p>[^"]+)",')):
        text = re.sub(r"/\*.*?\*/", "", (ROOT / name).read_text(encoding="ascii"), flags=re.S)
        rows = list(re.finditer(row, text, re.M))
        assert len(rows) == len(re.findall(r"^[RA]\(", text, re.M)), name
        for r in rows:
            found[r["m"], r["p"]] = None if r["s"] == "NEVER" else r["s"].lower()
    return found


class Script:
    """A program with a key. It sends what it is told to, and nothing else."""

    def __init__(self, instance, key):
        self.instance, self.key = instance, key

    def send(self, method, path, body=None, key=True, **fields):
        """(status, the fields of the answer, JSON or None), without the rest of a stream."""
        headers = {k.replace("_", "-"): v for k, v in fields.items() if v is not None}
        if key:
            headers["Authorization"] = "Bearer " + self.key
        if body is not None:
            headers["Content-Type"] = "application/json"
        c = http.client.HTTPConnection(*self.instance.address("admind-http"), timeout=patience(30))
        try:
            c.request(method, path, None if body is None else json.dumps(body), headers)
            r = c.getresponse()
            text = b"" if r.headers.get_content_type() == "text/event-stream" else r.read()
            return r.status, r.headers, json.loads(text) if "json" in r.headers.get_content_type() and text \
                and r.headers.get_content_type() != "application/x-ndjson" else None
        finally:
            c.close()

    def refused(self, status, mode, *args, **kw):
        code, headers, value = self.send(*args, **kw)
        assert (code, value["failure_mode"]) == (status, mode), (args, code, value)
        assert value["fix"]
        if status == 401:
            assert headers["WWW-Authenticate"] == 'Bearer realm="mcpbox"'
        return value


def unique():
    return "k" + secrets.token_hex(5)


def make(instance, rest, *scopes, name=None, **more):
    name = name or unique()
    code, headers, made = rest.request("POST", "/api/keys", {"name": name, "scopes": list(scopes), **more})
    assert code == 201, made
    assert re.fullmatch(r"mbk_[A-Za-z0-9_-]{43}", made["key"]) and headers["cache-control"] == "no-store"
    return Script(instance, made["key"]), name


@pytest.fixture
def person(instance):
    """An administrator of this test's own: his name, and REST as him."""
    name = "keys" + uuid.uuid4().hex[:8]
    instance.ctl("administrators", "create", name, "--role", "administrator", stdin=PASSWORD + "\n")
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login(name, PASSWORD)[0] == 200
    return name, r


# ---- the table ----

def test_the_table_is_what_was_decided():
    rows = table()
    assert len(rows) > 100
    assert {k: s for k, s in rows.items() if s is not None} == OPEN
    assert PUBLIC <= set(rows)


def fill(path):
    if path == "/api/versions":     # never listed without a filter
        path += "?tool={id}"
    return re.sub(r"\{id2?\}", lambda _: str(uuid.uuid4()), re.sub(r"\{name2?\}", "nobody", path))


@pytest.mark.parametrize("scope", ["read", "metrics", "export", "operate"])
def test_every_route_by_a_key_of_one_scope(instance, rest, scope):
    script, _ = make(instance, rest, scope)
    walked = 0
    for method, path in table():
        if (method, path) in PUBLIC:
            continue
        code, _, value = script.send(method, fill(path), None if method == "GET" else {},
                                     If_Match='"' + "1" * 64 + '"' if method != "GET" else None)
        if OPEN.get((method, path)) == scope:
            assert code < 500 and code not in (401, 403), (method, path, code, value)
            walked += 1
        else:
            assert code == 403 and value["failure_mode"] == "forbidden", (method, path, code, value)
            assert (method, path) in OPEN or "a person does it" in value["detail"], value
    assert walked == list(OPEN.values()).count(scope)


def test_all_scopes_together_open_nothing_more(instance, rest):
    script, _ = make(instance, rest, "read", "metrics", "export", "operate")
    for method, path in table():
        if (method, path) not in PUBLIC:
            code, _, value = script.send(method, fill(path), None if method == "GET" else {},
                                         If_Match='"' + "1" * 64 + '"' if method != "GET" else None)
            assert code < 500, (method, path, code, value)
            assert (code in (401, 403)) == ((method, path) not in OPEN), (method, path, code, value)


def test_what_is_open_to_all_reads_no_key(instance, rest):
    script, _ = make(instance, rest, "read")
    assert script.send("GET", "/health")[0] == script.send("GET", "/health", key=False)[0] == 200
    assert script.send("GET", "/")[0] == 200
    code, _, value = script.send("POST", "/api/login", {"username": "admin", "password": script.key})
    assert (code, value["failure_mode"]) == (401, "bad_login")


def test_a_key_may_not_search_in_arguments(instance, rest):
    """Of a route that it may use, what takes a reviewer."""
    script, _ = make(instance, rest, "read")
    assert script.send("GET", "/api/executions?limit=1")[0] == 200
    value = script.refused(403, "forbidden", "GET", "/api/executions?search=word")
    assert "no key may do this" in value["detail"]


# ---- whose it is ----

def test_what_it_does_is_its_own(instance, rest):
    script, name = make(instance, rest, "operate")
    listener = {"scope": "principal", "subject": "token:" + name, "per_minute": 60}
    code, _, limit = script.send("POST", "/api/rate-limits", listener, Idempotency_Key="once")
    assert code == 200 and limit["updated_by"] == "key:" + name
    assert script.send("POST", "/api/rate-limits", listener, Idempotency_Key="once")[2] == limit
    rows = rest.get(f"/api/audit?actor=key:{name}")[2]["items"]
    assert [r["action"] for r in rows] == ["rate_limit_set"]
    assert instance.ctl_json("keys", "list")["items"]
    shown = next(k for k in rest.get("/api/keys")[2]["items"] if k["name"] == name)
    assert shown["actor"] == "key:" + name and shown["last_used_at"] and script.key not in json.dumps(shown)


def test_only_its_digest_is_kept(instance, rest):
    script, name = make(instance, rest, "read")
    assert instance.psql(f"SELECT encode(digest, 'hex') = encode(sha256('{script.key}'), 'hex')"
                         f" FROM mcpbox.script_keys WHERE name = '{name}'") == [["t"]]
    assert script.send("GET", "/api/servers")[0] == 200
    assert script.key not in instance.logs() and script.key[4:] not in instance.logs()


def test_who_makes_keys(instance, rest, person):
    name = "made" + uuid.uuid4().hex[:8]
    instance.ctl("administrators", "create", name, "--role", "reviewer", stdin=PASSWORD + "\n")
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login(name, PASSWORD)[0] == 200
    wanted = {"name": unique(), "scopes": ["read"]}
    assert r.request("POST", "/api/keys", wanted)[0] == 403
    assert Rest(rest.where).request("POST", "/api/keys", wanted)[0] == 401
    assert make(instance, person[1], "read")[0].send("GET", "/api/me")[0] == 403
    for wrong in ({"scopes": ["read"]}, {"name": "x"}, {"name": "x", "scopes": []}, {"name": "x", "scopes": ["never"]},
                  {"name": "x", "scopes": "read"}, {"name": "x", "scopes": [1]}, {"name": "a b", "scopes": ["read"]},
                  {"name": "x", "scopes": ["read"], "expires_in_days": 0},
                  {"name": "x", "scopes": ["read"], "expires_in_days": 366},
                  {"name": "x", "scopes": ["read"], "actor": "root"}):
        code, _, value = rest.request("POST", "/api/keys", wrong)
        assert (code, value["failure_mode"]) == (400, "invalid_params"), (wrong, value)


def test_a_stolen_login_makes_none(instance):
    """A key would live on; one that is there takes no proof (test_proof.py has API tokens)."""
    r, name = stale(instance), unique()
    code, _, value = r.request("POST", "/api/keys", {"name": name, "scopes": ["read"]})
    assert (code, value["failure_mode"]) == (403, "proof_required")
    assert instance.psql(f"SELECT count(*) FROM mcpbox.script_keys WHERE name = '{name}'") == [["0"]]
    r.proves = True
    script, _ = make(instance, r, "read", name=name)
    assert script.send("GET", "/api/servers")[0] == 200


# ---- how it comes ----

def test_a_key_and_a_login_do_not_come_together(instance, rest):
    script, _ = make(instance, rest, "read")
    for fields in ({"Cookie": rest.cookie, "X_CSRF_Token": rest.csrf}, {"Cookie": rest.cookie},
                   {"X_CSRF_Token": rest.csrf}, {"Cookie": "mcpbox_session=x"}):
        script.refused(400, "invalid_request", "GET", "/api/servers", **fields)
    # A cookie of another program is nobody's login.
    assert script.send("GET", "/api/servers", Cookie="other=1")[0] == 200
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=patience(30))
    c.putrequest("GET", "/api/servers")
    for _ in range(2):
        c.putheader("Authorization", "Bearer " + script.key)
    c.endheaders()
    assert c.getresponse().status == 400
    c.close()


def test_a_page_of_another_origin_gains_nothing(instance, rest):
    """Authorization takes a preflight, which is refused; what comes without one has an Origin that is not ours."""
    script, _ = make(instance, rest, "read", "operate")
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
        code, headers, _ = script.send("OPTIONS", "/api/servers", key=False, Origin=origin,
                                       Access_Control_Request_Method="GET",
                                       Access_Control_Request_Headers="authorization")
        assert code in (403, 405)
        assert not [h for h in headers if h.lower().startswith("access-control")]
        script.refused(403, "forbidden_origin", "GET", "/api/servers", Origin=origin)
        script.refused(403, "forbidden_origin", "POST", "/api/breakers/reset", {}, Origin=origin)
    host, port = instance.address("admind-http")
    code, headers, _ = script.send("OPTIONS", "/api/servers", key=False, Origin=f"http://{host}:{port}",
                                   Access_Control_Request_Method="GET")
    assert code == 405 and not [h for h in headers if h.lower().startswith("access-control")]
    script.refused(403, "forbidden_origin", "GET", "/api/servers", Sec_Fetch_Site="same-site")
    script.refused(403, "forbidden_origin", "GET", "/api/servers", Host="rebound.example")


def test_a_key_in_the_address_is_refused(instance, rest):
    script, _ = make(instance, rest, "read")
    for path in (f"/api/servers?access_token={script.key}", f"/api/approvals?search={script.key}",
                 f"/api/settings/{script.key}", f"/api/oauth/callback?state={script.key}"):
        for key in (True, False):
            value = script.refused(400, "invalid_request", "GET", path, key=key)
            assert script.key not in json.dumps(value)
    assert script.send("GET", "/api/settings/mbk_short")[0] == 404


def test_a_key_is_no_login(instance, rest):
    script, _ = make(instance, rest, "read", "operate")
    for fields in ({"Cookie": "mcpbox_session=" + script.key}, {"Cookie": rest.cookie, "X_CSRF_Token": script.key},
                   {"Cookie": "mcpbox_session=" + script.key, "X_CSRF_Token": script.key}):
        value = script.refused(401, "unauthenticated", "POST", f"/api/approvals/{uuid.uuid4()}/approve", {}, key=False,
                               **fields)
        assert "approval, needs a person" in value["detail"]
    value = script.refused(403, "forbidden", "POST", f"/api/approvals/{uuid.uuid4()}/approve", {})
    assert "a person does it" in value["detail"]


def test_wrong_keys(instance, rest):
    good, name = make(instance, rest, "read")
    for text in ("mbk_", "mbk_x", good.key[:-1], good.key + "A", "mbk_" + "=" * 43):
        value = Script(instance, text).refused(401, "unauthenticated", "GET", "/api/servers")
        assert "form" in value["detail"] and "mcpboxctl keys" in value["fix"]
    other = "mbk_" + good.key[4:-2] + ("AA" if good.key[-2:] != "AA" else "BA")
    assert "not known" in Script(instance, other).refused(401, "unauthenticated", "GET", "/api/servers")["detail"]
    assert "not known" in Script(instance, other).refused(401, "unauthenticated", "GET", "/metrics")["detail"]
    # A body is not read for a stranger.
    value = Script(instance, other).refused(401, "unauthenticated", "POST", "/api/breakers/reset", {"no_such": 1})
    assert "not known" in value["detail"]
    assert rest.request("POST", f"/api/keys/{name}/revoke", {"reason": "test"})[2]["state"] == "revoked"
    assert "revoked" in good.refused(401, "unauthenticated", "GET", "/api/servers")["detail"]
    old = secrets.token_hex(8)
    text = "mbk_" + "A" * (43 - len(old)) + old
    instance.psql("INSERT INTO mcpbox.script_keys (name, digest, scopes, created_at, created_by, expires_at) VALUES"
                  f" ('{old}', sha256('{text}'), '{{read}}', now() - interval '2 days', 'root',"
                  " now() - interval '1 day')")
    assert "expired" in Script(instance, text).refused(401, "unauthenticated", "GET", "/api/servers")["detail"]
    assert {k["name"]: k["state"] for k in rest.get("/api/keys?limit=200")[2]["items"]}[old] == "expired"


def test_other_bearers_are_as_before(instance, rest):
    for text in ("mbt_" + "A" * 43, "x", "mbk"):
        value = Script(instance, text).send("GET", "/api/servers")[2]
        assert value["failure_mode"] == "unauthenticated" and "Sign in again" in value["fix"]
    value = Script(instance, "mbt_" + "A" * 43).send("GET", "/metrics")[2]
    assert "metrics_token_file" in value["detail"]


# ---- its end ----

class Tail:
    """A live tail by a key."""

    def __init__(self, script):
        self.c = http.client.HTTPConnection(*script.instance.address("admind-http"), timeout=patience(30))
        self.c.request("GET", "/api/activity/stream?kind=activity", headers={"Authorization": "Bearer " + script.key})
        self.r = self.c.getresponse()
        assert self.r.status == 200

    def last(self):
        lines = [line for line in self.r.read().splitlines() if line.startswith(b"data: ")]
        self.c.close()
        return json.loads(lines[-1][6:])


def revoke(instance, rest, name, maker):
    instance.ctl("keys", "revoke", name, "a test")


def expire(instance, rest, name, maker):
    instance.psql("SET session_replication_role = replica; UPDATE mcpbox.script_keys SET"
                  " created_at = now() - interval '2 days', expires_at = now() - interval '1 s'"
                  f" WHERE name = '{name}'")


def remove(instance, rest, name, maker):
    instance.ctl("administrators", "delete", maker)


@pytest.mark.parametrize("how", [revoke, expire, remove])
def test_nothing_outlives_it(instance, rest, person, how):
    """The next request is refused, and a stream ends; that of another key goes on."""
    script, name = make(instance, person[1], "read", "metrics")
    other, _ = make(instance, rest, "read")
    tail, others = Tail(script), Tail(other)
    assert script.send("GET", "/metrics")[0] == 200
    how(instance, rest, name, person[0])
    script.refused(401, "unauthenticated", "GET", "/api/servers")
    script.refused(401, "unauthenticated", "GET", "/metrics")
    e = tail.last()
    assert e["type"] == "end" and e["failure_mode"] == "unauthenticated" and "live key" in e["message"]
    assert other.send("GET", "/api/servers")[0] == 200
    others.c.sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        while b'"end"' not in others.c.sock.recv(65536):
            pass
    others.c.close()


def test_another_person_of_his_name_gets_no_key(instance, person):
    name, r = person
    script, _ = make(instance, r, "read")
    remove(instance, None, None, name)
    instance.ctl("administrators", "create", name, "--role", "administrator", stdin=PASSWORD + "\n")
    assert "revoked" in script.refused(401, "unauthenticated", "GET", "/api/servers")["detail"]


def test_a_lower_role_lowers_his_keys(instance, person):
    name, r = person
    script, _ = make(instance, r, "read", "operate")
    assert script.send("POST", "/api/breakers/reset", {})[0] == 200
    for role in ("reviewer", "viewer"):
        instance.ctl("administrators", "role", name, role)
        value = script.refused(403, "forbidden", "POST", "/api/breakers/reset", {})
        assert "the maker of this key" in value["detail"]
        assert script.send("GET", "/api/servers")[0] == 200
    instance.ctl("administrators", "role", name, "administrator")
    assert script.send("POST", "/api/breakers/reset", {})[0] == 200


# ---- mcpboxctl ----

def test_mcpboxctl(instance):
    name = unique()
    made = instance.ctl("keys", "create", name, "--scopes", "metrics,read", "--days", "365")
    script = Script(instance, made.stdout.strip())
    assert "shown once" in made.stderr and script.send("GET", "/api/status")[0] == 200
    shown = next(k for k in instance.ctl_json("keys", "list", "--limit", "200")["items"] if k["name"] == name)
    assert (shown["scopes"], shown["created_by"], shown["state"]) == (["metrics", "read"], "root", "active")
    assert script.key not in instance.ctl("keys").stdout
    instance.ctl("keys", "revoke", name, "--reason", "no more")
    assert script.send("GET", "/api/status")[0] == 401
    second = instance.ctl_json("keys", "create", unique(), "--scopes", "export")
    assert second["key"].startswith("mbk_") and second["scopes"] == ["export"]
    for words, code in ((("create", "x"), 2), (("create", "x", "--scopes", "read", "--days", "366"), 2),
                        (("create", "x", "--scopes", "all"), 1), (("create", name, "--scopes", "read"), 1),
                        (("revoke", "nobody"), 1), (("revoke",), 2), (("list", "--days", "3"), 2)):
        assert instance.ctl("keys", *words, check=False).returncode == code, words
