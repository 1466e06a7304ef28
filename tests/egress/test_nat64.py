"""A provider's NAT64 prefix, which the name server tells by ipv4only.arpa (RFC 7050):
what is under it is judged as the IPv4 address in it. Each module has an egress of its
own, whose first question this is."""
import errno

import pytest

from harness.patience import until
from harness.played import dns as d
from harness.played.egress import Canary, Egress

PORT = 8472
PREFIX = "2a01:4f8:64:64:64:64:"                 # /96 of a provider
PRIVATE, PUBLIC = PREFIX + "c0a8:105", PREFIX + "5db8:d822"
ADDRESSES = (PRIVATE, PUBLIC)                      # on lo they stand for the gateway
ARPA = "ipv4only.arpa"


@pytest.fixture
def own(ns, dns):
    """An egress that has asked nothing yet, and its gateway."""
    dns.zone.pop(ARPA, None)
    with dns.lock:
        dns.queries.clear()
        dns.turn.clear()
    canaries = {a: Canary(ns, a, PORT) for a in ADDRESSES}
    for c in canaries.values():
        c.prove()
    with Egress(ns) as e:
        e.canaries = canaries
        yield e
        assert e.process.poll() is None, e.log()
    for c in canaries.values():
        c.close()


def test_without_nat64_they_are_public(own, dns):
    """The control: what this file closes below is open, and is asked for once."""
    n = own.open([f"tcp * {PORT}"])
    for _ in range(3):
        assert own.connect(n, PRIVATE, PORT)[0] == 0 and own.connect(n, PUBLIC, PORT)[0] == 0
    own.finish(n)
    assert own.canaries[PRIVATE].reached() == 3
    assert dns.asked(ARPA, "AAAA") == 1


@pytest.mark.parametrize("how", ["address", "name"])
def test_the_address_inside_is_judged(own, dns, how):
    dns.zone[ARPA] = d.Answer(a=["192.0.0.170", "192.0.0.171"], aaaa=[PREFIX + "c000:aa", PREFIX + "c000:ab"])
    dns.zone["private.example"], dns.zone["public.example"] = d.Answer(aaaa=[PRIVATE]), d.Answer(aaaa=[PUBLIC])
    n = own.open([f"tcp * {PORT}", f"tcp {PRIVATE} {PORT}", f"tcp private.example {PORT}", f"tcp public.example {PORT}"])

    def go(kind):
        if how == "name":
            return own.by_name(n, kind + ".example", PORT)[0]
        return own.connect(n, {"private": PRIVATE, "public": PUBLIC}[kind], PORT)[0]

    assert go("private") == errno.EACCES
    assert go("public") == 0
    assert "private use" in own.event(n)["text"]
    own.finish(n)
    assert own.canaries[PRIVATE].reached() == 0 and own.canaries[PUBLIC].reached() == 1
    assert f"by {PREFIX.rstrip(':')}::/96" in own.log()


def test_it_waits_for_the_answer(own, dns):
    """The first connection of all is judged with the prefix, however late that is told."""
    dns.zone[ARPA] = d.Answer(aaaa=[PREFIX + "c000:aa"], delay=0.7)
    n = own.open([f"tcp * {PORT}"])
    assert own.connect(n, PRIVATE, PORT)[0] == errno.EACCES
    own.finish(n)


def test_a_net_that_ends_meanwhile(own, dns):
    """Who waited is gone when the answer comes."""
    dns.zone[ARPA] = d.Answer(aaaa=[PREFIX + "c000:aa"], delay=0.7)
    n = own.open([f"tcp * {PORT}"])
    own.start_connect(n, PRIVATE, PORT)
    until(lambda: dns.asked(ARPA, "AAAA") == 1)
    own.finish(n)
    n = own.open([f"tcp * {PORT}"])
    assert own.connect(n, PRIVATE, PORT)[0] == errno.EACCES
    own.finish(n)


def test_only_the_family_of_prefixes_is_asked_for(own, dns):
    """An answer of the other family would hide that this one was lost."""
    dns.zone[ARPA] = d.Answer(a=["192.0.0.170"], aaaa=[PREFIX + "c000:aa"])
    n = own.open([f"tcp * {PORT}"])
    assert own.connect(n, PRIVATE, PORT)[0] == errno.EACCES
    own.finish(n)
    assert dns.asked(ARPA, "AAAA") == 1 and dns.asked(ARPA) == 0


def test_a_name_server_that_fails_closes_nothing(own, dns):
    dns.zone[ARPA] = d.Answer(rcode=d.SERVFAIL)
    n = own.open([f"tcp * {PORT}"])
    assert own.connect(n, PUBLIC, PORT)[0] == 0
    own.finish(n)


def test_a_forged_prefix_opens_nothing(own, dns):
    """It may close; loopback and link-local stay what they are."""
    dns.zone[ARPA] = d.Answer(aaaa=["::c000:aa", "fe80::c000:aa", "64:ff9b::c000:aa"])
    n = own.open([f"tcp * {PORT}"])
    for a in ("::1", "fe80::5db8:d822", "64:ff9b::7f00:1", "::ffff:127.0.0.1"):
        assert own.connect(n, a, PORT)[0] == errno.EACCES
    own.finish(n)
