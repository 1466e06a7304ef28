"""Network access in contexts, at the vault's own sockets: admind is ours and
hostile. What it brings as a grant counts only if a person approved just that for
just this server; what the version declares comes from nowhere but the version."""
import hashlib
import os
import struct

import pytest

from integration.vault import test_vault
from integration.vault.test_vault import (ADMIND, CODE, LOCAL, TOOL, TUNNEL, ask, bare, refused, seal, unseal, version)
from harness.tlv import tlv

vault, admind, web, ctl, sandbox = (test_vault.vault, test_vault.admind, test_vault.web,
                                    test_vault.ctl, test_vault.sandbox)
context_key = test_vault.context_key
GRANTS = 5
SERVER, OTHER = b"S" * 16, b"R" * 16
GRANT_SEAL, GRANT_PREIMAGE, REQUIRE, GRANT, SERVER_ID = 31, 32, 33, 34, 35


def network(request, host=b"api.example.org", port=443, proto=b"tcp", server=SERVER, affected=()):
    return b"mcpbox grant 1\0" + tlv(
        (1, 2), (2, request), (3, server), (4, b"demo"), (12, proto), (13, host), (14, port),
        *[(15, a) for a in affected])


def module(request):
    return b"mcpbox grant 1\0" + tlv((1, 1), (2, request), (3, SERVER), (4, b"demo"), (5, b"T" * 16),
                                     (6, b"greet"), (7, b"six"), (8, b"1.16.0"), (9, b"D" * 32),
                                     (10, 3), (11, 99))


def approve(ctl, admind, kind, pre, request=None):
    request = request or os.urandom(16)
    pre = pre(request) if callable(pre) else pre
    admind.requests[request] = (kind, "pending", pre)
    m = ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest())
    assert m["_"] == "OK", m
    return admind.decisions[request]["seal"], pre


@pytest.fixture(scope="module")
def tool(ctl, admind):
    """A version that declares hosts, with its seal; as the author wrote them."""
    pre = version(content=(*CODE, *((21, r) for r in (
        b"*.Example.NET", b"[2001:DB8::1]:8443", b"api.example.org", b"udp:time.example.org:123"))))
    return approve(ctl, admind, "tool", pre)[::-1]


@pytest.fixture(scope="module")
def grants(ctl, admind):
    """name: (seal, pre-image)"""
    return {
        "api": approve(ctl, admind, "network", network),
        "web": approve(ctl, admind, "network", lambda r: network(r, b"*.example.net", 0)),
        "time": approve(ctl, admind, "network", lambda r: network(r, b"time.example.org", 123, b"udp")),
        "all": approve(ctl, admind, "network", lambda r: network(r, b"*", 0)),
        "loopback": approve(ctl, admind, "network", lambda r: network(r, b"127.0.0.1", 8123)),
        "other": approve(ctl, admind, "network", lambda r: network(r, server=OTHER)),
        "module": approve(ctl, admind, "module", module)}


def pairs(*grants):
    return [f for s, pre in grants for f in ((GRANT_SEAL, s), (GRANT_PREIMAGE, pre))]


def of(plain, tag):
    return [v for t, v in plain if t == tag]


def test_what_is_declared_and_what_is_granted(admind, sandbox, context_key, tool, grants):
    m = seal(admind, sandbox.epoch, bare(*tool, *pairs(*(grants[n] for n in (
        "api", "web", "time", "all", "loopback")))))
    plain = unseal(context_key, sandbox.epoch, m["context"])
    assert of(plain, REQUIRE) == [b"tcp *.example.net 0", b"tcp 2001:db8::1 8443",
                                  b"tcp api.example.org 0", b"udp time.example.org 123"]
    assert of(plain, GRANT) == [b"tcp api.example.org 443", b"tcp *.example.net 0",
                                b"udp time.example.org 123", b"tcp * 0", b"tcp 127.0.0.1 8123"]
    assert of(plain, SERVER_ID) == [SERVER]
    # neither seals nor pre-images go on
    assert not of(plain, GRANT_SEAL) and not of(plain, GRANT_PREIMAGE)


def test_without_a_grant_nothing_is_granted(admind, sandbox, context_key, tool):
    plain = unseal(context_key, sandbox.epoch, seal(admind, sandbox.epoch, bare(*tool))["context"])
    assert len(of(plain, REQUIRE)) == 4 and of(plain, GRANT) == []


def test_who_declares_nothing_gets_nothing(admind, ctl, sandbox, context_key, grants):
    """Not even what its server is granted: no byte of it."""
    pre = version(content=CODE)
    s, _ = approve(ctl, admind, "tool", pre)
    plain = unseal(context_key, sandbox.epoch,
                   seal(admind, sandbox.epoch, bare(pre, s, *pairs(grants["all"])))["context"])
    for tag in (REQUIRE, GRANT, SERVER_ID):
        assert of(plain, tag) == [], tag


def test_another_server_s_grant_is_none(admind, sandbox, context_key, tool, grants):
    refused(seal(admind, sandbox.epoch, bare(*tool, *pairs(grants["other"]))), "FORBIDDEN")
    refused(seal(admind, sandbox.epoch, bare(*tool, *pairs(grants["api"], grants["other"]))), "FORBIDDEN")


def test_what_is_no_network_grant_is_none(admind, ctl, sandbox, context_key, tool, grants):
    refused(seal(admind, sandbox.epoch, bare(*tool, *pairs(grants["module"]))), "FORBIDDEN")
    # a version's seal over its version
    refused(seal(admind, sandbox.epoch, bare(*tool, (GRANT_SEAL, tool[1]), (GRANT_PREIMAGE, tool[0]))),
            "NOT_APPROVED")


def test_content_other_than_sealed(admind, sandbox, context_key, tool, grants):
    """A wider host, a port more, another server, versions left out: not what was
    shown, so not what was sealed."""
    s, pre = grants["api"]
    request = pre[pre.index(tlv((2, b""))[:1] + struct.pack(">I", 16)) + 5:][:16]
    for made in (network(request, b"*.example.org"), network(request, b"*"), network(request, port=0),
                 network(request, port=444), network(request, server=OTHER), network(request, proto=b"udp"),
                 network(request, affected=[b"\1" * 32]), b"", pre[:-1], pre + b"\0"):
        refused(seal(admind, sandbox.epoch, bare(*tool, (GRANT_SEAL, s), (GRANT_PREIMAGE, made))),
                "NOT_APPROVED")
    for i in range(0, len(s), 7):
        spoilt = s[:i] + bytes([s[i] ^ 1]) + s[i + 1:]
        m = seal(admind, sandbox.epoch, bare(*tool, (GRANT_SEAL, spoilt), (GRANT_PREIMAGE, pre)))
        assert m["_"] == "REFUSED", i
    for empty in (b"", s[:8], s + b"\0"):
        m = seal(admind, sandbox.epoch, bare(*tool, (GRANT_SEAL, empty), (GRANT_PREIMAGE, pre)))
        assert m["_"] == "REFUSED"


@pytest.mark.parametrize("order", [(GRANT_SEAL,), (GRANT_PREIMAGE,), (GRANT_SEAL, GRANT_SEAL, GRANT_PREIMAGE),
                                   (GRANT_PREIMAGE, GRANT_SEAL), (GRANT_SEAL, 9, GRANT_PREIMAGE)])
def test_pairs_are_pairs(admind, sandbox, context_key, tool, grants, order):
    s, pre = grants["api"]
    value = {GRANT_SEAL: s, GRANT_PREIMAGE: pre, 9: 2**26}
    refused(seal(admind, sandbox.epoch, bare(*tool, *((t, value[t]) for t in order))), "INVALID_REQUEST")


@pytest.mark.parametrize("tag", [REQUIRE, GRANT, SERVER_ID])
def test_admind_says_no_host_itself(admind, sandbox, context_key, tool, tag):
    for value in (b"tcp * 0", SERVER):
        refused(seal(admind, sandbox.epoch, bare(*tool, (tag, value))), "INVALID_REQUEST")


@pytest.mark.parametrize("kind", [2, 3, 4, 6])
def test_drafts_have_no_network(admind, sandbox, context_key, grants, kind):
    """An inspection or a test run never has a grant in it."""
    own = [(5, b"print(1)"), (6, b"demo__draft"), (7, hashlib.sha256(b"{}").digest()), (8, 1000)]
    m = seal(admind, sandbox.epoch, tlv(*own, *pairs(grants["api"])), kind, ADMIND)
    assert m["_"] == "REFUSED", m


def test_a_requirement_that_is_none_runs_nothing(admind, ctl, sandbox, context_key):
    pre = version(content=(*CODE, (21, b"http://example.org/")))
    s, _ = approve(ctl, admind, "tool", pre)
    refused(seal(admind, sandbox.epoch, bare(pre, s)), "INVALID_PARAMS")


@pytest.mark.parametrize("kind", [b"http", b"mcp"])
def test_a_specification_is_passed_on(admind, ctl, sandbox, context_key, grants, kind):
    """Of these kinds the specification is what runs; it reaches what the version declares."""
    pre = version(kind, ((16, b'{"url":"https://api.example.org/"}'), (21, b"api.example.org:443")))
    s, _ = approve(ctl, admind, "tool", pre)
    plain = unseal(context_key, sandbox.epoch,
                   seal(admind, sandbox.epoch, bare(pre, s, *pairs(grants["api"])))["context"])
    assert of(plain, 23) == [kind] and of(plain, 24) == [b'{"url":"https://api.example.org/"}']
    assert of(plain, REQUIRE) == of(plain, GRANT) == [b"tcp api.example.org 443"] and of(plain, 5) == []


def test_a_thousand_grants_and_no_more(admind, sandbox, context_key, tool, grants):
    m = seal(admind, sandbox.epoch, bare(*tool, *pairs(*[grants["api"]] * 1024)))
    assert len(of(unseal(context_key, sandbox.epoch, m["context"]), GRANT)) == 1024
    refused(seal(admind, sandbox.epoch, bare(*tool, *pairs(*[grants["api"]] * 1025))), "LIMIT")


# --- of a whole server: REGRANT ---


def regrant(admind, sandbox, *fields, listener=ADMIND, server=SERVER):
    return seal(admind, sandbox.epoch, tlv((SERVER_ID, server), *fields), GRANTS, listener, SERVER)


def test_grants_of_a_server(admind, sandbox, context_key, grants):
    m = regrant(admind, sandbox, *pairs(grants["api"], grants["all"]))
    plain = unseal(context_key, sandbox.epoch, m["context"], GRANTS, ADMIND, SERVER)
    assert plain == [(SERVER_ID, SERVER), (GRANT, b"tcp api.example.org 443"), (GRANT, b"tcp * 0")]
    # as a call's context it opens nowhere
    with pytest.raises(Exception):
        unseal(context_key, sandbox.epoch, m["context"], TOOL, ADMIND, SERVER)
    m = regrant(admind, sandbox)
    assert unseal(context_key, sandbox.epoch, m["context"], GRANTS, ADMIND, SERVER) == [(SERVER_ID, SERVER)]


def test_grants_of_a_server_are_that_server_s(admind, sandbox, context_key, grants):
    refused(regrant(admind, sandbox, *pairs(grants["other"])), "FORBIDDEN")
    refused(regrant(admind, sandbox, *pairs(grants["api"]), server=OTHER), "FORBIDDEN")
    s, pre = grants["api"]
    refused(regrant(admind, sandbox, (GRANT_SEAL, s), (GRANT_PREIMAGE, grants["all"][1])), "NOT_APPROVED")
    refused(regrant(admind, sandbox, *pairs(grants["module"])), "FORBIDDEN")


@pytest.mark.parametrize("listener", [LOCAL, TUNNEL])
def test_gateways_change_no_grants(admind, sandbox, context_key, grants, listener):
    refused(regrant(admind, sandbox, *pairs(grants["api"]), listener=listener), "FORBIDDEN")


@pytest.mark.parametrize("fields", [
    (), ((SERVER_ID, b""),), ((SERVER_ID, b"S" * 15),), ((SERVER_ID, SERVER), (SERVER_ID, SERVER)),
    ((SERVER_ID, SERVER), (GRANT, b"tcp * 0")), ((SERVER_ID, SERVER), (5, b"print(1)")),
    ((SERVER_ID, SERVER), (8, 1000)), ((SERVER_ID, SERVER), (3, b"TOKEN"), (4, b"x")),
    ((SERVER_ID, SERVER), (1, b"mcpbox version 1\0")), ((SERVER_ID, SERVER), (36, 5)),
    ((SERVER_ID, SERVER), (GRANT_SEAL, b"x"))])
def test_a_change_of_grants_is_that_alone(admind, sandbox, context_key, fields):
    refused(seal(admind, sandbox.epoch, tlv(*fields), GRANTS, ADMIND, SERVER), "INVALID_REQUEST")


# --- who grants ---


def test_what_no_policy_grants(ctl, admind, sandbox):
    """Malformed hosts are not sealed at all, whoever approves them."""
    for host, port, proto in ((b"localhost", 80, b"tcp"), (b"169.254.169.254", 80, b"tcp"), (b"fe80::1", 80, b"tcp"),
                              (b"::ffff:127.0.0.1", 80, b"tcp"), (b"A.example.org", 80, b"tcp"), (b"**", 0, b"tcp"),
                              (b"*.org", 0, b"tcp"), (b"a.example.org", 65536, b"tcp"),
                              (b"a.example.org", 0, b"udp"), (b"a.example.org", 80, b"sctp")):
        request = os.urandom(16)
        pre = network(request, host, port, proto)
        admind.requests[request] = ("network", "pending", pre)
        refused(ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest()),
                "INVALID_PARAMS")
