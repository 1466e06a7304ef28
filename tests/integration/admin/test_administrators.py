"""Several administrators, their logins, and reading the audit log, over REST and
mcpboxctl as they are installed."""
import contextlib
import json
import resource

import pytest

from harness.clients.rest import Rest
from harness.work import cpu


PASSWORD, NEW = "a long password of theirs", "quite another password"


def enter(instance, name, password=PASSWORD, **more):
    r = Rest(lambda: instance.address("admind-http"))
    if more:
        status, headers, value = r.request("POST", "/api/login", {"username": name, "password": password, **more})
        assert status == 200, value
        r.cookie, r.csrf = headers["set-cookie"].split(";")[0], value["csrf_token"]
        return r
    status, _, value = r.login(name, password)
    assert status == 200, value
    return r


@pytest.fixture
def boss(rest, instance):
    rest.password = instance.password
    return rest


@pytest.fixture(scope="module")
def people(instance):
    for name, role in (("rita", "reviewer"), ("vic", "viewer")):
        instance.ctl("administrators", "create", name, "--role", role, stdin=PASSWORD + "\n")


def test_over_rest(boss, people, instance):
    own = {"password": boss.password}
    assert boss.request("POST", "/api/administrators", {"username": "nina", "role": "viewer", "new_password": NEW,
                                                        **own})[0] == 204
    status, _, page = boss.get("/api/administrators")
    assert status == 200 and [i["username"] for i in page["items"]] == ["admin", "nina", "rita", "vic"]
    assert {i["role"] for i in page["items"]} == {"administrator", "reviewer", "viewer"}
    assert "verifier" not in json.dumps(page)
    nina = enter(instance, "nina", NEW)
    assert nina.get("/api/me")[2]["role"] == "viewer"
    assert boss.request("PUT", "/api/administrators/nina/role", {"role": "reviewer", **own})[0] == 204
    assert nina.get("/api/me")[0] == 401
    assert enter(instance, "nina", NEW).get("/api/me")[2]["role"] == "reviewer"
    assert boss.request("POST", "/api/administrators/nina/password", {"new_password": PASSWORD, **own})[0] == 204
    status, _, one = boss.get("/api/administrators/nina")
    assert status == 200 and one["created_by"] == "admin" and one["password_at"] >= one["created_at"]
    nina = enter(instance, "nina")
    assert boss.request("POST", "/api/administrators/nina/delete", own)[0] == 204
    assert nina.get("/api/me")[0] == 401
    assert boss.get("/api/administrators/nina")[0] == 404
    assert boss.get("/api/me")[0] == 200
    actions = [(r["action"], r["actor"]) for r in boss.get("/api/audit?object=administrator%20nina")[2]["items"]]
    assert actions == [("admin_deleted", "admin"), ("password_reset", "admin"), ("admin_role_changed", "admin"),
                       ("admin_created", "admin")]


def test_refusals(boss, people):
    own = {"password": boss.password}

    def fails(status, mode, method, path, body):
        got, _, value = boss.request(method, path, body)
        assert (got, value["failure_mode"]) == (status, mode), value

    make = {"username": "okname", "role": "viewer", "new_password": NEW}
    fails(401, "bad_login", "POST", "/api/administrators", {**make, "password": "wrong wrong wrong"})
    fails(400, "invalid_params", "POST", "/api/administrators", make)
    for username, status, mode in (("Rita", 409, "conflict"), ("rita", 409, "conflict"),
                                   ("root", 400, "invalid_params"), ("LOCAL", 400, "invalid_params"),
                                   ("mcpbox", 400, "invalid_params"), ("a b", 400, "invalid_params")):
        fails(status, mode, "POST", "/api/administrators", {**make, "username": username, **own})
    fails(400, "invalid_params", "POST", "/api/administrators", {**make, "role": "owner", **own})
    fails(404, "not_found", "PUT", "/api/administrators/nobody/role", {"role": "viewer", **own})
    fails(400, "invalid_params", "POST", "/api/administrators/admin/password", {"new_password": NEW, **own})
    # the last administrator
    fails(409, "conflict", "PUT", "/api/administrators/admin/role", {"role": "viewer", **own})
    fails(409, "conflict", "POST", "/api/administrators/admin/delete", own)
    assert boss.get("/api/me")[2]["role"] == "administrator"
    status, _, value = Rest(boss.where).request("GET", "/api/administrators")
    assert status == 401 and value["failure_mode"] == "unauthenticated"


def test_the_last_two_at_once(boss, instance, people):
    """Each takes the other's role away in the same moment: one stays."""
    import threading
    instance.ctl("administrators", "create", "second", "--role", "administrator", stdin=PASSWORD + "\n")
    second = enter(instance, "second")
    codes = []

    def demote(who, whom, password):
        codes.append(who.request("PUT", f"/api/administrators/{whom}/role",
                                 {"role": "viewer", "password": password})[0])

    threads = [threading.Thread(target=demote, args=a) for a in
               ((boss, "second", boss.password), (second, "admin", PASSWORD))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    roles = {i["username"]: i["role"] for i in instance.ctl_json("administrators")["items"]}
    assert sorted(codes)[0] == 204 and [roles["admin"], roles["second"]].count("administrator") == 1, (codes, roles)
    instance.ctl("administrators", "role", "admin", "administrator", check=False)
    instance.ctl("administrators", "delete", "second")
    r = Rest(boss.where)
    assert r.login("admin", boss.password)[2]["role"] == "administrator"


def test_what_roles_may(instance, people, boss):
    rita, vic = enter(instance, "rita"), enter(instance, "vic")
    for path, expected in (("/api/servers", (200, 200)), ("/api/audit", (200, 403)),
                           ("/api/administrators", (200, 403)), ("/api/logins", (200, 200))):
        assert (rita.get(path)[0], vic.get(path)[0]) == expected, path
    for r in (rita, vic):
        assert r.request("POST", "/api/administrators", {"username": "mine", "role": "administrator",
                                                         "new_password": NEW, "password": PASSWORD})[0] == 403
        assert r.request("POST", "/api/administrators/admin/delete", {"password": PASSWORD})[0] == 403
        assert r.request("POST", "/api/password", {"old_password": PASSWORD, "new_password": PASSWORD})[0] == 204
        assert {i["username"] for i in r.get("/api/logins")[2]["items"]} == {r.get("/api/me")[2]["username"]}


def test_logins_over_rest(instance, people, boss):
    a, b, c = (enter(instance, "vic") for _ in range(3))
    items = a.get("/api/logins")[2]["items"]
    assert len(items) >= 3 and sum(i["current"] for i in items) == 1
    mine = next(i for i in items if i["current"])
    assert mine["expires_at"] > mine["idle_expires_at"] > mine["seen_at"] >= mine["created_at"]
    for other in (i for i in items if not i["current"]):
        assert a.request("DELETE", "/api/logins/" + other["id"])[0] == 204
    assert [x.get("/api/me")[0] for x in (a, b, c)] == [200, 401, 401]
    assert a.request("DELETE", "/api/logins/" + other["id"])[0] == 404
    admins = next(i for i in boss.get("/api/logins")[2]["items"] if i["current"])
    assert a.request("DELETE", "/api/logins/" + admins["id"])[0] == 404
    assert a.request("DELETE", "/api/administrators/admin/logins")[0] == 403
    assert boss.get("/api/me")[0] == 200
    assert boss.request("DELETE", "/api/administrators/vic/logins")[0] == 204
    assert a.get("/api/me")[0] == 401
    b = enter(instance, "vic")
    listed = instance.ctl_json("logins", "--username", "vic")["items"]
    assert [i["current"] for i in listed] == [False]
    instance.ctl("logins", "end", listed[0]["id"][:18])
    assert b.get("/api/me")[0] == 401
    r = instance.ctl("logins", "end", listed[0]["id"][:18], check=False)
    assert r.returncode == 1 and "no login has an id that begins with" in r.stderr and "`mcpboxctl logins`" in r.stderr
    assert instance.ctl("logins", "end", "nonsense", check=False).returncode == 2


def test_a_password_change_ends_the_others(instance, people):
    a, b = enter(instance, "rita"), enter(instance, "rita")
    assert a.request("POST", "/api/password", {"old_password": PASSWORD, "new_password": NEW})[0] == 204
    assert (a.get("/api/me")[0], b.get("/api/me")[0]) == (200, 401)
    instance.ctl("administrators", "password", "rita", stdin=PASSWORD + "\n")
    assert a.get("/api/me")[0] == 401
    enter(instance, "rita")


def test_a_code_for_a_new_browser(instance, people, boss):
    """Somebody guesses at rita without end; all come from 127.0.0.1."""
    known = Rest(boss.where)
    status, headers, _ = known.login("rita", PASSWORD)
    cookies = headers["set-cookie"]
    assert "mcpbox_device=" in cookies and "Path=/api/login" in cookies
    device = "mcpbox_device=" + cookies.split("mcpbox_device=")[1].split(";")[0]
    guesser = Rest(boss.where)
    codes = [guesser.login("rita", f"guess number {n}")[0] for n in range(14)]
    assert codes[:10] == [401] * 10 and codes[-1] == 429
    status, headers, value = guesser.login("rita", PASSWORD)
    assert status == 429 and int(headers["retry-after"]) >= 1 and "administrators device" in value["detail"]
    known.cookie = device
    assert known.login("rita", PASSWORD)[0] == 200
    code = instance.ctl_json("administrators", "device", "rita")
    enter(instance, "rita", device=code["device"])
    assert Rest(boss.where).login("vic", PASSWORD)[0] == 200


def test_commands_by_hand(instance, people):
    text = instance.ctl("administrators").stdout
    assert text.splitlines()[0].split() == ["username", "role", "created_at", "created_by", "password_at"]
    assert "role: reviewer" in instance.ctl("administrators", "rita").stdout
    for words in (("administrators", "make", "x"), ("administrators", "role", "rita"),
                  ("administrators", "create", "rita"), ("administrators", "delete"), ("logins", "begin"),
                  ("audit", "colour=red"), ("audit", "since=yesterday"), ("audit", "verify", "now")):
        r = instance.ctl(*words, check=False, stdin=PASSWORD)
        assert r.returncode in (1, 2) and r.stderr, words
    assert instance.ctl("administrators", "delete", "nobody", check=False).returncode == 1


# --- the audit log, read ---

def test_filters(boss, instance, people):
    instance.psql("SELECT mcpbox.audit_append('zoe@example.org', 'test_one', 'tool demo__find_me', "
                  "'{\"word\": \"Quetzal-bird\"}'), mcpbox.audit_append('zoe@example.org', 'test_two', 'tool other', "
                  "'{\"word\": \"quetzal\"}')", role="mcpbox_app")

    def get(query):
        status, _, page = boss.get("/api/audit?" + query)
        assert status == 200, page
        return [r["action"] for r in page["items"]]

    both = ["test_two", "test_one"]
    assert get("actor=zoe%40example.org") == both
    assert get("actor=zoe%40example.org&action=test_one") == ["test_one"]
    assert get("action=test_two") == ["test_two"]
    assert get("object=tool%20other") == ["test_two"]
    assert get("search=quetzal") == both
    assert get("search=QUETZAL%20bird") == ["test_one"]
    assert get("search=find%20me") == get("search=demo__find_me") == ["test_one"]
    assert get("search=find%20bird%20zoe") == ["test_one"]
    assert get("search=quetzal&action=test_two&actor=zoe%40example.org") == ["test_two"]
    assert get("search=nosuchwordatall") == []
    status, _, page = boss.get("/api/audit?limit=2&search=quetzal")
    at = page["items"][0]["at"]
    assert set(both) <= set(get(f"since={page['items'][1]['at']}"))
    assert not set(both) & set(get(f"until={page['items'][1]['at']}"))
    assert get(f"action=test_two&since={at}") == ["test_two"] and get(f"action=test_two&until={at}") == []
    assert get(f"since={at}&until={at}") == []
    for bad in ("colour=red", "since=yesterday", "actor=", "action=a%20b", "search=" + "x" * 300):
        assert boss.get("/api/audit?" + bad)[0] == 400, bad


@pytest.mark.parametrize("query", ["", "actor=admin&", "action=login&", "search=admin&",
                                   "since=2020-01-01T00:00:00Z&", "until=2999-01-01T00:00:00Z&"])
def test_pages(boss, query):
    """Small pages hold what one large page holds; an export, the other way round,
    holds all of it."""
    whole = [r["seq"] for r in boss.get(f"/api/audit?{query}limit=200")[2]["items"]]
    got, cursor = [], ""
    while cursor is not None:
        status, _, page = boss.get(f"/api/audit?{query}limit=7{cursor and '&cursor=' + cursor}")
        assert status == 200 and len(page["items"]) <= 7, page
        got += [r["seq"] for r in page["items"]]
        cursor = page["next_cursor"]
    assert got == sorted(got, reverse=True) and len(got) == len(set(got)) >= 2
    assert set(whole) <= set(got) and boss.get(f"/api/audit?{query}cursor=nonsense")[0] == 400
    status, headers, raw = boss.get("/api/audit/export?" + query.rstrip("&"))
    assert status == 200 and headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line)["seq"] for line in raw.decode().splitlines()]
    assert lines == sorted(lines) and set(got) <= set(lines)


def test_export(instance, boss):
    """JSON Lines, oldest first, complete; each row's hash can be computed from it."""
    import hashlib
    rows = [json.loads(line) for line in instance.ctl("audit", "export", "--json").stdout.splitlines()]
    assert [r["seq"] for r in rows] == list(range(1, len(rows) + 1)) and len(rows) > 5
    prev = bytes(32)
    for r in rows:
        assert r["prev_hash"] == prev.hex()
        prev = hashlib.sha256(prev + bytes.fromhex(r["row"])).digest()
        assert r["hash"] == prev.hex()
    some = instance.ctl("audit", "export", "action=login", "actor=admin", "--json").stdout.splitlines()
    assert some and all(json.loads(line)["action"] == "login" for line in some)
    assert "login" in instance.ctl("audit", "action=login", "--limit", "1").stdout


def verified(instance):
    """(rows, CPU seconds of all that work on it) of one check of the whole audit log, the
    least of three."""
    def used():
        of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
        mine = of_children.ru_utime + of_children.ru_stime
        for pid in instance.pids():
            with contextlib.suppress(OSError):
                mine += cpu(pid)
        return mine

    took = []
    for _ in range(3):
        before = used()
        assert instance.ctl("audit", "verify").returncode == 0
        took.append(used() - before)
    return int(instance.psql("SELECT count(*) FROM mcpbox.audit_log")[0][0]), min(took)


def test_every_question_uses_an_index(instance):
    """4,000 rows more, then EXPLAIN of what admind asks by each leading filter. And
    the chain is checked at a cost a row that does not grow with their number."""
    import re

    def more(first, last):
        instance.psql("SELECT count(mcpbox.audit_append('user' || n % 400, 'made_up_' || n % 400, 'thing ' || n % 400,"
                      f" json_build_object('n', 'word' || n % 400)::text)) FROM generate_series({first}, {last}) n",
                      role="mcpbox_app")

    more(1, 400)
    few = verified(instance)
    more(401, 4000)
    instance.psql("ANALYZE mcpbox.audit_log")
    where = {"actor = 'user7'": "audit_log_actor", "action = 'made_up_7'": "audit_log_action",
             "subject = 'thing 7'": "audit_log_subject", "true": "audit_log_pkey",
             "mcpbox.audit_words(l.actor, l.action, l.subject, l.detail) @@ mcpbox.audit_query('word77')":
             "audit_log_words"}
    for condition, index in where.items():
        plan = "\n".join(r[0] for r in instance.psql(
            f"EXPLAIN SELECT mcpbox.audit_json(l) FROM mcpbox.audit_log l WHERE {condition} AND l.seq < 3000 "
            "ORDER BY l.seq DESC LIMIT 51", role="mcpbox_app"))
        assert index in plan and not re.search(r"Seq Scan on audit_log", plan), plan
    plan = "\n".join(r[0] for r in instance.psql(
        "EXPLAIN SELECT mcpbox.audit_json(l) FROM mcpbox.audit_log l WHERE l.at >= now() - interval '1 second' "
        "AND l.at < 'infinity' ORDER BY l.at DESC, l.seq DESC LIMIT 51", role="mcpbox_app"))
    assert "audit_log_at" in plan and "Seq Scan" not in plan, plan
    many = verified(instance)
    print(few, many)
    assert many[0] > 5 * few[0] and many[1] / many[0] < 2 * few[1] / few[0], (few, many)
