"""Speaks MCP as a client: the way to the other server and back.

Two transports, Streamable HTTP and the older HTTP with a lasting event stream
("sse"), and two eras, 2026-07-28 (each request stands alone) and the revisions
before it (initialize, then perhaps a session). Which era a server speaks is
found out by asking, unless somebody found out before.

Everything that comes is a stranger's: it is bounded in bytes by mcpbox_http, in
messages here, and read as JSON of a bounded depth. What the other server asks
of its client is refused but for ping; this client declares no capability.
"""

import base64
import json
import re
import time

import mcpbox_http

MODERN = "2026-07-28"
#: Before it, newest first; the one that initialize offers.
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
#: From here on the header MCP-Protocol-Version follows initialize.
_WITH_HEADER = ("2025-11-25", "2025-06-18")

#: Bytes of one answer, an event stream included.
ANSWER_MAX = 16 << 20
#: Messages behind one request: progress, logs, and the answer.
MESSAGES_MAX = 20000
#: One event of a stream, and one line of it.
EVENT_MAX = 8 << 20
#: Of a body that comes with an error status; what is shown is shorter.
ERROR_MAX = 64 << 10
#: Seconds. The call's own time ends it earlier; this is for what has none.
TIMEOUT = 600
CLOSE_TIMEOUT = 2
#: Times that a broken stream is taken up again, and the pause between them.
RESUMES_MAX = 20
RESUME_PAUSE_MAX_MS = 10000

_META = "io.modelcontextprotocol/"
_SESSION = re.compile(r"[\x21-\x7e]{1,1024}")
_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
CLIENT = {"name": "mcpbox", "version": "1"}


class Refused(Exception):
    """The other server answered, with an error. status: of HTTP; code: of
    JSON-RPC, or None; text: what it said, cut, not cleaned."""

    def __init__(self, status, code, text, headers=None, data=None):
        super().__init__(text)
        self.status, self.code, self.text = status, code, text
        self.headers, self.data = headers, data


class Broken(Exception):
    """What came is no MCP."""


def parse(data):
    """JSON, as strict as Python's reader gets; Broken for anything else."""
    def constant(name):
        raise ValueError(f"{name} is no JSON")
    try:
        return json.loads(data, parse_constant=constant)
    except (ValueError, RecursionError) as e:
        raise Broken(f"what it sent is no JSON: {str(e)[:200]}") from None


def header_value(value):
    """A value as it stands in an Mcp-* header."""
    if value is True or value is False:
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value)
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    raw = text.encode("utf-8", "replace")
    return f"=?base64?{base64.b64encode(raw).decode()}?="


def mirrored(schema, arguments, depth=0):
    """{header: value} of the arguments that a schema wants in headers."""
    out = {}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or depth > 8:
        return out
    for name, inner in properties.items():
        value = arguments.get(name)
        if not isinstance(inner, dict) or value is None:
            continue
        wanted = inner.get("x-mcp-header")
        if (isinstance(wanted, str) and _TOKEN.fullmatch(wanted)
                and isinstance(value, (str, int, bool))):
            out["Mcp-Param-" + wanted] = header_value(value)
        elif isinstance(value, dict):
            out.update(mirrored(inner, value, depth + 1))
    return out


def events(lines):
    """(event, data, id, retry) of a text/event-stream's lines, as the HTML
    standard (9.2.6) reads them. An id stands until the next."""
    kind, data, last, retry, size = "", [], None, None, 0
    first = True
    for raw in lines:
        if first:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            first = False
        if not raw:
            if data or retry is not None or last is not None:
                yield kind or "message", b"\n".join(data), last, retry
            kind, data, retry, size = "", [], None, 0
            continue
        field, _, value = raw.partition(b":")
        value = value.removeprefix(b" ")
        size += len(raw)
        if size > EVENT_MAX:
            raise Broken(f"an event is larger than {EVENT_MAX} bytes")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            kind = value.decode("utf-8", "replace")[:64]
        elif field == b"id" and b"\0" not in value and len(value) <= 1024:
            last = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 8:
            retry = int(value)


def _kind(r):
    return r.media_type


def _error(r):
    """The answer of an error status as what it says."""
    body = r.read(truncate=True)
    code = data = None
    text = body.decode("utf-8", "replace")
    if _kind(r) == "application/json":
        try:
            said = parse(body)
            e = said.get("error") if isinstance(said, dict) else None
            if isinstance(e, dict):
                code, data = e.get("code"), e.get("data")
                text = str(e.get("message"))
        except Broken:
            pass
    return Refused(r.status, code if isinstance(code, int) else None,
                   text[:2000], r.headers, data)


class _Way:
    """Sends messages; finds the answer among what comes back."""

    def __init__(self, url, headers, heard):
        self.url, self.headers, self.heard = url, headers, heard
        self._id = 0

    def request(self, method, params, headers, notify=False):
        """The answer's result. headers: of this request alone."""
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if not notify:
            self._id += 1
            message["id"] = self._id
        return self.send(message, headers)

    def send(self, message, headers):
        raise NotImplementedError

    def close(self):
        pass

    def _post(self, url, message, headers, timeout=TIMEOUT):
        body = json.dumps(message, ensure_ascii=False,
                          separators=(",", ":")).encode("utf-8", "replace")
        return mcpbox_http.stream(
            "POST", url,
            {"Content-Type": "application/json",
             "Accept": "application/json, text/event-stream",
             **self.headers, **headers},
            body, timeout=timeout, max_bytes=ANSWER_MAX)

    def _find(self, wanted, said, headers):
        """The answer to `wanted` in what was said, or None. Everything else
        that was said is dealt with."""
        found = None
        for m in said if isinstance(said, list) else [said]:
            if not isinstance(m, dict):
                raise Broken("what it sent is no JSON-RPC message")
            if "method" in m:
                if m.get("id") is not None:
                    self._asked(m, headers)
                elif isinstance(m.get("params"), dict):
                    self.heard(m["method"], m["params"])
            elif m.get("id") == wanted and ("result" in m or "error" in m):
                found = m
            elif m.get("id") is None and isinstance(m.get("error"), dict):
                found = m       # it could not even read the id
        return found

    def _asked(self, m, headers):
        answer = {"jsonrpc": "2.0", "id": m["id"]}
        if m["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message":
                               "this client declared no such capability"}
        self.answer(answer, headers)

    def answer(self, message, headers):
        """Sends what the other server asked for; it may not want it."""
        try:
            self.send(message, headers)
        except (Refused, mcpbox_http.Error):
            pass

    @staticmethod
    def result(m, status=200, headers=None):
        e = m.get("error")
        if isinstance(e, dict):
            code = e.get("code")
            raise Refused(status, code if isinstance(code, int) else 0,
                          str(e.get("message"))[:2000], headers, e.get("data"))
        if not isinstance(m.get("result"), dict):
            raise Broken("its answer has no result")
        return m["result"]


class Streamable(_Way):
    """Streamable HTTP: a POST a message, answered by JSON or by a stream."""

    def send(self, message, headers):
        wanted = message.get("id") if "method" in message else None
        with self._post(self.url, message, headers) as r:
            self.last_headers = r.headers
            if r.status >= 300 or r.status < 200:
                raise _error(r)
            if wanted is None:
                return None
            if _kind(r) == "text/event-stream":
                found, last, retry = self._stream(r, wanted, headers)
            elif _kind(r) == "application/json":
                found, last, retry = self._find(
                    wanted, parse(r.read()), headers), None, None
            else:
                raise Broken(f"it answered with {_kind(r)[:100] or 'no type'}"
                             f" and status {r.status}, where MCP has JSON or"
                             " an event stream")
        for _ in range(RESUMES_MAX):
            if found is not None or last is None:
                break
            found, last, retry = self._resume(wanted, headers, last, retry)
        if found is None:
            raise Broken("its answer ended before the result")
        return self.result(found, r.status, r.headers)

    def _stream(self, r, wanted, headers):
        """(answer or None, the last event's id, the pause it asked for)"""
        last = pause = None
        count = 0
        for _, data, last, retry in events(r.lines(EVENT_MAX)):
            pause = pause if retry is None else retry
            count += 1
            if count > MESSAGES_MAX:
                raise Broken(f"more than {MESSAGES_MAX} messages came")
            if not data:
                continue        # it says only where to take up the stream
            found = self._find(wanted, parse(data), headers)
            if found is not None:
                return found, last, pause
        return None, last, pause

    def _resume(self, wanted, headers, last, retry):
        """A stream that ended may go on behind its last event (2025-11-25,
        and before it where events have ids)."""
        time.sleep(min(1000 if retry is None else retry,
                       RESUME_PAUSE_MAX_MS) / 1000)
        with mcpbox_http.stream(
                "GET", self.url,
                {"Accept": "text/event-stream", "Last-Event-ID": last,
                 **self.headers, **headers},
                timeout=TIMEOUT, max_bytes=ANSWER_MAX) as r:
            if r.status != 200 or _kind(r) != "text/event-stream":
                return None, None, None
            found, again, pause = self._stream(r, wanted, headers)
        return found, again or last, pause if pause is not None else retry

    def end(self, headers):
        """Ends the session; whether it wants to is its business."""
        try:
            mcpbox_http.request("DELETE", self.url,
                                {**self.headers, **headers},
                                timeout=CLOSE_TIMEOUT, max_bytes=ERROR_MAX,
                                truncate=True)
        except mcpbox_http.Error:
            pass


class LastingStream(_Way):
    """HTTP with SSE (2024-11-05): one stream with all answers, which says
    first where messages go. That must be of the same origin: whoever can make
    the server say another would get our credential."""

    def __init__(self, url, headers, heard):
        super().__init__(url, headers, heard)
        self._in = mcpbox_http.stream(
            "GET", url, {"Accept": "text/event-stream", **headers},
            timeout=TIMEOUT, max_bytes=ANSWER_MAX)
        if self._in.status != 200:
            with self._in as r:
                raise _error(r)
        if _kind(self._in) != "text/event-stream":
            self._in.close()
            raise Broken("its address is no event stream")
        self._events = events(self._in.lines(EVENT_MAX))
        self._count = 0
        for kind, data, _, _ in self._events:
            if kind == "endpoint":
                break
        else:
            raise Broken("its stream ended before the endpoint")
        import urllib.parse
        try:
            to = urllib.parse.urljoin(url, data.decode("utf-8", "replace"))
            origin = mcpbox_http.url(to).origin
        except ValueError:
            raise Broken("it wants messages at no usable address") from None
        if origin != mcpbox_http.url(url).origin:
            raise Broken("it wants messages at another server")
        self._to = to

    def send(self, message, headers):
        wanted = message.get("id") if "method" in message else None
        with self._post(self._to, message, headers) as r:
            if r.status >= 300 or r.status < 200:
                raise _error(r)
        while wanted is not None:
            event = next(self._events, None)
            self._count += 1
            if event is None or self._count > MESSAGES_MAX:
                raise Broken("its stream ended before the result")
            if event[0] == "message" and event[1]:
                found = self._find(wanted, parse(event[1]), headers)
                if found is not None:
                    return self.result(found)
        return None

    def close(self):
        self._in.close()


class Client:
    """One conversation. era: "modern", "legacy", or None to find out.
    heard(method, params) gets notifications."""

    def __init__(self, url, *, transport="streamable_http", headers=None,
                 era=None, heard=lambda method, params: None):
        self._lasting = transport == "sse"
        self._new = lambda: (LastingStream if self._lasting else Streamable)(
            url, dict(headers or {}), heard)
        self._way = None
        self.era = "legacy" if self._lasting else era
        self._known = self.era is not None
        self.protocol = None
        self.server = {}
        self._extra = {}
        self._capabilities = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._way is not None:
            if "Mcp-Session-Id" in self._extra and not self._lasting:
                self._way.end(self._extra)
            self._way.close()
            self._way = None

    # ---- eras ----

    def _modern(self, method, params, name=None, more=None):
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method,
                   **(more or {})}
        if name is not None:
            headers["Mcp-Name"] = header_value(name)
        params = dict(params)
        params["_meta"] = {**params.get("_meta", {}),
                           _META + "protocolVersion": MODERN,
                           _META + "clientInfo": CLIENT,
                           _META + "clientCapabilities": {}}
        result = self._way.request(method, params, headers)
        if result.get("resultType", "complete") != "complete":
            raise Broken("it wants an answer of its client's first "
                         f"({str(result.get('resultType'))[:60]}), which is "
                         "not passed on")
        return result

    def _discover(self):
        """Asks as 2026-07-28 has it. Whatever is no answer to that is a server
        of before it, or will say what is wrong when it is taken for one."""
        try:
            said = self._modern("server/discover", {})
        except Refused as e:
            if e.status in (401, 403, 429):
                raise
            return False
        except Broken:
            return False
        versions = said.get("supportedVersions")
        if not isinstance(versions, list) or MODERN not in versions:
            return False
        self.protocol = MODERN
        info = said.get("_meta")
        info = info.get(_META + "serverInfo") if isinstance(info, dict) else 0
        self.server = info if isinstance(info, dict) else {}
        self._capabilities = said.get("capabilities")
        return True

    def _initialize(self):
        said = self._way.request("initialize", {
            "protocolVersion": LEGACY[0], "capabilities": {},
            "clientInfo": CLIENT}, {})
        version = said.get("protocolVersion")
        if version not in LEGACY:
            raise Broken("it speaks the revision "
                         f"{str(version)[:40]}, which is not known here")
        self.protocol = version
        info = said.get("serverInfo")
        self.server = info if isinstance(info, dict) else {}
        self._capabilities = said.get("capabilities")
        if not self._lasting:
            session = self._way.last_headers.get("mcp-session-id")
            if session is not None:
                if not _SESSION.fullmatch(session):
                    raise Broken("its session id is none")
                self._extra["Mcp-Session-Id"] = session
        if version in _WITH_HEADER:
            self._extra["MCP-Protocol-Version"] = version
        self._way.request("notifications/initialized", None, self._extra,
                          notify=True)

    def open(self):
        """Finds out the era, and does what it begins with."""
        if self._way is None:
            self._way = self._new()
        if self.era == "modern":
            self.protocol = MODERN
        elif self.era is None:
            self.era = "modern" if self._discover() else "legacy"
        if self.era == "legacy" and self.protocol is None:
            try:
                self._initialize()
            except Refused as e:
                if not self._stale(e) or not self._discover():
                    raise
                self.era = "modern"
                self._known = False

    def _stale(self, e):
        """Whether what we were told of its era may be out of date."""
        return (self._known and not self._lasting
                and e.status not in (401, 403, 429)
                and (e.status in (400, 404, 405) or e.code in
                     (-32601, -32602, -32022, -32020, -32600)))

    def request(self, method, params, name=None, more=None):
        """A request's result in the server's era."""
        if self.protocol is None:
            self.open()
        if self.era == "legacy":
            return self._way.request(method, params, self._extra)
        try:
            return self._modern(method, params, name, more)
        except Refused as e:
            # Nothing has been done by a list, so asking again is harmless.
            if not self._stale(e) or method != "tools/list":
                raise
        self._known = False
        self.era = self.protocol = None
        self.open()
        return self.request(method, params, name, more)

    # ---- what tools need ----

    def pages(self, method, key, limit):
        """The items of a list, page by page; at most `limit` pages."""
        cursor, seen = None, set()
        for _ in range(limit):
            said = self.request(method,
                                {} if cursor is None else {"cursor": cursor})
            items = said.get(key)
            if not isinstance(items, list):
                raise Broken(f"its {method} has no {key}")
            yield items
            cursor = said.get("nextCursor")
            if cursor is None or cursor == "":
                return
            if not isinstance(cursor, str) or len(cursor) > 4096:
                raise Broken("its cursor is no text")
            if cursor in seen:
                raise Broken("its list comes back to a page it had")
            seen.add(cursor)
        raise Broken(f"its list has more than {limit} pages")

    @property
    def has_tools(self):
        c = self._capabilities
        return not isinstance(c, dict) or "tools" in c
