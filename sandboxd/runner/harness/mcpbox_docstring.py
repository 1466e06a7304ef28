"""Parameter descriptions out of a docstring: Google, Sphinx and NumPy style.

Simple on purpose: a section it does not understand stays in the text.
"""

import inspect
import re

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Params)\s*:\s*$")
_GOOGLE = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_RULE = re.compile(r"^-{3,}\s*$")


def _indent(line):
    return len(line) - len(line.lstrip())


class _Found(dict):
    """name -> list of text lines"""

    def text(self):
        return {name: " ".join(" ".join(lines).split())
                for name, lines in self.items() if any(lines)}


def _google(lines, i, found):
    """Reads an Args: section that begins behind line i; returns its end."""
    base = None
    current = None
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
            continue
        depth = _indent(line)
        if depth == 0:
            break
        if base is None:
            base = depth
        match = _GOOGLE.match(line.strip())
        if depth <= base and match:
            current = match.group(1)
            found[current] = [match.group(2)]
        elif current is not None:
            found[current].append(line.strip())
        i += 1
    return i


def _numpy(lines, i, found):
    """Reads a Parameters section behind its rule; returns its end."""
    current = []
    while i < len(lines):
        line = lines[i]
        if (line.strip() and _indent(line) == 0 and i + 1 < len(lines)
                and _RULE.match(lines[i + 1])):
            break
        match = _NUMPY.match(line) if _indent(line) == 0 else None
        if match:
            current = [n.strip() for n in match.group(1).split(",")]
            for name in current:
                found[name] = []
        elif line.strip():
            for name in current:
                found[name].append(line.strip())
        i += 1
    return i


def _sphinx(lines, i, found):
    """Reads one :param: field; returns the line behind it."""
    match = _SPHINX.match(lines[i].strip())
    name = match.group(1)
    found[name] = [match.group(2)]
    i += 1
    while i < len(lines) and lines[i].strip() and _indent(lines[i]) > 0:
        found[name].append(lines[i].strip())
        i += 1
    return i


def parse(doc):
    """(text without parameter sections or None, {parameter: description})"""
    if not doc or not doc.strip():
        return None, {}
    lines = inspect.cleandoc(doc).splitlines()
    found = _Found()
    rest = []
    i = 0
    while i < len(lines):
        line = lines[i]
        if _SECTION.match(line):
            i = _google(lines, i + 1, found)
        elif (line.strip() in ("Parameters", "Other Parameters")
              and i + 1 < len(lines) and _RULE.match(lines[i + 1])):
            i = _numpy(lines, i + 2, found)
        elif _SPHINX.match(line.strip()):
            i = _sphinx(lines, i, found)
        else:
            rest.append(line)
            i += 1
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(rest)).strip()
    return text or None, found.text()
