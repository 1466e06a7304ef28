"""What a tool can import beside the standard library.

    from mcpbox import Image, ToolError, log, progress, secrets

Content classes say how a result is to be shown; anything else a tool returns
becomes JSON text.
"""

import base64
from collections.abc import Mapping

from mcpbox_hide import hidden

__all__ = [
    "Audio", "Image", "Resource", "ResourceLink", "Text", "ToolError",
    "log", "progress", "secrets",
]

#: MCP's log levels, in its order; the index travels.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical",
          "alert", "emergency")
#: One log line; more is cut. A frame must hold it.
LOG_MAX = 16 * 1024


class ToolError(Exception):
    """A failure the caller should read as it stands, without a traceback."""


class Content:
    """Base of all content classes."""

    def __init__(self, annotations=None):
        self.annotations = annotations

    def block(self):
        """The MCP content block, as a dictionary."""
        raise NotImplementedError

    def _with_annotations(self, block):
        if self.annotations is not None:
            block["annotations"] = dict(self.annotations)
        return block


def _base64(data):
    if isinstance(data, str):
        base64.b64decode(data, validate=True)
        return data
    return base64.b64encode(bytes(data)).decode("ascii")


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
        self.data = _base64(data)
        self.mime_type = str(mime_type)

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
    """An embedded resource: text or bytes under a URI."""

    def __init__(self, uri, text=None, data=None, mime_type=None,
                 annotations=None):
        super().__init__(annotations)
        if (text is None) == (data is None):
            raise ValueError("Resource needs text or data, not both")
        self.resource = {"uri": str(uri)}
        if mime_type is not None:
            self.resource["mimeType"] = str(mime_type)
        if text is not None:
            self.resource["text"] = str(text)
        else:
            self.resource["blob"] = _base64(data)

    def block(self):
        return self._with_annotations({
            "type": "resource", "resource": dict(self.resource)})


class ResourceLink(Content):
    """A URI the client may fetch by itself."""

    def __init__(self, uri, name, title=None, description=None,
                 mime_type=None, size=None, annotations=None):
        super().__init__(annotations)
        self.fields = {"uri": str(uri), "name": str(name)}
        for key, value in (("title", title), ("description", description),
                           ("mimeType", mime_type), ("size", size)):
            if value is not None:
                self.fields[key] = value

    def block(self):
        return self._with_annotations({
            "type": "resource_link", **self.fields})


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
            raise KeyError(
                f"secret {name!r} was not given to this call; a tool gets "
                "the secrets that its approved version names and an "
                "administrator has set") from None

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __contains__(self, name):
        return name in self._values

    def __repr__(self):
        return f"<secrets: {', '.join(sorted(self._values)) or 'none'}>"


#: Filled by the harness before the tool's module runs.
secrets = _Secrets({})


def _json(value):
    import mcpbox_results
    return mcpbox_results.encode(value, LOG_MAX)


def log(message, level="info"):
    """Sends a log line to the caller: text, or any JSON value."""
    import _mcpbox
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}")
    if isinstance(message, str) and len(message) > LOG_MAX // 8:
        message = hidden(message)[:LOG_MAX // 8] + "..."
    _mcpbox.log(LEVELS.index(level), _json(message))


def progress(progress, total=None, message=None):
    """Reports progress; it should grow with each call."""
    import _mcpbox
    report = {"progress": progress}
    if total is not None:
        report["total"] = total
    if message is not None:
        report["message"] = hidden(str(message))[:1000]
    _mcpbox.progress(_json(report))
