"""Writes remote_text.c: the examples of contrib/ for proxies as bytes, so that
`mcpboxctl remote add` writes the files that tests run. Of Caddy's the site
alone: a file that a Caddyfile imports can't have the options of all sites.

usage: remote_text.py OUTPUT NGINX CLOUDFLARED CADDY"""
import sys
from pathlib import Path

out = ['#include "remote_text.h"', ""]
for name, path in zip(("nginx", "cloudflared", "caddy"), sys.argv[2:5], strict=True):
    text = Path(path).read_bytes()
    if name == "caddy":
        text = text[text.index(b"\nmcp.example.org {\n") + 1:]
    # The text that remote_files.c replaces must be there, or the build fails here.
    if b"\0" in text or b"mcp.example.org" not in text or b"/run/mcpbox/" not in text:
        sys.exit(f"{path} lacks the name or the socket that are replaced in it")
    out.append(f"const char remote_text_{name}[] = {{ {','.join(str(b) for b in text)},0 }};")
Path(sys.argv[1]).write_text("\n".join(out) + "\n")
