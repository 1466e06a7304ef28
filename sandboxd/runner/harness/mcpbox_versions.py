"""Versions, requirements and tags of Python packages, as far as an installer of
wheels needs them: PEP 440, PEP 508, PEP 425 and 600. Text in, values out; what
is in no form of theirs is a ValueError."""

import os
import platform
import re
import sys

_VERSION = re.compile(r"""
    v?(?:(?P<epoch>[0-9]{1,9})!)?(?P<release>[0-9]{1,18}(?:\.[0-9]{1,18}){0,19})
    (?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_n>[0-9]{0,18}))?
    (?:-(?P<post_1>[0-9]{1,18})|(?P<post>[-_.]?(?:post|rev|r)[-_.]?)(?P<post_n>[0-9]{0,18}))?
    (?:(?P<dev>[-_.]?dev[-_.]?)(?P<dev_n>[0-9]{0,18}))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+){0,19}))?""",
    re.VERBOSE | re.IGNORECASE | re.ASCII)
_PRE = {"a": "a", "alpha": "a", "b": "b", "beta": "b", "c": "rc", "rc": "rc",
        "pre": "rc", "preview": "rc"}
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_SPECIFIER = re.compile(r"(===|==|!=|<=|>=|~=|<|>)\s*([^\s,;)]{1,128})")
#: A requirement, a marker: what is longer is none.
REQUIREMENT_MAX = 1000
_END = float("inf")


def name(text):
    """A package's name as PEP 503 normalises it."""
    if len(text) > 128 or not _NAME.fullmatch(text):
        raise ValueError(f"{text[:100]!r} is no name of a package")
    return re.sub(r"[-_.]+", "-", text).lower()


class Version:
    """Ordered as PEP 440 has it."""

    __slots__ = ("text", "epoch", "release", "pre", "post", "dev", "local")

    def __init__(self, text):
        m = _VERSION.fullmatch(text.strip()) if len(text) <= 200 else None
        if m is None:
            raise ValueError(f"{text[:100]!r} is no version")
        self.text = text.strip()
        self.epoch = int(m["epoch"] or 0)
        self.release = tuple(int(n) for n in m["release"].split("."))
        self.pre = ((_PRE[m["pre"].lower()], int(m["pre_n"] or 0))
                    if m["pre"] else None)
        self.post = (int(m["post_1"]) if m["post_1"] else
                     int(m["post_n"] or 0) if m["post"] else None)
        self.dev = int(m["dev_n"] or 0) if m["dev"] else None
        self.local = tuple((1, int(p), "") if p.isdigit() else (0, 0, p)
                           for p in re.split("[-_.]", m["local"].lower())
                           ) if m["local"] else ()

    @property
    def prerelease(self):
        return self.pre is not None or self.dev is not None

    @property
    def public(self):
        """What orders versions whose local part does not count."""
        release = self.release
        while len(release) > 1 and release[-1] == 0:
            release = release[:-1]
        if self.pre is not None:
            pre = (0, *self.pre)
        elif self.post is None and self.dev is not None:
            pre = (-1,)
        else:
            pre = (1,)
        return (self.epoch, release, pre,
                -1 if self.post is None else self.post,
                _END if self.dev is None else self.dev)

    @property
    def key(self):
        return (*self.public, self.local)

    def starts(self, prefix):
        """Is it one of prefix.*?"""
        wanted = prefix.release
        have = self.release + (0,) * (len(wanted) - len(self.release))
        return (self.epoch == prefix.epoch
                and have[:len(wanted)] == wanted)

    def __str__(self):
        return self.text


def _one(op, text):
    """A specifier as a function of a Version."""
    if op == "===":
        return lambda v: v.text.lower() == text.lower()
    if text.endswith(".*"):
        if op not in ("==", "!="):
            raise ValueError(f"{op}{text} is no specifier")
        prefix = Version(text[:-2])
        if prefix.prerelease or prefix.post is not None or prefix.local:
            raise ValueError(f"{op}{text} is no specifier")
        return lambda v: v.starts(prefix) == (op == "==")
    w = Version(text)
    if op in ("==", "!="):
        def same(v):
            return v.key == w.key if w.local else v.public == w.public
        return same if op == "==" else lambda v: not same(v)
    if w.local:
        raise ValueError(f"{op}{text}: only == takes a local version")
    if op == "~=":
        if len(w.release) < 2:
            raise ValueError(f"~={text} is no specifier")
        up = Version(f"{w.epoch}!" + ".".join(map(str, w.release[:-1])))
        return lambda v: v.public >= w.public and v.starts(up)
    if op == ">=":
        return lambda v: v.public >= w.public
    if op == "<=":
        return lambda v: v.public <= w.public
    base = (w.epoch, w.public[1])
    if op == "<":
        return lambda v: (v.public < w.public and (
            w.prerelease or not v.prerelease
            or (v.epoch, v.public[1]) != base))
    return lambda v: (v.public > w.public and not v.local and (
        w.post is not None or v.post is None
        or (v.epoch, v.public[1]) != base))


class Specifiers:
    """All of a comma-separated list; an empty one takes every version."""

    def __init__(self, text=""):
        self.text = text.strip()
        self._all, self._pre = [], False
        for part in filter(None, (p.strip() for p in self.text.split(","))):
            m = _SPECIFIER.fullmatch(part)
            if m is None:
                raise ValueError(f"{part[:100]!r} is no specifier")
            self._all.append(_one(*m.groups()))
            if m[1] in ("==", "===", ">=", "~=") and not m[2].endswith("*"):
                try:
                    self._pre |= Version(m[2]).prerelease
                except ValueError:
                    pass

    def take(self, version):
        return all(f(version) for f in self._all)

    @property
    def names_prerelease(self):
        return self._pre


# ---- requirements ----

_TOKEN = re.compile(r"\s*(?:(\()|(\))|(===|==|!=|<=|>=|~=|<|>)|"
                    r"(\"[^\"]*\"|'[^']*')|([a-z_.]+))", re.ASCII)


def environment():
    """What markers speak of, here."""
    return {
        "os_name": os.name, "sys_platform": sys.platform,
        "platform_machine": os.uname().machine,
        "platform_python_implementation": "CPython",
        "platform_release": "", "platform_system": "Linux",
        "platform_version": "", "implementation_name": "cpython",
        "python_version": ".".join(map(str, sys.version_info[:2])),
        "python_full_version": platform.python_version(),
        "implementation_version": platform.python_version(),
        "extra": "",
    }


class _Marker:
    """A marker's value, by descent; it is short, so the descent is."""

    def __init__(self, text, env):
        self._env, self._tokens, at = env, [], 0
        text = text.rstrip()
        while at < len(text):
            m = _TOKEN.match(text, at)
            if m is None:
                raise ValueError(f"{text[:100]!r} is no marker")
            self._tokens.append(m[m.lastindex])
            at = m.end()
        self._tokens.append(None)
        self._at = self._depth = 0

    def _next(self):
        token = self._tokens[self._at]
        if token is None:
            raise ValueError("a marker is cut short")
        self._at += 1
        return token

    def _value(self):
        token = self._next()
        if token[0] in "\"'":
            return token[1:-1], False
        token = token.replace(".", "_")
        if token == "python_implementation":
            token = "platform_python_implementation"
        if token not in self._env:
            raise ValueError(f"{token!r} is no variable of markers")
        return self._env[token], token != "extra"

    def _operand(self):
        if self._tokens[self._at] == "(":
            self._depth += 1
            if self._depth > 20:
                raise ValueError("a marker is nested too deeply")
            self._at += 1
            value = self._or()
            if self._next() != ")":
                raise ValueError("a marker's parenthesis is not closed")
            self._depth -= 1
            return value
        left, variable = self._value()
        op = self._next()
        if op == "not":
            if self._next() != "in":
                raise ValueError("not is followed by in")
            op = "not in"
        right, other = self._value()
        if op in ("in", "not in"):
            return (left in right) == (op == "in")
        if variable or other:
            try:
                # a version on both sides is compared as one
                return (Specifiers(op + right).take(Version(left)))
            except ValueError:
                pass
        if op in ("==", "==="):
            return left == right
        if op == "!=":
            return left != right
        if op in ("<", "<=", ">", ">="):
            return {"<": left < right, "<=": left <= right,
                    ">": left > right, ">=": left >= right}[op]
        raise ValueError(f"{op!r} compares no texts")

    def _and(self):
        value = self._operand()
        while self._tokens[self._at] == "and":
            self._at += 1
            value = self._operand() and value
        return value

    def _or(self):
        value = self._and()
        while self._tokens[self._at] == "or":
            self._at += 1
            value = self._and() or value
        return value

    def value(self):
        value = self._or()
        if self._tokens[self._at] is not None:
            raise ValueError("a marker goes on behind its end")
        return value


class Requirement:
    """name, extras, Specifiers; `wanted` by its marker, in env."""

    def __init__(self, text, env):
        if len(text) > REQUIREMENT_MAX:
            raise ValueError("a requirement is too long")
        rest, semicolon, marker = text.partition(";")
        m = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^]]*)\])?\s*", rest)
        if m is None:
            raise ValueError(f"{text[:100]!r} is no requirement")
        self.text = text.strip()
        self.name = name(m[1].strip())
        self.extras = [name(e.strip()) for e in (m[2] or "").split(",")
                       if e.strip()]
        rest = rest[m.end():].strip()
        if rest.startswith("@"):
            raise ValueError(f"{self.name} is asked for by an address, which "
                             "is not followed")
        if rest.startswith("(") and rest.endswith(")"):
            rest = rest[1:-1]
        self.specifiers = Specifiers(rest)
        self.wanted = not semicolon or _Marker(marker, env).value()


# ---- tags ----

def _platforms(machine, glibc):
    """Tags of this system's platform, the most particular first. The oldest
    glibc that manylinux knows is 2.5, on x86 alone."""
    out = []
    legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    oldest = 5 if machine in ("x86_64", "i686") else 17
    for minor in range(glibc, oldest - 1, -1):
        out.append(f"manylinux_2_{minor}_{machine}")
        if minor in legacy:
            out.append(f"{legacy[minor]}_{machine}")
    out.append(f"linux_{machine}")
    return out


def glibc():
    """Minor version of this system's glibc 2; 0: none."""
    try:
        m = re.fullmatch(r"glibc 2\.([0-9]{1,3})(\..*)?",
                         os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (ValueError, OSError):
        m = None
    return int(m[1]) if m else 0


def tags():
    """{tag: rank} of what this interpreter can import; the least rank is the
    best."""
    minor = sys.version_info[1]
    machine = os.uname().machine
    plats = _platforms(machine, glibc())
    out = [f"cp3{minor}-cp3{minor}-{p}" for p in plats]
    out += [f"cp3{m}-abi3-{p}" for m in range(minor, 1, -1) for p in plats]
    out += [f"cp3{minor}-none-{p}" for p in plats]
    out += [f"py{v}-none-{p}" for v in _pythons(minor) for p in plats]
    out += [f"cp3{minor}-none-any"]
    out += [f"py{v}-none-any" for v in _pythons(minor)]
    return {tag: i for i, tag in reversed(list(enumerate(out)))}


def _pythons(minor):
    return [f"3{minor}", "3"] + [f"3{m}" for m in range(minor - 1, -1, -1)]


class WheelName:
    """A wheel's file name, taken apart (PEP 427); `tags` expanded."""

    def __init__(self, filename):
        m = re.fullmatch(r"([A-Za-z0-9._]+)-([A-Za-z0-9._!+]+)"
                         r"(?:-([0-9][A-Za-z0-9._]*))?"
                         r"-([A-Za-z0-9._]+)-([A-Za-z0-9._]+)-([A-Za-z0-9._]+)"
                         r"\.whl", filename, re.ASCII)
        if m is None or len(filename) > 255:
            raise ValueError(f"{filename[:100]!r} is no name of a wheel")
        self.filename = filename
        self.name = name(m[1])
        self.version = Version(m[2])
        build = re.match("([0-9]{0,18})(.*)", m[3] or "")
        self.build = (int(build[1] or 0), build[2])
        parts = [m[i].split(".") for i in (4, 5, 6)]
        if len(parts[0]) * len(parts[1]) * len(parts[2]) > 500:
            raise ValueError("a wheel's name has too many tags")
        self.tags = [f"{i}-{a}-{p}" for i in parts[0] for a in parts[1]
                     for p in parts[2]]
