"""Circuit breakers (decision 0042): callers that loop or fail without end are
refused for a while, whoever else calls goes on."""
import datetime
import hashlib
import json
import os
import secrets
import time

import pytest

from harness.played.admind import DONE, FAILED, FAILURES, Admind, failure

pytestmark = pytest.mark.usefixtures("honest")
ADMIND_CONF = ("breakers yes",)


@pytest.fixture(autouse=True)
def settings(a):
    """As they were; a change of any also lets all begin anew."""
    setting(a, breaker_reset_s=61)
    yield
    a.sql("DELETE FROM mcpbox.settings")
    settled(a)


def setting(a, **kw):
    for key, value in kw.items():
        a.sql("SELECT mcpbox.admin_act('settings_set', 'root', 'root', %s, NULL, '', %s)", key,
              json.dumps({"value": str(value)}), user="mcpbox_app")
    settled(a)


def settled(a):
    """admind has read what was set: NOTIFY, which comes before COMMIT returns, and
    the read that follows, are on the connection that these questions take."""
    with a.ctl() as c:
        for _ in range(4):
            assert c.call("ADMIN_QUERY", what="breakers")["_"] == "ADMIN_JSON"


def call(gw, name, n=0, session=b"", **kw):
    """As gatewayd sends it: with a digest of what the arguments say."""
    alike = hashlib.sha256(str(n).encode()).digest()[:16]
    return gw.call("AUTHORISE", tool=name, arguments=json.dumps({"n": n}).encode(),
                   session=session, alike=alike, **kw)


def data(m):
    return json.loads("{" + m["data"].decode() + "}")


def tool(a):
    server = "s" + secrets.token_hex(5)
    a.approved_tool(server)
    return f"{server}__greet"


def opened(m, breaker, limit):
    assert m["_"] == "REFUSED" and failure(m) == "CIRCUIT_OPEN", m
    d = data(m)
    assert (d["breaker"], d["limit"]) == (breaker, limit) and m["retry_after_ms"] > 0
    at = datetime.datetime.fromisoformat(d["resets_at"].replace("Z", "+00:00")).timestamp()
    assert at > time.time() and abs(at - time.time() - m["retry_after_ms"] / 1000) < 30
    return d


def test_the_same_call_alternating_is_caught_and_others_go_on(a):
    setting(a, breaker_session_repeats=5)
    with a.gateway() as gw:
        name, session, other = tool(a), os.urandom(16), os.urandom(16)
        for n in range(10):
            assert call(gw, name, n % 2, session)["_"] == "RUN_ID"
        for n in (0, 1):
            d = opened(call(gw, name, n, session), "session_repeats", 5)
            assert d["window_ms"] == 600000
        # something else, in the same session; the same, in another
        assert call(gw, name, 2, session)["_"] == "RUN_ID"
        assert call(gw, name, 0, other)["_"] == "RUN_ID"
        assert call(gw, name, 0)["_"] == "RUN_ID"
    assert "breaker_open" in a.logs() and "session_repeats" in a.logs()


def test_calls_in_all_of_a_session(a):
    setting(a, breaker_session_calls=20)
    with a.gateway() as gw:
        name, session = tool(a), os.urandom(16)
        for n in range(20):
            assert call(gw, name, n, session)["_"] == "RUN_ID"
        opened(call(gw, name, 99, session), "session_calls", 20)
        opened(call(gw, "mcpbox_list_servers", 0, session), "session_calls", 20)
        assert call(gw, name, 99, os.urandom(16))["_"] == "RUN_ID"


def test_a_principal_is_held_whatever_its_sessions(a):
    setting(a, breaker_principal_repeats=12, breaker_principal_calls=30)
    with a.gateway() as gw:
        name = tool(a)
        for _ in range(12):
            assert call(gw, name, 0, os.urandom(16))["_"] == "RUN_ID"
        opened(call(gw, name, 0, os.urandom(16)), "principal_repeats", 12)
        for n in range(18):
            assert call(gw, name, n + 1, os.urandom(16))["_"] == "RUN_ID"
        opened(call(gw, name, 99), "principal_calls", 30)


@pytest.mark.parametrize("how", ["arguments", "unknown", "record", "management"])
def test_errors_in_a_row(a, how):
    setting(a, breaker_session_errors=4, breaker_reset_s=3)
    with a.gateway() as gw:
        name, session = tool(a), os.urandom(16)

        def good(n):
            m = call(gw, name, n, session)
            assert m["_"] == "RUN_ID", m
            assert a.record(m["execution"], DONE)["_"] == "OK"

        def bad(n):
            if how == "arguments":
                a.on_check = lambda m: ("CHECK_ERRORS", {"failure": 1, "summary": "no",
                                                         "json": b"[]"})
                m = call(gw, name, n, session)
                a.on_check = lambda m: ("CHECK_OK", {})
                return m
            if how == "unknown":
                return call(gw, "demo__nothing", n, session)
            if how == "management":
                return call(gw, "mcpbox_nothing", n, session)
            m = call(gw, name, n, session)
            if m["_"] == "RUN_ID":
                assert a.record(m["execution"], FAILED, "EXCEPTION")["_"] == "OK"
            return m

        def is_open(m):
            return m["_"] == "REFUSED" and failure(m) == "CIRCUIT_OPEN"

        # three, a success, three: not in a row
        for n in (0, 1, 2, None, 3, 4, 5):
            assert good(100) is None if n is None else not is_open(bad(n))
        assert not is_open(bad(6))
        d = opened(call(gw, name, 7, session), "session_errors", 4)
        assert "window_ms" not in d
        opened(call(gw, "mcpbox_list_servers", 7, session), "session_errors", 4)
        assert call(gw, name, 7, os.urandom(16))["_"] == "RUN_ID"
        # it lets one try: an error opens it again, a success closes it
        time.sleep(3.2)
        assert not is_open(bad(8))
        opened(call(gw, name, 9, session), "session_errors", 4)
        time.sleep(3.2)
        good(10)
        for n in range(3):
            assert not is_open(bad(20 + n))
        good(30)


def test_what_is_the_platforms_fault_is_no_error(a):
    setting(a, breaker_session_errors=3, breaker_principal_errors=3)
    with a.gateway() as gw:
        name, session = tool(a), os.urandom(16)
        a.on_vault = lambda m: ("REFUSED", {"failure": FAILURES["VAULT_UNAVAILABLE"],
                                            "message": "no"})
        try:
            for n in range(6):
                m = call(gw, name, n, session)
                assert failure(m) == "VAULT_UNAVAILABLE", m
        finally:
            a.on_vault = a.honest_vault
        assert call(gw, name, 9, session)["_"] == "RUN_ID"


def test_it_closes_by_itself_and_counts_from_zero(a):
    setting(a, breaker_session_repeats=3, breaker_reset_s=3)
    with a.gateway() as gw:
        name, session = tool(a), os.urandom(16)
        for _ in range(2):
            for _ in range(3):
                assert call(gw, name, 0, session)["_"] == "RUN_ID"
            opened(call(gw, name, 0, session), "session_repeats", 3)
            opened(call(gw, name, 0, session), "session_repeats", 3)
            time.sleep(3.2)


def test_zero_is_none_and_a_change_holds_at_once(a):
    setting(a, breaker_session_repeats=0, breaker_principal_repeats=0, breaker_session_calls=0)
    with a.gateway() as gw:
        name, session = tool(a), os.urandom(16)
        for _ in range(1100):
            assert call(gw, name, 0, session)["_"] == "RUN_ID"
        setting(a, breaker_session_repeats=5)
        for _ in range(5):
            assert call(gw, name, 0, session)["_"] == "RUN_ID"
        opened(call(gw, name, 0, session), "session_repeats", 5)


def test_the_defaults_hold(a):
    """One who loops is caught by what is installed; whoever works on is not."""
    with a.gateway() as gw:
        name, session = tool(a), os.urandom(16)
        for _ in range(20):
            assert call(gw, name, 0, session)["_"] == "RUN_ID"
        opened(call(gw, name, 0, session), "session_repeats", 20)
        for n in range(10):
            assert call(gw, "demo__nothing", n, session)["_"] != "RUN_ID"
        opened(call(gw, name, 99, session), "session_errors", 10)
    keys = dict(a.rows("SELECT key, \"default\" FROM mcpbox.setting_keys WHERE key LIKE 'breaker%'"))
    assert keys == {
        "breaker_session_calls": "1000", "breaker_session_repeats": "20", "breaker_session_errors": "10",
        "breaker_principal_calls": "10000", "breaker_principal_repeats": "100", "breaker_principal_errors": "50",
        "breaker_calls_window_s": "3600", "breaker_repeats_window_s": "600", "breaker_reset_s": "60"}


def test_shown_and_reset(a):
    setting(a, breaker_session_repeats=3)
    with a.gateway() as gw, a.ctl() as ctl:
        ask = lambda: json.loads(ctl.call("ADMIN_QUERY", what="breakers")["json"])
        assert ask()["enabled"] and ask()["open"] == []
        name, session = tool(a), os.urandom(16)
        for _ in range(4):
            m = call(gw, name, 0, session)
        opened(m, "session_repeats", 3)
        one, = ask()["open"]
        assert one["breaker"] == "session_repeats" and one["limit"] == 3
        assert one["key"].replace("-", "") == session.hex()
        assert ctl.call("ADMIN_ACTION", action="breakers_reset", body=b"{}")["_"] == "ADMIN_JSON"
        a.until(lambda: ask()["open"] == [])
        assert call(gw, name, 0, session)["_"] == "RUN_ID"
    assert a.rows("SELECT count(*) FROM mcpbox.audit_log WHERE action = 'breakers_reset'")[0][0]


def test_switched_off():
    x = Admind(settings=("breakers no",))
    try:
        x.all_up()
        with x.gateway() as gw:
            x.approved_tool("s1")
            session = os.urandom(16)
            for _ in range(300):
                assert call(gw, "s1__greet", 0, session)["_"] == "RUN_ID"
    finally:
        x.close()
