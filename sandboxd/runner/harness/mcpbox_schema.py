"""Type annotations as JSON Schema, and JSON values as those types.

Only keywords of the closed subset that the platform validates are used, and
nothing is a reference: a nested type stands where it is used.
"""

import collections.abc as abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import pathlib
import types
import typing
import uuid

import mcpbox_docstring

DEPTH_MAX = 16      # of types inside types
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean",
          type(None): "null"}
_FORMATS = {datetime.datetime: "date-time", datetime.date: "date",
            datetime.time: "time", uuid.UUID: "uuid"}
_ARRAYS = (list, abc.Sequence, abc.Iterable, abc.Collection,
           abc.MutableSequence)
_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)


class Unsupported(Exception):
    """An annotation or a signature that has no schema."""


def _strip(tp):
    """Takes off wrappers that say nothing about the type; (type, text)."""
    text = None
    while True:
        if hasattr(tp, "__metadata__"):
            for item in tp.__metadata__:
                if isinstance(item, str) and text is None:
                    text = item
            tp = tp.__origin__
        elif hasattr(tp, "__supertype__"):      # NewType
            tp = tp.__supertype__
        elif type(tp).__name__ == "TypeAliasType":      # type X = ...
            tp = tp.__value__
        elif typing.get_origin(tp) in (typing.Required, typing.NotRequired,
                                       typing.Final, typing.ClassVar):
            tp = typing.get_args(tp)[0]
        elif isinstance(tp, typing.TypeVar):
            tp = tp.__bound__ or typing.Any
        else:
            return tp, text


def _is_union(tp):
    return typing.get_origin(tp) in (typing.Union, types.UnionType)


def allows_none(tp):
    tp, _ = _strip(tp)
    if tp is None or tp is type(None):
        return True
    return _is_union(tp) and any(allows_none(a) for a in typing.get_args(tp))


def _enum(values, what):
    """A schema for a fixed set of JSON values."""
    out = []
    for v in values:
        if isinstance(v, enum.Enum):
            v = v.value
        if v is not None and not isinstance(v, (str, int, float, bool)):
            raise Unsupported(f"{what}: the value {v!r} has no JSON form")
        out.append(v)
    schema = {"enum": out}
    kinds = {_PLAIN[type(v)] for v in out if type(v) in _PLAIN}
    if len(kinds) == 1 and all(type(v) in _PLAIN for v in out):
        schema = {"type": kinds.pop(), "enum": out}
    return schema


def _fields(hints, required, what, depth):
    properties = {name: schema_of(tp, f"{what}.{name}", depth + 1)
                  for name, tp in hints.items()}
    return {"type": "object", "properties": properties,
            "required": [n for n in hints if n in required],
            "additionalProperties": False}


def _hints(tp, what):
    try:
        return typing.get_type_hints(tp, include_extras=True)
    except Exception as e:
        raise Unsupported(f"{what}: {type(e).__name__}: {e}") from None


def _class(tp, what, depth):
    """Schema of a class the tool or the library defines."""
    if issubclass(tp, enum.Enum):
        return _enum(list(tp), what)
    if typing.is_typeddict(tp):
        return _fields(_hints(tp, what), tp.__required_keys__, what, depth)
    if dataclasses.is_dataclass(tp):
        hints = _hints(tp, what)
        fields = [f for f in dataclasses.fields(tp) if f.init]
        needed = {f.name for f in fields
                  if f.default is dataclasses.MISSING
                  and f.default_factory is dataclasses.MISSING}
        schema = _fields({f.name: hints[f.name] for f in fields}, needed,
                         what, depth)
        for f in fields:
            _put_default(schema["properties"][f.name], f.default)
        return schema
    if tp in _FORMATS:
        return {"type": "string", "format": _FORMATS[tp]}
    if issubclass(tp, pathlib.PurePath):
        return {"type": "string"}
    if tp is decimal.Decimal:
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}
    if issubclass(tp, tuple) and hasattr(tp, "_fields"):
        raise Unsupported(f"{what}: use a dataclass in place of the named "
                          f"tuple {tp.__name__}")
    raise Unsupported(
        f"{what}: {getattr(tp, '__name__', tp)} has no JSON Schema; use str, "
        "int, float, bool, list, dict, Literal, Enum, TypedDict or a "
        "dataclass")


def _generic(origin, args, what, depth):
    """Schema of list[T], dict[str, T], tuple[...], set[T]."""
    if origin in _ARRAYS or origin in _SETS:
        schema = {"type": "array"}
        if args:
            schema["items"] = schema_of(args[0], f"{what}[]", depth + 1)
        if origin in _SETS:
            schema["uniqueItems"] = True
        return schema
    if origin is tuple:
        if not args:
            return {"type": "array"}
        if len(args) == 2 and args[1] is Ellipsis:
            return {"type": "array",
                    "items": schema_of(args[0], f"{what}[]", depth + 1)}
        if args == ((),):
            args = ()
        parts = [schema_of(a, f"{what}[{i}]", depth + 1)
                 for i, a in enumerate(args)]
        schema = {"type": "array", "minItems": len(parts),
                  "maxItems": len(parts)}
        if parts and all(p == parts[0] for p in parts):
            schema["items"] = parts[0]
        elif parts:
            schema["prefixItems"] = parts
        return schema
    if origin in _OBJECTS:
        if not args:
            return {"type": "object"}
        key, _ = _strip(args[0])
        if key is not str and key is not typing.Any:
            raise Unsupported(f"{what}: JSON object keys are str, not "
                              f"{getattr(key, '__name__', key)}")
        value = schema_of(args[1], f"{what}.*", depth + 1)
        return ({"type": "object"} if value == {} else
                {"type": "object", "additionalProperties": value})
    raise Unsupported(f"{what}: {origin!r} has no JSON Schema")


def schema_of(tp, what="value", depth=0):
    """The JSON Schema of one annotation."""
    if depth > DEPTH_MAX:
        raise Unsupported(f"{what}: types nested deeper than {DEPTH_MAX}; a "
                          "type cannot contain itself")
    tp, text = _strip(tp)
    if tp is None:
        tp = type(None)
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if tp is typing.Any or tp is object or tp is inspect.Parameter.empty:
        schema = {}
    elif isinstance(tp, type) and tp in _PLAIN:
        schema = {"type": _PLAIN[tp]}
    elif origin is typing.Literal:
        schema = _enum(args, what)
    elif _is_union(tp):
        schema = {"anyOf": [schema_of(a, what, depth + 1) for a in args]}
    elif origin is not None:
        schema = _generic(origin, args, what, depth)
    elif tp in _ARRAYS or tp in _SETS or tp in _OBJECTS or tp is tuple:
        schema = _generic(tp, (), what, depth)
    elif isinstance(tp, type):
        schema = _class(tp, what, depth)
    else:
        raise Unsupported(f"{what}: the annotation {tp!r} has no JSON Schema")
    if text:
        schema = {**schema, "description": text}
    return schema


def _put_default(schema, value):
    """Shows a default where JSON can hold it."""
    if value is dataclasses.MISSING or value is inspect.Parameter.empty:
        return
    if isinstance(value, enum.Enum):
        value = value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        value = value.isoformat()
    try:
        schema["default"] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        pass


def signature(main):
    """(signature, {parameter: annotation}) of main, annotations resolved."""
    hints = {}
    sig = inspect.signature(main)
    target = inspect.unwrap(main)
    if getattr(target, "__annotations__", None):
        hints = _hints(target, "main")
    return sig, {n: hints.get(n, inspect.Parameter.empty)
                 for n in sig.parameters}


def input_schema(main):
    """The schema of main's arguments, which are passed by name."""
    sig, hints = signature(main)
    _, described = mcpbox_docstring.parse(main.__doc__)
    properties, required, extra = {}, [], False
    for name, p in sig.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            raise Unsupported(f"main: *{name} cannot be passed by name; use "
                              "a list parameter")
        if p.kind is p.POSITIONAL_ONLY:
            raise Unsupported(f"main: {name} is positional-only; arguments "
                              "are passed by name")
        if p.kind is p.VAR_KEYWORD:
            extra = schema_of(hints[name], f"**{name}") or True
            continue
        schema = schema_of(hints[name], name)
        if "description" not in schema and described.get(name):
            schema["description"] = described[name]
        if p.default is not p.empty:
            _put_default(schema, p.default)
        elif hints[name] is not p.empty and allows_none(hints[name]):
            schema["default"] = None
        else:
            required.append(name)
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required,
            "additionalProperties": extra}


def _coerce_union(tp, value):
    """The member that fits best: None, then exact types, then the first that
    takes the value."""
    args = [_strip(a)[0] for a in typing.get_args(tp)]
    if value is None and any(a in (None, type(None)) for a in args):
        return None
    for a in args:
        if isinstance(a, type) and a in _PLAIN and type(value) is a:
            return value
    for a in args:
        try:
            out = coerce(a, value)
        except (TypeError, ValueError, KeyError):
            continue
        if out is not value or _fits(a, value):
            return out
    return value


def _fits(tp, value):
    origin = typing.get_origin(tp) or tp
    if origin is typing.Literal:
        return value in typing.get_args(tp)
    try:
        return isinstance(value, origin)
    except TypeError:
        return False


def _coerce_class(tp, value):
    if issubclass(tp, enum.Enum):
        return tp(value)
    if typing.is_typeddict(tp) and isinstance(value, dict):
        hints = typing.get_type_hints(tp, include_extras=True)
        return {k: coerce(hints[k], v) if k in hints else v
                for k, v in value.items()}
    if dataclasses.is_dataclass(tp) and isinstance(value, dict):
        hints = typing.get_type_hints(tp, include_extras=True)
        return tp(**{k: coerce(hints[k], v) if k in hints else v
                     for k, v in value.items()})
    if isinstance(value, str):
        if tp in (datetime.datetime, datetime.date, datetime.time):
            return tp.fromisoformat(value)
        if tp is uuid.UUID or tp is decimal.Decimal:
            return tp(value)
        if issubclass(tp, pathlib.PurePath):
            return tp(value)
    if tp is decimal.Decimal and isinstance(value, (int, float)):
        return tp(str(value))
    if tp is float and type(value) is int:
        return float(value)
    if tp is int and type(value) is float and value.is_integer():
        return int(value)
    return value


def coerce(tp, value):
    """A JSON value as the annotated type. Raises ValueError or TypeError for
    one that does not fit; leaves alone what the schema has judged already."""
    tp, _ = _strip(tp)
    if tp is None or tp is typing.Any or tp is inspect.Parameter.empty:
        return value
    if _is_union(tp):
        return _coerce_union(tp, value)
    origin, args = typing.get_origin(tp) or tp, typing.get_args(tp)
    if origin is typing.Literal:
        return value
    if isinstance(value, list):
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return tuple(coerce(args[0], v) for v in value)
            if args:
                return tuple(coerce(a, v) for a, v in zip(args, value))
            return tuple(value)
        if origin in _ARRAYS or origin in _SETS:
            items = [coerce(args[0], v) if args else v for v in value]
            if origin in _SETS:
                return frozenset(items) if origin is frozenset else set(items)
            return items
    if isinstance(value, dict) and origin in _OBJECTS:
        return ({k: coerce(args[1], v) for k, v in value.items()}
                if args else value)
    if isinstance(origin, type):
        return _coerce_class(origin, value)
    return value


def _need_nothing(main, given):
    """Do these arguments fit main as they are? True for most tools, and then
    the signature need not be taken apart: a call is judged by how soon it
    ends. False means nothing."""
    if type(main) is not types.FunctionType or main.__dict__:
        return False
    code, hints = main.__code__, main.__annotations__
    if (code.co_flags & _VARIADIC or code.co_posonlyargcount
            or code.co_kwonlyargcount):
        return False
    names = code.co_varnames[:code.co_argcount]
    for name, value in given.items():
        if name not in names or hints.get(name, object) is not type(value):
            return False
    required = names[:len(names) - len(main.__defaults__ or ())]
    for name in required:
        if name not in given:
            return False
    return True


def arguments(main, given):
    """Keyword arguments for main from a JSON object: types made, parameters
    that may be None and were left out filled in."""
    if _need_nothing(main, given):
        return given
    sig, hints = signature(main)
    out = {}
    for name, value in given.items():
        tp = hints.get(name, inspect.Parameter.empty)
        try:
            out[name] = coerce(tp, value)
        except (TypeError, ValueError, KeyError) as e:
            raise ValueError(f"{name}: {e}") from None
    for name, p in sig.parameters.items():
        if (name not in out and p.default is p.empty
                and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
                and hints[name] is not p.empty and allows_none(hints[name])):
            out[name] = None
    sig.bind(**out)
    return out
