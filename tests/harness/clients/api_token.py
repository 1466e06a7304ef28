"""API tokens, and clients behind the tunnel."""
import itertools
import json

from harness.clients.mcp import MODERN, Client

_names = itertools.count(1)


class Token:
    """One token: name, text, principal. set: its permission set; words: of
    `mcpboxctl tokens create`."""

    def __init__(self, instance, name=None, set=None, **words):
        self.instance = instance
        self.name = name or f"t{next(_names)}"
        self.principal = "token:" + self.name
        made = instance.ctl_json("tokens", "create", self.name, *(["--set", set] if set else []),
                                 *(f"{k}={v}" for k, v in words.items()))
        self.text, self.id = made["token"], made["id"]

    def revoke(self):
        return json.loads(self.instance.ctl("tokens", "revoke", self.name, "--json").stdout)

    def client(self, version=MODERN, listener="tunnel", cls=Client, **more):
        return cls(where(self.instance, listener), version=version, token=self.text, **more)

    def bearer(self):
        return {"Authorization": "Bearer " + self.text}


def where(instance, listener="tunnel"):
    """For harness.clients.mcp: the tunnel's socket, or the local address."""
    if listener == "tunnel":
        return lambda: instance.run("gatewayd-tunnel", "mcp.sock")
    return instance.address
