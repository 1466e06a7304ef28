"""Texts are cut here before sandboxd replaces the secrets in all that leaves:
it finds whole ones, not the half that a cut would leave. So what gets cut is
cleaned first.
"""

import base64
import json
import urllib.parse

SECRET_MIN = 8      # as sandboxd's: shorter ones match anything
MARK = "[secret]"

_hidden = ()                # forms of the call's secrets, longest first


def hide_secrets(values):
    """Tells `hidden` what to look for."""
    global _hidden
    forms = set()
    for v in values:
        if len(v) >= SECRET_MIN:
            raw = v.encode("utf-8", "surrogateescape")
            forms |= {v, json.dumps(v)[1:-1], repr(v)[1:-1], raw.hex(),
                      urllib.parse.quote(raw), urllib.parse.quote(raw, ""),
                      base64.b64encode(raw).decode().rstrip("=")}
    _hidden = tuple(sorted(forms, key=len, reverse=True))


def hidden(text, torn=False):
    """The text without secrets, to be done before it is cut. torn: it has
    been cut at its end already; what may be the start of one goes too."""
    for form in _hidden:
        text = text.replace(form, MARK)
    if torn:
        for form in _hidden:
            for n in range(min(len(form) - 1, len(text)), 0, -1):
                if text.endswith(form[:n]):
                    text = text[:-n]
                    break
    return text
