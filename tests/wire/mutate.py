"""Valid requests of every method and revision, and what is wrong with others."""
import copy
import json

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", MODERN)
WORDS = ["", "a", "tools/call", "mcpbox_guide", "w__echo", "m://text", "m://item/1", "\x00", "\u00e9", "\U0001f600",
         "\ud800", "../../etc/passwd", "%00", "{x}", "a" * 300, "a" * 70000, "\r\nX-A: b", "=?base64?QQ==?=",
         "null", "-1", "1e400", "__proto__", "$ref", "2026-07-28", "2025-11-25", "1900-01-01"]
NUMBERS = [0, -1, 1, 1.5, 2**31, 2**53 + 1, 2**63, 2**64, -2**63, 1e300, 10**400]
METHODS = ["initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get",
           "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
           "resources/unsubscribe", "completion/complete", "logging/setLevel", "tasks/get", "tasks/update",
           "tasks/cancel", "notifications/initialized", "notifications/cancelled", "notifications/progress",
           "notifications/roots/list_changed", "rpc.discover", "tools/", "", "toString", "TOOLS/LIST"]
#: The parameter that Mcp-Name repeats.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId",
         "tasks/update": "taskId", "tasks/cancel": "taskId"}


class Raw(str):
    """Text that is written into the JSON as it is."""


class Twice:
    """(name, value) pairs: an object that may have a name twice."""

    def __init__(self, pairs):
        self.pairs = pairs


def dump(v):
    if isinstance(v, Raw):
        return str(v)
    if isinstance(v, Twice):
        return "{" + ",".join(json.dumps(k) + ":" + dump(x) for k, x in v.pairs) + "}"
    if isinstance(v, dict):
        return "{" + ",".join(json.dumps(k) + ":" + dump(x) for k, x in v.items()) + "}"
    if isinstance(v, list):
        return "[" + ",".join(map(dump, v)) + "]"
    return json.dumps(v)


def params(rnd, names):
    """method: parameters that are right. names: of what there is."""
    return {
        "ping": {}, "server/discover": {}, "tools/list": {}, "prompts/list": {}, "resources/list": {},
        "resources/templates/list": {},
        "tools/call": rnd.choice([
            {"name": names["echo"], "arguments": {"a": rnd.choice([1, "x", [], None])}},
            {"name": names["typed"], "arguments": {"n": rnd.choice([1, 2.0, "1"])}},
            {"name": "mcpbox_list_servers", "arguments": {"page": 0}},
            {"name": "mcpbox_guide"}, {"name": "mcpbox_search_tools", "arguments": {"query": "echo"}},
            {"name": "nothing", "arguments": {}}]),
        "prompts/get": {"name": names["prompt"], "arguments": {"who": rnd.choice(["you", ""])}},
        "resources/read": {"uri": rnd.choice(["w://text", "w://item/7", "w://none"])},
        "resources/subscribe": {"uri": "w://text"}, "resources/unsubscribe": {"uri": "w://text"},
        "completion/complete": {"ref": {"type": "ref/prompt", "name": names["prompt"]},
                                "argument": {"name": "who", "value": "y"}},
        "logging/setLevel": {"level": rnd.choice(["debug", "error"])},
        "initialize": {"protocolVersion": rnd.choice(REVISIONS[:3]), "capabilities": {},
                       "clientInfo": {"name": "fuzz", "version": "1"}},
        "tasks/get": {"taskId": "0" * 32}, "tasks/update": {"taskId": "0" * 32, "inputResponses": {}},
        "tasks/cancel": {"taskId": "0" * 32},
        "notifications/cancelled": {"requestId": 1}, "notifications/initialized": {},
    }


def valid(rnd, revision, number, names, session):
    """(message, headers) as a good client sends them."""
    every = params(rnd, names)
    if revision == MODERN:
        known = [m for m in every if m not in ("ping", "initialize", "resources/subscribe", "resources/unsubscribe",
                                               "logging/setLevel", "notifications/initialized")]
    else:
        known = [m for m in every if m != "server/discover" and not m.startswith("tasks/")]
    method = rnd.choice(known)
    p = copy.deepcopy(every[method])
    message = {"jsonrpc": "2.0", "method": method, "params": p}
    if not method.startswith("notifications/"):
        message["id"] = rnd.choice([number, f"r{number}"])
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    if revision == MODERN:
        p["_meta"] = {META + "protocolVersion": MODERN, META + "clientInfo": {"name": "fuzz", "version": "1"},
                      META + "clientCapabilities": rnd.choice([{}, {"elicitation": {}}])}
        headers.update({"MCP-Protocol-Version": MODERN, "Mcp-Method": method})
        if method in NAMED:
            headers["Mcp-Name"] = str(p[NAMED[method]])
    elif method != "initialize":
        headers["MCP-Protocol-Version"] = revision
        if session and rnd.random() < 0.8:
            headers["Mcp-Session-Id"] = session
    return message, headers


# --- What goes wrong. ---------------------------------------------------------

def _any(rnd, depth=0):
    r = rnd.random()
    if r < 0.35:
        return rnd.choice(WORDS)
    if r < 0.6:
        return rnd.choice(NUMBERS)
    if r < 0.75 or depth > 3:
        return rnd.choice([None, True, False, Raw("NaN"), Raw("01"), Raw("1e999"), Raw("'a'"), Raw("-0.0e-5")])
    if r < 0.87:
        return [_any(rnd, depth + 1) for _ in range(rnd.randint(0, 4))]
    return {rnd.choice(WORDS[:14]): _any(rnd, depth + 1) for _ in range(rnd.randint(0, 4))}


def _places(v, found):
    """Every container and what is in it."""
    if isinstance(v, dict):
        for k in v:
            found.append((v, k))
            _places(v[k], found)
    elif isinstance(v, list):
        for i, x in enumerate(v):
            found.append((v, i))
            _places(x, found)
    return found


def structure(rnd, message):
    """One change of the tree. Returns the message, whatever it is then."""
    places = _places(message, [])
    if not places or rnd.random() < 0.05:
        return rnd.choice([[message], [message, message], [], _any(rnd), {"a": message}, [message] * 40])
    at, key = rnd.choice(places)
    kind = rnd.randrange(9)
    if kind == 0:
        del at[key]
    elif kind in (1, 2):
        at[key] = _any(rnd)
    elif kind == 3:
        message["method"] = rnd.choice(METHODS)
    elif kind == 4:
        message["id"] = rnd.choice([None, 1.5, [], {}, True, "", "x" * 2000, 2**70, -1, Raw("1e3"), Raw("1.0")])
    elif kind == 5 and isinstance(at, dict):
        at[rnd.choice(WORDS[:16])] = _any(rnd)
    elif kind == 6 and isinstance(at, dict) and at is not message:
        return {**message, "params": Twice([*message.get("params", {}).items(), ("name", "x"), ("name", "x")])
                if isinstance(message.get("params"), dict) else 1}
    elif kind == 7:
        deep = _any(rnd)
        for _ in range(rnd.choice([3, 70, 3000])):
            deep = [deep] if rnd.random() < 0.5 else {"a": deep}
        text = dump(deep) if _depth(deep) < 900 else None
        at[key] = Raw(text) if text is not None else Raw("[" * 3000 + "]" * 3000)
    else:
        message["params"] = params(rnd, {"echo": "w__echo", "typed": "w__typed", "prompt": "w__hello"})[
            rnd.choice(["tools/call", "prompts/get", "resources/read", "completion/complete"])]
    return message


def _depth(v):
    n = 0
    while isinstance(v, (list, dict)) and v:
        v = v[0] if isinstance(v, list) else next(iter(v.values()))
        n += 1
    return n


def octets(rnd, body):
    """One change of the text."""
    kind = rnd.randrange(6)
    at = rnd.randrange(len(body) + 1)
    if kind == 0:
        return body[:at]
    if kind == 1:
        return body[:at] + bytes([rnd.randrange(256)]) + body[at + 1:]
    if kind == 2:
        return body[:at] + rnd.randbytes(rnd.choice([1, 8, 400])) + body[at:]
    if kind == 3:
        return body[:at] + body[rnd.randrange(len(body) + 1):]
    if kind == 4:
        return rnd.choice([b"", b" ", b"\xef\xbb\xbf" + body, body.decode("utf-8", "replace").encode("utf-16"),
                           body + body, body + b"\0", b"[" * 100000])
    return body.replace(rnd.choice([b'"', b":", b"{", b"0"]), rnd.choice([b"", b"\\u0000", b"\xff", b"\\"]), 1)


def header(rnd, headers):
    """One change of the fields. False: http.client can't send that."""
    name = rnd.choice(["Accept", "Content-Type", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id",
                       "Last-Event-ID", "Origin", "Authorization", "Mcp-Param-Region"])
    if rnd.random() < 0.4:
        headers.pop(name, None)
        return
    value = rnd.choice(["", "a", "*/*", "text/event-stream", "application/json", "text/plain", *REVISIONS, "2099-01-01",
                        "tools/call", "=?base64?!!?=", "=?base64?w4k=?=", "x" * 5000, "0", "\xe9", "Bearer x",
                        "http://evil.example", "http://localhost:1", ", ,", "a" * 40 + "." + "b" * 40])
    headers[name] = value.encode("latin-1")
