"""Server-side request forgery: every way to spell or to reach an address that is
not public, as an address and as what a name server says, and the W- cases of
the systems before. The call may go anywhere public ("*", all ports): only the
address policy stands between it and the canaries, which are reachable from
outside first, on the very addresses wherever a host can have them.
"""
import errno
import socket
import threading

import pytest

from harness.patience import patience
from harness.played import dns as d
from harness.played.egress import DGRAM, Canary

PUBLIC, PUBLIC6 = "93.184.216.34", "2606:2800:220:1::1"
# Where there are canaries: addresses that a machine can have.
HELD = ["127.0.0.1", "127.0.0.2", "127.255.255.254", "10.0.0.1", "10.255.255.255", "172.16.0.1",
        "172.31.255.255", "192.168.0.1", "192.168.255.255", "100.64.0.1", "100.127.255.254",
        "100.100.100.200", "169.254.0.1", "169.254.169.254", "169.254.170.2", "192.0.0.8",
        "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
        "203.0.113.1", "168.63.129.16",
        "::1", "fc00::1", "fd12:3456::1", "fdff:ffff::1", "fec0::1", "2001:db8::1",
        "2001:db8:ffff::1", "3fff::1", "3fff:fff::1", "3ffe::1", "2001::1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:2::1", "2001:10::1", "2001:20::1",
        "2002:7f00:1::1", "2002:a00:1::1", "2002:c0a8:1::1", "2002:a9fe:a9fe::1",
        "2002:5db8:d822::1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b::c0a8:1", "64:ff9b:1::7f00:1", "64:ff9b:1:7f00:0:100::", "64:ff9b:1:a00:0:100::",
        "64:ff9b:1::5db8:d822", "64:ff9b:1:fffe::7f00:1", "100::1", "5f00::1", "4000::1", "8000::1",
        "::7f00:1", "::a00:1", "::5db8:d822", "::ffff:0:7f00:1", "::ffff:0:5db8:d822",
        "2606:2800:220:1:0:5efe:7f00:1", "2606:2800:220:1:200:5efe:a00:1",
        "fd00:ec2::254", "fd20:ce::254", "fd00::5efe:808:808"]
# And those that only a policy can be asked about: no host listens there.
OTHER = ["0.0.0.0", "0.1.2.3", "0.255.255.255", "224.0.0.1", "239.255.255.255", "232.1.1.1",
         "240.0.0.1", "250.1.2.3", "255.255.255.254", "255.255.255.255", "::", "ff02::1", "ff0e::1",
         "ff05::2", "fe80::1", "fe80::a9fe:a9fe", "febf::1", "fe80::5efe:7f00:1"]
MAPPED = ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:192.168.0.1",
          "::ffff:0.0.0.0", "::ffff:224.0.0.1", "::ffff:100.64.0.1", "::ffff:172.16.0.1"]
PORT = 8088
ADDRESSES = [a for a in HELD if not a.startswith("127.") and a != "::1"]


def test_there_are_more_than_eighty():
    assert len(set(HELD + OTHER + MAPPED)) >= 80


@pytest.fixture(scope="module")
def canaries(ns):
    """Proven: a connect from outside reaches each, and is counted."""
    found = {a: Canary(ns, a, PORT) for a in HELD}
    for c in found.values():
        c.prove()
    yield found
    for c in found.values():
        c.close()


@pytest.fixture(scope="module")
def good(ns):
    found = [Canary(ns, a, PORT) for a in (PUBLIC, PUBLIC6)]
    for c in found:
        c.prove()
    yield found
    for c in found:
        c.close()


@pytest.fixture
def net(egress, canaries, good):
    n = egress.open([f"tcp * {PORT}", f"udp * {PORT}"], connections=10000)
    yield n
    egress.finish(n)
    assert {a: n for a, c in canaries.items() if (n := c.reached())} == {}
    for c in good:
        c.reached()


@pytest.mark.parametrize("address", HELD + OTHER + MAPPED)
def test_an_address(egress, net, address):
    for kind in (socket.SOCK_STREAM, DGRAM):
        for nonblocking in (False, True):
            error, s = egress.connect(net, address, PORT, kind, nonblocking)
            assert error == errno.EACCES and s is None, address
    if ":" not in address:  # by an IPv6 socket, too
        assert egress.connect(net, "::ffff:" + address, PORT)[0] == errno.EACCES
    else:                   # with a zone
        assert egress.connect(net, address, PORT, scope=1)[0] == errno.EACCES


@pytest.mark.parametrize("address", HELD + OTHER + MAPPED)
def test_a_name_of_it(egress, net, dns, address):
    """The name server says it, alone, and beside public addresses."""
    v4 = ":" not in address
    name = "n" + address.replace(":", "-").replace(".", "-") + "x.example"
    mine = {"a" if v4 else "aaaa": [address]}
    dns.zone["only." + name] = d.Answer(**mine)
    dns.zone["mixed." + name] = d.Answer(a=[PUBLIC] + mine.get("a", []), aaaa=mine.get("aaaa", []))
    dns.zone["mixed6." + name] = d.Answer(a=mine.get("a", []), aaaa=[PUBLIC6] + mine.get("aaaa", []))
    for kind in ("only.", "mixed.", "mixed6."):
        error, s = egress.by_name(net, kind + name, PORT)
        assert error == errno.EACCES and s is None, (kind, address)


def test_public_ones_are_reached(egress, net, dns, good):
    dns.zone["good.example"] = d.Answer(a=[PUBLIC])
    dns.zone["good6.example"] = d.Answer(aaaa=[PUBLIC6])
    dns.zone["both.example"] = d.Answer(a=[PUBLIC], aaaa=[PUBLIC6])
    for address in (PUBLIC, PUBLIC6, "::ffff:" + PUBLIC):
        assert egress.connect(net, address, PORT)[0] == 0
    for name in ("good", "good6", "both"):
        assert egress.by_name(net, name + ".example", PORT)[0] == 0
    assert [c.reached() for c in good] == [4, 2]


def test_nat64_of_a_public_address_is_public(egress, ns):
    """64:ff9b::/96 leads to the IPv4 address inside, which is judged."""
    from harness.net import netns
    with ns.entered():
        netns.add_address("64:ff9b::5db8:d822")
    c = Canary(ns, "64:ff9b::5db8:d822", PORT)
    c.prove()
    n = egress.open([f"tcp * {PORT}"])
    assert egress.connect(n, "64:ff9b::5db8:d822", PORT)[0] == 0
    egress.finish(n)
    assert c.reached() == 1
    c.close()


# ---- W-: the fetch cases of the systems before, as far as they are addresses;
# ---- what is HTTP of them is in test_web_fetch.py

W_BLOCKED = {
    "W-01": ["127.0.0.1", "127.0.0.2"], "W-02": ["10.0.0.1", "10.255.255.255"],
    "W-03": ["172.16.0.1", "172.31.255.255"], "W-04": ["192.168.0.1", "192.168.255.255"],
    "W-05": ["169.254.0.1"], "W-11": ["127.0.0.1", "192.168.1.1"],
    "W-20": ["::ffff:127.0.0.1", "::ffff:169.254.169.254"], "W-21": ["::"],
    "W-22": ["64:ff9b::7f00:1"], "W-23": ["2002:7f00:1::"], "W-24": ["2001::", "2001:0:1::1"],
    "W-25": ["224.0.0.1", "239.1.1.1", "ff00::1", "ff02::fb"], "W-26": ["240.0.0.1", "255.255.255.255"],
    "W-27": ["198.18.0.1", "198.19.255.255", "192.88.99.1"], "W-28": ["fec0::1", "2001:db8::1"],
    "W-29": ["127.0.0.1"], "W-30": ["::ffff:7f00:1"],
}


@pytest.mark.parametrize("case", W_BLOCKED)
@pytest.mark.parametrize("port", [80, 443, PORT])
def test_w_blocked(egress, canaries, case, port):
    n = egress.open(["*", f"tcp * {port}"])
    for address in W_BLOCKED[case]:
        assert egress.connect(n, address, port)[0] == errno.EACCES, (case, address)
    report = egress.finish(n)
    assert report["refused"] == len(W_BLOCKED[case]) and report["connections"] == 0
    assert all(r["verdict"] == "refused" and r["reason"] for r in report["rows"])
    assert not any(c.reached() for c in canaries.values())


@pytest.mark.parametrize("case,address", [("W-03", "172.15.0.1"), ("W-06", "8.8.8.8"), ("W-06", "1.1.1.1"),
                                          ("W-06", "142.250.185.14")])
def test_w_allowed(egress, ns, case, address):
    c = Canary(ns, address, 80)
    n = egress.open(["*"])
    assert egress.connect(n, address, 80)[0] == 0, case
    egress.finish(n)
    assert c.reached() == 1
    c.close()


@pytest.mark.parametrize("case,name", [("W-07", "not-an-ip"), ("W-08", "localhost"),
                                       ("W-08", "a.localhost"), ("W-09", "no-such-host.example")])
def test_w_names(egress, canaries, case, name):
    n = egress.open(["*"])
    rcode, found = egress.resolve(n, name)
    if rcode == 0:
        assert egress.connect(n, found[0], 80)[0] == errno.EHOSTUNREACH, case
    else:
        assert case == "W-08" and rcode == d.NXDOMAIN
    egress.finish(n)


@pytest.mark.parametrize("name", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1",
                                  "127.0.0.1.nip.example", "localtest.example", "1.0.0.127.example"])
def test_names_that_are_spelled_as_addresses(egress, canaries, dns, name):
    """Some resolvers take such a name for an address: it does not exist."""
    dns.zone[name] = d.Answer(a=["127.0.0.1"])
    n = egress.open([f"tcp * {PORT}"])
    rcode, found = egress.resolve(n, name)
    if name.endswith(".example"):
        assert egress.connect(n, found[0], PORT)[0] == errno.EACCES
    else:
        assert rcode == d.NXDOMAIN and dns.asked(name) == 0
    egress.finish(n)
    assert canaries["127.0.0.1"].reached() == 0


def test_w31_rebinding(egress, net, dns, canaries, good):
    """Public at the first look, the canary at the next, and back: what is
    judged is what is connected to, whichever it was."""
    dns.zone["rebind.example"] = [d.Answer(a=[PUBLIC]), d.Answer(a=["127.0.0.1"])] * 20
    results = [egress.by_name(net, "rebind.example", PORT)[0] for _ in range(20)]
    assert results == [0, errno.EACCES] * 10
    assert good[0].reached() == 10


def test_rebinding_while_it_is_connecting(egress, net, dns, canaries):
    """The zone changes as fast as it can beside the connects."""
    stop = threading.Event()

    def flip():
        while not stop.is_set():
            dns.zone["fast.example"] = d.Answer(a=["127.0.0.1"])
            dns.zone["fast.example"] = d.Answer(a=[PUBLIC])
            dns.zone["fast.example"] = d.Answer(a=[PUBLIC, "10.0.0.1"])
    t = threading.Thread(target=flip)
    t.start()
    try:
        got = {egress.by_name(net, "fast.example", PORT)[0] for _ in range(100)}
    finally:
        stop.set()
        t.join()
    assert got <= {0, errno.EACCES} and len(got) == 2


def test_rebinding_between_families(egress, net, dns, canaries):
    dns.zone["fam.example"] = [d.Answer(a=[PUBLIC], aaaa=["::1"]), d.Answer(a=["127.0.0.1"], aaaa=[PUBLIC6])]
    assert egress.by_name(net, "fam.example", PORT)[0] == errno.EACCES
    assert egress.by_name(net, "fam.example", PORT)[0] == errno.EACCES


def test_w36_mixed_answers_wherever_the_private_one_stands(egress, net, dns, canaries):
    for i in range(8):
        many = [PUBLIC] * 7
        many.insert(i, "10.0.0.1")
        dns.zone[f"mixed{i}.example"] = d.Answer(a=many)
        assert egress.by_name(net, f"mixed{i}.example", PORT)[0] == errno.EACCES


def test_cname_chains(egress, net, dns, canaries, good):
    chain = [f"c{i}.elsewhere.example" for i in range(6)]
    dns.zone["chain.example"] = d.Answer(cname=chain, a=["127.0.0.1"])
    dns.zone["fair.example"] = d.Answer(cname=chain, a=[PUBLIC])
    dns.zone["loop.example"] = d.Answer(cname=["loop.example"])
    dns.zone["lie.example"] = d.Answer(owner="other.example", a=["127.0.0.1"])
    dns.zone["self.example"] = d.Answer(cname=["localhost"], a=["127.0.0.1"])
    assert egress.by_name(net, "chain.example", PORT)[0] == errno.EACCES
    assert egress.by_name(net, "fair.example", PORT)[0] == 0
    assert egress.by_name(net, "loop.example", PORT)[0] == errno.EHOSTUNREACH
    assert egress.by_name(net, "lie.example", PORT)[0] in (errno.EACCES, errno.EHOSTUNREACH)
    assert egress.by_name(net, "self.example", PORT)[0] == errno.EACCES
    assert good[0].reached() == 1


def test_truncated_delayed_and_broken_answers(egress, net, dns, canaries, good):
    dns.zone["tc.example"] = d.Answer(a=[PUBLIC], truncate=True)
    dns.zone["tcbad.example"] = d.Answer(a=["127.0.0.1"], truncate=True)
    dns.zone["late.example"] = d.Answer(a=[PUBLIC], delay=1)
    dns.zone["latebad.example"] = d.Answer(a=["10.0.0.1"], delay=1)
    assert egress.by_name(net, "tc.example", PORT)[0] == 0
    assert ("tc.example", "A", "tcp") in dns.queries
    assert egress.by_name(net, "tcbad.example", PORT)[0] == errno.EACCES
    assert egress.by_name(net, "late.example", PORT)[0] == 0
    assert egress.by_name(net, "latebad.example", PORT)[0] == errno.EACCES
    for i, raw in enumerate((b"", b"\x81", b"\xff" * 200, b"\x81\x80\0\1\xff\xff\0\0\0\0" + b"\xc0\x0c" * 50,
                             b"\x81\x80\0\0\0\0\0\0\0\0")):
        dns.zone[f"junk{i}.example"] = d.Answer(raw=raw)
    requests = []
    for i in range(5):
        address = egress.resolve(net, f"junk{i}.example")[1][0]
        requests.append(egress.start_connect(net, address, PORT))
    for _ in requests:
        _, fields = egress.peek.receive(patience(15))
        assert fields["_"] == "NET_FAILED" and fields["error"] in (errno.EHOSTUNREACH, errno.ETIMEDOUT)
    assert good[0].reached() == 2


def test_more_addresses_than_anybody_needs(egress, net, dns, canaries):
    dns.zone["crowd.example"] = d.Answer(a=[PUBLIC] * 20 + [f"93.184.217.{i}" for i in range(20)],
                                         truncate=True)
    assert egress.by_name(net, "crowd.example", PORT)[0] == errno.EACCES


def test_a_dead_first_address_and_a_live_second(egress, net, dns, good):
    """93.184.216.99 is nobody's here: unreachable, then the next one."""
    dns.zone["two.example"] = d.Answer(a=["93.184.216.99", PUBLIC])
    dns.zone["six.example"] = d.Answer(a=["93.184.216.99"], aaaa=[PUBLIC6])
    assert egress.by_name(net, "two.example", PORT)[0] == 0
    assert egress.by_name(net, "two.example", PORT, nonblocking=True)[0] in (0, errno.EINPROGRESS)
    assert egress.by_name(net, "six.example", PORT)[0] == 0
