"""Questions of a tool in a plain interpreter: what is sent, what counts as an
answer. The fake _mcpbox answers each ASK as the test says."""

import asyncio
import json
import os
import sys
import types

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.normpath(os.path.join(
    HERE, "..", "..", "..", "..", "sandboxd", "runner", "harness")))

fake = types.ModuleType("_mcpbox")
sys.modules.setdefault("_mcpbox", fake)
fake = sys.modules["_mcpbox"]

import mcpbox_ask as ask


class Client:
    """Answers in turn; a list of (number, answers) for each answer() call."""

    def __init__(self):
        self.asked, self.waiting, self.reply = [], [], {}
        fake.ask, fake.answer = self.ask, self.answer

    def ask(self, number, text):
        self.asked.append((number, json.loads(text)))
        self.waiting.append((number, self.reply))

    def answer(self):
        number, reply = self.waiting.pop(0)
        return number, json.dumps(reply)


@pytest.fixture
def client():
    ask._number = ask._open = ask._default = 0
    return Client()


def accept(**content):
    return {"result": {"action": "accept", "content": content}}


def test_a_form_by_names_and_types(client):
    client.reply = {"q1": accept(s="x", i=1, f=0.5, b=True, c="S")}
    a = ask.elicit("?", {"s": str, "i": int, "f": float, "b": bool, "c": ["S", "L"]})
    assert client.asked == [(1, {"q1": {"method": "elicitation/create", "params": {
        "message": "?", "requestedSchema": {"type": "object", "properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "f": {"type": "number"},
            "b": {"type": "boolean"}, "c": {"type": "string", "enum": ["S", "L"]}},
            "required": ["s", "i", "f", "b", "c"]}}}})]
    assert a.accepted and a.content["c"] == "S"
    action, content = a
    assert action == "accept" and content["i"] == 1


def test_a_schema_stays_as_it_is(client):
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    client.reply = {"q1": accept()}
    assert ask.elicit("?", schema).content == {}
    assert client.asked[0][1]["q1"]["params"]["requestedSchema"] == schema


@pytest.mark.parametrize("schema, good, bad", [
    ({"type": "string"}, ["", "x"], [1, None, True, ["x"], {}]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "abc"], ["a", "abcd"]),
    ({"type": "integer"}, [1, 0, -1, 2.0], [1.5, "1", True, None]),
    ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
    ({"type": "number"}, [1, 1.5], ["1", True]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "string", "enum": ["a", "b"]}, ["a"], ["c", 1]),
    ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, ["a"], ["A"]),
    ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1}, [["a"], ["a", "b"]],
     [[], ["c"], "a", [1]]),
    ({"type": "array", "items": {"anyOf": [{"const": "a"}]}}, [[], ["a"]], [["b"]]),
    ({}, [1, "x", None], []),
])
def test_what_fits_a_form(client, schema, good, bad):
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    for v in good:
        client.reply = {f"q{ask._default + 1}": accept(v=v)}
        assert ask.elicit("?", whole).content == {"v": v}
    for v in bad:
        client.reply = {f"q{ask._default + 1}": accept(v=v)}
        with pytest.raises(ask.ClientError, match="does not fit"):
            ask.elicit("?", whole)
    client.reply = {f"q{ask._default + 1}": accept()}
    with pytest.raises(ask.ClientError, match="lacks 'v'"):
        ask.elicit("?", whole)


@pytest.mark.parametrize("reply", [
    {}, {"q1": None}, {"q1": {}}, {"q1": {"result": 1}}, {"q1": {"error": 1}},
    {"q1": {"error": {"message": None}}}, {"q1": {"result": {}}}, {"q1": {"result": {"action": "no"}}},
    {"q1": {"result": {"action": "accept"}}}, {"other": accept(n="x")},
])
def test_what_is_no_answer(client, reply):
    client.reply = reply
    with pytest.raises(ask.ClientError):
        ask.elicit("?", {"n": str})


def test_errors_say_what_the_client_said(client):
    client.reply = {"q1": {"error": {"code": -32021, "message": "no capability"}}}
    with pytest.raises(ask.ClientError, match="no capability") as e:
        ask.roots()
    assert e.value.code == -32021


def test_samples(client):
    client.reply = {"q1": {"result": {"role": "assistant", "content": [
        {"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}}}
    a = ask.sample(["x", ("assistant", "y"), {"role": "user", "content": {"type": "text", "text": "z"}}],
                   7, system_prompt="s", stop_sequences=["e"], temperature=None)
    assert a.text == "ab" and a["role"] == "assistant"
    assert client.asked[0][1]["q1"]["params"] == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "x"}},
                     {"role": "assistant", "content": {"type": "text", "text": "y"}},
                     {"role": "user", "content": {"type": "text", "text": "z"}}],
        "maxTokens": 7, "systemPrompt": "s", "stopSequences": ["e"]}


def test_several(client):
    client.reply = {"a": accept(n="x"), "b": {"error": {"code": 1, "message": "no"}},
                    "c": {"result": {"roots": [{"uri": "file:///"}]}}}
    got = ask.ask({"a": ask.Elicit("?", {"n": str}), "b": ask.Sample("x"), "c": ask.Roots(),
                   "d": ask.ElicitUrl("m", "https://h/")})
    assert got["a"].content == {"n": "x"} and got["c"] == [{"uri": "file:///"}]
    assert isinstance(got["b"], ask.ClientError) and isinstance(got["d"], ask.ClientError)


@pytest.mark.parametrize("questions, error", [
    ({}, TypeError), ([1], TypeError), ({"a": 1}, TypeError), ({"": ask.Roots()}, ValueError),
    ({"a b": ask.Roots()}, ValueError), ({1: ask.Roots()}, ValueError), ({"k" * 65: ask.Roots()}, ValueError),
    ({f"k{i}": ask.Roots() for i in range(17)}, ValueError),
    ({"a": ask.Sample("x", temperature=float("nan"))}, ValueError),
])
def test_what_can_not_be_asked(client, questions, error):
    with pytest.raises(error):
        ask.ask(questions)
    assert client.asked == []


@pytest.mark.parametrize("schema", [1, {"a": 1}, {"a": []}, {"a": [1]}, {"a": dict}, {"a": None}])
def test_no_form(schema):
    with pytest.raises(TypeError):
        ask.Elicit("?", schema)


def test_a_lone_surrogate_is_sent_as_something(client):
    client.reply = {"q1": accept(n="x")}
    ask.elicit("\ud800", {"n": str})
    assert client.asked[0][1]["q1"]["params"]["message"] == "?"


def test_an_answer_to_an_older_question_is_passed_over(client):
    client.reply = {"q1": accept(n="new")}
    ask._open = ask._number = 4       # the tool stopped waiting for it
    client.waiting.append((4, {"q0": accept(n="old")}))
    assert ask.elicit("?", {"n": str}).content == {"n": "new"}
    assert client.asked[0][0] == 5 and client.waiting == []


def test_awaited(client, monkeypatch):
    client.reply = {"q1": accept(n="x")}
    waits = []

    async def readable(loop):
        waits.append(loop)
        await asyncio.sleep(0)
    monkeypatch.setattr(ask, "_readable", readable)

    async def main():
        return await ask.elicit("?", {"n": str})
    assert asyncio.run(main()).content == {"n": "x"} and len(waits) == 1
