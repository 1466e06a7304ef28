"""Connections that are granted: by address and by name, blocking and not, over
both families, with what is told of them; and what one call can't do to others."""
import contextlib
import ctypes
import errno
import os
import select
import socket
import struct
import time

import pytest

from harness.patience import patience, until
from harness.played import dns as d
from harness.played.egress import DGRAM, STREAM, Canary, Egress, sockaddr

WEB, WEB6 = "93.184.216.34", "2606:2800:220:1::1"


@pytest.fixture(scope="module")
def web(ns):
    c = Canary(ns, WEB, 80)
    c.prove()
    yield c
    c.close()


@pytest.fixture(autouse=True)
def nobody_left(web):
    yield
    web.reached()


def accepted(canary):
    assert select.select([canary.socket], [], [], patience(5))[0], "nobody came"
    s = canary.socket.accept()[0]
    s.settimeout(patience(5))
    return s


def told_in_full(egress, web):
    """Connects, and asserts that it is told. False: the report came before the kernel's last figures
    (METER_FINISH_MS), and holds fewer bytes."""
    began = time.time()
    net = egress.open([WEB])
    error, s = egress.connect(net, WEB, 80)
    assert error == 0
    peer = accepted(web)
    s.sendall(b"x" * 1000)
    assert peer.recv(1000, socket.MSG_WAITALL) == b"x" * 1000
    peer.sendall(b"y" * 5000)
    assert s.recv(5000, socket.MSG_WAITALL) == b"y" * 5000
    # egress kept no copy: the end of ours is the peer's end of file.
    s.close()
    assert peer.recv(1) == b""
    peer.close()
    report = egress.finish(net)
    row, = report["rows"]
    assert report["connections"] == 1 and report["refused"] == 0
    assert (row["host"], row["address"], row["port"], row["protocol"], row["verdict"]) \
        == (WEB, WEB, 80, "tcp", "connected")
    # A FIN may count as a byte in the kernel's figures.
    assert row["bytes_in"] <= 5001 and row["bytes_out"] <= 1001
    assert report["bytes"] == row["bytes_in"] + row["bytes_out"]
    # It began and ended while this test ran; a second for the two clocks' steps.
    ended = 1000 * (time.time() + 1)
    assert 1000 * (began - 1) <= row["started_ms"] <= row["started_ms"] + row["duration_ms"] <= ended
    return row["bytes_in"] >= 5000 and row["bytes_out"] >= 1000


def test_a_granted_address_is_connected_and_told(egress, web):
    until(lambda: told_in_full(egress, web))


def test_ipv6_and_a_mapped_address(egress, ns, web):
    six = Canary(ns, WEB6, 443)
    six.prove()
    net = egress.open([f"tcp {WEB6} 443", WEB])
    error, s = egress.connect(net, WEB6, 443)
    assert error == 0 and s.family == socket.AF_INET6 and six.reached() == 1
    s.close()
    # ::ffff:a.b.c.d of an IPv6 socket is that IPv4 address.
    error, s = egress.connect(net, "::ffff:" + WEB, 80)
    assert error == 0 and s.getpeername()[0] == WEB and web.reached() == 1
    s.close()
    assert egress.finish(net)["connections"] == 2
    six.close()


def test_a_name_resolves_to_a_synthetic_address_and_is_looked_up_at_connect(egress, dns, web):
    dns.zone["site.example"] = d.Answer(a=[WEB])
    net = egress.open(["site.example"])
    rcode, found = egress.resolve(net, "Site.EXAMPLE")
    assert rcode == 0 and found[0].startswith("240.")
    assert dns.asked("site.example") == 0, "resolving in the runner asks nobody"
    assert egress.resolve(net, "site.example", 28) == (0, []), "no AAAA, but the name exists"
    error, s = egress.connect(net, found[0], 80)
    assert error == 0 and web.reached() == 1 and dns.asked("site.example") == 1
    s.close()
    row, = egress.finish(net)["rows"]
    assert row["host"] == "site.example" and row["address"] == WEB


def test_wildcards_any_host_case_and_final_dots(egress, dns, web):
    dns.zone["a.b.wild.example"] = d.Answer(a=[WEB])
    dns.zone["wild.example"] = d.Answer(a=[WEB])
    dns.zone["xn--bcher-kva.example"] = d.Answer(a=[WEB])
    net = egress.open(["*.wild.example", "xn--bcher-kva.example"])
    assert egress.by_name(net, "A.b.Wild.example")[0] == 0
    assert egress.by_name(net, "xn--bcher-kva.example")[0] == 0
    assert egress.resolve(net, "wild.example")[0] == d.NXDOMAIN, "*.x is not x"
    assert egress.resolve(net, "notwild.example")[0] == d.NXDOMAIN
    egress.finish(net)
    net = egress.open(["*"])
    assert egress.by_name(net, "wild.example")[0] == 0
    assert egress.connect(net, WEB, 80)[0] == 0
    assert egress.connect(net, WEB, 81)[0] == errno.EACCES, "no port means 80 and 443"
    egress.finish(net)
    assert web.reached() == 4


def test_ports_and_protocols_are_what_the_grant_says(egress, web, ns):
    other = Canary(ns, WEB, 8443)
    other.prove()
    net = egress.open([f"tcp {WEB} 8443"])
    assert egress.connect(net, WEB, 80)[0] == errno.EACCES
    assert egress.connect(net, WEB, 8443)[0] == 0
    assert egress.connect(net, WEB, 8443, DGRAM)[0] == errno.EACCES
    assert other.reached() == 1 and web.reached() == 0
    # A declaration without a port leaves it to the grant.
    net2 = egress.open([WEB], [f"tcp {WEB} 8443"])
    assert egress.connect(net2, WEB, 8443)[0] == 0
    assert egress.connect(net2, WEB, 80)[0] == errno.EACCES
    egress.finish(net)
    egress.finish(net2)
    assert other.reached() == 1
    other.close()


def test_both_lists_must_cover_it_and_it_is_said_which_does_not(egress, dns, web):
    dns.zone["both.example"] = d.Answer(a=[WEB])
    net = egress.open(["both.example"], [])
    assert egress.resolve(net, "both.example")[0] == d.NXDOMAIN
    event = egress.event(net)
    assert event["host"] == "both.example" and "not granted" in event["text"]
    egress.finish(net)
    net = egress.open([], ["both.example", WEB])
    assert egress.resolve(net, "both.example")[0] == d.NXDOMAIN
    text = egress.event(net)["text"]
    assert "not declared" in text and "mcpbox_update_tool" in text and "granted" not in text
    assert egress.connect(net, WEB, 80)[0] == errno.EACCES
    event = egress.event(net)
    assert (event["kind"], event["host"], event["port"]) == (1, WEB, 80)
    report = egress.finish(net)
    assert report["refused"] == 2 and report["connections"] == 0
    assert report["rows"][0]["verdict"] == "refused" and "not declared" in report["rows"][0]["reason"]
    assert web.reached() == 0


def test_a_grant_and_its_withdrawal_hold_for_the_next_connect(egress, web):
    net = egress.open([WEB], [])
    assert egress.connect(net, WEB, 80)[0] == errno.EACCES
    egress.grant(net, [WEB])
    error, s = egress.connect(net, WEB, 80)
    assert error == 0
    peer = accepted(web)
    egress.grant(net, [])
    assert egress.connect(net, WEB, 80)[0] == errno.EACCES
    s.sendall(b"still mine")
    assert peer.recv(100) == b"still mine"
    egress.finish(net)


def test_a_nonblocking_connect_is_under_way_at_once(egress, web):
    net = egress.open([WEB])
    error, s = egress.connect(net, WEB, 80, nonblocking=True)
    assert error in (0, errno.EINPROGRESS)
    s.setblocking(False)
    assert select.select([], [s], [], 5)[1]
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    accepted(web).close()
    s.close()
    # Nobody listens: the socket says so, as one of the runner's own would.
    error, s = egress.connect(net, WEB, 443, nonblocking=True)
    if error == errno.EINPROGRESS:
        assert select.select([], [s], [], 5)[1]
        assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    else:
        assert error == errno.ECONNREFUSED
    egress.finish(net)


def test_failures_have_their_errno(egress, dns):
    dns.zone["empty.example"] = d.Answer()
    dns.zone["broken.example"] = d.Answer(rcode=d.SERVFAIL)
    dns.zone["two.example"] = d.Answer(a=[WEB], aaaa=["2606:2800:220:1::99"])
    net = egress.open([WEB, "empty.example", "missing.example", "broken.example", "two.example"])
    assert egress.connect(net, WEB, 443)[0] == errno.ECONNREFUSED
    # Of two addresses the one that answered, not the one without a route.
    assert egress.by_name(net, "two.example", 443)[0] == errno.ECONNREFUSED
    assert egress.by_name(net, "empty.example")[0] == errno.EHOSTUNREACH
    assert egress.by_name(net, "missing.example")[0] == errno.EHOSTUNREACH
    assert egress.by_name(net, "broken.example")[0] == errno.EHOSTUNREACH
    report = egress.finish(net)
    assert [r["verdict"] for r in report["rows"]] == ["failed"] * 5
    assert {e["kind"] for e in report["events"]} == {2} and report["refused"] == 0


def test_foreign_address_bytes(egress, web):
    net = egress.open([WEB, WEB6])
    good = sockaddr(WEB, 80)
    for raw, family, error in (
            (b"", 2, errno.EINVAL), (b"\2", 2, errno.EINVAL), (good[:15], 2, errno.EINVAL),
            (struct.pack("=H", 0) + good[2:], 2, errno.EAFNOSUPPORT),
            (struct.pack("=H", 1) + b"\0abstract", 2, errno.EAFNOSUPPORT),
            (struct.pack("=H", 1) + b"/run/x", 1, errno.EAFNOSUPPORT),
            (struct.pack("=H", 16) + bytes(14), 16, errno.EAFNOSUPPORT),
            (good, 10, errno.EAFNOSUPPORT),
            (sockaddr(WEB6, 80), 2, errno.EAFNOSUPPORT),
            (sockaddr(WEB6, 80)[:23], 10, errno.EINVAL),
            (os.urandom(128), 2, None), (os.urandom(4096), 10, None)):
        got, s = egress.connect(net, WEB, 80, family=family, raw=raw)
        assert s is None and (got == error or error is None), (raw, got)
    assert egress.connect(net, WEB, 80, 3)[0] == errno.EPROTONOSUPPORT, "SOCK_RAW"
    assert egress.connect(net, WEB, 80, raw=good + bytes(112))[0] == 0, "a longer one is the same"
    egress.finish(net)
    assert web.reached() == 1


def test_an_unknown_or_closed_net_connects_nowhere(egress, web):
    assert egress.connect(4711, WEB, 80)[0] == errno.ENETUNREACH
    net = egress.open([WEB])
    egress.finish(net)
    assert egress.connect(net, WEB, 80)[0] == errno.ENETUNREACH
    assert egress.sandboxd.call("NET_CLOSE", net=net)["_"] == "REFUSED"
    net = egress.open([WEB])
    again = egress.sandboxd.call("NET_OPEN", net=net, execution=bytes(16), connections=1, bytes=1,
                                 bytes_minute=1, requires_len=0, hosts=b"")
    assert again["_"] == "REFUSED", "a net is opened once"
    egress.finish(net)
    assert web.reached() == 0


@pytest.mark.parametrize("hosts", [b"tcp a.example 0", b"tcp a.example 00\n", b"sctp a.example 80\n",
                                   b"tcp A.example 80\n", b"tcp  a.example 80\n", b"\n",
                                   b"tcp a.example 65536\n", b"tcp a.example 80 \n"])
def test_lists_that_are_not_in_their_form(egress, hosts):
    answer = egress.sandboxd.call("NET_OPEN", net=1 << 40, execution=bytes(16), connections=1, bytes=1,
                                  bytes_minute=1, requires_len=len(hosts), hosts=hosts)
    assert answer["_"] == "REFUSED"


def test_grants_that_cannot_be_read_close_the_net(egress, web):
    net = egress.open([WEB])
    egress.sandboxd.send("NET_GRANTS", net=net, grants=b"rubbish\n")
    egress.sandboxd.call("NET_CLOSE", net=1 << 60)
    assert egress.connect(net, WEB, 80)[0] == errno.ENETUNREACH
    egress.finish(net)


def test_the_number_of_connections_is_a_limit(egress, web):
    net = egress.open([WEB], connections=3)
    assert [egress.connect(net, WEB, 80)[0] for _ in range(5)] == [0, 0, 0, errno.EACCES, errno.EACCES]
    report = egress.finish(net)
    assert report["connections"] == 3 and report["refused"] == 2
    assert any("3 connections" in r["reason"] for r in report["rows"])
    assert web.reached() == 3


def transfer(egress, net, web, size):
    error, s = egress.connect(net, WEB, 80)
    assert error == 0
    peer = accepted(web)
    peer.sendall(b"z" * size)
    peer.close()
    got = 0
    while chunk := s.recv(65536):
        got += len(chunk)
    s.close()
    return got


def told_past_the_limit(egress, web):
    """Moves 250,000 bytes where 200,000 may be. False as in told_in_full()."""
    net = egress.open([WEB], size=200_000)
    assert transfer(egress, net, web, 150_000) == 150_000
    time.sleep(0.3)
    assert not [e for e in egress.events if e["net"] == net]
    transfer(egress, net, web, 100_000)
    assert egress.event(net)["kind"] == 3
    assert egress.connect(net, WEB, 80)[0] == errno.ENETUNREACH, "nothing connects any more"
    report = egress.finish(net)
    assert 200_000 <= report["bytes"] <= 250_004
    return report["bytes"] >= 250_000


def test_bytes_are_a_limit(egress, web):
    until(lambda: told_past_the_limit(egress, web))


def test_bytes_a_minute_are_a_limit(egress, web):
    net = egress.open([WEB], minute=50_000)
    transfer(egress, net, web, 60_000)
    event = egress.event(net)
    assert event["kind"] == 4 and "minute" in event["text"]
    egress.finish(net)


def test_many_connections_at_once_and_the_report_is_bounded(egress, ns):
    many = Canary(ns, WEB, 8080)
    net = egress.open([f"tcp {WEB} 8080"], connections=2000)
    requests = [egress.start_connect(net, WEB, 8080, nonblocking=True) for _ in range(300)]
    got = {}
    while len(got) < len(requests):
        request, fields = egress.peek.receive()
        got[request] = fields
        many.reached()
    assert all(f["_"] == "NET_CONNECTED" for f in got.values())
    for f in got.values():
        f["fd"].close()
    report = egress.finish(net)
    assert report["connections"] == 300 and 20 <= len(report["rows"]) <= 80
    assert len(report["json"]) <= 16384
    many.close()


def answered_first(e, request):
    """The answer to this question, before which no other came."""
    got, fields = e.peek.receive()
    assert (got, fields["_"]) == (request, "NET_CONNECTED"), (got, request, fields)
    fields["fd"].close()


def test_a_call_that_waits_does_not_hold_up_others(ns, dns, web):
    """Hundreds of look-ups that nobody answers, then a connect of another call,
    which is answered while all of them wait."""
    dns.zone["*.slow.example"] = d.Answer(drop=True)
    with Egress(ns, ["connect_timeout=120s"]) as e:
        slow, quick = e.open(["*.slow.example"], connections=1000), e.open([WEB])
        addresses = [e.resolve(slow, f"h{i}.slow.example")[1][0] for i in range(150)]
        for a in addresses:
            e.start_connect(slow, a, 80)
        answered_first(e, e.start_connect(quick, WEB, 80))
        # The end of the call answers all that wait.
        e.finish(slow)
        for _ in addresses:
            _, fields = e.peek.receive()
            assert (fields["_"], fields["error"]) == ("NET_FAILED", errno.ENETUNREACH)
        e.finish(quick)


def test_the_deadline(ns, dns, web):
    """A name that nobody answers ends by it; one that is answered late, but within it,
    is connected to."""
    dns.zone["silent.example"] = d.Answer(drop=True)
    dns.zone["late.example"] = d.Answer(a=[WEB], delay=0.5)
    with Egress(ns, ["connect_timeout=1500ms"]) as e:
        net = e.open(["silent.example"])
        began = time.monotonic()
        assert e.by_name(net, "silent.example")[0] == errno.ETIMEDOUT
        assert time.monotonic() - began > 1.4
        row, = e.finish(net)["rows"]
        assert row["verdict"] == "failed" and row["duration_ms"] >= 1400
    with Egress(ns, ["connect_timeout=120s"]) as e:
        net = e.open(["late.example"])
        assert e.by_name(net, "late.example")[0] == 0
        assert [r["verdict"] for r in e.finish(net)["rows"]] == ["connected"]


@pytest.fixture
def silent(ns):
    """An address whose queue of connections is full: a SYN gets no answer."""
    s = ns.new_socket(socket.AF_INET)
    s.bind(("93.184.216.35", 8090))
    s.listen(0)
    fill = []
    for _ in range(4):
        c = ns.new_socket(socket.AF_INET)
        c.setblocking(False)
        c.connect_ex(("93.184.216.35", 8090))
        fill.append(c)
    time.sleep(0.1)
    yield "93.184.216.35"
    for c in [*fill, s]:
        c.close()


def test_a_silent_address(ns, dns, inside, silent):
    """A blocking connect goes to the next address beside it, and waits for one
    alone; a non-blocking one is under way with the first. Both addresses share the
    deadline: who waited for the first to end would have no time left."""
    with Egress(ns, ["connect_timeout=120s"]) as e:
        silent_address(e, dns, ns, silent)


def silent_address(egress, dns, ns, silent):
    there = Canary(ns, WEB, 8090)
    dns.zone["happy.example"] = d.Answer(a=[silent, WEB])
    net = egress.open(["tcp happy.example 8090", f"tcp {silent} 8090"])
    began = time.monotonic()
    error, s = egress.by_name(net, "happy.example", 8090)
    assert error == 0 and s.getpeername()[0] == WEB and time.monotonic() - began > 0.2
    s.close()
    assert there.reached() == 1
    error, s = egress.connect(net, silent, 8090, nonblocking=True)
    assert error == errno.EINPROGRESS
    assert not select.select([], [s], [], 0.3)[1]
    report = egress.finish(net)
    assert [r["verdict"] for r in report["rows"]] == ["connected", "connecting"]
    s.close()
    there.close()


def test_the_deadline_of_a_silent_address(ns, dns, web, silent):
    with Egress(ns, ["connect_timeout=120s"]) as e:
        net, other = e.open([f"tcp {silent} 8090"], connections=1000), e.open([WEB])
        requests = [e.start_connect(net, silent, 8090) for _ in range(150)]
        answered_first(e, e.start_connect(other, WEB, 80))
        e.finish(net)
        for _ in requests:
            assert e.peek.receive()[1]["error"] == errno.ENETUNREACH
    with Egress(ns, ["connect_timeout=700ms"]) as e:
        net = e.open([f"tcp {silent} 8090"], connections=1000)
        other = e.open([f"tcp {silent} 8090"])
        began = time.monotonic()
        # More than may run at once, of one call: each has its own deadline from when
        # it was asked, or those that had to wait would end after another call's one
        # that is asked last and runs at once.
        requests = {e.start_connect(net, silent, 8090) for _ in range(150)}

        def next_one():
            got, fields = e.peek.receive()
            if got in requests:
                requests.remove(got)
                assert (fields["_"], fields["error"]) == ("NET_FAILED", errno.ETIMEDOUT)
            return got, fields
        mark = e.start_connect(net, "127.0.0.1", 53)    # answered once it has read those
        while (got := next_one())[0] != mark:
            pass
        got[1]["fd"].close()
        time.sleep(0.05)
        last = e.start_connect(other, silent, 8090)
        while (got := next_one())[0] != last:
            pass
        assert got[1]["error"] == errno.ETIMEDOUT and not requests, len(requests)
        assert time.monotonic() - began > 0.6
        assert e.finish(net)["connections"] == 150


def test_killed_and_started_again(ns, dns, web):
    """What was connected stays with the runner; what is opened again goes on."""
    with Egress(ns) as e:
        net = e.open([WEB])
        error, s = e.connect(net, WEB, 80)
        assert error == 0
        peer = accepted(web)
        e.process.kill()
        e.process.wait()
        s.sendall(b"on")
        assert peer.recv(2) == b"on"
        e.start()
        assert e.connect(net, WEB, 80)[0] == errno.ENETUNREACH
        net = e.open([WEB])
        assert e.connect(net, WEB, 80)[0] == 0
        e.finish(net)


def test_a_slow_peek_loses_nothing(egress, ns):
    """Hundreds of sockets that it does not fetch: they wait."""
    many = Canary(ns, WEB, 8081)
    net = egress.open([f"tcp {WEB} 8081"], connections=2000)
    for _ in range(600):
        egress.start_connect(net, WEB, 8081, nonblocking=True)
    time.sleep(0.5)
    for _ in range(600):
        _, fields = egress.peek.receive()
        assert fields["_"] == "NET_CONNECTED"
        fields["fd"].close()
        many.reached()
    assert egress.finish(net)["connections"] == 600
    many.close()


def test_name_servers_by_port_and_ipv6(ns, web):
    with d.Server("2606:2800:220:1::2", 5300, ns=ns) as s, \
            Egress(ns, ["dns_servers=[2606:2800:220:1::2]:5300"]) as e:
        s.zone["six.example"] = d.Answer(a=[WEB])
        net = e.open(["six.example"])
        assert e.by_name(net, "six.example")[0] == 0 and s.asked("six.example") == 1
        e.finish(net)


def test_without_a_name_server_names_fail_and_addresses_do_not(ns, web):
    """As before /etc/resolv.conf is there: c-ares then asks this machine."""
    with Egress(ns, ["dns_servers=127.0.0.1:5399"]) as e:
        net = e.open(["site.example", WEB])
        assert e.by_name(net, "site.example")[0] == errno.EHOSTUNREACH
        assert e.connect(net, WEB, 80)[0] == 0
        assert "no name server answered for site.example" in str(e.events) + str(e.finish(net))


def test_a_second_name_server_when_the_first_is_silent(ns, dns, web):
    dns.zone["second.example"] = d.Answer(a=[WEB])
    with d.Server("93.184.216.35", 5301, ns=ns) as s, \
            Egress(ns, ["dns_servers=93.184.216.35:5301,93.184.216.35"]) as e:
        s.zone["second.example"] = d.Answer(drop=True)
        net = e.open(["second.example"])
        assert e.by_name(net, "second.example")[0] == 0
        assert s.asked("second.example") >= 1
        e.finish(net)


def test_udp_is_relayed(egress, ns):
    echo = Canary(ns, WEB, 5353, DGRAM)
    echo.prove()
    echo.socket.settimeout(patience(5))
    net = egress.open([f"udp {WEB} 5353"])
    error, s = egress.connect(net, WEB, 5353, DGRAM)
    assert error == 0 and s.family == socket.AF_UNIX, "never a socket of the host's network"
    for size in (1, 1400, 9000):
        s.send(b"q" * size)
        data, peer = echo.socket.recvfrom(65536)
        assert data == b"q" * size
        echo.socket.sendto(b"a" * (size + 1), peer)
        assert s.recv(65536) == b"a" * (size + 1)
    # Another sender's datagrams do not arrive.
    with ns.new_socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind((WEB, 0))
        stranger.sendto(b"forged", peer)
    s.settimeout(0.3)
    with pytest.raises(TimeoutError):
        s.recv(100)
    # An address given to it is not gone to.
    other = Canary(ns, WEB, 5354, DGRAM)
    s.settimeout(patience(5))
    raw = sockaddr(WEB, 5354)
    assert ctypes.CDLL(None).sendto(s.fileno(), b"x", 1, 0, raw, len(raw)) in (1, -1)
    time.sleep(0.1)
    assert other.reached() == 0
    other.close()
    s.close()
    row, = egress.finish(net)["rows"]
    assert (row["protocol"], row["bytes_out"], row["bytes_in"]) == ("udp", 10402, 10404)
    echo.close()


def test_udp_to_the_host_s_abstract_sockets_does_not_work(egress, ns):
    """The pair is of the host's network namespace, where abstract names live."""
    with ns.new_socket(socket.AF_UNIX, socket.SOCK_DGRAM) as canary:
        name = "\0mcpbox-test-" + os.urandom(8).hex()
        canary.bind(name)
        with ns.new_socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
            outside.sendto(b"reachable", name)
        assert canary.recv(100) == b"reachable"
        canary.settimeout(0.3)
        target = Canary(ns, WEB, 5355, DGRAM)
        net = egress.open([f"udp {WEB} 5355"])
        for s in (egress.connect(net, WEB, 5355, DGRAM)[1], egress.resolver(net, DGRAM),
                  egress.resolver(net, STREAM)):
            try:
                s.sendto(b"reached", name)
            except OSError:
                pass
            s.close()
        with pytest.raises(TimeoutError):
            canary.recv(100)
        egress.finish(net)
        target.close()


def test_the_resolver_serves_streams_and_datagrams(egress):
    net = egress.open(["r.example", "s.example"])
    with egress.resolver(net, DGRAM) as s:
        s.send(d.question("r.example"))
        first = d.read_answer(s.recv(4096))
        s.send(d.question("s.example", ident=7))
        second = d.read_answer(s.recv(4096))
        assert first[1] == second[1] == 0 and first[2] != second[2]
    with egress.resolver(net) as s:
        # Two in one write, as glibc asks for A and AAAA; then bytewise.
        both = b"".join(struct.pack(">H", len(q)) + q
                        for q in (d.question("r.example"), d.question("r.example", 28, 2)))
        s.sendall(both)
        for n, want in ((0x1234, first[2]), (2, [])):
            size, = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))
            assert d.read_answer(s.recv(size, socket.MSG_WAITALL)) == (n, 0, want)
        for i in range(len(both)):
            s.sendall(both[i:i + 1])
        for _ in range(2):
            size, = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))
            s.recv(size, socket.MSG_WAITALL)
    for kind, expected in ((15, 0), (16, 0), (33, 0), (65, 0), (255, 0), (12, 0)):
        assert egress.resolve(net, "r.example", kind) == (expected, [])
    assert egress.resolve(net, "localhost")[0] == d.NXDOMAIN
    assert egress.resolve(net, "34.216.184.93.in-addr.arpa", 12)[0] == d.NXDOMAIN
    report = egress.finish(net)
    assert report["connections"] == 0 and report["refused"] == 0 and report["rows"] == []


def test_the_resolver_survives_what_it_is_sent(egress):
    net = egress.open(["r.example"])
    good = d.question("r.example")
    for bad in (b"", b"\0", good[:11], good[:20], good + b"x" * 600, b"\xff" * 64,
                good[:12] + b"\xc0\x0c" + good[-4:], good[:12] + b"\x3f" + b"a" * 20,
                good[:2] + b"\x80\0" + good[4:], good[:4] + b"\0\2" + good[6:],
                good[:12] + b"\x05\xffabcd\0" + good[-4:], os.urandom(200)):
        s = egress.resolver(net)
        s.sendall(struct.pack(">H", len(bad)) + bad)
        s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while s.recv(4096):
                pass
        s.close()
    # One that does not read is not answered without end.
    with egress.resolver(net) as s:
        s.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(100000):
                s.sendall((struct.pack(">H", len(good)) + good) * 100)
    assert egress.resolve(net, "r.example")[0] == 0
    egress.finish(net)


def test_names_are_bounded(egress):
    net = egress.open(["*.many.example"])
    with egress.resolver(net) as s:
        codes = []
        for i in range(1100):
            q = d.question(f"n{i}.many.example")
            s.sendall(struct.pack(">H", len(q)) + q)
            size, = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))
            codes.append(d.read_answer(s.recv(size, socket.MSG_WAITALL))[1])
    assert codes[:1024] == [0] * 1024 and set(codes[1024:]) == {d.SERVFAIL}
    egress.finish(net)


def test_synthetic_addresses_are_the_net_s_own(egress, dns, web):
    dns.zone["mine.example"] = d.Answer(a=[WEB])
    one, two = egress.open(["mine.example"]), egress.open(["*"])
    address = egress.resolve(one, "mine.example")[1][0]
    assert egress.connect(two, address, 80)[0] == errno.EACCES
    assert "no name" in egress.event(two)["text"]
    assert egress.connect(one, address, 80)[0] == 0
    assert egress.connect(one, address, 81)[0] == errno.EACCES
    egress.finish(one)
    egress.finish(two)
    assert web.reached() == 1


def test_only_sandboxd_s_user_may_connect_and_roles_hold(egress):
    with egress.connect_as("peek") as p:
        p.send("NET_OPEN", net=1)
        assert p.closed()
    with egress.connect_as("sandboxd") as p:
        p.send("NET_CONNECT", net=1)
        assert p.closed()
    from harness.ipc import socket_as
    os.chmod(egress.listeners, 0o755)
    for name in ("sandboxd", "peek"):
        path = os.path.join(egress.listeners, name + ".sock")
        s = socket_as(egress.base + 12, [], path)
        s.settimeout(patience(5))
        assert s.recv(100) == b""
        s.close()


def test_when_sandboxd_goes_its_nets_go(egress, web):
    other = egress.connect_as("sandboxd")
    other.call("NET_OPEN", net=1 << 33, execution=bytes(16), connections=9, bytes=1 << 30,
               bytes_minute=1 << 30, requires_len=0, hosts=b"")
    assert egress.sandboxd.call("NET_CLOSE", net=1 << 33)["_"] == "REFUSED", "not its own"
    error, s = egress.connect(1 << 33, "127.0.0.1", 53)
    assert error == 0
    other.sock.close()
    assert s.recv(1) == b""
    until(lambda: egress.connect(1 << 33, "127.0.0.1", 53)[0] == errno.ENETUNREACH)


def test_layers_and_confinement(egress):
    layers = dict(line.split("=", 1) for line in egress.sandboxd.hello["layers"].split("\n") if line)
    for name in ("seccomp", "capabilities", "no_new_privs", "own_listeners", "byte_counts", "dns_servers",
                 "landlock_files"):
        assert layers[name] == "enforced", layers
    with open(f"/proc/{egress.process.pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    assert {status[c] for c in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd")} == {"0" * 16}


def test_it_ends_in_order(ns, dns, web):
    with Egress(ns) as e:
        net = e.open([WEB])
        error, s = e.connect(net, WEB, 80)
        assert error == 0
        assert e.stop() == 0
        # What was connected stays so: it is the runner's.
        peer = accepted(web)
        s.sendall(b"on")
        assert peer.recv(2) == b"on"


def test_sandboxd_hears_that_peek_is_gone(ns, dns):
    """It makes peek's connections, and would not know. One that takes the
    place of another is no news."""
    with Egress(ns) as e:
        old, e.peek = e.peek, e.connect_as("peek")
        old.sock.close()
        with pytest.raises(TimeoutError):
            e.sandboxd.receive(0.5)
        e.peek.sock.close()
        _, m = e.sandboxd.receive()
        assert (m["_"], m["net"], m["kind"]) == ("NET_EVENT", 0, 6)
        e.peek = e.connect_as("peek")
