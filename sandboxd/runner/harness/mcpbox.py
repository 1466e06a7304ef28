"""What a tool can import beside the standard library.

    from mcpbox import Image, ToolError, log, progress, secrets

Content classes say how a result is to be shown; anything else a tool returns
becomes JSON text, and structured content as well if it is an object. What is
no valid content is refused where it is made, so that the error shows the line.
"""

import base64
import datetime
import pathlib
import re
from collections.abc import Mapping

from mcpbox_ask import (ClientError, Elicit, ElicitUrl, Elicitation, Roots,
                        Sample, Sampled, ask, elicit, elicit_url, roots,
                        sample)
import mcpbox_client as http
from mcpbox_hide import hidden

__all__ = [
    "Audio", "ClientError", "Elicit", "ElicitUrl", "Elicitation", "Image",
    "Message", "NotFound", "ProtocolError", "Resource", "ResourceLink", "Result", "Roots",
    "Sample", "Sampled", "Text", "ToolError", "ask", "elicit", "elicit_url",
    "http", "log", "pause_stream", "progress", "roots", "sample", "secrets",
]

#: MCP's log levels, in its order; the index travels.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical",
          "alert", "emergency")
#: One log line; more is cut. A frame must hold it.
LOG_MAX = 16 * 1024


class ToolError(Exception):
    """A failure the caller should read as it stands, without a traceback.
    failure: as what it is told, one of FAILURES."""

    FAILURES = ("exception", "upstream_error", "timeout", "invalid_arguments")
    failure = "exception"

    def __init__(self, *args, failure="exception"):
        if failure not in self.FAILURES:
            raise ValueError(f"failure must be one of {', '.join(self.FAILURES)}")
        super().__init__(*args)
        self.failure = failure


class ProtocolError(Exception):
    """Ends the request with a JSON-RPC error of this message instead of a
    result: for what is no answer of the tool's. A model does not see it, and a
    task counts as failed; nearly always ToolError is meant."""


class NotFound(ToolError):
    """What was asked for does not exist: a resource template has no resource
    for these variables."""


_AUDIENCES = ("user", "assistant")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\\\x00-\x1f\x7f]*")


def _annotations(given):
    """MCP's annotations: audience, priority, lastModified."""
    out = {}
    for key, value in dict(given).items():
        if key == "audience":
            value = [value] if isinstance(value, str) else list(value)
            if not all(v in _AUDIENCES for v in value):
                raise ValueError("annotations: audience is a list of "
                                 "'user' and 'assistant'")
        elif key == "priority":
            if (isinstance(value, bool) or not isinstance(value, (int, float))
                    or not 0 <= value <= 1):
                raise ValueError("annotations: priority is a number from 0 "
                                 "to 1")
        elif key == "lastModified":
            if isinstance(value, (datetime.datetime, datetime.date)):
                value = value.isoformat()
            if not isinstance(value, str):
                raise ValueError("annotations: lastModified is a datetime, or "
                                 "text like 2025-01-31T12:00:00Z")
        else:
            raise ValueError(f"annotations: {key!r} is unknown; there are "
                             "audience, priority and lastModified")
        out[key] = value
    return out


def _uri(uri):
    uri = str(uri)
    if not _URI.fullmatch(uri):
        raise ValueError(f"{uri!r} is no URI: it needs a scheme, like https: "
                         "or file:, and no blanks")
    return uri


def _mime(mime_type):
    mime_type = str(mime_type)
    if "/" not in mime_type:
        raise ValueError(f"{mime_type!r} is no MIME type, like image/png")
    return mime_type


class Content:
    """Base of all content classes."""

    def __init__(self, annotations=None):
        self.annotations = (None if annotations is None
                            else _annotations(annotations))

    def block(self):
        """The MCP content block, as a dictionary."""
        raise NotImplementedError

    def _with_annotations(self, block):
        if self.annotations is not None:
            block["annotations"] = dict(self.annotations)
        return block


def base64_of(data):
    if isinstance(data, str):
        try:
            base64.b64decode(data, validate=True)
        except ValueError:
            raise ValueError("data is neither bytes nor base64 text") from None
        return data
    if isinstance(data, pathlib.PurePath):
        data = pathlib.Path(data).read_bytes()
    elif not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data is a {type(data).__name__}; give bytes, base64 "
                        "text, or a pathlib.Path to read")
    return base64.b64encode(data).decode("ascii")


class Text(Content):
    def __init__(self, text, annotations=None):
        super().__init__(annotations)
        self.text = str(text)

    def block(self):
        return self._with_annotations({"type": "text", "text": self.text})


class _Binary(Content):
    kind = ""

    def __init__(self, data, mime_type, annotations=None):
        super().__init__(annotations)
        self.data = base64_of(data)
        self.mime_type = _mime(mime_type)

    def block(self):
        return self._with_annotations({
            "type": self.kind, "data": self.data, "mimeType": self.mime_type})


class Image(_Binary):
    """data: bytes, or base64 text."""
    kind = "image"

    def __init__(self, data, mime_type="image/png", annotations=None):
        super().__init__(data, mime_type, annotations)


class Audio(_Binary):
    """data: bytes, or base64 text."""
    kind = "audio"

    def __init__(self, data, mime_type="audio/wav", annotations=None):
        super().__init__(data, mime_type, annotations)


class Resource(Content):
    """Text or bytes under a URI. Where a resource is read the URI may be left
    out: it is the one that was asked for."""

    def __init__(self, uri=None, text=None, data=None, mime_type=None,
                 annotations=None):
        super().__init__(annotations)
        if (text is None) == (data is None):
            raise ValueError("Resource needs text or data, not both")
        self.resource = {}
        if uri is not None:
            self.resource["uri"] = _uri(uri)
        if mime_type is not None:
            self.resource["mimeType"] = _mime(mime_type)
        if text is not None:
            self.resource["text"] = str(text)
        else:
            self.resource["blob"] = base64_of(data)

    def block(self):
        if "uri" not in self.resource:
            raise ValueError("Resource needs a uri here, where nobody asked "
                             "for one")
        return self._with_annotations({
            "type": "resource", "resource": dict(self.resource)})


class ResourceLink(Content):
    """A URI the client may fetch by itself."""

    def __init__(self, uri, name, title=None, description=None,
                 mime_type=None, size=None, annotations=None):
        super().__init__(annotations)
        self.fields = {"uri": _uri(uri), "name": str(name)}
        for key, value in (("title", title), ("description", description)):
            if value is not None:
                self.fields[key] = str(value)
        if mime_type is not None:
            self.fields["mimeType"] = _mime(mime_type)
        if size is not None:
            if not isinstance(size, int) or not 0 <= size < 2 ** 53:
                raise ValueError("size is a number of bytes")
            self.fields["size"] = size

    def block(self):
        return self._with_annotations({
            "type": "resource_link", **self.fields})


class Message:
    """One message of a prompt. content: text, Text, Image, Audio or Resource;
    a list of them is one message each."""

    ROLES = ("user", "assistant")

    def __init__(self, role, content):
        if role not in self.ROLES:
            raise ValueError(f"role is {role!r}; it is 'user' or 'assistant'")
        self.role = role
        self.content = content


class Result:
    """Structured content together with content of the tool's choice.

    structured: anything that becomes a JSON object (a dict, a dataclass).
    content: text, a content object, or a list of them; without it the
    structured content stands there as JSON text.
    """

    def __init__(self, structured, content=None):
        self.structured = structured
        self.content = content


class _Secrets(Mapping):
    """The call's secrets by name, read-only; its repr shows names only."""

    __slots__ = ("_values",)

    def __init__(self, values):
        object.__setattr__(self, "_values", dict(values))

    def __setattr__(self, name, value):
        raise AttributeError("secrets are read-only")

    def __getitem__(self, name):
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"secret {name!r} {no_secret}") from None

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __contains__(self, name):
        return name in self._values

    def __repr__(self):
        return f"<secrets: {', '.join(sorted(self._values)) or 'none'}>"


#: Why a secret is not there. A call whose version names one that has no value
#: does not begin, so here the version does not name it.
no_secret = ("is not named by this tool's version: name it in `secrets` "
             "(mcpbox_update_tool). If its server does not have it yet, "
             "mcpbox_create_server_secret makes its place and an "
             "administrator sets the value")
#: Filled by the harness before the tool's module runs.
secrets = _Secrets({})


def _json(value):
    import mcpbox_results
    return mcpbox_results.encode(value, LOG_MAX)


class _Log:
    """log(message, level="info"), log.debug(message) ... log.emergency(...):
    sends a line to the caller: text, or any JSON value."""

    __slots__ = ()

    def __call__(self, message, level="info"):
        import _mcpbox
        if level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}")
        if isinstance(message, str) and len(message) > LOG_MAX // 8:
            message = hidden(message)[:LOG_MAX // 8] + "..."
        _mcpbox.log(LEVELS.index(level), _json(message))

    def debug(self, message):
        self(message, "debug")

    def info(self, message):
        self(message, "info")

    def notice(self, message):
        self(message, "notice")

    def warning(self, message):
        self(message, "warning")

    def error(self, message):
        self(message, "error")

    def critical(self, message):
        self(message, "critical")

    def alert(self, message):
        self(message, "alert")

    def emergency(self, message):
        self(message, "emergency")


log = _Log()


def progress(progress, total=None, message=None):
    """Reports progress; it should grow with each call."""
    import _mcpbox
    report = {"progress": progress}
    if total is not None:
        report["total"] = total
    if message is not None:
        report["message"] = hidden(str(message))[:1000]
    _mcpbox.progress(_json(report))


def pause_stream(retry_ms=500):
    """Tells the client's side that nothing will be said for a while: where the
    connection can be taken up again (MCP 2025-11-25, streams with ids) it is
    closed, and the client comes back after retry_ms for the rest. A hint:
    nothing here waits, and elsewhere nothing happens."""
    import _mcpbox
    if not isinstance(retry_ms, int) or not 0 <= retry_ms <= 60000:
        raise ValueError("retry_ms must be between 0 and 60000")
    _mcpbox.pause(retry_ms)
