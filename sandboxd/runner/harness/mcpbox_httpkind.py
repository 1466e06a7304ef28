"""The driver of version kind http: one REST endpoint as a tool.

The specification was judged when the version was saved (admind/check/specs/http.c
has its members), and the arguments by the schema that was made from it. What
is left to be judged here are values: an argument fills one place of the
request and can't reach into another.
"""

import json
import re
import urllib.parse

import mcpbox
import mcpbox_client
import mcpbox_drivers
import mcpbox_http
from mcpbox_hide import hidden

TIMEOUT_MS = 20000
MAX_BYTES = 1024 * 1024

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(r"\{secret:([A-Z][A-Z0-9_]*)\}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: What would end a path segment, or be taken for its end by somebody.
_SEGMENT = re.compile(r"[/\\?#\x00-\x1f\x7f-\x9f]")
_JSON_TYPE = re.compile(r"application/([a-z0-9.+-]+\+)?json|text/json")


def _text(name, value):
    """A value as it stands in a path, a query, a header or a cookie."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value
    elif isinstance(value, int):
        text = str(value)
    elif isinstance(value, float):
        text = json.dumps(value)
    else:
        raise mcpbox_drivers.InvalidArguments(
            f"{name} must be text, a number or a boolean")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise mcpbox_drivers.InvalidArguments(
            f"{name} has half a surrogate pair") from None
    return text


def _path(template, given, parameters):
    """The URL with its placeholders filled, each inside its segment."""
    def fill(found):
        name = found.group(1)
        text = _text(name, given[name])
        if not text.strip():
            raise mcpbox_drivers.InvalidArguments(
                f"{name} is empty: it is a part of the path")
        if _SEGMENT.search(text):
            raise mcpbox_drivers.InvalidArguments(
                f"{name} must not have /, \\, ?, # or control characters: it "
                "is one segment of the path")
        return urllib.parse.quote(text, safe="")

    start = template.index("://") + 3
    slash = template.find("/", start)
    if slash < 0:
        return template
    segments = []
    for segment in template[slash:].split("/"):
        filled = _PLACE.sub(fill, segment)
        if filled != segment and re.sub("%2[eE]", ".", filled) in (".", ".."):
            raise mcpbox_drivers.InvalidArguments(
                f"{_PLACE.search(segment).group(1)} must not be . or ..: it "
                "is a segment of the path")
        segments.append(filled)
    return template[:slash] + "/".join(segments)


def _fixed(text, secrets):
    """A text of the specification with its secrets in their places."""
    def fill(found):
        value = secrets.get(found.group(1))
        if value is None:
            raise mcpbox_drivers.MissingGrant(
                f"the secret {found.group(1)} has no value yet: an "
                "administrator sets it")
        return mcpbox_drivers.credential(found.group(1), value)
    return _SECRET.sub(fill, text)


def _values(name, value, parameter):
    """The texts of a query parameter, which may be a list."""
    if not isinstance(value, list):
        return [_text(name, value)]
    texts = [_text(name, v) for v in value]
    return [",".join(texts)] if parameter.get("style") == "comma" else texts


def _header_value(name, value):
    if _CONTROLS.search(value):
        raise mcpbox_drivers.InvalidArguments(
            f"{name} must not have control characters: it becomes a header")
    return value


def _body(kind, members, headers):
    """(bytes or None) from the body's parameters; its type into headers."""
    if kind is None:
        return None
    if kind == "json":
        body, media = members, "application/json"
    elif kind == "form":
        pairs = []
        for name, value in members.items():
            pairs += [(name, t) for t in _values(name, value, {})]
        return _typed(urllib.parse.urlencode(pairs).encode("ascii"),
                      "application/x-www-form-urlencoded", headers)
    else:
        if not members:
            return None
        body, media = next(iter(members.values())), "application/json"
        if kind == "text":
            return _typed(str(body).encode("utf-8", "replace"),
                          "text/plain; charset=utf-8", headers)
    return _typed(json.dumps(body, ensure_ascii=False, allow_nan=False,
                             separators=(",", ":")).encode("utf-8",
                                                           "replace"),
                  media, headers)


def _typed(body, media, headers):
    if not any(n.lower() == "content-type" for n, _ in headers):
        headers.append(("Content-Type", media))
    return body


def build(spec, given, secrets):
    """(method, url, headers, body) of the call. Tests look at it, too."""
    parameters = spec.get("parameters", {})
    unknown = [n for n in given if n not in parameters]
    if unknown:
        raise mcpbox_drivers.InvalidArguments(
            "there are no arguments " + ", ".join(sorted(unknown)))
    query = [(n, _fixed(t, secrets))
             for n, t in spec.get("query", {}).items()]
    headers = [(n, _fixed(t, secrets))
               for n, t in spec.get("headers", {}).items()]
    cookies, members, kind = [], {}, None
    for name, p in parameters.items():
        where, wire = p["in"], p.get("name", name)
        if where == "body":
            kind = spec.get("body", "json")
        value = given.get(name)
        if name not in given or (value is None and where != "body"):
            if where == "path":
                raise mcpbox_drivers.InvalidArguments(
                    f"{name} is missing: it is a part of the path")
            continue
        if where == "query":
            query += [(wire, t) for t in _values(name, value, p)]
        elif where == "header":
            text = ",".join(_values(name, value, p))
            headers.append((wire, _header_value(name, text)))
        elif where == "cookie":
            cookies.append(f"{wire}="
                           + urllib.parse.quote(_text(name, value), safe=""))
        elif where == "body":
            members[wire] = value
    if cookies:
        headers.append(("Cookie", "; ".join(cookies)))
    url = _path(spec["url"], given, parameters)
    if query:
        url += "?" + urllib.parse.urlencode(query,
                                            quote_via=urllib.parse.quote)
    return spec["method"], url, headers, _body(kind, members, headers)


def _shown(url):
    """An address for people: the query may hold a key."""
    return hidden(url.partition("?")[0])[:500]


def _constant(name):
    raise ValueError(f"{name} is not JSON")


def _json(method, r):
    try:
        return json.loads(r.body, parse_constant=_constant)
    except (ValueError, RecursionError) as e:
        raise mcpbox_drivers.Upstream(
            f"the answer of {method} {_shown(r.url)} is not JSON: {e}\n"
            + mcpbox_client.preview(r.body, r.charset)) from None


def _point(value, pointer, where):
    """RFC 6901."""
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif (isinstance(value, list) and token.isascii() and token.isdigit()
              and (token == "0" or token[0] != "0")
              and int(token) < len(value)):
            value = value[int(token)]
        else:
            raise mcpbox_drivers.Upstream(
                f"the answer of {where} has nothing at {pointer}")
    return value


def _value(method, r, form, pointer):
    """The body as the specification wants it."""
    media = r.media_type
    if form == "json" or (form != "text" and r.body
                          and (_JSON_TYPE.fullmatch(media) or pointer)):
        value = _json(method, r)
        return (_point(value, pointer, f"{method} {_shown(r.url)}")
                if pointer else value)
    if form != "text" and r.body:
        if media.startswith("image/"):
            return mcpbox.Image(r.body, media)
        if media.startswith("audio/"):
            return mcpbox.Audio(r.body, media)
        if media and not media.startswith("text/") and not re.search(
                r"xml|javascript|yaml|csv|urlencoded", media):
            try:
                return r.body.decode("utf-8")
            except UnicodeDecodeError:
                return mcpbox.Resource(_shown(r.url), data=r.body,
                                       mime_type=media)
    return r.text()


def _ok(spec, status):
    wanted = spec.get("response", {}).get("success")
    return status in wanted if wanted else 200 <= status < 300


def result(spec, r):
    """What the tool's result is, of an answer."""
    method, response = spec["method"], spec.get("response", {})
    if not _ok(spec, r.status):
        text = f"HTTP {r.status} {r.reason} from {method} {_shown(r.url)}"
        if 300 <= r.status < 400 and r.headers.get("location"):
            text += (", which redirects to "
                     + hidden(r.headers["location"])[:500])
        preview = mcpbox_client.preview(r.body, r.charset)
        raise mcpbox_drivers.Upstream(f"{text}\n{preview}".rstrip())
    form = response.get("as", "auto")
    if form != "status" and method != "HEAD":
        return _value(method, r, form, response.get("pointer"))
    out = {"status": r.status}
    if response.get("headers") or method == "HEAD":
        out["headers"] = {
            n: r.headers[n] for n in response.get(
                "headers", ["Content-Type", "Content-Length", "ETag",
                            "Last-Modified"]) if r.headers.get(n) is not None}
    if method != "HEAD":
        value = _value(method, r, "auto", response.get("pointer"))
        if isinstance(value, mcpbox.Content):
            return mcpbox.Result(out, [f"HTTP status {r.status}", value])
        out["body"] = value
    return out


def main(spec, arguments, secrets):
    """One call: a request, and its answer as the result."""
    method, url, headers, body = build(spec, arguments, secrets)
    try:
        r = mcpbox_http.request(
            method, url, headers, body,
            timeout=spec.get("timeout_ms", TIMEOUT_MS) / 1000,
            max_bytes=spec.get("max_bytes", MAX_BYTES),
            redirects=spec.get("redirects", 0))
    except mcpbox_http.Error as e:
        text = f"{method} {_shown(e.url or url)}: {e}"
        failures = {"limit": mcpbox_drivers.Limit, "timeout": mcpbox_drivers.Timeout,
                    "invalid_arguments": mcpbox_drivers.InvalidArguments}
        raise failures.get(e.failure, mcpbox_drivers.Upstream)(text) from None
    return result(spec, r)
