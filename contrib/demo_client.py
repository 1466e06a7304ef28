#!/usr/bin/python3
"""A small MCP client (Streamable HTTP, revision 2026-07-28) for the demo.

	demo_client.py URL draft	makes server `demo` and its tool `greet`,
					asks for review; prints the tool's state:
					approved or pending_review
	demo_client.py URL call NAME	calls demo__greet, prints answer and time

MCPBOX_TOKEN_FILE names a file with the bearer token that the listener asks for,
if it does. Only Python's standard library. Exit status 0 if it worked.
"""
import http.client
import itertools
import json
import os
import sys
import time
import urllib.parse

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
CODE = '''\
def main(name: str = "world") -> str:
    """Greets somebody.

    Args:
        name: Who is greeted.
    """
    return f"Hello, {name}! This ran in a sandbox of its own."
'''


class Failed(Exception):
    pass


class Client:
    """One kept-alive connection; every request carries its own envelope."""

    def __init__(self, url, token=None):
        self.bearer = {"Authorization": f"Bearer {token}"} if token else {}
        parts = urllib.parse.urlsplit(url)
        self.path = parts.path or "/"
        self.conn = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=60)
        self.ids = itertools.count(1)

    def request(self, method, params):
        params = dict(params, _meta={
            META + "protocolVersion": VERSION,
            META + "clientCapabilities": {},
            META + "clientInfo": {"name": "mcpbox-demo", "version": "1.0.0"}})
        headers = {**self.bearer, "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": VERSION, "Mcp-Method": method}
        if method == "tools/call":
            headers["Mcp-Name"] = params["name"]
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        self.conn.request("POST", self.path, json.dumps(message).encode(), headers)
        response = self.conn.getresponse()
        body = response.read().decode()
        if response.headers.get_content_type() == "text/event-stream":
            # The answer is the last message of the stream.
            body = [line[5:] for line in body.splitlines() if line.startswith("data:")][-1]
        try:
            answer = json.loads(body)
        except ValueError:
            raise Failed(f"{method}: HTTP {response.status}: {body[:200]}") from None
        if "result" not in answer:
            raise Failed(f"{method}: {answer.get('error')}")
        return answer["result"]

    def call(self, name, arguments):
        """A tool's text."""
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        text = "".join(c.get("text", "") for c in result["content"])
        if result.get("isError"):
            raise Failed(f"{name}: {text}")
        return text

    def manage(self, tool, /, **arguments):
        return json.loads(self.call("mcpbox_" + tool, arguments))


def draft(client):
    """Harmless when repeated: what is there is kept."""
    servers = {s["name"]: s["id"] for s in client.manage("list_servers")["servers"]}
    if "demo" not in servers:
        servers["demo"] = client.manage("create_server", name="demo",
                                        description="What quickstart shows.")["id"]
    tools = {t["name"]: t["id"]
             for t in client.manage("list_tools", server_id=servers["demo"])["tools"]}
    if "greet" not in tools:
        tools["greet"] = client.manage("create_tool", server_id=servers["demo"], name="greet",
                                       description="Greets somebody by name.",
                                       python_code=CODE)["id"]
    status = client.manage("get_tool_status", tool_id=tools["greet"])["approval_status"]
    if status in ("draft", "rejected"):
        client.manage("request_publish", tool_id=tools["greet"], notes="The demo's tool.")
        status = client.manage("get_tool_status", tool_id=tools["greet"])["approval_status"]
    print(status)


def call(client, name):
    listed = [t["name"] for t in client.request("tools/list", {})["tools"]]
    if "demo__greet" not in listed:
        raise Failed(f"tools/list has no demo__greet: {listed}")
    begin = time.monotonic()
    answer = client.call("demo__greet", {"name": name})
    ms = (time.monotonic() - begin) * 1000
    print(f"{answer}\n{ms:.1f} ms")


def own_token():
    path = os.environ.get("MCPBOX_TOKEN_FILE")
    if not path:
        return None
    with open(path, encoding="ascii") as f:
        return f.readline().strip()


def main():
    if len(sys.argv) == 3 and sys.argv[2] == "draft":
        draft(Client(sys.argv[1], own_token()))
    elif len(sys.argv) == 4 and sys.argv[2] == "call":
        call(Client(sys.argv[1], own_token()), sys.argv[3])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except (Failed, OSError, http.client.HTTPException) as e:
        sys.exit(f"demo_client.py: {e}")
