"""Sends a notification to its target (docs/decisions/0112). Runs as a driver,
in a runner of its own that may connect to that target's host alone.

    spec       {"target", "hosts"}, made by the vault from the sealed document
    arguments  {"id", "at", "title", "text", "link", "data"}: id is a UUID; at
               are Unix seconds
    secrets    {"notify"}: the key, token or password of the target, or none

The answer says whether it was sent, and the status that the target gave. It is
read by admind-check: this process has heard a stranger. No text of the
stranger's is passed on but the place that a redirect names: a target knows its
secret, and may say it."""

import base64
import binascii
import datetime
import hashlib
import hmac
import json
import re
import time
import urllib.parse

import mcpbox_drivers
import mcpbox_http
import mcpbox_mcp_clean as clean
import mcpbox_mcp_wire as wire
import mcpbox_notify_mail as mail
import mcpbox_telemetry as telemetry
from mcpbox_hide import SECRET_MIN

#: Seconds for all of one run.
SEND_S = 20
#: Bytes of an answer that http may keep. Only a refusal of Matrix is read.
ANSWER_MAX = 64 << 10
#: The longest wait that is told, as for Retry-After (mcpbox_telemetry.py).
RETRY_MAX = 99999
TITLE_MAX = 200         # characters; a screen shows fewer
TEXT_MAX = 64 << 10     # bytes, of text without a smaller limit
NTFY_MAX = 4096         # a longer message becomes an attachment
#: An event of Matrix has at most 65,536 bytes, all members counted, and each
#: character of this text may be two there.
MATRIX_MAX = 24 << 10
CUT = "\n[The rest was cut. The panel shows all.]"

_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ROOM = re.compile(r"![!-~]{1,254}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TOKEN = re.compile(r"[!-~]+")
#: All of ASCII that is printed: quote() then changes nothing but the rest.
_PRINTED = "".join(map(chr, range(0x21, 0x7f)))


def bad(text):
    return mcpbox_drivers.InvalidArguments(text)


def cut(text, most):
    """Shortens text to so many bytes of UTF-8; then its last line says so."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    return raw[:most - len(CUT)].decode("utf-8", "ignore") + CUT


class Notification:
    """The arguments, fit for headers and screens."""

    def __init__(self, given):
        self.id, self.at = given.get("id"), given.get("at")
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise bad("id must be a UUID")
        if type(self.at) is not int or not 0 <= self.at < 253402300800:
            raise bad("at must be a time")
        title, text, link = (given.get(n) for n in ("title", "text", "link"))
        if not all(isinstance(t, str) for t in (title, text, link)):
            raise bad("title, text and link must be text")
        # =? would begin text that the receiver decodes, controls too.
        self.title = clean.line(title, TITLE_MAX).replace("=?", "= ?")
        self.text = cut(clean.text(text).removesuffix("\n"), TEXT_MAX)
        self.link = link and urllib.parse.quote(Address(link, "link").given,
                                                safe=_PRINTED)
        self.data = given.get("data")
        if not isinstance(self.data, dict):
            raise bad("data must be an object")

    def whole(self, most):
        """Title, text and link as one text; the link is not cut."""
        end = "\n" + self.link if self.link else ""
        return cut(f"{self.title}\n{self.text}", most - len(end)) + end


class Address:
    """A URL that was judged. given: with its fragment."""

    def __init__(self, text, name):
        try:
            self.url, self.given = mcpbox_http.url(text), text
        except mcpbox_http.BadRequest as e:
            raise bad(f"{name}: {e}") from None
        self.origin = f"{self.url.scheme}://{self.url.authority}"


def sign(secret, ident, at, body):
    """Signs by the Standard Webhooks specification."""
    key = secret.encode("utf-8", "surrogateescape")
    if secret.startswith("whsec_"):
        try:
            key = base64.b64decode(key[6:] + b"=" * (-len(key[6:]) % 4),
                                   validate=True)
        except binascii.Error:
            key = b""
        if not key:
            raise bad("the secret begins with whsec_, and the rest is no "
                      "base64")
    made = hmac.new(key, f"{ident}.{at}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(made.digest()).decode()


def bearer(secret):
    """Makes the header of a token."""
    if not _TOKEN.fullmatch(secret):
        raise bad("the secret is no token: it has blanks, or other characters "
                  "that a header can't have")
    return {"Authorization": "Bearer " + secret}


def webhook(n, secret, address):
    if secret is None:
        raise bad("a webhook needs a secret, which signs")
    when = datetime.datetime.fromtimestamp(n.at, datetime.timezone.utc)
    body = json.dumps(
        {"type": "mcpbox.requests", "timestamp": f"{when:%Y-%m-%dT%H:%M:%SZ}",
         "data": {**n.data, "title": n.title, "text": n.text, "link": n.link}},
        separators=(",", ":")).encode()
    now = int(time.time())      # of this try, which the receiver compares
    return "POST", address, {
        "Content-Type": "application/json", "webhook-id": n.id,
        "webhook-timestamp": str(now),
        "webhook-signature": sign(secret, n.id, now, body)}, body


def header(text):
    """Makes a header's value of any text (RFC 2047, which ntfy decodes)."""
    if text.isascii():
        return text
    words, word = [], b""
    for c in text:
        if len(word + c.encode()) > 45:     # a word has at most 75 characters
            words.append(word)
            word = b""
        word += c.encode()
    return " ".join(f"=?UTF-8?B?{base64.b64encode(w).decode()}?="
                    for w in (*words, word))


def ntfy(n, secret, address):
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    if n.title:
        headers["Title"] = header(n.title)
    if n.link:
        headers["Click"] = n.link
    if secret is not None and ":" in secret:
        headers["Authorization"] = "Basic " + base64.b64encode(
            secret.encode("utf-8", "surrogateescape")).decode()
    elif secret is not None and secret.startswith("tk_"):
        headers |= bearer(secret)
    elif secret is not None:
        raise bad("the secret of an ntfy topic must be a token, tk_..., or "
                  "user:password")
    return "POST", address, headers, cut(n.text or n.title, NTFY_MAX).encode()


def matrix(n, secret, address, room):
    if secret is None:
        raise bad("a Matrix room needs a secret, the access token")
    if not _ROOM.fullmatch(room):
        raise bad("the target has no room's ID, which begins with !")
    if "?" in address or "#" in address:
        raise bad("the URL of a Matrix server has no ? and no #")
    return "PUT", (
        f"{address.rstrip('/')}/_matrix/client/v3/rooms/"
        f"{urllib.parse.quote(room, safe='')}/send/m.room.message/{n.id}"), {
        "Content-Type": "application/json", **bearer(secret)}, json.dumps(
        {"msgtype": "m.text", "body": n.whole(MATRIX_MAX),
         "m.mentions": {}}).encode()     # no name in it is called


#: Words after the kind.
WORDS = {"webhook": 1, "ntfy": 1, "matrix": 2, "smtp": 3, "smtps": 3}
OVER_HTTP = {"webhook": webhook, "ntfy": ntfy, "matrix": matrix}


def withhold(secret, target):
    """Names the texts that no sentence of ours may have: the secret, its parts,
    the ways in which it travels. A path is often a secret, too, unless it is a
    short word."""
    path = target.removeprefix("/")
    forms = {path} if len(path) >= SECRET_MIN else set()
    for part in {secret, secret.partition(":")[2],
                 secret.removeprefix("whsec_")} - {""}:
        raw = part.encode("utf-8", "surrogateescape")
        forms |= {part, raw.hex(), urllib.parse.quote(raw),
                  urllib.parse.quote(raw, ""),
                  base64.b64encode(raw).decode().rstrip("="),
                  base64.urlsafe_b64encode(raw).decode().rstrip("=")}
    clean.withhold(forms)


def fault(e):
    """An error as a sentence, without the words of the other side."""
    text = str(e)
    return text.partition(":")[0] if isinstance(
        e, mcpbox_http.ProtocolError) else text


def matrix_wait(r):
    """Seconds of retry_after_ms, which servers of Matrix before 1.10 send in
    the body of a 429 (client-server API, rate limiting). Of the body, which a
    stranger wrote, this number alone is taken."""
    try:
        ms = wire.parse(r.read())["retry_after_ms"]
    except (wire.Broken, mcpbox_http.Error, KeyError, TypeError):
        return 0
    if type(ms) is not int or ms < 0:
        return 0
    return min(-(-ms // 1000), RETRY_MAX)


def over_http(said, request, left, kind):
    """Sends a request. The status says all but how long Matrix wants us to
    wait."""
    method, address, headers, body = request
    with mcpbox_http.stream(method, address, headers, body, timeout=left,
                            max_bytes=ANSWER_MAX, decompress=False) as r:
        said["status"] = r.status if r.status <= 599 else 0   # RFC 9110, 15
        if r.ok:
            return ""
        said["retry_after"] = telemetry.retry_after(
            r.headers.get("retry-after"))
        if kind == "matrix" and r.status == 429 and said["retry_after"] == 0:
            said["retry_after"] = matrix_wait(r)
        return telemetry.fault(r)


def main(spec, arguments, secrets):
    until = time.monotonic() + SEND_S
    n = Notification(arguments)
    kind, *words = spec["target"].split(" ")
    if len(words) != WORDS.get(kind) or not all(words):
        raise bad("the target is of no known form")
    secret = secrets.get("notify")
    if secret is not None and (not secret or (
            kind != "webhook" and _CONTROLS.search(secret))):
        raise bad("the secret is empty, or has control characters")
    said = {"sent": 0, "status": 0, "retry_after": 0, "rejected": 0, "why": ""}
    try:
        if kind in OVER_HTTP:
            at = Address(words[0], "the target")
            place = at.origin
            request = OVER_HTTP[kind](n, secret, *words)
            withhold(secret or "", at.url.target)
            why = over_http(said, request, until - time.monotonic(), kind)
        else:
            u = mail.server(kind, words[0])
            place = f"{kind}://{words[0]}"
            login = None if secret is None else mail.account(secret)
            why, said["status"] = "", mail.send(
                n, kind, u, *map(mail.address, words[1:]), login, until)
    except mail.Refused as e:
        why, said["status"] = str(e), e.code
    except mcpbox_http.BadRequest as e:
        raise bad(str(e)) from None
    except mcpbox_http.Error as e:
        why = fault(e)
    if why:
        said["why"] = clean.line(f"{place}: {why}")
    else:
        said["sent"] = 1
    return mcpbox_drivers.Body({"content": [], "structuredContent": said,
                                "isError": False})
