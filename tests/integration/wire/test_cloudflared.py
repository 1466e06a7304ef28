"""The example for cloudflared (contrib/cloudflared). The program is not in Debian, so what is checked is the file: that every
key is one of cloudflared's, that its rules let through /mcp and the metadata, and that what it says of gatewayd is so."""
import pathlib
import re

import yaml

SRC = pathlib.Path(__file__).resolve().parents[3]
CONFIG = SRC / "contrib/cloudflared/config.yml"
# Cloudflare's documentation: "Configuration file" and "Origin parameters" of Cloudflare Tunnel.
TOP = {"tunnel", "credentials-file", "ingress", "originRequest", "warp-routing", "loglevel", "logfile", "metrics", "protocol"}
RULE = {"hostname", "path", "service", "originRequest"}
ORIGIN = {"originServerName", "caPool", "noTLSVerify", "tlsTimeout", "http2Origin", "matchSNItoHost", "httpHostHeader",
          "disableChunkedEncoding", "connectTimeout", "noHappyEyeballs", "proxyType", "proxyAddress", "proxyPort",
          "keepAliveTimeout", "keepAliveConnections", "tcpKeepAlive", "access"}


def config():
    return yaml.safe_load(CONFIG.read_text(encoding="utf-8"))


def seconds(text):
    n, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(n) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def service(host, path):
    """The first rule that matches decides, as cloudflared does it."""
    for rule in config()["ingress"]:
        if rule.get("hostname", host) == host and re.search(rule.get("path", ""), path):
            return rule["service"]
    raise AssertionError("no rule")


def test_every_key_is_one_of_cloudflareds():
    c = config()
    assert not set(c) - TOP and {"tunnel", "credentials-file", "ingress"} <= set(c)
    for rule in c["ingress"]:
        assert not set(rule) - RULE and "service" in rule, rule
        assert not set(rule.get("originRequest", {})) - ORIGIN, rule


def test_the_last_rule_takes_all_the_rest():
    last = config()["ingress"][-1]
    assert set(last) == {"service"}, "cloudflared refuses a file whose last rule has a condition"


def test_mcp_and_its_metadata_go_to_the_tunnels_socket_and_nothing_else_does():
    socket = "unix:/run/mcpbox/gatewayd-tunnel/mcp.sock"
    for path in ("/mcp", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
                 "/mcp/home-2", "/.well-known/oauth-protected-resource/mcp/home-2"):
        assert service("mcp.example.org", path) == socket, path
    for path in ("/", "/health", "/mcp/", "/mcpx", "/x/mcp", "/mcp/-", "/mcp/home/", "/mcp/a/b", "/mcp/.well-known", "/api/me", "/metrics", "/.well-known/oauth-protected-resource/",
                 "/.well-known/oauth-protected-resource/x", "/.well-known/oauth-protected-resources",
                 "/xwell-known/oauth-protected-resource", "/mcp/.well-known/oauth-protected-resource",
                 "/.well-known/oauth-authorization-server"):
        assert service("mcp.example.org", path) == "http_status:404", path
    assert service("other.example.org", "/mcp") == "http_status:404"


def test_it_closes_idle_connections_before_gatewayd_does():
    """Else a request meets a connection that is just being closed."""
    rows = (SRC / "common/conf/conf_keys.def").read_text(encoding="utf-8")
    idle = re.search(r'K\("gatewayd", idle_timeout, DURATION, "(\w+)"', rows).group(1)
    rule = next(r for r in config()["ingress"] if "originRequest" in r)
    assert seconds(rule["originRequest"]["keepAliveTimeout"]) < seconds(idle)


def test_it_speaks_what_gatewayd_speaks():
    rule = next(r for r in config()["ingress"] if "originRequest" in r)
    assert rule["originRequest"]["http2Origin"] is False and "noTLSVerify" not in rule["originRequest"]
