"""What another MCP server sent, as something that may be passed on.

Its text is nobody's instruction here: it is never interpreted, only freed of
what hides or forges on a screen (control characters, escape sequences,
reversals of direction, invisible tags), and made to fit the content types that
MCP has. What does not fit becomes a text that says what was there.
"""

import base64
import binascii
import math
import re

#: Containers in containers that are kept; the scanner behind stops at 64.
DEPTH_MAX = 48
INT_MAX = 2 ** 1023
#: Controls but tab and line ends; what reverses or isolates direction; what
#: is never seen and can say anything: tags, the variation selectors of plane 14
#: (240 of them: a byte each), invisible operators, marks of byte order. What
#: scripts and emoji are written with (joiners, soft hyphens, VS1 to VS16)
#: stays.
_HIDING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e"
                     "\u2060-\u206f\ufeff\ufff0-\ufffb"
                     "\U000e0000-\U000e0fff]")
_ESCAPE = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]{0,2000}"
                     "(?:\x07|\x1b\\\\)|\x1b[@-Z\\\\^_]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\\\x00-\x1f\x7f]*")
_MIME = re.compile(r"[!-~]{1,127}/[ -~]{1,300}")


#: What is a secret by itself and must not come back in an answer.
_withheld = ()


def withhold(values):
    """Such texts are replaced in all that is cleaned from here on."""
    global _withheld
    _withheld = tuple(sorted(set(values), key=len, reverse=True))


class TooDeep(Exception):
    """A value in values in values."""


def text(s, most=None):
    """Text without what hides, of at most so many characters."""
    s = _SURROGATE.sub("\ufffd", s)
    s = _HIDING.sub("", _ESCAPE.sub("", s))
    for secret in _withheld:
        s = s.replace(secret, "[secret]")
    return s if most is None or len(s) <= most else s[:most - 1] + "…"


def line(s, most=300):
    """The same as one line, for a sentence of ours."""
    return text(" ".join(str(s).split()), most)


def value(v, depth=0):
    """Any JSON value with its texts freed of what hides."""
    if isinstance(v, str):
        return text(v)
    if depth > DEPTH_MAX:
        raise TooDeep
    if isinstance(v, dict):
        return {text(str(k)): value(x, depth + 1) for k, x in v.items()}
    if isinstance(v, list):
        return [value(x, depth + 1) for x in v]
    if isinstance(v, bool) or v is None:
        return v
    if isinstance(v, int):
        return v if abs(v) < INT_MAX else str(v)
    return v if math.isfinite(v) else str(v)


def _annotations(given):
    """Those that MCP has, as it has them."""
    out = {}
    if not isinstance(given, dict):
        return out
    audience = given.get("audience")
    if isinstance(audience, list):
        audience = [a for a in audience if a in ("user", "assistant")]
        if audience:
            out["audience"] = audience[:2]
    priority = given.get("priority")
    if (isinstance(priority, (int, float)) and not isinstance(priority, bool)
            and 0 <= priority <= 1):
        out["priority"] = priority
    modified = given.get("lastModified")
    if isinstance(modified, str):
        out["lastModified"] = text(modified, 64)
    return out


def _base64(data):
    """The same bytes in the one spelling of RFC 4648; None if it is none."""
    if not isinstance(data, str):
        return None
    data = "".join(data.split())
    try:
        return base64.b64encode(base64.b64decode(
            data + "=" * (-len(data) % 4), validate=True)).decode()
    except (binascii.Error, ValueError):
        return None


def _mime(given, otherwise):
    return (given if isinstance(given, str) and _MIME.fullmatch(given)
            else otherwise)


def _note(what):
    return {"type": "text", "text": f"[{what}]"}


def _media(block, kind):
    data = _base64(block.get("data"))
    if data is None:
        return _note(f"an {kind} that is no base64")
    return {"type": kind, "data": data, "mimeType": _mime(
        block.get("mimeType"), "application/octet-stream")}


def _link(block):
    uri = block.get("uri")
    if not isinstance(uri, str) or not _URI.fullmatch(uri):
        return _note("a link to a resource, without a URI")
    name = block.get("name")
    out = {"type": "resource_link", "uri": text(uri, 4096),
           "name": text(name, 300) if isinstance(name, str) else
           text(uri, 300)}
    for key, most in (("title", 300), ("description", 4000)):
        if isinstance(block.get(key), str):
            out[key] = text(block[key], most)
    if _mime(block.get("mimeType"), None) is not None:
        out["mimeType"] = block["mimeType"]
    size = block.get("size")
    if isinstance(size, int) and not isinstance(size, bool) and \
            0 <= size < 2 ** 53:
        out["size"] = size
    return out


def _resource(block):
    inner = block.get("resource")
    inner = inner if isinstance(inner, dict) else {}
    uri = inner.get("uri")
    if not isinstance(uri, str) or not _URI.fullmatch(uri):
        return _note("a resource without a URI")
    out = {"uri": text(uri, 4096)}
    if _mime(inner.get("mimeType"), None) is not None:
        out["mimeType"] = inner["mimeType"]
    if isinstance(inner.get("text"), str):
        out["text"] = text(inner["text"])
    else:
        out["blob"] = _base64(inner.get("blob"))
        if out["blob"] is None:
            return _note(f"the resource {line(uri)}, neither text nor base64")
    return {"type": "resource", "resource": out}


def block(b):
    """One content block."""
    kind = b.get("type") if isinstance(b, dict) else None
    if kind == "text" and isinstance(b.get("text"), str):
        out = {"type": "text", "text": text(b["text"])}
    elif kind in ("image", "audio"):
        out = _media(b, kind)
    elif kind == "resource_link":
        out = _link(b)
    elif kind == "resource":
        out = _resource(b)
    else:
        return _note(f"content of type {line(kind, 60)}, which is not passed "
                     "on")
    annotations = _annotations(b.get("annotations"))
    if annotations and out["type"] == kind:
        out["annotations"] = annotations
    return out


def result(said, structured):
    """A CallToolResult; structured: its tool promised structured content,
    which then may be of any type."""
    content = said.get("content")
    if content is None and isinstance(said.get("toolResult"), (dict, list)):
        content = []        # 2024-10-07
    if not isinstance(content, list):
        content = []
    out = {"content": [block(b) for b in content]}
    if "structuredContent" in said:
        made = value(said["structuredContent"])
        if structured or isinstance(made, dict):
            out["structuredContent"] = made
    out["isError"] = said.get("isError") is True
    return out
