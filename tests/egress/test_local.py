"""Addresses of the local network and of this machine: open by a grant of that
address and port alone; the suite's own listeners, its database and what the
setting `never` names: by no grant, on whichever local address."""
import errno
import os
import socket

import pytest

from harness.patience import patience
from harness.played import dns as d
from harness.played.egress import DGRAM, Canary, Egress

PUBLIC = "93.184.216.34"
LAN = ["192.168.1.5", "10.0.0.1", "172.16.0.1", "100.64.0.1", "fd12:3456::1", "127.0.0.1", "127.0.0.7", "::1"]
PORT = 8123
EGRESS_SETS = ["never=10.255.255.255,192.168.255.255:8123, 142.250.185.0/24 ,[2606:2800:220:1::2]:8123"]


def owned(ns, uid, address, port, kind=socket.SOCK_STREAM, v6only=None):
    """A listener of another user, as the tables of the kernel have it."""
    back = os.geteuid()
    os.seteuid(uid)
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        s = ns.new_socket(family, kind) if back == uid else _plain(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if v6only is not None:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen(16)
        s.settimeout(0)
        return s
    finally:
        os.seteuid(back)


def _plain(family, kind):
    # The test's thread is in the namespace (fixture inside).
    return socket.socket(family, kind)


def came(s):
    try:
        s.accept()[0].close()
        return True
    except BlockingIOError:
        return False


def reach(address, port):
    """From outside the boundary."""
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.settimeout(patience(2))
    s.connect((address, port))
    s.close()


@pytest.mark.parametrize("address", LAN)
def test_by_that_address_and_port_alone(egress, ns, dns, address):
    c, other = Canary(ns, address, PORT), Canary(ns, address, PORT + 1)
    c.prove()
    literal = f"tcp {address} {PORT}"
    net = egress.open(["*", address, literal], ["*", literal])
    error, s = egress.connect(net, address, PORT)
    assert error == 0 and c.reached() == 1
    s.close()
    assert egress.connect(net, address, PORT + 1)[0] == errno.EACCES
    assert egress.connect(net, address, PORT, DGRAM)[0] == errno.EACCES
    egress.finish(net)
    # Neither a grant without the port, nor of any host, nor a declaration only.
    for declared, granted in (([address, "*"], [address, "*"]), (["*", f"tcp * {PORT}"], [f"tcp * {PORT}"]),
                              ([literal], []), ([], [literal]), (["*"], [literal]),
                              ([literal], [f"tcp {address} {PORT + 1}"]), ([literal], [f"udp {address} {PORT}"])):
        net = egress.open(declared, granted)
        assert egress.connect(net, address, PORT)[0] == errno.EACCES, (declared, granted)
        egress.finish(net)
    # A name that resolves to it needs the literal besides.
    dns.zone["lan.example"] = d.Answer(**{"aaaa" if ":" in address else "a": [address]})
    name = f"tcp lan.example {PORT}"
    net = egress.open([name])
    assert egress.by_name(net, "lan.example", PORT)[0] == errno.EACCES
    assert "needs a grant of this address" in egress.event(net)["text"]
    egress.finish(net)
    net = egress.open([name, literal])
    error, s = egress.by_name(net, "lan.example", PORT)
    assert error == 0
    s.close()
    egress.finish(net)
    assert c.reached() == 1 and other.reached() == 0
    c.close()
    other.close()


def test_a_mapped_form_of_a_granted_address(egress, ns):
    c = Canary(ns, "192.168.1.5", PORT)
    net = egress.open([f"tcp 192.168.1.5 {PORT}"])
    error, s = egress.connect(net, "::ffff:192.168.1.5", PORT)
    assert error == 0 and c.reached() == 1
    for other in ("64:ff9b::c0a8:105", "2002:c0a8:105::1", "::c0a8:105"):
        assert egress.connect(net, other, PORT)[0] == errno.EACCES
    egress.finish(net)
    c.close()


BOUND = [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("0.0.0.0", "127.9.9.9"),
         ("0.0.0.0", "192.168.1.5"), ("0.0.0.0", PUBLIC), ("192.168.1.5", "192.168.1.5"), (PUBLIC, PUBLIC),
         ("::", "127.0.0.1"), ("::", "::1"), ("::", "fd12:3456::1"), ("::", PUBLIC), ("::1", "::1"),
         ("::", "2606:2800:220:1::1"), ("2606:2800:220:1::1", "2606:2800:220:1::1"),
         ("::ffff:127.0.0.1", "127.0.0.1"), ("::ffff:0.0.0.0", "192.168.1.5")]


@pytest.mark.parametrize("bound,address", BOUND)
@pytest.mark.parametrize("whose", ["suite", "egress"])
def test_own_listeners_never(inside, egress, dns, bound, address, whose):
    uid = egress.base + 1 if whose == "suite" else egress.uid
    s = owned(inside, uid, bound, 9009, v6only=0 if ":" in bound else None)
    reach(address, 9009)
    assert came(s), "not reachable at all"
    literal = f"tcp {address} 9009"
    dns.zone["own.example"] = d.Answer(**{"aaaa" if ":" in address else "a": [address]})
    net = egress.open([literal, "tcp * 9009", "tcp own.example 9009"])
    for nonblocking in (False, True):
        assert egress.connect(net, address, 9009, nonblocking=nonblocking)[0] == errno.EACCES
        assert egress.by_name(net, "own.example", 9009, nonblocking=nonblocking)[0] == errno.EACCES
    report = egress.finish(net)
    assert all("listener of mcpbox itself" in r["reason"] for r in report["rows"])
    assert not came(s)
    s.close()
    # The same of somebody else is a matter of grants.
    s = owned(inside, egress.base + 12, bound, 9009, v6only=0 if ":" in bound else None)
    net = egress.open([literal])
    assert egress.connect(net, address, 9009)[0] == 0
    assert came(s)
    egress.finish(net)
    s.close()


def test_another_address_s_listener_is_no_reason(inside, egress):
    """Ours on 127.0.0.1, somebody else's on 127.0.0.2, same port."""
    mine = owned(inside, egress.base + 1, "127.0.0.1", 9010)
    other = owned(inside, egress.base + 12, "127.0.0.2", 9010)
    net = egress.open(["tcp 127.0.0.1 9010", "tcp 127.0.0.2 9010"])
    assert egress.connect(net, "127.0.0.2", 9010)[0] == 0 and came(other)
    assert egress.connect(net, "127.0.0.1", 9010)[0] == errno.EACCES and not came(mine)
    egress.finish(net)
    mine.close()
    other.close()


def test_own_udp_sockets_never(inside, egress):
    s = owned(inside, egress.base + 1, "127.0.0.1", 9011, socket.SOCK_DGRAM)
    net = egress.open(["udp 127.0.0.1 9011"])
    assert egress.connect(net, "127.0.0.1", 9011, DGRAM)[0] == errno.EACCES
    egress.finish(net)
    s.close()
    # One call does not reach another's relay.
    there = Canary(inside, PUBLIC, 9012, DGRAM)
    net = egress.open([f"udp {PUBLIC} 9012"])
    error, pair = egress.connect(net, PUBLIC, 9012, DGRAM)
    assert error == 0
    pair.send(b"x")
    there.socket.settimeout(patience(5))
    relay = there.socket.recvfrom(10)[1]
    thief = egress.open([f"udp {relay[0]} {relay[1]}"])
    error, s = egress.connect(thief, relay[0], relay[1], DGRAM)
    if error == 0:  # it is connected to its peer, and takes from it alone
        s.send(b"forged")
        pair.settimeout(0.2)
        with pytest.raises(TimeoutError):
            pair.recv(10)
    egress.finish(thief)
    egress.finish(net)
    there.close()


@pytest.mark.parametrize("address,port,closed", [
    ("10.255.255.255", PORT, True), ("192.168.255.255", PORT, True), ("192.168.255.255", 8124, False),
    ("142.250.185.14", PORT, True), ("2606:2800:220:1::2", PORT, True), ("2606:2800:220:1::2", 8124, False)])
def test_the_setting_never(egress, ns, dns, address, port, closed):
    c = Canary(ns, address, port)
    c.prove()
    dns.zone["never.example"] = d.Answer(**{"aaaa" if ":" in address else "a": [address]})
    net = egress.open([f"tcp {address} {port}", f"tcp never.example {port}"])
    expected = errno.EACCES if closed else 0
    assert egress.connect(net, address, port)[0] == expected
    assert egress.by_name(net, "never.example", port)[0] == expected
    report = egress.finish(net)
    if closed:
        assert all("`never`" in r["reason"] for r in report["rows"])
    assert c.reached() == (0 if closed else 2)
    c.close()


def test_never_holds_behind_nat64(egress):
    net = egress.open([f"tcp * {PORT}"])
    assert egress.connect(net, "64:ff9b::8efa:b90e", PORT)[0] == errno.EACCES
    assert "`never`" in egress.event(net)["text"]
    egress.finish(net)


@pytest.mark.parametrize("line", ["never=nonsense", "never=10.0.0.1/33", "never=10.0.0.1:0", "never=[::1",
                                  "never=10.0.0.1:70000", "never=,", "own_users=" + "x" * 80,
                                  "dns_servers=not an address"])
def test_settings_that_are_wrong_stop_the_start(ns, line):
    e = Egress(ns, [line], start=False)
    try:
        with pytest.raises((AssertionError, OSError)):
            e.start()
        assert e.process.wait(patience(10)) != 0
    finally:
        e.close()
