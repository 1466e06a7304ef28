"""Fetches the public keys of an issuer (docs/decisions/0097). Runs as a driver,
in a runner of its own that may connect to hosts of the access document alone.

    spec       {"url", "hosts"}, made by the vault from the sealed document:
               hosts are lines "tcp HOST PORT", the first that of the URL
    arguments  {"discovery"}: is the URL the issuer's, or that of its keys?

The answer is the text of the JWK set as it came, with its age. The keys are
read by admind-check, not here: this process has heard a stranger."""

import re
import time

import mcpbox_drivers
import mcpbox_http
import mcpbox_mcp_clean as clean
import mcpbox_mcp_wire as wire

#: Seconds for all requests of one run.
FETCH_S = 20
#: Bytes of metadata, and of a key set. Real ones have at most 10 kB.
DOCUMENT_MAX = 64 << 10
#: Seconds, if the answer says nothing about its age.
AGE_S = 3600
AGE_MAX_S = 1 << 31

_AGE = re.compile(r'(?:^|[,\s])max-age="?([0-9]{1,10})"?(?=[,\s]|$)')
_NOT_KEPT = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?=[,\s=]|$)")


def age(header):
    """Seconds of freshness that Cache-Control says (RFC 9111, 5.2.2)."""
    header = (header or "").lower()
    if _NOT_KEPT.search(header):
        return 0
    found = _AGE.search(header)
    return min(int(found[1]), AGE_MAX_S) if found else AGE_S


def places(issuer):
    """Where metadata of an issuer may be: RFC 8414, then OpenID Connect's
    discovery in both spellings, in the order of MCP's specification."""
    u = mcpbox_http.url(issuer)
    origin = f"{u.scheme}://{u.authority}"
    path = u.target.partition("?")[0].rstrip("/")
    return list(dict.fromkeys((
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration")))


class Fetcher:
    """Requests that share one end."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.until = time.monotonic() + FETCH_S

    def get(self, address):
        """The answer, whatever its status. Errors name the address."""
        left = self.until - time.monotonic()
        try:
            if left <= 0:
                raise mcpbox_http.Timeout("no whole answer in the time there "
                                          "is")
            return mcpbox_http.request(
                "GET", address, {"Accept": "application/json"}, timeout=left,
                max_bytes=DOCUMENT_MAX)
        except mcpbox_http.Timeout as e:
            raise mcpbox_drivers.Timeout(
                f"{address}: {e} ({FETCH_S} s for all requests)") from None
        except mcpbox_http.TooLarge as e:
            raise mcpbox_drivers.Limit(f"{address}: {e}") from None
        except mcpbox_http.Error as e:
            raise mcpbox_drivers.Upstream(f"{address}: {e}") from None

    def may(self, address):
        """Refuses an address of the keys that the document does not cover.
        egress would refuse it, too; this says how it is mended."""
        try:
            u = mcpbox_http.url(address)
        except mcpbox_http.BadRequest:
            raise mcpbox_drivers.Upstream(
                "the issuer's metadata has no usable jwks_uri") from None
        if u.scheme != "https":
            raise mcpbox_drivers.Upstream(
                "the issuer's metadata has a jwks_uri without https")
        if f"tcp {u.host} {u.port}" not in self.hosts:
            host = u.host if u.port == 443 else f"{u.host}:{u.port}"
            raise mcpbox_drivers.MissingGrant(
                f"the issuer's keys are at another host, {host}: if that is "
                "its own, add it to key_hosts of the issuer")
        return u.text


def said(r):
    """A status that is no success, as a sentence."""
    text = f"HTTP {r.status}"
    if 300 <= r.status < 400:
        text += (", a redirect, which is not followed; it leads to "
                 + clean.line(r.headers.get("location") or "nowhere", 200))
    return text


def metadata(fetcher, issuer):
    """The metadata object of an issuer. It must name this very issuer."""
    faults = []
    for place in places(issuer):
        r = fetcher.get(place)
        if r.status != 200:
            faults.append(f"{place}: {said(r)}")
            continue
        try:
            found = wire.parse(r.body)
        except wire.Broken:
            found = None
        if not isinstance(found, dict):
            faults.append(f"{place}: no JSON object")
            continue
        if found.get("issuer") != issuer:
            raise mcpbox_drivers.Upstream(
                f"{place}: is of the issuer "
                f"{clean.line(found.get('issuer'), 200)}, which must be equal "
                "to the access document's byte by byte")
        return found
    raise mcpbox_drivers.Upstream("the issuer has no metadata: "
                                  + "; ".join(faults))


def main(spec, arguments, secrets):
    fetcher = Fetcher(spec["hosts"])
    address = spec["url"]
    if arguments.get("discovery") is True:
        address = fetcher.may(metadata(fetcher, address).get("jwks_uri"))
    r = fetcher.get(address)
    if r.status != 200:
        raise mcpbox_drivers.Upstream(f"{address}: {said(r)}")
    try:
        keys = r.body.decode("utf-8")
    except UnicodeDecodeError:
        raise mcpbox_drivers.Upstream(f"{address}: is not UTF-8 text"
                                      ) from None
    return mcpbox_drivers.Body({"content": [], "structuredContent": {
        "keys": keys, "max_age": age(r.headers.get("cache-control")),
    }, "isError": False})
