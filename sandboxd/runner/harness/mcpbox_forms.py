"""What main returned, as the body of GetPromptResult (prompts) or of
ReadResourceResult (resources and templates). Tools: mcpbox_results.

A resource's contents have no uri unless main gave one: the gateway, which
knows what was asked for, adds it.
"""

import mcpbox
from mcpbox_results import NotJson, Walk, dump, shown

_BYTES = (bytes, bytearray, memoryview)
ROLES = mcpbox.Message.ROLES


# --- Prompts. ---------------------------------------------------------------

def _message(role, content, where, walk):
    """One message for a client, from text, a content object or a block."""
    if isinstance(content, mcpbox.Content):
        content = content.block()
    elif isinstance(content, str):
        content = {"type": "text", "text": content}
    elif not (isinstance(content, dict) and "type" in content):
        raise NotJson(f"{where} is a {type(content).__name__}; a message's "
                      "content is text, mcpbox.Text, Image, Audio or Resource")
    return {"role": role, "content": walk.value(content, where)}


def _messages(value, where, walk, depth=0):
    """All the messages that one value stands for."""
    role = "user"
    if isinstance(value, mcpbox.Message):
        role, value = value.role, value.content
    elif isinstance(value, dict) and "role" in value:
        role, value = value["role"], value.get("content")
        if role not in ROLES:
            raise NotJson(f"{where}['role'] is {role!r}; it is 'user' or "
                          "'assistant'")
        where += "['content']"
    elif isinstance(value, (list, tuple)) and depth == 0:
        return [m for i, x in enumerate(value)
                for m in _messages(x, f"{where}[{i}]", walk, 1)]
    elif not isinstance(value, (str, mcpbox.Content, dict)):
        raise NotJson(f"{where} is a {type(value).__name__}; a prompt returns "
                      "text, mcpbox.Message(role, content), or a list of them")
    parts = value if isinstance(value, (list, tuple)) else [value]
    return [_message(role, part, where, walk) for part in parts]


def prompt(value, limit):
    """The GetPromptResult object, as bytes."""
    walk = Walk(limit)
    result = {}
    if isinstance(value, dict) and "messages" in value:
        if value.get("description") is not None:
            result["description"] = walk.value(str(value["description"]),
                                               "the description")
        value = value["messages"]
        if not isinstance(value, (list, tuple)):
            value = [value]
    result["messages"] = _messages(value, "the result", walk)
    if not result["messages"]:
        raise NotJson("the result is an empty list; a prompt has at least one "
                      "message")
    return dump(result, limit)


# --- Resources. -------------------------------------------------------------

def _content(value, where, walk):
    """What one value is when it is read."""
    if isinstance(value, mcpbox.Resource):
        return walk.value(value.resource, where)
    if isinstance(value, mcpbox.Text):
        value = value.text
    elif isinstance(value, (mcpbox.Image, mcpbox.Audio)):
        walk.spend(len(value.data))
        return {"mimeType": value.mime_type, "blob": value.data}
    elif isinstance(value, mcpbox.Content):
        raise NotJson(f"{where} is a {type(value).__name__}; a resource is "
                      "text, bytes, JSON, or mcpbox.Resource")
    if isinstance(value, _BYTES):
        walk.spend(memoryview(value).nbytes * 4 // 3)
        return {"blob": mcpbox.base64_of(value)}
    if value is None:
        raise NotJson(f"{where} is None; a resource is text, bytes or JSON. "
                      "Raise mcpbox.NotFound for what does not exist")
    plain = walk.value(value, where)
    if isinstance(plain, str):
        return {"text": plain}
    text = shown(plain)
    walk.spend(len(text))
    return {"mimeType": "application/json", "text": text}


def resource(value, limit):
    """The ReadResourceResult object, as bytes."""
    walk = Walk(limit)
    if isinstance(value, (list, tuple)) and any(
            isinstance(x, (mcpbox.Content, *_BYTES)) for x in value):
        contents = [_content(x, f"the result[{i}]", walk)
                    for i, x in enumerate(value)]
    else:
        contents = [_content(value, "the result", walk)]
    return dump({"contents": contents}, limit)
