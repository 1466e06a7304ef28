"""--net and --publish, in a network namespace in which addresses that look public are
this machine's, and a name server that lies on demand (tests/egress has the same)."""
import json
import socket
import subprocess
import threading

import pytest

from harness.patience import eventually, patience, until
from harness.played import dns as server
from harness.played.egress import DNS, namespace
from local.person import CANARY, RUN, UID

PUBLIC, OTHER, LAN, METADATA = "93.184.216.34", "142.250.185.14", "10.20.30.40", "169.254.169.254"
ADDRESSES = (LAN, METADATA)
SIX = "2606:2800:220:1::1"
GET = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), %d)
    s.sendall(b"hello")
    s.shutdown(socket.SHUT_WR)
    got = b""
    while True:
        b = s.recv(65536)
        if not b: break
        got += b
    print(got.decode())
except OSError as e:
    print(type(e).__name__, e.errno)
"""


@pytest.fixture(scope="module")
def ns():
    with namespace(ADDRESSES) as n, n.entered():
        yield n


@pytest.fixture(scope="module")
def dns(ns):
    with server.Server(DNS, ns=ns) as s:
        yield s


class Echo:
    """Answers each client with the canary and all that the client sent."""

    def __init__(self, host, port):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, port), family=family, backlog=64)
        self.port = self.listener.getsockname()[1]
        self.clients = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                c, peer = self.listener.accept()
            except OSError:
                return
            self.clients.append(peer)
            threading.Thread(target=self.answer, args=(c,), daemon=True).start()

    def answer(self, c):
        with c:
            got = 0
            try:
                while data := c.recv(65536):
                    got += len(data)
                    if data.startswith(b"echo"):
                        c.sendall(data)
                c.sendall(f"{CANARY} {got}".encode())
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


@pytest.fixture
def echo(ns):
    opened = []

    def add(host, port=0):
        opened.append(Echo(host, port))
        return opened[-1]
    yield add
    for e in opened:
        e.close()


@pytest.fixture
def net(ns, dns, person):
    """Runs as the person with the played name server in /etc/resolv.conf."""
    conf = person.base / "resolv.conf"
    conf.write_text(f"nameserver {DNS}\n")

    def command(argv, options):
        return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec setpriv --reuid '
                f'{UID} --regid {UID} --clear-groups "$@"', str(conf), RUN, *map(str, options), *argv]

    def run(*argv, options=(), start=False, **more):
        p = subprocess.Popen(command(argv, options), cwd=person.project, env=person.environment(),
                             **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more})
        if start:
            return p
        out, err = p.communicate(timeout=patience(60))
        return p.returncode, out, err
    return run


def get(net, host, port, *options):
    return net("python3", "-c", GET % 30, host, str(port), options=options)


def test_a_named_host(net, dns, echo):
    e = echo(PUBLIC)
    dns.zone["api.example.org"] = server.Answer(a=[PUBLIC])
    status, out, err = get(net, "api.example.org", e.port, "--net", f"api.example.org:{e.port}")
    assert (status, out, err) == (0, f"{CANARY} 5\n", "")
    assert len(e.clients) == 1


def test_what_is_not_named(net, dns, echo):
    """The same server, by another name, port and address; then without --net."""
    e, other = echo(PUBLIC), echo(PUBLIC)
    dns.zone["api.example.org"] = server.Answer(a=[PUBLIC])
    dns.zone["other.example.org"] = server.Answer(a=[PUBLIC])
    option = ["--net", f"api.example.org:{e.port}"]
    for host, port, word in (("other.example.org", e.port, "add --net with this name"),
                             ("api.example.org", other.port, f"add --net api.example.org:{other.port}"),
                             (PUBLIC, e.port, f"add --net {PUBLIC}:{e.port}"), (OTHER, e.port, OTHER)):
        _, out, err = get(net, host, port, *option)
        assert CANARY not in out and word in err and err.startswith("mcpbox-run: no connection to"), (host, out, err)
    assert CANARY not in get(net, PUBLIC, e.port)[1]
    assert e.clients == [] and other.clients == []


def test_a_wildcard(net, dns, echo):
    e = echo(PUBLIC)
    for name in ("a.example.org", "b.a.example.org", "example.org", "badexample.org"):
        dns.zone[name] = server.Answer(a=[PUBLIC])
    option = ["--net", f"*.example.org:{e.port}"]
    assert CANARY in get(net, "a.example.org", e.port, *option)[1]
    assert CANARY in get(net, "b.a.example.org", e.port, *option)[1]
    assert CANARY not in get(net, "example.org", e.port, *option)[1]
    assert CANARY not in get(net, "badexample.org", e.port, *option)[1]


def test_without_a_port_80_and_443(net, dns, echo):
    e, high = echo(PUBLIC, 80), echo(PUBLIC)
    dns.zone["api.example.org"] = server.Answer(a=[PUBLIC])
    assert CANARY in get(net, "api.example.org", e.port, "--net", "api.example.org")[1]
    assert CANARY not in get(net, "api.example.org", high.port, "--net", "api.example.org")[1]


@pytest.mark.parametrize("address", [PUBLIC, SIX, LAN])
def test_a_named_address(net, echo, address):
    e = echo(address)
    target = f"[{address}]:{e.port}" if ":" in address else f"{address}:{e.port}"
    assert CANARY in get(net, address, e.port, "--net", target)[1]
    assert CANARY not in get(net, address, e.port, "--net", target.replace(str(e.port), "1"))[1]


def test_ipv4_by_an_ipv6_socket(net, echo):
    e = echo(PUBLIC)
    assert CANARY in get(net, f"::ffff:{PUBLIC}", e.port, "--net", f"{PUBLIC}:{e.port}")[1]
    assert CANARY not in get(net, f"::ffff:{LAN}", e.port, "--net", f"{PUBLIC}:{e.port}")[1]


@pytest.mark.parametrize("address,word", [(LAN, "is not public"), (METADATA, "never open"), ("127.0.0.1", "loopback"),
                                          ("0.0.0.0", "never open")])
def test_a_named_host_that_leads_elsewhere(net, dns, echo, address, word):
    """A name that an attacker points inwards."""
    e = echo("0.0.0.0")
    dns.zone["evil.example.org"] = server.Answer(a=[address])
    _, out, err = get(net, "evil.example.org", e.port, "--net", f"evil.example.org:{e.port}")
    assert CANARY not in out and word in err and e.clients == [], (out, err)


def test_a_mixed_answer_opens_nothing(net, dns, echo):
    e = echo("0.0.0.0")
    dns.zone["mixed.example.org"] = server.Answer(a=[PUBLIC, LAN])
    assert CANARY not in get(net, "mixed.example.org", e.port, "--net", f"mixed.example.org:{e.port}")[1]
    assert e.clients == []


def test_a_lan_host_by_name_needs_its_address(net, dns, echo):
    e = echo(LAN)
    dns.zone["nas.example.org"] = server.Answer(a=[LAN])
    name = f"nas.example.org:{e.port}"
    assert f"add --net {LAN}:{e.port}" in get(net, "nas.example.org", e.port, "--net", name)[2]
    assert CANARY in get(net, "nas.example.org", e.port, "--net", name, "--net", f"{LAN}:{e.port}")[1]


def test_metadata_services_are_never_open(net, echo):
    e = echo(METADATA)
    _, out, err = get(net, METADATA, e.port, "--net", f"{METADATA}:{e.port}")
    assert CANARY not in out and e.clients == [], (out, err)
    assert CANARY not in get(net, METADATA, e.port, "--net", "*")[1]


def test_any_public_host(net, dns, echo):
    e, lan = echo(PUBLIC, 443), echo(LAN, 443)
    dns.zone["any.example.org"] = server.Answer(a=[PUBLIC])
    assert CANARY in get(net, "any.example.org", 443, "--net", "*")[1]
    assert CANARY not in get(net, LAN, 443, "--net", "*")[1] and lan.clients == []
    assert len(e.clients) == 1


def test_refused_and_unreachable_say_so(net, dns):
    dns.zone["api.example.org"] = server.Answer(a=[PUBLIC])
    with socket.create_server((PUBLIC, 0)) as s:
        port = s.getsockname()[1]
    assert get(net, "api.example.org", port, "--net", f"api.example.org:{port}")[1] == "ConnectionRefusedError 111\n"
    assert "113" in get(net, "gone.example.org", 80, "--net", "gone.example.org")[1]


def test_localhost_is_still_its_own(net, echo):
    e = echo("127.0.0.1")
    script = ("import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
              "c = socket.create_connection(s.getsockname()); s.accept()[0].sendall(b'own'); print(c.recv(9))\n"
              f"try: socket.create_connection(('127.0.0.1', {e.port}))\nexcept OSError as e: print(e.errno)\n"
              "u = socket.socket(socket.AF_UNIX); u.bind('/tmp/u'); u.listen(); socket.socket(socket.AF_UNIX).connect('/tmp/u'); print('unix')")
    assert net("python3", "-c", script, options=["--net", "example.org"])[1] == "b'own'\n111\nunix\n"


def test_much_data_both_ways(net, dns, echo):
    e = echo(PUBLIC)
    dns.zone["api.example.org"] = server.Answer(a=[PUBLIC])
    script = f"""
import socket, threading, hashlib, os
s = socket.create_connection(('api.example.org', {e.port}))
data = b'echo' * 1000000
def send():
    # Each piece begins with echo, as long as reads are multiples of four; so the sum is compared.
    s.sendall(data); s.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
got = 0
last = b''
while True:
    b = s.recv(65536)
    if not b: break
    got += len(b); last = (last + b)[-40:]
print(last.decode().split()[-1])
"""
    _, out, err = net("python3", "-c", script, options=["--net", f"api.example.org:{e.port}"])
    assert out == "4000000\n", (out, err)


def test_many_at_once_and_without_blocking(net, dns, echo):
    e = echo(PUBLIC)
    dns.zone["api.example.org"] = server.Answer(a=[PUBLIC])
    script = f"""
import asyncio
async def one(i):
    r, w = await asyncio.open_connection('api.example.org', {e.port})
    w.write(b'x' * i); w.write_eof()
    return int((await r.read()).split()[1])
async def main():
    print(await asyncio.gather(*(one(i) for i in range(100))) == list(range(100)))
asyncio.run(main())
"""
    status, out, err = net("python3", "-c", script, options=["--net", f"api.example.org:{e.port}"])
    assert out == "True\n", (status, out, err)


def test_no_way_by_a_race(net, dns, echo):
    """Other threads rewrite the address and exchange the socket while connect waits."""
    e, secret = echo(PUBLIC), echo("127.0.0.1")
    lan = echo(LAN)
    script = f"""
import ctypes, socket, struct, threading, os
libc = ctypes.CDLL(None, use_errno=True)
good = struct.pack('!HH4s8x', 0, {e.port}, socket.inet_aton('{PUBLIC}'))
good = struct.pack('H', 2) + good[2:]
bads = [struct.pack('H', 2) + struct.pack('!H4s8x', p, socket.inet_aton(h))
        for h, p in (('{LAN}', {lan.port}), ('127.0.0.1', {secret.port}))]
buffer = ctypes.create_string_buffer(good, 16)
stop = False
def rewrite():
    i = 0
    while not stop:
        ctypes.memmove(buffer, (good, *bads)[i % 3], 16); i += 1
threads = [threading.Thread(target=rewrite) for _ in range(2)]
for t in threads: t.start()
seen = set()
for i in range(150):
    s = socket.socket()
    s.settimeout(5)
    if libc.connect(s.fileno(), buffer, 16) == 0 or ctypes.get_errno() == 115:
        try:
            s.sendall(b'x'); s.shutdown(1); seen.add(s.recv(100))
        except OSError: pass
    s.close()
stop = True
print(len(seen))
"""
    status, out, err = net("python3", "-c", script, options=["--net", f"{PUBLIC}:{e.port}"])
    assert status == 0 and int(out) >= 1 and e.clients, (out, err)
    assert lan.clients == [] and secret.clients == [], (out, err)


def test_second_ways_out_of_a_connection(net, echo):
    """The tricks that a socket of the host would allow: this one is the sandbox's own."""
    e, secret = echo(PUBLIC), echo("127.0.0.1")
    script = f"""
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
s = socket.create_connection(('{PUBLIC}', {e.port}))
print(s.getpeername()[0])
print(libc.connect(s.fileno(), b'\\0' * 16, 16))   # AF_UNSPEC: undone
for target in (('127.0.0.1', {secret.port}), ('{LAN}', 80)):
    try: s.connect(target); print('connected')
    except OSError as e: print('refused')
    try: socket.socket().sendto(b'x', 0x20000000, target); print('sent')
    except OSError as e: print('refused')
s = socket.create_connection(('{PUBLIC}', {e.port}))
s.shutdown(2)
try: s.listen(); print('listens', s.getsockname()[0])
except OSError: print('refused')
"""
    _, out, err = net("python3", "-c", script, options=["--net", f"{PUBLIC}:{e.port}"])
    assert "connected" not in out and "sent" not in out and secret.clients == [], (out, err)
    assert out.startswith("127.0.0.1\n"), out


def test_the_name_server_answers_no_one_s_data(net, dns):
    """A name that carries data is not looked up: not at all if it is not named, and of a
    wildcard only when it is connected to."""
    before = len(dns.queries)
    script = ("import socket\nfor n in ('data.attacker.example', 'x.example.org'):\n"
              "    try: print(socket.gethostbyname(n)[:4])\n    except OSError: print('none')")
    _, out, _ = net("python3", "-c", script, options=["--net", "*.example.org"])
    assert out == "none\n240.\n" and len(dns.queries) == before


def test_broken_questions(net):
    script = """
import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
for n in (0, 1, 11, 12, 13, 300, 512, 513, 5000):
    for _ in range(20): s.sendto(os.urandom(n), ('127.0.0.1', 53))
print(socket.gethostbyname('named.example.org')[:4])
"""
    assert net("python3", "-c", script, options=["--net", "named.example.org"])[1] == "240.\n"


def test_the_report_has_them(net, dns, echo):
    e = echo(PUBLIC)
    status, out, err = get(net, LAN, e.port, "--json", "--net", "example.org")
    report = json.loads(err)
    assert [(d["host"], d["port"]) for d in report["denied"]] == [(LAN, e.port)] and report["status"] == status == 0, out


def test_the_helper_s_end_closes_the_network(net, dns, echo):
    e = echo(PUBLIC)
    p = net("sh", "-c", f"echo up; read x; python3 -c '{GET % 5}' {PUBLIC} {e.port}", options=["--net", f"{PUBLIC}:{e.port}"],
            start=True, stdin=subprocess.PIPE)
    try:
        assert p.stdout.readline() == "up\n"
        helper = until(lambda: subprocess.run(["pgrep", "-x", "-P", str(p.pid), "mcpbox-run-net"], capture_output=True,
                                              text=True, check=False).stdout.strip())
        subprocess.run(["kill", "-9", helper], check=True)
        out, _ = p.communicate("x\n", timeout=patience(60))
        assert CANARY not in out and e.clients == [] and p.returncode == 0, out
    finally:
        p.kill()
        p.wait()


def test_the_helper_ends_with_the_run(net):
    p = net("sh", "-c", "echo up; read x", options=["--net", "example.org"], start=True, stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    helper = until(lambda: subprocess.run(["pgrep", "-x", "-P", str(p.pid), "mcpbox-run-net"], capture_output=True,
                                          text=True, check=False).stdout.strip())
    p.kill()
    p.wait()
    assert eventually(lambda: subprocess.run(["kill", "-0", helper], capture_output=True, check=False).returncode != 0)


SERVER = """
import socket, sys
s = socket.create_server((%r, %d), family=socket.AF_INET6 if ':' in %r else socket.AF_INET)
print('up', flush=True)
while True:
    c = s.accept()[0]
    got = b''
    while d := c.recv(65536): got += d
    c.sendall(b'served ' + str(len(got)).encode()); c.close()
"""


def ask(port, data=b"hello"):
    with socket.create_connection(("127.0.0.1", port)) as c:
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        out = b""
        while d := c.recv(65536):
            out += d
        return out


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
@pytest.mark.parametrize("more", [[], ["--net", "example.org"]], ids=["alone", "with-net"])
def test_a_published_port(net, host, more):
    port = 18471
    p = net("python3", "-c", SERVER % (host, port, host), options=["--publish", port, *more], start=True)
    try:
        assert p.stdout.readline() == "up\n"
        assert ask(port) == b"served 5"
        assert ask(port, b"x" * 3000000) == b"served 3000000"
        results = []
        threads = [threading.Thread(target=lambda i=i: results.append(ask(port, b"x" * i))) for i in range(32)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(results) == sorted(f"served {i}".encode() for i in range(32))
    finally:
        p.terminate()
        p.communicate()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_nothing_serves_the_published_port(net):
    p = net("sh", "-c", "echo up; read x", options=["--publish", 18472], start=True, stdin=subprocess.PIPE)
    try:
        assert p.stdout.readline() == "up\n"
        with pytest.raises(ConnectionResetError):
            ask(18472)
    finally:
        p.communicate("x\n")


def test_a_port_that_is_not_published(net):
    p = net("python3", "-c", SERVER % ("127.0.0.1", 18473, ""), options=["--publish", 18474], start=True)
    try:
        assert p.stdout.readline() == "up\n"
        with pytest.raises(ConnectionRefusedError):
            ask(18473)
    finally:
        p.terminate()
        p.communicate()


def test_a_taken_port(net, echo):
    e = echo("127.0.0.1")
    status, out, err = net("touch", "made", options=["--publish", e.port])
    assert status == 125 and "free port" in err and out == "", err


@pytest.mark.parametrize("options,word", [
    (["--net", "localhost"], "HOST"), (["--net", "127.0.0.1:80"], "loopback of its own"), (["--net", "[::1]:80"], "loopback of its own"),
    (["--net", "udp:example.org:53"], "TCP"), (["--net", "http://example.org"], "HOST"), (["--net", "a b"], "HOST"),
    (["--net", "*.org"], "HOST"), (["--net", "example.org:0"], "HOST"), (["--net", "example.org:99999"], "HOST"),
    (["--publish", "0"], "1 to 65535"), (["--publish", "65536"], "1 to 65535"), (["--publish", "x"], "1 to 65535"),
    (["--publish", "8080:80"], "1 to 65535")])
def test_options(person, options, word):
    r = person.run("true", options=options)
    assert r.status == 125 and word in r.err and r.err.count("\n") == 1, r


def test_a_caller_s_socket_is_refused(ns, person):
    """Connected anew, it would reach what the host reaches."""
    with socket.create_server(("127.0.0.1", 0)) as s, socket.create_connection(s.getsockname()) as c:
        r = person.run("true", stdin=c)
        assert r.status == 125 and "descriptor 0" in r.err, r
    a, b = socket.socketpair()
    with a, b:
        assert person.run("true", stdin=a).status == 0
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with a, b:
        assert person.run("true", stdout=a).status == 125
