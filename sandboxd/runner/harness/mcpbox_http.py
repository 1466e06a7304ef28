"""HTTP/1.1 for everything of ours in a runner: mcpbox.http, the drivers of
kinds http and mcp, the installer of modules.

    r = request("GET", "https://example.com/", timeout=10, max_bytes=1 << 20)
    with stream("GET", url, timeout=10, max_bytes=1 << 20) as r:
        for chunk in r.bytes(): ...

What the other side sends is a stranger's: the head, the body as it travels,
the body unpacked and the time all of it takes have bounds. One connection a
request; no proxies, cookies or .netrc. Where a connection may lead is not
decided here but outside of the runner, for each of them, redirects too.
"""

import http.client
import io
import re
import socket
import ssl
import time
import urllib.parse
import zlib

#: Bytes of status line and header fields, interim answers included.
HEAD_MAX = 64 * 1024
#: What framing may add to a body, beside as much as the body itself: chunk
#: sizes, extensions and trailers.
FRAMING_MAX = 64 * 1024
#: Characters of a URL; most servers take no more.
URL_MAX = 8192
READ = 64 * 1024
#: Redirects in a row that a caller may ask for.
REDIRECTS_MAX = 20
USER_AGENT = "mcpbox"

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHOD = re.compile(r"[A-Z][A-Z0-9-]{0,31}")
_CONTROLS = re.compile(r"[\x00-\x20\x7f\\]")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_V6 = re.compile(r"[0-9A-Fa-f:.]+")
#: Made here from the URL and the body; a caller's would contradict them.
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection",
                   "keep-alive", "upgrade", "te", "trailer", "expect",
                   "proxy-authorization", "proxy-connection"})
#: All that follows a redirect to another origin: anything else may be a key.
_HARMLESS = frozenset({"accept", "accept-encoding", "accept-language",
                       "cache-control", "if-modified-since", "if-none-match",
                       "range", "user-agent"})


#: Codecs of Python's that no text travels in: they take no errors="replace",
#: or the square of the time, or make other characters of plain ones.
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode_escape",
                          "raw_unicode_escape", "undefined"})


class Error(Exception):
    """A request without a usable answer. failure: "upstream_error",
    "timeout" or "limit", as a call that ends by it is told; url: of the hop at
    fault."""

    failure = "upstream_error"
    url = None


class BadRequest(Error, ValueError):
    """The request cannot be made: a URL, header or method that is none."""

    failure = "invalid_arguments"


class ConnectError(Error, ConnectionError):
    """No connection: the name is unknown here, or nobody answers, or the host
    was not granted."""


class TlsError(Error):
    """The other side's certificate or TLS is not acceptable."""


class ProtocolError(Error):
    """What came back is not HTTP/1.1, or broke off."""


class RedirectError(Error):
    """A redirect that is not followed."""


class Timeout(Error, TimeoutError):
    """The whole did not end in its time."""

    failure = "timeout"


class TooLarge(Error):
    """More came than the caller takes, packed or unpacked."""

    failure = "limit"


class Url:
    """An address taken apart; `target` is what stands in the request line."""

    __slots__ = ("scheme", "host", "port", "target", "text")

    def __init__(self, scheme, host, port, target):
        self.scheme, self.host, self.port = scheme, host, port
        self.target = target
        self.text = f"{scheme}://{self.authority}{target}"

    @property
    def authority(self):
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def origin(self):
        return self.scheme, self.host, self.port


def _host(given, text):
    """A name as A-labels in lower case, or an IPv6 address without brackets."""
    if given.startswith("["):
        host = given[1:-1]
        if not given.endswith("]") or not _V6.fullmatch(host):
            raise BadRequest(f"{text!r} has no usable host")
        return host.lower()
    host = urllib.parse.unquote(given)
    if host != given:
        raise BadRequest(f"{text!r}: the host is percent-encoded")
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise BadRequest(f"{text!r} has no usable host") from None
    host = host.removesuffix(".")
    if len(host) > 253 or not _HOST.fullmatch(host) or ".." in host:
        raise BadRequest(f"{text!r} has no usable host")
    return host.lower()


def url(text):
    """Takes a URL apart; BadRequest for what is no http or https URL, and for
    user names in it: they are a place to hide a host, or a password."""
    if not isinstance(text, str):
        raise BadRequest(f"a URL is text, not {type(text).__name__}")
    if len(text) > URL_MAX:
        raise BadRequest(f"the URL has more than {URL_MAX} characters")
    shown = text[:200]
    if _CONTROLS.search(text):
        raise BadRequest(f"{shown!r} has blanks, control characters or "
                         "backslashes; percent-encode them")
    scheme, colon, rest = text.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in ("http", "https"):
        raise BadRequest(f"{shown!r} is no http or https URL")
    rest = rest.partition("#")[0]
    at = min((i for i in (rest.find("/"), rest.find("?")) if i >= 0),
             default=len(rest))
    netloc, target = rest[:at], rest[at:]
    if "@" in netloc:
        raise BadRequest("the URL has a user name or password; send an "
                         "Authorization header")
    if netloc.startswith("["):
        host, bracket, port = netloc.partition("]")
        host += bracket
        if port and not port.startswith(":"):
            raise BadRequest(f"{shown!r} has no usable host")
        port = port[1:]
    else:
        host, _, port = netloc.partition(":")
    if port and (not port.isascii() or not port.isdigit() or len(port) > 5
                 or not 1 <= int(port) <= 65535):
        raise BadRequest(f"{shown!r} has no usable port")
    number = int(port) if port else 443 if scheme == "https" else 80
    if not target.startswith("/"):
        target = "/" + target
    try:
        target = urllib.parse.quote(target, safe="/?%:@!$&'()*+,;=~-._[]")
    except UnicodeError:
        raise BadRequest("the URL is no text: it has half a surrogate pair"
                         ) from None
    return Url(scheme, _host(host, shown), number, target)


def header_list(headers):
    """Pairs of text from a mapping or pairs; BadRequest for what would become
    more than one field, or is not the caller's to say."""
    if headers is None:
        return []
    items = headers.items() if hasattr(headers, "items") else headers
    out = []
    for name, value in items:
        name = str(name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        value = str(value)
        if not _NAME.fullmatch(name):
            raise BadRequest(f"{name[:100]!r} is no name of a header")
        if name.lower() in _OURS:
            raise BadRequest(f"the header {name} is made from the URL and "
                             "the body")
        if _BAD_VALUE.search(value):
            raise BadRequest(f"the header {name} has control characters")
        out.append((name, value))
    return out


class _Raw(io.RawIOBase):
    """A socket's bytes until a moment, and so many. That the peer is slow, or
    sends without end, is met here, wherever http.client is reading."""

    def __init__(self, sock, until, budget):
        self._sock, self._until, self.budget = sock, until, budget
        self.spent = f"the answer's head is larger than {HEAD_MAX} bytes"

    def readable(self):
        return True

    def readinto(self, into):
        if self.budget <= 0:
            raise TooLarge(self.spent)
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        n = self._sock.recv_into(into, min(len(into), self.budget))
        self.budget -= n
        return n


class _Sock:
    """What http.client takes for a socket. It is closed by who opened it."""

    def __init__(self, sock, until, budget):
        self.sock, self._until = sock, until
        self.raw = _Raw(sock, until, budget)

    def makefile(self, mode):
        return io.BufferedReader(self.raw, READ)

    def sendall(self, data):
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)
        self.sock.sendall(data)

    def close(self):
        pass


class _Answer(http.client.HTTPResponse):
    """Interim answers (103 too) are no answers."""

    def _read_status(self):
        while True:
            version, status, reason = super()._read_status()
            if not 100 <= status < 200:
                return version, status, reason
            if status == 101:
                raise ProtocolError("the other side changes the protocol")
            http.client.parse_headers(self.fp)


class _Connection(http.client.HTTPConnection):
    response_class = _Answer


_tls = None


def _tls_context():
    """The certificates are read once a process."""
    global _tls
    if _tls is None:
        _tls = ssl.create_default_context()
        _tls.set_alpn_protocols(["http/1.1"])
    return _tls


def _dial(u, until, context):
    """A connected socket; TLS is spoken on it if the URL says so."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock = socket.create_connection((u.host, u.port), left)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if u.scheme == "https":
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
            sock = (context or _tls_context()).wrap_socket(
                sock, server_hostname=u.host)
    except BaseException:
        sock.close()
        raise
    return sock


class _Gunzip:
    """gzip (of any number of members), zlib or bare deflate, unpacked no
    further than asked."""

    def __init__(self, coding):
        self._gzip = coding == "gzip"
        self._z = zlib.decompressobj(47 if self._gzip else 15)
        self._first = not self._gzip
        self._begun = False

    def unpack(self, data, most):
        """What data becomes, in pieces; `most` bytes each."""
        while data:
            if self._z.eof:
                if not self._gzip or not data.strip(b"\0"):
                    return          # padding, or what no coding allows for
                self._z = zlib.decompressobj(47)
            try:
                out = self._z.decompress(data, most)
            except zlib.error:
                if not self._first:
                    raise
                self._z = zlib.decompressobj(-15)   # servers that mean it so
                out = self._z.decompress(data, most)
            self._first = False
            self._begun = True
            data = self._z.unconsumed_tail or (
                self._z.unused_data if self._z.eof else b"")
            if out:
                yield out

    @property
    def complete(self):
        return self._z.eof or not self._begun


class Response:
    """status, reason, headers (names in any case), url of the last hop, body;
    truncated: there was more and the caller wanted no error."""

    def __init__(self, status, reason, headers, url, body=b"",
                 truncated=False):
        self.status, self.reason = status, reason
        self.headers, self.url = headers, url
        self.body, self.truncated = body, truncated

    @property
    def ok(self):
        return 200 <= self.status < 300

    @property
    def charset(self):
        """Of Content-Type; UTF-8 where it says none that Python knows."""
        name = self.headers.get_content_charset() or "utf-8"
        try:
            "".encode(name)
            b"".decode(name, "replace")
            if name.lower().replace("-", "_") in _NO_CHARSETS:
                return "utf-8"
        except (LookupError, UnicodeError, ValueError):
            return "utf-8"
        return name

    @property
    def media_type(self):
        """Of Content-Type, in lower case; "" if there is none."""
        if self.headers.get("content-type") is None:
            return ""
        return self.headers.get_content_type()

    def text(self):
        return self.body.decode(self.charset, "replace")

    def __repr__(self):
        return f"<Response {self.status} {self.reason}>"


class Stream(Response):
    """An answer whose body comes as it is read."""

    def __init__(self, answer, sock, u, max_bytes, decompress):
        super().__init__(answer.status, _plain(answer.reason), answer.headers,
                         u.text)
        self._answer, self._sock, self._max = answer, sock, max_bytes
        self._left = None if answer.chunked else answer.length
        self._unpack = None
        coding = (self.headers.get("content-encoding") or "").strip().lower()
        if decompress and coding not in ("", "identity"):
            coding = coding.removeprefix("x-")
            if coding not in ("gzip", "deflate"):
                raise ProtocolError("the answer has a coding that was not "
                                    f"asked for: {coding[:50]!r}")
            self._unpack = _Gunzip(coding)

    def _wire(self):
        """Pieces of the body as they arrive."""
        r, total = self._answer, 0
        while self._left != 0:
            if r.chunked:
                data = r.read1(READ)
            else:
                data = r.fp.read1(READ if self._left is None
                                  else min(READ, self._left))
            if not data:
                if self._left is not None and not r.chunked:
                    raise ProtocolError("the answer broke off: "
                                        f"{self._left} bytes are missing")
                return
            if self._left is not None:
                self._left -= len(data)
            total += len(data)
            if total > self._max:
                yield data[:len(data) - (total - self._max)]
                raise TooLarge("the answer is larger than "
                               f"{self._max} bytes")
            yield data

    def bytes(self):
        """Pieces of the body, unpacked. TooLarge behind max_bytes of them."""
        total = 0
        with _errors(self.url):
            for data in self._wire():
                for out in ([data] if self._unpack is None else
                            self._unpack.unpack(data, READ)):
                    total += len(out)
                    if total > self._max:
                        yield out[:len(out) - (total - self._max)]
                        raise TooLarge("the answer is larger than "
                                       f"{self._max} bytes, unpacked")
                    yield out
            if self._unpack is not None and not self._unpack.complete:
                raise ProtocolError("the packed answer broke off")

    def lines(self, max_line=1 << 20):
        """Lines of the body as bytes, without their ends: CR LF, LF or CR."""
        rest, skip = b"", False
        for data in self.bytes():
            if skip and data[:1] == b"\n":
                data = data[1:]
            skip = False
            if not data:
                continue
            skip = data.endswith(b"\r")
            rest += data
            if b"\n" in data or b"\r" in data:
                *done, rest = re.split(rb"\r\n|\n|\r", rest)
                yield from done
            if len(rest) > max_line:
                raise TooLarge(f"a line is longer than {max_line} bytes")
        if rest:
            yield rest

    def read(self, truncate=False):
        """The whole body. truncate: cut at max_bytes instead of TooLarge."""
        parts = []
        try:
            for data in self.bytes():
                parts.append(data)
        except TooLarge:
            if not truncate:
                raise
            self.truncated = True
        self.body = b"".join(parts)[:self._max]
        return self.body

    def close(self):
        try:
            self._answer.close()
        finally:
            self._sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _errors:
    """Exceptions of the library as ours, with the address they are about."""

    def __init__(self, address):
        self._address = address

    def __enter__(self):
        return self

    def __exit__(self, kind, e, _):
        ours = None
        if isinstance(e, Error):
            if e.url is None:
                e.url = self._address
            return False
        if isinstance(e, TimeoutError):
            ours = Timeout("no whole answer in the time there is")
        elif isinstance(e, ssl.SSLError):
            ours = TlsError(f"TLS failed: {_tls_text(e)}")
        elif isinstance(e, socket.gaierror):
            ours = ConnectError("the name of the host cannot be resolved "
                                "here: it is unknown, or was not granted")
        elif isinstance(e, (http.client.HTTPException, zlib.error,
                            ValueError)):
            ours = ProtocolError("what came back is no usable answer: "
                                 f"{_short(e)}")
        elif isinstance(e, OSError):
            ours = ConnectError(f"no connection: {e.strerror or _short(e)}")
            ours.errno = e.errno
        if ours is None:
            return False
        ours.url = self._address
        raise ours from e


def _plain(text):
    """A stranger's line in a sentence of ours: nothing in it moves a cursor."""
    return "".join(c if c.isprintable() else " " for c in text)


def _short(e):
    return f"{type(e).__name__}: {_plain(str(e)[:200])}"


def _tls_text(e):
    if isinstance(e, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {e.verify_message}"
    return e.reason or _short(e)


def _once(method, u, headers, body, until, max_bytes, decompress, context):
    """One hop: its Stream."""
    with _errors(u.text):
        sock = _dial(u, until, context)
        try:
            wrapped = _Sock(sock, until, HEAD_MAX)
            c = _Connection(u.host, u.port)
            c.sock = wrapped
            c.putrequest(method, u.target, skip_host=True,
                         skip_accept_encoding=True)
            c.putheader("Host", u.authority)
            for name, value in headers:
                c.putheader(name, value.encode("utf-8", "surrogateescape"))
            if body is not None:
                c.putheader("Content-Length", str(len(body)))
            elif method in ("POST", "PUT", "PATCH"):
                c.putheader("Content-Length", "0")
            c.putheader("Connection", "close")
            try:
                c.endheaders(body)
            except (BrokenPipeError, ConnectionResetError):
                pass        # it may have answered before it read everything
            answer = c.getresponse()
            # What was read of the body with the head counts for neither.
            wrapped.raw.budget = 2 * max_bytes + FRAMING_MAX
            wrapped.raw.spent = f"the answer is larger than {max_bytes} bytes"
            return Stream(answer, sock, u, max_bytes, decompress)
        except BaseException:
            sock.close()
            raise


def _next(method, u, headers, body, status, location):
    """The request that a redirect asks for."""
    try:
        following = url(urllib.parse.urljoin(u.text, location.strip()))
    except ValueError as e:
        raise RedirectError(f"it redirects to no usable address: {e}") from e
    if u.scheme == "https" and following.scheme == "http":
        raise RedirectError("it redirects from https to http")
    if (status == 303 and method != "HEAD") or (
            status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = [(n, v) for n, v in headers
                   if not n.lower().startswith("content-")]
    if following.origin != u.origin:
        if method not in ("GET", "HEAD") or body is not None:
            raise RedirectError("it redirects a request that is no GET to "
                                f"{following.authority}")
        headers = [(n, v) for n, v in headers if n.lower() in _HARMLESS]
    return method, following, headers, body


def stream(method, address, headers=None, body=None, *, timeout, max_bytes,
           redirects=0, decompress=True, context=None):
    """The answer's head, as a Stream to be closed (a context manager).

    timeout: seconds for all of it, from here to the body's last byte.
    max_bytes: of the body, as it travels and unpacked. redirects: how many
    are followed; with 0 a redirect is an answer like another. Headers other
    than the harmless ones stay behind when another origin is met, and only
    GET and HEAD go there. body: bytes. context: of TLS."""
    until = time.monotonic() + timeout
    method = str(method).upper()
    if not _METHOD.fullmatch(method) or method in ("CONNECT", "TRACE"):
        raise BadRequest(f"{method[:50]!r} is no method to be used here")
    if body is not None and not isinstance(body, (bytes, bytearray)):
        raise BadRequest("a body is bytes")
    u = url(address)
    headers = header_list(headers)
    names = {n.lower() for n, _ in headers}
    for name, value in (("User-Agent", USER_AGENT), ("Accept", "*/*"),
                        ("Accept-Encoding",
                         "gzip, deflate" if decompress else "identity")):
        if name.lower() not in names:
            headers.append((name, value))
    followed = 0
    while True:
        r = _once(method, u, headers, body, until, max_bytes, decompress,
                  context)
        location = r.headers.get("location")
        if redirects == 0 or r.status not in _REDIRECTS or location is None:
            return r
        r.close()
        with _errors(u.text):
            if followed == min(redirects, REDIRECTS_MAX):
                raise RedirectError("it redirects more than "
                                    f"{followed} times")
            method, u, headers, body = _next(method, u, headers, body,
                                             r.status, location)
        followed += 1


def request(method, address, headers=None, body=None, *, timeout, max_bytes,
            redirects=0, decompress=True, truncate=False, context=None):
    """The whole answer, as a Response; see stream. truncate: a longer body is
    cut (`truncated` says so) instead of TooLarge."""
    with stream(method, address, headers, body, timeout=timeout,
                max_bytes=max_bytes, redirects=redirects,
                decompress=decompress, context=context) as r:
        data = r.read(truncate)
    return Response(r.status, r.reason, r.headers, r.url, data, r.truncated)
