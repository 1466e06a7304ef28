"""What main's value becomes where a prompt or a resource was asked for."""
import base64
import json

import pytest

PROMPT, RESOURCE, STRUCTURED = 1, 2, 3      # enum call_method
PNG = base64.b64encode(b"\x89PNG").decode()


def get(pool, returns, form, arguments=None, before="", **more):
    """The body of what a main that returns this expression says."""
    names = ", ".join(arguments or {})
    code = (f"import mcpbox\nfrom mcpbox import *\n{before}\n"
            f"def main({names}):\n    return {returns}\n")
    return pool.call(code, arguments, form=form, **more)


def text(role, what):
    return {"role": role, "content": {"type": "text", "text": what}}


@pytest.mark.parametrize("returns, messages", [
    ("'hello'", [text("user", "hello")]),
    ("Message('assistant', 'a')", [text("assistant", "a")]),
    ("['a', Message('assistant', 'b'), {'role': 'user', 'content': 'c'}]",
     [text("user", "a"), text("assistant", "b"), text("user", "c")]),
    ("Text('t')", [text("user", "t")]),
    ("Message('user', ['a', Image(b'\\x89PNG')])",
     [text("user", "a"),
      {"role": "user", "content": {"type": "image", "data": PNG,
                                   "mimeType": "image/png"}}]),
    ("[Message('user', Resource('test://x', text='r')), 'b']",
     [{"role": "user", "content": {"type": "resource", "resource": {
         "uri": "test://x", "text": "r"}}}, text("user", "b")]),
    ("Message('user', {'type': 'text', 'text': 'x'})", [text("user", "x")]),
])
def test_prompts(pool, returns, messages):
    call = get(pool, returns, PROMPT)
    assert call.kind == "run_result", call.body
    assert call.body == {"messages": messages}


def test_a_prompt_with_a_description(pool):
    call = get(pool, "{'description': 'd', 'messages': [f'{a} {b}']}", PROMPT,
               {"a": "1", "b": "2"})
    assert call.body == {"description": "d", "messages": [text("user", "1 2")]}


@pytest.mark.parametrize("returns, says", [
    ("7", "a prompt returns text, mcpbox.Message"),
    ("None", "a prompt returns text"),
    ("[]", "at least one message"),
    ("[['a']]", "the result[0] is a list"),
    ("{'role': 'system', 'content': 'a'}", "it is 'user' or 'assistant'"),
    ("Message('system', 'a')", "role is 'system'"),
    ("Message('user', 7)", "a message's content is text"),
    ("Message('user', Resource(text='x'))", "Resource needs a uri here"),
    ("{'a': 1}", "a message's content is text"),
])
def test_no_prompts(pool, returns, says):
    call = get(pool, returns, PROMPT)
    assert (call.kind, call.failure_name) == ("run_error", "exception")
    assert call.body["isError"] is True and says in call.text


@pytest.mark.parametrize("returns, contents", [
    ("'x'", [{"text": "x"}]),
    ("b'\\x89PNG'", [{"blob": PNG}]),
    ("bytearray(b'')", [{"blob": ""}]),
    ("Image(b'\\x89PNG')", [{"mimeType": "image/png", "blob": PNG}]),
    ("Resource(text='x', mime_type='text/html')",
     [{"mimeType": "text/html", "text": "x"}]),
    ("[Resource('a:b', data=b'\\x89PNG'), Text('t'), b'']",
     [{"uri": "a:b", "blob": PNG}, {"text": "t"}, {"blob": ""}]),
    ("__import__('datetime').date(2025, 1, 2)", [{"text": "2025-01-02"}]),
])
def test_resources(pool, returns, contents):
    call = get(pool, returns, RESOURCE)
    assert call.kind == "run_result", call.body
    assert call.body == {"contents": contents}


@pytest.mark.parametrize("returns, value", [
    ("{'id': id, 'n': [1, None]}", {"id": "7", "n": [1, None]}),
    ("[1, 'a']", [1, "a"]), ("[]", []), ("3", 3), ("True", True),
])
def test_resources_of_json(pool, returns, value):
    call = get(pool, returns, RESOURCE, {"id": "7"})
    only, = call.body["contents"]
    assert only["mimeType"] == "application/json"
    assert json.loads(only["text"]) == value


@pytest.mark.parametrize("returns, says", [
    ("None", "NotFound"),
    ("ResourceLink('a:b', 'n')", "is a ResourceLink"),
    ("[Text('a'), None]", "the result[1] is None"),
    ("{1: object()}", "has no JSON form"),
])
def test_no_resources(pool, returns, says):
    call = get(pool, returns, RESOURCE)
    assert (call.kind, call.failure_name) == ("run_error", "exception")
    assert call.body["isError"] is True and says in call.text


@pytest.mark.parametrize("form, failure", [
    (RESOURCE, "unknown_resource"), (PROMPT, "exception"), (0, "exception")])
def test_what_does_not_exist(pool, form, failure):
    call = get(pool, "absent()", form, before='''
def absent():
    raise NotFound("there is no such item")
''')
    assert (call.kind, call.failure_name) == ("run_error", failure)
    assert call.text == "there is no such item"


@pytest.mark.parametrize("form, returns", [
    (PROMPT, "'x' * 5000"), (RESOURCE, "b'x' * 5000"),
    (RESOURCE, "Image(b'x' * 5000)"), (RESOURCE, "'x' * 5000")])
def test_too_large(pool, form, returns):
    call = get(pool, returns, form, result_max=4096)
    assert (call.kind, call.failure_name) == ("run_error", "limit")
    assert "result_bytes is 4096" in call.text


def test_asynchronous(pool):
    call = pool.call('''
import asyncio
async def main(name):
    await asyncio.sleep(0)
    return f"hello {name}"
''', {"name": "you"}, form=PROMPT)
    assert call.body == {"messages": [text("user", "hello you")]}


@pytest.mark.parametrize("returns, value", [
    ("{'a': 1}", {"a": 1}), ("[1, 2]", [1, 2]), ("'x'", "x"), ("None", None), ("1.5", 1.5), ("True", True),
    ("__import__('datetime').date(2025, 1, 2)", "2025-01-02"), ("Result([1])", [1])])
def test_structured(pool, returns, value):
    call = get(pool, returns, STRUCTURED)
    assert call.kind == "run_result", call.body
    assert call.body["structuredContent"] == value
    assert call.text == (value if isinstance(value, str) else json.dumps(value))


def test_structured_with_its_own_content(pool):
    call = get(pool, "Result(7, ['seven', Image(b'\\x89PNG')])", STRUCTURED)
    assert call.body["structuredContent"] == 7
    assert [b["type"] for b in call.body["content"]] == ["text", "image"]
    for returns in ("Text('a')", "[Text('a'), 'b']"):
        call = get(pool, returns, STRUCTURED)
        assert call.kind == "run_result" and "structuredContent" not in call.body
    call = get(pool, "Result([1])", 0)      # no schema: an object
    assert call.failure_name == "exception" and "must be an object" in call.text
