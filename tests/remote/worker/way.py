"""All real parts between a client and a tool, with the Worker in the middle."""
import json
import os
import subprocess

from harness.clients import flow
from harness.clients.browser import CALLBACK, Browser
from harness.clients.mcp import MODERN, Client, meta, request
from harness.clients.signed_token import set_document
from harness.net.nginx import Nginx
from harness.net.pgtls import Authority
from harness.net.proxy import free_port
from harness.patience import until
from harness.place import SRC
from remote.play import NODE, Provider, Sdk, Worker

CANARY = "def main(n: int = 0) -> str:\n    return f'canary {n}'\n"
TELLS = """import mcpbox
def main() -> str:
    for i in range(3):
        mcpbox.progress(i, 3, str(i))
    return "told"
"""


def registered():
    """A client of the administrator's: (its row of the store, what it is told)."""
    r = subprocess.run([NODE, os.path.join(SRC, "contrib/cloudflare/client.mjs"), "Known program", CALLBACK],
                       capture_output=True, text=True, check=True)
    row = json.loads(r.stdout)
    secret = next(line for line in r.stderr.splitlines() if line.startswith("client secret: ")).split(": ")[1]
    assert secret not in r.stdout
    return row, {"client_id": row["clientId"], "client_secret": secret}


class Way:
    """variables: settings of the Worker."""

    def __init__(self, instance, **variables):
        instance.ctl("settings", "set", "rate_tunnel_per_minute", "0")
        with Client(instance.address) as c:
            for name, code in (("canary", CANARY), ("tells", TELLS)):
                flow.publish(instance, c, "crm", name, code)
        authority = Authority(instance.parent + "/authority")
        self.nginx = Nginx(instance)
        port = free_port()
        self.op = Provider([Worker.upstream(port)])
        row, self.known = registered()
        self.worker = Worker(authority, self.op.issuer, f"127.0.0.1:{self.nginx.port}", port=port,
                             kv={"client:" + row["clientId"]: json.dumps(row)}, **variables)
        got = set_document(instance, {
            "resource": self.worker.resource,
            "issuers": [{"name": "worker", "issuer": self.worker.url, "algorithms": ["EdDSA"], "scopes": "token", "bound": True,
                         "jwks": {"keys": [self.worker.key.public]}}],
            "rules": [{"issuer": "worker", "claim": "email", "values": [f"{who}@example.org" for who in people], "set": name}
                      for name, people in (("all", ("ann", "sdk", "client")), ("readers", ("bob",)))],
            "permission_sets": [{"name": "all", "scopes": ["tools:read", "tools:call", "manage"], "allow": ["*"],
                                 "deny": []}, {"name": "readers", "scopes": ["tools:read"], "allow": ["*"], "deny": []}]})
        assert got["_"] == "ACCESS_STATE", got
        try:
            until(self.admits)
        except BaseException:
            self.close()
            raise

    def admits(self):
        """After its start mcpbox is busy for people of a Worker, until no token of before the start is good any more."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}}).encode()
        token = self.worker.key.bound(self.worker.resource, body, sub="early", email="ann@example.org", email_verified=True)
        r = request(self.nginx.where(), body=body, headers={
            "Authorization": "Bearer " + token, "MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"})
        if r.status == 429:     # of nginx: we ask more often than its example lets a client
            return False
        assert r.status == 200 and (not r.error or r.error["data"]["failure_mode"] == "busy"), r
        return not r.error

    def sdk(self, name, **more):
        return Sdk(name, self.worker.resource, self.worker.cafile, known=self.known, **more)

    def browser(self, who="ann"):
        return Browser(who, self.worker.cafile)

    def close(self):
        for part in (self.worker, self.op, self.nginx):
            part.close()
