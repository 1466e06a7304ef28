"""mcpbox.http: requests to other servers from a tool.

    r = mcpbox.http.get("https://api.example.com/items", params={"q": "x"})
    r.raise_for_status()
    return r.json()

In `async def main` the same names are awaited: `await mcpbox.http.get(...)`.
Names and behaviour are those of requests and httpx where they have the same.
"""

import asyncio
import errno
import functools
import json as _json
import time
import urllib.parse

from mcpbox_hide import hidden
import mcpbox_http
from mcpbox_http import (BadRequest, ConnectError, Error, ProtocolError,
                         RedirectError, Timeout, TlsError, TooLarge)

__all__ = [
    "BadRequest", "ConnectError", "Error", "ProtocolError", "RedirectError",
    "Response", "StatusError", "Timeout", "TlsError", "TooLarge", "delete",
    "get", "head", "options", "patch", "post", "put", "request", "stream",
]

TIMEOUT = 30.0                  # seconds, as a call's own default
MAX_BYTES = 10 * 1024 * 1024
BODY_MAX = 64 * 1024 * 1024     # of what is sent
REDIRECTS = 5
RETRIES = 2
PREVIEW = 1000                  # characters of a body in an error

#: RFC 9110, 9.2.2: twice is as good as once.
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_AGAIN = frozenset({429, 502, 503, 504})
_FLEETING = frozenset({errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE,
                       errno.ETIMEDOUT, errno.EHOSTUNREACH})


def preview(body, charset="utf-8"):
    """The start of a body for people: no secrets, no control characters."""
    text = body[:4 * PREVIEW].decode(charset, "replace")
    text = hidden(text, torn=len(body) > 4 * PREVIEW)
    text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
    text = text.strip()
    return text if len(text) <= PREVIEW else text[:PREVIEW] + " [...]"


class StatusError(Error):
    """An answer that says it failed; `response` has all of it."""

    def __init__(self, method, response):
        self.response = response
        self.url = response.url
        self.status_code = response.status
        text = (f"HTTP {response.status} {response.reason} from {method} "
                f"{hidden(response.url)[:500]}".rstrip())
        shown = preview(response.body, response.charset)
        super().__init__(f"{text}\n{shown}" if shown else text)


class Response:
    """status_code, headers, text, content, json(), ok, raise_for_status()."""

    def __init__(self, method, r):
        self._method, self._r = method, r
        self.status = self.status_code = r.status
        self.reason, self.headers, self.url = r.reason, r.headers, r.url

    @property
    def content(self):
        return self._r.body

    @property
    def text(self):
        return self._r.text()

    @property
    def ok(self):
        return self._r.ok

    @property
    def encoding(self):
        return self._r.charset

    def json(self):
        """The body as JSON; ProtocolError shows what it is instead."""
        try:
            return _json.loads(self._r.body)
        except (ValueError, RecursionError) as e:
            error = ProtocolError(
                f"the answer of {self._method} {hidden(self.url)[:500]} is "
                f"not JSON: {e}\n{preview(self._r.body, self._r.charset)}")
            error.url = self.url
            raise error from None

    def raise_for_status(self):
        """StatusError unless the status is 2xx; else the response itself."""
        if not self.ok:
            raise StatusError(self._method, self._r)
        return self

    def __repr__(self):
        return f"<Response [{self.status}]>"


def _address(url, params):
    if not params:
        return url
    items = params.items() if hasattr(params, "items") else params
    pairs = []
    for name, value in items:
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if v is not None:
                pairs.append((name, str(v).lower() if isinstance(v, bool)
                              else v))
    url, _, fragment = str(url).partition("#")
    return (url + ("&" if "?" in url else "?")
            + urllib.parse.urlencode(pairs))


def _content(headers, json, data, content):
    """(headers, body): at most one of the three is the body."""
    if sum(x is not None for x in (json, data, content)) > 1:
        raise BadRequest("give one of json, data and content")
    headers = mcpbox_http.header_list(headers)
    kind = body = None
    if json is not None:
        import mcpbox_results
        body, kind = mcpbox_results.encode(json, BODY_MAX), "application/json"
    elif hasattr(data, "items") or isinstance(data, (list, tuple)):
        body = urllib.parse.urlencode(
            list(data.items()) if hasattr(data, "items") else data,
            doseq=True).encode("ascii")
        kind = "application/x-www-form-urlencoded"
    else:
        body = content if data is None else data
        if isinstance(body, str):
            body, kind = body.encode("utf-8"), "text/plain; charset=utf-8"
        elif body is not None and not isinstance(body, (bytes, bytearray)):
            raise BadRequest("content is bytes or text; send a file's "
                             "read(), JSON as json=, a form as data={...}")
    if kind and not any(n.lower() == "content-type" for n, _ in headers):
        headers.append(("Content-Type", kind))
    return headers, body


def _tries(method, retries):
    if retries is None:
        return 1 + (RETRIES if method in IDEMPOTENT else 0)
    if retries and method not in IDEMPOTENT:
        raise BadRequest(f"{method} is not repeated: done twice it may do "
                         "twice as much")
    return 1 + min(int(retries), 10)


def _pause(response, turn):
    """Seconds before the next try."""
    wait = 0.2 * 2 ** turn
    if response is not None:
        try:
            asked = float(response.headers.get("retry-after", 0))
            if asked > wait:        # nan is not
                wait = asked
        except ValueError:
            pass            # a date: the usual pause
    return wait


def _request(method, url, params, headers, json, data, content, timeout,
             retries, redirects, max_bytes):
    method = str(method).upper()
    headers, body = _content(headers, json, data, content)
    address = _address(url, params)
    tries = _tries(method, retries)
    until = time.monotonic() + timeout
    for turn in range(tries):
        last, response = turn == tries - 1, None
        try:
            response = mcpbox_http.request(
                method, address, headers, body, max_bytes=max_bytes,
                timeout=until - time.monotonic(), redirects=redirects)
            if last or response.status not in _AGAIN:
                return Response(method, response)
        except ConnectError as e:
            if last or getattr(e, "errno", None) not in _FLEETING:
                raise
        wait = _pause(response, turn)
        if time.monotonic() + wait >= until:
            if response is not None:
                return Response(method, response)
            raise Timeout(f"no answer in {timeout:g} s, tried "
                          f"{turn + 1} times")
        time.sleep(wait)


def _waits():
    """Are we called by a coroutine? Then it gets something to await."""
    return asyncio._get_running_loop() is not None


def request(method, url, *, params=None, headers=None, json=None, data=None,
            content=None, timeout=TIMEOUT, retries=None,
            follow_redirects=True, max_bytes=MAX_BYTES):
    """One request, its whole answer.

    params: of the query. One of json (anything a tool may return), data (a
    form) and content (bytes, text). timeout: seconds for all of it. retries:
    after a lost connection, 429, 502, 503 and 504; 2 of them for methods that
    may be repeated, and for no other. max_bytes: of the answer, as it travels
    and unpacked; TooLarge behind it."""
    work = functools.partial(
        _request, method, url, params, headers, json, data, content,
        float(timeout), retries, REDIRECTS if follow_redirects else 0,
        max_bytes)
    return asyncio.to_thread(work) if _waits() else work()


def get(url, **options):
    return request("GET", url, **options)


def head(url, **options):
    return request("HEAD", url, **options)


def options(url, **options):
    return request("OPTIONS", url, **options)


def delete(url, **options):
    return request("DELETE", url, **options)


def post(url, **options):
    return request("POST", url, **options)


def put(url, **options):
    return request("PUT", url, **options)


def patch(url, **options):
    return request("PATCH", url, **options)


class _Streamed:
    """An answer that is read as it comes: a context manager, and one for
    `async with`, in which bytes and lines are gone through by `async for`."""

    def __init__(self, work):
        self._work, self._r = work, None

    def _open(self):
        self._r = self._work()
        self.status = self.status_code = self._r.status
        self.headers, self.url = self._r.headers, self._r.url
        self.ok = self._r.ok
        return self

    def __enter__(self):
        return self._open()

    def __exit__(self, *_):
        if self._r is not None:
            self._r.close()

    async def __aenter__(self):
        return await asyncio.to_thread(self._open)

    async def __aexit__(self, *_):
        self.__exit__()

    def iter_bytes(self):
        """Pieces of the body."""
        return _Pieces(self._r.bytes())

    def iter_lines(self):
        """Lines of the body, as text without their ends."""
        return _Pieces(line.decode("utf-8", "replace")
                       for line in self._r.lines())

    def raise_for_status(self):
        if not self.ok:
            self._r.read(truncate=True)
            raise StatusError("the stream of", self._r)
        return self


class _Pieces:
    """An iterator for `for` and `async for`."""

    _end = object()

    def __init__(self, source):
        self._source = source

    def __iter__(self):
        return self._source

    def __aiter__(self):
        return self

    async def __anext__(self):
        piece = await asyncio.to_thread(next, self._source, self._end)
        if piece is self._end:
            raise StopAsyncIteration
        return piece


def stream(method, url, *, params=None, headers=None, json=None, data=None,
           content=None, timeout=TIMEOUT, follow_redirects=True,
           max_bytes=MAX_BYTES):
    """`with stream("GET", url) as r: for line in r.iter_lines(): ...`; not
    retried. timeout and max_bytes bound all of it, as for request."""
    headers, body = _content(headers, json, data, content)
    return _Streamed(functools.partial(
        mcpbox_http.stream, method, _address(url, params), headers, body,
        timeout=float(timeout), max_bytes=max_bytes,
        redirects=REDIRECTS if follow_redirects else 0))
