"""Tools of kind http: the G- cases of the REST system that mcpbox grew out of,
by number, and against a REST service over the instance's own PostgreSQL.

What a request is made of is tested on the driver itself, outside a sandbox;
everything else through a whole instance in a network namespace."""
import json
import threading

import psycopg
import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, Client, request, text
from harness.clients.rest import Rest as Web
from harness.net.postgrest import Rest
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.upstream import Raw, Service, runner_modules

runner_modules()

import mcpbox                                       # noqa: E402
import mcpbox_drivers as drivers                    # noqa: E402
import mcpbox_httpkind as kind                      # noqa: E402

API, OTHER = "93.184.216.34", "142.250.185.14"
URL = "http://api.example"


def spec(method="GET", path="/posts", **more):
    return {"method": method, "url": URL + path, **more}


def parameter(where, kind="string", **more):
    return {"in": where, "schema": {"type": kind}, **more}


# ---- the request, by itself ----

def built(given, secrets=None, **more):
    method, url, headers, body = kind.build(spec(**more), given, secrets or {})
    return method, url.removeprefix(URL), dict(headers), body


ID = {"path": "/posts/{id}/x", "parameters": {"id": parameter("path")}}


@pytest.mark.parametrize("value", [
    "1/comments", "../users/1", "1?x=y", "1#f", "a\\b", "/", "a\nb", "a\x00", "\x7f", "\x85", "..", ".", "", " ", "\t"],
    ids=lambda v: f"G-110 {v!r}")
def test_no_path_segment(value):
    with pytest.raises(drivers.InvalidArguments):
        built({"id": value}, **ID)


@pytest.mark.parametrize("value, segment", [
    ("%2e%2e", "%252e%252e"), ("%2F", "%252F"), ("a b", "a%20b"), ("\u00fc", "%C3%BC"), ("a;b=c&d+e:f@g,h!$'()*", None),
    ("...", "..."), ("~-_.", "~-_."), ("\u202e", "%E2%80%AE"), (7, "7"), (-5, "-5"), (True, "true"), (1.5, "1.5"),
    ("\uff0e\uff0e", "%EF%BC%8E%EF%BC%8E"), ("{id}", "%7Bid%7D"), ("{secret:KEY}", "%7Bsecret%3AKEY%7D")],
    ids=lambda v: f"G-110 {v!r}")
def test_path_segments(value, segment):
    _, url, _, _ = built({"id": value}, secrets={"KEY": "k"}, **ID)
    parts = url.split("/")
    assert parts[:2] == ["", "posts"] and parts[3:] == ["x"]
    if segment is not None:
        assert parts[2] == segment
    assert not set(parts[2]) & set("/?#\\ ")


def test_the_tokens_of_a_source_are_no_header():
    """An OAuth document is for its source's server alone, whoever names its secret."""
    doc = json.dumps({"access_token": "canary", "token_endpoint": "https://as.example/", "client": {}})
    for more in ({"headers": {"Authorization": "Bearer {secret:KEY}"}}, {"query": {"k": "{secret:KEY}"}}):
        assert "own" in str(built({}, secrets={"KEY": '{"own":1}'}, **more))
        with pytest.raises(drivers.Failure, match="that source alone"):
            built({}, secrets={"KEY": doc}, **more)


def test_two_dots_of_two_arguments():       # G-110
    dots = {"path": "/p/{a}{b}", "parameters": {"a": parameter("path"), "b": parameter("path")}}
    with pytest.raises(drivers.InvalidArguments):
        built({"a": ".", "b": "."}, **dots)
    assert built({"a": ".", "b": "x"}, **dots)[1] == "/p/.x"
    # one that the template spells is one, too, in each spelling
    for dot in (".", "%2E", "%2e"):
        half = {"path": f"/p/{dot}{{a}}/q", "parameters": {"a": parameter("path")}}
        with pytest.raises(drivers.InvalidArguments):
            built({"a": "."}, **half)
        assert built({"a": "x"}, **half)[1] == f"/p/{dot}x/q"


@pytest.mark.parametrize("value", [["a"], {"a": 1}, [], None], ids=lambda v: f"G-118 {v!r}")
def test_what_is_no_text_is_in_no_path(value):
    with pytest.raises(drivers.InvalidArguments):
        built({"id": value}, **ID)


def test_G_119_arguments_are_not_repeated_in_errors():
    with pytest.raises(drivers.InvalidArguments) as e:
        built({"id": "canary-7f3a/.."}, **ID)
    assert "canary" not in str(e.value) and "id" in str(e.value)


def test_query():
    parameters = {"q": parameter("query"), "list": parameter("query", "array", name="l[]"),
                  "comma": parameter("query", "array", style="comma"), "flag": parameter("query", "boolean")}
    given = {"q": "a&b=c#d", "list": [1, "x y"], "comma": [1, 2], "flag": False}
    assert built(given, parameters=parameters, query={"key": "{secret:KEY}", "v": "1"}, secrets={"KEY": "k&x"})[1] == \
        "/posts?key=k%26x&v=1&q=a%26b%3Dc%23d&l%5B%5D=1&l%5B%5D=x%20y&comma=1%2C2&flag=false"
    assert built({"q": None}, parameters=parameters)[1] == "/posts"


def test_headers_and_cookies():
    parameters = {"h": parameter("header", name="X-H"), "c": parameter("cookie", name="sid"), "l": parameter("header", "array")}
    _, _, headers, _ = built({"h": "a: b", "c": "x; y=1", "l": [1, 2]}, parameters=parameters,
                             headers={"Authorization": "Bearer {secret:KEY}"}, secrets={"KEY": "k"})
    assert headers == {"Authorization": "Bearer k", "X-H": "a: b", "Cookie": "sid=x%3B%20y%3D1", "l": "1,2"}
    for bad in ("a\r\nX: y", "a\nb", "\x00", "\x7f"):
        with pytest.raises(drivers.InvalidArguments):
            built({"h": bad}, parameters=parameters)


@pytest.mark.parametrize("how, given, body, media", [
    ("json", {"a": 1, "b": None}, b'{"a":1,"b_wire":null}', "application/json"),
    ("json", {}, b"{}", "application/json"),
    ("form", {"a": "1 2"}, b"a=1+2", "application/x-www-form-urlencoded")])
def test_bodies(how, given, body, media):
    parameters = {"a": {"in": "body", "schema": {}}, "b": {"in": "body", "name": "b_wire", "schema": {}}}
    _, _, headers, sent = built(given, method="POST", parameters=parameters, body=how)
    assert sent == body and headers == {"Content-Type": media}


def test_whole_bodies():
    one = {"a": {"in": "body", "schema": {}}}
    assert built({"a": [1, "\u00fc"]}, method="POST", parameters=one, body="whole")[3] == '[1,"\u00fc"]'.encode()
    assert built({}, method="POST", parameters=one, body="whole")[3] is None
    _, _, headers, sent = built({"a": "x"}, method="PUT", parameters=one, body="text", headers={"content-type": "text/csv"})
    assert sent == b"x" and headers == {"content-type": "text/csv"}


def test_a_secret_without_value_is_named():
    with pytest.raises(drivers.MissingGrant) as e:
        built({}, headers={"A": "{secret:KEY}"})
    assert "KEY" in str(e.value)


# ---- the answer, by itself ----

def answered(reply, **more):
    with Raw(reply) as up:
        return kind.main({"method": "GET", "url": up.url("/x"), "timeout_ms": 60000, **more}, {}, {})


def http(body, media=b"application/json", status=b"200 OK"):
    return b"HTTP/1.1 %b\r\nContent-Type: %b\r\nX-A: b\r\nContent-Length: %d\r\n\r\n" % (status, media, len(body)) + body


def test_answers():
    assert answered(http(b'{"a":[1,{"b/~":2}]}')) == {"a": [1, {"b/~": 2}]}
    assert answered(http(b'{"a":[1,{"b/~":2}]}'), response={"pointer": "/a/1/b~1~0"}) == 2
    assert answered(http(b'{"a":1}', b"application/problem+json")) == {"a": 1}
    assert answered(http(b'{"a":1}'), response={"as": "text"}) == '{"a":1}'
    assert answered(http(b'{"a":1}', b"text/plain"), response={"as": "json"}) == {"a": 1}
    assert answered(http(b"plain", b"text/plain")) == "plain"
    assert answered(http("\u00fc".encode("latin-1"), b"text/plain; charset=latin-1")) == "\u00fc"
    assert answered(b"HTTP/1.1 204 No\r\n\r\n") == ""
    picture = answered(http(b"\x89PNG", b"image/png"))
    assert isinstance(picture, mcpbox.Image) and picture.mime_type == "image/png"
    assert isinstance(answered(http(b"\xff\xfe", b"application/octet-stream")), mcpbox.Resource)
    assert answered(http(b'{"a":1}'), response={"as": "status", "headers": ["x-a", "none"]}) == {
        "status": 200, "headers": {"x-a": "b"}, "body": {"a": 1}}
    assert answered(http(b"no", b"text/plain", b"404 Not Found"), response={"as": "status", "success": [200, 404]}) == {
        "status": 404, "body": "no"}


@pytest.mark.parametrize("reply, more, failure, says", [
    (http(b'{"detail":"none"}', status=b"404 Not Found"), {}, drivers.Upstream, ["404", "none"]),
    (http(b"", status=b"500 Oh"), {}, drivers.Upstream, ["500 Oh"]),
    # G-117: 3xx is no success
    (b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n", {}, drivers.Upstream,
     ["302", "http://elsewhere.example/"]),
    (b"HTTP/1.1 304 Not Modified\r\n\r\n", {}, drivers.Upstream, ["304"]),
    (http(b'{"a":1}'), {"response": {"pointer": "/b"}}, drivers.Upstream, ["nothing at /b"]),
    (http(b'[1]'), {"response": {"pointer": "/01"}}, drivers.Upstream, ["nothing at /01"]),
    (http(b'{"a":NaN}'), {}, drivers.Upstream, ["not JSON"]), (http(b"<html>"), {}, drivers.Upstream, ["not JSON", "<html>"]),
    (http(b"[" * 100000), {}, drivers.Upstream, ["not JSON"]), (b"garbage", {}, drivers.Upstream, ["no usable answer"]),
    # G-114: caps
    (http(b"x" * 2000, b"text/plain"), {"max_bytes": 1000}, drivers.Limit, ["1000 bytes"]),
    ("never", {"timeout_ms": 200}, drivers.Timeout, ["time"])], ids=range(12))
def test_failures_are_typed(reply, more, failure, says):
    over = threading.Event()
    with pytest.raises(failure) as e:
        try:
            answered((lambda c: over.wait()) if reply == "never" else reply, **more)
        finally:
            over.set()
    assert type(e.value) is failure and all(s in str(e.value) for s in says), e.value


def test_what_is_shown_of_a_failure():
    with pytest.raises(drivers.Upstream) as e:
        answered(http(b"a\x1b[31m\x00b" + b"x" * 5000, b"text/plain", b"400 Bad"))
    assert "\x1b" not in str(e.value) and len(str(e.value)) < 1500


# ---- a whole instance ----

@pytest.fixture(scope="module")
def shop(instance):
    """A database of its own in the instance's PostgreSQL."""
    where = {"host": instance.run("postgresql"), "user": "postgres"}
    with psycopg.connect(**where, dbname="postgres", autocommit=True) as c:
        c.execute("CREATE DATABASE shop")
    where["dbname"] = "shop"
    with psycopg.connect(**where, autocommit=True) as c:
        c.execute("CREATE TABLE posts (id serial PRIMARY KEY, user_id int NOT NULL, title text NOT NULL UNIQUE, body text)")
        c.execute("INSERT INTO posts (user_id, title) SELECT 1 + n % 3, 'post ' || n FROM generate_series(1, 9) n")
    return where


@pytest.fixture(scope="module")
def api(instance, ns, dns, shop):
    dns.zone["api.example"] = d.Answer(a=[API])
    dns.zone["other.example"] = d.Answer(a=[OTHER])
    rest = Rest(**shop)
    over = threading.Event()

    def handle(r):
        if r.path == "/auth":
            return 200, {}, {"you": r.headers.get("authorization"), "key": dict(r.query).get("key")}
        if r.path == "/to-other":
            return 302, {"Location": "http://other.example/landed"}, b""
        if r.path == "/loop":
            return 302, {"Location": "/loop"}, b""
        if r.path == "/slow":
            over.wait()
        if r.path == "/huge":
            return 200, {}, {"a": "x" * 3_000_000}
        return rest.handle(r)
    with Service(handle, sock=ns.listen(API, 80)) as s:
        yield s
        over.set()


@pytest.fixture(scope="module")
def other(instance, ns):
    with Service(lambda r: (200, {}, {"landed": r.path, "keys": r.headers.get("authorization")}),
                 sock=ns.listen(OTHER, 80)) as s:
        yield s


@pytest.fixture
def client(instance):
    with Client(instance.address) as c:
        yield c


def server_id(client, name):
    known = {s["name"]: s["id"] for s in client.manage("mcpbox_list_servers")["servers"]}
    return known.get(name) or client.manage("mcpbox_create_server", name=name, description="Of the tests.")["id"]


def create(client, name, s, server="rest", **more):
    return client.call("mcpbox_create_tool", {"server_id": server_id(client, server), "name": name, "kind": "http",
                                              "description": "A declared call.", "spec": s, **more})


def publish(instance, client, name, s, server="rest", **more):
    r = create(client, name, s, server, **more)
    assert not r.result.get("isError"), r
    made = json.loads(text(r))
    client.manage("mcpbox_request_publish", tool_id=made["id"])
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    return made


def grant(instance, client, tool_id, host, **more):
    client.manage("mcpbox_request_network_access", tool_id=tool_id, host=host, justification="For the tests.", **more)
    for item in instance.ctl_json("approvals", "list", "--kind", "network")["items"]:
        shown = instance.ctl_json("approvals", "show", item["id"])
        instance.ctl("approvals", "approve", item["id"], "--hash", shown["hash"])


def failure(r):
    assert r.result is not None and r.result.get("isError"), r
    return r.result["_meta"]["mcpbox/failure"]["failure_mode"]


POST_ID = parameter("path", "integer")
POST_ID["schema"]["minimum"] = 1
TOOLS = {
    "get_posts": spec(parameters={"user_id": parameter("query"), "order": parameter("query"),
                                  "limit": parameter("query", "integer")}),
    "get_post": spec(path="/posts/{id}", parameters={"id": POST_ID}),
    "create_post": spec("POST", parameters={"user_id": parameter("body", "integer", required=True),
                                            "title": parameter("body", required=True), "body": parameter("body")}),
    "update_post": spec("PATCH", parameters={"id": parameter("query", required=True), "title": parameter("body")}),
    "delete_post": spec("DELETE", "/posts/{id}", parameters={"id": POST_ID}, response={"as": "status", "success": [204]}),
    "head_posts": spec("HEAD"),
    "slow": spec(path="/slow", timeout_ms=300), "huge": spec(path="/huge"), "loop": spec(path="/loop", redirects=3),
    "moved": spec(path="/to-other"), "escapes": spec(path="/to-other", redirects=2, headers={"Authorization": "{secret:TOKEN}"}),
    "follows": spec(path="/to-other", redirects=2, redirect_hosts=["other.example:80"]),
    "auth": spec(path="/auth", headers={"Authorization": "Bearer {secret:TOKEN}"}, query={"key": "{secret:TOKEN}"}),
}


@pytest.fixture(scope="module")
def tools(instance, api, other):
    """All of them approved, and their host granted."""
    with Client(instance.address) as c:
        server = server_id(c, "rest")
        c.manage("mcpbox_create_server_secret", server_id=server, key="TOKEN", description="Of the service.")
        instance.ctl("secret", "set", "rest", "TOKEN", stdin="very-secret-token")
        made = {name: publish(instance, c, name, s) for name, s in TOOLS.items()}
        grant(instance, c, made["get_post"]["id"], "api.example", port=80)
        return made


def test_G_12_to_15_schemas(tools):
    assert tools["head_posts"]["input_schema"] == {"type": "object", "properties": {}, "required": [],
                                                   "additionalProperties": False}
    assert tools["get_post"]["input_schema"]["properties"]["id"] == {"type": "integer", "minimum": 1}
    assert tools["get_post"]["input_schema"]["required"] == ["id"]
    assert tools["get_posts"]["input_schema"]["required"] == []
    assert tools["create_post"]["input_schema"]["required"] == ["user_id", "title"]


def test_what_follows_is_part_of_the_version(client, tools):
    shown = client.manage("mcpbox_get_tool", tool_id=tools["auth"]["id"])
    assert shown["requires"] == ["api.example:80"] and shown["secrets"] == ["TOKEN"] and not shown.get("confirm")
    assert client.manage("mcpbox_get_tool", tool_id=tools["delete_post"]["id"])["confirm"]
    assert client.manage("mcpbox_get_tool", tool_id=tools["follows"]["id"])["requires"] == [
        "api.example:80", "other.example:80"]


def test_reading(client, tools):        # G-39 ff
    r = client.call("rest__get_posts", {"user_id": "eq.1", "order": "id.desc", "limit": 2})
    assert [p["title"] for p in json.loads(text(r))] == ["post 9", "post 6"]
    r = client.call("rest__get_post", {"id": 4})
    assert r.result["structuredContent"]["title"] == "post 4" and json.loads(text(r))["id"] == 4
    r = client.call("rest__head_posts")
    assert r.result["structuredContent"]["status"] == 200


@pytest.mark.parametrize("name, arguments, says", [
    ("get_post", {}, ["id"]), ("get_post", {"id": ""}, ["id"]), ("get_post", {"id": " "}, ["id"]), ("get_post", {"id": None}, ["id"]),
    ("create_post", {}, ["user_id", "title"]), ("create_post", {"user_id": 1}, ["title"]),
    ("create_post", {"title": 1, "user_id": "x", "z": 1}, ["title", "user_id", "z"]),    # three at once
    ("get_post", {"id": 1, "a": 1}, ["a"]), ("get_post", {"id": 1, "a": 1, "b": 2}, ["a", "b"]),
    ("get_posts", {"user_id": "eq.1", "x": "y"}, ["x"]), ("get_post", {"id": ["a"]}, ["id"]), ("get_post", {"id": 1.5}, ["id"]),
    ("delete_post", {"id": 0}, ["id"]), ("delete_post", {"id": -5}, ["id"]), ("delete_post", {"id": "abc"}, ["id"])],
    ids=["G-16", "G-17", "G-17b", "G-17c", "G-19", "G-20", "G-24", "G-25", "G-26", "G-26b", "G-118", "G-118b", "G-34",
         "G-35", "G-36"])
def test_arguments_are_judged_together(client, tools, api, name, arguments, says):
    before = len(api.requests)
    r = client.call("rest__" + name, arguments)
    assert failure(r) == "invalid_arguments" and all(s in text(r) for s in says), text(r)
    assert len(api.requests) == before


def test_optional_ones_may_be_missing(client, tools):       # G-18, G-22, G-23
    assert len(json.loads(text(client.call("rest__get_posts")))) >= 8
    assert len(json.loads(text(client.call("rest__get_posts", {"user_id": "eq.2"})))) >= 3


def test_errors_of_the_other_server(client, tools):         # G-28 ff, G-42
    r = client.call("rest__get_post", {"id": 4711})
    assert failure(r) == "upstream_error" and "404" in text(r) and "there is no posts 4711" in text(r)
    r = client.call("rest__get_posts", {"user_id": "xx"})
    assert failure(r) == "upstream_error" and "400" in text(r) and "failed to parse filter" in text(r)
    r = client.call("rest__create_post", {"user_id": 1, "title": "post 1"})
    assert failure(r) == "upstream_error" and "409" in text(r) and "duplicate key" in text(r)


def test_G_29_to_33_time_is_a_failure_of_its_own(client, tools):
    """The other server never answers; the limit of this call alone is so short."""
    r = client.call("rest__slow")
    assert failure(r) == "timeout" and "/slow" in text(r)


def test_G_114_answers_have_a_size(client, tools):
    r = client.call("rest__huge")
    assert failure(r) == "limit" and "1048576 bytes" in text(r)


def test_writing(client, tools, shop):
    r = client.call("rest__create_post", {"user_id": 5, "title": "new'; DROP TABLE posts; --", "body": "\u00fc"})
    row = json.loads(text(r))[0]
    assert row["title"] == "new'; DROP TABLE posts; --"
    with psycopg.connect(**shop) as c:
        assert c.execute("SELECT body FROM posts WHERE id = %s", [row["id"]]).fetchone() == ("\u00fc",)


def waiting(instance, arguments):
    def look():
        for item in instance.ctl_json("approvals", "list", "--kind", "call")["items"]:
            if json.loads(item["arguments"]) == arguments:
                return instance.ctl_json("approvals", "show", item["id"])
        return None
    return until(look, say=lambda: "nobody asked")


def called(instance, name, arguments):
    """The answer of a call that a person says yes to."""
    got = []

    def call():
        with Client(instance.address, version=LEGACY) as c:
            got.append(c.call(name, arguments))
    t = threading.Thread(target=call)
    t.start()
    item = waiting(instance, arguments)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    t.join(patience(20))
    r = got[0]
    if r.result.get("isError") and failure(r) == "confirmation_pending":
        with Client(instance.address, version=LEGACY) as c:
            r = c.call(name, arguments)
    return r


def test_G_37_deleting_and_changing_wait_for_a_person(instance, tools, shop, api):
    def there(n):
        with psycopg.connect(**shop) as c:
            return c.execute("SELECT title FROM posts WHERE id = %s", [n]).fetchone()
    r = called(instance, "rest__delete_post", {"id": 8})
    assert r.result["structuredContent"]["status"] == 204 and there(8) is None
    r = called(instance, "rest__update_post", {"id": "eq.7", "title": "changed"})
    assert json.loads(text(r))[0]["title"] == "changed" and there(7) == ("changed",)
    assert [q.method for q in api.requests].count("DELETE") == 1


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH"])
def test_G_38_nobody_declares_that_away(client, instance, method):
    r = create(client, "sly", spec(method), confirm=False)
    assert failure(r) == "invalid_arguments" and "/spec/method" in text(r)


def test_every_fault_at_once(client, instance):         # INV-2, INV-3 at registration
    r = create(client, "broken", {"method": "GET", "url": "ftp://x/{a}", "parameters": {"b": {"in": "nowhere"}}, "redirects": 99})
    assert failure(r) == "invalid_arguments"
    assert all(p in text(r) for p in ("/spec/url", "/spec/parameters/b", "/spec/redirects")), text(r)
    for more in ({"python_code": "def main(): pass"}, {"requires": ["x.example"]}, {"secrets": ["A"]},
                 {"input_schema": {"type": "object"}}, {"executable": "/bin/true"}):
        assert failure(create(client, "broken", spec(), **more)) == "invalid_arguments"
    assert failure(create(client, "broken", None)) == "invalid_arguments"


def test_G_116_names_are_taken_once(client, tools):
    r = create(client, "get_post", spec())
    assert r.result["isError"] and "get_post" in text(r)


def test_G_115_what_was_approved_does_not_change(client, instance, tools):
    ident = tools["head_posts"]["id"]
    client.manage("mcpbox_update_tool", tool_id=ident, spec=spec("HEAD", "/elsewhere"))
    r = client.call("rest__head_posts")
    assert r.result["structuredContent"]["status"] == 200       # the approved one serves on
    shown = client.manage("mcpbox_get_tool", tool_id=ident)
    assert shown["spec"]["url"].endswith("/elsewhere") and shown["approval_status"] == "draft"
    # A description alone makes a version with all that follows.
    client.manage("mcpbox_update_tool", tool_id=ident, description="Other words.")
    assert client.manage("mcpbox_get_tool", tool_id=ident)["requires"] == ["api.example:80"]


def test_secrets_go_where_they_are_declared_and_nowhere_else(client, tools, api):
    r = client.call("rest__auth")
    assert not r.result.get("isError"), text(r)
    sent = api.requests[-1]
    assert sent.headers["authorization"] == "Bearer very-secret-token"
    assert dict(sent.query)["key"] == "very-secret-token"
    assert "very-secret-token" not in r.raw.decode()        # the service said it back


def test_redirects_are_declared(client, instance, tools, other):
    r = client.call("rest__moved")
    assert failure(r) == "upstream_error" and "302" in text(r) and "other.example" in text(r)
    assert failure(client.call("rest__loop")) == "upstream_error"
    # Not declared, and then declared and not granted: neither gets there.
    before = len(other.requests)
    r = client.call("rest__escapes")
    assert failure(r) == "missing_grant" and "other.example" in text(r)
    r = client.call("rest__follows")
    assert failure(r) == "missing_grant" and "other.example" in text(r)
    assert len(other.requests) == before
    grant(instance, client, tools["follows"]["id"], "other.example", port=80)
    r = client.call("rest__follows")
    assert r.result["structuredContent"] == {"landed": "/landed", "keys": None}
    assert failure(client.call("rest__escapes")) == "missing_grant"     # granted, not declared


def test_G_52_to_61_each_server_has_its_own_hosts(client, instance, tools, other):
    made = publish(instance, client, "landed", {"method": "GET", "url": "http://other.example/x"}, server="second")
    r = client.call("second__landed")
    assert failure(r) == "missing_grant" and "mcpbox_request_network_access" in text(r)     # granted to `rest` only
    grant(instance, client, made["id"], "other.example", port=80)
    assert client.call("second__landed").result["structuredContent"]["landed"] == "/x"


@pytest.mark.parametrize("host, port, url", [
    ("2606:2800:220:1::1", 80, "http://[2606:2800:220:1::1]"), ("192.168.1.5", 8123, "http://192.168.1.5:8123")])
def test_addresses_and_the_local_network(client, instance, ns, host, port, url):
    name = "at_" + str(port)
    with Service(lambda r: (200, {}, {"here": r.path}), sock=ns.listen(host, port)) as there:
        made = publish(instance, client, name, {"method": "GET", "url": url + "/x"}, server="third")
        r = client.call("third__" + name)
        assert failure(r) == "missing_grant" and there.requests == []
        grant(instance, client, made["id"], host, port=port)
        assert client.call("third__" + name).result["structuredContent"] == {"here": "/x"}


def test_G_02_to_08_and_62_to_67_and_111_to_113_envelopes(instance, tools):
    with Client(instance.address, version=LEGACY) as c:     # G-63, G-120: initialize, initialized
        assert c.info["protocolVersion"] == LEGACY
        assert c.request("ping").result == {}
        assert {"rest__get_post", "rest__get_posts"} <= set(c.tools())
        send = lambda m: c.send(m, c._legacy())     # noqa: E731
        assert send({"jsonrpc": "2.0", "id": 1, "method": "tools/none"}).error["code"] == -32601
        assert send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "no_such"}}).error["code"] == -32602
        assert send({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}).error["code"] == -32602
        for bad in ([], 1, "x", {"id": 1, "method": "ping"}, {"jsonrpc": "1.0", "id": 1, "method": "ping"},
                    {"jsonrpc": "2.0", "id": None, "method": "ping"}, {"jsonrpc": "2.0", "id": 1, "method": 7},
                    {"jsonrpc": "2.0", "id": 1, "method": " "}):
            r = send(bad)
            assert r.status < 500 and r.error is not None, (bad, r)
        for raw in (b"{", b'{"a":1,"a":2}', b"\xff", b'{"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}'):
            r = request(instance.address(), body=raw, headers=c._legacy())
            assert r.status == 400 and r.error["code"] in (-32700, -32600), (raw, r)


def test_G_11_and_G_68_to_90_records_are_written_once(instance, client, tools):
    client.call("rest__get_post", {"id": 1})
    until(lambda: instance.psql(
        "SELECT 1 FROM mcpbox.executions WHERE tool = 'rest__get_post' AND outcome = 'done'"))
    with pytest.raises(RuntimeError):
        instance.psql("SET ROLE mcpbox_app; UPDATE mcpbox.executions SET arguments = '{}' WHERE tool = 'rest__get_post'")


def test_drafts_are_not_tried_against_the_world(client, tools, api):
    before = len(api.requests)
    r = client.call("mcpbox_test_code", {"tool_id": tools["get_post"]["id"], "arguments": {"id": 1}})
    assert r.result["isError"] and "cannot be tried" in text(r) and len(api.requests) == before


# ---- OpenAPI ----

DOCUMENT = {
    "openapi": "3.0.3", "info": {"title": "Posts", "version": "1"},
    "servers": [{"url": "http://{host}.example/", "variables": {"host": {"default": "api"}}}],
    "security": [{"theToken": []}],
    "components": {
        "securitySchemes": {"theToken": {"type": "http", "scheme": "bearer"}},
        "parameters": {"Limit": {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0,
                                                                            "exclusiveMinimum": True}}},
        "schemas": {"Post": {"type": "object", "required": ["id", "title", "user_id"], "properties": {
            "id": {"type": "integer", "readOnly": True}, "title": {"type": "string", "example": "x"},
            "user_id": {"type": "integer"}, "body": {"type": "string", "nullable": True},
            "parent": {"$ref": "#/components/schemas/Post"}}}}},
    "paths": {
        "/posts": {
            "get": {"operationId": "listPosts", "summary": "All posts", "description": "A page of them.",
                    "parameters": [{"$ref": "#/components/parameters/Limit"},
                                   {"name": "user-id", "in": "query", "schema": {"type": "string"}}]},
            "post": {"operationId": "addPost", "requestBody": {"required": True, "content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/Post"}}}}}},
        "/posts/{post-id}": {
            "parameters": [{"name": "post-id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {"security": []},
            "delete": {"operationId": "remove.post", "security": [{"theToken": []}, {}]},
            "put": {"operationId": "upload", "requestBody": {"required": True, "content": {"multipart/form-data": {}}}}},
        "/odd": {"get": {"operationId": "odd", "parameters": [{"name": "x", "in": "query", "schema": {"type": "object"}}]}},
    },
}


def test_an_openapi_document_goes_through_the_queue(instance, client, api):
    server = server_id(client, "posts")
    got = client.manage("mcpbox_import_openapi", server_id=server, document=DOCUMENT)
    made = {t["name"]: t for t in got["tools"]}
    assert sorted(made) == ["add_post", "get_posts_post_id", "list_posts", "remove_post"] and got["count"] == 4
    assert len(got["skipped"]) == 2 and any("/posts/{post-id}" in s and "neither JSON" in s for s in got["skipped"])
    assert any("/odd" in s and "/spec/parameters/x/schema" in s for s in got["skipped"]), got["skipped"]
    assert "posts__list_posts" not in client.tools()
    shown = client.manage("mcpbox_get_tool", tool_id=made["list_posts"]["id"])
    assert shown["approval_status"] == "pending_review" and shown["requires"] == ["api.example:80"]
    assert shown["secrets"] == ["THE_TOKEN"] and shown["description"] == "All posts\n\nA page of them."
    assert shown["spec"]["headers"] == {"Authorization": "Bearer {secret:THE_TOKEN}"}
    assert shown["input_schema"]["properties"] == {"limit": {"type": "integer", "exclusiveMinimum": 0},
                                                   "user_id": {"type": "string"}}
    body = client.manage("mcpbox_get_tool", tool_id=made["add_post"]["id"])["input_schema"]
    assert body["required"] == ["title", "user_id"] and "id" not in body["properties"]
    assert body["properties"]["body"]["type"] == ["string", "null"]
    removed = client.manage("mcpbox_get_tool", tool_id=made["remove_post"]["id"])
    assert removed["confirm"] and not removed.get("secrets")
    # Approved one by one, as any.
    item = flow.pending(instance, "get_posts_post_id")
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    grant(instance, client, made["get_posts_post_id"]["id"], "api.example")
    r = client.call("posts__get_posts_post_id", {"post_id": 3})
    assert r.result["structuredContent"]["title"] == "post 3"
    # Again: the names are taken. Chosen by name, and elsewhere.
    again = client.manage("mcpbox_import_openapi", server_id=server, document=DOCUMENT)
    assert again["count"] == 0 and len(again["skipped"]) == 6
    some = client.manage("mcpbox_import_openapi", server_id=server_id(client, "posts2"), document=DOCUMENT,
                         operations=["listPosts", "GET /posts/{post-id}"], base_url="https://other.example/v2/")
    assert sorted(t["name"] for t in some["tools"]) == ["get_posts_post_id", "list_posts"]
    shown = client.manage("mcpbox_get_tool", tool_id=some["tools"][0]["id"])
    assert shown["requires"] == ["other.example:443"] and shown["spec"]["url"].startswith("https://other.example/v2/posts")


def test_administrators_import_documents_too(instance, client, tmp_path):
    server = server_id(client, "posts3")
    (tmp_path / "api.json").write_text(json.dumps(DOCUMENT))
    got = instance.ctl_json("openapi", server, str(tmp_path / "api.json"), "base_url=https://x.example", "listPosts")
    assert [t["name"] for t in got["tools"]] == ["list_posts"] and got["skipped"] == []
    item = instance.ctl_json("approvals", "show", got["tools"][0]["request_id"])
    assert item["content"]["requires"] == ["x.example:443"] and item["requested_by"] == "root"
    r = instance.ctl("openapi", server, str(tmp_path / "none"), check=False)
    assert r.returncode == 1 and "none" in r.stderr        # a file, not wrong usage
    (tmp_path / "bad.json").write_text('{"swagger":"2.0"}')
    r = instance.ctl("openapi", server, str(tmp_path / "bad.json"), check=False)
    assert r.returncode == 1 and "OpenAPI 3" in r.stderr
    (tmp_path / "api.yaml").write_text("openapi: 3.0.3\n")
    r = instance.ctl("openapi", "posts3", str(tmp_path / "api.yaml"), check=False)     # a server by its name
    assert r.returncode == 1 and "not JSON (YAML" in r.stderr
    rest = Web(lambda: instance.address("admind-http"))
    assert rest.login("admin", instance.password)[0] == 200
    status, _, got = rest.request("POST", f"/api/servers/{server}/openapi", {"document": DOCUMENT, "operations": ["addPost"]})
    assert status == 200 and [t["name"] for t in got["tools"]] == ["add_post"], got
    for body, expected in (({"document": []}, 400), ({"document": {}}, 422), ({}, 400), ({"document": {}, "x": 1}, 400)):
        status = rest.request("POST", f"/api/servers/{server}/openapi", body)[0]
        assert 400 <= status < 500 and (expected == 422 or status == expected), (body, status)


@pytest.mark.parametrize("document, says", [
    ({}, "no OpenAPI 3"), ({"swagger": "2.0"}, "no OpenAPI 3"), ({"openapi": "3.1.0"}, "no operations"),
    ({"openapi": "3.1.0", "paths": {f"/{n}": {"get": {}} for n in range(60)}}, "60 operations")])
def test_no_openapi_documents(instance, client, document, says):
    r = client.call("mcpbox_import_openapi", {"server_id": server_id(client, "posts"), "document": document})
    assert failure(r) == "invalid_arguments" and says in text(r)
