"""Tokens by admind alone, whose peers are played: two nodes of one database, restarts, gateways that answer late or
not, revocations in the middle of a call."""
import itertools
import secrets
import threading
import time

import pytest

from harness.patience import WAIT_FACTOR, patience, until
from harness.played.admind import Admind, failure

pytestmark = pytest.mark.usefixtures("honest")
_names = itertools.count(1)
#: Less than admind waits for the gateways (TELL_MS).
GIVES_UP_S = 0.9 * WAIT_FACTOR


@pytest.fixture(scope="module")
def b(a):
    """A second node: another admind over the same database."""
    x = Admind(settings=("node node2",), pg=a.pg)
    try:
        x.all_up()
        yield x
        print(x.logs()[-3000:])
    finally:
        x.close()


def make(a, **more):
    fields = {"name": f"n{next(_names)}", "scopes": "tools:call", "listeners": "local\ntunnel", "allow": "*",
              "deny": "", "expires_ms": 0, "token": "", **more}
    with a.ctl() as c:
        m = c.call("TOKEN_CREATE", **fields)
    assert m["_"] == "TOKEN_CREATED", m
    return fields["name"], m["secret"]


class Revoking(threading.Thread):
    """TOKEN_REVOKE, whose answer may have to wait for the gateways this test plays."""

    def __init__(self, a, name):
        super().__init__()
        self.a, self.name_, self.reply = a, name, None
        self.start()

    def run(self):
        with self.a.ctl() as c:
            self.reply = c.call("TOKEN_REVOKE", token="", which=self.name_, reason="")
            self.at = time.monotonic()


def ended(gw, timeout=patience(5)):
    """The CREDENTIAL_ENDED that comes, and its request."""
    deadline = time.monotonic() + timeout
    while True:
        request, m = gw.receive(max(0.01, deadline - time.monotonic()))
        if m["_"] == "CREDENTIAL_ENDED":
            return request, m
        if m["_"] == "CATALOGUE_CHANGED":
            gw.send("OK", request=request)


def who(gw, secret):
    return gw.call("AUTHENTICATE", credential=secret)


def call(gw, secret, tool):
    return gw.call("AUTHORISE", credential=secret, tool=tool, arguments=b'{"n":"%s"}' % secrets.token_hex(4).encode())


def refused(m, mode="UNAUTHENTICATED"):
    return m["_"] == "REFUSED" and failure(m) == mode


def test_another_node_hears_of_it(a, b):
    name, secret = make(a)
    server = "s" + secrets.token_hex(4)
    a.approved_tool(server)
    with b.gateway("tunnel") as gw:
        a.until(lambda: who(gw, secret)["_"] == "IDENTITY")	# by NOTIFY
        assert call(gw, secret, f"{server}__greet")["_"] == "RUN_ID"
        r = Revoking(a, name)
        request, m = ended(gw)
        assert m["principal"] == f"token:{name}"
        gw.send("OK", request=request)
        assert refused(who(gw, secret)) and refused(call(gw, secret, f"{server}__greet"))
        r.join()
        assert r.reply["_"] == "ADMIN_JSON"


def revoked_beside_three(a):
    """Revokes a token that three gateways know, the last of which acknowledges its end later.
    (the answer, did it come after that, seconds until it came)"""
    name, secret = make(a)
    with a.gateway("tunnel") as one, a.gateway("tunnel") as two, a.gateway("local") as three:
        assert all(who(g, secret)["_"] == "IDENTITY" for g in (one, two, three))
        began = time.monotonic()
        r = Revoking(a, name)
        # Twice each: the end itself, and what the answer waits for. Nobody answers the second yet.
        asked = {}
        for g in (one, two, three):
            request, _ = ended(g)
            g.send("OK", request=request)
            asked[g] = ended(g)[0]
        time.sleep(0.05)
        for g in (one, two):
            g.send("OK", request=asked[g])
        time.sleep(0.05)
        last = time.monotonic()
        three.send("OK", request=asked[three])
        r.join(patience(5))
        assert not r.is_alive()
        return r.reply, r.at > last, r.at - began


def test_the_answer_waits_for_every_gateway(a):
    """... but no longer than a second. That must not decide, so where it passed, another token is revoked."""
    for _ in range(50):
        reply, after, took = revoked_beside_three(a)
        if took < GIVES_UP_S:
            break
    else:
        pytest.fail(f"three gateways did not acknowledge in {GIVES_UP_S} s: {took}")
    assert after and reply["_"] == "ADMIN_JSON", (after, reply)


def test_a_gateway_that_hangs(a):
    """The administrator hears that it does, after a second; the token is gone all the same."""
    name, secret = make(a)
    with a.gateway("tunnel") as deaf, a.gateway("tunnel") as well:
        assert who(deaf, secret)["_"] == "IDENTITY"
        began = time.monotonic()
        r = Revoking(a, name)
        for _ in range(2):
            well.send("OK", request=ended(well)[0])
        r.join(patience(5))
        assert refused(r.reply, "BUSY") and r.at - began > 0.5
        assert refused(who(well, secret)) and refused(call(well, secret, "x__y"))
        # Again: as soon as all answer, it is said.
        for _ in range(2):
            deaf.send("OK", request=ended(deaf)[0])
        r = Revoking(a, name)
        for g in (deaf, well):
            g.send("OK", request=ended(g)[0])
        r.join(patience(5))
        assert r.reply["_"] == "ADMIN_JSON"


def test_a_gateway_that_goes_holds_nothing(a):
    name, secret = make(a)
    gone = a.gateway("tunnel")
    gone.__enter__()
    assert who(gone, secret)["_"] == "IDENTITY"
    r = Revoking(a, name)
    ended(gone)
    gone.__exit__(None, None, None)
    r.join(patience(5))
    assert r.reply["_"] == "ADMIN_JSON"


def test_revoked_while_arguments_are_checked(a):
    """The job is under way, its intent not made: nothing runs, and there is one record at most, closed."""
    name, secret = make(a)
    server = "s" + secrets.token_hex(4)
    a.approved_tool(server)
    go, there = threading.Event(), threading.Event()

    def slow(m):
        there.set()
        go.wait(patience(60))
        return "CHECK_OK", {}

    a.on_check = slow
    with a.gateway("tunnel") as gw:
        request = gw.start("AUTHORISE", credential=secret, tool=f"{server}__greet", arguments=b'{"n":"1"}')
        assert there.wait(patience(5))
        r = Revoking(a, name)
        for _ in range(2):
            gw.send("OK", request=ended(gw)[0])
        r.join(patience(5))
        assert r.reply["_"] == "ADMIN_JSON"
        go.set()
        m = gw.answer(request)
        assert m["_"] == "REFUSED", m
        rows = []

        def all_closed():
            rows[:] = a.rows("SELECT state, outcome FROM mcpbox.executions WHERE principal = %s", f"token:{name}")
            return all(x[0] == "closed" for x in rows)
        a.until(all_closed)
        assert [x[1] for x in rows] in ([], ["refused"], ["killed"]), rows


def test_a_restart_forgets_no_end(a):
    kept, gone = make(a), make(a)
    with a.ctl() as c:
        assert c.call("TOKEN_REVOKE", token="", which=gone[0], reason="")["_"] == "ADMIN_JSON"
    a.stop()
    a.start()
    def read():	# until it has read them nobody is let in, and nobody turned away for good
        with a.gateway("tunnel") as gw:
            bad = who(gw, gone[1])	# asked first: they may be read between the two
            m = who(gw, kept[1])
        if m["_"] == "IDENTITY":
            return bad
        assert refused(m, "STORAGE_UNAVAILABLE") and refused(bad, "STORAGE_UNAVAILABLE"), (m, bad)
        return None
    bad = until(read, 10)
    assert refused(bad, "STORAGE_UNAVAILABLE") or refused(bad)
    with a.gateway("tunnel") as gw:
        assert refused(who(gw, gone[1]))


@pytest.mark.parametrize("listeners, where", [("local", "tunnel"), ("tunnel", "local")])
def test_listeners(a, listeners, where):
    _, secret = make(a, listeners=listeners)
    with a.gateway(where) as gw, a.gateway(listeners) as right:
        assert refused(who(gw, secret)) and refused(call(gw, secret, "x__y"))
        assert who(right, secret)["_"] == "IDENTITY"
        for message in ("TASK_GET", "TASK_CANCEL"):
            assert refused(gw.call(message, credential=secret, task=bytes(16)))


def test_an_identity_is_cached_no_longer_than_it_is_good(a):
    with a.gateway("tunnel") as gw:
        for ms in (4000, 16000, 64000):	# a machine that needs so long to ask gets more
            _, secret = make(a, expires_ms=int(time.time() * 1000) + ms)
            if (m := who(gw, secret))["_"] == "IDENTITY":
                break
        assert 0 < m["cache_ms"] <= ms
        request, e = ended(gw, timeout=patience(64))	# and when it ends, that is said
        gw.send("OK", request=request)
        assert e["principal"] == m["principal"] and refused(who(gw, secret))


def test_how_many(a):
    """4096 live ones at most: they are all in memory."""
    a.sql("INSERT INTO mcpbox.api_tokens (id, name, digest, scopes, listeners, allow, deny, created_by)"
          " SELECT gen_random_uuid(), 'many' || n, sha256(('many' || n)::bytea), '{tools:read}', '{tunnel}', '{*}', '{}',"
          " 'root' FROM generate_series(1, 4096) n")
    with a.ctl() as c:
        m = c.call("TOKEN_CREATE", name="one-more", scopes="tools:read", listeners="tunnel", allow="*", deny="",
                   expires_ms=0, token="")
        assert refused(m, "LIMIT"), m
        a.sql("UPDATE mcpbox.api_tokens SET revoked_at = now(), revoked_by = 'root' WHERE name LIKE 'many%'")
        assert c.call("TOKEN_CREATE", name="one-more", scopes="tools:read", listeners="tunnel", allow="*", deny="",
                      expires_ms=0, token="")["_"] == "TOKEN_CREATED"
