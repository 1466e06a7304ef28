"""A tool's return value as the body of an MCP CallToolResult.

Values are walked once: what JSON cannot hold is named with its place in the
result, and the walk stops as soon as the result is larger than allowed, before
any of it was encoded.
"""

import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import uuid
from collections.abc import (AsyncIterable, Awaitable, Collection, Iterator,
                             Mapping, Set)

import mcpbox

DEPTH_MAX = 60      # the scanner behind the runner stops at 64
INT_MAX = 2 ** 1023     # beyond it a number is no finite double


#: Shown as the text they print as.
_TEXTS = (decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath)


class TooLarge(Exception):
    """The result is larger than its limit."""


class NotJson(TypeError):
    """A value in the result has no JSON form."""


class Walk:
    def __init__(self, limit):
        self.left = limit
        self.limit = limit

    def spend(self, n):
        self.left -= n
        if self.left < 0:
            raise TooLarge(self.limit)

    def value(self, v, where, depth=0):
        if v is None or v is True or v is False:
            self.spend(4)
            return v
        if depth > DEPTH_MAX:
            raise NotJson(f"{where} is nested deeper than {DEPTH_MAX} levels "
                          "(or contains itself)")
        if isinstance(v, enum.Enum):
            return self.value(v.value, where, depth + 1)
        if isinstance(v, str):
            self.spend(len(v) + 2)
            return _text(v)
        if isinstance(v, int):
            if abs(v) >= INT_MAX:
                raise NotJson(f"{where} is an integer of more than 1023 bits;"
                              " return it as text")
            self.spend(v.bit_length() // 4 + 1)
            return int(v)
        if isinstance(v, float):
            if not math.isfinite(v):
                raise NotJson(f"{where} is {v!r}, which JSON does not have")
            self.spend(8)
            return float(v)
        if isinstance(v, Mapping):
            return {self.key(k, where): self.value(x, f"{where}[{k!r}]",
                                                   depth + 1)
                    for k, x in v.items()}
        if isinstance(v, tuple) and hasattr(v, "_fields"):
            # a named tuple: by name, as it is used
            return {self.key(k, where): self.value(x, f"{where}.{k}",
                                                   depth + 1)
                    for k, x in zip(v._fields, v)}
        if isinstance(v, (list, tuple)):
            self.spend(2)
            return [self.value(x, f"{where}[{i}]", depth + 1)
                    for i, x in enumerate(v)]
        return self.other(v, where, depth)

    def other(self, v, where, depth):
        if isinstance(v, mcpbox.Content):
            return self.value(v.block(), where, depth + 1)
        if dataclasses.is_dataclass(v) and not isinstance(v, type):
            return {f.name: self.value(getattr(v, f.name),
                                       f"{where}.{f.name}", depth + 1)
                    for f in dataclasses.fields(v)}
        if isinstance(v, Set):
            try:
                v = sorted(v)       # the same list each time, if it can be
            except TypeError:
                pass
            return self.items(v, f"{where} (a set)", depth)
        if isinstance(v, (datetime.datetime, datetime.date, datetime.time)):
            return self.value(v.isoformat(), where, depth)
        if isinstance(v, datetime.timedelta):
            return self.value(v.total_seconds(), where, depth)
        if isinstance(v, _TEXTS) or type(v).__module__ == "ipaddress":
            return self.value(str(v), where, depth)
        if isinstance(v, (bytes, bytearray, memoryview)):
            raise NotJson(f"{where} is {type(v).__name__}; decode it, or return"
                          " mcpbox.Image, Audio or Resource")
        if isinstance(v, type) or callable(v):
            raise NotJson(f"{where} is a {type(v).__name__} "
                          f"({getattr(v, '__name__', '')}), not what calling "
                          "it gives")
        if isinstance(v, (Awaitable, AsyncIterable)):
            raise NotJson(f"{where} is a {type(v).__name__}: await it, or "
                          "collect it with [x async for x in ...]")
        plain = _plain(v)
        if plain is not v:
            return self.value(plain, where, depth + 1)
        if isinstance(v, (Iterator, Collection)):
            return self.items(v, where, depth)
        raise NotJson(f"{where} is a {type(v).__name__}, which has no JSON "
                      "form; return str, dict, list, numbers, bool, None or "
                      "mcpbox content")

    def items(self, v, where, depth):
        """Whatever can be gone through; stops at the limit, so that an
        endless one is an error and not the end of all memory."""
        self.spend(2)
        out = []
        for i, x in enumerate(v):
            self.spend(1)
            out.append(self.value(x, f"{where}[{i}]", depth + 1))
        return out

    def key(self, k, where):
        if isinstance(k, enum.Enum):
            k = k.value
        if isinstance(k, str):
            self.spend(len(k) + 4)
            return _text(k)
        if k is None or isinstance(k, (bool, int, float)):
            self.spend(8)
            return json.dumps(k)
        raise NotJson(f"{where} has a {type(k).__name__} as a key; JSON keys "
                      "are text")


def _plain(v):
    """What objects of well-known libraries say they are as data: Pydantic,
    attrs, NumPy. The object itself for any other."""
    dump = getattr(v, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    fields = getattr(type(v), "__attrs_attrs__", None)
    if fields is not None:
        return {f.name: getattr(v, f.name) for f in fields}
    tolist = getattr(v, "tolist", None)
    return tolist() if callable(tolist) else v


def _text(s):
    """A plain str; lone surrogates, which UTF-8 lacks, become U+FFFD."""
    s = str.__str__(s)
    try:
        s.encode("utf-8")
    except UnicodeEncodeError:
        s = s.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return s


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False,
                           separators=(",", ":")).encode
shown = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


_quote = json.encoder.encode_basestring     # not ASCII only, as _encode
_SMALL = 2 ** 53


def dump(plain, limit):
    body = _encode(plain).encode("utf-8")
    if len(body) > limit:
        raise TooLarge(limit)
    return body


def encode(value, limit):
    """Any value as JSON bytes."""
    return dump(Walk(limit).value(value, "the value"), limit)


def _blocks(value, walk):
    """The content blocks of a result, and its structured form or None."""
    if isinstance(value, mcpbox.Content):
        return [walk.value(value.block(), "the result")], None
    if isinstance(value, mcpbox.Result):
        return _result(value, walk)
    if isinstance(value, (list, tuple)) and any(
            isinstance(x, mcpbox.Content) for x in value):
        blocks = []
        for i, item in enumerate(value):
            blocks.extend(_blocks(item, walk)[0])
        return blocks, None
    if isinstance(value, str):
        return [{"type": "text",
                 "text": walk.value(value, "the result")}], None
    plain = walk.value(value, "the result")
    # a date or an enum's text is shown like any text
    text = plain if isinstance(plain, str) else shown(plain)
    walk.spend(len(text))
    return ([{"type": "text", "text": text}],
            plain if isinstance(plain, dict) else None)


def _result(value, walk, any_type=False):
    """A mcpbox.Result: both parts are the tool's."""
    structured = walk.value(value.structured, "the structured result")
    if not (any_type or isinstance(structured, dict)):
        raise NotJson("the structured result is a "
                      f"{type(value.structured).__name__}; it must be an "
                      "object: a dict or a dataclass")
    if value.content is None:
        text = shown(structured)
        walk.spend(len(text))
        return [{"type": "text", "text": text}], structured
    items = (value.content if isinstance(value.content, (list, tuple))
             else [value.content])
    blocks = []
    for item in items:
        blocks.extend(_blocks(item, walk)[0])
    return blocks, structured


def _simple(value, limit):
    """The body for text, a small number, True, False or None, which most
    results are, without a walk; None for anything else."""
    kind = type(value)
    if kind is str:
        text = value
    elif kind is int and -_SMALL < value < _SMALL:
        text = str(value)
    elif value is None or kind is bool:
        text = _encode(value)
    else:
        return None
    if len(text) > limit:
        raise TooLarge(limit)
    try:
        made = b'{"content":[{"type":"text","text":%b}]}' % (
            _quote(text).encode("utf-8"))
    except UnicodeEncodeError:      # a lone surrogate: the walk deals with it
        return None
    if len(made) > limit:
        raise TooLarge(limit)
    return made


def body(value, limit):
    """The CallToolResult object for what main() returned, as bytes."""
    made = _simple(value, limit)
    if made is not None:
        return made
    blocks, structured = _blocks(value, Walk(limit))
    result = {"content": blocks}
    if structured is not None:
        result["structuredContent"] = structured
    return dump(result, limit)


def structured(value, limit):
    """The CallToolResult of a tool that has an output schema: what main
    returned is its structured content, of whatever type, and stands there as
    text, too. Content alone has none; the platform says so."""
    walk = Walk(limit)
    if isinstance(value, mcpbox.Result):
        blocks, plain = _result(value, walk, any_type=True)
    elif isinstance(value, mcpbox.Content) or (
            isinstance(value, (list, tuple)) and any(
                isinstance(x, mcpbox.Content) for x in value)):
        return dump({"content": _blocks(value, walk)[0]}, limit)
    else:
        plain = walk.value(value, "the result")
        text = plain if isinstance(plain, str) else shown(plain)
        walk.spend(len(text))
        blocks = [{"type": "text", "text": text}]
    return dump({"content": blocks, "structuredContent": plain}, limit)


def error_body(text, limit):
    """An isError result with one text, cut to fit."""
    text = _text(text)
    room = max(limit - 256, 0) // 6     # an escaped character is six bytes
    if len(text) > room:
        text = text[:room] + "\n[cut]"
    return json.dumps({"content": [{"type": "text", "text": text}],
                       "isError": True}, ensure_ascii=False,
                      separators=(",", ":")).encode("utf-8")
