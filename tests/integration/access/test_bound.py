"""Tokens that are bound to one request (decision 0098), through the tunnel's socket and all real daemons: the one
request that they are for, everything else that they are not for, and what goes on after their minute is over."""
import base64
import json
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.api_token import Token, where
from harness.clients.mcp import LEGACY, MODERN, Client, meta, request, text
from harness.clients.signed_token import Bound, Issuer, Person, Worker, document, set_document
from harness.clients.sse import Stream
from harness.clients.tasks import DECLARED, WORK, Tasks
from harness.clients.tasks import publish as publish_task
from harness.instance import Instance
from harness.patience import patience, until

CANARY = "def main(n: int = 0) -> str:\n    return f'canary {n}'\n"
WORKER, POCKET = Worker(), Issuer()
RULES = (("worker", "email", ["ann@example.org"], "use"), ("pocket", "any", None, "use"))
SETS = {"use": {"scopes": ["tools:call"], "allow": ["crm__*"], "deny": []}}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()


class BoundClient(Bound, Client):
    pass


class BoundTasks(Bound, Tasks):
    pass


def post(instance, token, method="POST", target="/mcp", body=LIST, listener="tunnel", **headers):
    return request(where(instance, listener)(), method, target, body=body, headers={
        "MCP-Protocol-Version": LEGACY, "Authorization": "Bearer " + token, **headers})


def served(r):
    return r.status == 200 and r.result is not None


def refused(r, words):
    assert r.status == 401 and not r.result, r
    challenge = r.headers["www-authenticate"]
    assert 'error="invalid_token"' in challenge and words in challenge, challenge


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:breakers=no"])
    i.ctl("settings", "set", "rate_tunnel_per_minute", "0")
    with Client(i.address) as c:
        flow.publish(i, c, "crm", "canary", CANARY)
        publish_task(i, c, "crm", "work", WORK, "optional")
        i.ctl("servers", "limits", "crm", "timeout_ms=600000")
    got = set_document(i, document((WORKER, POCKET), RULES, SETS))
    assert got["_"] == "ACCESS_STATE", got
    until(lambda: served(post(i, Person(i, WORKER, "ann", email="ann@example.org",
                                        email_verified=True).bind(body=LIST))))
    yield i
    i.close()


@pytest.fixture
def ann(instance):
    return Person(instance, WORKER, "ann", email="ann@example.org", email_verified=True)


def listen(instance, ann, **claims):
    """A stream by a token of its own."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True}, "_meta": meta(MODERN, DECLARED)}}
    token = ann.bind(body=json.dumps(body).encode(), **claims)
    s = Stream(where(instance)(), body=body, headers={
        "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen", "Authorization": "Bearer " + token})
    assert s.status == 200, s.headers
    s.message("notifications/subscriptions/acknowledged")
    return s


# ---- one request ----

def test_used_once(instance, ann):
    token = ann.bind(body=LIST)
    assert served(post(instance, token))
    for _ in range(3):
        refused(post(instance, token), "used already")
    # The same jti in another token is the same token.
    refused(post(instance, ann.bind(body=LIST, jti=json.loads(_claims(token))["jti"])), "used already")
    assert served(post(instance, ann.bind(body=LIST)))


def _claims(token):
    part = token.split(".")[1]
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.mark.parametrize("claims, asked, words", [
    ({"method": "GET"}, {}, "another method"),
    ({"method": "post"}, {}, "another method"),
    ({"target": "/mcp?x=1"}, {}, "another URL"),
    ({}, {"target": "/mcp?x=1"}, "another URL"),
    ({"target": "/mcp?x=1"}, {"target": "/mcp?x=2"}, "another URL"),
    ({}, {"target": "/mcp?"}, "another URL"),
    ({"htu": "https://other.example.org/mcp"}, {}, "another URL"),
    ({"htu": "http://mcp.example.org/mcp"}, {}, "another URL"),
    ({}, {"body": LIST + b" "}, "another body"),
    ({}, {"body": LIST.replace(b"tools/list", b"tools/call")}, "another body"),
    ({"body": b""}, {}, "another body")], ids=str)
def test_another_request(instance, ann, claims, asked, words):
    token = ann.bind(**{"body": LIST, **claims})
    refused(post(instance, token, **asked), words)
    # A thief's request does not use a token up: this one has its own request yet.
    own = {k: claims[k] for k in ("target",) if k in claims}
    if set(claims) <= {"target"}:
        assert served(post(instance, token, **own))


@pytest.mark.parametrize("claims, words", [
    ({"htm": None}, "`htm`"), ({"htu": None}, "`htu`"), ({"bsha256": None}, "`bsha256`"), ({"jti": None}, "`jti`"),
    ({"iat": None}, "`iat`"), ({"seconds": 121}, "longer than 120 s"), ({"htm": "POST "}, "`htm`"),
    ({"bsha256": "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU="}, "`bsha256`"),
    ({"session_exp": 1}, "`session_exp`"), ({"session_exp": "x"}, "`session_exp`")], ids=str)
def test_members(instance, ann, claims, words):
    refused(post(instance, ann.bind(**{"body": LIST, **claims})), words)
    assert served(post(instance, ann.bind(body=LIST)))


def test_two_at_once(instance, ann):
    """Many requests with one token, sent together: exactly one is served."""
    for _ in range(5):
        token, replies, ready = ann.bind(body=LIST), [], threading.Barrier(8)

        def ask():
            ready.wait()
            replies.append(post(instance, token))
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(patience(40))
        assert len(replies) == 8 and [served(r) for r in replies].count(True) == 1, replies
        for r in replies:
            if not served(r):
                refused(r, "used already")


def test_get_and_delete(instance, ann):
    """A legacy session: its stream and its end have tokens of their own."""
    with BoundClient(where(instance), ann, version=LEGACY) as c:
        head = {"Mcp-Session-Id": c.session, "MCP-Protocol-Version": LEGACY}
        token = ann.bind(method="GET")
        with Stream(where(instance)(), method="GET", headers={**head, "Authorization": "Bearer " + token}) as s:
            assert s.status == 200, s.headers
            refused(post(instance, token, "GET", body=None, **head), "used already")
            refused(post(instance, ann.bind(method="POST"), "GET", body=None, **head), "another method")
            refused(post(instance, ann.bind(method="GET"), "DELETE", body=None, **head), "another method")
            assert text(c.call("crm__canary", {"n": 5})) == "canary 5"
            token = ann.bind(method="DELETE")
            assert post(instance, token, "DELETE", body=None, **head).status == 204
            s.rest()
            assert s.ended
        refused(post(instance, token, "DELETE", body=None, **head), "used already")


# ---- beside other credentials ----

def test_beside_others(instance, ann):
    """An API token and the tokens of an issuer that is not bound, which may say anything of a request."""
    api = Token(instance, scopes="tools:call", listeners="tunnel", allow="crm__*")
    for token in (api.text, POCKET.sign("bob"), POCKET.sign("bob", htm="GET", htu=7, bsha256="x", session_exp=1)):
        for n in range(2):
            with Client(where(instance), token=token) as c:
                assert text(c.call("crm__canary", {"n": n})) == f"canary {n}"
    for n in range(2):
        with BoundClient(where(instance), ann) as c:
            assert text(c.call("crm__canary", {"n": n})) == f"canary {n}"
    # Nor is a bound token good at a listener that its issuer does not serve.
    refused(post(instance, ann.bind(body=LIST), listener="local"), "")


# ---- what goes on ----

def test_calls_and_tasks(instance, ann):
    with BoundTasks(where(instance), ann) as t:
        assert {"crm__canary", "crm__work"} <= set(t.tools())
        assert text(t.call("crm__canary", {"n": 1})) == "canary 1"
        task = t.start("crm__work", seconds=600)
        assert t.get(task)["status"] == "working"
        t.cancel(task)
    rows = instance.psql("SELECT DISTINCT listener FROM mcpbox.executions"
                         f" WHERE principal = '{ann.principal}'")
    assert rows == [["tunnel"]]


def test_many_requests_of_a_session(instance, ann):
    """More than a person's remembered credentials: the first stream still hears of changes."""
    with listen(instance, ann) as s:
        end = int(time.time()) + 1800
        for _ in range(40):
            assert served(post(instance, ann.bind(body=LIST)))
            assert served(post(instance, ann.bind(body=LIST, session_exp=end)))
        with Client(instance.address) as c:
            flow.publish(instance, c, "crm", "more", CANARY)
        s.message("notifications/tools/list_changed")


def test_stream_ends_with_the_session(instance, ann):
    """It outlives its token by far more than the leeway, and ends with the session."""
    end = int(time.time() + patience(9))
    with listen(instance, ann, seconds=int(patience(1)), session_exp=end) as s, listen(instance, ann) as other:
        s.rest(timeout=patience(60))
        assert s.ended and time.time() >= end
        other.quiet(0.3)


def test_withdrawal(instance, ann):
    with listen(instance, ann) as s:
        ann.withdraw()
        try:
            s.rest()
            assert s.ended
            r = post(instance, ann.bind(body=LIST))
            assert r.status == 403 and "withdrew" in json.dumps(r.error), r
        finally:
            ann.restore()
    until(lambda: served(post(instance, ann.bind(body=LIST))))


def test_no_token_twice_over_a_restart(instance, ann):
    """What was used before the start is not served after it, and the answer is not that the person is unknown."""
    tokens = [ann.bind(body=LIST) for _ in range(3)]
    for token in tokens:
        assert served(post(instance, token))
    instance.tool("restart", "admind")
    instance.tool("wait")

    def again():
        replies = [post(instance, token) for token in tokens]
        assert not any(served(r) for r in replies), replies
        # A slow machine may come here after the tokens' time.
        return all("before this server started" in json.dumps(r.error) if r.status == 200
                   else "expired" in json.dumps(r.error) for r in replies)
    until(again)
    until(lambda: served(post(instance, ann.bind(body=LIST))))
    assert not any(served(post(instance, token)) for token in tokens)
