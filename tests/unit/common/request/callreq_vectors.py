#!/usr/bin/python3
"""The hash of one call, made again from its description, against the vectors.
Nothing of our C code is used (version_vectors.py says why)."""
import hashlib
import json
import pathlib
import struct
import sys

NAMES = "version_hash tool principal listener arguments request expires_ms".split()


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
    made = b"mcpbox call 1\0"
    for name, value in fields:
        made += struct.pack(">BI", NAMES.index(name) + 1, len(value)) + value
    assert [n for n, _ in fields] == NAMES, f"{path}: fields"
    assert made.hex() == want["preimage"], f"{path}: pre-image"
    assert hashlib.sha256(made).hexdigest() == want["sha256"], f"{path}: hash"
    shown, given = json.loads(want["json"]), dict(fields)
    assert want["json"].isascii(), f"{path}: shown form isn't ASCII"
    assert shown["tool"] == given["tool"].decode(), path
    assert shown["principal"] == given["principal"].decode(), path
    assert shown["arguments"] == json.loads(given["arguments"]), path
    assert shown["version_hash"] == given["version_hash"].hex(), path
    assert shown["request"].replace("-", "") == given["request"].hex(), path
    return 1


def main():
    good = sum(check(p) for p in sorted(pathlib.Path(sys.argv[1]).glob("*.txt")))
    assert good >= 3, "too few vectors"


main()
