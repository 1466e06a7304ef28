"""The runner's Python part in a plain interpreter: signatures as schemas,
arguments as types, docstrings, results and error reports."""

import json
import os
import sys
import types

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.normpath(os.path.join(HERE, "..", "..", "..", "..", "sandboxd", "runner"))
HARNESS = os.path.join(RUNNER, "harness")
sys.path[:0] = [HARNESS, os.path.join(RUNNER, "senders")]


class Finished(Exception):
    pass


fake = types.ModuleType("_mcpbox")      # what python.c gives the harness
fake.EXCEPTION, fake.BAD_CODE, fake.INVALID_ARGUMENTS, fake.LIMIT = 1, 2, 3, 4
fake.NO_ANSWER = 5
fake.UPSTREAM, fake.UPSTREAM_CHANGED, fake.MISSING_GRANT = 6, 7, 8
fake.TIMEOUT, fake.UNKNOWN_RESOURCE = 10, 11
fake.PROTOCOL = 9
fake.captured = lambda: (b"printed\n", False)
fake.sent = []


def _finish(failure, body):
    fake.sent.append((failure, json.loads(body)))


fake.finish = _finish
sys.modules["_mcpbox"] = fake

import mcpbox
import mcpbox_docstring
import mcpbox_errors
import mcpbox_harness
import mcpbox_results
import mcpbox_schema

mcpbox_errors.OURS = HARNESS     # in a runner the file names are <mcpbox ...>

HEAD = """
from typing import *
from collections.abc import Sequence, Mapping, Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
import datetime, decimal, uuid, pathlib
class Colour(Enum):
    RED = "red"
    BLUE = "blue"
class Level(IntEnum):
    LOW = 1
    HIGH = 2
class Point(TypedDict):
    x: int
    y: NotRequired[int]
@dataclass
class Box:
    width: int
    name: str = "box"
    colour: Colour = Colour.RED
    tags: list[str] = field(default_factory=list)
UserId = NewType("UserId", int)
"""


def inspect(code):
    mcpbox_harness._new_module()    # as the zygote, before each fork
    return mcpbox_harness.inspect_tool("probe", code.encode("utf-8"))


def schema_of(annotation):
    got = inspect(f"{HEAD}\ndef main(a: {annotation}): pass\n")
    assert got["ok"], got
    schema = got["input_schema"]
    assert schema["additionalProperties"] is False
    return schema["properties"]["a"], schema["required"]


S, I, N, B = ({"type": t} for t in ("string", "integer", "number", "boolean"))
BOX = {"type": "object", "properties": {
    "width": I, "name": {"type": "string", "default": "box"},
    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    "tags": {"type": "array", "items": S}},
    "required": ["width"], "additionalProperties": False}
POINT = {"type": "object", "properties": {"x": I, "y": I}, "required": ["x"],
         "additionalProperties": False}


@pytest.mark.parametrize("annotation,schema", [
    ("str", S), ("int", I), ("float", N), ("bool", B),
    ("None", {"type": "null", "default": None}),
    ("Any", {}), ("object", {}),
    ("list", {"type": "array"}), ("List", {"type": "array"}),
    ("list[str]", {"type": "array", "items": S}),
    ("List[int]", {"type": "array", "items": I}),
    ("Sequence[float]", {"type": "array", "items": N}),
    ("Iterable[bool]", {"type": "array", "items": B}),
    ("list[list[int]]", {"type": "array",
                         "items": {"type": "array", "items": I}}),
    ("set[str]", {"type": "array", "items": S, "uniqueItems": True}),
    ("frozenset[int]", {"type": "array", "items": I, "uniqueItems": True}),
    ("tuple", {"type": "array"}),
    ("tuple[int, ...]", {"type": "array", "items": I}),
    ("tuple[int, int]", {"type": "array", "items": I, "minItems": 2,
                         "maxItems": 2}),
    ("tuple[int, str]", {"type": "array", "prefixItems": [I, S],
                         "minItems": 2, "maxItems": 2}),
    ("dict", {"type": "object"}), ("Dict", {"type": "object"}),
    ("dict[str, Any]", {"type": "object"}),
    ("dict[str, int]", {"type": "object", "additionalProperties": I}),
    ("Mapping[str, list[str]]", {"type": "object", "additionalProperties": {
        "type": "array", "items": S}}),
    ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
    ("Literal[1, 2]", {"type": "integer", "enum": [1, 2]}),
    ("Literal[True]", {"type": "boolean", "enum": [True]}),
    ("Literal['a', 1]", {"enum": ["a", 1]}),
    ("Colour", {"type": "string", "enum": ["red", "blue"]}),
    ("Level", {"type": "integer", "enum": [1, 2]}),
    ("Point", POINT), ("Box", BOX),
    ("list[Box]", {"type": "array", "items": BOX}),
    ("UserId", I),
    ("datetime.datetime", {"type": "string", "format": "date-time"}),
    ("datetime.date", {"type": "string", "format": "date"}),
    ("datetime.time", {"type": "string", "format": "time"}),
    ("uuid.UUID", {"type": "string", "format": "uuid"}),
    ("pathlib.Path", S),
    ("decimal.Decimal", {"anyOf": [N, S]}),
    ("Union[int, str]", {"anyOf": [I, S]}), ("int | str", {"anyOf": [I, S]}),
    ("'int'", I), ("list['Point']", {"type": "array", "items": POINT}),
    ("Annotated[int, 'how many']", {"type": "integer",
                                    "description": "how many"}),
    ("Annotated[list[Annotated[str, 'one']], 5, 'all']",
     {"type": "array", "items": {"type": "string", "description": "one"},
      "description": "all"}),
])
def test_annotations(annotation, schema):
    got, required = schema_of(annotation)
    assert got == schema
    assert required == ([] if annotation == "None" else ["a"])


@pytest.mark.parametrize("annotation", ["Optional[int]", "int | None",
                                        "None | int", "Union[int, None]"])
def test_optional_is_not_required(annotation):
    got, required = schema_of(annotation)
    assert required == [] and got["default"] is None
    assert {"type": "null"} in got["anyOf"] and I in got["anyOf"]


@pytest.mark.parametrize("annotation,words", [
    ("bytes", "bytes has no JSON Schema"),
    ("complex", "complex has no JSON Schema"),
    ("dict[int, str]", "keys are str"),
    ("Callable[[], int]", "has no JSON Schema"),
    ("Literal[b'x']", "no JSON form"),
    ("Nonsense", "not defined"),
    ("type(Colour)", "has no JSON Schema"),
])
def test_unsupported_annotations_are_named(annotation, words):
    got = inspect(f"{HEAD}\ndef main(a: {annotation}): pass\n")
    assert not got["ok"]
    assert words in got["error"]["message"], got["error"]
    assert got["error"]["line"], got["error"]
    assert any("def main" in line for line in got["error"]["code_context"])


def test_recursive_type_is_refused():
    got = inspect("from __future__ import annotations\n"
                  "from dataclasses import dataclass\n@dataclass\n"
                  "class Node:\n    next: Node\ndef main(a: Node): pass\n")
    assert not got["ok"] and "contain itself" in got["error"]["message"]


def test_defaults():
    got = inspect(f"{HEAD}\ndef main(a=1, b: str = 'x', c: Colour = Colour.BLUE"
                  ", d: list = [], e: object = object(), f: float = 1e999,"
                  " g: Box = Box(2), *, h: int, i: bool = False): pass\n")
    schema = got["input_schema"]
    assert schema["required"] == ["h"]
    p = schema["properties"]
    assert p["a"] == {"default": 1} and p["b"]["default"] == "x"
    assert p["c"]["default"] == "blue" and p["d"]["default"] == []
    assert "default" not in p["e"] and "default" not in p["f"]
    assert p["i"] == {"type": "boolean", "default": False}


def test_no_parameters():
    assert inspect("async def main(): pass\n") == {
        "ok": True, "doc": None, "is_async": True, "input_schema": {
            "type": "object", "properties": {}, "required": [],
            "additionalProperties": False}}


def test_keyword_rest():
    assert inspect("def main(a: int, **rest): pass")["input_schema"][
        "additionalProperties"] is True
    assert inspect("def main(**rest: int): pass")["input_schema"][
        "additionalProperties"] == I


@pytest.mark.parametrize("code,words", [
    ("def main(*args): pass", "*args cannot be passed by name"),
    ("def main(a, /): pass", "positional-only"),
])
def test_signatures_that_cannot_be_called(code, words):
    got = inspect(code)
    assert not got["ok"] and words in got["error"]["message"]


@pytest.mark.parametrize("code,kind,line", [
    ("def main(:\n  pass", "SyntaxError", 1),
    ("x = 1\n\ndef main():\n    return (\n", "SyntaxError", 4),
    ("def main():\npass", "IndentationError", 2),
    ("def main(): pass\0", "SyntaxError", None),
    ("x = 1", "MissingMain", None),
    ("class main: pass", "MissingMain", None),
    ("def main(): pass\nmain = 3", "MissingMain", None),
    ("import nonsense\ndef main(): pass", "ModuleNotFoundError", 1),
    ("def main(): pass\n1 / 0", "ZeroDivisionError", 2),
    ("def main(): pass\nraise SystemExit(3)", "SystemExit", 2),
])
def test_errors_of_the_code(code, kind, line):
    got = inspect(code)
    assert not got["ok"]
    error = got["error"]
    assert error["type"] == kind and error["line"] == line, error
    assert set(error) == {"type", "message", "line", "column", "code_context"}
    if line:
        assert any(row.startswith(f"> {line:4} |")
                   for row in error["code_context"]), error
    json.dumps(got)


def test_not_utf8():
    got = mcpbox_harness.inspect_tool("probe", b"def main(): '\xff'")
    assert got["error"]["type"] == "SyntaxError"
    assert "byte 13" in got["error"]["message"]


def test_column_is_of_the_fault():
    error = inspect("def main(): pass\ny = 1 +* 2\n")["error"]
    assert (error["line"], error["column"]) == (2, 8)


def test_script_guard_does_not_fire():
    assert inspect("def main(): pass\nif __name__ == '__main__':\n"
                   "    raise RuntimeError\n")["ok"]


def test_decorated_main():
    got = inspect("import functools\ndef d(f):\n    @functools.wraps(f)\n"
                  "    def w(**k): return f(**k)\n    return w\n"
                  "@d\nasync def main(a: int): pass\n")
    assert got["input_schema"]["properties"] == {"a": I} and got["is_async"]


GOOGLE = """Adds numbers.

More about it.

Args:
    a: the first,
        on two lines
    b (int): the second
    **rest: more

Returns:
    A sum.
"""
SPHINX = """Adds numbers.

:param a: the first,
    on two lines
:param int b: the second
:param rest: more
:returns: A sum.
"""
NUMPY = """Adds numbers.

Parameters
----------
a : int
    the first,
    on two lines
b : int, optional
    the second
**rest
    more

Returns
-------
int
    A sum.
"""


@pytest.mark.parametrize("doc", [GOOGLE, SPHINX, NUMPY])
def test_docstrings(doc):
    text, found = mcpbox_docstring.parse(doc)
    assert found == {"a": "the first, on two lines", "b": "the second",
                     "rest": "more"}
    assert text.startswith("Adds numbers.") and "A sum." in text
    assert "the second" not in text


def test_docstring_describes_parameters():
    got = inspect(f'def main(a: int, b: "str" = ""):\n    """{GOOGLE}"""\n')
    p = got["input_schema"]["properties"]
    assert p["a"]["description"] == "the first, on two lines"
    assert got["doc"].startswith("Adds numbers.\n\nMore about it.")


@pytest.mark.parametrize("doc", [None, "", "   \n  ", "Args:", "Args:\n", ":",
                                 ":param", "Parameters\n---", "a\n" * 500])
def test_odd_docstrings_do_no_harm(doc):
    text, found = mcpbox_docstring.parse(doc)
    assert found == {}


def module_of(code):
    main = mcpbox_harness._load((HEAD + code).encode(), "probe")
    return main, sys.modules["tool"]


@pytest.mark.parametrize("annotation,given,expression", [
    ("Box", {"width": 3}, "Box(3)"),
    ("list[Box]", [{"width": 1, "colour": "blue"}],
     "[Box(1, colour=Colour.BLUE)]"),
    ("Colour", "red", "Colour.RED"), ("Level", 2, "Level.HIGH"),
    ("Optional[Colour]", "blue", "Colour.BLUE"),
    ("Optional[Box]", None, "None"),
    ("dict[str, Box]", {"a": {"width": 1}}, "{'a': Box(1)}"),
    ("Point", {"x": 1}, "{'x': 1}"),
    ("tuple[int, str]", [1, "a"], "(1, 'a')"),
    ("tuple[int, ...]", [1, 2], "(1, 2)"), ("set[int]", [1, 2], "{1, 2}"),
    ("frozenset[str]", ["a"], "frozenset({'a'})"),
    ("datetime.datetime", "2024-02-29T12:00:00+00:00",
     "datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)"),
    ("datetime.date", "2024-02-29", "datetime.date(2024, 2, 29)"),
    ("uuid.UUID", "12345678123456781234567812345678",
     "uuid.UUID(int=0x12345678123456781234567812345678)"),
    ("decimal.Decimal", "1.10", "decimal.Decimal('1.10')"),
    ("decimal.Decimal", 1.5, "decimal.Decimal('1.5')"),
    ("pathlib.Path", "/tmp/x", "pathlib.Path('/tmp/x')"),
    ("float", 1, "1.0"), ("int", 2.0, "2"), ("int | str", "2", "'2'"),
    ("Union[Colour, int]", 7, "7"), ("Union[int, Box]", {"width": 1}, "Box(1)"),
    ("Literal['a']", "a", "'a'"), ("Any", [1], "[1]"),
    ("Annotated[Colour, 'which']", "red", "Colour.RED"),
])
def test_arguments_become_types(annotation, given, expression):
    main, module = module_of(f"def main(a: {annotation}): pass\n")
    got = mcpbox_schema.arguments(main, {"a": given})["a"]
    want = eval(expression, module.__dict__)
    assert got == want and type(got) is type(want)


def test_missing_optional_becomes_none():
    main, _ = module_of("def main(a: Optional[int], b: int = 2): pass\n")
    assert mcpbox_schema.arguments(main, {}) == {"a": None}


@pytest.mark.parametrize("given", [{}, {"a": "green"}, {"a": "red", "b": 1}])
def test_arguments_that_do_not_fit(given):
    main, _ = module_of("def main(a: Colour): pass\n")
    with pytest.raises((TypeError, ValueError)):
        mcpbox_schema.arguments(main, given)


def body(value, limit=1 << 20):
    return json.loads(mcpbox_results.body(value, limit))


@pytest.mark.parametrize("value,text", [
    ("hi", "hi"), ("", ""), (None, "null"), (True, "true"), (3, "3"),
    (1.5, "1.5"), ([1, "a"], '[1, "a"]'), ((1,), "[1]"),
    ("\ud800x", "\ufffd\ufffd\ufffdx"), ("é\u2028", "é\u2028"),
])
def test_results_as_text(value, text):
    assert body(value) == {"content": [{"type": "text", "text": text}]}


def test_structured_result():
    _, module = module_of("def main(): pass\n")
    got = body({"box": module.Box(1), "when": module.datetime.date(2024, 1, 2),
                1: {module.Colour.RED}, None: (1, 2)})
    assert got["structuredContent"] == {
        "box": {"width": 1, "name": "box", "colour": "red", "tags": []},
        "when": "2024-01-02", "1": ["red"], "null": [1, 2]}
    assert json.loads(got["content"][0]["text"]) == got["structuredContent"]


def test_content_blocks():
    got = body([mcpbox.Text("t"), mcpbox.Image(b"\x89"), "plain", {"a": 1},
                mcpbox.Audio("AAAA", "audio/mp3"),
                mcpbox.Resource("x://y", text="z", mime_type="text/plain"),
                mcpbox.Resource("x://b", data=b"\0"),
                mcpbox.ResourceLink("x://y", "n", size=3,
                                    annotations={"audience": ["user"]})])
    assert got == {"content": [
        {"type": "text", "text": "t"},
        {"type": "image", "data": "iQ==", "mimeType": "image/png"},
        {"type": "text", "text": "plain"}, {"type": "text", "text": '{"a": 1}'},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/mp3"},
        {"type": "resource", "resource": {"uri": "x://y", "text": "z",
                                          "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": "x://b", "blob": "AA=="}},
        {"type": "resource_link", "uri": "x://y", "name": "n", "size": 3,
         "annotations": {"audience": ["user"]}}]}


@pytest.mark.parametrize("value,words", [
    (b"x", "the result is bytes"), ({"a": [1, b"x"]}, "the result['a'][1]"),
    (object(), "a object"), (float("nan"), "nan"), ({(1,): 2}, "a tuple as"),
    (10 ** 400, "1023 bits"), (lambda: 1, "a function"),
])
def test_what_json_cannot_hold_is_named(value, words):
    with pytest.raises(mcpbox_results.NotJson) as e:
        body(value)
    assert words in str(e.value)


def test_result_that_contains_itself():
    loop = []
    loop.append(loop)
    with pytest.raises(mcpbox_results.NotJson) as e:
        body(loop)
    assert "contains itself" in str(e.value)


@pytest.mark.parametrize("value", ["x" * 2000, ["x"] * 2000, {"a": "\n" * 600},
                                   mcpbox.Text("x" * 2000)])
def test_result_beyond_its_limit(value):
    with pytest.raises(mcpbox_results.TooLarge):
        body(value, 1024)


def test_error_bodies_fit():
    for text in ("x" * 10000, "\x01" * 10000, "é" * 10000):
        out = mcpbox_results.error_body(text, 4096)
        assert len(out) <= 4096
        assert json.loads(out)["isError"] is True


def test_secrets_are_read_only_and_hidden():
    s = mcpbox._Secrets({"TOKEN": "hunter2"})
    assert s["TOKEN"] == "hunter2" and dict(s) == {"TOKEN": "hunter2"}
    assert "hunter2" not in repr(s) and "TOKEN" in repr(s)
    with pytest.raises(AttributeError):
        s.other = 1
    with pytest.raises(TypeError):
        s["TOKEN"] = 1
    with pytest.raises(KeyError) as e:
        s["OTHER"]
    assert "OTHER" in str(e.value)


def run(code, arguments="{}", limit=1 << 20):
    fake.sent.clear()
    mcpbox_harness._loop = __import__("asyncio").new_event_loop()
    mcpbox_harness.first_task()
    try:
        mcpbox_harness._new_module()
        mcpbox_harness.run(0, "probe", code.encode(), None,
                           arguments.encode(), {}, limit)
    finally:
        # What a plain main leaves there ends in its first step.
        mcpbox_harness._loop.call_soon(mcpbox_harness._loop.stop)
        mcpbox_harness._loop.run_forever()
        mcpbox_harness._loop.close()
    assert len(fake.sent) == 1
    return fake.sent[0]


def test_run_reports_the_line():
    failure, out = run("def f(x):\n    return 1 / x\n\ndef main():\n"
                       "    return f(0)\n")
    assert failure == fake.EXCEPTION and out["isError"]
    text = out["content"][0]["text"]
    assert text.startswith("ZeroDivisionError: division by zero\n"
                           "at line 2, column 12\n")
    assert ">    2 |     return 1 / x" in text
    assert 'File "probe", line 5, in main' in text
    assert "harness" not in text and "printed" in text


@pytest.mark.parametrize("code,failure", [
    ("def main(: pass", 2), ("x = 1", 2), ("import nope\ndef main(): 1", 1),
    ("def main(a): 1", 3), ("def main(): raise SystemExit(1)", 1),
    ("def main(): raise KeyboardInterrupt", 1), ("def main(): raise MemoryError",
                                                 4),
    ("def main(): return b''", 1), ("def main(): return 'x' * 2000000", 4),
    ("def main(): return main()", 1),
])
def test_failures(code, failure):
    got, out = run(code)
    assert got == failure, out
    assert out["isError"] is True


def test_tool_error_has_no_traceback():
    _, out = run("from mcpbox import ToolError\n"
                 "def main(): raise ToolError('no such door')\n")
    text = out["content"][0]["text"]
    assert text.startswith("no such door") and "Traceback" not in text


@pytest.mark.parametrize("code", [
    "async def main():\n    import asyncio\n    await asyncio.sleep(0)\n"
    "    return 'ok'\n",
    "async def g(): return 'ok'\ndef main(): return g()\n",
    "import asyncio\nasync def g(): return 'ok'\n"
    "def main(): return asyncio.run(g())\n",
])
def test_both_kinds_of_main(code):
    assert run(code) == (0, {"content": [{"type": "text", "text": "ok"}]})


def test_exception_whose_text_raises():
    _, out = run("class E(Exception):\n    def __str__(self): 1 / 0\n"
                 "def main(): raise E()\n")
    assert "whose text cannot be made" in out["content"][0]["text"]


@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_lines_of_an_error_are_pythons(end):
    """str.splitlines() ends lines where Python doesn't; Python ends them at CR, too."""
    source = f"a = '{end}'\r\nb = 2\rc = 3\nd = 4\n"
    assert mcpbox_errors.context(source, 3) == [
        f"     1 | a = '{end}'", "     2 | b = 2", ">    3 | c = 3",
        "     4 | d = 4"]
