"""json_compare: two JSON values, and each place where they differ."""

from itertools import zip_longest
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import mcpbox

CHANGES_MAX = 500
_ABSENT = object()


class Change(TypedDict):
    """One place: `added` has no before, `removed` has no after."""
    path: str
    change: Literal["added", "removed", "changed"]
    before: NotRequired[Any]
    after: NotRequired[Any]


class Answer(TypedDict):
    """Structured content, because it is a TypedDict."""
    equal: bool
    changes: list[Change]
    truncated: bool


def _below(path, key):
    """Returns the JSON Pointer (RFC 6901) of a member or an item."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _same(a, b):
    """Compares as JSON does: to Python true is 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _changes(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            yield from _changes(a.get(key, _ABSENT), b.get(key, _ABSENT),
                                _below(path, key))
    elif isinstance(a, list) and isinstance(b, list):
        pairs = zip_longest(a, b, fillvalue=_ABSENT)
        for i, (x, y) in enumerate(pairs):
            yield from _changes(x, y, _below(path, i))
    elif a is _ABSENT:
        yield Change(path=path, change="added", after=b)
    elif b is _ABSENT:
        yield Change(path=path, change="removed", before=a)
    elif not _same(a, b):
        yield Change(path=path, change="changed", before=a, after=b)


def main(before: Any, after: Any,
         ignore: Annotated[list[str] | None,
                           "JSON Pointers; all below them is ignored"] = None,
         ) -> Answer:
    """Compares two JSON values and lists each difference by JSON Pointer.

    Members of objects have no order. Items of arrays are compared by their
    places.

    Args:
        before: any JSON value
        after: any JSON value
    """
    for pointer in ignore or ():
        if not pointer.startswith("/"):
            raise mcpbox.ToolError(f"ignore: {pointer!r} is no JSON Pointer; "
                                   "one begins with /, like /items/0/name")
    ignored = tuple(pointer + "/" for pointer in ignore or ())
    found = [c for c in _changes(before, after)
             if not (c["path"] + "/").startswith(ignored)]
    return Answer(equal=not found, changes=found[:CHANGES_MAX],
                  truncated=len(found) > CHANGES_MAX)
