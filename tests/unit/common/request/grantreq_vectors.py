#!/usr/bin/python3
"""The hash of one grant, made again from its description, against the vectors.
Nothing of our C code is used (version_vectors.py says why)."""
import hashlib
import json
import pathlib
import struct
import sys

NAMES = ("kind request server_id server tool_id tool module version digest files size proto host port "
         "affected").split()


def check(path):
    fields, want = [], {}
    for line in path.read_text().splitlines():
        key, _, rest = line.partition(" ")
        if key == "field":
            name, value = rest.split(" ")
            fields.append((name, b"" if value == "-" else bytes.fromhex(value)))
        elif key != "#":
            want[key] = rest
    if path.name.startswith("bad-"):
        assert "error" in want, path
        return 0
    if path.name in ("hosts.txt", "needs.txt"):
        return 0
    made = b"mcpbox grant 1\0"
    for name, value in fields:
        made += struct.pack(">BI", NAMES.index(name) + 1, len(value)) + value
    assert made.hex() == want["preimage"], f"{path}: pre-image"
    assert hashlib.sha256(made).hexdigest() == want["sha256"], f"{path}: hash"
    shown, given = json.loads(want["json"]), dict(fields)
    assert want["json"].isascii(), f"{path}: shown form isn't ASCII"
    assert shown["request"].replace("-", "") == given["request"].hex(), path
    assert shown["server"] == given["server"].decode(), path
    for name in ("host", "tool", "module", "version"):
        assert shown.get(name, "") == given.get(name, b"").decode(), (path, name)
    if "port" in given:
        assert (shown["port"] or 0) == int.from_bytes(given["port"], "big"), path
    assert shown["affected"] == [v.hex() for n, v in fields if n == "affected"], path
    return 1


def main():
    good = sum(check(p) for p in sorted(pathlib.Path(sys.argv[1]).glob("*.txt")))
    assert good >= 8, "too few vectors"


main()
