"""mcpbox_http and mcpbox.http on sockets of a local server: framing, bounds,
redirects, codings, retries. What the sandbox adds is in the other files."""
import asyncio
import gzip
import json
import socket
import threading
import time
import zlib

import pytest

from harness.patience import patience
from harness.played.upstream import Raw, Service, runner_modules

runner_modules()

import mcpbox                                       # noqa: E402
import mcpbox_errors                                # noqa: E402
import mcpbox_http as low                           # noqa: E402

#: For a server that sends nothing before the test has seen what it waits for.
HANG_S = patience(20)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n"


def get(*replies, method="GET", path="/", **options):
    """(response, what was sent)"""
    options = {"timeout": 5, "max_bytes": 1000, **options}
    with Raw(*replies) as up:
        return low.request(method, up.url(path), **options), up.seen


def packed(body):
    # Without the time: what is in a test's name must be the same in each worker.
    return gzip.compress(body, mtime=0)


def coded(coding, body):
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\n\r\n" % coding + body


# ---- what is sent ----

def test_request_as_sent():
    r, seen = get(OK, path="/a%20b/\u00fc?q=\u00e4&x=[1]#fragment", headers={"X-A": "1", "accept": "text/plain"})
    lines = seen[0].split(b"\r\n")
    assert lines[0] == b"GET /a%20b/%C3%BC?q=%C3%A4&x=[1] HTTP/1.1"
    assert b"X-A: 1" in lines and b"accept: text/plain" in lines and b"Connection: close" in lines
    assert b"User-Agent: mcpbox" in lines and b"Accept-Encoding: gzip, deflate" in lines
    assert sum(line.lower().startswith(b"accept:") for line in lines) == 1
    assert lines[1].startswith(b"Host: 127.0.0.1:")
    assert (r.status, r.reason, r.body, r.ok) == (200, "OK", b"hello", True)


@pytest.mark.parametrize("method, body, length", [
    ("POST", b"abc", b"3"), ("POST", None, b"0"), ("PUT", b"", b"0"), ("DELETE", None, None), ("GET", None, None)])
def test_length_of_what_is_sent(method, body, length):
    _, seen = get(OK, method=method, body=body)
    said = [line.split(b": ")[1] for line in seen[0].split(b"\r\n") if line.lower().startswith(b"content-length")]
    assert said == ([] if length is None else [length])


@pytest.mark.parametrize("url", [
    "ftp://a/", "file:///etc/passwd", "gopher://a/", "//a/", "/a", "a", "", "http:/a", "http:///path", "http://",
    "http://u:p@h/", "http://u@h/", "http://h:0/", "http://h:65536/", "http://h:-1/", "http://h:\u0661/",
    "http://h:8x/", "http://[::1", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[g]/", "http://a b/",
    "http://h/\n", "http://h/\x00", "http://h\\x/", "http://h/\\x", "http://%31/", "http://a..b/", "http://-a/",
    "http://" + "a" * 300 + "/", "http://h/" + "x" * 9000, "http://h/\ud800", "http://.", "http://\u3002/", None, 7])
def test_no_url(url):
    with pytest.raises(low.BadRequest) as e:
        low.request("GET", url, timeout=1, max_bytes=1)
    assert e.value.failure == "invalid_arguments"


@pytest.mark.parametrize("url, want", [
    ("HTTP://EX.com", "http://ex.com/"), ("https://ex.com.:443/a", "https://ex.com/a"), ("http://h:8080?x", "http://h:8080/?x"),
    ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"), ("http://[2001:DB8::1]:81/", "http://[2001:db8::1]:81/"),
    ("http://h/<\">{}|^`", "http://h/%3C%22%3E%7B%7D%7C%5E%60"), ("http://h/%41%zz", "http://h/%41%zz"),
    # full-width digits are an address like another: judged where it is connected to
    ("http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1/")])
def test_urls(url, want):
    assert low.url(url).text == want


@pytest.mark.parametrize("headers", [
    {"A B": "x"}, {"": "x"}, {"A:": "x"}, {"A": "x\r\nB: y"}, {"A": "x\ny"}, {"A": "x\x00"}, {"Host": "other"},
    {"content-length": "1"}, {"Transfer-Encoding": "chunked"}, {"Connection": "upgrade"}, {"A\r\nB": "x"}])
def test_no_headers(headers):
    with pytest.raises(low.BadRequest):
        low.request("GET", "http://127.0.0.1:1/", headers, timeout=1, max_bytes=1)


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GE T", "", "G\r\n", "\u00c4"])
def test_no_method(method):
    with pytest.raises(low.BadRequest):
        low.request(method, "http://127.0.0.1:1/", timeout=1, max_bytes=1)


# ---- framing ----

@pytest.mark.parametrize("reply, body", [
    (OK, b"hello"),
    (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
    (b"HTTP/1.0 200 OK\r\n\r\nx", b"x"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n", b"abcde"),
    (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK, b"hello")])
def test_framing(reply, body):
    assert get(reply)[0].body == body


def test_a_server_that_does_not_close_is_not_waited_for():
    for reply in (OK, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"):
        read = threading.Event()
        assert get(lambda c, reply=reply: (c.sendall(reply), read.wait()), timeout=HANG_S)[0].body == b"hello"
        read.set()


def test_head_has_no_body():
    r, _ = get(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", method="HEAD")
    assert r.body == b"" and r.headers["content-length"] == "5"


@pytest.mark.parametrize("reply", [
    b"", b"nonsense\r\n\r\n", b"HTTP/1.1 xxx OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", b"HTTP/1.1 101 Switching\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000 + b"\r\n", b"SSH-2.0-OpenSSH\r\n", b"\x16\x03\x01\x00\xa5"])
def test_no_http(reply):
    with pytest.raises(low.ProtocolError) as e:
        get(reply)
    assert e.value.failure == "upstream_error" and e.value.url.startswith("http://127.0.0.1:")


def test_connection_refused():
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with pytest.raises(low.ConnectError) as e:
        low.request("GET", f"http://127.0.0.1:{port}/", timeout=2, max_bytes=1)
    assert "refused" in str(e.value).lower()


# ---- bounds (G-114, W-33) ----

@pytest.mark.parametrize("reply", [
    b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000, b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n",
    coded(b"gzip", packed(b"x" * 2000)), coded(b"deflate", zlib.compress(b"x" * 2000))])
def test_body_cap(reply):
    with pytest.raises(low.TooLarge) as e:
        get(reply)
    assert e.value.failure == "limit" and "1000 bytes" in str(e.value)
    r, _ = get(reply, truncate=True)
    assert r.body == b"x" * 1000 and r.truncated


@pytest.mark.parametrize("size", [999, 1000])
def test_up_to_the_cap(size):
    for reply in (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * size, coded(b"gzip", packed(b"x" * size))):
        r, _ = get(reply)
        assert len(r.body) == size and not r.truncated


def test_a_bomb_is_unpacked_no_further_than_asked(monkeypatch):
    z = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(z.compress(b"\0" * (1 << 20)) for _ in range(200)) + z.flush()     # 200 MiB from 200 kB
    unpacked = []

    make = zlib.decompressobj

    class Counting:
        """zlib's object, whose output is counted."""
        def __init__(self, *args):
            self.z = make(*args)

        def decompress(self, *args):
            out = self.z.decompress(*args)
            unpacked.append(len(out))
            return out

        def __getattr__(self, name):
            return getattr(self.z, name)
    monkeypatch.setattr(low.zlib, "decompressobj", Counting)
    with pytest.raises(low.TooLarge):
        get(coded(b"gzip", bomb), max_bytes=1_000_000, timeout=HANG_S)
    assert 1_000_000 <= sum(unpacked) < 2_000_000


def test_a_head_without_end():
    def head(c):
        c.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            c.sendall(b"a: " + b"b" * 60000 + b"\r\n")
    with pytest.raises(low.Error):
        get(head)
    with pytest.raises(low.TooLarge) as e:
        get(b"HTTP/1.1 100 Continue\r\n\r\n" * 10000)
    assert "head" in str(e.value)


def test_a_body_without_end():
    def endless(c):
        c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            c.sendall(b"1;" + b"e" * 1000 + b"\r\nx\r\n")        # mostly extensions
    with pytest.raises(low.Error) as e:
        get(endless, max_bytes=100_000, timeout=HANG_S)
    assert not isinstance(e.value, low.Timeout)


def test_time_bounds_the_whole():
    def drip(c):
        for byte in OK * 20:
            c.sendall(bytes([byte]))
            time.sleep(0.05)
    # The first would have its answer after a minute, the second never.
    over = threading.Event()
    for reply in (drip, lambda c: over.wait()):
        with pytest.raises(low.Timeout) as e:
            get(reply, timeout=0.4)
        assert e.value.failure == "timeout"
    over.set()


# ---- codings ----

def bare_deflate(body):
    z = zlib.compressobj(wbits=-15)
    return z.compress(body) + z.flush()


@pytest.mark.parametrize("coding, body", [
    (b"gzip", packed(b"hello")), (b"x-gzip", packed(b"hello")), (b"GZIP", packed(b"hello")),
    (b"gzip", packed(b"hel") + packed(b"lo")), (b"gzip", packed(b"hello") + b"\0" * 10),
    (b"deflate", zlib.compress(b"hello")), (b"deflate", bare_deflate(b"hello")), (b"identity", b"hello")])
def test_codings(coding, body):
    assert get(coded(coding, body))[0].body == b"hello"


@pytest.mark.parametrize("coding, body", [
    (b"br", b"x"), (b"gzip, gzip", b"x"), (b"gzip", b"no gzip"), (b"gzip", packed(b"hello" * 99)[:-9])])
def test_no_codings(coding, body):
    with pytest.raises(low.ProtocolError):
        get(coded(coding, body))


def test_not_decompressed_unless_asked():
    body = packed(b"hello")
    r, seen = get(coded(b"gzip", body), decompress=False)
    assert r.body == body and b"Accept-Encoding: identity" in seen[0]


# ---- redirects ----

def test_a_redirect_is_an_answer_unless_followed():
    r, _ = get(MOVED % b"/b")
    assert r.status == 302 and r.headers["location"] == "/b"
    r, seen = get(MOVED % b"/b?x=1", OK, redirects=1)
    assert r.body == b"hello" and seen[1].startswith(b"GET /b?x=1 ") and r.url.endswith("/b?x=1")


@pytest.mark.parametrize("location", [
    b"file:///etc/passwd", b"ftp://a/", b"gopher://a/", b"http://u:p@a/", b"http://[::1", b"javascript:x",
    b"http://a\\b/", b"http://h:0/"])
def test_redirects_to_nowhere(location):
    with pytest.raises(low.RedirectError):
        get(MOVED % location, redirects=5)


def test_redirects_are_counted():
    with pytest.raises(low.RedirectError) as e:
        get(*[MOVED % b"/again"] * 9, redirects=5)
    assert "5 times" in str(e.value)


@pytest.mark.parametrize("status, method, becomes", [
    (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"), (307, "POST", "POST"),
    (308, "PUT", "PUT"), (302, "HEAD", "HEAD"), (303, "HEAD", "HEAD"), (301, "PATCH", "PATCH")])
def test_methods_of_redirects(status, method, becomes):
    head = b"HTTP/1.1 %d X\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n" % status
    body = None if method == "HEAD" else b"data"
    _, seen = get(head, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", method=method, body=body, redirects=1,
                  headers={"Content-Type": "text/plain"} if body else None)
    assert seen[1].startswith(becomes.encode() + b" /b ")
    assert (b"Content-Length: 4" in seen[1]) == (becomes == method and body is not None)
    assert (b"Content-Type" in seen[1]) == (becomes == method and body is not None)


def test_keys_stay_with_their_origin():
    with Raw(OK) as other, Raw(MOVED % other.url("/x").encode()) as first:
        low.request("GET", first.url(), {"Authorization": "k", "X-Api-Key": "k", "Cookie": "k", "Accept": "a/b"},
                    timeout=5, max_bytes=100, redirects=1)
    assert b"X-Api-Key: k" in first.seen[0]
    assert b"Accept: a/b" in other.seen[0] and b": k" not in other.seen[0]
    with Raw(OK) as other, Raw(b"HTTP/1.1 307 X\r\nLocation: %b\r\n\r\n" % other.url().encode()) as first:
        with pytest.raises(low.RedirectError):
            low.request("POST", first.url(), body=b"secret", timeout=5, max_bytes=100, redirects=1)
        assert other.seen == []


def test_no_proxy_is_asked(monkeypatch):     # W-32
    with Raw(OK) as proxy, Raw(OK) as up:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        assert low.request("GET", up.url(), timeout=5, max_bytes=100).body == b"hello"
        assert proxy.seen == []


# ---- streams ----

def test_what_stands_in_sentences_is_printable():
    """The status line is shown where a call failed, in logs and lists of sources."""
    r, _ = get(b"HTTP/1.1 404 No\x1b[2J\x9b1m\r\nContent-Length: 0\r\n\r\n")
    assert r.reason == "No [2J 1m"
    for reply in (b"HT\x1b[2JTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 2\x1b[2J OK\r\n\r\n", b"\x1b]0;x\x07\r\n\r\n",
                  coded(b"\x1b[2J", b""), MOVED % b"http://\x1b[2J/", MOVED % b"http://a/\x9b"):
        with pytest.raises(low.Error) as e:
            get(reply, redirects=1)
        assert str(e.value).isprintable(), str(e.value)


@pytest.mark.parametrize("name", ["idna", "IDNA", "punycode", "Unicode-Escape", "raw_unicode_escape", "undefined",
                                  "hex", "rot13", "zip", "nonsense", "utf-8\u00fc", "x" * 3000])
def test_charsets_that_are_none(name):
    """Names of codecs that no text has: each answer is a text all the same."""
    body = b"caf\xc3\xa9 \\u202e -\xff." + b"a" * 30000
    r, _ = get(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=%b\r\n\r\n" % name.encode() + body,
               max_bytes=1 << 20)
    # idna would raise and punycode take the square of the length: neither is asked.
    assert r.charset == "utf-8" and r.text() == body.decode("utf-8", "replace")


def test_lines_as_they_come():
    def events(c):
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\r\n\r\ndata: 2\n")
        seen.wait()
        c.sendall(b"\r\nlast")
    seen = threading.Event()
    with Raw(events) as up, low.stream("GET", up.url(), timeout=HANG_S, max_bytes=1000) as r:
        lines = r.lines()
        assert [next(lines) for _ in range(3)] == [b"data: 1", b"", b"data: 2"]
        seen.set()
        assert list(lines) == [b"", b"last"]


def test_a_line_has_an_end():
    with Raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000) as up, low.stream(
            "GET", up.url(), timeout=5, max_bytes=10000) as r:
        with pytest.raises(low.TooLarge):
            list(r.lines(max_line=100))


# ---- mcpbox.http ----

def echo(r):
    if r.path.startswith("/status/"):
        return int(r.path[8:]), {}, {"error": "of the server"}
    return 200, {}, {"method": r.method, "path": r.path, "query": r.query, "body": r.body.decode(),
                     "type": r.headers.get("content-type")}


@pytest.fixture(scope="module")
def service():
    with Service(echo) as s:
        yield s


def test_the_methods(service):
    for method in ("get", "post", "put", "patch", "delete", "options"):
        r = getattr(mcpbox.http, method)(service.url("/x"))
        assert r.status_code == r.status == 200 and r.ok and r.json()["method"] == method.upper()
    r = mcpbox.http.head(service.url("/x"))
    assert r.content == b"" and int(r.headers["Content-Length"]) > 0


def test_bodies(service):
    def sent(**options):
        got = mcpbox.http.post(service.url("/x"), **options).json()
        return got["body"], got["type"]
    assert sent(json={"a": [1, None, "\u00fc"]}) == ('{"a":[1,null,"\u00fc"]}', "application/json")
    assert sent(data={"a": "1 2", "b": [1, 2]}) == ("a=1+2&b=1&b=2", "application/x-www-form-urlencoded")
    assert sent(content=b"\x41") == ("A", None)
    assert sent(content="\u00fc") == ("\u00fc", "text/plain; charset=utf-8")
    assert sent(data="x", headers={"Content-Type": "a/b"}) == ("x", "a/b")
    for bad in ({"json": 1, "data": "x"}, {"content": 7}, {"content": open}):
        with pytest.raises(mcpbox.http.BadRequest):
            mcpbox.http.post(service.url("/x"), **bad)


def test_params(service):
    r = mcpbox.http.get(service.url("/x?a=0"), params={"b": "1&2", "c": [1, True], "d": None, "e": "\u00fc"})
    assert r.json()["query"] == [["a", "0"], ["b", "1&2"], ["c", "1"], ["c", "true"], ["e", "\u00fc"]]


def test_status_errors_show_status_and_body(service):
    r = mcpbox.http.get(service.url("/status/404"))
    assert not r.ok
    with pytest.raises(mcpbox.http.StatusError) as e:
        r.raise_for_status()
    assert "HTTP 404" in str(e.value) and "of the server" in str(e.value) and e.value.status_code == 404
    report = mcpbox_errors.text(e.value, "tool", "", b"", False)
    assert "StatusError: HTTP 404" in report and "of the server" in report
    assert mcpbox.http.get(service.url("/x")).raise_for_status().json()["path"] == "/x"


def test_not_json_is_shown(service):
    with Raw(b"HTTP/1.1 200 OK\r\n\r\n<html>\x07no</html>") as up:
        with pytest.raises(mcpbox.http.ProtocolError) as e:
            mcpbox.http.get(up.url()).json()
    assert "is not JSON" in str(e.value) and "<html> no</html>" in str(e.value)


def test_awaited(service):
    async def main():
        a, b = await asyncio.gather(mcpbox.http.get(service.url("/a")), mcpbox.http.post(service.url("/b"), json=1))
        lines = []
        async with mcpbox.http.stream("GET", service.url("/c")) as r:
            assert r.status == 200
            async for line in r.iter_lines():
                lines.append(line)
        return a.json()["path"], b.json()["path"], json.loads(lines[0])["path"]
    assert asyncio.run(main()) == ("/a", "/b", "/c")


def test_streamed(service):
    with mcpbox.http.stream("POST", service.url("/c"), json=[1]) as r:
        assert json.loads(b"".join(r.iter_bytes()))["body"] == "[1]"
    with Raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100) as up, mcpbox.http.stream("GET", up.url(), max_bytes=50) as r:
        got = []
        with pytest.raises(mcpbox.http.TooLarge):
            for piece in r.iter_bytes():
                got.append(piece)
        assert b"".join(got) == b"x" * 50
    with mcpbox.http.stream("GET", service.url("/status/500")) as r:
        with pytest.raises(mcpbox.http.StatusError):
            r.raise_for_status()


BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


def test_retries_of_what_may_be_repeated(monkeypatch):
    reset = lambda c: c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # noqa: E731
    with Raw(BUSY, reset, OK) as up:
        assert mcpbox.http.get(up.url()).text == "hello" and len(up.seen) == 3
    with Raw(BUSY, OK) as up:
        assert mcpbox.http.post(up.url()).status == 503 and len(up.seen) == 1
    with Raw(BUSY, BUSY, BUSY, OK) as up:
        assert mcpbox.http.put(up.url()).status == 503 and len(up.seen) == 3
    with Raw(BUSY, OK) as up:
        assert mcpbox.http.get(up.url(), retries=0).status == 503
    with Raw(OK) as up, pytest.raises(mcpbox.http.BadRequest):
        mcpbox.http.post(up.url(), retries=2)
    for odd in (b"nan", b"-5", b"Wed, 21 Oct 2015 07:28:00 GMT", b"1e400"):
        with Raw(BUSY[:-4] + b"\r\nRetry-After: %b\r\n\r\n" % odd, OK) as up:
            assert mcpbox.http.get(up.url(), timeout=3).status == (503 if odd == b"1e400" else 200)
    # Longer than there is time: the answer as it is, at once.
    with Raw(BUSY[:-4] + b"\r\nRetry-After: 60\r\n\r\n", OK) as up:
        monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail(f"it waits {seconds} s"))
        assert mcpbox.http.get(up.url(), timeout=3).status == 503


def test_secrets_are_not_half_shown(monkeypatch):
    import mcpbox_hide
    monkeypatch.setattr(mcpbox_hide, "_hidden", ("verysecretvalue",))
    with Raw(b"HTTP/1.1 401 No\r\n\r\nyour key verysecretvalue is bad") as up:
        with pytest.raises(mcpbox.http.StatusError) as e:
            mcpbox.http.get(up.url("/?key=verysecretvalue")).raise_for_status()
    assert "verysecret" not in str(e.value) and "[secret]" in str(e.value)
