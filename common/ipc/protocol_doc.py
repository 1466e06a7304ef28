"""Keeps the tables of PROTOCOL.md equal to the IPC table.

usage: protocol_doc.py [--check] IPC_TEXT PROTOCOL.md
"""
import subprocess
import sys

BEGIN, END = "<!-- begin: ipc-text -m -->\n", "<!-- end: ipc-text -m -->\n"


def main():
    args = [a for a in sys.argv[1:] if a != "--check"]
    tables = subprocess.check_output([args[0], "-m"], text=True)
    with open(args[1], encoding="utf-8") as f:
        old = f.read()
    head, rest = old.split(BEGIN)
    tail = rest.split(END)[1]
    new = head + BEGIN + "\n" + tables + END + tail
    if new == old:
        return 0
    if "--check" in sys.argv:
        print("docs/PROTOCOL.md is not what ipc-text -m prints: "
              "run ninja -C build/release docs-protocol")
        return 1
    with open(args[1], "w", encoding="utf-8") as f:
        f.write(new)
    return 0


sys.exit(main())
