"""Sends spans and metrics to a collector (docs/decisions/0107). Runs as a
driver, in a runner of its own that may connect to that collector alone.

    spec       {"url", "hosts"}, made by the vault from the sealed document
    arguments  {"posts": [{"path", "body"}]}: each body is the text that is
               sent, JSON of OTLP that admind wrote

The answer says how many of the posts the collector took, and the status of the
last one. It is read by admind-check: this process has heard a stranger."""

import time

import mcpbox_drivers
import mcpbox_http
import mcpbox_mcp_clean as clean
import mcpbox_mcp_wire as wire

#: Seconds for all requests of one run.
SEND_S = 20
#: Bytes of an answer. A real one has two digits, or some kB of an error.
ANSWER_MAX = 64 << 10
#: Where a post may go, after the collector's address.
PATHS = {"/v1/traces": "rejectedSpans", "/v1/metrics": "rejectedDataPoints"}


def retry_after(header):
    """Seconds of Retry-After (RFC 9110, 10.2.3). A date counts as none: our
    clock may differ from the collector's."""
    text = (header or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 \
        else 0


def rejected(body, name):
    """How many spans or points the collector says it left out."""
    try:
        said = wire.parse(body)
        n = int(said["partialSuccess"][name])
    except (wire.Broken, KeyError, TypeError, ValueError, OverflowError):
        return 0
    return n if 0 <= n < 1 << 31 else 0


def fault(r):
    """A status that is no success, as a sentence without the answer's body: a
    collector may repeat what it got."""
    text = f"HTTP {r.status}"
    if 300 <= r.status < 400:
        text += (", a redirect, which is not followed; it leads to "
                 + clean.line(r.headers.get("location") or "nowhere", 200))
    return text


def main(spec, arguments, secrets):
    until = time.monotonic() + SEND_S
    said = {"sent": 0, "status": 0, "retry_after": 0, "rejected": 0, "why": ""}
    for post in arguments["posts"]:
        if post["path"] not in PATHS:
            raise mcpbox_drivers.InvalidArguments("no such path")
        address = spec["url"] + post["path"]
        said["status"] = said["retry_after"] = 0
        try:
            left = until - time.monotonic()
            if left <= 0:
                raise mcpbox_http.Timeout("no whole answer in the time there "
                                          "is")
            r = mcpbox_http.request(
                "POST", address, {"Content-Type": "application/json"},
                post["body"].encode(), timeout=left, max_bytes=ANSWER_MAX)
        except mcpbox_http.Error as e:
            said["why"] = f"{address}: {e}"
            break
        said["status"] = r.status
        if not r.ok:
            said["retry_after"] = retry_after(r.headers.get("retry-after"))
            said["why"] = f"{address}: {fault(r)}"
            break
        said["sent"] += 1
        said["rejected"] += rejected(r.body, PATHS[post["path"]])
    return mcpbox_drivers.Body({"content": [], "structuredContent": said,
                                "isError": False})
