"""Rate limits (decision 0043): of a listener, a principal, a tool; one for all
nodes of a database, and the same after a restart."""
import json
import secrets
import threading
import time

import pytest

from harness.patience import until
from harness.played.admind import Admind, failure

pytestmark = pytest.mark.usefixtures("honest")


def act(a, action, body, id_=""):
    a.sql("SELECT mcpbox.admin_act(%s, 'root', 'root', %s, NULL, '', %s)", action, id_,
          json.dumps(body), user="mcpbox_app")
    heard(a)


def heard(*nodes):
    """They have read what was set: NOTIFY, which comes before COMMIT returns, and
    the read that follows, are on the connection that these questions take."""
    for x in nodes:
        with x.ctl() as c:
            for _ in range(3):
                assert c.call("ADMIN_QUERY", what="rate_limits", cursor="", limit=1)["_"] == "ADMIN_JSON"


def limit(a, scope, subject, per_minute, **kw):
    act(a, "rate_limit_set", {"scope": scope, "subject": subject, "per_minute": per_minute, **kw})


@pytest.fixture(autouse=True)
def none(a):
    yield
    a.sql("DELETE FROM mcpbox.rate_limits")
    a.sql("DELETE FROM mcpbox.rate_buckets")
    a.sql("DELETE FROM mcpbox.settings")
    heard(a)


@pytest.fixture(scope="module")
def b(a):
    """A second node: another admind over the same database."""
    x = Admind(settings=("node node2", "breakers no"), pg=a.pg)
    try:
        x.all_up()
        yield x
        print(x.logs()[-3000:])
    finally:
        x.close()


def tool(a):
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server)
    return f"{server}__greet"


def call(gw, name):
    return gw.call("AUTHORISE", tool=name, arguments=json.dumps(
        {"n": secrets.token_hex(4)}).encode())


def flood(gw, name, calls):
    """(admitted, refused) of calls one after another."""
    good, bad = 0, []
    while good + len(bad) < calls:
        m = call(gw, name)
        if m["_"] == "RUN_ID":
            good += 1
        else:
            assert failure(m) == "RATE_LIMITED", m
            bad.append(m)
    return good, bad


def test_a_tool_has_its_rate_and_no_other_is_held(a):
    with a.gateway() as gw:
        name, other = tool(a), tool(a)
        limit(a, "tool", name, 60, burst=10)
        start = time.monotonic()
        good, bad = flood(gw, name, calls=40)
        assert 10 <= good <= 10 + (time.monotonic() - start) + 1
        d = json.loads("{" + bad[0]["data"].decode() + "}")
        assert d == {"limited": "tool", "subject": name, "per_minute": 60}
        assert 0 < bad[0]["retry_after_ms"] <= 1000
        assert flood(gw, other, calls=40) == (40, [])
        # come back when told, and it goes
        m = call(gw, name)
        while m["_"] == "REFUSED":
            time.sleep(m["retry_after_ms"] / 1000)
            m = call(gw, name)
        # and without a limit of its own it is free at once
        act(a, "rate_limit_remove", {"scope": "tool", "subject": name})
        assert flood(gw, name, calls=40) == (40, [])


@pytest.mark.parametrize("what", ["listener", "principal", "setting"])
def test_listener_principal_and_setting(a, what):
    with a.gateway() as gw:
        name = tool(a)
        if what == "setting":
            act(a, "settings_set", {"value": "30"}, "rate_local_per_minute")
        else:
            limit(a, what, "local", 30)
        start = time.monotonic()
        good, bad = flood(gw, name, calls=60)
        assert 30 <= good <= 30 + (time.monotonic() - start) + 1 and bad
        # management tools are calls as well
        assert failure(call(gw, "mcpbox_list_servers")) == "RATE_LIMITED"


def test_one_limit_for_two_nodes(a, b):
    """Both call as fast as they can: together they get what one would."""
    name, per_minute, burst = tool(a), 120, 48
    limit(a, "tool", name, per_minute, burst=burst)
    heard(b)
    got, refused, start, stop = {"a": 0, "b": 0}, {"a": 0, "b": 0}, time.monotonic(), threading.Event()
    answered, asked = [], []    # when the first answer had come; what was admitted, and when, at each refusal

    def run(x, key):
        with x.gateway() as gw:
            while not stop.is_set():
                since = time.monotonic()
                m = call(gw, name)
                answered.append(time.monotonic())
                if m["_"] == "RUN_ID":
                    got[key] += 1
                else:
                    assert failure(m) == "RATE_LIMITED", m
                    refused[key] += 1
                    asked.append((since, sum(got.values())))

    threads = [threading.Thread(target=run, args=(x, k)) for k, x in (("a", a), ("b", b))]
    for t in threads:
        t.start()
    try:
        # each node gets a share, and is refused; together they use up more than the burst
        until(lambda: min(got.values()) >= sum(got.values()) / 10 and min(refused.values()) >= 10
              and sum(got.values()) >= burst + 6, say=lambda: (got, refused))
    finally:
        stop.set()
        for t in threads:
            t.join()
    took = time.monotonic() - start
    assert sum(got.values()) <= burst + took * per_minute / 60 + 1
    # nothing is lost but what is still leased: whoever is refused came when that was all
    since, total = max(asked)
    assert total >= burst + (since - answered[0]) * per_minute / 60 - 2 * burst / 8 - 2


def test_a_restart_forgets_nothing(a):
    name, start = tool(a), time.monotonic()
    limit(a, "tool", name, 1, burst=20)
    with a.gateway() as gw:
        first, _ = flood(gw, name, calls=12)
        assert first == 12
    before = a.logs().count("sandbox_ready")
    a.kill()
    a.until(lambda: not any(f.up.is_set() for f in a.fakes.values()))
    a.start()
    a.until(lambda: a.logs().count("sandbox_ready") > before and all(f.up.is_set() for f in a.fakes.values()))
    with a.gateway() as gw:
        second, bad = flood(gw, name, calls=20)
    # what the dead one had leased is lost: an eighth of the burst at most
    assert bad and 20 - 2 * 2 <= first + second <= 20 + (time.monotonic() - start) / 60


def test_a_crash_of_postgresql_gives_nothing_twice(a):
    name, start = tool(a), time.monotonic()
    limit(a, "tool", name, 1, burst=16)
    with a.gateway() as gw:
        first, _ = flood(gw, name, calls=10)
        a.pg.kill()
        a.pg.start()
        a.until(lambda: call(gw, "mcpbox_nothing")["_"] == "REFUSED")
        got = []

        def limited():
            got.append(call(gw, name))
            return got[-1]["_"] != "RUN_ID" and failure(got[-1]) == "RATE_LIMITED"
        until(limited)
        second = sum(m["_"] == "RUN_ID" for m in got)
    assert first == 10 and first + second <= 16 + (time.monotonic() - start) / 60


def test_a_call_costs_no_statement(a):
    """The bucket's row stays the same for two hundred calls of one lease."""
    name = tool(a)
    limit(a, "tool", name, 60000)
    row = lambda: a.rows("SELECT xmin::text, tokens FROM mcpbox.rate_buckets WHERE subject = %s", name)
    with a.gateway() as gw:
        call(gw, name)
        # The first call leases one token, and then admind asks for the next lease by itself.
        a.until(lambda: row()[0][1] <= 60000 - 1000)
        before = row()[0][0]
        assert flood(gw, name, calls=200) == (200, [])
        assert row()[0][0] == before


def test_what_is_not_used_goes_back(a):
    name = tool(a)
    limit(a, "tool", name, 480, burst=480)
    with a.gateway() as gw:
        call(gw, name)
        call(gw, name)
        tokens = lambda: a.rows("SELECT tokens FROM mcpbox.rate_buckets WHERE subject = %s",
                                name)[0][0]
        before = tokens()
        a.until(lambda: tokens() > before + 10, seconds=20)


def test_names_that_clients_make_up_get_no_bucket(a):
    act(a, "settings_set", {"value": "100"}, "rate_tool_per_minute")
    with a.gateway() as gw:
        for _ in range(20):
            assert failure(call(gw, "x" + secrets.token_hex(4))) == "UNKNOWN_TOOL"
        name = tool(a)
        assert call(gw, name)["_"] == "RUN_ID"
    assert a.rows("SELECT subject FROM mcpbox.rate_buckets") == [(name,)]


def test_who_may_not_use_a_tool_neither_uses_its_tokens_up_nor_learns_of_it(a):
    """A token that may not call it: it is not there, however often, and for those who may it is as if nothing
    had been called."""
    name, other = tool(a), tool(a)
    limit(a, "tool", name, 1, burst=2)
    limit(a, "listener", "tunnel", 60, burst=40)
    with a.ctl() as c:
        secret = c.call("TOKEN_CREATE", name="r" + secrets.token_hex(4), scopes="tools:call", listeners="tunnel",
                        allow=other, deny="", expires_ms=0, token="")["secret"]

    def by_token(gw, name):
        return gw.call("AUTHORISE", credential=secret, tool=name,
                       arguments=json.dumps({"n": secrets.token_hex(4)}).encode())

    with a.gateway("tunnel") as gw, a.gateway() as local:
        for _ in range(15):
            for denied in (name, "x" + secrets.token_hex(4)):
                m = by_token(gw, denied)
                assert (m["_"], failure(m), m["message"], m.get("data")) == (
                    "REFUSED", "UNKNOWN_TOOL", "no tool has this name", b""), m
        for denied in ("mcpbox_list_servers",) * 15:
            assert failure(by_token(gw, denied)) == "FORBIDDEN"
        # nothing of the listener's went for that, nor of the tool's
        assert [by_token(gw, other)["_"] for _ in range(5)] == ["RUN_ID"] * 5
        left = dict(a.rows("SELECT subject, tokens FROM mcpbox.rate_buckets WHERE scope <> 'principal'"))
        assert name not in left and left["tunnel"] >= 40 - 5 - 5
        assert [call(local, name)["_"] for _ in range(3)] == ["RUN_ID", "RUN_ID", "REFUSED"]


def test_a_made_up_request_is_no_way_past_a_limit(a):
    """Only the second coming of a call that a person was asked about is not counted; which request that was is
    gatewayd's word."""
    limit(a, "principal", "local", 30)
    with a.gateway() as gw:
        for name in (tool(a), "mcpbox_list_servers"):
            got = [gw.call("AUTHORISE", tool=name, approval=secrets.token_bytes(16),
                           arguments=b'{"n":"%s"}' % secrets.token_hex(4).encode() if "__" in name else b"{}")
                   for _ in range(40)]
            assert got[-1]["_"] == "REFUSED" and failure(got[-1]) == "RATE_LIMITED", got[-1]


def test_the_tunnel_has_300_a_minute_by_default(a):
    rows = dict(a.rows("SELECT name, value FROM mcpbox.limits_now()"))
    assert rows["rate_tunnel_per_minute"] == 300 and rows["rate_local_per_minute"] == 0
    granted = a.rows("SELECT granted, per_minute, burst FROM "
                     "mcpbox.rate_lease('listener', 'tunnel', 1000)", user="mcpbox_app")
    assert granted == [(300, 300, 300)]


def test_limits_are_listed_in_pages(a):
    for n in range(7):
        limit(a, "tool", f"server__tool{n} of it", 60 + n)
    limit(a, "principal", "token:x y", 5, burst=7)
    got, cursor = [], ""
    with a.ctl() as ctl:
        while cursor is not None:
            m = json.loads(ctl.call("ADMIN_QUERY", what="rate_limits", cursor=cursor,
                                    limit=3)["json"])
            got += [(i["scope"], i["subject"], i["per_minute"], i["burst"]) for i in m["items"]]
            cursor = m["next_cursor"]
        m = ctl.call("ADMIN_ACTION", action="rate_limit_remove", body=json.dumps(
            {"scope": "tool", "subject": "nobody"}).encode())
        assert m["_"] == "REFUSED" and failure(m) == "NOT_FOUND"
    assert got == [("principal", "token:x y", 5, 7)] + [
        ("tool", f"server__tool{n} of it", 60 + n, 60 + n) for n in range(7)]


@pytest.mark.parametrize("body", [
    {"scope": "galaxy", "subject": "x", "per_minute": 1},
    {"scope": "listener", "subject": "admind", "per_minute": 1},
    {"scope": "tool", "subject": "", "per_minute": 1},
    {"scope": "tool", "subject": "x", "per_minute": -1},
    {"scope": "tool", "subject": "x", "per_minute": 6000001},
    {"scope": "tool", "subject": "x", "per_minute": 10, "burst": 0},
    {"scope": "tool", "subject": "x", "per_minute": 10, "burst": 601}])
def test_limits_out_of_bounds(a, body):
    with pytest.raises(Exception, match="invalid_params"):
        act(a, "rate_limit_set", body)
    assert a.rows("SELECT 1 FROM mcpbox.rate_limits") == []
