"""OAuth 2.1 as MCP's authorization has it, for sources of kind mcp: RFC 9728
and 8414 to find who gives tokens, dynamic registration (RFC 7591) or a client
id that an administrator gave, PKCE with S256, resource indicators (RFC 8707),
the issuer of the answer (RFC 9207), refresh.

What must stay secret (verifier, client secret, tokens) never leaves as text:
it is sealed for the vault under a key that this run alone was given
(admind/vault/contexts/credentials.h), and comes back as the value of the source's
secret, a JSON document of this module's:

    {"access_token", "refresh_token", "scope", "client": {...},
     "registration": {the client as it was registered last},
     "pending": {what an authorisation under way needs}}

Nothing of an authorization server is believed that does not agree with the
issuer a person approved with the source.
"""

import base64
import hashlib
import hmac
import json
import secrets as random
import struct
import urllib.parse

import mcpbox_drivers
import mcpbox_hide
import mcpbox_http
import mcpbox_mcp_clean as clean
import mcpbox_mcp_wire as wire

#: Bytes of metadata and of a token answer.
ANSWER_MAX = 256 << 10
TIMEOUT = 25
#: As SECRET_VALUE_MAX: what the vault keeps.
DOCUMENT_MAX = 10000
KEY_NAME = "mcpbox_return_key"
VERIFIER_BYTES, STATE_BYTES = 48, 32


def _fail(text):
    raise mcpbox_drivers.Upstream(text)


def seal(document, key):
    """As admind/vault/contexts/credentials.h describes it, in base64."""
    text = json.dumps(document, separators=(",", ":")).encode()
    if len(text) > DOCUMENT_MAX:
        _fail(f"the tokens are longer than {DOCUMENT_MAX} bytes together")

    def mac(k, data):
        return hmac.digest(k, data, "sha256")
    key = bytes.fromhex(key)
    enc, tag = mac(key, b"enc"), mac(key, b"mac")
    nonce = random.token_bytes(16)
    stream = b"".join(mac(enc, nonce + struct.pack(">I", i))
                      for i in range((len(text) + 31) // 32))
    sealed = nonce + bytes(a ^ b for a, b in zip(text, stream))
    return base64.b64encode(sealed + mac(tag, sealed)).decode()


def document(secret):
    """The secret's document; {} for none yet, or what is none of ours."""
    try:
        made = json.loads(secret) if secret else {}
    except ValueError:
        made = {}
    if not isinstance(made, dict):
        return {}
    hide(made)
    return made


def hide(made):
    """Its parts are secrets by themselves: an error, or the other server's
    answer, must not carry one out."""
    parts = [made.get("access_token"), made.get("refresh_token"),
             (made.get("client") or {}).get("client_secret"),
             (made.get("registration") or {}).get("client_secret"),
             (made.get("pending") or {}).get("verifier")]
    parts = [p for p in parts if isinstance(p, str)
             and len(p) >= mcpbox_hide.SECRET_MIN]
    mcpbox_hide.hide_secrets(parts)
    clean.withhold(parts)


def header(spec, secret):
    """What a request of the source's, or of a tool of it, carries."""
    made = document(secret)
    token = made.get("access_token")
    if not isinstance(token, str):
        raise mcpbox_drivers.MissingGrant(
            "the source is not authorised yet: an administrator does that "
            "(mcpboxctl sources authorise)")
    _fits(spec, made, made.get("client"))
    return {"Authorization": f"Bearer {token}"}


def _fits(spec, made, client):
    """Tokens go to the server that they were given for, and to whom a person
    trusted with them: a source that was deleted and added anew finds what the
    one before it with its name had, and may be another server."""
    resource, issuer = made.get("resource"), spec["auth"].get("issuer")
    if not (isinstance(resource, str) and _within(resource, spec["url"])):
        raise mcpbox_drivers.MissingGrant(
            "the tokens there are were given for another server: an "
            "administrator authorises the source anew (mcpboxctl source "
            "authorise)")
    if not isinstance(client, dict) or issuer is None \
            or client.get("issuer") != issuer:
        raise mcpbox_drivers.MissingGrant(
            "the tokens there are were given by another authorization server "
            "than the reviewed one: an administrator authorises the source "
            "anew (mcpboxctl sources authorise)")


# ---- finding who gives tokens ----

def _get(address):
    """A JSON object, or None where there is none."""
    r = mcpbox_http.request("GET", address, {"Accept": "application/json",
                                             "MCP-Protocol-Version":
                                             wire.LEGACY[0]},
                            timeout=TIMEOUT, max_bytes=ANSWER_MAX)
    if r.status != 200:
        return None
    try:
        made = wire.parse(r.body)
    except wire.Broken:
        return None
    return made if isinstance(made, dict) else None


def _split(address):
    """Origin and path, in one spelling; BadRequest for what is no address."""
    u = mcpbox_http.url(address)
    return (f"{u.scheme}://{u.authority}",
            u.target.partition("?")[0].rstrip("/"))


def _within(resource, url):
    """Is the server at this URL the resource, or a part of it?"""
    try:
        there, under = _split(resource)
    except mcpbox_http.BadRequest:
        return False
    origin, path = _split(url)
    return there == origin and (path == under or path.startswith(under + "/"))


def _challenge(url):
    """The parameters of the 401 that a request without a token gets."""
    try:
        r = mcpbox_http.request(
            "POST", url, {"Content-Type": "application/json", "Accept":
                          "application/json, text/event-stream"},
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                        "params": {"protocolVersion": wire.LEGACY[0],
                                   "capabilities": {},
                                   "clientInfo": wire.CLIENT}}).encode(),
            timeout=TIMEOUT, max_bytes=ANSWER_MAX, truncate=True)
    except mcpbox_http.TooLarge:
        return {}
    said = r.headers.get("www-authenticate") or ""
    if r.status != 401 or not said.lower().startswith("bearer"):
        return {}
    return parameters(said[6:])


def parameters(text):
    """auth-param of RFC 9110, 11.2: tokens and quoted strings."""
    out, at = {}, 0
    while at < len(text):
        name, eq, rest = text[at:].partition("=")
        if not eq:
            break
        rest = rest.lstrip()
        if rest.startswith('"'):
            value, i = "", 1
            while i < len(rest) and rest[i] != '"':
                i += rest[i] == "\\"
                value += rest[i:i + 1]
                i += 1
            after = rest[i + 1:]
        else:
            value, _, after = rest.partition(",")
            after = "," + after
        out.setdefault(name.strip(" ,\t").lower(), value.strip())
        at = len(text) - len(after.partition(",")[2]) if "," in after \
            else len(text)
    return out


def _resource(url, challenge):
    """RFC 9728: the protected resource's metadata, or {}."""
    origin, path = _split(url)
    places = [f"{origin}/.well-known/oauth-protected-resource{path}",
              f"{origin}/.well-known/oauth-protected-resource"]
    named = challenge.get("resource_metadata")
    if named:
        if mcpbox_http.url(named).origin != mcpbox_http.url(url).origin:
            _fail("its resource metadata is said to be at another server")
        places.insert(0, named)
    for place in dict.fromkeys(places):
        found = _get(place)
        if found is None:
            continue
        said = found.get("resource")
        if not isinstance(said, str):
            _fail("its resource metadata names no resource")
        if not _within(said, url):
            _fail(f"its resource metadata is of {clean.line(said, 200)}, "
                  "which it is not")
        return found
    return {}


def _server(issuer):
    """RFC 8414, or OpenID Connect's discovery: the authorization server's
    metadata, which must be of this issuer."""
    origin, path = _split(issuer)
    for place in (f"{origin}/.well-known/oauth-authorization-server{path}",
                  f"{origin}/.well-known/openid-configuration{path}",
                  f"{origin}{path}/.well-known/openid-configuration"):
        found = _get(place)
        if found is None:
            continue
        if found.get("issuer") != issuer and \
                str(found.get("issuer")).rstrip("/") != issuer.rstrip("/"):
            _fail("the authorization server's metadata is of the issuer "
                  f"{clean.line(found.get('issuer'), 200)}, not of {issuer}")
        for name in ("authorization_endpoint", "token_endpoint"):
            found[name] = _endpoint(found, name)
        if "S256" not in (found.get("code_challenge_methods_supported") or []):
            _fail("the authorization server does not say that it knows PKCE "
                  "with S256, without which nobody is to be authorised")
        return found
    _fail(f"the authorization server {issuer} has no metadata")


def _endpoint(metadata, name):
    """Its address, in ASCII: a person may be shown it, and opens it."""
    address = metadata.get(name)
    try:
        u = mcpbox_http.url(address)
    except mcpbox_http.BadRequest:
        _fail(f"the authorization server has no usable {name}")
    if u.scheme != "https" and mcpbox_http.url(
            metadata["issuer"]).scheme == "https":
        _fail(f"the authorization server's {name} is not https")
    return u.text


def _scope(spec, challenge, resource, server):
    """What is asked for: an administrator's word, else the challenge's, else
    all that the resource has; and tokens that last."""
    scope = spec["auth"].get("scope") or challenge.get("scope") or " ".join(
        s for s in resource.get("scopes_supported") or []
        if isinstance(s, str))
    known = server.get("scopes_supported") or []
    if "offline_access" in known and "offline_access" not in scope.split():
        scope = (scope + " offline_access").strip()
    return scope


def _register(server, redirect, scope):
    """RFC 7591. A public client: PKCE is what protects the code."""
    if not isinstance(server.get("registration_endpoint"), str):
        raise mcpbox_drivers.Failure(
            "the authorization server registers nobody by itself: register a "
            f"client there with the redirect URI {redirect}, and add the "
            "source with its oauth_client_id")
    wanted = {"client_name": "mcpbox", "redirect_uris": [redirect],
              "grant_types": ["authorization_code", "refresh_token"],
              "response_types": ["code"],
              "token_endpoint_auth_method": "none",
              "application_type": "web" if redirect.startswith("https:")
              else "native"}
    if scope:
        wanted["scope"] = scope
    r = mcpbox_http.request(
        "POST", _endpoint(server, "registration_endpoint"),
        {"Content-Type": "application/json", "Accept": "application/json"},
        json.dumps(wanted).encode(), timeout=TIMEOUT, max_bytes=ANSWER_MAX)
    made = _json(r, "registration")
    if r.status not in (200, 201) or not isinstance(made.get("client_id"),
                                                    str):
        _refused("registration", r, made)
    method = made.get("token_endpoint_auth_method")
    secret = made.get("client_secret")
    if not isinstance(secret, str):
        secret, method = None, "none"
    return {"client_id": made["client_id"], "client_secret": secret,
            "method": method if method in ("none", "client_secret_post",
                                           "client_secret_basic")
            else "client_secret_basic", "redirect_uri": redirect,
            "registered": True}


def _json(r, what):
    try:
        made = wire.parse(r.body)
    except wire.Broken:
        made = None
    if not isinstance(made, dict):
        _fail(f"the authorization server's {what} answered with status "
              f"{r.status} and no JSON")
    return made


def _refused(what, r, made):
    said = made.get("error")
    more = made.get("error_description")
    _fail(f"the authorization server's {what} refused (HTTP {r.status}): "
          f"{clean.line(said, 100)}"
          + (f": {clean.line(more, 300)}" if more else ""))


# ---- the three steps ----

def authorise(spec, arguments, doc, key):
    redirect = arguments["redirect_uri"]
    challenge = _challenge(spec["url"])
    resource = _resource(spec["url"], challenge)
    given = [s for s in resource.get("authorization_servers") or []
             if isinstance(s, str)]
    issuer = spec["auth"].get("issuer")
    if issuer is None:
        named = given[0] if given else _split(spec["url"])[0]
        raise mcpbox_drivers.Failure(
            "its tokens are given by the authorization server "
            f"{clean.line(named, 300)}: add the source with this as "
            "oauth_issuer, so that it is reviewed")
    if given and not any(s.rstrip("/") == issuer.rstrip("/") for s in given):
        _fail("its tokens are given by "
              f"{clean.line(', '.join(given), 300)}, not by the reviewed "
              f"{issuer}")
    server = _server(issuer)
    scope = _scope(spec, challenge, resource, server)
    client = doc.get("registration") or {}
    if spec["auth"].get("client_id"):
        client = {"client_id": spec["auth"]["client_id"],
                  "client_secret": None, "method": "none",
                  "redirect_uri": redirect}
    elif (client.get("redirect_uri") != redirect
          or client.get("issuer") != issuer):
        client = _register(server, redirect, scope)
        doc["registration"] = client    # good for the next time, too
    client["issuer"] = issuer
    verifier = random.token_urlsafe(VERIFIER_BYTES)
    state = random.token_urlsafe(STATE_BYTES)
    target = resource.get("resource") or spec["url"]
    query = {"response_type": "code", "client_id": client["client_id"],
             "redirect_uri": redirect, "state": state, "resource": target,
             "code_challenge_method": "S256",
             "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(
                 verifier.encode()).digest()).rstrip(b"=").decode()}
    if scope:
        query["scope"] = scope
        if "offline_access" in scope.split():
            query["prompt"] = "consent"
    at = server["authorization_endpoint"]
    doc["pending"] = {
        "verifier": verifier, "redirect_uri": redirect, "client": client,
        "token_endpoint": server["token_endpoint"], "resource": target,
        "scope": scope, "iss": server.get(
            "authorization_response_iss_parameter_supported") is True}
    return {"authorization_url": at + ("&" if "?" in at else "?")
            + urllib.parse.urlencode(query), "state": state,
            "issuer": issuer, "sealed": seal(doc, key)}


def _tokens(client, endpoint, form):
    """The token endpoint's answer to this."""
    form = {**form, "client_id": client["client_id"]}
    headers = {"Content-Type": "application/x-www-form-urlencoded",
               "Accept": "application/json"}
    if client.get("method") == "client_secret_basic":
        quote = urllib.parse.quote_plus
        headers["Authorization"] = "Basic " + base64.b64encode(
            f"{quote(client['client_id'])}:{quote(client['client_secret'])}"
            .encode()).decode()
        del form["client_id"]
    elif client.get("method") == "client_secret_post":
        form["client_secret"] = client["client_secret"]
    r = mcpbox_http.request("POST", endpoint, headers,
                            urllib.parse.urlencode(form).encode(),
                            timeout=TIMEOUT, max_bytes=ANSWER_MAX)
    made = _json(r, "token endpoint")
    if r.status != 200 or not isinstance(made.get("access_token"), str):
        _refused("token endpoint", r, made)
    if str(made.get("token_type")).lower() != "bearer":
        _fail("the authorization server gave a token of type "
              f"{clean.line(made.get('token_type'), 60)}, not bearer")
    try:
        made["access_token"].encode("ascii")
    except UnicodeEncodeError:
        _fail("the authorization server gave a token no header can carry")
    return made


def _keep(doc, made, client, pending, key):
    """The document with its new tokens, sealed, and what may be known."""
    if isinstance(made.get("refresh_token"), str):
        doc["refresh_token"] = made["refresh_token"]
    doc["access_token"] = made["access_token"]
    doc["scope"] = made.get("scope") or pending.get("scope")
    doc["client"] = client
    doc["token_endpoint"] = pending["token_endpoint"]
    doc["resource"] = pending["resource"]
    lasts = made.get("expires_in")
    if isinstance(lasts, str) and lasts.isdigit():
        lasts = int(lasts)
    out = {"sealed": seal(doc, key), "refreshable": "refresh_token" in doc}
    if isinstance(lasts, (int, float)) and 0 <= lasts < 10 ** 9:
        out["expires_in"] = int(lasts)
    return out


def token(spec, arguments, doc, key):
    pending = doc.pop("pending", None)
    if not isinstance(pending, dict):
        _fail("no authorisation is under way")
    client = pending["client"]
    _fits(spec, pending, client)
    iss = arguments.get("iss") or None
    if iss is None and pending["iss"]:
        _fail("the answer does not say which authorization server it is from")
    if iss is not None and iss.rstrip("/") != client["issuer"].rstrip("/"):
        _fail("the answer is another authorization server's")
    doc.pop("refresh_token", None)      # of whoever agreed before
    made = _tokens(client, pending["token_endpoint"], {
        "grant_type": "authorization_code", "code": arguments["code"],
        "redirect_uri": pending["redirect_uri"],
        "code_verifier": pending["verifier"],
        "resource": pending["resource"]})
    return _keep(doc, made, client, pending, key)


def refresh(spec, arguments, doc, key):
    if not isinstance(doc.get("refresh_token"), str):
        _fail("there is no refresh token: authorise the source again")
    _fits(spec, doc, doc.get("client"))
    made = _tokens(doc["client"], doc["token_endpoint"], {
        "grant_type": "refresh_token", "refresh_token": doc["refresh_token"],
        "resource": doc["resource"]})
    return _keep(doc, made, doc["client"], doc, key)


OPS = {"authorise": authorise, "token": token, "refresh": refresh}


def run(spec, arguments, secrets):
    """A CallToolResult: what may be known, and what is sealed."""
    auth = spec.get("auth") or {}
    op = OPS.get(arguments["op"])
    key = secrets.get(KEY_NAME)
    if op is None or auth.get("type") != "oauth" or not key:
        raise mcpbox_drivers.Failure("this source has no such operation")
    out = op(spec, arguments, document(secrets.get(auth["secret"])), key)
    return {"content": [{"type": "text", "text": arguments["op"]}],
            "structuredContent": out}
