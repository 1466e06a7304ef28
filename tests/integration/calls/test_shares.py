"""What a client behind one token can take from others, and what it can't: slots and the queue of the sandbox, parked
calls, results that wait to be judged, kept results, requests at once. A local client, and one with another token, are
served meanwhile as if the flood were not there."""
import threading

import pytest

from harness.clients import flow
from harness.clients.api_token import Token, where
from harness.clients.mcp import MODERN, Client, meta, text
from harness.instance import Instance
from harness.patience import patience, until

SLOTS, PARKED = 8, 8
SLOW = "import time\ndef main() -> str:\n    time.sleep(600)\n    return 'slept'\n"
QUICK = "def main(n: int = 0) -> str:\n    return f'quick {n}'\n"
ASKS = "import mcpbox\ndef main() -> str:\n    a = mcpbox.elicit('Name?', {'name': str})\n    return str(a.content)\n"
ALL = {"elicitation": {"form": {}}}


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=[f"sandboxd:slots={SLOTS}", f"sandboxd:parked_max={PARKED}", "sandboxd:queue=512",
                       "sandboxd:queue_wait=60s", "admind:breakers=no", "gatewayd-tunnel:max_connections=128"])
    with Client(i.address) as c:
        for name, code in (("slow", SLOW), ("quick", QUICK), ("asks", ASKS)):
            flow.publish(i, c, "share", name, code, limits={"timeout_ms": 600000})
    i.ctl("settings", "set", "rate_tunnel_per_minute", "0")
    yield i
    i.close()


class Flood:
    """Many clients of one token, each with one call under way that does not end by itself."""

    def __init__(self, token, n, name):
        self.token, self.replies = token, []
        self.threads = [threading.Thread(target=self._one, args=(token, name)) for _ in range(n)]
        for t in self.threads:
            t.start()

    def _one(self, token, name):
        with token.client() as c:
            self.replies.append(c.call(name))

    def join(self):
        """Ends them with their token."""
        self.token.revoke()
        for t in self.threads:
            t.join(patience(40))
            assert not t.is_alive()


def running(instance, n):
    """Until so many run. One that ends, or that is made for a later call, is seen for a
    moment too; those of a flood stay."""
    until(lambda: len(instance.runners()) == n, say=instance.runners)


def queued(instance, token, n):
    """Until so many calls of the token are under way, whether they run or wait. (None of a flood comes again.)"""
    until(lambda: int(instance.psql("SELECT count(*) FROM mcpbox.executions WHERE state = 'open' AND"
                                    f" principal = '{token.principal}'")[0][0]) >= n)


def test_slots(instance):
    """Forty slow calls of one token: half of the slots, and nobody waits for them."""
    flooder, other = Token(instance), Token(instance)
    flood = Flood(flooder, 40, "share__slow")
    try:
        running(instance, SLOTS // 2)
        queued(instance, flooder, 32)
        running(instance, SLOTS // 2)
        for client in (Client(instance.address), other.client()):
            with client as c:
                for n in range(5):
                    assert text(c.call("share__quick", {"n": n})) == f"quick {n}"
        # Nobody waited for the flood: all of it still runs, or is in the queue for its minute.
        running(instance, SLOTS // 2)
        queued(instance, flooder, 32)
        # The rest was told at once that it is too much.
        until(lambda: len(flood.replies) == 8)
        for r in flood.replies:
            assert r.error["data"]["failure_mode"] == "busy" and r.error["data"]["retry_after_ms"] > 0, r
    finally:
        flood.join()


def test_all_tokens_leave_a_quarter_to_local_clients(instance):
    tokens = [Token(instance) for _ in range(4)]
    floods = [Flood(t, 6, "share__slow") for t in tokens]
    try:
        running(instance, SLOTS * 3 // 4)
        for t in tokens:
            queued(instance, t, 6)
        with Client(instance.address) as c:
            assert text(c.call("share__quick", {"n": 1})) == "quick 1"
        running(instance, SLOTS * 3 // 4)
    finally:
        for f in floods:
            f.join()


def ask(c):
    return c.request("tools/call", {"name": "share__asks", "arguments": {}, "_meta": meta(MODERN, ALL)})


def answer(c, state):
    return c.request("tools/call", {"name": "share__asks", "arguments": {}, "requestState": state, "inputResponses": {
        "q1": {"action": "accept", "content": {"name": "Ann"}}}, "_meta": meta(MODERN, ALL)})


def test_parked_calls(instance):
    """Half of the slots may be parked (4 of 8); one token has a quarter of that, all of them a half."""
    a, b = Token(instance), Token(instance)
    with a.client() as x, b.client() as y, Client(instance.address) as z:
        first = ask(x)
        assert first.result["resultType"] == "input_required", first
        second = ask(x)
        assert second.result["isError"] and "of this client" in text(second), second
        # Another token has a place of its own, and local clients the rest.
        other = ask(y)
        assert other.result["resultType"] == "input_required", other
        locals_ = [ask(z) for _ in range(2)]
        assert all(r.result["resultType"] == "input_required" for r in locals_), locals_
        for c, r in ((x, first), (y, other), (z, locals_[0]), (z, locals_[1])):
            assert text(answer(c, r.result["requestState"])) == "{'name': 'Ann'}"
        again = ask(x)	# its place is free again
        assert text(answer(x, again.result["requestState"])) == "{'name': 'Ann'}"


def test_requests_at_once(instance):
    """gatewayd serves 128 connections here: one principal has a quarter of the requests, others go on."""
    flooder, other = Token(instance), Token(instance)
    flood = Flood(flooder, 60, "share__slow")
    try:
        until(lambda: len(flood.replies) >= 60 - 32)    # the others are under way, and stay
        busy = [r for r in flood.replies if r.error and r.error["data"]["failure_mode"] == "busy"]
        with other.client() as c:
            assert "share__quick" in c.tools()
            assert text(c.call("share__quick", {"n": 2})) == "quick 2"
    finally:
        flood.join()
    assert any("being served at once" in r.error["message"] for r in busy), {r.error["message"] for r in busy}
    assert where(instance)()


def test_the_listeners_rate(instance):
    """The tunnel has 300 calls a minute: one token half of them, and what it is refused uses up nothing."""
    instance.ctl("settings", "set", "rate_tunnel_per_minute", "300")
    flooder, other = Token(instance), Token(instance)
    with flooder.client() as c:
        got = [c.call("mcpbox_search_tools", {"query": "quick"}) for _ in range(400)]
    limited = [r for r in got if r.error]
    assert {r.error["data"]["failure_mode"] for r in limited} == {"rate_limited"} and len(limited) >= 200
    with other.client() as c:
        assert all(c.call("mcpbox_search_tools", {"query": "quick"}).result for _ in range(40))
    instance.ctl("settings", "set", "rate_tunnel_per_minute", "0")
