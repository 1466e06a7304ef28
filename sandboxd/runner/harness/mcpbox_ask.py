"""Questions from inside a tool: to the person at the client, to its model, or
for its roots. The tool waits for the answers and goes on where it stood.

    answer = mcpbox.elicit("Delete it?", {"sure": bool})
    if answer.accepted and answer.content["sure"]: ...

In `async def main` the same names are awaited: `await mcpbox.elicit(...)`.
What comes back is a stranger's word: only its form is checked here.
"""

import _mcpbox
import asyncio
import json
import math
import threading

#: At once in one ask(), and characters of a key: sandboxd's limits too.
QUESTIONS_MAX = 16
KEY_MAX = 64
_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                 "0123456789_.-")
#: The channel's descriptor, which becomes readable with an answer.
_CHANNEL = 3

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ACTIONS = ("accept", "decline", "cancel")


class ClientError(Exception):
    """A question that got no answer: the client can't be asked this, answered
    with an error, or did not answer in time."""

    def __init__(self, message, code=0):
        super().__init__(message)
        self.code = code


class Elicitation:
    """action: "accept", "decline" or "cancel"; content: what was filled in,
    empty unless accepted."""

    __slots__ = ("action", "content")

    def __init__(self, action, content):
        self.action = action
        self.content = content

    @property
    def accepted(self):
        return self.action == "accept"

    def __iter__(self):
        return iter((self.action, self.content))

    def __repr__(self):
        return f"Elicitation({self.action!r}, {self.content!r})"


class Sampled(dict):
    """A CreateMessageResult: role, content, model, stopReason."""

    @property
    def text(self):
        """All text in it."""
        content = self.get("content")
        blocks = content if isinstance(content, list) else [content]
        return "".join(b["text"] for b in blocks if isinstance(b, dict)
                       and isinstance(b.get("text"), str))


def _property(name, want):
    if isinstance(want, dict):
        return want
    if isinstance(want, (list, tuple)) and want and all(
            isinstance(w, str) for w in want):
        return {"type": "string", "enum": list(want)}
    if isinstance(want, type) and want in _TYPES:
        return {"type": _TYPES[want]}
    raise TypeError(f"{name}: give str, int, float, bool, a list of choices, "
                    "or a JSON Schema")


def _form(schema):
    """A JSON Schema of an object, or {"name": str, "size": ["S", "L"]}, of
    which all are required."""
    if not isinstance(schema, dict):
        raise TypeError("schema is a dict: a JSON Schema of an object, or "
                        "names and types")
    if schema.get("type") == "object" and isinstance(
            schema.get("properties"), dict):
        return schema
    properties = {str(k): _property(k, v) for k, v in schema.items()}
    return {"type": "object", "properties": properties,
            "required": list(properties)}


def _is(kind, v):
    if kind == "string":
        return isinstance(v, str)
    if kind == "boolean":
        return isinstance(v, bool)
    if kind == "integer":
        return (not isinstance(v, bool) and isinstance(v, (int, float))
                and math.isfinite(v) and v == int(v))
    if kind == "number":
        return not isinstance(v, bool) and isinstance(v, (int, float))
    if kind == "array":
        return isinstance(v, list)
    return True


def _choices(schema):
    if "enum" in schema:
        return schema["enum"]
    for word in ("oneOf", "anyOf"):
        if isinstance(schema.get(word), list):
            return [c.get("const") for c in schema[word]
                    if isinstance(c, dict)]
    return None


def _fits(schema, v):
    """Is v what this property of a form asks for? Forms are flat (MCP,
    PrimitiveSchemaDefinition), so this is all of it but formats."""
    if not _is(schema.get("type"), v):
        return False
    choices = _choices(schema)
    if choices is not None and v not in choices:
        return False
    if isinstance(v, (str, list)):
        n, word = len(v), "Length" if isinstance(v, str) else "Items"
        if n < schema.get("min" + word, 0) or n > schema.get("max" + word, n):
            return False
    elif isinstance(v, (int, float)) and not isinstance(v, bool):
        if v < schema.get("minimum", v) or v > schema.get("maximum", v):
            return False
    if isinstance(v, list) and isinstance(schema.get("items"), dict):
        return all(_fits(schema["items"], x) for x in v)
    return True


class Elicit:
    """A form for the person at the client."""

    method = "elicitation/create"

    def __init__(self, message, schema):
        self.schema = _form(schema)
        self.params = {"message": str(message), "requestedSchema": self.schema}

    def take(self, result):
        action, content = result.get("action"), result.get("content")
        if action not in _ACTIONS:
            raise ClientError("the client's answer has no action")
        if action != "accept":
            return Elicitation(action, {})
        if not isinstance(content, dict):
            raise ClientError("the client's answer has no content")
        properties = self.schema["properties"]
        for name in self.schema.get("required", ()):
            if name not in content:
                raise ClientError(f"the client's answer lacks {name!r}")
        for name, v in content.items():
            want = properties.get(name)
            if isinstance(want, dict) and not _fits(want, v):
                raise ClientError(f"the client's answer does not fit the form "
                                  f"at {name!r}")
        return Elicitation(action, content)


class ElicitUrl:
    """Sends the person to a web page; what happens there stays there."""

    method = "elicitation/create"

    def __init__(self, message, url):
        self.params = {"mode": "url", "message": str(message),
                       "url": str(url)}

    def take(self, result):
        if result.get("action") not in _ACTIONS:
            raise ClientError("the client's answer has no action")
        return Elicitation(result["action"], {})


def _camel(name):
    head, *rest = name.split("_")
    return head + "".join(w.capitalize() for w in rest)


def _message(m):
    if isinstance(m, str):
        m = ("user", m)
    if isinstance(m, (tuple, list)) and len(m) == 2:
        m = {"role": m[0], "content": m[1]}
    if not isinstance(m, dict):
        raise TypeError("a message is text, (role, content) or a dict")
    content = m.get("content")
    if isinstance(content, str):
        content = {"type": "text", "text": content}
    elif hasattr(content, "block"):
        content = content.block()
    return {**m, "content": content}


class Sample:
    """A question to the client's model. messages: text, or a list of texts,
    (role, content) and dicts. params: temperature, system_prompt, ... as MCP
    has them for sampling/createMessage."""

    method = "sampling/createMessage"

    def __init__(self, messages, max_tokens=1000, **params):
        if isinstance(messages, (str, dict)):
            messages = [messages]
        self.params = {"messages": [_message(m) for m in messages],
                       "maxTokens": int(max_tokens)}
        for name, v in params.items():
            if v is not None:
                self.params[_camel(name)] = v

    def take(self, result):
        if not isinstance(result.get("content"), (dict, list)):
            raise ClientError("the client's answer has no content")
        return Sampled(result)


class Roots:
    """The directories that the client works on."""

    method = "roots/list"

    def __init__(self):
        self.params = {}

    def take(self, result):
        roots = result.get("roots")
        if not isinstance(roots, list) or not all(
                isinstance(r, dict) and isinstance(r.get("uri"), str)
                for r in roots):
            raise ClientError("the client's answer has no roots")
        return roots


_lock = threading.Lock()    # one ask at a time, of all threads
_number = 0                 # of the last one sent
_open = 0                   # sent and not yet answered, or 0
_default = 0                # keys that were made here


def _key():
    global _default
    _default += 1
    return f"q{_default}"


def _text(questions):
    """What is sent; raises for what can't be."""
    if not isinstance(questions, dict) or not questions:
        raise TypeError("ask needs a dict of questions")
    if len(questions) > QUESTIONS_MAX:
        raise ValueError(f"ask takes at most {QUESTIONS_MAX} questions")
    out = {}
    for key, q in questions.items():
        if (not isinstance(key, str) or not 1 <= len(key) <= KEY_MAX
                or not _KEY.issuperset(key)):
            raise ValueError(f"{key!r} is no key: 1 to {KEY_MAX} letters, "
                             "digits and _ . -")
        if not isinstance(q, (Elicit, ElicitUrl, Sample, Roots)):
            raise TypeError(f"{key}: give Elicit, ElicitUrl, Sample or Roots")
        out[key] = {"method": q.method, "params": q.params}
    return json.dumps(out, ensure_ascii=False, allow_nan=False,
                      separators=(",", ":")).encode("utf-8", "replace")


def _error(e):
    if not isinstance(e, dict):
        return ClientError("the client answered nothing usable")
    code = e.get("code")
    return ClientError(str(e.get("message") or "the client refused"),
                       code if isinstance(code, int) else 0)


def _taken(questions, answers):
    """key -> answer, or ClientError for one that has none."""
    out = {}
    for key, q in questions.items():
        a = answers.get(key)
        a = a if isinstance(a, dict) else {}
        if not isinstance(a.get("result"), dict):
            out[key] = _error(a.get("error"))
            continue
        try:
            out[key] = q.take(a["result"])
        except ClientError as e:
            out[key] = e
    return out


def _send(text):
    global _number, _open
    _mcpbox.ask(_number + 1, text)
    _number += 1
    _open = _number


def _receive():
    """Reads one answer; the parsed one if it is what is waited for. Others
    belong to a question that the tool stopped waiting for."""
    global _open
    number, text = _mcpbox.answer()
    if number == _open:
        _open = 0
    return json.loads(text) if number == _number else None


def _block(questions, text):
    with _lock:
        while _open:
            _receive()
        _send(text)
        while (answers := _receive()) is None:
            pass
    return _taken(questions, answers)


async def _readable(loop):
    ready = loop.create_future()
    loop.add_reader(_CHANNEL,
                    lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(_CHANNEL)


async def _wait(questions, text):
    loop = asyncio.get_running_loop()
    # Tasks of one loop take turns here; a thread that asks too is waited for.
    while not _lock.acquire(blocking=False):
        await asyncio.sleep(0.01)
    try:
        while _open:
            await _readable(loop)
            _receive()
        _send(text)
        while True:
            await _readable(loop)
            if (answers := _receive()) is not None:
                return _taken(questions, answers)
    finally:
        _lock.release()


def _one(answers):
    (answer,) = answers.values()
    if isinstance(answer, ClientError):
        raise answer
    return answer


async def _wait_one(questions, text):
    return _one(await _wait(questions, text))


def _ask_one(question):
    questions = {_key(): question}
    text = _text(questions)
    if asyncio._get_running_loop() is not None:
        return _wait_one(questions, text)
    return _one(_block(questions, text))


def ask(questions):
    """Several questions at once: {key: Elicit(...), Sample(...), ...}. Gives
    {key: answer}; one that got none has a ClientError there."""
    questions = dict(questions)
    text = _text(questions)
    if asyncio._get_running_loop() is not None:
        return _wait(questions, text)
    return _block(questions, text)


def elicit(message, schema):
    """Asks the person at the client to fill in a form: an Elicitation."""
    return _ask_one(Elicit(message, schema))


def elicit_url(message, url):
    """Asks the person at the client to visit a page: an Elicitation."""
    return _ask_one(ElicitUrl(message, url))


def sample(messages, max_tokens=1000, **params):
    """Asks the client's model: a Sampled (a dict with .text)."""
    return _ask_one(Sample(messages, max_tokens, **params))


def roots():
    """The client's roots: a list of {"uri", "name"}."""
    return _ask_one(Roots())
