"""A package index (PEP 503, 691): which wheel of a package is to be installed.

What it says is a stranger's. Nothing of it is believed that is not checked
against the bytes that come (the SHA-256 that it names and that an
administrator is shown), and no file is taken without one."""

import hmac
import json
import re
import urllib.parse

import mcpbox_drivers
import mcpbox_http
import mcpbox_versions as versions

#: A page lists all files of a project; the longest of pypi.org have 20 MB.
PAGE_MAX = 24 << 20
FILES_MAX = 50_000
PAGE_S = 60
#: JSON first, where the index knows it.
ACCEPT = ("application/vnd.pypi.simple.v1+json, "
          "application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1")
_SHA256 = re.compile("[0-9a-f]{64}")


class Refused(mcpbox_drivers.Failure):
    """It will not do, and trying again will not help: no such package, no
    wheel that fits, a wheel that is none."""


def upstream(text):
    """The index does not answer as it should, now: later it may."""
    return mcpbox_drivers.Upstream(text)


def answered(status, url):
    """What an answer that is none of use means."""
    text = f"the index answered {status} to {url}"
    return upstream(text) if status >= 500 or status in (408, 429) \
        else Refused(text)


class File:
    """A wheel as the index tells of it."""

    def __init__(self, wheel, url, sha256, python, yanked):
        self.wheel, self.url, self.sha256 = wheel, url, sha256
        self.python, self.yanked = python, yanked


def _file(base, filename, href, hashes, python, yanked):
    """None for what is no wheel, or none that can be checked."""
    try:
        wheel = versions.WheelName(filename)
        url = mcpbox_http.url(urllib.parse.urljoin(base, href)).text
        python = versions.Specifiers(python or "")
    except ValueError:
        return None
    sha256 = hashes.get("sha256", "")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256.lower()):
        return None
    return File(wheel, url, sha256.lower(), python, yanked)


def _json(base, text):
    said = json.loads(text)
    for f in said["files"][:FILES_MAX]:
        hashes = f.get("hashes")
        yield _file(base, str(f["filename"]), str(f["url"]),
                    hashes if isinstance(hashes, dict) else {},
                    f.get("requires-python"), bool(f.get("yanked")))


def _html(base, text):
    import html.parser

    found = []

    class Anchors(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag == "a" and len(found) < FILES_MAX:
                found.append(dict(attrs))

    parser = Anchors()
    parser.feed(text)
    parser.close()
    for a in found:
        href, _, fragment = (a.get("href") or "").partition("#")
        filename = urllib.parse.unquote(
            urllib.parse.urlsplit(href).path.rpartition("/")[2])
        kind, _, value = fragment.partition("=")
        yield _file(base, filename, href, {kind: value},
                    a.get("data-requires-python"), "data-yanked" in a)


class Index:
    """One index, each page read once."""

    def __init__(self, base):
        self.base = base if base.endswith("/") else base + "/"
        self._pages = {}

    def files(self, name):
        """All wheels of a project; Refused if it has no page."""
        if name not in self._pages:
            self._pages[name] = self._read(name)
        return self._pages[name]

    def _read(self, name):
        url = urllib.parse.urljoin(self.base, name + "/")
        r = fetch("GET", url, {"Accept": ACCEPT}, timeout=PAGE_S,
                  max_bytes=PAGE_MAX, redirects=3)
        if r.status == 404:
            raise Refused(f"the index knows no package {name}")
        if r.status != 200:
            raise answered(r.status, url)
        read = _json if r.media_type.endswith("json") else _html
        try:
            files = [f for f in read(r.url, r.text())
                     if f is not None and f.wheel.name == name]
        except (ValueError, KeyError, TypeError, AttributeError,
                RecursionError) as e:
            raise Refused(f"the index's page of {name} can't be read: "
                          f"{type(e).__name__}") from None
        seen = {}
        for f in files:
            other = seen.setdefault(f.wheel.filename, f)
            # Two truths about one file: none of them is one.
            if other.sha256 != f.sha256:
                raise Refused(f"the index tells two SHA-256 of "
                              f"{f.wheel.filename}")
        return list(seen.values())

    def choose(self, name, specifiers, version="", sha256=""):
        """The best wheel for this interpreter: the newest version, and of it
        the wheel whose tags fit best. version: just this one (then it may be
        yanked, or a prerelease); sha256: just these bytes."""
        tags, env = versions.tags(), versions.environment()
        python = versions.Version(env["python_full_version"])
        exact = versions.Specifiers("==" + version) if version else None
        best, reasons = None, set()
        files = self.files(name)
        pre = (specifiers.names_prerelease or exact is not None
               or all(f.wheel.version.prerelease for f in files))
        for f in files:
            v = f.wheel.version
            if exact is not None and not exact.take(v):
                continue
            if not specifiers.take(v) or (v.prerelease and not pre):
                continue
            if f.yanked and exact is None:
                reasons.add("it was withdrawn by its author")
                continue
            if not f.python.take(python):
                reasons.add(f"it needs Python {f.python.text}")
                continue
            rank = min((tags[t] for t in f.wheel.tags if t in tags),
                       default=None)
            if rank is None:
                reasons.add("no wheel fits this system (CPython "
                            f"{env['python_version']}, glibc 2."
                            f"{versions.glibc()}, "
                            f"{env['platform_machine']})")
                continue
            if sha256 and not hmac.compare_digest(sha256, f.sha256):
                reasons.add("its wheels are others than the one that was "
                            "pinned")
                continue
            key = (v.key, -rank, f.wheel.build)
            if best is None or key > best[0]:
                best = (key, f)
        if best is None:
            what = name + ("==" + version if version else specifiers.text)
            why = "; ".join(sorted(reasons)) or (
                "the index has no such version as a wheel with a SHA-256")
            if sha256:
                raise mcpbox_drivers.UpstreamChanged(f"{what}: {why}")
            raise Refused(f"{what} can't be installed: {why}")
        return best[1]


def fetch(method, url, headers=None, body=None, **kw):
    """mcpbox_http.request, whose errors are the index's."""
    try:
        return mcpbox_http.request(method, url, headers, body, **kw)
    except mcpbox_http.Error as e:
        raise upstream(f"{e.url or url}: {e}") from None
