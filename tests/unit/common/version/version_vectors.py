#!/usr/bin/python3
"""The version hash, made again from its description, against the vectors.

Nothing of our C code is used: the table below is typed from INTERFACES' words
("u8 tag, u32be length, bytes, in the order of one table"), so a slip in
common/version/version.h that changed hashes would show here.
"""
import hashlib
import json
import pathlib
import struct
import sys

NAMES = """format server_id tool_id server name exposed_name title description
icons meta input_schema output_schema annotations kind code spec modules
executable executable_digest secrets requires task confirm timeout_ms
memory_bytes processes tmp_bytes result_bytes cpu_ms files file_bytes
stdout_bytes argument_bytes log_rate progress_rate object uri mime_type
arguments text blob ttl_ms client_capabilities connections network_bytes
network_rate""".split()
SETS = {"modules", "secrets", "requires"}
NUMBERS = {"format", "confirm", "timeout_ms", "memory_bytes", "processes",
           "tmp_bytes", "result_bytes", "cpu_ms", "files", "file_bytes",
           "stdout_bytes", "argument_bytes", "log_rate", "progress_rate",
           "connections", "network_bytes", "network_rate"}
JSON = {"icons", "meta", "input_schema", "output_schema", "annotations", "spec"}


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
    made = b"mcpbox version 1\0"
    for name, value in fields:
        made += struct.pack(">BI", NAMES.index(name) + 1, len(value)) + value
    assert made.hex() == want["preimage"], f"{path}: pre-image"
    assert hashlib.sha256(made).hexdigest() == want["sha256"], f"{path}: hash"
    shown = json.loads(want["json"])
    assert want["json"].isascii(), f"{path}: shown form isn't ASCII"
    for name, value in fields:
        if name in SETS:
            assert value.decode() in shown[name], f"{path}: {name}"
        elif name in JSON:
            assert json.loads(value) == shown[name], f"{path}: {name}"
        elif name in NUMBERS:
            assert int.from_bytes(value, "big") == shown[name], f"{path}: {name}"
        elif name.endswith("_id"):
            assert value.hex() == shown[name].replace("-", ""), f"{path}: {name}"
        else:
            assert value.decode() == shown[name], f"{path}: {name}"
    return 1


def main():
    good = sum(check(p) for p in sorted(pathlib.Path(sys.argv[1]).glob("*.txt")))
    assert good >= 5, "too few vectors"


main()
