"""web_fetch as contrib/tools/install installs it, through a whole instance in a
network namespace: the W- cases of the agent that mcpbox grew out of, by number.
Each address that must not be reached has a canary listening on it, which is
proved to be reachable from outside the sandbox first."""
import contextlib
import gzip
import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
import zlib

import pytest

from harness import listening
from harness.clients.mcp import Client, text
from harness.instance import SRC
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.upstream import Service

PUBLIC, SECOND = "93.184.216.34", "142.250.185.14"
V6 = "2606:2800:220:1::1"
#: Addresses that nobody may reach, each with a listener on port 80.
FORBIDDEN = {
    "W-01": ["127.0.0.1", "127.0.0.2"], "W-02": ["10.0.0.1", "10.255.255.255"], "W-03": ["172.16.0.1", "172.31.255.255"],
    "W-04": ["192.168.0.1", "192.168.255.255"], "W-05": ["169.254.0.1", "169.254.169.254"],
    "by reading": ["100.64.0.1", "0.0.0.0", "fd00:ec2::254"], "W-21": ["::"], "W-22": ["64:ff9b::7f00:1"],
    "W-23": ["2002:7f00:1::"], "W-24": ["2001:0:7f00:1::1"], "W-27": ["198.18.0.1", "192.88.99.1"],
    "W-28": ["fec0::1", "2001:db8::1"], "loopback": ["::1", "fe80::1", "fd12:3456::1"],
}
ADDRESSES = ("169.254.0.1", "169.254.169.254", "198.18.0.1", "192.88.99.1", "fec0::1", "2001:db8::1", "fd00:ec2::254",
             "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::1")
PAGE = b"""<!doctype html><html><head><title> A  page </title><style>x</style><script>evil()</script></head>
<body><h1>Hello</h1><p>One <b>two</b>&nbsp;&amp; <a href="/three?x=1">three</a>.</p><ul><li>a<li>b</ul>
<pre>  kept
    as is</pre><noscript>no</noscript></body></html>"""


class Canary:
    """Answers HTTP on every address of this machine, and notes who came."""

    def __init__(self, ns):
        self.hits = 0
        self.sockets = []
        taken = {PUBLIC, SECOND, V6}
        addresses = [a for group in FORBIDDEN.values() for a in group if a not in ("0.0.0.0", "::")]
        for address in dict.fromkeys(addresses):
            if address in taken:
                continue
            with ns.entered():
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                s = socket.socket(family, socket.SOCK_STREAM)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                try:
                    s.bind((address, 80))
                except OSError:
                    s.close()       # fe80::1 wants an interface
                    continue
                s.listen(16)
            self.sockets.append((address, s))
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            self.hits += 1
            with c:
                c.recv(65536)
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\ncanary")

    def prove(self, ns):
        """From outside the sandbox each of them answers."""
        for address, _ in self.sockets:
            with ns.entered():
                host = f"[{address}]" if ":" in address else address
                assert urllib.request.urlopen(f"http://{host}/", timeout=patience(5)).read() == b"canary", address
        assert self.hits == len(self.sockets) > 15
        self.hits = 0

    def close(self):
        for _, s in self.sockets:
            listening.end(s)


@pytest.fixture(scope="module")
def canary(ns):
    c = Canary(ns)
    c.prove(ns)
    yield c
    c.close()


#: Set when this module's tests are over.
OVER = threading.Event()


def bomb(listener):
    """Answers with zeros without end, in as few bytes as gzip makes of them."""
    while True:
        try:
            c, _ = listener.accept()
        except OSError:
            return
        with c, contextlib.suppress(OSError):
            c.recv(65536)
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
                      b"Transfer-Encoding: chunked\r\n\r\n")
            z = zlib.compressobj(9, zlib.DEFLATED, 31)
            while True:
                piece = z.compress(bytes(1 << 20)) + z.flush(zlib.Z_SYNC_FLUSH)
                c.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))


def handle(r):
    q = dict(r.query)
    if r.path == "/to":
        return int(q.get("status", 302)), {"Location": q["url"], "Set-Cookie": "a=b"}, b"moved"
    if r.path == "/page":
        return 200, {"Content-Type": "text/html; charset=utf-8"}, PAGE
    if r.path == "/big":
        return 200, {"Content-Type": "text/plain"}, b"x" * 3_000_000
    if r.path == "/exact":
        return 200, {"Content-Type": "application/x-thing"}, b"x" * int(q["n"])
    if r.path == "/gzip":
        return 200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress(b"unpacked")
    if r.path == "/slow":
        OVER.wait()
    if r.path == "/cookie":
        return 200, {"Content-Type": "text/plain"}, str(r.headers.get("cookie")).encode()
    if r.path == "/latin":
        return 200, {"Content-Type": "text/html"}, b'<meta charset="latin-1"><p>\xfc</p>'
    if r.path == "/png":
        return 200, {"Content-Type": "image/png"}, b"\x89PNG\r\n"
    if r.path == "/headers":
        return 200, {"Content-Type": "text/plain", **{f"X-{n}": "v" for n in range(40)}}, b"h"
    if r.path == "/loop":
        return 302, {"Location": "/loop"}, b""
    if r.path == "/404":
        return 404, {"Content-Type": "text/plain"}, b"nothing is here"
    return 200, {"Content-Type": "text/plain"}, b"public"


@pytest.fixture(scope="module")
def site(ns, dns):
    dns.zone["site.example"] = d.Answer(a=[PUBLIC])
    dns.zone["six.example"] = d.Answer(aaaa=[V6])
    with Service(handle, sock=ns.listen(PUBLIC, 80)) as s, Service(handle, sock=ns.listen(V6, 80)), \
            Service(handle, sock=ns.listen(PUBLIC, 8080)):
        yield s
        OVER.set()


@pytest.fixture(scope="module")
def installed(instance, site):
    """What the administrator's command said."""
    def install(*more, said=""):
        return subprocess.run([os.path.join(SRC, "contrib", "tools", "install"), "web_fetch", *more, "--url",
                               "http://{}:{}/mcp".format(*instance.address()),
                               "--ctl", os.path.join(instance.state, "bin", "mcpboxctl")],
                              capture_output=True, text=True, check=False, timeout=patience(120), input=said)
    # Who says no may run it again: what waits is shown and approved then.
    r = install(said="n\n")
    assert r.returncode == 1 and "nothing was approved" in r.stderr, r.stdout + r.stderr
    r = install("--yes")
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


@pytest.fixture
def fetch(instance, installed, canary):
    with Client(instance.address) as c:
        def call(url, **more):
            r = c.call("web_fetch", {"url": url, **more})
            assert r.result is not None, r
            return r
        yield call
    assert canary.hits == 0


def content(r):
    assert not r.result.get("isError"), text(r)
    return r.result["structuredContent"]


def refused(r, *says):
    assert r.result.get("isError"), r
    assert "canary" not in text(r) and all(s in text(r) for s in says), text(r)
    return r.result["_meta"]["mcpbox/failure"]["failure_mode"]


def test_the_command_shows_what_it_approves(installed, instance):
    assert "web_fetch: one page of the public web" in installed     # the code
    assert "hash" in installed and "*" in installed
    assert "web_fetch is approved" in installed
    again = subprocess.run([os.path.join(SRC, "contrib", "tools", "install"), "web_fetch", "--yes", "--url",
                            "http://{}:{}/mcp".format(*instance.address()),
                            "--ctl", os.path.join(instance.state, "bin", "mcpboxctl")],
                           capture_output=True, text=True, check=False, timeout=patience(120), stdin=subprocess.DEVNULL)
    assert again.returncode == 0, again.stderr       # nothing is left to approve
    tools = instance.ctl_json("tools")["items"]
    assert [t["name"] for t in tools if "web_fetch" in t["name"]].count("web_fetch") == 1


# ---- what works ----

@pytest.mark.parametrize("url", ["http://site.example/", f"http://{PUBLIC}/", "HTTP://SITE.EXAMPLE./", f"http://[{V6}]/",
                                 "http://six.example/", "http://site.example:80/?q=1#f"], ids=lambda u: f"W-06 W-10 {u}")
def test_public_addresses(fetch, url):
    r = content(fetch(url))
    assert r["status"] == 200 and r["text"] == "public" and not r["truncated"]


def test_W_03_172_15_is_public(fetch, ns):
    with Service(handle, sock=ns.listen("172.15.0.1", 80)):
        assert content(fetch("http://172.15.0.1/"))["text"] == "public"


def test_text_of_html(fetch):
    r = content(fetch("http://site.example/page"))
    assert r["title"] == "A page"
    assert r["text"] == "Hello\n\nOne two & [three](http://site.example/three?x=1).\n\n- a\n- b\n\nkept\nas is"
    assert "<script>" in content(fetch("http://site.example/page", raw=True))["text"]
    assert content(fetch("http://site.example/latin"))["text"] == "\u00fc"
    assert content(fetch("http://site.example/gzip"))["text"] == "unpacked"
    png = content(fetch("http://site.example/png"))
    assert "text" not in png and png["bytes"] == 6 and png["headers"]["content-type"] == "image/png"
    assert content(fetch("http://site.example/page", max_chars=5))["text"] == "Hello"


def test_W_14_head_has_no_body(fetch, site):
    r = content(fetch("http://site.example/page", method="HEAD"))
    assert r["status"] == 200 and "text" not in r and r["headers"]["content-type"].startswith("text/html")
    assert site.requests[-1].method == "HEAD"
    assert refused(fetch("http://site.example/", method="POST")) == "invalid_arguments"


def test_W_13_not_2xx_is_an_error_with_its_status(fetch):
    refused(fetch("http://site.example/404"), "404", "nothing is here")


@pytest.mark.parametrize("url,mode,fix", [
    ("http://site.example/404", "upstream_error", "Read what the other server answered and correct the call."),
    ("http://site.example/loop", "upstream_error", "Use the address that the redirect leads to."),
    ("http://127.0.0.1/", "missing_grant", "Ask for the grant with the tool the message names."),
    ("http://none.example/", "upstream_error",
     "Check the address, and whether the host is in requires and granted; if so, try again later."),
    ("http://site.example:81/", "missing_grant", "Ask for the grant with the tool the message names."),
    ("ftp://site.example/", "invalid_arguments", "Correct the arguments; every error is listed."),
    ("http://", "invalid_arguments", "Correct the arguments; every error is listed.")])
def test_a_refusal_has_a_type_and_no_source(fetch, url, mode, fix):
    """Whose fault it is, this case's next step, and nothing of the code."""
    r = fetch(url)
    assert refused(r) == mode, text(r)
    assert r.result["_meta"]["mcpbox/failure"]["fix"] == fix, text(r)
    said = text(r)
    assert "line " not in said and "Traceback" not in said and "mcpbox.http.stream" not in said and ">" not in said, said


def test_twenty_headers(fetch):
    assert len(content(fetch("http://site.example/headers"))["headers"]) == 20


# ---- bounds ----

def test_W_15_and_W_33_bodies_are_cut(fetch):
    r = content(fetch("http://site.example/big", max_chars=1_000_000))
    assert r["truncated"] and r["text"] == "x" * 450_000
    for n, kept, cut in ((999_999, 999_999, False), (1_000_000, 1_000_000, False), (1_000_001, 1_000_000, True)):
        r = content(fetch(f"http://site.example/exact?n={n}"))
        assert (r["bytes"], r["truncated"]) == (kept, cut)


def test_a_body_without_end_is_cut(fetch, ns, dns):
    """Nothing of it is unpacked that is not kept: all of it never would be."""
    dns.zone["bomb.example"] = d.Answer(a=[SECOND])
    with ns.listen(SECOND, 80) as listener:
        threading.Thread(target=bomb, args=(listener,), daemon=True).start()
        assert content(fetch("http://bomb.example/"))["truncated"]
        listener.shutdown(socket.SHUT_RDWR)


def test_ten_seconds(fetch):
    """Its own limit ends it, since nobody answers, and not the call's, which is a
    failure of another kind."""
    t = time.monotonic()
    assert refused(fetch("http://site.example/slow"), "time") == "timeout"
    assert time.monotonic() - t > 8


def test_five_redirects(fetch):
    refused(fetch("http://site.example/loop"), "5 times")


# ---- W-16: redirects ----

@pytest.mark.parametrize("target, status", [("/page", 302), ("page", 301), ("//site.example/page", 303),
                                            ("http://six.example/page", 307)], ids=lambda v: f"W-16 {v}")
def test_redirects_that_may(fetch, target, status):
    r = content(fetch(f"http://site.example/to?status={status}&url={target}"))
    assert r["title"] == "A page" and r["url"].endswith("/page")


@pytest.mark.parametrize("target", [
    "http://127.0.0.1/evil", "//127.0.0.1/x", "http://[::ffff:7f00:1]/", "http://[::1]/", "http://169.254.169.254/latest",
    "http://2130706433/", "http://0x7f000001/", "http://127.1/", "http://localhost/", "http://10.0.0.1/",
    "file:///etc/passwd", "http://user@127.0.0.1/", "http://\uff11\uff12\uff17.0.0.1/"],
    ids=["W-16", "W-29", "W-30", *(f"W-16 {n}" for n in range(10))])
def test_redirects_that_may_not(fetch, target):
    from urllib.parse import quote
    refused(fetch(f"http://site.example/to?url={quote(target, safe='')}"))


def test_W_35_no_cookies_and_no_way_down(fetch):
    assert content(fetch("http://site.example/to?url=/cookie"))["text"] == "None"
    import sys
    from harness.played.upstream import runner_modules
    runner_modules()
    low = sys.modules.get("mcpbox_http") or __import__("mcpbox_http")
    with pytest.raises(low.RedirectError):
        low._next("GET", low.url("https://site.example/"), [], None, 302, "http://site.example/")


# ---- what must not be reached ----

@pytest.mark.parametrize("address", [a for group in FORBIDDEN.values() for a in group],
                         ids=[f"{k} {a}" for k, group in FORBIDDEN.items() for a in group])
def test_forbidden_addresses(fetch, address):
    refused(fetch(f"http://[{address}]/" if ":" in address else f"http://{address}/"))


@pytest.mark.parametrize("address", [a for group in FORBIDDEN.values() for a in group if a not in ("0.0.0.0", "::")],
                         ids=lambda a: f"by name {a}")
def test_names_of_forbidden_addresses(fetch, dns, address):
    dns.zone["evil.example"] = d.Answer(aaaa=[address]) if ":" in address else d.Answer(a=[address])
    refused(fetch("http://evil.example/"))


@pytest.mark.parametrize("url", [
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:169.254.169.254]/", "http://[::127.0.0.1]/", "http://224.0.0.1/",
    "http://[ff02::1]/", "http://240.0.0.1/", "http://255.255.255.255/", "http://0x7f000001/", "http://2130706433/",
    "http://127.1/", "http://017700000001/", "http://user@127.0.0.1/", "http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
    "http://0/", "http://localhost/admin", "http://localhost.localdomain/", "http://127.0.0.1:8080/api", "http://192.168.1.1/"],
    ids=["W-20", "W-20b", "W-20c", "W-25", "W-25b", "W-26", "W-26b", "hex", "decimal", "short", "octal", "userinfo",
         "full width", "zero", "W-08", "W-08b", "W-11", "W-11b"])
def test_forbidden_spellings(fetch, url):
    refused(fetch(url))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://site.example/", "gopher://127.0.0.1/", "http:///path",
                                 "not-an-ip", "http://", "//site.example/", "http://site.example\\@127.0.0.1/",
                                 "http://site.example\r\nHost: x/", "javascript:1"],
                         ids=lambda u: f"W-10 W-12 {u!r}")
def test_what_is_no_url(fetch, url):
    refused(fetch(url))


def test_W_09_unknown_names(fetch):
    refused(fetch("http://nosuch.example/"))
    refused(fetch("http://not-an-ip/"))     # W-07


def test_W_31_rebinding_has_nothing_to_race(fetch, dns):
    dns.zone["rebind.example"] = [d.Answer(a=[PUBLIC]), d.Answer(a=["127.0.0.1"])]
    first = fetch("http://rebind.example/")
    assert first.result.get("isError") or content(first)["text"] == "public"
    for _ in range(3):
        refused(fetch("http://rebind.example/"))


def test_W_32_no_proxies_of_the_environment(fetch, site):
    # None can be set: a tool has no environment of anybody's. What it asks for is in origin form.
    content(fetch("http://site.example/x"))
    assert site.requests[-1].target == "/x"


def test_W_34_ports(fetch):
    with_port = fetch(f"http://{PUBLIC}:8080/")
    assert refused(with_port, "8080") == "missing_grant"


def test_W_36_mixed_answers_are_refused(fetch, dns):
    for addresses in ([PUBLIC, "127.0.0.1"], ["10.0.0.1", PUBLIC]):
        dns.zone["mixed.example"] = d.Answer(a=addresses)
        refused(fetch("http://mixed.example/"))
    dns.zone["mixed.example"] = d.Answer(a=[PUBLIC], aaaa=["::1"])
    refused(fetch("http://mixed.example/"))


def test_what_was_connected_to_is_in_the_record(fetch, instance):
    r = fetch("http://site.example/to?url=http://127.0.0.1/x")
    execution = r.result["_meta"]["mcpbox/execution"]["execution_id"]
    network = until(lambda: instance.ctl_json("executions", execution).get("network"))
    network = json.loads(network) if isinstance(network, str) else network
    assert any(n["host"] == "site.example" and n["address"] == PUBLIC for n in network), network
    assert any("127.0.0.1" in (n["host"], n["address"]) and n["verdict"] != "connected" for n in network), network


def test_it_is_nobody_elses_right(instance, installed):
    """Another server's tool that declares the same has not been granted it."""
    from harness.clients import flow
    with Client(instance.address) as c:
        name = flow.publish(instance, c, "mine", "steal", "import mcpbox\ndef main():\n"
                            "    return mcpbox.http.get('http://site.example/').text\n", requires=["*"])
        r = c.call(name, {})
        assert refused(r, "mcpbox_request_network_access") == "missing_grant"




def test_the_command_approves_what_it_came_for_alone(instance, installed):
    """Whoever may use the management tools can put requests on its server, and
    versions of its tool: none of them is waved through with it."""
    def again():
        return subprocess.run([os.path.join(SRC, "contrib", "tools", "install"), "web_fetch", "--yes", "--url",
                               "http://{}:{}/mcp".format(*instance.address()),
                               "--ctl", os.path.join(instance.state, "bin", "mcpboxctl")],
                              capture_output=True, text=True, check=False, timeout=patience(120), stdin=subprocess.DEVNULL)
    with Client(instance.address) as c:
        server = next(s["id"] for s in c.manage("mcpbox_list_servers")["servers"] if s["name"] == "public_web")
        t = c.manage("mcpbox_create_tool", server_id=server, name="helper", requires=["192.168.1.5:22"],
                     python_code="def main(): pass\n")["id"]
        c.manage("mcpbox_request_network_access", tool_id=t, host="192.168.1.5", port=22, justification="for web_fetch")
        r = again()
        assert r.returncode == 0, r.stderr
        waits = instance.ctl_json("approvals", "list", "--kind", "network", "--state", "pending")["items"]
        assert [(w["host"], w["port"]) for w in waits] == [("192.168.1.5", 22)]
        assert "192.168.1.5" not in r.stdout
        # its own tool, with somebody else's additions that an update leaves alone
        t = next(x["id"] for x in c.manage("mcpbox_list_tools", server_id=server)["tools"] if x["name"] == "web_fetch")
        c.manage("mcpbox_update_tool", tool_id=t, meta={"x": "y"}, python_code="def main(): pass\n")
        before = instance.ctl_json("approvals", "list", "--kind", "tool", "--state", "approved")["items"]
        r = again()
        assert r.returncode != 0 and "not what comes with mcpbox" in r.stderr, r
        assert instance.ctl_json("approvals", "list", "--kind", "tool", "--state", "approved")["items"] == before
