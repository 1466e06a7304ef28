"""gatewayd after a TCP balancer that tells its clients' addresses by the PROXY protocol: a played one, and
HAProxy. The balancer is 127.0.0.1; clients, and who comes past it, are other addresses of 127.0.0.0/8."""
import contextlib
import socket
import struct
import subprocess

import pytest

from harness.instance import BUILD, Instance
from harness.net.haproxy import Haproxy
from harness.patience import patience, until

BALANCER, OTHER = "127.0.0.1", "127.0.0.2"
SHARE = 4
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n\r\n"


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=[f"gatewayd-local:proxy_protocol_from={BALANCER}",
                       f"gatewayd-local:max_connections_per_source={SHARE}"])
    yield i
    i.close()


def header(source="198.51.100.7", command=0x21, family=0x11, rest=None, tlv=b""):
    if rest is None:
        how = socket.AF_INET6 if family == 0x21 else socket.AF_INET
        rest = socket.inet_pton(how, source) * 2 + struct.pack(">HH", 4711, 443)
    rest += tlv
    return SIGNATURE + bytes([command, family]) + struct.pack(">H", len(rest)) + rest


def connect(instance, source=BALANCER):
    s = socket.create_connection(instance.address(), patience(30), (source, 0))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def answer(s):
    """(status, body) of the next answer; (None, "") at the end."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        got = s.recv(65536)
        if not got:
            return None, ""
        raw += got
    head, body = raw.split(b"\r\n\r\n", 1)
    fields = dict(x.lower().split(b": ", 1) for x in head.split(b"\r\n")[1:])
    while len(body) < int(fields.get(b"content-length", b"0")):
        body += s.recv(65536)
    return int(head.split()[1]), body.decode()


def asked(instance, *pieces, source=BALANCER):
    with connect(instance, source) as s:
        for p in pieces:
            s.sendall(p)
        return answer(s)


@pytest.mark.parametrize("head", [
    header(), header("2001:db8::7", family=0x21), header(tlv=b"\x04\0\x03abc" + b"\x20\0\x00"),
    header(tlv=bytes(2036)), header(command=0x20, family=0, rest=b""), header(command=0x20, family=0xff, rest=b"xyz"),
    header(family=0, rest=b""), header(family=0x31, rest=bytes(216))],
    ids=["TCP4", "TCP6", "TLVs", "the most TLVs", "LOCAL", "LOCAL of any family", "AF_UNSPEC", "AF_UNIX"])
def test_served_after_a_header(instance, head):
    served = asked(instance, head + REQUEST)
    assert served[0] == 200, served
    # In two pieces, and byte by byte.
    assert asked(instance, head, REQUEST)[0] == served[0]
    assert asked(instance, *(head[i:i + 1] for i in range(min(len(head), 64))), head[64:] + REQUEST)[0] == served[0]
    # One header a connection: the second request has none.
    with connect(instance) as s:
        s.sendall(head + REQUEST)
        assert answer(s)[0] == served[0]
        s.sendall(REQUEST)
        assert answer(s)[0] == served[0]


@pytest.mark.parametrize("head, says", [
    (b"", "no PROXY header of version 2"), (b"PROXY TCP4 198.51.100.7 192.0.2.1 4711 443\r\n", "send-proxy-v2"),
    (header(command=0x11), "version and command 0x11"), (header(command=0x22), "0x22"),
    (header(family=0x12), "only TCP is served"), (header(rest=bytes(11)), "is cut"),
    (header(tlv=bytes(2037)), "2049 bytes: 2048 are read"), (header(tlv=bytes(65000)), "2048 are read")],
    ids=["none", "version 1", "version 1 in 2", "command", "UDP", "cut", "too long", "far too long"])
def test_refused_without_one(instance, head, says):
    status, body = asked(instance, (head + REQUEST)[:4000])
    assert status == 403 and says in body and "forbidden" in body, body


def test_two_headers_are_no_request(instance):
    assert asked(instance, header() + header("198.51.100.8") + REQUEST)[0] == 400


@pytest.mark.parametrize("head", [b"", header(), header(BALANCER)], ids=["nothing", "a header", "the balancer's name"])
def test_nobody_else_may_send_it(instance, head):
    """Who reaches the listener past the balancer can't call itself what it likes."""
    status, body = asked(instance, head + REQUEST, source=OTHER)
    assert status == 403 and "proxy_protocol_from" in body, body


def test_half_a_header_ends(instance):
    with connect(instance) as s:
        s.sendall(header()[:20])
        assert s.recv(1) == b""     # after header_timeout


def ended(s):
    """Whether the server has ended this connection; what it answered is dropped."""
    s.setblocking(False)
    try:
        while s.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


@contextlib.contextmanager
def half_requests(opened, last):
    """As many requests under way as one address may have: the body of the refusal that
    last() gets then. The balancer keeps no order between connections: a look may take the
    place of a request that was sent before it, and then this one is refused;
    header_timeout may end one as well. Each that ended is sent again."""
    held = []

    def full():
        for s in [s for s in held if ended(s)]:
            held.remove(s)
            s.close()
        while len(held) < SHARE:
            s = opened()
            held.append(s)
            s.sendall(REQUEST[:40])
        status, body = last()
        return body if status == 503 else None

    try:
        yield until(full)
    finally:
        for s in held:
            s.close()


def test_shares_are_by_the_client_s_address(instance):
    def opened(source):
        s = connect(instance)
        s.sendall(header(source))
        return s

    def last(source):
        with opened(source) as s:
            s.sendall(REQUEST)
            return answer(s)

    with half_requests(lambda: opened("198.51.100.7"), lambda: last("198.51.100.7")) as body:
        assert "max_connections_per_source" in body and "busy" in body
        served = last("198.51.100.8")
        assert served[0] == 200, served
        # The balancer's own look counts for nobody.
        for _ in range(2 * SHARE):
            assert asked(instance, header(command=0x20, family=0, rest=b"") + REQUEST)[0] == served[0]
        # Nor is another family.
        assert asked(instance, header("2001:db8::1", family=0x21) + REQUEST)[0] == served[0]
    until(lambda: last("198.51.100.7")[0] == served[0])


def test_idle_ones_make_room_by_the_client_s_address(instance):
    with contextlib.ExitStack() as idle:
        first = idle.enter_context(connect(instance))
        first.sendall(header("198.51.100.9"))
        others = [idle.enter_context(connect(instance)) for _ in range(SHARE - 1)]
        for s in others:
            s.sendall(header("198.51.100.9") + REQUEST)
            assert answer(s)[0] == 200
        stranger = idle.enter_context(connect(instance))
        stranger.sendall(header("198.51.100.10") + REQUEST)
        assert answer(stranger)[0] == 200
        assert asked(instance, header("198.51.100.9") + REQUEST)[0] == 200
        assert first.recv(1) == b""     # the oldest of that address
        stranger.sendall(REQUEST)       # not of another
        assert answer(stranger)[0] == 200


def test_haproxy(instance):
    h = Haproxy(instance.address())
    try:
        def opened(source):
            return socket.create_connection(("127.0.0.1", h.port), patience(30), (source, 0))

        def last(source):
            with opened(source) as s:
                s.sendall(REQUEST)
                return answer(s)

        served = last("127.0.0.5")
        assert served[0] == 200, served
        with half_requests(lambda: opened("127.0.0.5"), lambda: last("127.0.0.5")):
            assert last("127.0.0.6")[0] == served[0]
        # Its health checks, which are LOCAL, passed all along.
        assert h.up() and h.row()["chkfail"] == "0", h.row()
    finally:
        h.close()


def test_haproxy_s_version_1_is_refused(instance):
    h = Haproxy(instance.address(), "send-proxy")
    try:
        with socket.create_connection(("127.0.0.1", h.port), patience(30)) as s:
            s.sendall(REQUEST)
            status, body = answer(s)
        assert status == 403 and "send-proxy-v2" in body
    finally:
        h.close()


@pytest.mark.parametrize("value, says", [("127.0.0.1/33", "ADDRESS[/BITS]"), ("localhost", "ADDRESS[/BITS]"),
                                         ("127.0.0.1,,::1", "ADDRESS[/BITS]")])
def test_a_wrong_list_is_told_by_t(tmp_path, value, says):
    conf = tmp_path / "conf"
    conf.write_text(f"proxy_protocol_from {value}\n", encoding="utf-8")
    p = subprocess.run([f"{BUILD}/gatewayd/mcpbox-gatewayd", "-t", "-f", conf], capture_output=True, text=True,
                       timeout=patience(30), check=False)
    assert p.returncode != 0 and says in p.stderr, p
