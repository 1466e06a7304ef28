"""web_fetch: one page of the public web as text.

An ordinary tool: it has what its version declares (`requires: ["*"]`) and its
server was granted, and no more. Which addresses are public is decided where it
connects, for each redirect anew; nothing in here is a boundary.
"""

import html.parser
import re
import urllib.parse
from typing import Annotated, Literal

import mcpbox

TIMEOUT = 10.0              # seconds for all of it, redirects too
MAX_BYTES = 1_000_000       # as it travels, and unpacked
TEXT_MAX = 450_000          # bytes: a result holds it twice, within 1 MiB
HEADERS = 20
TEXT_TYPES = re.compile(r"text/|application/([a-z0-9.+-]+\+)?(json|xml)\b|"
                        r"application/(javascript|x-ndjson|yaml|x-yaml)\b")

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "head",
                      "iframe", "object"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre",
    "section", "table", "tr", "ul"})
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Page(html.parser.HTMLParser):
    """Title, and text with links as [text](address)."""

    def __init__(self, base):
        super().__init__(convert_charrefs=True)
        self.base, self.title, self.parts = base, "", []
        self._skip, self._in_title, self._pre = 0, False, 0
        self._link, self._link_at = None, 0

    def handle_starttag(self, tag, attrs):
        if tag == "title" and not self.title:
            self._in_title = True
        elif tag in _SKIPPED:
            self._skip += 1
        elif tag == "body":
            self._skip = 0          # a head that was never closed
        elif tag in _BLOCKS:
            self.parts.append("\n")
            self._pre += tag == "pre"
            if tag == "li":
                self.parts.append("- ")
        elif tag in ("td", "th"):
            self.parts.append("\t")
        elif tag == "a" and not self._skip:
            self._link = dict(attrs).get("href")
            self._link_at = len(self.parts)
        elif tag == "base":
            self.base = self._absolute(dict(attrs).get("href")) or self.base

    def handle_startendtag(self, tag, attrs):
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        if tag == "title":
            self._in_title = False
        elif tag in _SKIPPED:
            self._skip = max(0, self._skip - 1)
        elif tag in _BLOCKS:
            self.parts.append("\n")
            if tag == "pre":
                self._pre = max(0, self._pre - 1)
        elif tag == "a" and self._link is not None:
            text = "".join(self.parts[self._link_at:]).strip()
            address = self._absolute(self._link)
            if text and address:
                self.parts[self._link_at:] = [f"[{' '.join(text.split())}]"
                                              f"({address})"]
            self._link = None

    def handle_data(self, data):
        if self._in_title:
            self.title += data
        elif not self._skip:
            self.parts.append(data if self._pre else re.sub(r"\s+", " ", data))

    def _absolute(self, href):
        try:
            found = urllib.parse.urljoin(self.base, (href or "").strip())
        except ValueError:
            return None
        return found if found.startswith(("http://", "https://")) else None

    def text(self):
        lines = [re.sub(r"[ \t]+", " ", line).strip()
                 for line in "".join(self.parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _charset(content_type, body):
    found = re.search(r"charset=\"?([A-Za-z0-9_:.-]+)", content_type or "")
    if found is None:
        found = re.search(rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]+)",
                          body[:2048], re.I)
    name = found.group(1) if found else "utf-8"
    name = name.decode("ascii") if isinstance(name, bytes) else name
    try:
        b"".decode(name, "replace")
        # codecs of Python's that no page is written in
        return ("utf-8" if name.lower().replace("-", "_") in (
            "idna", "punycode", "unicode_escape", "raw_unicode_escape")
            else name)
    except (LookupError, UnicodeError, ValueError):
        return "utf-8"


def _read(r):
    """(body, was it cut)"""
    parts = []
    try:
        for piece in r.iter_bytes():
            parts.append(piece)
    except mcpbox.http.TooLarge:
        return b"".join(parts), True
    return b"".join(parts), False


def main(url: Annotated[str, "http or https, port 80 or 443"],
         method: Annotated[Literal["GET", "HEAD"],
                           "HEAD asks for status and headers alone"] = "GET",
         raw: Annotated[bool, "HTML as it is instead of its text"] = False,
         max_chars: Annotated[int, "cut the text behind so many"] = 50000):
    """Fetches one page of the public web and returns its text. At most 10
    seconds, 1 MB and 5 redirects; no cookies, no logins, no scripts."""
    try:
        return _fetch(url, method, raw, max_chars)
    except mcpbox.http.Error as e:
        # The page's failure or the address's, never this code's.
        raise mcpbox.ToolError(f"{type(e).__name__}: {e}",
                               failure=e.failure) from None


def _fetch(url, method, raw, max_chars):
    with mcpbox.http.stream(method, url, timeout=TIMEOUT, max_bytes=MAX_BYTES,
                            headers={"User-Agent": "mcpbox web_fetch"}) as r:
        body, cut = (b"", False) if method == "HEAD" else _read(r)
        kind = (r.headers.get("content-type") or "").lower()
        answer = {"url": r.url, "status": r.status, "headers": {
            k.lower(): _CONTROLS.sub(" ", v)[:500]
            for k, v in list(r.headers.items())[:HEADERS]}}
        ok = r.ok
    if method == "GET" and (TEXT_TYPES.match(kind) or not kind):
        text = body.decode(_charset(kind, body), "replace")
        if "html" in kind and not raw:
            page = _Page(answer["url"])
            page.feed(text)
            page.close()
            text = page.text()
            title = " ".join(_CONTROLS.sub(" ", page.title).split())
            if title:
                answer["title"] = title[:500]
        text = _CONTROLS.sub("", text)
        shown = text[:max(0, max_chars)].encode("utf-8")[:TEXT_MAX]
        answer["text"] = shown.decode("utf-8", "ignore")
        answer["truncated"] = cut or len(answer["text"]) < len(text)
    elif method == "GET":
        answer["bytes"], answer["truncated"] = len(body), cut
    if not ok:
        raise mcpbox.ToolError(f"HTTP status {answer['status']} from "
                               f"{answer['url']}\n"
                               + answer.get("text", "")[:2000],
                               failure="upstream_error")
    return answer
