"""The driver of version kind mcp: another MCP server's tool, or its list.

spec: {"url", "transport": "streamable_http" | "sse",
       "auth": {"type": "none" | "bearer" | "header" | "oauth",
                "secret", "header"},
       "era": what discovery found, or none: a hint,
       and of a tool
       "tool": its name there, "sha256": of its definition}

A specification without "tool" is a source: it lists what the server has. A
tool's definition is asked for at each call and must be the one that a person
read when the tool was imported. What makes it up, and how it is hashed, is
definition().
"""

import hashlib
import json

import mcpbox
import mcpbox_drivers
import mcpbox_http
import mcpbox_mcp_clean as clean
import mcpbox_mcp_wire as wire

PAGES_MAX = 200
TOOLS_MAX = 1000
NAME_MAX = 128
#: As versions of tools have them.
TITLE_MAX, DESCRIPTION_MAX = 200, 2000
#: Of an error's text, and of the data beside it.
SHOWN_MAX = 2000
#: What of a definition a model or its client acts on; icons and _meta are not
#: imported, so what they say now changes nothing here.
PINNED = ("name", "title", "description", "inputSchema", "outputSchema",
          "annotations")


def definition(tool):
    """SHA-256, in hex, of a tool's definition as it was sent: the pinned
    members that are there, names sorted, as JSON without blanks."""
    kept = {k: tool[k] for k in PINNED if tool.get(k) is not None}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"),
                      ensure_ascii=True)
    return hashlib.sha256(b"mcpbox mcp definition 1\0"
                          + text.encode("ascii")).hexdigest()


def _credential(spec, secrets):
    """Headers that carry the credential."""
    auth = spec.get("auth") or {}
    kind = auth.get("type", "none")
    if kind == "none":
        return {}
    secret = secrets.get(auth.get("secret"))
    if not secret:
        raise mcpbox_drivers.MissingGrant(
            f"the secret {auth.get('secret')} has no value yet")
    if kind == "oauth":
        import mcpbox_oauth
        return mcpbox_oauth.header(spec, secret)
    value = mcpbox_drivers.credential(auth["secret"], secret).strip()
    try:
        value.encode("ascii")
    except UnicodeEncodeError:
        raise mcpbox_drivers.Failure(
            f"the secret {auth.get('secret')} has characters that no header "
            "can carry") from None
    if kind == "bearer":
        return {"Authorization": f"Bearer {value}"}
    return {auth["header"]: value}


def _heard(method, params):
    """Progress and log messages go on to whoever called."""
    if method == "notifications/progress":
        now, total = params.get("progress"), params.get("total")
        if isinstance(now, (int, float)) and not isinstance(now, bool):
            message = params.get("message")
            mcpbox.progress(
                now, total if isinstance(total, (int, float)) else None,
                clean.line(message) if isinstance(message, str) else None)
    elif method == "notifications/message":
        level = params.get("level")
        data = clean.value(params.get("data"))
        mcpbox.log(clean.text(data, SHOWN_MAX) if isinstance(data, str)
                   else data,
                   level if level in mcpbox.LEVELS else "info")


def _said(e):
    """A refusal of the other server as a sentence."""
    text = clean.text(e.text, SHOWN_MAX).strip()
    if e.status in (401, 403):
        asks = e.headers.get("www-authenticate") if e.headers else None
        return (f"the other server refused the credential (HTTP {e.status})"
                + (f"; it asks for: {clean.line(asks, 500)}" if asks else "")
                + (f"\n\n{text}" if text else ""))
    if 300 <= e.status < 400:
        return (f"the other server redirects (HTTP {e.status}), which is not "
                "followed: add the source with its new URL")
    if e.code is not None:
        data = "" if e.data is None else "\n\n" + clean.text(json.dumps(
            clean.value(e.data), ensure_ascii=False), SHOWN_MAX)
        return (f"the other server answered with error {e.code}: {text}{data}")
    return (f"the other server answered with HTTP status {e.status}"
            + (f":\n\n{text}" if text else ""))


def _http_failure(e):
    text = f"the other server could not be used: {e}"
    if e.failure == "limit":
        return mcpbox_drivers.Limit(text)
    if e.failure == "timeout":
        return mcpbox_drivers.Timeout(text)
    return mcpbox_drivers.Upstream(text)


class _Answers:
    """Errors on the way as the driver's failures."""

    def __enter__(self):
        return self

    def __exit__(self, kind, e, _):
        if isinstance(e, wire.Refused):
            raise mcpbox_drivers.Upstream(_said(e)) from None
        if isinstance(e, wire.Broken):
            raise mcpbox_drivers.Upstream(
                f"the other server does not speak MCP as it should: "
                f"{clean.line(e, 500)}") from None
        if isinstance(e, clean.TooDeep):
            raise mcpbox_drivers.Upstream(
                "the other server's answer is nested too deeply") from None
        if isinstance(e, mcpbox_http.Error):
            raise _http_failure(e) from None
        return False


def _client(spec, secrets):
    return wire.Client(spec["url"],
                       transport=spec.get("transport", "streamable_http"),
                       headers=_credential(spec, secrets),
                       era=spec.get("era"), heard=_heard)


def _usable(tool):
    return (isinstance(tool, dict) and isinstance(tool.get("name"), str)
            and 0 < len(tool["name"]) <= NAME_MAX
            and clean.line(tool["name"]) == tool["name"]
            and isinstance(tool.get("inputSchema"), dict))


def _listed(tool):
    """A definition as it can be imported, with the pin of what was sent."""
    out = {"name": tool["name"], "sha256": definition(tool),
           "input_schema": clean.value(tool["inputSchema"])}
    for key, most in (("title", TITLE_MAX), ("description", DESCRIPTION_MAX)):
        if isinstance(tool.get(key), str):
            said = clean.text(tool[key], most).strip()
            if said:
                out[key] = said
    if isinstance(tool.get("outputSchema"), dict):
        out["output_schema"] = clean.value(tool["outputSchema"])
    hints = tool.get("annotations")
    if isinstance(hints, dict):
        kept = {k: v for k, v in hints.items()
                if k in ("readOnlyHint", "destructiveHint", "idempotentHint",
                         "openWorldHint") and isinstance(v, bool)}
        if isinstance(hints.get("title"), str) and "title" not in out:
            out["title"] = clean.text(hints["title"], TITLE_MAX).strip()
        if kept:
            out["annotations"] = kept
    return out


def listing(spec, secrets):
    """What a source is run for: all its tools."""
    tools, dropped = {}, 0
    with _Answers(), _client(spec, secrets) as c:
        c.open()
        if c.has_tools:
            for page in c.pages("tools/list", "tools", PAGES_MAX):
                for tool in page:
                    if not _usable(tool) or tool["name"] in tools:
                        dropped += 1
                        continue
                    if len(tools) == TOOLS_MAX:
                        raise mcpbox_drivers.Limit(
                            "the other server has more than "
                            f"{TOOLS_MAX} tools")
                    tools[tool["name"]] = _listed(tool)
        return {"protocol": c.protocol, "era": c.era, "dropped": dropped,
                "server": {k: clean.line(c.server.get(k, ""), 200)
                           for k in ("name", "version", "title")
                           if isinstance(c.server.get(k), str)},
                "tools": list(tools.values())}


def _find(c, name):
    """Its definition as it is now; None if there is none."""
    try:
        for page in c.pages("tools/list", "tools", PAGES_MAX):
            for tool in page:
                if isinstance(tool, dict) and tool.get("name") == name:
                    return tool
    except wire.Refused as e:
        if e.code != -32601:
            raise           # -32601: it has no tools at all any more
    return None


def call(spec, arguments, secrets):
    """The other server's tool, if it still is the one that was imported."""
    with _Answers(), _client(spec, secrets) as c:
        found = _find(c, spec["tool"])
        if found is None:
            raise mcpbox_drivers.UpstreamChanged(
                f"the other server has no tool {spec['tool']} any more")
        if not _usable(found) or definition(found) != spec["sha256"]:
            raise mcpbox_drivers.UpstreamChanged(
                f"the definition of {spec['tool']} at the other server is not "
                "the one that was reviewed: discover its tools and import it "
                "again")
        said = c.request(
            "tools/call",
            {"name": spec["tool"], "arguments": arguments,
             "_meta": {"progressToken": "call"}},
            name=spec["tool"],
            more=wire.mirrored(found["inputSchema"], arguments))
        return mcpbox_drivers.Body(clean.result(
            said, isinstance(found.get("outputSchema"), dict)))


def main(spec, arguments, secrets):
    """mcpbox_drivers.py says what a driver is."""
    if "tool" in spec:
        return call(spec, arguments, secrets)
    if arguments.get("op", "list") != "list":
        import mcpbox_oauth
        with _Answers():
            return mcpbox_drivers.Body(
                mcpbox_oauth.run(spec, arguments, secrets))
    made = listing(spec, secrets)
    return mcpbox_drivers.Body({
        "content": [{"type": "text",
                     "text": f"{len(made['tools'])} tools"}],
        "structuredContent": made})
