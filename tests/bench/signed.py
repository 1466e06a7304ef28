"""Calls by signed tokens (JWTs) of an issuer, beside calls by an API token, at the
tunnel's socket.

One client calls a tool by each of the two in turn, in a random order within a
pair, so what else the machine does meets both alike. The ratio is of medians;
its interval is that of pairs drawn again. Then each of many people comes with a
token that nobody has seen, and asks a second time with the same: the difference
is the price of judging it."""
import json
import socket
import statistics
import time

from harness.clients import flow
from harness.clients.api_token import Token
from harness.clients.mcp import MODERN, Client, meta
from harness.clients.signed_token import Issuer, Person, document, set_document
from harness.seed import rng
from values import Values

RIGHTS = "tools:call", "manage"
CALL = "tools/call", {"name": "bench__signed", "arguments": {"n": 1}}, "bench__signed"
ASK = "server/discover", {}, None
CODE = "def main(n: int = 0) -> int:\n    return n\n"
WARM = 30       # calls of each token before the first that counts
SPACE_S = 0.01  # between pairs: a runner is ready for the next
DRAWS, INNER = 2000, 0.95


class Wire:
    """One connection that stays open."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    def ask(self, token, method, params, name):
        """Microseconds from a request to the last byte of its answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta()}}).encode()
        head = ["POST /mcp HTTP/1.1", "Host: localhost", "Accept: application/json, text/event-stream",
                "Content-Type: application/json", f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}",
                *([f"Mcp-Name: {name}"] if name else []), f"Authorization: Bearer {token}", f"Content-Length: {len(body)}"]
        sent = ("\r\n".join(head) + "\r\n\r\n").encode() + body
        begin = time.perf_counter()
        self.socket.sendall(sent)
        answered = self.answer()
        took = time.perf_counter() - begin
        if b"\"result\"" not in answered or b"\"isError\":true" in answered:
            raise RuntimeError(f"{method} went wrong: {answered[:500]}")
        return took * 1e6

    def answer(self):
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.more()
        head, body = got.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"answered {head[:200]} {body[:500]}")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        while len(body) < length:
            body += self.more()
        return body

    def more(self):
        part = self.socket.recv(65536)
        if not part:
            raise RuntimeError("the connection was closed")
        return part


def ratio(values):
    """How many times longer a call by a signed token takes."""
    return statistics.median(values["signed"]) / statistics.median(values["api"])


def interval(values):
    """Where that ratio is in 95 of 100 draws of as many pairs."""
    random, pairs = rng("bench signed"), list(zip(values["api"], values["signed"], strict=True))
    drawn = []
    for _ in range(DRAWS):
        api, signed = zip(*random.choices(pairs, k=len(pairs)), strict=True)
        drawn.append(statistics.median(signed) / statistics.median(api))
    drawn.sort()
    edge = int(DRAWS * (1 - INNER) / 2)
    return drawn[edge], drawn[-1 - edge]


def first(values):
    """By how many microseconds each first request was slower than the second."""
    return [a - b for a, b in zip(values["first"], values["second"], strict=True)]


def signed(suite, pairs, newcomers, say):
    """Times of single requests, in microseconds."""
    v, random = Values(), rng("bench signed order")
    say(f"signed tokens: {pairs} pairs of calls, {newcomers} people")
    for limit in ("rate_tunnel_per_minute", "rate_token_per_minute"):
        suite.ctl("settings", "set", limit, "0")
    with Client(suite.address) as c:
        flow.publish(suite, c, "bench", "signed", CODE)
    issuer = Issuer()
    got = set_document(suite, document([issuer], ((issuer.name, "any", None, "all"),), {
        "all": {"scopes": RIGHTS, "allow": ["*"], "deny": []}}))
    if got["_"] != "ACCESS_STATE":
        raise RuntimeError(f"the access document was refused: {got}")
    tokens = {"api": Token(suite, scopes=",".join(RIGHTS)).text, "signed": Person(suite, issuer, "ann").token()}
    wire = Wire(suite.run("gatewayd-tunnel", "mcp.sock"))
    for token in tokens.values():
        for _ in range(WARM):
            wire.ask(token, *CALL)
    for _ in range(pairs):
        for name in random.sample(sorted(tokens), len(tokens)):
            v.add(name, wire.ask(tokens[name], *CALL))
            time.sleep(SPACE_S)
    for n in range(newcomers):
        token = Person(suite, issuer, f"person{n}").token()
        v.add("first", wire.ask(token, *ASK))
        v.add("second", wire.ask(token, *ASK))
        time.sleep(SPACE_S)
    wire.socket.close()
    return v
