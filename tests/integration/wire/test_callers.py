"""Rates and circuit breakers from outside: a legacy client that loops, the
tunnel's 300 calls a minute, and what an administrator sees and sets."""
import time

import pytest

from harness.clients import flow
from harness.clients.api_token import Token
from harness.clients.mcp import LEGACY, MODERN, Client, request
from harness.patience import patience, until

INSTANCE_SETS = ("admind:breakers=yes",)
CODE = "def main(n: int = 0) -> int:\n    return n\n"


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "callers", "plain", CODE)


@pytest.fixture(autouse=True)
def settings(instance):
    yield
    for row in instance.ctl_json("settings")["items"]:
        if row["updated_by"] is not None:
            instance.ctl("settings", "reset", row["key"])
    for row in instance.ctl_json("rates")["items"]:
        instance.ctl("rates", "remove", row["scope"], row["subject"])
    instance.ctl("breakers", "reset")


def refused(r, mode):
    assert r.status == 200 and r.error and r.error["code"] == -32603, r
    d = r.error["data"]
    assert d["failure_mode"] == mode and d["retry_after_ms"] > 0 and d["fix"], r
    return d


def test_a_session_that_loops_is_held_and_another_goes_on(instance, tool):
    instance.ctl("settings", "set", "breaker_session_repeats", "6")
    with Client(instance.address, version=LEGACY) as a, \
            Client(instance.address, version=LEGACY) as b, \
            Client(instance.address, version=MODERN) as m:
        for n in range(12):
            assert a.call(tool, {"n": n % 2}).result
        d = refused(a.call(tool, {"n": 0}), "circuit_open")
        assert d["breaker"] == "session_repeats" and d["limit"] == 6 and d["resets_at"] > "2026"
        assert a.call(tool, {"n": 7}).result and b.call(tool, {"n": 0}).result
        assert m.call(tool, {"n": 0}).result
        # seen and reset by an administrator
        shown = instance.ctl_json("breakers")
        assert [o["breaker"] for o in shown["open"]] == ["session_repeats"] * len(shown["open"])
        assert "session_repeats" in instance.ctl("breakers").stdout
        instance.ctl("breakers", "reset")
        assert a.call(tool, {"n": 0}).result


def test_a_call_that_is_spelt_otherwise_is_the_same(instance, tool):
    """What arguments say counts, not their bytes; what says another thing is another."""
    instance.ctl("settings", "set", "breaker_session_repeats", "6")
    with Client(instance.address) as c:
        wide = flow.publish(instance, c, "callers", "wide", "def main(a: float, b: str = '') -> str:\n    return b\n")
    spelt = [b'{"a":1,"b":"x"}', b'{"b":"x","a":1}', b' {\n"a" : 1.0 , "b":"x"}', b'{"\\u0061":1e0,"b":"\\u0078"}',
             b'{"a":10E-1,"b":"x"}', b'{"a":1.000,"b":"\\u0078"}', b'{"b":"x","a":0.1e1}']
    with Client(instance.address, version=LEGACY) as a:
        def say(arguments):
            body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","arguments":%b}}' % (
                wide.encode(), arguments)
            return request(instance.address(), body=body, headers=a._legacy())
        for arguments in spelt[:6]:
            assert say(arguments).result
        assert refused(say(spelt[6]), "circuit_open")["breaker"] == "session_repeats"
        assert say(b'{"a":2,"b":"x"}').result and say(b'{"a":1,"b":"X"}').result


def test_errors_in_a_row_come_back_from_the_sandbox(instance, tool):
    instance.ctl("settings", "set", "breaker_session_errors", "5")
    with Client(instance.address) as c:
        bad = flow.publish(instance, c, "callers", "fails",
                           "def main(n: int = 0) -> int:\n    raise ValueError(n)\n")
    with Client(instance.address, version=LEGACY) as a:
        for n in range(5):
            assert a.call(bad, {"n": n}).result["isError"]
        deadline = time.monotonic() + patience(5)	# the fifth's record is gathered for 20 ms
        while a.call(bad, {"n": 9}).error is None:
            assert time.monotonic() < deadline
        assert refused(a.call(tool, {"n": 1}), "circuit_open")["breaker"] == "session_errors"


def flood(c, tool, most):
    """(calls that went, the first refusal)"""
    for good in range(most):
        r = c.call(tool, {"n": good})
        if not r.result:
            return good, r
    return most, None


def test_a_token_has_half_of_the_tunnel_s_300_a_minute(instance, tool):
    a, b, c = (Token(instance, scopes="tools:read,tools:call", listeners="tunnel")
               for _ in range(3))
    start, total = time.monotonic(), 0
    for token in (a, b):
        with token.client() as client:
            good, no = flood(client, tool, 400)
            d = refused(no, "rate_limited")
            assert (d["limited"], d["subject"], d["per_minute"]) == (
                "principal", token.principal, 150)
            assert 150 <= good <= 150 + (time.monotonic() - start) * 2.5 + 1
            total += good
    with c.client() as client:
        good, no = flood(client, tool, 400)
        took = time.monotonic() - start
        d = refused(no, "rate_limited")
        assert (d["limited"], d["subject"], d["per_minute"]) == ("listener", "tunnel", 300)
        assert total + good <= 300 + took * 5 + 1
        # the local listener has a bucket of its own: none
        with Client(instance.address) as local:
            assert local.call(tool, {"n": 1}).result
        # more for all, by the setting; at once
        instance.ctl("settings", "set", "rate_tunnel_per_minute", "6000")
        until(lambda: not client.call(tool, {"n": 2}).error, 5, 0.05)


def test_limits_by_rest_and_mcpboxctl(instance, rest, tool):
    body = {"scope": "tool", "subject": tool, "per_minute": 60, "burst": 2}
    status, _, shown = rest.request("POST", "/api/rate-limits", body)
    assert status == 200 and shown["per_minute"] == 60 and shown["updated_by"] == "admin"
    assert rest.get("/api/rate-limits")[2]["items"] == [shown]
    assert tool in instance.ctl("rates").stdout
    with Client(instance.address) as c:
        modes = [c.call(tool, {"n": n}) for n in range(5)]
        assert modes[0].result and modes[1].result
        assert refused(modes[4], "rate_limited")["subject"] == tool
    for wrong in ({**body, "burst": 0}, {**body, "scope": "x"}, {**body, "per_minute": 1 << 40},
                  {**body, "more": 1}, {"scope": "tool"}):
        assert rest.request("POST", "/api/rate-limits", wrong)[0] in (400, 422), wrong
    assert rest.request("POST", "/api/rate-limits/remove",
                        {"scope": "tool", "subject": tool})[0] == 200
    assert rest.request("POST", "/api/rate-limits/remove",
                        {"scope": "tool", "subject": tool})[0] == 404
    status, _, shown = rest.get("/api/breakers")
    assert status == 200 and shown["enabled"] is True and shown["open"] == []
    assert rest.request("POST", "/api/breakers/reset")[0] == 200
    actions = {i["action"] for i in rest.get("/api/audit?limit=50")[2]["items"]}
    assert {"rate_limit_set", "rate_limit_removed", "breakers_reset"} <= actions
