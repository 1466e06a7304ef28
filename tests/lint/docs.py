"""Documents that restate code must be in step with it.

docs/PROTOCOL.md's tables are what `ipc-text -m` prints; every daemon has a
man page that names its process. (The REST routes are compared with
docs/openapi.yaml by the unit tests.)
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def block(text, name):
    """What stands between <!-- begin: NAME --> and <!-- end: NAME -->."""
    m = re.search(rf"<!-- begin: {re.escape(name)} -->\n(.*?)<!-- end: {re.escape(name)} -->",
                  text, re.S)
    return m.group(1).strip() if m else None


def ipc_text():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["cc", "-D_GNU_SOURCE", "-I", ROOT / "common", "-o", f"{d}/ipc-text",
                        ROOT / "common/ipc_text.c", ROOT / "common/ipc_table.c"], check=True)
        return subprocess.check_output([f"{d}/ipc-text", "-m"], text=True).strip()


def main():
    # A comparison that can't fail is worth nothing.
    assert block("x<!-- begin: a -->\nhello\n<!-- end: a -->", "a") == "hello"
    assert block("nothing", "a") is None
    bad = []
    if block(read("docs/PROTOCOL.md"), "ipc-text -m") != ipc_text():
        bad.append("docs/PROTOCOL.md is not what ipc-text -m prints: ninja -C build docs-protocol")
    processes = set(re.findall(r'^K\("([^"]+)"', read("common/conf_keys.def"), re.M)) - {"*"}
    for p in sorted(processes):
        # A program for people, in section 1; the others are daemons.
        name = {"mcpboxctl": "mcpboxctl.1", "egress": "mcpbox-sandboxd-egress.8"}.get(p, f"mcpbox-{p}.8")
        page = ROOT / "docs/man" / name
        if not page.is_file():
            bad.append(f"docs/man/{name} is missing")
        elif f".Nm {name.rsplit('.', 1)[0]}" not in page.read_text(encoding="utf-8"):
            bad.append(f"docs/man/{name} does not name its process")
    print("\n".join(bad))
    return 1 if bad else 0


sys.exit(main())
