"""Fetches the public keys of an issuer (docs/decisions/0097). Runs as a driver,
in a runner of its own that may connect to hosts of the access document alone.

    spec       {"url", "hosts"}, made by the vault from the sealed document:
               hosts are lines "tcp HOST PORT", the first that of the URL
    arguments  {"discovery"}: is the URL the issuer's, or that of its keys?
               Or {"exchange"}: see mcpbox_signin.py

The answer is the text of the JWK set as it came, with its age, and with
discovery how people sign in there. The keys are read by admind-check, not
here: this process has heard a stranger."""

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

_PLACES = {"jwks_uri": "keys are",
           "authorization_endpoint": "authorization_endpoint is",
           "token_endpoint": "token_endpoint is"}
_AGE = re.compile(r'(?:^|[,\s])max-age="?([0-9]{1,10})"?(?=[,\s]|$)')
_OURS = re.compile(
    r"[?&](?:client_id|redirect_uri|response_type|response_mode|scope|state|"
    r"nonce|code_challenge(?:_method)?|request(?:_uri)?)(?:=|&|$)")
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
        return self.ask("GET", address, {"Accept": "application/json"})

    def ask(self, method, address, headers, **body):
        left = self.until - time.monotonic()
        try:
            if left <= 0:
                raise mcpbox_http.Timeout("no whole answer in the time there "
                                          "is")
            return mcpbox_http.request(method, address, headers, **body,
                                       timeout=left, max_bytes=DOCUMENT_MAX)
        except mcpbox_http.Timeout as e:
            raise mcpbox_drivers.Timeout(
                f"{address}: {e} ({FETCH_S} s for all requests)") from None
        except mcpbox_http.TooLarge as e:
            raise mcpbox_drivers.Limit(f"{address}: {e}") from None
        except mcpbox_http.Error as e:
            raise mcpbox_drivers.Upstream(f"{address}: {e}") from None

    def may(self, found, member):
        """An address of the metadata. Refuses one that the document does not
        cover. egress would refuse it, too; this says how it is mended."""
        try:
            u = mcpbox_http.url(found.get(member))
        except mcpbox_http.BadRequest:
            raise mcpbox_drivers.Upstream(
                f"the issuer's metadata has no usable {member}") from None
        if u.scheme != "https":
            raise mcpbox_drivers.Upstream(
                f"the issuer's metadata has a {member} without https")
        if f"tcp {u.host} {u.port}" not in self.hosts:
            host = u.host if u.port == 443 else f"{u.host}:{u.port}"
            there = _PLACES[member]
            raise mcpbox_drivers.MissingGrant(
                f"the issuer's {there} at another host, {host}: if that is "
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


def sign_in(fetcher, found):
    """How people sign in at this issuer, or why they can't. A fault here must
    not cost the keys."""
    methods = found.get("code_challenge_methods_supported")
    try:
        if isinstance(methods, list) and "S256" not in methods:
            raise mcpbox_drivers.Upstream(
                "the issuer's metadata has code challenges without S256")
        fetcher.may(found, "token_endpoint")
        url = fetcher.may(found, "authorization_endpoint")
    except mcpbox_drivers.Failure as e:
        return {"fault": str(e)}
    # one of our own parameters there would be said twice
    if "#" in url or _OURS.search(url):
        return {"fault": "the issuer's metadata has no usable "
                         "authorization_endpoint"}
    return {"url": url, "iss": found.get(
        "authorization_response_iss_parameter_supported") is True}


def main(spec, arguments, secrets):
    if "exchange" in arguments:
        import mcpbox_signin
        return mcpbox_signin.main(spec, arguments["exchange"])
    fetcher = Fetcher(spec["hosts"])
    address = spec["url"]
    said_too = {}
    if arguments.get("discovery") is True:
        found = metadata(fetcher, address)
        address = fetcher.may(found, "jwks_uri")
        said_too = {"sign_in": sign_in(fetcher, found)}
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
        **said_too}, "isError": False})
