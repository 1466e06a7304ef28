"""Exchanges the code that a browser brought back from an issuer for an ID token
(docs/decisions/0105). A part of mcpbox_keys.py: the run reaches the same hosts.

    spec       as there; the URL is the issuer's
    exchange   {"client", "redirect", "code", "verifier"}

The client is a public one: the verifier alone shows that this is who began
(RFC 7636). The answer has the ID token as it came. admind-check judges it. Code
and verifier are in no error that leaves this run."""

import re
import urllib.parse

import mcpbox_drivers
import mcpbox_hide
import mcpbox_keys as keys
import mcpbox_mcp_wire as wire

#: As JWT_MAX (admind/tooldef/access_fields.h).
TOKEN_MAX = 8 << 10
_WORD = re.compile(r"[a-z_]{1,40}")


def _answer(r):
    try:
        made = wire.parse(r.body)
    except wire.Broken:
        return {}
    return made if isinstance(made, dict) else {}


def _refused(r):
    word = _answer(r).get("error")
    text = keys.said(r)
    if isinstance(word, str) and _WORD.fullmatch(word):
        text += f" ({word})"
    if word in ("invalid_client", "unauthorized_client"):
        text += (": the client must be a public one with PKCE, without a "
                 "secret")
    raise mcpbox_drivers.Upstream(
        f"the issuer's token_endpoint gave no token: {text}")


def main(spec, exchange):
    mcpbox_hide.hide_secrets([exchange["code"], exchange["verifier"]])
    fetcher = keys.Fetcher(spec["hosts"])
    found = keys.metadata(fetcher, spec["url"])
    place = fetcher.may(found, "token_endpoint")
    form = {"grant_type": "authorization_code", "code": exchange["code"],
            "redirect_uri": exchange["redirect"],
            "client_id": exchange["client"],
            "code_verifier": exchange["verifier"]}
    r = fetcher.ask("POST", place, {
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
    }, body=urllib.parse.urlencode(form).encode())
    if r.status != 200:
        _refused(r)
    token = _answer(r).get("id_token")
    if not isinstance(token, str) or not 0 < len(token) <= TOKEN_MAX:
        raise mcpbox_drivers.Upstream(
            "the issuer's token_endpoint gave no usable id_token: the client "
            "must be one of OpenID Connect, and may ask for the scope openid")
    return mcpbox_drivers.Body({"content": [], "structuredContent": {
        "id_token": token}, "isError": False})
