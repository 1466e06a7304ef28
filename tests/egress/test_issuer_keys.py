"""Keys of an issuer that are fetched (decision 0097), through the whole suite: real confined runs against a server of
https that the test plays, in a network namespace. What a run must not reach is a server, too, and its control is
that the same run reaches the one that it may."""
import itertools
import json
import os
import re
import signal
import threading

import pytest

from harness.clients.api_token import where
from harness.clients.mcp import MODERN, meta, request
from harness.clients.signed_token import Issuer, document, set_document
from harness.instance import Instance
from harness.net.trust import Authority
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.egress import DNS
from harness.played.upstream import Service

ID, OTHER, HOME = "93.184.216.34", "142.250.185.14", "192.168.1.5"
SETS = {"use": {"scopes": ["tools:read", "tools:call"], "allow": ["*"], "deny": []}}
_names = itertools.count(1)


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def instance(inside, dns, ca):
    with ca.trusted():
        i = Instance(sets=(f"egress:dns_servers={DNS}", "admind:breakers=no"))
    i.ctl("settings", "set", "rate_tunnel_per_minute", "0")
    yield i
    i.close()


class Server:
    """pages: path -> (status, headers, body), or a function of the request."""

    def __init__(self):
        self.pages = {}
        self.asked = []

    def handle(self, r):
        self.asked.append(r.path)
        page = self.pages.get(r.path, (404, {}, b""))
        return page(r) if callable(page) else page

    def count(self, path):
        return self.asked.count(path)


def served(ns, ca, address, *names):
    s = Server()
    return s, Service(s.handle, sock=ns.listen(address, 443), context=ca.context(*names))


@pytest.fixture(scope="module")
def servers(ns, dns, ca):
    """id.example, another public one, and one at home."""
    dns.zone["id.example"], dns.zone["other.example"] = d.Answer(a=[ID]), d.Answer(a=[OTHER])
    dns.zone["home.example"] = d.Answer(a=[HOME])
    made = [served(ns, ca, ID, "id.example"), served(ns, ca, OTHER, "other.example"),
            served(ns, ca, HOME, "home.example", HOME)]
    with made[0][1], made[1][1], made[2][1]:
        yield [s for s, _ in made]


@pytest.fixture
def id_(servers):
    return servers[0]


class Fetched(Issuer):
    """An issuer with an address of its own below id.example, and the entry that the test wants. kid: of the key that
    it signs with now."""

    def __init__(self, source, host="id.example"):
        name = f"i{next(_names)}"
        super().__init__(name)
        self.path = "/" + name
        self.url = f"https://{host}/{name}"
        self.source = {k: v.replace("URL", self.url) if isinstance(v, str) else v for k, v in source.items()}
        self.meta, self.jwks = self.path + "/.well-known/openid-configuration", self.path + "/jwks"

    def entry(self):
        made = super().entry()
        self.jwk = made.pop("jwks")["keys"][0]
        return {**made, **self.source}

    def key_set(self, *more):
        return {"keys": [{"kty": "RSA", "use": "enc", "kid": "enc", "n": "AQ", "e": "AQAB"}, *more]}

    def serve(self, server, max_age=3600):
        self.entry()
        server.pages[self.meta] = 200, {}, {"issuer": self.url, "jwks_uri": self.url + "/jwks"}
        server.pages[self.jwks] = 200, {"Cache-Control": f"max-age={max_age}"}, self.key_set(self.jwk)


def holds(instance, issuer):
    got = set_document(instance, document([issuer], [(issuer.name, "any", None, "use")], SETS))
    assert got["_"] == "ACCESS_STATE", got


def state(instance):
    keys, = instance.ctl_json("access", "show")["keys"]
    return keys


def fetched(instance):
    """The state after the first fetch that ended well."""
    return until(lambda: (s := state(instance))["count"] and s, 120, say=lambda: (state(instance), instance.logs()[-3000:]))


def failed(instance, words):
    """The state after a fetch that failed for this reason. A slow machine may give another one first."""
    return until(lambda: words in ((s := state(instance))["error"] or "") and s, 120,
                 say=lambda: (state(instance), instance.logs()[-3000:]))


def comes(instance, issuer, token=None):
    return request(where(instance)(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}},
                   headers={"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list",
                            "Authorization": "Bearer " + (token or issuer.sign("ann"))})


def let_in(r):
    """200 alone says little: most failures are told in a message of JSON-RPC."""
    return r.status == 200 and r.result is not None and "tools" in r.result


def runs(instance, issuer, columns):
    return instance.psql(f"SELECT {columns} FROM mcpbox.executions WHERE tool = 'keys:{issuer.name}' ORDER BY created_at")


def told_to_come_again(r):
    assert r.status == 503, r
    assert int(r.headers["retry-after"]) >= 1
    assert "www-authenticate" not in r.headers
    assert r.error["data"]["failure_mode"] == "issuer_unavailable", r


def test_discovery(instance, id_):
    issuer = Fetched({"discovery": True})
    issuer.serve(id_, max_age=600)
    holds(instance, issuer)
    s = fetched(instance)
    assert s["issuer"] == issuer.name and s["count"] == 1 and s["error"] is None, s
    assert s["fetched_at"] < s["next_at"]
    assert let_in(comes(instance, issuer))
    # nobody else's key
    other = Issuer(issuer.name)
    other.url = issuer.url
    assert comes(instance, issuer, other.sign("ann")).status == 401
    # the run is recorded as any other
    rows = runs(instance, issuer, "outcome, network")
    assert rows[-1][0] == "done" and "id.example" in rows[-1][1], rows
    said = instance.ctl("access", "show").stderr
    assert f"issuer {issuer.name}: 1 keys, fetched " in said, said


def test_an_address_of_keys(instance, id_):
    issuer = Fetched({"jwks_url": "URL/jwks"})
    issuer.serve(id_)
    holds(instance, issuer)
    fetched(instance)
    assert let_in(comes(instance, issuer))
    assert id_.count(issuer.meta) == 0


def _long(r):
    return 200, {}, b'{"keys":[' + b" " * (10 << 20) + b"]}"


@pytest.mark.parametrize("pages, words", [
    (lambda i: {i.jwks: _long}, "larger than 65536 bytes"),
    (lambda i: {i.jwks: (200, {}, {"keys": [{}] * 10000})}, "has 10000 keys, and at most 32 are read"),
    (lambda i: {i.jwks: (200, {}, i.key_set())}, "no key that can be used"),
    (lambda i: {i.jwks: (200, {}, b"<html>")}, "is not JSON"),
    (lambda i: {i.jwks: (500, {}, b"")}, "HTTP 500"),
    (lambda i: {i.jwks: (302, {"Location": "https://other.example/jwks"}, b"")},
     "a redirect, which is not followed; it leads to https://other.example/jwks"),
    (lambda i: {i.meta: (200, {}, {"issuer": i.url + "/", "jwks_uri": i.url + "/jwks"})}, "byte by byte"),
    (lambda i: {i.meta: (200, {}, {"issuer": i.url, "jwks_uri": "http://id.example/jwks"})}, "without https"),
    (lambda i: {i.meta: (200, {}, {"issuer": i.url, "jwks_uri": "https://other.example/jwks"})},
     "other.example: if that is its own, add it to key_hosts"),
], ids=["10 MB", "10,000 keys", "no key", "no JSON", "500", "redirect", "wrong issuer", "http", "other host"])
def test_bad_answers(instance, servers, pages, words):
    id_, other, _ = servers
    issuer = Fetched({"discovery": True})
    issuer.serve(id_)
    id_.pages.update(pages(issuer))
    before = len(other.asked)
    holds(instance, issuer)
    s = failed(instance, words)
    assert s["count"] == 0 and s["fetched_at"] is None, s
    told_to_come_again(comes(instance, issuer))
    assert len(other.asked) == before
    assert words in instance.ctl("access", "show").stderr


def test_a_listed_host_may_have_the_keys(instance, servers):
    id_, other, _ = servers
    issuer = Fetched({"discovery": True, "key_hosts": ["other.example"]})
    issuer.serve(id_)
    other.pages["/jwks"] = id_.pages.pop(issuer.jwks)
    id_.pages[issuer.meta] = 200, {}, {"issuer": issuer.url, "jwks_uri": "https://other.example/jwks"}
    holds(instance, issuer)
    fetched(instance)
    assert let_in(comes(instance, issuer))


def test_a_slow_server(instance, id_):
    issuer, over = Fetched({"discovery": True}), threading.Event()
    issuer.serve(id_)
    page = id_.pages[issuer.jwks]
    id_.pages[issuer.jwks] = lambda r: over.wait(patience(60)) and page
    holds(instance, issuer)
    try:
        until(lambda: id_.count(issuer.jwks))
        told_to_come_again(comes(instance, issuer))     # while it runs, nobody waits
        assert failed(instance, "no whole answer in the time")["count"] == 0
    finally:
        over.set()


def test_a_private_address_needs_leave(instance, servers):
    _, _, home = servers
    issuer = Fetched({"discovery": True}, "home.example")
    issuer.serve(home)
    before = len(home.asked)
    holds(instance, issuer)
    failed(instance, "https://home.example/")
    told_to_come_again(comes(instance, issuer))
    assert len(home.asked) == before
    # The document names the address itself.
    issuer.source["key_hosts"] = [HOME + ":443"]
    holds(instance, issuer)
    fetched(instance)
    assert let_in(comes(instance, issuer))
    # Or it is the issuer's name.
    issuer = Fetched({"discovery": True}, HOME)
    issuer.serve(home)
    holds(instance, issuer)
    fetched(instance)
    assert let_in(comes(instance, issuer))


def test_rotation_and_a_flood_of_unknown_keys(instance, id_):
    issuer = Fetched({"discovery": True})
    issuer.serve(id_)
    holds(instance, issuer)
    fetched(instance)
    old = issuer.sign("ann")
    assert let_in(comes(instance, issuer, old))
    # The issuer changes its key and shows the new one alone.
    new = Issuer(issuer.name)
    new.url, new.kid = issuer.url, "new"
    id_.pages[issuer.jwks] = 200, {}, issuer.key_set(*new.entry()["jwks"]["keys"])
    token = new.sign("bob")
    seen = []

    def accepted():
        r = comes(instance, issuer, token)
        seen.append(r.status)
        return let_in(r)
    # Each of these is a request with an unknown key: two fetches in all, the first and this.
    until(accepted, 120, 0.05)
    assert set(seen) <= {200, 401, 503} and seen.count(503) >= 1, set(seen)
    apart = [float(r[0]) for r in runs(instance, issuer, "extract(epoch FROM created_at - lag(created_at) OVER (ORDER BY"
                                                         " created_at))")[1:]]
    assert apart and min(apart) > 29.9 and id_.count(issuer.jwks) <= len(apart) + 1 < len(seen), (apart, len(seen))
    # The key that was taken away counts no more, though its token was remembered, once the gateway heard of it.
    until(lambda: comes(instance, issuer, old).status == 401)
    assert let_in(comes(instance, issuer, token))
    assert comes(instance, issuer, old).status == 401


def test_an_administrator_asks_for_keys(instance, id_):
    """Fresh keys are fetched all the same, once in 30 s; whoever asks before hears how long to wait."""
    issuer = Fetched({"discovery": True})
    issuer.serve(id_)
    holds(instance, issuer)
    fetched(instance)
    given = Issuer(issuer.name)
    given.url, given.kid = issuer.url, "new"
    id_.pages[issuer.jwks] = 200, {}, issuer.key_set(*given.entry()["jwks"]["keys"])
    said = []

    def asks():
        r = instance.ctl("access", "refresh", issuer.name, "--json", check=False)
        (one,), = [json.loads(r.stdout)["items"]]
        assert (r.returncode, one["issuer"]) == (1 if one["state"] == "early" else 0, issuer.name), (r, one)
        assert (one["wait_seconds"] > 0) == (one["state"] == "early") and one["wait_seconds"] <= 30, one
        said.append(one["state"])
        return one["state"] == "due"
    until(asks, 120, 0.2)
    # No token named the new key: the person's word alone had it fetched.
    until(lambda: id_.count(issuer.jwks) == 2, 120)
    assert let_in(until(lambda: (r := comes(instance, issuer, given.sign("ann"))).status == 200 and r, 120))
    for _ in range(20):
        asks()
    # The first fetch is not long ago, and neither is the second.
    assert "early" in said and said.count("due") == 1, said
    assert id_.count(issuer.jwks) == 2 and len(runs(instance, issuer, "1")) == 2
    r = instance.ctl("access", "refresh", check=False)
    assert re.search(rf"^{issuer.name} +(early|running) +", r.stdout, re.M), r.stdout
    r = instance.ctl("access", "refresh", "nobody", check=False)
    assert r.returncode == 1 and "no issuer of this name" in r.stderr, r.stderr


def test_an_issuer_that_is_away_and_comes_back(instance, id_):
    issuer = Fetched({"jwks_url": "URL/jwks"})
    issuer.serve(id_)
    page = id_.pages.pop(issuer.jwks)
    holds(instance, issuer)
    failed(instance, "HTTP 404")
    told_to_come_again(comes(instance, issuer))
    id_.pages[issuer.jwks] = page
    seen = []

    def accepted():
        r = comes(instance, issuer)
        seen.append(r.status)
        return let_in(r)
    until(accepted, 120, 0.1)
    assert set(seen) <= {200, 503}, seen        # never 401: clients would throw their tokens away
    assert state(instance)["error"] is None


def test_a_restart_fetches_again(instance, id_):
    issuer = Fetched({"discovery": True})
    issuer.serve(id_)
    holds(instance, issuer)
    fetched(instance)
    assert let_in(comes(instance, issuer))
    before = id_.count(issuer.jwks)
    old = instance.service_pid("admind")
    os.kill(old, signal.SIGKILL)
    until(lambda: instance.service_pid("admind") not in (None, old), during=(OSError, ValueError))
    until(lambda: let_in(comes(instance, issuer)), 120)
    assert id_.count(issuer.jwks) > before


def test_given_keys_are_not_fetched(instance, id_):
    issuer = Issuer(f"i{next(_names)}")
    holds(instance, issuer)
    assert instance.ctl_json("access", "show")["keys"] == []
    assert let_in(comes(instance, issuer))
